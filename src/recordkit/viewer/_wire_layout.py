"""Wire layout: where each feature is in the bytes of a payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recordkit import examples

if TYPE_CHECKING:
    from recordkit.records import Chunk

_MOST_BYTES: Final = 64 << 20  # more is not worth the memory


def layout(chunk: Chunk) -> dict[str, Any]:
    """Return the message type of the first record of a chunk, and the place, kind and count of each feature.

    >>> import numpy as np
    >>> packed = examples.encode({"x": examples.Values("int64", np.array([5]), count=1)}, 1)
    >>> layout(packed)["features"]
    [{'name': 'x', 'byte': 2, 'bytes': 12, 'kind': 'int64', 'count': 1}]
    """
    payload = chunk[0]
    survey = examples.survey(chunk, 0, 1)
    if survey.message == "other":
        return {"message": "other", "problem": survey.problem.headline if survey.problem else "", "features": []}
    if len(payload) > _MOST_BYTES:
        return {"message": survey.message, "features": []}
    facts = {**survey.features, **survey.lists}
    places = _places(payload, sequence=survey.message == "SequenceExample")
    ends = [*(byte for byte, _ in places[1:]), len(payload)][: len(places)]
    features = [
        {"name": name, "byte": byte, "bytes": end - byte} | (_facts(facts[name]) if name in facts else {})
        for (byte, name), end in zip(places, ends, strict=True)
    ]
    return {"message": survey.message, "features": features, "notes": _notes(payload, survey.message)}


def _places(payload: bytes, *, sequence: bool) -> list[tuple[int, str]]:
    """Return where each feature starts.

    Concatenated messages merge, so in the payload written twice every feature of the second copy repeats a name, and
    the core reports where.
    """
    found = examples.lint([payload + payload], sequence=sequence)
    again = [each for each in found if each.kind == "repeated_name" and each.byte >= len(payload)]
    return sorted((each.byte - len(payload), each.field) for each in again)


def _facts(facts: examples.FeatureFacts) -> dict[str, Any]:
    steps = {"steps": facts.max_steps} if facts.max_steps else {}
    return {"kind": ", ".join(sorted(facts.kinds)) or "none", "count": facts.max_count, **steps}


def _notes(payload: bytes, message: str) -> list[str]:
    """Return what TensorFlow would read differently."""
    found = examples.lint([payload], sequence=message == "SequenceExample")
    return [str(finding).partition(": ")[2] for finding in found[:20]]
