"""Measure: runs a task's cases in turns, and checks that all of them found what was drawn."""

from __future__ import annotations

import mmap
import os
import random
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import columns
import derived
import numpy as np
import pages
from cases import SIZE
from columns import Digest
from processes import CompetitorError, Process

if TYPE_CHECKING:
    from cases import Case, Task
    from workloads import Made

ROWS = 8192  # records that writers take at a time, where they take several
EXACT = 32  # pictures that are compared, pixel by pixel
ROOM = 0.8  # of the space that is free, this share may be written to
Ask = Callable[[str], Process]  # gives the process of a competitor, or raises


@dataclass
class Measured:
    """What came out of a case.

    Attributes:
        case: Which.
        records: How many it handled.
        seconds: For each variant, every repeat.
        cpu: As `seconds`, how long processors were busy with it; threads count each.
        best: The variant that counts.
        figures: What was measured besides, every repeat; of cases with one variant.
        check: "equal", or what was not; "" where there is nothing to compare.
        problem: Why there is no result; "" where there is.
    """

    case: Case
    records: int = 0
    seconds: list[list[float]] = field(default_factory=list)
    cpu: list[list[float]] = field(default_factory=list)
    best: int = 0
    figures: dict[str, list[float]] = field(default_factory=dict)
    check: str = ""
    problem: str = ""

    @property
    def repeats(self) -> list[float]:
        """The seconds of every repeat of the variant that counts."""
        return self.seconds[self.best]

    @property
    def median(self) -> float:
        """The seconds of the middle one."""
        return statistics.median(self.repeats)

    @property
    def busy(self) -> float:
        """The median of the seconds that processors were busy."""
        return statistics.median(self.cpu[self.best])

    @property
    def speed(self) -> float:
        """Records a second."""
        return self.records / self.median

    def middle(self, figure: str | None) -> float:
        """Return the median of a figure; of the speed, where it is None."""
        return self.speed if figure is None else statistics.median(self.figures[figure])

    def each(self, figure: str | None) -> list[float]:
        """Return a figure, or the speed, of every repeat."""
        return [self.records / seconds for seconds in self.repeats] if figure is None else self.figures[figure]


class Runner:
    """Runs the cases of one task.

    Args:
        task: Which.
        made: Its workload.
        process: Gives the process of a competitor by name.
        scale: By which prefixes are made shorter, as the workload is.
    """

    def __init__(self, task: Task, made: Made | None, process: Ask, scale: float) -> None:
        self._task, self._made, self._process, self._scale = task, made, process, scale
        self._output = made.folder / "written" / "data.tfrecord" if made and task.writes else None
        self._room = ROOM * shutil.disk_usage(made.folder).free if made else 0

    def run(self, repeats: int) -> list[Measured]:
        """Return what came out of each case, in the order of the plan."""
        try:
            return self._run(repeats)
        finally:
            self._remove_output()

    def _run(self, repeats: int) -> list[Measured]:
        results = [
            Measured(case, seconds=[[] for _ in case.variants], cpu=[[] for _ in case.variants])
            for case in self._task.cases
        ]
        for result in results:
            self._guarded(result, self._check)
        if self._made:
            cases = [(case, variant) for case in self._task.cases for variant in case.variants]
            pages.read_anew(self._request(case) | dict(variant) for case, variant in cases)
        order = random.Random(0)
        for repeat in range(repeats):
            # In another order each time: what one leaves behind (caches, memory to be had) is not always for the same.
            said = [self._guarded(result, self._time) for result in order.sample(results, len(results))]
            print(f"  {repeat + 1}/{repeats}: {', '.join(filter(None, said))}", flush=True)
        for result in results:
            if not result.problem:
                medians = [statistics.median(seconds) for seconds in result.seconds]
                result.best = medians.index(min(medians))
        for competitor in {result.case.competitor for result in results if not result.problem}:
            self._process(competitor).ask({"job": "forget"})
        return results

    def _remove_output(self) -> None:
        if self._output:
            shutil.rmtree(self._output.parent, ignore_errors=True)

    def _make_room(self) -> None:
        """Give the next one an empty folder, and nothing of the others that the disk is still busy with."""
        if self._output:
            self._remove_output()
            self._output.parent.mkdir()
            os.sync()

    def _guarded(self, result: Measured, step: Callable[[Measured], str]) -> str:
        """Take a step with a case; where that fails, the case is out and the others go on."""
        if result.problem:
            return ""
        try:
            return step(result)
        except CompetitorError as error:
            result.problem = str(error)
            print(f"  {result.case.label}: {error}", flush=True)
            return ""

    def _time(self, result: Measured) -> str:
        """Run every variant once."""
        for variant, seconds, cpu in zip(result.case.variants, result.seconds, result.cpu, strict=True):
            self._make_room()
            said = self._process(result.case.competitor).ask(self._request(result.case) | dict(variant))
            result.records = said["records"]
            seconds.append(said["seconds"])
            cpu.append(said["cpu"])
            for name, value in (said["figures"] | self._size(result.records)).items():
                result.figures.setdefault(name, []).append(value)
            time.sleep(0.02)  # thread pools of the one before go to sleep
        return f"{result.case.label} {min(seconds[-1] for seconds in result.seconds):.3g} s"

    def _check(self, result: Measured) -> str:
        """Run every variant once without a clock, which also warms it up, and compare what it found."""
        checks = []
        for variant in result.case.variants:
            request = self._request(result.case) | dict(variant)
            self._make_room()
            said = self._process(result.case.competitor).ask(request | {"check": True})
            checks.append(self._read_back(result.case, request) if self._task.writes else self._compare(said, request))
        result.check = next((check for check in checks if check != "equal"), "equal")
        if result.check not in ("equal", ""):
            print(f"  {result.case.label}: results differ: {result.check}", flush=True)
        return ""

    def _request(self, case: Case) -> dict[str, Any]:
        request: dict[str, Any] = {"job": self._task.job, **case.options}
        if not self._made:
            return request
        request = self._made.request() | request | {"rows": ROWS, "output": str(self._output)}
        if case.prefix:
            wanted = max(64, round(case.prefix * self._scale))
            if wanted < self._made.records:
                request |= {"prefix": True, "records": wanted}
        if case.gigabytes:
            fresh = self._task.job == "memory"
            request |= self._cycles(case.gigabytes) if fresh else self._passes(case.gigabytes)
        derived.new_columns(self._made, request.get("adds", {}))
        if self._task.job == "images":
            shown = min(EXACT, request["records"])
            request["exact"] = str(derived.ensure("exact.npy", self._made, shown))
        name = Path(request["file"]).name
        request["file"] = str(derived.ensure(name, self._made, request["records"]))
        return request

    def _cycles(self, gigabytes: float) -> dict[str, int]:
        """Return how often the first rows are written to make so much, or as much as there is room for."""
        assert self._made
        rows = min(ROWS, self._made.records)
        size = self._made.file.stat().st_size * rows / self._made.records
        wanted = gigabytes * 1e9 * self._scale
        if wanted > self._room:
            print(f"  {self._room / 1e9:.1f} GB in place of {wanted / 1e9:.1f}: the disk has no more room", flush=True)
        cycles = max(2, round(min(wanted, self._room) / size))
        settled = max(1, min(round(1e9 * self._scale / size), cycles // 2))
        return {"rows": rows, "cycles": cycles, "settled": settled, "records": rows * cycles}

    def _passes(self, gigabytes: float) -> dict[str, int]:
        """Return how often the whole file is read to make so much."""
        assert self._made
        size = self._made.file.stat().st_size
        cycles = max(2, round(gigabytes * 1e9 * self._scale / size))
        settled = max(1, min(round(1e9 * self._scale / size), cycles // 2))
        return {"cycles": cycles, "settled": settled, "records": self._made.records * cycles}

    def _size(self, records: int) -> dict[str, float]:
        """Return how large it is that was written, where anything was."""
        if not self._output:
            return {}
        size = sum(path.stat().st_size for path in self._output.parent.rglob("*") if path.is_file())
        return {SIZE: size / records} if size else {}

    def _read_back(self, case: Case, request: dict[str, Any]) -> str:
        """Compare what was written as another reads it: recordkit the others' records, TensorFlow recordkit's."""
        reader = {"recordkit": "tensorflow", "pyarrow": "pyarrow"}.get(case.competitor, "recordkit")
        if self._task.job == "overlay":
            reader = "recordkit"  # nobody else knows what an overlay is
        try:
            process = self._process(reader)
        except CompetitorError:
            if case.competitor != "recordkit":
                raise
            reader, process = "recordkit", self._process("recordkit")
        keys = ("records", "batch", "folder", "compression")
        asked = {"job": "decode", "check": True, "fields": found_in(request)} | self._where(request)
        asked |= {key: request[key] for key in keys if key in request}
        try:
            return self._compare(process.ask(asked), request)
        except CompetitorError as error:
            return f"{reader} cannot read it: {error}"

    def _where(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return where what was written is read: one file, a folder's, or the base seen through an overlay."""
        output = Path(request["output"])
        overlay = output.with_suffix(".overlay")
        if overlay.exists():
            return {"file": request["file"], "overlays": [str(overlay)], "dataset": True}
        shards = sorted(output.with_suffix("").glob("*.tfrecord*"))
        return {"file": [str(shard) for shard in shards] or str(output)}

    def _compare(self, said: dict[str, Any], request: dict[str, Any]) -> str:
        """Return "equal", or the columns that are not what was drawn."""
        if not self._made:
            return ""
        picks = min(request.get("picks", 0), request["records"])
        wanted = picks or request["records"]
        if said["records"] != wanted:
            return f"{said['records']:,} records in place of {wanted:,}"
        if self._task.counts:
            return "equal"
        names = tuple(request.get("compared", request.get("select") or found_in(request)))
        if self._task.job == "scan":
            expected = size_digest(self._made.file, request["records"])
        elif self._task.in_any_order:
            expected = unordered_digest_of(self._made.folder, names, request["records"])
        else:
            cycles = request.get("cycles", 1)
            expected = digest_of(self._made.folder, names, request["records"] // cycles, cycles, picks)
        found = said["digest"]
        wrong = sorted(key for key in {*expected, *found} if expected.get(key) != found.get(key))
        return ", ".join(wrong) or "equal"


def found_in(request: dict[str, Any]) -> dict[str, str]:
    """Return the fields that are read back, those that were added included."""
    return {**request["fields"], **request.get("adds", {})}


@cache
def digest_of(folder: Path, names: tuple[str, ...], records: int, cycles: int = 1, picks: int = 0) -> dict[str, str]:
    """Return the digest of the columns as they were drawn, the first records so many times, or some picked of them."""
    digest = Digest()
    drawn = columns.rows(columns.load(folder, names, mapped=True), 0, records)
    if picks:
        drawn = {name: column[columns.picked(records, picks)] for name, column in drawn.items()}
    for _ in range(cycles):
        digest.add_columns(drawn)
    return digest.result()


@cache
def unordered_digest_of(folder: Path, names: tuple[str, ...], records: int) -> dict[str, str]:
    """Return the digest of the columns as they were drawn, which is the same in any order."""
    digest = Digest()
    if names:
        digest.add_in_any_order(columns.rows(columns.load(folder, names, mapped=True), 0, records))
    return digest.result()


@cache
def size_digest(file: Path, records: int) -> dict[str, str]:
    """Return the digest of how many records, and bytes in their payloads, a file starts with."""
    size = at = 0
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as view:
        for _ in range(records):
            length = int.from_bytes(view[at : at + 8], "little")
            size, at = size + length, at + 16 + length
    digest = Digest()
    digest.add("records and bytes", np.array([records, size]))
    return digest.result()
