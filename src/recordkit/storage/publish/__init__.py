"""Publish: from finished shards to a dataset, all of it or nothing."""

from ._by_rename import finish, moves_of, pending, publish, publishing, recover, take_back

__all__ = [
    "finish",
    "moves_of",
    "pending",
    "publish",
    "publishing",
    "recover",
    "take_back",
]
