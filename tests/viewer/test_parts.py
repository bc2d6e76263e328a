"""The smaller parts: media, boxes, layout, jobs."""

from __future__ import annotations

import io
import threading
import wave
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit import images, records
from recordkit.columns import BytesColumn
from recordkit.viewer import _media
from recordkit.viewer._boxes import boxes_in
from recordkit.viewer._dataset_view import DatasetView
from recordkit.viewer._jobs import Job, Jobs
from recordkit.viewer._tasks import Statistics, Verifying
from recordkit.viewer._wire_layout import layout
from tests.viewer import datasets

if TYPE_CHECKING:
    from pathlib import Path

    from recordkit.viewer._jobs import Tell


class TestMedia:
    def test_large_picture_is_made_small(self) -> None:
        noise = np.random.default_rng(0).integers(0, 256, (900, 700, 3), np.uint8)

        made = _media.small_picture(images.encode(noise, "png"))

        assert made is not None
        assert (images.size(made[0]), made[1]) == ((300, 233, 3), "image/jpeg")

    @pytest.mark.parametrize("channels", [(), (1,), (2,), (4,)])
    def test_grey_and_transparent_ones_too(self, channels: tuple[int, ...]) -> None:
        noise = np.random.default_rng(0).integers(0, 256, (800, 900, *channels), np.uint8)

        made = _media.small_picture(images.encode(noise, "png"))

        assert made is not None
        assert images.size(made[0])[:2] == (267, 300)

    def test_huge_picture_is_not_decoded(self) -> None:
        header = images.encode(np.zeros((8, 8, 3), np.uint8), "jpeg").replace(
            b"\x00\x08\x00\x08", b"\xff\x00\xff\x00", 1
        )

        assert _media.small_picture(header + bytes(_media.SMALL_PICTURE)) is None

    def test_sound_is_what_the_array_was(self) -> None:
        samples = np.array([0, 1000, -1000, 32767], np.int64)

        with wave.open(io.BytesIO(_media.wav(samples, 8000))) as sound:
            heard = np.frombuffer(sound.readframes(4), "<i2")

        assert heard.tolist() == samples.tolist()

    def test_rate_is_told_by_a_field(self) -> None:
        assert _media.rate_of({"audio": b"", "audio/sample_rate": np.int64(44100)}) == 44100
        assert _media.rate_of({"sample_rate": None}) == 16_000


class TestBoxes:
    def test_sides_apart_are_one_box(self) -> None:
        stem = "image/object/bbox/"
        sides = {f"{stem}{side}": "float32[?]" for side in ("xmin", "xmax", "ymin", "ymax")}
        schema = rk.Schema({"image/encoded": "jpeg", **sides, "image/object/class/text": "string[?]"})

        (boxes,) = boxes_in(schema, ["image/encoded"])
        values: dict[str, Any] = {
            f"{stem}xmin": [0.1],
            f"{stem}xmax": [0.5],
            f"{stem}ymin": [0.2],
            f"{stem}ymax": [0.9],
        }
        found = boxes.of(
            {k: np.array(v, np.float32) for k, v in values.items()}
            | {"image/object/class/text": BytesColumn.of(["cat"])}
        )

        assert found == {"order": "yxyx", "boxes": [[0.2, 0.1, 0.9, 0.5]], "labels": ["cat"], "count": 1}

    @pytest.mark.parametrize(
        ("box", "order"), [([0.1, 0.2, 0.5, 0.6], "yxyx"), ([10, 20, 50, 60], "xyxy"), ([100, 50, 20, 10], "xywh")]
    )
    def test_numbers_tell_what_they_mean(self, box: list[float], order: str) -> None:
        (boxes,) = boxes_in(rk.Schema({"image": "png", "bbox": "float32[4]"}), ["image"])

        found = boxes.of({"bbox": np.array(box, np.float32)})

        assert found is not None
        assert found["order"] == order

    @pytest.mark.parametrize("value", [None, np.zeros((0, 4), np.float32), np.full((1, 4), np.nan), np.zeros(3)])
    def test_what_is_no_box_is_not_drawn(self, value: Any) -> None:
        (boxes,) = boxes_in(rk.Schema({"image": "png", "bbox": "float32[?,4]"}), ["image"])

        assert boxes.of({"bbox": value}) is None

    def test_text_named_box_is_none(self) -> None:
        assert boxes_in(rk.Schema({"image": "png", "box": "string[4]"}), ["image"]) == ()


class TestLayout:
    @given(st.dictionaries(st.text(min_size=1, max_size=9), st.lists(st.integers(-9, 9), max_size=4), max_size=9))
    def test_parts_are_the_payload_in_order(self, row: dict[str, list[int]]) -> None:
        schema = rk.Schema({f"f{name}".replace("/", "_"): "int64[?]" for name in row})
        packed = schema.encode_rows([dict(zip(schema.names, row.values(), strict=True))])

        features = layout(packed)["features"]

        assert [each["name"] for each in features] == list(schema.names)
        assert [each["byte"] + each["bytes"] for each in features[:-1]] == [each["byte"] for each in features[1:]]
        assert not features or features[-1]["byte"] + features[-1]["bytes"] == len(packed[0])
        for each in features:
            assert each["name"].encode() in packed[0][each["byte"] : each["byte"] + each["bytes"]]

    def test_repeated_names_are_each_a_part_and_noted(self) -> None:
        twice = bytes.fromhex("0a0c0a0a0a017812051a030a0101") * 2

        found = layout(records.pack_many([twice]))

        assert [each["byte"] for each in found["features"]] == [2, 16]
        assert "'x' has several entries" in found["notes"][0]

    def test_sequences_tell_their_steps(self) -> None:
        schema = rk.Schema({"id": "int64"}, sequences={"s": "int64"})

        found = layout(schema.encode_rows([{"id": 1, "s": [1, 2, 3]}]))

        assert found["message"] == "SequenceExample"
        assert found["features"][1]["steps"] == 3

    def test_payload_that_is_none_says_why(self) -> None:
        found = layout(records.pack_many([b"\xff\xff"]))

        assert found["message"] == "other"
        assert "not a well-formed Example" in found["problem"]


class _Steps:
    """Work of ten steps, each of which waits to be let go."""

    def __init__(self) -> None:
        self.at = 0
        self.go = threading.Semaphore(0)

    def run(self, tell: Tell) -> None:
        while self.at < 10:
            assert self.go.acquire(timeout=10)
            self.at += 1
            tell(self.at, 10, "steps")

    def result(self) -> dict[str, Any]:
        return {"at": self.at}


class TestJobs:
    def test_stopped_job_can_be_gone_on_with(self) -> None:
        work = _Steps()
        job = Job("scan", work, None)
        job.start()
        work.go.release()
        job.stop()
        work.go.release(9)
        job.wait(10)
        stopped = job.report()

        job.more()
        work.go.release(9)
        job.wait(10)

        assert stopped["state"] == "stopped"
        assert stopped["at"] < 10
        assert (job.report()["state"], job.report()["at"]) == ("done", 10)

    def test_job_pauses_when_its_budget_is_used_up(self) -> None:
        work = _Steps()
        work.go.release(10)
        job = Job("scan", work, -1.0)
        job.start()
        job.wait(10)

        assert (job.report()["state"], job.report()["at"]) == ("paused", 1)

    def test_new_job_ends_those_of_its_kind(self) -> None:
        jobs, first, second = Jobs(), _Steps(), _Steps()
        one = jobs.start("scan", first)
        two = jobs.start("scan", second)
        first.go.release(10)
        second.go.release(10)
        for name in (one, two):
            jobs[name].wait(10)

        assert (jobs[one].report()["state"], jobs[two].report()["state"]) == ("stopped", "done")

    def test_failure_is_told_in_words(self) -> None:
        class Failing(_Steps):
            def run(self, tell: Tell) -> None:
                message = "no such thing"
                raise ValueError(message)

        job = Job("scan", Failing(), None)
        job.start()
        job.wait(10)

        assert (job.report()["state"], job.report()["words"]) == ("failed", "no such thing")


class TestWorks:
    def test_statistics_are_those_of_the_tool(self, tmp_path: Path) -> None:
        path = datasets.plain(tmp_path / "a.tfrecord")
        source = DatasetView(path)
        source.prepare(lambda done, total, unit: None)
        work = Statistics(source, ["square", "name"], whole=True)

        work.run(lambda done, total, unit: None)

        expected = rk.stats(path, fields=["square", "name"]).to_dict()["fields"]
        assert work.result()["fields"] == expected

    def test_sample_of_few_records_is_exact(self, tmp_path: Path) -> None:
        path = datasets.plain(tmp_path / "a.tfrecord")
        source = DatasetView(path)
        source.prepare(lambda done, total, unit: None)
        work = Statistics(source, ["square"], whole=False)

        work.run(lambda done, total, unit: None)

        assert (work.result()["rows"], work.result()["fields"]["square"]["max"]) == (1000, 999**2)

    def test_verifying_tells_the_files_what_is_wrong_with_them(self, tmp_path: Path) -> None:
        source = DatasetView(datasets.damaged(tmp_path / "a.tfrecord", lengths=False))
        work = Verifying(source)

        work.run(lambda done, total, unit: None)

        assert work.result()["ok"] is False
        assert [damage.record for damage in source.shards[0].damage.values()] == [50]
