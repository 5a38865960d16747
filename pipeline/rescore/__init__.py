"""Stored rollouts judged again: which rewards were wrong, what they cost, and which prompts look at fault.

`logs` reads what trainers write, `rescore` judges it again, `reward_errors` says what errors cost, and `rollout_report`
writes all of it down.
"""

from truegold.pipeline.rescore.rescore import Rescored, rescore

__all__ = ["Rescored", "rescore"]
