"""What all programs share that are run once for each case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from truegold.verifiers.code.judging import CaseResult, Judged, failed_case, failed_end, passed_case
from truegold.verifiers.code.suite import StdioCase
from truegold.verifiers.code.testlib import Opinion
from truegold.verifiers.sandbox.execution import Execution
from truegold.verifiers.verdict import Reason

MAX_OVERRUNS = 2
"""Cases that may end at a limit before the others count as failed. Stops a program that loops on a hundred cases."""

MAX_IDLE_S = 30.0
"""Seconds of waiting over all cases of a program. Stops one that answers rightly and sleeps below the limit each
time."""


class NotCompiled(Exception):
    """The program is no program of its language. The text is the compiler's last word."""


@dataclass(frozen=True, slots=True)
class RunOfCase:
    """What came of a program's run on one case."""

    result: CaseResult
    overran: bool
    """Whether it ended at a limit, or crashed."""
    idle_s: float


def judge_cases(cases: Sequence[StdioCase], run: Callable[[StdioCase], RunOfCase], run_all: bool) -> Judged:
    """Run every case, or up to the first that fails."""
    case_results: list[CaseResult] = []
    overruns, idle_s = 0, 0.0
    for case in cases:
        if overruns >= MAX_OVERRUNS or idle_s > MAX_IDLE_S:
            error = "not run: earlier cases took too long"
            case_results.append(failed_case(case.weight, Reason.TIMEOUT, error=error))
            continue
        of_case = run(case)
        case_results.append(of_case.result)
        overruns += of_case.overran
        idle_s += of_case.idle_s
        if not of_case.result.passed and not run_all:
            break
    return Judged(case_results, len(cases), sum(case.weight for case in cases))


def require_compiled(compiled: Execution | None) -> None:
    """Raise NotCompiled where a program was compiled in vain."""
    if compiled is not None and (failure := failed_end(compiled)) is not None:
        raise NotCompiled(failure[1])


def opinion_result(weight: float, opinion: Opinion, shown: Mapping[str, str | None]) -> CaseResult:
    """Return the result of a case that a checker or an interactor has judged."""
    if opinion.share == 1.0:
        return passed_case(weight)
    return replace(failed_case(weight, error=opinion.why, **shown), share=opinion.share)
