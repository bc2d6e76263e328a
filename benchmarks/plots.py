"""Plots: the results that `report.py` keeps, wherever the documentation quotes them.

    python benchmarks/plots.py                      results/latest.json to docs/speed.md, its pictures, and the tables
                                                    of README.md and docs/guide/compare.md
    python benchmarks/plots.py data/partial.json    the same of another run
    python benchmarks/plots.py --check              say what differs from results/latest.json, and change nothing

Every figure of a measurement in the documentation comes from that one file. Plain SVG with its own background, in the
colours of the reader's system: nothing is needed to make it or to see it.
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


@dataclass(frozen=True)
class Row:
    """What a table for people who are new here tells of one task.

    Attributes:
        task: Whose results it shows.
        done: What was done, in their words.
        what: The ratios, as results have them; those that were not measured are left out.
    """

    task: str
    done: str
    what: tuple[str, ...]


RECIPE = "recordkit, add_fields(out=), fsync / tensorflow, the recipe, fsync"
PARQUET = "recordkit, rk.open / pyarrow, Parquet"
SINGLES = ("recordkit, ds[i] / array_record, one by one", "recordkit, ds[i] / MosaicML MDS")
LISTED = "recordkit, ds[[...]] / array_record, all at once"
README = (
    Row("scan-w1", "a million records of 40 numbers, read", ("recordkit / tensorflow, batch(1024).reduce",)),
    Row(
        "decode-w1",
        "the same decoded, one thread",
        ("recordkit / tensorflow", "recordkit / tensorflow, parse_single_example"),
    ),
    Row("read-w1", "opened and decoded, both cores", ("recordkit, rk.open / tensorflow", PARQUET)),
    Row("read-gzip-w1", "from gzip", ("recordkit, rk.open, gzip of others / tensorflow, gzip of others",)),
    Row(
        "pipeline-w1",
        "all shuffled, in batches of 256",
        (
            "recordkit, shuffle(7) / tensorflow, parse_single_example",
            "recordkit, shuffle(7) / tensorflow, batch then parse_example",
            "recordkit, shuffle(7) / pyarrow, shuffled blocks of Parquet",
        ),
    ),
    Row(
        "torch-w1",
        "the same through PyTorch's DataLoader",
        ("recordkit, DataLoader(batch_size=None) / vahidk/tfrecord, DataLoader",),
    ),
    Row("read-w3", "vectors of 768 floats, opened and decoded", ("recordkit, rk.open / tensorflow",)),
    Row("random-w3", "10,000 of them at random", (*SINGLES, LISTED)),
    Row(
        "pipeline-w4",
        "lists of 5 to 200 numbers to padded batches",
        ("recordkit, in order / tensorflow, batch, parse_example, to_tensor",),
    ),
    Row(
        "images-w2",
        "JPEGs decoded and resized to 224 x 224",
        (
            "recordkit, decode_images / tensorflow",
            "recordkit, decode_images(scaled=True) / tensorflow",
            "recordkit, decode_images / grain, cv2",
        ),
    ),
    Row(
        "write-w1",
        "a million records of 40 numbers written, all of it on the disk",
        (
            "recordkit, rk.write, fsync / tensorflow, tf.train.Example, fsync",
            "recordkit, rk.write, fsync / pyarrow, Parquet, fsync",
        ),
    ),
    Row(
        "bake-w3",
        "a new field baked into vectors",
        ("recordkit, add_fields(out=), fsync / cp --reflink=never, fsync", RECIPE),
    ),
    Row(
        "overlay-w2",
        "a new field beside 2 GB of pictures",
        (
            "recordkit, add_fields, fsync / cp --reflink=never, fsync",
            "recordkit, add_fields: how much of the base is read",
        ),
    ),
    Row("read-overlay-w1", "a field read from beside the records, a million of 40 numbers", ()),
    Row("read-overlay-w3", "a field read from beside the vectors", ()),
    Row(
        "count-w2",
        "2,000 pictures counted, with no index",
        ("recordkit, len(rk.open) / tensorflow, for record in dataset",),
    ),
    Row("open-shards", "10,000 shards opened and counted", ("recordkit, rk.open: time to open and count",)),
    Row(
        "first-batch",
        "10 million records opened, to the first shuffled batch",
        ("recordkit, shuffle(7).batch(256): time from opening",),
    ),
    Row("verify-w3", "every byte of the vectors verified", ("recordkit, rk.verify / read()",)),
)
COMPARE = (
    Row("read-w1", "a million records of 40 numbers to NumPy batches, both cores", (PARQUET,)),
    Row("random-w3", "10,000 random records of 768 floats", (*SINGLES, LISTED)),
    Row("bake-w3", "a new field baked into the vectors, on the disk at the end", (RECIPE,)),
)


class MissingMarksError(Exception):
    """A page has no place for the table."""


def main(source: Path, *, check: bool = False) -> int:
    """Write what is made of the results, or say what differs; 1 where something does, or where there are none."""
    if not source.exists():
        print(f"{source}: there are no results to draw\n  make bench measures, without --only and --scale.")
        return 1
    made = pages(json.loads(source.read_text()))
    old = [path for path in DOCS.glob("pictures/bench-*.svg") if path not in made]
    if check:
        other = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
        for path in [*other, *old]:
            print(f"{path}: its figures are not those of {source}\n  Write them anew: python benchmarks/plots.py")
        return 1 if other or old else 0
    for path in old:
        path.unlink()
    for path, text in made.items():
        path.write_text(text)
    print(f"{len(made)} files, of {source}")
    return 0


def pages(results: dict[str, Any]) -> dict[Path, str]:
    """Return what every file is to hold in which the results are quoted."""
    drawn = [(chart, cases) for chart in CHARTS if len(cases := list(_cases(results, chart))) > 1]
    made = {DOCS / "pictures" / f"bench-{chart.task}.svg": svg(chart, cases) for chart, cases in drawn}
    made[DOCS / "speed.md"] = page(results, [chart for chart, _ in drawn])
    for path, rows in ((DOCS.parent / "README.md", README), (DOCS / "guide" / "compare.md", COMPARE)):
        made[path] = with_table(path, [*measured(results), "", *table(results, rows)])
    return made


BEGIN = "<!-- speed: written by benchmarks/plots.py -->"
END = "<!-- end of speed -->"


def with_table(path: Path, lines: list[str]) -> str:
    """Return a page with these lines between its marks."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, behind = rest.partition(END)
    if not begin or not end:
        message = f"{path}: expected the lines {BEGIN} and {END} around the figures, found none"
        raise MissingMarksError(message)
    return "\n".join([before + BEGIN, *lines, END + behind])


def table(results: dict[str, Any], rows: tuple[Row, ...]) -> list[str]:
    """Return some ratios, and every one of these tasks where recordkit is slower."""
    lines = ["| what | recordkit | beside | |", "| --- | --- | --- | --- |"]
    for row in rows:
        for each in results["ratios"]:
            if each["task"] == row.task and each["ratio"] is not None and (each["what"] in row.what or slower(each)):
                ours, _, theirs = each["what"].removeprefix("the time of ").partition(" / ")
                if not theirs:
                    ours, _, theirs = ours.partition(": ")
                name = ours.removeprefix("recordkit").removeprefix(", ") or "recordkit"
                lines.append(f"| {row.done} | {name} | {theirs} | {said(each)} |")
    return lines


def slower(each: dict[str, Any]) -> bool:
    """Whether recordkit is slower than what it is compared with."""
    what, ratio = each["what"], each["ratio"]
    if what.startswith("the time of "):
        return bool(ratio > 1)
    return " / " in what and not what.startswith("the size of ") and ratio < 1


def said(each: dict[str, Any]) -> str:
    """Return a ratio with what it is a ratio of, or a figure with its unit."""
    figure = f"{each['ratio']:.3g}"
    if " / " not in each["what"]:
        return f"{figure} {each['unit']}"
    words = {"the time of ": "times the time", "the size of ": "times the size"}
    return f"{figure} " + next((end for start, end in words.items() if each["what"].startswith(start)), "times as fast")


def _cases(results: dict[str, Any], chart: Chart) -> Iterator[dict[str, Any]]:
    for case in results["measurements"]:
        if case["task"] == chart.task and "problem" not in case and case["case"].endswith(chart.suffix):
            yield {**case, "case": case["case"].removesuffix(chart.suffix) if chart.suffix else case["case"]}


# --- Pictures


def svg(chart: Chart, cases: list[dict[str, Any]]) -> str:
    """Return a picture of bars, with a line from the slowest to the fastest repeat on each."""
    height = TOP + ROW * len(cases) + BOTTOM
    most = max(case["range"][1] for case in cases)
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
    slow, fast = (speed * scale for speed in case["range"])
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


def measured(results: dict[str, Any]) -> list[str]:
    """Return where and when, in sentences."""
    where, settings = results["machine"], results["settings"]
    whole = "a whole run" if not settings["only"] and settings["scale"] == 1 else "a part of the tasks"
    return [
        f"Measured on {results['date'][:10]} ({whole}, {settings['repeats']} repeats) at commit {results['commit']}",
        f"with {where['cores']} cores of {where['cpu']}, {where['memory_gb']} GB.",
    ]


def page(results: dict[str, Any], charts: list[Chart]) -> str:
    """Return the page that shows the pictures, where they were measured, and every ratio."""
    versions = ", ".join(
        f"{what} {version}"
        for what, version in sorted({pair for each in results["versions"].values() for pair in each.items()})
        if what != "crc"
    )
    lines = [
        "<!-- written by benchmarks/plots.py; change it there -->",
        "# Speed, as measured",
        "",
        "`make bench` measures recordkit beside its peers and draws this page of what it found. What is measured, and",
        "how, is in `benchmarks/README.md`: every competitor in an environment of its own, results compared value by",
        "value before anything is timed, cases in turns, medians. The thin line on each bar goes from the slowest to",
        "the fastest of the repeats. Where others use the machine ratios move by tens of percent: measure on yours.",
        "",
        *measured(results),
        f"Versions: {versions}.",
        *(["", results["note"]] if "note" in results else []),
        *_disturbance(results),
    ]
    for chart in charts:
        lines += ["", f"![{chart.title}](pictures/bench-{chart.task}.svg)"]
    lines += ["", "## Every ratio", "", "| task | what | | in single repeats |", "| --- | --- | --- | ---: |"]
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
    return f"| {each['task']} | {each['what']} | {said(each)} | {low:.3g} to {high:.3g} |"


if __name__ == "__main__":
    paths = [word for word in sys.argv[1:] if word != "--check"]
    sys.exit(main(Path(paths[0]) if paths else HERE / "results" / "latest.json", check="--check" in sys.argv))
