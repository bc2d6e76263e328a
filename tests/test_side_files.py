"""Whatever is done to the files beside records, what comes back is right, or an error of ours says what is wrong.

Each case copies a dataset, changes one to three of its side files at random, and reads it in every way. The files are
changed by bytes, by size, by kind, by what their JSON says, and, for indexes, by numbers whose checksums are made right
again.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import socket
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import records
from recordkit.filesystems import _streams
from recordkit.storage.read import read_text_index, write_text_index
from tests import chance
from tests.limits import in_time
from tests.storage.indexes import parts_of, sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CASES = 200 if not chance.SOAKING else 400  # of each kind
# A call may take this long on a busy machine; with sanitizers, ten times as long.
SECONDS = 20 if not chance.SOAKING else 200
ROOM = 1 << 30  # threads take much of it, and touch little
ROWS = 1100  # more than a block of an index
FIRST = 1060  # rows of the first shard

STRANGE: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 255, 1 << 31, (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), 10**400, 0.5, -0.0,
    1e308, float("nan"), float("inf"), "", "..", "../x", "/etc/passwd", "a/b", "\0", "\ud800", "id", "int64",
    "x" * 5000, "0" * 32, [], {}, [[]], {"": {}}, {"id": 1},
]  # fmt: skip
NUMBERS = [
    0,
    1,
    2,
    3,
    15,
    16,
    17,
    1023,
    1024,
    1025,
    1 << 20,
    1 << 31,
    1 << 32,
    1 << 40,
    1 << 60,
    1 << 63,
    (1 << 64) - 1,
]


def row(number: int) -> dict[str, Any]:
    """What the record of this number holds, with what was added."""
    return {"id": number, "name": f"n{number}" * (number % 5), "score": number * 0.5}


@pytest.fixture(autouse=True, scope="module")
def nobody_waits() -> Iterator[None]:
    """Nobody writes into the pipes that are put in the place of files."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_streams, "WAIT_FOR_WRITER", 0.01)
        yield


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A folder with a dataset that has every side file, to be copied."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        bare = [{key: value for key, value in row(number).items() if key != "score"} for number in range(ROWS)]
        bad = [*bare, {"id": "none", "name": b"\xff", "more": np.arange(3)}]
        rk.write(root / "train", bad, {"id": "int64", "name": "string"}, records_per_shard=FIRST, on_error="skip")
        rk.add_fields(root / "train", {"score": np.arange(ROWS, dtype=np.float32) * np.float32(0.5)})
        rk.delete(root / "train", where="id == 3 or id == 1075")
        rk.write(root / "one.tfrecord", bare[:40])
        rk.write(root / "small.tfrecord.gz", bare[:40], compression="gzip")
        rk.add_fields(root / "one.tfrecord", {"score": np.arange(40, dtype=np.float32) * np.float32(0.5)})
        write_text_index(root / "one.tfrecord")
        cached(root)
        yield root


def cached(root: Path) -> Any:
    """The dataset of a lone file through a cache on the disk."""
    pipe = rk.open(root / "one.tfrecord").batch(7).cache(root / "cache")
    return [each for batch in pipe for each in (batch.rows() if isinstance(batch, rk.Batch) else [batch])]


# --- Ways to change files


def change_bytes(data: bytes, chance: random.Random) -> bytes:
    """Change some bytes, or the size."""
    some = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at, size = chance.randrange(len(some) + 1), chance.choice([1, 1, 2, 4, 16, len(some)])
        match chance.randrange(5):
            case 0 if some:
                some[min(at, len(some) - 1)] ^= 1 << chance.randrange(8)
            case 1:
                del some[at : at + size]
            case 2:
                some[at:at] = some[:size]
            case 3:
                some[at : at + size] = chance.randbytes(size)
            case 4:
                del some[at:]
    return bytes(some)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there are values in some JSON."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def change_json(value: Any, chance: random.Random) -> bytes:
    """Change some values, keys or lists of some JSON."""
    value = deepcopy(value)
    text = ""
    if chance.random() < 0.02:
        return b"[" * 100_000
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        some = list(places(value))
        if not some:
            break
        path, other = chance.choice(some), chance.choice(some)
        around, key = within(value, path[:-1]), path[-1]
        match chance.randrange(9):
            case 0 | 1 | 2:
                around[key] = deepcopy(chance.choice(STRANGE))
            case 3:
                del around[key]
            case 4 if isinstance(around, dict):
                around[chance.choice(["x", "format", "records", "id", ".."])] = around.pop(key)
            case 5:
                around[key] = deepcopy(within(value, other))
            case 6 if type(around[key]) is int:
                around[key] += chance.choice([-1, 1, 1024, -1000])
            case 7 if isinstance(around, list):
                around.append(deepcopy(around[key]))
            case 8 if isinstance(around, dict):
                text = f"{{{json.dumps(key)}: {json.dumps(around[key])}, "
            case _:
                for _ in range(chance.choice([3, 70])):
                    around[key] = [around[key]]
    written = json.dumps(value)
    return (text + written[1:] if text and written.startswith("{") else written).encode("utf-8", "surrogatepass")


def within(value: Any, path: tuple[Any, ...]) -> Any:
    """What is at a place."""
    for key in path:
        value = value[key]
    return value


def change_index(data: bytes, chance: random.Random) -> bytes:
    """Change numbers of an index, and make its checksums right again."""
    header, table, blocks = parts_of(data)
    count = len(table)
    for _ in range(chance.choice([1, 1, 2, 3])):
        number = chance.choice(NUMBERS)
        match chance.randrange(7):
            case 0:
                at = chance.choice([1, 3, 4, 8])
                header[at] = number % (1 << 32 if at == 1 else 1 << 64)
            case 1 if count:
                name = chance.choice(["start", "at", "least", "width"])
                table[name][chance.randrange(count)] = number % (1 << 32 if name == "width" else 1 << 64)
            case 2 if count:
                name = chance.choice(["start", "at", "least", "width"])
                table[name] = table[name][chance.randrange(count)]
            case 3 if blocks:
                blocks[chance.randrange(len(blocks))] ^= 1 << chance.randrange(8)
            case 4 if len(blocks) > 2:  # the sum stays
                one, other, more = chance.randrange(len(blocks)), chance.randrange(len(blocks)), chance.randrange(1, 20)
                blocks[one], blocks[other] = (blocks[one] + more) % 256, (blocks[other] - more) % 256
            case 5 if len(blocks) > 2:
                one, other = sorted((chance.randrange(len(blocks)), chance.randrange(len(blocks))))
                blocks[one:other] = reversed(blocks[one:other])
            case 6:
                blocks = bytearray(change_bytes(bytes(blocks), chance))
    return sealed(header, table, bytes(blocks))


def change_kind(path: Path, chance: random.Random) -> None:
    """Put something else in place of a file."""
    data = path.read_bytes()
    path.unlink()
    match chance.randrange(10):
        case 0:
            path.mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            with socket.socket(socket.AF_UNIX) as listening:
                before = Path.cwd()
                os.chdir(path.parent)
                try:
                    listening.bind(path.name)
                finally:
                    os.chdir(before)
        case 3:
            path.symlink_to("/dev/zero")
        case 4:
            path.symlink_to(path.name)
        case 5:
            path.symlink_to("nowhere")
        case 6:
            path.touch()
        case 7:
            path.write_bytes(data)
            os.truncate(path, 100 << 20)
        case 8:
            path.touch()
            # Records are looked for in every byte.
            os.truncate(path, 10 << 20 if path.suffix in {".tfrecord", ".gz"} else 1 << 40)
        case 9:
            path.symlink_to("/etc/passwd")


def change(path: Path, chance: random.Random) -> None:
    """Change a side file in a way that suits it."""
    if chance.random() < 0.2:
        change_kind(path, chance)
        return
    data = path.read_bytes()
    if chance.random() < 0.25:
        path.write_bytes(change_bytes(data, chance))
    elif path.suffix == ".rki":
        path.write_bytes(change_index(data, chance))
    elif path.suffix == ".json":
        path.write_bytes(change_json(json.loads(data), chance))
    elif path.suffix == ".jsonl":
        path.write_bytes(b"".join(change_json(json.loads(line), chance) + b"\n" for line in data.splitlines()))
    elif path.suffix == ".tfrecord" and "cache" in path.name:
        path.write_bytes(change_cache(data, chance))
    elif path.suffix == ".tfrecord":
        path.write_bytes(change_payloads(data, chance))
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(change_payloads(gzip.decompress(data), chance), 1))
    else:
        path.write_bytes(change_bytes(data, chance))


def payloads_of(data: bytes) -> list[bytes]:
    """What is in a file of records."""
    edges = [*records.scan(data).tolist(), len(data)]
    return [data[start + 12 : end - 4] for start, end in pairwise(edges)]


def change_payloads(data: bytes, chance: random.Random) -> bytes:
    """Change what some records hold, how many they are or their order; their checksums are right."""
    payloads = payloads_of(data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at, other = chance.randrange(len(payloads)), chance.randrange(len(payloads))
        match chance.randrange(6):
            case 0 if len(payloads) > 1:
                del payloads[at]
            case 1:
                payloads.insert(at, payloads[other])
            case 2:
                payloads[at] += payloads[other]
            case _:
                payloads[at] = change_bytes(payloads[at], chance)
    return b"".join(map(records.pack, payloads))


def change_cache(data: bytes, chance: random.Random) -> bytes:
    """Change what records of a cache say, and make their checksums right again."""
    payloads = payloads_of(data)
    at = chance.randrange(len(payloads))
    payload = payloads[at]
    size = int.from_bytes(payload[:4], "little")
    if chance.random() < 0.7:
        text = change_json(json.loads(payload[4 : 4 + size]), chance)
        start, old = -(-(4 + len(text)) // 64) * 64, -(-(4 + size) // 64) * 64
        payloads[at] = (len(text).to_bytes(4, "little") + text).ljust(start, b"\0") + payload[old:]
    else:
        payloads[at] = change_bytes(payload, chance)
    return b"".join(map(records.pack, payloads))


# --- Ways to read


def check_row(found: dict[str, Any], known: dict[str, Any]) -> None:
    """Raise if a value is under a name that has another one."""
    for name, value in found.items():
        if name in known and value is not None:
            right = known[name]
            if isinstance(value, bytes):
                right = right.encode()
            assert value == right, (name, value, right)


def check_rows(found: list[dict[str, Any]], *, once: bool = True) -> None:
    """Raise if rows are not those that were written, or one is there twice."""
    for each in found:
        if each.get("id") is not None:
            check_row(each, row(int(each["id"])))
    if once:
        numbers = Counter(int(each["id"]) for each in found if each.get("id") is not None)
        assert not numbers or max(numbers.values()) == 1


def look(path: Path, drawn: random.Random) -> None:
    """Read a dataset in every way, and compare them."""
    dataset = rk.open(path, overlays=drawn.random() < 0.5)
    count = len(dataset)
    numbers = sorted({0, count - 1, count // 2, *(drawn.randrange(count) for _ in range(5))}) if count else []
    single = [tried(partial(dataset.__getitem__, number)) for number in numbers]
    ordered = [each for batch in dataset.batch(300) for each in batch.rows()]
    assert len(ordered) == count
    check_rows(ordered)
    assert [each for each in single if each is not None and each not in ordered] == []
    for number, each in zip(numbers, single, strict=False):
        assert each is None or each == ordered[number]
    picked = dataset[numbers].rows() if numbers else []
    assert [*picked] == [ordered[number] for number in numbers]
    shuffled = list(dataset.shuffle(drawn.randrange(100)).batch(200))
    mixed = [each for batch in shuffled for each in batch.rows()]
    assert sorted(map(repr, mixed)) == sorted(map(repr, ordered))
    assert [each for batch in dataset.skip(count // 2).batch(300) for each in batch.rows()] == ordered[count // 2 :]


def tried(call: Callable[[], Any]) -> Any:
    """What a call gives, None where it raises an error of ours."""
    try:
        return call()
    except rk.RecordKitError:
        return None


def whole(root: Path, drawn: random.Random) -> None:
    """Read and verify the dataset with two shards."""
    try:
        look(root / "train", drawn)
    finally:
        tried(lambda: rk.verify(root / "train"))


def lone(root: Path, drawn: random.Random) -> None:
    """Read and verify lone files, with all that is beside them."""
    for name in ("small.tfrecord.gz", "one.tfrecord"):
        try:
            look(root / name, drawn)
        finally:
            tried(lambda name=name: rk.verify(root / name))  # type: ignore[misc]


def strangers(root: Path, drawn: random.Random) -> None:
    """Read and verify records that others have changed; they may hold anything."""
    for name in ("train", "one.tfrecord", "small.tfrecord.gz"):
        for read in STRANGERS:
            tried(partial(read, root / name, {"overlays": drawn.random() < 0.5, "on_error": drawn.choice(ON_ERROR)}))


ON_ERROR = ["raise", "skip"]
STRANGERS: list[Callable[[Path, dict[str, Any]], object]] = [
    lambda path, how: len(rk.open(path, **how)),
    lambda path, how: rk.open(path, **how)[-2:],
    lambda path, how: list(rk.open(path, **how).batch(100)),
    lambda path, how: list(rk.open(path, **how).shuffle(1).batch(7)),
    lambda path, how: list(rk.open(path, schema={"id": "int64"}, **how)),
    lambda path, how: list(rk.open(path, raw=True, **how)),
    lambda path, _: rk.verify(path, check="examples"),
    lambda path, _: rk.stats(path),
]


def text(root: Path, _: random.Random) -> None:
    """Read a text index."""
    starts, sizes = read_text_index(root / "one.tfrecord", root / "one.tfrecord.idx")
    data = (root / "one.tfrecord").read_bytes()
    assert starts.tolist() == records.scan(data).tolist()
    assert int(sizes.sum()) == len(data)


def state(root: Path, drawn: random.Random) -> None:
    """Go on from a state that was changed."""
    pipe = rk.open(root / "one.tfrecord").shuffle(3).batch(4)
    iterator = iter(pipe)
    for _ in range(3):
        next(iterator)
    try:
        changed = json.loads(change_json(iterator.state_dict(), drawn))
    except (ValueError, RecursionError):  # which the user's own reading says
        return
    for batch in pipe.resume(changed):
        check_rows(list(batch.rows()))


# What is changed, and how it is read.
READERS: dict[str, tuple[str, Callable[[Path, random.Random], object]]] = {
    "folder": ("train/_recordkit/**/*.*", whole),
    "manifest": ("train/_recordkit/manifest.json", whole),
    "overlay": ("train/_recordkit/overlays/**/*.*", whole),
    "index": ("train/_recordkit/*.rki", whole),
    "records": ("**/[tos]*.tfrecord*", strangers),
    "lone": ("_recordkit/**/*.*", lone),
    # What was made earlier is data itself: it may be other data, made by whoever changed it.
    "cache": ("cache/**/*.*", lambda root, _: list(cached(root))),
    "quarantine": ("train/_recordkit/quarantine/*", lambda root, _: list(rk.quarantined(root / "train"))),
    "text index": ("*.idx", text),
    "state": ("none", state),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=CASES)
@example(seed=3320)  # a name that no file can have
@example(seed=5938)
@given(seed=st.integers(0, (1 << 64) - 1))
def test_whatever_is_beside_records_they_are_right_or_refused(name: str, seed: int, made: Path, room_for: Any) -> None:
    pattern, read = READERS[name]
    drawn = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), room_for(ROOM):
        warnings.simplefilter("ignore")
        root = Path(folder, "copy")
        shutil.copytree(made, root)
        files = sorted(path for path in root.glob(pattern) if path.is_file())
        for path in drawn.sample(files, min(len(files), drawn.choice([1, 1, 1, 2, 3]))):
            change(path, drawn)
        with suppress(rk.RecordKitError), in_time(SECONDS):
            read(root, drawn)
