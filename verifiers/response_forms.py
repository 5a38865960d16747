"""Puts answers into responses, and finds the form of response that a verifier reads.

    fill_form("boxed", "42")                 ->  "The answer is \\boxed{42}."
    fill_form("Total: {gold} apples", "42")  ->  "Total: 42 apples"      a template of the user's (`--gold-response`)

A verifier with `gold_response` makes right responses itself. For any other verifier, such as a plain function,
`find_form` finds the form in which most golds pass. An audit puts its test answers into this form.
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
"""`find_form` returns a form at once if the first `ENOUGH_GOLDS` golds pass in it. Otherwise it compares how many of
the first `GOLDS_TRIED` golds pass in each form."""

Respond = Callable[[str], str]
"""Makes a response from an answer."""
Pays = Callable[[str, str], bool]
"""`pays(response, gold)` says whether the response earns the full score for the gold."""


def fill_form(form: str, answer: str) -> str:
    """Return a response with `answer` in a form, given by its name or as a template."""
    return RESPONSE_FORMS.get(form, form).format(gold=answer)


def find_form(pays: Pays, golds: Sequence[str], made_by_verifier: Respond | None) -> str:
    """Return the form in which most golds pass, or the first of several such forms.

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
