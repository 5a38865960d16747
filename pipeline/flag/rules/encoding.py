"""Rules about text in the wrong encoding or in another language than the rest.

Some prompts and their findings:

    "It鈥檚 5 km to the caf茅."                       mojibake: UTF-8 read as GBK; what `clean` can undo, it undoes
    "Tom has 5 apples. 他又买了三个苹果。How many ...?"  foreign_fragment
    "Der Zug f\ufffdhrt um 8 Uhr."                     mojibake: characters are lost for good
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.encodings import misread_as
from truegold.pipeline.text.language import UNKNOWN, language_of, sure_language
from truegold.pipeline.text.prose import FORMULA, ending, sentences, without_formulas

MAX_CHARS = 10_000
"""The part of a text that is read."""


@detector("mojibake", version="1")
def mojibake(row: Row) -> list[Finding]:
    """Prompt or gold was decoded with a wrong character set, in a way that cannot be undone safely."""
    for column, text in (("prompt", row["prompt"]), ("gold", row["gold"] or "")):
        if (sign := misread_as(text[:MAX_CHARS])) is not None:
            return [Finding("mojibake", evidence={"column": column, "sign": sign[0], "text": ending(sign[1])})]
    return []


_SCRIPTS = {
    "Han": "[\u3400-\u9fff]",
    "kana": "[\u3041-\u3096\u30a1-\u30fa]",
    "Hangul": "[\uac00-\ud7af]",
    "Cyrillic": "[\u0400-\u04ff]",
    "Arabic": "[\u0620-\u064a]",
    "Hebrew": "[\u05d0-\u05ea]",
    "Devanagari": "[\u0904-\u0939]",
    "Thai": "[\u0e01-\u0e30]",
}
_RUNS = {
    name: re.compile(rf"(?:{letter}[\s，。、,.!?？\u0300-\u036f\u064b-\u065f\u093a-\u094d\u0e31-\u0e4e]*){{4,}}")
    for name, letter in _SCRIPTS.items()
}
_WITHOUT_SPACES = ("Han", "kana", "Thai")
_LATIN_WORDS = re.compile(r"(?:\b[a-z]{2,}\b[\s,]*){6,}")
_LETTER = re.compile(r"[^\W\d_]")
MIN_FRAGMENT_LETTERS = 25
"""A shorter sentence of Latin letters is names and symbols as often as another language."""


@detector("foreign_fragment", version="1")
def foreign_fragment(row: Row) -> list[Finding]:
    """A part of the prompt is in another language than the rest."""
    text = without_formulas(row["prompt"][:MAX_CHARS]).replace(FORMULA, " ")
    if row["domain"] == "code" or _asks_for_translation(text):
        return []
    fragment = _fragment_in_another_script(text) or _fragment_in_another_language(text)
    return [] if fragment is None else [Finding("foreign_fragment", evidence=fragment)]


def _fragment_in_another_script(text: str) -> dict[str, str] | None:
    """Return a phrase in another alphabet beside a phrase in the Latin one."""
    if text.isascii() or not _LATIN_WORDS.search(text):
        return None
    for script, pattern in _RUNS.items():
        match = pattern.search(text)
        # One word of another alphabet is a name, or what the problem is about.
        if match and (script in _WITHOUT_SPACES or " " in match[0].strip()):
            return {"script": script, "says": ending(match[0])}
    return None


def _fragment_in_another_language(text: str) -> dict[str, str] | None:
    """Return a sentence that is surely in another language than the rest surely is."""
    language = language_of(text)
    parts = [part for part in sentences(text) if len(_LETTER.findall(part)) >= MIN_FRAGMENT_LETTERS]
    for part in parts if len(parts) > 1 and language != UNKNOWN else ():
        other = sure_language(part)
        if other not in (UNKNOWN, language) and sure_language(text.replace(part, " ")) == language:
            return {"language": other, "says": ending(part)}
    return None


def _asks_for_translation(text: str) -> bool:
    return bool(re.search(r"\btranslat|翻译|\bpronounc|\bspelled\b", text, re.IGNORECASE))
