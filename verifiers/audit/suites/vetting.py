"""Vets the tests of one problem: may a reward be computed with them?

    vetting = vet({"tests": {"type": "stdio", "cases": [...]}}, prompt="You are given ...", references=["n = int(..."])
    vetting.outcome            keep, repair or drop
    vetting.findings           why, each with its evidence
    vetting.repaired           the verifier's arguments after the repair
    vetting.kill_rate          0.93: of the faults planted in the worked solution the tests caught 93 %

Three steps: what the texts of problem and tests say (`texts`); the worked solutions on every case, again and again
under other hash seeds and in another order (`solutions`); null programs, planted faults and programs of known worth
(`strength`). A case is taken out, a checker or a limit changed only where that is mechanical, and what the tests are
worth is measured after that. The kill rate is not measured for tests that are to be dropped.

Whether the tests ask for what the problem's text asks for is not covered, beyond what the worked solution shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.audit.suites.diagnosis import missing_package
from truegold.verifiers.audit.suites.findings import Finding, Outcome, Severity, VetReason, evidence_text, outcome_of
from truegold.verifiers.audit.suites.options import VetOptions
from truegold.verifiers.audit.suites.solutions import run_solutions
from truegold.verifiers.audit.suites.strength import Kills, accepted_share, caught_share, find_paid_nulls, measure_kills
from truegold.verifiers.audit.suites.texts import check_guessing, check_leaks, check_texts
from truegold.verifiers.audit.suites.work import Work
from truegold.verifiers.code.outcomes import BadSuite, CannotJudge
from truegold.verifiers.sandbox.execution import SandboxError
from truegold.verifiers.verdict import Reason


@dataclass(frozen=True, slots=True)
class Vetting:
    """What a vetting says of a suite. A figure is None where it is not known: without a solution, without a case that
    can be read, or with nothing to compare."""

    outcome: Outcome
    findings: Sequence[Finding]
    """The gravest first."""
    repaired: Mapping[str, Any] | None = None
    """The verifier's arguments after the repair; None where nothing is changed."""
    cases: int = 0
    """The cases of the suite as it came."""
    kept: int = 0
    """The cases after the repair."""
    references: int = 0
    """The worked solutions that were tried."""
    kills: Kills = field(default_factory=Kills)
    """What became of the planted faults."""
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
        """The share of the planted faults that the tests catch; None where there are none."""
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
    """Vet the tests of one problem. SandboxError where the sandbox fails: then nothing is known of the tests.

    info: the verifier's arguments. prompt: the problem's text. references: worked solutions. wrong, right: programs of
    known worth.
    """
    try:
        return _run_steps(Work(info, prompt, options or VetOptions()), references, wrong, right)
    except BadSuite as error:
        return _unreadable(str(error))
    except CannotJudge as error:
        if error.reason is Reason.SANDBOX_ERROR:
            raise SandboxError(str(error)) from error
        return _unreadable(str(error))


def _run_steps(work: Work, references: Sequence[str], wrong: Sequence[str], right: Sequence[str]) -> Vetting:
    leaked = check_leaks(work)
    check_texts(work)
    programs = work.programs(references)
    run_solutions(work, programs)
    chance = check_guessing(work)
    paid = [] if work.dropped else find_paid_nulls(work)
    is_measured = not work.dropped
    kills = measure_kills(work) if is_measured else Kills()
    caught = caught_share(work, work.programs(wrong)) if is_measured else None
    accepted = accepted_share(work, work.programs(right)) if is_measured else None
    outcome, order = outcome_of(work.findings), list(Severity)
    return Vetting(
        outcome=outcome,
        findings=sorted(work.findings, key=lambda finding: order.index(finding.severity)),
        repaired=work.info if work.changed and outcome is Outcome.REPAIR else None,
        cases=work.total or work.cases,
        kept=work.cases,
        references=len(programs),
        kills=kills,
        paid=paid,
        headroom=_headroom(work),
        guess_chance=chance,
        leaked=leaked,
        caught=caught,
        accepted=accepted,
    )


def _headroom(work: Work) -> float | None:
    if work.trial is None or work.trial.cpu_s is None:
        return None
    return work.trial.cpu_s / work.suite.limits.cpu_s


def _unreadable(message: str) -> Vetting:
    unreadable = Finding(VetReason.UNREADABLE, Severity.DROP, {"error": evidence_text(message)}, "correct the tests")
    finding = missing_package(message) or unreadable
    return Vetting(Outcome.DROP, [finding])
