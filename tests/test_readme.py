"""README and documentation are right: their programs run as they stand, and what they link to is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent


def test_the_program_in_the_readme_runs_and_prints_what_it_should(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    run = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.stderr == ""
    assert run.stdout == (
        "1000 7 [2 0]\n"
        "(256, 16) [256, 256, 232]\n"
        "damaged.tfrecord: record 0 at byte 0: the payload or its checksum is damaged\n"
        "999 records recovered\n"
    )


GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))

# All that a guide may print beside its results: the warnings it is about, and those of others' packages.
SAID = {
    "corruption": (
        r".*/train: not published\. 500 rows in 5 finished shards are kept; resume=True continues after them\n"
        r".*/some: 256 records in 1 file, .*; 44 rows skipped, see recordkit\.quarantined\('.*'\)\n"
        r"1 damaged place in 1 file passed over; the first: .*: record 0 at byte 0: .*\n"
    ),
    "pytorch": r"(.*/torchdata/.*: UserWarning: .*\n  .*\n)*",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[subprocess.CompletedProcess[str]]]]:
    """Run each guide's programs in an interpreter of its own, two at a time."""

    def run(page: Path) -> subprocess.CompletedProcess[str]:
        program = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
        return subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path_factory.mktemp(page.stem),
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    with ThreadPoolExecutor(2) as pool:
        yield {page.stem: pool.submit(run, page) for page in GUIDES}
        pool.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page.stem for page in GUIDES])
def test_the_programs_of_a_guide_run_and_say_nothing_on_standard_error(
    page: str, runs: dict[str, Future[subprocess.CompletedProcess[str]]]
) -> None:
    run = runs[page].result()

    assert run.returncode == 0, run.stderr
    assert re.fullmatch(SAID.get(page, ""), run.stderr), run.stderr


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.stem
)
def test_every_page_and_picture_that_is_linked_to_is_there(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text())

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = (ROOT / "website" / "mkdocs.yml").read_text()
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]

    assert [page for page in pages if f" {page}\n" not in menu] == []


def test_architecture_names_every_part_there_is() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    parts = [path.name for path in (ROOT / "src" / "recordkit").iterdir() if path.suffix == ".py" or path.is_dir()]
    sources = {path.stem for path in (ROOT / "cpp" / "core").glob("*.cc")}

    missing = [name for name in parts if name not in ("__init__.py", "__pycache__") and f"`{name}" not in text]

    assert missing == []
    assert [name for name in sources if f"`{name}`" not in text] == []
