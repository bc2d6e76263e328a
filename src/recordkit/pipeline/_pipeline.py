"""Pipeline: a source of elements and the steps to apply to them, described now and carried out when iterated."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordkit.engines import AUTO, Workers
from recordkit.errors import StateError, StorageError
from recordkit.filesystems import given_path
from recordkit.schema import Schema
from recordkit.storage.format import is_lone_file
from recordkit.wording import parse_size, whole_number

from . import _explain, _state
from ._cache import CacheSource, fingerprint
from ._combine import Concat, Mix, Zip
from ._element_steps import BatchStep, Filter, Map, MapBatches
from ._generator import GeneratorSource
from ._iteration import PipelineIterator, Profile
from ._order_steps import Interleave, RepeatStep, ShardStep, Shuffle
from ._plan import ORDER_ONLY, UNCHANGED, any_ranks, divided, planned
from ._sequential_steps import Prefetch, Unbatch
from ._source import Source
from ._step import Step, name_of
from ._verbs import Steps, function_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from ._elements import ElementBlock, Mark
    from ._source import BlockProducer


@dataclass
class _EpochCounter:
    next: int = 0


@dataclass(frozen=True, repr=False, eq=False)
class Pipeline(Steps):
    """Elements and the steps to apply to them: described now, carried out when iterated.

    Immutable: every step returns a new pipeline. Each iteration is the next epoch; `set_epoch` chooses one. A pipeline
    can be pickled if its functions can.

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
        steps: The steps, first to last.
        workers: Who reads, and carries out the steps that do not ask for workers.
        every: Give only element `every[0]` and every `every[1]`-th after it; None for all.
    """

    source: Source
    steps: tuple[Step, ...] = ()
    workers: Workers = AUTO
    every: tuple[int, int] | None = None
    _epochs: _EpochCounter = field(default_factory=_EpochCounter)
    _profile: Profile = field(default_factory=Profile)

    def as_pipeline(self) -> Pipeline:
        """Return this pipeline."""
        return self

    def with_step(self, step: Step) -> Pipeline:
        """Return the pipeline with one more step at its end. Internal to recordkit: arguments are not checked.

        Raises:
            StateError: The step needs to know every record's position, and the steps before it lose that.
        """
        pipe = replace(self, steps=(*self.steps, step), _epochs=_EpochCounter(self._epochs.next), _profile=Profile())
        if isinstance(step, ORDER_ONLY):
            order, rest = divided(pipe.source, pipe.steps)
            if any(each is step for _, each in rest):
                raise _cannot_order(step, pipe.source, [each for _, each in rest])
            if isinstance(step, Interleave) and order[0][1] is not step:
                raise _not_files(order[0][1])
        return pipe

    @cached_property
    def _flowing(self) -> BlockProducer:
        return planned(self.source, self.steps, self.workers, self._profile, self.every)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_flowing"}

    def blocks(self, mark: Mark, epoch: int) -> Generator[ElementBlock, None, None]:
        """Yield the elements after a mark, many at a time."""
        return self._flowing.blocks(mark, epoch)

    def count(self) -> int | None:
        """Return how many elements an epoch has; None if that is not known, or there is no end."""
        return self._flowing.count()

    def __len__(self) -> int:
        count = self.count()
        if count is None:
            message = f"{self.source.name}: the number of elements is not known before the end of an epoch"
            raise TypeError(message)  # `list` expects a TypeError
        return count

    # --- Epochs and states

    def __iter__(self) -> PipelineIterator:
        epoch = self._epochs.next
        self._epochs.next = epoch + 1
        return self._iterator(epoch, None)

    def _iterator(self, epoch: int, mark: Mark) -> PipelineIterator:
        return PipelineIterator(self._flowing, epoch, mark, self._profile, self._state)

    @property
    def next_epoch(self) -> int:
        """The epoch that the next iteration gives. Internal to recordkit."""
        return self._epochs.next

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next iteration."""
        self._epochs.next = whole_number(epoch, "epoch")

    def resume(self, state: Mapping[str, Any]) -> PipelineIterator:
        """Return the rest of the epoch that a state was taken in; the iteration after it is the next epoch.

        Raises:
            StateError: The dataset or the steps have changed, or the state can only be used on another rank.
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
        """Whether these are the elements of one rank among several."""
        return any(isinstance(step, ShardStep) for step in self.steps)

    @property
    def _rank(self) -> list[int] | None:
        return next(([step.rank, step.world] for step in self.steps if isinstance(step, ShardStep)), None)

    @cached_property
    def _tied(self) -> str | None:
        return any_ranks(self.source, self.steps)

    @cached_property
    def digest(self) -> str:
        """An identity of the records, however they are stored."""
        return str(self.source.digest())

    def _order_words(self) -> list[str]:
        """Return the steps that decide which elements come when. The others may change between two runs."""
        words: list[str] = []
        for at, step in enumerate(self.steps):
            if isinstance(step, ShardStep):
                # Any number of ranks may resume, or the state says which; but passes are only counted after a repeat.
                if self._tied is not None or any(isinstance(before, RepeatStep) for before in self.steps[:at]):
                    words.append(f"Shard({step.uneven})")
                continue
            if not (step.keeps or isinstance(step, Prefetch)) and not (isinstance(step, BatchStep) and self._aligned):
                words.append(str(step))
        return words

    @property
    def _aligned(self) -> bool:
        """Whether marks count records, whatever the batch size."""
        _, rest = divided(self.source, self.steps)
        keep = [step for _, step in rest if not isinstance(step, BatchStep | Prefetch)]
        return all(step.keeps for step in keep)

    @property
    def gives_lists(self) -> bool:
        """Whether a batch is a list: of payloads, or of what parse= returned. Internal to recordkit."""
        return self.source.gives_lists and all(isinstance(step, UNCHANGED) for step in self.steps)

    @property
    def batched(self) -> bool:
        """Whether elements are batches. Internal to recordkit."""
        last = next((step for step in reversed(self.steps) if isinstance(step, BatchStep | Unbatch)), None)
        if last is not None:
            return isinstance(last, BatchStep)
        return any(pipe.batched for pipe in self.source.pipelines())

    def _of(self, joint: Zip | Concat | Mix) -> Pipeline:
        """Return a pipeline of several others."""
        return Pipeline(CombinedSource(joint))

    def for_worker(self, first: int, step: int) -> Pipeline:
        """Return element `first` and every `step`-th after it: the share of a worker. Internal to recordkit."""
        return replace(self, every=(first, step), _epochs=_EpochCounter(self._epochs.next), _profile=Profile())

    # --- Caching

    def _cached(self, path: str | os.PathLike[str] | None, max_bytes: int | str | None, key: str | None) -> Pipeline:
        functions = list(self._functions())
        if path is not None and functions and key is None:
            message = (
                f"cache({os.fspath(path)!r}) cannot detect whether {name_of(functions[0])} has changed since\n"
                "  Pass key='1', and change the key whenever the functions before the cache change."
            )
            raise StateError(message)
        facts = [self._facts(), key]
        room = None if max_bytes is None else parse_size(max_bytes)
        folder = None if path is None else Path(given_path(path))
        if folder is not None and not os.path.exists(folder) and is_lone_file(folder):  # noqa: PTH110 - where nothing may be looked at, nothing is there
            message = f"{folder}: a cache is a folder, but this is the name of a record file\n  Choose another name."
            raise StorageError(message, path=str(folder))
        return Pipeline(CacheSource(self, folder, room, fingerprint(facts), repr(self)), workers=self.workers)

    def permissions(self) -> int | None:
        """Return the permissions that all files of the elements allow; None if there are no files."""
        return self.source.permissions()

    def _functions(self) -> Iterator[Any]:
        """Yield the user's functions that the elements depend on."""
        yield from self.source.functions()
        for pipe in self.source.pipelines():
            yield from pipe._functions()
        yield from (step.function for step in self.steps if isinstance(step, Map | MapBatches | Filter))

    def _facts(self) -> list[Any]:
        """Return what the elements depend on, as far as it is known."""
        inside = [pipe._facts() for pipe in self.source.pipelines()]
        # The same records make other elements where other fields are selected.
        return [self.digest, self.source.describe(), inside, [str(step) for step in self.steps]]

    # --- In words

    def explain(self) -> str:
        """Return the steps in words, what the shuffle guarantees, and how records are read."""
        return _explain.explained(self)

    def profile(self) -> str:
        """Return how much time each step took so far, in all epochs of this pipeline."""
        return _explain.profiled(self, self._profile)

    def __repr__(self) -> str:
        return f"Pipeline({' > '.join([self.source.name, *map(str, self.steps)])})"


def from_generator(function: Callable[[], Iterable[Any]], schema: Schema | Mapping[str, Any] | None = None) -> Pipeline:
    """Return a pipeline of the elements that a function yields.

    Args:
        function: Takes no arguments and returns an iterable; called once an epoch.
        schema: Check the rows against it and decode them as columns. Without one, elements can be anything.

    >>> rows = from_generator(lambda: ({"n": n} for n in range(3)), {"n": "int32"})
    >>> next(iter(rows.batch(3)))["n"]
    array([0, 1, 2], dtype=int32)
    """
    declared = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
    return Pipeline(GeneratorSource(function_of(function, "from_generator"), declared))


@dataclass(frozen=True)
class CombinedSource(Source):
    """Several pipelines as one source."""

    joint: Zip | Concat | Mix

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"{type(self.joint).__name__}({', '.join(repr(pipe) for pipe in self.joint.pipes)})"

    @property
    def gives_lists(self) -> bool:
        """Whether a batch is a list, as it is of each pipeline."""
        return not isinstance(self.joint, Zip) and all(pipe.gives_lists for pipe in self.joint.pipes)

    def blocks(self, mark: Mark, epoch: int) -> Generator[ElementBlock, None, None]:
        """Yield the elements after a mark."""
        return self.joint.blocks(mark, epoch)

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known."""
        return self.joint.count()

    def digest(self) -> str:
        """Return an identity of the elements."""
        joint = self.joint
        facts = [[pipe.digest, pipe._order_words()] for pipe in joint.pipes]
        how = [getattr(joint, name, None) for name in ("weights", "seed", "stop")]
        return fingerprint([type(joint).__name__, facts, how])

    def pipelines(self) -> tuple[Pipeline, ...]:
        """Return the pipelines."""
        return self.joint.pipes

    def permissions(self) -> int | None:
        """Return the permissions that all files of the pipelines allow; None if there are no files."""
        known = [mode for pipe in self.joint.pipes if (mode := pipe.permissions()) is not None]
        return reduce(and_, known) if known else None


def _cannot_order(step: Step, source: Source, before: list[Step]) -> StateError:
    shuffle = isinstance(step, Shuffle)
    what = "shuffle(seed=...)" if shuffle else "interleave"
    if not source.indexed:
        advice = "Use shuffle(buffer=10_000)." if shuffle else "Interleave the records of a dataset."
        message = f"{what} needs the position of every element, but {source.name} is a stream\n  {advice}"
        return StateError(message)
    first = next(each for each in before if not each.keeps)
    advice = "Shuffle first, or use shuffle(buffer=10_000)." if shuffle else "Interleave first."
    message = (
        f"{what} needs the position of every record, but {first} before it does not keep one element for each record\n"
        f"  {advice}"
    )
    return StateError(message)


def _not_files(first: Step) -> StateError:
    message = (
        f"interleave takes records of files in turns, but after {first} there are no files\n"
        "  Interleave first, right after opening the dataset."
    )
    return StateError(message)
