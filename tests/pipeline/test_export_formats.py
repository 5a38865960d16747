"""A set in the formats of trainers: what they read is what is written, and it comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

from truegold.flows.cli.app import app
from truegold.flows.execute import rejects_in_words
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.export.convert import Written, check, convert
from truegold.pipeline.export.formats import FORMATS
from truegold.pipeline.ingest import ingest
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageResult
from truegold.verifiers import InputError
from truegold.verifiers.adapters.open_instruct import TruegoldVerifier

FIXTURES = Path(__file__).parents[1] / "data" / "formats"
"""Files that the targets' own code has written: verl's example script for GSM8K, inspect's `Sample`, verifiers'
`TaskData`, and `datasets` with TRL's conversion of prompts."""

RECORDS: list[dict[str, Any]] = [
    {"question": "What is one half?", "golds": ["1/2", "0.5"], "license": "cc-by-4.0"},
    {"question": 'Wie viele Ecken hat ein Würfel — 立方体?\n\nSay {"x": 1}.', "golds": ["8"]},
    {"question": "What is the sum of [1, 2]?", "golds": ["[3]", "3"], "origin": "openai/gsm8k"},
]
PROGRAMS = [
    {
        "text": "Add two numbers.",
        "code": "def add(a, b):\n    return a + b",
        "test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"],
        "task_id": 7,
    },
    {
        "text": "Square.",
        "code": "def square(a):\n    return a * a",
        "test_list": ["assert square(3) == 9"],
        "task_id": 8,
    },
]
WITHOUT_COMPLETIONS = [name for name, form in FORMATS.items() if form.completions == "none"]
"""The formats that any set can be written in."""
OF_CONVERSATIONS = [name for name in WITHOUT_COMPLETIONS if name != "nemo-rl"]


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write records as JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def rows_of(path: Path, out: Path, **settings: Any) -> list[dict[str, Any]]:
    """Return the canonical rows that a file is read as."""
    out.mkdir()
    ingest({"data": path}, FileSource(path=str(path), **settings), out, NullProgress())
    return pl.read_parquet(out / "rows.parquet").to_dicts()


def export(data: Path, name: str, out: Path, system: str | None = None, **settings: Any) -> Written:
    """Write a file's rows in a format."""
    return convert(data, FORMATS[name], out, NullProgress(), FileSource(path=str(data), **settings), system)


@pytest.mark.parametrize("system", [None, "Answer in a box."])
@pytest.mark.parametrize("name", WITHOUT_COMPLETIONS)
def test_what_is_exported_fits_the_target_and_comes_back_as_it_was(
    name: str, system: str | None, tmp_path: Path
) -> None:
    if system is not None and name not in OF_CONVERSATIONS:
        with pytest.raises(InputError, match="system_prompt_file"):
            export(write_lines(tmp_path / "set.jsonl", RECORDS), name, tmp_path / "out", system)
        return
    for kind, records in (("answers", RECORDS), ("programs", PROGRAMS)):
        data = write_lines(tmp_path / f"{kind}.jsonl", records)
        before = rows_of(data, tmp_path / f"{kind}-before", heldout=0.4, license="mit")
        written = export(data, name, tmp_path / kind, system, heldout=0.4, license="mit")
        after = []
        for path, rows in written.splits.items():
            checked = check(path, FORMATS[name])
            assert checked.mistakes == () and checked.rows == rows
            # The system message is the export's, not the row's: back comes what the row says.
            after += rows_of(path, tmp_path / f"{kind}-after-{path.stem}", last_turn_only=system is not None)
        kept = ("id", "prompt", "gold", "verifier", "verifier_args", "solution", "domain", "split")
        assert sorted([{key: row[key] for key in kept} for row in after], key=str) == sorted(
            [{key: row[key] for key in kept} for row in before], key=str
        )


def test_licence_and_origin_of_each_row_travel(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "set.jsonl", RECORDS)
    first = export(data, "verl", tmp_path / "verl", license="mit", origin="ours")
    (path,) = first.splits
    # A reward that goes by the data source has to find the one that the row came with.
    assert pl.read_parquet(path)["data_source"].to_list() == ["ours", "ours", "openai/gsm8k"]
    second = export(path, "trl", tmp_path / "trl", license="gpl-3.0")
    table = pl.read_parquet(next(iter(second.splits)))
    assert table["license"].to_list() == ["cc-by-4.0", "mit", "mit"]
    assert table["origin"].to_list() == ["ours", "ours", "openai/gsm8k"]
    _, head, body = (tmp_path / "trl" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(head)["license"] == "other" and "| mit | 2 |" in body and "| cc-by-4.0 | 1 |" in body


def test_a_row_keeps_its_own_ability(tmp_path: Path) -> None:
    records: list[dict[str, object]] = [
        {"prompt": f"What is {n} + 1?", "reward_model": {"ground_truth": str(n + 1)}, "ability": ability}
        for n, ability in enumerate(["geometry", None])
    ]
    first = export(write_lines(tmp_path / "set.jsonl", records), "verl", tmp_path / "first")
    second = export(next(iter(first.splits)), "verl", tmp_path / "second")
    for written in (first, second):
        assert pl.read_parquet(next(iter(written.splits)))["ability"].to_list() == ["geometry", "math"]


def test_a_row_that_was_edited_since_is_another_row(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "set.jsonl", RECORDS)
    (path,) = export(data, "openrlhf", tmp_path / "out").splits
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    records[0]["input"][0]["content"] += " Say it as a fraction."
    before = rows_of(path, tmp_path / "before")
    after = rows_of(write_lines(tmp_path / "edited.jsonl", records), tmp_path / "after")
    assert before[0]["id"] != after[0]["id"] and [row["id"] for row in before[1:]] == [row["id"] for row in after[1:]]


@pytest.mark.parametrize(
    ("name", "record", "mistake"),
    [
        ("trl", {"prompt": 7, "solution": "", "answer": "", "id": "", "verifier": "", "verifier_args": ""}, "prompt"),
        ("verl", {"data_source": "x", "prompt": "a text", "ability": "math"}, "prompt"),
        ("openrlhf", {"input": "x", "label": 7, "datasource": "x"}, "label"),
        (
            "open-instruct",
            {"messages": [{"role": "user", "content": "x"}], "ground_truth": 1, "dataset": "m"},
            "ground",
        ),
        ("verifiers", {"id": "a", "prompt": "x", "gold": "y", "verifier": "math"}, "verifier_args"),
        ("inspect", {"input": "x", "target": ["a", 1], "id": "a", "metadata": {}}, "target"),
        ("nemo-gym", {"responses_create_params": {}, "question": "x", "expected_answer": "y"}, "input"),
    ],
)
def test_a_file_that_does_not_fit_is_told_by_row_and_field(
    name: str, record: dict[str, Any], mistake: str, tmp_path: Path
) -> None:
    checked = check(write_lines(tmp_path / "wrong.jsonl", [record]), FORMATS[name])
    assert checked.mistakes[0].startswith("row 1: ") and mistake in checked.mistakes[0]


def test_files_that_the_targets_code_wrote_are_read(tmp_path: Path) -> None:
    golds = {
        "verl_gsm8k.parquet": ["72", "10", "5", "42"],
        "trl_prompts.parquet": ["$6$", "$7$"],
        "verifiers_tasks.jsonl": ["6", "7"],
        "inspect_samples.jsonl": ["1/2", "6"],
    }
    for index, (file, expected) in enumerate(golds.items()):
        rows = rows_of(FIXTURES / file, tmp_path / str(index))
        assert [row["gold"] for row in rows] == expected, file
        assert all(row["prompt"] and not row["prompt"].startswith(("[", "{")) for row in rows)
    assert json.loads(rows[0]["verifier_args"]) == {"other_golds": ["0.5"]}


def test_the_checks_accept_what_the_targets_code_wrote() -> None:
    assert check(FIXTURES / "verl_gsm8k.parquet", FORMATS["verl"]).mistakes == ()


def test_a_run_is_exported_with_the_reasons_of_its_flags(curate: Any, tmp_path: Path) -> None:
    problems = [
        (f"Ann has {n} pens and buys {n + 1} more. How many pens has she now?", str(2 * n + 1)) for n in range(3, 9)
    ]
    run = curate(tmp_path, [*problems, ("Is 91 prime, or is it not?", "No")], flag={"advise_only": ["yes_no_answer"]})
    written = convert(run, FORMATS["hf"], tmp_path / "out", NullProgress(), FileSource(path="x"), None)
    rows = [row for path in written.splits for row in pl.read_parquet(path).to_dicts()]
    assert len(rows) == 7 and [row["flags"] for row in rows if row["flags"]] == [["yes_no_answer"]]
    assert "# The set it was made of" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for name in ("trl", "verl", "inspect"):
        # A set that is exported again, and once more, keeps them.
        convert(tmp_path / "out", FORMATS[name], tmp_path / name, NullProgress(), FileSource(path="x"), None)
        target = tmp_path / f"{name}-hf"
        last = convert(tmp_path / name, FORMATS["hf"], target, NullProgress(), FileSource(path="x"), None)
        rows = [row for path in last.splits for row in pl.read_parquet(path).to_dicts()]
        assert [row["flags"] for row in rows if row["flags"]] == [["yes_no_answer"]], name


def test_open_instruct_gets_one_verifier_a_row_since_it_adds_their_rewards_up(tmp_path: Path) -> None:
    (path,) = export(write_lines(tmp_path / "set.jsonl", RECORDS), "open-instruct", tmp_path / "out").splits
    judge = TruegoldVerifier()
    rows = pl.read_parquet(path).to_dicts()
    assert [row["dataset"] for row in rows] == [["truegold"], ["math"], ["truegold"]]
    assert rows[1]["ground_truth"] == ["8"]
    for row, right in ((rows[0], ("0.5", "1/2")), (rows[2], ("3", "[3]"))):
        (label,) = row["ground_truth"]
        assert [judge([], f"\\boxed{{{answer}}}", label).score for answer in (*right, "9")] == [1.0, 1.0, 0.0]


def test_open_instruct_is_handed_options_by_the_row_itself(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "set.jsonl", [{"question": "What is pi, as a decimal?", "answer": "3.14"}])
    settings = {"verifier": "numeric", "verifier_args": {"rel_tol": 0.01}}
    (path,) = export(data, "open-instruct", tmp_path / "out", **settings).splits
    (row,) = pl.read_parquet(path).to_dicts()
    assert row["dataset"] == ["truegold"]
    assert TruegoldVerifier()([], "\\boxed{3.15}", row["ground_truth"][0]).score == 1.0


def test_rows_for_several_verifiers_that_add_up_are_rejected(tmp_path: Path) -> None:
    record = {"messages": [{"role": "user", "content": "What is 3+4, in capitals?"}], "ground_truth": ["7", "{}"]}
    data = write_lines(
        tmp_path / "set.jsonl", [{**record, "dataset": ["math", "ifeval"]}, {**record, "dataset": ["math"] * 2}]
    )
    assert [row["gold"] for row in rows_of(data, tmp_path / "rows")] == ["7"]


def test_nothing_to_export_is_one_line(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "set.jsonl", [{"question": "x", "golds": [""]}, {"question": "", "golds": ["1"]}])
    with pytest.raises(InputError, match=r"none of its 2 rows \(1 missing_gold, 1 missing_prompt\) can be used"):
        export(data, "trl", tmp_path / "out")


OBJECTS = [{"question": "Who?", "answer": {"value": "me"}}] * 3
BAD_NAMES = [{"question": "Who?", "answer": "me", "verifier": "numerc"}]


@pytest.mark.parametrize(
    ("bad", "lines"),
    [
        ([], []),
        (
            OBJECTS,
            [
                "3 of 4 records rejected: 3 gold_not_text",
                "  set.jsonl:2: gold_not_text: column 'answer' holds an object, not an answer; name a part of it: "
                "answer.value",
            ],
        ),
        (
            [*BAD_NAMES, *OBJECTS],
            [
                "4 of 5 records rejected: 3 gold_not_text, 1 unknown_verifier",
                "  set.jsonl:2: unknown_verifier: there is no verifier 'numerc'; known are",
                "  set.jsonl:3: gold_not_text: column 'answer' holds an object",
            ],
        ),
    ],
)
def test_the_command_says_of_rejects_where_and_what_to_do(tmp_path: Path, bad: list[Any], lines: list[str]) -> None:
    data = write_lines(tmp_path / "set.jsonl", [{"question": "1+1?", "answer": "2"}, *bad])
    outcome = CliRunner().invoke(app, ["export", str(data), "--format", "hf", "--out", str(tmp_path / "out")])
    assert outcome.exit_code == 0
    about = outcome.stdout.splitlines()[1:]
    assert len(about) == len(lines) and all(map(str.startswith, about, lines))


def test_a_run_says_it_too_and_names_the_file_of_all_rejects(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "set.jsonl", [{"question": "1+1?", "answer": "2"}, *OBJECTS])
    path = tmp_path / "ingest"
    path.mkdir()
    report = ingest({"data": data}, FileSource(path=str(data)), path, NullProgress())
    lines = rejects_in_words(StageResult("ingest", path, "key", report, 0.0, cached=False))
    assert lines[0] == "3 of 4 records rejected: 3 gold_not_text" and len(lines) == 3
    assert lines[-1] == f"  all of them: {path / 'rejects.jsonl'}"


TURN = {"role": "user", "content": "1+1?"}
GENUINE: list[tuple[str, dict[str, Any]]] = [
    ("trl", {"prompt": [TURN]}),
    ("trl", {"prompt": [TURN], "solution": "$\\boxed{2}$"}),
    ("trl", {"prompt": "1+1?", "answer": "2"}),
    ("trl-sft", {"prompt": "1+1?", "completion": "2"}),
    ("openrlhf", {"input": "1+1?", "label": "2"}),
    ("inspect", {"input": "1+1?", "target": "2"}),
    ("inspect", {"input": "1+1?", "target": "2", "id": 7}),
]


@pytest.mark.parametrize(("name", "record"), GENUINE)
def test_a_trainers_own_set_needs_none_of_the_columns_that_truegold_adds(
    name: str, record: dict[str, Any], tmp_path: Path
) -> None:
    assert check(write_lines(tmp_path / "own.jsonl", [record]), FORMATS[name]).mistakes == ()


@pytest.mark.parametrize(
    ("verifier", "golds", "written"),
    [
        ("choice", ["12", "7", "1/2"], 0),
        ("choice", ["B", "12", "(C) blue", "blue"], 2),
        ("numeric", ["12", "B", "1/2"], 2),
        ("math", ["12", "x+1", "B"], 3),
        ("exact", ["12", "blue"], 2),
    ],
)
def test_golds_that_the_named_verifier_cannot_read_are_rejected(
    verifier: str, golds: list[str], written: int, tmp_path: Path
) -> None:
    records = [{"question": f"Which is number {index}?", "gold": gold} for index, gold in enumerate(golds)]
    data = write_lines(tmp_path / "set.jsonl", records)
    if not written:
        with pytest.raises(InputError, match=f"{len(golds)} gold_unparsed. The first: {verifier} cannot read the gold"):
            export(data, "hf", tmp_path / "out", verifier=verifier)
        return
    done = export(data, "hf", tmp_path / "out", verifier=verifier)
    assert sum(done.splits.values()) == written
    assert done.rejected["gold_unparsed"] == len(golds) - written


def test_the_first_of_each_reason_is_told_where_nothing_is_left(tmp_path: Path) -> None:
    records = [{"question": "1+1?", "answer": "2"}, {"question": "1+2?", "answer": None}]
    with pytest.raises(InputError, match=r"The first of each: missing_gold: column 'answer' .*; context_lost: NeMo-RL"):
        export(write_lines(tmp_path / "set.jsonl", records), "nemo-rl", tmp_path / "out", "Be brief.")


def test_a_folder_of_other_names_is_refused_with_the_pattern_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    for shard in range(2):
        pl.DataFrame(RECORDS[1:2]).write_parquet(tmp_path / "hub" / f"train-0000{shard}-of-00002.parquet")
    with pytest.raises(InputError, match=r"with a pattern: '.*hub/train\*.parquet'\.") as refused:
        export(tmp_path / "hub", "hf", tmp_path / "out")
    pattern = Path(str(refused.value).split("'")[1])
    assert sum(export(pattern, "hf", tmp_path / "out").splits.values()) == 2
