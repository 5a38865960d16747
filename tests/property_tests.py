"""How property tests are run, for all of them: the same examples every time, or new ones with TRUEGOLD_ALL.

`make test` draws from a seed that depends on the test alone, so that a change that has nothing to do with a test cannot
break it. `make test-all` (TRUEGOLD_ALL=1) draws anew and more; of a failure it prints the line that keeps the example:

    @example(records=[{"question": "\\ud800"}])

above the test. Tests may set how many `examples` they need; what else is set here is set nowhere else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from hypothesis import settings
from tables import is_full_run

FAILURE = re.compile(r"(?:Failing test case|Falsifying example): \w+\(\n(.*)\)\s*", re.DOTALL)
"""What Hypothesis notes of the example that fails: a call of the test, an argument a line or more."""
ARGUMENT = re.compile(r"^    (?=\w+=)", re.MULTILINE)
UNWRITTEN = "this example cannot be written as @example; take the @reproduce_failure above"


def examples(count: int) -> int:
    """Return how many examples a test draws that needs so many with TRUEGOLD_ALL: a quarter of them without."""
    return count if is_full_run() else -(-count // 4)


def load_profile() -> None:
    """Set how examples are drawn. How long one takes says how busy the machine is, so none has a deadline."""
    settings.register_profile("same", deadline=None, max_examples=40, derandomize=True)
    settings.register_profile("new", deadline=None, max_examples=100, print_blob=True)
    settings.load_profile("new" if is_full_run() else "same")


def example_line(error: BaseException, fixtures: Collection[str]) -> str | None:
    """Return the decorator that keeps the example which fails; None where no property was tested.

    `fixtures` are arguments that the test has from elsewhere. Where an example cannot be written down, because it was
    drawn within the test, the line says so: Hypothesis prints a `@reproduce_failure` then.
    """
    notes = [match for note in getattr(error, "__notes__", ()) if (match := FAILURE.fullmatch(note))]
    if not notes:
        return None
    arguments = [text for text in ARGUMENT.split(notes[0][1])[1:] if text.partition("=")[0] not in {"self", *fixtures}]
    try:
        written = [ast.unparse(_keyword(text)) for text in arguments]
    except SyntaxError:
        return UNWRITTEN
    return UNWRITTEN if any("..." in text for text in written) else f"@example({', '.join(written)})"


def _keyword(text: str) -> ast.keyword:
    call = ast.parse(f"test({text}\n)", mode="eval").body
    assert isinstance(call, ast.Call)
    return call.keywords[0]
