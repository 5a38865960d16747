r"""Gives a response that could not be judged the score 0 in training, if it is at fault itself: `score_avoidable`.

    Row                              Response             Score of response and of a control        At fault
    gold \frac{1}{                   \boxed{7}            None, and None for \boxed{90210}          the row
    gold 5, verifier float()         five                 None, but 0 for 90210                     the response
    gold that takes a minute         gold itself          None, and None for gold                   the row
    a suite with a missing import    any program          None, and None for an empty program       the row
    a suite that runs                os.kill(getppid())   None, but 0 for an empty program          the response

Training leaves out responses that could not be judged. A policy could learn to write such responses, to escape the loss
of a wrong answer. If the response is at fault, it therefore scores 0 in training, with its reason and the evidence
`"avoidable": True`.

*Controls* decide who is at fault: wrong answers to the same row, and its gold, in the forms that verifiers read
(`response_forms`). If a wrong answer and gold in the same form both have a score, the row can be judged, so that the
response is at fault. With a user's verifier whose form is unknown, a score of another response to the row proves the
same. The response is judged again together with the controls, since a machine may fail now and then.

Outside of training such verdicts keep the score None.
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
"""Answers that are wrong for almost every row. If one is right, its score too proves that the row can be judged."""
EMPTY_PROGRAM = "```\npass\n```"
"""The control for verifiers of programs. In other languages than Python it does not compile, and scores 0."""
SANDBOX_TRIES = 2
"""The number of times that a response is judged again, alone, after the reason `sandbox_error`."""

AVOIDABLE = "avoidable"
"""The key in the evidence of a score 0 that replaces None."""

Judge = Callable[[Sequence[Item]], Iterable[Verdict]]
Controls = Mapping[str, tuple[tuple[Item, ...], Item | None]]
"""Maps a form of response to the wrong answers in this form, and to gold in this form (None if there is no gold)."""


def score_avoidable(asked: Sequence[Item], verdicts: Sequence[Verdict], judge: Judge) -> list[Verdict]:
    """Return the verdicts on `asked`, with the score 0 in place of None if the response is at fault.

    judge: returns a verdict for each item, such as `BatchVerifier.verify`; it is called only if a score is None.
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
    """Say whether a wrong answer to a row has a score, and gold in the same form has one too.

    has_sibling: whether another response to the row has a score; it decides if no wrong answer has a score.
    """
    golds = [gold for wrong, gold in controls.values() if not scored.isdisjoint(wrong)]
    return any(gold is None or gold in scored for gold in golds) if golds else has_sibling


def _blamed(item: Item, verdict: Verdict, judge: Judge) -> Verdict:
    """Return the verdict on a response to a row that can be judged; the score is 0 if there is still none."""
    for _ in range(SANDBOX_TRIES):
        if verdict.reason is Reason.SANDBOX_ERROR:
            (verdict,) = judge([item])
    if verdict.score is not None:
        return verdict
    return replace(verdict, score=0.0, evidence={**verdict.evidence, AVOIDABLE: True})


def _controls(item: Item) -> Controls:
    """Return wrong answers to the row of an item, and its gold, in each form that its verifier may read."""
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
