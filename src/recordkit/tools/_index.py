"""Write indexes next to the files of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordkit import progress
from recordkit.errors import StorageError
from recordkit.filesystems import LocalFile
from recordkit.storage.find import locate
from recordkit.storage.read import RecordFile, write_text_index

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path


def index(
    where: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, text: bool = False, overwrite: bool = False
) -> tuple[Path, ...]:
    """Write an index next to each file, and return the paths.

    Reading does not require it: without one, recordkit makes an index on the first random access, and keeps it in a
    cache folder. Next to the data, everyone can use it. An index that already fits its file is kept.

    Args:
        where: As `recordkit.open` takes it.
        text: Write the text index of DALI and vahidk/tfrecord, `<file>.idx`, instead of recordkit's own.
        overwrite: Replace existing text indexes.

    Raises:
        StorageError: There are no files, or a folder is not writable.
        CorruptRecordError: A damaged length hides where the next record starts.

    >>> import tempfile, recordkit as rk
    >>> path = tempfile.mkdtemp() + "/a.tfrecord"
    >>> _ = rk.write(path, [{"id": 1}, {"id": 2}])
    >>> [found.name for found in index(path)], [found.name for found in index(path, text=True)]
    (['a.tfrecord.rki'], ['a.tfrecord.idx'])
    """
    files = locate(where).files
    written = []
    for done, path in enumerate(files):
        progress.step("indexing", done, len(files), "files")
        if text:
            written.append(write_text_index(path, overwrite=overwrite))
            continue
        try:
            written.append(RecordFile(LocalFile(path)).write_index())
        except OSError as error:
            message = f"{path}: its index cannot be written next to it: {error}"
            raise StorageError(message, path=str(path), errno=error.errno) from error
    progress.step("indexing", len(files), len(files), "files")
    return tuple(written)
