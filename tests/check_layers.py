"""Fails when an import goes up, or into another folder's private modules. The rooms are those of ARCHITECTURE.md.

Rooms of `cpp/core` include only rooms below them: see `CORE_ORDER`. Two rules for Python, type checkers' imports too:

- a room imports only rooms below it: see `ORDER`, which has an entry for each folder whose rooms have an order;
- a module with an underscore is imported only from its own folder and from the folders inside it.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "recordkit"
CORE = ROOT / "cpp" / "core"

# For each folder its rooms and modules, lowest first; those on one line do not import each other. A new room has to be
# placed here. A folder's own `__init__` is above everything else in it, except in `recordkit` itself.
ORDER: dict[str, tuple[tuple[str, ...], ...]] = {
    "recordkit": (
        ("_core", "errors", "progress", "wording"),
        ("dtypes", "log"),
        ("engines", "filesystems"),
        ("codecs", "images", "records"),
        ("columns",),
        ("examples",),
        ("expressions", "schema"),
        ("storage",),
        ("pipeline",),
        ("dataset",),
        ("tools",),
        ("integrations", "testing", "tf"),
        ("viewer",),
        ("cli",),
        ("__init__", "__main__"),
    ),
    "recordkit.storage": (
        ("format",),
        ("read",),
        ("staging",),
        ("overlays",),
        ("publish",),
        ("find",),
        ("write",),
    ),
    "recordkit.tf": (
        ("_names",),
        ("errors", "tensors"),
        ("image", "sparse", "train"),
        ("example_pb2", "io"),
        ("data",),
    ),
    "recordkit.cli": (
        ("_commands", "_values", "terminal"),
        ("_parser",),
        ("_dataset_argument", "_errors"),
        ("commands",),
        ("_main",),
    ),
    "recordkit.tools": (
        ("_engines", "_index", "_repair"),
        ("_rewrite",),
        ("fields", "stats", "verify"),
        ("_describe", "_edit", "diff"),
    ),
    "recordkit.tools.verify": (
        ("checks",),
        ("_report",),
        ("_find",),
        ("_pass",),
        ("_verify",),
    ),
    "recordkit.schema": (
        ("_errors",),
        ("values",),
        ("declare",),
        ("decode", "encode"),
        ("infer",),
        ("_schema",),
    ),
}
# The rooms of `cpp/core`, lowest first, by the same rule.
CORE_ORDER = (("memory",), ("columns", "files", "order", "pictures"), ("records",), ("examples",))
# Folders with rooms in them whose parts have no order yet. This list only shrinks.
UNORDERED: set[str] = set()
# Importers and the private modules of other folders they still import. This list only shrinks.
EXCEPTIONS: set[str] = set()


class Module:
    """One file of the package: `recordkit.storage.format._names`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = ("recordkit", *path.relative_to(SOURCE).with_suffix("").parts)
        self.name = ".".join(parts).removesuffix(".__init__")
        self.folder = ".".join(parts[:-1])

    def imports(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the absolute name of everything of recordkit that is imported, module or not."""
        for node in ast.walk(ast.parse(self.path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                names = [f"{base}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                if name.startswith("recordkit."):
                    yield node.lineno, name

    def _absolute(self, node: ast.ImportFrom) -> str:
        parts = self.folder.split(".")
        parents = parts[: len(parts) - node.level + 1] if node.level else []
        return ".".join([*parents, *([node.module] if node.module else [])])


MODULES = {module.name: module for module in map(Module, sorted(SOURCE.rglob("*.py")))}
FOLDERS = {module.folder for module in MODULES.values()}


def imported_module(name: str) -> str:
    """Return the module that a name is imported from: itself, or the one that defines it."""
    return name if name in MODULES or name == "recordkit._core" else name.rpartition(".")[0]


def part_of(name: str, folder: str) -> str:
    """Return which part of a folder a module is or belongs to."""
    return "__init__" if name == folder else name[len(folder) + 1 :].split(".")[0]


def layer(folder: str, part: str) -> int | None:
    """Return how high a part stands in its folder; None if it has not been placed."""
    parts = ORDER[folder]
    found = [number for number, names in enumerate(parts) if part in names]
    return found[0] if found else len(parts) if part == "__init__" else None


def shared_folder(one: str, other: str) -> str:
    """Return the innermost folder that two modules are both in."""
    folder = one if one in FOLDERS else one.rpartition(".")[0]
    while not f"{other}.".startswith(f"{folder}."):
        folder = folder.rpartition(".")[0]
    return folder


def goes_up(importer: str, imported: str) -> str | None:
    """Return what is wrong with the direction of an import."""
    folder = shared_folder(importer, imported)
    part, other = part_of(importer, folder), part_of(imported, folder)
    if folder not in ORDER or part == other:
        return None
    mine, theirs = layer(folder, part), layer(folder, other)
    if mine is None or theirs is None:
        return None  # `unplaced` names it
    return f"{part} may not import {other}, which is not below it in {folder}" if theirs >= mine else None


def is_private(importer: Module, imported: str) -> bool:
    """Tell whether a module, or a folder it is in, is private to a folder that the importer is not in."""
    parts = imported.split(".")
    for number, part in enumerate(parts):
        if part.startswith("_") and not f"{importer.folder}.".startswith(".".join(parts[:number]) + "."):
            return True
    return False


def unplaced() -> Iterator[str]:
    """Yield a sentence for each part that has no place in the order of its folder."""
    for folder in sorted({folder.rpartition(".")[0] for folder in FOLDERS if folder != "recordkit"} - UNORDERED):
        for name in MODULES if folder in ORDER else ():
            if name.startswith(f"{folder}.") and layer(folder, part_of(name, folder)) is None:
                yield f"{MODULES[name].path}: {part_of(name, folder)} has no place in tests/check_layers.py"
        if folder not in ORDER:
            yield f"{folder}: it has rooms, and no order in tests/check_layers.py"


def core_problems() -> Iterator[str]:
    """Yield a sentence for each include in `cpp/core` that goes up."""
    layers = {room: number for number, rooms in enumerate(CORE_ORDER) for room in rooms}
    for path in sorted([*CORE.rglob("*.h"), *CORE.rglob("*.cc")]):
        room = path.parent.name
        for other in re.findall(r'^#include "(?:core/)?([^"]*?)/?[^/"]*"', path.read_text(), re.MULTILINE):
            if other != room and layers.get(other, len(layers)) >= layers.get(room, -1):
                yield f"{path}: {room} may not include {other or path.parent}, which is not below it in cpp/core"


def problems() -> Iterator[str]:
    """Yield a sentence for each import against the rules."""
    yield from unplaced()
    yield from core_problems()
    used = set()
    for module in MODULES.values():
        for line, name in module.imports():
            imported = imported_module(name)
            if (why := goes_up(module.name, imported)) is not None:
                yield f"{module.path}:{line}: {why}"
            if is_private(module, imported):
                pair = f"{module.name} {imported}".replace("recordkit.", "")
                used.add(pair)
                if pair not in EXCEPTIONS:
                    yield f"{module.path}:{line}: {imported} is private to its folder; import from the folder itself"
    for pair in sorted(EXCEPTIONS - used):
        yield f"tests/check_layers.py: nobody needs the exception {pair!r} any more: take it out"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or f"layers: {len(MODULES)} modules, every import goes down; {len(EXCEPTIONS)} exceptions")
    sys.exit(bool(found))
