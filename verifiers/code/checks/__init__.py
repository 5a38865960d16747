"""The language of checks: what test code may say about the results of calls without being run.

names          tells what the names in test code stand for
scope          holds what names stand for while test code is read
expressions    reads expressions into terms, and keeps the calls that they make
handed_over    knows which lists the solution has had in its hands
terms          evaluates terms over the results of calls
operations, functions    are the operators and functions that terms use, with bounds
work           bounds the cost of all of them together
"""
