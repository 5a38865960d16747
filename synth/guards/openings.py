"""Does an output open with something that is not about its problem?

    "It was not accepted, hence a different route. 12+9=21 ..."     yes
    "The remark helps. 12+9=21 ..."                                   yes
    "Let's break it down step by step. 12+9=21 ..."                   no: solutions open that way
    "By Vieta's formulas, ..."                                        no: mathematics
    "Tom starts with what he had. 12+9=21 ..."                        no: it is about Tom

An opening sentence without a number, a formula or a word of the problem has another subject, which is what came before.
"""

from __future__ import annotations

import re

from truegold.pipeline.near.terms import TERMS
from truegold.synth.guards.text import HAN, content_stems, runs, sentences, words

PREAMBLE = re.compile(
    r"\b(?:wrong|errors?|mistak\w+|incorrect\w*|issues?|fix(?:ed|es|ing)?|fail(?:ed|s|ure)?"
    r"|attempts?|again|earlier|previous\w*|comments?|reflections?|reflecting|guidance|advi[cs]ed?"
    r"|suggest\w*|hints?|told|checker|accept(?:ed)?|reject\w*|reconsider\w*|rush|lessons?|learn(?:ed"
    r"|t|ing)? from|turns? out|in mind|(?:second|another|closer) look|i see|i understand|understood"
    r"|corrected|amended|revised|updated|careless\w*|overlooked|warn\w*|remind\w*|as said"
    r"|as noted)\b|错|不对|有误|之前|刚才|上一|前一|反思|说明|建议|提示|评语|修改|这回|这次|再检查"
    r"|重新|原来|改"
)
"""What an opening sentence speaks of that says nothing of the problem."""
OPENERS = re.compile(
    r"\blet(?:'s| us)\b.*\b(?:step|break|solve|find|start|begin)|\bto (?:solve|find|answer|determine)\b"
)
"""Sentences with which solutions open anyway."""


ABOUT_SOMEBODY = re.compile(
    r"\b(?:i|i'm|me|my|you|your|was|were|been|had|did|didn't|wasn't|not|no|something|someone|[a-z]{3,}ed)\b"
    r"|[我你您]|被(?![除减乘加])"
)
"""Whoever opens with such words, and with none of mathematics or of the problem, speaks of something else. Of 6,000
real solutions 5 do."""
FEWEST_WORDS = 3
"""A sentence of fewer words says too little."""
_DIGIT = re.compile(r"[\d$\\]")


def find_openings(start: str, known: str) -> list[tuple[str, str]]:
    """Return openings that speak of what went before, as `mentions` has it.

    start: what stands before the first step, in normal form; known: the problem.
    """
    known_stems, known_runs = content_stems(known), runs(HAN.findall(known), 2)
    if not known_stems and not known_runs:
        return []
    mentions = []
    for part in sentences(start):
        is_of_problem = content_stems(part) & known_stems or runs(HAN.findall(part), 2) & known_runs
        if _DIGIT.search(part) or is_of_problem or OPENERS.search(part):
            continue
        match = PREAMBLE.search(part)
        if match is None and len(words(part)) >= FEWEST_WORDS and TERMS.keys().isdisjoint(words(part)):
            match = ABOUT_SOMEBODY.search(part)
        if match is not None and match[0] not in known:
            mentions.append(("attempt", match[0]))
    return mentions
