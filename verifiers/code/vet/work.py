"""The state of one vetting, between its steps: the suite as it is after the repairs so far, and what was found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from truegold.verifiers.code.extraction import extract_code
from truegold.verifiers.code.suite import Calls, Stdio, Suite, read_suite
from truegold.verifiers.code.vet.findings import Finding, Severity, VetReason
from truegold.verifiers.code.vet.known_cases import count_cases, known_cases
from truegold.verifiers.code.vet.options import VetOptions
from truegold.verifiers.code.vet.repairs import Repair, repaired
from truegold.verifiers.code.vet.statement import Statement, read_statement
from truegold.verifiers.code.vet.trials import Bench, Trial


class Work:
    """info: the verifier's arguments. total: cases of the suite as it came. reference: a worked solution that passes,
    trial: its slowest run."""

    def __init__(self, info: Mapping[str, Any], prompt: str | None, options: VetOptions) -> None:
        self.info: Mapping[str, Any] = info
        self.suite: Suite = read_suite(info)
        self.prompt, self.options = prompt, options
        self.statement: Statement = read_statement(prompt)
        self.known = known_cases(self.suite.tests)
        self.findings: list[Finding] = []
        self.changed = False
        self.reference: str | None = None
        self.trial: Trial | None = None
        self.total = self.cases

    @property
    def cases(self) -> int:
        """Of the suite as it is. Of test code, those that a run has shown, else its assertions."""
        tests = self.suite.tests
        is_code = not isinstance(tests, Stdio | Calls)
        return self.trial.total if is_code and self.trial is not None else count_cases(tests)

    @property
    def entry_point(self) -> str:
        return getattr(self.suite.tests, "entry_point", None) or ""

    @property
    def dropped(self) -> bool:
        return any(finding.severity is Severity.DROP for finding in self.findings)

    def find(
        self, reason: VetReason, severity: Severity, evidence: Mapping[str, Any], suggestion: str | None = None
    ) -> None:
        self.findings.append(Finding(reason, severity, evidence, suggestion))

    def bench(self) -> Bench:
        return Bench(self.suite, self.options.tier, self.options.python)

    def repair(self, repair: Repair) -> None:
        """Change the suite. Where too few cases would be left, it is dropped."""
        if not repair:
            return
        if repair.without:
            left = self.cases - len(repair.without)
            if left < max(self.options.min_cases, math.ceil(self.options.min_case_share * self.total)):
                self.find(VetReason.TOO_FEW, Severity.DROP, {"left": left, "of": self.total}, "find whole tests")
            if left == 0:
                return  # a suite without cases cannot be read
        self.info = repaired(self.info, repair)
        self.suite = read_suite(self.info)
        self.known = known_cases(self.suite.tests)
        self.changed = True

    def program(self, text: str) -> str:
        """What the verifier would run of a solution: the text itself, or the stub that it continues."""
        stub = getattr(self.suite.tests, "stub", "")
        if not stub:
            return text
        name = self.entry_point.partition(".")[0].removesuffix("()") or None
        fence = "~~~~" if "```" in text else "```"
        found = extract_code(f"{fence}\n{text}\n{fence}", self.suite.language, name, stub)
        return found.code if found is not None else text

    def programs(self, texts: Sequence[str]) -> list[str]:
        return [self.program(text) for text in texts if text.strip()]
