"""ARCHITECTURE.md lists the modules that a call runs through. They are traced here, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ARCHITECTURE = Path(__file__).parent.parent / "ARCHITECTURE.md"

TRACE = """
import os, sys, tempfile, threading
import numpy as np
import recordkit as rk

ROOT = os.path.dirname(os.path.abspath(rk.__file__)) + os.sep
seen, tracing = {}, False

def note(frame, event, argument):
    code = frame.f_code
    # Code that is optimized is a function's; the others are the bodies of modules and classes.
    if tracing and event == "call" and code.co_flags & 1 and code.co_filename.startswith(ROOT):
        name = code.co_filename[len(ROOT):-3]
        seen.setdefault("tools/verify/checks" if name.startswith("tools/verify/checks/") else name)

path = os.path.join(tempfile.mkdtemp(), "train")
schema = rk.Schema({"id": "int64", "x": "float32[4]", "name": "string"})
rows = [{"id": number, "x": np.zeros(4, np.float32), "name": "a"} for number in range(200)]
number = 0

def write():
    global number
    number += 1
    with rk.create(f"{path}{number}", schema) as writer:
        for row in rows:
            writer.write(row)

write()
made = f"{path}{number}"
dataset = rk.open(made)
pipe = dataset.batch(64)
CALLS = {
    "next(iter(pipe))": lambda: next(iter(pipe)),
    "ds[i]": lambda: dataset[7],
    "rk.open(path)": lambda: rk.open(made),
    "rk.create(path)": write,
    "rk.verify(path)": lambda: rk.verify(made),
}
call = CALLS[sys.argv[1]]
call()  # so that imports and caches that are made once are not traced
threading.setprofile(note)
sys.setprofile(note)
tracing = True
call()
tracing = False
print(*seen)
"""


def listed() -> dict[str, list[str]]:
    """Return what the page lists for each call."""
    rows = re.findall(r"^\| `([^`]+)` \| ((?:`[\w/]+`(?: → )?)+) \|$", ARCHITECTURE.read_text(), re.MULTILINE)
    return {call: re.findall(r"`([\w/]+)`", modules) for call, modules in rows}


def traced(call: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", TRACE, call], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("call", listed())
def test_the_page_lists_the_modules_that_a_call_runs_through(call: str) -> None:
    found = traced(call)

    row = " → ".join(f"`{module}`" for module in found)
    assert sorted(listed()[call]) == sorted(found), f"replace the row of {call} in ARCHITECTURE.md by: {row}"


def test_every_path_on_the_page_exists() -> None:
    root = ARCHITECTURE.parent
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*)`", ARCHITECTURE.read_text().partition("## Walks")[2])
    places = (root, root / "src" / "recordkit", root / "cpp" / "core")

    missing = [
        name for name in named if not any((place / f"{name}{end}").exists() for place in places for end in ("", ".py"))
    ]

    assert named
    assert missing == []


def test_the_page_lists_five_calls() -> None:
    assert len(listed()) == 5
