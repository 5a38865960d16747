"""Forms of responses around an answer, and which of them a verifier reads.

    "boxed"     The answer is \\boxed{42}.
    "hashes"    ... #### 42
    a template of the caller's, such as "\\boxed{{{gold}}}" (`--gold-response`)

A verifier that has a `gold_response` says how a right response to a gold looks. For one that does not, such as a plain
function, the form is found: the first in which the golds pass. Answers are then shown in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

RESPONSE_FORMS = {
    "boxed": "The answer is \\boxed{{{gold}}}.",
    "phrase": "The answer is {gold}",
    "bare": "{gold}",
    "hashes": "I add them up.\n#### {gold}",
    "tags": "<think>I add them up.</think>\n<answer>{gold}</answer>",
    "tagged box": "<think>I add them up.</think>\n<answer>\\boxed{{{gold}}}</answer>",
    "box after thoughts": "<think>I add them up.</think>\n\\boxed{{{gold}}}",
    "label": "Answer: {gold}",
    "json": '{{"answer": "{gold}"}}',
}
"""Templates by name, the commonest first."""

OWN_FORM = "gold_response"
"""The name of the form that a verifier makes itself."""

ENOUGH_GOLDS, GOLDS_TRIED = 5, 20
"""A form in which all of the first golds pass is the one; else this many golds decide."""

Respond = Callable[[str], str]
Pays = Callable[[str, str], bool]


def fill_form(form: str, answer: str) -> str:
    """Return a whole response that commits to `answer`: in a form by its name, or by a template."""
    return RESPONSE_FORMS.get(form, form).format(gold=answer)


def find_form(pays: Pays, golds: Sequence[str], made_by_verifier: Respond | None) -> str:
    """Return the form in which most golds pass; the first if none does better.

    pays: whether a response earns the full score for a gold. made_by_verifier: makes
    the verifier's own responses, if it does.
    """
    forms: dict[str, Respond] = {form: _filler(form) for form in RESPONSE_FORMS}
    if made_by_verifier is not None:
        forms[OWN_FORM] = made_by_verifier
    first = golds[:ENOUGH_GOLDS]
    passes: dict[str, int] = {}
    for form, respond in forms.items():
        passes[form] = sum(pays(respond(gold), gold) for gold in first)
        if passes[form] == len(first):
            return form
    for form, respond in forms.items():
        if passes[form] or not any(passes.values()):
            passes[form] += sum(pays(respond(gold), gold) for gold in golds[ENOUGH_GOLDS:GOLDS_TRIED])
    return max(passes, key=lambda form: passes[form])


def _filler(form: str) -> Respond:
    return lambda answer: fill_form(form, answer)
