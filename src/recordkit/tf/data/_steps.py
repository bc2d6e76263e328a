"""Steps of pipelines for what tf.data does and pipelines do not."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.pipeline import (
    BatchStep,
    BufferShuffle,
    ElementBlock,
    EveryOne,
    Filter,
    GeneratorSource,
    LazyMarks,
    Map,
    Place,
    SkipStep,
    StepRepr,
    TakeStep,
    TracedElements,
    cut_block,
    each,
    failed,
    gathered,
    name_of,
    wrapped,
)
from recordkit.tf.tensors import Tensor, bool_

from ._batches import batch_of, ragged_batches
from ._elements import Failed, returned, shown, tensors
from ._sources import Files, Kept, Packed
from ._specs import UNKNOWN, joined, spec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from recordkit.pipeline import Mark, Pipeline, Upstream

    Blocks = Generator[ElementBlock, None, None]

_MOST = 256  # elements in a block


@dataclass(frozen=True)
class Call(Map):
    """What a function makes of each element, as tf.data calls it."""

    def apply(self, piece: TracedElements, place: Place) -> TracedElements:
        """Call the function with each element; a tuple is several arguments."""
        where = piece, place, "map"
        made = [_called(self.function, returned, element, i, where) for i, element in enumerate(_listed(piece))]
        return piece._replace(values=made)

    __str__ = Map.__str__


@dataclass(frozen=True)
class Make(Map):
    """What a function of ours makes of each element, which it gets as it is."""

    def apply(self, piece: TracedElements, place: Place) -> TracedElements:
        """Call the function with each element."""
        return piece._replace(values=[self._made(element) for element in _listed(piece)])

    def _made(self, element: Any) -> Any:
        if isinstance(element, Failed):
            return element
        try:
            return self.function(element)
        except Exception as error:
            return Failed(error)

    __str__ = Map.__str__


@dataclass(frozen=True)
class Keep(Filter):
    """The elements for which a function says yes, as tf.data calls it."""

    def apply(self, piece: TracedElements, place: Place) -> TracedElements:
        """Ask the function about each element; those that failed stay."""
        where, elements = (piece, place, "filter"), _listed(piece)
        made = [_called(self.function, _answer, element, i, where) for i, element in enumerate(elements)]
        kept = [i for i, answer in enumerate(made) if answer]
        values = [made[i] if isinstance(made[i], Failed) else elements[i] for i in kept]
        return TracedElements(values, [piece.ends[i] for i in kept], piece.taken)

    __str__ = Filter.__str__


def _answer(result: Any) -> bool:
    """Return what a predicate has answered, which must be a bool: None, or a number, is a mistake."""
    answer = tensors(result)
    if not isinstance(answer, Tensor) or answer.dtype is not bool_ or answer.ndim:
        found = f"{answer.dtype.name} of shape {answer.shape}" if isinstance(answer, Tensor) else type(answer).__name__
        message = f"the predicate must return a scalar of bool, found {found}\n  Compare: n > 0, or text == b'yes'."
        raise ValueError(message)
    return bool(answer)


def batched(elements: Any) -> Any:
    """Return elements as one."""
    return Tensor(elements.chunk) if isinstance(elements, Packed) else batch_of(elements)


def _listed(piece: TracedElements) -> list[Any]:
    return list(piece.values)


def _called(function: Any, result: Any, element: Any, i: int, where: tuple[TracedElements, Place, str]) -> Any:
    """Return what a function makes of an element, or what went wrong."""
    if isinstance(element, Failed):
        return element
    try:
        return result(function(*arguments(element)))
    except Exception as error:
        piece, place, what = where
        return Failed(failed(error, f"{place(int(piece.ends[i]) - 1)}: {what}({name_of(function)}) failed"))


def arguments(element: Any) -> tuple[Any, ...]:
    """Return what a function is called with."""
    given = tensors(element)
    return tuple(given) if isinstance(given, tuple) and not hasattr(given, "_fields") else (given,)


@dataclass(frozen=True)
class Shuffle(BufferShuffle):
    """A random one of `buffer` elements, in whose place comes the next.

    Attributes:
        again: Whether each epoch has an order of its own.
    """

    again: bool = True

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield shuffled blocks."""

        def listed(before: Mark, _: int) -> Blocks:
            with closing(upstream(before, epoch)) as blocks:
                for block in blocks:
                    yield ElementBlock(list(block.values), block.marks)

        return super().run(listed, mark, epoch if self.again else 0)

    def __str__(self) -> str:
        return f"Shuffle({self.buffer})"  # whatever the seed, which may be drawn: a cache is none the worse for another


@dataclass(frozen=True, kw_only=True)
class Passed(StepRepr):
    """What a generator makes of elements that come one after the other.

    Attributes:
        most: How many of them a block has at most.
    """

    most: int = _MOST

    def making(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield what becomes of elements."""
        raise NotImplementedError

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield it in blocks. What was known at a mark is only known from the beginning."""
        given, at = mark or 0, 0
        with closing(upstream(None, epoch)) as blocks:
            for values in gathered(self.making(element for element, _ in each(blocks)), self.most):
                count = len(values)
                if at + count > given:
                    numbers = range(at + 1, at + count + 1)
                    yield cut_block(ElementBlock(values, LazyMarks(numbers, int)), given - at, count)
                at += count


@dataclass(frozen=True)
class Alike(Passed):
    """Elements of several datasets, which must be alike though that is not known before they are made."""

    def making(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield the elements; one that is not like those before it has failed."""
        known = UNKNOWN
        for element in elements:
            if isinstance(element, Failed):
                yield element
                continue
            try:
                known = spec_of(tensors(element)) if known is UNKNOWN else joined(known, spec_of(tensors(element)))
            except TypeError as error:
                yield Failed(error)
                continue
            yield element


@dataclass(frozen=True)
class Raised(Passed):
    """Elements as a cache keeps them. What went wrong is raised, behind the elements before it."""

    function: Callable[[Any], Any]

    def making(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield what is kept of each."""
        return map(self.function, elements)

    def __str__(self) -> str:
        return f"Raised({name_of(self.function)})"


@dataclass(frozen=True)
class Gathered(Passed):
    """Lists of `size` elements. One that failed ends the list it would be in, which is lost, as TensorFlow has it."""

    size: int
    drop_last: bool = False

    def making(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield lists, and what failed."""
        held: list[Any] = []
        for element in elements:
            if isinstance(element, Failed):
                held = []
                yield element
                continue
            held.append(element)
            if len(held) == self.size:
                yield held
                held = []
        if held and not self.drop_last:
            yield held


def grouped(pipe: Pipeline, size: int, drop_last: bool, *, fused: bool) -> Pipeline:
    """Return lists of elements.

    Where `map` comes right before `batch`, TensorFlow does both as one step, where one that failed takes a place.
    """
    counted = fused and isinstance(pipe.steps[-1] if pipe.steps else pipe.source, Call | Files)
    return pipe.with_step(BatchStep(size, drop_last, lists=True) if counted else Gathered(size, drop_last))


@dataclass(frozen=True)
class Ragged(Passed):
    """Lists of elements as batches that are ragged where shapes differ."""

    dtype: Any

    def making(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield batches."""
        return ragged_batches(elements, self.dtype)


@dataclass(frozen=True)
class Interleave(Passed):
    """The elements of what each element opens to: `block` of each in turn, `cycle` of them at a time.

    As TensorFlow does: where one has ended the next has its turn, and a new one is opened in its place when it is the
    turn of that place again.

    Attributes:
        function: The user's.
        opened: Returns an iterator, which can be closed, for that function, an element, and how to read it.
        ahead: Whether each is read ahead.
        tolerant: Whether damage is passed over.
    """

    function: Callable[..., Any]
    opened: Callable[..., Any]
    cycle: int = 1
    block: int = 1
    ahead: bool = False
    tolerant: bool = False

    def making(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield all elements."""
        places: list[Any] = [None] * self.cycle
        at, more = 0, True
        try:
            while more or any(place is not None for place in places):
                if places[at] is None and more:
                    element = next(elements, None)
                    if isinstance(element, Failed):
                        yield element
                        continue  # the next one has its place
                    more = element is not None
                    places[at] = self._open(element) if more else None
                if places[at] is not None and (yield from _some(places[at], self.block)) < self.block:
                    places[at].close()
                    places[at] = None
                at = (at + 1) % self.cycle
        finally:
            for place in places:
                if place is not None:
                    place.close()

    def _open(self, element: Any) -> Any:
        """Return the elements that one opens to; what went wrong is the only one."""
        try:
            return self.opened(self.function, shown(element), ahead=self.ahead, tolerant=self.tolerant, most=self.most)
        except Exception as error:
            return (failed for failed in [Failed(error)])

    def __str__(self) -> str:
        return f"Interleave({name_of(self.function)}, {self.cycle}, {self.block})"


def _some(elements: Iterator[Any], count: int) -> Generator[Any, None, int]:
    """Yield so many elements, and return how many there were; what goes wrong is the last of them."""
    given = 0
    try:
        for element in islice(elements, count):
            given += 1
            yield element
    except Exception as error:
        yield Failed(error)
        return 0
    return given


@dataclass(frozen=True)
class Good(StepRepr):
    """The elements that have not failed."""

    log: bool = False
    keeps = False

    def apply(self, piece: TracedElements, place: Place) -> TracedElements:
        """Leave the others out."""
        elements = _listed(piece)
        failed = [i for i, element in enumerate(elements) if isinstance(element, Failed)]
        for i in failed if self.log else ():
            warnings.warn(f"{place(i)} is left out: {elements[i].error}", RuntimeWarning, stacklevel=2)
        kept = sorted({*range(len(elements))} - {*failed})
        return TracedElements([elements[i] for i in kept], [piece.ends[i] for i in kept], piece.taken)


@dataclass(frozen=True)
class First(TakeStep):
    """The first elements. Those that failed come along, and are not counted."""

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield blocks until there are enough."""
        before, given = mark or (None, 0)
        if given >= self.elements:
            return
        with closing(upstream(before, epoch)) as blocks:
            for block in blocks:
                counts = _counts(block.values, given)
                stop = bisect_left(counts, self.elements) + 1
                taken = cut_block(block, 0, stop)
                marks = wrapped(taken.marks, lambda i, mark, counts=counts: [mark, counts[i]])
                yield ElementBlock(taken.values, marks)
                given = counts[-1] if counts else given
                if given >= self.elements:
                    return


@dataclass(frozen=True)
class Past(SkipStep):
    """All but the first elements. Those that failed come along, and are not counted."""

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield what comes behind them, and what failed among them."""
        before, left = mark or (None, self.elements)
        with closing(upstream(before, epoch)) as blocks:
            for block in blocks:
                start = 0
                while left and start < len(block.values):
                    if isinstance(block.values, list) and isinstance(block.values[start], Failed):
                        only = cut_block(block, start, start + 1)
                        yield ElementBlock(only.values, [[only.marks[0], left]])
                    else:
                        left -= 1
                    start += 1
                if start < len(block.values):
                    rest = cut_block(block, start, len(block.values))
                    yield ElementBlock(rest.values, wrapped(rest.marks, lambda i, mark: [mark, 0]))


@dataclass(frozen=True)
class Every(EveryOne):
    """Element `first`, and from there every `step`-th. Those that failed come along.

    As TensorFlow does: where one fails among those that are passed over, passing over begins anew.
    """

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield those elements."""
        before, gap, left = mark or (None, self.first, self.first)
        with closing(upstream(before, epoch)) as blocks:
            for block in blocks:
                for i, value in enumerate(block.values):
                    if isinstance(value, Failed):
                        left = gap if left else 0
                    elif left:
                        left -= 1
                        continue
                    else:
                        gap = left = self.step - 1
                    only = cut_block(block, i, i + 1)
                    yield ElementBlock(only.values, [[only.marks[0], gap, left]])


def _counts(values: Any, given: int) -> Sequence[int]:
    """Return for each element how many have not failed until then, that one included."""
    if not isinstance(values, list):
        return range(given + 1, given + len(values) + 1)
    return list(accumulate((not isinstance(value, Failed) for value in values), initial=given))[1:]


def ignoring(pipe: Pipeline, good: Good) -> Pipeline:
    """Return a pipeline whose files are read through damage, and whose caches leave out what failed."""
    steps = tuple(replace(step, tolerant=True) if isinstance(step, Interleave) else step for step in pipe.steps)
    source: Any = pipe.source
    if isinstance(source, Files):
        source = replace(source, tolerant=True)
    elif hasattr(source, "joint"):  # of several pipelines
        pipes = tuple(ignoring(each, good) for each in source.joint.pipes)
        source = replace(source, joint=replace(source.joint, pipes=pipes))
    elif isinstance(source, Kept):
        made: Any = source.upstream
        *before, raising = ignoring(made, good).steps
        source = replace(source, upstream=replace(ignoring(made, good), steps=(*before, good, raising)))
    return replace(pipe, source=source, steps=steps)


def limited(pipe: Pipeline, few: int) -> Pipeline:
    """Return a pipeline that makes `few` elements at a time, so that no more are made than were asked for."""
    steps: list[Any] = []
    for step in reversed(pipe.steps):
        steps.insert(0, replace(step, most=min(few, _MOST)) if isinstance(step, Passed) else step)
        few *= step.size if isinstance(step, BatchStep | Gathered) else 1
    source: Any = pipe.source
    if isinstance(source, Files | GeneratorSource):
        source = replace(source, most=few)
    elif hasattr(source, "joint"):
        pipes = tuple(limited(each, few) for each in source.joint.pipes)
        source = replace(source, joint=replace(source.joint, pipes=pipes))
    elif isinstance(source, Kept):
        source = replace(source, upstream=limited(source.upstream, few), most=few)
    return replace(pipe, source=source, steps=tuple(steps))


def fixed(seed: int | None) -> int:
    """Return a seed: the one that was given, or any."""
    return int(np.random.default_rng().integers(1 << 62)) if seed is None else int(seed)
