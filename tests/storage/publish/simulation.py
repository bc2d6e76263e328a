"""A simulation of writers and readers of one dataset, on a file system whose requests fail in every way.

One thread, one seed: the same seed gives the same schedule. Between any two requests, a writer may die, another may
start, and a request that got no reply may be carried out after all. What has to be true is checked after every step.
"""

from __future__ import annotations

import hashlib
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from recordkit import _core
from recordkit.errors import OutcomeUnknownError, StorageError, TargetBusyError
from recordkit.filesystems import MemoryFileSystem, RandomFaults, RequestFault
from recordkit.storage.find import reason_left_out
from recordkit.storage.format import Manifest, Shard
from recordkit.storage.publish import DatasetChange, ManifestLast, PartNumber
from recordkit.storage.publish._requests import perform, read

if TYPE_CHECKING:
    from collections.abc import Generator

    from recordkit.filesystems._memory import Operation
    from recordkit.storage.publish._publisher import Kind
    from recordkit.storage.publish._requests import Request, Steps

Acts: TypeAlias = "Generator[Request | None, Any, None]"  # None is a pause

TARGET: Final = "data/train"
MANIFEST: Final = f"{TARGET}/_recordkit/manifest.json"
REGISTER: Final = f"{TARGET}/_recordkit/writing.json"
RATES: Final = (0.0, 0.05, 0.2, 0.5, 0.9)
MOST_STEPS: Final = 800
LOST_AND_TOLD: Final = "refused"


class BrokenLawError(AssertionError):
    """Something that must never happen has happened."""


@dataclass
class Job:
    """What one user wants to publish, in as many attempts as it takes."""

    name: str
    kind: Kind
    shards: int
    parts: int = 1

    def payload(self, part: int, number: int) -> bytes:
        return f"{self.name}, part {part}, shard {number}".encode()

    def payloads(self) -> list[bytes]:
        return [self.payload(part, number) for part in range(self.parts) for number in range(self.shards)]


@dataclass
class Actor:
    """Something that makes requests: a writer, a reader, or somebody who recovers or discards."""

    name: str
    steps: Acts
    reply: Any = None
    error: StorageError | None = None
    request: Any = None
    is_begun: bool = False
    asleep_until: int = 0


class SomeFaults(RandomFaults):
    """Faults of some kinds that happen to some requests: so that rare combinations of them are drawn more often."""

    def __init__(self, chance: random.Random) -> None:
        kinds = chance.sample(list(RequestFault), chance.randrange(1, len(RequestFault) + 1))
        super().__init__(chance, chance.choice(RATES), kinds)
        self.paths = chance.choice(({MANIFEST}, {REGISTER}, {MANIFEST, REGISTER}, None, None))
        self.is_reading_safe = chance.random() < 0.3

    def __call__(self, operation: Operation, path: str) -> RequestFault | None:
        """Return what goes wrong with a request, None if nothing does."""
        if (self.paths is not None and path not in self.paths) or (self.is_reading_safe and operation == "open"):
            return None
        return super().__call__(operation, path)


@dataclass
class World:
    """The file system, everybody who uses it, and what they were told."""

    seed: int
    chance: random.Random = field(init=False)
    files: MemoryFileSystem = field(init=False)
    actors: list[Actor] = field(default_factory=list)
    history: list[bytes] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, list[bytes]] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    _paths: dict[bytes, list[tuple[str, bytes]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.files = MemoryFileSystem()

    def token(self, size: int) -> str:
        return f"{self.chance.getrandbits(8 * size):0{2 * size}x}"

    # --- Running

    def run(self) -> None:
        """Let everybody make requests in random order, then let the survivors clean up."""
        chance = self.chance
        self.files.faults = SomeFaults(chance)
        deaths, naps, nap = chance.choice((0.0, 0.01, 0.05)), chance.choice((0.0, 0.05, 0.2)), chance.choice((30, 300))
        deliveries = chance.choice((0.005, 0.03, 0.2))
        for now in range(MOST_STEPS):
            if not self.actors:
                break
            awake = [actor for actor in self.actors if actor.asleep_until <= now]
            drawn = chance.random()
            if self.files.late and drawn < deliveries:
                self.files.deliver(chance.randrange(self.files.late))
                self.log.append("a late request is carried out")
                self.check()
            elif drawn > 1 - deaths:
                actor = self.actors.pop(chance.randrange(len(self.actors)))
                actor.steps.close()
                self.log.append(f"{actor.name} dies")
            elif awake:
                actor = chance.choice(awake)
                self.step(actor)
                self.check()
                if chance.random() < naps:
                    actor.asleep_until = now + chance.randrange(nap)
        self.end()

    def step(self, actor: Actor) -> None:
        """Carry out one request of an actor."""
        try:
            if not actor.is_begun:
                actor.is_begun = True
                actor.request = next(actor.steps)
                return
            if actor.request is not None:
                try:
                    actor.reply, actor.error = actor.request(self.files), None
                except StorageError as error:
                    actor.reply, actor.error = None, error
                self.log.append(f"{actor.name}: {'ok' if actor.error is None else type(actor.error).__name__}")
            if actor.error is not None:
                failure, actor.error = actor.error, None
                actor.request = actor.steps.throw(failure)
            else:
                reply, actor.reply = actor.reply, None
                actor.request = actor.steps.send(reply)
        except StopIteration:
            self.actors.remove(actor)
            self.log.append(f"{actor.name} ends")

    def end(self) -> None:
        """Everybody else is dead, every late request arrives, and the network is sound again."""
        for actor in self.actors:
            actor.steps.close()
        self.files.faults = None
        while self.files.late:
            self.files.deliver(self.chance.randrange(self.files.late))
            self.check()
        self.log.append("the network is sound again")
        publisher = ManifestLast(self.files, new_token=self.token)
        if self.chance.random() < 0.5:
            publisher.recover(TARGET)
            self.check()
        publisher.discard(TARGET)
        self.check()
        self.check_told()
        self.check_nothing_is_left()
        job = Job("last", "overwrite", 2)
        self.jobs[job.name] = job
        finish(self.writer(job, 0), self.files)
        self.check()
        self.check_nothing_is_left()
        if self.states[self.digest()] != job.payloads():
            raise BrokenLawError("the last writer has not published")

    # --- Actors

    def add(self, name: str, acts: Acts, pause: int) -> None:
        self.actors.append(Actor(name, acts, asleep_until=pause))

    def writer(self, job: Job, part: int, *, resume: bool = False) -> Acts:
        """Write one part of a job; whoever writes the first one also publishes."""
        publisher = ManifestLast(self.files, new_token=self.token)
        for attempt in range(6):
            try:
                staged = yield from publisher.claim_steps(
                    TARGET,
                    job.kind,
                    PartNumber(part, job.parts),
                    run={"job": job.name},
                    resume=resume or attempt > 0,
                )
                for number in range(len(staged.shards), job.shards):
                    payload = job.payload(part, number)
                    yield from staged.add_steps(self.shard(payload), payload, index=b"index of " + payload)
                yield from staged.finish_steps()
            except (FileExistsError, FileNotFoundError):
                return
            except TargetBusyError:
                if (yield from self._gives_up(publisher)):
                    return
                continue
            except StorageError:
                continue
            break
        else:
            return
        if part == 0:
            yield from self.committer()

    def _gives_up(self, publisher: ManifestLast) -> Generator[Request | None, Any, bool]:
        """Leave, wait, or remove the run that is in the way."""
        drawn = self.chance.random()
        if drawn < 0.5:
            for _ in range(10):
                yield None
        elif drawn < 0.7:
            with suppress(StorageError):
                yield from publisher.discard_steps(TARGET)
        return drawn > 0.7

    def committer(self) -> Acts:
        """Publish whatever is staged, and keep what its writer is told."""
        for _ in range(3):
            writes: list[str] = []
            publisher = ManifestLast(self.files, new_token=lambda size, w=writes: self._noted(size, w))  # type: ignore[misc]
            try:
                staged = yield from publisher.staged_steps(TARGET)
                found = yield from read(MANIFEST)
            except StorageError:
                continue
            old = Manifest.parse(found[0], MANIFEST) if found is not None and staged.kind == "append" else None
            operation = {"operation": staged.kind, "arguments": dict(staged.run)}
            manifest = (old or Manifest(None, ())).with_shards(staged.shards, operation)
            try:
                yield from publisher.publish_steps(DatasetChange(TARGET, staged, manifest))
            except OutcomeUnknownError:
                self._tell(writes, "unknown")
                return
            except (TargetBusyError, FileExistsError):
                self._tell(writes, LOST_AND_TOLD)
                return
            except StorageError:
                self._tell(writes, LOST_AND_TOLD)
            else:
                self._tell(writes, "published")
                return

    def _noted(self, size: int, writes: list[str]) -> str:
        token = self.token(size)
        if size == 16:
            writes.append(token)
        return token

    def _tell(self, writes: list[str], outcome: str) -> None:
        self.log.append(f"a writer is told: {outcome}")
        if writes:
            self.told[writes[0]] = outcome

    def reader(self) -> Acts:
        """Read the whole dataset, from the beginning if it was replaced meanwhile."""
        with suppress(OSError):
            while (found := (yield from read(MANIFEST))) is not None:
                data = found[0]
                shards = Manifest.parse(data, MANIFEST).shards
                payloads = []
                for shard in shards:
                    payloads.append((yield from read(f"{TARGET}/{shard.name}")))
                if None not in payloads:
                    if [payload[0] for payload in payloads if payload] != self.states[digest(data)]:
                        raise BrokenLawError("a reader has seen a state that nobody has published")
                    return
                again = yield from read(MANIFEST)
                if again is None or again[0] == data:
                    raise BrokenLawError("a reader misses a shard of the manifest that is there")

    def recoverer(self) -> Acts:
        with suppress(StorageError):
            yield from ManifestLast(self.files, new_token=self.token).recover_steps(TARGET)

    def discarder(self) -> Acts:
        with suppress(StorageError):
            yield from ManifestLast(self.files, new_token=self.token).discard_steps(TARGET)

    def shard(self, payload: bytes) -> Shard:
        name = hashlib.blake2b(payload, digest_size=16).hexdigest()
        self.contents[name] = payload
        return Shard(
            name="shard-00000.tfrecord",
            records=1,
            bytes=len(payload),
            raw_bytes=len(payload),
            crc32c=f"{_core.crc32c(payload):08x}",
            digest=name,
            compression=None,
            rows=1,
            skipped=0,
            split="train",
        )

    # --- Laws

    def digest(self) -> str:
        return digest(self.files.files[MANIFEST])

    def check(self) -> None:
        """Check what has to be true at any time, with the eyes of somebody who sees all files at once."""
        files = self.files.files
        data = files.get(MANIFEST)
        if data is None:
            if self.history:
                raise BrokenLawError("the manifest was removed")
            seen = [name for name in names_in(files, TARGET) if reason_left_out(name) is None]
            if seen:
                raise BrokenLawError(f"seen before the commit: {seen}")
            return
        if not self.history or self.history[-1] != data:
            self._check_change(data)
        for path, payload in self._whole(data):
            if files.get(path) != payload:
                raise BrokenLawError(f"the manifest names {path}, which is {'other' if path in files else 'gone'}")

    def _whole(self, data: bytes) -> list[tuple[str, bytes]]:
        """Return every path that a manifest needs, and what has to be there."""
        if data not in self._paths:
            self._paths[data] = [
                (path, content)
                for shard in Manifest.parse(data, MANIFEST).shards
                for path, content in (
                    (f"{TARGET}/{shard.name}", self.contents[shard.digest]),
                    (f"{TARGET}/_recordkit/{shard.name}.rki", b"index of " + self.contents[shard.digest]),
                )
            ]
        return self._paths[data]

    def _check_change(self, data: bytes) -> None:
        """Check that a new state is a whole job, after the state before if it was an append."""
        manifest = Manifest.parse(data, MANIFEST)
        payloads = [self.contents[shard.digest] for shard in manifest.shards]
        last = manifest.lineage[-1]
        job = self.jobs[last["arguments"]["job"]]
        before = self.states[digest(self.history[-1])] if self.history else []
        if job.kind == "create" and self.history:
            raise BrokenLawError("two writers have created one dataset")
        if payloads != (before if job.kind == "append" else []) + job.payloads():
            raise BrokenLawError(f"{job.name} was published as {payloads} after {before}")
        if last.get("write") in self.writes():
            raise BrokenLawError("a manifest was published twice")
        self.history.append(data)
        self.states[digest(data)] = payloads
        self.log.append(f"{job.name} is published")

    def writes(self) -> list[str | None]:
        return [Manifest.parse(data, MANIFEST).lineage[-1].get("write") for data in self.history]

    def check_told(self) -> None:
        """Check that no writer was told something wrong, now that nothing can happen to its manifest any more."""
        published = self.writes()
        for write, outcome in self.told.items():
            if outcome == "published" and write not in published:
                raise BrokenLawError("a writer was told that it published, and it did not")
            if outcome == LOST_AND_TOLD and write in published:
                raise BrokenLawError("a writer was told that it failed, and it published")

    def check_nothing_is_left(self) -> None:
        files = {path for path in self.files.files if "-of-" not in path} - {MANIFEST, REGISTER}
        data = self.files.files.get(MANIFEST)
        wanted = {path for path, _ in self._whole(data)} if data is not None else set()
        if files - wanted:
            raise BrokenLawError(f"left behind: {sorted(files - wanted)}")


def finish(acts: Acts, files: MemoryFileSystem) -> None:
    """Do all that somebody would do, without an interruption."""
    perform(files, cast("Steps[None]", acts))


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def names_in(files: Any, folder: str) -> list[str]:
    below = (path.removeprefix(f"{folder}/") for path in files if path.startswith(f"{folder}/"))
    return [name for name in below if "/" not in name]


def world(seed: int) -> World:
    """Return a world with some writers and readers, drawn from a seed."""
    made = World(seed)
    chance = made.chance
    if chance.random() < 0.6:
        first = Job("first", "create", chance.randrange(1, 3))
        made.jobs[first.name] = first
        if chance.random() < 0.5:
            finish(made.writer(first, 0), made.files)
        else:
            old_way(made, first)
        made.check()
    kinds: list[Kind] = ["create", "overwrite", "append"]
    for name in "ABCD"[: chance.randrange(1, 5)]:
        job = Job(name, chance.choice(kinds), chance.choice((0, 1, 1, 2)), chance.choice((1, 1, 1, 2)))
        made.jobs[job.name] = job
        for part in range(job.parts):
            made.add(f"{name}{part}", made.writer(job, part), chance.randrange(60))
        for again in range(chance.choice((0, 0, 1, 2))):
            part = chance.randrange(job.parts)
            made.add(f"{name}{part} resumed {again}", made.writer(job, part, resume=True), chance.randrange(200))
        if chance.random() < 0.3:
            made.add("committer", made.committer(), chance.randrange(200))
    for number in range(chance.randrange(5)):
        who = chance.choice((made.reader, made.recoverer, made.discarder))
        made.add(f"{who.__name__} {number}", who(), chance.randrange(200))
    return made


def old_way(made: World, job: Job) -> None:
    """Publish a dataset as one that was renamed into place looks."""
    shards = []
    for number, payload in enumerate(job.payloads()):
        shard = made.shard(payload)
        name = f"train-{number:05d}-of-{job.shards:05d}.tfrecord"
        made.files.put(f"{TARGET}/{name}", payload)
        made.files.put(f"{TARGET}/_recordkit/{name}.rki", b"index of " + payload)
        shards.append(Shard(**{**shard.to_dict(), "name": name}))
    operation = {"operation": "create", "arguments": {"job": job.name}}
    made.files.put(MANIFEST, Manifest(None, tuple(shards), (operation,)).to_json())
