"""What TensorFlow would know of a shape before the value is there, which is what its `ragged_batch` goes by.

Functions run on values here, so that every size is known when it is asked for. A tensor therefore carries which of its
dimensions are open: those that TensorFlow, which works a pipeline out before it runs, could not have known.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# For each dimension whether it is open; nothing at all where none is.
Open: TypeAlias = tuple[bool, ...]
# The sizes of a shape, None for those that are open.
Sizes: TypeAlias = tuple[int | None, ...]


def opened(flags: Iterable[bool]) -> Open:
    """Return which dimensions are open, in the form in which a tensor carries it.

    >>> opened([False, True]), opened([False, False])
    ((False, True), ())
    """
    made = tuple(flags)
    return made if True in made else ()


def last_open(open_: Open) -> int:
    """Return the last dimension that is open; -1 if none is.

    >>> last_open((True, True, False)), last_open(())
    (1, -1)
    """
    return max((axis for axis, is_open in enumerate(open_) if is_open), default=-1)


def of_items(keys: Sequence[Any], open_: Open, ndim: int) -> Open:
    """Return which dimensions are open in what keys take out of a tensor: those that were, and what values cut."""
    if not open_ and not any(map(_cuts, keys)):
        return ()
    dims = iter(open_ or (False,) * ndim)
    taken = sum(_mask_rank(key) or 1 for key in keys if key is not None and key is not Ellipsis)
    left: list[bool] = []
    for key in keys:
        if key is None:
            left.append(False)
        elif key is Ellipsis:
            left.extend(islice(dims, ndim - taken))
        elif isinstance(key, slice):
            left.append(next(dims) or _cuts(key))
        elif _mask_rank(key):
            list(islice(dims, _mask_rank(key)))  # which it makes one of
            left.append(True)
        else:
            next(dims)
            left.extend([True] * np.ndim(key))
    return opened([*left, *dims])


def _cuts(key: Any) -> bool:
    """Whether a key leaves as many as some value says."""
    if isinstance(key, slice):
        return any(_is_value(bound) for bound in (key.start, key.stop, key.step))
    return _is_value(key) and np.ndim(key) > 0


def _is_value(key: Any) -> bool:
    return hasattr(key, "__array__") and not isinstance(key, np.generic)


def _mask_rank(key: Any) -> int:
    """Return how many dimensions a mask takes up; 0 if it is none."""
    return np.ndim(key) if _is_value(key) and np.asarray(key).dtype == np.bool_ else 0


def of_elementwise(shapes: Sequence[Sizes]) -> Open:
    """Return which dimensions are open in what is computed of shapes, element by element.

    >>> of_elementwise([(None, None, 3), (3,)]), of_elementwise([(None,), (1,)]), of_elementwise([(None,), (5,)])
    ((True, True, False), (True,), ())
    """
    rank = max(map(len, shapes))
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return opened(None in sizes and all(size in (None, 1) for size in sizes) for sizes in columns)


def of_joined(shapes: Sequence[Sizes], axis: int | None = None) -> Open:
    """Return which dimensions are open where shapes become one: open in all of them, or in any along `axis`.

    >>> of_joined([(None, 3), (2, 3)]), of_joined([(None, 3), (2, 3)], axis=0)
    ((), (True, False))
    """
    along = None if axis is None else axis % len(shapes[0])
    columns = enumerate(zip(*shapes, strict=True))
    return opened(None in sizes and (at == along or set(sizes) == {None}) for at, sizes in columns)
