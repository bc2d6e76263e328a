"""Dtypes: the names that a schema may use, and how NumPy, Arrow, TensorFlow and records represent each.

To add a dtype of NumPy or ml_dtypes, add a line to `DTYPES` and its name to the two lists in docs/format/schema.md. If
`tf.io.serialize_tensor` supports it, give `recordkit.tf` its name, too.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from recordkit.errors import MissingExtraError, SchemaError
from recordkit.wording import did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DtypeInfo(NamedTuple):
    """A dtype, and how other libraries and the wire represent it.

    Attributes:
        name: Its name in the schema language; for numbers, also in NumPy or ml_dtypes.
        group: The kind of values it has.
        kind: The kind of list of an Example that holds its values; None where arrays are stored as raw bytes.
        most_dims: Arrays of more dimensions are raw bytes too; None for no such limit.
        arrow: The format of its numbers in Arrow's C data interface; empty if Arrow lays them out otherwise.
        tensor: Its number in TensorFlow's DataType, the typed list of a TensorProto that holds its values, and the
            NumPy dtype of a value there, empty for varints. None if TensorFlow does not serialize such tensors.
        ml_itemsize: The bytes of a value, for a dtype that the package ml_dtypes adds to NumPy; 0 for NumPy's own.
    """

    name: str
    group: Literal["bool", "integer", "float", "complex", "bytes"]
    kind: Literal["int64", "float", "bytes"] | None = None
    most_dims: int | None = None
    arrow: str = ""
    tensor: tuple[int, int, str] | None = None
    ml_itemsize: int = 0


# Small integers are varints up to one dimension: with more they are pixels or masks, and raw bytes are smaller.
DTYPES: Final = {
    dtype.name: dtype
    for dtype in (
        DtypeInfo("bool", "bool", "int64", 1, "", (10, 11, "")),
        DtypeInfo("int8", "integer", "int64", 1, "c", (6, 7, "")),
        DtypeInfo("int16", "integer", "int64", 1, "s", (5, 7, "")),
        DtypeInfo("int32", "integer", "int64", 1, "i", (3, 7, "")),
        DtypeInfo("int64", "integer", "int64", None, "l", (9, 10, "")),
        DtypeInfo("uint8", "integer", "int64", 1, "C", (4, 7, "")),
        DtypeInfo("uint16", "integer", "int64", 1, "S", (17, 7, "")),
        DtypeInfo("uint32", "integer", "int64", 1, "I", (22, 16, "")),
        DtypeInfo("uint64", "integer", None, None, "L", (23, 17, "")),
        DtypeInfo("float8_e4m3fn", "float", ml_itemsize=1),
        DtypeInfo("float8_e5m2", "float", ml_itemsize=1),
        DtypeInfo("float16", "float", None, None, "e", (19, 13, "")),
        DtypeInfo("bfloat16", "float", None, None, "", (14, 13, ""), ml_itemsize=2),
        DtypeInfo("float32", "float", "float", None, "f", (1, 5, "<f4")),
        DtypeInfo("float64", "float", None, None, "g", (2, 6, "<f8")),
        DtypeInfo("complex64", "complex", None, None, "", (8, 9, "<f4")),
        DtypeInfo("complex128", "complex", None, None, "", (18, 12, "<f8")),
        DtypeInfo("string", "bytes", "bytes"),
        DtypeInfo("bytes", "bytes", "bytes", None, "", (7, 8, "")),
        DtypeInfo("jpeg", "bytes", "bytes"),
        DtypeInfo("png", "bytes", "bytes"),
    )
}
NAMES: Final = tuple(DTYPES)


def _of(group: str) -> tuple[str, ...]:
    return tuple(dtype.name for dtype in DTYPES.values() if dtype.group == group)


INTEGERS: Final = _of("integer")
FLOATS: Final = _of("float")
COMPLEXES: Final = _of("complex")
BYTES: Final = _of("bytes")
ML_DTYPES: Final = tuple(dtype.name for dtype in DTYPES.values() if dtype.ml_itemsize)
TIMES: Final = ("datetime64", "timedelta64")  # followed by a colon and a unit, and stored as raw bytes

# Longest first, so that "ms" is not read as "m" and a rest.
_UNIT = re.compile(r"([1-9][0-9]*)?(ms|us|ns|ps|fs|as|Y|M|W|D|h|m|s)")

# Names that people try first, and advice.
_OTHER_NAMES: Final = {
    "float": "Write float32 or float64.",
    "double": "Write float64.",
    "half": "Write float16.",
    "int": "Write int64.",
    "long": "Write int64.",
    "byte": "Write uint8 for a number, bytes for a byte string.",
    "str": "Write string.",
    "text": "Write string.",
    "unicode": "Write string.",
    "object": "Write string or bytes, or give each part a field of its own.",
    "complex": "Write complex64 or complex128.",
    "image": "Write jpeg or png for an encoded picture, uint8[?,?,3] for its pixels.",
    "jpg": "Write jpeg.",
    "datetime": "Write datetime64:ns (or another unit).",
    "datetime64": "Add the unit: datetime64:ns.",
    "timedelta": "Write timedelta64:ns (or another unit).",
    "timedelta64": "Add the unit: timedelta64:ns.",
    "float128": "Write float64, and store values with .astype(np.float64).",
    "longdouble": "Write float64, and store values with .astype(np.float64).",
    "complex256": "Write complex128, and store values with .astype(np.complex128).",
    "clongdouble": "Write complex128, and store values with .astype(np.complex128).",
}


def canonical(name: str) -> str:
    """Return the canonical name of a dtype.

    >>> canonical("float32"), canonical("datetime64:1ns")
    ('float32', 'datetime64:ns')
    >>> canonical("flaot32")
    Traceback (most recent call last):
        ...
    recordkit.errors.SchemaError: 'flaot32' is not a dtype a schema can hold
      Did you mean 'float32'?
    """
    if name in NAMES:
        return name
    kind, colon, unit = name.partition(":")
    if kind in TIMES and colon:
        return f"{kind}:{_canonical_unit(unit, name)}"
    hint = _OTHER_NAMES.get(name) or did_you_mean(name, [*NAMES, *TIMES]) or f"There are {', '.join(NAMES)}, {_TIMES}."
    message = f"{name!r} is not a dtype a schema can hold\n  {hint}"
    raise SchemaError(message)


_TIMES: Final = "datetime64:ns and timedelta64:ns (any unit)"


def _canonical_unit(unit: str, name: str) -> str:
    match = _UNIT.fullmatch(unit)
    # NumPy holds the number of a unit in 32 bits.
    if match is None or int(match[1] or 1) >= 2**31:
        message = f"{name!r} has no unit of time NumPy knows\n  Units are Y M W D h m s ms us ns ps fs as."
        raise SchemaError(message)
    count = int(match[1] or 1)
    return match[2] if count == 1 else f"{count}{match[2]}"


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype, in this machine's byte order, of a numeric dtype's name.

    >>> numpy_dtype("uint16"), numpy_dtype("datetime64:25s")
    (dtype('uint16'), dtype('<M8[25s]'))
    """
    if name in ML_DTYPES:
        return _from_ml_dtypes(name)
    kind, colon, unit = name.partition(":")
    return np.dtype(f"{kind}[{unit}]") if colon else np.dtype(name)


def _from_ml_dtypes(name: str) -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError as error:
        raise MissingExtraError(name, "ml_dtypes", "ml_dtypes") from error
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def name_of(dtype: np.dtype[Any]) -> str:
    """Return the schema's name of a NumPy dtype; raise for one that a schema cannot hold.

    >>> name_of(np.dtype(">f8")), name_of(np.dtype("M8[ms]")), name_of(np.dtype("U5"))
    ('float64', 'datetime64:ms', 'string')
    >>> name_of(np.dtype("O"))
    Traceback (most recent call last):
        ...
    recordkit.errors.SchemaError: NumPy's object is not a dtype a schema can hold
      Write string or bytes, or give each part a field of its own.
    """
    if dtype.kind in "UT":
        return "string"
    if dtype.kind == "S":
        return "bytes"
    if dtype.kind in "mM" and np.datetime_data(dtype)[0] != "generic":
        unit, count = np.datetime_data(dtype)
        return canonical(f"{TIMES[0] if dtype.kind == 'M' else TIMES[1]}:{count}{unit}")
    if dtype.name in NAMES and dtype.fields is None:
        return dtype.name
    message = f"NumPy's {dtype.name} is not a dtype a schema can hold"
    hint = _OTHER_NAMES.get(dtype.name, "")
    raise SchemaError(f"{message}\n  {hint}" if hint else message)


def itemsize(name: str) -> int:
    """Return the number of bytes of a number, without importing ml_dtypes."""
    return DTYPES[name].ml_itemsize if name in ML_DTYPES else numpy_dtype(name).itemsize


def is_bytes(name: str) -> bool:
    """Tell whether values are byte strings (text and pictures included) rather than numbers."""
    return name in BYTES


def bounds(name: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer dtype, or of bool."""
    if name == "bool":
        return 0, 1
    info = np.iinfo(name)
    return int(info.min), int(info.max)


def widen_floats(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats of 8 and 16 bits as float32, and other values as they are.

    NumPy sorts and compares float16 slowly, and many of its functions refuse the dtypes of ml_dtypes.

    >>> widen_floats(np.array([0.5], np.float16))
    array([0.5], dtype=float32)
    """
    is_narrow = values.dtype.name == "float16" or values.dtype.name in ML_DTYPES
    return values.astype(np.float32) if is_narrow else values


def little_endian(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the byte order of the wire, which is that of most machines."""
    if values.dtype.isnative and np.little_endian:
        return values
    return values.astype(values.dtype.newbyteorder("<"))
