"""Feature descriptions: a schema as what `tf.io.parse_example` takes, and back.

TensorFlow is imported only to make a description; one that is handed in is known by the names of its classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.dtypes import little_endian
from recordkit.errors import MissingExtraError, SchemaError

from ._fields import Field, field_from_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recordkit.schema.values import Shape

    from ._layout import Layout

_KIND_DTYPES: Final = {"int64": "int64", "float": "float32", "bytes": "string"}
# TensorFlow's string is any bytes.
_DTYPES: Final = {"int64": "int64", "float32": "float32", "string": "bytes"}


def feature_description(layouts: Mapping[str, Layout], tf: Any = None) -> Any:
    """Return the description of all fields; with sequences, the one of the context and the one of the sequences."""
    if tf is None:
        tf = _tensorflow()
    context: dict[str, Any] = {}
    sequences: dict[str, Any] = {}
    for layout in layouts.values():
        (sequences if layout.steps else context).update(_described(layout, tf))
    if not any(layout.steps for layout in layouts.values()):
        return context
    return context, sequences


def _tensorflow() -> Any:
    try:
        import tensorflow
    except ImportError as error:
        what = "to_feature_description"
        raise MissingExtraError(what, "tensorflow", "tensorflow") from error
    return tensorflow


def _described(layout: Layout, tf: Any) -> dict[str, Any]:
    """Return what TensorFlow needs to read each of a field's features."""
    describe = _describe_steps if layout.steps else _describe
    described = {}
    for feature in layout.features:
        own = feature.name == layout.name
        shape: Shape | None = None if feature.count is None else (feature.count,)
        if own and shape is not None:
            shape = layout.sizes if layout.storage == "list" else ()
        elif feature.name == layout.dtype_name:
            shape = ()
        dtype = getattr(tf, _KIND_DTYPES[feature.kind])
        default = _default(layout) if own and layout.field.default is not None else None
        described[feature.name] = describe(tf, shape, dtype, layout.field.optional, default)
    return described


def _default(layout: Layout) -> Any:
    """Return a field's default as TensorFlow takes it: every value of its shape, or the raw bytes."""
    default = layout.field.default
    if layout.is_bytes:
        return np.broadcast_to(np.array(default, np.object_), layout.sizes).tolist()
    array = np.broadcast_to(np.asarray(default, layout.numpy_dtype()), layout.sizes)
    if layout.storage == "raw":
        return little_endian(np.ascontiguousarray(array)).tobytes()
    return array.astype(np.int64 if layout.kind == "int64" else np.float32).tolist()


def _describe(tf: Any, shape: Shape | None, dtype: Any, optional: bool, default: Any) -> Any:
    if shape is None or (optional and default is None):
        # TensorFlow reads a missing one as an empty row.
        return tf.io.RaggedFeature(dtype)
    return tf.io.FixedLenFeature(list(shape), dtype, default)


def _describe_steps(tf: Any, shape: Shape | None, dtype: Any, optional: bool, default: Any) -> Any:
    if shape is None:
        return tf.io.RaggedFeature(dtype)
    return tf.io.FixedLenSequenceFeature(list(shape), dtype, allow_missing=optional)


def fields_of_description(description: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields that read the same as a description of an Example."""
    readers: dict[str, Callable[[str, Any], Field]] = {
        "FixedLenFeature": _fixed,
        "VarLenFeature": _any_length,
        "RaggedFeature": _ragged,
        "FixedLenSequenceFeature": _rows_of_fixed,
    }
    return {name: _read(name, feature, readers) for name, feature in description.items()}


def sequences_of_description(description: Mapping[str, Any]) -> dict[str, Field]:
    """Return the sequences that read the same as a description of feature lists."""
    readers: dict[str, Callable[[str, Any], Field]] = {
        "FixedLenSequenceFeature": _fixed_steps,
        "VarLenFeature": _any_length,
        "RaggedFeature": _ragged,
    }
    return {name: _read(name, feature, readers) for name, feature in description.items()}


def _read(name: str, feature: Any, readers: Mapping[str, Callable[[str, Any], Field]]) -> Field:
    kind = type(feature).__name__
    if kind not in readers:
        message = f"{name}: {kind} has no equivalent in a schema\n  There are {', '.join(readers)}."
        raise SchemaError(message, field=name)
    return readers[kind](name, feature)


def _fixed(name: str, feature: Any) -> Field:
    dtype, shape, default = _dtype(name, feature), _shape(name, feature), feature.default_value
    if default is not None:
        # TensorFlow reshapes a default, and accepts text for bytes.
        values = [value.encode() if isinstance(value, str) else value for value in np.ravel(np.array(default, object))]
        default = np.array(values, object).reshape(tuple(size or 0 for size in shape)).tolist()
    return field_from_parts(dtype, shape, optional=default is not None, default=default)


def _any_length(name: str, feature: Any) -> Field:
    # TensorFlow reads a missing one as an empty one, so the field may be missing.
    return field_from_parts(_dtype(name, feature), (None,), optional=True)


def _ragged(name: str, feature: Any) -> Field:
    if feature.partitions or feature.value_key not in (None, name):
        message = (
            f"{name}: a RaggedFeature made of several features has no equivalent in a schema\n"
            f"  Give each of them a field: {feature.value_key or name!r} as {_dtype(name, feature)}[?]?, "
            f"its partitions as int64[?]?."
        )
        raise SchemaError(message, field=name)
    return _any_length(name, feature)


def _rows_of_fixed(name: str, feature: Any) -> Field:
    return field_from_parts(_dtype(name, feature), (None, *_shape(name, feature)), optional=bool(feature.allow_missing))


def _fixed_steps(name: str, feature: Any) -> Field:
    return field_from_parts(_dtype(name, feature), _shape(name, feature), optional=bool(feature.allow_missing))


def _dtype(name: str, feature: Any) -> str:
    dtype = getattr(feature.dtype, "name", None) or str(feature.dtype)
    if dtype not in _DTYPES:
        message = f"{name}: records hold int64, float32 and string, found {dtype}"
        raise SchemaError(message, field=name, found=dtype)
    return _DTYPES[dtype]


def _shape(name: str, feature: Any) -> Shape:
    shape = feature.shape
    sizes = shape.as_list() if hasattr(shape, "as_list") else [shape] if isinstance(shape, int) else list(shape)
    if any(size is None or int(size) < 0 for size in sizes):
        message = (
            f"{name}: a shape with an open dimension, {sizes}, has no equivalent in a schema\n  Use a VarLenFeature."
        )
        raise SchemaError(message, field=name)
    return tuple(int(size) for size in sizes)
