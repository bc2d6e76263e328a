"""Open files: how many files of a dataset stay open, and for how long."""

from __future__ import annotations

import os
import resource
import threading
import weakref
from collections import OrderedDict
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from ._local import LocalFile
from ._protocol import ByteFile

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from typing import Any

_MOST_OPEN = 128  # files of one dataset; beyond that, some are closed while others are read
_MOST_ROOM = 1024  # files that all datasets together keep open, even if the system allows more


class _Room:
    """How many files all datasets of the process may keep open: a quarter of what the system allows."""

    def __init__(self) -> None:
        self._granted = 0
        self._at_once = 0
        self._free = threading.Condition()

    @property
    def size(self) -> int:
        """How many files."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return _MOST_ROOM if limit == resource.RLIM_INFINITY else min(_MOST_ROOM, max(16, limit // 4))

    def grant(self, files: int) -> int:
        """Return how many of these files may stay open; always a few."""
        with self._free:
            granted = min(files, _MOST_OPEN, max(self.size // 4, self.size - self._granted))
            self._granted += granted
        return granted

    def return_(self, granted: int) -> None:
        """Take back what was granted."""
        with self._free:
            self._granted -= granted

    @contextmanager
    def several(self, files: int) -> Generator[None, None, None]:
        """Wait until this many files may be open at once, and reserve that room inside the block."""
        with self._free:
            self._free.wait_for(lambda: not self._at_once or self._at_once + files <= self.size)
            self._at_once += files
        try:
            yield
        finally:
            with self._free:
                self._at_once -= files
                self._free.notify_all()

    def forget(self) -> None:
        """Reset after a fork: threads of the parent hold nothing here."""
        self._at_once, self._free = 0, threading.Condition()


_room = _Room()
os.register_at_fork(after_in_child=_room.forget)


def files_at_once() -> int:
    """Return how many files one call may read; all of them are open meanwhile."""
    return min(_MOST_OPEN, _room.size // 2)


class OpenFiles:
    """Keeps files open between reads, but at most `most` of them.

    Args:
        most: How many stay open while nobody uses them.
        files: The total number of files. If there is room for all, none is ever closed.
    """

    def __init__(self, most: int, files: int | None = None) -> None:
        self._most = most
        self._all_stay = files is not None and files <= most
        self._files = files
        self._granted = False
        self._users: OrderedDict[LocalFile, int] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, files: int) -> OpenFiles:
        """Keep as many of `files` files open as there is room for in this process."""
        granted = _room.grant(files)
        made = cls(granted, files)
        made._granted = True
        weakref.finalize(made, _room.return_, granted)
        return made

    def several(self, files: int) -> AbstractContextManager[None]:
        """Reserve room to borrow this many files at once."""
        return nullcontext() if self._all_stay else _room.several(files)

    def borrow(self, file: LocalFile) -> int:
        """Return the descriptor, which stays open until `give_back`."""
        if self._all_stay:
            return file.descriptor
        with self._lock:
            self._users[file] = self._users.get(file, 0) + 1
            self._users.move_to_end(file)
        return file.descriptor

    def give_back(self, file: LocalFile) -> None:
        """Let the file be closed when others need room."""
        if self._all_stay:
            return
        with self._lock:
            self._users[file] -= 1
            if len(self._users) > self._most:
                idle = next((old for old, users in self._users.items() if not users), None)
                if idle is not None:
                    del self._users[idle]
                    idle.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_granted, (self._files,)) if self._granted else (OpenFiles, (self._most, self._files))


def _granted(files: int) -> OpenFiles:
    # A function of the module: cloudpickle pickles methods of a class by value, with everything they use.
    return OpenFiles.of(files)


class LentFile(ByteFile):
    """A file of this machine that stays open between reads only as long as there is room for it."""

    def __init__(self, file: LocalFile, open_files: OpenFiles) -> None:
        self.name = file.name
        self._file = file
        self._open_files = open_files

    @property
    def size(self) -> int:
        """The current size."""
        return LocalFile(self._file.path).size

    def check_not_truncated(self, record: int | None = None, offset: int | None = None) -> None:
        """Raise if the file became shorter."""
        self._file.check_not_truncated(record, offset)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        try:
            self._open_files.borrow(self._file)
            return self._file.read_at(offset, size)
        finally:
            self._open_files.give_back(self._file)
