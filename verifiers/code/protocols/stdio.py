"""Programs that read stdin and write stdout. Each case is one run; outputs are compared here, outside.

    case {"input": "3\\n4\\n", "output": "7\\n"}, the program prints "7"  ->  passed

Where there is an interactor, program and interactor talk:

    {"type": "interactive", "cases": [{"input": "100 42"}], "interactor": "...registerInteraction(argc, argv);..."}

Both run at the same time, apart, each under limits of its own; each reads what the other one prints. The interactor is
run as `interactor input.txt output.txt answer.txt`, as testlib has it. What it writes to output.txt goes to the suite's
checker, where there is one.

The interactor's word decides: a program that is accepted has answered, however it ends afterwards, unless it passed a
limit. Where both wait for each other, as for a program that never flushes, waiting ends as it does for a program alone.
An interactor that fails is tried on a program that says nothing: if it can do that, it was this program's talk that it
could not take.

Where several answers are right, the checker is a program. It gets input, output and expected output in a sandbox:

    Python that defines check(input, output, answer) -> bool is called.
    A program that includes testlib.h says by its exit code what it thinks, points among it (`read_exit`).
    Any other program accepts with exit status 0; 1 and 2 reject, and so does a last line of output that is 0 or False.

Anything else is a broken checker, unless it takes the expected output: then it is this output that it cannot read.

Programs that a suite brings along: checkers and interactors, sandboxed as the solution is.

    {"type": "program", "code": "#include \\"testlib.h\\"...", "language": "cpp", "files": {"params.h": "#define N 5"}}

They are run as testlib's are, `checker input.txt output.txt answer.txt`. A program is compiled once for all cases, and
what came of that is kept for the next suite with the same one.

Those in C++ are mostly written against testlib.h:

    with_header("#include <testlib.h>\\nint main(...", {})    the source with `#include "testlib.h"`, and that file
    read_exit(0, "ok 3 numbers")                             Opinion(1.0)
    read_exit(1, "wrong answer 2nd numbers differ")          Opinion(0.0, "wrong answer 2nd numbers differ")
    read_exit(7, "points 40 two of five", full_points=100)   Opinion(0.4, "points 40 two of five")
    read_exit(3, "FAIL the jury has no answer")              JuryFailed: nobody knows whether the program is right

Exit codes are testlib's own: 0 ok, 1 wrong, 2 and 8 not in the form that was asked for, 4 more than was asked for, 3 a
fault of the jury, 7 points. A share in hundredths (`_pc`) has the exit code of its size, so that the words tell it.

The header is not part of truegold. It comes with the package `rbx-cp` (extra `contest`), or from the path in
`TRUEGOLD_TESTLIB`, or as one of the files of a suite.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.outcomes import LIMIT_FAILURES, CannotJudge, CaseResult, Judged, failed_case, passed_case
from truegold.verifiers.code.output_comparison import checker_of
from truegold.verifiers.code.protocols.python_tests import TestedProgram, failed_call, make_calls
from truegold.verifiers.code.suite.reading import Stdio, StdioCase
from truegold.verifiers.sandbox.execution import Execution, Prepared, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.inside.wire.foreign_values import Json
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Backend, Local, Partner, Ready
from truegold.verifiers.sandbox.toolchains import LANGUAGES
from truegold.verifiers.verdict import Reason

MAX_OVERRUNS = 2
"""Cases that may end at a limit before the others count as failed. Stops a program that loops on a hundred cases."""

MAX_IDLE_S = 30.0
"""Seconds of waiting over all cases of a program. Stops one that answers rightly and sleeps below the limit each
time."""

SILENT = Program("python", "import os, sys\nos.close(1)\nsys.stdin.read()\n")
"""A program that says nothing, and listens."""

PROGRAM_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)
INPUT, OUTPUT, ANSWER = ARGUMENTS = ("input.txt", "output.txt", "answer.txt")
"""The files of a case, in the order of testlib."""

HEADER = "testlib.h"
PATH_VARIABLE = "TRUEGOLD_TESTLIB"
_PACKAGE, _FILE = "rbx-cp", "rbx/resources/predownloaded/testlib.h"
MAX_WORDS = 300
"""Characters of what a checker says that evidence shows."""

_OK, _FAIL, _POINTS = 0, 3, 7
_REFUSALS = {1, 2, 4, 8}
_INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*[<"](?:[^<>"\n]*/)?testlib\.h[>"]""", re.MULTILINE)
_STATED_POINTS = re.compile(r"\bpoints\s+(\d+(?:\.\d+)?)")
_STATED_SHARE = re.compile(r"\bpartially correct \((\d{1,3})\)")


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
    shown = {"input": case.input, "expected": case.output, "got": execution.stdout[:2000].decode("utf-8", "replace")}
    failure = outcomes.failed_end(execution)
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


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a checker says of an output."""

    share: float
    """1 where the output is accepted, 0 where it is refused, and in between for points."""
    why: str | None = None
    """One line on what is wrong, where it is not accepted."""


_ACCEPTED = Opinion(1.0)
_TRACEBACK = b"Traceback (most recent call last):"

Check = Callable[[StdioCase, str], Opinion]
"""Says what to think of an output."""


def check_of(spec: str | Mapping[str, Json], local: Local) -> Check:
    """Return what judges outputs by a checker's description."""
    if isinstance(spec, Mapping) and spec.get("type") == "program":
        return _ProgramChecker(spec, local)
    compare = checker_of(spec)

    def check(case: StdioCase, output: str) -> Opinion:
        difference = compare(case.output, output)
        return _ACCEPTED if difference is None else Opinion(0.0, difference)

    return check


class _Failed(CannotJudge):
    """The checker failed, on this output at least."""


class NotRun(CannotJudge):
    """The sandbox failed before the program was run at all."""

    def __init__(self, what: str, error: SandboxError) -> None:
        super().__init__(f"the {what} could not be run: {error}", Reason.SANDBOX_ERROR)


class _ProgramChecker:
    """A checker that is a program, sandboxed as the solution is."""

    def __init__(self, spec: Mapping[str, Json], local: Local) -> None:
        self._program, self._local = SuiteProgram.from_spec("checker", spec), local
        self._ready: Ready | None = None
        self._defines_check = self._program.language == "python" and "def check(" in self._program.code

    def __call__(self, case: StdioCase, output: str) -> Opinion:
        try:
            return self._run([case.input, output, case.output])
        except _Failed as failure:
            # A checker that takes the expected output works, and it is this output that it cannot read.
            if self._run([case.input, case.output, case.output]).share == 1.0:
                return Opinion(0.0, f"the checker cannot read it: {failure}")
            raise

    def _run(self, texts: Sequence[str]) -> Opinion:
        """Return what it says. texts: input, output and expected output."""
        try:
            return self._call_check(texts) if self._defines_check else self._run_program(texts)
        except SandboxError as error:
            raise NotRun("checker", error) from error

    def _call_check(self, texts: Sequence[str]) -> Opinion:
        source = TestedProgram(self._program.code, "", self._local, PROGRAM_LIMITS)
        calls = make_calls(source, [("check", list(texts), {})], {})
        accepted = calls.outcomes[0]
        failure = failed_call(accepted, calls)
        if failure is not None:
            raise _Failed(f"the checker failed: {failure[1]}")
        if isinstance(accepted, bool):
            return _ACCEPTED if accepted else Opinion(0.0, "the checker refuses it")
        raise _Failed(f"the checker gave no True or False but {outcomes.cut(accepted)}")

    def _run_program(self, texts: Sequence[str]) -> Opinion:
        if self._ready is None:
            self._ready = self._program.prepare(self._local)
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in zip(ARGUMENTS, texts, strict=True)}
        execution = self._ready.run_with(files)
        opinion = self._program.opinion(execution)
        if opinion is None:
            raise _Failed(describe_failure(self._program, execution))
        if opinion.share == 0.0 and not uses_testlib(self._program.code):
            return Opinion(0.0, f"the checker refuses it: {opinion.why}")
        return opinion


@dataclass(frozen=True, slots=True)
class SuiteProgram:
    """A checker or an interactor."""

    what: str
    """What messages call it."""
    code: str
    language: str
    files: Mapping[str, bytes]
    """What it finds when it is compiled, such as headers."""
    full_points: float
    """The points of a right answer, for programs that give points."""

    @classmethod
    def from_spec(cls, what: str, spec: Mapping[str, Json]) -> SuiteProgram:
        """Return the program that a suite describes (`suite/reading.py` has read the description)."""
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in (spec.get("files") or {}).items()}
        points = float(spec.get("full_points") or 1.0)
        return cls(what, str(spec["code"]), str(spec["language"]), files, points)

    def prepare(self, local: Local) -> Ready:
        """Make it ready to run. Raises CannotJudge where that cannot be."""
        if self.language != "python" and self.language not in LANGUAGES:
            raise CannotJudge(f"{self.what}s in {self.language!r} are not known")
        try:
            source, files = with_header(self.code, self.files)
            ready = local.prepare_script(Program(self.language, source, files), PROGRAM_LIMITS, ARGUMENTS)
        except HeaderMissing as error:
            raise CannotJudge(f"the {self.what} cannot be compiled: {error}", Reason.SANDBOX_ERROR) from None
        except SandboxError as error:
            raise NotRun(self.what, error) from error
        if ready.compiled is not None and not ready.compiled.ok:
            lines = ready.compiled.stderr.decode("utf-8", "replace").splitlines()
            error_lines = (line.strip()[:300] for line in lines if "error" in line)
            what = next(error_lines, outcomes.last_line(ready.compiled.stderr))
            raise CannotJudge(f"the {self.what} does not compile: {what}")
        return ready

    def opinion(self, execution: Execution) -> Opinion | None:
        """Return what its end says of the solution; None where it has failed itself. Raises CannotJudge where it says
        that the jury is at fault."""
        message = outcomes.last_line(execution.stderr) or outcomes.last_line(execution.stdout)
        if execution.end is not ProgramEnd.EXITED:
            return None
        if uses_testlib(self.code):
            try:
                text = execution.stderr.decode("utf-8", "replace").strip()
                return read_exit(execution.status, text, self.full_points)
            except JuryFailed:
                raise CannotJudge(f"the {self.what} says that the jury is at fault: {message}") from None
        word = outcomes.last_line(execution.stdout)
        if execution.status == 0 and word in {"0", "0.0", "False", "false"}:
            return Opinion(0.0, f"the {self.what} says {word}")
        if execution.status == 0:
            return Opinion(1.0)
        # Python ends with 1 after an error, too.
        has_raised = self.language == "python" and _TRACEBACK in execution.stderr
        return Opinion(0.0, message) if execution.status in {1, 2} and not has_raised else None


def describe_failure(program: SuiteProgram, execution: Execution) -> str:
    """Return one line on a program of the tests that has failed itself."""
    return f"the {program.what} failed ({execution.end}, {execution.status}): {outcomes.last_line(execution.stderr)}"


class JuryFailed(Exception):
    """The checker says that the jury's answer, the input or the checker itself is at fault."""


class HeaderMissing(Exception):
    """testlib.h is not on this machine; the text says how to get it."""


@cache
def header() -> bytes:
    """Return the text of testlib.h, of the path in `TRUEGOLD_TESTLIB` or else of the package rbx-cp.

    Raises HeaderMissing.
    """
    remedy = f"pip install 'truegold[contest]', name the file in {PATH_VARIABLE}, or put it in the suite's files"
    if path := os.environ.get(PATH_VARIABLE):
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise HeaderMissing(
                f"{PATH_VARIABLE} is {path!r}, which cannot be read ({error.strerror}); {remedy}"
            ) from None
    try:
        return Path(str(distribution(_PACKAGE).locate_file(_FILE))).read_bytes()
    except (PackageNotFoundError, OSError):
        raise HeaderMissing(f"{HEADER} is not installed: {remedy}") from None


def uses_testlib(source: str) -> bool:
    """Return whether a program includes testlib.h, from whatever folder."""
    return _INCLUDE.search(source) is not None


def with_header(source: str, extra: Mapping[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """Return a program with the files that it needs to compile: testlib.h where it includes that, unless it is one of
    the extra files. Raises HeaderMissing."""
    if not uses_testlib(source):
        return source, dict(extra)
    files = dict(extra) if HEADER in extra else {HEADER: header(), **extra}
    return _INCLUDE.sub(f'#include "{HEADER}"', source), files


def read_exit(status: int, message: str, full_points: float = 1.0) -> Opinion | None:
    """Return what an exit status says; None where no checker of testlib ends so. Raises JuryFailed.

    full_points: how many points a right answer gets.
    """
    if (hundredths := _STATED_SHARE.search(message)) is not None and status == int(hundredths[1]):
        return _partial(int(hundredths[1]) / 100, message)
    if status == _OK:
        return Opinion(1.0)
    if status == _FAIL:
        raise JuryFailed(message)
    if status in _REFUSALS:
        return Opinion(0.0, _last_line(message))
    points = _STATED_POINTS.search(message) if status == _POINTS else None
    return None if points is None else _partial(float(points[1]) / full_points, message)


def _partial(share: float, message: str) -> Opinion:
    share = min(max(share, 0.0), 1.0)
    return Opinion(share, _last_line(message) if share < 1.0 else None)


def _last_line(message: str) -> str:
    return message.strip().rpartition("\n")[2][:MAX_WORDS]
