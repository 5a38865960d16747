"""The process that every job of one seat is forked from: modules loaded, namespaces entered, nothing secret in it.

It reads one request after the other from a socket, and never what is in them: programs, tests and inputs come as file
descriptors that only the forked processes read. A program that searches its memory finds an interpreter and no more.

    -> {"jobs": [{"role": "main", "limits": {...}, "inputs": 2}], "warm": ["numpy"]}   + descriptors
    <- {"jobs": [{"ended_by": null, "code": 0, "cpu_s": 0.0021, "wall_s": 0.0034, "peak_mb": 21.2}]}

Descriptors of a job, in this order: payload, stdin, stdout, stderr, result. Two jobs in one request are partners: a
socket connects them, and the second one's end is the end of both.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import mmap
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import kernel, supervise, view
from .cleaning import empty
from .confinement import Confinement, Step, filter_for, limit, lock_in
from .preload import warm
from .seccomp import Filter

DESCRIPTORS_PER_JOB = 5
MAX_REQUEST_BYTES = 2**16
FIRST_FREE = 10
ROLE_FAILED = 70

_STREAMS = (("stdin", "r", "surrogateescape"), ("stdout", "w", "surrogateescape"), ("stderr", "w", "backslashreplace"))

THREAD_STACK_BYTES = 16 * 2**20
"""Python would give each thread as much as the main thread's limit, which is large here for deep recursion."""


Roles = Mapping[str, Callable[[bytes], None]]
"""What a forked process can be asked to do with its payload, by name."""


class Zygote:
    """Serves requests until the socket closes."""

    def __init__(
        self,
        control: socket.socket,
        found: Confinement,
        roles: Roles,
        proc: int | None,
        own_pids: int | None,
    ) -> None:
        self._roles = roles
        self._control = control
        self._found = found
        self._own_pids = own_pids
        alone = found.tier == "full"
        self._box = view.SharedBox() if alone else None
        self._supervisor = supervise.Supervisor(proc, found.boxes, groups=not alone)
        self._steps: dict[tuple[Any, ...], tuple[list[Step], Filter | None]] = {}
        self._limited: tuple[Any, ...] = ()
        self._unlocked = mmap.mmap(-1, mmap.PAGESIZE)
        """Shared with a forked process until it is locked in, and says whether it is: no program can reach it."""

    def serve(self, greeting: Mapping[str, Any]) -> None:
        _occupy_low_descriptors()
        _fresh_streams()
        atexit._clear()
        threading.stack_size(THREAD_STACK_BYTES)
        gc.collect()
        gc.freeze()  # else the first collection in a job would copy every page of what is loaded
        self._reply(greeting)
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
        warm(request["warm"])
        lines = socket.socketpair() if len(jobs) == 2 else ()
        watched: list[supervise.Watched] = []
        try:
            for seat, job in enumerate(jobs):
                own = descriptors[DESCRIPTORS_PER_JOB * seat :][:DESCRIPTORS_PER_JOB]
                peer = lines[seat].fileno() if lines else None
                pid = self._fork(seat, job, own, peer)
                watched.append(supervise.Watched(pid, job["limits"], bool(job["native"])))
            for line in lines:
                line.close()
            self._supervisor.watch(watched)
        finally:
            for line in lines:
                line.close()
            self._clean(watched)
        if any(self._unlocked[: len(jobs)]):
            return {"trouble": "a process could not lock itself in, and ran nothing"}
        return {"jobs": [job.report for job in watched]}

    def _fork(self, seat: int, job: Mapping[str, Any], own: Sequence[int], peer: int | None) -> int:
        payload, *descriptors = own
        if peer is not None:
            descriptors.append(peer)
        native = bool(job["native"])
        key = (seat, native, *job["limits"].values())
        if key not in self._steps:
            self._steps[key] = (self._found.steps(seat, job["limits"], native), filter_for(self._found.tier, native))
        steps, last = self._steps[key]
        if native and not self._found.native:
            raise OSError("as root without the right to change user, programs that start others cannot be held")
        tasks = self._found.most_tasks(job["limits"]["threads"], native)
        if key != self._limited:
            limit(job["limits"], None if native else tasks, native)
            self._limited = key
        if self._box is not None and seat == 0 and not native:
            self._box.ready(job["limits"]["files_bytes"])
        role, size = self._roles[job["role"]], job["payload_bytes"]
        if self._own_pids is not None:
            # The next process forked becomes the first of a new pid namespace, and takes all others of it along.
            kernel.setns(self._own_pids, kernel.CLONE_NEWPID)
            kernel.unshare(kernel.CLONE_NEWPID)
        self._unlocked[seat] = 1
        pid = kernel.fork()
        if pid == 0:
            try:
                content = [os.pread(payload, size, 0)]
                if native or self._found.tier == "weak":
                    limit(job["limits"], tasks, native, hard=True)
                if lock_in(steps, descriptors, last):
                    self._unlocked[seat] = 0
                    self._unlocked.close()
                    role(content.pop())  # no frame below the program holds it
                sys.stdout.flush()
                os._exit(0)
            finally:
                os._exit(ROLE_FAILED)
        return pid

    def _clean(self, watched: Sequence[supervise.Watched]) -> None:
        """Leave nothing of a job behind where no namespace does that."""
        for job in watched:
            if job.running:
                supervise.kill(job.pid)
                os.waitpid(job.pid, 0)
        if self._found.tier == "full":
            return
        for job in watched:
            supervise.kill_group(job.pid)
        supervise.end_orphans()
        for box in self._found.boxes:
            empty(box)

    def _receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """One request, a line of JSON, and its descriptors; None when the other end is gone."""
        line, descriptors = b"", array.array("i")
        while not line.endswith(b"\n"):
            data, ancillary, _, _ = self._control.recvmsg(
                MAX_REQUEST_BYTES, socket.CMSG_SPACE(4 * 2 * DESCRIPTORS_PER_JOB)
            )
            if not data:
                return None
            line += data
            for level, kind, sent in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors.frombytes(sent[: len(sent) - len(sent) % descriptors.itemsize])
        return json.loads(line), descriptors.tolist()

    def _reply(self, message: Mapping[str, Any]) -> None:
        self._control.sendall(json.dumps(message).encode() + b"\n")


def _occupy_low_descriptors() -> None:
    """No descriptor that comes for a job has a number that it needs to have in the job."""
    empty = os.memfd_create("empty") if sys.platform == "linux" else os.open(os.devnull, os.O_RDWR)
    for number in range(FIRST_FREE):
        if number != empty:
            os.dup2(empty, number)


def _fresh_streams() -> None:
    """sys.stdin, stdout and stderr as Python makes them at its start. They keep to their numbers, and so find the files
    that a job gets there."""
    for number, (name, mode, errors) in enumerate(_STREAMS):
        stream = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
