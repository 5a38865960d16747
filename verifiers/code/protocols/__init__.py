"""Let a program meet its tests.

stdio          programs that read stdin and write stdout; their checkers and interactors
python_tests   calls of Python functions, and test code
isolation      whether test code needs the solution in its own process
native_calls   calls of functions in other languages
inserted       test programs into which the solution is put
"""
