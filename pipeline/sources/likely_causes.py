"""Finds the likely cause of many rejected or held back rows, by trying all verifiers and all columns.

    verifier `choice`, golds 72, 10, 5          Every gold is a number: is `math` meant?
    verifier `math`, golds B, A, D              Every gold is a letter: is `choice` meant?
    no gold, column `test_list` of asserts      Column 'test_list' holds tests: is `code` meant?
    gold column `level`, column `answer`        The golds stand in column 'answer'.
    golds "... the value is 452.", column `n`   The golds of these rows stand in column 'n' (452).
    a user's verifier that reads only boxes     checks.py:boxed refuses gold by itself and reads ... \\boxed{72}
    a user's verifier that raises an error      checks.py:paid fails on 20 of 20 golds: AttributeError: ...
    a user's verifier that pays every answer    checks.py:paid also pays a wrong answer (7919).

A cause is named if it holds for eight of ten sampled rows. A verifier that compares texts can read any gold. It is
named only for short golds that no other verifier reads. Placeholders (`N/A`, `see solution`) do not count as golds. The
advice is a complete option for the command line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson

from truegold.pipeline.sources.columns import Column, compile_column, gold_spec, gold_texts
from truegold.pipeline.sources.conversations import read_prompt
from truegold.pipeline.tables.losses import Cause
from truegold.pipeline.tables.reasons import GOLD_REASONS
from truegold.pipeline.tables.rows import Row, problem_of
from truegold.verifiers import Item, Reason, gold_response, resolve, verify_batch
from truegold.verifiers.answers.gold_types import gold_note
from truegold.verifiers.columns import GOLDS_COLUMNS, NAMES, Samples, spelled, text_of
from truegold.verifiers.gold import is_placeholder
from truegold.verifiers.registry import BUILT_IN
from truegold.verifiers.response_forms import ENOUGH_GOLDS, RESPONSE_FORMS
from truegold.verifiers.row_kinds import TESTS, are_tests

MOST = 0.8
"""A cause is named if it holds for at least this share of the sampled rows."""
ASKED = ("choice", "math", "exact")
"""The verifiers that are tried, the strictest first. `numeric` is left out, since `math` reads all its golds."""
SHORT_WORDS = 6
"""The maximum number of words of a gold that is compared as text. Right answers seldom repeat longer golds."""
DEADLINE_S = 5.0
"""The timeout of a verdict, in seconds."""
ANOTHER_ANSWER = "7919"
"""A wrong answer. A verifier that reads the gold must reject it."""
CODE = "code"
_NUMERAL = re.compile(r"-?\d+(?:\.\d{3})*(?:[.,]\d+)?(?:/\d+)?")
"""A number in digits: "452", "1.234,5", "3/4"."""
KINDS = {"number": "number", "choice": "letter", "truth": "truth value", "expression": "formula", "text": "text"}
"""The name of a gold in messages, by its type in `gold_types`."""
TESTS_NAMES = (*TESTS, "input_output", "public_tests", "asserts")
ANSWER_NAMES = (
    *NAMES["gold"],
    *GOLDS_COLUMNS,
    *("answerKey", "answer_key", "answer_text", "ans", "final_ans", "result", "correct", "correct_option", "solution"),
)
"""Names of columns that may hold golds."""
ANSWERS = (
    *(name for name in ANSWER_NAMES if name not in ("label", "target")),
    *("Lösung", "Loesung", "Ergebnis", "Resultat", "résultat", "resultado", "risultato", "solución", "solução"),
    *("soluzione", "uitkomst", "oplossing", "результат", "решение", "wynik", "rozwiązanie", "sonuç", "çözüm"),
    *("解", "결과"),
)
"""Names of columns of short answers. Some may also be names of worked solutions."""


def cause_of_held(reason: str, rows: Sequence[Row]) -> Cause:
    """Return the likely cause of rows that are held back for a reason."""
    if reason not in GOLD_REASONS:
        return Cause(
            remedy=f"`truegold review` shows them; flag.advise_only: [{reason}] lets such rows pass with their flag."
        )
    rows = [row for row in rows if row["gold"] is not None]
    judged_by = {row["verifier"] for row in rows}
    # In the excluded cases the verifier reads the golds, and another verifier does not help.
    if reason not in ("solution_contradicts_gold", "same_gold"):
        if (fault := _fault_of_own_verifier(reason, rows, judged_by)) is not None:
            return fault
        cause = meant_verifier([row["gold"] or "" for row in rows], judged_by)
        if cause is not None:
            return cause
    metas = [orjson.loads(row["meta"]) for row in rows]
    return _cause_in_columns(metas, rows, judged_by) or Cause(
        remedy="`truegold review` shows them; `truegold explain` tells what the verifier reads of a gold."
    )


def _cause_in_columns(metas: Sequence[Mapping[str, Any]], rows: Sequence[Row], judged_by: set[str]) -> Cause | None:
    """Return a cause if an unused column, which is stored in the rows' `metas`, has their tests or golds."""
    if CODE not in judged_by and (name := _filled(TESTS_NAMES, metas, are_tests)) is not None:
        return _by_tests(name)
    if (name := _column_of_golds(metas, rows)) is not None:
        return Cause(f"The golds stand in column {name!r}.", _set_column("gold", name))
    return _quoted_column(metas, [row["gold"] or "" for row in rows])


def cause_of_rejects(reason: str, samples: Samples, gold: str | None) -> Cause:
    """Return the likely cause of rejected records. `gold` is the column of golds, if it is known."""
    if reason in ("missing_gold", "gold_not_found", "gold_not_text", "gold_unparsed", "gold_is_prose"):
        return _cause_of_golds(reason, samples, gold)
    if reason == "prompt_not_text" and _are_whole_columns(samples):
        return Cause(
            "The record holds all values of a column together.",
            "Write a line for each record: df.to_json(FILE, orient='records', lines=True)",
        )
    if reason == "missing_prompt" and (name := _filled(NAMES["prompt"], samples, _asks)) is not None:
        return Cause(
            f"The questions of these rows stand in column {name!r}.",
            _set_column("prompt", name),
        )
    if reason == "missing_tests" and (name := _filled(TESTS_NAMES, samples, are_tests)) is not None:
        return _by_tests(name)
    if reason == "missing_tests" and (name := _filled(NAMES["gold"], samples, text_of)) is not None:
        texts = [text for values in samples for text in gold_texts(Column(name)(values))]
        return meant_verifier(texts, {CODE}) or Cause()
    return Cause()


def _asks(value: Any) -> bool:
    return text_of(read_prompt(value)[0]) is not None


def _are_whole_columns(samples: Samples) -> bool:
    """Return whether there is a single record, whose values are all lists of the same length above 1."""
    lengths = {len(value) if isinstance(value, list) else 0 for values in samples for value in values.values()}
    return len(samples) == 1 and len(lengths) == 1 and max(lengths) > 1


def _cause_of_golds(reason: str, samples: Samples, gold: str | None) -> Cause:
    if (name := _filled(TESTS_NAMES, samples, are_tests)) is not None:
        return _by_tests(name)
    prose = [text_of(Column(gold)(values)) or "" for values in samples] if gold is not None else []
    if (quoted := _quoted_column(samples, prose, exclude=gold)) is not None:
        return quoted
    # If golds are sentences, a column with such a name may have sentences, too.
    if reason != "gold_is_prose" and (name := _filled(ANSWER_NAMES, samples, text_of, exclude=gold)) is not None:
        return Cause(f"The golds of these rows stand in column {name!r}.", _set_column("gold", name))
    return Cause()


def _by_tests(name: str) -> Cause:
    remedy = f"--set data.verifier={CODE} --set data.columns.tests={shlex.quote(name)}"
    return Cause(f"Column {name!r} holds tests: is `code` meant?", remedy)


def _quoted_column(samples: Samples, texts: Sequence[str], exclude: str | None = None) -> Cause | None:
    """Return a cause if golds are sentences and another column has the numbers at their ends, else None."""
    for name in dict.fromkeys(name for values in samples for name in values if name != exclude):
        numbers = [text_of(values.get(name)) or "" for values in samples]
        quoted = sum(map(ends_with, texts, numbers))
        if quoted and quoted >= MOST * len(samples):
            return Cause(f"The golds of these rows stand in column {name!r} ({numbers[0]}).", _set_column("gold", name))
    return None


def ends_with(text: str, gold: str) -> bool:
    """Return whether `gold` is a number and the last number of a longer text."""
    numbers = _NUMERAL.findall(text)
    return bool(numbers) and gold != text.strip() and _NUMERAL.fullmatch(gold) is not None and numbers[-1] == gold


def _set_verifier(name: str) -> str:
    return f"--set data.verifier={name}, or --verifier {name}"


def _set_column(role: str, name: str) -> str:
    return f"--set data.columns.{role}={shlex.quote(name)}, or --{role}-column {shlex.quote(name)}"


def meant_verifier(golds: Sequence[str], judged_by: Iterable[str]) -> Cause | None:
    """Return a cause if a verifier that is not among `judged_by` reads most of these golds, else None."""
    golds = [gold for gold in golds if not is_placeholder(gold)]
    if not golds:
        return None
    if sum(are_tests(gold) for gold in golds) >= MOST * len(golds):
        return Cause("Every gold holds tests: is `code` meant?", _set_verifier("code"))
    counts = _counts_read(golds, judged_by)
    if (name := _ablest(counts, len(golds))) is None:
        return None
    kinds = {note[0] for gold in golds if (note := gold_note(gold, "math")) is not None}
    if len(kinds) == 1 and (kind := KINDS.get(kinds.pop())) is not None and name != "exact":
        what = f"Every gold is a {kind}"
    else:
        what = f"`{name}` reads {counts[name]} of {len(golds)} golds"
    return Cause(f"{what}: is `{name}` meant?", _set_verifier(name))


def best_verifier(golds: Sequence[str]) -> str | None:
    """Return the strictest verifier that reads most of these golds, or None."""
    golds = [gold for gold in golds if not is_placeholder(gold)]
    return _ablest(_counts_read(golds, ()), len(golds)) if golds else None


def _counts_read(golds: Sequence[str], judged_by: Iterable[str]) -> dict[str, int]:
    """Return the number of golds that each verifier reads, except for verifiers that already judge them."""
    asked = [name for name in ASKED if name not in judged_by]
    return {name: sum(readable) for name, readable in zip(asked, _readable(asked, golds), strict=True)}


def _ablest(counts: Mapping[str, int], golds: int) -> str | None:
    able = [name for name, count in counts.items() if count >= MOST * golds]
    return max([name for name in able if name != "exact"] or able, key=lambda name: counts[name], default=None)


def _fault_of_own_verifier(reason: str, rows: Sequence[Row], judged_by: Collection[str]) -> Cause | None:
    """Return a cause if a user's verifier fails on most golds, pays a wrong answer, or needs a special form."""
    name, *others = judged_by or [""]
    if others or not name or name in BUILT_IN:
        return None
    remedy = f"Correct the verifier: truegold verifiers check {shlex.quote(name)}"
    if reason == "gold_unmatchable":
        return Cause(f"{name} also pays a wrong answer ({ANOTHER_ANSWER}).", remedy)
    verifier = resolve(name)
    trials = (
        Item(response, row["gold"], name, row["verifier_args"], problem_of(row))
        for row in rows
        if (response := gold_response(verifier, row["gold"], row["solution"])) is not None
    )
    verdicts = verify_batch(trials, workers=1, item_deadline_s=DEADLINE_S)
    errors = [verdict for verdict in verdicts if verdict.reason is Reason.VERIFIER_ERROR]
    if errors and len(errors) >= MOST * len(rows):
        error = errors[0].evidence.get("error", errors[0].reason)
        return Cause(f"{name} fails on {len(errors)} of {len(rows)} golds: {error}.", remedy)
    has_form = getattr(verifier, "gold_response", None) is not None
    return None if has_form else _unsaid_form(name, [row["gold"] or "" for row in rows])


def _unsaid_form(name: str, golds: Sequence[str]) -> Cause | None:
    """Return a cause if a user's verifier reads gold only in a form, such as a box, that it does not declare. Else
    None."""
    golds, templates = golds[:ENOUGH_GOLDS], list(RESPONSE_FORMS.values())
    shown = (Item(template.format(gold=gold), gold, name) for template in templates for gold in golds)
    verdicts = list(verify_batch(shown, workers=1, item_deadline_s=DEADLINE_S))
    for position, template in enumerate(templates):
        passed = sum(verdict.passed for verdict in verdicts[position * len(golds) : (position + 1) * len(golds)])
        if passed >= MOST * len(golds):
            shown_gold = template.format(gold=golds[0])
            return Cause(
                f"{name} refuses gold by itself and reads it in another form, such as {shown_gold!r}.",
                f"Declare that form in the verifier: @verifier(gold_response={template!r})",
            )
    return None


def _readable(names: Sequence[str], golds: Sequence[str]) -> list[list[bool]]:
    """Return for each verifier whether it reads each gold. To read a gold is to accept a perfect response and to reject
    a wrong one."""
    trials = [
        Item(response or gold, gold, name)
        for name in names
        for gold in golds
        for response in (gold_response(resolve(name), gold), gold_response(resolve(name), ANOTHER_ANSWER))
    ]
    verdicts = list(verify_batch(iter(trials), workers=1, item_deadline_s=DEADLINE_S))
    pairs = list(zip(verdicts[::2], verdicts[1::2], strict=True))
    rows = [pairs[start : start + len(golds)] for start in range(0, len(pairs), len(golds))]
    return [
        [
            on_gold.passed and another.reason is not Reason.GOLD_UNPARSED and _may_be_meant(name, gold)
            for gold, (on_gold, another) in zip(golds, row, strict=True)
        ]
        for name, row in zip(names, rows, strict=True)
    ]


def _may_be_meant(verifier: str, gold: str) -> bool:
    """Return whether a verifier is made for such a gold: `choice` for letters, `math` for numbers and formulas.

    `exact` is made for short texts that are neither.
    """
    note = gold_note(gold, "math")
    if verifier == "exact":
        return len(gold.split()) <= SHORT_WORDS and (note is None or note[0] in ("text", "truth", "unreadable"))
    is_letter = note is not None and note[0] == "choice"
    return is_letter if verifier == "choice" else note is not None and note[0] not in ("text", "unreadable")


def _column_of_golds(metas: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> str | None:
    """Return an unused column of golds. It agrees with the rows' solutions, or has a usual name."""
    with_solution = [(meta, row) for meta, row in zip(metas, rows, strict=True) if row["solution"]]
    for name in dict.fromkeys(name for meta in metas for name in meta if name != "source_id"):
        read = compile_column(gold_spec(name, metas), "gold")
        trials = [
            Item(row["solution"] or "", gold, row["verifier"])
            for meta, row in with_solution
            if (gold := read.text(meta)) is not None
        ]
        passed = sum(verdict.passed for verdict in verify_batch(iter(trials), workers=1, item_deadline_s=DEADLINE_S))
        if trials and passed >= MOST * len(rows):
            return name
    if (called := _filled(ANSWER_NAMES, metas, text_of)) is None:
        return None
    golds = [text for meta in metas for text in gold_texts(Column(called)(meta))]
    return called if sum(_readable(["math"], golds)[0]) >= MOST * len(rows) else None


def _filled(names: Iterable[str], samples: Samples, is_filled: Any, exclude: str | None = None) -> str | None:
    """Return the first column of these names that is filled in most records, or None."""
    columns = dict.fromkeys(name for values in samples for name in values)
    for name in spelled(names, columns):
        filled = sum(bool(is_filled(Column(name)(values))) for values in samples)
        if name != exclude and filled and filled >= MOST * len(samples):
            return name
    return None
