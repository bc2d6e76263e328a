"""The completion scripts in the shells that they are for: words are typed on a terminal, with Tab behind them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import recordkit as rk
from tests import debian

from .conftest import reading

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Done

# Without anyone's settings; zsh needs its completion switched on.
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], ""),
    "zsh": (["-f", "-i"], "autoload -U compinit; compinit -u -D; "),
    "fish": (["--no-config", "-i"], ""),
}
# A command that tells words in the same way as the real one, and writes down what it was called with otherwise.
RECORDKIT = """\
#!/bin/sh
[ "$1" = __complete ] && exec '{python}' -m recordkit "$@"
for word in "$@"; do printf '[%s]' "$word"; done >> '{called}'
echo >> '{called}'
"""
HOSTILE = "x$(touch owned); touch owned"
TYPED = {
    "recordkit sche": "[schema]",
    "recordkit schema data --as p": "[schema][data][--as][python]",
    "recordkit cat data --fields plain,wi": "[cat][data][--fields][plain,with space]",
    "recordkit drop data x": f"[drop][data][{HOSTILE}]",
    "recordkit count lone.tf": "[count][lone.tfrecord]",
}


def typed(shell: str, script: str, folder: Path) -> list[str]:
    """Return what the command was called with, word by word, when all lines were typed."""
    options, first = SHELLS[shell]
    (folder / "bin").mkdir()
    command, called = folder / "bin" / "recordkit", folder / "called"
    command.write_text(RECORDKIT.format(python=sys.executable, called=called))
    command.chmod(0o755)
    (folder / "script").write_text(script)
    environment = {
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "TERM": "xterm",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    leader, follower = pty.openpty()
    # It is the terminal that the shell rules over, as fish insists.
    with (
        reading(leader),
        subprocess.Popen(
            ["setsid", "--ctty", debian.program(shell), *options],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            cwd=folder,
            env=environment,
        ) as process,
    ):
        os.close(follower)
        for line in (f"{first}source ./script", *(f"{each}\t" for each in TYPED), "exit"):
            os.write(leader, f"{line}\n".encode())
        try:
            process.wait(60)
        finally:
            process.kill()
    return called.read_text().splitlines()


class TestCompletion:
    @pytest.mark.parametrize("shell", SHELLS)
    def test_tab_finds_commands_options_fields_and_files(
        self, shell: str, run: Callable[..., Done], tmp_path: Path
    ) -> None:
        rk.write(tmp_path / "data", [{"plain": 1, "with space": 2, HOSTILE: 3, "\x1b[31m": 4}])
        rk.write(tmp_path / "lone.tfrecord", [{"id": 1}])

        called = typed(shell, run("completion", shell).out, tmp_path)

        assert called == list(TYPED.values())
        assert not (tmp_path / "owned").exists()
