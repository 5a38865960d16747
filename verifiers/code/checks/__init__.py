"""The language of checks: what test code may say about the results of calls without being run.

lowering       reads statements, and tells what the names in them stand for
expressions    reads expressions into terms, and keeps the calls that they make
functions      are the functions and methods that terms use, with bounds
terms          evaluates terms over the results of calls, within bounds and a budget
"""
