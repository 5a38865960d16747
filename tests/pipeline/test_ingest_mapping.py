"""Column paths, extracts, and what presets make of the shapes that datasets come in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from real_data import real_data
from tables import rows

from truegold.pipeline.config.sources import ColumnSpec, FileSource
from truegold.pipeline.ingest.stage import ingest
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.sources.columns import compile_column
from truegold.pipeline.tables.rows import Row, read_rows
from truegold.verifiers.columns import MISSING, last_boxed


def take(path: Path, out: Path, **config: Any) -> list[Row]:
    out.mkdir(exist_ok=True)
    ingest({"data": path}, FileSource(path=str(path), **config), out, NullProgress())
    return list(read_rows(out / "rows.parquet"))


def rows_of(folder: Path, *values: dict[str, Any], **config: Any) -> list[Row]:
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return take(path, folder / "out", **config)


@rows(
    "path, expected",
    [
        ("a", {"b": [10, {"c": 5}], "json": '{"d": "deep"}'}),
        ("a.b.1.c", 5),
        ("a.json.d", "deep"),
        ("a.b.7", MISSING),
        ("a.x", MISSING),
        ("x.y", MISSING),
        ("a.json.x", MISSING),
        ("nothing.x", None),
        ("dotted.name", "itself"),
    ],
)
def test_dots_reach_into_structs_json_texts_and_lists(path, expected):
    values = {
        "a": {"b": [10, {"c": 5}], "json": '{"d": "deep"}'},
        "nothing": None,
        "dotted.name": "itself",
        "dotted": {"name": "no"},
    }
    assert compile_column(ColumnSpec(column=path), "gold")(values) == expected


@rows(
    "extract, text, expected",
    [
        ("after ####", "a #### 1 #### 72 \n", "72"),
        ("after ####", "none", None),
        ("after ####", "#### \n", None),
        ("after The answer is", "The answer is 7.", "7."),
        (r"regex:Answer: (\S+)", "Answer: (C) because", "(C)"),
        (r"regex:Answer: (\S+)", "no", None),
        (r"regex:(a)|b", "b", None),
        ("boxed", r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
    ],
)
def test_extracts(extract, text, expected):
    assert compile_column(ColumnSpec(column="text", extract=extract), "gold").text({"text": text}) == expected


@rows(
    "text, expected",
    [
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{1} then \boxed{2", "1"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{ x \right.}", r"\left\{ x \right."),
        (r"\fbox{3}", "3"),
        (r"\boxed 7$.", "7"),
        (r"It is \boxed 7. Then", "7"),
        (r"so $x=\boxed9$", "9"),
        (r"$\boxed\frac12$", r"\frac12"),
        (r"$\boxed\frac{\sqrt{3}}{2}.$", r"\frac{\sqrt{3}}{2}"),
        (r"$\boxed 2 \text{ cm}$", r"2 \text{ cm}"),
        (r"\[\boxed 3\sqrt2\] or so", r"3\sqrt2"),
        (r"\boxed 50\% \\ &= 1", r"50\%"),
        (r"\boxedx", None),
        (r"\boxed{}", None),
        ("none", None),
        ("}}}{", None),
    ],
)
def test_the_last_balanced_box_is_taken(text, expected):
    assert last_boxed(text) == expected


def test_a_megabyte_of_open_boxes_takes_linear_time():
    assert last_boxed(r"\boxed{" * 150_000 + "1") is None


def test_gsm8k_with_the_answer_behind_the_marker_and_alone(tmp_path):
    behind, alone = {"answer": "work\n#### 72"}, {"solution": "work\n#### 72", "answer": "72"}
    for shape in (behind, alone):
        (row,) = rows_of(tmp_path, {"question": "How many clips?", **shape})
        assert (row["prompt"], row["gold"], row["solution"]) == ("How many clips?", "72", "work\n#### 72")


def test_columns_with_chinese_names_are_recognised(tmp_path):
    (row,) = rows_of(tmp_path, {"编号": "7", "题目": "3 加 4 等于多少？", "解析": "3+4=7", "答案": "7"})
    assert (row["prompt"], row["gold"], row["solution"]) == ("3 加 4 等于多少？", "7", "3+4=7")


def test_math_takes_the_answer_column_or_the_box(tmp_path):
    (row,) = rows_of(tmp_path, {"problem": "What is 6*2?", "solution": r"It is \boxed{12}."})
    assert (row["gold"], row["solution"]) == ("12", r"It is \boxed{12}.")
    (row,) = rows_of(tmp_path, {"problem": "What is 6*2?", "solution": "It is twelve.", "answer": "12"})
    assert (row["gold"], row["solution"]) == ("12", "It is twelve.")


def test_humaneval_becomes_code_with_its_whole_program_as_solution(tmp_path):
    (row,) = rows_of(
        tmp_path,
        {
            "task_id": "H/0",
            "prompt": "def f(x):\n",
            "canonical_solution": "    return x\n",
            "test": "def check(c): ...",
            "entry_point": "f",
        },
    )
    assert (row["domain"], row["verifier"], row["gold"]) == ("code", "code", None)
    assert row["solution"] == "def f(x):\n    return x\n"
    assert json.loads(row["verifier_args"]) == {
        "type": "asserts",
        "entry_point": "f",
        "code": "def check(c): ...",
        "stub": "def f(x):\n",
    }
    assert json.loads(row["meta"]) == {"source_id": "H/0"}


def test_mbpp_joins_its_assertions_and_shows_the_first(tmp_path):
    tests = ["assert f(1) == 2", "assert f(2) == 3"]
    (row,) = rows_of(
        tmp_path, {"text": "Add one.", "code": "def f(x): ...", "test_list": tests, "test_setup_code": "import math"}
    )
    assert json.loads(row["verifier_args"])["code"] == "import math\nassert f(1) == 2\nassert f(2) == 3"
    assert row["prompt"].startswith("Add one.")
    assert tests[0] in row["prompt"]
    assert tests[1] not in row["prompt"]
    assert row["solution"] == "def f(x): ..."


def test_verl_takes_the_last_user_message_and_keeps_the_rest(tmp_path):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 6*12?"}]
    (row,) = rows_of(
        tmp_path,
        {
            "data_source": "openai/gsm8k",
            "prompt": messages,
            "reward_model": {"style": "rule", "ground_truth": "72"},
        },
        last_turn_only=True,
    )
    assert (row["prompt"], row["gold"]) == ("What is 6*12?", "72")
    assert json.loads(row["meta"]) == {
        "data_source": "openai/gsm8k",
        "prompt": messages,
        "reward_model": {"style": "rule"},
    }


def test_trl_takes_texts_messages_and_content_parts(tmp_path):
    parts = [{"type": "text", "text": "What is"}, {"type": "text", "text": "6*12?"}]
    rows = rows_of(
        tmp_path,
        {"prompt": "What is 6*12?", "solution": r"It is \boxed{72}."},
        {"prompt": [{"role": "user", "content": "What is 6*12?"}], "solution": r"\boxed{72}"},
        {"prompt": [{"role": "user", "content": parts}], "solution": r"\boxed{72}"},
    )
    assert [row["prompt"] for row in rows] == ["What is 6*12?", "What is 6*12?", "What is\n6*12?"]
    assert {row["gold"] for row in rows} == {"72"}


def test_columns_override_a_preset_and_columns_alone_stand_for_themselves(tmp_path):
    shape = {"question": "What is 6*12?", "answer": "#### 71", "checked": 72}
    (row,) = rows_of(tmp_path, shape, preset="gsm8k", columns={"gold": "checked"})
    assert (row["gold"], row["solution"]) == ("72", "#### 71")
    (row,) = rows_of(tmp_path, shape, columns={"prompt": "question", "gold": "checked"})
    assert (row["gold"], row["solution"]) == ("72", None)
    (row,) = rows_of(tmp_path, {"q": "What is 6*12?", "answer": "#### 72"}, preset="gsm8k", columns={"prompt": "q"})
    assert (row["prompt"], row["gold"]) == ("What is 6*12?", "72")


def test_a_column_of_which_a_part_was_taken_stays_in_meta(tmp_path):
    gold = {"column": "output", "extract": "boxed"}
    (row,) = rows_of(tmp_path, {"q": "6*12?", "output": r"So \boxed{72}."}, columns={"prompt": "q", "gold": gold})
    assert json.loads(row["meta"]) == {"output": r"So \boxed{72}."}


def test_the_verifier_comes_from_the_config_then_the_row_then_the_preset(tmp_path):
    shape = {"question": "What is 6*12?", "answer": "72", "v": "numeric", "a": '{"rel_tol": 0.1, "unit": "m"}'}
    columns = {"verifier": "v", "verifier_args": "a"}
    (row,) = rows_of(tmp_path, shape, columns=columns)
    assert (row["verifier"], row["verifier_args"]) == ("numeric", '{"rel_tol":0.1,"unit":"m"}')
    (row,) = rows_of(tmp_path, shape, columns=columns, verifier="choice", verifier_args={"rel_tol": 2}, domain="choice")
    assert (row["verifier"], row["domain"]) == ("choice", "choice")
    assert row["verifier_args"] == '{"rel_tol":2,"unit":"m"}'
    (row,) = rows_of(tmp_path, {**shape, "v": None}, columns={"verifier": "v"})
    assert row["verifier"] == "math"


def test_tests_become_verifier_arguments_and_make_it_code(tmp_path):
    tests = [{"input": "1\n", "output": "2\n"}]
    rows = rows_of(
        tmp_path,
        {"q": "Add one.", "tests": tests},
        {"q": "Add one again.", "tests": json.dumps(tests)},
        {"q": "Untested.", "tests": []},
        columns={"prompt": "q", "tests": "tests"},
    )
    assert [json.loads(row["verifier_args"]) for row in rows] == [{"tests": tests}] * 2
    assert {row["domain"] for row in rows} == {"code"}


@pytest.mark.parametrize(
    ("name", "config", "domain", "gold"),
    [
        ("curation/gsm8k_train", {}, "math", "72"),
        ("curation/math500", {}, "math", r"\left( 3, \frac{\pi}{2} \right)"),
        ("curation/math_train_7474", {}, "math", "0"),
        ("curation/svamp", {"columns": {"prompt": "Body", "gold": "Answer"}}, "math", "51"),
        ("curation/gsm_hard", {}, "math", "-9867630"),
        ("code/humaneval", {}, "code", None),
        ("code/mbpp", {}, "code", None),
        ("code/humanevalplus", {}, "code", None),
        ("code/bigcodebench_hard", {}, "code", None),
        ("code/codecontests_stdio", {}, "code", None),
        ("code/rllm_stdio_nosolution", {}, "code", None),
        ("code/leetcode", {"preset": "leetcode", "columns": {"prompt": "task_id"}}, "code", None),
        ("curation/codeforces_test", {}, "code", None),
        ("curation/leetcode_train", {}, "code", None),
    ],
)
def test_real_files_fit_their_presets(tmp_path, name, config, domain, gold):
    rows = take(real_data(f"{name}.jsonl"), tmp_path, limit=50, **config)
    assert len(rows) == 50
    assert (rows[0]["domain"], rows[0]["gold"]) == (domain, gold)
