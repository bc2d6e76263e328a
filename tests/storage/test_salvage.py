"""Going through damaged files. The numbers A1 to A16 and the letter C are those of the list of failure scenarios."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from recordkit import _core, records
from recordkit.codecs._gzip import compress_member
from recordkit.errors import CorruptRecordError
from recordkit.filesystems import ByteFile, LocalFile, ObjectFile
from recordkit.storage.read import _salvage
from recordkit.storage.read._damage import Damage
from recordkit.storage.read._explain import explain
from recordkit.storage.read._salvage import walk
from tests.storage.damages import COUNT, F5, damaged, flip, moved, payloads, put, survivors

if TYPE_CHECKING:
    from pathlib import Path

    from recordkit.records import Chunk


def file_of(data: bytes) -> ObjectFile:
    return ObjectFile(io.BytesIO(data), "a.tfrecord")


def split(items: Any, *, numbered: bool = True) -> tuple[list[bytes], list[Damage]]:
    """Payloads and damages, with a look at how both are numbered: damaged records count where a header frames them."""
    found: list[bytes] = []
    damages: list[Damage] = []
    number = 0
    for item in items:
        if isinstance(item, Damage):
            assert not numbered or item.record == number or item.kind == "nested"
            damages.append(item)
            number = item.next_record if item.kind != "nested" else number
        else:
            assert not numbered or item.first_record == number
            found += item
            number = item.first_record + len(item)
    return found, damages


def walked(data: bytes, compression: Any = None, *, nested: bool = False, **options: Any) -> Any:
    # Behind a gap of a gzip file, and inside a damaged record, numbers do not follow each other.
    numbered = compression is None and not nested
    return split(walk(file_of(data), compression, nested=nested, **options), numbered=numbered)


def facts(damages: list[Damage]) -> list[tuple[str, int, int, int]]:
    return [(damage.kind, damage.record, damage.offset, damage.length) for damage in damages]


def numbered(digits: str) -> list[bytes]:
    return [b"payload-00" + digit.encode() for digit in digits]


class TestPlain:
    def test_sound_file_is_its_records(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        path.write_bytes(F5)

        assert split(walk(LocalFile(path), None)) == (numbered("01234"), [])
        assert walked(F5) == (numbered("01234"), [])
        assert walked(b"") == ([], [])

    def test_goes_on_from_the_middle(self) -> None:
        (chunk,) = walk(file_of(F5), None, offset=54, record=2)

        assert isinstance(chunk, records.Chunk)
        assert (chunk.first_record, chunk.offsets.tolist(), list(chunk)) == (2, [54, 81, 108], numbered("234"))

    def test_a1_damaged_payload_costs_one_record(self) -> None:
        found, damages = walked(flip(F5, 12))

        assert (found, facts(damages)) == (numbered("1234"), [("bad_payload_crc", 0, 0, 27)])

    @pytest.mark.parametrize("byte", [23, 24, 25, 26])
    def test_a2_damaged_payload_checksum_costs_one_record(self, byte: int) -> None:
        found, damages = walked(flip(F5, byte))

        assert (found, facts(damages)) == (numbered("1234"), [("bad_payload_crc", 0, 0, 27)])
        assert damages[0].words == "the payload or its checksum is damaged"

    @pytest.mark.parametrize("byte", [8, 9, 10, 11])
    def test_a3_damaged_length_checksum_costs_nothing(self, byte: int) -> None:
        found, damages = walked(flip(F5, 54 + byte))

        assert (found, facts(damages)) == (numbered("01234"), [("bad_length_crc", 2, 54, 27)])
        assert "confirms" in damages[0].words

    def test_a3_confirmed_record_is_framed_anew(self) -> None:
        chunks = [item for item in walk(file_of(flip(F5, 62)), None) if not isinstance(item, Damage)]

        assert b"".join(bytes(chunk) for chunk in chunks) == F5
        assert [offset for chunk in chunks for offset in chunk.offsets.tolist()] == [0, 27, 54, 81, 108]

    @pytest.mark.parametrize(("byte", "new"), [(0, b"\x0c"), (4, b"\x01"), (0, b"\xff" * 8), (7, b"\x80")])
    @pytest.mark.parametrize("record", range(5))
    def test_a4_a5_damaged_length_costs_one_record_wherever_it_is(self, record: int, byte: int, new: bytes) -> None:
        found, damages = walked(put(F5, 27 * record + byte, new))

        assert found == numbered("01234".replace(str(record), ""))
        assert facts(damages) == [("bad_length", record, 27 * record, 27)]

    @pytest.mark.parametrize("size", [1, 3, 8, 12])
    def test_a6_bytes_taken_out_cost_one_record(self, size: int) -> None:
        found, damages = walked(F5[:60] + F5[60 + size :])

        assert (found, facts(damages)) == (numbered("0134"), [("bad_length", 2, 54, 27 - size)])

    def test_a6_a_whole_frame_taken_out_from_header_to_header_leaves_no_trace(self) -> None:
        assert walked(F5[:60] + F5[87:]) == (numbered("0134"), [])

    @pytest.mark.parametrize("size", [1, 5])
    def test_a6_bytes_put_in_cost_one_record(self, size: int) -> None:
        found, damages = walked(F5[:60] + b"i" * size + F5[60:])

        assert (found, facts(damages)) == (numbered("0134"), [("bad_length", 2, 54, 27 + size)])

    def test_a6_swapped_blocks_cost_what_stands_across_their_edges(self) -> None:
        rng = random.Random(6)
        data = b"".join(records.pack(rng.randbytes(rng.randrange(100, 500))) for _ in range(80))
        swapped = data[:4096] + data[8192:12288] + data[4096:8192] + data[12288:]

        found, damages = walked(swapped, nested=True)

        assert len(found) >= 80 - 4
        assert set(found) <= set(records.chunk(data))
        assert damages

    def test_a7_zeroed_range_is_named(self) -> None:
        found, damages = walked(put(F5, 50, bytes(50)))

        assert found == numbered("04")
        assert facts(damages) == [("bad_payload_crc", 1, 27, 23), ("zeros", 2, 50, 50), ("bad_length", 2, 100, 8)]
        assert damages[1].words == "zero-filled region 50…99"

    @pytest.mark.parametrize("new", [b"\xff" * 50, random.Random(7).randbytes(50)])
    def test_a7_overwritten_range_costs_the_records_it_touches(self, new: bytes) -> None:
        found, damages = walked(put(F5, 50, new))

        assert (found, facts(damages)) == (numbered("04"), [("bad_payload_crc", 1, 27, 81)])

    @pytest.mark.parametrize("size", [1, 7, 8, 11, 12, 16, 4096])
    def test_a8_zero_tail_is_no_record(self, size: int) -> None:
        found, damages = walked(F5 + bytes(size))

        assert (found, facts(damages)) == (numbered("01234"), [("zeros", 5, 135, size)])
        assert damages[0].words == f"zero tail of {size} bytes (unclean shutdown?)"

    @pytest.mark.parametrize("size", range(135))
    def test_a9_torn_tail_is_reported(self, size: int) -> None:
        whole, left = divmod(size, 27)
        kind = "torn_header" if left < 12 else "torn_payload"

        found, damages = walked(F5[:size])

        assert found == numbered("01234")[:whole]
        assert facts(damages) == ([(kind, whole, 27 * whole, left)] if left else [])

    def test_a10_empty_record_is_a_record(self) -> None:
        assert walked(F5[:54] + records.pack(b"") + F5[54:]) == ([*numbered("01"), b"", *numbered("234")], [])

    def test_a11_records_in_a_sound_payload_are_its_content(self) -> None:
        assert walked(records.pack(F5)) == ([F5], [])

    @pytest.mark.parametrize(("byte", "kind", "inside"), [(1, "bad_length", "01234"), (90, "bad_payload_crc", "0134")])
    def test_a11_records_in_a_damaged_payload_are_left_out_and_reported(
        self, byte: int, kind: str, inside: str
    ) -> None:
        data = records.pack(b"before") + flip(records.pack(F5), byte) + records.pack(b"after")

        found, damages = walked(data)
        all_found, _ = walked(data, nested=True)

        assert found == [b"before", b"after"]
        assert all_found == [b"before", *numbered(inside), b"after"]
        assert facts(damages) == [(kind, 1, 22, 151), ("nested", 1, 34, 135)]
        assert "possibly part of its content" in damages[1].words

    def test_a12_a_header_alone_is_not_believed(self) -> None:
        false = records.pack(b"no record")[:21] + b"!!!!"

        found, damages = walked(records.pack(b"one") + false + records.pack(b"two"))

        assert (found, facts(damages)) == ([b"one", b"two"], [("bad_payload_crc", 1, 19, 25)])

    def test_a13_a14_records_that_are_all_wrong_are_none(self) -> None:
        found, damages = walked(F5.replace(b"p", b"q"))

        assert (found, [damage.kind for damage in damages]) == ([], ["bad_payload_crc"] * 5)

    def test_a15_stray_bytes_between_files_cost_nothing(self) -> None:
        found, damages = walked(F5 + b"???" + F5)

        assert walked(F5 + F5) == (numbered("0123401234"), [])
        assert (found, facts(damages)) == (numbered("0123401234"), [("bad_length", 5, 135, 3)])

    @pytest.mark.parametrize("cut", range(109, 135))
    def test_a15_both_halves_around_a_torn_record_are_recovered(self, cut: int) -> None:
        found, damages = walked(F5[:cut] + F5)

        assert found == numbered("012301234")
        assert [(damage.record, damage.offset, damage.length) for damage in damages] == [(4, 108, cut - 108)]

    @pytest.mark.parametrize("byte", [0, 9, 12, 25])
    def test_a16_bytes_that_change_are_reported_and_the_record_kept(self, byte: int) -> None:
        found, damages = split(walk(Unstable(F5, flip(F5, 54 + byte)), None))

        assert found == numbered("01234")
        assert facts(damages) == [("unstable_read", 2, 54, 27)]

    def test_a16_a_reader_that_met_the_fault_first_hears_of_it(self) -> None:
        with pytest.raises(CorruptRecordError) as caught:
            records.scan(flip(F5, 66))

        first, *rest = walk(file_of(F5), None, offset=54, record=2, fault=caught.value)

        assert isinstance(first, Damage)
        assert (first.kind, first.record, first.offset) == ("unstable_read", 2, 54)
        assert [payload for chunk in rest if not isinstance(chunk, Damage) for payload in chunk] == numbered("234")

    def test_record_over_the_limit_is_passed_over(self) -> None:
        data = F5 + records.pack(bytes(1000)) + F5

        found, damages = walked(data, max_record_bytes=100)
        _, behind_damage = walked(flip(data, 108), max_record_bytes=100)

        assert (found, facts(damages)) == (numbered("0123401234"), [("too_large", 5, 135, 1016)])
        assert facts(behind_damage) == [("bad_length", 4, 108, 27), ("too_large", 4, 135, 1016)]

    def test_no_memory_is_taken_for_a_length_that_lies(self, room_for: Any) -> None:
        header = records.pack(b"")[:12]
        length = (1 << 40).to_bytes(8, "little")
        lying = length + _core.mask_crc(_core.crc32c(length)).to_bytes(4, "little")
        file = file_of(F5 + lying + header + F5)

        with room_for(64 << 20):
            found, damages = split(walk(file, None))

        assert found == numbered("0123401234")
        assert [damage.kind for damage in damages] == ["bad_payload_crc"]


class Unstable(ByteFile):
    """A file whose first reading of each place differs from all later ones."""

    name = "unstable"

    def __init__(self, data: bytes, first: bytes) -> None:
        self._data = [data, first]

    @property
    def size(self) -> int:
        return len(self._data[0])

    def read_at(self, offset: int, size: int) -> bytes:
        return self._data.pop()[offset : offset + size] if len(self._data) > 1 else self._data[0][offset:][:size]


class TestWindows:
    """Large files are gone through a window at a time, which makes no difference."""

    @pytest.fixture
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {"_WINDOW": 64, "_CHUNK": 100, "_GIVE_UP": 1024}.items():
            monkeypatch.setattr(_salvage, name, value)

    @pytest.mark.usefixtures("_small")
    def test_long_zeros_are_one_damage(self) -> None:
        found, damages = walked(F5 + bytes(100_000) + F5 + bytes(50_000))

        assert found == numbered("0123401234")
        assert facts(damages) == [("zeros", 5, 135, 100_000), ("zeros", 10, 100_270, 50_000)]
        assert [damage.words[:9] for damage in damages] == ["zero-fill", "zero tail"]

    @pytest.mark.usefixtures("_small")
    def test_long_noise_is_one_damage(self) -> None:
        noise = random.Random(1).randbytes(100_000)

        found, damages = walked(F5 + noise + F5)

        assert found == numbered("0123401234")
        assert facts(damages) == [("bad_length", 5, 135, 100_000)]

    @pytest.mark.usefixtures("_small")
    def test_large_record_behind_damage_is_given(self) -> None:
        large = random.Random(2).randbytes(50_000)

        found, _ = walked(flip(F5, 108) + records.pack(large) + F5)

        assert found == [*numbered("0123"), large, *numbered("01234")]

    @pytest.mark.usefixtures("_small")
    def test_chunks_stay_small(self) -> None:
        sizes = [item.nbytes for item in walk(file_of(flip(F5 * 100, 0)), None) if not isinstance(item, Damage)]

        assert sum(sizes) == 27 * 499
        assert max(sizes) < 200


class TestRandomDamage:
    """What is recovered is what the oracle finds by trying every byte."""

    @pytest.mark.parametrize("small", [False, True], ids=["large_windows", "small_windows"])
    def test_every_survivor_of_a_plain_file_is_recovered_and_nothing_else(
        self, small: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if small:
            monkeypatch.setattr(_salvage, "_WINDOW", 64)
            monkeypatch.setattr(_salvage, "_CHUNK", 64)
        for seed in range(COUNT):
            rng = random.Random(seed)
            written = payloads(rng, rng.randint(1, 12))
            data = damaged(b"".join(map(records.pack, written)), rng)

            items = list(walk(file_of(data), None, nested=True))

            found = {
                offset: payload for item in items if not isinstance(item, Damage) for offset, payload in each(item)
            }
            assert found == survivors(data), f"seed {seed}"
            assert set(found.values()) <= set(written), f"seed {seed}"
            assert all(damage.words for damage in split(items, numbered=False)[1])

    @pytest.mark.parametrize("ours", [True, False], ids=["our_members", "other_members"])
    def test_every_record_of_an_undamaged_gzip_member_is_recovered(self, ours: bool) -> None:
        for seed in range(COUNT):
            rng = random.Random(seed)
            written = payloads(rng, 12)
            groups = [written[at : at + 3] for at in range(0, 12, 3)]
            members = [member_of(group, 6, ours) for group in groups]

            recovered(damaged(b"".join(members), rng), groups, members, seed)

    @pytest.mark.parametrize("ours", [True, False], ids=["our_members", "other_members"])
    def test_every_record_of_an_undamaged_gzip_member_that_was_moved_is_recovered(self, ours: bool) -> None:
        for seed in range(COUNT):
            rng = random.Random(seed)
            written = payloads(rng, rng.randint(6, 12), (0, 30, 300, 1500))
            groups = [written[at : at + 2] for at in range(0, len(written), 2)]
            members = [member_of(group, rng.choice((0, 1, 6)), ours) for group in groups]

            recovered(moved(b"".join(members), rng), groups, members, seed)


def member_of(group: list[bytes], level: int, ours: bool) -> bytes:
    raw = b"".join(map(records.pack, group))
    return compress_member(raw, len(group), level) if ours else gzip.compress(raw, level, mtime=0)


def recovered(data: bytes, groups: list[list[bytes]], members: list[bytes], seed: int) -> None:
    """See that what is found was written, and that all of the whole members is found."""
    found = set(walked(data, "gzip", nested=True)[0])
    assert found <= {payload for group in groups for payload in group}, f"seed {seed}"
    whole = {payload for group, member in zip(groups, members, strict=True) if member in data for payload in group}
    assert whole <= found, f"seed {seed}"


def each(chunk: Chunk) -> list[tuple[int, bytes]]:
    return list(zip(chunk.offsets.tolist(), chunk, strict=True))


class TestCompressed:
    def test_c_members_are_one_file(self) -> None:
        assert walked(gzip.compress(F5) + gzip.compress(F5), "gzip") == (numbered("0123401234"), [])
        assert walked(zlib.compress(F5), "zlib") == (numbered("01234"), [])

    def test_c_records_may_stand_across_members(self) -> None:
        assert walked(gzip.compress(F5[:60]) + gzip.compress(F5[60:]), "gzip") == (numbered("01234"), [])

    def test_c_damage_in_the_content_is_counted_in_its_bytes(self) -> None:
        found, damages = walked(gzip.compress(flip(F5, 66)), "gzip")

        assert (found, facts(damages)) == (numbered("0134"), [("bad_payload_crc", 2, 54, 27)])
        assert str(damages[0]).startswith("a.tfrecord: record 2 at uncompressed byte 54: ")

    def test_c_damaged_member_costs_no_more_than_itself(self) -> None:
        first, second = compress_member(F5, 5, 0), compress_member(F5, 5, 6)
        torn = first[:100] + second

        found, damages = walked(first + torn, "gzip")

        assert found == numbered("01234") + numbered("01")[: len(found) - 10] + numbered("01234")
        assert [damage.kind for damage in damages] == ["gzip_damaged"]

    def test_c_a_gzip_file_in_a_payload_is_no_part_of_a_sound_file(self) -> None:
        inner = gzip.compress(F5) + compress_member(F5, 5, 6)
        outer = records.pack(inner) + records.pack(b"other")

        assert walked(gzip.compress(outer, 0) + b"???" + gzip.compress(F5), "gzip")[0] == [
            inner,
            b"other",
            *numbered("01234"),
        ]
        assert walked(compress_member(outer, 2, 0), "gzip") == ([inner, b"other"], [])

    @pytest.mark.parametrize("left", [1, 5, 30, -1, -8, -9])
    def test_c_cut_file_gives_what_was_written_before(self, left: int) -> None:
        member = compress_member(F5, 5, 0)

        found, damages = walked(member + member[:left], "gzip")

        assert found[:5] == numbered("01234")
        assert [damage.offset >= len(member) for damage in damages] == [True]

    def test_c_a_record_torn_by_a_gap_is_told_with_it(self) -> None:
        stored = compress_member(F5, 5, 0)

        found, damages = walked(stored[: 40 + 5 + 60], "gzip")

        assert found == numbered("01")
        assert [damage.kind for damage in damages] == ["gzip_torn"]
        assert "6 bytes around it belong to no complete record" in damages[0].words

    def test_c_zeros_behind_gzip_are_named(self) -> None:
        found, damages = walked(gzip.compress(F5) + bytes(100), "gzip")

        assert (found, len(damages), damages[0].length) == (numbered("01234"), 1, 100)

    def test_c_cut_zlib_gives_what_was_written_before(self) -> None:
        found, damages = walked(zlib.compress(F5, 0)[:100], "zlib")

        assert (found, [damage.kind for damage in damages]) == (numbered("012"), ["zlib_torn"])

    def test_memory_does_not_grow_with_the_content(self, room_for: Any) -> None:
        file = file_of(b"".join(gzip.compress(records.pack(bytes(1 << 20)) * 8, 1) for _ in range(16)))

        with room_for(64 << 20):
            count = sum(len(item) for item in walk(file, "gzip") if not isinstance(item, Damage))

        assert count == 128

    def test_starts_at_the_start(self) -> None:
        with pytest.raises(ValueError, match="only a plain file"):
            list(walk(file_of(gzip.compress(F5)), "gzip", offset=27))


class TestExplain:
    def error(self, data: bytes) -> CorruptRecordError:
        with pytest.raises(CorruptRecordError) as caught:
            records.scan(data, path="a.tfrecord")
        return caught.value

    def test_names_the_next_step(self) -> None:
        data = flip(F5, 70)

        explained = explain(file_of(data), self.error(data))

        assert str(explained) == (
            "a.tfrecord: record 2 at byte 54: the payload's checksum does not match\n"
            "  The 2 records before it are sound. "
            "recordkit.repair('a.tfrecord', ...) writes every sound record to a new file."
        )
        assert (explained.kind, explained.record, explained.offset) == ("bad_payload_crc", 2, 54)

    @pytest.mark.parametrize("byte", [0, 9, 12, 25])
    def test_bytes_that_change_are_called_so(self, byte: int) -> None:
        explained = explain(file_of(F5), self.error(flip(F5, 54 + byte)))

        assert (explained.kind, explained.record, explained.offset) == ("unstable_read", 2, 54)
        assert "dmesg" in str(explained)

    @pytest.mark.parametrize("limit", [1 << 20, 100], ids=["whole", "prefix"])
    def test_one_reason_for_all_records_is_named(self, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("recordkit.storage.read._explain._DIAGNOSED_WHOLE", limit)
        monkeypatch.setattr("recordkit.storage.read._explain._DIAGNOSED", limit)
        header = (7).to_bytes(8, "little")
        frame = header + zlib.crc32(header).to_bytes(4, "little") + b"payload"
        data = 5 * (frame + zlib.crc32(b"payload").to_bytes(4, "little"))

        explained = explain(file_of(data), self.error(data))

        assert ("all 5" if limit > 100 else "the first 4") in str(explained)
        assert "accept='zlib_crc'" in str(explained)

    def test_text_mode_is_named(self) -> None:
        data = b"".join(records.pack(b"a\nb") for _ in range(10)).replace(b"\n", b"\r\n")

        assert "text mode" in str(explain(file_of(data), self.error(data)))

    def test_other_errors_are_left_as_they_are(self) -> None:
        error = CorruptRecordError("bad Example", record=1, offset=27, byte=3, kind="bad_tag")

        assert explain(file_of(F5), error) is error
