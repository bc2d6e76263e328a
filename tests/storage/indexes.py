"""Indexes whose numbers lie, under checksums that are right."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from recordkit import _core

HEADER = "<8sIIQQQIIQII"
DIRECTORY = np.dtype([("start", "<u8"), ("at", "<u8"), ("least", "<u8"), ("width", "<u4"), ("crc", "<u4")])
BLOCK, RECORDS, RAW_BYTES, MEMBERS = 1, 3, 4, 8  # places in the header


def parts_of(data: bytes) -> tuple[list[Any], Any, bytearray]:
    """The header, the directory, and the numbers of all blocks with the member table."""
    header = list(struct.unpack(HEADER, data[:64]))
    end = 64 + 32 * -(-header[RECORDS] // 1024)
    return header, np.frombuffer(data[64:end], DIRECTORY).copy(), bytearray(data[end:])


def sealed(header: list[Any], table: Any, blocks: bytes) -> bytes:
    """An index of these parts with right checksums."""
    whole = bytes(64) + table.tobytes() + blocks
    for number in range(len(table)):
        width, start = int(table["width"][number]), int(table["at"][number])
        size = min(1024, max(0, header[RECORDS] - number * 1024)) * width
        table["crc"][number] = _core.crc32c(whole[start : start + size] if start < len(whole) else b"")
    header[7] = _core.crc32c(table.tobytes())
    if header[MEMBERS] <= len(blocks) // 24:
        header[9] = _core.crc32c(whole[len(whole) - header[MEMBERS] * 24 :] if header[MEMBERS] else b"")
    packed: bytes = struct.pack(HEADER[:-1], *header[:-1])
    directory: bytes = table.tobytes()
    return packed + struct.pack("<I", _core.crc32c(packed)) + directory + bytes(blocks)
