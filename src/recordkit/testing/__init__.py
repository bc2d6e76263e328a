"""Tests to inherit: contracts that a class of your own keeps, if it is to work with recordkit. They need pytest."""

from ._engines import EngineContract
from ._filesystems import FileSystemContract

__all__ = ["EngineContract", "FileSystemContract"]
