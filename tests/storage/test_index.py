from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import records
from recordkit.storage.format import Fingerprint, Index
from recordkit.storage.format._index import BLOCK, IndexBuilder
from tests.storage import reading, ways

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FILE = Fingerprint(5, 6, 7)

# Runs of lengths, so that whole blocks are made of short ones, of equal ones, of some that take many bytes.
runs = st.lists(
    st.tuples(st.sampled_from([0, 1, 255, 256, 70_000, 2**31, 2**40]), st.integers(0, 300), st.integers(0, 1200)),
    max_size=4,
)


def lengths_of(runs: list[tuple[int, int, int]]) -> NDArray[np.uint64]:
    parts = [base + np.arange(count, dtype=np.uint64) % (spread + 1) for base, spread, count in runs]
    return np.concatenate([np.empty(0, np.uint64), *parts]).astype(np.uint64)


def build(lengths: NDArray[np.uint64], members: list[tuple[int, int, int]] | None = None) -> bytes:
    builder = IndexBuilder()
    builder.add(lengths)
    for member in members or []:
        builder.add_member(*member)
    return builder.to_bytes(FILE)


def blocks(index: Index) -> list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    return [index.block(number) for number in range(-(-len(index) // BLOCK))]


class TestIndex:
    @settings(max_examples=40)
    @given(runs)
    def test_starts_are_what_a_running_sum_says(self, runs: list[tuple[int, int, int]]) -> None:
        lengths = lengths_of(runs)
        with ways.folder() as folder:
            (folder / "index").write_bytes(build(lengths))
            index = Index(folder / "index", FILE)
            found = blocks(index)
            count, size = len(index), index.raw_bytes

        frames = lengths + np.uint64(16)
        ends = np.cumsum(frames)
        assert (count, size) == (len(lengths), int(ends[-1]) if len(ends) else 0)
        assert np.array_equal(np.concatenate([np.empty(0), *(s for s, _ in found)]), (ends - frames).astype(float))
        assert np.array_equal(np.concatenate([np.empty(0), *(f for _, f in found)]), frames.astype(float))

    @given(st.lists(st.integers(0, 2**32 - 17), max_size=50), st.integers(1, 100))
    def test_takes_at_most_about_four_bytes_a_record(self, lengths: list[int], times: int) -> None:
        data = build(np.array(lengths * times, np.uint64))

        directory = 32 * -(-len(lengths * times) // BLOCK)
        assert len(data) <= 64 + directory + 4 * len(lengths * times)

    def test_records_of_one_length_take_next_to_nothing(self) -> None:
        assert len(build(np.full(1_000_000, 30, np.uint64))) < 40_000

    @pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
    def test_every_changed_byte_is_found(self, tmp_path: Path, change: int) -> None:
        sound = build(np.arange(1500, dtype=np.uint64), [(0, 0, 0), (90, 900, 10)])
        unseen = []

        for place in range(len(sound)):
            damaged = bytearray(sound)
            damaged[place] ^= change
            (tmp_path / "index").write_bytes(damaged)
            if reads(tmp_path / "index"):
                unseen.append(place)

        assert unseen == []

    def test_every_cut_is_found(self, tmp_path: Path) -> None:
        sound = build(np.arange(1500, dtype=np.uint64), [(0, 0, 0), (90, 900, 10)])
        unseen = []

        for size in range(0, len(sound), 7):
            (tmp_path / "index").write_bytes(sound[:size])
            if reads(tmp_path / "index"):
                unseen.append(size)

        assert unseen == []

    def test_damage_to_one_block_leaves_the_others(self, tmp_path: Path) -> None:
        damaged = bytearray(build(np.arange(3000, dtype=np.uint64)))
        damaged[-1] ^= 1
        (tmp_path / "index").write_bytes(damaged)

        index = Index(tmp_path / "index", FILE)
        index.block(0)
        index.block(1)
        with pytest.raises(ValueError, match="block 2 of the index is damaged"):
            index.block(2)

    @pytest.mark.parametrize("other", [Fingerprint(4, 6, 7), Fingerprint(5, 0, 7), Fingerprint(5, 6, 0)])
    def test_the_index_of_another_file_is_refused(self, tmp_path: Path, other: Fingerprint) -> None:
        (tmp_path / "index").write_bytes(build(np.arange(3, dtype=np.uint64)))

        with pytest.raises(ValueError, match="the index of another file, or of this one before it changed"):
            Index(tmp_path / "index", other)


def reads(path: Path) -> bool:
    """Whether the whole index can be read without an error."""
    try:
        index = Index(path, FILE)
        blocks(index)
        index.members()
    except ValueError:
        return False
    return True


class TestWritten:
    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    def test_every_shard_has_one_that_fits_it(self, tmp_path: Path, compression: Any) -> None:
        sizes = np.random.default_rng(3).integers(0, 2000, 6000)
        rk.write(
            tmp_path / "a", {"x": [bytes(size) for size in sizes]}, records_per_shard=3500, compression=compression
        )

        for path, raw in zip(reading.files(tmp_path / "a"), reading.raws(tmp_path / "a"), strict=True):
            index = Index(tmp_path / "a/_recordkit" / f"{path.name}.rki", Fingerprint.of(path))
            starts = np.concatenate([starts for starts, _ in blocks(index)])
            assert starts.tolist() == records.scan(raw).tolist()
            assert index.raw_bytes == len(raw)

    def test_gzip_members_can_be_read_from_where_it_says(self, tmp_path: Path) -> None:
        import gzip

        noise = np.random.default_rng(3).bytes(3_000_000)
        payloads = [noise[at : at + 1000] for at in range(0, len(noise), 1000)]
        rk.write(tmp_path / "a.tfrecord", {"x": payloads}, {"x": "bytes"}, compression="gzip")
        path, raw = tmp_path / "a.tfrecord", reading.raws(tmp_path / "a.tfrecord")[0]

        index = Index(tmp_path / "_recordkit/a.tfrecord.rki", Fingerprint.of(path))
        members = index.members()

        assert len(members) == 3
        offsets = records.scan(raw)
        for member in members:
            assert gzip.decompress(path.read_bytes()[member["file"] :]) == raw[member["raw"] :]
            assert offsets[member["record"]] == member["raw"]


class TestFingerprint:
    @given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 10_000))
    def test_of_two_files_joined_is_that_of_the_whole(self, size: int, extra: int, more: int) -> None:
        data = np.random.default_rng(size).bytes(size + extra + more)
        with ways.folder() as folder:
            (folder / "first").write_bytes(data[: size + extra])
            (folder / "more").write_bytes(data[size + extra :])
            (folder / "whole").write_bytes(data[:size] + data[size + extra :])

            assert Fingerprint.of_joined(folder / "first", size, folder / "more") == Fingerprint.of(folder / "whole")
