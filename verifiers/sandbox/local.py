"""Runs programs in the sandbox of this machine. Programs of compiled languages are compiled first.

    run_program("print(int(input()) + 1)", stdin=b"3").stdout       b"4\\n"

    prepared = Local().prepare(Program("cpp", source), Limits())
    if prepared.compiled is None or prepared.compiled.ok:
        prepared.run(b"3 4\\n").stdout

A program is compiled once. Each run gets the binary in an otherwise empty folder. Compiling has its own limits of CPU
time and memory.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol

from truegold.verifiers.sandbox.execution import (
    Execution,
    Job,
    Limits,
    Prepared,
    Program,
    ProgramEnd,
    SandboxError,
    Tier,
)
from truegold.verifiers.sandbox.inside.confine.view import STDIN_FILE
from truegold.verifiers.sandbox.pool import Kind, Sandbox, sandbox, warm_modules
from truegold.verifiers.sandbox.toolchains import LANGUAGES, Toolchain, available_toolchains, language_name

PYTHON = "python"

_STDIN_PATHS = re.compile(r"/dev/stdin\b|/dev/fd/0\b|/proc/self/fd/0\b")
"""Paths of the standard input. A program that names one gets its input as a file (`view.STDIN_FILE`)."""
_WAITS_FOR_STDIN = re.compile(r"\b(?:connect_read_pipe|add_reader|epoll|DefaultSelector)\b")
"""Functions by which Python programs wait for input. They need a pipe as stdin."""
_SIGNALLED_FROM = 128
"""An exit status above this is a signal's number plus 128, as shells report it."""
_NO_ROOM = re.compile(rb"no space left on device", re.IGNORECASE)
COMPILE_MEMORY_MB = 2048
"""Memory that a compiler may use, even if the compiled program may use less."""
COMPILE_OUTPUT_MB = 64.0
"""Megabytes that a compiler may write."""
KEPT_BINARIES = 32
"""Maximum number of binaries of checkers and interactors that a process keeps, since compiling one takes seconds."""


def installed_languages() -> list[str]:
    """Return the languages whose programs can run on this machine."""
    return sorted({PYTHON, *available_toolchains()})


def summarize_languages() -> str:
    """Return the installed languages on one line, each with its editions: `bash, cpp (03 11 14 20), ...`."""
    editions: dict[str, list[str]] = {}
    for name in installed_languages():
        family = language_name(name)
        editions.setdefault(family, []).extend([name.removeprefix(family)] if name != family else [])
    return ", ".join(f"{family} ({' '.join(others)})" if others else family for family, others in editions.items())


def closed_languages(tier: Tier) -> list[str]:
    """Return a line for each language whose toolchain programs in this tier cannot read."""
    folders = {name: closed_folder(toolchain.expose, tier) for name, toolchain in available_toolchains().items()}
    return [_describe_closed(name, folder) for name, folder in folders.items() if folder is not None]


def closed_folder(paths: Iterable[str], tier: Tier) -> str | None:
    """Return the first folder that programs cannot enter among the paths and the folders above them, or None."""
    if tier is not Tier.CONTAINER or os.geteuid() != 0:
        return None
    folders = (folder for path in map(Path, paths) for folder in (*reversed(path.parents), path))
    return next((str(folder) for folder in folders if folder.exists() and not _may_enter(folder)), None)


def _may_enter(folder: Path) -> bool:
    """Return whether a user in root's group may enter a folder."""
    status = folder.stat()
    return bool(status.st_mode & (stat.S_IXGRP if status.st_gid == 0 else stat.S_IXOTH))


def _describe_closed(language: str, folder: str) -> str:
    return (
        f"the toolchain for {language!r} lies in {folder}, which the user that programs run as may not enter: "
        "install it for all users, in /usr/local or /opt"
    )


class Backend(Protocol):
    """A service or sandbox that runs programs."""

    @property
    def tier(self) -> str:
        """The tier that confines its programs, as verdicts name it."""
        ...

    @property
    def local(self) -> Local:
        """This machine's sandbox, which runs test code and the programs of the tests."""
        ...

    def prepare(self, program: Program, limits: Limits) -> Prepared:
        """Make a program ready to run, compiling it if its language needs that. Raises SandboxError."""
        ...

    def prepare_partner(self, program: Program, limits: Limits) -> Ready:
        """Make a program ready that exchanges messages with another one. Raises SandboxError."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """The back end that is this machine's sandbox. Its fields are those of `Kind`."""

    requested_tier: Tier | None = None
    python: str = sys.executable
    hash_seed: int = 0

    @property
    def tier(self) -> str:
        """The tier of its programs."""
        return str(self.sandbox().tier)

    @property
    def stronger_tier(self) -> str | None:
        """A stronger tier (degree of confinement) that the machine allows and that is not used, or None."""
        stronger = self.sandbox().stronger_tier
        return None if stronger is None else str(stronger)

    @property
    def local(self) -> Local:
        """This back end."""
        return self

    def sandbox(self) -> Sandbox:
        """Return the sandbox for Python programs."""
        return sandbox(Kind(self.requested_tier, self.python, self.hash_seed))

    def prepare(self, program: Program, limits: Limits) -> Ready:
        """Make a program ready to run, compiling it if needed. Raises SandboxError if its toolchain is missing."""
        # Input that can be read only once is a pipe and not a file.
        names_stdin = not program.reads_once and _STDIN_PATHS.search(program.source) is not None
        return self._prepare(program, limits, reads_stdin_file=names_stdin)

    def prepare_script(self, program: Program, limits: Limits, arguments: Sequence[str]) -> Ready:
        """Make a checker or an interactor ready. It gets arguments, and files at each run. Its binary is cached."""
        return self._prepare(program, limits, arguments)

    def prepare_partner(self, program: Program, limits: Limits) -> Ready:
        """Make a program ready for `Ready.converse`. The program cannot open its stdin by a path."""
        return self._prepare(program, limits)

    def _prepare(
        self, program: Program, limits: Limits, arguments: Sequence[str] = (), reads_stdin_file: bool = False
    ) -> Ready:
        is_script = bool(arguments)
        if program.language == PYTHON:
            warm = warm_modules(program.source)
            pipes_stdin = program.reads_once or _WAITS_FOR_STDIN.search(program.source) is not None
            if not (program.files or is_script or reads_stdin_file or pipes_stdin):
                source = program.source.encode("utf-8", "surrogatepass")
                return Ready(self.sandbox(), Job("main", source, limits, warm=warm), lambda files, collect: source)
            pack = partial(_script_payload, program.source, arguments, pipes_stdin)
            job = Job("script", b"", limits, warm=warm)
            return Ready(self.sandbox(), job, pack, program.files, reads_stdin_file=reads_stdin_file)
        language = LANGUAGES.get(program.language)
        toolchain = language.toolchain() if language else None
        if language is None or toolchain is None:
            hint = f": install {language.package} (apt)" if language is not None else ""
            known = summarize_languages()
            raise SandboxError(
                f"there is no toolchain for {program.language!r} on this machine{hint}; there are {known}"
            )
        # All languages share one sandbox, in which the folders of every toolchain are visible.
        expose = tuple(dict.fromkeys(path for each in available_toolchains().values() for path in each.expose))
        kind = Kind(self.requested_tier, self.python, self.hash_seed, expose)
        box = sandbox(kind)
        if (closed := closed_folder(toolchain.expose, box.tier)) is not None:
            raise SandboxError(_describe_closed(program.language, closed))
        text = language.text_of(program.source).encode("utf-8", "replace")
        files: Mapping[str, bytes] = {language.file_for(program.source): text, **program.files}
        compiled = None
        if toolchain.compile is not None:
            toolchain.make_ready()
            argv = language.command(toolchain.compile, program.source, limits)
            compile_program = _compile_once if is_script else _compile_once.__wrapped__
            compiled, binaries = compile_program(kind, program.language, tuple(argv), tuple(files.items()), limits)
            files = binaries if is_script else {**binaries, **program.files}
        run = [*language.command(toolchain.run, program.source, limits), *arguments]
        pack = partial(_native_payload, run, toolchain, program.reads_once)
        return Ready(box, Job("native", b"", limits, native=True), pack, files, compiled, reads_stdin_file)


@dataclass(slots=True)
class Ready:
    """A program that is ready to run on an input or with files."""

    box: Sandbox
    job: Job
    pack: Callable[[Mapping[str, bytes], Sequence[str]], bytes]
    """Returns the payload of the job, from the files of the program and the names of the files to collect."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    compiled: Execution | None = None
    reads_stdin_file: bool = False
    """Whether the input is one of the files. The payload then differs for each input."""

    def run(self, stdin: bytes) -> Execution:
        """Run the program on an input."""
        job = self._job_with({STDIN_FILE: stdin}) if self.reads_stdin_file else self._packed_job()
        return self._ended(self.box.run(dataclasses.replace(job, stdin=stdin)))

    def run_with(self, files: Mapping[str, bytes], stdin: bytes = b"") -> Execution:
        """Run the program with these files in addition to its own."""
        job = self._job_with({**files, STDIN_FILE: stdin} if self.reads_stdin_file else files)
        return self._ended(self.box.run(dataclasses.replace(job, stdin=stdin)))

    def converse(
        self, script: Ready, files: Mapping[str, bytes], collect: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        """Run the program and a script at the same time, until the script ends. Each reads the other's output.

        files: files of the script in addition to its own. collect: names of files that the script makes. They are the
        third part of the result. A script in Python returns none.
        """
        # The sandbox for native programs also has everything that Python programs need.
        box = self.box if self.job.native else script.box
        ends = box.run_pair(self._packed_job(), script._job_with(files, collect), piped=True)
        return self._ended(ends[0]), script._ended(ends[1]), _unpack_files(ends[1].result) if collect else {}

    def _packed_job(self) -> Job:
        self.job = self.job if self.job.payload else self._job_with({})
        return self.job

    def _job_with(self, files: Mapping[str, bytes], collect: Sequence[str] = ()) -> Job:
        return dataclasses.replace(self.job, payload=self.pack({**self.files, **files}, collect))

    def _ended(self, execution: Execution) -> Execution:
        return _with_command_end(execution) if self.job.native else execution


def run_program(source: str, language: str = PYTHON, stdin: bytes = b"", limits: Limits | None = None) -> Execution:
    """Run an untrusted program and return its end, its output, and the resources that it used.

        run_program("print(sum(map(int, input().split())))", stdin=b"3 4").stdout       b"7\\n"
        run_program("while True: pass", limits=Limits(cpu_s=1)).end                     ProgramEnd.CPU_LIMIT
        run_program("int main() { return 3; }", "cpp").status                           3

    If a program does not compile, the result is the run of the compiler.

    The tiers `full` and `container` protect the machine. The program can read only the interpreter's and the system's
    files, and can write only to its own folder, which is removed afterwards. It has no network and cannot see or signal
    other processes. It ends at the limits of CPU time, waiting, memory, output and processes.

    These tiers do NOT protect from faults of the kernel. They do not hide traces of other programs that show in time,
    load, page faults, or free memory and disk. They do not make the output safe to use. A program may read all packages
    of the interpreter. The tier `weak`, which is used only on request, sets resource limits and nothing else.

    Raises SandboxError if the sandbox failed or lacks the language, and SetupError if this machine allows no sandbox.
    """
    prepared = Local().prepare(Program(language, source), limits or Limits())
    if prepared.compiled is not None and not prepared.compiled.ok:
        return prepared.compiled
    return prepared.run(stdin)


def _script_payload(
    source: str, arguments: Sequence[str], pipes_stdin: bool, files: Mapping[str, bytes], collect: Sequence[str]
) -> bytes:
    """Return the payload of the role `script`. This role does not collect files."""
    texts = {name: content.decode("utf-8", "surrogateescape") for name, content in files.items()}
    request = {"source": source, "arguments": list(arguments), "files": texts, "pipes_stdin": pipes_stdin}
    return json.dumps(request).encode()


@lru_cache(maxsize=KEPT_BINARIES)
def _compile_once(
    kind: Kind, language: str, argv: tuple[str, ...], files: tuple[tuple[str, bytes], ...], limits: Limits
) -> tuple[Execution, dict[str, bytes]]:
    """Compile a program and return the run of the compiler and the files that it made. Raises SandboxError."""
    toolchain = LANGUAGES[language].toolchain()
    assert toolchain is not None
    payload = _native_payload(list(argv), toolchain, False, dict(files), toolchain.made)
    compile_limits = dataclasses.replace(
        limits,
        cpu_s=limits.compile_cpu_s,
        own_s=None if limits.own_s is None else limits.compile_cpu_s,
        memory_mb=max(limits.memory_mb, COMPILE_MEMORY_MB),
        output_mb=COMPILE_OUTPUT_MB,
    )
    execution = _with_command_end(sandbox(kind).run(Job("native", payload, compile_limits, native=True)))
    if not execution.ok and _NO_ROOM.search(execution.stderr):
        raise SandboxError(f"the compiler needs more space than its folder has: {argv[0]}")
    if not execution.ok:
        return execution, {}
    binaries = _unpack_files(execution.result)
    if not binaries:
        return dataclasses.replace(execution, status=1, stderr=b"compiling made nothing to run\n"), {}
    return execution, binaries


def _native_payload(
    argv: list[str], toolchain: Toolchain, pipes_stdin: bool, files: Mapping[str, bytes], collect: Sequence[str]
) -> bytes:
    """Return the payload of the role `native`: a line of JSON, and then the contents of the files."""
    head = {
        "files": [[name, len(content)] for name, content in files.items()],
        "argv": argv,
        "env": {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            **toolchain.environment,
        },
        "collect": list(collect),
        "pipes_stdin": pipes_stdin,
    }
    return b"".join([json.dumps(head).encode(), b"\n", *files.values()])


def _unpack_files(result: bytes) -> dict[str, bytes]:
    """Return the files that a job hands back. They come from an untrusted process, so names and sizes are checked."""
    head, _, contents = result.partition(b"\n")
    try:
        listed: list[tuple[object, object]] = json.loads(head)["files"]
        files, offset = {}, 0
        for name, size in listed:
            if not isinstance(name, str) or "/" in name or not isinstance(size, int) or size < 0:
                return {}
            files[name] = contents[offset : offset + size]
            offset += size
    except (ValueError, TypeError, KeyError):
        return {}
    return files


def _with_command_end(execution: Execution) -> Execution:
    """Return the execution. Exit status 128 + n, by which shells report signal n, becomes the end by this signal."""
    if execution.end is ProgramEnd.EXITED and execution.status > _SIGNALLED_FROM:
        return dataclasses.replace(execution, end=ProgramEnd.SIGNALLED, status=execution.status - _SIGNALLED_FROM)
    return execution
