"""Virtual environments: one a competitor, as their pins conflict; made when first wanted, kept in benchmarks/venvs."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "venvs"

TORCH = "torch==2.13.0"  # one for all of them, so that pip can take them from its cache
CV2 = "opencv-python-headless"

# What each competitor's own environment holds. One that is not listed runs where recordkit is installed.
PACKAGES = {
    "tensorflow": ("tensorflow-cpu==2.21.0",),
    "pyarrow": ("pyarrow", "numpy"),
    "tfx_bsl": ("tfx-bsl",),
    "array_record": ("array_record", "numpy"),
    "mosaicml": ("mosaicml-streaming", CV2),  # brings PyTorch, as its torchvision wants it: several GB
    "pictures": ("pillow", "numpy"),
    "extras": (TORCH, "simplejpeg", "pillow", "numpy"),
    "simplejpeg": ("simplejpeg", "numpy"),
    "vahidk": ("tfrecord", TORCH, "numpy"),
    "webdataset": ("webdataset", TORCH, CV2),
    "grain": ("grain", CV2),
    "dali": ("nvidia-dali-cuda120", "numpy"),
}

# These see recordkit as well, as it is installed where the benchmark runs.
WITH_RECORDKIT = ("extras",)


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
    if name in WITH_RECORDKIT:
        _link(folder)
    return python


def _link(folder: Path) -> None:
    """Let an environment find what is installed in this one, behind its own packages."""
    (theirs,) = folder.glob("lib/python*/site-packages")
    # A path alone would not do: this follows the links of editable installations too.
    code = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (theirs / "recordkit_of_the_benchmark.pth").write_text(code)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [
            line for line in (done.stderr + done.stdout).splitlines() if line.strip() and not line.startswith("WARNING")
        ]
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["no reason given"]
        # pip lists every version there is, which is no part of the reason.
        raise NotInstalledError(errors[0].removeprefix("ERROR: ").partition(" (from versions")[0][:200])
