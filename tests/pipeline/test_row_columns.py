"""The columns `verifier`, `verifier_args`, `other_golds` and `split`, which any file may have, at every door."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ingest_files import Notes, read_file, reject_of, row_of, write_lines

from truegold import pipeline
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.curation.gate import GateOptions, gate
from truegold.pipeline.curation.plan import resolve_sources
from truegold.pipeline.export import convert as conversion
from truegold.pipeline.export.formats import FORMATS
from truegold.pipeline.ingest.stage import ingest
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.verify.responses import verify_file
from truegold.verifiers import InputError

PI = {"prompt": "pi to 2 decimals?", "gold": "3.14"}


@pytest.mark.parametrize(
    ("columns", "verifier", "arguments"),
    [
        ({"verifier": "numeric", "verifier_args": {"rel_tol": 0.01}}, "numeric", {"rel_tol": 0.01}),
        ({"verifier": "numeric", "verifier_args": '{"rel_tol": 0.01}'}, "numeric", {"rel_tol": 0.01}),
        ({"verifier": " exact "}, "exact", {}),
        ({"verifier": None, "verifier_args": None}, "math", {}),
        ({"verifier": "", "verifier_args": ""}, "math", {}),
        ({"verifier": "math", "verifier_args": "null"}, "math", {}),
        ({"verifier_args": {"decimals": 2}}, "math", {"decimals": 2}),
        ({"verifier": "numeric", "verifier_args": {"rel_tol": 0.01, "unit": None}}, "numeric", {"rel_tol": 0.01}),
        ({"other_golds": ["3.1415", 3.142]}, "math", {"other_golds": ["3.1415", "3.142"]}),
        ({"other_golds": '["3.1415", 3.142]'}, "math", {"other_golds": ["3.1415", "3.142"]}),
        ({"other_golds": "22/7"}, "math", {"other_golds": ["22/7"]}),
        ({"other_golds": 3}, "math", {"other_golds": ["3"]}),
        ({"other_golds": [None, "", "3.14", "22/7", "22/7"]}, "math", {"other_golds": ["22/7"]}),
        ({"other_golds": []}, "math", {}),
        (
            {"other_golds": ["22/7"], "verifier_args": {"other_golds": [3, "22/7"]}},
            "math",
            {"other_golds": ["22/7", "3"]},
        ),
        ({"verifier": "regex", "verifier_args": {"pattern": "3.14+"}}, "regex", {"pattern": "3.14+"}),
    ],
)
def test_a_row_says_how_it_is_judged(tmp_path: Path, columns: dict[str, Any], verifier: str, arguments: Any) -> None:
    row = row_of(tmp_path, {**PI, **columns})
    assert (row["gold"], row["verifier"], json.loads(row["verifier_args"])) == ("3.14", verifier, arguments)
    assert json.loads(row["meta"]) == {}


@pytest.mark.parametrize(
    ("record", "config"),
    [
        ({"question": "q?", "answer": "3.14"}, {}),
        ({"problem": "q?", "answer": "3.14"}, {}),
        ({"problem": "q?", "solution": "\\boxed{3.14}"}, {}),
        ({"prompt": [{"role": "user", "content": "q?"}], "solution": "\\boxed{3.14}"}, {}),
        ({"prompt": "q?", "reward_model": {"ground_truth": "3.14"}}, {}),
        ({"input": "q?", "target": ["3.14"]}, {}),
        ({"Body": "q?", "Key": 3.14}, {"columns": {"prompt": "Body", "gold": "Key"}}),
        ({"question": "q?", "answer": "#### 3.14"}, {"preset": "gsm8k"}),
        ({"题目": "q?", "答案": "3.14"}, {}),
    ],
)
def test_with_and_without_presets_and_columns(tmp_path: Path, record: dict[str, Any], config: Any) -> None:
    own = {"verifier": "numeric", "verifier_args": {"rel_tol": 0.01}, "other_golds": ["3.1"], "split": "test"}
    row = row_of(tmp_path, {**record, **own}, **config)
    assert (row["gold"], row["verifier"], row["split"]) == ("3.14", "numeric", "heldout")
    assert json.loads(row["verifier_args"]) == {"rel_tol": 0.01, "other_golds": ["3.1"]}


@pytest.mark.parametrize(
    ("columns", "reason", "says"),
    [
        ({"verifier": "numerc"}, "unknown_verifier", "Did you mean 'numeric'?"),
        ({"verifier": "Alice"}, "unknown_verifier", "known are choice, code"),
        ({"verifier": 7}, "unknown_verifier", "holds int 7, not a name"),
        ({"verifier": True}, "unknown_verifier", "not a name"),
        ({"verifier": ["math"]}, "unknown_verifier", "not a name"),
        ({"verifier": {"name": "math"}}, "unknown_verifier", "not a name"),
        ({"verifier": "checks.py:paid"}, "unknown_verifier", "names code"),
        ({"verifier_args": [1]}, "invalid_verifier_args", "no JSON object"),
        ({"verifier_args": "decimals=2"}, "invalid_verifier_args", "no JSON object"),
        ({"verifier_args": 2}, "invalid_verifier_args", "no JSON object"),
        ({"verifier_args": {"decimls": 2}}, "invalid_verifier_args", "Did you mean 'decimals'?"),
        ({"verifier": "numeric", "verifier_args": {"rel_tol": -1}}, "invalid_verifier_args", "rel_tol must be"),
        ({"verifier": "length"}, "invalid_verifier_args", "length needs the option 'max'"),
        ({"verifier": "code", "verifier_args": {"reward": "some"}}, "invalid_verifier_args", "reward must be one of"),
        ({"other_golds": {"a": 1}}, "gold_not_text", "holds an object"),
        ({"other_golds": [["3", "4"], "5"]}, "gold_not_text", "lists within a list"),
        ({"verifier_args": {"other_golds": [{"a": 1}, "5"]}}, "gold_not_text", "holds objects"),
        ({"other_golds": [str(number) for number in range(64)]}, "too_many_golds", "65 accepted golds"),
    ],
)
def test_what_means_nothing_is_rejected_with_what_was_meant(
    tmp_path: Path, columns: dict[str, Any], reason: str, says: str
) -> None:
    reject = reject_of(tmp_path, {**PI, **columns})
    assert reject["reason"] == reason and says in reject["detail"]


def test_code_keeps_the_keys_of_its_tests(tmp_path: Path) -> None:
    arguments = {"tests": ["assert add(1, 2) == 3"], "note": "mine"}
    row = row_of(tmp_path, {"prompt": "Add.", "verifier": "code", "verifier_args": arguments})
    assert (row["gold"], row["domain"], json.loads(row["verifier_args"])) == (None, "code", arguments)


def test_rows_of_several_verifiers_stand_in_one_file(tmp_path: Path) -> None:
    program = {
        "prompt": "Add.",
        "gold": None,
        "verifier": "code",
        "verifier_args": {"tests": ["assert add(1, 2) == 3"]},
    }
    report, rows = read_file(write_lines(tmp_path, PI, program, {**PI, "gold": None}), tmp_path)
    assert [row["verifier"] for row in rows] == ["math", "code"]
    assert report.counts == {"reject:missing_gold": 1}
    config = FileSource(path="train.jsonl")
    assert resolve_sources(config, {"data": write_lines(tmp_path, PI, program)})
    assert not resolve_sources(config, {"data": write_lines(tmp_path, PI)})


@pytest.mark.parametrize(
    ("word", "split"),
    [
        *((word, "heldout") for word in ("test", "Test", "validation", "valid", "val", "dev", "eval", "heldout")),
        *((word, "heldout") for word in ("held_out", "held-out", "HELD OUT", "evaluation", " testing ", "测试集")),
        *((word, "heldout") for word in ("test_sft", "validation-matched", "test.clean")),
        ("train_prefs", "train"),
        *((word, "train") for word in ("train", "training", "Training", None, "", "  ", "训练")),
    ],
)
def test_a_row_says_its_split(tmp_path: Path, word: Any, split: str) -> None:
    row = row_of(tmp_path, {**PI, "split": word})
    assert (row["split"], json.loads(row["meta"])) == (split, {})


def test_words_that_are_no_split_stay_in_meta_and_are_said_once(tmp_path: Path) -> None:
    words = ["fold_1", 3, ["test"], {"a": 1}, False, "sft", "test"]
    notes = Notes()
    report, rows = read_file(write_lines(tmp_path, *({**PI, "split": word} for word in words)), tmp_path, notes)
    assert [row["split"] for row in rows] == ["train"] * 6 + ["heldout"]
    assert [json.loads(row["meta"]) for row in rows] == [*({"split": word} for word in words[:-1]), {}]
    assert report.counts == {"warn:unknown_split": 6}
    assert notes.notes == [
        "6 row(s) have an unknown split, the first 'fold_1' (number 1); it stays in their meta, and they are "
        "training rows."
    ]


def test_a_share_is_set_aside_of_training_rows_too(tmp_path: Path) -> None:
    records = [{**PI, "prompt": f"{number}+1?", "split": "train"} for number in range(40)]
    _, rows = read_file(write_lines(tmp_path, *records), tmp_path, heldout=0.5)
    assert 0 < sum(row["split"] == "heldout" for row in rows) < 40


def test_the_configuration_wins_and_a_bad_name_does_not_matter(tmp_path: Path) -> None:
    record = {**PI, "verifier": "Alice", "verifier_args": {"rel_tol": 0.1}}
    row = row_of(tmp_path, record, verifier="exact", verifier_args={"case_sensitive": True})
    assert row["verifier"] == "exact"
    assert json.loads(row["verifier_args"]) == {"rel_tol": 0.1, "case_sensitive": True}
    assert json.loads(row["meta"]) == {"verifier": "Alice"}


def test_another_column_may_name_the_verifier(tmp_path: Path) -> None:
    row = row_of(tmp_path, {**PI, "verifier": "Alice", "judge": "exact"}, columns={"verifier": "judge"})
    assert (row["verifier"], json.loads(row["meta"])) == ("exact", {"verifier": "Alice"})
    row = row_of(tmp_path, {**PI, "split": "numeric", "fold": "dev"}, columns={"verifier": "split", "split": "fold"})
    assert (row["verifier"], row["split"]) == ("numeric", "heldout")


def test_rows_may_name_code_where_somebody_says_so(tmp_path: Path) -> None:
    checks = tmp_path / "checks.py"
    checks.write_text("def paid(response, gold):\n    return 1.0\n")
    row = row_of(tmp_path, {**PI, "verifier": f"{checks}:paid"}, columns={"verifier": "verifier"})
    assert row["verifier"] == f"{checks}:paid"


def test_where_no_row_is_left_the_error_says_what_to_do(tmp_path: Path) -> None:
    path = write_lines(tmp_path, {**PI, "verifier": "Alice"}, {**PI, "verifier": "Bob"})
    with pytest.raises(InputError) as caught:
        read_file(path, tmp_path)
    assert "unknown_verifier: there is no verifier 'Alice'" in caught.value.message
    assert "--set data.columns.verifier=COLUMN" in str(caught.value.hint)
    assert "--set data.verifier=NAME" in str(caught.value.hint)


def test_parquet_with_structs_and_frames_say_the_same(tmp_path: Path) -> None:
    records = [
        {**PI, "verifier": "numeric", "verifier_args": {"rel_tol": 0.01, "pattern": None}, "other_golds": ["3.1"]},
        {**PI, "verifier": "regex", "verifier_args": {"pattern": "3.14+", "rel_tol": None}, "other_golds": []},
    ]
    frame = pl.DataFrame(records)
    frame.write_parquet(tmp_path / "train.parquet")
    _, rows = read_file(tmp_path / "train.parquet", tmp_path)
    expected = [("numeric", {"other_golds": ["3.1"], "rel_tol": 0.01}), ("regex", {"pattern": "3.14+"})]
    assert [(row["verifier"], json.loads(row["verifier_args"])) for row in rows] == expected
    for form in (records[:1], frame[:1], frame[:1].to_pandas()):
        (row,) = pipeline.curate(form).rows.to_dicts()
        assert (row["verifier"], json.loads(row["verifier_args"])) == expected[0]


def test_export_and_gate_read_them(tmp_path: Path) -> None:
    records = [{**PI, "verifier": "numeric", "verifier_args": {"rel_tol": 0.01}}, {**PI, "verifier": "nonexistent"}]
    path = write_lines(tmp_path, *records)
    source = FileSource(path=str(path))
    written = conversion.convert(path, FORMATS["hf"], tmp_path / "out", NullProgress(), source, None)
    assert (written.verifiers, written.rejected) == ({"numeric": 1}, {"unknown_verifier": 1})
    gated = gate(path, GateOptions(workers=1), NullProgress())
    assert [(entry.row, entry.message[:16]) for entry in gated.violations] == [(2, "unknown_verifier")]


def test_an_export_with_an_unknown_verifier_does_not_come_back(tmp_path: Path) -> None:
    path = write_lines(tmp_path, PI)
    conversion.convert(path, FORMATS["openrlhf"], tmp_path / "out", NullProgress(), FileSource(path=str(path)), None)
    record = json.loads((tmp_path / "out" / "train.jsonl").read_text())
    carried = json.loads(record["truegold"])
    for change in ({"verifier": "nonexistent"}, {"verifier": 7}, {"verifier_args": [1]}, {"gold": 7}, {"meta": [1]}):
        edited = {**record, "truegold": json.dumps({**carried, **change})}
        try:
            read_file(write_lines(tmp_path, edited), tmp_path)
        except InputError as error:
            assert any(word in error.message for word in ("unknown_verifier", "mixed_source", "invalid_verifier_args"))
        else:
            assert "meta" in change


def test_verify_reads_the_same_columns(tmp_path: Path) -> None:
    rows = [
        {"response": "\\boxed{3.15}", **PI, "verifier": "numeric", "verifier_args": {"rel_tol": 0.01}},
        {"response": "\\boxed{22/7}", **PI, "other_golds": ["22/7"]},
        {"response": "\\boxed{3}", "prompt": "q?", "gold": ["7", 3]},
        {"response": "\\boxed{3}", **PI, "verifier": "Alice"},
        {"response": "\\boxed{3}", **PI, "verifier_args": {"decimls": 2}},
    ]
    verify_file(write_lines(tmp_path, *rows), tmp_path / "out.parquet", "math", 1, NullProgress())
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table["score"].to_list() == [1.0, 1.0, 1.0, None, None]
    assert table["reason"].to_list()[3:] == ["rejected:unknown_verifier", "rejected:invalid_verifier_args"]


@pytest.mark.long_run
def test_twenty_thousand_rows_cost_seconds(tmp_path: Path) -> None:
    own = {"verifier": "numeric", "verifier_args": {"rel_tol": 0.01}}
    records = [{"prompt": f"{number}?", "gold": number, "other_golds": [number + 1], **own} for number in range(20_000)]
    path = write_lines(tmp_path, *records)
    started = time.process_time()
    ingest({"data": path}, FileSource(path=str(path)), tmp_path, NullProgress())
    assert time.process_time() - started < 20


def test_the_plan_knows_what_rows_say_themselves(tmp_path: Path) -> None:
    short = {"prompt": "Say it briefly.", "gold": "x", "verifier": "length", "verifier_args": {"max": 9}}
    data = {"data": write_lines(tmp_path, short)}
    resolve_sources(FileSource(path="train.jsonl", verifier="length", verifier_args={"unit": "chars"}), data)
    row = row_of(tmp_path, short, verifier_args={"unit": "chars"}, columns={"prompt": "prompt"})
    assert json.loads(row["verifier_args"]) == {"max": 9, "unit": "chars"}
    row = row_of(tmp_path, {**PI, "verifier": "choice"}, verifier_args={"decimals": 2})
    assert (row["verifier"], row["domain"]) == ("choice", "choice")
