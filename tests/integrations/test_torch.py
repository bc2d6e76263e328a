from __future__ import annotations

import copy
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch._utils import ExceptionWrapper
from torchdata.stateful_dataloader import StatefulDataLoader

import recordkit as rk
from recordkit import errors
from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.errors import SchemaError, StateError
from recordkit.integrations.torch import TorchDataset, TorchIterableDataset, collate, tensors
from tests.dataset.files import save_many
from tests.integrations import torch_loaders
from tests.integrations.contract import COUNTS, FORKED, HERE, IDS, LoaderContract

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integrations.elsewhere import Elsewhere


class TestTensors:
    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16", "float64", "complex64"])
    def test_share_the_memory_of_arrays_and_have_their_dtype(self, dtype: str) -> None:
        array = np.ones((2, 3), dtype)

        tensor = tensors(array)

        assert str(tensor.dtype) == f"torch.{dtype}"
        assert tensor.data_ptr() == array.ctypes.data

    def test_copy_what_cannot_be_written_to_without_a_warning(self) -> None:
        array = np.arange(3)
        array.flags.writeable = False

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tensor = tensors(array)
        tensor[0] = 7

        assert (tensor.tolist(), array.tolist()) == ([7, 1, 2], [0, 1, 2])

    def test_take_arrays_that_go_backwards(self) -> None:
        assert tensors(np.arange(3)[::-1]).tolist() == [2, 1, 0]

    def test_keep_the_dtype_of_single_numbers(self) -> None:
        assert tensors(np.float32(0.5)).dtype == torch.float32
        assert tensors({"x": 3, "name": "ada"}) == {"x": 3, "name": "ada"}

    @pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
    def test_have_the_dtypes_of_ml_dtypes(self, name: str) -> None:
        array = np.array([1.5, -2], getattr(ml_dtypes, name))

        tensor = tensors(array)

        assert (tensor.dtype, tensor.tolist(), tensor.data_ptr()) == (
            getattr(torch, name),
            [1.5, -2],
            array.ctypes.data,
        )

    def test_count_times_in_their_unit(self) -> None:
        assert tensors(np.array([5, 7], "M8[ms]")).tolist() == [5, 7]

    def test_are_jagged_where_one_dimension_varies(self) -> None:
        column = Ragged(np.arange(6.0).reshape(3, 2), (np.array([0, 2, 2, 3]),))

        nested = tensors(column)

        assert nested.is_nested
        assert [row.tolist() for row in nested.unbind()] == [[[0, 1], [2, 3]], [], [[4, 5]]]
        assert nested.values().data_ptr() == column.values.ctypes.data  # type: ignore[union-attr]

    def test_are_a_list_where_more_dimensions_vary(self) -> None:
        column = Ragged.rectangular(np.arange(6), np.array([[2, 2], [1, 2]]))

        assert [row.tolist() for row in tensors(column)] == [[[0, 1], [2, 3]], [[4, 5]]]

    def test_leave_text_and_bytes_as_python_has_them(self) -> None:
        words = Ragged(BytesColumn.of([b"a", b"b"]), (np.array([0, 0, 2]),))

        assert tensors((BytesColumn.of(["x"]), words)) == (["x"], [[], [b"a", b"b"]])

    def test_keep_the_structure(self) -> None:
        given = {"pair": (np.arange(2), [np.arange(1)])}

        made = tensors(given)

        assert isinstance(made["pair"], tuple)
        assert made["pair"][1][0].tolist() == [0]

    def test_come_with_a_mask_where_values_are_missing(self) -> None:
        made = tensors(Batch({"age": np.array([41, 0])}, 2, {"age": np.array([True, False])}))

        assert made["age/valid"].tolist() == [True, False]

    @pytest.mark.parametrize("dtype", ["bool", "int64", "float16", ml_dtypes.bfloat16])
    def test_of_a_batch_arrive_in_a_plain_dict(self, dtype: Any) -> None:
        small, large = np.ones(3, dtype), np.ones(200_000, dtype)
        made = tensors(Batch({"small": small, "empty": small[:0], "large": np.stack([large] * 3)}, 3))

        arrived = pickle.loads(pickle.dumps(copy.copy(made)))

        assert type(arrived) is dict
        assert all(torch.equal(arrived[name], made[name]) for name in made)
        assert arrived["small"].dtype == made["small"].dtype

    def test_say_so_if_the_mask_has_no_name_left(self) -> None:
        batch = Batch({"a": np.ones(1), "a/valid": np.ones(1)}, 1, {"a": np.array([False])})

        with pytest.raises(SchemaError, match=r"^a/valid: this name is needed for the mask of 'a'\n  Leave one"):
            tensors(batch)


ROWS: list[dict[str, Any]] = [
    {"id": 0, "tokens": [5, 6], "vector": [1, 2], "name": "ada", "age": None},
    {"id": 1, "tokens": [], "vector": [3, 4], "name": "grace", "age": 85},
    {"id": 2, "tokens": [7], "vector": [5, 6], "name": "", "age": 41},
]
SCHEMA = {"id": "int64", "tokens": "int64[?]", "vector": "float32[2]", "name": "string", "age": "uint8?"}


@pytest.fixture
def people(tmp_path: Path) -> TorchDataset:
    rk.write(tmp_path / "people.tfrecord", ROWS, SCHEMA)
    return TorchDataset(rk.open(tmp_path / "people.tfrecord"))


class TestTorchDataset:
    def test_a_row_is_a_dict_of_tensors(self, people: TorchDataset) -> None:
        row = people[0]

        assert (row["tokens"].tolist(), row["vector"].dtype, row["name"], row["age"]) == (
            [5, 6],
            torch.float32,
            "ada",
            None,
        )

    def test_many_rows_at_once_are_those_one_by_one(self, people: TorchDataset) -> None:
        rows = people.__getitems__([2, 0])

        assert str(list(rows)) == str([people[2], people[0]]) == str([rows[0], rows[-1]]) == str(rows[:])
        assert str(pickle.loads(pickle.dumps(rows))) == str(list(rows))

    def test_collates_columns(self, people: TorchDataset) -> None:
        batch = collate(people.__getitems__([2, 0]))

        assert batch["vector"].tolist() == [[5, 6], [1, 2]]
        assert [tokens.tolist() for tokens in batch["tokens"].unbind()] == [[7], [5, 6]]
        assert (batch["name"], batch["age/valid"].tolist()) == (["", "ada"], [True, False])

    def test_has_a_mask_in_every_batch_if_in_any(self, people: TorchDataset) -> None:
        assert collate(people.__getitems__([1, 2]))["age/valid"].tolist() == [True, True]

    @pytest.mark.parametrize("index", [[2, 0], np.array([2, 0]), torch.tensor([2, 0]), slice(None, None, -2)])
    def test_takes_what_samplers_of_batches_give(self, people: TorchDataset, index: Any) -> None:
        assert people[index]["id"].tolist() == [2, 0]

    def test_gives_payloads_as_they_are(self, people: TorchDataset, tmp_path: Path) -> None:
        raw = TorchDataset(rk.open(tmp_path / "people.tfrecord", raw=True))

        assert isinstance(raw[0], bytes)
        assert collate(raw.__getitems__([1, 0])) == [raw[1], raw[0]]

    @pytest.mark.parametrize("crew", [HERE, FORKED], ids=["here", "forked"])
    def test_works_with_what_pytorch_does_by_itself(self, tmp_path: Path, crew: Any, elsewhere: Elsewhere) -> None:
        save_many(tmp_path, COUNTS, ["plain", "ours", "foreign"])

        batches, _ = elsewhere(torch_loaders.row_by_row, str(tmp_path), crew)

        assert batches == [IDS[at : at + 4] for at in range(0, len(IDS), 4)]

    def test_refuses_a_pipeline_with_the_line_to_write(self, people: TorchDataset) -> None:
        with pytest.raises(
            TypeError, match=r"found Pipeline\n.*DataLoader\(TorchIterableDataset\(pipe\), batch_size=None"
        ):
            TorchDataset(people.dataset.batch(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [getattr(errors, name) for name in errors.__all__])
def test_errors_of_a_worker_are_not_hidden_by_pytorch(kind: type[Exception]) -> None:
    made = kind("what", "package", "extra") if kind is errors.MissingExtraError else kind("what is wrong")
    try:
        raise made
    except Exception:
        wrapped = ExceptionWrapper(where="in DataLoader worker process 0")

    with pytest.raises((kind, RuntimeError)) as caught:
        wrapped.reraise()

    assert str(made) in str(caught.value)


class TestTorchDatasetAsLoader(LoaderContract):
    load = torch_loaders.map_style


KINDS = ["shuffled", "filtered", "as they lie"]
SOME_FORKED = [(1, "fork"), (2, "fork"), (5, "fork")]


class TestTorchIterableDatasetAsLoader(LoaderContract):
    load = torch_loaders.iterable


class TestTorchIterableDataset:
    @pytest.mark.parametrize("kind", KINDS)
    def test_any_number_of_workers_gives_the_same_batches(
        self, tmp_path: Path, kind: str, elsewhere: Elsewhere
    ) -> None:
        save_many(tmp_path, COUNTS)
        alone = [batch["id"].tolist() for batch in torch_loaders.pipeline(str(tmp_path), kind)]

        found = [elsewhere(torch_loaders.iterable, str(tmp_path), crew, kind=kind)[0] for crew in (HERE, *SOME_FORKED)]

        assert found == [alone] * 4

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("stop", [0, 1, 3])
    def test_other_workers_go_on(self, tmp_path: Path, kind: str, stop: int, elsewhere: Elsewhere) -> None:
        save_many(tmp_path, COUNTS)
        whole, _ = elsewhere(torch_loaders.iterable, str(tmp_path), HERE, kind=kind)

        first, state = elsewhere(torch_loaders.iterable, str(tmp_path), FORKED, stop, kind=kind)
        rest, _ = elsewhere(torch_loaders.iterable_from, str(tmp_path), (2, "fork"), state, kind=kind)

        assert first + rest == whole

    @pytest.mark.parametrize("persistent", [False, True])
    def test_each_iteration_is_the_next_epoch_in_all_workers(
        self, tmp_path: Path, persistent: bool, elsewhere: Elsewhere
    ) -> None:
        save_many(tmp_path, COUNTS)
        pipe = torch_loaders.pipeline(str(tmp_path))
        alone = [[batch["id"].tolist() for batch in pipe] for _ in range(5)]
        alone[2] = alone[2][:1]

        found = elsewhere(torch_loaders.epochs, str(tmp_path), FORKED, persistent=persistent)

        assert found == alone

    def test_epochs_can_be_chosen_for_workers_that_stay(self, tmp_path: Path, elsewhere: Elsewhere) -> None:
        save_many(tmp_path, COUNTS)
        pipe = torch_loaders.pipeline(str(tmp_path))
        alone = [[batch["id"].tolist() for batch in pipe] for _ in range(5)]

        found = elsewhere(torch_loaders.set_epochs, str(tmp_path), FORKED)

        assert found == [alone[4], alone[4], alone[1]]

    @pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # which torchdata calls
    @pytest.mark.parametrize("what", ["columns", "tuples", "arrays"])
    def test_batches_of_batches_are_refused_with_the_line_to_write(self, people: TorchDataset, what: str) -> None:
        rows = people.dataset.select("id")
        pipe = {
            "columns": rows.batch(2),
            "tuples": rows.map(lambda row: (row["id"], 1)).batch(2),
            "arrays": rows.map(lambda row: row["id"]).batch(2),
        }[what]
        dataset = TorchIterableDataset(pipe)

        for loader in (torch.utils.data.DataLoader, StatefulDataLoader):
            with pytest.raises(StateError, match=r"would batch them again\n  Write DataLoader\(.*, batch_size=None\)"):
                next(iter(loader(dataset, batch_size=7)))
            assert next(iter(loader(dataset, batch_size=None))) is not None
            assert len(next(iter(loader(dataset, batch_size=2, collate_fn=list)))) == 2

    def test_rows_may_be_batched_by_the_loader(self, people: TorchDataset) -> None:
        loader = torch.utils.data.DataLoader(TorchIterableDataset(people.dataset.select("id")), batch_size=2)

        assert len(next(iter(loader))["id"]) == 2

    def test_has_the_length_of_the_pipeline(self, people: TorchDataset) -> None:
        assert len(TorchIterableDataset(people.dataset.batch(2))) == 2
        with pytest.raises(TypeError, match="the number of elements is not known before the end"):
            len(TorchIterableDataset(people.dataset.filter("id > 0")))

    def test_gives_tensors_and_a_mask_in_every_batch(self, people: TorchDataset) -> None:
        first, last = TorchIterableDataset(people.dataset.batch(2))

        assert first["age/valid"].tolist() == [False, True]
        assert (last["age/valid"].tolist(), last["name"], last["vector"].tolist()) == ([True], [""], [[5, 6]])

    def test_gives_what_map_returned(self, people: TorchDataset) -> None:
        pipe = people.dataset.map(lambda row: (row["vector"], row["name"])).batch(3)

        vectors, names = next(iter(TorchIterableDataset(pipe)))

        assert (vectors.shape, names) == ((3, 2), ["ada", "grace", ""])

    def test_a_copy_of_it_gives_the_same(self, people: TorchDataset) -> None:
        dataset = TorchIterableDataset(people.dataset.shuffle(seed=4).batch(3))
        next(iter(dataset))

        copy = pickle.loads(pickle.dumps(dataset))

        assert next(iter(copy))["id"].tolist() == next(iter(dataset))["id"].tolist()

    def test_begins_with_the_epoch_of_the_pipeline_and_leaves_it_alone(self, people: TorchDataset) -> None:
        pipe = people.dataset.shuffle(seed=4).batch(3)
        expected = [next(iter(pipe))["id"].tolist() for _ in range(3)]
        pipe.set_epoch(1)

        dataset = TorchIterableDataset(pipe)
        found = [next(iter(dataset))["id"].tolist() for _ in range(2)]
        dataset.set_epoch(7)

        assert found == expected[1:]
        assert next(iter(pipe))["id"].tolist() == expected[1]

    def test_an_epoch_is_a_number_from_0_up(self, people: TorchDataset) -> None:
        with pytest.raises(ValueError, match=r"^epoch is a number from 0 up, found -1$"):
            TorchIterableDataset(people.dataset).set_epoch(-1)

    def test_a_state_of_another_dataset_is_refused(self, people: TorchDataset, tmp_path: Path) -> None:
        save_many(tmp_path / "others", COUNTS)
        others = iter(rk.open(tmp_path / "others").batch(2))
        next(others)

        with pytest.raises(StateError, match="the state is of other records"):
            TorchIterableDataset(people.dataset.batch(2), others.state_dict())

    def test_goes_on_from_a_state_of_the_pipeline_and_then_to_the_next_epoch(self, people: TorchDataset) -> None:
        pipe = people.dataset.shuffle(seed=1).batch(1)
        whole = [[batch["id"].tolist() for batch in pipe] for _ in range(3)]
        pipe.set_epoch(1)
        begun = iter(pipe)
        next(begun)

        dataset = TorchIterableDataset(pipe, begun.state_dict())

        assert [[batch["id"].tolist() for batch in dataset] for _ in range(2)] == [whole[1][1:], whole[2]]
