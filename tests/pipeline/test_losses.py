"""Sets that vanish: how much is lost for one reason, the likely cause, and the bounds that end a run."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from command_line import run_command
from ingest_files import read_file, write_lines
from tables import rows

from truegold import pipeline
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.sources.likely_causes import meant_verifier
from truegold.pipeline.tables.losses import Loss, LossBounds, loss_lines, read_losses
from truegold.verifiers import InputError

PROBLEMS = [
    {"question": f"Ann has {a} pens and buys {a + 3} more. How many has she?", "answer": str(2 * a + 3)}
    for a in range(2, 32)
]
LETTERS = [{**problem, "answer": "ABCD"[number % 4]} for number, problem in enumerate(PROBLEMS)]


def losses_of(path: Path, folder: Path, **config: Any) -> list[Loss]:
    report, _ = read_file(path, folder, **config)
    return read_losses(report)


@rows(
    "golds, judged_by, cause",
    [
        (["72", "10", "5"], "choice", "Every gold is a number: is `math` meant?"),
        (["1/2", "\\frac{3}{4}", "2.5"], "choice", "Every gold is a number: is `math` meant?"),
        (["$x^2+1$", "2y", "a+b"], "choice", "Every gold is a formula: is `math` meant?"),
        (["(1, 2)", "3", "$x = 4$", "{1, 2}"], "choice", "`math` reads 4 of 4 golds: is `math` meant?"),
        (["A", "(C)", "B."], "numeric", "Every gold is a letter: is `choice` meant?"),
        (["B", "D", "A", "C"], "exact", "Every gold is a letter: is `choice` meant?"),
        (["Karin Ek", "the river Orra", "Lund"], "numeric", "`exact` reads 3 of 3 golds: is `exact` meant?"),
        (['["assert f(1) == 2"]'] * 3, "math", "Every gold holds tests: is `code` meant?"),
        (['{"inputs": ["1\\n"], "outputs": ["2\\n"]}'] * 3, "choice", "Every gold holds tests: is `code` meant?"),
        (["12 km", "3 h", "5 kg"], "choice", "`math` reads 3 of 3 golds: is `math` meant?"),
    ],
)
def test_the_verifier_that_reads_most_golds_is_named(golds: list[str], judged_by: str, cause: str) -> None:
    meant = meant_verifier(golds, {judged_by})
    assert meant is not None and meant.cause == cause


@pytest.mark.parametrize(
    ("golds", "judged_by"),
    [
        ([], "choice"),
        (["We note that the sum is even, since it is twice a whole number and hence divisible by two."] * 3, "math"),
        (["72", "Karin Ek", "B", "the second of the two rivers"], "exact"),
    ],
)
def test_no_verifier_is_named_where_none_reads_most_golds(golds: list[str], judged_by: str) -> None:
    assert meant_verifier(golds, {judged_by}) is None


@pytest.mark.parametrize(
    ("record", "reason", "cause"),
    [
        ({"question": "1+1?", "answer": None, "final_answer": "2"}, "missing_gold", "column 'final_answer'"),
        ({"question": "1+1?", "answer": "", "golds": ["2", "two"]}, "missing_gold", "column 'golds'"),
        ({"question": "1+1?", "answer": {"value": "2"}, "target": "2"}, "gold_not_text", "column 'target'"),
        ({"question": "Add.", "answer": None, "unit_tests": ["assert f(1) == 2"]}, "missing_gold", "`code` meant"),
        ({"question": "", "answer": "2", "problem": "What is 1+1?"}, "missing_prompt", "column 'problem'"),
        ({"question": "1+1?", "answer": None}, "missing_gold", ""),
    ],
)
def test_rejects_for_one_reason_have_a_cause(tmp_path: Path, record: dict[str, Any], reason: str, cause: str) -> None:
    good = {"question": "2+2?", "answer": "4"}
    path = write_lines(tmp_path, good, good, *[record] * 3)
    (loss,) = losses_of(path, tmp_path, columns={"prompt": "question", "gold": "answer"})
    assert (loss.kind, loss.reason, loss.rows, loss.rows_in) == ("rejected", reason, 3, 5)
    assert loss.example.startswith("train.jsonl:3: column ")
    assert cause in loss.cause and bool(cause) == bool(loss.cause)


def test_a_fifth_is_no_heavy_loss_and_more_is(tmp_path: Path) -> None:
    bad = {"question": "1+1?", "answer": None}
    assert losses_of(write_lines(tmp_path, *PROBLEMS[:8], bad, bad), tmp_path) == []
    (loss,) = losses_of(write_lines(tmp_path, *PROBLEMS[:7], bad, bad, bad), tmp_path)
    assert loss.lines()[0].startswith("3 of 10 records (30 %) are rejected: missing_gold. The first is train.jsonl:8:")


def test_records_that_cannot_be_read_have_no_cause(tmp_path: Path) -> None:
    (loss,) = losses_of(write_lines(tmp_path, *PROBLEMS[:3], b"{oops", b"{again"), tmp_path)
    assert (loss.reason, loss.cause) == ("invalid_json", "")


def test_a_file_of_rejects_alone_says_the_cause(tmp_path: Path) -> None:
    rows = [{"question": "Add.", "answer": None, "test_cases": ["assert add(1) == 2"]}] * 3
    with pytest.raises(InputError, match=r"missing_gold: .*Column 'test_cases' holds tests: is `code` meant\?"):
        read_file(write_lines(tmp_path, *rows), tmp_path, columns={"prompt": "question", "gold": "answer"})


@pytest.mark.parametrize(
    ("rows", "settings", "cause"),
    [
        (PROBLEMS, {"verifier": "choice"}, "Every gold is a number: is `math` meant?"),
        (
            [
                {"question": problem["question"], "label": f"see page {number}", "result": problem["answer"]}
                for number, problem in enumerate(PROBLEMS)
            ],
            {"gold": "label"},
            "The golds stand in column 'result'.",
        ),
        (
            [{**problem, "n": "7919", "working": f"So it is \\boxed{{{problem['answer']}}}."} for problem in PROBLEMS],
            {"gold": "n", "columns": {"solution": "working"}},
            "The golds stand in column 'answer'.",
        ),
    ],
)
def test_a_set_of_which_nothing_is_left_is_an_error(
    rows: list[dict[str, Any]], settings: dict[str, Any], cause: str
) -> None:
    with pytest.raises(InputError) as error:
        pipeline.curate(rows, prompt="question", **settings)
    assert error.value.exit_code == 3 and error.value.message == "No row is left of 30."
    assert cause in str(error.value)


def test_rows_dropped_before_are_an_error_too() -> None:
    with pytest.raises(InputError, match=r"No row is left; dropped were 30 other_language\."):
        pipeline.curate(PROBLEMS, clean={"languages": ["zh"]})


def test_curate_warns_of_heavy_losses_and_keeps_the_rest() -> None:
    mixed = [*PROBLEMS[:20], *({**row, "answer": "see picture"} for row in PROBLEMS[20:])]
    with pytest.warns(
        UserWarning, match=r"10 of 30 rows \(33 %\) are held back: gold_unmatchable\. The first is .*:21, gold"
    ):
        curated = pipeline.curate(mixed)
    assert curated.rows.height == 20


def test_healthy_rows_say_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pipeline.curate(PROBLEMS, max_held=0, max_rejected=0).rows.height == 30


@pytest.mark.parametrize(
    ("bound", "rows", "message"),
    [
        (
            {"max_held": 0.3},
            [{**row, "answer": "see picture"} for row in PROBLEMS[20:]],
            "10 of 30 rows .* above max_held = 0.3",
        ),
        (
            {"max_rejected": 0.1},
            [{**row, "answer": None} for row in PROBLEMS[20:]],
            "10 of 30 rows .* above max_rejected = 0.1",
        ),
    ],
)
def test_bounds_turn_losses_into_errors(bound: dict[str, float], rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pipeline.curate([*PROBLEMS[:20], *rows], **bound)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        curated = pipeline.curate([*PROBLEMS[:20], *rows], **dict.fromkeys(bound, 0.4))
    assert curated.rows.height == 20 and len(caught) == 1


def test_bounds_of_an_empty_report_hold() -> None:
    LossBounds(max_rejected=0.0).check("ingest", StageReport(0, 0))
    LossBounds(max_held=0.0).check("clean", StageReport(10, 0, {"drop:too_long": 10}))
    assert loss_lines([StageReport(10, 10)]) == []


def test_mixed_columns_of_golds(tmp_path: Path) -> None:
    rows = [{"question": "1+1?", "golds": ["2", "two"]}, *PROBLEMS[:14]]
    _, read = read_file(write_lines(tmp_path, *rows), tmp_path)
    assert [row["gold"] for row in read] == ["2", *(row["answer"] for row in PROBLEMS[:14])]
    assert json.loads(read[0]["verifier_args"]) == {"other_golds": ["two"]}


BOXED = """
import re
from truegold.verifiers import verifier

def boxed(response, gold):
    boxes = re.findall(r"\\\\boxed\\{([^{}]*)\\}", response)
    return bool(boxes) and boxes[-1] == gold

@verifier(gold_response="\\\\boxed{{{gold}}}")
def said(response, gold):
    return boxed(response, gold)

def never(response, gold):
    return False

def raises(response, gold):
    return response.gold

def words(response, gold):
    return "yes"

def always(response, gold):
    return True
"""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("boxed", "@verifier(gold_response="),
        ("never", "is `math` meant?"),
        ("raises", "mine.py:raises fails on 20 of 20 golds: AttributeError: 'str' object has no attribute 'gold'."),
        ("words", "mine.py:words fails on 20 of 20 golds: TypeError: returned str, expected a bool, a score"),
        ("always", "mine.py:always also pays a wrong answer (7919). Correct the verifier: truegold verifiers check"),
        ("said", None),
    ],
)
def test_the_fault_of_a_verifier_of_ones_own_is_told(name: str, says: str | None, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BOXED)
    verifier = f"{tmp_path / 'mine.py'}:{name}"
    if says is None:
        assert pipeline.curate(PROBLEMS, verifier=verifier).rows.height > 20
        return
    with pytest.raises(InputError) as vanished:
        pipeline.curate(PROBLEMS, verifier=verifier)
    assert says in f"{vanished.value} {vanished.value.hint}"


CASES = [
    ("def add(a, b):\n    return a + b\n", "assert add(3, 4) == 7\nassert add(1, 2) == 3"),
    ("def mul(a, b):\n    return a * b\n", "assert mul(3, 4) == 12\nassert mul(1, 2) == 2"),
    ("a = int(input())\nb = int(input())\nprint(a + b)", '[{"input": "1\\n2\\n", "output": "3\\n"}]'),
]
PROGRAMS = [
    {"question": f"Write program {number}: add, mul, or the sum of two lines.", "answer": program, "unit_tests": tests}
    for number, (program, tests) in enumerate(CASES)
]
PROSE = [
    {
        "question": problem["question"],
        "answer": f"We compute step by step and get the value {problem['answer']}.",
        "expected": int(problem["answer"]),
        "n": number,
    }
    for number, problem in enumerate(PROBLEMS)
]
PLACEHOLDERS = [*PROBLEMS, *({**row, "answer": "see solution"} for row in PROBLEMS[:5])]


@pytest.mark.parametrize(
    ("rows", "settings", "says"),
    [
        (PROGRAMS, [], "Column 'unit_tests' holds tests: is `code` meant?"),
        (PROGRAMS, ["data.verifier=code"], "Column 'unit_tests' holds tests: is `code` meant?"),
        (PROSE, [], "The golds of these rows stand in column 'expected' (7)."),
        (PROBLEMS, ["data.verifier=choice"], "Every gold is a number: is `math` meant?"),
        (PLACEHOLDERS, ["data.verifier=choice"], "is `math` meant?"),
        (LETTERS, ["data.verifier=numeric"], "Every gold is a letter: is `choice` meant?"),
    ],
)
def test_advice_works_as_it_is_typed(
    rows: list[dict[str, Any]], settings: list[str], says: str, tmp_path: Path
) -> None:
    write_lines(tmp_path, *rows)
    (tmp_path / "run.yaml").write_text("name: small\ndata: {path: train.jsonl}\n")
    command = ["curate", "run.yaml", "--engine", "local"]
    for setting in settings:
        command += ["--set", setting]
    lost = run_command(*command, cwd=tmp_path)
    assert says in lost.stderr, lost.stderr
    advice = lost.stderr[lost.stderr.rindex(says) :]
    typed = re.findall(r"--set [\w.]+=\S+?(?=,|\s|$)", advice)
    assert typed
    done = run_command(*command, *" ".join(typed).split(), cwd=tmp_path)
    assert done.returncode == 0 and says not in done.stderr, done.stderr


def test_a_column_that_prose_does_not_end_with_is_not_named(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "expected"} for row in PROSE]
    with pytest.raises(InputError, match="gold_is_prose") as error:
        read_file(write_lines(tmp_path, *rows), tmp_path)
    assert "stand in column" not in str(error.value)


def test_the_commonest_reason_comes_first_where_nothing_is_usable(tmp_path: Path) -> None:
    path = write_lines(tmp_path, *PROBLEMS, b"{oops")
    with pytest.raises(InputError) as error:
        read_file(path, tmp_path, verifier="code")
    message = str(error.value)
    assert "none of its 31 rows (30 missing_tests, 1 invalid_json) can be used; the first is line 1: missing_tests" in (
        message
    )
    assert "is `math` meant?" in message


def test_suites_that_are_all_dropped_say_the_row_the_cause_and_what_to_do() -> None:
    rows = [
        {
            "question": f"Write f{number}(a), which adds {number} to a.",
            "tests": [f"assert f{number}(3) is not True", f"assert f{number}(4) is not True"],
        }
        for number in range(4)
    ]
    with pytest.raises(InputError, match=r"No row is left; dropped were 4 paid_null\.") as error:
        pipeline.curate(rows)
    assert "4 of 4 rows (100 %) are dropped: paid_null. The first is rows" in str(error.value)
    assert "add cases that these programs fail" in str(error.value) and "vet_tests.enabled=false" in str(error.value)
    assert pipeline.curate(rows, vet_tests={"enabled": False}).rows.height == 4
