"""Verifying datasets: what is checked, how it is reported. The failure scenarios are in test_scenarios.py."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import random
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit import images, records
from recordkit.codecs._gzip import compress_member
from recordkit.errors import StorageError
from recordkit.progress import Report, reporting
from recordkit.storage.format import _names
from recordkit.tools import FileReport, Verified, repair, verify
from recordkit.tools.verify import _pass as verify_file_module
from recordkit.tools.verify.checks import _repeats as repeats_module
from recordkit.tools.verify.checks._repeats import Repeats
from tests.storage.damages import COUNT, F5, damaged, flip, payloads

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = rk.Schema({"id": "int64", "name": "string"})


def dataset(folder: Path, shards: int = 3, rows: int = 10, **options: Any) -> Path:
    """A folder of shards with a manifest."""
    with rk.create(folder, SCHEMA, shards=shards, **options) as writer:
        writer.write_batch({"id": list(range(rows)), "name": [f"n{number}" for number in range(rows)]})
    return folder


def shard_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tfrecord*"))


def change(path: Path, byte: int, bit: int = 0) -> None:
    path.write_bytes(flip(path.read_bytes(), byte, bit))


def kinds(report: Verified) -> list[str]:
    return [damage.kind for damage in report.damage]


def only(report: Verified) -> FileReport:
    (file,) = report.files
    return file


class TestSound:
    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    @pytest.mark.parametrize("workers", [1, 4])
    def test_dataset_of_ours_is_sound(self, compression: Any, workers: int, tmp_path: Path) -> None:
        folder = dataset(tmp_path / "train", compression=compression)

        report = verify(folder, workers=workers)

        assert report.ok
        assert [file.verdict for file in report.files] == ["sound"] * 3
        assert (report.records, report.bytes) == (10, sum(file.stat().st_size for file in shard_files(folder)))
        assert {file.compression for file in report.files} == {compression}
        assert not report.damage

    @pytest.mark.parametrize("compress", [bytes, gzip.compress, zlib.compress])
    def test_foreign_file_is_sound(self, compress: Any, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(compress(F5))

        report = verify(tmp_path / "a.tfrecord", check="records")

        assert (report.ok, report.records, only(report).notes) == (True, 5, ())

    def test_empty_file_is_sound_and_noted(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(b"")

        file = only(verify(tmp_path))

        assert (file.ok, file.records) == (True, 0)
        assert "empty" in file.notes[0]

    @pytest.mark.parametrize("seekable", [True, False])
    def test_open_files_and_pipes_are_taken(self, seekable: bool) -> None:
        file, bad = io.BytesIO(F5), io.BytesIO(flip(F5, 66))
        file.seekable = bad.seekable = lambda: seekable  # type: ignore[method-assign]

        good, damaged_file = verify(file), verify(bad)

        assert (good.ok, good.records, good.bytes) == (True, 5, 135)
        assert (kinds(damaged_file), damaged_file.damage[0].record) == (["bad_payload_crc"], 2)
        assert damaged_file.records == (4 if seekable else 2)

    @pytest.mark.parametrize("compression", [None, "gzip"])
    def test_many_threads_find_the_same_in_one_file(
        self, compression: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verify_file_module, "_SMALL", 0)
        monkeypatch.setattr(verify_file_module, "CHUNK_BYTES", 1000)
        path = tmp_path / "a.tfrecord"
        rng = random.Random(1)
        with rk.create(path, rk.Schema({"x": "bytes"}), compression=compression) as writer:
            writer.write_batch({"x": [rng.randbytes(rng.randrange(200)) for _ in range(5000)]})

        sound = verify(path, workers=4)
        change(path, path.stat().st_size // 2)
        broken = [verify(path, workers=workers) for workers in (1, 4)]

        assert (sound.ok, sound.records) == (True, 5000)
        assert broken[0] == broken[1]
        assert not broken[0].ok

    @pytest.mark.parametrize("check", ["records", "examples"])
    def test_few_files_are_open_at_a_time(self, check: Any, tmp_path: Path) -> None:
        for number in range(100):
            (tmp_path / f"{number}.tfrecord").write_bytes(records.pack(SCHEMA.encode({"id": [1], "name": ["a"]})[0]))
        most = 0

        def look(report: Report) -> None:
            nonlocal most
            most = max(most, open_files())

        before = open_files()
        with reporting(look):
            report = verify(tmp_path, check=check, workers=2)

        assert (report.ok, len(report.files)) == (True, 100)
        assert most - before < 20

    def test_bytes_are_read_once(self, tmp_path: Path) -> None:
        data = b"".join(records.pack(random.Random(2).randbytes(1000)) for _ in range(1000))
        file = CountedReads(data)

        verify(file)

        assert file.read_bytes < len(data) + 20_000


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (names, not paths)


class CountedReads(io.BytesIO):
    read_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.read_bytes += len(data)
        return data


class TestManifest:
    def test_file_cut_between_records_is_found(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        rk.write(path, [{"id": number} for number in range(10)])
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 10 * 7])

        file = only(verify(path))

        assert (file.verdict, file.records) == ("damaged", 7)
        assert [damage.kind for damage in file.damage] == ["record_count", "file_size", "index"]
        assert "7 records, but the manifest says 10" in file.damage[0].words

    def test_other_records_of_the_same_size_are_found(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        rk.write(path, [{"id": number} for number in range(10)])
        frame = path.stat().st_size // 10
        data = path.read_bytes()
        path.write_bytes(data[frame : 2 * frame] + data[:frame] + data[2 * frame :])

        report = verify(path)

        assert kinds(report)[0] == "record_digest"
        assert not report.ok

    def test_compressed_bytes_that_make_no_difference_are_found(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord.gz"
        rk.write(path, [{"id": number} for number in range(10)], compression="gzip")
        change(path, 4)  # the time in the header of the first member

        damages = {damage.kind: damage.words for damage in verify(path).damage}

        assert "its records are the same" in damages["file_crc"]

    def test_gzip_members_that_say_another_count_are_found(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord.gz").write_bytes(compress_member(F5, 5, 6) + compress_member(F5, 4, 6))

        (damage,) = verify(tmp_path).damage

        assert (damage.kind, damage.words) == (
            "gzip_damaged",
            "the headers of its gzip members say 9 records, but there are 10",
        )

    def test_file_that_was_compressed_since_is_found(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        rk.write(path, [{"id": number} for number in range(10)])
        path.write_bytes(gzip.compress(path.read_bytes()))

        assert kinds(verify(path))[0] == "compression"

    def test_missing_shards_are_reported_and_the_others_checked(self, tmp_path: Path) -> None:
        folder = dataset(tmp_path / "train")
        files = shard_files(folder)
        files[1].unlink()
        change(files[2], 13)

        report = verify(folder)

        assert [file.verdict for file in report.files] == ["sound", "missing", "damaged"]
        assert "is missing" in report.files[1].damage[0].words

    def test_files_that_are_not_listed_are_problems(self, tmp_path: Path) -> None:
        folder = dataset(tmp_path / "train")
        (folder / "extra.tfrecord").write_bytes(F5)
        (folder / "README.md").write_text("about")

        report = verify(folder)

        assert [(problem.kind, problem.path) for problem in report.problems] == [
            ("not_in_manifest", str(folder / "extra.tfrecord"))
        ]
        assert not report.ok
        assert all(file.ok for file in report.files)

    def test_manifest_that_cannot_be_read_is_a_problem(self, tmp_path: Path) -> None:
        folder = dataset(tmp_path / "train")
        (folder / "_recordkit" / "manifest.json").write_text("{")

        report = verify(folder)

        assert [problem.kind for problem in report.problems] == ["manifest"]
        assert (report.records, len(report.files)) == (10, 3)

    def test_staging_of_a_writer_is_a_note(self, tmp_path: Path) -> None:
        folder = dataset(tmp_path / "train")
        _names.staging_of(folder).mkdir()

        report = verify(folder)

        assert report.ok
        assert "a writer is at work" in report.notes[0]

    def test_counts_of_tfds_are_held_against_the_files(self, tmp_path: Path) -> None:
        for number in range(2):
            (tmp_path / f"toy-train.tfrecord-0000{number}-of-00002").write_bytes(F5)
        split = {"name": "train", "shardLengths": ["5", "6"]}
        (tmp_path / "dataset_info.json").write_text(json.dumps({"name": "toy", "splits": [split]}))

        report = verify(tmp_path)

        assert [file.ok for file in report.files] == [True, False]
        assert "5 records, but dataset_info.json says 6" in report.damage[0].words


class TestSets:
    def test_incomplete_set_is_a_problem_and_the_rest_is_checked(self, tmp_path: Path) -> None:
        for number in (0, 2, 3):
            (tmp_path / f"a-0000{number}-of-00004.tfrecord").write_bytes(F5)

        for where in (tmp_path, str(tmp_path / "a-*"), str(tmp_path / "a@4")):
            report = verify(where)

            assert (report.ok, len(report.files), report.records) == (False, 3, 15)
            assert "00001 is missing" in report.problems[0].words

    def test_one_name_with_two_totals_is_a_problem(self, tmp_path: Path) -> None:
        for name in ("a-00000-of-00001", "a-00000-of-00002", "a-00001-of-00002"):
            (tmp_path / f"{name}.tfrecord").write_bytes(F5)

        report = verify(tmp_path)

        assert (len(report.files), [problem.kind for problem in report.problems]) == (3, ["incomplete"])

    def test_list_with_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(F5)

        report = verify([tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"])

        assert [file.verdict for file in report.files] == ["sound", "missing"]

    def test_nothing_at_all_is_an_error(self, tmp_path: Path) -> None:
        for where in (tmp_path, tmp_path / "a.tfrecord", str(tmp_path / "*"), [], [tmp_path / "a", tmp_path / "b"]):
            with pytest.raises(StorageError):
                verify(where)
        with pytest.raises(TypeError, match="expected a path"):
            verify(7)  # type: ignore[arg-type]

    def test_file_that_cannot_be_read_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(F5)
        (tmp_path / "b.tfrecord").symlink_to(tmp_path / "gone")
        (tmp_path / "c.tfrecord").symlink_to(tmp_path / "c.tfrecord")

        verdicts = {file.path[-10:]: file.verdict for file in verify(str(tmp_path / "?.tfrecord")).files}

        assert verdicts["a.tfrecord"] == "sound"
        assert set(verdicts.values()) <= {"sound", "missing", "unreadable"}


class TestIndex:
    def index_of(self, path: Path) -> Path:
        return path.parent / "_recordkit" / f"{path.name}.rki"

    @pytest.mark.parametrize("rows", [10, 1024, 70_000])
    @pytest.mark.parametrize("same_size", [True, False])
    def test_every_changed_byte_is_found(self, rows: int, same_size: bool, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        names = ["n" if same_size else "n" * (number % 17) for number in range(rows)]
        with rk.create(path, rk.Schema({"name": "string"})) as writer:
            writer.write_batch({"name": names})
        sound, index = verify(path), self.index_of(path)
        data = index.read_bytes()

        for byte in random.Random(3).sample(range(len(data)), 20):
            index.write_bytes(flip(data, byte))

            assert kinds(verify(path)) == ["index"], byte
        assert sound.ok

    def test_index_of_another_file_is_found(self, tmp_path: Path) -> None:
        for name, start in (("a", 0), ("b", 100)):
            rk.write(tmp_path / f"{name}.tfrecord", [{"id": number} for number in range(start, start + 20)])
        self.index_of(tmp_path / "a.tfrecord").write_bytes(self.index_of(tmp_path / "b.tfrecord").read_bytes())

        (damage,) = verify(tmp_path / "a.tfrecord").damage

        assert damage.kind == "index"
        assert "the index of another file" in damage.words


class TestPayloads:
    def test_payload_that_is_no_example_is_found(self, tmp_path: Path) -> None:
        good = list(SCHEMA.encode({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
        data = b"".join(map(records.pack, [good[0], b"\x0a\xff", good[1], b"\xff\xff", good[2]]))
        (tmp_path / "a.tfrecord").write_bytes(data)

        report = verify(tmp_path, check="examples", schema=SCHEMA)

        assert verify(tmp_path).ok
        assert [(damage.kind, damage.record) for damage in report.damage] == [("malformed", 1), ("malformed", 3)]
        assert report.records == 5

    def test_payload_that_does_not_agree_with_the_schema_is_found(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        other = rk.Schema({"id": "float32", "name": "string"})
        rows = [SCHEMA.encode({"id": [1], "name": ["a"]})[0], other.encode({"id": [1], "name": ["a"]})[0]]
        path.write_bytes(b"".join(map(records.pack, rows * 3)))

        declared = verify(path, check="examples", schema={"id": "int64", "name": "string"})

        assert [(damage.kind, damage.record) for damage in declared.damage] == [
            ("schema", record) for record in (1, 3, 5)
        ]
        assert "expected 1 int64 value, found float" in declared.damage[0].words
        assert not verify(path, check="examples").ok

    def test_schema_of_the_manifest_counts(self, tmp_path: Path) -> None:
        folder = dataset(tmp_path / "train", compression="gzip")

        assert verify(folder, check="examples").ok
        assert not verify(folder, check="examples", schema={"id": "string"}).ok

    def test_payloads_of_the_users_own_are_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        with rk.create(path, None) as writer:
            writer.write_chunk(records.pack_many([b"\xff\xff", b"mine"]))

        report = verify(path, check="examples")

        assert report.ok
        assert "not Examples" in report.notes[0]

    def test_file_of_other_payloads_is_given_up_soon(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(b"".join(records.pack(b"\xff%d" % number) for number in range(1500)))

        file = only(verify(tmp_path, check="examples"))

        assert (file.records, len(file.damage)) == (1500, 1000)
        assert "not checked" in file.notes[-1]

    @pytest.mark.parametrize("cut", [4096, 32768])
    def test_jpeg_cut_at_a_block_inside_a_sound_record_is_found(self, cut: int, tmp_path: Path) -> None:
        rng = np.random.default_rng(5)
        whole = images.encode(rng.integers(0, 255, (256, 256, 3), np.uint8), "jpeg")
        assert len(whole) > cut
        path = tmp_path / "a.tfrecord"
        with rk.create(path, rk.Schema({"image": "jpeg"})) as writer:
            writer.write_batch({"image": [whole, whole[:cut], whole]})

        report = verify(path, check="images")

        assert verify(path, check="examples").ok
        assert [(damage.kind, damage.record) for damage in report.damage] == [("bad_picture", 1)]
        assert report.damage[0].words.startswith(f"image: {cut} bytes of a jpeg")

    def test_pictures_in_fields_of_any_bytes_are_looked_at(self, tmp_path: Path) -> None:
        png = images.encode(np.zeros((20, 20), np.uint8), "png")
        path = tmp_path / "a.tfrecord"
        with rk.create(path, rk.Schema({"data": "bytes[?]", "more": "png?"})) as writer:
            writer.write_batch({"data": [[b"other", png], [png, png[:-3]], []], "more": [None, png, None]})

        report = verify(path, check="images")

        assert [(damage.kind, damage.record) for damage in report.damage] == [("bad_picture", 1)]

    def test_checks_have_names(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="check is 'records'"):
            verify(tmp_path, check="all")  # type: ignore[arg-type]


class TestRepeats:
    def repeats(self, numbers: list[int], size: int = 100) -> list[tuple[int, int, int]]:
        found = Repeats()
        for number in numbers:
            found.add(size.to_bytes(8, "little") + number.to_bytes(4, "little"), 1)
        return [(each.record, each.earlier, each.records) for each in found.result()]

    def test_block_written_twice_is_noted(self, tmp_path: Path) -> None:
        data = [records.pack(b"%d" % number * 50) for number in range(100)]
        (tmp_path / "a.tfrecord").write_bytes(b"".join([*data[:60], *data[40:]]))

        file = only(verify(tmp_path))

        assert file.ok
        assert file.notes[0].startswith("records 60 to 79 (")
        assert "those from 40 on" in file.notes[0]

    def test_short_runs_are_normal_and_large_ones_not(self) -> None:
        numbers = [*range(50), *range(10, 17)]

        assert self.repeats(numbers) == []
        assert self.repeats([*numbers, 17]) == [(50, 10, 8)]
        assert self.repeats(numbers, 1000) == [(50, 10, 7)]
        assert self.repeats([*range(50), 3], 100_000) == []

    def test_records_that_are_all_alike_are_no_block(self) -> None:
        assert self.repeats([7] * 1000) == []
        assert self.repeats([1, 2, 3] * 300) == []

    def test_what_a_manifest_confirms_is_not_noted(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a.tfrecord", [{"id": number % 50} for number in range(100)])

        assert only(verify(tmp_path)).notes == ()

    def test_large_files_are_looked_at_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(repeats_module, "_KEPT", 200)

        found = self.repeats([*range(1000), *range(950, 970), *range(2000, 3000), *range(2990, 3000)])

        assert found == [(1000, 950, 20), (2020, 2010, 10)]


class TestReport:
    def test_is_worth_pasting(self, tmp_path: Path) -> None:
        folder = dataset(tmp_path / "train", shards=30, rows=300)
        files = shard_files(folder)
        files[3].unlink()
        change(files[7], 14)
        size = sum(file.stat().st_size for file in shard_files(folder))

        text = str(verify(folder))

        assert text == (
            f"30 files, 289 sound records, {size / 1000:.3g} KB: 2 files not sound\n"
            f"  {files[3]}: missing\n"
            "    the manifest lists it, but it is missing\n"
            f"  {files[7]}: damaged, 9 sound records in {files[7].stat().st_size} bytes\n"
            "    record 0 at byte 0: the payload or its checksum is damaged\n"
            "    the manifest says 10 records, but 9 are sound"
        )

    def test_many_damages_are_cut_short(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes((flip(F5, 12) + F5) * 20)

        assert "and 10 more" in str(verify(tmp_path))

    def test_is_frozen_and_goes_into_json(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(flip(F5, 12))

        report = verify(tmp_path)

        with pytest.raises(dataclasses.FrozenInstanceError):
            report.files = ()  # type: ignore[misc]
        plain = json.loads(json.dumps(report.to_dict()))
        assert (plain["ok"], plain["records"], plain["files"][0]["verdict"]) == (False, 4, "damaged")
        assert plain["files"][0]["damage"][0]["kind"] == "bad_payload_crc"

    def test_progress_is_told(self, tmp_path: Path) -> None:
        folder = dataset(tmp_path / "train")
        told: list[Report] = []

        with reporting(told.append):
            verify(folder, workers=2)

        assert (
            max(report.done for report in told) == told[0].total == sum(f.stat().st_size for f in shard_files(folder))
        )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A dataset in every compression."""
    ways: tuple[Any, ...] = (None, "gzip", "zlib")
    return [dataset(tmp_path_factory.mktemp("law") / "train", 2, 6, compression=way) for way in ways]


class TestLaws:
    @given(data=st.data())
    def test_every_flipped_bit_is_found(self, data: st.DataObject, folders: list[Path]) -> None:
        folder = data.draw(st.sampled_from(folders))
        files = [*shard_files(folder), *sorted((folder / "_recordkit").glob("*.rki"))]
        file = data.draw(st.sampled_from(files))
        bit = data.draw(st.integers(0, 8 * file.stat().st_size - 1))

        change(file, bit // 8, bit % 8)
        flipped = verify(folder, workers=1)
        change(file, bit // 8, bit % 8)
        restored = verify(folder, workers=1)

        assert (flipped.ok, restored.ok) == (False, True)

    def test_what_repair_writes_verify_accepts(self, tmp_path: Path) -> None:
        for seed in range(COUNT // 10):
            rng = random.Random(seed)
            whole = b"".join(map(records.pack, payloads(rng, 12)))
            compress = rng.choice((bytes, gzip.compress, zlib.compress))
            src, dst = tmp_path / "a.tfrecord", tmp_path / f"{seed}.tfrecord"
            src.write_bytes(damaged(compress(whole), rng))
            before = verify(src)
            if before.files[0].verdict == "wrong_file":
                continue

            repaired = repair(src, dst, overwrite=True)
            if not repaired.recovered:
                assert (before.records, dst.exists()) == (0, False), f"seed {seed}: {before}"
                continue
            after = verify(dst)

            assert after.ok, f"seed {seed}: {after}"
            assert (before.records, after.records) == (repaired.recovered, repaired.recovered), f"seed {seed}"
            assert before.ok == repaired.ok, f"seed {seed}: {before}"
