"""Changes that other processes make at the same moment, and what each of them does to a list of rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import recordkit as rk

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

ROOT = Path(__file__).parents[2]
WAYS: Final = ("append", "append", "add", "add_other", "cast", "delete", "drop", "bake", "overwrite", "repair")

UNEXPECTED: Final = "not an error of recordkit's:"

Row = dict[str, Any]


def change(way: str, path: str, number: int) -> int:
    """Make one change, and return how many records it says that it was about."""
    if way == "append":
        with rk.append(path, sync=False) as writer:
            writer.write({"id": number, "a": number})
        return writer.close().records
    if way in ("add", "add_other"):
        source = rk.Computed("int64", _Times(number), reads=["id"])
        return rk.add_fields(path, {_added(way): source}, sync=False, workers=1).records
    if way == "cast":
        return rk.cast_fields(path, {"a": "float32"}, sync=False, workers=1).records
    if way == "delete":
        return rk.delete(path, where=lambda row: row["id"] % 7 == number % 7, reads=["id"], sync=False).records
    if way == "drop":
        return rk.drop_fields(path, "a", sync=False).records
    if way == "bake":
        return rk.bake(path, path, overwrite=True, sync=False, workers=1).records
    if way == "overwrite":
        return rk.write(path, _written(number), overwrite=True, sync=False).records
    return rk.repair(Path(path).with_name("sound.tfrecord"), path, overwrite=True).recovered


def changed(way: str, rows: list[Row], number: int) -> tuple[list[Row], int] | None:
    """Return what the change makes of rows, and what it says; None if it is refused for them."""
    names = set(rows[0]) if rows else set()
    if way == "append":
        kind = float if rows and isinstance(rows[0].get("a"), float) else int
        return ([*rows, {"id": number, "a": kind(number)}], 1) if names == {"id", "a"} else None
    if way in ("add", "add_other"):
        name = _added(way)
        return None if name in names else ([row | {name: row["id"] * number} for row in rows], len(rows))
    if way == "cast":
        return ([row | {"a": float(row["a"])} for row in rows], len(rows)) if "a" in names else None
    if way == "delete":
        left = [row for row in rows if row["id"] % 7 != number % 7]
        return left, len(rows) - len(left)
    if way == "drop":
        return ([{"id": row["id"]} | without_a(row) for row in rows], len(rows)) if "a" in names else None
    if way == "bake":
        return rows, len(rows)
    rows = _written(number) if way == "overwrite" else sound()
    return rows, len(rows)


def without_a(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "a"}


def sound() -> list[Row]:
    """The rows of the file that is repaired."""
    return [{"id": 7 * at + 3, "a": at} for at in range(1, 4)]


def _written(number: int) -> list[Row]:
    return [{"id": number + at, "a": at} for at in range(5)]


def _added(way: str) -> str:
    return "b" if way == "add" else "c"


class _Times:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, row: Row) -> int:
        return int(row["id"]) * self.number


class Hands:
    """Processes that each make one change when they are told to."""

    def __init__(self, count: int) -> None:
        command = [sys.executable, "-c", "from tests.tools.at_once import serve; serve()"]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            for _ in range(count)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(60)
            process.stdout.close()

    def make(self, path: Path, ways: list[tuple[str, int]]) -> list[int | str]:
        """Let each make its change at once; return what each has returned, or said when it raised."""
        used = self._processes[: len(ways)]
        for process, (way, number) in zip(used, ways, strict=True):
            self._say(process, json.dumps([way, str(path), number]))
            assert self._answer(process) == "ready"
        for process in used:
            self._say(process, "go")
        return [self._answer(process) for process in used]

    def _say(self, process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def _answer(self, process: subprocess.Popen[str]) -> Any:
        assert process.stdout is not None
        return json.loads(process.stdout.readline())


def serve() -> None:
    """Make changes as standard input says."""
    for line in sys.stdin:
        way, path, number = json.loads(line)
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
        try:
            answer: int | str = change(way, path, number)
        except rk.RecordKitError as error:
            answer = f"{type(error).__name__}: {error}"
        except Exception:
            answer = f"{UNEXPECTED} {traceback.format_exc()}"
        print(json.dumps(answer), flush=True)
