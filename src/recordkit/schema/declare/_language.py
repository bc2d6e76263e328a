"""The schema language: `dtype[dims]`, then `?` if the field may be missing.

This module parses only the text. `recordkit.dtypes` says what a dtype means, docs/format/schema.md how it is stored.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from recordkit import dtypes
from recordkit.errors import SchemaError

if TYPE_CHECKING:
    from recordkit.schema.values import Shape

_TYPE: Final = re.compile(r"\s*(?P<dtype>[^\s\[\]?]+)\s*(?P<shape>\[(?P<dims>[^\[\]]*)\])?\s*(?P<optional>\?)?\s*")
_DIM: Final = re.compile(r"[0-9]+")

# NumPy 1 stops at 32 dimensions.
_MOST_DIMS: Final = 32
# A protobuf message is smaller than 2 GiB, so no record holds more values; a larger number is a typo.
_MOST_VALUES: Final = 2**31 - 1


def parse(text: str) -> tuple[str, Shape, bool]:
    """Return the dtype, the shape (with None for `?`) and whether the field may be missing.

    >>> parse("float32[768]"), parse("uint8[?, ?, 3]?")
    (('float32', (768,), False), ('uint8', (None, None, 3), True))
    >>> parse("float32[768")
    Traceback (most recent call last):
        ...
    recordkit.errors.SchemaError: 'float32[768' is not a type
      A type is a dtype, then its dimensions, then ? if it may be missing: 'int64', 'float32[768]', 'string[?]?'.
    """
    match = _TYPE.fullmatch(text)
    if match is None:
        message = (
            f"{text!r} is not a type\n  A type is a dtype, then its dimensions, then ? if it may be missing: "
            f"'int64', 'float32[768]', 'string[?]?'."
        )
        raise SchemaError(message)
    if match["dtype"] in dtypes.TIMES and match["dims"] is not None:
        message = (
            f"{text!r} has no unit of time\n  A unit follows a colon: '{match['dtype']}:ns', '{match['dtype']}:ns[?]'."
        )
        raise SchemaError(message)
    dtype = dtypes.canonical(match["dtype"])
    shape = parse_dims(match["dims"], text) if match["shape"] else ()
    return dtype, shape, match["optional"] is not None


def parse_dims(dims: str, text: str) -> Shape:
    """Return the shape between the brackets of `text`."""
    if not dims.strip():
        message = f"{text!r} has no dimensions between its brackets\n  Write {text.partition('[')[0]!r} for a scalar."
        raise SchemaError(message)
    return check_dims(tuple(_parse_dim(dim.strip(), text) for dim in dims.split(",")), text)


def _parse_dim(dim: str, text: str) -> int | None:
    if dim == "?":
        return None
    if not _DIM.fullmatch(dim) or len(dim) > 18:  # 18 digits fit an int64
        message = f"{text!r}: {dim!r} is not a dimension\n  Dimensions are numbers, or ? for any length."
        raise SchemaError(message)
    return int(dim)


def check_dims(shape: Shape, text: str) -> Shape:
    """Return `shape` if a record can hold it."""
    if len(shape) > _MOST_DIMS:
        message = f"{text!r} has {len(shape)} dimensions\n  NumPy arrays have at most {_MOST_DIMS}."
        raise SchemaError(message)
    if math.prod(size for size in shape if size) > _MOST_VALUES:
        message = f"{text!r} is larger than any record\n  A record holds less than 2 GiB."
        raise SchemaError(message)
    return shape


def text_of(dtype: str, shape: Shape, optional: bool) -> str:
    """Return the text that `parse` reads.

    >>> text_of("float32", (None, 3), True)
    'float32[?,3]?'
    """
    dims = ",".join("?" if size is None else str(size) for size in shape)
    return f"{dtype}{f'[{dims}]' if shape else ''}{'?' if optional else ''}"
