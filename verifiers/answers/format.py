r"""Checks the layout (`format`) and the length (`length`) of responses, and the tokens of tags (`tag_tokens`).

**`format`** checks whether the response has the requested layout. The value of its answer does not matter.

    Response                                       Result
    <think>2+2 is 4</think> So \boxed{4}.          match
    <think>2+2 is 4</think>                        missing: answer
    <think>2+2 is 4. So \boxed{4}.                 missing: think, answer (the tag is never closed)
    <think></think> \boxed{4}                      missing: think (nothing in it)
    <think>...</think> \boxed{4} or \boxed{5}      missing: one_answer

The evidence lists each part of the layout as present or missing. A part is present if its condition holds:

    think, ...     the tag occurs once, is closed and is not empty (one part for each tag of `info["tags"]`)
    order          the tags follow one another in the given order, none inside another
    start          there is no text before the first tag
    answer         there is a final answer after the tags, and it is not empty
    one_answer     there is no second answer
    end            there is no text after the answer; checked only with `info["nothing_after"]`

The score is 1 if all parts are present, else 0. `info["weights"]` maps parts to weights; the score is then the weighted
share of the parts that are present, and other parts do not count. Gold is not read. Not covered: attributes in tags,
the structure of Markdown, and the quality of the thinking.

**`length`** is DAPO's soft penalty for overlong responses (arXiv 2503.14476, equation 13), plus 1:

    Length                  Score         DAPO's penalty
    up to max - buffer      1             0
    between                 falls to 0    ((max - buffer) - length) / buffer
    above max               0             -1

A reward term with `offset: -1` turns the score back into DAPO's penalty. Gold is not read. `info["length"]` is the
length in tokens, which training sets; without it, characters or words of the response are counted. With
`info["unit"] = "tokens"` a missing length is an error. Not covered: rewards for brevity among the right answers of a
group.

**`tag_tokens`** reports which tags are a single token for a model, and recommends thinking tags:

    tag_tokens(tokenizer, ["<think>", "</think>"])
        Qwen3:      TagReport(tokens={"<think>": 1, "</think>": 1}, recommended=("<think>", "</think>"))
        SmolLM2:    TagReport(tokens={"<think>": 3, "</think>": 3}, recommended=None)

RL learns a tag of several tokens slowly, since several token sequences spell it: `.</think>` may begin with `.</`. The
tokenizer is any object with `tokenize(text)` or `encode(text)`, such as those of transformers, tokenizers and tiktoken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from truegold.verifiers.checked import checked
from truegold.verifiers.options import (
    AnswerVerifier,
    BadOption,
    integer_option,
    number_option,
    switch_option,
    texts_option,
    word_option,
)
from truegold.verifiers.verdict import Reason, Verdict, reason_for_score

MAX_RESPONSE_CHARS = 2_000_000
"""Maximum length of a response, in characters. A longer response scores 0, since it could stall training."""

MAX_TAGS = 10
MAX_TAG_CHARS = 40
ANSWERS = ("any", "box", "tag", "text")
"""Values of the option `answer`."""
ANSWER_TAG = "answer"
PARTS = ("order", "start", "answer", "one_answer", "end")
"""Parts of the layout in addition to the tags."""

_TAG_NAME = re.compile(r"[A-Za-z_][\w|:.-]{0,39}")
_BOX_TOKENS = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\.|[{}]", re.DOTALL)
_ANSWER_TAG = re.compile(r"</?answer>")
_CLOSING = re.compile(r"(?:\s|[.。$*_}]|\\[\])])*")
"""Marks that may follow a box to close its sentence or formula."""

Span = tuple[int, int]
"""The start and the end of a part of a text."""

KNOWN_PAIRS = (
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"), ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"), ("<seed:think>", "</seed:think>"), ("[THINK]", "[/THINK]"),
)  # fmt: skip
"""Pairs of thinking tags of released models, whose tokenizers have one token for each tag."""
CONTEXTS = ("{}", "4.{}\n\n5", " {} x")
"""Texts around a tag (`{}`) in which it has to stay one token."""
MAX_LENGTH = 10**9
UNITS = ("tokens", "chars", "words")
BUFFER_SHARE = 5
"""Ratio of `max` to the default `buffer`. DAPO's buffer is a fifth: 4,096 of 20,480 tokens."""


@dataclass(frozen=True, slots=True)
class FormatVerifier(AnswerVerifier):
    """Checks the layout of a response: its tags, such as <think>, and its answer after them.

    Settings in `info`: `tags` are names in order (default `think`). `opened` says that the prompt already opened the
    first tag, as some chat templates do. `answer` is `box`, `tag` (<answer>), `any` (default: one of these two) or
    `text` (any text). `nothing_after` forbids text after the answer. `weights` maps parts to weights, for a partial
    score.
    """

    options: ClassVar[tuple[str, ...]] = ("tags", "opened", "answer", "nothing_after", "weights")

    name: str = "format"
    version: str = "1"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        tags = _read_tags(info)
        opened, nothing_after = switch_option(info, "opened", False), switch_option(info, "nothing_after", False)
        if opened and not tags:
            raise BadOption("opened needs tags: the prompt opens the first one")
        answer = word_option(info, "answer", ANSWERS, "any")
        weights = _read_weights(info, [*tags, *(part for part in PARTS if part != "end" or nothing_after)])
        if len(response) > MAX_RESPONSE_CHARS:
            evidence = {"chars": len(response), "limit": MAX_RESPONSE_CHARS}
            return Verdict(0.0, Reason.UNREAD, None, evidence)
        parts = _check_parts(f"<{tags[0]}>{response}" if opened else response, tags, answer, nothing_after)
        score = float(all(parts.values()))
        if weights:
            score = sum(weight for part, weight in weights.items() if parts[part]) / sum(weights.values())
        missing = [part for part, is_there in parts.items() if not is_there]
        return Verdict(min(1.0, score), reason_for_score(score), None, {"missing": missing, "parts": parts})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """Return None, because a right response depends on the tags in `info`."""
        return None


def _read_tags(info: Mapping[str, Any]) -> list[str]:
    tags = texts_option(info, "tags", ("think",), MAX_TAGS, MAX_TAG_CHARS)
    reserved = set(tags) & set(PARTS) - {ANSWER_TAG}
    if reserved or len(set(tags)) != len(tags) or not all(_TAG_NAME.fullmatch(tag) for tag in tags):
        raise BadOption(f"tags must be different names such as think; {', '.join(PARTS)} are reserved")
    return tags


def _read_weights(info: Mapping[str, Any], parts: Sequence[str]) -> dict[str, float]:
    option = info.get("weights", {})
    if not isinstance(option, Mapping) or not set(option) <= set(parts):
        raise BadOption(f"weights must be an object of numbers by part; the parts are {', '.join(parts)}")
    weights = {part: number_option(option, part) or 0.0 for part in option}
    if weights and not sum(weights.values()):
        raise BadOption("weights must not all be 0")
    return weights


def _check_parts(text: str, tags: Sequence[str], answer: str, nothing_after: bool) -> dict[str, bool]:
    """Return for each part whether it is present."""
    spans = {tag: _tag_span(text, tag) for tag in tags}
    present = {tag: span for tag, span in spans.items() if span is not None}
    starts, ends = [start for start, _ in present.values()], [end for _, end in present.values()]
    # If the list of tags has `answer`, that tag is the answer itself, and the searched text begins before it.
    before_answer = [tag for tag in tags if tag != ANSWER_TAG]
    is_whole = all(tag in present for tag in before_answer)
    behind = text[max((present[tag][1] for tag in before_answer), default=0) :] if is_whole else ""
    answers = _answer_spans(behind, answer)
    last = answers[-1] if answers else None
    parts = {tag: tag in present and _has_content(text, tag, present[tag]) for tag in tags}
    parts |= {
        "order": len(present) == len(spans) and all(end <= start for end, start in zip(ends, starts[1:], strict=False)),
        "start": not present or not text[: min(starts)].strip(),
        "answer": last is not None and bool(behind[last[0] : last[1]].strip()),
        "one_answer": len(answers) <= 1,
    }
    if nothing_after:
        rest = behind[last[1] :].removeprefix(f"</{ANSWER_TAG}>") if last is not None else ""
        parts["end"] = last is not None and (answer == "text" or _CLOSING.fullmatch(rest) is not None)
    return parts


def _has_content(text: str, tag: str, span: Span) -> bool:
    return bool(text[span[0] + len(f"<{tag}>") : span[1] - len(f"</{tag}>")].strip())


def _tag_span(text: str, tag: str) -> Span | None:
    """Return the span from `<tag>` to the end of `</tag>`, or None if one of them is missing, repeated or misplaced."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    start, end = text.find(opening), text.find(closing)
    return (start, end + len(closing)) if start < end else None


def _answer_spans(text: str, kind: str) -> list[Span]:
    """Return the spans of the contents of answers, in order. A box inside an answer tag is not a second answer."""
    if kind == "text":
        return [(0, len(text))] if text.strip() else []
    tagged = _tagged_spans(text) if kind in ("any", "tag") else []
    boxes = _box_spans(text) if kind in ("any", "box") else []
    outside = [box for box in boxes if not any(start <= box[0] and box[1] <= end for start, end in tagged)]
    return sorted(tagged + outside)


def _tagged_spans(text: str) -> list[Span]:
    """Return the spans between each <answer> and the next </answer>. One pattern for both would take quadratic time."""
    spans: list[Span] = []
    start: int | None = None
    for tag in _ANSWER_TAG.finditer(text):
        if tag.group() == f"<{ANSWER_TAG}>":
            start = tag.end()
        elif start is not None:
            spans.append((start, tag.start()))
            start = None
    return spans


def _box_spans(text: str) -> list[Span]:
    """Return the spans of the contents of closed boxes, without boxes inside boxes, in one pass over the braces."""
    open_braces: list[int | None] = []
    spans: list[Span] = []
    for token in _BOX_TOKENS.finditer(text):
        mark = token.group()
        if mark == "{":
            open_braces.append(None)
        elif mark == "}":
            start = open_braces.pop() if open_braces else None
            if start is not None:
                while spans and spans[-1][0] > start:  # The last box is inside this one.
                    spans.pop()
                spans.append((start, token.start()))
        elif mark.endswith("{") and len(mark) > 2:
            open_braces.append(token.end())
    return spans


@dataclass(frozen=True, slots=True)
class TagReport:
    """The result of `tag_tokens` for one tokenizer."""

    tokens: Mapping[str, int]
    """The number of tokens of each tag; 1 only if the tag is one token in all `CONTEXTS`."""
    recommended: tuple[str, str] | None
    """Thinking tags that are one token each, or None if this tokenizer has none."""

    @property
    def split(self) -> tuple[str, ...]:
        """The tags of more than one token."""
        return tuple(tag for tag, count in self.tokens.items() if count != 1)


@checked
def tag_tokens(tokenizer: Any, tags: Sequence[str]) -> TagReport:
    """Return the number of tokens of each tag (`<think>`), and thinking tags of one token each."""
    counts = {tag: _token_count(tokenizer, tag) for tag in tags}
    for pair in (*zip(tags[::2], tags[1::2], strict=False), *KNOWN_PAIRS):
        if all(_token_count(tokenizer, tag) == 1 for tag in pair):
            return TagReport(counts, pair)
    return TagReport(counts, None)


def _token_count(tokenizer: Any, tag: str) -> int:
    alone = _tokens(tokenizer, tag)
    if len(alone) != 1:
        return len(alone)
    whole = all(alone[0] in _tokens(tokenizer, context.format(tag)) for context in CONTEXTS)
    return 1 if whole else 2


def _tokens(tokenizer: Any, text: str) -> list[Any]:
    """Return the tokens of `text`, without those that the tokenizer adds to every text, such as BOS."""
    if hasattr(tokenizer, "tokenize"):
        return list(tokenizer.tokenize(text))
    around, tokens = _encoded(tokenizer, ""), _encoded(tokenizer, text)
    before = 0
    while before < min(len(around), len(tokens)) and around[before] == tokens[before]:
        before += 1
    return tokens[before : len(tokens) - (len(around) - before)]


def _encoded(tokenizer: Any, text: str) -> list[Any]:
    encoded = tokenizer.encode(text)
    return list(getattr(encoded, "ids", encoded))


@dataclass(frozen=True, slots=True)
class LengthVerifier(AnswerVerifier):
    """Scores responses by length: 1 up to `max - buffer`, then falling to 0 at `max`.

    Settings in `info`: `max` (required), `buffer` (default: a fifth of `max`), `length` (in tokens) and `unit`
    (default: `tokens` if `length` is set, else `chars`).
    """

    options: ClassVar[tuple[str, ...]] = ("max", "buffer", "length", "unit")
    needed_options: ClassVar[tuple[str, ...]] = ("max",)

    name: str = "length"
    version: str = "1"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        if (longest := integer_option(info, "max", 1, MAX_LENGTH)) is None:
            raise BadOption("max is required: the length from which on the score is 0")
        buffer = integer_option(info, "buffer", 0, longest)
        length, unit = _measure(response, info)
        buffer = longest // BUFFER_SHARE if buffer is None else buffer
        score = 1.0 + punishment(length, longest, buffer)
        evidence = {"length": length, "unit": unit, "max": longest, "buffer": buffer}
        return Verdict(score, reason_for_score(score), None, evidence)

    def check_options(self, info: Mapping[str, Any]) -> None:
        """Raise BadOption for an invalid value. `max` and `length` may be absent: rows or training set them."""
        super(LengthVerifier, self).check_options({"max": MAX_LENGTH, "length": 0, **info})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """Return gold, which is short enough unless `max` is small."""
        return gold


def punishment(length: int, longest: int, buffer: int) -> float:
    """Return DAPO's penalty (equation 13): 0 up to `longest - buffer`, then falling linearly to -1 at `longest`."""
    if length <= longest - buffer:
        return 0.0
    return max(-1.0, ((longest - buffer) - length) / buffer) if buffer and length <= longest else -1.0


def _measure(response: str, info: Mapping[str, Any]) -> tuple[int, str]:
    tokens = integer_option(info, "length", 0, MAX_LENGTH)
    unit = word_option(info, "unit", UNITS, "chars" if tokens is None else "tokens")
    if unit == "tokens":
        if tokens is None:
            raise BadOption("length is required if unit is tokens: tokens cannot be counted from the text")
        return tokens, unit
    return (len(response) if unit == "chars" else len(response.split())), unit
