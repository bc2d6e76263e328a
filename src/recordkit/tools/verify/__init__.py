"""Verify: check that a dataset is what was written, and that its records hold what they should."""

from ._report import FileReport, Problem, Verified
from ._verify import verify

__all__ = ["FileReport", "Problem", "Verified", "verify"]
