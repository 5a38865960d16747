"""Starts child processes that exchange lines of JSON with their parent and never outlive it.

`ChildProcess` is the parent's side: it starts a child, sends it requests, and ends it. It has a deadline for every read
and write, notices a child that dies, works from any thread, and survives forks of the parent. Not covered: retries.

`Conversation` is the child's side. No other code of the child uses the socket: what a verifier prints goes to stderr,
and stdin is empty. The child ends when its parent ends or closes the socket.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

T = TypeVar("T")

_READ_BYTES = 1 << 16

_TRIAL_S = 60.0
"""Seconds for starting a failed child again, to read its error message."""
_LEAST_WAIT_S = 0.001  # A timeout of 0 would make the socket non-blocking.
_EXIT_WAIT_S = 5.0
"""Seconds to wait for a process after SIGKILL. A process may hang on a dead disk for ever."""


class ChildDied(Exception):
    """The child ended before it answered."""


class DeadlinePassed(Exception):
    """The child did not read or answer in time."""


class ChildProcess:
    """A child process that reads requests and writes replies, each a line, on the socket that is its stdin and stdout.

    One thread at a time may use it. environment: the child's environment variables, or None to inherit the parent's. A
    child with its own variables also gets its own session and works in the root folder.
    """

    def __init__(
        self, command: Sequence[str], quiet: bool = False, environment: Mapping[str, str] | None = None
    ) -> None:
        self._buffer = bytearray()
        self._socket, child_end = socket.socketpair()
        with child_end:
            self._process = in_spawner_thread(
                lambda: subprocess.Popen(
                    command,
                    stdin=child_end.fileno(),
                    stdout=child_end.fileno(),
                    stderr=subprocess.DEVNULL if quiet else None,
                    env=environment,
                    cwd=None if environment is None else "/",
                    start_new_session=environment is not None,
                )
            )
        _LIVE.add(self)

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._process.pid

    def send(self, message: object, deadline: float, descriptors: Sequence[int] = ()) -> None:
        """Write one line before `deadline`, a time of `time.monotonic()`. Raises ChildDied and DeadlinePassed."""
        line = json.dumps(message).encode() + b"\n"
        try:
            self._wait_until(deadline)
            sent = socket.send_fds(self._socket, [line], descriptors) if descriptors else 0
            self._socket.sendall(line[sent:])
        except TimeoutError:
            raise DeadlinePassed from None
        except OSError as error:
            raise ChildDied(str(error)) from error

    def receive(self, deadline: float) -> Any:
        """Read one line and return its JSON value. Raises ChildDied and DeadlinePassed."""
        while (end := self._buffer.find(b"\n")) < 0:
            try:
                self._wait_until(deadline)
                received = self._socket.recv(_READ_BYTES)
            except TimeoutError:
                raise DeadlinePassed from None
            except OSError:  # The child ended with unread requests.
                received = b""
            if not received:
                raise ChildDied(self._how_it_ended())
            self._buffer += received
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            return json.loads(line)
        except ValueError as error:
            raise ChildDied(f"answered with a line that is not JSON: {line[:80]!r}") from error

    def interrupt(self) -> None:
        """Send SIGKILL to the child, from any thread. A child inside a long C call reacts to no other signal."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def kill(self) -> None:
        """End the child and close the socket. Only the thread that uses the child may call this."""
        self.interrupt()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_WAIT_S)
        self._socket.close()
        _LIVE.discard(self)

    def _wait_until(self, deadline: float) -> None:
        self._socket.settimeout(max(_LEAST_WAIT_S, deadline - time.monotonic()))

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            return "closed its output"
        return f"ended by signal {-code}" if code < 0 else f"exited with status {code}"

    def _forget(self) -> None:
        """Close the socket in a forked copy of the parent, to which the child does not belong."""
        self._socket.close()
        self._process.returncode = 0  # Keeps Popen from waiting for the process.


def python_module(module: str) -> list[str]:
    """Return the command that runs a module of this package."""
    return [sys.executable, "-P", "-m", module]


def describe_start(module: str, error: ChildDied | DeadlinePassed) -> str:
    """Return why a child did not start. The child is started again, without requests, to read its error message."""
    waited = "it gave no answer in time" if isinstance(error, DeadlinePassed) else f"it {error}"
    try:
        done = subprocess.run(
            python_module(module),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_S,
            check=False,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return waited
    lines = done.stderr.strip().splitlines()
    return f"{waited}: {lines[-1]}" if done.returncode and lines else waited


_LIVE: weakref.WeakSet[ChildProcess] = weakref.WeakSet()
_SPAWNER: ThreadPoolExecutor | None = None
_SPAWNER_LOCK = threading.Lock()


def in_spawner_thread(start: Callable[[], T]) -> T:
    """Return the result of `start`, called in a thread that lives as long as the process.

    A child that asks Linux to die with its parent dies with the thread that started it.
    """
    global _SPAWNER  # noqa: PLW0603
    with _SPAWNER_LOCK:
        if _SPAWNER is None:
            _SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="truegold-spawner")
    return _SPAWNER.submit(start).result()


def _after_fork() -> None:
    global _SPAWNER, _SPAWNER_LOCK, _LIVE  # noqa: PLW0603
    for child in list(_LIVE):
        child._forget()
    _LIVE = weakref.WeakSet()
    _SPAWNER, _SPAWNER_LOCK = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Conversation:
    """The child's side: the requests of the parent, and the replies to them."""

    def __init__(self) -> None:
        die_with_parent()
        # Crashes are expected here, so they leave no core file.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Ctrl-C is left to the parent, which ends its children.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._in: BinaryIO = os.fdopen(os.dup(0), "rb")
        self._out: BinaryIO = os.fdopen(os.dup(1), "wb", buffering=0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()
        self._out.close()

    def requests(self) -> Iterator[Any]:
        """Yield every request until the parent closes the socket."""
        with contextlib.suppress(ConnectionError):  # The parent closed the socket with unread replies.
            for line in self._in:
                yield json.loads(line)

    def reply(self, message: object) -> None:
        """Write one line of JSON. Values that JSON does not know are written as their repr()."""
        unsent = memoryview(json.dumps(message, default=repr).encode() + b"\n")
        try:
            while unsent:
                unsent = unsent[self._out.write(unsent) or 0 :]
        except ConnectionError:
            # The parent has ended, so no process needs the reply.
            os._exit(0)


def limit_memory(max_bytes: int) -> None:
    """Limit the address space of this process, so that larger allocations raise MemoryError. A lower limit stays."""
    inherited = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = max_bytes if inherited == resource.RLIM_INFINITY else min(max_bytes, inherited)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


_PR_SET_PDEATHSIG = 1
"""The option of prctl(2) that requests a signal when the parent ends."""


def die_with_parent(parent: int | None = None) -> None:
    """Ask the kernel to kill this process when the thread that started it ends. Linux only.

    parent: the id of the parent process, if known. If it has ended already, this process exits.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def die_with_process(pid: int) -> None:
    """End this process when process `pid` ends, even if the thread that started this one ends earlier. Linux only."""
    if sys.platform != "linux":
        return
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        os._exit(1)

    def exit_after_process() -> None:
        select.select([handle], [], [])
        os._exit(1)

    threading.Thread(target=exit_after_process, daemon=True).start()


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1, with a fraction rounded up.

    A container may limit a process to some of the machine's cores, or to a share of their time.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, cpu_quota())))


def cpu_quota(memberships: Path = Path("/proc/self/cgroup"), groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the number of cores that the control groups of this process allow, or infinity without a limit.

    line of `memberships`     file that is read
    0::/pods/7                groups/pods/7/cpu.max: "150000 100000" allows 1.5 cores
    4:cpu,cpuacct:/           groups/cpu/cpu.cfs_quota_us and cpu.cfs_period_us
    """
    quotas = [math.inf]
    lines = memberships.read_text().splitlines() if memberships.exists() else []
    for _, controllers, name in (line.split(":", 2) for line in lines):
        if controllers and "cpu" not in controllers.split(","):
            continue
        # A container may see its own group as the root, but under its name on the host.
        for group in (Path(name), *Path(name).parents):
            folder = (groups / "cpu" if controllers else groups) / group.relative_to("/")
            for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
                with contextlib.suppress(OSError):
                    quota, period = " ".join((folder / file).read_text() for file in files).split()
                    quotas += [int(quota) / int(period)] if quota not in {"max", "-1"} else []
    return min(quotas)
