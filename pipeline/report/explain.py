"""Explains one row of a run: its source, edits, flags, samples and outcome, as `truegold explain` shows them.

    explain(Path("runs/demo"), "9f0c21")          the first six or more digits of the row's id
    explain(Path("runs/demo"), "raw.jsonl:17")    source and row number; this also finds rejected records

Rows with the same content have the same id. The first ROWS_EXPLAINED of them are explained. Tables are scanned with
filters, so that the texts of other rows are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.report.row_cards import SUSPICION_STAGES, describe_confidence, describe_log_odds, judged_by
from truegold.pipeline.report.row_tests import CASES_SHOWN
from truegold.pipeline.running.stage_table import DROPPING_STAGES
from truegold.pipeline.sources.records import REJECTS_FILE, REMEDIES
from truegold.pipeline.tables.ledger import DROPPED_FILE, LEDGER_FILE, RESTORED
from truegold.pipeline.tables.reasons import SUSPICION_FILE
from truegold.pipeline.tables.rows import FILE, NOTES, row_place
from truegold.pipeline.tables.run_files import Fields, RunFiles, open_finished
from truegold.pipeline.text.shown_text import cut, visible
from truegold.pipeline.text.templates import templates_in
from truegold.verifiers import InputError

ROWS_EXPLAINED = 5
SAMPLES_SHOWN = 3
CANDIDATES_NAMED = 10
TEXT_CHARS = 1_500
"""The maximum number of characters that are shown of a text."""

_ID_PREFIX = re.compile(r"[0-9a-f]{6,20}")
"""The first digits of an id: `9f0c21`."""
_SOURCE_AND_ROW = re.compile(r"(.+):(\d{1,18})", re.DOTALL)
"""A source and a row number: `raw.jsonl:17`."""


@dataclass(frozen=True)
class Event:
    """A ledger record, with the stage that wrote it."""

    stage: str
    action: str
    reason: str
    evidence: Mapping[str, Any]
    before: str | None
    after: str | None


@dataclass(frozen=True)
class RowStory:
    """The history of one row: its ingested content, the events, flags, pass rates and samples, and its outcome."""

    row: Fields
    events: tuple[Event, ...]
    flags: tuple[Fields, ...]
    profiles: Mapping[str, Fields]
    """The entries of the row in `profile.parquet`, by stage: `profile`, `profile_after`."""
    samples: tuple[Fields, ...]
    attempts: tuple[Fields, ...]
    """The attempts of synthesis, in order."""
    ended: str
    """The outcome, such as `selected for training`."""
    suspicion: float | None = None
    """The probability that the row is faulty."""
    log_odds: Mapping[str, float] = field(default_factory=dict)
    """The log odds of a fault from each source of evidence."""


@dataclass(frozen=True)
class Story:
    """The histories of the rows with one id, or a rejected record."""

    rows: tuple[RowStory, ...]
    more_rows: int
    """The number of further rows with the same id."""
    reject: Mapping[str, Any] | None


def explain(run_dir: Path, row_id: str) -> Story:
    """Return the history of the rows that `find_rows` finds, or the rejected record that it finds.

    Raises InputError with advice if the name matches no row, or rows of several ids.
    """
    files = open_finished(run_dir)
    try:
        rows = find_rows(files, row_id.strip())
    except RejectedError as error:
        return Story((), 0, error.reject)
    stories = tuple(_explain_row(files, row) for row in rows.head(ROWS_EXPLAINED).iter_rows(named=True))
    return Story(stories, max(0, rows.height - ROWS_EXPLAINED), None)


class RejectedError(InputError):
    """The name belongs to a rejected record."""

    def __init__(self, name: str, reject: Mapping[str, Any]) -> None:
        why = f"{reject['reason']}: {reject['detail']}"
        super().__init__(
            f"{visible(name)} was rejected, so it is not a row: {visible(why)}.",
            REMEDIES.get(reject["reason"], "Correct the record in the data, and curate again."),
        )
        self.reject = reject


def find_rows(files: RunFiles, name: str) -> pl.DataFrame:
    """Return the ingested rows that match a name: the first digits of an id, the source's own id, or FILE:17.

    Raises InputError with advice if the name matches no row, or rows of several ids, and RejectedError if it matches a
    rejected record.
    """
    name = _without_folders(files, name)
    source_and_row, is_prefix = _SOURCE_AND_ROW.fullmatch(name), _ID_PREFIX.fullmatch(name.lower()) is not None
    is_named = pl.lit(False)
    if source_and_row is not None:
        is_named = (pl.col("source") == source_and_row[1]) & (pl.col("source_row") == int(source_and_row[2]))
    elif is_prefix:
        is_named = pl.col("id").str.starts_with(name.lower())
    # The column `meta` has the file and the source's id (`data.columns.id`). Only rows that have the name in it are
    # parsed.
    mentions = pl.col("meta").str.contains(orjson.dumps(name).decode(), literal=True)
    paths = ("$.source_id", f"$.{NOTES}.{FILE}")
    has_source_id = mentions & pl.any_horizontal(pl.col("meta").str.json_path_match(path) == name for path in paths)
    rows = _ingested(files).filter(mentions | is_named).collect().filter(has_source_id | is_named)
    ids = rows["id"].unique(maintain_order=True).to_list()
    if not ids and (reject := _find_reject(files, name)) is not None:
        raise RejectedError(name, reject)
    if not ids and source_and_row is None and not is_prefix:
        raise InputError(
            f"{visible(name)!r} matches no row.",
            "Give six or more hex digits of a row's id, its source and row (FILE:17), or the source's own id.",
        )
    if not ids:
        raise _unknown_row(files, name)
    if len(ids) > 1:
        candidates = ", ".join(ids[:CANDIDATES_NAMED]) + (", ..." if len(ids) > CANDIDATES_NAMED else "")
        how = "begin with" if rows["id"].str.starts_with(name.lower()).all() else "match"
        raise InputError(f"{len(ids)} ids {how} {visible(name)}: {candidates}.", "Give more digits of one of them.")
    return rows


def _ingested(files: RunFiles) -> pl.LazyFrame:
    rows = files.table("ingest", "rows.parquet")
    assert rows is not None  # `open_finished` raises if a run has no rows.
    return rows


def _find_reject(files: RunFiles, name: str) -> Mapping[str, Any] | None:
    """Return the rejected record with this name: source and row, file and row, or the source's own id."""
    if (path := files.path("ingest", REJECTS_FILE)) is None:
        return None
    _, _, row = name.rpartition(":")
    marks = f'"source_row":{row},'.encode(), orjson.dumps(f" ({name})")[1:], orjson.dumps(name)
    with path.open("rb") as lines:
        for line in lines:
            if any(mark in line for mark in marks):
                reject: dict[str, Any] = orjson.loads(line)
                names = (f"{reject['source']}:{reject['source_row']}", reject.get("source_id"))
                if name in names or reject["detail"].endswith(f" ({name})"):
                    return reject
    return None


def _without_folders(files: RunFiles, name: str) -> str:
    """Return the name of a row in the run for a path: `data/train.jsonl:17` gives `train.jsonl:17`."""
    source_and_row = _SOURCE_AND_ROW.fullmatch(name)
    config = files.folders["ingest"].parent / "config.resolved.json"
    if source_and_row is None or "/" not in name or not config.is_file():
        return name
    data, path = orjson.loads(config.read_bytes())["data"], Path(source_and_row[1]).absolute()
    for source in data if isinstance(data, list) else [data]:
        for location in map(Path.absolute, map(Path, filter(None, (source.get("path"), source.get("heldout_path"))))):
            if path == location:
                return f"{source.get('source') or location.name}:{source_and_row[2]}"
            if path.is_relative_to(location):
                return f"{path.relative_to(location)}:{source_and_row[2]}"
            if fnmatch(str(path), str(location)):
                return f"{path.name}:{source_and_row[2]}"
    return name


class NoSuchRowError(InputError):
    """No row of a run has this name. An example is `raw.jsonl:999` in a run with fewer rows of `raw.jsonl`."""


def _unknown_row(files: RunFiles, name: str) -> InputError:
    """Return the error for a name that no row has. It lists names of rows of the same source, or of all rows."""
    problem = f"No row of {files.folders['ingest'].parent} is {visible(name)!r}."
    file = pl.col("meta").str.json_path_match(f"$.{NOTES}.{FILE}")
    rows = _ingested(files).select("source", "source_row", file=file)
    named, _, asked_row = name.rpartition(":")
    in_file = pl.col("file").str.strip_prefix(f"{named}:").str.to_integer(strict=False)
    of_file = rows.filter(pl.col("file").str.starts_with(f"{named}:")).select(in_file)
    for numbers in (rows.filter(pl.col("source") == named).select("source_row"), of_file) if named else ():
        known = numbers.collect().to_series().drop_nulls().sort()
        if len(known):
            hint = f"It has {len(known):,} rows of {named}, {named}:{known[0]} to {named}:{known[-1]}.{_header(named)}"
            before = known.filter(known < int(asked_row))
            if 0 < len(before) < len(known):
                hint += f" The last one before is {named}:{before[-1]}. A row has the number of its first line."
            return NoSuchRowError(problem, visible(hint))
    row_number = pl.col("source_row")
    per_source = rows.group_by("source").agg(row_number.min(), row_number.max().alias("last"), pl.first("file"))
    spread = list(per_source.sort("source").head(CANDIDATES_NAMED).collect().iter_rows())
    spans = ", ".join(f"{source}:{first} to {source}:{last}" for source, first, last, _ in spread)
    files_too = next((f", also named by their files, such as {file}" for *_, file in spread if file), "")
    return InputError(problem, visible(f"Its records are {spans}{files_too}.{_header(spans)}"))


def _header(names: str) -> str:
    return " Line 1 of CSV names the columns." if ".csv" in names else ""


def _explain_row(files: RunFiles, row: Fields) -> RowStory:
    is_row = (
        (pl.col("id") == row["id"]) & (pl.col("source") == row["source"]) & (pl.col("source_row") == row["source_row"])
    )
    events = tuple(_events(files, is_row))
    profiles = {stage: summary for stage, table in files.tables("profile.parquet") for summary in _read(table, is_row)}
    columns = ["sample", "completion", "finish_reason", "score", "reason", "extracted"]
    samples = _read(files.table("profile", "samples.parquet"), is_row & (pl.col("sample") < SAMPLES_SHOWN), columns)
    attempts = _read(files.table("synth", "attempts.parquet"), is_row)
    known: tuple[Fields, ...] = ()
    for _, table in files.tables(SUSPICION_FILE, SUSPICION_STAGES):
        # The last stage counts, because the suspicion after training is based on more samples.
        known = _read(table.drop_nulls("suspicion").with_columns(id="row_id"), is_row) or known
    return RowStory(
        row,
        events,
        flags=_read(files.flags(after_training=True), is_row),
        profiles=profiles,
        samples=tuple(sorted(samples, key=lambda sample: sample["sample"])),
        attempts=tuple(sorted(attempts, key=lambda attempt: attempt["attempt"])),
        ended=_ended(files, is_row, events),
        suspicion=known[-1]["suspicion"] if known else None,
        log_odds=orjson.loads(known[-1]["evidence"]).get("log_odds", {}) if known else {},
    )


def _read(table: pl.LazyFrame | None, is_row: pl.Expr, columns: Sequence[str] = ("*",)) -> tuple[Fields, ...]:
    """Return the row's entries in a table; empty if the run has no such table."""
    return () if table is None else tuple(table.filter(is_row).select(columns).collect().to_dicts())


def _events(files: RunFiles, is_row: pl.Expr) -> Iterator[Event]:
    for stage, ledger in files.tables(LEDGER_FILE):
        for record in _read(ledger, is_row, ["action", "reason", "evidence", "before", "after"]):
            yield Event(stage, **record | {"evidence": orjson.loads(record["evidence"] or "{}")})


def _ended(files: RunFiles, is_row: pl.Expr, events: tuple[Event, ...]) -> str:
    is_back = any(event.reason == RESTORED for event in events)
    for event in events:
        if event.action == "drop" and not (is_back and event.stage in DROPPING_STAGES):
            kept = f"; kept in {event.stage}/{DROPPED_FILE}"
            if any(later.stage == "synth" for later in events):
                kept = "; back in training by a distilled positive"
            return f"dropped by {event.stage}: {event.reason}{kept}"
    for name, words in (("selected", "selected for training"), ("heldout", "held out for evaluation")):
        if _read(files.table("select", f"{name}.parquet"), is_row, ["id"]):
            return words
    return f"still in the data after {files.last_row_stage}"


def explain_lines(story: Story) -> list[str]:
    """Return the history as lines of plain text, without control characters from the data."""
    text = templates_in(Path(__file__).parent / "page").get_template("explain.txt.jinja")
    words = {"describe_confidence": describe_confidence, "describe_log_odds": describe_log_odds, "row_place": row_place}
    lines = text.render(story=story, field=_field, as_json=_as_json, judged_by=_judged_by, **words)
    return lines.removesuffix("\n").split("\n")


def _judged_by(row: Fields) -> Iterator[tuple[str, str]]:
    """Yield the tests of a row, or the settings of its verifier, as pairs of name and text."""
    judged = judged_by(row, TEXT_CHARS)
    tests = judged.get("tests", {})
    cases = tests.get("cases", [])
    for index, case in enumerate(cases[:CASES_SHOWN]):
        yield f"case {index}", " -> ".join(case)
    if more := tests.get("more", 0) + len(cases[CASES_SHOWN:]):
        yield "", f"{more:,} more"
    if "code" in tests:
        yield "tests", tests["code"]
    yield from judged.get("settings", tests.get("settings", ()))


def _as_json(value: object) -> str:
    return cut(visible(orjson.dumps(value).decode()), TEXT_CHARS)


def _field(name: str, value: str | None, indent: int = 2) -> str:
    """Return a name and a text, with all lines of the text aligned."""
    text = "(none)" if value is None else cut(visible(value), TEXT_CHARS)
    return f"{' ' * indent}{name:<9} " + text.replace("\n", "\n" + " " * (indent + 10))
