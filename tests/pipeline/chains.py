"""Pipelines with any steps in any order, for laws that hold for all of them."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from recordkit.pipeline._order_steps import OrderStep
from tests.pipeline.sources import MappedRecords, few_sizes, plain, rows

if TYPE_CHECKING:
    from recordkit.pipeline import Pipeline


def tripled(element: Any) -> Any:
    """Something else of each element, of the same structure each time."""
    return {"was": element}


def wanted(element: Any) -> bool:
    """Three of four elements."""
    return zlib.crc32(repr(plain(element)).encode()) % 4 != 0


def same_columns(columns: Any) -> Any:
    """As many rows as there were."""
    return {name: columns[name] for name in columns}


def _other() -> Pipeline:
    return rows(3, 0, 6).map(tripled)


# Those that keep an element for each record, and can stand before what needs numbers.
KEEPING: dict[str, Any] = {
    "map": lambda pipe: pipe.map(tripled),
    "two threads": lambda pipe: pipe.map(tripled, workers=2),
    "map_batches": lambda pipe: pipe.map_batches(same_columns),
}
ORDERING: dict[str, Any] = {
    "shuffle": lambda pipe: pipe.shuffle(5),
    "window": lambda pipe: pipe.shuffle(5, window=1400),
    "shard": lambda pipe: pipe.shard(1, 3),
    "shard and drop": lambda pipe: pipe.shard(0, 2, uneven="drop"),
    "take": lambda pipe: pipe.take(11),
    "skip": lambda pipe: pipe.skip(2),
    "repeat": lambda pipe: pipe.repeat(2),
}
ANYWHERE: dict[str, Any] = {
    "filter": lambda pipe: pipe.filter(wanted),
    "buffer": lambda pipe: pipe.shuffle(3, buffer=4),
    "enumerate": lambda pipe: pipe.enumerate(),
    "prefetch": lambda pipe: pipe.prefetch(),
    "prefetch 3": lambda pipe: pipe.prefetch(3),
    "cache": lambda pipe: pipe.cache(),
    "zip": lambda pipe: pipe.zip(_other()),
    "concat": lambda pipe: pipe.concat(pipe.take(3)),
    "mix": lambda pipe: pipe.mix(pipe, weights=[2, 1], seed=4),
    "mix until the first": lambda pipe: pipe.mix(pipe.take(3), stop="first"),
    "batch and unbatch": lambda pipe: pipe.batch(3).unbatch(),
    "batch and drop": lambda pipe: pipe.batch(2, drop_last=True).unbatch(),
}
LAST: dict[str, Any] = {
    "batch": lambda pipe: pipe.batch(3),
    "drop_last": lambda pipe: pipe.batch(4, drop_last=True),
    "map batches": lambda pipe: pipe.batch(2).map(tripled),
    "batch a batch": lambda pipe: pipe.batch(2).filter(wanted),
    "skip batches": lambda pipe: pipe.batch(2).skip(1).take(3),
    "shard batches": lambda pipe: pipe.batch(2).shard(0, 2),
    "repeat batches": lambda pipe: pipe.batch(4).repeat(2),
}
STEPS = {**KEEPING, **ORDERING, **ANYWHERE, **LAST, "interleave": lambda pipe: pipe.interleave(2, block=2)}


@st.composite
def chains(draw: Any) -> Pipeline:
    """A pipeline of a few records, and up to five steps."""
    pipe = rows(*draw(few_sizes), bad=draw(st.sampled_from([frozenset()] * 3 + [frozenset([0, 4, 5])])))
    if draw(st.booleans()):
        pipe = pipe.interleave(draw(st.integers(1, 4)), block=draw(st.integers(1, 3)))
    names = draw(st.lists(st.sampled_from([*KEEPING, *ORDERING]), max_size=2))
    names += draw(st.lists(st.sampled_from([*{**KEEPING, **ORDERING, **ANYWHERE}]), max_size=2))
    names += draw(st.lists(st.sampled_from([*LAST]), max_size=1))
    return chained(pipe, names)


def chained(pipe: Pipeline, names: list[str]) -> Pipeline:
    """Add steps by name, but for those that cannot stand there."""
    for name in names:
        late = not isinstance(pipe.source, MappedRecords) or any(not _keeps(step) for step in pipe.steps)
        if name in ("shuffle", "window") and late:
            name = "buffer"
        if name == "map_batches" and (late or any(hasattr(step, "function") for step in pipe.steps)):
            name = "map"  # there are no columns any more
        pipe = STEPS[name](pipe)
    return pipe


def _keeps(step: Any) -> bool:
    return step.keeps or isinstance(step, OrderStep)
