r"""Decides whose fault it is that a response could not be judged: `score_avoidable`.

    gold \frac{1}{                   \boxed{7}            None, and None for \boxed{-90210.7193} too:   the row's fault
    gold 5, verifier float()         "five"               None, and 0 for \boxed{-90210.7193}:          the response's
    a suite that imports what is     any program          None, and None for an empty program:          the row's
    not there
    a suite that runs                os.kill(getppid())   None, and 0 for an empty program:             the response's

A training leaves out what could not be judged, so that a policy which can write what cannot be judged escapes the loss
of a wrong answer. What a response could have avoided therefore scores 0 there, with its reason and the evidence
`"avoidable": True`. Nothing that a response holds decides it: *controls* do, plain wrong responses to the same row.
Where one of them has a score, the row, its suite, the verifier and the machine can judge. The response is judged once
more beside them, since a machine fails now and then.

Outside of trainings such verdicts keep None, and are shown as what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from truegold.verifiers.gold import judges_solutions
from truegold.verifiers.registry import BUILT_IN, resolve
from truegold.verifiers.running.batch import Item
from truegold.verifiers.verdict import Verdict

WRONG_ANSWER = r"So the answer is \boxed{-90210.7193}."
"""The control of a verifier of answers."""
NO_ANSWER = "I do not know."
"""Another one of a user's verifier. Those of truegold have 0 for it, also where they cannot read gold."""
EMPTY_PROGRAM = "```\npass\n```"
"""The control of a verifier of programs; in other languages than Python it does not compile."""

AVOIDABLE = "avoidable"
"""The key of the evidence of a score of 0 that stands in place of none."""

Judge = Callable[[Sequence[Item]], Iterable[Verdict]]


def score_avoidable(asked: Sequence[Item], verdicts: Sequence[Verdict], judge: Judge) -> list[Verdict]:
    """Return the verdicts on `asked`, with 0 for those without a score that the response could have avoided.

    judge: returns a verdict for each item, such as `BatchVerifier.verify`; it is asked only where a score is missing.
    """
    unjudged = [index for index, verdict in enumerate(verdicts) if verdict.score is None]
    if not unjudged:
        return list(verdicts)
    controls = list(dict.fromkeys(control for index in unjudged for control in _controls(asked[index])))
    again = list(judge([*controls, *(asked[index] for index in unjudged)]))
    judged_controls = zip(controls, again[: len(controls)], strict=True)
    judgeable = {replace(control, response="") for control, verdict in judged_controls if verdict.score is not None}
    settled = list(verdicts)
    for index, verdict in zip(unjudged, again[len(controls) :], strict=True):
        settled[index] = verdict
        if verdict.score is None and replace(asked[index], response="") in judgeable:
            settled[index] = replace(verdict, score=0.0, evidence={**verdict.evidence, AVOIDABLE: True})
    return settled


def _controls(item: Item) -> list[Item]:
    """Return plain wrong responses to the same row."""
    if judges_solutions(resolve(item.verifier)):
        texts: tuple[str, ...] = (EMPTY_PROGRAM,)
    else:
        texts = (WRONG_ANSWER,) if item.verifier in BUILT_IN else (WRONG_ANSWER, NO_ANSWER)
    return [replace(item, response=text) for text in texts]
