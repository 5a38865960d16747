"""Landlock: the folders that a process may still open, whatever its user id would allow.

A rule set is made once and each job binds itself to it. It also forbids TCP, signals to processes outside and abstract
sockets, where the kernel knows these (ABI 4 and 6). Landlock does not guard modes, owners and times, nor `truncate`
before ABI 3: the seccomp filter does.
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
    """Return the kernel's ABI version; 0 where it has no Landlock."""
    try:
        return kernel.system_call("landlock_create_ruleset", None, 0, _ASK_VERSION)
    except OSError:
        return 0


def all_rights() -> int:
    """Return all rights that the kernel knows, which a program has in its working folder."""
    abi = version()
    rights = _FIRST_RIGHTS
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
        rights |= right if abi >= since else 0
    return rights


def guards_truncate() -> bool:
    """Return whether Landlock keeps programs from truncating files that they may not write."""
    return version() >= 3


def make_ruleset(rules: Iterable[tuple[str, int]]) -> int:
    """Return a file descriptor of a rule set that leaves a process only these rights, as pairs of path and rights.

    Paths that do not exist are passed over.
    """
    abi = version()
    attributes = struct.pack("=Q", all_rights())
    if abi >= 4:
        attributes += struct.pack("=Q", _TCP)
    if abi >= 6:
        attributes += struct.pack("=Q", _ABSTRACT_SOCKETS_AND_SIGNALS)
    ruleset = kernel.system_call("landlock_create_ruleset", attributes, len(attributes), 0)
    for path, rights in rules:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            allowed = rights & all_rights() & (~0 if os.path.isdir(path) else _FILE_RIGHTS)
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, descriptor), 12)
            kernel.system_call("landlock_add_rule", ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(descriptor)
    return ruleset


def restrict_step(ruleset: int) -> Callable[[], int]:
    """Return a call that binds the process that makes it, and all it starts, to the rule set."""
    return kernel.call_step("landlock_restrict_self", ruleset, 0)
