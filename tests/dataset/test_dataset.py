from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from tests.dataset.files import SCHEMA, WAYS, flip, offset_of, payloads, rows, save, save_many

if TYPE_CHECKING:
    from pathlib import Path

    from recordkit.storage.read import Damage


@pytest.fixture
def ds(tmp_path: Path) -> rk.Dataset:
    return rk.open(save_many(tmp_path, [4, 3, 3]))


class TestSelection:
    def test_leaves_the_dataset_as_it_was(self, ds: rk.Dataset) -> None:
        ds.select("id").take(2).skip(1)

        assert list(ds) == rows(0, 10)
        with pytest.raises(dataclasses.FrozenInstanceError):
            ds._start = 3  # type: ignore[misc]

    def test_select_keeps_the_order_asked_for(self, ds: rk.Dataset) -> None:
        some = ds.select("name", "id")

        assert some.schema is not None
        assert some.schema.names == ("name", "id") == next(iter(some.batch(3))).names
        assert list(some[0]) == ["name", "id"]

    def test_drop_is_select_of_the_others(self, ds: rk.Dataset) -> None:
        assert list(ds.drop("name")) == list(ds.select("id")) == [{"id": i} for i in range(10)]
        assert ds.drop("name").select("id")[0] == {"id": 0}

    def test_what_was_left_out_cannot_be_selected_again(self, ds: rk.Dataset) -> None:
        with pytest.raises(rk.SchemaError, match="name"):
            ds.select("id").select("name")
        with pytest.raises(rk.SchemaError, match="name"):
            ds.select("id").drop("name")

    def test_a_wrong_name_is_refused_at_once(self, ds: rk.Dataset) -> None:
        with pytest.raises(rk.SchemaError, match="Did you mean 'name'"):
            ds.select("nmae")

    @pytest.mark.parametrize("count", [-1, 1.5, True, "3", None])
    def test_a_count_that_cannot_be_is_refused(self, ds: rk.Dataset, count: Any) -> None:
        for method in (ds.take, ds.skip):
            with pytest.raises(ValueError, match="count is a number from 0 up, found"):
                method(count)

    def test_take_and_skip_go_on_from_each_other(self, ds: rk.Dataset) -> None:
        everything = rows(0, 10)

        assert list(ds.skip(2).take(5).skip(1).take(2)) == everything[3:5]
        assert list(ds.take(3).take(9)) == everything[:3]
        assert list(ds.take(3).skip(5)) == []
        assert (len(ds.skip(99)), list(ds.skip(99)), list(ds.skip(99).batch(2))) == (0, [], [])

    @pytest.mark.parametrize("way", WAYS)
    def test_what_is_not_selected_is_not_decoded(self, tmp_path: Path, way: str) -> None:
        paths = save_many(tmp_path, [200, 100], [way])
        ds = rk.open(paths, schema={"id": "uint8", "name": "string"})

        assert sum(len(batch["name"]) for batch in ds.select("name").batch(50)) == 300
        with pytest.raises(rk.SchemaError, match=r"In record 56 of .*data-001"):
            list(ds.select("id"))


class TestHead:
    def test_is_the_first_as_a_batch(self, ds: rk.Dataset) -> None:
        assert ds.head()["id"].tolist() == [0, 1, 2, 3, 4]
        assert ds.skip(8).head(5)["id"].tolist() == [8, 9]
        assert (len(ds.head(0)), ds.head(0).names) == (0, ("id", "name"))

    def test_reads_no_more_than_it_needs(self, tmp_path: Path) -> None:
        paths = save_many(tmp_path, [20, 20])
        flip(paths[1], 12)
        ds = rk.open(paths, schema=SCHEMA)

        assert len(ds.head(20)) == 20


class TestSkippingDamage:
    def damaged(self, tmp_path: Path) -> list[Path]:
        paths = save_many(tmp_path, [20, 20, 20])
        flip(paths[0], offset_of(paths[0], 5) + 12)
        flip(paths[2], offset_of(paths[2], 19) + 12)
        return paths

    KEPT = [i for i in range(60) if i not in (5, 59)]

    @pytest.mark.parametrize("workers", [1, 3])
    def test_the_sound_records_are_given_and_the_damage_is_listed_once(self, tmp_path: Path, workers: int) -> None:
        paths = self.damaged(tmp_path)
        ds = rk.open(paths, on_error="skip", workers=workers)

        for _ in range(2):
            assert [row["id"] for row in ds] == self.KEPT

        assert [(d.path, d.kind, d.record) for d in ds.damage] == [
            (str(paths[0]), "bad_payload_crc", 5),
            (str(paths[2]), "bad_payload_crc", 19),
        ]

    def test_batches_are_full_all_the_same(self, tmp_path: Path) -> None:
        ds = rk.open(self.damaged(tmp_path), on_error="skip")

        assert [len(batch) for batch in ds.batch(10)] == [10, 10, 10, 10, 10, 8]

    def test_a_function_is_given_each(self, tmp_path: Path) -> None:
        found: list[Damage] = []
        ds = rk.open(self.damaged(tmp_path), on_error=found.append)

        assert sum(len(batch) for batch in ds.batch(7)) == 58
        assert found == list(ds.damage)
        assert len(found) == 2

    def test_what_was_passed_over_is_said_at_the_end(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        ds = rk.open(self.damaged(tmp_path), on_error="skip")

        with caplog.at_level(logging.WARNING, "recordkit"):
            list(ds)
            list(ds)

        (message,) = caplog.messages
        assert message.startswith("2 damaged places in 2 files passed over; the first: ")

    def test_more_than_max_bad_are_an_error(self, tmp_path: Path) -> None:
        paths = self.damaged(tmp_path)

        assert sum(1 for _ in rk.open(paths, on_error="skip", max_bad=2)) == 58
        with pytest.raises(rk.CorruptRecordError, match="2 places are damaged, and max_bad=1") as caught:
            list(rk.open(paths, on_error="skip", max_bad=1).batch(4))
        assert caught.value.path == str(paths[2])

    def test_a_sound_record_that_is_no_example_or_does_not_fit_is_left_out(self, tmp_path: Path) -> None:
        some = payloads(240, 270)
        some[3] = b"\x0a\xff\xff"
        path = save(tmp_path / "a", some)
        ds = rk.open(
            [*save_many(tmp_path, [10]), path], schema={"id": "uint8", "name": "string"}, on_error="skip", workers=1
        )

        found = [number for batch in ds.batch(7) for number in batch["id"].tolist()]

        assert found == [*range(10), *(i for i in range(240, 256) if i != 243)]
        assert [(d.kind, d.record) for d in ds.damage] == [
            ("malformed", 3),
            *(("schema", record) for record in range(16, 30)),
        ]
        assert {d.path for d in ds.damage} == {str(path)}

    def test_each_is_told_by_its_own_place_however_many_a_batch_has(self, tmp_path: Path) -> None:
        some = payloads(0, 30)
        for bad in (3, 9, 10):
            some[bad] = b"\x0a\xff\xff"
        path = save(tmp_path / "z", some)
        ds = rk.open([*save_many(tmp_path, [1]), path], schema=SCHEMA, on_error="skip")

        assert [row["id"] for row in ds] == [0, *(i for i in range(30) if i not in (3, 9, 10))]

        places = [sum(map(len, some[:bad])) + 16 * bad for bad in (3, 9, 10)]
        assert [(d.record, d.offset) for d in ds.damage] == list(zip((3, 9, 10), places, strict=True))
        assert str(ds.damage[1]) == (
            f"{path}: record 9 at byte {places[1]}: the payload is not a well-formed Example: "
            "a number is cut off or longer than ten bytes, at byte 1 of 3"
        )

    @pytest.mark.parametrize("way", ["ours", "foreign", "zlib"])
    def test_compressed_files_are_gone_through_as_far_as_can_be(self, tmp_path: Path, way: str) -> None:
        (path,) = save_many(tmp_path, [70], [way])
        members = rk.open(path).shards[0]._members
        flip(path, members[5].offset + 60 if members else path.stat().st_size // 2)
        ds = rk.open(path, schema=SCHEMA, on_error="skip")

        found = [row["id"] for row in ds]

        assert ds.damage
        assert found == sorted(set(found))
        assert len(found) >= (63 if way == "ours" else 1)
        assert len(found) < 70
