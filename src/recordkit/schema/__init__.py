"""The schema: names, dtypes and shapes of a dataset's fields, and how each is stored.

A type is a dtype, then dimensions, then `?` if the field may be missing: `int64`, `float32[768]`, `uint8[?,?,3]?`.
docs/format/schema.md says how each is stored. Nothing here knows files: chunks of records go in and out.

>>> schema = Schema({"id": "int64", "tokens": "int64[?]", "note": "string?"})
>>> batch = schema.decode(schema.encode({"id": [1, 2], "tokens": [[3, 4], []], "note": [None, "seen"]}))
>>> batch["tokens"].to_list(), batch.row(0)["note"]
([[3, 4], []], None)
"""

from recordkit.schema.declare import Array, Difference, Field, TensorProto
from recordkit.schema.encode import RowEncoder

from ._errors import unreadable
from ._schema import Schema

__all__ = [
    "Array",
    "Difference",
    "Field",
    "RowEncoder",
    "Schema",
    "TensorProto",
    "unreadable",
]
