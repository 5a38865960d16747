r"""Writes two questions to a model about a problem, and reads its replies.

    find_prompt("A square has sides 3 and 4. ...", "12")      the first question: what is wrong with the problem?
    read_faults("contradiction: \"sides 3 and 4\" | a square has equal sides\nANSWER: none", problem)
                                  ->  FaultReply((QuotedFault(CONTRADICTION, "sides 3 and 4", ...),), answer=None)
    read_faults("NONE\nANSWER: 12", problem)            ->  FaultReply((), answer="12")
    defence_prompt(problem, "12", faults)                     the second question: can you defend the problem?
    read_defence("... so it is 12.\nSOUND: 12")          ->  "12"
    read_defence("FAULTY")                              ->  ""

A fault counts only if its quotation is in the problem. So invented faults do not count. Replies may begin with thoughts
and prose, may be Markdown or JSON, and may name the kinds in other words or in Chinese. A reply that cannot be read,
such as a refusal, an empty reply or ":", gives None.

The problem is sent between random marks. The model sees only the form of the gold, such as "-#.# km" for "-3.5 km", so
that the gold does not influence its answer.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import Any

from truegold.pipeline.config.stages import Fault
from truegold.pipeline.running.disk import digest_json
from truegold.verifiers.model_judge import MAX_PROBLEM_CHARS, MAX_REPLY_CHARS, neutralise

MAX_GOLD_CHARS = 300
"""The number of characters at the start of a gold whose form a prompt shows (`gold_form`)."""
MAX_CLAIM_CHARS = 400
"""The number of characters shown of a quotation, and of the reason after it."""
SHOWN_FAULTS = 3
"""The largest number of faults in the second question."""
TEXTS: Mapping[str, Any] = tomllib.loads(files(__package__).joinpath("well_posed.toml").read_text("utf-8"))
"""The prompts, and the names of the kinds of faults."""
PROMPTS_DIGEST = digest_json({**TEXTS, "kinds": {kind: entry["text"] for kind, entry in TEXTS["kinds"].items()}})[:12]
"""A digest of the prompts. The measurement of a model is valid only for the prompts that it was made with."""

_NONCE_CHARS = 12
_THOUGHTS = re.compile(r"<(/?)(?:think|thinking|thought|thoughts|reasoning)>", re.IGNORECASE)
_DECORATION = r"[\s>|*#_`\"'“”\-–•·\d.)(\[\]]*"
"""List marks, numbers and Markdown at the start of a line."""
_NO_FAULT = re.compile(
    rf"{_DECORATION}(?:faults?\W{{0,6}})?(?:none|no faults?(?: (?:was |were )?found)?|无|没有(?:错误|问题|缺陷)?)"
    r"[\s*_`.。]*$",
    re.IGNORECASE,
)
"""A line that states that there is no fault: `NONE`, `No faults were found.`"""
_ANSWER = re.compile(
    rf"{_DECORATION}(?:final\s+)?(?:answer|答案|答)[\s*_`\"]*[:：=][\s*_`]*(?P<answer>.*)$", re.IGNORECASE
)
"""A line with the model's answer: `ANSWER: 12`."""
_NO_ANSWER = re.compile(
    r"\W*(?:none\b|n/?a$|null$|(?:it )?can(?:no|')t be (?:determined|answered)|cannot determine|undetermined"
    r"|无$|没有答案|无法(?:确定|回答|求)|不能确定|不确定).*",
    re.IGNORECASE,
)
"""A statement in place of an answer: `cannot be determined`."""
_ABSENT = re.compile(
    r"\W*(?:none|no|nothing|n/?a|null|false|ok|not (?:found|present|applicable)|无|没有|否)?\W*$", re.IGNORECASE
)
"""A statement that a kind of fault is absent: `no`, `n/a`."""
_DEFENCE = re.compile(
    rf"{_DECORATION}(?:verdict\W{{0,6}})?(?:(?P<sound>sound|成立)[\s*_`\"]*[:：=|]\s*(?P<answer>.*)|(?P<faulty>faulty|不成立)\W*)$",
    re.IGNORECASE,
)
"""The verdict of the second reply: `SOUND: 12` or `FAULTY`."""
_QUOTED = re.compile(
    r"[\"“”«»「」『』]([^\"“”«»「」『』]+)[\"“”«»「」『』]|`([^`]+)`|(?<!\w)['‘]((?:[^'’]|['’](?=\w))+)['’](?!\w)"
)
"""Text in quotation marks of any style."""
_OTHER_ESCAPE = re.compile(r'\\\\|\\"|\\(?=[a-zA-Z]{2})|\\(?![bfnrtu/])')
"""Backslashes in JSON text. A single backslash that does not begin a JSON escape belongs to LaTeX."""
_TOKEN = re.compile(r"\d+|[^\W\d_㐀-鿿]+|[㐀-鿿]")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_CUT = re.compile(r"\.{3,}|…+")
"""Dots for words that a quotation leaves out."""


def _kind_names() -> Iterator[tuple[str, Fault]]:
    for fault in Fault:
        yield fault.removeprefix("model_"), fault
        for name in TEXTS["kinds"][fault]["names"]:
            yield name, fault


def _plain_name(name: str) -> str:
    return re.sub(r"[\s_\-]+", " ", name).strip().casefold()


_KINDS = {_plain_name(name): fault for name, fault in _kind_names()}
_NAMES = "|".join(re.escape(name).replace(r"\ ", r"[\s_\-]+") for name in sorted(_KINDS, key=len, reverse=True))
_FAULT = re.compile(
    rf"{_DECORATION}(?:(?:fault|kind)\W{{0,6}})?(?P<kind>{_NAMES})[\s*_`\"]*[:：|=–—]+[\s*_]*(?P<evidence>.*)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QuotedFault:
    """A fault that a model found, with words of the problem as evidence."""

    kind: Fault
    quotation: str
    why: str


@dataclass(frozen=True, slots=True)
class FaultReply:
    """The faults and the answer in a reply to the first question."""

    faults: tuple[QuotedFault, ...]
    """The faults with a quotation from the problem, one of each kind."""
    answer: str | None
    """The model's own answer, or None."""
    unquoted: int = 0
    """The number of faults without a quotation from the problem."""


def find_prompt(problem: str, gold: str | None, kinds: Sequence[Fault]) -> str | None:
    """Return the first question, or None if the problem is empty or too long.

    A long problem is not cut, because a missing end looks like a fault. Without a gold, the question leaves out the
    kind of fault that concerns the gold.
    """
    shown = _shown_problem(problem)
    if shown is None:
        return None
    form = gold_form(gold) if Fault.GOLD_OF_OTHER_KIND in kinds else ""
    listed = [kind for kind in kinds if kind is not Fault.GOLD_OF_OTHER_KIND or form]
    nonce = _nonce(problem, form)
    width = max((len(kind) for kind in listed), default=0) - len("model_") + 2
    lines = [f"{kind.removeprefix('model_'):<{width}}{TEXTS['kinds'][kind]['text']}" for kind in listed]
    text: str = TEXTS["find"]
    return text.format(nonce=nonce, problem=shown, gold=_gold_part(nonce, form), kinds="\n".join(lines)).strip()


def defence_prompt(problem: str, gold: str | None, faults: Sequence[QuotedFault]) -> str:
    """Return the second question: can the problem be defended against the faults?

    A fault of the gold is asked about only if there is no other fault.
    """
    about_problem = [fault for fault in faults if fault.kind is not Fault.GOLD_OF_OTHER_KIND]
    shown, sense = (about_problem, "problem") if about_problem else (list(faults), "gold")
    form = "" if about_problem else gold_form(gold)
    claims = "\n".join(_shown_claim(fault) for fault in shown[:SHOWN_FAULTS])
    nonce = _nonce(problem, claims)
    text: str = TEXTS["defend"]
    return text.format(
        nonce=nonce,
        problem=_shown_problem(problem),
        gold=_gold_part(nonce, form),
        claims=claims,
        **TEXTS["sense"][sense],
    ).strip()


def gold_form(gold: str | None) -> str:
    """Return the form of a gold: "-#.# km" for "-3.5 km"."""
    return re.sub(r"\d", "#", neutralise((gold or "")[:MAX_GOLD_CHARS]))


def _shown_problem(problem: str) -> str | None:
    if not problem.strip() or len(problem) > MAX_PROBLEM_CHARS:
        return None
    return "\n".join(map(neutralise, problem.splitlines()))


def _shown_claim(fault: QuotedFault) -> str:
    quotation, why = (neutralise(text[:MAX_CLAIM_CHARS]) for text in (fault.quotation, fault.why))
    return f'{fault.kind.removeprefix("model_").replace("_", " ")}: "{quotation}". {why}'.strip()


def _nonce(*asked: str) -> str:
    # A hash of the question's texts is the same in every run. A problem cannot contain its own hash.
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:_NONCE_CHARS].upper()


def _gold_part(nonce: str, form: str) -> str:
    return str(TEXTS["gold"].format(nonce=nonce, gold=form)) if form else ""


def read_faults(reply: str | None, problem: str) -> FaultReply | None:
    """Return the faults in a reply to the first question, or None if it cannot be read.

    The last statement about each kind counts. Statements before the line "NONE" do not count.
    """
    statements: dict[Fault, str] = {}
    answer, is_read = None, False
    lines = [line.strip() for line in _json_as_lines(_spoken(reply) or "").splitlines() if line.strip()]
    for line, following in pairwise([*lines, ""]):
        if (match := _FAULT.match(line)) is not None:
            is_below = not match["evidence"] and not _FAULT.match(following) and not _ANSWER.match(following)
            statements[_KINDS[_plain_name(match["kind"])]] = following if is_below else match["evidence"]
        elif (match := _ANSWER.match(line)) is not None:
            answer, is_read = match["answer"].strip(' *_`"'), True
        elif _NO_FAULT.match(line):
            statements, is_read = {}, True
    if not statements and not is_read:
        return None
    split = [
        (kind, *_split_evidence(text, problem, kind)) for kind, text in statements.items() if not _ABSENT.match(text)
    ]
    faults = tuple(QuotedFault(*parts) for parts in split if parts[1])
    return FaultReply(faults, answer if answer and not _NO_ANSWER.match(answer) else None, len(split) - len(faults))


def read_defence(reply: str | None) -> str | None:
    """Return the answer with which a reply to the second question defends the problem.

    Returns "" if the reply finds the problem faulty, and None if it cannot be read.
    """
    text = _spoken(reply)
    for line in reversed((text or "").splitlines()):
        if (match := _DEFENCE.match(line.strip())) is not None:
            answer = (match["answer"] or "").strip(' *_`"')
            return "" if match["faulty"] else answer or None
    return None


def _spoken(reply: str | None) -> str | None:
    """Return the reply without its thoughts, or None if it ends within them."""
    if reply is None:
        return None
    reply = reply[-MAX_REPLY_CHARS:]
    marks = list(_THOUGHTS.finditer(reply))
    if not marks:
        return reply
    return reply[marks[-1].end() :] if marks[-1][1] else None


def _json_as_lines(text: str) -> str:
    """Return a JSON reply in the requested line format. Other texts are returned unchanged."""
    # LaTeX in JSON strings often has single backslashes: "\frac" does not mean a form feed.
    source = _OTHER_ESCAPE.sub(lambda match: match[0] if len(match[0]) == 2 else r"\\", text)
    try:
        reply = json.loads(source[source.find("{") : source.rfind("}") + 1])
    except (ValueError, RecursionError):
        return text
    if not isinstance(reply, dict):
        return text
    values = {_plain_name(str(name)): value for name, value in reply.items()}
    listed = values.pop("faults", None)
    entries = [(str(fault.get("kind")), fault) for fault in listed or () if isinstance(fault, dict)]
    lines = [f"{name}: {_value_text(value)}" for name, value in [*values.items(), *entries]]
    return "\n".join([*lines, "NONE"] if listed in ([], "none") else lines)


def _value_text(value: object) -> str:
    """Return a value of a JSON reply as one line. An object becomes its quotation and its reason."""
    if isinstance(value, dict):
        quotation, reason = (
            next((str(value[name]) for name in names if name in value), "")
            for names in (("quotation", "quote", "evidence"), ("why", "reason", "explanation"))
        )
        return f'"{quotation}" | {reason}'.replace("\n", " ")
    if isinstance(value, list):
        return "; ".join(map(_value_text, value))
    return "none" if value is None else str(value).replace("\n", " ")


def _split_evidence(evidence: str, problem: str, kind: Fault) -> tuple[str, str]:
    """Return the quotation from the problem, or "", and the reason after it."""
    before, bar, why = evidence.partition("|")
    spans = [next(filter(None, match.groups())) for match in _QUOTED.finditer(evidence)]
    whole = before.strip().strip('"“”«»「」『』`*')
    for candidate in sorted([whole, *spans], key=len, reverse=True):
        if is_quotation(candidate, problem, kind):
            return candidate.strip(), why.strip() if bar else evidence.replace(candidate, "", 1).strip(' "“”:;,.-–—')
    return "", ""


def is_quotation(text: str, problem: str, kind: Fault) -> bool:
    """Return True if the words of `text` are in the problem, in this order. "..." stands for omitted words.

    Signs and LaTeX commands are ignored. A number always counts as a quotation. A single word counts only for an
    undefined notion or a missing thing.
    """
    single = kind in (Fault.UNDEFINED_NOTION, Fault.MISSING_REFERENCE)
    for strip in (False, True):
        whole = _tokens(problem, strip=strip)
        parts = [tokens for part in _CUT.split(text) if (tokens := _tokens(part, strip=strip))]
        count = sum(map(len, parts))
        enough = count >= (1 if single or (parts and parts[0][0].isdigit()) else min(2, len(whole)))
        if parts and enough and all(f" {' '.join(part)} " in f" {' '.join(whole)} " for part in parts):
            return True
    return single and not _tokens(text, strip=False) and bool(text.strip()) and text.strip() in problem


def _tokens(text: str, *, strip: bool) -> list[str]:
    text = unicodedata.normalize("NFKC", text)
    return _TOKEN.findall((_COMMAND.sub(" ", text) if strip else text).casefold())
