"""Plots: write the results that `report.py` and `flips.py` keep into the documentation.

    python benchmarks/plots.py                      results/latest.json to docs/speed.md, its pictures, and the tables
                                                    in README.md and docs/guide/compare.md
    python benchmarks/plots.py data/partial.json    the same for another run
    python benchmarks/plots.py --check              list what differs from results/latest.json, and change nothing

Every measured figure in the documentation comes from that file, the counts of flipped bits from results/flips.json.
The pictures are plain SVG with their own background, and follow the reader's light or dark theme.
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
FLIPS = HERE / "results" / "flips.json"
DISTURBED = 0.05  # the same as in run.py

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
        task: The task whose results it shows.
        title: What was done, for readers who do not know the workloads by name.
        suffix: Show only the cases whose names end with this, without the suffix.
        unit: What is counted.
    """

    task: str
    title: str
    suffix: str = ""
    unit: str = "records per second"


SYNCED = ", fsync"
CHARTS = (
    Chart("read-w1", "Open and decode a million records of 40 numbers to NumPy batches"),
    Chart("decode-w1", "Decode a million records of 40 numbers, file already open"),
    Chart("read-gzip-w1", "The same from gzip"),
    Chart("read-w3", "Open and decode vectors of 768 floats"),
    Chart("random-w3", "10,000 random records of 768 floats"),
    Chart("write-w1", "Write a million records of 40 numbers, synced to disk", SYNCED),
    Chart("pipeline-w1", "An epoch of 8 shards: shuffled, parsed, in batches of 256"),
    Chart("torch-w1", "The same through PyTorch's DataLoader"),
    Chart("pipeline-w4", "Lists of 5 to 200 numbers to padded batches of 256"),
    Chart("images-w2", "JPEGs to float32[224,224,3], in batches of 32", unit="images per second"),
    Chart("bake-w3", "Rewrite records of 768 floats with a new field, synced to disk", SYNCED),
    Chart("overlay-w2", "Add a field to 2 GB of images, synced to disk", SYNCED),
    Chart("verify-w3", "Verify records of 768 floats, compared with only reading the bytes"),
)


@dataclass(frozen=True)
class Headline:
    """One of the three numbers in the README; left out if it was not measured.

    Attributes:
        task: The task it was measured in.
        what: The ratio, as the results name it.
        than: What `10x` in front of it is compared with.
        done: What was done, for readers who do not know the workloads by name.
    """

    task: str
    what: str
    than: str
    done: str


FASTER = Headline(
    "read-w1",
    "recordkit, rk.open / tensorflow",
    "TensorFlow",
    "from a file of a million records of 40 numbers to NumPy batches, every checksum verified",
)
CHEAPER = Headline(
    "overlay-w2",
    "recordkit, add_fields, fsync / cp --reflink=never, fsync",
    "`cp`",
    "to add a field to 2 GB of images: no file is rewritten",
)


@dataclass(frozen=True)
class Row:
    """One task in a table for readers who are new here.

    Attributes:
        task: The task whose results it shows.
        done: What was done, in plain words.
        what: The ratios, as the results name them; those that were not measured are left out.
    """

    task: str
    done: str
    what: tuple[str, ...]


RECIPE = "recordkit, add_fields(out=), fsync / tensorflow, the recipe, fsync"
PARQUET = "recordkit, rk.open / pyarrow, Parquet"
SINGLES = ("recordkit, ds[i] / array_record, one by one", "recordkit, ds[i] / MosaicML MDS")
LISTED = "recordkit, ds[[...]] / array_record, all at once"
SUMMARY = (
    Row("scan-w1", "a million records of 40 numbers, read", ("recordkit / tensorflow, batch(1024).reduce",)),
    Row(
        "decode-w1",
        "the same, decoded by one thread",
        ("recordkit / tensorflow", "recordkit / tensorflow, parse_single_example"),
    ),
    Row(
        "read-w1",
        "a million records of 40 numbers, opened and decoded by both cores",
        ("recordkit, rk.open / tensorflow", PARQUET),
    ),
    Row("read-gzip-w1", "the same from gzip", ("recordkit, rk.open, gzip of others / tensorflow, gzip of others",)),
    Row(
        "pipeline-w1",
        "the same, shuffled, in batches of 256",
        (
            "recordkit, shuffle(7) / tensorflow, parse_single_example",
            "recordkit, shuffle(7) / tensorflow, batch then parse_example",
            "recordkit, shuffle(7) / pyarrow, shuffled blocks of Parquet",
        ),
    ),
    Row(
        "torch-w1",
        "the same, through PyTorch's DataLoader",
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
        "a million records of 40 numbers, written and synced",
        (
            "recordkit, rk.write, fsync / tensorflow, tf.train.Example, fsync",
            "recordkit, rk.write, fsync / pyarrow, Parquet, fsync",
        ),
    ),
    Row(
        "bake-w3",
        "vectors rewritten with a new field",
        ("recordkit, add_fields(out=), fsync / cp --reflink=never, fsync", RECIPE),
    ),
    Row(
        "overlay-w2",
        "a field added to 2 GB of images",
        (
            "recordkit, add_fields, fsync / cp --reflink=never, fsync",
            "recordkit, add_fields: how much of the base is read",
        ),
    ),
    Row("read-overlay-w1", "a million records of 40 numbers, read with an added field", ()),
    Row("read-overlay-w3", "vectors read with an added field", ()),
    Row(
        "count-w2",
        "2,000 images counted without an index",
        ("recordkit, len(rk.open) / tensorflow, for record in dataset",),
    ),
    Row("open-shards", "10,000 shards opened and counted", ("recordkit, rk.open: time to open and count",)),
    Row(
        "first-batch",
        "10 million records, from opening to the first shuffled batch",
        ("recordkit, shuffle(7).batch(256): time from opening",),
    ),
    Row("verify-w3", "every byte of the vectors verified", ("recordkit, rk.verify / read()",)),
)
COMPARE = (
    Row("read-w1", "a million records of 40 numbers to NumPy batches, both cores", (PARQUET,)),
    Row("random-w3", "10,000 random records of 768 floats", (*SINGLES, LISTED)),
    Row("bake-w3", "the vectors rewritten with a new field, synced to disk", (RECIPE,)),
)


class MissingMarksError(Exception):
    """A page has no marks to write the table between."""


def main(source: Path, *, check: bool = False) -> int:
    """Write the pages and pictures, or list those that differ; return 1 if any does, or if there are no results."""
    if not source.exists():
        print(f"{source}: no such results\n  Measure them: make bench, without --only and --scale.")
        return 1
    made = pages(json.loads(source.read_text()))
    old = [path for path in DOCS.glob("pictures/bench-*.svg") if path not in made]
    if check:
        other = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
        for path in [*other, *old]:
            print(f"{path}: its figures differ from {source}\n  Write them again: python benchmarks/plots.py")
        return 1 if other or old else 0
    for path in old:
        path.unlink()
    for path, text in made.items():
        path.write_text(text)
    print(f"{len(made)} files written from {source}")
    return 0


def pages(results: dict[str, Any]) -> dict[Path, str]:
    """Return the new text of every file that quotes the results."""
    flips = json.loads(FLIPS.read_text())
    drawn = [(chart, cases) for chart in CHARTS if len(cases := list(_cases(results, chart))) > 1]
    made = {DOCS / "pictures" / f"bench-{chart.task}.svg": svg(chart, cases) for chart, cases in drawn}
    made[DOCS / "speed.md"] = page(results, [chart for chart, _ in drawn])
    readme, compare = DOCS.parent / "README.md", DOCS / "guide" / "compare.md"
    made[readme] = between("speed", headlines(results, flips), readme.read_text(), str(readme))
    text = between("speed", [*measured(results), "", *table(results, COMPARE)], compare.read_text(), str(compare))
    made[compare] = between("flips", flips_table(flips), text, str(compare))
    return made


def between(name: str, lines: list[str], text: str, path: str) -> str:
    """Return the text of a page with these lines between the marks of that name."""
    begin, end = f"<!-- {name}: written by benchmarks/plots.py -->", f"<!-- end of {name} -->"
    before, begins, rest = text.partition(begin)
    _, ends, after = rest.partition(end)
    if not begins or not ends:
        message = f"{path}: expected the lines {begin} and {end} around the figures, found none"
        raise MissingMarksError(message)
    return "\n".join([before + begin, *lines, end + after])


def headlines(results: dict[str, Any], flips: dict[str, Any]) -> list[str]:
    """Return the three numbers of the README, and how many comparisons recordkit loses."""
    ratios = {(each["task"], each["what"]): each["ratio"] for each in results["ratios"] if each["ratio"] is not None}
    fast, cheap = (
        [f"| **{ratios[key]:.3g} times as fast as {line.than}** | {line.done} |"]
        if (key := (line.task, line.what)) in ratios
        else []
        for line in (FASTER, CHEAPER)
    )
    ours, default, *_, tar = (counts["detected"] for counts in flips["formats"].values())
    found = f"| **{ours} of {flips['flips']} flipped bits detected** |"
    compared = [each for each in results["ratios"] if each["ratio"] is not None and " / " in each["what"]]
    return [
        "| | |",
        "| --- | --- |",
        *fast,
        f"{found} Parquet with pyarrow's defaults: {default}; a tar as WebDataset reads it: {tar} |",
        *cheap,
        "",
        " ".join(measured(results)),
        f"recordkit is slower in {sum(map(slower, compared))} of {len(compared)} comparisons ([all](docs/speed.md)).",
    ]


def flips_table(flips: dict[str, Any]) -> list[str]:
    """Return what each format made of the flipped bits."""
    outcomes = list(next(iter(flips["formats"].values())))
    return [
        f"| {flips['flips']} single-bit flips in {flips['records']:,} records of 64 floats | {' | '.join(outcomes)} |",
        f"| --- |{' ---: |' * len(outcomes)}",
        *(f"| {name} | {' | '.join(map(str, counts.values()))} |" for name, counts in flips["formats"].items()),
    ]


def table(results: dict[str, Any], rows: tuple[Row, ...]) -> list[str]:
    """Return some ratios, and every one of these tasks where recordkit is slower."""
    lines = ["| what | recordkit | compared with | |", "| --- | --- | --- | --- |"]
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
    """Return a ratio in words, or a figure with its unit."""
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
    """Return a bar chart; a thin line on each bar runs from the slowest to the fastest repeat."""
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
        f'<text class="quiet" x="18" y="46">{chart.unit}; higher is better</text>',
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
    """Describe a picture for those who cannot see it."""
    return f"{chart.unit}: " + "; ".join(f"{case['case']} {number(case['records_per_second'])}" for case in cases)


# --- The page


def measured(results: dict[str, Any]) -> list[str]:
    """Return where and when, in sentences."""
    where, settings = results["machine"], results["settings"]
    whole = "all tasks" if not settings["only"] and settings["scale"] == 1 else "a subset of the tasks"
    return [
        f"Measured on {results['date'][:10]} ({whole}, {settings['repeats']} runs each) at commit {results['commit']},",
        f"on {where['cores']} cores of {where['cpu']} with {where['memory_gb']} GB.",
    ]


def page(results: dict[str, Any], charts: list[Chart]) -> str:
    """Return the page of all results: where they were measured, a summary, the pictures, every ratio."""
    versions = ", ".join(
        f"{what} {version}"
        for what, version in sorted({pair for each in results["versions"].values() for pair in each.items()})
        if what != "crc"
    )
    lines = [
        "<!-- written by benchmarks/plots.py; change it there -->",
        "# Measured speed",
        "",
        "`make bench` compares recordkit with other libraries on your machine and writes this page from the results.",
        "Each library runs in its own environment, its results are compared value by value before anything is timed,",
        "cases take turns, and medians count; `benchmarks/README.md` has the details. The thin line on each bar runs",
        "from the slowest to the fastest repeat. On a shared machine ratios vary by tens of percent: run it on yours.",
        "",
        *measured(results),
        f"Versions: {versions}.",
        *(["", results["note"]] if "note" in results else []),
        *_disturbance(results),
    ]
    lines += ["", "## Summary", "", "Every ratio below 1 is listed: there recordkit is slower.", ""]
    lines += table(results, SUMMARY)
    for chart in charts:
        lines += ["", f"![{chart.title}](pictures/bench-{chart.task}.svg)"]
    lines += ["", "## Every ratio", "", "| task | what | | range over repeats |", "| --- | --- | --- | ---: |"]
    lines += [_ratio(each) for each in results["ratios"] if each["ratio"] is not None]
    return "\n".join(lines) + "\n"


def _disturbance(results: dict[str, Any]) -> list[str]:
    shares = {task: share for task, share in results["others_share_of_cpu"].items() if share and share > DISTURBED}
    if not shares:
        return []
    most = max(shares.values())
    return ["", f"Other programs used up to {most:.0%} of the machine at the time: do not trust the last digits."]


def _ratio(each: dict[str, Any]) -> str:
    low, high = each["range"]
    return f"| {each['task']} | {each['what']} | {said(each)} | {low:.3g} to {high:.3g} |"


if __name__ == "__main__":
    paths = [word for word in sys.argv[1:] if word != "--check"]
    sys.exit(main(Path(paths[0]) if paths else HERE / "results" / "latest.json", check="--check" in sys.argv))
