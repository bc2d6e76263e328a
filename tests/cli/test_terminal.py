"""Whole outputs and statuses of every command, in a pipe and on a terminal.

Both say the same; only colours, and progress that is wiped away, come on top. What changes from run to run and from
machine to machine, such as times, has a letter in its place.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import recordkit as rk
from recordkit import _core
from recordkit import engines as workers
from recordkit.cli._commands import SUMMARIES
from recordkit.cli.terminal import bar

from .conftest import STYLES, Done, reading

if TYPE_CHECKING:
    from collections.abc import Callable

WIDE = 300
PROGRESS = re.compile(r"[^\n]*\r(\x1b\[K)?|\x1b\[\??\d*[A-Za-z]")

# A command, its status, and what it says.
SAID = {
    "info data": (
        0,
        """\
data
  records     6
  size        294 bytes in 1 file
  compression none
  message     Example
  record size 33 bytes
  schema      written with the dataset

field  type     values    histogram
a      int64    0 to 5    ██████
b      float64  0 to 2.5  █ █ ██  ██
""",
    ),
    "head data -n 2": (0, "record 0\n  a  0\n  b  0\nrecord 1\n  a  1\n  b  0.5\n"),
    "cat data --take 2": (0, '{"a": 0, "b": 0.0}\n{"a": 1, "b": 0.5}\n'),
    "count data": (0, "6\n"),
    "schema data": (0, "field  type\na      int64\nb      float64\n2 fields, written with the dataset\n"),
    "stats data": (
        0,
        """\
6 records
field  type     missing  distinct  min  median  max  mean     std  histogram
a      int64          0         6    0       2    5   2.5   1.708  ██████
b      float64        0         6    0       1  2.5  1.25  0.8539  █ █ ██  ██
""",
    ),
    "diff data other": (
        1,
        "different: 6 and 5 records, compared by all their bytes\n  only in a: 1 (record 5)\n",
    ),
    "verify data": (0, "1 file, 6 sound records, 294 bytes: no damage found\n"),
    "verify bad.tfrecord": (
        1,
        """\
1 file, 3 sound records, 120 bytes: 1 file not sound
  bad.tfrecord: damaged, 3 sound records in 120 bytes
    record 1 at byte 30: the payload or its checksum is damaged
Recover the intact records: recordkit repair bad.tfrecord
""",
    ),
    "repair bad.tfrecord -o new.tfrecord": (
        1,
        """\
bad.tfrecord: 3 records recovered, now in new.tfrecord
  30 bytes lost in 1 place
  record 1 at byte 30: the payload or its checksum is damaged
""",
    ),
    "add data c=values.npy": (
        0,
        "c: 6 records, in an overlay; no file was rewritten\n  data/_recordkit/overlays/0001-c\n",
    ),
    "drop data b --out new": (0, "b: 6 records, not in the new files\n  new\n"),
    "rename data b=c --out new": (0, "b is now c: 6 records in new files\n  new\n"),
    "delete data --where a==3": (
        0,
        "1 record deleted, 5 left; no file was rewritten\n  data/_recordkit/overlays/0001-deleted\n",
    ),
    "filter data --where a<3 --out new": (0, "3 records of 6 (50.0%) in new files\n  new\n"),
    "bake data --out new": (0, "6 records in new files\n  new\n"),
    "append data other": (0, "5 records appended, 11 in total\n  data\n"),
    "index data": (0, "data/_recordkit/data-00000-of-00001.tfrecord.rki\n"),
    "bench data --seconds 0.01 --workers 1": (
        0,
        """\
way  speed  records/s
the disk, raw  S  BAR
memory, raw  S  BAR
checksum alone  S  BAR
records, checked, 1 thread  S  N  BAR
columns, 1 thread  S  N  BAR
any record, one by one  N
""",
    ),
    "completion bash": (
        0,
        """\
_recordkit() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        case "$word" in *[!A-Za-z0-9_/.,:=@%+-]*) printf -v word %q "$word" ;; esac
        [[ -n "$word" ]] && COMPREPLY+=("$word")
    done < <(recordkit __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _recordkit recordkit
""",
    ),
    "completion zsh": (
        0,
        """\
_recordkit() {
    local -a found
    found=("${(@f)$(recordkit __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _recordkit recordkit
""",
    ),
    "completion fish": (
        0,
        """\
function __recordkit
    set -l found (recordkit __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if test -n "$found"
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c recordkit -f -a '(__recordkit)'
""",
    ),
    "demo d --pictures 600": (
        0,
        """\
1. 600 pictures are written in shards, and the writer is killed halfway
  rk.Schema({
      "image": "jpeg",
      "id":  "int64",
      "label": "int64",
      "name":  "string",
      "box":  "float32[4]",
  })
  kill -9 after picture 350. Is there a partial dataset under the name train? no
  The same program resumes after picture N, the last one in a complete shard:
  train: 600 records in 6 files, SIZE

2. Every byte is checked: two checksums per record, the manifest, the indexes
  6 files, 600 sound records, SIZE: no damage found

3. A copy is damaged: one bit flips in a shard, and another shard is truncated
  6 files, 598 sound records, SIZE: 2 files not sound
    damaged/train-00000-of-00006.tfrecord: damaged, 99 sound records in SIZE
      record N at byte N: the payload or its checksum is damaged
      the manifest says 100 records, but 99 are sound
    damaged/train-00001-of-00006.tfrecord: damaged, 99 sound records in SIZE
      record N at byte N: truncated record: the file ends before the record does
      the manifest says 100 records, but 99 are sound
  damaged/train-00000-of-00006.tfrecord: 99 records recovered, SIZE lost
  damaged/train-00001-of-00006.tfrecord: 99 records recovered, SIZE lost
  Are the recovered files sound? yes

4. A field is added to the dataset
  As an overlay, in T: record 3 now has pixels = 16,422.
  Are the files unchanged? yes
  Baked into new files, in T: baked, which TensorFlow can read.

5. A model is trained on shuffled batches, stopped, and resumed
  4 batches of 50: loss L to L. Stopped.
  The state, as JSON, has SIZE.
  Another pipeline resumes from it. 8 more batches: loss L.
  Was every record seen exactly once? yes

Summary
  step  result  time
  written, killed, and resumed  SIZE in 6 shards  T
  verified  600 records sound  T
  damage found and repaired  198 of 200 records recovered  T
  field added as an overlay  no file rewritten  T
  field baked into new files  600 records  T
  trained, stopped and resumed  N pictures per second  T
  total  T

Next
  recordkit view d/train  # in a browser
  recordkit info d/train  # in the terminal
  rm -r d  # to clean up
""",
    ),
}
COLOURLESS = {"cat", "count", "index", "completion"}
CHANGING = (
    (r"\b\d+\.\d\d s\b", "T"),
    (r"[\d.]+ (?:bytes|[KMGT]?B)/s", "S"),
    (r"[\d,]+ pictures per second", "N pictures per second"),
    (r"resumes after picture \d+", "resumes after picture N"),
    (r"record \d+ at byte \d+", "record N at byte N"),
    (r"\b[\d.]+ (?:bytes|[KMG]B)\b", "SIZE"),
    (r"(loss|to) \d+\.\d+", r"\1 L"),
    (r"(?m)  [\d,]+(?=  ━|$)", "  N"),
    (r"━+", "BAR"),
    (r"(?m)^  \S+/recordkit ", "  recordkit "),
    (r"(?<=\S)  +", "  "),
)
ROOM = re.compile(r"(?<=\S)  +")


def steady(text: str) -> str:
    """Return a text with letters for what changes."""
    for pattern, letter in CHANGING:
        text = re.sub(pattern, letter, text)
    return text


def made(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, count in (("data", 6), ("other", 5)):
        rk.write(folder / name, {"a": np.arange(count), "b": np.arange(count) * 0.5}, sync=False)
    np.save(folder / "values.npy", np.arange(6))
    rk.write(folder / "bad.tfrecord", {"a": np.arange(4)}, sync=False)
    data = bytearray((folder / "bad.tfrecord").read_bytes())
    data[45] ^= 1
    shutil.rmtree(folder / "_recordkit")
    (folder / "bad.tfrecord").write_bytes(data)


@pytest.mark.parametrize("line", SAID)
def test_terminal_and_pipe_say_the_same(
    line: str, run: Callable[..., Done], on_terminal: Callable[..., Done], tmp_path: Path
) -> None:
    name, *words = line.split()
    status, text = SAID[line]
    changing = steady if name in ("bench", "demo") else str

    made(tmp_path)
    piped = run(name, *words)
    made(tmp_path)
    shown = on_terminal(name, *words, width=WIDE)

    assert (piped.status, changing(piped.out), piped.err) == (status, text, "")
    assert (shown.status, changing(PROGRESS.sub("", shown.bare))) == (status, text)
    assert (STYLES.search(shown.out) is None) == (name in COLOURLESS)


PACKAGES = {
    "numpy": "required",
    "deflate": "required",
    "isal": "faster reading of other tools' gzip",
    "simplejpeg": "JPEG decoding and encoding",
    "pillow": "PNG decoding and encoding",
    "ml_dtypes": "bfloat16 and float8",
    "pyarrow": "Parquet, CSV and Arrow tables",
    "pandas": "data frames",
    "starlette": "the page of recordkit view",
    "uvicorn": "the page of recordkit view",
    "torch": "PyTorch",
    "jax": "JAX",
    "datasets": "Hugging Face datasets",
    "tensorflow-cpu": "TensorFlow (not needed by recordkit)",
}


def test_doctor_says_the_same_of_this_machine(
    run: Callable[..., Done], on_terminal: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = _core.crc32c_path()
    _core.crc32c_use_path("portable")  # which every machine has
    try:
        piped, shown = run("doctor"), on_terminal("doctor", width=WIDE)
    finally:
        _core.crc32c_use_path(before)

    others = [path for path in _core.crc32c_paths() if path != "portable"]
    also = f" (also supported: {', '.join(others)})" if others else ""
    versions = [
        f"{name.removesuffix('-cpu')}  {importlib.metadata.version(name)}  {what}\n" for name, what in PACKAGES.items()
    ]
    text = (
        f"recordkit  {rk.__version__} in {Path(rk.__file__).parent}\n"
        f"python  {platform.python_version()} ({platform.python_implementation()}) in {sys.executable}\n"
        f"system  {platform.system()} {platform.release()} on {platform.machine()}\n"
        f"processors  {workers.count('auto')}\n"
        f"checksums  portable{also}\n"
        f"gzip  deflate {importlib.metadata.version('deflate')} for recordkit's own files, "
        f"isal {importlib.metadata.version('isal')} for others\n"
        f"cache  {tmp_path}/recordkit\n\npackage  version  for\n{''.join(versions)}\n"
        "problem  checksums use the portable path, which is several times slower than the x86-64 paths.\n"
    )
    assert (piped.status, ROOM.sub("  ", piped.out), piped.err) == (1, text, "")
    assert (shown.status, ROOM.sub("  ", shown.bare)) == (1, text)
    assert STYLES.search(shown.out)


ADDRESS = r"http://127\.0\.0\.1:\d+/\S{20,}/  Press Ctrl-C to stop\.\r?\n"


class TestView:
    def command(self, folder: Path) -> list[str]:
        made(folder)
        return [sys.executable, "-m", "recordkit", "view", "data", "--no-browser"]

    def test_in_a_pipe_says_the_address_alone(self, tmp_path: Path) -> None:
        with subprocess.Popen(
            self.command(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, err = process.communicate(timeout=60)

        assert re.fullmatch(ADDRESS, first)
        assert (process.returncode, rest, err) == (0, "", "")

    def test_on_a_terminal_says_it_in_bold_and_ends_with_ctrl_c(self, tmp_path: Path) -> None:
        leader, follower = pty.openpty()
        with (
            reading(leader) as seen,
            subprocess.Popen(
                ["setsid", "--ctty", *self.command(tmp_path)],
                cwd=tmp_path,
                stdin=follower,
                stdout=follower,
                stderr=follower,
            ) as process,
        ):
            os.close(follower)
            while b"to stop" not in seen:
                assert process.poll() is None
                time.sleep(0.02)
            os.write(leader, b"\x03")  # what the key sends
            process.wait(60)

        assert process.returncode == 0
        assert re.fullmatch(ADDRESS + r"(\^C)?", STYLES.sub("", seen.decode()))
        assert seen.startswith(b"\x1b[1mhttp://")


# What is drawn while a command works.
DRAWN = {
    "count data --where a>0": "looking at records  ",
    "head data --where a>4": "looking at records  ",
    "stats data": "looking at values  ",
    "diff data other": "comparing  ",
    "verify data": "verifying  ",
    "repair bad.tfrecord -o new.tfrecord": "repairing ",
    "add data c=values.npy": "writing ",
    "drop data b --out new": "writing ",
    "rename data b=c --out new": "writing ",
    "delete data --where a==3": "looking at records  ",
    "filter data --where a<3 --out new": "writing ",
    "bake data --out new": "writing ",
    "append data other": "writing ",
    "index bad.tfrecord": "indexing ",
    "bench data --seconds 0.01": "measuring  ",
}


@pytest.mark.parametrize("line", DRAWN)
def test_progress_is_drawn_and_wiped_away(
    line: str, on_terminal: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bar, "_WAIT", 0.0)
    monkeypatch.setattr(bar, "_EVERY", 0.0)
    made(tmp_path)

    done = on_terminal(*line.split(), width=WIDE)

    bars, wiped, rest = done.bare.rpartition("\r\x1b[K")
    assert bars.startswith(f"\r{DRAWN[line]}")
    assert re.search(r"[\d,]+ \w+/s", bars) or "/s  " in bars
    assert wiped
    assert "/s" not in rest or line.startswith("bench")


def test_every_command_is_here() -> None:
    shown = {line.split()[0] for line in SAID} | {"doctor", "view"}

    assert shown == set(SUMMARIES), "add the new command to SAID, with its output"
