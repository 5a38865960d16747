"""Vets the tests of one problem: may a reward be computed with them?

    vetting = vet({"tests": {"type": "stdio", "cases": [...]}}, prompt="You are given ...", references=["n = int(..."])
    vetting.outcome            keep, repair or drop
    vetting.findings           why, each with its evidence
    vetting.repaired           the verifier's arguments after the repair
    vetting.kill_rate          0.93: of the faults planted in the worked solution the tests caught 93 %

Three steps: what the texts of problem and tests say (`text_checks`); the worked solutions on every case, several times,
under other hash seeds and in another order (`solutions`); null programs, planted faults and programs of known worth
(`strength`). A case is taken out, a checker or a limit changed only where that is mechanical, and what the tests are
worth is measured after that. The kill rate is not measured for tests that are to be dropped.

Whether the tests ask for what the problem's text asks for is not covered, beyond what the worked solution shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.audit.suites.solutions import missing_package, run_solutions
from truegold.verifiers.audit.suites.strength import Kills, find_paid_nulls, measure_kills, share_as_known
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


def _run_steps(state: VetState, references: Sequence[str], wrong: Sequence[str], right: Sequence[str]) -> Vetting:
    leaked = check_leaks(state)
    check_texts(state)
    programs = state.programs(references)
    run_solutions(state, programs)
    chance = check_guessing(state)
    paid = [] if state.dropped else find_paid_nulls(state)
    is_measured = not state.dropped
    kills = measure_kills(state) if is_measured else Kills()
    caught = share_as_known(state, state.programs(wrong), are_right=False) if is_measured else None
    accepted = share_as_known(state, state.programs(right), are_right=True) if is_measured else None
    outcome, order = outcome_of(state.findings), list(Severity)
    needed_s = state.trial.cpu_s if state.trial is not None else None
    return Vetting(
        outcome=outcome,
        findings=sorted(state.findings, key=lambda finding: order.index(finding.severity)),
        repaired=state.info if state.changed and outcome is SuiteOutcome.REPAIR else None,
        cases=state.total or state.cases,
        kept=state.cases,
        references=len(programs),
        kills=kills,
        paid=paid,
        headroom=None if needed_s is None else needed_s / state.suite.limits.cpu_s,
        guess_chance=chance,
        leaked=leaked,
        caught=caught,
        accepted=accepted,
    )


def _unreadable(message: str) -> Vetting:
    evidence = {"error": evidence_text(message)}
    unreadable = SuiteFinding(VetReason.UNREADABLE, Severity.DROP, evidence, "correct the tests")
    return Vetting(SuiteOutcome.DROP, [missing_package(message) or unreadable])
