from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import grain
import ml_dtypes
import numpy as np
import pytest

import recordkit as rk
from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.integrations.jax import GrainSource, arrays
from tests.dataset.files import save_many
from tests.integrations import jax_loaders
from tests.integrations.contract import COUNTS, HERE, IDS, LoaderContract

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integrations.elsewhere import Elsewhere


# grain starts them in a way of its own, which takes seconds.
WITH_A_WORKER = pytest.mark.parametrize("crew", [HERE, (1, None)], ids=["here", "one"])


class TestArrays:
    @pytest.mark.parametrize(
        "dtype",
        ["bool", "uint8", "int32", "float64", "complex64", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn],
    )
    def test_are_those_that_are_there(self, dtype: Any) -> None:
        column = np.ones(3, dtype)

        assert arrays(Batch({"x": column}, 3))["x"] is column

    def test_keep_the_structure_and_have_masks(self) -> None:
        batch = Batch({"age": np.array([41, 0])}, 2, {"age": np.array([True, False])})

        tree = arrays((batch, [np.ones(1)]))

        assert list(tree[0]) == ["age", "age/valid"]
        assert isinstance(tree[1], list)

    def test_count_times_in_their_unit(self) -> None:
        assert arrays(np.array([5], "m8[s]")).tolist() == [5]

    @pytest.mark.parametrize("wrong", [2**31, -(2**31) - 1])
    def test_that_jax_would_cut_off_are_an_error(self, wrong: int) -> None:
        with pytest.raises(SchemaError, match=rf"^id: expected int32, found {wrong}\n  JAX would truncate it"):
            arrays({"id": np.array([1, wrong])})

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (BytesColumn.of([b"a"]), "expected numbers, found bytes"),
            ("ada", "expected numbers, found str"),
            (None, "expected numbers, found NoneType"),
            (np.array(["a"], object), "expected numbers, found an array of object"),
            (
                Ragged(np.ones(1), (np.array([0, 1]),)),
                r"expected numbers, found rows of different lengths\n  Pad them",
            ),
        ],
    )
    def test_of_what_jax_has_none_for_are_an_error(self, value: Any, words: str) -> None:
        with pytest.raises(SchemaError, match=f"^outer/inner: {words}"):
            arrays({"outer": {"inner": value}})


class TestPut:
    def test_puts_a_batch_on_devices(self, tmp_path: Path, with_jax: Elsewhere) -> None:
        save_many(tmp_path, COUNTS)

        found = with_jax(jax_loaders.on_devices, str(tmp_path))

        assert found == ([0, 1, 2, 3], "int32", [0, 1, 2, 3], (0, 1))


@pytest.fixture
def source(tmp_path: Path) -> GrainSource:
    schema = {"id": "int64", "words": "string[2]", "note": "string?", "tokens": "int64[?]"}
    rows: list[dict[str, Any]] = [
        {"id": 0, "words": ["a", "b"], "note": None, "tokens": [1, 2]},
        {"id": 1, "words": ["c", "d"], "note": "seen", "tokens": []},
    ]
    rk.write(tmp_path / "rows.tfrecord", rows, schema)
    return GrainSource(rk.open(tmp_path / "rows.tfrecord"))


class TestGrainSource:
    def test_is_what_grain_asks_for(self, source: GrainSource) -> None:
        assert isinstance(source, grain.sources.RandomAccessDataSource)

    def test_refuses_a_pipeline(self, source: GrainSource) -> None:
        with pytest.raises(TypeError, match="GrainSource: expected a dataset, whose rows have numbers, found Pipeline"):
            GrainSource(source.dataset.batch(2))  # type: ignore[arg-type]

    def test_gives_rows_of_what_grain_knows(self, source: GrainSource) -> None:
        row = source[np.int64(1)]

        assert (row["words"].tolist(), row["note"], row["tokens"].tolist()) == (["c", "d"], "seen", [])

    def test_many_rows_at_once_are_those_one_by_one(self, source: GrainSource) -> None:
        assert str(source._getitems([1, 0])) == str([source[1], source[0]])

    def test_says_the_same_of_itself_in_every_run(self, source: GrainSource) -> None:
        copy = pickle.loads(pickle.dumps(source))

        assert repr(source) == repr(copy) == "GrainSource(2 records: id, words, note, tokens)"

    def test_can_be_shuffled_by_grain(self, tmp_path: Path, with_jax: Elsewhere) -> None:
        save_many(tmp_path, COUNTS)

        batches = with_jax(jax_loaders.grain_dataset, str(tmp_path))

        assert sorted(number for batch in batches for number in batch) == IDS


class TestGrainSourceAsLoader(LoaderContract):
    load = jax_loaders.grain_loader

    @pytest.fixture
    def elsewhere(self, with_jax: Elsewhere) -> Elsewhere:
        return with_jax

    @pytest.fixture
    def crew(self) -> Any:
        return HERE

    @WITH_A_WORKER
    def test_every_record_comes_once(self, tmp_path: Path, crew: Any, elsewhere: Elsewhere) -> None:
        super().test_every_record_comes_once(tmp_path, crew, elsewhere)

    @WITH_A_WORKER
    def test_damage_arrives_with_file_and_record(self, tmp_path: Path, crew: Any, elsewhere: Elsewhere) -> None:
        super().test_damage_arrives_with_file_and_record(tmp_path, crew, elsewhere)
