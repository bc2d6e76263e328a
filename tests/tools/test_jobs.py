"""Jobs: runs that break off, and the ones that go on with what they left."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit.errors import CorruptRecordError, RecordKitError, SchemaError, StorageError
from recordkit.storage.write import _commit
from tests.dataset.bases import build, listing, raw, read
from tests.dataset.files import flip, offset_of, payloads, save


class Counting:
    """A function of a row that notes what it was called with, and fails at some."""

    def __init__(self, *bad: int) -> None:
        self.bad = bad
        self.calls: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, row: dict[str, Any]) -> int:
        number = int(row["id"])
        with self._lock:
            self.calls[number] += 1
        if number in self.bad:
            message = "not yet"
            raise ValueError(message)
        return number * 10

    @property
    def field(self) -> dict[str, Any]:
        return {"x": rk.Computed("int64", self, reads=["id"])}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return build(tmp_path, "folder", [3, 3, 3])


class TestARunThatBrokeOff:
    @pytest.mark.parametrize("way", ["beside", "baked"])
    def test_goes_on_without_computing_finished_files_again(self, path: Path, tmp_path: Path, way: str) -> None:
        out = tmp_path / "out" if way == "baked" else None
        with pytest.raises(SchemaError, match="not yet"):
            rk.add_fields(path, Counting(7).field, out=out, workers=1)
        assert read(path) == read(path, overlays=False)
        assert out is None or not out.exists()

        mended = Counting()
        rk.add_fields(path, mended.field, out=out, workers=1)
        rk.add_fields(path, Counting().field, out=tmp_path / "at once", replace=True)

        assert sorted(mended.calls) == [6, 7, 8]
        assert [row["x"] for row in read(out or path)] == [10 * number for number in range(9)]
        if out is not None:
            assert raw(out) == raw(tmp_path / "at once")

    @settings(max_examples=15)
    @given(
        st.sets(st.integers(0, 11), min_size=1, max_size=3),
        st.sampled_from([None, "gzip"]),
        st.integers(1, 3),
        st.booleans(),
    )
    def test_gives_what_one_that_did_not_gives(
        self, bad: set[int], compression: Any, workers: int, beside: bool
    ) -> None:
        with TemporaryDirectory() as folder:
            root = Path(folder)
            path = build(root, "splits", [4, 0, 5, 3], compression)
            out = None if beside else root / "out"
            with pytest.raises(SchemaError, match="not yet"):
                rk.add_fields(path, Counting(*bad).field, out=out, workers=workers, sync=False)

            rk.add_fields(path, Counting().field, out=out, workers=workers, sync=False)

            assert read(out or path) == [{**row, "x": 10 * row["id"]} for row in read(path, overlays=False)]
            assert [entry.name for entry in root.iterdir() if entry.name.startswith(".")] == []

    def test_leaves_the_dataset_as_it_was(self, path: Path) -> None:
        before = listing(path)
        with pytest.raises(SchemaError, match="not yet"):
            rk.add_fields(path, Counting(7).field, workers=1)

        kept = {name: data for name, data in listing(path).items() if not name.startswith("_recordkit/overlays/.")}
        assert kept == before
        assert read(path) == read(path, overlays=False)
        rk.add_fields(path, {"y": np.arange(9)})
        assert [row["y"] for row in read(path)] == list(range(9))

    def test_keeps_little_for_each_file_however_many_there_are(self, tmp_path: Path) -> None:
        kept = []
        for files in (2, 12, 22):
            path = build(tmp_path / str(files), "folder", [1] * files)
            with pytest.raises(SchemaError, match="not yet"):
                rk.add_fields(path, Counting(files - 1).field, workers=1)
            facts = [file.stat() for file in path.glob("_recordkit/overlays/.*/part-*/**/*") if file.is_file()]
            kept.append((len(facts), sum(fact.st_size for fact in facts)))

        (few, small), (more, medium), (most, large) = kept
        assert most - more == more - few == 10 * len(["records", "index", "what is known of it"])
        assert large - medium == pytest.approx(medium - small, rel=0.1)

    def test_starts_again_where_that_is_asked_for(self, path: Path) -> None:
        with pytest.raises(SchemaError, match="not yet"):
            rk.add_fields(path, Counting(7).field, workers=1)

        again = Counting()
        rk.add_fields(path, again.field, workers=1, resume=False)

        assert sorted(again.calls) == list(range(9))
        assert [row["x"] for row in read(path)] == [10 * number for number in range(9)]

    def test_is_not_gone_on_with_for_another_type(self, path: Path, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match="not yet"):
            rk.add_fields(path, Counting(7).field, out=tmp_path / "out", workers=1)

        with pytest.raises(RecordKitError, match=r"the interrupted run has another schema\n  x: .*\n  .*discard"):
            rk.add_fields(path, {"x": np.arange(9.0)}, out=tmp_path / "out", workers=1)
        rk.discard(tmp_path / "out")
        rk.add_fields(path, {"x": np.arange(9.0)}, out=tmp_path / "out", workers=1)

        assert [row["x"] for row in read(tmp_path / "out")] == list(range(9))

    @pytest.mark.parametrize("way", ["beside", "baked"])
    def test_is_not_mixed_with_a_base_that_has_changed(self, tmp_path: Path, way: str) -> None:
        path, out = build(tmp_path, "foreign", [3, 3, 3]), tmp_path / "out" if way == "baked" else None
        with pytest.raises(SchemaError, match="not yet"):
            rk.add_fields(path, Counting(7).field, out=out, workers=1)
        save(path / "data-000.tfrecord", payloads(20, 23))

        try:
            rk.add_fields(path, Counting().field, out=out, workers=1)
        except RecordKitError:  # to refuse is as good as to start again
            assert out is None or not out.exists()
            rk.add_fields(path, Counting().field, out=out, workers=1, resume=False)

        assert [(row["id"], row["x"]) for row in read(out or path)] == [
            (number, 10 * number) for number in (20, 21, 22, 3, 4, 5, 6, 7, 8)
        ]

    def test_is_not_mixed_with_another_filter(self, path: Path, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match="not yet"):
            rk.filter(path, lambda row: Counting(7)(row) >= 0, out=tmp_path / "out", workers=1)

        with pytest.raises(StorageError, match=r"out: the interrupted run was another one, .*\n  .*resume=False"):
            rk.filter(path, "id == 1 or id == 8", out=tmp_path / "out", workers=1)
        rk.filter(path, "id == 1 or id == 8", out=tmp_path / "out", workers=1, resume=False)

        assert [row["id"] for row in read(tmp_path / "out")] == [1, 8]

    def test_of_one_function_is_gone_on_with_by_another_of_its_name(self, path: Path, tmp_path: Path) -> None:
        def keeps(counting: Counting) -> Any:
            return lambda row: counting(row) != 10

        with pytest.raises(SchemaError, match="not yet"):
            rk.filter(path, keeps(Counting(7)), out=tmp_path / "out", workers=1)
        mended, elsewhere = Counting(), [keeps(Counting()) for _ in range(3)]

        rk.filter(path, keeps(mended), out=tmp_path / "out", workers=1)

        assert sorted(mended.calls) == [6, 7, 8]
        assert len(elsewhere) == 3
        assert [row["id"] for row in read(tmp_path / "out")] == [0, 2, 3, 4, 5, 6, 7, 8]

    def test_is_not_mixed_with_layers_that_came_later(self, tmp_path: Path) -> None:
        path = build(tmp_path, "foreign", [3, 3, 3])
        last = path / "data-002.tfrecord"
        sound, facts = last.read_bytes(), last.stat()
        flip(last, offset_of(last, 1) + 14)
        with pytest.raises(CorruptRecordError):
            rk.bake(path, tmp_path / "out", workers=1)
        last.write_bytes(sound)
        os.utime(last, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        rk.delete(path, where="id == 1")

        with pytest.raises(StorageError, match=r"out: the interrupted run was another one, .*\n  .*resume=False"):
            rk.bake(path, tmp_path / "out", workers=1)
        rk.bake(path, tmp_path / "out", workers=1, resume=False)

        assert [row["id"] for row in read(tmp_path / "out")] == [0, 2, 3, 4, 5, 6, 7, 8]

    @pytest.mark.parametrize("shape", ["lone", "folder"])
    def test_just_before_its_end_is_published_by_the_next(
        self, tmp_path: Path, shape: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = build(tmp_path / "base", shape, [4, 3])
        out = tmp_path / ("out.tfrecord" if shape == "lone" else "out")

        def fails(*args: Any, **options: Any) -> None:
            raise OSError("no more")

        with monkeypatch.context() as patch:
            patch.setattr(_commit, "publish", fails)
            with pytest.raises(OSError, match="no more"):
                rk.add_fields(path, Counting().field, out=out)
        again = Counting()
        rk.add_fields(path, again.field, out=out)

        assert [row["x"] for row in read(out)] == [10 * number for number in range(7)]
        assert not again.calls


class TestWorkers:
    @pytest.mark.parametrize("workers", [1, 2, 5, rk.Threads(3), rk.AUTO])
    def test_any_number_of_them_makes_the_same(self, path: Path, tmp_path: Path, workers: Any) -> None:
        rk.add_fields(path, Counting().field, out=tmp_path / "out", workers=workers)

        assert [row["x"] for row in read(tmp_path / "out")] == [10 * number for number in range(9)]

    def test_the_first_failure_is_told_though_all_fail_at_once(self, path: Path, tmp_path: Path) -> None:
        for attempt in range(10):
            with pytest.raises(SchemaError, match=r"base-0000[0-2]-of-00003.tfrecord: record 0: x: .*not yet"):
                rk.add_fields(path, Counting(*range(9)).field, out=tmp_path / f"{attempt}", workers=3, sync=False)

        assert [entry.name for entry in tmp_path.iterdir() if not entry.name.startswith(".")] == ["base"]
        assert list(tmp_path.glob(".*/part-*")) == []
