r"""One item's answers as classes of equal meaning: class 0 is the label's, the others are alternatives.

    gold "1/2", answers "0.5", "\frac12", "2", "2.0", "3"   ->   label 2 votes; "2" 2 votes; "3" 1 vote

Equal texts and equal whole numbers are joined without asking anybody; what is left is put to the item's verifier, each
pair of distinct forms once and at most `MAX_COMPARISONS` of them for an item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from truegold.pipeline.flag.suspicion.items import Item
from truegold.verifiers import ConfigError, Verifier, gold_response, judges_solutions, resolve

MAX_COMPARISONS = 200
"""Pairs of forms that the verifier is asked about for one item: a thousand distinct texts must not cost a million
comparisons. Forms beyond it stand for themselves."""
MAX_KEY_CHARS = 200
"""Longer texts are compared by their beginnings and lengths: they are no final answers."""

_WHOLE = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d{1,40})(?:\.0{1,6})?")
_LETTER = re.compile(r"\(?([A-Za-z])\)?[.:]?")

LABEL = 0
"""The class of the answers that agree with gold."""


@dataclass(frozen=True, slots=True)
class Form:
    """A distinct text among an item's answers. agrees: with gold; None where that is still to be judged.

    unjudged: a verifier has said that it cannot tell.
    """

    text: str
    count: int
    agrees: bool | None = None
    unjudged: bool = False


@dataclass(frozen=True, slots=True)
class Classes:
    """Which class each form belongs to (-1: could not be judged), and a text for each alternative, from class 1 on."""

    of_form: list[int]
    alternatives: list[str]


def classify(item: Item, forms: Sequence[Form]) -> Classes:
    """Sort an item's forms into classes, alternatives by falling count.

    ConfigError where the item names a verifier that does not exist. Items whose verifier judges programs have no
    alternatives that could be the same: every text stands for itself there.
    """
    judge = _Judge(item)
    classes = [LABEL if form.agrees else -1 if form.unjudged else None for form in forms]
    order = sorted(range(len(forms)), key=lambda place: (-forms[place].count, forms[place].text))
    heads: list[list[int]] = []  # the forms of each alternative, the one seen most often first
    by_key: dict[str, int] = {}
    for place in order:
        if classes[place] is not None:
            continue
        form = forms[place]
        if form.agrees is None:
            verdict = judge.agrees(form.text)
            if verdict is None or verdict:
                classes[place] = -1 if verdict is None else LABEL
                continue
        key = key_of(form.text)
        found = by_key.get(key)
        if found is None:
            found = next((n for n, head in enumerate(heads) if judge.same(forms[head[0]].text, form.text)), None)
        if found is None:
            found = len(heads)
            heads.append([])
        by_key.setdefault(key, found)
        heads[found].append(place)
        classes[place] = 1 + found
    votes = [sum(forms[place].count for place in head) for head in heads]
    ranks = sorted(range(len(heads)), key=lambda n: (-votes[n], n))
    rank_of = {1 + n: 1 + rank for rank, n in enumerate(ranks)}
    return Classes(
        [rank_of.get(found, found) if found is not None else -1 for found in classes],
        [forms[heads[n][0]].text for n in ranks],
    )


def key_of(text: str) -> str:
    """Equal for texts that mean the same for certain: the same whole number, the same text but for runs of blanks."""
    plain = text[:MAX_KEY_CHARS].strip().strip("$").strip().rstrip(".")
    whole = _whole(plain)
    if whole is not None:
        return f"={whole}"
    cut = f"…{len(text)}" if len(text) > MAX_KEY_CHARS else ""
    return " ".join(plain.split()) + cut


def differ_for_certain(one: str, other: str) -> bool:
    """Two whole numbers, or two letters of options, that are not the same: no verifier has to be asked."""
    first, second = key_of(one), key_of(other)
    if first == second:
        return False
    if first.startswith("=") and second.startswith("="):
        return True
    letters = _LETTER.fullmatch(first), _LETTER.fullmatch(second)
    return all(letters) and letters[0][1].upper() != letters[1][1].upper()  # type: ignore[index]


def _whole(text: str) -> int | None:
    if not _WHOLE.fullmatch(text):
        return None
    return int(text.partition(".")[0].replace(",", "").replace("−", "-"))


class _Judge:
    """Asks an item's verifier, within the item's budget."""

    def __init__(self, item: Item) -> None:
        self._item = item
        self._verifier = _verifier(item.verifier)
        self._programs = judges_solutions(self._verifier)
        self._info = json.loads(item.verifier_args) if item.verifier_args not in ("", "{}") else {}
        self._left = MAX_COMPARISONS

    def agrees(self, text: str) -> bool | None:
        """Whether an answer agrees with gold; None where that cannot be judged."""
        gold = self._item.gold
        if gold is None or self._programs:
            return None
        if key_of(gold) == key_of(text):
            return True
        if differ_for_certain(gold, text):
            return False
        return self._ask(gold, text)

    def same(self, one: str, other: str) -> bool:
        if self._programs or differ_for_certain(one, other) or self._left <= 0:
            return False
        self._left -= 1
        return self._ask(one, other) is True

    def _ask(self, gold: str, text: str) -> bool | None:
        try:
            response = gold_response(self._verifier, text, None)
            verdict = self._verifier(text if response is None else response, gold, info=self._info)
        except Exception:  # a user's own verifier may raise anything on an odd answer, and that says nothing of gold
            return None
        return None if verdict.score is None else verdict.score == 1.0


@lru_cache(maxsize=64)
def _verifier(name: str) -> Verifier:
    try:
        return resolve(name)
    except ConfigError as error:
        raise ConfigError(f"the items name a verifier that cannot be loaded: {error}") from error
