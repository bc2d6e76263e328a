"""Fails when a module imports one of its own layer or of a layer above. The layers are those of ARCHITECTURE.md."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parent.parent / "src" / "recordkit"

# Lowest first, as in ARCHITECTURE.md; parts on one line do not import each other. A new part has to be placed here.
ORDER = (
    ("_core", "errors", "progress", "wording"),
    ("memory", "paths"),
    ("engines",),
    ("images", "records"),
    ("columns",),
    ("examples",),
    ("expressions", "schema"),
    ("storage",),
    ("pipeline",),
    ("dataset",),
    ("tools",),
    ("integrations", "tf"),
    ("viewer",),
    ("cli",),
    ("__init__", "__main__"),
)
LAYERS = {part: layer for layer, parts in enumerate(ORDER) for part in parts}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, part of recordkit) of every import, those for type checkers included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                modules = [f"recordkit.{path.relative_to(SOURCE).parts[0]}"]
            elif node.module == "recordkit":
                modules = [f"recordkit.{alias.name}" for alias in node.names]
            else:
                modules = [node.module or ""]
        else:
            continue
        for module in modules:
            if module.startswith("recordkit."):
                yield node.lineno, module.split(".")[1]


def part_of(path: Path) -> str:
    """Return the module or folder under src/recordkit that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def problems() -> Iterator[str]:
    """Yield a sentence for each import against the layers."""
    for path in sorted(SOURCE.rglob("*.py")):
        part = part_of(path)
        if part not in LAYERS:
            yield f"{path}: {part} has no layer in tests/check_layers.py"
            continue
        for line, imported in imports(path):
            if imported != part and LAYERS.get(imported, 99) >= LAYERS[part]:
                yield f"{path}:{line}: {part} may not import {imported}, which is not below it"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or f"layers: {len(LAYERS)} parts, every import goes down")
    sys.exit(bool(found))
