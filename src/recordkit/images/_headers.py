"""Headers of pictures, read in plain Python and trusted only as far as the number of bytes allows."""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from recordkit.errors import CorruptRecordError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

Kind: TypeAlias = Literal["jpeg", "png"]
Picture: TypeAlias = "bytes | memoryview[int]"  # the latter of bytes side by side

# The first bytes of every picture of a kind.
SIGNATURES: Final[dict[str, bytes]] = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n"}

_MARKER: Final = re.compile(b"\xff[^\xff]")  # after any fill bytes

_PNG_DEPTHS: Final = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PNG_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PALETTE: Final = 3


def kind(data: Buffer) -> Kind | None:
    r"""Return "jpeg" or "png" by the first bytes of a picture; None if it is neither.

    >>> kind(b"\x89PNG\r\n\x1a\n..."), kind(b"GIF89a")
    ('png', None)
    """
    return _kind(as_picture(data))


def _kind(picture: Picture) -> Kind | None:
    start = bytes(picture[:8])
    if start.startswith(SIGNATURES["jpeg"]):
        return "jpeg"
    return "png" if start.startswith(SIGNATURES["png"]) else None


def size(data: Buffer) -> tuple[int, int, int]:
    """Return the height, width and channels of a picture from its header: those that `decode` returns, 1 for grey.

    Raises:
        CorruptRecordError: It is not a picture, or ends inside its header.

    >>> import numpy as np
    >>> from recordkit.images import encode
    >>> size(encode(np.zeros((4, 6, 3), np.uint8), "png"))
    (4, 6, 3)
    """
    header = header_of(as_picture(data))
    return header.height, header.width, header.channels


class Header(NamedTuple):
    """The header of a picture; `channels` counts those of the decoded pixels."""

    kind: Kind
    height: int
    width: int
    channels: int
    bits: int
    components: int


def header_of(picture: Picture) -> Header:
    """Return a picture's header, or raise."""
    found = _kind(picture)
    if found is None:
        raise corrupt(picture, "")
    return _jpeg_header(picture) if found == "jpeg" else _png_header(picture)


def _jpeg_header(picture: Picture) -> Header:
    """Return the frame header (SOF), found by stepping from marker to marker."""
    place = 2
    while found := _MARKER.search(picture, place):
        place = found.end()
        marker = picture[place - 1]
        if marker in (0xD9, 0xDA):  # the end, or pixels, before any header
            break
        if marker <= 0x01 or 0xD0 <= marker <= 0xD8:  # these have no length
            continue
        length = int.from_bytes(picture[place : place + 2], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _frame_header(picture, place, length)
        place += max(length, 2)
    raise corrupt(picture, "it has no frame header")


def _frame_header(picture: Picture, place: int, length: int) -> Header:
    if length < 8 or len(picture) < place + length:
        raise corrupt(picture, "it ends inside its frame header")
    bits, height, width, components = struct.unpack_from(">BHHB", picture, place + 2)
    if length != 8 + 3 * components or components not in (1, 3, 4) or not height or not width:
        raise corrupt(picture, f"its header says {height} x {width} pixels of {components} components")
    return Header("jpeg", height, width, min(components, 3), bits, components)


def _png_header(picture: Picture) -> Header:
    """Return the IHDR header; a palette has a fourth channel if some of its colours are transparent."""
    chunks = png_chunks(picture)
    name, start, length = next(chunks)
    if name != b"IHDR" or length != 13:
        raise corrupt(picture, "it does not begin with a header")
    width, height, bits, colour, *methods = struct.unpack_from(">IIBBBBB", picture, start)
    if (
        bits not in _PNG_DEPTHS.get(colour, ())
        or not 0 < width < 2**31
        or not 0 < height < 2**31
        or methods[:2] != [0, 0]
    ):
        raise corrupt(picture, f"its header says {height} x {width} pixels of {bits} bits, colour type {colour}")
    channels = _PNG_CHANNELS[colour]
    if colour == _PALETTE:
        channels = 4 if _has_transparency(chunks) else 3
    return Header("png", height, width, channels, bits, _PNG_CHANNELS[colour])


def _has_transparency(chunks: Iterator[tuple[bytes, int, int]]) -> bool:
    for name, _, _ in chunks:
        if name in (b"tRNS", b"IDAT"):
            return name == b"tRNS"
    return False


def png_chunks(picture: Picture) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, place and length of each chunk, up to the end; each is checked against its checksum."""
    place = len(SIGNATURES["png"])
    while True:
        if place + 12 > len(picture):
            raise corrupt(picture, f"it ends inside the chunk at byte {place}")
        length = int.from_bytes(picture[place : place + 4], "big")
        name, end = bytes(picture[place + 4 : place + 8]), place + 8 + length
        if end + 4 > len(picture):
            raise corrupt(picture, f"it ends inside the chunk at byte {place}")
        if zlib.crc32(memoryview(picture)[place + 4 : end]) != int.from_bytes(picture[end : end + 4], "big"):
            raise corrupt(picture, f"the checksum of the chunk at byte {place} does not match")
        yield name, place + 8, length
        if name == b"IEND":
            return
        place = end + 4


def as_picture(data: Buffer) -> Picture:
    """Return the bytes of a buffer, copied only if they are not contiguous."""
    if isinstance(data, bytes):
        return data
    view = memoryview(data)
    return view if view.format == "B" and view.ndim == 1 and view.contiguous else bytes(view)


def corrupt(picture: Picture, why: str) -> CorruptRecordError:
    """Return the error for a picture that cannot be decoded, or for bytes that are not a picture."""
    count = f"{len(picture)} byte{'' if len(picture) == 1 else 's'}"
    what = _kind(picture)
    message = f"{count} of a {what} that cannot be decoded: {why}" if what else f"{count} that are neither jpeg nor png"
    return CorruptRecordError(message, kind="bad_picture")


def too_large(picture: Picture, header: Header) -> CorruptRecordError:
    """Return the error for a header that claims more pixels than its bytes can hold."""
    return corrupt(picture, f"its header says {header.height} x {header.width} pixels, more than its bytes can hold")


def too_deep(header: Header) -> SchemaError:
    """Return the error for pixels that would lose bits."""
    expected = "a picture of 8 bits, or of 16 in grey"
    found = f"a {header.kind} of {header.bits} bits in {header.channels} channels"
    message = f"expected {expected}, found {found}\n  Save it with 8 bits to decode it."
    return SchemaError(message, expected=expected, found=found)
