"""Formats the tests of a program for the card of its row on the report page.

    kind of tests          result
    input and output       {"cases": [["1 2", "3"], ...], "more": 7, "heads": ["stdin", "expected output"]}
    calls of a function    {"cases": [["add(1, 2)", "3"], ...], "heads": ["call", "expected"]}
    other tests            {"code": "assert add(1, 2) == 3  # case 0"}

If the page shortens the tests, `more` is the number of cases left out, and `chars` the number of characters of all
tests. `settings` has further properties, such as the checker. `fix` tells a reviewer how to change the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from truegold.pipeline.tables.run_files import Fields
from truegold.pipeline.text.shown_text import cut, visible
from truegold.verifiers.audit.suites import forms_of_change, with_numbers
from truegold.verifiers.code import BadSuite, Suite, read_suite
from truegold.verifiers.code.suite.reading import CallCase, Calls, Stdio, normal_form

CASES_SHOWN = 20
"""The maximum number of cases of a long suite that a card shows."""
CASE_CHARS = 600
"""The maximum number of characters of an input or an output in a long suite."""


def shown_tests(verifier_args: str | None, limit: int) -> Fields:
    """Return the tests of a row with the verifier `code`, at most `limit` characters of them."""
    settings: Mapping[str, Any] = json.loads(verifier_args or "{}")
    try:
        suite = read_suite(settings)
    except BadSuite as error:
        unread = [["cannot be read", visible(str(error))]]
        return {"code": cut(visible(verifier_args or ""), limit), "settings": unread, "fix": forms_of_change(settings)}
    tests = suite.tests
    if isinstance(tests, Stdio):
        pairs = ((case.input, case.output) for case in tests.cases)
        shown = _cases(pairs, limit) | {"heads": ["stdin", "expected output"]}
    elif isinstance(tests, Calls):
        pairs = ((_call(tests.entry_point, case), repr(case.expected)) for case in tests.cases)
        shown = _cases(pairs, limit) | {"heads": ["call", "expected"]}
    else:
        code = "\n\n".join(
            filter(None, (getattr(tests, "prelude", ""), with_numbers(normal_form(settings)[0]["code"])))
        )
        shown = {"code": cut(visible(code), limit), **({"chars": len(code)} if len(code) > limit else {})}
    return shown | {"settings": _settings(suite), "fix": forms_of_change(settings)}


def _cases(pairs: Iterable[tuple[str, str]], limit: int) -> Fields:
    """Return all cases if they have at most `limit` characters in total, else the first ones with shortened texts."""
    whole = [[visible(text.rstrip("\n")) for text in pair] for pair in pairs]
    total = sum(len(text) for pair in whole for text in pair)
    if total <= limit:
        return {"cases": whole}
    cases: list[list[str]] = []
    for pair in whole[:CASES_SHOWN]:
        cases.append([cut(text, min(CASE_CHARS, limit // 2)) for text in pair])
        limit -= sum(map(len, cases[-1]))
        if limit <= 0:
            break
    return {"cases": cases, "more": len(whole) - len(cases), "chars": total}


def _call(entry_point: str, case: CallCase) -> str:
    named = [f"{name}={value!r}" for name, value in case.kwargs.items()]
    return f"{entry_point}({', '.join([*map(repr, case.args), *named])})"


def _settings(suite: Suite) -> list[list[str]]:
    checker = getattr(suite.tests, "checker", None)
    known = {
        "language": None if suite.language == "python" else suite.language,
        "function": getattr(suite.tests, "entry_point", None),
        "checker": None if checker in ("tokens", "values") else checker,
        "interactor": getattr(suite.tests, "interactor", None),
    }
    return [[name, cut(visible(_text(value)), CASE_CHARS)] for name, value in known.items() if value]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
