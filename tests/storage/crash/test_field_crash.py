"""A dataset is as it was or as it is to be, whatever breaks the call that adds, drops, deletes or bakes.

With RECORDKIT_CRASH_FULL=1 in the environment every operation is tried, and every way of going on; otherwise some of
them, always the same.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from .field_scenarios import SCENARIOS
from .harness import FULL

if TYPE_CHECKING:
    from .harness import Harness, Recording, Scenario

ERRORS = [errno.ENOSPC, errno.EIO, errno.EDQUOT]
WRITES = ("write", "pwrite", "writev")

pytestmark = pytest.mark.slow


@pytest.fixture(params=SCENARIOS, ids=str)
def recording(request: pytest.FixtureRequest, harness: Harness) -> Recording:
    scenario: Scenario = request.param
    return harness.record(scenario)


def few(*names: str) -> pytest.MarkDecorator:
    """These scenarios only, unless all is tried."""
    chosen = [one for one in SCENARIOS if os.environ.get(FULL) or str(one) in names]
    assert len(chosen) >= len(names)
    return pytest.mark.parametrize("recording", chosen, ids=str, indirect=True)


def some(recording: Recording, step: int, *names: str, start: int = 0) -> list[int]:
    """Every `step`-th operation (of these names), and those that change names that are not hidden, and the next."""
    operations = [one for one in recording.operations if one.name in names or not names]
    if os.environ.get(FULL):
        return [one.number for one in operations]
    renames = [one for one in operations if one.name in ("rename", "exchange")]
    shown = {one.number for one in renames if any("/." not in f"/{path}" for path in (one.path, one.other))}
    near = {number + after for number in shown for after in (0, 1)} & {one.number for one in operations}
    return sorted(near | {one.number for one in operations[start % step :: step]})


def test_a_loss_of_power_leaves_the_old_state_or_the_new_one(harness: Harness, recording: Recording) -> None:
    chosen = {0, *some(recording, 23)}

    found = harness.lose_power(recording, chosen.__contains__)

    assert not found, "\n\n".join(found)


def test_a_kill_leaves_the_old_state_or_the_new_one(harness: Harness, recording: Recording) -> None:
    found = harness.kill(recording, some(recording, 19, start=1))
    found += harness.kill(recording, some(recording, 16, *WRITES), torn=True)

    assert not found, "\n\n".join(found)


@few("overlay of a function", "delete", "remove an overlay", "drop fields of both sorts")
def test_a_second_crash_while_going_on_does_no_more_harm(harness: Harness, recording: Recording) -> None:
    chosen = some(recording, 90, "rename", "exchange", start=7)
    found = harness.crash_again(recording, chosen if os.environ.get(FULL) else chosen[-1:])

    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: errno.errorcode[error])
def test_a_call_that_fails_is_told_and_leaves_the_old_state_or_the_new_one(
    harness: Harness, recording: Recording, error: int
) -> None:
    every, place = (1, 0) if os.environ.get(FULL) else (3, ERRORS.index(error))

    found = harness.fail(recording, some(recording, 23)[place::every], error)
    found += harness.fail(recording, some(recording, 31, start=7)[place::every], error, rest=True)

    assert not found, "\n\n".join(found)


@few("overlay of an array", "fields added to new files", "delete", "hide a field", "remove an overlay")
def test_an_fsync_that_failed_is_not_believed_later(harness: Harness, recording: Recording) -> None:
    found = harness.fail_then_lose_power(recording, some(recording, 24, "fsync", "fdatasync"))

    assert not found, "\n\n".join(found)


@few("overlay of a function", "delete", "bake")
def test_short_writes_change_nothing(harness: Harness, recording: Recording) -> None:
    found = harness.shorten(recording, some(recording, 12, *WRITES))

    assert not found, "\n\n".join(found)
