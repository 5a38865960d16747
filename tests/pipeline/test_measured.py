"""The precision that ships with a flag is that of the labels, and decides what the flag may do."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from truegold.pipeline.flag.rules import BUILT_IN
from truegold.pipeline.tables.measured_flags import (
    MEASURED,
    MIN_BLIND,
    MIN_CORPORA,
    MIN_READ,
    Measured,
    Readers,
    measured_flag,
)

DATA = Path(__file__).parents[1] / "data"
ONLY_ADVISE = {"foreign_question", "gold_wrapped", "missing_quantity", "multi_part", "negative_count"}
WIDENED = {"missing_quantity"}
"""What blind readers have read of these was said by a narrower rule, and does not count."""
OF_THE_GOLD_STAGE = {"gold_unmatchable", "solution_contradicts_gold"}


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def test_the_table_is_what_the_labels_say():
    blind, all_of = defaultdict(list), defaultdict(list)
    for line in lines_of("flag_readings.jsonl"):
        if line.get("flagged") and line["reason"] in MEASURED.keys() - WIDENED:
            blind[line["reason"]].append((line["corpus"], line["a"] == line["b"] == "yes"))
    for line in lines_of("rule_labels.jsonl"):
        all_of[line["reason"]].append((line["corpus"], line["right"]))
    assert {*blind, *all_of} <= set(BUILT_IN) | OF_THE_GOLD_STAGE == set(MEASURED)
    for reason, measured in MEASURED.items():
        read, older = blind[reason], all_of[reason]
        is_enough = len(read) >= MIN_BLIND and len({corpus for corpus, _ in read}) >= MIN_CORPORA
        rows = read if is_enough else read + older
        by = Readers.TWO_BLIND if is_enough or not older else Readers.MIXED if read else Readers.SINGLE
        if measured.by is not Readers.PLANTED:
            corpora = {corpus for corpus, _ in rows}
            assert measured == Measured(
                sum(right for _, right in rows), len(rows), len(corpora), by, reason in ONLY_ADVISE
            ), reason


def test_only_a_rule_of_which_hardly_a_row_could_be_read_goes_by_planted_ones():
    planted = {reason for reason, measured in MEASURED.items() if measured.by is Readers.PLANTED}
    assert planted == {"garbled_number"}
    assert sum(line["reason"] in planted for line in lines_of("rule_labels.jsonl")) < MIN_READ
    assert not MEASURED["garbled_number"].blocks


def test_no_row_was_read_twice_for_a_rule():
    lines = [
        line
        for line in [*lines_of("flag_readings.jsonl"), *lines_of("rule_labels.jsonl")]
        if line["reason"] in MEASURED
    ]
    assert len({(line["reason"], line["corpus"], line["row"]) for line in lines}) == len(lines)


def test_a_flag_blocks_only_where_it_was_right_nearly_always():
    assert not Measured(4, 4, 3, Readers.SINGLE).blocks
    assert not Measured(9, 10, 3, Readers.SINGLE).blocks
    assert Measured(10, 10, 3, Readers.SINGLE).blocks
    assert not Measured(10, 10, 3, Readers.PLANTED).blocks
    assert not Measured(10, 10, 3, Readers.SINGLE, advises=True).blocks


def test_a_flag_that_was_read_on_fewer_than_three_corpora_only_advises():
    assert not Measured(20, 20, 2, Readers.SINGLE).blocks
    assert {"missing_figure", "proof", "solution_contradicts_gold"} <= {
        reason for reason, measured in MEASURED.items() if measured.blocks
    }
    assert all(measured.corpora >= 3 for measured in MEASURED.values() if measured.blocks)


def test_a_flag_shows_its_measured_precision():
    row = {"id": "1", "source": "a", "source_row": 1}
    flag = measured_flag(row, "multi_part", "multi_part", {"answers": 1})
    measured = MEASURED["multi_part"]
    assert (flag["confidence"], flag["blocks"]) == (measured.precision, False)
    assert json.loads(flag["evidence"]) == {"answers": 1, "measured": measured.shown()}


def test_a_fact_without_an_entry_holds_rows_back():
    row = {"id": "1", "source": "a", "source_row": 1}
    assert measured_flag(row, "gold_unverified", "verify_gold", {})["blocks"]
