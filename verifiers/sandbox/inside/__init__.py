"""Runs in the sandbox's processes: standard library only, relative imports only, loaded as one folder.

    confine        locks a process in and watches it; the zygote that every job is forked from
    preload        the modules that are loaded before the fork
    roles          what a forked process can be asked to do
    program        the program under test as a module
    test_code      reads, runs and reports test code
    test_session   tests in one process, the solution in another; only test code that is no plain data needs it
    wire           how values cross the border between processes

Each module that is loaded here, and each object that a job touches, costs every job time.
"""
