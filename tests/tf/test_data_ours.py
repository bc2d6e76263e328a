"""tf.data where TensorFlow cannot run the script, or ours does more: asserted on values."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit import tf
from recordkit.errors import CorruptRecordError, SchemaError
from recordkit.tf.data._arguments import cycle_length_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Dataset, TFRecordDataset = tf.data.Dataset, tf.data.TFRecordDataset


def numbers(dataset: Any) -> list[int]:
    return [int(number) for number in dataset]


def example(**values: list[Any]) -> bytes:
    message = tf.train.Example()
    for name, value in values.items():
        kind = message.features.feature[name]
        (kind.bytes_list if isinstance(value[0], bytes) else kind.int64_list).value.extend(value)
    return message.SerializeToString()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Ten Examples with a number and its name."""
    target = str(tmp_path / "numbers.tfrecord")
    with tf.io.TFRecordWriter(target) as writer:
        for n in range(10):
            writer.write(example(n=[n], name=[b"number %d" % n]))
    return target


class TestFunctions:
    def test_see_values(self) -> None:
        squares = Dataset.range(4).map(lambda n: n.numpy() ** 2)

        assert list(squares.as_numpy_iterator()) == [0, 1, 4, 9]

    def test_may_print_and_count(self) -> None:
        seen: list[int] = []

        def look(n: Any) -> Any:
            seen.append(int(n))
            return n

        list(Dataset.range(600).map(look).batch(4))

        assert seen == list(range(600))

    def test_run_by_several_threads_keep_the_order(self) -> None:
        together = threading.Barrier(2, timeout=30)

        def meet(n: Any) -> Any:
            if int(n) in (0, 1):
                together.wait()  # which one thread alone would wait for in vain
            return n

        assert numbers(Dataset.range(2000).map(meet, num_parallel_calls=2)) == list(range(2000))

    def test_one_that_fails_is_named_with_its_record(self, path: str) -> None:
        def broken(payload: Any) -> Any:
            message = tf.train.Example.FromString(payload.numpy())
            return 1 // (message.features.feature["n"].int64_list.value[0] - 7)

        with pytest.raises(ZeroDivisionError) as caught:
            list(TFRecordDataset(path).map(broken))

        assert any(f"{path}: record 7" in note for note in caught.value.__notes__)

    def test_stop_iteration_is_not_taken_for_the_end(self, path: str) -> None:
        empty = Dataset.range(3).map(lambda n: next(iter([])))

        for dataset in (empty, empty.batch(2), Dataset.range(3).filter(lambda n: next(iter([])))):
            with pytest.raises(RuntimeError, match="it raised StopIteration"):
                list(dataset)

    def test_parse_error_names_record_and_key(self, path: str) -> None:
        wrong = {"n": tf.io.FixedLenFeature([], tf.string)}

        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\bn\b") as caught:
            list(TFRecordDataset(path).map(lambda payload: tf.io.parse_single_example(payload, wrong)))

        assert isinstance(caught.value, SchemaError)
        assert any(f"{path}: record 0" in note for note in caught.value.__notes__)

    def test_interleave_needs_datasets(self) -> None:
        with pytest.raises(TypeError, match="must return a Dataset, found Tensor"):
            list(Dataset.range(3).flat_map(lambda n: n))

    def test_elements_of_several_structures_are_no_batch(self) -> None:
        mixed = Dataset.range(4).map(lambda n: {"a": n} if int(n) % 2 else {"b": n})

        with pytest.raises(SchemaError, match="one structure"):
            list(mixed.batch(2))

    def test_threads_are_let_go_with_the_iterator(self) -> None:
        nested = Dataset.range(9).interleave(lambda n: Dataset.range(10**9), cycle_length=4, num_parallel_calls=4)
        it = iter(nested.map(lambda n: n, num_parallel_calls=3).batch(2).prefetch(2))
        next(it)

        del it
        gc.collect()

        assert [thread for thread in threading.enumerate() if thread.name.startswith("recordkit")] == []


class TestPrefetch:
    @pytest.mark.parametrize("ahead", [1, 3, 40])
    @pytest.mark.parametrize("kind", ["map", "generator", "file", "batch", "interleave", "concatenate", "cache"])
    def test_makes_no_more_elements_than_asked_for(self, kind: str, ahead: int, path: str) -> None:
        made: list[int] = []

        def look(n: Any) -> Any:
            made.append(1)
            return n

        def generator() -> Iterator[int]:
            for n in range(2000):
                yield look(n)

        numbers, size = Dataset.range(2000), 5 if kind == "batch" else 1
        dataset = {
            "map": lambda: numbers.map(look),
            "generator": lambda: Dataset.from_generator(generator, output_signature=tf.TensorSpec([], tf.int64)),
            "file": lambda: TFRecordDataset([path] * 20).map(look),
            "batch": lambda: numbers.map(look).batch(size),
            "interleave": lambda: numbers.interleave(lambda n: Dataset.range(10).map(look), cycle_length=1),
            "concatenate": lambda: numbers.map(look).concatenate(numbers),
            "cache": lambda: numbers.map(look).cache(),
        }[kind]()
        it = iter(dataset.prefetch(ahead))
        for given in range(1, 5):
            next(it)
            time.sleep(0.01)
            # A batch that is begun is none yet.
            assert len(made) <= (given + ahead) * size + size - 1


class TestInterleave:
    @pytest.mark.parametrize(
        ("length", "calls", "cycle"),
        [
            (5, None, 5),
            (5, 2, 5),
            (None, None, 8),
            (-1, None, 8),
            (None, 3, 3),
            (None, 9, 8),
            (None, -1, 3),
            (-1, -1, 3),
        ],
    )
    def test_cycle_is_what_tensorflow_takes_of_eight_processors(self, length: Any, calls: Any, cycle: int) -> None:
        assert cycle_length_of(length, calls, processors=8) == cycle


class TestScripts:
    def test_field_is_added_in_map(self, path: str, tmp_path: Path) -> None:
        def extended(payload: Any) -> Any:
            message = tf.train.Example.FromString(payload.numpy())
            n = message.features.feature["n"].int64_list.value[0]
            message.features.feature["square"].int64_list.value.append(n * n)
            message.features.feature["text"].bytes_list.value.append(str(n).encode())
            return message.SerializeToString()

        written = tmp_path / "more.tfrecord"
        dataset = TFRecordDataset(path).map(extended, num_parallel_calls=tf.data.AUTOTUNE)
        tf.data.experimental.TFRecordWriter(str(written)).write(dataset)

        rows = list(rk.open(written))
        assert [int(row["square"]) for row in rows] == [n * n for n in range(10)]
        assert rows[3]["text"] == "3"
        assert rows[3]["name"] == "number 3"

    def test_arrays_come_back_inside_map(self, tmp_path: Path) -> None:
        arrays = [np.arange(6, dtype=dtype).reshape(2, 3) + n for n, dtype in enumerate(["f4", "i2", "u1"])]
        target = str(tmp_path / "arrays.tfrecord")
        with tf.io.TFRecordWriter(target) as writer:
            for array in arrays:
                writer.write(example(raw=[array.tobytes()], shape=list(array.shape), dtype=[array.dtype.name.encode()]))
        schema = {
            "raw": tf.io.FixedLenFeature([], tf.string),
            "shape": tf.io.FixedLenFeature([2], tf.int64),
            "dtype": tf.io.FixedLenFeature([], tf.string),
        }

        def restored(payload: Any) -> Any:
            row = tf.io.parse_single_example(payload, schema)
            return np.frombuffer(row["raw"].numpy(), row["dtype"].numpy().decode()).reshape(row["shape"].numpy())

        back = list(TFRecordDataset(target).map(restored).as_numpy_iterator())

        assert [array.dtype for array in back] == [array.dtype for array in arrays]
        assert all(np.array_equal(*pair) for pair in zip(back, arrays, strict=True))

    def test_pictures_of_a_generator_are_serialized_in_map(self, tmp_path: Path) -> None:
        def pictures() -> Iterator[Any]:
            for n in range(3):
                yield np.full((8 + n, 8, 3), 80 * n, np.uint8), n

        def serialized(picture: Any, label: Any) -> bytes:
            return example(image=[tf.io.encode_jpeg(picture, quality=95).numpy()], label=[int(label)])

        signature = tf.TensorSpec([None, None, 3], tf.uint8), tf.TensorSpec([], tf.int64)
        dataset = Dataset.from_generator(pictures, output_signature=signature).map(serialized)
        target = str(tmp_path / "pictures.tfrecord")
        tf.data.experimental.TFRecordWriter(target).write(dataset)

        schema = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
        for payload in TFRecordDataset(target):
            row = tf.io.parse_single_example(payload, schema)
            n, pixels = int(row["label"]), tf.io.decode_jpeg(row["image"])
            assert pixels.shape == [8 + n, 8, 3]
            assert int(pixels[0, 0, 0]) == 80 * n


class TestErrors:
    def test_only_damaged_records_are_ignored(self, path: str) -> None:
        with open(path, "rb+") as file:  # noqa: PTH123
            file.seek(100)
            file.write(b"###")

        with pytest.raises(tf.errors.DataLossError) as caught:
            list(TFRecordDataset(path))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept = [len(list(dataset.ignore_errors())) for dataset in self._ways(path)]

        assert isinstance(caught.value, CorruptRecordError)
        assert kept == [9, 9, 9]

    @staticmethod
    def _ways(path: str) -> list[Any]:
        names = Dataset.from_tensor_slices([path])
        return [
            TFRecordDataset(path),
            names.interleave(TFRecordDataset),
            TFRecordDataset(names).map(lambda payload: payload),
        ]

    def test_ignoring_says_what_it_leaves_out_if_asked(self) -> None:
        inverse = Dataset.range(3).map(lambda n: 6 // int(n)).ignore_errors(log_warning=True)

        with pytest.warns(RuntimeWarning, match="is dropped: integer division"):
            assert numbers(inverse) == [6, 3]

    def test_failed_elements_are_not_cached(self) -> None:
        cached = Dataset.range(3).map(lambda n: 6 // int(n)).cache()

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                list(cached)

    def test_cache_is_made_once_of_what_has_not_failed(self) -> None:
        calls: list[int] = []

        def inverse(n: Any) -> int:
            calls.append(int(n))
            return 6 // int(n)

        cached = Dataset.range(3).map(inverse).cache().ignore_errors()

        assert [numbers(cached) for _ in range(2)] == [[6, 3]] * 2
        assert calls == [0, 1, 2]

    def test_cache_of_what_has_no_end_gives_what_is_asked_for(self) -> None:
        assert numbers(Dataset.range(2).repeat().cache().take(5)) == [0, 1, 0, 1, 0]

    def test_cache_in_a_folder_is_read_the_next_time(self, path: str, tmp_path: Path) -> None:
        calls: list[int] = []

        def length(payload: Any) -> int:
            calls.append(1)
            return len(payload.numpy())

        def lengths() -> list[int]:
            return numbers(TFRecordDataset(path).map(length).cache(str(tmp_path / "cache")))

        assert lengths() == lengths()
        assert len(calls) == 10

    def test_cache_of_other_steps_is_used_with_a_warning(self, tmp_path: Path) -> None:
        target = str(tmp_path / "cache")
        list(Dataset.range(3).cache(target))

        with pytest.warns(RuntimeWarning, match="was made from other records or steps.*\n.*Remove the folder"):
            assert numbers(Dataset.range(3).map(lambda n: n + 1).cache(target)) == [0, 1, 2]

    def test_cache_in_a_folder_knows_the_steps_before_it_in_any_process(self, path: str, tmp_path: Path) -> None:
        program = f"""if True:
            from recordkit import tf
            names = tf.data.Dataset.list_files({path!r})
            records = names.interleave(tf.data.TFRecordDataset).enumerate().shuffle(3).padded_batch(4)
            cached = records.map(lambda n, payload: print("made") or n).cache({str(tmp_path / "cache")!r})
            print(sorted(int(n) for batch in cached for n in batch))
            """

        said = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in range(2)]

        assert [one.stdout.count("made") for one in said] == [3, 0]
        assert [one.stdout.split("made")[-1].strip() for one in said] == [str(list(range(10)))] * 2

    def test_name_that_is_not_there_is_explained(self) -> None:
        with pytest.raises(
            AttributeError, match=r"recordkit's tf.data.Dataset has no 'shufle'\n  Did you mean 'shuffle'"
        ):
            Dataset.range(3).shufle  # noqa: B018
        with pytest.raises(AttributeError, match=r"recordkit's tf\.data has no 'Datast'"):
            tf.data.Datast  # noqa: B018

    def test_seeded_shuffle_is_the_same_in_every_program(self) -> None:
        assert numbers(Dataset.range(8).shuffle(4, seed=7)) == [1, 3, 2, 0, 5, 4, 6, 7]


class TestRagged:
    def test_last_batch_is_ragged_as_those_before_it(self) -> None:
        rows = Dataset.range(1, 4).map(lambda n: np.zeros(int(n)))

        assert [type(batch) for batch in rows.ragged_batch(2)] == [tf.RaggedTensor] * 2

    def test_arrays_of_functions_are_ragged_though_they_agree(self) -> None:
        rows = Dataset.range(5).map(lambda n: (np.zeros(2 if int(n) < 4 else 3), np.zeros((2, 3)), n))

        batches = list(rows.ragged_batch(2))

        assert [batch[0].to_list() for batch in batches] == [[[0, 0], [0, 0]]] * 2 + [[[0, 0, 0]]]
        assert [[list(item.shape) for item in batch] for batch in batches][:1] == [[[2, None], [2, None, 3], [2]]]

    def test_rows_stay_ragged_through_a_cache_in_a_folder(self, tmp_path: Path) -> None:
        signature = tf.TensorSpec([None], tf.int64)
        rows = Dataset.from_generator(lambda: iter([[1], [2]]), output_signature=signature).cache(str(tmp_path / "x"))

        batches = [list(rows.ragged_batch(2)) for _ in range(2)]

        assert [type(batch) for (batch,) in batches] == [tf.RaggedTensor] * 2

    def test_inner_dimensions_that_agree_stay_as_they_are(self) -> None:
        pictures = Dataset.range(1, 4).map(lambda n: np.zeros((int(n), 2 * int(n), 3)))

        (batch,) = pictures.ragged_batch(3)

        assert batch.shape == [3, None, None, 3]
        assert [row.shape for row in batch[1]] == [[4, 3], [4, 3]]


class TestGoingOn:
    """Steps of ours obey the law of pipelines: from any mark comes the same rest."""

    @pytest.mark.parametrize(
        "dataset",
        [
            Dataset.range(6).interleave(Dataset.range, cycle_length=3, block_length=2),
            Dataset.range(1, 9).map(lambda n: np.zeros(int(n))).ragged_batch(3),
            Dataset.range(20).shuffle(5, seed=1).map(lambda n: n),
            Dataset.range(20).shuffle(5, seed=1, reshuffle_each_iteration=False).batch(3),
            Dataset.range(9).map(lambda n: 6 // (int(n) - 4)).ignore_errors(),
            Dataset.range(9).map(lambda n: 6 // (int(n) % 3)).take(4).ignore_errors(),
            Dataset.range(9).map(lambda n: 6 // (int(n) % 4)).shard(2, 1).ignore_errors(),
        ],
        ids=["interleave", "ragged", "shuffle", "same shuffle", "ignore_errors", "take", "shard"],
    )
    def test_rest_is_the_same(self, dataset: Any) -> None:
        pipe = dataset._pipe
        whole = [str(element) for element in pipe]

        for given in range(len(whole) + 1):
            pipe.set_epoch(0)
            it = iter(pipe)
            first = [str(next(it)) for _ in range(given)]
            rest = [str(element) for element in pipe.resume(it.state_dict())]

            assert first + rest == whole
