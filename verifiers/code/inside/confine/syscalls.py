"""System call numbers of the two architectures that the sandbox knows: x86-64 and 64-bit ARM.

The table has the calls that the sandbox makes itself or names in its filter. None says that an architecture does not
have the call.
"""

from __future__ import annotations

import platform

_X86_64, _AARCH64 = 0, 1
_ARCHITECTURES = {"x86_64": _X86_64, "AMD64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}
_AUDIT_ARCH = (0xC000003E, 0xC00000B7)

_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "access": (21, None),
    "alarm": (37, None),
    "arch_prctl": (158, None),
    "brk": (12, 214),
    "capset": (126, 91),
    "chdir": (80, 49),
    "chmod": (90, None),
    "chown": (92, None),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "clone": (56, 220),
    "clone3": (435, 435),
    "close": (3, 57),
    "close_range": (436, 436),
    "copy_file_range": (326, 285),
    "creat": (85, None),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "epoll_wait": (232, None),
    "eventfd": (284, None),
    "eventfd2": (290, 19),
    "execve": (59, 221),
    "execveat": (322, 281),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "fadvise64": (221, 223),
    "fallocate": (285, 47),
    "fchdir": (81, 50),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "fdatasync": (75, 83),
    "flock": (73, 32),
    "fork": (57, None),
    "fstat": (5, 80),
    "fstatfs": (138, 44),
    "fsync": (74, 82),
    "ftruncate": (77, 46),
    "futex": (202, 98),
    "futex_waitv": (449, 449),
    "futimesat": (261, None),
    "get_mempolicy": (239, 236),
    "get_robust_list": (274, 100),
    "getcpu": (309, 168),
    "getcwd": (79, 17),
    "getdents": (78, None),
    "getdents64": (217, 61),
    "getegid": (108, 177),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getgroups": (115, 158),
    "getitimer": (36, 102),
    "getpeername": (52, 205),
    "getpgid": (121, 155),
    "getpgrp": (111, None),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "getpriority": (140, 141),
    "getrandom": (318, 278),
    "getresgid": (120, 150),
    "getresuid": (118, 148),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "getsid": (124, 156),
    "getsockname": (51, 204),
    "getsockopt": (55, 209),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "getuid": (102, 174),
    "ioctl": (16, 29),
    "kill": (62, 129),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "lchown": (94, None),
    "link": (86, None),
    "linkat": (265, 37),
    "lseek": (8, 62),
    "lstat": (6, None),
    "madvise": (28, 233),
    "membarrier": (324, 283),
    "mincore": (27, 232),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mlock": (149, 228),
    "mmap": (9, 222),
    "mount_setattr": (442, 442),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "msync": (26, 227),
    "munlock": (150, 229),
    "munmap": (11, 215),
    "nanosleep": (35, 101),
    "newfstatat": (262, 79),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "pause": (34, None),
    "pipe": (22, None),
    "pipe2": (293, 59),
    "pivot_root": (155, 41),
    "poll": (7, None),
    "ppoll": (271, 73),
    "prctl": (157, 167),
    "pread64": (17, 67),
    "preadv": (295, 69),
    "preadv2": (327, 286),
    "prlimit64": (302, 261),
    "pselect6": (270, 72),
    "pwrite64": (18, 68),
    "pwritev": (296, 70),
    "pwritev2": (328, 287),
    "read": (0, 63),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "readv": (19, 65),
    "recvfrom": (45, 207),
    "recvmsg": (47, 212),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "restart_syscall": (219, 128),
    "rmdir": (84, None),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigpending": (127, 136),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "sched_getaffinity": (204, 123),
    "sched_getattr": (315, 275),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "sched_rr_get_interval": (148, 127),
    "sched_setaffinity": (203, 122),
    "sched_yield": (24, 124),
    "seccomp": (317, 277),
    "select": (23, None),
    "sendfile": (40, 71),
    "sendto": (44, 206),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "setitimer": (38, 103),
    "setpgid": (109, 154),
    "setrlimit": (160, 164),
    "setsid": (112, 157),
    "shutdown": (48, 210),
    "sigaltstack": (131, 132),
    "signalfd": (282, None),
    "signalfd4": (289, 74),
    "socketpair": (53, 199),
    "stat": (4, None),
    "statfs": (137, 43),
    "statx": (332, 291),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "sysinfo": (99, 179),
    "tgkill": (234, 131),
    "time": (201, None),
    "timer_create": (222, 107),
    "timer_delete": (226, 111),
    "timer_getoverrun": (225, 109),
    "timer_gettime": (224, 108),
    "timer_settime": (223, 110),
    "timerfd_create": (283, 85),
    "timerfd_gettime": (287, 87),
    "timerfd_settime": (286, 86),
    "times": (100, 153),
    "tkill": (200, 130),
    "truncate": (76, 45),
    "umask": (95, 166),
    "uname": (63, 160),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vfork": (58, None),
    "wait4": (61, 260),
    "waitid": (247, 95),
    "write": (1, 64),
    "writev": (20, 66),
}

_architecture = _ARCHITECTURES.get(platform.machine())


def is_supported() -> bool:
    """Return whether this machine's architecture is one of the two."""
    return _architecture is not None


def audit_arch() -> int:
    """Return the constant by which a seccomp filter knows the architecture (linux/audit.h)."""
    return _AUDIT_ARCH[_known_architecture()]


def has_x32() -> bool:
    """Return whether a second table of calls, the x32 ABI, can be reached with a high bit in the number."""
    return _known_architecture() == _X86_64


def call_names() -> list[str]:
    """Return the names of all calls in the table."""
    return list(_NUMBERS)


def call_number(name: str) -> int | None:
    """Return the call's number here; None where this architecture does not have it."""
    return _NUMBERS[name][_known_architecture()]


def required_call_number(name: str) -> int:
    """Return the call's number here. Raises OSError where this architecture does not have it."""
    number_here = call_number(name)
    if number_here is None:
        raise OSError(f"this architecture has no {name}")
    return number_here


def _known_architecture() -> int:
    if _architecture is None:
        raise OSError(f"system calls of {platform.machine()} are not known here")
    return _architecture
