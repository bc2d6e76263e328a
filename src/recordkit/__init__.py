"""recordkit: TFRecord as a dataset format that people can trust.

>>> import recordkit as rk
>>> schema = rk.Schema({"id": "int64", "tokens": "int64[?]"})
>>> packed = schema.encode({"id": [1, 2], "tokens": [[3, 4], [5]]})
>>> schema.decode(packed)["tokens"].to_list()
[[3, 4], [5]]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recordkit import errors
from recordkit.errors import CorruptRecordError, MissingExtraError, RecordKitError, SchemaError

if TYPE_CHECKING:
    from recordkit import columns, examples, records, schema
    from recordkit.columns import Batch, BytesColumn, Ragged
    from recordkit.schema import Array, Field, Schema, TensorProto

__all__ = [
    "Array",
    "Batch",
    "BytesColumn",
    "CorruptRecordError",
    "Field",
    "MissingExtraError",
    "Ragged",
    "RecordKitError",
    "Schema",
    "SchemaError",
    "TensorProto",
    "columns",
    "errors",
    "examples",
    "records",
    "schema",
]
__version__ = "0.1.0"

# Where the names live that are looked up when they are first used: importing is cheap, whatever there is to import.
_PLACES = {
    "Array": "schema",
    "Batch": "columns",
    "BytesColumn": "columns",
    "Field": "schema",
    "Ragged": "columns",
    "Schema": "schema",
    "TensorProto": "schema",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        message = f"module 'recordkit' has no attribute {name!r}"
        raise AttributeError(message)
    module = import_module(f"recordkit.{_PLACES.get(name, name)}")
    value = getattr(module, name) if name in _PLACES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
