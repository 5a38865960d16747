"""Provides `truegold`, a custom reward function of slime for one sample or a whole group.

    --custom-rm-path truegold.verifiers.adapters.slime.truegold
    --prompt-data out/train.jsonl --input-key input --label-key label --apply-chat-template

Write the set with `truegold export --format openrlhf`. slime awaits the function with its own arguments and a `Sample`,
or a list of samples under `--group-rm` (rollout/rm_hub/__init__.py of commit 624b824). The label of a sample is the
exported row as JSON text, a gold, or a list of accepted golds. slime keeps the special tokens at the end of a response
(`no_stop_trim`); they are removed here.

A response that could not be judged has the reward 0 and `remove_sample`, so that slime leaves its tokens out of the
loss. The 0 still counts in the mean of its group. `sample.metadata["truegold"]` has the reason for every response.
"""

from __future__ import annotations

import asyncio
from typing import Any

from truegold.verifiers.adapters.row_truth import truth_of_label
from truegold.verifiers.adapters.scoring import Scorer, own_turn, problem_text, record_of

_SCORER = Scorer(unjudged=0.0)


async def truegold(args: Any, sample: Any, **_: Any) -> Any:
    """Return the reward of a sample, or the rewards of a list of samples."""
    samples = sample if isinstance(sample, list) else [sample]
    questions = [
        truth_of_label(each.label, problem_text(each.prompt)).question(own_turn(each.response)) for each in samples
    ]
    rewards = []
    for each, verdict in zip(samples, await asyncio.to_thread(_SCORER.judge, questions), strict=True):
        each.metadata = {**(each.metadata or {}), "truegold": record_of(verdict)}
        each.remove_sample = each.remove_sample or verdict.score is None
        rewards.append(_SCORER.paid(verdict))
    return rewards if isinstance(sample, list) else rewards[0]
