"""Records in memory, which pipelines read as they read those of a dataset."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.pipeline import Pipeline, RecordSource, Section, TracedElements, traced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from recordkit.pipeline import PipelineIterator

file_sizes = st.lists(st.one_of(st.integers(0, 4), st.integers(0, 60)), max_size=17).filter(lambda s: sum(s) <= 1000)
few_sizes = st.lists(st.integers(0, 9), max_size=6)


@dataclass(frozen=True)
class MappedRecords(RecordSource):
    """Records 0, 1, 2, ... in files of these sizes, as rows with a number and a text.

    Attributes:
        bad: The records that are damaged, and passed over.
        gives_lists: Whether elements are bare numbers.
    """

    sizes: tuple[int, ...]
    bad: frozenset[int] = frozenset()
    gives_lists: bool = False
    mean_bytes: int = 100
    exact_mean_bytes: int = 100
    ahead_bytes: int | None = None
    first_bytes: int | None = None
    indexed: bool = True
    name: str = "memory"

    def as_records(self) -> MappedRecords:
        return self

    @property
    def exact(self) -> bool:
        return not self.bad

    @property
    def gives_columns(self) -> bool:
        return not self.gives_lists

    @property
    def ends(self) -> NDArray[np.int64]:
        return np.array(list(accumulate(self.sizes)), np.int64)

    def count(self) -> int:
        return sum(self.sizes)

    def digest(self) -> str:
        return hashlib.sha256(repr(self.sizes).encode()).hexdigest()

    def place(self, number: int) -> str:
        file = int(np.searchsorted(self.ends, number, side="right"))
        return f"file {file}: record {number - int(self.ends[file - 1] if file else 0)}"

    def values(self, numbers: NDArray[np.int64]) -> Any:
        assert not len(numbers) or 0 <= numbers.min() <= numbers.max() < self.count()
        if self.gives_lists:
            return numbers.tolist()
        return Batch({"id": numbers, "text": BytesColumn.of([f"n{n}" for n in numbers], text=True)}, len(numbers))

    def expect(self, count: int) -> None:
        assert count >= 0

    def load(self, numbers: NDArray[np.int64]) -> _Loaded:
        return _Loaded(self, numbers)

    def batches(self, first: int, count: int | None, size: int, workers: int) -> Iterator[tuple[Any, float]]:
        for made, _, seconds in self.stream(first, count, size, Section(), workers):
            yield made.values, seconds

    def stream(
        self, first: int, count: int | None, size: int, section: Section, workers: int
    ) -> Iterator[tuple[TracedElements, list[float], float]]:
        good = np.array([n for n in range(self.count()) if n not in self.bad], np.int64)
        good = good[first:] if count is None else good[first : first + count]
        for start in range(0, len(good), size):
            numbers = good[start : start + size]
            yield (*section.run(traced(self.values(numbers)), partial(self._place_of, numbers)), 0.0)

    def _place_of(self, some: NDArray[np.int64], at: int) -> str:
        return self.place(int(some[at]))


@dataclass(frozen=True)
class _Loaded:
    source: MappedRecords
    numbers: NDArray[np.int64]

    def elements(self, start: int, stop: int) -> TracedElements:
        numbers = self.numbers[start:stop]
        good = np.array([at for at, number in enumerate(numbers.tolist()) if number not in self.source.bad], np.int64)
        return TracedElements(self.source.values(numbers[good]), (good + 1).tolist(), len(numbers))


def rows(*sizes: int, **more: Any) -> Pipeline:
    """A pipeline of rows in memory, read by one thread."""
    return Pipeline(MappedRecords(sizes, **more), workers=1)


def numbers(*sizes: int, **more: Any) -> Pipeline:
    """A pipeline of bare numbers."""
    return rows(*sizes, gives_lists=True, **more)


def plain(value: Any) -> Any:
    """An element as Python's own values, that can be compared."""
    if isinstance(value, Batch):
        return {name: plain(value[name]) for name in value}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(item) for item in value) if type(value) in (list, tuple) else tuple(map(plain, value))
    if isinstance(value, np.ndarray | np.generic | BytesColumn | Ragged):
        return value.tolist() if isinstance(value, np.ndarray | np.generic) else value.to_list()
    return value


def plain_all(elements: Iterable[Any]) -> list[Any]:
    """All elements as Python's own values."""
    return [plain(element) for element in elements]


def ids(elements: Iterable[Any]) -> list[int]:
    """The numbers of rows, whether in batches or not."""
    found: list[int] = []
    for element in elements:
        value = element["id"] if isinstance(element, dict | Batch) else element
        found += np.atleast_1d(np.asarray(value)).tolist()
    return found


def epoch(pipe: Pipeline, number: int = 0) -> list[Any]:
    """The elements of an epoch, as Python's own values."""
    pipe.set_epoch(number)
    return plain_all(pipe)


def states(pipe: Pipeline, number: int = 0) -> tuple[list[Any], list[Any]]:
    """The elements of an epoch, and the state before the first and behind each, as JSON has them."""
    pipe.set_epoch(number)
    it: PipelineIterator = iter(pipe)
    found, kept = [], [json.dumps(it.state_dict())]
    for element in it:
        found.append(plain(element))
        kept.append(json.dumps(it.state_dict()))
    assert json.dumps(it.state_dict()) == kept[-1], "the end of the loop is not where its last element was"
    return found, list(map(json.loads, kept))
