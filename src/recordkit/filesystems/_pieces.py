"""Pieces: reads a piece of a file object, and makes the errors for a file that changed meanwhile."""

from __future__ import annotations

from typing import IO, Any, cast

from recordkit.errors import CorruptRecordError, record_place

REPLACE_BY_RENAMING = (
    "Read it again from its start. To replace a file that may be read meanwhile, write a new one and rename it, "
    "as recordkit.write does."
)


def cut_short(path: str | None, had: int, size: int, *, record: int | None, offset: int | None) -> CorruptRecordError:
    """Return the error for a file that became shorter while it was read.

    Args:
        path: The file.
        had: How many bytes it had.
        size: How many it has.
        record: The number of the record that was being read, if known.
        offset: Where it starts.
    """
    place = record_place(path) if offset is None else record_place(path, record, offset)
    words = f"the file became shorter while it was read: it had {had} bytes, and has {size} now"
    return CorruptRecordError(
        words, place=place, advice=REPLACE_BY_RENAMING, path=path, record=record, offset=offset, kind="cut_short"
    )


def written_over(path: str | None) -> CorruptRecordError:
    """Return the error for a file whose bytes differ from those read before."""
    words = "the file was written over while it was read"
    return CorruptRecordError(
        words, place=record_place(path), advice=REPLACE_BY_RENAMING, path=path, kind="written_over"
    )


def read_piece(file: IO[bytes], size: int) -> bytes:
    """Return up to `size` bytes of an object with `read`; none at its end.

    Raises:
        TypeError: It returns anything but up to `size` bytes.
    """
    piece: Any = file.read(size)
    if isinstance(piece, str):
        message = f"{name_of(file) or type(file).__name__}: expected bytes, found text\n  Open it in mode 'rb'."
        raise TypeError(message)
    if piece is None or len(piece) > size:
        found = "None" if piece is None else f"{len(piece):,}"
        message = f"{name_of(file) or type(file).__name__}: read({size}) gave {found}, and not up to {size:,} bytes"
        raise TypeError(message)
    return cast("bytes", piece)


def name_of(file: int | IO[bytes]) -> str | None:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else None
