"""info, head, cat, count, schema, stats, diff: whole outputs, piped and on terminals."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import recordkit as rk
from recordkit import images, records
from recordkit.cli import main
from recordkit.cli.commands import _advice

from .conftest import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Done

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAYAAAAECAIAAAAiZtkUAAAADElEQVR4nGNgoB4AAABMAAFObwhsAAAAAElFTkSuQmCC"
DAMAGE = "bad.tfrecord: record 2 at byte 54: the payload or its checksum is damaged"

SUMMARY = """\
train
  records     6
  size        1.71 KB in 2 files, 828 bytes to 881 bytes each
  compression none
  message     Example
  record size 254 bytes to 284 bytes, median 267 bytes
  schema      written with the dataset

"""


class TestInfo:
    def test_says_what_is_there_and_what_the_values_are_like(self, run: Callable[..., Done], train: str) -> None:
        done = run("info", train)

        assert (done.status, done.err) == (0, "")
        assert done.out == SUMMARY + (
            "field    type          missing  values                                        histogram\n"
            "id       int64                  0 to 5                                        ██████\n"
            "image    png                    6x4, 69 bytes\n"
            "label    int64                  0 to 2                                        ███\n"
            "caption  string?             1  9 bytes, 'picture 0' 'picture 2' 'picture 3'\n"
            "tokens   int64[?]               0 to 5 long, 0 to 4                           █▆▅▃▂\n"
            "point    float32[2]             -1 to 2.5, 1 NaN                              █ ▂ ▂▂ ▂▂▂\n"
            "depth    float64[?,?]           1x2 2x2, 0 to 1.25                            ▄ █ ▄█  ▄█\n"
        )

    def test_fits_a_narrow_terminal(self, on_terminal: Callable[..., Done], train: str) -> None:
        done = on_terminal("info", train, width=70)

        assert done.status == 0
        assert "\x1b[36mrecords    \x1b[0m 6\n" in done.out
        assert done.bare == SUMMARY + (
            "field    type          missing  values\n"
            "id       int64                  0 to 5\n"
            "image    png                    6x4, 69 bytes\n"
            "label    int64                  0 to 2\n"
            "caption  string?             1  9 bytes, 'picture 0' 'picture 2' 'pic…\n"
            "tokens   int64[?]               0 to 5 long, 0 to 4\n"
            "point    float32[2]             -1 to 2.5, 1 NaN\n"
            "depth    float64[?,?]           1x2 2x2, 0 to 1.25\n"
        )

    def test_of_a_damaged_file_says_what_is_sound_and_what_is_not(self, run: Callable[..., Done], damaged: str) -> None:
        done = run("info", damaged)

        assert (done.status, done.err) == (1, "")
        assert done.out == (
            "bad.tfrecord\n"
            "  records     not counted: damaged\n"
            "  size        135 bytes in 1 file\n"
            "  compression none\n"
            "  message     text\n"
            "  record size 11 bytes\n"
            "  sampled     the first records of 1 file, 4 in total\n"
            "\n"
            "  first payload: payload-000\n"
            "\n"
            f"damage  {DAMAGE}\n"
        )

    def test_shows_what_was_changed_beside_the_records(self, run: Callable[..., Done], train: str) -> None:
        rk.add_fields(train, {"double": [0, 2, 4, 6, 8, 10]})
        rk.drop_fields(train, ["image"])
        rk.delete(train, where="id == 5")

        done = run("info", train)

        assert "\n  records     5\n" in done.out
        assert "\n  changes     added double; hidden image; 1 record deleted (in overlays)\n" in done.out
        assert "\ndouble   int64                  0 to 8  " in done.out
        assert "image    png" not in done.out

    def test_reads_the_standard_input(self, run: Callable[..., Done], train: str) -> None:
        data = b"".join(path.read_bytes() for path in sorted(Path(train).glob("*.tfrecord")))

        done = run("info", "-", given=gzip.compress(data))

        assert (done.status, done.err) == (0, "")
        assert "\n  records     6\n  compression gzip\n  message     Example\n" in done.out
        assert "\n  schema      inferred from the records\n" in done.out

    def test_json_has_all_of_it(self, run: Callable[..., Done], train: str) -> None:
        found = json.loads(run("info", train, "--json").out)

        assert (found["records"], found["files"], found["message"]) == (6, 2, "Example")
        assert found["features"]["caption"] == {"kinds": ["bytes"], "records": 5, "missing": 1, "counts": [1, 1]}
        assert found["fields"]["label"]["max"] == 2

    def test_files_that_were_left_out_are_listed(self, run: Callable[..., Done], train: str) -> None:
        Path(train, "notes.txt").touch()
        Path(train, "stray.tfrecord").touch()

        done = run("info", train)

        line = "left out    notes.txt (text), stray.tfrecord (not in the manifest)"
        assert f"\n  {line}\n" in done.out
        assert json.loads(run("info", train, "--json").out)["left_out"] == {
            "notes.txt": "text",
            "stray.tfrecord": "not in the manifest",
        }

    def test_empty_file_is_fine_but_worth_a_word(self, run: Callable[..., Done]) -> None:
        Path("a.tfrecord").touch()

        done = run("info", "a.tfrecord")

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            "a.tfrecord\n  records     0\n  size        0 bytes in 1 file\n  compression none\n"
            "  message     none: there is no record\n\n"
            "advice  1 of 1 files is empty: was a writer killed before its first record?\n"
        )


class TestAdvice:
    def advice(self, done: Done) -> list[str]:
        assert done.status == 0
        return [line.removeprefix("advice  ") for line in done.out.splitlines() if line.startswith("advice")]

    @pytest.mark.parametrize(
        ("declared", "stored", "sure"),
        [
            ("uint8[32,32]", lambda pixels: pixels, True),
            ("bytes", lambda pixels: pixels.tobytes(), False),
            ("int64[1024]", lambda pixels: pixels.reshape(-1).astype(np.int64), False),
        ],
    )
    def test_decoded_pixels_would_be_smaller_as_png(
        self, declared: str, stored: Callable[..., object], sure: bool, run: Callable[..., Done]
    ) -> None:
        pixels = np.repeat(np.arange(32, dtype=np.uint8)[None] * 4, 32, 0)
        rk.write("a.tfrecord", [{"pixels": stored(pixels)}] * 8, {"pixels": declared})

        found = self.advice(run("info", "a.tfrecord"))

        share = len(images.encode(pixels, "png")) / 1024
        what = "holds decoded pixels" if sure else "may hold decoded pixels (32x32)"
        assert found == [f"pixels {what}: as PNG, which loses nothing, 8 of them take {share:.0%} of the bytes."]

    def test_noise_is_left_as_it_is(self, run: Callable[..., Done]) -> None:
        rng = np.random.default_rng(0)
        noise = [{"pixels": rng.integers(0, 256, (32, 32), np.uint8)} for _ in range(8)]
        rk.write("a.tfrecord", noise, {"pixels": "uint8[32,32]"})

        assert self.advice(run("info", "a.tfrecord")) == []

    def test_names_that_take_a_third_of_a_record(self, run: Callable[..., Done]) -> None:
        rk.write("a.tfrecord", [{f"a_rather_long_name_{number}": number for number in range(10)}] * 5)

        assert self.advice(run("info", "a.tfrecord")) == [
            (
                "The names of the 10 features take 64% of each record; the longest is 'a_rather_long_name_0'. Shorter "
                "names, or one array for features that belong together, make the files smaller and reading faster."
            )
        ]

    def test_gzip_around_pictures(self, run: Callable[..., Done]) -> None:
        rng = np.random.default_rng(0)
        pictures = [{"image": images.encode(rng.integers(0, 256, (256, 256, 3), np.uint8), "jpeg")} for _ in range(2)]
        rk.write("a.tfrecord.gz", pictures, {"image": "jpeg"}, compression="gzip")

        (found,) = self.advice(run("info", "a.tfrecord.gz"))

        assert found.startswith("100% of the bytes are jpeg or png, which are compressed already: gzip saves ")

    def test_shards_too_small(self, run: Callable[..., Done]) -> None:
        rk.write("small", [{"id": number} for number in range(20)], records_per_shard=1)

        (found,) = self.advice(run("info", "small"))

        assert found.startswith("20 files of 31 bytes: opening them takes longer than reading them.")

    def test_shards_too_large(self, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_advice, "_LARGE", 3000)
        rk.write("large.tfrecord", [{"id": number} for number in range(100)])

        (found,) = self.advice(run("info", "large.tfrecord"))

        assert found.startswith("The largest file is 3.1 KB: it cannot be split")


class TestHead:
    def test_shows_records_with_a_line_a_field(self, run: Callable[..., Done], train: str) -> None:
        done = run("head", train, "-n", "2")

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            "record 0\n"
            "  id       0\n"
            "  image    png 6x4, 69 bytes\n"
            "  label    0\n"
            "  caption  picture 0\n"
            "  tokens   int64[0]\n"
            "  point    [0 -1]\n"
            "  depth    float64[1,2]: 0 0\n"
            "record 1\n"
            "  id       1\n"
            "  image    png 6x4, 69 bytes\n"
            "  label    1\n"
            "  caption  missing\n"
            "  tokens   [0]\n"
            "  point    [0.5 -1]\n"
            "  depth    float64[2,2]: 0.25 0.25 0.25 0.25\n"
        )

    def test_cuts_lines_to_the_terminal(self, on_terminal: Callable[..., Done]) -> None:
        rk.write("a.tfrecord", [{"text": "日本語 " * 20, "x": np.arange(100)}])

        done = on_terminal("head", "a.tfrecord", width=40)

        assert done.bare == (
            "record 0\n  text  日本語 日本語 日本語 日本語 日…\n  x     int64[100], 0 to 99: 0 1 2 3 4 …\n"
        )

    def test_starts_and_chooses_where_it_is_told(self, run: Callable[..., Done], train: str) -> None:
        done = run("head", train, "-n", "1", "--skip", "1", "--where", "label == 1", "--fields", "id,label")

        assert done.out == "record 4\n  id     4\n  label  1\n"

    def test_of_payloads_shows_their_first_bytes(self, run: Callable[..., Done], damaged: str) -> None:
        done = run("head", damaged, "-n", "1", "--skip", "1", "--skip-damaged")

        assert done.out == "record 1\n  payload  11 bytes: 70 61 79 6c 6f 61 64 2d 30 30 31\n"

    def test_nothing_in_a_record_steers_the_terminal(self, on_terminal: Callable[..., Done]) -> None:
        hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r\n"
        rk.write("a.tfrecord", [{"text": hostile, "\x1b[31mname": 1}])

        for command in ("head", "info", "stats", "schema"):
            seen = on_terminal(command, "a.tfrecord", width=200).bare
            assert not set("\x1b\x07\x9b\u202e\r") & set(seen.replace("\r\x1b[K", "")), command

    def test_nothing_in_a_record_steers_it_through_the_log(self, run: Callable[..., Done]) -> None:
        name = b"\x1b[2J"
        feature = b"\x0a\x04" + name + b"\x12\x05\x1a\x03\x0a\x01\x01"
        steps = b"\x0a\x04" + name + b"\x12\x07\x0a\x05\x1a\x03\x0a\x01\x01"
        both = b"\x0a\x0f\x0a\x0d" + feature + b"\x12\x11\x0a\x0f" + steps
        Path("a.tfrecord").write_bytes(records.pack(both))

        done = run("schema", "a.tfrecord")

        assert done.status == 0
        assert done.err.startswith("\\x1b[2J: a feature and a feature list have this name")

    def test_json_has_the_values(self, run: Callable[..., Done], train: str) -> None:
        done = run("head", train, "-n", "1", "--skip", "4", "--fields", "id,point", "--json")

        assert json.loads(done.out) == [{"record": 4, "fields": {"id": 4, "point": [2.0, "NaN"]}}]


class TestCat:
    def test_gives_a_json_line_a_record(self, run: Callable[..., Done], train: str) -> None:
        done = run("cat", train, "--take", "2")

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            f'{{"id": 0, "image": "{PICTURE}", "label": 0, "caption": "picture 0", "tokens": [], '
            '"point": [0.0, -1.0], "depth": [[0.0, 0.0]]}\n'
            f'{{"id": 1, "image": "{PICTURE}", "label": 1, "caption": null, "tokens": [0], '
            '"point": [0.5, -1.0], "depth": [[0.25, 0.25], [0.25, 0.25]]}\n'
        )

    def test_chooses_fields_and_records(self, run: Callable[..., Done], train: str) -> None:
        done = run("cat", train, "--fields", "id,caption", "--where", "label != 0", "--skip", "1", "--take", "2")

        assert done.out == '{"id": 2, "caption": "picture 2"}\n{"id": 4, "caption": "picture 4"}\n'

    def test_says_how_many_bytes_where_asked_to(self, run: Callable[..., Done], train: str) -> None:
        done = run("cat", train, "--fields", "image", "--bytes", "size", "--take", "1")

        assert done.out == '{"image": {"bytes": 69}}\n'

    def test_reads_the_standard_input(self, run: Callable[..., Done]) -> None:
        rk.write("a.tfrecord", [{"id": 1}, {"id": 2}])

        assert run("cat", "-", given=Path("a.tfrecord").read_bytes()).out == '{"id": 1}\n{"id": 2}\n'

    def test_stops_at_damage_or_passes_over_it(self, run: Callable[..., Done]) -> None:
        rk.write("a.tfrecord", [{"id": number} for number in range(3)])
        data = bytearray(Path("a.tfrecord").read_bytes())
        data[45] ^= 1
        Path("b.tfrecord").write_bytes(data)

        stopped, passed = run("cat", "b.tfrecord"), run("cat", "b.tfrecord", "--skip-damaged")

        words = "error: b.tfrecord: record 1 at byte 31: "
        assert stopped.status == passed.status == 1
        assert stopped.err.startswith(words)
        assert passed.out == '{"id": 0}\n{"id": 2}\n'
        assert passed.err == (f"{words}the payload or its checksum is damaged\n  recordkit verify lists all damage.\n")

    def test_raw_gives_payloads_and_tfrecord_records(
        self, damaged: str, in_folder: None, capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        raw = main(["cat", damaged, "--raw", "--take", "2"]), capsysbinary.readouterr().out
        framed = main(["cat", damaged, "--tfrecord", "--take", "2"]), capsysbinary.readouterr().out

        assert raw == (0, b"payload-000payload-001")
        assert framed == (0, records.pack(b"payload-000") + records.pack(b"payload-001"))

    def test_records_chosen_by_a_filter_are_those_of_the_file(
        self, train: str, in_folder: None, capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        status = main(["cat", train, "--tfrecord", "--where", "label == 2"])

        found = records.chunk(capsysbinary.readouterr().out)
        assert (status, list(found)) == (0, [list(rk.open(train, raw=True))[number] for number in (2, 5)])

    def test_bytes_are_not_sent_to_a_terminal(self, on_terminal: Callable[..., Done], damaged: str) -> None:
        done = on_terminal("cat", damaged, "--raw")

        assert done.status == 2
        assert done.bare == ("error: binary output would garble the terminal\n  Redirect it to a file or a pipe.\n")

    def test_payloads_without_fields_are_refused(self, run: Callable[..., Done], damaged: str) -> None:
        done = run("cat", damaged)

        assert (done.status, done.out) == (2, "")
        assert done.err == (
            "error: bad.tfrecord: these payloads are not Examples, so they have no fields\n"
            "  recordkit cat --raw prints them unchanged; recordkit info says what they look like.\n"
        )


class TestCount:
    def test_gives_the_number_alone(self, run: Callable[..., Done], train: str) -> None:
        assert run("count", train) == run("count", *sorted(Path(train).glob("*.tfrecord")))
        assert run("count", train).out == "6\n"
        assert run("count", train, "--json").out == '{\n  "records": 6\n}\n'

    def test_gives_that_of_each_file(self, run: Callable[..., Done], train: str) -> None:
        assert run("count", train, "--files").out == (
            "records  file\n"
            "      3  train/train-00000-of-00002.tfrecord\n"
            "      3  train/train-00001-of-00002.tfrecord\n"
            "6 in total\n"
        )

    def test_counts_what_a_filter_holds_for(self, run: Callable[..., Done], train: str) -> None:
        assert run("count", train, "--where", "caption is not none and label == 1").out == "1\n"

    def test_counts_the_standard_input_and_what_is_sound(self, run: Callable[..., Done], damaged: str) -> None:
        sound = records.pack(b"a") * 7

        assert run("count", "-", given=sound).out == "7\n"
        assert run("count", damaged, "--skip-damaged").out == "4\n"

    def test_filter_that_cannot_be_read_shows_where(self, run: Callable[..., Done], train: str) -> None:
        done = run("count", train, "--where", "label = 1")

        assert (done.status, done.out) == (2, "")
        assert done.err.splitlines()[1:3] == ["  label = 1", "        ^"]


class TestSchema:
    def test_is_a_table(self, run: Callable[..., Done], train: str) -> None:
        assert run("schema", train).out == (
            "field    type\n"
            "id       int64\n"
            "image    png\n"
            "label    int64\n"
            "caption  string?\n"
            "tokens   int64[?]\n"
            "point    float32[2]\n"
            "depth    float64[?,?]\n"
            "7 fields, written with the dataset\n"
        )

    def test_as_python_is_a_program(self, run: Callable[..., Done], train: str) -> None:
        found: dict[str, object] = {}

        exec(run("schema", train, "--as", "python").out, found)

        assert found["schema"] == rk.open(train).schema

    def test_as_json_can_be_loaded(self, run: Callable[..., Done], train: str) -> None:
        done = run("schema", train, "--as", "json")

        assert rk.Schema.from_json(done.out) == rk.open(train).schema
        assert run("schema", train, "--json") == done

    def test_for_tensorflow_needs_none(self, run: Callable[..., Done], train: str) -> None:
        assert run("schema", train, "--as", "tf").out == (
            "import tensorflow as tf\n\nfeatures = {\n"
            "    'id': tf.io.FixedLenFeature([], tf.int64),\n"
            "    'image': tf.io.FixedLenFeature([], tf.string),\n"
            "    'label': tf.io.FixedLenFeature([], tf.int64),\n"
            "    'caption': tf.io.RaggedFeature(tf.string),\n"
            "    'tokens': tf.io.RaggedFeature(tf.int64),\n"
            "    'point': tf.io.FixedLenFeature([2], tf.float32),\n"
            "    'depth': tf.io.FixedLenFeature([], tf.string),\n"
            "    'depth/shape': tf.io.FixedLenFeature([2], tf.int64),\n"
            "    'depth/dtype': tf.io.FixedLenFeature([], tf.string),\n"
            "}\n"
        )

    @pytest.mark.tensorflow
    def test_for_tensorflow_says_what_tensorflow_would(self, run: Callable[..., Done], tf: object) -> None:
        schema = rk.Schema({"a": "int64", "b": "float32[2,3]?"}, sequences={"s": "float32[2]", "t": "int64[?]"})
        rk.write("a.tfrecord", [{"a": 1, "s": [[1, 2]], "t": [[1], [2, 3]]}], schema)
        found: dict[str, object] = {}

        exec(run("schema", "a.tfrecord", "--as", "tf").out, found)

        assert (found["features"], found["sequence_features"]) == schema.to_feature_description()


class TestStats:
    def test_is_a_table_and_what_is_worth_a_word(self, run: Callable[..., Done], train: str) -> None:
        done = run("stats", train)

        assert (done.status, done.err) == (0, "")
        assert done.out == (
            "6 records\n"
            "field    type          missing  distinct   min  median   max    mean     std  histogram\n"
            "id       int64               0         6     0       2     5     2.5   1.708  ██████\n"
            "image    png                 0         1  69 B    69 B  69 B    69 B     0 B\n"
            "label    int64               0         3     0       1     2       1  0.8165  ███\n"
            "caption  string?             1         5   9 B     9 B   9 B     9 B     0 B\n"
            "tokens   int64[?]            0         5     0       1     4   1.333   1.247  █▆▅▃▂\n"
            "point    float32[2]          0         7    -1       0   2.5  0.2273   1.286  █ ▂ ▂▂ ▂▂▂\n"
            "depth    float64[?,?]        0         6     0    0.75  1.25  0.6667  0.4249  ▄ █ ▄█  ▄█\n"
            "\n"
            "image    shapes: 4x6x3 (100.0%)\n"
            "label    most: 0 (33.3%), 1 (33.3%), 2 (33.3%)\n"
            "caption  such as 'picture 0', 'picture 2', 'picture 3'\n"
            "tokens   length 0 to 5, median 2; most: 0 (33.3%), 1 (26.7%), 2 (20.0%), …\n"
            "point    1 NaN\n"
            "depth    length 2 to 4, median 2; shapes: 1x2 (50.0%), 2x2 (50.0%)\n"
        )

    @pytest.mark.parametrize("width", [80, 100, 120])
    def test_fits_the_terminal(self, width: int, on_terminal: Callable[..., Done], train: str) -> None:
        done = on_terminal("stats", train, width=width)

        assert done.status == 0
        assert max(map(len, done.bare.splitlines())) <= width
        assert ("std" in done.bare, "mean" in done.bare) == (width >= 110, width >= 95)

    def test_of_some_fields_and_a_sample(self, run: Callable[..., Done], train: str) -> None:
        done = run("stats", train, "--fields", "label", "--sample", "2", "--json")

        found = json.loads(done.out)
        assert (found["rows"], found["total"], list(found["fields"])) == (2, 6, ["label"])


class TestDiff:
    def test_same_is_status_0(self, run: Callable[..., Done], train: str) -> None:
        done = run("diff", train, train)

        assert (done.status, done.err) == (0, "")
        assert done.out == ("the same: 6 and 6 records, the digests in both manifests are equal; no record was read\n")

    def test_different_is_status_1_with_the_differences(self, run: Callable[..., Done], train: str) -> None:
        changed = [{**row, "label": 9} if row["id"] == 2 else row for row in rows(7)]
        rk.write("other.tfrecord", changed, rk.open(train).schema)

        done = run("diff", train, "other.tfrecord", "--on", "id")
        found = json.loads(run("diff", train, "other.tfrecord", "--on", "id", "--json").out)

        assert done.status == 1
        assert done.out == (
            "different: 6 and 7 records, compared by id\n  only in b: 1 (6)\n  changed: 1 (2)\n    label: 1 (2)\n"
        )
        assert (found["same"], found["records"], found["only_in_b"]) == (False, [6, 7], {"count": 1, "examples": [6]})


@pytest.mark.parametrize("command", ["info", "head", "cat", "count", "schema", "stats", "verify"])
def test_shows_what_was_added_deleted_and_appended_by_turns(command: str, run: Callable[..., Done]) -> None:
    rk.write("data", [{"id": 0}, {"id": 1}])
    rk.add_fields("data", {"z": [1, 2]})
    with rk.append("data") as writer:
        writer.write({"id": 2, "z": 9})
    rk.delete("data", where="id == 0")
    with rk.append("data") as writer:
        writer.write({"id": 3, "z": 4})

    done = run(command, "data")

    assert (done.status, done.err) == (0, "")
