"""Staging folders that were made to do harm: whoever reads changes nothing, and whoever writes nothing outside.

Each is planted beside a dataset of ours, in a folder beside which is a home folder. All of them want something changed
there, or a file from there, or something removed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import recordkit as rk
from recordkit import _core, tf
from recordkit.cli import main
from recordkit.storage.format import manifest_of
from recordkit.storage.staging import _journal, _parts
from recordkit.viewer._dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PART = "part-00000-of-00001"
DATA = f"{PART}/data"
SHARD = f"{DATA}/shard-00000.tfrecord"
FOLDERS = ("folder", "swapping", "append", "new")
FILES = ("file", "first file", "extend", "extend from 0")


class World(NamedTuple):
    """A folder with datasets, and another with what is a user's own."""

    data: Path
    home: Path

    def target(self, kind: str) -> Path:
        """What a run of this kind publishes."""
        return self.data / {"new": "new", "first file": "new.tfrecord"}.get(
            kind, "train" if kind in FOLDERS else "one.tfrecord"
        )

    def staging(self, kind: str) -> Path:
        """Where it does so."""
        target = self.target(kind)
        return target.with_name(f".{target.name}.recordkit")


def snapshot(folder: Path) -> dict[str, Any]:
    """Names, bytes, permissions, times of files, and where links lead."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        content: object = "folder"
        if path.is_symlink():
            content = os.readlink(path)  # noqa: PTH115 - as text
        elif path.is_file():
            content = path.read_bytes(), facts.st_mtime_ns
        found[str(path.relative_to(folder))] = facts.st_mode, facts.st_uid, content
    return found


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two datasets, one of them with a field beside it, and a home folder."""
    root = tmp_path_factory.mktemp("original")
    rk.write(root / "data/train", {"id": [1, 2, 3, 4]}, records_per_shard=2)
    rk.add_fields(root / "data/train", {"more": [1, 2, 3, 4]})
    rk.write(root / "data/one.tfrecord", {"id": [1, 2]})
    rk.write(root / "more.tfrecord", {"id": [3, 4]})
    (root / "home/folder").mkdir(parents=True)
    (root / "home/.bashrc").write_text("export PATH\n")
    (root / "home/secret").write_bytes((root / "more.tfrecord").read_bytes())
    (root / "home/folder/notes").write_text("notes\n")
    return root


def plant(world: World, kind: str, *, bound: bool = True, goal: str = "", source: str = "", **more: Any) -> None:
    """Leave a run that was publishing something, with another name in it."""
    target, staging = world.target(kind), world.staging(kind)
    data = staging / DATA
    data.mkdir(parents=True)
    for name in ("shard-00000.tfrecord", "evil"):
        shutil.copy(world.home / "secret", data / name)
    (data / "shard-00000.rki").write_bytes(b"index")
    (staging / "evil").write_bytes(b"evil")
    real = kind if kind in ("append", "extend", "file") else "extend" if "extend" in kind else "file"
    real = real if kind not in ("folder", "swapping", "new") else "folder"
    lone = real in ("extend", "file")
    name = target.name if lone else "train-append1-00000-of-00001.tfrecord"
    root = "" if lone else "final/" if real == "folder" else f"{target.name}/"
    dot = f"{target.name}." if lone else ""
    manifest = manifest_of(target, lone=False) if not lone else manifest_of(world.data / "one.tfrecord", lone=True)
    staged = manifest.read_bytes() if manifest.exists() else b'{"format": 2}'
    (staging / "manifest.json").write_bytes(staged + b" ")
    moves = [
        [source or SHARD, goal or f"{root}{name}"],
        [f"{DATA}/shard-00000.rki" if real != "extend" else f"{DATA}/whole.rki", f"{root}_recordkit/{name}.rki"],
        ["manifest.json", f"{root}_recordkit/{dot}manifest.json"],
    ]
    value: dict[str, Any] = {
        "kind": real,
        "moves": moves,
        "manifest": f"{_core.crc32c(staged + b' '):08x}",
        "overwrite": kind not in ("new", "first file"),
        "swapping": kind == "swapping",
    }
    if bound:
        old = None
        if real == "extend":
            size = 0 if kind == "extend from 0" else target.stat().st_size
            old = vars(_journal.file_facts(target, size))
        elif real == "file":
            old = vars(_journal.sampled_facts(target)) if target.exists() else None
        elif facts := _journal.folder_facts(target):
            old = vars(facts)
        new = vars(_journal.file_facts(data / "shard-00000.tfrecord", os.path.getsize(data / "shard-00000.tfrecord")))  # noqa: PTH202
        value |= {"format": 2, "old": old, "new": new if lone else None}
    else:
        value["old_size"] = 0 if kind == "extend from 0" else 34
    (staging / "publish.json").write_text(json.dumps(value | more))
    run = {"kind": "folder", "name": "train", "overwrite": True, "metadata": {}, "schema": None}
    (staging / PART / "run.json").write_text(json.dumps(run))


# --- The list

GOALS = {
    "up": "../home/.bashrc",
    "up from within": "train/../../home/.bashrc",
    "up from final": "final/../../../home/.bashrc",
    "up from a side folder": "_recordkit/../../home/.bashrc",
    "absolute": "{home}/.bashrc",
    "another dataset": "other.tfrecord",
    "a file of the folder's own": "train/_recordkit/manifest.json",
    "hidden": ".bashrc",
    "nothing": "",
    "a shard that is there": "train/train-00000-of-00002.tfrecord",
}
SOURCES = {
    "up": "../../home/secret",
    "up from within": f"{DATA}/../../../../home/secret",
    "absolute": "{home}/secret",
    "another file": f"{DATA}/evil",
    "the journal": "publish.json",
    "a file beside": "../one.tfrecord",
}


def named(**names: str) -> Callable[[World, str, bool], None]:
    """What plants a journal with a name in it."""

    def make(world: World, kind: str, bound: bool) -> None:
        plant(world, kind, bound=bound)
        path = world.staging(kind) / "publish.json"
        value = json.loads(path.read_text())
        place = 1 if "goal" in names else 0
        for number, move in enumerate(value["moves"]):
            if number == (len(value["moves"]) - 1 if names.get("last") else 0):
                move[place] = names.get("goal", names.get("source", "")).format(home=world.home)
        path.write_text(json.dumps(value))

    return make


def linked(where: str, to: str) -> Callable[[World, str, bool], None]:
    """What plants a sound journal, and a link to something of the user's."""

    def make(world: World, kind: str, bound: bool) -> None:
        plant(world, kind, bound=bound)
        staging = world.staging(kind)
        path = staging / where.format(index="whole" if kind == "extend" else "shard-00000")
        place = world.home / to
        if path.is_dir() and not path.is_symlink():
            if place.is_dir():
                shutil.copytree(path, place, dirs_exist_ok=True)
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(place)

    return make


def without_records(world: World, kind: str, bound: bool) -> None:
    """Plant a journal with no moves, or only that of the manifest."""
    plant(world, kind, bound=bound)
    path = world.staging(kind) / "publish.json"
    value = json.loads(path.read_text())
    value["moves"] = value["moves"][-1:] if bound else []
    path.write_text(json.dumps({"format": 2, "old": None, "new": None} | value))


LINKS = {
    "staging": linked("", "folder"),
    "journal": linked("publish.json", "secret"),
    "part": linked(PART, "folder"),
    "folder of shards": linked(DATA, "folder"),
    "shard": linked(SHARD, "secret"),
    "index": linked(f"{DATA}/{{index}}.rki", "secret"),
    "manifest": linked("manifest.json", "secret"),
    "final": linked("final", "folder"),
    "lock": linked("lock", ".bashrc"),
    "lock of a part": linked(f"{PART}/lock", ".bashrc"),
    "run": linked(f"{PART}/run.json", ".bashrc"),
}
CASES: dict[str, tuple[Callable[[World, str, bool], None], str, bool]] = {}
for (word, name), kind, bound in product(GOALS.items(), (*FOLDERS, *FILES), (True, False)):
    if not bound and word not in ("up", "absolute"):
        continue
    CASES[f"{kind}, {'bound' if bound else 'unbound'}, to: {word}"] = named(goal=name), kind, bound
for (word, name), kind, bound in product(SOURCES.items(), ("folder", "append", "file", "extend"), (True, False)):
    if not bound and word not in ("up", "absolute"):
        continue
    CASES[f"{kind}, {'bound' if bound else 'unbound'}, from: {word}"] = named(source=name), kind, bound
for kind in ("folder", "append", "file", "extend"):
    CASES[f"{kind}, manifest to: up"] = named(goal="../home/.bashrc", last="yes"), kind, True
    CASES[f"{kind}, manifest from: up"] = named(source="../home/.bashrc", last="yes"), kind, True
for kind, bound in product(("file", "extend"), (True, False)):
    CASES[f"{kind}, {'only a manifest' if bound else 'no moves'}"] = without_records, kind, bound
for (word, make), kind in product(LINKS.items(), ("folder", "append", "file", "extend")):
    CASES[f"{kind}, a link: {word}"] = make, kind, True


# --- Who reads, and who writes


def command(*words: str) -> Callable[[World], None]:
    """What calls the command."""

    def call(world: World) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main([word.format(data=world.data, out=world.data.parent / "out.tfrecord") for word in words])

    return call


def look(where: Callable[[World], Any]) -> Callable[[World], None]:
    """What opens something, and reads it."""

    def call(world: World) -> None:
        for _ in rk.open(where(world)):
            pass

    return call


READERS: dict[str, Callable[[World], Any]] = {
    "open a folder": look(lambda world: world.data / "train"),
    "open a file": look(lambda world: world.data / "one.tfrecord"),
    "open a folder of files": look(lambda world: world.data),
    "open what is not there": look(lambda world: world.data / "new"),
    "open a file that is not there": look(lambda world: world.data / "new.tfrecord"),
    "glob shards": look(lambda world: str(world.data / "train/*.tfrecord")),
    "glob files": look(lambda world: str(world.data / "*.tfrecord")),
    "glob all": look(lambda world: str(world.data / "*")),
    "open a list": look(lambda world: [world.data / "one.tfrecord", world.data / "train"]),
    "verify": lambda world: [rk.verify(world.data / name) for name in ("train", "one.tfrecord")],
    "stats": lambda world: rk.stats(world.data / "train"),
    "diff": lambda world: rk.diff(world.data / "train", world.data / "one.tfrecord"),
    "quarantined": lambda world: list(rk.quarantined(world.data / "train")),
    "page": lambda world: DatasetView(world.data / "train"),
    "tf": lambda world: list(tf.data.TFRecordDataset([str(world.data / "one.tfrecord")])),
    "info": command("info", "{data}/train"),
    "count": command("count", "{data}/one.tfrecord"),
    "head": command("head", "{data}/train"),
    "cat": command("cat", "{data}/one.tfrecord"),
}
ROW = [{"id": 9}]


def append(world: World, name: str, **options: Any) -> None:
    with rk.append(world.data / name, **options) as writer:
        writer.write({"id": 9})


def write(world: World, name: str, **options: Any) -> None:
    rk.write(world.data / name, ROW, **options)


# Each with the target that it may change.
WRITERS: dict[str, tuple[str, Callable[[World], Any]]] = {
    "overwrite a folder": ("train", lambda world: write(world, "train", overwrite=True)),
    "overwrite a file": ("one.tfrecord", lambda world: write(world, "one.tfrecord", overwrite=True)),
    "create a folder": ("new", lambda world: write(world, "new")),
    "create a file": ("new.tfrecord", lambda world: write(world, "new.tfrecord")),
    "resume a folder": ("train", lambda world: write(world, "train", overwrite=True, resume=True)),
    "resume a file": ("one.tfrecord", lambda world: write(world, "one.tfrecord", overwrite=True, resume=True)),
    "append to a folder": ("train", lambda world: append(world, "train")),
    "append to a file": ("one.tfrecord", lambda world: append(world, "one.tfrecord")),
    "append on to a folder": ("train", lambda world: append(world, "train", resume=True)),
    "append on to a file": ("one.tfrecord", lambda world: append(world, "one.tfrecord", resume=True)),
    "commit": ("train", lambda world: rk.commit(world.data / "train")),
    "recover a folder": ("train", lambda world: rk.recover(world.data / "train")),
    "recover a file": ("one.tfrecord", lambda world: rk.recover(world.data / "one.tfrecord")),
    "discard a folder": ("train", lambda world: rk.discard(world.data / "train")),
    "discard a file": ("one.tfrecord", lambda world: rk.discard(world.data / "one.tfrecord")),
    "add": ("train", lambda world: rk.add_fields(world.data / "train", {"other": [1, 2, 3, 4]})),
    "delete": ("train", lambda world: rk.delete(world.data / "train", where="id == 1")),
    "drop": ("train", lambda world: rk.drop_fields(world.data / "train", ["more"])),
    "bake over it": ("train", lambda world: rk.bake(world.data / "one.tfrecord", world.data / "train", overwrite=True)),
}
# They finish or take back what a run has left, and so refuse what they should not obey.
OBEYING = [writer for writer in WRITERS if not writer.startswith(("discard", "add", "delete", "drop"))]


# Links in the dataset itself, which lead to the user's own.
BESIDE = {
    "side folder": "train/_recordkit",
    "overlays": "train/_recordkit/overlays",
    "an overlay": "train/_recordkit/overlays/0001-more",
    "quarantine": "train/_recordkit/quarantine",
    "manifest": "train/_recordkit/manifest.json",
    "index": "train/_recordkit/train-00001-of-00002.tfrecord.rki",
    "shard": "train/train-00001-of-00002.tfrecord",
    "side folder of files": "_recordkit",
    "manifest of a file": "_recordkit/one.tfrecord.manifest.json",
    "index of a file": "_recordkit/one.tfrecord.rki",
    "lock": "train/_recordkit/lock",
    "lock of files": "_recordkit/lock",
    "staging of an overlay": "train/_recordkit/overlays/.0002-other.recordkit",
}


def belongs(path: str, target: str) -> bool:
    """Whether a path in the data folder is one that a writer of this target may change."""
    top, _, rest = path.removeprefix("data/").partition("/")
    return (
        top in (target, f".{target}.recordkit", f".{target}.recordkit.old")
        or (top == "_recordkit" and (not rest or target in rest))
        or path == "data"
    )


def changes(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """What has come, gone or become another thing."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def worlds(name: str, original: Path, folder: Path) -> Iterator[tuple[str, str, World]]:
    """One world after the other in which the staging folder of this name is planted."""
    make, kind, bound = CASES[name]
    for number in range(1_000):
        root = folder / str(number)
        shutil.copytree(original, root)
        world = World(root / "data", root / "home")
        make(world, kind, bound)
        yield name, kind, world
        shutil.rmtree(root)


def test_there_are_enough() -> None:
    assert len(CASES) >= 150


@pytest.mark.parametrize("name", CASES)
def test_reading_changes_nothing_and_is_refused_by_name(name: str, original: Path, tmp_path: Path) -> None:
    _, kind, world = next(worlds(name, original, tmp_path))
    before = snapshot(world.data.parent)

    for read in READERS.values():
        with contextlib.suppress(rk.RecordKitError):
            read(world)
    with pytest.raises(rk.StorageError, match=r"\.recordkit"):
        rk.open(world.target(kind))

    assert snapshot(world.data.parent) == before


def write_and_look(name: str, writers: list[str], original: Path, folder: Path) -> None:
    for writer, (_, kind, world) in zip(writers, worlds(name, original, folder), strict=False):
        target = WRITERS[writer][0]
        before = snapshot(world.data.parent)
        refused = False
        try:
            WRITERS[writer][1](world)
        except (rk.RecordKitError, ValueError) as error:
            refused = isinstance(error, rk.StorageError)

        found = changes(before, snapshot(world.data.parent))
        assert {path for path in found if not belongs(path, target)} == set(), writer
        if target == world.target(kind).name and writer in OBEYING:
            assert refused, writer
            assert {path for path in found if not path.startswith("data/.")} == set(), writer


@pytest.mark.parametrize("name", CASES)
def test_writing_changes_nothing_outside(name: str, original: Path, tmp_path: Path) -> None:
    """Some ways of writing to each; the next test tries all."""
    own = World(tmp_path, tmp_path).target(CASES[name][1]).name
    obeying = [writer for writer in OBEYING if WRITERS[writer][0] == own]
    start = list(CASES).index(name)
    chosen = [obeying[start % len(obeying)], list(WRITERS)[start % len(WRITERS)]]

    write_and_look(name, chosen, original, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_writing_in_any_way_changes_nothing_outside(name: str, original: Path, tmp_path: Path) -> None:
    write_and_look(name, list(WRITERS), original, tmp_path)


@pytest.mark.parametrize("link", BESIDE)
def test_nothing_is_written_through_links_in_a_dataset(link: str, original: Path, tmp_path: Path) -> None:
    writers = {
        **WRITERS,
        "skip a row": ("one.tfrecord", lambda world: write(world, "one.tfrecord", overwrite=True, on_error="skip")),
        "index": ("one.tfrecord", lambda world: rk.index(world.data / "one.tfrecord")),
        "repair": ("mended.tfrecord", lambda world: rk.repair(world.data / "torn", world.data / "mended.tfrecord")),
    }
    for number, (target, call) in enumerate(writers.values()):
        root = tmp_path / str(number)
        shutil.copytree(original, root)
        world = World(root / "data", root / "home")
        (world.data / "torn").write_bytes((world.data / "one.tfrecord").read_bytes()[:-1])
        path = world.data / BESIDE[link]
        path.parent.mkdir(parents=True, exist_ok=True)
        place = world.home / ("secret" if path.is_file() else "folder")
        if place.name == "folder" and path.exists():
            shutil.copytree(path, place, dirs_exist_ok=True)
            shutil.rmtree(path)
        elif path.exists():
            shutil.move(path, place)
        path.symlink_to(place)
        before = snapshot(root)

        with contextlib.suppress(rk.RecordKitError, ValueError):
            call(world)

        found = {name for name in changes(before, snapshot(root)) if not belongs(name, target)}
        assert found == set(), (link, target)


@pytest.mark.parametrize("kind", [*FOLDERS, *FILES])
def test_what_another_user_has_left_is_read_past_and_not_obeyed(
    kind: str, original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(original, tmp_path / "root")
    world = World(tmp_path / "root/data", tmp_path / "root/home")
    plant(world, kind)
    before = snapshot(tmp_path)
    monkeypatch.setattr(_parts, "_owner", lambda path: 4711)

    with contextlib.suppress(rk.StorageError):  # where nothing else is
        rk.open(world.target(kind))
    for write_to in (
        rk.recover,
        rk.discard,
        rk.append,
        rk.commit,
        lambda path: write(world, path.name, overwrite=True),
    ):
        if (world.target(kind).exists() or write_to != rk.append) and (kind in FOLDERS or write_to != rk.commit):
            with pytest.raises(rk.StorageError, match=r"\.recordkit: this unfinished run belongs to another user"):
                write_to(world.target(kind))

    assert snapshot(tmp_path) == before
    assert "belongs to another user" in caplog.text
