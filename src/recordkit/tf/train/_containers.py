"""Containers: the map and the list of messages, which behave like protobuf's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any, ClassVar, Generic, Protocol, overload

from ._message import M, block, copied
from ._repeated import quoted_text


class Entries(Protocol[M]):
    """A message that holds a map; `changing` is called before the map changes."""

    entries: dict[str, M]
    kind: ClassVar[type[Any]]

    def changing(self) -> None: ...


class MessageMap(MutableMapping[str, M], Generic[M]):
    """Messages by name: a view of the message that holds them. Looking up a name that does not exist creates it."""

    __slots__ = ("_map",)

    def __init__(self, entries: Entries[M]) -> None:
        self._map = entries

    def __getitem__(self, key: str) -> M:
        found = self._map.entries.get(key)
        if found is None:
            key = _name(key)
            self._map.changing()
            found = self._map.entries.setdefault(key, self._map.kind())
        return found

    get_or_create = __getitem__

    def __setitem__(self, key: str, value: M | Mapping[str, Any]) -> None:
        made = copied(self._map.kind, value, _field(self._map.kind, key))
        self._map.changing()
        self._map.entries[_name(key)] = made

    def __delitem__(self, key: str) -> None:
        del self._map.entries[_name(key)]
        self._map.changing()

    def __contains__(self, key: object) -> bool:
        return key in self._map.entries

    def get(self, key: str, default: Any = None) -> Any:
        """Return a message, or `default` if there is none; nothing is created."""
        return self._map.entries.get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        """Remove a message and return it."""
        self._map.changing()
        return self._map.entries.pop(key, *default)

    def MergeFrom(self, other: MessageMap[M]) -> None:  # noqa: N802
        """Add copies of the entries of another map; they replace those with the same names."""
        self.update(other)

    def __iter__(self) -> Iterator[str]:
        return iter(self._map.entries)

    def __len__(self) -> int:
        return len(self._map.entries)

    def __eq__(self, other: object) -> bool:
        return self._map.entries == (other._map.entries if isinstance(other, MessageMap) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._map.entries)


def map_lines(field: str, entries: Mapping[str, M]) -> Iterator[str]:
    """Yield the lines that protobuf prints for a map."""
    for key, value in entries.items():
        yield from block(field, [f"key: {quoted_text(key)}", *block("value", value.lines())])


def copied_entries(kind: type[M], entries: Mapping[str, Any]) -> dict[str, M]:
    """Return copies of entries."""
    return {_name(key): copied(kind, entry, _field(kind, key)) for key, entry in dict(entries).items()}


def _field(kind: type[Any], key: Any) -> str:
    return f"{'feature' if kind.__name__ == 'Feature' else 'feature_list'}[{key!r}]"


def _name(key: Any) -> str:
    if isinstance(key, bytes):
        return key.decode()
    if not isinstance(key, str):
        message = f"a feature name must be text, found {type(key).__name__}"
        raise TypeError(message)
    return key


class Steps(Protocol[M]):
    """A message that holds a list of messages; `changing` is called before the list changes."""

    steps: list[M]
    kind: ClassVar[type[Any]]

    def changing(self) -> None: ...


class FeatureSequence(MutableSequence[M], Generic[M]):
    """Messages in order: a view of the message that holds them."""

    __slots__ = ("_list",)

    def __init__(self, steps: Steps[M]) -> None:
        self._list = steps

    def add(self, **fields: Any) -> M:
        """Add a message and return it."""
        made: M = self._list.kind(**fields)
        self._list.changing()
        self._list.steps.append(made)
        return made

    def insert(self, index: int, value: M) -> None:
        """Insert a copy of a message before another."""
        self[index:index] = [value]

    def extend(self, values: Iterable[M]) -> None:
        """Add copies of messages."""
        self[len(self) :] = values

    MergeFrom = extend

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> list[M]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._list.steps[index]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        given = value if isinstance(index, slice) else [value]
        made = [copied(self._list.kind, one, "FeatureList.feature") for one in given]
        self._list.changing()
        if isinstance(index, slice):
            self._list.steps[index] = made
        else:
            (self._list.steps[index],) = made

    def __delitem__(self, index: int | slice) -> None:
        self._list.changing()
        del self._list.steps[index]

    def __len__(self) -> int:
        return len(self._list.steps)

    def __eq__(self, other: object) -> bool:
        return self._list.steps == (other._list.steps if isinstance(other, FeatureSequence) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._list.steps)
