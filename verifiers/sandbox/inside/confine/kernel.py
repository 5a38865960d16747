"""The kernel calls by which a process locks itself in, as far as Python 3.11 has no function for them.

Every function raises OSError with the call's name where the kernel says no. They work on Linux only, and the module can
be imported anywhere.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from . import syscalls

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME = 1, 2, 4, 8, 1024
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38

_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID = 1, 2

_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(name: str, result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def system_call(name: str, *arguments: Any) -> int:
    """Make a call that the C library has no function for. Arguments are ints, bytes, ctypes objects or None."""
    return _checked(name, _libc().syscall(*_syscall_arguments(name, arguments)))


def _syscall_arguments(name: str, arguments: Sequence[Any]) -> list[Any]:
    values = [syscalls.required_call_number(name), *arguments]
    return [ctypes.c_long(value) if isinstance(value, int) else value for value in values]


def prctl(option: int, value: int = 0) -> int:
    """Set or ask for one property of this process (prctl(2))."""
    zero = ctypes.c_ulong(0)
    return _checked("prctl", _libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero))


def unshare(flags: int) -> None:
    """Move this process, or the next one it forks, into new namespaces (unshare(2))."""
    _checked("unshare", _libc().unshare(flags))


def setns(descriptor: int, kind: int) -> None:
    """Enter the namespace of a descriptor (setns(2))."""
    _checked("setns", _libc().setns(descriptor, kind))


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """Mount a file system, or change a mount (mount(2))."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = _libc().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _checked(f"mount {target}", result)


def make_read_only(target: str) -> None:
    """Make a mount and all that are mounted below it read-only. Needs Linux 5.12."""
    attributes = struct.pack("=4Q", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    system_call("mount_setattr", _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes, len(attributes))


def detach(target: str) -> None:
    """Unmount as soon as nobody uses it any more."""
    _checked(f"umount {target}", _libc().umount2(os.fsencode(target), MNT_DETACH))


def pivot_into(new_root: str) -> None:
    """Make `new_root`, a mount, the root folder of this process, and let go of the old one."""
    os.chdir(new_root)
    system_call("pivot_root", b".", b".")
    detach(".")
    os.chdir("/")


def set_host_name(name: str) -> None:
    """Set the host name of this UTS namespace."""
    encoded = name.encode()
    _checked("sethostname", _libc().sethostname(encoded, ctypes.c_size_t(len(encoded))))


def drop_capability_bounds() -> None:
    """Make sure that no program which this process or its children start ever gains a capability."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # The kernel knows no more of them, or this process lacks the right to drop any: it holds none.
            return


def drop_capabilities_step() -> Callable[[], int]:
    """Return a call by which a process gives up all capabilities."""
    return call_step("capset", (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)())


def die_with_parent_step() -> Callable[[], int]:
    """Return a call after which a process is killed when its parent ends."""
    zero = ctypes.c_ulong(0)
    return step("prctl", PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), zero, zero, zero)


def step(function: str, *arguments: Any) -> Callable[[], int]:
    """Return a function of the C library with its arguments; calling it leaves nothing to do in Python."""
    return partial(getattr(_libc(), function), *arguments)


def call_step(name: str, *arguments: Any) -> Callable[[], int]:
    """Return `system_call` with its arguments, prepared like a `step`."""
    return step("syscall", *_syscall_arguments(name, arguments))


def fork() -> int:
    """Fork without what Python does around it; returns 0 in the child. OSError where the kernel has no process to give.

    What Python does is made for processes with several threads, which this one is not, and touches a hundred pages.
    It would also seed `random` anew, which does not happen here.
    """
    return _checked("fork", _locked_libc().fork())


@cache
def _locked_libc() -> ctypes.PyDLL:
    """Return the C library, called without letting go of the interpreter."""
    return ctypes.PyDLL(None, use_errno=True)
