"""Inferring a schema from records, whatever wrote them.

The wire tells kinds and counts. What it does not tell, such as int8 from int64, is not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from recordkit import dtypes, examples, log
from recordkit.columns import BytesColumn
from recordkit.errors import MalformedPayloadError, SchemaError
from recordkit.examples import EMPTY, Decoder, Feature, FeatureFacts, Survey, Values, other_message
from recordkit.records import Chunk
from recordkit.schema.declare import Field, field_from_parts, layout_of
from recordkit.schema.decode import unlike

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from recordkit.schema.values import Shape


def fields_of_chunks(
    chunks: Chunk | Iterable[Chunk], *, path: str | None = None, strict: bool = False
) -> tuple[dict[str, Field], dict[str, Field]]:
    """Return the fields, and the fields of sequences, that read these records."""
    survey: Survey | None = None
    arrays, lists = _Arrays(steps=False), _Arrays(steps=True)
    for chunk in [chunks] if isinstance(chunks, Chunk) else chunks:
        found = examples.survey(chunk, path=path)
        if found.problem is not None:
            raise found.problem
        if (other := other_message(chunk, found)) is not None:
            message = f"{f'{path}: ' if path else ''}the payloads are no Examples, and look like {other}"
            raise MalformedPayloadError(message, path=path)
        survey = found if survey is None else survey.merge(found)
        sequence = found.message == "SequenceExample"
        arrays.look(chunk, found.features, sequence=sequence)
        lists.look(chunk, found.lists, sequence=sequence)
    if survey is None or not survey.rows:
        message = f"{f'{path}: ' if path else ''}there are no records to tell a schema from"
        raise SchemaError(message, path=path)
    for name, facts in [*survey.features.items(), *survey.lists.items()]:
        if len(facts.kinds) > 1:
            _mixed(name, sorted(facts.kinds), strict=strict)
    fields, sequences = _fields(survey.features, survey.rows, arrays), _fields(survey.lists, survey.rows, lists)
    for name in fields.keys() & sequences.keys():
        # Columns have one name each; what there is more of is kept.
        del fields[name]
        _say_left_out(name)
    return fields, sequences


def _say_left_out(name: str) -> None:
    log.warning(
        "%s: a feature and a feature list have this name; the schema has the list. Declare a schema without it to read"
        " the feature.",
        name,
    )


def _fields(features: Mapping[str, FeatureFacts], rows: int, arrays: _Arrays) -> dict[str, Field]:
    known = arrays.fields(features)
    companions = {f"{name}/{part}" for name in known for part in ("shape", "dtype")}
    return {
        name: _field(name, facts, rows, known.get(name), steps=arrays.steps)
        for name, facts in features.items()
        if name not in companions and len(facts.kinds) < 2
    }


def _mixed(name: str, kinds: list[str], *, strict: bool) -> None:
    """Say, or raise, that no field can hold a feature that has several kinds."""
    found = f"{' and '.join(kinds)} lists under one name"
    if strict:
        message = f"{name}: {found}\n  A field has one kind. Read the records that differ with a schema of their own."
        raise SchemaError(message, field=name, found=" and ".join(kinds))
    log.warning(
        "%s: left out of the fields: records have %s\n"
        '  To read one kind and skip the others: open(path, schema={%s: "%s[?]?", ...: ...}, on_error="skip").',
        name,
        found,
        repr(name),
        {"float": "float32"}.get(kinds[0], kinds[0]),
    )


def _field(name: str, facts: FeatureFacts, rows: int, array: tuple[str, int] | None, *, steps: bool) -> Field:
    """Return the field that holds what was seen of a feature."""
    # A step without a kind has no values; a record without one has no field.
    optional = facts.records - (0 if steps else facts.no_kind) < rows
    if array is not None:
        dtype, rank = array
        return field_from_parts(dtype, (None,) * rank, optional=optional)
    shape: Shape = (None,)
    if facts.min_count == facts.max_count and facts.max_count and not (steps and facts.no_kind):
        shape = () if facts.max_count == 1 else (facts.max_count,)
    return field_from_parts(_dtype(facts), shape, optional=optional)


def _dtype(facts: FeatureFacts) -> str:
    if facts.kinds == {"int64"}:
        return "int64"
    if facts.kinds == {"float"}:
        return "float32"
    return "jpeg" if facts.jpeg else "png" if facts.png else "string" if facts.utf8 else "bytes"


@dataclass
class _Arrays:
    """Which features are arrays with a shape companion, as recordkit writes them.

    Attributes:
        found: The dtype (empty for lists of numbers or byte strings) and number of dimensions of each.
        refuted: Those where a shape and a size did not agree, or two records did not.
    """

    steps: bool
    found: dict[str, tuple[str, int]] = field(default_factory=dict)
    refuted: set[str] = field(default_factory=set)

    def look(self, chunk: Chunk, features: Mapping[str, FeatureFacts], *, sequence: bool) -> None:
        """Look at the shapes and sizes in one chunk."""
        for name, facts in features.items():
            shape = features.get(f"{name}/shape")
            array = None
            if shape is not None and len(facts.kinds) == 1 and name not in self.refuted and _is_shape(shape):
                (kind,) = facts.kinds
                array = self._array(chunk, name, kind, shape.max_count, f"{name}/dtype" in features, sequence)
            if array is None or self.found.setdefault(name, array) != array:
                self.refuted.add(name)
        # A shape of nothing is something else, too.
        bases = (name.removesuffix("/shape") for name in features if name.endswith("/shape"))
        self.refuted.update(base for base in bases if base not in features)

    def _array(
        self, chunk: Chunk, name: str, kind: examples.Kind, rank: int, has_dtype: bool, sequence: bool
    ) -> tuple[str, int] | None:
        """Return the dtype and number of dimensions of an array, or None if a record contradicts."""
        kinds: dict[str, examples.Kind] = {name: kind, f"{name}/shape": "int64"}
        if has_dtype:
            kinds[f"{name}/dtype"] = "bytes"
        features = [Feature(feature, of, None, "mark", self.steps) for feature, of in kinds.items()]
        try:
            decoded = Decoder(features, sequence=sequence).decode(chunk)
        except SchemaError:
            return None
        own, shapes = decoded[name], decoded[f"{name}/shape"]
        if not all(_same_places(own, decoded[feature]) for feature in kinds):
            return None
        dtype = _one_dtype(decoded[f"{name}/dtype"]) if has_dtype else ""
        sizes = _raw_sizes(own, dtype) if has_dtype else _counts(own)
        return (dtype, rank) if sizes is not None and _fits(shapes, sizes, rank) else None

    def fields(self, features: Mapping[str, FeatureFacts]) -> dict[str, tuple[str, int]]:
        """Return the dtype's name and number of dimensions of every array."""
        return {
            name: (dtype or _dtype(features[name]), rank)
            for name, (dtype, rank) in self.found.items()
            if name not in self.refuted and len(features[name].kinds) == 1
        }


def _counts(values: Values) -> NDArray[np.int64]:
    assert values.offsets is not None
    return np.diff(values.offsets)


def _same_places(own: Values, other: Values) -> bool:
    """Tell whether two features are present in the same records, and in the same steps."""
    if own.steps is not None and other.steps is not None and not np.array_equal(own.steps, other.steps):
        return False
    return np.array_equal(_present(own), _present(other)) and len(_counts(own)) == len(_counts(other))


def _present(values: Values) -> NDArray[np.bool_]:
    if values.states is None:
        return np.ones(1, np.bool_)
    present: NDArray[np.bool_] = values.states >= EMPTY
    return np.ones(1, np.bool_) if present.all() else present


def _is_shape(facts: FeatureFacts) -> bool:
    return facts.kinds == {"int64"} and facts.min_count == facts.max_count >= 2


def _raw_sizes(own: Values, dtype: str) -> NDArray[np.int64] | None:
    """Return how many numbers each item's raw bytes hold; None if they cannot be numbers."""
    counts = _counts(own)
    if not dtype or not isinstance(own.values, BytesColumn) or (counts > 1).any():
        return None
    here = np.ones(1, np.bool_) if own.steps is not None else _present(own)
    if (here & (counts == 0)).any():  # an empty list is not an array
        return None
    lengths = np.zeros(len(counts), np.int64)
    lengths[counts == 1] = own.values.lengths
    itemsize = dtypes.itemsize(dtype)
    return None if (lengths % itemsize).any() else lengths // itemsize


def _one_dtype(names: Values) -> str:
    """Return the dtype that all records name; empty if they do not agree."""
    assert isinstance(names.values, BytesColumn)
    found = set(names.values.to_list())
    if len(found) != 1 or (_counts(names) > 1).any():
        return ""
    try:
        name = dtypes.canonical(found.pop().decode())
    except (SchemaError, UnicodeDecodeError):
        return ""
    # Some dtypes are never stored as raw bytes with a shape; then another tool wrote the feature.
    return name if layout_of("", field_from_parts(name, (None, None))).storage == "raw" else ""


def _fits(shapes: Values, sizes: NDArray[np.int64], rank: int) -> bool:
    """Tell whether every shape matches the number of elements."""
    dims = np.asarray(shapes.values, np.int64).reshape(-1, rank)
    return not unlike(dims, sizes[_counts(shapes) > 0]).any()
