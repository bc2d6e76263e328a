"""Cuts: files that are cut or written over at a random moment, under every reader; a program, for a cut may kill it.

    python -m tests.storage.cuts SEED ROUNDS HANDLER

prints, as JSON, how often all was right (all of the file as it was, or of what was put in its place), how often an
error of recordkit named it, how many bytes were taken from maps, and what else came of it: which is to be nothing.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import recordkit as rk
from recordkit import _core, records
from recordkit.filesystems import LocalFile
from recordkit.storage.read import RecordFile
from tests.dataset.files import stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANDLERS = ("none", "faulthandler before", "faulthandler after", "user before", "user after")
SCHEMA = rk.Schema({"id": "int64", "tag": "int64", "body": "bytes"})
COUNT = 8_000
_BODY = 400


@cache
def frames(tag: int, longer: int = 0) -> list[bytes]:
    """The records of a file; of another tag they are others, of the same sizes unless they are longer."""
    rows = [
        {"id": number, "tag": tag, "body": bytes([number % 251]) * (_BODY + number % 97 + longer)}
        for number in range(COUNT)
    ]
    return [records.pack(payload) for payload in SCHEMA.encode_rows(rows)]


@cache
def content(tag: int, way: str, longer: int = 0) -> bytes:
    """The bytes of a file of them."""
    return stored(frames(tag, longer), way, members_of=500)


# --- Readers: each gives the number of every record that it was given, and sees to it that it is the right one


_TAGS: set[int] = set()  # of the records that a reader was given


def _checked(batch: Any) -> list[int]:
    _TAGS.update(np.asarray(batch["tag"]).tolist())
    numbers: list[int] = np.asarray(batch["id"]).tolist()
    return numbers


def batches(path: Path, size: int = 256, workers: int = 1, **options: Any) -> Iterator[int]:
    """In order, all fields."""
    for batch in rk.open(path, workers=rk.Threads(workers), **options).batch(size):
        yield from _checked(batch)


def few_fields(path: Path) -> Iterator[int]:
    """In order, one thread, two fields."""
    for batch in rk.open(path, workers=rk.Threads(1)).select("id", "tag").batch(256):
        yield from _checked(batch)


def payloads(path: Path) -> Iterator[int]:
    """In order, as bytes."""
    for some in rk.open(path, raw=True, workers=rk.Threads(2)).batch(500):
        yield from _checked(SCHEMA.decode(records.pack_many(some)))


def reader(path: Path) -> Iterator[int]:
    """The reader of records."""
    with path.open("rb") as file:
        first = records.Reader(file)
        _BEGUN.set()
        for chunk in first:
            yield from _checked(SCHEMA.decode(chunk))
            time.sleep(0.0005)


def shuffled(path: Path, **options: Any) -> Iterator[int]:
    """In random order."""
    for batch in rk.open(path, workers=rk.Threads(2)).shuffle(7, **options).batch(100):
        yield from _checked(batch)


def one_by_one(path: Path) -> Iterator[int]:
    """`ds[i]`, some of them; then the numbers of all."""
    dataset = rk.open(path)
    chance = random.Random(1)
    for _ in range(300):
        number = chance.randrange(len(dataset))
        row = dataset[number]
        _TAGS.add(int(row["tag"]))
        assert int(row["id"]) == number, "another record"
    yield from range(len(dataset))


def some(path: Path) -> Iterator[int]:
    """`ds[[…]]`, all of them."""
    dataset = rk.open(path)
    order = np.random.default_rng(2).permutation(len(dataset))
    for at in range(0, len(order), 64):
        yield from _checked(dataset[order[at : at + 64]])


def counted(path: Path) -> Iterator[int]:
    """How many there are."""
    yield from range(RecordFile(LocalFile(path)).count)


def indexed(path: Path) -> Iterator[int]:
    """Where they are."""
    yield from range(len(RecordFile(LocalFile(path)).places()[0]))


def verified(path: Path) -> Iterator[int]:
    """Verify: what it finds is as good as an error."""
    report = rk.verify(path)
    if not report.ok:
        message = "verify has found it"
        raise rk.CorruptRecordError(message)
    yield from range(sum(file.records for file in report.files))


def skipping(path: Path) -> Iterator[int]:
    """Passing over damage: told damage is as good as an error."""
    told: list[Any] = []
    for batch in rk.open(path, on_error=told.append).batch(256):
        yield from _checked(batch)
    if told:
        message = "damage was told"
        raise rk.CorruptRecordError(message)


READERS: dict[str, Callable[[Path], Iterator[int]]] = {
    "batches": batches,
    "threads": lambda path: batches(path, 50, 3),
    "few fields": few_fields,
    "payloads": payloads,
    "reader": reader,
    "permuted": shuffled,
    "windows": lambda path: shuffled(path, window="1MB"),
    "buffer": lambda path: shuffled(path, buffer=500),
    "one by one": one_by_one,
    "some": some,
    "counted": counted,
    "indexed": indexed,
    "verified": verified,
    "skipping": skipping,
}
WAYS = ("plain", "plain", "ours", "foreign", "zlib")
# Records of the same sizes in place of others can be told only by looking at them again: see docs/guide/corruption.md
IN_ORDER = ("batches", "threads", "few fields", "reader", "skipping")


# --- Cuts

_BEGUN = threading.Event()  # a file was opened: what it is from now on is known


def note_openings() -> None:
    """Have the event be set when a file is first opened."""
    opened = LocalFile._opened

    def noted(self: LocalFile) -> int:
        descriptor = opened(self)
        _BEGUN.set()
        return descriptor

    LocalFile._opened = noted  # type: ignore[method-assign]


def cut(path: Path, how: str, chance: random.Random, way: str) -> None:
    """Do to the file what happens to files."""
    size = path.stat().st_size
    if how == "empty":
        os.truncate(path, 0)
    elif how == "anywhere":
        os.truncate(path, chance.randrange(size))
    elif how == "page":
        os.truncate(path, chance.randrange(size) // 4096 * 4096)
    elif how == "between":
        kept = frames(1)[: chance.randrange(COUNT)]
        os.truncate(path, min(sum(map(len, kept)), size - 1))
    else:
        other = content(2, way, 0 if how == "same sizes" else 5)
        path.write_bytes(other[: chance.randrange(len(other))] if how == "shorter" else other)


HOW = ("empty", "empty", "anywhere", "page", "between", "shorter", "longer", "same sizes")


def round_of(chance: random.Random, folder: Path, outcomes: Counter[str]) -> None:
    """Cut one file under one reader, and note what comes of it."""
    name, way, how = chance.choice(list(READERS)), chance.choice(WAYS), chance.choice(HOW)
    if how == "same sizes" and (way != "plain" or name not in IN_ORDER):
        how = "shorter"
    path = folder / f"{chance.getrandbits(60):x}.tfrecord"
    if name == "reader":
        way = "plain"
    path.write_bytes(content(1, way))
    _BEGUN.clear()
    _TAGS.clear()
    wait, inside = chance.uniform(0, 0.06), chance.random() < 0.5
    at = chance.randrange(COUNT)

    def beside() -> None:
        _BEGUN.wait()
        time.sleep(wait)
        cut(path, how, chance, way)

    thread = threading.Thread(target=beside)
    given: list[int] = []
    try:
        found = READERS[name](path)
        if not inside:
            thread.start()
        for number in found:
            given.append(number)
            if inside and len(given) == at:
                cut(path, how, chance, way)
        right = given == list(range(COUNT)) if name in IN_ORDER else sorted(given) == list(range(COUNT))
        outcome = "right" if right else f"SILENT: {len(given)} records"
        if len(_TAGS) > 1:
            outcome = "MIXED"
    except rk.RecordKitError:
        outcome = "named"
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
    finally:
        _BEGUN.set()
        if thread.ident is not None:
            thread.join()
        path.unlink()
    outcomes[
        outcome
        if outcome in ("right", "named")
        else f"{name}, {way}, {how}, {'inside' if inside else 'beside'}: {outcome}"
    ] += 1


def install(handler: str) -> None:
    """Take the signal, as others do."""
    if handler == "faulthandler":
        faulthandler.enable()
    elif handler == "user":
        signal.signal(signal.SIGBUS, lambda *_: None)
    elif handler in ("torch", "jax"):
        __import__(handler)
        faulthandler.enable()


def main(seed: str, rounds: int, handler: str) -> dict[str, Any]:
    """Return what came of so many cuts."""
    chance, outcomes = random.Random(seed), Counter[str]()
    note_openings()
    who, _, when = handler.partition(" ")
    if when == "before":
        install(who)
    with tempfile.TemporaryDirectory() as name:
        for number in range(rounds):
            if when == "after" and number == rounds // 2:
                install(who)
            round_of(chance, Path(name), outcomes)
    return {"outcomes": dict(outcomes), "mapped": _core.mapped_bytes()}


if __name__ == "__main__":
    faulthandler.dump_traceback_later(540, exit=True)
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
