"""Diff: the differences between two datasets."""

from ._diff import Diff, diff

__all__ = ["Diff", "diff"]
