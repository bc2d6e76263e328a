from __future__ import annotations

import io
import multiprocessing
import pickle
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import records
from tests.dataset.files import SCHEMA, WAYS, flip, offset_of, payloads, rows, save, save_many, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

TOTAL = 60
ROWS = rows(0, TOTAL)


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> rk.Dataset:
    """Six files in all ways, one of them empty."""
    return rk.open(save_many(tmp_path_factory.mktemp("many"), [13, 1, 0, 25, 20, 1], [*WAYS, "ours", "plain"]))


def picked(batch: Any) -> list[dict[str, Any]]:
    return list(batch.rows())


class TestOne:
    def test_is_the_row_that_reading_in_order_gives(self, ds: rk.Dataset) -> None:
        assert [ds[i] for i in range(TOTAL)] == ROWS == list(ds)

    @pytest.mark.parametrize("index", [-1, -TOTAL, np.int64(7), np.uint8(3), np.int8(-2)])
    def test_counts_from_the_end_and_takes_numbers_of_numpy(self, ds: rk.Dataset, index: Any) -> None:
        assert ds[index] == ROWS[index]

    def test_small_numbers_of_numpy_do_not_wrap_around(self, tmp_path: Path) -> None:
        ds = rk.open(save_many(tmp_path, [400])).skip(100)

        assert ds[np.uint8(200)]["id"] == 300
        assert ds[np.int8(-1)]["id"] == 399

    @pytest.mark.parametrize("index", [TOTAL, -TOTAL - 1, 10**20])
    def test_out_of_range_says_how_many_there_are(self, ds: rk.Dataset, index: int) -> None:
        with pytest.raises(IndexError, match=rf"^6 paths: record {index} of {TOTAL}$"):
            ds[index]

    @pytest.mark.parametrize("index", ["id", 1.5, None, True, [[1, 2]], [1.5], ["a"], {"a": 1}])
    def test_what_is_no_number_is_a_type_error_in_words(self, ds: rk.Dataset, index: Any) -> None:
        with pytest.raises(
            TypeError, match=r"^6 paths: (expected a number, a slice, or|a dataset is indexed by numbers)"
        ):
            ds[index]


class TestMany:
    @settings(max_examples=60)
    @given(
        index=st.one_of(
            st.slices(TOTAL),
            st.slices(40).map(lambda s: slice(s.start, s.stop, s.step and s.step * 3)),
            st.lists(st.integers(-TOTAL, TOTAL - 1), max_size=80),
        )
    )
    def test_is_what_a_list_gives(self, ds: rk.Dataset, index: Any) -> None:
        wanted = ROWS[index] if isinstance(index, slice) else [ROWS[i] for i in index]

        assert picked(ds[index]) == wanted

    @settings(max_examples=40)
    @given(
        skip=st.integers(0, TOTAL),
        take=st.integers(0, TOTAL),
        data=st.data(),
    )
    def test_counts_from_the_first_record_that_is_left(
        self, ds: rk.Dataset, skip: int, take: int, data: st.DataObject
    ) -> None:
        part, left = ds.skip(skip).take(take), ROWS[skip : skip + take]
        index = data.draw(st.lists(st.integers(-len(left), len(left) - 1), max_size=9) if left else st.just([]))

        assert len(part) == len(left)
        assert picked(part[index]) == [left[i] for i in index]
        assert picked(part[::-2]) == left[::-2]

    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
    def test_takes_arrays_of_any_integers(self, ds: rk.Dataset, dtype: Any) -> None:
        assert picked(ds[np.array([59, 0, 59, 13], dtype)]) == [ROWS[59], ROWS[0], ROWS[59], ROWS[13]]

    def test_takes_a_mask(self, ds: rk.Dataset) -> None:
        mask = np.arange(TOTAL) % 7 == 3

        assert picked(ds[mask]) == ROWS[3::7]
        assert picked(ds[mask.tolist()]) == ROWS[3::7]

    def test_a_mask_of_another_length_is_an_error_that_says_so(self, ds: rk.Dataset) -> None:
        with pytest.raises(IndexError, match=r"a mask of 3 for 60 records"):
            ds[[True, False, True]]

    def test_nothing_is_a_batch_without_rows(self, ds: rk.Dataset) -> None:
        batch = ds[[]]

        assert (len(batch), batch.names, batch["id"].tolist()) == (0, ("id", "name"), [])

    def test_out_of_range_names_the_first_that_is(self, ds: rk.Dataset) -> None:
        with pytest.raises(IndexError, match=r"^6 paths: record -61 of 60$"):
            ds[[1, -61, 99]]

    def test_gives_lists_of_payloads_or_of_what_parse_makes(self, ds: rk.Dataset) -> None:
        paths = [file.name for file in ds.shards]
        index = [50, 3, 3, -1]

        assert rk.open(paths, raw=True)[index] == [payloads(0, TOTAL)[i] for i in index]
        assert rk.open(paths, parse=len)[index] == [len(payloads(0, TOTAL)[i]) for i in index]
        assert rk.open(paths, parse=len)[3] == len(payloads(0, TOTAL)[3])

    def test_decodes_only_what_is_selected(self, ds: rk.Dataset) -> None:
        assert ds.select("name")[7] == {"name": ROWS[7]["name"]}
        assert ds.drop("name")[[7, 8]].names == ("id",)

    def test_sample_draws_each_once_in_order_and_the_same_for_a_seed(self, ds: rk.Dataset) -> None:
        drawn = ds.sample(20, seed=3)["id"].tolist()

        assert drawn == sorted(set(drawn)) == ds.sample(20, seed=3)["id"].tolist()
        assert drawn != ds.sample(20, seed=4)["id"].tolist()
        assert ds.sample(1000)["id"].tolist() == list(range(TOTAL))

    @pytest.mark.parametrize("way", WAYS)
    def test_an_open_file_can_be_read_at_any_place_too(self, way: str) -> None:
        file = io.BytesIO(stored([records.pack(payload) for payload in payloads(0, 40)], way))
        ds = rk.open(file)

        assert picked(ds[[39, 0, 20]]) == [rows(0, 40)[i] for i in (39, 0, 20)]
        assert ds[25] == rows(0, 40)[25]


class TestErrors:
    @pytest.mark.parametrize("way", WAYS)
    def test_a_payload_that_is_no_example_is_named_by_file_and_record(self, tmp_path: Path, way: str) -> None:
        some = payloads(0, 30)
        some[20] = b"\x0a\xff\xff"
        paths = [*save_many(tmp_path, [9], [way]), save(tmp_path / "bad.tfrecord", some, way)]
        ds = rk.open(paths, schema=SCHEMA)

        for index in (29, [29, 1], [3, 29, 29, 12], slice(25, 35)):
            with pytest.raises(rk.CorruptRecordError) as caught:
                ds[index]
            assert (caught.value.path, caught.value.record) == (str(paths[1]), 20)
            assert f"{paths[1]}: record 20 at byte {sum(map(len, some[:20])) + 16 * 20}" in str(caught.value)

    @pytest.mark.parametrize("way", WAYS)
    def test_a_value_that_does_not_fit_is_named_when_its_column_is_made(self, tmp_path: Path, way: str) -> None:
        paths = save_many(tmp_path, [200, 100], [way])
        ds = rk.open(paths, schema={"id": "uint8", "name": "string"})

        for index in ([270, 3, 7], [270], slice(260, 280)):
            batch = ds[index]
            assert len(batch["name"]) == len(batch)
            with pytest.raises(rk.SchemaError) as caught:
                batch["id"]
            wanted = 70 if isinstance(index, list) else 60
            assert (caught.value.path, caught.value.record, caught.value.field) == (str(paths[1]), wanted, "id")
        with pytest.raises(rk.SchemaError) as caught:
            ds[270]
        assert (caught.value.path, caught.value.record) == (str(paths[1]), 70)

    @pytest.mark.parametrize("way", WAYS)
    def test_what_parse_raises_arrives_with_file_and_record(self, tmp_path: Path, way: str) -> None:
        paths = save_many(tmp_path, [20, 20], [way])
        bad = payloads(33, 34)[0]
        ds = rk.open(paths, parse=lambda payload: 1 // int(payload != bad))

        for index in (33, [33], [3, 39, 33, 30], slice(30, 40)):
            with pytest.raises(ZeroDivisionError) as caught:
                ds[index]
            assert caught.value.__notes__ == [
                f"{paths[1]}: record 13: parse= failed on its payload of {len(bad)} bytes"
            ]

    def test_what_parse_stops_with_is_an_error(self, tmp_path: Path) -> None:
        (path,) = save_many(tmp_path, [3])
        ds = rk.open(path, parse=lambda _: next(iter(())))

        for look in (list, lambda ds: ds[1], lambda ds: ds[[1]], lambda ds: list(ds.batch(2))):
            with pytest.raises(RuntimeError, match=r"record \d: parse= failed .*: it raised StopIteration"):
                look(ds)

    def test_a_damaged_record_is_named_and_the_others_can_be_had(self, tmp_path: Path) -> None:
        (path,) = save_many(tmp_path, [30])
        at = offset_of(path, 12)
        flip(path, at + 12)
        ds = rk.open(path, schema=SCHEMA)

        for index in (12, [11, 12, 13], [29, 12]):
            with pytest.raises(rk.CorruptRecordError) as caught:
                ds[index]
            assert (caught.value.record, caught.value.offset, caught.value.kind) == (12, at, "bad_payload_crc")

        assert picked(ds[[29, 11, 13]]) == [rows(0, 30)[i] for i in (29, 11, 13)]

    def test_a_record_longer_than_allowed_is_refused_wherever_it_is_read(self, tmp_path: Path) -> None:
        for way in WAYS:
            path = save(tmp_path / way, [b"a", b"b" * 100, b"c"], way)
            ds = rk.open(path, raw=True, max_record_bytes=50)

            for read in (lambda ds=ds: ds[1], lambda ds=ds: ds[[2, 1]], lambda ds=ds: list(ds)):
                with pytest.raises(rk.CorruptRecordError, match="record 1 at byte 17: the record is larger than"):
                    read()

    def test_the_others_of_a_plain_file_can_be_had_beside_one_that_is_too_long(self, tmp_path: Path) -> None:
        ds = rk.open(save(tmp_path / "a", [b"a", b"b" * 100, b"c"]), raw=True, max_record_bytes=50)

        assert (ds[0], ds[[2, 0]]) == (b"a", [b"c", b"a"])


class TestTogether:
    @pytest.mark.parametrize("way", WAYS)
    def test_from_many_threads_at_once(self, tmp_path: Path, way: str) -> None:
        ds = rk.open(save_many(tmp_path, [50] * 6, [way]))
        numbers = np.random.default_rng(0).permutation(300).tolist()

        with ThreadPoolExecutor(8) as pool:
            one = list(pool.map(lambda i: ds[i]["id"], numbers))
            many = list(pool.map(lambda i: ds[[i, i - 1]]["id"].tolist(), numbers))

        assert one == numbers
        assert many == [[i, (i - 1) % 300] for i in numbers]

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking beside threads that others left
    def test_in_other_processes(self, tmp_path: Path, method: str) -> None:
        ds = rk.open(save_many(tmp_path, [5, 5, 5, 5], WAYS)).skip(2).select("id")
        assert ds[0] == {"id": 2}

        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(ds.__getitem__, range(18)) == [{"id": i + 2} for i in range(18)]

    def test_a_pickled_dataset_reads_the_same(self, ds: rk.Dataset) -> None:
        copy = pickle.loads(pickle.dumps(ds.drop("id").take(30)))

        assert list(copy) == [{"name": row["name"]} for row in ROWS[:30]]
        assert copy[17] == {"name": ROWS[17]["name"]}


@pytest.fixture
def _few_open_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 60, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class TestManyFiles:
    @pytest.mark.usefixtures("_few_open_files")
    def test_few_of_them_are_open_at_a_time(self, tmp_path: Path) -> None:
        ds = rk.open(save_many(tmp_path, [2] * 300, WAYS))
        numbers = np.random.default_rng(0).permutation(600).tolist()

        for some in (ds, pickle.loads(pickle.dumps(ds))):
            assert "300 files" in repr(some)
            assert len(some) == 600
            assert [some[i]["id"] for i in numbers] == numbers
            assert some[numbers]["id"].tolist() == numbers
            assert sum(len(batch) for batch in some.batch(7, workers=3)) == 600

    def test_those_that_are_read_one_after_the_other_are_closed(self, tmp_path: Path) -> None:
        before = len(list(Path("/proc/self/fd").iterdir()))
        ds = rk.open(save_many(tmp_path, [2] * 50, WAYS))

        assert sum(len(batch) for batch in ds.batch(3)) == 100

        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2

    def test_a_file_that_is_gone_is_named(self) -> None:
        with TemporaryDirectory() as folder:
            paths = save_many(Path(folder), [3, 3])
            ds = rk.open(paths)
            assert len(ds) == 6

        with pytest.raises(rk.StorageError, match=r"data-000\.tfrecord: cannot be read: No such file or directory"):
            ds[0]
