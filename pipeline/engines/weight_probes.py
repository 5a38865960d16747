"""Compares the weights of servers through their answers to one question.

    log-probabilities of the question   A: -1.20 -0.31 -2.02    B: -1.22 -0.30 -1.99   the same weights
                                                                C: -7.10 -5.43 -6.66   others

The log-probabilities of a prompt's tokens depend on nothing but the weights: not on temperature, seed or what else is
in the batch. Another dtype changes them by .04 on average, other weights by much more. A server that does not give them
shows its weights by the first tokens that it finds most likely.
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
"""The tokens that a server continues the question with."""
SAME_TOKENS = 2
"""The first tokens that show the weights if there are no log-probabilities; later ones may differ by rounding."""
SAME_WEIGHTS = 0.25
"""The mean difference of log-probabilities, in nats, above which two servers have different weights."""
MOST_DIFFERENT = 5.0
"""The most that a single token adds to the sum: the log-probability of an unlikely one is mostly rounding."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A server's answer to the question."""

    token_ids: tuple[int, ...]
    prompt_logprobs: tuple[float, ...]
    """The log-probability of each token of the question but the first; empty where the server gives none."""

    def agrees(self, other: ProbeAnswer) -> bool:
        """Return whether both can come from the same weights."""
        if self.prompt_logprobs and len(self.prompt_logprobs) == len(other.prompt_logprobs):
            pairs = zip(self.prompt_logprobs, other.prompt_logprobs, strict=True)
            return sum(min(abs(a - b), MOST_DIFFERENT) for a, b in pairs) / len(self.prompt_logprobs) <= SAME_WEIGHTS
        return self.token_ids[:SAME_TOKENS] == other.token_ids[:SAME_TOKENS]


def make_probe(encoder: PromptEncoder, max_model_len: int) -> CompletionRequest:
    """Return the request with the question, cut to the length of the model."""
    tokens = min(TOKENS, max_model_len // 2)
    question = tuple(encoder.encode(QUESTION)[: max_model_len - tokens])
    settings = {"temperature": 0, "ignore_eos": True, "prompt_logprobs": 0}
    return CompletionRequest(question, tokens, logprobs=False, settings=settings)


def find_largest_agreement(answers: Sequence[ProbeAnswer]) -> list[int]:
    """Return the positions of the largest group that agrees with one of its members."""
    groups = [[i for i, other in enumerate(answers) if member.agrees(other)] for member in answers]
    return max(groups, key=len, default=[])
