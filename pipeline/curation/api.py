"""Curation from Python, without a configuration file: what `truegold.pipeline` offers.

    deduplicate(frame).rows                 the frame without copies and rewordings
    find_flags(frame).flags                 what is suspicious, row by row, with the evidence
    find_leaks(frame, ["math500.jsonl"])    which rows stand in evaluation sets
    curate(frame).report("report.html")     all of curation, and the page that explains every dropped or changed row

Rows may be frames of polars or pandas, a `datasets.Dataset`, a list of dicts or a path (`frames`). Columns are guessed
by their names, as everywhere, or named in the same way for every function: `prompt="Body", gold="label"`. Tables of
results are polars frames, keyed by `row`, the number of the row from 1. Work is done in a temporary folder that goes
with the result, or in the folder that `work_dir` names, where an unchanged stage is not run twice; nothing is written
anywhere else.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.config.stages import CurationConfig, FlagConfig, ReportConfig
from truegold.pipeline.curation.plan import curation_stages, flagging_stages, last_flagging
from truegold.pipeline.curation.user_rows import (
    Rows,
    add_guessed_columns,
    check_names,
    hold_rows,
    keep_rows,
    make_config,
    merge_columns,
    named_in_errors,
    write_rows_file,
)
from truegold.pipeline.decontaminate.matches import find_leaks_in_file
from truegold.pipeline.dedup.clusters import find_clusters
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.report import report
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import RECORD, Output, Stage, StageResult, plan_stage, run_stage
from truegold.pipeline.sources.data_files import MAX_ROW_BYTES, open_file
from truegold.pipeline.suspicion.stage import SampleFile
from truegold.pipeline.tables.ledger import DROPPED_FILE, FLAGS_FILE, LEDGER_FILE
from truegold.pipeline.tables.reasons import SUSPICION_FILE
from truegold.verifiers import ConfigError


@dataclass(frozen=True)
class Deduplicated:
    """What `deduplicate` returns."""

    rows: Rows
    """The rows that stay, in their order and in the form they came in."""
    ledger: pl.DataFrame
    """One line for each dropped row: `row, id, reason, kept_row, kept_id, evidence` (JSON)."""
    flags: pl.DataFrame
    """Rows of one problem whose golds differ (`conflicting_labels`)."""
    clusters: pl.DataFrame
    """One line for each row; `truegold.pipeline.dedup.clusters` describes the columns."""


@dataclass(frozen=True)
class Flags:
    """What `find_flags` returns."""

    flags: pl.DataFrame
    """What the rules say: `row, id, reason, detector, confidence, blocks, evidence` (JSON) and `suggestion`."""
    rejects: pl.DataFrame
    """Every record that could not become a row: `row, reason, detail, excerpt`."""
    suspicion: pl.DataFrame
    """How likely each label is at fault: `row, id, suspicion, tier, evidence` (JSON) and `suggestion`; null without
    samples."""


@dataclass(frozen=True)
class Leaks:
    """What `find_leaks` returns."""

    rows: Rows
    """The rows that stand in no evaluation set, in their order and in the form they came in."""
    matches: pl.DataFrame
    """One line for each pair of a row and an evaluation item: `row, id, against, against_id, kind, score, evidence`."""


@dataclass(frozen=True)
class Curated:
    """What `curate` returns; the stages' folders stay as long as it does."""

    rows: pl.DataFrame
    """The rows that may be profiled, as canonical rows (`truegold.pipeline.tables.rows`), cleaned."""
    ledger: pl.DataFrame
    """Every edit, drop and flag, in the order of the stages."""
    flags: pl.DataFrame
    """All flags, with those that hold their rows back (`blocks`)."""
    dropped: pl.DataFrame
    """Every row that was dropped, with its `drop_reason`."""
    rejects: pl.DataFrame
    """Every record that could not become a row: `row, reason, detail, excerpt`."""
    finished: tuple[StageResult, ...] = field(repr=False)
    """The finished stages in their order."""

    def report(self, path: str | Path, name: str = "curation") -> Path:
        """Write the self-contained page that accounts for every row, and return its path."""
        target = Path(path).expanduser()
        run_dir = self.finished[0].path.parent
        names = tuple(result.name for result in self.finished)
        records: dict[str, Path | Output] = {stage: Output(stage, RECORD) for stage in names}
        stage = plan_stage("report", report, ReportConfig(name=name, stages=names), records)
        (page,) = _run([stage], run_dir)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page.path / "index.html", target)
        return target


def deduplicate(
    rows: Rows,
    *,
    prompt: str | None = None,
    gold: str | None = None,
    id: str | None = None,
    template_cap: int | None = None,
) -> Deduplicated:
    """Drop exact copies and rewordings of the same problem; the best row of each problem and gold stays.

    `prompt`, `gold` and `id` name columns that are not to be guessed; no gold is needed. `template_cap` keeps so many
    instances of one template at most. Raises InputError where there are no rows or no prompt column.
    """
    if template_cap is not None and (not isinstance(template_cap, int) or template_cap < 1):
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
    """Say which rows are suspicious: by rules about question, gold and solution, and by the answers of systems.

    `samples` are rows of id, system, and answer or response, and of step where they are of a training. `prompt`, `gold`
    and `id` name columns that are not to be guessed, `columns` those of other roles too (`{"solution": "rationale"}`),
    `verifier` the verifier of every row; `last_turn_only` keeps rows whose prompt is more than one message (`curate`).
    `settings` are those of the section `flag`. Raises InputError where a column is missing, ConfigError for an argument
    or a role that does not exist.
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
            samples = hold_rows(samples)
            files.append(SampleFile(write_rows_file(samples, work, "samples")))
            labels |= _labels(samples, files[0].path, "samples")
        with named_in_errors(labels):
            guessed = add_guessed_columns(path, named, options_apart=True)
            source = {"columns": guessed, "verifier": verifier, "last_turn_only": last_turn_only}
            config = make_config("find_flags", path, source, {"flag": settings})
            _run(flagging_stages(config, files), work / "run")
        flags = pl.read_parquet(work / "run" / last_flagging(config) / FLAGS_FILE)
        suspicion = pl.read_parquet(work / "run" / "suspect" / SUSPICION_FILE)
        rejects = _read_rejects(work / "run" / "ingest")
    return Flags(_by_row(flags), rejects, _by_row(suspicion))


def find_leaks(
    rows: Rows,
    against: Rows | Sequence[Rows],
    *,
    prompt: str | None = None,
    gold: str | None = None,
    id: str | None = None,
) -> Leaks:
    """Find rows that stand in evaluation sets: copies, parts of longer texts, rewordings.

    `against` is one evaluation set or several: rows in any form, or a name such as `math500`, which is read from the
    hub. `prompt`, `gold` and `id` name columns of `rows` that are not to be guessed. Raises InputError where there are
    no rows, no prompt column or no such evaluation set.
    """
    rows = hold_rows(rows)
    sets = against if isinstance(against, list | tuple) and not _is_list_of_rows(against) else [against]
    with tempfile.TemporaryDirectory(prefix="truegold-") as folder:
        path = write_rows_file(rows, Path(folder))
        specs: list[str] = []
        labels = _labels(rows, path, "rows")
        for index, entry in enumerate(sets):
            if isinstance(entry, str | Path):
                specs.append(str(entry))
                continue
            file = write_rows_file(hold_rows(entry), Path(folder), f"against-{index}")
            specs.append(str(file))
            labels |= _labels(entry, file, f"against[{index}]")
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

    `prompt`, `gold` and `id` name columns that are not to be guessed, `columns` those of other roles too
    (`{"tests": "asserts"}`), `verifier` the verifier of every row. `last_turn_only` keeps the last user message of rows
    with system messages, earlier turns, pictures or tools, which are rejected otherwise. `sections` are those of a
    run's configuration, such as `clean={"languages": ["en"]}` or `decisions="decisions"`. With `work_dir` the stages'
    folders stay there, and what has not changed is not run again. Raises InputError where the rows cannot be read or
    have no gold, ConfigError for an argument, a role or a setting that does not exist.
    """
    known_sections = [name for name in CurationConfig.model_fields if name != "data"]
    check_names(sections, [*known_sections, *_parameters(curate)], "curate has no argument")
    named = merge_columns(columns, prompt=prompt, gold=gold, id=id)
    rows = hold_rows(rows)
    work = Path(work_dir).expanduser() if work_dir is not None else Path(tempfile.mkdtemp(prefix="truegold-"))
    try:
        work.mkdir(parents=True, exist_ok=True)
        path = write_rows_file(rows, work)
        with named_in_errors(_labels(rows, path, "rows")):
            guessed = add_guessed_columns(path, named, options_apart=False)
            source = {"columns": guessed, "verifier": verifier, "last_turn_only": last_turn_only}
            config = make_config("curate", path, source, sections)
            curated = _curated(_run(curation_stages(config), work / "run"))
    except BaseException:
        if work_dir is None:
            shutil.rmtree(work)
        raise
    if work_dir is None:
        weakref.finalize(curated, shutil.rmtree, work)
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
    """Return by what name errors call the file of these rows, where the user has not made it."""
    return {} if isinstance(rows, str | Path) else {path: name}


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that a function knows itself."""
    return [
        name for name, parameter in signature(function).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
    ]


def _run(stages: Sequence[Stage], run_dir: Path) -> list[StageResult]:
    run_dir.mkdir(exist_ok=True)
    digests = DigestCache(run_dir / ".digests.json")
    return [run_stage(stage, run_dir, digests, NullProgress()) for stage in stages]


def _read_rejects(ingested: Path) -> pl.DataFrame:
    lines = (ingested / "rejects.jsonl").read_bytes().splitlines()
    schema = {"source_row": pl.Int64, "reason": pl.String, "detail": pl.String, "excerpt": pl.String}
    return pl.DataFrame([orjson.loads(line) for line in lines], schema=schema).rename({"source_row": "row"})


def _by_row(table: pl.DataFrame) -> pl.DataFrame:
    """Name a row by its number; the name of the temporary file means nothing to the caller."""
    return (
        table.drop("source", strict=False).rename({"source_row": "row"}, strict=False).select("row", pl.exclude("row"))
    )


def _concatenated(finished: Sequence[StageResult], name: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(result.path / name) for result in finished if (result.path / name).exists()])


def _is_list_of_rows(against: Sequence[Any]) -> bool:
    return len(against) > 0 and isinstance(against[0], Mapping)
