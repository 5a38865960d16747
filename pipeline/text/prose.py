"""Reads a prompt as prose: its sentences, its questions, its language, and its text without formulas and drawings.

`"Let $x=2.5$. What is $x^2$?"` becomes the sentences `["Let ⟦⟧.", "What is ⟦⟧?"]`. One word replaces a formula, so
dots, commas and words in it do not count as parts of the sentence.

The language of a prompt is decided by its script if possible, else by py3langid on its words without formulas.

    "Find $x$ if $2x=6$ and write it down."   en          "小明有 3 个苹果"   zh
    "计算 $\\int x dx$"                         zh          "$x^2 = 4$"         und: too few letters to tell

Codes are ISO 639-1. All varieties of Chinese are `zh`, because few prompts are long enough to distinguish them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache
from itertools import islice
from typing import Any

FORMULA = "⟦⟧"
"""The word that replaces a formula, a drawing or a block of code."""

_FORMULAS = re.compile(
    r"\[asy\].*?(?:\[/asy\]|\Z)"
    r"|```.*?(?:```|\Z)"
    r"|\\begin\{(?P<env>[a-z]+\*?)\}.*?\\end\{(?P=env)\}"
    r"|\$\$.+?\$\$"
    r"|\\\[.+?\\\]"
    r"|\\\(.+?\\\)"
    # A dollar sign of an amount of money, as in "$5 each and $3 more", does not open a formula.
    r"|(?<!\\)\$(?!\d[\d.,]*[\s,.?!;)-][^$\\]{0,400}[a-z]{4})(?=\S)[^$]{1,400}(?<!\\)\$",
    re.DOTALL,
)
"""A drawing, a code block or a formula."""
_SENTENCE_END = re.compile(r"(?<=[.?!؟।])[\"'”’)\]]*\s+|(?<=[。？！；])|\n\s*\n")

_QUESTION = re.compile(
    r"[?？؟]|_{2,}|\\_|（\s*）|\(\s*\)"
    r"|\bhow\s+(?:many|much|long|far|old|tall|fast|big|heavy|often)\b"
    r"|(?:^|[,:;]\s*|[.!]\s+|\n)(?:and\s+|then\s+)?(?:how|what|which|who|whose|when|where|why)\b"
    r"|\bwhat\s+(?:is|are|was|were|will|would)\b|\bwhich\s+of\b"
    r"|多少|几|什么|哪|谁|怎|吗|是否|何|求|计算|解方程|化简|填|判断|证明|写出",
    re.IGNORECASE,
)
"""Signs of a question, or a blank to fill in."""
_INSTRUCTION = re.compile(
    r"(?:^|[,:;()]\s*|[.!]\s+|\n\s*|\b(?:and|then|please|also)\s+)"
    r"(?:find|compute|calculate|determine|evaluate|solve|simplify|express|factor|expand|write|give|list|name|round|convert"
    r"|estimate|prove|show|state|enter|answer|let|put|arrange|complete|choose|select|reduce|divide|multiply|add|subtract"
    r"|rewrite|fill|count|graph|sketch|draw|describe|identify|use|verify|derive|integrate|differentiate|construct|provide)\b",
    re.IGNORECASE,
)
"""The verb of an instruction: "Find", "and write"."""

CHINESE = re.compile(r"[一-鿿]")
"""Finds a Chinese character."""
DELIMITED = re.compile(
    r"(?<!\\)\$\$[^$]{1,2000}\$\$|(?<![\\$])\$(?!\$)[^$\n]{1,1000}(?<!\\)\$|\\\([^$]{1,1000}?\\\)|\\\[[^$]{1,2000}?\\\]"
)
"""A formula with its delimiters. The bounds keep a text of many dollar signs from taking quadratic time."""

_ELSEWHERE = re.compile(
    r"\b(?:see|refer(?:ring)?\s+to|(?:data|information|context|passage|results?|figures)\s+(?:of|from|in|given\s+in)|based\s+on)"
    r"\s+(?:the\s+)?(?:question|problem|exercise|item)\s+(?:no\.?\s?)?\d+"
    r"|\A.{0,40}\b(?:in|from|of|see|to|on|for|with|using)\s+the\s+(?:previous|preceding)\s+(?:question|problem|exercise|passage)\b"
    r"|\A.{0,30}\b(?:in|on|see|to|using|read)\s+the\s+(?:passage|paragraph|text|extract|article|story)\s+(?:above|given\s+earlier)"
    r"|(?:[见照同]|根据|[据用]第)第?\s?\d+\s?题|[见据同接用](?:上|前)一?题|\A(?:阅读|根据|参[见照考])?上(?:文|述短文|面的短文)"
    r"|\b(?:voir|cf\.?|(?:reporter|référer|reportez-vous|référez-vous)\s+à|données\s+de|d['’]après)"
    r"\s+(?:la\s+question|l['’]exercice|le\s+problème)\s+(?:n°\s?)?\d+"
    r"|\bde\s+(?:la\s+question|l['’]exercice)\s+précédente?\b|\A.{0,30}\b(?:texte|passage|extrait)\s+ci-dessus",
    re.IGNORECASE,
)
"""A reference to a text elsewhere: "See question 30 for the passage."."""

UNKNOWN = "und"
"""The code of ISO 639 for an undetermined language."""
MIN_LETTERS = 20
"""The minimum number of letters for a guess by words. Fewer letters are often names and units. Of the guesses for
34,000 English and Chinese prompts, half were wrong below this limit, and 1 in 2,000 above it."""
MIN_CONFIDENCE = 0.5
"""The minimum confidence of py3langid for the language of a prompt."""
SURE_CONFIDENCE = 0.999
"""The minimum confidence of py3langid for a nearly certain language (`sure_language`)."""
_PROSE_BETWEEN = re.compile(r"^\$[^$\\]*[a-z]{2,}\s+[a-z]{2,}[^$\\]*\$$")
"""Prose between two dollar signs. It has two words in a row outside of commands; a formula has none."""
MAX_CHARS = 300
"""The number of characters by which a language is guessed. More characters are slower and not more certain."""
_NOT_PROSE = re.compile(
    r"\[asy\].*?(?:\[/asy\]|\Z)|```.*?(?:```|\Z)|\\[A-Za-z]+|https?://\S+|[A-Za-z_]*\d[A-Za-z0-9_.]*|\b[A-Za-z]\b",
    re.DOTALL,
)
"""Parts of a text that do not show its language: drawings, code, commands, URLs, single letters."""
_OPTIONS = re.compile(r"\n\s*\(?A[.)]")
"""The beginning of a list of options."""
_GROUPING_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
"""The comma of 1,000."""
_HALF_END = re.compile(r"(?<=[.?!。？！．])\s*|\s{2,}|(?<=[^\W\d_])\s+(?=[A-Z])")
"""A position where a second language may begin: after a sentence, in a wide gap, or before a capital."""
MAX_TWICE_CHARS = 4_000
"""The maximum number of characters of a text that is checked for a second language."""
MAX_HALVES = 60
"""The maximum number of positions that are tried as the start of a second language."""
MIN_HALF = 0.3
"""In a text in two languages, one half has at least this share of the letters of the other half."""
MIN_SHARED_NUMBERS = 2
"""The minimum number of numbers that both halves of a text in two languages have."""
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_ENGLISH = frozenset("the and are has have how what which find with each from if".split())
"""English words. Two of them decide for English, because names and numbers may mislead a guess."""
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_LETTER = re.compile(r"[^\W\d_]")
HAN_WORTH = 3
"""The number of letters that a Chinese character counts for."""
_VARIETIES = {"yue": "zh", "wuu": "zh", "lzh": "zh", "gan": "zh"}
"""The codes of varieties of Chinese, all mapped to `zh`."""


@lru_cache(maxsize=4)
def without_formulas(text: str) -> str:
    """Return the text with every formula, drawing and code block replaced by one opaque word.

    The result is cached. A dozen rules read the same prompt one after another.
    """
    return _FORMULAS.sub(FORMULA, text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text. Its formulas must have been replaced (`without_formulas`)."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def asks(text: str) -> bool:
    """Return whether a text has a question, a blank to fill in, or an instruction."""
    return bool(_QUESTION.search(text) or _INSTRUCTION.search(text))


def points_elsewhere(text: str) -> str | None:
    """Return the words of a reference to another problem, or to a text above; None without a reference."""
    match = _ELSEWHERE.search(text)
    return match[0] if match else None


def ending(text: str, limit: int = 120) -> str:
    """Return the last `limit` characters of a text on one line, for a reviewer."""
    text = " ".join(text.split())
    return text if len(text) <= limit else "…" + text[-limit:]


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
    """Return the code of the language of a sentence if py3langid is nearly certain of it, else UNKNOWN."""
    code, confidence = _identifier().classify(_NOT_PROSE.sub(" ", text)[:MAX_CHARS])
    return _VARIETIES.get(code, code) if confidence >= SURE_CONFIDENCE else UNKNOWN


def may_be_in(text: str, languages: Collection[str]) -> bool:
    """Return whether a text may be in one of these languages.

    `may_be_in("أوجد قيمة س", ("en", "zh"))` is False by the script alone. A few words in Latin letters may be in any
    language.
    """
    prose = _NOT_PROSE.sub(" ", DELIMITED.sub(_drop_formula, text[: 10 * MAX_CHARS]))[:MAX_CHARS]
    letters, latin = len(_LETTER.findall(prose)), len(_LATIN.findall(prose))
    if HAN_WORTH * (letters - latin) > latin:
        return language_of(text) in languages if _HAN.search(prose) else False
    if "en" in languages and len(_ENGLISH & set(re.findall(r"[a-z]+", prose.lower()))) > 1:
        return True
    return language_of(text) in {UNKNOWN, *languages}


def is_said_twice(text: str) -> bool:
    """Return whether a text is given in two languages.

    The two halves of such a text have the same numbers. If both halves ask a question, half of the numbers suffice,
    because one half may spell numbers out, and a heading may have further numbers.
    """
    text = _GROUPING_COMMA.sub("", _OPTIONS.split(text[:MAX_TWICE_CHARS], maxsplit=1)[0])
    for boundary in islice(_HALF_END.finditer(text), MAX_HALVES):
        halves = text[: boundary.end()], text[boundary.end() :]
        sizes = [len(_LETTER.findall(half)) + (HAN_WORTH - 1) * len(_HAN.findall(half)) for half in halves]
        if min(sizes) < max(1, MIN_HALF * max(sizes)):
            continue
        fewer, more = sorted((set(re.findall(r"\d+", half)) for half in halves), key=len)
        shared = len(fewer & more)
        has_same = shared == len(fewer) >= MIN_SHARED_NUMBERS and 2 * shared >= len(more)
        if has_same or (all(map(asks, halves)) and (2 * shared >= len(fewer) > 0 or not more)):
            languages = {language_of(half) for half in halves}
            if len(languages) > 1 and UNKNOWN not in languages:
                return True
    return False


def _drop_formula(match: re.Match[str]) -> str:
    """Return a space for a formula.

    Prose between two amounts of money, as in "$5 each and $3", is returned as it is.
    """
    return match[0] if _PROSE_BETWEEN.search(match[0]) else " "


@cache
def _identifier() -> Any:
    """Return py3langid's identifier with probabilities. It is cached, because loading takes about a second."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def known_languages() -> frozenset[str]:
    """Return all codes that `language_of` can return, except for UNKNOWN."""
    return frozenset(_VARIETIES.get(code, code) for code in _identifier().labels)
