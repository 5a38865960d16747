"""Judges stored rollouts again, by one verifier or by two, and says what the logged rewards were worth.

    rescore([Path("out/completions")], out_dir, data=Path("out"), verifiers=("math", "math_verify"))

`flips.parquet` has every rollout on which two judges differ (the log and a verifier, or both verifiers), with what each
read; `prompts.parquet` every prompt that looks mislabeled, dead or saturated; `rollouts.parquet` every verdict;
`summary.json` and `report.md` the counts. A verdict without a score accuses nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import tee
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from truegold.pipeline.rescore.logs import read_logs
from truegold.pipeline.rescore.rollout import Rollout
from truegold.pipeline.rescore.truths import Decide, DecidedRow, Truths
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.tables.rows import TableWriter, dump_json
from truegold.verifiers import InputError, Item, Verdict, fingerprint, resolve, verify_batch
from truegold.verifiers.running.batch import DEADLINE_S

ROLLOUTS_FILE = "rollouts.parquet"
PASSED = 0.5
"""A reward, or a score, from here on says that the response is right."""
TEXT_CHARS = 20_000
"""Tables keep so much of a completion: its end, where answers stand."""
ROW_VERIFIER = "row"
"""What a verifier is called that is each row's own."""

ROLLOUT_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("step", pa.int64()),
        ("group", pa.int64()),
        ("id", pa.string()),
        ("prompt", pa.string()),
        ("gold", pa.string()),
        ("completion", pa.string()),
        ("reward", pa.float64()),
        ("logged_reading", pa.string()),
        ("advantage", pa.float64()),
        ("decision", pa.string()),
        ("decided_gold", pa.string()),
        ("decided_score", pa.float64()),
        *[
            (f"{name}_{side}", kind)
            for side in ("a", "b")
            for name, kind in (
                ("score", pa.float64()),
                ("reason", pa.string()),
                ("extracted", pa.string()),
                ("evidence", pa.string()),
            )
        ],
    ]
)


@dataclass
class Rescored:
    """What `rescore` has read and judged, before it is analysed."""

    rollouts: int = 0
    files: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    """Rollouts that nothing is known to judge by: no gold in the log, no row in the set."""
    verifiers: tuple[str, ...] = ()
    """What judged, with versions: A, and B where there is one."""


def rescore(
    runs: Sequence[Path],
    out_dir: Path,
    progress: Progress,
    *,
    data: Path | None = None,
    verifiers: Sequence[str] = (ROW_VERIFIER,),
    reward: str | None = None,
    workers: int = 0,
    deadline_s: float = DEADLINE_S,
    decide: Decide = lambda row: None,
) -> Rescored:
    """Judge every rollout again and write `rollouts.parquet`.

    `verifiers` are one or two names; `row` is each row's own. `decide` says what reviewers have decided about a row of
    `data`: whether a rollout is right by their gold is asked of the row's own verifier. Raises InputError where no
    rollout can be judged.
    """
    names = [None if name == ROW_VERIFIER else name for name in verifiers]
    rescored = Rescored(verifiers=tuple("each row's own" if name is None else fingerprint(name) for name in names))
    for name in filter(None, names):
        resolve(name)
    truths = Truths(data)
    progress.start("verifying logged completions")
    groups = _Groups()
    rollouts, to_write = tee(_known(read_logs(runs, reward), truths, rescored))
    decided = _DecidedRows(truths, decide)
    questions = (item for rollout in rollouts for item in _questions(rollout, truths, names, decided))
    verdicts = verify_batch(questions, workers, item_deadline_s=deadline_s)
    out_dir.mkdir(parents=True, exist_ok=True)
    with closing(verdicts), TableWriter(out_dir / ROLLOUTS_FILE, ROLLOUT_SCHEMA) as writer:  # type: ignore[type-var]
        for rollout in to_write:
            record = _record(rollout, truths, groups)
            for side, _ in zip("ab", names, strict=False):
                record |= _verdict_columns(next(verdicts), side)
            record |= _decided_columns(decided.decision_on(rollout), verdicts)
            writer.write(record)
            progress.advance()
    if not writer.rows:
        raise InputError(
            f"None of {rescored.rollouts} rollouts can be judged: the logs have no golds.",
            "Name the set that the run was trained on: --data SET",
        )
    return rescored


def _known(rollouts: Iterator[Rollout], truths: Truths, rescored: Rescored) -> Iterator[Rollout]:
    """Yield the rollouts that can be judged, and count all."""
    for rollout in rollouts:
        rescored.rollouts += 1
        rescored.files[rollout.file] += 1
        if truths.item(rollout, None) is None:
            rescored.unknown += 1
        else:
            yield rollout


class _DecidedRows:
    """What reviewers have decided about the rows that rollouts answer; each row is asked about once."""

    def __init__(self, truths: Truths, decide: Decide) -> None:
        self._truths, self._decide = truths, decide
        self._known: dict[str, DecidedRow | None] = {}

    def decision_on(self, rollout: Rollout) -> DecidedRow | None:
        """Return what was decided about a rollout's row."""
        row = self._truths.row_of(rollout)
        if row is None:
            return None
        if row["id"] not in self._known:
            self._known[row["id"]] = self._decide(row)
        return self._known[row["id"]]


def _questions(rollout: Rollout, truths: Truths, names: Sequence[str | None], decided: _DecidedRows) -> Iterator[Item]:
    for name in names:
        item = truths.item(rollout, name)
        assert item is not None
        yield item
    decision = decided.decision_on(rollout)
    if decision is not None and (item := decision.item(rollout)) is not None:
        yield item


class _Groups:
    """Numbers the groups: the completions of one prompt in one step."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int | None, str], int] = {}

    def index_of(self, rollout: Rollout) -> int:
        """Return the number of a rollout's group; without a step, all completions of a prompt in a file are one."""
        key = ("" if rollout.step is not None else rollout.file, rollout.step, rollout.question)
        return self._numbers.setdefault(key, len(self._numbers))


def _record(rollout: Rollout, truths: Truths, groups: _Groups) -> dict[str, Any]:
    row = truths.row_of(rollout)
    return {
        "file": rollout.file,
        "line": rollout.line,
        "step": rollout.step,
        "group": groups.index_of(rollout),
        "id": row["id"] if row else None,
        "prompt": row["prompt"] if row else rollout.prompt,
        "gold": row["gold"] if row else rollout.gold,
        "completion": rollout.completion[-TEXT_CHARS:],
        "reward": rollout.reward,
        "logged_reading": rollout.logged_reading,
        "advantage": rollout.advantage,
    }


def _verdict_columns(verdict: Verdict, side: str) -> dict[str, Any]:
    return {
        f"score_{side}": verdict.score,
        f"reason_{side}": str(verdict.reason),
        f"extracted_{side}": None if verdict.extracted is None else verdict.extracted[-TEXT_CHARS:],
        f"evidence_{side}": dump_json(dict(verdict.evidence)),
    }


def _decided_columns(decided: DecidedRow | None, verdicts: Iterator[Verdict]) -> dict[str, Any]:
    if decided is None:
        return {"decision": None, "decided_gold": None, "decided_score": None}
    row = decided.row
    score = None if row is None else next(verdicts).score
    return {"decision": decided.decision, "decided_gold": row and row["gold"], "decided_score": score}


def read_rollouts(out_dir: Path) -> pl.DataFrame:
    """Return the table of verdicts."""
    return pl.read_parquet(out_dir / ROLLOUTS_FILE)
