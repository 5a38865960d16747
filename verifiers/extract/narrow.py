r"""From the words after an announcement to the answer in them.

    $5$. I hope it is correct.            $5$
    5, because 2 + 3 = 5                  5
    that John has 5 apples left           5 apples, see `values`
    小明一共走了12千米。                     12千米
    5です。                                5
    009\]                                 009: the formula was opened before the announcement
    found by adding the two sides         nothing: a method is no answer

Units, dollars and LaTeX stay on the answer, for the verifier to read.
"""

from __future__ import annotations

import re

from truegold.verifiers.extract.values import FORMULA, MARKS, has_value, is_prose, stated, word_count

MAX_TEXT_WORDS = 5
"""The longest answer in words. Stops sentences about the answer from being taken for it."""

_CUT = re.compile(
    rf"(?P<formula>{FORMULA})|(?P<brace>[{{}}])"
    r"|(?P<end>[.?](?=[*_`\")\]]{0,3}(?:\s|$))|!(?=\s{1,3}[A-Z])|[。！؟।]|．(?=\s|$))"
    r"|(?P<why>[,;]?\s{1,3}(?:because|since|as|which|so|when|where|if|given|assuming|but|rather|instead|due[ ]to"
    r"|hence"
    r"|thus|therefore|i\.e\.|that[ ]is|meaning|making|considering|weil|porque|parce|denn|puisque|так[ ]как)\b"
    r"|,?\s{1,3}(?:and\s{1,3})?not(?=\s{1,3}[\d$\\])|,\s{1,3}(?:isn['’]t|right|correct|is[ ]it[ ]not)\b"
    r"|\s?[（(](?:not|rather|instead|since|because|as|which|where|this|that|i\.e|由于|因为)"
    r"|[，,；]\s?(?:因为|由于|所以|因此|其中|而)|\s[—–-]\s{1,3}(?=[A-Za-z]{3}))"
)
_CONCLUDING = re.compile(
    r"(?<=\s)(?:Therefore|Thus|Hence|Consequently|So),?(?=\s)|(?<=\s)(?:所以|因此|综上|故)(?=[^\s])"
)
"""Words that begin a sentence also where no full stop ends the one before."""
_POSTPOSED = re.compile(
    r"\s?(?:です|である|となる|になる|[にと]なります|だ|입니다|이다|이에요|예요|है|हैं|হয়|ہے|است|['’]?d[ıiuü]r)[。.]?$"
)
_ABOUT = re.compile(
    r"(?:(?:most )?(?:likely|probably)|approximately|about|around|roughly|exactly|simply|just|always|equal to"
    r"|therefore|thus|then|also|约为?|大约)"
    r"(?![a-z])[,\s]*"
)
_BRACKETED = re.compile(r"\s*[【〖]([^【〖】〗\n]{1,200})[】〗][\s.。]*")
_DENIED = ("not ", "n't", "不")


def narrow(text: str) -> str | None:
    """Return the answer in what follows an announcement; None where there is none."""
    bracketed = _BRACKETED.fullmatch(text)
    text = bracketed[1] if bracketed else text
    text = _without_strays(_POSTPOSED.sub("", _until_cut(text.strip(MARKS))).strip(MARKS))
    text = without_about(text)
    if not text or text.startswith(_DENIED) or text.endswith((":", "：")) or "\\boxed" in text:
        return None
    if not has_value(text):
        return text if word_count(text) <= MAX_TEXT_WORDS else None
    return (stated(text) or text) if is_prose(text) else text


def without_about(text: str) -> str:
    """Return a text without an adverb before its value: `about 5`, `always 18`."""
    about = _ABOUT.match(text)
    return text[about.end() :] if about and about.end() < len(text) else text


def _until_cut(text: str) -> str:
    """Return `text` up to the end of its first sentence, or to where it begins to explain itself."""
    depth = 0
    for match in _CUT.finditer(text):
        kind = match.lastgroup
        if kind == "brace":
            depth += 1 if match.group() == "{" else -1
        elif kind != "formula" and depth <= 0 and text[: match.start()].strip(MARKS):
            return text[: match.start()]
    return text


def sentence_around(line: str, position: int) -> tuple[str, str]:
    """Return the sentence of a line that a position stands in: what is before the position, and the rest."""
    start = 0
    for match in _CUT.finditer(line):
        if match.lastgroup == "end":
            if match.end() > position:
                return line[start:position], line[position : match.end()]
            start = match.end()
    return line[start:position], line[position:]


def last_sentence(line: str) -> str:
    """Return the last sentence of a line, with its mark; a full stop inside a formula ends nothing."""
    start, stop = 0, len(line.rstrip(MARKS))
    for match in _CUT.finditer(line):
        if match.lastgroup == "end" and match.end() < stop:
            start = match.end()
    for match in _CONCLUDING.finditer(line, start):
        if match.end() < stop and line.count("$", start, match.start()) % 2 == 0:
            start = match.start()
    return line[start:].strip(MARKS)


def _without_strays(text: str) -> str:
    """Cut off the closing mark of a formula that was opened before the announcement."""
    for opening, closing in (("\\[", "\\]"), ("\\(", "\\)"), ("{", "}")):
        if text.count(opening) < text.count(closing):
            text = text.removesuffix(closing).removeprefix(closing).strip()
    return text[:-1].strip() if text.endswith("$") and text.count("$") % 2 else text
