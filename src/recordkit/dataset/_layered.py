"""Layered: records as they are seen through layers. Fields that were added stand beside those of the record.

Nothing is put together on the wire: each field is decoded from the file that holds it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordkit import _core
from recordkit.columns import Batch
from recordkit.errors import SchemaError
from recordkit.schema import Schema
from recordkit.storage import LocalFile

from ._batching import Columns, Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from recordkit.records import Chunk
    from recordkit.storage import Layer, RecordFile


class Stack:
    """The layers of a dataset, oldest first.

    Args:
        layers: Those that apply to all its files.
    """

    def __init__(self, layers: Sequence[Layer] = ()) -> None:
        self.layers = tuple(layers)
        self._checked: set[str] = set()
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self.layers)

    def __reduce__(self) -> tuple[Any, ...]:
        return Stack, (self.layers,)

    def owners(self, base: Schema | None) -> dict[str, Layer | None]:
        """Return where each visible field is found: in a layer, or None for the records themselves."""
        owners: dict[str, Layer | None] = dict.fromkeys(base.names if base is not None else ())
        for layer in self.layers:
            for name in layer.hides:
                owners.pop(name, None)
            owners.update(dict.fromkeys(layer.schema.names, layer))
        return owners

    def schema(self, base: Schema | None) -> Schema | None:
        """Return the fields that are seen through the layers."""
        if base is None or not self.layers:
            return base
        fields: dict[str, Any] = dict(base.fields)
        sequences: dict[str, Any] = dict(base.sequences)
        for layer in self.layers:
            for name in layer.hides:
                fields.pop(name, None)
                sequences.pop(name, None)
            fields.update(layer.schema.fields)
        return Schema(fields, sequences=sequences)

    def check(self, file: RecordFile) -> None:
        """Raise if a layer is not for a file as it is now. Looked at once.

        Raises:
            StorageError: The file has changed, or is none of those.
        """
        if file.name in self._checked:
            return
        for layer in self.layers:
            layer.check(file)
        with self._lock:
            self._checked.add(file.name)

    def deleted(self, file: RecordFile) -> NDArray[np.int64]:
        """Return the numbers of the records of a file that were deleted, in rising order."""
        name = _name_of(file)
        each = [layer.deleted[name] for layer in self.layers if name in layer.deleted]
        if not each:
            return _NONE
        return each[0] if len(each) == 1 else np.unique(np.concatenate(each))


_NONE = np.empty(0, np.int64)


def _name_of(file: RecordFile) -> str:
    return file.file.path.name if isinstance(file.file, LocalFile) else file.name


def living(deleted: NDArray[np.int64], number: int) -> int:
    """Return how many records before this one were not deleted.

    >>> living(np.array([2, 5]), 5)
    4
    """
    return number - int(np.searchsorted(deleted, number)) if len(deleted) else number


def physical(deleted: NDArray[np.int64], numbers: Any) -> Any:
    """Return the numbers in their file of records that are counted without deleted ones.

    >>> physical(np.array([0, 2, 3]), np.array([0, 1, 2])).tolist()
    [1, 4, 5]
    """
    if not len(deleted):
        return numbers
    return numbers + np.searchsorted(deleted - np.arange(len(deleted)), numbers, side="right")


@dataclass(frozen=True)
class Layered(Columns):
    """Columns of fields from records and from layers.

    Attributes:
        schema: Of the records themselves.
        names: The fields to read of them.
        order: The names of all fields, in the order of the batch.
        added: The layers that hold the others, with what to read of each.
    """

    order: tuple[str, ...] = ()
    added: tuple[tuple[Layer, Columns], ...] = ()
    stack: Stack | None = None

    def batch(self, part: Part, start: int, stop: int) -> Batch:
        """Return records as columns."""
        return self._merged(super().batch(part, start, stop), list(self._beside(part, start, stop)))

    def _beside(self, part: Part, start: int, stop: int) -> Iterator[Batch]:
        for layer, columns in self.added:
            yield columns.batch(self._aligned(layer, part, start, stop), 0, stop - start)

    def _aligned(self, layer: Layer, part: Part, start: int, stop: int) -> Part:
        """Return the records of a layer that stand beside those of a part."""
        assert part.file is not None
        assert self.stack is not None
        self.stack.check(part.file)
        file = layer.files[_name_of(part.file)]
        return Part(file.fetch(part.record_numbers(start, stop)), file.name, file)

    def joined(self, parts: Sequence[Part]) -> Batch:
        """Return the records of all parts as columns."""
        if len(parts) == 1:
            return self.batch(parts[0], 0, len(parts[0].chunk))
        base = super().joined(parts)
        beside = []
        for layer, columns in self.added:
            aligned = [self._aligned(layer, part, 0, len(part.chunk)) for part in parts]
            beside.append(columns.joined(aligned))
        return self._merged(base, beside)

    def _merged(self, base: Batch, beside: Sequence[Batch]) -> Batch:
        found: Mapping[str, Batch] = {name: batch for batch in (base, *beside) for name in batch.names}
        columns = {name: partial(found[name].__getitem__, name) for name in self.order}
        masks = {name: found[name].valid(name) for name in self.order if found[name].has_mask(name)}
        return Batch(columns, len(base), masks)


def making_of(base: Schema, stack: Stack, names: Sequence[str] | None) -> Columns:
    """Return what reads these fields, wherever they are."""
    if not stack:
        return Columns(base, None if names is None else tuple(names))
    owners = stack.owners(base)
    order = tuple(owners) if names is None else tuple(names)
    for name in order:
        if name not in owners:
            message = f"{name}: not in the schema"
            raise SchemaError(message, field=name)
    of_layers: dict[str, tuple[Layer, list[str]]] = {}
    for name in order:
        layer = owners[name]
        if layer is not None:
            of_layers.setdefault(str(layer.path), (layer, []))[1].append(name)
    added = tuple((layer, Columns(layer.schema, tuple(fields))) for layer, fields in of_layers.values())
    return Layered(base, tuple(name for name in order if owners[name] is None), order, added, stack)


def merged_chunk(part: Part, base: Schema, stack: Stack) -> Chunk:
    """Return records with what the layers add in them and what they hide taken out: how they are when baked."""
    chunk = part.chunk
    sequence = bool(base.sequences)
    owners = stack.owners(base)
    hidden = {
        feature for name in base.names if owners.get(name, stack) is not None for feature in base.wire_names(name)
    }
    if hidden:
        chunk = _rewritten(chunk, hidden, sequence, None)
    for layer in stack.layers:
        kept = [name for name in layer.schema.names if owners.get(name) is layer]
        if not kept or part.file is None:
            continue
        stack.check(part.file)
        tail = layer.files[_name_of(part.file)].fetch(part.record_numbers(0, len(part.chunk)))
        gone = {feature for name in layer.schema.names if name not in kept for feature in layer.schema.wire_names(name)}
        chunk = _rewritten(chunk, set(), sequence, _rewritten(tail, gone, False, None) if gone else tail)
    return chunk


def _rewritten(chunk: Chunk, drop: set[str], sequence: bool, tail: Chunk | None) -> Chunk:
    *fault, changed = _core.rewrite(chunk, drop, {}, set(), set(), sequence, tail)
    if fault[0]:
        message = f"record {chunk.first_record + fault[2]}: its payload is no sound Example"
        raise SchemaError(message, record=chunk.first_record + fault[2])
    return changed
