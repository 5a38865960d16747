"""`truegold verify`: a file of responses becomes a file of verdicts, with what each cost."""

import polars as pl
import pytest

from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import dump_json
from truegold.pipeline.verify import responses as module
from truegold.pipeline.verify.responses import verify_file

CHECKS = """
import os, time
from truegold.verifiers import verifier

@verifier
def risky(response, gold):
    if response == "exit":
        os._exit(7)
    if response == "slow":
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
    return response == gold
"""


class Notes(NullProgress):
    def __init__(self):
        self.texts = []

    def note(self, text):
        self.texts.append(text)


@pytest.fixture
def risky(tmp_path):
    path = tmp_path / "checks.py"
    path.write_text(CHECKS)
    return f"{path}:risky"


def judged(tmp_path, responses, verifier, workers):
    source, target, notes = tmp_path / "rows.jsonl", tmp_path / "verdicts.parquet", Notes()
    source.write_text("".join(dump_json({"response": r, "gold": "a"}) + "\n" for r in responses) + "no json\n")
    counts = verify_file(source, target, verifier, workers, notes)
    return pl.read_parquet(target), counts, notes.texts


def test_each_judged_row_has_its_cpu_time_and_one_that_died_or_was_not_read_has_none(tmp_path, risky):
    table, counts, _ = judged(tmp_path, ["a", "exit", "b", "slow"], risky, workers=2)
    assert table["score"].to_list() == [1.0, None, 0.0, 0.0, None]
    assert [cost is None for cost in table["cpu_ms"]] == [False, True, False, False, True]
    assert table["cpu_ms"][3] >= 20
    assert counts == {"match": 1, "mismatch": 2, "verifier_error": 1, "rejected:invalid_json": 1}


def test_rows_with_options_that_their_verifier_does_not_have_are_counted_and_the_first_is_named(tmp_path):
    source, notes = tmp_path / "rows.jsonl", Notes()
    numeric = {"response": "3.14", "gold": "3.14", "verifier": "numeric"}
    options = [{}, {"rel_tl": 0.1}, {"rel_tol": 0.1}, {"rel_tl": 0.2}, {"decimal": 2}]
    source.write_text("".join(dump_json({**numeric, "verifier_args": entry}) + "\n" for entry in options))
    counts = verify_file(source, tmp_path / "verdicts.parquet", "math", 1, notes)
    assert counts == {"match": 2, "rejected:invalid_verifier_args": 3}
    (told,) = [text for text in notes.texts if "rejected" in text]
    assert f"{source}: 3 rejected as invalid_verifier_args, the first is row 2: numeric has no option 'rel_tl'" in told
    assert "Did you mean 'rel_tol'?" in told


def test_the_verdicts_do_not_depend_on_what_they_cost(tmp_path, risky):
    first, _, _ = judged(tmp_path, ["a", "b", "slow"], risky, workers=1)
    second, _, _ = judged(tmp_path, ["a", "b", "slow"], risky, workers=2)
    assert first.drop("cpu_ms").equals(second.drop("cpu_ms"))


def test_the_throughput_and_the_slowest_rows_are_told_slowest_first(tmp_path, risky, monkeypatch):
    monkeypatch.setattr(module, "SLOW_MS", 10.0)
    monkeypatch.setattr(module, "MAX_SLOW_ROWS", 2)
    table, _, notes = judged(tmp_path, ["slow", "a", "slow", "slow"], risky, workers=1)
    slow = table.filter(pl.col("cpu_ms") > 10).sort("cpu_ms", descending=True)["row"].to_list()
    assert notes[0].startswith("4 rows in ")
    assert "a second" in notes[0]
    assert [f"row {row} (" in notes[1] for row in slow] == [True, True, False]
    assert notes[1].index(f"row {slow[0]} ") < notes[1].index(f"row {slow[1]} ")


def test_quick_rows_are_not_named(tmp_path, risky):
    _, _, notes = judged(tmp_path, ["a", "b"], risky, workers=1)
    assert not any("slowest" in note for note in notes)


HUMANEVAL = {
    "prompt": "def add(a, b):\n",
    "canonical_solution": "    return a + b\n",
    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
    "entry_point": "add",
}
MBPP = {"text": "Add two numbers.", "code": "def add(a, b): return a + b", "test_list": ["assert add(1, 2) == 3"]}
RIGHT, WRONG = "```python\ndef add(a, b):\n    return a + b\n```", "```python\ndef add(a, b):\n    return a - b\n```"


def verdicts(tmp_path, *records, verifier=None):
    source, target = tmp_path / "rows.jsonl", tmp_path / "verdicts.parquet"
    source.write_text("".join(dump_json(record) + "\n" for record in records))
    verify_file(source, target, verifier, 1, NullProgress())
    return pl.read_parquet(target)


@pytest.mark.parametrize("problem", [HUMANEVAL, MBPP])
def test_programs_are_judged_by_the_tests_beside_them(tmp_path, problem):
    table = verdicts(tmp_path, {**problem, "response": RIGHT}, {**problem, "response": WRONG})
    assert table["score"].to_list() == [1.0, 0.0]
    assert set(table["verifier"]) == {"code"}


def test_a_named_verifier_of_texts_reads_no_tests(tmp_path):
    table = verdicts(tmp_path, {**MBPP, "response": RIGHT, "verifier_args": {"max": 500}}, verifier="length")
    assert table["verifier"].to_list() == ["length"] and table["score"].to_list() == [1.0]


def test_a_row_that_names_code_and_has_no_tests_is_rejected_with_the_reason(tmp_path):
    table = verdicts(tmp_path, {"response": RIGHT, "gold": "3", "verifier": "code"}, {"response": "3", "gold": "3"})
    assert table["reason"].to_list() == ["rejected:missing_tests", "match"]
    assert "verifier_args, or in a column tests" in table["evidence"][0]


def test_lists_of_accepted_golds_are_known_by_their_column(tmp_path):
    table = verdicts(tmp_path, {"question": "1/2?", "golds": ["1/2", "half a unit"], "response": "\\boxed{0.5}"})
    assert table["reason"].to_list() == ["match"]


def test_the_verifier_sees_the_cleaned_problem_and_the_response_as_it_is(tmp_path):
    path = tmp_path / "checks.py"
    path.write_text(
        "from truegold.verifiers import Reason, Verdict, verifier\n"
        "@verifier\ndef echo(response, gold, problem):\n"
        "    return Verdict(1.0, Reason.MATCH, extracted=repr((response, gold, problem)))\n"
    )
    record = {"question": "Question 3: What is 1&nbsp;+&nbsp;1?\r\n", "gold": "2 &lt; ", "response": "Question 3: 2 "}
    table = verdicts(tmp_path, record, verifier=f"{path}:echo")
    assert table["extracted"][0] == repr(("Question 3: 2 ", "2 &lt; ", "What is 1 + 1?"))


REPLY = {"role": "assistant", "content": "\\boxed{4}"}
SAMPLES = {
    "a text": ("\\boxed{4}", ["match"]),
    "an empty text": ("", ["no_answer"]),
    "a number": (4, ["match"]),
    "samples": (["\\boxed{4}", "\\boxed{5}", "\\boxed{4}"], ["match", "mismatch", "match"]),
    "an empty sample": (["", "\\boxed{4}"], ["no_answer", "match"]),
    "a sample that is null": (["\\boxed{4}", None], ["match", "rejected:missing_response"]),
    "a conversation": ([{"role": "user", "content": "2+2?"}, REPLY], ["match"]),
    "one message": (REPLY, ["match"]),
    "conversations": ([[REPLY], [{**REPLY, "content": "\\boxed{5}"}]], ["match", "mismatch"]),
    "texts of an engine": ([{"text": "\\boxed{4}"}, {"text": "\\boxed{5}"}], ["match", "mismatch"]),
    "parts of a message": ([{"type": "text", "text": "So"}, {"type": "text", "text": "\\boxed{4}"}], ["match"]),
    "a question alone": ([{"role": "user", "content": "2+2?"}], ["rejected:missing_response"]),
    "null": (None, ["rejected:missing_response"]),
    "no samples": ([], ["rejected:missing_response"]),
}


@pytest.mark.parametrize(("response", "reasons"), SAMPLES.values(), ids=SAMPLES)
def test_each_sample_has_a_verdict_and_conversations_are_one_response(tmp_path, response, reasons):
    first = {"question": "1+1?", "gold": "2", "response": "\\boxed{2}"}
    table = verdicts(tmp_path, first, {"question": "2+2?", "gold": "4", "response": response})
    assert table["reason"].to_list() == ["match", *reasons]
    assert table["sample"].to_list() == [0, *range(len(reasons))]


def test_rows_without_the_column_of_responses_are_rejected_and_counted(tmp_path):
    source, notes = tmp_path / "rows.jsonl", Notes()
    rows = [{"question": "1+1?", "gold": "2", "response": "2"}, {"question": "2+2?", "gold": "4"}]
    source.write_text("".join(dump_json(row) + "\n" for row in rows))
    counts = verify_file(source, tmp_path / "verdicts.parquet", None, 1, notes)
    assert counts == {"match": 1, "rejected:missing_response": 1}
    told = f"{source}: 1 rejected as missing_response, the first is row 2: column 'response' is not there"
    assert told in notes.texts
