"""bench, doctor, completion, and what the shell is told when Tab is pressed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import recordkit as rk
from recordkit import _core
from recordkit.cli._commands import SUMMARIES
from recordkit.cli.commands import completion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Done


class TestBench:
    def test_measures_six_ways(self, run: Callable[..., Done], train: str) -> None:
        done = run("bench", train, "--seconds", "0.01", "--workers", "1")
        found = json.loads(run("bench", train, "--seconds", "0.01", "--fields", "id", "--json").out)

        ways = ["the disk, raw", "memory, raw", "checksum alone", "records, checked, 1 thread", "columns, 1 thread"]
        assert (done.status, done.err) == (0, "")
        assert [line[:26].rstrip() for line in done.out.splitlines()] == ["way", *ways, "any record, one by one"]
        assert len(found["measured"]) == 6
        assert all(one["bytes_per_second"] or one["records_per_second"] for one in found["measured"])

    def test_of_payloads_leaves_columns_out(self, run: Callable[..., Done], tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(rk.records.pack(b"one") * 9)

        done = run("bench", "a.tfrecord", "--seconds", "0.01")

        assert done.status == 0
        assert "columns" not in done.out

    def test_pipe_cannot_be_measured(self, run: Callable[..., Done]) -> None:
        done = run("bench", "-")

        assert (done.status, done.out) == (2, "")
        assert done.err == "error: -: a pipe cannot be measured: it can be read only once\n  Pass a file or a folder.\n"


class TestDoctor:
    def test_says_what_is_used(self, run: Callable[..., Done]) -> None:
        done = run("doctor")

        slow = _core.crc32c_path() == "portable"
        assert done.status == int(slow)
        assert done.out.startswith(f"recordkit   {rk.__version__} in ")
        assert f"\nchecksums   {_core.crc32c_path()}" in done.out
        assert "\nnumpy       " in done.out

    def test_json_has_the_versions(self, run: Callable[..., Done]) -> None:
        found = json.loads(run("doctor", "--json").out)

        assert found["packages"]["numpy"] == __import__("numpy").__version__
        assert set(found["packages"]) >= {"isal", "simplejpeg", "torch"}

    def test_slow_checksums_and_a_cache_that_is_no_folder_are_problems(
        self, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        before = _core.crc32c_path()
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        _core.crc32c_use_path("portable")
        try:
            done = run("doctor", "--json")
        finally:
            _core.crc32c_use_path(before)

        assert done.status == 1
        first, second = json.loads(done.out)["problems"]
        assert first.startswith("checksums use the portable path")
        assert second.startswith(f"{tmp_path / 'file'} is not writable")


class TestCompletion:
    @pytest.mark.parametrize(
        ("words", "found"),
        [
            ([""], sorted(SUMMARIES)),
            (["ver"], ["verify"]),
            (["schema", "a", "--as", ""], ["json", "python", "table", "tf"]),
            (["verify", "--ch"], ["--check"]),
            (["completion", "f"], ["fish"]),
            (["count", "a", "--json", "--sp"], ["--split"]),
            (["schema", "a", "--json", "x"], []),
            (["count", "tra"], []),
            (["nothing", ""], []),
        ],
    )
    def test_words_that_may_follow(self, words: list[str], found: list[str]) -> None:
        assert completion.candidates(words) == found

    def test_fields_of_the_dataset_are_offered(self, train: str, in_folder: None) -> None:
        assert completion.candidates(["cat", train, "--fields", ""])[:2] == ["caption", "depth"]
        assert completion.candidates(["cat", train, "--fields", "id,la"]) == ["id,label"]
        assert completion.candidates(["drop", train, "im"]) == ["image"]
        assert completion.candidates(["drop", train, "id", "im"]) == ["image"]
        assert completion.candidates(["add", train, "x", "--join", "t.csv", "--on", "i"]) == ["id", "image"]
        assert completion.candidates(["drop", "nothing", "im"]) == []

    def test_fields_that_would_steer_the_terminal_are_not(self, in_folder: None) -> None:
        rk.write("data", [{"plain": 1, "\x1b[31mred": 2}])

        assert completion.candidates(["drop", "data", ""]) == ["plain"]
