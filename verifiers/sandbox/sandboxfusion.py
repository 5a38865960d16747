"""Runs programs in a service, SandboxFusion (github.com/bytedance/SandboxFusion), by `POST /run_code`.

    SandboxFusion("http://localhost:8080").prepare(Program("cpp", source), Limits(cpu_s=2)).run(b"3 4\\n")

What it gives, and what follows:
- It bounds time by the wall clock alone. A program gets three times its CPU limit and 2 s (`WALL_FACTOR`), and ends in
  WALL_LIMIT; no CPU time is known. With the CPU limit itself for a bound, right programs would fail whenever the
  service is busy.
- It bounds memory by address space, for the languages whose runtimes work under such a bound (`BOUND_MEMORY`); others
  have the service's own bound. Meeting it looks like any other failure of a program.
- It keeps the first MiB of stdout: where as much comes back, the end is OUTPUT_LIMIT. Older releases do not read the
  output while a program runs: above some 100 KB it blocks, and ends in WALL_LIMIT. Output that is not UTF-8 comes back
  as an error message.
- A service compiles at every run and cannot keep what it made. Where a language is compiled, `compiled` therefore comes
  from a run of its own that is cut short at once (`CHECK_S`): tests are not run on a program that does not compile.
- Its default deployment runs programs with its own rights and network. Isolation is the service's business.

Trouble with the service (it is away, overloaded, wrongly set up, or answers nonsense) is a `SandboxError` of one line
that names its address without credentials; no verdict follows from it.
"""

from __future__ import annotations

import base64
import signal
from dataclasses import dataclass, field

from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.sandbox.execution import Execution, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.http_service import IN_FLIGHT, REAL_CLOCK, RetryClock, Service, ServiceReply, one_line
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local, Ready

_SAME_NAMES = "python cpp java typescript go rust csharp php bash ruby scala julia perl lua swift racket"
LANGUAGES = {
    **{name: name for name in _SAME_NAMES.split()},
    "javascript": "nodejs",
    "kotlin": "kotlin_script",
    "r": "R",
}
"""truegold's names and the service's."""

COMPILED = frozenset({"cpp", "java", "go", "rust", "kotlin", "scala", "swift"})
"""Languages with a compile stage. What the others do first (TypeScript, C#) is part of their run."""

BOUND_MEMORY = frozenset({"python", "cpp", "rust", "php", "bash", "ruby", "perl", "lua", "r"})
"""Languages whose programs run under a bound on address space. The others reserve address space that they never use,
and would not start within a bound on it."""

CAPTURED_BYTES = 2**20
"""What the service keeps of an output."""

WALL_FACTOR, WALL_EXTRA_S = 3.0, 2.0
"""A program is ended after so many times its CPU limit and so much more, by the wall clock: late, since the clock also
runs while other programs have the cores. This stops what waits and takes no CPU time."""

CHECK_S = 0.1
"""How long a program runs that was only to be compiled."""

QUEUE_S = 60.0
"""What a request may take besides compiling and running, most of it in the service's own queue."""

STDERR_BYTES = 2**14

_KILLED = int(signal.SIGKILL)
_CUT_INSIDE_A_CHARACTER = "[DecodeError] 'utf-8' codec can't decode"
_NOT_FOUND = 127
"""A shell's exit status for a command that does not exist."""


@dataclass(frozen=True, slots=True)
class SandboxFusion:
    """Implements `Backend`."""

    url: str = field(repr=False)
    """The service, with or without /run_code."""
    in_flight: int = IN_FLIGHT
    """Requests at one time, of one process."""
    clock: RetryClock = field(default=REAL_CLOCK, repr=False)
    local: Local = field(default_factory=Local, repr=False)
    """Where test code and the programs of the tests run."""

    def __post_init__(self) -> None:
        self.service()

    @property
    def tier(self) -> str:
        """What verdicts name as the tier."""
        return "remote"

    def service(self) -> Service:
        """Return the service behind the address. Raises ConfigError where that is no address."""
        return Service(self.url.rstrip("/").removesuffix("/run_code"), self.in_flight, self.clock)

    def prepare(self, program: Program, limits: Limits) -> RemoteProgram:
        """Compile the program where its language is. Raises SandboxError where the service has no such language."""
        if program.language not in LANGUAGES:
            known = ", ".join(sorted(LANGUAGES))
            raise SandboxError(f"{self.service().address} runs no {program.language!r}, only {known}")
        compiled = _unencodable(program.source)
        if compiled is None and program.language in COMPILED:
            compiled = _compilation(self.ask(program, limits, "", CHECK_S), limits)
        return RemoteProgram(compiled, self, program, limits)

    def prepare_partner(self, program: Program, limits: Limits) -> Ready:
        """Make a program ready on this machine: the service runs one program at a time."""
        return self.local.prepare_partner(program, limits)

    def ask(self, program: Program, limits: Limits, stdin: str, run_s: float) -> ServiceReply:
        """Have the service compile and run a program once, for at most `run_s` seconds of wall time."""
        compile_s = _wall_s(limits.compile_cpu_s)
        body = {
            "language": LANGUAGES[program.language],
            "code": program.source,
            "stdin": stdin,
            "compile_timeout": compile_s,
            "run_timeout": run_s,
            "memory_limit_MB": limits.memory_mb if program.language in BOUND_MEMORY else -1,
            "files": {name: base64.b64encode(content).decode() for name, content in program.files.items()},
            "fetch_files": [],
        }
        timeout_s = run_s + QUEUE_S + (compile_s if program.language in COMPILED else 0)
        return self.service().post("/run_code", body, timeout_s, _service_fault)


@dataclass(slots=True)
class RemoteProgram:
    """A program that the service runs. Implements `Prepared`."""

    compiled: Execution | None
    backend: SandboxFusion
    program: Program
    limits: Limits

    def run(self, stdin: bytes) -> Execution:
        """Run the program on an input. Raises SandboxError where that is not UTF-8."""
        address = self.backend.service().address
        try:
            text = stdin.decode()
        except UnicodeDecodeError:
            raise SandboxError(f"{address} takes text for stdin, and this input is not UTF-8") from None
        reply = self.backend.ask(self.program, self.limits, text, _wall_s(self.limits.cpu_s))
        compiled = _compilation(reply, self.limits)
        if compiled is not None and not compiled.ok:
            shown = one_line(compiled.stderr.decode("utf-8", "replace"))
            raise SandboxError(
                f"{reply.address}: a program that had compiled did not compile again ({compiled.end}): {shown}"
            )
        return _execution(reply.part("run_result"), self.limits)


def _wall_s(cpu_s: float) -> float:
    return cpu_s * WALL_FACTOR + WALL_EXTRA_S


def _unencodable(source: str) -> Execution | None:
    """Lone surrogates, which JSON can smuggle in, make no file: the program's fault, although a service would fail."""
    try:
        source.encode()
    except UnicodeEncodeError as error:
        message = f"the source is not text: a lone surrogate at character {error.start}\n"
        return Execution(ProgramEnd.EXITED, 1, b"", message.encode(), cpu_s=None, wall_s=0.0)
    return None


def _service_fault(reply: ServiceReply) -> str | None:
    status = reply.field("status", str)
    if status in ("Success", "Failed"):
        return None
    return f"status {one_line(status)}: {one_line(reply.field_or_none('message', str) or 'no message')}"


def _compilation(reply: ServiceReply, limits: Limits) -> Execution | None:
    """Return what became of the compile stage; None where there was none."""
    if reply.field_or_none("compile_result", dict) is None:
        return None
    compiled = _execution(reply.part("compile_result"), limits)
    if compiled.end is ProgramEnd.EXITED and compiled.status == _NOT_FOUND:
        stderr = compiled.stderr.decode("utf-8", "replace")
        raise SandboxError(f"{reply.address} lacks the compiler: {one_line(stderr)}")
    return compiled


def _execution(result: ServiceReply, limits: Limits) -> Execution:
    """Read one stage's result. Output above the limit is cut off, and of stderr only the beginning is kept."""
    stdout = (result.field_or_none("stdout", str) or "").encode("utf-8", "replace")
    stderr = (result.field_or_none("stderr", str) or "").encode("utf-8", "replace")
    wall_s = result.field_or_none("execution_time", float) or 0.0
    if result.field("status", str) == "TimeLimitExceeded":
        end, status = ProgramEnd.WALL_LIMIT, _KILLED
    else:
        code = result.field("return_code", int)
        end, status = ProgramEnd.SIGNALLED if code < 0 else ProgramEnd.EXITED, abs(code)
    max_bytes = int(limits.output_mb * 2**20)
    if end is not ProgramEnd.WALL_LIMIT and (_was_cut(stdout) or len(stdout) > max_bytes):
        end = ProgramEnd.OUTPUT_LIMIT
    return Execution(end, status, stdout[:max_bytes], stderr[:STDERR_BYTES], cpu_s=None, wall_s=wall_s)


def _was_cut(stdout: bytes) -> bool:
    """Cut inside a character, an output comes back as the message of its decoding error."""
    is_error = stdout.startswith(_CUT_INSIDE_A_CHARACTER.encode()) and stdout.endswith(b"unexpected end of data")
    return is_error or len(stdout) >= CAPTURED_BYTES


def backend_of(spec: str, local: Local) -> SandboxFusion:
    """Return the back end that `spec` names, with the one for test code. Raises ConfigError where it names none."""
    kind, plus, url = spec.partition("+")
    if plus and kind == "sandboxfusion":
        return SandboxFusion(url, local=local)
    raise ConfigError(
        f"{spec.partition('://')[0]!r} names no service that runs programs.",
        "Known is sandboxfusion+http://HOST:PORT (or https).",
    )
