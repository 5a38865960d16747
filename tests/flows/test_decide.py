"""A person's word in a terminal, and what the next curation, the ledger and `diff` make of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from truegold.flows.cli.app import main
from truegold.pipeline.review.app import GoldBody, ReviewSession
from truegold.pipeline.review.reviewed_run import ReviewedRun, ReviewQueue
from truegold.pipeline.tables.rows import row_id

STORY = "Ann has {} pens and buys {} more at the shop. How many pens has she now?"
PROBLEMS = [(STORY.format(n, n + 1), str(2 * n + 1)) for n in range(1, 9)]
YES_NO = ("Is the sum of two odd numbers even?", "yes")
RIGHT, WRONG = (
    ("A box holds 6 red balls and 9 blue ones. How many balls are in it?", "15"),
    (
        "A box holds 6 red balls and 9 blue ones. How many balls are in it?",
        "54",
    ),
)
PROBLEM_ID, YES_NO_ID = row_id(*PROBLEMS[0]), row_id(*YES_NO)
RIGHT_ID, WRONG_ID = row_id(*RIGHT), row_id(*WRONG)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration and data, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    records = [{"question": prompt, "answer": gold} for prompt, gold in (*PROBLEMS, YES_NO, RIGHT, WRONG)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "run.yaml").write_text(
        yaml.safe_dump({"name": "small", "data": {"path": "train.jsonl", "verifier": "math"}})
    )
    return tmp_path


@pytest.fixture
def truegold(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command and returns its exit code and what it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["truegold", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, "".join(capsys.readouterr())

    assert run("curate", "run.yaml", "--engine", "local")[0] == 0
    return run


def ledger(run_dir: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return reason and evidence of each row's last record at `settle`."""
    records = pl.read_parquet(run_dir / "settle" / "ledger.parquet").to_dicts()
    return {record["id"]: (record["reason"], json.loads(record["evidence"])) for record in records}


def test_a_word_is_acted_on_by_the_next_curation_and_named_by_diff(truegold, project):
    before, run_dir = project / "runs" / "before", project / "runs" / "small"
    shutil.copytree(run_dir, before)
    assert {row_id: reason for row_id, (reason, _) in ledger(run_dir).items()} == {
        **{YES_NO_ID: "held_for_review", RIGHT_ID: "held_for_review", WRONG_ID: "held_for_review"},
    }
    shutil.move(before, project / "before")
    code, told = truegold("decide", YES_NO_ID[:8], "keep", "--note", "two odd ones are even", "--reviewer", "ann")
    assert (code, "runs/small/decisions/ann.jsonl" in told) == (0, True)
    assert truegold("decide", "train.jsonl:11", "drop", "--reviewer", "bob")[0] == 0
    code, told = truegold("decide", PROBLEM_ID, "fix=4", "--reviewer", "ann")
    assert (code, "read as 4" in told) == (0, True)
    export = ("export", str(run_dir), "--format", "trl", "--out")
    assert "applies them." in truegold(*export, "early")[1]
    code, told = truegold("curate", "run.yaml", "--engine", "local")
    assert code == 0
    assert "ingest        from the cache" in told
    assert "not applied" not in truegold(*export, "late")[1]
    reasons = ledger(run_dir)
    assert reasons[YES_NO_ID] == (
        "reviewer_keep",
        {"flags": ["yes_no_answer"], "note": "two odd ones are even", "reviewers": ["ann"]},
    )
    assert reasons[PROBLEM_ID][0] == "reviewer_fix"
    assert reasons[RIGHT_ID] == ("conflict_settled", {"decided": "train.jsonl:11", "gold": None, "reviewers": ["bob"]})
    rows = {row["id"]: row["gold"] for row in pl.read_parquet(run_dir / "settle" / "rows.parquet").to_dicts()}
    assert (rows[PROBLEM_ID], rows[RIGHT_ID], WRONG_ID in rows) == ("4", "15", False)

    told = truegold("diff", str(project / "before"), str(run_dir))[1]
    assert "because decisions: none -> keep by ann" in told
    assert "because decisions: none -> drop by bob" in told
    assert "because decisions: none -> another row of its conflict decided by bob" in told
    assert "edits only in B: settle/reviewer_fix 1" in told
    assert "settle." not in told, "no setting is blamed"
    told = truegold("explain", YES_NO_ID, "--run", str(run_dir))[1]
    assert (
        'settle: keep reviewer_keep  {"flags":["yes_no_answer"],"note":"two odd ones are even","reviewers":["ann"]}'
        in told
    )


def test_a_word_about_what_has_changed_since_is_reported_and_not_applied(truegold, project):
    truegold("decide", PROBLEM_ID, "drop", "--reviewer", "ann")
    truegold("decide", YES_NO_ID, "keep", "--reviewer", "ann")
    records = [json.loads(line) for line in (project / "train.jsonl").read_text().splitlines()]
    records[8]["question"] += " Give 0 as the answer."
    (project / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    told = truegold("curate", "run.yaml", "--engine", "local", "--set", "clean.boilerplate=['^Ann has']")[1]
    assert "2 decisions were not applied: 1 about rows that are not in the data or were dropped before, 1 about" in told
    assert "(settle/stale_decisions.jsonl)" in told
    run_dir = project / "runs" / "small"
    stale = [json.loads(line) for line in (run_dir / "settle" / "stale_decisions.jsonl").read_text().splitlines()]
    assert {(line["id"], line["why"]) for line in stale} == {(YES_NO_ID, "gone"), (PROBLEM_ID, "changed")}
    assert ledger(run_dir)[PROBLEM_ID][0] == "stale_decision"


MANY = ("A shop sells 1,000 pens and then 80 more. How many pens does it sell?", "1,080")
SHARED = [
    {"id": PROBLEM_ID, "decision": "drop", "note": "no shop sells so few"},
    {"id": YES_NO_ID, "decision": "keep"},
    {"id": row_id(*MANY), "decision": "fix", "gold": "1081"},
    {"id": row_id("What is 1+1?", "2"), "decision": "drop"},
]


def share_decisions(path: Path) -> None:
    """Write a file of decisions as somebody else hands it on."""
    common = {"reviewer": "gallery", "at": "2026-11-21T09:00:00Z"}
    path.write_text("".join(json.dumps({**line, **common}) + "\n" for line in SHARED))


def write_layout(layout: str, folder: Path) -> Path:
    """Write the same problems as the hub has GSM8K, as a prepared Parquet file, or as verl has them."""
    problems = [*PROBLEMS, YES_NO, MANY]
    path = folder / f"data.{'parquet' if layout == 'prepared' else 'jsonl'}"
    if layout == "prepared":
        golds = [gold.replace(",", "") for _, gold in problems]
        table = {"answer": golds, "level": [1] * len(golds), "question": [prompt for prompt, _ in problems]}
        pl.DataFrame(table).write_parquet(path)
        return path
    hub = [{"question": prompt, "answer": f"Count them: {gold}.\n#### {gold}"} for prompt, gold in problems]
    verl = [
        {
            "data_source": "openai/gsm8k",
            "prompt": [{"role": "user", "content": prompt}],
            "reward_model": {"style": "rule", "ground_truth": gold.replace(",", "")},
        }
        for prompt, gold in problems
    ]
    records = hub if layout == "hub" else verl
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("layout", ["hub", "prepared", "verl"])
def test_a_file_of_decisions_applies_to_the_same_problems_in_any_layout(layout, truegold, project):
    data = write_layout(layout, project)
    share_decisions(project / "gsm8k.decisions.jsonl")
    code, told = truegold("curate", str(data), "--decisions", "gsm8k.decisions.jsonl", "--engine", "local")
    assert (code, "1 decisions were not applied: 1 about rows that are not in the data" in told) == (0, True), told
    run_dir = project / "runs" / "data"
    assert {name: reason for name, (reason, _) in ledger(run_dir).items()} == {
        **{PROBLEM_ID: "reviewer_drop", YES_NO_ID: "reviewer_keep", row_id(*MANY): "reviewer_fix"},
    }
    (line,) = (run_dir / "settle" / "stale_decisions.jsonl").read_text().splitlines()
    assert (json.loads(line)["id"], json.loads(line)["why"]) == (SHARED[-1]["id"], "gone")


def test_decisions_of_others_stand_beside_those_of_the_run(truegold, project):
    share_decisions(project / "shared.jsonl")
    again = ("curate", "run.yaml", "--engine", "local", "--decisions", "shared.jsonl")
    truegold(*again)
    code, told = truegold("decide", RIGHT_ID, "keep", "--reviewer", "ann")
    assert (code, "runs/small/decisions/ann.jsonl" in told) == (0, True)
    truegold("decide", YES_NO_ID, "drop", "--reviewer", "ann")
    truegold(*again)
    reasons = {name: reason for name, (reason, _) in ledger(project / "runs" / "small").items()}
    assert reasons == {
        **{PROBLEM_ID: "reviewer_drop", RIGHT_ID: "reviewer_keep", WRONG_ID: "conflict_overruled"},
        YES_NO_ID: "reviewers_disagree",
    }
    assert "gallery and ann" in truegold("review", "runs/small", "--status")[1].replace(
        "ann and gallery", "gallery and ann"
    )


def test_reviewers_who_contradict_each_other_send_the_row_back(truegold, project):
    truegold("decide", YES_NO_ID, "keep", "--reviewer", "ann")
    truegold("decide", YES_NO_ID, "drop", "--reviewer", "bob")
    told = truegold("curate", "run.yaml", "--engine", "local")[1]
    assert "1 drop:reviewers_disagree" in told
    code, told = truegold("decide", YES_NO_ID, "undo", "--reviewer", "bob")
    assert (code, "what stands now: nothing" in told) == (0, True)
    truegold("curate", "run.yaml", "--engine", "local")
    assert ledger(project / "runs" / "small")[YES_NO_ID][0] == "reviewer_keep"


def test_decisions_of_a_folder_under_version_control_are_read_from_there(truegold, project):
    (project / "words").mkdir()
    settings = yaml.safe_load((project / "run.yaml").read_text()) | {"decisions": "words"}
    (project / "run.yaml").write_text(yaml.safe_dump(settings))
    truegold("curate", "run.yaml", "--engine", "local")
    subprocess.run(["git", "init", "-q", "."], check=True)
    subprocess.run(["git", "config", "user.name", "Ann Lee"], check=True)
    code, told = truegold("decide", YES_NO_ID, "keep")
    assert (code, "words/ann-lee.jsonl" in told) == (0, True)
    truegold("curate", "run.yaml", "--engine", "local")
    assert ledger(project / "runs" / "small")[YES_NO_ID][1]["reviewers"] == ["Ann Lee"]


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ([YES_NO_ID, "maybe"], 2, "'maybe' is not a decision. Type keep, drop, fix=GOLD, unsure or undo."),
        ([YES_NO_ID, "fix"], 2, "A fix needs the right gold"),
        ([YES_NO_ID, "keep=3"], 2, "'keep=3' is not a decision"),
        ([YES_NO_ID, "fix="], 3, "a fix needs the right gold"),
        ([YES_NO_ID, "fix=1.234,5,6"], 3, "The gold '1.234,5,6' may be one number or a list."),
        ([YES_NO_ID, "undo", "--reviewer", "nobody"], 3, "nobody has no decision about"),
        (["123456", "keep"], 3, "No row of runs/small is '123456'"),
        (["zzz", "keep"], 3, "'zzz' matches no row"),
        ([YES_NO_ID, "keep", "--run", "nothing"], 3, "nothing is not a run of truegold"),
        ([YES_NO_ID, "keep", "--reviewer", "x" * 61], 3, "reviewer: must have at most 60 characters"),
        (
            [YES_NO_ID, "keep", "--decisions", "train.jsonl"],
            3,
            "train.jsonl is a file, and decisions are written to a folder",
        ),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(arguments, code, line, truegold, project):
    got, told = truegold("decide", *arguments)
    assert (got, line in told, "Traceback" in told) == (code, True, False), told
    assert not list(project.rglob("decisions/*.jsonl"))


@pytest.mark.parametrize("gold", ["see the picture", "siehe S. 3"])
def test_a_gold_that_no_answer_could_match_is_said_at_once_and_held(gold, truegold, project):
    told = truegold("decide", PROBLEM_ID, f"fix={gold}", "--reviewer", "ann")[1]
    assert "accepts no answer for this gold (gold_unmatchable: placeholder)" in " ".join(told.split())
    truegold("curate", "run.yaml", "--engine", "local")
    assert ledger(project / "runs" / "small")[PROBLEM_ID][0] == "fix_unpayable"


GERMAN = "Eine Druckerei stellt täglich {} Flyer her. Wie viele Flyer sind es in {} Tagen?"
COMMA_ROWS = [
    (GERMAN.format("1.250", 4), "5.200", "1.250 * 4 = 5.000. Die Antwort ist 5.000."),
    ("Lena kauft 4 Hefte zu je 1,15 Euro. Wie viel bezahlt sie?", "4,70", "4 * 1,15 = 4,60. Die Antwort ist 4,60."),
    (GERMAN.format("1.250,5", 2), "2.501", "1.250,5 * 2 = 2.502."),
    ("Ein Stab ist 9 m lang und hat 8 Teile. Wie lang ist ein Teil?", "1,115", "9 / 8 = 1,125. Die Antwort ist 1,125."),
    ("Mia kauft 3 Brezeln zu je 0,75 Euro. Wie viel bezahlt sie?", "2,25", "3 * 0,75 = 2,25."),
    ("Mia kauft 3 Brezeln zu je 0,75 Euro. Wie viel bezahlt sie?", "3,25", "3 * 0,75 = 2,25."),
]


def test_a_fix_is_read_as_the_source_writes_numbers_and_a_suggestion_as_it_is_shown(truegold, project):
    records = [{"question": prompt, "answer": gold, "solution": text} for prompt, gold, text in COMMA_ROWS]
    (project / "german.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    columns = {"prompt": "question", "gold": "answer", "solution": "solution"}
    data = {"path": "german.jsonl", "verifier": "math", "verifier_args": {"comma": "decimal"}, "columns": columns}
    (project / "german.yaml").write_text(yaml.safe_dump({"name": "german", "data": data}))
    truegold("curate", "german.yaml", "--engine", "local")
    flags = pl.read_parquet(project / "runs" / "german" / "flag" / "flags.parquet")
    suggested = dict(flags.filter(pl.col("suggestion").is_not_null()).select("source_row", "suggestion").iter_rows())
    assert suggested == {1: "5000", 2: "4.60", 4: "1.125"}
    wrong = flags.filter(pl.col("reason") == "arithmetic_error").select("source_row", "evidence").rows()
    assert [(row, json.loads(evidence)["wrong"]) for row, evidence in wrong] == [
        (3, ["1250.5 * 2 = 2502 (it is 2501)"])
    ]

    def fix(row: int, gold: str, reviewer: str = "ann") -> str:
        return truegold("decide", f"german.jsonl:{row}", f"fix={gold}", "--reviewer", reviewer, "--run", "runs/german")[
            1
        ]

    told = fix(1, "5.000")
    assert "fix 5000  by ann  in" in told and "5.000 is written 5000: its source has decimal commas" in told
    assert "read as 5000" in told
    assert "4,60 is written 4.60" in fix(2, "4,60")
    fix(2, "4.60", "bob")
    decisions = project / "runs" / "german" / "decisions"
    by_hand = json.loads((decisions / "bob.jsonl").read_text()) | {"gold": "4,60", "reviewer": "cat"}
    (decisions / "cat.jsonl").write_text(json.dumps(by_hand) + "\n")
    assert "its source" not in fix(4, suggested[4])
    page = ReviewSession(ReviewedRun.open(project / "runs" / "german"), "ann", ReviewQueue(), str)
    (third,) = flags.filter(pl.col("source_row") == 3)["id"].unique()
    assert page.read(GoldBody(id=third, gold="2.501"))["reading"] == "2501"
    fix(6, "2,25")
    truegold("curate", "german.yaml", "--engine", "local")
    rows = pl.read_parquet(project / "runs" / "german" / "settle" / "rows.parquet")
    golds = dict(rows.select("source_row", "gold").iter_rows())
    assert golds == {1: "5000", 2: "4.60", 3: "2501", 4: "1.125", 5: "2.25"}


def test_a_rejected_record_is_named_with_its_reason_by_the_run_that_rejected_it(truegold, project):
    (project / "more.jsonl").write_text('{"question": "What is 2+5?", "answer": "7", "nr": "a"}\n' * 2)
    with (project / "more.jsonl").open("a") as file:
        file.write('{"question": "What is 2+6?", "answer": "", "nr": "b"}\n')
    settings = {"name": "more", "data": {"path": "more.jsonl", "verifier": "math", "columns": {"id": "nr"}}}
    (project / "more.yaml").write_text(yaml.safe_dump(settings))
    truegold("curate", "more.yaml", "--engine", "local")
    truegold("curate", "run.yaml", "--engine", "local")
    for name in ("more.jsonl:3", "b"):
        code, told = truegold("decide", name, "keep")
        assert (code, f"{name} was rejected, so it is not a row: missing_gold: column 'answer' is empty." in told) == (
            3,
            True,
        )
        assert "Correct the record in the data, and curate again." in told
    assert "None of 2 runs has such a row. The newest one: " in truegold("decide", "c", "keep")[1]


def test_a_row_that_left_before_flags_comes_back_where_it_is_kept(truegold, project):
    with (project / "train.jsonl").open("a") as file:
        file.write(json.dumps({"question": "Hi", "answer": "3"}) + "\n")
    truegold("curate", "run.yaml", "--engine", "local")
    code, told = truegold("decide", "train.jsonl:12", "keep")
    assert (code, "It was dropped (clean: prompt_too_short), and comes back." in told) == (0, True)
    truegold("curate", "run.yaml", "--engine", "local")
    assert "keep reviewer_restored" in truegold("explain", "train.jsonl:12")[1]


def test_a_run_is_decided_about_after_a_curation_whose_decisions_are_invalid(truegold, project):
    (project / "bad.jsonl").write_text('{"id": "x", "decision": "kep", "reviewer": "ann", "at": "2026-01-01"}\n')
    code, told = truegold("curate", "run.yaml", "--engine", "local", "--decisions", "bad.jsonl")
    assert (code, "bad.jsonl, line 1: decision: must be 'keep'" in told) == (3, True), told
    assert "ingest" not in told, "nothing runs before the mistake is found"
    assert truegold("decide", YES_NO_ID, "keep", "--reviewer", "ann")[0] == 0


def test_a_fix_without_a_gold_names_its_row_and_a_folder_without_decisions_is_named(truegold, project):
    code, told = truegold("decide", "train.jsonl:2", "fix=", "--reviewer", "a/b")
    assert code == 3 and "(train.jsonl:2): a fix needs the right gold. Type it: fix=GOLD" in told
    told = truegold("decide", "train.jsonl:2", "fix=5", "--reviewer", "a/b")[1]
    assert "fix 5  by a/b  in runs/small/decisions/a-b.jsonl" in told
    (project / "words").mkdir()
    told = truegold("curate", "run.yaml", "--engine", "local", "--decisions", "words")[1]
    assert f"decisions: none in {project / 'words'} yet" in told


@pytest.mark.parametrize("command", [("decide", "9f0c21", "keep"), ("explain", "9f0c21")])
def test_before_any_run_one_is_told_to_curate(command, truegold, project):
    shutil.rmtree(project / "runs")
    assert "Curate first: truegold curate RUN.yaml" in truegold(*command)[1]


def test_a_run_without_a_model_says_what_it_left_out(truegold):
    told = truegold("run", "run.yaml", "--engine", "local")[1]
    assert "nothing was profiled, selected or trained without a model; --set model.path=MODEL names one" in told
    assert "nothing was profiled" not in truegold("curate", "run.yaml", "--engine", "local")[1]
