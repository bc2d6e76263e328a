"""Messages: Example, SequenceExample and their parts, which behave like protobuf's classes.

Some things that people write and protobuf refuses work here: assigning to a map or a field, arrays as values. Unknown
fields are dropped when a message is parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic

from recordkit.examples.wire_format import bytes_field

from ._containers import FeatureSequence, MessageMap, copied_entries, map_lines
from ._message import M, Message, Part, Parts, block, copied
from ._repeated import Repeated, lines, take, wire
from ._wire import body, entry, example_bytes, feature_bodies, features_body, parts, plain_features, plain_lists

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

    from numpy.typing import NDArray

    from ._wire import Plain


class _ValueList(Message):
    __slots__ = ("data",)
    fields = ("value",)
    number: ClassVar[int]
    kind: ClassVar[str]

    def __init__(self, *, value: Any = None) -> None:
        super().__init__()
        # An array is never changed in place, so copies of a message can share it.
        self.data: list[Any] | NDArray[Any] = [] if value is None else take(self, value)

    @property
    def value(self) -> Repeated:
        """The values."""
        return Repeated(self)

    @value.setter
    def value(self, values: Any) -> None:
        if isinstance(values, Repeated) and values == Repeated(self):
            return  # after `+=`, which has changed them already
        taken = take(self, values)
        self.changing()
        self.data = taken

    def merge(self, other: _ValueList) -> None:
        if len(self.data):
            Repeated(self).extend(wire(other))
        else:
            self.data = shared(other.data)

    def copy(self) -> Self:
        made = type(self)()
        made.data = shared(self.data)
        return made

    def _empty(self) -> None:
        self.data = []

    def encoded(self, *, ordered: bool) -> bytes:
        return body(next(feature_bodies([(self.kind, wire(self))])))

    def decode(self, payload: bytes) -> None:
        plain = plain_features(bytes_field(1, entry("", bytes_field(self.number, payload))))[""]
        assert plain is not None
        self.data = plain[1]

    def state(self) -> Any:
        return Repeated(self)

    def lines(self) -> Iterator[str]:
        return lines(self)


def shared(data: list[Any] | NDArray[Any]) -> list[Any] | NDArray[Any]:
    """Return values for another message to hold."""
    return list(data) if isinstance(data, list) else data


class BytesList(_ValueList):
    """A list of bytes.

    >>> BytesList(value=[b"a"]).value
    [b'a']
    """

    __slots__ = ()
    kind, number = "bytes_list", 1


class FloatList(_ValueList):
    """A list of 32-bit floats.

    >>> FloatList(value=[0.5]).value
    [0.5]
    """

    __slots__ = ()
    kind, number = "float_list", 2


class Int64List(_ValueList):
    """A list of ints.

    >>> numbers = Int64List(value=[1, 2])
    >>> numbers.value.append(3)
    >>> numbers.value[1:]
    [2, 3]
    """

    __slots__ = ()
    kind, number = "int64_list", 3


class Feature(Parts):
    """The values of a feature: a list of bytes, floats or ints.

    >>> feature = Feature(int64_list=Int64List(value=[1, 2]))
    >>> feature.WhichOneof("kind"), feature.int64_list.value[0]
    ('int64_list', 1)
    """

    __slots__ = ()
    fields = ("bytes_list", "float_list", "int64_list")
    types = {"bytes_list": BytesList, "float_list": FloatList, "int64_list": Int64List}
    one_of = "kind"
    bytes_list = Part("bytes_list", BytesList)
    float_list = Part("float_list", FloatList)
    int64_list = Part("int64_list", Int64List)

    def plain(self) -> Plain:
        """Return the feature as a plain one: see `_wire`."""
        return (self._there[0], wire(self._parts[self._there[0]])) if self._there else None

    @classmethod
    def of_plain(cls, plain: Plain) -> Feature:
        """Return a feature from a plain one."""
        feature = cls()
        if plain is not None:
            own = cls.types[plain[0]]()
            own.data = plain[1]  # type: ignore[attr-defined]
            feature._parts[plain[0]] = own
            feature._there.append(plain[0])
        return feature

    def copy(self) -> Feature:
        """Return a copy, by way of `of_plain`, which is fast: many features are copied."""
        return Feature.of_plain((self._there[0], shared(self._parts[self._there[0]].data)) if self._there else None)

    def encoded(self, *, ordered: bool) -> bytes:
        return next(feature_bodies([self.plain()]))

    def decode(self, payload: bytes) -> None:
        self.merge(Feature.of_plain(plain_features(bytes_field(1, entry("", payload)))[""]))


class _Map(Message, Generic[M]):
    """A message whose only field is a map."""

    __slots__ = ("entries",)
    kind: ClassVar[type[Any]]

    def __init__(self, **fields: Any) -> None:
        self.entries: dict[str, M] = {}
        super().__init__(**fields)

    def _assign(self, name: str, value: Any) -> None:
        made = copied_entries(self.kind, value)
        self.changing()
        self.entries = made

    def merge(self, other: _Map[M]) -> None:
        self.entries.update({name: own.copy() for name, own in other.entries.items()})

    def _empty(self) -> None:
        self.entries = {}

    def state(self) -> Any:
        return self.entries

    def lines(self) -> Iterator[str]:
        return map_lines(self.fields[0], self.entries)

    def ordered(self, *, ordered: bool) -> dict[str, M]:
        """Return the entries, sorted by name if `ordered`."""
        return dict(sorted(self.entries.items())) if ordered else self.entries


class Features(_Map[Feature]):
    """Features by name.

    >>> features = Features()
    >>> features.feature["label"].int64_list.value.append(3)
    >>> features.feature["text"] = Feature(bytes_list=BytesList(value=[b"hello"]))
    >>> sorted(features.feature), "label" in features.feature
    (['label', 'text'], True)
    """

    __slots__ = ()
    fields = ("feature",)
    kind = Feature

    @property
    def feature(self) -> MessageMap[Feature]:
        """The features; looking up a name that does not exist creates it."""
        return MessageMap(self)

    @feature.setter
    def feature(self, entries: Mapping[str, Feature]) -> None:
        self._assign("feature", entries)

    def encoded(self, *, ordered: bool) -> bytes:
        return features_body({name: feature.plain() for name, feature in self.ordered(ordered=ordered).items()})

    def decode(self, payload: bytes) -> None:
        plain = plain_features(bytes_field(1, payload))
        self.entries = {name: Feature.of_plain(feature) for name, feature in plain.items()}


class FeatureList(Message):
    """One feature per step.

    >>> steps = FeatureList(feature=[Feature(int64_list=Int64List(value=[1]))])
    >>> len(steps.feature)
    1
    """

    __slots__ = ("steps",)
    fields = ("feature",)
    kind: ClassVar[type[Feature]] = Feature

    def __init__(self, **fields: Any) -> None:
        self.steps: list[Feature] = []
        super().__init__(**fields)

    @property
    def feature(self) -> FeatureSequence[Feature]:
        """The features."""
        return FeatureSequence(self)

    @feature.setter
    def feature(self, steps: Iterable[Feature]) -> None:
        self._assign("feature", steps)

    def _assign(self, name: str, value: Any) -> None:
        made = [copied(Feature, one, "FeatureList.feature") for one in value]
        self.changing()
        self.steps = made

    def merge(self, other: FeatureList) -> None:
        self.steps += [step.copy() for step in other.steps]

    def _empty(self) -> None:
        self.steps = []

    def encoded(self, *, ordered: bool) -> bytes:
        return b"".join(bytes_field(1, one) for one in feature_bodies([step.plain() for step in self.steps]))

    def decode(self, payload: bytes) -> None:
        self.share(plain_lists([entry("", payload)])[""])

    def share(self, steps: list[Plain]) -> None:
        """Replace the steps."""
        self.steps = [Feature.of_plain(step) for step in steps]

    def state(self) -> Any:
        return self.steps

    def lines(self) -> Iterator[str]:
        for step in self.steps:
            yield from block("feature", step.lines())


class FeatureLists(_Map[FeatureList]):
    """Feature lists by name."""

    __slots__ = ()
    fields = ("feature_list",)
    kind = FeatureList

    @property
    def feature_list(self) -> MessageMap[FeatureList]:
        """The feature lists; looking up a name that does not exist creates it."""
        return MessageMap(self)

    @feature_list.setter
    def feature_list(self, entries: Mapping[str, FeatureList]) -> None:
        self._assign("feature_list", entries)

    def encoded(self, *, ordered: bool) -> bytes:
        """Return the message as bytes; all steps of all lists go to the encoder at once."""
        lists = self.ordered(ordered=ordered)
        bodies = feature_bodies([step.plain() for one in lists.values() for step in one.steps])
        return b"".join(
            entry(name, b"".join(bytes_field(1, next(bodies)) for _ in one.steps)) for name, one in lists.items()
        )

    def decode(self, payload: bytes) -> None:
        self.decode_parts([payload])

    def decode_parts(self, payloads: Iterable[Any]) -> None:
        """Decode a message from several payloads, whose lists are merged."""
        for name, steps in plain_lists(payloads).items():
            self.entries[name] = FeatureList()
            self.entries[name].share(steps)


class Example(Parts):
    """A record: features by name.

    >>> label = Feature(int64_list=Int64List(value=[3]))
    >>> example = Example(features=Features(feature={"label": label}))
    >>> Example.FromString(example.SerializeToString()) == example
    True
    >>> print(example)
    features {
      feature {
        key: "label"
        value {
          int64_list {
            value: 3
          }
        }
      }
    }
    """

    __slots__ = ()
    fields = ("features",)
    types = {"features": Features}
    features = Part("features", Features)

    def encoded(self, *, ordered: bool) -> bytes:
        if not self._there:
            return b""
        entries = self.features.ordered(ordered=ordered)
        return example_bytes({name: feature.plain() for name, feature in entries.items()})

    def decode(self, payload: bytes) -> None:
        plain = plain_features(payload)
        if plain or parts(payload, 1):
            self.features.changing()
            self.features.entries = {name: Feature.of_plain(feature) for name, feature in plain.items()}


class SequenceExample(Parts):
    """A record of a sequence: its context, and feature lists with one feature per step.

    >>> record = SequenceExample()
    >>> record.feature_lists.feature_list["words"].feature.add().bytes_list.value.append(b"hello")
    >>> len(SequenceExample.FromString(record.SerializeToString()).feature_lists.feature_list["words"].feature)
    1
    """

    __slots__ = ()
    fields = ("context", "feature_lists")
    types = {"context": Features, "feature_lists": FeatureLists}
    context = Part("context", Features)
    feature_lists = Part("feature_lists", FeatureLists)

    def encoded(self, *, ordered: bool) -> bytes:
        numbers = {name: number for number, name in enumerate(self.fields, start=1)}
        return b"".join(
            bytes_field(numbers[name], part.encoded(ordered=ordered)) for name, part in self.parts().items()
        )

    def decode(self, payload: bytes) -> None:
        if contexts := parts(payload, 1):
            self.context.changing()
            self.context.decode(b"".join(map(bytes, contexts)))
        if lists := parts(payload, 2):
            self.feature_lists.changing()
            self.feature_lists.decode_parts(lists)
