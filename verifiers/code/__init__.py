"""Verifies programs: does the program in a response pass its tests?

suite/              reads the tests of a row into one of five forms
response_program    finds the program that a response commits to; python_source reads Python
protocols/          let a program meet its tests: stdin and stdout, calls, test code, test programs
checks/             turn test code into calls and checks that need no running
drivers/            make calls of functions in other languages than Python
output_comparison, value_comparison    compare outputs and values with what is expected
outcomes            makes one verdict of the cases that passed and failed

Programs run in `verifiers/sandbox`; `verifiers/audit/suites` examines the tests themselves.
"""

from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import Suite, read_suite
from truegold.verifiers.code.verifier import CodeVerifier

__all__ = ["BadSuite", "CodeVerifier", "Suite", "read_suite"]
