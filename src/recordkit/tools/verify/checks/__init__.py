"""The checks of verify, one file each."""

from ._examples import Payloads
from ._manifest import IndexCheck, Part, Sums, against_manifest

__all__ = ["IndexCheck", "Part", "Payloads", "Sums", "against_manifest"]
