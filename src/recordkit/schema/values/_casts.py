"""Exact casts: an array converted to another dtype, if no value changes.

One rule for every dtype: a value that the field cannot hold is a `Misfit`. Arrays are checked whole: a column of a
million numbers costs a few passes over memory, and none if its dtype is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import dtypes
from recordkit.errors import SchemaError
from recordkit.schema._errors import Misfit
from recordkit.wording import quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fit(array: NDArray[Any], dtype: str, *, rounding: bool = False) -> NDArray[Any]:
    """Return `array` as the numeric dtype named, with the same values.

    Returns the array itself if its dtype is right; else a new one, in this machine's byte order and the same memory
    order.

    Args:
        array: Numbers of any dtype a schema can hold.
        dtype: The name of the dtype to convert to.
        rounding: Round to the nearest value that a float dtype holds. Overflow to infinity is still an error.

    Raises:
        Misfit: At the first value that would change, with its index in row-major order.

    >>> fit(np.array([1, 2]), "uint8")
    array([1, 2], dtype=uint8)
    >>> fit(np.array([0.1]), "float32", rounding=True)
    array([0.1], dtype=float32)
    """
    target = dtypes.numpy_dtype(dtype)
    if array.dtype == target:
        return array
    # Only the byte order differs, so no value can change, NaN and NaT included.
    if array.dtype.newbyteorder("=") == target:
        return array.astype(target)
    source = _source_name(array.dtype, dtype)
    if dtype == "bool" or source == "bool":
        return _fit_bool(array, dtype, target, source)
    if dtype in dtypes.INTEGERS:
        return _fit_integers(array, dtype, target, source)
    if dtype in dtypes.FLOATS:
        return _fit_floats(array, dtype, target, source, rounding=rounding)
    if dtype in dtypes.COMPLEXES:
        return _fit_complexes(array, dtype, target, source, rounding=rounding)
    return _fit_times(array, dtype, target, source, rounding=rounding)


def _source_name(source: np.dtype[Any], dtype: str) -> str:
    """Return the schema's name of an array's dtype; raise if a field of `dtype` takes no such values."""
    if source.kind in "mM" and np.datetime_data(source)[0] == "generic" and dtype.startswith(dtypes.TIMES):
        return source.name  # a NaT may have no unit
    if source.kind in "SUT":
        raise Misfit(found=dtypes.name_of(source), advice="Only string and bytes fields take text.")
    try:
        return dtypes.name_of(source)
    except SchemaError as error:
        advice = "Give each part a field of its own." if source.fields else error.advice
        raise Misfit(found=source.name, advice=advice) from None


def _fit_bool(array: NDArray[Any], dtype: str, target: np.dtype[Any], source: str) -> NDArray[Any]:
    if dtype in dtypes.INTEGERS:
        return array.astype(target)
    advice = "Make it one with `!= 0`." if dtype == "bool" else f"Convert it to {dtype} first."
    raise Misfit(found=_first(array, source), advice=advice)


def _fit_integers(array: NDArray[Any], dtype: str, target: np.dtype[Any], source: str) -> NDArray[Any]:
    if source not in dtypes.INTEGERS:
        advice = f"An integer field takes integers only. Round, then .astype(np.{dtype}); or declare {source}."
        raise Misfit(found=_first(array, source), advice=advice)
    low, high = dtypes.bounds(dtype)
    least, most = dtypes.bounds(source)
    # Only the ends that the source can pass are looked at; Python ints compare exactly with NumPy's of any width.
    bad = np.zeros(array.shape, np.bool_)
    if array.size and least < low and int(array.min()) < low:
        bad |= array < max(low, least)
    if array.size and most > high and int(array.max()) > high:
        bad |= array > high
    _refuse_first(array, bad, f"{dtype} holds {low} to {high}. Declare a wider type.")
    return array.astype(target)


def _fit_floats(array: NDArray[Any], dtype: str, target: np.dtype[Any], source: str, *, rounding: bool) -> NDArray[Any]:
    if source not in (*dtypes.FLOATS, *dtypes.INTEGERS):
        raise Misfit(found=_first(array, source), advice=_declare(source))
    with np.errstate(all="ignore"):
        cast = array.astype(target)
        lost = ~np.isfinite(cast)
        if lost.any():
            lost &= np.isfinite(array) | (np.isnan(array) != np.isnan(cast))  # some dtypes have no infinity
            became = "infinity" if np.isinf(cast[lost]).any() else "NaN"
            _refuse_first(array, lost, f"It overflows to {became} in {dtype}. {_declare('float64')}")
        if rounding:
            return cast
        same = _same_integers(array, cast) if source in dtypes.INTEGERS else _same_floats(array, cast)
    _refuse_first(array, ~same, _inexact(dtype, source), note=source)
    return cast


def _fit_complexes(
    array: NDArray[Any], dtype: str, target: np.dtype[Any], source: str, *, rounding: bool
) -> NDArray[Any]:
    part = "float32" if dtype == "complex64" else "float64"
    if source not in dtypes.COMPLEXES:
        return fit(array, part, rounding=rounding).astype(target)
    # Each half is a float with the rule of floats; the pair is put together as bits, so that NaNs stay as they are.
    cast = np.empty(array.shape, target)
    try:
        cast.real = fit(array.real, part, rounding=rounding)
        cast.imag = fit(array.imag, part, rounding=rounding)
    except Misfit as misfit:
        found = f"{_text(array.reshape(-1)[misfit.index or 0])} ({source})"
        raise Misfit(found=found, advice=_inexact(dtype, source), index=misfit.index) from None
    return cast


def _fit_times(array: NDArray[Any], dtype: str, target: np.dtype[Any], source: str, *, rounding: bool) -> NDArray[Any]:
    if array.dtype.kind != target.kind:
        raise Misfit(found=_first(array, source), advice=_declare(source))
    if np.datetime_data(array.dtype)[0] == "generic" and not np.isnat(array).all():
        raise Misfit(
            found=_first(array, source), advice=f"A number without a unit of time. Use np.{dtype.partition(':')[0]}."
        )
    try:
        cast = array.astype(target)
        back = cast.astype(array.dtype)
    except OverflowError:
        raise Misfit(found=_first(array, source), advice=f"It is outside what {dtype} can hold.") from None
    bad = (back != array) & ~(np.isnat(back) & np.isnat(array))
    # A coarser unit drops the rest, which lossy fields allow; a finer one that differs has wrapped around.
    finer = np.can_cast(array.dtype, target, "safe")
    if finer or not rounding:
        advice = f"It is outside what {dtype} can hold." if finer else f"It is not a whole number of {dtype}. {_LOSSY}"
        _refuse_first(array, bad, advice)
    return cast


_LOSSY = "To allow it: Field(..., lossy=True)."


def _declare(source: str) -> str:
    return f"Declare {source} to keep it as it is."


def _inexact(dtype: str, source: str) -> str:
    package = "ml_dtypes" if dtype in dtypes.ML_DTYPES else "np"
    return (
        f"{dtype} cannot hold it exactly. Round with .astype({package}.{dtype}), declare {source}, "
        f"or allow it: Field(..., lossy=True)."
    )


def _same_floats(array: NDArray[Any], cast: NDArray[Any]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (cast.astype(array.dtype) == array) | np.isnan(array)
    return same


def _same_integers(array: NDArray[Any], cast: NDArray[Any]) -> NDArray[np.bool_]:
    # NumPy compares int64 with float as floats, where 2^63 - 1 equals 2^63. So go back to integers, staying clear of
    # floats that no integer of this dtype equals, whose cast is undefined.
    low, high = dtypes.bounds(array.dtype.name)
    wide = cast.astype(np.float64)
    inside = (wide >= float(low)) & (wide < float(high + 1))
    back = np.where(inside, wide, 0.0).astype(array.dtype)
    same: NDArray[np.bool_] = inside & (back == array)
    return same


def _refuse_first(array: NDArray[Any], bad: NDArray[np.bool_], advice: str, *, note: str = "") -> None:
    if not bad.any():
        return
    index = int(np.flatnonzero(bad)[0])
    value = array.reshape(-1)[index]
    raise Misfit(found=_text(value) + (f" ({note})" if note else ""), advice=advice, index=index)


def _first(array: NDArray[Any], source: str) -> str:
    """Return the first value, for arrays that are refused whole."""
    if array.ndim or not array.size:
        return f"an array of {source}"
    return f"{_text(array[()])} ({source})"


def _text(value: Any) -> str:
    return str(value) if isinstance(value, np.datetime64 | np.timedelta64) else quoted(value.item())
