"""What is measured of the completions' texts: how much they repeat themselves, and in which scripts they are written.

"4 + 4 + 4 + 4 + 4 + 4 + 4"              repetition near 1
"答案是四" to an English problem           foreign_script 1
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.train.grpo.batch_metrics import NGRAM, Metrics
from truegold.train.grpo.rewards import StepCompletion

FEWEST_NGRAMS = 4
"""A completion with fewer n-grams is too short to repeat itself."""


def text_metrics(completions: Sequence[StepCompletion], encoder: PromptEncoder) -> Metrics:
    """Return repetition and the share of foreign script of one rollout batch."""
    texts = (encoder.decode(completion.segment.output_ids) for completion in completions)
    repeated = [
        share for completion in completions if (share := repeated_share(completion.segment.output_ids)) is not None
    ]
    known = {script for completion in completions for script in _scripts(_problem_text(completion))}
    return {
        "repetition": sum(repeated) / len(repeated) if repeated else None,
        "foreign_script": foreign_share(texts, known),
    }


def repeated_share(ids: Sequence[int], n: int = NGRAM) -> float | None:
    """Return the share of a completion's n-grams of tokens that it has had before; None for very short ones."""
    ngrams = [tuple(ids[start : start + n]) for start in range(len(ids) - n + 1)]
    return 1.0 - len(set(ngrams)) / len(ngrams) if len(ngrams) >= FEWEST_NGRAMS else None


def foreign_share(texts: Iterable[str], known: set[str]) -> float:
    """Return the share of the texts' letters that belong to no script of the problems. Latin and Greek are always
    known: mathematics is written in them."""
    counts: dict[str, int] = {}
    for text in texts:
        for script in _scripts(text):
            counts[script] = counts.get(script, 0) + 1
    letters = sum(counts.values())
    foreign = sum(count for script, count in counts.items() if script not in known | {"LATIN", "GREEK"})
    return foreign / letters if letters else 0.0


def _problem_text(completion: StepCompletion) -> str:
    row = completion.row
    return f"{row['prompt']} {row['gold'] or ''}"


def _scripts(text: str) -> Iterable[str]:
    """Yield the script of each letter of a text."""
    return (script for character in text if (script := _script(character)))


@lru_cache(maxsize=65536)
def _script(character: str) -> str:
    """Return the first word of a letter's Unicode name, which is its script; nothing for what is no letter.

    LATIN SMALL LETTER A -> LATIN, CJK UNIFIED IDEOGRAPH-7B54 -> CJK, MATHEMATICAL ITALIC SMALL X -> nothing
    """
    if not character.isalpha():
        return ""
    script = unicodedata.name(character, "").split(" ", 1)[0]
    return "" if script in ("MATHEMATICAL", "FEMININE", "MASCULINE", "MICRO", "DOUBLE-STRUCK", "SCRIPT") else script
