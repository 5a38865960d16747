"""What Python 3.11 has no function for: the kernel calls by which a process locks itself in.

Every function raises OSError with the call's name where the kernel says no. Linux only; importing it works anywhere.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Callable
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
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def system_call(name: str, *arguments: Any) -> int:
    """A call that the C library has no function for. Arguments: ints, bytes, ctypes objects or None."""
    long_arguments = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(name, _libc().syscall(ctypes.c_long(syscalls.needed(name)), *long_arguments))


def prctl(option: int, value: int = 0) -> int:
    zero = ctypes.c_ulong(0)
    return _checked("prctl", _libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero))


def unshare(flags: int) -> None:
    _checked("unshare", _libc().unshare(flags))


def setns(descriptor: int, kind: int) -> None:
    _checked("setns", _libc().setns(descriptor, kind))


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = _libc().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _checked(f"mount {target}", result)


def make_read_only(target: str) -> None:
    """A mount and all that are mounted below it. Linux 5.12."""
    attributes = struct.pack("=4Q", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    system_call("mount_setattr", _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes, len(attributes))


def detach(target: str) -> None:
    _checked(f"umount {target}", _libc().umount2(os.fsencode(target), MNT_DETACH))


def pivot_into(new_root: str) -> None:
    """Make `new_root`, a mount, the root folder of this process, and let go of the old one."""
    os.chdir(new_root)
    system_call("pivot_root", b".", b".")
    detach(".")
    os.chdir("/")


def set_host_name(name: str) -> None:
    encoded = name.encode()
    _checked("sethostname", _libc().sethostname(encoded, ctypes.c_size_t(len(encoded))))


def drop_capability_bounds() -> None:
    """No program that this process or its children start can ever gain a capability."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # the kernel knows no more of them, or this process may not: then it has none to lose
            return


def drop_capabilities() -> None:
    if drop_capabilities_step()() != 0:
        raise OSError("capset failed")


def drop_capabilities_step() -> Callable[[], int]:
    return call_step("capset", (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)())


def die_with_parent_steps() -> list[Callable[[], int]]:
    zero = ctypes.c_ulong(0)
    return [step("prctl", PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), zero, zero, zero)]


def step(function: str, *arguments: Any) -> Callable[[], int]:
    """A function of the C library with its arguments, ready to be called without anything left to do in Python."""
    return partial(getattr(_libc(), function), *arguments)


def call_step(name: str, *arguments: Any) -> Callable[[], int]:
    """As `system_call`, prepared."""
    given = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return step("syscall", ctypes.c_long(syscalls.needed(name)), *given)


def fork() -> int:
    """fork(2) without what Python does around it: 0 in the child. OSError where the kernel has no process to give.

    What Python does is made for processes with several threads, of which this one has none, and touches a hundred
    pages. `random` is therefore not seeded anew.
    """
    return _checked("fork", _locked_libc().fork())


@cache
def _locked_libc() -> ctypes.PyDLL:
    """The C library, called without letting go of the interpreter."""
    return ctypes.PyDLL(None, use_errno=True)
