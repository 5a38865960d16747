"""A difference as lines of plain text, safe to print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from truegold.pipeline.report.diff.compare import Difference, FlagChange, Source, TextChange
from truegold.pipeline.report.diff.settings import Setting
from truegold.pipeline.report.shown_text import cut, visible

VALUE_CHARS = 120


def diff_lines(found: Difference) -> list[str]:
    """What differs; nothing is said of what is the same."""
    lines = [
        f"A  {visible(found.first)}: {found.left[0]:,} rows left",
        f"B  {visible(found.second)}: {found.left[1]:,} rows left",
    ]
    lines += [f"   only A has: {', '.join(found.stages_first)}"] if found.stages_first else []
    lines += [f"   only B has: {', '.join(found.stages_second)}"] if found.stages_second else []
    lines += _section("Settings and code", [_setting(setting) for setting in found.settings])
    lines += _section("What came in", _source(found.source))
    moved = []
    for change in found.transitions:
        moved.append(f"{change.rows:>8,}  {_end(change.first)} -> {_end(change.second)}{_named(change.ids)}")
        moved += [f"          because {_setting(setting)}" for setting in change.because]
    lines += _section("Rows that ended otherwise (A -> B)", moved)
    lines += _section("Rows in both with another value", [line for change in found.texts for line in _text(change)])
    lines += _section("Flags", [line for change in found.flags for line in _flag(change)])
    rates = found.rates
    if rates is not None and rates.changed and rates.first is not None and rates.second is not None:
        mean = f"mean {rates.first:.3f} -> {rates.second:.3f}"
        lines += _section("Pass rates", [f"{rates.changed:>8,}  of {rates.rows:,} rows, {mean}{_named(rates.ids)}"])
    if len(lines) == 2:
        lines.append("No difference.")
    else:
        lines += ["", "truegold explain ID --run RUN tells a row's whole story."]
    return lines


def _section(title: str, lines: Iterable[str]) -> list[str]:
    told = list(lines)
    return ["", title, *told] if told else []


def _setting(setting: Setting) -> str:
    if setting.first == setting.second:
        return f"{setting.name} {setting.first}"
    return f"{setting.name}: {_value(setting.first)} -> {_value(setting.second)}"


def _value(value: Any) -> str:
    return cut(visible(orjson.dumps(value).decode()), VALUE_CHARS)


def _source(found: Source) -> Iterable[str]:
    if found.only_first:
        yield f"{found.only_first:>8,}  rows in A's data only{_named(found.ids_first)}"
    if found.only_second:
        yield f"{found.only_second:>8,}  rows in B's data only{_named(found.ids_second)}"
    if found.changed:
        columns = ", ".join(f"{name} {count:,}" for name, count in found.changed_columns.items())
        ids = [f"{one} -> {other}" for one, other in found.ids_changed]
        yield f"{found.changed:>8,}  rows changed in the data ({columns}){_named(ids)}"
    for reason, (one, other) in found.rejects.items():
        if one != other:
            yield f"          rejected as {visible(reason)}: {one:,} -> {other:,}"


def _end(outcome: str) -> str:
    stage, colon, reason = outcome.partition(": ")
    return f"dropped by {visible(stage)} ({visible(reason)})" if colon else outcome


def _text(change: TextChange) -> Iterable[str]:
    yield f"{change.rows:>8,}  {change.column}{_named(change.ids)}"
    for name, edits in (("A", change.edits_first), ("B", change.edits_second)):
        if edits:
            yield f"          edits only in {name}: {_counts(edits)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{visible(name)} {count:,}" for name, count in counts.items())


def _flag(change: FlagChange) -> Iterable[str]:
    for name, rows, ids in (("A", change.only_first, change.ids_first), ("B", change.only_second, change.ids_second)):
        if rows:
            yield f"{rows:>8,}  {visible(change.reason)} only in {name}{_named(ids)}"


def _named(ids: Iterable[str]) -> str:
    shown = ", ".join(ids)
    return f"   {shown}" if shown else ""
