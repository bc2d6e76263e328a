"""A dataset under its final name is whole, whatever breaks the run that writes it.

With RECORDKIT_CRASH_FULL=1 in the environment every operation is tried, and every way of going on; otherwise some of
them, always the same.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from .harness import FULL
from .scenarios import LONE_WITH_OVERLAYS, SCENARIOS

if TYPE_CHECKING:
    from .harness import Harness, Recording, Scenario

ERRORS = [errno.ENOSPC, errno.EIO, errno.EDQUOT]
WRITES = ("write", "pwrite", "writev")

pytestmark = pytest.mark.slow


@pytest.fixture(params=SCENARIOS, ids=str)
def recording(request: pytest.FixtureRequest, harness: Harness) -> Recording:
    scenario: Scenario = request.param
    return harness.record(scenario)


def some(recording: Recording, step: int, *names: str, start: int = 0) -> list[int]:
    """Every `step`-th operation (of these names), and those that change what is seen under final names."""
    operations = [one for one in recording.operations if one.name in names or not names]
    if os.environ.get(FULL):
        return [one.number for one in operations]
    shown = {one.number for one in operations if any(path and path[0] != "." for path in (one.path, one.other))}
    return sorted(shown | {one.number for one in operations[start % step :: step]})


def test_a_loss_of_power_leaves_the_old_dataset_or_the_new_one(harness: Harness, recording: Recording) -> None:
    chosen = {0, *some(recording, 7)}

    found = harness.lose_power(recording, chosen.__contains__)

    assert not found, "\n\n".join(found)


def test_a_kill_leaves_the_old_dataset_or_the_new_one(harness: Harness, recording: Recording) -> None:
    found = harness.kill(recording, some(recording, 8, start=1))
    found += harness.kill(recording, some(recording, 6, *WRITES), torn=True)

    assert not found, "\n\n".join(found)


def test_overlays_of_a_lone_file_go_with_it(harness: Harness) -> None:
    recording = harness.record(LONE_WITH_OVERLAYS)
    chosen = {0, *some(recording, 7)}

    found = harness.lose_power(recording, chosen.__contains__)
    found += harness.kill(recording, some(recording, 8, start=1))

    assert not found, "\n\n".join(found)


def test_a_second_crash_while_recovering_does_no_more_harm(harness: Harness, recording: Recording) -> None:
    found = harness.crash_again(recording, some(recording, 60, "rename", "exchange", start=17)[::3])

    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: errno.errorcode[error])
def test_a_call_that_fails_is_told_and_leaves_the_old_dataset_or_the_new_one(
    harness: Harness, recording: Recording, error: int
) -> None:
    place = ERRORS.index(error)

    found = harness.fail(recording, some(recording, 21, start=place * 7), error)
    found += harness.fail(recording, some(recording, 21, start=place * 7 + 3), error, rest=True)
    after_half = [number + 1 for number in some(recording, 9, *WRITES, start=place * 3)]
    found += harness.fail(recording, after_half, error, half=True, rest=True)

    assert not found, "\n\n".join(found)


def test_an_fsync_that_failed_is_not_believed_later(harness: Harness, recording: Recording) -> None:
    found = harness.fail_then_lose_power(recording, some(recording, 8, "fsync", "fdatasync"))

    assert not found, "\n\n".join(found)


def test_short_writes_change_nothing(harness: Harness, recording: Recording) -> None:
    found = harness.shorten(recording, some(recording, 4, *WRITES))

    assert not found, "\n\n".join(found)
