from __future__ import annotations

import gzip
import zlib
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordkit as rk
from recordkit import _core, records
from recordkit.storage.format import Fingerprint
from recordkit.storage.format._facts import new_digest
from recordkit.storage.write import _append
from tests.storage import ways

if TYPE_CHECKING:
    from pathlib import Path

payloads = st.lists(st.binary(max_size=60), max_size=12)


def facts_of(path: Path) -> _append.RecordSums:
    facts = _append.RecordSums(_append.compression_of(path))
    facts.read(path)
    return facts


class TestCompression:
    @given(payloads, st.sampled_from([lambda data: data, gzip.compress]))
    def test_is_told_from_the_bytes(self, payloads: list[bytes], compress: Any) -> None:
        with ways.folder() as folder:
            (folder / "a").write_bytes(compress(b"".join(map(records.pack, payloads))))

            assert _append.compression_of(folder / "a") == ("gzip" if compress is gzip.compress else None)

    @pytest.mark.parametrize("level", [0, 1, 6, 9])
    def test_zlib_is_refused(self, tmp_path: Path, level: int) -> None:
        (tmp_path / "a").write_bytes(zlib.compress(records.pack(b"payload"), level))

        with pytest.raises(rk.StorageError, match="a ZLIB file is one stream"):
            _append.compression_of(tmp_path / "a")

    def test_a_record_whose_length_looks_like_zlib_is_plain(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(records.pack(bytes(0x9C78)))

        assert _append.compression_of(tmp_path / "a") is None


class TestFacts:
    @settings(max_examples=50)
    @given(payloads, st.lists(st.integers(0, 800), max_size=3))
    def test_are_the_same_for_plain_and_gzip_cut_anywhere(self, payloads: list[bytes], cuts: list[int]) -> None:
        raw = b"".join(map(records.pack, payloads))
        places = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts)})
        pieces = [raw[start:stop] for start, stop in pairwise(places)] or [b""]
        zipped = b"".join(map(gzip.compress, pieces))

        with ways.folder() as folder:
            (folder / "plain").write_bytes(raw)
            (folder / "zipped").write_bytes(zipped)
            plain, packed = facts_of(folder / "plain"), facts_of(folder / "zipped")

        digest = new_digest()
        digest.update(records.pack_many(payloads).identity())
        for facts, data in ((plain, raw), (packed, zipped)):
            assert (facts.records, facts.raw_bytes, facts.bytes) == (len(payloads), len(raw), len(data))
            assert facts.crc == _core.crc32c(data)
            assert facts.digest.digest() == digest.digest()
        starts = np.cumsum([0, *(len(payload) + 16 for payload in payloads)]).tolist()
        for (_, start, record), expected in zip(packed.index._members, places, strict=False):
            assert start == expected
            assert record == sum(1 for end in starts[1:] if end <= start)

    @settings(max_examples=60)
    @given(st.binary(max_size=200), st.booleans())
    def test_any_bytes_are_a_file_or_a_storage_error(self, junk: bytes, gzipped: bool) -> None:
        with ways.folder() as folder:
            (folder / "a.tfrecord").write_bytes(b"\x1f\x8b" + junk if gzipped else junk)

            with suppress(rk.StorageError):
                _append.of_file(folder / "a.tfrecord", cut_torn_tail=False)

    @given(payloads.filter(bool), st.data())
    def test_a_file_cut_anywhere_keeps_the_records_before(self, payloads: list[bytes], data: st.DataObject) -> None:
        raw = b"".join(map(records.pack, payloads))
        size = data.draw(st.integers(12, len(raw)))

        with ways.folder() as folder:
            (folder / "a.tfrecord").write_bytes(raw[:size])
            found = _append.of_file(folder / "a.tfrecord", cut_torn_tail=True)

        ends = np.cumsum([0, *(len(payload) + 16 for payload in payloads)])
        assert found.facts.records == int(np.searchsorted(ends, size, side="right")) - 1
        assert found.facts.bytes == ends[found.facts.records]

    def test_large_members_are_read_a_piece_at_a_time(self, tmp_path: Path) -> None:
        raw = b"".join(map(records.pack, [bytes(100_000)] * 50))
        (tmp_path / "a").write_bytes(gzip.compress(raw) + gzip.compress(raw))

        facts = facts_of(tmp_path / "a")

        assert (facts.records, facts.raw_bytes) == (100, 2 * len(raw))


class TestFile:
    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(rk.StorageError, match="there is no such file"):
            _append.of_file(tmp_path, cut_torn_tail=False)

    def test_records_that_are_no_examples_have_no_schema(self, tmp_path: Path) -> None:
        (tmp_path / "a.tfrecord").write_bytes(records.pack(b"mine"))

        found = _append.of_file(tmp_path / "a.tfrecord", cut_torn_tail=False)

        assert found.schema is None
        assert found.manifest is None
        assert found.fingerprint == Fingerprint.of(tmp_path / "a.tfrecord")
