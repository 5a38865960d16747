r"""Finds the option that a response declares right, even if reasons or remarks on other options follow it.

    The correct sequence is **C. Zn, then KOH**.\n\nWhy the others fail: ...    -> C: the predicate of a sentence
    The most plausible explanation is:\n\nB. At promoters\n\nThis is because ... -> B: one labelled line below a colon
    So the compound is the epoxide (Option B).\n\nThe reaction would ...         -> B: named in brackets at the end
    The most common wrong answer is **C. Zn**.                                  -> nothing: denied
    The best answer is **A. x** ... The best answer is **B. y**                 -> nothing: two are declared

A declaration says that its option is the correct, best, only or most likely one, or concludes with `therefore`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from truegold.verifiers.extract.denials import is_attributed, is_conditional, is_doubted
from truegold.verifiers.extract.judged import IS_WRONG
from truegold.verifiers.extract.stated_values import ANY_OF, MAX_LINE_CHARS

MAX_LINES = 400
"""Maximum number of lines, counted from the end, that are searched."""
_LETTER = r"[*_]{0,3}(?i:(?:option|choice|answer)\s)?[(\[]?(?P<letter>[A-J])"
"""An option's letter, with what may stand before it: `**(A`, `option A`."""
_PREDICATE = re.compile(
    rf".*\b(?:is|are|was)\s{{0,2}}:?\s{{0,2}}{_LETTER}"
    r"(?:[.):\]]{1,2}[*_]{0,3}\s+\S|[)\]]?[*_]{0,3}[.:]?[*_]{0,3}$)"
)
"""A sentence whose predicate is an option with its text: `The best answer is **A. Wool**`."""
_NAMED_LAST = re.compile(r"\((?i:option|choice|answer)\s(?P<letter>[A-J])\)[*_.!]{0,4}$")
"""An option in brackets at the end of a sentence."""
_THAN = re.compile(r"\bthan\b")
_AND_ANOTHER = re.compile(r"(?:\band\b|&|[,/])\s{0,2}[*_(\[]{0,4}([A-J])[.):\]]")
"""Another option after a named one: `C. iron and D. tin`."""
_COPULA = re.compile(r"\b(?:is|are|was)\b")
_LABELLED = re.compile(rf"\W{{0,6}}{_LETTER}(?:[.):\]]{{1,2}}[*_]{{0,3}}\s*\S|(?<=[Oo]ption .)[.:*_]{{0,5}}$)")
"""A line that consists of an option with its text."""
_ANNOUNCES = re.compile(
    r"\W*(?:the\s)?(?:(?:final|best|correct|right)\s)?(?:answer|conclusion)\W*:\W*|.*\b(?:is|are|be|found):\W*",
    re.IGNORECASE,
)
"""A line that announces the option below it."""
_SURE = re.compile(
    r"\b(?:correct|right|best|only|answer|most|more (?:plausible|likely)|match(?:es)?|fits?|satisf(?:y|ies))\b"
    r"|^\W*(?:therefore|thus|hence|so)\b",
    re.IGNORECASE,
)
"""Words that declare the option of a sentence to be the answer."""
_DENIAL = re.compile(
    rf"{ANY_OF['option_denials']}|\b(?:least|others?|distractor|alternative|runner-up|trap|common|popular|tempting|obvious|second|first|may|might|could|expected|if|unless|assum\w+|suppos\w+)\b",
    re.IGNORECASE,
)
"""Words that deny or doubt the option of a sentence."""
_TAKEN_BACK = re.compile(
    rf"{ANY_OF['retracted']}|\b(?:wait|oops|hmm+|reconsider\w*|re-?examin\w*|double-check\w*)\b"
    r"|\b(?:however|but)\b[^.\n]{0,60}\b(?:incorrect|wrong|false|not (?:correct|right|true))\b",
    re.IGNORECASE,
)
"""Words that take an option back."""
_RETHOUGHT = re.compile(
    r"\b(?:wait(?=\s*[,.…—:!-]|\s(?:no|that|this|it|i)\b)|oops|hmm+|scratch that"
    r"|i was (?:wrong|mistaken)(?=\W*(?:$|\n))|i take (?:that|it|this) back|chang(?:ed?|ing) my mind"
    r"|on (?:reflection|second thoughts?)|correction\s?:)|等等|其实",
    re.IGNORECASE,
)
"""Words that take back any verdict, such as `Correct.`"""
_DENIED_LATER = re.compile(
    rf"{ANY_OF['retracted']}"
    r"|\b(?:so|thus|hence|therefore|however|but|actually),?\s(?:it|this|that"
    r"|the (?!opposite|negation|denial|converse|contrary|inverse|other)\w+)\s(?:is|was)\s"
    r"(?:not (?:correct|right|true|valid)|incorrect|wrong|false)(?=\W*(?:$|[.,;!\n]))"
    r"|(?:所以|因此|故).{0,12}(?:不正确|错误?|不对|不成立)",
    re.IGNORECASE,
)
"""Words that take back a verdict of `right`: `_TAKEN_BACK`, or a conclusion such as `so it is wrong`."""
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\W[A-J]\.)[*_]{0,3}\s+(?=[A-Z*(])")
"""The end of a sentence. The point of a label such as `A.` does not end one."""
_OR_ANOTHER = re.compile(
    r"\bor\b[\s*_,]{0,4}(?i:(?:less|more|perhaps|maybe|possibly|also|likely|option|choice|answer)[\s,]+){0,3}"
    r"[*_(\[]{0,4}(?P<letter>[A-J])(?:[.):\]]|[*_]{0,2}$)"
)
"""Another option after `or`: `C. iron or D. tin`."""


def behind(text: str, answer: str) -> str:
    """Return the part of a text after the last occurrence of an answer as a whole word."""
    return re.split(rf"(?<!\w){re.escape(answer)}(?!\w)", f"\n{text}", flags=re.ASCII)[-1] if answer in text else ""


def is_taken_back(text: str, verdict: str) -> bool:
    """Return whether the text after a verdict, such as `Correct.`, takes it back."""
    if re.search(rf"(?:[.!?:,—–\n]|\b(?:so|still))\W*{re.escape(verdict)}\W*$", text[-MAX_LINE_CHARS:], re.IGNORECASE):
        return False
    is_affirmed = IS_WRONG.search(verdict) is None and verdict.casefold() not in ("no", "否", "错")
    return bool(_RETHOUGHT.search(text) or (is_affirmed and _DENIED_LATER.search(text)))


def or_another(text: str, answer: str) -> str | None:
    """Return the letter that a text adds with `or` to an announced option: D for `C. iron or D. tin`."""
    line = behind(text, answer).partition("\n")[0][:MAX_LINE_CHARS]
    sentence = _SENTENCE_END.split(line.lstrip(".):]*_ "))[0]
    match = _OR_ANOTHER.search(sentence)
    return None if match is None or _DENIAL.search(sentence[: match.start()]) else match["letter"]


def declared(text: str) -> str | None:
    """Return the letter of the only option that a text declares to be the answer, or None."""
    lines = [line[:MAX_LINE_CHARS].strip() for line in text.splitlines()[-MAX_LINES:] if line.strip()]
    named = [(*pair, index) for index in range(len(lines)) for pair in _named_by(lines, index)]
    if len({letter for letter, _, _ in named}) != 1:
        return None
    letter = next((letter for letter, is_declared, _ in named if is_declared), None)
    return None if _TAKEN_BACK.search("\n".join(lines[named[0][2] :])) else letter


def _named_by(lines: list[str], index: int) -> Iterator[tuple[str, bool]]:
    """Yield each letter that a line names as an answer, and whether it or the line above it declares the letter."""
    for sentence in _SENTENCE_END.split(lines[index]):
        match = _PREDICATE.match(sentence) or _NAMED_LAST.search(sentence)
        if match is not None and _COPULA.search(lead := sentence[: match.start("letter")]):
            is_compared = match.re is _NAMED_LAST and _THAN.search(lead) is not None
            yield match["letter"], _declares(lead, sentence) and not is_compared
            yield from ((other, False) for other in _AND_ANOTHER.findall(sentence, match.end("letter")))
    above, line, below = ["", *lines, ""][index : index + 3]
    label = _LABELLED.match(line)
    if label is not None and _LABELLED.match(below) is None and _ANNOUNCES.fullmatch(above):
        yield label["letter"], _declares(_SENTENCE_END.split(above)[-1], above)


def _declares(lead: str, sentence: str) -> bool:
    """Tell whether the words before an option say that it is the answer, and neither deny nor doubt it."""
    if sentence.endswith("?") or _SURE.search(lead) is None or _DENIAL.search(lead) or is_conditional(sentence):
        return False
    return not (is_attributed(lead) or is_doubted(lead, ""))
