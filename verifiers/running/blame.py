r"""Decides whose fault it is that a response could not be judged: `score_avoidable`.

    gold \frac{1}{                   \boxed{7}            None, and None for \boxed{90210} too:        the row's fault
    gold 5, verifier float()         "five"               None, and 0 for 90210:                      the response's
    gold that takes a minute         gold itself          None, for gold as well:                     the row's fault
    a suite that imports what is     any program          None, and None for an empty program:        the row's fault
    not there
    a suite that runs                os.kill(getppid())   None, and 0 for an empty program:           the response's

A training leaves out responses that could not be judged. A policy that learns to write such responses would escape the
loss of a wrong answer. A failure that the response could have avoided therefore scores 0 there, with its reason and the
evidence `"avoidable": True`. Nothing in the response decides it: *controls* do, wrong answers to the same row in the
forms that verifiers read (`response_forms`), and gold in the same form. If both have a score, the row, its suite, the
verifier and the machine are able to judge. For a user's verifier, a score of another response to the row says the same.
The response is judged once more with them, since a machine fails now and then.

Outside of trainings such verdicts keep None, and are shown as what they are.
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
"""Answers that hardly any row has for gold. Where one has, its score is a score all the same."""
EMPTY_PROGRAM = "```\npass\n```"
"""The control of a verifier of programs; in other languages than Python it does not compile."""
SANDBOX_TRIES = 2
"""How often a response is judged again, alone, of which the sandbox says that it or the machine failed."""

AVOIDABLE = "avoidable"
"""The key of the evidence of a score of 0 that stands in place of none."""

Judge = Callable[[Sequence[Item]], Iterable[Verdict]]
Controls = Mapping[str, tuple[tuple[Item, ...], Item | None]]
"""Maps a form of response to wrong answers to a row, and to its gold if it has one."""


def score_avoidable(asked: Sequence[Item], verdicts: Sequence[Verdict], judge: Judge) -> list[Verdict]:
    """Return the verdicts on `asked`, with 0 for those without a score that the response could have avoided.

    judge: returns a verdict for each item, such as `BatchVerifier.verify`; it is asked only where a score is missing.
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
    """Say whether wrong answers to a row have scores, and gold does in the same form.

    has_sibling: whether another response to the row has a score, which decides if its form is unknown.
    """
    golds = [gold for wrong, gold in controls.values() if not scored.isdisjoint(wrong)]
    return any(gold is None or gold in scored for gold in golds) if golds else has_sibling


def _blamed(item: Item, verdict: Verdict, judge: Judge) -> Verdict:
    """Return the verdict on a response to a row that can be judged: 0 where it still has no score."""
    for _ in range(SANDBOX_TRIES):
        if verdict.reason is Reason.SANDBOX_ERROR:
            (verdict,) = judge([item])
    if verdict.score is not None:
        return verdict
    return replace(verdict, score=0.0, evidence={**verdict.evidence, AVOIDABLE: True})


def _controls(item: Item) -> Controls:
    """Return wrong answers to the row of an item, and gold, in the forms that its verifier may read."""
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
