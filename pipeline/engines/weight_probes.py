"""Compares the weights of servers by a probe: the log-probabilities that they return for one question.

    log-probabilities of the question   A: -1.20 -0.31 -2.02    B: -1.22 -0.30 -1.99   same weights as A
                                                                C: -7.10 -5.43 -6.66   different weights

The log-probabilities of a prompt's tokens depend only on the weights, not on temperature, seed or the rest of the
batch. Another dtype changes them by .04 on average, other weights by much more. If a server does not return them, its
weights are compared by the first tokens of its greedy answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.server_replies import CompletionRequest

QUESTION = (
    "Tom has 3 boxes with 14 red pens each, and twice as many blue ones. He gives 17 of all his pens to Anna, who "
    "already has 25. How many pens does each of them have now?"
)
TOKENS = 4
"""The number of tokens in a server's answer."""
SAME_TOKENS = 2
"""The number of first tokens that are compared without log-probabilities. Later ones may differ by rounding."""
SAME_WEIGHTS = 0.25
"""The mean difference of log-probabilities, in nats, above which two servers have different weights."""
MOST_DIFFERENT = 5.0
"""The cap on the difference for a single token, since the log-probability of an unlikely token is mostly rounding."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A server's answer to the probe."""

    token_ids: tuple[int, ...]
    prompt_logprobs: tuple[float, ...]
    """The log-probability of each token of the question except the first; empty if the server returns none."""

    def agrees(self, other: ProbeAnswer) -> bool:
        """Return whether both answers can come from the same weights."""
        if self.prompt_logprobs and len(self.prompt_logprobs) == len(other.prompt_logprobs):
            pairs = zip(self.prompt_logprobs, other.prompt_logprobs, strict=True)
            return sum(min(abs(a - b), MOST_DIFFERENT) for a, b in pairs) / len(self.prompt_logprobs) <= SAME_WEIGHTS
        return self.token_ids[:SAME_TOKENS] == other.token_ids[:SAME_TOKENS]


def make_probe(encoder: PromptEncoder, max_model_len: int) -> CompletionRequest:
    """Return the request of the probe, with the question cut to the model's length."""
    tokens = min(TOKENS, max_model_len // 2)
    question = tuple(encoder.encode(QUESTION)[: max_model_len - tokens])
    settings = {"temperature": 0, "ignore_eos": True, "prompt_logprobs": 0}
    return CompletionRequest(question, tokens, logprobs=False, settings=settings)


def find_largest_agreement(answers: Sequence[ProbeAnswer]) -> list[int]:
    """Return the positions of the largest group of answers that all agree with one member."""
    groups = [[i for i, other in enumerate(answers) if member.agrees(other)] for member in answers]
    return max(groups, key=len, default=[])
