"""Reads test code, runs it and reports the outcomes.

library_functions  decides which names mean a library's function and which the solution
statements         cuts test code into statements that are single tests
test_run           runs these statements and test cases, and writes the outcome of each test
"""
