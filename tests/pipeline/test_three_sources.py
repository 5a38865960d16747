"""Maths, code and choice go through one run: what is planted is found, and every table tells the sources apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from three_sources import CONFLICTS, CONTAMINATED, COPIES, COUNTRIES, MATHS, TASKS, settings, write_sources

from truegold.flows.config import load_config, validate_config
from truegold.flows.console import Terminal
from truegold.flows.execute import execute, stage_caller
from truegold.flows.plan import plan
from truegold.pipeline.report.explain import explain, explain_lines
from truegold.verifiers import ConfigError, TruegoldError


def run(values: dict[str, Any], until: str = "report") -> Path:
    config = validate_config(values, "test")
    config.run_dir.mkdir(parents=True, exist_ok=True)
    with Terminal(Console(quiet=True)).stage("test") as terminal:
        execute(plan(config, until), config.run_dir, stage_caller(config.run_dir, terminal))
    return config.run_dir


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("three")
    write_sources(folder)
    return run(settings(folder))


def drops(run_dir: Path, stage: str) -> list[tuple[str, str]]:
    return pl.read_parquet(run_dir / stage / "dropped.parquet").select("source", "drop_reason").sort(pl.all()).rows()


def test_contaminated_rows_of_each_source_go(run_dir):
    ledger = pl.read_parquet(run_dir / "decontaminate" / "ledger.parquet")
    assert set(ledger.select("source", "reason").rows()) == {
        ("maths", "evaluation_copy"),
        ("code", "evaluation_overlap"),  # The prompt of MBPP's preset ends with the tests.
        ("choice", "evaluation_copy"),
    }
    # Held-out rows stay, and the ledger has a record of them too.
    assert dict(ledger.group_by("source").len().iter_rows()) == {name: len(rows) for name, rows in CONTAMINATED.items()}
    heldout = pl.read_parquet(run_dir / "ingest" / "rows.parquet").filter(split="heldout").select("id")
    is_heldout = ledger["id"].is_in(heldout["id"].to_list())
    assert ledger["action"].to_list() == ["keep" if held else "drop" for held in is_heldout]


def test_copies_go_and_conflicts_are_settled_in_favour_of_the_better_source(run_dir):
    by_reason = {reason for _, reason in drops(run_dir, "dedup")}
    assert by_reason <= {"exact_duplicate", "leaked_heldout", "conflict_with_better_source"}
    assert [source for source, _ in drops(run_dir, "dedup")] == ["choice"] * (len(COPIES) + len(CONFLICTS))
    ledger = pl.read_parquet(run_dir / "dedup" / "ledger.parquet")
    overruled = ledger.filter(reason="conflict_with_better_source")
    for evidence in map(json.loads, overruled["evidence"]):
        assert evidence["priority"] == "maths before choice"
        assert len(evidence["golds"]) == 2
    flags = pl.read_parquet(run_dir / "dedup" / "flags.parquet").filter(reason="conflicting_labels")
    assert set(flags["source"]) <= {"maths"}
    assert not flags["blocks"].any()
    kept = pl.read_parquet(run_dir / "settle" / "rows.parquet").filter(source="maths")["source_row"].to_list()
    assert {index + 1 for index in (*COPIES, *CONFLICTS)} <= set(kept)


def test_each_source_has_its_share_of_held_out_rows(run_dir):
    rows = pl.read_parquet(run_dir / "ingest" / "rows.parquet")
    heldout = dict(rows.filter(split="heldout").group_by("source").len().iter_rows())
    choice_rows = len(COUNTRIES) + len(COPIES) + len(CONFLICTS)
    assert heldout == {"maths": round(0.1 * len(MATHS)), "choice": round(0.25 * choice_rows)}


def test_quotas_and_weights_of_the_sources_are_kept(run_dir):
    selected = pl.read_parquet(run_dir / "select" / "selected.parquet")
    assert dict(selected.group_by("source").len().iter_rows()) == {"maths": 6, "code": 3, "choice": 3}


def test_report_card_export_and_story_tell_the_sources_apart(run_dir):
    summary = json.loads((run_dir / "report" / "summary.json").read_text())
    accounts = {account["source"]: account for account in summary["sources"]}
    assert list(accounts) == ["maths", "code", "choice"]
    assert accounts["maths"]["records"] == len(MATHS)
    assert accounts["code"]["records"] == len(TASKS)
    for account in accounts.values():
        parts = ("rejected", "dropped", "left", "heldout")
        assert account["records"] == sum(account[part] for part in parts)
    ratios = {(ratio["by"], ratio["name"]) for ratio in summary["reward_ratio"]}
    assert {("source", "maths"), ("source", "code"), ("source", "choice")} <= ratios
    page = (run_dir / "report" / "index.html").read_text(encoding="utf-8")
    assert "By source" in page
    card = (run_dir / "export" / "README.md").read_text(encoding="utf-8")
    assert "By source, in the order of the data:" in card
    exported = pl.read_parquet(run_dir / "export" / "data" / "train.parquet")
    assert set(exported["source"]) == {"maths", "code", "choice"}
    assert set(exported.select("source", "verifier").unique().rows()) == {
        ("maths", "math"),
        ("code", "code"),
        ("choice", "choice"),
    }
    overruled = pl.read_parquet(run_dir / "dedup" / "ledger.parquet").filter(reason="conflict_with_better_source")
    line = overruled["source_row"][0]
    story = "\n".join(explain_lines(explain(run_dir, f"choice:{line}")))
    assert "conflict_with_better_source" in story


def test_a_quota_that_cannot_be_met_is_named(run_dir):
    folder = run_dir.parent.parent
    values = settings(folder, select={"max_rows": 12, "quotas": {"source:code": 0.9}})
    values["data"][0]["quota"] = None
    facts = json.loads((run(values, "select") / "select" / "stage.json").read_text())["report"]["facts"]
    (code,) = [demand for demand in facts["demands"] if demand["name"] == "source:code"]
    assert not code["is_met"]
    assert code["rows"] == code["available"] < 0.9 * 12


def test_a_changed_share_samples_and_curates_nothing_again(run_dir):
    folder = run_dir.parent.parent
    values = settings(folder)
    values["data"][0]["quota"] = 1 / 3
    names = ("ingest", "clean", "decontaminate", "dedup")
    before = [json.loads((run_dir / name / "stage.json").read_text())["key"] for name in names]
    samples = pl.read_parquet(run_dir / "profile" / "samples.parquet")
    run(values, "select")
    assert [json.loads((run_dir / name / "stage.json").read_text())["key"] for name in names] == before
    # The profile looks anew which samples the other share needs, and finds all of them there.
    assert pl.read_parquet(run_dir / "profile" / "samples.parquet").equals(samples)
    selected = pl.read_parquet(run_dir / "select" / "selected.parquet")
    assert selected.filter(source="maths").height == 4


def entry(folder: Path, name: str, *rows: tuple[str, str], **fields: Any) -> dict[str, Any]:
    path = folder / name
    path.write_text("".join(json.dumps({"question": text, "answer": gold}) + "\n" for text, gold in rows))
    return {"path": str(path), **fields}


SUM = "What is the sum of 12 and 30, in words or digits?"


def curate(folder: Path, *sources: dict[str, Any], **sections: Any) -> Path:
    return run({"name": "few", "runs_dir": str(folder / "runs"), "data": list(sources), **sections}, "curate")


@pytest.mark.parametrize("trusted", [0, 1])
def test_the_order_of_the_sources_decides_which_copy_stays(tmp_path, trusted):
    files = [
        entry(tmp_path, "a.jsonl", (SUM, "42"), ("How many legs have nine healthy cats?", "36")),
        # The solution is longer here, which decides where no source is the better one.
        entry(tmp_path, "b.jsonl", (SUM.lower(), "12+30=42 and that is all there is to it #### 42")),
    ]
    run_dir = curate(tmp_path, files[trusted], files[1 - trusted])
    (record,) = pl.read_parquet(run_dir / "dedup" / "ledger.parquet").to_dicts()
    names = ["a.jsonl", "b.jsonl"]
    assert (record["source"], record["reason"]) == (names[1 - trusted], "exact_duplicate")
    evidence = json.loads(record["evidence"])
    assert evidence["kept"] == f"{names[trusted]}:1"
    assert evidence["priority"] == f"{names[trusted]} before {names[1 - trusted]}"


def test_a_better_source_that_contradicts_itself_is_held_for_review(tmp_path):
    first = entry(tmp_path, "a.jsonl", (SUM, "42"), (SUM, "43"), ("How many legs have nine healthy cats?", "36"))
    run_dir = curate(tmp_path, first, entry(tmp_path, "b.jsonl", (SUM, "44"), ("How many tails has a cat?", "1")))
    assert drops(run_dir, "dedup") == [("b.jsonl", "conflict_with_better_source")]
    assert drops(run_dir, "settle") == [("a.jsonl", "held_for_review")] * 2


def test_a_held_out_row_wins_over_a_better_source_that_contradicts_it(tmp_path):
    first = entry(tmp_path, "a.jsonl", (SUM, "42"), ("How many legs have nine healthy cats?", "36"))
    second = entry(tmp_path, "b.jsonl", ("How many tails has a cat?", "1"))
    heldout = entry(tmp_path, "heldout.jsonl", (SUM, "43"))
    run_dir = curate(tmp_path, first, {**second, "heldout_path": heldout["path"]})
    (record,) = pl.read_parquet(run_dir / "dedup" / "ledger.parquet").filter(action="drop").to_dicts()
    assert (record["source"], record["reason"]) == ("a.jsonl", "leaked_heldout")
    assert "priority" not in json.loads(record["evidence"])
    assert drops(run_dir, "settle") == []


def test_a_source_of_which_nothing_is_left_is_named(tmp_path, capsys):
    rows = [(SUM, "42"), ("How many legs have nine healthy cats?", "36")]
    values = {"name": "few", "runs_dir": str(tmp_path / "runs"), "data": [entry(tmp_path, "a.jsonl", *rows)]}
    values["data"].append(entry(tmp_path, "b.jsonl", *rows, source="copied"))
    config = validate_config(values, "test")
    config.run_dir.mkdir(parents=True)
    terminal = Terminal(Console(width=200))
    execute(plan(config, "curate"), config.run_dir, stage_caller(config.run_dir, terminal))
    assert "nothing is left of source 'copied': 2 exact_duplicate (dedup)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"source": "a.jsonl"}, "data.0 and data.1 are both called 'a.jsonl'; set source: NAME in one"),
        ({"path": "a.jsonl", "source": "b"}, "('a.jsonl') and data.1 ('b') read the same rows in the same way"),
        ({"path": "none.jsonl"}, "Source 'none.jsonl' (data.1): "),
        ({"path": "none.csv"}, "Source 'none.csv': "),
        ({"verifier": "maths"}, "Source 'b.jsonl' (data.1): "),
        ({"preset": "mbpp"}, "Source 'b.jsonl' (data.1): "),
        ({"columns": {"prompt": "Frage"}, "verifier": "math"}, "has no column 'Frage' (columns.prompt)"),
        ({"quota": 1.5}, "data.1.quota: must be at most 1"),
        ({"quota": 0.5, "weight": 2}, "data.1 ('b.jsonl') has both a quota and a weight"),
        ({"quotas": 0.5}, "data.1.quotas: unknown setting; did you mean quota?"),
        ({"type": "demo"}, "data.1.type: there is no 'demo'. There are: file, hf."),
    ],
)
def test_a_source_that_is_wrong_is_named(tmp_path, monkeypatch, change, line):
    monkeypatch.chdir(tmp_path)
    first = {**entry(tmp_path, "a.jsonl", (SUM, "42")), "path": "a.jsonl"}
    second = {**entry(tmp_path, "b.jsonl", ("How many legs have nine healthy cats?", "36")), "path": "b.jsonl"}
    (tmp_path / "none.jsonl").touch()
    (tmp_path / "none.csv").write_text("question,answer\n")
    with pytest.raises(TruegoldError) as caught:
        curate(tmp_path, first, {**second, **change})
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("shares", "quotas", "line"),
    [
        ([{}, {}], {"source:c.jsonl": 0.2}, "names source:c.jsonl; the sources are source:a.jsonl, source:b.jsonl"),
        (
            [{"quota": 1.0}, {"weight": 2}],
            {},
            "the quotas of the sources leave nothing for 'b.jsonl', which has a weight",
        ),
    ],
)
def test_shares_that_mean_nothing_are_refused_before_anything_is_read(shares, quotas, line):
    sources = [{"path": name, **share} for name, share in zip(("a.jsonl", "b.jsonl"), shares, strict=True)]
    with pytest.raises(ConfigError) as caught:
        validate_config({"data": sources, "select": {"quotas": quotas}}, "test")
    assert line in str(caught.value)


def test_settings_of_one_source_can_be_overridden(tmp_path):
    write_sources(tmp_path)
    path = tmp_path / "run.yaml"
    path.write_text(json.dumps(settings(tmp_path)))
    assert load_config(path, ["data.2.limit=3"]).data[2].limit == 3
    with pytest.raises(ConfigError, match="data is a list"):
        load_config(path, ["data.limit=3"])
