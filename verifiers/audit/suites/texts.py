"""The first step of a vetting: what the texts of problem and tests say, without running anything."""

from __future__ import annotations

from truegold.verifiers.audit.suites.agreement import are_all_alike
from truegold.verifiers.audit.suites.case_texts import (
    find_contradictions,
    find_cut_off,
    find_duplicates,
    find_empty_inputs,
    guess_chance,
    rival_outputs,
)
from truegold.verifiers.audit.suites.diagnosis import Sign, needs_checker
from truegold.verifiers.audit.suites.findings import Severity, VetReason
from truegold.verifiers.audit.suites.known_cases import count_cases, tested_names
from truegold.verifiers.audit.suites.leaks import leaked_cases, mentions
from truegold.verifiers.audit.suites.repairs import Repair, has_checker_program
from truegold.verifiers.audit.suites.requested_checker import requested_checker
from truegold.verifiers.audit.suites.work import Work
from truegold.verifiers.code.suite import Calls, Stdio

SHOWN_CASES = 20
"""The most case indexes that evidence shows."""

_ADD_CASES = "add cases that the problem's text does not show"
_CHECK_TEST_CODE = "see whether the test code takes every right answer"


def check_texts(work: Work) -> None:
    """Take broken cases out, and set the checker where the problem's text asks for it."""
    tests = work.suite.tests
    if work.statement.interactive is not None and isinstance(tests, Stdio) and tests.interactor is None:
        work.report(VetReason.INTERACTIVE, Severity.DROP, {"said": work.statement.interactive})
    if not isinstance(tests, Stdio | Calls):
        _report_free_answers(work)
        return
    if work.cases < work.options.min_cases:
        work.report(VetReason.TOO_FEW, Severity.FLAG, {"cases": work.cases}, "add cases")
    has_program = has_checker_program(tests)
    contradictory = find_contradictions(work.known)
    if has_program:
        contradictory = []  # A checker program takes two right answers to one input.
    elif are_all_alike(rival_outputs(work.known), work.statement.constructs is not None):
        evidence = {"cases": contradictory[:SHOWN_CASES]}
        work.findings.append(needs_checker(Sign.SAME_INPUT, evidence, work.statement))
        return
    cut_off = find_cut_off(tests)
    for reason, severity, cases in (
        (VetReason.CONTRADICTORY, Severity.REPAIR, contradictory),
        (VetReason.TRUNCATED, Severity.REPAIR, cut_off),
        (VetReason.DUPLICATE, Severity.NOTE, find_duplicates(work.known)),
        (VetReason.EMPTY_INPUT, Severity.NOTE, find_empty_inputs(tests)),
    ):
        if cases:
            work.report(reason, severity, {"cases": cases[:SHOWN_CASES], "count": len(cases)})
    work.repair(Repair(without=frozenset(contradictory) | frozenset(cut_off)))
    if not has_program:
        _set_checker(work, tests)


def check_guessing(work: Work) -> float | None:
    """Return the chance that a guess passes; None where not all outputs can be read."""
    if len(work.known) < count_cases(work.suite.tests):
        return None
    chance = guess_chance([case.value for case in work.known])
    if chance is not None and chance > work.options.max_guess_chance:
        work.report(VetReason.GUESSABLE, Severity.FLAG, {"chance": round(chance, 4)}, "add cases with other outputs")
    return chance


def check_leaks(work: Work) -> float | None:
    """Return the share of the cases that stand in the problem's text; None where there is no text or no known case."""
    if not work.prompt:
        return None
    names = [name.replace("()", "").rpartition(".")[2] for name in tested_names(work.suite.tests)]
    unnamed = [name for name in names if name and not mentions(work.prompt, name)]
    if unnamed and len(unnamed) == len(names):
        work.report(VetReason.UNNAMED, Severity.FLAG, {"names": unnamed}, "name it in the problem's text")
    if not work.known:
        return None
    leaked = leaked_cases(work.known, work.prompt, printed=isinstance(work.suite.tests, Stdio))
    share = len(leaked) / max(len(work.known), count_cases(work.suite.tests))
    evidence = {"cases": leaked[:SHOWN_CASES], "share": round(share, 4)}
    if share == 1.0:
        work.report(VetReason.MEMORIZABLE, Severity.FLAG, evidence, _ADD_CASES)
    elif share > work.options.max_leaked:
        work.report(VetReason.LEAKED, Severity.FLAG, evidence, _ADD_CASES)
    return share


def _report_free_answers(work: Work) -> None:
    """Flag test code where several answers are right: whether it takes them all, only a person can see."""
    several, order = work.statement.several_answers, work.statement.order_of_output
    if several is not None:
        evidence = {"sign": str(Sign.TEXT), "said": several}
        work.report(VetReason.NEEDS_CHECKER, Severity.FLAG, evidence, _CHECK_TEST_CODE)
    elif order is not None:
        work.report(VetReason.ANY_ORDER, Severity.FLAG, {"said": order}, _CHECK_TEST_CODE)


def _set_checker(work: Work, tests: Stdio | Calls) -> None:
    if work.statement.several_answers is not None:
        work.findings.append(needs_checker(Sign.TEXT, {}, work.statement))
        return
    checker, findings = requested_checker(tests, work.statement)
    work.findings += findings
    work.repair(Repair(checker=checker))
