"""Times: dates and spans of time against text, exactly, whatever the unit."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._numbers import UFUNCS

if TYPE_CHECKING:
    from numpy.typing import NDArray

# In attoseconds, the finest unit NumPy has. Python's integers do not overflow.
_UNITS = {"as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15, "s": 10**18}
_UNITS |= {"m": 60 * 10**18, "h": 3600 * 10**18, "D": 86400 * 10**18, "W": 7 * 86400 * 10**18}
_MONTHS = {"M": 1, "Y": 12}
_NAT = np.iinfo(np.int64).min

_ISO = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,18}))?)?Z?)?)?)?"
)
_SPAN = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)")
_UNIT = re.compile(r"([0-9]*)([a-zA-Z]+)")


class Instant(NamedTuple):
    """A moment: whole months since 1970, and attoseconds since 1970 and into that month."""

    months: int
    ticks: int
    into_month: int


def instant(text: str) -> Instant:
    """Return the moment that an ISO text names; a date is its first moment.

    >>> instant("1970-02-01")
    Instant(months=1, ticks=2678400000000000000000000, into_month=0)
    """
    match = _ISO.fullmatch(text.strip())
    if match is None:
        message = 'Write "2024-05-01" or "2024-05-01T12:30:00.5", in UTC and without an offset.'
        raise ValueError(message)
    numbers = zip(match.groups(), "011000", strict=False)  # the fraction comes later
    year, month, day, hour, minute, second = (int(part or least) for part, least in numbers)
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError as error:
        message = f"There is no such time: {error}."
        raise ValueError(message) from None
    fraction = int((match[7] or "").ljust(18, "0"))
    since, into = (_ticks(moment - start) + fraction for start in (_EPOCH, datetime.datetime(year, month, 1)))
    return Instant((year - 1970) * 12 + month - 1, since, into)


_EPOCH = datetime.datetime(1970, 1, 1)


def _ticks(span: datetime.timedelta) -> int:
    return (span.days * 86400 + span.seconds) * _UNITS["s"]


def span(text: str, unit: str) -> Fraction:
    """Return a span of time, such as "90s", in a unit.

    >>> span("1.5h", "m")
    Fraction(90, 1)
    """
    match, (count, base) = _SPAN.fullmatch(text.strip()), _parts(unit)
    if match is None or match[2] not in _UNITS | _MONTHS:
        message = f'Write a number and a unit: "90s", "1.5h". Units are {" ".join([*_MONTHS, *_UNITS])}.'
        raise ValueError(message)
    for table in (_UNITS, _MONTHS):
        if base in table and match[2] in table:
            return Fraction(match[1]) * table[match[2]] / (table[base] * count)
    message = "Months and years differ in length; days and shorter units do not go with them."
    raise ValueError(message)


def comparable_units(one: str, other: str) -> bool:
    """Tell whether values of two units can be compared.

    >>> comparable_units("ns", "7D"), comparable_units("D", "M")
    (True, False)
    """
    return (_parts(one)[1] in _MONTHS) == (_parts(other)[1] in _MONTHS)


def _parts(unit: str) -> tuple[int, str]:
    match = _UNIT.fullmatch(unit)
    assert match is not None
    return int(match[1] or 1), match[2]


def compare_times(op: str, left: NDArray[Any], right: NDArray[Any] | str) -> NDArray[np.bool_]:
    """Compare times, or spans, with others or with a text. Like NaN, NaT equals nothing."""
    unit, count = np.datetime_data(left.dtype)
    ufunc: Any = UFUNCS[op]
    result: NDArray[np.bool_]
    if isinstance(right, str):
        is_time = left.dtype.kind == "M"
        value = _in_unit(instant(right), count, unit) if is_time else span(right, f"{count}{unit}")
        result = against(op, left.view(np.int64), value)
        result[np.isnat(left)] = op == "!="
        return result
    if left.dtype == right.dtype:
        result = ufunc(left, right)
        return result
    # Python's integers, as the finer unit may not hold the values of the coarser one.
    result = ufunc(*(_exact(side) for side in (left, right))).astype(np.bool_)
    result[np.isnat(left) | np.isnat(right)] = op == "!="
    return result


def _exact(values: NDArray[Any]) -> NDArray[np.object_]:
    unit, count = np.datetime_data(values.dtype)
    exact: NDArray[np.object_] = values.view(np.int64).astype(object) * (count * (_UNITS | _MONTHS)[unit])
    return exact


def _in_unit(moment: Instant, count: int, unit: str) -> Fraction:
    """Return a moment in a field's unit; in months, a moment inside a month is between two of them."""
    if unit in _UNITS:
        return Fraction(moment.ticks, _UNITS[unit] * count)
    return (moment.months + Fraction(1 if moment.into_month else 0, 2)) / (_MONTHS[unit] * count)


def against(op: str, integers: NDArray[np.int64], value: Fraction) -> NDArray[np.bool_]:
    """Compare integers with one fraction, exactly.

    >>> against("<", np.array([1, 2, 3]), Fraction(5, 2)).tolist()
    [True, True, False]
    """
    floor = value.numerator // value.denominator
    whole = value.denominator == 1
    if not whole and op in ("==", "!="):
        return np.full(integers.shape, op == "!=")
    if not _NAT <= floor < 2**63:
        # All integers are on one side of the fraction.
        return np.full(integers.shape, op in (("!=", ">", ">=") if floor < 0 else ("!=", "<", "<=")))
    if not whole:
        op = {"<": "<=", ">=": ">"}.get(op, op)
    result: NDArray[np.bool_] = UFUNCS[op](integers, np.int64(floor))
    return result
