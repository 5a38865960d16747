"""System call numbers of the two architectures that the sandbox knows: x86-64 and 64-bit ARM.

The table has the calls that the sandbox makes itself or names in its filter. None says that an architecture does not
have the call.
"""

from __future__ import annotations

import os

_X86_64, _AARCH64 = 0, 1
_ARCHITECTURES = {"x86_64": _X86_64, "AMD64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}
_AUDIT_ARCH = (0xC000003E, 0xC00000B7)

_TABLE = """
access 21/-                     getpgrp 111/-                   renameat2 316/276
alarm 37/-                      getpid 39/172                   restart_syscall 219/128
arch_prctl 158/-                getppid 110/173                 rmdir 84/-
brk 12/214                      getpriority 140/141             rseq 334/293
capset 126/91                   getrandom 318/278               rt_sigaction 13/134
chdir 80/49                     getresgid 120/150               rt_sigpending 127/136
chmod 90/-                      getresuid 118/148               rt_sigprocmask 14/135
chown 92/-                      getrlimit 97/163                rt_sigreturn 15/139
clock_getres 229/114            getrusage 98/165                rt_sigsuspend 130/133
clock_gettime 228/113           getsid 124/156                  rt_sigtimedwait 128/137
clock_nanosleep 230/115         getsockname 51/204              sched_get_priority_max 146/125
clone 56/220                    getsockopt 55/209               sched_get_priority_min 147/126
clone3 435                      gettid 186/178                  sched_getaffinity 204/123
close 3/57                      gettimeofday 96/169             sched_getattr 315/275
close_range 436                 getuid 102/174                  sched_getparam 143/121
copy_file_range 326/285         ioctl 16/29                     sched_getscheduler 145/120
creat 85/-                      kill 62/129                     sched_rr_get_interval 148/127
dup 32/23                       landlock_add_rule 445           sched_setaffinity 203/122
dup2 33/-                       landlock_create_ruleset 444     sched_yield 24/124
dup3 292/24                     landlock_restrict_self 446      seccomp 317/277
epoll_create 213/-              lchown 94/-                     select 23/-
epoll_create1 291/20            link 86/-                       sendfile 40/71
epoll_ctl 233/21                linkat 265/37                   sendto 44/206
epoll_pwait 281/22              lseek 8/62                      set_robust_list 273/99
epoll_pwait2 441                lstat 6/-                       set_tid_address 218/96
epoll_wait 232/-                madvise 28/233                  setitimer 38/103
eventfd 284/-                   membarrier 324/283              setpgid 109/154
eventfd2 290/19                 mincore 27/232                  setrlimit 160/164
execve 59/221                   mkdir 83/-                      setsid 112/157
execveat 322/281                mkdirat 258/34                  shutdown 48/210
exit 60/93                      mlock 149/228                   sigaltstack 131/132
exit_group 231/94               mmap 9/222                      signalfd 282/-
faccessat 269/48                mount_setattr 442               signalfd4 289/74
faccessat2 439                  mprotect 10/226                 socketpair 53/199
fadvise64 221/223               mremap 25/216                   stat 4/-
fallocate 285/47                msync 26/227                    statfs 137/43
fchdir 81/50                    munlock 150/229                 statx 332/291
fchmod 91/52                    munmap 11/215                   symlink 88/-
fchmodat 268/53                 nanosleep 35/101                symlinkat 266/36
fchmodat2 452                   newfstatat 262/79               sysinfo 99/179
fchown 93/55                    open 2/-                        tgkill 234/131
fchownat 260/54                 openat 257/56                   time 201/-
fcntl 72/25                     openat2 437                     timer_create 222/107
fdatasync 75/83                 pause 34/-                      timer_delete 226/111
flock 73/32                     pipe 22/-                       timer_getoverrun 225/109
fork 57/-                       pipe2 293/59                    timer_gettime 224/108
fstat 5/80                      pivot_root 155/41               timer_settime 223/110
fstatfs 138/44                  poll 7/-                        timerfd_create 283/85
fsync 74/82                     ppoll 271/73                    timerfd_gettime 287/87
ftruncate 77/46                 prctl 157/167                   timerfd_settime 286/86
futex 202/98                    pread64 17/67                   times 100/153
futex_waitv 449                 preadv 295/69                   tkill 200/130
futimesat 261/-                 preadv2 327/286                 truncate 76/45
get_mempolicy 239/236           prlimit64 302/261               umask 95/166
get_robust_list 274/100         pselect6 270/72                 uname 63/160
getcpu 309/168                  pwrite64 18/68                  unlink 87/-
getcwd 79/17                    pwritev 296/70                  unlinkat 263/35
getdents 78/-                   pwritev2 328/287                utime 132/-
getdents64 217/61               read 0/63                       utimensat 280/88
getegid 108/177                 readlink 89/-                   utimes 235/-
geteuid 107/175                 readlinkat 267/78               vfork 58/-
getgid 104/176                  readv 19/65                     wait4 61/260
getgroups 115/158               recvfrom 45/207                 waitid 247/95
getitimer 36/102                recvmsg 47/212                  write 1/64
getpeername 52/205              rename 82/-                     writev 20/66
getpgid 121/155                 renameat 264/38
"""
"""Each call with its number on x86-64 and on ARM, or the one number that both have; "-" where ARM lacks the call."""


def _read_numbers(text: str) -> tuple[int, int | None]:
    x86_64, _, aarch64 = text.partition("/")
    return int(x86_64), None if aarch64 == "-" else int(aarch64 or x86_64)


_WORDS = _TABLE.split()
_NUMBERS = {name: _read_numbers(text) for name, text in zip(_WORDS[::2], _WORDS[1::2], strict=True)}

_architecture = _ARCHITECTURES.get(os.uname().machine)


def is_supported() -> bool:
    """Return whether this machine's architecture is one of the two."""
    return _architecture is not None


def audit_arch() -> int:
    """Return the constant by which a seccomp filter knows the architecture (linux/audit.h)."""
    return _AUDIT_ARCH[_known_architecture()]


def has_x32() -> bool:
    """Return whether a second table of calls, the x32 ABI, can be reached with a high bit in the number."""
    return _known_architecture() == _X86_64


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
        raise OSError(f"system calls of {os.uname().machine} are not known here")
    return _architecture
