"""Questions of choice in a trainer's row: options in columns or in the prompt, and answers that name none for sure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import rows

from tests.pipeline.ingest_files import row_of
from truegold.verifiers.adapters import verl
from truegold.verifiers.adapters.row_truth import truth_columns, truth_of
from truegold.verifiers.adapters.scoring import Scorer
from truegold.verifiers.adapters.trl import TruegoldReward

OPTIONS = ["iron", "argon", "tin"]
ASKED = "Which is a noble gas?"
LISTED = f"{ASKED}\nA. iron\nB. argon\nC. tin"
READ: list[dict[str, Any]] = [
    {"choices": OPTIONS, "answer": "argon"},
    {"choices": OPTIONS, "answer": "B"},
    {"choices": np.array(OPTIONS, dtype=object), "answer": "(b)"},
    {"choices": ["argon", *OPTIONS[2:], "iron"], "answer": 0},
    {"choices": ["iron", "tin", "argon"], "answer": 3},
    {"choices": {"text": OPTIONS, "label": ["A", "B", "C"]}, "answerKey": "B"},
    {"choices": {"text": np.array(OPTIONS), "label": np.array(["A", "B", "C"])}, "answerKey": "B"},
    {"options": dict(zip("ABC", OPTIONS, strict=True)), "answer": "B"},
    {"options": [{"label": "A", "text": "iron"}, {"label": "B", "text": "argon"}], "answer": "B"},
    {"options": "A. iron\nB. argon\nC. tin", "answer": "B"},
    {"opa": "argon", "opb": "iron", "opc": "tin", "opd": "zinc", "cop": 0},
    {"A": "iron", "B": "argon", "C": "tin", "answer": "B"},
    {"option1": "iron", "option2": "argon", "answer": "2"},
    {"ending0": "argon", "ending1": "iron", "label": 0},
    {"选项": OPTIONS, "答案": "B"},
    {"question": LISTED, "answer": "B"},
    {"question": LISTED, "choices": OPTIONS, "answer": "B"},
    {"question": LISTED, "distractor1": "iron", "distractor2": "tin", "correct_answer": "argon"},
    {"choices": OPTIONS, "answer": "B", "verifier": "choice"},
]


@rows("columns", READ)
def test_the_letter_and_the_text_of_the_right_option_are_paid(columns: dict[str, Any]) -> None:
    truth = truth_of(columns, columns.get("question", ASKED))
    options = json.loads(truth.verifier_args)["options"]
    assert (truth.verifier, options[ord(str(truth.gold)) - ord("A")]) == ("choice", "argon")
    wrong = "A" if truth.gold != "A" else "B"
    answers = [f"\\boxed{{{answer}}}" for answer in (truth.gold, "argon", wrong, "iron")]
    verdicts = Scorer().judge([truth.question(answer) for answer in answers])
    assert [verdict.score for verdict in verdicts] == [1.0, 1.0, 0.0, 0.0]


UNREAD: list[tuple[dict[str, Any], str]] = [
    ({"choices": OPTIONS, "answer": 1}, "may count the options from 0 or from 1. Write letters"),
    ({"opa": "iron", "opb": "argon", "opc": "tin", "opd": "zinc", "cop": 2}, "from 0 or from 1"),
    ({"choices": ["2", "3", "5"], "answer": "2"}, "2 in 'answer' is an option, or the index of one"),
    ({"choices": {"text": OPTIONS, "label": ["1", "2", "3"]}, "answerKey": "2"}, "labelled 123; name them A, B"),
    ({"choices": {"text": OPTIONS, "label": ["F", "G", "H"]}, "answerKey": "G"}, "labelled FGH"),
    ({"choices": OPTIONS, "answer": "zinc"}, "says 'zinc', which matches none of the 3 options"),
    ({"choices": OPTIONS, "answer": "E"}, "none of the 3 options"),
    ({"choices": OPTIONS, "answer": None}, "none of the 3 options"),
    ({"question": LISTED, "choices": ["tin", "argon", "iron"], "answer": "A"}, "lists the options in another order"),
    ({"options": "iron argon", "answer": "B"}, "0 options in options"),
]


@rows("columns, says", UNREAD)
def test_an_answer_that_names_no_option_for_sure_has_no_score_and_says_why(columns: dict[str, Any], says: str) -> None:
    truth = truth_of(columns, columns.get("question", ASKED))
    assert says in str(truth.unread)
    verdicts = Scorer().judge([truth.question(f"\\boxed{{{answer}}}") for answer in ("B", "argon", "1")])
    assert [verdict.score for verdict in verdicts] == [None] * 3


@pytest.mark.parametrize(
    "columns",
    [
        {"options": [], "answer": "7"},
        {"options": None, "answer": "7"},
        {"options": "", "answer": "7"},
        {"answers": ["7"], "answer": "7"},
        {"a": 1, "b": 2, "c": 3, "answer": "7"},
        {"distractor1": "5", "distractor2": "6", "correct_answer": "7"},
        {"answer1": "7", "answer2": "8", "answer": "7"},
    ],
    ids=str,
)
def test_what_only_resembles_options_leaves_gold_to_math(columns: dict[str, Any]) -> None:
    truth = truth_of(columns, "What is 3 + 4?")
    assert (truth.gold, truth.verifier, truth.unread) == ("7", "math", None)


def test_several_right_options_are_needed_together() -> None:
    truth = truth_of({"choices": OPTIONS, "answer": ["A", "C"]})
    verdicts = Scorer().judge([truth.question(f"\\boxed{{{answer}}}") for answer in ("A, C", "A", "B, C")])
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0, 0.0]


def test_the_verifier_of_all_rows_reads_a_gold_beside_options() -> None:
    assert truth_of({"choices": OPTIONS, "answer": 1}, verifier="exact").unread is None
    (verdict,) = Scorer("exact").judge([truth_of({"choices": OPTIONS, "answer": 1}, verifier="exact").question("1")])
    assert verdict.score == 1.0


def test_trainers_hand_the_columns_of_options_over() -> None:
    names, has_truth = truth_columns(["choices", "answerKey", "id"])
    assert (sorted(names), has_truth) == (["answerKey", "choices"], True)
    assert truth_columns(["choices", "id"]) == (["choices"], False)
    reward = TruegoldReward()
    completions = ["\\boxed{B}", "\\boxed{argon}", "\\boxed{C}"]
    columns = {"choices": [{"text": OPTIONS, "label": ["A", "B", "C"]}] * 3, "answerKey": ["B"] * 3}
    assert reward(prompts=[ASKED] * 3, completions=completions, **columns) == [1.0, 1.0, 0.0]
    info = {"options": OPTIONS, "answer": "C", "question": ASKED}
    scored = [verl.compute_score("x", completion, "B", info)["score"] for completion in completions]
    assert scored == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("columns", [row for row in READ if "distractor1" not in row], ids=str)
def test_a_row_has_the_gold_that_ingest_gives_it(columns: dict[str, Any], tmp_path: Path) -> None:
    plain: dict[str, Any] = json.loads(json.dumps(columns, default=lambda array: array.tolist()))
    row = row_of(tmp_path, {"question": ASKED, **plain})
    truth = truth_of(columns, columns.get("question", ASKED))
    read = (truth.gold, truth.verifier, json.loads(truth.verifier_args))
    assert read == (row["gold"], row["verifier"], json.loads(row["verifier_args"]))
