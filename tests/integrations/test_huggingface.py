from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np
import pytest
from PIL import Image

import recordkit as rk
from recordkit.errors import SchemaError, TargetExistsError
from recordkit.integrations.huggingface import from_hf, to_hf
from tests.dataset.bases import plain_rows

if TYPE_CHECKING:
    from pathlib import Path

PIXELS = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
PNG = rk.images.encode(PIXELS, "png")
JPEG = rk.images.encode(PIXELS, "jpeg")

SCHEMA = rk.Schema(
    {
        "id": "int64",
        "flag": "bool",
        "tokens": "int32[?]",
        "box": "float32[2,2]",
        "depth": "float64[?,?]",
        "name": "string",
        "blob": "bytes?",
        "words": "string[?]",
        "picture": "png",
        "pictures": "jpeg[?]",
        "when": "datetime64:us",
        "inner/x": "uint8?",
    }
)
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "flag": number == 1,
        "tokens": list(range(number)),
        "box": np.full((2, 2), number / 2),
        "depth": np.ones((number, 3)),
        "name": "é" * number,
        "blob": b"\xff\x00" if number else None,
        "words": ["a", ""][:number],
        "picture": PNG,
        "pictures": [JPEG] * number,
        "when": np.datetime64(10**15 + number, "us"),
        "inner/x": None if number == 1 else number,
    }
    for number in range(3)
]


@pytest.fixture
def ds(tmp_path: Path) -> rk.Dataset:
    rk.write(tmp_path / "rows.tfrecord", ROWS, SCHEMA)
    return rk.open(tmp_path / "rows.tfrecord")


class TestToHf:
    @pytest.mark.parametrize("on_disk", [False, True])
    def test_has_the_same_rows(self, ds: rk.Dataset, tmp_path: Path, on_disk: bool) -> None:
        found = to_hf(ds, tmp_path / "rows.arrow" if on_disk else None)

        assert len(found) == 3
        assert [row["tokens"] for row in found] == [[], [0], [0, 1]]
        assert found[2]["depth"] == [[1, 1, 1], [1, 1, 1]]
        assert found["name"][:] == ["", "é", "éé"]
        assert (found[0]["blob"], found[1]["blob"], found[1]["inner/x"]) == (None, b"\xff\x00", None)

    def test_features_say_what_fields_are(self, ds: rk.Dataset) -> None:
        features = to_hf(ds).features

        assert features["picture"] == datasets.Image()
        assert features["pictures"] == datasets.List(datasets.Image())
        assert features["box"] == datasets.List(datasets.List(datasets.Value("float32"), length=2), length=2)
        assert features["tokens"] == datasets.List(datasets.Value("int32"))
        assert features["when"] == datasets.Value("timestamp[us]")

    def test_pictures_are_pictures(self, ds: rk.Dataset) -> None:
        found = to_hf(ds)[1]

        assert np.array_equal(np.asarray(found["picture"]), PIXELS)
        assert found["pictures"][0].size == (4, 4)

    def test_of_nothing_is_nothing_with_the_same_features(self, ds: rk.Dataset) -> None:
        assert len(to_hf(ds.take(0))) == 0
        assert to_hf(ds.take(0)).features == to_hf(ds).features

    def test_never_replaces_a_file(self, ds: rk.Dataset, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("mine")

        with pytest.raises(TargetExistsError, match=r"taken: already exists\n  Choose another"):
            to_hf(ds, tmp_path / "taken")

    def test_leaves_nothing_behind_where_it_fails(self, tmp_path: Path, ds: rk.Dataset) -> None:
        data = bytearray((tmp_path / "rows.tfrecord").read_bytes())
        data[-10] ^= 1
        (tmp_path / "rows.tfrecord").write_bytes(data)

        with pytest.raises(rk.CorruptRecordError):
            to_hf(rk.open(tmp_path / "rows.tfrecord"), tmp_path / "rows.arrow")

        assert not [path for path in tmp_path.iterdir() if "arrow" in path.name]


class TestThereAndBack:
    def test_is_the_same(self, ds: rk.Dataset, tmp_path: Path) -> None:
        from_hf(to_hf(ds), tmp_path / "back.tfrecord")

        back = rk.open(tmp_path / "back.tfrecord")

        assert back.schema == SCHEMA
        assert plain_rows(back) == plain_rows(ds)

    def test_in_another_order_and_in_shards(self, ds: rk.Dataset, tmp_path: Path) -> None:
        written = from_hf(to_hf(ds).select([2, 0]), tmp_path / "back", shards=2)

        assert (written.records, written.shards) == (2, 2)
        assert sorted(row["id"] for row in rk.open(tmp_path / "back")) == [0, 2]


class TestFromHf:
    def test_flattens_dicts_and_keeps_the_names_of_classes(self, tmp_path: Path) -> None:
        features = datasets.Features(
            {
                "label": datasets.ClassLabel(names=["cat", "dog"]),
                "box": {
                    "size": datasets.Value("int16"),
                    "at": {"x": datasets.List(datasets.Value("float32"), length=2)},
                },
                "grid": datasets.Array2D((2, 3), "uint8"),
                "rows": datasets.Array2D((None, 2), "int32"),
            }
        )
        row = {"label": "dog", "box": {"size": 3, "at": {"x": [1, 2]}}, "grid": [[1, 2, 3]] * 2, "rows": [[4, 5]]}
        data = datasets.Dataset.from_list([row, row], features=features)

        from_hf(data, tmp_path / "out", metadata={"by": "me"})

        found = rk.open(tmp_path / "out")
        assert str(found.schema) == str(
            rk.Schema(
                {
                    "label": "int64",
                    "box/size": "int16",
                    "box/at/x": "float32[2]",
                    "grid": "uint8[2,3]",
                    "rows": "int32[?,2]",
                }
            )
        )
        assert found[1]["grid"].tolist() == row["grid"]
        manifest = json.loads((tmp_path / "out" / "_recordkit" / "manifest.json").read_text())
        assert manifest["metadata"] == {"class_names": {"label": ["cat", "dog"]}, "by": "me"}

    def test_reads_pictures_that_are_files(self, tmp_path: Path) -> None:
        (tmp_path / "a.png").write_bytes(PNG)
        data = datasets.Dataset.from_dict({"image": [str(tmp_path / "a.png"), None]}).cast_column(
            "image", datasets.Image()
        )

        from_hf(data, tmp_path / "out.tfrecord")

        found = rk.open(tmp_path / "out.tfrecord")
        assert str(found.schema.fields["image"]) == "png?"  # type: ignore[union-attr]
        assert [row["image"] for row in found] == [PNG, None]

    def test_takes_pictures_of_several_kinds_for_bytes(self, tmp_path: Path) -> None:
        stream = io.BytesIO()
        Image.fromarray(PIXELS).save(stream, "BMP")
        pictures = [{"bytes": PNG, "path": None}, {"bytes": stream.getvalue(), "path": None}]
        features = datasets.Features({"image": datasets.Image()})

        from_hf(datasets.Dataset.from_dict({"image": pictures}, features=features), tmp_path / "out.tfrecord")

        assert [row["image"] for row in rk.open(tmp_path / "out.tfrecord")] == [PNG, stream.getvalue()]

    def test_stores_columns_as_a_schema_says(self, tmp_path: Path) -> None:
        data = datasets.Dataset.from_dict({"x": [1, 2]})

        from_hf(data, tmp_path / "out.tfrecord", schema={"x": "uint8"})

        assert rk.open(tmp_path / "out.tfrecord")[1]["x"].dtype == np.uint8

    @pytest.mark.parametrize(
        ("feature", "value", "words"),
        [
            (datasets.List({"k": datasets.Value("int64")}), [{"k": 1}], "x: a record cannot hold a list of dicts"),
            (datasets.Value("decimal128(5, 2)"), None, r"x: a record cannot hold Value\('decimal128\(5, 2\)'\)"),
            (
                datasets.Value("time32[s]"),
                None,
                r"x: a record cannot hold Value\('time32\[s\]'\)\n  Leave",
            ),
        ],
    )
    def test_refuses_what_a_record_cannot_hold(self, tmp_path: Path, feature: Any, value: Any, words: str) -> None:
        data = datasets.Dataset.from_dict({"x": [value]}, features=datasets.Features({"x": feature}))

        with pytest.raises(SchemaError, match=words):
            from_hf(data, tmp_path / "out.tfrecord")

        assert list(tmp_path.iterdir()) == []

    def test_takes_one_split(self, tmp_path: Path) -> None:
        splits = datasets.DatasetDict({"train": datasets.Dataset.from_dict({"x": [1]})})

        with pytest.raises(SchemaError, match=r"^expected a datasets.Dataset, found DatasetDict\n  Give one split"):
            from_hf(splits, tmp_path / "out.tfrecord")
