"""Let a program meet its tests.

stdio          programs that read stdin and write stdout
suite_program  checkers, which tell whether an output is right, and interactors, which talk with the solution
testlib        the header that they are written against, and its exit codes
python_tests   calls of Python functions, and test code
isolation      whether test code needs the solution in its own process
native_calls   calls of functions in other languages
inserted       test programs into which the solution is put
"""
