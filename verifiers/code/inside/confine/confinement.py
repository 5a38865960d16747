"""What a forked process does to itself before it runs a program that nobody has read.

A box of its own, then capabilities, Landlock, descriptors and the seccomp filter, none of which can be taken back. The
steps are prepared as C calls before the fork: whatever Python object a forked process touches is a page that the kernel
has to copy, and those copies are most of what a short job costs.

Resource limits are set before the fork as well, and the filter lets nobody change them: `setrlimit` succeeds and does
nothing, for programs that ask for a larger stack, which they have anyway.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import kernel, landlock, seccomp, view

MAX_OPEN_FILES = 256
"""Stops a program that opens files until the machine has none left."""

ADDRESS_SLACK = 2**30
"""Addresses beyond the memory limit. Threads with large stacks, arenas and mapped files reserve more than they use."""

SPARE_TASKS = 8
"""Processes of the sandbox itself, which count towards the same limit."""

Step = Callable[[], int]
"""A prepared call of the kernel; 0 is success."""


@dataclass(frozen=True)
class User:
    """A user id that jobs get instead of root's. reads_interpreter: whether it can still import modules."""

    uid: int
    reads_interpreter: bool


@dataclass(frozen=True)
class Confinement:
    """What a zygote found possible, and prepared once for all its jobs.

    boxes: without mount namespaces, the working folder of each seat; its rule set stands at the same place in
    `rulesets`. With them the boxes are made for each job, and there is one rule set. counts_tasks: whether the limit
    that the kernel sets on a user's tasks counts this sandbox's alone. user: whom jobs become instead of root.
    shared_user: jobs run as an ordinary user, who has other processes.
    """

    tier: str
    rulesets: tuple[int, ...] = ()
    boxes: tuple[str, ...] = ()
    counts_tasks: bool = False
    user: User | None = None
    shared_user: bool = False

    @property
    def native(self) -> bool:
        """Whether programs that start others can be held: the kernel has to count their tasks."""
        return self.counts_tasks or self.user is not None or self.shared_user

    def steps(self, seat: int, limits: Mapping[str, Any], native: bool) -> list[Step]:
        """The calls that lock a process in, up to the filter."""
        if self.tier == "full":
            # Two jobs at once must not meet in one box, and native ones fill theirs anyway.
            shared = seat == 0 and not native
            steps = view.enter_box_steps() if shared else view.own_box_steps(limits["files_bytes"])
        else:
            steps = [kernel.step("setpgid", 0, 0)]
            if self.user is not None and (native or self.user.reads_interpreter):
                uid = self.user.uid
                steps += [kernel.step("setresgid", 0, 0, 0), kernel.step("setgroups", ctypes.c_size_t(0), None)]
                steps += [kernel.step("setresuid", uid, uid, uid)]
            steps += [kernel.step("chdir", os.fsencode(self.boxes[seat]))]
            steps += kernel.die_with_parent_steps()
        if self.tier != "weak":
            steps.append(kernel.drop_capabilities_step())
        if self.rulesets:
            steps.append(landlock.restrict_step(self.rulesets[seat if self.boxes else 0]))
        return steps

    def most_tasks(self, threads: int, native: bool) -> int | None:
        """What to set as the limit on a user's tasks; None where it would count, or bind, the wrong ones."""
        if self.counts_tasks or (native and self.user is not None):
            return threads + SPARE_TASKS
        if native and self.shared_user:
            return tasks_of(os.getuid()) + threads + SPARE_TASKS
        return None


def tasks_of(uid: int) -> int:
    """How many processes and threads a user has now."""
    total = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat(f"/proc/{entry}").st_uid == uid:
                    total += len(os.listdir(f"/proc/{entry}/task"))
            except OSError:
                continue
    return total


def limit(limits: Mapping[str, Any], most_tasks: int | None, native: bool, hard: bool = False) -> None:
    """Set the resource limits of this process, which those it forks inherit. CPU time is the supervisor's to watch.

    hard: so that they cannot be raised again, which only a process that is about to run the program may want.
    """
    largest = max(limits["output_bytes"], limits["files_bytes"])
    values = {
        resource.RLIMIT_FSIZE: largest,
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
        # Virtual machines reserve far more addresses than they use.
        resource.RLIMIT_AS: resource.RLIM_INFINITY if native else limits["memory_bytes"] + ADDRESS_SLACK,
    }
    if most_tasks is not None:
        values[resource.RLIMIT_NPROC] = most_tasks
    if native and hard:  # the processes that it starts are not all in the supervisor's sight on every machine
        values[resource.RLIMIT_CPU] = math.ceil(limits["cpu_s"]) + 1
    for kind, value in values.items():
        most = resource.getrlimit(kind)[1]
        wanted = min((bound for bound in (value, most) if bound != resource.RLIM_INFINITY), default=most)
        resource.setrlimit(kind, (wanted, wanted if hard else most))


def filter_for(tier: str, native: bool) -> seccomp.Filter | None:
    """What the last step installs; None where the tier has no filter."""
    if tier == "full":  # in a pid namespace of its own every job has the same process id
        return seccomp.Filter(seccomp.program(1, native, alone=True))
    if tier == "container":
        return seccomp.Filter(seccomp.program(seccomp.OWN_PID, native, truncate=landlock.guards_truncate()))
    return None


def lock_in(steps: Sequence[Step], descriptors: Sequence[int], last: seccomp.Filter | None) -> bool:
    """In the forked process; whether it is locked in. descriptors: what its numbers from 0 on are to be; all others
    are closed."""
    for step in steps:
        if step() != 0:
            return False
    for number, source in enumerate(descriptors):
        os.dup2(source, number)
    os.closerange(len(descriptors), 2**31 - 1)
    return last is None or last.install() == 0
