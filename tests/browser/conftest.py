"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright. Without one they are skipped."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))  # `fake_run` and `report_pages`
sys.path.insert(0, str(Path(__file__).parent))  # `review_server`

import fake_run as fake
from report_pages import run_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running Chromium, for a file at a time: Playwright's event loop runs in this thread as long as it is there, and
    no other test could start its own."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine: apt-get install chromium")
    with api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@dataclass
class Visit:
    """A page in the browser, and what it complained of: errors, messages on the console, dialogs, requests."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def open(self, address: str) -> Any:
        """Go to an address, and return the page when it is ready."""
        self.page.goto(address)
        self.page.reload() if "#" in address else None
        self.page.wait_for_selector("body[data-ready]", timeout=30_000)
        return self.page


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """A function that opens a fresh page; at the end no page may have complained."""
    contexts, visits = [], []

    def fresh(width: int = 1440, height: int = 900, **settings: Any) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        made = Visit(page)
        visits.append(made)
        page.on("console", lambda message: made.complaints.append(message.text))
        page.on("pageerror", lambda error: made.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (made.complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: _only_the_page(made, request))
        return made

    yield fresh
    for context in contexts:
        context.close()
    assert [made.complaints for made in visits if made.complaints] == []


def _only_the_page(made: Visit, request: Any) -> None:
    if not request.url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:")):
        made.complaints.append(f"asks for {request.url}")


@pytest.fixture(scope="session")
def small_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the report on the small run of the tests."""
    folder = tmp_path_factory.mktemp("browser") / "fake"
    fake.FakeRun(folder).build(fake.FULL)
    run_report(folder, fake.FULL)
    return (folder / "report" / "index.html").as_uri()
