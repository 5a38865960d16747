"""Dedup: what counts as the same, which row stays, held-out rows first, conflicts flagged, and everything counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numbered_rows import plain_row
from property_tests import examples

from truegold.flows.config import validate_config
from truegold.flows.plan import plan
from truegold.pipeline.config.stages import DedupConfig
from truegold.pipeline.dedup.copy_table import BATCH_ROWS, CopyTable
from truegold.pipeline.dedup.rewordings import DedupOutcome, Translation
from truegold.pipeline.dedup.stage import dedup
from truegold.pipeline.near.gold_keys import gold_form
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport, stage_key
from truegold.pipeline.tables.rows import ROW_SCHEMA, Row, read_rows, write_rows


def make(prompt: str, gold: str | None = "42", split: str = "train", **more: Any) -> Row:
    source = "eval.jsonl" if split == "heldout" else "train.jsonl"
    return plain_row(prompt, gold, source=source, split=split, **more)


class Result:
    """What a run left behind."""

    def __init__(self, folder: Path, report: StageReport) -> None:
        self.report = report
        self.rows = list(read_rows(folder / "rows.parquet"))
        self.dropped = list(read_rows(folder / "dropped.parquet"))
        self.flags = list(read_rows(folder / "flags.parquet"))
        self.ledger = list(read_rows(folder / "ledger.parquet"))

    @property
    def kept(self) -> list[int]:
        return [row["source_row"] for row in self.rows]

    def drops(self) -> list[tuple[int, str, str]]:
        return [
            (entry["source_row"], entry["reason"], json.loads(entry["evidence"])["kept"])
            for entry in self.ledger
            if entry["action"] == "drop"
        ]


def run(folder: Path, *rows: Row, **settings: Any) -> Result:
    numbered = [{**row, "source_row": row_number} for row_number, row in enumerate(rows, 1)]
    write_rows(folder / "in.parquet", numbered, ROW_SCHEMA)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    report = dedup({"rows": folder / "in.parquet"}, DedupConfig(**settings), out, NullProgress())
    result = Result(out, report)
    drops = sum(count for key, count in report.counts.items() if key.startswith("drop:"))
    assert report.rows_in == len(rows) == report.rows_out + drops
    assert (report.rows_out, drops) == (len(result.rows), len(result.dropped))
    assert report.counts.get("flag:conflicting_labels", 0) == len(result.flags)
    assert result.kept == sorted(result.kept)
    return result


def test_the_first_of_equal_rows_stays_and_the_others_name_it(tmp_path):
    result = run(tmp_path, make("What is 6*7?"), make("Other?"), make("what is  6*7?\n", "42.0"))
    assert result.kept == [1, 2]
    assert result.drops() == [(3, "exact_duplicate", "train.jsonl:1")]
    (drop,) = result.ledger
    assert json.loads(drop["evidence"])["kept_id"] == make("What is 6*7?")["id"]
    assert result.dropped[0]["drop_reason"] == "exact_duplicate"
    assert result.flags == []


def test_case_counts_where_it_is_asked_to(tmp_path):
    rows = make("What is 6*7?"), make("WHAT is 6*7?")
    assert run(tmp_path, *rows).kept == [1]
    assert run(tmp_path, *rows, case_sensitive=True).kept == [1, 2]


def test_a_heldout_row_wins_over_train_rows_wherever_it_stands(tmp_path):
    rows = (
        make("A?" * 5),
        make("B?" * 5),
        make("A?" * 5, split="heldout"),
        make("A?" * 5),
        make("A?" * 5, split="heldout"),
    )
    result = run(tmp_path, *rows)
    assert result.kept == [2, 3]
    assert result.drops() == [
        (1, "leaked_heldout", "eval.jsonl:3"),
        (4, "leaked_heldout", "eval.jsonl:3"),
        (5, "exact_duplicate", "eval.jsonl:3"),
    ]


def test_the_same_prompt_with_different_golds_stays_and_is_flagged(tmp_path):
    result = run(tmp_path, make("Legs?" * 3, "4"), make("Fine?" * 3), make("Legs?" * 3, "8"), make("LEGS?" * 3, "4.0"))
    assert result.kept == [1, 2, 3]
    assert [(flag["source_row"], flag["reason"], flag["blocks"]) for flag in result.flags] == [
        (1, "conflicting_labels", True),
        (3, "conflicting_labels", True),
    ]
    (first, second) = result.flags
    assert (first["detector"], first["confidence"]) == ("dedup", 0.9)
    evidence = {
        "golds": {"4": 2, "8": 1},
        "rows": ["train.jsonl:1", "train.jsonl:3", "train.jsonl:4"],
        "texts": [
            {"prompt": "Legs?" * 3, "gold": "4"},
            {"prompt": "Legs?" * 3, "gold": "8"},
            {"prompt": "LEGS?" * 3, "gold": "4.0"},
        ],
    }
    assert json.loads(first["evidence"]) == json.loads(second["evidence"]) == evidence
    mirrored = [entry for entry in result.ledger if entry["action"] == "flag"]
    assert [json.loads(entry["evidence"]) for entry in mirrored] == [evidence, evidence]


def test_a_conflict_of_copies_holds_rows_back_and_one_of_rewordings_advises_where_that_is_asked_for(tmp_path):
    tom = "Tom has 37 red cars and buys 45 more at the market. How many cars has Tom got in total?"
    reordered = "How many cars has Tom got in total, if Tom has 37 red cars and buys 45 more at the market?"
    maria = "Maria reads 23 pages of her novel on Monday and 19 pages on Tuesday. How many pages has she read so far?"
    reworded = (
        "On Monday Maria read 23 pages of her novel, on Tuesday 19. What is the number of pages she has read so far?"
    )
    rows = (make(tom, "82"), make(reordered, "83"), make(maria, "42"), make(reworded, "43"))
    assert [flag["source_row"] for flag in run(tmp_path, *rows).flags] == [1, 2]
    result = run(tmp_path, *rows, reworded_conflicts=True)
    flags = {flag["source_row"]: (flag["blocks"], flag["confidence"]) for flag in result.flags}
    assert result.kept == [1, 2, 3, 4]
    assert flags[1] == flags[2] == (True, 0.9)
    assert flags[3] == flags[4] == (False, 0.06)


def test_the_evidence_of_a_large_conflict_is_bounded(tmp_path):
    result = run(tmp_path, *(make("How many?", str(gold)) for gold in range(500)))
    assert len(result.flags) == 500
    evidence = json.loads(result.flags[-1]["evidence"])
    assert len(evidence["golds"]) == len(evidence["rows"]) == 10
    assert evidence["rows_with_other_golds"] == 490


def test_for_code_the_tests_count_as_part_of_the_problem_and_case_matters(tmp_path):
    def code(prompt: str, tests: str) -> Row:
        return make(prompt, None, domain="code", verifier="code", verifier_args=json.dumps({"tests": tests}))

    result = run(
        tmp_path,
        code("Write f.", "assert f(1)"),
        code("Write f.", "assert f(2)"),
        code("Write F.", "assert f(1)"),
        code("Write  f.", "assert f(1)"),
    )
    assert result.kept == [1, 2, 3]
    assert result.flags == []


def test_rows_without_a_prompt_are_copies_of_nothing(tmp_path):
    rows = make(""), make(" "), make("", "7"), make("Other?")
    for reworded in (True, False):
        result = run(tmp_path, *rows, reworded=reworded)
        assert result.kept == [1, 2, 3, 4]
        assert result.flags == []


def test_both_halves_of_the_stage_call_the_same_rows_copies(tmp_path):
    rows = make("Wie lang ist die Straße?", "$4$"), make("WIE LANG IST DIE STRASSE?", "4"), make("Other?", "8")
    for reworded in (True, False):
        assert run(tmp_path, *rows, reworded=reworded).drops() == [(2, "exact_duplicate", "train.jsonl:1")]
    conflict = make("Wie lang ist die Straße?", "4"), make("WIE LANG IST DIE STRASSE?", "8")
    for reworded in (True, False):
        assert len(run(tmp_path, *conflict, reworded=reworded).flags) == 2


def test_an_empty_table_stays_one(tmp_path):
    result = run(tmp_path)
    assert (result.rows, result.flags, result.ledger) == ([], [], [])


ROWS = st.lists(
    st.builds(
        make,
        st.sampled_from(["one apple", "ONE apple", "two  apples", "two apples", "three"]),
        st.sampled_from(["1", "1.0", "2", "x", "X"]),
        st.sampled_from(["train", "heldout"]),
    ),
    max_size=25,
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_it_agrees_with_the_obvious_way_to_do_it(tmp_path, rows):
    def key(row: Row) -> tuple[str, str | None]:
        return " ".join(row["prompt"].casefold().split()), gold_form(row["gold"])

    winners: dict[Any, int] = {}
    for split in ("heldout", "train"):
        for row_number, row in enumerate(rows, 1):
            if row["split"] == split:
                winners.setdefault(key(row), row_number)
    golds: dict[str, set[Any]] = {}
    for row in rows:
        golds.setdefault(key(row)[0], set()).add(key(row)[1])

    result = run(tmp_path, *rows)
    assert result.kept == sorted(winners.values())
    assert [(row, kept.split(":")[1]) for row, _, kept in result.drops()] == [
        (row_number, str(winners[key(row)]))
        for row_number, row in enumerate(rows, 1)
        if winners[key(row)] != row_number
    ]
    assert [flag["source_row"] for flag in result.flags] == [
        row_number for row_number in result.kept if len(golds[key(rows[row_number - 1])[0]]) > 1
    ]


def test_memory_is_tens_of_bytes_a_row():
    import tracemalloc

    count = 40_000
    tracemalloc.start()
    table = CopyTable(case_sensitive=False)
    row = make("")
    for index in range(count):
        row["prompt"] = f"prompt {index % 30_000}"
        table.add(row)
    held = tracemalloc.get_traced_memory()[0]
    same = table.resolve()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert int((same.winner != range(count)).sum()) == 10_000
    assert held / count < 32
    assert peak / count < 110


TOM = "Tom has 37 red cars and buys 45 more at the market. How many cars has Tom got in total?"
TOM_REWORDED = TOM.replace("37", "thirty-seven").replace("the market", "market")


def test_a_rewording_goes_and_the_ledger_says_why(tmp_path):
    result = run(tmp_path, make(TOM, "82"), make("Other?"), make(TOM_REWORDED, "82.0", solution="37 + 45 = 82"))
    assert result.kept == [2, 3]
    assert result.drops() == [(1, "same_problem", "train.jsonl:3")]
    evidence = json.loads(result.ledger[0]["evidence"])
    assert evidence["kept_id"] == make(TOM_REWORDED, "82.0")["id"]
    assert evidence["only_here"] == evidence["only_there"] == []
    assert evidence["words"] > 0.9


def test_a_copy_of_a_rewording_goes_for_the_row_that_stays(tmp_path):
    result = run(tmp_path, make(TOM, "82"), make(TOM_REWORDED, "82", solution="37 + 45"), make(TOM.upper(), "82"))
    assert result.drops() == [(1, "same_problem", "train.jsonl:2"), (3, "same_problem", "train.jsonl:2")]


def test_a_reworded_heldout_row_is_a_leak(tmp_path):
    result = run(tmp_path, make(TOM, "82"), make(TOM_REWORDED, None, split="heldout"))
    assert result.drops() == [(1, "leaked_heldout", "eval.jsonl:2")]


def test_rewordings_with_different_golds_stay_and_are_flagged(tmp_path):
    result = run(
        tmp_path, make(TOM, "82"), make(TOM_REWORDED, "81"), make(TOM.replace("37", "58"), "103"), make(TOM, "82")
    )
    assert result.kept == [1, 2, 3]
    assert [flag["source_row"] for flag in result.flags] == [1, 2]
    assert json.loads(result.flags[0]["evidence"]) == {
        "golds": {"82": 2, "81": 1},
        "rows": ["train.jsonl:1", "train.jsonl:2", "train.jsonl:4"],
        "texts": [{"prompt": TOM, "gold": "82"}, {"prompt": TOM_REWORDED, "gold": "81"}, {"prompt": TOM, "gold": "82"}],
    }


def test_renumbered_rows_stay_up_to_the_cap_of_their_template(tmp_path):
    rows = [make(TOM.replace("37", str(cars)), str(cars + 45)) for cars in (51, 62, 73)]
    assert run(tmp_path, *rows).kept == [1, 2, 3]
    capped = run(tmp_path, *rows, template_cap=2)
    assert capped.kept == [1, 2]
    assert capped.drops() == [(3, "template_cap", "train.jsonl:1")]


def test_rewordings_stay_where_they_are_not_asked_for_and_where_case_counts(tmp_path):
    rows = make(TOM, "82"), make(TOM_REWORDED, "82")
    assert run(tmp_path, *rows, reworded=False).kept == [1, 2]
    assert run(tmp_path, *rows, case_sensitive=True).kept == [1, 2]


def test_golds_that_the_verifier_finds_equal_are_no_conflict(tmp_path):
    result = run(tmp_path, make(TOM, "0.5"), make(TOM, "\\frac{1}{2}"))
    assert result.drops() == [(2, "exact_duplicate", "train.jsonl:1")]
    assert result.flags == []


@pytest.mark.parametrize(
    ("first", "second", "kept", "flags"),
    [
        (("1/2", ["half a pen"]), ("half a pen", []), [1], 0),  # one that both accept
        (("1/2", ["3/4"]), ("0.75", ["7"]), [1], 0),  # the same, written otherwise
        (("3", ["1/2"]), ("3.5", []), [1, 2], 2),  # none in common: two golds are no mixed number
        (("5", ["6"]), ("7", ["8"]), [1, 2], 2),
        (("5", ["6"]), ("6", ["5"]), [1], 0),
        (("5", ["see the picture"]), ("7", []), [1, 2], 0),  # one of them cannot be compared
    ],
)
def test_rows_that_accept_one_gold_in_common_are_no_conflict(first, second, kept, flags, tmp_path):
    rows = [make(TOM, gold, verifier_args=json.dumps({"other_golds": others})) for gold, others in (first, second)]
    for reworded in (True, False):
        result = run(tmp_path, *rows, reworded=reworded)
        assert (result.kept, len(result.flags)) == (kept, flags)


def test_a_rewording_that_is_not_sure_enough_stays(tmp_path):
    rows = make(TOM, "82"), make(TOM_REWORDED, "82")
    assert run(tmp_path, *rows, confidence=0.98).kept == [1]
    assert run(tmp_path, *rows, confidence=0.999999999).kept == [1, 2]


def test_of_exact_copies_the_best_row_stays_wherever_it_stands(tmp_path):
    rows = make("What is 6*7?"), make("what is 6*7?", solution="6*7 = 42")
    for reworded in (True, False):
        assert run(tmp_path, *rows, reworded=reworded).kept == [2]


def test_a_row_without_gold_beside_one_with_gold_is_no_conflict(tmp_path):
    for reworded in (True, False):
        result = run(tmp_path, make("Legs?" * 3, None), make("Legs?" * 3, "8"), reworded=reworded)
        assert (result.kept, result.flags) == ([2], [])


def test_golds_that_cannot_be_compared_both_stay_and_are_no_conflict(tmp_path):
    rows = make("Legs?" * 3, "8"), make("Legs?" * 3, "Recall that a spider has more legs than an ant")
    for reworded in (True, False):
        result = run(tmp_path, *rows, reworded=reworded)
        assert (result.kept, result.flags) == ([1, 2], [])


def test_copies_whose_golds_differ_in_the_unit_are_a_conflict(tmp_path):
    for reworded in (True, False):
        result = run(tmp_path, make("How far?" * 3, "5 km"), make("How far?" * 3, "5 cm"), reworded=reworded)
        assert (result.kept, len(result.flags)) == ([1, 2], 2)


def test_the_better_source_wins_whatever_batch_its_rows_are_hashed_in() -> None:
    table = CopyTable(case_sensitive=False, has_ranks=True)
    trusted = [make(f"Problem {problem} breaks off in the") for problem in range(BATCH_ROWS)]
    for row in trusted:
        table.add(row, 0)
    for row in trusted[:3]:
        table.add(row, 1)
    assert table.resolve().winner[-3:].tolist() == [0, 1, 2]


def test_translations_are_told_of_rows_that_stay() -> None:
    winner, nowhere = np.array([0, 0, 2, 3, 3]), np.full(5, -1)
    relation, capped = np.zeros(5, dtype=np.uint8), np.array([False, False, False, False, True])
    pairs = [Translation(1, 2), Translation(0, 2), Translation(0, 1), Translation(2, 4)]
    outcome = DedupOutcome(winner, nowhere, winner < 0, relation, capped, {}, pairs)
    assert outcome.kept_translations == [Translation(0, 2)]


def test_another_encoder_deduplicates_again(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"question": "What is 6*7?", "answer": "42"}\n')
    code, model = tmp_path / "encoder.py", tmp_path / "model"
    model.mkdir()

    def key(embedder: str) -> str:
        values = {"data": {"path": str(tmp_path / "data.jsonl")}, "dedup": {"embedder": embedder}}
        stages = {stage.name: stage for stage in plan(validate_config(values, "test"), "curate")}
        stage = replace(
            stages["dedup"], inputs={n: p for n, p in stages["dedup"].inputs.items() if isinstance(p, Path)}
        )
        (tmp_path / "digests.json").unlink(missing_ok=True)
        return stage_key(stage, tmp_path, DigestCache(tmp_path / "digests.json"))

    keys = set()
    for content in ("[[1.0]]", "[[2.0]]"):
        code.write_text(f"def encode(texts):\n    return {content} * len(texts)\n")
        (model / "weights").write_text(content)
        keys |= {key(f"{code}:encode"), key(str(model))}
    assert len(keys) == 4


STATEMENTS = [
    ("Every field is also a ring.", "Every ring has a multiplicative identity."),
    ("If H and K are subgroups of G, then HK is a subgroup of G.", "Groups of order p^2 with p prime are Abelian."),
    ("If H is a subgroup of a group G, then aH = Ha.", "If H is normal of G, then ah = ha for all h in H."),
    ("Every ideal in a ring is a subring of the ring.", "Every subring of every ring is an ideal of the ring."),
    ("For any two groups G and G', there is a homomorphism of G into G'.", "Every homomorphism is one-to-one."),
    ("A ring homomorphism is one to one if its kernel is {0}.", "Q is an ideal in R."),
    ("R is a splitting field of some polynomial over Q.", "There is a field with 60 elements."),
    ("The external direct product of cyclic groups is cyclic.", "The external product of D_3 and D_4 is D_12."),
]


def test_options_that_many_questions_share_join_none_of_them(tmp_path: Path) -> None:
    options = ["True, True", "False, False", "True, False", "False, True"]
    listed = "\n".join(f"({letter}) {text}" for letter, text in zip("ABCD", options, strict=True))
    prompts = [f"Statement 1 | {first} Statement 2 | {second}\n{listed}" for first, second in STATEMENTS]
    rows = [
        make(prompt, "A", verifier="choice", verifier_args=json.dumps({"options": options}))
        for prompt in [*prompts, prompts[2].upper()]
    ]
    result = run(tmp_path, *rows)
    assert result.drops() == [(9, "exact_duplicate", "train.jsonl:3")]
