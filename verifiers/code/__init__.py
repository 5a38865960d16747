"""The verifier `code`, which runs the program in a response against the tests of its row.

suite/              reads the tests of a row, which data sets write in many shapes
response_program    finds the program in a response; python_source repairs it
protocols/          run a program on its tests: stdin and stdout, calls, test code, test programs
checks/             turn assertions into calls and comparisons, so that the test code itself does not run
drivers/            call functions in languages other than Python
output_comparison   compares what a program printed with the expected output
value_comparison    compares what a function returned with the expected value
outcomes            turns the results of the cases into one verdict

Programs run in `verifiers/sandbox`; `verifiers/audit/suites` examines the tests themselves.
"""

from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import Suite, read_suite
from truegold.verifiers.code.verifier import CodeVerifier

__all__ = ["BadSuite", "CodeVerifier", "Suite", "read_suite"]
