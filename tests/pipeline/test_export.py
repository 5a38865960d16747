"""The curated set: loadable as a folder, and a card whose numbers are those of the tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml

from truegold.pipeline.accounting import estimate_from_reviews, estimate_from_suspicion
from truegold.verifiers import InputError

PROBLEMS = [
    *[(f"Ann has {n} pens and buys {n + 1} more. How many pens has she now?", str(2 * n + 1)) for n in range(1, 21)],
    ("Which number is prime?\n(A) 4\n(B) 7\n(C) 9", "B"),
    ("Ann has 1 pens and buys 2 more. How many pens has she now?", "3"),
    ("A pack has 81 cards. How many cards does he get if he buys -3 packs?", "243"),
    ("Is 91 prime, or is it not?", "No"),
    ("求 3 加 4 的和是多少，并写出计算的过程？", "7"),
]


@pytest.fixture(scope="module")
def run_dir(curate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A curated set of the problems, with one flag that only advises."""
    return curate(
        tmp_path_factory.mktemp("export"), PROBLEMS, export={"license": "mit"}, flag={"advise_only": ["yes_no_answer"]}
    )


def card_of(run_dir: Path) -> tuple[dict[str, Any], str]:
    """Return the YAML head and the body of a run's card."""
    text = (run_dir / "export" / "README.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    return yaml.safe_load(head), body


def test_the_head_of_the_card_says_what_the_files_hold(run_dir):
    head, _ = card_of(run_dir)
    settled = pl.read_parquet(run_dir / "settle" / "rows.parquet")
    info = head["dataset_info"]
    sizes = dict(settled.group_by("split").len().iter_rows())
    assert sizes.keys() == {"train", "heldout"}
    assert {split["name"]: split["num_examples"] for split in info["splits"]} == sizes
    for split, files in zip(info["splits"], head["configs"][0]["data_files"], strict=True):
        path = run_dir / "export" / files["path"]
        table = pq.read_table(path)
        assert (split["name"], split["num_examples"]) == (files["split"], table.num_rows)
        assert split["num_bytes"] == table.nbytes
        assert [feature["name"] for feature in info["features"]] == table.column_names
    exported = pl.concat([pl.read_parquet(path) for path in (run_dir / "export" / "data").glob("*.parquet")])
    assert exported.drop("flags", "license", "origin").sort("source_row").equals(settled.sort("source_row"))
    assert info["dataset_size"] == sum(split["num_bytes"] for split in info["splits"])
    assert head["license"] == "mit"
    assert head["size_categories"] == ["n<1K"]
    assert set(head["language"]) == {"en", "zh"}


def test_datasets_loads_the_folder(run_dir, tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the package datasets")
    loaded = datasets.load_dataset(str(run_dir / "export"), cache_dir=str(tmp_path))
    head, _ = card_of(run_dir)
    assert {name: len(split) for name, split in loaded.items()} == {
        split["name"]: split["num_examples"] for split in head["dataset_info"]["splits"]
    }
    assert [row["flags"] for split in loaded.values() for row in split if row["flags"]] == [["yes_no_answer"]]
    assert loaded["train"][0].keys() == {feature["name"] for feature in head["dataset_info"]["features"]}


def test_an_exported_row_says_which_flags_it_carries(run_dir):
    exported = pl.concat([pl.read_parquet(path) for path in (run_dir / "export" / "data").glob("*.parquet")])
    flagged = exported.filter(pl.col("flags").list.len() > 0)
    assert flagged["flags"].to_list() == [["yes_no_answer"]]
    assert flagged["prompt"].to_list() == ["Is 91 prime, or is it not?"]
    assert exported["flags"].null_count() == 0


def test_the_counts_of_the_card_make_up_the_records(run_dir):
    card = json.loads((run_dir / "export" / "card.json").read_text())
    _, body = card_of(run_dir)
    assert card["records_in"] == len(PROBLEMS)
    assert sum(split["rows"] for split in card["splits"]) + sum(rows for *_, rows in card["removed"]) == len(PROBLEMS)
    assert [(stage, rows) for stage, _, rows in card["removed"]] == [("dedup", 1), ("settle", 1)]
    assert card["flags"] == {"yes_no_answer": 1}
    assert card["verifiers"] == {"math@" + card_version("math"): 21, "choice@" + card_version("choice"): 2}
    assert ["clean", "multiple_choice", 4] in card["edits"]
    assert card["languages"]["zh"] == 1
    assert card["gold_types"] == {"number": 21, "choice": 1, "truth": 1}
    assert "| settle | held_for_review | 1 |" in body
    assert "Estimated share of wrong labels: not estimated" in body
    assert "Against evaluation sets: not run." in body


def card_version(name: str) -> str:
    """Return a verifier's version as the card writes it."""
    from truegold.verifiers import resolve

    return resolve(name).version


def test_the_configuration_digest_follows_the_settings_and_nothing_else(curate, tmp_path):
    settings = [{"name": "a"}, {"name": "b"}, {"name": "c", "clean": {"min_prompt_chars": 9}}]
    runs = [curate(tmp_path, PROBLEMS, **sections) for sections in settings]
    first, same, changed = (json.loads((run / "export" / "card.json").read_text())["configuration"] for run in runs)
    assert first == same != changed


def test_a_set_without_a_row_left_is_not_written(curate, tmp_path):
    with pytest.raises(InputError, match="No row is left of 1"):
        curate(tmp_path, [("Is two even, please?", "yes")])
    assert not list(tmp_path.rglob("export"))


def test_label_errors_from_suspicion_are_the_mean_with_a_poisson_binomial_interval(tmp_path):
    rows = tmp_path / "rows.parquet"
    pl.DataFrame({"source": ["a"] * 3, "source_row": [1, 2, 3]}).write_parquet(rows)
    suspicion = tmp_path / "suspicion.parquet"
    by_samples, by_rules = "{}", '{"rules": ["no_question"], "asked": {"verdict": "sound", "ratio": null}}'
    known = [
        ("a", 1, 0.1, 0.1, by_samples),
        ("a", 2, 0.3, None, '{"asked": {"verdict": "sound", "ratio": 0.1}}'),
        ("a", 3, 0.9, None, by_rules),  # What a rule or a model of unknown worth accuses stands for no other row.
        ("a", 4, 0.9, 0.9, by_samples),
        ("b", 1, 0.9, 0.9, by_samples),
    ]
    columns = ["source", "source_row", "suspicion", "label_wrong", "evidence"]
    pl.DataFrame(known, columns, orient="row").write_parquet(suspicion)
    estimate = estimate_from_suspicion(suspicion, [rows])
    assert (estimate.known, estimate.rate) == (2, pytest.approx(0.2))
    margin = 1.96 * math.sqrt(0.1 * 0.9 + 0.3 * 0.7) / 2
    assert estimate.low == pytest.approx(max(0.0, 0.2 - margin))
    assert estimate.high == pytest.approx(0.2 + margin)


def test_label_errors_from_reviewers_look_at_rows_that_no_flag_held_back():
    ledger = pl.LazyFrame(
        {
            "reason": ["reviewer_keep", "reviewer_fix", "reviewer_drop", "reviewer_keep", "held_for_review"],
            "evidence": [
                '{"flags":[],"random":true}',
                '{"flags":[],"random":true}',
                '{"flags":["yes_no_answer"],"random":true}',
                '{"flags":[],"random":true}',
                '{"flags":["yes_no_answer"]}',
            ],
        }
    )
    # A reviewer's own choice of rows says nothing about the others.
    chosen = pl.LazyFrame({"reason": ["reviewer_drop"], "evidence": ['{"flags":[]}']})
    assert estimate_from_reviews(chosen).rate is None
    ledger = pl.concat([ledger, chosen])
    estimate = estimate_from_reviews(ledger)
    assert (estimate.known, estimate.rate) == (3, pytest.approx(1 / 3))
    assert estimate.low is not None
    assert estimate.low < 1 / 3
    assert estimate_from_reviews(ledger.filter(pl.col("reason") == "held_for_review")).rate is None


def test_suspicion_named_in_the_configuration_is_on_the_card(curate, tmp_path):
    data = {"columns": {"prompt": "question", "gold": "answer", "id": "question"}}
    suspicion = tmp_path / "suspicion.parquet"
    pl.DataFrame(
        {"source": ["train.jsonl"] * 4, "source_row": [1, 2, 3, 4], "suspicion": [0.0, 0.0, 0.5, 0.5]}
    ).with_columns(label_wrong="suspicion", evidence=pl.lit("{}")).write_parquet(suspicion)
    run_dir = curate(tmp_path, PROBLEMS, data=data, export={"suspicion": str(suspicion)})
    _, body = card_of(run_dir)
    assert "Estimated share of wrong labels: 25.00%" in body
    assert "from suspicions for 4 of its" in body


def test_a_table_of_another_shape_is_one_helpful_line(curate, tmp_path):
    other = tmp_path / "other.parquet"
    pl.DataFrame({"id": ["x"]}).write_parquet(other)
    with pytest.raises(InputError, match=r"has no column evidence, label_wrong, source, source_row, suspicion"):
        curate(tmp_path, PROBLEMS, export={"suspicion": str(other)})
