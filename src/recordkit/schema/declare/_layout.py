"""Layout: which features store each field.

This is the table of docs/format/schema.md as code; reading and writing both follow it. It also refuses declarations
that contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from recordkit import dtypes
from recordkit.dtypes import DTYPES
from recordkit.errors import SchemaError
from recordkit.examples import Feature

from ._fields import AnyField, Array, Field, TensorProto, field_of

if TYPE_CHECKING:
    import numpy as np

    from recordkit.examples import Kind
    from recordkit.schema.values import Shape


Storage = Literal["list", "raw", "tensor"]


@dataclass(frozen=True)
class Layout:
    """How one field is stored.

    Attributes:
        field: The declaration.
        kind: The kind of list that holds the values.
        storage: "list": one list value for each element; "raw": one bytes value for the array; "tensor": a TensorProto.
        count: The number of values of a record (or a step) in that list; None for any.
        shape_name: The feature that holds the shape, if there is one.
        dtype_name: The feature that holds the dtype's name, if there is one.
        steps: Whether it is a feature list of a SequenceExample.
    """

    name: str
    field: AnyField
    kind: Kind
    storage: Storage
    count: int | None
    shape_name: str | None = None
    dtype_name: str | None = None
    steps: bool = False

    @cached_property
    def dtype(self) -> str:
        """The dtype's name; empty for a TensorProto of any dtype."""
        return self.field.dtype or ""

    @cached_property
    def shape(self) -> Shape | None:
        """The declared shape; None if even the number of dimensions is open."""
        return self.field.shape

    @cached_property
    def is_bytes(self) -> bool:
        """Whether the values in the list are the byte strings themselves."""
        return self.kind == "bytes" and self.storage == "list"

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The declared shape with 0 for every `?`: the shape of a missing array."""
        return tuple(size or 0 for size in self.shape or ())

    @cached_property
    def size(self) -> int | None:
        """The number of elements of every array; None if they differ."""
        return None if self.shape is None or None in self.shape else math.prod(self.sizes)

    @cached_property
    def expected(self) -> str:
        """The declared type, for errors."""
        return str(self.field)

    @cached_property
    def if_missing(self) -> str:
        """Advice for a field that turned out to be missing."""
        how = f"Declare '{self.expected}?'" if isinstance(self.field, Field) else "Pass optional=True"
        return f"{how} if it may be missing."

    @cached_property
    def wire_names(self) -> tuple[str, ...]:
        """The names of the features that store it, its own first."""
        return tuple(name for name in (self.name, self.shape_name, self.dtype_name) if name is not None)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The features to decode, its own first.

        The decoder only marks a missing companion, since it does not know what the companion is for.
        """
        missing: Literal["error", "mark"] = "mark" if self.field.optional else "error"
        features = [Feature(self.name, self.kind, self.count, missing, self.steps)]
        if self.shape_name is not None:
            rank = None if self.shape is None else len(self.shape)
            features.append(Feature(self.shape_name, "int64", rank, "mark", self.steps))
        if self.dtype_name is not None:
            features.append(Feature(self.dtype_name, "bytes", 1, "mark", self.steps))
        return tuple(features)

    def numpy_dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype of the values; a method, because bfloat16 may need an import."""
        return dtypes.numpy_dtype(self.dtype)


def layout_of(name: str, field: AnyField, *, steps: bool = False) -> Layout:
    """Return how a field is stored under `name`.

    >>> layout_of("x", Field("float64[?,?]")).wire_names
    ('x', 'x/shape', 'x/dtype')
    >>> layout_of("x", Field("int32[4]")).kind, layout_of("x", Field("int32[2,2]")).kind
    ('int64', 'bytes')
    """
    if isinstance(field, TensorProto):
        return Layout(name, field, "bytes", "tensor", 1, steps=steps)
    if isinstance(field, Array):
        return Layout(name, field, "bytes", "raw", 1, shape_name=field.shape_from, steps=steps)
    kind = _list_kind(field)
    # A single `?` follows from the number of values or bytes; with more dimensions that is not enough.
    open_shape = len(field.shape) > 1 and None in field.shape
    shape_name = f"{name}/shape" if open_shape else None
    if kind is None:
        dtype_name = f"{name}/dtype" if open_shape else None
        return Layout(name, field, "bytes", "raw", 1, shape_name, dtype_name, steps)
    count = None if None in field.shape else math.prod(size or 0 for size in field.shape)
    return Layout(name, field, kind, "list", count, shape_name, None, steps)


def _list_kind(field: Field) -> Kind | None:
    """Return the kind of list whose values are the field's values, or None if it is stored as raw bytes."""
    dtype = DTYPES.get(field.dtype)  # None of times
    fits = dtype is not None and (dtype.most_dims is None or len(field.shape) <= dtype.most_dims)
    return dtype.kind if dtype is not None and fits else None


Declared: TypeAlias = "str | AnyField | Mapping[str, Any]"


def flat_fields(declared: Any, prefix: str = "") -> dict[str, AnyField]:
    """Return nested declarations as one flat dict of fields."""
    if not isinstance(declared, Mapping):
        message = f"a schema is a dict of names and types, found {type(declared).__name__}"
        raise SchemaError(message)
    flat: dict[str, AnyField] = {}
    for key, value in declared.items():
        name = _checked_name(key, prefix)
        more = flat_fields(value, f"{name}/") if isinstance(value, Mapping) else {name: _field(name, value)}
        for inner, field in more.items():
            if inner in flat:
                message = f"{inner}: declared twice\n  Once under its full name, once in a nested dict."
                raise SchemaError(message, field=inner)
            flat[inner] = field
    return flat


def _checked_name(key: Any, prefix: str) -> str:
    if not isinstance(key, str) or not key:
        message = f"{prefix}{key!r}: a field's name is a string that is not empty"
        raise SchemaError(message)
    try:
        key.encode()
    except UnicodeEncodeError:
        message = f"{prefix}{key!r}: a field's name must have a UTF-8 form, and this has a lone surrogate"
        raise SchemaError(message) from None
    return prefix + key


def _field(name: str, declared: object) -> AnyField:
    try:
        return field_of(declared)
    except SchemaError as error:
        message = f"{name}: {error}"
        raise SchemaError(message, field=name) from None


def layouts_of(fields: Mapping[str, AnyField], sequences: Mapping[str, AnyField]) -> dict[str, Layout]:
    """Return every field's layout; raise if two would use the same feature."""
    layouts = {name: layout_of(name, field) for name, field in fields.items()}
    for name, field in sequences.items():
        if name in layouts:
            message = (
                f"{name}: declared as a field and as a sequence\n  Columns have one name each; rename one of them."
            )
            raise SchemaError(message, field=name)
        if field.default is not None:
            message = f"{name}: a sequence can have no default\n  A missing sequence is read as one without steps."
            raise SchemaError(message, field=name)
        layouts[name] = layout_of(name, field, steps=True)
    _check_companions(layouts)
    return layouts


def _check_companions(layouts: Mapping[str, Layout]) -> None:
    """Raise if a companion has the name of a field or of another companion; only `Array`s may share a shape."""
    borrowed = {layout.field.shape_from for layout in layouts.values() if isinstance(layout.field, Array)}
    for layout in layouts.values():
        if isinstance(layout.field, Array):
            _check_shape_from(layouts, layout)
            continue
        for companion in layout.wire_names[1:]:
            if companion in layouts or companion in borrowed:
                message = (
                    f"{companion}: this name is needed for the {companion.rpartition('/')[2]} of {layout.name!r}\n"
                    f"  {layout.name!r} is {layout.expected}, whose arrays are stored with it. Rename one of the two."
                )
                raise SchemaError(message, field=companion)


def _check_shape_from(layouts: Mapping[str, Layout], layout: Layout) -> None:
    """Raise unless an `Array` can take its shape from the feature it names."""
    name, shape_name = layout.name, layout.shape_name
    if shape_name is None:
        return
    other = layouts.get(shape_name)
    if other is not None and (other.kind != "int64" or other.steps != layout.steps):
        message = (
            f"{name}: its shape cannot be in {shape_name!r}, which is {other.expected}\n"
            f"  Declare the shape as int64[?]."
        )
        raise SchemaError(message, field=name)
    if any(other.shape_name == shape_name and other.steps != layout.steps for other in layouts.values()):
        message = f"{name}: {shape_name!r} cannot hold the shapes of a field and of a sequence\n  Rename one of them."
        raise SchemaError(message, field=name)
