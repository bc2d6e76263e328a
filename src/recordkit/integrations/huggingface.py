"""Hugging Face: records to and from `datasets` through Arrow, without creating a Python object per value."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recordkit import dtypes, images
from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import MissingExtraError, SchemaError, TargetExistsError
from recordkit.schema import Schema
from recordkit.storage.write import create
from recordkit.tools.fields import arrow_column

try:
    import datasets
    import pyarrow as pa
    from datasets import table as tables
    from pyarrow import compute
except ImportError as error:
    what = "recordkit.integrations.huggingface"
    raise MissingExtraError(what, "datasets", "huggingface") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recordkit.dataset import Dataset
    from recordkit.storage.write import Written

__all__ = ["from_hf", "to_hf"]

_ROWS = 1000  # at a time, as `datasets` itself writes them
_PICTURES = ("jpeg", "png")
_WORDS = {"string": "string", "large_string": "string", "binary": "bytes", "large_binary": "bytes"}
_NUMBERS = {"bool", *dtypes.INTEGERS, "float16", "float32", "float64"}
_TIMES = {"timestamp": "datetime64", "duration": "timedelta64"}
_DATES = {"date32": "datetime64:D", "date64": "datetime64:ms"}
_UNITS = ("s", "ms", "us", "ns")


# --- To Hugging Face


def to_hf(dataset: Dataset, path: str | os.PathLike[str] | None = None) -> datasets.Dataset:
    """Return a `datasets.Dataset` with the same rows.

    Pictures become `Image`, shapes become nested lists, and missing values are None. `datasets` has neither bfloat16,
    which becomes float32, nor complex numbers, which become pairs.

    Args:
        dataset: What `recordkit.open` returns.
        path: Write an Arrow file of this name and read from it, which works for a dataset of any size; by default
            everything is held in memory.

    >>> import tempfile, recordkit as rk
    >>> folder = tempfile.mkdtemp()
    >>> _ = rk.write(f"{folder}/notes.tfrecord", [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}])
    >>> notes = to_hf(rk.open(f"{folder}/notes.tfrecord"))
    >>> notes.features, notes[0]
    ({'id': Value('int64'), 'tags': List(Value('string'))}, {'id': 1, 'tags': ['a', 'b']})
    """
    features = _features(pa.RecordBatchReader.from_stream(dataset).schema, _pictures(dataset.schema))
    # Not from the stream, which turns every error into an OSError.
    batches = (pa.Table.from_batches([pa.record_batch(batch)]) for batch in dataset.batch(_ROWS))
    pieces = (tables.cast_table_to_features(batch, features) for batch in batches)
    if path is None:
        table = pa.concat_tables([features.arrow_schema.empty_table(), *pieces])
        return datasets.Dataset(table, info=datasets.DatasetInfo(features=features))
    return _written(pieces, features, Path(path))


def _pictures(schema: Schema | None) -> set[str]:
    fields = {**schema.fields, **schema.sequences} if schema is not None else {}
    return {name for name, field in fields.items() if field.dtype in _PICTURES}


def _features(schema: Any, pictures: set[str]) -> datasets.Features:
    return datasets.Features({field.name: _feature(field.type, field.name in pictures) for field in schema})


def _feature(kind: Any, picture: bool) -> Any:
    if pa.types.is_large_list(kind):
        return datasets.List(_feature(kind.value_type, picture))
    if pa.types.is_fixed_size_list(kind):
        return datasets.List(_feature(kind.value_type, picture), length=kind.list_size)
    if pa.types.is_large_binary(kind):
        return datasets.Image() if picture else datasets.Value("binary")
    if pa.types.is_large_string(kind):
        return datasets.Value("string")
    return datasets.Features.from_arrow_schema(pa.schema([("value", kind)]))["value"]


def _written(pieces: Iterator[Any], features: datasets.Features, path: Path) -> datasets.Dataset:
    if path.exists():
        message = f"{path}: already exists\n  Choose another name, or remove it first."
        raise TargetExistsError(message, path=str(path))
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with (
            pa.OSFile(str(unfinished), "wb") as sink,
            pa.RecordBatchStreamWriter(sink, features.arrow_schema) as writer,
        ):
            for piece in pieces:
                writer.write_table(piece)
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return datasets.Dataset.from_file(str(path))


# --- From Hugging Face


def from_hf(
    dataset: datasets.Dataset,
    path: str | os.PathLike[str],
    *,
    schema: Schema | Mapping[str, Any] | None = None,
    **options: Any,
) -> Written:
    """Write the rows of a `datasets.Dataset` as a dataset of records.

    A column that contains None becomes an optional field. Dicts become fields called `outer/inner`. An `Image` column
    becomes jpeg or png if its first pictures are all of that kind, and bytes otherwise; file names are not kept. A
    `ClassLabel` becomes int64, and its names are kept as `class_names` in the metadata. Times with a zone are stored in
    UTC.

    Args:
        dataset: One split.
        path: As for `recordkit.create`.
        schema: What to store the columns as; by default what their features say.
        options: As for `recordkit.create`.

    Raises:
        SchemaError: A record cannot hold a column.

    >>> import tempfile, recordkit as rk
    >>> notes = datasets.Dataset.from_dict({"id": [1, 2], "tags": [["a"], []], "note": ["seen", None]})
    >>> _ = from_hf(notes, tempfile.mkdtemp() + "/notes.tfrecord")
    >>> rk.open(_.path).schema
    Schema({'id': 'int64', 'tags': 'string[?]', 'note': 'string?'})
    """
    if not isinstance(dataset, datasets.Dataset):
        message = (
            f"expected a datasets.Dataset, found {type(dataset).__name__}\n  Give one split, such as data['train']."
        )
        raise SchemaError(message, expected="datasets.Dataset", found=type(dataset).__name__)
    features = _flat(dataset.features)
    if schema is None:
        schema = Schema({name: _declared(dataset, name, feature) for name, feature in features.items()})
    metadata = {**_class_names(features), **(options.pop("metadata", None) or {})} or None
    with create(path, schema, **{"rows": len(dataset), "metadata": metadata, **options}) as writer:
        for piece in _pieces(dataset, features, writer.committed):
            columns = {name: arrow_column(column, name, name) for name, column in piece.items()}
            valid = {name: filled.valid for name, filled in columns.items() if filled.valid is not None}
            writer.write_batch({name: filled.column for name, filled in columns.items()}, valid=valid)
    return writer.close()


def _flat(features: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return features by their full names, including those in dicts."""
    flat: dict[str, Any] = {}
    for name, feature in features.items():
        inside = isinstance(feature, dict)
        flat |= _flat(feature, f"{prefix}{name}/") if inside else {prefix + name: feature}
    return flat


def _class_names(features: Mapping[str, Any]) -> dict[str, Any]:
    names = {name: feature.names for name, feature in features.items() if isinstance(feature, datasets.ClassLabel)}
    return {"class_names": names} if names else {}


def _pieces(dataset: Any, features: Mapping[str, Any], start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield columns by their full names, some rows at a time; pictures as their bytes."""
    rows = dataset.select(range(start, len(dataset))) if start else dataset
    for table in rows.with_format("arrow").iter(_ROWS):
        whole = tables.embed_table_storage(table)  # which reads pictures that are files of their own
        yield {name: _inner(whole, name, feature) for name, feature in features.items()}


def _inner(table: Any, name: str, feature: Any) -> Any:
    outer, *path = _path(table.column_names, name)
    column = table.column(outer)
    for step in path:
        column = compute.struct_field(column, step)
    return _bytes_of(column, feature) if _has_image(feature) else column


def _path(names: list[str], name: str) -> list[str]:
    if name in names:
        return [name]
    outer = next(outer for outer in names if name.startswith(f"{outer}/"))
    return [outer, *name[len(outer) + 1 :].split("/")]


def _has_image(feature: Any) -> bool:
    while isinstance(feature, datasets.List | datasets.LargeList):
        feature = feature.feature
    return isinstance(feature, datasets.Image)


def _bytes_of(column: Any, feature: Any) -> Any:
    """Return pictures as their bytes, also those in lists."""
    if isinstance(feature, datasets.Image):
        return compute.struct_field(column, "bytes")
    # The lists are short, so rebuilding them from slices of their parts is not worth the code.
    return pa.chunked_array([pa.array(map(_bytes_in, column.to_pylist()), _bytes_type(feature))])


def _bytes_in(value: Any) -> Any:
    return [*map(_bytes_in, value)] if isinstance(value, list) else value and value["bytes"]


def _bytes_type(feature: Any) -> Any:
    if isinstance(feature, datasets.Image):
        return pa.large_binary()
    return pa.list_(_bytes_type(feature.feature), getattr(feature, "length", -1))


# --- Features as types of a schema


def _declared(dataset: Any, name: str, feature: Any) -> str:
    return _type(dataset, name, feature) + ("?" if _some_missing(dataset, name) else "")


def _some_missing(dataset: Any, name: str) -> bool:
    outer, *path = _path(dataset.data.column_names, name)
    column = dataset.data.column(outer)
    for step in path:
        column = compute.struct_field(column, step)
    return bool(column.null_count)


def _type(dataset: Any, name: str, feature: Any) -> str:
    dims: list[int | None] = []
    while isinstance(feature, datasets.List | datasets.LargeList):
        length = getattr(feature, "length", -1)
        dims.append(None if length < 0 else length)
        feature = feature.feature
    dtype = _dtype(dataset, name, feature)
    dims += getattr(feature, "shape", ())
    return dtype + (f"[{','.join('?' if size is None else str(size) for size in dims)}]" if dims else "")


def _dtype(dataset: Any, name: str, feature: Any) -> str:
    if isinstance(feature, datasets.Image):
        return _picture(dataset, name)
    text = str(getattr(feature, "dtype", "")) if not isinstance(feature, dict) else "a dict"
    kind, _, rest = text.partition("[")
    unit = rest.rstrip("]").partition(",")[0]
    if kind in _TIMES and unit in _UNITS:
        return f"{_TIMES[kind]}:{unit}"
    known = _WORDS.get(text) or _DATES.get(text) or (text if text in _NUMBERS else None)
    if known is None or isinstance(feature, datasets.Audio):
        found = "a list of dicts" if text == "a dict" else repr(feature)
        advice = "Leave it out with remove_columns, or convert it with map."
        message = f"{name}: a record cannot hold {found}\n  {advice}"
        raise SchemaError(message, field=name, found=found)
    return known


def _picture(dataset: Any, name: str) -> str:
    """Return the kind of the first pictures."""
    first = next(_pieces(dataset, {name: _flat(dataset.features)[name]}), None)
    column = arrow_column(first[name], name, name).column if first else BytesColumn.of([])
    while isinstance(column, Ragged):
        column = column.values
    assert isinstance(column, BytesColumn)
    kinds = {images.kind(picture) for picture in column.reshape((len(column.offsets) - 1,)) if picture}
    return str(kinds.pop()) if len(kinds) == 1 and kinds <= set(_PICTURES) else "bytes"
