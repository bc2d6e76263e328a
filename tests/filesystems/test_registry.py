from __future__ import annotations

import pytest

from recordkit.errors import MissingExtraError, StorageError
from recordkit.filesystems import LocalFileSystem, MemoryFileSystem, find_file_system, given_path, register


def test_a_path_is_of_this_machine() -> None:
    files, path = find_file_system("train/a.tfrecord")

    assert isinstance(files, LocalFileSystem)
    assert path == "train/a.tfrecord"


def test_all_addresses_of_a_scheme_share_a_file_system() -> None:
    files, path = find_file_system("memory://registry/a")
    again, _ = find_file_system("MEMORY://registry/b")

    assert isinstance(files, MemoryFileSystem)
    assert files is again
    assert path == "registry/a"


@pytest.mark.parametrize("address", ["s3://bucket/train", "gs://bucket/a", "file:///tmp/a", "s3:/bucket/train"])
def test_a_scheme_that_nothing_handles_is_refused_as_everywhere(address: str) -> None:
    with pytest.raises(StorageError) as caught:
        find_file_system(address)
    with pytest.raises(StorageError) as known:
        given_path(address)

    assert str(caught.value) == str(known.value)


def test_a_missing_package_is_named_with_the_extra_that_has_it() -> None:
    def make() -> MemoryFileSystem:
        raise ModuleNotFoundError

    register("test-missing", make, package="obstore", extra="cloud")

    with pytest.raises(MissingExtraError) as caught:
        find_file_system("test-missing://bucket/a")

    assert str(caught.value) == "test-missing:// needs obstore: pip install 'recordkit[cloud]'"


def test_a_file_system_is_made_when_its_first_address_is_used() -> None:
    made = []

    def make() -> MemoryFileSystem:
        made.append(MemoryFileSystem())
        return made[-1]

    register("test-late", make)
    assert made == []

    assert find_file_system("test-late://a")[0] is find_file_system("test-late://b")[0] is made[0]
