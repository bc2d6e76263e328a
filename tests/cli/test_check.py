"""verify and repair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import recordkit as rk
from recordkit import images, records

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Done

REPORT = """\
1 file, 4 sound records, 135 bytes: 1 file not sound
  bad.tfrecord: damaged, 4 sound records in 135 bytes
    record 2 at byte 54: the payload or its checksum is damaged
Recover the intact records: recordkit repair bad.tfrecord
"""


class TestVerify:
    def test_sound_dataset_is_one_line_and_status_0(self, run: Callable[..., Done], train: str) -> None:
        done = run("verify", train, "--check", "images")

        assert (done.status, done.err) == (0, "")
        assert done.out == "2 files, 6 sound records, 1.71 KB: no damage found\n"

    def test_damage_is_named_with_the_next_step(self, run: Callable[..., Done], damaged: str) -> None:
        done = run("verify", damaged)

        assert (done.status, done.out, done.err) == (1, REPORT, "")

    def test_is_green_or_red_on_a_terminal(self, on_terminal: Callable[..., Done], train: str, damaged: str) -> None:
        sound, bad = on_terminal("verify", train), on_terminal("verify", damaged)

        assert sound.out == "\x1b[1;32m2 files, 6 sound records, 1.71 KB: no damage found\x1b[0m\n"
        assert bad.out.startswith("\x1b[1;31m1 file, 4 sound records")
        assert bad.bare == REPORT

    def test_says_of_how_many_files_the_first_is(self, run: Callable[..., Done], damaged: str) -> None:
        Path("more.tfrecord").write_bytes(Path(damaged).read_bytes())

        done = run("verify", damaged, "more.tfrecord")

        assert done.out.splitlines()[-1] == (
            "Recover the intact records: recordkit repair bad.tfrecord  # and 1 more file"
        )

    def test_looks_into_payloads_where_asked_to(self, run: Callable[..., Done]) -> None:
        picture = images.encode(__import__("numpy").zeros((64, 64, 3), "uint8"), "jpeg")
        rk.write("a.tfrecord", [{"image": picture}, {"image": picture[:-200]}], {"image": "jpeg"})

        sound, bad = run("verify", "a.tfrecord"), run("verify", "a.tfrecord", "--check", "images")

        assert (sound.status, bad.status) == (0, 1)
        assert "\n    record 1 at byte " in bad.out

    def test_holds_examples_against_a_schema(self, run: Callable[..., Done], train: str) -> None:
        rk.Schema({"id": "float32"}).save("wrong.json")

        done = run("verify", train, "--check", "examples", "--schema", "wrong.json")

        assert done.status == 1
        assert "id: expected" in done.out

    def test_json_is_the_report(self, run: Callable[..., Done], damaged: str) -> None:
        done = run("verify", damaged, "--json")

        assert done.status == 1
        assert json.loads(done.out) == rk.verify(damaged).to_dict()


class TestRepair:
    def test_keeps_what_is_sound_and_says_what_is_lost(self, run: Callable[..., Done], damaged: str) -> None:
        done = run("repair", damaged, "-o", "good.tfrecord")

        assert (done.status, done.err) == (1, "")
        assert done.out == (
            "bad.tfrecord: 4 records recovered, now in good.tfrecord\n"
            "  27 bytes lost in 1 place\n"
            "  record 2 at byte 54: the payload or its checksum is damaged\n"
        )
        assert list(rk.open("good.tfrecord", raw=True)) == [b"payload-%03d" % number for number in (0, 1, 3, 4)]

    def test_new_file_is_beside_the_old_one(self, run: Callable[..., Done], damaged: str) -> None:
        done = run("repair", damaged)

        assert done.status == 1
        assert done.out.startswith("bad.tfrecord: 4 records recovered, now in bad.tfrecord.repaired\n")
        assert len(rk.open("bad.tfrecord.repaired")) == 4

    def test_sound_file_is_status_0(self, run: Callable[..., Done]) -> None:
        Path("a.tfrecord").write_bytes(records.pack(b"one"))

        done = run("repair", "a.tfrecord", "-o", "b.tfrecord", "--json")

        assert done.status == 0
        assert json.loads(done.out) == {
            "ok": True,
            "src": "a.tfrecord",
            "dst": "b.tfrecord",
            "recovered": 1,
            "lost": [],
            "notes": [],
            "advice": None,
            "lost_bytes": 0,
        }

    def test_nothing_is_overwritten_unasked(self, run: Callable[..., Done], damaged: str) -> None:
        Path("good.tfrecord").write_bytes(b"mine")

        refused = run("repair", damaged, "-o", "good.tfrecord")
        content = Path("good.tfrecord").read_bytes()
        done = run("repair", damaged, "-o", "good.tfrecord", "--overwrite")

        assert (refused.status, content, done.status) == (2, b"mine", 1)
        assert refused.err.endswith("already exists\n  Pass --overwrite to replace it.\n")

    def test_files_that_all_break_the_format_can_be_accepted(self, run: Callable[..., Done]) -> None:
        zeros = b"".join((3).to_bytes(8, "little") + bytes(4) + payload + bytes(4) for payload in (b"one", b"two"))
        Path("a.tfrecord").write_bytes(zeros)

        refused = run("repair", "a.tfrecord", "-o", "b.tfrecord")
        done = run("repair", "a.tfrecord", "-o", "b.tfrecord", "--accept", "zero_crc")

        assert refused.status == 1
        assert refused.out.startswith("a.tfrecord: no record is intact; b.tfrecord was not written\n")
        assert "\n  To accept them anyway: recordkit repair a.tfrecord --accept zero_crc\n" in refused.out
        assert (done.status, list(rk.open("b.tfrecord", raw=True))) == (0, [b"one", b"two"])

    def test_file_that_is_not_there_is_said_to_be(self, run: Callable[..., Done]) -> None:
        done = run("repair", "data.bin")

        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("error: data.bin: no such file or folder\n  ")

    @pytest.mark.parametrize("words", [("a", "b", "-o", "c.tfrecord"), ("folder",)])
    def test_wrong_use_is_status_2(self, words: tuple[str, ...], run: Callable[..., Done]) -> None:
        Path("folder").mkdir()

        done = run("repair", *words)

        assert (done.status, done.out) == (2, "")
        assert len(done.err.splitlines()) == 2
