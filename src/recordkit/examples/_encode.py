"""Encoding: columns as payloads, and features appended, dropped and renamed on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core
from recordkit.columns import BytesColumn
from recordkit.errors import SchemaError

from ._values import KIND_NUMBERS, malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from recordkit.records import Chunk

    from ._values import Values


def encode(columns: Mapping[str, Values], rows: int, *, sequence: bool = False) -> Chunk:
    """Return `rows` framed records with the given features, in the order of the mapping.

    Features with state MISSING or NO_KIND are left out of the record; a record without values gets an empty list.

    Raises:
        SchemaError: Offsets and values contradict each other, or a payload would reach 2 GiB, protobuf's limit.

    >>> from recordkit.examples import Values
    >>> packed = encode({"x": Values("int64", np.array([1]), count=1)}, 1)
    >>> packed[0].hex()
    '0a0c0a0a0a017812051a030a0101'
    """
    for name, column in columns.items():
        if column.steps is not None and not sequence:
            message = f"{name}: a feature list needs a SequenceExample\n  Pass sequence=True."
            raise SchemaError(message, field=name)
    sources = [_source(name, column) for name, column in columns.items()]
    fault, at, chunk = _core.encode(sources, rows, sequence)
    if fault == 1:
        name = list(columns)[at]
        message = f"{name}: its offsets do not fit its values, or the number of rows, {rows}"
        raise SchemaError(message, field=name)
    if fault == 2:
        message = f"row {at}: the record would be 2 GiB or more, which protobuf cannot read\n  Split it into several."
        raise SchemaError(message, record=at)
    return chunk


def _source(name: str, column: Values) -> tuple[Any, ...]:
    kind, steps, states = KIND_NUMBERS[column.kind], column.steps, column.states
    count = -1 if column.offsets is not None or column.count is None else column.count
    values: Any = column.values
    byte_offsets = None
    if isinstance(values, BytesColumn):
        values, byte_offsets = values.data, _contiguous(values.offsets)
    return (
        name,
        kind,
        steps is not None,
        count,
        values if isinstance(values, list) else _contiguous(values),
        byte_offsets,
        _contiguous(column.offsets),
        _contiguous(steps),
        _contiguous(states),
    )


def _contiguous(array: NDArray[Any] | None) -> NDArray[Any] | None:
    return array if array is None or array.flags.c_contiguous else np.ascontiguousarray(array)


def edit(
    chunk: Chunk,
    *,
    drop: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    append: Mapping[str, Values] | None = None,
    replace: bool = False,
    sequence: bool = False,
    path: str | None = None,
) -> Chunk:
    """Return the records with features changed on the wire; everything else is copied without decoding.

    Args:
        chunk: The records to change.
        drop: Features to remove from records that have them.
        rename: New names by old names. It is an error if a record already has a feature of the new name.
        append: Features to add at the end of each record; in a SequenceExample, to the context.
        replace: Whether `append` may replace existing features; otherwise they are an error.
        sequence: Whether `drop` and `rename` also apply to feature lists of a SequenceExample.
        path: The file the chunk came from, to name in errors.

    >>> from recordkit.examples import Values, survey
    >>> packed = encode({"x": Values("int64", np.array([1]), count=1)}, 1)
    >>> longer = edit(packed, append={"y": Values("int64", np.array([2]), count=1)})
    >>> survey(edit(longer, rename={"x": "z"})).features.keys()
    dict_keys(['y', 'z'])
    """
    added, renamed = dict(append or {}), dict(rename or {})
    given = [*renamed.values(), *added]
    if twice := sorted(name for name in set(given) if given.count(name) > 1):
        message = f"{twice[0]}: two features would get this name"
        raise SchemaError(message, field=twice[0])
    tail = encode(added, len(chunk)) if added else None
    # A feature that is renamed makes its old name free.
    in_the_way = set(added) - set(renamed)
    replaced, absent = (in_the_way, set()) if replace else (set(), in_the_way)
    fault, wire, record, byte, name, changed = _core.rewrite(
        chunk, set(drop), renamed, replaced, absent, sequence, tail
    )
    if fault == 1:
        raise malformed(chunk, record, wire, byte, path)
    if fault:
        number = chunk.first_record + record
        where = f"{path}: record {number}" if path else f"record {number}"
        if fault == 2:
            way_out = f"drop=[{name!r}]" if name in renamed.values() else "replace=True"
            text = f"{name}: the record already has a feature of this name\n  In {where}. To replace it: {way_out}."
            raise SchemaError(text, field=name, record=number, path=path)
        text = f"{where}: with the new features it would be 2 GiB or more, which protobuf cannot read"
        raise SchemaError(text, record=number, path=path)
    return changed
