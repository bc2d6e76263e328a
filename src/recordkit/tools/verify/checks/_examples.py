"""Payloads: whether sound records hold what they should, and whether their pictures can be decoded to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import examples, images
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.schema import Field
from recordkit.storage import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.records import Chunk
    from recordkit.schema import Schema

_MOST: Final = 1000  # a file of something else altogether has as many as it has records


class Payloads:
    """Looks at the payloads of one file; may be called by many threads.

    Args:
        path: The file.
        schema: What every payload has to agree with; None if it has only to be an Example.
        pictures: Whether to decode pictures.
        raw: Whether the file is compressed.
    """

    def __init__(self, path: str, schema: Schema | None, *, pictures: bool, raw: bool) -> None:
        self._path = path
        self._schema = schema
        self._raw = raw
        self._pictures = _picture_fields(schema) if pictures and schema is not None else {}
        self._found = 0

    @property
    def gave_up(self) -> bool:
        """Whether so many payloads are wrong that the rest was not looked at."""
        return self._found >= _MOST

    def check(self, chunk: Chunk) -> list[Damage]:
        """Return what is wrong with the payloads of a chunk."""
        if self.gave_up:
            return []
        found = []
        for damage in self._wrong(chunk):
            found.append(damage)
            self._found += 1
            if self.gave_up:
                break
        return sorted(found, key=lambda damage: damage.record)

    def _wrong(self, chunk: Chunk) -> Iterator[Damage]:
        """Yield what is wrong: each time something is found, what stands before and behind it is looked at again."""
        left = [(0, len(chunk))]
        while left:
            start, stop = left.pop()
            if start == stop:
                continue
            try:
                batch = self._read(chunk, start, stop)
            except (SchemaError, CorruptRecordError) as error:
                kind = "malformed" if isinstance(error, CorruptRecordError) else "schema"
                at = min(max((error.record or 0) - chunk.first_record, start), stop - 1)
                yield self._damage(chunk, at, kind, error)
                left += [(at + 1, stop), (start, at)]
            else:
                for name, declared in self._pictures.items():
                    for row in np.flatnonzero(batch.valid(name)).tolist():
                        for bad in _bad_pictures(batch[name][row], declared=declared):
                            yield self._damage(chunk, start + row, "bad_picture", bad.but(place=name, field=name))

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


def _picture_fields(schema: Schema) -> dict[str, bool]:
    """Return the fields that may hold pictures, and whether they are declared to."""
    fields = {**schema.fields, **schema.sequences}
    dtypes = {name: declared.dtype for name, declared in fields.items() if isinstance(declared, Field)}
    return {name: dtype != "bytes" for name, dtype in dtypes.items() if dtype in ("jpeg", "png", "bytes")}


def _bad_pictures(value: Any, *, declared: bool) -> Iterator[CorruptRecordError]:
    """Yield what is wrong with the pictures of a value; of any bytes, only with what looks like a picture."""
    for data in _flat(value):
        if declared or images.kind(data):
            try:
                images.decode(data)
            except CorruptRecordError as error:
                yield error
            except SchemaError:
                pass  # a sound picture with more bits than can be given


def _flat(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif value is not None:
        for each in value:
            yield from _flat(each)
