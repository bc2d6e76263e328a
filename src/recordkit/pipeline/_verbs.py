"""Verbs: the methods that add a step to a dataset or a pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recordkit import images, storage
from recordkit.columns import Batch
from recordkit.engines import AUTO, Workers
from recordkit.engines import count as _count_workers
from recordkit.errors import SchemaError, StateError
from recordkit.expressions import Expression
from recordkit.wording import parse_size, whole_number

from ._combine import Concat, Mix, Zip
from ._element_steps import BatchStep, DecodeImages, Filter, Map, MapBatches, Where
from ._order_steps import Interleave, RepeatStep, ShardStep, Shuffle, SkipStep, TakeStep
from ._sequential_steps import BufferShuffle, Enumerate, Prefetch, Unbatch

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from recordkit.storage.write import Writer, Written

    from ._order_steps import Uneven
    from ._pipeline import Pipeline
    from ._step import Step

_MOST = 1 << 62  # bytes or ranks: orders are computed with 64 bits


class Steps:
    """Methods of datasets and pipelines alike. Each returns a new pipeline."""

    def as_pipeline(self) -> Pipeline:
        """Return these elements as a pipeline. Internal to recordkit."""
        raise NotImplementedError

    def _then(self, step: Step) -> Pipeline:
        return self.as_pipeline().with_step(step)

    # --- Transforming elements

    def map(self, function: Callable[[Any], Any], *, workers: Workers = AUTO) -> Pipeline:
        """Return the function's result for each element: for each row, as a dict; after `batch`, for each batch.

        Args:
            function: Called by several workers at once.
            workers: How many. `AUTO` means a thread for each processor, and more if they wait for something else; use
                `rk.Processes(n)` for CPU-heavy Python functions.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: range(4)).map(lambda n: n * n))
        [0, 1, 4, 9]
        """
        return self._then(Map(function_of(function, "map"), checked_workers(workers)))

    def map_batches(self, function: Callable[[Any], Any], *, workers: Workers = AUTO) -> Pipeline:
        """Return the function's result for columns: after `batch`, of each batch; otherwise of any number of rows.

        Before `batch`, the function gets rows in batches of any size, and must return as many rows as it gets, as a
        dict of columns or a `Batch`.

        >>> from recordkit import from_generator
        >>> rows = from_generator(lambda: ({"n": n} for n in range(3)), {"n": "int64"})
        >>> [row["n"].item() for row in rows.map_batches(lambda batch: {"n": batch["n"] * 10})]
        [0, 10, 20]
        """
        pipe, checked = self.as_pipeline(), function_of(function, "map_batches")
        kind = Map if pipe.batched else MapBatches
        return pipe.with_step(kind(checked, checked_workers(workers)))

    def filter(self, wanted: Callable[[Any], Any] | str, *, workers: Workers = AUTO) -> Pipeline:
        """Keep elements for which the function returns true, or rows that match the expression.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: range(6)).filter(lambda n: n % 2))
        [1, 3, 5]
        """
        if isinstance(wanted, str):
            return self._then(Where(Expression(wanted)))
        return self._then(Filter(function_of(wanted, "filter"), checked_workers(workers)))

    def decode_images(self, field: str, size: tuple[int, int] | None = None, **options: Any) -> Pipeline:
        """Return rows with decoded pictures in place of their bytes.

        Args:
            field: The field with the JPEG or PNG files.
            size: Resize to (height, width), so that pictures can be stacked; by default they keep their sizes.
            options: Those of `recordkit.images.decode_batch`: `scaled=`, `channels=`, `dtype=`, `scale=`, ...
        """
        if not isinstance(field, str):
            message = f"decode_images: expected the name of a field, found {type(field).__name__}"
            raise TypeError(message)
        if "out" in options:
            message = (
                "decode_images: out= is for images.decode_batch; every batch of a pipeline has an array of its own"
            )
            raise TypeError(message)
        if isinstance(size, int):
            message = (
                f"decode_images: size is (height, width), found {size}\n"
                f"  Write decode_images({field!r}, ({size}, {size}))."
            )
            raise SchemaError(message, expected="(height, width)", found=str(size))
        images.decode_batch([], size, **options)  # raises what it would for the first batch
        return self._then(DecodeImages(field, size, tuple(sorted(options.items()))))

    # --- Order

    def shuffle(self, seed: int = 0, *, window: int | str | None = None, buffer: int | None = None) -> Pipeline:
        """Return the elements in random order: a different one each epoch, the same for the same seed.

        By default this is a permutation of all records. The order is computed, not buffered: it needs no memory, and
        the first element comes immediately.

        Args:
            seed: Any number.
            window: Read in large pieces, and hold this much (`"512MB"`) in memory: for cold disks, object stores and
                compressed files. Pieces of consecutive records are permuted, and records are shuffled within the
                window.
            buffer: Hold this many elements, and return a random one: for streams, and after steps that drop elements.

        Raises:
            StateError: The steps before it do not keep one element for each record, and there is no `buffer`.
        """
        if window is not None and buffer is not None:
            message = "shuffle: give window= or buffer=, not both"
            raise ValueError(message)
        seed = whole_number(seed, "seed", least=None)
        if buffer is not None:
            return self._then(BufferShuffle(seed, whole_number(buffer, "buffer", least=1)))
        return self._then(Shuffle(seed, None if window is None else min(parse_size(window), _MOST)))

    def interleave(self, cycle: int = 16, *, block: int = 1) -> Pipeline:
        """Return the records of `cycle` files in turns, `block` of each; when a file ends, the next takes its place."""
        return self._then(Interleave(whole_number(cycle, "cycle", least=1), whole_number(block, "block", least=1)))

    def shard(self, rank: int | Literal["auto"], world: int | None = None, *, uneven: Uneven = "pad") -> Pipeline:
        """Return every `world`-th element, starting with number `rank`: all ranks together get every element.

        Args:
            rank: The rank of this process, from 0 up; `"auto"` asks torch.distributed, or JAX for the process index.
            world: How many ranks there are.
            uneven: If the elements cannot be divided evenly: `"pad"` repeats some of the first, `"drop"` drops the last
                ones, `"error"` raises. With the first two, all ranks get the same number of batches.
        """
        if rank == "auto":
            rank, world = _ranks()
        if world is None or not 0 <= whole_number(rank, "rank") < whole_number(world, "world", least=1) <= _MOST:
            message = f"shard: expected a rank from 0 up and below world, found rank {rank!r} of {world!r}"
            raise ValueError(message)
        if uneven not in ("pad", "drop", "error"):
            message = f"uneven is 'pad', 'drop' or 'error', found {uneven!r}"
            raise ValueError(message)
        return self._then(ShardStep(int(rank), int(world), uneven))

    def take(self, count: int) -> Any:
        """Return the first `count` elements.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: range(9)).take(2))
        [0, 1]
        """
        return self._then(TakeStep(whole_number(count, "count")))

    def skip(self, count: int) -> Any:
        """Return all but the first `count` elements.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: range(4)).skip(2))
        [2, 3]
        """
        return self._then(SkipStep(whole_number(count, "count")))

    def repeat(self, times: int | None = None) -> Pipeline:
        """Return all elements `times` times, or without end. Each pass is an epoch of its own, with a new shuffle.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: range(2)).repeat(2))
        [0, 1, 0, 1]
        """
        return self._then(RepeatStep(None if times is None else whole_number(times, "times")))

    # --- Combining

    def batch(self, size: int, *, drop_last: bool = False, pad: Any = None, workers: Workers | None = None) -> Pipeline:
        """Return batches of `size` elements.

        Rows of a dataset become a `Batch` of columns, payloads a list. Results of `map` are collated: dicts and tuples
        keep their structure, arrays of equal shapes are stacked, others become `Ragged`.

        Args:
            size: How many elements a batch has.
            drop_last: Drop a last batch that is shorter.
            pad: Pad ragged columns with this, or with the dict's value for each name.
            workers: How many threads read and decode; by default those given to `open`.

        >>> from recordkit import from_generator
        >>> [batch.tolist() for batch in from_generator(lambda: range(5)).batch(2)]
        [[0, 1], [2, 3], [4]]
        """
        pipe = self.as_pipeline()
        pipe = pipe.with_step(BatchStep(whole_number(size, "size", least=1), drop_last, pad, pipe.gives_lists))
        return pipe if workers is None else replace(pipe, workers=checked_workers(workers))

    def unbatch(self) -> Pipeline:
        """Return the rows of each element: of a batch, a list or an array.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: [[1, 2], [3]]).unbatch())
        [1, 2, 3]
        """
        return self._then(Unbatch())

    def enumerate(self) -> Pipeline:
        """Return tuples of each element's number in the epoch and the element.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: "ab").enumerate())
        [(0, 'a'), (1, 'b')]
        """
        return self._then(Enumerate())

    def zip(self, *others: Steps) -> Pipeline:
        """Return tuples of one element of this and one of each other, until any of them ends.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: range(3)).zip(from_generator(lambda: "ab")))
        [(0, 'a'), (1, 'b')]
        """
        return self.as_pipeline()._of(Zip((self.as_pipeline(), *(other.as_pipeline() for other in others))))

    def concat(self, *others: Steps) -> Pipeline:
        """Return all elements of this, then all of each other.

        >>> from recordkit import from_generator
        >>> list(from_generator(lambda: range(2)).concat(from_generator(lambda: "ab")))
        [0, 1, 'a', 'b']
        """
        return self.as_pipeline()._of(Concat((self.as_pipeline(), *(other.as_pipeline() for other in others))))

    def mix(
        self,
        *others: Steps,
        weights: Sequence[float] | None = None,
        seed: int = 0,
        stop: Literal["all", "first"] = "all",
    ) -> Pipeline:
        """Return elements of this and the others, each time from one chosen at random.

        Args:
            others: What to mix with.
            weights: How often each is chosen, this one first; equally often by default.
            seed: Any number.
            stop: Stop at the end of `"all"`, or when the `"first"` one ends.

        >>> from recordkit import from_generator
        >>> ones, twos = from_generator(lambda: [1] * 3), from_generator(lambda: [2] * 2)
        >>> sorted(ones.mix(twos))
        [1, 1, 1, 2, 2]
        """
        pipes = (self.as_pipeline(), *(other.as_pipeline() for other in others))
        shares = tuple(map(float, weights)) if weights is not None else (1.0,) * len(pipes)
        if len(shares) != len(pipes) or not all(0 < share < np.inf for share in shares):
            message = f"mix: expected {len(pipes)} weights above 0, one for each, found {weights!r}"
            raise ValueError(message)
        if stop not in ("all", "first"):
            message = f"stop is 'all' or 'first', found {stop!r}"
            raise ValueError(message)
        return self.as_pipeline()._of(Mix(pipes, shares, whole_number(seed, "seed", least=None), stop))

    # --- Preparing ahead

    def prefetch(self, count: int | str = AUTO) -> Pipeline:
        """Return the same elements, prepared ahead of time: `count` of them, or as many as needed to avoid waiting."""
        return self._then(Prefetch(count if count == AUTO else whole_number(count, "count", least=1)))

    def cache(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int | str | None = None,
        key: str | None = None,
    ) -> Pipeline:
        """Return the same elements, computed once: later epochs read them from memory or disk.

        The cache is kept once all elements have been computed. They stay in the order of the first epoch: shuffle
        after the cache.

        Args:
            path: A folder for the cache alone. A cache that is there is used if it was made from the same records by
                the same steps, and replaced otherwise. It can hold numbers, text, bytes, arrays, and lists, tuples and
                dicts of them; nothing is pickled.
            max_bytes: If the elements need more memory than this (`"8GB"`), move them to a temporary folder.
            key: Change it when a function before the cache changes, because recordkit cannot detect that.

        Raises:
            StateError: There are functions among the steps, and a path, but no key.
        """
        return self.as_pipeline()._cached(path, max_bytes, key)

    # --- Writing

    def write(self, path: str | os.PathLike[str], schema: Any = None, **options: Any) -> Written:
        """Write one epoch as a dataset, and return what was written.

        Args:
            path: As for `recordkit.create`, like the schema and the options.
            schema: What the rows hold; by default inferred from the first ones.
            options: `shard_size=`, `compression=`, ...
        """
        with storage.create(path, schema, **options) as writer:
            for block in self.as_pipeline().blocks(None, 0):
                if isinstance(block.values, Batch):
                    writer.write_batch(block.values)
                else:
                    for element in block.values:
                        _put(writer, element)
            return writer.close()


def _put(writer: Writer, element: Any) -> None:
    if isinstance(element, Batch):
        writer.write_batch(element)
    elif isinstance(element, bytes):
        writer.write_raw(element)
    else:
        writer.write(element)


def _ranks() -> tuple[int, int]:
    """Return rank and world from torch.distributed, or else from JAX."""
    import sys  # a program that uses one of them has imported it

    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        return torch.get_rank(), torch.get_world_size()
    jax = sys.modules.get("jax")
    if jax is not None:
        return jax.process_index(), jax.process_count()
    message = (
        'shard("auto"): neither torch.distributed is initialised nor JAX imported\n'
        "  Do that first, or give rank and world."
    )
    raise StateError(message)


def function_of(function: Any, what: str) -> Any:
    """Return a function; raise if it is not callable."""
    if not callable(function):
        message = f"{what} takes a function, found {type(function).__name__}"
        raise TypeError(message)
    return function


def checked_workers(workers: Workers) -> Workers:
    """Return workers; raise if they are not valid."""
    _count_workers(workers)
    return workers
