"""Programs that read stdin and write stdout. Each case is one run; outputs are compared here, outside.

    case {"input": "3\\n4\\n", "output": "7\\n"}, the program prints "7"  ->  passed

Where several answers are right, the checker may be a program (`checkers`); where there is an interactor, the program
talks to it (`interactive`).
"""

from __future__ import annotations

from truegold.verifiers.code.judging import CaseResult, Judged, failed_case, failed_end
from truegold.verifiers.code.protocols.cases import RunOfCase, judge_cases, opinion_result, require_compiled
from truegold.verifiers.code.protocols.checkers import Check, check_of
from truegold.verifiers.code.protocols.interactive import judge_interactive
from truegold.verifiers.code.suite import Stdio, StdioCase
from truegold.verifiers.sandbox.execution import Backend, End, Execution, Prepared, Program
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local


def judge_stdio(
    tests: Stdio, program: Program, backend: Backend, local: Local, limits: Limits, run_all: bool
) -> Judged:
    """Run the program on every case, or up to the first that fails."""
    check = check_of(tests.checker, local)
    if tests.interactor is not None:
        return judge_interactive(tests, program, backend, local, limits, run_all, check)
    prepared = prepare(backend, program, limits)

    def run(case: StdioCase) -> RunOfCase:
        execution = prepared.run(case.input.encode("utf-8", "surrogatepass"))
        idle_s = execution.wall_s if execution.idle_s is None else execution.idle_s
        return RunOfCase(_judge(case, execution, check), execution.end is not End.EXITED, idle_s)

    return judge_cases(tests.cases, run, run_all)


def prepare(backend: Backend, program: Program, limits: Limits) -> Prepared:
    """Make a program ready to run. Raises NotCompiled where it does not compile."""
    prepared = backend.prepare(program, limits)
    require_compiled(prepared.compiled)
    return prepared


def _judge(case: StdioCase, execution: Execution, check: Check) -> CaseResult:
    shown = {"input": case.input, "expected": case.output, "got": execution.stdout[:2000].decode("utf-8", "replace")}
    failure = failed_end(execution)
    if failure is not None:
        return failed_case(case.weight, failure[0], error=failure[1], **shown)
    try:
        output = execution.stdout.decode()
    except UnicodeDecodeError as error:
        return failed_case(case.weight, error=f"its output is no UTF-8: {error}", **shown)
    return opinion_result(case.weight, check(case, output), shown)
