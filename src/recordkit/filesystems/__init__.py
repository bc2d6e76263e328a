"""File systems: bytes by name. Nothing here knows what the bytes are.

`FileSystem` says what every one offers; `recordkit.testing.FileSystemContract` tests that a class does.
"""

from ._local_files import LocalFileSystem
from ._memory import Fault, MemoryFileSystem, RandomFaults
from ._paths import fitting, given_path, is_folder, mode_of, refusing
from ._protocol import (
    ALWAYS,
    IF_ABSENT,
    ByteFile,
    Capabilities,
    Entry,
    FileSystem,
    FileWriter,
    IfUnchanged,
    LocalAccess,
    Range,
    Stat,
    When,
)
from ._registry import find_file_system, register

__all__ = [
    "ALWAYS",
    "IF_ABSENT",
    "ByteFile",
    "Capabilities",
    "Entry",
    "Fault",
    "FileSystem",
    "FileWriter",
    "IfUnchanged",
    "LocalAccess",
    "LocalFileSystem",
    "MemoryFileSystem",
    "RandomFaults",
    "Range",
    "Stat",
    "When",
    "find_file_system",
    "fitting",
    "given_path",
    "is_folder",
    "mode_of",
    "refusing",
    "register",
]
