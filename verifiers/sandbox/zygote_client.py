"""The parent's side of one zygote: start it, hand it jobs, take what they left.

One thread uses a seat at a time. `SandboxError` is trouble of the sandbox, never of the program in it; after one the
zygote is gone, and the seat starts a new one when it is next used.

Working folders on disk, for tiers without mount namespaces, and those that a killed process left behind.

    box = Box()            a new empty folder, held by a lock
    box.close()            the folder is gone, whatever has been put there

A process that is killed cannot clear up. Its folders stay until the next process starts that uses such folders: a
folder whose lock is free belongs to nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truegold.verifiers.sandbox.child_process import in_spawner_thread
from truegold.verifiers.sandbox.execution import End, Execution, Job, MachineBusy, SandboxError, Tier
from truegold.verifiers.sandbox.inside.confine.view import empty_folder
from truegold.verifiers.sandbox.inside.preload import PLAIN
from truegold.verifiers.sandbox.limits import IDLE_S, MB

START_S = 120.0
"""Seconds that a zygote may need to start on a busy machine."""

GRACE_S = 60.0
"""Seconds that a zygote may need beyond the limits of its jobs before it is taken for dead."""

WALL_FACTOR = 20.0
"""The zygote ends a job by itself after so many times its limits."""

STDERR_BYTES = 2**14
RESULT_BYTES = 256 * MB
"""What is read of a job's results; a job that writes more wrote too much."""

REPLY_BYTES = 2**16
MAX_JOBS = 2
"""A zygote runs one job, or a pair, at a time."""

_CHUNK_BYTES = 2**20

_INSIDE = Path(__file__).resolve().parent / "inside"
_PACKAGE = "_truegold_inside"
_BOOT = f"""
import json, sys
package = type(sys)({_PACKAGE!r})
package.__path__ = [sys.argv[1]]
sys.modules[{_PACKAGE!r}] = package
from {_PACKAGE}.confine.zygote import main
from {_PACKAGE}.roles import roles_of
main(json.loads(sys.argv[2]), roles_of)
"""
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    # A process with threads cannot enter namespaces.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
"""All that a program sees of the environment, besides its hash seed: no tokens, no keys."""


class TierNotPossible(Exception):
    """This machine does not give the tier; the text says which step failed."""


class _AnonymousFile:
    """A file without a name, which is handed to a job, or which the job hands back.

    With files rather than pipes nothing has to be pumped, nobody can fill a pipe and wait, and a program's output is
    there after whatever end it came to.
    """

    def __init__(self, content: bytes = b"") -> None:
        self.descriptor = _anonymous_descriptor()
        if content:
            self._write(content)

    def read(self, max_bytes: int) -> bytes:
        """Return its content from the start, at most `max_bytes` of it."""
        pieces, offset = [], 0
        while offset < max_bytes:
            piece = os.pread(self.descriptor, min(_CHUNK_BYTES, max_bytes - offset), offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
        return b"".join(pieces)

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        os.close(self.descriptor)

    def _write(self, content: bytes) -> None:
        rest, offset = memoryview(content), 0
        while rest:
            # The file's position stays at the start, for the process that reads it.
            written = os.pwrite(self.descriptor, rest, offset)
            rest, offset = rest[written:], offset + written


def _anonymous_descriptor() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("truegold", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Seat:
    """Room for one job, or a pair, at a time."""

    def __init__(self, tier: Tier, python: str, hash_seed: int, expose: Sequence[str] = (), group: str = PLAIN) -> None:
        self.tier = tier
        self.greeting: dict[str, Any] = {}
        self._python = python
        self._hash_seed = hash_seed
        self._expose = list(expose)
        self._group = group
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._boxes: list[Box] = []

    @property
    def pid(self) -> int | None:
        """The zygote's process id, None where it does not run."""
        return self._process.pid if self._process else None

    @property
    def folders(self) -> list[str]:
        """Working folders on disk, which only tiers without mount namespaces have."""
        return [box.path for box in self._boxes]

    def run(self, jobs: Sequence[Job], piped: bool = False) -> list[Execution]:
        """Run the jobs and return what became of each. Raises SandboxError where that is not known.

        piped: whether two jobs read what the other one prints.
        """
        files: list[_AnonymousFile] = []
        try:
            for job in jobs:
                files += [_AnonymousFile(content) for content in (job.payload, job.stdin, b"", b"", b"")]
            reply = self._ask(jobs, [file.descriptor for file in files], piped)
            if any(report["ended_by"] == "busy" for report in reply["jobs"]):
                raise MachineBusy("the machine is too busy: the program got hardly any time on a core")
            reports = enumerate(zip(jobs, reply["jobs"], strict=True))
            return [_execution(job, report, files[5 * index :]) for index, (job, report) in reports]
        except (OSError, ValueError, KeyError) as error:
            self.stop()
            raise SandboxError(f"the sandbox process failed: {type(error).__name__}: {error}") from error
        finally:
            for file in files:
                file.close()

    def start(self) -> None:
        """Start the zygote, unless it runs. Raises TierNotPossible where this machine does not give its tier."""
        if self._process is not None:
            return
        control, zygote_end = socket.socketpair()
        if self.tier is not Tier.FULL:
            remove_abandoned()
            self._boxes = [Box() for _ in range(MAX_JOBS)]
        options = {"tier": str(self.tier), "boxes": self.folders, "expose": self._expose, "group": self._group}
        command = [self._python, "-s", "-c", _BOOT, str(_INSIDE), json.dumps(options)]
        environment = {**_ENVIRONMENT, "PYTHONHASHSEED": str(self._hash_seed)}
        with zygote_end:
            self._process = in_spawner_thread(
                lambda: subprocess.Popen(
                    command,
                    stdin=zygote_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    cwd="/",
                    start_new_session=True,  # The parent handles Ctrl-C.
                )
            )
        self._control = control
        try:
            self.greeting = self._receive(time.monotonic() + START_S)
        except (OSError, ValueError) as error:
            self.stop()
            raise SandboxError(f"the sandbox process did not start: {type(error).__name__}: {error}") from error
        if "failed" in self.greeting:
            self.stop()
            raise TierNotPossible(self.greeting["failed"])

    def stop(self) -> None:
        """End the zygote and with it whatever runs there."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
        for box in self._boxes:
            box.close()
        self._control, self._process, self._boxes = None, None, []

    def forget(self) -> None:
        """Let go of the zygote. In a forked copy of the parent it belongs to the parent."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            # This keeps `subprocess` from waiting for a process that is no child of this one.
            self._process.returncode = 0
        for box in self._boxes:
            box.forget()
        self._control, self._process, self._boxes = None, None, []

    def _ask(self, jobs: Sequence[Job], descriptors: list[int], piped: bool) -> dict[str, Any]:
        assert self._control is not None
        warm = sorted({name for job in jobs for name in job.warm})
        request = {"jobs": [job.request() for job in jobs], "warm": warm, "piped": piped}
        max_wall_s = max(WALL_FACTOR * (job.limits.cpu_s + IDLE_S) for job in jobs)
        deadline = time.monotonic() + max_wall_s + GRACE_S
        self._control.settimeout(GRACE_S)
        line = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(self._control, [line], descriptors)
        self._control.sendall(line[sent:])
        reply = self._receive(deadline)
        if "trouble" in reply:
            raise OSError(reply["trouble"])
        return reply

    def _receive(self, deadline: float) -> dict[str, Any]:
        assert self._control is not None
        line = b""
        while not line.endswith(b"\n"):
            self._control.settimeout(max(0.001, deadline - time.monotonic()))
            piece = self._control.recv(REPLY_BYTES)
            if not piece:
                raise OSError(f"it ended{self._exit_status()}")
            line += piece
        reply: dict[str, Any] = json.loads(line)
        if "bug" in reply:
            raise RuntimeError(f"the sandbox process failed:\n{reply['bug']}")
        return reply

    def _exit_status(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return f" with status {self._process.wait(1.0)}" if self._process else ""
        return ""


_ENDS = {
    "cpu": End.CPU_LIMIT,
    "wall": End.WALL_LIMIT,
    "memory": End.MEMORY_LIMIT,
    "output": End.OUTPUT_LIMIT,
    "files": End.OUTPUT_LIMIT,
    "tasks": End.MEMORY_LIMIT,
}


def _execution(job: Job, report: dict[str, Any], files: Sequence[_AnonymousFile]) -> Execution:
    _, _, stdout, stderr, result = files[:5]
    code, max_bytes = report["code"], int(job.limits.output_mb * MB)
    end = _ENDS.get(report["ended_by"] or "", End.SIGNALLED if code < 0 else End.EXITED)
    # The signal for too much output does not end the first process of a pid namespace, so sizes are looked at as well.
    if end in {End.EXITED, End.SIGNALLED} and max(stdout.size, stderr.size) >= max_bytes:
        end = End.OUTPUT_LIMIT
    return Execution(
        end=end,
        status=abs(code),
        stdout=stdout.read(max_bytes),
        stderr=stderr.read(STDERR_BYTES),
        cpu_s=report["cpu_s"],
        wall_s=report["wall_s"],
        idle_s=report["idle_s"],
        peak_mb=report["peak_mb"],
        result=result.read(RESULT_BYTES),
    )


PREFIX = "truegold-box-"
JUST_MADE_S = 60.0
"""A folder this young may not be locked yet."""


class Box:
    """A working folder that this process holds."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder with all its content."""
        _remove(self.path)
        self.forget()

    def forget(self) -> None:
        """Let go of the folder. In a forked copy of this process it belongs to the original, which keeps the lock."""
        os.close(self._lock)


def remove_abandoned() -> None:
    """Remove every folder of this kind that nobody holds."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < JUST_MADE_S:
                continue
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(str(path))
            finally:
                os.close(handle)


def _remove(path: str) -> None:
    empty_folder(path)
    with contextlib.suppress(OSError):
        Path(path).rmdir()
