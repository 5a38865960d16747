"""Shows a reviewer the effects of a new gold: how the verifier reads it, and the new scores of the row's samples.

    change            message
    gold 26 -> 28     read as 28; 3 of 20 samples passed, now 17 do: those that answered 28
    drop test 1       drops 1: assert f(2) == 5; the worked solution passes

A gold that no answer can match is unpayable. The stage `settle` does not apply it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from truegold.pipeline.tables.ledger import FlagRecord, flag_record
from truegold.pipeline.tables.reasons import UNPAYABLE_REASONS
from truegold.pipeline.tables.rows import Row, dump_json, problem_of
from truegold.pipeline.verify.gold_stage import examine_gold
from truegold.verifiers import Item, Reason, Verdict, judges_solutions, resolve, verify_batch
from truegold.verifiers.audit.suites import ChangedTests, VetReason, change_cases, forms_of_change
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.gold import OTHER_GOLDS

SOLUTION_REASON = "solution_contradicts_gold"
MAX_RESPONSES = 64
"""The maximum number of different responses that are verified while a reviewer waits."""
DEADLINE_S = 5.0
"""The time limit of a verdict while a reviewer waits, in seconds."""
BATCH_DEADLINE_S = 60.0
"""The time limit of a verdict while no reviewer waits, in seconds."""


@dataclass(frozen=True)
class Response:
    """A response that one or more samples gave, with its score under the row's current gold."""

    text: str
    """A completion, or only its answer."""
    answer: str
    """The answer to show in a list."""
    votes: int
    """The number of samples with this response."""
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
    """True if some answer can match the gold, or if the changed tests can judge programs."""
    reading: str | None = None
    """The gold in the form in which the verifier reads it."""
    verdict: str | None = None
    """The reason of the verdict when the gold itself is given as a response."""
    passes_before: int
    passes_after: int
    judged: int = 0
    """The number of samples with a score under the new gold."""
    changes: tuple[AnswerChange, ...] = ()
    message: str | None
    """A message for the reviewer."""


def with_gold(row: Row, gold: str | None) -> Row:
    """Return a row with the reviewer's gold. Further accepted golds of the row are removed.

    If tests judge the row, `gold` has lines that change the tests. Raises BadSuite if these lines cannot be read.
    """
    if not takes_gold(row):
        return {**row, "verifier_args": dump_json(changed_tests(row, gold or "").info)}
    arguments: dict[str, Any] = orjson.loads(row["verifier_args"])
    arguments.pop(OTHER_GOLDS, None)
    return {**row, "gold": gold, "verifier_args": dump_json(arguments)}


def changed_tests(row: Row, lines: str) -> ChangedTests:
    """Return the tests of a row after the changes in `lines`. Raises BadSuite if the lines cannot be read."""
    return change_cases(orjson.loads(row["verifier_args"]), re.split(r"\r\n?|\n", lines))


@dataclass(frozen=True)
class FixFault:
    """The faults that a row has after a fix."""

    unpayable: FlagRecord | None = None
    """The flag that explains why no answer could match the fixed row, or None."""
    solution_fails: bool = False
    """Whether the row's worked solution contradicts the new gold, or fails the new tests."""


def faults_of_fix(row: Row, gold: str, deadline_s: float = BATCH_DEADLINE_S) -> FixFault:
    """Return the faults that a row has after a fix."""
    if takes_gold(row):
        flags = {flag["reason"]: flag for flag in examine_gold(with_gold(row, gold), deadline_s).flags}
        unpayable = next((flag for reason, flag in flags.items() if reason in UNPAYABLE_REASONS), None)
        return FixFault(unpayable, SOLUTION_REASON in flags)
    verdict = None
    if (fault := case_fault(row, gold)) is None:
        verdict = examine_gold(with_gold(row, gold), deadline_s).verdict
        fault = _suite_fault(verdict)
    if fault is not None:
        return FixFault(flag_record(row, VetReason.UNREADABLE, detector="settle", evidence={"error": fault}))
    return FixFault(solution_fails=verdict is not None and verdict.score is not None and not verdict.passed)


def _suite_fault(verdict: Verdict | None) -> str | None:
    """Return the reason why the tests cannot judge the worked solution, or None if they can."""
    is_at_fault = verdict is not None and verdict.reason is Reason.VERIFIER_ERROR
    return str(verdict.evidence.get("error")) if verdict is not None and is_at_fault else None


def takes_gold(row: Row) -> bool:
    """Return True if the row is judged by a gold rather than by tests."""
    return row["gold"] is not None or not judges_solutions(resolve(row["verifier"]))


def case_fault(row: Row, lines: str) -> str | None:
    """Return the reason why a fix of a row's tests cannot be read, or None if it can."""
    try:
        changed_tests(row, lines)
    except BadSuite as error:
        return str(error)
    return None


def is_unreadable(origin: str | None) -> bool:
    """Return True if a row was dropped because its tests cannot be read. `origin` is `STAGE: REASON` of the drop."""
    return (origin or "").endswith(f": {VetReason.UNREADABLE}")


def forms_of_fix(row: Row) -> str:
    """Return a description of the lines that can change a row's tests, for hints and errors."""
    return forms_of_change(orjson.loads(row["verifier_args"]))


def read_gold(row: Row, gold: str, responses: Sequence[Response]) -> GoldReading:
    """Return the effects of giving the row this gold."""
    before = sum(response.votes for response in responses if response.score == 1)
    if not takes_gold(row):
        readable, message = _read_cases(row, gold)
        return GoldReading(readable=readable, passes_before=before, passes_after=before, message=message)
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


def _read_cases(row: Row, lines: str) -> tuple[bool, str]:
    """Return whether the changed tests can judge programs, and a message with the verdict on the worked solution."""
    try:
        changed = changed_tests(row, lines)
    except BadSuite as error:
        return False, f"{error}. {forms_of_fix(row)}."
    parts = [f"drops {', '.join(changed.dropped)}"] if changed.dropped else []
    parts += [f"adds {'; '.join(changed.added)}"] if changed.added else []
    effect = f"The fix {' and '.join(parts)}."
    verdict = examine_gold({**row, "verifier_args": dump_json(changed.info)}, DEADLINE_S).verdict
    if verdict is None:
        return True, f"{effect} There is no worked solution to try."
    if (fault := _suite_fault(verdict)) is not None:
        return False, f"{effect} These tests judge no program, so the row is held: {fault}."
    if verdict.passed:
        return True, f"{effect} The worked solution passes."
    return True, f"{effect} The worked solution does not pass: {dump_json(verdict.evidence.get('failed'))}."


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
