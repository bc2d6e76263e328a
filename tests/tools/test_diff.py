"""Comparing datasets: by content, by key, and without reading."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit import progress
from recordkit.dataset import open as open_dataset
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.schema import Schema
from recordkit.storage.write import create
from recordkit.tools.diff._diff import Diff, Group, diff
from tests.tools.in_memory import File, MappedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

numbers = st.lists(st.integers(0, 12), max_size=25)
FIELDS = {"id": "int64", "label": "int64", "note": "string?", "x": "float32[2]", "tokens": "int64[?]"}


def of_ids(ids: list[int], **more: Any) -> MappedRecords:
    return MappedRecords.of({"id": "int64"}, ({"id": number} for number in ids), **more)


def row(number: int, **changes: Any) -> dict[str, Any]:
    values = {"id": number, "label": number % 3, "note": f"n{number}", "x": [0.5, np.nan], "tokens": [1] * number}
    return values | changes


def of_rows(*rows: dict[str, Any], fields: dict[str, str] | None = None) -> MappedRecords:
    return MappedRecords.of(fields or FIELDS, rows)


class TestByContent:
    @given(numbers)
    def test_a_dataset_is_the_same_as_itself(self, ids: list[int]) -> None:
        found = diff(of_ids(ids), of_ids(ids))

        assert found.same
        assert found == Diff((), (len(ids), len(ids)))

    @given(numbers, numbers)
    def test_every_record_is_counted_once_on_each_side(self, one: list[int], other: list[int]) -> None:
        found = diff(of_ids(one), of_ids(other))

        common = len(one) - found.only_in_a.count - found.changed.count
        assert common == len(other) - found.only_in_b.count - found.changed.count
        assert common == sum(min(one.count(number), other.count(number)) for number in {*one, *other})
        assert found.moved.count <= common
        assert found.same == (one == other)

    @given(st.permutations(range(12)))
    def test_as_few_as_possible_are_moved(self, ids: list[int]) -> None:
        found = diff(of_ids(list(range(12))), of_ids(ids))

        longest = [0] * 12
        for place, number in enumerate(ids):
            longest[number] = 1 + max((longest[before] for before in ids[:place] if before < number), default=0)
        assert found.moved.count == 12 - max(longest)
        assert not found.only_in_a
        assert not found.changed

    @given(numbers, numbers)
    def test_examples_are_where_they_say(self, one: list[int], other: list[int]) -> None:
        found = diff(of_ids(one), of_ids(other))

        assert all(one[a] == other[b] for a, b in found.moved.examples)
        assert all(one[a] != other[b] for a, b in found.changed.examples)
        assert all(one.count(one[a]) > other.count(one[a]) for a in found.only_in_a.examples)
        assert all(other.count(other[b]) > one.count(other[b]) for b in found.only_in_b.examples)

    def test_records_put_in_and_taken_out_move_no_other(self) -> None:
        found = diff(of_ids([1, 2, 3, 4, 5, 6]), of_ids([9, 1, 2, 4, 7, 6]))

        assert (found.only_in_a, found.only_in_b) == (Group(1, (2,)), Group(1, (0,)))
        assert found.changed == Group(1, ((4, 4),))
        assert not found.moved

    def test_prints_what_is_different(self) -> None:
        found = diff(of_ids([1, 2, 3, 4, 5]), of_ids([5, 1, 9, 3, 4]))

        assert str(found) == (
            "different: 5 and 5 records, compared by all their bytes\n"
            "  changed: 1 (record 1→2)\n"
            "  moved: 1 (record 4→0)"
        )

    def test_schemas_are_compared_too(self) -> None:
        found = diff(of_ids([1]), MappedRecords.of({"id": "int32"}, [{"id": 1}]))

        assert not found.same
        assert str(found).splitlines()[1:] == ["  schema: id: expected int64, found int32"]
        assert not found.changed

    def test_says_how_far_it_has_come(self) -> None:
        reports: list[progress.Report] = []

        with progress.reporting(reports.append):
            diff(of_ids([1, 2]), of_ids([1, 3, 4]))

        assert reports[-1] == progress.Report("comparing", 3, 3, "records")

    @given(numbers.map(sorted), numbers.map(sorted))
    def test_finds_no_fewer_in_common_than_difflib(self, one: list[int], other: list[int]) -> None:
        found = diff(of_ids(one), of_ids(other))

        matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
        kept = len(one) - found.only_in_a.count - found.changed.count - found.moved.count
        assert kept >= sum(block.size for block in matcher.get_matching_blocks())


class TestDigests:
    def test_equal_digests_need_no_reading(self) -> None:
        shards = File.known(2, "aa"), File.known(1, "bb")
        one, other = of_ids([1, 2, 3], shards=shards), of_ids([1, 2, 3], shards=shards)

        found = diff(one, other)

        assert (found.same, found.how, one.payloads_read, other.payloads_read) == (True, "digests", 0, 0)
        assert str(found) == ("the same: 3 and 3 records, the digests in both manifests are equal; no record was read")

    @pytest.mark.parametrize(
        "shards",
        [(), (File(None),), (File.known(3, "bb"),), (File.known(2, "aa"),), (File.known(2, "aa"), File.known(1, "bb"))],
    )
    def test_anything_else_is_read(self, shards: tuple[File, ...]) -> None:
        found = diff(of_ids([1, 2, 3], shards=(File.known(3, "aa"),)), of_ids([1, 2, 3], shards=shards))

        assert (found.same, found.how) == (True, "records")

    def test_empty_shards_make_no_difference(self) -> None:
        one, other = (File.known(3, "aa"), File.known(0, "cc")), (File.known(3, "aa"),)

        assert diff(of_ids([1, 2, 3], shards=one), of_ids([1, 2, 3], shards=other)).how == "digests"

    def test_part_of_the_shards_is_read(self) -> None:
        shards = (File.known(3, "aa"),)

        assert diff(of_ids([1, 2], shards=shards), of_ids([2, 3], shards=shards)).how == "records"


class TestByKey:
    def test_order_and_bytes_do_not_count(self) -> None:
        one = of_rows(row(1), row(2))
        other = of_rows(row(2), row(1), fields=dict(reversed(FIELDS.items())))

        found = diff(one, other, on="id")

        assert found.same
        assert found.stored_otherwise in (0, 2)
        assert found.moved.count == 1

    def test_names_the_fields_that_differ(self) -> None:
        one = of_rows(row(1), row(2), row(3), row(4), row(5))
        other = of_rows(row(2, label=9), row(3, note=None, tokens=[1, 1]), row(4, x=[0.5, 1]), row(5), row(6))

        found = diff(one, other, on="id")

        assert (found.only_in_a, found.only_in_b) == (Group(1, (1,)), Group(1, (6,)))
        assert found.changed == Group(3, (2, 3, 4))
        assert found.fields == {
            "label": Group(1, (2,)),
            "note": Group(1, (3,)),
            "x": Group(1, (4,)),
            "tokens": Group(1, (3,)),
        }

    def test_prints_what_is_different(self) -> None:
        one = of_rows(*(row(number) for number in range(6)))
        other = of_rows(*(row(number, label=number % 2) for number in range(6)))

        assert str(diff(one, other, on="id")) == (
            "different: 6 and 6 records, compared by id\n  changed: 4 (2, 3, 4, …)\n    label: 4 (2, 3, 4, …)"
        )

    @given(st.dictionaries(st.integers(0, 9), st.integers(0, 2)), st.dictionaries(st.integers(0, 9), st.integers(0, 2)))
    def test_is_the_difference_of_dicts(self, one: dict[int, int], other: dict[int, int]) -> None:
        fields = {"id": "int64", "label": "int64"}
        a = MappedRecords.of(fields, [{"id": key, "label": label} for key, label in one.items()])
        b = MappedRecords.of(fields, [{"id": key, "label": label} for key, label in other.items()])

        found = diff(a, b, on="id")

        assert set(found.only_in_a.examples) == one.keys() - other.keys()
        assert set(found.only_in_b.examples) == other.keys() - one.keys()
        assert set(found.changed.examples) == {key for key in one.keys() & other.keys() if one[key] != other[key]}
        assert found.same == (one == other)

    def test_text_and_bytes_of_the_same_values_are_a_difference_of_schema_only(self) -> None:
        a = MappedRecords.of(
            {"id": "int64", "s": "string", "t": "string[?]", "n": "int64"}, [{"id": 1, "s": "a", "t": ["b"], "n": 1}]
        )
        b = MappedRecords.of(
            {"id": "int32", "s": "bytes", "t": "bytes[?]", "n": "int64[2]"},
            [{"id": 1, "s": b"a", "t": [b"b"], "n": [1, 1]}],
        )

        found = diff(a, b, on="id")

        assert list(found.fields) == ["n"]
        assert len(found.schema) == 4

    def test_times_are_no_numbers(self) -> None:
        a = MappedRecords.of({"id": "int64", "t": "datetime64:s"}, [{"id": 1, "t": np.datetime64(5, "s")}])
        b = MappedRecords.of({"id": "int64", "t": "int64"}, [{"id": 1, "t": 5}])

        assert diff(a, b, on="id").changed.count == 1

    def test_several_fields_may_be_the_key(self) -> None:
        fields = {"user": "string", "day": "int64", "n": "int64?"}
        one = MappedRecords.of(fields, [{"user": "a", "day": 1, "n": 1}, {"user": "a", "day": 2}])
        other = MappedRecords.of(fields, [{"user": "a", "day": 2, "n": 0}, {"user": "b", "day": 1}])

        found = diff(one, other, on=["user", "day"])

        assert found.only_in_a == Group(1, (("a", 1),))
        assert found.fields == {"n": Group(1, (("a", 2),))}

    def test_keys_that_come_again_are_matched_in_order_and_said(self) -> None:
        one, other = of_rows(row(1), row(1, label=5)), of_rows(row(1), row(1, label=6), row(1))

        found = diff(one, other, on="id")

        assert found.repeated == (1, 2)
        assert found.changed == Group(1, (1,))
        assert str(found).splitlines()[-1] == "  repeated keys in b: 2"

    def test_skipped_records_do_not_shift_keys_against_payloads(self) -> None:
        class Skipping(MappedRecords):
            def records(self) -> Iterator[bytes]:
                return islice(super().records(), 1, None)

        damaged = Skipping.of({"id": "int64"}, [{"id": 1}, {"id": 2}])

        with pytest.raises(CorruptRecordError, match="2 records, but 2 keys and 1 payloads could be read"):
            diff(of_ids([1, 2]), damaged, on="id")

    @pytest.mark.parametrize(
        ("name", "words"), [("tokens", "tokens: int64[?] is no key"), ("idd", "idd: not in the schema")]
    )
    def test_a_key_is_a_field_with_one_value(self, name: str, words: str) -> None:
        with pytest.raises(SchemaError) as caught:
            diff(of_rows(row(1)), of_rows(row(1)), on=name)

        assert str(caught.value).startswith(words)


class TestFiles:
    def write(self, path: Path, numbers: range, **options: Any) -> Path:
        with create(path, Schema(FIELDS), **options) as writer:
            for number in numbers:
                writer.write(row(number))
        return path

    def test_compression_makes_no_difference_and_nothing_is_read(self, tmp_path: Path) -> None:
        one = self.write(tmp_path / "one", range(50), records_per_shard=20)
        other = self.write(tmp_path / "other", range(50), records_per_shard=20, compression="gzip")

        assert diff(one, other) == Diff((), (50, 50), how="digests")

    def test_other_shards_of_the_same_records_are_the_same(self, tmp_path: Path) -> None:
        one = self.write(tmp_path / "one", range(50), records_per_shard=20)
        other = self.write(tmp_path / "other", range(50), records_per_shard=17)

        assert diff(one, other) == Diff((), (50, 50), how="records")
        assert diff(one, other, on="id") == Diff((), (50, 50), on=("id",), how="keys")

    def test_part_of_a_dataset_is_compared_with_another(self, tmp_path: Path) -> None:
        one = open_dataset(self.write(tmp_path / "one", range(30), records_per_shard=20))
        other = self.write(tmp_path / "other", range(10, 40), records_per_shard=20)

        assert diff(one.skip(10), other) == Diff((), (20, 30), only_in_b=Group(10, tuple(range(20, 30))))
        assert diff(one.skip(10), other, on="id").only_in_b == Group(10, tuple(range(30, 40)))

    def test_payloads_have_no_keys(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "one", range(3))
        raw = open_dataset(path, raw=True)

        assert diff(raw, path).same
        with pytest.raises(SchemaError, match="id: these records are bytes, which have no fields"):
            diff(raw, path, on="id")
