"""Judges the rollouts in training logs again, to find wrong rewards and prompts with a wrong gold.

`logs` reads the trainers' files, `rescore` judges the rollouts, `reward_errors` computes the cost of wrong rewards, and
`rollout_report` writes the results.
"""

from truegold.pipeline.rescore.rescore import Rescored, rescore

__all__ = ["Rescored", "rescore"]
