r"""Makes prompts that ask a language model (the judge) whether an answer equals gold, and reads its replies.

    make_question(problem, gold, answer)  ->  JudgeQuestion with two prompts: one shows gold first, one the answer
    read_reply("... so both are 5.\nSAME")  ->  True        read_reply("They look the same to me.")  ->  None
    decide(True, True)  ->  True        decide(True, False)  ->  None: the replies depend on the order

A model that is trained against a judge learns to manipulate it. The prompt therefore shows the answer as one short line
without tags, control characters or line breaks. Marks around the line contain a nonce, which the model cannot guess.
The prompt does not say which of the two texts is gold. Three kinds of answers are never sent: answers without a letter
or a digit (a lone `{` is known to fool model verifiers), answers that are too long, and answers full of chat markup. A
reply counts only if its last line is a plain verdict.

This module only makes and reads texts; `truegold.pipeline.profile.judging` calls the model. Not covered: grading of
proofs or of reasoning.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from importlib.resources import files

MAX_ANSWER_CHARS = 300
"""Maximum length of an answer that is sent, in characters. Longer texts may argue with the judge. They are not cut,
since a cut could remove a second answer."""

MAX_PROBLEM_CHARS = 4_000
"""Maximum number of characters of the problem that a prompt shows."""

MAX_REPLY_CHARS = 100_000
"""Maximum number of characters that are read from the end of a reply."""

MAX_TAGS = 2
"""Maximum number of tags of chat markup in an answer that is sent. More tags are taken for an attack."""

_NONCE_CHARS = 12

_MARKUP = re.compile(r"<\|[^|<>]{0,60}\|>|</?[A-Za-z_][\w:-]{1,40}/?>|\[/?[A-Z_]{3,30}\]|<<[^<>]{0,40}>>")
"""Chat markup of the usual templates: <|im_start|>, </think>, [INST], <<SYS>>."""

_REPEATED_SIGN = re.compile(r"([^\w\s])\1{3,}")
"""The same sign four times or more: `====`."""
_SAME = ("same", "equivalent")
_DIFFERENT = ("different", "not equivalent")
_KEYS = ("verdict", "same", "equivalent")
"""Keys of a JSON reply that may hold the verdict."""

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
    # The nonce is a hash of the whole question: it is the same in every run, and no answer can contain its own hash.
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
    """Return the answer as the prompt shows it, or None if the answer must not be sent."""
    if len(answer) > MAX_ANSWER_CHARS or not any(character.isalnum() for character in answer):
        return None
    shown = neutralise(answer)
    is_answer = any(character.isalnum() for character in shown) and len(_MARKUP.findall(answer)) <= MAX_TAGS
    return shown if is_answer else None


def read_reply(reply: str) -> bool | None:
    """Return True for "same", False for "different", or None if the reply ends with neither."""
    if (line := last_line(reply)) is None:
        return None
    return _read_json(line) if line.startswith("{") else _read_word(line.removesuffix("."))


def last_line(reply: str) -> str | None:
    """Return the last line of a reply without Markdown emphasis, or None if the reply ends inside `<think>`."""
    reply = reply[-MAX_REPLY_CHARS:]
    if "<think>" in reply and "</think>" not in reply:
        return None
    return reply.rpartition("</think>")[2].strip().rpartition("\n")[2].strip().strip("*_` ")


def decide(gold_first: bool | None, answer_first: bool | None) -> bool | None:
    """Return the verdict that both orders agree on, or None if they differ."""
    return gold_first if gold_first == answer_first else None


def _read_json(line: str) -> bool | None:
    """Read `{"verdict": "same"}` or `{"same": true}`; an object with several keys is not a plain verdict."""
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
    """Return the text as one line that can neither close a mark, nor open a chat turn, nor hide characters.

    Control and format characters and tags are removed, and long runs of one sign are shortened.
    """
    text = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    text = _MARKUP.sub(" ", text)
    # Spaces around the remaining angle brackets keep two halves of a tag from joining.
    text = _REPEATED_SIGN.sub(r"\1\1\1", text.replace("<", " < ").replace(">", " > "))
    return " ".join(text.split())
