"""OpenRLHF: `reward_func`, which it calls by position for one response at a time, in a thread.

    --reward.remote_url reward_func.py                        the file beside the exported set

`queries` are prompt and response together, decoded with special tokens; the label is the JSON text of the export, a
bare gold, or a list of accepted ones. The result has `rewards`, `scores` (from 0 to 1, for its dynamic filtering) and
`extra_logs` with `judged` and `masked_share`. A response that could not be judged cannot be left out there: its reward
is 0; `judged` says so in its metrics, and a warning names the reason and an example.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from truegold.verifiers.adapters.row_truth import truth_of_label
from truegold.verifiers.adapters.scoring import Scorer, masked_share, own_turn

_SCORER = Scorer(unjudged=0.0)
_TURN = re.compile(
    r"<\|im_start\|>assistant\n|<\|start_header_id\|>assistant<\|end_header_id\|>\s*|<\|assistant\|>\n?|<｜Assistant｜>"
    r"|<start_of_turn>model\n|\[/INST\]"
)
_TAIL = 64
"""Characters of a prompt's end by which it is found where its beginning was cut or decoded otherwise."""


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any) -> dict[str, Any]:
    """Return the rewards of responses, as OpenRLHF's agents read them."""
    import torch

    rows = zip(queries, prompts, labels, strict=True)
    verdicts = _SCORER.judge(truth_of_label(label).question(response_in(*texts)) for *texts, label in rows)
    rewards = torch.tensor([_SCORER.paid(verdict) for verdict in verdicts], dtype=torch.float)
    judged = torch.tensor([float(verdict.score is not None) for verdict in verdicts])
    masked = torch.full_like(judged, masked_share(verdicts))
    return {"rewards": rewards, "scores": rewards.clone(), "extra_logs": {"judged": judged, "masked_share": masked}}


def response_in(query: str, prompt: str) -> str:
    """Return the response in a query, without the prompt, and without what follows the end of its turn.

    Where decoding has changed the prompt, the response is what follows its last words, else its turn of the assistant.
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
