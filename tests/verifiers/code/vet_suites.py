"""What the tests of vetting share: suites written in one line, a program that adds, and a finding by its reason."""

from typing import Any

from truegold.verifiers.code.vet import Finding, VetOptions, VetReason, Vetting

FEW = VetOptions(runs=2, mutants=4)
SUM = "print(sum(map(int, input().split())))\n"
SUMS = [("1 2", "3"), ("10 -3", "7"), ("100 200", "300"), ("0 0", "0")]


def stdio(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    cases = [{"input": f"{given}\n", "output": f"{output}\n"} for given, output in pairs]
    return {"tests": {"type": "stdio", "cases": cases, **more}}


def calls(function: str, *cases: tuple[list[Any], Any], **more: Any) -> dict[str, Any]:
    found = [{"args": args, "expected": expected} for args, expected in cases]
    return {"type": "calls", "entry_point": function, "cases": found, **more}


def finding(vetting: Vetting, reason: VetReason) -> Finding:
    return next(each for each in vetting.findings if each.reason is reason)
