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
from typing import Any, NamedTuple

from truegold.verifiers.adapters.row_truth import truth_of_label
from truegold.verifiers.adapters.scoring import Scorer, masked_share

_SCORER = Scorer(unjudged=0.0)
_TURN = re.compile(
    r"<\|im_start\|>assistant\n|<\|start_header_id\|>assistant<\|end_header_id\|>\s*|<\|assistant\|>\n?|<｜Assistant｜>"
    r"|<start_of_turn>model\n|\[/INST\]"
)
_TAIL = 64
"""Characters of a prompt's end by which it is found where its beginning was cut or decoded otherwise."""


class _Tokens(NamedTuple):
    """The special tokens of one family of chat templates, as patterns."""

    end: str
    start: str
    padding: str

    def end_of_turn(self, text: str) -> int:
        """Return where the turn ends in a text: before another turn, or before nothing but special tokens."""
        another = re.search(rf"(?:{self.end})\s{{0,8}}(?={self.start})", text)
        last = end = len(text) if another is None else another.start()
        at_end = re.compile(rf"(?:(?P<end>{self.end})|{self.padding})\s{{0,8}}\Z")
        while (match := at_end.search(text[max(last - _LONGEST, 0) : last])) is not None:
            last -= len(match[0])
            end = last if match["end"] is not None else end
        return end


_LONGEST = 64
"""Characters of a special token with blanks behind it, at most."""
_FAMILIES = (
    _Tokens(
        r"<\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|return)\|>",
        r"<\|(?:im_start|start_header_id|user|start|begin_of_text)\|>",
        r"<\|[a-z0-9_▁-]{1,40}\|>",
    ),
    _Tokens(r"<｜end▁of▁sentence｜>", r"<｜(?:User|begin▁of▁sentence)｜>", r"<｜[^｜<>]{1,40}｜>"),
    _Tokens(r"<end_of_turn>|<eos>", r"<start_of_turn>", r"<(?:bos|pad|unk)>"),
    _Tokens(r"</s>", r"(?:<s>\s{0,3})?\[INST\]", r"<(?:pad|unk)>"),
)
"""A token in the midst of a response is a part of it, such as HTML's `</s>`."""


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
    return response[: min(tokens.end_of_turn(response) for tokens in _FAMILIES)].strip()
