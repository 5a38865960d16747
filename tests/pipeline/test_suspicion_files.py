"""Tests of suspicion from files: which samples are read, what the command writes, and reviewed data."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import run_command
from numbered_rows import make_row
from real_data import real_data

from truegold.pipeline.suspicion.answer_classes import Sample
from truegold.pipeline.suspicion.stage import EvidenceOfRows, SampleFile, sample_files, score_rows
from truegold.pipeline.tables.rows import write_rows
from truegold.verifiers import InputError

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("argument", "system", "step"),
    [("answers.jsonl", None, None), ("small=answers.jsonl", "small", None), ("policy@40=answers.jsonl", "policy", 40)],
)
def test_sample_files_are_named_by_system_and_step(files, monkeypatch, argument, system, step):
    monkeypatch.chdir(files)
    assert sample_files([argument]) == [SampleFile(Path("answers.jsonl"), system, step)]


def test_a_folder_of_samples_stands_for_its_files_and_an_empty_one_is_said(tmp_path):
    for name in ("b.parquet", "a.parquet", "notes.txt"):
        (tmp_path / name).touch()
    assert [file.path.name for file in sample_files([f"policy={tmp_path}"])] == ["a.parquet", "b.parquet"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no file of samples"):
        sample_files([str(tmp_path / "empty")])


def test_the_answers_to_each_row_are_counted_by_class(tmp_path):
    rows = [make_row(line, gold="1/2") for line in (1, 2)]
    write_rows(tmp_path / "rows.parquet", rows)
    told = [("a", "0.5"), ("b", "1/2"), ("b", "0.5"), ("c", "7"), ("c", "7.0"), ("a", "9")]
    samples = [Sample(rows[0]["id"], system, answer=answer) for system, answer in told]
    score_rows(tmp_path / "rows.parquet", samples, EvidenceOfRows(), 1, tmp_path, by_source_id=False)
    answers = pl.read_parquet(tmp_path / "answers.parquet").to_dicts()
    assert [(entry["kind"], entry["spellings"], entry["votes"], entry["systems"]) for entry in answers] == [
        ("label", ["0.5", "1/2"], 3, ["a", "b"]),
        ("alternative", ["7", "7.0"], 2, ["c"]),
        ("alternative", ["9"], 1, ["a"]),
    ]
    # The other row was not answered.
    assert {entry["source_row"] for entry in answers} == {rows[0]["source_row"]}


def flag(cwd, *arguments):
    """Run the command and return what became of it."""
    return run_command("flag", *arguments, cwd=cwd)


@pytest.fixture
def files(tmp_path):
    """Write data with one wrong label, and samples of ten systems."""
    rows = [{"id": n, "question": f"What is {n}+{n}?", "answer": str(2 * n + (n == 3))} for n in range(40)]
    answers = [{"id": n, "system": f"s{s}", "answer": str(2 * n)} for n in range(40) for s in range(10)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    return tmp_path


def test_the_command_finds_the_wrong_label_and_writes_both_tables(files):
    done = flag(files, "--data", "data.jsonl", "--samples", "samples.jsonl", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "400 samples of 10 systems for 40 items" in done.stdout
    table = pl.read_parquet(files / "out" / "suspicion.parquet")
    worst = table.sort("suspicion", descending=True).row(0, named=True)
    assert (worst["id"], worst["tier"], worst["suggestion"]) == ("3", "drop", "6")
    assert json.loads(worst["evidence"])["strong"]["alternative"] == 10
    assert table.filter(pl.col("tier") != "keep").height == 1
    assert "reason" in pl.read_parquet(files / "out" / "flags.parquet").columns


def test_the_command_takes_questions_with_their_options_beside_them(files):
    rows = [{"id": n, "question": f"Q{n}?", "choices": ["x", "y"], "answer": "AB"[n == 3]} for n in range(40)]
    votes = [{"id": n, "system": f"s{s}", "answer": "A"} for n in range(40) for s in range(10)]
    (files / "choice.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (files / "votes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in votes))
    done = flag(files, "--data", "choice.jsonl", "--samples", "votes.jsonl", "--out", "out")
    assert done.returncode == 0, done.stderr
    table = pl.read_parquet(files / "out" / "suspicion.parquet").sort("suspicion", descending=True)
    assert table["id"][0] == "3"
    assert table["tier"].to_list() == ["review"] + ["keep"] * 39


def test_the_command_takes_profiles_of_several_models_and_the_steps_of_a_training(files):
    folder = files / "completions"
    folder.mkdir()
    for step in (0, 40):
        rows = [{"id": n, "step": step, "extracted": str(2 * n), "score": float(n != 3)} for n in range(40)]
        pl.DataFrame(rows).with_columns(pl.col("id").cast(str)).write_parquet(folder / f"step-{step:06d}.parquet")
    votes = [{"id": n, "answer": str(2 * n)} for n in range(40)]
    (files / "large.jsonl").write_text("".join(json.dumps(row) + "\n" for row in votes))
    named = ("--samples", "policy=completions", "--samples", "large=large.jsonl", "--samples", "samples.jsonl")
    done = flag(files, "--data", "data.jsonl", *named, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "520 samples of 13 systems" in done.stdout
    table = pl.read_parquet(files / "out" / "suspicion.parquet").sort("suspicion", descending=True)
    assert (table["id"][0], table["tier"][0]) == ("3", "drop")
    assert json.loads(table["evidence"][0])["history"] == {"label": [0.0, 0.0], "alternative": [1.0, 1.0]}


def test_samples_without_an_answer_know_nothing_and_end_well(files):
    (files / "blank.jsonl").write_text('{"id": 1, "answer": " "}\n')
    done = flag(files, "--data", "data.jsonl", "--samples", "blank.jsonl", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "expected share" not in done.stdout


def test_the_command_without_samples_knows_nothing(files):
    done = flag(files, "--data", "data.jsonl", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "no samples were given" in done.stdout
    assert pl.read_parquet(files / "out" / "suspicion.parquet")["suspicion"].null_count() == 40


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"item_name": 1, "answer": "2"}\n', "needs the columns id"),
        ('{"id": 1}\n', "needs the columns answer or response"),
        ('{"id": "zz", "answer": "2"}\n', "none of its 1 samples names a row"),
    ],
)
def test_unusable_samples_end_with_one_line(files, content, message):
    (files / "bad.jsonl").write_text(content)
    done = flag(files, "--data", "data.jsonl", "--samples", "bad.jsonl", "--out", "out")
    assert done.returncode == 3
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_on_reviewed_gsm8k_the_half_not_tuned_on_keeps_its_promises():
    """Real data: precision of `drop`, and better ranking than the pass rate."""
    path = real_data("curation/gsm8k_platinum.jsonl")
    sys.path.insert(0, str(REPOSITORY / "benchmarks"))
    try:
        import curation_suspicion as benchmark
    finally:
        sys.path.remove(str(REPOSITORY / "benchmarks"))
    rows = benchmark.read(path)
    bad = np.array([row["status"] != "kept" for row in rows])
    odd = np.array([not benchmark.is_even(benchmark.GSM8K, row["id"]) for row in rows])
    measured = benchmark.measure(rows, sorted({name for row in rows for name in row["preds"]}), "math")
    ap = benchmark.average_precision
    assert ap(bad[odd], measured.suspicion[odd]) > ap(bad[odd], measured.one_pass[odd])
    assert measured.dropped[odd].sum() >= 5
    assert bad[measured.dropped & odd].mean() >= 0.95


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_on_reviewed_gsm8k_drops_stay_right_however_many_labels_are_replaced(share, monkeypatch):
    """Real data: the half that no constant was chosen on, with all systems."""
    folder = real_data("curation/gsm8k_platinum.jsonl").parent
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    import curation_label_noise as benchmark

    rows = benchmark.replace_labels(benchmark.load(folder)[benchmark.GSM8K], share, seed=0, closed=False)
    odd = np.array([not benchmark.is_even(benchmark.GSM8K, row["id"]) for row in rows])
    bad = np.array([row["bad"] for row in rows]) & odd
    systems = sorted({name for row in rows for name in row["preds"]})
    dropped = benchmark.measure(rows, systems, "math").dropped & odd
    assert (dropped & bad).sum() >= 0.25 * bad.sum()
    assert (dropped & ~bad).sum() <= max(1, dropped.sum() / 40)


def test_rows_of_two_sources_with_one_source_id_are_judged_apart(tmp_path):
    rows = [
        {**make_row(number, gold=gold), "source": source, "meta": '{"source_id": "1"}'}
        for number, (source, gold) in enumerate([("maths", "5"), ("code", "7")])
    ]
    write_rows(tmp_path / "rows.parquet", rows)
    samples = [Sample(row["id"], "policy", answer="5", score=score, judged=True) for row in rows for score in [1.0] * 4]
    samples = [replace(sample, score=0.0) if sample.id == rows[1]["id"] else sample for sample in samples]
    score_rows(tmp_path / "rows.parquet", samples, EvidenceOfRows(), 1, tmp_path, by_source_id=False)
    table = pl.read_parquet(tmp_path / "suspicion.parquet")
    assert table["id"].to_list() == [row["id"] for row in rows]
    assert table["suspicion"][0] < table["suspicion"][1]


def test_a_sample_that_names_an_id_of_several_rows_accuses_none(files):
    records = [{"id": line // 2, "question": f"What is {line} + {line}?", "answer": str(2 * line)} for line in range(6)]
    records.append({"id": 7, "question": "What is 40 + 2?", "answer": "41"})
    (files / "data.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    samples = [{"id": name, "system": f"s{turn}", "answer": "42"} for name in (0, 1, 2, 7) for turn in range(6)]
    (files / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    done = flag(files, "--data", "data.jsonl", "--samples", "samples.jsonl", "--out", "out")
    assert done.returncode == 0, done.stderr
    known = pl.read_parquet(files / "out" / "suspicion.parquet").drop_nulls("suspicion")
    assert known["id"].to_list() == ["7"]
    assert "3 ids are shared by rows of different content" in (files / "out" / "report.md").read_text()
    (files / "samples.jsonl").write_text(json.dumps(samples[0]) + "\n")
    done = flag(files, "--data", "data.jsonl", "--samples", "samples.jsonl", "--out", "out2")
    assert done.returncode == 3 and "ids that different rows of the data share" in done.stderr
