"""Curates data from Python, without a configuration file: the functions of `truegold.pipeline`.

    deduplicate(frame).rows                 the frame without copies and rewordings
    find_flags(frame).flags                 the flags of suspicious rows, with their evidence
    find_leaks(frame, ["math500.jsonl"])    the rows that are in evaluation sets
    curate(frame).report("report.html")     all of curation, and a page that explains every dropped or changed row

Rows may be frames of polars (also lazy frames) or pandas, a `datasets.Dataset`, a sequence of dicts, or the path of a
file in JSON Lines, Parquet or CSV. Columns are guessed by their names, or named by arguments of every function:
`prompt="Body", gold="label"`. Results are polars frames with a column `row`, the number of the row from 1. Functions
work in a temporary folder, which is deleted with the result. With `work_dir`, they work in that folder, where unchanged
stages are cached. No function writes to any other folder.

The rows are written to a file for the stages, and kept rows are returned in the form of the input. The rows of a path
are returned as a list of dicts.

    write_rows_file([{"question": "1+1?", "answer": "2"}], folder)   ->  folder/rows.jsonl
    write_rows_file(polars_frame, folder)                            ->  folder/rows.parquet
    write_rows_file("train.csv", folder)                             ->  train.csv, which is not copied
    keep_rows(polars_frame, [1, 3])                                  ->  a polars frame of its first and third row

Errors name the caller's arguments in place of temporary files:

    curate(rows, flags={})                ->  curate has no argument 'flags'. Did you mean 'flag'? There are: clean, ...
    curate(rows, columns={"question": 1}) ->  columns: there is no role 'question'. There are: prompt, gold, ...
    curate(rows, dedup={"reword": False}) ->  curate: dedup.reword: unknown setting; did you mean reworded?
    deduplicate([{"titel": "x"}])         ->  rows has no prompt column ...
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow.parquet as pq
from pydantic import ValidationError

from truegold.pipeline.config.mistakes import describe_mistakes
from truegold.pipeline.config.sources import Columns
from truegold.pipeline.config.stages import CurationConfig, FlagConfig, ReportConfig
from truegold.pipeline.curation.plan import curation_stages, flagging_stages, last_flagging
from truegold.pipeline.decontaminate.matches import find_leaks_in_file
from truegold.pipeline.dedup.clusters import find_clusters
from truegold.pipeline.problems import BATCH_ROWS, ProblemColumns
from truegold.pipeline.report import report
from truegold.pipeline.running.disk import DigestCache, check_page_name, disk_errors_reported
from truegold.pipeline.running.progress import NullProgress, Progress
from truegold.pipeline.running.stage import RECORD, Output, Stage, StageResult, plan_stage, run_stage
from truegold.pipeline.sources.data_files import MAX_ROW_BYTES, check_file, open_file
from truegold.pipeline.sources.records import LOOK_AHEAD, Record, first_line, sample_values
from truegold.pipeline.suspicion.stage import SampleFile
from truegold.pipeline.tables.ledger import DROPPED_FILE, FLAGS_FILE, LEDGER_FILE
from truegold.pipeline.tables.losses import LossBounds, loss_lines
from truegold.pipeline.tables.reasons import SUSPICION_FILE
from truegold.pipeline.text.shown_text import visible
from truegold.verifiers import ConfigError, InputError, TruegoldError
from truegold.verifiers.checked import checked
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import find_column, json_safe
from truegold.verifiers.user_code import did_you_mean

Rows = Any
"""A frame of polars or pandas, a `datasets.Dataset`, a sequence of dicts, or the path of a file."""

REASONS_SHOWN = 4
"""The number of reasons that are shown for each step, the most frequent first."""

FORMS = "a polars or pandas frame, a datasets.Dataset, a list of dicts, or the path of a file"


def hold_rows(rows: Rows, label: str = "rows") -> Rows:
    """Return rows that can be read repeatedly: an iterator becomes a list.

    Raises InputError if `rows` cannot be read as rows. label: the name of the argument in this error.
    """
    if isinstance(rows, str | Path | pl.DataFrame | pl.LazyFrame) or _package(rows) == "pandas":
        return rows
    if isinstance(rows, Mapping | bytes) or not isinstance(rows, Iterable):
        hint = "Take one of its splits, such as rows['train']." if _package(rows) == "datasets" else None
        raise InputError(f"{label} must be {FORMS}; this is {_describe(rows)}.", hint)
    if isinstance(rows, Sequence) or (_package(rows) == "datasets" and hasattr(rows, "__len__")):
        return rows
    return list(rows)


def write_rows_file(rows: Rows, folder: Path, label: str = "rows") -> Path:
    """Write rows to a file in `folder`, and return its path. Rows that are a file are not copied.

    `rows` must be from `hold_rows`. Raises InputError if there are no rows, or a file cannot be read.
    label: the name of the argument in errors.
    """
    name = re.sub(r"\W+", "-", label)
    if isinstance(rows, str | Path):
        if not str(rows).strip():
            raise InputError(f"{label} is an empty text.", "Name a file.")
        path = Path(rows).expanduser()
        check_file(path)
        return path
    if isinstance(rows, pl.LazyFrame):
        rows = rows.collect()
    if isinstance(rows, pl.DataFrame):
        return _write_parquet(rows, folder / f"{name}.parquet", label)
    package = _package(rows)
    if package == "datasets":
        return _write_arrow(rows, folder / f"{name}.parquet", label)
    if package == "pandas":
        rows = rows.to_dict("records")
    return _write_json_lines(rows, folder / f"{name}.jsonl", label)


def keep_rows(rows: Rows, row_numbers: Sequence[int]) -> Rows:
    """Return the rows with these numbers (from 1, rising), in the form of `rows`."""
    indices = [row_number - 1 for row_number in row_numbers]
    if isinstance(rows, str | Path):
        kept_numbers = set(row_numbers)
        records = open_file(Path(rows).expanduser(), "auto", MAX_ROW_BYTES).records
        return [
            dict(record.values)
            for record in records
            if isinstance(record, Record) and record.row_number in kept_numbers
        ]
    if isinstance(rows, pl.LazyFrame):
        return rows.collect()[indices]
    if isinstance(rows, pl.DataFrame):
        return rows[indices]
    if _package(rows) == "pandas":
        return rows.iloc[indices]
    if _package(rows) == "datasets":
        return rows.select(indices)
    return [rows[index] for index in indices]


def _write_parquet(frame: pl.DataFrame, path: Path, label: str) -> Path:
    if frame.is_empty():
        raise InputError(f"{label} has no rows.")
    try:
        frame.write_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{label} cannot be written: {first_line(error)}.", "Leave that column out.") from None
    return path


def _write_arrow(dataset: Any, path: Path, label: str) -> Path:
    """Write a `datasets.Dataset`, with its selection of rows, without the progress bar of its `to_parquet`."""
    if len(dataset) == 0:
        raise InputError(f"{label} has no rows.")
    batches = dataset.with_format("arrow").iter(BATCH_ROWS)
    first = next(batches)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for batch in batches:
            writer.write_table(batch)
    return path


def _write_json_lines(rows: Iterable[Any], path: Path, label: str) -> Path:
    count = 0
    with path.open("wb") as file:
        for count, row in enumerate(rows, 1):
            if not isinstance(row, Mapping):
                raise InputError(f"Row {count} of {label} is {_describe(row)}, not a dict.", f"Rows are {FORMS}.")
            try:
                file.write(orjson.dumps(json_safe(row), option=orjson.OPT_APPEND_NEWLINE))
            except Unusable:
                # A lone surrogate is written as an escape. So the reader rejects only this row.
                file.write(json.dumps(row, default=str, skipkeys=True).encode() + b"\n")
    if not count:
        raise InputError(f"{label} has no rows.")
    return path


def _package(rows: Rows) -> str:
    return type(rows).__module__.partition(".")[0]


def _describe(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {''.join(islice(text, 40))}"


FILE_PREFIX = "data.file."
"""The prefix of the data's settings in a configuration. Errors leave it out, because the settings are arguments
here."""


def make_config(function: str, path: Path, source: Mapping[str, Any], sections: Mapping[str, Any]) -> CurationConfig:
    """Return the configuration of curation for a file. Raises ConfigError with all its mistakes.

    `function` is the name of the called function. `source` has the settings of the file (`columns`, `verifier`, ...).
    """
    data = {"path": str(path), **source}
    try:
        return CurationConfig.model_validate({**sections, "data": data})
    except ValidationError as error:
        mistakes = [line.removeprefix(FILE_PREFIX) for line in describe_mistakes(error, CurationConfig)]
        raise ConfigError(f"{function}: {'; '.join(mistakes)}.") from error


def check_names(names: Iterable[str], known: Iterable[str], statement: str) -> None:
    """Raise ConfigError for an unknown name. `statement` begins the message: `curate has no argument`."""
    known = list(known)
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise ConfigError(f"{statement} {name!r}.", f"{near + ' ' if near else ''}There are: {', '.join(known)}.")


def merge_columns(columns: Mapping[str, Any] | None, **names: str | None) -> dict[str, Any]:
    """Return a mapping of roles to columns, from `columns` and from keyword arguments.

    Raises ConfigError for a role that does not exist, and for a role with two columns.
    """
    merged = dict(columns or {})
    check_names(merged, Columns.model_fields, "columns: there is no role")
    for role, name in names.items():
        if name is None:
            continue
        if role in merged:
            raise ConfigError(f"The column of {role} is named twice: by {role}= and in columns.", "Leave one out.")
        merged[role] = name
    return merged


def add_guessed_columns(path: Path, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named columns. Columns for the gold of a prompt and for the worked solution are added if they can be
    guessed."""
    if "prompt" not in columns:
        return dict(columns)
    source = open_file(path, "auto", MAX_ROW_BYTES)
    samples = sample_values(islice(source.records, LOOK_AHEAD))
    guessed: dict[str, Any] = {}
    if not columns.keys() & {"gold", "tests", "verifier"}:
        guessed["gold"] = ProblemColumns().resolve(samples, source.location).columns.gold
    if "solution" not in columns:
        taken = [name for name in columns.values() if isinstance(name, str)]
        guessed["solution"] = find_column("solution", samples, exclude=taken)
    return {**columns, **{role: name for role, name in guessed.items() if name is not None}}


@contextmanager
def named_in_errors(files: Mapping[Path, str]) -> Iterator[None]:
    """Within this context, errors name `against[0]` instead of the path of a temporary file. `files` maps paths to
    names."""
    try:
        yield
    except TruegoldError as error:
        for path, name in files.items():
            error.message = error.message.replace(str(path), name)
            error.hint = error.hint and error.hint.replace(str(path), name)
        error.args = (error.message,)
        raise


@dataclass(frozen=True)
class Deduplicated:
    """The result of `deduplicate`."""

    rows: Rows
    """The kept rows, in their order and in the form of the input."""
    ledger: pl.DataFrame
    """One line for each dropped row: `row, id, reason, kept_row, kept_id, evidence` (JSON)."""
    flags: pl.DataFrame
    """The rows of a problem with different golds (`conflicting_labels`)."""
    clusters: pl.DataFrame
    """One line for each row. The columns are described in `truegold.pipeline.dedup.clusters`."""


@dataclass(frozen=True)
class Flags:
    """The result of `find_flags`."""

    flags: pl.DataFrame
    """The findings of the rules: `row, id, reason, detector, confidence, blocks, evidence` (JSON) and `suggestion`."""
    rejects: pl.DataFrame
    """Every rejected record: `row, reason, detail, excerpt`."""
    suspicion: pl.DataFrame
    """The probability that each row is at fault: `row, id, suspicion, ill_posed, label_wrong, tier, evidence` (JSON)
    and `suggestion`; null without evidence."""


@dataclass(frozen=True)
class Leaks:
    """The result of `find_leaks`."""

    rows: Rows
    """The rows that are not in an evaluation set, in their order and in the form of the input."""
    matches: pl.DataFrame
    """One line for each pair of a row and an evaluation item: `row, id, against, against_id, kind, score, evidence`."""


@dataclass(frozen=True, repr=False)
class Curated:
    """The result of `curate`, printed as a table of its steps. The stages' folders last as long as this object."""

    rows: pl.DataFrame
    """The curated rows, as canonical rows (`truegold.pipeline.tables.rows`)."""
    ledger: pl.DataFrame
    """Every edit, drop and flag, in the order of the stages."""
    flags: pl.DataFrame
    """All flags. `blocks` marks the flags that hold their rows back."""
    dropped: pl.DataFrame
    """Every dropped row, with its `drop_reason`."""
    rejects: pl.DataFrame
    """Every rejected record: `row, reason, detail, excerpt`."""
    finished: tuple[StageResult, ...]
    """The finished stages in their order."""

    def __repr__(self) -> str:
        """Return a few lines of text about the steps, and the numbers of rows in `.rows`, `.dropped` and `.rejects`."""
        steps = self._steps()
        widths = [max(map(len, column)) for column in zip(*steps, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(step, widths, strict=True)) for step in steps]
        return "\n".join([f"Curated: {self._summary()}", *(f"  {line}".rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        lines = ["".join(f"<td>{escape(cell)}</td>" for cell in step) for step in self._steps()]
        table = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<p><b>Curated</b>: {escape(self._summary())}</p><table>{table}</table>"

    def _summary(self) -> str:
        rows, dropped, rejects = (f"{table.height:,}" for table in (self.rows, self.dropped, self.rejects))
        folder = visible(str(self.finished[0].path.parent))
        return f"{rows} rows in .rows, {dropped} in .dropped, {rejects} in .rejects; .report(PATH) explains; {folder}"

    def _steps(self) -> list[tuple[str, ...]]:
        """Return the header of the table of steps, and a line for each step."""
        steps: list[tuple[str, ...]] = [("step", "rows in", "rows out", "most of all")]
        for result in self.finished:
            commonest = Counter(result.report.counts).most_common(REASONS_SHOWN)
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in commonest)
            shown = " ".join(visible(reasons).split())
            steps.append((result.name, f"{result.report.rows_in:,}", f"{result.report.rows_out:,}", shown))
        return steps

    @checked
    def report(self, path: str | Path, name: str = "curation") -> Path:
        """Write a self-contained page that accounts for every row, and return its path."""
        target = Path(path).expanduser()
        check_page_name(target, "report:")
        run_dir = self.finished[0].path.parent
        names = tuple(result.name for result in self.finished)
        records: dict[str, Path | Output] = {stage: Output(stage, RECORD) for stage in names}
        stage = plan_stage("report", report, ReportConfig(name=name, stages=names), records)
        (page,) = run_stages([stage], run_dir)
        with disk_errors_reported(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page.path / "index.html", target)
        return target


@checked
def deduplicate(
    rows: Rows,
    *,
    prompt: str | None = None,
    gold: str | None = None,
    id: str | None = None,
    template_cap: int | None = None,
) -> Deduplicated:
    """Drop exact copies and rewordings of the same problem; the best row of each problem and gold stays.

    `prompt`, `gold` and `id` name columns, which are guessed by default; gold is optional. `template_cap` is the
    maximum number of problems to keep that differ only in their quantities. Raises InputError if there are no rows or
    no prompt column.
    """
    if template_cap is not None and template_cap < 1:
        raise ConfigError(f"template_cap is {template_cap!r}.", "It is a whole number from 1, or None.")
    rows = hold_rows(rows)
    with tempfile.TemporaryDirectory(prefix="truegold-") as folder:
        path = write_rows_file(rows, Path(folder))
        with named_in_errors(_labels(rows, path, "rows")):
            find_clusters(path, Path(folder), ProblemColumns(prompt, gold, id), template_cap, NullProgress())
        clusters = pl.read_parquet(Path(folder) / "clusters.parquet")
        flags = pl.read_parquet(Path(folder) / FLAGS_FILE)
    dropped = clusters.filter(~pl.col("keep"))
    ledger = dropped.select(
        "row", "id", pl.col("relation").alias("reason"), pl.col("cluster").alias("kept_row"), "kept_id", "evidence"
    )
    kept = clusters.filter("keep")["row"].to_list()
    return Deduplicated(keep_rows(rows, kept), ledger, _by_row(flags), clusters)


@checked
def find_flags(
    rows: Rows,
    samples: Rows | None = None,
    *,
    prompt: str | None = None,
    gold: str | None = None,
    id: str | None = None,
    columns: Mapping[str, Any] | None = None,
    verifier: str | None = None,
    last_turn_only: bool = False,
    **settings: Any,
) -> Flags:
    """Find suspicious rows, by rules about question, gold and solution, and by the answers of systems.

    - `samples`: rows with id, system, and answer or response. Samples of a training also have step
    - `prompt`, `gold`, `id`: names of columns, which are guessed by default
    - `columns`: names of columns by role, also for other roles: `{"solution": "rationale"}`
    - `verifier`: the verifier of every row
    - `last_turn_only`: whether to keep rows whose prompt has several messages (`curate`)
    - `settings`: settings of the section `flag`

    Raises InputError if a column is missing, and ConfigError for an argument or a role that does not exist.
    """
    check_names(settings, [*FlagConfig.model_fields, *_parameters(find_flags)], "find_flags has no argument")
    named = merge_columns(columns, prompt=prompt, gold=gold, id=id)
    rows = hold_rows(rows)
    with tempfile.TemporaryDirectory(prefix="truegold-") as folder:
        work = Path(folder)
        path = write_rows_file(rows, work)
        labels = _labels(rows, path, "rows")
        files: list[SampleFile] = []
        if samples is not None:
            samples = hold_rows(samples, "samples")
            files.append(SampleFile(write_rows_file(samples, work, "samples")))
            labels |= _labels(samples, files[0].path, "samples")
        with named_in_errors(labels):
            guessed = add_guessed_columns(path, named)
            source = {"columns": guessed, "verifier": verifier, "last_turn_only": last_turn_only}
            config = make_config("find_flags", path, source, {"flag": settings})
            run_stages(flagging_stages(config, files), work / "run")
        flags = pl.read_parquet(work / "run" / last_flagging(config) / FLAGS_FILE)
        suspicion = pl.read_parquet(work / "run" / "suspect" / SUSPICION_FILE)
        rejects = _read_rejects(work / "run" / "ingest")
    return Flags(_by_row(flags), rejects, _by_row(suspicion))


@checked
def find_leaks(
    rows: Rows,
    against: Rows | Sequence[Rows],
    *,
    prompt: str | None = None,
    gold: str | None = None,
    id: str | None = None,
) -> Leaks:
    """Find rows that are in evaluation sets: copies, parts of longer texts, and rewordings.

    `against` is one evaluation set or several: rows in any form, or a name such as `math500`, which is read from the
    hub. `prompt`, `gold` and `id` name columns of `rows`, which are guessed by default. Raises InputError if there are
    no rows, no prompt column or no such evaluation set.
    """
    rows = hold_rows(rows)
    sets = against if isinstance(against, list | tuple) and not _is_list_of_rows(against) else [against]
    if not sets:
        raise InputError(
            "against is empty: there is no evaluation set to compare with.", 'Name one: against="math500".'
        )
    with tempfile.TemporaryDirectory(prefix="truegold-") as folder:
        path = write_rows_file(rows, Path(folder))
        specs: list[str] = []
        labels = _labels(rows, path, "rows")
        for index, entry in enumerate(sets):
            label = f"against[{index}]" if len(sets) > 1 else "against"
            if isinstance(entry, str | Path) and str(entry).strip():
                specs.append(str(entry))
                continue
            file = write_rows_file(hold_rows(entry, label), Path(folder), label)
            specs.append(str(file))
            labels |= _labels(entry, file, label)
        columns = ProblemColumns(prompt, gold, id)
        out_dir = Path(folder) / "out"
        with named_in_errors(labels):
            find_leaks_in_file(path, dict.fromkeys(specs, ProblemColumns()), out_dir, columns, NullProgress())
        names = {str(file): name for file, name in labels.items()}
        matches = pl.read_parquet(out_dir / "matches.parquet").with_columns(pl.col("against").replace(names))
        records = open_file(path, "auto", MAX_ROW_BYTES).records
        leaked = set(matches["row"])
        clean = [record.row_number for record in records if record.row_number not in leaked]
    return Leaks(keep_rows(rows, clean), matches)


@checked
def curate(
    rows: Rows,
    *,
    prompt: str | None = None,
    gold: str | None = None,
    id: str | None = None,
    columns: Mapping[str, Any] | None = None,
    verifier: str | None = None,
    last_turn_only: bool = False,
    work_dir: str | Path | None = None,
    **sections: Mapping[str, Any],
) -> Curated:
    """Clean, deduplicate, verify gold, vet tests and flag, as `truegold curate` does.

    - `prompt`, `gold`, `id`: names of columns, which are guessed by default
    - `columns`: names of columns by role, also for other roles: `{"tests": "asserts"}`
    - `verifier`: the verifier of every row
    - `last_turn_only`: whether to keep only the last user message of rows with system messages, earlier turns, pictures
      or tools, which are rejected by default
    - `work_dir`: a folder for the stages, where unchanged stages are cached
    - `sections`: sections of a run's configuration: `clean={"languages": ["en"]}` or `decisions="decisions"`

    Warns if more than a fifth of the rows are rejected or held back for one reason, with the likely cause. Raises
    InputError if the rows cannot be read or have no gold, if no row is left, or if more rows are lost than
    `max_rejected` and `max_held` allow. Raises ConfigError for an argument, a role or a setting that does not exist.
    """
    if work_dir is not None and not str(work_dir).strip():
        raise ConfigError("work_dir is an empty text.", "Name a folder, or leave it out.")
    known_sections = [name for name in CurationConfig.model_fields if name != "data"]
    check_names(sections, [*known_sections, *_parameters(curate)], "curate has no argument")
    named = merge_columns(columns, prompt=prompt, gold=gold, id=id)
    rows = hold_rows(rows)
    work = Path(work_dir).expanduser() if work_dir is not None else Path(tempfile.mkdtemp(prefix="truegold-"))
    try:
        with disk_errors_reported(work):
            work.mkdir(parents=True, exist_ok=True)
        path = write_rows_file(rows, work)
        with named_in_errors(_labels(rows, path, "rows")):
            guessed = add_guessed_columns(path, named)
            source = {"columns": guessed, "verifier": verifier, "last_turn_only": last_turn_only}
            config = make_config("curate", path, source, sections)
            bounds = LossBounds(config.max_rejected, config.max_held)
            curated = _curated(run_stages(curation_stages(config), work / "run", bounds=bounds))
    except BaseException:
        if work_dir is None:
            shutil.rmtree(work)
        raise
    if work_dir is None:
        weakref.finalize(curated, shutil.rmtree, work)
    if lines := loss_lines(result.report for result in curated.finished):
        warnings.warn("\n".join(lines), stacklevel=2)
    return curated


def _curated(finished: Sequence[StageResult]) -> Curated:
    paths = {result.name: result.path for result in finished}
    return Curated(
        rows=pl.read_parquet(paths["settle"] / "rows.parquet"),
        ledger=_concatenated(finished, LEDGER_FILE),
        flags=pl.read_parquet(paths.get("well_posed", paths["flag"]) / FLAGS_FILE),
        dropped=_concatenated(finished, DROPPED_FILE),
        rejects=_read_rejects(paths["ingest"]),
        finished=tuple(finished),
    )


def _labels(rows: Rows, path: Path, name: str) -> dict[Path, str]:
    """Return the name that errors give the temporary file of these rows. Rows that are a file need none."""
    return {} if isinstance(rows, str | Path) else {path: name}


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the keyword arguments in a function's signature."""
    return [
        name for name, parameter in signature(function).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
    ]


def run_stages(
    stages: Sequence[Stage], run_dir: Path, progress: Progress | None = None, bounds: LossBounds | None = None
) -> list[StageResult]:
    """Run stages one after the other in a folder, which is made if it does not exist, and return their results.

    With `bounds`, raises InputError if no row is left, or if more rows are lost than they allow.
    """
    run_dir.mkdir(exist_ok=True)
    digests = DigestCache(run_dir / ".digests.json")
    finished = []
    for stage in stages:
        finished.append(run_stage(stage, run_dir, digests, progress or NullProgress()))
        if bounds is not None:
            bounds.check(stage.name, finished[-1].report, [result.report for result in finished[:-1]])
    return finished


def _read_rejects(ingested: Path) -> pl.DataFrame:
    lines = (ingested / "rejects.jsonl").read_bytes().splitlines()
    schema = {"source_row": pl.Int64, "reason": pl.String, "detail": pl.String, "excerpt": pl.String}
    return pl.DataFrame([orjson.loads(line) for line in lines], schema=schema).rename({"source_row": "row"})


def _by_row(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with the number of each row as column `row`, and without the name of the temporary file."""
    return (
        table.drop("source", strict=False).rename({"source_row": "row"}, strict=False).select("row", pl.exclude("row"))
    )


def _concatenated(finished: Sequence[StageResult], name: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(result.path / name) for result in finished if (result.path / name).exists()])


def _is_list_of_rows(against: Sequence[Any]) -> bool:
    return len(against) > 0 and isinstance(against[0], Mapping)
