"""Text: whether byte strings are UTF-8, told of a whole column at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recordkit.columns import BytesColumn


def first_invalid_text(column: BytesColumn) -> int | None:
    r"""Return the index of the first value that is not UTF-8, or None.

    >>> from recordkit.columns import BytesColumn
    >>> first_invalid_text(BytesColumn.of([b"a", "ü".encode()])), first_invalid_text(BytesColumn.of([b"a", b"\xff"]))
    (None, 1)
    """
    start, stop = int(column.offsets[0]), int(column.offsets[-1])
    data = column.data[start:stop]
    if not data.size or int(data.max()) < 0x80:
        return None
    # All values as one text: valid together, and none starting inside a character, means each is valid.
    starts = column.offsets[:-1][np.diff(column.offsets) > 0] - start
    inside_a_character = (data[starts] & 0xC0) == 0x80
    try:
        data.tobytes().decode()
        if not inside_a_character.any():
            return None
    except UnicodeDecodeError:
        pass
    return _first_invalid(column)


def _first_invalid(column: BytesColumn) -> int | None:
    for index, (start, stop) in enumerate(zip(column.offsets[:-1].tolist(), column.offsets[1:].tolist(), strict=True)):
        try:
            column.data[start:stop].tobytes().decode()
        except UnicodeDecodeError:
            return index
    return None
