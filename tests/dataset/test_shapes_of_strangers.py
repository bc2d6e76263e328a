"""A few bytes in a record can claim a shape of any number of empty rows: no reader makes room for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import records
from recordkit.cli import main
from tests import wire

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = (2**32, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    payload = wire.example(wire.entry("x", wire.floats()), wire.entry("x/shape", wire.ints(*SHAPE)))
    (tmp_path / "a.tfrecord").write_bytes(records.pack(payload) * 3)
    return tmp_path / "a.tfrecord"


READERS: dict[str, Any] = {
    "one": lambda ds: [ds[0]["x"].shape],
    "rows": lambda ds: [row["x"].shape for row in ds],
    "batches": lambda ds: [row.shape for batch in ds.batch(2) for row in batch["x"]],
    "some": lambda ds: [row.shape for row in ds[[2, 0]]["x"]],
    "shuffled": lambda ds: [row.shape for batch in ds.shuffle(seed=1).batch(2) for row in batch["x"]],
}


@pytest.mark.parametrize("name", READERS)
def test_the_rows_keep_their_shape(name: str, path: Path, room_for: Any) -> None:
    with room_for(1 << 30):
        assert set(READERS[name](rk.open(path, schema={"x": "float32[?,?]"}))) == {SHAPE}


@pytest.mark.parametrize("command", ["head", "info", "stats", "cat", "verify"])
def test_commands_show_or_refuse_them(command: str, path: Path, room_for: Any, capsys: Any) -> None:
    with room_for(1 << 30):
        status = main([command, str(path)])

    assert "MemoryError" not in "".join(capsys.readouterr())
    assert (status == 2) == (command == "cat")
