"""Limits the system calls that a sandboxed program may make. All others fail with EPERM or ENOSYS.

This is an allowlist, so a call that a later kernel adds is denied from the start. Among the denied calls are sockets
(`socketpair` works, because asyncio needs it), ptrace and reading other processes' memory, SysV IPC and message queues,
keyrings, io_uring, memfd_create, userfaultfd, bpf, perf events, mounting, namespaces and pidfds. All programs may start
threads. Only native jobs, which run a command such as a compiler or a compiled program, may call `fork` and `execve`.
`kill` reaches only the process itself; native jobs in the tier `full` may signal every process that they see.

The filter is classic BPF, see seccomp(2). Calls that are allowed with all arguments cost no time, because the kernel
runs the filter only for the other calls.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Mapping, Sequence

from . import kernel

FIRST_NEW_CALL = 424
"""The first call number that all architectures share. Programs expect ENOSYS for later calls that are missing."""

_AF_UNIX = 1
_CLONE_THREAD = 0x00010000
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Allowed: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX. Not TIOCSTI, which types into a terminal."""
_FCNTLS_DENIED = (8, 10, 15, 1024, 1025, 1026, 1036, 1038)
"""Commands that signal any process of the user (SETOWN, SETSIG), lease or watch files, or write to inodes (RW_HINT)."""
_FCNTL_LOCKS = (5, 6, 7, 36, 37, 38)
"""GETLK, SETLK and variants, which succeed and do nothing, since other jobs would see a lock on a shared file."""
_PRCTLS = (3, 15, 16, 21, 23, 38, 39, 40, 41, 42, 0x53564D41)
"""Allowed: options that query, name a thread or memory, set no_new_privs (already set), or choose huge pages."""

_EVICTIONS = (20, 21)
"""MADV_COLD and MADV_PAGEOUT. A job could send a message to a later job by removing pages from the page cache. For the
same reason `posix_fadvise` does nothing, and `mincore` and reading with flags (RWF_NOWAIT) are denied."""

_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
"""Results of a filter (linux/seccomp.h)."""
_LOAD, _JUMP, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
"""Operations of classic BPF (linux/bpf_common.h)."""
_FARTHEST = 255
"""Maximum number of instructions that a conditional jump can skip."""

_NUMBER_AT, _ARCH_AT = 0, 4
"""Positions of the call number and the architecture in the filter's input."""
_X32_BIT = 0x40000000
_SECCOMP_SET_MODE_FILTER = 1

INSTRUCTION_BYTES = 8

INSTALLER_PID = 0x7FFFFFF0
"""A placeholder in a filter for the id of the process that will install it. No process has this id."""

Instruction = tuple[int, int, int, int]
"""An operation, the jump if it is true, the jump if it is false, and the operand."""


def _argument(index: int, high: bool = False) -> int:
    """Return the position of the low or the high half of a call's argument."""
    return 16 + 8 * index + (4 if high else 0)


def _returning(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)


_PERMITTED, _FORBIDDEN, _MISSING = (
    _returning(_ALLOW),
    _returning(_ERRNO | errno.EPERM),
    _returning(_ERRNO | errno.ENOSYS),
)
_PRETENDED = _returning(_ERRNO)
"""The call is skipped and returns 0."""


def _allow_one_of(
    argument: int, values: tuple[int, ...], denied: Instruction = _FORBIDDEN, permitted: Instruction = _PERMITTED
) -> list[Instruction]:
    """Return code that allows a call if the low half of an argument is one of `values`."""
    return [(_LOAD, 0, 0, _argument(argument)), *_jumps_past_next(values), denied, permitted]


def _allow_fcntl() -> list[Instruction]:
    """Return code that allows all commands except those denied, and skips those that lock."""
    denied = _jumps_past_next(_FCNTLS_DENIED)
    to_last = len(_FCNTL_LOCKS) + len(denied) + 1
    locks = [(_EQUAL, to_last - index, 0, command) for index, command in enumerate(_FCNTL_LOCKS)]
    return [(_LOAD, 0, 0, _argument(1)), *locks, *denied, _PERMITTED, _FORBIDDEN, _PRETENDED]


def _jumps_past_next(values: tuple[int, ...]) -> list[Instruction]:
    """Return comparisons with each value. If one is equal, the instruction after them is skipped."""
    return [(_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]


def _allow_null(argument: int, otherwise: Instruction) -> list[Instruction]:
    """Return code that allows a call if one of its arguments is a null pointer."""
    low, high = _argument(argument), _argument(argument, high=True)
    return [(_LOAD, 0, 0, low), (_EQUAL, 0, 3, 0), (_LOAD, 0, 0, high), (_EQUAL, 0, 1, 0), _PERMITTED, otherwise]


def _allow_threads(native: bool) -> list[Instruction]:
    """Return code that lets `clone` make threads, and processes only for native programs, but never namespaces."""
    flags = (_LOAD, 0, 0, _argument(0))
    no_namespaces = (_ANY_BIT, 1, 0, kernel.CLONE_NAMESPACES)
    if native:
        return [flags, no_namespaces, _PERMITTED, _FORBIDDEN]
    return [flags, (_ANY_BIT, 2, 0, kernel.CLONE_NAMESPACES), (_ANY_BIT, 0, 1, _CLONE_THREAD), _PERMITTED, _FORBIDDEN]


def assemble(pid: int, native: bool = False, alone: bool = False, truncate: bool = True) -> bytes:
    """Return the code of a filter for the process with id `pid` in its own namespace, or `INSTALLER_PID`.

    native: whether the program may start other programs. alone: whether namespaces hide all other processes and files.
    Then native programs may signal all processes they see, and all programs may change modes, owners and times.
    truncate: whether the filter may allow `truncate`, because Landlock guards it.
    """
    signals = [_PERMITTED] if native and alone else _allow_one_of(0, (pid,))
    conditional: dict[str, list[Instruction]] = {
        "kill": signals,
        "tgkill": signals,
        "tkill": [_PERMITTED if native and alone else _FORBIDDEN],
        "clone": _allow_threads(native),
        "fcntl": _allow_fcntl(),
        # Choosing cores is left to the machine. For locks see `_FCNTL_LOCKS`.
        "flock": [_PRETENDED],
        # Files seem to have no extended attributes, which `shutil.copy2` reads.
        **{name: [_PRETENDED] for name in ("flistxattr", "listxattr", "llistxattr")},
        "sched_setaffinity": [_PRETENDED],
        "fadvise64": [_PRETENDED],
        "madvise": _allow_one_of(2, _EVICTIONS, _PERMITTED, _FORBIDDEN),
        **dict.fromkeys(("preadv2", "pwritev2"), _allow_one_of(5, (0,), _returning(_ERRNO | errno.EOPNOTSUPP))),
        "ioctl": _allow_one_of(1, _IOCTLS, _returning(_ERRNO | errno.ENOTTY)),
        "prctl": _allow_one_of(0, _PRCTLS),
        "setrlimit": [_PRETENDED],
        "prlimit64": _allow_null(2, _PRETENDED),
        "socketpair": _allow_one_of(0, (_AF_UNIX,)),
        "sendto": _allow_null(4, _FORBIDDEN),
        "truncate": [_PERMITTED if truncate else _FORBIDDEN],
        **{name: [_MISSING] for name in kernel.CALL_CLASSES["absent"]},
        **{name: [_PERMITTED if alone else _PRETENDED] for name in kernel.CALL_CLASSES["ownership"]},
    }
    classes = ["allowed", *(["native"] if native else []), *(["groups"] if native and alone else [])]
    blocks = {**{name: [_PERMITTED] for each in classes for name in kernel.CALL_CLASSES[each]}, **conditional}
    code: list[Instruction] = [(_LOAD, 0, 0, _ARCH_AT), (_EQUAL, 1, 0, kernel.AUDIT_ARCH or 0), _returning(_KILL)]
    code.append((_LOAD, 0, 0, _NUMBER_AT))
    code += _search(_intervals(blocks))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _intervals(blocks: Mapping[str, list[Instruction]]) -> list[tuple[int, list[Instruction]]]:
    """Return the first call number of each interval and the block of code that decides its calls."""
    block_of = {kernel.CALL_NUMBERS[name]: block for name, block in blocks.items() if name in kernel.CALL_NUMBERS}
    intervals: list[tuple[int, list[Instruction]]] = []
    for call in range(max(*block_of, FIRST_NEW_CALL) + 2):
        block = block_of.get(call, [_FORBIDDEN if call < FIRST_NEW_CALL else _MISSING])
        if not intervals or intervals[-1][1] != block:
            intervals.append((call, block))
    if kernel.HAS_X32:
        intervals.append((_X32_BIT, [_FORBIDDEN]))
    return intervals


def _search(intervals: Sequence[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Return code that finds the interval of a call number by bisection.

    The kernel runs this code once for each call number whenever a job installs the filter, so speed matters.
    """
    if len(intervals) == 1:
        return intervals[0][1]
    middle = len(intervals) // 2
    below, above = _search(intervals[:middle]), _search(intervals[middle:])
    first = intervals[middle][0]
    if len(below) <= _FARTHEST:
        return [(_AT_LEAST, len(below), 0, first), *below, *above]
    return [(_AT_LEAST, 0, 1, first), (_JUMP, 0, 0, len(below)), *below, *above]


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class Filter:
    """A filter, ready to be installed by one process."""

    def __init__(self, code: bytes) -> None:
        self._code = ctypes.create_string_buffer(code, len(code))
        self._described = _FilterProgram(len(code) // INSTRUCTION_BYTES, ctypes.addressof(self._code))
        operands = range(INSTRUCTION_BYTES - 4, len(code), INSTRUCTION_BYTES)
        self._pid_offsets = [start for start in operands if struct.unpack_from("=I", code, start)[0] == INSTALLER_PID]
        self._call = kernel.call_step("seccomp", _SECCOMP_SET_MODE_FILTER, 0, ctypes.byref(self._described))

    def install(self) -> int:
        """Bind this process and all its children to the filter for good. Return 0 on success. Needs no_new_privs."""
        if self._pid_offsets:
            pid = os.getpid()
            for offset in self._pid_offsets:
                struct.pack_into("=I", self._code, offset, pid)
        return self._call()
