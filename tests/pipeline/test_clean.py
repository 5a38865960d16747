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
from numbered_rows import plain_row
from property_tests import examples
from tables import rows

from truegold.pipeline.clean import EDITS, clean_prose
from truegold.pipeline.clean.edits import CODE, PROSE
from truegold.pipeline.clean.stage import clean
from truegold.pipeline.config.stages import CleanConfig
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.rows import ROW_SCHEMA, Row, read_rows, write_rows
from truegold.verifiers import ConfigError


def make(prompt: str, gold: str | None = "42", **more: Any) -> Row:
    return plain_row(prompt, gold, **more)


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
    edits = clean_prose(text)
    return edits[-1].after if edits else text


def notes(row: Row) -> Any:
    return json.loads(row["meta"])["truegold"]


def undone(row: Row, ledger: list[Row]) -> Row:
    """The row as it came in: every edit taken back, the last one first, and the notes taken out."""
    raw = dict(row)
    for entry in reversed(ledger):
        column = json.loads(entry["evidence"])["column"]
        assert (raw[column] or "") == entry["after"]
        raw[column] = entry["before"]
    meta = json.loads(raw["meta"])
    if not any(json.loads(entry["evidence"])["column"] == "meta" for entry in ledger):
        del meta["truegold"]
    return {**raw, "meta": json.dumps(meta, separators=(",", ":"), sort_keys=True)}


def test_each_change_of_a_column_is_one_ledger_record_with_its_reason(tmp_path):
    dirty = "\ufeffQuestion 3: How many\u00a0apples\x07 does Ann have? \r\n\r\n\r\n\r\nCount them.\n"
    row = make(dirty, "42\n")
    report, (result,), ledger = run(tmp_path, row)
    assert result["prompt"] == "How many apples does Ann have?\n\nCount them."
    assert result["gold"] == "42"
    assert result["id"] == row["id"]
    assert [(entry["reason"], json.loads(entry["evidence"])["column"]) for entry in ledger] == [
        ("whitespace", "gold"),
        ("control_characters", "prompt"),
        ("unicode", "prompt"),
        ("whitespace", "prompt"),
        ("boilerplate", "prompt"),
    ]
    assert ledger[1]["before"] == dirty
    for earlier, later in itertools.pairwise(ledger[1:]):
        assert earlier["after"] == later["before"]
    assert ledger[4]["after"] == result["prompt"]
    assert report.counts["edit:whitespace"] == 2


def test_a_clean_row_passes_untouched_but_for_its_notes(tmp_path):
    row = make("How many apples does Ann have?", solution="She has 42.", meta='{"level":"easy"}')
    report, (result,), ledger = run(tmp_path, row)
    assert notes(result) == {"language": "en", "gold_type": "number", "gold_normal": "42"}
    assert {**result, "meta": row["meta"]} == row
    assert json.loads(result["meta"])["level"] == "easy"
    assert ledger == []
    assert dict(report.counts) == {}


@rows(
    "text, expected",
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
        ("Ｗｈａｔ　ｉｓ　２．５＋１？", "What is 2.5+1?"),
        ("１，２００", "1，200"),
        ("设 ｘ＝３，求 ｘ。", "设 x＝3，求 x。"),
        ("How\u2063 many\u200e apples\u202c?", "How many apples?"),
        ("كم \u200f3?", "كم \u200f3?"),
        ("ﬁnd the oﬃce", "find the office"),
        ("𝐓𝐨𝐦 has 𝟏𝟐 apples, vector 𝐯", "Tom has 12 apples, vector 𝐯"),
        ("a triаngle оf Тоm", "a triangle of Tom"),
        ("Сколько см в 5 м? АВС", "Сколько см в 5 м? АВС"),
        ("Пусть 2хy = 3", "Пусть 2xy = 3"),
        ("IT-отдел, Wi-Fi-сеть, ЖKХ", "IT-отдел, Wi-Fi-сеть, ЖKХ"),
        ("2πr, ΔABC, cosα, αx, μm, Ω", "2πr, ΔABC, cosα, αx, μm, Ω"),
        ("Η γωνία α είναι οξεία", "Η γωνία α είναι οξεία"),
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


def test_the_ledger_holds_long_texts_whole(tmp_path):
    text = "x" * 300_000 + " "
    _, _, (entry,) = run(tmp_path, make("What is 6*7?", solution=text))
    assert (entry["before"], entry["after"]) == (text, text[:-1])


MESSY = [
    make("\ufeffQuestion 3: How many&nbsp;apples\x07 does Ann have? \r\n\r\n\r\nAnswer: 42\n", "42\n", solution=" \n"),
    make("Which is prime?<br/>(A) 4<br/>(B) 7<br/>(C) 9", "\\text{(B)}"),
    make("Let $x = \x0crac{1}{2}$. Find x. Please reason step by step.", "$\x0crac{1}{2}$", solution="It is &lt; 1."),
    make("How many apples does Ann have?", "42", meta='{"level":3,"truegold":{"language":"xx"}}'),
    make("def f(x):\r\n\treturn x\0", None, domain="code", solution="  pass\r\n"),
]


@pytest.mark.parametrize("row", MESSY, ids=range(len(MESSY)))
def test_undoing_the_edits_of_the_ledger_gives_the_row_as_it_came_in(tmp_path, row):
    _, (result,), ledger = run(tmp_path, row)
    assert ledger
    assert undone(result, ledger) == row


def test_whole_options_make_a_row_a_choice(tmp_path):
    row = make("Which number is prime?\n(A) 4\n(B) 7\n(C) 9", "B")
    report, (result,), ledger = run(tmp_path, row)
    assert result["verifier"] == "choice"
    assert json.loads(result["verifier_args"]) == {"options": ["4", "7", "9"]}
    assert notes(result) == {"language": "und", "gold_type": "choice", "gold_normal": "B"}
    assert [(entry["before"], entry["after"]) for entry in ledger] == [
        ("math", "choice"),
        ("{}", '{"options":["4","7","9"]}'),
    ]
    assert report.counts["edit:multiple_choice"] == 2


@pytest.mark.parametrize(
    "row",
    [
        make("Which number is prime?\n(A) 4\n(B) 8\n(C) 9", "7"),
        make("Which number is prime?\n(A) 4\n(B) 7\n(C) 9", "B", verifier="exact"),
        make("Which number is prime?\n(A) 4\n(B) 7\n(C) 9", "B", verifier_args='{"options":["4","7","9"]}'),
    ],
    ids=["gold is no option", "another verifier", "options known"],
)
def test_other_rows_keep_their_verifier(tmp_path, row):
    _, (result,), ledger = run(tmp_path, row)
    assert (result["verifier"], result["verifier_args"], ledger) == (row["verifier"], row["verifier_args"], [])


def test_rows_in_other_languages_are_dropped_where_languages_are_given(tmp_path):
    german = make("Wie viele Äpfel hat Anna, wenn sie drei Körbe mit je vierzehn Äpfeln kauft?")
    english = make("How many apples does Ann have, if she buys three baskets with fourteen apples each?")
    short = make("$6 \\cdot 7 =$")
    report, rows, ledger = run(tmp_path, german, english, short, config=CleanConfig(languages=("en",)))
    assert [row["prompt"] for row in rows] == [english["prompt"], short["prompt"]]
    assert report.counts["drop:other_language"] == 1
    assert json.loads(ledger[0]["evidence"]) == {"language": "de", "languages": ["en"]}


def test_edits_can_be_left_out_by_name(tmp_path):
    row = make("Which number<br>is prime?\n(A) 4\n(B) 7\n(C) 9", "B")
    _, (result,), ledger = run(tmp_path, row, config=CleanConfig(skip=("html_tags", "multiple_choice")))
    assert (result["prompt"], result["verifier"], ledger) == (row["prompt"], "math", [])


def test_a_setting_that_names_nothing_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"clean.languages: unknown: qq"):
        run(tmp_path, make("What is 6*7?"), config=CleanConfig(languages=("en", "qq")))
    with pytest.raises(ValueError, match=r"'damaged_latex'.*'multiple_choice'"):
        CleanConfig.model_validate({"skip": ["html"]})
    with pytest.raises(ValueError, match="pattern"):
        CleanConfig.model_validate({"languages": ["english"]})


def test_every_step_has_a_name_in_the_configuration():
    assert {name for name, _ in (*PROSE, *CODE)} <= set(EDITS)


def test_hostile_texts_take_linear_time(tmp_path):
    size = 5 * 10**5
    texts = [" " * size + "x", "x" + "\n" * size + "x", "Q:" * size, "م\u200d" * size, "a\u0301" * size]
    started = time.process_time()
    run(tmp_path, *(make("What is 6*7?", solution=text) for text in texts), *(make(text) for text in texts))
    assert time.process_time() - started < 4


MARKUP = [
    "&amp;",
    "&lt;",
    "&#38;",
    "lt;",
    "<b>",
    "</b>",
    "<br/>",
    "<sup>2</sup>",
    "<td>",
    "</td></tr>",
    "$",
    "\\\\frac{1}{2}",
]
DAMAGE = [
    "\\frac{1}{2}",
    "\x0crac{1}{2}",
    "frac{1}{2}",
    "\times",
    "\\\\",
    "\\n(A)",
    "\nAnswer: 7",
    "(A) 1 (B) 2 (C) 3",
    "\\[",
]
INVISIBLE = " \t\n\r\x00\x07\x0b\x85\u00a0\u00ad\u200b\u200c\u200d\u2028\u3000\ufeff\u0301\ufe0f"
PHRASES = ["Question: ", "Let's think step by step.", "Problem 3.", "\r\n", *MARKUP, *DAMAGE]
TROUBLE = st.sampled_from([*INVISIBLE, *".:aQmم1क\u094d가ㄱ\u1100\u1161１Ａ\U0001f468\U0001f3fd\u212b\ufb1d", *PHRASES])
TEXTS = st.lists(TROUBLE | st.characters(exclude_categories=["Cs"]), max_size=25).map("".join)


@settings(max_examples=examples(400))
@given(text=TEXTS)
def test_cleaning_a_text_twice_changes_nothing_the_second_time(text):
    once = cleaned(text)
    assert cleaned(once) == once


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.tuples(TEXTS, TEXTS, TEXTS, st.sampled_from(["math", "code"])), max_size=4))
def test_cleaning_a_table_twice_changes_nothing_the_second_time(tmp_path, texts):
    rows = [make(prompt, gold, solution=solution, domain=domain) for prompt, gold, solution, domain in texts]
    _, once, _ = run(tmp_path, *rows)
    report, twice, ledger = run(tmp_path, *once)
    assert [entry for entry in ledger if entry["reason"] != "notes"] == []
    assert twice == once
    assert ledger == []
    assert report.rows_out == len(once)


WORDS = st.sampled_from([
    *"a b c x y A B C 1 2 42 3.5 how many apples if then find is the , . ? ( ) = < > + - * /".split(),
    *["$x^2 < 3$", "\\(a > b\\)", "$5", "a<b", "c>d", "$\\frac{1}{2}$", "\\[x \\\\ y\\]", "50\\%"],
    *["R & D;", "x_{n}", "`f(x)`"],
    *["小明", "有", "几个？", "Ω", "é", "\n", "\n\n"],
])  # fmt: skip


@settings(max_examples=examples(400))
@given(words=st.lists(WORDS, min_size=1, max_size=30))
def test_a_text_without_damage_is_never_touched(words):
    text = " ".join(words).replace(" \n", "\n").replace("\n ", "\n")
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    text = text.strip("\n")
    assert clean_prose(text) == []
