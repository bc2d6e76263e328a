"""Values: one feature of many records as on the wire, and the error for a malformed payload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from recordkit.columns import BytesColumn
from recordkit.errors import MalformedPayloadError, record_place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recordkit.errors import CorruptRecordError
    from recordkit.records import Chunk

Kind: TypeAlias = Literal["bytes", "float", "int64"]
KINDS: tuple[str, ...] = ("none", "bytes", "float", "int64")
KIND_NUMBERS = {"bytes": 1, "float": 2, "int64": 3}

# The state of a feature in a record, numbered as in the core.
MISSING, NO_KIND, EMPTY, PRESENT = 0, 1, 2, 3


# One sentence for each fault, in the order of the core's enum.
_WIRE_FAULTS = (
    "",
    "a number is cut off or longer than ten bytes",
    "the tag of a field is malformed",
    "a length exceeds its message",
    "the name of a feature is not UTF-8",
    "a list of floats is not a multiple of four bytes long",
)


@dataclass(slots=True, eq=False)
class Values:
    """One feature of many records, as on the wire.

    Attributes:
        kind: `"bytes"`, `"float"` or `"int64"`.
        values: The values of all records, back to back; byte strings may also be a list of `bytes`.
        offsets: Where the values of each record (with `steps`, of each step) begin, and the end; None if each has
            exactly `count`.
        count: The number of values if it is fixed.
        steps: For feature lists, where the steps of each record begin, and the end.
        states: MISSING, NO_KIND, EMPTY or PRESENT for each record; None if all are present.
    """

    kind: Kind
    values: NDArray[np.int64] | NDArray[np.float32] | BytesColumn | list[bytes]
    offsets: NDArray[np.int64] | None = None
    count: int | None = None
    steps: NDArray[np.int64] | None = None
    states: NDArray[np.uint8] | None = None


def cut(column: Values, start: int, stop: int) -> Values:
    """Return the feature of records [start, stop), as a view.

    >>> import numpy as np
    >>> tokens = Values("int64", np.array([1, 2, 3, 4]), offsets=np.array([0, 1, 1, 4]))
    >>> cut(tokens, 1, 3).values.tolist(), cut(tokens, 1, 3).offsets.tolist()
    ([2, 3, 4], [0, 0, 3])
    """
    states = None if column.states is None else column.states[start:stop]
    steps = column.steps
    if steps is not None:
        steps, start, stop = steps[start : stop + 1] - steps[start], int(steps[start]), int(steps[stop])
    offsets = column.offsets
    if offsets is not None:
        offsets, start, stop = offsets[start : stop + 1] - offsets[start], int(offsets[start]), int(offsets[stop])
    elif column.count is not None:
        start, stop = start * column.count, stop * column.count
    values = column.values
    if isinstance(values, BytesColumn):
        places = values.offsets[start : stop + 1]
        values = BytesColumn(values.data[int(places[0]) : int(places[-1])], places - places[0], text=values.text)
    else:
        values = values[start:stop]
    return Values(column.kind, values, offsets, column.count, steps, states)


def malformed(
    chunk: Chunk, record: int, wire: int, byte: int, path: str | None, field: str | None = None
) -> CorruptRecordError:
    number, offset = chunk.first_record + record, int(chunk.offsets[record])
    inside = f" in {field!r}" if field else ""
    at = f"at byte {byte} of {len(chunk[record])}{inside}"
    return MalformedPayloadError(
        f"the payload is not a well-formed Example: {_WIRE_FAULTS[wire]}, {at}",
        place=record_place(path, number, offset),
        advice="Its checksum is right, so it was written like this; it may hold another kind of message.",
        path=path,
        record=number,
        offset=offset,
        byte=byte,
        kind="malformed",
        field=field,
    )
