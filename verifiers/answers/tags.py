"""Which tags are one token for a model, and which thinking tags are.

    tag_tokens(tokenizer, ["<think>", "</think>"])
        Qwen3:      TagReport(tokens={"<think>": 1, "</think>": 1}, recommended=("<think>", "</think>"))
        SmolLM2:    TagReport(tokens={"<think>": 3, "</think>": 3}, recommended=None)

A tag of several tokens can be spelt in several ways, melts into its neighbours (`.</think>` may begin with a token
`.</`) and is learnt slowly by RL; a tag of one token is there or not. The tokenizer is any object with `tokenize(text)`
or `encode(text)`: those of transformers, tokenizers and tiktoken, and one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KNOWN_PAIRS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
)
"""Thinking tags that released models have as tokens."""

CONTEXTS = ("{}", "4.{}\n\n5", " {} x")
"""A tag has to stay one token beside other text as well."""


@dataclass(frozen=True, slots=True)
class TagReport:
    """What `tag_tokens` tells of a tokenizer."""

    tokens: Mapping[str, int]
    """How many tokens each tag is, 1 only where it stays whole in any surroundings."""
    recommended: tuple[str, str] | None
    """Thinking tags that are one token each; None where this tokenizer has none."""

    @property
    def split(self) -> tuple[str, ...]:
        """The tags that are more than one token."""
        return tuple(tag for tag, count in self.tokens.items() if count != 1)


def tag_tokens(tokenizer: Any, tags: Sequence[str]) -> TagReport:
    """Count the tokens of each of `tags`, written as it stands in a response (`<think>`)."""
    counts = {tag: _count(tokenizer, tag) for tag in tags}
    for pair in (*zip(tags[::2], tags[1::2], strict=False), *KNOWN_PAIRS):
        if all(_count(tokenizer, tag) == 1 for tag in pair):
            return TagReport(counts, pair)
    return TagReport(counts, None)


def _count(tokenizer: Any, tag: str) -> int:
    alone = _tokens(tokenizer, tag)
    if len(alone) != 1:
        return len(alone)
    whole = all(alone[0] in _tokens(tokenizer, context.format(tag)) for context in CONTEXTS)
    return 1 if whole else 2


def _tokens(tokenizer: Any, text: str) -> list[Any]:
    """The tokens of `text` without those that the tokenizer puts around any text, such as BOS."""
    if hasattr(tokenizer, "tokenize"):
        return list(tokenizer.tokenize(text))
    around, tokens = _encoded(tokenizer, ""), _encoded(tokenizer, text)
    before = 0
    while before < min(len(around), len(tokens)) and around[before] == tokens[before]:
        before += 1
    return tokens[before : len(tokens) - (len(around) - before)]


def _encoded(tokenizer: Any, text: str) -> list[Any]:
    encoded = tokenizer.encode(text)
    return list(getattr(encoded, "ids", encoded))
