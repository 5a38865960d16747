"""Makes the pictures of the documentation from the demo run, with Chromium and Playwright.

    truegold demo && python docs/pictures/make.py runs/demo

overview.png, rows.png and training.png show the report, review.png the page of `truegold review` with a gold that is
being fixed, phone.png a row on a phone in the dark scheme. prefect.png is the page of a curation in Prefect, with a
server that is started for it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
DEMO = FOLDER.parents[1] / "examples" / "demo.yaml"
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


@contextmanager
def curation_in_prefect() -> Iterator[str]:
    """Start a Prefect server, curate the demo's data as a flow there, and yield the address of the flow run's page."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        url = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "PREFECT_HOME": folder, "PREFECT_API_URL": f"{url}/api"}
        environment["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
        command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                while not is_served(f"{url}/api/health"):
                    time.sleep(0.5)
                settings = ["name=curation", "data.problems=600", "data.sft_examples=64"]
                overrides = [part for setting in settings for part in ("--set", setting)]
                curate = [sys.executable, "-m", "truegold.flows.cli", "curate", str(DEMO), *overrides]
                subprocess.run(curate, env=environment, cwd=folder, check=True, stderr=subprocess.DEVNULL)
                request = urllib.request.Request(
                    f"{url}/api/flow_runs/filter", b"{}", {"Content-Type": "application/json"}
                )
                with urllib.request.urlopen(request) as answer:
                    (flow_run, *_) = json.load(answer)
                yield f"{url}/runs/flow-run/{flow_run['id']}"
            finally:
                server.terminate()


def is_served(address: str) -> bool:
    """Return whether a server answers there."""
    try:
        with urllib.request.urlopen(address, timeout=1):
            return True
    except OSError:
        return False


def take_prefect(browser: Any, address: str) -> None:
    """Take the picture of a flow run."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(address)
    page.get_by_text("ingest").first.wait_for()
    page.wait_for_timeout(2000)
    page.screenshot(path=FOLDER / "prefect.png")


def main() -> None:
    """Take all pictures of the run that the command names."""
    from playwright.sync_api import sync_playwright

    run_dir = Path(sys.argv[1]).resolve()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take_report(browser, (run_dir / "report" / "index.html").as_uri())
        with review_of(run_dir) as address:
            take_review(browser, address)
        with curation_in_prefect() as address:
            take_prefect(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
