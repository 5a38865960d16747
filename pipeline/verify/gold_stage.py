"""Stage `verify_gold`: every gold must pass its own verifier before anything is trained on it.

    gold "\\frac{1}{2}", verifier math  ->  the response "\\boxed{\\frac{1}{2}}" scores 1.0: no flag
    gold "see picture", verifier math   ->  flag gold_unparsed  {"verifier": "math", "reason": "gold_unparsed", ...}

Input: `rows`, which go on unchanged. Flags, all of which hold a row back for review: `gold_unparsed` (the verifier
cannot read the gold), `gold_fails_verifier` (it scores below 1 against itself), `gold_unverified` (the verifier could
not judge for another reason, which the evidence names). A code row has tests and no gold, so its solution is judged:
one that fails the tests is `gold_fails_verifier`. A row of which no perfect response can be made, such as code without
a solution, is counted as `skip:no_gold_response`.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import VerifyGoldConfig
from truegold.pipeline.ledger import FLAG_SCHEMA, FLAGS_FILE, Ledger, flag_record
from truegold.pipeline.rows import Row, RowReference, TableWriter, count_rows, read_rows
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.verifiers import ConfigError, Item, Reason, Verdict, Verifier, gold_response, resolve, verify_batch

ROWS_FILE = "rows.parquet"
TEXT_CHARS = 500
"""A flag's evidence shows this much of a text."""

COLUMNS = ["id", "prompt", "gold", "verifier", "verifier_args", "solution", "source", "source_row"]


@stage_function(version=1, judges="rows")
def verify_gold(inputs: Mapping[str, Path], config: VerifyGoldConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Judge every gold by its own verifier and flag those that do not pass."""
    path = inputs["rows"]
    total = count_rows(path)
    shutil.copyfile(path, out_dir / ROWS_FILE)
    queue = _Queue()
    rows = paced(read_rows(path, COLUMNS), progress, "verifying gold", total)
    with Ledger(out_dir, "verify_gold") as ledger, TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags:
        for verdict in verify_batch(queue.feed(rows), workers=config.workers):
            row = queue.pending.popleft()
            reason = _flag_reason(verdict)
            if reason is not None:
                evidence = _evidence(row, verdict)
                ledger.flag(row, reason, **evidence)
                flags.write(flag_record(row, reason, detector="verify_gold", evidence=evidence))
    counts = dict(ledger.counts)
    if queue.skipped:
        counts["skip:no_gold_response"] = queue.skipped
    return StageReport(total, total, counts)


class _Pending(RowReference):
    """The part of a row that a flag needs after its gold is judged."""

    gold: str | None
    verifier: str


class _Queue:
    """Makes the items to verify, and keeps their rows until the verdicts come back in the same order."""

    def __init__(self) -> None:
        self.pending: deque[_Pending] = deque()
        self.skipped = 0
        """The rows of which no perfect response can be made."""
        self._verifiers: dict[str, Verifier] = {}

    def feed(self, rows: Iterator[Row]) -> Iterator[Item]:
        """Yield the items, as far as the verifying processes ask for them."""
        for row in rows:
            response = gold_response(self._resolve(row), row["gold"], row["solution"])
            if response is None:
                self.skipped += 1
                continue
            self.pending.append(
                {
                    "id": row["id"],
                    "source": row["source"],
                    "source_row": row["source_row"],
                    "gold": row["gold"],
                    "verifier": row["verifier"],
                }
            )
            yield Item(response, row["gold"], row["verifier"], row["verifier_args"], row["prompt"])

    def _resolve(self, row: Row) -> Verifier:
        name = row["verifier"]
        if name not in self._verifiers:
            try:
                self._verifiers[name] = resolve(name)
            except ConfigError as error:
                location = f"{row['source']}:{row['source_row']}"
                raise ConfigError(f"The verifier of row {location}: {error.message}", error.hint) from None
        return self._verifiers[name]


def _flag_reason(verdict: Verdict) -> str | None:
    if verdict.score is None:
        return "gold_unparsed" if verdict.reason is Reason.GOLD_UNPARSED else "gold_unverified"
    return None if verdict.passed else "gold_fails_verifier"


def _evidence(row: _Pending, verdict: Verdict) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "verifier": row["verifier"],
        "reason": str(verdict.reason),
        "score": verdict.score,
        "gold": None if row["gold"] is None else row["gold"][:TEXT_CHARS],
        "extracted": None if verdict.extracted is None else verdict.extracted[:TEXT_CHARS],
    }
    return evidence | ({"verdict": dict(verdict.evidence)} if verdict.evidence else {})
