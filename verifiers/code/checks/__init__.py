"""Assertions as data: what test code says about the results of calls without being run.

lowering              reads Python's
foreign_assertions    reads those of other languages, whose values foreign_values reads
"""
