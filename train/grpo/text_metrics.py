"""What is measured of the completions' texts: how much they repeat themselves, and in which scripts they are written.

"4 + 4 + 4 + 4 + 4 + 4 + 4"              repetition near 1
"答案是四" to an English problem           foreign_script 1
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.train.grpo.batch_metrics import NGRAM, Metrics
from truegold.train.grpo.rewards import StepCompletion
from truegold.train.model.distributed import gathered

FEWEST_NGRAMS = 4
"""A completion with fewer n-grams is too short to repeat itself."""


def text_metrics(completions: Sequence[StepCompletion], encoder: PromptEncoder) -> Metrics:
    """Return repetition and the share of foreign script of a rollout batch, of which this rank has `completions`."""
    repeated = [
        share for completion in completions if (share := repeated_share(completion.segment.output_ids)) is not None
    ]
    local_counts = Counter(
        script for completion in completions for script in _scripts(encoder.decode(completion.segment.output_ids))
    )
    local_known = {script for completion in completions for script in _scripts(_problem_text(completion))}
    all_repeated = list(chain(*gathered(repeated)))
    counts = sum(gathered(local_counts), Counter[str]())
    return {
        "repetition": sum(all_repeated) / len(all_repeated) if all_repeated else None,
        "foreign_script": foreign_share(counts, set(chain(*gathered(local_known)))),
    }


def repeated_share(ids: Sequence[int], n: int = NGRAM) -> float | None:
    """Return the share of a completion's n-grams of tokens that it has had before; None for very short ones."""
    ngrams = [tuple(ids[start : start + n]) for start in range(len(ids) - n + 1)]
    return 1.0 - len(set(ngrams)) / len(ngrams) if len(ngrams) >= FEWEST_NGRAMS else None


def foreign_share(counts: Mapping[str, int], known: set[str]) -> float:
    """Return the share of letters, counted by script, that belong to no script of the problems. Latin and Greek are
    always known: mathematics is written in them."""
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
