"""What a new user gets wrong is one line that says what to do; what is shown can be relied upon."""

from __future__ import annotations

import io
import json
import os
import random
import shlex
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import run_command
from rich.console import Console

from truegold.flows import console
from truegold.flows.cli.app import main
from truegold.flows.config import load_config, parse_settings, validate_config
from truegold.flows.console import Terminal, describe_seconds, with_options_of
from truegold.pipeline.select.candidates import remedy_for_none
from truegold.verifiers import ConfigError

QUESTION = "How many pens do Ann and Ben have, if Ann has 3 and Ben has 4?"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    record = {"question": QUESTION, "answer": "3+4\n#### 7", "response": "\\boxed{7}"}
    (tmp_path / "train.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "eval.jsonl").write_text(json.dumps({"question": f"{QUESTION} {QUESTION}"}) + "\n")
    (tmp_path / "run.yaml").write_text("data: {path: train.jsonl}\n")
    (tmp_path / "file").write_text("")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "gold.jsonl").write_text('{"id": 1, "question": "2+2?", "answer": "4"}\n')
    (tmp_path / "tested.jsonl").write_text('{"text": "Add.", "code": "", "test_list": ["assert add(1, 2) == 3"]}\n')
    (tmp_path / "blank.jsonl").write_text("\n\n")
    (tmp_path / "broken.jsonl").write_text('{"question": "Wh')
    (tmp_path / "zeros.jsonl").write_bytes(bytes(40))
    (tmp_path / "foreign.csv").write_text("Enunciado,Respuesta\nDos más dos?,4\n")
    (tmp_path / "dangling.jsonl").symlink_to("gone.jsonl")
    (tmp_path / "a-link-to-settings.yml").symlink_to("gone.yaml")
    (tmp_path / "data.xlsx").write_bytes(random.Random(1).randbytes(900))
    (tmp_path / "random.jsonl").write_bytes(random.Random(2).randbytes(900))
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "folder").mkdir()
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text(json.dumps(record) + "\n")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["truegold", *arguments])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ("curate run.yaml --engine local --set runs_dir=file", 2, "runs_dir: file is a file"),
        ("dedup --data train.jsonl --out file", 4, "name another folder"),
        ("flag --data train.jsonl --out file", 4, "name a folder"),
        ("decontaminate --data train.jsonl --against eval.jsonl --out file", 4, "name another folder"),
        ("verify --input train.jsonl --output ./train.jsonl", 2, "it would be overwritten"),
        ("gate train.jsonl --sarif train.jsonl", 2, "it would be overwritten"),
        ("export set/train.jsonl --format openrlhf --out set", 2, "set/train.jsonl is an input"),
        ("init train.jsonl missing/run.yaml", 4, "missing/run.yaml: No such file or directory"),
        ("verify --input train.jsonl --output verdicts.txt", 2, "End it in .parquet, .jsonl or .csv"),
        ("verify --input train.jsonl --output folder", 2, "folder is a folder"),
        ("verify --input empty.jsonl --output v.parquet", 3, "empty.jsonl is empty"),
        ("verify --input blank.jsonl --output v.parquet", 3, "blank.jsonl holds no rows."),
        ("dedup --data blank.jsonl --out out", 3, "blank.jsonl holds no rows."),
        ("dedup --data broken.jsonl --out out", 3, "none of its 1 rows can be used; the first is line 1: invalid_json"),
        ("verify --input broken.jsonl --output v.parquet", 3, "none of its 1 rows can be used; the first is line 1"),
        ("decontaminate --data train.jsonl --against broken.jsonl --out out", 3, "broken.jsonl: none of its 1 rows"),
        ("flag --data zeros.jsonl --out out", 3, "zeros.jsonl begins with 40 null bytes. Copy or download"),
        ("verify --input folder --output v.parquet", 3, "folder has no data file"),
        ("rescore folder --data foreign.csv --out out", 3, "name them: --prompt-column COLUMN --gold-column COLUMN"),
        ("look openai/gsm8k", 3, "is data: {type: hf, name: openai/gsm8k} in a run's file"),
        ("look dangling.jsonl", 3, "dangling.jsonl is a link to gone.jsonl, which does not exist"),
        ("profile run.yaml --engine local --set model.path=./train.jsonl", 4, "is a file, not a folder"),
        (
            "verify --input train.jsonl --output v.parquet --second-opinion judge.yml",
            2,
            "settings of a second opinion, such as verifier: math_verify",
        ),
        ("curate a-link-to-settings.yml", 2, "a-link-to-settings.yml: no such file. `truegold init DATA`"),
        (
            "dedup --data train.jsonl --data train.jsonl --out out",
            2,
            "--data is given twice, and takes one value. Several",
        ),
        (
            "verify --input train.jsonl --output a.csv --output b.csv",
            2,
            "--output is given twice, and takes one value.",
        ),
        ("run run.yaml --engine local --engine prefect", 2, "--engine is given twice"),
        ("init train.jsonl --model m", 2, "--model has no effect without --train"),
        ("run run.yaml --json", 2, "--json has no effect without --dry-run"),
        ("report runs/a --texts redacted", 2, "--texts has no effect without --share"),
        ("report runs/a --share a.html --out b.html", 2, "--share leaves out --out"),
        ("report runs/a --out page.pdf", 2, "the page is HTML, which that name does not say. Name it page.html"),
        ("review runs/a --seed 3", 2, "--seed has no effect without --random or --second"),
        ("review runs/a --status --random 3", 2, "--status leaves out --random"),
        ("train --doctor log.jsonl run.yaml", 2, "--doctor leaves out CONFIG"),
        ("push runs/a --card card.md --to me/model", 2, "--card leaves out --to"),
        ("export train.jsonl --format trl --check --limit 3", 2, "--limit has no effect without --out"),
        ("rescore runs/a --out out --decisions d", 2, "--decisions has no effect without --data"),
        ("run run.yaml --max-held 0.1 --set max_held=0.2", 2, "--max-held and --set max_held say the same thing"),
        (
            "testcases vet train.jsonl --out out --runs 2 --set runs=3",
            2,
            "--runs and --set vet_tests.runs say the same",
        ),
        (
            "flag --data train.jsonl --out out --limit 2 --set data.limit=3",
            2,
            "--limit and --set data.limit say the same",
        ),
        ("export run.yaml --format trl --out out", 3, "run.yaml is a configuration, not data"),
        ("dedup --data train.jsonl --out -", 2, "Several files are written: name a folder"),
        ("flag --data train.jsonl --out out --known train.jsonl", 2, "--known has no effect without --model"),
        ("verifiers audit math --data train.jsonl --output file", 4, "A file is in the way"),
        ("dedup train.jsonl --out out", 2, "The file is named by this"),
        ("look -", 3, "Data are not read from standard input. Write them to a file first"),
        ("explain runs/a 17", 2, "The run is named by its option"),
        ("decide keep 17", 2, "The row comes before the decision. truegold decide 17 keep"),
        ("decide 17 fix", 2, "A fix needs the right gold. truegold decide 17 fix=GOLD"),
        ("help", 2, "Type: truegold --help, or truegold COMMAND --help"),
        ("testcases train.jsonl", 2, "There are: truegold testcases vet"),
        ("part run.yaml", 3, "run.yaml is not a run of truegold"),
        ("push run.yaml", 3, "run.yaml is not a run of truegold"),
        (
            "serve-verifier --host nohost.invalid --allow 10.0.0.0/8",
            2,
            "nohost.invalid is not an address of this machine",
        ),
        ("look data.xlsx", 3, "Save its sheet as CSV UTF-8"),
        ("look cut.parquet", 3, "Copy or download the file again"),
        ("look random.jsonl", 3, "random.jsonl is not text, but a binary file"),
        ("gate train.jsonl --max falgs=0", 2, "there is no check or reason 'falgs'. Did you mean 'flags'?"),
        ("gate train.jsonl --max trunctated_text=0", 2, "Did you mean 'truncated_text'?"),
        ("curate run.yaml --set data.limitt=3", 2, "data.limitt: unknown setting; did you mean limit?"),
        ("curate run.yaml --set engine.type=server --set engine.urll=x", 2, "engine.urll: unknown setting"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: str, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments.split()) == code
    told = capsys.readouterr().err
    assert line in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"data": {"path": "x", "columns": {"gold": {"colum": "a"}}}}, "data.columns.gold.colum: unknown setting; did"),
        ({"data": {"type": "hf", "nam": "x"}}, "data.nam: unknown setting; did you mean name?"),
        ({"data": [{"path": "x", "limitt": 3}]}, "data.0.limitt: unknown setting; did you mean limit?"),
        ({"data": {"path": "x"}, "model": {"pth": "m"}}, "model.pth: unknown setting; did you mean path?"),
        (
            {"data": {"path": "x"}, "profile": {"engine": {"type": "server", "retry": 1}}},
            "profile.engine.retry: unknown",
        ),
        ({"data": {"path": "x"}, "train": {"reward": {"terms": [{"nme": "x"}]}}}, "train.reward.terms.0.nme: unknown"),
        (
            {"data": {"path": "x"}, "train": {"engine": {"type": "server", "url": 3}}},
            "train.engine.url: must be a text",
        ),
    ],
)
def test_a_setting_is_named_as_it_is_typed(settings: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_config(settings, "run.yaml")
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("=3", "--set =3: expected FIELD=VALUE. Such as --set data.limit=200."),
        ("data.limit", "--set data.limit: expected FIELD=VALUE."),
        ("data.limit=-3", "data.limit: must be at least 1 (given: -3)"),
        ("data.limit=many", "data.limit: must be a whole number (given: 'many')"),
        ("data.limit=2.5", "data.limit: must be a whole number (given: 2.5)"),
        ("select.max_rows=1,000", "select.max_rows: must be a whole number (given: '1,000')"),
        ("clean.languages=en", "clean.languages: must be a list, such as [a, b] (given: 'en')"),
        ("clean.languages=[english]", "clean.languages.0: must be a language's code, such as en (given: 'english')"),
        ("columns.prompt=question", "columns: unknown setting; did you mean data.columns?"),
        ("data.path=", "data.path: must be a text (given: nothing)"),
        ("data=train.jsonl", "settings of its own (given: 'train.jsonl'). Write data: {path: train.jsonl}"),
        (
            "data.columns=task",
            "data.columns: must be a section, with settings of its own (given: 'task'). Write columns: {prompt: task}",
        ),
        ("data=[a.csv]", "data.0: must be a section, with settings of its own (given: 'a.csv'). Write {path: a.csv}"),
        ("data.path=[a.csv, b.csv]", "a folder, or a pattern such as 'data/*.jsonl'; `data` may be a list of sources"),
        ("engine=vllm", "Write engine: {type: vllm}"),
        ("data.verifier_args=decimal", "(given: 'decimal'). Write verifier_args: {SETTING: VALUE}"),
        ("clean=all", "Write clean: {SETTING: VALUE}; known: boilerplate,"),
        ("data.heldout=1.5", "data.heldout: must be less than 1 (given: 1.5)"),
        ("data.heldout=10%", "data.heldout: must be a number (given: '10%')"),
        ("data.format=xml", "data.format: there is no 'xml'. There are: auto, jsonl, parquet, csv."),
        ("data.type=sql", "data.type: there is no 'sql'. There are: file, hf, demo."),
        ("select.target=balancd", "1 mistake\n  select.target: there is no 'balancd'; did you mean balanced?"),
        ("model.type=smollm3", "model.type: there is no 'smollm3'; did you mean smollm2?"),
        ("engine.type=vlm", "engine.type: there is no 'vlm'; did you mean vllm?"),
        ("name=a/b", "name: must be letters, digits and . _ - alone (given: 'a/b')"),
        ("push_to_hub.repo=me", "push_to_hub.repo: must have the form OWNER/NAME (given: 'me')"),
        ("dedup.reworded=maybe", "dedup.reworded: must be true or false (given: 'maybe')"),
        ("max_held=2", "max_held: must be at most 1 (given: 2)"),
        ("data={type: hf}", "data.name: is missing"),
        ("profile.deadline_s=0", "profile.deadline_s: must be more than 0 (given: 0)"),
    ],
)
def test_a_wrong_setting_is_told_in_plain_words(change: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(Path("run.yaml"), [change])
    told = str(caught.value)
    assert line in told
    assert not any(
        word in told for word in ("Input should", "Field required", "Value error", "valid dictionary", "tag")
    )


@pytest.mark.parametrize(
    ("change", "value"),
    [("1e3", 1000), ("1_000", 1000), ("null", None), ("", None), ('"10"', 10), ("0x10", 16)],
)
def test_a_value_of_set_is_understood_as_in_yaml(change: str, value: int | None) -> None:
    assert load_config(Path("run.yaml"), [f"select.max_rows={change}"]).select.max_rows == value


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("run --data train.jsonl", "The file is named alone: truegold run FILE"),
        ("curate run.yaml --max-held 2", "must be at most 1"),
        ("curate run.yaml --max-held ten", "must be a number"),
        ("flag --data train.jsonl --samples gold.jsonl --out f", "name it: --samples MODEL=gold.jsonl"),
        ("verifiers audit code --data tested.jsonl", "Its rows have tests, which `truegold testcases vet` checks."),
        ("export train.jsonl --format trl-dpo --out e", "this format needs the completions of a run"),
        ("export made/last --format trl --out e", "Runs in that folder: made/one."),
        ("decide train.jsonl:1 keep", "A run elsewhere: --run PATH"),
        ("curate run.yaml --set profile.temperature=0", "all samples are equal at temperature 0"),
        ("curate run.yaml --engine prefct", "'prefct' is not one of 'prefect', 'local'"),
        ("curate table.xlsx", "table.xlsx is named as a workbook. Save its sheet as CSV UTF-8."),
        ("curate rows.txt", "rows.txt: its name does not show its format. End it in .jsonl,"),
        ("curate packed.bin", "packed.bin is not text, but a binary file. Name a file of JSON Lines"),
        ("curate list.yaml", "list.yaml holds a list, not settings by name"),
        ("curate run.yaml --gold-column answer", "It is a setting here: --set data.columns.gold=VALUE"),
        ("flag --data train.jsonl --out f --prompt-column q", "is a setting here: --set data.columns.prompt=VALUE"),
        ("curate train.jsonl --lr 1", "--set train.optimizer.lr=VALUE"),
        ("train train.jsonl --num_train_epochs 3", "It is a setting here: --set train.steps=VALUE"),
        ("train train.jsonl --seed 3", "No such option: --seed. It is a setting here: --set train.seed=VALUE"),
        ("testcases vet train.jsonl --workers 2", "It is a setting here: --set vet_tests.workers=VALUE"),
        ("curate train.jsonl data.limit=5", "Settings are given in the file, or by --set: --set data.limit=5"),
        ("train train.jsonl trainer.total_epochs=5", "or by --set: --set train.steps=5"),
        ("--data train.jsonl look", "No such option: --data"),
        ("curate data.limit=5", "Settings are given in the file, or by --set: --set data.limit=5"),
        ("verify --data train.jsonl --out v", "No such option: --data. Here it is --input"),
        ("export --input train.jsonl", "The file is named alone: truegold export FILE"),
        ("report --run runs/a", "The run is named alone: truegold report RUN"),
        ("dedup --data train.jsonl --workers 3", "It is an option of truegold part, truegold verify, truegold rescore"),
        ("curate run.yaml --limit 3", "It is a setting here: --set data.limit=VALUE"),
        ("verify --input train.jsonl --output v.parquet --max-timeouts 5", "'--max-timeouts': must be at most 1"),
        ("verify --input train.jsonl --output v.parquet --max-timeouts -3", "'--max-timeouts': must be at least 0"),
        ("verify --input train.jsonl --output v.parquet --workers -1", "'--workers': must be at least 0"),
        ("rescore folder --out f --deadline-s 0", "'--deadline-s': must be at least 0.001"),
        ("gate train.jsonl --workers -1", "'--workers': must be at least 0"),
        ("curate train.jsnl", "train.jsnl does not exist. Did you mean 'train.jsonl'?"),
        ("curate folder", "folder is a directory without data files"),
        ("run run.yaml --set model.path=./none --set train.steps=1", "model.path: ./none does not exist"),
    ],
)
def test_a_wrong_command_line_is_told_in_plain_words(
    arguments: str, line: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "table.xlsx").write_bytes(b"PK\x03\x04")
    (project / "rows.txt").write_text('{"question": "a"}\n{"question": "b"}\n')
    (project / "packed.bin").write_bytes(bytes([0, 0, 0, 7, 1, 2, 3, 200]) * 200)
    (project / "list.yaml").write_text("- a\n")
    (project / "made" / "one").mkdir(parents=True)
    for name in ("config.resolved.json", "manifest.json"):
        (project / "made" / "one" / name).write_text("{}")
    assert run(monkeypatch, *arguments.split()) in (2, 3, 4)
    told = " ".join(capsys.readouterr().err.replace("\u2502", " ").split())
    assert line in told
    assert not any(word in told for word in ("Input should", "Value error", "Traceback"))


def test_a_folder_or_a_pattern_stands_for_a_configuration(project: Path) -> None:
    (project / "set" / "more.jsonl").write_text((project / "train.jsonl").read_text())
    assert [load_config(Path(data)).name for data in ("set", "set/*.jsonl")] == ["set", "run"]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv", ".tsv", ".PARQUET"])
def test_the_suffix_decides_what_verify_writes(suffix: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "verify", "--input", "train.jsonl", "--output", f"v{suffix}", "--workers", "1") == 0
    written = project / f"v{suffix}"
    readers = {
        ".parquet": pl.read_parquet,
        ".jsonl": pl.read_ndjson,
        ".csv": pl.read_csv,
        ".tsv": lambda path: pl.read_csv(path, separator="\t"),
    }
    table = readers[suffix.lower()](written)
    assert table.select("row", "score", "reason").rows() == [(1, 1.0, "match")]
    report = f"{written.name}.report.md"
    assert sorted(path.name for path in project.glob("v*")) == [written.name, report]


@pytest.mark.parametrize(
    ("name", "separator"), [("t.csv", ","), ("t.csv", ";"), ("t.csv", "|"), ("t.csv", "\t"), ("t.tsv", "\t")]
)
def test_whatever_separates_the_fields_is_seen(
    name: str, separator: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'Ann, who has 3; 4 or 5 | more, asks "how many?"'
    frame = pl.DataFrame({"question": [f"{text} {n}" for n in range(3)], "answer": ["7", "1,5", "9"]})
    frame.write_csv(project / name, separator=separator)
    assert run(monkeypatch, "curate", "run.yaml", "--engine", "local", "--set", f"data.path={name}") == 0
    rows = pl.read_parquet(project / "runs" / "run" / "ingest" / "rows.parquet")
    assert rows["gold"].to_list() == ["7", "1,5", "9"]
    assert rows["prompt"][0] == f"{text} 0"


def test_parts_of_structs_are_named_where_columns_are_listed(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"q": [{"text": QUESTION, "lang": "en"}], "a": ["7"]}).write_parquet(project / "nested.parquet")
    settings = ["--engine", "local", "--set", "data.path=nested.parquet"]
    assert run(monkeypatch, "curate", "run.yaml", *settings) == 3
    assert "Its columns: q.text, q.lang, a." in capsys.readouterr().err
    columns = ["--set", "data.verifier=math", "--set", "data.columns={prompt: q, gold: a}"]
    assert run(monkeypatch, "curate", "run.yaml", *settings, *columns) == 3
    assert "name a part of it: q.text, q.lang" in capsys.readouterr().err
    columns = ["--set", "data.verifier=math", "--set", "data.columns={prompt: q.text, gold: a}"]
    assert run(monkeypatch, "curate", "run.yaml", *settings, *columns) == 0


def test_what_would_help_follows_from_why_rows_went() -> None:
    cut = [29 / 32] * 4
    whole = [0.0] * 4
    for reason in ("too_hard", "too_few_passes"):
        assert "91% of their samples were cut: raise profile.max_tokens" in remedy_for_none(cut, {reason: 4}, 4)
        assert "profile.max_tokens" not in remedy_for_none(whole, {reason: 4}, 4)
    assert "harder source" in remedy_for_none(whole, {"too_easy": 3, "too_hard": 1}, 4)
    for reason in ("held_for_review", "unjudged", "outside_band", "zero_quota", "over_zero_share", "not_sampled"):
        assert "profile.samples" not in remedy_for_none(whole, {reason: 4}, 4), reason
    assert "data.heldout" in remedy_for_none([], {}, 4)
    assert "earlier stage" in remedy_for_none([], {}, 0)


def test_the_time_left_follows_the_recent_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    screen = Console(width=200, record=True, force_terminal=False, file=io.StringIO())
    with Terminal(screen).stage("profile") as terminal:
        terminal.start("sampling", 10_000)
        terminal.advance(4_000)  # From an earlier try.
        clock[0] = 3_600.0
        terminal.advance(1)  # The engine took an hour to load and to draw the first.
        for _ in range(60):
            clock[0] += 20.0
            terminal.advance(20)
    last = screen.export_text().strip().splitlines()[-1]
    assert "5,201/10,000, about 80 min left" in last


def test_durations_are_told_as_a_person_says_them() -> None:
    seconds = {0.2: "1 s", 99: "99 s", 130: "2 min", 5_400: "1 h 30 min", 7_200: "2 h", 303_135: "3 days 12 h"}
    assert {each: describe_seconds(each) for each in seconds} == seconds


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("train: {guards: {off: [slow]}}", {"train": {"guards": {"off": ["slow"]}}}),
        ("on: 1\nyes: 2\n2024: 3\nnull: 4", {"on": 1, "yes": 2, "2024": 3, "null": 4}),
        ("args: {rel_tol: 1e-3, n: 1E5, id: 1e, word: e3, yes: yes}", None),
        ("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}", {"base": {"x": 1, "y": 2}, "more": {"x": 1, "y": 3}}),
    ],
)
def test_settings_are_read_as_they_are_meant(text: str, values: Any) -> None:
    args = {"args": {"rel_tol": 0.001, "n": 100_000.0, "id": "1e", "word": "e3", "yes": True}}
    assert parse_settings(text) == (args if values is None else values)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("data: {path: x}\ndata: {path: y}", "'data' is set twice in one section"),
        ("data:\n  path: x\n  limit: 3\n  path: y", "line 4"),
        ("data:\n\tpath: x", "line 2"),
        ("data: [path: x", "not valid YAML"),
        ("data:\n\tpath: x\n", "line 2: this is not valid YAML"),
        ("data:\n\tpath: x\n", "replace the tab"),
        ("- data\n", "holds a list, not settings by name"),
        ("? [a, b]\n: 3", "a setting's name is a text"),
        ("# nothing", "holds no settings"),
    ],
)
def test_yaml_that_says_two_things_is_one_line(text: str, line: str, project: Path) -> None:
    (project / "bad.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(project / "bad.yaml")
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


READERS = {
    "report": "report runs/broken",
    "explain": "explain 000000 --run runs/broken",
    "diff": "diff runs/whole runs/broken",
    "review": "review runs/broken --status",
    "share": "report runs/broken --share out.html",
}


def write_half(run_dir: Path, name: str) -> None:
    """Leave the beginning of a file."""
    (run_dir / name).write_bytes((run_dir / name).read_bytes()[:20])


@pytest.mark.parametrize(
    ("name", "line", "readers"),
    [
        ("manifest.json", "manifest.json is damaged.", list(READERS)),
        ("flag/stage.json", "flag/stage.json is damaged.", ["explain", "diff", "review", "share"]),
        ("flag/flags.parquet", "flags.parquet has changed since it was written.", list(READERS)),
        ("config.resolved.json", "config.resolved.json is damaged.", ["report", "review"]),
    ],
)
def test_a_damaged_run_is_one_line_in_every_command_that_reads_it(
    name: str, line: str, readers: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "curate", "run.yaml", "--engine", "local", "--set", "name=whole") == 0
    shutil.copytree("runs/whole", "runs/broken")
    write_half(Path("runs/broken"), name)
    for command, words in READERS.items():
        capsys.readouterr()
        code = run(monkeypatch, *words.split())
        told = capsys.readouterr().err
        assert "Traceback" not in told
        if command in readers:
            assert (code, line in told) == (3, True), (command, told)


def test_a_table_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "curate", "run.yaml", "--engine", "local", "--set", "name=broken") == 0
    Path("runs/broken/ingest/rows.parquet").unlink()
    assert run(monkeypatch, "report", "runs/broken") == 3
    assert "ingest/rows.parquet is missing. Run the command that made the run again" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "ending"), [("run", "goes on from here"), ("dedup", "begins anew")])
def test_an_interrupted_command_says_whether_anything_is_kept(
    command: str, ending: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise SystemExit(130)

    monkeypatch.setattr("truegold.flows.cli.app.app", interrupt)
    assert run(monkeypatch, command) == 130
    assert f"interrupted; the same command {ending}." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"--gold-column"}, "--gold-column label"),
        ({"--set"}, "--set data.columns.gold=label"),
        ({"--set", "--gold-column"}, "--gold-column label"),
        (set(), "--set data.columns.gold=label, or --gold-column label"),
    ],
)
def test_advice_names_options_that_the_command_has(options: set[str], advice: str) -> None:
    assert with_options_of(options, "--set data.columns.gold=label, or --gold-column label") == advice


@pytest.mark.parametrize("command", ["curate foreign.csv --engine local", "flag --data foreign.csv --out f"])
def test_followed_advice_on_unknown_columns_works(
    command: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *command.split()) == 3
    advised = "--set data.columns.prompt=COLUMN --set data.columns.gold=COLUMN"
    told = capsys.readouterr().err
    assert advised in told and "-column" not in told
    followed = [advised.split()[1].replace("COLUMN", "Enunciado"), advised.split()[3].replace("COLUMN", "Respuesta")]
    assert run(monkeypatch, *command.split(), "--set", followed[0], "--set", followed[1]) == 0


def test_look_finds_the_golds_beside_a_named_prompt(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (f"{number} y {number} son?;{2 * number}" for number in range(20))
    (project / "es.csv").write_text("\n".join(["Enunciado;Cifra", *lines]))
    assert run(monkeypatch, "look", "es.csv", "--prompt-column", "Enunciado") == 0
    assert "prompt Enunciado; gold Cifra" in capsys.readouterr().out
    assert run(monkeypatch, "look", "es.csv", "--prompt-column", "Cifra", "--gold-column", "Cifra") == 3
    assert "'Cifra' is named for the prompt and for the gold" in capsys.readouterr().err


def test_exchanged_columns_are_told_as_such(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (f"How many are {number} and {number} apples?,{2 * number}" for number in range(20))
    (project / "x.csv").write_text("\n".join(["question,answer", *lines, "What does page 45 say?,see page 45"]))
    swapped = "data.columns={prompt: answer, gold: question}"
    assert run(monkeypatch, "curate", "x.csv", "--engine", "local", "--set", swapped) == 3
    told = capsys.readouterr().err
    assert "dropped were 20 prompt_too_short, 1 held_for_review" in told
    assert "are the columns of prompt and gold swapped? Exchange their names: --set data.columns.prompt=" in told


def test_a_file_that_may_not_be_read_has_a_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)  # The superuser may read everything.
    assert run(monkeypatch, "look", "train.jsonl") == 2
    assert "Allow it: chmod u+r FILE" in " ".join(capsys.readouterr().err.replace("\u2502", " ").split())


def test_look_at_a_file_without_a_row_proposes_no_next_step(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "few.jsonl").write_text('{"question": "2+2?", "answer": "4"}\n{"question": ["a"], "answer": {"x": 1}}\n')
    assert run(monkeypatch, "look", "few.jsonl") == 0
    shown = capsys.readouterr().out
    assert "dropped   1 prompt_too_short\nnothing was written; no row is left" in shown
    assert "golds " not in shown and "together" not in shown and "next:" not in shown


def test_advice_for_a_run_names_settings(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("topic,reply,answer\nTell me of 3 + 4.,,7\nTell me of 5 + 4.,,9\n")
    (tmp_path / "run.yaml").write_text("data: {path: x.csv, columns: {prompt: topic, gold: reply}}")
    done = run_command("curate", "run.yaml", "--engine", "local", cwd=tmp_path)
    assert done.returncode == 3 and "--set data.columns.gold" in done.stderr and "-column" not in done.stderr


@pytest.mark.parametrize("command", ["serve-verifier", "review run"])
def test_a_port_that_is_taken_is_told_before_anything_is_announced(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "review run":
        assert run(monkeypatch, "curate", "run.yaml", "--engine", "local", "--set", "runs_dir=.") == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        capsys.readouterr()
        assert run(monkeypatch, *command.split(), "--port", str(taken.getsockname()[1])) == 4
    told = capsys.readouterr()
    assert "is not available: Address already in use. Name another one: --port NUMBER" in told.err
    assert "serves verdicts" not in told.err + told.out


def test_a_page_is_written_where_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "curate", "run.yaml", "--engine", "local") == 0
    assert run(monkeypatch, "report", "runs/run", "--out", "page.html") == 0
    assert Path("page.html").read_bytes() == Path("runs/run/report/index.html").read_bytes()
    assert run(monkeypatch, "report", "runs/run", "--out", "absent/page.html") == 4
    assert "absent/page.html: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["look '{}'", "dedup --data train.jsonl --out '{}'", "rescore '{}' --out out"])
def test_a_path_that_is_an_empty_text_is_not_the_current_folder(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *shlex.split(command.format(""))) == 2
    assert "is an empty text. Is a variable of the shell not set?" in capsys.readouterr().err


def test_a_folder_of_runs_or_of_another_program_is_told_from_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "curate", "run.yaml", "--engine", "local") == 0
    Path("folder/manifest.json").write_text('{"name": "an extension"}')
    for command in ("look runs", "gate runs", "report runs", "export runs --format trl --out out"):
        capsys.readouterr()
        assert run(monkeypatch, *command.split()) == 3
        assert "runs/run." in capsys.readouterr().err
    for command in ("report folder", "clean folder"):
        assert run(monkeypatch, *command.split()) == 3
        assert "its manifest.json is of another program" in capsys.readouterr().err
