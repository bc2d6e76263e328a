"""Plans: how the steps of a pipeline are carried out.

Operations on the order come first, wherever they were said, as long as the steps before them keep one element for each
record: they are arithmetic, and cost nothing. Steps that look at each element alone are done together, by many workers.
The others see the elements one after the other.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recordkit.engines import AUTO, ProcessEngine, Processes, ThreadEngine, Workers
from recordkit.engines import count as worker_count

from . import _order, _sequential_steps
from ._element_steps import BatchStep, Filter, Map, MapBatches, Section, aligned
from ._elements import ElementBlock, traced
from ._order import ENDLESS, EpochOrder, Interleave, Shuffle
from ._reading import OrderedReader, SequentialReader

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ._combine import BlockProducer
    from ._elements import Mark
    from ._profile import Profile

    Blocks = Generator[ElementBlock, None, None]

_ROW_BYTES = 256 << 10
_BUFFERED_BYTES = 2 << 20
_NO_END = ENDLESS >> 31  # of what is endless, a rank gets no less
_FEW = 256  # rows, where a function is called with each

ORDER_ONLY = Shuffle, Interleave
ORDER = (*ORDER_ONLY, _order.TakeStep, _order.SkipStep, _order.ShardStep, _order.RepeatStep)

UNCHANGED = (*ORDER, Filter, _sequential_steps.BufferShuffle, _sequential_steps.Prefetch)  # elements are what they were


def is_alone(step: Any) -> bool:
    """Return whether a step looks at each element alone."""
    return hasattr(step, "apply") and not isinstance(step, BatchStep)


def divided(source: Any, steps: Sequence[Any]) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
    """Return the steps that make the order, and the rest, each with its number."""
    order: list[tuple[int, Any]] = []
    rest: list[tuple[int, Any]] = []
    for number, step in enumerate(steps):
        free = getattr(source, "indexed", False) and all(is_alone(each) and each.keeps for _, each in rest)
        (order if free and isinstance(step, ORDER) else rest).append((number, step))
    return order, rest


@dataclass(frozen=True)
class StagedBlocks:
    """A stage behind others."""

    upstream: BlockProducer
    stage: Any

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield what the stage makes."""
        yield from self.stage.run(self.upstream.blocks, mark, epoch)

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known."""
        return _counted(self.stage, self.upstream.count())


@dataclass(frozen=True)
class SectionBlocks:
    """Steps that look at each element alone, behind a stage."""

    upstream: BlockProducer
    section: Section
    workers: Workers
    profile: Profile
    origin: RecordOrigin | None = None

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield what the steps make of each block."""
        blocks = self.upstream.blocks(mark, epoch)
        if isinstance(self.workers, Processes):
            yield from self._by_processes(blocks, self.workers.count)
            return
        engine = ThreadEngine(worker_count(self.workers), grow=self.workers == AUTO)
        with closing(engine.map(self._made, blocks)) as made:
            for block, piece, seconds in made:
                yield from self._given(block, piece, seconds)

    def _by_processes(self, blocks: Blocks, count: int) -> Blocks:
        marks: list[Any] = []

        def values() -> Generator[Any, None, None]:
            for block in blocks:
                marks.append(block)
                yield block.values, block.marks[0]

        alone = SectionTask(self.section, self.origin)
        with closing(blocks), closing(ProcessEngine(count).map(alone, values())) as made:
            for piece, seconds in made:
                yield from self._given(marks.pop(0), piece, seconds)

    def _made(self, block: ElementBlock) -> Any:
        return (block, *SectionTask(self.section, self.origin)((block.values, block.marks[0])))

    def _given(self, block: ElementBlock, piece: Any, seconds: list[float]) -> Blocks:
        self.profile.note(self.section, piece, seconds, 0.0)
        if len(piece.values):
            yield piece.block(block.marks)

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known."""
        count = self.upstream.count()
        for step in self.section.steps:
            count = _counted(step, count)
        return count


@dataclass(frozen=True)
class RecordOrigin:
    """Records that come as they lie, from number `first` on."""

    source: Any
    first: int


@dataclass(frozen=True)
class SectionTask:
    """Carries out steps on elements that were handed over, of which only some are known where they came from."""

    section: Section
    origin: RecordOrigin | None = None

    def __call__(self, thing: tuple[Any, Mark]) -> Any:
        """Return what elements become, with the mark of the first."""
        values, mark = thing

        def place(i: int) -> str:
            if self.origin is None:
                return f"element {i} of {len(values)}"
            return str(self.origin.source.place(self.origin.first + mark - 1 + i))

        return self.section.run(traced(values), place)


def _counted(step: Any, count: int | None) -> int | None:
    """Return how many elements a step makes of so many."""
    if isinstance(step, BatchStep) and count is not None:
        return count // step.size if step.drop_last else -(-count // step.size)
    if isinstance(step, ORDER) and count is not None:
        count = step.count(count)
        return None if count >= ENDLESS else count
    if isinstance(step, _sequential_steps.EveryOne) and count is not None:
        return len(range(step.first, count, step.step))
    keeps = _sequential_steps.Enumerate, _sequential_steps.Prefetch, _sequential_steps.BufferShuffle
    return count if isinstance(step, keeps) or getattr(step, "keeps", False) else None


def workers_of(steps: Sequence[Any], otherwise: Workers) -> Workers:
    """Return who carries out steps together: processes if one asks for them, else as many threads as any asks for."""
    several = asked(steps)
    if not several:
        return otherwise
    processes = [each for each in several if isinstance(each, Processes)]
    return max(processes or several, key=worker_count)


def asked(steps: Sequence[Any]) -> list[Workers]:
    """Return what steps say of who should carry them out."""
    return [step.workers for step in steps if isinstance(step, Map | MapBatches | Filter) and step.workers != AUTO]


def planned(source: Any, steps: Sequence[Any], workers: Workers, profile: Profile, every: Any = None) -> BlockProducer:
    """Return what gives the blocks of a pipeline.

    Args:
        source: Where elements come from.
        steps: What is done with them.
        workers: Who reads, and carries out steps that do not say who should.
        profile: Where to note how long it takes.
        every: Of the last elements only number `every[0]`, and from there each `every[1]`-th.
    """
    order, rest = divided(source, steps)
    flowing: BlockProducer
    if not hasattr(source, "stream"):
        flowing, left = source, rest
    elif in_turn([step for _, step in order]) and (every is None or not _can_be_left_out(source, rest)):
        flowing, left = _in_turn(source, order, rest, workers, profile)
    else:
        flowing, left, every = _ordered(source, order, rest, workers, profile, every)
    while left:
        section, left = _section(left)
        if section.steps:
            flowing = SectionBlocks(flowing, section, workers_of(section.steps, workers), profile)
        if left:
            flowing, left = StagedBlocks(flowing, left[0][1]), left[1:]
    return flowing if every is None else StagedBlocks(flowing, _sequential_steps.EveryOne(*every))


def in_turn(order: Sequence[Any]) -> bool:
    """Return whether records come as they lie, whatever is left out at both ends, and repeated at most."""
    inner = order[:-1] if order and isinstance(order[-1], _order.RepeatStep) else order
    return all(isinstance(step, _order.TakeStep | _order.SkipStep) for step in inner)


def _section(steps: list[tuple[int, Any]]) -> tuple[Section, list[tuple[int, Any]]]:
    """Return the first steps that look at each element alone, and the others."""
    stop = next((at for at, (_, step) in enumerate(steps) if not is_alone(step)), len(steps))
    return _as_section(steps[:stop]), steps[stop:]


def _as_section(steps: list[tuple[int, Any]]) -> Section:
    return Section(tuple(step for _, step in steps), tuple(number for number, _ in steps))


def _head_section(source: Any, steps: list[tuple[int, Any]]) -> tuple[Section, BatchStep | None, list[tuple[int, Any]]]:
    """Return the steps that are done with records at once: batches too, if it is known which records they have."""
    group = aligned([step for _, step in steps if hasattr(step, "apply")]) if source.exact else None
    stop = 0
    for _, step in steps:
        if not is_alone(step) and step is not group:
            break
        stop += 1
    if group is not None and not any(step is group for _, step in steps[:stop]):
        group = None
    return _as_section(steps[:stop]), group, steps[stop:]


def _in_turn(source: Any, order: Any, rest: Any, workers: Workers, profile: Profile) -> tuple[BlockProducer, Any]:
    first, stop, repeat = 0, None, []
    for number, step in order:
        if isinstance(step, _order.SkipStep):
            first += step.elements
        elif isinstance(step, _order.TakeStep):
            end = first + step.elements
            stop = end if stop is None else min(stop, end)
        else:
            repeat = [(number, step)]
    section, group, left = _head_section(source, rest)
    if repeat and group is not None:  # batches go on over the end of a pass
        section, left = _section(rest)
        group = None
    size = group.size if group is not None else max(1, min(_ROW_BYTES // source.mean_bytes, 1 << 16))
    if group is None and section.steps:
        size = min(size, _FEW)
    elif left and isinstance(left[0][1], _sequential_steps.BufferShuffle):  # nobody waits for the first rows
        size = max(size, min(left[0][1].buffer // 4, _BUFFERED_BYTES // source.mean_bytes))
    size = min(size, getattr(source, "most", None) or size)
    if not any(isinstance(step, Map | Filter) for step in section.steps) and not asked(section.steps):
        return _Head(SequentialReader(source, first, stop, section, size, workers, profile)), repeat + left
    # Nobody knows how long a function takes: it has workers of its own, however little there is to read. One that takes
    # columns is done before they could be handed over.
    head = _Head(SequentialReader(source, first, stop, Section(), size, workers, profile))
    origin = RecordOrigin(source, first) if source.exact else None
    return SectionBlocks(head, section, workers_of(section.steps, workers), profile, origin), repeat + left


def _can_be_left_out(source: Any, rest: list[tuple[int, Any]]) -> bool:
    """Return whether elements that are not wanted need not be made: it is known which records they are made of."""
    if not (source.indexed and source.exact):
        return False
    section, group, left = _head_section(source, rest)
    keep = all(step is group or step.keeps for step in section.steps)
    return keep and all(isinstance(step, _sequential_steps.Prefetch) for _, step in left)


def is_moot(order: Sequence[Any]) -> bool:
    """Return whether the first step makes no difference: taking turns before everything is shuffled."""
    if len(order) < 2:
        return False
    first, then = order[:2]
    return isinstance(first, Interleave) and isinstance(then, Shuffle) and then.window is None


def _ordered(
    source: Any, order: Any, rest: Any, workers: Workers, profile: Profile, every: Any
) -> tuple[BlockProducer, Any, Any]:
    section, group, left = _head_section(source, rest)
    ops = tuple(step for _, step in order)
    ops = ops[1:] if is_moot(ops) else ops
    early = every if _can_be_left_out(source, rest) else None
    unit = group.size if group is not None else 1
    head = OrderedReader(source, ops, section, unit, workers_of(section.steps, workers), profile, early)
    return _Head(head), left, None if early is not None else every


@dataclass(frozen=True)
class _Head:
    """Records and how many elements their steps make of them."""

    records: OrderedReader | SequentialReader

    def blocks(self, mark: Mark, epoch: int) -> Blocks:
        """Yield what steps make of the records behind a mark."""
        return self.records.blocks(mark, epoch)

    def count(self) -> int | None:
        """Return how many elements there are; None if that is not known, or there is no end."""
        count = self.records.count() if self.records.source.exact else None  # some may be passed over
        if count is not None and count >= _NO_END:
            return None
        for step in self.records.section.steps:
            count = _counted(step, count)
        return count


def any_ranks(source: Any, steps: Sequence[Any]) -> str | None:
    """Return which step ties a state to the ranks that it is of; None if none does."""
    order, rest = divided(source, steps)
    shards = [number for number, step in enumerate(steps) if isinstance(step, _order.ShardStep)]
    if not shards:
        return None
    ops = tuple(step for _, step in order)
    if not EpochOrder(0, ops, source).any_ranks:
        return "shard with other steps behind it that change the order"
    if not getattr(source, "exact", True):
        return "on_error, by which records are passed over,"
    group = aligned([step for _, step in rest if hasattr(step, "apply")])
    for number, step in rest:
        fine = (is_alone(step) and step.keeps) or step is group or isinstance(step, _sequential_steps.Prefetch)
        if (not fine and number > min(shards)) or isinstance(step, _order.ShardStep):
            return str(step)
    return None
