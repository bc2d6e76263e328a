"""Check that each payload is an Example that matches the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from recordkit import examples
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.storage.read import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.records import Chunk

    from ._check import FileToCheck, Level, PassResult, RecordFacts

_MOST: Final = 1000  # if a file holds something else altogether, every record is bad


class ExamplesCheck:
    """Decodes every payload, and reports those that cannot be decoded."""

    level: Level = "examples"
    wants_payloads = True

    def __init__(self, file: FileToCheck) -> None:
        self._path = file.file.name
        self._schema = file.schema
        self._raw = file.compression is not None
        self._found = 0

    @classmethod
    def begin(cls, file: FileToCheck) -> Self | None:
        """Start if this level was asked for."""
        return cls(file) if file.level == cls.level else None

    def records(self, facts: RecordFacts) -> None:
        """Do nothing: this check looks at payloads."""

    def chunk(self, chunk: Chunk) -> list[Damage]:
        """Decode the payloads of a chunk, and return the damage."""
        found: list[Damage] = []
        if self._found < _MOST:
            for damage in self._wrong(chunk):
                found.append(damage)
                self._found += 1
                if self._found >= _MOST:
                    break
        return sorted(found, key=lambda damage: damage.record)

    def end(self, result: PassResult) -> list[str]:
        """Return a note if this check gave up."""
        return ["too many payloads are wrong: the rest was not checked"] if self._found >= _MOST else []

    def _wrong(self, chunk: Chunk) -> Iterator[Damage]:
        """Yield the damage. After each bad record, those before it and those after it are decoded again."""
        left = [(0, len(chunk))]
        while left:
            start, stop = left.pop()
            if start == stop:
                continue
            try:
                batch = self._read(chunk, start, stop)
            except (SchemaError, CorruptRecordError) as unfit:
                kind = "malformed" if isinstance(unfit, CorruptRecordError) else "schema"
                at = min(max((unfit.record or 0) - chunk.first_record, start), stop - 1)
                yield self._damage(chunk, at, kind, unfit)
                left += [(at + 1, stop), (start, at)]
            else:
                for row, error in self._more_wrong(batch):
                    yield self._damage(chunk, start + row, "bad_picture", error)

    def _more_wrong(self, batch: Any) -> Iterator[tuple[int, CorruptRecordError]]:
        """Yield the rows of a decoded batch with bad values, and the error about each."""
        yield from ()

    def _read(self, chunk: Chunk, start: int, stop: int) -> Any:
        if self._schema is None:
            problem = examples.survey(chunk, start, stop, path=self._path).problem
            if problem is not None:
                raise problem
            return {}
        batch = self._schema.decode(chunk, start=start, stop=stop, path=self._path)
        for name in batch.names:
            batch[name]
        return batch

    def _damage(self, chunk: Chunk, at: int, kind: str, error: SchemaError | CorruptRecordError) -> Damage:
        one = chunk.slice(at, at + 1)
        number, offset, length = one.first_record, one.file_offset, one.nbytes
        return Damage.from_error(
            error, self._path, kind=kind, record=number, offset=offset, length=length, raw=self._raw
        )
