"""The tests of one problem: which forms they have, and how rows of data sets are read into them."""

from truegold.verifiers.code.bad_suite import BadSuite
from truegold.verifiers.code.suite.forms import (
    Asserts,
    CallCase,
    Calls,
    Codecs,
    Inserted,
    Stdio,
    StdioCase,
    Suite,
    UnitTest,
)
from truegold.verifiers.code.suite.reading import read_suite

__all__ = [
    "Asserts",
    "BadSuite",
    "CallCase",
    "Calls",
    "Codecs",
    "Inserted",
    "Stdio",
    "StdioCase",
    "Suite",
    "UnitTest",
    "read_suite",
]
