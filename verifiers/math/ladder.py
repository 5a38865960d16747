r"""The ladder: which rung decides whether an answer equals gold.

    text       the same text once both are typeset alike
    number     both are numbers: compared as fractions, nothing rounded unless `decimals` says so
    hedge      gold is one value, the answer offers several that are not all equal: never a match
    words      gold is a word or a phrase: compared as text
    symbolic   everything else: math-verify and sympy, in a child process with a deadline

A rung decides or passes on. The verdict's evidence names the rung, and how it read either side. What no rung can judge
comes back with score None; an answer that cannot be read where gold can earns 0.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from truegold.verifiers.math import worker
from truegold.verifiers.math.candidates import (
    MAX_PARTS,
    candidates,
    chain,
    is_letters,
    is_one_value,
    is_plain_text,
    leaves_sign_open,
    nesting,
    without_group_commas,
    without_name,
)
from truegold.verifiers.math.clean import Cleaned, clean, unmarked
from truegold.verifiers.math.number import NumberTooLarge, Quantity, read_quantity
from truegold.verifiers.verdict import Reason, Verdict

SCORES = {Reason.MATCH: 1.0, Reason.MISMATCH: 0.0, Reason.ANSWER_UNPARSED: 0.0}
"""What the symbolic rung's outcome is worth; any other could not be judged."""

MAX_ANSWER_CHARS = 1_000
"""Longer answers are not read. Stops expressions that are cheap to write and dear to parse."""

MAX_GOLD_CHARS = 4_000
MAX_NESTING = 50
"""Brackets inside brackets. Stops `((((…`, which keeps a parser busy for seconds before it fails."""

MAX_DECIMALS = 100
MAX_SHOWN_CHARS = 200


def equivalent(gold: str | None, answer: str, *, decimals: int | None = None) -> Verdict:
    """Does `answer` say the same as `gold`? With `decimals`, numbers need to agree to so many decimals only."""
    if gold is None or not gold.strip():
        return Verdict(None, Reason.GOLD_MISSING)
    if not answer.strip():
        return Verdict(0.0, Reason.NO_ANSWER)
    for side, text, limit in (("gold", gold, MAX_GOLD_CHARS), ("answer", answer, MAX_ANSWER_CHARS)):
        if len(text) > limit:
            return Verdict(None, Reason.LIMIT, answer, {"rung": "length", f"{side}_chars": len(text), "limit": limit})
    try:
        return _climb(clean(gold), clean(answer), answer, decimals)
    except NumberTooLarge as error:
        return Verdict(None, Reason.LIMIT, answer, {"rung": "number", "error": str(error)})


def _climb(gold: Cleaned, answer: Cleaned, extracted: str, decimals: int | None) -> Verdict:
    if not answer.key:  # `$$` or a lone full stop
        return Verdict(0.0, Reason.NO_ANSWER, extracted)
    if gold.key == answer.key:
        return _verdict(True, extracted, "text", gold.key, answer.key)
    wanted = read_quantity(without_name(gold.text))
    if wanted is not None:
        return _against_number(wanted, gold, answer, extracted, decimals)
    if is_plain_text(gold.text):
        return _against_words(gold, answer, extracted)
    if is_one_value(without_name(gold.text)):
        hedge = _hedge(gold, answer, extracted)
        return hedge or _symbolic(without_group_commas(gold.latex), without_group_commas(answer.latex), extracted)
    return _symbolic(gold.latex, answer.latex, extracted)


def _against_number(wanted: Quantity, gold: Cleaned, answer: Cleaned, extracted: str, decimals: int | None) -> Verdict:
    offered = read_quantity(without_name(answer.text), loose=True)
    if offered is not None:
        return _verdict(_agree(wanted, offered, decimals), extracted, "number", wanted, offered)
    if is_plain_text(answer.text):
        return _verdict(False, extracted, "number", wanted, answer.key)
    if leaves_sign_open(answer.text) and wanted.value:
        return _verdict(False, extracted, "hedge", wanted, answer.key, otherwise=Reason.HEDGED)
    parts = candidates(answer.text)
    parts = parts if len(parts) > 1 else chain(answer.text)
    if len(parts) > 1:
        return _all_parts(wanted, gold, parts, extracted, decimals)
    return _symbolic(gold.latex, parts[0] if parts else answer.latex, extracted)


def _all_parts(wanted: Quantity, gold: Cleaned, parts: list[str], extracted: str, decimals: int | None) -> Verdict:
    """`1/2 = 0.5` is one answer said twice; `6 = 5` and `5 or 6` are two answers, whichever of them is right."""
    shown = " | ".join(parts)
    if len(parts) > MAX_PARTS:
        return _verdict(False, extracted, "hedge", wanted, shown, otherwise=Reason.HEDGED)
    unread = []
    for part in parts:
        offered = read_quantity(without_name(part), loose=True)
        if offered is None:
            unread.append(part)
        elif not _agree(wanted, offered, decimals):
            return _verdict(False, extracted, "hedge", wanted, shown, otherwise=Reason.HEDGED)
    for part in unread:
        verdict = _symbolic(gold.latex, part, extracted)
        if verdict.score != 1.0:
            return verdict
    return _verdict(True, extracted, "symbolic" if unread else "number", wanted, shown)


def _against_words(gold: Cleaned, answer: Cleaned, extracted: str) -> Verdict:
    wanted, offered = gold.key.casefold(), answer.key.casefold()
    if wanted == offered or is_letters(answer.text):
        return _verdict(wanted == offered, extracted, "words", wanted, offered)
    return Verdict(None, Reason.GOLD_UNPARSED, extracted, {"rung": "words", "gold": wanted, "answer": offered})


def _hedge(gold: Cleaned, answer: Cleaned, extracted: str) -> Verdict | None:
    """Gold is one expression: an answer with several different ones at its top level is hedging."""
    parts = {clean(without_name(part)).key for part in candidates(answer.text)}
    if len(parts) > 1:
        return _verdict(False, extracted, "hedge", gold.key, " | ".join(sorted(parts)), otherwise=Reason.HEDGED)
    return None


def _symbolic(gold: str, answer: str, extracted: str) -> Verdict:
    if (depth := max(nesting(gold), nesting(answer))) > MAX_NESTING:
        return Verdict(None, Reason.LIMIT, extracted, {"rung": "symbolic", "nesting": depth, "limit": MAX_NESTING})
    reply = worker.compare(gold, unmarked(answer))
    evidence = {"rung": "symbolic", **reply.evidence}
    score = SCORES.get(reply.reason)
    return Verdict(score, reply.reason, extracted, evidence)


def _agree(wanted: Quantity, offered: Quantity, decimals: int | None) -> bool:
    # A unit that only one side names is taken as understood.
    if wanted.unit and offered.unit and wanted.unit != offered.unit:
        return False
    if decimals is None:
        return wanted.value == offered.value
    return abs(wanted.value - offered.value) <= Fraction(1, 2 * 10**decimals)


def _verdict(
    match: bool, extracted: str, rung: str, gold: object, answer: object, *, otherwise: Reason = Reason.MISMATCH
) -> Verdict:
    evidence: dict[str, Any] = {
        "rung": rung,
        "gold": str(gold)[:MAX_SHOWN_CHARS],
        "answer": str(answer)[:MAX_SHOWN_CHARS],
    }
    return Verdict(float(match), Reason.MATCH if match else otherwise, extracted, evidence)
