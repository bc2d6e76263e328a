from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit import _core, records
from recordkit.filesystems import LocalFile, OpenFiles
from recordkit.storage.read import RecordFile
from tests import chance
from tests.dataset.files import payloads, save, stored
from tests.storage.cuts import HANDLERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS = payloads(0, 3000)
FRAMES = [records.pack(payload) for payload in ROWS]
TICK = 0.02  # what the system's clock for files can tell apart, and more


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*arguments: str, timeout: float = 500) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=timeout, check=False)


@pytest.mark.drawn
@pytest.mark.parametrize("handler", HANDLERS)
def test_no_cut_kills_hangs_or_goes_unsaid(handler: str) -> None:
    rounds = 200 if chance.SOAKING else 30
    seed = chance.generator(f"cuts {handler}").getrandbits(32)

    done = run("-m", "tests.storage.cuts", str(seed), str(rounds), handler)

    assert done.returncode == 0, (seed, done.returncode, done.stderr[-3000:])
    found = json.loads(done.stdout)
    assert set(found["outcomes"]) <= {"right", "named"}, seed
    assert sum(found["outcomes"].values()) == rounds
    assert found["mapped"] > 0  # the maps were really there to be cut


# --- Every end is looked at


def scanned(path: Path) -> Any:
    return (payload for payload in rk.open(path, raw=True, workers=rk.Threads(1)))


def threads(path: Path) -> Any:
    return (row for batch in rk.open(path, workers=rk.Threads(3)).batch(7) for row in batch["id"])


def windows(path: Path) -> Any:
    return (row for batch in rk.open(path).shuffle(1, window="50KB").batch(7) for row in batch["id"])


def buffered(path: Path) -> Any:
    return (row for batch in rk.open(path).shuffle(1, buffer=50).batch(7) for row in batch["id"])


def skipped(path: Path) -> Any:
    return (payload for payload in rk.open(path, raw=True, on_error=lambda damage: None))


def ended(given: Iterator[Any]) -> tuple[rk.CorruptRecordError | None, list[Any]]:
    """What else is given, and the error that ended it."""
    rest: list[Any] = []
    try:
        rest.extend(given)
    except rk.CorruptRecordError as error:
        return error, rest
    return None, rest


@pytest.mark.parametrize("way", ["plain", "ours", "foreign", "zlib"])
@pytest.mark.parametrize("give", [scanned, threads, windows, buffered, skipped])
@pytest.mark.parametrize("left", [0, 0.4])
def test_a_file_that_is_cut_under_a_reader_is_named_with_its_sizes(
    tmp_path: Path, way: str, give: Callable[[Path], Any], left: float
) -> None:
    path = tmp_path / "data.tfrecord"
    path.write_bytes(stored(FRAMES * 10, way, members_of=100))
    had = path.stat().st_size
    given = iter(give(path))
    first = next(given)

    os.truncate(path, int(had * left))
    error, rest = ended(given)

    if error is None:
        assert len([first, *rest]) == 10 * len(FRAMES)  # all was in memory already
    else:
        assert error.kind == "cut_short"
        assert str(path) in str(error)
        assert f"it had {had} bytes, and has {int(had * left)} now" in str(error)


@pytest.mark.parametrize("kept", [0, 1, 1000, 2999])
def test_a_file_that_is_cut_between_records_is_named(tmp_path: Path, kept: int) -> None:
    path = save(tmp_path / "a", ROWS)
    with path.open("rb") as file:
        reader = records.Reader(file, chunk_bytes=1000)
        reader.read()
        os.truncate(path, sum(map(len, FRAMES[:kept])))

        with pytest.raises(rk.CorruptRecordError, match=r"became shorter while it was read: it had .* bytes, and has"):
            list(reader)
        with pytest.raises(rk.CorruptRecordError) as again:
            reader.read()

    assert again.value.kind == "cut_short"
    assert str(pickle.loads(pickle.dumps(again.value))) == str(again.value)


def test_a_file_that_is_copied_over_is_named_though_every_record_is_sound(tmp_path: Path) -> None:
    path = save(tmp_path / "a", [b"old %05d" % number for number in range(9000)])
    time.sleep(TICK)
    with path.open("rb") as file:
        reader = records.Reader(file, chunk_bytes=5000)
        reader.read()

        save(path, [b"new %05d" % number for number in range(9000)])

        with pytest.raises(rk.CorruptRecordError, match="was written over while it was read\n  Read it again"):
            list(reader)


def test_a_file_that_grows_ends_where_it_did(tmp_path: Path) -> None:
    path = save(tmp_path / "a", ROWS)
    with path.open("rb") as file:
        reader = records.Reader(file)
        time.sleep(TICK)
        with path.open("ab") as more:
            more.write(FRAMES[0] * 5)

        assert sum(map(len, reader)) == len(ROWS) + 5


@pytest.mark.parametrize("look", ["count", "places"])
def test_an_index_is_not_made_of_what_a_cut_has_left(
    tmp_path: Path, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "a", ROWS)
    scan_headers = _core.scan_headers

    def cut_first(*arguments: Any) -> Any:
        os.truncate(path, sum(map(len, FRAMES[:500])))
        return scan_headers(*arguments)

    monkeypatch.setattr(_core, "scan_headers", cut_first)
    file = RecordFile(LocalFile(path))

    with pytest.raises(rk.CorruptRecordError, match=r"record 500 at byte .* became shorter"):
        getattr(file, look) if look == "count" else file.places()


class TestAnyPlace:
    def test_a_record_that_a_cut_has_taken_is_named(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a", ROWS)
        dataset = rk.open(path, raw=True)
        assert dataset[2999] == ROWS[2999]

        os.truncate(path, sum(map(len, FRAMES[:2000])))

        for lost in (2999, np.arange(2990, 3000), 2000):
            with pytest.raises(rk.CorruptRecordError, match="became shorter"):
                dataset[lost]
        assert dataset[5] == ROWS[5]

    def test_records_of_what_was_put_in_place_of_a_file_are_not_given_with_those_before(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a", ROWS)
        dataset = rk.open(path, raw=True)
        assert dataset[7] == ROWS[7]
        time.sleep(TICK)

        save(path, [b"other" * 20] * 5000)

        with pytest.raises(rk.RecordKitError):
            dataset[8]
        with pytest.raises(rk.RecordKitError):
            dataset[np.arange(100)]

    def test_a_copy_in_another_process_knows_how_large_the_file_was(self, tmp_path: Path) -> None:
        file = RecordFile(LocalFile(save(tmp_path / "a", ROWS)), None, OpenFiles(2))
        assert file.count == 3000
        copy = pickle.loads(pickle.dumps(file))
        os.truncate(tmp_path / "a", sum(map(len, FRAMES[:2000])))

        stream = copy.stream()
        assert len(stream.read(2000)) == 2000
        with pytest.raises(rk.CorruptRecordError, match="became shorter"):
            stream.read(1000)


def test_verify_finds_a_cut_between_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a", ROWS)
    read = records.Reader.read

    def cut_first(self: records.Reader, *arguments: Any) -> Any:
        os.truncate(path, sum(map(len, FRAMES[:2000])))
        return read(self, *arguments)

    monkeypatch.setattr(records.Reader, "read", cut_first)
    (report,) = rk.verify(path).files

    assert report.verdict == "damaged"
    assert [damage.kind for damage in report.damage] == ["cut_short"]


# --- The signal

FOREIGN = """
import faulthandler, mmap, os, sys, recordkit as rk
from recordkit import _core
path, other = sys.argv[1:3]
if "before" in sys.argv:
    faulthandler.enable()
pipe = rk.open(path, raw=True).shuffle(7).batch(10)
print(sum(len(batch) for batch in pipe), _core.mapped_bytes() > 0, flush=True)
if "after" in sys.argv:
    faulthandler.enable()
with open(other, "r+b") as file:
    view = mmap.mmap(file.fileno(), 0)
os.truncate(other, 0)
view[5000]
print("lives")
"""


@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_a_fault_that_is_not_ours_goes_to_the_handler_that_was_there(tmp_path: Path, when: str) -> None:
    (tmp_path / "other").write_bytes(b"x" * 20_000)

    done = run("-c", FOREIGN, str(save(tmp_path / "a", ROWS * 5)), str(tmp_path / "other"), when)

    assert done.stdout == "15000 True\n"
    assert done.returncode == -signal.SIGBUS
    assert ("Fatal Python error: Bus error" in done.stderr) is (when != "never")


FRAMEWORK = """
import faulthandler, importlib, os, signal, sys, threading, recordkit as rk
from recordkit import _core
path, framework, when = sys.argv[1:]

def others():
    importlib.import_module(framework)
    faulthandler.enable()
    signal.signal(signal.SIGBUS, lambda *_: None)

if when == "before":
    others()
pipe = rk.open(path, raw=True, workers=rk.Threads(3)).shuffle(7).batch(10)
assert sum(len(batch) for batch in pipe) == 15000 and _core.mapped_bytes() > 0
if when == "after":
    others()
mapped, batches, ended = _core.mapped_bytes(), iter(pipe), []
next(batches)
os.truncate(path, 300_000)

def rest():
    try:
        ended.append(sum(len(batch) for batch in pipe))
    except rk.CorruptRecordError as error:
        ended.append(error.kind)

running = [threading.Thread(target=rest) for _ in range(8)]
[thread.start() for thread in running]
[thread.join() for thread in running]
rest()
print(set(ended), _core.mapped_bytes() > mapped)
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize(("when", "maps"), [("before", True), ("after", False)])
def test_a_file_cut_under_maps_is_named_whatever_frameworks_do(
    tmp_path: Path, framework: str, when: str, maps: bool
) -> None:
    done = run("-c", FRAMEWORK, str(save(tmp_path / "a", ROWS * 5)), framework, when)

    assert (done.returncode, done.stdout) == (0, f"{{'cut_short'}} {maps}\n"), done.stderr


LOADER = """
import os, sys, recordkit as rk
from torch.utils.data import DataLoader
path, when, start = sys.argv[1:]
dataset = rk.open(path, raw=True)
if when == "mapped before":
    assert sum(len(batch) for batch in dataset.shuffle(7).batch(10)) == 15000
data = rk.torch.TorchIterableDataset(dataset.shuffle(7).batch(10))
loader = iter(DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context=start))
for _ in range(5):
    next(loader)
os.truncate(path, 300_000)
try:
    print(sum(1 for _ in loader))
except rk.CorruptRecordError as error:
    print(type(error).__name__, "became shorter" in str(error))
"""


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("when", ["mapped before", "mapped after"])
def test_a_file_cut_under_the_workers_of_a_loader_is_named(tmp_path: Path, when: str, start: str) -> None:
    script = tmp_path / "train.py"
    script.write_text("if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in LOADER.strip().split("\n")))

    done = run(str(script), str(save(tmp_path / "a", ROWS * 5)), when, start)

    assert (done.returncode, done.stdout) == (0, "CorruptRecordError True\n"), done.stderr
