"""Takes rights away from a process before it runs an untrusted program.

A zygote, the process that forks a copy of itself for every job, enters a tier once:

    full        separate user, mount, pid, network, IPC and UTS namespaces; a root folder with only the interpreter and
                the system; Landlock if the kernel has it; seccomp
    container   no namespaces: Landlock and seccomp
    weak        resource limits only

Each forked process then gives up, for good, its capabilities, its descriptors, most system calls, and the file system
except for its working folder (the box). These steps are prepared as C calls before the fork, for speed: the kernel
copies every page that a forked process touches, and these copies are most of the cost of a short job.
Resource limits are set before the fork too. Programs may ask for a larger stack, so the filter of system calls lets
`setrlimit` succeed without effect.

A `native` job runs a command, such as a compiler or a compiled program, that may start further programs. Python
programs may not. A `seat` is the position of a job, 0 or 1, among the jobs that run together.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from . import kernel, seccomp, view
from .supervise import JobLimits

MAX_OPEN_FILES = 256
"""Maximum number of files that a program has open, since the files of a machine are limited."""

ADDRESS_SLACK = 2**30
"""Bytes of address space in addition to the memory limit, since threads and mapped files reserve more than they use."""

SPARE_TASKS = 8
"""Number of processes of the sandbox itself, which count towards the limit on tasks."""

Step = Callable[[], int]
"""A prepared kernel call. It returns 0 on success."""


class User(NamedTuple):
    """A user under whose id jobs run, if root runs the sandbox."""

    uid: int
    reads_interpreter: bool
    """Whether this user may still import Python's modules."""


class Confinement(NamedTuple):
    """The confinement of a zygote, prepared once for all its jobs."""

    tier: str
    rulesets: tuple[int, ...] = ()
    """Landlock's rule sets: one for each box, or a single one if boxes are mounted for each job."""
    boxes: tuple[str, ...] = ()
    """The working folder of each job slot. Empty if mount namespaces give each job its own folder."""
    box_links: Mapping[str, str] = MappingProxyType({})
    """Links in /tmp with their targets (`view.temporary_links`)."""
    counts_tasks: bool = False
    """Whether the kernel's limit on a user's tasks counts only tasks of this sandbox."""
    user: User | None = None
    """The user under whose id jobs run, if root runs the sandbox."""
    shared_user: bool = False
    """Whether jobs run as an ordinary user, who may have other processes."""
    proc: int | None = None
    """A descriptor of a /proc that shows the processes of jobs."""
    pid_namespace: int | None = None
    """The pid namespace below which each job gets its own."""

    @property
    def native(self) -> bool:
        """Whether native jobs can be confined: only if the kernel limits the number of their tasks."""
        return self.counts_tasks or self.user is not None or self.shared_user

    def steps(self, seat: int, limits: JobLimits, native: bool, shared: bool) -> list[Step]:
        """Return the calls that confine a process, except for the filter of system calls, which comes last.

        shared: whether the job works in the folder of the first job.
        """
        seat = 0 if shared else seat
        if self.tier == "full":
            private = view.private_box_steps(limits["files_bytes"], self.box_links)
            steps = [view.enter_box_step()] if shared else private
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
            steps.append(kernel.restrict_step(self.rulesets[seat if self.boxes else 0]))
        return steps

    def task_limit(self, threads: int, native: bool) -> int | None:
        """Return the limit on the user's tasks, or None to set no limit."""
        if self.counts_tasks or (native and self.user is not None):
            return threads + SPARE_TASKS
        if native and self.shared_user:
            return _count_tasks(os.getuid()) + threads + SPARE_TASKS
        return None


def _count_tasks(uid: int) -> int:
    """Return the number of processes and threads that a user has now."""
    total = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat(f"/proc/{entry}").st_uid == uid:
                    total += len(os.listdir(f"/proc/{entry}/task"))
            except OSError:
                continue
    return total


def set_limits(limits: JobLimits, task_limit: int | None, native: bool, hard: bool = False) -> None:
    """Set the resource limits of this process and its children. hard: whether they can never be raised again."""
    bounds = {
        resource.RLIMIT_FSIZE: max(limits["output_bytes"], limits["files_bytes"]),
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
        # Virtual machines, such as Java's, reserve far more addresses than they use.
        resource.RLIMIT_AS: resource.RLIM_INFINITY if native else limits["memory_bytes"] + ADDRESS_SLACK,
    }
    if task_limit is not None:
        bounds[resource.RLIMIT_NPROC] = task_limit
    if native and hard:  # On some machines the supervisor does not see all processes that a native program starts.
        bounds[resource.RLIMIT_CPU] = math.ceil(limits["cpu_s"]) + 1
    for kind, bound in bounds.items():
        ceiling = resource.getrlimit(kind)[1]
        soft = min((limit for limit in (bound, ceiling) if limit != resource.RLIM_INFINITY), default=ceiling)
        resource.setrlimit(kind, (soft, soft if hard else ceiling))


def filter_for(tier: str, native: bool) -> seccomp.Filter | None:
    """Return the filter that a process installs last, or None if the tier has none."""
    if tier == "full":  # Every job is the first process of its pid namespace, with id 1.
        return seccomp.Filter(seccomp.assemble(1, native, alone=True))
    if tier == "container":
        return seccomp.Filter(seccomp.assemble(seccomp.INSTALLER_PID, native, truncate=kernel.guards_truncate()))
    return None


def lock_in(steps: Sequence[Step], descriptors: Sequence[int], last: seccomp.Filter | None) -> bool:
    """Confine the forked process and return whether that worked. descriptors: those that the process keeps."""
    for step in steps:
        if step() != 0:
            return False
    for target, source in enumerate(descriptors):
        os.dup2(source, target)
    os.closerange(len(descriptors), 2**31 - 1)
    return last is None or last.install() == 0


FIRST_UNUSED_UID = 1_000_000_000
"""User ids from here on belong to no user."""

FIRST_HIGH_DESCRIPTOR = 20
"""Lowest descriptor of the sandbox itself. Descriptors of a request are lower; a job sees descriptors below 5."""


class NotPossible(Exception):
    """This machine does not allow the tier. The text says which step failed."""


def die_with(parent: int) -> None:
    """Make this process end with its parent."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def enter_tier(control: socket.socket, options: dict[str, Any]) -> Confinement:
    """Enter the requested tier. Raises NotPossible and OSError if this machine does not allow it."""
    return _enter_full(control, options) if options["tier"] == "full" else _enter_shared(options)


def _enter_full(control: socket.socket, options: dict[str, Any]) -> Confinement:
    """Enter the tier `full`: namespaces in which a program finds only the interpreter, the system and a box."""
    _check_filter_possible()
    parent = os.getppid()
    paths = view.exposed_paths([*options["interpreter"], *options["expose"]])
    proc = move_high(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    if os.geteuid() == 0 and _can_unshare(kernel.CLONE_NEWNS):
        # Root builds the view first, because it may lead through folders that the unprivileged user may not enter.
        view.enter_root(view.build_root(paths))
        _become_user(FIRST_UNUSED_UID + os.getpid())
        _enter_namespaces(proc)
    else:
        _enter_namespaces(proc)
        view.enter_root(view.build_root(paths))
    die_with(parent)  # The kernel drops this setting when a process changes its user.
    kernel.call("sethostname", b"sandbox", ctypes.c_size_t(len(b"sandbox")))
    child = os.fork()  # The child is the first process of the new pid namespace.
    if child:
        control.close()
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    die_with(0)
    inner_proc = view.open_proc()
    inner_proc = None if inner_proc is None else move_high(inner_proc)
    pid_namespace = move_high(os.open("self/ns/pid", os.O_RDONLY, dir_fd=proc))
    os.close(proc)
    kernel.drop_capability_bounds()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    rulesets = _make_rulesets([*map(view.inner_path, paths), *view.MADE_UP_PATHS], view.BOX_PARENT)
    links = view.temporary_links(paths)
    return Confinement(
        "full", rulesets, box_links=links, counts_tasks=True, proc=inner_proc, pid_namespace=pid_namespace
    )


def _enter_shared(options: dict[str, Any]) -> Confinement:
    """Enter a tier without namespaces. `container` uses Landlock, seccomp and an unused user id."""
    tier, boxes = options["tier"], tuple(options["boxes"])
    user, rulesets = None, tuple[int, ...]()
    if tier != "weak":
        _check_filter_possible()
        if kernel.landlock_version() == 0:
            raise NotPossible("Landlock: not in this kernel, or switched off")
        paths = view.exposed_paths([*options["interpreter"], *options["expose"]])
        user = _unused_user(boxes, [*options["interpreter"], *view.loaded_libraries()]) if os.geteuid() == 0 else None
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        rulesets = tuple(ruleset for box in boxes for ruleset in _make_rulesets(paths, box))
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    proc = move_high(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    return Confinement(tier, rulesets, boxes=boxes, user=user, shared_user=os.geteuid() != 0, proc=proc)


def _check_filter_possible() -> None:
    if sys.platform != "linux":
        raise NotPossible(f"namespaces, Landlock and seccomp exist only on Linux, this is {sys.platform}")
    if kernel.AUDIT_ARCH is None:
        raise NotPossible("seccomp: the system calls of this architecture are not known here")


def _enter_namespaces(proc: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # Lets a process that changed its user write its id maps.
    kernel.call("unshare", kernel.CLONE_NAMESPACES)
    _write(proc, "self/setgroups", "deny")
    _write(proc, "self/uid_map", f"1000 {uid} 1")
    _write(proc, "self/gid_map", f"1000 {gid} 1")


def _can_unshare(namespace: int) -> bool:
    try:
        kernel.call("unshare", namespace)
    except OSError:
        return False
    return True


def _become_user(uid: int) -> None:
    """Replace root by a user id that no other process has, so that limits on tasks count only this sandbox."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _unused_user(boxes: tuple[str, ...], needed: list[str]) -> User | None:
    """Return a user with an unused id, or None if root may not change its user.

    Limits on tasks do not bind root. The boxes become that user's, and root's group keeps access to them.
    """
    uid = FIRST_UNUSED_UID + os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _become_user(uid)
            os._exit(0 if all(os.access(path, os.R_OK | os.X_OK) for path in needed) else 1)
        except OSError:
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 2:
        return None
    for box in boxes:
        os.chown(box, uid, 0)
        os.chmod(box, 0o770)
    return User(uid, reads_interpreter=status == 0)


def _make_rulesets(paths: list[str], writable: str) -> tuple[int, ...]:
    if kernel.landlock_version() == 0:
        return ()
    rules = [(path, kernel.READ) for path in paths]
    rules += [(path, kernel.DEVICE) for path in view.DEVICES]
    ruleset = kernel.make_ruleset([*rules, (writable, kernel.all_rights())])
    return (move_high(ruleset),)


def move_high(descriptor: int) -> int:
    """Move a descriptor to a number that no job uses."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_HIGH_DESCRIPTOR)
    os.close(descriptor)
    return copy


def _write(folder: int, path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY, dir_fd=folder)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
