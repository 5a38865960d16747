"""Checks that only a gate makes: responses that a row's verifier must reject, and tests that test nothing.

row with gold "72"          must reject "", "I do not know." and "\\boxed{}" (`empty`)
row with tests              must reject an empty program and `pass` (`empty`), and assert something (`skipped`)
row sampled for attacks     must reject responses that are known to game verifiers (`hack`)
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import orjson

from truegold.pipeline.sources.row_builder import MEASURES
from truegold.pipeline.tables.rows import Row, problem_of
from truegold.verifiers import Item, Reason, Verdict, judges_solutions, resolve
from truegold.verifiers.audit.made_answers import gaming_cases
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import Asserts, Calls, Stdio, Suite, UnitTest, read_suite
from truegold.verifiers.gold import all_golds

EMPTY_PROGRAM = "```python\npass\n```"
"""A program that does nothing. A suite that cannot judge it cannot judge any program."""
NOTHING = ("", "I do not know.", "\\boxed{}")
"""Responses without an answer."""
NO_PROGRAM = ("", "```python\npass\n```")
"""Responses without a program."""
MESSAGE_CHARS = 300
"""The maximum number of characters of a violation's message."""


class Check(StrEnum):
    """A check of a gate."""

    description: str
    """A violation of the check, described in a sentence."""

    GOLD = "gold", "Gold does not earn the full score from its own verifier."
    EMPTY = "empty", "A response without an answer earns a reward."
    NULL = "null", "A program that solves nothing passes the tests."
    SKIPPED = "skipped", "The tests test nothing."
    HACK = "hack", "A response that is known to game verifiers earns a reward."
    UNUSABLE = "unusable", "A record cannot become a row."
    LEAK = "leak", "A row is in an evaluation set."
    HELD = "held", "Curation would hold the row back for review."
    FLAGS = "flags", "A rule flags the row, whether that holds it back or only advises."
    DROPPED = "dropped", "Curation would drop the row."
    EDITED = "edited", "Curation would repair damage in the row."
    CARD = "card", "There is no card that states a licence."

    def __new__(cls, name: str, description: str) -> Check:
        check = str.__new__(cls, name)
        check._value_, check.description = name, description
        return check


@dataclass(frozen=True, slots=True)
class Violation:
    """The violation of a check by one row, or by the whole set."""

    check: Check
    row: int | None
    """The row's number in its file; None for the whole set."""
    source: str
    message: str
    """The fault, in one line."""
    kind: str = ""
    """The reason of curation for the violation; empty for checks that only a gate makes."""

    @property
    def row_key(self) -> tuple[str, int | None]:
        """The key that identifies the row: source and number."""
        return self.source, self.row

    @property
    def line(self) -> str:
        """The violation with its location: `train.jsonl:4: truncated_text: ...`."""
        return f"{self.source}:{self.row or ''}: {self.message}"


@dataclass(frozen=True, slots=True)
class Question:
    """A response that a row's verifier has to reject."""

    check: Check
    name: str
    """The name of the response."""
    item: Item

    def violation(self, row: Row, verdict: Verdict) -> Violation | None:
        """Return the violation if the verdict has a score above 0, else None."""
        if not verdict.score:
            return None
        text = f"{self.name} earns {verdict.score:g} ({verdict.reason})"
        return Violation(self.check, row["source_row"], row["source"], text[:MESSAGE_CHARS])


def questions_of(row: Row, hacks: bool) -> Iterator[Question]:
    """Yield the questions about a row; with `hacks`, also gaming responses."""
    if judges_solutions(resolve(row["verifier"])):
        for text in NO_PROGRAM:
            yield _ask(row, Check.EMPTY, "an empty program", text)
        return
    if row["verifier"] in MEASURES:
        return
    for text in NOTHING:
        yield _ask(row, Check.EMPTY, f"the answer {text!r}", text)
    golds = all_golds(row["gold"], orjson.loads(row["verifier_args"] or "{}")) if hacks else ()
    for case in gaming_cases(golds[0], row["prompt"]) if golds else ():
        # Empty responses are asked above, and a longer text may contain the gold of a word problem.
        if case.response.strip():
            yield _ask(row, Check.HACK, f"{case.name} ({case.response[:60]!r})", case.response)


def _ask(row: Row, check: Check, name: str, response: str) -> Question:
    return Question(check, name, Item(response, row["gold"], row["verifier"], row["verifier_args"], problem_of(row)))


def is_sampled(row: Row, share: float) -> bool:
    """Return whether gaming responses are tried on a row. Rows are sampled by the hash of their ids."""
    return int(hashlib.sha256(row["id"].encode()).hexdigest()[:8], 16) < share * 2**32


def why_nothing_is_tested(row: Row) -> str | None:
    """Return the reason why the tests of a program test nothing, or None if they test something."""
    verifier = resolve(row["verifier"])
    if not judges_solutions(verifier):
        return None
    arguments = orjson.loads(row["verifier_args"] or "{}")
    try:
        suite = read_suite(arguments)
    except BadSuite as error:
        return f"they judge nothing: {error}"[:MESSAGE_CHARS]
    if (why := _why_empty(suite)) is not None or not isinstance(suite.tests, Asserts | UnitTest):
        return why
    verdict = verifier(EMPTY_PROGRAM, None, info=arguments)
    if verdict.reason != Reason.VERIFIER_ERROR:
        return None
    return f"they judge nothing: {verdict.evidence.get('error')}"[:MESSAGE_CHARS]


def _why_empty(suite: Suite) -> str | None:
    """Return the reason why a suite tests nothing: no cases, no assertion or no test method. Else return None."""
    tests = suite.tests
    if isinstance(tests, Stdio | Calls):
        return None if tests.cases else "there are no cases"
    if suite.language != "python":
        return None
    try:
        tree = ast.parse(tests.code)
    except SyntaxError:
        return None
    if isinstance(tests, Asserts):
        has_checks = any(isinstance(node, ast.Assert | ast.Raise | ast.With) for node in ast.walk(tree))
        called = (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))
        return None if has_checks or any("assert" in name.lower() for name in called) else "nothing is asserted"
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return None if any(node.name.startswith("test") for node in functions) else "there is no test method"
