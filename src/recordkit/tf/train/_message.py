"""Message: the methods that all messages share, under protobuf's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from typing_extensions import Buffer

M = TypeVar("M", bound="Message")


class Message:
    """The base of all messages.

    A subclass defines how to assign a field, merge, clear, encode, decode, compare and print itself.
    """

    __slots__ = ("_owner",)
    fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **fields: Any) -> None:
        # The message that this one is an unset part of; None once it is set.
        self._owner: Parts | None = None
        for name, value in fields.items():
            self._check_field(name)
            if value is not None:
                self._assign(name, value)

    def _check_field(self, name: str) -> None:
        if name not in self.fields:
            message = (
                f'Protocol message {type(self).__name__} has no "{name}" field.\n  It has {", ".join(self.fields)}.'
            )
            raise ValueError(message)

    def _assign(self, name: str, value: Any) -> None:
        raise NotImplementedError

    def merge(self, other: Any) -> None:
        """Merge another message of the same kind into this one."""
        raise NotImplementedError

    def copy(self) -> Self:
        """Return a copy."""
        made = type(self)()
        made.merge(self)
        return made

    def _empty(self) -> None:
        raise NotImplementedError

    def encoded(self, *, ordered: bool) -> bytes:
        """Return the message as bytes, with map entries sorted by name if `ordered`."""
        raise NotImplementedError

    def decode(self, payload: bytes) -> None:
        """Decode bytes into this message, which is new."""
        raise NotImplementedError

    def state(self) -> Any:
        """Return the value that messages are compared by."""
        raise NotImplementedError

    def lines(self) -> Iterator[str]:
        """Yield the lines that protobuf prints."""
        raise NotImplementedError

    def changing(self) -> None:
        """Mark this message as set, before it changes: a part that nobody has touched is unset."""
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.adopt(self)

    def SetInParent(self) -> None:  # noqa: N802
        """Mark this message as set, though it is empty."""
        self.changing()

    def Clear(self) -> None:  # noqa: N802
        """Remove everything."""
        self.changing()
        self._empty()

    def MergeFrom(self, other_msg: Self) -> None:  # noqa: N802
        """Merge another message into this one: lists grow, map entries are replaced."""
        self._check_same("MergeFrom", other_msg)
        self.changing()
        self.merge(other_msg)

    def CopyFrom(self, other_msg: Self) -> None:  # noqa: N802
        """Replace this message's contents with a copy of another's."""
        self._check_same("CopyFrom", other_msg)
        if other_msg is not self:
            self.Clear()
            self.merge(other_msg)

    def _check_same(self, what: str, other: Any) -> None:
        if type(other) is not type(self):
            message = f"{what}: expected {type(self).__name__}, found {type(other).__name__}"
            raise TypeError(message)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:  # noqa: N802
        """Return the message as bytes, with map entries sorted by name if `deterministic`."""
        return self.encoded(ordered=bool(deterministic))

    SerializePartialToString = SerializeToString

    def ByteSize(self) -> int:  # noqa: N802
        """Return the length of the serialized message."""
        return len(self.SerializeToString())

    @classmethod
    def FromString(cls, s: Buffer) -> Self:  # noqa: N802
        """Return a message from its serialized form.

        Raises:
            MalformedPayloadError: The bytes are not such a message.
        """
        message = cls()
        message.decode(bytes(s))
        return message

    def MergeFromString(self, serialized: Buffer) -> int:  # noqa: N802
        """Merge a serialized message into this one; return its length."""
        self.MergeFrom(self.FromString(serialized))
        return len(bytes(serialized))

    def ParseFromString(self, serialized: Buffer) -> int:  # noqa: N802
        """Replace this message's contents with a serialized message; return its length.

        Raises:
            MalformedPayloadError: The bytes are not such a message.
        """
        self.CopyFrom(self.FromString(serialized))
        return len(bytes(serialized))

    def IsInitialized(self) -> bool:  # noqa: N802
        """Tell whether all required fields are set; there are none, so it is True."""
        return True

    def HasField(self, field_name: str) -> bool:  # noqa: N802
        """Tell whether a part is set; it may be empty."""
        self._check_field(field_name)
        message = f"Field {type(self).__name__}.{field_name} does not have presence.\n  Look at its length."
        raise ValueError(message)

    def WhichOneof(self, oneof_group: str) -> str | None:  # noqa: N802
        """Return the part of a oneof that is set."""
        message = f'Protocol message {type(self).__name__} has no "{oneof_group}" field.'
        raise ValueError(message)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message) or type(other) is not type(self):
            return NotImplemented
        return bool(self.state() == other.state())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).FromString, (self.SerializeToString(),)

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self.lines())

    __repr__ = __str__


def block(name: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a message nested in another."""
    yield f"{name} {{"
    yield from (f"  {line}" for line in lines)
    yield "}"


def copied(kind: type[M], value: Any, field: str) -> M:
    """Return a copy of a message, or a message made from a dict of fields; errors name the field."""
    if type(value) is kind:
        return value.copy()
    if isinstance(value, Mapping):
        return kind(**value)
    message = f"{field}: expected {kind.__name__}, found {type(value).__name__}"
    raise TypeError(message)


class Parts(Message):
    """A message whose fields are messages, each of which is set or unset."""

    __slots__ = ("_parts", "_there")
    types: ClassVar[dict[str, type[Message]]] = {}
    one_of: ClassVar[str | None] = None

    def __init__(self, **fields: Any) -> None:
        self._parts: dict[str, Any] = {}
        self._there: list[str] = []
        super().__init__(**fields)

    def part(self, name: str) -> Any:
        """Return a part, set or not; changing it sets it."""
        found = self._parts.get(name)
        if found is None:
            found = self._parts[name] = self.types[name]()
            found._owner = self
        return found

    def parts(self) -> dict[str, Any]:
        """Return the parts that are set."""
        return {name: self._parts[name] for name in self.fields if name in self._there}

    def adopt(self, part: Message) -> None:
        """Mark a part as set, if it still belongs to this message."""
        name = next((name for name, own in self._parts.items() if own is part), None)
        if name is None:
            return
        if self.one_of is not None:
            self._parts, self._there = {name: part}, []
        if name not in self._there:
            self._there.append(name)
        self.changing()

    def _assign(self, name: str, value: Any) -> None:
        self._parts[name] = part = copied(self.types[name], value, f"{type(self).__name__}.{name}")
        self.adopt(part)

    def merge(self, other: Parts) -> None:
        for name, part in other.parts().items():
            self.part(name).MergeFrom(part)

    def _empty(self) -> None:
        self._parts, self._there = {}, []

    def state(self) -> Any:
        return self.parts()

    def lines(self) -> Iterator[str]:
        for name, part in self.parts().items():
            yield from block(name, part.lines())

    def HasField(self, field_name: str) -> bool:  # noqa: N802
        self._check_field(field_name)
        return field_name in self._there

    def ClearField(self, field_name: str) -> None:  # noqa: N802
        """Remove a part."""
        self._check_field(field_name)
        self.changing()
        self._parts.pop(field_name, None)
        self._there = [name for name in self._there if name != field_name]

    def WhichOneof(self, oneof_group: str) -> str | None:  # noqa: N802
        if oneof_group != self.one_of:
            return super().WhichOneof(oneof_group)
        return self._there[0] if self._there else None


class Part(Generic[M]):
    """A field that is a message: reading it does not set it, changing or assigning it does."""

    def __init__(self, name: str, kind: type[M]) -> None:
        self.name = name
        self.__doc__ = f"The {kind.__name__}."

    def __get__(self, message: Parts | None, owner: type[Parts]) -> M:
        if message is None:  # read from the class, which has no value
            raise AttributeError(self.name)
        part: M = message.part(self.name)
        return part

    def __set__(self, message: Parts, value: M | Mapping[str, Any]) -> None:
        message._assign(self.name, value)
