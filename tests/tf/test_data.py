"""tf.data: every method, and scripts as tutorials have them, run with both modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import tf as ours
from tests.tf.both import run, scripts

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = {**scripts("data"), **scripts("data_tutorials")}


def read(path: str) -> list[bytes]:
    """The payloads of a file, whoever wrote it."""
    return list(rk.open(path, raw=True))


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")  # TensorFlow's own
@pytest.mark.parametrize("name", SCRIPTS)
def test_script(tf: Any, name: str, tmp_path: Path) -> None:
    folders = [tmp_path / "same", tmp_path / "theirs"]
    for folder in folders:
        folder.mkdir()

    mine, theirs = (
        run(SCRIPTS[name], module, folder=str(folder), read=read)
        for module, folder in zip([ours, tf], folders, strict=True)
    )

    assert mine == theirs
