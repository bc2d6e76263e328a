"""Salvage: the intact records of damaged bytes, and the ranges that are lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from recordkit import _core
from recordkit.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Buffer


@dataclass(frozen=True)
class Found:
    """A record that is provably intact.

    Attributes:
        offset: Where its frame starts.
        length: The length of its payload.
        how: `"sound"`, or `"bad_length_crc"` if the checksum of the length is damaged, but that of the payload
            confirms both.
        nested: Whether it is inside the payload of a damaged record, and so may not be a record of this file.
        repeats: The number of an earlier record with the same bytes, if any. Either a block was written twice, or the
            records were equal from the start.
    """

    offset: int
    length: int
    how: Literal["sound", "bad_length_crc"]
    nested: bool
    repeats: int | None = None


@dataclass(frozen=True)
class Lost:
    """A range of bytes outside all intact records.

    Attributes:
        offset: Where it starts.
        length: The number of bytes.
        kind: `"bad_length"`, `"bad_payload"`, `"torn"` or `"zeros"`.
        record: The number of records found before it.
    """

    offset: int
    length: int
    kind: Literal["bad_length", "bad_payload", "torn", "zeros"]
    record: int

    def __str__(self) -> str:
        end = self.offset + self.length
        return f"bytes {self.offset}…{end - 1}, after {counted(self.record, 'record')}: {self._words()}"

    def _words(self) -> str:
        if self.kind == "zeros":
            return f"{self.length} zero bytes (an unclean shutdown?)"
        if self.kind == "bad_payload":
            return "the payload or its checksum is damaged"
        if self.kind == "torn":
            return f"{self.length} bytes of an unfinished record"
        return "the length of a record is damaged, or bytes were inserted or removed"


@dataclass(frozen=True)
class Salvage:
    """The result of `salvage`.

    Attributes:
        found: All intact records, in file order.
        lost: The ranges of bytes outside them.
    """

    found: tuple[Found, ...]
    lost: tuple[Lost, ...]

    @property
    def ok(self) -> bool:
        """Whether the data consists of sound records only."""
        return not self.lost and all(record.how == "sound" for record in self.found)


_HOW: tuple[Literal["sound", "bad_length_crc"], ...] = ("sound", "bad_length_crc")
_LOST: tuple[Literal["bad_length", "bad_payload", "torn", "zeros"], ...] = (
    "bad_length",
    "bad_payload",
    "torn",
    "zeros",
)


def salvage(data: Buffer, *, nested: bool = True) -> Salvage:
    """Return all provably intact records of a damaged file, and the ranges that are lost.

    Args:
        data: The bytes of a whole, uncompressed file.
        nested: Whether to list records inside the payload of a damaged one.

    >>> from recordkit.records import pack
    >>> good, bad = pack(b"good"), bytearray(pack(b"bad!"))
    >>> bad[13] ^= 1
    >>> rescued = salvage(good + bytes(bad) + good)
    >>> [record.offset for record in rescued.found], rescued.found[1].repeats
    ([0, 40], 0)
    >>> print(rescued.lost[0])
    bytes 20…39, after 1 record: the payload or its checksum is damaged
    """
    view = memoryview(data).cast("B")
    found, lost, _, _ = _core.salvage(view)
    if not nested:
        found = [record for record in found if not record[3]]
    firsts: dict[tuple[int, bytes], int] = {}
    records = []
    for number, (offset, length, how, inside) in enumerate(found):
        # Length and stored checksum nearly always decide; the bytes are compared to be certain.
        end = offset + 12 + length
        first = firsts.setdefault((length, bytes(view[end : end + 4])), number)
        earlier = found[first][0] + 12
        same = first != number and view[earlier : earlier + length] == view[offset + 12 : end]
        records.append(Found(offset, length, _HOW[how], inside, first if same else None))
    return Salvage(tuple(records), tuple(Lost(start, size, _LOST[what], before) for start, size, what, before in lost))
