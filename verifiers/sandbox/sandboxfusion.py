"""Runs programs in the service SandboxFusion (github.com/bytedance/SandboxFusion), by `POST /run_code`.

    SandboxFusion("http://localhost:8080").prepare(Program("cpp", source), Limits(cpu_s=2)).run(b"3 4\\n")

The service differs from the local sandbox:

- It limits wall time instead of CPU time. Since other programs use the cores too, a program gets three times its CPU
  limit and 2 s more. A program that takes longer is stopped and ends with WALL_LIMIT.
- It limits memory by address space. The limit is set only for languages that start under it (`BOUND_MEMORY`).
- It keeps the first MiB of stdout. A program that prints a MiB or more ends with OUTPUT_LIMIT.
- It compiles a program again for every run. `prepare` runs the program for a tenth of a second, only to get the errors
  of the compiler.
- Its default deployment runs programs with its own rights and network. The service is responsible for isolation.

Errors of the service raise SandboxError with one line that names its address without credentials. A request is retried
after failed connections, statuses 429 and 5xx, and replies whose `status` is neither Success nor Failed. Pauses grow,
are jittered, and last at least as long as Retry-After asks. A request is not retried if its reply takes too long, since
the service is still working on it. A process sends at most `IN_FLIGHT` requests at a time.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.sandbox.execution import Execution, Limits, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.local import Local, Ready

Stages = tuple[Execution | None, Execution | None]
"""The runs of the compiler and of the program."""
Field = TypeVar("Field", dict[str, object], str, int)
_KIND_NAMES: Mapping[type, str] = {dict: "object", str: "text", int: "whole number"}

_SAME_NAMES = "python cpp java typescript go rust csharp php bash ruby scala julia perl lua swift racket"
LANGUAGES = {
    **{name: name for name in _SAME_NAMES.split()},
    "javascript": "nodejs",
    "kotlin": "kotlin_script",
    "r": "R",
}
"""The service's name of each language."""

COMPILED = frozenset({"cpp", "java", "go", "rust", "kotlin", "scala", "swift"})
"""Languages with a separate compile stage. TypeScript and C# are compiled as part of their run."""

BOUND_MEMORY = frozenset({"python", "cpp", "rust", "php", "bash", "ruby", "perl", "lua", "r"})
"""Languages that start under a limit on address space. The others reserve addresses that they never use."""

CAPTURED_BYTES = 2**20
"""Maximum number of bytes of an output that the service keeps."""

WALL_FACTOR, WALL_EXTRA_S = 3.0, 2.0
"""A program's wall time is limited to WALL_FACTOR times its CPU limit, plus WALL_EXTRA_S seconds."""

CHECK_S = 0.1
"""Maximum time of a run that only serves to compile a program, in seconds."""

QUEUE_S = 60.0
"""Maximum time for a request in the service's queue, in seconds, in addition to compiling and running."""

STDERR_BYTES = 2**14

IN_FLIGHT = 16
"""Maximum number of concurrent requests of one process. More would time out while they wait for the service's cores."""

ATTEMPTS = 4
BACKOFF_S, JITTER = 0.5, (0.75, 1.25)
"""BACKOFF_S is the first pause between two attempts. It doubles every time. JITTER is the range of a random factor."""

MAX_PAUSE_S = 60.0
"""Maximum Retry-After, in seconds. A longer one counts as a failure and stops the run."""

CONNECT_S = 10.0

MAX_REPLY_BYTES = 64 * 2**20
"""Maximum number of bytes of a reply that are read. Stops a service that does not limit outputs from filling memory."""

SHOWN_CHARS = 200
"""Maximum number of characters of the service's texts in an error message, since a text may be a page of HTML."""

_sleep = time.sleep

_KILLED = int(signal.SIGKILL)
_CUT_INSIDE_A_CHARACTER = re.compile(rb"\[DecodeError\] 'utf-8' codec can't decode.*unexpected end of data", re.DOTALL)
"""The output that the service returns when it cuts an output inside a character."""
_NOT_FOUND = 127
"""The exit status by which a shell reports a missing command."""


class Trouble(Exception):
    """One attempt failed. If `repeatable`, another attempt after a pause may succeed."""

    def __init__(self, message: str, repeatable: bool = False, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.repeatable, self.retry_after_s = repeatable, retry_after_s


@dataclass(frozen=True, slots=True)
class SandboxFusion:
    """A service that runs programs. Implements `Backend`. Raises ConfigError if `url` is not an http(s) address."""

    url: str = field(repr=False)
    """The address, with or without /run_code, and with credentials if the service needs them."""
    local: Local = field(default_factory=Local, repr=False)
    """The sandbox for test code and the programs of the tests."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", self.url.rstrip("/").removesuffix("/run_code"))
        try:
            url = httpx.URL(self.url)
            fits = url.scheme in ("http", "https") and bool(url.host) and 0 < (url.port or 1) < 2**16
        except httpx.InvalidURL:
            fits = False
        if not fits:
            raise ConfigError(
                f"{self.url.partition('@')[2] or self.url!r} is not the address of a service.",
                "http(s)://HOST:PORT is.",
            )

    @property
    def tier(self) -> str:
        """The name of the tier in verdicts."""
        return "remote"

    @property
    def address(self) -> str:
        """The address for messages, without credentials and query."""
        return str(httpx.URL(self.url).copy_with(userinfo=b"", query=None, fragment=None)).rstrip("/")

    def prepare(self, program: Program, limits: Limits) -> RemoteProgram:
        """Make a program ready, compiling it if its language needs that. Raises SandboxError for unknown languages."""
        if program.language not in LANGUAGES:
            known = ", ".join(sorted(LANGUAGES))
            raise SandboxError(f"{self.address} runs no {program.language!r}, only {known}")
        compiled = self.ask(program, limits, "", CHECK_S)[0] if program.language in COMPILED else None
        return RemoteProgram(compiled, self, program, limits)

    def prepare_partner(self, program: Program, limits: Limits) -> Ready:
        """Make a program ready on this machine, because the service cannot connect two programs."""
        return self.local.prepare_partner(program, limits)

    def ask(self, program: Program, limits: Limits, stdin: str, run_s: float) -> Stages:
        """Have the service compile and run a program once, for at most `run_s` seconds. Return both stages."""
        compile_s = _wall_s(limits.compile_cpu_s)
        body = {
            "language": LANGUAGES[program.language],
            "code": program.source.encode("utf-8", "replace").decode(),  # JSON may contain lone surrogates.
            "stdin": stdin,
            "compile_timeout": compile_s,
            "run_timeout": run_s,
            "memory_limit_MB": limits.memory_mb if program.language in BOUND_MEMORY else -1,
            "files": {name: base64.b64encode(content).decode() for name, content in program.files.items()},
            "fetch_files": [],
        }
        content = json.dumps(body).encode()
        timeout_s = run_s + QUEUE_S + (compile_s if program.language in COMPILED else 0)
        for pause_s in (*(BACKOFF_S * (1 << attempt) for attempt in range(ATTEMPTS - 1)), None):
            try:
                return _stages(_post(self.url, content, timeout_s), limits)
            except Trouble as trouble:
                if pause_s is None or not trouble.repeatable or trouble.retry_after_s > MAX_PAUSE_S:
                    raise SandboxError(f"{self.address}/run_code: {trouble}") from trouble.__cause__
                _sleep(trouble.retry_after_s + pause_s * random.uniform(*JITTER))
        raise AssertionError("the last attempt returns or raises")


@dataclass(slots=True)
class RemoteProgram:
    """A program that the service runs. Implements `Prepared`."""

    compiled: Execution | None
    backend: SandboxFusion
    program: Program
    limits: Limits

    def run(self, stdin: bytes) -> Execution:
        """Run the program on an input. Raises SandboxError if the input is not UTF-8."""
        address = self.backend.address
        try:
            text = stdin.decode()
        except UnicodeDecodeError:
            raise SandboxError(f"{address} takes text for stdin, and this input is not UTF-8") from None
        compiled, ran = self.backend.ask(self.program, self.limits, text, _wall_s(self.limits.cpu_s))
        if compiled is not None and not compiled.ok:
            raise SandboxError(f"{address}: a program that compiled before did not compile again ({compiled.end})")
        if ran is None:
            raise SandboxError(f"{address}: no object run_result in the reply")
        return ran


def _wall_s(cpu_s: float) -> float:
    """Return the wall time, in seconds, for a program with this CPU limit."""
    return cpu_s * WALL_FACTOR + WALL_EXTRA_S


def _post(url: str, content: bytes, timeout_s: float) -> dict[str, object]:
    """Return the reply to a request. timeout_s limits the time between two pieces of the reply."""
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    timeout = httpx.Timeout(timeout_s, connect=CONNECT_S, pool=None)
    body = bytearray()
    try:
        with _client(url).stream("POST", "run_code", content=content, headers=headers, timeout=timeout) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > MAX_REPLY_BYTES:
                    most = MAX_REPLY_BYTES >> 20
                    raise Trouble(f"the reply is longer than {most} MiB; limit the output of its programs")
    except httpx.ConnectTimeout as error:
        raise Trouble(f"no connection within {CONNECT_S:.0f} s", repeatable=True) from error
    except httpx.TimeoutException as error:
        raise Trouble(f"no reply within {timeout_s:.0f} s; it may be overloaded") from error
    except httpx.HTTPError as error:
        message = _one_line(str(error)) or type(error).__name__
        raise Trouble(message, repeatable=isinstance(error, httpx.TransportError)) from error
    reply = _read_reply(response, bytes(body))
    if (status := _read_field(reply, "status", str)) not in ("Success", "Failed"):
        message = _one_line(_read_field(reply, "message", str, "no message"))
        raise Trouble(f"status {_one_line(status)}: {message}", repeatable=True)
    return reply


def _read_reply(response: httpx.Response, body: bytes) -> dict[str, object]:
    """Return the object in a reply. Raises Trouble if there is none."""
    text = _one_line(body[: SHOWN_CHARS * 4].decode("utf-8", "replace"))
    if not response.is_success:
        wait = response.headers.get("retry-after", "").strip()
        passes = response.status_code == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error
        message = f"status {response.status_code} {response.reason_phrase}: {text}"
        raise Trouble(message, passes, float(wait) if wait.isdecimal() else 0.0)
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        raise Trouble(f"the reply is not JSON, it begins with {text!r}") from None
    if not isinstance(reply, dict):
        raise Trouble(f"the reply is a JSON {type(reply).__name__}, not an object")
    return reply


def _read_field(reply: Mapping[str, object], path: str, kind: type[Field], default: Field | None = None) -> Field:
    """Return the value at a path (`run_result.status`), or the default. Raises Trouble if its type is wrong."""
    parent, _, key = path.rpartition(".")
    value = (_read_field(reply, parent, dict) if parent else reply).get(key)
    value = default if value is None else value
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Trouble(f"no {_KIND_NAMES[kind]} {path} in the reply")
    return value


def _one_line(text: str) -> str:
    """Return the beginning of a text of the service on one line."""
    return " ".join(text[: SHOWN_CHARS * 4].split())[:SHOWN_CHARS]


def _stages(reply: Mapping[str, object], limits: Limits) -> Stages:
    compiled = _execution(reply, "compile_result", limits)
    if compiled is not None and compiled.end is ProgramEnd.EXITED and compiled.status == _NOT_FOUND:
        raise Trouble(f"it lacks the compiler: {_one_line(compiled.stderr.decode('utf-8', 'replace'))}")
    return compiled, _execution(reply, "run_result", limits)


def _execution(reply: Mapping[str, object], stage: str, limits: Limits) -> Execution | None:
    """Return the result of one stage, or None if the stage did not run. Output beyond the limit is cut off."""
    if reply.get(stage) is None:
        return None
    stdout, stderr = (
        _read_field(reply, f"{stage}.{name}", str, "").encode("utf-8", "replace") for name in ("stdout", "stderr")
    )
    time_s = _read_field(reply, stage, dict).get("execution_time")
    wall_s = float(time_s) if isinstance(time_s, int | float) else 0.0
    if _read_field(reply, f"{stage}.status", str) == "TimeLimitExceeded":
        end, status = ProgramEnd.WALL_LIMIT, _KILLED
    else:
        code = _read_field(reply, f"{stage}.return_code", int)
        end, status = ProgramEnd.SIGNALLED if code < 0 else ProgramEnd.EXITED, abs(code)
    max_bytes = int(limits.output_mb * 2**20)
    if end is not ProgramEnd.WALL_LIMIT and (
        len(stdout) >= CAPTURED_BYTES or len(stdout) > max_bytes or _CUT_INSIDE_A_CHARACTER.fullmatch(stdout)
    ):
        end = ProgramEnd.OUTPUT_LIMIT
    return Execution(end, status, stdout[:max_bytes], stderr[:STDERR_BYTES], cpu_s=None, wall_s=wall_s)


def backend_of(spec: str, local: Local) -> SandboxFusion:
    """Return the back end that `spec` names. `local` runs its test code. Raises ConfigError for an unknown name."""
    kind, plus, url = spec.partition("+")
    if plus and kind == "sandboxfusion":
        return SandboxFusion(url, local=local)
    raise ConfigError(
        f"{spec.partition('://')[0]!r} is not a service that runs programs.",
        "Known is sandboxfusion+http://HOST:PORT (or https).",
    )


_CLIENTS: dict[str, httpx.Client] = {}
"""Connections of this process to each service. A forked copy must not use them."""


def _client(url: str) -> httpx.Client:
    client = _CLIENTS.get(url)
    return client or _CLIENTS.setdefault(
        url, httpx.Client(base_url=url, limits=httpx.Limits(max_connections=IN_FLIGHT))
    )


os.register_at_fork(after_in_child=_CLIENTS.clear)
