"""No bytes of a file are ever run or unpickled; tests/audit.py looks on while all other tests read files."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests import audit

SOURCE = Path(audit.OURS)
# Names that make code of text or of bytes, and where each may stand.
RUNNING = {
    "eval": set(),
    "exec": set(),
    "compile": set(),
    "__import__": set(),
    "marshal": set(),
    "shelve": set(),
    "pickle.load": set(),
    "pickle.Unpickler": set(),
    "pickle.loads": {"engines/_ordered_processes.py"},
}


def names(node: ast.AST) -> set[str]:
    """What a call, an attribute or an import names."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return {f"{node.value.id}.{node.attr}"}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return {node.func.id}
    return set()


def unpickles(data: bytes, path: Path) -> Any:
    """Unpickle in a function that seems to stand in this file."""
    scope: dict[str, Any] = {"pickle": pickle}
    exec(compile("def load(data): return pickle.loads(data)", str(path), "exec"), scope)
    return scope["load"](data)


class TestSource:
    def test_nothing_in_it_makes_code_of_what_it_reads(self) -> None:
        found = {
            (name, path.relative_to(SOURCE).as_posix())
            for path in SOURCE.rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text()))
            for name in names(node) & RUNNING.keys()
        }

        assert found == {(name, path) for name, paths in RUNNING.items() for path in paths}

    def test_numpy_loads_no_pickles(self) -> None:
        for path in SOURCE.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and "np.load" in names(node.func):
                    options = {word.arg: ast.unparse(word.value) for word in node.keywords}
                    assert options.get("allow_pickle") == "False", path


class TestAudit:
    def test_sees_what_recordkit_unpickles(self) -> None:
        with pytest.raises(audit.UnpickledError, match=r"builtins.*print"):
            unpickles(pickle.dumps(print), SOURCE / "storage" / "_manifest.py")

        assert audit.found.pop().startswith(str(SOURCE))

    @pytest.mark.parametrize("path", [Path(audit.ALLOWED), Path(__file__), Path("/somewhere/users.py")])
    def test_lets_others_unpickle_what_is_theirs(self, path: Path) -> None:
        assert unpickles(pickle.dumps(print), path) is print
