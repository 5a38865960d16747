"""Judges the rollouts in training logs again: finds wrong rewards, their cost, and prompts with a faulty gold.

`logs` reads the trainers' files, `rescore` judges the rollouts, `reward_errors` computes the cost of wrong rewards, and
`rollout_report` writes the results.
"""

from truegold.pipeline.rescore.rescore import Rescored, rescore

__all__ = ["Rescored", "rescore"]
