from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import debian

if TYPE_CHECKING:
    from pathlib import Path


class TestProgram:
    def test_that_is_there_is_found(self) -> None:
        assert debian.program("sh").endswith("/sh")

    def test_that_cannot_be_installed_is_named_with_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))  # where there is no apt-get either

        with pytest.raises(RuntimeError, match=r"^chromium is not installed, and there is no apt-get .*\n  Install it"):
            debian.program("chromium")
