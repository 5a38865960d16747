"""Forms of responses around an answer, and the search for a form that a verifier reads.

    "boxed"     The answer is \\boxed{42}.
    "hashes"    ... #### 42
    a template of the caller's, such as "\\boxed{{{gold}}}" (`--gold-response`)

A verifier with `gold_response` makes right responses itself. For any other verifier, such as a plain function,
`find_form` finds the form in which most golds pass; test answers are then put into that form.
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
"""The name of the form that the verifier's `gold_response` makes."""

ENOUGH_GOLDS, GOLDS_TRIED = 5, 20
"""A form is taken at once if the first `ENOUGH_GOLDS` golds pass in it. Otherwise, the form is taken in which most of
the first `GOLDS_TRIED` golds pass."""

Respond = Callable[[str], str]
"""Makes a response from an answer."""
Pays = Callable[[str, str], bool]
"""Says whether a response, the first argument, earns the full score for a gold, the second."""


def fill_form(form: str, answer: str) -> str:
    """Return a response with `answer` in a form, given by its name or as a template."""
    return RESPONSE_FORMS.get(form, form).format(gold=answer)


def find_form(pays: Pays, golds: Sequence[str], made_by_verifier: Respond | None) -> str:
    """Return the form in which most golds pass; of equal ones the first.

    made_by_verifier: the verifier's `gold_response`, or None if it has none.
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
