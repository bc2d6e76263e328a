"""Cache format: elements as bytes and back, without pickling, so that opening a stranger's cache runs nothing.

A record of a cache is JSON that describes the elements, followed by the bytes of their arrays:

    at 0      uint32 LE    n, the length of the JSON
    at 4      bytes[n]     nested lists, each with its kind first: ["list", …], ["array", dtype, shape, start]
    at start  bytes        an array's values, row-major; `start` counts from the record's first byte

Each kind stands once in `_Writer` and once in `_Reader`. Whatever the bytes are, `load` gives values or a ValueError.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.dtypes import ML_DTYPES, numpy_dtype
from recordkit.errors import StateError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALIGNMENT: Final = 64
_NUMBERS: Final = "biufcmMSU"  # kinds of dtypes that are plain bytes


def dump(value: Any) -> bytes:
    """Return an element, or a list of them, as bytes.

    Raises:
        StateError: There is something in it that only pickling could keep.
    """
    writer = _CacheWriter()
    try:
        text = json.dumps(writer.node(value), separators=(",", ":")).encode()
    except RecursionError:
        message = "a cache on disk cannot keep lists within lists that deep, or that hold themselves"
        raise StateError(message) from None
    head = len(text).to_bytes(4, "little") + text
    start = _aligned(len(head))
    return b"".join([head, bytes(start - len(head)), *writer.pieces])


def load(data: bytes) -> Any:
    """Return what `dump` was given.

    Raises:
        ValueError: The bytes do not come from `dump`.
    """
    size = int.from_bytes(data[:4], "little")
    try:
        tree = json.loads(data[4 : 4 + size])
        return _CacheReader(bytearray(data), _aligned(4 + size)).value(tree)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        message = f"these bytes do not hold cached elements: {error}"
        raise ValueError(message) from error


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class _CacheWriter:
    """Describes values, and collects the bytes of their arrays."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._end = 0

    def node(self, value: Any) -> Any:
        """Return the JSON for a value."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return ["int", f"{value:x}"]  # Python limits the decimal digits of large integers, and they are slow
        if kind is float:
            return ["float", value.hex()]
        if kind is bytes:
            return ["bytes", self._put(value), len(value)]
        if kind is list or kind is tuple:
            return [kind.__name__, *map(self.node, value)]
        if kind is dict:
            return ["dict", *([self.node(key), self.node(item)] for key, item in value.items())]
        if isinstance(value, np.generic):
            return ["scalar", *self._array(np.asarray(value))]
        return self._columns(value)

    def _columns(self, value: Any) -> Any:
        kind = type(value)
        if kind is np.ndarray and value.dtype == object:
            return ["objects", list(value.shape), *map(self.node, value.flat)]
        if kind is np.ndarray:
            return ["array", *self._array(value)]
        if kind is BytesColumn:
            value = value[:]  # a view may be part of a larger buffer
            return ["column", self.node(value.data), self.node(value.offsets), value.text, list(value.shape)]
        if kind is Ragged:
            value = value[:]
            shapes = None if value.shapes is None else self.node(value.shapes)
            levels = None if value.shapes is not None else list(map(self.node, value.offsets))
            return ["ragged", self.node(value.values), levels, shapes]
        if isinstance(value, Batch):
            columns = [[name, self.node(value[name]), self.node(value.valid(name))] for name in value.names]
            return ["batch", len(value), *columns]
        message = (
            f"a cache on disk cannot keep {kind.__module__}.{kind.__qualname__}\n"
            "  It keeps numbers, text, bytes, lists, tuples, dicts, NumPy arrays and columns. Convert it to one of "
            "these before cache(), or make it in a map() after cache()."
        )
        raise StateError(message)

    def _array(self, array: NDArray[Any]) -> tuple[str, list[int], int]:
        dtype = array.dtype
        by_name = dtype.name in ML_DTYPES
        if dtype.kind not in _NUMBERS and not by_name:
            message = (
                f"a cache on disk cannot keep arrays of dtype {dtype}\n"
                "  Convert them to a numeric dtype before cache(), or make them in a map() after cache()."
            )
            raise StateError(message)
        return dtype.name if by_name else dtype.str, list(array.shape), self._put(array.tobytes())

    def _put(self, data: bytes) -> int:
        start = self._end
        self._end = _aligned(start + len(data))
        self.pieces += [data, bytes(self._end - start - len(data))]
        return start


class _CacheReader:
    """Rebuilds values from their descriptions, and checks everything in them first."""

    def __init__(self, data: bytearray, start: int) -> None:
        self._data = data
        self._start = start

    def value(self, node: Any) -> Any:
        """Return the value that a part of the JSON describes."""
        if node is None or isinstance(node, bool | str):
            return node
        kind, *rest = node
        make = getattr(self, f"_{kind}") if kind in _KINDS else None
        if make is None:
            message = f"unknown kind {kind!r}"
            raise ValueError(message)
        return make(*rest)

    def _int(self, digits: str) -> int:
        return int(digits, 16)

    def _float(self, digits: str) -> float:
        return float.fromhex(digits)

    def _bytes(self, start: int, size: int) -> bytes:
        return self._array("|u1", [size], start).tobytes()

    def _list(self, *nodes: Any) -> list[Any]:
        return list(map(self.value, nodes))

    def _tuple(self, *nodes: Any) -> tuple[Any, ...]:
        return tuple(map(self.value, nodes))

    def _dict(self, *pairs: Any) -> dict[Any, Any]:
        return {self.value(key): self.value(item) for key, item in pairs}

    def _scalar(self, dtype: str, shape: list[int], start: int) -> Any:
        return self._array(dtype, shape, start)[()]

    def _array(self, dtype: str, shape: list[int], start: int) -> NDArray[Any]:
        found = numpy_dtype(dtype) if dtype in ML_DTYPES else np.dtype(_text(dtype))
        _check(found.kind in _NUMBERS or dtype in ML_DTYPES, "a dtype that is plain bytes")
        _check(all(type(size) is int and size >= 0 for size in shape), "sizes of an array")
        _check(type(start) is int and start >= 0, "the start of an array")
        start += self._start
        _check(start + math.prod(shape) * found.itemsize <= len(self._data), "an array within the record")
        return np.ndarray(tuple(shape), found, self._data, start)

    def _objects(self, shape: list[int], *nodes: Any) -> NDArray[Any]:
        _check(math.prod(shape) == len(nodes), "as many objects as the shape says")
        array = np.empty(len(nodes), object)
        for place, node in enumerate(nodes):  # one by one, because NumPy would unpack arrays of one length
            array[place] = self.value(node)
        return array.reshape(shape)

    def _column(self, data: Any, offsets: Any, text: bool, shape: list[int]) -> BytesColumn:
        values, ends = self.value(data), self._offsets(offsets)
        _check(values.dtype == np.uint8 and values.ndim == 1 and len(values) == ends[-1], "bytes up to the last offset")
        _check(math.prod(shape) == len(ends) - 1, "as many values as the shape says")
        if text:
            bytes(values).decode()
            starts = ends[ends < len(values)]
            _check(bool(np.all(values[starts] & 0xC0 != 0x80)), "values that begin with a character")
        return BytesColumn(values, ends, text=bool(text), shape=tuple(shape))

    def _ragged(self, values: Any, levels: Any, shapes: Any) -> Ragged:
        flat = self.value(values)
        _check(isinstance(flat, np.ndarray | BytesColumn), "an array or a column")
        if shapes is not None:
            sizes = self.value(shapes)
            _check(sizes.dtype == np.int64 and sizes.ndim == 2 and bool(np.all(sizes >= 0)), "the shapes of rows")
            inner = len(flat.shape) - 1
            _check(sizes.shape[1] > inner, "a dimension that varies")
            counts = [math.prod(row[: sizes.shape[1] - inner]) for row in sizes.tolist()]
            _check(sum(counts) == len(flat), "as many values as the shapes say")
            _check(all(tuple(row[sizes.shape[1] - inner :]) == flat.shape[1:] for row in sizes.tolist()), "one shape")
            return Ragged.rectangular(flat, sizes)
        offsets = [self._offsets(level) for level in levels]
        _check(bool(offsets), "a level of offsets")
        for level, count in zip(offsets, [*(len(level) - 1 for level in offsets[1:]), len(flat)], strict=True):
            _check(int(level[-1]) == count, "offsets that end where their values do")
        return Ragged(flat, offsets)

    def _offsets(self, node: Any) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = self.value(node)
        _check(offsets.dtype == np.int64 and offsets.ndim == 1 and len(offsets) > 0, "an array of offsets")
        _check(offsets[0] == 0 and bool(np.all(offsets[1:] >= offsets[:-1])), "offsets that rise from 0")
        return offsets

    def _batch(self, rows: int, *columns: Any) -> Batch:
        _check(type(rows) is int and rows >= 0, "a number of rows")
        made, valid = {}, {}
        for name, column, mask in columns:
            made[_text(name)], valid[name] = self.value(column), self.value(mask)
            _check(isinstance(made[name], np.ndarray | BytesColumn | Ragged), "an array or a column")
            _check(len(made[name]) == rows and valid[name].shape == (rows,), "columns of equal length")
            _check(valid[name].dtype == np.bool_, "a mask of booleans")
        return Batch(made, rows, {name: mask for name, mask in valid.items() if not mask.all()})


_KINDS: Final = frozenset(
    ("int", "float", "bytes", "list", "tuple", "dict", "scalar", "array", "objects", "column", "ragged", "batch")
)


def _check(holds: bool, expected: str) -> None:
    if not holds:
        message = f"expected {expected}"
        raise ValueError(message)


def _text(value: Any) -> str:
    _check(isinstance(value, str), "text")
    return str(value)
