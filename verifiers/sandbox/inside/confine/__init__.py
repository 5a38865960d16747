"""How a process is locked in before it runs a program that nobody has read, and how it is watched.

    start        makes a zygote of a fresh interpreter: large stack, namespaces, Landlock
    zygote       forks one process for every job and reports what became of it
    preload      the modules that are loaded before the fork
    confinement  what a forked process gives up before it runs a program
    supervise    ends the processes of a job at their limits
    view         the part of the file system that a program sees
    seccomp      the system calls that a program may make, by the numbers in syscalls
    landlock     the folders that a program may open
    kernel       the kernel calls that Python has no function for
    cleaning     empties a folder that a program has filled

`sandbox/seat.py` starts the zygote. What a forked process then does is handed in: see `roles`.
"""
