"""Names out of side files stay in their folder, and every one of them is joined by one function."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit.storage.format import inside
from tests.storage import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(rk.__file__).parent

# What is put behind a folder in the sources and is no constant: a name that was listed, made here, or given by the
# user. A name that a side file gives goes through `inside`, so nothing that reads one belongs here.
KNOWN = {
    "cli/commands/_story.py": {"rescued / path.name"},
    "integrations/huggingface.py": {"path.with_name(f'.{path.name}.{os.getpid()}')"},
    "schema/declare/_text.py": {"path.with_name(f'.{path.name}.{os.getpid()}')"},
    "storage/write/_commit.py": {
        "part.data / shard.name",
        "side / 'quarantine' / fitting('', target.name, '.jsonl')",
        "side / fitting('', target.name, '.rki')",
    },
    "filesystems/_local_files.py": {
        "self._path.with_name(f'{_OURS}{os.urandom(8).hex()}.new')",
        "where.with_name(fitting(_OURS, where.name, '.lock'))",
    },
    "filesystems/_local_writes.py": {"path.with_name(fitting('.', path.name, '.new'))"},
    "storage/staging/_journal.py": {  # which allows none but those that a run of its kind makes
        "staging / source",
        "staging / source.partition('/')[0]",
    },
    "storage/overlays/_write.py": {
        "overlays / f'{last + 1:04d}-{slug}'",
        "overlays / staging.name[1:-len('.recordkit')]",
        "path.with_name(f'.{path.name}.recordkit')",
        "path.with_name(f'.{path.name}.removed')",
    },
    "storage/find/_locate.py": {
        "path / name",
        "path.with_name(each)",
        "path.with_name(f\"{at['name']}-?????-of-{wanted[1]:05d}{at['ending'] or ''}\")",
    },
    "storage/format/_names.py": {
        "folder / name",
        "side_of(target, lone=lone) / (fitting('', target.name, '.manifest.json') if lone else 'manifest.json')",
        "target.with_name(fitting('.', target.name, '.recordkit'))",
    },
    "storage/read/_record_index.py": {
        "cache / 'recordkit' / 'index' / f'{name}.rki'",
        "path.parent / SIDE / fitting('', path.name, '.rki')",
        "path.with_name(fitting('.', path.name, f'.{os.getpid()}.{threading.get_ident()}'))",
    },
    "storage/publish/_by_rename.py": {
        "side / 'quarantine' / fitting('', name, '.jsonl')",
        "side / fitting('', name, '.rki')",
        "source / f'{stem}.jsonl'",
        "source / f'{stem}.rki'",
        "source / shard.name",
        "staging.with_name(f'{staging.name}.old')",
        "target_folder / name",
    },
    "storage/write/_shards.py": {
        "folder / f'{stem}{ending}'",
        "self.folder / f'{self.stem}.jsonl'",
        "self.folder / f'{self.stem}.rki'",
    },
    "storage/staging/_parts.py": {
        "data / name",
        "data / shard.name",
        "folder / f'shard-{number:05d}.json'",
        "self.folder / f'shard-{number:05d}.json'",
        "staging / f'part-{number:05d}-of-{total:05d}'",
        "staging.with_name(f'{staging.name}.old')",
    },
    "tools/_repair.py": {"side_of(target.absolute(), lone=True) / fitting('', target.name, '.lost.json')"},
    "tools/verify/_find.py": {"folder / name", "path / name", "path.with_name(at['name'])"},
}
NAMES = {"name", "stem", "each", "source", "target", "slug", "member", "filename"}
JOINS = {"joinpath", "with_name", "join"}


def joins(tree: ast.AST) -> Iterator[str]:
    """Every place where something that may be a name out of a file is put behind a folder."""
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            parts = [node.right]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in JOINS:
            is_path = node.func.attr != "join" or ast.unparse(node.func.value) == "os.path"
            parts = node.args if is_path else []
        if any(map(may_be_a_name, parts)):
            yield ast.unparse(node)


def may_be_a_name(part: ast.expr) -> bool:
    return any(
        isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Attribute) and node.attr in ("name", "stem", "path"))
        or (isinstance(node, ast.Name) and node.id in NAMES)
        or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str)
        for node in ast.walk(part)
    )


class TestSources:
    def test_no_name_is_joined_to_a_folder_but_by_inside(self) -> None:
        unknown = {
            (path, join)
            for file in SOURCE.rglob("*.py")
            for path in [file.relative_to(SOURCE).as_posix()]
            for join in joins(ast.parse(file.read_text()))
            if join not in KNOWN.get(path, ()) and not path.startswith("expressions/")  # which divide numbers
        }

        assert unknown == set()

    @pytest.mark.parametrize(
        "join",
        [
            "folder / shard.name",
            "folder / value['file']",
            "folder / f'{stem}.rki'",
            "os.path.join(folder, name)",
            "folder.joinpath(name)",
            "path.with_name(entry.name)",
        ],
    )
    def test_a_join_of_a_name_is_seen(self, join: str) -> None:
        assert list(joins(ast.parse(join))) == [join]


class TestInside:
    @given(st.text(st.sampled_from("./\\\0ab~: "), max_size=8) | st.text(max_size=20))
    def test_a_name_is_one_of_the_folder_or_refused(self, name: str) -> None:
        folder = Path("/nowhere/train")
        said_by = folder / "_recordkit/manifest.json"
        if name in (".", "..", "") or {"/", "\0"} & set(name):
            with pytest.raises(rk.StorageError, match=r"manifest\.json: expected the name of a file in /nowhere/train"):
                inside(folder, name, said_by)
        else:
            path = inside(folder, name, said_by)
            assert (path.parent, path.name) == (folder, name)

    def test_a_link_that_leads_out_is_refused(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "train", [{"x": 1}])
        rk.write(tmp_path / "secret", [{"x": 2}])
        (shard,) = reading.files(tmp_path / "train")
        (other,) = reading.files(tmp_path / "secret")
        shard.unlink()
        shard.symlink_to(other)

        with pytest.raises(rk.StorageError) as caught:
            rk.open(tmp_path / "train")

        assert str(caught.value).startswith(f"{shard}: expected a file in this folder, found a link that leads out of")

    def test_a_link_to_another_file_of_the_folder_is_followed(self, tmp_path: Path) -> None:
        rk.write(tmp_path / "train", [{"x": 1}])
        (shard,) = reading.files(tmp_path / "train")
        shard.rename(tmp_path / "train/elsewhere")
        shard.symlink_to("elsewhere")

        assert list(rk.open(tmp_path / "train")) == [{"x": 1}]

    @pytest.mark.parametrize("ours", [True, False])
    def test_a_dataset_in_the_cache_of_hugging_face_opens(self, tmp_path: Path, ours: bool) -> None:
        source, blobs = tmp_path / "source", tmp_path / "hub/blobs"
        rk.write(source, {"x": list(range(20))}, records_per_shard=10)
        rk.add_fields(source, {"y": list(range(20, 40))})
        rk.delete(source, where="x == 3")
        blobs.mkdir(parents=True)
        for number, file in enumerate(sorted(path for path in source.rglob("*") if path.is_file())):
            if not ours and "_recordkit" in file.parts:
                continue
            link = tmp_path / "hub/snapshots/main" / file.relative_to(source)
            link.parent.mkdir(parents=True, exist_ok=True)
            file.rename(blobs / f"{number:064x}")
            link.symlink_to(Path(*[".."] * (len(link.relative_to(tmp_path / "hub").parts) - 1), f"blobs/{number:064x}"))

        dataset = rk.open(tmp_path / "hub/snapshots/main")

        assert [row["x"] for row in dataset] == [x for x in range(20) if x != 3 or not ours]
        assert dataset.schema is not None
        assert dataset.schema.names == (("x", "y") if ours else ("x",))
        assert rk.verify(tmp_path / "hub/snapshots/main").ok
