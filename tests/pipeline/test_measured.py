"""The precision that ships with a flag is that of the labels, and decides what the flag may do."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from truegold.pipeline.flag.rules import BUILT_IN, load_detectors
from truegold.pipeline.tables.measured_flags import (
    CORPUS_ROWS,
    MEASURED,
    Measured,
    measured_flag,
)

DATA = Path(__file__).parents[1] / "data"
WIDENED = {"missing_quantity": "contact"}
"""What blind readers have read of these up to this round was said by a narrower rule, and does not count."""
OF_THE_GOLD_STAGE = {"gold_unmatchable", "solution_contradicts_gold"}


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def mean_over_corpora(rows):
    """Return the share of right rows in a corpus, of which CORPUS_ROWS have full weight."""
    corpora = defaultdict(list)
    for corpus, right in rows:
        corpora[corpus].append(right)
    weighted = [(min(len(rights), CORPUS_ROWS), sum(rights) / len(rights)) for rights in corpora.values()]
    return sum(weight * share for weight, share in weighted) / sum(weight for weight, _ in weighted)


def test_the_table_is_what_the_labels_say():
    blind, rows = defaultdict(list), defaultdict(list)
    for line in lines_of("flag_readings.jsonl"):
        if line["reason"] in MEASURED and line["round"] > WIDENED.get(line["reason"], ""):
            blind[line["reason"]].append((line["corpus"], line["a"] == line["b"] == "yes"))
    for line in lines_of("rule_labels.jsonl"):
        rows[line["reason"]].append((line["corpus"], line["right"]))
    assert {*blind, *rows} - {"gold_compared_as_text"} <= set(BUILT_IN) | OF_THE_GOLD_STAGE == set(MEASURED)
    for reason, measured in MEASURED.items():
        read = rows[reason] + blind[reason]
        counts = (sum(right for _, right in read), len(read), len({corpus for corpus, _ in read}))
        assert (measured.right, measured.read, measured.corpora) == counts, reason
        assert measured.blind == (sum(right for _, right in blind[reason]), len(blind[reason])), reason
        assert measured.precision == pytest.approx(mean_over_corpora(read), abs=0.00501), reason


def test_a_rule_that_fails_on_new_corpora_is_off():
    off = {reason for reason, measured in MEASURED.items() if not measured.is_on}
    assert off == {
        "answer_in_prompt",
        "garbled_number",
        "missing_figure",
        "mojibake",
        "no_question",
        "repeated_text",
        "solution_in_prompt",
        "truncated_text",
    }
    assert set(BUILT_IN) - off == {rule.name for rule in load_detectors(["default"])}


def test_no_row_was_read_twice_for_a_rule():
    lines = [
        line
        for line in [*lines_of("flag_readings.jsonl"), *lines_of("rule_labels.jsonl")]
        if line["reason"] in MEASURED
    ]
    assert len({(line["reason"], line["corpus"], line["row"]) for line in lines}) == len(lines)


def test_a_flag_blocks_only_where_blind_readers_of_several_corpora_found_it_right():
    assert Measured(10, 10, 3, 1.0, (5, 5)).blocks
    assert not Measured(10, 10, 3, 1.0, (4, 4)).blocks
    assert not Measured(10, 10, 2, 1.0, (5, 5)).blocks
    assert not Measured(19, 20, 3, 0.9, (5, 5)).blocks
    assert {reason for reason, measured in MEASURED.items() if measured.blocks} == {
        "negative_count",
        "yes_no_answer",
    }


def test_a_flag_shows_its_measured_precision():
    row = {"id": "1", "source": "a", "source_row": 1}
    flag = measured_flag(row, "multi_part", "multi_part", {"answers": 1})
    measured = MEASURED["multi_part"]
    assert (flag["confidence"], flag["blocks"]) == (measured.precision, False)
    assert json.loads(flag["evidence"]) == {"answers": 1, "measured": measured.shown()}


def test_a_fact_without_an_entry_holds_rows_back():
    row = {"id": "1", "source": "a", "source_row": 1}
    assert measured_flag(row, "gold_unverified", "verify_gold", {})["blocks"]
