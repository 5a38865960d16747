"""Reads gold, verifier and the verifier's arguments from the columns of a trainer's row.

    {"truegold": "{...}"}                                        the row as truegold's export wrote it
    {"answer": "48+24 = 72\n#### 72"}                            verifier math, gold 72
    {"solution": "... so \\boxed{12}."}                           verifier math, gold 12
    {"ground_truth": '{"inputs": ["1"], "outputs": ["2"]}'}      verifier code, with these tests
    {"choices": ["iron", "argon"], "answer": "argon"}            verifier choice, gold B, with these options
    {"ground_truth": '{"func_name": "validate_title"}'}          foreign: truegold has no verifier for it

Columns, options and answers within solutions are found by the same code as in the stage `ingest`: `columns`,
`choice_rows` and `answers.gold_words`.

A row that names no verifier gets one by its data set (a route):

    TRUEGOLD_ROUTES="openai/gsm8k=math,code_*=code,searchR1_*=trainer"        in the trainer's environment
    compute_score(..., routes={"openai/gsm8k": "math"})                       verl's reward_kwargs
    TruegoldReward(routes={"taco": "code"})

The columns `data_source`, `dataset`, `datasource` or `source` name a row's data set. `*` stands for any text. A route
with exactly that name comes first, then the first pattern that fits.

The route `trainer` leaves the rows to the trainer's own scorer, which is `default_compute_score` in verl. With other
trainers such rows have no score here, and another reward function has to judge them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from truegold.verifiers.answers.choice_arguments import LETTER_GOLD, choice_arguments
from truegold.verifiers.answers.gold_types import gold_note
from truegold.verifiers.answers.gold_words import shorter_answers, unmatchable_because
from truegold.verifiers.choice_rows import ANSWERS, choice_of, option_columns
from truegold.verifiers.code.suite.row_tests import SETUP, Unusable, function_name, read_tests_value
from truegold.verifiers.columns import (
    FINAL_MARK,
    GOLDS_COLUMNS,
    NAMES,
    SOLUTIONS,
    SOURCES,
    find_column,
    is_there,
    json_safe,
    last_boxed,
    marked_answer,
    spelled,
    value_at,
)
from truegold.verifiers.extract.listed_options import find_options
from truegold.verifiers.gold import OF_VALUES, BadGold, gold_response, golds_in, quoted_list
from truegold.verifiers.registry import resolve
from truegold.verifiers.row_kinds import KIND_COLUMNS, TESTS, are_tests, foreign_gold, foreign_kind, is_test_code
from truegold.verifiers.running.batch import Item
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.strict_json import parse_structure

VARIABLE = "TRUEGOLD_ROUTES"
"""The environment variable with the default routes."""
TRAINER = "trainer"
"""The route to the trainer's own scorer, in place of a verifier."""
NO_ROUTES: Mapping[str, str] = {}


def routes_in(value: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return the routes in a setting. If the setting is None, the environment variable TRUEGOLD_ROUTES is read.

    A text is a JSON object, or `source=verifier` pairs separated by commas. Raises ConfigError for any other value and
    for a verifier that does not exist.
    """
    setting: Any = os.environ.get(VARIABLE, "") if value is None else value
    if isinstance(setting, str):
        setting = _read(setting)
    if not isinstance(setting, Mapping):
        raise ConfigError(f"routes cannot be {setting!r:.60}.", 'Map data sets to verifiers: {"openai/gsm8k": "math"}.')
    routes = {str(source): verifier for source, verifier in setting.items()}
    for source, verifier in routes.items():
        if not isinstance(verifier, str):
            raise ConfigError(f"The route of {source!r} cannot be {verifier!r:.60}.", "Name a verifier, or 'trainer'.")
        if verifier != TRAINER:
            resolve(verifier)
    return routes


def _read(text: str) -> Any:
    structure = parse_structure(text)
    if not isinstance(structure, str):
        return structure
    pairs = [pair.strip().rpartition("=") for pair in structure.split(",") if pair.strip()]
    if any(not (source and verifier) for source, _, verifier in pairs):
        raise ConfigError(f"routes cannot be {text!r:.60}.", 'Type "openai/gsm8k=math,code_*=code", or a JSON object.')
    return {source.strip(): verifier.strip() for source, _, verifier in pairs}


def route_of(columns: Mapping[str, Any], routes: Mapping[str, str]) -> str | None:
    """Return the verifier of the route that fits a row's data set, or None if no route fits."""
    source = source_of(columns) if routes else None
    if source is None:
        return None
    fitting = (verifier for pattern, verifier in routes.items() if fnmatchcase(source, pattern))
    return routes.get(source) or next(fitting, None)


def source_of(columns: Mapping[str, Any]) -> str | None:
    """Return the name of a row's data set, or None if its columns do not name one."""
    for name in SOURCES:
        value = columns.get(name)
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value:
            return str(value)
    return None


EXPORTED = ("truegold", "verifier", "verifier_args")
"""Columns of an exported row that define its verifier."""
_OTHER_TESTS = ("input_output",)
"""Columns of tests in addition to `TESTS`."""
_PARTS = (
    ("inputs", "outputs"),
    ("public_tests", "private_tests", "generated_tests"),
    ("public_test_cases", "private_test_cases"),
)
"""Groups of columns that hold tests together."""
_PROGRAMS = ("solution", "canonical_solution", "solutions", "starter_code")
"""Columns with a program, which shows whether tests call a method of `class Solution`."""
_TRUTH = (*NAMES["gold"], *GOLDS_COLUMNS, *SOLUTIONS, *TESTS, *_OTHER_TESTS, *sum(_PARTS, ()), EXPORTED[0])
"""Columns that may hold gold or tests."""
_BESIDE = (*EXPORTED[1:], *SOURCES, *SETUP, *_PROGRAMS, "entry_point", "metadata", *KIND_COLUMNS)
"""Columns without gold or tests that judging also needs."""

_PROGRAM = re.compile(
    r"^\s{0,8}(?:def \w+\(|from \w[\w.]* import |import \w+\s*$|class \w+\s*[:({]|#include\s*<|print\("
    r"|public (?:class|static)|func \w+\(|fn \w+\(|SELECT .+ FROM )",
    re.MULTILINE,
)
"""A line of a program. A gold with such a line is a program."""


_OF_SENTENCES = frozenset(("number", "percentage", "quantity", "set", "time", "date"))
"""Types of golds that `math` can read from a sentence."""


def truth_columns(names: Iterable[str]) -> tuple[list[str], bool]:
    """Return the columns that judging needs, and whether one of them may hold gold or tests."""
    columns = list(names)
    truth, beside = (spelled({path.partition(".")[0]: None for path in paths}, columns) for paths in (_TRUTH, _BESIDE))
    options = option_columns(columns)
    keys = spelled(ANSWERS, columns) if options else []
    return list(dict.fromkeys((*truth, *beside, *options, *keys))), bool(truth or keys)


@dataclass(frozen=True, slots=True)
class RowTruth:
    """The parts of a row that judging needs."""

    gold: Any
    """The gold, or a list of accepted golds, as `gold.golds_in` reads them."""
    verifier: str = "math"
    verifier_args: str = "{}"
    problem: str | None = None
    unread: str | None = None
    """The reason why the row has no readable gold or tests, or None if it has readable ones."""
    is_foreign: bool = False
    """Whether the trainer's own scorer judges the row, because of its kind or its data set."""

    def question(self, response: str) -> Item:
        """Return the item with which a verifier judges a response to the row."""
        return Item(response, self.gold, self.verifier, self.verifier_args, self.problem, self.unread)


def truth_of(
    columns: Mapping[str, Any],
    problem: str | None = None,
    *,
    verifier: str | None = None,
    routes: Mapping[str, str] = NO_ROUTES,
) -> RowTruth:
    """Return gold, verifier and arguments of a trainer's row.

    verifier: the verifier of all rows. By default, the row names its verifier, or its columns decide for `math`, `code`
    or `choice`. routes: verifiers by data set (`routes_in`), for rows that do not name a verifier.
    """
    carried = columns.get("truegold")
    if isinstance(carried, str) and carried.startswith("{"):
        row = parse_structure(carried)
        if not isinstance(row, Mapping):
            return RowTruth(None, problem=problem, unread=f"the column truegold is not JSON: {carried:.60}")
        return _settled(row.get("gold"), verifier or row.get("verifier") or "math", row.get("verifier_args"), problem)
    named = columns.get("verifier")
    chosen = verifier or (named if isinstance(named, str) and named.strip() else None) or route_of(columns, routes)
    name, gold = gold_in(columns)
    if chosen is None:
        return _guessed(columns, name, gold, problem)
    if chosen == TRAINER:
        return RowTruth(gold, problem=problem, unread="its data set is left to the trainer", is_foreign=True)
    arguments = columns.get("verifier_args")
    has_none = arguments is None or (isinstance(arguments, str | Mapping) and arguments in ("", "{}", {}))
    read: RowTruth | None = None
    if has_none and chosen == "code":
        read = _of_tests(columns, name, problem)
    elif has_none and chosen == "choice":
        read = _of_options(columns, gold, problem)
    return read or _settled(gold, chosen, arguments, problem)


def _of_tests(columns: Mapping[str, Any], gold: str | None, problem: str | None) -> RowTruth | None:
    """Return the truth of a row with tests, or None if the row has no tests."""
    try:
        arguments = tests_in(columns, gold)
    except Unusable as error:
        return RowTruth(None, problem=problem, unread=f"{error.reason}: {error.detail}")
    return None if arguments is None else RowTruth(None, "code", json.dumps(arguments), problem)


def _of_options(columns: Mapping[str, Any], gold: Any, problem: str | None) -> RowTruth | None:
    """Return the truth of a row with options in its columns or its problem, or None if the row has no options."""
    options = option_columns(columns)
    try:
        values = {name: json_safe(columns[name]) for name in (*options, *spelled(ANSWERS, columns)) if options}
        choice = choice_of(values, problem)
    except Unusable as error:
        return RowTruth(None, "choice", problem=problem, unread=f"{error.reason}: {error.detail}")
    if choice is not None:
        texts, right = choice
        arguments = {"options": texts, **({"multiple": True} if len(right) > 1 else {})}
        return RowTruth(right, "choice", json.dumps(arguments), problem)
    if problem is None or not isinstance(gold, str):
        return None
    if LETTER_GOLD.fullmatch(gold) is None and find_options(problem) is not None:
        return None
    listed = choice_arguments({"verifier_args": "{}", "gold": gold, "prompt": problem})
    return None if listed is None else RowTruth(gold, "choice", listed, problem)


def _guessed(columns: Mapping[str, Any], name: str | None, gold: Any, problem: str | None) -> RowTruth:
    """Return the truth of a row that does not name a verifier. name: the column with `gold`."""
    if (of_tests := _of_tests(columns, name, problem)) is not None:
        return of_tests
    present = {column: value for column, value in columns.items() if value is not None}
    kind = foreign_kind(present)
    if kind is None and (of_options := _of_options(present, gold, problem)) is not None:
        return of_options
    if isinstance(gold, str) and _PROGRAM.search(gold) is not None:
        return RowTruth(gold, problem=problem, unread=f"{name} holds a program, but the row has no tests: {gold:.60}")
    if (kind := kind or foreign_gold(gold)) is not None:
        return RowTruth(gold, problem=problem, unread=f"the row holds {kind}", is_foreign=True)
    if isinstance(gold, str):
        return _of_text(name, gold, problem)
    return _settled(gold, "math", "{}", problem)


def _of_text(name: str | None, gold: str, problem: str | None) -> RowTruth:
    """Return the truth of a row whose gold is a text: an answer, or sentences that may contain an answer."""
    boxed = last_boxed(gold) if unmatchable_because(gold, problem or "") == "prose" else gold
    unread: str | None = None
    if gold.rpartition(FINAL_MARK)[2].strip() != gold.strip() and marked_answer(gold) is None:
        unread = f"{name} has no answer after {FINAL_MARK}: {gold:.60}"
    elif boxed is None and not _is_answer(gold):
        unread = f"{name} holds sentences without an answer in \boxed{{}} or after {FINAL_MARK}: {gold:.60}"
    if unread is not None:
        return RowTruth(gold, problem=problem, unread=unread)
    return _settled(boxed or gold, "math", "{}", problem)


def _is_answer(gold: str) -> bool:
    """Say whether `math` reads a sentence as a value, or accepts an answer that is taken from the sentence.

    "There are 12 apples in the bag." -> True, "They play, since it is warm and dry today" -> False
    """
    note = gold_note(gold, "math")
    if note is not None and note[0] in _OF_SENTENCES:
        return True
    verifier = resolve("math")
    responses = (gold_response(verifier, answer) or answer for answer in shorter_answers(gold))
    return any(verifier(response, gold).passed for response in responses)


def _settled(gold: Any, verifier: str, arguments: Any, problem: str | None) -> RowTruth:
    """Return the truth of a row with this gold, verifier and arguments."""
    if not isinstance(arguments, str):
        arguments = "{}" if arguments is None else json.dumps(arguments, default=str)
    return RowTruth(quoted_list(gold) or gold if verifier in OF_VALUES else gold, verifier, arguments or "{}", problem)


def truth_of_label(label: Any, problem: str | None = None, verifier: str | None = None) -> RowTruth:
    """Return the truth of a label, which is the exported row as JSON text, or gold."""
    row = parse_structure(label)
    if isinstance(row, Mapping) and "verifier" in row:
        return truth_of({"truegold": json.dumps(row)}, row.get("problem") or problem, verifier=verifier)
    return truth_of({"gold": label}, problem, verifier=verifier)


def gold_in(columns: Mapping[str, Any]) -> tuple[str | None, Any]:
    """Return the column with a row's gold, and the gold: a text, a list of accepted golds, or an object unchanged."""
    listed = next((name for name in GOLDS_COLUMNS if isinstance(_structure(columns, name), list | tuple)), None)
    worked = [text for text in map(columns.get, SOLUTIONS[1:]) if isinstance(text, str)]
    has_answer = any(answer_in(text, is_working=True) != text for text in worked)
    # Next to a list of golds, or to a solution with an answer, these columns may hold a class of the row.
    exclude: tuple[str, ...] = ("label",) if listed is not None or has_answer else ()
    exclude += ("target",) if has_answer else ()
    name = find_column("gold", [columns], exclude=exclude)
    if name is None or not is_there(value_at(columns, name)):
        fallbacks = (known for known in spelled(SOLUTIONS, columns) if is_there(columns[known]))
        name = next(fallbacks, None) if listed is None else listed
    if name is None:
        return None, None
    beside = [] if listed in (None, name) else [_structure(columns, listed)]
    value = _structure(columns, name) if name == listed else value_at(columns, name)
    try:
        golds = [gold for part in (value, *beside) for gold in golds_in(quoted_list(part) or part)]
    except BadGold:
        return name, value
    answers = [answer_in(gold, is_working=name in SOLUTIONS[1:]) for gold in golds]
    return name, answers if len(answers) > 1 else next(iter(answers), None)


def _structure(columns: Mapping[str, Any], name: str | None) -> Any:
    value: Any = value_at(columns, name) if name is not None else None
    return parse_structure(value.tolist() if hasattr(value, "tolist") else value)


def answer_in(gold: str, is_working: bool = False) -> str:
    """Return the answer after the last `####` of a gold, or in its last box, else the whole gold.

    is_working: whether gold comes from a column of solutions; only then boxes are read.
    """
    if FINAL_MARK in gold:
        return marked_answer(gold) or gold
    return (is_working and last_boxed(gold)) or gold


def tests_in(columns: Mapping[str, Any], gold: str | None) -> dict[str, Any] | None:
    """Return the arguments of the verifier `code` for the tests of a row, or None if it has no tests.

    gold: the name of the column of gold. If gold and tests are in different columns, only assertions count as tests.
    Raises Unusable for tests that cannot be read.
    """
    gold = None if gold in SOLUTIONS[1:] else gold
    named = columns.get("entry_point")
    name = named if isinstance(named, str) else function_name(columns)
    solution = next((text for text in map(columns.get, _PROGRAMS) if isinstance(text, str)), None)
    for column in dict.fromkeys((*TESTS, *_OTHER_TESTS, *(() if gold is None else (gold,)))):
        tests = _structure(columns, column)
        if are_tests(tests) and (gold in (None, column) or is_test_code(tests)):
            return read_tests_value(columns, tests, column, name, solution)
    for parts in _PARTS:
        tests = {part: _structure(columns, part) for part in parts if is_there(columns.get(part))}
        if tests and gold is None and (are_tests(tests) or parts != _PARTS[0]):
            return read_tests_value(columns, tests, parts[0], name, solution)
    return None
