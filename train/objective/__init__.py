"""The RL objective as small pure functions on tensors: advantages, losses, weights and masks.

Shapes: B completions of up to T output tokens, right-padded; `mask` is 1 on sampled tokens and 0 on padding. Three
policies are kept apart, each a [B, T] tensor of natural-log probabilities of the sampled tokens:

    rollout  the engine that sampled, at the weights it sampled with
    old      the training engine, at the same weights, before the first update on this batch
    current  the training engine now; the only one that carries gradients

A step's loss is

    (token loss * engine weights * masks * token weights).sum()

with the token loss of `losses` and everything else of `weights` (never differentiated). The denominators of the token
weights are those of the whole batch over all ranks, before any mask.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

PerToken = Float[Tensor, "batch seq"]
"""A number for each output token of a batch's completions, right-padded."""
TokenMask = Bool[Tensor, "batch seq"]
PerCompletion = Float[Tensor, " batch"]
Advantages = PerCompletion | PerToken
"""The advantages of completions, or of their tokens."""
CompletionMask = Bool[Tensor, " batch"]
GroupIndex = Int[Tensor, " batch"]
"""Equal for the completions of a group."""
PerGroup = Float[Tensor, " groups"]
AllTokens = Float[Tensor, " tokens"]
"""A number for each sampled token of a batch, without padding."""
