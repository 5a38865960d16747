"""The end of a response's own turn, in texts that were decoded with special tokens.

own_turn("so 3<|im_end|>")                                          "so 3"
own_turn("so 3<|im_end|>\\n<|im_start|>user\\nAnd 4?")              "so 3": the policy has made up another turn
own_turn("In HTML <s>x</s> is struck, so 3</s></s>")                "In HTML <s>x</s> is struck, so 3"
"""

from __future__ import annotations

import re
from typing import NamedTuple


def own_turn(text: str) -> str:
    """Return a response without what follows the end of its turn, and without blanks around it."""
    return text[: min(tokens.end_of_turn(text) for tokens in _FAMILIES)].strip()


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
