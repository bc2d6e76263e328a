"""Boxes: fields with bounding boxes, recognized by their names and shapes.

Either one field with four numbers for each box, or four fields that end in xmin, xmax, ymin and ymax, as in the Object
Detection API of TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit.columns import BytesColumn, Ragged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recordkit.schema import Schema

_SIDES: Final = ("ymin", "xmin", "ymax", "xmax")
_LABELS: Final = (
    "label",
    "labels",
    "class/text",
    "text",
    "class",
    "classes",
    "category",
    "class/label",
    "name",
    "names",
)
_MOST: Final = 200


@dataclass(frozen=True)
class Boxes:
    """The fields with the bounding boxes of a picture.

    Attributes:
        picture: The field of the picture.
        fields: One field with four numbers for each box, or one for each side: ymin, xmin, ymax, xmax.
        label: The field with the name of each box; None if there is none.
    """

    picture: str
    fields: tuple[str, ...]
    label: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """All of these fields."""
        return (*self.fields, *([self.label] if self.label else []))

    def of(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the boxes of a record, as lists of four numbers; None if it has none."""
        found = [values.get(name) for name in self.fields]
        if any(not isinstance(side, np.ndarray) or side.dtype.kind not in "iuf" for side in found):
            return None
        boxes = np.asarray(found[0]) if len(found) == 1 else _joined(found)
        if boxes is None or not boxes.size or boxes.shape[-1] != 4:
            return None
        boxes = boxes.reshape(-1, 4).astype(np.float64)
        if not np.isfinite(boxes).all():
            return None
        labels = _words(values.get(self.label)) if self.label else []
        return {
            "order": "yxyx" if len(found) == 4 else _order(boxes),
            "boxes": boxes[:_MOST].round(6).tolist(),
            "labels": labels[:_MOST] if len(labels) == len(boxes) else [],
            "count": len(boxes),
        }


def _joined(sides: Sequence[Any]) -> Any:
    lengths = {np.size(side) for side in sides}
    return np.stack([np.ravel(side) for side in sides], axis=-1) if len(lengths) == 1 else None


def _order(boxes: Any) -> str:
    """Guess the order of four numbers: fractions are in the order of TFDS, pixels are corners or sizes."""
    if float(boxes.max()) <= 1.5 and float(boxes.min()) >= -0.5:
        return "yxyx"
    corners = (boxes[:, 2] >= boxes[:, 0]).all() and (boxes[:, 3] >= boxes[:, 1]).all()
    return "xyxy" if corners else "xywh"


def _words(value: Any) -> list[str]:
    if isinstance(value, BytesColumn):
        return [str(item)[:40] if value.text else item.decode(errors="replace")[:40] for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return [str(item) for item in value.reshape(-1)[:_MOST].tolist()]
    return [] if value is None or isinstance(value, Ragged) else [str(value)[:40]]


def boxes_in(schema: Schema | None, pictures: Sequence[str]) -> tuple[Boxes, ...]:
    """Return the fields of a schema with bounding boxes for its pictures.

    >>> from recordkit.schema import Schema
    >>> schema = Schema({"image": "jpeg", "objects/bbox": "float32[?,4]", "objects/label": "int64[?]"})
    >>> boxes_in(schema, ["image"])
    (Boxes(picture='image', fields=('objects/bbox',), label='objects/label'),)
    """
    if schema is None or not pictures:
        return ()
    found = []
    for name, field in schema.fields.items():
        last = name.rpartition("/")[2].lower()
        shape: tuple[int | None, ...] = getattr(field, "shape", None) or ()
        if "box" in last and len(shape) in (1, 2) and shape[-1] in (4, None) and _numbers(field):
            found.append(Boxes(pictures[0], (name,), _label(schema, name.rpartition("/")[0])))
        elif last == "xmin":
            stem = name[: -len(last)]
            sides = tuple(stem + side for side in _SIDES)
            if all(side in schema.fields for side in sides):
                group = stem.rstrip("/").rpartition("/")[0] if stem.endswith("/") else ""
                found.append(Boxes(pictures[0], sides, _label(schema, group)))
    return tuple(found)


def _numbers(field: Any) -> bool:
    return str(getattr(field, "dtype", "")) not in ("string", "bytes", "jpeg", "png", "None")


def _label(schema: Schema, group: str) -> str | None:
    for label in _LABELS:
        name = f"{group}/{label}" if group else label
        field = schema.fields.get(name)
        if field is not None and len(getattr(field, "shape", None) or ()) == 1:
            return name
    return None
