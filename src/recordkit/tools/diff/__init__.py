"""Diff: in what two datasets differ."""

from ._diff import Diff, diff

__all__ = ["Diff", "diff"]
