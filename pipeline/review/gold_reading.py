"""Reads a gold that a reviewer proposes: as what its verifier reads it, and what the row's samples would earn.

    gold 26 -> 28     read as 28; 3 of 20 samples passed, 17 do now: those that answered 28

`settle` does not apply a gold for which the verifier accepts no answer, and the reviewer is told at once.
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
"""Different responses that are judged anew while a reviewer waits."""
DEADLINE_S = 5.0
"""Seconds for each verdict while a reviewer waits."""
BATCH_DEADLINE_S = 60.0
"""Seconds for a verdict when decisions are weighed all at once, and no reviewer waits for one of them."""


@dataclass(frozen=True)
class Response:
    """A sampled response, and its score under the gold that the row has."""

    text: str
    """A whole completion, or an answer."""
    answer: str
    """The answer that stands for it in a list."""
    votes: int
    score: float | None


@dataclass(frozen=True)
class AnswerChange:
    """An answer whose score another gold changes."""

    answer: str
    votes: int
    before: float | None
    after: float | None


@dataclass(frozen=True, kw_only=True)
class GoldReading:
    """The effects that a new gold would have."""

    readable: bool | None
    """Whether the verifier accepts an answer for it, or None if the verifier does not use golds."""
    reading: str | None = None
    """The gold as the verifier reads it."""
    verdict: str | None = None
    """The reason of its verdict on gold itself."""
    passes_before: int
    passes_after: int
    judged: int = 0
    """Samples that were judged under the new gold."""
    changes: tuple[AnswerChange, ...] = ()
    message: str | None
    """A line that the reviewer should know."""


def with_gold(row: Row, gold: str | None) -> Row:
    """Return a row with a reviewer's gold, and without the golds that were accepted in addition to the old one.

    If tests judge the row, the reviewer's gold is cases to add to them. Raises BadSuite if it cannot be read as cases.
    """
    arguments: dict[str, Any] = orjson.loads(row["verifier_args"])
    if not takes_gold(row):
        return {**row, "verifier_args": dump_json(add_cases(arguments, (gold or "").splitlines()))}
    arguments.pop(OTHER_GOLDS, None)
    return {**row, "gold": gold, "verifier_args": dump_json(arguments)}


def unpayable_because(row: Row, gold: str, deadline_s: float = BATCH_DEADLINE_S) -> FlagRecord | None:
    """Return the flag that says why no answer could earn the reward of this gold, or None if some can."""
    if not takes_gold(row):
        fault, reason = case_fault(row, gold), VetReason.UNREADABLE
        return None if fault is None else flag_record(row, reason, detector="settle", evidence={"error": fault})
    flags = examine_gold(with_gold(row, gold), deadline_s).flags
    return next((flag for flag in flags if flag["reason"] in UNPAYABLE_REASONS), None)


def takes_gold(row: Row) -> bool:
    """Whether the row is judged by a gold, and not by tests."""
    return row["gold"] is not None or not judges_solutions(resolve(row["verifier"]))


def case_fault(row: Row, cases: str) -> str | None:
    """Return why cases cannot be added to the tests of a row, or None if they can be added."""
    try:
        with_gold(row, cases)
    except BadSuite as error:
        return str(error)
    return None


def read_gold(row: Row, gold: str, responses: Sequence[Response]) -> GoldReading:
    """Return what giving the row this gold would do to it and to what was sampled of it."""
    before = sum(response.votes for response in responses if response.score == 1)
    if not takes_gold(row):
        wrong = case_fault(row, gold)
        message = wrong or f"The verifier {row['verifier']} judges by tests: the cases are added to them."
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
        return f"The verifier {row['verifier']} could pay no answer for this gold: {fault['reason']}. It would be held."
    return None if contradiction is None else f"The row's own solution ends in {contradiction['suggestion']}."
