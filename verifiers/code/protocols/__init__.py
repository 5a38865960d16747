"""Runs a program on its tests.

stdio          programs that read stdin and write stdout; checkers, interactors and the exit codes of testlib
python_tests   calls of Python functions, and test code in Python
isolation      finds test code that has to run in the solution's process
native_calls   calls of functions in other languages
inserted       test programs that the solution is inserted into
"""
