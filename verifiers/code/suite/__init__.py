"""Reads the tests of a problem, in the shapes of many data sets, into one of five forms.

reading    the forms, the shapes of tests in data sets, and the reading of tests into the forms
row_tests  the arguments of the verifier `code` for the tests of a record
statement  sentences of a problem's text about the judging of answers
unrun      tests that the test runner never runs, and assertions that cannot fail
imports    the imports of tests: the module under test, and packages that are not installed
"""
