"""Explaining: a pipeline in words, what its shuffle guarantees, and where its time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._iteration import READING
from ._order_steps import Interleave, OrderStep, ShardStep, Shuffle
from ._plan import any_ranks, divided, in_turn, is_moot
from ._sequential_steps import BufferShuffle, Prefetch

if TYPE_CHECKING:
    from ._iteration import Profile
    from ._pipeline import Pipeline
    from ._source import RecordSource
    from ._step import Step


def explained(pipe: Pipeline) -> str:
    """Return the steps of a pipeline, one a line, with what each means."""
    lines = [pipe.source.summary()]
    width = max((len(str(step)) for step in pipe.steps), default=0)
    order, _ = divided(pipe.source, pipe.steps)
    first = {number for number, _ in order}
    for number, step in enumerate(pipe.steps):
        words = _meaning(step, pipe, number in first)
        lines.append(f"  {step!s:{min(width, 40)}}  {words}".rstrip())
    lines.append(_reading([step for _, step in order], pipe.source.as_records()))
    tied = any_ranks(pipe.source, pipe.steps)
    ranks = "on any number of ranks and workers" if tied is None else f"on the same ranks ({tied})"
    lines.append(f"state: a few numbers; can be resumed {ranks}")
    return "\n".join(lines)


def _meaning(step: Any, pipe: Pipeline, arithmetic: bool) -> str:
    if isinstance(step, Shuffle):
        return _shuffled(step, pipe)
    if isinstance(step, BufferShuffle):
        return f"shuffled locally: no element moves more than {step.buffer:,} places forward"
    if isinstance(step, Interleave):
        if is_moot([each for _, each in divided(pipe.source, pipe.steps)[0]]):
            return "has no effect before a shuffle of all records"
        return f"{step.block} of each file in turn, {step.cycle} files at a time"
    if isinstance(step, ShardStep):
        return _sharded(step, pipe, arithmetic)
    if isinstance(step, Prefetch):
        return "prepared ahead of time"
    return ""


def _before(step: OrderStep, pipe: Pipeline) -> int:
    """Return how many elements there are before a step of the order."""
    order, _ = divided(pipe.source, pipe.steps)
    count = pipe.source.count() or 0
    for _, each in order:
        if each is step:
            break
        count = each.count(count)
    return count


def _shuffled(step: Shuffle, pipe: Pipeline) -> str:
    count = _before(step, pipe)
    if step.window is None:
        return f"a permutation of all {count:,}; a new one each epoch"
    source = pipe.source.as_records()
    assert source is not None  # which shuffle(seed) needs
    windows = step.windows(count, source)
    return (
        f"a permutation of pieces of {windows.piece:,}, each shuffled with {windows.pieces - 1:,} others "
        f"in a window of {min(count, windows.size):,}; a new one each epoch"
    )


def _sharded(step: ShardStep, pipe: Pipeline, arithmetic: bool) -> str:
    if not arithmetic:
        return "every rank computes all elements up to here, and keeps its own"
    words = "each record on one rank"
    rest = _before(step, pipe) % step.world
    if rest and step.uneven == "pad":
        words += f", but {step.world - rest:,} of the first are repeated to divide them evenly"
    if rest and step.uneven == "drop":
        words += f"; the last {rest:,} are dropped to divide them evenly"
    return words


def _reading(order: list[Step], source: RecordSource | None) -> str:
    if source is None or in_turn(order):
        return "reads: one file after the other"
    if any(isinstance(step, Shuffle) and step.window for step in order):
        return "reads: large pieces, the next window while this one is used"
    ahead = source.ahead_bytes
    if ahead is None:
        return "reads: each record by its position"
    if source.first_bytes is not None:
        return f"reads: {ahead >> 10:,} KiB at a time across files, so that a file is opened once for several records"
    return f"reads: compressed blocks, as many as fit into {ahead >> 20} MiB at a time; window= would read each once"


def profiled(pipe: Pipeline, profile: Profile) -> str:
    """Return how long each step took."""
    lines = [f"{'seconds':>9} {'elements':>12} {'each':>10}  step"]
    named = {READING: "read, check and decode", **{n: str(step) for n, step in enumerate(pipe.steps)}}
    for number in sorted(profile.lines):
        line = profile.lines[number]
        each = line.seconds / line.elements * 1e6 if line.elements else 0.0
        lines.append(f"{line.seconds:9.3f} {line.elements:12,} {each:8.1f}us  {named[number]}")
    total = profile.waited + profile.used
    if total:
        share = 100 * profile.waited / total
        lines.append(
            f"{profile.given:,} elements; {share:.0f}% of the time was spent waiting; {profile.ready} are ready"
        )
    return "\n".join(lines)
