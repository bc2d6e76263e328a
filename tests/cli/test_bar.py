from __future__ import annotations

import io
import os
import signal
import threading
from typing import Any

import pytest

from recordkit import progress
from recordkit.cli.terminal import bar
from recordkit.cli.terminal.bar import Bar, heed, working
from recordkit.cli.terminal.screen import Screen
from recordkit.progress import Report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal on which progress is drawn at once."""
    monkeypatch.setattr(bar, "_WAIT", 0.0)
    monkeypatch.setattr(bar, "_EVERY", 0.0)
    return Screen(Terminal(), Terminal())


def drawn(screen: Screen) -> str:
    assert isinstance(screen.err, io.StringIO)
    return screen.err.getvalue()


class TestLine:
    @pytest.mark.parametrize(
        ("report", "line"),
        [
            (
                Report("verifying", 250_000_000, 1_000_000_000, "bytes"),
                f"verifying  {'━' * 6}{'╌' * 18}  25%  50 MB/s  15 s left",
            ),
            (Report("writing a", 500, None, "rows"), "writing a  500 rows  100 rows/s"),
            (Report("indexing", 0, 4, "files"), f"indexing  {'╌' * 24}   0%  0 files/s  ? left"),
        ],
    )
    def test_has_the_share_the_rate_and_the_time_left(self, report: Report, line: str, screen: Screen) -> None:
        assert Bar(screen).line(report, 5.0, 80) == line

    def test_name_gives_way_where_it_is_too_long(self, screen: Screen) -> None:
        report = Report("writing /a/long/way/down/to/a/file", 250, 1000, "rows")

        assert Bar(screen).line(report, 5.0, 70) == f"writing /a/long/…  {'━' * 6}{'╌' * 18}  25%  50 rows/s  15 s left"
        assert Bar(screen).line(report, 5.0, 30) == f"writing /a/…  {'━' * 6}{'╌' * 9}…"


class TestRows:
    def test_values_that_were_made_count_until_their_rows_are_there(self, screen: Screen) -> None:
        bar = Bar(screen, rows=1000)

        for report in [
            Report("computing a", 100, 250, "values"),
            Report("computing b", 50, 250, "values"),
            Report("writing d", 250, None, "rows"),
            Report("computing a", 250, 250, "values"),
            Report("writing d", 1, 2, "files"),
        ]:
            bar(report)

        shares = [line.split("%")[0][-3:].strip() for line in drawn(screen).split("\r")[1:]]
        assert shares == ["10", "10", "25", "50"]


class TestWorking:
    def test_draws_and_leaves_nothing_behind(self, screen: Screen) -> None:
        with working(screen):
            progress.step("looking", 1, 2, "records")
            progress.step("looking", 2, 2, "records")

        text = drawn(screen)
        assert text.startswith("\rlooking  ")
        assert text.endswith("\x1b[K\r\x1b[K")

    def test_draws_nothing_where_nobody_watches(self) -> None:
        screen = Screen(io.StringIO(), io.StringIO())

        with working(screen):
            progress.step("looking", 1, 2, "records")

        assert drawn(screen) == ""

    def test_rows_of_all_parts_are_added_up(self, screen: Screen) -> None:
        bar = Bar(screen, rows=100)

        for done in (10, 20, 5, 15):  # a part of twenty rows, and the beginning of the next
            bar(Report("writing", done, None, "rows"))
        bar(Report("writing", 1, 4, "files"))

        assert " 35%  " in drawn(screen).rpartition("\r")[2]

    def test_ctrl_c_reaches_every_thread(self, screen: Screen) -> None:
        caught: list[type[BaseException]] = []

        def work() -> None:
            try:
                while True:
                    heed()
            except KeyboardInterrupt as error:
                caught.append(type(error))

        def interrupted() -> None:
            thread = threading.Thread(target=work)
            with working(screen):
                thread.start()
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                finally:
                    thread.join()

        with pytest.raises(KeyboardInterrupt):
            interrupted()

        assert caught == [KeyboardInterrupt]
        heed()  # what comes next is not stopped
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_what_cleans_up_after_ctrl_c_is_not_stopped_again(self, screen: Screen) -> None:
        cleaned: list[str] = []

        def interrupted() -> None:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                progress.step("cleaning up", 1, 1, "files")
                cleaned.append("all")
                raise

        with pytest.raises(KeyboardInterrupt), working(screen):
            interrupted()

        assert cleaned == ["all"]

    def test_in_another_thread_signals_are_left_alone(self, screen: Screen) -> None:
        done: list[Any] = []

        def work() -> None:
            with working(screen):
                done.append(signal.getsignal(signal.SIGINT))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

        assert done == [signal.default_int_handler]
