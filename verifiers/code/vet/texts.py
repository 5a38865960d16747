"""The first step of a vetting: what the texts of problem and tests say, without running anything."""

from __future__ import annotations

from truegold.verifiers.code.suite import Calls, Stdio
from truegold.verifiers.code.vet.agreement import several_right
from truegold.verifiers.code.vet.case_texts import contradictions, cut_off, duplicates, empty, rivals
from truegold.verifiers.code.vet.diagnosis import Sign, needs_checker
from truegold.verifiers.code.vet.findings import Severity, VetReason
from truegold.verifiers.code.vet.guessing import guess_chance
from truegold.verifiers.code.vet.known_cases import count_cases, tested_names
from truegold.verifiers.code.vet.leaks import leaked, mentions
from truegold.verifiers.code.vet.repairs import Repair, has_own_checker
from truegold.verifiers.code.vet.stated import stated
from truegold.verifiers.code.vet.work import Work

SHOWN_CASES = 20
"""Numbers of cases that evidence shows."""

_MORE_CASES = "add cases that the problem's text does not show"
_SEE = "see whether the test code takes every right answer"


def read_texts(work: Work) -> None:
    """Broken cases are taken out, and the checker is set where the problem's text asks for it."""
    tests = work.suite.tests
    if work.statement.interactive is not None and isinstance(tests, Stdio):
        work.find(VetReason.INTERACTIVE, Severity.DROP, {"said": work.statement.interactive})
    if not isinstance(tests, Stdio | Calls):
        _said_of_code(work)
        return
    if work.cases < work.options.min_cases:
        work.find(VetReason.TOO_FEW, Severity.FLAG, {"cases": work.cases}, "add cases")
    own_checker = has_own_checker(tests)
    broken: set[int] = set()
    found = {VetReason.CONTRADICTORY: contradictions(work.known), VetReason.TRUNCATED: cut_off(tests)}
    if own_checker:
        found[VetReason.CONTRADICTORY] = []  # two right answers to one input are no contradiction
    elif several_right(rivals(work.known), work.statement.constructs is not None):
        evidence = {"cases": found[VetReason.CONTRADICTORY][:SHOWN_CASES]}
        work.findings.append(needs_checker(Sign.SAME_INPUT, evidence, work.statement))
        return
    for reason, cases in found.items():
        if cases:
            work.find(reason, Severity.REPAIR, {"cases": cases[:SHOWN_CASES], "count": len(cases)})
            broken |= set(cases)
    for reason, cases in ((VetReason.DUPLICATE, duplicates(work.known)), (VetReason.EMPTY_INPUT, empty(tests))):
        if cases:
            work.find(reason, Severity.NOTE, {"cases": cases[:SHOWN_CASES], "count": len(cases)})
    work.repair(Repair(without=frozenset(broken)))
    if not own_checker:
        _statement(work, tests)


def guess(work: Work) -> float | None:
    """The chance that a guess passes; None where not all outputs can be read."""
    if len(work.known) < count_cases(work.suite.tests):
        return None
    chance = guess_chance([case.value for case in work.known])
    if chance is not None and chance > work.options.max_guess_chance:
        work.find(VetReason.GUESSABLE, Severity.FLAG, {"chance": round(chance, 4)}, "add cases with other outputs")
    return chance


def leaks(work: Work) -> float | None:
    """The share of the cases that stand in the problem's text."""
    if not work.prompt:
        return None
    names = [name.replace("()", "").rpartition(".")[2] for name in tested_names(work.suite.tests)]
    unnamed = [name for name in names if name and not mentions(work.prompt, name)]
    if unnamed and len(unnamed) == len(names):
        work.find(VetReason.UNNAMED, Severity.FLAG, {"names": unnamed}, "name it in the problem's text")
    if not work.known:
        return None
    found = leaked(work.known, work.prompt, printed=isinstance(work.suite.tests, Stdio))
    share = len(found) / max(len(work.known), count_cases(work.suite.tests))
    evidence = {"cases": found[:SHOWN_CASES], "share": round(share, 4)}
    if share == 1.0:
        work.find(VetReason.MEMORIZABLE, Severity.FLAG, evidence, _MORE_CASES)
    elif share > work.options.max_leaked:
        work.find(VetReason.LEAKED, Severity.FLAG, evidence, _MORE_CASES)
    return share


def _said_of_code(work: Work) -> None:
    """Test code may well take every right answer: whether it does, a person has to see."""
    several, order = work.statement.several_answers, work.statement.order_of_output
    if several is not None:
        work.find(VetReason.NEEDS_CHECKER, Severity.FLAG, {"sign": str(Sign.TEXT), "said": several}, _SEE)
    elif order is not None:
        work.find(VetReason.ANY_ORDER, Severity.FLAG, {"said": order}, _SEE)


def _statement(work: Work, tests: Stdio | Calls) -> None:
    if work.statement.several_answers is not None:
        work.findings.append(needs_checker(Sign.TEXT, {}, work.statement))
        return
    checker, findings = stated(tests, work.statement)
    work.findings += findings
    work.repair(Repair(checker=checker))
