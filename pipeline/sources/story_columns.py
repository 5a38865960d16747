"""Builds prompts from several columns, such as a story and a question.

{"Body": "Tom has 3 apples.", "Question": "How many has he?"}       "Tom has 3 apples. How many has he?"
{"passage": "In 1842 ...", "question": "When ...?"}                 passage, empty line, question
{"context": "In 1842 ...", "question": "When?", "answer": "1842"}   context, empty line, question
{"context": "12*34 = 408. So the answer is 408.", ...}              only the question, since this is a solution
{"instruction": "Solve for x.", "input": "2x = 6"}                  instruction, empty line, input
{"description": "Print n.", "input_format": "A number.", ...}       problem, input format, output format
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from truegold.pipeline.sources.conversations import read_prompt
from truegold.verifiers.columns import Samples, Values, are_shared, spelled, text_of

STORIES = ("Body", "body", "passage", "article", "paragraph", "story", "narrative")
"""Columns with the text that a question is about."""
CONTEXTS = ("context", "contexts", "document", "premise", "background", "evidence")
"""Columns that are either part of the problem, or notes about the row.

Such a column is part of the problem in any of these cases:
- questions have options, or refer to a text
- one question is asked about several texts
- the column contains the answers
- it is a premise that is empty in some rows
"""
PREMISES = ("context", "premise")
"""Columns that are part of the problem if they are empty in some rows."""
POINTS = re.compile(
    r"\b(?:passage|paragraph|text|article|document|context|story|excerpt|table|premise|above|according to)\b"
    r"|文中|上文|短文|材料",
    re.IGNORECASE,
)
"""Words of a question about a text."""
SECTIONS = {"input_format": "Input", "output_format": "Output"}
"""Columns of contest problems that follow the statement, with their headings."""
STORY_WORDS = 4
"""The minimum number of words of a story. A shorter text is a name or a number."""
NOTHING = ("", "n/a", "na", "none", "null", "-", "<noinput>")
"""The texts of an empty `input`."""


_UNWRAPPED = re.compile(
    r"\s*<[|｜](?:im_start\|>)?user(?:[|｜]>)?(?P<text>.*?)(?:<\|im_end\|>\s*)?<[|｜](?:im_start\|>)?assistant(?:[|｜]>)?\s*",
    re.IGNORECASE | re.DOTALL,
)
"""A question in the tokens of a chat template. They are removed, because the model's own template adds them."""


@dataclass(frozen=True, slots=True)
class StoryColumns:
    """The columns of a prompt: the question, and the columns before and after it."""

    prompt: str
    before: str | None = None
    """The column with the text before the question, such as a story."""
    behind: str | None = None
    """The column with the text after the question, such as an `input`."""
    sections: tuple[str, ...] = ()
    """The columns that follow under a heading (`SECTIONS`)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in their order in the prompt."""
        return tuple(name for name in (self.before, self.prompt, self.behind, *self.sections) if name is not None)

    def giving_away(self, values: Values, golds: Sequence[str]) -> str | None:
        """Return a column before or after the question that ends with one of these golds as the answer, or None."""
        texts = {name: story_text(values.get(name)) or "" for name in (self.before, self.behind) if name is not None}
        ends = ((name, text.strip()[-ENDING:]) for name, text in texts.items())
        return next((name for name, end in ends for gold in golds if _announces(end, gold)), None)

    def whole_prompt(self, values: Values) -> str | None:
        """Return the prompt from all its columns, or None if it has a single column."""
        question, is_chat = read_prompt(values.get(self.prompt))
        if not isinstance(question, str):
            return None
        bare = _UNWRAPPED.fullmatch(question)
        if is_chat or bare is not None:
            return bare["text"].strip() if bare is not None else None
        before = story_text(values.get(self.before)) if self.before is not None else None
        behind = text_of(values.get(self.behind)) if self.behind is not None else None
        behind = None if behind is not None and behind.strip().lower() in NOTHING else behind
        sections = [
            f"{SECTIONS[name]}\n{text}" for name in self.sections if (text := text_of(values.get(name))) is not None
        ]
        if before is None and behind is None and not sections:
            return None
        joint = " " if (self.before or "").lower() == "body" else "\n\n"
        texts = [text for text in (behind, *sections) if text is not None and text.strip() not in question]
        head = question if before is None or before.strip() in question else f"{before}{joint}{question}"
        return "\n\n".join((head, *texts))


def story_columns(
    samples: Samples, prompt: str, golds: Sequence[Sequence[str]] = (), *, have_options: bool = False
) -> StoryColumns:
    """Return the columns of the prompt in sample records.

    `golds` has the golds of each record. Columns of answers and solutions are recognised by them. A solution is never
    part of a prompt.
    """
    columns = dict.fromkeys(name for values in samples for name in values)

    def holds_text(name: str, words: int = 1) -> bool:
        texts = [text for values in samples if (text := story_text(values.get(name))) is not None]
        is_text = name != prompt and any(count_words(text) >= words for text in texts)
        return is_text and not are_solutions(_asked_of(name, samples, prompt, golds))

    stories = [name for name in spelled(STORIES, columns) if holds_text(name, STORY_WORDS)]
    contexts = [
        name
        for name in spelled(CONTEXTS, columns)
        if holds_text(name, STORY_WORDS) and (have_options or _is_asked_about(name, samples, prompt, golds))
    ]
    before = next(iter([*stories, *contexts]), None)
    has_input = prompt != "input" and (prompt == "instruction" or are_shared(prompt, samples))
    behind = "input" if has_input and holds_text("input") else None
    return StoryColumns(prompt, before, behind, tuple(name for name in SECTIONS if holds_text(name)))


def count_words(text: str) -> int:
    """Return the number of words; two Chinese characters count as one."""
    return len(text.split()) + len(_HAN.findall(text)) // 2


_HAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
"""A Chinese or Japanese character."""


def story_text(value: Any) -> str | None:
    """Return the text of a story, which is a text, a list of texts, or titles with sentences as in HotpotQA."""
    if isinstance(value, Mapping):
        titles, sentences = value.get("title"), value.get("sentences")
        if isinstance(titles, list) and isinstance(sentences, list):
            pairs = zip(titles, sentences, strict=False)
            return "\n\n".join(f"{title}: {' '.join(' '.join(lines).split())}" for title, lines in pairs) or None
        summary = value.get("summary")
        text = story_text(summary.get("text") if isinstance(summary, Mapping) else value.get("text"))
        return f"{titles}: {text}" if text is not None and isinstance(titles, str) else text
    if isinstance(value, list) and value:
        parts = [story_text(part) if isinstance(part, Mapping) else part for part in value]
        texts = [part for part in parts if isinstance(part, str)]
        return "\n\n".join(texts) if len(texts) == len(parts) else None
    return text_of(value) if isinstance(value, str) else None


Asked = tuple[str, str, Sequence[str]]
"""A text, its question, and the golds."""


def _asked_of(name: str, samples: Samples, prompt: str, golds: Sequence[Sequence[str]]) -> list[Asked]:
    """Return the texts of a column with their questions and golds."""
    return [
        (text, question, accepted or ())
        for values, accepted in zip_longest(samples, golds)
        if (text := story_text((values or {}).get(name))) is not None
        and isinstance(question := (values or {}).get(prompt), str)
    ]


def are_solutions(asked: Sequence[Asked]) -> bool:
    """Return whether at least half of the texts are solutions: they announce gold, or derive it from the question."""
    solutions = sum(
        any(_announces(text, gold) or _works_out(text, question, gold) for gold in golds)
        for text, question, golds in asked
    )
    return bool(asked) and 2 * solutions >= len(asked)


ENDING = 120
"""An answer that is announced within this number of characters at the end of a text makes the text a solution."""
_ANNOUNCED = re.compile(
    r"\b(?:answer|solution|result)s?\b(?:\s+(?:to|of|for)\s+[^.?!]{1,60}?)?\s*(?:is|are|was|equals|[:=])"
    r"|\\boxed\s*\{|####|(?:正确)?(?:答案|结果)(?:就?是|为|[:：])|(?<![回问])答[:：]",
    re.IGNORECASE,
)
_STEPS = re.compile(r"[=≈]|\b(?:equals|so|therefore|thus|hence|gives|get|makes?)\b|因此|所以|得", re.IGNORECASE)
"""Signs of a derivation."""
_AMOUNT = re.compile(r"\d+(?:[.,]\d+)*")
_CONTENT = re.compile(r"[a-z]{4,}|(?=([\u4e00-\u9fff]{2}))")
"""A word of four or more letters, or two neighbouring Chinese characters."""
_COMMON = frozenset("what which when where from that this with many much does have find value problem level".split())
"""Words of most questions. They do not show that a question is about a text."""


def _announces(text: str, gold: str) -> bool:
    """Return whether a text announces gold as the answer: `So the answer is 408.`"""
    gold = gold.strip().strip("$").casefold()
    for match in _ANNOUNCED.finditer(text):
        rest = text[match.end() : match.end() + len(gold) + ENDING].lstrip(" \t\n:：*_$`\"'([{").casefold()
        rest = rest.removeprefix("\\boxed{")
        if gold and rest.startswith(gold) and not re.match(r"[.,]?\w", rest[len(gold) :]):
            return True
    return False


def _works_out(text: str, question: str, gold: str) -> bool:
    """Return whether a text derives the gold, at its end, from numbers of the question."""
    numbers, gold = set(_AMOUNT.findall(question)), gold.strip().strip("$")
    head, mark, unit = text.strip().rpartition(gold)
    if not (mark and numbers and gold and gold not in question) or len(unit) > ENDING // 6 or _AMOUNT.search(unit):
        return False
    used = len(numbers & set(_AMOUNT.findall(head)))
    return 2 * used >= len(numbers) and _STEPS.search(head) is not None


def _stands_alone(question: str, text: str, gold: str) -> bool:
    """Return whether a question about numbers needs no text. The text then contains the gold only by chance."""
    numbers = set(_AMOUNT.findall(question))
    if not numbers or _AMOUNT.fullmatch(gold) is None:
        return False
    return not _content_words(question) & _content_words(text) or (
        len(numbers) > 1 and not numbers & set(_AMOUNT.findall(text))
    )


def _content_words(text: str) -> set[str]:
    return {match[1] or match[0] for match in _CONTENT.finditer(text.casefold())} - _COMMON


_SHORT = re.compile(r".|\d{1,2}")
"""A gold so short that texts contain it by chance."""


def _is_asked_about(name: str, samples: Samples, prompt: str, golds: Sequence[Sequence[str]]) -> bool:
    """Return whether questions are about the text in a column: the text has the answers, or the questions refer to
    it."""
    if not (pairs := _asked_of(name, samples, prompt, golds)):
        return False
    answered = sum(
        any(_SHORT.fullmatch(gold) is None and gold in text and not _stands_alone(question, text, gold) for gold in few)
        for text, question, few in ((text, question, accepted[:1]) for text, question, accepted in pairs)
    )
    pointing = sum(POINTS.search(question) is not None for _, question, _ in pairs)
    # A question that is asked about several texts needs its text.
    texts_of: dict[str, set[str]] = {}
    for text, question, _ in pairs:
        texts_of.setdefault(question, set()).add(text)
    repeated = sum(len(texts) > 1 for texts in texts_of.values())
    if 2 * answered >= len(pairs) or 2 * pointing >= len(pairs) or 4 * repeated >= len(texts_of):
        return True
    # A premise is empty in rows whose question needs none. Notes are always filled.
    return name.lower() in PREMISES and any(name in values and not values[name] for values in samples)
