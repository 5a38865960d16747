"""A difference as lines of plain text, safe to print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from truegold.pipeline.report.diff.compare import Difference, FlagChange, Source, TextChange
from truegold.pipeline.report.diff.decided import DECISIONS
from truegold.pipeline.report.diff.settings import Setting
from truegold.pipeline.text.shown import cut, visible

VALUE_CHARS = 120
"""The characters shown of a setting's value."""


def diff_lines(difference: Difference) -> list[str]:
    """Return what differs, line by line; what is the same is left out."""
    lines = [
        f"A  {visible(difference.first)}: {difference.left[0]:,} rows left",
        f"B  {visible(difference.second)}: {difference.left[1]:,} rows left",
    ]
    lines += [f"   only A has: {', '.join(difference.stages_first)}"] if difference.stages_first else []
    lines += [f"   only B has: {', '.join(difference.stages_second)}"] if difference.stages_second else []
    lines += _section("Settings and code", [_setting(setting) for setting in difference.settings])
    lines += _section("What came in", _source_lines(difference.source))
    moved = []
    for change in difference.transitions:
        moved.append(f"{change.rows:>8,}  {_end(change.first)} -> {_end(change.second)}{_ids(change.ids)}")
        moved += [f"          because {_setting(setting)}" for setting in change.because]
    lines += _section("Rows that ended otherwise (A -> B)", moved)
    lines += _section(
        "Rows in both with another value", [line for change in difference.texts for line in _text_lines(change)]
    )
    lines += _section("Flags", [line for change in difference.flags for line in _flag_lines(change)])
    rates = difference.rates
    if rates is not None and rates.changed and rates.first is not None and rates.second is not None:
        mean = f"mean {rates.first:.3f} -> {rates.second:.3f}"
        lines += _section("Pass rates", [f"{rates.changed:>8,}  of {rates.rows:,} rows, {mean}{_ids(rates.ids)}"])
    if len(lines) == 2:
        lines.append("No difference.")
    else:
        lines += ["", "truegold explain ID --run RUN tells a row's whole story."]
    return lines


def _section(title: str, lines: Iterable[str]) -> list[str]:
    content = list(lines)
    return ["", title, *content] if content else []


def _setting(setting: Setting) -> str:
    if setting.name == DECISIONS:
        return f"{DECISIONS}: {visible(setting.first or 'none')} -> {visible(setting.second or 'none')}"
    if setting.first == setting.second:
        return f"{setting.name} {setting.first}"
    return f"{setting.name}: {_value(setting.first)} -> {_value(setting.second)}"


def _value(value: Any) -> str:
    return cut(visible(orjson.dumps(value).decode()), VALUE_CHARS)


def _source_lines(source: Source) -> Iterable[str]:
    if source.only_first:
        yield f"{source.only_first:>8,}  rows in A's data only{_ids(source.ids_first)}"
    if source.only_second:
        yield f"{source.only_second:>8,}  rows in B's data only{_ids(source.ids_second)}"
    if source.changed:
        columns = ", ".join(f"{name} {count:,}" for name, count in source.changed_columns.items())
        ids = [f"{first} -> {second}" for first, second in source.ids_changed]
        yield f"{source.changed:>8,}  rows changed in the data ({columns}){_ids(ids)}"
    for reason, (first_count, second_count) in source.rejects.items():
        if first_count != second_count:
            yield f"          rejected as {visible(reason)}: {first_count:,} -> {second_count:,}"


def _end(outcome: str) -> str:
    stage, colon, reason = outcome.partition(": ")
    return f"dropped by {visible(stage)} ({visible(reason)})" if colon else outcome


def _text_lines(change: TextChange) -> Iterable[str]:
    yield f"{change.rows:>8,}  {change.column}{_ids(change.ids)}"
    for name, edits in (("A", change.edits_first), ("B", change.edits_second)):
        if edits:
            yield f"          edits only in {name}: {_counts(edits)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{visible(name)} {count:,}" for name, count in counts.items())


def _flag_lines(change: FlagChange) -> Iterable[str]:
    for name, rows, ids in (("A", change.only_first, change.ids_first), ("B", change.only_second, change.ids_second)):
        if rows:
            yield f"{rows:>8,}  {visible(change.reason)} only in {name}{_ids(ids)}"


def _ids(ids: Iterable[str]) -> str:
    listed = ", ".join(ids)
    return f"   {listed}" if listed else ""
