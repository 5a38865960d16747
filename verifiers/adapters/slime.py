"""slime: `truegold`, a reward model for one sample or for a whole group.

    --custom-rm-path truegold.verifiers.adapters.slime.truegold
    --prompt-data out/train.jsonl --input-key input --label-key label --apply-chat-template

The set is one of `truegold export --format openrlhf`. slime (rollout/rm_hub/__init__.py of commit
624b824) awaits it with its arguments and a `Sample`, or with a list of them under `--group-rm`. The label is the JSON
text of the export, a bare gold, or a list of accepted ones. slime has its engine leave the tokens at a response's end
(`no_stop_trim`), which are taken off. A response that could not be judged gets 0 and
`remove_sample`, by which slime leaves its tokens out of the loss; the 0 still counts in the mean of its group.
`sample.metadata["truegold"]` says why, of every response.
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
