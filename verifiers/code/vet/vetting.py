"""Vets the tests of one problem: may a reward be computed with them?

    vetting = vet({"tests": {"type": "stdio", "cases": [...]}}, prompt="You are given ...", references=["n = int(..."])
    vetting.outcome            keep, repair or drop
    vetting.findings           why, each with its evidence
    vetting.repaired           the verifier's arguments after the repair
    vetting.kill_rate          0.93: of the faults planted in the worked solution the tests caught 93 %

Three steps: what the texts of problem and tests say (`texts`); the worked solutions on every case, again and again
under other hash seeds and in another order (`solutions`); null programs, planted faults and programs of known worth
(`strength`). A case is taken out, a checker or a limit changed only where that is mechanical, and what the tests are
worth is measured after that. The kill rate is not measured of tests that are to be dropped.

Not covered: whether the tests ask for what the problem's text asks for, beyond what the worked solution shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.code.bad_suite import BadSuite
from truegold.verifiers.code.execution import SandboxError
from truegold.verifiers.code.judging import CannotJudge
from truegold.verifiers.code.vet.diagnosis import missing_package
from truegold.verifiers.code.vet.findings import Finding, Outcome, Severity, VetReason, outcome_of, shown
from truegold.verifiers.code.vet.options import VetOptions
from truegold.verifiers.code.vet.solutions import run_solutions
from truegold.verifiers.code.vet.strength import Kills, accepted, caught, kills, paid_nulls
from truegold.verifiers.code.vet.texts import guess, leaks, read_texts
from truegold.verifiers.code.vet.work import Work
from truegold.verifiers.verdict import Reason


@dataclass(frozen=True, slots=True)
class Vetting:
    """repaired: None where nothing is changed. cases: of the suite as it came; kept: after the repair. Numbers are None
    where they are not known: no solution, no case that can be read, nothing to compare with."""

    outcome: Outcome
    findings: Sequence[Finding]
    repaired: Mapping[str, Any] | None = None
    cases: int = 0
    kept: int = 0
    references: int = 0
    kills: Kills = field(default_factory=Kills)
    paid: Sequence[str] = ()
    """Null programs that pass."""
    headroom: float | None = None
    """CPU time that the worked solution needs, as a share of the limit (after the repair)."""
    guess_chance: float | None = None
    leaked: float | None = None
    """The share of the cases that stand in the problem's text."""
    caught: float | None = None
    """Of the programs known to be wrong, the share that fails (true negative rate)."""
    accepted: float | None = None
    """Of the programs known to be right, the share that passes (true positive rate)."""

    @property
    def kill_rate(self) -> float | None:
        return self.kills.rate

    @property
    def reasons(self) -> list[str]:
        """The gravest first, each once."""
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
    """info: the verifier's arguments. references: worked solutions. wrong, right: programs of known worth.

    SandboxError where the sandbox fails: then nothing is known of the tests.
    """
    try:
        return _vetted(Work(info, prompt, options or VetOptions()), references, wrong, right)
    except BadSuite as error:
        return _unreadable(str(error))
    except CannotJudge as error:
        if error.reason is Reason.SANDBOX_ERROR:
            raise SandboxError(str(error)) from error
        return _unreadable(str(error))


def _vetted(work: Work, references: Sequence[str], wrong: Sequence[str], right: Sequence[str]) -> Vetting:
    leaked = leaks(work)
    read_texts(work)
    programs = work.programs(references)
    run_solutions(work, programs)
    chance = guess(work)
    paid = [] if work.dropped else paid_nulls(work)
    measured = not work.dropped
    killed = kills(work) if measured else Kills()
    negative = caught(work, work.programs(wrong)) if measured else None
    positive = accepted(work, work.programs(right)) if measured else None
    outcome, order = outcome_of(work.findings), list(Severity)
    return Vetting(
        outcome=outcome,
        findings=sorted(work.findings, key=lambda finding: order.index(finding.severity)),
        repaired=work.info if work.changed and outcome is Outcome.REPAIR else None,
        cases=work.total or work.cases,
        kept=work.cases,
        references=len(programs),
        kills=killed,
        paid=paid,
        headroom=_headroom(work),
        guess_chance=chance,
        leaked=leaked,
        caught=negative,
        accepted=positive,
    )


def _headroom(work: Work) -> float | None:
    if work.trial is None or work.trial.cpu_s is None:
        return None
    return work.trial.cpu_s / work.suite.limits.cpu_s


def _unreadable(message: str) -> Vetting:
    unreadable = Finding(VetReason.UNREADABLE, Severity.DROP, {"error": shown(message)}, "correct the tests")
    finding = missing_package(message) or unreadable
    return Vetting(Outcome.DROP, [finding])
