"""Scripts as tutorials have them, run with both modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import tf as ours
from tests.tf.both import run, scripts

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = scripts("tutorials")


def read(path: str) -> list[bytes]:
    """The payloads of a file, whoever wrote it."""
    return list(rk.open(path, raw=True))


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SCRIPTS)
def test_script(tf: Any, name: str, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()

    mine = run(SCRIPTS[name], ours, folder=str(tmp_path / "ours"), read=read)
    theirs = run(SCRIPTS[name], tf, folder=str(tmp_path / "theirs"), read=read)

    assert mine == theirs
    assert "raised" not in mine
