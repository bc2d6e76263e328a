"""Fields: the declaration of one name of a schema.

`Field` is a type of the schema language, which fixes how values are stored. `Array` and `TensorProto` are for arrays
that other tools stored in their own ways.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from recordkit import dtypes
from recordkit.errors import SchemaError
from recordkit.examples import TENSOR_DTYPES
from recordkit.images import checked_quality
from recordkit.schema._errors import Misfit, unfit
from recordkit.schema.values import Shape, to_array, to_byte_strings, to_bytes

from . import _language


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Field:
    """One field: its dtype, its shape, and whether it may be missing.

    A plain string does for most fields; the class adds what the language cannot say.

    Args:
        text: A type of the schema language.
        lossy: Let values be rounded to what the dtype holds. Overflow stays an error.
        default: The value to read where the field is missing: one for all elements, or one for each of a fixed shape.
        quality: For a jpeg given as an array of pixels, 1 to 100; 95 by default. Bytes are stored unchanged.

    >>> Field("float32[3]?", lossy=True, default=0.5)
    Field('float32[3]?', lossy=True, default=0.5)
    >>> str(Field("uint8[ ?, 3 ]")), Field("uint8[?,3]").shape
    ('uint8[?,3]', (None, 3))
    >>> Field("jpeg", quality=90)
    Field('jpeg', quality=90)
    """

    dtype: str
    shape: Shape
    optional: bool
    lossy: bool
    default: Any
    quality: int | None

    def __init__(self, text: str, *, lossy: bool = False, default: Any = None, quality: int | None = None) -> None:
        dtype, shape, optional = _language.parse(text)
        _set(self, dtype=dtype, shape=shape, optional=optional, lossy=bool(lossy), default=None)
        # Set before the default, which may be an array to encode.
        _set(self, quality=None if quality is None else checked_quality(quality, dtype))
        if default is not None:
            _set(self, default=_checked_default(self, default))

    def __str__(self) -> str:
        return _language.text_of(self.dtype, self.shape, self.optional)

    def __repr__(self) -> str:
        lossy = ", lossy=True" if self.lossy else ""
        default = "" if self.default is None else f", default={_default_text(self.default)}"
        quality = "" if self.quality is None else f", quality={self.quality}"
        return f"Field({str(self)!r}{lossy}{default}{quality})"

    def __eq__(self, other: object) -> bool:
        # By text, so that a NaN default equals itself and -0.0 is not 0.0.
        return repr(self) == repr(other) if isinstance(other, Field) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True)
class Array:
    """An array stored as one value of raw bytes, little-endian and row-major.

    Args:
        dtype: A numeric dtype.
        shape: The shape of every array; one dimension may be `None`, and follows from the number of bytes.
        shape_from: Instead of `shape`: the name of an int64 feature that holds the shape.
        optional: Whether it may be missing.
        lossy: As for `Field`.

    >>> Array("float32", shape_from="shape")
    Array('float32', shape_from='shape')
    """

    dtype: str
    shape: Shape | None = None
    shape_from: str | None = field(default=None, kw_only=True)
    optional: bool = field(default=False, kw_only=True)
    lossy: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _set(self, dtype=_numeric(self.dtype, "Array"))
        if (self.shape is None) == (self.shape_from is None):
            message = f"{self!r}: expected either shape= or shape_from=\n  One of them gives the shape of the array."
            raise SchemaError(message)
        if self.shape is not None:
            _set(self, shape=_checked_shape(self.shape, self))
            if None in self.shape and (self.shape.count(None) > 1 or 0 in self.shape):
                advice = "Use at most one None and no 0, or shape_from=."
                message = f"{self!r}: the number of bytes does not determine this shape\n  {advice}"
                raise SchemaError(message)

    default = quality = None  # as in Field; class attributes, so not part of the dataclass

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"Array({_arguments(self.dtype, self)})"


@dataclass(frozen=True)
class TensorProto:
    """A tensor stored by `tf.io.serialize_tensor`: one bytes value that contains its dtype and shape.

    Args:
        dtype: The dtype of every tensor; None accepts any, as long as all tensors of a batch have the same.
        shape: The shape of every tensor, with None for any length; by default any, as long as all tensors of a batch
            have equally many dimensions.
        optional: Whether it may be missing.
        lossy: As for `Field`.

    >>> TensorProto("float32", (None, 3))
    TensorProto('float32', shape=(None, 3))
    """

    dtype: str | None = None
    shape: Shape | None = None
    optional: bool = field(default=False, kw_only=True)
    lossy: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.dtype is not None:
            dtype = dtypes.canonical(self.dtype)
            if dtype not in TENSOR_DTYPES and dtype != "string":
                message = (
                    f"TensorProto({self.dtype!r}): TensorFlow does not serialize tensors of this dtype\n"
                    "  Use bytes, or int64 for times."
                )
                raise SchemaError(message)
            _set(self, dtype=dtype)
        if self.shape is not None:
            _set(self, shape=_checked_shape(self.shape, self))

    default = quality = None

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"TensorProto({_arguments(self.dtype, self)})"


AnyField: TypeAlias = Field | Array | TensorProto


def field_of(declared: object) -> AnyField:
    """Return a declaration as a field.

    >>> field_of("int64?")
    Field('int64?')
    """
    if isinstance(declared, Field | Array | TensorProto):
        return declared
    if isinstance(declared, str):
        return Field(declared)
    hint = "A field is a text such as 'float32[3]', a Field, an Array, a TensorProto, or a dict of fields."
    message = f"{declared!r} is not a type\n  {hint}"
    raise SchemaError(message)


def field_from_parts(dtype: str, shape: Shape = (), *, optional: bool = False, default: Any = None) -> Field:
    """Return the field with this dtype and shape."""
    return Field(_language.text_of(dtype, shape, optional), default=default)


def _arguments(dtype: str | None, declared: Array | TensorProto) -> str:
    words = [repr(dtype)] if dtype is not None else []
    words += [f"shape={declared.shape!r}"] if declared.shape is not None else []
    if isinstance(declared, Array) and declared.shape_from is not None:
        words.append(f"shape_from={declared.shape_from!r}")
    words += [f"{name}=True" for name in ("optional", "lossy") if getattr(declared, name)]
    return ", ".join(words)


def _numeric(dtype: str, what: str) -> str:
    name = dtypes.canonical(dtype)
    if dtypes.is_bytes(name):
        message = f"{what}({dtype!r}): raw bytes hold numbers\n  Declare {dtype!r} itself, such as '{dtype}[?]'."
        raise SchemaError(message)
    return name


def _checked_shape(shape: Any, declared: object) -> Shape:
    """Return any sequence of sizes as a tuple of ints and None."""
    sizes = tuple(None if size is None else int(size) for size in shape)
    if any(size is not None and size < 0 for size in sizes):
        message = f"{declared!r}: a dimension is less than zero\n  Write None for any length."
        raise SchemaError(message)
    return _language.check_dims(sizes, repr(declared))


def _checked_default(declared: Field, default: Any) -> Any:
    """Return a default as one Python value or nested tuples: immutable, and exactly what readers will see."""
    text = str(declared)
    if not declared.optional:
        message = f"{text!r} is never missing, so it needs no default\n  Write '{text}?' if it may be."
        raise SchemaError(message)
    if None in declared.shape:
        message = f"{text!r} can have no default\n  A missing field of any length is read as empty."
        raise SchemaError(message)
    try:
        return _frozen_default(declared, default)
    except Misfit as misfit:
        name = "default"
        raise unfit(name, text, misfit) from None


def _frozen_default(declared: Field, default: Any) -> Any:
    single = not isinstance(default, list | tuple | np.ndarray)
    shape = () if single else declared.shape
    if dtypes.is_bytes(declared.dtype):
        found, values = (
            ((), [to_bytes(default, declared.dtype)])
            if single
            else to_byte_strings(default, declared.dtype, shape, quality=declared.quality)
        )
        array = np.empty(len(values), np.object_)
        array[:] = [value.decode() for value in values] if declared.dtype == "string" else values
        return _tuples(array.reshape(found).tolist())
    array = to_array(default, declared.dtype, shape, rounding=declared.lossy)
    if array.dtype.kind in "mM":
        return _scalars(array)
    # Via the shortest text, so that 0.1 declared for a float32 prints as 0.1 and is still the same float32.
    if declared.dtype in ("float32", "float16"):
        array = np.vectorize(lambda value: float(str(value)), otypes=[np.float64])(array) if array.size else array
    return _tuples(array.tolist())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _scalars(array: Any) -> Any:
    return tuple(map(_scalars, array)) if array.ndim else array[()]


def _default_text(default: Any) -> str:
    """Return Python code for a default, NaN and infinity included."""
    if isinstance(default, tuple):
        return f"({', '.join(map(_default_text, default))}{',' if len(default) == 1 else ''})"
    if isinstance(default, float) and (default != default or default in (float("inf"), float("-inf"))):
        return f"float('{default}')"
    return repr(default).replace("numpy.", "np.", 1) if isinstance(default, np.generic) else repr(default)


def _set(target: object, **attributes: Any) -> None:
    """Set attributes of a frozen dataclass during construction."""
    for name, value in attributes.items():
        object.__setattr__(target, name, value)
