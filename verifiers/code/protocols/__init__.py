"""Runs a program on its tests.

stdio          programs that read stdin and write stdout; checkers, interactors and the exit codes of testlib
python_tests   calls of Python functions, and test code in Python
native_tests   calls of functions in other languages, and test programs that the solution is inserted into
"""
