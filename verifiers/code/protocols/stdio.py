"""Programs that read stdin and write stdout. Each case is one run; outputs are compared here, outside.

    case {"input": "3\\n4\\n", "output": "7\\n"}, the program prints "7"  ->  passed

Where several answers are right, the checker may be a program. It gets input, output and expected output in a sandbox:

    Python that defines check(input, output, answer) -> bool is called.
    Any other program is run as `checker input.txt output.txt answer.txt` (the order of testlib). Exit status 0 accepts;
    1 and 2 reject, and so does a last line of output that is 0 or False; anything else is a broken checker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from truegold.verifiers.code.comparison.outputs import checker_of
from truegold.verifiers.code.execution import Backend, End, Execution, Prepared, Program, SandboxError
from truegold.verifiers.code.judging import (
    CannotJudge,
    CaseResult,
    Judged,
    cut,
    failed_case,
    failed_end,
    last_line,
    passed_case,
)
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.protocols.calls import make_calls
from truegold.verifiers.code.protocols.results import failed_call
from truegold.verifiers.code.protocols.source import Source
from truegold.verifiers.code.sandbox.local import Local
from truegold.verifiers.code.sandbox.toolchains import LANGUAGES
from truegold.verifiers.code.suite import Stdio, StdioCase
from truegold.verifiers.verdict import Reason

MAX_OVERRUNS = 2
"""Cases that may end at a limit before the others count as failed. Stops a program that loops on a hundred cases."""

MAX_IDLE_S = 30.0
"""Seconds of waiting over all cases of a program. Stops one that answers rightly and sleeps below the limit each
time."""

CHECKER_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)

Check = Callable[[StdioCase, str], str | None]
"""Returns None where an output is accepted, else why it is not."""


def judge_stdio(
    tests: Stdio, program: Program, backend: Backend, local: Local, limits: Limits, run_all: bool
) -> Judged:
    """Run the program on every case, or up to the first that fails."""
    check = _check_of(tests.checker, local)
    total_weight = sum(case.weight for case in tests.cases)
    prepared = prepare(backend, program, limits)
    case_results: list[CaseResult] = []
    overruns, idle_s = 0, 0.0
    for case in tests.cases:
        if overruns >= MAX_OVERRUNS or idle_s > MAX_IDLE_S:
            error = "not run: earlier cases took too long"
            case_results.append(failed_case(case.weight, Reason.TIMEOUT, error=error))
            continue
        execution = prepared.run(case.input.encode("utf-8", "surrogatepass"))
        case_results.append(_judge(case, execution, check))
        overruns += execution.end is not End.EXITED
        idle_s += execution.wall_s if execution.idle_s is None else execution.idle_s
        if not case_results[-1].passed and not run_all:
            break
    return Judged(case_results, len(tests.cases), total_weight)


def prepare(backend: Backend, program: Program, limits: Limits) -> Prepared:
    """Make a program ready to run. Raises NotCompiled where it does not compile."""
    prepared = backend.prepare(program, limits)
    if prepared.compiled is not None and (failure := failed_end(prepared.compiled)) is not None:
        raise NotCompiled(failure[1])
    return prepared


class NotCompiled(Exception):
    """The program is no program of its language. The text is the compiler's last word."""


class _CheckerNotRun(CannotJudge):
    """The sandbox failed before the checker was run at all."""


def _judge(case: StdioCase, execution: Execution, check: Check) -> CaseResult:
    shown = {"input": case.input, "expected": case.output, "got": execution.stdout[:2000].decode("utf-8", "replace")}
    failure = failed_end(execution)
    if failure is not None:
        return failed_case(case.weight, failure[0], error=failure[1], **shown)
    try:
        output = execution.stdout.decode()
    except UnicodeDecodeError as error:
        return failed_case(case.weight, error=f"its output is no UTF-8: {error}", **shown)
    difference = check(case, output)
    return passed_case(case.weight) if difference is None else failed_case(case.weight, error=difference, **shown)


def _check_of(spec: Any, local: Local) -> Check:
    if isinstance(spec, Mapping) and spec.get("type") == "program":
        return _ProgramChecker(spec, local)
    checker = checker_of(spec)
    return lambda case, output: checker(case.output, output)


class _ProgramChecker:
    """A checker that is a program, sandboxed as the solution is."""

    def __init__(self, spec: Mapping[str, Any], local: Local) -> None:
        self._code, self._language, self._local = str(spec["code"]), str(spec.get("language") or "python"), local
        self._defines_check = self._language == "python" and "def check(" in self._code

    def __call__(self, case: StdioCase, output: str) -> str | None:
        try:
            return self._run([case.input, output, case.output])
        except _CheckerNotRun:
            raise
        except CannotJudge as failure:
            # A checker that takes the expected output works, and it is this output that it cannot read.
            if self._run([case.input, case.output, case.output]) is None:
                return f"the checker cannot read it: {failure}"
            raise

    def _run(self, texts: list[str]) -> str | None:
        """texts: input, output and expected output."""
        try:
            return self._call_check(texts) if self._defines_check else self._run_program(texts)
        except SandboxError as error:
            raise _CheckerNotRun(f"the checker could not be run: {error}", Reason.SANDBOX_ERROR) from error

    def _call_check(self, texts: list[str]) -> str | None:
        calls = make_calls(Source(self._code), [("check", texts, {})], {}, self._local, CHECKER_LIMITS)
        accepted = calls.outcomes[0]
        failure = failed_call(accepted, calls)
        if failure is not None:
            raise CannotJudge(f"the checker failed: {failure[1]}")
        if isinstance(accepted, bool):
            return None if accepted else "the checker refuses it"
        raise CannotJudge(f"the checker gave no True or False but {cut(accepted)}")

    def _run_program(self, texts: list[str]) -> str | None:
        names = ("input.txt", "output.txt", "answer.txt")
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in zip(names, texts, strict=True)}
        if self._language != "python" and self._language not in LANGUAGES:
            raise CannotJudge(f"checkers in {self._language!r} are not known")
        checker = self._local.prepare_script(Program(self._language, self._code, files), CHECKER_LIMITS, names)
        if checker.compiled is not None and not checker.compiled.ok:
            raise CannotJudge(f"the checker does not compile: {last_line(checker.compiled.stderr)}")
        execution = checker.run(b"")
        word, error = last_line(execution.stdout), last_line(execution.stderr)
        if execution.ok:
            return f"the checker says {word}" if word in {"0", "0.0", "False", "false"} else None
        if execution.status in {1, 2}:
            return f"the checker refuses it: {error or word}"
        raise CannotJudge(f"the checker failed ({execution.end}, {execution.status}): {error}")
