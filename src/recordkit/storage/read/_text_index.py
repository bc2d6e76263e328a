"""Text indexes: the index files of DALI and vahidk/tfrecord, with a line per record: its offset and size.

They name no file and have no checksum, so they are compared with the file's headers before they are used.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from recordkit import filesystems
from recordkit.errors import StorageError, TargetExistsError
from recordkit.filesystems import LocalFile, given_path
from recordkit.storage.format import FormatMismatch, read_small

from ._record_file import RecordFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LINE_BYTES: Final = 64  # two numbers of up to 20 digits, and room for spaces


def write_text_index(
    path: str | os.PathLike[str], index: str | os.PathLike[str] | None = None, *, overwrite: bool = False
) -> Path:
    """Write the text index of a plain file, as DALI's `tfrecord2idx` does, and return where it is.

    Args:
        path: The file of records.
        index: Where to write it; by default next to the file, as its name with `.idx` appended.
        overwrite: Replace an existing index.

    Raises:
        StorageError: The file is compressed, or the index exists.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/a.tfrecord"
    >>> _ = rk.write(path, [{"id": 1}, {"id": 2}])
    >>> print(write_text_index(path).read_text(), end="")
    0 31
    31 31
    """
    file = RecordFile(LocalFile(Path(given_path(path))))
    if file.compression is not None:
        message = f"{path}: a text index is of plain files, and this one is {file.compression}"
        raise StorageError(message, path=str(path))
    target = Path(given_path(f"{path}.idx" if index is None else index))
    starts, sizes = file.places()
    lines = "".join(f"{start} {size}\n" for start, size in zip(starts.tolist(), sizes.tolist(), strict=True))
    if target.exists() and not overwrite:
        message = f"{target}: the index already exists\n  Pass overwrite=True to replace it."
        raise TargetExistsError(message, path=str(target))
    filesystems.replace_file(target, lines.encode())
    return target


def read_text_index(
    path: str | os.PathLike[str], index: str | os.PathLike[str]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the offsets and sizes in a text index, after checking all of them against the file.

    Raises:
        StorageError: It is not a text index, or it belongs to another file.
    """
    where = Path(given_path(index))
    starts, sizes = RecordFile(LocalFile(Path(given_path(path)))).places()
    try:
        data = read_small(where, (len(starts) + 1) * _LINE_BYTES)
        numbers = np.loadtxt(io.BytesIO(data), np.uint64, ndmin=2) if data.strip() else np.empty((0, 2), np.uint64)
    except FormatMismatch as mismatch:
        message = f"{index}: not the index of {path}, which has {len(starts):,} records: {mismatch}"
        raise StorageError(message, path=str(index)) from None
    except ValueError as error:
        message = f"{index}: not a text index: {error}\n  Expected a record's offset and size on each line."
        raise StorageError(message, path=str(index)) from None
    except OSError as error:
        message = f"{index}: cannot be read: {os.strerror(error.errno or 0)}"
        raise StorageError(message, path=str(index), errno=error.errno) from None
    if not np.array_equal(numbers, np.stack([starts, sizes], axis=1)):
        message = (
            f"{index}: not the index of {path}: it has {len(numbers)} records, and the file has {len(starts)}"
            f"{' at other places' if len(numbers) == len(starts) else ''}\n"
            "  Files and indexes may be listed in different orders; recordkit.storage.write_text_index makes a new one."
        )
        raise StorageError(message, path=str(index))
    return starts, sizes
