"""Advice: what would make a dataset smaller or faster, with measurements."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import images
from recordkit.errors import MissingExtraError, RecordKitError
from recordkit.wording import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from recordkit.tools import Description, FieldStats

__all__ = ["advice"]

_PICTURES: Final = 8
_LEAST_PIXELS: Final = 256
_WORTH_IT: Final = 0.9  # of the current bytes
_NOTABLE: Final = 0.1  # of a record
_NAMES_TOO: Final = 1 / 3
_SAVED: Final = 0.1
_SMALL, _LARGE, _MANY = 10_000_000, 2_000_000_000, 16


def advice(found: Description) -> Iterator[str]:
    """Yield a sentence or two for each suggested change."""
    yield from _shards(found)
    if not len(found.chunk):
        return
    yield from _names(found)
    yield from _pictures_in_gzip(found)
    if found.schema is not None and found.stats is not None:
        for name, stats in found.stats.fields.items():
            yield from _pixels(found, name, stats)


def _shards(found: Description) -> Iterator[str]:
    sizes = found.sizes or (1,)
    held = sum(sizes)
    median = sizes[len(sizes) // 2]
    if sizes[0] == 0:
        empty = sizes.count(0)
        verb = "is" if empty == 1 else "are"
        yield f"{empty} of {len(sizes)} files {verb} empty: was a writer killed before its first record?"
    elif len(sizes) >= _MANY and median < _SMALL:
        whole, shards = format_size(held), max(1, held // 256_000_000)
        yield (
            f"{len(sizes):,} files of {format_size(median)}: opening them takes longer than reading them. Files of "
            f"100 MB or more are read at full speed; {whole} would be {shards:,} of 256 MB."
        )
    if sizes[-1] > _LARGE:
        yield (
            f"The largest file is {format_size(sizes[-1])}: it cannot be split between workers or machines, and a "
            "failed copy has to be repeated in full. Files of 100 MB to 1 GB are easier to handle."
        )


def _names(found: Description) -> Iterator[str]:
    """Advise on feature names that take a large share of the records, as with many small numbers."""
    names = sum(len(name.encode()) * each.records for name, each in found.features.items())
    held = int(found.chunk.lengths.sum())
    plain = found.compressions == ("none",)  # compression removes repeated names
    if plain and len(found.features) > 1 and held and names / held > _NAMES_TOO:
        longest = max(found.features, key=len)
        yield (
            f"The names of the {len(found.features):,} features take {names / held:.0%} of each record; the longest is "
            f"{longest!r}. Shorter names, or one array for features that belong "
            "together, make the files smaller and reading faster."
        )


def _pictures_in_gzip(found: Description) -> Iterator[str]:
    if found.stats is None or not {"gzip", "zlib"} & set(found.compressions):
        return
    held = int(found.chunk.lengths.sum())
    pictures = sum(_bytes_of(stats) for stats in found.stats.fields.values() if _is_picture(stats))
    if pictures / held > 0.5:
        data = bytes(memoryview(found.chunk)[: 4 << 20])
        saved = max(0.0, 1 - len(zlib.compress(data, 6)) / len(data))
        if saved < _SAVED:
            yield (
                f"{pictures / held:.0%} of the bytes are jpeg or png, which are compressed already: gzip saves "
                f"{saved:.1%} here, and makes reading several times slower. Write it uncompressed."
            )


def _is_picture(stats: FieldStats) -> bool:
    return stats.type.removeprefix("sequence of ").startswith(("jpeg", "png"))


def _bytes_of(stats: FieldStats) -> float:
    return 0.0 if stats.sizes is None or stats.sizes.mean is None else stats.sizes.mean * stats.values


# --- Pixels stored uncompressed


def _pixels(found: Description, name: str, stats: FieldStats) -> Iterator[str]:
    pixels = _as_pictures(found, name, stats)
    if pixels is None:
        return
    pictures, stored, sure = pixels
    try:
        png = sum(map(_png_bytes, pictures))
    except RecordKitError:
        return
    share = stored / len(pictures) * len(found.chunk) / int(found.chunk.lengths.sum())
    if png < _WORTH_IT * stored and share > _NOTABLE:
        height, width = pictures[0].shape[:2]
        what = "holds decoded pixels" if sure else f"may hold decoded pixels ({width}x{height})"
        smaller = f"{len(pictures)} of them take {png / stored:.0%} of the bytes"
        yield f"{name} {what}: as PNG, which loses nothing, {smaller}."


def _as_pictures(found: Description, name: str, stats: FieldStats) -> tuple[list[NDArray[Any]], int, bool] | None:
    """Return some pictures, their current size in bytes, and whether they certainly are pictures."""
    for read in (_arrays, _lists, _raw):
        if pictures := read(found, name, stats):
            return pictures
    return None


def _arrays(found: Description, name: str, stats: FieldStats) -> tuple[list[NDArray[Any]], int, bool] | None:
    assert found.schema is not None
    field = found.schema.fields.get(name)
    shape = getattr(field, "shape", ())
    if getattr(field, "dtype", "") != "uint8" or len(shape) not in (2, 3):
        return None
    arrays = [array for array in found.sample(name, _PICTURES) if _fits(array.shape)]
    return (arrays, sum(array.nbytes for array in arrays), True) if arrays else None


def _lists(found: Description, name: str, stats: FieldStats) -> tuple[list[NDArray[Any]], int, bool] | None:
    """Read pixels stored as a list of integers, as in many tutorials."""
    wire = found.features.get(name)
    assert found.schema is not None
    if wire is None or name in found.schema.sequences or wire.kinds != {"int64"}:
        return None
    if stats.min is None or stats.min < 0 or stats.max > 255:
        return None
    values = [np.asarray(value).astype(np.uint8).reshape(-1) for value in found.sample(name, _PICTURES)]
    pictures = [picture for value in values if (picture := _square(value)) is not None]
    # A varint takes one byte up to 127, and two above.
    stored = sum(picture.size + int((picture > 127).sum()) for picture in pictures)
    return (pictures, stored, False) if pictures and len(pictures) == len(values) else None


def _raw(found: Description, name: str, stats: FieldStats) -> tuple[list[NDArray[Any]], int, bool] | None:
    if not stats.type.startswith("bytes") or stats.sizes is None or stats.lengths is not None:
        return None
    values = [np.frombuffer(value, np.uint8) for value in found.sample(name, _PICTURES) if isinstance(value, bytes)]
    pictures = [picture for value in values if (picture := _square(value)) is not None]
    stored = sum(picture.size for picture in pictures)
    return (pictures, stored, False) if pictures and len(pictures) == len(values) else None


def _square(values: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Return values as a square picture, if their number fits."""
    for channels in (1, 3):
        side = round((values.size / channels) ** 0.5)
        if values.size >= _LEAST_PIXELS and side * side * channels == values.size:
            return values.reshape(side, side, channels)
    return None


def _fits(shape: tuple[int, ...]) -> bool:
    return int(np.prod(shape)) >= _LEAST_PIXELS and (len(shape) == 2 or shape[2] in (1, 2, 3, 4))


def _png_bytes(picture: NDArray[np.uint8]) -> int:
    encode: Callable[[Any, Any], bytes] = images.encode
    try:
        return len(encode(np.ascontiguousarray(picture), "png"))
    except MissingExtraError:
        return len(zlib.compress(picture.tobytes(), 6))  # most of what PNG does
