"""The geometry of the page's charts: numbers in, coordinates out. The template draws them as inline SVG.

A line chart is 320 by 150 units; its plot leaves room for the labels of the value axis at the left and of the steps
below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from truegold.pipeline.report.accounting import Account
from truegold.pipeline.report.distribution import Distribution
from truegold.pipeline.report.training import Curve, Metric, Point

WIDTH, HEIGHT = 320.0, 150.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 8.0, 8.0, 20.0

MAX_POINTS = 400
"""Points of a line: more than pixels across would only make the page large."""

FLOW_WIDTH = 430.0
FLOW_ROW = 30.0


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where, and what it says."""

    at: float
    label: str


@dataclass(frozen=True)
class Line:
    name: str
    points: str
    """As SVG's `points` attribute."""
    dots: tuple[tuple[float, float], ...]
    """Drawn where the points are so few that a line alone would hide them."""


@dataclass(frozen=True)
class LineChart:
    title: str
    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    label: str
    hint: str
    count: int


@dataclass(frozen=True)
class FlowRow:
    """One stage of the flow: what went on, and what ended there, as widths."""

    label: str
    rows: int
    lost: int
    width: float
    lost_width: float
    y: float


def line_chart(curve: Curve) -> LineChart:
    points = [point for metric in curve.metrics for point in metric.points]
    first, last = min(step for step, _ in points), max(step for step, _ in points)
    share = all(0 <= value <= 1 for _, value in points) and "rate" in curve.metrics[0].name
    low, high = min(0.0, *(value for _, value in points)), max(value for _, value in points)
    up = ticks(low, 1.0 if share else high)
    bottom, top = up[0], up[-1]

    def place(point: Point) -> tuple[float, float]:
        across = (point[0] - first) / max(last - first, 1)
        rise = (point[1] - bottom) / (top - bottom)
        return (
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - rise * (HEIGHT - TOP - BOTTOM), 1),
        )

    lines = []
    for metric in curve.metrics:
        places = [place(point) for point in thinned(metric)]
        few = tuple(places) if len(places) <= 30 else ()
        lines.append(Line(metric.name, " ".join(f"{x:g},{y:g}" for x, y in places), few))
    steps = sorted({first, (first + last) // 2, last})
    return LineChart(
        curve.title,
        tuple(lines),
        tuple(Tick(place((step, bottom))[0], f"{step:,}") for step in steps),
        tuple(Tick(place((first, value))[1], f"{value:g}") for value in up),
    )


def thinned(metric: Metric) -> Sequence[Point]:
    """At most MAX_POINTS points, the first and the last among them."""
    points = metric.points
    if len(points) <= MAX_POINTS:
        return points
    last = len(points) - 1
    return [points[round(place * last / (MAX_POINTS - 1))] for place in range(MAX_POINTS)]


def ticks(low: float, high: float) -> list[float]:
    """Three to six round values that span `low` to `high`."""
    span = high - low
    if span <= 0:
        span = abs(high) or 1.0
        high = low + span
    magnitude = 10.0 ** math.floor(math.log10(span / 4))
    step = next(magnitude * nice for nice in (1, 2, 5, 10) if magnitude * nice >= span / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def histogram(distribution: Distribution, tallest: int) -> list[Bar]:
    """Bars on the scale of `tallest`, so that before and after can be compared."""
    bars = distribution.bars
    room = WIDTH - 2 * RIGHT
    width = room / len(bars)
    steps = len(bars) - 1
    found = []
    for place, count in enumerate(bars):
        height = count / max(tallest, 1) * (HEIGHT - 2 * BOTTOM)
        if place == 0:
            meaning = "never passed"
        elif place == steps:
            meaning = "always passed"
        else:
            meaning = f"pass rate about {place / steps:.2g}"
        label = {0: "0", steps: "1"}.get(place, f"{place / steps:.2g}".removeprefix("0") if place % 2 == 0 else "")
        x = RIGHT + place * width
        y = HEIGHT - BOTTOM - height
        hint = f"{meaning}: {count:,} problems"
        found.append(Bar(round(x + 1, 1), round(y, 1), round(width - 2, 1), round(height, 1), label, hint, count))
    return found


def flow(account: Account) -> list[FlowRow]:
    """The run from record to selection: a bar for each stage that rows go through."""
    scale = FLOW_WIDTH / max(account.records_in, 1)
    rows = []
    for place, passage in enumerate(account.passages):
        lost = sum(passage.lost.values())
        width, lost_width = round(passage.rows_out * scale, 1), round(lost * scale, 1)
        rows.append(FlowRow(passage.stage, passage.rows_out, lost, width, lost_width, place * FLOW_ROW))
    return rows
