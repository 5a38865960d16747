"""Layouts in the wild: texts beside questions, options in one text, golds of table writers, names in other case."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from ingest_files import Notes, read_file, rejects, row_of, write_lines

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.presets import choose_layout
from truegold.verifiers import InputError
from truegold.verifiers.row_kinds import are_tests, is_test_code

STORY = "The Amber Library opened in 1907 in Lund. Its founder was Karin Ek."
RIVER = "The river Orra is 312 km long and flows through three countries."
QUESTION = "Which is a noble gas?"
SHOWN = f"{QUESTION}\n\nA. iron\nB. argon\nC. tin"


def rows_of(folder: Path, *records: dict[str, Any], **config: Any) -> list[Any]:
    return read_file(write_lines(folder, *records), folder, **config)[1]


def csv_row(folder: Path, text: str) -> Any:
    path = folder / "train.csv"
    path.write_bytes(text.encode())
    _, (row,) = read_file(path, folder)
    return row


# Texts that questions are about.


@pytest.mark.parametrize(
    "records",
    [
        # Answers stand in the text (SQuAD).
        [{"context": STORY, "question": "When?", "answers": {"text": ["1907"], "answer_start": [29]}}],
        [{"document": STORY, "question": "When was it founded?", "answer": "1907"}],
        [{"Context": STORY, "Question": "When was it founded?", "Answer": "1907"}],
        [{"evidence": STORY, "query": "When was it founded?", "answer": "1907"}],
        [{"contexts": [STORY], "question": "When was it founded?", "answer": "1907"}],
        # Questions point at it, though their answers are words of their own.
        [{"context": STORY, "question": "According to the passage, is it old?", "answer": "yes"}],
        [{"premise": STORY, "question": "Does the premise say who built it?", "answer": "no"}],
        # One question is asked of several texts.
        [
            {"context": STORY, "question": "What is it about?", "answer": "a house of books"},
            {"context": RIVER, "question": "What is it about?", "answer": "much water"},
        ],
        # Columns that hold nothing else are not asked.
        [{"passage": STORY, "question": "Is it old?", "answer": "yes"}],
        [{"narrative": STORY, "question": "Is it old?", "answer": "yes"}],
    ],
)
def test_a_text_that_questions_need_stands_before_them(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    row = rows_of(tmp_path, *records)[0]
    question = next(value for name, value in records[0].items() if name.lower() in ("question", "query"))
    assert row["prompt"] == f"{STORY}\n\n{question}"


def test_titles_and_sentences_become_a_text(tmp_path: Path) -> None:
    context = {"title": ["Ek", "Lund"], "sentences": [["Karin Ek was born in Malmö. ", "She wrote."], ["A town."]]}
    record = {"question": "Where was the founder born?", "answer": "Malmö", "context": context}
    expected = "Ek: Karin Ek was born in Malmö. She wrote.\n\nLund: A town.\n\nWhere was the founder born?"
    assert row_of(tmp_path, record)["prompt"] == expected


@pytest.mark.parametrize("name", ["context", "document", "background", "text"])
def test_a_text_that_questions_do_without_stays_beside_and_is_named(tmp_path: Path, name: str) -> None:
    records = [
        {name: f"From the autumn contest of {year}.", "question": f"{year}+1?", "answer": str(year + 1)}
        for year in range(3)
    ]
    notes = Notes()
    _, rows = read_file(write_lines(tmp_path, *records), tmp_path, notes)
    assert [row["prompt"] for row in rows] == ["0+1?", "1+1?", "2+1?"]
    assert notes.notes == [f"train.jsonl: columns that are not used: {name} (a text: do questions need it?)"]


def test_body_in_any_case_is_the_problem(tmp_path: Path) -> None:
    record = {"body": "Two red apples and three green ones lie there.", "question": "How many?", "answer": "5"}
    assert row_of(tmp_path, record)["prompt"] == "Two red apples and three green ones lie there. How many?"


@pytest.mark.parametrize(
    ("record", "prompt"),
    [
        ({"text": "A page of some corpus.", "query": "1+1?"}, "1+1?"),
        ({"content": "A page of some corpus.", "question_text": "1+1?"}, "1+1?"),
        ({"input": "1 2 3", "problem_statement": "Add them."}, "Add them."),
        ({"question": "q1", "Question": "How many are 1 and 1?"}, "How many are 1 and 1?"),
        ({"Question": "q1", "question": "How many are 1 and 1?"}, "How many are 1 and 1?"),
        ({" question ": "1+1?"}, "1+1?"),
        ({"\ufeffquestion": "1+1?"}, "1+1?"),
        ({"question_stem": "1+1 is"}, "1+1 is"),
    ],
)
def test_the_column_that_asks_is_the_prompt(tmp_path: Path, record: dict[str, str], prompt: str) -> None:
    assert row_of(tmp_path, {**record, "answer": "2"})["prompt"] == prompt


def test_a_prompt_that_all_records_share_is_not_the_question(tmp_path: Path) -> None:
    records = [{"prompt": "Answer in one word.", "question": f"{n}+1?", "answer": str(n + 1)} for n in range(3)]
    assert [row["prompt"] for row in rows_of(tmp_path, *records)] == ["0+1?", "1+1?", "2+1?"]
    assert [row["prompt"] for row in rows_of(tmp_path, *records[:1])] == ["Answer in one word."]


# Options.


@pytest.mark.parametrize(
    "answered",
    [
        {"options": "iron|argon|tin", "answer": "B"},
        {"options": "iron | argon | tin", "answer": "argon"},
        {"options": "iron; argon; tin", "answer": "B"},
        {"options": "iron\nargon\ntin\n", "answer": "B"},
        {"choices": "['iron', 'argon', 'tin']", "answer": "B"},
        {"choices": '["iron", "argon", "tin"]', "answer": "B"},
        {"choices": "['iron' 'argon'\n 'tin']", "answer_index": 1},
        {"choices": "{'text': ['iron', 'argon', 'tin'], 'label': ['A', 'B', 'C']}", "answerKey": "B"},
        {"options": "(A) iron (B) argon (C) tin", "answer": "B"},
        {"options": "a ) iron , b ) argon , c ) tin", "correct": "b"},
        {"options": "a. iron; b. argon; c. tin", "answer": "b"},
        {"answers": ["iron", "argon", "tin"], "label": 1},
        {"sol1": "iron", "sol2": "argon", "sol3": "tin", "label": "B"},
        {"answerA": "iron", "answerB": "argon", "answerC": "tin", "label": "B"},
    ],
)
def test_options_in_many_forms(tmp_path: Path, answered: dict[str, Any]) -> None:
    zero = {**answered, "question": "Which is a metal?"}
    for name in ("answer_index", "label"):
        if isinstance(answered.get(name), int):
            zero[name] = 0  # It says that indices count from 0.
    rows = rows_of(tmp_path, {"question": QUESTION, **answered}, zero)
    assert (rows[0]["prompt"], rows[0]["gold"], rows[0]["verifier"]) == (SHOWN, "B", "choice")


@pytest.mark.parametrize(
    "record",
    [
        {"question": "Name both.", "answers": ["iron", "argon"], "answer": "iron"},
        {"question": "6*7?", "sol1": "6*7 = 42", "sol2": "7*6 = 42", "answer": "1"},
        {"question": "How far?", "answer1": "3 km", "answer2": "3000 m", "answer": "3 km"},
    ],
)
def test_what_only_looks_like_options_makes_no_choice(tmp_path: Path, record: dict[str, Any]) -> None:
    row = row_of(tmp_path, record)
    assert (row["verifier"], row["prompt"]) == ("math", record["question"])


def test_goals_and_sentences_ask_beside_options(tmp_path: Path) -> None:
    goal = {"goal": "Open a jar.", "sol1": "Twist the lid.", "sol2": "Shout.", "label": 0}
    assert rows_of(tmp_path, goal)[0]["prompt"] == "Open a jar.\n\nA. Twist the lid.\nB. Shout."
    gap = {"sentence": "The _ was too big.", "option1": "box", "option2": "bag", "answer": "2"}
    assert rows_of(tmp_path, gap)[0]["gold"] == "B"


def test_rows_without_options_beside_others_are_open_questions(tmp_path: Path) -> None:
    records = [
        {"question": "1+1?", "options": None, "answer": "2"},
        {"question": "1+2?", "options": [], "answer": 3},
        {"question": "1+3?", "options": "", "answer": ["4", "four"]},
        {"question": QUESTION, "options": ["iron", "argon", "tin"], "answer": "B"},
        {"question": "Which?", "options": None, "answer": "B"},
        {"question": "Which?", "options": None, "answer": None},
    ]
    rows = rows_of(tmp_path, *records)
    assert [(row["verifier"], row["domain"], row["gold"]) for row in rows] == [
        ("math", "math", "2"),
        ("math", "math", "3"),
        ("math", "math", "4"),
        ("choice", "choice", "B"),
    ]
    assert json.loads(rows[2]["verifier_args"]) == {"other_golds": ["four"]}
    assert [reject["reason"] for reject in rejects(tmp_path)] == ["answer_no_option"] * 2


def test_options_that_are_not_read_are_no_open_question(tmp_path: Path) -> None:
    record = {"question": QUESTION, "options": "iron, argon or tin", "answer": "B"}
    good = {"question": "Which?", "options": "iron, argon or tin", "answer": "C"}
    with pytest.raises(InputError, match="answer_no_option: "):
        read_file(write_lines(tmp_path, record, good), tmp_path)


def test_a_list_of_letters_is_accepted_answers_of_an_open_question(tmp_path: Path) -> None:
    row = row_of(tmp_path, {"question": "Which blood group has it?", "answer": ["A", "B"]})
    assert (row["verifier"], row["gold"], json.loads(row["verifier_args"])) == ("math", "A", {"other_golds": ["B"]})
    row = row_of(tmp_path, {"question": QUESTION, "choices": ["iron", "argon", "neon"], "answer": ["B", "C"]})
    assert (row["verifier"], row["gold"]) == ("choice", "BC")
    assert json.loads(row["verifier_args"])["multiple"] is True
    listed = f"{QUESTION}\nA. iron\nB. argon\nC. neon"
    row = row_of(tmp_path, {"question": listed, "answer": ["C", "(B)"]})
    assert (row["verifier"], row["gold"]) == ("choice", "BC")
    assert json.loads(row["verifier_args"]) == {"options": ["iron", "argon", "neon"], "multiple": True}
    row = row_of(tmp_path, {"question": listed, "answer": "B", "other_golds": ["C"]})
    assert (row["gold"], json.loads(row["verifier_args"])["other_golds"]) == ("B", ["C"])


# Golds.


@pytest.mark.parametrize("text", ["nan", "NaN", "<NA>", "NaT", "null", "NULL", "None", "\\N", " nan "])
def test_what_writers_of_tables_leave_is_no_gold(tmp_path: Path, text: str) -> None:
    rows_of(tmp_path, {"question": "1+1?", "answer": text}, {"question": "1+2?", "answer": "3"})
    (reject,) = rejects(tmp_path)
    assert reject["reason"] == "missing_gold"
    assert reject["detail"] == f"column 'answer' holds the text {text.strip()!r}, which is not an answer"


@pytest.mark.parametrize("text", ["none", "null set", "Nan", "None of them", "0", "no solution"])
def test_words_that_may_be_answers_are_golds(tmp_path: Path, text: str) -> None:
    assert row_of(tmp_path, {"question": "How many?", "answer": text})["gold"] == text


def test_none_is_an_answer_where_texts_are_compared(tmp_path: Path) -> None:
    assert row_of(tmp_path, {"question": "Who came?", "answer": "None"}, verifier="exact")["gold"] == "None"


@pytest.mark.parametrize(
    ("golds", "read"),
    [
        (["12.0", "216.0", "6.5"], ["12", "216", "6.5"]),
        (["12.0", "-3.0"], ["12", "-3"]),
        (["1234567.0", "0.0"], ["1234567", "0"]),
        (["2.0", "3.6", "3.56"], ["2.0", "3.6", "3.56"]),  # They are rounded to a number of places.
        (["2.50", "3.00"], ["2.50", "3.00"]),  # So are these.
        (["12.0"], ["12.0"]),  # One row tells nothing.
        (["12.0", "7", "9.0"], ["12.0", "7", "9.0"]),
        (["1.0.0", "2.0"], ["1.0.0", "2.0"]),
        (["12.0 km", "3.0 km"], ["12.0 km", "3.0 km"]),
        ([12.0, 6.5], ["12", "6.5"]),
    ],
)
def test_golds_that_were_floats_lose_their_zero(tmp_path: Path, golds: list[Any], read: list[str]) -> None:
    records = [{"question": f"Question {number}?", "answer": gold} for number, gold in enumerate(golds)]
    assert [row["gold"] for row in rows_of(tmp_path, *records)] == read


DAY = {"day": "", "month": "", "year": ""}


@pytest.mark.parametrize(
    ("answer", "golds"),
    [
        ({"number": "65", "date": DAY, "spans": []}, ["65"]),
        ({"number": "", "date": DAY, "spans": ["Ada Holm"]}, ["Ada Holm"]),
        ({"number": "", "date": {"day": "3", "month": "May", "year": "1871"}, "spans": []}, ["3 May 1871"]),
        ({"number": "", "date": {**DAY, "year": "1871"}, "spans": []}, ["1871"]),
        ({"number": None, "date": None, "spans": ["Lund"]}, ["Lund"]),
        ({"value": "Karin Ek", "aliases": ["K. Ek", "Karin Ek"], "type": "person"}, ["Karin Ek", "K. Ek"]),
        ({"value": "Lund", "aliases": []}, ["Lund"]),
        ({"value": "Lund", "aliases": None}, ["Lund"]),
    ],
)
def test_objects_of_known_forms_are_golds(tmp_path: Path, answer: dict[str, Any], golds: list[str]) -> None:
    row = row_of(tmp_path, {"question": "Which?", "answer": answer})
    assert [row["gold"], *json.loads(row["verifier_args"]).get("other_golds", [])] == golds


def test_answers_of_other_annotators_are_accepted(tmp_path: Path) -> None:
    others = {"number": ["", ""], "date": [DAY, DAY], "spans": [["Holm"], ["Ada", "Holm"]]}
    answer = {"number": "", "date": DAY, "spans": ["Ada Holm"]}
    row = row_of(tmp_path, {"question": "Who?", "answer": answer, "validated_answers": others})
    assert (row["gold"], json.loads(row["verifier_args"])) == ("Ada Holm", {"other_golds": ["Holm"]})


@pytest.mark.parametrize("answer", [{"number": "", "date": DAY, "spans": ["Herons", "Badgers"]}, {"value": "72"}])
def test_other_objects_are_rejects(tmp_path: Path, answer: dict[str, Any]) -> None:
    rows_of(tmp_path, {"question": "Which?", "answer": answer}, {"question": "1+1?", "answer": "2"})
    assert [reject["reason"] for reject in rejects(tmp_path)] == ["gold_not_text"]


# Messages.


@pytest.mark.parametrize(
    "text",
    [
        "[{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'What is 1+1?'}]",
        "[{'content': 'Be brief.', 'role': 'system'}\n {'content': 'What is 1+1?', 'role': 'user'}]",
        '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 1+1?"}]',
        "[{'from': 'system', 'value': 'Be brief.'}, {'from': 'human', 'value': \"What is 1+1?\"}]",
    ],
)
def test_messages_as_text_are_messages(tmp_path: Path, text: str) -> None:
    row = row_of(tmp_path, {"prompt": text, "answer": "2"})
    assert row["prompt"] == "What is 1+1?"
    assert json.loads(row["context"]) == [{"role": "system", "content": "Be brief."}]


def test_messages_that_cannot_be_read_are_rejects(tmp_path: Path) -> None:
    rows_of(
        tmp_path, {"prompt": "[{'role': 'user', 'content': 'What", "answer": "2"}, {"prompt": "1+1?", "answer": "2"}
    )
    (reject,) = rejects(tmp_path)
    assert reject["reason"] == "prompt_not_text" and "neither JSON nor Python" in reject["detail"]


@pytest.mark.parametrize("column", ["system", "instructions"])
@pytest.mark.parametrize(
    ("text", "is_message"),
    [
        ("You are a helpful assistant", True),
        ("Be brief.", True),
        ("Answer in French", True),
        ("Think step by step", True),
        ("所有长度以英里为单位。", True),
        ("All distances are given in miles", True),
        ("gpt-4o", False),
        ("GPT 4 turbo", False),
        ("metric system", False),
        ("solar system", False),
        ("Linux", False),
    ],
)
def test_a_system_column_is_a_message_where_it_says_something(
    tmp_path: Path, column: str, text: str, is_message: bool
) -> None:
    row = row_of(tmp_path, {"question": "1+1?", "answer": "2", column: text})
    assert (row["context"] is not None) == is_message
    assert row_of(tmp_path, {"question": "1+1?", "answer": "2", "system_prompt": text})["context"] is not None


# Tables.


def test_tables_with_odd_headers(tmp_path: Path) -> None:
    assert csv_row(tmp_path, '\ufeff question ; answer \n1,5+1?;"2,5"\n')["gold"] == "2,5"
    assert (
        csv_row(tmp_path, "question,Question,answer\nq1,How many are 1 and 1?,2\n")["prompt"] == "How many are 1 and 1?"
    )
    assert csv_row(tmp_path, "prompt,answer\n\"[{'role': 'user', 'content': '1+1?'}]\",2\n")["prompt"] == "1+1?"


@pytest.mark.parametrize(
    ("record", "prompt"),
    [
        ({"prompt": "What is the sum?", "text": "2 and 3"}, "What is the sum?"),
        ({"question": "What is the sum?", "text": "It is 5.", "response": "5"}, "What is the sum?"),
        ({"instruction": "Add.", "input": "2 and 3"}, "Add.\n\n2 and 3"),
    ],
)
def test_one_question_of_all_records_stays_the_question(tmp_path: Path, record: dict[str, str], prompt: str) -> None:
    rows = rows_of(tmp_path, *({**record, "answer": str(number)} for number in range(4)))
    assert [row["prompt"] for row in rows] == [prompt] * 4


@pytest.mark.parametrize(
    "record",
    [
        {"context": "From AIME 2015, problem 15 of part II", "question": "What is 13+2?", "answer": "15"},
        {"answer_a": "It is 3.", "answer_b": "It is 4.", "label": "A", "question": "Which is better?"},
        {"question": "|x| = 5?", "options": "|x|", "answer": "5"},
    ],
)
def test_what_only_looks_like_more_stays_beside(tmp_path: Path, record: dict[str, str]) -> None:
    row = row_of(tmp_path, record)
    assert (row["prompt"], row["verifier"]) == (record["question"], "math")


def test_contexts_may_be_passages_messages_or_chinese(tmp_path: Path) -> None:
    passages = [{"title": "Lund", "text": "The library opened in 1907."}]
    asked = {"question": "When did it open?", "answer": "1907"}
    expected = "Lund: The library opened in 1907.\n\nWhen did it open?"
    assert row_of(tmp_path, {**asked, "context": passages})["prompt"] == expected
    turns = [{"role": "user", "content": "The library opened in 1907."}]
    row = row_of(tmp_path, {**asked, "context": turns})
    assert (row["prompt"], json.loads(row["context"])) == ("When did it open?", turns)
    row = row_of(
        tmp_path, {"context": "琥珀图书馆于1907年开馆，位于隆德。", "question": "何时开馆？", "answer": "1907年"}
    )
    assert row["prompt"].startswith("琥珀图书馆")


def test_options_as_pandas_writes_them(tmp_path: Path) -> None:
    text = "{'text': array(['iron', 'argon', 'tin'], dtype=object), 'label': array(['A', 'B', 'C'], dtype=object)}"
    row = row_of(tmp_path, {"question": QUESTION, "choices": text, "answerKey": "B"})
    assert (row["prompt"], row["gold"]) == (SHOWN, "B")


def test_a_premise_of_some_rows_alone_belongs_to_their_questions(tmp_path: Path) -> None:
    first = {"question": "Find $T^2$.", "final_answer": ["49"], "context": "Suppose that $T$ is 7."}
    second = {"question": "Find $2+2$.", "final_answer": ["4"], "context": None}
    rows = rows_of(tmp_path, first, second)
    assert [row["prompt"] for row in rows] == ["Suppose that $T$ is 7.\n\nFind $T^2$.", "Find $2+2$."]


SENTENCES = [
    "Each box holds 12 pens, and since there are 5 boxes we multiply these and get 60 pens in all.",
    "Let x be the number that we look for, so that x / 6 = 9 and therefore x = 54.",
    "The train needs two hours for the way there, because it is 160 km at 80 km an hour.",
]


def test_sentences_without_a_marked_answer_are_no_golds(tmp_path: Path) -> None:
    records = [{"question": f"How many are there? ({number})", "answer": text} for number, text in enumerate(SENTENCES)]
    with pytest.raises(InputError, match="gold_is_prose: column 'answer' holds sentences and no marked answer"):
        rows_of(tmp_path, *records)
    assert len(rows_of(tmp_path, *records, columns={"prompt": "question", "gold": "answer"})) == 3


def test_a_sentence_among_answers_stays_for_the_check_of_golds(tmp_path: Path) -> None:
    answers = ["60", SENTENCES[1], "2"]
    rows = rows_of(tmp_path, *({"question": f"How many? ({text[:3]})", "answer": text} for text in answers))
    assert [row["gold"] for row in rows] == answers


# Solutions beside questions.


def times(template: str, **columns: str) -> list[dict[str, str]]:
    """Return questions of products, with a column for each template of `n` and the product."""
    records = []
    for n in range(12, 16):
        made = {name: text.format(n=n, p=n * 34) for name, text in columns.items()}
        records.append({**made, "question": template.format(n=n), "answer": str(n * 34)})
    return records


@pytest.mark.parametrize("column", ["context", "evidence", "passage", "background"])
@pytest.mark.parametrize(
    "text",
    [
        "Let us think. {n}*34 equals {p} by multiplying. So the answer is {p}.",
        "Multiply {n} and 34. The final answer is: **{p}**",
        "Multiply {n} and 34, which is \\boxed{{{p}}}.",
        "We multiply both numbers.\n#### {p}",
        "First {n}*30 = {n}0*3, and then {n}*4, so together {p}",
        "We need {n} times 34, which gives {p}.",
        "两数相乘，{n}乘以34。所以答案是{p}。",
        "The answer to the question of the product is {p}, as {n}*34 shows. Check it once more by hand.",
    ],
)
def test_a_solution_beside_a_question_is_no_part_of_the_prompt(tmp_path: Path, column: str, text: str) -> None:
    notes = Notes()
    records = times("What is {n} times 34?", **{column: text})
    _, rows = read_file(write_lines(tmp_path, *records), tmp_path, notes)
    assert [row["prompt"] for row in rows] == [record["question"] for record in records]
    assert notes.notes == [
        f"train.jsonl: columns that are not used: {column} (solutions: data.columns.solution={column})"
    ]


def test_a_solution_beside_options_is_no_part_of_the_prompt(tmp_path: Path) -> None:
    for end in ("So the answer is B.", "So the correct answer is argon."):
        record = {"question": QUESTION, "choices": ["iron", "argon", "tin"], "answer": "B"}
        record["context"] = f"Noble gases react with nothing. {end}"
        assert row_of(tmp_path, record)["prompt"] == SHOWN
        record["context"] = "Argon was seen in 1894."
        assert row_of(tmp_path, record)["prompt"] == f"Argon was seen in 1894.\n\n{SHOWN}"


def test_a_solution_among_passages_is_a_reject(tmp_path: Path) -> None:
    asked = {"question": "When was the library founded?", "answer": "1907"}
    giving = {**asked, "context": "It was long ago. So the answer is 1907."}
    rows = rows_of(tmp_path, *({**asked, "context": STORY} for _ in range(3)), giving)
    assert [row["prompt"] for row in rows] == [f"{STORY}\n\n{asked['question']}"] * 3
    assert [reject["reason"] for reject in rejects(tmp_path)] == ["answer_in_prompt"]


@pytest.mark.parametrize(
    "text",
    [
        "Level 5, taken from page {p} of the book",
        "Problem {p} of a large collection",
        "Prealgebra from the MATH data set, level 5",
        "Number {p} in the list of multiplication",
    ],
)
def test_what_is_told_of_a_row_stays_beside(tmp_path: Path, text: str) -> None:
    records = times("What is the multiplication of {n} and 34?", context=text)
    assert [row["prompt"] for row in rows_of(tmp_path, *records)] == [record["question"] for record in records]


@pytest.mark.parametrize(
    ("context", "question", "answer"),
    [
        ("The town of Lund had 4200 people in 1907.", "How many people had Lund in 1907?", "4200"),
        ("The river Orra runs for 312 km.", "How long is the river Orra?", "312 km"),
        ("The library opened in 1907. Its answer to the fire was a wall of stone.", "What was it built of?", "stone"),
        ("Suppose that x = 512.", "What is x?", "512"),
    ],
)
def test_a_text_with_the_answer_among_its_words_stays(tmp_path: Path, context: str, question: str, answer: str) -> None:
    row = row_of(tmp_path, {"context": context, "question": question, "answer": answer})
    assert row["prompt"] == f"{context}\n\n{question}"


@pytest.mark.parametrize("column", ["question", "text", "content", "body"])
@pytest.mark.parametrize("ask", ["What is {}+1?", "Compute {}+1.", "{}+1等于多少？"])
@pytest.mark.parametrize("count", [2, 4])
def test_a_text_that_asks_beside_a_shared_instruction_is_the_question(
    tmp_path: Path, column: str, ask: str, count: int
) -> None:
    records = [
        {"prompt": "You are a tutor. Answer.", column: ask.format(n), "answer": str(n + 1)} for n in range(count)
    ]
    assert [row["prompt"] for row in rows_of(tmp_path, *records)] == [ask.format(n) for n in range(count)]


@pytest.mark.parametrize(
    ("prompt", "column", "text"),
    [
        ("What is the sum?", "text", "{} and 1"),
        ("What is the sum?", "text", "Do we add {} and 1?"),
        ("You are a tutor. Answer.", "task text", "How many are {} and 1?"),
        ("Add.", "content", "the numbers {} and 1"),
    ],
)
def test_a_shared_prompt_beside_a_text_that_may_ask_is_an_error(
    tmp_path: Path, prompt: str, column: str, text: str
) -> None:
    records = [{"prompt": prompt, column: text.format(n), "answer": str(n + 1)} for n in range(3)]
    with pytest.raises(InputError, match=rf"the same text in column 'prompt'.* column '{column}'"):
        rows_of(tmp_path, *records)
    assert len(rows_of(tmp_path, *records, columns={"prompt": column, "gold": "answer"})) == 3


def test_an_input_stands_behind_a_shared_prompt(tmp_path: Path) -> None:
    records = [{"prompt": "Add these.", "input": f"{n} and 1", "answer": str(n + 1)} for n in range(3)]
    assert [row["prompt"] for row in rows_of(tmp_path, *records)] == [f"Add these.\n\n{n} and 1" for n in range(3)]


# Options in doubt.


@pytest.mark.parametrize(
    ("options", "answer", "gold", "first"),
    [
        (["B. two", "A. one", "C. three"], "A", "B", "two"),
        (["B. two", "A. one", "C. three"], "B. two", "A", "two"),
        (["B) two", "A) one", "C) three"], "(c)", "C", "two"),
        (["(b) two", "(a) one"], "A", "B", "two"),
        (["C: three", "B: two", "A: one"], "A", "C", "three"),
        (["B.two", "A.one"], "A", "B", "two"),
        (["2. two", "1. one", "3. three"], "1", "B", "two"),
        (["B. two", "C. three", "D. four"], "C", "B", "two"),
        ("B. two; A. one; C. three", "A", "B", "two"),
        ("['B. two', 'A. one']", "A", "B", "two"),
        (["A. one", "B. two"], "B", "B", "one"),
        (["B. subtilis", "E. coli", "S. aureus"], "B", "B", "B. subtilis"),
        (["A.D.", "B.C."], "B", "B", "A.D."),
        (["(A)A.", "(B)B."], "B", "B", "A."),
        (["A. D.", "B. C."], "B", "B", "D."),
        (["b:a", "a:b"], "B", "B", "b:a"),
    ],
)
def test_options_keep_to_their_own_letters(tmp_path: Path, options: Any, answer: str, gold: str, first: str) -> None:
    row = row_of(tmp_path, {"question": "Which?", "choices": options, "answer": answer})
    assert (row["gold"], json.loads(row["verifier_args"])["options"][0]) == (gold, first)


def test_a_letter_that_no_option_has_is_a_reject(tmp_path: Path) -> None:
    good = {"question": "Which?", "choices": ["iron", "tin"], "answer": "A"}
    rows_of(tmp_path, good, {"question": "Which?", "choices": ["C. three", "B. two"], "answer": "A"})
    assert [reject["reason"] for reject in rejects(tmp_path)] == ["answer_no_option"]


@pytest.mark.parametrize("options", [["B", "A", "D", "C"], ["x", "A"], ["a", "c", "b", "A"][1:]])
def test_letters_that_are_options_themselves_are_ambiguous(tmp_path: Path, options: list[str]) -> None:
    good = {"question": "Which?", "choices": ["iron", "tin"], "answer": "A"}
    rows_of(tmp_path, good, {"question": "Which?", "choices": options, "answer": "A"})
    (reject,) = rejects(tmp_path)
    assert reject["reason"] == "ambiguous_answer" and "the text of another one" in reject["detail"]


def test_letters_in_their_places_and_beyond_are_clear(tmp_path: Path) -> None:
    for options, answer, gold in ((["A", "B", "AB", "O"], "B", "B"), (["A", "B", "AB", "O"], "O", "D")):
        assert row_of(tmp_path, {"question": "Which?", "choices": options, "answer": answer})["gold"] == gold


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("|x| ; |y| ; 2|z|", ["|x|", "|y|", "2|z|"]),
        ("|x|;|y|", ["|x|", "|y|"]),
        ("|x| | |y|", ["|x|", "|y|"]),
        ("P(A|B) | P(B|A)", ["P(A|B)", "P(B|A)"]),
        ("P(A|B)\nP(B|A)", ["P(A|B)", "P(B|A)"]),
        ("(0, 1] | [2, 3)", ["(0, 1]", "[2, 3)"]),
        ("iron|argon|tin", ["iron", "argon", "tin"]),
        ("iron; argon; tin;", ["iron", "argon", "tin"]),
    ],
)
def test_bars_that_are_maths_separate_nothing(tmp_path: Path, text: str, options: list[str]) -> None:
    row = row_of(tmp_path, {"question": "Which?", "options": text, "answer": "A"})
    assert json.loads(row["verifier_args"])["options"] == options


@pytest.mark.parametrize("text", ["|x|", "|x| - |y|", "P(A|B)", "{x | x > 0}", "2|x||y|"])
def test_a_text_of_bars_is_no_list_of_options(tmp_path: Path, text: str) -> None:
    good = {"question": "Which?", "options": "iron|tin", "answer": "A"}
    rows_of(tmp_path, good, {"question": "Which?", "options": text, "answer": "A"})
    assert [reject["reason"] for reject in rejects(tmp_path)] == ["answer_no_option"]


# Golds in doubt.


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("48+24 = 72\n#### 72", "72"),
        ("It rains, so the answer is yes.\n#### yes", "yes"),
        ("He was born in 1907.\n#### Karin Ek", "Karin Ek"),
        ("42\n#### 42\n#### Note: round up", "42"),
        ("So it is\n#### 3 hours", "3 hours"),
        ("42\n#### Note: round up", None),
        ("42\n#### note: to 2 places", None),
        ("$42$\n#### Remark: see the book", None),
        ("42 km\n#### round it up", None),
        ("42\n#### 注：四舍五入", None),
        ("42\n####", None),
    ],
)
def test_a_note_behind_the_mark_is_no_gold(tmp_path: Path, text: str, gold: str | None) -> None:
    good = {"question": "How many?", "answer": "1+1 = 2\n#### 2"}
    rows = rows_of(tmp_path, good, {"question": "How much?", "answer": text})
    assert [row["gold"] for row in rows] == ["2", *([] if gold is None else [gold])]
    assert [reject["reason"] for reject in rejects(tmp_path)] == ([] if gold else ["gold_not_found"])


@pytest.mark.parametrize("column", ["label", "Label"])
@pytest.mark.parametrize(
    "beside", [{"target": "2"}, {"answer": "2"}, {"答案": "2"}, {"solution": "So it is \\boxed{2}."}]
)
def test_a_label_beside_another_gold_is_a_class(tmp_path: Path, column: str, beside: dict[str, str]) -> None:
    row = row_of(tmp_path, {"input": "0+2?", "problem": "0+2?", column: "0", **beside})
    assert row["gold"] == "2"
    assert row_of(tmp_path, {"problem": "0+2?", column: "2"})["gold"] == "2"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"question": "1+1?", "answer": "2", "answer": "3"}', "answer"),
        (b'{"question": "1+1?", "question": "1+2?", "answer": "3"}', "question"),
        (b'{"question":"1+1?","answer":"2","meta":{"answer":"3"},"answer" :4}', "answer"),
        (b'{"question": "1+1?", "reward_model": {"ground_truth": 2, "ground_truth": 3}}', "ground_truth"),
    ],
)
def test_a_key_that_stands_twice_is_a_reject(tmp_path: Path, line: bytes, key: str) -> None:
    rows_of(tmp_path, {"question": "1+1?", "answer": "2"}, line)
    (reject,) = rejects(tmp_path)
    assert (reject["reason"], reject["detail"]) == (
        "duplicate_key",
        f"the key '{key}' appears twice with different values",
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"question": "1+1?", "answer": "2", "answer": "2"}',
        b'{"question": "Is \\"answer\\" a word?", "answer": "2", "kind": "answer", "meta": {"answer": "3"}}',
    ],
)
def test_keys_that_only_seem_to_stand_twice_are_read(tmp_path: Path, line: bytes) -> None:
    assert [row["gold"] for row in rows_of(tmp_path, line)] == ["2"]


def test_an_object_of_many_keys_is_read_in_time(tmp_path: Path) -> None:
    record = {"question": "1+1?", "answer": "2", "table": {f"key {number}": number for number in range(50_000)}}
    started = time.monotonic()
    assert row_of(tmp_path, record)["gold"] == "2"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("text", ["\n" * 10**6, " \n" * 10**6, "\r\n" * 10**6, " " * 10**6])
def test_blank_lines_are_told_from_tests_in_time(text: str) -> None:
    started = time.monotonic()
    assert not are_tests(text)
    assert not is_test_code(text)
    assert time.monotonic() - started < 5
    assert is_test_code(text + "\n   assert f(1) == 2")


def test_conversations_without_gold_say_how_it_is_taken_from_the_last_turn(tmp_path):
    openai = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "So \\boxed{2}."}]
    sharegpt = [{"from": "human", "value": "1+1?"}, {"from": "gpt", "value": "1+1=2\n#### 2"}]
    for name, turns, gold in (
        ("messages", openai, "{column: messages.-1.content, extract: boxed}"),
        ("conversations", sharegpt, "{column: conversations.-1.value, extract: after ####}"),
    ):
        with pytest.raises(InputError) as refused:
            choose_layout(FileSource(path="x"), "x.jsonl", [{name: turns}])
        assert f"columns: {{prompt: {name}, gold: {gold}}}" in str(refused.value)


def test_records_in_a_list_of_one_object_are_told(tmp_path):
    records = [{"question": "1+1?", "answer": "2"}, {"question": "1+2?", "answer": "3"}]
    path = tmp_path / "set.json"
    for text in (json.dumps({"data": records}), json.dumps({"version": "1", "data": records}, indent=1)):
        path.write_text(text)
        with pytest.raises(InputError, match=r"one JSON object, whose list 'data' has the records.*jq -c '\.data\[\]'"):
            values = [record.values for record in open_file(path, "auto", 10**6).records]
            choose_layout(FileSource(path=str(path)), str(path), values)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("rows", [1, 20_000])
def test_utf_16_is_read_by_its_mark(tmp_path, encoding, rows):
    mark = "" if encoding == "utf-16" else "\ufeff"
    path = tmp_path / "excel.csv"
    path.write_bytes((mark + "question\tanswer\r\n" + "“é” 题 😀?\t2\r\n" * rows).encode(encoding))
    records = list(open_file(path, "auto", 10**6).records)
    assert len(records) == rows
    assert {tuple(record.values.items()) for record in records} == {(("question", "“é” 题 😀?"), ("answer", "2"))}


def test_damaged_utf_16_is_an_error(tmp_path):
    path = tmp_path / "cut.csv"
    path.write_bytes("a\tb\n1\t2\n".encode("utf-16") + b"\x00")
    with pytest.raises(InputError, match="damaged"):
        list(open_file(path, "auto", 10**6).records)
