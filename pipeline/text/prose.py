"""Reads a prompt as prose: its sentences, whether they ask something, and its text without formulas and drawings.

`"Let $x=2.5$. What is $x^2$?"` becomes the sentences `["Let ⟦⟧.", "What is ⟦⟧?"]`: a formula is one opaque word, so
that its dots, commas and words are not taken for the sentence's own.
"""

from __future__ import annotations

import re
from functools import lru_cache

FORMULA = "⟦⟧"
"""The word that replaces a formula, a drawing or a block of code."""

_FORMULAS = re.compile(
    r"\[asy\].*?(?:\[/asy\]|\Z)"
    r"|```.*?(?:```|\Z)"
    r"|\\begin\{(?P<env>[a-z]+\*?)\}.*?\\end\{(?P=env)\}"
    r"|\$\$.+?\$\$"
    r"|\\\[.+?\\\]"
    r"|\\\(.+?\\\)"
    # A single dollar opens a formula only if it does not look like an amount of money, as in "$5 each and $3 more".
    r"|(?<!\\)\$(?!\d[\d.,]*[\s,.?!;)-][^$\\]{0,400}[a-z]{4})(?=\S)[^$]{1,400}(?<!\\)\$",
    re.DOTALL,
)
_SENTENCE_END = re.compile(r"(?<=[.?!])[\"'”’)\]]*\s+|(?<=[。？！；])|\n\s*\n")

_QUESTION = re.compile(
    r"[?？]|_{2,}|\\_|（\s*）|\(\s*\)"
    r"|\bhow\s+(?:many|much|long|far|old|tall|fast|big|heavy|often)\b"
    r"|(?:^|[,:;]\s*|[.!]\s+|\n)(?:and\s+|then\s+)?(?:how|what|which|who|whose|when|where|why)\b"
    r"|\bwhat\s+(?:is|are|was|were|will|would)\b|\bwhich\s+of\b"
    r"|多少|几|什么|哪|谁|怎|吗|是否|何|求|计算|解方程|化简|填|判断|证明|写出",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"(?:^|[,:;()]\s*|[.!]\s+|\n\s*|\b(?:and|then|please|also)\s+)"
    r"(?:find|compute|calculate|determine|evaluate|solve|simplify|express|factor|expand|write|give|list|name|round|convert"
    r"|estimate|prove|show|state|enter|answer|let|put|arrange|complete|choose|select|reduce|divide|multiply|add|subtract"
    r"|rewrite|fill|count|graph|sketch|draw|describe|identify|use|verify|derive|integrate|differentiate|construct|provide)\b",
    re.IGNORECASE,
)

CHINESE = re.compile(r"[一-鿿]")
"""Finds a Chinese character."""
DELIMITED = re.compile(
    r"(?<!\\)\$\$[^$]{1,2000}\$\$|(?<![\\$])\$(?!\$)[^$\n]{1,1000}(?<!\\)\$|\\\([^$]{1,1000}?\\\)|\\\[[^$]{1,2000}?\\\]"
)
"""A formula with its delimiters; the bounds keep a text of dollar signs from taking quadratic time."""


@lru_cache(maxsize=4)
def without_formulas(text: str) -> str:
    """Return the text with every formula, drawing and code block as one opaque word.

    The cache serves the dozen rules that ask for the same prompt, one after the other.
    """
    return _FORMULAS.sub(FORMULA, text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in which formulas have been replaced."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def asks(text: str) -> bool:
    """Whether there is a question, a blank to fill or an instruction anywhere in the text."""
    return bool(_QUESTION.search(text) or _INSTRUCTION.search(text))


def ending(text: str, limit: int = 120) -> str:
    """Return the end of a text, short enough for a reviewer's line."""
    text = " ".join(text.split())
    return text if len(text) <= limit else "…" + text[-limit:]
