r"""Labelled problems, the answers that systems gave to them, and classes of answers of equal meaning.

    LabelledProblem("17", gold="18", prompt="Janet's ducks lay 16 eggs ...")
    Sample("17", system="model-a", answer="26")                          an answer that was extracted before
    Sample("17", system="model-a", response="So it is \\boxed{26}.")     a whole response

Several samples of one system for one problem are repeated draws. A sample that a verifier has judged before brings its
`score`, and is not judged again. Class 0 is the label's, the others are alternatives:

    gold "1/2", answers "0.5", "\frac12", "2", "2.0", "3"   ->   label 2 votes; "2" 2 votes; "3" 1 vote

Equal texts and equal whole numbers are joined without a verifier; the problem's verifier compares what is left, each
pair of distinct forms once and at most `MAX_COMPARISONS` of them for a problem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from truegold.verifiers import ConfigError, GuardError, Item, Verifier, gold_response, judges_solutions, resolve
from truegold.verifiers.running.batch import verify_one

_ONE_OF_A_FEW = re.compile(r"\s*(?:\(?[A-Za-z]\)?[.:]?|yes|no|true|false|是|否|对|错)\s*", re.IGNORECASE)
"""A letter, "(B)", or a truth value."""
MAX_CHARS = 200
"""Longer texts are not final answers: they are not looked at for numbers, and are compared by beginning and length."""
_DIGIT_RUN = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")
"""Each number of a gold, without its decimals: "1,234" and "56" of "1,234.56"."""
_WHOLE_AMOUNT = re.compile(r"[-+−]?\$?(\d[\d,]*)(?:\.0*)?")
"""A whole number as extraction may leave it: "$1,", "18.0"."""
MAX_COMPARISONS = 200
"""Pairs of forms that the verifier compares for one item: a thousand distinct texts must not cost a million
comparisons. Each form beyond the limit is a class of its own."""
_WHOLE = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d{1,40})(?:\.0{1,6})?")
"""A whole number that is written in full: "1,234", "18.0"; not "1,23"."""
_LETTER = re.compile(r"\(?([A-Za-z])\)?[.:]?")
LABEL_CLASS = 0
"""The class of the answers that agree with gold."""
UNJUDGED_CLASS = -1
"""The class of the answers that could not be judged."""
CUT_CLASS = -2
"""The class of the answers that are a part of gold: extraction may have cut them short."""


@dataclass(frozen=True, slots=True)
class LabelledProblem:
    """One labelled problem."""

    id: str
    """The name by which samples know the item."""
    gold: str | None
    """The label, or None if there is none to suspect."""
    prompt: str | None = None
    """Optional; prompt and solution serve only as a weak guess at the item's difficulty."""
    solution: str | None = None
    """A worked solution; optional, like the prompt."""
    verifier: str = "math"
    """The verifier that decides whether a sample gives the label."""
    verifier_args: str = "{}"
    """A JSON object, as in the canonical row."""
    source: str = ""
    """The file or the set that it comes from: sources differ in how many of their labels are at fault."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer of one system to one item: the extracted `answer`, or the whole `response`."""

    id: str
    """The item's."""
    system: str
    """The model or the person that answered."""
    answer: str | None = None
    """The answer, where it was extracted before."""
    response: str | None = None
    """The whole response, where the verifier is to extract the answer."""
    score: float | None = None
    """The score of an earlier verdict in [0, 1], or None if the verifier could not judge."""
    judged: bool = False
    """Whether there was an earlier verdict."""
    step: int | None = None
    """The step of the system's training at which it was drawn."""
    doubts: bool | None = None
    """Whether the whole response finds the problem lacking (`doubts`), or None if there is none."""


def has_open_answer(item: LabelledProblem) -> bool:
    """Return whether the answer is not one of a few, where independent errors would agree by chance."""
    return item.verifier != "choice" and item.gold is not None and not _ONE_OF_A_FEW.fullmatch(item.gold)


def is_cut_short(answer: str, gold: str) -> bool:
    """Return whether the answer is a whole number that gold begins or ends with, gold having more than that.

    Gold "1,234" and answer "1" or "234", gold "3:45" and answer "3"; not gold "1,234" and answer "12".
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
    """A distinct text among an item's answers."""

    text: str
    count: int
    """The samples that have it."""
    agrees: bool | None = None
    """Whether it agrees with gold, or None if that is still to be judged."""
    unjudged: bool = False
    """Whether a verifier could not judge it."""


def classify(problem: LabelledProblem, forms: Sequence[AnswerForm]) -> tuple[list[int], list[str]]:
    """Return the class of each form, and a text for each alternative, from class 1 on, by falling count.

    ConfigError where the problem names a verifier that does not exist. Where the verifier judges programs no two texts
    can be compared, and each is an alternative of its own.
    """
    comparer = _Comparer(problem)
    classes = [UNJUDGED_CLASS] * len(forms)
    alternatives: list[list[int]] = []  # The forms of each alternative, the most frequent first.
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
    """Return a key that is equal for texts that mean the same for certain.

    These are texts of the same whole number, and texts that differ in runs of blanks alone.
    """
    plain = text[:MAX_CHARS].strip().strip("$").strip().rstrip(".")
    if _WHOLE.fullmatch(plain):
        return f"={int(plain.partition('.')[0].replace(',', '').replace('−', '-'))}"
    cut = f"…{len(text)}" if len(text) > MAX_CHARS else ""
    return " ".join(plain.split()) + cut


def differ_for_certain(left: str, right: str) -> bool:
    """Return whether two texts are whole numbers, or letters of options, that differ: no verifier has to compare them."""
    left, right = key_of(left), key_of(right)
    if left == right:
        return False
    if left.startswith("=") and right.startswith("="):
        return True
    left_letter, right_letter = _LETTER.fullmatch(left), _LETTER.fullmatch(right)
    return bool(left_letter and right_letter and left_letter[1].upper() != right_letter[1].upper())


class _Comparer:
    """Compares the answers of one item with the item's verifier, within a budget."""

    def __init__(self, item: LabelledProblem) -> None:
        self._gold = item.gold
        self._name, self._arguments = item.verifier, item.verifier_args or "{}"
        self._verifier = _verifier(item.verifier)
        self._is_for_programs = judges_solutions(self._verifier)
        self._comparisons_left = MAX_COMPARISONS

    def agrees_with_gold(self, text: str) -> bool | None:
        """Return whether an answer agrees with gold, or None if that cannot be judged."""
        if self._gold is None or self._is_for_programs:
            return None
        if key_of(self._gold) == key_of(text):
            return True
        if differ_for_certain(self._gold, text):
            return False
        return self._verify(self._gold, text)

    def are_same(self, left: str, right: str) -> bool:
        """Return whether two answers are equal by the verifier; False once the budget is spent."""
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
        except Exception:  # A user's verifier may raise anything on an odd answer, which says nothing about gold.
            return None
        return None if verdict.score is None else verdict.score == 1.0


@lru_cache(maxsize=64)
def _verifier(name: str) -> Verifier:
    try:
        return resolve(name)
    except ConfigError as error:
        raise ConfigError(f"the items name a verifier that cannot be loaded: {error}") from error
