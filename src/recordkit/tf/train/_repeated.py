"""Repeated: the values of a list message, checked when they are added.

Numbers that are added as arrays stay arrays until someone asks for one of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import TYPE_CHECKING, Any, Final, Protocol, overload

import numpy as np

from recordkit.dtypes import little_endian
from recordkit.tf.tensors import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Values(Protocol):
    """A list message: it holds the values; `changing` is called before they change."""

    data: list[Any] | NDArray[Any]

    def changing(self) -> None: ...


class Repeated(MutableSequence[Any]):
    """The values of a BytesList, FloatList or Int64List: a view of the message, which holds them."""

    __slots__ = ("_list",)

    def __init__(self, values: Values) -> None:
        self._list = values

    def _items(self) -> list[Any]:
        data = self._list.data
        items: list[Any] = data if isinstance(data, list) else data.tolist()
        self._list.data = items
        return items

    def _taken(self, values: Any) -> list[Any]:
        taken = take(self._list, values)
        return taken if isinstance(taken, list) else taken.tolist()

    def append(self, value: Any) -> None:
        """Add a value."""
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        """Add values; of an array or a tensor, all of its elements."""
        taken = take(self._list, values)
        self._list.changing()
        if not len(self._list.data):
            self._list.data = taken
        else:
            self._items().extend(taken if isinstance(taken, list) else taken.tolist())

    def insert(self, index: int, value: Any) -> None:
        """Insert a value before another."""
        self[index:index] = [value]

    MergeFrom = extend

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Sort the values."""
        self._list.changing()
        self._items().sort(key=key, reverse=reverse)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._items()[index]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            new = self._taken(value)
        else:
            (new,) = self._taken([value])
        self._list.changing()
        self._items()[index] = new

    def __delitem__(self, index: int | slice) -> None:
        self._list.changing()
        del self._items()[index]

    def __len__(self) -> int:
        return len(self._list.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(wire(self._list), dtype or (object if type(self._list).__name__ == "BytesList" else None))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Repeated):
            return self._items() == other._items()
        return self._items() == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._items())


def take(message: Values, values: Any) -> list[Any] | NDArray[Any]:
    """Check values, and return them as a list message stores them; the result is not shared."""
    kind = type(message).__name__
    taken: list[Any] | NDArray[Any] = _TAKE[kind](values, f"{kind}.value")
    return taken


def wire(message: Values) -> list[bytes] | NDArray[Any]:
    """Return the values of a list message for the encoder."""
    dtype = _DTYPES.get(type(message).__name__)
    return message.data if dtype is None else np.asarray(message.data, dtype)


def lines(message: Values) -> Iterator[str]:
    """Yield the lines that protobuf prints for a list."""
    return (f"value: {_printed(value)}" for value in Repeated(message))


_DTYPES: Final = {"FloatList": np.float32, "Int64List": np.int64}


def _wrong(field: str, expected: str, value: Any, advice: str = "") -> TypeError:
    return TypeError(f"{field}: expected {expected}, found {type(value).__name__}{advice}")


def _arrays(values: Any, field: str, expected: str) -> NDArray[Any] | list[Any]:
    """Return an array or a tensor as an array, and other values as a list."""
    if type(values) is list:
        return values
    if isinstance(values, Tensor | Repeated):
        return np.asarray(values)
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise _wrong(field, f"a list of {expected}", values, "\n  Put it in brackets: value=[...].")
    return list(values)


def _ints(values: Any, field: str) -> NDArray[Any]:
    given = _arrays(values, field, "ints")
    if isinstance(given, list):
        if set(map(type, given)) == {int}:  # most lists are, and this check is quick
            return _int_array(given, field)
        return _int_array([_int(value, field) for value in given], field)
    if given.size and given.dtype.kind not in "iub":
        return _ints(given.reshape(-1).tolist(), field) if given.dtype.kind == "O" else _refuse(field, "int", given)
    return _int_array(given.reshape(-1), field)


def _refuse(field: str, expected: str, array: NDArray[Any]) -> Any:
    message = f"{field}: expected {expected}, found an array of {array.dtype}\n  Convert it: .astype(...)."
    raise TypeError(message)


def _int(value: Any, field: str) -> Any:
    try:
        return operator.index(value)
    except TypeError:
        pass
    if isinstance(value, np.ndarray | np.bool_ | Tensor):
        return _ints(np.asarray(value), field)
    raise _wrong(field, "int", value)


def _int_array(numbers: Any, field: str) -> NDArray[Any]:
    try:
        if isinstance(numbers, list):
            return _joined(numbers, np.int64)
        if numbers.dtype != np.uint64 or numbers.max(initial=0) < 2**63:
            return np.array(numbers, np.int64)
    except OverflowError:
        pass
    message = f"{field}: Value out of range: an int64 holds -2^63 to 2^63 - 1"
    raise ValueError(message)


def _floats(values: Any, field: str) -> NDArray[Any]:
    given = _arrays(values, field, "floats")
    if isinstance(given, list):
        plain = set(map(type, given)) == {float}
        given = np.array(given) if plain else _joined([_float(value, field) for value in given], np.float64)
    if given.size and given.dtype.kind not in "iubf":
        return _floats(given.reshape(-1).tolist(), field) if given.dtype.kind == "O" else _refuse(field, "float", given)
    # As in protobuf, values beyond the range of float32 become infinite.
    with np.errstate(over="ignore"):
        return np.array(given.reshape(-1), np.float32)


def _joined(values: list[Any], dtype: type) -> NDArray[Any]:
    """Return numbers, and arrays of them, as one array."""
    if any(isinstance(value, np.ndarray) for value in values):
        return np.concatenate([np.atleast_1d(value) for value in values])
    return np.array(values, dtype)


def _float(value: Any, field: str) -> Any:
    if isinstance(value, np.ndarray | Tensor):
        return _floats(value if value.ndim else value.reshape(-1), field)
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise _wrong(field, "float", value)
    return float(value)


def _bytes(values: Any, field: str) -> list[bytes]:
    given = _arrays(values, field, "bytes")
    if isinstance(given, np.ndarray):
        return _bytes_of_array(given, field)
    taken: list[bytes] = []
    for value in given:
        if isinstance(value, bytes):
            taken.append(value)
        elif isinstance(value, bytearray | memoryview):
            taken.append(bytes(value))
        elif isinstance(value, np.ndarray | Tensor):
            taken += _bytes_of_array(np.asarray(value), field)
        else:
            advice = "\n  Encode text: value.encode()." if isinstance(value, str) else ""
            raise _wrong(field, "bytes", value, advice)
    return taken


def _bytes_of_array(array: NDArray[Any], field: str) -> list[bytes]:
    """Return the strings of an array; of numbers, the raw bytes, which `tf.io.decode_raw` reads."""
    if array.dtype.kind in "OSU":
        return _bytes(array.reshape(-1).tolist(), field)
    return [little_endian(array).tobytes()]


_TAKE: Final[dict[str, Callable[[Any, str], Any]]] = {"BytesList": _bytes, "FloatList": _floats, "Int64List": _ints}

# --- Text, as protobuf prints it

_ESCAPES: Final = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}


def _printed(value: Any) -> str:
    if isinstance(value, bytes):
        return f'"{_escaped(value)}"'
    if isinstance(value, int):
        return str(value)
    # Six digits if they give the same 32-bit float again, otherwise nine.
    short = f"{value:.6g}"
    return short if value != value or np.float32(short) == np.float32(value) else f"{value:.9g}"


def _escaped(value: bytes) -> str:
    return "".join(_ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in value)


def quoted_text(value: str) -> str:
    """Return text as protobuf prints it."""
    data = value.encode()
    return f'"{value}"' if all(byte >= 0x20 and byte not in _ESCAPES for byte in data) else f'"{_escaped(data)}"'
