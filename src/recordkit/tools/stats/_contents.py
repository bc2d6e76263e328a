"""What values are like: numbers, numbers of eight bits, times, complex numbers, byte strings, each in a way of its own.

Each class gathers values of any number in bounded memory, merges with another, and gives facts for `FieldStats`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from recordkit import _core, images
from recordkit.columns import BytesColumn
from recordkit.errors import CorruptRecordError

from ._quantiles import Distinct, Moments, Quantiles, TopValues, ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from numpy.typing import NDArray

SHARES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_TOP: Final = 10
_SAMPLES: Final = 3
# A byte string up to this length is kept whole as a top value.
_SHORT: Final = 64
_SHOWN: Final = 40
# Numbers at a time, so that temporary arrays stay in the processor's cache.
_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class Top:
    """A value, and how often it was met."""

    value: Any
    count: int


class Histogram(NamedTuple):
    """The edges of bins, one more than there are bins, and how many values are in each."""

    edges: tuple[Any, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class ValueSummary:
    """What numbers are like.

    Attributes:
        min: The least; None if there is no value, as all that follows.
        max: The greatest.
        mean: Their mean, as near as a float64 is to the greatest of them; so of whole numbers near 2**63, not exact.
        std: Their standard deviation.
        quantiles: For shares of 0.01 to 0.99, the value that this share of them does not exceed.
        rank_error: How far the rank of a quantile may be off, as a share of all values; 0 where it is exact.
        histogram: How many there are in bins of equal width.
    """

    min: Any = None
    max: Any = None
    mean: Any = None
    std: Any = None
    quantiles: Mapping[float, Any] = field(default_factory=dict)
    rank_error: float = 0.0
    histogram: Histogram | None = None


class Content(Protocol):
    """Gathers values of one sort."""

    what: str

    def __init__(self, type: str = "") -> None: ...  # noqa: A002

    def add(self, values: Any) -> None:
        """Take values of any shape."""

    def merge(self, other: Self) -> None:
        """Take what another has seen."""

    def facts(self) -> dict[str, Any]:
        """Return attributes of `FieldStats`."""


def kind_of(values: NDArray[Any] | BytesColumn) -> type[Content]:
    """Return what gathers these values."""
    if isinstance(values, BytesColumn):
        return StringStats
    if values.dtype.kind in "mM":
        return TimeStats
    if values.dtype.kind == "c":
        return ComplexStats
    return SmallNumberStats if values.dtype.itemsize == 1 else NumberStats


def _pieces(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    flat = values.reshape(-1)
    for start in range(0, len(flat), _PIECE):
        piece = flat[start : start + _PIECE]
        # NumPy sorts and compares float16 slowly, and knows bfloat16 only by name.
        yield piece.astype(np.float32) if piece.dtype.name in ("float16", "bfloat16") else piece


class NumberStats:
    """Whole numbers and floats."""

    what = "numbers"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self.moments = Moments()
        self._quantiles = Quantiles()
        self._distinct = Distinct()
        self._top = TopValues()
        self._zeros = 0

    def add(self, values: NDArray[Any]) -> None:
        """Take numbers of any shape."""
        for piece in _pieces(values):
            self._quantiles.add(piece)
            finite = piece[np.isfinite(piece)] if piece.dtype.kind == "f" else piece
            self.moments.add(finite)
            self._distinct.add(finite)
            self._zeros += len(piece) - int(np.count_nonzero(piece))
            if piece.dtype.kind in "iu":
                self._top.add_array(piece)

    def merge(self, other: NumberStats) -> None:
        """Take what another has seen."""
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
    """Numbers of eight bits and bools, such as pixels: every value is counted, so all is exact."""

    what = "numbers of eight bits"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self._counts = np.zeros(256, np.int64)
        self._dtype: np.dtype[Any] = np.dtype(np.uint8)

    def add(self, values: NDArray[Any]) -> None:
        """Take numbers of any shape."""
        self._dtype = values.dtype
        for piece in _pieces(values):
            self._counts += np.bincount(piece.view(np.uint8), minlength=256)

    def merge(self, other: SmallNumberStats) -> None:
        """Take what another has seen."""
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
    """Times and spans of time: whole numbers of their unit."""

    what = "times"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self._numbers = NumberStats()
        self._missing = 0
        self._dtype: np.dtype[Any] = np.dtype("m8[s]")

    def add(self, values: NDArray[Any]) -> None:
        """Take times of any shape."""
        self._dtype = values.dtype
        none = np.isnat(values)
        self._missing += int(none.sum())
        self._numbers.add(values[~none].view(np.int64))

    def merge(self, other: TimeStats) -> None:
        """Take what another has seen."""
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
            facts["zeros"] = 0  # 1970 is a time like any other
        return facts


def _time(value: float, dtype: np.dtype[Any]) -> Any:
    # A mean or an edge next to the last time NumPy can hold may round to beyond it.
    whole = min(max(round(value), -(2**63) + 1), 2**63 - 1)
    return np.array(whole, np.int64).view(dtype)[()]


class ComplexStats:
    """Complex numbers, which have no order: they are counted."""

    what = "complex numbers"

    def __init__(self, type: str = "") -> None:  # noqa: A002
        self._counts = dict.fromkeys(("values", "nan", "inf", "zeros"), 0)
        self._distinct = Distinct()

    def add(self, values: NDArray[Any]) -> None:
        """Take numbers of any shape."""
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
        """Take what another has seen."""
        self._counts = {name: count + other._counts[name] for name, count in self._counts.items()}
        self._distinct.merge(other._distinct)

    def facts(self) -> dict[str, Any]:
        """Return attributes of `FieldStats`."""
        finite = self._counts["values"] - self._counts["nan"] - self._counts["inf"]
        return self._counts | {"distinct": self._distinct.estimate(finite), "distinct_exact": self._distinct.exact}


class _Long(NamedTuple):
    """A byte string that is too long to keep: how it begins, and what tells it from others."""

    start: bytes
    length: int
    crc: int


class StringStats:
    """Text, byte strings and pictures."""

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
        """Take byte strings of any shape."""
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
        """Count what may be met again. Texts are mostly short; each becomes an object, and equal ones one."""
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
        """Take what another has seen."""
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
    """Return the values met most often."""
    return tuple(Top(value, count) for value, count in top.most_common(_TOP))


def cut(text: str, *, whole: bool = True) -> str:
    """Return a text with its first characters only if it is long, or is not the whole.

    >>> cut("short"), cut("x" * 50)
    ('short', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    return text if whole and len(text) <= _SHOWN else text[:_SHOWN] + "…"
