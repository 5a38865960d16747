"""Locks a process in before it runs an untrusted program, and watches it.

    zygote       a fresh interpreter that forks one process for every job and reports what became of it
    confinement  the tiers: what a zygote, and then each forked process, gives up before a program runs
    supervise    ends the processes of a job at their limits
    view         the part of the file system that a program sees
    seccomp      the system calls that a program may make, by the numbers in system_calls.txt
    kernel       the kernel calls that Python has no function for, Landlock among them

`sandbox/pool.py` starts the zygote. What a forked process then does is handed in: see `roles`.
"""
