"""Plots: the results that `report.py` keeps, as pictures and a page of the documentation.

    python benchmarks/plots.py                      results/latest.json to docs/speed.md and docs/pictures/
    python benchmarks/plots.py data/partial.json    the same of another run

Plain SVG with its own background, in the colours of the reader's system: nothing is needed to make it or to see it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
DISTURBED = 0.05  # as run.py has it

WIDTH, LABEL, ROW, TOP, BOTTOM = 760, 290, 34, 58, 14
STYLE = """
  .card { fill: #ffffff; stroke: #d8dee9; }
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-size: 13px; fill: #1f2933; }
  .title { font-size: 16px; font-weight: 600; } .quiet { font-size: 12px; fill: #66727f; }
  .label { text-anchor: end; } .ours { fill: #0f8b8d; } .theirs { fill: #a9b4c0; }
  .spread { stroke: #1f2933; stroke-width: 1.5; opacity: .55; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #1b2027; stroke: #39424e; } text { fill: #e4e8ee; } .quiet { fill: #9aa7b4; }
    .ours { fill: #2bb8b3; } .theirs { fill: #5d6976; } .spread { stroke: #e4e8ee; }
  }"""


@dataclass(frozen=True)
class Chart:
    """One picture.

    Attributes:
        task: Whose results it shows.
        title: What was done, for readers who know no workload by its number.
        suffix: Show only the cases whose names end so, and leave the end out.
        unit: What is counted.
    """

    task: str
    title: str
    suffix: str = ""
    unit: str = "records a second"


SYNCED = ", fsync"
CHARTS = (
    Chart("read-w1", "Open and decode a million records of 40 numbers to NumPy batches"),
    Chart("decode-w1", "Decode a million records of 40 numbers, file already found"),
    Chart("read-gzip-w1", "The same from gzip"),
    Chart("read-w3", "Open and decode vectors of 768 floats"),
    Chart("random-w3", "10,000 random records of 768 floats"),
    Chart("write-w1", "Write a million records of 40 numbers, all of it on the disk at the end", SYNCED),
    Chart("pipeline-w1", "An epoch of 8 shards: shuffled, parsed, in batches of 256"),
    Chart("torch-w1", "The same through PyTorch's DataLoader"),
    Chart("pipeline-w4", "Lists of 5 to 200 numbers to padded batches of 256"),
    Chart("images-w2", "JPEGs to float32[224,224,3], in batches of 32", unit="pictures a second"),
    Chart("bake-w3", "A new field baked into records of 768 floats, on the disk at the end", SYNCED),
    Chart("overlay-w2", "A new field beside 2 GB of pictures, on the disk at the end", SYNCED),
    Chart("verify-w3", "Verify records of 768 floats, beside reading their bytes"),
)


def main(source: Path) -> int:
    """Write the pictures and the page; say so where there are no results."""
    if not source.exists():
        print(f"{source}: there are no results to draw\n  make bench measures, without --only and --scale.")
        return 1
    results = json.loads(source.read_text())
    drawn = [(chart, cases) for chart in CHARTS if len(cases := list(_cases(results, chart))) > 1]
    for old in DOCS.glob("pictures/bench-*.svg"):
        old.unlink()
    for chart, cases in drawn:
        (DOCS / "pictures" / f"bench-{chart.task}.svg").write_text(svg(chart, cases))
    (DOCS / "speed.md").write_text(page(results, [chart for chart, _ in drawn]))
    print(f"{len(drawn)} pictures and {DOCS / 'speed.md'}, of {source}")
    return 0


def _cases(results: dict[str, Any], chart: Chart) -> Iterator[dict[str, Any]]:
    for case in results["measurements"]:
        if case["task"] == chart.task and "problem" not in case and case["case"].endswith(chart.suffix):
            yield {**case, "case": case["case"].removesuffix(chart.suffix) if chart.suffix else case["case"]}


# --- Pictures


def svg(chart: Chart, cases: list[dict[str, Any]]) -> str:
    """Return a picture of bars, with a line from the slowest to the fastest repeat on each."""
    height = TOP + ROW * len(cases) + BOTTOM
    most = max(case["records"] / min(case["seconds"]) for case in cases)
    room = WIDTH - LABEL - 110
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(chart.title)}</title>",
        f"<desc>{escape(words(chart, cases))}</desc>",
        f"<style>{STYLE}\n</style>",
        f'<rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'<text class="title" x="18" y="27">{escape(chart.title)}</text>',
        f'<text class="quiet" x="18" y="46">{chart.unit}; more is better</text>',
    ]
    for number, case in enumerate(cases):
        parts += _bar(case, TOP + ROW * number, room / most)
    return "\n".join([*parts, "</svg>\n"])


def _bar(case: dict[str, Any], top: int, scale: float) -> list[str]:
    slow, fast = (case["records"] / seconds * scale for seconds in (max(case["seconds"]), min(case["seconds"])))
    kind = "ours" if case["case"].startswith("recordkit") else "theirs"
    middle = top + ROW / 2
    speed = case["records_per_second"]
    width = max(2.0, speed * scale)
    return [
        f'<text class="label" x="{LABEL - 12}" y="{middle + 5:.0f}">{escape(_short(case["case"]))}</text>',
        f'<rect class="{kind}" x="{LABEL}" y="{top + 6}" width="{width:.1f}" height="{ROW - 12}" rx="3"/>',
        f'<path class="spread" d="M{LABEL + slow:.1f} {middle:.0f}H{LABEL + fast:.1f}"/>',
        f'<text x="{LABEL + max(width, fast) + 8:.1f}" y="{middle + 5:.0f}">{number(speed)}</text>',
    ]


def _short(label: str, most: int = 36) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def number(value: float) -> str:
    """Return a speed with three digits: 2.85 M, 9.73 k, 391."""
    for factor, sign in ((1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:.3g}{sign}"
    return f"{value:.3g}"


def words(chart: Chart, cases: list[dict[str, Any]]) -> str:
    """Return what a picture shows, for those who cannot see it."""
    return f"{chart.unit}: " + "; ".join(f"{case['case']} {number(case['records_per_second'])}" for case in cases)


# --- The page


def page(results: dict[str, Any], charts: list[Chart]) -> str:
    """Return the page that shows the pictures, where they were measured, and every ratio."""
    where, settings = results["machine"], results["settings"]
    versions = ", ".join(
        f"{what} {version}"
        for what, version in sorted({pair for each in results["versions"].values() for pair in each.items()})
        if what != "crc"
    )
    whole = "a whole run" if not settings["only"] and settings["scale"] == 1 else "a part of the tasks"
    lines = [
        "<!-- written by benchmarks/plots.py; change it there -->",
        "# Speed, as measured",
        "",
        "`make bench` measures recordkit beside its peers and draws this page of what it found. What is measured, and",
        "how, is in `benchmarks/README.md`: every competitor in an environment of its own, results compared value by",
        "value before anything is timed, cases in turns, medians. The thin line on each bar goes from the slowest to",
        "the fastest of the repeats. Where others use the machine ratios move by tens of percent: measure on yours.",
        "",
        f"Measured on {results['date'][:10]} ({whole}, {settings['repeats']} repeats) at commit {results['commit']}",
        f"with {where['cores']} cores of {where['cpu']}, {where['memory_gb']} GB; {versions}.",
        *_disturbance(results),
    ]
    for chart in charts:
        lines += ["", f"![{chart.title}](pictures/bench-{chart.task}.svg)"]
    lines += ["", "## Every ratio", "", "| task | what | ratio | in single repeats |", "| --- | --- | ---: | ---: |"]
    lines += [_ratio(each) for each in results["ratios"] if each["ratio"] is not None]
    return "\n".join(lines) + "\n"


def _disturbance(results: dict[str, Any]) -> list[str]:
    shares = {task: share for task, share in results["others_share_of_cpu"].items() if share and share > DISTURBED}
    if not shares:
        return []
    most = max(shares.values())
    return ["", f"Others used the machine at the time, {most:.0%} of it at most: do not trust the last digits."]


def _ratio(each: dict[str, Any]) -> str:
    low, high = each["range"]
    return f"| {each['task']} | {each['what']} | {each['ratio']:.3g} | {low:.3g} to {high:.3g} |"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "results" / "latest.json"))
