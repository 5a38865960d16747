"""How an answer is put into a response, so that a verifier finds it and what is judged is the answer alone."""

from __future__ import annotations

from collections.abc import Sequence

from truegold.verifiers.audit.probe import Probe

FORMS = {"boxed": "The answer is \\boxed{<answer>}.", "phrase": "The answer is <answer>", "bare": "<answer>"}

GOLDS_TRIED = 20
"""Enough to tell which form a verifier reads."""


def respond(form: str, answer: str) -> str:
    """A whole response that commits to `answer`."""
    return FORMS[form].replace("<answer>", answer)


def form_read_by(probe: Probe, golds: Sequence[str]) -> str:
    """The form in which most golds pass; the first of FORMS where none does better."""
    tried = golds[:GOLDS_TRIED]
    passes = {form: sum(probe.judge(respond(form, gold), gold).paid for gold in tried) for form in FORMS}
    return max(FORMS, key=lambda form: passes[form])
