"""The tests of a program as its card shows them.

    stdio     {"cases": [["1 2", "3"], ...], "more": 7, "heads": ["stdin", "expected output"]}
    calls     {"cases": [["add(1, 2)", "3"], ...], "heads": ["call", "expected"]}
    others    {"code": "assert add(1, 2) == 3"}

`chars` is the length of all of them where the page cuts them, and `settings` what else they say, such as the checker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from truegold.pipeline.tables.run_files import Fields
from truegold.pipeline.text.shown_text import cut, visible
from truegold.verifiers.code import BadSuite, Suite, read_suite
from truegold.verifiers.code.suite.reading import CallCase, Calls, Stdio

CASES_SHOWN = 20
"""The cases of a long suite that a card shows unless all are asked for."""
CASE_CHARS = 600
"""The characters of an input and of an output among them."""


def shown_tests(verifier_args: str | None, limit: int) -> Fields:
    """Return the tests of a row of the verifier `code`, at most `limit` characters of them."""
    settings: Mapping[str, Any] = json.loads(verifier_args or "{}")
    try:
        suite = read_suite(settings)
    except BadSuite as error:
        return {"code": cut(visible(verifier_args or ""), limit), "settings": [["cannot be read", visible(str(error))]]}
    tests = suite.tests
    if isinstance(tests, Stdio):
        pairs = ((case.input, case.output) for case in tests.cases)
        shown = _cases(pairs, limit) | {"heads": ["stdin", "expected output"]}
    elif isinstance(tests, Calls):
        pairs = ((_call(tests.entry_point, case), repr(case.expected)) for case in tests.cases)
        shown = _cases(pairs, limit) | {"heads": ["call", "expected"]}
    else:
        code = "\n\n".join(filter(None, (getattr(tests, "prelude", ""), tests.code)))
        shown = {"code": cut(visible(code), limit), **({"chars": len(code)} if len(code) > limit else {})}
    return shown | {"settings": _settings(suite)}


def _cases(pairs: Iterable[tuple[str, str]], limit: int) -> Fields:
    """Return the cases, of more than `limit` characters the first ones with the beginning of their texts."""
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
    """Return what a suite says beyond its cases, if it is not the usual."""
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
