"""Prime Intellect's verifiers (v1) and prime-rl: the functions that an exported taskset calls.

A response that could not be judged has no reward (`RolloutNotJudged`): the rollout is marked as failed there, and
prime-rl leaves it out. The taskset's data is the exported record (`gold`, `verifier`, ...).
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
    """A response could not be judged: the rollout has no reward, which is something else than the reward 0."""


async def score_trace(data: Any, trace: Any) -> dict[str, float]:
    """Return the reward of a trace's last reply by name. Raises RolloutNotJudged if there is none."""
    verdict = await judge(data, trace.last_reply)
    if verdict.score is None:
        raise RolloutNotJudged(f"{data.verifier}: {verdict.reason}: {dict(verdict.evidence)!r:.200}")
    return {"correct": verdict.score}


async def judge(data: Any, response: str) -> Verdict:
    """Return the verdict on a response to a task, without holding up the event loop."""
    question = RowTruth(data.gold, data.verifier, data.verifier_args, problem_text(data.prompt)).question(response)
    (verdict,) = await asyncio.to_thread(_SCORER.judge, [question])
    return verdict


async def gold_passes(data: Any) -> bool | None:
    """Return whether the row's gold earns its own reward, or None if no perfect response can be made up."""
    gold = next(iter(golds_in(data.gold)), None)
    perfect = gold_response(resolve(data.verifier), gold, data.solution)
    return None if perfect is None else (await judge(data, perfect)).passed
