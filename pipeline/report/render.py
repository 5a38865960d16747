"""Draws the contents as one self-contained HTML page: no network, no other files, and nothing of the data is run.

Texts of rows reach the page through the template's escaping alone. Should that ever fail, the page's content security
policy lets no script run but the page's own, which it names by hash, and no request leave. KaTeX is part of the page
only where a text shown has maths in it; `katex/` holds release 0.19.1, unchanged (MIT).
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from truegold.pipeline.report.charts import flow, histogram, line_chart
from truegold.pipeline.report.contents import Contents
from truegold.pipeline.report.flagged import describe_suspicion
from truegold.pipeline.report.shown_text import MATHS_PATTERN, cut, has_maths, visible
from truegold.pipeline.rows import dump_json

PAGE = Path(__file__).parent / "page"
KATEX = Path(__file__).parent / "katex"

_FONT_SOURCES = re.compile(r"src:url\(fonts/([\w-]+)\.woff2\)[^;}]*")


def render(contents: Contents) -> str:
    """Return the page. Its body is drawn first, because only then is it known whether KaTeX is needed."""
    maths = _MathsSeen()
    environment = _environment(maths)
    body = environment.get_template("body.html.jinja").render(contents=contents)
    scripts = [_asset("page.js")]
    styles = [_asset("page.css")]
    if maths.seen:
        scripts.insert(0, (KATEX / "katex.min.js").read_text(encoding="utf-8"))
        styles.insert(0, _katex_css())
    return environment.get_template("page.html.jinja").render(
        title=contents.name,
        body=Markup(body),
        styles=[Markup(style) for style in styles],
        scripts=[Markup(script) for script in scripts],
        settings=json_for_script({"maths": MATHS_PATTERN}),
        policy=_policy(scripts),
    )


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
        suspicion=describe_suspicion,
        number=_format_number,
        compact=_show_json,
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


def _show_json(value: Any) -> str:
    """Return a JSON value as one text, a string as it is."""
    return _show(value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def _show_words(code: str) -> str:
    """Return suspect_gold as suspect gold."""
    return _show(code).replace("_", " ")


def _quote_path(path: str) -> str:
    """Return a path as it is typed in a shell."""
    return shlex.quote(visible(path))


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


def _policy(scripts: list[str]) -> str:
    """Return the content security policy. KaTeX places its boxes by style attributes, so that styles stay allowed."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; style-src 'unsafe-inline'; font-src data:; script-src {allowed}; base-uri 'none'"
