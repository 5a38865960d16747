"""Tests in one process, the solution in another, and a line of messages between the two.

    tests            role `tests`: runs test code, whose requests go to the other process
    session            sends requests one after the other and reads what comes back
    solution_names     finds the names that test code does not define itself
    remote_objects     what test code holds in place of the solution's functions, classes and objects
    sending            encodes what test code passes to the solution
    reception          decodes what the solution sends, and believes nothing of it
    argument_use       tells whether test code looks at an argument after a call

    serve            role `serve`: loads the solution and answers requests
    handles            the numbers by which the other side names the solution's objects

    shared_names     the types, exceptions and modules that both processes may name
    lending          containers of the solution's objects that test code got hold of, kept alike on both sides
    in_place         changes of arguments, carried back into the objects that were passed

Suites that are data (calls with expected results) need none of this.
"""

from .serve import run_serve
from .tests import run_tests

__all__ = ["run_serve", "run_tests"]
