"""JAX: a source for grain, arrays on devices, and the share of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.errors import MissingExtraError, SchemaError

from ._datasets import masked, with_rows

try:
    import jax
except ImportError as error:
    what = "recordkit.integrations.jax"
    raise MissingExtraError(what, "jax", "jax") from error

if TYPE_CHECKING:
    from recordkit.dataset import Dataset

__all__ = ["GrainSource", "arrays", "processes", "put"]

# Unless jax_enable_x64 is set, JAX has no 64-bit numbers, and silently truncates them.
_NARROW = {"int64": "int32", "uint64": "uint32"}


class GrainSource:
    """A random-access source for grain: `grain.MapDataset.source(GrainSource(ds))`, or for a `grain.DataLoader`.

    Elements are rows: dicts of NumPy values. Bytes and text are Python objects, missing values are None. Can be pickled
    to grain's worker processes.

    >>> import tempfile, grain, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/numbers.tfrecord"
    >>> _ = rk.write(path, [{"id": i} for i in range(6)])
    >>> source = GrainSource(rk.open(path))
    >>> [batch["id"].tolist() for batch in grain.MapDataset.source(source).shuffle(seed=1).batch(3)]
    [[..., ..., ...], [..., ..., ...]]
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = with_rows(dataset, "GrainSource", "pipe.shard(*rk.jax.processes()), and iterate it")

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: SupportsIndex) -> Any:
        return _plain(self.dataset[index.__index__()])

    def _getitems(self, indices: Sequence[int]) -> list[Any]:
        """Return many rows at once; grain calls this where it can."""
        found = self.dataset[np.asarray(indices, np.int64)]
        return [_plain(row) for row in (found.rows() if isinstance(found, Batch) else found)]

    def __repr__(self) -> str:
        # grain compares it before it resumes from a checkpoint: it must not differ from run to run.
        names = ", ".join(self.dataset.schema.names) if self.dataset.schema is not None else "payloads"
        return f"GrainSource({len(self)} records: {names})"


def _plain(row: Any) -> Any:
    """Return a row without recordkit's own classes, which grain cannot stack."""
    return {name: _value(value) for name, value in row.items()} if isinstance(row, Mapping) else row


def _value(value: Any) -> Any:
    if isinstance(value, BytesColumn):
        return value.to_numpy()
    return value.to_list() if isinstance(value, Ragged) else value


def processes() -> tuple[int, int]:
    """Return the number of this process in a JAX program, and how many there are: `pipe.shard(*rk.jax.processes())`.

    >>> processes()
    (0, 1)
    """
    return jax.process_index(), jax.process_count()


def arrays(value: Any) -> Any:
    """Return a batch as a tree of NumPy arrays for JAX, without copying them.

    A `Batch` becomes a dict, with a mask `<name>/valid` for each field that may be missing. Times become counts of
    their unit.

    Raises:
        SchemaError: JAX has no arrays for a value, or integers do not fit into the 32 bits that JAX keeps unless
            `jax_enable_x64` is set.

    >>> arrays(Batch({"x": np.array([1, 2])}, 2))
    {'x': array([1, 2])}
    >>> arrays({"name": BytesColumn.of(["a"])})
    Traceback (most recent call last):
        ...
    recordkit.errors.SchemaError: name: expected numbers, found text
      JAX has arrays of numbers only. Leave it out with select, or convert it to numbers in map.
    """
    return _tree(value, "")


def put(value: Any, sharding: Any = None) -> Any:
    """Return a batch on devices: what `arrays` makes of it, as JAX arrays.

    Args:
        value: What a pipeline gives.
        sharding: How the whole array is distributed over the devices of all processes, each of which passes its own
            part; by default it goes to the default device of this process.

    >>> put({"x": np.arange(3)})["x"].sum()
    Array(3, dtype=int32)
    """
    tree = arrays(value)
    if sharding is None:
        return jax.device_put(tree)
    return jax.tree.map(lambda array: jax.make_array_from_process_local_data(sharding, array), tree)


def _tree(value: Any, where: str) -> Any:
    if isinstance(value, Batch):
        value = masked(value)
    if isinstance(value, Mapping):
        return {name: _tree(item, f"{where}/{name}" if where else str(name)) for name, item in value.items()}
    if isinstance(value, tuple | list):
        items = [_tree(item, f"{where}[{i}]") for i, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, Ragged):
        raise _no_array(where, "rows of different lengths", "Pad them: batch(n, pad=0), or Ragged.to_padded(0).")
    if isinstance(value, BytesColumn):
        raise _not_numbers(where, "text" if value.text else "bytes")
    if isinstance(value, str | bytes) or value is None:
        raise _not_numbers(where, type(value).__name__)
    return _checked(np.asarray(value), where)


def _checked(array: Any, where: str) -> Any:
    if array.dtype.kind in "mM":
        array = array.view(np.int64)
    if array.dtype.kind in "OUST":
        raise _not_numbers(where, f"an array of {array.dtype.name}")
    narrow = _NARROW.get(array.dtype.name)
    if narrow is None or jax.config.jax_enable_x64 or not array.size:
        return array
    least, most, bounds = int(array.min()), int(array.max()), np.iinfo(narrow)
    if least < bounds.min or most > bounds.max:
        found = least if least < bounds.min else most
        advice = "JAX would truncate it. Set jax.config.update('jax_enable_x64', True), or store it in two fields."
        raise _no_array(where, str(found), advice, expected=narrow)
    return array


def _not_numbers(where: str, found: str) -> SchemaError:
    advice = "JAX has arrays of numbers only. Leave it out with select, or convert it to numbers in map."
    return _no_array(where, found, advice)


def _no_array(where: str, found: str, advice: str, expected: str = "numbers") -> SchemaError:
    message = f"{where + ': ' if where else ''}expected {expected}, found {found}\n  {advice}"
    return SchemaError(message, field=where or None, expected=expected, found=found)
