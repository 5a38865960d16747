"""Draws the report as one self-contained HTML page: no network, no other files, and nothing of the data is run.

Texts of rows reach the page packed (`page_rows`), and are written by its script to text nodes alone; others go
through the template's escaping. Should that ever fail, the page's content security policy lets no script run but the
page's own, which it names by hash, and no request leave, but to the server of `truegold review` that sent the page.
KaTeX is part of the page only where a text shown has maths in it. It and Tabulator lie in `pipeline/third_party`; the
page carries the licence of each that it embeds.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.report.charts import flow, histogram, line_chart
from truegold.pipeline.report.row_cards import say_value
from truegold.pipeline.report.sections import Sections, gather
from truegold.pipeline.tables.rows import dump_json
from truegold.pipeline.tables.run_files import open_finished
from truegold.pipeline.text.shown_text import MATHS_PATTERN, cut, has_maths, visible

PAGE = Path(__file__).parent / "page"
SCRIPT = Path(__file__).parent / "script"
THIRD_PARTY = Path(__file__).parents[1] / "third_party"

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
_MATHS_IN_BODY = re.compile(r'class="(?:row-text|line) maths')
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


def open_page(run_dir: Path, review: ReviewSettings | None = None) -> str:
    """Return the page of a run that lies on disk. InputError where it is no run, or has no rows yet."""
    files = open_finished(run_dir)
    stages = tuple(name for name in files.folders if name != "report")
    config = ReportConfig(name=run_dir.resolve().name, stages=stages)
    return render(gather(files.only(stages), config, is_blind=review is not None and review.blind), review)


def render(sections: Sections, review: ReviewSettings | None = None) -> str:
    """Return the page of the report, or of a review."""
    return _fill_page(
        "body.html.jinja",
        sections.name,
        settings={
            "run_dir": _quote_path(sections.run_dir),
            "run_key": sections.run_key,
            "review": review and asdict(review),
        },
        scripts=SCRIPTS,
        styles=("page.css", "rows.css"),
        libraries=("katex", "tabulator") if any(map(has_maths, sections.rows.texts())) else ("tabulator",),
        sections=sections,
        rows=sections.rows,
        completions=sections.completions,
        review=review,
        guidelines=(review and review.guidelines) or GUIDELINES,
    )


def render_plain(template: str, title: str, **values: Any) -> str:
    """Return a page without rows to browse, of a template that has all it says: the same style, maths and policy."""
    values |= {"rows": None, "completions": None, "review": None}
    return _fill_page(
        template, title, settings={}, scripts=("base.js", "maths.js"), styles=("page.css",), libraries=(), **values
    )


def _fill_page(
    template: str,
    title: str,
    *,
    settings: Mapping[str, Any],
    scripts: Sequence[str],
    styles: Sequence[str],
    libraries: Sequence[str],
    **values: Any,
) -> str:
    """Return the page that a template makes of values, with the scripts and styles that it needs."""
    body = _environment().get_template(template).render(values)
    if _MATHS_IN_BODY.search(body) and "katex" not in libraries:
        libraries = ("katex", *libraries)
    embedded = [_read_library(name) for name in libraries]
    page_scripts = [*(library.script for library in embedded), "\n".join(_read(SCRIPT / name) for name in scripts)]
    page_styles = [*(library.style for library in embedded), *(_read(PAGE / name) for name in styles)]
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            values,
            title=title,
            body=Markup(body),
            settings=json_for_script({"maths": MATHS_PATTERN, **settings}),
            scripts=list(map(Markup, page_scripts)),
            styles=list(map(Markup, page_styles)),
            notices=[Markup(library.notice) for library in embedded],
            policy=_policy(page_scripts, calls_server=values["review"] is not None),
        )
    )


@dataclass(frozen=True)
class _Library:
    """What a page embeds of a library of others."""

    script: str
    style: str
    notice: str
    """Its name, version and licence, which goes wherever it goes."""


@cache
def _read_library(name: str) -> _Library:
    """Return a library of `third_party`, without the lines that would have a browser ask for source maps, and with its
    fonts inside its style sheet."""
    folder = THIRD_PARTY / name
    origin = tomllib.loads(_read(folder / "ORIGIN.toml"))
    (script,) = folder.glob("*.min.js")
    (style,) = folder.glob("*.min.css")

    def inline_font(match: re.Match[str]) -> str:
        font = base64.b64encode((folder / "fonts" / f"{match[1]}.woff2").read_bytes()).decode()
        return f'src:url(data:font/woff2;base64,{font}) format("woff2")'

    return _Library(
        _SOURCE_MAP.sub("", _read(script)),
        _FONT_SOURCES.sub(inline_font, _SOURCE_MAP.sub("", _read(style))),
        f"This page contains {origin['name']} {origin['version']} ({origin['home']}).\n\n{_read(folder / 'LICENSE')}",
    )


def json_for_script(value: Any) -> Markup:
    """Return JSON that is safe inside a <script type="application/json"> element."""
    return Markup(dump_json(value).replace("<", "\\u003c"))


@cache
def _environment() -> Environment:
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
    environment.tests.update(maths=_shows_maths)
    environment.globals.update(flow=flow, histogram=histogram, line_chart=line_chart)
    return environment


def _shows_maths(text: str | None) -> bool:
    return text is not None and has_maths(cut(visible(text)))


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
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _policy(scripts: list[str], *, calls_server: bool) -> str:
    """Return the content security policy. KaTeX places its boxes by style attributes, so that styles stay allowed."""
    connect = " connect-src 'self';" if calls_server else ""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    sources = f"style-src 'unsafe-inline'; font-src data:; script-src {allowed};{connect}"
    return f"default-src 'none'; {sources} base-uri 'none'; form-action 'none'"
