r"""Gives responses that prevent their own verdict the score 0 in training. The entry point is `score_avoidable`.

Training leaves out responses without a score. A policy could learn to write such responses, since they are not punished
like wrong answers. *Controls* show whether the response or its row is at fault. They are other responses to the same
row: wrong answers and the gold, in the forms that verifiers read (`response_forms`).

    Row                              Response             Score   Score of a control          At fault
    gold \frac{1}{                   \boxed{7}            None    None for \boxed{90210}      the row
    gold 5, judged by float(text)    five                 None    0 for 90210                 the response
    gold that takes a minute         the gold             None    None for the gold           the row
    a suite with a missing import    any program          None    None for an empty program   the row
    a suite that runs                os.kill(getppid())   None    0 for an empty program      the response

A row can be judged if a wrong answer and the gold in the same form both have a score. If no wrong answer has a score,
the verifier may read another form. The row can then be judged if any other response to it has a score.

If the row can be judged, the response scores 0, with its reason and the evidence `"avoidable": True`. The response is
judged again first, together with the controls, since a machine may fail now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from truegold.verifiers.gold import gold_response, judges_solutions
from truegold.verifiers.registry import BUILT_IN, resolve
from truegold.verifiers.response_forms import RESPONSE_FORMS, fill_form
from truegold.verifiers.running.batch import Item
from truegold.verifiers.verdict import Reason, Verdict

WRONG_ANSWERS = ("90210", "A", "I do not know.")
"""Answers that are wrong for almost every row. If one is right, its score still proves that the row can be judged."""
EMPTY_PROGRAM = "```\npass\n```"
"""The control for verifiers of programs. It scores 0 in every language; outside of Python it does not compile."""
SANDBOX_TRIES = 2
"""A response whose verdict has the reason `sandbox_error` is judged again, alone, up to this many times."""

AVOIDABLE = "avoidable"
"""The key in the evidence of a verdict whose score was changed from None to 0."""

Judge = Callable[[Sequence[Item]], Iterable[Verdict]]
Controls = Mapping[str, tuple[tuple[Item, ...], Item | None]]
"""Maps each form of response to two values: the wrong answers in this form, and the gold in this form or None."""


def score_avoidable(asked: Sequence[Item], verdicts: Sequence[Verdict], judge: Judge) -> list[Verdict]:
    """Return the verdicts on `asked`. A score of None becomes 0 if the response is at fault.

    judge: a function that judges items, such as `BatchVerifier.verify`. It is called only if a score is None.
    """
    unjudged = [index for index, verdict in enumerate(verdicts) if verdict.score is None]
    if not unjudged:
        return list(verdicts)
    controls = {_row(asked[index]): _controls(asked[index]) for index in unjudged}
    texts = {
        control: None
        for forms in controls.values()
        for wrong, gold in forms.values()
        for control in (*wrong, *([gold] if gold is not None else []))
    }
    again = list(judge([*texts, *(asked[index] for index in unjudged)]))
    scored = {item for item, verdict in zip(texts, again, strict=False) if verdict.score is not None}
    siblings = {
        _row(item)
        for item, verdict in zip(asked, verdicts, strict=True)
        if verdict.score is not None and item.verifier not in BUILT_IN
    }
    settled = list(verdicts)
    for index, verdict in zip(unjudged, again[len(texts) :], strict=True):
        row = _row(asked[index])
        settled[index] = verdict
        if _can_judge(controls[row], scored, has_sibling=row in siblings):
            settled[index] = _blamed(asked[index], verdict, judge)
    return settled


def _row(item: Item) -> Item:
    return replace(item, response="")


def _can_judge(controls: Controls, scored: set[Item], *, has_sibling: bool) -> bool:
    """Return whether a wrong answer to a row and the gold in the same form both have a score.

    has_sibling: whether another response to the row has a score. If no wrong answer has one, `has_sibling` decides.
    """
    golds = [gold for wrong, gold in controls.values() if not scored.isdisjoint(wrong)]
    return any(gold is None or gold in scored for gold in golds) if golds else has_sibling


def _blamed(item: Item, verdict: Verdict, judge: Judge) -> Verdict:
    """Return the verdict on a response whose row can be judged. If it still has no score, it gets the score 0."""
    for _ in range(SANDBOX_TRIES):
        if verdict.reason is Reason.SANDBOX_ERROR:
            (verdict,) = judge([item])
    if verdict.score is not None:
        return verdict
    return replace(verdict, score=0.0, evidence={**verdict.evidence, AVOIDABLE: True})


def _controls(item: Item) -> Controls:
    """Return the controls for the row of an item, in each form that the verifier may read."""
    verifier = resolve(item.verifier)
    if judges_solutions(verifier):
        return {"program": ((replace(item, response=EMPTY_PROGRAM),), None)}
    if item.verifier in BUILT_IN or getattr(verifier, "gold_response", None) is not None:
        gold = gold_response(verifier, item.gold) if item.gold is not None else None
        shown = gold_response(verifier, WRONG_ANSWERS[0]) or WRONG_ANSWERS[0]
        return {"own": ((replace(item, response=shown),), None if gold is None else replace(item, response=gold))}
    return {
        form: (
            tuple(replace(item, response=fill_form(form, answer)) for answer in WRONG_ANSWERS),
            None if item.gold is None else replace(item, response=fill_form(form, item.gold)),
        )
        for form in RESPONSE_FORMS
    }
