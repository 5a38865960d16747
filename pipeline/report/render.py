"""From contents to one self-contained HTML page: no network, no other files, nothing from the data run or obeyed.

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
from truegold.pipeline.report.shown_text import MATHS_PATTERN, cut, has_maths, visible
from truegold.pipeline.rows import dump_json

PAGE = Path(__file__).parent / "page"
KATEX = Path(__file__).parent / "katex"

_FONT_SOURCES = re.compile(r"src:url\(fonts/([\w-]+)\.woff2\)[^;}]*")


def render(contents: Contents) -> str:
    """The page. Its body is drawn first, because only then is it known whether KaTeX is needed."""
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
    """JSON that is safe inside a <script type="application/json"> element."""
    return Markup(dump_json(value).replace("<", "\\u003c"))


class _MathsSeen:
    """A template test that remembers whether it ever said yes."""

    def __init__(self) -> None:
        self.seen = False

    def test(self, text: str | None) -> bool:
        found = text is not None and has_maths(cut(visible(text)))
        self.seen = self.seen or found
        return found


def _environment(maths: _MathsSeen) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(shown=shown, count=count, percent=percent, number=number)
    environment.filters.update(compact=compact, words=words, typed=typed)
    environment.tests.update(maths=maths.test)
    environment.globals.update(flow=flow, histogram=histogram, line_chart=line_chart)
    return environment


def shown(text: object) -> str:
    """A text from the data, visible and of bounded length."""
    return cut(visible(text if isinstance(text, str) else str(text)))


def count(value: int) -> str:
    return f"{value:,}"


def percent(share: float | None, digits: int = 1) -> str:
    """0.4567 -> 45.7 %; a dash where there is nothing to tell."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def number(value: float | None) -> str:
    """Four significant digits."""
    return "–" if value is None else f"{value:.4g}"


def compact(value: Any) -> str:
    """A JSON value as one text; a string as it is."""
    return shown(value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def words(code: str) -> str:
    """suspect_gold -> suspect gold"""
    return shown(code).replace("_", " ")


def typed(path: str) -> str:
    """A path as it is typed in a shell."""
    return shlex.quote(visible(path))


@cache
def _asset(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


@cache
def _katex_css() -> str:
    """KaTeX's style sheet with its fonts inside."""

    def inlined(match: re.Match[str]) -> str:
        font = base64.b64encode((KATEX / "fonts" / f"{match[1]}.woff2").read_bytes()).decode()
        return f'src:url(data:font/woff2;base64,{font}) format("woff2")'

    return _FONT_SOURCES.sub(inlined, (KATEX / "katex.min.css").read_text(encoding="utf-8"))


def _policy(scripts: list[str]) -> str:
    """KaTeX places its boxes by style attributes, so that styles stay allowed; scripts are allowed by hash."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; style-src 'unsafe-inline'; font-src data:; script-src {allowed}; base-uri 'none'"
