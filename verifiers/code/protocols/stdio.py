"""Runs programs that read stdin and write stdout, once for each case; the verifier's process compares the outputs.

    case {"input": "3\\n4\\n", "output": "7\\n"}, the program prints "7"  ->  passed

A checker judges the output. If the suite has an interactor, program and interactor exchange messages instead
(`suite_program.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.outcomes import LIMIT_FAILURES, CaseResult, Judged, failed_case, judged_case
from truegold.verifiers.code.protocols.suite_program import Check, Interactor, check_of
from truegold.verifiers.code.suite.reading import Stdio, StdioCase
from truegold.verifiers.sandbox.execution import Execution, Prepared, Program, ProgramEnd
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Backend
from truegold.verifiers.verdict import Reason

MAX_OVERRUNS = 2
"""Maximum number of cases in which a program exceeds a limit or crashes. Then, the other cases fail without running."""

MAX_IDLE_S = 30.0
"""Maximum time that a program sleeps in all cases together, in seconds. Then, the other cases fail without running."""

SHOWN_BYTES = 2000
"""Maximum number of bytes of an output that are decoded for the evidence."""


class NotCompiled(Exception):
    """A program that does not compile. The text is the compiler's error."""


class CaseRun(NamedTuple):
    """A program's run on one case."""

    result: CaseResult
    overran: bool
    """Whether the program exceeded a limit or crashed."""
    idle_s: float
    """Seconds that the program slept."""


def judge_stdio(tests: Stdio, program: Program, backend: Backend, limits: Limits, run_all: bool) -> Judged:
    """Run the program on every case, or up to the first failed case unless `run_all` is set."""
    check = check_of(tests.checker, backend.local)
    if tests.interactor is not None:
        return _judge_interactive(tests, program, backend, limits, run_all, check)
    prepared = prepare(backend, program, limits)

    def run(case: StdioCase) -> CaseRun:
        execution = prepared.run(case.input.encode("utf-8", "surrogatepass"))
        idle_s = execution.wall_s if execution.idle_s is None else execution.idle_s
        return CaseRun(_judge(case, execution, check), execution.end is not ProgramEnd.EXITED, idle_s)

    return _judge_cases(tests.cases, run, run_all)


def prepare(backend: Backend, program: Program, limits: Limits) -> Prepared:
    """Prepare a program for running. Raises NotCompiled if it does not compile."""
    prepared = backend.prepare(program, limits)
    _require_compiled(prepared.compiled)
    return prepared


def _require_compiled(compiled: Execution | None) -> None:
    if compiled is not None and (failure := outcomes.failed_end(compiled)) is not None:
        raise NotCompiled(failure[1])


def _judge_cases(cases: Sequence[StdioCase], run: Callable[[StdioCase], CaseRun], run_all: bool) -> Judged:
    case_results: list[CaseResult] = []
    overruns, idle_s = 0, 0.0
    for case in cases:
        if overruns >= MAX_OVERRUNS or idle_s > MAX_IDLE_S:
            error = "not run: earlier cases took too long"
            case_results.append(failed_case(case.weight, Reason.TIMEOUT, error=error))
            continue
        case_run = run(case)
        case_results.append(case_run.result)
        overruns += case_run.overran
        idle_s += case_run.idle_s
        if not case_run.result.passed and not run_all:
            break
    return Judged(case_results, len(cases), sum(case.weight for case in cases))


def _judge(case: StdioCase, execution: Execution, check: Check) -> CaseResult:
    shown = {
        "input": case.input,
        "expected": case.output,
        "got": execution.stdout[:SHOWN_BYTES].decode("utf-8", "replace"),
    }
    failure = outcomes.failed_end(execution)
    if failure is not None:
        return failed_case(case.weight, failure[0], error=failure[1], **shown)
    try:
        output = execution.stdout.decode()
    except UnicodeDecodeError as error:
        return failed_case(case.weight, error=f"its output is not UTF-8: {error}", **shown)
    return judged_case(case.weight, check(case, output), shown)


def _judge_interactive(
    tests: Stdio, program: Program, backend: Backend, limits: Limits, run_all: bool, check: Check
) -> Judged:
    interactor = Interactor(tests, backend.local, check)
    partner = backend.prepare_partner(program, limits)
    _require_compiled(partner.compiled)

    def run(case: StdioCase) -> CaseRun:
        result, solution = interactor.judge(case, partner)
        return CaseRun(result, solution.end in LIMIT_FAILURES, solution.idle_s or 0.0)

    return _judge_cases(tests.cases, run, run_all)
