"""The wire format: plain features to bytes and back, many at a time, with the encoder and decoder of the core.

A plain feature is the name of its list and the values, such as `("int64_list", array)`; None if no list is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from recordkit import _core, examples, records
from recordkit.columns import BytesColumn
from recordkit.errors import MalformedPayloadError
from recordkit.examples import Decoder, Values
from recordkit.examples.wire_format import BYTES, bytes_field, fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from recordkit.examples import Kind

Plain: TypeAlias = "tuple[str, list[bytes] | NDArray[Any]] | None"

_KINDS: dict[str, Kind] = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64"}


def example_bytes(features: Mapping[str, Plain]) -> bytes:
    """Return a serialized Example."""
    columns = {name: _values(*feature) for name, feature in features.items() if feature is not None}
    if columns and len(columns) == len(features):
        return examples.encode(columns, 1)[0]
    # The encoder leaves out features without a list, which a message keeps.
    bodies = feature_bodies(list(features.values()))
    return bytes_field(1, b"".join(entry(name, one) for name, one in zip(features, bodies, strict=True)))


def features_body(features: Mapping[str, Plain]) -> bytes:
    """Return a serialized Features message."""
    return body(example_bytes(features))


def feature_bodies(features: Sequence[Plain]) -> Iterator[bytes]:
    """Yield each serialized Feature; they are encoded together, as the features of one Example."""
    columns = {str(i): _values(*feature) for i, feature in enumerate(features) if feature is not None}
    entries = fields(memoryview(body(examples.encode(columns, 1)[0]))) if columns else iter(())
    encoded = (bytes(value) for _, _, one in entries for number, _, value in fields(one) if number == 2)
    return (next(encoded) if feature is not None else b"" for feature in features)


def _values(field: str, values: list[bytes] | NDArray[Any]) -> Values:
    return Values(_KINDS[field], values, None, len(values))


def entry(name: str, value: bytes) -> bytes:
    """Return a map entry, as a field of the message that holds the map."""
    return bytes_field(1, bytes_field(1, name.encode()) + bytes_field(2, value))


def body(message: bytes) -> bytes:
    """Return the contents of all fields of a message, end to end, which merges them; all are messages or bytes."""
    return b"".join(bytes(value) for _, _, value in fields(memoryview(message)))


# --- Decoding


def plain_features(payload: bytes) -> dict[str, Plain]:
    """Return the features of a serialized Example.

    Raises:
        MalformedPayloadError: The payload is not an Example.
    """
    chunk = records.pack_many([payload])
    found = _core.survey(chunk, 0, 1)
    if found["malformed"]:
        problem = examples.survey(chunk).problem
        assert problem is not None
        raise problem
    features: dict[str, Plain] = dict.fromkeys(found["features"])
    wanted = tuple(
        (name, field) for name, facts in found["features"].items() for field in _KINDS if facts[_KINDS[field]]
    )
    decoded = _decoder(wanted).decode(chunk)
    for name, field in wanted:
        values = decoded[name].values
        features[name] = field, (values.to_list() if isinstance(values, BytesColumn) else values)
    return features


_decoders: dict[tuple[tuple[str, str], ...], Decoder] = {}


def _decoder(wanted: tuple[tuple[str, str], ...]) -> Decoder:
    """Return the decoder for these features, from a cache: the records of a file mostly have the same."""
    known = _decoders.get(wanted)
    if known is None:
        if len(_decoders) >= 64:
            _decoders.clear()
        features = [examples.Feature(name, _KINDS[field], missing="mark") for name, field in wanted]
        known = _decoders[wanted] = Decoder(features)
    return known


def plain_lists(bodies: Iterable[Any]) -> dict[str, list[Plain]]:
    """Return the feature lists in FeatureLists messages; the last one of each name."""
    steps: dict[str, list[bytes]] = {}
    for lists in bodies:
        for one in parts(lists, 1):
            name, own = _list_entry(one)
            steps[name] = own
    # One call of the decoder for all steps of all lists, as the features of one Example.
    flat = [step for own in steps.values() for step in own]
    features = plain_features(bytes_field(1, b"".join(entry(str(i), step) for i, step in enumerate(flat))))
    numbers = iter(range(len(flat)))
    return {name: [features[str(next(numbers))] for _ in own] for name, own in steps.items()}


def _list_entry(data: memoryview) -> tuple[str, list[bytes]]:
    """Return the name and the steps of a map entry."""
    names, values = parts(data, 1), parts(data, 2)
    try:
        name = bytes(names[-1]).decode() if names else ""
    except UnicodeDecodeError:
        message = "the name of a feature list is not UTF-8"
        raise MalformedPayloadError(message, kind="malformed") from None
    return name, [bytes(step) for value in values for step in parts(value, 1)]


def parts(message: Any, wanted: int) -> list[memoryview]:
    """Return all values of the field with number `wanted` in a serialized message."""
    try:
        found = list(fields(memoryview(message)))
    except (IndexError, ValueError):
        text = f"{len(message)} bytes that are not a complete message"
        raise MalformedPayloadError(text, kind="malformed") from None
    return [value for number, wire, value in found if number == wanted and wire == BYTES]
