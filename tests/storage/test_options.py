from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk

if TYPE_CHECKING:
    from pathlib import Path


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"shard_size": "1GB", "shards": 2}, "shard_size and shards both decide where shards end"),
            ({"shards": 0}, "shards is a number from 1 up, found 0"),
            ({"shards": 100_001}, "shards is at most 100,000, found 100,001"),
            ({"records_per_shard": True}, "records_per_shard is a number from 1 up, found True"),
            ({"records_per_shard": 1.5}, "records_per_shard is a number from 1 up, found 1.5"),
            ({"rows": -1}, "rows is a number from 0 up, found -1"),
            ({"shard_size": 0}, "a size is a number of bytes"),
            ({"shard_size": "large"}, "a size is a number of bytes"),
            ({"compression": "GZIP"}, 'compression is None, "gzip" or "zlib", found \'GZIP\''),
            ({"compression": "gzip", "level": 10}, "a compression level is 0 to 9, found 10"),
            ({"level": True}, "a compression level is 0 to 9, found True"),
            ({"on_error": "ignore"}, 'on_error is "raise", "skip" or a function of (error, row, number)'),
            ({"workers": 0}, "workers is a number from 1 up"),
            ({"metadata": {"when": object()}}, "metadata is kept as JSON"),
            ({"part": 1}, "part is a number below parts, both given; found part=1, parts=None"),
            ({"part": 2, "parts": 2}, "part is a number below parts, both given; found part=2, parts=2"),
        ],
    )
    def test_what_cannot_be_meant_is_refused_before_anything_is_made(
        self, tmp_path: Path, options: dict[str, Any], words: str
    ) -> None:
        with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are compared below
            rk.create(tmp_path / "a", {"id": "int64"}, **options)

        assert words in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"shards": 2}, "a lone file has no shards: leave out shards, or pass a folder as the target"),
            ({"part": 0, "parts": 1}, "a lone file has no parts: pass a folder as the target"),
        ],
    )
    def test_a_lone_file_is_not_split(self, tmp_path: Path, options: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=f"^{words}$"):
            rk.create(tmp_path / "a.tfrecord", {"id": "int64"}, **options)

    def test_every_level_is_a_sound_file(self, tmp_path: Path) -> None:
        columns = {"text": ["many words " * 50] * 100}

        sizes = [
            rk.write(tmp_path / f"{level}.tfrecord.gz", columns, compression="gzip", level=level).bytes
            for level in range(10)
        ]

        assert sizes[0] > sizes[1] >= sizes[9]
