"""Values: one value, or an array of them, checked against a dtype and a shape.

Knows no fields: an error says what was found, and the caller adds the name and the row.
"""

from ._casts import fit
from ._values import (
    Shape,
    check_shape,
    check_stack,
    shape_text,
    to_array,
    to_byte_strings,
    to_bytes,
    to_int,
)

__all__ = [
    "Shape",
    "check_shape",
    "check_stack",
    "fit",
    "shape_text",
    "to_array",
    "to_byte_strings",
    "to_bytes",
    "to_int",
]
