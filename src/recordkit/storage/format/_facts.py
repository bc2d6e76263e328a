"""Facts about a shard that its manifest entry keeps."""

from __future__ import annotations

import hashlib

DIGEST_BYTES = 16


def new_digest() -> hashlib.blake2b:
    """Return an empty digest for a shard; update it with the identities of its records in file order."""
    return hashlib.blake2b(digest_size=DIGEST_BYTES)
