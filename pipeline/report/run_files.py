"""The files of a run: which stages it has, where their tables lie, and the lazy scans over them.

Tables are only ever scanned: a section keeps counts of them, and the few rows it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.ledger import FLAGS_FILE
from truegold.pipeline.rows import KEY, count_rows
from truegold.pipeline.running.stage import RECORD
from truegold.verifiers import InputError

SOURCE_KEY = ["source", "source_row"]
"""The columns that say where a row came from; no two rows of a run came from the same."""

UNFINISHED = "unfinished_training"
"""The name of an input of the report: the alarms of a training that has not ended well, in whose folder is the rest."""

Fields = dict[str, Any]
"""Some columns of one row of a table."""


@dataclass(frozen=True)
class RunFiles:
    """The finished stages of a run in order."""

    folders: Mapping[str, Path]
    records: Mapping[str, Mapping[str, Any]]
    """The `stage.json` of each stage."""
    training: Path | None = None
    """The folder of the training, whether it has ended well or not; None where the run has none."""

    @classmethod
    def open(cls, inputs: Mapping[str, Path], stages: Iterable[str]) -> RunFiles:
        """Open a run by the `stage.json` of each stage, which `inputs` has under its name."""
        names = list(stages)
        folders = {name: inputs[name].parent for name in names}
        training = folders.get("train", inputs[UNFINISHED].parent if UNFINISHED in inputs else None)
        return cls(folders, {name: orjson.loads(inputs[name].read_bytes()) for name in names}, training)

    def __contains__(self, stage: str) -> bool:
        return stage in self.folders

    def only(self, stages: Iterable[str]) -> RunFiles:
        """Return the same run as if it had these stages alone."""
        names = [name for name in stages if name in self]
        folders = {name: self.folders[name] for name in names}
        return RunFiles(folders, {name: self.records[name] for name in names}, folders.get("train"))

    def path(self, stage: str, name: str) -> Path | None:
        """Return a stage's file, or None where the run has no such stage or the stage no such file."""
        if stage not in self.folders:
            return None
        path = self.folders[stage] / name
        return path if path.exists() else None

    def table(self, stage: str, name: str) -> pl.LazyFrame | None:
        """Return the scan of a stage's table, or None where there is none."""
        path = self.path(stage, name)
        return None if path is None else pl.scan_parquet(path)

    def count(self, stage: str, name: str) -> int:
        """Return the rows of a table, 0 where it does not exist."""
        path = self.path(stage, name)
        return 0 if path is None else count_rows(path)

    def tables(self, name: str, stages: Iterable[str] | None = None) -> list[tuple[str, pl.LazyFrame]]:
        """Return the table of this name of every stage that has one, in order."""
        scans = [(stage, self.table(stage, name)) for stage in (self.folders if stages is None else stages)]
        return [(stage, scan) for stage, scan in scans if scan is not None]

    def flags(self, *, after_training: bool) -> pl.LazyFrame | None:
        """Return all flags, each once, or None where no stage has flagged.

        The table of the last flagging stage repeats the earlier ones, with `blocks` as it was settled.
        """
        gathered = next(
            (stages for stages in (("well_posed",), ("flag",), ("dedup", "vet_tests")) if stages[-1] in self),
            ("dedup", "verify_gold"),
        )
        last = ("profile", "profile_after") if after_training else ("profile",)
        frames = [table for _, table in self.tables(FLAGS_FILE, (*gathered, *last))]
        if not frames:
            return None
        return pl.concat(frames).unique([*KEY, "reason", "detector"], keep="first", maintain_order=True)


def open_finished(run_dir: Path) -> RunFiles:
    """Open the finished stages that a run's manifest names. InputError where it is no run, or has no rows yet."""
    manifest = run_dir / "manifest.json"
    if not manifest.exists():
        raise InputError(
            f"{run_dir} is no run of truegold: it has no manifest.json.", "Give the run's folder, such as runs/NAME."
        )
    names = [stage["name"] for stage in orjson.loads(manifest.read_bytes())["stages"]]
    records = {name: run_dir / name / RECORD for name in names}
    files = RunFiles.open(records, [name for name in names if records[name].exists()])
    if files.table("ingest", "rows.parquet") is None:
        raise InputError(f"{run_dir} has no rows yet.", "Run it first: truegold run.")
    return files


def fetch(table: pl.LazyFrame, keys: pl.DataFrame, columns: Iterable[str]) -> list[Fields]:
    """Return the rows of `table` with these keys: KEY and the columns named besides."""
    matching = table.select(*KEY, *columns).join(keys.lazy().select(KEY), on=KEY, how="semi")
    return matching.collect(engine="streaming").to_dicts()
