"""The state of one vetting, between its steps: the suite after the repairs so far, and the findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from truegold.verifiers.audit.suites.findings import Finding, Severity, VetReason
from truegold.verifiers.audit.suites.known_cases import count_cases, known_cases
from truegold.verifiers.audit.suites.options import VetOptions
from truegold.verifiers.audit.suites.repairs import Repair, apply_repair
from truegold.verifiers.audit.suites.trials import Bench, Trial
from truegold.verifiers.code.response_program import extract_code
from truegold.verifiers.code.suite import Calls, Stdio, Suite, read_suite
from truegold.verifiers.code.suite.statement import Statement, read_statement


class Work:
    """What the steps of a vetting share. BadSuite where the tests cannot be read."""

    def __init__(self, info: Mapping[str, Any], prompt: str | None, options: VetOptions) -> None:
        self.info = info
        """The verifier's arguments after the repairs so far."""
        self.suite: Suite = read_suite(info)
        self.prompt, self.options = prompt, options
        self.statement: Statement = read_statement(prompt)
        self.known = known_cases(self.suite.tests)
        self.findings: list[Finding] = []
        self.changed = False
        self.reference: str | None = None
        """A worked solution that passes."""
        self.trial: Trial | None = None
        """The slowest run of that solution."""
        self.total = self.cases
        """The cases of the suite as it came."""

    @property
    def cases(self) -> int:
        """The cases of the suite as it is; for test code those that a run has shown, else its assertions."""
        tests = self.suite.tests
        is_code = not isinstance(tests, Stdio | Calls)
        return self.trial.total if is_code and self.trial is not None else count_cases(tests)

    @property
    def dropped(self) -> bool:
        """Whether a finding drops the suite."""
        return any(finding.severity is Severity.DROP for finding in self.findings)

    def report(
        self, reason: VetReason, severity: Severity, evidence: Mapping[str, Any], suggestion: str | None = None
    ) -> None:
        """Add a finding."""
        self.findings.append(Finding(reason, severity, evidence, suggestion))

    def bench(self) -> Bench:
        """Return a bench to try programs on the suite as it is."""
        return Bench(self.suite, self.options.tier, self.options.python)

    def repair(self, repair: Repair) -> None:
        """Change the suite; where too few cases would be left, drop it."""
        if not repair:
            return
        if repair.without:
            left = self.cases - len(repair.without)
            if left < max(self.options.min_cases, math.ceil(self.options.min_case_share * self.total)):
                self.report(VetReason.TOO_FEW, Severity.DROP, {"left": left, "of": self.total}, "find whole tests")
            if left == 0:  # A suite without cases could not be read.
                return
        self.info = apply_repair(self.info, repair)
        self.suite = read_suite(self.info)
        self.known = known_cases(self.suite.tests)
        self.changed = True

    def programs(self, solutions: Sequence[str]) -> list[str]:
        """Return what the verifier would run of each solution that is not blank."""
        return [self._program(solution) for solution in solutions if solution.strip()]

    def _program(self, solution: str) -> str:
        """Return the solution's text, or the stub that it continues."""
        stub = getattr(self.suite.tests, "stub", "")
        if not stub:
            return solution
        entry_point = getattr(self.suite.tests, "entry_point", None) or ""
        name = entry_point.partition(".")[0].removesuffix("()") or None
        fence = "~~~~" if "```" in solution else "```"
        extracted = extract_code(f"{fence}\n{solution}\n{fence}", self.suite.language, name, stub)
        return extracted.code if extracted is not None else solution
