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
    ranks = "with any number of ranks and workers" if tied is None else f"with the same ranks ({tied})"
    lines.append(f"state: a few numbers; resumes {ranks}")
    return "\n".join(lines)


def _meaning(step: Any, pipe: Pipeline, arithmetic: bool) -> str:
    if isinstance(step, Shuffle):
        return _shuffled(step, pipe)
    if isinstance(step, BufferShuffle):
        return f"each element among the next {step.buffer:,} of its place or so; what comes late stays late"
    if isinstance(step, Interleave):
        if is_moot([each for _, each in divided(pipe.source, pipe.steps)[0]]):
            return "makes no difference before a shuffle of everything"
        return f"{step.block} of a file, then of the next, {step.cycle} files in turns"
    if isinstance(step, ShardStep):
        return _sharded(step, pipe, arithmetic)
    if isinstance(step, Prefetch):
        return "made before they are asked for"
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
        return f"any of {count:,} at any place; another order each epoch"
    source = pipe.source.as_records()
    assert source is not None  # which shuffle(seed) needs
    windows = step.windows(count, source)
    return (
        f"pieces of {windows.piece:,} consecutive ones anywhere, shuffled with {windows.pieces - 1:,} others "
        f"in a window of {min(count, windows.size):,}; another order each epoch"
    )


def _sharded(step: ShardStep, pipe: Pipeline, arithmetic: bool) -> str:
    if not arithmetic:
        return "every rank makes all elements up to here, and gives its own"
    words = "every record on one rank"
    rest = _before(step, pipe) % step.world
    if rest and step.uneven == "pad":
        words += f", but for {step.world - rest:,} of the first that are given twice to come out even"
    if rest and step.uneven == "drop":
        words += f"; the last {rest:,} on none, to come out even"
    return words


def _reading(order: list[Step], source: RecordSource | None) -> str:
    if source is None or in_turn(order):
        return "reads: one file after the other"
    if any(isinstance(step, Shuffle) and step.window for step in order):
        return "reads: in large pieces, the next window while this one is given"
    ahead = source.ahead_bytes
    if ahead is None:
        return "reads: each record from its place"
    if source.first_bytes is not None:
        together = "so that a file is opened once for several of them"
        return f"reads: records of many files, {ahead >> 10:,} KiB at a time, {together}"
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
            f"{profile.given:,} elements were given; {share:.0f}% of the time was spent waiting for them, "
            f"{profile.ready} lie ready"
        )
    return "\n".join(lines)
