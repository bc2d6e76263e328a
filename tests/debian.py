"""Programs that tests drive and pip does not bring: Debian's packages of them are installed where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess

_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}


def program(name: str) -> str:
    """Return where a program is, whose Debian package has its name and is installed if the program is not there.

    Raises:
        RuntimeError: It cannot be installed; says why, and what to do.
    """
    if shutil.which(name) is None:
        _install(name)
    path = shutil.which(name)
    assert path is not None, f"Debian's package {name} has brought no program of this name"
    return path


def _install(package: str) -> None:
    if shutil.which("apt-get") is None:
        message = (
            f"{package} is not installed, and there is no apt-get to do it with\n  Install it, and run this again."
        )
        raise RuntimeError(message)
    if os.geteuid() != 0:
        message = f"{package} is not installed, and only root may do it\n  sudo apt-get install {package}"
        raise RuntimeError(message)
    _apt("update")  # which is content with old lists where there is no network; what follows tells
    done = _apt("install", "-y", "--no-install-recommends", package)
    if done.returncode != 0:
        words = " ".join(done.stderr.split()[-60:])
        message = f"{package} is not installed, and apt-get cannot do it: {words}\n  Is there a network?"
        raise RuntimeError(message)


def _apt(*words: str) -> subprocess.CompletedProcess[str]:
    # Another one that runs just now is waited for.
    command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *words]
    environment = os.environ | _ENVIRONMENT
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL
    )
