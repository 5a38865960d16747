"""Holds the code that runs inside the sandbox's processes. It uses only the standard library and relative imports.

    confine        confines and supervises processes, and forks one for each job (the zygote)
    preload        modules that are loaded before the fork
    roles          the work that a forked process can be given
    program        the program under test as a module
    test_code      reads test code, runs it and reports the outcomes
    test_session   runs tests in one process and the solution in another, for test code that is not plain data
    wire           encodes values that pass between processes

Each module that is loaded here, and each object that a job touches, makes every job slower.
"""
