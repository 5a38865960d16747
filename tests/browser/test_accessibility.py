"""Nobody is kept from the page: axe-core 4.14.1 (`axe/`, MPL-2.0, unchanged) finds nothing serious in any view."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent / "axe" / "axe.min.js"

RUN = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
    .filter((violation) => ["serious", "critical"].includes(violation.impact))
    .map((violation) => [violation.id, ...violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))])"""


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_no_view_has_a_serious_finding(visit: Callable[..., Any], small_report: str, width: int, scheme: str) -> None:
    page = visit(width=width, color_scheme=scheme).open(f"{small_report}#overview")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for view in ("overview", "rows", "training", "details"):
        page.evaluate("(name) => { location.hash = name }", view)
        page.locator(f"body[data-view={view}]").wait_for()
        if view == "rows":
            page.locator("#table .tabulator-row").first.click()
            page.locator("#card article").wait_for()
            page.evaluate("() => truegold.decide('fix')")
        assert page.evaluate(RUN) == [], view
