"""Judges logged rollouts again with one or two verifiers, called A and B, and writes the verdicts to a table.

    rescore([Path("out/completions")], out_dir, progress, data=Path("out"), verifiers=("math", "math_verify"))

`rollouts.parquet` has a row for each rollout: the logged reward and the verdicts of A and B. From this table,
`rollout_report` finds the rollouts on which the log, A and B differ. After a kill, the same call continues from the
verdicts in the folder `verdicts` (`verdict_parts`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import tee
from pathlib import Path
from typing import Any, TypedDict

import polars as pl

from truegold.pipeline.config.sources import Columns, FileSource
from truegold.pipeline.config.stages import OpinionConfig
from truegold.pipeline.export.convert import finished_tables, read_tables, tables_of
from truegold.pipeline.judge.opinions import open_opinion, verify_and_hear
from truegold.pipeline.rescore.logs import LoggedRollout, read_logs
from truegold.pipeline.rescore.verdict_parts import judge_parts
from truegold.pipeline.running.progress import NullProgress, Progress
from truegold.pipeline.tables.rows import Row, TableWriter, arrow_schema, dump_json, normalise_for_id, problem_of
from truegold.pipeline.tables.run_files import Fields
from truegold.verifiers import InputError, Item, Verdict, fingerprint, resolve
from truegold.verifiers.adapters.row_truth import truth_of
from truegold.verifiers.running.batch import DEADLINE_S

VERDICTS = "verdicts"
"""The folder with the verdicts of an unfinished call."""
ROLLOUTS_FILE = "rollouts.parquet"
PASSED = 0.5
"""A response is right if its reward or score is at least this."""
TEXT_CHARS = 20_000
"""Tables keep this number of characters at the end of a completion, where its answer is."""
TEXTS = ("completion", "evidence_a", "evidence_b")
"""The large columns. They are read only for the rollouts that are shown."""
ROLLOUT_INDEX = "rollout_index"
"""The column with the index of a rollout in its table."""
ROW_VERIFIER = "row"
"""The name that stands for each row's own verifier."""

MIN_QUESTION_CHARS = 20
"""A question with fewer characters is not searched for within a prompt. It may occur there by chance."""
KEY_CHARS = 40
"""A question is searched for within a prompt by this number of its last characters."""


class RescoredRollout(TypedDict):
    """A row of `rollouts.parquet`: a rollout with the verdicts of A and B."""

    file: str
    line: int
    step: int | None
    group: int
    id: str | None
    prompt: str
    gold: str | None
    completion: str
    reward: float | None
    logged_reading: str | None
    advantage: float | None
    decision: str | None
    decided_gold: str | None
    decided_score: float | None
    score_a: float | None
    reason_a: str
    extracted_a: str | None
    evidence_a: str
    score_b: float | None
    reason_b: str | None
    extracted_b: str | None
    evidence_b: str | None


ROLLOUT_SCHEMA = arrow_schema(RescoredRollout)


@dataclass(frozen=True)
class DecidedRow:
    """The reviewers' decision about a row."""

    decision: str
    row: Row | None
    """The row with the gold that the reviewers kept or gave. None if they dropped the row."""


Decide = Callable[[Row], DecidedRow | None]
"""A function that returns the decision about a row, or None if there is none."""


def _item_of(row: Row, rollout: LoggedRollout, verifier: str) -> Item:
    return Item(rollout.completion, row["gold"], verifier, row["verifier_args"], problem_of(row))


class KnownRows:
    """The rows of the data set that a run was trained on. They are found by the prompts of rollouts.

    First comes a row with the same text as the prompt. A prompt may also have instructions around the question. So a
    row whose question occurs within the prompt is found, too.
    """

    def __init__(self, data: Path | None, decide: Decide, columns: Columns) -> None:
        """Read the data set: a run, an exported set, or any file. Raises InputError if it cannot be read."""
        self._rows: dict[str, Row] = {}
        self._by_end: dict[str, list[str]] = {}
        self._by_prompt: dict[str, Row | None] = {}
        self._decide = decide
        self._decisions: dict[str, DecidedRow | None] = {}
        for row in _read(data, columns) if data is not None else ():
            question = normalise_for_id(row["prompt"])
            self._rows[question] = row
            if len(question) >= MIN_QUESTION_CHARS:
                self._by_end.setdefault(question[-KEY_CHARS:], []).append(question)
        self._ends = sorted(set(map(len, self._by_end)), reverse=True)

    def row_of(self, rollout: LoggedRollout) -> Row | None:
        """Return the row of a rollout, or None if the data set has none."""
        question = rollout.question
        if question not in self._by_prompt:
            self._by_prompt[question] = self._rows.get(question) or self._row_within(question)
        return self._by_prompt[question]

    def decision_on(self, rollout: LoggedRollout) -> DecidedRow | None:
        """Return the decision about the row of a rollout, or None if there is none."""
        if (row := self.row_of(rollout)) is None:
            return None
        if row["id"] not in self._decisions:
            self._decisions[row["id"]] = self._decide(row)
        return self._decisions[row["id"]]

    def item(self, rollout: LoggedRollout, verifier: str | None) -> Item | None:
        """Return the item to verify for a rollout, or None if no gold is known.

        `verifier`, if given, replaces the row's own verifier. The arguments stay the same.
        """
        if (row := self.row_of(rollout)) is not None:
            return _item_of(row, rollout, verifier or row["verifier"])
        if rollout.gold is None and rollout.verifier is None:
            return None
        problem = rollout.prompt or None
        if (name := verifier or rollout.verifier) is None:
            truth = truth_of({"gold": rollout.gold}, problem)
            if truth.verifier != "math" or truth.unread is not None:  # The row has tests, or cannot be judged.
                return truth.question(rollout.completion)
        return Item(rollout.completion, rollout.gold, name or "math", rollout.verifier_args, problem)

    def _row_within(self, prompt: str) -> Row | None:
        """Return the row whose question occurs within the prompt. Of several, return the one with the longest
        question."""
        inside: set[str] = set()
        for length in self._ends:
            for start in range(len(prompt) - length + 1):
                for question in self._by_end.get(prompt[start : start + length], ()):
                    if prompt.startswith(question, start + length - len(question)):
                        inside.add(question)
        longest = max(inside, key=len, default=None)
        return None if longest is None else self._rows[longest]


def _read(data: Path, columns: Columns) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="truegold-") as scratch:
        # `logs` reads only the last user message of each prompt, so the rows are read in this way, too.
        source = FileSource(path=str(data), columns=columns, last_turn_only=not finished_tables(data))
        tables, _ = tables_of(data, source, Path(scratch), NullProgress())
        return list(read_tables(tables))


@dataclass
class Rescored:
    """The numbers of rollouts that `rescore` read and judged."""

    rollouts: int = 0
    files: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    """The number of rollouts without a gold: neither the log nor the data set has one."""
    verifiers: tuple[str, ...] = ()
    """The names and versions of the verifiers A and B. B may be missing."""
    opinion: Mapping[str, Any] | None = None
    """The counts of the second opinion on unread answers, if one was configured."""


def rescore(
    runs: Sequence[Path],
    out_dir: Path,
    progress: Progress,
    *,
    data: Path | None = None,
    columns: Columns | None = None,
    verifiers: Sequence[str] = (ROW_VERIFIER,),
    reward: str | None = None,
    workers: int = 0,
    deadline_s: float = DEADLINE_S,
    decide: Decide = lambda row: None,
    second_opinion: OpinionConfig | None = None,
) -> Rescored:
    """Judge every rollout again, and write `rollouts.parquet`.

    `verifiers` has one or two names; `row` stands for each row's own verifier. `decide` returns the reviewers' decision
    about a row of `data`. The rollouts of such a row are also judged by the reviewers' gold. A configured second
    opinion is stored in the evidence. Raises InputError if no rollout can be judged.
    """
    names = [None if name == ROW_VERIFIER else name for name in verifiers]
    rescored = Rescored(verifiers=tuple("each row's own" if name is None else fingerprint(name) for name in names))
    for name in filter(None, names):
        resolve(name)
    rows = KnownRows(data, decide, columns or Columns())
    progress.start("verifying logged completions")
    groups: dict[tuple[str, int | None, str], int] = {}
    rollouts, to_write = tee(_judgeable(read_logs(runs, reward), rows, rescored))
    questions = (item for rollout in rollouts for item in _questions(rollout, rows, names))
    opinion = open_opinion(second_opinion, out_dir)
    verify_all = partial(judge_parts, folder=out_dir / VERDICTS, workers=workers, deadline_s=deadline_s)
    verdicts = verify_and_hear(questions, verify_all, opinion)
    out_dir.mkdir(parents=True, exist_ok=True)
    with closing(verdicts), TableWriter(out_dir / ROLLOUTS_FILE, ROLLOUT_SCHEMA) as writer:
        for rollout in to_write:
            # Without steps in the log, all completions of a prompt in a file are one group.
            group = ("" if rollout.step is not None else rollout.file, rollout.step, rollout.question)
            record = _record(rollout, rows.row_of(rollout), groups.setdefault(group, len(groups)))
            for side, _ in zip("ab", names, strict=False):
                record |= _verdict_columns(next(verdicts), side)
            record |= _decided_columns(rows.decision_on(rollout), verdicts)
            writer.write(record)
            progress.advance()
    shutil.rmtree(out_dir / VERDICTS, ignore_errors=True)
    if opinion is not None:
        rescored.opinion, _ = opinion.facts(progress)
        opinion.close()
    if not writer.rows:
        raise InputError(
            f"None of {rescored.rollouts} rollouts can be judged: the logs have no golds.",
            "Name the set that the run was trained on: --data SET",
        )
    return rescored


def _judgeable(rollouts: Iterator[LoggedRollout], rows: KnownRows, rescored: Rescored) -> Iterator[LoggedRollout]:
    """Yield the rollouts that can be judged, and count all of them."""
    for rollout in rollouts:
        rescored.rollouts += 1
        rescored.files[rollout.file] += 1
        if rows.item(rollout, None) is None:
            rescored.unknown += 1
        else:
            yield rollout


def _questions(rollout: LoggedRollout, rows: KnownRows, names: Sequence[str | None]) -> Iterator[Item]:
    for name in names:
        item = rows.item(rollout, name)
        assert item is not None
        yield item
    decided = rows.decision_on(rollout)
    if decided is not None and decided.row is not None:
        yield _item_of(decided.row, rollout, decided.row["verifier"])


def _record(rollout: LoggedRollout, row: Row | None, group: int) -> Fields:
    return {
        "file": rollout.file,
        "line": rollout.line,
        "step": rollout.step,
        "group": group,
        "id": row["id"] if row else None,
        "prompt": row["prompt"] if row else rollout.prompt,
        "gold": row["gold"] if row else rollout.gold,
        "completion": rollout.completion[-TEXT_CHARS:],
        "reward": rollout.reward,
        "logged_reading": rollout.logged_reading,
        "advantage": rollout.advantage,
    }


def _verdict_columns(verdict: Verdict, side: str) -> Fields:
    return {
        f"score_{side}": verdict.score,
        f"reason_{side}": str(verdict.reason),
        f"extracted_{side}": None if verdict.extracted is None else verdict.extracted[-TEXT_CHARS:],
        f"evidence_{side}": dump_json(dict(verdict.evidence)),
    }


def _decided_columns(decided: DecidedRow | None, verdicts: Iterator[Verdict]) -> Fields:
    if decided is None:
        return {"decision": None, "decided_gold": None, "decided_score": None}
    row = decided.row
    score = None if row is None else next(verdicts).score
    return {"decision": decided.decision, "decided_gold": row and row["gold"], "decided_score": score}


def read_rollouts(out_dir: Path) -> pl.DataFrame:
    """Return the table of rollouts with the column ROLLOUT_INDEX, and without the columns TEXTS."""
    scan = _scan(out_dir).select(pl.exclude(TEXTS))
    return scan.with_columns(pl.col("prompt").cast(pl.Categorical)).collect(engine="streaming")


def with_texts(rollouts: pl.DataFrame, out_dir: Path) -> pl.DataFrame:
    """Return some rollouts with the columns TEXTS."""
    chosen = rollouts.lazy().select(ROLLOUT_INDEX)
    texts = (
        _scan(out_dir)
        .select(ROLLOUT_INDEX, *TEXTS)
        .join(chosen, on=ROLLOUT_INDEX, how="semi")
        .collect(engine="streaming")
    )
    whole = rollouts.join(texts, on=ROLLOUT_INDEX, maintain_order="left").with_columns(pl.col("prompt").cast(pl.String))
    return whole.select(*ROLLOUT_SCHEMA.names, pl.exclude(*ROLLOUT_SCHEMA.names, ROLLOUT_INDEX))


def find_settled(settled: pl.DataFrame, out_dir: Path) -> pl.DataFrame:
    """Return ROLLOUT_INDEX and `correct` of the rollouts in `settled`. They are matched by id or prompt, and by
    completion."""
    truths = settled.filter(pl.col("correct").is_not_null())
    scan = _scan(out_dir)
    has_ids = "id" in settled.columns and not scan.select(pl.col("id").is_null().all()).collect().item()
    key = ["id" if has_ids else "prompt", "completion"]
    known = truths.unique(key).lazy().select(*key, "correct")
    return (
        scan.select(ROLLOUT_INDEX, *key)
        .join(known, on=key)
        .select(ROLLOUT_INDEX, "correct")
        .collect(engine="streaming")
    )


def _scan(out_dir: Path) -> pl.LazyFrame:
    return pl.scan_parquet(out_dir / ROLLOUTS_FILE, row_index_name=ROLLOUT_INDEX)
