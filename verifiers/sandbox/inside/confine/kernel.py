"""Makes the kernel calls by which a process confines itself, if Python 3.11 has no function for them.

Every function raises OSError with the call's name if the kernel refuses. The functions work only on Linux, on x86-64
and 64-bit ARM, but the module can be imported anywhere.

A rule set of Landlock lists the folders that a process may still open, for any user. It is made once, and each job
binds itself to it. If the kernel supports it (ABI 4 and 6), the rule set also forbids TCP, signals to outside
processes, and abstract sockets. The seccomp filter forbids what a rule set does not cover: changes of modes, owners and
times, and `truncate` before ABI 3.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
CLONE_NAMESPACES = 0x7E020000
"""One namespace of each kind: mount, cgroup, UTS, IPC, user, pid, network."""

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME = 1, 2, 4, 8, 1024
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MS_RELATIME = 1 << 21
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38

_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID = 1, 2

_ZEROS = (ctypes.c_ulong(0),) * 3
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
    values = [call_number(name), *arguments]
    return [ctypes.c_long(value) if isinstance(value, int) else value for value in values]


def call(function: str, *arguments: Any) -> None:
    """Call a function of the C library, such as `unshare`. Arguments are ints, bytes, ctypes objects or None."""
    _checked(function, getattr(_libc(), function)(*arguments))


def prctl(option: int, value: int = 0) -> None:
    """Set a property of this process (prctl(2))."""
    call("prctl", option, ctypes.c_ulong(value), *_ZEROS)


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """Mount a file system, or change a mount (mount(2))."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _checked(f"mount {target}", _libc().mount(*encoded[:3], ctypes.c_ulong(flags), encoded[3]))


def make_read_only(target: str) -> None:
    """Make a mount and all mounts below it read-only. Needs Linux 5.12."""
    attributes = struct.pack("=4Q", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    system_call("mount_setattr", _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes, len(attributes))


def detach(target: str) -> None:
    """Unmount the target as soon as it is no longer in use."""
    _checked(f"umount {target}", _libc().umount2(os.fsencode(target), MNT_DETACH))


def pivot_into(new_root: str) -> None:
    """Make `new_root`, a mount, the root folder of this process, and detach the old root."""
    os.chdir(new_root)
    system_call("pivot_root", b".", b".")
    detach(".")
    os.chdir("/")


def drop_capability_bounds() -> None:
    """Ensure that programs started by this process or its children never gain a capability."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # The kernel has no further capability, or this process may drop none because it has none.
            return


def drop_capabilities_step() -> Callable[[], int]:
    """Return a call by which a process gives up all capabilities."""
    return call_step("capset", (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)())


def die_with_parent_step() -> Callable[[], int]:
    """Return a call after which a process is killed when its parent ends."""
    return step("prctl", PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), *_ZEROS)


def step(function: str, *arguments: Any) -> Callable[[], int]:
    """Return a prepared call of a function of the C library. Calling it runs no Python code."""
    return partial(getattr(_libc(), function), *arguments)


def call_step(name: str, *arguments: Any) -> Callable[[], int]:
    """Return a prepared `system_call`, like a `step`."""
    return step("syscall", *_syscall_arguments(name, arguments))


def fork() -> int:
    """Fork and return the child's id, or 0 in the child. Raises OSError if the kernel has no process left.

    `os.fork` is slower: it touches a hundred pages for processes with threads, and reseeds `random`.
    """
    return _checked("fork", _locked_libc().fork())


@cache
def _locked_libc() -> ctypes.PyDLL:
    """Return the C library, whose functions are called without releasing the interpreter lock."""
    return ctypes.PyDLL(None, use_errno=True)


EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_FIRST_RIGHTS = (1 << 13) - 1
_TCP = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3
"""Rights of Landlock (linux/landlock.h)."""
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_PATH_BENEATH = 1
_ASK_VERSION = 1

READ = EXECUTE | READ_FILE | READ_DIR
DEVICE = READ_FILE | WRITE_FILE | _IOCTL_DEVICE


def landlock_version() -> int:
    """Return the kernel's Landlock version (ABI), or 0 without Landlock."""
    try:
        return system_call("landlock_create_ruleset", None, 0, _ASK_VERSION)
    except OSError:
        return 0


def all_rights() -> int:
    """Return all rights that the kernel knows, which a program has in its working folder."""
    abi = landlock_version()
    rights = _FIRST_RIGHTS
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
        rights |= right if abi >= since else 0
    return rights


def guards_truncate() -> bool:
    """Return whether Landlock protects read-only files from `truncate`."""
    return landlock_version() >= 3


def make_ruleset(rules: Iterable[tuple[str, int]]) -> int:
    """Return a descriptor of a rule set that leaves a process only these rights. Missing paths are skipped."""
    abi = landlock_version()
    attributes = struct.pack("=Q", all_rights())
    if abi >= 4:
        attributes += struct.pack("=Q", _TCP)
    if abi >= 6:
        attributes += struct.pack("=Q", _ABSTRACT_SOCKETS_AND_SIGNALS)
    ruleset = system_call("landlock_create_ruleset", attributes, len(attributes), 0)
    for path, rights in rules:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            allowed = rights & all_rights() & (~0 if os.path.isdir(path) else _FILE_RIGHTS)
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, descriptor), 12)
            system_call("landlock_add_rule", ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(descriptor)
    return ruleset


def restrict_step(ruleset: int) -> Callable[[], int]:
    """Return a call that binds the calling process and its children to a rule set."""
    return call_step("landlock_restrict_self", ruleset, 0)


_ARM_NAMES, _X86_NAMES = ("aarch64", "arm64"), ("x86_64", "AMD64")
_machine = os.uname().machine
HAS_X32 = _machine in _X86_NAMES
"""Whether a high bit in the call number selects a second table of calls, the x32 ABI."""

AUDIT_ARCH = {**dict.fromkeys(_X86_NAMES, 0xC000003E), **dict.fromkeys(_ARM_NAMES, 0xC00000B7)}.get(_machine)
"""The constant of this architecture in seccomp filters (linux/audit.h), or None for other architectures."""


def _read_calls() -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return the call numbers of this architecture and the calls of each class, from `system_calls.txt`."""
    with open(os.path.join(os.path.dirname(__file__), "system_calls.txt"), encoding="ascii") as file:
        words = " ".join(line for line in file if not line.startswith("#")).split()
    numbers: dict[str, int] = {}
    classes: dict[str, list[str]] = {}
    calls: list[str] = []
    for word in words:
        if word.startswith("["):
            calls = classes[word.strip("[]")] = []
            continue
        name, _, text = word.partition(":")
        x86_64, _, arm = text.partition("/")
        calls.append(name)
        if AUDIT_ARCH is not None and (HAS_X32 or arm != "-"):
            numbers[name] = int(x86_64 if HAS_X32 else arm or x86_64)
    return numbers, classes


CALL_NUMBERS, CALL_CLASSES = _read_calls()


def call_number(name: str) -> int:
    """Return a call's number on this machine. Raises OSError if it is unknown or missing on this architecture."""
    if name not in CALL_NUMBERS:
        raise OSError(f"{_machine} has no system call {name} that is known here")
    return CALL_NUMBERS[name]
