r"""Repairs HTML and damaged LaTeX in a text, where only one reading makes sense.

    "AB&nbsp;&lt; 5"                             "AB\u00a0< 5"
    "the following:<br/>① (x-1)<sup>2</sup>"     "the following:\n① (x-1)^{2}"
    "<tr><td>a</td><td>1</td></tr>"              "| a | 1 |\n"
    "if a<b and c>d"                             unchanged: not a tag
    "<img src=...>"                              unchanged: the rule `missing_figure` reads it
    <form feed>rac{1}{2}, <tab>imes              \frac{1}{2}, \times      escapes were read as control characters
    \\frac{1}{2} \\cdot x                        \frac{1}{2} \cdot x      backslashes were escaped twice
    $\frac{r}{s}=frac{BC}{AD}$                   ... =\frac{BC}{AD}$      a backslash was lost
    such that:\n(A) 5\n(B) 7                     line breaks              line breaks were written as `\n`
    What is $x$? $                               What is $x$?             the last dollar sign was stray

A tag of one letter is replaced only together with its closing tag, because `a<b>c` may be an inequality. Signs with
more than one reading, row ends (`\\`), `\(` and `\)` are not changed. Every function takes time linear in the text.
"""

from __future__ import annotations

import re
from importlib.resources import files

from truegold.pipeline.text.prose import DELIMITED
from truegold.verifiers.math.vocabulary import COMMANDS

# Each pattern matches a control character before the rest of a command: "<tab>imes" was `\times`. The list for answers
# (`verifiers.math.reading.normal`) is longer. In prose, "<tab>o" is seldom `\to`.
_DAMAGED = (
    (re.compile("\x0c(?=rac\\b|rac\\d|orall|rom|box|loor|latfrac)"), r"\\f"),
    (re.compile("\x08(?=eta|oxed|egin\\{|inom|ar\\{|mod|ullet|ig[lrgm]|oldsymbol|ecause)"), r"\\b"),
    (
        re.compile("\t(?=(?:ext(?:bf|it|rm|tt|sf)?|imes|frac|binom)(?![a-z])|heta|riangle|ilde|an[\\\\({^\\d])"),
        r"\\t",
    ),
    (re.compile("\r(?=ight|angle|ho(?![a-z])|floor|ceil|brace|vert)"), r"\\r"),
    (re.compile("\n(?=eq(?![a-z])|otin(?![a-z])|abla(?![a-z])|geq(?![a-z])|leq(?![a-z]))"), r"\\n"),
    (re.compile("\x07(?=lpha|pprox|ngle|rcsin|rccos|rctan|ligned|st(?![a-z]))"), r"\\a"),
    (re.compile("\x0b(?=ec[{\\\\ ]|ee(?![a-z])|arnothing|arphi|arepsilon|artheta|dots|ert)"), r"\\v"),
)

_MAYBE_DAMAGED = re.compile("[\x07\x08\t\x0b\x0c\r]|\n(?=eq|otin|abla|geq|leq)")
"""A quick test: matches every text with a damaged command, and few other texts."""

MAX_CHARS = 100_000
"""The maximum length of a text that is repaired. Problems are shorter, and some patterns look far ahead."""

_RUN = re.compile(r"\\+")
_ENGLISH = frozenset(files(__package__).joinpath("english_commands.txt").read_text("utf-8").split())
"""LaTeX commands whose names are also English words."""
_UNLIKE_WORDS = frozenset(name for name in COMMANDS if len(name) >= 3 and name not in _ENGLISH)
r"""Commands whose names are not words. So `\\frac` can only be an escaped command; `\\where` may be a row end and a
word."""
_DOUBLED = re.compile(r"(?<!\\)\\\\(?=([A-Za-z]{2,20})(\{?))")
r"""Two backslashes before letters: a command as in `\\frac{`, or a row end and a word as in `\\where`."""
_BLOCK = re.compile(r"\\begin\b")

_ARGUMENT = r"\{(?:[^{}]|\{[^{}]{1,40}\}){1,60}\}"
_LOST = re.compile(
    rf"(?<![A-Za-z\\/\"'`])(?<!backslash\}})(?:[dt]?frac(?=\s{{0,2}}{_ARGUMENT}\s{{0,2}}\{{)|sqrt(?=\s{{0,2}}(?:\[\d\])?{_ARGUMENT}))"
)
r"""A command without its backslash: `frac{1}{2}` or `sqrt[3]{2}`. Parts of `\frac` and of a path such as `a/frac` do
not match."""
_ONE_FORMULA = re.compile(
    r"(?=[^\n]*\\[A-Za-z])(?![^\n]*(?:\\[(\[]|(?<![\\A-Za-z{])[A-Za-z]{3,}\s+[A-Za-z]{2,}))(?:\$(?!\s?[\d.])[^$\n]+|[^$\n]+\$)"
)
"""A line that is one formula: it has a command, no prose, no other delimiters, and one dollar sign at an end."""
_NEWLINE = re.compile(
    r"(?<!\\)\\n(?=\\(?:begin|end|item|\[|\()|\([A-Za-z0-9]{1,3}\)|\\n(?![a-z])|(?!(?:Right|Left|V)[a-z])[A-Z][a-z]*\b|\s*\Z)"
)
r"""A line break written as backslash and n: `\n(a)`, `\nFind`, `\n\begin`. `\nRightarrow` and `\nVdash` do not match.
"""
_END_DOLLAR = re.compile(r"[.?!。？！]\s{0,5}\$\Z")

_ATTRIBUTES = r"(?:\s+[a-zA-Z][\w:-]{0,30}\s?=\s?(?:\"[^\"<>]{0,300}\"|'[^'<>]{0,300}'|[\w.#%-]{1,60})){0,12}\s*"
_LAID_OUT = (
    r"p|b|i|u|em|strong|span|div|font|center|small|big|br|hr|ul|ol|li|blockquote|section|article|tbody|thead|table"
    r"|h[1-6]|a"
)
_PAIRED = (
    "html|body|head|code|pre|mark|kbd|samp|var|cite|abbr|label|caption|dl|dt|dd|main|header|footer|figure|figcaption"
)
"""Tags that are replaced only together with their closing tags, as are tags of one letter."""
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>{_LAID_OUT}|{_PAIRED}|tr|td|th){_ATTRIBUTES}/?>", re.IGNORECASE)
_CODE = re.compile(r"(```.*?```|`[^`'\n]{1,300}`)", re.DOTALL)
"""Code in Markdown. The text may be about its tags: "What does `<table>` do?"."""
_UNSEEN = re.compile(
    r"<(?P<name>script|style|iframe|noscript)\b[^<>]{0,300}>.{0,2000}?</(?P=name)>|<!doctype\s+html[^<>]{0,200}>",
    re.IGNORECASE | re.DOTALL,
)
"""Parts that a page does not show: `<script>alert(1)</script>`."""
_SCRIPT = re.compile(r"<(?P<name>sup|sub)>(?P<body>[^<>]{1,60})</(?P=name)>", re.IGNORECASE)
_CELL_END = re.compile(r"</t[dh]>\s{0,20}(?=</tr>)", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)", re.IGNORECASE)
_CLOSING = re.compile(r"</(?P<name>[a-z]{1,10})>", re.IGNORECASE)
_PAIRED_NAMES = frozenset(_PAIRED.split("|"))
_BREAKS = frozenset("br hr p div pre dt dd figure li ul ol table tbody thead section article".split())
_BREAKS_ALWAYS = frozenset({"br", "hr", "li"})


def repair_commands(text: str) -> str:
    """Return the text with repaired commands, such as `\\times` whose backslash and `t` became a tab."""
    if text.isprintable() or not _MAYBE_DAMAGED.search(text):
        return text
    for pattern, repaired in _DAMAGED:
        text = pattern.sub(repaired, text)
    return text


def halve_backslashes(text: str) -> str:
    r"""Return the text with doubled backslashes halved.

    All backslashes are halved if every run of them has an even length and at least one pair is before a command.
    Otherwise only pairs before a command are halved, unless the text has an environment (`\begin`), because its rows
    end in `\\`. Such a text is unchanged.
    """
    if "\\\\" not in text or len(text) > MAX_CHARS:
        return text
    runs = {len(match[0]) for match in _RUN.finditer(text)}
    if all(length % 2 == 0 for length in runs) and any(map(_is_command, _DOUBLED.finditer(text))):
        return _RUN.sub(lambda match: match[0][: len(match[0]) // 2], text)
    if _BLOCK.search(text):
        return text
    return _DOUBLED.sub(lambda match: "\\" if _is_command(match) else match[0], text)


def _is_command(match: re.Match[str]) -> bool:
    """Return True if the letters after two backslashes begin with a command: `fracx` passes, `where` fails."""
    letters = match[1]
    if match[2] and letters in COMMANDS:
        return True
    command = next((letters[:end] for end in range(len(letters), 2, -1) if letters[:end] in COMMANDS), "")
    return command in _UNLIKE_WORDS


def restore_backslashes(text: str) -> str:
    r"""Return the text with the lost backslashes of `frac{1}{2}` and `sqrt{2}` restored inside formulas."""
    if len(text) > MAX_CHARS or ("frac" not in text and "sqrt" not in text):
        return text
    fractions = text.count("\\frac") + text.count("\\dfrac") + text.count("\\tfrac")
    if text.count("frac") == fractions and text.count("sqrt") == text.count("\\sqrt"):
        return text
    if DELIMITED.search(text):
        return DELIMITED.sub(lambda match: _LOST.sub(r"\\\g<0>", match[0]), text)
    # A short text whose only words are these commands is a formula. An example is a gold.
    if len(text) <= 1000 and not re.search(r"(?<![\\A-Za-z])(?!(?:[dt]?frac|sqrt)\b)[A-Za-z]{3,}", text):
        return _LOST.sub(r"\\\g<0>", text)
    return text


def unescape_newlines(text: str) -> str:
    r"""Return the text with line breaks in place of written `\n`.

    Texts with a program (a code fence or the word `print`) are unchanged, because a program may contain `\n`.
    """
    if "\\n" not in text or len(text) > MAX_CHARS or "```" in text or "print" in text:
        return text
    return _NEWLINE.sub("\n", text)


def drop_stray_dollar(text: str) -> str:
    """Return the text without a dollar sign that lacks its partner. Amounts of money stay."""
    if text[-1:] != "$" and text[:1] != "$":
        return text
    if (text.count("$") - text.count("\\$")) % 2 == 0:
        return text
    if text.count("$") == 1 and len(text) <= 200:
        return text.strip("$").strip() if _ONE_FORMULA.fullmatch(text) else text
    return text[:-1].rstrip() if _END_DOLLAR.search(text[-8:]) else text


def replace_tags(text: str) -> str:
    """Return the text with tags as plain text: line breaks, `^{2}` for powers, `| a | 1 |` for table rows.

    Code between backticks is unchanged.
    """
    if "<" not in text or ">" not in text:
        return text
    return "".join(part if index % 2 else _replaced(part) for index, part in enumerate(_CODE.split(text)))


def _replaced(text: str) -> str:
    paired = {match["name"].lower() for match in _CLOSING.finditer(text)}
    text = _CELL_END.sub(" |", _SCRIPT.sub(_lay_out_script, _UNSEEN.sub("", text)))
    return _TAG.sub(lambda match: _lay_out_tag(match, paired), text)


def _lay_out_script(match: re.Match[str]) -> str:
    body = match["body"].strip()
    is_raised = match["name"].lower() == "sup"
    if is_raised and _ORDINAL.fullmatch(body):
        # An ordinal such as 1<sup>st</sup>.
        return body
    return f"{'^' if is_raised else '_'}{{{body}}}"


def _lay_out_tag(match: re.Match[str], paired: set[str]) -> str:
    name = match["name"].lower()
    if (len(name) == 1 or name in _PAIRED_NAMES) and name not in paired:
        return match[0]
    if name in ("td", "th"):
        return " | " if match["close"] else ""
    if name == "tr":
        return "\n" if match["close"] else "| "
    breaks = name in _BREAKS_ALWAYS or (name in _BREAKS and match["close"]) or name in ("table", "ul", "ol")
    return "\n" if breaks or name[0] == "h" else ""
