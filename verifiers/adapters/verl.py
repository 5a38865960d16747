"""verl: `compute_score`, which it calls by keyword for one response at a time, in threads of its executor.

    reward.custom_reward_function.path=compute_score.py       the file beside the exported set

It returns the same keys for every sample, because verl takes those of the first for all: `score`, `acc`, `judged`,
`masked` (its mean is the masked share), `reason`, `extracted`. verl cannot leave a response out, so that one which
could not be judged has the score `unjudged` (`reward_kwargs`; 0 where not given) and `judged` 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truegold.verifiers.adapters.scoring import RowTruth, Scorer, record_of, truth_of

_SCORER = Scorer()


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    verifier: str | None = None,
    unjudged: float = 0.0,
    **_: Any,
) -> dict[str, float | str]:
    """Return the score of one response with what is logged of it."""
    info = extra_info or {}
    truth = truth_of({"gold": ground_truth, **info}, info.get("question"))
    if verifier is not None:
        truth = RowTruth(truth.gold, verifier, truth.verifier_args, truth.problem)
    (verdict,) = _SCORER.judge([truth.question(solution_str)])
    score = unjudged if verdict.score is None else verdict.score
    return {**record_of(verdict), "score": score, "acc": score}
