"""Turns test code into data, calls and expected values, so that the tests themselves need not run.

lowering              reads test code in Python
foreign_assertions    reads test code in other languages
foreign_values        reads literals of other languages
"""
