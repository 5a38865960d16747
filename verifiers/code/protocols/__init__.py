"""Runs a program on its tests.

stdio          programs that read stdin and write stdout
suite_program  checkers, which judge an output, and interactors, which exchange messages with the solution
testlib        the header of most checkers and interactors, and its exit codes
python_tests   calls of Python functions, and test code in Python
isolation      finds test code that has to run in the solution's process
native_calls   calls of functions in other languages
inserted       test programs that the solution is inserted into
"""
