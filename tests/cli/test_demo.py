from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from .conftest import Done


class TestDemo:
    def test_without_a_jpeg_library_keeps_pixels(
        self, run: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "simplejpeg", None)  # as if it were not installed, here and in the child
        monkeypatch.setenv("PYTHONPATH", str(_without_simplejpeg(tmp_path)))

        done = run("demo", str(tmp_path / "demo"), "--pictures", "600")

        assert (done.status, done.err) == (0, "")
        assert "pip install 'recordkit[images]'" in done.out
        assert "Was every record seen exactly once? yes" in done.out

    def test_keeps_what_it_made_in_the_place_of_an_earlier_one(self, run: Callable[..., Done], tmp_path: Path) -> None:
        (tmp_path / "demo").mkdir()
        (tmp_path / "demo" / "made-by-recordkit-demo").write_text("")
        (tmp_path / "demo" / "old").write_text("")

        done = run("demo", str(tmp_path / "demo"), "--pictures", "600")

        assert done.status == 0
        assert not (tmp_path / "demo" / "old").exists()
        assert rk.verify(tmp_path / "demo" / "train").ok
        assert rk.open(tmp_path / "demo" / "baked")[7]["pixels"] == rk.open(tmp_path / "demo" / "train")[7]["pixels"]

    def test_ctrl_c_ends_both_programs_without_a_word_of_theirs(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "recordkit", "demo", "d", "--pictures", "100000"]
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group of its own, as a shell makes one
        ) as process:
            while not (tmp_path / "d" / ".train.recordkit").exists():  # which the other one makes
                assert process.poll() is None
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=60)

        assert (process.returncode, err) == (130, "interrupted; nothing is half-written\n")

    def test_a_folder_of_someone_else_is_left_alone(self, run: Callable[..., Done], tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("")

        done = run("demo", str(tmp_path))

        assert (done.status, done.out) == (2, "")
        assert done.err.endswith("already exists, and is not from an earlier demo\n  Choose a new or empty folder.\n")
        assert (tmp_path / "mine").exists()


def _without_simplejpeg(folder: Path) -> Path:
    place = folder / "modules"
    place.mkdir()
    (place / "simplejpeg.py").write_text("raise ImportError\n")
    return place
