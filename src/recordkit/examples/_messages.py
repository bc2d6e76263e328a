"""Other messages: what payloads are if not Examples, even those that parse as an Example with garbage names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recordkit import records

from ._survey import lint
from ._survey import survey as survey_of

if TYPE_CHECKING:
    from recordkit.examples import Survey
    from recordkit.records import Chunk

_LOOKED_AT: Final = 64
_SMALL: Final = 1 << 20  # bytes; larger payloads are not examined
_EMPTY: Final = (b"", b"\n\0")  # Examples without features
_LISTS: Final = "ExampleListWithContext, as in TF-Ranking"
_MESSAGE: Final = "a protobuf message, but not an Example"
# Examples by other writers may have one of these, but never both in every record.
_OF_OTHERS: Final = {"unknown_field", "no_name_or_value"}


def other_message(chunk: Chunk, survey: Survey) -> str | None:
    """Return a description of payloads that are not Examples; None if they are.

    Args:
        chunk: Records; the first of them are examined.
        survey: The survey of all of them as Examples.

    >>> chunk = records.pack_many([b"one", b"two"])
    >>> other_message(chunk, survey_of(chunk))
    'text'
    """
    found = {**survey.features, **survey.lists}
    small = [number for number in range(min(len(chunk), _LOOKED_AT)) if chunk.lengths[number] <= _SMALL]
    if found and not small:
        return None  # large payloads with fields are trusted
    payloads = [chunk[number] for number in small or range(min(len(chunk), 1))]
    if survey.message != "other" and found:
        if not any(each.kinds for each in found.values()) and _is_list_with_context(payloads[0]):
            return _LISTS
        return _MESSAGE if _are_of_others(payloads) else None
    if survey.message != "other" and all(payload in _EMPTY for payload in payloads):
        return None
    if b"brain.Event:" in payloads[0][:64]:
        return "tf.Event, as TensorBoard reads"
    if all(map(_is_text, payloads)):
        return "text"
    return _MESSAGE if all(map(_is_message, payloads)) else "bytes, but not an Example"


def _are_of_others(payloads: list[bytes]) -> bool:
    """Tell whether every record with features has oddities that no writer of Examples produces."""
    kinds: dict[int, set[str]] = {}
    for finding in lint(payloads):
        kinds.setdefault(finding.record, set()).add(finding.kind)
    bare = [bool(survey_of(records.pack_many([payload])).features) for payload in payloads]
    return any(bare) and all(kinds.get(number, set()) >= _OF_OTHERS for number, has in enumerate(bare) if has)


def _is_list_with_context(payload: bytes) -> bool:
    """Tell whether a payload is a list of Examples, which also parses as an Example with empty features."""
    inner = survey_of(records.pack_many(_first_fields(payload)))
    return inner.message == "Example" and any(each.kinds for each in inner.features.values())


def _first_fields(payload: bytes) -> list[bytes]:
    """Return the values of field 1 in a message whose fields are all length-delimited."""
    found, at = [], 0
    while at < len(payload):
        tag, at = _varint(payload, at)
        length, at = _varint(payload, at)
        if tag == 0x0A:
            found.append(payload[at : at + length])
        at += length
    return found


def _is_message(payload: bytes) -> bool:
    """Tell whether bytes are fields of protobuf's wire format from the first to the last."""
    at = 0
    while at < len(payload):
        tag, at = _varint(payload, at)
        if at < 0 or tag >> 3 == 0:
            return False
        kind = tag & 7
        if kind == 0:
            _, at = _varint(payload, at)
        elif kind == 2:
            length, at = _varint(payload, at)
            at = at + length if at >= 0 else at
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return False
        if at < 0:
            return False
    return at == len(payload)


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    value = 0
    for number, byte in enumerate(payload[at : at + 10]):
        value |= (byte & 127) << (7 * number)
        if byte < 128:
            return value, at + number + 1
    return 0, -1


def _is_text(payload: bytes) -> bool:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\t\r\n" for letter in text)
