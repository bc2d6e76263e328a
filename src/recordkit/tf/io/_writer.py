"""TFRecordWriter: writes records to one file, which appears under its name once it is complete."""

from __future__ import annotations

import errno
import os
import sys
import threading
import traceback
import warnings
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from recordkit import storage
from recordkit.errors import TargetExistsError
from recordkit.filesystems import refusing
from recordkit.storage.format import is_lone_file
from recordkit.tf.tensors import Tensor

from ._files import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

_COMPRESSIONS: Final[dict[str, Literal["gzip", "zlib"] | None]] = {"": None, "GZIP": "gzip", "ZLIB": "zlib"}


class TFRecordOptions:
    """How to write a file of records.

    Args:
        compression_type: `"GZIP"`, `"ZLIB"`, or `""` for none.
        flush_mode: Not used, as are all others but the level.
        input_buffer_size: Not used.
        output_buffer_size: Not used.
        window_bits: Not used.
        compression_level: How hard to compress, 0 to 9.
        compression_method: Not used.
        mem_level: Not used.
        compression_strategy: Not used.

    >>> TFRecordOptions("GZIP").compression_type
    'GZIP'
    """

    def __init__(
        self,
        compression_type: str | None = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.compression_type = compression_type
        self.compression_level = compression_level
        self.get_compression_type_string(compression_type)

    @classmethod
    def get_compression_type_string(cls, options: TFRecordOptions | str | None) -> str:
        """Return the compression that options, or its name, ask for."""
        name = (options.compression_type if isinstance(options, TFRecordOptions) else options) or ""
        if name not in _COMPRESSIONS:
            message = f'Not a valid compression_type: "{name}"\n  There are "GZIP", "ZLIB" and "".'
            raise ValueError(message)
        return name


class TFRecordWriter:
    """Writes payloads to one file, which replaces any file of that name when the writer is closed.

    The file is complete or absent: if the `with` block ends with an exception, nothing is published. A writer that is
    never closed is published with a warning when it is garbage-collected, at the latest when Python exits; unless an
    exception is being handled at that time.

    Args:
        path: The file.
        options: `TFRecordOptions`, or the name of a compression.

    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/numbers.tfrecord"
    >>> with TFRecordWriter(path) as writer:
    ...     writer.write(b"payload")
    >>> import recordkit as rk
    >>> len(rk.open(path, raw=True))
    1
    """

    def __init__(self, path: str | os.PathLike[str], options: TFRecordOptions | str | None = None) -> None:
        self._writer: storage.Writer | None = None
        self._path = path_of(path)
        level = options.compression_level if isinstance(options, TFRecordOptions) else None
        compression = _COMPRESSIONS[TFRecordOptions.get_compression_type_string(options)]
        with _as_file(self._path):
            self._writer = storage.create(
                self._path, compression=compression, level=6 if level is None else level, overwrite=True
            )
        # An exception that is already being handled here has nothing to do with this writer.
        self._handled = sys.exc_info()[1]
        _open.add(self)

    def write(self, record: Any) -> None:
        """Write a payload: bytes, or a tensor of them."""
        payload = record.numpy() if isinstance(record, Tensor) else record
        if not isinstance(payload, bytes | bytearray | memoryview):
            message = (
                f"{self._path}: a record must be bytes, found {type(record).__name__}\n  Call .SerializeToString()."
            )
            raise TypeError(message)
        self._opened().write_raw(payload)

    def flush(self) -> None:
        """Flush what was written so far to a file, not yet under its final name."""
        self._opened().flush()

    def close(self) -> None:
        """Finish the file and publish it under its name; closing again does nothing."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _opened(self) -> storage.Writer:
        if self._writer is None:
            message = f"{self._path}: Writer is closed."
            raise ValueError(message)
        return self._writer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._abort()

    def _abort(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort()

    def __del__(self) -> None:
        if getattr(self, "_writer", None) is not None:
            self.settle(sys.exc_info()[1])

    def settle(self, under_way: BaseException | None) -> None:
        """Publish the file of an unclosed writer, or discard it if an exception is the reason."""
        if self._writer is None:
            return
        if under_way is not None and under_way is not self._handled:
            self._abort()
            end = "an exception is being handled, so the file is discarded"
        else:
            self.close()
            end = "the file is published as it is"
        message = f"{self._path}: a TFRecordWriter was never closed; {end}\n  Use it in a with statement."
        warnings.warn(message, RuntimeWarning, stacklevel=2)


@contextmanager
def _as_file(path: Path) -> Iterator[None]:
    """Make storage treat the target as a file, whatever its name: an empty file exists during the block."""
    if is_lone_file(path) or path.is_dir():
        yield
        return
    if os.path.lexists(path):
        message = f"{path}: exists and is not a file\n  Choose another name."
        raise TargetExistsError(message, path=str(path), errno=errno.EEXIST)
    with refusing(path, "be made"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


_open: weakref.WeakSet[TFRecordWriter] = weakref.WeakSet()


def _settle_all() -> None:
    """Publish what is still open when Python exits; an exception that ended it is known by then."""
    under_way = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    for writer in list(_open):
        try:
            writer.settle(under_way)
        except Exception:
            traceback.print_exc()  # and continue with the others


def _forget_all() -> None:
    for writer in list(_open):
        writer._writer = None  # it belongs to the parent process


# Not `atexit`: it runs after the threads that compress have stopped.
threading._register_atexit(_settle_all)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_forget_all)
