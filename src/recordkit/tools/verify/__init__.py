"""Verify: is every byte of a dataset as it was written, and do its records hold what they should?"""

from ._report import FileReport, Problem, Verified
from ._verify import verify

__all__ = ["FileReport", "Problem", "Verified", "verify"]
