"""Further cases for tests that let wrong programs pass, made with a worked solution.

    assert larger(0, 0) == 0        min for max passes, and so does a constant        assert larger(2, 1) == 2
    assert larger(1, 1) == 1                                                          assert larger(0, 3) == 3

The programs to be caught are planted faults that survive and should not, null programs that pass, and programs known to
be wrong that pass. Of the inputs on which they show (`witnesses`) the fewest are taken that catch each of them, then
as many again, at most `MAX_CASES`. What is expected is what the worked solution gives; where there is doubt of that, or
of what the problem allows, nothing is proposed: solutions that disagree, results that vary or depend on the order of
calls, several right answers, an order that is free, a checker or an interactor of the suite's own.
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
"""The most cases that are proposed."""
CATCHES = 2
"""The cases that a program to be caught should fail, where that many are to be had."""

PROPOSED = "proposed_cases"
"""The evidence of a finding that has the cases to add."""
MENDABLE = (VetReason.PAID_NULL, VetReason.WRONG_ACCEPTED, VetReason.WEAK, VetReason.GUESSABLE)
"""The findings that further cases may cure, the gravest first."""
_DOUBTS = frozenset(
    (
        *(VetReason.REFERENCES_DISAGREE, VetReason.FLAKY, VetReason.ORDER_DEPENDENT, VetReason.NEEDS_CHECKER),
        *(VetReason.ANY_ORDER, VetReason.RIGHT_REJECTED, VetReason.CONTRADICTORY),
    )
)


class ProposedCases(NamedTuple):
    """Cases to add."""

    cases: Sequence[str]
    """As `add_cases` takes them."""
    info: Mapping[str, Any]
    """The verifier's arguments with them."""
    missed: Sequence[str]
    """The programs that still pass."""


def propose_cases(state: VetState, kills: Kills, wrong: Sequence[str]) -> ProposedCases | None:
    """Return cases that programs fail which should not pass; None where the tests need none, or none can be made.

    wrong: programs that pass and should not, apart from the planted faults.
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
    """Return inputs that stand as cases, so that each program shows on `CATCHES` of them as far as there is room."""
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
    """Run the solutions on the suite with the cases, and the programs that it should catch."""
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
