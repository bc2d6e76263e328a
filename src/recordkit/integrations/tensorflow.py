"""TensorFlow: a pipeline as a `tf.data.Dataset`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.errors import MissingExtraError, SchemaError

from ._datasets import masked, optional_names, schema_of

try:
    import tensorflow as tf
except ImportError as error:
    what = "recordkit.integrations.tensorflow"
    raise MissingExtraError(what, "tensorflow", "tensorflow") from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.pipeline import Pipeline, Steps
    from recordkit.schema import Schema

__all__ = ["to_tf_dataset"]


def to_tf_dataset(pipe: Steps, *, signature: Any = None, state: Mapping[str, Any] | None = None) -> Any:
    """Return the elements of a pipeline as a `tf.data.Dataset`; each iteration over it is the next epoch.

    Arrays become tensors, `Ragged` becomes a ragged tensor, bytes and text become strings, times int64 counts of their
    unit. A `Batch` becomes a dict, with a mask `<name>/valid` for each field that may be missing.

    Args:
        pipe: What `recordkit.open` returns, with or without steps.
        signature: The `output_signature` of `tf.data.Dataset.from_generator`. By default it is inferred from the schema
            and from the first element, which is read for this: dimensions that the schema does not declare as `?` are
            fixed, except the first of a batch.
        state: Resume from this state in the first iteration.

    Raises:
        SchemaError: TensorFlow has no tensors for an element; or there are no elements to infer the signature from.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/tokens.tfrecord"
    >>> _ = rk.write(path, [{"tokens": [1, 2]}, {"tokens": []}, {"tokens": [3]}])
    >>> batches = to_tf_dataset(rk.open(path).batch(2))
    >>> batches.element_spec["tokens"]
    RaggedTensorSpec(TensorShape([None, None]), tf.int64, 1, tf.int64)
    >>> [batch["tokens"].to_list() for batch in batches]
    [[[1, 2], []], [[3]]]
    """
    whole = pipe.as_pipeline()
    schema = schema_of(whole)
    optional = optional_names(schema)
    if signature is None:
        signature = _signature(_first(whole, optional), schema)
    coming = [state] if state is not None else []

    def elements() -> Iterator[Any]:
        for element in whole.resume(coming.pop()) if coming else whole:
            yield _tensors(_plain(element, optional), signature)

    return tf.data.Dataset.from_generator(elements, output_signature=signature)


def _first(pipe: Pipeline, optional: tuple[str, ...]) -> Any:
    # From a pipeline of its own, so that this does not count as an epoch of the one that was passed.
    with iter(pipe.take(1)) as elements:
        for element in elements:
            return _plain(element, optional), isinstance(element, Batch)
    message = f"{pipe!r}: there are no elements to infer the signature from\n  Pass signature=."
    raise SchemaError(message)


def _plain(element: Any, optional: tuple[str, ...]) -> Any:
    return masked(element, optional) if isinstance(element, Batch) else element


# --- The signature


def _signature(first: tuple[Any, bool], schema: Schema | None) -> Any:
    element, batch = first
    return _spec(element, "", schema, batch)


def _spec(value: Any, where: str, schema: Schema | None, batch: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _spec(item, f"{where}/{name}" if where else str(name), schema, batch) for name, item in value.items()
        }
    if isinstance(value, tuple):
        items = [_spec(item, f"{where}[{at}]", schema, batch) for at, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, Ragged):
        return _ragged_spec(value)
    if value is None:
        advice = "TensorFlow has no missing values: batch first, which adds a mask, or set a default in map."
        message = f"{where}: missing\n  {advice}"
        raise SchemaError(message, field=where)
    array = _array(value)
    return tf.TensorSpec(_shape(array, where, schema, batch), _dtype(array, where))


def _ragged_spec(column: Ragged) -> Any:
    values = column.values
    inner = values.shape[1:]
    levels = len(column.offsets)
    dtype = tf.string if isinstance(values, BytesColumn) else _dtype(_array(values), "")
    return tf.RaggedTensorSpec([None] * (levels + 1) + list(inner), dtype, levels, tf.int64)


def _shape(array: Any, where: str, schema: Schema | None, batch: bool) -> list[int | None]:
    """Return the dimensions of an array; None for those that vary."""
    field = schema.fields.get(where) if schema is not None else None
    declared = list(field.shape) if field is not None and field.shape is not None else None
    rows, rest = ([None], array.shape[1:]) if batch else ([], array.shape)
    if declared is not None and len(declared) == len(rest):
        return rows + declared
    return rows + list(rest)


def _dtype(array: Any, where: str) -> Any:
    if array.dtype.kind in "OUST":
        return tf.string
    try:
        return tf.as_dtype(array.dtype)
    except TypeError:
        message = f"{where}: TensorFlow has no tensors of {array.dtype.name}"
        raise SchemaError(message, field=where, found=array.dtype.name) from None


# --- Tensors


def _tensors(value: Any, signature: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(signature, Mapping):
        return {name: _tensors(item, signature.get(name)) for name, item in value.items()}
    if isinstance(value, tuple) and isinstance(signature, tuple):
        return tuple(_tensors(item, spec) for item, spec in zip(value, signature, strict=True))
    if isinstance(value, Ragged):
        return _ragged_tensor(value)
    array = _array(value)
    if isinstance(signature, tf.RaggedTensorSpec):  # rows that happen to have one length
        return tf.RaggedTensor.from_tensor(array, ragged_rank=signature.ragged_rank, row_splits_dtype=tf.int64)
    return array


def _ragged_tensor(column: Ragged) -> Any:
    return tf.RaggedTensor.from_nested_row_splits(_array(column.values), column.offsets, validate=False)


def _array(value: Any) -> Any:
    if isinstance(value, BytesColumn):
        return value.to_numpy()
    if isinstance(value, str | bytes):
        return np.array(value, np.object_)
    array = np.asarray(value)
    return array.view(np.int64) if array.dtype.kind in "mM" else array
