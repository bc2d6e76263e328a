from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit.storage.format import _names

if TYPE_CHECKING:
    from pathlib import Path

LONE = ["a.tfrecord", "a.tfrecords", "a.tfrec", "a.tfr", "a.record", "a.TFRecord", "a.tfrecord.gz", "a.tfrecord.zlib"]
LONE += ["train-00000-of-00010.tfrecord", "a-train.tfrecord-00000-of-00010"]
FOLDERS = ["train", "train/", "a.tfrecord/", "data.v2", "tfrecord", "a.gz", "records"]


class TestTargets:
    @pytest.mark.parametrize("name", LONE)
    def test_a_name_that_ends_like_a_file_is_one(self, name: str) -> None:
        assert _names.is_lone_file(name)

    @pytest.mark.parametrize("name", FOLDERS)
    def test_any_other_name_is_a_folder(self, name: str) -> None:
        assert not _names.is_lone_file(name)

    def test_what_is_there_decides_over_the_name(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").mkdir()
        (tmp_path / "data").touch()

        assert not _names.is_lone_file(tmp_path / "a.tfrecord")
        assert _names.is_lone_file(tmp_path / "data")

    def test_a_target_is_a_full_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

        assert _names.target_of("x/../train/") == (tmp_path / "train", False)

    def test_all_that_is_ours_is_hidden_from_usual_globs(self, tmp_path: Path) -> None:
        target = tmp_path / "train"

        assert _names.staging_of(target).name == ".train.recordkit"
        assert _names.manifest_of(target, lone=False) == target / "_recordkit/manifest.json"
        assert (
            _names.manifest_of(tmp_path / "a.tfrecord", lone=True) == tmp_path / "_recordkit/a.tfrecord.manifest.json"
        )


class TestShards:
    @given(st.integers(0, 10**6), st.integers(0, 10**6))
    def test_names_of_a_set_sort_by_number(self, one: int, other: int) -> None:
        if len(f"{one:05d}") != len(f"{other:05d}"):
            return

        names = [_names.shard_name("a", number, 10**6, ".tfrecord") for number in (one, other)]

        assert (names[0] < names[1]) == (one < other)

    @given(st.sets(st.integers(1, 9)))
    def test_an_appended_set_gets_the_first_free_number(self, numbers: set[int]) -> None:
        name = _names.appended_name("a", {"a", *(f"a-append{number}" for number in numbers)})

        assert name == f"a-append{min(set(range(1, 11)) - numbers)}"
