"""Checks a gold that a reviewer proposes: the verifier's reading of it, and the new scores of the row's samples.

    gold 26 -> 28     read as 28; 3 of 20 samples passed, now 17 do: those that answered 28

`settle` does not apply a gold that no answer could match, and the reviewer sees this at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from truegold.pipeline.tables.ledger import FlagRecord, flag_record
from truegold.pipeline.tables.reasons import UNPAYABLE_REASONS
from truegold.pipeline.tables.rows import Row, dump_json, problem_of
from truegold.pipeline.verify.gold_stage import examine_gold
from truegold.verifiers import Item, judges_solutions, resolve, verify_batch
from truegold.verifiers.audit.suites import VetReason, add_cases
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.gold import OTHER_GOLDS

SOLUTION_REASON = "solution_contradicts_gold"
MAX_RESPONSES = 64
"""The number of different responses that are verified while a reviewer waits."""
DEADLINE_S = 5.0
"""The time limit of a verdict while a reviewer waits."""
BATCH_DEADLINE_S = 60.0
"""The time limit of a verdict when all decisions are combined and no reviewer waits."""


@dataclass(frozen=True)
class Response:
    """A sampled response, with its score under the row's gold."""

    text: str
    """A completion, or only its answer."""
    answer: str
    """The answer to show in a list."""
    votes: int
    score: float | None


@dataclass(frozen=True)
class AnswerChange:
    """An answer whose score changes with the new gold."""

    answer: str
    votes: int
    before: float | None
    after: float | None


@dataclass(frozen=True, kw_only=True)
class GoldReading:
    """The effects of a new gold."""

    readable: bool | None
    """True if some answer could match the gold; None if the verifier uses no golds."""
    reading: str | None = None
    """The gold in the form in which the verifier reads it."""
    verdict: str | None = None
    """The reason in the verifier's verdict on the gold as a response."""
    passes_before: int
    passes_after: int
    judged: int = 0
    """The number of samples with a score under the new gold."""
    changes: tuple[AnswerChange, ...] = ()
    message: str | None
    """A message for the reviewer."""


def with_gold(row: Row, gold: str | None) -> Row:
    """Return a row with the reviewer's gold; golds that were accepted in addition to the old one are removed.

    If tests judge the row, `gold` has cases to add to them. Raises BadSuite if it cannot be read as cases.
    """
    arguments: dict[str, Any] = orjson.loads(row["verifier_args"])
    if not takes_gold(row):
        return {**row, "verifier_args": dump_json(add_cases(arguments, (gold or "").splitlines()))}
    arguments.pop(OTHER_GOLDS, None)
    return {**row, "gold": gold, "verifier_args": dump_json(arguments)}


def unpayable_because(row: Row, gold: str, deadline_s: float = BATCH_DEADLINE_S) -> FlagRecord | None:
    """Return the flag that explains why no answer could match this gold, or None."""
    if not takes_gold(row):
        fault, reason = case_fault(row, gold), VetReason.UNREADABLE
        return None if fault is None else flag_record(row, reason, detector="settle", evidence={"error": fault})
    flags = examine_gold(with_gold(row, gold), deadline_s).flags
    return next((flag for flag in flags if flag["reason"] in UNPAYABLE_REASONS), None)


def takes_gold(row: Row) -> bool:
    """Return True if the row is judged by a gold rather than by tests."""
    return row["gold"] is not None or not judges_solutions(resolve(row["verifier"]))


def case_fault(row: Row, cases: str) -> str | None:
    """Return the reason why cases cannot be added to the tests of a row, or None."""
    try:
        with_gold(row, cases)
    except BadSuite as error:
        return str(error)
    return None


def read_gold(row: Row, gold: str, responses: Sequence[Response]) -> GoldReading:
    """Return the effects of giving the row this gold."""
    before = sum(response.votes for response in responses if response.score == 1)
    if not takes_gold(row):
        wrong = case_fault(row, gold)
        message = wrong or f"The verifier {row['verifier']} judges by tests: the cases will be added to them."
        return GoldReading(readable=wrong is None, passes_before=before, passes_after=before, message=message)
    if not gold.strip():
        message = "A fix needs the right gold."
        return GoldReading(
            readable=False, verdict="gold_missing", passes_before=before, passes_after=0, message=message
        )
    row = with_gold(row, gold)
    examined = examine_gold(row, DEADLINE_S)
    reasons = {flag["reason"]: flag for flag in examined.flags}
    fault = next((reasons[reason] for reason in UNPAYABLE_REASONS if reason in reasons), None)
    chosen = sorted(responses, key=lambda response: -response.votes)[:MAX_RESPONSES]
    problem = problem_of(row)
    to_judge = [Item(response.text, gold, row["verifier"], row["verifier_args"], problem) for response in chosen]
    verdicts = verify_batch(to_judge, workers=1, item_deadline_s=DEADLINE_S)
    rejudged = [(response, verdict.score) for response, verdict in zip(chosen, verdicts, strict=True)]
    return GoldReading(
        readable=fault is None,
        reading=examined.reading,
        verdict=None if examined.verdict is None else str(examined.verdict.reason),
        passes_before=sum(response.votes for response in chosen if response.score == 1),
        passes_after=sum(response.votes for response, score in rejudged if score == 1),
        judged=sum(response.votes for response, score in rejudged if score is not None),
        changes=_changes(rejudged),
        message=_message(row, fault, reasons.get(SOLUTION_REASON)),
    )


def _changes(rejudged: Iterable[tuple[Response, float | None]]) -> tuple[AnswerChange, ...]:
    votes: Counter[tuple[str, float | None, float | None]] = Counter()
    for response, score in rejudged:
        if score != response.score:
            votes[response.answer, response.score, score] += response.votes
    return tuple(AnswerChange(answer, count, before, after) for (answer, before, after), count in votes.most_common())


def _message(row: Row, fault: FlagRecord | None, contradiction: FlagRecord | None) -> str | None:
    if fault is not None:
        why = orjson.loads(fault["evidence"]).get("why")
        reason = f"{fault['reason']}: {why}" if why else fault["reason"]
        return f"The verifier {row['verifier']} accepts no answer for this gold ({reason}): the row is held."
    return None if contradiction is None else f"The row's own solution ends in {contradiction['suggestion']}."
