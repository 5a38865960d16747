"""Do the servers of a pool serve the same weights? Each is asked the same, and those that answer otherwise are put out.

    prompt log-probabilities   A: -1.20 -0.31 -2.02    B: -1.22 -0.30 -1.99   the same weights
                                                       C: -7.10 -5.43 -6.66   others

The log-probabilities of a prompt's tokens depend on nothing but the weights: not on temperature, seed or what else is
in the batch. Another dtype changes them by .04 on average, other weights by much more. A server that does not give them
shows its weights by the first tokens that it finds most likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.servers.reply import CompletionRequest, read_prompt_logprobs, read_reply

QUESTION = (
    "Tom has 3 boxes with 14 red pens each, and twice as many blue ones. He gives 17 of all his pens to Anna, who "
    "already has 25. How many pens does each of them have now?"
)
TOKENS = 4
"""The tokens that a server continues the question with."""
SAME_TOKENS = 2
"""Where there are no log-probabilities, so many first tokens show the weights; later ones may differ by rounding."""
SAME_WEIGHTS = 0.25
"""The mean difference of log-probabilities, in nats, above which two servers have different weights."""
MOST_DIFFERENT = 5.0
"""What a single token may add to it: the log-probability of an unlikely one is mostly rounding."""


@dataclass(frozen=True, slots=True)
class Testimony:
    """What a server answers to the question."""

    token_ids: tuple[int, ...]
    prompt_logprobs: tuple[float, ...]
    """The log-probability of each token of the question but the first; empty where the server gives none."""

    def agrees(self, other: Testimony) -> bool:
        """Return whether both can come from the same weights."""
        if self.prompt_logprobs and len(self.prompt_logprobs) == len(other.prompt_logprobs):
            pairs = zip(self.prompt_logprobs, other.prompt_logprobs, strict=True)
            return sum(min(abs(a - b), MOST_DIFFERENT) for a, b in pairs) / len(self.prompt_logprobs) <= SAME_WEIGHTS
        return self.token_ids[:SAME_TOKENS] == other.token_ids[:SAME_TOKENS]


def make_question(encoder: PromptEncoder, max_model_len: int) -> CompletionRequest:
    """Return what servers are asked, as far as it fits the model."""
    tokens = min(TOKENS, max_model_len // 2)
    return CompletionRequest("", tuple(encoder.encode(QUESTION)[: max_model_len - tokens]), tokens, logprobs=False)


def request_body(request: CompletionRequest) -> dict[str, Any]:
    """Return the body of the request."""
    return {
        "model": request.model,
        "prompt": list(request.prompt),
        "temperature": 0,
        "max_tokens": request.max_tokens,
        "ignore_eos": True,
        "prompt_logprobs": 0,
        "return_token_ids": True,
    }


def read_testimony(content: bytes, request: CompletionRequest, encoder: PromptEncoder) -> Testimony:
    """Read the reply. Raises as `read_reply`."""
    completion, choice = read_reply(content, request, encoder)
    return Testimony(completion.token_ids, read_prompt_logprobs(choice.get("prompt_logprobs"), request.prompt))


def find_largest_agreement(testimonies: Sequence[Testimony]) -> list[int]:
    """Return the positions of the largest group that agrees with one of its members."""
    groups = [[i for i, other in enumerate(testimonies) if member.agrees(other)] for member in testimonies]
    return max(groups, key=len, default=[])
