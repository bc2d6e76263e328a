from __future__ import annotations

import io
from base64 import b64encode
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import recordkit as rk
from tests.dataset.files import SCHEMA, flip, payloads, save, save_many

if TYPE_CHECKING:
    from pathlib import Path


def picture(kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(file, kind)
    return file.getvalue()


class TestText:
    def test_says_where_how_much_and_which_fields(self, tmp_path: Path) -> None:
        ds = rk.open(save_many(tmp_path, [3, 4]))
        size = sum(file.file.size for file in ds.shards)

        assert repr(ds) == f"Dataset(2 paths: 2 files, {size} bytes)\n  id    int64\n  name  string"

    def test_says_how_many_records_where_a_manifest_does(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "d", [{"id": 1}])

        lines = repr(rk.open(tmp_path / "d")).splitlines()

        assert lines[0].startswith(f"Dataset({tmp_path / 'd'}: 1 record, 1 file, ")
        assert lines[1:] == ["  id  int64"]

    def test_shows_only_what_is_selected(self, tmp_path: Path) -> None:
        assert repr(rk.open(save_many(tmp_path, [3])).select("id")).endswith("\n  id  int64")

    def test_says_that_there_are_payloads(self, tmp_path: Path) -> None:
        ds = rk.open(save(tmp_path / "a", [b"x"]), raw=True)

        assert repr(ds) == f"Dataset({tmp_path / 'a'}: 1 file, 17 bytes)\n  payloads, which are no Examples"

    def test_says_steps_of_sequences(self, tmp_path: Path) -> None:
        schema = rk.Schema({"id": "int64"}, sequences={"words": "string"})
        ds = rk.open(save(tmp_path / "a", schema.encode_rows([{"id": 1, "words": ["a"]}])), schema=schema)

        assert repr(ds).splitlines()[1:] == ["  id     int64", "  words  string a step"]

    def test_an_error_is_shown_in_one_line(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a", payloads(0, 3))
        flip(path, 12)

        shown = repr(rk.open(path)).splitlines()

        assert shown[1:] == [f"  {path}: record 0 at byte 0: the payload's checksum does not match"]

    @pytest.mark.parametrize(("size", "shown"), [(1, "17 bytes"), (5000, "5.02 KB"), (2_000_000, "2 MB")])
    def test_sizes_are_round(self, tmp_path: Path, size: int, shown: str) -> None:
        assert shown in repr(rk.open(save(tmp_path / "a", [b"x" * size]), raw=True))

    def test_of_a_pipe_no_size_is_made_up(self) -> None:
        class Pipe(io.BytesIO):
            def seekable(self) -> bool:
                return False

        shown = repr(rk.open(Pipe(bytes(SCHEMA.encode_rows([{"id": 1, "name": "a"}])))))

        assert "GB" not in shown
        assert "id    int64" in shown


class TestHtml:
    def test_shows_the_first_rows_as_a_table(self, tmp_path: Path) -> None:
        shown = rk.open(save_many(tmp_path, [9]))._repr_html_()

        assert shown.count("<tr>") == 6
        assert "<th>id<br><small>int64</small></th>" in shown
        assert "<td>nnnn4</td>" in shown
        assert "nnnnn5" not in shown

    def test_escapes_markup_wherever_it_comes_from(self, tmp_path: Path) -> None:
        evil = "<script>alert('x')</script>"
        schema = rk.Schema({evil: "string", "data": "bytes"})
        chunk = schema.encode_rows([{evil: evil, "data": evil.encode()}])
        shown = rk.open(save(tmp_path / "<script>", chunk), schema=schema)._repr_html_()

        assert "<script>" not in shown
        assert shown.count("&lt;script&gt;") == 3

    def test_what_parse_makes_is_escaped_too(self, tmp_path: Path) -> None:
        shown = rk.open(save(tmp_path / "a", [b"<b>"]), parse=bytes.decode)._repr_html_()

        assert "<td>&lt;b&gt;</td>" in shown

    @pytest.mark.parametrize("kind", ["jpeg", "png"])
    def test_pictures_are_shown(self, tmp_path: Path, kind: str) -> None:
        data = picture(kind)
        schema = rk.Schema({"image": "bytes"})

        shown = rk.open(save(tmp_path / "a", schema.encode_rows([{"image": data}])))._repr_html_()

        assert f'<img src="data:image/{kind};base64,{b64encode(data).decode()}"' in shown

    def test_a_picture_that_is_too_large_is_only_counted(self, tmp_path: Path) -> None:
        data = b"\xff\xd8\xff" + bytes(1 << 20)

        shown = rk.open(save(tmp_path / "a", [data]), raw=True)._repr_html_()

        assert "<img" not in shown
        assert "1,048,579 bytes" in shown

    def test_values_are_short(self, tmp_path: Path) -> None:
        schema = rk.Schema(
            {"text": "string", "many": "float32[100]", "few": "int64[2]", "no": "int64?", "some": "int64[?]"}
        )
        chunk = schema.encode_rows([{"text": "y" * 1000, "many": [0.5] * 100, "few": [1, 2], "some": [7] * 9}])

        shown = rk.open(save(tmp_path / "a", chunk), schema=schema)._repr_html_()

        assert len(shown) < 2000
        for cell in ("y" * 60 + "…", "float32[100]", "[1, 2]", "<i>missing</i>", "int64[9]"):
            assert f"<td>{cell}</td>" in shown

    def test_an_error_is_shown_in_place_of_the_table(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a&b", payloads(0, 3))
        flip(path, 12)

        shown = rk.open(path)._repr_html_()

        assert "a&amp;b: record 0 at byte 0: the payload&#x27;s checksum does not match" in shown
        assert "<table>" not in shown
