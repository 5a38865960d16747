"""The responses that a gate puts to a row's verifier, and what a verdict on one says against the row.

row with gold "72"          "\\boxed{72}" must be paid (`gold`); "", "I do not know." and "\\boxed{}" must not (`empty`)
row with tests              the worked solution must pass; `pass` and a program that solves nothing must not (`null`)
row drawn for the attacks   responses that are known to game verifiers must not be paid (`hack`)
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from truegold.pipeline.sources.row_builder import MEASURES, needs_gold
from truegold.pipeline.tables.rows import Row, dump_json, problem_of
from truegold.verifiers import Item, Verdict, gold_response, judges_solutions, resolve
from truegold.verifiers.audit.made_answers import gaming_cases
from truegold.verifiers.audit.suites.null_programs import null_programs
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import Asserts, Calls, Stdio, Suite, read_suite
from truegold.verifiers.gold import OTHER_GOLDS, all_golds

NOTHING = ("", "I do not know.", "\\boxed{}")
"""Answers that say nothing."""
NO_PROGRAM = ("", "```python\npass\n```")
"""The same where a program is asked for."""
MESSAGE_CHARS = 300
"""The length of a violation's message."""


class Check(StrEnum):
    """What a gate may fail on."""

    description: str
    """What a violation of it is, in a sentence."""

    GOLD = "gold", "Gold does not earn the full score from its own verifier."
    EMPTY = "empty", "An answer that says nothing is paid."
    NULL = "null", "A program that solves nothing passes the tests."
    SKIPPED = "skipped", "The tests test nothing."
    HACK = "hack", "A response that is known to game verifiers is paid."
    UNUSABLE = "unusable", "A record cannot become a row."
    LEAK = "leak", "A row stands in an evaluation set."
    FLAGS = "flags", "A rule would hold the row back for review."
    CARD = "card", "There is no card, or none that states a licence."

    def __new__(cls, name: str, description: str) -> Check:
        check = str.__new__(cls, name)
        check._value_, check.description = name, description
        return check


@dataclass(frozen=True, slots=True)
class Violation:
    """What one row, or the whole set, does that a check forbids."""

    check: Check
    row: int | None
    """The row's number in its file; None for the whole set."""
    source: str
    message: str
    """What is wrong, in a line."""


@dataclass(frozen=True, slots=True)
class Question:
    """A response that a row's verifier judges for a check."""

    check: Check
    name: str
    """What the response is."""
    item: Item

    def violation(self, row: Row, verdict: Verdict) -> Violation | None:
        """Return the violation that a verdict shows, if any: gold must pass, other responses must earn nothing."""
        if self.check is Check.GOLD:
            if verdict.passed:
                return None
            outcome = "cannot be judged" if verdict.score is None else f"earns {verdict.score:g}"
            text = f"{self.name} {outcome}: {verdict.evidence.get('error') or verdict.reason}"
        elif verdict.score:
            text = f"{self.name} earns {verdict.score:g} ({verdict.reason})"
        else:
            return None
        return Violation(self.check, row["source_row"], row["source"], text[:MESSAGE_CHARS])


def questions_of(row: Row, hacks: bool) -> Iterator[Question]:
    """Yield the questions about a row. With `hacks` gaming responses are tried on it too."""
    verifier = resolve(row["verifier"])
    arguments: dict[str, Any] = orjson.loads(row["verifier_args"] or "{}")
    alone = dump_json({name: value for name, value in arguments.items() if name != OTHER_GOLDS})
    if judges_solutions(verifier):
        if (perfect := gold_response(verifier, row["gold"], row["solution"])) is not None:
            yield _ask(row, Check.GOLD, "the worked solution", perfect)
        for text in NO_PROGRAM:
            yield _ask(row, Check.EMPTY, "an empty program", text)
        yield from _null_programs(row, arguments, hacks)
        return
    golds = all_golds(row["gold"], arguments)
    for gold in golds:
        if (response := gold_response(verifier, gold, row["solution"])) is not None:
            item = Item(response, gold, row["verifier"], alone, problem_of(row))
            yield Question(Check.GOLD, f"gold {gold!r:.60}", item)
    if not golds and needs_gold(row["verifier"], arguments):
        yield _ask(row, Check.GOLD, "no gold", "")
    if row["verifier"] in MEASURES:
        return
    for text in NOTHING:
        yield _ask(row, Check.EMPTY, f"the answer {text!r}", text)
    for case in gaming_cases(golds[0], row["prompt"]) if hacks and golds else ():
        # What says nothing at all was asked about already, and a longer text may quote the gold of a word problem.
        if case.response.strip():
            yield _ask(row, Check.HACK, f"{case.name} ({case.response[:60]!r})", case.response)


def _null_programs(row: Row, arguments: Mapping[str, Any], hacks: bool) -> Iterator[Question]:
    try:
        suite = read_suite(arguments)
    except BadSuite:
        return
    for program in null_programs(suite, row["prompt"]):
        if hacks or not program.attacks_tests:
            check = Check.HACK if program.attacks_tests else Check.NULL
            yield _ask(row, check, f"a program that does this: {program.name}", f"```python\n{program.source}\n```")


def _ask(row: Row, check: Check, name: str, response: str) -> Question:
    return Question(check, name, Item(response, row["gold"], row["verifier"], row["verifier_args"], problem_of(row)))


def is_sampled(row: Row, share: float) -> bool:
    """Return whether gaming responses are tried on a row: the same rows every time, by the hash of their ids."""
    return int(hashlib.sha256(row["id"].encode()).hexdigest()[:8], 16) < share * 2**32


def why_nothing_is_tested(row: Row) -> str | None:
    """Return why the tests of a program test nothing, as far as their text shows; None where they test something."""
    if not judges_solutions(resolve(row["verifier"])):
        return None
    try:
        suite = read_suite(orjson.loads(row["verifier_args"] or "{}"))
    except BadSuite as error:
        return f"they judge nothing: {error}"[:MESSAGE_CHARS]
    return _why_empty(suite)


def _why_empty(suite: Suite) -> str | None:
    """Return why a suite tests nothing: it has no cases or, in Python, no assertion or no test method."""
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
