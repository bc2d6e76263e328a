"""Lone files: their overlays are kept next to the file itself, so links and several files need some care."""

from __future__ import annotations

import os
from collections import ChainMap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ._overlay import Overlay, overlays_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recordkit.storage.read import RecordFile


def has_overlays(path: Path) -> bool:
    """Tell whether overlays for a file are kept in its folder."""
    return any(overlay.is_for([path]) for overlay in overlays_of(path.parent))


def file_with_overlays(path: Path) -> Path:
    """Return where a link leads if overlays are kept with that file, and not with the link; else the path itself."""
    if not path.is_symlink() or has_overlays(path):
        return path
    real = Path(os.path.realpath(path))
    return real if has_overlays(real) else path


def file_to_change(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return where a link to a lone file leads, so that overlays go next to the file; else the path itself.

    Earlier versions kept overlays next to the link: these still apply.
    """
    if not os.path.islink(path) or not os.path.isfile(path) or has_overlays(Path(path)):  # noqa: PTH113, PTH114 - never raise
        return path
    return os.path.realpath(path)


@dataclass(frozen=True)
class SharedChange(Overlay):
    """The same change to several lone files, each with an overlay of its own.

    Attributes:
        parts: The overlays. The last one gives this overlay its name.
    """

    parts: tuple[Overlay, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[Overlay]) -> Overlay:
        """Return overlays for different files as one."""
        last = parts[-1]
        if len(parts) == 1:
            return last
        return cls(
            last.path,
            last.schema,
            ChainMap(*(dict(part.base) for part in parts)),
            ChainMap(*(dict(part.files) for part in parts)),
            last.hides,
            {name: part.deleted[name] for part in parts for name in part.deleted},
            last.home,
            tuple(parts),
        )

    @property
    def paths(self) -> tuple[Path, ...]:
        """The folders of all parts."""
        return tuple(part.path for part in self.parts)

    def check(self, file: RecordFile) -> None:
        """Raise if a file is not what its overlay was made for."""
        part = self._part(file)
        if part is None:
            super().check(file)
        else:
            part.check(file)

    def covers(self, file: RecordFile) -> int:
        """Return how many records of a file its overlay is for."""
        part = self._part(file)
        return super().covers(file) if part is None else part.covers(file)

    def _part(self, file: RecordFile) -> Overlay | None:
        return next((part for part in self.parts if part.knows(Path(file.name))), None)


def merge_shared(overlays: Sequence[Overlay], files: Sequence[Path]) -> list[Overlay]:
    """Return overlays with those merged that make the same change to different files.

    Where files were not changed alike, in the same order, the overlays come back as they are, and reading refuses the
    first file that lacks a field.

    Raises:
        StorageError: A field was dropped from some files only. It would not be seen of any.
    """
    of_files = [[overlay for overlay in overlays if overlay.alters and overlay.knows(file)] for file in files]
    if len({tuple((overlay.schema, overlay.hides) for overlay in each) for each in of_files}) == 1:
        steps = [list({part.path: part for part in parts}.values()) for parts in zip(*of_files, strict=True)]
        if all(sum(part.knows(file) for part in parts) == 1 for parts in steps for file in files):
            return [*map(SharedChange.of, steps), *(overlay for overlay in overlays if not overlay.alters)]
    for overlay in overlays:
        lacking = next((file for file in files if not overlay.knows(file)), None)
        if lacking is not None and not overlay.hides <= set(overlay.schema.names):
            raise overlay.unknown(str(lacking))
    return list(overlays)
