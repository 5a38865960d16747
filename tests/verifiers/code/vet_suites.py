"""What the tests of vetting share: suites written in one line, a program that adds, and a finding by its reason."""

from typing import Any

from truegold.verifiers.audit.suites import SuiteFinding, VetOptions, VetReason, Vetting

FEW = VetOptions(runs=2, mutants=4)
SUM = "print(sum(map(int, input().split())))\n"
SUMS = [("1 2", "3"), ("10 -3", "7"), ("100 200", "300"), ("0 0", "0")]


def stdio(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return tests of pairs of input and output."""
    cases = [{"input": f"{case_input}\n", "output": f"{output}\n"} for case_input, output in pairs]
    return {"tests": {"type": "stdio", "cases": cases, **more}}


def calls(function: str, *cases: tuple[list[Any], Any], **more: Any) -> dict[str, Any]:
    """Return tests of calls of one function."""
    listed = [{"args": args, "expected": expected} for args, expected in cases]
    return {"type": "calls", "entry_point": function, "cases": listed, **more}


def finding(vetting: Vetting, reason: VetReason) -> SuiteFinding:
    """Return the first finding with the reason."""
    return next(finding for finding in vetting.findings if finding.reason is reason)
