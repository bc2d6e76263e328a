"""A dataset that is changed in every way there is, beside a model of it: a plain list of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import recordkit as rk
from tests.dataset.bases import plain_rows, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, Any]

_VALUES: Final[dict[str, Callable[[int], Any]]] = {
    "int64": lambda seed: seed % 100,
    "float32": lambda seed: seed % 100 / 4,
    "string": lambda seed: f"text {seed}",
    "string?": lambda seed: None if seed % 3 == 0 else f"maybe {seed}",
    "int64[?]": lambda seed: list(range(seed % 4)),
    "float32[2]": lambda seed: [seed / 2, 0.5],
}
KINDS: Final = tuple(_VALUES)
START: Final = {"id": "int64", "name": "string", "note": "string?"}


class Changed:
    """A dataset and what it has to hold.

    Args:
        root: A folder for it.
        lone: Whether it is one file.
        compression: Of the files.
    """

    def __init__(self, root: Path, *, lone: bool, compression: Any = None) -> None:
        self.root = root
        self.lone = lone
        self.compression = compression
        self.path = root / ("one.tfrecord" if lone else "base")
        self.kinds: dict[str, str] = {}
        self.rows: list[Row] = []
        self._seed = 0
        self.write(3)

    def _made(self, kinds: dict[str, str]) -> Row:
        self._seed += 1
        return {name: self._seed if name == "id" else _VALUES[kind](self._seed) for name, kind in kinds.items()}

    def _set(self, kinds: dict[str, str], rows: list[Row]) -> None:
        self.kinds, self.rows = kinds, rows

    def names(self) -> list[str]:
        """The fields that are not what records are told from each other by."""
        return [name for name in self.kinds if name != "id"]

    # --- What can be done to it. A number says how.

    def write(self, number: int) -> None:
        """Write others over it."""
        rows = [self._made(START) for _ in range(number % 4)]
        rk.write(self.path, rows, START, compression=self.compression, overwrite=True, sync=False)
        self._set(dict(START), rows)

    def append(self, number: int) -> None:
        """Append rows that hold all that is seen, but for what may be missing."""
        rows = [self._made(self.kinds) for _ in range(1 + number % 3)]
        with rk.append(self.path, compression=None if self.lone else self.compression, sync=False) as writer:
            for row in rows:
                writer.write({name: value for name, value in row.items() if value is not None})
        self.rows += rows

    def append_nothing(self, number: int) -> None:
        """Append no rows."""
        with rk.append(self.path, sync=False):
            pass

    def add(self, number: int) -> None:
        """Add a field, or replace the one of this name."""
        name, kind = ("x", "y", "name")[number % 3], KINDS[number % len(KINDS)]
        self._seed += 1
        values = [_VALUES[kind](self._seed + at) for at in range(len(self.rows))]
        rk.add_fields(self.path, {name: (kind, values)}, replace=True, sync=False)
        self._with(name, kind, values)

    def compute(self, number: int) -> None:
        """Add a field that is computed."""
        source = rk.Computed("int64", lambda row: row["id"] * 2, reads=["id"])
        rk.add_fields(self.path, {"twice": source}, replace=True, sync=False)
        self._with("twice", "int64", [row["id"] * 2 for row in self.rows])

    def _with(self, name: str, kind: str, values: list[Any]) -> None:
        self.kinds = {of: each for of, each in self.kinds.items() if of != name} | {name: kind}
        for row, value in zip(self.rows, values, strict=True):
            row.pop(name, None)
            row[name] = value

    def drop(self, number: int) -> None:
        """Drop one or two fields."""
        names = self.names()
        gone = {names[number % len(names)], names[number // 2 % len(names)]} if names else set()
        if gone:
            rk.drop_fields(self.path, sorted(gone), sync=False)
            self._without(gone)

    def _without(self, gone: set[str]) -> None:
        self.kinds = {name: kind for name, kind in self.kinds.items() if name not in gone}
        for row in self.rows:
            for name in gone:
                del row[name]

    def cast(self, number: int) -> None:
        """Give a field of numbers another type, which a record stores in another way."""
        kind = ("float32", "int64")[number % 2]
        for name in self.names():
            if self.kinds[name] in ("int64", "float32") and self.kinds[name] != kind:
                if kind == "int64" and any(row[name] != int(row[name]) for row in self.rows):
                    continue
                rk.cast_fields(self.path, {name: kind}, sync=False)
                self._with(name, kind, [(int if kind == "int64" else float)(row[name]) for row in self.rows])
                return

    def delete(self, number: int) -> None:
        """Delete records."""
        divisor, rest = 2 + number % 3, number % 2
        done = rk.delete(self.path, where=lambda row: row["id"] % divisor == rest, reads=["id"], sync=False)
        left = [row for row in self.rows if row["id"] % divisor != rest]
        assert done.records == len(self.rows) - len(left)
        self.rows = left

    def rename(self, number: int) -> None:
        """Write it anew, in its own place, with a field under another name."""
        names = self.names()
        if not names:
            return
        old, new = names[number % len(names)], ("x", "z")[number % 2]
        if new in self.kinds:
            return
        rk.rename_fields(self.path, {old: new}, out=self.path, overwrite=True, sync=False)
        self.kinds = {new if name == old else name: kind for name, kind in self.kinds.items()}
        self.rows = [{new if name == old else name: value for name, value in row.items()} for row in self.rows]

    def bake(self, number: int) -> None:
        """Write it anew, in its own place."""
        rk.bake(self.path, self.path, overwrite=True, sync=False)

    def repair(self, number: int) -> None:
        """Write over it what is sound in a file; of a folder, bake it."""
        if not self.lone:
            self.bake(number)
            return
        other = self.root / "other.tfrecord"
        rows = [self._made(START) for _ in range(3)]
        rk.write(other, rows, START, compression=self.compression, overwrite=True, sync=False)
        data = bytearray(other.read_bytes())
        if self.compression is None:
            data[14] ^= 1  # in the first payload
            del rows[0]
        other.write_bytes(data)
        rk.repair(other, self.path, overwrite=True)
        self._set(dict(START), rows)

    # --- What must be seen

    def check(self) -> None:
        """Raise if anything is seen otherwise than the model has it."""
        ds, rows = rk.open(self.path), self.rows
        assert len(ds) == len(rows)
        assert read(self.path) == rows
        assert rk.verify(self.path, check="examples").ok
        assert ds.schema is not None
        if not rows:
            return
        assert set(ds.schema.names) == set(self.kinds)
        numbers = [(7 * at + 3) % len(rows) for at in range(len(rows))]
        assert plain_rows(ds[numbers].rows()) == [rows[number] for number in numbers]
        assert plain_rows([ds[-1], ds[0]]) == [rows[-1], rows[0]]
        assert plain_rows(row for batch in ds.batch(3) for row in batch.rows()) == rows
        assert plain_rows(rk.open(self.path, overlays=False).take(0)) == []


WAYS: Final = (
    "write",
    "append",
    "append_nothing",
    "add",
    "compute",
    "drop",
    "cast",
    "delete",
    "rename",
    "bake",
    "repair",
)
