r"""Sorts the answers that systems gave to a labelled problem into classes of equal answers.

    LabelledProblem("17", gold="18", prompt="Janet's ducks lay 16 eggs ...")
    Sample("17", system="model-a", answer="26")                          an extracted answer
    Sample("17", system="model-a", response="So it is \\boxed{26}.")     a whole response

A system may have several samples for one problem. A sample with the `score` of an earlier verdict is not judged again.
Answers that agree with the label (gold) are class 0; the other classes are alternatives:

    gold "1/2", answers "0.5", "\frac12", "4", "4.0", "3"   ->   label 2 votes; "4" 2 votes; "3" 1 vote

Equal texts and equal whole numbers are joined without a verifier. The problem's verifier compares the other pairs of
distinct texts, at most `MAX_COMPARISONS` pairs a problem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from truegold.verifiers import ConfigError, GuardError, Item, Verifier, gold_response, judges_solutions, resolve
from truegold.verifiers.running.batch import verify_one

_ONE_OF_A_FEW = re.compile(r"\s*(?:\(?[A-Za-z]\)?[.:]?|yes|no|true|false|是|否|对|错)\s*", re.IGNORECASE)
"""An answer that is one of a few options: a letter such as "(B)", or a truth value."""
MAX_CHARS = 200
"""The maximum number of characters of a final answer. Longer texts are compared by their beginning and their length."""
_DIGIT_RUN = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")
"""A run of digits in a gold: "1,234" and "56" in "1,234.56"."""
_WHOLE_AMOUNT = re.compile(r"[-+−]?\$?(\d[\d,]*)(?:\.0*)?")
"""A whole number, possibly cut short by extraction: "$1,", "18.0"."""
MAX_COMPARISONS = 200
"""The maximum number of pairs of texts that the verifier compares for a problem. A text that was not compared is a
separate class. Without this limit, a thousand distinct texts need half a million comparisons."""
_WHOLE = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d{1,40})(?:\.0{1,6})?")
"""A whole number that is written in full: "1,234", "18.0". "1,23" does not match."""
_LETTER = re.compile(r"\(?([A-Za-z])\)?[.:]?")
"""The letter of an option: "B", "(B)", "B."."""
LABEL_CLASS = 0
"""The class of the answers that agree with gold."""
UNJUDGED_CLASS = -1
"""The class of the answers that could not be judged."""
CUT_CLASS = -2
"""The class of answers that are a part of gold. Extraction may have cut them short."""


@dataclass(frozen=True, slots=True)
class LabelledProblem:
    """A problem with its label."""

    id: str
    """The name by which samples refer to the problem."""
    gold: str | None
    """The label, or None for a problem without a label."""
    prompt: str | None = None
    """The prompt, if known. Prompt and solution serve only for a rough guess at the difficulty."""
    solution: str | None = None
    """A worked solution, if known."""
    verifier: str = "math"
    """The verifier that decides whether a sample agrees with the label."""
    verifier_args: str = "{}"
    """A JSON object, as in the canonical row."""
    source: str = ""
    """The file or data set of the problem. Each source has its own share of wrong labels."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer of a system to a problem: the extracted `answer`, or the whole `response`."""

    id: str
    """The id of the problem."""
    system: str
    """The model or the person that answered."""
    answer: str | None = None
    """The extracted answer, if it is known."""
    response: str | None = None
    """The whole response, from which the verifier extracts the answer."""
    score: float | None = None
    """The score of an earlier verdict in [0, 1], or None if the verifier could not judge."""
    judged: bool = False
    """Whether there is an earlier verdict."""
    step: int | None = None
    """The training step of the system at which the sample was drawn."""
    doubts: bool | None = None
    """Whether the response says that the problem lacks something (`doubts`). None without a whole response."""


def has_open_answer(item: LabelledProblem) -> bool:
    """Return whether the answer is open. An answer that is one of a few options, such as letters or truth values, is
    not."""
    return item.verifier != "choice" and item.gold is not None and not _ONE_OF_A_FEW.fullmatch(item.gold)


def is_cut_short(answer: str, gold: str) -> bool:
    """Return whether the answer is a whole number, and only the first or last part of gold.

    True for gold "1,234" and the answers "1" and "234", and for gold "3:45" and the answer "3". False for gold "1,234"
    and the answer "12".
    """
    plain = _WHOLE_AMOUNT.fullmatch(answer.strip().strip("$").strip()) if len(answer) <= MAX_CHARS else None
    if plain is None or len(gold) > MAX_CHARS:
        return False
    digits = plain[1].replace(",", "")
    numbers = [match.replace(",", "") for match in _DIGIT_RUN.findall(gold)]
    if not numbers:
        return False
    fraction = re.search(r"\.(\d+)", gold)
    if len(numbers) == 2 and fraction and not fraction[1].strip("0"):
        numbers = numbers[:1]  # "1800.00" is a whole number.
    if len(numbers) > 1:
        return digits in (numbers[0], numbers[-1])
    whole = numbers[0]
    return any(digits in (whole[:cut], whole[cut:]) for cut in range(len(whole) - 3, 0, -3))


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """A distinct text among the answers to a problem."""

    text: str
    count: int
    """The number of samples with this text."""
    agrees: bool | None = None
    """Whether the text agrees with gold, or None if it is not judged yet."""
    unjudged: bool = False
    """Whether a verifier could not judge the text."""


def classify(problem: LabelledProblem, forms: Sequence[AnswerForm]) -> tuple[list[int], list[str]]:
    """Return the class of each form, and the text of each alternative (class 1, 2, ...), the most frequent first.

    A verifier of programs cannot compare texts, so each text is a separate alternative. Raises ConfigError if the
    problem's verifier does not exist.
    """
    comparer = _Comparer(problem)
    classes = [UNJUDGED_CLASS] * len(forms)
    alternatives: list[list[int]] = []  # The forms of each alternative, the most frequent form first.
    by_key: dict[str, list[int]] = {}
    for index in sorted(range(len(forms)), key=lambda index: (-forms[index].count, forms[index].text)):
        text, agrees = forms[index].text, forms[index].agrees
        if agrees is None and not forms[index].unjudged:
            agrees = comparer.agrees_with_gold(text)
        if agrees is None:
            continue
        if agrees:
            classes[index] = LABEL_CLASS
        elif problem.gold is not None and is_cut_short(text, problem.gold):
            classes[index] = CUT_CLASS
        else:
            members = by_key.get(key_of(text))
            if members is None:
                same = (known for known in alternatives if comparer.are_same(forms[known[0]].text, text))
                members = next(same, None)
            if members is None:
                alternatives.append(members := [])
            members.append(index)
            by_key.setdefault(key_of(text), members)
    alternatives.sort(key=lambda members: -sum(forms[index].count for index in members))
    for rank, members in enumerate(alternatives, 1):
        for index in members:
            classes[index] = rank
    return classes, [forms[members[0]].text for members in alternatives]


@lru_cache(maxsize=256)
def key_of(text: str) -> str:
    """Return a key of a text. Texts with equal keys certainly have the same meaning.

    Spellings of one whole number have the same key, and so do texts that differ only in runs of spaces.
    """
    plain = text[:MAX_CHARS].strip().strip("$").strip().rstrip(".")
    if _WHOLE.fullmatch(plain):
        return f"={int(plain.partition('.')[0].replace(',', '').replace('−', '-'))}"
    cut = f"…{len(text)}" if len(text) > MAX_CHARS else ""
    return " ".join(plain.split()) + cut


def differ_for_certain(left: str, right: str) -> bool:
    """Return whether two texts are certainly different, as whole numbers or as letters of options."""
    left, right = key_of(left), key_of(right)
    if left == right:
        return False
    if left.startswith("=") and right.startswith("="):
        return True
    left_letter, right_letter = _LETTER.fullmatch(left), _LETTER.fullmatch(right)
    return bool(left_letter and right_letter and left_letter[1].upper() != right_letter[1].upper())


class _Comparer:
    """Compares the answers to one problem by its verifier, at most MAX_COMPARISONS pairs of them."""

    def __init__(self, item: LabelledProblem) -> None:
        self._gold = item.gold
        self._name, self._arguments = item.verifier, item.verifier_args or "{}"
        self._verifier = _verifier(item.verifier)
        self._is_for_programs = judges_solutions(self._verifier)
        self._comparisons_left = MAX_COMPARISONS

    def agrees_with_gold(self, text: str) -> bool | None:
        """Return whether an answer agrees with gold, or None if it cannot be judged."""
        if self._gold is None or self._is_for_programs:
            return None
        if key_of(self._gold) == key_of(text):
            return True
        if differ_for_certain(self._gold, text):
            return False
        return self._verify(self._gold, text)

    def are_same(self, left: str, right: str) -> bool:
        """Return whether the verifier finds two answers equal. After MAX_COMPARISONS pairs, return False."""
        if self._is_for_programs or differ_for_certain(left, right) or self._comparisons_left <= 0:
            return False
        self._comparisons_left -= 1
        return self._verify(left, right) is True

    def _verify(self, gold: str, text: str) -> bool | None:
        try:
            response = gold_response(self._verifier, text, None)
            verdict = verify_one(Item(text if response is None else response, gold, self._name, self._arguments))
        except GuardError:
            raise
        except Exception:  # A user's verifier may raise any exception. The answer is then unjudged.
            return None
        return None if verdict.score is None else verdict.score == 1.0


@lru_cache(maxsize=64)
def _verifier(name: str) -> Verifier:
    try:
        return resolve(name)
    except ConfigError as error:
        raise ConfigError(f"the items name a verifier that cannot be loaded: {error}") from error
