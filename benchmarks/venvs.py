"""Virtual environments: one a competitor, as their pins conflict; made when first wanted, kept in benchmarks/venvs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "venvs"

# What each competitor's own environment holds. One that is not listed runs where recordkit is installed.
PACKAGES = {
    "tensorflow": ("tensorflow-cpu==2.21.0",),
    "pyarrow": ("pyarrow", "numpy"),
    "tfx_bsl": ("tfx-bsl",),
    "array_record": ("array_record", "numpy"),
    "mosaicml": ("mosaicml-streaming",),  # brings PyTorch: several GB
    "pictures": ("pillow", "numpy"),
}


class NotInstalledError(Exception):
    """An environment could not be made; the text says why."""


def python_of(name: str) -> Path:
    """Return the interpreter of an environment, which is made if need be.

    Raises:
        NotInstalledError: pip could not install what it needs.
    """
    if name not in PACKAGES:
        return Path(sys.executable)
    folder = FOLDER / name
    python, stamp = folder / "bin" / "python", folder / "installed.json"
    wanted = json.dumps([sys.version, *PACKAGES[name]])
    if not (stamp.exists() and stamp.read_text() == wanted):
        print(f"making the environment of {name}: {', '.join(PACKAGES[name])}", flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES[name]])
        stamp.write_text(wanted)
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [
            line for line in (done.stderr + done.stdout).splitlines() if line.strip() and not line.startswith("WARNING")
        ]
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["no reason given"]
        # pip lists every version there is, which is no part of the reason.
        raise NotInstalledError(errors[0].removeprefix("ERROR: ").partition(" (from versions")[0][:200])
