from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from .harness import Step, succeed

if TYPE_CHECKING:
    from .harness import Harness


@pytest.mark.parametrize("overwrite", [False, True], ids=["new", "overwrite"])
@pytest.mark.parametrize("may_mount", [True, False], ids=["a small tmpfs where allowed", "the shim's limit"])
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(
    harness: Harness, may_mount: bool, overwrite: bool
) -> None:
    """On a file system of 4 MB; where a test may mount none, on one that the shim says is full after 2 MB more."""
    with harness.place({}) as root:
        step = Step("run_out_of_room", {"may_mount": may_mount, "overwrite": overwrite})
        outcome = harness.call("tests.storage.crash.full_disk", step, root)

    succeed(outcome)
    facts = outcome.value
    assert facts["errno"] == errno.ENOSPC
    assert str(root / "disk") in facts["error"]
    assert "Free some space" in facts["error"]
    assert facts["unchanged"]
    assert facts["seen"] == (["train"] if overwrite else [])
    assert facts["committed"] >= 10
    assert facts["equal"]
