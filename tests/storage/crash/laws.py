"""Laws: what has to be true of a folder, and of an error, after a run was broken."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .replay import Operation, Tree
    from .serving import Outcome

# These may fail without harm once the data is safe: a run may go on, if what it leaves is right.
HARMLESS = {"close", "unlink", "rmdir", "sync_file_range", "fallocate"}

# A word that advice has to hold.
ADVICE = {errno.ENOSPC: "space", errno.EDQUOT: "quota", errno.EIO: "device"}


def is_lone(target: str) -> bool:
    """Whether a target is one file, with what belongs to it in a folder beside it."""
    return target.endswith((".tfrecord", ".tfrecord.gz"))


def without_locks(tree: Tree) -> Tree:
    """Return a tree without locks: who dies leaves its own, which holds nobody up and is no part of a dataset."""
    return {name: content for name, content in tree.items() if not f"/{name}".endswith("/_recordkit/lock")}


def target_in(tree: Tree, target: str) -> Tree:
    """Return what of a folder is the target: itself, all that is in it, and for a lone file what is kept beside it."""

    def belongs(name: str) -> bool:
        top = name.split("/")[0]
        return top == target or (is_lone(target) and top == "_recordkit")

    return {name: content for name, content in without_locks(tree).items() if belongs(name)}


def visible_in(tree: Tree) -> Tree:
    """Return the files of a folder that are not hidden, nor in a folder that is."""
    tree = without_locks(tree)
    return {name: content for name, content in tree.items() if content is not None and "/." not in f"/{name}"}


def is_published(folder: Tree, target: str, old: Tree, new: Tree) -> bool:
    """Whether the new dataset is there; of a lone file, whether the file itself is the new one."""
    if is_lone(target):
        return folder.get(target) == new[target] != old.get(target)
    return target_in(folder, target) == new


def check_state(folder: Tree, target: str, old: Tree, new: Tree) -> str:
    """Return what is wrong with a target after a crash; nothing is, if it is the old dataset or the new one.

    Hidden siblings do not count: they are where a new target is made. A lone file counts by itself; each file beside it
    may be of the old state or the new one or not there, because a reader knows whether they go together.
    """
    seen = {name: content for name, content in without_locks(folder).items() if not name.startswith(".")}
    now = target_in(seen, target)
    if len(now) < len(seen):
        return f"neither target nor hidden: {', '.join(sorted(seen.keys() - now.keys()))}"
    if is_lone(target):
        if not any(now.get(target) == state.get(target) for state in (old, new)):
            return "\n    ".join(["the file is neither the old one nor the new one", *differences(now, new)])
        files = {name: content for name, content in now.items() if content is not None}
        strange = [name for name, content in files.items() if content not in (old.get(name), new.get(name))]
        return f"neither old nor new: {', '.join(strange)}" if strange else ""
    if now in (old, new):
        return ""
    lines = ["the target is neither the old dataset nor the new one"]
    lines += [f"beside the old one: {line}" for line in differences(now, old)]
    lines += [f"beside the new one: {line}" for line in differences(now, new)]
    return "\n    ".join(lines)


def check_visible(folder: Tree, old: Tree, new: Tree) -> str:
    """Return what is wrong with a folder after a crash; nothing is, if all that is not hidden is old, or all new."""
    now = visible_in(folder)
    if now in (old, new):
        return ""
    lines = ["what is not hidden is neither the old state nor the new one"]
    lines += [f"beside the old one: {line}" for line in differences(now, old)]
    lines += [f"beside the new one: {line}" for line in differences(now, new)]
    return "\n    ".join(lines)


def differences(found: Tree, expected: Tree) -> list[str]:
    """Return in words how two trees differ; of a folder that is in one of them only, its name."""
    found, expected = without_locks(found), without_locks(expected)

    def describe(name: str) -> str:
        if name not in found:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} should not be there"
        have, want = found[name], expected[name]
        if isinstance(have, bytes) and isinstance(want, bytes):
            pairs = enumerate(zip(have, want, strict=False))
            first = next((place for place, (a, b) in pairs if a != b), min(len(have), len(want)))
            return f"{name} has {len(have)} bytes, not {len(want)}, that differ from byte {first}"
        return f"{name} is of another kind"

    def in_one_only(name: str) -> bool:
        return (name in found) != (name in expected)

    names = sorted(found.keys() | expected.keys())
    different = [name for name in names if in_one_only(name) or found[name] != expected[name]]
    return [describe(name) for name in different if not in_one_only(name.rpartition("/")[0])]


def check_error(outcome: Outcome, number: int, root: Path, operations: Iterable[Operation]) -> list[str]:
    """Return what is wrong with how a run ended in which operations failed with `number`."""
    operations = list(operations)
    failed = [operation for operation in operations if operation.result < 0 and operation.error == number]
    if outcome.signal:
        return [ending(outcome)]
    if not outcome.error:
        # Once staging is being put away the target is whole, and on the disk: the other laws see to that.
        away = [operation.number for operation in operations if operation.other.endswith(".recordkit.old")]
        # So it is once a layer hides the fields whose own layers are then removed.
        if any(operation.other.endswith("-hidden") for operation in operations):
            away += [operation.number for operation in operations if operation.other.endswith(".removed")]
        harmful = [
            operation
            for operation in failed
            if operation.name not in HARMLESS
            and not (operation.name == "pwrite" and operation.path.endswith("/lock"))  # only words for others to read
            and not (away and operation.number >= away[0])
        ]
        return [f"ended without an error, although this failed: {operation}" for operation in harmful[:1]]
    wrong = ["an exception was lost: " + outcome.stderr] if "Exception ignored" in outcome.stderr else []
    if "OSError" not in outcome.error or outcome.errno != number:
        wrong.append(f"expected an OSError with errno {number}: {ending(outcome)}")
    if str(root) not in outcome.text:
        wrong.append(f"the error names no path: {outcome.text!r}")
    if ADVICE[number] not in outcome.text.partition("\n")[2]:
        wrong.append(f"the error does not say what to do: {outcome.text!r}")
    return wrong


def ending(outcome: Outcome) -> str:
    """Return in words how a child ended."""
    if outcome.signal:
        return f"ended by signal {outcome.signal} {outcome.text}".strip()
    if not outcome.error:
        return "ended without an error"
    return "\n  ".join([f"{outcome.error[0]}: {outcome.text}", outcome.trace, *outcome.stderr.splitlines()])
