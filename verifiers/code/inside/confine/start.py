"""How a zygote comes to be: `python -s -c BOOT START.PY OPTIONS` with a socket as its stdin.

Two stages. The first gives the process a large stack limit, which takes effect at the next exec only. The second enters
the tier that was asked for, and tells on the socket either `{"ready": true, ...}` or `{"failed": why}`.

    full        own user, mount, pid, network, IPC and UTS namespaces; a root folder with the interpreter only; Landlock
                where the kernel has it; seccomp
    container   no namespaces: Landlock and seccomp
    weak        resource limits only
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import socket
import sys
import traceback
from typing import Any

from . import kernel, landlock, syscalls, view
from .confinement import Confinement, User
from .preload import preload
from .zygote import Roles, Zygote

STACK_BYTES = 256 * 2**20
"""Recursion through C code, such as a cached function's, takes half a kilobyte of stack a level."""

FIRST_UNUSED_UID = 1_000_000_000
NOBODY = 65534

HIGH_FROM = 20
"""The sandbox's own descriptors are from here on; what comes for a job lies below, what a job sees below 5."""

SEATS = 2


class NotPossible(Exception):
    """This tier cannot be had here; the text says which step failed."""


def main(options: dict[str, Any], roles: Roles) -> None:
    if not options.get("staged"):
        _exec_with_stack(options)
    control = socket.socket(fileno=_high(os.dup(0)))
    preload()
    _quiet()
    die_with(os.getppid())
    try:
        {"full": _full, "container": _container, "weak": _weak}[options["tier"]](control, options, roles)
    except (NotPossible, OSError) as error:
        control.sendall(json.dumps({"failed": str(error)}).encode() + b"\n")
    except Exception:
        control.sendall(json.dumps({"bug": traceback.format_exc()}).encode() + b"\n")


def _exec_with_stack(options: dict[str, Any]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    staged = json.dumps({**options, "staged": True})
    os.execv(sys.executable, [*sys.orig_argv[:-1], staged])


def _quiet() -> None:
    empty = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(empty, number)
    os.close(empty)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it; a program that writes too much is to end
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with(parent: int) -> None:
    """Die with the process that started this one."""
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _full(control: socket.socket, options: dict[str, Any], roles: Roles) -> None:
    _need_filter()
    parent = os.getppid()
    paths = view.exposed(options["expose"])
    proc = _high(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    if os.geteuid() == 0 and _can(kernel.CLONE_NEWNS):
        # As root the view is built first: it may lead through folders that the unprivileged user could not enter.
        view.enter(view.build(paths))
        _become_unused(os.getpid())
        _enter_namespaces(proc)
    else:
        _enter_namespaces(proc)
        view.enter(view.build(paths))
    die_with(parent)  # once more: the kernel forgets it when a process changes its user
    kernel.set_host_name("sandbox")
    child = os.fork()  # the first process of the new pid namespace
    if child:
        control.close()
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    die_with(0)
    own_proc = view.own_proc()
    own_proc = None if own_proc is None else _high(own_proc)
    own_pids = _high(
        os.open("self/ns/pid", os.O_RDONLY, dir_fd=proc)
    )  # to come back to before each job's namespace is made
    os.close(proc)
    kernel.drop_capability_bounds()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    rulesets = _rulesets([*paths, *view.MADE_UP_PATHS], view.BOX_PARENT)
    found = Confinement("full", rulesets, counts_tasks=True)
    greeting = {
        "ready": True,
        "landlock": landlock.version(),
        "proc": own_proc is not None,
        "uid": os.getuid(),
        "native": True,
    }
    Zygote(control, found, roles, own_proc, own_pids).serve(greeting)


def _container(control: socket.socket, options: dict[str, Any], roles: Roles) -> None:
    _need_filter()
    if landlock.version() == 0:
        raise NotPossible("Landlock: not in this kernel, or switched off")
    boxes = tuple(options["boxes"])
    paths = view.exposed(options["expose"])
    user = _unused_user(boxes) if os.geteuid() == 0 else None
    proc = _high(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    rulesets = tuple(handle for box in boxes for handle in _rulesets(paths, box))
    found = Confinement("container", rulesets, boxes=boxes, user=user, shared_user=os.geteuid() != 0)
    greeting = {"ready": True, "landlock": landlock.version(), "proc": True, "uid": os.getuid(), "native": found.native}
    Zygote(control, found, roles, proc, None).serve(greeting)


def _weak(control: socket.socket, options: dict[str, Any], roles: Roles) -> None:
    proc = None
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        proc = _high(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    found = Confinement("weak", boxes=tuple(options["boxes"]), shared_user=os.geteuid() != 0)
    greeting = {"ready": True, "landlock": 0, "proc": proc is not None, "uid": os.getuid(), "native": found.native}
    Zygote(control, found, roles, proc, None).serve(greeting)


def _need_filter() -> None:
    if sys.platform != "linux":
        raise NotPossible(f"namespaces, Landlock and seccomp are Linux's, this is {sys.platform}")
    if not syscalls.supported():
        raise NotPossible("seccomp: the system calls of this architecture are not known here")


def _enter_namespaces(proc: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else the kernel keeps the maps from a process that changed its user
    kernel.unshare(
        kernel.CLONE_NEWUSER
        | kernel.CLONE_NEWNS
        | kernel.CLONE_NEWPID
        | kernel.CLONE_NEWNET
        | kernel.CLONE_NEWIPC
        | kernel.CLONE_NEWUTS
        | kernel.CLONE_NEWCGROUP
    )
    _write_at(proc, "self/setgroups", "deny")
    _write_at(proc, "self/uid_map", f"1000 {uid} 1")
    _write_at(proc, "self/gid_map", f"1000 {gid} 1")


def _can(namespace: int) -> bool:
    try:
        kernel.unshare(namespace)
    except OSError:
        return False
    return True


def _become_unused(number: int) -> None:
    """Give up root for a user that nobody else is, so that limits on a user's tasks are this sandbox's alone."""
    uid = FIRST_UNUSED_UID + number
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _unused_user(boxes: tuple[str, ...]) -> User | None:
    """A user id that nobody else has, for jobs to run as instead of root, to whom limits on tasks do not apply; None
    where this root may not change it. The boxes are made that user's, and stay open to root's group."""
    uid = FIRST_UNUSED_UID + os.getpid()
    needed = view.interpreter_paths()
    child = os.fork()
    if child == 0:
        try:
            _become_unused(os.getppid())
            os._exit(0 if all(os.access(path, os.R_OK | os.X_OK) for path in needed) else 1)
        except OSError:
            os._exit(2)
    seen = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if seen == 2:
        return None
    for box in boxes:
        os.chown(box, uid, 0)
        os.chmod(box, 0o770)
    return User(uid, reads_interpreter=seen == 0)


def _rulesets(paths: list[str], writable: str) -> tuple[int, ...]:
    if landlock.version() == 0:
        return ()
    rules = [(path, landlock.READ) for path in paths]
    rules += [(path, landlock.DEVICE) for path in view.DEVICES]
    handle = landlock.ruleset([*rules, (writable, landlock.everything())])
    return (_high(handle),)


def _high(descriptor: int) -> int:
    """The same at a number that no job uses."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH_FROM)
    os.close(descriptor)
    return copy


def _write_at(folder: int, path: str, text: str) -> None:
    place = os.open(path, os.O_WRONLY, dir_fd=folder)
    try:
        os.write(place, text.encode())
    finally:
        os.close(place)
