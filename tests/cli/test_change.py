"""add, drop, rename, delete, filter, bake, append, index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Done

FEATURES = """\
def double(row):
    return 2 * row["id"]


def doubles(batch):
    return 2 * batch["id"]


def inverse(row):
    return 1 // int(row["id"])
"""


@pytest.fixture
def features(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A file of functions, under a name that no other test has imported."""
    name = f"features_{abs(hash(request.node.nodeid))}.py"
    (tmp_path / name).write_text(FEATURES)
    return name


def names(path: str) -> tuple[str, ...]:
    schema = rk.open(path).schema
    assert schema is not None
    return schema.names


class TestAdd:
    def test_function_makes_a_field_beside_the_records(
        self, run: Callable[..., Done], train: str, features: str
    ) -> None:
        before = [path.read_bytes() for path in sorted(Path(train).glob("*.tfrecord"))]

        done = run("add", train, f"double={features}:double", "--reads", "id", "--type", "int64")

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            "double: 6 records, in an overlay; no file was rewritten\n  train/_recordkit/overlays/0001-double\n"
        )
        assert rk.open(train)[:]["double"].tolist() == [0, 2, 4, 6, 8, 10]
        assert [path.read_bytes() for path in sorted(Path(train).glob("*.tfrecord"))] == before

    def test_batched_function_bakes_a_field_into_new_files(
        self, run: Callable[..., Done], train: str, features: str
    ) -> None:
        words = (f"double={features}:doubles", "--reads", "id", "--batched", "--type", "int64", "--out", "new")

        done = run("add", train, *words)
        again = run("add", train, *words)

        assert (done.status, done.out) == (0, "double: 6 records, in new files\n  new\n")
        assert rk.open("new", overlays=False)[:]["double"].tolist() == [0, 2, 4, 6, 8, 10]
        assert again.status == 2
        assert again.err.endswith("/new: already exists\n  Pass --overwrite to replace it.\n")

    def test_processes_find_the_function_too(self, run: Callable[..., Done], train: str, features: str) -> None:
        done = run("add", train, f"double={features}:double", "--type", "int64", "--processes", "1")

        assert done.status == 0
        assert rk.open(train)[:]["double"].tolist() == [0, 2, 4, 6, 8, 10]

    def test_function_that_fails_is_named_with_its_line(
        self, run: Callable[..., Done], train: str, features: str
    ) -> None:
        done = run("add", train, f"inverse={features}:inverse", "--reads", "id", "--type", "int64")

        assert (done.status, done.out) == (1, "")
        assert done.err == (
            "error: train/train-00000-of-00002.tfrecord: record 0: inverse: the function failed: "
            "ZeroDivisionError: integer division or modulo by zero\n"
            f'  In {Path(features).resolve()}, line 10: return 1 // int(row["id"]); '
            "--skip-errors leaves the field missing if its type ends in ?\n"
        )
        assert "inverse" not in names(train)

    def test_field_is_missing_where_it_may_be(self, run: Callable[..., Done], train: str, features: str) -> None:
        words = ("add", train, f"inverse={features}:inverse", "--type", "int64?", "--skip-errors")

        done = run(*words)
        found = json.loads(run(*words, "--replace", "--json").out)

        failure = {"record": 0, "words": "ZeroDivisionError: integer division or modulo by zero"}
        assert done.status == 1
        assert done.out == (
            "inverse: 6 records, in an overlay; no file was rewritten\n"
            "  train/_recordkit/overlays/0001-inverse\n"
            "  1 value could not be computed and stayed missing:\n"
            f"    record 0: {failure['words']}\n"
        )
        assert (found["records"], found["fields"], found["failures"]) == (6, ["inverse"], [failure])

    def test_table_is_joined_by_a_key(self, run: Callable[..., Done], train: str) -> None:
        Path("splits.csv").write_text("number,part\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(5)))

        done = run("add", train, "split", "--join", "splits.csv", "--on", "id=number", "--column", "part",
                   "--default", "none")  # fmt: skip

        assert done.status == 0
        assert rk.open(train)[:]["split"].to_list() == ["a", "b", "a", "b", "a", "none"]

    def test_key_that_the_table_lacks_is_named(self, run: Callable[..., Done], train: str) -> None:
        Path("splits.csv").write_text("id,split\n0,a\n")

        done = run("add", train, "split", "--join", "splits.csv", "--on", "id")

        assert (done.status, done.out) == (1, "")
        assert done.err.startswith("error: train/train-00000-of-00002.tfrecord: record 1: split: ")

    def test_array_and_constant_are_taken(self, run: Callable[..., Done], train: str) -> None:
        np.save("height.npy", np.arange(6) / 4)

        array = run("add", train, "height=height.npy", "--type", "float32")
        constant = run("add", train, "source", "--value", "web")

        batch = rk.open(train)[:]
        assert (array.status, constant.status) == (0, 0)
        assert batch["height"].tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25]
        assert batch["source"].to_list() == ["web"] * 6

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["x=no.py:f", "--type", "int64"], "no.py: there is no such file\n  Write FILE.py:FUNCTION, or MODULE:"),
            (["x=math:nothing", "--type", "int64"], "math: there is no function 'nothing'\n  It has: acos, "),
            (["x=no_such_module:f", "--type", "int64"], "no_such_module: this module cannot be imported: ModuleNot"),
            (
                ["x=words", "--type", "int64"],
                "words: this is not the name of a function\n  Write FILE.py:",
            ),
            (
                ["x=math:sqrt"],
                "x: the type of the function's values is missing\n  Pass --type, for example --type int64.\n",
            ),
            (["x"], "x: its values have no source\n  Write x=FILE.py:FUNCTION, or pass --join or --value.\n"),
            (["x=math:sqrt", "--value", "1"], "x=math:sqrt: --join and --value need the name of the field alone\n"),
            (["x", "--join", "a.csv"], "--join needs the key field of the records and the table\n  Pass --on"),
            (["x=no.npy"], "no.npy: there is no such file\n"),
            (["label", "--value", "1"], "label: train has a field label already\n  To replace it: --replace.\n"),
            (["x", "--value", "1", "--out", "a", "--overlay", "b"], "--out bakes the fields into new files, --overlay"),
        ],
    )
    def test_wrong_use_is_two_lines(self, words: list[str], message: str, run: Callable[..., Done], train: str) -> None:
        done = run("add", train, *words)

        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"error: {message}")
        assert len(done.err.splitlines()) <= 2


class TestDrop:
    def test_hides_a_field(self, run: Callable[..., Done], train: str) -> None:
        done = run("drop", train, "image", "tokens")

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            "image, tokens: 6 records, hidden; no file was rewritten\n  train/_recordkit/overlays/0001-hidden\n"
        )
        assert names(train) == ("id", "label", "caption", "point", "depth")

    def test_leaves_it_out_of_new_files(self, run: Callable[..., Done], train: str) -> None:
        done = run("drop", train, "image", "--out", "new", "--json")

        assert json.loads(done.out) == {"path": "new", "records": 6, "fields": ["image"], "failures": []}
        assert "image" not in names("new")

    def test_field_that_is_not_there_is_named_with_the_nearest(self, run: Callable[..., Done], train: str) -> None:
        done = run("drop", train, "imgae")

        assert (done.status, done.err) == (2, "error: imgae: not in the schema\n  Did you mean 'image'?\n")


class TestRename:
    def test_writes_fields_under_other_names(self, run: Callable[..., Done], train: str) -> None:
        done = run("rename", train, "label=y", "caption=text", "--out", "new")

        assert (done.status, done.err) == (0, "")
        assert done.out == "label is now y, caption is now text: 6 records in new files\n  new\n"
        assert {"y", "text"} < set(names("new"))

    def test_wants_pairs_and_a_target(self, run: Callable[..., Done], train: str) -> None:
        assert run("rename", train, "label", "--out", "new").err == (
            "error: label: expected OLD=NEW\n  For example: image/encoded=image.\n"
        )
        assert run("rename", train, "label=y").err == (
            "error: the following arguments are required: --out\n  Usage: recordkit rename --help\n"
        )


class TestDelete:
    def test_takes_records_away_and_leaves_the_files(self, run: Callable[..., Done], train: str) -> None:
        done = run("delete", train, "--where", "label == 0")

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            "2 records deleted, 4 left; no file was rewritten\n  train/_recordkit/overlays/0001-deleted\n"
        )
        assert rk.open(train)[:]["id"].tolist() == [1, 2, 4, 5]

    def test_says_so_where_no_record_is_meant(self, run: Callable[..., Done], train: str) -> None:
        done = run("delete", train, "--where", "label > 5")

        assert (done.status, done.out) == (0, "no record matches: all 6 are left\n  train\n")


class TestFilter:
    def test_writes_the_records_that_are_wanted(self, run: Callable[..., Done], train: str) -> None:
        done = run("filter", train, "--where", "len(tokens) >= 4", "--out", "long")

        assert (done.status, done.err) == (0, "")
        assert done.out == "2 records of 6 (33.3%) in new files\n  long\n"
        assert rk.open("long")[:]["id"].tolist() == [4, 5]


class TestBake:
    def test_writes_what_recordkit_sees(self, run: Callable[..., Done], train: str) -> None:
        rk.add_fields(train, {"double": [0, 2, 4, 6, 8, 10]})
        rk.delete(train, where="id == 0")

        done = run("bake", train, "--out", "new")

        assert (done.status, done.out, done.err) == (0, "5 records in new files\n  new\n", "")
        assert rk.open("new", overlays=False)[:]["double"].tolist() == [2, 4, 6, 8, 10]


class TestAppend:
    def test_takes_json_lines_of_the_standard_input(self, run: Callable[..., Done]) -> None:
        rk.write("data", [{"id": 1, "raw": b"a"}], {"id": "int64", "raw": "bytes", "note": "string?"})
        lines = b'{"id": 2, "raw": "AAE="}\n\n{"id": 3, "raw": "", "note": "last"}\n'

        done = run("append", "data", "-", given=lines)

        assert (done.status, done.err) == (0, "")
        assert done.out == "2 records appended, 3 in total\n  data\n"
        assert rk.open("data")[:]["raw"].to_list() == [b"a", b"\0\1", b""]

    def test_takes_a_file_of_lines_or_a_dataset(self, run: Callable[..., Done]) -> None:
        rk.write("data", [{"id": 1}])
        rk.write("more", [{"id": 2}])
        Path("more.jsonl").write_text(' {"id": 3}\n')

        dataset, lines = run("append", "data", "more"), run("append", "data", "more.jsonl", "--json")

        assert dataset.out == "1 record appended, 2 in total\n  data\n"
        assert json.loads(lines.out) == {"path": "data", "appended": 1, "skipped": 0, "records": 3}
        assert sorted(rk.open("data")[:]["id"].tolist()) == [1, 2, 3]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b'{"id": "one"}', "-, line 2: id: expected int64, found other text\n"),
            (b'{"di": 1}', "-, line 2: di: "),
            (b"{id: 1}", "-, line 2: invalid JSON: Expecting property name"),
            (b"[1]", "-, line 2: expected an object, found list\n"),
        ],
    )
    def test_line_that_does_not_fit_is_named_and_nothing_is_appended(
        self, line: bytes, message: str, run: Callable[..., Done]
    ) -> None:
        rk.write("data", [{"id": 1}])

        done = run("append", "data", "-", given=b'{"id": 5}\n' + line + b"\n")

        assert (done.status, done.out) == (1, "")
        assert done.err.startswith(f"error: {message}")
        assert len(rk.open("data")) == 1

    def test_rows_that_do_not_fit_can_be_set_aside(self, run: Callable[..., Done]) -> None:
        rk.write("data", [{"id": 1}], {"id": "uint8"})

        done = run("append", "data", "-", "--skip-errors", given=b'{"id": 500}\n{"id": 2}\n')

        assert done.status == 1
        assert done.out == (
            "1 record appended, 2 in total\n  data\n"
            "  1 row did not match the schema: see recordkit.quarantined('data')\n"
        )

    def test_dataset_that_is_not_there_is_no_place_to_append_to(self, run: Callable[..., Done]) -> None:
        done = run("append", "nothing", "-", given=b'{"id": 1}\n')

        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("error: nothing: no such file or folder\n")


class TestIndex:
    def test_writes_indexes_beside_the_files(self, run: Callable[..., Done], train: str) -> None:
        done = run("index", train)

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            "train/_recordkit/train-00000-of-00002.tfrecord.rki\ntrain/_recordkit/train-00001-of-00002.tfrecord.rki\n"
        )
        assert all(Path(line).is_file() for line in done.out.splitlines())

    def test_writes_those_of_dali_too(self, run: Callable[..., Done], train: str) -> None:
        done = run("index", train, "--text", "--json")

        paths = json.loads(done.out)["indexes"]
        assert [Path(path).name for path in paths] == [
            "train-00000-of-00002.tfrecord.idx",
            "train-00001-of-00002.tfrecord.idx",
        ]
        assert Path(paths[0]).read_text().splitlines()[0].startswith("0 ")
