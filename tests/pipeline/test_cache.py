from __future__ import annotations

import gc
import pickle
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit.columns import Batch
from recordkit.errors import StateError
from recordkit.pipeline import from_generator
from recordkit.pipeline._cache_format import dump
from tests.pipeline.sources import epoch, few_sizes, ids, numbers, plain_all, rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recordkit.pipeline import Pipeline

pytestmark = pytest.mark.usefixtures("small_blocks")


class Counted:
    """A function that knows how often it was called."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, number: int) -> int:
        self.calls.append(number)
        return number * 10


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """Where what does not fit into memory goes."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder


def kept(pipe: Pipeline, how: str, folder: Path) -> Pipeline:
    options: dict[str, Any] = {"memory": {}, "spill": {"max_bytes": 1}, "disk": {"path": folder / "kept", "key": "1"}}
    return pipe.cache(**options[how])


@pytest.fixture(params=["memory", "spill", "disk"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestElements:
    def test_are_made_once(self, how: str, tmp_path: Path, temporary: Path) -> None:
        function = Counted()
        pipe = kept(numbers(9, 8).map(function), how, tmp_path)

        epochs = [list(pipe) for _ in range(3)]

        assert epochs == [[n * 10 for n in range(17)]] * 3
        assert sorted(function.calls) == list(range(17))

    def test_are_made_once_for_many_threads(self, how: str, tmp_path: Path, temporary: Path) -> None:
        function = Counted()
        pipe = kept(numbers(90).map(function), how, tmp_path).shuffle(1).map(abs, workers=4)

        assert sorted(pipe) == [n * 10 for n in range(90)]
        assert len(function.calls) == 90

    def test_are_shuffled_behind_it(self, how: str, tmp_path: Path, temporary: Path) -> None:
        for columns in (True, False):
            pipe = rows(30) if columns else rows(30).map(dict)
            shuffled = kept(pipe, how, tmp_path / str(columns)).shuffle(4)

            found = [epoch(shuffled, number) for number in range(2)]

            assert sorted(ids(found[0])) == list(range(30))
            assert found[0] != found[1]
            assert found[0] == epoch(rows(30).shuffle(4))

    @settings(max_examples=30)
    @given(sizes=few_sizes, batch=st.integers(1, 9), take=st.none() | st.integers(0, 30), spill=st.booleans())
    def test_are_what_they_were(self, sizes: list[int], batch: int, take: int | None, spill: bool) -> None:
        pipe = rows(*sizes).filter("id != 3")
        cached = pipe.cache(max_bytes=1 if spill else None)
        behind = [each if take is None else each.take(take) for each in (pipe, cached)]

        assert epoch(behind[1].batch(batch)) == epoch(behind[0].batch(batch))
        assert epoch(behind[1].batch(batch), 1) == epoch(behind[0].batch(batch))
        assert len(cached) == len(epoch(pipe))

    def test_batches_are_kept_as_batches(self, how: str, tmp_path: Path, temporary: Path) -> None:
        pipe = kept(rows(9).batch(4), how, tmp_path)

        for _ in range(2):
            assert [type(batch) for batch in pipe] == [Batch] * 3

    def test_are_counted_where_records_are_passed_over(self) -> None:
        pipe = rows(9, bad=frozenset([2, 5])).cache()

        assert sorted(ids(pipe.shuffle(3))) == [0, 1, 3, 4, 6, 7, 8]
        assert len(pipe) == 7

    def test_nothing_is_kept_as_nothing(self, how: str, tmp_path: Path, temporary: Path) -> None:
        pipe = kept(numbers(3).filter(lambda n: False), how, tmp_path)

        assert [list(pipe), list(pipe), list(pipe.shuffle(1))] == [[], [], []]

    def test_two_loops_at_once_give_the_same(self, how: str, tmp_path: Path, temporary: Path) -> None:
        pipe = kept(numbers(30).map(abs), how, tmp_path)

        assert all(left == right for left, right in zip(pipe, pipe, strict=True))
        assert list(pipe) == list(range(30))

    def test_generators_are_asked_once(self) -> None:
        left = [range(5)]
        pipe = from_generator(lambda: left.pop()).cache()

        assert [list(pipe), list(pipe)] == [list(range(5))] * 2


class TestWhole:
    def test_loop_that_is_left_keeps_nothing(self, how: str, tmp_path: Path, temporary: Path) -> None:
        function = Counted()
        pipe = kept(numbers(40).map(function, workers=1), how, tmp_path)
        it = iter(pipe)
        next(it)
        it.close()

        left = [*tmp_path.iterdir(), *temporary.iterdir()]
        assert left == [temporary]
        assert list(pipe) == [n * 10 for n in range(40)]
        assert function.calls.count(0) == 2

    def test_error_keeps_nothing(self, how: str, tmp_path: Path, temporary: Path) -> None:
        pipe = kept(numbers(40).map(lambda n: 1 // (30 - n)), how, tmp_path)

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                list(pipe)

        assert [*tmp_path.iterdir(), *temporary.iterdir()] == [temporary]

    def test_what_is_asked_for_later_is_made_first(self, how: str, tmp_path: Path, temporary: Path) -> None:
        function = Counted()
        pipe = kept(numbers(40).map(function), how, tmp_path)

        assert list(pipe.take(3)) == [0, 10, 20]
        assert len(function.calls) == 40

    def test_temporary_files_go_with_the_pipeline(self, temporary: Path) -> None:
        pipe = numbers(40).map(abs).cache(max_bytes=1)
        list(pipe)
        there = list(temporary.iterdir())

        del pipe
        gc.collect()

        assert len(there) == 1
        assert list(temporary.iterdir()) == []

    def test_memory_that_suffices_is_used(self, temporary: Path) -> None:
        pipe = numbers(40).cache(max_bytes="1MB")
        list(pipe)

        assert list(temporary.iterdir()) == []


class TestDisk:
    def test_another_pipeline_finds_it(self, tmp_path: Path) -> None:
        function = Counted()
        for _ in range(2):
            assert epoch(numbers(5).map(function).cache(tmp_path / "kept", key="1")) == [0, 10, 20, 30, 40]

        assert len(function.calls) == 5

    @pytest.mark.parametrize("other", ["records", "steps", "key", "options"])
    def test_what_was_made_of_something_else_is_replaced(self, other: str, tmp_path: Path) -> None:
        list(numbers(5).map(abs).cache(tmp_path, key="1"))
        function = Counted()
        pipe = numbers(4, 1) if other == "records" else numbers(5)
        pipe = pipe.take(4) if other == "steps" else pipe
        pipe = pipe.map(function).map(abs) if other == "options" else pipe.map(function)

        found = list(pipe.cache(tmp_path, key="2" if other == "key" else "1"))

        assert found == [n * 10 for n in range(4 if other == "steps" else 5)]
        assert len(function.calls) == len(found)

    def test_function_needs_a_key(self, tmp_path: Path) -> None:
        mapped = numbers(5).map(Counted().__call__)
        for pipe in (mapped, mapped.cache().batch(2), mapped.zip(numbers(5)), from_generator(lambda: range(5))):
            with pytest.raises(StateError, match=r"cannot detect whether .* has changed since\n  Pass key='1'"):
                pipe.cache(tmp_path / "kept")
            list(pipe.cache(tmp_path / "kept", key="1"))

    def test_steps_without_functions_need_none(self, tmp_path: Path) -> None:
        pipe = rows(9).filter("id > 3").shuffle(2, buffer=3).batch(2).cache(tmp_path / "kept")

        assert epoch(pipe) == epoch(pipe) != []

    def test_something_else_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_text("mine")

        with pytest.raises(StateError, match="this is not a cache"):
            list(numbers(3).cache(tmp_path))
        with pytest.raises(StateError, match="this is not a cache"):
            list(numbers(3).cache(tmp_path / "precious"))

        assert (tmp_path / "precious").read_text() == "mine"

    def test_empty_folder_is_taken(self, tmp_path: Path) -> None:
        assert list(numbers(3).cache(tmp_path)) == [0, 1, 2]

    def test_order_is_that_of_the_first_epoch(self, tmp_path: Path) -> None:
        pipe = numbers(30).shuffle(4).cache(tmp_path)

        assert epoch(pipe, 3) == epoch(pipe, 0) == epoch(numbers(30).shuffle(4))

    def test_damage_is_told(self, tmp_path: Path) -> None:
        pipe = numbers(30).cache(tmp_path)
        list(pipe)
        file = next(tmp_path.glob("*.tfrecord"))
        data = bytearray(file.read_bytes())
        data[14] ^= 1
        file.write_bytes(data)

        with pytest.raises(rk.CorruptRecordError, match="checksum"):
            list(numbers(30).cache(tmp_path))

    @pytest.mark.parametrize(
        "records", [[b"1"], [dump([1]), dump([2])], [dump([1]), dump("x")], [dump([1]), dump([0])]]
    )
    def test_strange_records_are_refused(self, records: list[bytes], tmp_path: Path) -> None:
        pipe = numbers(3).cache(tmp_path / "kept")
        metadata = {"recordkit": "cache", "format": 2, "of": pipe.digest}
        with rk.create(tmp_path / "kept", name="cache", metadata=metadata) as writer:
            for record in records:
                writer.write_raw(record)

        with pytest.raises(StateError, match=r"record \d is not what cache\(\) writes: .*\n  Remove the folder"):
            list(pipe)

    def test_cache_of_an_older_version_is_made_anew(self, tmp_path: Path) -> None:
        pipe = numbers(3).cache(tmp_path / "kept")
        metadata = {"recordkit": "cache", "of": pipe.digest}
        with rk.create(tmp_path / "kept", name="cache", metadata=metadata) as writer:
            writer.write_raw(pickle.dumps([0, 1, 2]))
            writer.write_raw(pickle.dumps([3]))

        assert epoch(pipe) == [0, 1, 2]
        assert epoch(numbers(3).cache(tmp_path / "kept")) == [0, 1, 2]


class TestDatasets:
    @pytest.fixture
    def data(self, tmp_path: Path) -> Path:
        columns = {"id": np.arange(30), "square": np.arange(30) ** 2}
        rk.write(tmp_path / "data", columns, records_per_shard=13, sync=False)
        return tmp_path / "data"

    def test_other_fields_are_something_else(self, data: Path, tmp_path: Path) -> None:
        ds = rk.open(data)

        for names in (("id",), ("square",), ("id", "square"), ("id",)):
            assert list(next(iter(ds.select(*names).cache(tmp_path / "kept")))) == list(names)

    def test_payloads_are_something_else_than_rows(self, data: Path, tmp_path: Path) -> None:
        list(rk.open(data).cache(tmp_path / "kept"))

        assert all(isinstance(each, bytes) for each in rk.open(data, raw=True).cache(tmp_path / "kept"))

    def test_function_that_parses_needs_a_key(self, data: Path, tmp_path: Path) -> None:
        ds = rk.open(data, parse=len)

        with pytest.raises(StateError, match="cannot detect whether len has changed"):
            ds.cache(tmp_path / "kept")
        assert list(ds.cache(tmp_path / "kept", key="1")) == list(ds)

    def test_deleted_records_are_not_in_it(self, data: Path, tmp_path: Path) -> None:
        list(rk.open(data).cache(tmp_path / "kept"))
        rk.delete(data, where="id < 9")

        assert ids(rk.open(data).cache(tmp_path / "kept")) == list(range(9, 30))

    def test_same_dataset_opened_again_finds_it(self, data: Path, tmp_path: Path) -> None:
        list(rk.open(data).cache(tmp_path / "kept"))
        before = [path.stat().st_ino for path in sorted((tmp_path / "kept").iterdir())]

        found = ids(rk.open(data).cache(tmp_path / "kept").shuffle(1))

        assert sorted(found) == list(range(30))
        assert [path.stat().st_ino for path in sorted((tmp_path / "kept").iterdir())] == before


class TestPickling:
    def test_copy_makes_its_own_or_finds_what_is_there(self, how: str, tmp_path: Path, temporary: Path) -> None:
        pipe = kept(rows(9).map(dict), how, tmp_path)
        found = plain_all(pipe)

        assert epoch(pickle.loads(pickle.dumps(pipe))) == found


class TestLayers:
    def test_cache_of_a_dataset_with_added_fields_is_found_again(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "data", {"a": np.arange(20)})
        rk.add_fields(tmp_path / "data", {"b": np.arange(20) * 2})
        first = rk.open(tmp_path / "data").cache(tmp_path / "cache")
        list(first)
        written = sorted((tmp_path / "cache").rglob("*"))

        again = rk.open(tmp_path / "data").cache(tmp_path / "cache")

        assert again.digest == first.digest
        assert [int(row["b"]) for row in again] == list(range(0, 40, 2))
        assert sorted((tmp_path / "cache").rglob("*")) == written

    def test_other_values_in_an_added_field_are_another_cache(self, tmp_path: Path) -> None:
        found = []
        for step in (2, 3):
            path = tmp_path / f"data{step}"
            rk.write(path, {"a": np.arange(20)})
            rk.add_fields(path, {"b": np.arange(20) * step})
            found.append(rk.open(path).cache().digest)

        assert found[0] != found[1]
