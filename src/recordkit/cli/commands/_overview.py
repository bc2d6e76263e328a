"""Overview: what was found out about an unknown file, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recordkit.tools import sizes_of
from recordkit.tools.stats import number
from recordkit.wording import clean, counted, format_size, listed

from ..terminal.cells import histogram, shape_words, value_words
from ..terminal.screen import cut, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.tools import Facts, FieldStats

    from ..terminal.screen import Screen

__all__ = ["plain", "show"]

_SAMPLE: Final = 60


def show(facts: Facts, found: list[str], screen: Screen) -> None:
    """Print it, with the advice."""
    screen.print(screen.style(clean(facts.name), "bold"))
    for name, words in _summary(facts):
        lines = wrapped(clean(words), None if screen.width is None else screen.width - 14)
        for label, line in zip([name, *[""] * len(lines)], lines, strict=False):
            screen.print(f"  {screen.style(label.ljust(11), 'cyan')} {line}")
    if len(facts.chunk):
        screen.print()
        _print_fields(facts, screen)
    for damage in facts.damage[:3]:
        _paragraph("damage", str(damage), "red", screen)
    if len(facts.damage) > 3:
        _paragraph("damage", f"and {len(facts.damage) - 3:,} more places; recordkit verify lists them", "red", screen)
    for words in found:
        _paragraph("advice", words, "yellow", screen)


def _paragraph(label: str, words: str, colour: str, screen: Screen) -> None:
    lines = wrapped(clean(words), None if screen.width is None else screen.width - 8)
    screen.print(f"\n{screen.style(label, 'bold', colour)}  {lines[0]}")
    for line in lines[1:]:
        screen.print(f"        {line}")


def _summary(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.records is not None:
        yield "records", f"{facts.records:,}"
    else:
        why = "damaged" if facts.damage else "that would take decompressing all of it"
        yield "records", f"not counted: {why}"
    if facts.bytes is not None:
        sizes = sorted(file.file.size for file in facts.files)
        spread = f", {format_size(sizes[0])} to {format_size(sizes[-1])} each" if len(sizes) > 1 else ""
        yield "size", f"{format_size(facts.bytes)} in {counted(len(sizes), 'file')}{spread}"
    if len(facts.splits) > 1:
        yield "splits", ", ".join(f"{name} ({counted(files, 'file')})" for name, files in facts.splits.items())
    yield "compression", " and ".join(facts.compressions)
    yield "message", facts.message
    if len(facts.chunk):
        least, median, most = map(format_size, sizes_of(facts.chunk))
        yield "a record is", f"{least} to {most}, median {median}" if least != most else least
    if facts.schema is not None:
        yield "schema", "as it was written" if facts.declared else "told from the records"
    if len(facts.chunk) not in (0, facts.records):
        yield "looked at", f"the first records of {counted(facts.looked_at, 'file')}, {len(facts.chunk):,} in all"
    if facts.layers:
        yield "changes", "; ".join(facts.layers) + " (beside the records)"
    if facts.left_out:
        yield "left out", listed((f"{name} ({reason})" for name, reason in facts.left_out.items()), most=5)
    if facts.problem is not None:
        yield "trouble", facts.problem


_HEADS: Final = ("field", "type", "missing", "values", "histogram")


def _print_fields(facts: Facts, screen: Screen) -> None:
    if facts.stats is None:
        if not facts.features:
            screen.print(f"  first payload: {value_words(_first(facts))}")
            return
        rows = [[clean(name), *_wire_words(facts, name), ""] for name in facts.features]
    else:
        sampled = facts.stats.rows != facts.records
        rows = [_row(clean(name), stats, sampled=sampled) for name, stats in facts.stats.fields.items()]
        mixed = [name for name, wire in facts.features.items() if len(wire.kinds) > 1]
        rows += [[clean(name), *_wire_words(facts, name), ""] for name in mixed]
    if screen.width is not None and screen.width < 100:
        rows = [[*row[:4], ""] for row in rows]
    screen.table(_HEADS, rows, right=["missing"], shrink=["values", "type", "field"])


def _row(name: str, stats: FieldStats, *, sampled: bool) -> list[str]:
    missing = f"{stats.missing:,}" if stats.missing else ""
    return [name, stats.type, missing, clean(_values(stats)) + " in the sample" * sampled, histogram(stats)]


def _first(facts: Facts) -> Any:
    payload = facts.chunk[0]
    return payload.decode() if facts.message == "text" else payload


def _wire_words(facts: Facts, name: str) -> list[str]:
    """Return kind, missing and counts of a feature as the wire has them, where there is no schema."""
    wire = facts.features[name]
    missing = facts.survey.rows - wire.records
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


# --- For programs


def plain(facts: Facts, found: list[str]) -> dict[str, Any]:
    """Return it as plain dicts, lists, texts and numbers."""
    least, median, most = sizes_of(facts.chunk) if len(facts.chunk) else (None, None, None)
    return {
        "path": facts.name,
        "records": facts.records,
        "bytes": facts.bytes,
        "files": len(facts.files),
        "splits": dict(facts.splits),
        "compression": list(facts.compressions),
        "message": facts.message,
        "looked_at": len(facts.chunk),
        "record_bytes": {"min": least, "median": median, "max": most},
        "schema": facts.schema.to_dict() if facts.schema is not None else None,
        "fields": facts.stats.to_dict()["fields"] if facts.stats is not None else {},
        "features": {name: _wire(facts, name) for name in facts.features},
        "changes": list(facts.layers),
        "left_out": dict(facts.left_out),
        "damage": [str(damage) for damage in facts.damage],
        "problem": facts.problem,
        "advice": found,
    }


def _wire(facts: Facts, name: str) -> dict[str, Any]:
    wire = facts.features[name]
    return {
        "kinds": sorted(wire.kinds),
        "records": wire.records,
        "missing": facts.survey.rows - wire.records,
        "counts": [wire.min_count, wire.max_count],
    }
