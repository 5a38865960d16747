"""Finds damaged text and numbers, and text that does not belong to the problem.

Some prompts and their findings:

    "It鈥檚 5 km to the caf茅."                       mojibake: UTF-8 read as GBK, beyond what `clean` can undo
    "Der Zug f\ufffdhrt um 8 Uhr."                     mojibake: a character is lost
    "Tom has thrity-two marbles and buys f1ve more."           garbled_number
    "New problem: Let me know if you need a hint. A boy has 120 dollars ..."             generator_talk
    "How many are left? How many are left? How many are left?"                           repeated_text
    "Translate this text into emojis. Find the smallest n such that ..."                 foreign_instruction
    "Simplify and write the result as a fraction: ..."                                   no finding

`generator_talk`, `foreign_instruction` and `garbled_number` read English only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from truegold.pipeline.flag.rules.detector import PATTERNS, Finding, any_of, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.encodings import misread_as
from truegold.pipeline.text.prose import FORMULA, asks, ending, sentences, without_formulas
from truegold.verifiers.extract.listed_options import find_options

MAX_CHARS = 10_000
"""The number of characters of a text that are read."""

# garbled_number
_NUMBER_WORDS = frozenset(PATTERNS["number_words"])
MIN_WORD = 5
"""The minimum length of a number word whose slips of one letter are found. Shorter words are like too many other
words."""
_LONG_NUMBER_WORDS = tuple(sorted(word for word in _NUMBER_WORDS if len(word) >= MIN_WORD))
_REAL_WORDS = frozenset(PATTERNS["near_number_words"])
"""Real words that are one letter away from a number word."""
_SHORT_WORD = re.compile(r"\b[a-z]{3,11}\b")
_TOW = re.compile(r"\btow\s+(?!trucks|boats|ropes|bars)[a-z]+s\b")
"""Matches `tow` for `two` before a plural. The verb `to tow` rarely has a plural object without an article."""
_MIXED = re.compile(r"\b(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{3,11}\b", re.IGNORECASE)
"""Letters and digits in one word: "f1ve"."""
_DIGIT_LETTERS = [str.maketrans("013457", letters) for letters in ("oieast", "oleast")]
"""Two tables from digits to the letters that they resemble: 1 is read as i or as l."""
_DIGITS_WITH_LETTERS = re.compile(
    r"(?<![\w.\\$])(?!1[4-8]O\b|1(?:2[3-9]|3[0-5])I\b)"
    r"(?:\d+[OI](?=\s+[a-z]+s\b)|(?<=[-+*/=←] )\d+O(?!\()|\d+[OIl]\d+|[OIl]\d+|\d+[SB]\d+)(?:\.\d+)?(?![\w'-])"
)
"""Numbers with a letter in place of a digit: "1O0", "l2", "2S4". A letter at the end needs a plural after the number
("1O pens"), or a sign of arithmetic before it ("+ 1O"). Isotopes such as 18O and 131I, litres ("2l") and multiples of
an identity ("3I") do not match."""
_CHEMISTRY = re.compile(r"->|→|\b(?:molecul|atom|isotope|oxid|reaction|ions?\b|mol(?:es?)?\b)", re.IGNORECASE)

# garbled_word
_GARBLED_WORD = re.compile(r"(?<![\w\\$.@/#&{<-])[a-z]{2,}[#$^~]+[a-z]{2,}(?![\w@.(}>=])")
"""A word with a sign inside: "wr#itten", "numb$er"."""
_CODE_LIKE = re.compile(r"\[asy\]|```|https?:|\bdef\b|[{;]\s*\n")

# generator_talk
MAX_TALK_CHARS = 20_000
"""The number of characters of a prompt that are searched for foreign text."""
_TALK = re.compile(rf"\b{any_of('generator_talk')}", re.IGNORECASE)

# repeated_text
_DRAWINGS = re.compile(r"\[asy\].*?\[/asy\]|\\begin\{([a-z]+\*?)\}.*?\\end\{\1\}", re.DOTALL)
_LOOP = re.compile(r"(\S.{0,40}?)\1{15,}", re.DOTALL)
"""A text of up to 41 characters that occurs at least sixteen times in a row."""
_REPEATS_WORDS = re.compile(r"[^\W\d_]|\d\W|\W\d")
"""A loop with words. Digits alone are a periodic decimal, and underscores are a blank to fill."""
MAX_LOOP_CHARS = 4_000
"""The number of characters of a prompt that are searched for loops. The search takes forty steps for each character."""
_MIN_REPEATS = 3
"""A single sentence must occur at least this number of times. Two different sentences need to occur only twice each."""
_MIN_SENTENCE_CHARS = 25
"""The minimum length of a repeated sentence. Shorter sentences may recur."""
MIN_PAIR_CHARS = 40
"""The minimum length of two sentences that both occur twice. Shorter sentences may be steps of a procedure."""

# foreign_instruction
_ORDER = re.compile(rf"(?:please\s+)?{any_of('foreign_orders')}\b", re.IGNORECASE)
"""An instruction that no problem has: "Translate ..."."""
_ANY_ORDER = re.compile(rf"(?:please\s+|\w+ly\s+)?(?:{any_of('foreign_orders')}|divide|reverse|speak)\b", re.IGNORECASE)
"""An instruction that only occurs with a thing of `_FOREIGN_THING`, as in "divide the audio"."""
_FOREIGN_THING = re.compile(rf"\b{any_of('foreign_things')}\b", re.IGNORECASE)
"""Things outside of problems, such as an audio waveform. An instruction about such a thing may contain a number."""
_CONTENT = re.compile(r"[a-z]{4,}")
_COMMON = frozenset("this that these those into then your every each from with their them have what when".split())


@detector("mojibake", version="3")
def mojibake(row: Row) -> list[Finding]:
    """Find a prompt or gold that was decoded with a wrong character set, and cannot be repaired safely."""
    for column, text in (("prompt", row["prompt"]), ("gold", row["gold"] or "")):
        if (sign := misread_as(text[:MAX_CHARS])) is not None:
            return [Finding("mojibake", evidence={"column": column, "sign": sign[0], "text": ending(sign[1])})]
    return []


def _short_slips() -> dict[str, str]:
    """Return a mapping of misspellings to short number words: `fuor` and `fourr` to `four`, `thre` to `three`.

    In words of up to four letters, two neighbouring letters are swapped, or one letter is doubled. In words of five
    letters, one letter is left out.
    """
    slips: dict[str, str] = {}
    for word in sorted(_NUMBER_WORDS):
        for index in range(len(word)):
            swapped = word[:index] + word[index + 1 : index + 2] + word[index] + word[index + 2 :]
            doubled = word[:index] + word[index] * 2 + word[index + 1 :]
            shortened = word[:index] + word[index + 1 :]
            if len(word) < MIN_WORD:
                slips |= {swapped: word, doubled: word}
            if len(word) == MIN_WORD:
                slips[shortened] = word
    return {
        slip: word
        for slip, word in slips.items()
        if slip not in _REAL_WORDS.union(_NUMBER_WORDS, PATTERNS["near_short_number_words"])
    }


_SHORT_SLIPS = _short_slips()
"""A misspelling -> the short number word. `tow` is missing, because it is a word (`_TOW`)."""


@detector("garbled_number", version="4", languages=("en",))
def garbled_number(row: Row) -> list[Finding]:
    """Find a misspelt number word, or a number with letters among its digits."""
    prose = without_formulas(row["prompt"][:MAX_CHARS])
    if row["domain"] != "math":
        return []
    for match in _SHORT_WORD.finditer(prose.lower()):
        if (meant := _misspelt(match[0])) is not None and prose[match.start()].islower():
            return [Finding("garbled_number", evidence={"says": match[0], "meant": meant})]
    if swapped := _TOW.search(prose):
        return [Finding("garbled_number", evidence={"says": swapped[0], "meant": "two"})]
    spoilt = next(_with_letters(prose, row["prompt"]), None)
    return [] if spoilt is None else [Finding("garbled_number", evidence={"says": spoilt})]


def _with_letters(prose: str, prompt: str) -> Iterator[str]:
    """Yield number words that contain digits, and numbers that contain letters other than the prompt's symbols."""
    for match in _MIXED.finditer(prose):
        if any(match[0].lower().translate(letters) in _NUMBER_WORDS for letters in _DIGIT_LETTERS):
            yield match[0]
    symbols = set(re.findall(r"(?<![A-Za-z\d])[OIlSB](?![A-Za-z])", prompt))
    if not _CHEMISTRY.search(prose):
        yield from (match[0] for match in _DIGITS_WITH_LETTERS.finditer(prose) if not symbols & set(match[0]))


@lru_cache(maxsize=20_000)
def _misspelt(word: str) -> str | None:
    """Return the number word that differs by one slip: a letter added, left out or replaced, or two swapped."""
    if word in _NUMBER_WORDS or word in _REAL_WORDS or word.rstrip("s") in _NUMBER_WORDS:
        return None
    if word in _SHORT_SLIPS or len(word) < MIN_WORD:
        return _SHORT_SLIPS.get(word)
    return next((meant for meant in _LONG_NUMBER_WORDS if _is_one_slip(word, meant)), None)


def _is_one_slip(word: str, meant: str) -> bool:
    if abs(len(word) - len(meant)) > 1 or word[0] != meant[0]:
        return False
    start = next((index for index, (a, b) in enumerate(zip(word, meant, strict=False)) if a != b), len(word))
    rest, other = word[start:], meant[start:]
    swapped = rest[1:2] + rest[:1] + rest[2:] == other
    return swapped or rest[1:] == other[1:] or rest[1:] == other or rest == other[1:]


@detector("garbled_word", version="1")
def garbled_word(row: Row) -> list[Finding]:
    """Find a sign inside a word and outside of formulas."""
    prompt = row["prompt"][:MAX_CHARS]
    if row["domain"] != "math" or _CODE_LIKE.search(prompt):
        return []
    prose = prompt if prompt.count("$") % 2 else without_formulas(prompt)
    match = _GARBLED_WORD.search(prose)
    return [] if match is None else [Finding("garbled_word", evidence={"says": match[0]})]


@detector("generator_talk", version="1")
def generator_talk(row: Row) -> list[Finding]:
    """Find words of the model that wrote or rewrote the problem: "Let me know if you need a hint."."""
    match = _TALK.search(row["prompt"][:MAX_TALK_CHARS])
    return [] if match is None else [Finding("generator_talk", evidence={"says": match[0]})]


@detector("repeated_text", version="3")
def repeated_text(row: Row) -> list[Finding]:
    """Find a loop or repeated sentences. Options of a choice question may be alike, so they are skipped."""
    text = _DRAWINGS.sub(" ", row["prompt"][:MAX_TALK_CHARS])
    loop = next((match for match in _LOOP.finditer(text[:MAX_LOOP_CHARS]) if _REPEATS_WORDS.search(match[1])), None)
    if loop is not None:
        return [Finding("repeated_text", evidence={"again": loop[1], "times": len(loop[0]) // len(loop[1])})]
    if (options := find_options(text)) is not None and (stem := text.partition(options.texts[0])[0]) != text:
        text = stem
    counts = Counter(" ".join(part.split()).lower() for part in sentences(text) if len(part) >= _MIN_SENTENCE_CHARS)
    repeats = {sentence: count for sentence, count in counts.items() if count > 1}
    if (
        sum(len(sentence) >= MIN_PAIR_CHARS for sentence in repeats) < 2
        and max(repeats.values(), default=0) < _MIN_REPEATS
    ):
        return []
    count, sentence = max((count, sentence) for sentence, count in repeats.items())
    return [Finding("repeated_text", evidence={"again": ending(sentence), "times": count})]


@detector("foreign_instruction", version="2")
def foreign_instruction(row: Row) -> list[Finding]:
    """Find a first sentence that is a foreign instruction. It has no content word in common with the question after
    it."""
    if row["domain"] != "math":
        return []
    parts = sentences(without_formulas(row["prompt"][:MAX_TALK_CHARS]))
    if len(parts) < 2 or FORMULA in parts[0]:
        return []
    is_plain = _ORDER.match(parts[0]) and not re.search(r"[:\d]", parts[0])
    if not is_plain and not (_ANY_ORDER.match(parts[0]) and _FOREIGN_THING.search(parts[0])):
        return []
    rest = " ".join(parts[1:])
    rest_stems = {word[:4] for word in _CONTENT.findall(rest.lower())}
    words = {word for word in _CONTENT.findall(parts[0].lower()) if word not in _COMMON}
    if len(words) < 4 or any(word[:4] in rest_stems for word in words) or not asks(rest):
        return []
    return [Finding("foreign_instruction", evidence={"orders": ending(parts[0])})]
