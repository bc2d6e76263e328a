"""Every path that is named on the command line is read, refused, or listed as left out."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Done

COMMANDS = ("verify", "count", "info", "head", "cat", "schema", "stats", "index")
LEFT_OUT = {
    "e.parquet": "another format",
    "notes.txt": "text",
    "_SUCCESS": "a marker or hidden file",
}


@pytest.fixture
def named(run: Callable[..., Done]) -> None:
    rk.write("train", [{"id": number} for number in range(6)], shards=2, sync=False)
    for name in LEFT_OUT:
        Path(name).write_bytes(b"PAR1" * 20)


@pytest.mark.usefixtures("named")
class TestNamed:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_is_listed_where_it_holds_no_records(self, command: str, run: Callable[..., Done]) -> None:
        done = run(command, "train", *LEFT_OUT)

        assert done.status == 0
        for name, reason in LEFT_OUT.items():
            assert f"left out: {name} ({reason}" in done.err
        assert run(command, "train").out == done.out

    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.parametrize("name", ["missing.parquet", "missing.tfrecord", "s3://bucket/notes.txt"])
    def test_is_refused_where_it_is_not_there(self, command: str, name: str, run: Callable[..., Done]) -> None:
        done = run(command, "train", name)

        assert done.status == (1 if command == "verify" and not name.startswith("s3:") else 2)
        assert name in done.out + done.err
        assert "left out" not in done.err

    @pytest.mark.parametrize("command", COMMANDS)
    def test_alone_is_read_or_refused(self, command: str, run: Callable[..., Done]) -> None:
        done = run(command, "e.parquet")

        assert done.status != 0 or command == "index"
        assert operator.contains(done.out + done.err, "e.parquet")

    def test_what_is_ours_is_passed_over(self, run: Callable[..., Done]) -> None:
        done = run("count", *sorted(map(str, Path("train").iterdir())))

        assert (done.status, done.out) == (0, "6\n")
        assert done.err == "left out: train/_recordkit (what recordkit keeps beside the records)\n"
