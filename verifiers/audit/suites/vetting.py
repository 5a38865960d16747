"""Vets the tests of a problem: decides whether a reward may be computed with them.

    vetting = vet({"tests": {"type": "stdio", "cases": [...]}}, prompt="You are given ...", references=["n = int(..."])
    vetting.outcome            keep, repair or drop
    vetting.findings           the reasons, each with its evidence
    vetting.repaired           the verifier's arguments after the repair
    vetting.kill_rate          0.93: the tests caught 93 % of the faults planted in the worked solution

There are three steps:

1. Check the texts of problem and tests (`text_checks`).
2. Run worked solutions on every case, several times, with other hash seeds and in another order (`solutions`).
3. Run null programs, planted faults, and programs known to be right or wrong (`strength`).

Tests are repaired only mechanically: a case is removed, or a checker or limit is changed. The third step measures the
repaired tests. For weak tests, further cases are proposed or added (`mending`).

Not covered: whether the tests agree with the problem's text, beyond the evidence of worked solutions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from truegold.verifiers.audit.suites.mending import MENDABLE, PROPOSED, ProposedCases, propose_cases
from truegold.verifiers.audit.suites.null_programs import NullProgram
from truegold.verifiers.audit.suites.solutions import missing_package, run_solutions
from truegold.verifiers.audit.suites.strength import Kills, find_paid_nulls, measure_kills, misjudged
from truegold.verifiers.audit.suites.text_checks import check_guessing, check_leaks, check_texts
from truegold.verifiers.audit.suites.vet_state import (
    Severity,
    SuiteFinding,
    SuiteOutcome,
    VetOptions,
    VetReason,
    VetState,
    evidence_text,
    outcome_of,
)
from truegold.verifiers.code.outcomes import BadSuite, CannotJudge
from truegold.verifiers.sandbox.execution import SandboxError
from truegold.verifiers.verdict import Reason


@dataclass(frozen=True, slots=True)
class Vetting:
    """The result of vetting a suite. A measure is None if it is unknown, for example without a worked solution."""

    outcome: SuiteOutcome
    findings: Sequence[SuiteFinding]
    """The findings, the most serious first."""
    repaired: Mapping[str, Any] | None = None
    """The verifier's arguments after the repair, or None without a repair."""
    cases: int = 0
    """The number of cases before the repair."""
    kept: int = 0
    """The number of cases after the repair."""
    references: int = 0
    """The number of worked solutions that ran."""
    kills: Kills = field(default_factory=Kills)
    """The results of running planted faults."""
    paid: Sequence[str] = ()
    """The names of the null programs that pass."""
    headroom: float | None = None
    """The CPU time that the worked solution needs, as a share of the limit after the repair."""
    guess_chance: float | None = None
    """The chance that a guess passes all cases."""
    leaked: float | None = None
    """The share of cases that the problem's text shows."""
    caught: float | None = None
    """The share of known wrong programs that fail (true negative rate)."""
    accepted: float | None = None
    """The share of known right programs that pass (true positive rate)."""

    @property
    def kill_rate(self) -> float | None:
        """The share of planted faults that the tests catch, or None without any."""
        return self.kills.rate

    @property
    def reasons(self) -> list[str]:
        """The reasons of the findings, each once, the most serious first."""
        return list(dict.fromkeys(str(finding.reason) for finding in self.findings))


def vet(
    info: Mapping[str, Any],
    *,
    prompt: str | None = None,
    references: Sequence[str] = (),
    wrong: Sequence[str] = (),
    right: Sequence[str] = (),
    options: VetOptions | None = None,
) -> Vetting:
    """Vet the tests of one problem. Raises SandboxError if the sandbox fails.

    info: the verifier's arguments. prompt: the problem's text. references: worked solutions. wrong, right: programs
    known to be wrong or right.
    """
    try:
        return _run_steps(VetState(info, prompt, options or VetOptions()), references, wrong, right)
    except BadSuite as error:
        return _unreadable(str(error))
    except CannotJudge as error:
        if error.reason is Reason.SANDBOX_ERROR:
            raise SandboxError(str(error)) from error
        return _unreadable(str(error))


class _Measures(NamedTuple):
    """The measured strength of the tests."""

    chance: float | None
    """The chance that a guess passes."""
    paid: Sequence[NullProgram] = ()
    """The null programs that pass."""
    kills: Kills = Kills()
    accepted_wrong: Sequence[str] = ()
    """The known wrong programs that pass."""
    rejected_right: Sequence[str] = ()
    """The known right programs that fail."""


def _run_steps(state: VetState, references: Sequence[str], wrong: Sequence[str], right: Sequence[str]) -> Vetting:
    leaked = check_leaks(state)
    check_texts(state)
    programs = state.programs(references)
    run_solutions(state, programs)
    is_measured = not state.dropped
    known = (state.programs(wrong), state.programs(right)) if is_measured else ([], [])
    measured = _measure(state, *known) if is_measured else _Measures(check_guessing(state))
    if (proposal := _propose(state, measured)) is not None:
        if state.options.mend:
            reasons = _take(state, proposal)
            measured = _measure(state, *known)
            state.report(VetReason.CASES_ADDED, Severity.REPAIR, {"for": reasons, PROPOSED: list(proposal.cases)})
        else:
            _suggest(state, proposal, [null.source for null in measured.paid if not null.attacks_tests])
    outcome, order = outcome_of(state.findings), list(Severity)
    needed_s = state.trial.cpu_s if state.trial is not None else None
    return Vetting(
        outcome=outcome,
        findings=sorted(state.findings, key=lambda finding: order.index(finding.severity)),
        repaired=state.info if state.changed and outcome is SuiteOutcome.REPAIR else None,
        cases=state.total or state.cases,
        kept=state.cases,
        references=len(programs),
        kills=measured.kills,
        paid=[null.name for null in measured.paid],
        headroom=None if needed_s is None else needed_s / state.suite.limits.cpu_s,
        guess_chance=measured.chance,
        leaked=leaked,
        caught=1 - len(measured.accepted_wrong) / len(known[0]) if known[0] else None,
        accepted=1 - len(measured.rejected_right) / len(known[1]) if known[1] else None,
    )


def _measure(state: VetState, wrong: Sequence[str], right: Sequence[str]) -> _Measures:
    chance, paid = check_guessing(state), find_paid_nulls(state)
    kills = measure_kills(state)
    accepted = misjudged(state, wrong, are_right=False)
    return _Measures(chance, paid, kills, accepted, misjudged(state, right, are_right=True))


def _propose(state: VetState, measured: _Measures) -> ProposedCases | None:
    nulls = [null.source for null in measured.paid if not null.attacks_tests]
    return propose_cases(state, measured.kills, [*nulls, *measured.accepted_wrong])


def _take(state: VetState, proposal: ProposedCases) -> list[str]:
    """Add the proposed cases, remove the findings that they may cure, and return the reasons of these findings."""
    reasons = [str(finding.reason) for finding in state.findings if finding.reason in MENDABLE]
    state.findings = [finding for finding in state.findings if finding.reason not in MENDABLE]
    state.change(proposal.info)
    state.trial = state.bench().run(state.reference or "")
    return reasons


def _suggest(state: VetState, proposal: ProposedCases, nulls: Sequence[str]) -> None:
    """Add the proposed cases to the most serious finding that they may cure.

    If the cases catch all null programs, the finding becomes a flag, since a person can add the cases.
    """
    reasons = [finding.reason for finding in state.findings]
    index = reasons.index(next(reason for reason in MENDABLE if reason in reasons))
    finding = state.findings[index]
    severity = finding.severity if set(nulls) & set(proposal.missed) else Severity.FLAG
    evidence = {**finding.evidence, PROPOSED: list(proposal.cases)}
    state.findings[index] = SuiteFinding(finding.reason, severity, evidence, "add the proposed cases")


def _unreadable(message: str) -> Vetting:
    evidence = {"error": evidence_text(message)}
    unreadable = SuiteFinding(VetReason.UNREADABLE, Severity.DROP, evidence, "correct the tests")
    return Vetting(SuiteOutcome.DROP, [missing_package(message) or unreadable])
