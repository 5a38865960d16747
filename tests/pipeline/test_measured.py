"""The precision that ships with a flag is that of the labels, and decides what the flag may do."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

from truegold.pipeline.flag.rules import BUILT_IN
from truegold.pipeline.tables.measured_flags import MEASURED, Measured, measured_flag

LABELS = Path(__file__).parents[1] / "data" / "rule_labels.jsonl"
OF_THE_GOLD_STAGE = {"gold_unmatchable", "solution_contradicts_gold"}


def test_the_table_is_what_the_labels_say():
    lines = [json.loads(line) for line in LABELS.read_text().splitlines()]
    right = Counter(line["reason"] for line in lines if line["right"])
    read = Counter(line["reason"] for line in lines)
    corpora = defaultdict(set)
    for line in lines:
        corpora[line["reason"]].add(line["corpus"])
    assert {name: Measured(right[name], read[name], len(corpora[name])) for name in read} == MEASURED
    assert len({(line["reason"], line["corpus"], line["row"]) for line in lines}) == len(lines)
    assert set(read) <= set(BUILT_IN) | OF_THE_GOLD_STAGE


def test_a_flag_blocks_only_where_it_was_right_nearly_always():
    assert not Measured(4, 4, 3).blocks
    assert not Measured(9, 10, 3).blocks
    assert Measured(10, 10, 3).blocks


def test_a_flag_that_was_read_on_fewer_than_three_corpora_only_advises():
    assert not Measured(20, 20, 2).blocks
    assert {"missing_figure", "proof", "solution_contradicts_gold"} <= {
        reason for reason, measured in MEASURED.items() if measured.blocks
    }
    assert all(measured.corpora >= 3 for measured in MEASURED.values() if measured.blocks)


def test_a_flag_shows_its_measured_precision():
    row = {"id": "1", "source": "a", "source_row": 1}
    flag = measured_flag(row, "multi_part", "multi_part", {"answers": 1}, is_fact=False)
    measured = MEASURED["multi_part"]
    assert (flag["confidence"], flag["blocks"]) == (measured.precision, measured.blocks)
    assert json.loads(flag["evidence"]) == {"answers": 1, "measured": measured.shown()}


def test_what_was_not_measured_advises_unless_it_is_a_fact():
    row = {"id": "1", "source": "a", "source_row": 1}
    assert not measured_flag(row, "gold_slip", "gold_slip", {}, is_fact=False)["blocks"]
    assert measured_flag(row, "gold_unverified", "verify_gold", {}, is_fact=True)["blocks"]
