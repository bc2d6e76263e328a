"""Schema: the names, types and shapes of a dataset's fields."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from recordkit.errors import SchemaError
from recordkit.filesystems import given_path, refusing
from recordkit.schema.declare import (
    Difference,
    as_line,
    as_table,
    differences,
    feature_description,
    fields_of_description,
    flat_fields,
    json_text,
    layouts_of,
    read_text,
    save_text,
    schema_from_json,
    schema_to_dict,
    sequences_of_description,
)
from recordkit.schema.decode import Plan
from recordkit.schema.encode import RowEncoder, converter, encode_columns, encode_pieces, flat_row, gather_columns
from recordkit.schema.infer import fields_of_chunks, fields_of_columns, fields_of_rows

from ._errors import unknown_name

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from recordkit.columns import Batch
    from recordkit.examples import Unread
    from recordkit.records import Chunk, Reader
    from recordkit.schema.declare import AnyField, Declared, Layout


class Schema:
    """The fields of every record of a dataset.

    Immutable and safe to share between threads. Schemas with the same fields are equal.

    Args:
        fields: A type for each name: text of the schema language, a `Field`, an `Array`, a `TensorProto`, or a nested
            dict, whose names are joined with `/`.
        sequences: The same for fields with one value per step; records are then `tf.train.SequenceExample`s.

    >>> schema = Schema({"id": "int64", "box": {"size": "float32[2]"}, "note": "string?"})
    >>> print(schema)
    rk.Schema({
        "id":       "int64",
        "box/size": "float32[2]",
        "note":     "string?",
    })
    >>> rows = [{"id": 1, "box": {"size": [0.5, 2]}}, {"id": 2, "box/size": [1, 1], "note": "seen"}]
    >>> batch = schema.decode(schema.encode_rows(rows))
    >>> batch["box/size"].tolist(), batch["note"][1], batch.valid("note").tolist()
    ([[0.5, 2.0], [1.0, 1.0]], 'seen', [False, True])
    """

    def __init__(self, fields: Mapping[str, Declared], *, sequences: Mapping[str, Declared] | None = None) -> None:
        self._fields = MappingProxyType(flat_fields(fields))
        self._sequences = MappingProxyType(flat_fields(sequences or {}))
        self._layouts = MappingProxyType(layouts_of(self._fields, self._sequences))
        # Made on first use. If two threads make the same plan, either will do.
        self._plans: dict[tuple[str, ...] | None, Plan] = {}

    @property
    def fields(self) -> Mapping[str, AnyField]:
        """The fields with one value per record."""
        return self._fields

    @property
    def sequences(self) -> Mapping[str, AnyField]:
        """The fields with one value per step."""
        return self._sequences

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all fields, sequences last."""
        return tuple(self._layouts)

    def wire_names(self, name: str) -> tuple[str, ...]:
        """Return the names of the features that store a field, its own first.

        >>> Schema({"depth": "float64[?,?]"}).wire_names("depth")
        ('depth', 'depth/shape', 'depth/dtype')
        """
        return self._layout(name).wire_names

    def select(self, *names: str) -> Schema:
        """Return the schema of these fields only, in this order.

        >>> Schema({"id": "int64", "label": "int64"}).select("label").names
        ('label',)
        """
        for name in names:
            self._layout(name)
        return Schema(
            {name: self._fields[name] for name in names if name in self._fields},
            sequences={name: self._sequences[name] for name in names if name in self._sequences},
        )

    def drop(self, *names: str) -> Schema:
        """Return the schema without these fields.

        >>> Schema({"id": "int64", "label": "int64"}).drop("lable")
        Traceback (most recent call last):
            ...
        recordkit.errors.SchemaError: lable: not in the schema
          Did you mean 'label'?
        """
        for name in names:
            self._layout(name)
        return self.select(*(name for name in self.names if name not in names))

    def _layout(self, name: str) -> Layout:
        try:
            return self._layouts[name]
        except KeyError:
            raise unknown_name(name, self._layouts) from None

    # --- Writing

    def encoder(self) -> RowEncoder:
        """Return an encoder that takes rows one by one."""
        return RowEncoder(self._layouts.values(), sequence=bool(self._sequences))

    def encode_rows(self, rows: Iterable[Mapping[str, Any]]) -> Chunk:
        """Return rows as records.

        Raises:
            SchemaError: At the first row that does not fit, naming it.
        """
        encoder = self.encoder()
        for number, row in enumerate(rows):
            try:
                encoder.append(row)
            except SchemaError as error:
                raise error.but(record=number, where=f"In row {number}.") from None
        return encoder.take()

    def encode(
        self,
        columns: Mapping[str, Any] | Batch,
        rows: int | None = None,
        *,
        valid: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> Chunk:
        """Return columns as records. Faster than rows.

        Args:
            columns: For each field an array with one row per record, a list, a `Ragged` or a `BytesColumn`; or a
                `Batch`. An optional field may be left out.
            rows: The number of records, needed only without any column.
            valid: Masks for optional fields, False where a value is missing. In a list, None means the same.

        Raises:
            SchemaError: At the first value that does not fit, naming field and row.

        >>> import numpy as np
        >>> schema = Schema({"id": "int64", "tokens": "int64[?]"})
        >>> len(schema.encode({"id": np.arange(3), "tokens": [[5], [], [6, 7]]}))
        3
        """
        return encode_columns(self._layouts, columns, rows, valid or {}, sequence=bool(self._sequences))

    def encode_pieces(
        self,
        columns: Mapping[str, Any] | Batch,
        rows: int | None = None,
        *,
        valid: Mapping[str, NDArray[np.bool_]] | None = None,
        piece_bytes: int = 1 << 20,
    ) -> Iterator[Chunk]:
        """Yield what `encode` returns in chunks of about `piece_bytes`, to save memory.

        All values are checked before the first chunk.

        >>> schema = Schema({"id": "int64"})
        >>> [len(chunk) for chunk in schema.encode_pieces({"id": list(range(200))}, piece_bytes=3000)]
        [64, 96, 40]
        """
        return encode_pieces(self._layouts, columns, rows, valid or {}, piece_bytes, sequence=bool(self._sequences))

    def check(self, row: Mapping[str, Any]) -> None:
        """Raise `SchemaError` if a row does not fit, as writing it would.

        >>> Schema({"age": "uint8"}).check({"age": 300})
        Traceback (most recent call last):
            ...
        recordkit.errors.SchemaError: age: expected uint8, found 300
          uint8 holds 0 to 255. Declare int16.
        """
        flat = flat_row(row, self._layouts)
        for name, layout in self._layouts.items():
            if flat.get(name) is not None or not layout.field.optional:
                converter(layout)(flat.get(name))

    def check_columns(
        self,
        columns: Mapping[str, Any] | Batch,
        rows: int | None = None,
        *,
        valid: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> None:
        """Raise `SchemaError` if columns do not fit, as `encode` would."""
        gather_columns(self._layouts, columns, rows, valid or {})

    # --- Reading

    def decode(
        self,
        chunk: Chunk | Unread,
        *,
        select: Iterable[str] | None = None,
        start: int = 0,
        stop: int | None = None,
        path: str | None = None,
    ) -> Batch:
        """Return records as columns.

        Args:
            chunk: Records, as `encode` or a reader gives them.
            select: The names of the fields to read; the others are skipped.
            start: The first record to read.
            stop: The record to stop before; None for all.
            path: The file of the chunk, to name in errors.

        Raises:
            SchemaError: A record lacks a field or has another kind of list. Values that do not fit the declaration
                are found when their column is first used.
            CorruptRecordError: A payload is not an Example.
        """
        return self._plan(None if select is None else tuple(select)).decode(chunk, start, stop, path)

    def read(self, reader: Reader, records: int, *, select: Iterable[str] | None = None) -> Batch | None:
        """Return the next records of a reader as columns, or None at its end.

        Equivalent to `decode(reader.read(records))`, but in one go: threads that share a reader wait less for each
        other, and selecting one to four numbers of small records is faster.

        Args:
            reader: Where the records come from.
            records: How many; fewer only at the end of the file.
            select: The names of the fields to read; the others are skipped.

        Raises:
            SchemaError: As for `decode`.
            CorruptRecordError: A record is damaged, or a payload is not an Example.

        >>> import io
        >>> from recordkit.records import Reader
        >>> schema = Schema({"id": "int64"})
        >>> reader = Reader(io.BytesIO(schema.encode_rows([{"id": 7}, {"id": 8}, {"id": 9}])))
        >>> while (batch := schema.read(reader, 2)) is not None:
        ...     print(batch["id"])
        [7 8]
        [9]
        """
        return self._plan(None if select is None else tuple(select)).read(reader, records)

    def decode_row(
        self, chunk: Chunk, *, select: tuple[str, ...] | None = None, path: str | None = None
    ) -> dict[str, Any]:
        """Return the first record of a chunk as a dict, with None for missing fields.

        >>> schema = Schema({"id": "int64", "note": "string?"})
        >>> schema.decode_row(schema.encode_rows([{"id": 7}]))["note"] is None
        True
        """
        return self._plan(select).row(chunk, path)

    def _plan(self, names: tuple[str, ...] | None) -> Plan:
        plan = self._plans.get(names)
        if plan is None:
            layouts = [self._layout(name) for name in (self.names if names is None else names)]
            plan = self._plans[names] = Plan(layouts, sequence=bool(self._sequences))
        return plan

    # --- Schemas from data

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Schema:
        """Return the schema that fits these rows.

        Python floats become float32, which is logged once; NumPy values keep their dtype. Dimensions are fixed if they
        agree in all rows. A field that is None or absent in some row becomes optional.

        >>> Schema.of_rows([{"id": 1, "tokens": [1, 2], "note": None}, {"id": 2, "tokens": [3], "note": "seen"}])
        Schema({'id': 'int64', 'tokens': 'int64[?]', 'note': 'string?'})
        """
        return cls(fields_of_rows(rows))

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any]) -> Schema:
        """Return the schema that fits these columns.

        >>> import numpy as np
        >>> Schema.of_columns({"id": np.arange(3), "name": ["a", "b", "c"]})
        Schema({'id': 'int64', 'name': 'string'})
        """
        return cls(fields_of_columns(columns))

    @classmethod
    def infer(cls, chunks: Chunk | Iterable[Chunk], *, path: str | None = None, strict: bool = False) -> Schema:
        """Return a schema that reads these records, inferred from their contents.

        The wire format contains the kind and length of each list. Byte strings count as text or pictures if all of them
        are; arrays are recognised by their shape companion. Narrow integers and raw bytes without a shape look the same
        as int64 and bytes.

        Args:
            chunks: The records.
            path: Their file, to name in errors.
            strict: Raise if records disagree about the kind of a field, instead of leaving it out with a warning.

        >>> schema = Schema({"x": "float32[3]", "depth": "float64[?,?]"})
        >>> Schema.infer(schema.encode_rows([{"x": [1, 2, 3], "depth": [[1.5]]}]))
        Schema({'depth': 'float64[?,?]', 'x': 'float32[3]'})
        """
        fields, sequences = fields_of_chunks(chunks, path=path, strict=strict)
        return cls(fields, sequences=sequences)

    # --- Comparing

    def compare(self, other: Schema) -> tuple[Difference, ...]:
        """Return the differences of `other` from this schema; empty if they agree.

        The `quality` of a jpeg counts for `==` but not here, since it makes no difference to readers.
        """
        return differences(self._fields, self._sequences, other.fields, other.sequences)

    def explain_difference(self, other: Schema) -> str:
        """Return the differences of `other` from this schema in words, one per line; empty if they agree.

        >>> ours, theirs = Schema({"id": "int64", "label": "int64"}), Schema({"id": "int32", "lable": "int64"})
        >>> print(ours.explain_difference(theirs))
        id: expected int64, found int32
        label: missing; did you mean 'lable'?
        lable: not expected; did you mean 'label'?
        """
        return "\n".join(difference.words for difference in self.compare(other))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self._fields == other._fields and self._sequences == other._sequences

    def __hash__(self) -> int:
        return hash((frozenset(self._fields.items()), frozenset(self._sequences.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (dict(self._fields), dict(self._sequences))

    # --- Saving and printing

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain dicts, lists, strings and numbers, to embed it in other JSON."""
        return schema_to_dict(self._fields, self._sequences)

    def to_json(self) -> str:
        """Return the schema as JSON text, which `from_json` reads."""
        return json_text(self.to_dict())

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> Schema:
        """Return the schema from the result of `to_json` or `to_dict`.

        >>> schema = Schema({"id": "int64", "note": "string?"})
        >>> Schema.from_json(schema.to_json()) == schema
        True
        """
        fields, sequences = schema_from_json(text)
        return cls(fields, sequences=sequences)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the schema to a JSON file, which appears whole or not at all."""
        with refusing(path, "be written"):
            save_text(self.to_json(), Path(given_path(path)), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Return the schema that `save` wrote."""
        fields, sequences = schema_from_json(read_text(Path(given_path(path))), path=str(path))
        return cls(fields, sequences=sequences)

    def __str__(self) -> str:
        return as_table(self._fields, self._sequences)

    def __repr__(self) -> str:
        return as_line(self._fields, self._sequences)

    # --- TensorFlow

    def to_feature_description(self, module: Any = None) -> Any:
        """Return what `tf.io.parse_example` needs to read the records.

        With sequences, a pair: the context and the sequence features of `tf.io.parse_sequence_example`.

        Args:
            module: A module with TensorFlow's names; TensorFlow itself is imported by default.
        """
        return feature_description(self._layouts, module)

    @classmethod
    def from_feature_description(
        cls, description: Mapping[str, Any], sequence_description: Mapping[str, Any] | None = None
    ) -> Schema:
        """Return the schema that reads what `tf.io.parse_example` reads with this description.

        TensorFlow does not tell text from bytes: strings become bytes. Needs no TensorFlow.
        """
        fields = fields_of_description(description)
        sequences = sequences_of_description(sequence_description or {})
        return cls(fields, sequences=sequences)


def _restored(fields: Mapping[str, AnyField], sequences: Mapping[str, AnyField]) -> Schema:
    return Schema(fields, sequences=sequences)
