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
from truegold.verifiers.code.suite.programs import is_source
from truegold.verifiers.code.suite.reading import SUITE_OPTIONS, check_options, read_suite
from truegold.verifiers.code.suite.statement import allowed_error
from truegold.verifiers.code.suite.unrun import missing_package

__all__ = [
    "SUITE_OPTIONS",
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
    "allowed_error",
    "check_options",
    "is_source",
    "missing_package",
    "read_suite",
]
