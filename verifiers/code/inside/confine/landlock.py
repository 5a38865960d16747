"""Landlock: which folders a process may still open, whatever its user id would allow.

A rule set is made once and each job binds itself to it. It also forbids TCP, signals to processes outside and abstract
sockets, where the kernel knows these (ABI 4 and 6). Not covered by Landlock, and left to the seccomp filter: modes,
owners, times, and `truncate` before ABI 3.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterable

from . import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_FIRST_RIGHTS = (1 << 13) - 1
_TCP = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_PATH_BENEATH = 1
_ASK_VERSION = 1

READ = EXECUTE | READ_FILE | READ_DIR
DEVICE = READ_FILE | WRITE_FILE | _IOCTL_DEVICE


def version() -> int:
    """The kernel's ABI version; 0 where it has no Landlock."""
    try:
        return kernel.system_call("landlock_create_ruleset", None, 0, _ASK_VERSION)
    except OSError:
        return 0


def everything() -> int:
    """All rights that the kernel knows: what the owner of a working folder gets."""
    found = version()
    rights = _FIRST_RIGHTS
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
        rights |= right if found >= since else 0
    return rights


def guards_truncate() -> bool:
    return version() >= 3


def ruleset(rules: Iterable[tuple[str, int]]) -> int:
    """A file descriptor of a rule set: nothing but (path, rights) is left. Paths that do not exist are passed over."""
    found = version()
    attributes = struct.pack("=Q", everything())
    if found >= 4:
        attributes += struct.pack("=Q", _TCP)
    if found >= 6:
        attributes += struct.pack("=Q", _ABSTRACT_SOCKETS_AND_SIGNALS)
    handle = kernel.system_call("landlock_create_ruleset", attributes, len(attributes), 0)
    for path, rights in rules:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            allowed = rights & everything() & (~0 if os.path.isdir(path) else _FILE_RIGHTS)
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, place), 12)
            kernel.system_call("landlock_add_rule", handle, _PATH_BENEATH, rule, 0)
        finally:
            os.close(place)
    return handle


def restrict_step(handle: int) -> Callable[[], int]:
    """Binds the process that makes it, and all it starts, to the rule set."""
    return kernel.call_step("landlock_restrict_self", handle, 0)
