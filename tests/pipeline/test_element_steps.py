from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from recordkit.columns import Batch
from recordkit.errors import SchemaError
from recordkit.pipeline import from_generator
from tests.pipeline.sources import epoch, ids, numbers, rows

pytestmark = pytest.mark.usefixtures("small_blocks")


def fails_at(number: int) -> Any:
    def fails(row: Any) -> Any:
        if row["id"] == number:
            message = "not this one"
            raise LookupError(message)
        return row

    return fails


class TestMap:
    def test_rows_are_dicts(self) -> None:
        assert epoch(rows(3).map(lambda row: (type(row), row["id"], row["text"])))[2] == (dict, 2, "n2")

    def test_behind_batch_it_gets_batches(self) -> None:
        assert epoch(rows(5).batch(2).map(len)) == [2, 2, 1]

    def test_what_it_returns_is_the_element(self) -> None:
        assert list(numbers(3).map(lambda n: None if n == 1 else n)) == [0, None, 2]

    @pytest.mark.parametrize("before", ["shuffle", ""])
    @pytest.mark.parametrize("behind", ["batch", ""])
    def test_error_names_file_and_record(self, before: str, behind: str) -> None:
        pipe = rows(5, 0, 20)
        pipe = (pipe.shuffle(3) if before else pipe).map(fails_at(17))

        with pytest.raises(LookupError, match="not this one") as caught:
            list(pipe.batch(4) if behind else pipe)

        assert caught.value.__notes__ == ["file 2: record 12: map(fails_at.<locals>.fails) failed"]
        assert caught.traceback[-1].name == "fails"

    def test_elements_before_the_one_that_fails_are_given(self) -> None:
        it = iter(rows(20).shuffle(3).map(fails_at(ids(rows(20).shuffle(3))[11])))

        given: list[Any] = []
        with pytest.raises(LookupError):
            given.extend(it)

        assert it.state_dict()["at"] == (len(given) or None)
        assert ids(given) == ids(rows(20).shuffle(3))[: len(given)]
        assert len(given) <= 11

    def test_error_behind_a_stage_names_the_step(self) -> None:
        with pytest.raises(LookupError) as caught:
            list(rows(9).shuffle(3, buffer=4).map(fails_at(5)))

        assert re.fullmatch(r"element \d of \d: map\(fails_at.<locals>.fails\) failed", caught.value.__notes__[0])


class TestMapBatches:
    def test_rows_are_columns(self) -> None:
        pipe = rows(5, 6).shuffle(1).map_batches(lambda batch: {"id": batch["id"] * 2, "text": batch["text"]})

        assert sorted(ids(pipe)) == list(range(0, 22, 2))

    def test_behind_batch_it_gets_that_batch_and_returns_anything(self) -> None:
        assert epoch(rows(5).batch(2).map_batches(lambda batch: int(batch["id"].sum()))) == [1, 5, 4]

    def test_behind_unbatch_it_gets_columns_again(self) -> None:
        pipe = rows(5).batch(2).unbatch().map_batches(lambda batch: {"twice": batch["id"] * 2})

        assert [row["twice"].item() for row in pipe] == [0, 2, 4, 6, 8]

    @pytest.mark.parametrize("join", ["cache", "concat", "mix"])
    def test_batches_from_elsewhere_are_batches_too(self, join: str) -> None:
        batched = rows(4).batch(2)
        pipe = batched.cache() if join == "cache" else getattr(batched, join)(rows(2).batch(2))

        assert {type(batch) for batch in pipe.map_batches(lambda batch: batch)} == {Batch}

    def test_what_map_has_made_is_collated(self) -> None:
        pipe = numbers(4).map(lambda n: {"n": n}).map_batches(lambda columns: {"m": columns["n"] + 1})

        assert [row["m"].item() for row in pipe] == [1, 2, 3, 4]

    @pytest.mark.parametrize(
        ("returned", "found"),
        [
            ({"n": np.arange(1)}, "1 rows"),
            ({"n": np.arange(3), "m": np.arange(2)}, "n: 3 rows, m: 2 rows"),
            ({"n": {"deeper": 1}}, "n: dict"),
            ({"n": 7}, "n: int"),
            ({}, "no columns"),
            (np.arange(3), "ndarray"),
            (None, "NoneType"),
        ],
    )
    def test_rows_are_as_many_as_before(self, returned: Any, found: str) -> None:
        with pytest.raises(SchemaError, match=f"expected columns of 3 rows, found {re.escape(found)}\n"):
            list(rows(3).map_batches(lambda batch: returned))

    def test_error_names_the_rows(self) -> None:
        with pytest.raises(ZeroDivisionError) as caught:
            list(rows(3, 3).map_batches(lambda batch: 1 / 0))

        assert "failed on the rows from file 0: record 0 to file 1: record 0" in caught.value.__notes__[0]


class TestFilter:
    def test_keeps_what_a_function_says_yes_to(self) -> None:
        assert epoch(numbers(4, 4).shuffle(3).filter(lambda n: n % 2).map(int).filter(lambda n: n > 3)) == [
            n for n in epoch(numbers(8).shuffle(3)) if n % 2 and n > 3
        ]

    def test_keeps_what_an_expression_takes(self) -> None:
        assert ids(rows(9).filter("id > 3 and text != 'n5'")) == [4, 6, 7, 8]

    def test_expression_needs_columns(self) -> None:
        with pytest.raises(SchemaError, match="found results of map\n  Put it before map"):
            list(rows(3).map(dict).filter("id > 3"))

    def test_rows_stay_columns(self) -> None:
        batch = next(iter(rows(9).filter("id > 3").filter(lambda row: row["id"] % 2).batch(9)))

        assert isinstance(batch, Batch)
        assert batch["id"].tolist() == [5, 7]

    def test_error_names_file_and_record(self) -> None:
        with pytest.raises(LookupError) as caught:
            list(rows(5, 9).filter(lambda row: row["id"] != 3).map(fails_at(7)))

        assert caught.value.__notes__ == ["file 1: record 2: map(fails_at.<locals>.fails) failed"]

    def test_nothing_left_is_no_batch(self) -> None:
        assert list(rows(9).filter("id > 100").batch(3)) == []


class TestBatch:
    @pytest.mark.parametrize("order", ["", "shuffle", "filter", "map"])
    def test_rows_make_batches_of_the_size(self, order: str) -> None:
        pipe = {"": rows(7, 4), "shuffle": rows(7, 4).shuffle(1), "filter": rows(9, 4).filter("id > 1")}.get(
            order, rows(7, 4).map(dict)
        )

        assert [len(batch["id"]) for batch in pipe.batch(4)] == [4, 4, 3]
        assert [len(batch["id"]) for batch in pipe.batch(4, drop_last=True)] == [4, 4]
        assert [len(batch["id"]) for batch in pipe.batch(11, drop_last=True)] == [11]

    def test_what_map_returned_is_padded(self) -> None:
        batches = epoch(numbers(4).map(lambda n: {"tokens": list(range(n))}).batch(2, pad=-1))

        assert batches == [{"tokens": [[-1], [0]]}, {"tokens": [[0, 1, -1], [0, 1, 2]]}]

    def test_batches_are_full_where_records_are_passed_over(self) -> None:
        bad = frozenset([0, 3, 4, 12])
        for pipe in (rows(9, 9, bad=bad), rows(9, 9, bad=bad).shuffle(2)):
            assert [len(batch["id"]) for batch in pipe.batch(5)] == [5, 5, 4]
            assert set(ids(pipe.batch(5))) == set(range(18)) - bad

    def test_payloads_are_listed_wherever_they_come_from(self) -> None:
        def payloads() -> Any:
            return numbers(6)

        for pipe in (payloads().shuffle(1), payloads().cache(), payloads().concat(payloads()).filter(lambda n: True)):
            assert [type(batch) for batch in pipe.batch(3).take(2)] == [list, list]
        assert isinstance(next(iter(payloads().map(abs).cache().batch(3))), np.ndarray)

    def test_collating_errors_name_the_field(self) -> None:
        with pytest.raises(SchemaError, match=r"^n: element 1 of 2 is None"):
            list(numbers(2).map(lambda n: {"n": None if n else 1}).batch(2))


class TestDecodeImages:
    def test_is_printed_with_what_was_asked_for(self) -> None:
        pipe = rows(1).decode_images("image", size=(4, 5), scaled=True)

        assert str(pipe.steps[0]) == "DecodeImages('image', size=(4, 5), scaled=True)"

    def test_field_that_is_not_there_is_named(self) -> None:
        with pytest.raises(SchemaError, match=r"decode_images\('image'\): .* found the fields id, text"):
            list(rows(1).decode_images("image"))


def stops(*_: Any) -> Any:
    """Do what next() of an empty iterator does, as a function that looks for something may by mistake."""
    return next(iter(()))


class TestStopIteration:
    """It is an error that names the step: as the end of the elements it would lose those behind."""

    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("step", ["map", "filter", "map_batches"])
    @pytest.mark.parametrize("before", [lambda: rows(5, 3).shuffle(1), lambda: rows(5), lambda: numbers(4)])
    def test_of_a_function_names_it(self, before: Any, step: str, workers: int) -> None:
        pipe = getattr(before(), step)(stops, workers=workers)

        with pytest.raises(
            RuntimeError, match=rf"{step}\(stops\) failed.*: it raised StopIteration\n  Give next\(\) a"
        ):
            list(pipe)

    def test_behind_batch_names_the_function(self) -> None:
        with pytest.raises(RuntimeError, match=r"map\(stops\) failed: it raised StopIteration"):
            list(rows(5).batch(2).map(stops))

    def test_of_what_should_yield_names_it(self) -> None:
        with pytest.raises(RuntimeError, match=r"from_generator\(stops\) failed: it raised StopIteration"):
            list(from_generator(stops))
