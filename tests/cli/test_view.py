"""recordkit view: the page is served."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest

import recordkit as rk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Done


@pytest.fixture
def served(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    rk.write(tmp_path / "data", {"id": np.arange(10)})
    command = [sys.executable, "-m", "recordkit", "view", str(tmp_path / "data"), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


class TestView:
    def test_prints_an_address_at_which_the_page_is(self, served: subprocess.Popen[str]) -> None:
        assert served.stdout is not None
        found = re.fullmatch(
            r"(http://127\.0\.0\.1:\d+/)(\S{20,}/)  Press Ctrl-C to stop\.\n", served.stdout.readline()
        )

        assert found is not None
        with urlopen(found[1] + found[2], timeout=30) as page:
            assert b"<html" in page.read()
        with pytest.raises(HTTPError, match="403"):
            urlopen(found[1] + "wrong/", timeout=30)

    def test_port_that_is_none_is_refused(self, run: Callable[..., Done]) -> None:
        assert run("view", "data", "--port", "99999").err == (
            "error: argument --port: expected a number from 0 to 65535, found '99999'\n  Usage: recordkit view --help\n"
        )

    def test_port_that_is_taken_is_named_with_the_option(self, run: Callable[..., Done]) -> None:
        rk.write("data", {"id": np.arange(10)})

        with socket.create_server(("127.0.0.1", 0)) as taken:
            number = taken.getsockname()[1]
            done = run("view", "data", "--port", number, "--no-browser")

        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"error: 127.0.0.1:{number}: cannot listen here: Address already in use")
        assert done.err.endswith("\n  Choose another --port, or 0 for any.\n")

    def test_what_is_not_there_is_two_lines(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "recordkit", "view", str(tmp_path / "nothing"), "--no-browser"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (f"error: {tmp_path}/nothing: no such file or folder\n  {tmp_path} is empty.\n")
