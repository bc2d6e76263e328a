"""Plans: how to decode one selection of a schema's fields."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import Batch, BytesColumn
from recordkit.errors import SchemaError
from recordkit.examples import Decoded, Decoder, Feature

from ._columns import Column, read
from ._field import decoded_field, missing_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recordkit.examples import Unread
    from recordkit.records import Chunk, Reader
    from recordkit.schema.declare import Layout


class Plan:
    """Decodes one selection of a schema's fields. Made once, and used for every chunk by any thread."""

    def __init__(self, layouts: Sequence[Layout], *, sequence: bool) -> None:
        self._layouts = {layout.name: layout for layout in layouts}
        layouts = list(self._layouts.values())  # a field selected twice counts once
        self._optional = [layout for layout in layouts if layout.field.optional]
        self._decoder = Decoder(_features(layouts), sequence=sequence)
        self._makers = [(layout.name, layout, self._block_of(layout), _maker(layout)) for layout in layouts]
        self._shaped = [
            (layout.name, layout.sizes) for _, layout, block_kind, _ in self._makers if block_kind and layout.sizes
        ]
        self._numbers = self._only_numbers()
        self._row_makers = [
            (layout.name, layout if layout.field.optional else None, self._row_maker(layout)) for layout in layouts
        ]

    def _block_of(self, layout: Layout) -> str | None:
        """Return "int64" or "float" if a column is a slice of a decoded block of numbers; None if not."""
        _, kind, _, where = self._decoder.places(1)[layout.name]
        return kind if where is not None and _maker(layout) is not _column else None

    def _row_maker(self, layout: Layout) -> Callable[[Decoded, int, str | None], Any]:
        """Return the function that makes a field's value for one record, with shortcuts for common types."""
        if self._block_of(layout):
            _, kind, _, where = self._decoder.places(1)[layout.name]
            assert where is not None
            if layout.sizes:
                return partial(_number, kind == "int64", where, layout.sizes)
            return partial(_one_number, kind == "int64", where.start)
        plain = layout.storage == "list" and not layout.steps and layout.field.default is None
        if plain and layout.shape == (None,) and layout.dtype in ("int64", "float32"):
            return partial(_numbers, layout.name)
        if plain and layout.shape == () and layout.dtype in ("bytes", "jpeg", "png"):
            return partial(_bytes, layout.name)
        return partial(_first, _maker(layout), layout)

    def row(self, chunk: Chunk, path: str | None) -> dict[str, Any]:
        """Return the first record of a chunk as a dict, with None for missing fields."""
        decoded = self._decoded(chunk, 0, 1, path)
        row: dict[str, Any] = {}
        for name, optional, make in self._row_makers:
            if optional is not None:
                absent = missing_rows(optional, decoded[name])
                if absent is not None and absent[0]:
                    row[name] = None
                    continue
            row[name] = make(decoded, chunk.first_record, path)
        return row

    def _decoded(self, chunk: Chunk | Unread, start: int, stop: int | None, path: str | None) -> Decoded:
        try:
            return self._decoder.decode(chunk, start, stop, path=path)
        except SchemaError as error:
            raise self._explained(error) from None

    def decode(self, chunk: Chunk | Unread, start: int, stop: int | None, path: str | None) -> Batch:
        """Return records of a chunk as columns. A column that takes work is made on first use."""
        return self._batch(self._decoded(chunk, start, stop, path), path)

    def read(self, reader: Reader, records: int) -> Batch | None:
        """Return the next records of a reader as columns; None at its end."""
        try:
            decoded = self._decoder.read(reader, records)
        except SchemaError as error:
            raise self._explained(error) from None
        return None if decoded is None else self._batch(decoded, reader.path)

    def _batch(self, decoded: Decoded, path: str | None) -> Batch:
        first, rows = decoded.first_record, len(decoded)
        ints, floats = decoded.ints, decoded.floats
        if self._numbers is not None:
            # Rows of a two-dimensional view are columns, all made at once.
            names, int_names, float_names = self._numbers
            columns: dict[str, Any] = dict.fromkeys(names)
            for group, block in (int_names, ints), (float_names, floats):
                if group:
                    columns.update(zip(group, block.reshape(len(group), -1)[:, :rows], strict=True))
            return Batch(columns, rows, {})
        places = self._decoder.places(rows)
        columns = {
            name: (ints if block_kind == "int64" else floats)[places[name][3]]
            if block_kind
            else partial(make, layout, decoded, first, path)
            for name, layout, block_kind, make in self._makers
        }
        for name, sizes in self._shaped:
            columns[name] = columns[name].reshape((rows, *sizes))
        masks = {}
        for layout in self._optional:
            absent = missing_rows(layout, decoded[layout.name])
            if absent is not None:
                masks[layout.name] = ~absent
        return Batch(columns, rows, masks)

    def _only_numbers(self) -> tuple[list[str], list[str], list[str]] | None:
        """Return the names of all fields, of the integers and of the floats, if each is one number stored as such."""
        groups: tuple[list[str], list[str]] = [], []
        for name, layout, block_kind, _ in self._makers:
            if not block_kind or layout.size != 1 or layout.sizes or layout.field.optional:
                return None
            groups[0 if block_kind == "int64" else 1].append(name)
        return [name for name, *_ in self._makers], *groups

    def _explained(self, error: SchemaError) -> SchemaError:
        """Return a decoder's error with advice from the schema."""
        layout = self._layouts.get(error.field or "")
        advice = _advice(layout, error.found or "") if layout is not None else ""
        return error.but(advice=f"{error.advice} {advice}".strip()) if advice else error


def _advice(layout: Layout, found: str) -> str:
    """Return advice for a feature that its field cannot read; `found` is the decoder's wording."""
    if found == "nothing":
        return layout.if_missing
    if found.endswith("values"):
        return f"Declare {layout.dtype}[?] to read any number." if layout.storage == "list" else ""
    kinds = {"bytes": "bytes", "int64": "int64", "float": "float32"}
    stored = "" if layout.storage == "list" else f"{layout.expected} is stored as bytes. "
    return f"{stored}Declare {kinds[found]} to read the stored values." if found in kinds else ""


def _one_number(is_int: bool, start: int, decoded: Decoded, first: int, path: str | None) -> Any:
    return (decoded.ints if is_int else decoded.floats)[start]


def _number(is_int: bool, where: slice, sizes: tuple[int, ...], decoded: Decoded, first: int, path: str | None) -> Any:
    return (decoded.ints if is_int else decoded.floats)[where].reshape(sizes)


def _numbers(name: str, decoded: Decoded, first: int, path: str | None) -> Any:
    return decoded[name].values


def _bytes(name: str, decoded: Decoded, first: int, path: str | None) -> bytes:
    values = decoded[name].values
    assert isinstance(values, BytesColumn)
    return values.data.tobytes()


def _first(
    make: Callable[[Layout, Decoded, int, str | None], Column],
    layout: Layout,
    decoded: Decoded,
    first: int,
    path: str | None,
) -> Any:
    return make(layout, decoded, first, path)[0]


def _maker(layout: Layout) -> Callable[[Layout, Decoded, int, str | None], Column]:
    """Return the function that makes a field's column."""
    # The most common case: the decoder's output is the column, with nothing left to check.
    as_stored = layout.dtype in ("int64", "float32") and layout.storage == "list" and layout.size is not None
    return _stored if as_stored and not layout.steps and layout.field.default is None else _column


def _stored(layout: Layout, decoded: Decoded, first: int, path: str | None) -> Column:
    values = decoded[layout.name].values
    assert isinstance(values, np.ndarray)
    return values.reshape((len(decoded), *layout.sizes))


def _column(layout: Layout, decoded: Decoded, first: int, path: str | None) -> Column:
    return read(decoded_field(layout, decoded, first, path))


def _features(layouts: Sequence[Layout]) -> list[Feature]:
    """Return every feature to decode, once; a declared field takes precedence over its use as a shape."""
    own = {layout.name: layout.features[0] for layout in layouts}
    companions = {feature.name: feature for layout in layouts for feature in layout.features[1:]}
    return list((companions | own).values())
