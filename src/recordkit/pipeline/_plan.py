"""Plans: how the steps of a pipeline are carried out.

Steps of the order come first, wherever they were given, as long as the steps before them keep one element for each
record: they are arithmetic, and cost nothing. Steps that look at each element alone are carried out together, by many
workers. The others see the elements one after the other.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from recordkit.engines import AUTO, ProcessEngine, Processes, ThreadEngine, Workers
from recordkit.engines import count as worker_count

from ._element_steps import BatchStep, Filter, Map, MapBatches, Section, aligned
from ._elements import ElementBlock, traced
from ._order import EpochOrder
from ._order_steps import Interleave, OrderStep, RepeatStep, ShardStep, Shuffle, SkipStep, TakeStep
from ._reading import OrderedReader, SequentialReader
from ._sequential_steps import BufferShuffle, EveryOne, Prefetch
from ._step import ElementStep, count_after

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ._elements import Mark
    from ._iteration import Profile
    from ._source import BlockProducer, RecordSource, Source
    from ._step import Step

    Blocks = Generator[ElementBlock, None, None]
    Numbered = list[tuple[int, Any]]  # steps, each with its number in the pipeline

_ROW_BYTES = 256 << 10
_BUFFERED_BYTES = 2 << 20
_FEW = 256  # rows, where a function is called with each

ORDER_ONLY = Shuffle, Interleave
UNCHANGED = (OrderStep, Filter, BufferShuffle, Prefetch)  # each element they give is one they were given


def divided(source: Source, steps: Sequence[Step]) -> tuple[Numbered, Numbered]:
    """Return the steps that make the order, and the rest, each with its number."""
    order: Numbered = []
    rest: Numbered = []
    for number, step in enumerate(steps):
        free = source.indexed and all(isinstance(each, ElementStep) and each.keeps for _, each in rest)
        (order if free and isinstance(step, OrderStep) else rest).append((number, step))
    return order, rest


@dataclass(frozen=True)
class StagedBlocks:
    """The blocks that a sequential step makes of others."""

    upstream: BlockProducer
    stage: Any

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield the blocks after a mark."""
        yield from self.stage.run(self.upstream.blocks, mark, epoch)

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known."""
        return count_after([self.stage], self.upstream.count())


@dataclass(frozen=True)
class SectionBlocks:
    """The blocks that a section makes of others, with workers of its own."""

    upstream: BlockProducer
    section: Section
    workers: Workers
    profile: Profile
    origin: RecordOrigin | None = None

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield the blocks after a mark."""
        blocks = self.upstream.blocks(mark, epoch)
        if isinstance(self.workers, Processes):
            yield from self._by_processes(blocks, self.workers.count)
            return
        engine = ThreadEngine(worker_count(self.workers), grow=self.workers == AUTO)
        with closing(engine.map(self._made, blocks)) as results:
            for block, made, seconds in results:
                yield from self._given(block, made, seconds)

    def _by_processes(self, blocks: Blocks, count: int) -> Blocks:
        sent: list[ElementBlock] = []

        def values() -> Generator[Any, None, None]:
            for block in blocks:
                sent.append(block)
                yield block.values, block.marks[0]

        task = SectionTask(self.section, self.origin)
        with closing(blocks), closing(ProcessEngine(count).map(task, values())) as results:
            for made, seconds in results:
                yield from self._given(sent.pop(0), made, seconds)

    def _made(self, block: ElementBlock) -> Any:
        return (block, *SectionTask(self.section, self.origin)((block.values, block.marks[0])))

    def _given(self, block: ElementBlock, made: Any, seconds: list[float]) -> Blocks:
        self.profile.note(self.section, made, seconds, 0.0)
        if len(made.values):
            yield made.block(block.marks)

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known."""
        return count_after(self.section.steps, self.upstream.count())


@dataclass(frozen=True)
class RecordOrigin:
    """Where elements come from: the records of a source in their order, from number `first` on."""

    source: RecordSource
    first: int


@dataclass(frozen=True)
class SectionTask:
    """Applies a section to the values of a block. Can be pickled, to run in other processes."""

    section: Section
    origin: RecordOrigin | None = None

    def __call__(self, job: tuple[Any, Mark]) -> Any:
        """Return what the values become, given with the mark of the first."""
        values, mark = job

        def place(i: int) -> str:
            if self.origin is None:
                return f"element {i} of {len(values)}"
            return self.origin.source.place(self.origin.first + mark - 1 + i)

        return self.section.run(traced(values), place)


def workers_of(steps: Sequence[Any], otherwise: Workers) -> Workers:
    """Return the workers for steps carried out together: processes if a step asks for them, else the most threads."""
    several = asked(steps)
    if not several:
        return otherwise
    processes = [each for each in several if isinstance(each, Processes)]
    return max(processes or several, key=worker_count)


def asked(steps: Sequence[Any]) -> list[Workers]:
    """Return the workers that steps ask for."""
    return [step.workers for step in steps if isinstance(step, Map | MapBatches | Filter) and step.workers != AUTO]


def planned(
    source: Source, steps: Sequence[Step], workers: Workers, profile: Profile, every: tuple[int, int] | None = None
) -> BlockProducer:
    """Return what gives the blocks of a pipeline.

    Args:
        source: Where elements come from.
        steps: What is done with them.
        workers: Who reads, and carries out the steps that do not ask for workers.
        profile: Where to note how long it takes.
        every: Give only element `every[0]` of the result and every `every[1]`-th after it.
    """
    order, rest = divided(source, steps)
    records = source.as_records()
    producer: BlockProducer
    if records is None:
        producer, left = cast("BlockProducer", source), rest
    elif in_turn([step for _, step in order]) and (every is None or not _can_be_left_out(records, rest)):
        producer, left = _sequential(records, order, rest, workers, profile)
    else:
        producer, left, every = _ordered(records, order, rest, workers, profile, every)
    while left:
        section, left = _section(left)
        if section.steps:
            producer = SectionBlocks(producer, section, workers_of(section.steps, workers), profile)
        if left:
            producer, left = StagedBlocks(producer, left[0][1]), left[1:]
    return producer if every is None else StagedBlocks(producer, EveryOne(*every))


def in_turn(order: Sequence[Any]) -> bool:
    """Return whether records come in the order of their files: a range of them, repeated at most."""
    inner = order[:-1] if order and isinstance(order[-1], RepeatStep) else order
    return all(isinstance(step, TakeStep | SkipStep) for step in inner)


def _section(steps: Numbered) -> tuple[Section, Numbered]:
    """Return the first steps that look at each element alone, and the others."""
    stop = next((at for at, (_, step) in enumerate(steps) if not isinstance(step, ElementStep)), len(steps))
    return _as_section(steps[:stop]), steps[stop:]


def _as_section(steps: Numbered) -> Section:
    return Section(tuple(step for _, step in steps), tuple(number for number, _ in steps))


def _head_section(source: RecordSource, steps: Numbered) -> tuple[Section, BatchStep | None, Numbered]:
    """Return the steps to apply to records as they are read: batches too, if it is known which records they hold."""
    batch = aligned([step for _, step in steps]) if source.exact else None
    stop = 0
    for _, step in steps:
        if not isinstance(step, ElementStep) and step is not batch:
            break
        stop += 1
    if batch is not None and not any(step is batch for _, step in steps[:stop]):
        batch = None
    return _as_section(steps[:stop]), batch, steps[stop:]


def _sequential(
    source: RecordSource, order: Numbered, rest: Numbered, workers: Workers, profile: Profile
) -> tuple[BlockProducer, Numbered]:
    first, stop, repeat = 0, None, []
    for number, step in order:
        if isinstance(step, SkipStep):
            first += step.elements
        elif isinstance(step, TakeStep):
            end = first + step.elements
            stop = end if stop is None else min(stop, end)
        else:
            repeat = [(number, step)]
    section, batch, left = _head_section(source, rest)
    if repeat and batch is not None:  # batches continue across the end of a pass
        section, left = _section(rest)
        batch = None
    threads = worker_count(workers)
    if batch is not None and section.steps == (batch,) and batch.is_decoded(source):
        direct = batch, section.numbers[0]
        return SequentialReader(source, first, stop, Section(), batch.size, threads, profile, direct), left
    size = batch.size if batch is not None else max(1, min(_ROW_BYTES // source.mean_bytes, 1 << 16))
    if batch is None and section.steps:
        size = min(size, _FEW)
    elif left and isinstance(left[0][1], BufferShuffle):  # nobody waits for the first rows
        size = max(size, min(left[0][1].buffer // 4, _BUFFERED_BYTES // source.mean_bytes))
    size = min(size, source.most_rows or size)
    if not any(isinstance(step, Map | Filter) for step in section.steps) and not asked(section.steps):
        return SequentialReader(source, first, stop, section, size, threads, profile), repeat + left
    # A user's function may take any time: it has workers of its own, however little there is to read. One that takes
    # columns is done before they could be handed over.
    head = SequentialReader(source, first, stop, Section(), size, threads, profile)
    origin = RecordOrigin(source, first) if source.exact else None
    return SectionBlocks(head, section, workers_of(section.steps, workers), profile, origin), repeat + left


def _can_be_left_out(source: RecordSource, rest: Numbered) -> bool:
    """Return whether unwanted elements need not be made, because it is known which records they are made of."""
    if not (source.indexed and source.exact):
        return False
    section, group, left = _head_section(source, rest)
    keep = all(step is group or step.keeps for step in section.steps)
    return keep and all(isinstance(step, Prefetch) for _, step in left)


def is_moot(order: Sequence[Any]) -> bool:
    """Return whether the first step makes no difference: interleaving before everything is shuffled."""
    if len(order) < 2:
        return False
    first, then = order[:2]
    return isinstance(first, Interleave) and isinstance(then, Shuffle) and then.window is None


def _ordered(
    source: RecordSource,
    order: Numbered,
    rest: Numbered,
    workers: Workers,
    profile: Profile,
    every: tuple[int, int] | None,
) -> tuple[BlockProducer, Numbered, tuple[int, int] | None]:
    section, batch, left = _head_section(source, rest)
    steps = tuple(step for _, step in order)
    steps = steps[1:] if is_moot(steps) else steps
    early = every if _can_be_left_out(source, rest) else None
    unit = batch.size if batch is not None else 1
    reader = OrderedReader(source, steps, section, unit, workers_of(section.steps, workers), profile, early)
    return reader, left, None if early is not None else every


def any_ranks(source: Source, steps: Sequence[Step]) -> str | None:
    """Return which step ties a state to the rank it was taken on; None if none does."""
    order, rest = divided(source, steps)
    shards = [number for number, step in enumerate(steps) if isinstance(step, ShardStep)]
    if not shards:
        return None
    records = source.as_records()
    if records is not None and not EpochOrder(0, tuple(step for _, step in order), records).any_ranks:
        return "shard followed by steps that change the order"
    if records is not None and not records.exact:
        return "on_error, which skips records"
    batch = aligned([step for _, step in rest])
    for number, step in rest:
        fine = (isinstance(step, ElementStep) and step.keeps) or step is batch or isinstance(step, Prefetch)
        if (not fine and number > min(shards)) or isinstance(step, ShardStep):
            return str(step)
    return None
