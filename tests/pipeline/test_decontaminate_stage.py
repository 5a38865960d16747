"""Decontamination inside of a run: what goes, what stays, what is told of it, and what runs again."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from truegold.flows.config import validate_config
from truegold.flows.plan import plan
from truegold.pipeline.report.explain import explain, explain_lines
from truegold.verifiers import ConfigError, InputError, SetupError

ITEM = "Tom has 3 red cars and buys 4 more red cars. How many red cars has Tom now?"
PROBLEMS = [
    *[(f"Ann has {n} pens and buys {n + 1} more. How many pens has she now?", str(2 * n + 1)) for n in range(1, 9)],
    ("tom has 3 red cars and buys  4 more red cars. How many red cars has Tom now?", "7"),
    (f"Work through this carefully, step by step. {ITEM} Give the answer alone.", "7"),
    ("Tom, who owned 3 red cars, buys 4 more red cars. How many red cars has he now?", "7"),
    ("Tom has 5 red cars and buys 9 more red cars. How many red cars has Tom now?", "14"),
]


def write_evals(folder: Path, *prompts: str, name: str = "evals.jsonl") -> Path:
    path = folder / name
    items = [{"id": f"g{n}", "question": prompt, "answer": "7"} for n, prompt in enumerate(prompts, 1)]
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(curate, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run of the problems against one item, and the file of the item."""
    folder = tmp_path_factory.mktemp("decontaminate")
    evals = write_evals(folder, ITEM)
    settings = {"data": {"heldout": 0}, "decontaminate": {"against": [str(evals)]}}
    return curate(folder, PROBLEMS, until="report", **settings), evals


def test_rows_of_an_evaluation_set_go_for_the_reason_that_fits(run):
    run_dir, evals = run
    ledger = pl.read_parquet(run_dir / "decontaminate" / "ledger.parquet")
    assert dict(ledger.select("source_row", "reason").iter_rows()) == {
        9: "evaluation_copy",
        10: "evaluation_overlap",
        11: "evaluation_rewording",
    }
    evidence = json.loads(ledger["evidence"][0])
    assert (evidence["against"], evidence["against_id"], evidence["item"]) == (str(evals), "g1", ITEM)
    dropped = pl.read_parquet(run_dir / "decontaminate" / "dropped.parquet")
    assert dropped["source_row"].to_list() == [9, 10, 11]
    # The renumbered sibling is another problem.
    assert 12 in pl.read_parquet(run_dir / "settle" / "rows.parquet")["source_row"]


def test_report_card_and_story_tell_of_it(run):
    run_dir, evals = run
    summary = json.loads((run_dir / "report" / "summary.json").read_text())
    drops = {(drop["stage"], drop["reason"]): drop["rows"] for drop in summary["drops"]}
    assert drops[("decontaminate", "evaluation_copy")] == 1
    page = (run_dir / "report" / "index.html").read_text(encoding="utf-8")
    assert "evaluation_overlap" in page
    card = (run_dir / "export" / "README.md").read_text(encoding="utf-8")
    assert f"Compared with {evals} (1 items): " in card
    assert f"| {evals} | reworded | 1 | 0 | 0 |" in card
    story = "\n".join(explain_lines(explain(run_dir, "train.jsonl:9")))
    assert "dropped by decontaminate: evaluation_copy" in story
    assert ITEM in story


def test_a_changed_set_runs_it_and_what_follows_again_and_nothing_else(curate, tmp_path):
    evals = write_evals(tmp_path, ITEM)
    sections = {"data": {"heldout": 0}, "decontaminate": {"against": str(evals)}}
    run_dir = curate(tmp_path, PROBLEMS, **sections)
    before = keys(run_dir)
    write_evals(tmp_path, "How many legs has a spider that lost two of them?")
    curate(tmp_path, PROBLEMS, **sections)
    after = keys(run_dir)
    assert [name for name in ("ingest", "clean") if before[name] != after[name]] == []
    assert before["decontaminate"] != after["decontaminate"]
    assert before["dedup"] != after["dedup"]
    assert pl.read_parquet(run_dir / "decontaminate" / "matches.parquet").is_empty()
    assert "no row matches" in (run_dir / "export" / "README.md").read_text(encoding="utf-8")


def keys(run_dir: Path) -> dict[str, str]:
    return {entry["name"]: entry["key"] for entry in json.loads((run_dir / "manifest.json").read_text())["stages"]}


def test_heldout_rows_stay_and_other_kinds_can_be_let_stay(curate, tmp_path):
    evals = write_evals(tmp_path, ITEM, PROBLEMS[0][0])
    heldout = tmp_path / "heldout.jsonl"
    heldout.write_text(json.dumps({"question": PROBLEMS[0][0], "answer": "3"}) + "\n")
    data = {"heldout": 0, "heldout_path": str(heldout)}
    against = {"against": [str(evals)], "drop": ["exact"]}
    run_dir = curate(tmp_path, PROBLEMS[1:], data=data, decontaminate=against)
    actions = pl.read_parquet(run_dir / "decontaminate" / "ledger.parquet").select("source", "action", "reason").rows()
    assert ("heldout.jsonl", "keep", "evaluation_copy") in actions
    assert ("train.jsonl", "drop", "evaluation_copy") in actions
    assert ("train.jsonl", "keep", "evaluation_overlap") in actions
    card = json.loads((run_dir / "export" / "card.json").read_text())["decontamination"]
    by_kind = {match["kind"]: match for match in card["matches"]}
    assert (by_kind["exact"]["rows"], by_kind["exact"]["in_train"], by_kind["exact"]["in_heldout"]) == (2, 0, 1)
    assert by_kind["overlap"]["in_train"] == 1


def test_a_kind_that_drops_counts_beside_a_surer_one_that_does_not(curate, tmp_path):
    reworded = "Tom, who owned 3 red cars, buys 4 more red cars. How many red cars has he now?"
    evals = write_evals(tmp_path, ITEM, reworded)
    row = (f"Work through this carefully, step by step. {ITEM} Give the answer alone.", "7")
    against = {"against": [str(evals)], "drop": ["exact", "reworded"]}
    run_dir = curate(tmp_path, [*PROBLEMS[:8], row], data={"heldout": 0}, decontaminate=against)
    matches = pl.read_parquet(run_dir / "decontaminate" / "matches.parquet")
    assert dict(matches.select("against_id", "kind").iter_rows()) == {"g1": "overlap", "g2": "reworded"}
    (record,) = pl.read_parquet(run_dir / "decontaminate" / "ledger.parquet").to_dicts()
    assert (record["action"], record["reason"]) == ("drop", "evaluation_rewording")


def test_columns_and_shape_of_a_set_are_settable(curate, tmp_path):
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(f'Nr,Aufgabe\nx1,"{ITEM}"\n', encoding="utf-8")
    entry = {"set": str(renamed), "columns": {"prompt": "Aufgabe", "id": "Nr"}}
    run_dir = curate(tmp_path, PROBLEMS, data={"heldout": 0}, decontaminate={"against": [entry]})
    matches = pl.read_parquet(run_dir / "decontaminate" / "matches.parquet")
    assert set(matches["against_id"]) == {"x1"}
    assert matches["row"].to_list() == [9, 10, 11]


def test_no_rows_are_compared_without_a_crash(curate, tmp_path):
    with pytest.raises(InputError, match="No row is left; dropped were 1 prompt_too_short"):
        curate(tmp_path, [("2", "2")], decontaminate={"against": str(write_evals(tmp_path, ITEM))})
    (run_dir,) = (path.parents[1] for path in tmp_path.rglob("decontaminate/rows.parquet"))
    assert pl.read_parquet(run_dir / "decontaminate" / "rows.parquet").is_empty()


@pytest.mark.parametrize(
    ("against", "kind", "line"),
    [
        ("gone.jsonl", InputError, "There is no evaluation set or file gone.jsonl. Known by name: aime24"),
        ("math-500", InputError, "Did you mean 'math500'?"),
        ({"set": "evals.jsonl", "columns": {"prompt": "Body"}}, InputError, "columns: {prompt: COLUMN}}]"),
        ({"set": "evals.jsonl", "preset": "gsm9k"}, ConfigError, "There is no preset 'gsm9k'"),
        ({"set": "evals.jsonl", "preset": "mbpp"}, InputError, "evals.jsonl does not have the columns of preset mbpp"),
        (["evals.jsonl", "evals.jsonl"], ConfigError, "evals.jsonl is listed more than once"),
        ([], ConfigError, "at least 1 item"),
        ("empty.jsonl", InputError, "empty.jsonl is empty."),
        ("untold.jsonl", InputError, "untold.jsonl has no prompt column"),
        ("blank.jsonl", InputError, "blank.jsonl: no record has a prompt to compare with."),
    ],
)
def test_a_set_that_cannot_be_read_is_named_with_what_to_do(curate, tmp_path, monkeypatch, against, kind, line):
    monkeypatch.chdir(tmp_path)
    write_evals(tmp_path, ITEM)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "untold.jsonl").write_text('{"titel": "Tom has 3 red cars."}\n')
    (tmp_path / "blank.jsonl").write_text('{"question": "", "answer": "7"}\n')
    with pytest.raises(kind) as caught:
        curate(tmp_path, PROBLEMS, decontaminate={"against": against})
    assert line in str(caught.value)


def test_a_set_of_the_hub_that_cannot_be_reached_says_how_to_bring_it(monkeypatch, curate, tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the package datasets")

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(SetupError) as caught:
        curate(tmp_path, PROBLEMS, decontaminate={"against": ["gsm8k"]})
    assert "the hub cannot be reached" in str(caught.value)
    assert "load_dataset('openai/gsm8k', 'main', split='test').to_json('gsm8k.jsonl')" in str(caught.value)


def test_the_old_spelling_names_the_new_one():
    with pytest.raises(ConfigError, match=r"export\.matches: moved to decontaminate\.against"):
        validate_config({"data": {"path": "a.jsonl"}, "export": {"matches": "m.parquet"}}, "run.yaml")


def test_without_the_section_there_is_no_stage(tmp_path):
    data = tmp_path / "a.jsonl"
    data.write_text('{"question": "What is 1+1?", "answer": "2"}\n')
    stages = plan(validate_config({"data": {"path": str(data)}}, "run.yaml"))
    assert "decontaminate" not in [stage.name for stage in stages]
    assert next(stage for stage in stages if stage.name == "dedup").inputs["rows"].stage == "clean"
