"""Programs that read stdin and write stdout. Each case is one run; outputs are compared here, outside.

    case {"input": "3\\n4\\n", "output": "7\\n"}, the program prints "7"  ->  passed

Where several answers are right, the checker may be a program (`checkers`). Where there is an interactor, program and
interactor talk:

    {"type": "interactive", "cases": [{"input": "100 42"}], "interactor": "...registerInteraction(argc, argv);..."}

Both run at the same time, apart, each under limits of its own; each reads what the other one prints. The interactor is
run as `interactor input.txt output.txt answer.txt`, as testlib has it. What it writes to output.txt goes to the suite's
checker, where there is one.

The interactor's word decides: a program that is accepted has answered, however it ends afterwards, unless it passed a
limit. Where both wait for each other, as for a program that never flushes, waiting ends as it does for a program alone.
An interactor that fails is tried on a program that says nothing: if it can do that, it was this program's talk that it
could not take.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from truegold.verifiers.code.outcomes import (
    LIMIT_FAILURES,
    CannotJudge,
    CaseResult,
    Judged,
    failed_case,
    failed_end,
    passed_case,
)
from truegold.verifiers.code.protocols.checkers import (
    ANSWER,
    INPUT,
    OUTPUT,
    Check,
    NotRun,
    SuiteProgram,
    check_of,
    describe_failure,
)
from truegold.verifiers.code.suite.reading import Stdio, StdioCase
from truegold.verifiers.code.testlib import Opinion
from truegold.verifiers.sandbox.execution import Execution, Prepared, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Backend, Partner
from truegold.verifiers.verdict import Reason

MAX_OVERRUNS = 2
"""Cases that may end at a limit before the others count as failed. Stops a program that loops on a hundred cases."""

MAX_IDLE_S = 30.0
"""Seconds of waiting over all cases of a program. Stops one that answers rightly and sleeps below the limit each
time."""

SILENT = Program("python", "import os, sys\nos.close(1)\nsys.stdin.read()\n")
"""A program that says nothing, and listens."""


class NotCompiled(Exception):
    """The program is no program of its language. The text is the compiler's last word."""


class CaseRun(NamedTuple):
    """A program's run on one case."""

    result: CaseResult
    overran: bool
    """Whether it ended at a limit, or crashed."""
    idle_s: float


def judge_stdio(tests: Stdio, program: Program, backend: Backend, limits: Limits, run_all: bool) -> Judged:
    """Run the program on every case, or up to the first that fails."""
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
    """Make a program ready to run. Raises NotCompiled where it does not compile."""
    prepared = backend.prepare(program, limits)
    _require_compiled(prepared.compiled)
    return prepared


def _require_compiled(compiled: Execution | None) -> None:
    if compiled is not None and (failure := failed_end(compiled)) is not None:
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
    shown = {"input": case.input, "expected": case.output, "got": execution.stdout[:2000].decode("utf-8", "replace")}
    failure = failed_end(execution)
    if failure is not None:
        return failed_case(case.weight, failure[0], error=failure[1], **shown)
    try:
        output = execution.stdout.decode()
    except UnicodeDecodeError as error:
        return failed_case(case.weight, error=f"its output is no UTF-8: {error}", **shown)
    return _opinion_result(case.weight, check(case, output), shown)


def _opinion_result(weight: float, opinion: Opinion, shown: Mapping[str, str | None]) -> CaseResult:
    """Return the result of a case that a checker or an interactor has judged."""
    if opinion.share == 1.0:
        return passed_case(weight)
    return replace(failed_case(weight, error=opinion.why, **shown), share=opinion.share)


def _judge_interactive(
    tests: Stdio, program: Program, backend: Backend, limits: Limits, run_all: bool, check: Check
) -> Judged:
    talk = _Talk(tests, backend, check)
    partner = backend.prepare_partner(program, limits)
    _require_compiled(partner.compiled)

    def run(case: StdioCase) -> CaseRun:
        result, solution = talk.judge(case, partner)
        return CaseRun(result, solution.end in LIMIT_FAILURES, solution.idle_s or 0.0)

    return _judge_cases(tests.cases, run, run_all)


class _Talk:
    """One interactor for all cases of a suite. check: what judges its output, where the suite has a checker program."""

    def __init__(self, tests: Stdio, backend: Backend, check: Check) -> None:
        self._interactor = SuiteProgram.from_spec("interactor", tests.interactor or {})
        self._local, self._check = backend.local, check
        self._ready = self._interactor.prepare(self._local)
        is_checked = isinstance(tests.checker, Mapping) and tests.checker.get("type") == "program"
        self._collect: Sequence[str] = [OUTPUT] if is_checked else []
        self._works: bool | None = None

    def judge(self, case: StdioCase, partner: Partner) -> tuple[CaseResult, Execution]:
        solution, interactor, files = self._converse(case, partner, self._collect)
        shown = {"input": case.input, "expected": case.output or None}
        if solution.end in LIMIT_FAILURES:
            reason, error = LIMIT_FAILURES[solution.end]
            if solution.end is ProgramEnd.WALL_LIMIT:
                error += ": it has to flush what it prints, and to end when the talk is over"
            return failed_case(case.weight, reason, error=error, **shown), solution
        opinion = self._interactor.opinion(interactor)
        if opinion is None and _is_cut_short(interactor):
            opinion = Opinion(0.0, "it ended, or closed its output, before the interactor was done")
        elif opinion is None:
            failure = describe_failure(self._interactor, interactor)
            if not self._works_alone(case):
                raise CannotJudge(failure)
            opinion = Opinion(0.0, f"the interactor cannot take what it says: {failure}")
        elif opinion.share == 1.0 and self._collect:
            opinion = self._check(case, files.get(OUTPUT, b"").decode("utf-8", "replace"))
        return _opinion_result(case.weight, opinion, shown), solution

    def _converse(
        self, case: StdioCase, partner: Partner, collect: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        texts = {INPUT: case.input, ANSWER: case.output}
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
        return partner.converse(self._ready, files, collect)

    def _works_alone(self, case: StdioCase) -> bool:
        """Whether the interactor comes to a verdict on a program that says nothing."""
        if self._works is None:
            try:
                interactor = self._converse(case, self._local.prepare_partner(SILENT, Limits()), [])[1]
            except SandboxError as error:
                raise NotRun("interactor", error) from error
            self._works = _is_cut_short(interactor) or self._interactor.opinion(interactor) is not None
        return self._works


def _is_cut_short(interactor: Execution) -> bool:
    """Whether it ended because nobody reads what it prints."""
    return interactor.end is ProgramEnd.SIGNALLED and interactor.status == signal.SIGPIPE
