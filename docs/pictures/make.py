"""Makes the pictures of the documentation from the demo run, with Chromium and Playwright.

    truegold demo && python docs/pictures/make.py runs/demo

overview.png, rows.png and training.png show the report, review.png the page of `truegold review` with a gold that is
being fixed, phone.png a row on a phone in the dark scheme.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
WIDTH, HEIGHT = 1280, 800
TOKEN = "pictures-of-the-documentation"


@contextmanager
def review_of(run_dir: Path) -> Iterator[str]:
    """Start `truegold review` on a run, with decisions in a folder that goes away, and yield its address."""
    with tempfile.TemporaryDirectory() as decisions:
        command = [sys.executable, "-m", "truegold.flows.cli", "review", str(run_dir), "--port", "0"]
        command += ["--reviewer", "ann", "--decisions", decisions]
        environment = {**os.environ, "TRUEGOLD_REVIEW_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1", "COLUMNS": "300"}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            lines = (re.search(r"http://\S+", line) for line in server.stdout)
            yield next(match[0] for match in lines if match)
            server.terminate()


def open_page(browser: Any, address: str, **settings: Any) -> Any:
    """Open an address and return the page when it is ready."""
    page = browser.new_page(**{"viewport": {"width": WIDTH, "height": HEIGHT}, **settings})
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    return page


def take_report(browser: Any, report: str) -> None:
    """Take the pictures of the report."""
    open_page(browser, report).screenshot(path=FOLDER / "overview.png")
    rows = open_page(browser, f"{report}#rows?tier=review")
    rows.wait_for_selector("#card article")
    rows.screenshot(path=FOLDER / "rows.png")
    training = open_page(browser, f"{report}#training")
    training.wait_for_selector("#completions .sample")
    training.get_by_label("Beside it").select_option(index=1)
    training.evaluate("document.getElementById('completions').previousElementSibling.scrollIntoView()")
    training.screenshot(path=FOLDER / "training.png")
    phone = {"viewport": {"width": 390, "height": 780}, "color_scheme": "dark", "device_scale_factor": 1.5}
    small = open_page(browser, f"{report}#rows?tier=review", **phone)
    small.locator("#table .tabulator-row").first.click()
    small.wait_for_selector("#card article")
    small.screenshot(path=FOLDER / "phone.png")


def take_review(browser: Any, address: str) -> None:
    """Take the picture of a review: some rows are decided, and the gold of one is being fixed."""
    page = open_page(browser, f"{address}#rows?tier=review&queue=suspicious&size=100")
    page.wait_for_selector("#card article")
    for key in "dkd":
        before = page.get_attribute("#card article", "aria-label")
        page.keyboard.press(key)
        page.locator(f"#card article:not([aria-label='{before}'])").wait_for()
    page.keyboard.press("f")
    page.locator(".reading", has_text="read as").wait_for()
    page.screenshot(path=FOLDER / "review.png")


def main() -> None:
    """Take all pictures of the run that the command names."""
    from playwright.sync_api import sync_playwright

    run_dir = Path(sys.argv[1]).resolve()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take_report(browser, (run_dir / "report" / "index.html").as_uri())
        with review_of(run_dir) as address:
            take_review(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
