"""On a terminal a command says what it says in a pipe; only colours, and progress that is wiped away, come on top."""

from __future__ import annotations

import re
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Done

WIDE = 300
PROGRESS = re.compile(r"[^\n]*\r(\x1b\[K)?|\x1b\[\??\d*[A-Za-z]")
COMMANDS: dict[str, tuple[Any, ...]] = {
    "info": ("data",),
    "head": ("data",),
    "cat": ("data",),
    "count": ("data",),
    "schema": ("data",),
    "stats": ("data",),
    "diff": ("data", "other"),
    "verify": ("data",),
    "repair": ("lone.tfrecord", "-o", "new.tfrecord"),
    "drop": ("data", "b", "--out", "new"),
    "rename": ("data", "b=c", "--out", "new"),
    "delete": ("data", "--where", "a == 3"),
    "filter": ("data", "--where", "a < 3", "--out", "new"),
    "bake": ("data", "--out", "new"),
    "index": ("data",),
    "append": ("data", "other"),
    "add": ("data", "c=values.npy"),
}


def made(folder: Path) -> None:
    for name, count in (("data", 6), ("other", 5)):
        rk.write(folder / name, {"a": np.arange(count), "b": np.arange(count) * 0.5})
    rk.write(folder / "lone.tfrecord", {"a": np.arange(4)})
    np.save(folder / "values.npy", np.arange(6))


def seen(text: str) -> str:
    return re.sub(r"\d+\.\d+ s\b|[\d,]+ (records|rows)/s", "T", PROGRESS.sub("", text)).strip()


@pytest.mark.parametrize("name", COMMANDS)
def test_terminal_and_pipe_say_the_same(
    name: str, run: Callable[..., Done], on_terminal: Callable[..., Done], tmp_path: Path
) -> None:
    found = []
    for way in (run, partial(on_terminal, width=WIDE)):
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        made(tmp_path)
        found.append(way(name, *COMMANDS[name]))

    piped, shown = found
    assert shown.status == piped.status == (1 if name == "diff" else 0)
    assert seen(shown.bare) == seen(piped.out + piped.err)
    assert piped.out + piped.err
    assert "\x1b" not in piped.out + piped.err
