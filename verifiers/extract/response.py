r"""The part of a response that can hold its answer.

    <think> maybe 4 </think> It is 5.                 ->  It is 5.
    <think> maybe 4, or                               ->  nothing: the thinking was cut off, no answer was given
    The answer is 5.\n\nQuestion: Tom has 7 ...       ->  [The answer is 5.], [Question: Tom has 7 ...]
    <|begin_of_box|>5<|end_of_box|><|im_end|>         ->  \boxed{5}

Not covered: thinking without any tag, and a thinking tag that the prompt opened and the response never closed.
"""

from __future__ import annotations

import re
from itertools import islice

MAX_SCANNED_CHARS = 400_000
"""Only the end of a longer response is read. Stops megabytes of output made to stall the reward computation."""

MAX_LINE_CHARS = 2_000
"""A longer line is no statement of an answer. Stops the phrase patterns being run over megabyte-long lines."""

MAX_PROBLEMS = 64
"""A response may ramble through so many problems. Stops a response of a million lines `Question:`."""

_THINKING = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis", "<|channel|>final<|message|>"),
)
SPECIAL_END = (
    r"<\|(?:im_(?:end|start)|endoftext|end_of_(?:text|turn)|end|return|eo[tms]_id|eo[adst]|EO[ST])\|>"
    r"|<[|｜]end▁of▁sentence[|｜]>"
)
"""The tokens that end a turn, of a form that no text has."""
PLAIN_END = r"</s>|<eos>|<end_of_turn>|<eo[adt]>|<EO[ADST]>|\[(?:EO[AS]|SEP)\]"
"""Those that text may hold too."""

_NEXT_PROBLEM = re.compile(
    rf"<\|im_start\|>[ \t]{{0,2}}(?:user|system|assistant)?\b|{SPECIAL_END}|{PLAIN_END}|\n(?=[ \t]{{0,4}}(?:"
    r"[#*]{0,6}[ \t]{0,2}(?:Question|Problem|Exercise|Instruction|User|Human|Q)[ \t]{0,2}\d{0,4}[*]{0,2}[ \t]{0,2}[:：]"
    r"|#{1,6}[ \t]{0,2}(?:Question|Problem|Exercise|Instruction)\b(?![ \t]{1,2}[a-z])"
    r"|(?:Question|Problem|Exercise)[ \t]{1,2}\d{1,4}[.:：]?[ \t]{0,3}\n"
    r"|[#*]{0,6}[ \t]{0,2}(?:问题|题目|问)[ \t]{0,2}\d{0,4}[*]{0,2}[:：]"
    r"))"
)
_CUT_MARKS = ("<", "[EO", "[SEP]", "Question", "Problem", "Exercise", "Instruction", "User", "Human", "Q", "问", "题目")
"""One of these stands in every cut; looking for them is far quicker than looking for the cuts."""

_LINE = re.compile(r"(?<=\n)[^\n]{6,600}(?=\n|$)")
_HEADING = re.compile(
    r"[#*_> \t-]{0,8}(?:(?:Now,?[ ])?(?:an?[ ]|the[ ])?"
    r"(?:next|another|new|different|similar|second|bonus|extra|practice|other)"
    r"[ ](?:problem|question|exercise|example|task)\b[^:：]{0,40}[:：]"
    r"|example[ ]\d{1,3}\b[^:：]{0,40}[:：]|下一题|另一题|例\d)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"[2-9][.)][ \t]{1,3}")
_ANSWER_MARKS = ("\\boxed", "nswer", "####")
_IMPERATIVE = re.compile(
    r"(?:Find|Compute|Calculate|Determine|Evaluate|Solve|Simplify|Express|Prove|Factor|Convert)\b.*[.。]$"
)
_SELF_TALK = re.compile(
    r"^(?:[Ww]ait|[Bb]ut|[Ss]o|[Hh]mm|[Ll]et(?:'s| me| us)"
    r"|[Ii]s (?:that|this|it)|[Dd]oes|[Aa]re we|[Nn]ow|[Tt]hen|[Aa]lso|[Hh]ow do)\b"
    r"|\b(?:we|I|me|our|this|these|remaining|above)\b"
)
"""What a solution asks itself."""

MAX_POSED_LINES = 200
"""Only so many lines behind the first answer are looked at."""

MIN_POSED_WORDS = 5
"""A shorter line, such as `What about y?`, belongs to the solution."""

_EMPHASIS = "*_` \t"


def final_part(response: str) -> str:
    """Return what stands after the thinking, stripped, and no more than the last MAX_SCANNED_CHARS of it."""
    for opening, closing in _THINKING:
        response = response.rpartition(closing)[2]
        if opening in response:
            return ""
    return response[-MAX_SCANNED_CHARS:].strip()


def last_line(text: str) -> str:
    """Return the last line that is not blank, without emphasis around it."""
    return text.rstrip().rpartition("\n")[2].strip(_EMPHASIS)


def with_plain_boxes(text: str) -> str:
    r"""Return the text with the box tokens of GLM as `\boxed{}`."""
    if "<|begin_of_box|>" not in text:
        return text
    return text.replace("<|begin_of_box|>", "\\boxed{").replace("<|end_of_box|>", "}")


def split_problems(text: str) -> list[str]:
    """Cut where a new problem or another speaker's turn begins: base models ramble on after the answer."""
    if not any(mark in text for mark in _CUT_MARKS):
        return _split_at_posed(text)
    cuts = list(islice(_NEXT_PROBLEM.finditer(text), MAX_PROBLEMS))
    starts = [0, *(cut.end() for cut in cuts)]
    ends = [*(cut.start() for cut in cuts), len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return [piece for part in parts for piece in _split_at_posed(part)]


def _split_at_posed(part: str) -> list[str]:
    """Cut before a line that poses another problem between two answers: the first one is the response's."""
    mark = next((mark for mark in _ANSWER_MARKS if part.count(mark) > 1), None)
    if mark is None:
        return [part]
    start, stop = part.find(mark), part.rfind(mark)
    for match in islice(_LINE.finditer(part, start, stop), MAX_POSED_LINES):
        if _poses_problem(match.group()):
            return [part[: match.start()], part[match.start() :]]
    return [part]


def _poses_problem(line: str) -> bool:
    if _HEADING.match(line) is not None:
        return True
    line = line.strip(_EMPHASIS + ">-")
    numbered = _NUMBERED.match(line)
    if numbered is not None:
        line = line[numbered.end() :]
    is_posed = line.endswith(("?", "？")) or _IMPERATIVE.match(line) is not None
    if not is_posed or "\\boxed" in line or _SELF_TALK.search(line) is not None:
        return False
    return numbered is not None or len(line.split()) >= MIN_POSED_WORDS
