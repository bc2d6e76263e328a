"""A few bytes in a record can claim a shape of any number of empty rows: no reader makes room for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import records
from recordkit.cli import main
from recordkit.columns import BytesColumn
from tests import wire

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = (2**32, 0)


@pytest.fixture(params=[wire.floats(), wire.texts()], ids=["numbers", "texts"])
def path(request: Any, tmp_path: Path) -> Path:
    payload = wire.example(wire.entry("x", request.param), wire.entry("x/shape", wire.ints(*SHAPE)))
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
        assert set(READERS[name](rk.open(path))) == {SHAPE}


def test_text_of_such_a_shape_has_rows_and_no_lists(path: Path, room_for: Any) -> None:
    with room_for(1 << 30):
        value = rk.open(path)[1]["x"]

        assert value[SHAPE[0] - 1].shape == (0,)
        if isinstance(value, BytesColumn):
            with pytest.raises(rk.SchemaError, match="so many empty rows have no offsets or lists"):
                value.to_list()


@pytest.mark.parametrize("command", ["head", "info", "stats", "cat", "verify"])
def test_commands_show_or_refuse_them(command: str, path: Path, room_for: Any, capsys: Any) -> None:
    with room_for(1 << 30):
        status = main([command, str(path)])

    assert "MemoryError" not in "".join(capsys.readouterr())
    assert (status == 2) == (command == "cat")
