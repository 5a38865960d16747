"""What a forked process gives up before it runs a program that nobody has read.

It moves into a box of its own and gives up its capabilities, the file system (Landlock), its descriptors and most
system calls (seccomp), none of which it can take back. The steps are prepared as C calls before the fork: whatever
Python object a forked process touches is a page that the kernel has to copy, and those copies are most of what a short
job costs.

Resource limits are set before the fork as well, and the filter lets nobody change them: `setrlimit` succeeds and does
nothing, for programs that ask for a larger stack, which they have anyway.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from . import kernel, landlock, seccomp, view

MAX_OPEN_FILES = 256
"""Stops a program that opens files until the machine has none left."""

ADDRESS_SLACK = 2**30
"""Addresses beyond the memory limit. Threads with large stacks, arenas and mapped files reserve more than they use."""

SPARE_TASKS = 8
"""Processes of the sandbox itself, which count towards the same limit."""

Step = Callable[[], int]
"""A prepared call of the kernel; 0 is success."""


class User(NamedTuple):
    """A user id that jobs get instead of root's."""

    uid: int
    reads_interpreter: bool
    """Whether this user can still import Python's modules."""


class Confinement(NamedTuple):
    """What a zygote found possible, and prepared once for all its jobs."""

    tier: str
    rulesets: tuple[int, ...] = ()
    """Landlock's rule sets: one for each box, or a single one where the boxes are made for each job."""
    boxes: tuple[str, ...] = ()
    """The working folder of each seat. Empty where mount namespaces give each job its own."""
    box_links: Mapping[str, str] = MappingProxyType({})
    """Links in /tmp, and what they lead to (`view.temporary_links`)."""
    counts_tasks: bool = False
    """Whether the kernel's limit on a user's tasks counts those of this sandbox alone."""
    user: User | None = None
    """The user that jobs become instead of root."""
    shared_user: bool = False
    """Whether jobs run as an ordinary user, who has other processes."""

    @property
    def native(self) -> bool:
        """Whether programs that start others can be held: the kernel has to count their tasks."""
        return self.counts_tasks or self.user is not None or self.shared_user

    def steps(self, seat: int, limits: Mapping[str, Any], native: bool) -> list[Step]:
        """Return the calls that lock a process in, up to the filter."""
        if self.tier == "full":
            # Two jobs at once must not meet in one box, and native ones fill theirs anyway.
            shares_box = seat == 0 and not native
            steps = (
                [view.enter_box_step()] if shares_box else view.private_box_steps(limits["files_bytes"], self.box_links)
            )
        else:
            steps = [kernel.step("setpgid", 0, 0)]
            if self.user is not None and (native or self.user.reads_interpreter):
                uid = self.user.uid
                steps += [kernel.step("setresgid", 0, 0, 0), kernel.step("setgroups", ctypes.c_size_t(0), None)]
                steps += [kernel.step("setresuid", uid, uid, uid)]
            steps += [kernel.step("chdir", os.fsencode(self.boxes[seat])), kernel.die_with_parent_step()]
        if self.tier != "weak":
            steps.append(kernel.drop_capabilities_step())
        if self.rulesets:
            steps.append(landlock.restrict_step(self.rulesets[seat if self.boxes else 0]))
        return steps

    def task_limit(self, threads: int, native: bool) -> int | None:
        """Return what to set as the limit on a user's tasks; None where it would count, or bind, the wrong ones."""
        if self.counts_tasks or (native and self.user is not None):
            return threads + SPARE_TASKS
        if native and self.shared_user:
            return _count_tasks(os.getuid()) + threads + SPARE_TASKS
        return None


def _count_tasks(uid: int) -> int:
    """Count the processes and threads that a user has now."""
    total = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat(f"/proc/{entry}").st_uid == uid:
                    total += len(os.listdir(f"/proc/{entry}/task"))
            except OSError:
                continue
    return total


def set_limits(limits: Mapping[str, Any], task_limit: int | None, native: bool, hard: bool = False) -> None:
    """Set the resource limits of this process, which those it forks inherit. The supervisor watches CPU time.

    hard: whether they can never be raised again, which only a process that is about to run the program may want.
    """
    bounds = {
        resource.RLIMIT_FSIZE: max(limits["output_bytes"], limits["files_bytes"]),
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
        # Virtual machines reserve far more addresses than they use.
        resource.RLIMIT_AS: resource.RLIM_INFINITY if native else limits["memory_bytes"] + ADDRESS_SLACK,
    }
    if task_limit is not None:
        bounds[resource.RLIMIT_NPROC] = task_limit
    if native and hard:  # The supervisor does not see all processes that it starts on every machine.
        bounds[resource.RLIMIT_CPU] = math.ceil(limits["cpu_s"]) + 1
    for kind, bound in bounds.items():
        ceiling = resource.getrlimit(kind)[1]
        soft = min((limit for limit in (bound, ceiling) if limit != resource.RLIM_INFINITY), default=ceiling)
        resource.setrlimit(kind, (soft, soft if hard else ceiling))


def filter_for(tier: str, native: bool) -> seccomp.Filter | None:
    """Return the filter that a process installs last; None where the tier has none."""
    if tier == "full":  # In a pid namespace of its own every job has the same process id.
        return seccomp.Filter(seccomp.assemble(1, native, alone=True))
    if tier == "container":
        return seccomp.Filter(seccomp.assemble(seccomp.INSTALLER_PID, native, truncate=landlock.guards_truncate()))
    return None


def lock_in(steps: Sequence[Step], descriptors: Sequence[int], last: seccomp.Filter | None) -> bool:
    """Lock the forked process in and return whether that worked.

    descriptors: what the numbers from 0 on stand for afterwards; all others are closed.
    """
    for step in steps:
        if step() != 0:
            return False
    for target, source in enumerate(descriptors):
        os.dup2(source, target)
    os.closerange(len(descriptors), 2**31 - 1)
    return last is None or last.install() == 0
