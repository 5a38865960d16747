"""The tests of one problem: which forms they have, and how rows of data sets are read into them."""

from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import (
    SUITE_OPTIONS,
    Asserts,
    CallCase,
    Calls,
    Codecs,
    Inserted,
    Stdio,
    StdioCase,
    Suite,
    UnitTest,
    check_options,
    is_source,
    read_suite,
)
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
