from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordkit.wording import format_size, parse_size


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "size"),
        [
            ("1", 1),
            ("12 B", 12),
            ("256MB", 256_000_000),
            ("1.5GB", 1_500_000_000),
            ("1 GiB", 2**30),
            (" 64 kib ", 65_536),
            ("2T", 2 * 10**12),
            ("3m", 3_000_000),
        ],
    )
    def test_text_is_a_number_of_bytes(self, text: str, size: int) -> None:
        assert parse_size(text) == size

    @pytest.mark.parametrize(
        "size", ["", "MB", "-1MB", "1 XB", "1e6", "0", "0.1", 0, -5, 1.5, True, None, "1 i", "1ib"]
    )
    def test_what_is_no_size_is_refused(self, size: Any) -> None:
        with pytest.raises(ValueError, match="a size is a number of bytes, or text such as"):
            parse_size(size)

    @given(st.integers(1))
    def test_a_number_is_itself(self, size: int) -> None:
        assert parse_size(size) == size
        assert parse_size(f"{size % 10**15 + 1}") == size % 10**15 + 1


class TestWords:
    @pytest.mark.parametrize(
        ("size", "words"),
        [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1 KB"),
            (1_234_567, "1.23 MB"),
            (999_999, "1000 KB"),
        ],
    )
    def test_sizes_are_short(self, size: int, words: str) -> None:
        assert format_size(size) == words

    @given(st.integers(1, 10**14))
    def test_what_is_said_is_about_right(self, size: int) -> None:
        assert abs(parse_size(format_size(size).replace("bytes", "").replace("byte", "")) - size) <= size / 100
