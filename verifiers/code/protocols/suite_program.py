"""Programs that a suite brings along: checkers and interactors, sandboxed as the solution is.

    {"type": "program", "code": "#include \\"testlib.h\\"...", "language": "cpp", "files": {"params.h": "#define N 5"}}

They are run as testlib's are, `checker input.txt output.txt answer.txt`. A program is compiled once for all cases, and
what came of that is kept for the next suite with the same one.

A program that includes testlib.h says by its exit code what it thinks, points among it (`testlib.py`). Any other one
accepts with exit status 0; 1 and 2 reject, and so does a last line of output that is 0 or False. Any other end is a
failure of the program itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.outcomes import CannotJudge, Opinion
from truegold.verifiers.code.protocols.testlib import HeaderMissing, JuryFailed, read_exit, uses_testlib, with_header
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
    """What it finds when it is compiled, such as headers."""
    full_points: float
    """The points of a right answer, for programs that give points."""

    @classmethod
    def from_spec(cls, role: str, spec: Mapping[str, Json]) -> SuiteProgram:
        """Return the program that a suite describes (`suite/reading.py` has read the description)."""
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in (spec.get("files") or {}).items()}
        points = float(spec.get("full_points") or 1.0)
        return cls(role, code=str(spec["code"]), language=str(spec["language"]), files=files, full_points=points)

    def prepare(self, local: Local) -> Ready:
        """Make it ready to run. Raises CannotJudge where that cannot be."""
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
        """Return what its end says of the solution; None where it has failed itself.

        Raises CannotJudge where it says that the jury is at fault.
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
