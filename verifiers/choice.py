r"""Multiple choice: does the response commit to the gold letter?

Gold is one letter A–Z, also as `(B)`, `B.` or `B) text`, or the text of one of `info["options"]`. The response commits
in any of the forms of `extract.py` (`\boxed{C}`, `the answer is (C)`, `Answer: C`), by `option C` or 选C, or by a last
line that is a letter alone. One that names two letters as its answer is hedging. Where `info["options"]` lists the
texts of the options in order, a text counts as its letter.

Not covered: several right letters, and a letter that stands somewhere in prose.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.extract import MAX_LINE_CHARS, Committed, committed_answer, final_part, last_line
from truegold.verifiers.verdict import Reason, Verdict

MAX_ANSWER_CHARS = 2_000
"""A longer answer is not a choice. Stops text made to be slow to normalise."""

_NO_INFO: Mapping[str, Any] = {}
_WRAPPER = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed|fbox)\s{0,3}(?=\{)")
_LABEL = re.compile(r"(?:the\s{1,3})?(?:correct\s{1,3})?(?:option|choice|answer|选项|选)\s{0,3}", re.IGNORECASE)
_BARE = re.compile(r"\(?\s{0,3}([A-Z])\s{0,3}[).:]?")
_LETTER_AND_TEXT = re.compile(r"(?:\(([A-Z])\)|([A-Z])[).:])\s{0,10}\S.*", re.DOTALL)
_LETTER_AND_REASON = re.compile(r"\(?([A-Z])\)?\s{0,3},?\s{1,3}(?:because|since|as)\b.*", re.DOTALL)
_SEVERAL = re.compile(
    r"\(?[A-Z]\)?(?:\s{0,3}(?:,|;|/|&|、|\bor\b|\band\b|或|和|\s)\s{0,3}(?:(?:or|and)\s{1,3})?\(?[A-Z]\)?){1,25}"
)
_ANOTHER_LABEL = re.compile(r"(?:[,;/或和]|\bor\b|\band\b)\s{0,3}(?:option\s{0,3})?\(?([A-Z])(?:[).:]|$)")
_A_LETTER = re.compile(r"\b[A-Z]\b")
_LOWER_CASE = re.compile(r"\(?([a-z])\)?")
_PROSE_COMMITMENT = re.compile(r"(?:\b(?:option|choice)\s{1,3}(?:is\s{1,3})?|选项?\s{0,3})(\(?[A-Z]\)?(?![A-Za-z']))")


@dataclass(frozen=True, slots=True)
class ChoiceVerifier:
    """Verifier `choice`. Reads `info["options"]`, the texts of the options in the order of their letters."""

    name: str = "choice"
    version: str = "1"

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = _NO_INFO,
    ) -> Verdict:
        if gold is None or not gold.strip():
            return Verdict(None, Reason.GOLD_MISSING)
        options = info.get("options") or []
        if not isinstance(options, list) or len(options) > 26 or not all(isinstance(text, str) for text in options):
            error = "options must be a list of at most 26 texts"
            return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": error})
        wanted = _letters(gold, options)
        if len(wanted) != 1:
            return Verdict(None, Reason.GOLD_UNPARSED, evidence={"gold": gold[:MAX_ANSWER_CHARS]})
        return _against(wanted, _committed(response), options)

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        return f"\\boxed{{{''.join(_letters(gold, ())) or gold}}}"


def _against(wanted: set[str], found: Committed | None, options: Sequence[str]) -> Verdict:
    if found is None:
        return Verdict(0.0, Reason.NO_ANSWER)
    if len(found.text) > MAX_ANSWER_CHARS:
        return Verdict(None, Reason.LIMIT, evidence={"answer_chars": len(found.text), "limit": MAX_ANSWER_CHARS})
    letters = _letters(found.text, options)
    evidence = {"gold": "".join(wanted), "answer": "".join(sorted(letters)), "form": found.form}
    if len(letters) > 1:
        return Verdict(0.0, Reason.HEDGED, found.text, evidence)
    match = letters == wanted
    return Verdict(float(match), Reason.MATCH if match else Reason.MISMATCH, found.text, evidence)


def _committed(response: str) -> Committed | None:
    text = final_part(response)
    line = last_line(text)[:MAX_LINE_CHARS]
    found = committed_answer(response)
    if found is not None and found.form != "whole_response":
        return found
    if _BARE.fullmatch(line) or _SEVERAL.fullmatch(line):
        return Committed(line, "last_line")
    named = _PROSE_COMMITMENT.findall(line)
    if named:  # every letter it names on that line, so that two of them are seen as two
        return Committed(", ".join(dict.fromkeys(named)), "option")
    return found


def _letters(text: str, options: Sequence[str]) -> set[str]:
    """The letters that an answer names; empty where it names none."""
    plain = _plain(text)
    texts = [_plain(option).casefold() for option in options]
    if plain.casefold() in texts and not _BARE.fullmatch(plain):
        return {chr(ord("A") + texts.index(plain.casefold()))}
    return _named(_LABEL.sub("", plain, count=1) if _LABEL.match(plain) else plain)


def _named(plain: str) -> set[str]:
    if match := _BARE.fullmatch(plain) or _LETTER_AND_REASON.fullmatch(plain):
        return {match.group(1)}
    if match := _LOWER_CASE.fullmatch(plain):
        return {match.group(1).upper()}
    if _SEVERAL.fullmatch(plain):
        return set(_A_LETTER.findall(plain))
    if match := _LETTER_AND_TEXT.fullmatch(plain):
        return {match.group(1) or match.group(2), *_ANOTHER_LABEL.findall(plain)}
    return set()


def _plain(text: str) -> str:
    """Without markup, maths delimiters and runs of blanks; full-width letters as ordinary ones."""
    text = unicodedata.normalize("NFKC", text[:MAX_ANSWER_CHARS])
    text = _WRAPPER.sub("", text).replace("$", " ").replace("{", " ").replace("}", " ").replace("\\", " ")
    return " ".join(text.split()).strip("*_`。 ")
