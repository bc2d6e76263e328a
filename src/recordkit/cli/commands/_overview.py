"""Overview: what `recordkit info` prints about a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recordkit.tools.stats import number
from recordkit.wording import clean, counted, format_size, listed

from ..terminal.cells import histogram, shape_words, value_words
from ..terminal.screen import cut, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.tools import Description, FieldStats

    from ..terminal.screen import Screen

__all__ = ["show"]

_HEADS: Final = ("field", "type", "missing", "values", "histogram")
_SAMPLE: Final = 60


def show(found: Description, advice: list[str], screen: Screen) -> None:
    """Print it, with the advice."""
    screen.print(screen.style(clean(found.summary.name), "bold"))
    for name, words in _summary(found):
        lines = wrapped(clean(words), None if screen.width is None else screen.width - 14)
        for label, line in zip([name, *[""] * len(lines)], lines, strict=False):
            screen.print(f"  {screen.style(label.ljust(11), 'cyan')} {line}")
    if len(found.chunk):
        screen.print()
        _print_fields(found, screen)
    for damage in found.damage[:3]:
        _paragraph("damage", str(damage), "red", screen)
    if len(found.damage) > 3:
        _paragraph("damage", f"and {len(found.damage) - 3:,} more places; recordkit verify lists them", "red", screen)
    for words in advice:
        _paragraph("advice", words, "yellow", screen)


def _paragraph(label: str, words: str, colour: str, screen: Screen) -> None:
    lines = wrapped(clean(words), None if screen.width is None else screen.width - 8)
    screen.print(f"\n{screen.style(label, 'bold', colour)}  {lines[0]}")
    for line in lines[1:]:
        screen.print(f"        {line}")


def _summary(found: Description) -> Iterator[tuple[str, str]]:
    if found.records is not None:
        yield "records", f"{found.records:,}"
    else:
        why = "damaged" if found.damage else "that would take decompressing all of it"
        yield "records", f"not counted: {why}"
    if sizes := found.sizes:
        spread = f", {format_size(sizes[0])} to {format_size(sizes[-1])} each" if len(sizes) > 1 else ""
        yield "size", f"{format_size(sum(sizes))} in {counted(len(sizes), 'file')}{spread}"
    if len(splits := found.summary.splits) > 1:
        yield "splits", ", ".join(f"{name} ({counted(files, 'file')})" for name, files in splits.items())
    yield "compression", " and ".join(found.compressions)
    yield "message", found.message
    if found.record_sizes is not None:
        least, median, most = map(format_size, found.record_sizes)
        yield "record size", f"{least} to {most}, median {median}" if least != most else least
    if found.schema is not None:
        yield "schema", "written with the dataset" if found.declared else "inferred from the records"
    if len(found.chunk) not in (0, found.records):
        yield "sampled", f"the first records of {counted(found.sampled_files, 'file')}, {len(found.chunk):,} in total"
    if found.summary.changes:
        yield "changes", "; ".join(found.summary.changes) + " (in overlays)"
    if left_out := found.summary.left_out:
        yield "left out", listed((f"{name} ({reason})" for name, reason in left_out.items()), most=5)
    if found.problem is not None:
        yield "problem", found.problem


def _print_fields(found: Description, screen: Screen) -> None:
    if found.stats is None:
        if not found.features:
            screen.print(f"  first payload: {value_words(_first(found))}")
            return
        rows = [[clean(name), *_wire_words(found, name), ""] for name in found.features]
    else:
        sampled = found.stats.rows != found.records
        rows = [_row(clean(name), stats, sampled=sampled) for name, stats in found.stats.fields.items()]
        mixed = [name for name, wire in found.features.items() if len(wire.kinds) > 1]
        rows += [[clean(name), *_wire_words(found, name), ""] for name in mixed]
    if screen.width is not None and screen.width < 100:
        rows = [[*row[:4], ""] for row in rows]
    screen.table(_HEADS, rows, right=["missing"], shrink=["values", "type", "field"])


def _row(name: str, stats: FieldStats, *, sampled: bool) -> list[str]:
    missing = f"{stats.missing:,}" if stats.missing else ""
    return [name, stats.type, missing, clean(_values(stats)) + " in the sample" * sampled, histogram(stats)]


def _first(found: Description) -> Any:
    payload = found.chunk[0]
    return payload.decode() if found.message == "text" else payload


def _wire_words(found: Description, name: str) -> list[str]:
    """Return kind, missing and counts of a feature as the wire has them, where there is no schema."""
    wire = found.features[name]
    missing = found.survey.rows - wire.records
    count = f"{_range(wire.min_count, wire.max_count)} values"
    return [" or ".join(sorted(wire.kinds)) or "no kind", f"{missing:,}" if missing else "", count]


def _values(stats: FieldStats) -> str:
    """Return what the values are like, in a few words."""
    words = []
    if stats.shapes and stats.sizes is None:
        shapes = ["x".join(map(str, shape.value)) for shape in stats.shapes[:3]]
        words.append(" ".join(shapes) + " …" * (len(stats.shapes) > 3))
    elif stats.lengths is not None and stats.lengths.max is not None:
        words.append(f"{_range(stats.lengths.min, stats.lengths.max)} long")
    if stats.sizes is not None and stats.sizes.max is not None:
        words += _byte_strings(stats)
    elif stats.min is not None:
        words.append(_range(stats.min, stats.max))
    for times, what in ((stats.nan, "NaN"), (stats.inf, "infinite"), (stats.bad_pictures, "no picture")):
        words += [f"{times:,} {what}"] * bool(times)
    return ", ".join(words)


def _byte_strings(stats: FieldStats) -> Iterator[str]:
    assert stats.sizes is not None
    if stats.shapes:
        yield " ".join(shape_words(shape.value) for shape in stats.shapes[:3]) + " …" * (len(stats.shapes) > 3)
    least, most = format_size(stats.sizes.min), format_size(stats.sizes.max)
    yield least if least == most else f"{least} to {most}"
    if stats.samples:
        yield cut(" ".join(map(repr, stats.samples)), _SAMPLE)


def _range(least: Any, most: Any) -> str:
    return number(least) if least == most else f"{number(least)} to {number(most)}"
