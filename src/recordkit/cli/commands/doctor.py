"""doctor: show what is installed, and which fast paths are used."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import recordkit

from .._parser import add_json

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

EXAMPLES: Final = ("recordkit doctor", "recordkit doctor --json")

# The purpose of each package, and the extra that installs it.
_OPTIONAL: Final = {
    "isal": ("faster reading of other tools' gzip", "fast"),
    "simplejpeg": ("JPEG decoding and encoding", "images"),
    "pillow": ("PNG decoding and encoding", "images"),
    "ml_dtypes": ("bfloat16 and float8", "ml_dtypes"),
    "pyarrow": ("Parquet, CSV and Arrow tables", "arrow"),
    "pandas": ("data frames", "pandas"),
    "starlette": ("the page of recordkit view", "viewer"),
    "uvicorn": ("the page of recordkit view", "viewer"),
    "torch": ("PyTorch", "torch"),
    "jax": ("JAX", "jax"),
    "datasets": ("Hugging Face datasets", "huggingface"),
    "tensorflow": ("TensorFlow (not needed by recordkit)", "tensorflow"),
}
_SAME: Final = {"tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tf-nightly")}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_json(parser)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the findings."""
    facts, problems = _facts(), list(_problems())
    if args.json:
        screen.json({**facts, "problems": problems})
        return 1 if problems else 0
    for name in ("recordkit", "python", "system", "processors", "checksums", "gzip", "cache"):
        screen.print(f"{screen.style(f'{name:<11}', 'cyan')} {facts[name]}")
    screen.print()
    screen.table(("package", "version", "for"), [_row(name, screen) for name in ("numpy", "deflate", *_OPTIONAL)])
    for problem in problems:
        screen.print(f"\n{screen.style('problem', 'bold', 'yellow')}  {problem}")
    return 1 if problems else 0


def _facts() -> dict[str, Any]:
    from recordkit import _core
    from recordkit.codecs import foreign_library_name, library_name
    from recordkit.engines import AUTO, count

    others = [path for path in _core.crc32c_paths() if path != _core.crc32c_path()]
    return {
        "recordkit": f"{recordkit.__version__} in {Path(recordkit.__file__).parent}",
        "python": f"{platform.python_version()} ({platform.python_implementation()}) in {sys.executable}",
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "processors": count(AUTO),
        "checksums": _core.crc32c_path() + (f" (also supported: {', '.join(others)})" if others else ""),
        "gzip": f"{library_name()} for recordkit's own files, {foreign_library_name()} for others",
        "cache": str(_cache()),
        "packages": {name: _version(name) for name in ("numpy", "deflate", *_OPTIONAL)},
    }


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recordkit"


def _version(name: str) -> str | None:
    for package in _SAME.get(name, (name,)):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def _row(name: str, screen: Screen) -> list[str]:
    version = _version(name)
    what, extra = _OPTIONAL.get(name, ("required", None))
    if version is not None:
        return [name, screen.style(version, "green"), what]
    return [
        name,
        screen.style("not installed", "dim"),
        f"{what}{f': pip install {chr(39)}recordkit[{extra}]{chr(39)}' if extra else ''}",
    ]


def _problems() -> list[str]:
    from recordkit import _core

    found = []
    if _core.crc32c_path() == "portable":
        found.append("checksums use the portable path, which is several times slower than the x86-64 paths.")
    cache = _cache()
    place = next(folder for folder in (cache, *cache.parents) if folder.exists())
    if not (place.is_dir() and os.access(place, os.W_OK)):
        found.append(f"{place} is not writable, so indexes are not cached. Set XDG_CACHE_HOME.")
    return found
