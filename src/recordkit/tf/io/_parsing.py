"""The four functions that parse Examples and SequenceExamples, single ones or batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from recordkit import records
from recordkit.errors import InvalidArgumentError
from recordkit.tf.tensors import convert_to_tensor, string

from ._features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature, VarLenFeature
from ._plan import Plan

if TYPE_CHECKING:
    from recordkit.records import Chunk

    from ._plan import Description

_OF_EXAMPLES: Final = (FixedLenFeature, VarLenFeature, SparseFeature, FixedLenSequenceFeature, RaggedFeature)
_OF_CONTEXTS: Final = (FixedLenFeature, VarLenFeature, RaggedFeature)
_OF_LISTS: Final = (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)


def parse_example(
    serialized: Any, features: Description, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Return the features of serialized Examples as tensors: of a batch, or of a single one.

    Args:
        serialized: A list or a tensor of serialized Examples.
        features: A description for each name.
        example_names: Not used.
        name: Not used.

    Raises:
        SchemaError: A record does not match the description; it is an `InvalidArgumentError`.
        MalformedPayloadError: A payload is not an Example; it is an `InvalidArgumentError`, too.

    >>> from recordkit import tf
    >>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> payload = tf.train.Example(features=tf.train.Features(feature={"label": label})).SerializeToString()
    >>> tf.io.parse_example([payload, payload], {"label": tf.io.FixedLenFeature([], tf.int64)})["label"].numpy()
    array([7, 7])
    """
    if not features:
        message = f"Argument `features` cannot be None or falsy. Got {features}"
        raise ValueError(message)
    chunk, single = _payloads(serialized)
    return _plan(features, "example").parse(chunk, single=single)


def parse_single_example(
    serialized: Any, features: Description, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Return the features of one serialized Example as tensors, without the batch dimension.

    >>> from recordkit import tf
    >>> tf.io.parse_single_example(b"", {"label": tf.io.FixedLenFeature([], tf.int64, 3)})["label"].numpy()
    np.int64(3)
    """
    if not features:
        message = "Invalid argument: `features` cannot be None."
        raise ValueError(message)
    return _plan(features, "example").parse(_one_payload(serialized), single=True)


def parse_sequence_example(
    serialized: Any,
    context_features: Description | None = None,
    sequence_features: Description | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the context and the feature lists of SequenceExamples, and the number of steps of each dense list.

    Args:
        serialized: A list or a tensor of serialized SequenceExamples.
        context_features: A description for each name of the context.
        sequence_features: A description for each feature list: `FixedLenSequenceFeature`, `VarLenFeature` or
            `RaggedFeature`.
        example_names: Not used.
        name: Not used.
    """
    chunk, single = _payloads(serialized)
    return _parsed_sequences(chunk, context_features, sequence_features, single=single)


def parse_single_sequence_example(
    serialized: Any,
    context_features: Description | None = None,
    sequence_features: Description | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the context and the feature lists of one SequenceExample."""
    chunk = _one_payload(serialized)
    return _parsed_sequences(chunk, context_features, sequence_features, single=True)[:2]


def _parsed_sequences(
    chunk: Chunk, context_features: Description | None, sequence_features: Description | None, *, single: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    if not (context_features or sequence_features):
        message = (
            "Both `context_features` and `sequence_features` argument are None, but at least one should have values."
        )
        raise ValueError(message)
    context = _plan(context_features, "context").parse(chunk, single=single) if context_features else {}
    if not sequence_features:
        return context, {}, {}
    lists, steps = _plan(sequence_features, "lists").parse_lists(chunk, single=single)
    return context, lists, steps


def _one_payload(serialized: Any) -> Chunk:
    chunk, single = _payloads(serialized)
    if not single:
        message = "Input serialized must be a scalar"
        raise ValueError(message)
    return chunk


def _payloads(serialized: Any) -> tuple[Chunk, bool]:
    """Return payloads as a chunk, and whether it was a single one."""
    if type(serialized) is bytes:
        return records.pack_many([serialized]), True
    if type(serialized) is list and set(map(type, serialized)) == {bytes}:  # most are, and this check is quick
        return records.pack_many(serialized), False
    tensor = convert_to_tensor(serialized, dtype_hint=string)
    if tensor.dtype is not string:
        message = f"parse_example: expected serialized Examples as strings, found {tensor.dtype.name}"
        raise ValueError(message)
    if tensor.ndim > 1:
        message = f"parse_example: expected one payload or a vector of payloads, found the shape {tensor.shape}"
        raise InvalidArgumentError(message)
    return tensor.chunk(), tensor.ndim == 0


# Plans made so far: by the value of the description, and by the identity of its objects, which is quicker to look up.
# Those objects are kept, so that no others can have their identity.
_by_value: dict[Any, Plan] = {}
_by_objects: dict[Any, tuple[Plan, Any]] = {}
_MOST_PLANS: Final = 256


def _plan(features: Description, what: str) -> Plan:
    objects = (what, *features, *map(id, features.values()))
    known = _by_objects.get(objects)
    if known is not None:
        return known[0]
    if len(_by_objects) >= _MOST_PLANS:
        _by_objects.clear()
        _by_value.clear()
    plan = _plan_by_value(features, what)
    _by_objects[objects] = plan, tuple(features.values())
    return plan


def _plan_by_value(features: Description, what: str) -> Plan:
    allowed = {"example": _OF_EXAMPLES, "context": _OF_CONTEXTS, "lists": _OF_LISTS}[what]
    value = (what, *features.items())
    try:
        plan = _by_value.get(value)
    except TypeError:  # a default that is an array or a list
        return Plan(dict(features), allowed, sequence=what != "example", steps=what == "lists")
    if plan is None:
        plan = Plan(dict(features), allowed, sequence=what != "example", steps=what == "lists")
        _by_value[value] = plan
    return plan
