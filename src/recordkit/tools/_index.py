"""Index: where records are, kept beside the files for whoever reads them next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordkit import progress
from recordkit.errors import StorageError
from recordkit.storage import LocalFile, RecordFile, locate, write_text_index

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path


def index(
    where: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, text: bool = False, overwrite: bool = False
) -> tuple[Path, ...]:
    """Write an index beside each file, and return where they are.

    Reading needs none: one is made when records are first asked for by number, and kept in a cache folder. Beside the
    data it serves everyone. An index that fits its file already is left as it is.

    Args:
        where: As `recordkit.open` takes it.
        text: Write the text index of DALI and vahidk/tfrecord, `<file>.idx`, instead of recordkit's own.
        overwrite: Replace text indexes that are there.

    Raises:
        StorageError: Nothing is there, or a file's folder cannot be written to.
        CorruptRecordError: Where the next record of a file starts cannot be told.

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
            message = f"{path}: its index cannot be kept beside it: {error}"
            raise StorageError(message, path=str(path), errno=error.errno) from error
    progress.step("indexing", len(files), len(files), "files")
    return tuple(written)
