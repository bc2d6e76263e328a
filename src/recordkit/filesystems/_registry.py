"""Which file system an address such as `memory://train` belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recordkit.errors import MissingExtraError

from ._local_files import LocalFileSystem
from ._memory import MemoryFileSystem
from ._paths import given_path, not_of_this_machine, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._protocol import FileSystem


@dataclass(frozen=True)
class _Handler:
    make: Callable[[], FileSystem]
    package: str
    extra: str


_handlers: Final[dict[str, _Handler]] = {}
_made: Final[dict[str, FileSystem]] = {}


def register(scheme: str, make: Callable[[], FileSystem], *, package: str = "", extra: str = "") -> None:
    """Let a file system handle the addresses of a scheme.

    Args:
        scheme: The part before `://`.
        make: Called once, when the first such address is used. It may import what it needs.
        package: What `make` imports, and may be missing.
        extra: The extra of recordkit that installs it.
    """
    _handlers[scheme.lower()] = _Handler(make, package, extra)
    _made.pop(scheme.lower(), None)


def is_handled(address: str) -> bool:
    """Return whether this is an address of a scheme that a file system handles.

    >>> is_handled("memory://train"), is_handled("s3://bucket/train"), is_handled("train")
    (True, False, False)
    """
    return scheme_of(address) in _handlers


def find_file_system(address: str) -> tuple[FileSystem, str]:
    """Return the file system of an address, and the path of the address there.

    Raises:
        MissingExtraError: The package that handles the scheme is not installed.
        StorageError: Nothing handles the scheme, or it is a path that this machine cannot have.

    >>> files, path = find_file_system("memory://data/train")
    >>> path, files.can.rename
    ('data/train', False)
    """
    scheme = scheme_of(address)
    if scheme is None:
        return LocalFileSystem(), given_path(address)
    handler = _handlers.get(scheme)
    if handler is None:
        raise not_of_this_machine(address, scheme)
    if scheme not in _made:
        try:
            _made[scheme] = handler.make()
        except ImportError as error:
            if not handler.package:
                raise
            what = f"{scheme}://"
            raise MissingExtraError(what, handler.package, handler.extra) from error
    return _made[scheme], address[len(scheme) + 1 :].lstrip("/")


register("memory", MemoryFileSystem)
