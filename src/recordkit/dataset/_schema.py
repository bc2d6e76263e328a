"""The schema that a caller declares, checked against the data before anything is read with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordkit import examples
from recordkit.errors import SchemaError
from recordkit.schema import Schema
from recordkit.wording import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._decoding import RecordRange


def with_rest(declared: Mapping[Any, Any], rest: Schema) -> Schema:
    """Return the declared schema, where `...: ...` stands for all other fields.

    >>> with_rest({"label": "uint8", ...: ...}, Schema({"id": "int64", "label": "int64"}))
    Schema({'id': 'int64', 'label': 'uint8'})
    """
    own = Schema({name: field for name, field in declared.items() if name is not ...})
    beside = {name for each in own.names for name in own.wire_names(each)[1:]}  # such as the shape of an array
    steps = {name: own.fields[name] for name in own.names if name in rest.sequences}
    fields = {name: field for name, field in own.fields.items() if name not in steps}
    return Schema(
        {**{name: field for name, field in rest.fields.items() if name not in beside}, **fields},
        sequences={**{name: field for name, field in rest.sequences.items() if name not in beside}, **steps},
    )


def check_rest(declared: Schema, known: Schema | None, sample: RecordRange | None) -> None:
    """Raise if a dict of fields leaves out some that the records have: they would be dropped silently.

    Args:
        declared: The fields of the dict.
        known: What the records hold, if that is known; otherwise the sample decides.
        sample: The first records.
    """
    if known is not None:
        there = set(known.names)
    else:
        survey = examples.survey(sample.chunk) if sample is not None else None
        there = set() if survey is None else set(survey.features) | set(survey.lists)
    left = sorted(there - {feature for name in declared.names for feature in declared.wire_names(name)})
    if not left:
        return
    said = ", ".join(f"{name!r}: {str(field)!r}" for name, field in declared.fields.items())
    message = (
        f"schema: leaves out {listed(left)}, which the records have\n"
        f"  To keep the rest as it is: schema={{{said}, ...: ...}}\n"
        f"  To read only these, add .select({', '.join(map(repr, declared.names))})."
    )
    raise SchemaError(message, field=left[0])


def check_declared(declared: Schema, sample: RecordRange, known: Schema | None, *, tolerant: bool = False) -> None:
    """Raise if the first records of a dataset do not have what a schema declares.

    Args:
        declared: What the caller expects.
        sample: The first records.
        known: The schema they were written with, if there is a manifest.
        tolerant: Whether records that do not fit are skipped when they are read.

    Raises:
        SchemaError: A field is missing, or is something else; with a suggestion for a misspelt name.
    """
    survey = examples.survey(sample.chunk, path=sample.path)
    if survey.problem is not None:
        raise survey.problem
    there = set(survey.features) | set(survey.lists)
    written = there | set(known.names if known is not None else ())
    wire = {name: declared.wire_names(name) for name in declared.names}
    spare = there - {feature for features in wire.values() for feature in features}
    for name, features in wire.items():
        if not any(feature in written for feature in features):
            _absent(declared, name, sample, spare, there)
    if not tolerant:
        batch = declared.decode(sample.chunk, path=sample.path)
        for name in batch.names:
            batch[name]


def _absent(declared: Schema, name: str, sample: RecordRange, spare: set[str], there: set[str]) -> None:
    field = declared.fields.get(name) or declared.sequences[name]
    hint = did_you_mean(name, spare)
    if field.optional and not hint:
        return  # it may be missing, and here it is
    records = len(sample.chunk)
    hint = hint or f"The records have {listed(sorted(there)) or 'no fields'}."
    message = (
        f"{name}: declared as {field}, and not in the first {records} records of {sample.path}\n  {hint}"
        f"{'' if field.optional else ' Add ? to its type if it may be missing.'}"
    )
    raise SchemaError(
        message, field=name, record=sample.chunk.first_record, path=sample.path, expected=str(field), found="nothing"
    )
