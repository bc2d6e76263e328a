"""Replay: what a disk may hold after a crash at any point of a recorded run.

A model of a file system that knows what was made durable. It starts from a folder in which everything is durable, is
given the operations that the shim recorded, one by one, and after each says which trees a crash may leave behind.

**Data.** A write, a cut or a growth of a file is durable once that file was fsynced (or fdatasynced) after it.
sync_file_range and close make nothing durable. An fsync that failed is final: the pages it was to write count as clean
and lost, so a second fsync that succeeds does not bring them back (Linux does just that). After a crash the data that
was not durable is

- *kept*: all of it reached the disk;
- *lost*: none of it did, and the file has the length and bytes of its last fsync, or none if there was none;
- *zeroed*: the file has its full length, and zeros where it grew.

**Names.** Creating, renaming, linking, removing and making a folder change the names in one folder or two. A change is
durable once its folder was fsynced after it; the fsync of a new file makes its bytes durable, never its name. A rename
or an exchange across two folders is one change, whole or not at all, as on every file system with a journal; its folder
is the one of the second path. After a crash the changes of names that were not durable are

- *kept*: all of them;
- *dropped*: none of them, as if each had been undone;
- *kept only in FOLDER*: those of one folder, as when its block alone was written back in time, together with the
  changes by which the folders they speak of came to be where they are.

Each choice for names is combined with each for data: kept names and lost data is the well known rename without data,
kept names and kept data is what SIGKILL leaves. One more state, *torn*, has what came before a write and half of it.

What is left out: file systems that reorder two changes of one folder, and sectors torn inside a page.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

# By path inside a folder, "/" between its parts: the bytes of a file, None for a folder, where a symbolic link leads.
Tree: TypeAlias = dict[str, bytes | str | None]

CUTS = {"open+truncate", "truncate", "ftruncate"}
SYNCS = {"fsync", "fdatasync"}


@dataclass(frozen=True)
class Operation:
    """One line of the shim's log; paths are inside the folder that it watched."""

    number: int
    name: str
    path: str
    other: str = ""
    result: int = 0
    error: int = 0
    inode: int = 0
    offset: int = 0
    length: int = 0
    data: bytes = b""

    @property
    def writes(self) -> bool:
        """Whether bytes went into a file."""
        return bool(self.data) and self.name != "symlink"

    def __str__(self) -> str:
        """One line for people, without the data."""
        parts = [f"{self.number:4} {self.name} {self.path or '.'}"]
        if self.other:
            parts.append(f"-> {self.other}")
        if self.writes:
            parts.append(f"{len(self.data)} bytes at {self.offset}")
        elif self.name in CUTS:
            parts.append(f"to {self.length} bytes")
        if self.result < 0:
            parts.append(f"failed with errno {self.error}")
        return " ".join(parts)


def read_log(log: Path, root: Path) -> list[Operation]:
    """Return what the shim recorded of `root`."""

    def inside(path: str) -> str:
        return unquote_to_bytes(path).decode(errors="surrogateescape").removeprefix(str(root)).removeprefix("/")

    operations = []
    for line in log.read_text(encoding="ascii").splitlines() if log.exists() else ():
        number, name, result, error, inode, offset, length, path, other, data = line.split("\t")
        numbers = map(int, (result, error, inode, offset, length))
        facts = dict(zip(("result", "error", "inode", "offset", "length"), numbers, strict=True))
        operations.append(Operation(int(number), name, inside(path), inside(other), data=bytes.fromhex(data), **facts))
    return operations


def snapshot(folder: Path) -> Tree:
    """Return all that is in `folder`."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            tree[name] = str(path.readlink())
        else:
            tree[name] = None if path.is_dir() else path.read_bytes()
    return tree


def materialise(tree: Mapping[str, bytes | str | None], folder: Path) -> None:
    """Write `tree` into `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(tree.items()):
        path = folder / name
        if content is None:
            path.mkdir()
        elif isinstance(content, str):
            path.symlink_to(content)
        else:
            path.write_bytes(content)


# A part of a file's history that is not durable yet: bytes put at an offset, or a new length.
Edit: TypeAlias = tuple[int, bytes] | int


@dataclass(eq=False)
class Node:
    """A file (`data`), a folder (`names`) or a symbolic link (`leads_to`), durable and as processes see it."""

    is_folder: bool = False
    leads_to: str | None = None
    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    edits: list[Edit] = field(default_factory=list)
    names: dict[str, Node] = field(default_factory=dict)
    durable_names: dict[str, Node] = field(default_factory=dict)

    def edit(self, edit: Edit) -> None:
        """Put bytes at an offset, or change the length."""
        apply(self.data, edit)
        self.edits.append(edit)

    def after_crash(self, data: str) -> bytes:
        """Return the bytes of the file that a crash leaves."""
        if data == "kept":
            return bytes(self.data)
        if data == "lost":
            return bytes(self.durable)
        return bytes(self.durable[: len(self.data)].ljust(len(self.data), b"\0"))


def apply(data: bytearray, edit: Edit) -> None:
    """Put bytes at an offset of `data`, or change its length; what lies between is zeros."""
    if isinstance(edit, int):
        del data[edit:]
        data.extend(bytes(edit - len(data)))
    else:
        offset, piece = edit
        data.extend(bytes(max(0, offset - len(data))))
        data[offset : offset + len(piece)] = piece


@dataclass(frozen=True, eq=False)
class Entry:
    """What a name in a folder means after a change: a node, or nothing."""

    folder: Node
    name: str
    node: Node | None

    def apply(self, names: dict[str, Node]) -> None:
        """Make the change in the names of the folder."""
        if self.node is None:
            names.pop(self.name, None)
        else:
            names[self.name] = self.node


@dataclass(eq=False)
class Change:
    """What an operation did to names; durable when `folder` is fsynced."""

    folder: Node
    entries: list[Entry]

    def overtakes(self, entry: Entry) -> bool:
        """Whether this, coming later, leaves nothing of an entry."""
        return any(own.folder is entry.folder and own.name == entry.name for own in self.entries)

    def rests_on(self, earlier: Change) -> bool:
        """Whether it needs a folder that an earlier change made or moved."""
        placed = [entry.node for entry in earlier.entries if entry.node is not None and entry.node.is_folder]
        return any(entry.folder in placed for entry in self.entries)


class Disk:
    """A file system that remembers what is durable; at first all that is in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.root = Node(is_folder=True)
        self.nodes: dict[int, Node] = {}
        self.changes: list[Change] = []
        self._load(folder, self.root)

    def _load(self, path: Path, node: Node) -> None:
        self.nodes[path.lstat().st_ino] = node
        if path.is_symlink():
            node.leads_to = str(path.readlink())
        elif path.is_dir():
            node.is_folder = True
            for child in path.iterdir():
                known = self.nodes.get(child.lstat().st_ino)
                node.names[child.name] = node.durable_names[child.name] = known or Node()
                if known is None:
                    self._load(child, node.names[child.name])
        else:
            node.data[:] = node.durable[:] = path.read_bytes()

    def _place(self, path: str) -> tuple[Node, str]:
        """Return the folder of `path` and its name there."""
        *folders, name = path.split("/")
        node = self.root
        for part in folders:
            node = node.names[part]
        return node, name

    def apply(self, operation: Operation) -> None:
        """Do what the operation did."""
        if operation.result < 0:
            if operation.name in SYNCS:
                self.nodes[operation.inode].edits.clear()
        elif operation.name in {"create", "mkdir", "symlink"}:
            target = operation.data.decode() if operation.name == "symlink" else None
            node = self.nodes[operation.inode] = Node(is_folder=operation.name == "mkdir", leads_to=target)
            if operation.path:
                self._change((operation.path, node))
        elif operation.name == "link":
            self._change((operation.other, self.nodes[operation.inode]))
        elif operation.name in {"unlink", "rmdir"}:
            self._change((operation.path, None))
        elif operation.name in {"rename", "exchange"}:
            self._rename(operation)
        elif operation.name in SYNCS:
            self._sync(self.nodes[operation.inode])
        elif operation.name in {"sync", "syncfs"}:
            for node in list(self.nodes.values()):
                self._sync(node)
        elif operation.writes:
            self.nodes[operation.inode].edit((operation.offset, operation.data))
        elif operation.name in CUTS:
            self.nodes[operation.inode].edit(operation.length)
        elif operation.name == "fallocate":
            node = self.nodes[operation.inode]
            node.edit(max(len(node.data), operation.length))

    def _rename(self, operation: Operation) -> None:
        (source, name), (goal, new_name) = self._place(operation.path), self._place(operation.other)
        node, other = source.names[name], goal.names.get(new_name)
        if node is not other:
            stays = other if operation.name == "exchange" else None
            self._change((operation.path, stays), (operation.other, node))

    def _change(self, *entries: tuple[str, Node | None]) -> None:
        placed = [Entry(*self._place(path), node) for path, node in entries]
        for entry in placed:
            entry.apply(entry.folder.names)
        self.changes.append(Change(placed[-1].folder, placed))

    def _sync(self, node: Node) -> None:
        for edit in node.edits:
            apply(node.durable, edit)
        node.edits.clear()
        if node.is_folder:
            self._sync_names(node)

    def _sync_names(self, folder: Node) -> None:
        waiting: list[Change] = []
        for change in self.changes:
            if change.folder is not folder:
                waiting.append(change)
                continue
            for entry in change.entries:
                entry.apply(entry.folder.durable_names)
            for earlier in waiting:
                earlier.entries = [entry for entry in earlier.entries if not change.overtakes(entry)]
        self.changes = waiting

    def _only_in(self, folder: Node) -> list[Change]:
        """Return the changes of one folder and those they rest on, in order."""
        survivors: list[Change] = []
        for change in reversed(self.changes):
            if change.folder is folder or any(later.rests_on(change) for later in survivors):
                survivors.append(change)
        return survivors[::-1]

    def tree(self, data: str = "kept", changes: Iterable[Change] | None = None) -> Tree:
        """Return what a crash leaves, when of the changes of names that are not durable these survive; or all."""
        folders: dict[Node, dict[str, Node]] = {}

        def names(folder: Node) -> dict[str, Node]:
            return folders.setdefault(folder, dict(folder.durable_names))

        for change in self.changes if changes is None else changes:
            for entry in change.entries:
                entry.apply(names(entry.folder))
        tree: Tree = {}

        def walk(folder: Node, prefix: str) -> None:
            for name, node in sorted(names(folder).items()):
                if node.is_folder:
                    tree[prefix + name] = None
                    walk(node, f"{prefix}{name}/")
                else:
                    tree[prefix + name] = node.after_crash(data) if node.leads_to is None else node.leads_to

        walk(self.root, "")
        return tree

    def trees(self) -> Iterator[tuple[str, Tree]]:
        """Yield all that a crash now may leave behind, each with words for it."""
        paths = {folder: path or "." for path, folder in self._folders("", self.root)}
        choices = [("kept", self.changes), ("dropped", [])]
        for folder in dict.fromkeys(change.folder for change in self.changes):
            choices.append((f"kept only in {paths.get(folder, 'a folder that is gone')}", self._only_in(folder)))
        for label, changes in choices:
            for data in ("kept", "lost", "zeroed"):
                yield f"names {label}, data {data}", self.tree(data, changes)

    def _folders(self, path: str, node: Node) -> Iterator[tuple[str, Node]]:
        yield path, node
        for name, child in node.names.items():
            if child.is_folder:
                yield from self._folders(f"{path}/{name}".removeprefix("/"), child)


@dataclass(frozen=True)
class Crash:
    """A tree that a crash after operation `number` may leave behind; `label` says what was lost."""

    number: int
    label: str
    tree: Tree


def crashes(disk: Disk, operations: Iterable[Operation]) -> Iterator[Crash]:
    """Yield the trees that a crash may leave before, between and after `operations`, each tree once."""
    seen: set[frozenset[tuple[str, bytes | str | None]]] = set()

    def unseen(number: int, trees: Iterable[tuple[str, Tree]]) -> Iterator[Crash]:
        for label, tree in trees:
            key = frozenset(tree.items())
            if key not in seen:
                seen.add(key)
                yield Crash(number, label, tree)

    yield from unseen(0, disk.trees())
    for operation in operations:
        if operation.writes and operation.result > 1:
            disk.apply(replace(operation, data=operation.data[: len(operation.data) // 2]))
            yield from unseen(operation.number, [("torn", disk.tree())])
        disk.apply(operation)
        yield from unseen(operation.number, disk.trees())
