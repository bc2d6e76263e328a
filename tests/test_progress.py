from __future__ import annotations

import threading

import pytest

from recordkit.progress import Report, reporting, step


class TestReporting:
    def test_the_hook_is_told(self) -> None:
        reports: list[Report] = []

        with reporting(reports.append):
            step("writing", 1, None, "rows")
            step("writing", 2, 2, "rows")

        assert reports == [Report("writing", 1, None, "rows"), Report("writing", 2, 2, "rows")]

    def test_without_a_hook_nothing_happens(self) -> None:
        step("writing", 1, None, "rows")

    def test_the_innermost_hook_is_told_and_only_inside(self) -> None:
        outer: list[Report] = []
        inner: list[Report] = []

        with reporting(outer.append):
            with reporting(inner.append):
                step("a", 1, None, "rows")
            step("b", 1, None, "rows")
        step("c", 1, None, "rows")

        assert [report.what for report in inner] == ["a"]
        assert [report.what for report in outer] == ["b"]

    def test_an_exception_ends_the_reporting(self) -> None:
        reports: list[Report] = []

        with pytest.raises(KeyError), reporting(reports.append):
            raise KeyError
        step("a", 1, None, "rows")

        assert reports == []

    def test_a_hook_is_that_of_its_thread(self) -> None:
        reports: list[Report] = []

        with reporting(reports.append):
            thread = threading.Thread(target=step, args=("a", 1, None, "rows"))
            thread.start()
            thread.join()

        assert reports == []
