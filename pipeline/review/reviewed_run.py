"""Opens a finished run for review: its rows as they were before decisions were applied, and the decisions about them.

    run = ReviewedRun.open(Path("runs/demo"))
    run.decide("9f0c...", "fix", gold="16", reviewer="ada")     # returns when the decision is on disk

The stage `settle` applies decisions. So decisions are about the rows that `settle` reads. A reviewer may also decide
about a row that an earlier stage dropped: the decision `keep` restores the row. Only the requested rows are read from
tables.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl
import yaml
from pydantic import ValidationError

from truegold.pipeline.report.explain import find_rows
from truegold.pipeline.rescore.rescore import Decide, DecidedRow
from truegold.pipeline.review.consensus import AgreedDecision, WeighedReview, weigh_decisions, weigh_review
from truegold.pipeline.review.decisions import (
    DECISIONS,
    Decision,
    DecisionKind,
    Decisions,
    append_decision,
    describe_problem,
    digest_decisions,
    load_decisions,
    load_notes,
)
from truegold.pipeline.review.gold_reading import (
    Response,
    case_fault,
    forms_of_fix,
    is_unreadable,
    takes_gold,
    with_gold,
)
from truegold.pipeline.running.stage import load_record
from truegold.pipeline.running.stage_table import DROPPING_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE, FLAGS_FILE, FlagRecord
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS, SUSPICION_FILE
from truegold.pipeline.tables.rows import KEY, Row, RowKey, content_key, row_place
from truegold.pipeline.tables.run_files import RunFiles, has_id, open_finished, read_resolved
from truegold.verifiers import InputError
from truegold.verifiers.decimal_commas import comma_setting, mixes_signs, with_points
from truegold.verifiers.gold import OF_VALUES

BEFORE_SETTLE = ("well_posed", "flag")
"""The stages whose rows `settle` reads. The first of them that the run has is used."""
WORK = "work"
"""The folder of the run inside the output of `truegold flag`."""
_NOT_IN_RUN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
"""Characters that are allowed in the name of a folder, but not in the name of a run."""

Population = Literal["flagged", "all"]


class StaleRowError(InputError):
    """The row has changed since it was shown."""


class UnknownRowError(InputError):
    """The row does not exist, or no decision about it is possible."""


@dataclass(frozen=True)
class ReviewedRun:
    """A run with its rows before decisions are applied, and its decisions."""

    run_dir: Path
    files: RunFiles
    folder: Path
    """The folder for new decisions."""
    further: tuple[Path, ...] = ()
    """Further files and folders with decisions, of other reviewers."""

    @classmethod
    def open(cls, run_dir: Path, folder: Path | None = None) -> ReviewedRun:
        """Open a run with the decisions in `folder`, by default those that the run's configuration names.

        Raises InputError if it is not a run, has no flagged rows yet, or `folder` is a file.
        """
        if folder is not None and folder.is_file():
            raise InputError(
                f"{folder} is a file, and decisions are written to a folder.",
                "Name it where the rows are curated: truegold curate RUN.yaml --decisions FILE",
            )
        if not (run_dir / "manifest.json").exists() and (run_dir / WORK / "manifest.json").exists():
            run_dir = run_dir / WORK
        files = open_finished(run_dir)
        paths = [folder] if folder is not None else _decision_paths(run_dir)
        written = next((path for path in paths if not path.is_file()), run_dir / DECISIONS)
        run = cls(run_dir, files, written, tuple(path for path in paths if path != written))
        if not any(stage in files for stage in BEFORE_SETTLE):
            raise InputError(f"{run_dir} has no flags yet.", "Curate first: truegold curate RUN.yaml.")
        return run

    @property
    def curate_command(self) -> str:
        """The command that applies the decisions. It names the run and its place if the run was copied or moved."""
        resolved, folder = read_resolved(self.run_dir), self.run_dir.absolute()
        runs_dir, name = resolved.get("runs_dir"), _NOT_IN_RUN_NAMES.sub("-", folder.name).strip("-._") or "run"
        rename = shlex.join(["mv", str(folder), str(folder.with_name(name))])
        changes = {} if resolved.get("name", name) == name else {"name": name}
        if runs_dir and "://" not in runs_dir and Path(runs_dir).absolute() != folder.parent:
            changes["runs_dir"] = str(folder.parent)
        options = [f"--set {shlex.quote(f'{key}={_yaml_text(value)}')}" for key, value in changes.items()]
        command = " ".join(["truegold curate", *(["..."] if options else []), *options])
        return command if name == folder.name else f"{rename} && {command}"

    def decisions(self) -> Decisions:
        """Return the current decisions of all reviewers."""
        return load_decisions(*self.further, self.folder)

    def notes(self, reviewer: str) -> dict[str, str]:
        """Return a reviewer's last note on each row."""
        return load_notes(reviewer, *self.further, self.folder)

    @property
    def _last_stage(self) -> str:
        return next(stage for stage in BEFORE_SETTLE if stage in self.files)

    @property
    def rows(self) -> pl.LazyFrame:
        """The rows that decisions are about."""
        table = self.files.table(self._last_stage, "rows.parquet")
        assert table is not None  # Every stage that rows pass through writes this table.
        return table

    def rows_of(self, row_id: str) -> list[Row]:
        """Return the rows with this id. Raises UnknownRowError if there are none."""
        rows = self._read_rows([row_id])
        if not rows:
            raise UnknownRowError(f"No row of {self.run_dir} has the id {row_id!r}.")
        return rows

    def row_of(self, row_id: str, source_key: tuple[str, int] | None) -> Row:
        """Return the row with this id from this source, or else the first row with this id."""
        rows = self.rows_of(row_id)
        return next((row for row in rows if (row["source"], row["source_row"]) == source_key), rows[0])

    def resolve(self, name: str) -> str:
        """Return the id for its first digits or for `SOURCE:ROW`. Raises InputError if none matches, or several do."""
        return str(find_rows(self.files, name.strip())["id"][0])

    def why_dropped(self, row_id: str) -> str | None:
        """Return `STAGE: REASON` if all rows with this id were dropped before `settle`, or None if one remains."""
        if self.rows.filter(has_id([row_id])).select(pl.len()).collect().item():
            return None
        for stage, table in self.files.tables(DROPPED_FILE, DROPPING_STAGES):
            dropped = table.filter(has_id([row_id])).select("drop_reason").head(1).collect()
            if dropped.height:
                return f"{stage}: {dropped.item()}"
        return None

    def count_restorable(self) -> int:
        """Return the number of rows that a stage before `settle` dropped, and no reviewer has decided about."""
        tables = [table.select("id") for _, table in self.files.tables(DROPPED_FILE, DROPPING_STAGES)]
        gone = pl.concat(tables).unique().join(self.rows.select("id"), on="id", how="anti")
        return int(gone.filter(~has_id(self.decisions())).select(pl.len()).collect().item())

    def decide(
        self,
        row_id: str,
        decision: DecisionKind,
        reviewer: str,
        *,
        gold: str | None = None,
        note: str | None = None,
        seen: str | None = None,
        drawn: str | None = None,
        blind: bool = False,
        source_key: tuple[str, int] | None = None,
    ) -> Decision:
        """Store a decision about a row, and return it.

        `seen` is the hash of the content that was shown (`content_key`). If several rows have this id, `source_key`
        (source and row number) chooses one. Raises StaleRowError if the row has changed, and InputError for an invalid
        decision.
        """
        rows = self.rows_of(row_id)
        row = self.row_of(row_id, source_key)
        if seen is not None and seen not in {content_key(row) for row in rows}:
            raise StaleRowError(f"The row {row_id} has changed since it was shown.", "Reload the page.")
        if decision is DecisionKind.FIX and takes_gold(row) and not (gold or "").strip():
            raise InputError(f"The row {row_id} ({row_place(row)}): a fix needs the right gold.", "Type it: fix=GOLD")
        gold = self.as_meant(row, gold) if gold else gold
        if decision is DecisionKind.FIX and not takes_gold(row) and (fault := case_fault(row, gold or "")) is not None:
            raise InputError(
                f"The row {row_id} ({row_place(row)}) is judged by tests. gold: {fault}.",
                f"A fix of tests: {forms_of_fix(row)}.",
            )
        if decision is DecisionKind.KEEP and is_unreadable(self.why_dropped(row_id)):
            raise InputError(
                f"The row {row_id} ({row_place(row)}) cannot be kept: its tests cannot be read and judge no program.",
                f"Fix the tests, or leave the row dropped. A fix of tests: {forms_of_fix(row)}.",
            )
        if decision is DecisionKind.FIX and gold and row["verifier"] in OF_VALUES and mixes_signs(gold):
            raise InputError(
                f"The gold {gold!r} may be one number or a list.",
                "Write numbers without signs of thousands, and lists with a space after each comma: 1234.5, 6",
            )
        try:
            made = Decision.model_validate(
                {
                    "id": row_id,
                    "seen": (seen or content_key(row)) if decision.decides else None,
                    "decision": decision,
                    "gold": gold,
                    "note": note or None,
                    "drawn": drawn,
                    "blind": blind,
                    **(self._profiled(row) if decision.decides else {}),
                    "reviewer": reviewer,
                    "at": datetime.now(UTC),
                }
            )
        except ValidationError as error:
            raise InputError(f"{describe_problem(error)}.") from None
        append_decision(self.folder, made)
        return made

    def as_meant(self, row: Row, gold: str) -> str:
        """Return a reviewer's gold with a decimal point, if the row's source has decimal commas: "0,5" gives "0.5".

        Golds that the page shows already have decimal points: the row's gold, a suggestion, an earlier fix.
        """
        if comma_setting(row["verifier_args"]) != "answers":
            return gold
        is_row = has_id([row["id"]])
        suggestions = [table.filter(is_row) for _, table in self.files.tables(FLAGS_FILE, (self._last_stage,))]
        shown = set(pl.concat(suggestions).collect()["suggestion"])
        fixes = {decision.gold for decision in self.decisions().get(row["id"], ())}
        if gold in {row["gold"], *shown, *fixes}:
            return gold
        tables = [table.filter(is_row) for _, table in self.files.tables("rows.parquet", ("ingest",))]
        settings = set(map(comma_setting, pl.concat(tables).collect()["verifier_args"]))
        return with_points(gold) if settings == {"decimal"} else gold

    def _profiled(self, row: Row) -> dict[str, Any]:
        """Return `passes` and `suspicion` of a row. They are stored with its decision, to calibrate suspicions later.
        Returns an empty dict if the row has no profile, or the profile is of other content."""
        tables = [self.files.table("profile", name) for name in ("rows.parquet", "profile.parquet", SUSPICION_FILE)]
        if any(table is None for table in tables):
            return {}
        rows, summaries, suspicion = (table for table in tables if table is not None)
        key = (pl.col("source") == row["source"]) & (pl.col("source_row") == row["source_row"])
        profiled = rows.filter(key & (pl.col("id") == row["id"])).collect().to_dicts()
        if not profiled or content_key(profiled[0]) != content_key(row):
            return {}
        passes = summaries.filter(key & (pl.col("id") == row["id"])).select("passes").collect()
        suspected = suspicion.filter(key & (pl.col("row_id") == row["id"])).select("suspicion").collect()
        return {"passes": passes.item(), "suspicion": suspected.item() if suspected.height else None}

    def standing(self, row_id: str, reviewer: str) -> Decision | None:
        """Return a reviewer's current decision about a row, or None."""
        decisions = self.decisions().get(row_id, [])
        return next((decision for decision in decisions if decision.reviewer == reviewer), None)

    def weigh(self) -> WeighedReview:
        """Return the combined decisions about the run's rows."""
        decisions = self.decisions()
        flags = self.decided_flags(decisions)
        conflicts = [flag["id"] for flag in flags if flag["reason"] == CONFLICTING_LABELS]
        return weigh_review(self._read_rows([*decisions, *conflicts]), flags, decisions)

    def _read_rows(self, row_ids: Iterable[str]) -> list[Row]:
        """Return the rows with these ids that `settle` reads. For an id whose rows were all dropped before, return one
        of these."""
        ids = list(row_ids)
        rows = self.rows.filter(has_id(ids)).sort(KEY[1:]).collect()
        gone = self.files.dropped_before_review(set(ids).difference(rows["id"]))
        return cast("list[Row]", [*rows.to_dicts(), *gone.to_dicts()])

    def decided_flags(self, row_ids: Iterable[str]) -> list[FlagRecord]:
        """Return the flags of rows with these ids, and of all rows in conflicts, as the stages wrote them."""
        is_known = has_id(row_ids) | (pl.col("reason") == CONFLICTING_LABELS)
        tables = self.files.tables(FLAGS_FILE, (self._last_stage, "profile"))
        flags = pl.concat([table.filter(is_known) for _, table in tables])
        return cast("list[FlagRecord]", flags.collect().to_dicts())

    def responses(self, key: RowKey) -> list[Response]:
        """Return the distinct samples of a row with their numbers. Empty if the run has no profile."""
        samples = self.files.table("profile", "samples.parquet")
        if samples is None:
            return []
        is_row = [pl.col(name) == value for name, value in zip(KEY, key, strict=True)]
        texts = samples.filter(*is_row).group_by("completion", "extracted", "score").agg(pl.len()).collect()
        return [
            Response(completion, extracted or "(no answer)", votes, score)
            for completion, extracted, score, votes in texts.sort("len", "completion", descending=True).iter_rows()
        ]


def _decision_paths(run_dir: Path) -> list[Path]:
    """Return the paths of decisions that a run's configuration names. Raises InputError if one does not exist."""
    named: Any = read_resolved(run_dir).get(DECISIONS) or ()
    paths = list(map(Path, [named] if isinstance(named, str) else named))
    if missing := [path for path in paths if not path.exists()]:
        raise InputError(
            f"{missing[0]}, which {run_dir} was curated with, does not exist.", "Name its new place: --decisions FOLDER"
        )
    return paths


def describe_unapplied(run_dir: Path) -> str | None:
    """Return a sentence if a run has decisions that its rows do not show yet, with the command; else None."""
    facts = (load_record(run_dir / "settle") or {}).get("report", {}).get("facts", {})
    if DECISIONS not in facts:
        return None
    try:
        run = ReviewedRun.open(run_dir)
        if digest_decisions(run.decisions()) == facts[DECISIONS]:
            return None
    except InputError:  # The files may have been moved. The rows are whole without them.
        return None
    return f"The decisions in {run.folder} are not applied to these rows yet. `{run.curate_command}` applies them."


@dataclass(frozen=True)
class ReviewQueue:
    """The rows to review, and their order.

    queue                          purpose
    the most suspicious first      a reviewer who stops early has seen the worst rows
    100 at random, seed 7          a representative sample, to measure the precision of flags
    ann's rows again, blind        two independent decisions about each row, to measure agreement
    """

    drawn: str = "suspicious"
    """How the rows were chosen, for the record of decisions: `suspicious`, or `random:SEED`."""
    keys: tuple[RowKey, ...] | None = None
    """The rows in order, or None for all rows, the most suspicious first."""
    blind: bool = False
    """True if other reviewers' decisions are hidden."""


def draw_at_random(run: ReviewedRun, rows: int, seed: int, among: Population) -> ReviewQueue:
    """Return `rows` random rows. With the same seed, a larger draw begins with the rows of a smaller one."""
    population = run.rows.select(KEY)
    if among == "flagged":
        tables = run.files.tables(FLAGS_FILE, (*BEFORE_SETTLE, "profile"))
        flagged = pl.concat([table.select(KEY) for _, table in tables])
        population = population.join(flagged, on=KEY, how="semi")
    keys = _shuffle(population.collect().rows(), seed)
    if not keys:
        raise InputError(f"No row of {run.run_dir} is flagged.", "Draw among all rows: --among all.")
    return ReviewQueue(f"random:{seed}", tuple(keys[:rows]))


def second_look(run: ReviewedRun, reviewer: str, seed: int) -> ReviewQueue:
    """Return the rows that `reviewer` decided about, in random order, for another reviewer to decide blindly."""
    decided = [
        row_id
        for row_id, decisions in run.decisions().items()
        if any(decision.reviewer == reviewer for decision in decisions)
    ]
    keys = _shuffle(run.rows.select(KEY).filter(has_id(decided)).collect().rows(), seed)
    if not keys:
        raise InputError(
            f"{reviewer} has decided about no row of {run.run_dir}.", f"Look at the names of the files in {run.folder}."
        )
    return ReviewQueue(f"random:{seed}", tuple(keys), blind=True)


def _shuffle(keys: Iterable[RowKey], seed: int) -> list[RowKey]:
    """Return one row of each id, in an order that depends only on seed and id."""
    first_of_id: dict[str, RowKey] = {}
    for key in keys:
        first_of_id.setdefault(key[0], key)
    return sorted(first_of_id.values(), key=lambda key: hashlib.sha256(f"{seed}:{key[0]}".encode()).digest())


def decided_rows(data: Path, path: Path | None = None) -> Decide | None:
    """Return a function that looks up the decision about a row of `data`, or None if there are no decisions.

        decide = decided_rows(Path("runs/gsm8k"))
        decide(row)     DecidedRow("fix", the row with the reviewer's gold), or None if there is no decision

    All reviewers must agree (`weigh_review`). If `data` is a run, decisions must also be about the row's current
    content. In an exported set, the id is enough, since a fix may already have changed the row. The decisions come from
    `path`, a file or folder, or else from the run. Raises InputError if `path` has no decisions, or a file is damaged.
    """
    run = ReviewedRun.open(data) if (data / "manifest.json").is_file() else None
    if run is not None and path is not None:
        run = replace(run, folder=path, further=())
    decisions = run.decisions() if run is not None else load_decisions(path or data / DECISIONS)
    if not decisions:
        if path is not None:
            raise InputError(f"{path} holds no decisions.", "Name a file of them, or the folder.")
        return None
    if run is not None:
        weighed = {key[0]: standing.agreed for key, standing in run.weigh().standings.items()}
        return lambda row: _decided(row, weighed.get(row["id"]), decisions)

    def by_id(row: Row) -> DecidedRow | None:
        about = [decision.model_copy(update={"seen": None}) for decision in decisions.get(row["id"], ())]
        return _decided(row, weigh_decisions(row, about).agreed, decisions)

    return by_id


def _decided(row: Row, agreed: AgreedDecision | None, decisions: Decisions) -> DecidedRow | None:
    if agreed is None:
        return None
    if agreed.kind is DecisionKind.DROP:
        return DecidedRow("drop", None)
    # A fix may already have changed the tests of a row in an exported set. They must not be changed twice.
    is_as_seen = content_key(row) in {decision.seen for decision in decisions[row["id"]]}
    is_changed = agreed.kind is DecisionKind.FIX and (takes_gold(row) or is_as_seen)
    return DecidedRow(str(agreed.kind), with_gold(row, agreed.gold) if is_changed else row)


def _yaml_text(text: str) -> str:
    """Return a text as a value in YAML. It has quotes if YAML reads the plain text as a number or a date."""
    is_plain = re.fullmatch(r"[A-Za-z/][\w./ -]*", text) and yaml.safe_load(text) == text
    return text if is_plain else json.dumps(text)
