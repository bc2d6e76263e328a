"""Declarations: what is given for a schema, made into fields and layouts; whatever contradicts itself is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from recordkit.errors import SchemaError

from ._fields import AnyField, Array, field_of
from ._layout import Layout, layout_of

Declared: TypeAlias = "str | AnyField | Mapping[str, Any]"


def flat_fields(declared: Any, prefix: str = "") -> dict[str, AnyField]:
    """Return nested declarations as one dict of fields."""
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
    """Return every field's layout; names that would meet on the wire are refused."""
    layouts = {name: layout_of(name, field) for name, field in fields.items()}
    for name, field in sequences.items():
        if name in layouts:
            message = (
                f"{name}: declared as a field and as a sequence\n  Columns have one name each; rename one of them."
            )
            raise SchemaError(message, field=name)
        if field.default is not None:
            message = f"{name}: a sequence can have no default\n  Where it is missing, it is read as no steps."
            raise SchemaError(message, field=name)
        layouts[name] = layout_of(name, field, steps=True)
    _check_companions(layouts)
    return layouts


def _check_companions(layouts: Mapping[str, Layout]) -> None:
    """Raise if a companion has the name of a field, or of another's companion; only `Array`s may share a shape."""
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
    """Raise unless the feature an `Array` takes its shape from can be a list of int64s beside it."""
    name, shape_name = layout.name, layout.shape_name
    if shape_name is None:
        return
    other = layouts.get(shape_name)
    if other is not None and (other.kind != "int64" or other.steps != layout.steps):
        message = (
            f"{name}: its shape cannot be in {shape_name!r}, which is {other.expected}\n"
            f"  A shape is int64[?], beside the array."
        )
        raise SchemaError(message, field=name)
    if any(other.shape_name == shape_name and other.steps != layout.steps for other in layouts.values()):
        message = f"{name}: {shape_name!r} cannot hold the shapes of a field and of a sequence\n  Rename one of them."
        raise SchemaError(message, field=name)
