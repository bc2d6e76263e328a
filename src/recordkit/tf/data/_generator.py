"""Elements from a generator, converted to match their signature."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.errors import SchemaError
from recordkit.pipeline import begun
from recordkit.tf.tensors import (
    RaggedTensor,
    RaggedTensorSpec,
    SparseTensor,
    SparseTensorSpec,
    Tensor,
    TensorSpec,
    as_dtype,
    as_unknown_dims,
    object_array,
    string,
)

from ._elements import Failed, map_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def signature_of(signature: Any, types: Any, shapes: Any) -> Any:
    """Return the signature of elements: as it was passed, or from dtypes and shapes."""
    if signature is not None:
        if types is not None or shapes is not None:
            message = "from_generator: give output_signature, or output_types and output_shapes, not both"
            raise TypeError(message)
        return tuple(signature) if isinstance(signature, list) else signature
    if types is None:
        message = "from_generator: output_signature is missing\n  Such as tf.TensorSpec(shape=(), dtype=tf.int64)."
        raise TypeError(message)
    if shapes is None:
        return map_leaves(lambda dtype: TensorSpec(None, dtype), types)
    return map_leaves(lambda dtype, shape: TensorSpec(shape, dtype), types, shapes)


def generated(generator: Callable[..., Any], args: tuple[Any, ...], signature: Any) -> Iterator[Any]:
    """Yield the elements of a generator. One that does not match has failed; an error of the generator comes last."""
    values = begun(generator, *args)
    for number in count():
        try:
            value = next(values)
        except StopIteration:
            return
        except Exception as error:
            yield Failed(error)
            return
        try:
            element = _fitted(value, signature, f"element {number} of the generator")
        except SchemaError as error:
            element = Failed(error)
        yield element


def _fitted(value: Any, spec: Any, where: str) -> Any:
    if isinstance(spec, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(spec):
            found = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
            raise _unlike(where, f"a dict of {sorted(map(str, spec))}", str(found))
        return {name: _fitted(value[name], each, f"{where}: {name}") for name, each in spec.items()}
    if not isinstance(spec, tuple):
        return _tensor(value, spec, where)
    if not isinstance(value, list | tuple) or len(value) != len(spec):
        found = f"{len(value)} items" if isinstance(value, list | tuple) else type(value).__name__
        raise _unlike(where, f"a tuple of {len(spec)}", found)
    items = [
        _fitted(item, each, f"{where}: item {at}") for at, (item, each) in enumerate(zip(value, spec, strict=True))
    ]
    return type(spec)(*items) if hasattr(spec, "_fields") else tuple(items)


def _tensor(value: Any, spec: Any, where: str) -> Any:
    kind = RaggedTensor if isinstance(spec, RaggedTensorSpec) else SparseTensor
    if isinstance(spec, RaggedTensorSpec | SparseTensorSpec):
        if not isinstance(value, kind) or not spec.is_compatible_with(value):
            raise _unlike(where, str(spec), f"{type(value).__name__} of shape {getattr(value, 'shape', 'unknown')}")
        return value
    dtype = as_dtype(spec.dtype)
    is_one = isinstance(value, Tensor) and value.dtype == dtype
    array = np.asarray(value) if is_one else _array(value, dtype, where)
    if not spec.shape.is_compatible_with(array.shape):
        raise _unlike(where, f"the shape {spec.shape}", str(array.shape))
    return Tensor(array, as_unknown_dims(size is None for size in spec.shape))


def _array(value: Any, dtype: Any, where: str) -> Any:
    try:
        if dtype is string:
            return object_array(value.tolist() if isinstance(value, np.ndarray) else value)
        return np.array(value, dtype.numpy)  # a copy: the generator may reuse its array
    except (TypeError, ValueError):
        raise _unlike(where, dtype.name, type(value).__name__) from None


def _unlike(where: str, expected: str, found: str) -> SchemaError:
    message = f"{where}: expected {expected}, found {found}\n  Elements must match output_signature."
    return SchemaError(message, expected=expected, found=found)
