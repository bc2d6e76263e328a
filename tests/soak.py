"""Soak: the tests that draw their inputs, with others each round, for as long as you give it.

Each round runs twice at once: with the core as it is, and with one that was built with the address and
undefined-behaviour sanitizers. A failure is printed with what reproduces it, and its test is left out of later rounds;
`make soak` then ends with status 1.

    make soak SECONDS=7200
    .venv/bin/python tests/soak.py --seconds 600 tests/storage
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
SANITIZED = ROOT / "build" / "soak"
# Frameworks bring code of their own that the sanitizers were not made for.
PLAIN_ONLY = "not tensorflow"
RUN = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
sys.path.insert(0, sys.argv.pop(1))
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def main() -> int:
    """Run rounds until the time is up, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=7200)
    parser.add_argument("--seed", type=int, help="run one round, with this seed")
    parser.add_argument("tests", nargs="*", default=["tests"])
    arguments = parser.parse_args()
    sanitized = build()
    end = time.monotonic() + arguments.seconds
    inputs, rounds = 0, 0
    failed: list[str] = []
    while rounds == 0 or (time.monotonic() < end and arguments.seed is None):
        seed = int.from_bytes(os.urandom(4), "little") if arguments.seed is None else arguments.seed
        with ThreadPoolExecutor(2) as pool:
            run = partial(run_round, seed, arguments.tests, tuple(failed))
            results = list(pool.map(run, (None, sanitized)))
        rounds += 1
        for count, broken in results:
            inputs += count
            failed += broken
            for test in broken:
                print(f"{test}\n  again: .venv/bin/python tests/soak.py --seed {seed} '{test}'", flush=True)
        print(f"round {rounds}, seed {seed}: {inputs:,} inputs so far, {len(failed)} failures", flush=True)
    return int(bool(failed))


def build() -> Path:
    """Return a folder with the package, whose core looks out for wrong memory."""
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1"
    command = [
        *(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--upgrade"),
        *("--no-build-isolation", "--target", str(SANITIZED), str(ROOT)),
        *("-C", f"build-dir={ROOT / 'build' / 'soak-core'}", "-C", "install.strip=false"),
        *("-C", f"cmake.define.CMAKE_CXX_FLAGS={flags}", "-C", "cmake.define.CMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF"),
    ]
    subprocess.run(command, check=True)
    return SANITIZED


def run_round(seed: int, tests: list[str], without: tuple[str, ...], core: Path | None) -> tuple[int, list[str]]:
    """Return how many inputs were drawn, and the tests that failed."""
    options = ["-q", "-p", "no:cacheprovider", "--show-capture=no", f"--hypothesis-seed={seed}"]
    options += ["--hypothesis-show-statistics", *(f"--deselect={test}" for test in without)]
    environment = os.environ | {"RECORDKIT_SOAK_SEED": str(seed)}
    command = [sys.executable, "-m", "pytest", *options, *tests]
    if core is not None:
        # What the sanitizers say goes past what tests print, and is kept.
        command = [sys.executable, "-c", RUN, str(core), *options, "--capture=sys", "-m", PLAIN_ONLY, *tests]
        # The library of C++ too: what it throws is looked for when Python starts, which has none.
        libraries = [library(name) for name in ("libasan.so", "libstdc++.so")]
        environment |= {
            "LD_PRELOAD": " ".join(libraries),
            "ASAN_OPTIONS": "detect_leaks=0,allocator_may_return_null=1,handle_segv=0,handle_sigbus=0",
        }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    broken = re.findall(r"^(?:FAILED|ERROR) (\S+(?:\[.*?\])?)", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 5) or broken:  # 5: no test was left
        print(failures(done.stdout)[-20_000:], done.stderr[-20_000:], sep="\n", flush=True)
        broken = broken or [f"(pytest ended with {done.returncode})"]
    drawn = sum(int(count) for counts in re.findall(r"(\d+) passing, (\d+) failing", done.stdout) for count in counts)
    return drawn, broken


def failures(output: str) -> str:
    """Return the failures without the statistics of all tests, which come after them and are long."""
    found = re.search(
        r"^=+ (?:FAILURES|ERRORS) =+$.*?(?=^=+ Hypothesis Statistics =+$)", output, re.MULTILINE | re.DOTALL
    )
    return found[0] if found else output


def library(name: str) -> str:
    """Return where the compiler has a library."""
    found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
