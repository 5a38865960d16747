"""`truegold dedup` on a file: one row for each record, what it says, conflicts, and how well it does on real pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from real_data import real_data

from truegold.pipeline.dedup.clusters import find_clusters
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress

ROOT = Path(__file__).parents[2]

TOM = "Tom has 37 red cars and buys 45 more at the market. How many cars has Tom got in total?"
PEN = "A pen costs 2 dollars and 19 cents less than a ruler, which costs 4 dollars. What does the pen cost?"
RECORDS = [
    {"id": "a", "question": TOM, "answer": "82"},
    {"id": "b", "question": TOM.upper() + " ", "answer": "82.0"},
    {"id": "c", "question": TOM.replace("37", "thirty-seven"), "answer": "81"},
    {"id": "d", "question": TOM.replace("37", "58"), "answer": "103"},
    {"id": "e", "question": PEN, "answer": "1.81"},
    {"id": "f", "question": "", "answer": "1"},
]


Result = tuple[pl.DataFrame, pl.DataFrame, dict[str, int]]


def run(folder: Path, records: list[Any], cap: int | None = None) -> Result:
    """The clusters, the flags and the counts."""
    path = folder / "problems.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    counts = find_clusters(path, folder / "out", ProblemColumns(), cap, NullProgress())
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "clusters.parquet",
        "dropped.jsonl",
        "flags.parquet",
        "kept.jsonl",
    ]
    return (
        pl.read_parquet(folder / "out" / "clusters.parquet"),
        pl.read_parquet(folder / "out" / "flags.parquet"),
        counts,
    )


def test_each_record_gets_a_row_that_tells_what_becomes_of_it(tmp_path):
    clusters, _, counts = run(tmp_path, RECORDS)
    assert clusters["id"].to_list() == list("abcdef")
    assert clusters["row"].to_list() == [1, 2, 3, 4, 5, 6]
    assert clusters["cluster"].to_list() == [1, 1, 1, 4, 5, 6]
    assert clusters["relation"].to_list() == [
        "exact",
        "exact",
        "same_problem",
        "same_template",
        "unrelated",
        "unrelated",
    ]
    assert clusters["keep"].to_list() == [True, False, True, True, True, True]
    assert clusters["kept_id"].to_list() == [None, "a", None, None, None, None]
    assert clusters["template"].to_list()[:4] == [clusters["template"][0]] * 4
    assert clusters["template"].to_list()[4:] == [None, None]
    assert counts == {
        "records": 6,
        "keep": 5,
        "drop exact": 1,
        "linked same_template": 1,
        "without_prompt": 1,
        "conflicting_labels": 3,
    }


def test_the_evidence_names_the_other_record_and_what_only_one_of_them_has(tmp_path):
    clusters, _, _ = run(tmp_path, RECORDS)
    evidence = [json.loads(text) for text in clusters["evidence"]]
    assert evidence[1] == {"with": "a", "with_row": 1}
    template = evidence[3]
    assert (template["with"], template["only_here"], template["only_there"]) in [
        (other, ["58"], ["37"]) for other in ("a", "c")
    ]
    assert 0 < template["quantities"] < 1
    assert evidence[4] == evidence[5] == {}


def test_records_of_one_problem_with_different_golds_are_flagged(tmp_path):
    _, flags, _ = run(tmp_path, RECORDS)
    assert flags["id"].to_list() == ["a", "b", "c"]
    assert set(flags["reason"]) == {"conflicting_labels"}
    evidence = json.loads(flags["evidence"][0])
    assert (evidence["golds"], evidence["rows"]) == ({"82": 2, "81": 1}, [1, 2, 3])
    assert [entry["gold"] for entry in evidence["texts"]] == ["82", "82.0", "81"]
    assert [entry["prompt"] for entry in evidence["texts"]] == [record["question"] for record in RECORDS[:3]]


def test_a_capped_record_says_so(tmp_path):
    clusters, _, counts = run(tmp_path, RECORDS[:1] + RECORDS[3:5], cap=1)
    assert clusters["keep"].to_list() == [True, False, True]
    assert clusters["kept_id"].to_list() == [None, "a", None]
    assert json.loads(clusters["evidence"][1])["template_cap"] is True
    assert counts["drop template_cap"] == 1


@pytest.mark.parametrize(
    "records", [[{"question": "One?"}], [{"question": "小明有三个苹果。"}] * 3, [{"question": "$"}, 5]]
)
def test_small_and_odd_files(tmp_path, records):
    clusters, _, counts = run(tmp_path, records)
    assert len(clusters) == counts["records"] == len(records)
    assert clusters["keep"].sum() == len({json.dumps(record) for record in records})


def test_it_finds_rewordings_and_keeps_renumbered_problems_apart_in_real_data(tmp_path, monkeypatch):
    folder = real_data("curation/gsm8k_test_rephrased.jsonl").parent
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import curation_dedup

    assert curation_dedup.rewordings(folder, True, tmp_path, in_pool=False)["F1"] >= 0.97
    merged = curation_dedup.variants(folder, True, tmp_path, with_gold=False)
    for kind in ("GSM-Plus numerical substitution", "GSM-Plus digit expansion", "MATH-Perturb hard"):
        assert merged[kind]["merged"] <= 0.01
    assert merged["GSM-Plus problem understanding"]["merged"] >= 0.9


def test_answer_options_in_a_column_of_their_own_are_part_of_the_problem(tmp_path):
    stem = "Which of these statements about the reaction is true?"
    records = [
        {"question": stem, "choices": ["It is fast.", "It is slow."], "answer": "0"},
        {"question": stem, "choices": ["It needs light.", "It needs heat."], "answer": "1"},
        {"question": stem, "choices": ["It is fast.", "It is slow."], "answer": "0"},
    ]
    clusters, flags, counts = run(tmp_path, records)
    assert clusters["keep"].to_list() == [True, True, False]
    assert (len(flags), counts["keep"]) == (0, 2)


def test_a_rewording_with_another_gold_stays_beside_it_in_a_cluster_and_is_not_flagged(tmp_path):
    left = (
        "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. How many clips"
    )
    right = "In April, Natalia sold clips to 48 friends of hers. In May she then sold half as many clips."
    records = [
        {"question": f"{left} did Natalia sell altogether in April and May?", "answer": "72"},
        {"question": f"{right} What is the total number of clips that she sold in April and May?", "answer": "71"},
        {"question": PEN, "answer": "1.81"},
    ]
    clusters, flags, _ = run(tmp_path, records)
    assert clusters["keep"].all()
    assert clusters["cluster"].n_unique() == 2
    assert flags["reason"].to_list() == []


def test_another_layout_is_the_same_problem_and_other_requests_are_where_the_golds_agree(tmp_path):
    plain = "Real numbers x and y satisfy x² + y² = 10x - 6y - 34. What is x+y?"
    problem = r"Real numbers $x$ and $y$ satisfy $x^{2}+y^2=10x-6y-34$. What is $x+y$?"
    rounded = f"{problem} Round your answer to the nearest tenth."
    records = [
        {"id": "a", "question": problem, "answer": "2"},
        {"id": "b", "question": plain, "answer": "2"},
        {"id": "c", "question": rounded, "answer": "2"},
        {"id": "d", "question": rounded.replace("tenth", "hundredth"), "answer": "2.25"},
        {"id": "e", "question": plain.replace("- 34", "+ 34"), "answer": "9"},
    ]
    clusters, flags, _ = run(tmp_path, records)
    assert clusters["cluster"].to_list()[:3] == [1, 1, 1]
    assert clusters["relation"].to_list()[1:3] == ["same_problem", "same_problem"]
    assert clusters["keep"].to_list() == [True, False, False, True, True]
    assert not flags["blocks"].any()
