"""Stored rollouts judged again: which rewards were wrong, what they cost, and which prompts look at fault.

`rescore` is the whole of it; `logs` reads what trainers write.
"""

from truegold.pipeline.rescore.rescore import Rescored, rescore

__all__ = ["Rescored", "rescore"]
