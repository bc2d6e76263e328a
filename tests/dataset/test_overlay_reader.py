"""Ahead: pieces of a layer's file, against slices of the whole column."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit.dataset import _overlaid
from recordkit.dataset._overlaid import OverlaidDecoder
from recordkit.errors import CorruptRecordError
from tests.dataset.bases import plain, plain_rows
from tests.dataset.files import flip, offset_of, save_many

RECORDS = 50
FIELDS: dict[str, Any] = {
    "int64": np.arange(RECORDS) * 10,
    "float32[2]": np.arange(2 * RECORDS, dtype=np.float32).reshape(RECORDS, 2),
    "string": [f"text {number}" for number in range(RECORDS)],
    "int64[?]": [[number] * (number % 4) for number in range(RECORDS)],
    "int64?": [None if number % 3 == 0 else number for number in range(RECORDS)],
}


def beside(folder: str | Path, *, size: int, patch: pytest.MonkeyPatch) -> _overlaid.OverlayReader:
    """The layer of a dataset with one file, read in pieces of so many records."""
    patch.setattr(_overlaid, "_PIECE_RECORDS", size)
    ds = rk.open(folder)
    decoder = ds.sequence.decoder(None)
    assert isinstance(decoder, OverlaidDecoder)
    ((layer, columns),) = decoder.added
    return ds.sequence.stack.reader(layer, columns, ds.shards[0])


ranges = st.tuples(st.integers(0, RECORDS), st.integers(0, RECORDS)).map(lambda ends: (min(ends), max(ends)))


@settings(max_examples=25)
@given(st.sampled_from(list(FIELDS)), st.integers(1, 64), st.lists(ranges, min_size=1, max_size=12))
def test_any_records_in_any_order_are_those_of_the_file(kind: str, size: int, asked: list[tuple[int, int]]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        save_many(Path(folder), [RECORDS])
        rk.add_fields(folder, {"x": (kind, FIELDS[kind])}, sync=False)
        ahead = beside(folder, size=size, patch=patch)

        found = [[row["x"] for row in plain_rows(ahead.batch(start, stop).rows())] for start, stop in asked]

        assert found == [plain(FIELDS[kind])[start:stop] for start, stop in asked]


def test_threads_that_read_at_once_get_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_many(tmp_path, [RECORDS])
    rk.add_fields(tmp_path, {"x": FIELDS["int64"]}, sync=False)
    ahead = beside(tmp_path, size=8, patch=monkeypatch)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda start: ahead.batch(start, start + 3)["x"].tolist(), [*range(47)] * 20))

    assert found == [[10 * start, 10 * start + 10, 10 * start + 20] for start in range(47)] * 20


def test_what_is_done_to_a_batch_is_not_seen_in_the_next(tmp_path: Path) -> None:
    save_many(tmp_path, [RECORDS])
    rk.add_fields(tmp_path, {"x": FIELDS["int64"]}, sync=False)
    ds = rk.open(tmp_path)

    for _ in range(2):
        for batch in ds.batch(10):
            assert batch["x"].tolist() == (batch["id"] * 10).tolist()
            batch["x"][:] = -1


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_damage_is_told_by_the_batch_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    save_many(tmp_path, [RECORDS])
    rk.add_fields(tmp_path, {"x": (kind, FIELDS[kind])}, sync=False)
    (layer,) = (tmp_path / "_recordkit" / "overlays" / "0001-x").glob("*.tfrecord")
    flip(layer, offset_of(layer, 23) + 20)
    ahead = beside(tmp_path, size=32, patch=monkeypatch)

    sound = [ahead.batch(start, start + 10)["x"] for start in (0, 10, 30, 40)]
    with pytest.raises(CorruptRecordError, match=r"x-00000-of-00001.tfrecord: record 23 "):
        ahead.batch(20, 30)

    assert [len(column) for column in sound] == [10] * 4
