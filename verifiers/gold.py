r"""Handles the golds (reference answers) of a row: several accepted ones, placeholders, and right responses.

    gold "1/2", verifier_args {"other_golds": ["0.5", "50 %"]}
    gold ["1/2", "0.5"]       the same row as gold "1/2" with other_golds ["0.5"]        (`golds_in`)

The first gold is the row's gold; the other golds are the verifier's argument `other_golds`. `judge_any` tries each gold
until one gives the full score, and `evidence["gold"]` names that gold. If none does, the best score is used, or None if
one of the golds could not be judged.

In a call, an `Item`, a trainer's column or a request, gold may be a list. A text is one gold, even if it looks like a
list. One exception: `"['72', '73']"` in a column of data is a list that was written to CSV (`quoted_list`). For
`choice` with `multiple`, a list is one answer with several options.

    Gold                                                   Meaning
    "see the solution below", "siehe S. 3", "同上", "证明略"    refers elsewhere: cannot be compared
    "N/A", "TBD", "null", "None", "-", "?", "\\boxed{}"       a placeholder; for `exact` an answer
    "none", "no solution", "undefined", "0"                   an answer

Without an answer in gold, a verdict has no score: 0 would punish right answers, and 1 would reward "N/A".

`gold_response` returns a right response for a gold, or None if none can be made:

    math,  gold "\\frac12"                      ->  "\\boxed{\\frac12}"
    code,  no gold, solution "print(1)"         ->  the solution in a code block
    exact, no gold                              ->  None

A verifier class defines a method `gold_response(gold, solution) -> str | None`; a plain function names a template:
`@verifier(gold_response="\\boxed{{{gold}}}")`. Without either, gold itself is the right response. A verifier with
`judges_solutions = True` also judges rows without gold, such as programs with tests; its `gold_response` then gets
None as gold.
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

from truegold.verifiers.checked import checked
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import Reason, Verdict, Verifier

OTHER_GOLDS = "other_golds"
"""The argument of every verifier that lists the accepted golds after the first."""
MAX_GOLDS = 64
"""Maximum number of golds of a row."""

OF_VALUES = ("math", "math_verify", "numeric", "choice")
"""Verifiers whose golds are numbers, formulas or letters, never quoted texts."""

_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.){1,200})\"|'((?:[^'\\]|\\.){1,200})'", re.DOTALL)
"""A text in quotes: `"72"`, `'7\\'2'`."""
_QUOTED_LIST = re.compile(rf"\s*\[\s*(?:{_QUOTED.pattern})(?:[\s,]\s*,?\s*(?:{_QUOTED.pattern}))*\s*\]\s*", re.DOTALL)

MAX_PLACEHOLDER_CHARS = 2_000
"""Maximum length of a placeholder, in characters."""
_PATTERNS = tomllib.loads(files(__package__).joinpath("placeholder_golds.toml").read_text(encoding="utf-8"))
_ELSEWHERE, _NOTHING = (re.compile("|".join(_PATTERNS[name]), re.IGNORECASE) for name in ("elsewhere", "nothing"))
_WRAPS = re.compile(r"^(?:[\s$*_(（\[【]|\\(?:text|textbf|boxed)\s*\{)+|[\s$*_)）\]】}。]{1,12}$|(?<=\w\w)\.\s*$")
"""Marks around the words of a gold: brackets, emphasis, `\\text{}`, a full stop."""
_REFERS = re.compile(
    r"see|refer|cf|shown|omit|vary|given|derived|explained|prove|proof|as in|siehe|vgl|voir|vedi|см|[见略如考答结参]",
    re.IGNORECASE,
)
"""A fast test before `_REFERENCE`: a gold without a match cannot have a reference."""
_BEHIND = "|".join(_PATTERNS["elsewhere"] + _PATTERNS["shown"])
_REFERENCE = re.compile(
    rf"(?:\s*[(（\[]\s*|[,;.，；。]\s*|(?<=[\d$}}])\s+)(?:{_BEHIND})\s*[)）\]]?\s*[.。]?$"
    r"|^(?:(?:试?证明|求证)[:：，]?\s*)?(?:最终|正确)?(?:答案|结果)(?:应?(?:是|为)|[:：])[:：]?\s*(?=\S)",
    re.IGNORECASE,
)
"""A reference after an answer, and Chinese words before one: `7 (see figure)`, `答案是7`."""
NOTHING_IN_BULK = rf"(?i)^\s*(?:{'|'.join(_PATTERNS['in_bulk'])})[.。]?\s*$"
"""A pattern of golds such as "None.": answers in a few rows, but placeholders if a large share of a set has them."""
_WRITTEN_NULL = "None"
"""Python's None as text. It is a placeholder, while "none" in other spellings may be an answer."""


class BadGold(ValueError):
    """A gold that is neither an answer nor a list of answers. The text describes the value."""


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
        raise BadGold(f"gold must be a text, a number or a list of these; this is {type(value).__name__} {value!r:.60}")
    entries = [golds_in(entry) for entry in value]
    if len(entries) > 1 and any(len(golds) > 1 for golds in entries):
        raise BadGold(f"gold must be a list of accepted golds; this is a list of lists {value!r:.60}")
    return list(dict.fromkeys(gold for golds in entries for gold in golds if gold.strip()))


def quoted_list(text: object) -> list[str] | None:
    """Return the entries of a written list of quoted texts (`"['72', '73']"`), or None for any other text."""
    if not isinstance(text, str) or _QUOTED_LIST.fullmatch(text) is None:
        return None
    # JSON and repr double each backslash.
    return [(entry[1] or entry[2]).replace("\\\\", "\\") for entry in _QUOTED.finditer(text)]


def needs_all_golds(verifier: str, arguments: Mapping[str, Any]) -> bool:
    """Say whether a list of golds is one answer for this verifier: `choice` with `multiple` needs all of them."""
    return verifier == "choice" and arguments.get("multiple") is True


def gold_and_arguments(
    golds: list[str], verifier: str, arguments: Mapping[str, Any]
) -> tuple[str | None, Mapping[str, Any]]:
    """Return the first gold, and the verifier's arguments with the remaining golds as `other_golds`."""
    if len(golds) < 2:
        return next(iter(golds), None), arguments
    if needs_all_golds(verifier, arguments):
        return ", ".join(golds), arguments
    others = arguments.get(OTHER_GOLDS) or ()
    if mistake_in_golds(others) is not None:  # `judge_any` reports the mistake.
        return golds[0], arguments
    return golds[0], {**arguments, OTHER_GOLDS: [*golds[1:], *others]}


def _array_of(tensor: Any) -> Any:
    """Return a torch tensor as a numpy array. A float32 of 0.1 then prints as 0.1."""
    tensor = tensor.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # numpy has no bfloat16.
        return tensor.float().numpy()


def all_golds(gold: str | None, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every accepted gold of a row, the row's own gold first; empty if the row has no gold."""
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
    """Return the verdict against the accepted golds: the first full score, else one without a score, else the best."""
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
    """Return the deciding gold and verdict: one that passed, else one without a score, else the best score."""
    if verdicts[-1][1].passed:
        return verdicts[-1]
    unjudged = next((entry for entry in verdicts if entry[1].score is None), None)
    return unjudged or max(verdicts, key=lambda entry: entry[1].score or 0.0)


def refers_elsewhere(gold: str) -> bool:
    """Say whether a gold refers to another place for the answer, or says that the answer is omitted or varies."""
    return len(gold) <= MAX_PLACEHOLDER_CHARS and _ELSEWHERE.fullmatch(_WRAPS.sub("", gold)) is not None


def without_reference(gold: str) -> str:
    """Return a gold without the reference after its answer: "7 (see figure)" -> "7"."""
    if len(gold) > MAX_PLACEHOLDER_CHARS or _REFERS.search(gold) is None:
        return gold
    return _REFERENCE.sub("", gold) or gold


def is_placeholder(gold: str) -> bool:
    """Say whether a gold is a placeholder for a missing answer."""
    text = gold.strip()
    if text[:1].isdigit() or (text[:1] == "\\" and text[1:2] not in "bt"):
        # A fast path: most golds begin like this, and no placeholder does.
        return False
    if text == _WRITTEN_NULL or refers_elsewhere(gold):
        return True
    return len(text) <= MAX_PLACEHOLDER_CHARS and _NOTHING.fullmatch(text) is not None


def check_template(template: str) -> None:
    r"""Raise ConfigError unless `{gold}` is the only field of a template for right responses."""
    try:
        fields = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError as error:
        fields, why = set(), f": {error}"
    else:
        why = ""
    if fields != {"gold"}:
        raise ConfigError(
            f"gold_response {template!r} must have {{gold}} as its only field{why}.",
            r"Double every literal brace: \boxed{{{gold}}} becomes \boxed{42}.",
        )


@checked
def gold_response(verifier: Verifier, gold: str | None, solution: str | None = None) -> str | None:
    """Return a response that must earn the full score from `verifier`, or None if none can be made."""
    if gold is None and (solution is None or not judges_solutions(verifier)):
        return None
    if (make_response := getattr(verifier, "gold_response", None)) is None:
        return gold
    response: str | None = make_response(gold, solution)
    return response


def judges_solutions(verifier: Verifier) -> bool:
    """Return whether a verifier judges rows without gold, for which a solution is a right response."""
    return getattr(verifier, "judges_solutions", False) is True
