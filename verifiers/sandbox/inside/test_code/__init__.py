"""Reads, runs and reports test code.

library_functions  the names in it that mean a library's function, and those that mean the solution
statements         cuts it into the statements that are tests of their own
test_run           runs those statements and the test cases, and writes what became of each test
"""
