r"""The options of a multiple-choice question, read from its prompt.

    "Which is prime?\n(A) 4\n(B) 7\n(C) 9"                               ["4", "7", "9"]
    "... is: $\textbf{(A)}\ 1:2\qquad \textbf{(B)}\ 1:3 \qquad ...$"     ["1:2", "1:3", ...]
    "下列运算正确的是（） A. $a^2$ B. $a^3$ C. $a^4$ D. $a$"                ["$a^2$", "$a^3$", "$a^4$", "$a$"]
    "In triangle $ABC$ with angles (A), (B) ..."                          None: no run of options

Labels must run from A without a gap, each with a text of its own; an option in the last place ends with its line. What
is not plainly such a list gives None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice, pairwise

from truegold.verifiers.answers.choice import ChoiceVerifier

MIN_OPTIONS = 3
MAX_OPTIONS = 10
MAX_OPTION_CHARS = 400
MAX_MARKS = 400
"""Labels looked at in one prompt. Stops one that is made of nothing else."""

_FONT = r"(?:\\(?:textbf|textrm|textup|text|mathrm|mathbf|bf|rm)\s{0,2}\{?\s{0,2})"
_PATTERNS = (
    # (A)   \textbf{(A)}   (\mathrm{A})   \mathrm{\textbf{(A)} \ }
    re.compile(
        rf"(?:{_FONT}{{1,2}}|(?<![\w\\)]))[(（]\s{{0,2}}{_FONT}?([A-J])\}}?\s{{0,2}}[)）]"
        r"(?:(?:\s|\\ |~){0,3}\}){0,2}"
    ),
    # A.   A、   A)   A:   at the start of a line, behind a blank or behind the end of the question
    re.compile(r"(?:(?<=\s)|^|(?<=[?？。:：）)$]))\**([A-J])\**\s{0,2}[.．、)）:：](?!=)", re.MULTILINE),
    # (a)   a)   each on a line of its own, where parts of a question stand as well
    re.compile(r"^\s{0,8}\(?([a-j])[.)](?=\s)", re.MULTILINE),
)
_DRAWING = re.compile(r"\[asy\].*?\[/asy\]", re.DOTALL)
_GAP = r"\s|\\[ ,;:!]|~|\\(?:qquad|quad|indent|newline|hfill|hspace\{[^{}]{0,20}\})(?![A-Za-z])|\\\\"
_EDGES = re.compile(rf"\A(?:{_GAP}|\$\$|[,;，；](?=\s))+|(?:{_GAP}|[,;，；])+\Z")


@dataclass(frozen=True, slots=True)
class Options:
    """The texts of the options in the order of their letters. `may_be_parts`: the labels are small letters."""

    texts: tuple[str, ...]
    may_be_parts: bool = False

    @property
    def letters(self) -> str:
        return "".join(chr(ord("A") + place) for place in range(len(self.texts)))


@dataclass(frozen=True, slots=True)
class _Mark:
    letter: str
    start: int
    end: int


def find_options(prompt: str) -> Options | None:
    """The last whole list of options in the prompt."""
    if not (("B" in prompt and "C" in prompt) or ("b" in prompt and "c)" in prompt)):
        return None
    drawn = _DRAWING.sub(lambda match: "-" * len(match[0]), prompt)  # points are called A and B there
    for pattern in _PATTERNS:
        found = islice(pattern.finditer(drawn), MAX_MARKS)
        marks = [_Mark(m[1].upper(), m.start(), m.end()) for m in found if not _closes_bracket(drawn, m)]
        if (run := _last_run(marks)) and (texts := _texts(prompt, run)):
            return Options(texts, may_be_parts=pattern is _PATTERNS[-1])
    return None


def _closes_bracket(text: str, match: re.Match[str]) -> bool:
    r"""Whether the bracket of `A)` belongs to one that opened before, as in `(\sin A)`."""
    before = text[max(0, match.start() - 40) : match.start()]
    return match[0].rstrip().endswith(")") and "(" not in match[0] and before.rfind("(") > before.rfind(")")


def _last_run(marks: list[_Mark]) -> list[_Mark] | None:
    """The last A, B, C, ... that nothing interrupts and that goes on to the last label."""
    starts = [place for place, mark in enumerate(marks) if mark.letter == "A"]
    if not starts:
        return None
    run = marks[starts[-1] :]
    in_order = all(ord(mark.letter) == ord("A") + place for place, mark in enumerate(run))
    return run if in_order and MIN_OPTIONS <= len(run) <= MAX_OPTIONS else None


def _texts(prompt: str, run: list[_Mark]) -> tuple[str, ...] | None:
    raw = [prompt[mark.end : following.start] for mark, following in pairwise(run)]
    last = prompt[run[-1].end :].lstrip(" \t\n~")
    line_end = last.find("\n", max(last.find("[/asy]"), 0))
    raw.append(last if line_end < 0 else last[:line_end])
    if any(len(text) > 2 * MAX_OPTION_CHARS and "[asy]" not in text for text in raw):
        return None
    texts = [_option(text) for text in raw]
    if not all(texts) or len(set(texts)) < len(texts):
        return None
    # What follows the last option on its line, such as another question, cannot be told from it.
    return tuple(texts) if len(texts[-1]) <= 3 * max(map(len, texts[:-1])) + 40 else None


def _option(text: str) -> str:
    """One option's text: layout and half of a pair of dollar signs at its ends are not its own."""
    for _ in range(3):
        text = _EDGES.sub("", text)
        if text.count("$") % 2 == 1:
            text = text[:-1] if text[-1:] == "$" else text.removeprefix("$")
        if text[-1:] == "}" and text.count("{") < text.count("}"):
            text = text[:-1]
        for opening, closing in ((r"\[", r"\]"), (r"\(", r"\)")):
            if text.endswith(closing) and opening not in text:
                text = text[:-2]
    return text.rstrip("?？ ")


def chosen(options: Options, gold: str) -> str | None:
    """The letter or letters that gold names, by letter or by the text of one option alone; None where it names none."""
    plain = re.sub(r"[\s,，、;；$(){}（）.]|\\(?:text|textbf|mathrm|mathbf)", "", gold)
    if 1 < len(plain) <= len(options.texts) and re.fullmatch("[A-J]+", plain):
        ordered = "".join(sorted(set(plain)))
        return ordered if ordered == plain and set(plain) <= set(options.letters) else None
    if options.may_be_parts and not re.fullmatch("[A-Ja-j]", plain):
        return None
    verifier = ChoiceVerifier()
    info = {"options": list(options.texts)}
    named = [letter for letter in options.letters if verifier(f"\\boxed{{{gold}}}", letter, info=info).passed]
    return named[0] if len(named) == 1 else None
