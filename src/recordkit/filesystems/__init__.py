"""File systems: bytes by name. Nothing here knows what the bytes are.

`FileSystem` says what every one offers; `recordkit.testing.FileSystemContract` tests that a class does.
"""

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

__all__ = [
    "ALWAYS",
    "IF_ABSENT",
    "ByteFile",
    "Capabilities",
    "Entry",
    "FileSystem",
    "FileWriter",
    "IfUnchanged",
    "LocalAccess",
    "Range",
    "Stat",
    "When",
    "fitting",
    "given_path",
    "is_folder",
    "mode_of",
    "refusing",
]
