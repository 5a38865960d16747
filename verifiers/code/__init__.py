"""Verifiers of programs: a sandbox, the protocols by which a program meets its tests, and the verdict.

suite/         reads the tests of a row into one of five forms
extraction/    finds the program that a response commits to
sandbox/       runs programs on this machine; `limits` tells what they may use
inside/        is what runs in the sandbox
remote/        runs programs in a service instead
protocols/     let a program meet its tests: stdin and stdout, calls, test code, test programs
checks/        turn test code into calls and checks that need no running
comparison/    compares outputs and values with what is expected
judging        makes one verdict of the cases that passed and failed
vet/           examines the tests themselves
"""

from truegold.verifiers.code.suite import BadSuite, Suite, read_suite
from truegold.verifiers.code.verifier import CodeVerifier

__all__ = ["BadSuite", "CodeVerifier", "Suite", "read_suite"]
