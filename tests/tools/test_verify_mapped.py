"""Files that are verified where they are in the page cache: the report is the one that reading them gives."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit import _core, progress, records
from recordkit.errors import StorageError
from recordkit.filesystems import _map_limit
from recordkit.tools import verify
from recordkit.tools.verify import _pass as verify_file_module
from recordkit.tools.verify._pass import _Pass
from tests.dataset.files import save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recordkit.tools import Verified

WINDOW = 8 << 20  # what is mapped at a time
_RANDOM = random.Random(1)
PAYLOADS = [
    *(_RANDOM.randbytes(_RANDOM.randrange(60_000)) for _ in range(300)),
    _RANDOM.randbytes(9_000_000),  # more than is mapped at a time
    *(_RANDOM.randbytes(_RANDOM.randrange(100)) for _ in range(1000)),
]
SIZE = sum(map(len, PAYLOADS)) + 16 * len(PAYLOADS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("mapped") / "data.tfrecord", PAYLOADS)


@pytest.fixture
def own(path: Path, tmp_path: Path) -> Path:
    """A copy to be changed for good."""
    own = tmp_path / "own.tfrecord"
    own.write_bytes(path.read_bytes())
    return own


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    _map_limit.mapped_at_most.cache_clear()
    yield
    _map_limit.mapped_at_most.cache_clear()


def by_either_way(path: Path, workers: int = 1) -> tuple[Verified, Verified]:
    """The reports of a pass over maps, as far as they go, and of one that only reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Pass, "_is_faster_mapped", lambda _: True)
        mapped = verify(path, workers=workers)
        patch.setattr(verify_file_module, "mapped_at_most", lambda: 0)
        return mapped, verify(path, workers=workers)


def mapped_bytes(patch: pytest.MonkeyPatch) -> list[int]:
    """Where it is noted how many bytes were checked in maps."""
    noted: list[int] = []
    check = _core.check_mapped

    def noting(descriptor: int, offset: int, most_bytes: int) -> tuple[int, bytes]:
        found = check(descriptor, offset, most_bytes)
        noted.append(found[0])
        return found

    patch.setattr(_core, "check_mapped", noting)
    return noted


class TestWays:
    @pytest.mark.parametrize("workers", [1, 3])
    def test_sound_file_is_checked_in_maps_to_its_end(
        self, workers: int, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        noted = mapped_bytes(monkeypatch)

        mapped, read = by_either_way(path, workers)

        assert sum(noted) == SIZE
        assert mapped == read
        assert (mapped.ok, mapped.records, mapped.bytes) == (True, len(PAYLOADS), SIZE)

    @pytest.mark.parametrize(("pace", "all_of_it"), [(0.5, True), (1.5, False)])
    def test_rest_goes_the_faster_way(
        self, pace: float, all_of_it: bool, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_Pass, "_pace", lambda check, take: pace if take() is not None else 1)
        noted = mapped_bytes(monkeypatch)

        assert verify(path, workers=1).records == len(PAYLOADS)

        assert (len(noted) > 2) is all_of_it

    def test_nothing_is_mapped_where_that_is_not_wanted(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RECORDKIT_MAPPED", "0")
        noted = mapped_bytes(monkeypatch)

        assert verify(path, workers=1).records == len(PAYLOADS)

        assert sum(noted) == 0

    def test_limit_that_is_none_is_told(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RECORDKIT_MAPPED", "plenty")

        with pytest.raises(StorageError, match="RECORDKIT_MAPPED in the environment"):
            verify(path)

    def test_payloads_are_looked_at_in_memory_that_stays(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        noted = mapped_bytes(monkeypatch)

        assert not verify(path, check="examples", workers=1).ok

        assert not noted

    def test_empty_file_is_sound(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verify_file_module, "_SMALL", -1)
        empty = save(tmp_path / "empty.tfrecord", [])

        mapped, read = by_either_way(empty)

        assert mapped == read
        assert mapped.ok


class TestDamage:
    @pytest.mark.slow
    @given(data=st.data())
    @settings(max_examples=40, deadline=None)
    def test_is_reported_as_by_reading(self, data: st.DataObject, path: Path) -> None:
        edges = st.integers(0, SIZE // (2 << 20)).flatmap(lambda n: st.integers(-40, 40).map(lambda by: (n << 21) + by))
        places = data.draw(st.lists(st.integers(0, SIZE - 1) | edges, min_size=1, max_size=3))
        stuff = data.draw(st.sampled_from([b"\0" * 5000, b"\xff", b"sixteen bytes...", records.pack(b"a record")]))
        whole = path.read_bytes()

        changed = bytearray(whole)
        for place in places:
            at = min(max(place, 0), SIZE - len(stuff))
            changed[at : at + len(stuff)] = stuff
        path.write_bytes(changed[: data.draw(st.sampled_from([SIZE, places[0] % SIZE]))])
        mapped, read = by_either_way(path)
        path.write_bytes(whole)

        assert mapped == read

    @pytest.mark.parametrize("left", [WINDOW - 1, WINDOW, WINDOW + 1, WINDOW + 4096, SIZE - 1])
    def test_file_cut_short_on_the_way_is_told(self, left: int, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def cut(report: progress.Report) -> None:
            os.truncate(own, left)

        monkeypatch.setattr(_Pass, "_is_faster_mapped", lambda _: True)
        with progress.reporting(cut):
            cut_on_the_way = verify(own, workers=1)
        after = verify(own, workers=1)

        assert not cut_on_the_way.ok
        assert [damage.kind for damage in cut_on_the_way.damage] == ["cut_short"]
        assert cut_on_the_way.records == after.records
