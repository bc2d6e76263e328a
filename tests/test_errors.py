from __future__ import annotations

import copy
import errno
import pickle

import pytest

from recordkit.errors import (
    CorruptRecordError,
    DataLossError,
    InvalidArgumentError,
    MalformedPayloadError,
    MissingExtraError,
    RecordKitError,
    SchemaError,
    StorageError,
    WrongFileError,
)

CORRUPT = CorruptRecordError(
    "train: record 3 at byte 81: the payload's checksum does not match",
    path="train",
    record=3,
    offset=81,
    byte=7,
    kind="bad_payload_crc",
    field="label",
)
SCHEMA = SchemaError("label: expected int64", field="label", record=3, path="train", expected="int64", found="float")
MALFORMED = MalformedPayloadError("record 3: no Example", record=3, byte=7, kind="malformed")
EXTRA = MissingExtraError("bfloat16", "ml_dtypes", "ml_dtypes")


class TestTree:
    @pytest.mark.parametrize(
        ("error", "built_in"), [(CORRUPT, ValueError), (SCHEMA, ValueError), (EXTRA, ImportError)], ids=str
    )
    def test_every_error_has_the_package_and_a_built_in_one_as_parents(
        self, error: RecordKitError, built_in: type[Exception]
    ) -> None:
        assert isinstance(error, RecordKitError)
        assert isinstance(error, built_in)

    @pytest.mark.parametrize(
        ("kind", "theirs"),
        [
            (CorruptRecordError, DataLossError),
            (WrongFileError, DataLossError),
            (SchemaError, InvalidArgumentError),
            (MalformedPayloadError, InvalidArgumentError),
            (MalformedPayloadError, CorruptRecordError),
        ],
    )
    def test_errors_are_what_tensorflow_calls_them(self, kind: type[Exception], theirs: type[Exception]) -> None:
        assert issubclass(kind, theirs)
        assert not issubclass(CorruptRecordError, InvalidArgumentError)  # else `except` in either order would differ

    def test_text_is_the_message_too(self) -> None:
        assert CORRUPT.message == str(CORRUPT)
        assert not hasattr(CorruptRecordError, "message")  # PyTorch would pass it as an argument

    def test_facts_that_are_not_known_are_none(self) -> None:
        corrupt, schema = CorruptRecordError("text"), SchemaError("text")

        parts = {"place": "", "summary": "text", "advice": ""}
        assert vars(corrupt) == dict.fromkeys(["path", "record", "offset", "byte", "kind", "field"]) | parts
        assert vars(schema) == dict.fromkeys(["field", "record", "path", "expected", "found"]) | parts | {"where": ""}

    def test_missing_extra_says_what_to_install(self) -> None:
        assert str(EXTRA) == "bfloat16 needs ml_dtypes: pip install 'recordkit[ml_dtypes]'"


class TestParts:
    def test_place_is_what_the_facts_say_in_front_of_the_summary(self) -> None:
        assert (CORRUPT.place, CORRUPT.summary) == (
            "train: record 3 at byte 81",
            "the payload's checksum does not match",
        )
        assert (SCHEMA.place, SCHEMA.summary) == ("label", "expected int64")
        assert (MALFORMED.place, MALFORMED.summary) == ("record 3", "no Example")

    def test_a_message_that_begins_with_something_else_has_no_place(self) -> None:
        error = StorageError("data: cannot be read", path="data/a.tfrecord")

        assert (error.place, error.summary) == ("", "data: cannot be read")

    @pytest.mark.parametrize("advice", ["", "Do this.", "Do this.\nOr that."])
    def test_message_is_made_of_its_parts(self, advice: str) -> None:
        error = StorageError("the disk is full", place="a", advice=advice, path="a", errno=errno.ENOSPC)

        again = StorageError(str(error), path="a", errno=errno.ENOSPC)

        assert str(error) == "\n  ".join(["a: the disk is full", *advice.split("\n")]).rstrip()
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))

    def test_a_whole_message_stays_as_it_is(self) -> None:
        text = "Caught an error in a worker.\nOriginal traceback:\n    one line\n\n"

        assert str(CorruptRecordError(text)) == text

    @pytest.mark.parametrize("error", [CORRUPT, SCHEMA, StorageError("a: full", path="a", errno=errno.ENOSPC)], ids=str)
    def test_a_copy_with_other_parts_keeps_the_rest(self, error: RecordKitError) -> None:
        again = error.but(advice="Do this.")

        assert type(again) is type(error)
        assert str(again) == f"{error}\n  Do this."
        assert vars(again) == {**vars(error), "advice": "Do this."}
        assert getattr(again, "errno", None) == getattr(error, "errno", None)
        assert not error.advice


class TestPickling:
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    @pytest.mark.parametrize(
        "error", [RecordKitError("text"), CORRUPT, MALFORMED, SCHEMA, EXTRA], ids=lambda e: type(e).__name__
    )
    def test_text_and_facts_survive(self, error: RecordKitError, protocol: int) -> None:
        again = pickle.loads(pickle.dumps(error, protocol))

        assert type(again) is type(error)
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))

    def test_a_copy_is_equal_too(self) -> None:
        again = copy.deepcopy(CORRUPT)

        assert (str(again), vars(again)) == (str(CORRUPT), vars(CORRUPT))

    def test_notes_survive(self) -> None:
        error = SchemaError("text", field="x")
        error.add_note("while reading shard 7")

        again = pickle.loads(pickle.dumps(error))

        assert again.__notes__ == ["while reading shard 7"]
