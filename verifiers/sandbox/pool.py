"""How strong a sandbox is, from strongest to weakest. Every verdict names its tier.

Sandboxes shared by all threads of a process, each with a zygote per core and group of jobs that starts when it is
needed. Of all groups together, a sandbox runs as many jobs at a time as there are cores.

    box = sandbox()                                   the strongest tier that this machine gives
    box.run(Job("main", payload, Limits()))           an Execution
    box.run_pair(solution, tests)                     two processes that talk to each other

A job whose sandbox fails is tried once more in a fresh one; after that it raises SandboxError, never a verdict on the
program.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from queue import LifoQueue

from truegold.verifiers.sandbox.child_process import usable_cores
from truegold.verifiers.sandbox.errors import ConfigError, SetupError
from truegold.verifiers.sandbox.execution import Execution, Job, MachineBusy, SandboxError, Tier
from truegold.verifiers.sandbox.inside.preload import group_of
from truegold.verifiers.sandbox.pool import Seat, TierNotPossible

VARIABLE = "TRUEGOLD_SANDBOX"
"""The environment variable that asks for a tier, such as `weak` on a machine that gives no other."""


AUTOMATIC_TIERS = (Tier.FULL, Tier.CONTAINER)


def tier_from_environment() -> Tier | None:
    """Return the tier that `TRUEGOLD_SANDBOX` asks for, if any. Raises ConfigError where it names none."""
    name = os.environ.get(VARIABLE, "").strip()
    if not name or name == "auto":
        return None
    try:
        return Tier(name)
    except ValueError:
        raise ConfigError(f"{VARIABLE}={name} names no tier.", f"It may be {', '.join(Tier)} or auto.") from None


ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Kind:
    """What tells one sandbox from another."""

    tier: Tier | None = None
    """None for the strongest that this machine gives."""
    python: str = sys.executable
    """The interpreter whose packages programs may use."""
    hash_seed: int = 0
    """PYTHONHASHSEED of the programs."""
    expose: tuple[str, ...] = ()
    """Folders that programs may read besides the system's own."""


class LastRun(threading.local):
    """What the last program of this thread took, for reports of costs: verdicts are the same every time, and times
    are not."""

    own_s: float | None = None


last_run = LastRun()


class Sandbox:
    """Runs jobs, each in a process of its own. For any number of threads."""

    def __init__(self, kind: Kind, tier: Tier, seats: int, stronger_tier: Tier | None = None) -> None:
        self.tier = tier
        self.stronger_tier = stronger_tier
        """A stronger tier that this machine allows and that is not in force."""
        self._kind = kind
        self._seats = seats
        self._groups: dict[str, _Group] = {}
        self._lock = threading.Lock()
        self._cores = threading.Semaphore(seats)

    def run(self, job: Job) -> Execution:
        """Run a job and return what became of it. Raises SandboxError where the sandbox itself failed."""
        return self._run([job])[0]

    def run_pair(self, solution: Job, tests: Job, piped: bool = False) -> tuple[Execution, Execution]:
        """Run two jobs at the same time, connected by a socket. The end of `tests` is the end of both.

        piped: whether pipes connect them instead, so that each reads as its stdin what the other one prints.
        """
        solution_execution, tests_execution = self._run([solution, tests], piped)
        return solution_execution, tests_execution

    def close(self) -> None:
        """End all its processes. It can be used again."""
        for seat in self._all():
            seat.stop()

    def pids(self) -> list[int]:
        """Return the process ids of the zygotes that run now."""
        return [seat.pid for seat in self._all() if seat.pid is not None]

    def folders(self) -> list[str]:
        """Return the working folders on disk, which only tiers without mount namespaces have."""
        return [folder for seat in self._all() for folder in seat.folders]

    def forget(self) -> None:
        """Let go of the zygotes. In a forked copy of this process they belong to the original."""
        for seat in self._all():
            seat.forget()
        self._groups, self._lock, self._cores = {}, threading.Lock(), threading.Semaphore(self._seats)

    def _run(self, jobs: list[Job], piped: bool = False) -> list[Execution]:
        group = self._group(group_of([job.role for job in jobs], [name for job in jobs for name in job.warm]))
        with self._cores:
            seat = group.free.get()
            try:
                return self._run_in(seat, jobs, piped)
            finally:
                group.free.put(seat)

    def _run_in(self, seat: Seat, jobs: list[Job], piped: bool) -> list[Execution]:
        """Run the jobs in a seat, once more where it fails."""
        for attempt in range(ATTEMPTS):
            try:
                seat.start()
                executions = seat.run(jobs, piped)
                last_run.own_s = executions[0].own_s
                return executions
            except TierNotPossible as error:
                raise SandboxError(f"tier {self.tier} is gone: {error}") from error
            except MachineBusy:
                raise
            except SandboxError:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _group(self, name: str) -> _Group:
        with self._lock:
            if name not in self._groups:
                kind = self._kind
                seats = [Seat(self.tier, kind.python, kind.hash_seed, kind.expose, name) for _ in range(self._seats)]
                self._groups[name] = _Group(seats)
            return self._groups[name]

    def _all(self) -> list[Seat]:
        return [seat for group in list(self._groups.values()) for seat in group.seats]


class _Group:
    """The seats of the jobs that need the same modules (`preload.group_of`)."""

    def __init__(self, seats: Sequence[Seat]) -> None:
        self.seats = seats
        self.free: LifoQueue[Seat] = LifoQueue()
        """The seat that is given back last is taken next, since it has a zygote already."""
        for seat in seats:
            self.free.put(seat)


_SHARED: dict[Kind, Sandbox] = {}
_LOCK = threading.Lock()


def sandbox(kind: Kind | None = None) -> Sandbox:
    """Return the shared sandbox of a kind.

    Raises SetupError, naming the reasons, where this machine does not give its tier.
    """
    kind = kind or Kind()
    with _LOCK:
        if kind not in _SHARED:
            _SHARED[kind] = _open(kind)
        return _SHARED[kind]


def close_all() -> None:
    """End every shared sandbox of this process."""
    with _LOCK:
        shared = list(_SHARED.values())
        _SHARED.clear()
    for box in shared:
        box.close()


def possible_tiers(python: str = sys.executable) -> dict[Tier, str | None]:
    """Return for each tier why this machine does not give it, or None."""
    return {tier: _find_obstacle(tier, Kind(python=python)) for tier in Tier}


def _find_obstacle(tier: Tier, kind: Kind) -> str | None:
    """Return why this machine does not give a tier; None where it does."""
    seat = Seat(tier, kind.python, kind.hash_seed, kind.expose)
    try:
        seat.start()
    except (TierNotPossible, SandboxError) as error:
        return str(error)
    finally:
        seat.stop()
    return None


def _open(kind: Kind) -> Sandbox:
    requested_tier = kind.tier or tier_from_environment()
    reasons: list[str] = []
    for tier in (requested_tier,) if requested_tier else AUTOMATIC_TIERS:
        obstacle = _find_obstacle(tier, kind)
        if obstacle is None:
            stronger_tier = next((stronger for stronger in _tiers_above(tier) if _machine_allows(stronger)), None)
            if stronger_tier is not None:
                why = f"{VARIABLE} or the verifier asks for it" if requested_tier else "; ".join(reasons)
                message = f"Programs run in the tier {tier}, though this machine allows {stronger_tier}: {why}."
                warnings.warn(message, stacklevel=2)
            box = Sandbox(kind, tier, usable_cores(), stronger_tier)
            _LIVE.add(box)
            return box
        reasons.append(f"{tier}: {obstacle}")
    raise SetupError(
        f"this machine gives no sandbox for programs ({'; '.join(reasons)}).",
        "See `truegold doctor`; a container may need `--security-opt seccomp=unconfined`. TRUEGOLD_SANDBOX=weak runs "
        "them with resource limits only: for programs that you trust.",
    )


def _tiers_above(tier: Tier) -> tuple[Tier, ...]:
    return AUTOMATIC_TIERS[: AUTOMATIC_TIERS.index(tier)] if tier in AUTOMATIC_TIERS else AUTOMATIC_TIERS


@cache
def _machine_allows(tier: Tier) -> bool:
    """Return whether programs of the plain interpreter, with no toolchains and packages, can run in a tier."""
    return _find_obstacle(tier, Kind(python=getattr(sys, "_base_executable", None) or sys.executable)) is None


_LIVE: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _after_fork() -> None:
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.Lock()
    for box in list(_LIVE):
        box.forget()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_all)
