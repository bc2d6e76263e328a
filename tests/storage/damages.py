"""Damage of the kinds that disks, networks and crashes do, and an oracle of what survives it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from recordkit import _core, records

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

F5 = b"".join(records.pack(b"payload-%03d" % i) for i in range(5))
COUNT = int(os.environ.get("RECORDKIT_DAMAGES", "300"))  # how many damages each law is tried on


def put(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def flip(data: bytes, offset: int, bit: int = 0) -> bytes:
    return put(data, offset, bytes([data[offset] ^ 1 << bit]))


def _flipped(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 3)):
        data = flip(data, rng.randrange(len(data)), rng.randrange(8))
    return data


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _zeroed(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return put(data, at, bytes(min(rng.randint(1, 150), len(data) - at)))


def _inserted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.randint(1, 60)) + data[at:]


def _deleted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 60) :]


def _swapped(data: bytes, rng: random.Random) -> bytes:
    a, b, c, d = sorted(rng.randrange(len(data)) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


_DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flipped, _cut, _zeroed, _inserted, _deleted, _swapped)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The data with one damage, or two."""
    for _ in range(rng.choice((1, 1, 2))):
        data = rng.choice(_DAMAGES)(data, rng) if data else data
    return data


def _swapped_evenly(data: bytes, rng: random.Random) -> bytes:
    size = rng.randint(1, len(data) // 2)
    a = rng.randint(0, len(data) - 2 * size)
    b = rng.randint(a + size, len(data) - size)
    return data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]


def _shifted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, len(data) // 2) :]


def moved(data: bytes, rng: random.Random) -> bytes:
    """The data with up to three damages, among them those that bring much of it to other places."""
    for _ in range(rng.randint(1, 3)):
        if len(data) > 1:
            data = rng.choice((damaged, _swapped_evenly, _shifted))(data, rng)
    return data


def payloads(rng: random.Random, count: int, sizes: tuple[int, ...] = (0, 6, 30, 60)) -> list[bytes]:
    """Payloads that are all different and hold no records.

    None has 8 bytes: before another header, the header of such a one makes a record whose checksums are both right.
    """
    return [b"%03d" % number + rng.randbytes(rng.choice(sizes)) for number in range(count)]


def _is_right(data: bytes, start: int, end: int) -> bool:
    return _core.mask_crc(_core.crc32c(data[start:end])) == int.from_bytes(data[end : end + 4], "little")


def survivors(data: bytes) -> dict[int, bytes]:
    """The records of a file by their offsets: every byte is tried.

    Both checksums are right; or that of the payload, where a record has to start: at the start of the file, or where
    another one ends, be it damaged.
    """
    frames = {offset: end for offset in range(len(data) - 15) if (end := _end(data, offset)) <= len(data)}
    whole = {offset for offset, end in frames.items() if _is_right(data, offset + 12, end - 4)}
    headers = {offset for offset in frames if _is_right(data, offset, offset + 8)}
    found = whole & headers
    starts = {0}
    for offset, end in frames.items():
        if offset in starts and offset in whole:
            found.add(offset)
        crossed = any(offset < other < end and frames[other] > end - 4 for other in found)
        if offset in found or (offset in starts and offset in headers and not crossed):
            starts.add(end)
    return {offset: data[offset + 12 : frames[offset] - 4] for offset in sorted(found)}


def _end(data: bytes, offset: int) -> int:
    return offset + 16 + int.from_bytes(data[offset : offset + 8], "little")
