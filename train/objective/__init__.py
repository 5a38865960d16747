"""The RL objective as small pure functions on tensors: advantages, losses, weights and masks.

Shapes: B completions of up to T output tokens, right-padded; `mask` is 1 on sampled tokens and 0 on padding. Three
policies are kept apart, each a [B, T] tensor of natural-log probabilities of the sampled tokens:

    rollout  from the sampling engine, at the weights that it sampled with
    old      from the training engine, before the first update on this batch
    current  from the training engine now; the only one with gradients

A step's loss is

    (token loss * engine weights * masks * token weights).sum()

The token loss comes from `losses`. All other factors come from `weights` and are never differentiated. The token
weights are divided by counts of the whole batch, over all ranks and before any mask.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

PerToken = Float[Tensor, "batch seq"]
"""A number for each output token of a batch's completions, right-padded."""
TokenMask = Bool[Tensor, "batch seq"]
"""True for selected output tokens."""
PerCompletion = Float[Tensor, " batch"]
"""A number for each completion of a batch."""
Advantages = PerCompletion | PerToken
"""The advantages of completions, or of their tokens."""
CompletionMask = Bool[Tensor, " batch"]
"""True for selected completions."""
GroupIndex = Int[Tensor, " batch"]
"""The number of each completion's group. The completions of a group have the same number."""
PerGroup = Float[Tensor, " groups"]
"""A number for each group of a batch."""
AllTokens = Float[Tensor, " tokens"]
"""A number for each sampled token of a batch, without padding."""
