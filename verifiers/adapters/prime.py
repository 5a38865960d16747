"""Judges rollouts in tasksets that truegold exports for Prime Intellect's library `verifiers` (v1) and prime-rl.

The data of a task is the exported record (`gold`, `verifier`, ...). A response that could not be judged raises
`RolloutNotJudged` instead of having a reward: the library marks the rollout as failed, and prime-rl leaves it out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from truegold.verifiers.adapters.row_truth import RowTruth
from truegold.verifiers.adapters.scoring import Scorer, problem_text
from truegold.verifiers.gold import gold_response, golds_in
from truegold.verifiers.registry import resolve
from truegold.verifiers.verdict import Verdict

_SCORER = Scorer()


class RolloutNotJudged(RuntimeError):
    """A response that could not be judged, so that its rollout has no reward."""


async def score_trace(data: Any, trace: Any) -> dict[str, float]:
    """Return the reward of the last reply of a trace, under the name `correct`.

    Raises RolloutNotJudged if the reply could not be judged.
    """
    verdict = await judge(data, trace.last_reply)
    if verdict.score is None:
        raise RolloutNotJudged(f"{data.verifier}: {verdict.reason}: {dict(verdict.evidence)!r:.200}")
    return {"correct": verdict.score}


async def judge(data: Any, response: str) -> Verdict:
    """Return the verdict on a response to a task, without blocking the event loop."""
    question = RowTruth(data.gold, data.verifier, data.verifier_args, problem_text(data.prompt)).question(response)
    (verdict,) = await asyncio.to_thread(_SCORER.judge, [question])
    return verdict


async def gold_passes(data: Any) -> bool | None:
    """Return whether a response made from gold passes, or None if no such response can be made."""
    gold = next(iter(golds_in(data.gold)), None)
    perfect = gold_response(resolve(data.verifier), gold, data.solution)
    return None if perfect is None else (await judge(data, perfect)).passed
