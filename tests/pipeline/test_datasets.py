"""Pipelines over real files: the order is a matter of the records, not of what they are stored in."""

from __future__ import annotations

import shutil
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordkit as rk
from recordkit.errors import StateError
from tests.dataset.files import SCHEMA, flip, offset_of, payloads, save, save_many
from tests.dataset.files import rows as made_rows
from tests.pipeline.sources import epoch, ids, plain_all, states

COUNT = 240


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, rk.Dataset]:
    """The same records, stored in every way."""
    root: Path = tmp_path_factory.mktemp("ways")
    every: dict[str, Any] = {
        "one file": {"records_per_shard": 1000},
        "many files": {"records_per_shard": 37},
        "gzip": {"records_per_shard": 70, "compression": "gzip"},
        "zlib": {"records_per_shard": 130, "compression": "zlib"},
        "overlay": {"records_per_shard": 90},
        "deleted": {"records_per_shard": 61},
    }
    for name, options in every.items():
        some = made_rows(0, COUNT + (10 if name == "deleted" else 0))
        rk.write(root / name, some, SCHEMA, sync=False, **options)
    rk.add_fields(root / "overlay", {"more": rk.Computed("int64", lambda row: row["id"] + 1, reads=["id"])})
    rk.delete(root / "deleted", where=f"id >= {COUNT}")
    save_many(root / "foreign", [100, 0, 140], ["plain", "plain"])
    save_many(root / "foreign gzip", [60, 180], ["foreign", "ours"])
    return {path.name: rk.open(path) for path in sorted(root.iterdir())}


class TestContent:
    @pytest.mark.parametrize(
        "step",
        [
            lambda ds: ds,
            lambda ds: ds.shuffle(5),
            lambda ds: ds.shuffle(5).shard(1, 3),
            lambda ds: ds.shuffle(5, buffer=20),
            lambda ds: ds.filter("id > 30").batch(7).shard(0, 2).unbatch(),
            lambda ds: ds.shuffle(5).repeat(2).take(300),
        ],
    )
    def test_order_is_that_of_the_records(self, step: Any, ways: dict[str, rk.Dataset]) -> None:
        found = {name: ids(step(ds.select("id", "name"))) for name, ds in ways.items()}

        assert all(order == found["one file"] for order in found.values())
        assert len(ways) == 8

    def test_windows_are_those_of_the_records(self, ways: dict[str, rk.Dataset]) -> None:
        found = {name: ids(ds.shuffle(5, window=4000)) for name, ds in ways.items() if name != "deleted"}

        assert {name for name, order in found.items() if order != found["one file"]} == set()

    def test_values_come_with_their_numbers(self, ways: dict[str, rk.Dataset]) -> None:
        for name, ds in ways.items():
            rows = epoch(ds.shuffle(2, window="3KB"))

            assert sorted(row["id"] for row in rows) == list(range(COUNT))
            assert [row["name"] for row in rows] == [made_rows(row["id"], row["id"] + 1)[0]["name"] for row in rows]
            assert all(row["more"] == row["id"] + 1 for row in rows if name == "overlay")

    def test_interleave_takes_files_in_turns(self, ways: dict[str, rk.Dataset]) -> None:
        assert ids(ways["many files"].interleave(3, block=2))[:8] == [0, 1, 37, 38, 74, 75, 2, 3]

    def test_ends_of_a_dataset_are_cut_first(self, ways: dict[str, rk.Dataset]) -> None:
        ds = ways["many files"].skip(30).take(20)

        assert sorted(ids(ds.shuffle(1))) == list(range(30, 50))
        assert ids(ds.interleave(2)) == [
            n for pair in zip(range(30, 37), range(37, 50), strict=False) for n in pair
        ] + [*range(44, 50)]


class TestPadding:
    """Batches that are filled up are made many at a time where a chunk has many."""

    SCHEMA = rk.Schema({"id": "int64", "tokens": "int64[?]", "text": "string?", "pair": "float32[2]"})

    @staticmethod
    def row(number: int) -> dict[str, Any]:
        tokens = [(number * 7 + i) % 1000 - 500 for i in range(number * 5 % 23)]
        return {
            "id": number,
            "tokens": tokens,
            "text": None if number % 11 == 3 else "x" * (number % 4),
            "pair": np.array([number, -number], np.float32),
        }

    @pytest.mark.parametrize("order", ["in order", "shuffled"])
    @pytest.mark.parametrize("threads", [False, True])
    @pytest.mark.parametrize(("count", "size"), [(500, 16), (512, 16), (7, 16), (300, 300), (64, 1)])
    def test_is_that_of_each_batch(
        self, count: int, size: int, threads: bool, order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if threads:
            monkeypatch.setattr("recordkit.dataset._in_order._SMALL_BYTES", 0)
        rk.write(tmp_path / "ds", map(self.row, range(count)), self.SCHEMA, sync=False, records_per_shard=197)
        ds = rk.open(tmp_path / "ds")
        pipe = (ds if order == "in order" else ds.shuffle(3)).batch(size, pad=-1)

        batches = list(pipe)

        numbers = [number for batch in batches for number in batch["id"].tolist()]
        assert sorted(numbers) == list(range(count))
        assert order == "shuffled" or numbers == list(range(count))
        assert [len(batch) for batch in batches] == [min(size, count - at) for at in range(0, count, size)]
        for batch in batches:
            rows = [self.row(number) for number in batch["id"].tolist()]
            width = max(len(row["tokens"]) for row in rows)
            assert batch["tokens"].tolist() == [row["tokens"] + [-1] * (width - len(row["tokens"])) for row in rows]
            assert batch["text"].to_list() == [row["text"] or "" for row in rows]
            assert batch.valid("text").tolist() == [row["text"] is not None for row in rows]
            assert np.array_equal(batch["pair"], np.stack([row["pair"] for row in rows]))

    @pytest.mark.parametrize(
        ("pad", "words"),
        [("x", r"tokens: cannot be padded with 'x'"), ({"token": 0}, r"pad: there is no field 'token'.*id, tokens")],
    )
    def test_what_does_not_fit_is_refused_by_name(self, pad: Any, words: str, tmp_path: Path) -> None:
        rk.write(tmp_path / "ds", map(self.row, range(40)), self.SCHEMA, sync=False)

        for pipe in rk.open(tmp_path / "ds"), rk.open(tmp_path / "ds").shuffle(1):
            with pytest.raises(rk.SchemaError, match=f"(?s){words}"):
                list(pipe.batch(8, pad=pad))

    def test_goes_on_between_batches_of_one_chunk(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "ds", map(self.row, range(200)), self.SCHEMA, sync=False)
        pipe = rk.open(tmp_path / "ds").batch(8, pad=0)
        whole = [batch["id"].tolist() for batch in pipe]

        for given in range(len(whole) + 1):
            it = iter(pipe)
            for _ in range(given):
                next(it)
            assert [batch["id"].tolist() for batch in pipe.resume(it.state_dict())] == whole[given:]

    def test_batches_before_a_wrong_record_come_first(self, tmp_path: Path) -> None:
        at, count = 20_001, 21_000  # behind what is looked at when a file is opened
        wrong = rk.Schema({"id": "int64", "tokens": "float32[?]", "text": "string?", "pair": "float32[2]"})
        file = tmp_path / "data.tfrecord"
        whole = bytearray()
        for numbers, schema in (range(at), self.SCHEMA), ([at], wrong), (range(at + 1, count), self.SCHEMA):
            rk.write(file, map(self.row, numbers), schema, sync=False, overwrite=True)
            whole += file.read_bytes()
        file.write_bytes(whole)
        batches = iter(rk.open(file, schema=self.SCHEMA).batch(16, pad=0))

        given = [number for batch in islice(batches, at // 16) for number in batch["id"].tolist()]

        assert given == list(range(at // 16 * 16))
        with pytest.raises(rk.SchemaError, match=f"(?s)tokens.*record {at} "):
            next(batches)


class TestResume:
    @pytest.mark.parametrize("name", ["one file", "many files", "gzip", "zlib", "deleted", "foreign", "foreign gzip"])
    @pytest.mark.parametrize("order", ["", "shuffle", "window"])
    def test_goes_on_anywhere(self, name: str, order: str, ways: dict[str, rk.Dataset]) -> None:
        ds = ways[name]
        shuffled: Any = {"": ds, "shuffle": ds.shuffle(3), "window": ds.shuffle(3, window="2KB")}[order]
        pipe = shuffled.map(lambda row: row["id"]).batch(16)
        found, kept = states(pipe)

        for at in (0, 1, 6, len(found) - 1, len(found)):
            assert plain_all(pipe.resume(kept[at])) == found[at:]

    def test_files_may_move_and_be_touched(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", made_rows(0, 50), SCHEMA, sync=False)
        it = iter(rk.open(tmp_path / "a").shuffle(3))
        seen = [next(it)["id"] for _ in range(20)]
        shutil.copytree(tmp_path / "a", tmp_path / "b")

        rest = ids(rk.open(tmp_path / "b").shuffle(3).resume(it.state_dict()))

        assert sorted([*map(int, seen), *rest]) == list(range(50))

    def test_records_that_changed_are_refused(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", made_rows(0, 50), SCHEMA, sync=False)
        state = iter(rk.open(tmp_path / "a").shuffle(3)).state_dict()
        rk.delete(tmp_path / "a", where="id == 7")

        with pytest.raises(StateError, match="the state is of other records"):
            rk.open(tmp_path / "a").shuffle(3).resume(state)


class TestDamage:
    @pytest.fixture
    def damaged(self, tmp_path: Path) -> rk.Dataset:
        """Three records lost of 90: two whose bytes are damaged, and one that is no Example."""
        paths = [save(tmp_path / f"{n}.tfrecord", payloads(30 * n, 30 * n + 30)) for n in range(3)]
        for path, record in ((paths[0], 4), (paths[1], 29)):
            flip(path, offset_of(path, record) + 14)
        some = payloads(60, 90)
        save(paths[2], [*some[:10], b"\xff\xff", *some[11:]])
        return rk.open(paths, schema=SCHEMA, on_error="skip")

    LOST = frozenset([4, 59, 70])

    @pytest.mark.parametrize("order", ["", "shuffle", "window", "interleave"])
    @pytest.mark.filterwarnings("ignore:.*passed over")
    def test_is_passed_over_and_batches_stay_full(self, order: str, damaged: rk.Dataset) -> None:
        pipe: Any = {
            "": damaged,
            "shuffle": damaged.shuffle(3),
            "window": damaged.shuffle(3, window="1KB"),
            "interleave": damaged.interleave(2),
        }[order]

        found, kept = states(pipe.batch(10))

        assert [len(batch["id"]) for batch in found] == [10] * 8 + [7]
        assert set(ids(found)) == set(range(90)) - self.LOST
        for at in (1, 5, 9):
            assert plain_all(pipe.batch(10).resume(kept[at])) == found[at:]

    @pytest.mark.filterwarnings("ignore:.*passed over")
    def test_is_noted(self, damaged: rk.Dataset) -> None:
        list(damaged.shuffle(3).batch(10))

        assert sorted(damage.record or 0 for damage in damaged.damage) == [4, 10, 29]

    def test_is_raised_with_its_place_by_default(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a.tfrecord", payloads(0, 30))
        flip(path, offset_of(path, 11) + 14)

        for pipe in (rk.open(path).shuffle(3), rk.open(path).shuffle(3, window="1KB"), rk.open(path).map(dict)):
            with pytest.raises(rk.CorruptRecordError, match=r"a\.tfrecord: record 11") as caught:
                list(pipe.batch(4))
            assert caught.value.record == 11


class TestErrors:
    @pytest.mark.parametrize("name", ["many files", "gzip", "deleted", "overlay", "foreign gzip"])
    @pytest.mark.parametrize("order", ["", "shuffle", "window"])
    def test_of_functions_name_file_and_record(self, name: str, order: str, ways: dict[str, rk.Dataset]) -> None:
        ds = ways[name]
        pipe: Any = {"": ds, "shuffle": ds.shuffle(3), "window": ds.shuffle(3, window="2KB")}[order]
        ends = np.cumsum([file.count for file in ds.shards]).tolist()
        file = next(at for at, end in enumerate(ends) if end > 200)

        with pytest.raises(ZeroDivisionError) as caught:
            list(pipe.map(lambda row: 1 // (int(row["id"]) - 200)).batch(8))

        record = 200 - (ends[file - 1] if file else 0)
        assert f"{ds.shards[file].name}: record {record}: map(" in caught.value.__notes__[0]


class TestReading:
    @staticmethod
    def reads() -> tuple[int, int]:
        """How many bytes this process has read, and in how many reads."""
        facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return int(facts["rchar"]), int(facts["syscr"])

    def test_windows_read_large_pieces(self, tmp_path: Path) -> None:
        noise = np.random.default_rng(1).bytes(3000)
        rk.write(tmp_path / "data", {"id": np.arange(9000), "data": [noise] * 9000}, shard_size="10MB", sync=False)
        pipe = rk.open(tmp_path / "data").shuffle(3, window="16MB").batch(64)
        list(pipe)  # which reads the index
        before = self.reads()

        found = ids(pipe)

        size, count = np.subtract(self.reads(), before)
        assert sorted(found) == list(range(9000))
        assert size / count >= 1 << 20


class TestLatency:
    def test_first_batch_waits_for_few_others(self, ways: dict[str, rk.Dataset]) -> None:
        calls: list[int] = []

        def noted(row: Any) -> int:
            calls.append(row["id"])
            return int(row["id"])

        with iter(ways["one file"].map(noted, workers=1).batch(4)) as it:
            next(it)

        assert len(calls) <= 8


class TestWrite:
    def test_rows_are_written_as_they_come(self, ways: dict[str, rk.Dataset], tmp_path: Path) -> None:
        written = ways["gzip"].shuffle(3).filter("id > 100").write(tmp_path / "out", records_per_shard=50, sync=False)

        assert written.records == COUNT - 101
        assert ids(rk.open(tmp_path / "out")) == [n for n in ids(ways["gzip"].shuffle(3)) if n > 100]

    @pytest.mark.parametrize("step", ["map", "batch", "raw"])
    def test_anything_that_is_rows_is_written(self, step: str, ways: dict[str, rk.Dataset], tmp_path: Path) -> None:
        ds = ways["many files"]
        pipe: Any = {
            "map": ds.map(lambda row: {"id": row["id"], "half": float(row["id"]) / 2}),
            "batch": ds.batch(7),
            "raw": rk.open([file.name for file in ds.shards], raw=True),
        }[step]

        pipe.write(tmp_path / "out", sync=False)

        assert ids(rk.open(tmp_path / "out")) == list(range(COUNT))

    def test_failure_leaves_nothing(self, ways: dict[str, rk.Dataset], tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError):
            ways["gzip"].map(lambda row: {"n": 1 // (100 - int(row["id"]))}).write(tmp_path / "out", sync=False)

        assert list(tmp_path.iterdir()) == []


class TestMemory:
    def test_is_flat_over_epochs(self, ways: dict[str, rk.Dataset]) -> None:
        pipe = ways["many files"].shuffle(3).map(lambda row: row["id"]).batch(16).prefetch()
        list(pipe)
        list(pipe)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10):
            list(pipe)
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()

        assert after - before < 200_000
