"""Programs that a suite brings along, checkers and interactors, sandboxed as the solution is.

    {"type": "program", "code": "#include \\"testlib.h\\"...", "language": "cpp", "files": {"params.h": "#define N 5"}}

A checker says whether an output is right. Most compare it with the expected one (`output_comparison.py`); a program is
run as testlib's are, `checker input.txt output.txt answer.txt`, or has its `check(input, output, answer)` called. It is
compiled once for all cases, and kept for the next suite with the same one. One that includes testlib.h says by its exit
code what it thinks (`testlib.py`). Any other accepts with exit status 0; 1 and 2 reject, and so does a last line of
output that is 0 or False. Any other end is a failure of the checker, unless it takes the expected output: then it is
this output that it cannot read.

An interactor talks with the solution: `interactor input.txt output.txt answer.txt`, each reading what the other one
prints, apart and under limits of its own. What it writes to output.txt goes to the suite's checker, where that is a
program. Its word decides: a program that is accepted has answered, however it ends, unless it passed a limit. An
interactor that fails is tried on a program that says nothing: if it can take that, it was this program's talk that it
could not take.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.checks.lowering import SolutionCall
from truegold.verifiers.code.outcomes import LIMIT_FAILURES, CannotJudge, CaseResult, Opinion, failed_case, judged_case
from truegold.verifiers.code.output_comparison import checker_of
from truegold.verifiers.code.protocols.python_tests import TestedProgram, failed_call, make_calls
from truegold.verifiers.code.protocols.testlib import HeaderMissing, JuryFailed, read_exit, uses_testlib, with_header
from truegold.verifiers.code.suite.reading import Stdio, StdioCase
from truegold.verifiers.sandbox.execution import Execution, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.inside.wire.foreign_values import Json
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local, Ready
from truegold.verifiers.sandbox.toolchains import LANGUAGES
from truegold.verifiers.verdict import Reason

PROGRAM_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)
INPUT, OUTPUT, ANSWER = ARGUMENTS = ("input.txt", "output.txt", "answer.txt")
"""The files of a case, in the order of testlib."""

_TRACEBACK = b"Traceback (most recent call last):"
_REFUSING_LINES = {"0", "0.0", "False", "false"}
_REFUSING_STATUSES = {1, 2}


class NotRun(CannotJudge):
    """The sandbox failed before the program was run at all."""

    def __init__(self, role: str, error: SandboxError) -> None:
        super().__init__(f"the {role} could not be run: {error}", Reason.SANDBOX_ERROR)


@dataclass(frozen=True, slots=True)
class SuiteProgram:
    """A checker or an interactor."""

    role: str
    """`checker` or `interactor`, as messages call it."""
    code: str
    language: str
    files: Mapping[str, bytes]
    """Files that the program finds when it is compiled, such as headers."""
    full_points: float
    """The points of a right answer, for programs that give points."""

    @classmethod
    def from_spec(cls, role: str, spec: Mapping[str, Json]) -> SuiteProgram:
        """Return the program that a suite describes (`suite/reading.py` has read the description)."""
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in (spec.get("files") or {}).items()}
        points = float(spec.get("full_points") or 1.0)
        return cls(role, code=str(spec["code"]), language=str(spec["language"]), files=files, full_points=points)

    def prepare(self, local: Local) -> Ready:
        """Make it ready to run. Raises CannotJudge if that cannot be."""
        if self.language != "python" and self.language not in LANGUAGES:
            raise CannotJudge(f"{self.role}s in {self.language!r} are not known")
        try:
            source, files = with_header(self.code, self.files)
            ready = local.prepare_script(Program(self.language, source, files), PROGRAM_LIMITS, ARGUMENTS)
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
        """Return what its end says of the solution, or None if it has failed itself.

        Raises CannotJudge if it says that the jury is at fault.
        """
        if execution.end is not ProgramEnd.EXITED:
            return None
        message = outcomes.last_line(execution.stderr) or outcomes.last_line(execution.stdout)
        if uses_testlib(self.code):
            try:
                text = execution.stderr.decode("utf-8", "replace").strip()
                return read_exit(execution.status, text, self.full_points)
            except JuryFailed:
                raise CannotJudge(f"the {self.role} says that the jury is at fault: {message}") from None
        last_line = outcomes.last_line(execution.stdout)
        if execution.status == 0 and last_line in _REFUSING_LINES:
            return Opinion(0.0, f"the {self.role} says {last_line}")
        if execution.status == 0:
            return Opinion(1.0)
        # Python ends with 1 after an error, too.
        has_raised = self.language == "python" and _TRACEBACK in execution.stderr
        return Opinion(0.0, message) if execution.status in _REFUSING_STATUSES and not has_raised else None

    def describe_failure(self, execution: Execution) -> str:
        """Return one line on a run in which the program itself has failed."""
        return f"the {self.role} failed ({execution.end}, {execution.status}): {outcomes.last_line(execution.stderr)}"


Check = Callable[[StdioCase, str], Opinion]
"""Says what to think of an output."""

_ACCEPTED = Opinion(1.0)


class _CheckerFailed(CannotJudge):
    """The checker failed, on this output at least."""


def check_of(spec: str | Mapping[str, Json], local: Local) -> Check:
    """Return what judges outputs by a checker's description."""
    if isinstance(spec, Mapping) and spec.get("type") == "program":
        return _ProgramChecker(spec, local)
    compare = checker_of(spec)

    def check(case: StdioCase, output: str) -> Opinion:
        difference = compare(case.output, output)
        return _ACCEPTED if difference is None else Opinion(0.0, difference)

    return check


class _ProgramChecker:
    """A checker that is a program, sandboxed as the solution is."""

    def __init__(self, spec: Mapping[str, Json], local: Local) -> None:
        self._program, self._local = SuiteProgram.from_spec("checker", spec), local
        self._ready: Ready | None = None
        self._defines_check = self._program.language == "python" and "def check(" in self._program.code

    def __call__(self, case: StdioCase, output: str) -> Opinion:
        try:
            return self._run([case.input, output, case.output])
        except _CheckerFailed as failure:
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
        calls = make_calls(source, [SolutionCall("check", list(texts), {})], {})
        accepted = calls.outcomes[0]
        failure = failed_call(accepted, calls)
        if failure is not None:
            raise _CheckerFailed(f"the checker failed: {failure[1]}")
        if isinstance(accepted, bool):
            return _ACCEPTED if accepted else Opinion(0.0, "the checker refuses it")
        raise _CheckerFailed(f"the checker gave no True or False but {outcomes.cut(accepted)}")

    def _run_program(self, texts: Sequence[str]) -> Opinion:
        if self._ready is None:
            self._ready = self._program.prepare(self._local)
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in zip(ARGUMENTS, texts, strict=True)}
        execution = self._ready.run_with(files)
        opinion = self._program.opinion(execution)
        if opinion is None:
            raise _CheckerFailed(self._program.describe_failure(execution))
        if opinion.share == 0.0 and not uses_testlib(self._program.code):
            return Opinion(0.0, f"the checker refuses it: {opinion.why}")
        return opinion


SILENT = Program("python", "import os, sys\nos.close(1)\nsys.stdin.read()\n")
"""A program that says nothing, and listens."""


class Interactor:
    """The interactor of a suite, for all of its cases. check: what judges its output where the checker is a program."""

    def __init__(self, tests: Stdio, local: Local, check: Check) -> None:
        self._program = SuiteProgram.from_spec("interactor", tests.interactor or {})
        self._local, self._check = local, check
        self._ready = self._program.prepare(local)
        has_checker = isinstance(tests.checker, Mapping) and tests.checker.get("type") == "program"
        self._collected_files: Sequence[str] = [OUTPUT] if has_checker else []
        self._works: bool | None = None
        """Whether it comes to a verdict on a silent program; None until that was tried."""

    def judge(self, case: StdioCase, partner: Ready) -> tuple[CaseResult, Execution]:
        """Return the result of a talk with the solution, which is the partner, and the run of the solution."""
        solution, interactor, files = self._converse(case, partner, self._collected_files)
        shown = {"input": case.input, "expected": case.output or None}
        if solution.end in LIMIT_FAILURES:
            reason, error = LIMIT_FAILURES[solution.end]
            if solution.end is ProgramEnd.WALL_LIMIT:
                error += ": it has to flush what it prints, and to end when the talk is over"
            return failed_case(case.weight, reason, error=error, **shown), solution
        opinion = self._program.opinion(interactor)
        if opinion is None and _is_cut_short(interactor):
            opinion = Opinion(0.0, "it ended, or closed its output, before the interactor was done")
        elif opinion is None:
            failure = self._program.describe_failure(interactor)
            if not self._works_alone(case):
                raise CannotJudge(failure)
            opinion = Opinion(0.0, f"the interactor cannot take what it says: {failure}")
        elif opinion.share == 1.0 and self._collected_files:
            opinion = self._check(case, files.get(OUTPUT, b"").decode("utf-8", "replace"))
        return judged_case(case.weight, opinion, shown), solution

    def _converse(
        self, case: StdioCase, partner: Ready, collected_files: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        """Return the runs of solution and interactor, and those files of the interactor that are collected."""
        texts = {INPUT: case.input, ANSWER: case.output}
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
        return partner.converse(self._ready, files, collected_files)

    def _works_alone(self, case: StdioCase) -> bool:
        """Return whether it comes to a verdict on a program that says nothing."""
        if self._works is None:
            try:
                interactor = self._converse(case, self._local.prepare_partner(SILENT, Limits()), [])[1]
            except SandboxError as error:
                raise NotRun("interactor", error) from error
            self._works = _is_cut_short(interactor) or self._program.opinion(interactor) is not None
        return self._works


def _is_cut_short(interactor: Execution) -> bool:
    """Return whether the interactor ended because the program no longer reads what it prints."""
    return interactor.end is ProgramEnd.SIGNALLED and interactor.status == signal.SIGPIPE
