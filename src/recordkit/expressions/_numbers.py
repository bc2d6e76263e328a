"""Numbers: comparing them exactly, whatever their dtypes.

NumPy compares an int64 with a float64 as two float64s, so that 2**53 + 1 equals 2.0**53. Python does not, and nor does
this module.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

UFUNCS: dict[str, Any] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare_numbers(op: str, left: NDArray[Any], right: NDArray[Any] | float) -> NDArray[np.bool_]:
    """Compare a column of numbers with another, or with one number.

    >>> compare_numbers("==", np.array([2**53, 2**53 + 1]), 2.0**53).tolist()
    [True, False]
    >>> compare_numbers("==", np.array([0.1], np.float32), 0.1).tolist()
    [True]
    """
    if left.dtype.kind == "c":
        return _compare_complex(op, left, right)
    other: Any = right if isinstance(right, np.ndarray) else _as_dtype(right, left.dtype)
    if other.dtype.kind == "c":
        return _compare_complex(op, other, left)
    if other.dtype == left.dtype:
        result: NDArray[np.bool_] = UFUNCS[op](left, other)
        return result
    return _compare_wide(op, _wide(left), _wide(np.asarray(other)))


def _compare_complex(op: str, left: NDArray[Any], right: NDArray[Any] | float) -> NDArray[np.bool_]:
    """Compare with == or !=; complex numbers have no order."""
    if isinstance(right, np.ndarray) and right.dtype.kind == "c":
        equal: NDArray[np.bool_] = left == right
    else:
        equal = compare_numbers("==", left.real, right) & (left.imag == 0)
    return equal if op == "==" else ~equal


def _as_dtype(value: float, dtype: np.dtype[Any]) -> Any:
    """Return a literal as a scalar: of this dtype if that says the same, else of the widest of its own kind."""
    if isinstance(value, float) and value.is_integer() and -(2**63) <= value < 2**64 and dtype.kind in "iub":
        value = int(value)
    if isinstance(value, int):
        value = int(value)  # a bool is a number here
        exact = np.int64(value) if value < 2**63 else np.uint64(value)
        if dtype.kind in "iu":
            return dtype.type(value) if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max else exact
        near = _nearest(value, dtype)
        return near if dtype.kind != "b" and math.isfinite(near) and int(near) == value else exact
    near = _nearest(value, dtype)
    # A value beyond the dtype's largest becomes infinity, or NaN where the dtype has no infinity.
    is_held = math.isinf(near) == math.isinf(value) and not math.isnan(near)
    return near if dtype.kind not in "iub" and is_held else np.float64(value)


def _nearest(value: float, dtype: np.dtype[Any]) -> Any:
    with np.errstate(over="ignore"):
        return (np.dtype(np.float64) if dtype.kind in "iub" else dtype).type(value)


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as int64, uint64 or float64, which hold all others exactly."""
    if values.dtype.kind in "bi" or (values.dtype.kind == "u" and values.dtype.itemsize < 8):
        return values.astype(np.int64, copy=False)
    return values if values.dtype.kind == "u" else values.astype(np.float64, copy=False)


def _compare_wide(op: str, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    floats = left.dtype.kind == "f", right.dtype.kind == "f"
    if floats == (False, True):
        return _int_with_float(op, left, right)
    if floats == (True, False):
        return _int_with_float(FLIPPED[op], right, left)
    # NumPy compares int64 with uint64 exactly.
    result: NDArray[np.bool_] = UFUNCS[op](left, right)
    return result


def _int_with_float(op: str, integers: NDArray[Any], floats: NDArray[np.float64]) -> NDArray[np.bool_]:
    # Rounding keeps order: where the rounded integer differs from the float, so does the integer, to the same side.
    # Where they are equal the float is whole, and can be compared as an integer unless it is just above all of them.
    rounded = integers.astype(np.float64)
    top = 2.0**63 if integers.dtype.kind == "i" else 2.0**64
    tied = (rounded == floats) & (floats < top)
    whole = np.where(tied, floats, 0).astype(integers.dtype)
    below = np.where(tied, integers < whole, (rounded < floats) | ((rounded == floats) & (floats >= top)))
    equal = tied & (integers == whole)
    nan = np.isnan(floats)
    signs = np.where(below, -1, np.where(equal, 0, 1))
    result: NDArray[np.bool_] = np.where(nan, op == "!=", UFUNCS[op](signs, 0))
    return result
