"""Pipeline: a source of elements and the steps that are done with them, described now and carried out when iterated."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recordkit import storage
from recordkit.columns import Batch
from recordkit.errors import StateError
from recordkit.expressions import Expression
from recordkit.schema import Schema
from recordkit.storage import parse_size
from recordkit.workers import AUTO, Workers
from recordkit.workers import count as _count_workers

from . import _explain, _order, _stages, _state
from ._cache import Cached, fingerprint
from ._generated import Generated
from ._iterator import PipelineIterator
from ._joints import Concat, Mix, Zip
from ._order import Interleave, Shuffle
from ._plan import ORDER_ONLY, UNCHANGED, any_ranks, divided, planned
from ._profile import Profile
from ._steps import DecodeImages, Filter, Group, Map, MapBatches, Where, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from recordkit.storage import Writer, Written

    from ._blocks import Block, Mark
    from ._joints import Flowing
    from ._order import Uneven


class Steps:
    """The steps that anything which has elements can be given. Each returns a new pipeline."""

    def _pipeline(self) -> Pipeline:
        raise NotImplementedError

    def _then(self, step: Any) -> Pipeline:
        return self._pipeline()._with(step)

    # --- What becomes of each element

    def map(self, function: Callable[[Any], Any], *, workers: Workers = AUTO) -> Pipeline:
        """Return what a function makes of each element: of a row, a dict; behind `batch`, of a batch.

        Args:
            function: Called by several workers at once.
            workers: How many: `AUTO` takes a thread a processor, and more where they wait for something else;
                `rk.Processes(n)` is for functions of much Python.

        >>> list(from_generator(lambda: range(4)).map(lambda n: n * n))
        [0, 1, 4, 9]
        """
        return self._then(Map(_function(function, "map"), _checked_workers(workers)))

    def map_batches(self, function: Callable[[Any], Any], *, workers: Workers = AUTO) -> Pipeline:
        """Return what a function makes of columns: behind `batch`, of each batch; else of as many rows as fit.

        Before `batch` it must give as many rows as it gets, as a dict of columns or a `Batch`, and must not mind how
        many those are.

        >>> rows = from_generator(lambda: ({"n": n} for n in range(3)), {"n": "int64"})
        >>> [row["n"].item() for row in rows.map_batches(lambda batch: {"n": batch["n"] * 10})]
        [0, 10, 20]
        """
        pipe, checked = self._pipeline(), _function(function, "map_batches")
        kind = Map if pipe._batched else MapBatches
        return pipe._with(kind(checked, _checked_workers(workers)))

    def filter(self, wanted: Callable[[Any], Any] | str, *, workers: Workers = AUTO) -> Pipeline:
        """Return the elements for which a function says yes, or the rows that an expression takes.

        >>> list(from_generator(lambda: range(6)).filter(lambda n: n % 2))
        [1, 3, 5]
        """
        if isinstance(wanted, str):
            return self._then(Where(Expression(wanted)))
        return self._then(Filter(_function(wanted, "filter"), _checked_workers(workers)))

    def decode_images(self, field: str, size: tuple[int, int] | None = None, **options: Any) -> Pipeline:
        """Return rows with the pixels of a field's pictures in place of their bytes.

        Args:
            field: Holds JPEG or PNG.
            size: Resize to (height, width), so that pictures can be stacked; else they are as large as they are.
            options: As `recordkit.images.decode_batch` takes them: `scaled=`, `channels=`, `dtype=`, `scale=`, ...
        """
        if size is not None and (len(size) != 2 or min(size) < 1):
            message = f"size is (height, width), found {size!r}"
            raise ValueError(message)
        return self._then(DecodeImages(field, size, tuple(sorted(options.items()))))

    # --- In which order

    def shuffle(self, seed: int = 0, *, window: int | str | None = None, buffer: int | None = None) -> Pipeline:
        """Return the elements in random order, another one each epoch, the same for the same seed.

        By default it is a permutation of all records, which costs no memory and no time: any record comes at any place.

        Args:
            seed: Any number.
            window: Read in large pieces, and hold so many bytes (`"512MB"`) of them in memory: for cold disks, object
                stores and compressed files. Pieces of consecutive records come anywhere; records are shuffled within
                the window.
            buffer: Hold so many elements, and give a random one: for streams, and behind steps that drop elements.

        Raises:
            StateError: The steps before it do not keep one element for each record, and there is no `buffer`.
        """
        if window is not None and buffer is not None:
            message = "shuffle: give window= or buffer=, not both"
            raise ValueError(message)
        seed = _natural(seed, "seed", least=None)
        if buffer is not None:
            return self._then(_stages.BufferShuffle(seed, _natural(buffer, "buffer", least=1)))
        return self._then(Shuffle(seed, None if window is None else parse_size(window)))

    def interleave(self, cycle: int = 16, *, block: int = 1) -> Pipeline:
        """Return the records of `cycle` files in turns, `block` of each; where one ends, the next takes its place."""
        return self._then(Interleave(_natural(cycle, "cycle", least=1), _natural(block, "block", least=1)))

    def shard(self, rank: int | Literal["auto"], world: int | None = None, *, uneven: Uneven = "pad") -> Pipeline:
        """Return every `world`-th element from number `rank` on: all ranks together have all of them.

        Args:
            rank: Which one this is, from 0 up; `"auto"` asks torch.distributed, or JAX for the process index.
            world: How many there are.
            uneven: Where they do not come out even: `"pad"` gives some of the first once more, `"drop"` leaves out the
                last ones, `"error"` raises. With the first two every rank has as many batches as the others.
        """
        if rank == "auto":
            rank, world = _ranks()
        if world is None or not 0 <= _natural(rank, "rank") < _natural(world, "world", least=1):
            message = f"shard: expected a rank from 0 up and below world, found rank {rank!r} of {world!r}"
            raise ValueError(message)
        if uneven not in ("pad", "drop", "error"):
            message = f"uneven is 'pad', 'drop' or 'error', found {uneven!r}"
            raise ValueError(message)
        return self._then(_stages.Shard(int(rank), int(world), uneven))

    def take(self, count: int) -> Any:
        """Return the first `count` elements.

        >>> list(from_generator(lambda: range(9)).take(2))
        [0, 1]
        """
        return self._then(_stages.Take(_natural(count, "count")))

    def skip(self, count: int) -> Any:
        """Return all but the first `count` elements.

        >>> list(from_generator(lambda: range(4)).skip(2))
        [2, 3]
        """
        return self._then(_stages.Skip(_natural(count, "count")))

    def repeat(self, times: int | None = None) -> Pipeline:
        """Return everything `times` times, or without end; each pass is an epoch of its own, shuffled anew.

        >>> list(from_generator(lambda: range(2)).repeat(2))
        [0, 1, 0, 1]
        """
        return self._then(_stages.Repeat(None if times is None else _natural(times, "times")))

    # --- Many as one

    def batch(self, size: int, *, drop_last: bool = False, pad: Any = None, workers: Workers | None = None) -> Pipeline:
        """Return batches of `size` elements.

        Rows of a dataset make a `Batch` of columns, payloads a list. What `map` returned is collated: dicts and tuples
        keep their structure, equal shapes are stacked, unequal ones become `Ragged`.

        Args:
            size: How many elements a batch has.
            drop_last: Leave out a last batch that is shorter.
            pad: Fill up what is ragged with this, or with what a dict has for each name.
            workers: How many threads read and decode; by default as many as when the dataset was opened.

        >>> [batch.tolist() for batch in from_generator(lambda: range(5)).batch(2)]
        [[0, 1], [2, 3], [4]]
        """
        pipe = self._pipeline()
        pipe = pipe._with(Group(_natural(size, "size", least=1), drop_last, pad, pipe._lists))
        return pipe if workers is None else replace(pipe, workers=_checked_workers(workers))

    def unbatch(self) -> Pipeline:
        """Return the rows of each element: of a batch, a list or an array.

        >>> list(from_generator(lambda: [[1, 2], [3]]).unbatch())
        [1, 2, 3]
        """
        return self._then(_stages.Unbatch())

    def enumerate(self) -> Pipeline:
        """Return each element with its number in the epoch, as a tuple.

        >>> list(from_generator(lambda: "ab").enumerate())
        [(0, 'a'), (1, 'b')]
        """
        return self._then(_stages.Enumerate())

    def zip(self, *others: Steps) -> Pipeline:
        """Return tuples of one element of this and one of each other, until one ends.

        >>> list(from_generator(lambda: range(3)).zip(from_generator(lambda: "ab")))
        [(0, 'a'), (1, 'b')]
        """
        return _joint(Zip((self._pipeline(), *(other._pipeline() for other in others))))

    def concat(self, *others: Steps) -> Pipeline:
        """Return all elements of this, then all of each other.

        >>> list(from_generator(lambda: range(2)).concat(from_generator(lambda: "ab")))
        [0, 1, 'a', 'b']
        """
        return _joint(Concat((self._pipeline(), *(other._pipeline() for other in others))))

    def mix(
        self,
        *others: Steps,
        weights: Sequence[float] | None = None,
        seed: int = 0,
        stop: Literal["all", "first"] = "all",
    ) -> Pipeline:
        """Return elements of this and the others in random turns.

        Args:
            others: What to mix with.
            weights: How often each has its turn, this one first; equally often by default.
            seed: Any number.
            stop: At the end of `"all"`, or of the `"first"` to end.

        >>> ones, twos = from_generator(lambda: [1] * 3), from_generator(lambda: [2] * 2)
        >>> sorted(ones.mix(twos))
        [1, 1, 1, 2, 2]
        """
        pipes = (self._pipeline(), *(other._pipeline() for other in others))
        shares = tuple(map(float, weights)) if weights is not None else (1.0,) * len(pipes)
        if len(shares) != len(pipes) or not all(0 < share < np.inf for share in shares):
            message = f"mix: expected {len(pipes)} weights above 0, one for each, found {weights!r}"
            raise ValueError(message)
        if stop not in ("all", "first"):
            message = f"stop is 'all' or 'first', found {stop!r}"
            raise ValueError(message)
        return _joint(Mix(pipes, shares, _natural(seed, "seed", least=None), stop))

    # --- Ahead of time

    def prefetch(self, count: int | str = AUTO) -> Pipeline:
        """Return the same elements, made before they are asked for: so many, or as many as it takes not to wait."""
        return self._then(_stages.Prefetch(count if count == AUTO else _natural(count, "count", least=1)))

    def cache(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int | str | None = None,
        key: str | None = None,
    ) -> Pipeline:
        """Return the same elements, made once: the next time they come from memory, or from the disk.

        They are kept when all have been made, or not at all. Their order is that of the first epoch; shuffle behind it.

        Args:
            path: A folder of its own to keep them in. They are pickled there: open only what you trust. What is there
                is used if it was made of the same records by the same steps, and replaced otherwise.
            max_bytes: Where memory is to hold no more than this (`"8GB"`), all goes to a temporary folder.
            key: What to change when a function of the steps before it changes, which no one else can tell.

        Raises:
            StateError: There are functions among the steps, a path, and no key.
        """
        return self._pipeline()._cached(path, max_bytes, key)

    # --- Elsewhere

    def write(self, path: str | os.PathLike[str], schema: Any = None, **options: Any) -> Written:
        """Write one epoch as a dataset, and return what was written.

        Args:
            path: As `recordkit.create` takes it, and so are the schema and the options.
            schema: What the rows hold; by default told from the first.
            options: `shard_size=`, `compression=`, ...
        """
        with storage.create(path, schema, **options) as writer:
            for block in self._pipeline().blocks(None, 0):
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


@dataclass
class _Epochs:
    next: int = 0


@dataclass(frozen=True, repr=False, eq=False)
class Pipeline(Steps):
    """Elements, and the steps that are done with them: described now, carried out when iterated.

    Immutable: every step returns a new pipeline. Each iteration is the next epoch; `set_epoch` chooses. Can be pickled,
    if the functions in it can.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/numbers.tfrecord"
    >>> _ = rk.write(path, [{"n": n} for n in range(10)])
    >>> pipe = rk.open(path).shuffle(seed=7).map(lambda row: row["n"] * 10).batch(4)
    >>> sorted(int(n) for batch in pipe for n in batch)
    [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]
    >>> it = iter(pipe)
    >>> first = next(it)
    >>> rest = pipe.resume(it.state_dict())
    >>> [len(batch) for batch in rest]
    [4, 2]

    Attributes:
        source: Where elements come from.
        steps: What is done with them, first to last.
        workers: Who reads, and carries out steps that do not say who should.
    """

    source: Any
    steps: tuple[Any, ...] = ()
    workers: Workers = AUTO
    every: tuple[int, int] | None = None
    _epochs: _Epochs = field(default_factory=_Epochs)
    _profile: Profile = field(default_factory=Profile)

    def _pipeline(self) -> Pipeline:
        return self

    def _with(self, step: Any) -> Pipeline:
        pipe = replace(self, steps=(*self.steps, step), _epochs=_Epochs(self._epochs.next), _profile=Profile())
        if isinstance(step, ORDER_ONLY):
            order, rest = divided(pipe.source, pipe.steps)
            if any(each is step for _, each in rest):
                raise _cannot_order(step, pipe.source, [each for _, each in rest])
            if isinstance(step, Interleave) and order[0][1] is not step:
                raise _not_files(order[0][1])
        return pipe

    @cached_property
    def _flowing(self) -> Flowing:
        return planned(self.source, self.steps, self.workers, self._profile, self.every)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_flowing"}

    def blocks(self, mark: Mark, epoch: int) -> Generator[Block, None, None]:
        """Yield the elements behind a mark, many at a time."""
        return self._flowing.blocks(mark, epoch)

    def count(self) -> int | None:
        """Return how many elements an epoch has; None if that is not known, or there is no end."""
        return self._flowing.count()

    def __len__(self) -> int:
        count = self.count()
        if count is None:
            message = f"{self.source.name}: how many elements there are is known at the end of an epoch, if it has one"
            raise TypeError(message)  # what `list` takes for an answer
        return count

    # --- Epochs and states

    def __iter__(self) -> PipelineIterator:
        epoch = self._epochs.next
        self._epochs.next = epoch + 1
        return self._iterator(epoch, None)

    def _iterator(self, epoch: int, mark: Mark) -> PipelineIterator:
        return PipelineIterator(self._flowing, epoch, mark, self._profile, self._state)

    def set_epoch(self, epoch: int) -> None:
        """Choose which epoch the next iteration is."""
        self._epochs.next = _natural(epoch, "epoch")

    def resume(self, state: Mapping[str, Any]) -> PipelineIterator:
        """Return what is left of the epoch that a state is of; the iteration after it is the next epoch.

        Raises:
            StateError: The state is of another dataset, of other steps, or of ranks that it is tied to.
        """
        epoch, mark = _state.checked(state, self.digest, self._order_words(), self._rank, self._tied)
        self._epochs.next = epoch + 1
        return self._iterator(epoch, _state.of_worker(state, mark, self.every))

    def _state(self, epoch: int, mark: Mark) -> dict[str, Any]:
        ranks = self._rank if self._tied is not None else None
        state = _state.made(epoch, mark, self.digest, self._order_words(), ranks)
        return state if self.every is None else {**state, "every": list(self.every)}

    @property
    def sharded(self) -> bool:
        """Whether the elements are those of one rank among several."""
        return any(isinstance(step, _order.Shard) for step in self.steps)

    @property
    def _rank(self) -> list[int] | None:
        return next(([step.rank, step.world] for step in self.steps if isinstance(step, _order.Shard)), None)

    @cached_property
    def _tied(self) -> str | None:
        return any_ranks(self.source, self.steps)

    @cached_property
    def digest(self) -> str:
        """What tells the records from all others, whatever they are stored in."""
        return str(self.source.digest())

    def _order_words(self) -> list[str]:
        """Return the steps that tell which elements come when; those that do not may change between two runs."""
        words: list[str] = []
        for at, step in enumerate(self.steps):
            if isinstance(step, _order.Shard):
                # Any number of ranks may go on, or the state says which; but passes are counted behind a repeat only.
                if self._tied is not None or any(isinstance(before, _order.Repeat) for before in self.steps[:at]):
                    words.append(f"Shard({step.uneven})")
                continue
            keeps = getattr(step, "keeps", False) or isinstance(step, _stages.Prefetch)
            if not keeps and not (isinstance(step, Group) and self._aligned):
                words.append(str(step))
        return words

    @property
    def _aligned(self) -> bool:
        """Whether marks count records, however many a batch has."""
        _, rest = divided(self.source, self.steps)
        keep = [step for _, step in rest if not isinstance(step, Group | _stages.Prefetch)]
        return all(getattr(step, "keeps", False) for step in keep)

    @property
    def _lists(self) -> bool:
        """Whether a batch is a list: payloads, and what parse= has made of them, are nobody's columns."""
        pipes = () if isinstance(getattr(self.source, "joint", None), Zip) else _pipes_in(self.source)
        lists = all(pipe._lists for pipe in pipes) if pipes else getattr(self.source, "lists", False)
        return lists and all(isinstance(step, UNCHANGED) for step in self.steps)

    @property
    def _batched(self) -> bool:
        """Whether elements are batches."""
        last = next((step for step in reversed(self.steps) if isinstance(step, Group | _stages.Unbatch)), None)
        if last is not None:
            return isinstance(last, Group)
        return any(pipe._batched for pipe in _pipes_in(self.source))

    def _every(self, first: int, step: int) -> Pipeline:
        """Return elements number `first`, and from there every `step`-th: what one of `step` workers gives."""
        return replace(self, every=(first, step), _epochs=_Epochs(self._epochs.next), _profile=Profile())

    # --- Caching

    def _cached(self, path: str | os.PathLike[str] | None, max_bytes: int | str | None, key: str | None) -> Pipeline:
        functions = list(self._functions())
        if path is not None and functions and key is None:
            message = (
                f"cache({os.fspath(path)!r}): nobody can tell whether {name_of(functions[0])} has changed since\n"
                "  Give key='1', and another key whenever what the steps before it do changes."
            )
            raise StateError(message)
        facts = [self._facts(), key]
        room = None if max_bytes is None else parse_size(max_bytes)
        folder = None if path is None else Path(path)
        return Pipeline(Cached(self, folder, room, fingerprint(facts), repr(self)), workers=self.workers)

    def _functions(self) -> Iterator[Any]:
        """Yield the functions of the user's that have a part in the elements."""
        if isinstance(self.source, Generated):
            yield self.source.function
        if (parse := getattr(getattr(self.source, "making", None), "parse", None)) is not None:
            yield parse
        for pipe in _pipes_in(self.source):
            yield from pipe._functions()
        yield from (step.function for step in self.steps if isinstance(step, Map | MapBatches | Filter))

    def _facts(self) -> list[Any]:
        """Return what the elements are made of, as far as can be told."""
        inside = [pipe._facts() for pipe in _pipes_in(self.source)]
        # The same records make other elements where other fields are selected.
        return [self.digest, str(getattr(self.source, "making", "")), inside, [str(step) for step in self.steps]]

    # --- In words

    def source_words(self) -> str:
        """Return where elements come from, in words."""
        words = getattr(self.source, "words", None)
        return str(words()) if words is not None else str(self.source.name)

    def explain(self) -> str:
        """Return the steps in words, and what the shuffle guarantees."""
        return _explain.explained(self)

    def profile(self) -> str:
        """Return where the time went so far, step by step, over all epochs of this pipeline."""
        return _explain.profiled(self, self._profile)

    def __repr__(self) -> str:
        return f"Pipeline({' > '.join([self.source.name, *map(str, self.steps)])})"


def from_generator(function: Callable[[], Iterable[Any]], schema: Schema | Mapping[str, Any] | None = None) -> Pipeline:
    """Return a pipeline of what a function yields; it is called once an epoch.

    Args:
        function: Takes nothing, and returns an iterable.
        schema: What its rows have to hold: they are checked, and come as columns. Without one, anything goes.

    >>> rows = from_generator(lambda: ({"n": n} for n in range(3)), {"n": "int32"})
    >>> next(iter(rows.batch(3)))["n"]
    array([0, 1, 2], dtype=int32)
    """
    declared = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
    return Pipeline(Generated(_function(function, "from_generator"), declared))


@dataclass(frozen=True)
class _Joint:
    """Several pipelines as one source."""

    joint: Any
    indexed = False

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{type(self.joint).__name__}({', '.join(repr(pipe) for pipe in self.joint.pipes)})"

    def blocks(self, mark: Mark, epoch: int) -> Generator[Block, None, None]:
        """Yield the elements behind a mark."""
        blocks: Generator[Block, None, None] = self.joint.blocks(mark, epoch)
        return blocks

    def count(self) -> int | None:
        """Return how many elements there are, if that is known."""
        count: int | None = self.joint.count()
        return count

    def digest(self) -> str:
        """Return what tells the elements from others."""
        joint = self.joint
        facts = [[pipe.digest, pipe._order_words()] for pipe in joint.pipes]
        how = [getattr(joint, name, None) for name in ("weights", "seed", "stop")]
        return fingerprint([type(joint).__name__, facts, how])


def _pipes_in(source: Any) -> tuple[Pipeline, ...]:
    """Return the pipelines whose elements a source gives."""
    if isinstance(source, Cached):
        return (source.upstream,)  # type: ignore[return-value]
    return source.joint.pipes if isinstance(source, _Joint) else ()


def _joint(joint: Zip | Concat | Mix) -> Pipeline:
    return Pipeline(_Joint(joint))


def _cannot_order(step: Any, source: Any, before: list[Any]) -> StateError:
    what = "shuffle(seed)" if isinstance(step, Shuffle) else "interleave"
    if not getattr(source, "indexed", False):
        why = f"{source.name} is a stream, whose elements have no numbers"
    else:
        first = next(each for each in before if not getattr(each, "keeps", False))
        why = f"{first} comes before it, which does not keep one element for each record"
    advice = "Give it buffer=10_000, or put it" if isinstance(step, Shuffle) else "Put it"
    message = f"{what} needs the number of every element, and {why}\n  {advice} first, behind the dataset."
    return StateError(message)


def _not_files(first: Any) -> StateError:
    message = (
        f"interleave takes records of files in turns, and {first} comes before it, behind which there are no files\n"
        "  Put it first, behind the dataset."
    )
    return StateError(message)


def _ranks() -> tuple[int, int]:
    """Return rank and world as torch.distributed knows them, else as JAX does."""
    import sys  # whoever uses one of them has imported it

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


def _function(function: Any, what: str) -> Any:
    if not callable(function):
        message = f"{what} takes a function, found {type(function).__name__}"
        raise TypeError(message)
    return function


def _checked_workers(workers: Workers) -> Workers:
    _count_workers(workers)
    return workers


def _natural(number: Any, what: str, *, least: int | None = 0) -> int:
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not whole or (least is not None and number < least):
        message = f"{what} is a {'whole number' if least is None else f'number from {least} up'}, found {number!r}"
        raise ValueError(message)
    return int(number)
