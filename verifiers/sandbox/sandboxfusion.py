"""Runs programs in a service, SandboxFusion (github.com/bytedance/SandboxFusion), by `POST /run_code`.

    SandboxFusion("http://localhost:8080").prepare(Program("cpp", source), Limits(cpu_s=2)).run(b"3 4\\n")

What it gives, and what follows:
- It bounds time by the wall clock alone. A program gets three times its CPU limit and 2 s (`WALL_FACTOR`), and ends in
  WALL_LIMIT; no CPU time is known. With the CPU limit itself for a bound, right programs would fail whenever the
  service is busy.
- It bounds memory by address space, for the languages whose runtimes work under such a bound (`BOUND_MEMORY`); others
  have the service's own bound. Meeting it looks like any other failure of a program.
- It keeps the first MiB of stdout: where as much comes back, the end is OUTPUT_LIMIT. In older releases a program that
  prints more than some 100 KB blocks. Output that is not UTF-8 comes back as an error message.
- A service compiles at every run and cannot keep what it made. Where a language is compiled, `compiled` therefore comes
  from a run of its own that is cut short at once (`CHECK_S`): tests are not run on a program that does not compile.
- Its default deployment runs programs with its own rights and network. Isolation is the service's business.

Trouble with the service is a `SandboxError` of one line that names its address without credentials. A request is
repeated, with growing and jittered pauses, after refused connections, statuses 429 (not before its Retry-After) and
5xx, and replies whose `status` is neither Success nor Failed; not after a time-out, since the service is still at work
on the first one. A circuit breaker leaves a service alone that fails several times in a row:

    closed     every call goes through; one success forgets the failures
    open       after 8 failures in a row: calls fail at once, so that a batch of rows does not wait for each of them
    half open  30 seconds later one call goes through and decides: closed again, or open for another 30 seconds

The number of requests in flight is bounded on this side, where waiting costs nothing. A back end is a value: it
pickles, and what it holds open (connections, breaker) is made in each process anew, in a forked one too.
"""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.sandbox.execution import Execution, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local, Ready
from truegold.verifiers.sandbox.service_reply import Trouble, one_line, read_field, read_reply

if TYPE_CHECKING:
    # Functions import it at its use: it takes a tenth of a second that verifiers without a service need not pay.
    import httpx

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

IN_FLIGHT = 16
"""Requests at one time, of one process. More of them time out while they wait for the service's cores."""

ATTEMPTS = 4
BACKOFF_S = 0.5
"""The first pause between two attempts; each further one is twice as long."""

MAX_PAUSE_S = 60.0
"""A service that asks for a longer pause has failed. Stops a Retry-After of a day from stopping a run for a day."""

CONNECT_S = 10.0

MAX_REPLY_BYTES = 64 * 2**20
"""A longer reply is not read. Stops a service without a bound on output from filling this process's memory."""

FAILURES_TO_OPEN = 8
"""The breaker opens after so many failed calls in a row, each after all its attempts. With fewer, the few programs that
bring a service down would close it to all others."""

COOL_DOWN_S = 30.0

_now, _sleep = time.monotonic, time.sleep
"""The clock of retries and of the breaker."""

_KILLED = int(signal.SIGKILL)
_CUT_INSIDE_A_CHARACTER = "[DecodeError] 'utf-8' codec can't decode"
_NOT_FOUND = 127
"""A shell's exit status for a command that does not exist."""


@dataclass(frozen=True, slots=True)
class SandboxFusion:
    """Implements `Backend`. Raises ConfigError where `url` is no http(s) address."""

    url: str = field(repr=False)
    """The service, with or without /run_code, and with credentials if it wants any."""
    local: Local = field(default_factory=Local, repr=False)
    """Where test code and the programs of the tests run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", self.url.rstrip("/").removesuffix("/run_code"))
        try:
            parts = urlsplit(self.url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            fits = False
        if not fits:
            raise ConfigError(
                f"{self.url.partition('@')[2] or self.url!r} is no address of a service.", "http(s)://HOST:PORT is."
            )

    @property
    def tier(self) -> str:
        """What verdicts name as the tier."""
        return "remote"

    @property
    def address(self) -> str:
        """The address as messages show it, without credentials and query."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"

    def prepare(self, program: Program, limits: Limits) -> RemoteProgram:
        """Compile the program where its language is. Raises SandboxError where the service has no such language."""
        if program.language not in LANGUAGES:
            known = ", ".join(sorted(LANGUAGES))
            raise SandboxError(f"{self.address} runs no {program.language!r}, only {known}")
        compiled = _unencodable(program.source)
        if compiled is None and program.language in COMPILED:
            compiled, _ = self.ask(program, limits, "", CHECK_S)
        return RemoteProgram(compiled, self, program, limits)

    def prepare_partner(self, program: Program, limits: Limits) -> Ready:
        """Make a program ready on this machine: the service runs one program at a time."""
        return self.local.prepare_partner(program, limits)

    def ask(self, program: Program, limits: Limits, stdin: str, run_s: float) -> Stages:
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
        connection = _connection(self)
        with connection.slots:
            connection.breaker.enter()
            for attempt in range(ATTEMPTS):
                try:
                    stages = _stages(self._post(connection.client, json.dumps(body).encode(), timeout_s), limits)
                except Trouble as trouble:
                    message = f"{self.address}/run_code: {trouble}"
                    is_last = attempt == ATTEMPTS - 1 or trouble.retry_after_s > MAX_PAUSE_S
                    if is_last or not trouble.repeatable:
                        if trouble.service_fails:
                            connection.breaker.count(message)
                        raise SandboxError(message) from trouble.__cause__
                    _sleep(trouble.retry_after_s + BACKOFF_S * (1 << attempt) * _jitter())
                else:
                    connection.breaker.count(None)
                    return stages
            raise AssertionError("the last attempt returns or raises")

    def _post(self, client: httpx.Client, content: bytes, timeout_s: float) -> dict[str, object]:
        """Return the reply to a request. timeout_s bounds all of it, from sending to the last byte."""
        import httpx

        timeout = httpx.Timeout(timeout_s, connect=CONNECT_S)
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        try:
            url = httpx.URL(self.url)
            url = url.copy_with(path=url.path.rstrip("/") + "/run_code")
            with client.stream("POST", url, content=content, headers=headers, timeout=timeout) as response:
                body = _read_body(response, timeout_s)
        except httpx.TimeoutException as error:
            connects = isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
            late = f"no reply within {timeout_s:.0f} s; it may be overloaded"
            raise Trouble(
                f"no connection within {CONNECT_S:.0f} s" if connects else late, repeatable=connects
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            message = one_line(str(error)) or type(error).__name__
            raise Trouble(message, repeatable=isinstance(error, httpx.TransportError)) from error
        reply = read_reply(response, body)
        if (status := read_field(reply, "status", str)) not in ("Success", "Failed"):
            message = one_line(read_field(reply, "message", str, "no message"))
            raise Trouble(f"status {one_line(status)}: {message}", repeatable=True, service_fails=False)
        return reply


class Stages(NamedTuple):
    """What became of the two stages of a request, where there were such."""

    compiled: Execution | None
    ran: Execution | None


@dataclass(slots=True)
class RemoteProgram:
    """A program that the service runs. Implements `Prepared`."""

    compiled: Execution | None
    backend: SandboxFusion
    program: Program
    limits: Limits

    def run(self, stdin: bytes) -> Execution:
        """Run the program on an input. Raises SandboxError where that is not UTF-8."""
        address = self.backend.address
        try:
            text = stdin.decode()
        except UnicodeDecodeError:
            raise SandboxError(f"{address} takes text for stdin, and this input is not UTF-8") from None
        compiled, ran = self.backend.ask(self.program, self.limits, text, _wall_s(self.limits.cpu_s))
        if compiled is not None and not compiled.ok:
            shown = one_line(compiled.stderr.decode("utf-8", "replace"))
            raise SandboxError(
                f"{address}: a program that had compiled did not compile again ({compiled.end}): {shown}"
            )
        if ran is None:
            raise SandboxError(f"{address}: no object run_result in the reply")
        return ran


def _wall_s(cpu_s: float) -> float:
    """Return the seconds on the clock after which a program with this CPU limit is ended."""
    return cpu_s * WALL_FACTOR + WALL_EXTRA_S


def _unencodable(source: str) -> Execution | None:
    """Return the failed compilation of a source with lone surrogates, which make no file; None for any other source.

    JSON can smuggle them in. It is the program's fault, although the service would be the one to fail.
    """
    try:
        source.encode()
    except UnicodeEncodeError as error:
        message = f"the source is not text: a lone surrogate at character {error.start}\n"
        return Execution(ProgramEnd.EXITED, 1, b"", message.encode(), cpu_s=None, wall_s=0.0)
    return None


def _stages(reply: Mapping[str, object], limits: Limits) -> Stages:
    compiled = _execution(reply, "compile_result", limits)
    if compiled is not None and compiled.end is ProgramEnd.EXITED and compiled.status == _NOT_FOUND:
        raise Trouble(f"it lacks the compiler: {one_line(compiled.stderr.decode('utf-8', 'replace'))}")
    return Stages(compiled, _execution(reply, "run_result", limits))


def _execution(reply: Mapping[str, object], stage: str, limits: Limits) -> Execution | None:
    """Read one stage's result; None where there was none.

    Output above the limit is cut off, and of stderr only the beginning is kept.
    """
    if reply.get(stage) is None:
        return None
    stdout, stderr = (
        read_field(reply, f"{stage}.{name}", str, "").encode("utf-8", "replace") for name in ("stdout", "stderr")
    )
    wall_s = read_field(reply, f"{stage}.execution_time", float, 0.0)
    if read_field(reply, f"{stage}.status", str) == "TimeLimitExceeded":
        end, status = ProgramEnd.WALL_LIMIT, _KILLED
    else:
        code = read_field(reply, f"{stage}.return_code", int)
        end, status = ProgramEnd.SIGNALLED if code < 0 else ProgramEnd.EXITED, abs(code)
    max_bytes = int(limits.output_mb * 2**20)
    if end is not ProgramEnd.WALL_LIMIT and (_was_cut(stdout) or len(stdout) > max_bytes):
        end = ProgramEnd.OUTPUT_LIMIT
    return Execution(end, status, stdout[:max_bytes], stderr[:STDERR_BYTES], cpu_s=None, wall_s=wall_s)


def _was_cut(stdout: bytes) -> bool:
    """Return whether the service has kept the beginning of an output only.

    An output that is cut inside a character comes back as the message of its decoding error.
    """
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


def _jitter() -> float:
    """Draw the factor that spreads pauses."""
    return random.uniform(0.75, 1.25)


def _read_body(response: httpx.Response, timeout_s: float) -> bytes:
    """Return the body. httpx bounds the time between two pieces; the whole of it is bounded here."""
    deadline = time.monotonic() + timeout_s
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            message = f"the reply is longer than {MAX_REPLY_BYTES >> 20} MiB; bound the output of its programs"
            raise Trouble(message, service_fails=False)
        if time.monotonic() > deadline:
            raise Trouble(f"no whole reply within {timeout_s:.0f} s")
    return bytes(body)


class Breaker:
    """The circuit breaker of one service in one process, for any number of threads."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._failures = 0
        self._last_error = ""
        self._open_until = 0.0

    def enter(self) -> None:
        """Raise SandboxError while the service is left alone."""
        with self._lock:
            if self._failures < FAILURES_TO_OPEN:
                return
            wait_s = self._open_until - _now()
            if wait_s > 0:
                raise SandboxError(
                    f"{self._address} failed {self._failures} times in a row and is not asked for another "
                    f"{wait_s:.0f} s; the last time: {self._last_error}"
                )
            # This call is the probe. Should it never report back, the next one may try after the same time.
            self._open_until = _now() + COOL_DOWN_S

    def count(self, error: str | None) -> None:
        """Count a call that failed after all its attempts; one that did not (None) closes the breaker."""
        with self._lock:
            self._failures = self._failures + 1 if error is not None else 0
            self._last_error = error or ""
            self._open_until = _now() + COOL_DOWN_S


@dataclass(frozen=True, slots=True)
class _Connection:
    client: httpx.Client
    breaker: Breaker
    slots: threading.BoundedSemaphore


_CONNECTIONS: dict[str, _Connection] = {}
_LOCK = threading.Lock()


def _connection(service: SandboxFusion) -> _Connection:
    import httpx

    with _LOCK:
        if service.url not in _CONNECTIONS:
            client = httpx.Client(limits=httpx.Limits(max_connections=IN_FLIGHT), follow_redirects=False)
            slots = threading.BoundedSemaphore(IN_FLIGHT)
            _CONNECTIONS[service.url] = _Connection(client, Breaker(service.address), slots)
        return _CONNECTIONS[service.url]


def _forget_connections() -> None:
    """Start without connections in a forked copy of this process.

    Sockets, and locks that other threads held, belong to the original.
    """
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.Lock()
    _CONNECTIONS.clear()


os.register_at_fork(after_in_child=_forget_connections)
