from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from recordkit.errors import ConflictError, OutcomeUnknownError, StorageError
from recordkit.filesystems import IF_ABSENT, IfUnchanged, MemoryFileSystem, RandomFaults, RequestFault
from recordkit.testing import FileSystemContract

if TYPE_CHECKING:
    from collections.abc import Callable


class TestMemoryFileSystem(FileSystemContract):
    @pytest.fixture
    def files(self) -> MemoryFileSystem:
        return MemoryFileSystem()

    @pytest.fixture
    def folder(self) -> str:
        return "train"


def failing(*faults: RequestFault) -> MemoryFileSystem:
    """Whose next requests fail in these ways."""
    left = list(faults)
    return MemoryFileSystem(lambda *_: left.pop(0) if left else None)


class TestFaults:
    def test_a_failed_request_is_not_carried_out(self) -> None:
        files = failing(RequestFault.FAILED)

        with pytest.raises(StorageError, match="put failed") as caught:
            files.put("a", b"one")

        assert not isinstance(caught.value, OutcomeUnknownError)
        assert files.files == {}

    @pytest.mark.parametrize("do", [lambda f: f.open("a"), lambda f: f.stat("a"), lambda f: list(f.list("a"))])
    def test_reading_fails_too(self, do: Callable[[MemoryFileSystem], object]) -> None:
        with pytest.raises(StorageError, match="failed"):
            do(failing(RequestFault.FAILED))

    def test_a_lost_reply_is_that_of_a_request_that_was_carried_out(self) -> None:
        files = failing(RequestFault.LOST, RequestFault.LOST)

        with pytest.raises(OutcomeUnknownError):
            files.put("a", b"one")
        assert files.files == {"a": b"one"}

        with pytest.raises(OutcomeUnknownError):
            files.remove("a")
        assert files.files == {}

    def test_a_late_request_is_carried_out_when_it_is_delivered(self) -> None:
        files = failing(RequestFault.LATE)

        with pytest.raises(OutcomeUnknownError):
            files.put("a", b"one", IF_ABSENT)
        assert (files.files, files.late) == ({}, 1)

        files.deliver()
        assert (files.files, files.late) == ({"a": b"one"}, 0)

    def test_the_condition_of_a_late_request_is_checked_when_it_is_delivered(self) -> None:
        files = failing(RequestFault.LATE)
        with pytest.raises(OutcomeUnknownError):
            files.put("a", b"one", IF_ABSENT)
        files.put("a", b"two")

        files.deliver()

        assert files.files == {"a": b"two"}

    def test_a_repeated_request_meets_its_own_effect(self) -> None:
        files = failing(RequestFault.REPEATED)

        with pytest.raises(ConflictError):
            files.put("a", b"one", IF_ABSENT)

        assert files.files == {"a": b"one"}

    def test_an_echo_comes_after_what_others_did(self) -> None:
        files = failing(RequestFault.ECHOED)
        version = files.put("a", b"one")
        files.put("a", b"two", IfUnchanged(version))

        files.deliver()

        assert files.files == {"a": b"one"}

    def test_a_listing_can_be_out_of_date(self) -> None:
        faults: list[RequestFault | None] = [None, None, None, RequestFault.STALE]
        files = MemoryFileSystem(lambda *_: faults.pop(0))
        files.put("folder/a", b"")
        files.put("folder/b", b"")
        files.remove("folder/a")

        assert list(files.list("folder")) == []

    def test_the_same_seed_gives_the_same_faults(self) -> None:
        drawn = [RandomFaults(random.Random(7), 0.5) for _ in range(2)]

        first, second = ([faults("put", "a") for _ in range(200)] for faults in drawn)

        assert first == second
        assert set(first) == {
            None,
            RequestFault.FAILED,
            RequestFault.LOST,
            RequestFault.LATE,
            RequestFault.REPEATED,
            RequestFault.ECHOED,
        }
