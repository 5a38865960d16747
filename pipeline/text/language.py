"""The language of a prompt: by its script where that decides, else by py3langid on its words without formulas.

    "Find $x$ if $2x=6$ and write it down."   en          "小明有 3 个苹果"   zh
    "计算 $\\int x dx$"                         zh          "$x^2 = 4$"         und: too few letters to tell

Codes are ISO 639-1; Chinese and its varieties are all `zh`, because few prompts are long enough to tell them apart.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from truegold.pipeline.text.prose import DELIMITED

UNKNOWN = "und"
"""ISO 639's code for a language that cannot be told."""

MIN_LETTERS = 20
"""Letters that a guess by words needs. With fewer, names and units decide: of 34,000 English and Chinese prompts every
second guess was wrong below this limit, and one of two thousand above it."""
MIN_CONFIDENCE = 0.5
SURE_CONFIDENCE = 0.999
_PROSE_BETWEEN = re.compile(r"^\$[^$\\]*[a-z]{2,}\s+[a-z]{2,}[^$\\]*\$$")
"""A formula between single dollar signs does not have two words in a row outside of commands."""
MAX_CHARS = 300
"""Characters of a prompt that are looked at: more would be slower and no surer."""

_NOT_PROSE = re.compile(
    r"\[asy\].*?(?:\[/asy\]|\Z)|```.*?(?:```|\Z)|\\[A-Za-z]+|https?://\S+|[A-Za-z_]*\d[A-Za-z0-9_.]*|\b[A-Za-z]\b",
    re.DOTALL,
)
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_LETTER = re.compile(r"[^\W\d_]")
HAN_WORTH = 3
"""Letters of an alphabet that one Chinese character counts for."""
_VARIETIES = {"yue": "zh", "wuu": "zh", "lzh": "zh", "gan": "zh"}


def language_of(prompt: str) -> str:
    """Return the ISO 639-1 code of the language, or UNKNOWN."""
    text = _NOT_PROSE.sub(" ", DELIMITED.sub(_drop_formula, prompt[: 10 * MAX_CHARS]))[:MAX_CHARS]
    letters = len(_LETTER.findall(text))
    if not text.isascii():
        han, kana, hangul = (len(script.findall(text)) for script in (_HAN, _KANA, _HANGUL))
        asian = han + kana + hangul
        if HAN_WORTH * asian > letters - asian:
            if hangul > han + kana:
                return "ko"
            return "ja" if kana else "zh"
    if letters < MIN_LETTERS:
        return UNKNOWN
    code, confidence = _identifier().classify(text)
    return _VARIETIES.get(code, code) if confidence >= MIN_CONFIDENCE else UNKNOWN


def sure_language(text: str) -> str:
    """Return the code that py3langid is nearly certain of, or UNKNOWN: for a sentence rather than a whole prompt."""
    code, confidence = _identifier().classify(_NOT_PROSE.sub(" ", text)[:MAX_CHARS])
    return _VARIETIES.get(code, code) if confidence >= SURE_CONFIDENCE else UNKNOWN


def _drop_formula(match: re.Match[str]) -> str:
    """Return a blank for a formula; what stands between two amounts of money, as in "$5 each and $3", is prose."""
    return match[0] if _PROSE_BETWEEN.search(match[0]) else " "


@cache
def _identifier() -> Any:
    """Return py3langid's identifier with probabilities; loading it takes about a second."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def known_languages() -> frozenset[str]:
    """Return every code that `language_of` can give, except for UNKNOWN."""
    return frozenset(_VARIETIES.get(code, code) for code in _identifier().labels)
