"""How the verifier reads gold and the answers that compete with it, for rows whose answers came without a verdict.

    gold "1/2", answer "0.5"    {"written": "0.5", "verdict": "match", "reading": {"gold": "1/2", "answer": "0.5", ...}}

Samples that a profile has judged bring this along (`facts.describe_reading`). Answers of other systems have been sorted
into classes only; those of the most suspicious rows are read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from truegold.pipeline.report.browser.facts import describe_reading
from truegold.pipeline.tables.run_files import Fields
from truegold.verifiers import GuardError, Item, TruegoldError, Verifier, gold_response, judges_solutions, resolve
from truegold.verifiers.registry import BUILT_IN
from truegold.verifiers.running.single import verify_one

ROWS_READ = 300
"""The rows whose answers are read: the most suspicious. A verdict may take long where algebra is needed."""
ANSWERS_READ = 3


def read_answers(row: Mapping[str, Any], answers: Sequence[Fields]) -> list[Fields]:
    """Return the readings of a row's most frequent answers; none where its verifier judges programs or is no built-in
    one, whose code the page does not run."""
    name = row["verifier"]
    if row["gold"] is None or name not in BUILT_IN or judges_solutions(_verifier(name)):
        return []
    written = [answer["texts"][0] for answer in answers if answer["kind"] in ("label", "alternative")]
    readings = []
    for text in written[:ANSWERS_READ]:
        response = gold_response(_verifier(name), text, None)
        item = Item(text if response is None else response, row["gold"], name, row["verifier_args"] or "{}")
        try:
            verdict = verify_one(item)
        except GuardError:
            raise
        except TruegoldError:
            continue
        if (reading := describe_reading(verdict.evidence)) is not None:
            readings.append({"written": text, "verdict": str(verdict.reason), "reading": reading})
    return readings


@lru_cache(maxsize=16)
def _verifier(name: str) -> Verifier:
    return resolve(name)
