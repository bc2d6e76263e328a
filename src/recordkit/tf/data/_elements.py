"""Elements of a dataset: tensors in dicts and tuples. A payload stays bytes until someone looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from recordkit.errors import SchemaError
from recordkit.tf.tensors import (
    RaggedRow,
    RaggedTensor,
    SparseTensor,
    Tensor,
    convert_to_tensor,
    first_unknown,
    object_array,
    to_dense,
)

_LEAVES = Tensor, SparseTensor, RaggedTensor


class Failed:
    """An error in place of the element that could not be made, so that the elements around it keep their order."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def map_leaves(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Apply a function to every leaf of a structure, together with the same leaves of other structures.

    >>> map_leaves(lambda a, b: a + b, {"x": 1, "y": (2, 3)}, {"x": 10, "y": (20, 30)})
    {'x': 11, 'y': (22, 33)}
    """
    if isinstance(structure, _LEAVES):  # most are, and this check is the quickest
        return function(structure, *others)
    if isinstance(structure, Mapping):
        return {
            name: map_leaves(function, item, *(other[name] for other in others)) for name, item in structure.items()
        }
    if not isinstance(structure, tuple):
        return function(structure, *others)
    items = [map_leaves(function, *each) for each in zip(structure, *others, strict=True)]
    return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)


def leaves(structure: Any) -> Iterator[Any]:
    """Yield every leaf.

    >>> list(leaves({"x": 1, "y": (2, 3)}))
    [1, 2, 3]
    """
    if isinstance(structure, Mapping):
        structure = tuple(structure.values())
    if not isinstance(structure, tuple):
        yield structure
        return
    for item in structure:
        yield from leaves(item)


def to_tensors(structure: Any) -> Any:
    """Return a structure whose leaves are tensors."""
    if _has_tensors_alone(structure):
        return dict(structure)
    return _tensor(structure) if type(structure) in (bytes, Tensor) else map_leaves(_tensor, structure)


def to_element(result: Any) -> Any:
    """Return the result of the user's function as an element; as in TensorFlow, a list becomes a tuple."""
    if _has_tensors_alone(result):
        return dict(result)
    given = tuple(result) if isinstance(result, list) else result
    return _tensor(given) if type(given) in (bytes, Tensor) else map_leaves(_made, given)


def _has_tensors_alone(structure: Any) -> bool:
    """Tell whether a structure is a dict of tensors, as parsing returns: a quick check that saves converting it."""
    return type(structure) is dict and all(type(leaf) is Tensor for leaf in structure.values())


def _made(leaf: Any) -> Any:
    """Return a leaf of the user's as a tensor. The first dimension of an array may vary from element to element."""
    made = _tensor(leaf)
    if isinstance(leaf, np.ndarray) and leaf.ndim:
        made.unknown_dims = first_unknown(leaf.ndim)
    return made


def _tensor(leaf: Any) -> Any:
    if type(leaf) is bytes:
        return Tensor(object_array(leaf))
    if isinstance(leaf, RaggedRow):
        return leaf.to_tensor()
    return leaf if leaf is None or isinstance(leaf, _LEAVES) else convert_to_tensor(leaf)


def shown(element: Any) -> Any:
    """Return an element as the user gets it; raise if it failed."""
    if isinstance(element, Failed):
        raise element.error
    return to_tensors(element)


def plain(element: Any) -> Any:
    """Return an element in the form that a cache on disk keeps, each tensor as a list; raise if it failed."""
    return map_leaves(_plain_leaf, shown(element))


def _plain_leaf(leaf: Any) -> Any:
    if isinstance(leaf, SparseTensor):
        parts = (leaf.indices, leaf.values, leaf.dense_shape)
        return ["sparse", list(leaf.unknown_dims), *map(np.asarray, parts)]
    if isinstance(leaf, RaggedTensor):
        return ["ragged", leaf.uniform_row_length, _plain_leaf(leaf.values), leaf.splits]
    return leaf if leaf is None else ["tensor", list(leaf.unknown_dims), np.asarray(leaf)]


def restored(element: Any) -> Any:
    """Return the element that `plain` converted.

    >>> restored(plain({"a": Tensor(np.arange(2))}))
    {'a': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>}
    """
    return map_leaves(_restored_leaf, element)


def _restored_leaf(leaf: Any) -> Any:
    if leaf is None:
        return None
    kind, facts, *parts = leaf
    if kind == "tensor":
        return Tensor(parts[0], tuple(facts))
    if kind == "ragged":
        return RaggedTensor(_restored_leaf(parts[0]), parts[1], facts)
    sparse = SparseTensor(*parts)
    sparse.unknown_dims = tuple(facts)
    return sparse


def to_numpy(leaf: Any) -> Any:
    """Return a leaf as a NumPy array."""
    if leaf is None:
        return None
    return to_dense(leaf).numpy() if isinstance(leaf, SparseTensor) else leaf.numpy()


def first_failure(elements: Any) -> Failed | None:
    """Return the first failed element; None if there is none."""
    return next((element for element in elements if isinstance(element, Failed)), None)


def columns_of(elements: list[Any], where: str) -> Any:
    """Return elements of one structure as a structure of lists.

    >>> columns_of([(1, 2), (3, 4)], "batch")
    ([1, 3], [2, 4])
    """
    try:
        return map_leaves(lambda *column: list(column), *elements)
    except (KeyError, ValueError, TypeError, AttributeError):
        advice = "map must return the same structure for every element."
        message = f"{where}: expected elements of one structure, found several\n  {advice}"
        raise SchemaError(message) from None
