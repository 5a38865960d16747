"""Test code: where it has to run, which of its statements are tests, how they run, and what is reported of them.

isolation          whether test code needs the solution in its own process
library_functions  the names in it that mean a library's function
statements         cuts it into the statements that are tests of their own
running            runs those statements
cases              runs what it defines for a test runner
report             writes what became of each test
"""
