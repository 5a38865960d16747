"""What a trainer's row is judged by: gold as it lies on the hub, tests, rows of other kinds, routes by data set."""

from __future__ import annotations

import json
import logging
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import rows

from tests.real_data import real_data
from truegold.verifiers.adapters import openrlhf, verl
from truegold.verifiers.adapters.open_instruct import TruegoldVerifier
from truegold.verifiers.adapters.row_truth import RowTruth, routes_in, truth_of, truth_of_label
from truegold.verifiers.adapters.scoring import Scorer
from truegold.verifiers.adapters.trl import TruegoldReward
from truegold.verifiers.row_kinds import foreign_kind
from truegold.verifiers.sandbox.errors import ConfigError

WORKING = "She sold 48/2 = 24 in May.\nTogether that is 48 + 24 = 72.\n#### 72"
BOXED = "Since both sides are even, we may halve them and find that the answer is $x = \\boxed{12}$, as claimed above."
PROSE = "Adding both sides of the equation we find that the answer must be twelve since nothing else is left over"
STDIO = {"inputs": ["3\n"], "outputs": ["6\n"]}
DOUBLES = "```python\nprint(int(input()) * 2)\n```"
ADD = "```python\ndef add(a, b):\n    return a + b\n```"

GOLDS: list[tuple[dict[str, Any], Any]] = [
    ({"answer": WORKING}, "72"),
    ({"solution": BOXED}, "12"),
    ({"answer": BOXED}, "12"),
    ({"solution": "34"}, "34"),
    ({"solution": "\\boxed{1}"}, "1"),
    ({"solutions": [BOXED]}, "12"),
    ({"answer": "7", "solution": BOXED}, "7"),
    ({"ground_truth": "7", "answer": WORKING}, "7"),
    ({"reward_model": {"ground_truth": "7", "style": "rule"}}, "7"),
    ({"reward_model": '{"ground_truth": "7"}'}, "7"),
    ({"Answer": "7"}, "7"),
    ({"Correct Answer": "7"}, "7"),
    ({"reference_answer": "7"}, "7"),
    ({"golden_answers": ["7", "seven"]}, ["7", "seven"]),
    ({"answer": "7", "golds": ["seven"]}, ["7", "seven"]),
    ({"golds": ["7"], "label": 3}, "7"),
    ({"verification_info": {"ground_truth": "7"}}, "7"),
    ({"conversations": [{"from": "human"}, {"ground_truth": {"value": "16"}}]}, "16"),
    ({"label": True, "target": "7"}, "7"),
    ({"answer": None, "solution": BOXED}, "12"),
    ({"label": "easy", "solution": BOXED}, "12"),
    ({"label": 3, "target": "en", "solution": BOXED}, "12"),
    ({"label": "7", "solution": "34"}, "7"),
    ({"answer": np.array([WORKING])}, "72"),
    ({"answer": "['7', '8']"}, ["7", "8"]),
    ({"answer": "1 \\boxed{2} or \\boxed{3}"}, "1 \\boxed{2} or \\boxed{3}"),
    ({"answer": ""}, ""),
    ({"answer": []}, None),
    ({"question": "?"}, None),
]


@rows("columns, gold", GOLDS)
def test_gold_is_taken_out_as_ingest_does_it(columns: dict[str, Any], gold: Any) -> None:
    truth = truth_of(columns)
    assert (truth.gold, truth.verifier, truth.unread) == (gold, "math", None)


CODE: list[dict[str, Any]] = [
    {"gold": json.dumps(STDIO)},
    {"reward_model": {"ground_truth": json.dumps(STDIO)}},
    {"inputs": ["3\n"], "outputs": ["6\n"]},
    {"tests": [{"input": "3\n", "output": "6\n"}]},
    {"verification_info": {"language": "python", "test_cases": [{"input": "3\n", "output": "6\n"}]}},
    {"ground_truth": [json.dumps(STDIO)]},
    {"tests": json.dumps(STDIO), "gold": None},
    {"tests": [{"input": "3\n", "output": "6\n"}], "solution": "print(int(input()) * 2)"},
    {"input_output": json.dumps(STDIO), "solutions": json.dumps(["print(1)"])},
    {"public_tests": {"input": ["3\n"], "output": ["6\n"]}, "private_tests": {"input": [], "output": []}},
    {"public_test_cases": json.dumps([{"input": "3\n", "output": "6\n", "testtype": "stdin"}])},
]
ASSERTIONS: list[dict[str, Any]] = [
    {"gold": "assert add(1, 2) == 3"},
    {"ground_truth": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"]},
    {"test_list": ["assert add(1, 2) == 3"]},
    {"test_list": np.array(["assert add(1, 2) == 3"], dtype=object)},
    {"test": "def check(candidate):\n    assert candidate(1, 2) == 3", "entry_point": "add"},
    {"test_cases": ["assert add(1, 2) == 3"], "answer": "see above"},
    {"test": "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3"},
]


@rows("columns", [*CODE, *ASSERTIONS])
def test_tests_are_judged_by_code(columns: dict[str, Any]) -> None:
    right = DOUBLES if columns in CODE else ADD
    truth = truth_of(columns)
    assert truth.verifier == "code"
    verdicts = Scorer().judge(
        [truth.question(right), truth.question(right.replace("* 2", "+ 1").replace("+ b", "- b"))]
    )
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0]


def test_methods_of_leetcode_get_the_names_that_they_take_for_granted() -> None:
    check = "def check(candidate):\n    assert candidate([1, 2]) == 3\n\ncheck(Solution().total)"
    response = (
        "```python\nclass Solution:\n    def total(self, values: List[int]) -> int:\n        return sum(values)\n```"
    )
    truth = truth_of({"tests": {"functional": check}, "solutions": "class Solution: ..."})
    (verdict,) = Scorer().judge([truth.question(response)])
    assert verdict.score == 1.0


def test_tests_that_cannot_be_read_say_so() -> None:
    packed = truth_of({"public_test_cases": "eJxrYJmaxQABPTxA", "private_test_cases": "x"})
    assert packed.verifier == "math" and "unreadable_tests" in str(packed.unread)
    (verdict,) = Scorer().judge([packed.question("x")])
    assert verdict.score is None


@pytest.mark.parametrize("program", ["print(12)", "def f(x):\n    return x", "import os\nprint(1)", "SELECT a FROM t"])
def test_a_program_without_tests_is_no_gold(program: str) -> None:
    for column in ("solution", "answer", "ground_truth"):
        assert "holds a program" in str(truth_of({column: program}).unread)


@pytest.mark.parametrize("gold", ["f(x) = 2x", "import", "class A", "x from 1 to 3", "print", "public", "def"])
def test_an_answer_that_begins_like_a_program_is_gold(gold: str) -> None:
    assert truth_of({"answer": gold}).unread is None


def test_what_looks_like_cases_beside_an_answer_is_none() -> None:
    assert truth_of({"answer": "7", "test_cases": [{"input": "3", "output": "6"}]}).gold == "7"


FOREIGN: list[dict[str, Any]] = [
    {"ground_truth": '{"func_name": "validate_title"}'},
    {"ground_truth": '[{"instruction_id": ["a:b"], "kwargs": [{}]}]'},
    {"ground_truth": {"target": ["Paris"]}},
    {"answer": [{"value": "7"}]},
    {"ground_truth": ['{"func_name": "validate_title"}']},
    {"instruction_id_list": ["a:b"], "kwargs": [{}]},
    {"chosen": "yes", "rejected": "no"},
    {"FAIL_TO_PASS": ["test_a"], "patch": "diff"},
    {"rubric": "5 points for ...", "question": "?"},
    {"formal_statement": "theorem a : 1 = 1", "answer": None},
]


@rows("columns", FOREIGN)
def test_a_row_of_another_kind_is_not_judged_and_says_what_it_is(columns: dict[str, Any]) -> None:
    truth = truth_of(columns)
    assert truth.is_foreign and "no verifier for" in str(truth.unread)
    (verdict,) = Scorer().judge([truth.question("\\boxed{7}")])
    assert verdict.score is None and verdict.reason == "gold_unparsed"


def test_columns_of_odd_kinds_are_no_crash() -> None:
    for odd in (float("nan"), None, "", " ", 3):
        assert truth_of({"gold": "7", "verifier": odd}).verifier == "math"
    for odd in (np.array(["a", "b"]), ["a"], "[]", 3):
        truth = truth_of({"gold": "7", "verifier": "code", "verifier_args": odd})
        (verdict,) = Scorer().judge([truth.question("7")])
        assert verdict.score is None and "verifier_args is not a JSON object" in verdict.evidence["error"]
    assert truth_of({"gold": "7", "verifier": "numeric", "verifier_args": {"rel_tol": 0.1}}).verifier_args[1:4] == '"re'
    row = json.dumps({"truegold": json.dumps({"gold": "7", "verifier": "math"})})
    assert verl.compute_score("x", "\\boxed{7}", "9", row)["score"] == 1.0
    assert verl.compute_score("x", "\\boxed{9}", "9", "no object")["score"] == 1.0


def test_a_worked_text_without_an_answer_is_no_gold() -> None:
    truth = truth_of({"solution": PROSE})
    assert not truth.is_foreign and "solution holds sentences without" in str(truth.unread)
    assert truth_of({"solution": PROSE}, verifier="exact").unread is None
    assert "holds sentences" in str(
        truth_of({"answer": "解:设甲数为三,乙数为四,两数相加得到总和七,因此最后答案就是七个苹果"}).unread
    )


SENTENCES = [
    "Because the sky is blue and it is warm today yes",
    "They play outside, since it is warm and dry today.",
    "the line through the two points A and B",
    "The answer is $12$ since it is even and positive.",
    "$x$ is any real number such that $x>3$",
    "the number is even",
]


@pytest.mark.parametrize("gold", SENTENCES)
def test_a_sentence_is_no_gold_of_math(gold: str) -> None:
    for columns in ({"answer": gold}, {"ground_truth": gold}, {"solution": gold}):
        truth = truth_of(columns)
        assert "holds sentences without" in str(truth.unread)
        (verdict,) = Scorer().judge([truth.question(gold)])
        assert verdict.score is None
        (verdict,) = Scorer("exact").judge([truth_of(columns, verifier="exact").question(gold)])
        assert verdict.score == 1.0


@rows(
    "gold, answer",
    [
        ("There are 12 apples in the bag.", "12"),
        ("The number of apples in the bag is 12.", "12"),
        ("Two hundred and forty-five thousand six hundred and twelve", "245612"),
        ("no real solutions exist", "\\text{no real solutions}"),
        ("the solutions are 3 and 4", "3, 4"),
        ("Tuesday", "Tuesday"),
        ("yes", "yes"),
        ("assert dominance", "assert dominance"),
    ],
)
def test_words_that_math_reads_as_a_value_stay_gold(gold: str, answer: str) -> None:
    truth = truth_of({"answer": gold})
    assert (truth.gold, truth.verifier, truth.unread) == (gold, "math", None)
    (verdict,) = Scorer().judge([truth.question(f"\\boxed{{{answer}}}")])
    assert verdict.score == 1.0


@pytest.mark.parametrize("gold", ["assert dominance", "assert", "assert your rights", ["assert dominance"], "assert 3"])
def test_an_assertion_of_nothing_is_no_test(gold: Any) -> None:
    assert truth_of({"answer": gold}).verifier == "math"


def test_another_verifier_judges_a_gold_that_the_rows_own_did_not_read() -> None:
    unread = truth_of({"solution": PROSE})
    missing = truth_of({"public_test_cases": "eJxrYJmaxQABPTxA", "private_test_cases": "x"})
    verdicts = Scorer("exact").judge([unread.question(PROSE), unread.question("no"), missing.question("no")])
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0, None]
    assert "unreadable_tests" in verdicts[2].evidence["error"]


def test_a_text_around_a_box_is_the_gold_of_a_verifier_of_texts() -> None:
    assert truth_of({"answer": BOXED}, verifier="exact").gold == BOXED
    assert truth_of({"answer": BOXED, "verifier": "exact"}).gold == BOXED


def test_the_verifier_of_all_rows_reads_golds_of_any_kind() -> None:
    """A user's verifier may read what truegold's own do not."""
    for columns in ({"ground_truth": '{"func_name": "f"}'}, {"gold": json.dumps(STDIO)}, {"solution": PROSE}):
        truth = truth_of(columns, verifier="exact")
        (verdict,) = Scorer("exact").judge([truth.question(str(next(iter(columns.values()))))])
        assert verdict.score == 1.0
        (again,) = Scorer("exact").judge([truth_of(columns).question("no")])
        assert again.score in (0.0, None)


def test_an_exported_row_comes_before_everything() -> None:
    carried = json.dumps({"gold": "1/2", "verifier": "numeric", "verifier_args": '{"rel_tol": 0.1}'})
    columns = {"truegold": carried, "ground_truth": json.dumps(STDIO), "data_source": "taco", "rubric": "x"}
    truth = truth_of(columns, routes={"taco": "code"})
    assert (truth.gold, truth.verifier, truth.verifier_args) == ("1/2", "numeric", '{"rel_tol": 0.1}')
    broken = truth_of({"truegold": carried[:-5], "answer": "7"})
    assert broken.gold is None and "the column truegold is not JSON" in str(broken.unread)


ROUTES = {"openai/gsm8k": "math", "code_*": "code", "words/*": "exact", "left": "trainer"}


@pytest.mark.parametrize(
    ("columns", "verifier"),
    [
        ({"data_source": "openai/gsm8k", "gold": "7"}, "math"),
        ({"dataset": "words/fr", "answer": "sept"}, "exact"),
        ({"dataset": ["words/fr"], "answer": "sept"}, "exact"),
        ({"source": "code_contests", "gold": json.dumps(STDIO)}, "code"),
        ({"datasource": "words/fr", "verifier": "numeric", "answer": "7"}, "numeric"),
        ({"data_source": "elsewhere", "answer": "7"}, "math"),
        ({"answer": "7"}, "math"),
    ],
)
def test_each_row_goes_to_the_verifier_of_its_data_set(columns: dict[str, Any], verifier: str) -> None:
    assert Scorer(routes=ROUTES).truth(columns).verifier == verifier
    as_text = ", ".join(f"{source}={name}" for source, name in ROUTES.items())
    assert routes_in(as_text) == routes_in(json.dumps(ROUTES)) == ROUTES


def test_a_name_counts_before_every_pattern() -> None:
    routes = {"*": "exact", "openai/*": "numeric", "openai/gsm8k": "math", "a[1]": "code"}
    scorer = Scorer(routes=routes)
    rows = [{"dataset": name, "answer": "7"} for name in ("openai/gsm8k", "a[1]", "openai/math")]
    assert [scorer.truth(row).verifier for row in rows] == ["math", "code", "exact"]


def test_an_answer_beside_rubrics_is_gold() -> None:
    for kind in ({"rubric": "5 points for ..."}, {"chosen": "7", "rejected": "8"}, {"instruction_id_list": ["a:b"]}):
        truth = truth_of({**kind, "answer": "7"})
        assert (truth.gold, truth.unread, truth.is_foreign) == ("7", None, False)
        assert foreign_kind({**kind, "answer": "7"}) is None and foreign_kind(kind) is not None


def test_routes_come_from_the_environment_and_go_with_the_scorer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEGOLD_ROUTES", "words=exact")
    scorer = Scorer()
    monkeypatch.delenv("TRUEGOLD_ROUTES")
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy.truth({"source": "words", "answer": "7"}).verifier == "exact"
    reward = TruegoldReward(routes={"words": "exact", "left": "trainer"})
    columns = {"answer": ["Sept", "7", "7"], "dataset": ["words", "numbers", "left"]}
    assert reward(prompts=["?"] * 3, completions=["Sept", "\\boxed{7}", "\\boxed{7}"], **columns) == [1.0, 1.0, None]


@pytest.mark.parametrize(
    ("routes", "says"),
    [
        ("math", "routes cannot be 'math'"),
        ("a=", "routes cannot be 'a='"),
        ("[1]", r"routes cannot be \[1\]"),
        ({"a": "mth"}, "there is no verifier 'mth'"),
        ({"a": 3}, "The route of 'a' cannot be 3"),
    ],
)
def test_a_route_that_leads_nowhere_is_told_before_training(routes: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        TruegoldReward(routes=routes)


def test_verl_judges_each_row_of_a_mixed_set_and_says_what_it_does_not(caplog: pytest.LogCaptureFixture) -> None:
    """verl is not installed here, so that its own scorer judges nothing: integrations/test_trainers.py has it."""
    rows = [
        ("openai/gsm8k", "\\boxed{72}", "72", 1.0),
        ("taco", DOUBLES, json.dumps(STDIO), 1.0),
        ("ifeval", "fine", '{"func_name": "validate"}', 0.0),
    ]
    with caplog.at_level(logging.WARNING):
        scored = verl.compute_score(
            data_sources=[row[0] for row in rows],
            solution_strs=[row[1] for row in rows],
            ground_truths=[row[2] for row in rows],
            routes={"never": "math"},
        )
    assert [entry["score"] for entry in scored] == [row[3] for row in rows]
    assert [entry["judged"] for entry in scored] == [1.0, 1.0, 0.0]
    assert "verl is not installed here" in caplog.text


def test_extra_info_gold_does_not_beat_ground_truth() -> None:
    for name in ("gold", "answer", "golds", "ground_truth", "tests"):
        info = {name: ["9"] if name in ("golds", "tests") else "9", "question": "?"}
        assert verl.compute_score("x", "\\boxed{7}", "7", info)["score"] == 1.0
    assert verl.compute_score("x", "\\boxed{9}", None, {"gold": "9"})["judged"] == 0.0


def test_gsm8k_and_math_as_they_lie_on_the_hub_are_paid_by_every_adapter() -> None:
    with real_data("curation/gsm8k_train.jsonl").open() as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(60), strict=False)]
    labels = [row["solution"] for row in rows]
    responses = [f"It is \\boxed{{{row['answer']}}}." for row in rows]
    assert [verl.compute_score("x", *pair)["score"] for pair in zip(responses, labels, strict=True)] == [1.0] * 60
    judge = TruegoldVerifier()
    assert [judge([], *pair).score for pair in zip(responses, labels, strict=True)] == [1.0] * 60
    assert TruegoldReward()(prompts=["?"] * 60, completions=responses, answer=labels) == [1.0] * 60


def test_what_could_not_be_judged_is_logged_at_powers_of_two(caplog: pytest.LogCaptureFixture) -> None:
    scorer = Scorer(unjudged=0.0)
    with caplog.at_level(logging.WARNING):
        for gold in ["\\frac{1"] * 9 + [None] + ["7"] * 6:
            scorer.judge([RowTruth(gold).question("\\boxed{7}")])
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(" responses")[0] for line in lines] == [
        *("truegold: 1 of 1", "truegold: 2 of 2", "truegold: 4 of 4", "truegold: 8 of 8", "truegold: 1 of 10")
    ]
    assert "(gold_unparsed)" in lines[0] and "by math: gold '\\\\frac{1'" in lines[0] and "(gold_missing)" in lines[4]


@rows("label", [None, 7, 7.0, ["7"], {"a": 1}, float("nan"), True, b"7", "", "[]"])
def test_a_label_of_openrlhf_may_be_anything(label: Any) -> None:
    pytest.importorskip("torch")
    scored = openrlhf.reward_func(["?\\boxed{7}"], ["?"], [label])
    assert scored["rewards"].tolist() == [1.0 if label in (7, ["7"]) else 0.0]
    row = {"gold": "7", "verifier": "math", "verifier_args": "{}"}
    assert truth_of_label(row).gold == truth_of_label(json.dumps(row)).gold == "7"


LITERALS = [
    *("In HTML <s>x</s> is struck.", "<s>a</s><s>b</s>", "Pad with <pad> here.", "[INST] starts and [/INST] ends it."),
    *(
        "A token <|x|> of it.",
        "The token <|im_end|> ends a turn.",
        "It writes <eos> or <unk>.",
        "See <end_of_turn> there.",
    ),
    *("The mark <｜end▁of▁sentence｜> is long.", "<bos> first", "See <end_of_turn> there."),
]
TURNS = [
    ("<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>"),
    ("<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n<|im_start|>user\nAnd \\boxed{9}?"),
    ("<s>[INST] Q [/INST]", "</s></s>"),
    ("<s>[INST] Q [/INST]", "</s><s>[INST] And \\boxed{9}? [/INST]"),
    ("<bos><start_of_turn>user\nQ<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>\n<eos>"),
    ("<｜User｜>Q<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    ("Question: Q\nAnswer:", "</s>"),
    ("Question: Q\nAnswer:", ""),
]


@rows("literal, turn", product(LITERALS, TURNS))
def test_openrlhf_responses_are_not_cut_at_a_literal_token(literal: str, turn: tuple[str, str]) -> None:
    prompt, after = turn
    response = f"{literal} The answer is \\boxed{{3}}"
    assert openrlhf.response_in(prompt + response + after, prompt) == response
    cut = prompt[3:] if len(prompt) > 40 else prompt
    assert openrlhf.response_in(cut + response + after, prompt) == response


AS_INGEST: list[dict[str, Any]] = [
    *({"answer": WORKING}, {"solution": BOXED}, {"answer": "7", "solution": BOXED}, {"Correct Answer": "7"}),
    *({"reference_answer": "7"}, {"golden_answers": ["7", "seven"]}, {"reward_model": {"ground_truth": "7"}}),
    *({"ground_truth": json.dumps(STDIO)}, {"test_list": ["assert add(1, 2) == 3"]}, {"answer": ["7", "8"]}),
    *({"tests": [{"input": "3\n", "output": "6\n"}], "solution": "print(int(input()) * 2)"}, {"label": "7"}),
    *({"input_output": json.dumps(STDIO), "solutions": '["print(1)"]'}, {"inputs": ["3\n"], "outputs": ["6\n"]}),
]


@pytest.mark.parametrize("columns", AS_INGEST, ids=str)
def test_a_trainer_judges_a_row_by_what_ingest_reads_of_it(columns: dict[str, Any], tmp_path: Path) -> None:
    from tests.pipeline.test_export_formats import rows_of, write_lines

    (row,) = rows_of(write_lines(tmp_path / "set.jsonl", [{"question": "What is it?", **columns}]), tmp_path / "out")
    item = truth_of(columns).question("")
    assert (item.gold, item.verifier) == (row["gold"], row["verifier"])
    assert json.loads(item.verifier_args) == json.loads(row["verifier_args"])


@pytest.mark.parametrize("text", ["42\n#### Note: round up", "42\n#### round it up", "$42$\n#### 注：四舍五入"])
def test_a_note_behind_the_mark_is_no_gold(text: str) -> None:
    truth = truth_of({"answer": text})
    assert truth.unread == f"answer has no answer after ####: {text}"
    assert truth_of({"answer": "48+24 = 72\n#### 72"}).gold == "72"
    assert truth_of({"input": "0+2", "target": "2", "label": "0"}).gold == "2"
