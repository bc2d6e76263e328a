"""Statistics of values: one class each for numbers, 8-bit integers, times, complex numbers and byte strings.

Each class takes any number of values in bounded memory, merges with another, and returns attributes of `FieldStats`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from recordkit import _core, images
from recordkit.columns import BytesColumn
from recordkit.dtypes import widen_floats
from recordkit.errors import CorruptRecordError

from ._counting import Distinct, TopValues
from ._quantiles import Moments, Quantiles, ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from numpy.typing import NDArray

SHARES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_TOP: Final = 10
_SAMPLES: Final = 3
# Byte strings up to this length are kept whole as top values.
_SHORT: Final = 64
_SHOWN: Final = 40
# Numbers at a time, so that temporary arrays stay in the processor's cache.
_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class Top:
    """A value, and how often it occurs."""

    value: Any
    count: int


class Histogram(NamedTuple):
    """The edges of bins, one more than there are bins, and the number of values in each bin."""

    edges: tuple[Any, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class ValueSummary:
    """Statistics of numbers.

    Attributes:
        min: The smallest value; None if there are no values, like all that follow.
        max: The largest value.
        mean: The mean, to the precision of a float64, which is not exact for integers near 2**63.
        std: The standard deviation.
        quantiles: For fractions from 0.01 to 0.99, the value that this fraction of them does not exceed.
        rank_error: How far the rank of a quantile may be off, as a fraction of all values; 0 if it is exact.
        histogram: The number of values in bins of equal width.
    """

    min: Any = None
    max: Any = None
    mean: Any = None
    std: Any = None
    quantiles: Mapping[float, Any] = field(default_factory=dict)
    rank_error: float = 0.0
    histogram: Histogram | None = None


class Content(Protocol):
    """Statistics of one kind of values, before they are final."""

    what: str

    def __init__(self, type: str = "") -> None: ...  # noqa: A002

    def add(self, values: Any) -> None:
        """Add values of any shape."""

    def merge(self, other: Self) -> None:
        """Add the values of another."""

    def facts(self) -> dict[str, Any]:
        """Return attributes of `FieldStats`."""


def kind_of(values: NDArray[Any] | BytesColumn) -> type[Content]:
    """Return the class for these values."""
    if isinstance(values, BytesColumn):
        return StringStats
    if values.dtype.kind in "mM":
        return TimeStats
    if values.dtype.kind == "c":
        return ComplexStats
    return SmallNumberStats if values.dtype.itemsize == 1 and values.dtype.kind in "biu" else NumberStats


def _pieces(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    flat = values.reshape(-1)
    for start in range(0, len(flat), _PIECE):
        yield widen_floats(flat[start : start + _PIECE])


class NumberStats:
    """Statistics of integers and floats."""

    what = "numbers"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self.moments = Moments()
        self._quantiles = Quantiles()
        self._distinct = Distinct()
        self._top = TopValues()
        self._zeros = 0

    def add(self, values: NDArray[Any]) -> None:
        """Add numbers of any shape."""
        for piece in _pieces(values):
            self._quantiles.add(piece)
            finite = piece[np.isfinite(piece)] if piece.dtype.kind == "f" else piece
            self.moments.add(finite)
            self._distinct.add(finite)
            self._zeros += len(piece) - int(np.count_nonzero(piece))
            if piece.dtype.kind in "iu":
                self._top.add_array(piece)

    def merge(self, other: NumberStats) -> None:
        """Add the values of another."""
        self.moments.merge(other.moments)
        self._quantiles.merge(other._quantiles)
        self._distinct.merge(other._distinct)
        self._top.merge(other._top)
        self._zeros += other._zeros

    def summary(self) -> dict[str, Any]:
        """Return the attributes of a `ValueSummary`."""
        if not self.moments.count:
            return {}
        edges, counts = self._quantiles.histogram()
        return {
            "min": self.moments.min,
            "max": self.moments.max,
            "mean": self.moments.mean,
            "std": self.moments.std,
            "quantiles": dict(zip(SHARES, self._quantiles.quantiles(SHARES), strict=True)),
            "rank_error": self._quantiles.rank_error,
            "histogram": Histogram(tuple(edges), tuple(counts)),
        }

    def facts(self) -> dict[str, Any]:
        """Return attributes of `FieldStats`."""
        quantiles = self._quantiles
        return self.summary() | {
            "values": quantiles.count + quantiles.nan + quantiles.inf,
            "nan": quantiles.nan,
            "inf": quantiles.inf,
            "zeros": self._zeros,
            "top": most(self._top),
            "top_exact": self._top.exact,
            "distinct": self._distinct.estimate(quantiles.count),
            "distinct_exact": self._distinct.exact,
        }


class SmallNumberStats:
    """Statistics of bools and 8-bit integers, such as pixels. They are exact, because every value is counted."""

    what = "8-bit integers"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self._counts = np.zeros(256, np.int64)
        self._dtype: np.dtype[Any] = np.dtype(np.uint8)

    def add(self, values: NDArray[Any]) -> None:
        """Add numbers of any shape."""
        self._dtype = values.dtype
        for piece in _pieces(values):
            self._counts += np.bincount(piece.view(np.uint8), minlength=256)

    def merge(self, other: SmallNumberStats) -> None:
        """Add the values of another."""
        self._counts += other._counts
        self._dtype = other._dtype

    def facts(self) -> dict[str, Any]:
        """Return attributes of `FieldStats`."""
        place = np.flatnonzero(self._counts)
        values = place.astype(np.uint8).view(self._dtype)
        order = np.argsort(values)
        values, counts = values[order], self._counts[place][order]
        total = int(counts.sum())
        zeros = int(counts[values == 0].sum())
        facts: dict[str, Any] = {"values": total, "zeros": zeros, "distinct": len(values)}
        return facts | self._summary(values, counts, total) if total else facts

    def _summary(self, values: NDArray[Any], counts: NDArray[np.int64], total: int) -> dict[str, Any]:
        numbers = values.astype(np.float64)
        mean = float(np.dot(numbers, counts)) / total
        places = np.searchsorted(np.cumsum(counts), ranks(SHARES, total))
        top = TopValues()
        top.add_counts(values, counts)
        edges = np.arange(256, step=16) - (128 if self._dtype.kind == "i" else 0)
        bins = np.bincount(np.searchsorted(edges, numbers, side="right") - 1, counts, minlength=16).astype(int)
        whole = Histogram((*edges.tolist(), int(edges[-1]) + 16), tuple(bins.tolist()))
        return {
            "min": values[0].item(),
            "max": values[-1].item(),
            "mean": mean,
            "std": float(np.sqrt(np.dot((numbers - mean) ** 2, counts) / total)),
            "quantiles": {share: values[place].item() for share, place in zip(SHARES, places, strict=True)},
            "top": most(top),
            "histogram": None if self._dtype.kind == "b" else whole,
        }


class TimeStats:
    """Statistics of times and durations, as whole numbers of their unit."""

    what = "times"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self._numbers = NumberStats()
        self._missing = 0
        self._dtype: np.dtype[Any] = np.dtype("m8[s]")

    def add(self, values: NDArray[Any]) -> None:
        """Add times of any shape."""
        self._dtype = values.dtype
        none = np.isnat(values)
        self._missing += int(none.sum())
        self._numbers.add(values[~none].view(np.int64))

    def merge(self, other: TimeStats) -> None:
        """Add the values of another."""
        self._numbers.merge(other._numbers)
        self._missing += other._missing
        self._dtype = other._dtype

    def facts(self) -> dict[str, Any]:
        """Return attributes of `FieldStats`."""
        facts = self._numbers.facts()
        facts["values"] += self._missing
        facts["nan"] = self._missing
        span = np.dtype(f"m8[{''.join(map(str, np.datetime_data(self._dtype)[::-1]))}]")
        for name, dtype in (("min", self._dtype), ("max", self._dtype), ("mean", self._dtype), ("std", span)):
            if facts.get(name) is not None:
                facts[name] = _time(facts[name], dtype)
        facts["quantiles"] = {share: _time(value, self._dtype) for share, value in facts.get("quantiles", {}).items()}
        facts["top"] = tuple(Top(_time(top.value, self._dtype), top.count) for top in facts["top"])
        if histogram := facts.get("histogram"):
            edges = tuple(_time(edge, self._dtype) for edge in histogram.edges)
            facts["histogram"] = Histogram(edges, histogram.counts)
        if self._dtype.kind == "M":
            facts["zeros"] = 0  # 1970 is not a zero
        return facts


def _time(value: float, dtype: np.dtype[Any]) -> Any:
    # A mean or an edge next to the largest time of NumPy may round beyond it.
    whole = min(max(round(value), -(2**63) + 1), 2**63 - 1)
    return np.array(whole, np.int64).view(dtype)[()]


class ComplexStats:
    """Statistics of complex numbers, which have no order and are only counted."""

    what = "complex numbers"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self._counts = dict.fromkeys(("values", "nan", "inf", "zeros"), 0)
        self._distinct = Distinct()

    def add(self, values: NDArray[Any]) -> None:
        """Add numbers of any shape."""
        for piece in _pieces(values):
            nan = np.isnan(piece)
            finite = piece[np.isfinite(piece)]
            found = {
                "values": len(piece),
                "nan": int(nan.sum()),
                "inf": len(piece) - len(finite) - int(nan.sum()),
                "zeros": len(piece) - int(np.count_nonzero(piece)),
            }
            self._counts = {name: count + found[name] for name, count in self._counts.items()}
            self._distinct.add(finite)

    def merge(self, other: ComplexStats) -> None:
        """Add the values of another."""
        self._counts = {name: count + other._counts[name] for name, count in self._counts.items()}
        self._distinct.merge(other._distinct)

    def facts(self) -> dict[str, Any]:
        """Return attributes of `FieldStats`."""
        finite = self._counts["values"] - self._counts["nan"] - self._counts["inf"]
        return self._counts | {"distinct": self._distinct.estimate(finite), "distinct_exact": self._distinct.exact}


class _Long(NamedTuple):
    """A byte string that is too long to keep: its first bytes, and what identifies it."""

    start: bytes
    length: int
    crc: int


class StringStats:
    """Statistics of text, byte strings and pictures."""

    what = "byte strings"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self._pictures = type.removeprefix("sequence of ").startswith(("jpeg", "png"))
        self._sizes = NumberStats()
        self._top = TopValues()
        self._shapes = TopValues()
        self._bad = 0
        self._distinct = Distinct()
        self._samples: list[bytes] = []
        self._text = False
        self._long = False

    def add(self, values: BytesColumn) -> None:
        """Add byte strings of any shape."""
        self._text = values.text
        lengths = values.lengths
        self._sizes.add(lengths)
        self._long = self._long or bool((lengths > _SHORT).any())
        if self._text or not self._long:
            self._count(values, lengths)
        else:
            self._add_keys([_core.crc32c(value) for value in _views(values)], lengths)
        if self._pictures:
            self._add_shapes(values)

    def _count(self, values: BytesColumn, lengths: NDArray[np.int64]) -> None:
        """Count the values. Most texts are short, so each distinct one becomes an object."""
        counts = Counter(map(bytes, _views(values)))
        crcs = [_core.crc32c(value) for value in counts]
        self._add_keys(crcs, np.fromiter(map(len, counts), np.int64, len(counts)))
        keys = (
            value if len(value) <= _SHORT else _Long(value[: 4 * _SHOWN], len(value), crc)
            for value, crc in zip(counts, crcs, strict=True)
        )
        self._top.add_all(zip(keys, counts.values(), strict=True))
        if self._text and len(self._samples) < _SAMPLES:
            self._add_samples([value[: 4 * _SHOWN + 1] for value in counts])

    def _add_samples(self, values: list[bytes]) -> None:
        self._samples = list(dict.fromkeys([*self._samples, *filter(None, values)]))[:_SAMPLES]

    def _add_keys(self, crcs: list[int], lengths: NDArray[np.int64]) -> None:
        # The checksum and the length tell byte strings apart well enough: of 1e7 of one length, 0.1% would be missed.
        self._distinct.add_keys(np.array(crcs, np.uint64) ^ (lengths.astype(np.uint64) << np.uint64(32)))

    def _add_shapes(self, values: BytesColumn) -> None:
        shapes: Counter[tuple[int, ...]] = Counter()
        for value in _views(values):
            try:
                shapes[images.size(value)] += 1
            except CorruptRecordError:
                self._bad += 1
        self._shapes.add_all(shapes.items())

    def merge(self, other: StringStats) -> None:
        """Add the values of another."""
        for name in ("_sizes", "_top", "_shapes", "_distinct"):
            getattr(self, name).merge(getattr(other, name))
        self._bad += other._bad
        self._add_samples(other._samples)
        self._text = self._text or other._text
        self._long = self._long or other._long

    def facts(self) -> dict[str, Any]:
        """Return attributes of `FieldStats`."""
        top = self._top.most_common(_TOP) if self._text or not self._long else []
        facts: dict[str, Any] = {
            "values": self._sizes.moments.count,
            "sizes": ValueSummary(**self._sizes.summary()),
            "bad_pictures": self._bad,
            "top": tuple(Top(self._shown(value), count) for value, count in top),
            "top_exact": self._top.exact,
            "distinct": self._distinct.estimate(self._sizes.moments.count),
            "distinct_exact": self._distinct.exact,
            "samples": tuple(cut(value.decode(errors="replace")) for value in self._samples),
        }
        return facts | ({"shapes": most(self._shapes), "shapes_exact": self._shapes.exact} if self._pictures else {})

    def _shown(self, value: bytes | _Long) -> str | bytes:
        if isinstance(value, _Long):
            return cut(value.start.decode(errors="ignore"), whole=False)
        return value.decode(errors="replace") if self._text else value


def _views(values: BytesColumn) -> Iterator[memoryview]:
    data, ends = values.data.data, values.offsets.tolist()
    return (data[start:stop] for start, stop in pairwise(ends))


def most(top: TopValues) -> tuple[Top, ...]:
    """Return the most common values."""
    return tuple(Top(value, count) for value, count in top.most_common(_TOP))


def cut(text: str, *, whole: bool = True) -> str:
    """Shorten a text that is long, or that is only the start of one.

    >>> cut("short"), cut("x" * 50)
    ('short', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    return text if whole and len(text) <= _SHOWN else text[:_SHOWN] + "…"
