"""Tables: columns out of Parquet and CSV files, Arrow tables, data frames, batches and dicts.

Only the requested columns are read, and pyarrow is imported only if needed. A null is False in the mask, and so is NaN
in pandas, which pandas itself treats as missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.dataset import Dataset
from recordkit.dtypes import INTEGERS
from recordkit.errors import MissingExtraError, SchemaError, StorageError
from recordkit.schema import Field, Schema
from recordkit.wording import did_you_mean, listed

from ._pieces import optional_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

    from numpy.typing import NDArray

    from recordkit.columns import Column

    from ._bound import AnyField


class Filled(NamedTuple):
    """A column, and a mask that is False where a value is missing; None if none is."""

    column: Column
    valid: NDArray[np.bool_] | None


def table_columns(
    table: Any,
    names: Sequence[str],
    hints: Mapping[str, AnyField],
    *,
    texts: Set[str] = frozenset(),
    field: str,
) -> list[Filled]:
    """Return columns of a table.

    Args:
        table: As `Joined` takes it.
        names: The columns to read.
        hints: The types of some columns, for tables without types, such as CSV files and lists.
        texts: Columns that are text, whatever they look like: 007 in a CSV file may be a name.
        field: The new field, to name in errors.

    Raises:
        SchemaError: There is no such column, it cannot be read, or records cannot hold its type.
        StorageError: The file cannot be read.
        MissingExtraError: pyarrow is needed and not installed.
    """
    if isinstance(table, str | os.PathLike):
        table = _file(os.fspath(table), names, {**hints, **dict.fromkeys(texts, Field("string"))}, field)
    if isinstance(table, Dataset):
        _check_names(names, table.schema.names if table.schema is not None else (), field)
        table = table.select(*dict.fromkeys(names))[:]
    if isinstance(table, Mapping | Batch):
        _check_names(names, table.keys(), field)
        return _same_length([_plain_column(table, name, hints.get(name), field) for name in names], field)
    arrow = _arrow_table(table, names, field)
    _check_names(names, arrow.column_names, field)
    return [arrow_column(arrow.column(name), name, field) for name in names]


def _check_names(names: Sequence[str], there: Any, field: str) -> None:
    known = [str(name) for name in there]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"It has {listed(known) or 'no columns'}."
            message = f"{field}: there is no column {name!r} in the table\n  {hint}"
            raise SchemaError(message, field=field)


def _same_length(columns: list[Filled], field: str) -> list[Filled]:
    lengths = {len(column) for column, _ in columns}
    if len(lengths) > 1:
        message = f"{field}: the columns of the table have different lengths: {' and '.join(map(str, sorted(lengths)))}"
        raise SchemaError(message, field=field)
    return columns


def _plain_column(table: Any, name: str, hint: AnyField | None, field: str) -> Filled:
    column = table[name]
    if isinstance(table, Batch):
        valid = table.valid(name)
        return Filled(column, None if valid.all() else valid)
    if hasattr(column, "__arrow_c_stream__") or (hasattr(column, "__arrow_c_array__") and not _is_ours(column)):
        return series_column(column, name, field)
    if _is_ours(column) or (isinstance(column, np.ndarray) and column.dtype.kind not in "OUST" and column.ndim):
        return Filled(column, None)
    try:
        return _through_a_schema(name, list(column) if not isinstance(column, np.ndarray) else column, hint)
    except (SchemaError, TypeError) as error:
        message = (
            f"{field}: the table's {error}" if isinstance(error, SchemaError) else f"{field}: {name!r} is no column"
        )
        raise SchemaError(message, field=field) from None


def _is_ours(column: Any) -> bool:
    return isinstance(column, BytesColumn | Ragged)


def _through_a_schema(name: str, column: Any, hint: AnyField | None) -> Filled:
    """Turn a list into a column by encoding and decoding it, so that values mean what they mean everywhere else."""
    if not len(column) and hint is None:
        return Filled(np.zeros(0, np.int64), None)  # of nothing in particular
    field = hint or Schema.of_columns({name: column}).fields[name]
    schema = Schema({name: optional_field(field)})
    batch = schema.decode(schema.encode({name: column}))
    valid = batch.valid(name)
    return Filled(batch[name], None if valid.all() else valid)


# --- Arrow


def pyarrow(what: str, module: str = "pyarrow") -> Any:
    """Return pyarrow, or a module of it."""
    try:
        return import_module(module)
    except ImportError:
        package, extra = "pyarrow", "arrow"
        raise MissingExtraError(what, package, extra) from None


def _arrow_table(table: Any, names: Sequence[str], field: str) -> Any:
    what = f"a table that is a {type(table).__name__}"
    if type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "columns"):
        if not set(names) <= set(table.columns) and set(names) & set(table.index.names):
            table = table.reset_index()
        frame = table[[name for name in dict.fromkeys(names) if name in table.columns]]
        # With all names, if one is not there, so that the error can say what is.
        whole = table if len(frame.columns) < len(set(names)) else frame
        try:
            return pyarrow(what).Table.from_pandas(whole, preserve_index=False)
        except (ValueError, TypeError) as error:  # pyarrow's own are both
            message = f"{field}: the table cannot be read: {str(error)[:300]}"
            raise SchemaError(message, field=field) from error
    if not is_arrow(table):
        message = (
            f"{field}: expected a table, found {type(table).__name__}\n"
            f"  A table is the path of a Parquet or CSV file, a data frame, an Arrow table, or a dict of columns."
        )
        raise SchemaError(message, field=field)
    return pyarrow(what).table(table)


def is_arrow(value: Any) -> bool:
    """Return whether a value of another library has the Arrow interface."""
    return not _is_ours(value) and (hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"))


def series_column(series: Any, name: str, field: str) -> Filled:
    """Return a pandas or polars series, or an Arrow array, as a column."""
    return arrow_column(pyarrow(f"a {type(series).__name__}").chunked_array(series), name, field)


def arrow_column(chunked: Any, name: str, field: str) -> Filled:
    """Return a chunked array of pyarrow as a column; a single chunk is not copied."""
    pa = pyarrow("a table")
    kind, types = chunked.type, pa.types
    if types.is_null(kind):
        return Filled(np.full(len(chunked), None, np.object_), np.zeros(len(chunked), np.bool_))
    if types.is_dictionary(kind):
        chunked = chunked.cast(kind.value_type)
    if isinstance(chunked.type, pa.BaseExtensionType):
        chunked = pa.chunked_array([chunk.storage for chunk in chunked.chunks], chunked.type.storage_type)
    wide = _wide(pa, chunked.type)
    array = (chunked.cast(wide) if wide != chunked.type else chunked).combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # older ones keep what has no chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    valid = None if not array.null_count else np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    try:
        return Filled(_column(pa, array), valid)
    except _NoColumnError as error:
        message = f"{field}: the table's column {name!r} is {kind}, {error}"
        raise SchemaError(message, field=field, found=str(kind)) from None


class _NoColumnError(Exception):
    """The error for an Arrow array that records cannot hold."""


def _wide(pa: Any, kind: Any) -> Any:
    """Return the variant of an Arrow type with 64-bit offsets, if there is one."""
    types = pa.types
    if types.is_string(kind) or getattr(types, "is_string_view", lambda _: False)(kind):
        return pa.large_string()
    binary = types.is_binary(kind) or types.is_fixed_size_binary(kind)
    if binary or getattr(types, "is_binary_view", lambda _: False)(kind):
        return pa.large_binary()
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.large_list(_wide(pa, kind.value_type))
    if types.is_fixed_size_list(kind):
        return pa.list_(_wide(pa, kind.value_type), kind.list_size)
    return kind.value_type if types.is_dictionary(kind) else kind


def _column(pa: Any, array: Any) -> Column:
    types, kind = pa.types, array.type
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return _byte_strings(array, text=types.is_large_string(kind))
    if types.is_large_list(kind):
        return _list(pa, array)
    if types.is_fixed_size_list(kind):
        return _fixed_list(pa, array)
    if types.is_boolean(kind):
        bits: NDArray[Any] = array.fill_null(False).to_numpy(zero_copy_only=False)
        return bits
    return _numbers(types, array)


def _numbers(types: Any, array: Any) -> NDArray[Any]:
    kind = array.type
    if types.is_integer(kind) or types.is_floating(kind):
        return _buffer(array, kind.to_pandas_dtype())
    if types.is_date32(kind):
        return _buffer(array, np.int32).astype("M8[D]")
    if types.is_date64(kind):
        return _buffer(array, np.int64).view("M8[ms]")
    if types.is_timestamp(kind) or types.is_duration(kind):
        return _buffer(array, np.int64).view(f"{'M8' if types.is_timestamp(kind) else 'm8'}[{kind.unit}]")
    reason = "which no field can hold\n  Convert it to numbers, text or bytes first."
    raise _NoColumnError(reason)


def _buffer(array: Any, dtype: Any) -> NDArray[Any]:
    # Straight from memory: NumPy's integers have no null, and pyarrow would make floats of them.
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * np.dtype(dtype).itemsize)


def _byte_strings(array: Any, *, text: bool) -> BytesColumn:
    _, ends, data = array.buffers()
    if ends is None or not len(array):
        return BytesColumn(np.zeros(0, np.uint8), np.zeros(1, np.int64), text=text)
    offsets = np.frombuffer(ends, np.int64, len(array) + 1, array.offset * 8)
    bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return BytesColumn(bytes_[offsets[0] : offsets[-1]], offsets - offsets[0], text=text)


def _list(pa: Any, array: Any) -> Ragged:
    _check_elements(array)
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    inner = _column(pa, array.values.slice(offsets[0], offsets[-1] - offsets[0]))
    offsets -= offsets[0]
    if isinstance(inner, Ragged):
        return Ragged(inner.values, (offsets, *inner.offsets))
    return Ragged(inner, (offsets,))


def _fixed_list(pa: Any, array: Any) -> Column:
    _check_elements(array)
    size = array.type.list_size
    inner = _column(pa, array.values.slice(array.offset * size, len(array) * size))
    if isinstance(inner, Ragged):
        levels = np.arange(len(array) + 1, dtype=np.int64) * size
        return Ragged(inner.values, (levels, *inner.offsets))
    return inner.reshape((len(array), size, *inner.shape[1:]))


def _check_elements(array: Any) -> None:
    if array.flatten().null_count:
        reason = "and has nulls inside lists\n  Only a whole field can be missing."
        raise _NoColumnError(reason)


# --- Files


def _file(path: str, names: Sequence[str], hints: Mapping[str, AnyField], field: str) -> Any:
    name = path.lower().removesuffix(".gz")
    with _named(path, field):
        if name.endswith((".csv", ".tsv")):
            return _csv(path, names, hints, "\t" if name.endswith(".tsv") else ",", field)
        if name.endswith((".arrow", ".feather", ".ipc")):
            return pyarrow(path, "pyarrow.feather").read_table(path, memory_map=True)
        if name.endswith((".parquet", ".pq", ".parq")) or os.path.isdir(path):  # noqa: PTH112 - it may be no local path
            whole = pyarrow(path, "pyarrow.parquet").ParquetDataset(path)
            _check_names(names, whole.schema.names, field)
            return whole.read(columns=list(dict.fromkeys(names)))
    message = f"{field}: {path}: unknown kind of table\n  Supported are .parquet, .csv, .tsv and .arrow."
    raise SchemaError(message, field=field, path=path)


@contextmanager
def _named(path: str, field: str) -> Iterator[None]:
    """Add the field and the path to errors of pyarrow."""
    try:
        yield
    except (SchemaError, MissingExtraError):
        raise
    except OSError as error:
        reason = (
            "there is no such file" if isinstance(error, FileNotFoundError) else f"the table cannot be read: {error}"
        )
        message = f"{field}: {path}: {reason}"
        raise StorageError(message, path=path, errno=error.errno) from error
    except ValueError as error:  # pyarrow's ArrowInvalid
        message = f"{field}: {path}: the table cannot be read: {str(error)[:300]}"
        raise SchemaError(message, field=field, path=path) from error


def _csv(path: str, names: Sequence[str], hints: Mapping[str, AnyField], delimiter: str, field: str) -> Any:
    pa, csv = pyarrow(path), pyarrow(path, "pyarrow.csv")
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse) as reader:
        _check_names(names, reader.schema.names, field)
    kinds = {name: _arrow_type(pa, hint) for name, hint in hints.items()}
    convert = csv.ConvertOptions(
        include_columns=list(dict.fromkeys(names)),
        column_types={name: kind for name, kind in kinds.items() if kind is not None},
    )
    return csv.read_csv(path, parse_options=parse, convert_options=convert)


def _arrow_type(pa: Any, field: AnyField) -> Any:
    """Return the Arrow type to read a CSV column as; None to let pyarrow guess."""
    if not isinstance(field, Field) or field.shape:
        return None
    if field.dtype in ("string", "bytes"):
        return pa.large_string() if field.dtype == "string" else pa.large_binary()
    return pa.from_numpy_dtype(np.dtype(field.dtype)) if field.dtype in _CSV_NUMBERS else None


_CSV_NUMBERS = frozenset({"bool", *INTEGERS, "float32", "float64"})
