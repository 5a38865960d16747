"""Draws the contents as one self-contained HTML page: no network, no other files, and nothing of the data is run.

Texts of rows reach the page packed (`browser/payload.py`), and are written by its script to text nodes alone; others go
through the template's escaping. Should that ever fail, the page's content security policy lets no script run but the
page's own, which it names by hash, and no request leave, but to the server of `truegold review` that sent the page.
KaTeX is part of the page only where a text shown has maths in it. `katex/` holds release 0.19.1 and `tabulator/`
release 6.5.3 of tabulator-tables, unchanged (both MIT).
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from truegold.pipeline.report.browser.facts import say_value
from truegold.pipeline.report.charts import flow, histogram, line_chart
from truegold.pipeline.report.contents import Contents
from truegold.pipeline.tables.rows import dump_json
from truegold.pipeline.text.shown import MATHS_PATTERN, cut, has_maths, visible

PAGE = Path(__file__).parent / "page"
SCRIPT = Path(__file__).parent / "script"
KATEX = Path(__file__).parent / "katex"

SCRIPTS = (
    "base.js",
    "maths.js",
    "differences.js",
    "data.js",
    "views.js",
    "filters.js",
    "queue.js",
    "table.js",
    "card.js",
    "measures.js",
    "store.js",
    "review.js",
    "completions.js",
    "print.js",
    "start.js",
)
"""The page's own scripts, in the order in which they are run."""

GUIDELINES = """Keep: the problem can be answered, and gold is the right answer.
Fix gold: the problem is sound, and gold is wrong: give the right answer in the form that gold has.
Drop: the problem cannot be answered as it stands (something is missing or contradictory, several answers are right).
Unsure: you cannot tell; the row stays held back, and another reviewer may decide.

Solve the problem before you look at the votes. Many systems can be wrong together."""

_SOURCE_MAP = re.compile(r"^(//# |/\*# )sourceMappingURL=.*$", re.MULTILINE)
_FONT_SOURCES = re.compile(r"src:url\(fonts/([\w-]+)\.woff2\)[^;}]*")


@dataclass(frozen=True)
class ReviewSettings:
    """What the page of `truegold review` knows beyond the report."""

    reviewer: str
    token: str
    """Every call of the page to its server bears it."""
    guidelines: str | None = None
    """What a reviewer goes by, as plain text; a few lines of truegold's own where it is None."""
    blind: bool = False
    """Whether the words of other reviewers are hidden."""
    queue: tuple[tuple[str, str, int], ...] | None = None
    """The keys (id, source, source_row) of the rows to read, in order; None where the reviewer chooses in the page."""
    drawn: str = "suspicious"
    """How the queue was drawn, as decisions keep it: `suspicious`, or `random:SEED`."""


def render(contents: Contents, review: ReviewSettings | None = None, comparison: object = None) -> str:
    """Return the page: the report, the page of a review, or of a comparison with an earlier run (`compare`)."""
    maths = _MathsSeen()
    environment = _environment(maths)
    guidelines = (review.guidelines if review else None) or GUIDELINES
    shared = {"browser": contents.browser, "review": review, "guidelines": guidelines, "comparison": comparison}
    body = environment.get_template("body.html.jinja").render(contents=contents, **shared)
    assets = _Assets([_vendored("tabulator/tabulator.min.js")], [_vendored("tabulator/tabulator_simple.min.css")])
    assets.add(SCRIPTS, ("page.css", "rows.css"))
    if maths.seen or any(has_maths(text) for text in contents.browser.texts()):
        assets.add_katex()
    settings = {"maths": MATHS_PATTERN, "run_dir": _quote_path(contents.run_dir), "run_key": contents.run_key}
    return environment.get_template("page.html.jinja").render(
        title=contents.name,
        body=Markup(body),
        settings=json_for_script({**settings, "review": review and asdict(review)}),
        completions=contents.completions,
        **assets.values(calls_server=review is not None),
        **shared,
    )


def render_plain(template: str, title: str, **values: Any) -> str:
    """Return a page without rows to browse, of a template that has all it says: the same style, maths and policy."""
    maths = _MathsSeen()
    environment = _environment(maths)
    body = environment.get_template(template).render(**values)
    assets = _Assets([], [])
    assets.add(("base.js", "maths.js"), ("page.css",))
    if maths.seen:
        assets.add_katex()
    return environment.get_template("page.html.jinja").render(
        title=title,
        body=Markup(body),
        settings=json_for_script({"maths": MATHS_PATTERN}),
        completions=None,
        browser=None,
        review=None,
        **assets.values(calls_server=False),
    )


@dataclass(frozen=True)
class _Assets:
    """The scripts and styles of a page, in their order."""

    scripts: list[str]
    styles: list[str]

    def add(self, scripts: tuple[str, ...], styles: tuple[str, ...]) -> None:
        """Add the page's own."""
        self.scripts.append("\n".join(map(_script, scripts)))
        self.styles.extend(map(_asset, styles))

    def add_katex(self) -> None:
        """Add what draws maths, before all others."""
        self.scripts.insert(0, _vendored("katex/katex.min.js"))
        self.styles.insert(0, _katex_css())

    def values(self, *, calls_server: bool) -> dict[str, Any]:
        """Return what the page's template gets of them."""
        return {
            "scripts": [Markup(script) for script in self.scripts],
            "styles": [Markup(style) for style in self.styles],
            "policy": _policy(self.scripts, calls_server=calls_server),
        }


def json_for_script(value: Any) -> Markup:
    """Return JSON that is safe inside a <script type="application/json"> element."""
    return Markup(dump_json(value).replace("<", "\\u003c"))


class _MathsSeen:
    """A template test for maths that remembers whether any text had some."""

    def __init__(self) -> None:
        self.seen = False

    def test(self, text: str | None) -> bool:
        has_any = text is not None and has_maths(cut(visible(text)))
        self.seen = self.seen or has_any
        return has_any


def _environment(maths: _MathsSeen) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        shown=_show,
        count=_format_count,
        percent=_format_percent,
        number=_format_number,
        value=say_value,
        words=_show_words,
        typed=_quote_path,
    )
    environment.tests.update(maths=maths.test)
    environment.globals.update(flow=flow, histogram=histogram, line_chart=line_chart)
    return environment


def _show(text: object) -> str:
    """Return a text from the data, visible and of bounded length."""
    return cut(visible(text if isinstance(text, str) else str(text)))


def _format_count(value: int) -> str:
    return f"{value:,}"


def _format_percent(share: float | None, digits: int = 1) -> str:
    """Return 0.4567 as 45.7 %, and None as a dash."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def _format_number(value: float | None) -> str:
    """Return four significant digits, and None as a dash."""
    return "–" if value is None else f"{value:.4g}"


def _show_words(code: str) -> str:
    """Return suspect_gold as suspect gold."""
    return _show(code).replace("_", " ")


def _quote_path(path: str) -> str:
    """Return a path as it is typed in a shell."""
    return shlex.quote(visible(path))


@cache
def _script(name: str) -> str:
    return (SCRIPT / name).read_text(encoding="utf-8")


@cache
def _vendored(path: str) -> str:
    """Return a file of another project, without the line that would have a browser ask for its source map."""
    return _SOURCE_MAP.sub("", (PAGE.parent / path).read_text(encoding="utf-8"))


@cache
def _asset(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


@cache
def _katex_css() -> str:
    """Return KaTeX's style sheet with its fonts inside."""

    def inline_font(match: re.Match[str]) -> str:
        font = base64.b64encode((KATEX / "fonts" / f"{match[1]}.woff2").read_bytes()).decode()
        return f'src:url(data:font/woff2;base64,{font}) format("woff2")'

    return _FONT_SOURCES.sub(inline_font, (KATEX / "katex.min.css").read_text(encoding="utf-8"))


def _policy(scripts: list[str], *, calls_server: bool) -> str:
    """Return the content security policy. KaTeX places its boxes by style attributes, so that styles stay allowed."""
    connect = " connect-src 'self';" if calls_server else ""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    sources = f"style-src 'unsafe-inline'; font-src data:; script-src {allowed};{connect}"
    return f"default-src 'none'; {sources} base-uri 'none'; form-action 'none'"
