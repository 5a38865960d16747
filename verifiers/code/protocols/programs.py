"""Programs that a suite brings along: checkers and interactors, sandboxed as the solution is.

    {"type": "program", "code": "#include \\"testlib.h\\"...", "language": "cpp", "files": {"params.h": "#define N 5"}}

They are run as testlib's are, `checker input.txt output.txt answer.txt`. A program is compiled once for all cases, and
what came of that is kept for the next suite with the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.code.judging import CannotJudge, last_line
from truegold.verifiers.code.testlib import HeaderMissing, JuryFailed, Opinion, read_exit, uses_testlib, with_header
from truegold.verifiers.sandbox.execution import End, Execution, Program, SandboxError
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local, Ready
from truegold.verifiers.sandbox.toolchains import LANGUAGES
from truegold.verifiers.verdict import Reason

PROGRAM_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)
_TRACEBACK = b"Traceback (most recent call last):"
INPUT, OUTPUT, ANSWER = ARGUMENTS = ("input.txt", "output.txt", "answer.txt")
"""The files of a case, in the order of testlib."""


class NotRun(CannotJudge):
    """The sandbox failed before the program was run at all."""

    def __init__(self, what: str, error: SandboxError) -> None:
        super().__init__(f"the {what} could not be run: {error}", Reason.SANDBOX_ERROR)


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
    def from_spec(cls, what: str, spec: Mapping[str, Any]) -> SuiteProgram:
        """Return the program that a suite describes (`suite/programs.py` has read the description)."""
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in (spec.get("files") or {}).items()}
        points = float(spec.get("full_points") or 1.0)
        return cls(what, str(spec["code"]), str(spec["language"]), files, points)

    @property
    def is_testlib(self) -> bool:
        """Whether its exit codes are those of testlib."""
        return uses_testlib(self.code)

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
            raise CannotJudge(f"the {self.what} does not compile: {_first_error(ready.compiled.stderr)}")
        return ready

    def opinion(self, execution: Execution) -> Opinion | None:
        """Return what its end says of the solution; None where it has failed itself. Raises CannotJudge where it says
        that the jury is at fault."""
        message = last_line(execution.stderr) or last_line(execution.stdout)
        if execution.end is not End.EXITED:
            return None
        if self.is_testlib:
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


def _first_error(stderr: bytes) -> str:
    """Return the line of a compiler's output that names the first error, else the last."""
    lines = stderr.decode("utf-8", "replace").splitlines()
    return next((line.strip()[:300] for line in lines if "error" in line), last_line(stderr))
