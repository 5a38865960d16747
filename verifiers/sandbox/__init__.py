"""Runs untrusted programs in confined processes, without Docker and without privileges.

    from truegold.verifiers.sandbox import run_program

    run_program("print(sum(map(int, input().split())))", stdin=b"3 4").stdout       b"7\\n"

This package knows nothing of verdicts and can be used alone. The docstring of `run_program` says what it protects from
and what it does not.
"""

from truegold.verifiers.sandbox.execution import Execution, Job, Limits, Tier
from truegold.verifiers.sandbox.local import run_program
from truegold.verifiers.sandbox.pool import Sandbox, close_all, possible_tiers, sandbox

__all__ = ["Execution", "Job", "Limits", "Sandbox", "Tier", "close_all", "possible_tiers", "run_program", "sandbox"]
