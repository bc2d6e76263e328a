from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recordkit.cli.terminal.cells import value_words
from recordkit.cli.terminal.screen import Screen, cells, clean_json, cut, spark, wrapped
from recordkit.wording import clean

UNSAFE = set(map(chr, [*range(32), *range(127, 160), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]))


class TestText:
    @given(st.text())
    def test_clean_text_never_steers_a_terminal(self, text: str) -> None:
        assert not UNSAFE & set(clean(text))

    @given(st.text())
    def test_clean_json_means_the_same(self, text: str) -> None:
        import json

        line = clean_json(json.dumps(text, ensure_ascii=False))

        assert not UNSAFE & set(line)
        assert json.loads(line) == text

    @given(st.text(), st.integers(1, 30))
    def test_cut_text_fits(self, text: str, width: int) -> None:
        text = clean(text)

        assert cells(cut(text, width)) <= max(width, 1)
        assert cells(text) > width or cut(text, width) == text

    @given(st.lists(st.text("abc", min_size=1, max_size=9)), st.integers(9, 40))
    def test_wrapped_words_are_all_there_and_fit(self, words: list[str], width: int) -> None:
        lines = wrapped(" ".join(words), width)

        assert " ".join(lines) == " ".join(words)
        assert all(len(line) <= width for line in lines)

    @given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40))
    def test_every_count_has_a_bar_unless_it_is_zero(self, counts: list[int]) -> None:
        assert [bar == " " for bar in spark(counts)] == [count == 0 for count in counts]

    @given(
        st.one_of(
            st.none(), st.text(), st.binary(), st.integers(), st.floats(), st.binary().map(b"\xff\xd8\xff".__add__)
        )
    )
    def test_any_value_is_a_safe_line(self, value: Any) -> None:
        assert not UNSAFE & set(value_words(value))


class TestTable:
    def printed(self, width: int | None, **options: Any) -> str:
        screen = Screen(io.StringIO(), io.StringIO())
        screen.width = width
        screen.table(
            ["name", "count", "note", "empty"],
            [["a", "1", "a long note about it", ""], ["bcd", "1,000", "", ""]],
            **options,
        )
        assert isinstance(screen.out, io.StringIO)
        return screen.out.getvalue()

    def test_columns_line_up_and_empty_ones_are_left_out(self) -> None:
        assert self.printed(None, right=["count"]) == (
            "name  count  note\na         1  a long note about it\nbcd   1,000\n"
        )

    def test_shrinks_to_the_width(self) -> None:
        assert self.printed(24, right=["count"], shrink=["note"]) == (
            "name  count  note\na         1  a long not…\nbcd   1,000\n"
        )


class TestColours:
    def test_are_off_where_nobody_sees_them(self) -> None:
        assert Screen(io.StringIO(), io.StringIO()).style("text", "bold", "red") == "text"

    def test_environment_decides(self, monkeypatch: Any) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        forced = Screen(io.StringIO(), io.StringIO()).style("text", "bold", "red")
        monkeypatch.setenv("NO_COLOR", "1")
        none = Screen(io.StringIO(), io.StringIO()).style("text", "bold", "red")

        assert (forced, none) == ("\x1b[1;31mtext\x1b[0m", "text")
