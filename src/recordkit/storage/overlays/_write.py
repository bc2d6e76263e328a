"""Writing overlays: a new one appears under its number when it is complete, and one that goes is first renamed."""

from __future__ import annotations

import base64
import os
import re
import time
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import filesystems, log
from recordkit.errors import StorageError
from recordkit.storage.format import SIDE, Manifest, manifest_of

from ._overlay import KEY, Overlay, numbered_overlays

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ._overlay import Base


def new_overlay(folder: Path, name: str, *, sync: bool = True) -> Path:
    """Return the path for the next overlay: that of an interrupted run for the same name, or the next number.

    The folder for overlays is created and synced.
    """
    slug = re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:80].strip("._-") or "layer"
    overlays = folder / SIDE / "overlays"
    filesystems.refuse_links(overlays.parent, overlays)
    filesystems.make_folder(overlays, sync=sync)
    # The process that created it may have died before syncing it.
    for parent in (overlays.parent, folder):
        filesystems.sync_folder(parent, sync=sync)
    last = max((number for number, _ in numbered_overlays(folder)), default=0)
    for staging in sorted(overlays.glob(f".[0-9]*-{slug}.recordkit")):
        target = overlays / staging.name[1 : -len(".recordkit")]
        number, _, begun = target.name.partition("-")
        if begun == slug and int(number) > last:
            return target
    return overlays / f"{last + 1:04d}-{slug}"


def settle(path: Path) -> None:
    """Make the manifest of a new overlay newer than its files, so that they are known to be unchanged.

    The clock for file times moves in steps of a few milliseconds.
    """
    manifest = manifest_of(path, lone=False)
    with suppress(FileNotFoundError):  # removed by somebody else
        youngest = max((file.stat().st_ctime_ns for file in path.iterdir() if file.is_file()), default=0)
        for _ in range(100):
            if manifest.stat().st_ctime_ns > youngest:
                return
            time.sleep(0.001)
            os.utime(manifest)


def write_overlay(path: Path, facts: Mapping[str, Any], *, sync: bool = True, mode: int | None = None) -> Path:
    """Write an overlay without records of its own, completely or not at all, and return its folder.

    Args:
        path: Its folder.
        facts: The change, from `overlay_facts`.
        sync: Whether to sync it to disk.
        mode: The permissions of its files.
    """
    staged = path.with_name(f".{path.name}.recordkit")
    filesystems.remove_tree(staged)
    manifest = manifest_of(staged, lone=False)
    filesystems.make_folder(manifest.parent, sync=sync, mode=mode)
    filesystems.write_new(manifest, Manifest(schema=None, shards=(), metadata=facts).to_json(), sync=sync)
    filesystems.set_mode(manifest, mode)
    filesystems.sync_folder(manifest.parent, sync=sync)
    filesystems.sync_folder(staged, sync=sync)
    filesystems.rename_for_good(staged, path, sync=sync)
    return path


def remove_overlay(path: Path, *, sync: bool = True) -> None:
    """Remove an overlay, in one step as far as readers can see."""
    filesystems.refuse_links(path.parent.parent, path.parent)
    aside = path.with_name(f".{path.name}.removed")
    filesystems.remove_tree(aside)
    # Sync the new name before removing anything: half an overlay must not reappear under the old name.
    filesystems.rename_for_good(path, aside, sync=sync)
    try:
        filesystems.remove_tree(aside)
    except StorageError as error:
        log.warning("%s: removed, but some of its files are left: %s", path, error)


def forget(path: Path) -> None:
    """Remove the overlays of an earlier lone file with this name."""
    overlays = path.parent / SIDE / "overlays"
    gone = list(overlays.glob(".[0-9]*.removed"))  # left by a process that died
    for _, overlay in sorted(numbered_overlays(path.parent)):
        try:
            if Overlay.load(overlay, path.parent).base.keys() == {path.name}:
                remove_overlay(overlay)
        except StorageError as error:
            log.warning("%s: belongs to a file that was overwritten, and could not be removed: %s", overlay, error)
    with suppress(StorageError):  # what is left of them does no harm
        for aside in gone:
            filesystems.remove_tree(aside)


def overlay_facts(
    base: Sequence[Base],
    *,
    hides: Iterable[str] = (),
    deleted: Mapping[str, NDArray[np.int64]] | None = None,
    values: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the metadata for an overlay's manifest.

    Args:
        base: The files it is bound to.
        hides: The fields that readers no longer see.
        deleted: The numbers of deleted records, by file name.
        values: Fingerprints of the values that were passed in, by field.
    """
    return {
        KEY: {
            "base": [vars(of) for of in base],
            "hides": sorted(hides),
            "deleted": {name: _text(numbers) for name, numbers in (deleted or {}).items()},
            **({"values": dict(values)} if values else {}),
        }
    }


def is_other(begun: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Tell from their metadata whether two overlays are for different records."""
    return KEY in begun and KEY in facts and begun[KEY] != facts[KEY]


def _text(numbers: NDArray[np.int64]) -> str:
    """Return a compressed bitmap of the numbers, as text."""
    bits = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.bool_)
    bits[numbers] = True
    return base64.b64encode(zlib.compress(np.packbits(bits, bitorder="little").tobytes())).decode()
