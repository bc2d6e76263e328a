"""Columns of bytes or text."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core
from recordkit.errors import SchemaError

from . import _arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray


# Empty lists, or offsets that lead to no value. A few bytes in a file can claim any number of them.
MOST_EMPTY = 1 << 24


def check_empty_lists(shape: Sequence[int]) -> None:
    """Refuse to make lists of an array without values that would need more memory than there is.

    Raises:
        SchemaError: The shape is such as [4294967296, 0].
    """
    if 0 in shape and math.prod(shape[: list(shape).index(0)]) > MOST_EMPTY:
        raise too_many_empty(shape)


def too_many_empty(shape: Sequence[int], row: int | None = None) -> SchemaError:
    """Return the error for a shape of too many empty rows."""
    which = "an array" if row is None else f"row {row}"
    message = f"{which} has shape {list(shape)}: so many empty rows have no offsets or lists\n  Use its shape."
    return SchemaError(message)


def to_offsets(lengths: Any) -> NDArray[np.int64]:
    """Return where each of consecutive runs begins, and where the last ends.

    >>> to_offsets([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def picked(values: NDArray[Any], starts: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """Return runs of values end to end: run i begins at `starts[i]` and goes to `offsets[i]:offsets[i + 1]`.

    >>> picked(np.array([5, 6, 7, 8]), np.array([2, 0]), np.array([0, 2, 3])).tolist()
    [7, 8, 5]
    """
    if values.dtype.hasobject:
        taken: NDArray[Any] = values[np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])]
        return taken
    out = np.empty((int(offsets[-1]), *values.shape[1:]), values.dtype)
    if out.size:
        item = values.itemsize * math.prod(values.shape[1:])
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        _core.pick_runs(flat, starts, offsets, item, out.reshape(-1).view(np.uint8))
    return out


class BytesColumn:
    """Values of bytes or text: one buffer, and where each value ends in it.

    Indexing with a number gives `bytes`, or `str` where `text` is set; with a slice or an array, a column.

    Attributes:
        data: The bytes of all values, back to back.
        offsets: Where each value begins, and the end; value i is `data[offsets[i]:offsets[i + 1]]`.
        text: Whether the values are UTF-8 text.
        shape: Rows first; more dimensions if every row holds an array of values.

    >>> names = BytesColumn.of(["ada", "grace"])
    >>> names[1], len(names), names.lengths.tolist()
    ('grace', 2, [3, 5])
    >>> names.to_list()
    ['ada', 'grace']
    """

    __slots__ = ("data", "offsets", "shape", "text")

    def __init__(
        self,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        *,
        text: bool = False,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self.data = data
        self.offsets = offsets
        self.text = text
        self.shape = (len(offsets) - 1,) if shape is None else shape
        if shape is not None and math.prod(shape) != len(offsets) - 1:
            message = f"{len(offsets) - 1} values do not fill the shape {self.shape}"
            raise ValueError(message)

    @classmethod
    def of(cls, values: Iterable[bytes | str], *, text: bool | None = None) -> BytesColumn:
        """Return a column of the values: all bytes, or all text."""
        items: list[Any] = values if isinstance(values, list) else list(values)
        if text is None:
            text = bool(items) and isinstance(items[0], str)
        try:
            data = b"".join(items)
        except TypeError:  # there is text among them
            items = [item.encode() if isinstance(item, str) else bytes(item) for item in items]
            data = b"".join(items)
        offsets = np.fromiter(accumulate(map(len, items), initial=0), np.int64, len(items) + 1)
        if offsets[-1] != len(data):  # memoryviews of wider values
            return cls.of([bytes(item) for item in items], text=text)
        return cls(np.frombuffer(data, np.uint8), offsets, text=text)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of every value."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int | np.integer) and len(self.shape) == 1:
            return self._value(range(len(self))[int(index)])
        inner = self.shape[1:]
        size = math.prod(inner)
        if isinstance(index, int | np.integer):
            row = range(len(self))[int(index)]
            return self._cut(row * size, (row + 1) * size, inner)
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._cut(start * size, max(start, stop) * size, (max(start, stop) - start, *inner))
        rows = np.arange(len(self))[index]
        values = (rows.reshape(-1, 1) * size + np.arange(size)).ravel()
        return self._take(values, inner if rows.ndim == 0 else (len(rows), *inner))

    def _value(self, i: int) -> bytes | str:
        value = self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()
        return value.decode() if self.text else value

    def _cut(self, start: int, stop: int, shape: tuple[int, ...]) -> BytesColumn:
        offsets = self.offsets[start : stop + 1]
        data = self.data[offsets[0] : offsets[-1]]
        return BytesColumn(data, offsets - offsets[0], text=self.text, shape=shape)

    def _take(self, values: NDArray[np.int64], shape: tuple[int, ...]) -> BytesColumn:
        starts = self.offsets[values]
        offsets = to_offsets(self.offsets[values + 1] - starts)
        return BytesColumn(picked(self.data, starts, offsets), offsets, text=self.text, shape=shape)

    def __iter__(self) -> Iterator[Any]:
        return self._values() if len(self.shape) == 1 else (self[i] for i in range(len(self)))

    def _values(self) -> Iterator[bytes | str]:
        view = self.data.data
        values = (view[start:stop].tobytes() for start, stop in pairwise(self.offsets.tolist()))
        return (value.decode() for value in values) if self.text else values

    def reshape(self, shape: tuple[int, ...]) -> BytesColumn:
        """Return the same values in another shape."""
        return BytesColumn(self.data, self.offsets, text=self.text, shape=shape)

    def to_numpy(self) -> NDArray[np.object_]:
        """Return an array of `bytes` or `str` objects."""
        return np.fromiter(self._values(), object, len(self.offsets) - 1).reshape(self.shape)

    def to_list(self) -> list[Any]:
        """Return lists of `bytes` or `str` objects."""
        check_empty_lists(self.shape)
        result: list[Any] = list(self) if len(self.shape) == 1 else self.to_numpy().tolist()
        return result

    def __repr__(self) -> str:
        return f"BytesColumn(shape={self.shape}, {'text' if self.text else 'bytes'}, {self.data.nbytes} bytes)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BytesColumn):
            return NotImplemented
        return (self.text, self.shape) == (other.text, other.shape) and self.to_list() == other.to_list()

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Export the column to Arrow: large_binary or large_utf8, in fixed-size lists if it has more dimensions."""
        return _arrow.export(_arrow.node(self))


def first_invalid_text(column: BytesColumn) -> int | None:
    r"""Return the index of the first value that is not UTF-8, or None.

    >>> first_invalid_text(BytesColumn.of([b"a", "ü".encode()])), first_invalid_text(BytesColumn.of([b"a", b"\xff"]))
    (None, 1)
    """
    start, stop = int(column.offsets[0]), int(column.offsets[-1])
    data = column.data[start:stop]
    if not data.size or int(data.max()) < 0x80:
        return None
    # If all values together are valid text, and none starts inside a character, then each is valid.
    starts = column.offsets[:-1][np.diff(column.offsets) > 0] - start
    inside_a_character = (data[starts] & 0xC0) == 0x80
    try:
        data.tobytes().decode()
        if not inside_a_character.any():
            return None
    except UnicodeDecodeError:
        pass
    return _first_invalid(column)


def _first_invalid(column: BytesColumn) -> int | None:
    for index, (start, stop) in enumerate(zip(column.offsets[:-1].tolist(), column.offsets[1:].tolist(), strict=True)):
        try:
            column.data[start:stop].tobytes().decode()
        except UnicodeDecodeError:
            return index
    return None
