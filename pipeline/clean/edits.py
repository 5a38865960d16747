r"""Cleans one text step by step, so that every change is recorded with its reason.

    "How many&nbsp;apples?<br>"  ->  html_entities  ->  html_tags  ->  whitespace  ->  "How many apples?"

A step may uncover work for an earlier step, so the steps run in rounds until the text no longer changes. In code only
CRLF and NUL are changed, because other characters may be part of a program's meaning. The steps for markup and LaTeX
are in `markup`. The steps here handle characters, and the words that a data set or a chat puts around a problem:
    "\ufeffHow  many\u00a0apples?\r\n\r\n\r\n\r\nGive a number. \n"              "How  many apples?\n\nGive a number."
    "Question 3: How many apples?"                                                     "How many apples?"
    "How many \u0430pples?" (\u0430 is the Cyrillic a)                                   "How many apples?"
    "Find x. Please reason step by step, and put your final answer within \boxed{}."   "Find x."

Every step takes time linear in the text, even for a megabyte of blanks. Cleaning a cleaned text changes nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

import re2

from truegold.pipeline.clean import markup
from truegold.pipeline.config.stages import CleanConfig, EditName
from truegold.pipeline.text.encodings import repair_mojibake, replace_look_alikes
from truegold.verifiers import ConfigError
from truegold.verifiers.entities import decode_entities

END_SPAN = 200
"""The number of characters at the end of a text that are searched for boilerplate. A user's pattern may be slow."""

_UNKNOWN_TO_RE2 = re.compile(r"[^\S \t\n\f\r]|[^\D0-9]")
"""Blanks and digits that Python's `\\s` and `\\d` match, but RE2's `\\s` and `\\d` do not match."""
_LOOKAROUND = re.compile(r"\(\?<?[=!](?:[^()\[\]\\]|\\.|\[(?:[^\]\\]|\\.)+\]|\([^()]*\))*\)")
_UNLIKE_RE2 = re.compile(r"(?<!\\)\$(?![^\[]*\])|\\[ABZbwW]|(?<!\[)\^")
r"""The parts of a pattern that RE2 matches differently: `$`, `^`, `\b`, `\w` and the like."""
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_INVISIBLE = re.compile("[\u00ad\u180e\u200b\u2060-\u2064\ufeff]")
_DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks of writing direction. They have no effect in a text without right-to-left letters."""
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_OTHER_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_FULL_WIDTH_ALNUM = {code: ascii_code for code, ascii_code in _FULL_WIDTH.items() if chr(ascii_code).isalnum()}
_FULL_WIDTH_SIGN = re.compile("[\uff01-\uff5e]")
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff66-\uff9f]")
"""Letters of the scripts with full-width punctuation."""
_LATIN_WORD = re.compile(r"[A-Za-z]{3}")
"""A word of prose. Full-width commas become ASCII only in prose, because the gold `1，200` may be two numbers."""
_LIGATURE_OR_STYLED = re.compile("[\ufb00-\ufb06]|[\U0001d400-\U0001d7cb]{3,}|[\U0001d7ce-\U0001d7ff]")
"""A ligature, a word in mathematical letters, or a mathematical digit. A single mathematical letter stays: it may be a
vector."""
_EMPTY_LINES = re.compile(r"\n{3,}")
# Zero-width joiners and non-joiners have meaning between letters of Arabic and Indic scripts, and join emoji.
_JOINS = (
    "\u0590-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u1900-\u1cff\ua840-\uabff\ufb1d-\ufdff\ufe70-\ufefc"
    "\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\ufe0f"
    "\U00010a00-\U00011fff\U0001e900-\U0001e95f\U0001f000-\U0001faff\U000e0020-\U000e007f"
)
_STRAY_JOINER = re.compile(f"(?<![{_JOINS}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINS}])")
MAX_ROUNDS = 6
"""The maximum number of rounds over a text. Ordinary texts need two rounds. Other texts may be built to need many."""
Step = tuple[str, Callable[[str], str]]
"""The reason of an edit, and the function that makes it."""
CODE: tuple[Step, ...] = (
    ("control_characters", lambda text: text.replace("\x00", "")),
    ("whitespace", lambda text: text.replace("\r\n", "\n")),
)
"""The steps for code: a program, or a prompt that is code."""
EDITS: tuple[EditName, ...] = get_args(EditName)
"""All reasons of edits."""


class Boilerplate:
    """Cuts the configured phrases off both ends of a prompt."""

    def __init__(self, config: CleanConfig) -> None:
        self._minimum = config.min_prompt_chars
        self._starts = [_compile(pattern, "boilerplate", "(?:{})") for pattern in config.boilerplate]
        self._ends = [_compile(pattern, "boilerplate_end", r"(?:{})\s*\Z") for pattern in config.boilerplate_end]
        self._may_cut = _glance(config.boilerplate, config.boilerplate_end)

    def cut(self, text: str) -> str:
        """Return `text` without boilerplate. A phrase stays if fewer than `min_prompt_chars` characters would be
        left."""
        while (shorter := self._cut_phrase(text)) is not None:
            text = shorter
        return text

    def _cut_phrase(self, text: str) -> str | None:
        """Return `text` without the first phrase that matches, or None if no phrase matches."""
        known_to_re2 = (text.isascii() and text.isprintable()) or not _UNKNOWN_TO_RE2.search(text)
        if known_to_re2 and self._may_cut and not self._may_cut.search(text):
            return None
        for pattern in self._starts:
            match = pattern.match(text)
            if match and match.end() and len(rest := text[match.end() :].lstrip(" \t\n")) >= self._minimum:
                return rest
        for pattern in self._ends:
            match = pattern.search(text, max(0, len(text) - END_SPAN))
            if match and match[0] and len(rest := text[: match.start()].rstrip(" \t\n")) >= self._minimum:
                return rest
        return None


def _compile(pattern: str, field: str, frame: str) -> re.Pattern[str]:
    try:
        re.compile(pattern)
        return re.compile(frame.replace("{}", pattern), re.IGNORECASE)
    except re.error as error:
        raise ConfigError(f"clean.{field}: the pattern {pattern!r} is invalid: {error}.") from None


def _glance(starts: Sequence[str], ends: Sequence[str]) -> re2.Pattern[str] | None:
    """Return one RE2 pattern that matches wherever any of the patterns matches. It is a fast first test. Lookarounds
    are removed, so the RE2 pattern may match more. Returns None if RE2 may read a pattern differently."""
    bare = [_LOOKAROUND.sub("", pattern) for pattern in (*starts, *ends)]
    if any("(?" in part.replace("(?:", "") or _UNLIKE_RE2.search(part) for part in bare):
        return None
    framed = [rf"\A(?:{part})" for part in bare[: len(starts)]] + [rf"(?:{part})\s*\z" for part in bare[len(starts) :]]
    options = re2.Options()
    options.case_sensitive, options.log_errors = False, False
    try:
        return re2.compile("|".join(framed), options)
    except re2.error:
        return None


def drop_control_characters(text: str) -> str:
    """Return the text without control characters, except for tabs and line ends."""
    return text if text.isprintable() else _CONTROL.sub("", text)


def unify_encoding(text: str) -> str:
    """Return the text in NFC, with ASCII for full-width and styled letters and without stray invisible characters.

    Full-width punctuation stays in Chinese, Japanese and Korean texts, and in texts without any Latin word.
    """
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    if _DIRECTIONS.search(text) and not _RIGHT_TO_LEFT.search(text):
        text = _DIRECTIONS.sub("", text)
    if _FULL_WIDTH_SIGN.search(text):
        text = text.translate(_FULL_WIDTH_ALNUM)
        if _LATIN_WORD.search(text) and not _EAST_ASIAN.search(text):
            text = text.translate(_FULL_WIDTH)
    text = _LIGATURE_OR_STYLED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    # A removed invisible character can bring a letter and its accent together. So NFC is applied again.
    return unicodedata.normalize("NFC", _STRAY_JOINER.sub("", text))


def simplify_whitespace(text: str) -> str:
    """Return the text with simple line ends and blanks, no blanks at its ends, and at most one empty line in a row."""
    if not text.isascii():
        text = _OTHER_SPACES.sub(" ", _LINE_ENDS.sub("\n", text))
    elif "\r" in text or "\x0b" in text or "\x0c" in text:
        text = _LINE_ENDS.sub("\n", text)
    if " \n" in text or "\t\n" in text:
        # The pattern "[ \t]+\n" would take quadratic time on a long run of blanks.
        text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return (_EMPTY_LINES.sub("\n\n", text) if "\n\n\n" in text else text).strip(" \t\n")


PROSE: tuple[Step, ...] = (
    ("mojibake", repair_mojibake),
    ("damaged_latex", markup.repair_commands),
    ("control_characters", drop_control_characters),
    ("html_entities", decode_entities),
    ("html_tags", markup.replace_tags),
    ("unicode", unify_encoding),
    ("look_alikes", replace_look_alikes),
    ("whitespace", simplify_whitespace),
    ("doubled_backslashes", markup.halve_backslashes),
    ("written_newlines", markup.unescape_newlines),
    ("lost_backslashes", markup.restore_backslashes),
    ("stray_dollar", markup.drop_stray_dollar),
)
"""The steps of a round, in order. Mojibake and damaged LaTeX come first, because a later step removes the control
characters that show them."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One step that changed a text."""

    reason: str
    """The name of the step."""
    before: str
    """The text before the step."""
    after: str
    """The text after the step."""


def clean_prose(text: str, skip: Collection[str] = (), extra_steps: Iterable[Step] = ()) -> list[Edit]:
    """Return the edits that clean a text; empty if it is clean. `extra_steps` run after PROSE."""
    further = [step for step in extra_steps if step[0] not in skip]
    edits: list[Edit] = []
    for _ in range(MAX_ROUNDS):
        common = () if _is_plain(text) else PROSE
        round_edits = _run_steps(text, [step for step in common if step[0] not in skip] + further)
        if not round_edits:
            break
        edits += round_edits
        text = round_edits[-1].after
    return edits


def _is_plain(text: str) -> bool:
    """Return True if a quick test shows that no step of PROSE changes the text."""
    return (
        text.isascii()
        and text.isprintable()
        and not ("\\" in text or "<" in text or "&" in text or "frac" in text or "sqrt" in text)
        and text[:1] not in " $"
        and text[-1:] not in " $"
    )


def clean_code(text: str, skip: Collection[str] = ()) -> list[Edit]:
    """Return the edits that clean a program, or a prompt that is code."""
    return _run_steps(text, [step for step in CODE if step[0] not in skip])


def _run_steps(text: str, steps: Iterable[Step]) -> list[Edit]:
    edits = []
    for reason, step in steps:
        after = step(text)
        if after != text:
            edits.append(Edit(reason, text, after))
            text = after
    return edits
