r"""Asks a language model about answers that rules could not judge: the questions, and how replies are read.

    make_question(problem, gold, answer)  ->  JudgeQuestion with two prompts: gold first, and the answer first
    read_reply("... so both are 5.\nSAME")  ->  True        read_reply("They look the same to me.")  ->  None
    decide(True, True)  ->  True        decide(True, False)  ->  None: a judge that depends on the order does not know

A policy that is trained against a model learns to speak to it. What it wrote reaches the judge as one short line
between marks that it cannot know, without tags, control characters or line breaks, and the judge is not told which of
the two texts is gold. Three kinds of answers are never sent: those without a letter or a digit (`{` alone is known to
win model verifiers over), those that are too long to be answers, and those full of chat markup. Only the last line of a
reply counts, and only a plain verdict on it.

This module handles text alone; `truegold.pipeline.profile.judging` says which model is asked, and when. Not
covered: grading of proofs or of reasoning.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from importlib.resources import files

MAX_ANSWER_CHARS = 300
"""A longer answer is not sent. Stops essays that argue with the judge; cutting them could cut off a hedge."""

MAX_PROBLEM_CHARS = 4_000
"""Characters of the problem that a prompt shows; it is context only."""

MAX_REPLY_CHARS = 100_000
"""Only the end of a longer reply is read."""

MAX_TAGS = 2
"""An answer with more chat markup than a stray end-of-turn is an attack rather than an answer."""

_NONCE_CHARS = 12

_MARKUP = re.compile(r"<\|[^|<>]{0,60}\|>|</?[A-Za-z_][\w:-]{1,40}/?>|\[/?[A-Z_]{3,30}\]|<<[^<>]{0,40}>>")
"""Chat markup of the usual templates: <|im_start|>, </think>, [INST], <<SYS>>."""

_REPEATED_SIGN = re.compile(r"([^\w\s])\1{3,}")
_SAME = ("same", "equivalent")
_DIFFERENT = ("different", "not equivalent")
_KEYS = ("verdict", "same", "equivalent")

PROMPT = files(__package__).joinpath("model_judge_prompt.txt").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """The prompts of one comparison in both orders."""

    gold_first: str
    answer_first: str


def make_question(problem: str | None, gold: str, answer: str) -> JudgeQuestion | None:
    """Return the two prompts, or None if the judge should not be asked about this gold or answer."""
    shown_gold, shown_answer = neutralise_answer(gold), neutralise_answer(answer)
    if shown_gold is None or shown_answer is None:
        return None
    # The nonce is a hash over all that is asked: it repeats from run to run, and no answer can hold the hash of itself.
    asked = json.dumps([problem, gold, answer]).encode()
    nonce = hashlib.sha256(asked).hexdigest()[:_NONCE_CHARS].upper()
    shown_problem = "(not given)"
    if problem:
        shown_problem = "\n".join(map(neutralise, problem[:MAX_PROBLEM_CHARS].splitlines()))
    if nonce in f"{shown_problem}{shown_gold}{shown_answer}":
        return None
    return JudgeQuestion(
        PROMPT.format(nonce=nonce, problem=shown_problem, first=shown_gold, second=shown_answer),
        PROMPT.format(nonce=nonce, problem=shown_problem, first=shown_answer, second=shown_gold),
    )


def neutralise_answer(answer: str) -> str | None:
    """Return the answer as the judge may see it, or None if it must not see it."""
    if len(answer) > MAX_ANSWER_CHARS or not any(character.isalnum() for character in answer):
        return None
    shown = neutralise(answer)
    is_answer = any(character.isalnum() for character in shown) and len(_MARKUP.findall(answer)) <= MAX_TAGS
    return shown if is_answer else None


def read_reply(reply: str) -> bool | None:
    """Return True for the same, False for different, or None if the judge does not say either plainly."""
    if (line := last_line(reply)) is None:
        return None
    return _read_json(line) if line.startswith("{") else _read_word(line.removesuffix("."))


def last_line(reply: str) -> str | None:
    """Return a reply's last line without emphasis, or None if the reply was cut off in the middle of thoughts."""
    reply = reply[-MAX_REPLY_CHARS:]
    if "<think>" in reply and "</think>" not in reply:
        return None
    return reply.rpartition("</think>")[2].strip().rpartition("\n")[2].strip().strip("*_` ")


def decide(gold_first: bool | None, answer_first: bool | None) -> bool | None:
    """Return what the judge says in both orders, or None if the two do not agree."""
    return gold_first if gold_first == answer_first else None


def _read_json(line: str) -> bool | None:
    """Read `{"verdict": "same"}` or `{"same": true}`; an object with more in it is not a plain verdict."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(reply, dict) or len(reply) != 1 or next(iter(reply)) not in _KEYS:
        return None
    verdict = next(iter(reply.values()))
    if isinstance(verdict, bool):
        return verdict
    return _read_word(verdict) if isinstance(verdict, str) else None


def _read_word(word: str) -> bool | None:
    if word.casefold() in _SAME:
        return True
    return False if word.casefold() in _DIFFERENT else None


def neutralise(text: str) -> str:
    """Return the text as one line without what could close a mark, open a chat turn or hide.

    Control and format characters, tags and long runs of one sign go.
    """
    text = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    text = _MARKUP.sub(" ", text)
    # Each angle bracket that is left stands alone, so that no two halves of a tag make one.
    text = _REPEATED_SIGN.sub(r"\1\1\1", text.replace("<", " < ").replace(">", " > "))
    return " ".join(text.split())
