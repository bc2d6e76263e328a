"""What is shown under which number, of sound files and of damaged ones."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk
from recordkit.errors import StorageError
from recordkit.viewer._dataset_view import DatasetView, Failed, NotCountedError
from recordkit.viewer._overview import overview
from tests.viewer import datasets

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("id", "square", "name")


def opened(where: Any) -> DatasetView:
    source = DatasetView(where)
    source.prepare(lambda done, total, unit: None)
    return source


def ids(source: DatasetView, numbers: list[int]) -> list[int | None]:
    return [None if row.values is None else int(row.values["id"]) for row in source.rows(numbers, ["id"])]


def scanned(source: DatasetView, first: int = 0) -> list[tuple[int, int]]:
    pairs = []
    for batch, numbers, _ in source.batches(first, ["id"]):
        if len(batch):
            pairs += list(zip(numbers.tolist(), batch["id"].tolist(), strict=True))
    return pairs


class TestSoundFiles:
    @pytest.fixture(params=["plain", "gzip", "gzip of others", "zlib", "shards", "overlay"])
    def source(self, request: pytest.FixtureRequest, tmp_path: Path) -> DatasetView:
        rows = [{"id": i, "square": i * i, "name": f"number {i}"} for i in range(1000)]
        if request.param == "plain":
            return opened(datasets.plain(tmp_path / "a.tfrecord"))
        if request.param == "gzip of others":
            path = datasets.plain(tmp_path / "a.tfrecord")
            path.write_bytes(gzip.compress(path.read_bytes()))
            return opened(path)
        if request.param in ("gzip", "zlib"):
            rk.write(tmp_path / "a.tfrecord", rows, compression=request.param)
            return opened(tmp_path / "a.tfrecord")
        with rk.create(tmp_path / "d", rk.Schema.of_rows(rows), shard_size=9000) as writer:
            for row in rows:
                writer.write(row)
        if request.param == "overlay":
            rk.add_fields(tmp_path / "d", {"twice": rk.Computed("int64", lambda row: row["id"] * 2, reads=["id"])})
        return opened(tmp_path / "d")

    def test_every_record_is_under_its_number(self, source: DatasetView) -> None:
        found = ids(source, list(range(1000)))

        assert source.count == 1000
        assert found == list(range(1000))

    def test_records_come_in_the_order_asked_for_and_others_are_left_out(self, source: DatasetView) -> None:
        assert ids(source, [999, 3, 1000, 500]) == [999, 3, 500]

    def test_going_through_gives_the_same_numbers_from_anywhere(self, source: DatasetView) -> None:
        assert scanned(source) == [(i, i) for i in range(1000)]
        assert scanned(source, 707) == [(i, i) for i in range(707, 1000)]

    def test_sample_is_spread_and_as_large_as_asked(self, source: DatasetView) -> None:
        taken = [number for batch in source.sampled(128, ["id"]) for number in batch["id"].tolist()]

        assert len(taken) == len(set(taken)) == 128
        assert min(taken) == 0
        assert max(taken) == 999


class TestLayers:
    def test_added_fields_and_deleted_records_are_seen_as_they_are(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": i} for i in range(100)])
        rk.add_fields(tmp_path / "a.tfrecord", {"twice": rk.Computed("int64", lambda row: row["id"] * 2, reads=["id"])})
        rk.delete(tmp_path / "a.tfrecord", where="id < 10 or id == 50")

        source = opened(tmp_path / "a.tfrecord")

        assert source.count == 89
        assert ids(source, [0, 40, 88]) == [10, 51, 99]
        assert source.rows([0], ["twice"])[0].values == {"twice": 20}
        assert scanned(source, 39) == [(n, n + 10 if n < 40 else n + 11) for n in range(39, 89)]


class TestDamage:
    def test_bad_payload_is_one_record_that_says_why(self, tmp_path: Path) -> None:
        source = opened(datasets.damaged(tmp_path / "a.tfrecord", lengths=False))

        rows = source.rows([49, 50, 51], NAMES)

        assert source.count == 1000
        assert [row.values is None for row in rows] == [False, True, False]
        assert "the payload's checksum does not match" in str(rows[1].error)
        assert [damage.record for damage in source.shards[0].damage.values()] == [50]

    def test_scan_keeps_numbers_behind_a_bad_payload(self, tmp_path: Path) -> None:
        source = opened(datasets.damaged(tmp_path / "a.tfrecord", lengths=False))

        assert scanned(source) == [(i, i) for i in range(1000) if i != 50]

    def test_broken_framing_keeps_numbers_up_to_what_no_header_frames(self, tmp_path: Path) -> None:
        source = opened(datasets.damaged(tmp_path / "a.tfrecord"))
        numbered = [None if i == 50 else i for i in range(1000) if i != 300]

        assert source.count == 999
        assert ids(source, list(range(999))) == numbered
        assert ids(source, [998, 0, 400]) == [999, 0, 401]
        assert scanned(source, 298) == list(enumerate(numbered))[298:]
        assert len(source.shards[0].damage) == 2

    @pytest.mark.parametrize("lengths", [True, False])
    def test_every_damage_leads_to_the_record_it_names(self, lengths: bool, tmp_path: Path) -> None:
        datasets.plain(tmp_path / "a-00000-of-00002.tfrecord")
        datasets.damaged(tmp_path / "a-00001-of-00002.tfrecord", lengths=lengths)
        source = opened(tmp_path)
        assert scanned(source)

        told = overview(source)["damage"]

        assert [each["at"] for each in told] == [1050, 1300] if lengths else [1050]
        assert ids(source, [1049, 1050, 1051]) == [49, None, 51]
        assert told[0]["words"] in str(source.rows([1050], ["id"])[0].error)

    def test_torn_gzip_shows_what_comes_out_of_it(self, tmp_path: Path) -> None:
        path = datasets.plain(tmp_path / "a.tfrecord")
        path.write_bytes(gzip.compress(path.read_bytes())[:-3000])

        source = opened(path)

        assert source.count is not None
        assert 0 < source.count < 1000
        assert ids(source, [0, source.count - 1]) == [0, source.count - 1]
        assert source.shards[0].damage

    def test_damaged_shard_among_others_shifts_only_those_behind_it(self, tmp_path: Path) -> None:
        for at in range(3):
            datasets.plain(tmp_path / f"a-{at:05}-of-00003.tfrecord")
        datasets.damaged(tmp_path / "a-00001-of-00003.tfrecord")

        source = opened(tmp_path)

        assert source.ends == [1000, 1999, 2999]
        assert ids(source, [999, 1000, 1998, 1999, 2998]) == [999, 0, 999, 0, 999]

    def test_record_with_another_kind_of_field_shows_the_rest(self, tmp_path: Path) -> None:
        good = rk.Schema({"id": "int64", "x": "int64"}).encode_rows([{"id": i, "x": i} for i in range(200_000)])
        odd = rk.Schema({"id": "int64", "x": "string"}).encode_rows([{"id": -1, "x": "text"}])
        path = tmp_path / "a.tfrecord"
        path.write_bytes(bytes(memoryview(good)) + bytes(memoryview(odd)))

        source = opened(path)
        row = source.rows([200_000], ["id", "x"])[0]

        assert row.values is not None
        assert row.values["id"] == -1
        assert isinstance(row.values["x"], Failed)
        assert len(scanned(source)) == 200_001

    def test_file_that_is_gone_has_no_records_and_a_reason(self, tmp_path: Path) -> None:
        for at in range(2):
            datasets.plain(tmp_path / f"a-{at:05}-of-00002.tfrecord")
        source = DatasetView(tmp_path)
        (tmp_path / "a-00001-of-00002.tfrecord").unlink()

        source.prepare(lambda done, total, unit: None)

        assert source.ends == [1000, 1000]
        assert [damage.kind for damage in source.shards[1].damage.values()] == ["unreadable"]


class TestBeforeCounting:
    def test_first_records_are_shown_at_once(self, tmp_path: Path) -> None:
        source = DatasetView(datasets.plain(tmp_path / "a.tfrecord"))

        assert source.count is None
        assert ids(source, [5, 0]) == [5, 0]

    def test_far_ones_have_to_wait(self, tmp_path: Path) -> None:
        source = DatasetView(datasets.plain(tmp_path / "a.tfrecord", records=5000))

        with pytest.raises(NotCountedError):
            source.rows([4999], ["id"])


class TestOtherPayloads:
    def test_payloads_that_are_no_examples_are_shown_as_bytes(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        path.write_bytes(bytes(memoryview(rk.records.pack_many([b"\xffone", b"two"]))))

        source = opened(path)

        assert source.schema is None
        assert [row.values for row in source.rows([0, 1], ["payload"])] == [
            {"payload": b"\xffone"},
            {"payload": b"two"},
        ]

    def test_pipe_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(StorageError, match="a pipe cannot be viewed"):
            DatasetView("-")

    def test_empty_file_has_no_records(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(b"")

        source = opened(tmp_path / "a.tfrecord")

        assert source.count == 0
        assert source.rows([0], ["id"]) == []
        assert list(source.sampled(10, [])) == []


def test_a_sample_of_few_records_is_all_of_them(tmp_path: Path) -> None:
    source = opened(datasets.plain(tmp_path / "a.tfrecord", records=50))

    taken = np.concatenate([batch["id"] for batch in source.sampled(4096, ["id"])])

    assert taken.tolist() == list(range(50))
