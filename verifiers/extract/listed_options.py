r"""Reads the options of a multiple-choice question from its prompt.

    "Which is prime?\n(A) 4\n(B) 7\n(C) 9"                            -> ["4", "7", "9"]
    "... is: $\textbf{(A)}\ 1:2\qquad \textbf{(B)}\ 1:3 \qquad ...$"  -> ["1:2", "1:3", ...]
    "下列运算正确的是（） A. $a^2$ B. $a^3$ C. $a^4$ D. $a$"             -> ["$a^2$", "$a^3$", "$a^4$", "$a$"]
    "In triangle $ABC$ with angles (A), (B) ..."                       -> None: no run of options

Labels run from A without a gap, and each has its own text. The last option ends with its line. Any other list gives
None. A list without letters is read only if gold is one of its options (`worded_options`):

    "... Answer Choices: rust / mould / moss", gold "mould"             -> ["rust", "mould", "moss"]
    "... the sentiment: positive or negative", gold "positive"          -> ["positive", "negative"]
    "Who is older, Tom or Ann?", gold "Ann"                             -> ["Tom", "Ann"]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

MIN_OPTIONS = 3
MAX_OPTIONS = 26
MAX_OPTION_CHARS = 400
MAX_LABELS = 400
"""Maximum number of labels in a prompt that are examined. Stops a prompt that consists of labels."""

_FONT = r"(?:\\(?:textbf|textrm|textup|text|mathrm|mathbf|bf|rm)\s{0,2}\{?\s{0,2})"
"""A LaTeX command that sets a label in another font."""
_PATTERNS = (
    # The labels are (A)   \textbf{(A)}   (\mathrm{A})   \mathrm{\textbf{(A)} \ }.
    re.compile(
        rf"(?:{_FONT}{{1,2}}|(?<![\w\\)]))[(（]\s{{0,2}}{_FONT}?([A-Z])\}}?\s{{0,2}}[)）]"
        r"(?:(?:\s|\\ |~){0,3}\}){0,2}"
    ),
    # The labels are A.   A、   A)   A:   at the start of a line, after a blank, a question or a semicolon.
    re.compile(r"(?:(?<=\s)|^|(?<=[?？。:：）)$;；]))\**([A-J])\**\s{0,2}[.．、)）:：](?!=)", re.MULTILINE),
    # The labels are (a)   a)   each at the start of a line. Parts of a question may be labelled in the same way.
    re.compile(r"^\s{0,8}\(?([a-j])[.)](?=\s)", re.MULTILINE),
)
"""Patterns of labels, the clearest first."""
_DRAWING = re.compile(r"\[asy\].*?\[/asy\]", re.DOTALL)
"""A drawing in the language Asymptote."""
_GAP = r"\s|\\[ ,;:!]|~|\\(?:qquad|quad|indent|newline|hfill|hspace\{[^{}]{0,20}\})(?![A-Za-z])|\\\\"
_EDGES = re.compile(rf"\A(?:{_GAP}|\$\$|[,;，；](?=\s))+|(?:{_GAP}|[,;，；])+\Z")
"""Layout and separators at the ends of an option."""

MAX_LISTED_CHARS = 4_000
"""Maximum number of characters at the end of a prompt that are searched for a list without letters."""
MAX_WORDED_OPTIONS = 20
"""Maximum number of items in a list of options without letters."""
_WORDS = re.compile(r"(?=.*[^\W\d_]{2})[^\d\\$^=+<>|]+", re.DOTALL)
"""A gold that consists of words."""
_SEPARATORS = tuple(
    re.compile(separator)
    for separator in (
        *(r"\s*\n\s*(?:[-*•·]\s+)?", r"\s+[/|]\s+", r"\s*[;；]\s*", r"\s*[/|、]\s*(?:(?:or|and)\s+)?"),
        r"\s*[,，、]\s*(?:(?:or|and|oder|ou|o)\s+|[或和还])?|\s+(?:or|and|oder|ou|o)\s+|\s*(?:或者?|还是)\s*",
    )
)
"""Separators of options. Commas come last, since an option may have a comma in it."""
_AFTER_COLON = re.compile(r"[:：]\s*(?P<list>(?:[-*•·]\s[^\n]+(?:\n\s*|\Z)){2,20}|[^\n:：]*[^\s:：]\s*(?:\n|\Z))")
"""A list after a colon: lines with bullets, or the rest of one line."""
_NAME = r"[^\W\d_][\w'’-]{0,40}"
_AFTER_WORDS = re.compile(
    r"(?:\b(?:from|among|amongst|between|either|as|with|into|one of)\s|从|属于|选择|回答|判断为"
    r"|[是为](?=[^，。]{1,20}还是))[\s:：]{0,3}(?P<list>[^\n.。?？:：$\\]{3,300})",
    re.IGNORECASE,
)
"""A list after words such as `one of` and `between`."""
_OR = rf"\s(?:or|oder|ou|o)\s(?:an?\s)?{_NAME}"
_ALTERNATIVES = re.compile(rf"(?<![\w'’-])(?P<list>(?:{_NAME},\s){{1,10}}{_NAME},{_OR}|{_NAME}{_OR})(?!\w)")
"""Words joined by `or`: `even or odd`, `positive, neutral, or negative`."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a question."""

    texts: tuple[str, ...]
    """Their texts in the order of their letters."""
    may_be_parts: bool = False
    """Whether the labels are small letters, which may also name parts of the problem."""

    @property
    def letters(self) -> str:
        """The letters of all options, from A."""
        return "".join(chr(ord("A") + index) for index in range(len(self.texts)))


@dataclass(frozen=True, slots=True)
class _Label:
    """A label of an option with its positions in the prompt."""

    letter: str
    start: int
    end: int


def find_options(prompt: str) -> Options | None:
    """Return the last complete list of options in the prompt, or None if there is none."""
    if not (("B" in prompt and "C" in prompt) or ("b" in prompt and "c)" in prompt)):
        return None
    # Drawings are masked, because they name points A and B.
    masked = _DRAWING.sub(lambda match: "-" * len(match[0]), prompt)
    for pattern in _PATTERNS:
        matches = islice(pattern.finditer(masked), MAX_LABELS)
        labels = [_Label(m[1].upper(), m.start(), m.end()) for m in matches if not _closes_bracket(masked, m)]
        if (run := _last_run(labels)) and (texts := _option_texts(prompt, run)):
            return Options(texts, may_be_parts=pattern is _PATTERNS[-1])
    return None


@lru_cache(maxsize=1_024)  # Cached, because many responses have the same problem.
def option_texts(problem: str) -> tuple[str, ...]:
    """Return the texts of a problem's options, or an empty tuple if it has none or its labels may be those of parts."""
    options = find_options(problem)
    return () if options is None or options.may_be_parts else options.texts


def worded_options(prompt: str, gold: str) -> tuple[str, ...] | None:
    """Return the last list of options without letters that has gold as one option, or None.

    Gold has to be words, because numbers and formulas are compared by value. The list stands after a colon or after
    words such as `one of`, or it consists of words joined by `or`: "even or odd".
    """
    bare_gold = _bare_option(gold)
    if len(bare_gold) > MAX_OPTION_CHARS or not _WORDS.fullmatch(bare_gold) or bare_gold not in prompt.casefold():
        return None
    listed = prompt[-MAX_LISTED_CHARS:]
    for pattern in (_AFTER_COLON, _ALTERNATIVES, _AFTER_WORDS):
        for match in reversed(list(islice(pattern.finditer(listed), MAX_LABELS))):
            for separator in _SEPARATORS if pattern is not _ALTERNATIVES else _SEPARATORS[-1:]:
                texts = [text for text in map(_strip_option, separator.split(match["list"])) if text]
                bare = [_bare_option(text) for text in texts]
                if bare.count(bare_gold) == 1 and 1 < len(set(bare)) == len(bare) <= MAX_WORDED_OPTIONS:
                    return tuple(texts)
    return None


def _strip_option(text: str) -> str:
    return text.strip(" \t\r\n\"'`“”‘’「」*•_()（）[]{}<>。-")


def _bare_option(text: str) -> str:
    return " ".join(_strip_option(text).rstrip(".。;；!！").casefold().split())


def spoilt_options(prompt: str) -> str | None:
    """Return the fault of a list of options that `find_options` rejects, or None.

    Faults are a letter that stands twice, an option without a text, and two options with the same text.
    """
    masked = _DRAWING.sub(lambda match: "-" * len(match[0]), prompt)
    for pattern in _PATTERNS[:2]:
        matches = islice(pattern.finditer(masked), MAX_LABELS)
        labels = [_Label(m[1].upper(), m.start(), m.end()) for m in matches if not _closes_bracket(masked, m)]
        first = next((index for index in range(len(labels)) if _rises(labels[index:])), None)
        if first is None:
            continue
        run = labels[first:]
        texts = [prompt[label.end : after.start].strip() for label, after in pairwise(run)]
        texts.append(prompt[run[-1].end :].split("\n", 1)[0].strip())
        # "Answer with A, B or C." repeats the last letter and is not an option.
        if not texts[-1] and run[-1].letter == run[-2].letter:
            run, texts = run[:-1], texts[:-1]
        if any(len(text) > MAX_OPTION_CHARS for text in texts):
            continue
        if len({label.letter for label in run}) < len(run):
            return "a letter stands twice"
        if not all(texts):
            return "an option has no text"
        if len(set(texts)) < len(texts):
            return "two options are the same"
    return None


def _rises(labels: list[_Label]) -> bool:
    """Tell whether labels rise from A by single steps, with repeated letters allowed: A, B, B, C."""
    if len(labels) < MIN_OPTIONS or labels[0].letter != "A":
        return False
    steps = [ord(after.letter) - ord(label.letter) for label, after in pairwise(labels)]
    return set(steps) <= {0, 1} and 1 in steps


def _closes_bracket(text: str, match: re.Match[str]) -> bool:
    r"""Tell whether the bracket of a label closes an earlier one: the `A)` of `(\sin A)`."""
    before = text[max(0, match.start() - 40) : match.start()]
    return match[0].rstrip().endswith(")") and "(" not in match[0] and before.rfind("(") > before.rfind(")")


def _last_run(labels: list[_Label]) -> list[_Label] | None:
    """Return the labels from the last A on, if they are A, B, C, ... without a gap. Otherwise, return None."""
    starts = [index for index, label in enumerate(labels) if label.letter == "A"]
    if not starts:
        return None
    run = labels[starts[-1] :]
    in_order = all(ord(label.letter) == ord("A") + index for index, label in enumerate(run))
    return run if in_order and MIN_OPTIONS <= len(run) <= MAX_OPTIONS else None


def _option_texts(prompt: str, run: list[_Label]) -> tuple[str, ...] | None:
    """Return the text after each label, or None if a text is missing, repeated, or too long for an option."""
    raw = [prompt[label.end : following.start] for label, following in pairwise(run)]
    last = prompt[run[-1].end :].lstrip(" \t\n~")
    line_end = last.find("\n", max(last.find("[/asy]"), 0))
    raw.append(last if line_end < 0 else last[:line_end])
    if any(len(text) > 2 * MAX_OPTION_CHARS and "[asy]" not in text for text in raw):
        return None
    texts = [_strip_layout(text) for text in raw]
    if not all(texts) or len(set(texts)) < len(texts):
        return None
    # A last option that is much longer than the others has other words after it, such as another question.
    return tuple(texts) if len(texts[-1]) <= 3 * max(map(len, texts[:-1])) + 40 else None


def _strip_layout(text: str) -> str:
    """Return an option's text without layout, and without an unpaired dollar sign or brace at its ends."""
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
