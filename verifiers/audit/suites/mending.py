"""Proposes test cases for suites that let wrong programs pass; a worked solution gives the expected results.

    cases of the suite              programs that pass                  cases to add
    assert larger(0, 0) == 0        min in place of max, or             assert larger(2, 1) == 2
    assert larger(1, 1) == 1        `return a`                          assert larger(0, 3) == 3

Three kinds of programs pass the suite and should fail the new cases:

    mutants           the worked solution with a planted fault (`strength`)
    null programs     programs that do not solve anything, such as one that returns a constant
    wrong programs    programs that are known to be wrong

`witnesses` finds inputs on which these programs differ from the worked solution. Inputs are chosen greedily as new
cases, until each program fails `CATCHES` of them or there are `MAX_CASES` new cases.

No case is proposed if its expected result is in doubt: if solutions disagree, if results vary or depend on the order of
calls, if the problem allows several answers or any order, or if the suite has its own checker or interactor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from truegold.verifiers.audit.suites.solutions import has_own_checker
from truegold.verifiers.audit.suites.strength import Kills, faulty_limits
from truegold.verifiers.audit.suites.trials import PYTHON, Bench
from truegold.verifiers.audit.suites.vet_state import VetReason, VetState, add_cases
from truegold.verifiers.audit.suites.witnesses import InputComparison, compare
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import read_suite

MAX_CASES = 8
"""Maximum number of cases that are proposed."""
CATCHES = 2
"""The number of new cases that each program should fail, if there are enough inputs."""

PROPOSED = "proposed_cases"
"""The key in a finding's evidence that holds the cases to add."""
MENDABLE = (VetReason.PAID_NULL, VetReason.WRONG_ACCEPTED, VetReason.WEAK, VetReason.GUESSABLE)
"""The findings that more cases may cure, the most serious first."""
_DOUBTS = frozenset(  # Findings that put expected results in doubt.
    (
        *(VetReason.REFERENCES_DISAGREE, VetReason.FLAKY, VetReason.ORDER_DEPENDENT, VetReason.NEEDS_CHECKER),
        *(VetReason.ANY_ORDER, VetReason.RIGHT_REJECTED, VetReason.CONTRADICTORY),
    )
)


class ProposedCases(NamedTuple):
    """Cases to add to a suite, and their effect."""

    cases: Sequence[str]
    """The cases in the form that `add_cases` takes."""
    info: Mapping[str, Any]
    """The arguments of the verifier with the cases added."""
    missed: Sequence[str]
    """The wrong programs that still pass."""


def propose_cases(state: VetState, kills: Kills, wrong: Sequence[str]) -> ProposedCases | None:
    """Return cases that wrong programs fail, or None if the suite needs no more cases or none can be made.

    kills: the mutants that were run on the suite, and those that pass it.
    wrong: other programs that pass the suite and should not.
    """
    reasons = {finding.reason for finding in state.findings}
    is_asked = state.options.mutants > 0 and not reasons.isdisjoint(MENDABLE)
    if state.reference is None or not is_asked or _is_doubtful(state, reasons):
        return None
    comparison = kills.comparison or compare(state, faulty_limits(state))
    if comparison is None or not comparison.is_telling:
        return None
    programs = [*(mutant.source for mutant in kills.survivors), *wrong]
    chosen = _choose(comparison, {program: comparison.differences(program) for program in programs})
    cases = [comparison.written(index) for index in chosen]
    return _tried(state, cases, programs) if cases else None


def _is_doubtful(state: VetState, reasons: set[VetReason]) -> bool:
    statement = state.statement
    is_open = statement.several_answers or statement.any_order or statement.interactive
    other_language = state.suite.language != PYTHON
    return bool(reasons & _DOUBTS or is_open or other_language or has_own_checker(state.suite.tests))


def _choose(comparison: InputComparison, differing: Mapping[str, Sequence[int]]) -> list[int]:
    """Return inputs to use as cases, chosen greedily so that each program fails on `CATCHES` of them, if possible."""
    shows = {program: [index for index in each if index in comparison.likely] for program, each in differing.items()}
    ranks = {index: rank for rank, index in enumerate(dict.fromkeys(chain.from_iterable(shows.values())))}
    chosen: list[int] = []
    for times in range(1, CATCHES + 1):
        while len(chosen) < MAX_CASES:
            few = {program: each for program, each in shows.items() if len({*each} & {*chosen}) < times}
            counts = Counter(index for each in few.values() for index in each if index not in chosen)
            if not counts:
                break
            best = max(counts, key=lambda index: (counts[index], -ranks[index]))
            if comparison.confirm(next(program for program, each in few.items() if best in each), best) is None:
                shows = {program: [index for index in each if index != best] for program, each in shows.items()}
            else:
                chosen.append(best)
    return chosen


def _tried(state: VetState, cases: Sequence[str], programs: Sequence[str]) -> ProposedCases | None:
    """Return the proposed cases after running solutions and wrong programs on the suite with these cases.

    Returns None if a solution fails, or if every wrong program still passes.
    """
    try:
        info = add_cases(state.info, cases)
    except BadSuite:
        return None
    bench = Bench(read_suite(info), state.options.tier, state.options.python)
    if not all(bench.run(solution).passed for solution in (state.reference or "", *state.agreeing)):
        return None
    limits = faulty_limits(state)
    missed = [program for program in programs if bench.run(program, limits=limits).passed]
    return ProposedCases(cases, info, missed) if len(missed) < len(programs) else None
