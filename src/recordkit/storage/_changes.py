"""Changes: one at a time to the files of a folder and to what is kept beside them, whatever process makes it.

The lock is a file in the side folder, there only while it is held. Reading needs none. A dataset that is replaced as a
whole takes the lock with it, so whoever waited for it looks again under the name.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from recordkit.errors import StorageError

from . import _disk, _names
from ._staging import Lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

WAIT = 30.0  # seconds, many times what it takes to publish something
_held = threading.local()


@contextmanager
def changing(folder: Path, *, wait: float = WAIT) -> Iterator[None]:
    """Keep others from changing the files of a folder, and what is beside them, inside the block.

    The block may hold another one for the same folder.

    Raises:
        TargetBusyError: Somebody else is changing them, and was not done in time.
    """
    held: set[Path] = _held.__dict__.setdefault("folders", set())
    if folder in held:
        yield
        return
    side = folder / _names.SIDE
    if side.is_symlink():
        message = f"{side}: expected a folder, found a link\n  Nothing is written through it. Put the folder there."
        raise StorageError(message, path=str(side))
    lock = Lock(side / "lock", folder, wait=wait, root=folder)
    held.add(folder)
    try:
        yield
    finally:
        held.discard(folder)
        lock.remove()
        _disk.remove_empty(side)  # where it was made for the lock


def changing_target(target: Path, *, wait: float = WAIT) -> AbstractContextManager[None]:
    """Do the same for the folder of a target, if the target is there: a new one is nobody else's yet."""
    if target.is_dir():
        return changing(target, wait=wait) if (target / _names.SIDE).is_dir() else nullcontext()
    return changing(target.parent, wait=wait) if target.is_file() else nullcontext()
