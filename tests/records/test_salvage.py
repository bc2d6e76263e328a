"""Damaged files. The numbers A1 to A15 are those of the list of failure scenarios that the project started from."""

from __future__ import annotations

import random
import struct
import time
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit import _core, records
from recordkit.records import Found, Lost

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

F5 = b"".join(records.pack(b"payload-%03d" % i) for i in range(5))
EXAMPLE = bytes.fromhex("0e00000000000000 c5e5693f 0a0c0a0a0a016112051a030a0101 39e87850")


def sound(*offsets: int, length: int = 11) -> tuple[Found, ...]:
    return tuple(Found(offset, length, "sound", nested=False) for offset in offsets)


def put(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def flip(data: bytes, offset: int, bit: int) -> bytes:
    return put(data, offset, bytes([data[offset] ^ 1 << bit]))


def cut(data: bytes, offset: int, size: int) -> bytes:
    return data[:offset] + data[offset + size :]


def insert(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset:]


def payloads(data: bytes) -> list[bytes]:
    return [data[found.offset + 12 : found.offset + 12 + found.length] for found in records.salvage(data).found]


def sound_anywhere(data: bytes) -> dict[int, int]:
    """Offset and length of every sound record at any byte, by trying them all: slow and without a thought."""
    found = {}
    for offset in range(len(data) - 15):
        (length,) = struct.unpack_from("<Q", data, offset)
        end = offset + 12 + length
        if end + 4 <= len(data):
            checks = [(data[offset : offset + 8], offset + 8), (data[offset + 12 : end], end)]
            if all(struct.pack("<I", _core.mask_crc(_core.crc32c(part))) == data[at : at + 4] for part, at in checks):
                found[offset] = length
    return found


class TestScenarios:
    def test_a_sound_file_loses_nothing(self) -> None:
        rescued = records.salvage(F5)

        assert rescued == records.Salvage(sound(0, 27, 54, 81, 108), ())
        assert rescued.ok

    def test_a1_a_flipped_payload_bit_costs_one_record(self) -> None:
        rescued = records.salvage(flip(F5, 12, 0))

        assert rescued == records.Salvage(sound(27, 54, 81, 108), (Lost(0, 27, "bad_payload", 0),))
        assert str(rescued.lost[0]) == "bytes 0…26, after 0 records: the payload or its checksum is damaged"
        assert not rescued.ok

    @pytest.mark.parametrize("byte", [23, 24, 25, 26])
    def test_a2_a_flipped_bit_of_the_payloads_checksum_is_not_told_from_one_of_the_payload(self, byte: int) -> None:
        rescued = records.salvage(flip(F5, byte, 3))

        assert rescued == records.Salvage(sound(27, 54, 81, 108), (Lost(0, 27, "bad_payload", 0),))

    @pytest.mark.parametrize("byte", [8, 9, 10, 11])
    def test_a3_a_flipped_bit_of_the_lengths_checksum_costs_nothing(self, byte: int) -> None:
        rescued = records.salvage(flip(F5, byte, 5))

        assert rescued.found == (Found(0, 11, "bad_length_crc", nested=False), *sound(27, 54, 81, 108))
        assert rescued.lost == ()
        assert not rescued.ok

    LENGTHS = pytest.mark.parametrize(
        ("byte", "new"),
        [(0, b"\x0c"), (4, b"\x01"), (0, b"\xff" * 8), (7, b"\x80")],
        ids=["one more", "4 GiB more", "2^64-1", "negative"],
    )

    @LENGTHS
    def test_a4_a_damaged_length_costs_one_record_and_no_memory(
        self, byte: int, new: bytes, room_for: Callable[[int], AbstractContextManager[None]]
    ) -> None:
        with room_for(64 << 20):
            rescued = records.salvage(put(F5, byte, new))

        assert rescued == records.Salvage(sound(27, 54, 81, 108), (Lost(0, 27, "bad_length", 0),))

    @LENGTHS
    def test_a5_a_damaged_length_in_the_middle_costs_one_record(self, byte: int, new: bytes) -> None:
        rescued = records.salvage(put(F5, 54 + byte, new))

        assert rescued == records.Salvage(sound(0, 27, 81, 108), (Lost(54, 27, "bad_length", 2),))
        assert str(rescued.lost[0]) == (
            "bytes 54…80, after 2 records: the length of a record is damaged, or bytes were inserted or removed"
        )

    @pytest.mark.parametrize("size", [1, 3, 8, 12])
    def test_a6_deleted_bytes_cost_the_record_they_were_in(self, size: int) -> None:
        rescued = records.salvage(cut(F5, 60, size))

        assert rescued.found == sound(0, 27, 81 - size, 108 - size)
        assert [(lost.offset, lost.length, lost.record) for lost in rescued.lost] == [(54, 27 - size, 2)]

    def test_a6_deleting_as_many_bytes_as_a_record_has_leaves_a_sound_file(self) -> None:
        rescued = records.salvage(cut(F5, 60, 27))

        assert rescued == records.Salvage(sound(0, 27, 54, 81), ())
        assert payloads(cut(F5, 60, 27))[2] == b"payload-003"

    @pytest.mark.parametrize("size", [1, 5])
    def test_a6_inserted_bytes_cost_the_record_they_are_in(self, size: int) -> None:
        rescued = records.salvage(insert(F5, 60, b"x" * size))

        assert rescued.found == sound(0, 27, 81 + size, 108 + size)
        assert [(lost.offset, lost.length, lost.record) for lost in rescued.lost] == [(54, 27 + size, 2)]

    def test_a6_swapped_blocks_cost_the_records_at_their_edges(self) -> None:
        wanted = [b"%05d" % i * (i % 60) for i in range(200)]
        file = bytes(records.pack_many(wanted))
        edges = [4096, 8192, 12_288, 16_384]
        swapped = file[: edges[0]] + file[edges[2] : edges[3]] + file[edges[1] : edges[2]] + file[edges[0] : edges[1]]
        swapped += file[edges[3] :]
        starts = [*records.scan(file).tolist(), len(file)]
        at_edges = {i for i in range(200) for edge in edges if starts[i] < edge < starts[i + 1]}

        found = payloads(swapped)

        assert len(at_edges) == 4
        assert sorted(found) == sorted(wanted[i] for i in range(200) if i not in at_edges)

    def test_a6_a_block_written_twice_shows_which_records_repeat(self) -> None:
        file = insert(F5, 54, F5[:54])

        rescued = records.salvage(file)

        assert [found.repeats for found in rescued.found] == [None, None, 0, 1, None, None, None]
        assert rescued.lost == ()

    @pytest.mark.parametrize(
        "new", [bytes(50), b"\xff" * 50, random.Random(7).randbytes(50)], ids=["zeros", "ones", "random"]
    )
    def test_a7_an_overwritten_range_costs_the_records_it_touches(self, new: bytes) -> None:
        rescued = records.salvage(put(F5, 50, new))

        assert rescued.found == sound(0, 108)
        assert min(lost.offset for lost in rescued.lost) == 27
        assert max(lost.offset + lost.length for lost in rescued.lost) == 108
        assert {lost.record for lost in rescued.lost} == {1}

    def test_a7_a_range_of_zeros_is_named(self) -> None:
        rescued = records.salvage(put(F5, 50, bytes(50)))

        assert Lost(50, 50, "zeros", 1) in rescued.lost

    @pytest.mark.parametrize("size", [1, 7, 8, 11, 12, 16, 4096])
    def test_a8_zeros_at_the_end_are_no_records(self, size: int) -> None:
        rescued = records.salvage(F5 + bytes(size))

        assert rescued == records.Salvage(sound(0, 27, 54, 81, 108), (Lost(135, size, "zeros", 5),))
        assert str(rescued.lost[0]) == (
            f"bytes 135…{134 + size}, after 5 records: {size} zero bytes (an unclean shutdown?)"
        )

    @pytest.mark.parametrize("size", range(135))
    def test_a9_a_cut_file_keeps_its_whole_records(self, size: int) -> None:
        rescued = records.salvage(F5[:size])

        whole, left = divmod(size, 27)
        assert rescued.found == sound(*range(0, 27 * whole, 27))
        assert rescued.lost == ((Lost(27 * whole, left, "torn", whole),) if left else ())

    def test_a9_the_tail_is_told_in_words(self) -> None:
        (lost,) = records.salvage(F5[:60]).lost

        assert str(lost) == "bytes 54…59, after 2 records: 6 bytes of an unfinished record"

    def test_a10_an_empty_record_is_a_record(self) -> None:
        rescued = records.salvage(insert(flip(F5, 12, 0), 54, records.pack(b"")))

        assert rescued.found == (*sound(27), *sound(54, length=0), *sound(70, 97, 124))

    def test_a11_records_inside_a_sound_payload_are_not_looked_for(self) -> None:
        rescued = records.salvage(records.pack(F5))

        assert rescued == records.Salvage(sound(0, length=135), ())

    @pytest.mark.parametrize("byte", [0, 1, 7])
    def test_a11_records_inside_a_damaged_one_are_said_to_be_nested(self, byte: int) -> None:
        outer = flip(records.pack(F5), byte, 6)

        rescued = records.salvage(records.pack(b"before") + outer + records.pack(b"after"))

        assert [(found.offset, found.nested) for found in rescued.found] == [
            (0, False),
            *[(22 + 12 + 27 * i, True) for i in range(5)],
            (22 + 151, False),
        ]

    @pytest.mark.parametrize("byte", [0, 8, 149])
    def test_a11_nested_ones_can_be_left_out(self, byte: int) -> None:
        file = records.pack(b"before") + flip(records.pack(F5), byte, 6) + records.pack(b"after")

        rescued = records.salvage(file, nested=False)

        outer = [(22, 135)] if byte == 8 else []
        assert [(found.offset, found.length) for found in rescued.found] == [(0, 6), *outer, (173, 5)]
        assert {lost.record for lost in rescued.lost} <= {1}

    def test_a11_a_damaged_payload_that_holds_records_gives_those_that_are_whole(self) -> None:
        file = flip(records.pack(F5), 12 + 27 + 15, 0) + records.pack(b"after")

        rescued = records.salvage(file)

        assert [found.offset for found in rescued.found if found.nested] == [12, 66, 93, 120]
        assert [found.offset for found in rescued.found if not found.nested] == [151]

    def test_a12_a_header_that_checks_by_chance_needs_a_payload_that_checks(self) -> None:
        header = F5[:12]
        file = records.pack(b"good") + b"junk" + header + b"not the payload" + header + b"x" * 3 + F5

        rescued = records.salvage(file)

        start = len(file) - 135
        assert [found.offset for found in rescued.found] == [0, *range(start, len(file), 27)]
        assert not any(found.nested for found in rescued.found)

    def test_a15_two_files_joined_are_one(self) -> None:
        assert records.salvage(F5 + F5).ok

    def test_a15_stray_bytes_between_two_files_cost_only_themselves(self) -> None:
        rescued = records.salvage(F5 + b"abc" + F5)

        assert [found.offset for found in rescued.found] == [*range(0, 135, 27), *range(138, 273, 27)]
        assert [(lost.offset, lost.length, lost.record) for lost in rescued.lost] == [(135, 3, 5)]

    @pytest.mark.parametrize("torn", range(1, 27))
    def test_a15_records_appended_behind_a_torn_one_are_found(self, torn: int) -> None:
        file = F5 + F5[:torn] + F5

        rescued = records.salvage(file)

        assert [found.offset for found in rescued.found] == [*range(0, 135, 27), *range(135 + torn, 270 + torn, 27)]
        assert [(lost.offset, lost.length, lost.record) for lost in rescued.lost] == [(135, torn, 5)]


class TestNothingIntactIsLost:
    def test_a_record_that_moved_to_the_end_of_a_shortened_one_is_found(self) -> None:
        long, short = records.pack(b"x" * 30), records.pack(b"1234")
        file = cut(long + short + F5, 20, len(short))  # now the short record ends where the long one says it ends

        rescued = records.salvage(file)

        assert (rescued.found[0].offset, rescued.found[0].length) == (26, 4)
        assert len(rescued.found) == 6

    @settings(max_examples=400)
    @given(st.data())
    def test_found_is_what_trying_every_byte_finds(self, data: st.DataObject) -> None:
        contents = data.draw(st.lists(st.binary(max_size=20) | st.just(F5[:27]) | st.just(F5[:54]), max_size=8))
        damaged = damage(bytes(records.pack_many(contents)), data)
        everywhere = sound_anywhere(damaged)

        rescued = records.salvage(damaged)

        spans = [(found.offset, found.offset + 16 + found.length) for found in rescued.found]
        assert all(everywhere[found.offset] == found.length for found in rescued.found if found.how == "sound")
        for offset, length in everywhere.items():
            assert any(start < offset + 16 + length and offset < end for start, end in spans), (offset, damaged.hex())
        assert all(one[1] <= two[0] for one, two in pairwise(spans))

    @settings(max_examples=400)
    @given(st.data())
    def test_every_byte_is_found_or_lost(self, data: st.DataObject) -> None:
        contents = data.draw(st.lists(st.binary(max_size=20) | st.just(F5[:54]), max_size=8))
        damaged = damage(bytes(records.pack_many(contents)), data)

        rescued = records.salvage(damaged)

        covered = bytearray(len(damaged))
        for lost in rescued.lost:
            assert not any(covered[lost.offset : lost.offset + lost.length])
            covered[lost.offset : lost.offset + lost.length] = b"\1" * lost.length
        for found in rescued.found:
            end = found.offset + 16 + found.length
            assert found.nested or not any(covered[found.offset : end])
            covered[found.offset : end] = b"\1" * (end - found.offset)
        assert all(covered)
        assert rescued.ok == (_core.scan(damaged, 2**64 - 1)[1] == 0)

    @given(st.binary(max_size=300))
    def test_junk_gives_no_records_and_no_crash(self, junk: bytes) -> None:
        rescued = records.salvage(junk)

        assert [found.offset for found in rescued.found] == [*sound_anywhere(junk)]

    def test_many_headers_that_all_claim_the_rest_of_the_file_take_little_time(self) -> None:
        size = 3_000_000
        file = b"".join(header_of(size - 16 - offset) for offset in range(0, size - 16, 12))

        started = time.monotonic()
        rescued = records.salvage(file)

        assert rescued.found == ()
        assert time.monotonic() - started < 10  # a second at most; minutes if each header were taken at its word


def header_of(length: int) -> bytes:
    raw = struct.pack("<Q", length)
    return raw + struct.pack("<I", _core.mask_crc(_core.crc32c(raw)))


def damage(data: bytes, draw: st.DataObject) -> bytes:
    for _ in range(draw.draw(st.integers(0, 3), label="wounds")):
        at = draw.draw(st.integers(0, len(data)), label="at")
        size = draw.draw(st.integers(0, 45), label="size")
        how = draw.draw(st.sampled_from(["flip", "cut", "zero", "delete", "insert", "repeat"]), label="how")
        if how == "flip" and at < len(data):
            data = flip(data, at, size % 8)
        elif how == "cut":
            data = data[:at]
        elif how == "zero":
            data = put(data, at, bytes(min(size, len(data) - at)))
        elif how == "delete":
            data = cut(data, at, size)
        elif how == "insert":
            data = insert(data, at, draw.draw(st.binary(min_size=size, max_size=size)))
        else:
            data = insert(data, at, data[at : at + size])
    return data


def framed(payload: bytes, checksum: Callable[[bytes], int], order: str = "<") -> bytes:
    header = struct.pack(order + "Q", len(payload))
    return header + struct.pack(order + "I", checksum(header)) + payload + struct.pack(order + "I", checksum(payload))


class TestDiagnose:
    PAYLOADS = [b"payload-%03d" % i for i in range(5)]

    @pytest.mark.parametrize(
        ("kind", "checksum", "order", "words"),
        [
            ("unmasked_crc", _core.crc32c, "<", "have unmasked CRCs"),
            ("zlib_crc", zlib.crc32, "<", "have zlib's CRC-32 in place of CRC-32C"),
            ("zero_crc", lambda data: 0, "<", "have zeros in place of checksums"),
            ("big_endian", lambda data: _core.mask_crc(_core.crc32c(data)), ">", "are written big-endian"),
        ],
    )
    def test_a13_writers_that_do_not_keep_to_the_format_are_named(
        self, kind: str, checksum: Callable[[bytes], int], order: str, words: str
    ) -> None:
        file = b"".join(framed(payload, checksum, order) for payload in self.PAYLOADS)

        diagnosis = records.diagnose(file)

        assert diagnosis is not None
        assert (diagnosis.kind, diagnosis.records) == (kind, 5)
        assert diagnosis.words == f"all 5 records {words}: the program that wrote them does not follow the format"
        assert [file[start : start + size] for start, size in diagnosis.payloads] == self.PAYLOADS

    def test_a13_one_record_that_does_not_fit_and_the_pattern_is_not_claimed(self) -> None:
        file = b"".join(framed(payload, _core.crc32c) for payload in self.PAYLOADS)

        assert records.diagnose(file + F5) is None
        assert records.diagnose(file[:-1]) is None

    def test_a14_line_feeds_that_became_crlf_are_named(self) -> None:
        file = (EXAMPLE * 3).replace(b"\n", b"\r\n")

        diagnosis = records.diagnose(file)

        assert diagnosis is not None
        assert (diagnosis.kind, diagnosis.records, diagnosis.payloads) == ("lf_to_crlf", 3, ())
        assert diagnosis.words == (
            "every line feed has a carriage return before it: a transfer in text mode has changed the file; "
            "its 3 records come back when each CR LF is made LF again"
        )
        assert list(records.chunk(file.replace(b"\r\n", b"\n"))) == [EXAMPLE[12:-4]] * 3

    def test_a14_crlf_that_became_line_feeds_are_named(self) -> None:
        file = bytes(records.pack_many([b"one\r\ntwo\r\n", b"three", b"four\r\n"])).replace(b"\r\n", b"\n")

        diagnosis = records.diagnose(file)

        assert diagnosis is not None
        assert (diagnosis.kind, diagnosis.records) == ("crlf_to_lf", 2)
        assert "they have to be fetched again" in diagnosis.words

    @pytest.mark.parametrize("file", [b"", F5, EXAMPLE, flip(F5, 12, 0), F5[:-3], F5 + bytes(64)])
    def test_other_damage_and_none_has_no_pattern(self, file: bytes) -> None:
        assert records.diagnose(file) is None

    @pytest.mark.parametrize("size", [16, 4096])
    def test_a_file_of_zeros_is_not_records_without_checksums(self, size: int) -> None:
        assert records.diagnose(bytes(size)) is None

    @given(st.binary(max_size=300))
    def test_junk_has_no_pattern_and_no_crash(self, junk: bytes) -> None:
        if any(junk):
            assert records.diagnose(junk) is None
