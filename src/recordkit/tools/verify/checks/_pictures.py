"""Check that each JPEG and PNG decodes completely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import images
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.schema import Field

from ._examples import ExamplesCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.schema import Schema

    from ._check import FileToCheck


class PicturesCheck(ExamplesCheck):
    """Checks Examples, and the pictures in the good ones. Each payload is decoded once for both."""

    level = "images"

    def __init__(self, file: FileToCheck) -> None:
        super().__init__(file)
        self._pictures = _picture_fields(file.schema) if file.schema is not None else {}

    def _more_wrong(self, batch: Any) -> Iterator[tuple[int, CorruptRecordError]]:
        """Yield the rows whose pictures cannot be decoded, and the error about each."""
        for name, declared in self._pictures.items():
            for row in np.flatnonzero(batch.valid(name)).tolist():
                for error in _bad_pictures(batch[name][row], declared=declared):
                    yield row, error.but(place=name, field=name)


def _picture_fields(schema: Schema) -> dict[str, bool]:
    """Return the fields that may hold pictures, and whether they are declared as such."""
    fields = {**schema.fields, **schema.sequences}
    dtypes = {name: declared.dtype for name, declared in fields.items() if isinstance(declared, Field)}
    return {name: dtype != "bytes" for name, dtype in dtypes.items() if dtype in ("jpeg", "png", "bytes")}


def _bad_pictures(value: Any, *, declared: bool) -> Iterator[CorruptRecordError]:
    """Yield the errors of the pictures in a value. Undeclared bytes count only if they look like a picture."""
    for data in _flat(value):
        if declared or images.kind(data):
            try:
                images.decode(data)
            except CorruptRecordError as error:
                yield error
            except SchemaError:
                pass  # intact, but with more bits than can be decoded


def _flat(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif value is not None:
        for each in value:
            yield from _flat(each)
