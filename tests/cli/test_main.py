from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import pytest

import recordkit as rk
from recordkit.cli import commands, main
from recordkit.cli._commands import GROUPS, SUMMARIES
from recordkit.cli._errors import message_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Done

RECORDKIT = (sys.executable, "-m", "recordkit")


class TestHelp:
    def test_lists_every_command_in_its_group(self, run: Callable[..., Done]) -> None:
        done = run("--help")

        assert (done.status, done.err) == (0, "")
        listed = "\n\n".join(
            "\n".join([title, *(f"  {name:<11} {line}" for name, line in commands.items())])
            for title, commands in GROUPS.items()
        )
        assert done.out == (
            "TFRecord as a dataset format you can trust.\n\nusage: recordkit COMMAND PATH ...\n\n"
            f"{listed}\n\n"
            "recordkit COMMAND --help explains a command, with examples.\n"
            "Exit status: 0 all is well, 1 something was found, 2 wrong usage.\n"
            "NO_COLOR=1 turns colours off.\n"
        )

    def test_every_file_of_a_command_is_listed(self) -> None:
        assert {name for _, name, _ in iter_modules(commands.__path__) if not name.startswith("_")} == set(SUMMARIES)

    def test_is_what_no_words_at_all_give(self, run: Callable[..., Done]) -> None:
        assert run() == run("--help") == run("help")

    @pytest.mark.parametrize("name", SUMMARIES)
    def test_of_every_command_has_its_line_and_examples(self, name: str, run: Callable[..., Done]) -> None:
        done = run(name, "--help")

        assert done.status == 0
        assert done.out.startswith(f"usage: recordkit {name} ")
        assert SUMMARIES[name] in done.out
        assert f"examples:\n  {'eval' if name == 'completion' else 'recordkit'}" in done.out
        assert done == run("help", name)

    @pytest.mark.parametrize("name", SUMMARIES)
    def test_fits_a_terminal_of_80_letters(self, name: str, on_terminal: Callable[..., Done]) -> None:
        usage, _, _ = on_terminal(name, "--help").bare.partition("examples:")

        assert max(map(len, usage.splitlines())) <= 80

    def test_version_is_the_package_s(self, run: Callable[..., Done]) -> None:
        assert run("--version").out == f"recordkit {rk.__version__}\n"


class TestWrongUse:
    def test_unknown_command_is_named_with_the_nearest(self, run: Callable[..., Done]) -> None:
        done = run("cuont", "a.tfrecord")

        assert (done.status, done.out) == (2, "")
        assert done.err == "error: there is no command 'cuont'\n  Did you mean recordkit count?\n"

    def test_unknown_option_is_two_lines(self, run: Callable[..., Done]) -> None:
        done = run("count", "a.tfrecord", "--fiels")

        assert (done.status, done.out) == (2, "")
        assert done.err == "error: unrecognized arguments: --fiels\n  Usage: recordkit count --help\n"

    def test_number_that_is_none_is_refused(self, run: Callable[..., Done]) -> None:
        done = run("head", "a.tfrecord", "-n", "many")

        assert done.status == 2
        assert done.err == (
            "error: argument -n: expected a number from 0 up, found 'many'\n  Usage: recordkit head --help\n"
        )

    def test_path_that_is_not_there_is_named_with_what_is(self, run: Callable[..., Done], train: str) -> None:
        done = run("count", "trian")

        assert (done.status, done.out) == (2, "")
        assert done.err == "error: trian: no such file or folder\n  Did you mean 'train'?\n"

    def test_argument_of_a_function_is_said_as_an_option(self, run: Callable[..., Done], train: str) -> None:
        done = run("bake", train, "--out", train)

        assert done.status == 2
        assert done.err.endswith("  Pass --overwrite to replace it.\n")

    def test_with_json_the_error_is_json_too(self, run: Callable[..., Done], train: str) -> None:
        done = run("stats", train, "--fields", "lable", "--json")

        assert done.status == 2
        assert done.out == (
            '{\n  "error": {\n    "type": "SchemaError",\n    "message": "lable: not in the schema",\n'
            '    "advice": "Did you mean \'label\'?",\n    "field": "lable"\n  }\n}\n'
        )
        assert done.err == "error: lable: not in the schema\n  Did you mean 'label'?\n"

    def test_with_json_wrong_use_is_json_too(self, run: Callable[..., Done]) -> None:
        done = run("count", "--json")

        assert done.status == 2
        assert json.loads(done.out) == {
            "error": {
                "type": "UsageError",
                "message": "the following arguments are required: PATH",
                "advice": "Usage: recordkit count --help",
            }
        }
        assert done.err == ("error: the following arguments are required: PATH\n  Usage: recordkit count --help\n")

    def test_error_is_red_on_a_terminal(self, on_terminal: Callable[..., Done]) -> None:
        done = on_terminal("nothing")

        assert done.out == (
            "\x1b[1;31merror:\x1b[0m there is no command 'nothing'\n  recordkit --help lists all commands.\n"
        )


class TestOutput:
    def test_that_cannot_be_written_is_said_once(
        self, damaged: str, in_folder: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            status = main(["count", damaged])

        assert (status, capsys.readouterr().err) == (
            2,
            "error: the output cannot be written: No space left on device\n",
        )

    def test_letters_that_it_lacks_are_escaped(
        self, train: str, in_folder: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))

        status = main(["info", train])

        assert status == 0
        assert b"\\u2588" in out.getvalue()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ("recordkit.repair('a.tfrecord', ...) writes", "recordkit repair a.tfrecord writes"),
            ("recordkit.repair('a b', ..., accept='zero_crc')", "recordkit repair 'a b' --accept zero_crc"),
            ("recordkit.repair(src, dst) finds", "recordkit repair finds"),
        ],
    )
    def test_what_to_do_is_a_command(self, words: str, said: str) -> None:
        assert message_of(rk.StorageError(words, path="a")) == said

    def test_what_should_not_happen_is_two_lines_too(self) -> None:
        assert message_of(RuntimeError("odd")) == (
            "RuntimeError: odd\n  This should not happen. RECORDKIT_TRACEBACK=1 shows where it did."
        )


class TestFromOutside:
    """What only a process of its own shows."""

    def test_no_command_loads_numpy_before_it_runs(self) -> None:
        program = (
            "import sys; from importlib import import_module\n"
            "from recordkit.cli._commands import SUMMARIES; from recordkit.cli._parser import parser_of\n"
            "for name in SUMMARIES: parser_of(name, import_module(f'recordkit.cli.commands.{name}'))\n"
            "print('numpy' in sys.modules, 'logging' in sys.modules)"
        )

        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

        assert done.stdout == "False False\n"

    def test_pipe_that_is_closed_is_no_trouble(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": number, "text": "x" * 100} for number in range(5000)])

        with subprocess.Popen(
            [*RECORDKIT, "cat", "a.tfrecord"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            complaint = process.stderr.read()

        assert (process.returncode, complaint) == (141, b"")

    def test_ctrl_c_leaves_nothing_half_made_and_all_threads_stop(self, tmp_path: Path) -> None:
        for name in ("a", "b", "c"):
            rk.write(tmp_path / "data" / f"{name}.tfrecord", [{"id": number} for number in range(2000)])
        started = tmp_path / "started"
        (tmp_path / "slow.py").write_text(
            "import pathlib, time\n"
            "def slow(row):\n"
            f"    pathlib.Path({str(started)!r}).touch()\n"
            "    time.sleep(0.01)\n"
            "    return 1\n"
        )

        with subprocess.Popen(
            [*RECORDKIT, "add", "data", "one=slow.py:slow", "--type", "int64", "--out", "new"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while not started.exists():
                assert process.poll() is None
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)

        assert (process.returncode, out) == (130, "")
        assert err == "interrupted; nothing is half-written\n  Run the same command again to resume.\n"
        assert not (tmp_path / "new").exists()
        assert len(rk.open(tmp_path / "data")) == 6000
