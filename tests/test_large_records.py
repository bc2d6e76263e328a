"""Large records: how much memory they take, and that to check them a piece at a time changes nothing."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import textwrap
import zlib
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import _core, records
from recordkit.errors import CorruptRecordError
from recordkit.filesystems import ObjectFile
from recordkit.storage.read import Damage, _salvage
from recordkit.storage.read._salvage import SkippedRecords, walk, walk_checking
from recordkit.tools import verify
from recordkit.tools.verify import _pass as verify_file
from tests.chance import generator
from tests.storage.damages import COUNT, damaged
from tests.wire import delimited

if TYPE_CHECKING:
    from pathlib import Path

RECORD = 112  # MiB
SLACK = 64


def example(value: bytes) -> bytes:
    feature = delimited(1, delimited(1, value))
    return delimited(1, delimited(1, delimited(1, b"x") + delimited(2, feature)))


class TestMemory:
    """What each way takes, measured in a child of a program that has imported everything."""

    @staticmethod
    def peaks(path: Path) -> dict[str, float]:
        program = f"""
            import contextlib, io, json, os, sys
            import numpy as np
            import recordkit as rk
            from recordkit.cli import main

            def status(name):
                with open("/proc/self/status") as lines:
                    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

            def skip():
                for batch in rk.open(path, on_error="skip").batch(8):
                    pass

            path = {str(path)!r}
            ways = {{
                "verify": lambda: rk.verify(path),
                "skip": skip,
                "repair": lambda: rk.repair(path, path + ".new.tfrecord", overwrite=True),
                "info": lambda: main(["info", path]),
                "item": lambda: rk.open(path)[50],
            }}
            rk.verify({str(path.parent / "small.tfrecord")!r})
            peaks = {{}}
            for name, way in ways.items():
                reading, writing = os.pipe()
                child = os.fork()
                if not child:
                    before = status("VmRSS")
                    with contextlib.suppress(rk.RecordKitError), contextlib.redirect_stdout(io.StringIO()):
                        way()
                    os.write(writing, json.dumps(status("VmHWM") - before).encode())
                    os._exit(0)
                os.waitpid(child, 0)
                peaks[name] = json.loads(os.read(reading, 100))
            print(json.dumps(peaks))
        """
        command = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        peaks: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return peaks

    @staticmethod
    def file(folder: Path, *, at: int | None, zipped: bool) -> Path:
        """Small records around a large one of which, at a place, a few bytes are others."""
        few = b"".join(records.pack(example(b"%d" % number)) for number in range(50))
        (folder / "small.tfrecord").write_bytes(few)
        large = bytearray(records.pack(example(os.urandom(1 << 10) * (RECORD << 10))))
        if at is not None:
            large[at : at + 4] = b"\x55\xaa\x55\xab"
        path = folder / "a.tfrecord"
        with gzip.open(path, "wb", compresslevel=1) if zipped else path.open("wb") as file:
            file.write(few + large + few)
        return path

    @pytest.mark.slow
    @pytest.mark.parametrize("zipped", [False, True])
    def test_a_damaged_payload_costs_no_more_than_the_record_and_64_mb(self, tmp_path: Path, zipped: bool) -> None:
        peaks = self.peaks(self.file(tmp_path, at=RECORD << 19, zipped=zipped))

        assert max(peaks.values()) < RECORD + SLACK, peaks
        assert zipped or peaks["verify"] < SLACK

    @pytest.mark.slow
    def test_a_damaged_length_costs_little(self, tmp_path: Path) -> None:
        peaks = self.peaks(self.file(tmp_path, at=3, zipped=False))

        assert max(peaks.values()) < SLACK, peaks

    @pytest.mark.slow
    @pytest.mark.parametrize("zipped", [False, True])
    def test_a_sound_one_is_verified_in_little_and_shown_in_twice_its_size(self, tmp_path: Path, zipped: bool) -> None:
        peaks = self.peaks(self.file(tmp_path, at=None, zipped=zipped))

        assert peaks["verify"] < SLACK
        assert peaks["info"] < 2 * RECORD + SLACK


class TestBombs:
    """Compressed files of a few MB whose one record claims 8 GiB."""

    @staticmethod
    def file(folder: Path) -> Path:
        """The start of such a record, and 300 MiB of it."""
        length = (8 << 30).to_bytes(8, "little")
        data = zlib.compressobj(1, zlib.DEFLATED, 31)
        path = folder / "a.tfrecord"
        with path.open("wb") as file:
            file.write(data.compress(length + _core.mask_crc(_core.crc32c(length)).to_bytes(4, "little")))
            for _ in range(300):
                file.write(data.compress(bytes(1 << 20)))
            file.write(data.flush())
        return path

    def test_open_says_what_would_allow_it(self, tmp_path: Path) -> None:
        with pytest.raises(CorruptRecordError, match="larger than max_record_bytes allows") as caught:
            rk.open(self.file(tmp_path)).head()

        assert caught.value.kind == "too_large"

    @pytest.mark.slow
    def test_one_is_allowed_by_name(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        path.write_bytes(gzip.compress(records.pack(bytes(300 << 20)), 1))

        with pytest.raises(CorruptRecordError, match="max_record_bytes"):
            len(rk.open(path, raw=True)[0])
        assert len(rk.open(path, raw=True, max_record_bytes=300 << 20)[0]) == 300 << 20

    @pytest.mark.slow
    def test_memory_stays_small(self, tmp_path: Path) -> None:
        (tmp_path / "small.tfrecord").write_bytes(records.pack(example(b"1")))
        peaks = TestMemory.peaks(self.file(tmp_path))
        del peaks["repair"]  # which keeps what it can, and holds what has arrived

        assert max(peaks.values()) < SLACK, peaks


class TestPieces:
    """Where large records are checked a piece at a time, what is found is the same."""

    FILE = b"".join(records.pack(bytes([number]) * size) for number, size in enumerate((3, 40, 0, 900, 12, 41, 7)))

    def test_a_large_record_is_passed(self) -> None:
        reader = records.Reader(io.BytesIO(self.FILE), max_record_bytes=39)
        whole = records.chunk(self.FILE)
        identity = b""
        while True:
            try:
                chunk = reader.read()
            except CorruptRecordError:
                size, own = reader.pass_large()
                assert size == int.from_bytes(own[:8], "little") + 16
                identity += own
            else:
                if chunk is None:
                    break
                identity += chunk.identity()

        assert identity == whole.identity()
        assert reader.next_record == len(whole)

    def test_records_that_were_given_stay_as_they_are_when_a_large_one_is_passed(self) -> None:
        small, large = records.pack(b"small" * 9), records.pack(bytes(5 << 20))
        reader = records.Reader(io.BytesIO(small + large + small), max_record_bytes=100)

        chunk = reader.read()
        with pytest.raises(CorruptRecordError):
            reader.read()
        reader.pass_large()

        assert chunk is not None
        assert [list(chunk), [list(rest) for rest in reader]] == [[b"small" * 9], [[b"small" * 9]]]

    @pytest.mark.parametrize(("cut", "flip", "kind"), [(None, 500, "bad_payload_crc"), (600, None, "torn_payload")])
    def test_a_large_one_that_is_not_sound_is_named(self, cut: int | None, flip: int | None, kind: str) -> None:
        data = bytearray(records.pack(b"first") + records.pack(bytes(900)))[:cut]
        if flip is not None:
            data[flip] ^= 1
        reader = records.Reader(io.BytesIO(bytes(data)), path="a", max_record_bytes=100)
        reader.read()
        with pytest.raises(CorruptRecordError, match="max_record_bytes"):
            reader.read()

        for again in (reader.pass_large, reader.read, reader.read):
            with pytest.raises(CorruptRecordError) as caught:
                again()
            assert (caught.value.kind, caught.value.record, caught.value.offset) == (kind, 1, 21)

    @pytest.mark.drawn
    @pytest.mark.parametrize("compression", [None, "gzip"])
    def test_walks_find_the_same(self, compression: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = generator("walks that pass large records")
        for _ in range(COUNT):
            data = damaged(self.FILE * 2, rng)
            if compression is not None:
                data = gzip.compress(data)
                data = damaged(data, rng) if rng.random() < 0.5 else data
            monkeypatch.undo()
            whole = _found(walk(_file(data), compression))
            monkeypatch.setattr(_salvage, "LARGE_BYTES", rng.choice((0, 11, 39, 800)))
            assert _found(walk(_file(data), compression)) == whole
            assert _found(walk_checking(_file(data), compression)) == whole

    @pytest.mark.drawn
    @pytest.mark.parametrize("compression", [None, "gzip"])
    def test_verify_says_the_same(self, compression: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = generator("verify that passes large records")
        path = tmp_path / "a.tfrecord"
        for number in range(COUNT // 4):
            data = damaged(self.FILE * 2, rng) if number else self.FILE
            path.write_bytes(data if compression is None else gzip.compress(data))
            monkeypatch.undo()
            whole = verify(path, workers=1)
            for module in (_salvage, verify_file):
                monkeypatch.setattr(module, "LARGE_BYTES", rng.choice((0, 11, 39, 800)))
            assert verify(path, workers=rng.choice((1, 2))) == whole


def _file(data: bytes) -> ObjectFile:
    return ObjectFile(io.BytesIO(data), "a.tfrecord")


def _found(items: Any) -> list[Any]:
    """What a walk gives, records one by one."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, Damage):
            found.append(item)
        else:
            assert not isinstance(item, SkippedRecords) or item.nbytes == len(item.identity()) - 12 + _size(
                item.identity()
            )
            identity = item.identity()
            found += [(item.first_record + i, identity[12 * i : 12 * i + 12]) for i in range(len(item))]
    return found


def _size(identity: bytes) -> int:
    return int.from_bytes(identity[:8], "little") + 16
