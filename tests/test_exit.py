"""However a program ends, and whatever it leaves open: nothing on standard error, no waiting, nothing published."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

import recordkit as rk

if TYPE_CHECKING:
    from pathlib import Path

ALL_LEFT_OPEN = """
    looked_up = rk.open("train")
    looked_up[3], looked_up[[30, 1]]
    half_way = iter(rk.open("train").shuffle(seed=1).batch(4).prefetch())
    next(half_way)
    in_threads = iter(rk.open("train").map(dict, workers=2).batch(4))
    next(in_threads)
    cached = iter(rk.open("train").cache().batch(4))
    next(cached)
    reader = rk.records.Reader(open("one.tfrecord", "rb"))
    writer = rk.create("new", {"x": "int64"}, workers=2)
    writer.write({"x": 1})
    rk.open("train")[3]
    """


def ended(program: str, where: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", textwrap.dedent(program)],
        cwd=where,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


# In which order modules are emptied at the end depends on what was imported: JAX's order is the one that breaks most.
@pytest.mark.parametrize("beside", ["sys", "jax", "torch"])
def test_a_program_ends_in_silence_whatever_it_leaves_open(tmp_path: Path, beside: str) -> None:
    rows = [{"x": number} for number in range(100)]
    rk.write(tmp_path / "train", rows, shards=4)
    rk.write(tmp_path / "one.tfrecord", rows)

    end = ended(f"import recordkit as rk, {beside}\n{textwrap.dedent(ALL_LEFT_OPEN)}", tmp_path)

    assert end == (0, "")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "opened", ["rk.create('a.tfrecord', {'x': 'int64'}, workers=2)", "tf.io.TFRecordWriter('a.tfrecord')"]
)
def test_a_forked_process_that_ends_leaves_the_writer_to_the_one_that_made_it(tmp_path: Path, opened: str) -> None:
    program = f"""
        import multiprocessing, os
        import recordkit as rk
        from recordkit import tf

        writer = {opened}
        writer.write({{"x": 1}} if isinstance(writer, rk.storage.Writer) else b"")
        child = multiprocessing.get_context("fork").Process(target=os.getpid)
        child.start()
        child.join()
        assert child.exitcode == 0
        writer.write({{"x": 2}} if isinstance(writer, rk.storage.Writer) else b"")
        writer.close()
        """

    assert ended(program, tmp_path) == (0, "")
    assert len(rk.open(tmp_path / "a.tfrecord", raw=True)) == 2


def test_a_forked_process_cannot_use_the_writer_of_another(tmp_path: Path) -> None:
    program = """
        import os
        import recordkit as rk

        writer = rk.create("a.tfrecord", {"x": "int64"})
        writer.write({"x": 1})
        if not (child := os.fork()):
            try:
                writer.write({"x": 2})
            except rk.StorageError as error:
                os._exit("belongs to the process" in str(error))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        writer.close()
        """

    assert ended(program, tmp_path) == (0, "")
    assert len(rk.open(tmp_path / "a.tfrecord")) == 1
