"""The language of checks: what test code may say about the results of calls without being run.

lowering       reads statements, and tells what the names in them stand for
expressions    reads expressions into terms, and keeps the calls that they make
terms          evaluates terms over the results of calls, within a budget
operations     are the operators, functions and methods that terms use, with bounds
"""
