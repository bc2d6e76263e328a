"""Declare: what a schema says of each field, and how that is stored, printed, saved and compared."""

from ._compare import Difference, differences
from ._feature_description import feature_description, fields_of_description, sequences_of_description
from ._fields import AnyField, Array, Field, TensorProto, field_from_parts
from ._layout import Declared, Layout, flat_fields, layout_of, layouts_of
from ._text import as_line, as_table, json_text, read_text, save_text, schema_from_json, schema_to_dict

__all__ = [
    "AnyField",
    "Array",
    "Declared",
    "Difference",
    "Field",
    "Layout",
    "TensorProto",
    "as_line",
    "as_table",
    "differences",
    "feature_description",
    "field_from_parts",
    "fields_of_description",
    "flat_fields",
    "json_text",
    "layout_of",
    "layouts_of",
    "read_text",
    "save_text",
    "schema_from_json",
    "schema_to_dict",
    "sequences_of_description",
]
