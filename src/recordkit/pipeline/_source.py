"""Sources: where the elements of a pipeline come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from ._element_steps import Section
    from ._elements import ElementBlock, Mark, TracedElements, Values
    from ._pipeline import Pipeline


class BlockProducer(Protocol):
    """What gives elements in blocks, from any mark on."""

    def blocks(self, mark: Mark, epoch: int) -> Generator[ElementBlock, None, None]:
        """Yield the blocks after a mark."""
        ...

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known, or there is no end."""
        ...


class Source(Protocol):
    """Where elements come from. One that has no records is a `BlockProducer`, too."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def indexed(self) -> bool:
        """Whether a record can be read by its number."""
        return False

    @property
    def gives_lists(self) -> bool:
        """Whether a batch of the elements is a list, such as of payloads."""
        return False

    def as_records(self) -> RecordSource | None:
        """Return the records to read; None if this gives blocks of elements itself."""
        return None

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known, or there is no end."""
        ...

    def digest(self) -> str:
        """Return an identity of the elements: states of other elements are refused."""
        ...

    def describe(self) -> list[Any] | None:
        """Return what is decoded of the records, as plain data: part of what caches are keyed by."""
        return None

    def summary(self) -> str:
        """Return a line about it for `explain()`."""
        return self.name

    def functions(self) -> Iterable[Any]:
        """Return the user's functions that make the elements."""
        return ()

    def pipelines(self) -> tuple[Pipeline, ...]:
        """Return the pipelines that the elements come from."""
        return ()

    def permissions(self) -> int | None:
        """Return the permissions that all files of the elements allow; None if there are no files."""
        return None


class RecordSource(Source, Protocol):
    """Records with numbers. Can be pickled."""

    @property
    def exact(self) -> bool:
        """Whether every record gives an element: none is skipped as damaged."""
        ...

    @property
    def gives_columns(self) -> bool:
        """Whether records that are read together come as a `Batch`."""
        return False

    @property
    def ends(self) -> NDArray[np.int64]:
        """The number of records up to the end of each file."""
        ...

    @property
    def mean_bytes(self) -> int:
        """About how large a record is."""
        ...

    @property
    def exact_mean_bytes(self) -> int:
        """How large a record is on average: the same for the same records, however they are stored."""
        ...

    @property
    def ahead_bytes(self) -> int | None:
        """How much to read at once, if single records are expensive to read; else None."""
        return None

    @property
    def first_bytes(self) -> int | None:
        """How much to read at first, so that the first records come soon; each read after it is twice as large."""
        return None

    @property
    def most_rows(self) -> int | None:
        """How many records to decode at a time at most; None for as many as fit."""
        return None

    def count(self) -> int:
        """Return how many records there are."""
        ...

    def expect(self, count: int) -> None:
        """Hint that about `count` random lookups follow."""

    def load(self, numbers: NDArray[np.int64]) -> LoadedRecords:
        """Read the records with these numbers."""
        ...

    def batches(self, first: int, count: int | None, size: int, workers: int) -> Iterator[tuple[Values, float]]:
        """Yield records from number `first` on, `size` at a time, and the seconds spent on decoding them."""
        ...

    def stream(
        self, first: int, count: int | None, size: int, section: Section, workers: int
    ) -> Iterator[tuple[TracedElements, list[float], float]]:
        """Yield what steps make of records from number `first` on, `size` at a time.

        With the elements come the seconds spent on each step, and on decoding.
        """
        ...

    def place(self, number: int) -> str:
        """Name the file and record of a number, for errors."""
        ...


class LoadedRecords(Protocol):
    """Records that were read and are not decoded yet."""

    def elements(self, start: int, stop: int) -> TracedElements:
        """Decode records [start, stop) of them. Damaged ones may be missing from the result."""
        ...
