"""Clean: what is changed, what is left alone in which script, what is dropped; a second time changes nothing."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from truegold.pipeline.clean import clean
from truegold.pipeline.config import CleanConfig
from truegold.pipeline.progress import NullProgress
from truegold.pipeline.rows import ROW_SCHEMA, Row, read_rows, row_id, write_rows
from truegold.pipeline.stage import StageReport
from truegold.pipeline.text_cleaning import clean_prose
from truegold.verifiers import ConfigError


def make(prompt: str, gold: str | None = "42", **more: Any) -> Row:
    row = {
        "id": row_id(prompt, gold),
        "prompt": prompt,
        "gold": gold,
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": None,
        "source": "train.jsonl",
        "source_row": 1,
        "split": "train",
        "meta": "{}",
    }
    return {**row, **more}


def run(folder: Path, *rows: Row, config: CleanConfig | None = None) -> tuple[StageReport, list[Row], list[Row]]:
    """The report, the cleaned rows and the ledger."""
    write_rows(folder / "in.parquet", rows, ROW_SCHEMA)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    report = clean({"rows": folder / "in.parquet"}, config or CleanConfig(), out, NullProgress())
    cleaned = list(read_rows(out / "rows.parquet"))
    dropped = list(read_rows(out / "dropped.parquet"))
    drops = sum(count for key, count in report.counts.items() if key.startswith("drop:"))
    assert report.rows_in == len(rows) == len(cleaned) + len(dropped)
    assert (report.rows_out, drops) == (len(cleaned), len(dropped))
    return report, cleaned, list(read_rows(out / "ledger.parquet"))


def cleaned(text: str) -> str:
    for edit in clean_prose(text):
        text = edit.after
    return text


def test_each_change_of_a_column_is_one_ledger_record_with_its_reason(tmp_path):
    dirty = "\ufeffQuestion 3: How many\u00a0apples\x07 does Ann have? \r\n\r\n\r\n\r\nCount them.\n"
    row = make(dirty, "42\n")
    report, (result,), ledger = run(tmp_path, row)
    assert result["prompt"] == "How many apples does Ann have?\n\nCount them."
    assert result["gold"] == "42"
    assert result["id"] == row["id"]
    assert [(entry["reason"], json.loads(entry["evidence"])["column"]) for entry in ledger] == [
        ("control_characters", "prompt"),
        ("unicode", "prompt"),
        ("whitespace", "prompt"),
        ("boilerplate", "prompt"),
        ("whitespace", "gold"),
    ]
    assert ledger[0]["before"] == dirty
    for earlier, later in itertools.pairwise(ledger[:4]):
        assert earlier["after"] == later["before"]
    assert ledger[3]["after"] == result["prompt"]
    assert report.counts["edit:whitespace"] == 2


def test_a_clean_row_passes_untouched(tmp_path):
    row = make("How many apples does Ann have?", solution="She has 42.")
    report, (result,), ledger = run(tmp_path, row)
    assert result == row
    assert ledger == []
    assert dict(report.counts) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cafe\u0301 au lait", "café au lait"),
        ("e\u200b\u0301tude", "étude"),
        ("soft\u00adhyphen and\u200bzero", "softhyphen andzero"),
        ("a\u3000b\u2009c\u202fd", "a b c d"),
        ("a\tb", "a\tb"),
        ("line\u2028line\x0bline\x85line", "line\nline\nline\nline"),
        ("a \t\nb", "a\nb"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("a\rb\r\nc", "a\nb\nc"),
        ("nul\x00 bell\x07 delete\x7f", "nul bell delete"),
        ("二つの数\u3002１２個", "二つの数\u300212個"),
        ("小明有 3 个苹果\uff0c吃了 1 个\u3002", "小明有 3 个苹果\uff0c吃了 1 个\u3002"),
        ("كم عدد التفاحات؟", "كم عدد التفاحات؟"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क\u094d\u200dष", "क\u094d\u200dष"),
        ("a\u200cb\u200dc", "abc"),
        ("م\u200d\u200bم", "م\u200dم"),
        ("family \U0001f468\u200d\U0001f469\u200d\U0001f467", "family \U0001f468\u200d\U0001f469\u200d\U0001f467"),
        ("heart \u2764\ufe0f\u200d\U0001f525", "heart \u2764\ufe0f\u200d\U0001f525"),
        ("thumb \U0001f44d\U0001f3fd", "thumb \U0001f44d\U0001f3fd"),
        (r"$x^2 \le 3$", r"$x^2 \le 3$"),
        ("x² ≤ ½", "x² ≤ ½"),
    ],
)
def test_texts_are_cleaned_in_the_way_of_their_script(text, expected):
    assert cleaned(text) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Question: Q3. How many apples?", "How many apples?"),
        ("Problem 3.5: How many apples?", "How many apples?"),
        ("Problem 3.5 liters of milk are?", "Problem 3.5 liters of milk are?"),
        ("Q.5 is what share of ten?", "Q.5 is what share of ten?"),
        ("题目\uff1a小明一共有多少个苹果\uff1f", "小明一共有多少个苹果\uff1f"),
        ("Please solve the following math problem: What is 6*7?", "What is 6*7?"),
        ("What is 6*7 in total? Let's think step by step.", "What is 6*7 in total?"),
        ("Find the value of the letter Q.", "Find the value of the letter Q."),
        ("Question: 1+1", "Question: 1+1"),
        ("Questions about apples are asked here.", "Questions about apples are asked here."),
    ],
)
def test_boilerplate_is_cut_as_long_as_a_prompt_remains(tmp_path, prompt, expected):
    _, (result,), _ = run(tmp_path, make(prompt))
    assert result["prompt"] == expected


def test_boilerplate_is_configurable_and_a_bad_pattern_is_an_error(tmp_path):
    config = CleanConfig(boilerplate=(r"task>\s*",), boilerplate_end=(r"go!",))
    _, (result,), _ = run(tmp_path, make("TASK> Question: What is 6*7? Go!"), config=config)
    assert result["prompt"] == "Question: What is 6*7?"
    with pytest.raises(ConfigError, match=r"clean.boilerplate: the pattern '\(' is invalid"):
        run(tmp_path, make("What is 6*7?"), config=CleanConfig(boilerplate=("(",)))


def test_code_keeps_its_indentation_and_invisible_characters(tmp_path):
    prompt = "def f(x):\r\n\t'''  a\u00a0b\u200b '''   \r\n\r\n\r\n\r\n"
    _, (result,), ledger = run(tmp_path, make(prompt + "\0", None, domain="code", solution="  return 1\r\n"))
    assert result["prompt"] == prompt.replace("\r\n", "\n")
    assert result["solution"] == "  return 1\n"
    assert {entry["reason"] for entry in ledger} == {"control_characters", "whitespace"}


@pytest.mark.parametrize(
    ("row", "reason", "evidence"),
    [
        (make("\u200b 1+1? \n"), "prompt_too_short", {"length": 4, "limit": 8}),
        (make("x" * 101), "prompt_too_long", {"length": 101, "limit": 100}),
        (make("What is 6*7?", "9" * 21), "gold_too_long", {"length": 21, "limit": 20}),
        (make("What is 6*7?", "\u200b \x07\n"), "empty_gold", {"length": 0, "limit": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unusable_rows_are_dropped_as_they_came_in_with_length_and_limit(tmp_path, row, reason, evidence):
    report, rows, ledger = run(tmp_path, row, config=CleanConfig(max_prompt_chars=100, max_gold_chars=20))
    assert rows == []
    assert dict(report.counts) == {f"drop:{reason}": 1}
    assert json.loads(ledger[0]["evidence"]) == evidence
    (kept,) = read_rows(tmp_path / "out" / "dropped.parquet")
    assert kept == {**row, "drop_reason": reason}


def test_a_row_without_gold_is_no_row_with_an_empty_one(tmp_path):
    _, (result,), _ = run(tmp_path, make("Write a function.", None))
    assert result["gold"] is None


def test_a_solution_of_whitespace_becomes_null(tmp_path):
    _, (result,), _ = run(tmp_path, make("What is 6*7?", solution=" \n\u200b "))
    assert result["solution"] is None


def test_the_ledger_cuts_what_is_longer_than_it_keeps(tmp_path):
    _, _, (entry,) = run(tmp_path, make("What is 6*7?", solution="x" * 30_000 + " "))
    assert len(entry["before"]) == len(entry["after"]) == 20_000
    assert json.loads(entry["evidence"]) == {"column": "solution", "cut_to_chars": 20_000}


def test_hostile_texts_take_linear_time(tmp_path):
    size = 2 * 10**6
    texts = [" " * size + "x", "x" + "\n" * size + "x", "Q:" * size, "م\u200d" * size, "a\u0301" * size]
    started = time.monotonic()
    run(tmp_path, *(make("What is 6*7?", solution=text) for text in texts), *(make(text) for text in texts))
    assert time.monotonic() - started < 15


INVISIBLE = " \t\n\r\x00\x07\x0b\x85\u00a0\u00ad\u200b\u200c\u200d\u2028\u3000\ufeff\u0301\ufe0f"
PHRASES = ["Question: ", "Let's think step by step.", "Problem 3.", "\r\n"]
TROUBLE = st.sampled_from([*INVISIBLE, *".:aQmم1क\u094d가ㄱ\u1100\u1161１Ａ\U0001f468\U0001f3fd\u212b\ufb1d", *PHRASES])
TEXTS = st.lists(TROUBLE | st.characters(exclude_categories=["Cs"]), max_size=25).map("".join)


@settings(max_examples=400, deadline=None)
@given(text=TEXTS)
def test_cleaning_a_text_twice_changes_nothing_the_second_time(text):
    once = cleaned(text)
    assert cleaned(once) == once


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.tuples(TEXTS, TEXTS, TEXTS, st.sampled_from(["math", "code"])), max_size=4))
def test_cleaning_a_table_twice_changes_nothing_the_second_time(tmp_path, texts):
    rows = [make(prompt, gold, solution=solution, domain=domain) for prompt, gold, solution, domain in texts]
    _, once, _ = run(tmp_path, *rows)
    report, twice, ledger = run(tmp_path, *once)
    assert twice == once
    assert ledger == []
    assert report.rows_out == len(once)
