"""Vets the tests of one problem: may a reward be computed with them?

    vetting = vet({"tests": {"type": "stdio", "cases": [...]}}, prompt="You are given ...", references=["n = int(..."])
    vetting.outcome            keep, repair or drop
    vetting.findings           why, each with its evidence
    vetting.repaired           the verifier's arguments after the repair
    vetting.kill_rate          0.93: of the faults planted in the worked solution the tests caught 93 %

Three steps: what the texts of problem and tests say (`text_checks`); the worked solutions on every case, several times,
under other hash seeds and in another order (`solutions`); null programs, planted faults and programs of known worth
(`strength`). A case is taken out, a checker or a limit changed only where that is mechanical, and what the tests are
worth is measured after that. For weak tests further cases are proposed, or added (`mending`).

Whether the tests ask for what the problem's text asks for is not covered, beyond what the worked solution shows.
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
    """The result of vetting a suite. A figure is None if it is not known: without a solution, without a case that can
    be read, or with nothing to compare."""

    outcome: SuiteOutcome
    findings: Sequence[SuiteFinding]
    """The gravest first."""
    repaired: Mapping[str, Any] | None = None
    """The verifier's arguments after the repair, or None if nothing is changed."""
    cases: int = 0
    """The cases of the suite as it came."""
    kept: int = 0
    """The cases after the repair."""
    references: int = 0
    """The worked solutions that were tried."""
    kills: Kills = field(default_factory=Kills)
    """The results on the planted faults."""
    paid: Sequence[str] = ()
    """The null programs that pass, by name."""
    headroom: float | None = None
    """The CPU time that the worked solution needs, as a share of the limit (after the repair)."""
    guess_chance: float | None = None
    """The chance that a guess passes."""
    leaked: float | None = None
    """The share of the cases that stand in the problem's text."""
    caught: float | None = None
    """The share of the programs known to be wrong that fail (true negative rate)."""
    accepted: float | None = None
    """The share of the programs known to be right that pass (true positive rate)."""

    @property
    def kill_rate(self) -> float | None:
        """The share of the planted faults that the tests catch, or None if there are none."""
        return self.kills.rate

    @property
    def reasons(self) -> list[str]:
        """The reasons of the findings, the gravest first, each once."""
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
    """Vet the tests of one problem. Raises SandboxError if the sandbox fails: then nothing is known of the tests.

    info: the verifier's arguments. prompt: the problem's text. references: worked solutions. wrong, right: programs of
    known worth.
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
    """The findings on the tests."""

    chance: float | None
    paid: Sequence[NullProgram] = ()
    kills: Kills = Kills()
    accepted_wrong: Sequence[str] = ()
    rejected_right: Sequence[str] = ()


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
    """Add cases to the tests; return the reasons for that, which are to be looked for again."""
    reasons = [str(finding.reason) for finding in state.findings if finding.reason in MENDABLE]
    state.findings = [finding for finding in state.findings if finding.reason not in MENDABLE]
    state.change(proposal.info)
    state.trial = state.bench().run(state.reference or "")
    return reasons


def _suggest(state: VetState, proposal: ProposedCases, nulls: Sequence[str]) -> None:
    """Add the cases to the gravest finding that they are for. Tests that would be dropped are not where the cases catch
    all that they are dropped for: a person may add them."""
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
