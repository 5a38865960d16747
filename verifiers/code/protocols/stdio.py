"""Runs programs that read stdin and write stdout, once for each case; the verifier's process compares the outputs.

    case {"input": "3\\n4\\n", "output": "7\\n"}, the program prints "7"  ->  passed

Checkers and interactors may be programs of the suite, which run in the same sandbox as solutions. (Checkers that only
compare outputs are in `output_comparison.py`.)

    {"type": "program", "code": "#include \\"testlib.h\\"...", "language": "cpp", "files": {"params.h": "#define N 5"}}

A checker judges an output. It is compiled once for all cases and cached for other suites. The kinds of checkers:

    started as                                   accepts the output with    refuses it with
    checker input.txt output.txt answer.txt      exit status 0              1, 2, or a last line `0` or `False`
        if it includes testlib.h                 exit status 0              the exit codes below
    check(input, output, answer) in Python       True                       False
    validator input.txt answer.txt ./            exit status 42             exit status 43

The last is a validator of Kattis, ICPC or DOMjudge, whose source has both exit codes. It reads the output from stdin. A
checker that ends in another way is run again on the expected output. If it accepts the expected output, the program's
output is refused as unreadable. Otherwise the checker is at fault.

An interactor exchanges messages with the solution. It is started as `interactor input.txt output.txt answer.txt`, and
each of the two reads the output of the other. They run in separate sandboxes with separate limits. A solution that
exceeds a limit fails. Otherwise the interactor's judgement decides, even if the solution ends with an error. If the
interactor accepts and the suite's checker is a program, this checker judges the file output.txt that the interactor
wrote. An interactor that fails is run again with a silent program. If it can judge the silent program, the solution's
messages are unreadable, and the solution fails. Otherwise the interactor is at fault.

testlib.h is the header that most checkers and interactors in C++ use:

    with_header("#include <testlib.h>\\nint main(...", {})    the source with `#include "testlib.h"`, and this file
    read_exit(0, "ok 3 numbers")                             Opinion(1.0)
    read_exit(1, "wrong answer 2nd numbers differ")          Opinion(0.0, "wrong answer 2nd numbers differ")
    read_exit(7, "points 40 two of five", full_points=100)   Opinion(0.4, "points 40 two of five")
    read_exit(3, "FAIL the jury has no answer")              raises JuryFailed

Exit codes of testlib: 0 right, 1 wrong, 2 and 8 the output has the wrong format, 4 the output has extra text, 3 a fault
of the jury, 7 points. If a checker gives a percentage (`_pc`), its exit code is that number and the message states it.

The header is not part of truegold. It is taken from the files of the suite, from the path in `TRUEGOLD_TESTLIB`, or
from the package `rbx-cp` (extra `contest`).
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.checks.lowering import SolutionCall
from truegold.verifiers.code.outcomes import (
    LIMIT_FAILURES,
    CannotJudge,
    CaseResult,
    Judged,
    Opinion,
    failed_case,
    judged_case,
    last_line,
)
from truegold.verifiers.code.output_comparison import checker_of
from truegold.verifiers.code.protocols.python_tests import TestedProgram, failed_call, make_calls
from truegold.verifiers.code.suite.reading import Stdio, StdioCase
from truegold.verifiers.sandbox.execution import Execution, Limits, Prepared, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.inside.wire.value_types import Json
from truegold.verifiers.sandbox.local import Backend, Local, Ready
from truegold.verifiers.sandbox.toolchains import LANGUAGES
from truegold.verifiers.verdict import Reason

HEADER = "testlib.h"
PATH_VARIABLE = "TRUEGOLD_TESTLIB"
"""The environment variable with the path of testlib.h."""
_PACKAGE, _FILE = "rbx-cp", "rbx/resources/predownloaded/testlib.h"

_OK, _FAIL, _POINTS = 0, 3, 7
_REFUSALS = {1, 2, 4, 8}
_INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*[<"](?:[^<>"\n]*/)?testlib\.h[>"]""", re.MULTILINE)
"""`#include "testlib.h"`, `#include <testlib.h>` or `# include "../common/testlib.h"`."""

_STATED_POINTS = re.compile(r"\bpoints\s+(\d+(?:\.\d+)?)")
"""The 40 of "points 40 two of five"."""

_STATED_SHARE = re.compile(r"\bpartially correct \((\d{1,3})\)")
"""The 50 of "partially correct (50) half"."""


class JuryFailed(Exception):
    """Raised if a checker reports that the jury's answer, the input or the checker itself is at fault."""


class HeaderMissing(Exception):
    """Raised if testlib.h is not installed; the text says how to get it."""


@cache
def header() -> bytes:
    """Return the text of testlib.h, from `TRUEGOLD_TESTLIB` or else from the package rbx-cp. Raises HeaderMissing."""
    remedy = f"pip install 'truegold[contest]', name the file in {PATH_VARIABLE}, or put it in the suite's files"
    if path := os.environ.get(PATH_VARIABLE):
        try:
            return Path(path).read_bytes()
        except OSError as error:
            why = f"{PATH_VARIABLE} is {path!r}, which cannot be read ({error.strerror})"
            raise HeaderMissing(f"{why}; {remedy}") from None
    try:
        return Path(str(distribution(_PACKAGE).locate_file(_FILE))).read_bytes()
    except (PackageNotFoundError, OSError):
        raise HeaderMissing(f"{HEADER} is not installed: {remedy}") from None


def uses_testlib(source: str) -> bool:
    """Return whether a program includes testlib.h, by any path."""
    return _INCLUDE.search(source) is not None


def with_header(source: str, extra: Mapping[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """Return the source and the files for compiling it: the extra files, and testlib.h if the source includes it.

    A testlib.h among the extra files is used first. Raises HeaderMissing.
    """
    if not uses_testlib(source):
        return source, dict(extra)
    files = dict(extra) if HEADER in extra else {HEADER: header(), **extra}
    return _INCLUDE.sub(f'#include "{HEADER}"', source), files


def read_exit(status: int, message: str, full_points: float = 1.0) -> Opinion | None:
    """Return the judgement for an exit status and message of testlib, or None for an unknown status.

    full_points: the points of a right answer. Raises JuryFailed for a fault of the jury.
    """
    if (hundredths := _STATED_SHARE.search(message)) is not None and status == int(hundredths[1]):
        return _partial(int(hundredths[1]) / 100, message)
    if status == _OK:
        return Opinion(1.0)
    if status == _FAIL:
        raise JuryFailed(message)
    if status in _REFUSALS:
        return Opinion(0.0, last_line(message))
    points = _STATED_POINTS.search(message) if status == _POINTS else None
    return None if points is None else _partial(float(points[1]) / full_points, message)


def _partial(share: float, message: str) -> Opinion:
    share = min(max(share, 0.0), 1.0)
    return Opinion(share, last_line(message) if share < 1.0 else None)


PROGRAM_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)
"""The limits of checkers and interactors."""
INPUT, OUTPUT, ANSWER = ARGUMENTS = ("input.txt", "output.txt", "answer.txt")
"""The files of a case, in the order in which testlib expects them as arguments."""

_RIGHT, _WRONG = 42, 43
"""The exit codes of validators in problem packages of Kattis."""
_STATES_CODE = {
    code: re.compile(
        rf"(?:(?i:exit|quit|return)[^\n;]{{0,80}}?|(?:(?i:accept|reject|wrong)|Correct|CORRECT|RIGHT|(?<![A-Z])(?:AC|OK|WA)\b)"
        rf"[^\n;\[]{{0,40}}?)\b{code}\b"
    )
    for code in (_RIGHT, _WRONG)
}
"""An exit code in a source: `exit(42)`, `return ok ? 42 : 43`, `EXIT_AC = 42`. A mere `42` may be another number."""

_TRACEBACK = b"Traceback (most recent call last):"
_REFUSING_LINES = {"0", "0.0", "False", "false"}
"""Last lines of output by which a checker without testlib refuses."""
_REFUSING_STATUSES = {1, 2}


class NotRun(CannotJudge):
    """Raised if the sandbox failed before the checker or interactor ran."""

    def __init__(self, role: str, error: SandboxError) -> None:
        super().__init__(f"the {role} could not be run: {error}", Reason.SANDBOX_ERROR)


@dataclass(frozen=True)
class SuiteProgram:
    """A checker or an interactor."""

    role: str
    """`checker` or `interactor`; used in messages."""
    code: str
    language: str
    files: Mapping[str, bytes]
    """Files that are needed for compiling, such as headers."""
    full_points: float
    """The points of a right answer, for programs that give points."""

    @classmethod
    def from_spec(cls, role: str, spec: Mapping[str, Json]) -> SuiteProgram:
        """Return the program for a description that `suite/reading.py` has validated."""
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in (spec.get("files") or {}).items()}
        points = float(spec.get("full_points") or 1.0)
        return cls(role, code=str(spec["code"]), language=str(spec["language"]), files=files, full_points=points)

    @cached_property
    def is_validator(self) -> bool:
        """Whether this is a validator of a problem package, by the exit codes in its source."""
        texts = [self.code, *(text.decode("utf-8", "replace") for text in self.files.values())]
        states_codes = all(any(states.search(text) for text in texts) for states in _STATES_CODE.values())
        return states_codes and not uses_testlib(self.code)

    def prepare(self, local: Local) -> Ready:
        """Prepare the program for running. Raises CannotJudge if it cannot be compiled."""
        if self.language != "python" and self.language not in LANGUAGES:
            raise CannotJudge(f"{self.role}s in {self.language!r} are not supported")
        try:
            source, files = with_header(self.code, self.files)
            arguments = (INPUT, ANSWER, "./") if self.is_validator else ARGUMENTS
            ready = local.prepare_script(Program(self.language, source, files), PROGRAM_LIMITS, arguments)
        except HeaderMissing as error:
            raise CannotJudge(f"the {self.role} cannot be compiled: {error}", Reason.SANDBOX_ERROR) from None
        except SandboxError as error:
            raise NotRun(self.role, error) from error
        if ready.compiled is not None and not ready.compiled.ok:
            lines = ready.compiled.stderr.decode("utf-8", "replace").splitlines()
            error_lines = (line.strip()[: outcomes.SHOWN_CHARS] for line in lines if "error" in line)
            message = next(error_lines, outcomes.last_line(ready.compiled.stderr))
            raise CannotJudge(f"the {self.role} does not compile: {message}")
        return ready

    def opinion(self, execution: Execution) -> Opinion | None:
        """Return the judgement of an execution, or None if the checker or interactor itself failed.

        Raises CannotJudge if it reports a fault of the jury.
        """
        if execution.end is not ProgramEnd.EXITED:
            return None
        message = outcomes.last_line(execution.stderr) or outcomes.last_line(execution.stdout)
        if uses_testlib(self.code):
            try:
                text = execution.stderr.decode("utf-8", "replace").strip()
                return read_exit(execution.status, text, self.full_points)
            except JuryFailed:
                raise CannotJudge(f"the {self.role} reports a fault of the jury: {message}") from None
        if self.is_validator:
            return {_RIGHT: Opinion(1.0), _WRONG: Opinion(0.0, message)}.get(execution.status)
        last_line = outcomes.last_line(execution.stdout)
        if execution.status == 0 and last_line in _REFUSING_LINES:
            return Opinion(0.0, f"the {self.role} printed {last_line}")
        if execution.status == 0:
            return Opinion(1.0)
        # Python's exit status is 1 after an exception too.
        has_raised = self.language == "python" and _TRACEBACK in execution.stderr
        return Opinion(0.0, message) if execution.status in _REFUSING_STATUSES and not has_raised else None

    def describe_failure(self, execution: Execution) -> str:
        """Return one line that describes how the checker or interactor itself failed."""
        return f"the {self.role} failed ({execution.end}, {execution.status}): {outcomes.last_line(execution.stderr)}"


Check = Callable[[StdioCase, str], Opinion]
"""Returns the judgement on the output for a case."""

_ACCEPTED = Opinion(1.0)


class _CheckerFailed(CannotJudge):
    """Raised if the checker failed, perhaps because of the output."""


def check_of(spec: str | Mapping[str, Json], local: Local) -> Check:
    """Return a function that judges outputs by the checker of a suite."""
    if isinstance(spec, Mapping) and spec.get("type") == "program":
        return _ProgramChecker(spec, local)
    compare = checker_of(spec)

    def check(case: StdioCase, output: str) -> Opinion:
        difference = compare(case.output, output)
        return _ACCEPTED if difference is None else Opinion(0.0, difference)

    return check


class _ProgramChecker:
    """A checker that is a program."""

    def __init__(self, spec: Mapping[str, Json], local: Local) -> None:
        self._program, self._local = SuiteProgram.from_spec("checker", spec), local
        self._ready: Ready | None = None
        is_called = self._program.language == "python" and not self._program.is_validator
        self._defines_check = is_called and "def check(" in self._program.code

    def __call__(self, case: StdioCase, output: str) -> Opinion:
        try:
            return self._run([case.input, output, case.output])
        except _CheckerFailed as failure:
            # A checker that accepts the expected output works, so this output is at fault.
            if self._run([case.input, case.output, case.output]).share == 1.0:
                return Opinion(0.0, f"the checker cannot read it: {failure}")
            raise

    def _run(self, texts: Sequence[str]) -> Opinion:
        """Return the checker's judgement. texts: input, output and expected output."""
        try:
            return self._call_check(texts) if self._defines_check else self._run_program(texts)
        except SandboxError as error:
            raise NotRun("checker", error) from error

    def _call_check(self, texts: Sequence[str]) -> Opinion:
        source = TestedProgram(self._program.code, "", self._local, PROGRAM_LIMITS)
        calls = make_calls(source, [SolutionCall("check", list(texts), {})], {})
        accepted = calls.outcomes[0]
        failure = failed_call(accepted, calls)
        if failure is not None:
            raise _CheckerFailed(f"the checker failed: {failure[1]}")
        if isinstance(accepted, bool):
            return _ACCEPTED if accepted else Opinion(0.0, "the checker refuses it")
        raise _CheckerFailed(f"the checker returned {outcomes.cut(accepted)} instead of True or False")

    def _run_program(self, texts: Sequence[str]) -> Opinion:
        if self._ready is None:
            self._ready = self._program.prepare(self._local)
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in zip(ARGUMENTS, texts, strict=True)}
        execution = self._ready.run_with(files, files[OUTPUT] if self._program.is_validator else b"")
        opinion = self._program.opinion(execution)
        if opinion is None:
            raise _CheckerFailed(self._program.describe_failure(execution))
        if opinion.share == 0.0 and not uses_testlib(self._program.code):
            return Opinion(0.0, f"the checker refuses it: {opinion.why}")
        return opinion


SILENT = Program("python", "import os, sys\nos.close(1)\nsys.stdin.read()\n")
"""A program that reads its input and prints nothing."""


class Interactor:
    """The interactor of a suite. check: judges the interactor's output if the suite's checker is a program."""

    def __init__(self, tests: Stdio, local: Local, check: Check) -> None:
        self._program = SuiteProgram.from_spec("interactor", tests.interactor or {})
        self._local, self._check = local, check
        self._ready = self._program.prepare(local)
        has_checker = isinstance(tests.checker, Mapping) and tests.checker.get("type") == "program"
        self._collected_files: Sequence[str] = [OUTPUT] if has_checker else []
        self._works: bool | None = None
        """Whether the interactor can judge a silent program, or None before this was tried."""

    def judge(self, case: StdioCase, partner: Ready) -> tuple[CaseResult, Execution]:
        """Return the result of a case and the execution of the solution. partner: the prepared solution."""
        solution, interactor, files = self._converse(case, partner, self._collected_files)
        shown = {"input": case.input, "expected": case.output or None}
        if solution.end in LIMIT_FAILURES:
            reason, error = LIMIT_FAILURES[solution.end]
            if solution.end is ProgramEnd.WALL_LIMIT:
                error += ": it has to flush its output, and to end after its last message"
            return failed_case(case.weight, reason, error=error, **shown), solution
        opinion = self._program.opinion(interactor)
        if opinion is None and _is_cut_short(interactor):
            opinion = Opinion(0.0, "it ended or closed its input before the interactor was done")
        elif opinion is None:
            failure = self._program.describe_failure(interactor)
            if not self._works_alone(case):
                raise CannotJudge(failure)
            opinion = Opinion(0.0, f"the interactor cannot read its messages: {failure}")
        elif opinion.share == 1.0 and self._collected_files:
            opinion = self._check(case, files.get(OUTPUT, b"").decode("utf-8", "replace"))
        return judged_case(case.weight, opinion, shown), solution

    def _converse(
        self, case: StdioCase, partner: Ready, collected_files: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        """Return the executions of solution and interactor, and the collected files of the interactor."""
        texts = {INPUT: case.input, ANSWER: case.output}
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
        return partner.converse(self._ready, files, collected_files)

    def _works_alone(self, case: StdioCase) -> bool:
        """Return whether the interactor can judge a silent program."""
        if self._works is None:
            try:
                interactor = self._converse(case, self._local.prepare_partner(SILENT, Limits()), [])[1]
            except SandboxError as error:
                raise NotRun("interactor", error) from error
            self._works = _is_cut_short(interactor) or self._program.opinion(interactor) is not None
        return self._works


def _is_cut_short(interactor: Execution) -> bool:
    """Return whether the interactor ended because the program no longer reads its output."""
    return interactor.end is ProgramEnd.SIGNALLED and interactor.status == signal.SIGPIPE


MAX_OVERRUNS = 2
"""After this many cases in which a program exceeds a limit or crashes, the remaining cases fail without running."""

MAX_IDLE_S = 30.0
"""After a program has slept for this many seconds in all cases together, the remaining cases fail without running."""

SHOWN_BYTES = 2000
"""Maximum number of bytes of an output that are decoded for the evidence."""


class NotCompiled(Exception):
    """Raised for a program that does not compile. The text is the compiler's error."""


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
