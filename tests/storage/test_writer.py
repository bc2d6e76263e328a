from __future__ import annotations

import gc
import gzip
import logging
import subprocess
import sys
import textwrap
import zlib
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import records
from recordkit.storage.write import Written, _shards, _writer
from tests.schema import test_laws as laws
from tests.storage import reading, ways

workers = st.sampled_from([1, 3])
IDS = {"id": "int64"}


def dealt(rows: list[Any], shards: int) -> list[list[Any]]:
    return [rows[number::shards] for number in range(shards)]


class TestRoundTrip:
    @settings(max_examples=60)
    @given(laws.tables(), ways.compressions, workers, ways.steps, st.data())
    def test_rows_come_back_in_order_bit_for_bit(
        self, table: dict[str, laws.Column], compression: Any, workers: int, steps: list[int], data: st.DataObject
    ) -> None:
        schema = laws.schema_of(table)
        if schema is None:
            return
        rows = laws.rows_of(table) * 4
        sharding = data.draw(ways.shardings(len(rows)))

        with TemporaryDirectory() as folder:
            target = Path(folder) / "data"
            options = {"compression": compression, "workers": workers, "sync": False, **sharding}
            with rk.create(target, schema, **options) as writer:
                ways.write_in_steps(writer, rows, steps)
            found = [row for batch in reading.batches(target) for row in batch.rows()]

        assert [{n: laws.plain(v) for n, v in row.items()} for row in found] == [
            {n: laws.plain(v) for n, v in row.items()} for row in rows
        ]

    @given(st.integers(0, 30), st.integers(1, 5), ways.steps, ways.compressions, workers)
    def test_rows_are_dealt_like_cards(
        self, count: int, shards: int, steps: list[int], compression: Any, workers: int
    ) -> None:
        rows = [{"id": number} for number in range(count)]

        with TemporaryDirectory() as folder:
            target = Path(folder) / "data"
            options: dict[str, Any] = {"compression": compression, "workers": workers, "sync": False}
            with rk.create(target, IDS, shards=shards, **options) as writer:
                ways.write_in_steps(writer, rows, steps)

            assert reading.ids(target) == dealt(list(range(count)), shards)

    @given(st.integers(0, 30), st.integers(1, 5), ways.steps)
    def test_with_their_number_known_rows_that_follow_each_other_stay_together(
        self, count: int, shards: int, steps: list[int]
    ) -> None:
        rows = [{"id": number} for number in range(count)]

        with TemporaryDirectory() as folder:
            target = Path(folder) / "data"
            with rk.create(target, IDS, shards=shards, rows=count, sync=False) as writer:
                ways.write_in_steps(writer, rows, steps)
            found = reading.ids(target)

        assert list(chain.from_iterable(found)) == list(range(count))
        assert len(found) == shards
        assert max(map(len, found)) - min(map(len, found)) <= 1

    @settings(max_examples=40)
    @given(st.lists(st.text(max_size=40), max_size=30), ways.steps, ways.steps, ways.compressions, workers, st.data())
    def test_files_are_the_same_however_the_rows_were_handed_in(
        self,
        texts: list[str],
        steps: list[int],
        others: list[int],
        compression: Any,
        workers: int,
        data: st.DataObject,
    ) -> None:
        rows = [{"text": text} for text in texts]
        sharding = data.draw(ways.shardings(len(rows)) | st.fixed_dictionaries({"shards": st.integers(1, 4)}))
        options = {"compression": compression, "sync": False, **sharding}

        with TemporaryDirectory() as folder, mock.patch.object(_shards, "MEMBER_BYTES", 150):
            one, other = Path(folder) / "1" / "data", Path(folder) / "2" / "data"
            with rk.create(one, {"text": "string"}, workers=1, **options) as writer:
                ways.write_in_steps(writer, rows, steps)
            with rk.create(other, {"text": "string"}, workers=workers, **options) as writer:
                ways.write_in_steps(writer, rows, others)

            assert reading.tree(one) == reading.tree(other)

    @pytest.mark.parametrize(("compression", "decompress"), [("gzip", gzip.decompress), ("zlib", zlib.decompress)])
    def test_decompressed_files_are_the_plain_ones(self, tmp_path: Path, compression: Any, decompress: Any) -> None:
        columns = {"id": np.arange(50_000), "text": [f"number {n}" for n in range(50_000)]}

        rk.write(tmp_path / "plain", columns, records_per_shard=30_000, name="data")
        rk.write(tmp_path / "small", columns, records_per_shard=30_000, name="data", compression=compression)

        plain, small = reading.files(tmp_path / "plain"), reading.files(tmp_path / "small")
        assert [decompress(path.read_bytes()) for path in small] == [path.read_bytes() for path in plain]

    def test_a_shard_ends_with_the_record_that_fills_it(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", {"text": ["x" * 100] * 50}, shard_size=1000)

        sizes = [path.stat().st_size for path in reading.files(tmp_path / "a")]
        record = sizes[0] // len(reading.payloads(tmp_path / "a")[0])
        assert all(size - record < 1000 <= size for size in sizes[:-1])

    def test_a_compressed_shard_is_about_as_large_as_asked_for(self, tmp_path: Path) -> None:
        noise = np.random.default_rng(7).bytes(6_000_000)
        payloads = [noise[at : at + 10_000] for at in range(0, len(noise), 10_000)]

        rk.write(tmp_path / "a", {"noise": payloads}, {"noise": "bytes"}, shard_size=2_000_000, compression="gzip")

        sizes = [path.stat().st_size for path in reading.files(tmp_path / "a")]
        assert all(2_000_000 <= size < 2_000_000 + (1 << 20) + 20_000 for size in sizes[:-1])

    def test_rows_and_batches_and_payloads_keep_their_order(self, tmp_path: Path) -> None:
        schema = rk.Schema(IDS)

        with rk.create(tmp_path / "a", schema) as writer:
            for at in range(0, 60, 6):
                writer.write({"id": at})
                writer.write_raw(schema.encode_rows([{"id": at + 1}])[0])
                writer.write_raw(schema.encode_rows([{"id": at + 2}])[0])
                writer.write({"id": at + 3})
                writer.write_batch({"id": [at + 4, at + 5]})

        assert reading.ids(tmp_path / "a") == [list(range(60))]

    @pytest.mark.parametrize("shape", ["float64[2]", "float32[2]", "int64[?]", "float64[?,?]", "uint8[1,2]"])
    def test_an_array_can_be_used_again_for_the_next_row(self, shape: str, tmp_path: Path) -> None:
        array = np.zeros((1, 2) if "," in shape else 2, shape.partition("[")[0])

        with rk.create(tmp_path / "a", {"x": shape}) as writer:
            for number in range(5):
                array[:] = number
                writer.write({"x": array})

        rows = [np.asarray(value).ravel().tolist() for value in reading.batches(tmp_path / "a")[0]["x"]]
        assert rows == [[n, n] for n in range(5)]

    @pytest.mark.parametrize("listed", [False, True])
    def test_the_steps_of_a_sequence_can_be_used_again(self, listed: bool, tmp_path: Path) -> None:
        schema = rk.Schema({"id": "int64"}, sequences={"x": "float32[2]"})
        steps = np.zeros((1, 2), np.float32)

        with rk.create(tmp_path / "a", schema) as writer:
            for number in range(5):
                steps[:] = number
                writer.write({"id": number, "x": [steps[0]] if listed else steps})

        assert reading.batches(tmp_path / "a")[0]["x"].to_list() == [[[n, n]] for n in range(5)]

    def test_rows_that_define_the_schema_can_be_used_again(self, tmp_path: Path) -> None:
        row: dict[str, Any] = {"x": np.zeros(2)}

        with rk.create(tmp_path / "a") as writer:
            for number in range(3):
                row["x"][:] = number
                writer.write(row)

        assert reading.batches(tmp_path / "a")[0]["x"].tolist() == [[0, 0], [1, 1], [2, 2]]

    def test_flush_puts_rows_into_files_of_the_staging_folder(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", IDS, workers=2) as writer:
            writer.write({"id": 7})
            writer.flush()
            (staged,) = tmp_path.rglob("*.tfrecord")
            found = reading.raw(staged, None)
            writer.write({"id": 8})

        assert len(records.chunk(found)) == 1
        assert reading.ids(tmp_path / "a") == [[7, 8]]

    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    def test_flush_does_not_move_the_ends_of_shards(self, tmp_path: Path, compression: Any) -> None:
        with rk.create(tmp_path / "a", IDS, records_per_shard=2, on_error="skip", compression=compression) as writer:
            for number in [0, 1, None, 2, None, 3, 4]:
                writer.write({"id": number})
                writer.flush()

        assert reading.ids(tmp_path / "a") == [[0, 1], [2, 3], [4]]


@pytest.mark.tensorflow
class TestTensorFlow:
    @settings(max_examples=30)
    @given(laws.tables(), ways.compressions, ways.steps)
    def test_tensorflow_reads_the_same_values(
        self, table: dict[str, laws.Column], compression: Any, steps: list[int]
    ) -> None:
        import tensorflow as tf

        schema = laws.schema_of(table)
        if schema is None:
            return
        rows = laws.rows_of(table) * 3

        with TemporaryDirectory() as folder:
            target = Path(folder) / "data"
            options: dict[str, Any] = {"compression": compression, "records_per_shard": 5, "sync": False}
            with rk.create(target, schema, **options) as writer:
                ways.write_in_steps(writer, rows, steps)
            names = [str(path) for path in reading.files(target)]
            dataset = tf.data.TFRecordDataset(names, compression_type=(compression or "").upper())
            found = [tf.io.parse_single_example(p, schema.to_feature_description()) for p in dataset]

        assert len(found) == len(rows)
        for parsed, row in zip(found, rows, strict=True):
            for name, column in table.items():
                assert laws._elements(parsed[name].numpy(), column.field) == laws._stored(row[name], column.field)

    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    def test_tensorflow_reads_every_record_of_many_members(self, tmp_path: Path, tf: Any, compression: Any) -> None:
        rk.write(tmp_path / "a.tfrecord", {"id": np.arange(100_000)}, compression=compression)

        found = tf.data.TFRecordDataset(str(tmp_path / "a.tfrecord"), (compression or "").upper()).batch(100_000)
        parsed = tf.io.parse_example(next(iter(found)), {"id": tf.io.FixedLenFeature([], tf.int64)})

        assert parsed["id"].numpy().tolist() == list(range(100_000))

    def test_messages_define_the_schema_and_are_written_as_they_are(self, tmp_path: Path, tf: Any) -> None:
        messages = [example(tf, n) for n in range(5)]

        with rk.create(tmp_path / "a") as writer:
            for message in messages:
                writer.write(message)

        assert writer.schema == rk.Schema(IDS)
        assert reading.payloads(tmp_path / "a") == [[message.SerializeToString() for message in messages]]

    def test_messages_that_do_not_fit_are_bad_rows(self, tmp_path: Path, tf: Any) -> None:
        with rk.create(tmp_path / "a", {"id": "int64", "more": "string?"}, on_error="skip") as writer:
            writer.write(example(tf, 1))
            writer.write(example(tf, 2, name="other"))
            writer.write({"id": 3})
            writer.write(example(tf, 4))

        (bad,) = rk.quarantined(tmp_path / "a")
        assert reading.ids(tmp_path / "a") == [[1, 3, 4]]
        assert (bad.number, bad.field, bad.row) == (1, "id", example(tf, 2, name="other").SerializeToString())


def example(tf: Any, number: int, name: str = "id") -> Any:
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
    return tf.train.Example(features=tf.train.Features(feature={name: feature}))


class TestBadRows:
    def test_raised_with_row_and_field_and_the_writer_goes_on(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", {"id": "uint8"}) as writer:
            writer.write({"id": 1})
            with pytest.raises(rk.SchemaError) as caught:
                writer.write({"id": 300})
            writer.write({"id": 2})

        assert str(caught.value) == "id: expected uint8, found 300\n  In row 1. uint8 holds 0 to 255. Declare int16."
        assert (caught.value.field, caught.value.record) == ("id", 1)
        assert reading.ids(tmp_path / "a") == [[1, 2]]

    def test_a_batch_is_written_whole_or_not_at_all(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", IDS) as writer:
            with pytest.raises(rk.SchemaError, match="id: expected int64, found str"):
                writer.write_batch({"id": [*range(5000), "x"]})
            writer.write_batch({"id": [1, 2]})

        assert reading.ids(tmp_path / "a") == [[1, 2]]

    @given(
        st.lists(st.booleans(), max_size=20), st.integers(1, 4), ways.compressions, workers, ways.steps, st.booleans()
    )
    def test_skipped_rows_are_with_the_shard_they_belong_to(
        self,
        fits: list[bool],
        records_per_shard: int,
        compression: Any,
        workers: int,
        steps: list[int],
        flush: bool,
    ) -> None:
        rows = [{"id": number if fit else f"{number}"} for number, fit in enumerate(fits)]
        options: dict[str, Any] = {"records_per_shard": records_per_shard, "sync": False, "workers": workers}

        with TemporaryDirectory() as folder:
            target = Path(folder) / "data"
            with rk.create(target, IDS, on_error="skip", compression=compression, **options) as writer:
                ways.write_in_steps(writer, rows, steps)
                if flush:
                    writer.flush()
            shards, found = reading.manifest(target)["shards"], reading.ids(target)
            bad = list(rk.quarantined(target))
            lines = {path.name: len(path.read_bytes().splitlines()) for path in target.rglob("*.jsonl")}

        good = [number for number, fit in enumerate(fits) if fit]
        assert list(chain.from_iterable(found)) == good
        assert all(len(ids) == records_per_shard for ids in found[:-1])
        assert [(row.number, row.row) for row in bad] == [
            (number, {"id": f"{number}"}) for number, fit in enumerate(fits) if not fit
        ]
        assert lines == {f"{shard['name']}.jsonl": shard["skipped"] for shard in shards if shard["skipped"]}
        assert [shard["rows"] for shard in shards] == [shard["records"] + shard["skipped"] for shard in shards]
        assert writer.rows == len(rows)

    def test_skipped_rows_are_counted_and_told_of_at_the_end(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with rk.create(tmp_path / "a", IDS, on_error="skip") as writer:
            writer.write_batch({"id": [1, None, 3, "four"]})

        written = writer.close()
        assert (written.records, written.skipped) == (2, 2)
        assert [(record.levelno, record.message) for record in caplog.records] == [(logging.WARNING, str(written))]

    def test_skipped_rows_are_kept_with_the_reason(self, tmp_path: Path) -> None:
        bad = {"id": 1, "x": np.arange(3, dtype=np.int16), "blob": b"\0\xff"}
        schema = {"id": "int64", "x": "int16[2]", "blob": "bytes"}

        with rk.create(tmp_path / "a", schema, on_error="skip") as writer:
            writer.write({"id": 0, "x": np.zeros(2, np.int16), "blob": b""})
            writer.write(bad)

        (found,) = rk.quarantined(tmp_path / "a")
        assert (found.number, found.field) == (1, "x")
        assert found.reason.startswith("x: expected int16[2], found")
        assert "In row 1." in found.reason
        assert found.row["x"].dtype == np.int16
        assert found.row["x"].tolist() == [0, 1, 2]
        assert (found.row["id"], found.row["blob"]) == (1, b"\0\xff")

    def test_a_skipped_row_is_kept_as_it_was_when_it_was_offered(self, tmp_path: Path) -> None:
        row: dict[str, Any] = {"id": np.zeros(1)}

        with rk.create(tmp_path / "a", IDS, on_error="skip") as writer:
            for number in range(3):
                row["id"][:] = number
                writer.write(row)

        assert [bad.row["id"].tolist() for bad in rk.quarantined(tmp_path / "a")] == [[0], [1], [2]]

    def test_a_dataset_of_bad_rows_only_is_empty(self, tmp_path: Path) -> None:
        written = rk.write(tmp_path / "a", [{"id": "x"}] * 3, IDS, on_error="skip", compression="gzip")

        assert (written.records, written.skipped, written.shards) == (0, 3, 1)
        assert len(list(rk.quarantined(tmp_path / "a"))) == 3

    def test_dealt_rows_keep_their_turns_when_one_is_skipped(self, tmp_path: Path) -> None:
        written = rk.write(
            tmp_path / "a", [{"id": n} for n in (0, "x", 1, 2, "y", 3)], IDS, on_error="skip", shards=2, rows=None
        )

        assert reading.ids(tmp_path / "a") == [[0, 2], [1, 3]]
        assert written.skipped == 2
        assert sorted(bad.number for bad in rk.quarantined(tmp_path / "a")) == [1, 4]

    def test_a_function_mends_rows_or_gives_up_on_them(self, tmp_path: Path) -> None:
        calls = []

        def mend(error: rk.SchemaError, row: Any, number: int) -> dict[str, Any] | None:
            calls.append((error.field, row, number))
            return {"id": 10 * number} if row["id"] == "mend me" else None

        with rk.create(tmp_path / "a", IDS, on_error=mend, records_per_shard=2) as writer:
            writer.write_batch({"id": [0, "mend me", "hopeless", 3]})
            writer.write({"id": "mend me"})

        assert reading.ids(tmp_path / "a") == [[0, 10], [3, 40]]
        assert [bad.number for bad in rk.quarantined(tmp_path / "a")] == [2]
        assert calls == [("id", {"id": "mend me"}, 1), ("id", {"id": "hopeless"}, 2), ("id", {"id": "mend me"}, 4)]

    def test_a_mended_row_keeps_its_place_among_payloads(self, tmp_path: Path) -> None:
        schema = rk.Schema(IDS)

        with rk.create(tmp_path / "a", schema, on_error=lambda error, row, number: {"id": 7}) as writer:
            writer.write_raw(schema.encode_rows([{"id": 0}])[0])
            writer.write_raw(b"not an Example")
            writer.write_raw(schema.encode_rows([{"id": 2}])[0])

        assert reading.ids(tmp_path / "a") == [[0, 7, 2]]

    def test_what_was_mended_badly_is_raised_with_its_row(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", IDS, on_error=lambda error, row, number: {"id": "still"}) as writer:
            writer.write({"id": 0})
            with pytest.raises(rk.SchemaError, match=r"id: expected int64, found str\n  In row 1\."):
                writer.write({"id": "bad"})

        assert reading.ids(tmp_path / "a") == [[0]]

    def test_what_the_function_raises_comes_out(self, tmp_path: Path) -> None:
        def fail(error: rk.SchemaError, row: Any, number: int) -> None:
            raise KeyError(number)

        with pytest.raises(KeyError), rk.create(tmp_path / "a", IDS, on_error=fail) as writer:
            writer.write({"id": "bad"})

        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("row", [7, None, ["id", 1], "id"])
    def test_what_is_no_row_at_all_is_a_bad_row(self, tmp_path: Path, row: Any) -> None:
        with rk.create(tmp_path / "a", IDS, on_error="skip") as writer:
            writer.write(row)
            writer.write({"id": 1})

        assert [bad.row for bad in rk.quarantined(tmp_path / "a")] == [row]
        assert reading.ids(tmp_path / "a") == [[1]]


class TestDefining:
    def test_the_first_rows_define_the_schema(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a") as writer:
            writer.write({"id": 1, "deep": {"x": np.float64(2)}})
            undefined = writer.schema
            writer.write({"id": 2, "deep": {"x": np.float64(3)}, "note": "later"})

        assert undefined is None
        assert writer.schema == rk.Schema({"id": "int64", "deep/x": "float64", "note": "string?"})
        assert reading.manifest(tmp_path / "a")["schema"] == writer.schema.to_dict()

    def test_later_rows_must_agree(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_writer, "FIRST_ROWS", 2)

        with rk.create(tmp_path / "a") as writer:
            writer.write({"id": 1})
            writer.write({"id": 2})
            with pytest.raises(rk.SchemaError) as caught:
                writer.write({"id": 3, "new": 4})

        assert caught.value.record == 2
        assert str(caught.value).endswith("The first rows defined the schema; pass schema= to declare another.")

    def test_of_the_first_rows_those_that_disagree_with_earlier_ones_are_bad(self, tmp_path: Path) -> None:
        rows = [{"id": 0}, {"id": "one"}, {"id": 2}, {"id": [3]}, {"id": 4}]

        rk.write(tmp_path / "a", rows, on_error="skip")

        assert reading.ids(tmp_path / "a") == [[0, 2, 4]]
        assert [(bad.number, bad.row) for bad in rk.quarantined(tmp_path / "a")] == [(1, rows[1]), (3, rows[3])]

    def test_no_row_is_lost_when_one_of_the_first_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_writer, "FIRST_ROWS", 3)

        with rk.create(tmp_path / "a") as writer:
            writer.write({"id": 0})
            writer.write({"id": "one"})
            with pytest.raises(rk.SchemaError, match="The latter in row 1"):
                writer.write({"id": 2})
            writer.write({"id": 3})

        assert reading.ids(tmp_path / "a") == [[0, 2, 3]]

    def test_no_row_is_lost_when_the_schema_does_not_hold_one_that_defined_it(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a") as writer:
            for value in (1.5, 1e300, 2.5):
                writer.write({"x": value})
            with pytest.raises(rk.SchemaError, match="In row 1"):
                writer.flush()

        assert reading.batches(tmp_path / "a")[0]["x"].tolist() == [1.5, 2.5]

    def test_large_first_rows_do_not_gather_in_memory(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a") as writer:
            writer.write({"x": np.zeros(1_500_000)})
            assert writer.schema is None
            writer.write({"x": np.zeros(1_500_000)})
            assert writer.schema is not None

    def test_columns_define_the_schema(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a") as writer:
            writer.write_batch({"id": np.arange(3, dtype=np.int16)})

        assert writer.schema == rk.Schema({"id": "int16"})

    def test_a_mended_row_may_be_the_first(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", on_error=lambda error, row, number: {"id": row}) as writer:
            writer.write(7)
            writer.write({"id": 8})

        assert reading.ids(tmp_path / "a") == [[7, 8]]


class TestRaw:
    def test_chunks_are_written_as_they_are(self, tmp_path: Path) -> None:
        path = tmp_path / "copy.tfrecord"
        chunk = records.pack_many([b"no Example", b"", b"nor this"])

        with rk.create(path) as writer:
            writer.write_chunk(chunk)
            writer.write_chunk(chunk.slice(1, 1))
            with pytest.raises(rk.SchemaError, match="written without a schema"):
                writer.write({"id": 1})
            writer.write_raw(b"last")

        assert path.read_bytes() == bytes(chunk) + records.pack(b"last")

    def test_payloads_of_the_users_own_need_no_schema(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a", records_per_shard=2) as writer:
            for payload in (b"one", bytearray(b"two"), memoryview(b"three")):
                writer.write_raw(payload)

        assert reading.payloads(tmp_path / "a") == [[b"one", b"two"], [b"three"]]
        assert reading.manifest(tmp_path / "a")["schema"] is None

    def test_with_a_schema_a_payload_must_fit_it(self, tmp_path: Path) -> None:
        schema = rk.Schema(IDS)
        other = rk.Schema({"id": "string"}).encode_rows([{"id": "x"}])[0]

        with rk.create(tmp_path / "a", schema) as writer:
            writer.write_raw(schema.encode_rows([{"id": 1}])[0])
            with pytest.raises(rk.SchemaError, match=r"id: expected 1 int64 value, found bytes\n  In row 1\."):
                writer.write_raw(other)
            with pytest.raises(rk.SchemaError, match=r"In row 1\."):
                writer.write_raw(b"junk")

        assert reading.ids(tmp_path / "a") == [[1]]

    def test_payloads_behind_rows_must_fit_the_schema_they_defined(self, tmp_path: Path) -> None:
        with rk.create(tmp_path / "a") as writer:
            writer.write({"id": 1})
            with pytest.raises(rk.SchemaError, match=r"In row 1\."):
                writer.write_raw(b"junk")

        assert reading.ids(tmp_path / "a") == [[1]]

    @pytest.mark.parametrize("method", ["write", "write_batch"])
    def test_rows_behind_payloads_that_no_schema_describes_are_refused(self, tmp_path: Path, method: str) -> None:
        with rk.create(tmp_path / "a") as writer:
            writer.write_raw(b"mine")
            with pytest.raises(rk.SchemaError, match=r"Pass schema= to write both\."):
                getattr(writer, method)({"id": [1]})

        assert reading.payloads(tmp_path / "a") == [[b"mine"]]


class TestEnding:
    def test_closing_again_returns_the_same(self, tmp_path: Path) -> None:
        writer = rk.create(tmp_path / "a", IDS)
        writer.write({"id": 1})

        assert writer.close() is writer.close()

    @pytest.mark.parametrize(
        "use",
        [
            lambda writer: writer.write({"id": 1}),
            lambda writer: writer.write_batch({"id": [1]}),
            lambda writer: writer.write_raw(b""),
            lambda writer: writer.flush(),
        ],
    )
    def test_a_closed_writer_takes_nothing(self, tmp_path: Path, use: Any) -> None:
        writer = rk.create(tmp_path / "a", IDS)
        writer.close()

        with pytest.raises(rk.StorageError) as caught:
            use(writer)

        assert str(caught.value) == f"{tmp_path / 'a'}: the writer is closed"

    def test_an_aborted_writer_cannot_be_closed(self, tmp_path: Path) -> None:
        writer = rk.create(tmp_path / "a", IDS)
        writer.abort()
        writer.abort()

        with pytest.raises(rk.StorageError, match="the writer is closed"):
            writer.close()

    def test_a_writer_that_is_forgotten_warns_and_publishes_nothing(self, tmp_path: Path) -> None:
        def forget() -> None:
            rk.create(tmp_path / "a", IDS, workers=2).write({"id": 1})
            gc.collect()

        with pytest.warns(ResourceWarning, match="a writer was never closed; nothing is published"):
            forget()

        assert list(tmp_path.iterdir()) == []

    def test_says_what_it_is(self, tmp_path: Path) -> None:
        writer = rk.create(tmp_path / "a", IDS)
        writer.write({"id": 1})
        before = repr(writer)
        writer.close()

        assert before == f"<Writer of {tmp_path / 'a'}, open, 1 rows>"
        assert repr(writer) == f"<Writer of {tmp_path / 'a'}, closed, 1 rows>"

    @pytest.mark.parametrize(
        ("written", "words"),
        [
            (Written("a", 1, 1, 30, 0), "a: 1 record in 1 file, 30 bytes"),
            (Written("a", 12_000, 16, 4_000_000, 0), "a: 12,000 records in 16 files, 4 MB"),
            (
                Written("a", 0, 1, 1, 1),
                "a: 0 records in 1 file, 1 byte; 1 row skipped, see recordkit.quarantined('a')",
            ),
        ],
    )
    def test_what_was_written_prints_as_a_sentence(self, written: Written, words: str) -> None:
        assert str(written) == words

    @pytest.mark.parametrize("rows", [1, 5])
    def test_another_number_of_rows_than_announced_is_an_error(self, tmp_path: Path, rows: int) -> None:
        with (
            pytest.raises(rk.StorageError, match=rf"expected 3 rows, found {rows}\n"),
            rk.create(tmp_path / "a", IDS, shards=2, rows=3) as writer,
        ):
            writer.write_batch({"id": range(rows)})

        assert not (tmp_path / "a").exists()

    def test_the_hook_is_told_of_rows(self, tmp_path: Path) -> None:
        reports: list[rk.progress.Report] = []

        with rk.progress.reporting(reports.append):
            rk.write(tmp_path / "a", {"id": np.arange(100_000)})

        assert [report.done for report in reports] == sorted(report.done for report in reports)
        assert reports[-1] == rk.progress.Report(f"writing {tmp_path / 'a'}", 100_000, 100_000, "rows")

    def test_compressing_pictures_again_gets_a_hint(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)

        rk.write(tmp_path / "a", {"x": [b"\xff\xd8\xff\xe0" + bytes(100)] * 3}, {"x": "jpeg"}, compression="gzip")

        (hint,) = (record.message for record in caplog.records if "look compressed" in record.message)
        assert hint.endswith("gzip would hardly shrink them and would slow down reading")


@pytest.mark.slow
class TestMemory:
    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    @pytest.mark.parametrize("how", ["rows", "batches", "bad rows"])
    def test_does_not_grow_with_what_is_written(self, tmp_path: Path, compression: str | None, how: str) -> None:
        # The same program with a tenth of the rows says what is needed for anything but more rows.
        few, many = (peak_of(tmp_path / str(size), size, compression, how) for size in (30, 300))

        assert many < few + 60_000


def peak_of(target: Path, megabytes: int, compression: str | None, how: str) -> int:
    """The largest size in KB of a program that writes so much; noise, as that is what compresses least."""
    program = f"""
        import logging, resource
        import numpy as np
        import recordkit as rk

        logging.disable()
        noise = np.random.default_rng(7).integers(0, 256, (1000, 1000), np.uint8)
        with rk.create({str(target)!r}, {{"id": "int64", "x": "uint8[1000]"}}, shard_size="20MB", level=1,
                       compression={compression!r}, on_error="skip", sync=False) as writer:
            for megabyte in range({megabytes} if {how!r} != "bad rows" else {megabytes} // 10):
                if {how!r} == "rows":
                    for number in range(1000):
                        writer.write({{"id": number, "x": noise[number]}})
                elif {how!r} == "batches":
                    writer.write_batch({{"id": np.arange(1000), "x": noise}})
                else:
                    for number in range(1000):
                        writer.write({{"id": number, "x": noise[number][:-1]}})
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)
