"""Reads the tests of one problem, as rows of data sets have them, into one of five forms.

reading    the forms, and how tests are read into them
shapes     the shapes in which data sets keep tests
statement  what a problem's text says about how answers are judged
unrun      tests that their runner would pass over, and assertions that cannot fail
imports    packages that tests import and that are not installed
"""
