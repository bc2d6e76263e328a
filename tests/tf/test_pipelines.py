"""A law: a short pipeline of tf.data's steps gives the same elements, and the same errors, with both modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from recordkit import tf as ours
from tests.chance import generator
from tests.tf.both import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Build = Callable[[Any], Any]  # from a module to a dataset
    Step = Callable[[Any, Any], Any]  # from a module and a dataset to one with a step more

PIPELINES = 120
MOST = 40  # elements
FUNCTIONS = "map(", "flat_map", "interleave", "enumerate", "zip"


def yielding(values: list[Any], spec: Any) -> Build:
    """A dataset of what a generator yields: some of it may not fit."""
    return lambda tf: tf.data.Dataset.from_generator(
        lambda: iter(values), output_signature=tf.TensorSpec(spec, tf.int64)
    )


def source(chance: Random, kind: str) -> tuple[str, Build]:
    """What elements of a kind come from, in words and as a function of the module."""
    size = chance.randrange(9)
    numbers = [chance.randrange(9) for _ in range(size)]
    if kind == "dict":
        columns = {"a": numbers, "t": [str(n) for n in numbers]}
        return f"slices({columns})", lambda tf: tf.data.Dataset.from_tensor_slices(
            {"a": tf.constant(numbers, tf.int64), "t": tf.constant(columns["t"], tf.string)}
        )
    if kind == "row":
        rows: list[Any] = [list(range(n % 4)) for n in numbers]
        return f"rows({rows})", yielding(rows, [None])
    which = chance.randrange(3)
    if which == 0:
        return f"range({size})", lambda tf: tf.data.Dataset.range(size)
    if which == 1:
        return f"slices({numbers})", lambda tf: tf.data.Dataset.from_tensor_slices(tf.constant(numbers, tf.int64))
    odd: list[Any] = [n if n % 5 else "odd" for n in numbers]
    return f"generator({odd})", yielding(odd, [])


def step(chance: Random, kind: str) -> tuple[str, str, Step]:
    """A step for elements of a kind: in words, what kind comes of it, and the step."""
    n, k, flag = chance.randrange(7), chance.randrange(1, 4), chance.random() < 0.3
    any_kind: list[tuple[str, str, Step]] = [
        (f"repeat({k})", kind, lambda tf, ds: ds.repeat(k)),
        (f"take({n})", kind, lambda tf, ds: ds.take(n)),
        (f"skip({n})", kind, lambda tf, ds: ds.skip(n)),
        (f"prefetch({n})", kind, lambda tf, ds: ds.prefetch(n)),
        (f"shard({k}, 0)", kind, lambda tf, ds: ds.shard(k, 0)),
        ("cache()", kind, lambda tf, ds: ds.cache()),
        ("shuffle(1)", kind, lambda tf, ds: ds.shuffle(1)),
        ("ignore_errors()", kind, lambda tf, ds: ds.ignore_errors()),
        ("twice", kind, lambda tf, ds: ds.concatenate(ds)),
    ]
    other_kind = chance.choice(["number", "dict"])  # TensorFlow crashes on some pipelines of numbers and rows
    other_words, other = source(chance, other_kind)
    shape = chance.choice([None, [None], [2]])
    of_kind: dict[str, list[tuple[str, str, Step]]] = {
        "number": [
            ("map(2n + 1)", kind, lambda tf, ds: ds.map(lambda x: x * 2 + 1)),
            ("filter(n % 3)", kind, lambda tf, ds: ds.filter(lambda x: x % 3 != 0)),
            (f"batch({k}, {flag})", "row", lambda tf, ds: ds.batch(k, drop_remainder=flag)),
            (f"concatenate({other_words})", kind, lambda tf, ds: ds.concatenate(other(tf))),
            ("enumerate", kind, lambda tf, ds: ds.enumerate().map(lambda i, x: i * 100 + x)),
            ("zip", kind, lambda tf, ds: tf.data.Dataset.zip((ds, tf.data.Dataset.range(5))).map(lambda a, b: a + b)),
            (
                f"interleave({k}, {1 + n % 3})",
                kind,
                lambda tf, ds: ds.interleave(
                    lambda x: tf.data.Dataset.range(x, x + x % 4), cycle_length=k, block_length=1 + n % 3
                ),
            ),
            ("flat_map", kind, lambda tf, ds: ds.flat_map(lambda x: tf.data.Dataset.range(x % 3))),
            (f"padded_batch({k}, {shape})", "row", lambda tf, ds: ds.padded_batch(k, shape)),
        ],
        "row": [
            ("map(row + 1)", kind, lambda tf, ds: ds.map(lambda x: x + 1)),
            (f"batch({k})", "many", lambda tf, ds: ds.batch(k)),
            (f"padded_batch({k}, {shape})", "many", lambda tf, ds: ds.padded_batch(k, shape)),
            ("unbatch()", "number", lambda tf, ds: ds.unbatch()),
        ],
        "dict": [
            ("map(a)", "number", lambda tf, ds: ds.map(lambda row: row["a"])),
            ("filter(a % 2)", kind, lambda tf, ds: ds.filter(lambda row: row["a"] % 2 == 0)),
            (f"batch({k})", "many", lambda tf, ds: ds.batch(k)),
            (f"padded_batch({k})", "many", lambda tf, ds: ds.padded_batch(k)),
            (f"concatenate({other_words})", kind, lambda tf, ds: ds.concatenate(other(tf))),
        ],
        "many": [],
    }
    return chance.choice([*any_kind, *of_kind[kind] * 3])


def pipeline(chance: Random) -> tuple[str, Build]:
    """A pipeline in words, and as a function of the module; a shuffle may come last."""
    kind = chance.choice(["number", "number", "row", "dict"])
    words, first = source(chance, kind)
    steps = []
    for _ in range(chance.randrange(1, 6)):
        more, kind, made = step(chance, kind)
        words += f".{more}"
        steps.append(made)

    def build(tf: Any) -> Any:
        dataset = first(tf)
        for each in steps:
            dataset = each(tf, dataset)
        return dataset

    return words, build


def outcome(build: Build, tf: Any) -> list[Any]:
    """What a dataset gives, each error in the place of an element, or that it cannot be built."""
    try:
        elements = iter(build(tf))
    except Exception as error:
        return ["not built", error_of(error)]
    seen: list[Any] = []
    while len(seen) < MOST:
        try:
            seen.append(plain(next(elements)))
        except StopIteration:
            return seen
        except Exception as error:
            seen.append(error_of(error))
    return seen


def until_failure(seen: list[Any]) -> list[Any]:
    """What comes before the first error, with it; errors are text."""
    end = next((at for at, one in enumerate(seen) if isinstance(one, str)), len(seen))
    return seen if seen[:1] == ["not built"] else seen[: end + 1]


def error_of(error: Exception) -> str:
    """The class that a script would catch, under TensorFlow's name."""
    names = [kind.__name__ for kind in type(error).__mro__]
    known = ("DataLossError", "InvalidArgumentError", "TypeError", "ValueError")
    return next((name for name in known if name in names), names[0])


@pytest.mark.tensorflow
@pytest.mark.drawn
@pytest.mark.filterwarnings("ignore")  # TensorFlow's own
def test_both_modules_give_the_same_elements_and_errors(tf: Any) -> None:
    chance = generator("tf.data pipelines")
    seen: set[str] = set()
    for _ in range(PIPELINES):
        words, build = pipeline(chance)

        mine, theirs = outcome(build, ours), outcome(build, tf)

        # A cache ends with the first element that failed. Which elements TensorFlow zips behind one is not known.
        if "cache()" in words or "zip" in words:
            mine, theirs = until_failure(mine), until_failure(theirs)
        if theirs[:1] == ["not built"] and any(name in words for name in FUNCTIONS):
            continue  # TensorFlow traces functions, and so knows beforehand what they make
        assert mine == theirs, words
        seen.update(one for one in mine if isinstance(one, str))
    assert {"not built", "InvalidArgumentError", "TypeError"} <= seen
