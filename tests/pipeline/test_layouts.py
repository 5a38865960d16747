"""Layouts of public sets: what a record becomes, and which kinds are refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ingest_files import read_file, rejects, row_of, write_lines

from truegold.verifiers import InputError
from truegold.verifiers import verify as judge

QUESTION = "Which is a noble gas?"
SHOWN = f"{QUESTION}\n\nA. iron\nB. argon"


@pytest.mark.parametrize(
    "answered",
    [
        {"choices": ["iron", "argon"], "answer": "B"},
        {"choices": ["iron", "argon"], "answer": "(b)"},
        {"choices": ["iron", "argon"], "answer": "argon"},
        {"choices": ["A. iron", "B. argon"], "answer": "B. argon"},
        {"choices": {"text": ["iron", "argon"], "label": ["A", "B"]}, "answerKey": "B"},
        {"choices": {"text": ["iron", "argon"], "label": ["1", "2"]}, "answerKey": "2"},
        {"choices": json.dumps({"text": ["iron", "argon"], "label": ["A", "B"]}), "answerKey": "B"},
        {"options": {"A": "iron", "B": "argon"}, "answer": "argon", "answer_idx": "B"},
        {"options": [{"key": "A", "text": "iron"}, {"key": "B", "text": "argon"}], "answer": "B"},
        {"options": "A. iron\nB. argon", "answer": "B"},
        {"options_text": "(A) iron\n(B) argon", "correct_option": "B"},
        {"option_a": "iron", "option_b": "argon", "label": "B"},
        {"opa": "iron", "opb": "argon", "cop": "B"},
    ],
)
def test_options_in_other_columns_become_part_of_the_prompt(tmp_path: Path, answered: dict[str, Any]) -> None:
    row = row_of(tmp_path, {"question": QUESTION, **answered})
    assert (row["prompt"], row["gold"], row["verifier"], row["domain"]) == (SHOWN, "B", "choice", "choice")
    assert json.loads(row["verifier_args"]) == {"options": ["iron", "argon"]}
    assert judge("So \\boxed{B}.", gold="B", verifier="choice", options=["iron", "argon"]).passed


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("answer", {"choices": ["iron", "argon"]}),
        ("cop", {"opa": "iron", "opb": "argon"}),
        ("label", {"choice1": "iron", "choice2": "argon"}),
        ("label", {"ending0": "iron", "ending1": "argon"}),
    ],
)
def test_indices_count_from_zero_where_one_of_them_is_zero(tmp_path: Path, name: str, columns: dict[str, Any]) -> None:
    records = [{"question": f"{QUESTION} {index}", **columns, name: index} for index in (0, 1)]
    _, rows = read_file(write_lines(tmp_path, *records), tmp_path)
    assert [row["gold"] for row in rows] == ["A", "B"]


def test_indices_that_may_count_from_either_are_refused(tmp_path: Path) -> None:
    records = [{"question": "1?", "choices": ["x", "y", "z", "w"], "answer": answer} for answer in (1, 2, 1)]
    with pytest.raises(InputError, match="from 0 or from 1"):
        read_file(write_lines(tmp_path, *records), tmp_path)


def test_indices_count_from_one_where_one_of_them_is_the_number_of_options(tmp_path: Path) -> None:
    records = [{"question": f"{number}?", "choices": ["x", "y", "z"], "answer": number} for number in (1, 2, 3)]
    _, rows = read_file(write_lines(tmp_path, *records), tmp_path)
    assert [row["gold"] for row in rows] == ["A", "B", "C"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"distractor1": "iron", "distractor2": "tin", "correct_answer": "argon"},
        {"Incorrect Answer 1": "iron", "Incorrect Answer 2": "tin", "Correct Answer": "argon"},
        {"incorrect_answers": ["iron", "tin"], "best_answer": "argon"},
    ],
)
def test_the_right_option_is_not_always_the_first(tmp_path: Path, wrong: dict[str, Any]) -> None:
    records = [{"question": f"Which, in row {number}?", **wrong} for number in range(30)]
    _, rows = read_file(write_lines(tmp_path, *records), tmp_path)
    assert {row["gold"] for row in rows} == {"A", "B", "C"}
    for row in rows:
        options = json.loads(row["verifier_args"])["options"]
        assert options["ABC".index(row["gold"] or "")] == "argon"
        assert all(f"{letter}. {option}" in row["prompt"] for letter, option in zip("ABC", options, strict=True))
    _, again = read_file(write_lines(tmp_path, *records), tmp_path)
    assert again == rows


def test_a_question_that_lists_its_options_itself_gets_them_once(tmp_path: Path) -> None:
    record = {"question": SHOWN, "choices": ["iron", "argon"], "answer": "B"}
    assert row_of(tmp_path, record)["prompt"] == SHOWN


@pytest.mark.parametrize("answer", ["C", "helium", 3, None, "", ["A", "helium"]])
def test_an_answer_that_is_no_option_is_a_reject(tmp_path: Path, answer: Any) -> None:
    good = {"question": "1?", "choices": ["a", "b"], "answer": "A"}
    _, rows = read_file(write_lines(tmp_path, good, {**good, "answer": answer}), tmp_path)
    assert len(rows) == 1


NUMBER = "What is the sum of the first four odd numbers?"


@pytest.mark.parametrize(
    "record",
    [
        {"problem": NUMBER, "expected_answer": "16"},
        {"Question": NUMBER, "Answer": 16, "Answer_type": "integer", "Picture": None},
        {"question": NUMBER, "gold_answer": "16"},
        {"question": NUMBER, "reference_answer": "16"},
        {"question": NUMBER, "golden_answers": ["16"]},
        {"problem_text": NUMBER, "answer_number": "16", "unit": ""},
        {"messages": [{"role": "user", "content": NUMBER}, {"role": "assistant", "content": "16"}], "answer": "16"},
        {"conversations": [{"from": "human", "value": NUMBER}, {"from": "gpt", "value": "?"}], "answer": "16"},
        {
            "conversations": [
                {"from": "human", "value": NUMBER},
                {"from": "assistant", "ground_truth": {"value": "16", "type": "number"}},
            ]
        },
        {"prompt": f"<|User|>{NUMBER}<|Assistant|>", "solutions": ["\\boxed{16}"]},
        {"prompt": f"<|im_start|>user\n{NUMBER}<|im_end|>\n<|im_start|>assistant\n", "answer": "16"},
        {"responses_create_params": {"input": [{"role": "user", "content": NUMBER}]}, "expected_answer": "16"},
        {"prompt": NUMBER, "verification_info": json.dumps({"ground_truth": "16"})},
        {"题干": NUMBER, "参考答案": "16"},
    ],
)
def test_answers_are_read_by_the_names_of_public_sets(tmp_path: Path, record: dict[str, Any]) -> None:
    row = row_of(tmp_path, record)
    assert (row["prompt"], row["gold"], row["verifier"], row["context"]) == (NUMBER, "16", "math", None)


@pytest.mark.parametrize(
    ("record", "prompt"),
    [
        ({"Body": "Tom has 3 apples.", "Question": "How many?", "Answer": 3}, "Tom has 3 apples. How many?"),
        ({"passage": "In 1842 it rained.", "question": "When?", "answer": "1842"}, "In 1842 it rained.\n\nWhen?"),
        ({"instruction": "Solve for x.", "input": "2x = 6", "answer": "3"}, "Solve for x.\n\n2x = 6"),
        ({"instruction": "Solve 2x = 6.", "input": "", "answer": "3"}, "Solve 2x = 6."),
    ],
)
def test_what_belongs_to_a_question_stands_with_it(tmp_path: Path, record: dict[str, Any], prompt: str) -> None:
    assert row_of(tmp_path, record)["prompt"] == prompt


ADD = "Write add(a, b): the sum."
ASSERTION = "assert add(3, 4) == 7"
BODY = "def add(a, b):\n    return a + b"
CASES = {"type": "stdio", "cases": [{"input": "3\n", "output": "6\n"}]}


@pytest.mark.parametrize(
    "record",
    [
        {"question": ADD, "test_cases": [ASSERTION]},
        {"input": ADD, "output": f"```python\n{BODY}\n```", "unit_tests": json.dumps([ASSERTION])},
        {"messages": [{"role": "user", "content": ADD}], "ground_truth": [ASSERTION], "dataset": ["code"]},
        {"question": ADD, "solution": BODY, "test": f"from solution import add\n\ndef test_it():\n    {ASSERTION}\n"},
        {"prompt": ADD, "verification_info": json.dumps({"test_cases": [ASSERTION]})},
    ],
)
def test_programs_are_known_by_their_assertions(tmp_path: Path, record: dict[str, Any]) -> None:
    row = row_of(tmp_path, record)
    assert (row["prompt"], row["gold"], row["verifier"]) == (ADD, None, "code")
    assert row["solution"] in (None, BODY)
    arguments = json.loads(row["verifier_args"])
    assert judge(f"```python\n{BODY}\n```", verifier="code", **arguments).passed
    assert judge("```python\ndef add(a, b):\n    return a - b\n```", verifier="code", **arguments).score == 0


@pytest.mark.parametrize(
    "record",
    [
        {"question": "Print the double.", "inputs": ["3\n"], "outputs": ["6\n"]},
        {"question": "Print the double.", "inputs": json.dumps(["3\n"]), "outputs": json.dumps(["6\n"])},
        {"description": "Print the double.", "official_tests": [{"input": "3\n", "output": "6\n"}]},
        {
            "responses_create_params": {"input": [{"role": "user", "content": "Print the double."}]},
            "verifier_metadata": {"unit_tests": {"inputs": ["3\n"], "outputs": ["6\n"], "fn_name": None}},
        },
    ],
)
def test_programs_are_known_by_their_inputs_and_outputs(tmp_path: Path, record: dict[str, Any]) -> None:
    row = row_of(tmp_path, record)
    assert (row["prompt"], json.loads(row["verifier_args"])) == ("Print the double.", CASES)


def test_formats_of_input_and_output_stand_below_a_statement(tmp_path: Path) -> None:
    record = {"description": "Double.", "input_format": "A number.", "output_format": "One.", "tests": CASES["cases"]}
    assert row_of(tmp_path, record)["prompt"] == "Double.\n\nInput\nA number.\n\nOutput\nOne."


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"problem_statement": "Fix it.", "FAIL_TO_PASS": ["t::a"], "patch": "diff"}, "changes to a repository"),
        ({"prompt": "No commas.", "instruction_id_list": ["a"]}, "instructions to follow"),
        ({"prompt": "No commas.", "ground_truth": json.dumps({"func_name": "f"})}, "instructions to follow"),
        ({"problem": "1 = 1", "formal_statement": "theorem x"}, "formal proofs"),
        ({"prompt": "Why?", "rubrics": ["clear"]}, "rubrics"),
    ],
)
def test_kinds_without_a_verifier_are_refused_by_name(tmp_path: Path, record: dict[str, Any], kind: str) -> None:
    with pytest.raises(InputError, match=kind):
        read_file(write_lines(tmp_path, record), tmp_path)


@pytest.mark.parametrize(
    "record",
    [
        {"question": "6*7?", "answer": "42", "wrong": 2},
        {"question": "6*7?", "answer": "42", "wrong_answer": "41"},
        {"question": "6*7?", "answer": "42", "incorrect_answers": ["41", "40"]},
        {"question": "6*7?", "a": 6, "b": 7, "c": 1, "answer": "42"},
        {"question": "6*7?", "A": "(0,0)", "B": "(0,1)", "answer": "42"},
        {"question": "6*7?", "sol1": "6*7 = 42", "sol2": "7*6 = 42", "answer": "42"},
        {"question": "6*7?", "answer_a": "41", "answer_b": "42", "answer": "42"},
        {"question": "6*7?", "Answer": "draft", "answer": "42"},
        {"question": "6*7?", "correct_answer": True, "answer": "42"},
        {"question": "6*7?", "gold": False, "answer": "42"},
        {"question": "6*7?", "target": "grade 5", "answer_number": "42"},
        {"question": "6*7?", "note": "Checked: the answer is 42.", "answer": "42"},
        {"question": "6*7?", "constraints": "license: CC-BY", "passage": "wiki_123", "answer": "42"},
        {"instruction": "6*7?", "input": "N/A", "answer": "42"},
        {"question": "6*7?", "tests": ["assertiveness", "patience"], "answer": "42"},
        {"question": "6*7?", "unit_tests": [{"input": "IQ", "output": "100"}], "answer": "42"},
        {"question": "6*7?", "inputs": ["a prompt"], "outputs": ["a reply"], "answer": "42"},
        {"question": "6*7?", "rubric": "clear", "chosen": "42", "rejected": "41", "scorer": "x", "answer": "42"},
        {"question": "6*7?", "test": True, "answer": "42"},
    ],
)
def test_columns_that_only_look_like_another_kind_change_nothing(tmp_path: Path, record: dict[str, Any]) -> None:
    row = row_of(tmp_path, record)
    assert (row["prompt"], row["gold"], row["verifier"], row["context"]) == ("6*7?", "42", "math", None)


@pytest.mark.parametrize("question", [QUESTION, "Read this.\n\nWhich is a noble gas?"])
def test_options_are_shown_below_messages_and_stories(tmp_path: Path, question: str) -> None:
    messages = [{"role": "system", "content": "Briefly."}, {"role": "user", "content": question}]
    row = row_of(tmp_path, {"messages": messages, "choices": ["iron", "argon"], "answer": "B"})
    assert row["prompt"] == f"{question}\n\nA. iron\nB. argon" and row["context"] is not None
    article = {"article": "Gases are in the air around us.", "question": question, "options": ["x", "y"], "answer": "B"}
    assert row_of(tmp_path, article)["prompt"].startswith("Gases are in the air around us.\n\n")


@pytest.mark.parametrize(
    "record",
    [
        {"choices": {"A": "iron", "B": None, "C": "argon", "D": "tin"}, "answer": "C"},
        {"choices": ["iron", None, "argon", "tin"], "answer": "C"},
        {"option_a": "iron", "option_b": "", "option_c": "argon", "option_d": "tin", "answer": "C"},
    ],
)
def test_an_empty_option_moves_no_letter(tmp_path: Path, record: dict[str, Any]) -> None:
    row = row_of(tmp_path, {"question": QUESTION, **record})
    assert (row["gold"], json.loads(row["verifier_args"])["options"]) == ("B", ["iron", "argon", "tin"])


def test_one_bad_answer_makes_no_indices_of_texts(tmp_path: Path) -> None:
    good = [{"question": f"{n}?", "choices": ["1", "2", "3", "4"], "answer": str(n)} for n in (2, 3)]
    bad = {"question": "9?", "choices": ["1", "2", "3", "4"], "answer": "5"}
    _, rows = read_file(write_lines(tmp_path, *good, bad), tmp_path)
    assert [row["gold"] for row in rows] == ["B", "C"]


def test_options_that_the_question_lists_in_another_order_are_a_reject(tmp_path: Path) -> None:
    listed = f"{QUESTION}\nA. argon\nB. iron\nC. tin"
    good = {"question": QUESTION, "choices": ["iron", "argon", "tin"], "answer": "argon"}
    _, rows = read_file(write_lines(tmp_path, good, {**good, "question": listed}), tmp_path)
    assert len(rows) == 1 and [reject["reason"] for reject in rejects(tmp_path)] == ["answer_no_option"]


def test_a_row_of_another_kind_behind_the_first_records_is_a_reject(tmp_path: Path) -> None:
    plain = [{"question": f"{n}+1?", "answer": str(n + 1)} for n in range(120)]
    other = {"question": QUESTION, "choices": ["iron", "argon"], "answer": "B"}
    _, rows = read_file(write_lines(tmp_path, *plain, other), tmp_path)
    assert len(rows) == 120
