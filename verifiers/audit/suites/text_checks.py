"""Checks the texts of problem and tests without running any program: the first step of a vetting.

texts of the cases                               result; cases are named by their index
inputs "3", "3" with outputs "6", "6"            duplicates [1]
inputs "3", "3" with outputs "6", "7"            contradictions [0, 1], rival outputs [("6", "7")]
input "200000\\n5 1 7 ..."                        cut off [0]: some data sets cut long inputs and add three dots
inputs "", "3\\n"                                 empty [0]

outputs YES, NO                                  guess chance 0.25: two guesses between two words
outputs 7, 7, 7                                  guess chance 1.0: by a program that prints 7
outputs 17, 42, 99                               guess chance 0.0: different outputs cannot be guessed

prompt "... Input\\n3\\n1 2 3\\nOutput\\n6 ...", case {"input": "3\\n1 2 3\\n", "output": "6\\n"}      leaked
prompt "... >>> add(3, 4)\\n    7", case add(3, 4) == 7                                           leaked
prompt "... n is at most 3 ...", case {"input": "3", "output": "6"}                               not leaked

A case of a program is leaked if the prompt shows its input word for word, and at most `NEAR_TOKENS` words later its
output. A call is leaked if the prompt shows its arguments in order, and at most `NEAR_CHARS` characters later its
result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from truegold.verifiers.audit.suites.known_cases import KnownCase, count_cases, tested_names
from truegold.verifiers.audit.suites.solutions import are_all_alike, has_own_checker, needs_checker, requested_checker
from truegold.verifiers.audit.suites.vet_state import Severity, VetReason, VetState
from truegold.verifiers.code.suite.reading import Calls, Stdio

SHOWN_CASES = 20
"""Maximum number of indexes of cases in the evidence."""

_ADD_CASES = "add cases that the problem's text does not show"
_CHECK_TEST_CODE = "check whether the test code accepts every right answer"
_DOTS = re.compile(r"(?:\.\.\.|…|\.\.\.\s*\(\d+ (?:more )?(?:characters|chars|lines)\))\s*\Z")
"""The end of a text that was cut off: three dots, or `... (120 more characters)`."""
MIN_CUT_CHARS = 60
"""Minimum length of a text that counts as cut off, in characters; dots may be the real end of a shorter text."""

_COMMON_GUESSES = frozenset(
    {"true", "false", "none", "null", "0", "1", "-1", "", "''", "[]", "()", "{}", "set()", "0.0", "yes", "no", "y", "n"}
)
"""Outputs that a guesser would try even if they occur once."""
MAX_PROMPT_CHARS = 200_000
"""Maximum number of characters of a prompt that are read."""
MAX_OCCURRENCES = 50
"""Maximum number of occurrences of an input in a prompt that are checked; an input such as `1` occurs very often."""

NEAR_TOKENS = 12
"""Maximum number of words between the input and the output of a program."""
NEAR_CHARS = 60
"""Maximum number of characters between the arguments and the result of a call."""
_STOPS = ".,;:"
"""Punctuation that may follow an input or output."""
_SPACE = re.compile(r"[ \t\r\f\v]+")


def check_texts(state: VetState) -> None:
    """Remove broken cases, and change the checker if the problem's text requires it."""
    tests = state.suite.tests
    if state.statement.interactive is not None and isinstance(tests, Stdio) and tests.interactor is None:
        state.report(VetReason.INTERACTIVE, Severity.DROP, {"said": state.statement.interactive})
    if not isinstance(tests, Stdio | Calls):
        _report_free_answers(state)
        return
    if state.cases < state.options.min_cases:
        state.report(VetReason.TOO_FEW, Severity.FLAG, {"cases": state.cases}, "add cases")
    has_program = has_own_checker(tests)
    contradictory = find_contradictions(state.known)
    if has_program:
        contradictory = []  # A checker program may accept several answers to one input.
    elif are_all_alike(rival_outputs(state.known), state.statement.constructs is not None):
        evidence = {"cases": contradictory[:SHOWN_CASES]}
        state.findings.append(needs_checker("same_input", evidence, state.statement, tests))
        return
    cut_off = find_cut_off(tests)
    for reason, severity, cases in (
        (VetReason.CONTRADICTORY, Severity.REPAIR, contradictory),
        (VetReason.TRUNCATED, Severity.REPAIR, cut_off),
        (VetReason.DUPLICATE, Severity.NOTE, find_duplicates(state.known)),
        (VetReason.EMPTY_INPUT, Severity.NOTE, find_empty_inputs(tests)),
    ):
        if cases:
            state.report(reason, severity, {"cases": cases[:SHOWN_CASES], "count": len(cases)})
    state.repair(without={*contradictory, *cut_off})
    if not has_program and state.statement.several_answers is not None:
        state.findings.append(needs_checker("text", {}, state.statement, tests))
    elif not has_program:
        checker, findings = requested_checker(tests, state.statement)
        state.findings += findings
        state.repair(checker=checker)


def check_guessing(state: VetState) -> float | None:
    """Return the chance that a guesser passes all cases, or None if not all outputs are known."""
    if len(state.known) < count_cases(state.suite.tests):
        return None
    chance = guess_chance([case.value for case in state.known])
    if chance is not None and chance > state.options.max_guess_chance:
        state.report(VetReason.GUESSABLE, Severity.FLAG, {"chance": round(chance, 4)}, "add cases with other outputs")
    return chance


def check_leaks(state: VetState) -> float | None:
    """Return the share of cases that the problem's text shows, or None without a text or known cases."""
    if not state.prompt:
        return None
    names = [name.replace("()", "").rpartition(".")[2] for name in tested_names(state.suite.tests)]
    unnamed = [name for name in names if name and not mentions(state.prompt, name)]
    if unnamed and len(unnamed) == len(names):
        state.report(VetReason.UNNAMED, Severity.FLAG, {"names": unnamed}, "name it in the problem's text")
    if not state.known:
        return None
    leaked = leaked_cases(state.known, state.prompt, printed=isinstance(state.suite.tests, Stdio))
    share = len(leaked) / max(len(state.known), count_cases(state.suite.tests))
    evidence = {"cases": leaked[:SHOWN_CASES], "share": round(share, 4)}
    if share == 1.0:
        state.report(VetReason.MEMORIZABLE, Severity.FLAG, evidence, _ADD_CASES)
    elif share > state.options.max_leaked:
        state.report(VetReason.LEAKED, Severity.FLAG, evidence, _ADD_CASES)
    return share


def _report_free_answers(state: VetState) -> None:
    """Flag test code if several answers are right, since only a person can see whether it accepts all of them."""
    several, order = state.statement.several_answers, state.statement.order_of_output
    if several is not None:
        evidence = {"sign": "text", "said": several}
        state.report(VetReason.NEEDS_CHECKER, Severity.FLAG, evidence, _CHECK_TEST_CODE)
    elif order is not None:
        state.report(VetReason.ANY_ORDER, Severity.FLAG, {"said": order}, _CHECK_TEST_CODE)


def find_duplicates(cases: Sequence[KnownCase]) -> list[int]:
    """Return the indexes of cases with the same input and output as an earlier case."""
    keys = [(case.input.strip(), case.output.strip()) for case in cases]
    first = {key: index for index, key in reversed([*enumerate(keys)])}
    return [index for index, key in enumerate(keys) if first[key] < index]


def find_contradictions(cases: Sequence[KnownCase]) -> list[int]:
    """Return the indexes of cases whose input has another output in another case."""
    outputs: dict[str, set[str]] = {}
    for case in cases:
        outputs.setdefault(case.input.strip(), set()).add(" ".join(case.output.split()))
    return [index for index, case in enumerate(cases) if len(outputs[case.input.strip()]) > 1]


def rival_outputs(cases: Sequence[KnownCase]) -> list[tuple[Any, Any]]:
    """Return pairs of different outputs for the same input: printed texts, or returned values."""
    first_cases: dict[str, KnownCase] = {}
    rivals = []
    for case in cases:
        first = first_cases.setdefault(case.input.strip(), case)
        if first.value != case.value:
            printed = isinstance(case.value, str)
            rivals.append((first.output, case.output) if printed else (first.value, case.value))
    return rivals


def find_cut_off(tests: Stdio | Calls) -> list[int]:
    """Return the indexes of cases whose input or output was cut off, so that it ends in dots."""
    if not isinstance(tests, Stdio):
        return []
    return [index for index, case in enumerate(tests.cases) if _is_cut_off(case.input) or _is_cut_off(case.output)]


def find_empty_inputs(tests: Stdio | Calls) -> list[int]:
    """Return the indexes of cases without input, if other cases have input."""
    if not isinstance(tests, Stdio):
        return []
    empty = [index for index, case in enumerate(tests.cases) if not case.input.strip()]
    return empty if len(empty) < len(tests.cases) else []


def guess_chance(values: Sequence[Any]) -> float | None:
    """Return the chance that a guesser passes all cases, or None if no outputs are known.

    The guesser knows the frequency of each output and guesses each case independently; if all outputs are equal, it
    always passes. An output that occurs once cannot be guessed, unless it is a common guess: a truth value, an empty
    value, 0, 1, -1, YES, NO.
    """
    if not values:
        return None
    outputs = [value if isinstance(value, str) else repr(value) for value in values]
    counts = Counter(outputs)
    if len(counts) == 1 and (len(outputs) > 1 or _is_common_guess(outputs[0])):
        return 1.0
    chance = 1.0
    for output, count in counts.items():
        if count == 1 and not _is_common_guess(output):
            return 0.0
        chance *= (count / len(outputs)) ** count
    return chance


def _is_cut_off(text: str) -> bool:
    return len(text) >= MIN_CUT_CHARS and _DOTS.search(text[-80:]) is not None


def _is_common_guess(output: str) -> bool:
    return output.strip().casefold() in _COMMON_GUESSES


def leaked_cases(cases: Sequence[KnownCase], prompt: str, printed: bool) -> list[int]:
    """Return the indexes of cases that the prompt shows. printed: whether programs print the outputs of the cases."""
    text = prompt[:MAX_PROMPT_CHARS]
    if printed:
        words = _Words(text.replace("`", " "))
        return [index for index, case in enumerate(cases) if words.show(case)]
    squeezed = _squeeze(text)
    return [index for index, case in enumerate(cases) if _shows_call(squeezed, case)]


def mentions(prompt: str, name: str) -> bool:
    """Return whether the prompt contains the name as a whole word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", prompt[:MAX_PROMPT_CHARS]) is not None


class _Words:
    """A text as words separated by single blanks, with the positions where lines begin."""

    def __init__(self, text: str) -> None:
        lines = [" ".join(line.split()) for line in text.splitlines()]
        lines = [line for line in lines if line]
        self._text = f" {' '.join(lines)} "
        self._starts = set(accumulate((len(line) + 1 for line in lines), initial=0))

    def show(self, case: KnownCase) -> bool:
        """Say whether the text contains the input of a case, followed soon by its output."""
        case_input, output = " ".join(case.input.split()), " ".join(case.output.split())
        if not case_input or not output:
            return False
        blank = -1
        for _ in range(MAX_OCCURRENCES):
            blank = self._text.find(f" {case_input}", blank + 1)
            if blank < 0:
                return False
            if self._begins_input(blank) and self._is_followed_by(output, blank + len(case_input) + 1):
                return True
        return False

    def _begins_input(self, blank: int) -> bool:
        """Say whether an input may begin after this blank: at the start of a line, or after a word (no number)."""
        before = self._text[max(0, blank - NEAR_CHARS) : blank]
        return blank in self._starts or not before.rpartition(" ")[2].isdigit()

    def _is_followed_by(self, output: str, end: int) -> bool:
        """Say whether the output follows soon after `end`. A number directly at `end` would be part of the input."""
        text = self._text
        blank = end + (text[end] in _STOPS)
        if text[blank] != " ":
            return False
        for skipped in range(NEAR_TOKENS + 1):
            start = blank + 1
            if text.startswith(output, start) and text[start + len(output)] in f" {_STOPS}":
                return True
            blank = text.find(" ", start)
            if blank < 0 or (skipped == 0 and text[start:blank].isdigit()):
                return False
        return False


def _shows_call(text: str, case: KnownCase) -> bool:
    """Return whether a squeezed text contains the arguments of a case, followed soon by its result."""
    arguments, output = _squeeze(case.input), _squeeze(case.output)
    if not arguments:
        return False
    start = -1
    for _ in range(MAX_OCCURRENCES):
        start = _find_whole(text, arguments, start + 1)
        if start < 0:
            return False
        end = start + len(arguments)
        # Arguments stand in a call or an example: `(3,4)`, `Input: 3`, `n = 3`.
        named = text[start - 1 : start] in ("(", "=", ":", ",") and text[end : end + 1] in (")", ",", "\n", "]", "")
        if named and 0 <= _find_whole(text[end:], output, 0) <= NEAR_CHARS:
            return True
    return False


def _squeeze(text: str) -> str:
    return _SPACE.sub("", text).replace('"', "'").casefold()


def _find_whole(text: str, needle: str, start: int) -> int:
    """Return the position of the needle as a whole word or number, or -1."""
    start = text.find(needle, start)
    while start >= 0:
        end = start + len(needle)
        # A point before a digit is a decimal point, as in 1.5, not the end of a sentence.
        has_decimals = text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit()
        is_part = _are_one_word(needle[0], text[start - 1 : start]) or _are_one_word(needle[-1], text[end : end + 1])
        if not (has_decimals or is_part):
            return start
        start = text.find(needle, start + 1)
    return -1


def _are_one_word(end: str, neighbour: str) -> bool:
    return end.isalnum() and neighbour.isalnum()
