"""What is made of a file may be read by nobody who may not read that file."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

import recordkit as rk
from tests.storage import reading

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODES = [0o600, 0o640, 0o644]


def modes(folder: Path) -> set[int]:
    """Those of all files in a folder."""
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=MODES, ids=oct)
def private(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[int, Path]:
    """A dataset whose files have these permissions."""
    rk.write(tmp_path / "train", {"id": [1, 2, 3, 4], "x": [1, 2, 3, 4]}, records_per_shard=2)
    for path in (tmp_path / "train").rglob("*"):
        if path.is_file():
            path.chmod(request.param)
    return request.param, tmp_path / "train"


COPIES: dict[str, Callable[[Path, Path], object]] = {
    "bake": rk.bake,
    "add": lambda path, out: rk.add_fields(path, {"y": [1, 2, 3, 4]}, out=out),
    "drop": lambda path, out: rk.drop_fields(path, ["x"], out=out),
    "rename": lambda path, out: rk.rename_fields(path, {"x": "y"}, out=out),
    "cast": lambda path, out: rk.cast_fields(path, {"x": "int8"}, out=out),
    "filter": lambda path, out: rk.filter(path, "id > 1", out=out),
    "overlay elsewhere": lambda path, out: rk.add_fields(path, {"y": [1, 2, 3, 4]}, overlay=out),
}
CHANGES: dict[str, Callable[[Path], object]] = {
    "add": lambda path: rk.add_fields(path, {"y": [1, 2, 3, 4]}),
    "add by a function": lambda path: rk.add_fields(path, {"y": rk.Computed("int64", double, reads=["x"])}),
    "hide": lambda path: rk.drop_fields(path, ["x"]),
    "delete": lambda path: rk.delete(path, where="id == 1"),
    "append": lambda path: more(path),
    "append and skip": lambda path: more(path, on_error="skip"),
}


def double(row: dict[str, int]) -> int:
    return 2 * row["x"]


def more(path: Path, **options: str) -> None:
    with rk.append(path, **options) as writer:  # type: ignore[arg-type]
        writer.write({"id": 5, "x": 5})
        if options:
            writer.write({"id": "no number", "x": 6})


class TestFolders:
    @pytest.mark.parametrize("copy", COPIES)
    def test_a_copy_has_the_permissions_of_its_source(self, private: tuple[int, Path], copy: str) -> None:
        mode, path = private

        COPIES[copy](path, path.with_name("out"))

        assert modes(path.with_name("out")) == {mode}
        assert stat.S_IMODE(path.with_name("out").stat().st_mode) == {0o600: 0o700, 0o640: 0o750, 0o644: 0o755}[mode]

    @pytest.mark.parametrize("change", CHANGES)
    def test_what_is_kept_beside_records_or_behind_them_has_theirs(
        self, private: tuple[int, Path], change: str
    ) -> None:
        mode, path = private

        CHANGES[change](path)

        assert modes(path) == {mode}

    def test_a_copy_of_files_with_several_has_what_all_of_them_allow(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "train", {"id": [1, 2, 3, 4]}, records_per_shard=2)
        reading.files(tmp_path / "train")[1].chmod(0o600)

        rk.bake(tmp_path / "train", tmp_path / "out")

        assert modes(tmp_path / "out") == {0o600}

    def test_the_staging_folder_is_as_private_while_the_copy_is_made(self, private: tuple[int, Path]) -> None:
        mode, path = private
        with rk.create(path.with_name("out"), {"id": "int64"}, mode=mode) as writer:
            writer.write({"id": 1})
            staging = path.with_name(".out.recordkit")

            assert stat.S_IMODE(staging.stat().st_mode) == {0o600: 0o700, 0o640: 0o750, 0o644: 0o755}[mode]


class TestFiles:
    @pytest.mark.parametrize("mode", MODES, ids=oct)
    def test_one_that_is_extended_keeps_its_own_and_gives_it_to_what_is_beside_it(
        self, tmp_path: Path, mode: int
    ) -> None:
        path = tmp_path / "one.tfrecord"
        rk.write(path, [{"id": 1, "x": 1}])
        path.chmod(mode)

        more(path, on_error="skip")

        assert modes(tmp_path) == {mode}
        assert len(rk.open(path)) == 2

    @pytest.mark.parametrize("mode", MODES, ids=oct)
    def test_a_repaired_one_has_that_of_the_damaged_one(self, tmp_path: Path, mode: int) -> None:
        path = tmp_path / "one.tfrecord"
        rk.write(path, {"id": [1, 2, 3]})
        data = bytearray(path.read_bytes())
        data[-5] ^= 1
        path.write_bytes(data)
        path.chmod(mode)
        (tmp_path / "out").mkdir()

        rk.repair(path, tmp_path / "out/mended.tfrecord")

        assert modes(tmp_path / "out") == {mode}

    def test_who_may_only_read_gets_copies_that_can_be_changed(self, tmp_path: Path) -> None:
        path = tmp_path / "one.tfrecord"
        rk.write(path, {"id": [1, 2, 3]})
        path.chmod(0o440)

        rk.bake(path, tmp_path / "two.tfrecord")

        assert stat.S_IMODE((tmp_path / "two.tfrecord").stat().st_mode) == 0o640


@pytest.mark.parametrize("passing", [False, True])
def test_a_cache_of_a_pipeline(private: tuple[int, Path], tmp_path: Path, passing: bool) -> None:
    mode, path = private
    ds = rk.open(path)
    pipe = ds.concat(ds.shuffle(1)) if passing else ds.select("id").shuffle(1)

    list(pipe.cache(tmp_path / "kept"))

    assert modes(tmp_path / "kept") == {mode}
