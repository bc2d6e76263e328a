"""PyTorch: datasets for `DataLoader` and `StatefulDataLoader`, and their elements as tensors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.dtypes import ML_DTYPES
from recordkit.errors import MissingExtraError, StateError

from ._datasets import masked, optional_names, schema_of, with_rows
from ._epochs import Epochs
from ._workers import Share, pipe_state, share_of

try:
    import torch
    from torch.utils import data
except ImportError as error:
    what = "recordkit.integrations.torch"
    raise MissingExtraError(what, "torch", "torch") from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.dataset import Dataset
    from recordkit.pipeline import Pipeline, Steps

__all__ = ["TorchDataset", "TorchIterableDataset", "collate", "pipe_state", "tensors"]

# Tensors up to this size are sent to another process as bytes: measured, faster than shared memory; slower at 1 MiB.
_SENT_AS_BYTES = 256 << 10
_WITHOUT_NUMPY = {getattr(torch, name) for name in ML_DTYPES if hasattr(torch, name)}  # Tensor.numpy() refuses them


# --- Tensors


def tensors(value: Any) -> Any:
    """Return an element of a dataset or pipeline with tensors instead of arrays, in the same structure.

    Arrays become tensors that share their memory; read-only arrays are copied, as a tensor is always writable. Times
    become int64 counts of their unit. A `Batch` becomes a dict, with a mask `<name>/valid` for each field with missing
    values. A `Ragged` with one varying dimension becomes a jagged nested tensor, one with more a list of tensors. Bytes
    and text stay Python objects, in lists.

    >>> tensors(Batch({"id": np.arange(2), "name": BytesColumn.of(["a", "b"])}, 2))
    {'id': tensor([0, 1]), 'name': ['a', 'b']}
    >>> tensors(Ragged(np.arange(3), (np.array([0, 2, 3]),))).unbind()
    (tensor([0, 1]), tensor([2]))
    """
    if isinstance(value, Batch):
        value = masked(value)
    if isinstance(value, np.ndarray | np.generic):
        return _tensor(np.asarray(value))
    if isinstance(value, Ragged):
        return _nested(value)
    if isinstance(value, BytesColumn):
        return value.to_list()
    if isinstance(value, Mapping):
        return _TensorDict({name: tensors(item) for name, item in value.items()})
    if isinstance(value, tuple | list):
        items = map(tensors, value)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _tensor(array: NDArray[Any]) -> Any:
    if array.dtype.kind in "OUST":
        return array.tolist()
    if array.dtype.kind in "mM":
        array = array.view(np.int64)
    # from_numpy warns about read-only arrays, and refuses negative strides.
    if not array.flags.writeable or not array.flags.aligned or min(array.strides, default=0) < 0:
        array = array.copy()
    if array.dtype.name in ML_DTYPES:
        return torch.from_numpy(array.view(f"i{array.itemsize}")).view(getattr(torch, array.dtype.name))
    return torch.from_numpy(array)


def _nested(column: Ragged) -> Any:
    if isinstance(column.values, BytesColumn):
        return column.to_list()
    if len(column.offsets) > 1:
        return [tensors(row) for row in column]
    return torch.nested.nested_tensor_from_jagged(_tensor(column.values), _tensor(column.offsets[0]))


class _TensorDict(dict[Any, Any]):
    """The columns of a batch: a dict that sends small tensors to another process as bytes, and arrives as a dict.

    PyTorch puts each tensor into shared memory of its own, which for small ones takes longer than sending their bytes:
    ten times as long for 40 columns of 2 kB.
    """

    def __copy__(self) -> _TensorDict:  # PyTorch copies dicts while it looks for arrays in them
        return _TensorDict(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, ({name: value.numpy() if _is_small(value) else value for name, value in self.items()},)


def _is_small(value: Any) -> bool:
    plain = type(value) is torch.Tensor and value.dtype not in _WITHOUT_NUMPY
    return plain and value.numel() * value.element_size() <= _SENT_AS_BYTES


def _received(columns: dict[Any, Any]) -> dict[Any, Any]:
    return {name: _tensor(value) if isinstance(value, np.ndarray) else value for name, value in columns.items()}


# --- Random access


class TorchDataset(data.Dataset):  # type: ignore[misc]
    """A map-style dataset for `torch.utils.data.DataLoader`, with any sampler.

    With `collate_fn=rk.torch.collate` a whole batch is read and decoded as columns, without creating a Python object
    per value. PyTorch's own collating works too, row by row. In a row, missing values are None.

    Can be sent to worker processes, however they are started.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/numbers.tfrecord"
    >>> _ = rk.write(path, [{"id": i, "square": i * i} for i in range(5)])
    >>> squares = TorchDataset(rk.open(path))
    >>> len(squares), squares[3]
    (5, {'id': tensor(3), 'square': tensor(9)})
    >>> for batch in data.DataLoader(squares, batch_size=3, collate_fn=collate):
    ...     print(batch["square"])
    tensor([0, 1, 4])
    tensor([ 9, 16])
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = with_rows(dataset, "TorchDataset", "DataLoader(TorchIterableDataset(pipe), batch_size=None)")

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, torch.Tensor):
            index = index.numpy()
        found = self.dataset[index]
        return self._whole(found) if isinstance(found, Batch) else tensors(found)

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """Return many rows at once; a DataLoader calls this."""
        return _Rows(self, self.dataset[np.asarray(indices, np.int64)])

    def _whole(self, batch: Batch) -> Any:
        return tensors(masked(batch, optional_names(self.dataset.schema)))


class _Rows(Sequence[Any]):
    """Rows that stay a batch for `collate`; they are created when someone looks at them."""

    def __init__(self, owner: TorchDataset, found: Any) -> None:
        self._owner = owner
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        found = self._found
        return tensors(found.row(index) if isinstance(found, Batch) else found[index])

    def __iter__(self) -> Iterator[Any]:
        found = self._found
        return map(tensors, found.rows() if isinstance(found, Batch) else found)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def whole(self) -> Any:
        return self._owner._whole(self._found) if isinstance(self._found, Batch) else tensors(self._found)


def collate(rows: Sequence[Any]) -> Any:
    """Return rows as one batch: for `DataLoader(TorchDataset(ds), collate_fn=rk.torch.collate)`.

    The rows of a `TorchDataset` become a dict of tensors, as `tensors` makes of a `Batch`, with a mask `<name>/valid`
    for each field that may be missing; payloads become a list. Other rows are left to PyTorch.

    >>> collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=torch.float64)]
    """
    return rows.whole() if isinstance(rows, _Rows) else data.default_collate(rows)


# --- Sequential access


class TorchIterableDataset(data.IterableDataset):  # type: ignore[misc]
    """An iterable-style dataset for `torch.utils.data.DataLoader`: a pipeline, divided among workers and ranks.

    Make batches in the pipeline, and pass `batch_size=None` to the DataLoader: then any number of workers yields the
    same batches in the same order. Each iteration is the next epoch, in all workers, persistent ones too.

    If the pipeline has no `shard` step and torch.distributed is initialised, its elements are divided among the ranks
    before they are batched, as `shard("auto")` does. torchdata's `StatefulDataLoader` resumes training where it
    stopped; `pipe_state` extracts from its state one that another number of workers or ranks can resume from.

    Args:
        pipe: What `recordkit.open` returns, with or without steps.
        state: Resume from this state: of an iterator of this pipeline, or what `pipe_state` returned.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/numbers.tfrecord"
    >>> _ = rk.write(path, [{"id": i} for i in range(5)])
    >>> for batch in data.DataLoader(TorchIterableDataset(rk.open(path).batch(3)), batch_size=None):
    ...     print(batch["id"])
    tensor([0, 1, 2])
    tensor([3, 4])
    """

    def __init__(self, pipe: Steps, state: Mapping[str, Any] | None = None) -> None:
        whole = pipe.as_pipeline()
        self._batched = whole.batched
        self._world = None if whole.sharded else _world()  # None if ranks do not matter
        self._pipe: Pipeline = share_of(whole, *(self._world or (0, 1)))
        self._optional = optional_names(schema_of(self._pipe))
        self._start = dict(state) if state is not None else None
        if state is not None:
            self._mine().resume(state)  # raises if it cannot
        self._epochs = Epochs(whole.next_epoch if state is None else state["epoch"])
        self._begun = 0

    def _mine(self) -> Pipeline:
        """Return the same pipeline with an epoch counter of its own."""
        return self._pipe.for_worker(0, 1)

    def set_epoch(self, epoch: int) -> None:
        """Choose which epoch the next iteration is."""
        self._mine().set_epoch(epoch)  # raises if it is not a valid epoch
        self._epochs.coming = epoch

    def __len__(self) -> int:
        return len(self._pipe)

    def __iter__(self) -> Iterator[Any]:
        self._check_world()
        frame = inspect.currentframe()
        if self._batched and frame is not None and frame.f_back is not None:
            _refuse_batches_of_batches(frame.f_back.f_locals)
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        # All workers of an iteration share a seed; persistent ones keep it for the next.
        key = hash((0 if info is None else info.seed - info.id, self._begun))
        self._begun += 1
        share = Share(self._pipe, first, step, self._epochs.begin(key, step), self._start)
        return _TensorIterator(share, self._optional, self._epochs)

    def __getstate__(self) -> dict[str, Any]:
        self._check_world()
        return dict(vars(self))

    def _check_world(self) -> None:
        # A worker process does not know the ranks.
        if self._world and data.get_worker_info() is None and _world() not in (self._world, (0, 1)):
            message = (
                "torch.distributed was initialised after this TorchIterableDataset, which assumes one rank\n"
                "  Call torch.distributed.init_process_group first."
            )
            raise StateError(message)


def _refuse_batches_of_batches(loader: Mapping[str, Any]) -> None:
    """Raise if a DataLoader would make batches of batches, unless the user's own `collate_fn` does.

    Its arguments are only known in the local variables of the call that iterates.
    """
    if loader.get("auto_collation") and loader.get("collate_fn") is data.default_collate:
        message = (
            "DataLoader: the pipeline makes batches already, and batch_size= would batch them again\n"
            "  Write DataLoader(TorchIterableDataset(pipe), batch_size=None)."
        )
        raise StateError(message)


def _world() -> tuple[int, int]:
    """Return the rank of this process, and how many there are."""
    ranks = torch.distributed
    if not ranks.is_available() or not ranks.is_initialized():
        return 0, 1
    return ranks.get_rank(), ranks.get_world_size()


class _TensorIterator(Iterator[Any]):
    """The elements of a worker as tensors, with the state that `StatefulDataLoader` asks for."""

    def __init__(self, share: Share, optional: tuple[str, ...], epochs: Epochs) -> None:
        self._share = share
        self._optional = optional
        self._epochs = epochs

    def __next__(self) -> Any:
        element = next(self._share)
        return tensors(masked(element, self._optional) if isinstance(element, Batch) else element)

    def state_dict(self) -> dict[str, Any]:
        return self._share.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._share.load_state_dict(state)
        self._epochs.coming = self._share.epoch + 1
