"""Datasets at addresses such as `memory://train`, found by their manifests alone: no folder is listed."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recordkit.errors import NotFoundError, StorageError
from recordkit.filesystems import find_file_system
from recordkit.storage.format import SIDE, Manifest
from recordkit.wording import did_you_mean, listed

if TYPE_CHECKING:
    from recordkit.filesystems import ByteFile, FileSystem
    from recordkit.storage.format import Shard

_TRIES: Final = 5


@dataclass(frozen=True)
class DatasetFiles:
    """A dataset at an address.

    Attributes:
        manifest: The whole dataset.
        files: The shards that were asked for, with what the manifest says about each: None if the size is another.
    """

    manifest: Manifest
    files: tuple[tuple[ByteFile, Shard | None], ...]

    @property
    def splits(self) -> dict[str, tuple[Path, ...]]:
        """The files of each split, as their plain names."""
        found: dict[str, tuple[Path, ...]] = {}
        for shard in self.manifest.shards:
            found[shard.split] = (*found.get(shard.split, ()), Path(shard.name))
        return found


def find_published(address: str, *, split: str | None = None) -> DatasetFiles:
    """Return the dataset at an address, all of its files of one state.

    Raises:
        NotFoundError: There is no dataset.
        StorageError: A shard is missing, or there is no such split.
    """
    files, path = find_file_system(address)
    path = path.rstrip("/")
    for _ in range(_TRIES):
        data = _manifest(files, path, address)
        manifest = Manifest.parse(data, address)
        shards = [shard for shard in manifest.shards if split in (None, shard.split)]
        if not shards and split is not None:
            splits = list(dict.fromkeys(shard.split for shard in manifest.shards))
            advice = f"{did_you_mean(split, splits)} There are: {listed(splits)}.".strip()
            message = f"{address}: there is no split {split!r}\n  {advice}"
            raise StorageError(message, path=address)
        try:
            opened = [files.open(f"{path}/{shard.name}") for shard in shards]
        except NotFoundError as error:
            if _manifest(files, path, address) == data:
                message = f"{address}: a shard of the manifest is not there: {error.place}\n  Bring it back."
                raise StorageError(message, path=address) from error
            continue  # it was replaced meanwhile: read the new one
        pairs = zip(opened, shards, strict=True)
        return DatasetFiles(
            manifest, tuple((file, shard if file.size == shard.bytes else None) for file, shard in pairs)
        )
    message = f"{address}: the dataset is replaced faster than it can be opened\n  Try again later."
    raise StorageError(message, path=address)


def _manifest(files: FileSystem, path: str, address: str) -> bytes:
    try:
        file = files.open(f"{path}/{SIDE}/manifest.json")
    except NotFoundError:
        message = f"{address}: there is no dataset here\n  Only datasets with a manifest can be opened at an address."
        raise StorageError(message, path=address, errno=errno.ENOENT) from None
    try:
        return file.read_at(0, file.size)
    finally:
        file.close()
