from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit.errors import StorageError
from recordkit.storage.find import _locate
from recordkit.storage.find._locate import Located, locate
from recordkit.storage.format import Manifest, Shard

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

JUNK = {
    "_SUCCESS": "a marker or hidden file of Spark, Hadoop or Beam",
    ".part-00000.crc": "checksums",
    "a.tfrecord.crc": "checksums",
    "SHA256SUMS": "checksums",
    ".DS_Store": "the notes of macOS about a folder",
    ".hidden": "a hidden file",
    ".train.recordkit": "the staging of a writer that has not finished",
    "a.rki": "an index",
    "a.tfrecord.idx": "an index",
    "a.tfrecord.index": "an index",
    "stats.json": "JSON",
    "a.tfrecord.tmp": "a file that is not finished",
    "model.ckpt-7.data-00000-of-00001": "a TensorFlow checkpoint",
    "README.md": "text",
    "a.parquet": "another format",
    "a.tar.gz": "an archive",
    "cat.jpg": "a picture, sound or document",
    "LICENSE": "not named like a record file",
}


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def shards(name: str, total: int, ending: str = ".tfrecord") -> list[str]:
    return [f"{name}-{number:05d}-of-{total:05d}{ending}" for number in range(total)]


def names(files: Iterable[Path]) -> list[str]:
    return [file.name for file in files]


def splits(found: Located) -> dict[str, list[str]]:
    return {split: names(files) for split, files in found.splits.items()}


def error_of(where: _locate.Where, split: str | None = None) -> str:
    with pytest.raises(StorageError) as caught:
        locate(where, split=split)
    return str(caught.value)


class TestFolder:
    def test_links_that_lead_to_themselves(self, tmp_path: Path) -> None:
        fill(tmp_path, "a.tfrecord")
        for name in ("README", "loop"):
            (tmp_path / name).symlink_to(name)

        found = locate(tmp_path)

        assert names(found.files) == ["a.tfrecord"]
        assert names(file for file, _ in found.left_out) == ["README", "loop"]
        (tmp_path / "b.tfrecord").symlink_to("b.tfrecord")
        with pytest.raises(StorageError, match=r"b\.tfrecord: cannot be read: Too many levels of symbolic links"):
            len(rk.open(tmp_path))

    def test_a_set_is_read_in_the_order_of_its_numbers(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("train", 12))

        found = locate(tmp_path)

        assert names(found.files) == shards("train", 12)
        assert splits(found) == {"train": shards("train", 12)}
        assert (found.folder, found.manifest, found.left_out, found.tfds) == (None, None, (), None)

    @given(st.randoms(use_true_random=False))
    def test_numbers_of_any_width_sort_as_numbers(self, order: random.Random) -> None:
        files = [Path(f"a/x_{number}.tfrecord") for number in range(20)]
        mixed = order.sample(files, len(files))

        assert list(_locate._from_files(mixed).files) == files

    def test_several_names_are_splits(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("train", 2), *shards("test", 1), "extra.tfrecord.gz")

        assert splits(locate(tmp_path)) == {
            "extra": ["extra.tfrecord.gz"],
            "test": shards("test", 1),
            "train": shards("train", 2),
        }

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            (["mnist-train.tfrecord-00000-of-00001", "mnist-odd.tfrecord-00000-of-00001"], ["odd", "train"]),
            (["mnist-train-00000-of-00001", "mnist-test-00000-of-00001.gz"], ["test", "train"]),
            (["part-00000", "part-00001"], ["here"]),
            (["part-r-00000.tfrecord", "part-r-00001.tfrecord.gz"], ["here"]),
            (["part-00000-of-00001"], ["here"]),
            (["00-512x512-798.tfrec", "01-512x512-12.tfrec"], ["here"]),
            (["train00-687.tfrec", "train01-12.tfrec", "test00-7.tfrec"], ["test", "train"]),
            (["train_1.tfr", "train_2.tfr", "val.record"], ["train", "val"]),
            (["cifar10.tfrecord", "cifar100.tfrecord"], ["cifar10", "cifar100"]),
            (["a-train.tfrecords", "b-train.tfrecords"], ["a-train", "b-train"]),
            (["events.out.tfevents.16.host", "events.out.tfevents.17.host"], ["events"]),
            ([*shards("train", 1), *shards("train-append1", 2), *shards("train-append10", 1)], ["train"]),
        ],
    )
    def test_names_tell_the_splits(self, tmp_path: Path, files: list[str], expected: list[str]) -> None:
        found = locate(fill(tmp_path / "here", *files))

        assert list(found.splits) == expected
        assert sorted(names(found.files)) == sorted(files)

    def test_kaggle_shards_are_ordered_by_number_not_by_count(self, tmp_path: Path) -> None:
        fill(tmp_path, "train10-5.tfrec", "train9-800.tfrec", "train1-6.tfrec")

        assert names(locate(tmp_path).files) == ["train1-6.tfrec", "train9-800.tfrec", "train10-5.tfrec"]

    def test_appended_sets_come_behind_their_own(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("t-append10", 1), *shards("t-append2", 1), *shards("t", 1))

        assert names(locate(tmp_path).files) == [*shards("t", 1), *shards("t-append2", 1), *shards("t-append10", 1)]

    def test_what_holds_no_records_is_left_out_and_said(self, tmp_path: Path) -> None:
        fill(tmp_path, "a.tfrecord", *JUNK, "_recordkit/a.tfrecord.rki", "more/b.tfrecord")

        found = locate(tmp_path)

        said = {path.name: reason for path, reason in found.left_out}
        assert names(found.files) == ["a.tfrecord"]
        assert said == {**JUNK, "_recordkit": "what recordkit keeps beside the records", "more": "a folder"}

    def test_a_split_can_be_asked_for(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("train", 2), *shards("test", 1))

        found = locate(tmp_path, split="train")

        assert (names(found.files), list(found.splits)) == (shards("train", 2), ["train"])

    def test_an_unknown_split_is_named_with_those_there_are(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("train", 2), *shards("test", 1))

        assert error_of(tmp_path, "trian") == (
            f"{tmp_path}: there is no split 'trian'\n  Did you mean 'train'? There are: test, train."
        )
        assert error_of(tmp_path, "holdout").endswith("\n  There are: test, train.")


class TestIncomplete:
    def test_a_missing_number_is_named(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("train", 128))
        (tmp_path / "train-00031-of-00128.tfrecord").unlink()

        words = "00031 is missing; found 127 of 128 shards"
        advice = "Restore them, or pass the other files as a list to read those."
        expected = f"{tmp_path}/train-?????-of-00128.tfrecord: {words}\n  {advice}"
        assert error_of(tmp_path) == expected
        assert error_of(f"{tmp_path}/train-*") == expected
        assert error_of(f"{tmp_path}/train-?????-of-00128.tfrecord") == expected
        assert error_of(f"{tmp_path}/train@128") == expected

    def test_ten_missing_numbers_are_listed_at_most(self, tmp_path: Path) -> None:
        fill(tmp_path, "train-000000-of-999999.tfrecord")

        message = error_of(tmp_path)

        assert ": 000001, 000002," in message
        assert "000010 and 999988 more are missing; found 1 of 999999 shards" in message

    def test_two_totals_are_both_named(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("train", 2), *shards("train", 3))

        assert error_of(tmp_path) == (
            f"{tmp_path}: 'train' has shards of 2 sets: 2 files of 00002 and 3 files of 00003\n"
            "  One may be left from an earlier run. Remove it, or pass a glob such as 'train-?????-of-00002.tfrecord'."
        )

    def test_a_shard_under_two_suffixes_is_an_error(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("a", 2), "a-00001-of-00002.tfrecord.gz")

        names = "a-00001-of-00002.tfrecord and a-00001-of-00002.tfrecord.gz"
        assert f"two files for one shard: {names}" in error_of(tmp_path)

    def test_a_number_beyond_the_total_is_an_error(self, tmp_path: Path) -> None:
        fill(tmp_path, "a-00000-of-00002.tfrecord", "a-00002-of-00002.tfrecord")

        assert "shard 2 cannot be one of 2" in error_of(tmp_path)

    def test_numbers_may_start_at_one(self, tmp_path: Path) -> None:
        fill(tmp_path, "a-1-of-2.tfrecord", "a-2-of-2.tfrecord")

        assert len(locate(tmp_path).files) == 2

    def test_a_list_a_file_or_a_glob_over_numbers_may_take_some(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("train", 12))
        some = [tmp_path / name for name in shards("train", 12)[3:5]]
        whole = locate(f"{tmp_path}/train-0000?-of-00012.tfrecord")
        some[0].parent.joinpath("train-00011-of-00012.tfrecord").unlink()

        assert names(whole.files) == shards("train", 12)[:10]
        assert list(locate(some[::-1]).files) == some[::-1]
        assert locate(some[0]).files == (some[0],)


class TestOtherPlaces:
    def test_a_file_is_taken_whatever_its_name(self, tmp_path: Path) -> None:
        fill(tmp_path, "notes.json")

        assert names(locate(str(tmp_path / "notes.json")).files) == ["notes.json"]

    @pytest.mark.parametrize(
        ("asked", "there"),
        [
            ("train@3", shards("train", 3)),
            ("train@3", shards("train", 3, ".tfrecord.gz")),
            ("train@3", [f"train.tfrecord-{n:05d}-of-00003" for n in range(3)]),
            ("train@3.tfrecord", shards("train", 3)),
            ("train.tfrecord@3", [f"train.tfrecord-{n:05d}-of-00003" for n in range(3)]),
            ("train.tfrecord@3", shards("train", 3)),
            ("train-?????-of-00003", shards("train", 3, "")),
            ("*.tfrecord*", shards("train", 3, ".tfrecord.gz")),
            ("**/*-of-*", shards("deep/er/train", 3)),
            ("train-0000[0-2]*", shards("train", 3)),
        ],
    )
    def test_patterns_find_a_set(self, tmp_path: Path, asked: str, there: list[str]) -> None:
        fill(tmp_path, *there, *shards("other/train", 5))

        found = locate(f"{tmp_path}/{asked}" if "**" not in asked else f"{tmp_path}/deep/{asked}")

        assert list(found.files) == [tmp_path / name for name in there]

    def test_a_glob_leaves_out_what_it_caught_by_accident(self, tmp_path: Path) -> None:
        fill(tmp_path, "a.tfrecord", "a.tfrecord.idx", "_SUCCESS", "_recordkit/overlays/b.tfrecord", "sub/x")

        found = locate(f"{tmp_path}/**")

        assert names(found.files) == ["a.tfrecord", "x"]
        assert {path.name for path, _ in found.left_out} == {"a.tfrecord.idx", "_SUCCESS", "_recordkit"}

    def test_a_glob_leaves_out_folders_beside_files(self, tmp_path: Path) -> None:
        fill(tmp_path, "a1", "a2/x")

        assert locate(f"{tmp_path}/a*").left_out == ((tmp_path / "a2", "a folder"),)

    def test_a_glob_of_folders_opens_each(self, tmp_path: Path) -> None:
        fill(tmp_path, "day10/part-0", "day2/part-0")

        assert list(locate(f"{tmp_path}/day*").splits) == ["day2", "day10"]

    def test_a_list_keeps_the_order_given(self, tmp_path: Path) -> None:
        fill(tmp_path, "b.tfrecord", "a.tfrecord", *shards("c", 2))

        found = locate([tmp_path / "b.tfrecord", f"{tmp_path}/c@2", str(tmp_path / "a.tfrecord")])

        assert names(found.files) == ["b.tfrecord", *shards("c", 2), "a.tfrecord"]
        assert list(found.splits) == ["b", "c", "a"]


class TestNothing:
    def test_a_neighbour_is_offered(self, tmp_path: Path) -> None:
        fill(tmp_path, "train.tfrecord")

        assert error_of(tmp_path / "trian.tfrecord") == (
            f"{tmp_path}/trian.tfrecord: no such file or folder\n  Did you mean 'train.tfrecord'?"
        )

    def test_the_part_of_the_path_that_is_there_is_named(self, tmp_path: Path) -> None:
        assert error_of(tmp_path / "x/y/z") == (
            f"{tmp_path}/x/y/z: no such file or folder\n  {tmp_path}/x/y does not exist either; {tmp_path} exists."
        )

    def test_a_set_that_is_not_there(self, tmp_path: Path) -> None:
        fill(tmp_path, *shards("train", 2))

        assert "(no file is called train-?????-of-00016)" in error_of(tmp_path / "train@16")

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        assert error_of(tmp_path) == f"{tmp_path}: the folder is empty\n  Pass the folder that holds the records."

    def test_an_empty_name(self) -> None:
        assert error_of("") == "expected a path, found an empty text"

    def test_an_empty_list(self) -> None:
        assert error_of([]) == "nothing to open: the list of files is empty"

    def test_a_folder_with_other_files_only(self, tmp_path: Path) -> None:
        fill(tmp_path, "_SUCCESS", "notes")

        message = error_of(tmp_path)

        assert "only _SUCCESS (a marker or hidden file of Spark, Hadoop or Beam), notes (not named like" in message

    def test_a_deep_glob_takes_each_file_once_whatever_links_lead_to_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(tmp_path, "a.tfrecord", "x/b.tfrecord", "x/y/c.tfrecord", ".hidden/d.tfrecord")
        for place in (tmp_path, tmp_path / "x", tmp_path / "x/y"):
            for name in ("first", "second"):
                (place / name).symlink_to(tmp_path)
        away = fill(tmp_path.with_name(f"{tmp_path.name}-away"), "e.tfrecord")
        (tmp_path / "x/linked").symlink_to(away)
        expected = ["a.tfrecord", "x/b.tfrecord", "x/linked/e.tfrecord", "x/y/c.tfrecord"]

        assert sorted(str(file.relative_to(tmp_path)) for file in locate(f"{tmp_path}/**/*.tfrecord").files) == expected
        assert sorted(str(file.relative_to(tmp_path)) for file in locate(f"{tmp_path}/**").files) == expected
        assert names(locate(f"{tmp_path}/**/y/**/c.*").files) == ["c.tfrecord"]
        monkeypatch.chdir(tmp_path)
        assert sorted(map(str, locate("**/*.tfrecord").files)) == expected

    def test_a_glob_that_matches_nothing(self, tmp_path: Path) -> None:
        fill(tmp_path, "a.tfrec")

        assert error_of(f"{tmp_path}/*.tfrecord") == (
            f"{tmp_path}/*.tfrecord: the pattern matches nothing\n  {tmp_path} contains a.tfrec."
        )

    def test_a_glob_that_matches_only_what_is_left_out(self, tmp_path: Path) -> None:
        fill(tmp_path, "a.idx")

        assert error_of(f"{tmp_path}/a*") == (
            f"{tmp_path}/a*: the pattern matches no record file, only a.idx (an index)\n"
            "  Pass a file by its own name to open it anyway."
        )

    def test_the_folder_below_that_has_records_is_named(self, tmp_path: Path) -> None:
        fill(tmp_path, "mnist/3.0.1/mnist-train.tfrecord-00000-of-00001")

        assert error_of(tmp_path / "mnist") == (
            f"{tmp_path}/mnist: this folder has no record files, but 1 folder below it has\n"
            f"  Open {tmp_path}/mnist/3.0.1."
        )


class TestManifests:
    def test_a_folder_is_what_its_manifest_says(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "b", {"x": [1, 2, 3]}, records_per_shard=2)
        with rk.append(tmp_path / "b") as writer:
            writer.write({"x": 4})
        fill(tmp_path / "b", "stray.tfrecord", "note.txt", "odd", "sub/y")

        found = locate(tmp_path / "b")

        assert names(found.files) == [*shards("b", 2), *shards("b-append1", 1)]
        assert list(found.splits) == ["b"]
        assert found.manifest is not None
        assert found.manifest.records == 4
        assert (found.folder, found.manifest_path) == (tmp_path / "b", tmp_path / "b/_recordkit/manifest.json")
        assert {path.name: reason for path, reason in found.left_out} == {
            "_recordkit": "what recordkit keeps beside the records",
            "note.txt": "text",
            "odd": "not named like a record file",
            "stray.tfrecord": "not in the manifest",
            "sub": "a folder",
        }

    def test_a_shard_that_is_gone_is_named(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "b", {"x": [1, 2, 3]}, records_per_shard=1)
        (tmp_path / "b/b-00001-of-00003.tfrecord").unlink()

        assert error_of(tmp_path / "b") == (
            f"{tmp_path}/b: 1 shard of 3 in the manifest is missing: b-00001-of-00003.tfrecord\n"
            "  Restore them, or pass the other files as a list to read those."
        )

    def test_another_size_is_noted(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "b", {"x": [1, 2, 3]}, records_per_shard=1)
        shard = tmp_path / "b/b-00001-of-00003.tfrecord"
        shard.write_bytes(b"short")

        assert locate(tmp_path / "b").changed == (shard,)
        assert locate(shard).changed == (shard,)
        assert locate(tmp_path / "b", split="b").changed == (shard,)

    def test_shards_find_the_manifest_of_their_folder(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "b", {"x": [1, 2, 3]}, records_per_shard=1)
        paths = [tmp_path / "b" / name for name in shards("b", 3)]

        for where in (paths[1], f"{tmp_path}/b/*.tfrecord", f"{tmp_path}/b/b@3", paths):
            found = locate(where)
            assert found.manifest is not None
            assert (found.folder, found.manifest.records) == (tmp_path / "b", 3)

    def test_a_lone_file_finds_its_own(self, tmp_path: Path) -> None:
        path = tmp_path / "one.tfrecord"
        rk.write(path, {"x": [1, 2, 3]})

        found = locate(path)

        assert found.manifest is not None
        assert found.manifest.records == 3
        assert found.manifest_path == tmp_path / "_recordkit/one.tfrecord.manifest.json"
        assert found.folder is None

    def test_that_of_an_earlier_file_of_this_name_is_not_used(self, tmp_path: Path) -> None:
        path = tmp_path / "one.tfrecord"
        rk.write(path, {"x": [1, 2, 3]})
        path.write_bytes(b"another")

        assert locate(path).manifest is None

    def test_the_manifest_of_many_shards_is_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        files = shards("t", 300)
        listed = tuple(Shard(name, 0, 0, 0, "0" * 8, "0" * 32, None, 0, 0, "t") for name in files)
        fill(tmp_path, *files, "_recordkit/manifest.json")
        (tmp_path / "_recordkit/manifest.json").write_bytes(Manifest(None, listed).to_json())
        loads, load = [], Manifest.load

        def counted(path: Path) -> Manifest | None:
            loads.append(path)
            return load(path)

        monkeypatch.setattr(Manifest, "load", counted)

        found = locate([tmp_path / name for name in files])

        assert names(found.files) == files
        assert loads.count(tmp_path / "_recordkit/manifest.json") == 1


class TestTfds:
    def test_gives_what_tfds_says(self, tmp_path: Path) -> None:
        fill(tmp_path, "m-train.tfrecord-00000-of-00002", "m-train.tfrecord-00001-of-00002")
        info = {"name": "m", "version": "3.0.1", "splits": [{"name": "train", "shardLengths": ["3", "4"]}, {"name": 3}]}
        (tmp_path / "dataset_info.json").write_text(json.dumps(info))
        (tmp_path / "features.json").write_text('{"type": "FeaturesDict"}')

        found = locate(tmp_path)

        assert list(found.splits) == ["train"]
        assert found.tfds == {
            "name": "m",
            "version": "3.0.1",
            "splits": {"train": (3, 4)},
            "features": {"type": "FeaturesDict"},
        }

    @pytest.mark.parametrize(
        "text", ["", "[]", "{", '{"splits": 3}', '{"splits": [1, {"name": "a", "shardLengths": 3}]}']
    )
    def test_whatever_stands_there_does_no_harm(self, tmp_path: Path, text: str) -> None:
        fill(tmp_path, "a.tfrecord")
        (tmp_path / "dataset_info.json").write_text(text)

        found = locate(tmp_path)

        assert found.tfds is not None
        assert found.tfds["splits"] in ({}, {"a": ()})
