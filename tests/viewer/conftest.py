"""A real browser, and a tab of it that tells everything that goes wrong in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect, sync_playwright

from recordkit import viewer
from tests import debian
from tests.viewer import datasets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

    from recordkit.viewer import Server

WIDE: Any = {"width": 1280, "height": 900}
NARROW: Any = {"width": 400, "height": 820}

expect.set_options(timeout=20_000)  # on a machine that does much else at the time


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where Chromium is; Debian's package is installed if it is not there."""
    return debian.program("chromium")


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium, started once."""
    with sync_playwright() as playwright:
        # Without its sandbox, which root may not use; what it shows comes from these tests.
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


class Tab:
    """A tab, and what went wrong in it."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self.server = server
        self.problems: list[str] = []
        page.on("console", lambda message: self._tell(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", lambda request: self._check(request.url))

    def _tell(self, kind: str, words: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(f"{kind}: {words}")

    def _check(self, url: str) -> None:
        if not url.startswith(self.server.address):
            self.problems.append(f"a request to {url}")

    def show(self, view: str) -> Page:
        """Open a view, and return the page when it is drawn."""
        self.page.goto(f"{self.server.address}#/{view}")
        self.page.wait_for_selector(f'#main[aria-busy=false][data-shows="#/{view}"]')
        return self.page


@pytest.fixture(scope="session")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """A window for all tabs that ask for nothing else."""
    with browser.new_context(viewport=WIDE, reduced_motion="reduce") as context:
        yield context


@pytest.fixture
def tab(browser: Browser, window: BrowserContext) -> Iterator[Callable[..., Tab]]:
    """Make tabs that look at a server; in the end nothing may have gone wrong in them."""
    made: list[Tab] = []

    def make(server: Server, **options: Any) -> Tab:
        context = (
            browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options}) if options else window
        )
        made.append(Tab(context.new_page(), server))
        return made[-1]

    yield make
    for each in made:
        each.page.close()
        if each.page.context is not window:
            each.page.context.close()
    assert [problem for each in made for problem in each.problems] == []


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start viewers, and close them in the end."""
    started: list[Server] = []

    def start(where: Any, **options: Any) -> Server:
        started.append(viewer.start(where, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture(scope="session")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 60 pictures with boxes, texts, numbers and arrays, in three shards."""
    return datasets.pretty(tmp_path_factory.mktemp("viewer") / "evening", 60)


@pytest.fixture(scope="session")
def shown(evening: Path) -> Iterator[Server]:
    """A viewer of it."""
    with viewer.start(evening) as server:
        yield server
