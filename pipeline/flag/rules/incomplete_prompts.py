"""Finds incomplete prompts: cut off, without their picture, or without a question.

Some prompts and their findings:

    "Tom has 12 apples. He buys 9 more and gives away 5. How many apples does"     truncated_text
    "What is the value of x if 3x + 2 ="                                          no finding: a blank to fill
    "As shown in the figure below, Tom has some apples. He buys 9 more. ..."      missing_figure
    "Each pack costs 107 dollars. There is a discount of 106 dollars on each."     no_question

Most missing premises leave no trace in words or numbers, and are not found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import partial
from itertools import groupby, pairwise

from truegold.pipeline.flag.rules.detector import Finding, any_of, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prose import CHINESE, FORMULA, asks, ending, sentences, without_formulas
from truegold.verifiers.extract.listed_options import find_options

# truncated_text
_MARKS_THAT_GO_ON = frozenset(",，、-‐–—・、،")
"""Punctuation within a sentence. Any other punctuation, of any script, may end a sentence."""
_ENDS_FORMULA = re.compile(r"[$>|=_%^]$|" + FORMULA + "$")
"""The end of a formula, or a blank to fill: "3x + 2 =", "____"."""
_DANGLING_WORD = re.compile(rf"(?:^|\s){any_of('dangling_words')}$", re.IGNORECASE)
"""A last word that needs more words: "and the", "while"."""
_DANGLING_MARK = re.compile(r"[,，、]$|(?<=[A-Za-z])-$")
_DANGLING_CHINESE = re.compile(r"[一-鿿](?:和|与|或|把|被|如果|因为|并且|以及)$")
_TRAILING_DOTS = re.compile(r"\b[a-z]{1,20}\s?(?:\.{3,}|…+)$|[一-鿿]\s?(?:\.{6,}|…{2,})$")
"""Dots after a word: "and then...". A single "…" is ordinary punctuation after a Chinese word, so "……" is needed
there."""
_OPEN_END = re.compile(rf"\b{any_of('open_ends')}$", re.IGNORECASE)
_LEFT_OPEN = re.compile(rf"{_OPEN_END.pattern}|\b{any_of('open_statements')}\b", re.IGNORECASE)
MIN_STORY_WORDS = 10
"""The least number of words of a cut story. A shorter single sentence without a question may be an expression or a
title."""
_WORDS = re.compile(r"[^\d\\$=+<>^_]*(?:[^\W\d_]{3}|[一-鿿])[^\d\\$=+<>^_]*")
_AMOUNT = re.compile(rf"\b{any_of('number_words')}\b|^\W*(?:yes|no|true|false|[是否对错])\W*$", re.IGNORECASE)
_OPEN_DOLLAR = re.compile(r"(?<!\\)\$")
_PROSE = re.compile(r"\b[a-z]{3,} [a-z]{2,} [a-z]{3,}")
_LATEX = re.compile(r"\\[A-Za-z]+|[\^_]\{")

# Questions that stop before their verb: "How many apples does Tom", "How many birds are in", "How many apples".
_HALF_QUESTION = re.compile(
    r"(?:and\s+)?how\s+(?:many|much)\s+"
    r"(?:(?:[a-z]+\s+){0,3}(?:does|do|did)(?:\s+(?:the\s+)?[a-z]+)?"
    r"|(?:[a-z]+\s+){1,3}(?:is|are|was|were)(?:\s+(?:in|on|at|from))?"
    r"|[a-z]+)",
    re.IGNORECASE,
)
_EMPTY_QUESTION = re.compile(r"(?:[,.!?;]\s*|\b(?:and|then)\s+)how\s+(?:many|much)\s*\?\s*$", re.IGNORECASE)
"""A last question without the thing to count: "If he has 48 crackers, how many?". "How many more?" does not match."""
_HALF_CONDITION = re.compile(
    r"(?:If|When|Since|Suppose|After|Given|While)\b(?:(?!\b(?i:how|what|which|find)\b)[^,?:])*|(?:What|How|Which|Who|When)",
    re.ASCII,
)
"""A last sentence that breaks off: "If there are 6 servings of", "What"."""

# missing_figure
MAX_SHAPE_CHARS = 5_000
"""The number of characters of a prompt that are searched for shapes."""
_POINTER = re.compile(any_of("picture_pointers"), re.IGNORECASE)
"""Words that refer to a picture: "in the figure below"."""
_SHAPE_AS_SHOWN = re.compile(
    rf"\b{any_of('shapes')}\b.*\bas\s+(?:shown|pictured|illustrated)\s*[,.]|\b{any_of('shapes_below')}\s+(?:shown\s+)?below\b",
    re.IGNORECASE | re.DOTALL,
)
"""A shape in a picture: "The triangle has sides as shown.", "the rectangle below"."""
_POINTER_CHINESE = re.compile(
    r"如[下上左右]?图(?!书)|(?<![以如])[下上左右]图(?!书|画|形)|(?<![地意企试])图(?:中|示)|如下?表(?![述示达明态现])"
    r"|(?<![一以如])下表(?![面述示达明态现决彰])|见图(?!书)|看图(?!书)|(?:图|(?<!代)表)所示"
    r"|统计图(?:中|如|表示|显示)"
)
"""Words that refer to a picture in Chinese: 如图, 下图, 图中. 下图书, 下表面, 地图中 and 以下表述 do not match."""
_EMBEDDED = re.compile(
    r"!\[[^\]]{0,300}\]\(|<img\b|\\includegraphics|<image(?:[_ ]?\d+)?>|\[image(?:[_ ]?\d+)?\]", re.IGNORECASE
)
"""A picture's address or mark: "![](fig1.png)", "<image>"."""
_CODE = re.compile(r"`[^`\n]{1,300}`")
"""Code in Markdown: "What does `<img>` do?"."""
_HAS_DRAWING = re.compile(
    r"\[asy\]|\\begin\{(?:tikzpicture|tabular|array|asy|picture|align|[a-z]*matrix)|\n\s*\|.*\|.*\n|<t[dr]\b|```|\t"
    # Signs in a row, "■ ▲ ● ■", and chains of arrows, "grass -> rabbit -> fox".
    r"|(?:[■□▲△▼▽●○◆◇★☆][^\w\n]{0,5}){3}"
    r"|(?:\\(?:blacksquare|square|blacktriangle|triangle|bigstar|star|bullet|bigcirc|circ|Diamond)(?![A-Za-z])[\s$、,，]*){3}"
    r"|(?:->|→)[^\n>→]{1,60}(?:->|→)"
)
"""A drawing or a table within the text."""
MAX_CELL_CHARS = 30
MAX_ROW_CHARS = 150
"""Maximum lengths of a cell and of a row of a table, in characters."""
_ENUMERATED = re.compile(r"(?:\(?(?:[A-Ja-j]|\d{1,2}|[ivxIVX]{1,4})[.)、:：]|[（(][A-J\d]{1,2}[）)]|[①-⑳])")
"""The start of an option or of a part of a problem. Such a line is not a row of a table."""
_LABELLED_ROW = re.compile(
    r"(?:[^\d|]{0,40}[^\W\d_][^\d|]{0,10}?[:：=\s-]|[^|]{1,40}[:：])\s*(?:[€£¥]?-?\d[\d.,/]*+\s?+%?+[\s,，;、]*+){1,20}\D{0,12}"
    r"|.{1,30}[:：|\s]\s*(?:[*#xX●○■□◆★☆|]\s?){2,}"
)
"""A row of a table without columns: "Mon 3", "Height (cm): 2, 5, 9", "Cats: ****"."""
_COLUMNS = tuple((re.compile(mark), least) for mark, least in ((r"\s*\|\s*", 2), (r" {2,}", 2), (r"\s*[,，]\s*", 3)))
"""Each separator of cells, with the number of lines that make a table. The lines must have equally many cells."""
_LABELLED_VALUES = re.compile(
    r"(?:[^\W\d_]{1,20}(?:\s?[:：=]\s?|\s)[$€£¥]?\d[\d.]*\s?[^\W\d_]{0,6}\s?[,，;；、]\s?(?:and\s)?){2}[^\W\d_]{1,20}(?:\s?[:：=]\s?|\s)[$€£¥]?\d"
)
"""A table in one line: "pine 12, oak 9, elm 15"."""
_PICTURE = re.compile(rf"\b{any_of('pictures')}\b|[图表]", re.IGNORECASE)
_BARS = re.compile(r"(?:^[^\n|]*(?:\|[^\n|]*){2,}(?:\n|$)){3}", re.MULTILINE)
"""Three consecutive lines with two bars or more."""
_SENTENCE_END = re.compile(r"[。！？；!?;]|\.(?!\d)")
_VALUE_NO_YEAR = re.compile(r"(?<![\d.])(?!(?:19|20)\d\d(?!\d))\d+(?:\.\d+)?")
"""A number that is not a year."""
MIN_VALUES_TOLD = 2
"""A sentence about a chart replaces the chart if it has at least this many values. Years do not count."""
_TABLE = re.compile(r"\b(?:tables?|figures|charts?|pictographs?|histograms?|graphs?)\b|表|统计图", re.IGNORECASE)
_SHAPE = re.compile(rf"\b{any_of('shapes')}\b", re.IGNORECASE)
_SHOWN_BEHIND = re.compile(
    r"\s*[.:：]?\s*(?![(（]?\d{1,2}[.)）]\s)(?:\$\$?[^$]{0,300}[-+=<>\\^\d]|\\[(\[]|[\"“]|[-+(]?\d)|\s*[:：]\s*(?P<rest>\S[^\n?？]*[\d=+])"
)
"""Content right after "shown below": a formula, a number or a quotation, or anything after a colon."""

# no_question
MIN_TOLD_WORDS = 8
"""The least number of words of a story. A shorter text is a title or an expression."""
_ASKS = re.compile(
    r"[?？①-⑳]|(?:\\?_){2,}|[(（\[【]\s*[)）\]】]|\s[(（]\d{1,3}[)）]|\S[ \t]{3,}\S|\s\.\Z"
    rf"|\b{any_of('asking_words')}\b|多少|几|求|吗|何|什么",
    re.IGNORECASE,
)
"""A sign of a question: a question mark or word, a blank to fill, such as "()" or "(27)", or a gap from a lost
formula."""
_NOMINAL = re.compile(
    r"the\s+\w+\s+of\b(?!.*\b(?:is|are|was|were|has|have|had|can|will|costs?|gets?)\b)", re.IGNORECASE
)
"""A task without a verb: "The sum of the first twenty odd numbers."."""
_INSTRUCTS = re.compile(
    r"(?:\(?[\divxIVX]{1,3}[.)]\s*)?(?:(?:please|then|now|also|so|and|hence|next)\s+,?\s*)*"
    rf"{any_of('orders')}\b|.*(?:[,;:]|\band)\s+(?:then\s+)?{any_of('later_orders')}\b",
    re.IGNORECASE | re.DOTALL,
)
"""An instruction: "1. Then find the sum.", "Add them, then double it"."""
_TELLS = re.compile(rf"{any_of('story_openings')}\b.*\b{any_of('story_verbs')}\b", re.IGNORECASE | re.DOTALL)
"""A sentence that tells a fact of a story."""


def _has_open_formula(text: str) -> bool:
    """Return True if a formula opens and never closes. LaTeX must follow the dollar sign, because amounts of money have
    one, too."""
    marks = [match.start() for match in _OPEN_DOLLAR.finditer(text)]
    if len(marks) % 2 == 0 or _PROSE.search(text, marks[-1]):
        return False
    return bool(_LATEX.search(text, marks[-1]))


def _has_open_brace(text: str) -> bool:
    """Return True if a LaTeX argument opens and never closes."""
    bare = text.replace("\\{", "").replace("\\}", "")
    return bool(_LATEX.search(bare)) and bare.count("{") > bare.count("}") and not _ends_whole(text)


def _ends_whole(text: str) -> bool:
    """Return True if the text ends in punctuation that may end a prompt, in any script, or in a formula."""
    last = text[-1:]
    is_mark = unicodedata.category(last or " ")[0] == "P" and last not in _MARKS_THAT_GO_ON
    return is_mark or bool(_ENDS_FORMULA.search(text))


def _may_complete(gold: str | None, text: str) -> bool:
    """Return True if the gold may complete an open sentence, such as "quotas". "12 apples", "twelve" and words of the
    text may not."""
    if gold is None or _WORDS.fullmatch(gold.strip()) is None or _AMOUNT.search(gold):
        return False
    words, words_of_text = (set(re.findall(r"\w+", part.casefold())) for part in (gold, text))
    return not words <= words_of_text


def _signs_of_a_cut(text: str, is_stem: bool) -> Iterator[str]:
    """Yield signs that the text was cut. With `is_stem`, the gold completes the text, and any word may be the last."""
    prose = without_formulas(text).strip()
    if _EMPTY_QUESTION.search(prose):
        yield "the question names nothing"
    if _has_open_formula(text):
        yield "a formula is not closed"
    if _has_open_brace(text):
        yield "a brace is not closed"
    if _TRAILING_DOTS.search(prose):
        yield "trailing dots"
    if _DANGLING_MARK.search(prose) and not _LEFT_OPEN.search(prose.rstrip(",-")):
        yield "ends with a comma or a hyphen"
    if not prose or _ends_whole(prose):
        return
    parts = sentences(prose)
    is_stem = is_stem and not asks(parts[-1])
    if not is_stem and (_DANGLING_WORD.search(prose) or _DANGLING_CHINESE.search(prose)):
        yield "ends with a word that must go on"
    if _HALF_QUESTION.fullmatch(parts[-1]):
        yield "the question has no verb"
    if len(parts) > 1 and _HALF_CONDITION.fullmatch(parts[-1]):
        yield "a condition without its question"
    story = (len(parts) > 1 or len(prose.split()) >= MIN_STORY_WORDS) and not CHINESE.search(prose)
    if story and not is_stem and not _LEFT_OPEN.search(parts[-1]) and not asks(prose):
        yield "ends within a sentence and asks nothing"


def _may_be_incomplete(row: Row) -> bool:
    """Return True for a row whose prompt should be whole sentences: not code, and not a choice question."""
    return row["domain"] != "code" and row.get("verifier") != "choice" and find_options(row["prompt"]) is None


@detector("truncated_text", version="6", languages=("en", "zh"))
def truncated_text(row: Row) -> list[Finding]:
    """Find a prompt that stops within a sentence or a formula.

    Prompts with tables are skipped, because they seldom end in a sentence.
    """
    text = row["prompt"].strip()
    if _has_table(text):
        return []
    sign = next(_signs_of_a_cut(text, _may_complete(row["gold"], text)), None) if _may_be_incomplete(row) else None
    return [] if sign is None else [Finding("truncated_text", evidence={"sign": sign, "end": ending(text, 60)})]


def _has_table(text: str) -> bool:
    """Return True if the text has a table: consecutive lines with a label and values, with bars, or with the same
    number of cells and a number in one of them."""
    if _BARS.search(text):
        return True
    lines = [line.replace("$", "").strip() for line in text.split("\n")]
    lines = ["" if _ENUMERATED.match(line) or len(line) > MAX_ROW_CHARS else line for line in lines if line]
    if any(_LABELLED_ROW.fullmatch(line) and _LABELLED_ROW.fullmatch(following) for line, following in pairwise(lines)):
        return True
    for mark, least in _COLUMNS:
        for cells, same in groupby(lines, partial(_cells, mark)):
            rows = list(same)
            if cells > 1 and len(rows) >= least and re.search(r"\d", "".join(rows)):
                return True
    return False


def _cells(mark: re.Pattern[str], line: str) -> int:
    cells = mark.split(line)
    return len(cells) if max(map(len, cells)) <= MAX_CELL_CHARS else 1


def _is_shown_behind(text: str, pointer: re.Match[str]) -> bool:
    """Return True if the content that is "shown" comes right after these words: "as shown below. $7 - 6 = 1$"."""
    sentence = sentences(text[: pointer.end()])[-1]
    shown = _SHOWN_BEHIND.match(text, pointer.end())
    if shown is None or _PICTURE.search(sentence) or asks(shown["rest"] or ""):
        return False
    return shown[0].lstrip()[0] in ":：" or _SHAPE.search(sentence) is None


@detector("missing_figure", version="8")
def missing_figure(row: Row) -> list[Finding]:
    """Find a prompt that refers to a figure or table which its text does not contain."""
    text = row["prompt"]
    embedded = _EMBEDDED.search(_CODE.sub(" ", text))
    if embedded:
        return [Finding("missing_figure", evidence={"embeds": ending(embedded[0])})]
    pointer = _POINTER.search(text) or _SHAPE_AS_SHOWN.search(text[:MAX_SHAPE_CHARS]) or _POINTER_CHINESE.search(text)
    if pointer is None or _HAS_DRAWING.search(text) or _has_table(text) or _is_shown_behind(text, pointer):
        return []
    if _TABLE.search(pointer[0]) and (_LABELLED_VALUES.search(text) or _tells_values(text[pointer.end() - 1 :])):
        return []
    return [Finding("missing_figure", evidence={"mentions": ending(pointer[0], 60)})]


def _tells_values(behind: str) -> bool:
    """Return True if the sentence about a chart continues with its values: "The chart shows: 45 % walk, 30 % ride." """
    end = _SENTENCE_END.search(behind)
    if end is None or end[0] in "?？":
        return False
    return len(_VALUE_NO_YEAR.findall(behind[: end.start()])) >= MIN_VALUES_TOLD


@detector("no_question", version="7", languages=("en", "zh"))
def no_question(row: Row) -> list[Finding]:
    """Find a story without a question. Prompts with tables are skipped, since any phrase may be a question there."""
    prompt = row["prompt"].strip()
    if row["domain"] != "math" or _ASKS.search(prompt) or find_options(prompt) is not None or _has_table(prompt):
        return []
    prose = without_formulas(prompt)
    if FORMULA in prose or not prose.endswith((".", "!", "。")) or prose.endswith(".."):
        return []
    parts = sentences(prose)
    instructs = any(_INSTRUCTS.match(part) for text in parts for part in re.split(r"\.\.(?=[A-Z])", text))
    if len(prose.split()) < MIN_TOLD_WORDS or instructs or not _TELLS.match(parts[-1]):
        return []
    if _may_complete(row["gold"], prompt) or _OPEN_END.search(prose.rstrip(". ")) or _NOMINAL.match(parts[-1]):
        return []
    return [Finding("no_question", evidence={"ends": ending(prompt, 80)})]
