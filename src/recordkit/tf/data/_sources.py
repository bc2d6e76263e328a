"""Sources: files that are opened when they are read, and caches that behave like TensorFlow's."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recordkit import _core, dataset
from recordkit.dataset import PayloadDecoder
from recordkit.errors import NotFoundError
from recordkit.filesystems import given_path, mode_of
from recordkit.pipeline import CacheSource, Source

if TYPE_CHECKING:
    from recordkit.dataset import RecordRange
    from recordkit.records import Chunk


class PackedPayloads(Sequence[bytes]):
    """Payloads that stay in their chunk until someone looks at them: a batch of them is parsed without copies."""

    __slots__ = ("chunk",)

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk

    def __len__(self) -> int:
        return len(self.chunk)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.chunk)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return next(iter(self.chunk.slice(index, index + 1)))
        start, stop, _ = index.indices(len(self))
        return PackedPayloads(self.chunk.slice(start, max(start, stop)))


class _PackedDecoder(PayloadDecoder):
    """Returns records as packed payloads."""

    def decode(self, records: RecordRange, start: int, stop: int) -> Any:
        return PackedPayloads(records.chunk.slice(start, stop))

    def describe(self) -> list[Any]:
        return ["_Packing"]  # the word that caches on disk have for it

    def joined(self, parts: Sequence[RecordRange]) -> Any:
        return PackedPayloads(_core.join([part.chunk for part in parts])) if parts else []


@dataclass(frozen=True)
class Files(Source):
    """The payloads of files. The files are opened when they are read, and need not exist before.

    Attributes:
        tolerant: Whether damaged records are skipped.
        most: How many records to read at a time, at most.
    """

    paths: tuple[str, ...]
    tolerant: bool = False
    most: int | None = None

    @property
    def name(self) -> str:
        """The name of the file, or how many there are."""
        return self.paths[0] if len(self.paths) == 1 else f"{len(self.paths)} files"

    @property
    def gives_lists(self) -> bool:
        """Whether a batch is a list."""
        return bool(self._opened.gives_lists)

    @cached_property
    def _opened(self) -> Any:
        for path in self.paths:
            if not mode_of(given_path(path)):
                message = f"{path}: there is no such file"
                raise NotFoundError(message, path=path, errno=errno.ENOENT)
        opened = dataset.open(list(self.paths), raw=True, on_error="skip" if self.tolerant else "raise")
        # As in TensorFlow, files are read from front to back. To skip damaged records, each one has to be checked.
        decoder = _PackedDecoder() if opened.source.exact else opened.source.decoder
        return replace(opened.source, decoder=decoder, sequential=True, most_rows=self.most)

    def as_records(self) -> Any:
        """Return the records of the files, which are opened now."""
        return self._opened

    def count(self) -> int:
        """Return how many records there are."""
        return int(self._opened.count())

    def digest(self) -> str:
        """Return an identity of the records."""
        return str(self._opened.digest())

    def describe(self) -> list[Any]:
        """Return what is decoded."""
        return list(self._opened.describe())

    def summary(self) -> str:
        """Return the name, and how many files there are."""
        return str(self._opened.summary())

    def permissions(self) -> int | None:
        """Return the permissions that all files allow."""
        mode: int | None = self._opened.permissions()
        return mode


@dataclass(frozen=True)
class Cache(CacheSource):
    """Elements that are made once. They are kept once all of them were asked for."""

    indexed = False

    def may_use(self, fingerprint: str | None) -> bool:
        """Use any existing cache, as TensorFlow does, but warn if it was made of something else."""
        if fingerprint and fingerprint != self.fingerprint:
            message = (
                f"{self.path}: this cache was made from other records or steps, and is used anyway\n"
                "  Remove the folder to rebuild it."
            )
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        return bool(fingerprint)
