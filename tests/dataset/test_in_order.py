from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import records
from recordkit.codecs._gzip import compress_member
from recordkit.dataset import _in_order
from tests.dataset.files import SCHEMA, WAYS, flip, offset_of, payloads, rows, save, save_many, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

files = st.lists(st.tuples(st.one_of(st.integers(0, 5), st.integers(0, 300)), st.sampled_from(WAYS)), max_size=6)
numbers = st.one_of(st.none(), st.integers(0, 12), st.integers(0, 1500))


@pytest.fixture(scope="module", autouse=True)
def _threads_for_little_data() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_in_order, "_SMALL_BYTES", -1)
        patch.setattr(_in_order, "_PIECE_BYTES", 2000)  # several chunks a file
        yield
    gc.collect()  # errors that were caught hold the loops that they ended
    assert not readers()


@pytest.fixture
def _many_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def opened(folder: Path, made: list[tuple[int, str]], **options: Any) -> rk.Dataset:
    paths = save_many(folder, [count for count, _ in made], [way for _, way in made] or ["plain"])
    return rk.open(paths, **options)


def ranged(everything: list[Any], skip: int | None, take: int | None) -> list[Any]:
    everything = everything[skip or 0 :]
    return everything if take is None else everything[:take]


def selected(ds: rk.Dataset, skip: int | None, take: int | None) -> rk.Dataset:
    ds = ds if skip is None else ds.skip(skip)
    return ds if take is None else ds.take(take)


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("recordkit-work")]


class TestOrder:
    @settings(max_examples=50)
    @given(
        made=files.filter(bool),
        size=st.one_of(st.integers(1, 9), st.integers(1, 400)),
        skip=numbers,
        take=numbers,
        workers=st.integers(1, 4),
        drop_last=st.booleans(),
    )
    def test_batches_are_the_list_cut_into_pieces(
        self, made: list[tuple[int, str]], size: int, skip: int | None, take: int | None, workers: int, drop_last: bool
    ) -> None:
        wanted = ranged(rows(0, sum(count for count, _ in made)), skip, take)
        cut = [wanted[at : at + size] for at in range(0, len(wanted), size)]
        if drop_last and cut and len(cut[-1]) < size:
            cut.pop()
        with TemporaryDirectory() as folder:
            ds = selected(opened(Path(folder), made, schema=SCHEMA if wanted else None), skip, take)

            batches = ds.batch(size, workers=workers, drop_last=drop_last)

            found = [list(batch.rows()) for batch in batches]
            assert found == cut
            assert len(batches) == len(cut)
            assert len(ds) == len(wanted)

    @settings(max_examples=25)
    @given(made=files.filter(bool), skip=numbers, take=numbers, workers=st.integers(1, 4))
    def test_rows_and_payloads_are_the_list(
        self, made: list[tuple[int, str]], skip: int | None, take: int | None, workers: int
    ) -> None:
        total = sum(count for count, _ in made)
        with TemporaryDirectory() as folder:
            ds = selected(opened(Path(folder), made, workers=workers), skip, take)

            assert list(ds.records()) == ranged(payloads(0, total), skip, take)
            assert list(ds) == ranged(rows(0, total), skip, take)

    @pytest.mark.usefixtures("_many_switches")
    @pytest.mark.parametrize("workers", [2, 4])
    def test_holds_with_many_small_files_and_threads_that_take_turns(self, tmp_path: Path, workers: int) -> None:
        ds = rk.open(save_many(tmp_path, [3, 1, 0, 2] * 40, WAYS), raw=True)

        for _ in range(3):
            assert [p for batch in ds.batch(4, workers=workers) for p in batch] == payloads(0, 240)

    def test_can_be_gone_through_again_and_twice_at_once(self, tmp_path: Path) -> None:
        batches = rk.open(save_many(tmp_path, [50, 50])).batch(30, workers=2)

        pairs = list(zip(batches, batches, strict=True))

        assert [len(one) for one, _ in pairs] == [30, 30, 30, 10]
        assert all(np.array_equal(one["id"], two["id"]) for one, two in pairs)

    @pytest.mark.parametrize("size", [0, -1, 2.5, True, "4"])
    def test_a_size_that_cannot_be_is_refused(self, tmp_path: Path, size: Any) -> None:
        ds = rk.open(save_many(tmp_path, [3]))

        with pytest.raises(ValueError, match="size is a number from 1 up, found"):
            ds.batch(size)

    @pytest.mark.parametrize("workers", [0, -1, True])
    def test_workers_that_cannot_be_are_refused(self, tmp_path: Path, workers: Any) -> None:
        ds = rk.open(save_many(tmp_path, [3]))

        with pytest.raises(ValueError, match="workers is a number from 1 up"):
            list(ds.batch(2, workers=workers))


class TestThreads:
    def test_none_is_left_when_the_loop_is_broken_off(self, tmp_path: Path) -> None:
        ds = rk.open(save_many(tmp_path, [300] * 4))

        for batch in ds.batch(10, workers=4):
            assert readers()
            assert len(batch) == 10
            break

        assert not readers()

    def test_none_is_left_at_the_end(self, tmp_path: Path) -> None:
        ds = rk.open(save_many(tmp_path, [300] * 4))

        assert sum(len(batch) for batch in ds.batch(10, workers=4)) == 1200

        assert not readers()

    def test_none_is_left_behind_an_error(self, tmp_path: Path) -> None:
        paths = save_many(tmp_path, [300] * 4)
        flip(paths[2], offset_of(paths[2], 100) + 12)

        with pytest.raises(rk.CorruptRecordError):
            list(rk.open(paths, schema=SCHEMA).batch(10, workers=4))

        assert not readers()

    def test_none_is_started_for_little_data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_in_order, "_SMALL_BYTES", 1 << 20)
        ds = rk.open(save_many(tmp_path, [300]))

        for _ in ds.batch(10, workers=4):
            assert not readers()

    def test_no_more_is_made_than_there_is_room_for(self, tmp_path: Path) -> None:
        made: list[bytes] = []
        ds = rk.open(save_many(tmp_path, [300] * 4), parse=made.append)

        batches = iter(ds.batch(1, workers=2))
        next(batches)

        assert len(made) < 600
        batches.close()


def damaged(tmp_path: Path, way: str, file: int, record: int) -> list[Path]:
    """Four files of 100 records, one of them with a payload that is no Example."""
    paths, start = [], 0
    for number in range(4):
        some = payloads(start, start + 100)
        if number == file:
            some[record] = b"\x0a\xff\xff" + b"\x01" * record
        paths.append(save(tmp_path / f"{number}.tfrecord", some, way))
        start += 100
    return paths


class TestErrors:
    @pytest.mark.parametrize("workers", [1, 3])
    @pytest.mark.parametrize("size", [1, 8, 33, 250])
    @pytest.mark.parametrize("way", WAYS)
    def test_a_payload_that_is_no_example_is_named_by_file_and_record(
        self, tmp_path: Path, way: str, size: int, workers: int
    ) -> None:
        paths = damaged(tmp_path, way, 2, 66)
        ds = rk.open(paths, schema=SCHEMA)
        seen: list[int] = []

        with pytest.raises(rk.CorruptRecordError) as caught:
            seen.extend(len(batch["id"]) for batch in ds.batch(size, workers=workers))

        assert (caught.value.path, caught.value.record, caught.value.kind) == (str(paths[2]), 66, "malformed")
        assert str(caught.value).startswith(f"{paths[2]}: record 66 at byte ")
        assert seen == [size] * (266 // size)

    @pytest.mark.parametrize("workers", [1, 3])
    @pytest.mark.parametrize("size", [1, 8, 33, 250])
    @pytest.mark.parametrize("way", WAYS)
    def test_a_value_that_does_not_fit_is_named_when_its_column_is_made(
        self, tmp_path: Path, way: str, size: int, workers: int
    ) -> None:
        narrow = {"id": "uint8", "name": "string"}
        paths = save_many(tmp_path, [100, 100, 100], [way])
        ds = rk.open(paths, schema=narrow)
        seen: list[int] = []

        with pytest.raises(rk.SchemaError) as caught:
            seen.extend(number for batch in ds.batch(size, workers=workers) for number in batch["id"].tolist())

        assert (caught.value.path, caught.value.record, caught.value.field) == (str(paths[2]), 56, "id")
        assert seen == list(range(256 // size * size))

    @pytest.mark.parametrize("workers", [1, 3])
    @pytest.mark.parametrize("way", WAYS)
    def test_what_parse_raises_arrives_with_file_and_record(self, tmp_path: Path, way: str, workers: int) -> None:
        paths = save_many(tmp_path, [100, 100], [way])
        bad = payloads(170, 171)[0]
        ds = rk.open(paths, parse=lambda payload: 1 // int(payload != bad))

        with pytest.raises(ZeroDivisionError) as caught:
            list(ds.batch(7, workers=workers))

        assert caught.value.__notes__ == [
            f"{paths[1]}: record 70: parse= failed on its payload of {len(bad)} bytes",
        ]

    @pytest.mark.parametrize("workers", [1, 3])
    def test_a_checksum_that_does_not_match_is_raised_behind_the_records_before_it(
        self, tmp_path: Path, workers: int
    ) -> None:
        paths = save_many(tmp_path, [100, 100, 100])
        at = offset_of(paths[1], 50)
        flip(paths[1], at + 12)
        seen: list[int] = []

        with pytest.raises(rk.CorruptRecordError) as caught:
            seen.extend(map(len, rk.open(paths, schema=SCHEMA).batch(10, workers=workers)))

        assert (caught.value.path, caught.value.record, caught.value.offset) == (str(paths[1]), 50, at)
        assert caught.value.kind == "bad_payload_crc"
        assert seen == [10] * 15

    @pytest.mark.parametrize("workers", [1, 3])
    def test_a_damaged_gzip_member_is_raised_behind_the_records_before_it(self, tmp_path: Path, workers: int) -> None:
        (path,) = save_many(tmp_path, [70], ["ours"])
        members = rk.open(path).shards[0]._members
        assert members is not None
        flip(path, members[5].offset + members[5].file_bytes - 6)

        batches = rk.open(path, schema=SCHEMA).batch(5, workers=workers)
        seen: list[int] = []

        with pytest.raises(rk.CorruptRecordError) as caught:
            seen.extend(number for batch in batches for number in batch["id"].tolist())

        assert (caught.value.record, caught.value.kind) == (35, "gzip_damaged")
        assert seen == list(range(35))

    @pytest.mark.usefixtures("_many_switches")
    @pytest.mark.parametrize("way", ["plain", "ours"])
    @pytest.mark.parametrize("bad", [8, 9])
    def test_damage_at_the_end_of_a_file_is_raised_though_other_threads_have_gone_on_to_the_next(
        self, tmp_path: Path, way: str, bad: int
    ) -> None:
        frames = [records.pack(payload) for payload in payloads(0, 10)]
        frames[bad] = frames[bad][:-1] + bytes([frames[bad][-1] ^ 1])
        first = tmp_path / "bad.tfrecord"
        first.write_bytes(stored(frames, way, members_of=10))
        paths = [first, *save_many(tmp_path, [10] * 40, [way])]
        ds = rk.open(paths, raw=True)

        for _ in range(20):
            with pytest.raises(rk.CorruptRecordError) as caught:
                list(ds.batch(2, workers=4))

            assert (caught.value.path, caught.value.record) == (str(first), bad)

    def test_of_several_damaged_files_the_first_is_named(self, tmp_path: Path) -> None:
        paths = save_many(tmp_path, [10] * 8, ["ours"])
        for path in paths[3:]:
            flip(path, path.stat().st_size - 6)

        for _ in range(20):
            with pytest.raises(rk.CorruptRecordError) as caught:
                list(rk.open(paths, raw=True).batch(2, workers=4))

            assert (caught.value.path, caught.value.record) == (str(paths[3]), 7)

    @pytest.mark.parametrize("workers", [1, 3])
    @pytest.mark.parametrize("claimed", [2, 4])
    def test_a_member_that_miscounts_its_records_is_an_error(self, tmp_path: Path, workers: int, claimed: int) -> None:
        frames = [records.pack(payload) for payload in payloads(0, 9)]
        path = tmp_path / "a.tfrecord"
        path.write_bytes(
            compress_member(frames[:3], 3, 1)
            + compress_member(frames[3:6], claimed, 1)
            + compress_member(frames[6:], 3, 1)
        )

        with pytest.raises(rk.CorruptRecordError, match="its header says"):
            list(rk.open(path, schema=SCHEMA).batch(2, workers=workers))
