"""Functions that other processes find by their name."""

from __future__ import annotations

import os
from typing import Any


def doubled(row: Any) -> dict[str, Any]:
    """Something of a row."""
    return {"id": int(row["id"]) * 2, "name": row["name"]}


def is_even(row: Any) -> bool:
    """Every other row."""
    return int(row["id"]) % 2 == 0


def fails_at_17(row: Any) -> int:
    """Fail at one row."""
    if row["id"] == 17:
        message = "not this one"
        raise LookupError(message)
    return int(row["id"])


def kills_itself(row: Any) -> int:
    """End the process as a lack of memory would."""
    os._exit(9)


def process_id(row: Any) -> int:
    """Tell which process this is."""
    return os.getpid()
