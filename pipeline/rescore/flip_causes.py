r"""Names a likely cause of each flip, so that a report can group flips.

A flip is a rollout on which two judges differ. The judges are the log, which paid a reward or refused it, and the
verifiers A and B. Here the log and A differ:

    log        gold           answer        cause
    refused    72             72\%          percent sign added
    refused    \frac{1}{2}    0.5           fraction -> decimal
    refused    72             72            same text, several boxes
    paid       7              17            gold within the answer
    paid       7              two boxes     hedged: several boxes

The cause is found by comparing texts. It does not say which judge is right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from fractions import Fraction

import polars as pl

from truegold.pipeline.report.row_cards import EVIDENCE_WORDS, read_evidence
from truegold.pipeline.rescore.rescore import PASSED
from truegold.pipeline.tables.run_files import Fields
from truegold.verifiers.audit.form_reader import form_of

MAX_CHARS = 400
"""Only this number of characters at the end of a gold or an answer is compared."""
LONG_TAIL_CHARS = 25
"""If more characters than this follow an answer, they are words. Fewer characters may only close a formula."""
NEAR = 0.01
"""Two numbers with a smaller relative difference count as one number, rounded."""

ADDED, LEFT_OUT = " added", " left out"
_COMMAND = r"\\(?:text|mathrm|mbox|textbf|mathbf|textit|operatorname|boldsymbol)"
_WRAPPERS = re.compile(
    rf"{_COMMAND}\b|\\(?:left|right|displaystyle|big|Big|limits)\b|\\[!,;:. ()\[\]]|[{{}}$\s*]|\.$|\\d?t?frac"
)
"""Parts that change the look of a formula, but not its meaning."""
_MARKS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "percent sign": r"%|\bper\s?cent",
        "degrees": r"\\circ|°|\bdegrees?\b|\bdeg\b",
        "currency": r"\\\$|^\$\s?\d[\d.,]*$|[€£¥]|\b(?:dollars?|cents?|usd|euros?|yuan)\b",
        "scientific notation": r"\d\s*e[+-]?\d|\\(?:times|cdot)\s*10\s*\^",
        "thousands separator": r"\d(?:,|\{,\}|\\,|,\\!|[ \u00a0\u202f'])\d{3}(?!\d)",
        "equation": r"(?<![<>\\])=",
        "approximately": r"\\approx|≈|~\s*\d|\b(?:about|approximately)\b",
        "inequality": r"[<>≤≥]|\\[lg]eq?\b",
        "plus-minus": r"\\pm|±|\+/-",
        "mixed number": r"\d\s+\d+/\d+|\d\s*\\[dt]?frac",
        "fraction": r"\\[dtc]?frac|\d\)?\s*/\s*\(?\d|[½⅓¼¾⅔⅛]",
        "decimal": r"\d?\.\d",
        "root": r"\\sqrt|√|\bsqrt\b",
        "pi": r"\\pi\b|π|\bpi\b",
        "union": r"\\cup|∪",
        "set braces": r"\\\{",
        "interval": r"\[[^\]]*,|,[^\[(]*\]",
        "brackets": r"^\s*(?:\\left)?\(.*\)\s*$",
        "ratio": r"\d\s*:\s*\d",
        "list": r",\s|,(?!\d{3}\b)|\band\b|;|，|、",
        "power": r"\^|\*\*|[²³]",
        "product": r"\)\s*\(|\d\s*\(",
        "leading zero": r"(?<![\d.])0\d",
        "plus sign": r"^\s*\+",
        "number words": r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
        r"\w+teen|\w{2,5}ty|hundred|thousand|half|third|quarter)\b|[一二三四五六七八九十百千]",
        "option letter": r"^\s*\(?[A-J]\)?[.:)]?(?:\s|$)",
        "units or words": r"(?<![\\a-zA-Z])[a-zA-Zµμ]{2,}|\d\s*[a-zA-Z]{1,3}(?:\^\d)?\s*\}?$|[\u4e00-\u9fff]",
    }.items()
}
"""Features that a gold or an answer may have, the most specific first."""
_TEXT = re.compile(rf"{_COMMAND}\{{")
_FRACTION = re.compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_BOX = re.compile(r"\\(?:boxed|fbox)\b")
_NUMERAL = re.compile(r"-?\d+(?:\.\d+)?(?:/\d+)?")


PAID, REFUSED, BETWEEN = "paid", "refused", "between"
"""The kinds of flips: paid by the log but wrong by A, refused by the log but right by A, or only B differs."""


def with_causes(flips: pl.DataFrame) -> pl.DataFrame:
    """Return the flips with their kind and their `cause`."""
    records = flips.to_dicts()
    kinds = pl.Series("kind", list(map(kind_of, records)), dtype=pl.String)
    return flips.with_columns(kinds, pl.Series("cause", list(map(name_cause, records)), dtype=pl.String))


def group_flips(flips: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each kind and cause, the most frequent first, with the costliest flip as an example."""
    groups = flips.group_by("kind", "cause", maintain_order=True).agg(
        flips=pl.len(),
        prompts=pl.col("prompt").n_unique(),
        cost=pl.col("cost").sum(),
        **{name: pl.col(name).first() for name in ("file", "line", "gold", "logged_reading", "extracted_a")},
    )
    return groups.sort("flips", "cost", descending=True, maintain_order=True)


def kind_of(flip: Fields) -> str:
    """Return the kind of a flip: PAID, REFUSED or BETWEEN."""
    reward, score = flip["reward"], flip["score_a"]
    if reward is None or score is None or (reward >= PASSED) == (score >= PASSED):
        return BETWEEN
    return PAID if reward >= PASSED else REFUSED


def name_cause(flip: Fields) -> str:
    """Return the cause of a flip. It explains the difference between the log and A or, if they agree, between A and
    B."""
    flip = {**flip, **{name: (flip[name] or "")[-MAX_CHARS:] for name in ("gold", "extracted_a", "extracted_b")}}
    gold, answer, kind = flip["gold"], flip["extracted_a"], kind_of(flip)
    if kind == BETWEEN:
        difference = _difference(gold, flip["extracted_b"] or answer)
        return f"A {_plain(flip['reason_a'])}, B {_plain(flip['reason_b'])}: {difference or 'same text'}"
    if kind == REFUSED:
        return _difference(gold, answer) or f"same text, {_standing(flip)}"
    if flip["reason_a"] != "mismatch":
        return f"{_plain(flip['reason_a'])}: {_silence(flip)}"
    return _relation(gold, answer, flip["completion"] or "")


def _plain(reason: str | None) -> str:
    return (reason or "nothing").replace("_", " ")


def _difference(gold: str, answer: str) -> str | None:
    """Return how two texts differ that presumably have the same value. Return None if they are equal."""
    gold, answer = gold.strip(), answer.strip()
    if gold == answer:
        return None
    folds: dict[str, Callable[[str], str]] = {
        "full-width characters": lambda text: unicodedata.normalize("NFKC", text),
        "blanks": lambda text: re.sub(r"\s+", "", text),
        "letter case": str.casefold,
        "words as text": lambda text: _TEXT.sub("", text).replace("}", ""),
        "fraction spelling": lambda text: _WRAPPERS.sub("", _FRACTION.sub(r"\1/\2", text)),
        "LaTeX spelling": lambda text: _WRAPPERS.sub("", text),
    }
    for name, fold in folds.items():
        if fold(gold) == fold(answer):
            return name
    if len(_entries(gold)) > 1 and (relation := _entry_relation(_entries(gold), _entries(answer))) is not None:
        return relation
    only_gold, only_answer = (
        [name for name, mark in _MARKS.items() if mark.search(text) and not mark.search(other)]
        for text, other in ((gold, answer), (answer, gold))
    )
    if only_gold and only_answer:
        return f"{only_gold[0]} -> {only_answer[0]}"
    if only_gold or only_answer:
        return f"{only_answer[0]}{ADDED}" if only_answer else f"{only_gold[0]}{LEFT_OUT}"
    return f"{_kind(gold)} -> {_kind(answer)}"


def _kind(text: str) -> str:
    form = form_of(text)
    return form.kind if form is not None else "other text"


def _entries(text: str) -> list[str]:
    inner = re.sub(r"^\s*(?:\\left)?\\?[(\[{]|(?:\\right)?\\?[)\]}]\s*$", "", text)
    return [entry.strip() for entry in re.split(r",|;|\band\b|\\text\{ ?and ?\}|，|、", inner) if entry.strip()]


def _entry_relation(entries: list[str], others: list[str]) -> str | None:
    signs = {
        "other brackets": entries == others,
        "entries in another order": sorted(entries) == sorted(others),
        "entries are missing": set(others) < set(entries),
        "entries too many": set(entries) < set(others),
    }
    return _first_that_holds(signs)


def _standing(flip: Fields) -> str:
    """Return where the answer is in a response whose answer has the same text as the gold."""
    completion, answer = flip["completion"] or "", flip["extracted_a"].strip()
    if len(_BOX.findall(completion)) > 1:
        return "several boxes"
    form = read_evidence(flip["evidence_a"]).get("form")
    tail = completion[completion.rfind(answer) + len(answer) :] if answer else ""
    behind = ", words behind it" if len(tail.strip("\n}$.) *")) > LONG_TAIL_CHARS else ""
    words = EVIDENCE_WORDS.get("form", {}).get(str(form), str(form or "").replace("_", " "))
    return f"{words or 'as it is'}{behind}"


def _silence(flip: Fields) -> str:
    """Return the probable reason for which A found no answer, or several answers, in a response."""
    completion, gold = flip["completion"] or "", flip["gold"].strip()
    thoughts, mark, spoken = completion.rpartition("</think>")
    holds_gold = bool(gold) and gold in spoken
    signs = {
        "empty response": not completion.strip(),
        "thoughts without an end": "<think>" in completion and not mark,
        "several boxes": len(_BOX.findall(spoken)) > 1,
        "cut off": completion.count("{") > completion.count("}"),
        "gold within thoughts": bool(gold) and gold in thoughts and not holds_gold,
        "alternatives in one answer": re.search(r"\bor\b|或", flip["extracted_a"]) is not None,
        "gold somewhere in the text": holds_gold,
    }
    return _first_that_holds(signs) or "gold nowhere in the text"


def _first_that_holds(signs: Mapping[str, bool]) -> str | None:
    return next((name for name, holds in signs.items() if holds), None)


def _relation(gold: str, answer: str, completion: str) -> str:
    """Return the relation between the gold and a wrong answer for which a reward was paid."""
    gold, answer = gold.strip(), answer.strip()
    gold_value, answer_value = _value(gold), _value(answer)
    are_numbers = False
    if gold_value is not None and answer_value is not None:
        are_numbers = True
        if (relation := _number_relation(gold_value, answer_value, gold, answer)) is not None:
            return relation
    entries, others = _entries(gold), _entries(answer)
    if max(len(entries), len(others)) > 1 and (relation := _entry_relation(entries, others)) is not None:
        return relation
    difference = None if are_numbers else _difference(gold, answer)
    if difference is not None and difference.endswith((ADDED, LEFT_OUT)):
        return difference
    signs = {
        "gold within the answer": bool(gold) and gold in answer,
        "answer within the gold": bool(answer) and answer in gold,
    }
    if (sign := _first_that_holds(signs)) is not None:
        return sign
    if difference is not None and difference != "other text -> other text":
        return f"another value, {difference}"
    return "another value, gold elsewhere in the text" if gold and gold in completion else "another value"


def _value(text: str) -> Fraction | None:
    plain = re.sub(r"[,$\s]|\\[,!$]", "", re.sub(r"\\[dt]?frac\{(\d+)\}\{(\d+)\}", r"\1/\2", text))
    if not _NUMERAL.fullmatch(plain):
        return None
    top, _, bottom = plain.partition("/")
    divisor = Fraction(bottom or "1")
    return Fraction(top) / divisor if divisor else None


def _number_relation(gold: Fraction, answer: Fraction, gold_text: str, answer_text: str) -> str | None:
    """Return the relation between two different numbers, or None if there is no obvious one."""
    longer, shorter = sorted((gold_text, answer_text), key=len, reverse=True)
    is_part = longer.startswith(shorter) or longer.endswith(shorter)
    signs = {
        "other sign": answer == -gold,
        "a power of ten more or less": answer in {gold * Fraction(10) ** power for power in (-3, -2, -1, 1, 2, 3)},
        "reciprocal": answer * gold == 1,
        "rounded, or nearly equal": abs(answer - gold) < NEAR * abs(gold),
        "gold within the answer": is_part and longer == answer_text,
        "answer within the gold": is_part,
        "off by one": abs(answer - gold) == 1,
        "twice or half": answer in (2 * gold, gold / 2),
        "digits in another order": sorted(gold_text) == sorted(answer_text),
    }
    return _first_that_holds(signs)
