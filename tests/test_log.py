"""The log: names in it are shown, and steer no terminal."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import recordkit as rk
from recordkit import log
from recordkit.errors import StorageError

if TYPE_CHECKING:
    import pytest

STEERING = "\x1b]0;owned\x07\nrecordkit: all is sound"
SHOWN = r"\x1b]0;owned\x07\nrecordkit: all is sound"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "recordkit"]


def test_names_of_any_kind_are_escaped(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("%s: %s, %d of %.1f", Path(STEERING), STEERING, 3, 4.5)

    assert lines(caplog) == [f"{SHOWN}: {SHOWN}, 3 of 4.5"]
    assert caplog.records[0].filename == "test_log.py"


def test_an_error_keeps_the_line_of_its_advice(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("%s", StorageError(f"{STEERING}: is gone\n  Bring it back."))

    assert lines(caplog) == [f"{SHOWN}: is gone\n  Bring it back."]


def test_what_a_folder_holds_cannot_write_lines_of_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "recordkit")
    rk.write(tmp_path / "a.tfrecord", [{"id": 1}], sync=False)
    (tmp_path / STEERING).write_bytes(b"")

    rk.open(tmp_path)

    assert any(line.startswith("left out: ") and SHOWN in line for line in lines(caplog))
    assert not any("\x1b" in line or "\n" in line for line in lines(caplog))


def test_a_field_cannot_either(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.tfrecord"
    with rk.create(path, sync=False) as writer:
        for kind, value in {"int64": 1, "bytes": b"one"}.items():
            writer.write_raw(rk.Schema({STEERING: kind}).encode({STEERING: [value]}, 1)[0])

    rk.open(path).schema  # noqa: B018

    (line,) = [line for line in lines(caplog) if "left out of the fields" in line]
    assert line.startswith(f"{SHOWN}: ")
    assert "\x1b" not in line
