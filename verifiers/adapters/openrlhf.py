"""Provides `reward_func`, which OpenRLHF calls for one response at a time, in a thread.

    --reward.remote_url reward_func.py                        the file next to the exported set

A query is prompt and response as one text, decoded with special tokens. A label is the exported row as JSON text, a
gold, or a list of accepted golds. The result has `rewards`, `scores` (from 0 to 1, for dynamic filtering) and
`extra_logs` with `judged` and `masked_share`.

OpenRLHF needs a reward for every response. A response that could not be judged has the reward 0 and `judged` 0, and a
warning names the reason and an example.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from truegold.verifiers.adapters.row_truth import truth_of_label
from truegold.verifiers.adapters.scoring import Scorer, masked_share, own_turn
from truegold.verifiers.checked import checked

_SCORER = Scorer(unjudged=0.0)
_TURN = re.compile(
    r"<\|im_start\|>assistant\n|<\|start_header_id\|>assistant<\|end_header_id\|>\s*|<\|assistant\|>\n?|<｜Assistant｜>"
    r"|<start_of_turn>model\n|\[/INST\]"
)
"""The start of an assistant's turn in the usual chat templates."""
_TAIL = 64
"""If a query does not begin with the prompt, this many last characters of the prompt are searched for in the query."""


@checked
def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any) -> dict[str, Any]:
    """Return the rewards of responses in the format of OpenRLHF's agents."""
    import torch

    rows = zip(queries, prompts, labels, strict=True)
    verdicts = _SCORER.judge(truth_of_label(label).question(response_in(*texts)) for *texts, label in rows)
    rewards = torch.tensor([_SCORER.paid(verdict) for verdict in verdicts], dtype=torch.float)
    judged = torch.tensor([float(verdict.score is not None) for verdict in verdicts])
    masked = torch.full_like(judged, masked_share(verdicts))
    return {"rewards": rewards, "scores": rewards.clone(), "extra_logs": {"judged": judged, "masked_share": masked}}


def response_in(query: str, prompt: str) -> str:
    """Return the response in a query: the text after the prompt, up to the end of the turn.

    Decoding may change the prompt. If the query does not begin with it, the response follows the last `_TAIL`
    characters of the prompt. If the query lacks these too, the response is the assistant's turn after the prompt.
    """
    tail = prompt[-_TAIL:]
    if prompt and query.startswith(prompt):
        response = query[len(prompt) :]
    elif tail.strip() and tail in query:
        response = query.partition(tail)[2]
    else:
        turns = list(_TURN.finditer(query))
        asked = max(len(_TURN.findall(prompt)), 1)
        response = query[turns[min(asked, len(turns)) - 1].end() :] if turns else query
    return own_turn(response)
