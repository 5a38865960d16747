r"""Finds the answer that a response commits to, for the verifiers (`committed_answer`).

The forms are, from the strongest: boxes, tags, announcements, an answer alone, and the conclusion of the last line.
Each form is searched in every part of a response that may hold the answer.

`answering_parts` drops the thinking, cuts a response where it goes on to another problem, and gives all announcements
of answers the same marks:

    <think> maybe 4 </think> It is 5.                 ->  It is 5.
    <think> maybe 4, or                               ->  nothing: the thinking was cut off, no answer was given
    The answer is 5.\n\nQuestion: Tom has 7 ...       ->  [The answer is 5.], [Question: Tom has 7 ...]
    <|begin_of_box|>5<|end_of_box|><|im_end|>         ->  \boxed{5}

Not covered: thinking without any tag, and a thinking tag that the prompt opened and the response never closed.

Exam papers, and models that answer in Chinese, Japanese or Korean, put a word for answer in brackets.
`with_plain_marks` replaces it by a new line that begins with `Answer:`:

    【答案】3                       -> Answer: 3
    〖正确答案〗：B                  -> Answer: B
    [ANS] 3/8                     -> Answer: 3/8
    【答案：36】                    -> Answer: 36
    <答案>3</答案>                  -> Answer: 3
    【解答】解：一共 7 个苹果。         -> 解：一共 7 个苹果。     a derivation, read like any other
    【答案】B 【解析】A 项错误。        -> Answer: B             the explanation begins a new line

Boxes that stand together form one answer (`boxed`):

    \boxed{7} ... wait, no. \boxed{5}                               -> 5
    \boxed{840} ... **Final Answer** \boxed{840}                    -> 840
    It is \boxed{5} or \boxed{6}.                                   -> 5 or 6: for one gold answer this is a hedge
    \boxed{2}, \quad \boxed{\frac{3 \pm i}{2}}                      -> 2, \frac{3 \pm i}{2}
    there are \boxed{10} boots and \boxed{20} hats                  -> 10 and 20: two values, neither singled out
    ... \boxed{10} boots and \boxed{20} hats.\n10                   -> 10: the last line chooses one of them
    the line is \boxed{y=2x}, so the slope is \boxed{2}             -> 2: the last one follows from the other
    it is not \boxed{5} but \boxed{6}                              -> 6

A box may be `\boxed`, `\fbox` or `\framebox`, with braces or with one number or letter (`\boxed 5`). Empty boxes are
ignored. Not covered: boxes inside code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from truegold.verifiers.extract.cases import CASE_MARKS, MAX_CASE_CHARS, is_open_case
from truegold.verifiers.extract.clauses import disowns
from truegold.verifiers.extract.closings import repeated_values, without_closings, without_ornaments
from truegold.verifiers.extract.denials import (
    is_bound,
    is_denied,
    is_doubted,
    is_negated_later,
    is_refused,
    preferred,
    without_struck,
)
from truegold.verifiers.extract.objects import answer_at_end, answer_in_box
from truegold.verifiers.extract.restated import (
    repeats_comparison,
    restatement,
    with_chinese_numbers,
    with_counts,
    without_explanations,
    without_given_numbers,
)
from truegold.verifiers.extract.stated_values import (
    ANY_OF,
    CURRENCY,
    MARKS,
    MAX_PLAIN_WORDS,
    PATTERNS,
    has_value,
    is_expression,
    may_deny,
    only_announces,
)
from truegold.verifiers.extract.statements import (
    after_a,
    announced,
    conclusion,
    is_withdrawn,
    last_expression,
    narrow,
    retraction,
)
from truegold.verifiers.sandbox.errors import ConfigError

MAX_SCANNED_CHARS = 400_000
"""Maximum number of characters at the end of a response that are read. Stops megabytes of output made to stall."""

MAX_PROBLEMS = 64
"""Maximum number of problems that a response is cut into. Stops a response with a million lines `Question:`."""

_THINKING = [pair.split() for pair in PATTERNS["thinking_tags"]]
"""The opening and closing tag of each kind of thinking."""
_THINKING_MARKS = ("hink", "HINK]", "<|channel|>")
"""A quick test: each thinking tag contains one of these marks."""
SPECIAL_END = ANY_OF["special_ends"]
"""Tokens that end a turn and that occur in no ordinary text: `<|im_end|>`."""
PLAIN_END = r"</s>|<eos>|<end_of_turn>|<eo[adt]>|<EO[ADST]>|\[(?:EO[AS]|SEP)\]"
"""Tokens that end a turn and that ordinary text may contain: `</s>`."""

_NEXT_PROBLEM = re.compile(
    rf"<\|im_start\|>[ \t]{{0,2}}(?:user|system|assistant)?\b|{SPECIAL_END}|{PLAIN_END}|\n(?=[ \t]{{0,4}}(?:"
    r"[#*]{0,6}[ \t]{0,2}(?:Question|Problem|Exercise|Instruction|User|Human|Q)[ \t]{0,2}\d{0,4}[*]{0,2}[ \t]{0,2}[:：]"
    r"|#{1,6}[ \t]{0,2}(?:Question|Problem|Exercise|Instruction)\b(?![ \t]{1,2}[a-z])"
    r"|(?:Question|Problem|Exercise)[ \t]{1,2}\d{1,4}[.:：]?[ \t]{0,3}\n"
    r"|[#*]{0,6}[ \t]{0,2}(?:问题|题目|问)[ \t]{0,2}\d{0,4}[*]{0,2}[:：]"
    r"))"
)
"""The beginning of another problem or of another speaker's turn: `Question:`, `<|im_end|>`."""
_CUT_MARKS = ("<|", "<｜", "</s", "<e", "<E", "[EO", "[SEP]", "Q", "Problem", "Exercise", "Instruction", "User",
              "Human", "问", "题目")  # fmt: skip
"""A quick test: each match of `_NEXT_PROBLEM` contains one of these marks."""

_LINE = re.compile(r"(?<=\n)[^\n]{6,600}(?=\n|$)")
_HEADING = re.compile(r"[#*_> \t-]{0,8}(?:" + ANY_OF["problem_headings"] + ")", re.IGNORECASE)
"""A heading of another problem."""
_NUMBERED = re.compile(r"[2-9][.)][ \t]{1,3}")
"""The number of a later problem: `2.`"""
_ANSWER_MARKS = ("\\boxed", "nswer", "####")
_IMPERATIVE = re.compile(rf"(?:{ANY_OF['imperatives']})\b.*[.。]$")
_SELF_TALK = re.compile(ANY_OF["self_talk"])
"""Questions that a solution asks itself: `What about y?`."""

MAX_POSED_LINES = 200
"""Maximum number of lines after the first answer that are searched for another problem."""

MIN_POSED_WORDS = 5
"""Minimum number of words in a question that poses another problem. A shorter question belongs to the solution."""

EMPHASIS = "*_` \t"
"""Marks of emphasis and blanks, which are stripped from answers."""

_ANSWER_LINE = "\nAnswer: "
"""The mark that replaces all bracketed words for answer."""
_OPEN, _CLOSE = r"[【〖［\[「『《〈<（(]", r"[】〗］\]」』》〉>）)]"
_EASTERN = r"(?:(?:参考|正确|最终|最后|标准|參考|正確|最終)?答[ ]?案|答え|こたえ|正解|정답|답)"
"""Words for answer in Chinese, Japanese and Korean."""
_WORD = rf"(?:{_EASTERN}|(?:the[ ])?(?:(?:my[ ])?final[ ]|correct[ ])?answer|ans)"
_LINK = r"[ \t\u3000]{0,3}(?:[:：=＝]|是|为|為|は)?[ \t\u3000]*"
"""The sign or verb between a word for answer and the answer."""
_BOLD = r"[*_]{0,3}"
_WITH_VALUE = re.compile(
    rf"(?:(?:^|(?<=\n))[ \t*]{{0,8}}(?<!\\){_OPEN}[ ]?{_WORD}|[【〖［][ ]?{_EASTERN})[ ]?[:：][ \t]*"
    rf"([^\n【〖［「『《〈】〗］」』》〉]{{1,200}}?){_CLOSE}(?=\s|[。.]|$)",
    re.IGNORECASE,
)
"""A mark that holds the value: 【答案：36】."""
_CLOSING = re.compile(rf"[<＜]/[ ]?{_EASTERN}[ ]?[>＞]|\[/[ ]?{_WORD}\]", re.IGNORECASE)
"""The closing mark of an answer: `</答案>`."""
_SECTION = re.compile(rf"[【〖［\[](?:{ANY_OF['section_words']})[】〗］\]][:：]?")
"""The heading of a section that is not an answer: 【解析】."""
_PREDICATE = re.compile(
    r"(?:^|(?<=\n)|(?<=[.!] )|(?<=[。！]))"
    r"(?:(?:따라서|그러므로|그래서|결국|즉|아니|よって|したがって|だから|つまり|いや)[,、]?\s?)?"
    r"(?P<value>[^\s。、,，과와]{1,40}?)\s?(?:은|는|이|가|が|は)\s?(?:정답|답|正解|答え)\s?"
    r"(?:이다|입니다|이에요|임|だ|です|である)(?=[.。!！]|\s{0,9}(?:\n|$))"
)
"""A sentence that calls a value the answer: `5번은 정답이다` (number 5 is the answer)."""
MAX_PREDICATE_TAIL = 4_000
"""Maximum number of characters at the end of a response that are searched for a match of `_PREDICATE`."""
_EASTERN_HINTS = ("【", "〖", "答", "正解", "답")
"""A quick test: each East Asian mark contains one of these."""
_HINTS = ("nswer]", "NSWER]", "nswer)", "NSWER)", "nswer*", "[Answer", "[answer", "[ANSWER", "[Final", "[final")
"""A quick test: each English announcement in brackets contains one of these marks."""
_NAMED_LETTER = re.compile(r"\b(choice|option|answer)_([A-Z])(?![A-Za-z0-9_])", re.IGNORECASE)
"""An option written with an underscore: `Choice_A`."""
_LOST_BOX = re.compile(r"(?:\x08|(?<![A-Za-z\\])b)oxed\{")
"""A box whose backslash was lost: `boxed{`."""


def final_part(response: str) -> str:
    """Return the text after the thinking, stripped. A text longer than MAX_SCANNED_CHARS loses its beginning."""
    if any(map(response.__contains__, _THINKING_MARKS)):
        for opening, closing in _THINKING:
            response = response.rpartition(closing)[2]
            if opening in response:
                return ""
    return response[-MAX_SCANNED_CHARS:].strip()


def last_line(text: str) -> str:
    """Return the last line that is not blank, without the marks of emphasis around it."""
    return text.rstrip().rpartition("\n")[2].strip(EMPHASIS)


def with_plain_boxes(text: str) -> str:
    r"""Return the text with `\boxed{}` for the box tokens of GLM, and for `boxed{}` whose backslash was lost."""
    if "oxed{" in text and "\\boxed" not in text:
        # A lost escape leaves `boxed{5}`; `\b` read as an escape leaves a backspace before `oxed{5}`.
        text = _LOST_BOX.sub(r"\\boxed{", text)
    if "<|begin_of_box|>" not in text:
        return text
    return text.replace("<|begin_of_box|>", "\\boxed{").replace("<|end_of_box|>", "}")


def split_problems(text: str) -> list[str]:
    """Return the parts of a text, which is cut where another problem or another speaker's turn begins.

    Base models often go on in this way after their answer.
    """
    if not any(map(text.__contains__, _CUT_MARKS)):
        return _split_at_posed(text)
    cuts = list(islice(_NEXT_PROBLEM.finditer(text), MAX_PROBLEMS))
    starts = [0, *(cut.end() for cut in cuts)]
    ends = [*(cut.start() for cut in cuts), len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return [piece for part in parts for piece in _split_at_posed(part)]


def _split_at_posed(part: str) -> list[str]:
    """Cut a text in two where another problem stands between two answers. Return the parts, or the whole text alone."""
    if (mark := next((mark for mark in _ANSWER_MARKS if part.count(mark) > 1), None)) is None:
        return [part]
    start, stop = part.find(mark), part.rfind(mark)
    for match in islice(_LINE.finditer(part, start, stop), MAX_POSED_LINES):
        if _poses_problem(match.group()):
            return [part[: match.start()], part[match.start() :]]
    return [part]


def _poses_problem(line: str) -> bool:
    if _HEADING.match(line) is not None:
        return True
    line = line.strip(EMPHASIS + ">-")
    if (numbered := _NUMBERED.match(line)) is not None:
        line = line[numbered.end() :]
    is_posed = line.endswith(("?", "？")) or _IMPERATIVE.match(line) is not None
    if not is_posed or "\\boxed" in line or _SELF_TALK.search(line) is not None:
        return False
    return numbered is not None or len(line.split()) >= MIN_POSED_WORDS


def _mark(opening: str, word: str) -> str:
    return rf"{_BOLD}(?<!\\){opening}{_BOLD}[ ]?{word}[ ]?{_BOLD}[:：]?{_BOLD}{_CLOSE}{_BOLD}{_LINK}"


_LINE_MARK = re.compile(rf"(?:^|(?<=\n))[ \t#>*_]{{0,8}}{_mark(_OPEN, _WORD)}", re.IGNORECASE)
"""A bracketed word for answer at the beginning of a line."""
_EASTERN_MARK = re.compile(_mark(r"[【〖［\[「『《〈]", _EASTERN))
"""An East Asian word for answer in brackets, also within a line. English `[answer]` counts only where a line begins."""


def _has_mark(text: str) -> bool:
    if not text.isascii() and any(map(text.__contains__, _EASTERN_HINTS)):
        return True
    if "nswer" in text or "NSWER" in text:
        return any(map(text.__contains__, _HINTS))
    return "NS]" in text or "ns]" in text


def with_plain_marks(text: str) -> str:
    """Return the text with a line `Answer:` in place of each bracketed word for answer."""
    if not _has_mark(text):
        return text
    text = _SECTION.sub("\n", text)
    tail = _PREDICATE.sub(lambda match: _ANSWER_LINE + match["value"], text[-MAX_PREDICATE_TAIL:])
    text = text[:-MAX_PREDICATE_TAIL] + tail
    text = _WITH_VALUE.sub(lambda match: _ANSWER_LINE + match[1], text)
    text = _EASTERN_MARK.sub(_ANSWER_LINE, text)
    # `<answer>` stays: `committed` reads it as a tag.
    text = _LINE_MARK.sub(lambda match: match[0] if "<" in match[0] and match[0].isascii() else _ANSWER_LINE, text)
    return _CLOSING.sub("\n", text)


_HIDDEN = re.compile(
    r"(?<!`)<!--(?=\W{0,9}\w).*?(?:-->|\Z)|\\iffalse\b.*?(?:\\fi\b|\Z)|<(del|strike)>[^<]{0,400}</\1>"
    r"|(?<![\w~}])~~(?=[^\s~=\\])[^~\n]{0,400}(?<=[^\s~=])~~(?![\w~])",
    re.DOTALL,
)
"""Text that a reader does not see, or sees struck out. In LaTeX `~~` is a blank."""


def without_hidden(text: str) -> str:
    """Return a text without comments and without text that is struck out: 5 for `~~6~~ 5 <!-- 6 -->`."""
    return (
        _HIDDEN.sub("", text) if any(map(text.__contains__, ("<!--", "~~", "\\iffalse", "<del>", "<strike>"))) else text
    )


def answering_parts(response: str) -> list[str]:
    """Return the parts of a response that may hold its answer. Each part answers one problem."""
    text = with_plain_marks(with_plain_boxes(without_hidden(final_part(response))))
    if any(mark in text for mark in ("hoice_", "ption_", "nswer_")):
        text = _NAMED_LETTER.sub(r"\1 \2", text)
    return split_problems(text)


MAX_BOXES = 16
"""Maximum number of boxes that are read, counted from the end. Stops thousands of boxes that are never closed."""
MAX_BOX_TOKENS = 1_000
"""Maximum number of braces and commands in a box that is an answer. Stops boxes with a hundred thousand braces."""
MAX_DENIAL_CHARS = 160
"""Maximum number of characters before a box, and after it, that are searched for words that deny the box."""
MAX_TOUCHING_CHARS = 2
"""Maximum number of characters around a box that cannot deny it, such as `$.`."""
_UNEQUAL = ("\\neq", "\\ne", "\\not=", "\\not =", "≠")
r"""Signs before a box that deny it: `x \neq`."""
_SENTENCE_ENDS = ("\n", ". ", "? ", "! ", "。")
CLOSING_MARKS = "$*)]\\"
"""Marks that may close the formula or the emphasis around a box."""
_SUMMARY = re.compile(
    r"^[#*\s]{0,8}(?:final|summary|conclusions?|answers?|results?)\b[^\n]{0,40}$", re.IGNORECASE | re.MULTILINE
)
"""A heading above the answers to all parts: `### Final Answers`."""
_CORRECTED = re.compile(
    r"\b(?:wait|hmm|oops|no|or|actually|sorry|scratch|correction|mistaken?|wrong|incorrect|errors?|instead|maybe|perhaps)\b"
    r"|不对|错|更正|等等|或",
    re.IGNORECASE,
)
"""Words between two boxes that let the second box replace the first: `wait, no`."""
_POSSIBLY = re.compile(r"[^.\n]{0,60}\b(?:may|might|could|maybe|perhaps|possibly)\b[^.\n]{0,30}", re.IGNORECASE)
"""Words between two boxes that leave both possible: `but it may be`."""
MAX_GAP_CHARS = 200
"""Maximum number of characters between two boxes that are joined to one answer."""
_NAMES = ("\\boxed", "\\fbox", "\\framebox")
_OPENING = re.compile(
    r"\\(?:boxed|fbox|framebox)\s{0,3}"
    r"(?:(\{)|([-+]?\d[\d,]{0,40}(?:\.\d{1,40})?|(?<=\s)[A-Za-z](?![A-Za-z])))"
)
"""The opening of a box: with a brace, or with one number or letter."""
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_WHOLLY_BOXED = re.compile(r"\\(?:boxed|fbox|framebox)\s{0,3}\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
"""A box around the whole content of another box."""
_MARKUP = re.compile(
    r"\\(?:(?:quad|qquad|text|mathrm|textbf|mbox)(?![A-Za-z])|[\[\](),;:! \n\\])"
    r"|\n[ \t]*(?:[-•]|\d{1,2}[.)])\s|[$&~{}*_`]"
)
"""Marks that typeset the text between two boxes without changing its meaning."""
_LABEL = re.compile(r"(?<![\w\\])[A-Za-zα-ωΑ-Ω](?:_?\w{1,2})?\s{0,2}=\s{0,2}(?=$|[\\$])")
r"""The label before a box: `y =` in `x = \boxed{1}, y = \boxed{2}`."""
_CONNECTIVES = {
    **dict.fromkeys([",", ";", "，", "、", "；", "|"], ","),
    **dict.fromkeys(["or", "and/or", "/", "ou", "oder", "или", "或", "或者"], "or"),
    **dict.fromkeys(["and", "et", "und", "и", "和", "及", "与"], "and"),
}
"""The kind of connection (`,`, `or`, `and`) for each sign or word between two boxes."""
_GAP_PART = re.compile(r"[或和与及]者?|[^\W\d_或和与及]+(?:/or)?|[,;，、；/|]")
"""A word or a sign between two boxes."""
_SENTENCE_END = re.compile(r"[.?!:](?=\s)|[。！？：=≈→]|\\(?:approx|[Rr]ightarrow|implies|to|therefore)(?![A-Za-z])|\n")
_CONSEQUENCE = frozenset(PATTERNS["consequence_words"])
"""Words between two boxes that derive the second box from the first: `so`."""


class Boxed(NamedTuple):
    """The answer that the boxes of a text commit to."""

    text: str | None
    """The answer, or None if every box is empty or cut off."""
    end: int
    """The position where the last box ends."""
    cut_off: bool
    """Whether the last box is opened and never closed."""


class _Box(NamedTuple):
    start: int
    end: int
    text: str


def boxed(text: str, *, several: int) -> Boxed | None:
    """Return the answer in the boxes of `text`, or None if it has no box.

    several: the number of values of gold, or 0 if gold is one value.
    """
    openings = _openings(text) if "box" in text else []
    if not openings:
        return None
    closed = [_read_box(text, opening) for opening in openings]
    boxes: list[_Box] = []
    other = ""
    for box in closed:
        if box is None or not box.text or (boxes and box.end <= boxes[-1].end):
            continue
        if not _is_doubted(text, box):
            boxes.append(box)
            other = ""
        elif boxes and _POSSIBLY.fullmatch(text, boxes[-1].end, box.start):
            other = f" or {box.text}"
    if not boxes:
        return Boxed(None, 0, closed[-1] is None)
    return Boxed(_join_contents(text, boxes, several) + other, boxes[-1].end, closed[-1] is None)


def _openings(text: str) -> list[re.Match[str]]:
    """Return the matches at which the last boxes open. The search runs backwards and stops after MAX_BOXES."""
    openings: list[re.Match[str]] = []
    names = [name for name in _NAMES if name in text]
    end = len(text)
    for _ in range(MAX_BOXES):
        end = max((text.rfind(name, 0, end) for name in names), default=-1)
        if end == -1:
            break
        if opening := _OPENING.match(text, end):
            openings.append(opening)
    return openings[::-1]


def _read_box(text: str, opening: re.Match[str]) -> _Box | None:
    if opening[1] is None:
        return _Box(opening.start(), opening.end(), opening[2])
    end = text.find("}", opening.end())
    if end != -1 and "{" not in (content := text[opening.end() : end]) and "\\" not in content:
        return _Box(opening.start(), end + 1, content.strip())
    depth = 1
    for brace in islice(_BRACE.finditer(text, opening.end()), MAX_BOX_TOKENS):
        mark = brace.group()
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                content = text[opening.end() : brace.start()].strip()
                inner = _WHOLLY_BOXED.fullmatch(content) if content.startswith("\\") else None
                return _Box(opening.start(), brace.end(), inner[1].strip() if inner else content)
    return None


def _is_doubted(text: str, box: _Box) -> bool:
    """Tell whether the sentence around a box denies or doubts it."""
    if text.startswith("~~", box.end) and text.endswith("~~", 0, box.start):
        return True
    before = text[max(0, box.start - MAX_DENIAL_CHARS) : box.start]
    start = max(map(before.rfind, _SENTENCE_ENDS)) + 1
    after = text[box.end : box.end + MAX_DENIAL_CHARS].partition("\n")[0]
    before, after = before[start:], after.lstrip(CLOSING_MARKS)
    if len(before) + len(after) <= MAX_TOUCHING_CHARS:
        return False
    if before.rstrip(" $").endswith(_UNEQUAL):
        return True
    if not may_deny(f"{before} {after}"):
        return disowns(before, after)
    return is_doubted(before, after) or ("answer" in before and is_bound(before))


def _join_contents(text: str, boxes: list[_Box], several: int) -> str:
    """Return the contents of the last box, joined with the boxes that stand together with it."""
    if len(boxes) == 1 and several < 2:
        return boxes[0].text
    contents = [boxes[-1].text]
    connectives: list[str] = []
    for before, after in zip(boxes[-2::-1], boxes[:0:-1], strict=True):
        if (connective := _connective(text[before.end : after.start], several)) is None:
            break
        contents.insert(0, before.text)
        connectives.insert(0, connective)
    distinct = {content_key(content): content for content in contents}
    if several > len(distinct) and (parts := _parts_of_answer(text, boxes, several)) is not None:
        return _as_list(parts)
    if len(distinct) == 1:
        return contents[-1]
    if several:
        return _as_list(distinct.values())
    if repeated := distinct.get(content_key(text[boxes[-1].end :].rpartition("\n")[2])):
        return repeated
    joined = contents[0]
    for connective, content in zip(connectives, contents[1:], strict=True):
        joined += f", {content}" if connective == "," else f" {connective} {content}"
    return joined


def _as_list(contents: Iterable[str]) -> str:
    """Return the contents of several boxes as one list, separated by semicolons if one of them has a comma."""
    parts = [content.rstrip(" .") for content in contents]
    return ("; " if any("," in part for part in parts) else ", ").join(parts)


def _parts_of_answer(text: str, boxes: list[_Box], count: int) -> list[str] | None:
    """Return the contents of all boxes, or of the boxes below a summary, if these are `count` different ones."""
    summary = max((match.end() for match in _SUMMARY.finditer(text[:MAX_SCANNED_CHARS])), default=0)
    for start in (0, summary):
        parts = {content_key(box.text): box for box in boxes if box.start >= start}
        gaps = [text[before.end : after.start] for before, after in pairwise(parts.values())]
        if len(parts) == count and not any(map(_CORRECTED.search, gaps)):
            return [box.text for box in parts.values()]
    return None


def content_key(content: str) -> str:
    """Return a key for comparing boxes: the contents without blanks, dollars and full stops."""
    return "".join(content.split()).strip("$*.")


def _connective(gap: str, several: int) -> str | None:
    """Return the word that joins two boxes, or None if they do not stand together."""
    if len(gap) > MAX_GAP_CHARS:
        return None
    plain = _MARKUP.sub(" ", _LABEL.sub("", gap)).strip().casefold()
    parts = _GAP_PART.findall(plain)
    connectives = [_CONNECTIVES[part] for part in parts if part in _CONNECTIVES]
    if len(connectives) == len(parts) and not _SENTENCE_END.search(plain):
        return _strongest(connectives) or ","
    if _SENTENCE_END.search(plain.rstrip(":")) or "\n" in gap.strip() or not _CONSEQUENCE.isdisjoint(parts):
        return None
    # A comma with other words joins two boxes only if gold has several values.
    return _strongest(connectives) if several or connectives[-1:] != [","] else None


def _strongest(connectives: list[str]) -> str | None:
    return next((word for word in ("or", "and", ",") if word in connectives), None)


MIN_LOOP_CHARS = 15
"""Minimum length in characters of a text that is checked for answers that repeat in a loop."""
MAX_OPTION_CHARS = 40
"""Maximum length in characters of an answer in which a letter can name an option."""
_OR_VALUE = re.compile(
    r"[$*)\] ]{0,4}\bor (?:maybe |perhaps )?"
    r"\$?(-?(?:\d[\d.,/]{0,40}|\\frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}))(?<![.,])\$?\.?\s{0,3}(?:\n|$)"
)
r"""The second of two values after a box: `\boxed{6} or 13.`"""
MAX_BARE_CHARS = 200
"""Maximum length in characters of a response that is itself the answer. Stops prose being taken for an expression."""
MAX_BARE_WORDS = 1
"""Maximum number of words in a response that is itself the answer: `5 apples`. `I think it is 5` is prose."""
MAX_TRIED = 8
"""Maximum number of announcements that are read, counted from the end. Stops hundreds without an answer."""
_LATER_ANSWER = re.compile(ANY_OF["later_answers"], re.MULTILINE)
"""An announcement that replaces a box before it: `Answer:` or `####` at the beginning of a line."""
_JOINED = re.compile(r"\b(?:and|or)\b|[,和或]")
"""A sign that an answer has several values."""
_PAIRS = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("«", "»"), ("「", "」"), ("[[", "]]"), ("<<", ">>"))
"""Quotes and brackets that may enclose an answer."""
_WRAPS = frozenset("'\"“‘«「[<→⇒➜➡👉")
"""First characters of an answer that is enclosed or begins with an arrow."""
_NESTED = re.compile(r"[,\[\]'\"“”‘’«»「」<>]")
"""Characters that an answer in quotes or brackets must not have."""
MAX_HASHES = 16
"""Maximum number of `####` that are examined, counted from the end. Stops a response that consists of `####`."""
_HASHES = re.compile(r"####(?!#)[ \t]{0,8}(\S.{0,400})")
_SHORT_SENTENCE = re.compile(
    r"(?i:this|that|it|we|so|thus|hence|therefore|donc|also|luego|entonces)\b|[^\W\d_]+ [^\W\d_]+:"
    rf"|(?!(?:See|Use|Add|Let|Read|Note|Check|Take)\b)[A-Z][a-z]+ (?:[a-z]+s|had|got|paid|made|spent) {CURRENCY}\d"
)
"""A short sentence with a value: `This gives 8`, `Tim needs $85`, `Total cost: $8`."""
_EXPLAINED = re.compile(rf"([^\n]{{1,80}})\n\s{{0,4}}[*_#]{{0,6}}(?:{ANY_OF['explaining']})(?![^\W\d_])", re.IGNORECASE)
"""An answer in the first line with the heading of an explanation below it."""
_LIST_NUMBER = re.compile(r"(?:\d{1,2}[.):]\s|[^\W\d_]+ \d{1,2}(?:\W|$))")
"""The beginning of a numbered heading: `2. Area`, `Step 2`."""
_FIGURES = re.compile(r"\d[\d,]{0,40}(?:\.\d{1,40})?(?:/\d{1,20})?")
MAX_VALUE_WORDS = 3
"""Maximum number of words in an answer after a `####` that is not on the last line."""
MAX_TAIL_CHARS = 4_000
"""Maximum number of characters below an answer after `####` that are searched for another value."""
_PLAIN_NUMBER = re.compile(r"[-+−]?[$￥¥€£]?\d[\d,]{0,40}(?:\.\d{1,40})?%?\.?")
_JSON_MARKS = ('":', "':", '" :')
"""A quick test: each JSON object contains one of these marks."""
MAX_TABLE_CHARS = 4_000
_NAMED = (
    r"(?:(?:the|my|final|correct)[_ -]?){0,2}"
    rf"(?:answer|ans|result|solution|output|response|final|{ANY_OF['answer_words']})"
)
"""Names of an answer: `final_answer`, `result`, `respuesta`."""
_IS_ANSWER = re.compile(rf"[*_\s]*(?:{_NAMED}|(?:grand )?total|sum|最?终?答案|合计|总计)[*_:：\s]*", re.IGNORECASE)
"""A name that marks the answer, as a tag or as the head of a table's row or column: `answer`, `Total`."""
_RULER = re.compile(r"\|?[\s:|-]*")
"""The line between the head and the rows of a table."""
MAX_TAG_CHARS = 40
_PART_LINE = re.compile(r"[ \t*]*\(?([1-9]|[A-Ea-e]|i{1,3}|iv|v)[).][*:]*[ \t]+(\S.{0,80})")
"""The line of one part of an answer: `(a) 900`, `**1.** 900`."""
_PART_NAMES = (list("123456789"), list("abcde"), ["i", "ii", "iii", "iv", "v"])
"""Possible numberings of the parts of an answer."""
ON_CONDITION = ("boxed", "phrase", "conclusion", "option", "last_line")
"""Forms of answers whose sentence may have a condition."""
MAX_PART_LINES_CHARS = 1_000
"""Maximum number of characters at the end of a text that are searched for numbered parts."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer that a response commits to."""

    text: str
    """The answer as the response writes it."""
    form: str
    """The form of the answer: `boxed`, `answer_tag`, `hashes`, `phrase`, `a_line`, `json`, `whole_response`,
    `first_line`, `last_line` or `conclusion`."""


def committed_answer(response: str, *, several: int = 0, problem: str | None = None) -> Committed | None:
    """Return the answer that `response` commits to, or None.

    problem: the text of the problem. Its numbers are then not taken for the answer.
    several: the number of values of gold, if gold has several. Boxes are then read as one list if they stand together,
    or if the response has exactly this number of boxes.
    """
    if not isinstance(response, str):
        raise ConfigError(f"committed_answer: response must be a text; this is {type(response).__name__}.")
    parts = answering_parts(response)
    for part in parts:
        if committed := _declared(part, several):
            if several < 2 and holds_in_one_case(part, committed, problem):
                return None
            repeated = repeated_values(part, committed.text) if several < 2 and len(part) > MIN_LOOP_CHARS else None
            return Committed(" or ".join(repeated), committed.form) if repeated else committed
    for part in parts:
        if boxed(part, several=several) is None and (committed := _unannounced(part, several, problem)) is not None:
            return None if several < 2 and holds_in_one_case(part, committed, problem) else committed
    return None


def holds_in_one_case(part: str, committed: Committed, problem: str | None) -> bool:
    """Return whether a text gives its answer on a condition that it leaves open: `if n is even, the answer is 5`."""
    if committed.form not in ON_CONDITION:
        return False
    tail = part[-MAX_CASE_CHARS:]
    lines = " ".join([line for line in tail.split("\n") if committed.text in line]) or tail
    return any(map(lines.__contains__, CASE_MARKS)) and is_open_case(tail, committed.text, problem)


def _unannounced(part: str, several: int, problem: str | None) -> Committed | None:
    """Return the conclusion of a text without an announcement. It stands before courtesies and explanations."""
    if committed := _answered_first(part, problem) or _at_end(without_explanations(part), problem):
        return committed
    shorter = without_closings(part)
    if len(shorter) == len(part.rstrip()):
        return None
    return _declared(shorter, several) or _at_end(without_explanations(shorter), problem)


def _answered_first(part: str, problem: str | None) -> Committed | None:
    """Return a first line that is one value, unless the explanation below it ends with another value."""
    match = _EXPLAINED.match(part.lstrip())
    if match is None or not has_value(match[1]) or not is_expression(match[1], MAX_PLAIN_WORDS):
        return None
    last = _at_end(part, problem)
    is_same = last is None or _JOINED.search(last.text) or content_key(last.text).endswith(content_key(match[1]))
    return _committed(match[1], "first_line") if is_same else None


def _at_end(part: str, problem: str | None) -> Committed | None:
    """Return the value that the last line states as a sentence, or else the last line if it is one expression."""
    expression, stated = last_expression(part), None
    if expression is None or _SHORT_SENTENCE.match(expression):
        # `This gives 8` passes for an expression, but is a short sentence.
        stated = conclusion(part)
        if stated is None and problem:
            stated = restatement(part, problem)
        masked = without_given_numbers(part, problem) if stated is None and problem else None
        if masked is not None:
            stated = conclusion(masked)
        if stated is None and expression is None and (counted := with_counts(masked or part, problem)) is not None:
            stated = conclusion(counted)
    is_chinese = stated is expression is None and any(map(part.__contains__, ("分之", "共", "计")))
    if is_chinese and (digits := with_chinese_numbers(part)) is not None:
        return _at_end(digits, problem)
    if problem and stated is not None and repeats_comparison(part, stated, problem):
        return None
    return _committed(stated, "conclusion") or _committed(expression, "last_line")


def _declared(part: str, several: int) -> Committed | None:
    """Return the answer in a box, a tag or an announcement, or a bare answer."""
    boxes = boxed(part, several=several)
    tag = part.rfind("<answer>")
    if tag != -1 and (boxes is None or boxes.end < part.find("</answer>", tag) or boxes.end <= tag):
        inside = part[tag + len("<answer>") :].partition("</answer>")[0]
        if committed := _in_tag(inside, several):
            return committed
    if boxes is None:
        structured = _in_json(part) or _in_last_tag(part, several) or _committed(in_table(part), "last_line")
        structured = structured or (_committed(_in_numbered_lines(part, several), "last_line") if several > 1 else None)
        return structured or _announced(part) or _bare(part)
    if boxes.text is not None:
        return _in_boxes(part, boxes.text, boxes.end)
    return None if boxes.cut_off else _announced(part)


def _in_boxes(part: str, answer: str, end: int) -> Committed | None:
    """Return the answer in the boxes, unless the text after their `end` takes it back or announces another one."""
    if ":" in answer and (stated := answer_in_box(answer)) is not None:
        if not stated:
            return None
        answer = stated
    if "nswer" in answer and (announced_inside := _announced(answer)) is not None:
        return announced_inside
    behind = part[end:]
    if not behind.strip(CLOSING_MARKS + " ."):
        return _committed(answer, "boxed")
    if (taken_back := retraction(behind.partition("\n\n")[0], answer)) or is_withdrawn(behind, answer):
        return _committed(taken_back, "phrase")
    is_denied_later = answer in behind and is_negated_later(behind, answer)
    both = f"{answer} or {other[1]}" if (other := _OR_VALUE.match(behind)) else answer
    return _after_box(part, end) or (None if is_denied_later else _committed(both, "boxed"))


def _in_json(part: str) -> Committed | None:
    """Return the answer of the JSON objects at the end of a response. A fence or courtesies may follow them."""
    if not any(map(part.__contains__, _JSON_MARKS)) or (stated := answer_at_end(part)) is None:
        return None
    behind = stated.behind.strip("` \t\r\n]")
    is_last = not behind or without_closings(f".\n{behind}") == "."
    return _committed(stated.text, "json") if is_last else None


def _in_numbered_lines(part: str, several: int) -> str | None:
    """Return the last lines if they number as many parts as gold has values.

    The lines stand alone, or below an announcement, as here. `The values that fail are:` does not announce an answer.

    The answers are:
    (a) 900
    (b) 1800
    """
    lines = [line for line in part[-MAX_PART_LINES_CHARS:].splitlines() if line.strip()]
    marked = [match for line in lines[-several:] if (match := _PART_LINE.fullmatch(line)) is not None]
    if len(marked) != several or [match[1].lower() for match in marked] not in [n[:several] for n in _PART_NAMES]:
        return None
    if len(lines) > several and _announced(f"{lines[-several - 1]} 1") is None:
        return None
    return "\n".join(f"({match[1]}) {match[2]}" for match in marked)


def _in_last_tag(part: str, several: int) -> Committed | None:
    """Return the answer in a tag that ends the response, in any language: `<respuesta>72</respuesta>`."""
    text = part.rstrip()
    closing = text.rfind("</", -MAX_TAG_CHARS) if text.endswith(">") else -1
    name = text[closing + 2 : -1].strip()
    start = text.rfind(f"<{name}>", 0, closing) if closing != -1 and name else -1
    if start == -1 or (start and text[start - 1] != "\n"):
        return None
    inside = text[start + len(name) + 2 : closing]
    if _IS_ANSWER.fullmatch(name):
        return _in_tag(inside, several)
    return _committed(last_expression(inside), "last_line") if len(inside) <= MAX_BARE_CHARS else None


def in_table(text: str) -> str | None:
    """Return the answer in the last row of a table: the cell whose row or column is named as the answer."""
    if not (tail := text.rstrip()).endswith("|"):
        return None
    rows = [
        _cells(line) for line in tail[-MAX_TABLE_CHARS:].rpartition("\n\n")[2].split("\n") if not _RULER.fullmatch(line)
    ] or [[]]
    last, head = rows[-1], rows[0]
    if len(last) == 2 and _IS_ANSWER.fullmatch(last[0]):
        return narrow(last[1])
    named = [cell for name, cell in zip(head, last, strict=False) if _IS_ANSWER.fullmatch(name)]
    if any(is_doubted("", f" is {cell}") for cell in last):
        return None
    return narrow(named[0]) if len(rows) == 2 and len(named) == 1 else None


def _cells(row: str) -> list[str]:
    return [cell.strip(MARKS) for cell in row.strip().strip("|").split("|")]


def _taken_back(announcement: str, narrowed: str | None) -> str | None:
    """Return the value that replaces the announced one: 6 for `Answer: 5? No: 6`."""
    end = announcement.find(narrowed) + len(narrowed) if narrowed and narrowed in announcement else 0
    return retraction(announcement[end:], narrowed) if end else None


def _in_tag(inside: str, several: int) -> Committed | None:
    """Return the answer inside a tag: an announced one, or else the words of the tag."""
    if (committed := _declared(inside, several)) is not None and committed.form != "whole_response":
        return committed
    return None if is_refused(inside[:MAX_BARE_CHARS]) else _committed(narrow(inside), "answer_tag")


def _after_box(part: str, end: int) -> Committed | None:
    """Return the answer of an `Answer:` line or of `####` after the last box. Mere mentions do not count."""
    announcement_after = _LATER_ANSWER.search(part, end)
    committed = _announced(part[announcement_after.start() :]) if announcement_after else None
    if committed is None or not (has_value(committed.text) or len(committed.text) == 1):
        return None
    return committed


def _announced(part: str) -> Committed | None:
    """Return the announced answer of a text: after `####`, after words such as `the answer is`, or after `A:`."""
    if committed := _committed(after_hashes(part), "hashes"):
        behind = part.rpartition("####")[2].partition("\n")[2]
        return None if behind and is_withdrawn(f"\n{behind}", committed.text) else committed
    for answer, sentence in islice(announced(part), MAX_TRIED):
        narrowed = narrow(answer)
        if (taken_back := _taken_back(answer, narrowed)) is not None:
            return _committed(taken_back, "phrase")
        is_meant = narrowed is not None and not is_denied(sentence, narrowed, first=True)
        if is_meant and (committed := _committed(narrowed, "phrase")):
            start = part.rfind(answer)
            behind = part[start + max(answer.find(committed.text), 0) + len(committed.text) :]
            is_negated = committed.text in behind and is_negated_later(behind, committed.text)
            return None if is_negated or is_withdrawn(behind, committed.text) else committed
    a_line = after_a(last_line(part))
    return _committed(narrow(a_line), "a_line") if a_line else None


def _bare(part: str) -> Committed | None:
    """Return a whole response that is one short expression."""
    text = part.strip()
    if len(text) > MAX_BARE_CHARS or "\n" in text or not is_expression(text, MAX_BARE_WORDS):
        return None
    return _committed(preferred(text) if may_deny(text) else text, "whole_response")


def _committed(answer: str | None, form: str) -> Committed | None:
    """Return an answer without the marks around it, or None for an empty answer and for a denial (`not 5`)."""
    text = (answer or "").strip(MARKS)
    if text and (text[0] in _WRAPS or not text[-1].isascii()):
        text = _unwrapped(text)
    if "(" in text or "（" in text:
        text = without_struck(text).strip(MARKS)
    if (
        not text
        or text[-1] in "?？"
        or (
            not _PLAIN_NUMBER.fullmatch(text)
            and not only_announces(text)
            and (form != "conclusion" or may_deny(text))
            and is_refused(text, letters=len(text) <= MAX_OPTION_CHARS)
        )
    ):
        return None
    return Committed(preferred(text) if "not " in text else text, form)


def _unwrapped(text: str) -> str:
    """Return a text without quotes, arrows and ornaments around it: `«8»`, `→ 8`, `[[8]]`, `8 ✅`."""
    text = without_ornaments(text.lstrip("→⇒➜➡👉\ufe0f ")).rstrip()
    for opening, closing in _PAIRS:
        inside = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and _NESTED.search(inside) is None:
            return inside.strip()
    return text


def after_hashes(text: str) -> str | None:
    """Return the answer after the last `####`.

    On the last line, any text is an answer. Further up, only a plain number is an answer, or one value that no other
    value follows:

    #### Step 2                                   a heading
    #### 42 dollars\nThat is all.                 42 dollars
    #### 2 apples\nTogether they have 7.          a heading
    """
    start = len(text)
    for count in range(MAX_HASHES):
        start = text.rfind("####", 0, start)
        if start == -1:
            break
        before = text[start - 1 : start]
        if (match := _HASHES.match(text, start)) is None or before not in {"", "\n", " "}:
            continue
        answer = match.group(1).strip(EMPHASIS)
        if _PLAIN_NUMBER.fullmatch(answer):
            return answer
        if before != " " and (
            not (rest := text[match.end() :].strip()) or (count == 0 and _is_answer_above(answer, rest))
        ):
            return answer
    return None


def _is_answer_above(line: str, rest: str) -> bool:
    """Return whether a line after `####` is one value and nothing below it has another one."""
    if _LIST_NUMBER.match(line) or not has_value(line) or not is_expression(line, MAX_VALUE_WORDS):
        return False
    below = rest[-MAX_TAIL_CHARS:]
    figures = _FIGURES.findall(line)
    return not has_value(below) or (len(figures) == 1 and figures == _FIGURES.findall(last_line(below))[-1:])
