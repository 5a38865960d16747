"""Confines a process before it runs an untrusted program, and supervises it.

    zygote       a fresh interpreter that forks one process for every job and reports how it ended
    confinement  the tiers: what a zygote, and then each forked process, gives up before a program runs
    supervise    ends the processes of a job at their limits
    view         the part of the file system that a program sees
    seccomp      the system calls that a program may make, by the numbers in system_calls.txt
    kernel       kernel calls that Python has no function for, such as Landlock's

`sandbox/pool.py` starts the zygote. The work of a forked process is defined in `roles`.
"""
