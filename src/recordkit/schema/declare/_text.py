"""Text: a schema as JSON, and as Python that can be pasted into a program.

    {"recordkit": "schema", "version": 1,
     "fields": {"id": "int64", "x": {"type": "float32[3]?", "lossy": true, "default": 0.5},
                "y": {"array": "float32", "shape_from": "shape"}, "z": {"tensor": null, "shape": [null, 3]},
                "image": {"type": "jpeg", "quality": 90}},
     "sequences": {}}

A default that JSON cannot express is {"base64": ...}: its bytes as a field would store them.
"""

from __future__ import annotations

import base64
import errno
import json
import math
import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import dtypes
from recordkit.errors import SchemaError, StorageError, TargetExistsError
from recordkit.filesystems import refusing
from recordkit.schema.values import to_array

from ._fields import AnyField, Array, Field, TensorProto

if TYPE_CHECKING:
    from pathlib import Path


VERSION: Final = 1


def schema_to_dict(fields: Mapping[str, AnyField], sequences: Mapping[str, AnyField]) -> dict[str, Any]:
    """Return a schema as plain dicts, lists, strings and numbers."""
    return {
        "recordkit": "schema",
        "version": VERSION,
        "fields": {name: _field_to_json(field) for name, field in fields.items()},
        "sequences": {name: _field_to_json(field) for name, field in sequences.items()},
    }


def json_text(schema: Mapping[str, Any]) -> str:
    """Return the JSON text, a line a field."""
    return json.dumps(schema, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def schema_from_json(
    text: str | Mapping[str, Any], *, path: str = ""
) -> tuple[dict[str, AnyField], dict[str, AnyField]]:
    """Return the fields and sequences that a JSON text or its parsed form describes."""
    where = f"{path}: " if path else ""
    try:
        schema = json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        message = f"{where}not JSON: {error}"
        raise SchemaError(message, path=path or None) from None
    if not isinstance(schema, Mapping) or schema.get("recordkit") != "schema":
        message = f'{where}not a schema of recordkit\n  A saved one begins with {{"recordkit": "schema"}}.'
        raise SchemaError(message, path=path or None)
    version = schema.get("version")
    if not isinstance(version, int) or version > VERSION:
        message = (
            f"{where}schema format {version}, and this recordkit reads up to {VERSION}\n  Install a newer recordkit."
        )
        raise SchemaError(message, path=path or None)
    return _fields_from_json(schema, "fields", where), _fields_from_json(schema, "sequences", where)


def _fields_from_json(schema: Mapping[str, Any], part: str, where: str) -> dict[str, AnyField]:
    declared = schema.get(part, {})
    if not isinstance(declared, Mapping):
        message = f"{where}{part!r} is not a JSON object"
        raise SchemaError(message)
    fields: dict[str, AnyField] = {}
    for name, value in declared.items():
        try:
            fields[name] = _field_from_json(value)
        except (SchemaError, TypeError, ValueError) as error:
            message = f"{where}{name}: {error}"
            raise SchemaError(message, field=name) from None
    return fields


def _field_to_json(field: AnyField) -> Any:
    if isinstance(field, Field):
        if not field.lossy and field.default is None and field.quality is None:
            return str(field)
        options: dict[str, Any] = {"type": str(field)}
        if field.default is not None:
            options["default"] = _default_to_json(field)
        if field.quality is not None:
            options["quality"] = field.quality
    else:
        options = {"array" if isinstance(field, Array) else "tensor": field.dtype}
        if field.shape is not None:
            options["shape"] = list(field.shape)
        if isinstance(field, Array) and field.shape_from is not None:
            options["shape_from"] = field.shape_from
        if field.optional:
            options["optional"] = True
    if field.lossy:
        options["lossy"] = True
    return options


def _field_from_json(value: Any) -> AnyField:
    if isinstance(value, str):
        return Field(value)
    if not isinstance(value, Mapping):
        message = f"not a type: {json.dumps(value)}"
        raise SchemaError(message)
    options = dict(value)
    if "type" in options:
        text = options.pop("type")
        if "default" in options:
            options["default"] = _default_from_json(options["default"], Field(text))
        return Field(text, **options)
    if "shape" in options:
        options["shape"] = tuple(options["shape"])
    if "array" in options:
        return Array(options.pop("array"), **options)
    if "tensor" in options:
        return TensorProto(options.pop("tensor"), **options)
    message = f"not a type: {json.dumps(value)}"
    raise SchemaError(message)


def _default_to_json(field: Field) -> Any:
    default = field.default
    if _is_plain(default):
        return default
    if dtypes.is_bytes(field.dtype):
        return _nested(default, lambda value: {"base64": base64.b64encode(value).decode()})
    shape = np.shape(default)
    array = to_array(default, field.dtype, shape)
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return {"base64": base64.b64encode(raw).decode(), "shape": list(shape)}


def _is_plain(default: Any) -> bool:
    """Tell whether JSON can hold a default directly."""
    if isinstance(default, tuple):
        return all(map(_is_plain, default))
    return isinstance(default, bool | int | str) or (isinstance(default, float) and math.isfinite(default))


def _nested(value: Any, leaf: Any) -> Any:
    return [_nested(part, leaf) for part in value] if isinstance(value, tuple | list) else leaf(value)


def _default_from_json(default: Any, field: Field) -> Any:
    if dtypes.is_bytes(field.dtype):
        return _nested(default, lambda value: base64.b64decode(value["base64"]) if isinstance(value, dict) else value)
    if not isinstance(default, Mapping):
        return default
    dtype = dtypes.numpy_dtype(field.dtype)
    array = np.frombuffer(base64.b64decode(default["base64"]), dtype.newbyteorder("<")).astype(dtype)
    return array.reshape(default["shape"])[()]


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        StorageError: It is not a text file.
    """
    with refusing(path, "be read"):
        if not stat.S_ISREG(path.stat().st_mode):
            message = (
                f"{path}: expected a file, found a folder, a pipe or a device\n  Give the file that the schema is in."
            )
            raise StorageError(message, path=str(path))
        data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        message = (
            f"{path}: expected JSON, found byte {error.start} that is no text\n  Give the file that the schema is in."
        )
        raise StorageError(message, path=str(path)) from None


def save_text(text: str, path: Path, *, overwrite: bool) -> None:
    """Write `text` to `path` atomically."""
    if os.path.lexists(path) and not (overwrite and path.is_file()):
        advice = (
            "Pass overwrite=True to replace it." if path.is_file() else "It is not a file, so it cannot be replaced."
        )
        message = f"{path}: already exists\n  {advice}"
        raise TargetExistsError(message, path=str(path), errno=errno.EEXIST)
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with staged.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


def as_table(fields: Mapping[str, AnyField], sequences: Mapping[str, AnyField]) -> str:
    """Return the schema with one line for each field, types aligned.

    >>> print(as_table({"id": Field("int64"), "depth": Field("float32[?]", lossy=True)}, {}))
    rk.Schema({
        "id":    "int64",
        "depth": rk.Field('float32[?]', lossy=True),
    })
    """
    text = f"rk.Schema({_rows(fields)}"
    return f"{text}, sequences={_rows(sequences)})" if sequences else f"{text})"


def _rows(fields: Mapping[str, AnyField]) -> str:
    if not fields:
        return "{}"
    names = [_quoted(name) for name in fields]
    width = max(map(len, names)) + 1
    lines = (f"    {f'{name}:':<{width}} {_type(field)},\n" for name, field in zip(names, fields.values(), strict=True))
    return "{\n" + "".join(lines) + "}"


def _type(field: AnyField) -> str:
    # The schema language if it is enough, else the class.
    return _quoted(str(field)) if field == _plain(field) else f"rk.{field!r}"


def _plain(field: AnyField) -> Field | None:
    return Field(str(field)) if isinstance(field, Field) else None


def _quoted(text: str) -> str:
    # Python's escapes, in double quotes: with a double quote in the text, repr uses single quotes.
    body = repr('"' + text)[2:-1].replace("\\'", "'").replace('"', '\\"')
    return f'"{body}"'


def as_line(fields: Mapping[str, AnyField], sequences: Mapping[str, AnyField]) -> str:
    """Return the schema as one line of Python.

    >>> as_line({"id": Field("int64")}, {"x": Field("float32")})
    "Schema({'id': 'int64'}, sequences={'x': 'float32'})"
    """
    text = f"Schema({_dict(fields)}"
    return f"{text}, sequences={_dict(sequences)})" if sequences else f"{text})"


def _dict(fields: Mapping[str, AnyField]) -> str:
    types = (repr(str(field)) if field == _plain(field) else repr(field) for field in fields.values())
    return "{" + ", ".join(f"{name!r}: {kind}" for name, kind in zip(fields, types, strict=True)) + "}"
