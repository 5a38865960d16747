r"""The verdict ladder: is an extracted answer the same as gold? Each rung is dearer than the one before.

    text        the same characters, once normal
    words       a choice's letter, yes and true, a phrase
    exact       the same rational number, or the same rational function
    structure   the same list, set, interval, tuple, matrix, ...
    units       the same quantity in another unit
    rounding    gold is the rounded answer
    numeric     constants that agree to 300 bits
    sampled     expressions that agree at random points
    symbolic    what is left where gold has an integral, a limit or a long sum: sympy, in a killable process

A rung decides or passes on. The verdict's evidence names the rung, and how both sides were read. Where notation has
several readings (`1,234`, `1/2x`, `5m`) the usual one comes first and the others are tried against the other side.

Gold that cannot be read, or that is beyond the budgets, gives no score. An answer that cannot be read, that is beyond
them, or that leaves an integral to be worked out where gold has none, earns 0: a policy must not be able to opt out of
a problem.
"""

from __future__ import annotations

import re
from typing import Any

from truegold.verifiers.errors import ConfigError
from truegold.verifiers.extract import committed_answer
from truegold.verifiers.math import worker
from truegold.verifiers.math.choices import choice_letter, same_choice
from truegold.verifiers.math.comparison import Outcome, compare
from truegold.verifiers.math.policy import DEFAULT, Policy, policy_of
from truegold.verifiers.math.reading.alternatives import other_readings
from truegold.verifiers.math.reading.cached import Refused, is_several, normal_gold, read_gold, read_text
from truegold.verifiers.math.reading.lexer import MAX_CHARS
from truegold.verifiers.math.reading.normal import key_of, normal
from truegold.verifiers.math.refusals import TooLarge
from truegold.verifiers.math.show import MAX_SHOWN, show
from truegold.verifiers.math.substitute import with_log_base_ten
from truegold.verifiers.math.tree import BareList, Node, Text
from truegold.verifiers.verdict import Reason, Verdict

_WHOLE = re.compile(r"-?\d{1,200}", re.ASCII)
"""Both sides are, in most comparisons."""

_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|either|(?:not|un) ?sure|alternatively|guess)\b", re.IGNORECASE
)
_ANNOUNCED = frozenset({"boxed", "answer_tag", "hashes", "phrase"})
"""The forms of extraction that announce an answer, as against a sentence that happens to end with a number."""

MIN_PROSE_CHARS = 200
"""A longer answer with many blanks is prose around a formula."""

_NO_GOLD: Any = object()
"""The default of `gold`, which may be None: a row without gold gets a verdict that says so."""

MAX_PROSE_CHARS = 20_000
"""Of an answer that is searched for a formula or a box, as against read."""


def equivalent(answer: str, *more: object, gold: str | None = _NO_GOLD, **policy: Any) -> Verdict:
    r"""Compare an answer with gold: `equivalent("0.5", gold="1/2").score` is 1.0.

    `answer` is what a response commits to (`committed_answer`), not the response; gold is passed by keyword, since
    swapped texts would be compared without complaint and silently give other verdicts. The other keywords are the
    fields of `Policy`. Raises ConfigError for a second positional text, for no gold and for a wrong policy.
    """
    if more or gold is _NO_GOLD:
        raise ConfigError(
            "equivalent takes the answer first and gold by keyword.", "Type equivalent(answer, gold=gold)."
        )
    return judge(gold, answer, policy_of(policy) if policy else DEFAULT)


def judge(gold: str | None, answer: str, policy: Policy, *, boxed: bool = False) -> Verdict:
    """`boxed`: the answer was in a box, so prose in it is no sentence to look for a number in."""
    if gold is None or not gold.strip():
        return Verdict(None, Reason.GOLD_MISSING)
    if not answer.strip():
        return Verdict(0.0, Reason.NO_ANSWER)
    if answer == gold:
        return _same_text(answer, answer)
    for side, text in (("gold", gold), ("answer", answer)):
        if len(text) > MAX_PROSE_CHARS:
            return _limit(side, answer, f"{len(text)} characters, the limit is {MAX_PROSE_CHARS}")
    wanted, offered = normal_gold(gold), normal(answer)
    verdict = _by_text(wanted, offered, gold, answer, policy)
    return verdict if verdict is not None else _by_reading(wanted, offered, answer, policy, boxed)


def _by_text(wanted: str, offered: str, gold: str, answer: str, policy: Policy) -> Verdict | None:
    """The rungs that read nothing. None where they cannot tell."""
    if not offered:
        return Verdict(0.0, Reason.NO_ANSWER)
    if wanted == offered or key_of(wanted) == key_of(offered):
        return _same_text(answer, offered)
    if policy.decimals is None and policy.tolerance is None and _WHOLE.fullmatch(wanted) and _WHOLE.fullmatch(offered):
        return _verdict(Outcome(int(wanted) == int(offered), "exact"), answer, wanted, offered)
    if not wanted:
        return Verdict(None, Reason.GOLD_UNPARSED, answer, {"rung": "text", "gold": gold[:MAX_SHOWN]})
    letter = choice_letter(wanted)
    return None if letter is None else _by_letter(letter, offered, answer, policy)


def _by_letter(letter: str, offered: str, answer: str, policy: Policy) -> Verdict | None:
    chosen = same_choice(letter, offered, policy.options, lambda option, text: _same_normal(option, text, policy))
    return None if chosen is None else _verdict(Outcome(chosen, "words"), answer, letter, offered[:MAX_SHOWN])


def _by_reading(wanted: str, offered: str, answer: str, policy: Policy, boxed: bool) -> Verdict:
    gold = read_gold(wanted, policy.mixed)
    if isinstance(gold, Refused):
        return _without_gold(gold, wanted, offered, answer)
    if len(offered) > MIN_PROSE_CHARS and offered.count(" ") > MIN_PROSE_CHARS // 10:
        narrowed = _narrowed(answer, gold, boxed)
        if narrowed is not None:
            return _of_text(gold, narrowed, wanted, answer, policy)[0]
    verdict, prose = _of_text(gold, offered, wanted, answer, policy)
    if verdict.score == 1.0 or not prose:
        return verdict
    narrowed = _narrowed(answer, gold, boxed)
    if narrowed is None or narrowed == offered:
        return verdict
    return _of_text(gold, narrowed, wanted, answer, policy)[0]


def _without_gold(refused: Refused, wanted: str, offered: str, answer: str) -> Verdict:
    if refused.too_large:
        return _limit("gold", answer, refused.why)
    if _loosely(wanted) == _loosely(offered):
        return _same_text(answer, offered)
    evidence = {"rung": "read", "gold": wanted[:MAX_SHOWN], "unread": refused.why[:MAX_SHOWN]}
    return Verdict(None, Reason.GOLD_UNPARSED, answer, evidence)


def _same_normal(wanted: str, offered: str, policy: Policy) -> bool:
    """Do two normal texts say the same, as they stand?"""
    gold, answer = read_gold(wanted, policy.mixed), read_text(offered, policy.mixed)
    if isinstance(gold, Refused) or isinstance(answer, Refused):
        return False
    try:
        return compare(gold, answer, policy).same is True
    except TooLarge:
        return False


def _of_text(gold: Node, offered: str, wanted: str, answer: str, policy: Policy) -> tuple[Verdict, bool]:
    """The verdict on one text, and whether it may be prose around a formula."""
    tree = read_text(offered, policy.mixed)
    if isinstance(tree, Refused):
        if tree.too_large:
            return _limit("answer", answer, tree.why), len(offered) > MAX_CHARS
        evidence = {"rung": "read", "gold": show(gold), "answer": offered[:MAX_SHOWN], "unread": tree.why[:MAX_SHOWN]}
        return Verdict(0.0, Reason.ANSWER_UNPARSED, answer, evidence), True
    verdict = _compared(gold, tree, wanted, offered, answer, policy)
    worded = "\\boxed" in offered or _holds_words(tree)
    return verdict, worded and not (isinstance(gold, Text) and isinstance(tree, Text))


def _compared(gold: Node, answer: Node, wanted: str, offered: str, extracted: str, policy: Policy) -> Verdict:
    if policy.log == "ten":
        gold, answer = with_log_base_ten(gold), with_log_base_ten(answer)
    shown = show(gold), show(answer)
    try:
        outcome = compare(gold, answer, policy)
        if not outcome.same:
            for other_gold, other_answer in other_readings(gold, answer, wanted, offered, policy):
                other = compare(other_gold, other_answer, policy)
                if other.same:
                    outcome, shown = other, (show(other_gold), show(other_answer))
                    break
    except TooLarge as error:
        return Verdict(
            0.0, Reason.LIMIT, extracted, {"rung": "numeric", "error": str(error), "gold": shown[0], "answer": shown[1]}
        )
    if outcome.same is None and worker.might_know(gold, answer):
        return _symbolic(gold, answer, extracted, shown)
    if outcome.same is None and worker.is_unfinished(answer):  # for the reader of the evidence; it is no final answer
        return _limit("answer", extracted, "an integral, a limit or a long sum is left to be worked out")
    return _verdict(outcome, extracted, *shown)


def _symbolic(gold: Node, answer: Node, extracted: str, shown: tuple[str, str]) -> Verdict:
    reply = worker.compare(gold, answer)
    evidence = {"rung": "symbolic", "gold": shown[0], "answer": shown[1], **reply.evidence}
    if reply.reason is Reason.MATCH:
        return Verdict(1.0, Reason.MATCH, extracted, evidence)
    return Verdict(0.0 if reply.reason is Reason.MISMATCH else None, reply.reason, extracted, evidence)


def _verdict(outcome: Outcome, extracted: str, gold: str, answer: str) -> Verdict:
    evidence = {"rung": outcome.rung, "gold": gold, "answer": answer}
    if outcome.same:
        return Verdict(1.0, Reason.MATCH, extracted, evidence)
    if outcome.same is None and outcome.rung == "words":  # a sentence, whose meaning rules cannot compare
        return Verdict(None, Reason.GOLD_UNPARSED, extracted, evidence)
    return Verdict(0.0, Reason.HEDGED if outcome.hedged else Reason.MISMATCH, extracted, evidence)


def _same_text(answer: str, shown: str) -> Verdict:
    return Verdict(1.0, Reason.MATCH, answer, {"rung": "text", "gold": shown[:MAX_SHOWN], "answer": shown[:MAX_SHOWN]})


def _limit(side: str, extracted: str, error: str) -> Verdict:
    score = None if side == "gold" else 0.0
    return Verdict(score, Reason.LIMIT, extracted[:MAX_PROSE_CHARS], {"rung": "read", "side": side, "error": error})


def _narrowed(answer: str, gold: Node, boxed: bool) -> str | None:
    """The formula or number that a sentence commits to."""
    if _UNSURE.search(answer[-MIN_PROSE_CHARS:]):
        return None
    found = committed_answer(answer, several=is_several(gold))
    if found is None or (boxed and found.form not in _ANNOUNCED):
        return None
    return normal(found.text)


def _holds_words(tree: Node) -> bool:
    return isinstance(tree, Text) or (
        isinstance(tree, BareList) and any(isinstance(item, Text) for item in tree.elements)
    )


def wants_several(gold: str | None) -> bool:
    """Is gold a list or a set, so that several boxes may be one answer?"""
    if gold is None or len(gold) > MAX_PROSE_CHARS:
        return False
    tree = read_gold(normal_gold(gold), DEFAULT.mixed)
    return not isinstance(tree, Refused) and is_several(tree)


def _loosely(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum() or c in "+-=<>^_()[]{}|/*!")[:MAX_CHARS]
