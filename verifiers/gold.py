r"""The golds of a row: several accepted golds, placeholders in place of gold, and a right response for a gold.

    gold "1/2", verifier_args {"other_golds": ["0.5", "50 %"]}
    gold ["1/2", "0.5"]       the same row as gold "1/2" with other_golds ["0.5"]        (`golds_in`)

The first gold is the row's gold; the others are the verifier's argument `other_golds`. `judge_any` tries each gold
until one gives the full score, and `evidence["gold"]` names it. Otherwise the best score is used, or None if one of the
golds could not be judged.

A gold may be a list in a call, an `Item`, a trainer's column or a request. A text is one gold, even if it looks like a
list; but `"['72', '73']"` in a column of data is a list that was written to CSV (`quoted_list`). For `choice` with
`multiple`, a list is one answer with several options.

    "see the solution below", "answers may vary", "证明略"      refers elsewhere: cannot be compared
    "N/A", "TBD", "null", "-", "?", "\\boxed{}"                 a placeholder, unless the set has such answers
    "none", "no solution", "undefined", "0"                     answers

A verdict on a placeholder has no score. A 0 would punish right answers, and a match would reward writing "N/A". The
right response for a gold is:

    math,  gold "\\frac12"                      ->  "\\boxed{\\frac12}"       (`gold_response`)
    code,  no gold, solution "print(1)"         ->  the solution in a code block
    exact, no gold                              ->  None

A class defines it by `gold_response(gold, solution) -> str | None`, a plain function by
`@verifier(gold_response="\\boxed{{{gold}}}")`. Otherwise gold itself is the response. None means that there is no right
response. A verifier with `judges_solutions = True` also judges rows without gold, such as programs with tests; its
`gold_response` then gets None for gold.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from numbers import Number
from string import Formatter
from typing import Any

from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import Reason, Verdict, Verifier

OTHER_GOLDS = "other_golds"
"""The argument with the other accepted golds. Every verifier has it."""
MAX_GOLDS = 64
"""The most golds of a row. Stops one row from taking as long as a data set."""

OF_VALUES = ("math", "math_verify", "numeric", "choice")
"""Verifiers whose golds are numbers, formulas and letters, but not quoted texts."""

_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.){1,200})\"|'((?:[^'\\]|\\.){1,200})'", re.DOTALL)
_QUOTED_LIST = re.compile(rf"\s*\[\s*(?:{_QUOTED.pattern})(?:[\s,]\s*,?\s*(?:{_QUOTED.pattern}))*\s*\]\s*", re.DOTALL)

MAX_PLACEHOLDER_CHARS = 2_000
"""A longer gold says something."""
_PATTERNS = tomllib.loads(files(__package__).joinpath("placeholder_golds.toml").read_text(encoding="utf-8"))
_ELSEWHERE, _NOTHING = (re.compile("|".join(_PATTERNS[name]), re.IGNORECASE) for name in ("elsewhere", "nothing"))
_REFERS = re.compile(
    r"see|refer|shown|omit|vary|given|derived|explained|prove|proof|as in|[见略如考答结]", re.IGNORECASE
)
"""A gold without a match refers nowhere: that is found out faster."""
_BEHIND = "|".join(_PATTERNS["elsewhere"] + _PATTERNS["shown"])
_REFERENCE = re.compile(
    rf"(?:\s*[(（\[]\s*|[,;.，；。]\s*|(?<=[\d$}}])\s+)(?:{_BEHIND})\s*[)）\]]?\s*[.。]?$"
    r"|^(?:(?:试?证明|求证)[:：，]?\s*)?(?:最终|正确)?(?:答案|结果)(?:应?(?:是|为)|[:：])[:：]?\s*(?=\S)",
    re.IGNORECASE,
)
"""Words after an answer that refer elsewhere, and Chinese words that announce an answer."""
NOTHING_IN_BULK = rf"(?i)^\s*(?:{'|'.join(_PATTERNS['in_bulk'])})[.。]?\s*$"
"""This matches golds such as "None.": one is an answer, a large share of a set has none."""
_WRITTEN_NULL = "None"
"""Python's None turned into text; "none" in other spellings is a possible answer."""


class BadGold(ValueError):
    """Raised for a gold that is neither an answer nor a list of answers. The text describes it."""


def golds_in(value: Any) -> list[str]:
    """Return the accepted golds in a value: a text, a number, or a list, tuple, array or tensor of these.

    golds_in("[1, 2]") == ["[1, 2]"], golds_in([["1"], 2]) == ["1", "2"], golds_in(np.float32(0.5)) == ["0.5"]

    None, not-a-number and blank entries are left out. Raises BadGold for anything else, such as a JSON object.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [str(value)]
    if isinstance(value, Number):
        text = str(value)
        return [] if text.lower() == "nan" else [text]
    if hasattr(value, "detach"):
        return golds_in(_array_of(value))
    if getattr(value, "shape", None) == ():
        scalar = value[()]
        return golds_in(scalar if isinstance(scalar, Number) else value.item())
    if isinstance(value, Mapping | bytes | bytearray) or not (hasattr(value, "__len__") and hasattr(value, "__iter__")):
        raise BadGold(f"gold is a text, a number or a list of these; this is {type(value).__name__} {value!r:.60}")
    entries = [golds_in(entry) for entry in value]
    if len(entries) > 1 and any(len(golds) > 1 for golds in entries):
        raise BadGold(f"gold is a list of accepted golds; this is a list of lists {value!r:.60}")
    return list(dict.fromkeys(gold for golds in entries for gold in golds if gold.strip()))


def quoted_list(text: object) -> list[str] | None:
    """Return the texts that a text lists in quotes, or None if it is anything else."""
    if not isinstance(text, str) or _QUOTED_LIST.fullmatch(text) is None:
        return None
    # JSON and repr write a backslash twice.
    return [(entry[1] or entry[2]).replace("\\\\", "\\") for entry in _QUOTED.finditer(text)]


def needs_all_golds(verifier: str, arguments: Mapping[str, Any]) -> bool:
    """Say whether a list of golds is one answer for this verifier: the options that have to be chosen together."""
    return verifier == "choice" and arguments.get("multiple") is True


def gold_and_arguments(
    golds: list[str], verifier: str, arguments: Mapping[str, Any]
) -> tuple[str | None, Mapping[str, Any]]:
    """Return the first gold, and the verifier's arguments with the other golds."""
    if len(golds) < 2:
        return next(iter(golds), None), arguments
    if needs_all_golds(verifier, arguments):
        return ", ".join(golds), arguments
    others = arguments.get(OTHER_GOLDS) or ()
    if mistake_in_golds(others) is not None:  # The check of arguments says so.
        return golds[0], arguments
    return golds[0], {**arguments, OTHER_GOLDS: [*golds[1:], *others]}


def _array_of(tensor: Any) -> Any:
    """Return the array of numpy behind a tensor of torch, which prints 0.1 as 0.1 in any precision."""
    tensor = tensor.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # numpy has no bfloat16.
        return tensor.float().numpy()


def all_golds(gold: str | None, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every accepted gold of a row, the first one first; empty where it has none."""
    others = arguments.get(OTHER_GOLDS) or ()
    return (*(() if gold is None else (gold,)), *others)


def mistake_in_golds(value: object) -> str | None:
    """Return why `other_golds` is not a list of accepted golds, or None if it is one."""
    if not isinstance(value, list | tuple) or not all(isinstance(gold, str) for gold in value):
        return f"{OTHER_GOLDS} must be a list of texts, got {value!r:.60}"
    if len(value) >= MAX_GOLDS:
        return f"{OTHER_GOLDS} has {len(value)} texts; a row may have {MAX_GOLDS} golds"
    return None


def judge_any(
    verifier: Verifier, response: str, gold: str | None, problem: str | None, info: Mapping[str, Any]
) -> Verdict:
    """Return the verdict of `verifier` against the accepted gold that gives the response its best verdict."""
    if (others := info.get(OTHER_GOLDS)) is None:
        return verifier(response, gold, problem=problem, info=info)
    if (mistake := mistake_in_golds(others)) is not None:
        return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": mistake})
    arguments = {name: value for name, value in info.items() if name != OTHER_GOLDS}
    verdicts: list[tuple[str | None, Verdict]] = []
    for accepted in all_golds(gold, info) or (None,):
        verdict = verifier(response, accepted, problem=problem, info=arguments)
        verdicts.append((accepted, verdict))
        if verdict.passed:
            break
    matched, verdict = _decisive(verdicts)
    return replace(verdict, evidence={**verdict.evidence, "gold": matched, "golds": 1 + len(others)})


def _decisive(verdicts: Sequence[tuple[str | None, Verdict]]) -> tuple[str | None, Verdict]:
    """Return the gold and the verdict that count."""
    if verdicts[-1][1].passed:
        return verdicts[-1]
    unjudged = next((entry for entry in verdicts if entry[1].score is None), None)
    return unjudged or max(verdicts, key=lambda entry: entry[1].score or 0.0)


def refers_elsewhere(gold: str) -> bool:
    """Tell whether a gold says that the answer is somewhere else, or that there is none."""
    return len(gold) <= MAX_PLACEHOLDER_CHARS and _ELSEWHERE.fullmatch(gold.strip()) is not None


def without_reference(gold: str) -> str:
    """Return a gold without a reference after its answer: "The answer is 7 (see figure)"."""
    if len(gold) > MAX_PLACEHOLDER_CHARS or _REFERS.search(gold) is None:
        return gold
    return _REFERENCE.sub("", gold) or gold


def is_placeholder(gold: str) -> bool:
    """Tell whether a gold is a placeholder for a missing answer."""
    text = gold.strip()
    if text[:1].isdigit() or (text[:1] == "\\" and text[1:2] not in "bt"):
        # No pattern begins like this, and most golds do.
        return False
    is_nothing = text == _WRITTEN_NULL or (len(text) <= MAX_PLACEHOLDER_CHARS and _NOTHING.fullmatch(text) is not None)
    return is_nothing or refers_elsewhere(gold)


def check_template(template: str) -> None:
    r"""Raise ConfigError unless a template of right responses has `{gold}`, and nothing else to fill in."""
    try:
        fields = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError as error:
        fields, why = set(), f": {error}"
    else:
        why = " and nothing else to fill in"
    if fields != {"gold"}:
        raise ConfigError(
            f"gold_response {template!r} has no {{gold}}{why}.",
            r"Braces that stay are written twice: \boxed{{{gold}}} becomes \boxed{42}.",
        )


def gold_response(verifier: Verifier, gold: str | None, solution: str | None = None) -> str | None:
    """Return the response that must earn the full score from `verifier`, or None if none can be made up."""
    if gold is None and (solution is None or not judges_solutions(verifier)):
        return None
    if (make_response := getattr(verifier, "gold_response", None)) is None:
        return gold
    response: str | None = make_response(gold, solution)
    return response


def judges_solutions(verifier: Verifier) -> bool:
    """Return whether a solution alone makes a perfect response, without a gold answer."""
    return getattr(verifier, "judges_solutions", False) is True
