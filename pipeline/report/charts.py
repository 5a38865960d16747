"""The geometry of the page's charts: numbers in, coordinates out. The template draws them as inline SVG.

A line chart is 320 by 150 units; its plot leaves room for the labels of the value axis at the left and of the steps
below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from truegold.pipeline.accounting.accounting import Account
from truegold.pipeline.report.pass_rates import Distribution
from truegold.pipeline.report.training import Curve, Metric, Point

WIDTH, HEIGHT = 320.0, 150.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 8.0, 8.0, 20.0

MAX_POINTS = 400
"""The most points of a line: more than pixels across would only make the page large."""

DOTTED_POINTS = 30
"""A line of so few points gets a dot for each, which a line alone would hide."""

REASONS_SHOWN = 2
"""How many reasons the flow names for what left at a stage."""


@dataclass(frozen=True)
class Tick:
    """A labelled mark on an axis."""

    position: float
    label: str


@dataclass(frozen=True)
class Line:
    """One metric's line."""

    name: str
    points: str
    """The value of SVG's `points` attribute."""
    dots: tuple[tuple[float, float], ...]
    """The coordinates of dots, where there are any."""


@dataclass(frozen=True)
class LineChart:
    """The chart of one curve: its lines, and the marks across and up."""

    title: str
    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    marks: tuple[Tick, ...] = ()
    """Where guards have acted."""


@dataclass(frozen=True)
class Bar:
    """A bar of a histogram. `hint` is shown where the pointer rests on it."""

    x: float
    y: float
    width: float
    height: float
    label: str
    hint: str
    count: int


@dataclass(frozen=True)
class FlowRow:
    """One stage of the flow, with the shares of all records, in percent, that went on and that ended there."""

    stage: str
    rows: int
    lost: int
    share: float
    lost_share: float
    reasons: tuple[tuple[str, int], ...]
    """Why most of those that ended here did."""
    more: int
    """Those that ended here for other reasons."""


def line_chart(curve: Curve) -> LineChart:
    """Lay out a curve; shares have an axis from 0 to 1."""
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
        lines.append(Line(metric.name, " ".join(f"{x:g},{y:g}" for x, y in coordinates), dots))
    steps = sorted({first, (first + last) // 2, last})
    return LineChart(
        curve.title,
        tuple(lines),
        tuple(Tick(locate((step, bottom))[0], f"{step:,}") for step in steps),
        tuple(Tick(locate((first, value))[1], f"{value:g}") for value in up),
        tuple(
            Tick(locate((alarm.step, bottom))[0], f"step {alarm.step}: {alarm.guard}, {alarm.action}")
            for alarm in curve.alarms
        ),
    )


def thinned(metric: Metric) -> Sequence[Point]:
    """Return at most MAX_POINTS points, the first and the last among them."""
    points = metric.points
    if len(points) <= MAX_POINTS:
        return points
    last = len(points) - 1
    return [points[round(index * last / (MAX_POINTS - 1))] for index in range(MAX_POINTS)]


def ticks(low: float, high: float) -> list[float]:
    """Return three to six round values that span `low` to `high`."""
    span = high - low
    if span <= 0:
        span = abs(high) or 1.0
        high = low + span
    magnitude = 10.0 ** math.floor(math.log10(span / 4))
    step = next(magnitude * nice for nice in (1, 2, 5, 10) if magnitude * nice >= span / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(multiple * step, 12) for multiple in range(first, last + 1)]


def histogram(distribution: Distribution, tallest: int) -> list[Bar]:
    """Return bars on the scale of `tallest`, so that before and after can be compared."""
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


def flow(account: Account) -> list[FlowRow]:
    """Return the run from record to selection: a bar for each stage that rows go through."""
    scale = 100.0 / max(account.records_in, 1)
    rows = []
    for passage in account.passages:
        lost = sum(passage.lost.values())
        reasons = sorted(passage.lost.items(), key=lambda entry: (-entry[1], entry[0]))[:REASONS_SHOWN]
        rows.append(
            FlowRow(
                stage=passage.stage,
                rows=passage.rows_out,
                lost=lost,
                share=round(passage.rows_out * scale, 2),
                lost_share=round(lost * scale, 2),
                reasons=tuple(reasons),
                more=lost - sum(count for _, count in reasons),
            )
        )
    return rows
