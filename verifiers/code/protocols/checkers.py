"""Says whether a printed output is accepted, by comparison or by a checker program.

Where several answers are right, the checker is a program. It gets input, output and expected output in a sandbox:

    Python that defines check(input, output, answer) -> bool is called.
    A program that includes testlib.h says by its exit code what it thinks, points among it (`testlib`).
    Any other program accepts with exit status 0; 1 and 2 reject, and so does a last line of output that is 0 or False.

Anything else is a broken checker, unless it takes the expected output: then it is this output that it cannot read.

Programs that a suite brings along: checkers and interactors, sandboxed as the solution is.

    {"type": "program", "code": "#include \\"testlib.h\\"...", "language": "cpp", "files": {"params.h": "#define N 5"}}

They are run as testlib's are, `checker input.txt output.txt answer.txt`. A program is compiled once for all cases, and
what came of that is kept for the next suite with the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from truegold.verifiers.code.outcomes import CannotJudge, cut, last_line
from truegold.verifiers.code.output_comparison import checker_of
from truegold.verifiers.code.protocols.python_tests import TestedProgram, failed_call, make_calls
from truegold.verifiers.code.suite.reading import StdioCase
from truegold.verifiers.code.testlib import HeaderMissing, JuryFailed, Opinion, read_exit, uses_testlib, with_header
from truegold.verifiers.sandbox.execution import Execution, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.inside.wire.foreign_values import Json
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local, Ready
from truegold.verifiers.sandbox.toolchains import LANGUAGES
from truegold.verifiers.verdict import Reason

PROGRAM_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)
INPUT, OUTPUT, ANSWER = ARGUMENTS = ("input.txt", "output.txt", "answer.txt")
"""The files of a case, in the order of testlib."""

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
        source = TestedProgram(self._program.code)
        calls = make_calls(source, [("check", list(texts), {})], {}, self._local, PROGRAM_LIMITS)
        accepted = calls.outcomes[0]
        failure = failed_call(accepted, calls)
        if failure is not None:
            raise _Failed(f"the checker failed: {failure[1]}")
        if isinstance(accepted, bool):
            return _ACCEPTED if accepted else Opinion(0.0, "the checker refuses it")
        raise _Failed(f"the checker gave no True or False but {cut(accepted)}")

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
            what = next(error_lines, last_line(ready.compiled.stderr))
            raise CannotJudge(f"the {self.what} does not compile: {what}")
        return ready

    def opinion(self, execution: Execution) -> Opinion | None:
        """Return what its end says of the solution; None where it has failed itself. Raises CannotJudge where it says
        that the jury is at fault."""
        message = last_line(execution.stderr) or last_line(execution.stdout)
        if execution.end is not ProgramEnd.EXITED:
            return None
        if uses_testlib(self.code):
            try:
                text = execution.stderr.decode("utf-8", "replace").strip()
                return read_exit(execution.status, text, self.full_points)
            except JuryFailed:
                raise CannotJudge(f"the {self.what} says that the jury is at fault: {message}") from None
        word = last_line(execution.stdout)
        if execution.status == 0 and word in {"0", "0.0", "False", "false"}:
            return Opinion(0.0, f"the {self.what} says {word}")
        if execution.status == 0:
            return Opinion(1.0)
        # Python ends with 1 after an error, too.
        has_raised = self.language == "python" and _TRACEBACK in execution.stderr
        return Opinion(0.0, message) if execution.status in {1, 2} and not has_raised else None


def describe_failure(program: SuiteProgram, execution: Execution) -> str:
    """Return one line on a program of the tests that has failed itself."""
    return f"the {program.what} failed ({execution.end}, {execution.status}): {last_line(execution.stderr)}"
