"""One numbering: whatever tells of damage names the same record at the same byte."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

import recordkit as rk
from recordkit import records
from recordkit.codecs._gzip import compress_member
from recordkit.errors import CorruptRecordError
from recordkit.filesystems import LocalFile
from recordkit.storage.read import Damage, walk
from recordkit.viewer._dataset_view import DatasetView
from tests.storage.damages import COUNT, damaged, flip, payloads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recordkit.codecs._gzip import Compression

_Place = tuple[int | None, int | None]


def _met(read: Callable[[], object]) -> list[_Place]:
    """The place that an error names, if there is one."""
    try:
        read()
    except CorruptRecordError as error:
        return [(error.record, error.offset)]
    except IndexError:
        pass
    return []


def _listed(damages: tuple[Damage, ...]) -> list[_Place]:
    return sorted((damage.record, damage.offset) for damage in damages)


def _numbered(path: Path, compression: Compression) -> dict[int, bytes]:
    """The sound records by their numbers."""
    chunks = [item for item in walk(LocalFile(path), compression) if not isinstance(item, Damage)]
    return {chunk.first_record + at: payload for chunk in chunks for at, payload in enumerate(chunk)}


def _all_of(dataset: rk.Dataset) -> list[bytes]:
    return list(dataset.records())


def _skipped(path: Path) -> list[_Place]:
    dataset = rk.open(path, parse=bytes, on_error="skip")
    _all_of(dataset)
    return _listed(dataset.damage)


class TestRandomDamage:
    def test_every_reader_of_a_plain_file_names_what_verify_names(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        for seed in range(COUNT // 3):
            rng = random.Random(seed)
            path.write_bytes(damaged(b"".join(map(records.pack, payloads(rng, 12))), rng))

            verified = _listed(rk.verify(path).damage)

            repaired = rk.repair(path, tmp_path / "b.tfrecord", overwrite=True)
            dataset = rk.open(path, parse=bytes)
            assert _listed((*repaired.lost, *repaired.notes)) == _skipped(path) == verified, f"seed {seed}"
            assert _met(partial(_all_of, dataset)) == verified[:1], f"seed {seed}"
            assert set(_met(dataset.__len__)) <= set(verified), f"seed {seed}"
            for number in range(14):
                assert set(_met(partial(dataset.__getitem__, number))) <= set(verified), f"seed {seed}"

    @pytest.mark.parametrize("compression", [None, "gzip"])
    def test_a_number_is_the_same_record_for_every_reader(self, compression: Compression, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        for seed in range(COUNT // 6):
            rng = random.Random(seed)
            framed = [records.pack(payload) for payload in payloads(rng, 12)]
            data = b"".join(framed)
            if compression == "gzip":
                members = [compress_member(framed[at : at + 4], records=4, level=6) for at in range(0, 12, 4)]
                data = b"".join(members)
            path.write_bytes(damaged(data, rng) or data)
            dataset, source = rk.open(path, parse=bytes), DatasetView(path)
            source.prepare(lambda done, total, unit: None)

            for number, payload in _numbered(path, compression).items():
                with suppress(CorruptRecordError):  # behind broken framing, and in a damaged gzip member
                    assert dataset[number] == payload, f"seed {seed}"
                shard, inside = source.place(number)
                if shard.walked:
                    assert bytes(shard.one(inside).chunk[0]) == payload, f"seed {seed}"


class TestWords:
    def test_only_checked_records_are_called_sound(self, tmp_path: Path) -> None:
        data = b"".join(records.pack(b"payload-%03d" % number) for number in range(200))
        for number in (3, 50, 90, 120):
            data = flip(data, 27 * number + 15)
        (path := tmp_path / "a.tfrecord").write_bytes(data[:-5])
        dataset = rk.open(path, parse=bytes)

        for read in (dataset.__len__, lambda: dataset[0]):
            with pytest.raises(CorruptRecordError) as caught:
                read()

            assert (caught.value.record, caught.value.offset) == (199, 27 * 199)
            assert "The 199 records before it were found by their headers; their payloads were not checked" in str(
                caught.value
            )
        with pytest.raises(CorruptRecordError, match=r"record 3 at byte 81: (.|\n)*The 3 records before it are sound"):
            list(dataset.records())
        assert [damage.record for damage in rk.verify(path).damage] == [3, 50, 90, 120, 199]

    def test_reading_from_the_middle_does_not_vouch_for_what_it_passed_over(self, tmp_path: Path) -> None:
        data = b"".join(records.pack(b"payload-%03d" % number) for number in range(10))
        (path := tmp_path / "a.tfrecord").write_bytes(flip(flip(data, 27 * 2 + 15), 27 * 7 + 15))

        with pytest.raises(CorruptRecordError, match="record 7 at byte 189") as caught:
            list(rk.open(path, parse=bytes).skip(5).records())

        assert "payloads were not checked" in str(caught.value)

    def test_damaged_member_is_named_by_the_records_it_holds(self, tmp_path: Path) -> None:
        members = [compress_member([records.pack(bytes(50))] * 4, records=4, level=0) for _ in range(2)]
        (path := tmp_path / "a.tfrecord").write_bytes(members[0] + flip(members[1], 100))

        with pytest.raises(CorruptRecordError, match="which holds records 4 to 7: the gzip data") as caught:
            rk.open(path, parse=bytes)[6]

        assert caught.value.record == 4
