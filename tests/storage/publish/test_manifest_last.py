from __future__ import annotations

import hashlib
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import _core, log, records
from recordkit.errors import (
    ConflictError,
    OutcomeUnknownError,
    StorageError,
    TargetBusyError,
    TargetExistsError,
)
from recordkit.filesystems import Capabilities, LocalFileSystem, MemoryFileSystem, RequestFault
from recordkit.storage.format import Manifest, Shard
from recordkit.storage.publish import DatasetChange, ManifestLast, PartNumber
from recordkit.storage.publish._requests import perform
from tests import chance
from tests.storage.publish import simulation
from tests.storage.publish.simulation import MANIFEST, REGISTER, TARGET, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recordkit.filesystems import FileSystem
    from recordkit.storage.publish import Staged, StagedShards
    from recordkit.storage.publish._publisher import Kind
    from recordkit.storage.publish._requests import Request, Steps

SCHEDULES = 500 * (10 if chance.SOAKING else 1)
RUN: dict[str, Any] = {"rows": "two"}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would be logged: garbage that could not be removed is no news here."""
    said: list[str] = []
    monkeypatch.setattr(log, "warning", lambda message, *values: said.append(message % values))
    return said


def shard_of(payloads: list[bytes], split: str = "train") -> tuple[Shard, bytes]:
    data = b"".join(map(records.pack, payloads))
    sums = b"".join(struct.pack("<QI", len(payload), _core.crc32c(payload)) for payload in payloads)
    shard = Shard(
        name="shard-00000.tfrecord",
        records=len(payloads),
        bytes=len(data),
        raw_bytes=len(data),
        crc32c=f"{_core.crc32c(data):08x}",
        digest=hashlib.blake2b(sums, digest_size=16).hexdigest(),
        compression=None,
        rows=len(payloads),
        skipped=0,
        split=split,
    )
    return shard, data


SHARDS = [shard_of([b"one", b"two"]), shard_of([b"three"])]
MORE = [shard_of([b"four"])]


def stage(staged: StagedShards, shards: list[tuple[Shard, bytes]]) -> Steps[None]:
    for shard, data in shards[len(staged.shards) :]:
        yield from staged.add_steps(shard, data)
    yield from staged.finish_steps()


def writing(
    publisher: ManifestLast,
    shards: list[tuple[Shard, bytes]] = SHARDS,
    kind: Kind = "create",
    *,
    target: str = TARGET,
    old: Manifest | None = None,
    resume: bool = False,
) -> Steps[None]:
    staged = yield from publisher.claim_steps(target, kind, PartNumber(), run=RUN, resume=resume)
    yield from stage(staged, shards)
    yield from publisher.publish_steps(change((yield from publisher.staged_steps(target)), old, target))


def after(old: Manifest | None, shards: tuple[Shard, ...], kind: str) -> Manifest:
    return (old or Manifest(None, ())).with_shards(shards, {"operation": kind, "recordkit": "0", "arguments": {}})


def change(staged: Staged, old: Manifest | None = None, target: str = TARGET) -> DatasetChange:
    return DatasetChange(target, staged, after(old, staged.shards, staged.kind))


def write(files: FileSystem, *arguments: Any, **options: Any) -> None:
    perform(files, writing(ManifestLast(files), *arguments, **options))


def published(files: MemoryFileSystem) -> Manifest:
    return Manifest.parse(files.files[MANIFEST], MANIFEST)


def content(files: MemoryFileSystem) -> list[bytes]:
    return [files.files[f"{TARGET}/{shard.name}"] for shard in published(files).shards]


def data_of(*shards: tuple[Shard, bytes]) -> list[bytes]:
    return [data for _, data in shards]


def is_commit(operation: str, path: str) -> bool:
    return (operation, path) == ("put", MANIFEST)


def commit_fails(fault: RequestFault) -> Callable[[str, str], RequestFault | None]:
    return lambda operation, path: fault if is_commit(operation, path) else None


class TestPublishing:
    def test_a_new_dataset_is_seen_whole_and_nothing_before(self) -> None:
        files = MemoryFileSystem()
        publisher = ManifestLast(files)

        staged = publisher.claim(TARGET, "create", PartNumber(), run=RUN)
        for shard, data in SHARDS:
            staged.add(shard, data, index=b"index")
        staged.finish()
        assert MANIFEST not in files.files
        publisher.publish(change(publisher.staged(TARGET)))

        assert content(files) == data_of(*SHARDS)
        assert all(f"{TARGET}/_recordkit/{shard.name}.rki" in files.files for shard in published(files).shards)

    def test_nothing_but_the_dataset_and_the_register_stays(self) -> None:
        files = MemoryFileSystem()

        write(files)

        shards = {f"{TARGET}/{shard.name}" for shard in published(files).shards}
        assert set(files.files) == {MANIFEST, REGISTER, *shards}

    def test_the_manifest_tells_which_write_it_is_of(self) -> None:
        files = MemoryFileSystem()
        write(files)

        (operation,) = published(files).lineage

        assert len(operation["write"]) == 32
        assert {**operation, "write": ""} == {"operation": "create", "recordkit": "0", "arguments": {}, "write": ""}

    def test_appended_shards_follow_the_old_ones(self) -> None:
        files = MemoryFileSystem()
        write(files)

        write(files, MORE, "append", old=published(files))

        assert content(files) == data_of(*SHARDS, *MORE)

    def test_overwriting_removes_the_old_shards(self) -> None:
        files = MemoryFileSystem()
        write(files)

        write(files, MORE, "overwrite")

        assert content(files) == data_of(*MORE)
        assert len(files.files) == 3

    def test_shards_that_were_renamed_into_place_are_replaced_too(self) -> None:
        files = MemoryFileSystem()
        world = World(0)
        world.files = files
        simulation.old_way(world, simulation.Job("first", "create", 2))

        write(files, MORE, "overwrite")

        assert content(files) == data_of(*MORE)
        assert len(files.files) == 3

    def test_several_writers_each_make_a_part(self) -> None:
        files = MemoryFileSystem()
        publisher = ManifestLast(files)

        parts = [publisher.claim(TARGET, "create", PartNumber(number, 2), run=RUN) for number in (1, 0)]
        for part, (shard, data) in zip(parts, SHARDS, strict=True):
            part.add(shard, data)
        parts[0].finish()
        with pytest.raises(StorageError, match="1 part of 2 are not finished"):
            publisher.staged(TARGET)
        parts[1].finish()
        publisher.publish(change(publisher.staged(TARGET)))

        assert content(files) == data_of(SHARDS[1], SHARDS[0])

    def test_recordkit_reads_what_was_published_into_a_folder(self, tmp_path: Path) -> None:
        target = str(tmp_path / "train")
        write(LocalFileSystem(sync=False), target=target)

        assert list(rk.open(target, schema=None)) == [b"one", b"two", b"three"]
        assert rk.verify(target).ok

    def test_of_several_writers_on_this_machine_one_wins(self, tmp_path: Path) -> None:
        target = str(tmp_path / "train")

        def create(_: int) -> bool:
            try:
                write(LocalFileSystem(sync=False), target=target)
            except (TargetBusyError, TargetExistsError):
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(create, range(4)))

        assert won.count(True) == 1
        assert list(rk.open(target)) == [b"one", b"two", b"three"]
        assert len(list(tmp_path.glob("train/*.tfrecord"))) == 2

    def test_recordkit_sees_no_dataset_before_the_commit(self, tmp_path: Path) -> None:
        target = str(tmp_path / "train")
        staged = ManifestLast(LocalFileSystem(sync=False)).claim(target, "create", PartNumber(), run=RUN)
        staged.add(*SHARDS[0])

        with pytest.raises(StorageError, match="this folder has no record files"):
            rk.open(target)

    def test_a_file_system_without_conditions_is_refused(self) -> None:
        files = MemoryFileSystem()
        files.can = Capabilities()

        with pytest.raises(StorageError, match="neither renames nor writes conditionally"):
            ManifestLast(files)


class TestWhoMayWrite:
    def test_a_dataset_that_is_there_is_not_created_again(self) -> None:
        files = MemoryFileSystem()
        write(files)

        with pytest.raises(TargetExistsError):
            write(files)

    def test_nothing_can_be_appended_to_nothing(self) -> None:
        with pytest.raises(StorageError, match="no dataset to append to"):
            write(MemoryFileSystem(), kind="append")

    def test_an_unfinished_run_is_only_continued_if_asked_to(self) -> None:
        publisher = ManifestLast(MemoryFileSystem())
        publisher.claim(TARGET, "create", PartNumber(), run=RUN).add(*SHARDS[0])

        with pytest.raises(TargetBusyError, match="resume=True"):
            publisher.claim(TARGET, "create", PartNumber(), run=RUN)

        assert len(publisher.claim(TARGET, "create", PartNumber(), run=RUN, resume=True).shards) == 1

    @pytest.mark.parametrize("resume", [False, True])
    def test_another_run_is_not_continued(self, resume: bool) -> None:
        publisher = ManifestLast(MemoryFileSystem())
        publisher.claim(TARGET, "create", PartNumber(), run=RUN)

        with pytest.raises(TargetBusyError, match="it is another one"):
            publisher.claim(TARGET, "create", PartNumber(), run={"rows": "three"}, resume=resume)

    def test_a_writer_that_was_thought_dead_is_told(self) -> None:
        publisher = ManifestLast(MemoryFileSystem())
        old = publisher.claim(TARGET, "create", PartNumber(), run=RUN)
        publisher.claim(TARGET, "create", PartNumber(), run=RUN, resume=True)

        with pytest.raises(TargetBusyError, match="taken over"):
            old.finish()

    def test_a_discarded_writer_is_told_and_leaves_nothing_but_what_it_stores_later(self) -> None:
        files = MemoryFileSystem()
        publisher = ManifestLast(files)
        old = publisher.claim(TARGET, "create", PartNumber(), run=RUN)
        old.add(*SHARDS[0])

        assert publisher.discard(TARGET)
        assert set(files.files) == {REGISTER}
        assert not publisher.discard(TARGET)
        with pytest.raises(TargetBusyError):
            old.finish()

    def test_an_empty_run_that_was_discarded_while_it_was_published_is_not(self) -> None:
        files = MemoryFileSystem()
        publisher = ManifestLast(files)
        publisher.claim(TARGET, "create", PartNumber(), run=RUN).finish()
        steps = publisher.publish_steps(change(publisher.staged(TARGET)))
        request = next(steps)
        while not any("/manifest." in path for path in files.files):
            request = steps.send(request(files))
        publisher.discard(TARGET)
        publisher.claim(TARGET, "create", PartNumber(), run=RUN).finish()

        with pytest.raises(TargetBusyError):
            go_on(steps, request, files)

        assert not publisher.recover(TARGET)
        assert MANIFEST not in files.files

    def test_a_run_is_not_published_as_another_one(self) -> None:
        publisher = ManifestLast(MemoryFileSystem())
        publisher.claim(TARGET, "create", PartNumber(), run=RUN).finish()
        old = publisher.staged(TARGET)
        publisher.discard(TARGET)
        publisher.claim(TARGET, "create", PartNumber(), run={"rows": "others"}).finish()

        with pytest.raises(TargetBusyError):
            publisher.publish(change(old))

    def test_a_dataset_that_changed_by_other_means_is_not_overwritten(self) -> None:
        files = MemoryFileSystem()
        write(files)
        old = published(files)
        publisher = ManifestLast(files)
        staged = publisher.claim(TARGET, "append", PartNumber(), run=RUN)
        staged.add(*MORE[0])
        staged.finish()
        ready = publisher.staged(TARGET)
        files.put(MANIFEST, Manifest(None, (), ({"operation": "another"},)).to_json())

        with pytest.raises(ConflictError, match="has changed while this was being written"):
            publisher.publish(change(ready, old))

        assert published(files).shards == ()

    def test_after_a_failure_the_run_has_to_be_continued(self) -> None:
        faults: list[RequestFault] = []
        files = MemoryFileSystem(lambda *_: faults.pop() if faults else None)
        publisher = ManifestLast(files)
        staged = publisher.claim(TARGET, "create", PartNumber(), run=RUN)
        faults += [RequestFault.LATE] * 5

        with pytest.raises(OutcomeUnknownError):
            staged.add(*SHARDS[0])
        with pytest.raises(StorageError, match="resume=True"):
            staged.add(*SHARDS[1])
        again = publisher.claim(TARGET, "create", PartNumber(), run=RUN, resume=True)
        again.add(*SHARDS[1])
        while files.late:
            files.deliver()
        again.finish()
        publisher.publish(change(publisher.staged(TARGET)))

        assert content(files) == data_of(SHARDS[1])

    @pytest.mark.parametrize("split", ["a/b", "x" * 250, "a\0"])
    def test_a_split_that_cannot_name_a_file_is_refused(self, split: str) -> None:
        staged = ManifestLast(MemoryFileSystem()).claim(TARGET, "create", PartNumber(), run=RUN)

        with pytest.raises(ValueError, match="cannot name shards"):
            staged.add(*shard_of([b"one"], split))


class TestDoubt:
    """The reply to the put of the manifest is lost, in each way."""

    @pytest.mark.parametrize(
        "fault", [RequestFault.LOST, RequestFault.LATE, RequestFault.REPEATED, RequestFault.ECHOED, RequestFault.FAILED]
    )
    def test_one_lost_reply_is_resolved_by_reading(self, fault: RequestFault) -> None:
        files = MemoryFileSystem()
        left = [fault]
        files.faults = lambda operation, path: left.pop() if left and (operation, path) == ("put", MANIFEST) else None

        write(files)
        while files.late:
            files.deliver()

        assert not left
        assert content(files) == data_of(*SHARDS)

    def test_doubt_that_stays_is_told_and_recover_ends_it(self) -> None:
        files = MemoryFileSystem(
            lambda operation, path: RequestFault.LATE if (operation, path) == ("put", MANIFEST) else None
        )
        with pytest.raises(OutcomeUnknownError, match=r"recordkit\.recover"):
            write(files)
        assert MANIFEST not in files.files

        files.faults = None
        assert ManifestLast(files).recover(TARGET)
        while files.late:
            files.deliver()

        assert content(files) == data_of(*SHARDS)
        assert not ManifestLast(files).recover(TARGET)

    def test_after_plain_failures_the_run_can_be_published_again(self) -> None:
        files = MemoryFileSystem(commit_fails(RequestFault.FAILED))
        with pytest.raises(StorageError, match="put failed"):
            write(files)

        files.faults = None
        stored = {path for path in files.files if path.endswith(".tfrecord")}
        assert not ManifestLast(files).recover(TARGET)
        write(files, resume=True)

        assert content(files) == data_of(*SHARDS)
        assert {f"{TARGET}/{shard.name}" for shard in published(files).shards} == stored

    def test_a_run_that_recover_has_finished_is_complete(self) -> None:
        files = MemoryFileSystem(
            lambda operation, path: RequestFault.LATE if path == MANIFEST and operation == "put" else None
        )
        with pytest.raises(OutcomeUnknownError):
            write(files)
        files.faults = None

        with pytest.raises(TargetExistsError, match="complete now"):
            write(files, resume=True)


class TestDeath:
    @pytest.mark.parametrize("kind", ["create", "overwrite", "append"])
    def test_whoever_resumes_after_a_death_at_any_request_publishes_the_same_bytes(self, kind: Kind) -> None:
        deaths = 0
        while True:
            files = MemoryFileSystem()
            old = None
            if kind != "create":
                write(files, MORE)
                old = published(files)
            steps = writing(ManifestLast(files), SHARDS, kind, old=old if kind == "append" else None)
            if not die_after(steps, files, deaths):
                break
            deaths += 1
            wanted = data_of(*(MORE if kind == "append" else []), *SHARDS)
            if MANIFEST not in files.files or content(files) != wanted:
                with suppress(TargetExistsError):  # the run is complete
                    write(files, SHARDS, kind, old=old if kind == "append" else None, resume=True)

            assert content(files) == wanted
            ManifestLast(files).discard(TARGET)
            assert set(files.files) == {MANIFEST, REGISTER, *(f"{TARGET}/{s.name}" for s in published(files).shards)}
        assert deaths > 20

    def test_finished_shards_are_not_written_again(self) -> None:
        files = MemoryFileSystem()
        first = ManifestLast(files).claim(TARGET, "create", PartNumber(), run=RUN)
        kept = first.add(*SHARDS[0])

        write(files, resume=True)

        assert published(files).shards[0] == kept


def die_after(steps: Steps[None], files: MemoryFileSystem, requests: int) -> bool:
    """Carry out some requests of an operation, and return whether it would have made more."""
    reply, error = None, None
    for _ in range(requests):
        try:
            request = steps.send(reply) if error is None else steps.throw(error)
        except StopIteration:
            return False
        reply, error = None, None
        try:
            reply = request(files)
        except StorageError as raised:
            error = raised
    steps.close()
    return True


def go_on(steps: Steps[None], request: Request, files: MemoryFileSystem) -> None:
    """Carry out a request that an operation has made, and all later ones."""
    while True:
        request = steps.send(request(files))


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b'"format": 1', b'"format": 9'),
            (b'"parts": 1', b'"parts": 9000000000000000000'),
            (b'"token": "', b'"token": "../'),
            (b'"first": 0', b'"first": -1'),
            (b'"kind": "create"', b'"kind": "destroy"'),
        ],
    )
    def test_a_register_that_is_not_ours_is_refused(self, old: bytes, new: bytes) -> None:
        files = MemoryFileSystem()
        publisher = ManifestLast(files)
        publisher.claim(TARGET, "create", PartNumber(), run=RUN)
        assert old in files.files[REGISTER]
        files.put(REGISTER, files.files[REGISTER].replace(old, new))

        for act in (publisher.recover, publisher.discard, publisher.staged):
            with pytest.raises(StorageError, match="register of writers"):
                act(TARGET)

    def test_cleaning_up_removes_no_file_of_others(self) -> None:
        files = MemoryFileSystem()
        write(files)
        others = [f"{TARGET}/{name}" for name in ("_SUCCESS", "notes.txt", "train.tfrecord", "_recordkit/overlays/1/a")]
        for path in others:
            files.put(path, b"")

        ManifestLast(files).discard(TARGET)

        assert files.files.keys() >= set(others)

    def test_a_lost_copy_of_the_manifest_is_named(self) -> None:
        files = MemoryFileSystem(
            lambda operation, path: RequestFault.LATE if path == MANIFEST and operation == "put" else None
        )
        with pytest.raises(OutcomeUnknownError):
            write(files)
        files.faults = None
        for path in list(files.files):
            if "/manifest." in path:
                files.remove(path)

        with pytest.raises(StorageError, match="was publishing this, and it is gone"):
            ManifestLast(files).recover(TARGET)


class TestSimulation:
    @pytest.mark.drawn
    @pytest.mark.parametrize("batch", range(4))
    def test_no_schedule_breaks_a_law(self, batch: int) -> None:
        first = chance.generator(f"manifest last {batch}").getrandbits(48)
        for seed in range(first, first + SCHEDULES):
            try:
                simulation.world(seed).run()
            except Exception as error:
                message = f"seed {seed}: {error}\n  again: tests.storage.publish.simulation.world({seed}).run()"
                raise AssertionError(message) from error

    def test_one_seed_gives_one_schedule(self) -> None:
        worlds = [simulation.world(1) for _ in range(2)]
        for world in worlds:
            world.run()

        assert worlds[0].log == worlds[1].log
        assert worlds[0].files.files == worlds[1].files.files

    def test_everything_happens_in_some_schedule(self) -> None:
        told, faults = set(), set()
        for seed in range(300):
            world = simulation.world(seed)
            world.run()
            told |= set(world.told.values())
            faults |= {line.rpartition(": ")[2] for line in world.log}

        assert told == {"published", "refused", "unknown"}
        assert faults >= {"ConflictError", "OutcomeUnknownError", "StorageError", "a late request is carried out"}
