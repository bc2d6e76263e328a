"""Dataset: the methods of tf.data, built on pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.engines import AUTO
from recordkit.engines import count as worker_count
from recordkit.errors import InvalidArgumentError
from recordkit.pipeline import Pipeline, Prefetch, from_generator
from recordkit.tf import _names
from recordkit.tf.io import TFRecordOptions
from recordkit.tf.tensors import Tensor, TensorSpec, as_dtype, convert_to_tensor, int64

from . import _batches, _specs
from ._arguments import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    checked_function,
    cycle_length_of,
    file_names,
    positive,
    threads_of,
    whole_number,
)
from ._elements import Failed, first_failure, leaves, map_leaves, plain, restored, shown, to_numpy, to_tensors
from ._generator import generated, signature_of
from ._sources import Cache, Files
from ._specs import STRING, UNKNOWN
from ._steps import (
    Alike,
    Call,
    Every,
    First,
    Good,
    Interleave,
    Keep,
    Make,
    Past,
    Ragged,
    Raised,
    Shuffle,
    arguments,
    batched,
    fixed_seed,
    group,
    ignore_failures,
    limit_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from recordkit.tf.tensors import DTypeLike

_ALL: Final = 1 << 62


class Options:
    """Options of TensorFlow's runtime. Any name can be set, and none is used: elements come in order.

    >>> options = Options()
    >>> options.threading.private_threadpool_size = 8
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        inner = Options()
        setattr(self, name, inner)
        return inner


class Dataset:
    """A lazy sequence of elements: tensors, or dicts and tuples of tensors.

    Every method returns a new dataset. Functions are called with values, not traced: any Python code works in `map`.

    >>> from recordkit import tf
    >>> numbers = tf.data.Dataset.range(5).map(lambda n: n * n).batch(2)
    >>> list(numbers.as_numpy_iterator())
    [array([0, 1]), array([4, 9]), array([16])]
    """

    def __init__(self, pipe: Pipeline, cardinality: int = UNKNOWN_CARDINALITY, spec: Any = UNKNOWN) -> None:
        # One thread unless more are asked for: functions are called one at a time, in the thread that iterates.
        self._pipe = replace(pipe, workers=1)
        self._count = cardinality
        self._spec = spec  # of its elements, as far as it is known: see _specs.py

    def _then(self, step: Any, cardinality: int | None = None, spec: Any = None) -> Dataset:
        """Return a dataset with one more step; `spec` is needed if the elements change."""
        count = self._count if cardinality is None else cardinality
        return Dataset(self._pipe.with_step(step), count, self._spec if spec is None else spec)

    # --- Sources

    @staticmethod
    def range(*args: Any, output_type: DTypeLike = int64, name: str | None = None) -> Dataset:
        """Return the numbers of Python's `range`."""
        bounds = [whole_number(arg, "range") for arg in args]
        if not 1 <= len(bounds) <= 3:
            message = f"range: expected 1 to 3 numbers, found {len(bounds)}"
            raise ValueError(message)
        if bounds[2:] == [0]:
            message = "range: step must be a non-zero integer"
            raise InvalidArgumentError(message)
        numbers = range(*bounds)
        dtype = as_dtype(output_type).numpy
        pipe = from_generator(lambda: (Tensor(np.array(n, dtype)) for n in numbers))
        return Dataset(pipe, len(numbers), TensorSpec([], output_type))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Return a dataset of a single element."""
        element = map_leaves(_whole, tensors)
        return Dataset(from_generator(lambda: [element]), 1, _specs.spec_of(element))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Return the rows of tensors.

        >>> rows = Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]})
        >>> [(int(row["a"]), row["b"].numpy()) for row in rows]
        [(1, b'x'), (2, b'y')]
        """
        element = map_leaves(_whole, tensors)
        rows = _batches.rows_of(element)
        return Dataset(from_generator(lambda: rows), len(rows), _specs.rows(_specs.spec_of(element)))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Return the elements that a function yields; it is called for each iteration.

        Args:
            generator: Called with `args`, as NumPy arrays.
            output_types: The dtypes of an element, in older scripts.
            output_shapes: The shapes of an element, in older scripts.
            args: The arguments of the function.
            output_signature: The spec of an element: `tf.TensorSpec`s in dicts and tuples.
            name: Not used.

        >>> def words():
        ...     yield "one", 1
        ...     yield "two", 2
        >>> from recordkit import tf
        >>> signature = tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int64)
        >>> [(word.numpy(), int(n)) for word, n in Dataset.from_generator(words, output_signature=signature)]
        [(b'one', 1), (b'two', 2)]
        """
        if not callable(generator):
            message = "from_generator: `generator` must be a Python callable."
            raise TypeError(message)
        signature = signature_of(output_signature, output_types, output_shapes)
        given = tuple(to_numpy(convert_to_tensor(arg)) for arg in args or ())
        return Dataset(from_generator(partial(generated, generator, given, signature)), spec=signature)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> Dataset:
        """Return the names of files that match a pattern, or several; in random order unless `shuffle` is False."""
        from recordkit.tf.io import gfile

        patterns = file_names(file_pattern)
        found = sorted(gfile.glob(patterns))
        if not found:
            message = f"No files matched pattern: {', '.join(patterns)}"
            raise InvalidArgumentError(message)
        files = Dataset.from_tensor_slices(found)
        return files if shuffle is False else files.shuffle(len(found), seed)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Combine the elements of several datasets, until one ends.

        >>> pairs = Dataset.zip((Dataset.range(3), Dataset.range(10, 12)))
        >>> [(int(a), int(b)) for a, b in pairs]
        [(0, 10), (1, 11)]
        """
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        if not all(isinstance(each, Dataset) for each in leaves(structure)) or not any(True for _ in leaves(structure)):
            message = "zip: expected datasets in tuples and dicts\n  A list is not a structure."
            raise TypeError(message)
        first, *others = leaves(structure)
        pipe = first._pipe.zip(*(other._pipe for other in others))
        counts = [each._count for each in (first, *others)]
        known = [count for count in counts if count >= 0]
        least = min(known) if known else INFINITE_CARDINALITY
        count = UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else least
        spec = map_leaves(lambda each: each._spec, structure)
        return Dataset(pipe.with_step(Make(partial(_side_by_side, structure))), count, spec)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Return all elements of this dataset, then of another with the same structure and dtypes."""
        spec = _specs.joined(self._spec, dataset._spec)
        counts = self._count, dataset._count
        total = sum(counts) if min(counts) >= 0 else max(count for count in counts if count < 0)
        pipe = self._pipe.concat(dataset._pipe)
        return Dataset(pipe if _specs.is_known(spec) else pipe.with_step(Alike()), total, spec)

    # --- Each element

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Apply a function to each element; the items of a tuple become separate arguments.

        Args:
            map_func: Runs as ordinary Python: `.numpy()` works in it.
            num_parallel_calls: How many threads call it; one by default.
            deterministic: Not used: elements keep their order.
            synchronous: Not used.
            use_unbounded_threadpool: Not used.
            name: Not used.
        """
        return self._then(Call(checked_function(map_func), threads_of(num_parallel_calls)), spec=UNKNOWN)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Keep the elements for which a function returns True, or a true tensor."""
        return self._then(Keep(checked_function(predicate), 1), UNKNOWN_CARDINALITY)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """Return all elements of the datasets that a function returns, one dataset after the other."""
        return self.interleave(map_func, cycle_length=1)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Return elements of the datasets that a function returns, taking turns.

        Args:
            map_func: Returns a dataset.
            cycle_length: How many datasets take turns; by default one per processor, but at most `num_parallel_calls`,
                or one per three processors if that is AUTOTUNE.
            block_length: How many elements to take in a turn.
            num_parallel_calls: If set, each dataset is read ahead by a thread of its own.
            deterministic: Not used: the order is always the same.
            name: Not used.
        """
        cycle = cycle_length_of(cycle_length, num_parallel_calls, worker_count(AUTO))
        block = 1 if block_length is None else positive(block_length, "block_length")
        step = Interleave(checked_function(map_func), _opened, cycle, block, num_parallel_calls is not None)
        return self._then(step, UNKNOWN_CARDINALITY, UNKNOWN)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Drop elements that fail; of damaged files, only the damaged records are lost."""
        good = Good(log_warning)
        return Dataset(ignore_failures(self._pipe, good).with_step(good), spec=self._spec)

    # --- Order

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Dataset:
        """Return the elements in random order: each is drawn from a buffer of the next `buffer_size`.

        Args:
            buffer_size: The size of the buffer.
            seed: For the same order each time the program runs; it differs from TensorFlow's.
            reshuffle_each_iteration: Whether each iteration has an order of its own.
            name: Not used.
        """
        buffer = _ALL if int(buffer_size) == UNKNOWN_CARDINALITY else positive(buffer_size, "buffer_size")
        return self._then(Shuffle(fixed_seed(seed), buffer, reshuffle_each_iteration is not False))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Return element `index`, and from there every `num_shards`-th."""
        step, first = positive(num_shards, "num_shards"), int(index)
        if not 0 <= first < step:
            message = f"Index must be between 0 and {step - 1} (currently index = {first})."
            raise InvalidArgumentError(message)
        return self._then(Every(first, step), self._counted(lambda count: len(range(first, count, step))))

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """Return the first `count` elements; all if it is -1. Failed ones are not counted."""
        number = whole_number(count, "take")
        if number < 0:
            return self
        left = number if self._count == INFINITE_CARDINALITY else self._counted(lambda count: min(count, number))
        return self._then(First(number), left)

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """Return all but the first `count` elements; none if it is -1."""
        number = whole_number(count, "skip")
        if number < 0:
            return self.take(0)
        return self._then(Past(number), self._counted(lambda count: max(0, count - number)))

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """Repeat the dataset `count` times; endlessly if it is None or -1."""
        times = -1 if count is None else whole_number(count, "repeat")
        if times < 0:
            return Dataset(self._pipe.repeat(), 0 if self._count == 0 else INFINITE_CARDINALITY, self._spec)
        if not self._count:
            times = 0
        total = 0 if times == 0 else self._counted(lambda count: times * count)
        return Dataset(self._pipe.repeat(times), total, self._spec)

    # --- Batches

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Stack `batch_size` elements at a time; the last batch may be smaller."""
        return self._grouped(batch_size, drop_remainder, Make(batched), partial(_specs.batched, self._spec))

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Pad `batch_size` elements at a time to one shape, and stack them.

        Args:
            batch_size: How many elements.
            padded_shapes: The shapes to pad to, in the structure of an element; None for the largest size in the batch,
                which is the default.
            padding_values: In the structure of an element, or one for all; zero, or an empty string, by default.
            drop_remainder: Whether to drop a last batch that is smaller.
            name: Not used.
        """
        shapes = _specs.padded_shapes(self._spec, padded_shapes)
        _specs.padding_values(self._spec, padding_values)
        padded = partial(_batches.padded, shapes=shapes, fills=padding_values)
        return self._grouped(batch_size, drop_remainder, Make(padded), lambda _: UNKNOWN, fused=False)

    def ragged_batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        row_splits_dtype: DTypeLike = int64,
        name: str | None = None,
    ) -> Dataset:
        """Batch `batch_size` elements at a time, as ragged tensors where sizes are unknown before running.

        As in TensorFlow, what `tf.TensorSpec([None])` describes is ragged, even in a batch whose rows agree, and what
        `FixedLenFeature([3])` describes is not. Of arrays that a function made with NumPy, the first dimension is
        ragged.
        """
        ragged = Ragged(as_dtype(row_splits_dtype).numpy)
        return self._grouped(batch_size, drop_remainder, ragged, lambda _: UNKNOWN)

    def _grouped(
        self,
        batch_size: Any,
        drop_remainder: Any,
        made: Any,
        spec: Callable[[int | None], Any],
        *,
        fused: bool = True,
    ) -> Dataset:
        size = positive(batch_size, "batch_size")
        pipe = group(self._pipe, size, bool(drop_remainder), fused=fused)
        count = self._counted(lambda count: count // size if drop_remainder else -(-count // size))
        return Dataset(pipe.with_step(made), count, spec(size if drop_remainder else None))

    def unbatch(self, name: str | None = None) -> Dataset:
        """Return the rows of each element as elements."""
        spec = _specs.rows(self._spec)
        pipe = self._pipe.with_step(Make(_batches.rows_of))
        return Dataset(pipe.map(lambda rows: [rows] if isinstance(rows, Failed) else list(rows)).unbatch(), spec=spec)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Return each element with its number."""
        pipe = self._pipe.enumerate().with_step(Make(partial(_numbered, whole_number(start, "enumerate"))))
        return Dataset(pipe, self._count, (TensorSpec([], int64), self._spec))

    # --- Prefetching and caching

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """Make up to `buffer_size` elements ahead of time; with AUTOTUNE, as many as needed."""
        size = int(buffer_size)
        if size < AUTOTUNE:
            message = f"buffer_size must be >= 0 or tf.data.AUTOTUNE, found {size}"
            raise InvalidArgumentError(message)
        if size == 0:
            return self
        if size < 0:
            return self._then(Prefetch(AUTO))
        # Elements come in small blocks, so that those that are being made, those that wait and those that were handed
        # over never exceed the buffer size together.
        few = max(1, min(256, size // 8))
        return Dataset(limit_blocks(self._pipe, few).with_step(Prefetch(size - 3 * few + 3)), self._count, self._spec)

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Make the elements once, and then read them from memory or from a folder.

        Args:
            filename: The folder, in recordkit's format; TensorFlow's caches are not read. As in TensorFlow, an existing
                cache is used even if the records or the steps before it have changed. A warning says so if the change
                is visible: of functions, only the names are compared.
            name: Not used.
        """
        in_memory = isinstance(filename, str) and not filename
        path = "" if in_memory else file_names(filename)[0]
        pipe = self._pipe.with_step(Raised(plain if path else shown))
        if not path:  # nobody else uses a cache in memory, so it needs no fingerprint
            return Dataset(Pipeline(Cache(pipe, None, None, "", repr(pipe))), self._count, self._spec)
        made_of = pipe.cache(path, key="tf").digest
        kept = Pipeline(Cache(pipe, Path(path), None, made_of, repr(pipe)))
        return Dataset(kept.with_step(Make(partial(_restored, self._spec))), self._count, self._spec)

    # --- Iteration

    def __iter__(self) -> Iterator[Any]:
        return _Elements(self._pipe)

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Return an iterator over the elements, with NumPy arrays and `bytes` instead of tensors."""
        return (map_leaves(to_numpy, element) for element in self)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: str | None = None) -> Any:
        """Combine all elements into a state: the function takes the last state and an element, and returns the next.

        >>> int(Dataset.range(5).reduce(np.int64(0), lambda state, n: state + n))
        10
        """
        state = to_tensors(initial_state)
        for element in self:
            state = map_leaves(_state, to_tensors(reduce_func(state, element)), state)
        return state

    def apply(self, transformation_func: Callable[[Dataset], Any]) -> Dataset:
        """Return the dataset that a function makes of this one."""
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            message = f"apply: the function must return a Dataset, found {type(made).__name__}"
            raise TypeError(message)
        return made

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """Return the dataset unchanged: there are no options."""
        return self

    def cardinality(self) -> Tensor:
        """Return the number of elements; -1 if they are infinite, -2 if it is unknown, as it is of files."""
        return Tensor(np.array(self._count, np.int64))

    def _counted(self, count: Callable[[int], int]) -> int:
        return count(self._count) if self._count >= 0 else self._count

    def __len__(self) -> int:
        if self._count < 0:
            infinite = self._count == INFINITE_CARDINALITY
            raise TypeError("The dataset is infinite." if infinite else "The dataset length is unknown.")
        return self._count

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        offered = [each for each in dir(type(self)) if not each.startswith("_")]
        return _names.getter("tf.data.Dataset", {}, dict.fromkeys(offered, ""))(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._pipe!r}>"


class TFRecordDataset(Dataset):
    """The payloads of TFRecord files, as strings; every checksum is verified.

    Args:
        filenames: One or several names, or a dataset of them.
        compression_type: `"GZIP"`, `"ZLIB"` or none; recordkit detects the compression by itself.
        buffer_size: Not used.
        num_parallel_reads: How many files to read at a time, a record of each in turn; by default one after the other.
        name: Not used.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        TFRecordOptions.get_compression_type_string(compression_type)
        if isinstance(filenames, Dataset) or num_parallel_reads is not None:
            names = filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(file_names(filenames))
            cycle = 1 if num_parallel_reads is None else num_parallel_reads
            parallel = None if num_parallel_reads is None else AUTOTUNE
            super().__init__(names.interleave(TFRecordDataset, cycle, num_parallel_calls=parallel)._pipe, spec=STRING)
            return
        paths = tuple(file_names(filenames))
        super().__init__(Pipeline(Files(paths)) if paths else from_generator(tuple), spec=STRING)


class _Elements(Iterator[Any]):
    """One iteration over a dataset. It continues after an element that failed."""

    def __init__(self, pipe: Pipeline) -> None:
        # Files are opened again for each iteration: they may have changed.
        fresh = replace(pipe, source=replace(pipe.source)) if isinstance(pipe.source, Files) else pipe
        self._elements = iter(fresh)

    def __next__(self) -> Any:
        return shown(next(self._elements))

    def __iter__(self) -> Self:
        return self


def _opened(function: Callable[..., Any], element: Any, *, ahead: bool, tolerant: bool, most: int) -> Any:
    """Return an iterator over the dataset that the user's function returns for an element."""
    made = function(*arguments(element))
    if not isinstance(made, Dataset):
        message = f"interleave and flat_map: the function must return a Dataset, found {type(made).__name__}"
        raise TypeError(message)
    pipe = ignore_failures(made._pipe, Good()) if tolerant else made._pipe
    pipe = limit_blocks(pipe, most)
    return iter(pipe.prefetch() if ahead else pipe)


def _side_by_side(structure: Any, elements: tuple[Any, ...]) -> Any:
    failed = first_failure(elements)
    coming = iter(elements)
    return failed or map_leaves(lambda _: to_tensors(next(coming)), structure)


def _numbered(start: int, pair: tuple[int, Any]) -> Any:
    number, element = pair
    if isinstance(element, Failed):
        return element
    return Tensor(np.array(start + number, np.int64)), to_tensors(element)


def _restored(spec: Any, kept: Any) -> Any:
    """Return an element of a cache on disk; the cache may have been made from other elements than the current ones."""
    element = restored(kept)
    try:
        _specs.joined(spec, _specs.spec_of(element))
    except TypeError:
        found = _specs.spec_of(element)
        message = f"cache: expected elements like {spec!r}, found {found!r}\n  Remove the cache to rebuild it."
        raise InvalidArgumentError(message) from None
    return element


def _state(new: Any, old: Any) -> Any:
    """Return a new state; its dtype must be that of the old one."""
    if isinstance(new, Tensor) and isinstance(old, Tensor) and new.dtype != old.dtype:
        message = f"reduce: expected a state of dtype {old.dtype.name}, but the function returned {new.dtype.name}"
        raise TypeError(message)
    return new


def _whole(leaf: Any) -> Any:
    return leaf if leaf is None else to_tensors(leaf)
