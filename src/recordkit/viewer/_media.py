"""Media: the byte strings that a browser can show or play, recognized by their first bytes; and thumbnails."""

from __future__ import annotations

import io
import wave
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recordkit import images
from recordkit.errors import RecordKitError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Only these are sent with their own media type. SVG and HTML can hold scripts, so they are sent as plain bytes.
_SIGNATURES: Final = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"fLaC", "audio/flac"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
)
_AUDIO_NAMES: Final = ("audio", "speech", "wave", "sound")
_SHORTEST_SOUND: Final = 1000
_RATE: Final = 16_000
SMALL_PICTURE: Final = 256 << 10  # bytes of a picture that is shown without a thumbnail
_MOST_PIXELS: Final = 24_000_000  # that are decoded for a thumbnail
_SIDE: Final = 320


def media_type(data: bytes) -> str | None:
    r"""Return the media type of a byte string; None if a browser should not show it.

    >>> media_type(b"\xff\xd8\xff\xe0..."), media_type(b"<svg onload='...'>")
    ('image/jpeg', None)
    """
    for at, start, kind in _SIGNATURES:
        if data[at : at + len(start)] == start and (at == 0 or data[:4] == b"RIFF"):
            return kind
    return None


def picture_size(data: bytes) -> tuple[int, int, int] | None:
    """Return height, width and channels of a jpeg or png, None if its header does not say."""
    try:
        return images.size(data)
    except (RecordKitError, ValueError):
        return None


def can_be_small(data: bytes, size: tuple[int, int, int] | None) -> bool:
    """Tell whether `small_picture` can return a picture of this size."""
    return len(data) <= SMALL_PICTURE or (size is not None and size[0] * size[1] <= _MOST_PIXELS)


def small_picture(data: bytes) -> tuple[bytes, str] | None:
    """Return a thumbnail and its media type; None if none can be made."""
    kind = media_type(data)
    if kind is not None and kind.startswith("image/") and len(data) <= SMALL_PICTURE:
        return data, kind
    size = picture_size(data)
    if size is None or size[0] * size[1] > _MOST_PIXELS:
        return None
    try:
        pixels = images.decode(data)
        return images.encode(_fewer(pixels), "jpeg", quality=85), "image/jpeg"
    except (RecordKitError, ImportError, ValueError, MemoryError):
        return None


def _fewer(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an 8-bit picture with at most 320 pixels a side, averaged over blocks to avoid aliasing."""
    if pixels.dtype == np.uint16:
        pixels = pixels >> 8
    if pixels.ndim == 3:
        pixels = pixels[..., :1] if pixels.shape[2] == 2 else pixels[..., :3]
    step = -(-max(pixels.shape[:2]) // _SIDE)
    # Four points of each block are enough: averaging all of them takes ten times as long.
    points = [pixels[dy::step, dx::step].astype(np.uint16) for dy in (0, step // 2) for dx in (0, step // 2)]
    height, width = min(point.shape[0] for point in points), min(point.shape[1] for point in points)
    total = sum(point[:height, :width] for point in points)
    return np.ascontiguousarray(total // 4, np.uint8)


def sounds_like(name: str, array: NDArray[Any]) -> bool:
    """Tell whether an array is audio, from its name and length.

    >>> sounds_like("audio", np.zeros(16000, np.int64)), sounds_like("tokens", np.zeros(16000, np.int64))
    (True, False)
    """
    last = name.rpartition("/")[2].lower()
    return (
        array.ndim == 1
        and array.dtype.kind in "if"
        and len(array) >= _SHORTEST_SOUND
        and any(word in last for word in _AUDIO_NAMES)
    )


def rate_of(values: dict[str, Any]) -> int:
    """Return the sample rate, from a field of the record; 16,000 if there is none."""
    for name, value in values.items():
        if name.rpartition("/")[2].lower() in ("sample_rate", "sampling_rate", "rate", "sr") and np.ndim(value) == 0:
            try:
                return min(max(int(value), 1000), 384_000)
            except (TypeError, ValueError, OverflowError):
                continue
    return _RATE


def wav(samples: NDArray[Any], rate: int) -> bytes:
    """Return audio as a 16-bit WAV file. Floats range from -1 to 1; integers are samples.

    >>> wav(np.zeros(8, np.float32), 16_000)[:4]
    b'RIFF'
    """
    if samples.dtype.kind == "f":
        samples = np.nan_to_num(samples.astype(np.float32), posinf=1, neginf=-1) * 32767
    elif len(samples) and np.abs(samples).max() > 32767:
        samples = samples >> 16  # 32-bit samples
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(np.clip(samples, -32768, 32767).astype("<i2").tobytes())
    return file.getvalue()
