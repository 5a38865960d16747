r"""Parts of a response that may hold its answer.

`answering_parts` drops the thinking, cuts a response where it goes on to another problem, and gives all announcements
of answers the same marks:

    <think> maybe 4 </think> It is 5.                 ->  It is 5.
    <think> maybe 4, or                               ->  nothing: the thinking was cut off, no answer was given
    The answer is 5.\n\nQuestion: Tom has 7 ...       ->  [The answer is 5.], [Question: Tom has 7 ...]
    <|begin_of_box|>5<|end_of_box|><|im_end|>         ->  \boxed{5}

Not covered: thinking without any tag, and a thinking tag that the prompt opened and the response never closed.

Exam papers, and models that answer in Chinese, Japanese or Korean, put a word for answer in brackets.
`with_plain_marks` puts a line that begins with `Answer:` in its place:

    【答案】3                          Answer: 3
    〖正确答案〗：B                     Answer: B
    [ANS] 3/8                        Answer: 3/8
    【答案：36】                       Answer: 36
    <答案>3</答案>                     Answer: 3
    【解答】解：一共 7 个苹果。            解：一共 7 个苹果。     a derivation, read like any other
    【答案】B 【解析】A 项错误。           Answer: B             the explanation begins a new line
"""

from __future__ import annotations

import re
from itertools import islice

from truegold.verifiers.extract.stated_values import ANY_OF, PATTERNS

MAX_SCANNED_CHARS = 400_000
"""Characters at the end of a response that are read. Stops megabytes of output made to stall the reward computation."""

MAX_PROBLEMS = 64
"""Problems that a response is cut into at most. Stops a response with a million lines `Question:`."""

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
"""Questions that a solution asks itself, such as `What about y?`."""

MAX_POSED_LINES = 200
"""Lines after the first answer that are searched for another problem."""

MIN_POSED_WORDS = 5
"""A question with fewer words belongs to the solution."""

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
"""Characters at the end of a response that are searched for such a sentence."""
_EASTERN_HINTS = ("【", "〖", "答", "正解", "답")
"""A quick test: each East Asian mark contains one of these."""
_HINTS = ("nswer]", "NSWER]", "nswer)", "NSWER)", "nswer*", "[Answer", "[answer", "[ANSWER", "[Final", "[final")
"""A quick test: each English announcement in brackets contains one of these marks."""
_NAMED_LETTER = re.compile(r"\b(choice|option|answer)_([A-Z])(?![A-Za-z0-9_])", re.IGNORECASE)
"""An option written with an underscore: `Choice_A`."""
_LOST_BOX = re.compile(r"(?:\x08|(?<![A-Za-z\\])b)oxed\{")
"""A box whose backslash was lost: `boxed{`."""


def final_part(response: str) -> str:
    """Return the text after the thinking: its last MAX_SCANNED_CHARS characters, stripped."""
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
    """Return a text cut where a new problem or another speaker's turn begins, as base models write after an answer."""
    if not any(map(text.__contains__, _CUT_MARKS)):
        return _split_at_posed(text)
    cuts = list(islice(_NEXT_PROBLEM.finditer(text), MAX_PROBLEMS))
    starts = [0, *(cut.end() for cut in cuts)]
    ends = [*(cut.start() for cut in cuts), len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return [piece for part in parts for piece in _split_at_posed(part)]


def _split_at_posed(part: str) -> list[str]:
    """Return a text cut before a line that poses another problem, if such a line stands between two answers."""
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
"""East Asian words for answer may stand in brackets within a line. English `[answer]` counts only at its beginning."""


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


def answering_parts(response: str) -> list[str]:
    """Return the parts of a response that may hold its answer. Each part answers one problem."""
    text = with_plain_marks(with_plain_boxes(final_part(response)))
    if any(mark in text for mark in ("hoice_", "ption_", "nswer_")):
        text = _NAMED_LETTER.sub(r"\1 \2", text)
    return split_problems(text)
