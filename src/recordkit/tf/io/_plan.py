"""Plans: feature descriptions become one decoder, whose columns become the tensors that were described.

For each kind of feature there are two functions: one asks the decoder for what it needs, the other makes the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from recordkit.columns import BytesColumn, Ragged
from recordkit.errors import InvalidArgumentError, SchemaError
from recordkit.examples import EMPTY, Decoded, Decoder, Feature
from recordkit.schema import unreadable
from recordkit.tf.tensors import (
    DType,
    RaggedTensor,
    SparseTensor,
    Tensor,
    TensorShape,
    array_of,
    first_unknown,
    float32,
    int64,
    reshaped,
    string,
)
from recordkit.wording import counted

from ._features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    UniformRowLength,
    VarLenFeature,
)
from ._partitions import Misaligned, partitioned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recordkit.examples import Kind, Values
    from recordkit.records import Chunk

    from ._features import AnyFeature

Description: TypeAlias = "Mapping[str, AnyFeature]"

_KINDS: Final[dict[DType, Kind]] = {int64: "int64", float32: "float", string: "bytes"}
_DTYPE_OF: Final = {"int64": "tf.int64", "float": "tf.float32", "bytes": "tf.string"}


class _Records:
    """The records that are parsed: how many, whether it is a single one, and the number of the first, for errors."""

    __slots__ = ("first", "rows", "single")

    def __init__(self, chunk: Chunk, *, single: bool) -> None:
        self.rows, self.single, self.first = len(chunk), single, chunk.first_record


_Maker: TypeAlias = Callable[[Decoded, _Records], Any]


class Plan:
    """How to parse the features of a description: made once, used by any thread."""

    def __init__(self, description: Description, allowed: tuple[type, ...], *, sequence: bool, steps: bool) -> None:
        self._description = description
        self._wire: dict[str, Feature] = {}
        self._steps = steps
        made: list[tuple[str, tuple[int, ...], _Maker | None]] = []
        for name, feature in description.items():
            if not isinstance(feature, allowed):
                message = f"Unsupported {type(feature).__name__} {feature} for key '{name}'"
                raise ValueError(message)
            made.append((name, *_READERS[type(feature), steps](self, name, feature)))
        self._decoder = Decoder(self._wire.values(), sequence=sequence)
        self._makers = made  # None for numbers of a fixed count, which are only reshaped

    def ask(self, name: str, dtype: Any, count: int | None = None, *, required: bool = False) -> None:
        """Ask for a feature to be decoded; several descriptions may need it, if they agree on what it is."""
        if dtype not in _KINDS:
            message = (
                f"{name}: records hold int64, float32 and string, found {dtype.name}\n  Parse one of them, then cast."
            )
            raise InvalidArgumentError(message)
        feature = Feature(name, _KINDS[dtype], count, "error" if required else "mark", self._steps)
        if self._wire.setdefault(name, feature) != feature:
            message = f"{name}: described in two conflicting ways: {_words(self._wire[name])}, and {_words(feature)}"
            raise ValueError(message)

    def parse(self, chunk: Chunk, *, single: bool) -> dict[str, Any]:
        """Return the tensors described; without the batch dimension if `single`."""
        return self._made(self._decoded(chunk), chunk, single=single)

    def parse_lists(self, chunk: Chunk, *, single: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the feature lists described, and for the dense ones how many steps each record has."""
        decoded = self._decoded(chunk)
        steps: dict[str, Any] = {}
        for name, feature in self._description.items():
            if isinstance(feature, FixedLenSequenceFeature):
                ends = decoded[name].steps
                assert ends is not None
                counts = np.diff(ends)
                steps[name] = Tensor(counts.reshape(()) if single else counts)
        return self._made(decoded, chunk, single=single), steps

    def _decoded(self, chunk: Chunk) -> Decoded:
        try:
            return self._decoder.decode(chunk)
        except SchemaError as error:
            raise self._explained(error) from None

    def _made(self, decoded: Decoded, chunk: Chunk, *, single: bool) -> dict[str, Any]:
        records = _Records(chunk, single=single)
        rows, ints, floats, places = len(decoded), decoded.ints, decoded.floats, self._decoder.places(len(decoded))
        tensors: dict[str, Any] = {}
        for name, shape, make in self._makers:
            if make is not None:
                tensors[name] = make(decoded, records)
                continue
            _, kind, _, where = places[name]
            numbers: NDArray[Any] = (ints if kind == "int64" else floats)[where]
            if single:
                numbers = numbers.reshape(shape)
            elif shape:
                numbers = numbers.reshape((rows, *shape))
            tensors[name] = Tensor(numbers)
        return tensors

    def _explained(self, error: SchemaError) -> SchemaError:
        """Return the decoder's error with advice in TensorFlow's terms."""
        found = error.found or ""
        advice = ""
        if found in _DTYPE_OF:
            advice = f"Ask for {_DTYPE_OF[found]} to read the stored values."
        elif found == "nothing":
            may = "allow_missing=True" if self._steps else "a default_value"
            advice = f"Give it {may} if it may be missing, or read it as a VarLenFeature."
        elif found.endswith("values"):
            advice = "A VarLenFeature or a RaggedFeature reads any number."
        return unreadable(error.field or "", error.expected or "", found, record=error.record or 0, advice=advice)


def _words(feature: Feature) -> str:
    count = "any number of values" if feature.count is None else f"{feature.count} values"
    return f"{count} of {feature.kind}"


# --- The kinds of features


def _sizes(name: str, feature: Any) -> tuple[int, ...]:
    if feature.shape is None:
        message = f"Missing shape for feature {name}."
        raise ValueError(message)
    shape = TensorShape(feature.shape)
    if not shape.is_fully_defined():
        message = f"All dimensions of shape for feature {name} need to be known but received {shape}."
        hint = "\n  FixedLenSequenceFeature is for a first dimension of any size."
        raise ValueError(message + (hint if shape and shape[0] is None else ""))
    return tuple(size or 0 for size in shape)


def _ask_fixed_len(plan: Plan, name: str, feature: FixedLenFeature) -> tuple[tuple[int, ...], _Maker | None]:
    shape, default = _sizes(name, feature), feature.default_value
    plan.ask(name, feature.dtype, math.prod(shape), required=default is None)
    if default is None and feature.dtype is not string:
        return shape, None
    fill = None if default is None else reshaped(array_of(default, feature.dtype), shape)
    return shape, partial(_make_fixed_len, name, shape, fill)


def _make_fixed_len(
    name: str, shape: tuple[int, ...], fill: NDArray[Any] | None, decoded: Decoded, records: _Records
) -> Tensor:
    own = decoded[name]
    whole = shape if records.single else (records.rows, *shape)
    absent = None if own.states is None or fill is None else _absent(name, own, records)
    assert not isinstance(own.values, list)
    if absent is None or fill is None:
        return Tensor(own.values.reshape(whole))
    values = own.values.to_numpy() if isinstance(own.values, BytesColumn) else own.values
    filled = values.reshape((records.rows, *shape)).copy()
    filled[absent] = fill
    return Tensor(filled.reshape(whole))


def _absent(name: str, own: Values, records: _Records) -> NDArray[np.bool_] | None:
    """Return which records take the default. An empty list is not missing, and is an error."""
    assert own.states is not None
    if own.count and (own.states == EMPTY).any():
        row = int(np.flatnonzero(own.states == EMPTY)[0])
        expected = counted(own.count, f"{own.kind} value")
        advice = "The default is for records that do not have it at all."
        raise unreadable(name, expected, "an empty list", record=records.first + row, advice=advice)
    absent: NDArray[np.bool_] = own.states < EMPTY
    return absent if absent.any() else None


def _ask_var_len(plan: Plan, name: str, feature: VarLenFeature) -> tuple[tuple[int, ...], _Maker]:
    plan.ask(name, feature.dtype)
    return (), partial(_make_var_len, name)


def _make_var_len(name: str, decoded: Decoded, records: _Records) -> SparseTensor:
    own = decoded[name]
    assert own.offsets is not None
    lengths = np.diff(own.offsets)
    longest = int(lengths.max(initial=0))
    columns = [_positions(own.offsets)]
    shape = [longest]
    if own.steps is not None:
        steps = np.diff(own.steps)
        columns.insert(0, np.repeat(_positions(own.steps), lengths))
        shape.insert(0, int(steps.max(initial=0)))
        lengths = np.diff(own.offsets[own.steps])
    if not records.single:
        columns.insert(0, np.repeat(np.arange(records.rows), lengths))
        shape.insert(0, records.rows)
    made = _sparse_tensor(columns, _flat(own), shape)
    made.unknown_dims, made.values.unknown_dims = (True,) * len(shape), (True,)
    return made


def _positions(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each value in its row."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def _sparse_tensor(columns: list[NDArray[np.int64]], values: Tensor, shape: list[int]) -> SparseTensor:
    return SparseTensor(Tensor(np.stack(columns, axis=1)), values, Tensor(np.array(shape, np.int64)))


def _flat(own: Values) -> Tensor:
    assert not isinstance(own.values, list)
    return Tensor(own.values)


def _ask_sparse(plan: Plan, name: str, feature: SparseFeature) -> tuple[tuple[int, ...], _Maker]:
    keys = [feature.index_key] if isinstance(feature.index_key, str) else list(feature.index_key)
    sizes = [int(size) for size in np.atleast_1d(np.asarray(feature.size))]
    if len(keys) != len(sizes):
        message = f"{name}: {len(keys)} index keys and {len(sizes)} sizes\n  Give a size for each index key."
        raise ValueError(message)
    for key in keys:
        plan.ask(key, int64)
    plan.ask(feature.value_key, feature.dtype)
    return (), partial(_make_sparse, name, keys, feature.value_key, sizes, feature.already_sorted)


def _make_sparse(
    name: str,
    keys: list[str],
    value_key: str,
    sizes: list[int],
    already_sorted: bool,
    decoded: Decoded,
    records: _Records,
) -> SparseTensor:
    own = decoded[value_key]
    assert own.offsets is not None
    counts = np.diff(own.offsets)
    rows = np.repeat(np.arange(records.rows), counts)
    columns: list[Any] = [] if records.single else [rows]
    for key in keys:
        index = decoded[key]
        assert index.offsets is not None
        uneven = np.diff(index.offsets) != counts
        if uneven.any():
            row = int(np.flatnonzero(uneven)[0])
            found = f"{int(np.diff(index.offsets)[row])} indices in {key!r}"
            expected = f"{int(counts[row])}, one for each value of {value_key!r}"
            raise unreadable(name, expected, found, record=records.first + row)
        columns.append(np.asarray(index.values))  # may lie outside: as in TensorFlow, only to_dense checks that
    values = _flat(own)
    if not already_sorted:
        order = np.lexsort(columns[::-1])
        columns, values = [column[order] for column in columns], values[order]
    return _sparse_tensor(columns, values, sizes if records.single else [records.rows, *sizes])


def _ask_sequence(plan: Plan, name: str, feature: FixedLenSequenceFeature) -> tuple[tuple[int, ...], _Maker]:
    if not feature.allow_missing:
        message = "Unsupported: FixedLenSequenceFeature requires allow_missing to be True."
        raise ValueError(message)
    shape = _sizes(name, feature)
    plan.ask(name, feature.dtype)
    fill: Any = b"" if feature.dtype is string else 0
    if feature.default_value is not None:
        fill = reshaped(array_of(feature.default_value, feature.dtype), ())[()]
    return (), partial(_make_sequence, name, shape, fill)


def _make_sequence(name: str, shape: tuple[int, ...], fill: Any, decoded: Decoded, records: _Records) -> Tensor:
    own = decoded[name]
    assert own.offsets is not None
    assert not isinstance(own.values, list)
    size = math.prod(shape)
    odd = np.diff(own.offsets) % size != 0 if size else np.diff(own.offsets) != 0
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        found = f"{int(np.diff(own.offsets)[row])} values"
        raise unreadable(name, f"a multiple of {size} values", found, record=records.first + row)
    values = own.values.reshape((len(_flat(own)) // (size or 1), *shape))
    if records.single:
        return Tensor(values, first_unknown(1 + len(shape)))
    return Tensor(
        Ragged(values, (own.offsets // (size or 1),)).to_padded(fill), (False, *first_unknown(1 + len(shape)))
    )


def _ask_ragged(plan: Plan, name: str, feature: RaggedFeature) -> tuple[tuple[int, ...], _Maker]:
    value_key = name if feature.value_key is None else feature.value_key
    plan.ask(value_key, feature.dtype)
    for partition in feature.partitions:
        if not isinstance(partition, UniformRowLength):
            plan.ask(partition.key, int64)
        elif partition.length < 1:
            message = f"{name}: UniformRowLength must be at least 1, found {partition.length}"
            raise ValueError(message)
    return (), partial(_make_ragged, name, value_key, feature)


def _make_ragged(name: str, value_key: str, feature: RaggedFeature, decoded: Decoded, records: _Records) -> Any:
    own = decoded[value_key]
    try:
        rows, ends = partitioned(feature, own, decoded)
    except Misaligned as fault:
        item = fault.item if own.steps is None else int(np.searchsorted(own.steps, fault.item, "right")) - 1
        found = f"other rows ({fault.key})"
        expected = f"rows that match the values of {value_key!r}"
        raise unreadable(name, expected, found, record=records.first + item) from None
    if isinstance(rows, Tensor):
        rows.unknown_dims = first_unknown(rows.ndim)
    dtype = feature.row_splits_dtype.numpy
    if own.steps is not None:
        rows = RaggedTensor(rows, ends.astype(dtype))
        return rows if records.single else RaggedTensor(rows, own.steps.astype(dtype))
    return rows if records.single else RaggedTensor(rows, ends.astype(dtype))


def _ask_dense_list(plan: Plan, name: str, feature: FixedLenSequenceFeature) -> tuple[tuple[int, ...], _Maker]:
    if feature.default_value is not None:
        message = f"Value feature_list.dense_defaults[{name}] must be None"
        raise ValueError(message)
    shape = _sizes(name, feature)
    plan.ask(name, feature.dtype, math.prod(shape), required=not feature.allow_missing)
    return (), partial(_make_dense_list, name, shape)


def _make_dense_list(name: str, shape: tuple[int, ...], decoded: Decoded, records: _Records) -> Tensor:
    own = decoded[name]
    assert own.steps is not None
    assert not isinstance(own.values, list)
    values = own.values.reshape((int(own.steps[-1]), *shape))
    if records.single:
        return Tensor(values, first_unknown(1 + len(shape)))
    padded = Ragged(values, (own.steps,)).to_padded(b"" if own.kind == "bytes" else 0)
    return Tensor(padded, (False, *first_unknown(1 + len(shape))))


# By kind of feature, and whether it is of a feature list; other features are of an Example or of a context.
_READERS: Final[dict[tuple[type, bool], Callable[..., tuple[tuple[int, ...], _Maker | None]]]] = {
    (FixedLenFeature, False): _ask_fixed_len,
    (VarLenFeature, False): _ask_var_len,
    (SparseFeature, False): _ask_sparse,
    (FixedLenSequenceFeature, False): _ask_sequence,
    (RaggedFeature, False): _ask_ragged,
    (FixedLenSequenceFeature, True): _ask_dense_list,
    (VarLenFeature, True): _ask_var_len,
    (RaggedFeature, True): _ask_ragged,
}
