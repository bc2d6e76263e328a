"""Differences between two datasets: in their schemas, and in their records by content or by key.

Payloads are compared byte for byte or by a 128-bit digest, and shards with equal digests in their manifests are not
read. Equal datasets take no memory. From the first difference on, a record takes 16 bytes (with keys 32, for all
records), and about 80 more while they are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from recordkit import progress
from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.tools.stats import batch_rows, cut, opened

from ._matching import joined, matched, replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from recordkit.columns import Batch, Column
    from recordkit.schema import Difference

_EXAMPLES: Final = 10
_STEP: Final = 1024


@dataclass(frozen=True)
class Group:
    """A number of records, and the first few of them.

    Attributes:
        count: The number of records.
        examples: Up to ten of them: keys if there are any, otherwise record numbers, in pairs if both sides have one.
    """

    count: int = 0
    examples: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass(frozen=True)
class Diff:
    """The differences between two datasets, a and b. Prints as a few lines.

    Attributes:
        schema: How b's schema differs from a's.
        records: The number of records of each.
        only_in_a: Records that b does not have.
        only_in_b: Records that a does not have.
        changed: Records that differ: with keys, those with the same key; otherwise those in the same place between the
            same neighbours.
        moved: Records in both, but in another order: the fewest that have to move to turn one order into the other
            (perhaps a few more if records are repeated).
        fields: With keys: the changed records by the fields that differ.
        stored_otherwise: With keys: the number of records whose bytes differ, but not the fields that both have.
        repeated: With keys: the number of records of a, and of b, that have the key of an earlier one.
        on: The key fields.
        how: What was compared: "digests" from the manifests, without reading the shards, so that later damage is not
            noticed; "records"; or "keys".
    """

    schema: tuple[Difference, ...]
    records: tuple[int, int]
    only_in_a: Group = Group()
    only_in_b: Group = Group()
    changed: Group = Group()
    moved: Group = Group()
    fields: Mapping[str, Group] = field(default_factory=dict)
    stored_otherwise: int = 0
    repeated: tuple[int, int] = (0, 0)
    on: tuple[str, ...] = ()
    how: Literal["digests", "records", "keys"] = "records"

    @property
    def same(self) -> bool:
        """Whether there are no differences. With keys, the order and the bytes of records do not matter."""
        records = self.only_in_a or self.only_in_b or self.changed or (self.moved and not self.on)
        return not (records or self.schema)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def diff(a: Any, b: Any, *, on: str | Sequence[str] | None = None) -> Diff:
    """Compare two datasets, and return the differences.

    Args:
        a: What `rk.open` takes, or a dataset.
        b: The other dataset.
        on: The key: a field or several, such as "id". Records with the same key are compared field by field. Without a
            key, records are equal if all their bytes are, no matter which fields are selected.

    Raises:
        SchemaError: A key is not a field with one value in both.
        CorruptRecordError: Records are damaged; with keys, even if damage is skipped.

    >>> import tempfile, recordkit as rk
    >>> one, other = (tempfile.mkdtemp() + "/numbers.tfrecord" for _ in range(2))
    >>> _ = rk.write(one, [{"id": i, "square": i * i} for i in range(4)])
    >>> _ = rk.write(other, [{"id": i, "square": i * i if i != 2 else 5} for i in range(5)])
    >>> print(diff(one, other, on="id"))
    different: 4 and 5 records, compared by id
      only in b: 1 (4)
      changed: 1 (2)
        square: 1 (2)
    """
    a, b = opened(a), opened(b)
    schema = () if a.schema is None or b.schema is None else a.schema.compare(b.schema)
    counts = len(a), len(b)
    keys = () if on is None else (on,) if isinstance(on, str) else tuple(on)
    for name, dataset in ((name, dataset) for name in keys for dataset in (a, b)):
        _check_key(name, dataset)
    if _same_digests(a, b):
        return Diff(schema, counts, on=keys, how="digests")
    if keys:
        return Diff(schema, counts, on=keys, how="keys", **_by_key(a, b, keys))
    return Diff(schema, counts, **_by_record(a, b))


def _same_digests(a: Any, b: Any) -> bool:
    """Return whether the digests of all shards prove that the records are equal and in the same order."""
    one, other = _digests(a), _digests(b)
    return one is not None and one == other


def _digests(dataset: Any) -> list[str] | None:
    shards = [file.shard for file in dataset.shards]
    # A dataset has to be read if it shows only some records of its files, or if a file is in no manifest.
    if not shards or None in shards or sum(shard.records for shard in shards) != len(dataset):
        return None
    return [shard.digest for shard in shards if shard.records]


# --- By content


def _by_record(a: Any, b: Any) -> dict[str, Any]:
    start, one, other = _digests_from_first_difference(a, b)
    match = matched(one, other)
    gap_a, gap_b = replaced(match)
    return {
        "only_in_a": _group(start + match.only_a[~np.isin(match.only_a, gap_a)]),
        "only_in_b": _group(start + match.only_b[~np.isin(match.only_b, gap_b)]),
        "changed": _pairs(start + gap_a, start + gap_b),
        "moved": _pairs(start + match.a[match.moved], start + match.b[match.moved]),
    }


def _digests_from_first_difference(a: Any, b: Any) -> tuple[int, NDArray[Any], NDArray[Any]]:
    """Return the number of equal records at the start, and digests of the remaining records of each."""
    pairs = zip_longest(a.records(), b.records())
    most, place = max(len(a), len(b)), 0
    for one, other in pairs:
        if one != other:
            break
        place += 1
        _tell(place, most)
    else:
        return place, joined(bytearray()), joined(bytearray())
    digests = bytearray(), bytearray()
    for number, pair in enumerate(chain([(one, other)], pairs), place + 1):
        for payload, found in zip(pair, digests, strict=True):
            if payload is not None:
                found += blake2b(payload, digest_size=16).digest()
        _tell(number, most)
    return place, joined(digests[0]), joined(digests[1])


def _tell(done: int, most: int) -> None:
    if done % _STEP == 0 or done == most:
        progress.step("comparing", done, most, "records")


# --- By key


def _check_key(name: str, dataset: Any) -> None:
    schema = dataset.schema
    if schema is None:
        message = f"{name}: these records are bytes, which have no fields\n  Leave out on= to compare whole payloads."
        raise SchemaError(message, field=name)
    found = schema.select(name).fields.get(name)
    if found is None or found.shape != ():
        what = "a sequence" if found is None else str(found)
        message = f"{name}: {what} is no key\n  on= takes fields with one value per record."
        raise SchemaError(message, field=name, found=what)


def _by_key(a: Any, b: Any, on: tuple[str, ...]) -> dict[str, Any]:
    keys_a, content_a = _keys_and_content(a, on)
    keys_b, content_b = _keys_and_content(b, on)
    match = matched(keys_a, keys_b)
    differ = content_a[match.a] != content_b[match.b]
    changes = _Changes(a, b, on)
    changes.compare(match.a[differ], match.b[differ])
    moved = match.a[match.moved]
    return {
        "only_in_a": Group(len(match.only_a), _key_values(a, match.only_a, on)),
        "only_in_b": Group(len(match.only_b), _key_values(b, match.only_b, on)),
        "moved": Group(len(moved), _key_values(a, moved, on)),
        "repeated": (len(keys_a) - len(np.unique(keys_a)), len(keys_b) - len(np.unique(keys_b))),
        **changes.facts(),
    }


def _keys_and_content(dataset: Any, on: tuple[str, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return digests of the keys and of the payloads of all records. Reads the records twice."""
    keys, content = bytearray(), bytearray()
    total = len(dataset)
    for batch in dataset.select(*on).batch(batch_rows(dataset, total)):
        for key in _keys(batch, on):
            keys += blake2b(repr(key).encode(), digest_size=16).digest()
    for number, payload in enumerate(dataset.records(), 1):
        content += blake2b(payload, digest_size=16).digest()
        _tell(number, total)
    if not len(keys) == len(content) == 16 * total:
        # Otherwise the keys of some records would be paired with the payloads of others.
        message = (
            f"{total} records, but {len(keys) // 16} keys and {len(content) // 16} payloads could be read\n"
            "  Some are damaged and were skipped: compare without on=, or repair the dataset first."
        )
        raise CorruptRecordError(message)
    return joined(keys), joined(content)


def _keys(batch: Batch, on: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    return zip(*(_values(batch[name], batch.valid(name)) for name in on), strict=True)


def _values(column: NDArray[Any] | BytesColumn, valid: NDArray[np.bool_]) -> Iterable[Any]:
    values = column.to_list() if isinstance(column, BytesColumn) else column.tolist()
    return values if valid.all() else [value if present else None for value, present in zip(values, valid, strict=True)]


def _key_values(dataset: Any, places: NDArray[np.int64], on: tuple[str, ...]) -> tuple[Any, ...]:
    if not len(places):
        return ()
    keys = _keys(dataset.select(*on)[np.asarray(places[:_EXAMPLES])], on)
    return tuple(key[0] if len(on) == 1 else key for key in keys)


class _Changes:
    """Counts the fields in which records with the same key differ."""

    def __init__(self, a: Any, b: Any, on: tuple[str, ...]) -> None:
        self._a, self._b, self._on = a, b, on
        self._names = [name for name in a.schema.names if name in b.schema.names]
        self._counts = dict.fromkeys(self._names, 0)
        self._examples: dict[str, list[int]] = {name: [] for name in self._names}
        self._changed: list[int] = []
        self._changed_count = self._stored_otherwise = 0

    def compare(self, places_a: NDArray[np.int64], places_b: NDArray[np.int64]) -> None:
        """Compare records whose bytes differ, in batches."""
        rows = batch_rows(self._a, len(self._a))
        a, b = self._a.select(*self._names), self._b.select(*self._names)
        for start in range(0, len(places_a), rows):
            chosen = slice(start, start + rows)
            self._compare_batch(a[places_a[chosen]], b[places_b[chosen]], places_a[chosen])
            progress.step("comparing fields", min(start + rows, len(places_a)), len(places_a), "records")

    def _compare_batch(self, one: Batch, other: Batch, places: NDArray[np.int64]) -> None:
        changed = np.zeros(len(places), np.bool_)
        for name in self._names:
            differ = _differ(one[name], other[name], one.valid(name), other.valid(name))
            self._counts[name] += int(differ.sum())
            _extend(self._examples[name], places[differ])
            changed |= differ
        self._changed_count += int(changed.sum())
        self._stored_otherwise += int((~changed).sum())
        _extend(self._changed, places[changed])

    def facts(self) -> dict[str, Any]:
        """Return attributes of `Diff`."""
        names = [name for name, count in self._counts.items() if count]
        return {
            "changed": Group(self._changed_count, self._keys(self._changed)),
            "fields": {name: Group(self._counts[name], self._keys(self._examples[name])) for name in names},
            "stored_otherwise": self._stored_otherwise,
        }

    def _keys(self, places: list[int]) -> tuple[Any, ...]:
        return _key_values(self._a, np.array(places, np.int64), self._on)


def _extend(examples: list[int], places: NDArray[np.int64]) -> None:
    examples += places[: _EXAMPLES - len(examples)].tolist()


def _differ(one: Column, other: Column, valid: NDArray[np.bool_], other_valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the rows that differ. Two missing values are equal, and so are two NaN."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.shape == other.shape:
        unequal = _unequal(one, other).reshape(len(one), int(np.prod(one.shape[1:]))).any(axis=1)
    else:
        rows = zip(_as_bytes(one), _as_bytes(other), strict=True)
        unequal = np.fromiter((not _equal(*pair) for pair in rows), np.bool_, len(one))
    differ: NDArray[np.bool_] = (valid != other_valid) | (valid & other_valid & unequal)
    return differ


def _as_bytes(column: Column) -> Column:
    """Return text as bytes, so that string and bytes fields with the same content are equal."""
    if isinstance(column, Ragged) and isinstance(column.values, BytesColumn):
        return Ragged(_plain_bytes(column.values), column.offsets, column.shapes)
    return _plain_bytes(column) if isinstance(column, BytesColumn) else column


def _plain_bytes(column: BytesColumn) -> BytesColumn:
    return BytesColumn(column.data, column.offsets, shape=column.shape)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Ragged | BytesColumn | bytes) or isinstance(other, Ragged | BytesColumn | bytes):
        return bool(_listed(one) == _listed(other))
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and not _unequal(one, other).any()


def _listed(value: Any) -> Any:
    if isinstance(value, Ragged | BytesColumn):
        return value.to_list()
    return value.tolist() if isinstance(value, np.ndarray) else value


def _unequal(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    if (one.dtype.kind in "mM" or other.dtype.kind in "mM") and one.dtype.kind != other.dtype.kind:
        return np.ones(one.shape, np.bool_)  # NumPy does not compare times with numbers
    unequal: NDArray[np.bool_] = (one != other) & ~((one != one) & (other != other))
    return unequal


# --- For people


def _group(places: NDArray[np.int64]) -> Group:
    return Group(len(places), tuple(places[:_EXAMPLES].tolist()))


def _pairs(a: NDArray[np.int64], b: NDArray[np.int64]) -> Group:
    return Group(len(a), tuple(zip(a[:_EXAMPLES].tolist(), b[:_EXAMPLES].tolist(), strict=True)))


_HOW: Final = {
    "digests": "the digests in both manifests are equal; no record was read",
    "records": "compared by all their bytes",
    "keys": "compared by {on}",
}


def _lines(diff: Diff) -> Iterator[str]:
    a, b = diff.records
    how = _HOW[diff.how].format(on=", ".join(diff.on))
    yield f"{'the same' if diff.same else 'different'}: {a:,} and {b:,} records, {how}"
    for difference in diff.schema:
        yield f"  schema: {difference.words}"
    groups = ("only in a", diff.only_in_a), ("only in b", diff.only_in_b), ("changed", diff.changed)
    for what, group in (*groups, ("moved", diff.moved)):
        if group:
            yield f"  {what}: {group.count:,} ({_words(diff, group)})"
            if what == "changed":
                yield from (f"    {name}: {each.count:,} ({_words(diff, each)})" for name, each in diff.fields.items())
    if diff.stored_otherwise:
        yield f"  same values, different bytes: {diff.stored_otherwise:,}"
    for side, times in zip("ab", diff.repeated, strict=True):
        if times:
            yield f"  repeated keys in {side}: {times:,}"


def _words(diff: Diff, group: Group) -> str:
    more = ", …" if group.count > 3 else ""
    if diff.on:
        return f"{', '.join(cut(repr(key)) for key in group.examples[:3])}{more}"
    plural = "s" * (group.count != 1)
    shown = [f"{each[0]}→{each[1]}" if isinstance(each, tuple) else str(each) for each in group.examples[:3]]
    return f"record{plural} {', '.join(shown)}{more}"
