"""Runs the zygote, a process that has loaded all modules and forks a copy of itself for every job.

A fresh interpreter, whose stdin is a socket, becomes a zygote in two stages. The first sets a large stack limit, which
takes effect only at the next exec. The second enters the requested tier, a degree of confinement (`confinement.py`). It
writes `{"ready": true}` or `{"failed": why}` to the socket. Then the zygote answers requests:

    -> {"jobs": [{"role": "main", "limits": {...}, "native": false, "payload_bytes": 812}], "warm": ["numpy"]}
    <- {"jobs": [{"ended_by": null, "code": 0, "cpu_s": 0.0021, "wall_s": 0.0034, "peak_mb": 21.2}]}

The zygote holds no secrets. Programs, tests and inputs come as file descriptors that only the forked processes read.
A job has five descriptors, in this order: payload (the program or the tests), stdin, stdout, stderr, result. Two jobs
in one request are partners. A socket connects them, or with `"piped": true` each reads on stdin what the other one
prints. When the second job ends, the first one is ended.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import json
import mmap
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..preload import freeze, load_warm, preload
from . import kernel, supervise, view
from .confinement import (
    Confinement,
    NotPossible,
    Step,
    die_with,
    enter_tier,
    filter_for,
    lock_in,
    move_high,
    set_limits,
)
from .seccomp import Filter
from .view import empty_folder

STACK_BYTES = 256 * 2**20
"""Size of a process's stack, in bytes. Recursion through C code, as in a cached function, takes 512 bytes per level."""

DESCRIPTORS_PER_JOB = 5
MAX_REQUEST_BYTES = 2**16
LOW_DESCRIPTORS = 10
"""The lowest number that a descriptor of a request may have. A job needs the lower numbers itself."""

ROLE_FAILED = 70
"""The exit status of a process whose role raised an exception."""

_STREAMS = (("stdin", "r", "surrogateescape"), ("stdout", "w", "surrogateescape"), ("stderr", "w", "backslashreplace"))
"""Name, mode and error handler of the three standard streams."""

THREAD_STACK_BYTES = 8 * 2**20
"""Size of a thread's stack, in bytes. By default, threads would get the large stack of the main thread."""


Roles = Mapping[str, Callable[[bytes], None]]
"""Functions that handle a payload in a forked process, by the name of their role."""


def main(options: dict[str, Any], roles_of: Callable[[str], Roles]) -> None:
    """Enter the tier and serve jobs until the parent ends.

    options: `{"tier": "full", "boxes": [folder, ...], "expose": [path, ...], "group": "plain"}`, and in the
    second stage also `staged` and the paths of the `interpreter`.
    """
    if not options.get("staged"):
        _exec_with_stack(options)
    control = socket.socket(fileno=move_high(os.dup(0)))
    _silence()
    preload()
    # The folder of these modules is out of reach once the tier is entered.
    roles = roles_of(options["group"])
    die_with(os.getppid())
    try:
        Zygote(control, enter_tier(control, options), roles).serve()
    except (NotPossible, OSError) as error:
        control.sendall(json.dumps({"failed": str(error)}).encode() + b"\n")
    except Exception:
        import traceback  # It is needed only here.

        control.sendall(json.dumps({"bug": traceback.format_exc()}).encode() + b"\n")


def _exec_with_stack(options: dict[str, Any]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    staged = json.dumps({**options, "interpreter": view.interpreter_paths(), "staged": True})
    os.execv(sys.executable, [*sys.orig_argv[:-1], staged])


def _silence() -> None:
    empty = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(empty, descriptor)
    os.close(empty)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, but it has to end programs that write too much.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Zygote:
    """Serves requests until the socket closes."""

    def __init__(self, control: socket.socket, confinement: Confinement, roles: Roles) -> None:
        self._roles = roles
        self._control = control
        self._confinement = confinement
        self._supervisor = supervise.Supervisor(confinement.proc, confinement.boxes, groups=confinement.tier != "full")
        self._steps: dict[tuple[Any, ...], tuple[list[Step], Filter | None]] = {}
        self._unlocked = mmap.mmap(-1, mmap.PAGESIZE)
        """One byte for each job, shared with its process: 1 until the process is confined. No program can reach it."""

    def serve(self) -> None:
        """Write that the zygote is ready, then answer requests until the socket is closed."""
        _occupy_low_descriptors()
        _fresh_streams()
        atexit._clear()
        _thread.stack_size(THREAD_STACK_BYTES)
        freeze()
        self._reply({"ready": True})
        while (message := self._receive()) is not None:
            request, descriptors = message
            try:
                reply = self._run(request, descriptors)
            except OSError as error:
                reply = {"trouble": f"{type(error).__name__}: {error}"}
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            self._reply(reply)

    def _run(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> dict[str, Any]:
        jobs = request["jobs"]
        if len(descriptors) != DESCRIPTORS_PER_JOB * len(jobs):
            raise OSError(f"{len(descriptors)} descriptors came for {len(jobs)} jobs")
        loaded = len(sys.modules)
        load_warm(request["warm"])
        if len(sys.modules) > loaded:
            freeze()
        piped = len(jobs) == 2 and bool(request.get("piped"))
        job_descriptors = [
            list(descriptors[start : start + DESCRIPTORS_PER_JOB])
            for start in range(0, len(descriptors), DESCRIPTORS_PER_JOB)
        ]
        ends = _connect(job_descriptors, piped) if len(jobs) == 2 else []
        # Tests see the files of the solution in a shared folder. An interactor has its own folder.
        shared = len(jobs) == 2 and not piped
        has_shared_box = shared and self._confinement.tier == "full"
        box = view.shared_box(jobs[0]["limits"]["files_bytes"], self._confinement.box_links)
        with box if has_shared_box else contextlib.nullcontext():
            return self._watch(jobs, job_descriptors, ends, shared)

    def _watch(
        self, jobs: Sequence[Mapping[str, Any]], job_descriptors: Sequence[list[int]], ends: list[int], shared: bool
    ) -> dict[str, Any]:
        watched: list[supervise.Watched] = []
        try:
            for seat, job in enumerate(jobs):
                pid = self._fork(seat, job, job_descriptors[seat], shared)
                watched.append(supervise.Watched(pid, job["limits"], bool(job["native"])))
            # Only the jobs may hold these descriptors. Then a job gets an end of file when its partner exits.
            _close_all(ends)
            self._supervisor.watch(watched, partial(self._reply, {"waiting": True}))
        finally:
            _close_all(ends)
            self._clean(watched)
        if any(self._unlocked[: len(jobs)]):
            return {"trouble": "a process could not confine itself, and did not run its program"}
        return {"jobs": [job.report for job in watched]}

    def _fork(self, seat: int, job: Mapping[str, Any], job_descriptors: Sequence[int], shared: bool) -> int:
        """Fork a process that confines itself and then runs the job's role. Return the process id.

        seat: the position of the job in its request, 0 or 1.
        """
        payload, *descriptors = job_descriptors
        native = bool(job["native"])
        key = (seat, shared, native, *job["limits"].values())
        if key not in self._steps:
            steps = self._confinement.steps(seat, job["limits"], native, shared)
            self._steps[key] = steps, filter_for(self._confinement.tier, native)
        steps, last = self._steps[key]
        if native and not self._confinement.native:
            raise OSError("root may not change its user here, so programs that start others cannot be confined")
        task_limit = self._confinement.task_limit(job["limits"]["threads"], native)
        set_limits(job["limits"], None if native else task_limit, native)
        role, size = self._roles[job["role"]], job["payload_bytes"]
        if self._confinement.pid_namespace is not None:
            # The next forked process is the first of a new pid namespace. When it ends, all others in there end.
            kernel.call("setns", self._confinement.pid_namespace, kernel.CLONE_NEWPID)
            kernel.call("unshare", kernel.CLONE_NEWPID)
        self._unlocked[seat] = 1
        pid = kernel.fork()
        if pid == 0:
            try:
                content = [os.pread(payload, size, 0)]
                if native or self._confinement.tier == "weak":
                    set_limits(job["limits"], task_limit, native, hard=True)
                if lock_in(steps, descriptors, last):
                    self._unlocked[seat] = 0
                    self._unlocked.close()
                    role(content.pop())  # The payload has the tests. No frame keeps it where the program could look.
                sys.stdout.flush()
                os._exit(0)
            finally:
                os._exit(ROLE_FAILED)
        return pid

    def _clean(self, watched: Sequence[supervise.Watched]) -> None:
        """End the remaining processes of a job. Without namespaces, remove its files too."""
        for job in watched:
            if job.running:
                supervise.kill(job.pid)
                os.waitpid(job.pid, 0)
        if self._confinement.tier == "full":
            return
        for job in watched:
            supervise.kill_group(job.pid)
        supervise.end_orphans()
        for box in self._confinement.boxes:
            empty_folder(box)

    def _receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """Return one request, a line of JSON, with its descriptors, or None if the socket is closed."""
        line, descriptors = b"", []
        while not line.endswith(b"\n"):
            data, received, _, _ = socket.recv_fds(self._control, MAX_REQUEST_BYTES, 2 * DESCRIPTORS_PER_JOB)
            if not data:
                return None
            line += data
            descriptors += received
        return json.loads(line), descriptors

    def _reply(self, message: Mapping[str, Any]) -> None:
        self._control.sendall(json.dumps(message).encode() + b"\n")


def _connect(job_descriptors: Sequence[list[int]], piped: bool) -> list[int]:
    """Connect two jobs by a socket, or by pipes as their stdin and stdout. Return the descriptors that were opened."""
    first, second = job_descriptors
    if piped:
        (to_second, from_first), (to_first, from_second) = os.pipe(), os.pipe()
        first[1:3], second[1:3] = [to_first, from_first], [to_second, from_second]
        return [to_first, from_first, to_second, from_second]
    ends = [end.detach() for end in socket.socketpair()]
    first.append(ends[0])
    second.append(ends[1])
    return ends


def _close_all(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


def _occupy_low_descriptors() -> None:
    """Occupy the descriptors below `LOW_DESCRIPTORS`."""
    empty = os.memfd_create("empty")
    for descriptor in range(LOW_DESCRIPTORS):
        if descriptor != empty:
            os.dup2(empty, descriptor)


def _fresh_streams() -> None:
    """Replace sys.stdin, stdout and stderr by fresh streams on the descriptors that a job gets."""
    for descriptor, (name, mode, errors) in enumerate(_STREAMS):
        stream = open(descriptor, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
