"""Reads the tests of a problem, which data sets write in many shapes.

reading    the classes of tests, and the reading of the shapes of data sets into them
row_tests  the arguments of the verifier `code` for the tests of a record
statement  sentences of a problem's text about the judging of answers
unrun      tests that the test runner never runs, and assertions that cannot fail
imports    the imports of tests: the module under test, and packages that are not installed
"""
