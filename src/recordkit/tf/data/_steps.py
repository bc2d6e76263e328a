"""Steps that pipelines do not have: those of tf.data, which continues after an element that failed.

Caches on disk remember the steps before them by class name, so these names are part of a format.
"""

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
    CombinedSource,
    ElementBlock,
    ElementStep,
    EveryOne,
    Filter,
    GeneratorSource,
    LazyMarks,
    Map,
    Place,
    SkipStep,
    Step,
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
from ._elements import Failed, shown, to_element, to_tensors
from ._sources import Cache, Files, PackedPayloads
from ._specs import UNKNOWN, joined, spec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from recordkit.pipeline import Mark, Pipeline, Upstream

    Blocks = Generator[ElementBlock, None, None]

_MOST = 256  # elements in a block


@dataclass(frozen=True)
class Call(Map):
    """Call the user's function with each element, as tf.data does."""

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        where = inputs, place, "map"
        made = [_called(self.function, to_element, element, i, where) for i, element in enumerate(_listed(inputs))]
        return inputs._replace(values=made)

    __str__ = Map.__str__


@dataclass(frozen=True)
class Make(Map):
    """Call one of our own functions with each element; failed ones pass through."""

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        return inputs._replace(values=[self._made(element) for element in _listed(inputs)])

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
    """Keep the elements for which the user's function returns True, and failed ones."""

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        where, elements = (inputs, place, "filter"), _listed(inputs)
        made = [_called(self.function, _answer, element, i, where) for i, element in enumerate(elements)]
        kept = [i for i, answer in enumerate(made) if answer]
        values = [made[i] if isinstance(made[i], Failed) else elements[i] for i in kept]
        return TracedElements(values, [inputs.ends[i] for i in kept], inputs.taken)

    __str__ = Filter.__str__


def _answer(result: Any) -> bool:
    """Return the result of a predicate, which must be a scalar bool: None, or a number, is a mistake."""
    answer = to_tensors(result)
    if not isinstance(answer, Tensor) or answer.dtype is not bool_ or answer.ndim:
        found = f"{answer.dtype.name} of shape {answer.shape}" if isinstance(answer, Tensor) else type(answer).__name__
        message = f"the predicate must return a scalar bool, found {found}\n  Compare: n > 0, or text == b'yes'."
        raise ValueError(message)
    return bool(answer)


def batched(elements: Any) -> Any:
    """Return elements as a batch."""
    return Tensor(elements.chunk) if isinstance(elements, PackedPayloads) else batch_of(elements)


def _listed(inputs: TracedElements) -> list[Any]:
    return list(inputs.values)


def _called(function: Any, result: Any, element: Any, i: int, where: tuple[TracedElements, Place, str]) -> Any:
    """Return the result of the user's function for an element, or the failure."""
    if isinstance(element, Failed):
        return element
    try:
        return result(function(*arguments(element)))
    except Exception as error:
        inputs, place, what = where
        return Failed(failed(error, f"{place(int(inputs.ends[i]) - 1)}: {what}({name_of(function)}) failed"))


def arguments(element: Any) -> tuple[Any, ...]:
    """Return the arguments for the user's function: an element, or the items of a tuple."""
    given = to_tensors(element)
    return tuple(given) if isinstance(given, tuple) and not hasattr(given, "_fields") else (given,)


@dataclass(frozen=True)
class Shuffle(BufferShuffle):
    """Shuffle with a buffer.

    Attributes:
        again: Whether each epoch has an order of its own.
    """

    again: bool = True

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:

        def listed(before: Mark, _: int) -> Blocks:
            with closing(upstream(before, epoch)) as blocks:
                for block in blocks:
                    yield ElementBlock(list(block.values), block.marks)

        return super().run(listed, mark, epoch if self.again else 0)

    def __str__(self) -> str:
        return f"Shuffle({self.buffer})"  # without the seed, which may be random: a cache is valid for any


@dataclass(frozen=True, kw_only=True)
class GeneratorStep(Step):
    """A step that a Python generator carries out, element by element.

    Attributes:
        most: How many elements a block has at most.
    """

    most: int = _MOST

    def transform(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield the elements that these become."""
        raise NotImplementedError

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
        """Yield them in blocks. To resume at a mark, all elements before it are made again."""
        given, at = mark or 0, 0
        with closing(upstream(None, epoch)) as blocks:
            for values in gathered(self.transform(element for element, _ in each(blocks)), self.most):
                count = len(values)
                if at + count > given:
                    numbers = range(at + 1, at + count + 1)
                    yield cut_block(ElementBlock(values, LazyMarks(numbers, int)), given - at, count)
                at += count


@dataclass(frozen=True)
class Alike(GeneratorStep):
    """Check that the elements of several datasets are alike, if that was not known before they ran."""

    def transform(self, elements: Iterator[Any]) -> Iterator[Any]:
        known = UNKNOWN
        for element in elements:
            if isinstance(element, Failed):
                yield element
                continue
            try:
                spec = spec_of(to_tensors(element))
                known = spec if known is UNKNOWN else joined(known, spec)
            except TypeError as error:
                yield Failed(error)
                continue
            yield element


@dataclass(frozen=True)
class Raised(GeneratorStep):
    """Convert elements to the form that a cache keeps; a failed one raises, after the elements before it."""

    function: Callable[[Any], Any]

    def transform(self, elements: Iterator[Any]) -> Iterator[Any]:
        return map(self.function, elements)

    def __str__(self) -> str:
        return f"Raised({name_of(self.function)})"


@dataclass(frozen=True)
class Gathered(GeneratorStep):
    """Collect lists of `size` elements. A failed element discards the list it interrupts, as in TensorFlow."""

    size: int
    drop_last: bool = False

    def transform(self, elements: Iterator[Any]) -> Iterator[Any]:
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


def group(pipe: Pipeline, size: int, drop_last: bool, *, fused: bool) -> Pipeline:
    """Return a pipeline of lists of elements.

    TensorFlow fuses `map` with a `batch` right after it; then a failed element counts as one of its batch.
    """
    counted = fused and isinstance(pipe.steps[-1] if pipe.steps else pipe.source, Call | Files)
    return pipe.with_step(BatchStep(size, drop_last, lists=True) if counted else Gathered(size, drop_last))


@dataclass(frozen=True)
class Ragged(GeneratorStep):
    """Make batches of lists of elements, ragged where shapes differ."""

    dtype: Any

    def transform(self, elements: Iterator[Any]) -> Iterator[Any]:
        return ragged_batches(elements, self.dtype)


@dataclass(frozen=True)
class Interleave(GeneratorStep):
    """Open each element as a dataset, and take `block` elements of each in turn, from `cycle` of them at a time.

    As in TensorFlow, when a dataset ends the next one has its turn, and its slot is filled when its turn comes again.

    Attributes:
        function: The user's function, which returns a dataset.
        opened: Returns an iterator, which can be closed, for that function, an element, and how to read it.
        ahead: Whether each dataset is read ahead.
        tolerant: Whether damaged records are skipped.
    """

    function: Callable[..., Any]
    opened: Callable[..., Any]
    cycle: int = 1
    block: int = 1
    ahead: bool = False
    tolerant: bool = False

    def transform(self, elements: Iterator[Any]) -> Iterator[Any]:
        places: list[Any] = [None] * self.cycle
        at, more = 0, True
        try:
            while more or any(place is not None for place in places):
                if places[at] is None and more:
                    element = next(elements, None)
                    if isinstance(element, Failed):
                        yield element
                        continue  # the next element gets its slot
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
        """Return the elements of the dataset that an element opens; if that fails, the failure alone."""
        try:
            return self.opened(self.function, shown(element), ahead=self.ahead, tolerant=self.tolerant, most=self.most)
        except Exception as error:
            return (failed for failed in [Failed(error)])

    def __str__(self) -> str:
        return f"Interleave({name_of(self.function)}, {self.cycle}, {self.block})"


def _some(elements: Iterator[Any], count: int) -> Generator[Any, None, int]:
    """Yield up to `count` elements, and return how many there were; an error becomes the last one."""
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
class Good(ElementStep):
    """Drop failed elements."""

    log: bool = False

    def apply(self, inputs: TracedElements, place: Place) -> TracedElements:
        elements = _listed(inputs)
        failed = [i for i, element in enumerate(elements) if isinstance(element, Failed)]
        for i in failed if self.log else ():
            warnings.warn(f"{place(i)} is dropped: {elements[i].error}", RuntimeWarning, stacklevel=2)
        kept = sorted({*range(len(elements))} - {*failed})
        return TracedElements([elements[i] for i in kept], [inputs.ends[i] for i in kept], inputs.taken)


@dataclass(frozen=True)
class First(TakeStep):
    """Take the first elements. Failed ones pass through uncounted."""

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
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
    """Skip the first elements. Failed ones pass through uncounted."""

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
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
    """Take element `first`, and from there every `step`-th. Failed ones pass through.

    As in TensorFlow, a failure among the skipped elements restarts the skipping.
    """

    def run(self, upstream: Upstream, mark: Mark, epoch: int) -> Blocks:
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
    """Return for each element how many have not failed, up to and including it."""
    if not isinstance(values, list):
        return range(given + 1, given + len(values) + 1)
    return list(accumulate((not isinstance(value, Failed) for value in values), initial=given))[1:]


def ignore_failures(pipe: Pipeline, good: Good) -> Pipeline:
    """Return a pipeline that skips damaged records in files, and drops failed elements before it caches them."""
    steps = tuple(replace(step, tolerant=True) if isinstance(step, Interleave) else step for step in pipe.steps)
    source: Any = pipe.source
    if isinstance(source, Files):
        source = replace(source, tolerant=True)
    elif isinstance(source, CombinedSource):
        pipes = tuple(ignore_failures(each, good) for each in source.joint.pipes)
        source = replace(source, joint=replace(source.joint, pipes=pipes))
    elif isinstance(source, Cache):
        made: Any = source.upstream
        *before, raising = ignore_failures(made, good).steps
        source = replace(source, upstream=replace(ignore_failures(made, good), steps=(*before, good, raising)))
    return replace(pipe, source=source, steps=steps)


def limit_blocks(pipe: Pipeline, few: int) -> Pipeline:
    """Return a pipeline that makes only `few` elements at a time, so that it does not run too far ahead."""
    steps: list[Any] = []
    for step in reversed(pipe.steps):
        steps.insert(0, replace(step, most=min(few, _MOST)) if isinstance(step, GeneratorStep) else step)
        few *= step.size if isinstance(step, BatchStep | Gathered) else 1
    source: Any = pipe.source
    if isinstance(source, Files | GeneratorSource):
        source = replace(source, most=few)
    elif isinstance(source, CombinedSource):
        pipes = tuple(limit_blocks(each, few) for each in source.joint.pipes)
        source = replace(source, joint=replace(source.joint, pipes=pipes))
    elif isinstance(source, Cache):
        source = replace(source, upstream=limit_blocks(source.upstream, few), most_rows=few)
    return replace(pipe, source=source, steps=tuple(steps))


def fixed_seed(seed: int | None) -> int:
    """Return the seed, or a random one."""
    return int(np.random.default_rng().integers(1 << 62)) if seed is None else int(seed)
