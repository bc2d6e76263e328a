"""Tools: what is done to whole files and datasets. Each takes paths and returns a report; none prints."""

from ._repair import Repaired, repair

__all__ = ["Repaired", "repair"]
