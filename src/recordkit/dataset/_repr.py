"""How a dataset is shown: as text in a terminal, and as a table with pictures in a notebook."""

from __future__ import annotations

import html as _html
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import RecordKitError
from recordkit.wording import clean, counted

from ._summary import summarize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._dataset import Dataset

_ROWS = 5
_LONGEST_TEXT = 60
_LARGEST_PICTURE = 1 << 20
_PICTURE_TYPES = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png"))


def text(dataset: Dataset) -> str:
    """Return a summary in a few lines. Nothing is counted that would need a pass over the data."""
    return "\n".join(map(clean, [f"Dataset({summarize(dataset)})", *_fields(dataset)]))


def _fields(dataset: Dataset) -> Iterator[str]:
    try:
        schema = dataset.schema
    except RecordKitError as error:
        yield f"  {error.headline}"
        return
    if schema is None:
        yield "  payloads, which are no Examples"
        return
    fields = {**schema.fields, **schema.sequences}
    names = {name: clean(name) for name in fields}
    width = max(map(len, names.values()), default=0)
    for name, declared in fields.items():
        yield f"  {names[name]:<{width}}  {declared}{' a step' if name in schema.sequences else ''}"


def html(dataset: Dataset) -> str:
    """Return the first rows as a table."""
    head = f"<p><code>{_html.escape(str(summarize(dataset)))}</code></p>"
    try:
        rows, schema = dataset.head(_ROWS), dataset.schema
    except RecordKitError as error:
        return f"{head}<pre>{_html.escape(str(error))}</pre>"
    if schema is None:
        return head + _table(["payload"], ([_cell(row)] for row in rows))
    fields = {**schema.fields, **schema.sequences}
    names = [f"{_html.escape(name)}<br><small>{_html.escape(str(fields[name]))}</small>" for name in rows.names]
    return head + _table(names, ([_cell(row[name]) for name in rows.names] for row in rows.rows()))


def _table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    """Return one value, shortened, with markup escaped."""
    if value is None:
        return "<i>missing</i>"
    if isinstance(value, bytes):
        return _picture(value) or _html.escape(counted(len(value), "byte"))
    if (isinstance(value, np.ndarray) and value.ndim) or isinstance(value, Ragged | BytesColumn):
        return _html.escape(_array(value))
    text = str(value)
    return _html.escape(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…")


def _array(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(value, np.ndarray) and value.size <= 6:
        return np.array2string(value, precision=4, separator=", ")
    kind = value.dtype if isinstance(value, np.ndarray) else "ragged" if isinstance(value, Ragged) else "bytes"
    return f"{kind}{list(shape)}" if shape is not None else f"{kind} of {len(value)}"


def _picture(data: bytes) -> str:
    kind = next((name for start, name in _PICTURE_TYPES if data.startswith(start)), None)
    if kind is None or len(data) > _LARGEST_PICTURE:
        return ""
    return f'<img src="data:{kind};base64,{b64encode(data).decode()}" style="max-height:96px;max-width:160px">'
