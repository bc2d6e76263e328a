"""Laws: what is true of every schema and every value it holds."""

from __future__ import annotations

import math
import pickle
from contextlib import suppress
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit import examples
from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.examples import Values
from recordkit.schema import Array, Field, Schema, TensorProto

NUMBERS = {
    **{name: np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
    **{name: np.dtype(name) for name in ("uint64", "float16", "float32", "float64", "complex64", "complex128")},
    **{name: np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16")},
    "datetime64:ns": np.dtype("M8[ns]"),
    "datetime64:25s": np.dtype("M8[25s]"),
    "timedelta64:D": np.dtype("m8[D]"),
}
SIGNATURES = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n"}
DTYPES = [*NUMBERS, "string", "bytes", *SIGNATURES]
SERIALIZED = [name for name in DTYPES if "64:" not in name and "float8" not in name and name not in SIGNATURES]

dtypes = st.sampled_from(DTYPES)
shapes = st.lists(st.none() | st.integers(0, 3), max_size=3).map(tuple)
names = st.text(min_size=1, max_size=6).filter(lambda name: "\0" not in name)


class Column(NamedTuple):
    """A field and a value of it for each row."""

    field: Field
    values: list[Any]


def array_of(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Arrays of any bits: NaNs with payloads, NaT and the ends of every range among them."""
    size = math.prod(shape)
    if dtype not in NUMBERS:
        return st.lists(byte_string_of(dtype), min_size=size, max_size=size).map(lambda v: _object_array(v, shape))
    if dtype == "bool":
        return st.lists(st.booleans(), min_size=size, max_size=size).map(lambda v: np.array(v, bool).reshape(shape))
    length = size * NUMBERS[dtype].itemsize
    return st.binary(min_size=length, max_size=length).map(lambda b: np.frombuffer(b, NUMBERS[dtype]).reshape(shape))


def _object_array(values: list[Any], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def byte_string_of(dtype: str) -> st.SearchStrategy[Any]:
    if dtype == "string":
        return st.text(max_size=5)
    return st.binary(max_size=5).map(lambda value: SIGNATURES.get(dtype, b"") + value)


def value_of(dtype: str, shape: tuple[int | None, ...], *, quiet: bool = False) -> st.SearchStrategy[Any]:
    """Values of a field: scalars, or arrays of any shape it allows."""
    sizes = st.tuples(*(st.integers(0, 3) if size is None else st.just(size) for size in shape))
    arrays = sizes.flatmap(lambda found: array_of(dtype, found))
    if shape:
        return arrays
    scalars = arrays.map(lambda array: array[()])
    # A signalling NaN becomes a quiet one when it passes through a Python float, as a lone float32 in a row does.
    return scalars.filter(lambda x: not np.isnan(x) or x.view(np.uint32) & 0x400000) if quiet else scalars


@st.composite
def columns(draw: st.DrawFn, *, rows: int | None = None, quiet: bool = False) -> Column:
    dtype, shape, optional = draw(dtypes), draw(shapes), draw(st.booleans())
    value = value_of(dtype, shape, quiet=quiet and dtype == "float32")
    values = st.none() | value if optional else value
    count = draw(st.integers(0, 4)) if rows is None else rows
    text = f"{dtype}[{','.join('?' if n is None else str(n) for n in shape)}]" if shape else dtype
    return Column(Field(text + "?" * optional), draw(st.lists(values, min_size=count, max_size=count)))


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Column]:
    rows = draw(st.integers(0, 4))
    return draw(st.dictionaries(names, columns(rows=rows, quiet=True), min_size=1, max_size=4))


fields = columns(rows=0).map(lambda column: column.field)
arrays = st.builds(
    Array,
    st.sampled_from([*NUMBERS]),
    shape_from=st.text(min_size=1, max_size=3).map(lambda name: f"/{name}"),
    optional=st.booleans(),
)
tensors = st.builds(TensorProto, st.none() | st.sampled_from(["float32", "string"]), st.none() | shapes)
schemas = st.builds(
    lambda declared, sequences: Schema(declared, sequences={f"steps of {n}": f for n, f in sequences.items()}),
    st.dictionaries(names.filter(lambda name: "/" not in name), fields | arrays | tensors, max_size=4),
    st.dictionaries(names.filter(lambda name: "/" not in name), fields | tensors, max_size=2),
)


def plain(value: Any) -> Any:
    """A value as something that compares bit for bit."""
    if isinstance(value, BytesColumn):
        return (tuple(value.shape), value.to_numpy().reshape(-1).tolist())
    if isinstance(value, Ragged):
        return [plain(row) for row in value]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return (value.shape, value.reshape(-1).tolist())
    if isinstance(value, np.ndarray | np.generic):
        return (value.dtype, value.shape, value.tobytes())
    return value


def rows_of(table: dict[str, Column]) -> list[dict[str, Any]]:
    count = len(next(iter(table.values())).values)
    return [{name: column.values[i] for name, column in table.items()} for i in range(count)]


def schema_of(table: dict[str, Column]) -> Schema | None:
    """The schema of a table, unless its names happen to meet on the wire."""
    try:
        return Schema({name: column.field for name, column in table.items()})
    except ValueError:
        return None


class TestRoundTrip:
    @given(tables())
    def test_rows_come_back_bit_for_bit(self, table: dict[str, Column]) -> None:
        schema = schema_of(table)
        if schema is None:
            return

        batch = schema.decode(schema.encode_rows(rows_of(table)))

        for i, row in enumerate(rows_of(table)):
            assert {n: plain(v) for n, v in batch.row(i).items()} == {n: plain(v) for n, v in row.items()}

    @given(columns())
    def test_a_column_comes_back_bit_for_bit(self, column: Column) -> None:
        schema = Schema({"x": column.field})

        batch = schema.decode(schema.encode({"x": column.values}))

        assert [plain(batch.row(i)["x"]) for i in range(len(batch))] == [plain(value) for value in column.values]

    @given(tables())
    def test_what_was_decoded_encodes_to_the_same_bytes(self, table: dict[str, Column]) -> None:
        schema = schema_of(table)
        if schema is None:
            return
        chunk = schema.encode_rows(rows_of(table))

        again = schema.encode(schema.decode(chunk))

        assert bytes(again) == bytes(chunk)

    @given(columns(quiet=True))
    def test_rows_and_columns_write_the_same_bytes(self, column: Column) -> None:
        schema = Schema({"x": column.field})

        by_rows = schema.encode_rows([{"x": value} for value in column.values])

        assert bytes(schema.encode({"x": column.values})) == bytes(by_rows)

    @given(st.sampled_from([*NUMBERS]), st.lists(st.integers(0, 3), max_size=3).map(tuple), st.data())
    def test_fortran_order_and_big_endian_arrays_mean_their_values(
        self, dtype: str, shape: tuple[int, ...], data: st.DataObject
    ) -> None:
        array = data.draw(array_of(dtype, (2, *shape)))
        schema = Schema({"x": Field(f"{dtype}[{','.join(map(str, shape))}]" if shape else dtype)})
        other = np.asfortranarray(array)
        if not hasattr(ml_dtypes, dtype):  # its dtypes have one byte order only
            other = other.astype(other.dtype.newbyteorder(">"))

        chunk = schema.encode({"x": other})

        assert bytes(chunk) == bytes(schema.encode({"x": array}))

    @given(columns(rows=3), st.lists(st.integers(0, 3), min_size=2, max_size=2))
    def test_sequences_come_back_bit_for_bit(self, column: Column, lengths: list[int]) -> None:
        steps = [[value for value in column.values if value is not None][:length] for length in lengths]
        schema = Schema({}, sequences={"x": Field(str(column.field).rstrip("?"))})

        batch = schema.decode(schema.encode_rows([{"x": row} for row in steps]))

        got = [[_step(column.field, row[i]) for i in range(len(row))] for row in batch["x"]]
        assert got == [[_step(column.field, value) for value in row] for row in steps]

    @given(st.sampled_from([*NUMBERS]), st.lists(shapes, min_size=1, max_size=3), st.data())
    def test_arrays_with_a_shape_beside_them_come_back(
        self, dtype: str, found: list[tuple[int | None, ...]], data: st.DataObject
    ) -> None:
        rank = len(found[0])
        arrays = [data.draw(value_of(dtype, (None,) * rank)) for _ in found]
        schema = Schema({"x": Array(dtype, shape_from="s")})

        batch = schema.decode(schema.encode_rows([{"x": array} for array in arrays]))

        assert [plain(row) for row in batch["x"]] == [plain(array) for array in arrays]

    @given(st.sampled_from(SERIALIZED), st.integers(0, 3), st.data())
    def test_serialized_tensors_come_back(self, dtype: str, rank: int, data: st.DataObject) -> None:
        arrays = data.draw(st.lists(value_of(dtype, (None,) * rank), min_size=1, max_size=3))
        schema = Schema({"x": TensorProto(dtype)})

        batch = schema.decode(schema.encode_rows([{"x": array} for array in arrays]))

        assert [plain(row) for row in batch["x"]] == [plain(array) for array in arrays]


def _step(field: Field, value: Any) -> Any:
    """A step as something that compares; of arrays with several open dimensions, only their elements are kept."""
    if field.shape.count(None) and len(field.shape) > 1:
        return plain(np.array(_leaves(value), object))
    return plain(value)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Ragged | list):
        return [leaf for part in value for leaf in _leaves(part)]
    if isinstance(value, BytesColumn):
        return list(value.to_numpy().reshape(-1))
    if value.dtype == object:
        return list(value.reshape(-1))
    return [element.tobytes() for element in value.reshape(-1)]


small = st.integers(-1, 3) | st.sampled_from([2**31, 2**62, 2**63 - 1, -(2**63)])
features = st.one_of(
    st.tuples(st.just("int64"), st.lists(st.lists(small, max_size=4), min_size=2, max_size=2)),
    st.tuples(st.just("bytes"), st.lists(st.lists(st.binary(max_size=9), max_size=2), min_size=2, max_size=2)),
    st.tuples(st.just("float"), st.lists(st.lists(st.floats(width=32), max_size=2), min_size=2, max_size=2)),
)
dtype_names = st.sampled_from([b"float64", b"uint8", b"bfloat16", b"float8_e4m3fn", b"string", b"float99", b"\xff"])
named = st.tuples(st.just("bytes"), dtype_names.map(lambda name: [[name], [name]]))


def values_of(kind: Any, lists: list[list[Any]]) -> Values:
    flat = [value for row in lists for value in row]
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    numbers: Any = None if kind == "bytes" else np.array(flat, np.int64 if kind == "int64" else np.float32)
    return Values(kind, BytesColumn.of(flat) if kind == "bytes" else numbers, offsets)


class TestHostileRecords:
    @given(fields | tensors, st.dictionaries(st.sampled_from(["x", "x/shape"]), features), st.none() | named)
    def test_any_features_are_a_column_or_a_schema_error(
        self, declared: Any, found: dict[str, Any], dtype: Any
    ) -> None:
        columns = {name: values_of(*feature) for name, feature in found.items()}
        if dtype is not None:
            columns["x/dtype"] = values_of(*dtype)
        chunk = examples.encode(columns, 2)

        with suppress(SchemaError):
            assert len(Schema({"x": declared}).decode(chunk)["x"]) == 2
        inferred = Schema.infer(chunk)

        # What was inferred from records reads them, whatever they are.
        batch = inferred.decode(chunk)
        assert [len(batch[name]) for name in inferred.names] == [2] * len(inferred.names)


class TestText:
    @given(fields)
    def test_a_type_is_what_its_text_says(self, field: Field) -> None:
        assert Field(str(field)) == field

    @given(schemas)
    def test_repr_evaluates_back(self, schema: Schema) -> None:
        assert (
            eval(repr(schema), {"Schema": Schema, "Field": Field, "Array": Array, "TensorProto": TensorProto}) == schema
        )

    @given(schemas)
    def test_the_printed_table_evaluates_back(self, schema: Schema) -> None:
        from recordkit import schema as rk

        assert eval(str(schema), {"rk": rk}) == schema

    @given(schemas)
    def test_json_loads_back(self, schema: Schema) -> None:
        assert Schema.from_json(schema.to_json()) == schema

    @given(schemas)
    def test_pickles_and_hashes_by_content(self, schema: Schema) -> None:
        copy = pickle.loads(pickle.dumps(schema))

        assert copy == schema
        assert hash(copy) == hash(schema)

    @given(schemas)
    def test_no_difference_from_itself(self, schema: Schema) -> None:
        assert schema.compare(Schema.from_json(schema.to_json())) == ()


class TestInferring:
    @given(tables())
    def test_what_is_inferred_reads_the_same_values(self, table: dict[str, Column]) -> None:
        # Raw bytes without a shape, and narrow integers, look like bytes and int64.
        kept = {name: column for name, column in table.items() if _shows(column.field) and any(_there(column))}
        schema = schema_of(kept) if kept else None
        if schema is None:
            return
        chunk = schema.encode_rows(rows_of(kept))

        inferred = Schema.infer(chunk)

        batch, again = schema.decode(chunk), inferred.decode(chunk)
        for i in range(len(batch)):
            for name in inferred.names:
                assert _loose(again.row(i)[name]) == _loose(batch.row(i)[name])


def _there(column: Column) -> list[bool]:
    return [value is not None for value in column.values]


def _shows(field: Field) -> bool:
    """Whether the wire tells a field's dtype."""
    if field.dtype in ("int64", "float32", "string", "bytes", "jpeg", "png"):
        return True
    return len(field.shape) > 1 and None in field.shape and field.dtype not in ("string", "bytes")


def _loose(value: Any) -> Any:
    """A value's elements: a fixed shape without a companion is read flat, and bytes may be taken for text."""
    if value is None:
        return None
    if isinstance(value, str | bytes):
        return [value.encode() if isinstance(value, str) else value]
    if isinstance(value, BytesColumn):
        return [v.encode() if isinstance(v, str) else v for v in value.to_numpy().reshape(-1)]
    return [element.tobytes() for element in np.asarray(value).reshape(-1)]


@pytest.mark.tensorflow
class TestTensorFlow:
    @settings(deadline=None, max_examples=60)
    @given(tables())
    def test_tensorflow_reads_the_same_values(self, table: dict[str, Column]) -> None:
        import tensorflow as tf

        schema = schema_of(table)
        if schema is None:
            return
        rows = rows_of(table)
        chunk = schema.encode_rows(rows)

        for i, row in enumerate(rows):
            # parse_single_example wants at least one name that is not empty; all of ours are.
            parsed = tf.io.parse_single_example(chunk[i], schema.to_feature_description())
            for name, column in table.items():
                assert _elements(parsed[name].numpy(), column.field) == _stored(row[name], column.field)


def _elements(value: Any, field: Field) -> list[Any]:
    """What TensorFlow read of a field, as a list of Python values or of raw bytes."""
    if isinstance(value, bytes):
        return [value]
    array = np.asarray(value)
    if array.dtype == object:
        return list(array.reshape(-1))
    return [element.tobytes() for element in array.reshape(-1)]


def _stored(value: Any, field: Field) -> list[Any]:
    """What the wire table says is stored for a value."""
    if value is None:
        return []
    if field.dtype in ("string", "bytes", "jpeg", "png"):
        leaves = np.asarray(value, object).reshape(-1).tolist() if field.shape else [value]
        return [leaf.encode() if isinstance(leaf, str) else leaf for leaf in leaves]
    array = np.asarray(value)
    small = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32")
    if field.dtype == "int64" or (field.dtype in small and len(field.shape) <= 1):
        return [np.int64(number).tobytes() for number in array.reshape(-1).tolist()]
    if field.dtype == "float32":
        return [element.tobytes() for element in array.reshape(-1)]
    return [array.tobytes()]
