"""Dtypes under TensorFlow's names, and their NumPy dtypes."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from recordkit import dtypes

DTypeLike: TypeAlias = "DType | str | np.dtype[Any] | type[Any]"

_OTHER_NAMES: Final = {"half": "float16", "float": "float32", "double": "float64", "str": "string", "object": "string"}


class DType:
    """A TensorFlow dtype, such as `tf.int64`; equal to its name and to its NumPy dtype.

    Attributes:
        name: Such as `"int64"`.

    >>> from recordkit import tf
    >>> tf.int64, tf.int64.name, tf.int64 == np.int64, tf.float32.is_floating
    (tf.int64, 'int64', True, True)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def as_numpy_dtype(self) -> type[Any]:
        """The NumPy type of a value; `object` for strings."""
        return self.numpy.type

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; `object` for strings."""
        return np.dtype(object) if self.name == "string" else dtypes.numpy_dtype(self.name)

    @property
    def is_integer(self) -> bool:
        """Whether values are integers."""
        return self.name in dtypes.INTEGERS

    @property
    def is_floating(self) -> bool:
        """Whether values are real floating-point numbers."""
        return self.name in dtypes.FLOATS

    @property
    def is_complex(self) -> bool:
        """Whether values are complex numbers."""
        return self.name in dtypes.COMPLEXES

    @property
    def is_bool(self) -> bool:
        """Whether values are booleans."""
        return self.name == "bool"

    @property
    def size(self) -> int:
        """The number of bytes of a value; 1 for strings, as in TensorFlow."""
        return 1 if self.name == "string" else self.numpy.itemsize

    @property
    def min(self) -> Any:
        """The smallest value."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """The largest value."""
        return self._limits().max

    def _limits(self) -> Any:
        if self.is_integer:
            return np.iinfo(self.numpy)
        if self.is_floating and self.name not in dtypes.ML_DTYPES:
            return np.finfo(self.numpy)
        message = f"{self!r} has no smallest and largest value"
        raise TypeError(message)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        try:
            return as_dtype(other) is self  # type: ignore[arg-type]
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


_NAMES: Final = (*(each.name for each in dtypes.DTYPES.values() if each.tensor and each.group != "bytes"), "string")
_DTYPES: Final = {name: DType(name) for name in _NAMES}
_NUMPY: Final = {dtype.numpy: dtype for name, dtype in _DTYPES.items() if name not in (*dtypes.ML_DTYPES, "string")}


def as_dtype(value: DTypeLike) -> DType:
    """Return the dtype for a dtype, its name, or a NumPy dtype.

    >>> as_dtype("float32"), as_dtype(np.int64), as_dtype("half")
    (tf.float32, tf.int64, tf.float16)
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        found = _DTYPES.get(_OTHER_NAMES.get(value, value))
    elif value in (float, bool):
        found = _DTYPES["float32" if value is float else "bool"]
    else:
        found = of_numpy(value)
    if found is None:
        message = f"not a TensorFlow dtype: {value!r}\n  Use one of {', '.join(_NAMES)}."
        raise TypeError(message)
    return found


def of_numpy(value: Any) -> DType | None:
    """Return the dtype for a NumPy dtype; None if TensorFlow has no such dtype."""
    try:
        dtype = np.dtype(value)
    except TypeError:
        return None
    found = _NUMPY.get(dtype)
    if found is None and dtype.kind in "OSU":
        return _DTYPES["string"]
    return _DTYPES.get(dtype.name) if found is None else found


bool_, string = _DTYPES["bool"], _DTYPES["string"]
int8, int16, int32, int64 = (_DTYPES[name] for name in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (_DTYPES[name] for name in ("uint8", "uint16", "uint32", "uint64"))
float16, bfloat16, float32, float64 = (_DTYPES[name] for name in ("float16", "bfloat16", "float32", "float64"))
complex64, complex128 = _DTYPES["complex64"], _DTYPES["complex128"]
half, double = float16, float64
