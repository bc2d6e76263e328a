"""The reports of `verify`: about one file, and about all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from recordkit.wording import counted, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.codecs import Compression
    from recordkit.storage.read import Damage

Verdict: TypeAlias = Literal["sound", "damaged", "wrong_file", "missing", "unreadable"]

_SHOWN_FILES: Final = 20
_SHOWN: Final = 10
# Kinds of damage that concern a file as a whole, not a place in it.
WHOLE: Final = frozenset(
    {"file_size", "file_crc", "record_count", "record_digest", "compression", "index", "missing", "unreadable"}
)


@dataclass(frozen=True)
class Problem:
    """A problem of the dataset rather than of a single file.

    Attributes:
        path: The folder, pattern or file.
        kind: One word: `"incomplete"`, `"not_in_manifest"`, `"manifest"` or `"schema"`.
        words: What is wrong, for people.

    >>> print(Problem("data", "incomplete", "00002 is missing; found 3 of 4 shards"))
    data: 00002 is missing; found 3 of 4 shards
    """

    path: str
    kind: str
    words: str

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"


@dataclass(frozen=True)
class FileReport:
    """The report about one file.

    Attributes:
        path: The file.
        verdict: `"sound"`, `"damaged"`, `"wrong_file"`, `"missing"` or `"unreadable"`.
        records: The number of intact records.
        bytes: Its size.
        compression: `"gzip"`, `"zlib"` or None.
        damage: What is wrong, in file order.
        notes: Remarks that do not make the file damaged.
    """

    path: str
    verdict: Verdict
    records: int = 0
    bytes: int = 0
    compression: Compression = None
    damage: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file is intact."""
        return self.verdict == "sound"

    def __str__(self) -> str:
        return "\n  ".join([f"{self.path}: {self._headline()}", *self._lines()])

    def _headline(self) -> str:
        if self.verdict in ("sound", "damaged"):
            what = "record" if self.ok else "sound record"
            return f"{self.verdict}, {counted(self.records, what)} in {format_size(self.bytes)}"
        return self.verdict.replace("_", " ")

    def _lines(self) -> Iterator[str]:
        for damage in self.damage[:_SHOWN]:
            yield damage.words if damage.kind in WHOLE else damage.line
        if len(self.damage) > _SHOWN:
            yield f"and {len(self.damage) - _SHOWN:,} more"
        yield from self.notes


@dataclass(frozen=True)
class Verified:
    """The report of `verify`.

    Attributes:
        files: One report for each file, in reading order.
        problems: Problems of the dataset rather than of a single file.
        notes: Remarks about the dataset; those about a file are in the `notes` of its report.
    """

    files: tuple[FileReport, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything is intact."""
        return not self.problems and all(file.ok for file in self.files)

    @property
    def records(self) -> int:
        """The number of intact records."""
        return sum(file.records for file in self.files)

    @property
    def bytes(self) -> int:
        """The total size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """The damage in all files, in order."""
        return tuple(damage for file in self.files for damage in file.damage)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers, for JSON."""
        return {
            "ok": self.ok,
            "records": self.records,
            "bytes": self.bytes,
            "files": [_plain(file) for file in self.files],
            "problems": [asdict(problem) for problem in self.problems],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        bad = [file for file in self.files if not file.ok]
        noted = [file for file in self.files if file.ok and file.notes]
        lines = [self._headline(len(bad)), *map(str, self.problems)]
        lines += [_indented(str(file)) for file in (*bad, *noted)[:_SHOWN_FILES]]
        if len(bad) + len(noted) > _SHOWN_FILES:
            lines.append(f"and {len(bad) + len(noted) - _SHOWN_FILES:,} more files")
        return "\n  ".join([*lines, *self.notes])

    def _headline(self, bad: int) -> str:
        what = f"{counted(len(self.files), 'file')}, {counted(self.records, 'sound record')}, {format_size(self.bytes)}"
        if self.ok:
            return f"{what}: no damage found"
        found = [f"{counted(bad, 'file')} not sound"] * bool(bad)
        found += [counted(len(self.problems), "problem")] * bool(self.problems)
        return f"{what}: {', '.join(found)}"


def _plain(file: FileReport) -> dict[str, Any]:
    return {"ok": file.ok, **asdict(file), "damage": [asdict(each) for each in file.damage], "notes": list(file.notes)}


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
