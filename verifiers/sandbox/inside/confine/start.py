"""Makes a zygote of a fresh interpreter, which has a socket as its stdin.

There are two stages. The first gives the process a large stack limit, which takes effect at the next exec only. The
second enters the tier that was asked for, and says on the socket either `{"ready": true}` or `{"failed": why}`.

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
from typing import Any

from . import kernel, landlock, syscalls, view
from .confinement import Confinement, User
from .preload import PLAIN, PLAIN_ROLES, preload
from .zygote import Roles, Zygote

STACK_BYTES = 256 * 2**20
"""Recursion through C code, such as a cached function's, takes half a kilobyte of stack a level."""

FIRST_UNUSED_UID = 1_000_000_000
"""User ids from here on belong to nobody."""

FIRST_HIGH_DESCRIPTOR = 20
"""The sandbox's own descriptors are from here on; what comes for a job lies below, what a job sees below 5."""


Entered = tuple[Confinement, int | None, int | None]
"""What is prepared for jobs, a /proc that shows their processes, and a pid namespace to make theirs in."""


class NotPossible(Exception):
    """This machine does not give the tier; the text says which step failed."""


def main(options: dict[str, Any], roles: Roles) -> None:
    """Enter the tier and serve jobs until the parent is gone.

    options: `{"tier": "full", "boxes": [folder, ...], "expose": [path, ...], "group": "plain"}`, and in the
    second stage `staged` and the paths of the `interpreter`.
    """
    if not options.get("staged"):
        _exec_with_stack(options)
    control = socket.socket(fileno=_move_high(os.dup(0)))
    preload()
    # The folder that they are loaded from is out of reach afterwards.
    loaded_roles = {name: roles[name] for name in roles if options["group"] != PLAIN or name in PLAIN_ROLES}
    _silence()
    _die_with(os.getppid())
    try:
        enter_tier = {"full": _enter_full, "container": _enter_container, "weak": _enter_weak}[options["tier"]]
        confinement, proc, pid_namespace = enter_tier(control, options)
        Zygote(control, confinement, loaded_roles, proc, pid_namespace).serve()
    except (NotPossible, OSError) as error:
        control.sendall(json.dumps({"failed": str(error)}).encode() + b"\n")
    except Exception:
        import traceback  # Nothing else here needs it.

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
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, but a program that writes too much has to end.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _die_with(parent: int) -> None:
    """Make this process die with the one that started it."""
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _enter_full(control: socket.socket, options: dict[str, Any]) -> Entered:
    _check_filter_possible()
    parent = os.getppid()
    paths = view.exposed_paths([*options["interpreter"], *options["expose"]])
    proc = _move_high(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    if os.geteuid() == 0 and _can_unshare(kernel.CLONE_NEWNS):
        # As root the view is built first: it may lead through folders that the unprivileged user could not enter.
        view.enter_root(view.build_root(paths))
        _become_user(FIRST_UNUSED_UID + os.getpid())
        _enter_namespaces(proc)
    else:
        _enter_namespaces(proc)
        view.enter_root(view.build_root(paths))
    _die_with(parent)  # The kernel forgets it when a process changes its user.
    kernel.set_host_name("sandbox")
    child = os.fork()  # The child is the first process of the new pid namespace.
    if child:
        control.close()
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    _die_with(0)
    inner_proc = view.open_proc()
    inner_proc = None if inner_proc is None else _move_high(inner_proc)
    pid_namespace = _move_high(os.open("self/ns/pid", os.O_RDONLY, dir_fd=proc))
    os.close(proc)
    kernel.drop_capability_bounds()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    rulesets = _make_rulesets([*map(view.inner_path, paths), *view.MADE_UP_PATHS], view.BOX_PARENT)
    confinement = Confinement("full", rulesets, box_links=view.temporary_links(paths), counts_tasks=True)
    return confinement, inner_proc, pid_namespace


def _enter_container(control: socket.socket, options: dict[str, Any]) -> Entered:
    _check_filter_possible()
    if landlock.version() == 0:
        raise NotPossible("Landlock: not in this kernel, or switched off")
    boxes = tuple(options["boxes"])
    paths = view.exposed_paths([*options["interpreter"], *options["expose"]])
    user = _unused_user(boxes, [*options["interpreter"], *view.loaded_libraries()]) if os.geteuid() == 0 else None
    proc = _move_high(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    rulesets = tuple(ruleset for box in boxes for ruleset in _make_rulesets(paths, box))
    return Confinement("container", rulesets, boxes=boxes, user=user, shared_user=os.geteuid() != 0), proc, None


def _enter_weak(control: socket.socket, options: dict[str, Any]) -> Entered:
    proc = None
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        proc = _move_high(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    return Confinement("weak", boxes=tuple(options["boxes"]), shared_user=os.geteuid() != 0), proc, None


def _check_filter_possible() -> None:
    if sys.platform != "linux":
        raise NotPossible(f"namespaces, Landlock and seccomp are Linux's, this is {sys.platform}")
    if not syscalls.is_supported():
        raise NotPossible("seccomp: the system calls of this architecture are not known here")


def _enter_namespaces(proc: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # Otherwise the kernel keeps the maps from one that changed its user.
    kernel.unshare(
        kernel.CLONE_NEWUSER
        | kernel.CLONE_NEWNS
        | kernel.CLONE_NEWPID
        | kernel.CLONE_NEWNET
        | kernel.CLONE_NEWIPC
        | kernel.CLONE_NEWUTS
        | kernel.CLONE_NEWCGROUP
    )
    _write(proc, "self/setgroups", "deny")
    _write(proc, "self/uid_map", f"1000 {uid} 1")
    _write(proc, "self/gid_map", f"1000 {gid} 1")


def _can_unshare(namespace: int) -> bool:
    try:
        kernel.unshare(namespace)
    except OSError:
        return False
    return True


def _become_user(uid: int) -> None:
    """Give up root for a user that nobody else is, so that limits on a user's tasks are this sandbox's alone."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _unused_user(boxes: tuple[str, ...], needed: list[str]) -> User | None:
    """Return a user that nobody else is; None where this root may not change its user.

    Jobs run as that user because limits on tasks do not bind root. The boxes become the user's, and stay open to root's
    group.
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
    if landlock.version() == 0:
        return ()
    rules = [(path, landlock.READ) for path in paths]
    rules += [(path, landlock.DEVICE) for path in view.DEVICES]
    ruleset = landlock.make_ruleset([*rules, (writable, landlock.all_rights())])
    return (_move_high(ruleset),)


def _move_high(descriptor: int) -> int:
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
