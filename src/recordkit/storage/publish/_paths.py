"""Where a dataset's files are, if it is published manifest last.

Two names are fixed: those of the manifest and of the register. All others have the token of their writer in them, and
are used once. Shards begin with an underscore, so that no reader takes them for records until a manifest names them.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from recordkit.storage.format import SIDE, is_plain, suffix

if TYPE_CHECKING:
    from recordkit.storage.format import Shard

    from ._register import Publication

_SHARD: Final = re.compile(r"_.+-(?P<part>\d{5,})-(?P<number>\d{5,})\.(?P<token>[0-9a-f]{16})\.tfrecord(\.gz)?")
_NOTE: Final = re.compile(r"\d{5,}-\d{5,}\.(?P<token>[0-9a-f]{16})\.json")
_COPY: Final = re.compile(r"manifest\.(?P<token>[0-9a-f]{16})\.[0-9a-f]{32}\.json")
_MOST_BYTES: Final = 245  # leaves room for the endings of a shard's index and quarantine


def shard_name(shard: Shard, part: int, number: int, token: str) -> str:
    """Return the name of a shard's file.

    Raises:
        ValueError: The name of its split cannot be part of it.
    """
    name = f"_{shard.split}-{part:05d}-{number:05d}.{token}{suffix(shard.compression)}"
    if not is_plain(name) or len(os.fsencode(name)) > _MOST_BYTES:
        message = f"{shard.split!r:.300} cannot name shards: use letters, digits, dots and dashes, at most 200"
        raise ValueError(message)
    return name


def identity_of(shard: Shard) -> tuple[int, int, str] | None:
    """Return part, number and token from a shard's name; None of one that was published another way."""
    found = _SHARD.fullmatch(shard.name)
    return None if found is None else (int(found["part"]), int(found["number"]), found["token"])


def folders_of(target: str) -> tuple[str, ...]:
    """Return the folders that the files of a dataset are in."""
    side = f"{target}/{SIDE}"
    return target, side, f"{side}/quarantine", f"{side}/writing"


def owner_of(path: str) -> tuple[str | None, str]:
    """Return the token of the writer that has stored a file, None if that is no writer's, and the shard it is of."""
    name = path.rpartition("/")[2]
    shard = name.removesuffix(".rki").removesuffix(".jsonl")
    found = _SHARD.fullmatch(shard) or _NOTE.fullmatch(name) or _COPY.fullmatch(name)
    return (None if found is None else found["token"]), shard


def register_of(target: str) -> str:
    """Return where the register of writers is."""
    return f"{target}/{SIDE}/writing.json"


def manifest_of(target: str) -> str:
    """Return where the manifest is."""
    return f"{target}/{SIDE}/manifest.json"


def copy_of(target: str, publication: Publication) -> str:
    """Return where the manifest is kept while it is being published."""
    return f"{target}/{SIDE}/manifest.{publication.token}.{publication.write}.json"


def note_of(target: str, part: int, number: int, token: str) -> str:
    """Return where it is written down that a shard is finished."""
    return f"{target}/{SIDE}/writing/{part:05d}-{number:05d}.{token}.json"


def sides_of(target: str, name: str) -> tuple[str, str]:
    """Return where the index and the quarantine of a shard are."""
    return f"{target}/{SIDE}/{name}.rki", f"{target}/{SIDE}/quarantine/{name}.jsonl"
