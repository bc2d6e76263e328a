from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from .conftest import Done


class TestDemo:
    def test_tells_the_whole_story_and_keeps_what_it_made(self, run: Callable[..., Done], tmp_path: Path) -> None:
        done = run("demo", str(tmp_path / "demo"), "--pictures", "600")

        assert (done.status, done.err) == (0, "")
        for line in (
            "kill -9 behind picture 350. Is there half a dataset under the name train? no\n",
            "  6 files, 600 sound records",
            "Are the rescued files sound? yes\n",
            "Are the files as they were? yes\n",
            "Was every record seen once? yes\n",
            "  damage found and repaired              198 of 200 records rescued",
        ):
            assert line in done.out
        assert re.search(r"goes on behind picture [123]00,", done.out)
        assert rk.verify(tmp_path / "demo" / "train").ok
        assert rk.open(tmp_path / "demo" / "baked")[7]["pixels"] == rk.open(tmp_path / "demo" / "train")[7]["pixels"]
        assert "\x1b" not in done.out

    def test_without_a_jpeg_library_keeps_pixels(
        self, run: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "simplejpeg", None)  # as if it were not installed, here and in the child
        monkeypatch.setenv("PYTHONPATH", str(_without_simplejpeg(tmp_path)))

        done = run("demo", str(tmp_path / "demo"), "--pictures", "600")

        assert (done.status, done.err) == (0, "")
        assert "pip install 'recordkit[images]'" in done.out
        assert "Was every record seen once? yes" in done.out

    def test_a_second_one_takes_the_place_of_the_first(self, run: Callable[..., Done], tmp_path: Path) -> None:
        (tmp_path / "demo").mkdir()
        (tmp_path / "demo" / "made-by-recordkit-demo").write_text("")
        (tmp_path / "demo" / "old").write_text("")

        done = run("demo", str(tmp_path / "demo"), "--pictures", "600")

        assert done.status == 0
        assert not (tmp_path / "demo" / "old").exists()

    def test_a_folder_of_someone_else_is_left_alone(self, run: Callable[..., Done], tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("")

        done = run("demo", str(tmp_path))

        assert (done.status, done.out) == (2, "")
        assert done.err.endswith("is there, and not from an earlier demo\n  Name a folder that is new or empty.\n")
        assert (tmp_path / "mine").exists()


def _without_simplejpeg(folder: Path) -> Path:
    place = folder / "modules"
    place.mkdir()
    (place / "simplejpeg.py").write_text("raise ImportError\n")
    return place
