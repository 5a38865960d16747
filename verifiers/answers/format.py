r"""Is the response laid out as it was asked to be? What it answers does not matter here.

    <think>2+2 is 4</think> So \boxed{4}.          match
    <think>2+2 is 4</think>                        missing: answer
    <think>2+2 is 4. So \boxed{4}.                 missing: think, answer (the tag is never closed)
    <think></think> \boxed{4}                      missing: think (nothing in it)
    <think>...</think> \boxed{4} or \boxed{5}      missing: one_answer

The parts looked at, each with its own name in the evidence:

    NAME           each tag of `info["tags"]` stands there once, closed, with something in it
    order          the tags follow one another as listed, none inside another
    start          nothing stands before the first tag
    answer         behind the tags stands a final answer with something in it
    one_answer     and no second one
    end            nothing stands behind the answer; looked at only with `info["nothing_after"]`

The score is 1 where all parts are there and 0 otherwise; with `info["weights"]` (part to weight) it is the weighted
share of those that are, and parts without a weight do not count. Gold is not read. Not covered: attributes in tags,
Markdown structure, whether the thinking is worth anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from truegold.verifiers.options import NO_INFO, BadOption, bad_options, number, switch, texts, word
from truegold.verifiers.verdict import Reason, Verdict

MAX_RESPONSE_CHARS = 2_000_000
"""A longer response has no good form. Stops megabytes of tags made to stall the reward computation."""

MAX_TAGS = 10
MAX_TAG_CHARS = 40
ANSWERS = ("any", "box", "tag", "text")
ANSWER_TAG = "answer"
PARTS = ("order", "start", "answer", "one_answer", "end")

_TAG_NAME = re.compile(r"[A-Za-z_][\w|:.-]{0,39}")
_BOX_TOKENS = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\.|[{}]", re.DOTALL)
_ANSWER_TAG = re.compile(r"</?answer>")
_CLOSING = re.compile(r"(?:\s|[.。$*_}]|\\[\])])*")
"""What may close the sentence or the formula that a box stands in."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FormatVerifier:
    """Verifier `format`. Reads from `info`: `tags` (names in order, default `think`), `opened` (the prompt has opened
    the first tag, as some chat templates do), `answer` (`box`, `tag` for <answer>, `any` of these two, or `text`: any
    text), `nothing_after` and `weights`."""

    name: str = "format"
    version: str = "1"

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = NO_INFO,
    ) -> Verdict:
        try:
            wanted = _Wanted.read(info)
        except BadOption as error:
            return bad_options(error)
        if len(response) > MAX_RESPONSE_CHARS:
            evidence = {"chars": len(response), "limit": MAX_RESPONSE_CHARS}
            return Verdict(0.0, Reason.ANSWER_UNPARSED, None, evidence)
        parts = _parts(response, wanted)
        weights = wanted.weights or dict.fromkeys(parts, 1.0)
        total = sum(weights.values())
        score = sum(weight for part, weight in weights.items() if parts[part]) / total
        if not wanted.weights:
            score = float(all(parts.values()))
        missing = [part for part, there in parts.items() if not there]
        reason = Reason.MATCH if score == 1.0 else Reason.PARTIAL if score > 0.0 else Reason.MISMATCH
        return Verdict(min(1.0, score), reason, None, {"missing": missing, "parts": parts})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        return None  # it depends on the tags, which stand in `info`


@dataclass(frozen=True, slots=True)
class _Wanted:
    tags: Sequence[str]
    opened: bool
    answer: str
    nothing_after: bool
    weights: Mapping[str, float]

    @classmethod
    def read(cls, info: Mapping[str, Any]) -> _Wanted:
        tags = texts(info, "tags", ("think",), MAX_TAGS, MAX_TAG_CHARS)
        reserved = set(tags) & set(PARTS) - {ANSWER_TAG}
        if reserved or len(set(tags)) != len(tags) or not all(_TAG_NAME.fullmatch(tag) for tag in tags):
            raise BadOption(f"tags must be different names such as think, and none of {', '.join(PARTS)}")
        opened, nothing_after = switch(info, "opened", False), switch(info, "nothing_after", False)
        if opened and not tags:
            raise BadOption("opened needs a tag that the prompt has opened")
        answer = word(info, "answer", ANSWERS, "any")
        known = [*tags, *(part for part in PARTS if part != "end" or nothing_after)]
        return cls(tags, opened, answer, nothing_after, _weights(info, known))


def _weights(info: Mapping[str, Any], known: Sequence[str]) -> dict[str, float]:
    given = info.get("weights", {})
    if not isinstance(given, Mapping) or not set(given) <= set(known):
        raise BadOption(f"weights must be an object of numbers by part; the parts are {', '.join(known)}")
    weights = {part: number(given, part) or 0.0 for part in given}
    if weights and not sum(weights.values()):
        raise BadOption("weights must not all be 0")
    return weights


def _parts(response: str, wanted: _Wanted) -> dict[str, bool]:
    """Which parts are there."""
    text = f"<{wanted.tags[0]}>{response}" if wanted.opened else response
    spans = {tag: _tag_span(text, tag) for tag in wanted.tags}
    found = [span for span in spans.values() if span is not None]
    parts = {
        tag: span is not None and bool(text[span[0] + len(tag) + 2 : span[1] - len(tag) - 3].strip())
        for tag, span in spans.items()
    }
    in_order = len(found) == len(spans) and all(one[1] <= other[0] for one, other in pairwise(found))
    # An answer tag among the tags is the answer: what counts as behind the tags begins before it.
    before_answer = [span[1] for tag, span in spans.items() if span is not None and tag != ANSWER_TAG]
    whole = all(span is not None for tag, span in spans.items() if tag != ANSWER_TAG)
    behind = text[max(before_answer, default=0) :] if whole else ""
    answers = _answers(behind, wanted.answer)
    last = answers[-1] if answers else None
    parts |= {
        "order": in_order,
        "start": not found or not text[: min(span[0] for span in found)].strip(),
        "answer": last is not None and bool(behind[last[0] : last[1]].strip()),
        "one_answer": len(answers) <= 1,
    }
    if wanted.nothing_after:
        parts["end"] = last is not None and _is_closing(behind, last[1], wanted.answer)
    return parts


def _tag_span(text: str, tag: str) -> Span | None:
    """From `<tag>` to the end of `</tag>`, where each of the two stands there once and in this order."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    start, end = text.find(opening), text.find(closing)
    return (start, end + len(closing)) if start < end else None


def _answers(text: str, kind: str) -> list[Span]:
    """Where the contents of the final answers stand, in order. A box inside an answer tag is the same answer."""
    if kind == "text":
        return [(0, len(text))] if text.strip() else []
    tagged = _tagged(text) if kind in ("any", "tag") else []
    boxes = _boxes(text) if kind in ("any", "box") else []
    outside = [box for box in boxes if not any(start <= box[0] and box[1] <= end for start, end in tagged)]
    return sorted(tagged + outside)


def _tagged(text: str) -> list[Span]:
    """What stands between each <answer> and the next </answer>; a pattern for the pair would be quadratic."""
    found: list[Span] = []
    start: int | None = None
    for tag in _ANSWER_TAG.finditer(text):
        if tag.group() == f"<{ANSWER_TAG}>":
            start = tag.end()
        elif start is not None:
            found.append((start, tag.start()))
            start = None
    return found


def _boxes(text: str) -> list[Span]:
    """The contents of the outermost boxes that are closed, in one pass over the braces."""
    open_braces: list[int | None] = []
    found: list[Span] = []
    for token in _BOX_TOKENS.finditer(text):
        mark = token.group()
        if mark == "{":
            open_braces.append(None)
        elif mark == "}":
            start = open_braces.pop() if open_braces else None
            if start is not None:
                while found and found[-1][0] > start:  # boxes inside this one
                    found.pop()
                found.append((start, token.start()))
        elif mark.endswith("{") and len(mark) > 2:
            open_braces.append(token.end())
    return found


def _is_closing(text: str, end: int, kind: str) -> bool:
    rest = text[end:].removeprefix(f"</{ANSWER_TAG}>")
    return kind == "text" or _CLOSING.fullmatch(rest) is not None
