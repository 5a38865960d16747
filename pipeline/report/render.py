"""Renders the report as one self-contained HTML page, which needs no network.

No text of the data can run as code. Texts of rows are packed (`page_rows`), and the page's scripts write them only to
text nodes. Templates escape all other texts. The content security policy is a second defence: it allows only the page's
own scripts, by hash, and only requests to the server of `truegold review`.

The page includes Tabulator, and KaTeX if a text has formulas, with their licences (`pipeline/third_party`). The
coordinates of charts are computed here, and the template draws them as inline SVG.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from truegold.pipeline.accounting import Passage
from truegold.pipeline.report.pass_rates import Distribution
from truegold.pipeline.report.reason_docs import exemplify_reason, explain_reason, explain_reasons
from truegold.pipeline.report.row_cards import say_value
from truegold.pipeline.report.sections import Sections, gather_run
from truegold.pipeline.report.training import METRIC_WORDS, Curve, Metric, Point
from truegold.pipeline.tables.rows import dump_json
from truegold.pipeline.text.shown_text import MATHS_PATTERN, has_maths, visible
from truegold.pipeline.text.templates import show, templates_in

PAGE = Path(__file__).parent / "page"
SCRIPT = Path(__file__).parent / "script"
THIRD_PARTY = Path(__file__).parents[1] / "third_party"

_SCRIPT_NAMES = (
    "base maths differences data views filters queue table card measures store review bulk completions print start"
)
SCRIPTS = tuple(f"{name}.js" for name in _SCRIPT_NAMES.split())
"""The page's own scripts, in the order in which they run."""

WIDTH, HEIGHT = 320.0, 150.0
"""The size of a chart, in SVG units."""
LEFT, RIGHT, TOP, BOTTOM = 44.0, 8.0, 8.0, 20.0
"""The margins around the plot of a chart."""

MAX_POINTS = 400
"""The maximum number of points of a line, which is as many as the width of a chart can show."""

DOTTED_POINTS = 30
"""A line of at most this number of points also has dots."""

REASONS_SHOWN = 2
"""The number of reasons for lost rows that the page names for each stage."""

GUIDELINES = """Keep: the problem can be answered, and the gold is right.
Fix: the problem is sound, and the gold or a test is wrong. Give the right answer in the form of the gold, or the lines
that change the tests.
Drop: the problem cannot be answered (something is missing or contradictory, or several answers are right).
Unsure: you cannot decide. The row stays held back, and another reviewer may decide.

Solve the problem before you look at the votes. Many systems can make the same mistake."""
"""The guidelines of a review if the folder of decisions has no guidelines."""

_SOURCE_MAP = re.compile(r"^(//# |/\*# )sourceMappingURL=.*$", re.MULTILINE)
"""The address of a source map, `//# sourceMappingURL=katex.min.js.map`. Browsers request such files, so it is
removed."""
_MATHS_IN_BODY = re.compile(r'class="(?:row-text|line) maths')
"""The class of an element whose text has formulas."""
_FONT_SOURCES = re.compile(r"src:url\(fonts/([\w-]+)\.woff2\)[^;}]*")
"""The address of a font in a style sheet, `src:url(fonts/KaTeX_Main-Bold.woff2) format("woff2"),url(...)`."""


@dataclass(frozen=True)
class ReviewSettings:
    """The settings of the page of `truegold review`."""

    reviewer: str
    token: str
    """The token that the page sends with each request."""
    guidelines: str | None = None
    """The guidelines as plain text, or None for GUIDELINES."""
    blind: bool = False
    """True if other reviewers' decisions are hidden."""
    queue: tuple[tuple[str, str, int], ...] | None = None
    """The keys (id, source, source_row) of the rows to review, in order. None lets the reviewer choose on the page."""
    drawn: str = "suspicious"
    """How the rows of the queue were chosen, for the record of decisions: `suspicious`, or `random:SEED`."""


def open_page(run_dir: Path, review: ReviewSettings | None = None) -> str:
    """Return the page of a run on disk. Raises InputError if it is not a run or has no rows yet."""
    return render(gather_run(run_dir, is_blind=review is not None and review.blind), review)


def render(sections: Sections, review: ReviewSettings | None = None) -> str:
    """Return the page of the report, or of a review."""
    return _fill_page(
        "body.html.jinja",
        sections.name,
        settings={
            "run_dir": _quote_path(sections.run_dir),
            "run_key": sections.run_key,
            "reasons": explain_reasons(),
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
    """Return a page without a table of rows, with the style and the content security policy of the report."""
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
    body = _templates().get_template(template).render(values)
    if _MATHS_IN_BODY.search(body) and "katex" not in libraries:
        libraries = ("katex", *libraries)
    embedded = [_read_library(name) for name in libraries]
    page_scripts = [*(library.script for library in embedded), "\n".join(_read(SCRIPT / name) for name in scripts)]
    page_styles = [*(library.style for library in embedded), *(_read(PAGE / name) for name in styles)]
    page = _templates().get_template("page.html.jinja")
    return page.render(
        values,
        title=title,
        body=Markup(body),
        settings=json_for_script({"maths": MATHS_PATTERN, **settings}),
        scripts=list(map(Markup, page_scripts)),
        styles=list(map(Markup, page_styles)),
        notices=[Markup(library.notice) for library in embedded],
        policy=_policy(page_scripts, calls_server=values["review"] is not None),
    )


@dataclass(frozen=True)
class _Library:
    """The parts of a third-party library that a page includes."""

    script: str
    style: str
    notice: str
    """The name, version and licence, which must be on every page that includes the library."""


@cache
def _read_library(name: str) -> _Library:
    """Return a library from `third_party`, without its source maps, and with its fonts inside the style sheet."""
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
def _templates() -> Environment:
    templates = templates_in(PAGE)
    templates.filters.update(
        percent=_format_percent,
        number=_format_number,
        value=say_value,
        words=_show_words,
        typed=_quote_path,
        explained=explain_reason,
        exemplified=exemplify_reason,
        metric=lambda name: METRIC_WORDS.get(name, _show_words(name)),
    )
    templates.tests.update(maths=_shows_maths)
    templates.globals.update(flow_reasons=flow_reasons, histogram=histogram, line_chart=line_chart)
    return templates


def _shows_maths(text: str | None) -> bool:
    return text is not None and has_maths(show(text))


def _format_percent(share: float | None, digits: int = 1) -> str:
    """Return 0.4567 as 45.7 %, and None as a dash."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def _format_number(value: float | None) -> str:
    """Return a number with four significant digits, and None as a dash."""
    return "–" if value is None else f"{value:.4g}"


def _show_words(code: str) -> str:
    """Return `suspect_gold` as "suspect gold"."""
    return show(code).replace("_", " ")


def _quote_path(path: str) -> str:
    return shlex.quote(visible(path))


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _policy(scripts: list[str], *, calls_server: bool) -> str:
    """Return the content security policy. Inline styles are allowed, because KaTeX needs style attributes."""
    connect = " connect-src 'self';" if calls_server else ""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    sources = f"style-src 'unsafe-inline'; font-src data:; script-src {allowed};{connect}"
    return f"default-src 'none'; {sources} base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Tick:
    """A labelled mark on an axis."""

    position: float
    label: str


@dataclass(frozen=True)
class ChartLine:
    """The line of one metric in a chart."""

    name: str
    points: str
    """The value of SVG's `points` attribute."""
    dots: tuple[tuple[float, float], ...]
    """The coordinates of the dots. Long lines have none."""


@dataclass(frozen=True)
class LineChart:
    """The chart of one curve: its lines, and the ticks of both axes."""

    title: str
    lines: tuple[ChartLine, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    marks: tuple[Tick, ...] = ()
    """Marks at the steps where guards acted."""


@dataclass(frozen=True)
class Bar:
    """A bar of a histogram; `hint` is its tooltip."""

    x: float
    y: float
    width: float
    height: float
    label: str
    hint: str
    count: int


def line_chart(curve: Curve) -> LineChart:
    """Return the chart of a curve. The axis of a rate goes from 0 to 1."""
    points = [point for metric in curve.metrics for point in metric.points]
    steps_shown = [*(step for step, _ in points), *(alarm.step for alarm in curve.alarms)]
    first, last = min(steps_shown), max(steps_shown)
    share = all(0 <= value <= 1 for _, value in points) and "rate" in curve.title
    low, high = min([0.0, *(value for _, value in points)]), max((value for _, value in points), default=1.0)
    up = ticks(low, 1.0 if share else high)
    bottom, top = up[0], up[-1]

    def locate(point: Point) -> tuple[float, float]:
        across = (point[0] - first) / max(last - first, 1)
        rise = (point[1] - bottom) / (top - bottom)
        return (
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - rise * (HEIGHT - TOP - BOTTOM), 1),
        )

    lines = []
    for metric in curve.metrics:
        coordinates = [locate(point) for point in thinned(metric)]
        dots = tuple(coordinates) if len(coordinates) <= DOTTED_POINTS else ()
        lines.append(ChartLine(metric.name, " ".join(f"{x:g},{y:g}" for x, y in coordinates), dots))
    steps = sorted({first, (first + last) // 2, last})
    return LineChart(
        curve.title,
        tuple(lines),
        across=tuple(Tick(locate((step, bottom))[0], f"{step:,}") for step in steps),
        up=tuple(Tick(locate((first, value))[1], f"{value:g}") for value in up),
        marks=tuple(
            Tick(locate((alarm.step, bottom))[0], f"step {alarm.step}: {alarm.guard}, {alarm.action}")
            for alarm in curve.alarms
        ),
    )


def thinned(metric: Metric) -> Sequence[Point]:
    """Return at most MAX_POINTS points, including the first and the last."""
    points = metric.points
    if len(points) <= MAX_POINTS:
        return points
    last = len(points) - 1
    return [points[round(index * last / (MAX_POINTS - 1))] for index in range(MAX_POINTS)]


def ticks(low: float, high: float) -> list[float]:
    """Return three to six round values that cover the range from `low` to `high`."""
    span = high - low
    if span <= 0:
        span = abs(high) or 1.0
        high = low + span
    magnitude = 10.0 ** math.floor(math.log10(span / 4))
    step = next(magnitude * nice for nice in (1, 2, 5, 10) if magnitude * nice >= span / 4)
    # The tolerance is for rounding errors at a bound that is a multiple of the step.
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(multiple * step, 12) for multiple in range(first, last + 1)]


def histogram(distribution: Distribution, tallest: int) -> list[Bar]:
    """Return the bars of a histogram.

    `tallest` is the count of a bar that fills the chart. Charts that are compared have the same one.
    """
    counts = distribution.bars
    width = (WIDTH - 2 * RIGHT) / len(counts)
    last = len(counts) - 1
    bars = []
    for index, count in enumerate(counts):
        height = count / max(tallest, 1) * (HEIGHT - 2 * BOTTOM)
        if index == 0:
            label, meaning = "0", "never passed"
        elif index == last:
            label, meaning = "1", "always passed"
        else:
            rate = f"{index / last:.2g}"
            label, meaning = rate.removeprefix("0") if index % 2 == 0 else "", f"pass rate about {rate}"
        x = RIGHT + index * width
        y = HEIGHT - BOTTOM - height
        hint = f"{meaning}: {count:,} problems"
        bars.append(Bar(round(x + 1, 1), round(y, 1), round(width - 2, 1), round(height, 1), label, hint, count))
    return bars


def flow_reasons(passage: Passage) -> list[tuple[str, int]]:
    """Return the most frequent reasons of the rows that ended at a stage."""
    return sorted(passage.lost.items(), key=lambda entry: (-entry[1], entry[0]))[:REASONS_SHOWN]
