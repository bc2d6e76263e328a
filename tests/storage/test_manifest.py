from __future__ import annotations

import hashlib
import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import _core, records
from recordkit.storage.format import Manifest, Shard
from tests.storage import reading

if TYPE_CHECKING:
    from pathlib import Path

SHARD = Shard("a-00000-of-00001.tfrecord", 3, 90, 90, "01234567", "ab" * 16, None, 4, 1, "a")
COLUMNS = {"text": [f"number {n}" for n in range(3000)]}


def digest_of(payloads: list[bytes]) -> str:
    """The digest as its definition says: over length and CRC of every payload."""
    digest = hashlib.blake2b(digest_size=16)
    for payload in payloads:
        digest.update(struct.pack("<QI", len(payload), _core.crc32c(payload)))
    return digest.hexdigest()


class TestWritten:
    @pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
    def test_says_of_every_shard_what_is_in_it(self, tmp_path: Path, compression: Any) -> None:
        rk.write(tmp_path / "a", COLUMNS, records_per_shard=2000, compression=compression)

        shards = reading.manifest(tmp_path / "a")["shards"]

        for path, raw, shard in zip(reading.files(tmp_path / "a"), reading.raws(tmp_path / "a"), shards, strict=True):
            data, payloads = path.read_bytes(), list(records.chunk(raw))
            assert (shard["records"], shard["bytes"], shard["raw_bytes"]) == (len(payloads), len(data), len(raw))
            assert shard["crc32c"] == f"{_core.crc32c(data):08x}"
            assert shard["digest"] == digest_of(payloads)
            assert (shard["rows"], shard["skipped"], shard["split"]) == (len(payloads), 0, "a")
            assert shard["compression"] == compression

    def test_the_digest_is_that_of_the_records_and_not_of_the_file(self, tmp_path: Path) -> None:
        digests = set()

        for number, compression in enumerate([None, "gzip", "zlib"]):
            rk.write(tmp_path / str(number), COLUMNS, compression=compression)
            digests |= {shard["digest"] for shard in reading.manifest(tmp_path / str(number))["shards"]}

        assert len(digests) == 1

    def test_tells_how_the_dataset_was_made(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "a", [{"id": 1}], records_per_shard=5, compression="gzip", level=3)

        (operation,) = reading.manifest(tmp_path / "a")["lineage"]

        assert operation["operation"] == "create"
        assert operation["recordkit"] == rk.__version__
        given = {"name": "a", "shard_records": 5, "rows": 1, "compression": "gzip", "level": 3}
        assert given.items() <= operation["arguments"].items()

    def test_the_same_rows_give_the_same_bytes(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            rk.write(tmp_path / name / "a", COLUMNS, compression="gzip", metadata={"b": 1, "a": 2})

        assert reading.tree(tmp_path / "one") == reading.tree(tmp_path / "two")


class TestManifest:
    def test_loads_what_was_saved(self, tmp_path: Path) -> None:
        manifest = Manifest(rk.Schema({"x": "string"}), (SHARD,), ({"operation": "create"},), {"ü": [1, None]})
        (tmp_path / "manifest.json").write_bytes(manifest.to_json())

        found = Manifest.load(tmp_path / "manifest.json")

        assert found == manifest
        assert found.to_json() == manifest.to_json()
        assert found.records == 3

    def test_none_where_there_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()

        assert Manifest.load(tmp_path / "manifest.json") is None
        assert Manifest.load(tmp_path / "file/manifest.json") is None

    def test_a_newer_format_is_refused_in_words(self, tmp_path: Path) -> None:
        path = tmp_path / "manifest.json"
        path.write_text('{"format": 3, "shape": "of things to come"}')

        with pytest.raises(rk.StorageError) as caught:
            Manifest.load(path)

        words = "the manifest has format 3, and this recordkit knows 2\n  Install a newer recordkit."
        assert str(caught.value) == f"{path}: {words}"

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "7", "{}", '{"format": "one"}', '{"format": 1}', "\xff", '{"format": 1, "schema": 3}']
    )
    def test_anything_else_is_refused_in_words(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "manifest.json"
        path.write_bytes(text.encode("latin-1"))

        with pytest.raises(rk.StorageError) as caught:
            Manifest.load(path)

        assert str(caught.value).startswith(f"{path}: this is no sound manifest: ")

    def test_a_manifest_cut_short_anywhere_is_refused(self, tmp_path: Path) -> None:
        path, data = tmp_path / "manifest.json", Manifest(rk.Schema({"x": "string"}), (SHARD,)).to_json()

        for size in range(len(data.rstrip())):
            path.write_bytes(data[:size])
            with pytest.raises(rk.StorageError):
                Manifest.load(path)

    def test_is_json_that_people_can_read(self) -> None:
        text = Manifest(rk.Schema({"größe": "float32"}), (SHARD,)).to_json().decode()

        assert "größe" in text
        assert list(json.loads(text)) == [
            "format",
            "schema",
            "shards",
            "lineage",
            "metadata",
        ]
