from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit import _core
from recordkit.filesystems import LocalFile, OpenFiles, _map_limit
from recordkit.storage.read import RecordFile, fetch
from tests.dataset.files import save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAYLOADS = [b"%06d" % number * 100 for number in range(3000)]  # 1.8 MB: 29 times what is mapped at once
PIECES = 29


@pytest.fixture(autouse=True)
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _map_limit.mapped_at_most.cache_clear()
    yield
    _map_limit.mapped_at_most.cache_clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save(tmp_path / "data.tfrecord", PAYLOADS)


def opened(path: Path) -> RecordFile:
    return RecordFile(LocalFile(path), None, OpenFiles(2))


def some(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(count, np.int64), np.random.default_rng(seed).integers(0, len(PAYLOADS), count)


class TestMapped:
    def test_a_file_is_mapped_when_it_was_read_at_many_places(self, path: Path) -> None:
        file = LocalFile(path)

        found = []
        for _ in range(4):
            file.note_reads(PIECES // 2)
            found.append(file.map)

        assert found[0] is None
        assert found[2] is not None
        assert len(found[2]) == path.stat().st_size
        assert found[3] is found[2]

    def test_a_file_is_mapped_at_once_when_it_will_be_read_at_many_places(self, path: Path) -> None:
        few, many = LocalFile(path), LocalFile(path)

        few.expect_reads(PIECES // 2)
        many.expect_reads(2 * PIECES)

        assert few.map is None
        assert many.map is not None
        many.close()
        assert many.map is None

    def test_records_are_the_same_before_and_after(self, path: Path) -> None:
        file = opened(path)

        for seed in range(6):
            which, numbers = some(PIECES // 2, seed)
            assert list(fetch([file], which, numbers)) == [PAYLOADS[number] for number in numbers]
        assert file.map is not None

    def test_reading_what_stands_together_counts_once(self, path: Path) -> None:
        file = opened(path)

        for _ in range(5):
            fetch([file], np.zeros(3000, np.int64), np.random.default_rng(1).permutation(3000))

        assert file.map is None

    def test_none_is_mapped_where_that_is_not_wanted(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RECORDKIT_MAPPED", "0")
        file = opened(path)

        which, numbers = some(100)
        assert list(fetch([file], which, numbers)) == [PAYLOADS[number] for number in numbers]
        assert file.map is None

    def test_a_limit_that_is_none_is_told(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RECORDKIT_MAPPED", "plenty")

        with pytest.raises(rk.StorageError, match=r"RECORDKIT_MAPPED in the environment: .*found 'plenty'\n  Say how"):
            fetch([opened(path)], *some(2 * PIECES))

    def test_reads_are_counted_for_the_file_they_are_of(self, path: Path, tmp_path: Path) -> None:
        files = [opened(path), *(opened(save(tmp_path / f"{i}", PAYLOADS)) for i in range(9))]

        for number in range(0, 300, 10):  # one place at a time, of which ten files would have none each
            fetch(files, np.zeros(1, np.int64), np.array([number]))

        assert [file.map is not None for file in files] == [True] + [False] * 9

    def test_a_file_that_is_too_large_is_not(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RECORDKIT_MAPPED", "1MB")

        file = LocalFile(path)
        file.note_reads(1000)

        assert file.map is None

    def test_closing_and_pickling_let_go_of_it(self, path: Path) -> None:
        file = LocalFile(path)
        file.note_reads(PIECES)
        assert file.map is not None

        copy = pickle.loads(pickle.dumps(file))
        file.close()

        assert copy.map is None
        assert file.map is None

    def test_a_file_that_is_cut_short_is_named_and_not_mapped_again(self, path: Path) -> None:
        file = opened(path)
        fetch([file], *some(2 * PIECES))
        assert file.map is not None

        os.truncate(path, 900_000)
        with pytest.raises(rk.CorruptRecordError, match=r"data\.tfrecord: .*record 2000"):
            fetch([file], np.zeros(3, np.int64), np.array([0, 2000, 1]))

        assert list(fetch([file], np.zeros(2, np.int64), np.array([7, 3]))) == [PAYLOADS[7], PAYLOADS[3]]
        assert file.map is None


@pytest.mark.parametrize(("wanted", "mapped"), [(len(PAYLOADS), True), (PIECES // 2, False)])
def test_files_are_mapped_before_a_shuffle_reads_them_at_many_places(
    path: Path, wanted: int, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    fetch_listed = _core.fetch_listed

    def seen(descriptors: Any, maps: Any, *rest: Any) -> Any:
        found.append(maps[0] is not None)
        return fetch_listed(descriptors, maps, *rest)

    monkeypatch.setattr(_core, "fetch_listed", seen)
    given = [payload for batch in rk.open(path, raw=True).shuffle(7).take(wanted).batch(10) for payload in batch]

    assert len(set(given)) == wanted
    assert found[0] is mapped


CUT_SHORT = """
import faulthandler, os, sys, recordkit as rk
pipe = rk.open(sys.argv[1], raw=True).shuffle(7).shard(0, 8).batch(10)
print(sum(len(batch) for batch in pipe), sys.argv[1] in open("/proc/self/maps").read())
if sys.argv[2] == "faulthandler":
    faulthandler.enable()  # which takes the signal for itself
os.truncate(sys.argv[1], 900_000)
try:
    print(sum(len(batch) for batch in pipe))
except rk.CorruptRecordError as error:
    print(error)
"""


@pytest.mark.parametrize("also", ["nothing", "faulthandler"])
def test_a_file_cut_short_while_it_is_shuffled_is_an_error_and_no_death(path: Path, also: str) -> None:
    run = subprocess.run([sys.executable, "-c", CUT_SHORT, str(path), also], capture_output=True, text=True, timeout=60)

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"375 True\n{path}: record ")


class TestMemory:
    def test_a_container_has_less_than_its_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        limit = tmp_path / "memory.max"
        limit.write_text("1000000\n")
        monkeypatch.setattr(_map_limit, "_LIMITS", (str(limit), str(tmp_path / "none")))

        assert _map_limit.memory() == 1_000_000
        assert _map_limit.mapped_at_most() == 250_000

    def test_no_limit_is_no_limit(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        limit = tmp_path / "memory.max"
        limit.write_text("max\n")
        monkeypatch.setattr(_map_limit, "_LIMITS", (str(limit),))

        assert _map_limit.memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
