"""Tests in one process, the solution in another, and a line of JSON messages between the two."""

from .serve import run_serve
from .tests import run_tests

__all__ = ["run_serve", "run_tests"]
