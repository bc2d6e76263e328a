"""Bytes: where those of a file come from, at any place, whatever kind of file it is."""

from __future__ import annotations

import errno
import os
import resource
import select
import stat
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Protocol, runtime_checkable

from recordkit import _core
from recordkit.errors import StorageError

from ._local_writes import TOO_MANY, TOO_MANY_CODES
from ._map_limit import mapped_at_most
from ._pieces import cut_short, read_piece

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_KEPT = 8 << 20
WAIT_FOR_WRITER = 30.0  # seconds, of a pipe that has a name
UNKNOWN_SIZE = 1 << 62  # of a pipe that has not ended
_MAPPED_AT_ONCE = 64 << 10  # what the system maps of a file when one place of it is touched

_MOST_OPEN = 128  # files of one dataset; of more, some are closed while others are read
_MOST_ROOM = 1024  # files that all datasets together keep open, wherever the system would allow more

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path) -> int:
    """Return the descriptor of a file, opened for reading. Nothing is waited for, as it would be at a pipe.

    Raises:
        StorageError: It is no file but a folder, a pipe, a socket or a device.
        OSError: It cannot be opened.
    """
    _check_regular(path, path.stat().st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _check_regular(path, os.fstat(descriptor).st_mode)  # it may have changed since
    except StorageError:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        found = _KINDS.get(stat.S_IFMT(mode), "something else")
        message = f"{path}: expected a file, found {found}\n  Put the file itself in its place, or take it away."
        raise StorageError(message, path=str(path))


def unreadable(path: Path, error: OSError) -> StorageError:
    """Return the error for a file or folder that the system does not let us read."""
    message = f"{path}: cannot be read: {os.strerror(error.errno or 0)}"
    if error.errno in TOO_MANY_CODES:
        message += f"\n  {TOO_MANY}"
    return StorageError(message, path=str(path), errno=error.errno)


class ByteFile(Protocol):
    """What can be read at any place, from many threads.

    Attributes:
        name: What errors call it.
        size: How many bytes there are.
    """

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        ...


@runtime_checkable
class Watched(Protocol):
    """A file that can tell whether it became shorter."""

    def check_uncut(self) -> None:
        """Raise an error if it has fewer bytes than it had."""
        ...


class LocalFile:
    """A file of this machine, opened when it is first read.

    Pickling keeps the path, and what the file was first; the copy opens the file again.

    Args:
        path: Where it is.
        had: How many bytes it is known to have had.
        written: When it was last written to then, in nanoseconds.
    """

    def __init__(self, path: Path, had: int = 0, written: int = 0) -> None:
        self.path = path
        self.had = had
        self._written = written
        self.name = str(path)
        self._descriptor = -1
        self._lock = threading.Lock()
        self._map: _core.FileMap | None = None
        self._was_mapped = False
        self._reads = 0

    @property
    def size(self) -> int:
        """The size now, asked of the system each time. The file is not opened for it."""
        return self._facts().st_size

    def _facts(self) -> os.stat_result:
        return os.fstat(self._descriptor) if self._descriptor >= 0 else self.stat()

    def stat(self) -> os.stat_result:
        """Return what the system knows of what is now under this name.

        Raises:
            StorageError: Nothing is, or it may not be known.
        """
        try:
            return self.path.stat()
        except OSError as error:
            raise unreadable(self.path, error) from error

    def again(self) -> LocalFile:
        """Return the same file, to be opened and closed by itself. What it was first is known to both."""
        if not self._written:
            self._note(self._facts())
        return LocalFile(self.path, self.had, self._written)

    def _note(self, facts: os.stat_result) -> None:
        self.had = max(self.had, facts.st_size)
        self._written = self._written or facts.st_mtime_ns

    @property
    def descriptor(self) -> int:
        """The open file's."""
        if self._descriptor < 0:
            with self._lock:
                if self._descriptor < 0:
                    self._descriptor = self._opened()
        return self._descriptor

    def _opened(self) -> int:
        try:
            descriptor = open_regular(self.path)
            self._note(os.fstat(descriptor))
            return descriptor
        except StorageError:
            raise
        except OSError as error:
            raise unreadable(self.path, error) from error

    def is_as_opened(self) -> bool:
        """Whether nothing was written to it since it was first opened, as far as its time tells."""
        return self._facts().st_mtime_ns == self._written

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        pieces, left = [], size
        while left:
            piece = os.pread(self.descriptor, left, offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            left -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def map(self) -> _core.FileMap | None:
        """The open file as memory, once it is read at so many places that a map takes less time than reading."""
        if self._map is not None and not self._map.is_whole:
            self._map = None
        elif self._reads and not self._was_mapped:
            self._map_if_worth_it()
        return self._map

    def _map_if_worth_it(self) -> None:
        if self._reads * _MAPPED_AT_ONCE < os.fstat(self.descriptor).st_size:
            return
        with self._lock:
            if not self._was_mapped:
                self._map = _core.map_file(self._descriptor, mapped_at_most())
                self._was_mapped = True

    def was_read(self, places: int) -> None:
        """Take notice that the open file was read at so many places, each by itself."""
        self._reads += places

    def will_be_read(self, places: int) -> None:
        """Take notice that it will be, before it is closed, unless others want to be open."""
        self._reads = max(self._reads, places)

    def close(self) -> None:
        """Let go of the descriptor; reading again opens the file again."""
        self._map, self._was_mapped, self._reads = None, False, 0
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # Bound here: at the end of a program, this can be called after the modules were emptied.
        if self._descriptor >= 0:
            close(self._descriptor)

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFile, (self.path, self.had, self._written)


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
        """Return how many of these files may stay open, which are a few at least."""
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
        """Wait until there is room for so many files to be open at once, and keep it meanwhile."""
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
        """Take notice that this process was forked: what threads had at that moment, nobody has here."""
        self._at_once, self._free = 0, threading.Condition()


_room = _Room()
os.register_at_fork(after_in_child=_room.forget)


def files_at_once() -> int:
    """Return how many files may be read by one call, which are all open meanwhile."""
    return min(_MOST_OPEN, _room.size // 2)


class OpenFiles:
    """Keeps files open that are read now and then, yet never more than `most` of them.

    Args:
        most: How many stay open when nobody uses them.
        files: How many files there are at all. Where there is room for all, none is ever closed.
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
        """Return what keeps as many of so many files open as there is room for in this process."""
        granted = _room.grant(files)
        made = cls(granted, files)
        made._granted = True
        weakref.finalize(made, _room.return_, granted)
        return made

    def several(self, files: int) -> AbstractContextManager[None]:
        """Keep room for so many files that are borrowed at once."""
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
        """Let the file be closed when others are wanted."""
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
    # A function of the module: cloudpickle pickles a class's own methods by value, with all they use.
    return OpenFiles.of(files)


class LentFile:
    """A file of this machine that stays open between reads only as long as there is room for it."""

    def __init__(self, file: LocalFile, open_files: OpenFiles) -> None:
        self._file = file
        self._open_files = open_files

    @property
    def name(self) -> str:
        """The path."""
        return self._file.name

    @property
    def size(self) -> int:
        """The size now."""
        return LocalFile(self._file.path).size

    def check_uncut(self) -> None:
        """Raise an error if it has fewer bytes than it had."""
        check_uncut(self._file)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        try:
            self._open_files.borrow(self._file)
            return self._file.read_at(offset, size)
        finally:
            self._open_files.give_back(self._file)


class ObjectFile:
    """A seekable file object that someone else opened and will close."""

    def __init__(self, file: IO[bytes], name: str | None = None) -> None:
        self._file = file
        own = getattr(file, "name", None)
        self.name = name or (own if isinstance(own, str) else f"<{type(file).__name__}>")
        self._lock = threading.Lock()
        with self._lock:
            self.size = file.seek(0, os.SEEK_END)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        with self._lock:
            self._file.seek(offset)
            return _read_all(self._file, size)

    def check_uncut(self) -> None:
        """Raise an error if it has fewer bytes than when it was given."""
        with self._lock:
            now = self._file.seek(0, os.SEEK_END)
        if now < self.size:
            raise cut_short(self.name, self.size, now, record=None, offset=None)


class PipeFile:
    """What can only be read from front to back, such as the standard input.

    The beginning is kept, so that it can be looked at before it is read.
    """

    def __init__(self, file: IO[bytes]) -> None:
        own = getattr(file, "name", None)
        self.name = own if isinstance(own, str) else f"<{type(file).__name__}>"
        self._file = file
        self._kept = bytearray()
        self._at = 0
        self._ended = False
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many bytes there are; of a pipe that has not ended, more than there can be."""
        return self._at if self._ended else UNKNOWN_SIZE

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end.

        Raises:
            StorageError: They have been read already, or are not the next ones.
        """
        with self._lock:
            known = bytes(self._kept[offset : offset + size])
            if len(known) == size or (self._ended and offset + len(known) >= self._at):
                return known
            if offset + len(known) != self._at:
                message = (
                    f"{self.name}: a pipe is read once, from front to back\n"
                    "  Save it to a file to count its records, read them in any order or read them twice."
                )
                raise StorageError(message, path=self.name)
            return known + self._next(size - len(known))

    def _next(self, size: int) -> bytes:
        piece = _read_all(self._file, size)
        if self._at == len(self._kept) and self._at < _KEPT:
            self._kept += piece
        self._at += len(piece)
        self._ended = len(piece) < size
        return piece


def kind_of(mode: int) -> str | None:
    """Return what is under a name if it is no file and no folder, from its mode; None if it is."""
    return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else _KINDS.get(stat.S_IFMT(mode), "something else")


def _named_pipe(path: str | os.PathLike[str]) -> PipeFile | None:
    """Return the pipe under a name, such as `/dev/stdin` or what a shell makes of `<(…)`; None if it is none.

    Raises:
        StorageError: It cannot be opened, or no program opens it for writing in time.
    """
    try:
        if not stat.S_ISFIFO(os.stat(path).st_mode):  # noqa: PTH116 - it may be text that no path can be
            return None
        # Opened to be waited for: otherwise opening it takes until another program writes, which may be never.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        return None
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ENAMETOOLONG:
            return None
        message = f"{os.fspath(path)}: cannot be read: {os.strerror(error.errno or 0)}"
        raise StorageError(message, path=os.fspath(path), errno=error.errno) from error
    file = open(path, "rb", opener=lambda *_: descriptor)  # noqa: SIM115 - it stays open as long as it is read
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    # What a shell makes of `<(…)` has its writer already, which may take its time.
    is_connected = os.path.realpath(path).startswith(("/proc/", "/dev/"))
    if not is_connected and not waiting.poll(1000 * WAIT_FOR_WRITER):
        file.close()
        message = (
            f"{os.fspath(path)}: this is a pipe, and no program wrote into it within {WAIT_FOR_WRITER:g} seconds\n"
            "  Start the program that writes first, or pass an open file."
        )
        raise StorageError(message, path=os.fspath(path))
    os.set_blocking(descriptor, True)
    pipe = PipeFile(file)
    weakref.finalize(pipe, file.close)
    return pipe


def check_uncut(file: ByteFile, record: int | None = None, offset: int | None = None) -> None:
    """Raise an error if a file has fewer bytes than it had; of those that cannot tell, nothing is asked.

    Args:
        file: The file, at whose end a reader has come, or about which something is wrong.
        record: The number of the record that the reader is at.
        offset: Where that starts.

    Raises:
        CorruptRecordError: It became shorter while it was read.
    """
    if isinstance(file, LocalFile):
        size = file.size
        if size < file.had:
            raise cut_short(file.name, file.had, size, record=record, offset=offset)
    elif isinstance(file, Watched):
        file.check_uncut()


def _read_all(file: IO[bytes], size: int) -> bytes:
    """Return `size` bytes; fewer only at the end."""
    pieces, left = [], size
    while left and len(piece := read_piece(file, left)):
        pieces.append(piece)
        left -= len(piece)
    return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)


def given_file(where: Any) -> ByteFile | None:
    """Return the file that the caller opened, the standard input for `"-"`, or the pipe of a name; None for others.

    Raises:
        StorageError: The pipe cannot be opened.
        TypeError: It is nothing that could be read.
    """
    if where == "-":
        where = sys.stdin.buffer
    if isinstance(where, str | os.PathLike | Sequence) and not isinstance(where, bytes):
        return _named_pipe(where) if isinstance(where, str | os.PathLike) else None
    if not hasattr(where, "read"):
        message = f"expected a path, a list of paths or an open file, found {type(where).__name__}"
        raise TypeError(message)
    seekable = getattr(where, "seekable", None)
    return ObjectFile(where) if seekable is not None and seekable() else PipeFile(where)
