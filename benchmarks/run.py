"""Run the benchmark: `make bench`, or `make bench BENCH="--only scan,decode-w1 --repeats 9"`. See README.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import plan
import report
import venvs
import workloads
from load import Watch
from measure import Measured, Runner
from processes import CompetitorError, Process
from workloads import Made

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
DISTURBED = 0.05  # share of the processors that others may have before it is said aloud


class Competitors:
    """The processes of the competitors, each started when it is first asked for."""

    def __init__(self, wanted: Sequence[str], logs: Path) -> None:
        self._wanted, self._logs = wanted, logs
        self._running: dict[str, Process] = {}
        self.absent: dict[str, str] = {}

    def __call__(self, name: str) -> Process:
        """Return a competitor's process.

        Raises:
            CompetitorError: It was not asked for, cannot be installed or does not start.
        """
        if name in self._running:
            return self._running[name]
        if name not in self.absent:
            self._start(name)
        if name in self.absent:
            raise CompetitorError(self.absent[name])
        return self._running[name]

    def _start(self, name: str) -> None:
        if name not in self._wanted:
            self.absent[name] = "left out"
            return
        try:
            python = venvs.python_of(name)
        except venvs.NotInstalledError as error:
            self.absent[name] = f"not installed: {error}"
            return
        print(f"starting {name}", flush=True)
        try:
            self._running[name] = Process(plan.COMPETITORS[name], python, self._logs / f"{name}.log")
        except CompetitorError as error:
            self.absent[name] = f"does not start: {error}"

    @property
    def ids(self) -> list[int]:
        """The ids of the processes, this one's included."""
        return [os.getpid(), *(process.id for process in self._running.values())]

    @property
    def versions(self) -> dict[str, dict[str, str]]:
        """What each of them runs with."""
        return {name: process.versions for name, process in self._running.items()}

    def close(self) -> None:
        """End all of them."""
        for process in self._running.values():
            process.close()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure recordkit beside its peers.")
    parser.add_argument("--only", default="", help="tasks or starts of their names: scan,decode-w1")
    parser.add_argument("--competitors", default=",".join(plan.COMPETITORS), help="who takes part (default: all)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="make workloads smaller, to try things out")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where workloads are kept")
    parser.add_argument(
        "--json",
        type=Path,
        help="where results are kept (default: results/latest.json; partial.json in DATA where not all was run)",
    )
    given = parser.parse_args()
    given.data = given.data.resolve()
    whole = not given.only and given.scale == 1 and given.competitors == parser.get_default("competitors")
    given.json = given.json or (HERE / "results" / "latest.json" if whole else given.data / "partial.json")
    return given


def chosen(only: str) -> list[plan.Task]:
    starts = tuple(part.strip() for part in only.split(",") if part.strip()) or ("",)
    tasks = [task for task in plan.TASKS if task.name.startswith(starts)]
    if not tasks:
        sys.exit(f"no task starts with {only!r}; there are {', '.join(task.name for task in plan.TASKS)}")
    return tasks


def measure(task: plan.Task, competitors: Competitors, given: argparse.Namespace) -> list[Measured]:
    """Run one task; where its workload cannot be made, every case says why."""
    print(f"\n{task.name}: {task.title}", flush=True)
    made: Made | None = None
    if task.workload:
        try:
            made = workloads.make(task.workload, given.data, given.scale)
        except venvs.NotInstalledError as error:
            reason = f"{task.workload} could not be made; not installed: {error}"
            print(f"  {reason}", flush=True)
            return [Measured(case, problem=reason) for case in task.cases]
    repeats = max(given.repeats, task.least_repeats)
    return Runner(task, made, competitors, given.scale).run(min(repeats, task.most_repeats or repeats))


def main() -> int:
    """Return 1 where some result was not what was drawn; bars that are not met are printed, and no failure."""
    given = arguments()
    facts = {"machine": report.machine()}
    competitors = Competitors(given.competitors.split(","), given.data / "logs")
    tasks = chosen(given.only)
    results: dict[str, list[Measured]] = {}
    others: dict[str, float | None] = {}
    try:
        for task in tasks:
            watch = Watch(lambda: competitors.ids)
            results[task.name] = measure(task, competitors, given)
            others[task.name] = watch.others()
    finally:
        competitors.close()
    found = [each for task in tasks for each in report.compare(task, results[task.name])]
    for task in tasks:
        print(f"\n{report.speeds(task, results[task.name])}")
    print(f"\n{report.ratios(found)}\n")
    facts |= {"versions": competitors.versions, "absent": competitors.absent, "others_share_of_cpu": others}
    print(f"{report.header(facts)}\n")
    settings = {"repeats": given.repeats, "scale": given.scale, "only": given.only}
    report.keep(given.json, report.document(results, found, settings=settings, facts=facts))
    disturbed = {name: share for name, share in others.items() if share and share > DISTURBED}
    if disturbed:
        shares = ", ".join(f"{share:.0%} during {name}" for name, share in disturbed.items())
        print(f"Others used the processors ({shares}): measure again on a quiet machine.")
    if given.scale < 1:
        print(f"At a scale of {given.scale:g} starting up counts as much as the work: nothing to judge bars by.")
    bars = [each.verdict for each in found if each.ratio.bar]
    print(f"{bars.count('met')} of {len(bars)} bars met; {given.json}")
    measured = [result for group in results.values() for result in group if not result.problem]
    wrong = [result.case.label for result in measured if result.check not in ("", "equal")]
    if wrong:
        print(f"results differ: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
