"""Opens the finished stages of a run, and scans their tables without reading them into memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.config.base import PATTERN_SIGNS
from truegold.pipeline.running.disk import is_run, runs_in
from truegold.pipeline.running.stage import RECORD, load_record
from truegold.pipeline.running.stage_table import DROPPING_STAGES, ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE, FLAGS_FILE, LEDGER_FILE, RESTORED
from truegold.pipeline.tables.rows import KEY, count_rows
from truegold.verifiers import InputError
from truegold.verifiers.user_code import near_path

KEY_TYPES = {"id": pl.String, "source": pl.String, "source_row": pl.Int64}
"""The types of the columns of KEY."""
SOURCE_KEY = ["source", "source_row"]
"""The columns with the origin of a row. They identify a row within a run."""

UNFINISHED = "unfinished_training"
"""The key under which the report's inputs have the alarms file of an unfinished training. The other files of the
training are in the same folder."""

HELD_REASONS = ("held_for_review", "reviewers_disagree", "fix_unpayable", "keep_unpayable")
"""The drop reasons of rows that wait for a reviewer."""

AFTER_TRAINING = "profile_after"
"""The stage that profiles rows after training. Its flags do not hold rows back."""

Fields = dict[str, Any]
"""Some columns of a row, or other values by name."""

MADE_ANEW = "Run the command that made the run again: truegold run."


@dataclass(frozen=True)
class RunFiles:
    """The finished stages of a run, in order."""

    folders: Mapping[str, Path]
    records: Mapping[str, Mapping[str, Any]]
    """The `stage.json` of each stage."""
    training: Path | None = None
    """The folder of the training, which may be unfinished, or None if there is no training."""

    @classmethod
    def open(cls, inputs: Mapping[str, Path], stages: Iterable[str]) -> RunFiles:
        """Open a run. `inputs` has the path of the `stage.json` of each stage, under the stage's name."""
        names = list(stages)
        folders = {name: inputs[name].parent for name in names}
        training = folders.get("train", inputs[UNFINISHED].parent if UNFINISHED in inputs else None)
        return cls(folders, {name: orjson.loads(inputs[name].read_bytes()) for name in names}, training)

    def __contains__(self, stage: str) -> bool:
        return stage in self.folders

    def only(self, stages: Iterable[str]) -> RunFiles:
        """Return the run restricted to these stages."""
        names = [name for name in stages if name in self]
        folders = {name: self.folders[name] for name in names}
        return RunFiles(folders, {name: self.records[name] for name in names}, folders.get("train"))

    @property
    def last_row_stage(self) -> str:
        """The last stage that rows pass before selection."""
        return [stage for stage in ("ingest", *ROW_STAGES) if stage in self][-1]

    def end_tables(self) -> dict[str, pl.LazyFrame]:
        """Return the tables with the final rows: `selected` and `heldout`, or `rows` in a run without selection."""
        stage, names = ("select", ("selected", "heldout")) if "select" in self else (self.last_row_stage, ("rows",))
        scans = {name: self.table(stage, f"{name}.parquet") for name in names}
        return {name: scan for name, scan in scans.items() if scan is not None}

    def path(self, stage: str, name: str) -> Path | None:
        """Return the path of a stage's file, or None if it does not exist."""
        if stage not in self.folders:
            return None
        path = self.folders[stage] / name
        return path if path.exists() else None

    def table(self, stage: str, name: str) -> pl.LazyFrame | None:
        """Return a scan of a stage's table, or None if it does not exist.

        Rows that an earlier version wrote have no column `context`. It is added.
        """
        if (path := self.path(stage, name)) is None:
            return None
        scan = pl.scan_parquet(path)
        columns = scan.collect_schema().names()
        if "verifier_args" in columns and "context" not in columns:
            return scan.with_columns(context=pl.lit(None, pl.String))
        return scan

    def count(self, stage: str, name: str) -> int:
        """Return the number of rows of a table, or 0 if it does not exist."""
        path = self.path(stage, name)
        return 0 if path is None else count_rows(path)

    def tables(self, name: str, stages: Iterable[str] | None = None) -> list[tuple[str, pl.LazyFrame]]:
        """Return the stages with a table of this name, in order, and the scans of the tables."""
        scans = [(stage, self.table(stage, name)) for stage in (self.folders if stages is None else stages)]
        return [(stage, scan) for stage, scan in scans if scan is not None]

    def drops(self, stages: Iterable[str]) -> list[tuple[str, pl.LazyFrame]]:
        """Return the dropped rows of each stage, in order. Rows that a reviewer restored in `settle` are left out."""
        drops, ledger = self.tables(DROPPED_FILE, stages), self.table("settle", LEDGER_FILE)
        if ledger is None:
            return drops
        restored = ledger.filter(pl.col("reason") == RESTORED).select(KEY)
        later = list(self.folders)[list(self.folders).index("settle") :]
        return [(name, table if name in later else table.join(restored, on=KEY, how="anti")) for name, table in drops]

    def dropped_before_review(self, ids: Iterable[str]) -> pl.DataFrame:
        """Return the rows with these ids that a stage before `settle` dropped, one row for each id."""
        tables = [table.filter(has_id(ids)) for _, table in self.tables(DROPPED_FILE, DROPPING_STAGES)]
        dropped = pl.concat([table.drop("drop_reason") for table in tables]).collect()
        return dropped.unique("id", keep="first", maintain_order=True)

    def flags(self, *, after_training: bool) -> pl.LazyFrame | None:
        """Return all flags of the run, each once, or None if no stage has flags.

        `blocks` is true if the flag keeps its row out of this run. It is false if a reviewer kept the row. Flags that
        were found after training have `blocks` false, and are included only with `after_training`.
        """
        gathered = next(
            (stages for stages in (("well_posed",), ("flag",), ("dedup", "vet_tests")) if stages[-1] in self),
            ("dedup", "verify_gold"),
        )
        if self.path("settle", FLAGS_FILE) is not None:
            # Among the flags of `settle`, those that a reviewer overruled no longer hold rows back.
            gathered = ("settle",)
        frames = [self._with_effect(table, "settle") for _, table in self.tables(FLAGS_FILE, gathered)]
        frames += [self._with_effect(table, "select") for _, table in self.tables(FLAGS_FILE, ("profile",))]
        if after_training:
            late = {"blocks": pl.lit(value=False), "detector": pl.lit(AFTER_TRAINING)}
            frames += [table.with_columns(**late) for _, table in self.tables(FLAGS_FILE, (AFTER_TRAINING,))]
        if not frames:
            return None
        return pl.concat(frames).unique([*KEY, "reason", "detector"], keep="first", maintain_order=True)

    def _with_effect(self, flags: pl.LazyFrame, stage: str) -> pl.LazyFrame:
        """Return flags with `blocks` false for each row that `stage` did not hold back. If the run has no such stage,
        flags are returned unchanged."""
        if (dropped := self.table(stage, DROPPED_FILE)) is None:
            return flags if stage not in self else flags.with_columns(blocks=pl.lit(value=False))
        held = dropped.filter(pl.col("drop_reason").is_in(HELD_REASONS)).select(KEY).unique()
        held = held.with_columns(is_held=pl.lit(value=True))
        with_held = flags.join(held, on=KEY, how="left", maintain_order="left")
        return with_held.with_columns(blocks=pl.col("blocks") & pl.col("is_held").fill_null(value=False)).drop(
            "is_held"
        )


def read_manifest(run_dir: Path) -> list[str]:
    """Return the stages that a run's manifest lists, in order.

    Raises InputError if the folder is not a run, or the manifest is damaged.
    """
    manifest = run_dir / "manifest.json"
    if not manifest.is_file():
        near = None if run_dir.exists() else near_path(run_dir)
        runs = f"It holds runs: {runs}." if (runs := runs_in(run_dir)) else None
        raise InputError(
            f"{run_dir} is not a run of truegold: it has no manifest.json.",
            near or runs or "Give the run's folder, such as runs/NAME.",
        )
    try:
        return [stage["name"] for stage in orjson.loads(manifest.read_bytes())["stages"]]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        if not is_run(run_dir):
            raise InputError(
                f"{run_dir} is not a run of truegold: its manifest.json is of another program.",
                "Give the run's folder, such as runs/NAME.",
            ) from None
        raise InputError(f"{manifest} is damaged.", MADE_ANEW) from None


def read_resolved(run_dir: Path) -> dict[str, Any]:
    """Return the resolved configuration of a run, or an empty dict without one. Raises InputError if the file is
    damaged."""
    path = run_dir / "config.resolved.json"
    if not path.exists():
        return {}
    try:
        resolved = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        resolved = None
    if not isinstance(resolved, dict):
        raise InputError(f"{path} is damaged.", MADE_ANEW)
    return resolved


def open_finished(run_dir: Path) -> RunFiles:
    """Open the finished stages of a run.

    Raises InputError if the folder is not a run, has no rows yet, or lacks files of a stage.
    """
    if PATTERN_SIGNS & {*str(run_dir)}:
        raise InputError(
            f"{run_dir} has one of * ? [ in its path, which stand for several files.", "Rename the folder."
        )
    records = {name: run_dir / name / RECORD for name in read_manifest(run_dir)}
    for path in records.values():
        if path.exists():
            check_intact(path.parent)
    files = RunFiles.open(records, [name for name, path in records.items() if path.exists()])
    if files.table("ingest", "rows.parquet") is None:
        raise InputError(f"{run_dir} has no rows yet.", "Run it first: truegold run.")
    return files


def check_intact(folder: Path) -> None:
    """Raise InputError if the record of a finished stage is damaged, or a file in it is missing or changed."""
    if (record := load_record(folder)) is None:
        raise InputError(f"{folder / RECORD} is damaged.", f"Delete {folder}. {MADE_ANEW}")
    for name, entry in record.get("outputs", {}).items():
        path = folder / name
        if not path.is_file():
            raise InputError(f"{path} is missing.", MADE_ANEW)
        if path.stat().st_size != entry["bytes"]:
            raise InputError(f"{path} has changed since it was written.", MADE_ANEW)


def has_id(row_ids: Iterable[str]) -> pl.Expr:
    """Return the condition that `id` is one of these ids."""
    return pl.col("id").is_in(pl.Series(list(row_ids), dtype=pl.String).implode())


def fetch(table: pl.LazyFrame, keys: pl.DataFrame, columns: Iterable[str]) -> list[Fields]:
    """Return the rows of `table` with these keys, as dicts of the columns KEY and `columns`."""
    matching = table.select(*KEY, *columns).join(keys.lazy().select(KEY), on=KEY, how="semi")
    return matching.collect(engine="streaming").to_dicts()
