"""Indexes whose checksums hold and whose numbers lie are ignored with one warning, and never give other records."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit.storage.format import Fingerprint
from recordkit.storage.format._index import IndexBuilder
from recordkit.storage.read._record_index import index_path
from tests.dataset.bases import listing
from tests.storage.indexes import BLOCK, MEMBERS, RAW_BYTES, RECORDS, parts_of, sealed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNT = 2500


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index but the one beside the file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "a.tfrecord"
    rk.write(path, [{"id": number, "more": "x" * (number % 7)} for number in range(COUNT)])
    return path


def in_header(place: int, value: int) -> Callable[[Any, Any, Any], None]:
    def change(header: Any, table: Any, blocks: Any) -> None:
        header[place] = value

    return change


def in_table(name: str, number: int, value: int) -> Callable[[Any, Any, Any], None]:
    def change(header: Any, table: Any, blocks: Any) -> None:
        table[name][number] = value

    return change


def one_block_twice(header: Any, table: Any, blocks: Any) -> None:
    table[1] = table[0]


def blocks_exchanged(header: Any, table: Any, blocks: Any) -> None:
    table["start"][[0, 1]] = table["start"][[1, 0]]


def one_length_more(header: Any, table: Any, blocks: Any) -> None:
    blocks[5] += 1


LIES = {
    "no records a block": in_header(BLOCK, 0),
    "other blocks": in_header(BLOCK, 512),
    "2**40 records": in_header(RECORDS, 1 << 40),
    "2**64 records": in_header(RECORDS, (1 << 64) - 1),
    "one record fewer": in_header(RECORDS, COUNT - 1),
    "more bytes": in_header(RAW_BYTES, 1 << 60),
    "one byte more": lambda header, table, blocks: in_header(RAW_BYTES, header[RAW_BYTES] + 1)(header, table, blocks),
    "2**60 members": in_header(MEMBERS, 1 << 60),
    "a member": in_header(MEMBERS, 1),
    "width 3": in_table("width", 0, 3),
    "width 2**31": in_table("width", 1, 1 << 31),
    "width 0": in_table("width", 0, 0),
    "no least": in_table("least", 0, 0),
    "a least of 2**63": in_table("least", 1, 1 << 63),
    "another least": in_table("least", 1, 16),
    "a start that is no record's": in_table("start", 1, 77),
    "a start past the end": in_table("start", 2, 1 << 50),
    "the first start": in_table("start", 0, 31),
    "numbers from elsewhere": in_table("at", 1, 64),
    "numbers past the end": in_table("at", 1, 1 << 62),
    "one block twice": one_block_twice,
    "blocks exchanged": blocks_exchanged,
    "one length more": one_length_more,
}


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("way", ["manifest", "alone"])
@pytest.mark.parametrize("lie", LIES)
def test_is_ignored_with_one_warning(lie: str, way: str, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = index_path(path)
    header, table, blocks = parts_of(index.read_bytes())
    LIES[lie](header, table, blocks)
    index.write_bytes(sealed(header, table, bytes(blocks)))
    if way == "alone":
        (path.parent / "_recordkit" / "a.tfrecord.manifest.json").unlink()
    before = listing(path.parent / "_recordkit")

    dataset = rk.open(path)
    some = [2000, 0, 1500, 1023, 1024, COUNT - 1, 5, 6]
    found = [int(dataset[number]["id"]) for number in some]

    assert found == some
    assert len(dataset) == COUNT
    assert [int(row["id"]) for row in dataset[some].rows()] == some
    assert sorted(int(number) for batch in dataset.shuffle(1).batch(100) for number in batch["id"]) == list(
        range(COUNT)
    )
    assert [int(row["id"]) for row in dataset.skip(1300).take(3)] == [1300, 1301, 1302]
    (warning,) = warnings_of(caplog)
    assert warning.startswith(f"{path}: ignoring its index and building another: {index}: ")
    assert listing(path.parent / "_recordkit") == before
    report = rk.verify(path)
    assert not report.ok
    assert "a.tfrecord.rki" in str(report)


class TestOneThatCouldBeTrue:
    """Two lengths are made one and another is made two: all numbers between them are other records' numbers."""

    @pytest.fixture
    def lying(self, path: Path) -> Path:
        index = index_path(path)
        lengths = np.array([len(data) - 16 for data in frames(path)], np.uint64)
        merged = int(lengths[300] + lengths[301]) + 16
        first = int(lengths[900]) // 2
        told = [*lengths[:300], merged, *lengths[302:900], first, int(lengths[900]) - first - 16, *lengths[901:]]
        builder = IndexBuilder()
        builder.add(np.array(told, np.uint64))
        index.write_bytes(builder.to_bytes(Fingerprint.of(path)))
        return path

    def test_gives_all_records_in_order(self, lying: Path, caplog: pytest.LogCaptureFixture) -> None:
        dataset = rk.open(lying)

        assert [int(row["id"]) for row in dataset] == list(range(COUNT))
        assert [int(dataset[number]["id"]) for number in range(COUNT)] == list(range(COUNT))
        assert len(warnings_of(caplog)) == 1

    def test_is_found_by_the_end_of_any_epoch(self, lying: Path, caplog: pytest.LogCaptureFixture) -> None:
        for _ in rk.open(lying).shuffle(3).batch(50):
            pass

        (warning,) = warnings_of(caplog)
        assert "records read by number before may have been the wrong ones" in warning

    def test_is_found_by_verify(self, lying: Path) -> None:
        assert "its offsets do not match the records" in str(rk.verify(lying))


def frames(path: Path) -> list[bytes]:
    data = path.read_bytes()
    edges = [*rk.records.scan(data).tolist(), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]
