"""Everything a run knows of one row, from the line it came from to where it ended.

    explain(Path("runs/demo"), "9f0c21")          a prefix of the row's id, six hex digits at least
    explain(Path("runs/demo"), "raw.jsonl:17")    where the row came from; finds rejected records too

Rows of the same content share an id: all of them are told, up to ROWS_TOLD. The tables are scanned with filters, so
that a row among a million is found without reading the others' texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.ledger import DROPPED_FILE, LEDGER_FILE
from truegold.pipeline.report.run_files import ROW_STAGES, RunFiles, open_finished
from truegold.pipeline.report.shown_text import cut, visible
from truegold.pipeline.rows import Row
from truegold.verifiers import InputError

ROWS_TOLD = 5
SAMPLES_TOLD = 3
CANDIDATES_NAMED = 10
TEXT_CHARS = 1_500
"""What the lines show of one text."""

_ID_PREFIX = re.compile(r"[0-9a-f]{6,20}")
_PLACE = re.compile(r"(.+):(\d{1,18})", re.DOTALL)


@dataclass(frozen=True)
class Event:
    """One ledger record, under the stage whose folder it lies in."""

    stage: str
    action: str
    reason: str
    evidence: Mapping[str, Any]
    before: str | None
    after: str | None


@dataclass(frozen=True)
class RowStory:
    """One row: as it came in, what was done to it and said of it, how the model fared on it, and where it ended."""

    row: Row
    events: tuple[Event, ...]
    flags: tuple[Row, ...]
    profiles: Mapping[str, Row]
    """By stage: profile, profile_after."""
    samples: tuple[Row, ...]
    ended: str


@dataclass(frozen=True)
class Story:
    """What `asked` names: rows of one content, or a rejected record."""

    asked: str
    run_dir: Path
    rows: tuple[RowStory, ...]
    more_rows: int
    reject: Mapping[str, Any] | None


def explain(run_dir: Path, row_id: str) -> Story:
    """Raises InputError, with one line that helps, where nothing or more than one thing goes by that name."""
    files = open_finished(run_dir)
    asked = row_id.strip()
    place = _PLACE.fullmatch(asked)
    if place is not None:
        source, number = place[1], int(place[2])
        reject = _find_reject(files, source, number)
        if reject is not None:
            return Story(asked, run_dir, (), 0, reject)
        found = _find(files, (pl.col("source") == source) & (pl.col("source_row") == number))
    elif _ID_PREFIX.fullmatch(asked.lower()):
        found = _find(files, pl.col("id").str.starts_with(asked.lower()))
    else:
        raise InputError(
            f"{visible(asked)!r} names no row.",
            "Give six or more hex digits of a row's id, or its source and row: FILE:17.",
        )
    ids = found["id"].unique(maintain_order=True).to_list()
    if not ids:
        raise InputError(f"No row of {run_dir} is {visible(asked)!r}.", _what_there_is(files))
    if len(ids) > 1:
        named = ", ".join(ids[:CANDIDATES_NAMED]) + (", ..." if len(ids) > CANDIDATES_NAMED else "")
        raise InputError(f"{len(ids)} ids begin with {asked}: {named}.", "Give more digits.")
    rows = tuple(_story(files, row) for row in found.head(ROWS_TOLD).iter_rows(named=True))
    return Story(asked, run_dir, rows, max(0, found.height - ROWS_TOLD), None)


def _ingested(files: RunFiles) -> pl.LazyFrame:
    rows = files.table("ingest", "rows.parquet")
    assert rows is not None  # open_finished made sure
    return rows


def _find(files: RunFiles, wanted: pl.Expr) -> pl.DataFrame:
    """The rows as they came in, in their order."""
    return _ingested(files).filter(wanted).collect()


def _find_reject(files: RunFiles, source: str, number: int) -> Mapping[str, Any] | None:
    path = files.path("ingest", "rejects.jsonl")
    if path is None:
        return None
    mark = f'"source_row":{number}'.encode()
    with path.open("rb") as lines:
        for line in lines:
            if mark in line:
                reject: dict[str, Any] = orjson.loads(line)
                if reject["source"] == source and reject["source_row"] == number:
                    return reject
    return None


def _what_there_is(files: RunFiles) -> str:
    per_source = _ingested(files).group_by("source").agg(pl.col("source_row").max()).sort("source").collect()
    known = [f"{source}:1 to {source}:{last}" for source, last in per_source.head(CANDIDATES_NAMED).iter_rows()]
    return f"Its records are {', '.join(known)}."


def _story(files: RunFiles, row: Row) -> RowStory:
    own = (
        (pl.col("id") == row["id"]) & (pl.col("source") == row["source"]) & (pl.col("source_row") == row["source_row"])
    )
    events = tuple(_events(files, own))
    flags = files.flags(after_training=True)
    profiles = {}
    for stage, table in files.tables("profile.parquet"):
        for found in table.filter(own).collect().to_dicts():
            profiles[stage] = found
    samples = files.table("profile", "samples.parquet")
    few = [] if samples is None else _samples(samples, own)
    found_flags = [] if flags is None else flags.filter(own).collect().to_dicts()
    return RowStory(row, events, tuple(found_flags), profiles, tuple(few), _ended(files, own, events))


def _samples(samples: pl.LazyFrame, own: pl.Expr) -> list[Row]:
    columns = ["sample", "completion", "finish_reason", "score", "reason", "extracted"]
    return samples.filter(own & (pl.col("sample") < SAMPLES_TOLD)).select(columns).sort("sample").collect().to_dicts()


def _events(files: RunFiles, own: pl.Expr) -> Iterator[Event]:
    for stage, ledger in files.tables(LEDGER_FILE):
        for record in ledger.filter(own).collect().iter_rows(named=True):
            evidence = orjson.loads(record["evidence"] or "{}")
            yield Event(stage, record["action"], record["reason"], evidence, record["before"], record["after"])


def _ended(files: RunFiles, own: pl.Expr, events: tuple[Event, ...]) -> str:
    for event in events:
        if event.action == "drop":
            kept = f"; kept in {event.stage}/{DROPPED_FILE}"
            return f"dropped by {event.stage}: {event.reason}{kept}"
    for name, words in (("selected", "selected for training"), ("heldout", "held out for evaluation")):
        table = files.table("select", f"{name}.parquet")
        if table is not None and table.filter(own).select(pl.len()).collect().item():
            return words
    reached = [stage for stage in ("ingest", *ROW_STAGES) if stage in files]
    return f"still in the data after {reached[-1]}"


def explain_lines(story: Story) -> list[str]:
    """The story as lines of plain text, safe to print: no control character of the data reaches the terminal."""
    lines: list[str] = []
    if story.reject is not None:
        reject = story.reject
        lines.append(f"{visible(reject['source'])}:{reject['source_row']} never became a row.")
        lines += _field("rejected", f"{reject['reason']}: {reject['detail']}") + _field("excerpt", reject["excerpt"])
    for number, told in enumerate(story.rows):
        lines += ([""] if number else []) + _row_lines(told)
    if story.more_rows:
        lines += ["", f"{story.more_rows} more rows have the same content and id."]
    return lines


def _row_lines(told: RowStory) -> list[str]:
    row = told.row
    lines = [f"{row['id']}  {visible(row['source'])}:{row['source_row']}  ({visible(row['split'])})"]
    lines += _field("ended", told.ended) + _field("prompt", row["prompt"]) + _field("gold", row["gold"])
    lines += _field("solution", row["solution"]) if row["solution"] is not None else []
    lines += _field("verifier", row["verifier"])
    lines += _field("meta", row["meta"]) if row["meta"] != "{}" else []
    if told.events:
        lines += ["", "  What was done to it"]
    for event in told.events:
        lines.append(f"    {event.stage}: {event.action} {visible(event.reason)}{_evidence(event.evidence)}")
        if event.action == "edit":
            lines += _field("before", event.before, 6) + _field("after", event.after, 6)
    if told.flags:
        lines += ["", "  Flags"]
    for flag in told.flags:
        held = "holds it back" if flag["blocks"] else "advice only"
        lines.append(f"    {visible(flag['reason'])} ({visible(flag['detector'])}, {flag['confidence']:.0%}, {held})")
        lines += _field("suggests", flag["suggestion"], 6) if flag["suggestion"] is not None else []
        lines += _field("evidence", flag["evidence"], 6)
    return lines + _profile_lines(told)


def _profile_lines(told: RowStory) -> list[str]:
    lines = ["", "  Pass rate"] if told.profiles else []
    for stage, found in told.profiles.items():
        rate = "nothing judged" if found["pass_rate"] is None else f"{found['pass_rate']:.3f}"
        interval = f"95 % interval {found['low']:.3f} to {found['high']:.3f}"
        lines.append(f"    {stage}: {rate}, {found['passes']} of {found['judged']} judged of {found['n']}, {interval}")
        if found["majority_answer"] is not None:
            lines += _field(
                "majority", f"{found['majority_answer']}  ({found['majority_agreement']:.0%} of samples)", 6
            )
    if told.samples:
        lines += ["", "  Samples of the profile"]
    for sample in told.samples:
        score = "no score" if sample["score"] is None else f"score {sample['score']:g}"
        lines.append(
            f"    {sample['sample']}: {visible(sample['reason'])}, {score}, finished by {sample['finish_reason']}"
        )
        lines += _field("said", sample["completion"], 6) + _field("answer", sample["extracted"], 6)
    return lines


def _evidence(evidence: Mapping[str, Any]) -> str:
    return f"  {cut(visible(orjson.dumps(evidence).decode()), TEXT_CHARS)}" if evidence else ""


def _field(name: str, value: str | None, indent: int = 2) -> list[str]:
    """A name and a text, the text's further lines under its first."""
    first, *rest = ("(none)" if value is None else cut(visible(value), TEXT_CHARS)).split("\n")
    margin = " " * indent
    return [f"{margin}{name:<9} {first}", *(f"{margin}{'':<9} {line}" for line in rest)]
