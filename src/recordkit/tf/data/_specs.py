"""Specs: the structure, shapes and dtypes of a dataset's elements, as far as they are known before it runs.

TensorFlow traces every function, and so refuses a step that cannot work when it is built. Functions are not traced
here: what `map` returns is UNKNOWN until it runs, and is checked then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from recordkit.errors import DataLossError, InvalidArgumentError
from recordkit.tf.tensors import (
    RaggedTensor,
    RaggedTensorSpec,
    SparseTensor,
    SparseTensorSpec,
    Tensor,
    TensorShape,
    TensorSpec,
    array_of,
    static_shape,
    string,
)

from ._elements import leaves, map_leaves


class _Unknown:
    def __repr__(self) -> str:
        return "not known before it runs"


UNKNOWN: Final = _Unknown()
STRING: Final = TensorSpec([], string)


def is_known(spec: Any) -> bool:
    """Tell whether all of a spec is known."""
    return all(leaf is not UNKNOWN for leaf in leaves(spec))


def spec_of(element: Any) -> Any:
    """Return the spec of an element.

    >>> spec_of({"a": Tensor(array_of([1, 2], None))})
    {'a': TensorSpec(shape=(2,), dtype=tf.int32, name=None)}
    """
    return map_leaves(_spec_of_leaf, element)


def _spec_of_leaf(leaf: Any) -> Any:
    if isinstance(leaf, RaggedTensor):
        return RaggedTensorSpec(leaf.shape, leaf.dtype, leaf.ragged_rank, leaf.row_splits.dtype)
    if isinstance(leaf, SparseTensor):
        return SparseTensorSpec(leaf.shape, leaf.dtype)
    return TensorSpec(static_shape(leaf), leaf.dtype) if isinstance(leaf, Tensor) else leaf


# --- Batches and rows


def batched(spec: Any, size: int | None) -> Any:
    """Return the spec of batches; `size` is None if the last one may be shorter."""
    return map_leaves(lambda leaf: _batched_leaf(leaf, size), spec)


def _batched_leaf(leaf: Any, size: int | None) -> Any:
    if not isinstance(leaf, TensorSpec | SparseTensorSpec):
        return None if leaf is None else UNKNOWN
    shape = TensorShape([size, *leaf.shape] if leaf.shape.known else None)
    return type(leaf)(shape, leaf.dtype)


def rows(spec: Any) -> Any:
    """Return the spec of the rows of elements.

    Raises:
        ValueError: A component is a scalar, or components have different numbers of rows.
    """
    known = [leaf.shape for leaf in leaves(spec) if isinstance(leaf, TensorSpec) and leaf.shape.known]
    if any(not shape for shape in known):
        message = (
            "unbatch: expected tensors with rows, found a scalar\n  Elements are split along their first dimension."
        )
        raise ValueError(message)
    lengths = sorted({shape[0] for shape in known if shape[0] is not None})
    if len(lengths) > 1:
        message = f"unbatch: expected components of one length, found {', '.join(map(str, lengths))}"
        raise ValueError(message)
    return map_leaves(_row_leaf, spec)


def _row_leaf(leaf: Any) -> Any:
    if not isinstance(leaf, TensorSpec):
        return None if leaf is None else UNKNOWN
    return TensorSpec(leaf.shape[1:] if leaf.shape.known else None, leaf.dtype)


# --- Concatenation


def joined(first: Any, second: Any) -> Any:
    """Return the spec of the elements of two datasets together.

    Raises:
        TypeError: They cannot be elements of one dataset.
    """
    try:
        return _joined(first, second)
    except _Unlike:
        message = (
            f"concatenate: expected elements like those of the first dataset, {first!r}, found {second!r}\n"
            "  Convert them to one structure and dtype in map, for example with tf.cast."
        )
        raise TypeError(message) from None


class _Unlike(Exception):  # noqa: N818 - a signal
    pass


def _joined(a: Any, b: Any) -> Any:
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if isinstance(a, Mapping) and isinstance(b, Mapping) and set(a) == set(b):
        return {name: _joined(a[name], b[name]) for name in a}
    if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
        items = [_joined(*pair) for pair in zip(a, b, strict=True)]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if a is None and b is None:
        return None
    if type(a) is not type(b) or not isinstance(a, TensorSpec | SparseTensorSpec | RaggedTensorSpec):
        raise _Unlike
    if a.dtype != b.dtype:
        raise _Unlike
    if isinstance(a, RaggedTensorSpec):
        if (a.ragged_rank, a.row_splits_dtype) != (b.ragged_rank, b.row_splits_dtype):
            raise _Unlike
        return RaggedTensorSpec(_either(a.shape, b.shape), a.dtype, a.ragged_rank, a.row_splits_dtype)
    return type(a)(_either(a.shape, b.shape), a.dtype)


def _either(a: TensorShape, b: TensorShape) -> TensorShape:
    """Return the shape that matches both."""
    if not (a.known and b.known and len(a) == len(b)):
        return TensorShape(None)
    return TensorShape(x if x == y else None for x, y in zip(a, b, strict=True))


# --- Padding


def padded_shapes(spec: Any, shapes: Any) -> Any:
    """Return the shapes to pad elements to, in the structure of the elements as far as it is known.

    Raises:
        TypeError: Elements are not tensors, or a shape is not made of whole numbers.
        ValueError: The shapes do not match the elements.
    """
    if any(isinstance(leaf, SparseTensorSpec | RaggedTensorSpec) for leaf in leaves(spec)):
        message = "padded_batch: expected tensors, found sparse or ragged ones\n  Use batch, or tf.sparse.to_dense."
        raise TypeError(message)
    if shapes is not None:
        return _for_each(spec, shapes, "padded_shapes", _padded_shape)
    if any(isinstance(leaf, TensorSpec) and not leaf.shape.known for leaf in leaves(spec)):
        message = "padded_batch: the rank is unknown\n  Pass padded_shapes."
        raise ValueError(message)
    return None


def padding_values(spec: Any, fills: Any) -> None:
    """Check that values can pad such elements."""
    if not isinstance(fills, tuple | dict):
        fills = map_leaves(lambda _: fills, spec)
    _for_each(spec, fills, "padding_values", _padding)


def _for_each(spec: Any, given: Any, what: str, function: Any) -> Any:
    """Apply a function to every leaf of a spec and the value that was passed for it."""
    if spec is UNKNOWN:
        return given
    found = type(given).__name__
    if isinstance(spec, Mapping):
        if not isinstance(given, Mapping):
            message = f"padded_batch: {what}: expected a dict of {', '.join(map(str, spec))}, found {found}"
            raise TypeError(message)
        if set(given) != set(spec):
            names = ", ".join(map(str, given)) or "no names"
            message = f"padded_batch: {what}: expected a dict of {', '.join(map(str, spec))}, found {names}"
            raise ValueError(message)
        return {name: _for_each(item, given[name], what, function) for name, item in spec.items()}
    if isinstance(spec, tuple):
        if not isinstance(given, tuple) or isinstance(given, TensorShape):
            message = f"padded_batch: {what}: expected a tuple of {len(spec)}, found {found}"
            raise TypeError(message)
        if len(given) != len(spec):
            message = f"padded_batch: {what}: expected a tuple of {len(spec)}, found one of {len(given)}"
            raise ValueError(message)
        items = [_for_each(item, each, what, function) for item, each in zip(spec, given, strict=True)]
        return type(spec)(*items) if hasattr(spec, "_fields") else tuple(items)
    return None if spec is None else function(spec, given)


def _padded_shape(spec: TensorSpec, given: Any) -> Any:
    if given is None:
        return None
    shape = asked_shape(given)
    here = spec.shape
    fits = not here.known or (
        len(here) == len(shape)
        and all(size is None or there is None or there <= size for size, there in zip(shape, here, strict=True))
    )
    if not fits:
        message = f"padded_batch: expected a padded shape for tensors of {here}, found {shape}"
        raise ValueError(message)
    return shape


def asked_shape(given: Any) -> tuple[int | None, ...]:
    """Return a padded shape, with None for sizes that are those of the largest element."""
    if isinstance(given, Tensor) or hasattr(given, "__array__"):
        given = array_of(given, None).tolist()
    sizes = list(given) if isinstance(given, list | tuple) else [given]
    if not all(size is None or hasattr(size, "__index__") for size in sizes):
        message = f"padded_batch: a padded shape consists of integers and None, found {given!r}"
        raise TypeError(message)
    asked = [None if size is None or int(size) == -1 else int(size) for size in sizes]
    if any(size is not None and size < 0 for size in asked):
        message = f"padded_batch: expected sizes from 0 up, found the padded shape {given!r}"
        raise ValueError(message)
    return tuple(asked)


def _padding(spec: TensorSpec, fill: Any) -> None:
    if fill is None:
        return
    if array_of(fill, None).ndim:
        message = f"padded_batch: padding_values must be scalars, found the shape {array_of(fill, None).shape}"
        raise ValueError(message)
    filling(fill, spec.dtype)


def filling(fill: Any, dtype: Any) -> Any:
    """Return a padding value as an array; Python numbers are converted if they fit."""
    if isinstance(fill, Tensor) and fill.dtype != dtype:
        message = f"padded_batch: padding_values of {fill.dtype.name} for a component of {dtype.name}"
        raise TypeError(message)
    return array_of(fill, dtype)


def unfit(asked: Any, tensor: Tensor, sizes: tuple[int, ...]) -> Exception:
    """Return the error for tensors that do not fit a padded shape.

    TensorFlow raises ValueError when the step is built for what it knows then, and DataLossError when it runs.
    """
    here = static_shape(tensor)
    if len(asked) != len(sizes):
        message = f"padded_batch: a padded shape of {len(asked)} dimensions for tensors of {len(sizes)}"
        return InvalidArgumentError(message)
    message = (
        f"padded_batch: expected tensors of {[None if size is None else size for size in asked]} at most, found "
        f"{list(sizes)}\n  Use None for sizes that vary."
    )
    seen = any(size is not None and there is not None and there > size for size, there in zip(asked, here, strict=True))
    return ValueError(message) if seen else DataLossError(message)
