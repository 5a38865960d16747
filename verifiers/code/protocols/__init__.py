"""Let a program meet its tests.

stdio          programs that read stdin and write stdout
checker        what tells whether an output is right
interactor     programs of a suite that talk with the solution
suite_program  how checkers and interactors are run
testlib        the header that they are written against, and its exit codes
python_tests   calls of Python functions, and test code
isolation      whether test code needs the solution in its own process
native_calls   calls of functions in other languages
inserted       test programs into which the solution is put
"""
