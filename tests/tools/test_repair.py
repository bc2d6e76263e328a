"""Repairing files. The numbers A1 to A15 and the letter C are those of the list of failure scenarios."""

from __future__ import annotations

import gzip
import json
import os
import random
import struct
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import recordkit as rk
from recordkit import _core, records
from recordkit.errors import CorruptRecordError, StorageError, TargetExistsError, WrongFileError
from recordkit.storage.format import Manifest
from recordkit.tools import Repaired, repair
from tests.storage import reading
from tests.storage.damages import COUNT, F5, damaged, flip, payloads, put, survivors

if TYPE_CHECKING:
    from collections.abc import Callable


def repaired(folder: Path, data: bytes, **options: Any) -> tuple[list[bytes], Repaired]:
    """The payloads of the new file, none if it was not written, and the report."""
    src, dst = folder / "a.tfrecord", folder / "new" / "b.tfrecord"
    src.write_bytes(data)

    report = repair(src, dst, **options)

    assert src.read_bytes() == data
    (found,) = reading.payloads(dst) if dst.exists() else ([],)
    assert report.recovered == len(found)
    return found, report


def numbered(digits: str) -> list[bytes]:
    return [b"payload-00" + digit.encode() for digit in digits]


DAMAGES: dict[str, tuple[bytes, str, list[tuple[str, int, int, int]]]] = {
    "a1": (flip(F5, 12), "1234", [("bad_payload_crc", 0, 0, 27)]),
    "a2": (flip(F5, 25), "1234", [("bad_payload_crc", 0, 0, 27)]),
    "a4": (put(F5, 0, b"\xff" * 8), "1234", [("bad_length", 0, 0, 27)]),
    "a5": (put(F5, 54, b"\x0c"), "0134", [("bad_length", 2, 54, 27)]),
    "a6": (F5[:60] + F5[63:], "0134", [("bad_length", 2, 54, 24)]),
    "a7": (put(F5, 54, bytes(54)), "014", [("zeros", 2, 54, 54)]),
    "a8": (F5 + bytes(4096), "01234", [("zeros", 5, 135, 4096)]),
    "a9": (F5[:130], "0123", [("torn_payload", 4, 108, 22)]),
    "a12": (F5 + records.pack(b"no record")[:21] + b"!!!!" + F5, "0123401234", [("bad_payload_crc", 5, 135, 25)]),
    "a15": (F5 + b"???" + F5, "0123401234", [("bad_length", 5, 135, 3)]),
}


class TestDamage:
    @pytest.mark.parametrize("scenario", DAMAGES)
    def test_sound_records_are_kept_and_losses_listed(self, scenario: str, tmp_path: Path) -> None:
        data, kept, lost = DAMAGES[scenario]

        found, report = repaired(tmp_path, data)

        assert found == numbered(kept)
        assert [(each.kind, each.record, each.offset, each.length) for each in report.lost] == lost
        assert (report.lost_bytes, report.ok) == (sum(each[3] for each in lost), False)

    def test_a3_confirmed_record_is_kept_with_a_note(self, tmp_path: Path) -> None:
        found, report = repaired(tmp_path, flip(F5, 9))

        assert found == numbered("01234")
        assert (report.lost, [note.kind for note in report.notes], report.ok) == ((), ["bad_length_crc"], False)

    def test_a10_sound_file_is_copied(self, tmp_path: Path) -> None:
        found, report = repaired(tmp_path, F5 + records.pack(b""))

        assert found == [*numbered("01234"), b""]
        assert report.ok
        assert not (tmp_path / "new" / "_recordkit" / "b.tfrecord.lost.json").exists()

    def test_a11_nested_records_are_kept_only_if_asked_for(self, tmp_path: Path) -> None:
        data = records.pack(b"before") + flip(records.pack(F5), 1) + records.pack(b"after")

        without, report = repaired(tmp_path, data)
        with_nested, _ = repaired(tmp_path, data, nested=True, overwrite=True)

        assert without == [b"before", b"after"]
        assert with_nested == [b"before", *numbered("01234"), b"after"]
        assert [note.kind for note in report.notes] == ["nested"]

    def test_random_damage_leaves_what_the_oracle_finds(self, tmp_path: Path) -> None:
        for seed in range(min(COUNT, 300) // 30):
            rng = random.Random(seed)
            written = payloads(rng, 12)
            data = damaged(b"".join(map(records.pack, written)), rng) or F5
            if not survivors(data):
                continue

            found, _ = repaired(tmp_path, data, nested=True, overwrite=True)

            assert found == list(survivors(data).values())


class TestCompressed:
    @pytest.mark.parametrize(("compression", "compress"), [("gzip", gzip.compress), ("zlib", zlib.compress)])
    def test_c_new_file_is_compressed_like_the_old(
        self, compression: str, compress: Callable[[bytes], bytes], tmp_path: Path
    ) -> None:
        found, report = repaired(tmp_path, compress(flip(F5, 12)))

        assert (found, [each.raw for each in report.lost]) == (numbered("1234"), [True])
        assert reading.manifest(tmp_path / "new" / "b.tfrecord")["shards"][0]["compression"] == compression

    def test_compression_can_be_chosen(self, tmp_path: Path) -> None:
        repaired(tmp_path, gzip.compress(F5), compression=None)

        assert (tmp_path / "new" / "b.tfrecord").read_bytes() == F5

    def test_c_cut_gzip_keeps_what_was_written_before(self, tmp_path: Path) -> None:
        found, report = repaired(tmp_path, gzip.compress(F5) + gzip.compress(F5, 0)[:80])

        assert found == numbered("0123401")
        assert [(each.kind, each.raw) for each in report.lost] == [("gzip_torn", False)]


def frames(checksum: Callable[[bytes], int], order: str) -> bytes:
    """F5 as other writers have it."""
    made = b""
    for payload in numbered("01234"):
        header = struct.pack(f"{order}Q", len(payload))
        made += header + struct.pack(f"{order}I", checksum(header))
        made += payload + struct.pack(f"{order}I", checksum(payload))
    return made


WRITERS = {
    "unmasked_crc": frames(_core.crc32c, "<"),
    "zlib_crc": frames(zlib.crc32, "<"),
    "zero_crc": frames(lambda _: 0, "<"),
    "big_endian": frames(lambda data: _core.mask_crc(_core.crc32c(data)), ">"),
}


class TestAccept:
    @pytest.mark.parametrize("kind", WRITERS)
    def test_a13_other_writers_are_named_and_accepted_if_asked_for(self, kind: Any, tmp_path: Path) -> None:
        found, report = repaired(tmp_path, WRITERS[kind])

        assert (found, report.ok) == ([], False)
        assert f"accept='{kind}'" in (report.advice or "")
        assert not (tmp_path / "new").exists()

        found, report = repaired(tmp_path, WRITERS[kind], accept=kind)

        assert (found, report.ok) == (numbered("01234"), True)

    def test_a13_compressed_files_of_other_writers_are_accepted(self, tmp_path: Path) -> None:
        found, _ = repaired(tmp_path, gzip.compress(WRITERS["zlib_crc"]), accept="zlib_crc")

        assert found == numbered("01234")

    def test_a14_text_mode_is_undone_if_asked_for(self, tmp_path: Path) -> None:
        data = b"".join(records.pack(b"line\n%d" % number) for number in range(5))

        found, _ = repaired(tmp_path, data.replace(b"\n", b"\r\n"), accept="lf_to_crlf")

        assert found == list(records.chunk(data))

    def test_what_does_not_fit_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(CorruptRecordError, match=r"does not fit this file: all 5 records have unmasked"):
            repaired(tmp_path, WRITERS["unmasked_crc"], accept="zlib_crc")
        with pytest.raises(CorruptRecordError, match="no single reason"):
            repaired(tmp_path, F5, accept="zlib_crc")


_STARTS = [
    b"PK\x03\x04stored",
    b"PAR1\x15\x04",
    b"\x1f\x8b\x08\0\0\0",
    b"x\x9c\1\1\1\1\1\1",
    b"version https://git-lfs",
    b"\x0a\x00",
]
_PIECES = st.one_of(
    st.binary(max_size=40).map(records.pack),
    st.text("a\n", max_size=30).map(lambda text: records.pack(text.replace("\n", "\r\n").encode())),
    st.binary(max_size=40),
    st.integers(0, 40).map(bytes),
    st.sampled_from(
        [*_STARTS, F5[:20], F5[:40] + F5[43:], *WRITERS.values(), gzip.compress(F5), gzip.compress(F5)[:40]]
    ),
)
_DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda data: data,
    lambda data: data[: len(data) * 2 // 3],
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data.replace(b"\r\n", b"\n"),
]
_FILES = st.builds(lambda pieces, damage: damage(b"".join(pieces)), st.lists(_PIECES), st.sampled_from(_DAMAGES))


class TestAnything:
    @given(_FILES)
    @example(records.pack(b"line\nline\n")[:20])
    @example(b"PK\x03\x04stored" + F5)
    @example(b"\x1f\x8b\x08" + bytes(7) + F5)
    def test_every_intact_record_is_recovered_whatever_the_file_looks_like(self, data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            src, dst = Path(folder, "a.tfrecord"), Path(folder, "b.tfrecord")
            src.write_bytes(data)
            intact = [data[each.offset + 12 :][: each.length] for each in records.salvage(data, nested=False).found]

            try:
                report = repair(src, dst)
            except WrongFileError:
                assert not intact
                return

            assert dst.exists() == (report.recovered > 0 or not data)
            if dst.exists():
                (found,) = reading.payloads(dst)
                assert rk.verify(dst).ok
                assert len(found) == report.recovered
                assert found == intact or reading.manifest(dst)["shards"][0]["compression"] in ("gzip", "zlib")
            else:
                assert not intact

    def test_text_mode_is_said_only_where_a_checksum_proves_it(self, tmp_path: Path) -> None:
        torn = records.pack(b"one\ntwo\nthree")[:-3]
        shrunk = records.pack(b"one\r\ntwo\n").replace(b"\r\n", b"\n")

        assert repaired(tmp_path, torn)[1].advice is None
        assert "text mode" in (repaired(tmp_path, shrunk)[1].advice or "")


class TestFiles:
    def test_list_of_losses_is_beside_the_new_file(self, tmp_path: Path) -> None:
        repaired(tmp_path, flip(flip(F5, 12), 36))

        written = json.loads((tmp_path / "new" / "_recordkit" / "b.tfrecord.lost.json").read_text())

        loss = {"kind": "bad_payload_crc", "record": 0, "offset": 0, "length": 27, "raw": False}
        assert written["lost"] == [{**loss, "words": "the payload or its checksum is damaged"}]
        assert [note["kind"] for note in written["notes"]] == ["bad_length_crc"]
        assert (written["source"], written["recovered"], written["lost_bytes"]) == ("a.tfrecord", 4, 27)

    def test_list_of_an_older_repair_goes(self, tmp_path: Path) -> None:
        repaired(tmp_path, F5[:-1])

        repaired(tmp_path, F5, overwrite=True)

        assert not (tmp_path / "new" / "_recordkit" / "b.tfrecord.lost.json").exists()

    def test_report_is_worth_pasting(self, tmp_path: Path) -> None:
        _, report = repaired(tmp_path, flip(F5, 12))
        _, many = repaired(tmp_path, F5.replace(b"payload", b"PAYLOAD") * 4 + F5, overwrite=True)

        assert str(report) == (
            f"{tmp_path}/a.tfrecord: 4 records recovered, now in {tmp_path}/new/b.tfrecord\n"
            "  27 bytes lost in 1 place\n"
            "  record 0 at byte 0: the payload or its checksum is damaged"
        )
        assert str(many).endswith("\n  and 10 more")

    def test_schema_of_the_source_is_kept(self, tmp_path: Path) -> None:
        src, dst = tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"
        rk.write(src, [{"id": number} for number in range(10)])
        src.write_bytes(flip(src.read_bytes(), 12))

        repair(src, dst)

        assert Manifest.load(tmp_path / "_recordkit" / "b.tfrecord.manifest.json").schema == rk.Schema({"id": "int64"})  # type: ignore[union-attr]
        assert reading.ids(dst) == [list(range(1, 10))]

    def test_source_is_never_the_target(self, tmp_path: Path) -> None:
        src = tmp_path / "a.tfrecord"
        src.write_bytes(F5[:-1])
        (tmp_path / "soft.tfrecord").symlink_to(src)
        os.link(src, tmp_path / "hard.tfrecord")

        for name in ("a.tfrecord", "soft.tfrecord", "hard.tfrecord"):
            with pytest.raises(TargetExistsError, match="the damaged file itself"):
                repair(src, tmp_path / name, overwrite=True)
        assert src.read_bytes() == F5[:-1]

    def test_target_is_not_overwritten_unless_asked_for(self, tmp_path: Path) -> None:
        repaired(tmp_path, F5)

        with pytest.raises(TargetExistsError, match="overwrite=True"):
            repaired(tmp_path, F5)

    def test_folders_and_odd_names_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(F5)

        with pytest.raises(StorageError, match="one file at a time"):
            repair(tmp_path, tmp_path / "b.tfrecord")
        with pytest.raises(StorageError, match=r"such as b\.tfrecord"):
            repair(tmp_path / "a.tfrecord", tmp_path / "b")

    def test_other_files_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(WrongFileError):
            repaired(tmp_path, b"<!DOCTYPE html><title>404</title>")
        with pytest.raises(StorageError, match="cannot be read"):
            repair(tmp_path / "none.tfrecord", tmp_path / "b.tfrecord")
        assert not (tmp_path / "b.tfrecord").exists()
