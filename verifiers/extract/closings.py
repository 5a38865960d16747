r"""Cuts off courtesies, signatures and confirmations that stand after the answer at the end of a response.

    The total is 12.\n\nI hope this helps! Let me know if you have questions. -> The total is 12.
    So x = 12. ∎                                                              -> So x = 12.
    So x = 12.\n\nBest regards,\nTom                                          -> So x = 12.
    So x = 12.\n\nThis satisfies both conditions.                             -> So x = 12.
    So x = 12.\n\nThe question asks for the boxes that are left.              -> unchanged: 12 may not be the answer
    The total is 12.\n\nThat is not right.                                    -> unchanged: it takes 12 back

A sentence is cut off if it has neither a value nor a denial, and addresses the reader (`hope`, `questions`, with `I` or
`you`), cheers, signs, or confirms the answer. Not covered: languages without a word in `patterns.toml`.

A response may also end with a loop or a list of sentences that differ only in their value. Such a response does not
commit to one of the values (`repeated_values`):

    The answer is (E).\nThe answer is (F).\nThe answer is (A).   -> E or F or A: a hedge
    #### 1\n#### 2\n#### 3                                      -> 1 or 2 or 3
    The answer is 5.\nThe answer is 5.\nThe answer is 5.         -> 5
    The answer is 5.\nThe answer is 6.                           -> 6: a correction
    The answer is 5. Wait, no.\nThe answer is 6. Hmm.\nThe answer is 7. -> 7: words take each earlier answer back
    (a) The answer is 5.\n(b) The answer is 6.\n(c) ...          -> the last: the sentences answer different parts
"""

from __future__ import annotations

import re
import unicodedata

from truegold.verifiers.extract.stated_values import ANY_OF, MARKS, has_value
from truegold.verifiers.extract.statements import narrow
from truegold.verifiers.written_numbers import PYTHON_RUN

MAX_CLOSINGS = 12
"""Maximum number of sentences that are cut off. Stops a response of a million courtesies."""
MAX_CLOSING_CHARS = 300
MAX_TAIL_CHARS = 4_000
"""Maximum number of characters at the end of a text that are searched for the beginning of a sentence."""
MAX_CHEER_WORDS = 6
"""Maximum number of words in a sentence that cheers, such as `Happy solving!`."""
MAX_ORNAMENTS = 80
"""Maximum number of symbols that are cut off at the end of a text."""

_SENTENCE_START = re.compile(r"[.!?…][*_)\"'’”]{0,3}[ \t]+(?=\S)|[。！？](?=[^\n。！？])|\n")
_MARK = re.compile(r"(?:\$|\\\(|\\\[)?\\(?:blacksquare|square|qed|Box|checkmark)(?![A-Za-z])\s?(?:\$|\\\)|\\\])?$")
r"""A mark of the end of a proof in LaTeX: `\blacksquare`."""
_RULE = re.compile(r"[-*_=~#>`\s.!…]*")
"""A line without words: `---`."""
_CODE = re.compile(r"```(?!(?:text|plaintext|math|latex|tex|markdown|md|answer)?[ \t]*\n)")
"""The opening fence of a program. The fence that ends a program is not cut off."""
_QED = re.compile(r"\W{0,3}Q\.?\s?E\.?\s?[DF]\.?\W{0,3}")
_SIGN_OFF = re.compile(r"[*_]{0,3}(?:[^\W\d_]+\s?){1,3},[*_]{0,3}")
"""A greeting before a signature: `Best regards,`"""
_NAME = re.compile(r"[-—–*_\s]{0,4}(?:[^\W\d_]+\.?\s?){1,3}[*_]{0,3}")
_PERSON = re.compile(ANY_OF["persons"], re.IGNORECASE)
_COURTESY = re.compile(ANY_OF["courtesies"], re.IGNORECASE)
_GREETING = re.compile(rf"\W*(?:{ANY_OF['greetings']})", re.IGNORECASE)
_CONFIRMATION = re.compile(ANY_OF["confirmations"], re.IGNORECASE)
_OBJECTION = re.compile(ANY_OF["objections"], re.IGNORECASE)
_IF_UNCLEAR = re.compile(r"\b(?:let me know|feel free|hesitate|if (?:you|any(?:thing)?|something))\b", re.IGNORECASE)
"""Polite offers, which may contain words that otherwise deny an answer: `if anything is wrong`."""
_NUMBER_WORD = re.compile(PYTHON_RUN, re.IGNORECASE)
_NO_ORNAMENT = ((0x2460, 0x24FF), (0x3200, 0x33FF), (0x1F100, 0x1F1FF))
"""Ranges of symbols that are letters, digits or units, and not ornaments: Ⓒ, ㎏, 🅱."""
_CROSSES = frozenset("❌✗✘❎🚫🤔❓❔👎☒")
"""Ornaments that deny or doubt an answer. They are not cut off."""

MAX_REPEATED_CHARS = 120
"""The longest repeated sentence before its value, in characters. The copy before it may be twice as far away."""
MIN_VALUES = 3
"""Minimum number of different values in a loop or a list. Two values are a correction."""
MAX_ASIDE_CHARS = 3
"""Maximum number of characters that a repeated sentence may have after its value. `So 5 does not fit` has more."""
MAX_REPEATED = 64
"""Maximum number of repeated sentences that are read, counted from the end."""

_AROUND = f"{MARKS}$.。"
_BEGINS = re.compile(r".*(?:\n|[.?!](?=\s)|[。！？])\s{0,9}", re.DOTALL)
"""A text up to the beginning of its last sentence."""
_TURN = re.compile(
    r"\b(?:wait|hmm+|oops|no|actually|sorry|scratch|correction|mistaken?|wrong|incorrect|errors?|instead|not|but|let)\b"
    r"|不|错|更正|等等|아니|틀|違|待",
    re.IGNORECASE,
)
"""Words that replace one value by the next: `wait`, `actually`."""


def without_closings(text: str) -> str:
    """Return a text without the courtesies, signatures and marks that end it."""
    text = text.rstrip()
    for _ in range(MAX_CLOSINGS):
        shorter = without_ornaments(text)
        starts = [match.end() for match in _SENTENCE_START.finditer(shorter, max(0, len(shorter) - MAX_TAIL_CHARS))]
        start = starts[-1] if starts else 0
        if _closes(shorter[start:], shorter[:start]):
            shorter = shorter[:start].rstrip()
        if shorter == text or not shorter:
            break
        text = shorter
    return text


def without_ornaments(text: str) -> str:
    """Return a text without the symbols that decorate its end, such as ∎ and 😊."""
    end, stop = len(text), max(0, len(text) - MAX_ORNAMENTS)
    while end > stop and (text[end - 1].isspace() or _is_ornament(text[end - 1])):
        end -= 1
    text = text[:end]
    mark = _MARK.search(text, max(0, end - 20)) if "\\" in text[-20:] else None
    return text[: mark.start()].rstrip() if mark else text


def _is_ornament(character: str) -> bool:
    """Return whether a character only decorates: a symbol or an emoji that is not a letter, a unit or a cross."""
    if character < "\u200d" or character in _CROSSES:
        return False
    if character in "\u200d\ufe0f∎":
        return True
    code = ord(character)
    is_symbol = code >= 0x2300 and unicodedata.category(character) in ("So", "Sk")
    return is_symbol and not any(first <= code <= last for first, last in _NO_ORNAMENT)


def _closes(sentence: str, before: str) -> bool:
    """Return whether the last sentence of a text only closes it. `before` is the text in front of the sentence."""
    plain = sentence.strip()
    if _RULE.fullmatch(plain) or _QED.fullmatch(plain):
        return not (plain.endswith("```") and _CODE.match(before, before.rfind("```")))
    is_offer = plain.endswith(("?", "？")) and "=" not in plain and "$" not in plain
    if len(plain) > MAX_CLOSING_CHARS or (has_value(plain) and not is_offer):
        return False
    if _OBJECTION.search(plain) and not _IF_UNCLEAR.search(plain):
        return False
    if _COURTESY.search(plain) and (_PERSON.search(plain) or _GREETING.match(plain)):
        return True
    if is_offer or _NUMBER_WORD.search(plain):
        return False
    is_cheer = plain.endswith(("!", "！")) and len(plain.split()) <= MAX_CHEER_WORDS
    return is_cheer or bool(_CONFIRMATION.search(plain)) or _signs(plain, before)


def _signs(line: str, before: str) -> bool:
    """Return whether a line is a greeting such as `Best regards,` or the name below one."""
    if not before.endswith("\n"):
        return False
    above = before.rstrip().rpartition("\n")[2].strip()
    return bool(_SIGN_OFF.fullmatch(line)) or bool(_SIGN_OFF.fullmatch(above) and _NAME.fullmatch(line))


def repeated_values(text: str, answer: str) -> list[str]:
    """Return the values of sentences that end a text and differ only in their value.

    `answer` is the last of them. The list is empty for fewer than MIN_VALUES different values.
    """
    position = text.rfind(answer)
    window = text[max(0, position - MAX_REPEATED_CHARS) : position]
    begins = _BEGINS.match(window)
    closing = window[begins.end() if begins is not None else 0 :]
    if position == -1 or not closing.strip() or text.count(closing, 0, position) < MIN_VALUES:
        return []
    values = {answer.strip(_AROUND): None}
    start = position - len(closing)
    for _ in range(MAX_REPEATED):
        earlier = text.rfind(closing, max(0, start - 2 * MAX_REPEATED_CHARS), start)
        if earlier == -1 or _TURN.search(between := text[earlier + len(closing) : start]):
            break
        whole = between.strip(_AROUND).removesuffix("</answer>").strip(_AROUND)
        if (value := narrow(whole)) is None or len(whole) > len(value) + MAX_ASIDE_CHARS:
            break
        values.setdefault(value.strip(_AROUND))
        start = earlier
    return list(values)[::-1] if len(values) >= MIN_VALUES else []
