"""Elements from a function of the user's that yields them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._elements import ElementBlock, gathered, number_of
from ._source import Source
from ._step import failed, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from recordkit.schema import Schema

    from ._elements import Mark, Values

_MOST = 256


def begun(function: Callable[..., Iterable[Any]], *args: Any) -> Iterator[Any]:
    """Call a function of the user's, and return an iterator over its elements."""
    try:
        return iter(function(*args))
    except StopIteration as error:
        raise failed(error, f"from_generator({name_of(function)}) failed") from error


@dataclass(frozen=True)
class GeneratorSource(Source):
    """The elements that a function yields, each time it is called.

    Attributes:
        schema: What its rows must match; None for any elements.
        most: How many elements a block has at most.
    """

    function: Callable[[], Iterable[Any]]
    schema: Schema | None = None
    most: int = _MOST

    @property
    def name(self) -> str:
        """The name of the function."""
        return name_of(self.function)

    def count(self) -> None:
        """Return None: the number is not known."""
        return

    def digest(self) -> str:
        """Return the name, since nothing else is known before the function is called."""
        return f"generator {self.name}"

    def functions(self) -> tuple[Any, ...]:
        """Return the function."""
        return (self.function,)

    def blocks(self, mark: Mark, epoch: int) -> Generator[ElementBlock, None, None]:
        """Yield the elements after a mark; those before it are computed again."""
        given, at = number_of(mark), 0
        with closing(gathered(begun(self.function), self.most)) as lists:
            for values in lists:
                at += len(values)
                if at > given:
                    wanted = values[-min(at - given, len(values)) :]
                    first = at - len(wanted)
                    yield ElementBlock(self._checked(wanted, first), range(first + 1, at + 1))

    def _checked(self, values: list[Any], first: int) -> Values:
        if self.schema is None:
            return values
        try:
            return self.schema.decode(self.schema.encode_rows(values))
        except Exception as error:
            error.add_note(f"{self.name}: among its elements {first} to {first + len(values) - 1}")
            raise
