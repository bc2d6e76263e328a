"""Chance: how many inputs tests draw, and which.

`make test` draws the same ones everywhere; `make soak` draws others in each of its rounds.
"""

from __future__ import annotations

import os
import random
from typing import Final

_seed = os.environ.get("RECORDKIT_SOAK_SEED")

SOAKING: Final = _seed is not None
SEED: Final = int(_seed or 0)
PROFILE: Final = "soak" if SOAKING else "recordkit"


def generator(name: str) -> random.Random:
    """Return a source of chance for the test of this name; mark such a test with `drawn`, so that it is soaked too.

    >>> generator("cuts").random() == generator("cuts").random()
    True
    """
    return random.Random(f"{SEED} {name}")
