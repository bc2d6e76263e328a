"""Story: what `recordkit demo` does, printed step by step, with a summary at the end."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import recordkit as rk
from recordkit import images
from recordkit.errors import MissingExtraError
from recordkit.wording import format_size

from .._commands import SUMMARIES
from ..terminal.bar import working
from ..terminal.screen import wrapped
from . import _shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from recordkit.pipeline import Pipeline
    from recordkit.storage.write import Written

    from ..terminal.screen import Screen

__all__ = ["Story", "write"]

_SHARDS: Final = 6
_SIDE: Final = 16  # pixels of the pictures for the model
_BATCH: Final = 50
_SEED: Final = 7
_LOOKS: Final = {"view": "in a browser", "info": "in the terminal"}


# --- The program that is killed


def write(path: str, count: int, pause: int | None = None, started: Callable[[int], object] = bool) -> Written:
    """Write pictures to a dataset, or resume writing.

    Args:
        path: The dataset.
        count: The number of pictures.
        pause: After this picture, print a line and wait to be killed.
        started: Called with the number of pictures already written.
    """
    with rk.create(path, schema(), records_per_shard=-(-count // _SHARDS), resume=True) as writer:
        started(writer.committed)
        for number in range(writer.committed, count):
            writer.write(_shapes.row(number))
            if number == pause:
                print("written", flush=True)
                sys.stdin.read()
    return writer.close()


def schema() -> rk.Schema:
    """Return the schema: JPEG if it can be encoded, otherwise pixels."""
    return rk.Schema({"image": "jpeg" if has_jpeg() else "uint8[?,?,3]", **_shapes.FIELDS})


def has_jpeg() -> bool:
    """Tell whether JPEGs can be encoded."""
    try:
        images.encode(np.zeros((8, 8, 3), np.uint8), "jpeg")
    except MissingExtraError:
        return False
    return True


class Story:
    """The steps of the demo, and the rows of its summary."""

    def __init__(self, folder: Path, count: int, screen: Screen) -> None:
        self._train, self._folder, self._count, self._screen = folder / "train", folder, count, screen
        folders = "|".join(re.escape(str(each)) for each in (folder.resolve(), folder))
        self._inside = re.compile(rf"(?<![\w./-])(?:{folders})/")  # paths are printed relative to the folder
        self._summary: list[list[str]] = []
        self._chapter = 0
        self._began = self._since = time.perf_counter()

    def tell(self) -> None:
        """Run all steps."""
        for chapter in (self._write, self._verify, self._repair, self._add, self._train_on):
            chapter()
        self._end()

    # --- Printing

    def _title(self, text: str) -> None:
        gap = "\n" * (self._chapter > 0)
        self._chapter += 1
        self._screen.print(f"{gap}{self._screen.style(f'{self._chapter}. {text}', 'bold')}")
        self._since = time.perf_counter()

    def _say(self, text: object, *styles: str) -> None:
        for line in self._inside.sub("", str(text)).splitlines():
            room = "  " + " " * (len(line) - len(line.lstrip()))
            for each in wrapped(line.lstrip(), self._screen.width and self._screen.width - len(room), "  "):
                self._screen.print(room + (self._screen.style(each, *styles) if styles else each))
        self._screen.out.flush()

    def _done(self, what: str, result: str, seconds: float | None = None) -> None:
        took = time.perf_counter() - self._since if seconds is None else seconds
        self._summary.append([what, result, f"{took:.2f} s"])

    # --- The steps

    def _write(self) -> None:
        """Write the pictures, with a kill in between."""
        self._title(f"{self._count:,} pictures are written in shards, and the writer is killed halfway")
        if not has_jpeg():
            self._say("No JPEG library is installed, so pictures are stored as pixels: pip install 'recordkit[images]'")
        self._say(schema())
        pause = self._count * 7 // 12
        self._kill_at(pause)
        there = "yes" if self._train.exists() else "no"
        self._say(f"kill -9 after picture {pause:,}. Is there a partial dataset under the name train? {there}", "cyan")
        again = "The same program resumes after picture {:,}, the last one in a complete shard:"
        with working(self._screen, rows=self._count):
            written = write(str(self._train), self._count, started=lambda committed: self._say(again.format(committed)))
        self._say(written)
        self._done("written, killed, and resumed", f"{format_size(written.bytes)} in {_SHARDS} shards")

    def _kill_at(self, pause: int) -> None:
        code = f"from recordkit.cli.commands._story import write; write({str(self._train)!r}, {self._count}, {pause})"
        with subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C goes to this program, which kills the other one anyway
        ) as child:
            try:
                assert child.stdout is not None
                child.stdout.readline()
            finally:
                child.send_signal(signal.SIGKILL)

    def _verify(self) -> None:
        """Check every byte."""
        self._title("Every byte is checked: two checksums per record, the manifest, the indexes")
        with working(self._screen):
            report = rk.verify(self._train)
        self._say(report, "green" if report.ok else "red")
        self._done("verified", f"{self._count:,} records sound")

    def _repair(self) -> None:
        """Damage a copy, and recover the intact records."""
        self._title("A copy is damaged: one bit flips in a shard, and another shard is truncated")
        damaged = self._folder / "damaged"
        shutil.copytree(self._train, damaged)
        first, second = sorted(damaged.glob("*.tfrecord"))[:2]
        data = bytearray(first.read_bytes())
        data[len(data) // 2] ^= 1
        first.write_bytes(data)
        second.write_bytes(second.read_bytes()[:-1000])
        self._since = time.perf_counter()
        self._say(rk.verify(damaged))
        rescued = self._folder / "rescued"
        rescued.mkdir()
        reports = [rk.repair(path, rescued / path.name) for path in (first, second)]
        kept = sum(report.recovered for report in reports)
        all_sound = all(rk.verify(report.dst).ok for report in reports)
        for report in reports:
            self._say(f"{report.src}: {report.recovered:,} records recovered, {format_size(report.lost_bytes)} lost")
        self._say(f"Are the recovered files sound? {'yes' if all_sound else 'no'}", "green")
        self._done("damage found and repaired", f"{kept:,} of {2 * self._count // _SHARDS:,} records recovered")

    def _add(self) -> None:
        """Add a field as an overlay, then bake it into new files."""
        self._title("A field is added to the dataset")
        pixels = rk.Computed("int64", _pixels, reads=["image"])
        before = {path: path.stat().st_mtime_ns for path in self._train.glob("*.tfrecord")}
        rk.add_fields(self._train, {"pixels": pixels})
        took = time.perf_counter() - self._since
        same = all(path.stat().st_mtime_ns == time_ for path, time_ in before.items())
        value = rk.open(self._train)[3]["pixels"]
        self._say(f"As an overlay, in {took:.2f} s: record 3 now has pixels = {value:,}.")
        self._say(f"Are the files unchanged? {'yes' if same else 'no'}", "green")
        self._done("field added as an overlay", "no file rewritten", took)
        self._since = time.perf_counter()
        rk.bake(self._train, out=self._folder / "baked")
        took = time.perf_counter() - self._since
        self._say(f"Baked into new files, in {took:.2f} s: baked, which TensorFlow can read.")
        self._done("field baked into new files", f"{len(rk.open(self._folder / 'baked')):,} records", took)

    def _train_on(self) -> None:
        """Train, stop in the middle, and resume from a small state."""
        self._title("A model is trained on shuffled batches, stopped, and resumed")
        model, pipe = _Model(), self._pipe()
        it = iter(pipe)
        stop = len(pipe) // 3
        seen = [model.learn(next(it)) for _ in range(stop)]
        state = json.dumps(it.state_dict())
        it.close()
        self._say(f"{stop} batches of {_BATCH}: loss {seen[0]:.2f} to {seen[-1]:.2f}. Stopped.")
        self._say(f"The state, as JSON, has {len(state)} bytes.")
        rest = [model.learn(batch) for batch in self._pipe().resume(json.loads(state))]
        self._say(f"Another pipeline resumes from it. {len(rest)} more batches: loss {rest[-1]:.2f}.")
        once = sorted(model.seen) == list(range(self._count))
        self._say(f"Was every record seen exactly once? {'yes' if once else 'no'}", "green" if once else "red")
        seconds = time.perf_counter() - self._since
        self._done("trained, stopped and resumed", f"{self._count / seconds:,.0f} pictures per second", seconds)

    def _pipe(self) -> Pipeline:
        rows = rk.open(self._train).select("id", "image", "label").shuffle(_SEED)
        if has_jpeg():
            rows = rows.decode_images("image", (_SIDE, _SIDE), dtype="float32", scale=1 / 255, method="area")
        else:
            rows = rows.map(_shrunk)
        return rows.batch(_BATCH).prefetch()

    # --- The end

    def _end(self) -> None:
        """Print the summary, and how to inspect the result."""
        screen, total = self._screen, time.perf_counter() - self._began
        screen.print(f"\n{screen.style('Summary', 'bold')}")
        rows = [*self._summary, ["total", "", f"{total:.2f} s"]]
        screen.table(("step", "result", "time"), rows, right=("time",), indent="  ")
        screen.print(f"\n{screen.style('Next', 'bold')}")
        command = _command()
        looks = [[f"{command} {name} {self._train}", where] for name, where in _LOOKS.items() if name in SUMMARIES]
        for words, where in [*looks, [f"rm -r {self._folder}", "to clean up"]]:
            screen.print(f"  {screen.style(words, 'cyan')}  # {where}")


def _command() -> str:
    """Return how the user runs `recordkit`."""
    beside = Path(sys.executable).parent / "recordkit"
    if shutil.which("recordkit") or not beside.exists():
        return "recordkit"
    here = Path.cwd()
    return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)


# --- Pictures


def _pixels(row: Any) -> int:
    """Return the number of pixels of a picture; of a JPEG, from its header."""
    height, width = images.size(row["image"])[:2] if isinstance(row["image"], bytes) else row["image"].shape[:2]
    return int(height * width)


def _shrunk(row: Any) -> dict[str, Any]:
    pixels = images.resize(row["image"], (_SIDE, _SIDE), method="area")
    return {**row, "image": np.asarray(pixels, np.float32) / 255}


class _Model:
    """A linear classifier, trained by gradient descent."""

    def __init__(self) -> None:
        self._weights = np.zeros((_SIDE * _SIDE * 3 + 1, len(_shapes.NAMES)), np.float32)
        self.seen: list[int] = []

    def learn(self, batch: Any) -> float:
        """Take one training step, and return the loss before it."""
        self.seen += batch["id"].tolist()
        pixels, labels = batch["image"].reshape(len(batch["id"]), -1), np.asarray(batch["label"], np.intp)
        inputs = np.concatenate([pixels, np.ones((len(pixels), 1), np.float32)], axis=1)
        scores = inputs @ self._weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        right = np.arange(len(labels)), labels
        loss = float(-np.log(odds[right]).mean())
        odds[right] -= 1
        self._weights -= 0.05 * inputs.T @ odds / len(labels)
        return loss
