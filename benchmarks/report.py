"""Report: the tables that are printed, and the JSON that is kept."""

from __future__ import annotations

import datetime
import json
import operator
import os
import platform
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cases import Ratio, Task

Results = dict[str, list[Measured]]  # by the name of the task
SIGNS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True)
class Comparison:
    """A ratio of the plan, measured.

    Attributes:
        task: Of which task.
        ratio: What was asked.
        value: The ratio of the medians; None where one of the two has no result.
        low: The smallest ratio of one repeat.
        high: The largest.
    """

    task: str
    ratio: Ratio
    value: float | None = None
    low: float = 0
    high: float = 0

    @property
    def verdict(self) -> str:
        """Whether the bar is met; "" where there is none."""
        if self.ratio.bar is None:
            return ""
        if self.value is None:
            return "not measured"
        sign, number = self.ratio.bar.split()
        return "met" if SIGNS[sign](self.value, float(number)) else "NOT MET"

    @property
    def words(self) -> str:
        """What is compared."""
        return self.ratio.words or f"{self.ratio.of} / {self.ratio.to}"


def compare(task: Task, results: list[Measured]) -> Iterator[Comparison]:
    """Yield the ratios of a task."""
    by_label = {result.case.label: result for result in results}
    for ratio in task.ratios:
        of, to = by_label[ratio.of], by_label[ratio.to] if ratio.to else None
        if of.problem or (to and to.problem):
            yield Comparison(task.name, ratio)
            continue
        value, each = of.middle(ratio.figure), of.each(ratio.figure)
        if to:
            value /= to.middle(ratio.figure)
            each = [ours / theirs for ours, theirs in zip(each, to.each(ratio.figure), strict=True)]
        yield Comparison(task.name, ratio, value, min(each), max(each))


# --- Tables


def table(rows: list[list[str]], right: set[int]) -> str:
    """Return rows as text, the first being the headings; columns in `right` are flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    return "\n".join(
        "  ".join(
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def speeds(task: Task, results: list[Measured]) -> str:
    """Return a table of the cases of a task."""
    rows = [["case", "records/s", "median", "fastest", "slowest", "CPU", "records", "results"]]
    for result in results:
        if result.problem:
            rows.append([result.case.label, "-", "-", "-", "-", "-", "-", result.problem])
            continue
        clock = [milliseconds(s) for s in (result.median, min(result.repeats), max(result.repeats), result.busy)]
        figures = (f"{rounded(result.middle(name))} {name}" for name in result.figures)
        notes = filter(None, [result.check, variant(result), *figures])
        rows.append([result.case.label, f"{result.speed:,.0f}", *clock, f"{result.records:,}", "; ".join(notes)])
    return f"{task.name}: {task.title}\n{table(rows, {1, 2, 3, 4, 5, 6})}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def variant(result: Measured) -> str:
    """The way that was best, where there were several."""
    chosen = result.case.variants[result.best]
    return ", ".join(f"{key} {value}" for key, value in chosen.items())


def ratios(found: list[Comparison]) -> str:
    """Return a table of ratios and bars."""
    rows = [["task", "speed of / speed of", "ratio", "in single repeats", "bar", ""]]
    for each in found:
        show = shown(each.ratio)
        if each.value is None:
            value, spread = "-", "-"
        else:
            value, spread = show(each.value), f"{show(each.low)} to {show(each.high)}"
        bar = ""
        if each.ratio.bar:
            sign, number = each.ratio.bar.split()
            bar = f"{sign} {show(float(number))}"
        rows.append([each.task, each.words, value, spread, bar, each.verdict])
    return table(rows, {2, 3, 4})


def times(value: float) -> str:
    return f"{value:.0f}x" if value >= 100 else f"{value:.3g}x"


def percent(value: float) -> str:
    return f"{value:.0%}"


def rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def shown(ratio: Ratio) -> Callable[[float], str]:
    """How a ratio is printed, or a figure that stands by itself."""
    if ratio.percent:
        return percent
    return times if ratio.to else lambda value: f"{rounded(value)} {ratio.unit}"


# --- What is kept


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the code."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def commit() -> str:
    """Return the commit that was measured; "" outside a repository."""
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def header(facts: Mapping[str, Any]) -> str:
    """Return in a few lines where this was measured, and with what."""
    where = facts["machine"]
    lines = [f"{where['cpu']}, {where['cores']} cores, load {where['load_at_start']} at the start; {where['system']}"]
    for name, versions in facts["versions"].items():
        lines.append(f"{name}: {', '.join(f'{what} {version}' for what, version in versions.items())}")
    lines += [f"{name}: {reason}" for name, reason in facts["absent"].items()]
    return "\n".join(lines)


def document(
    results: Results, found: list[Comparison], *, settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything, for JSON."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        **facts,
        "settings": dict(settings),
        "measurements": [measurement(name, result) for name, group in results.items() for result in group],
        "ratios": [
            {
                "task": each.task,
                "what": each.words,
                "ratio": each.value and round(each.value, 4),
                "range": [round(each.low, 4), round(each.high, 4)] if each.value else None,
                "unit": None if each.ratio.to else each.ratio.unit,
                "bar": each.ratio.bar,
                "verdict": each.verdict or None,
            }
            for each in found
        ],
    }


def measurement(task: str, result: Measured) -> dict[str, Any]:
    case = result.case
    entry: dict[str, Any] = {"task": task, "case": case.label, "competitor": case.competitor}
    if result.problem:
        return entry | {"problem": result.problem}
    entry |= {
        "records": result.records,
        "records_per_second": round(result.speed, 1),
        "range": [round(result.records / of(result.repeats), 1) for of in (max, min)],
        "median_seconds": round(result.median, 6),
        "seconds": [round(seconds, 6) for seconds in result.repeats],
        "cpu_seconds": [round(seconds, 3) for seconds in result.cpu[result.best]],
        "results": result.check or None,
    }
    if result.figures:
        entry["figures"] = {name: [round(value, 3) for value in each] for name, each in result.figures.items()}
    if len(case.variants) > 1:
        medians = [round(statistics.median(seconds), 6) for seconds in result.seconds]
        entry["best_of"] = [{**option, "median_seconds": m} for option, m in zip(case.variants, medians, strict=True)]
        entry["variant"] = dict(case.variants[result.best])
    return entry


def keep(path: Path, said: dict[str, Any]) -> None:
    """Write the JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said, indent=1) + "\n")
