"""Publishing without rename: shards first, under names that no reader looks at, and the manifest last.

A manifest names its shards, and one conditional put of it is the commit. What makes that safe:

- Two files change: the manifest, and the register of writers (`_register.py`). Both are changed by compare-and-swap
  alone and never removed, and no two states of them have the same bytes. So a request that arrives late fails.
- Every other name contains the token of its writer and is used once. So nobody overwrites such a file, and once a token
  is out of use, all files with it can be removed.
- A writer that gets no reply reads the manifest, and recognises its own by the write id.
- Before a writer puts a manifest, it stores a copy and announces it in the register. If it dies, others put the same
  manifest once more. Until that is decided, nobody else writes or removes anything.

Each operation is a generator of requests, so that tests can stop one between any two requests. `docs/decisions/` has
the reasons, and tests/storage/publish/ the laws.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from recordkit import log
from recordkit.errors import (
    ConflictError,
    OutcomeUnknownError,
    StorageError,
    TargetBusyError,
    TargetExistsError,
)
from recordkit.filesystems import IF_ABSENT, IfUnchanged
from recordkit.storage.format import SHARD, Manifest, Shard
from recordkit.storage.format import side_json as declare
from recordkit.wording import counted

from ._paths import copy_of, folders_of, identity_of, manifest_of, note_of, owner_of, register_of, shard_name, sides_of
from ._publisher import Staged
from ._register import Owner, Publication, Register
from ._requests import TRIES, listing, perform, put, read, remove, repeat, store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import Buffer

    from recordkit.filesystems import FileSystem, When

    from ._publisher import DatasetChange, Kind, PartNumber
    from ._requests import Steps

_DECLARED_SHARD: Final = declare.JsonFormat(
    "entry of a finished shard", SHARD, "Remove the unfinished run with recordkit.discard."
)


class ManifestLast:
    """The way of publishing for file systems that cannot rename but can put conditionally.

    It cannot tell a dead writer from a slow one: `resume=True` and `discard` decide that. A writer that was still alive
    is refused at its next step.

    Args:
        files: The file system.
        new_token: Returns this many random bytes in hexadecimal.
    """

    def __init__(self, files: FileSystem, *, new_token: Callable[[int], str] | None = None) -> None:
        if not files.can.conditional_put:
            message = "no dataset can be written here: this file system neither renames nor writes conditionally"
            raise StorageError(message, advice="Write it to a folder of this machine, and copy that.")
        self._files = files
        self._new_token = new_token or (lambda size: os.urandom(size).hex())

    def claim(
        self, target: str, kind: Kind, part: PartNumber, *, run: Mapping[str, Any], resume: bool = False
    ) -> StagedShards:
        """Return a part to write: see `Publisher.claim`."""
        return perform(self._files, self.claim_steps(target, kind, part, run=run, resume=resume))

    def staged(self, target: str) -> Staged:
        """Return what is ready to be published: see `Publisher.staged`."""
        return perform(self._files, self.staged_steps(target))

    def publish(self, change: DatasetChange) -> None:
        """Make the change visible: see `Publisher.publish`."""
        perform(self._files, self.publish_steps(change))

    def recover(self, target: str) -> bool:
        """Finish the publication that a dead writer began, and say whether there was one."""
        return perform(self._files, self.recover_steps(target))

    def discard(self, target: str) -> bool:
        """Remove what an unfinished run has left, and say whether there was one."""
        return perform(self._files, self.discard_steps(target))

    # --- Staging

    def claim_steps(
        self, target: str, kind: Kind, part: PartNumber, *, run: Mapping[str, Any], resume: bool
    ) -> Steps[StagedShards]:
        """Do what `claim` does."""
        token = self._new_token(8)
        if (yield from self.recover_steps(target)) and resume:
            message = f"{target}: the run that broke off is complete now: all its rows are there"
            raise TargetExistsError(message, path=target)
        _check_kind(target, kind, (yield from _published(target)))
        before = yield from _register(target)
        kept: tuple[Shard, ...] = ()
        if resume and before.kind is not None and before.owners_of(part.number):
            kept = yield from _noted(target, before, part.number)

        def add_owner(now: Register) -> Register | None:
            if now.owner_of(part.number) == token:
                return None
            _check_free(target, now, kind, part, run, resume=resume)
            if now.owners_of(part.number) != before.owners_of(part.number):
                raise _taken(target)
            if now.kind is None:
                now = replace(now.idle(), kind=kind, run=run, parts=part.total)
            return now.with_owner(Owner(part.number, token, len(kept)))

        yield from self._swap(target, add_owner)
        return StagedShards(self, self._files, target, part, token, kept)

    def finish_steps(self, target: str, part: int, token: str, count: int) -> Steps[None]:
        """Note in the register that a part has all its shards."""

        def finish(now: Register) -> Register | None:
            if now.owner_of(part) != token or now.publishing is not None:
                raise _taken(target)
            return None if now.done.get(part) == count else replace(now, done={**now.done, part: count})

        yield from self._swap(target, finish)

    def staged_steps(self, target: str) -> Steps[Staged]:
        """Do what `staged` does."""
        now = yield from _register(target)
        left = [number for number in range(now.parts) if number not in now.done]
        if now.kind is None or not now.owners or left:
            words = f"{counted(len(left), 'part')} of {now.parts} are not finished" if left else "no run is unfinished"
            message = f"{target}: {words}\n  Write all parts before they are published."
            raise StorageError(message, path=target)
        shards: list[Shard] = []
        for part in range(now.parts):
            noted = yield from _noted(target, now, part)
            if len(noted) != now.done[part]:
                raise _taken(target)  # meanwhile
            shards += noted
        return Staged(now.kind, now.run, tuple(shards), _tokens(now))

    # --- Publishing

    def publish_steps(self, change: DatasetChange) -> Steps[None]:
        """Do what `publish` does."""
        target, write = change.target, self._new_token(16)
        old = yield from _published(target)
        _check_kind(target, change.staged.kind, old)
        new = _new_shards(change, old)
        publication = Publication(write, change.staged.tokens[0], None if old is None else old.digest)
        data = _with_write_id(change.manifest, write).to_json()
        yield from store(copy_of(target, publication), data)

        def begin(now: Register) -> Register | None:
            if now.outcome_of(write) is not None or (now.publishing and now.publishing.write == write):
                return None
            is_same = now.publishing is None and _tokens(now) == change.staged.tokens
            if not is_same or [identity_of(shard) for shard in new] != now.staged(at_most=len(new)):
                raise _taken(target)
            return replace(now, publishing=publication)

        yield from self._swap(target, begin)
        yield from self._conclude(change, publication, data, old)

    def _conclude(
        self, change: DatasetChange, publication: Publication, data: bytes, old: _CurrentManifest | None
    ) -> Steps[None]:
        target = change.target
        try:
            is_published = yield from _commit(target, publication, data)
        except OutcomeUnknownError:
            raise
        except StorageError:
            # Nothing was written by this writer. Somebody else may have begun to help: then there is no step back.
            if (yield from self._stepped_back(target, publication)):
                raise
            return
        try:
            yield from self._decide(target, publication, published=is_published)
            if is_published:
                yield from _clean_up(
                    target, [] if old is None or change.staged.kind == "append" else old.manifest.shards
                )
        except StorageError as error:
            log.warning("%s: it is decided, and the run could not be put away: %s", target, error)
        if not is_published:
            raise _lost(target, change.staged.kind)

    def _stepped_back(self, target: str, publication: Publication) -> Steps[bool]:
        """Return to writing, so that the run can be published later. Return False if it has been published already."""

        def step_back(now: Register) -> Register | None:
            if now.outcome_of(publication.write) is not None:
                return None
            if now.publishing != publication:
                raise _unknown(target, None)
            return now.decide(publication.write, published=False)

        try:
            now = yield from self._swap(target, step_back)
        except StorageError as error:
            raise _unknown(target, error) from error
        return now.outcome_of(publication.write) is False

    def recover_steps(self, target: str) -> Steps[bool]:
        """Do what `recover` does."""
        now = yield from _register(target)
        if now.publishing is None:
            return False
        publication = now.publishing

        def help_(now: Register) -> Register | None:
            if now.publishing is None or now.publishing.write != publication.write or now.publishing.shared:
                return None
            return replace(now, publishing=replace(publication, shared=True))

        now = yield from self._swap(target, help_)
        if now.publishing is None or now.publishing.write != publication.write:
            return now.outcome_of(publication.write) is True
        data = yield from read(copy_of(target, publication))
        if data is None:
            now = yield from _register(target)
            if now.publishing is not None and now.publishing.write == publication.write:
                message = (
                    f"{copy_of(target, publication)}: a writer that broke off was publishing this, and it is gone\n"
                    f"  Write the dataset elsewhere, or remove {register_of(target)} if nobody is writing."
                )
                raise StorageError(message, path=target)
            return now.outcome_of(publication.write) is True
        is_published = yield from _commit(target, publication, data[0])
        yield from self._decide(target, publication, published=is_published)
        if is_published:
            yield from _clean_up(target)
        return is_published

    def _decide(self, target: str, publication: Publication, *, published: bool) -> Steps[None]:
        def decide(now: Register) -> Register | None:
            if now.publishing is None or now.publishing.write != publication.write:
                return None
            return now.decide(publication.write, published=published)

        yield from self._swap(target, decide)

    def discard_steps(self, target: str) -> Steps[bool]:
        """Do what `discard` does."""
        yield from self.recover_steps(target)
        found = False

        def clear(now: Register) -> Register | None:
            nonlocal found
            if now.publishing is not None:
                raise _taken(target)
            found = found or now.kind is not None
            return None if now.kind is None else now.idle()

        yield from self._swap(target, clear)
        yield from _clean_up(target)
        return found

    def _swap(self, target: str, change: Callable[[Register], Register | None]) -> Steps[Register]:
        """Change the register, and return it.

        Args:
            target: The dataset's folder.
            change: Returns the new register, or None if the present one needs no change: also because an earlier try
                was carried out whose reply was lost.
        """
        where = register_of(target)
        doubt: StorageError | None = None
        last: StorageError | None = None
        for _ in range(TRIES):
            try:
                found = yield from read(where)
            except StorageError as error:
                last = error
                break
            now = Register() if found is None else Register.parse(found[0], where)
            new = change(now)
            if new is None:
                return now
            try:
                when: When = IF_ABSENT if found is None else IfUnchanged(found[1])
                yield put(where, new.to_json(self._new_token(8)), when)
            except (ConflictError, OutcomeUnknownError) as error:
                doubt = last = error  # a conflict may be with an earlier try of this request: reading tells
            except StorageError as error:
                last = error
            else:
                return new
        assert last is not None
        if doubt is not None:
            raise _unknown(target, doubt) from last
        raise last


class StagedShards:
    """The shards of one writer."""

    def __init__(
        self,
        publisher: ManifestLast,
        files: FileSystem,
        target: str,
        part: PartNumber,
        token: str,
        shards: Iterable[Shard],
    ) -> None:
        self._publisher = publisher
        self._files = files
        self._target = target
        self._part = part
        self._token = token
        self._shards = list(shards)
        self._is_broken = False

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The finished shards, in order."""
        return tuple(self._shards)

    def add(
        self, shard: Shard, data: Buffer, *, index: Buffer | None = None, quarantine: Buffer | None = None
    ) -> Shard:
        """Store a finished shard, and return it with the name that it gets."""
        return perform(self._files, self.add_steps(shard, data, index=index, quarantine=quarantine))

    def finish(self) -> None:
        """Note that this part has all its shards."""
        perform(self._files, self.finish_steps())

    def add_steps(
        self, shard: Shard, data: Buffer, *, index: Buffer | None = None, quarantine: Buffer | None = None
    ) -> Steps[Shard]:
        """Do what `add` does."""
        if self._is_broken:
            message = f"{self._target}: an earlier shard could not be stored\n  Continue the run with resume=True."
            raise StorageError(message, path=self._target)
        self._is_broken = True  # until it is stored: a try that arrives late must not meet other bytes under its name
        number = len(self._shards)
        name = shard_name(shard, self._part.number, number, self._token)
        shard = replace(shard, name=name)
        yield from store(f"{self._target}/{name}", data)
        for where, side in zip(sides_of(self._target, name), (index, quarantine), strict=True):
            if side is not None:
                yield from store(where, side)
        note = note_of(self._target, self._part.number, number, self._token)
        yield from store(note, declare.to_bytes(shard.to_dict()))
        self._shards.append(shard)
        self._is_broken = False
        return shard

    def finish_steps(self) -> Steps[None]:
        """Do what `finish` does."""
        yield from self._publisher.finish_steps(self._target, self._part.number, self._token, len(self._shards))


# --- The commit


@dataclass(frozen=True)
class _CurrentManifest:
    """A manifest as it is now."""

    manifest: Manifest
    digest: str
    version: str


def _published(target: str) -> Steps[_CurrentManifest | None]:
    where = manifest_of(target)
    found = yield from read(where)
    if found is None:
        return None
    data, version = found
    return _CurrentManifest(Manifest.parse(data, where), _digest(data), version)


def _commit(target: str, publication: Publication, data: bytes) -> Steps[bool]:
    """Put the manifest; return whether it was published, which is False only if it never will be.

    Raises:
        OutcomeUnknownError: Nobody knows.
        StorageError: No request was carried out, and none will be.
    """
    in_doubt = False
    last: StorageError | None = None
    for _ in range(TRIES):
        try:
            now = yield from _published(target)
        except StorageError as error:
            raise _unknown(target, error) from error
        if now is not None and any(each.get("write") == publication.write for each in now.manifest.lineage):
            return True
        if (None if now is None else now.digest) != publication.after:
            return (yield from _look_up(target, publication))
        try:
            yield put(manifest_of(target), data, IF_ABSENT if now is None else IfUnchanged(now.version))
        except (ConflictError, OutcomeUnknownError) as error:
            # A conflict, too, may be with an earlier try of this request: reading tells.
            in_doubt, last = True, error
        except StorageError as error:
            last = error
        else:
            return True
    assert last is not None
    if in_doubt:
        raise _unknown(target, last) from last
    raise last


def _look_up(target: str, publication: Publication) -> Steps[bool]:
    """Return whether a manifest was published, now that there is another one."""
    try:
        now = yield from _register(target)
    except StorageError as error:
        raise _unknown(target, error) from error
    if now.publishing is not None and now.publishing.write == publication.write:
        return False  # nobody could replace it meanwhile, so the other one was there before
    outcome = now.outcome_of(publication.write)
    if outcome is None:
        raise _unknown(target, None)
    return outcome


def _with_write_id(manifest: Manifest, write: str) -> Manifest:
    *before, last = manifest.lineage or ({"operation": "publish"},)
    return replace(manifest, lineage=(*before, {**last, "write": write}))


# --- Reading the present state


def _register(target: str) -> Steps[Register]:
    where = register_of(target)
    found = yield from read(where)
    return Register() if found is None else Register.parse(found[0], where)


def _noted(target: str, register: Register, part: int) -> Steps[tuple[Shard, ...]]:
    """Return the finished shards of a part. They are read one by one, for a listing may be out of date."""
    shards: list[Shard] = []
    while len(shards) != register.done.get(part):
        number = len(shards)
        token = register.token_of(part, number)
        if token is None:
            break
        where = note_of(target, part, number, token)
        found = yield from read(where)
        if found is None:
            break
        shards.append(Shard.from_dict(_DECLARED_SHARD.parse(found[0], where)))
    return tuple(shards)


def _clean_up(target: str, replaced: Iterable[Shard] = ()) -> Steps[None]:
    """Remove the files that nobody will read.

    The order matters: a file that is listed, and whose token or shard is found in neither the register nor the manifest
    afterwards, can never be used again.
    """
    listed: list[str] = []
    for folder in folders_of(target):
        entries = yield from listing(folder)
        listed += [f"{folder}/{entry.name}" for entry in entries if not entry.is_folder]
    register = yield from _register(target)
    published = yield from _published(target)
    tokens = {owner.token for owner in register.owners}
    named = {shard.name for shard in published.manifest.shards} if published is not None else set()
    doomed = []
    for path in listed:
        token, shard = owner_of(path)
        if token is not None and token not in tokens and shard not in named:
            doomed.append(path)
    for old in replaced:  # of another way of publishing: their names are never used again
        if identity_of(old) is None and old.name not in named:
            doomed += [f"{target}/{old.name}", *sides_of(target, old.name)]
    for path in doomed:
        try:
            yield from repeat(remove(path))
        except StorageError as error:
            log.warning("%s: it is not needed any more, and could not be removed: %s", path, error)


def _tokens(register: Register) -> tuple[str, ...]:
    return tuple(owner.token for owner in register.owners)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


# --- Refusals


def _check_kind(target: str, kind: Kind, old: _CurrentManifest | None) -> None:
    if kind == "create" and old is not None:
        message = f"{target}: there is a dataset under this name already\n  Pass overwrite=True to replace it."
        raise TargetExistsError(message, path=target)
    if kind == "append" and old is None:
        message = f"{target}: there is no dataset to append to\n  Create it first."
        raise StorageError(message, path=target)


def _check_free(
    target: str, now: Register, kind: Kind, part: PartNumber, run: Mapping[str, Any], *, resume: bool
) -> None:
    """Raise if a part may not be claimed."""
    if now.kind is None:
        return
    if now.publishing is not None:
        raise _taken(target)
    if (now.kind, now.parts, dict(now.run)) != (kind, part.total, dict(run)):
        message = (
            f"{target}: there is an unfinished run, and it is another one\n"
            f"  Wait for it, or remove it: recordkit.discard({target!r})."
        )
        raise TargetBusyError(message, path=target)
    if now.owners_of(part.number) and not resume:
        message = (
            f"{target}: there is an unfinished run\n"
            f"  Wait for it, continue it with resume=True, or remove it: recordkit.discard({target!r})."
        )
        raise TargetBusyError(message, path=target)


def _new_shards(change: DatasetChange, old: _CurrentManifest | None) -> tuple[Shard, ...]:
    """Return the shards that a change adds.

    Raises:
        ConflictError: It continues another manifest than the one that is there.
    """
    if change.staged.kind != "append" or old is None:
        return change.manifest.shards
    before, after = old.manifest, change.manifest
    count = len(before.shards)
    if after.shards[:count] != before.shards or after.lineage[: len(before.lineage)] != before.lineage:
        raise _lost(change.target, change.staged.kind)
    return after.shards[count:]


def _taken(target: str) -> TargetBusyError:
    message = (
        f"{target}: another writer has taken over, published or discarded what was being written here\n"
        "  See that only one writer at a time writes it, and write it again if you need to."
    )
    return TargetBusyError(message, path=target)


def _lost(target: str, kind: Kind) -> StorageError:
    if kind == "create":
        message = f"{target}: there is a dataset under this name already\n  It came while this one was being written."
        return TargetExistsError(message, path=target)
    message = (
        f"{target}: the dataset has changed while this was being written\n"
        "  Nothing of it was published. Read the dataset again, and publish again."
    )
    return ConflictError(message, path=target)


def _unknown(target: str, error: StorageError | None) -> OutcomeUnknownError:
    reason = f": {error.headline}" if error is not None else ""
    message = (
        f"{target}: it is not known whether this was published{reason}\n"
        f"  recordkit.recover({target!r}) finishes it, or finds out that it failed."
    )
    return OutcomeUnknownError(message, path=target)
