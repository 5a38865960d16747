"""Rows that say more than their last user message: carried, rejected by what would be lost, or cut when asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ingest_files import GOOD, Notes, read_file, reject_of, rejects, row_of, write_lines
from test_export_formats import OF_CONVERSATIONS

from truegold import pipeline
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.export import convert as conversion
from truegold.pipeline.export.formats import FORMATS
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import context_of, row_id
from truegold.verifiers import InputError

SYSTEM = {"role": "system", "content": "Give the result in miles."}
USER = {"role": "user", "content": "How many do I have?"}
EARLIER = [{"role": "user", "content": "I have 3 apples."}, {"role": "assistant", "content": "Good."}]
TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
TEXT = {"type": "text", "text": "How many do I have?"}
PICTURE = {"type": "image_url", "image_url": {"url": "a.png"}}


def parts(*content: Any) -> list[dict[str, Any]]:
    """Return a conversation of one message with these parts."""
    return [{"role": "user", "content": list(content)}]


MILES = ("system", "Give the result in miles.")
BRIEFLY = ("system", "Briefly.")
TURNS = [("user", "I have 3 apples."), ("assistant", "Good.")]
CARRIED: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"prompt": [SYSTEM, USER]}, [MILES]),
    ({"prompt": [{**SYSTEM, "role": "developer"}, USER]}, [MILES]),
    ({"prompt": [{**SYSTEM, "role": " DEVELOPER"}, {**USER, "role": "User"}]}, [MILES]),
    ({"prompt": [USER, SYSTEM]}, [MILES]),
    ({"prompt": [{**SYSTEM, "role": "系统"}, {**USER, "role": "用户"}]}, [MILES]),
    ({"prompt": [{**EARLIER[0], "role": "问"}, {**EARLIER[1], "role": "助手"}, {**USER, "role": "问"}]}, TURNS),
    ({"prompt": [{"role": "system", "content": [{"type": "text", "text": "Briefly."}]}, USER]}, [BRIEFLY]),
    ({"prompt": json.dumps([SYSTEM, USER])}, [MILES]),
    ({"prompt": [SYSTEM, *EARLIER, USER]}, [MILES, *TURNS]),
    ({"prompt": [*EARLIER, USER]}, TURNS),
    ({"prompt": [*EARLIER, USER, {"role": "assistant", "content": "3"}]}, TURNS),
    ({"prompt": [EARLIER[0], USER]}, TURNS[:1]),
    ({"prompt": [EARLIER[1], USER]}, TURNS[1:]),
    ({"prompt": [{**EARLIER[0], "role": "User"}, {**USER, "role": "USER"}]}, TURNS[:1]),
    ({"prompt": [{"from": "human", "value": "I have 3 apples."}, {"from": "gpt", "value": "Good."}, USER]}, TURNS),
    ({"prompt": [USER], "system": "Give the result in miles."}, [MILES]),
    ({"prompt": "How many do I have?", "system": "请用中文回答。"}, [("system", "请用中文回答。")]),
    ({"prompt": "How many do I have?", "system_prompt": "Briefly."}, [BRIEFLY]),
    ({"prompt": [SYSTEM, USER], "system_prompt": "Briefly."}, [("system", "Give the result in miles.\n\nBriefly.")]),
    ({"prompt": [SYSTEM, USER], "system": "Give the result in miles."}, [MILES]),
    ({"prompt": "How many do I have?", "history": [["I have 3 apples.", "Good."]]}, TURNS),
    ({"prompt": "How many do I have?", "history": [["I have 3 apples.", ""]]}, TURNS[:1]),
    ({"prompt": "How many do I have?", "chat_history": json.dumps(EARLIER)}, TURNS),
    ({"prompt": "How many do I have?", "responses_create_params": {"input": [SYSTEM, USER]}}, [MILES]),
    (
        {"prompt": "How many do I have?", "responses_create_params": {"input": "Hm", "instructions": "Briefly."}},
        [BRIEFLY],
    ),
    ({"prompt": "How many do I have?", "messages": [SYSTEM, USER]}, [MILES]),
    ({"prompt": "How many do I have?", "messages": json.dumps([SYSTEM, USER])}, [MILES]),
    ({"prompt": "How many do I have?", "conversation": [{**SYSTEM, "role": "System"}, USER]}, [MILES]),
    ({"prompt": [USER], "messages": [SYSTEM, USER, {"role": "assistant", "content": "7"}]}, [MILES]),
    ({"prompt": "How many do I have?", "messages": [*EARLIER, USER]}, TURNS),
    ({"prompt": "How many do I have?", "messages": [USER, EARLIER[1], EARLIER[0]]}, []),
    ({"prompt": "How many do I have?", "messages": [SYSTEM, {"role": "user", "content": "Now: how many?"}]}, [MILES]),
    (
        {
            "prompt": "How many do I have?",
            "conversations": [{"from": "system", "value": "Briefly."}, {"from": "human", "value": "How many"}],
        },
        [BRIEFLY],
    ),
]


@pytest.mark.parametrize(("record", "context"), CARRIED)
def test_what_stands_before_the_question_is_carried(
    tmp_path: Path, record: dict[str, Any], context: list[tuple[str, str]]
) -> None:
    row = row_of(tmp_path, {**record, "gold": "7"})
    assert row["prompt"] == "How many do I have?"
    assert [(message["role"], message["content"]) for message in context_of(row)] == context


@pytest.mark.parametrize(("record", "context"), [case for case in CARRIED if case[1]])
def test_the_last_turn_alone_is_kept_when_asked(
    tmp_path: Path, record: dict[str, Any], context: list[tuple[str, str]]
) -> None:
    notes = Notes()
    report, (row,) = read_file(write_lines(tmp_path, {**record, "gold": "7"}), tmp_path, notes, last_turn_only=True)
    assert (row["prompt"], row["context"]) == ("How many do I have?", None)
    assert report.counts == {"warn:last_turn_only": 1}
    lost = {role for role, _ in context}
    assert ("1 system_message" in notes.notes[0]) == ("system" in lost)
    assert ("1 earlier_turns" in notes.notes[0]) == bool(lost - {"system"})


def test_further_turns_enter_the_id_and_system_messages_do_not(tmp_path: Path) -> None:
    records = [{"prompt": prompt, "gold": "7"} for prompt in ([USER], [SYSTEM, USER], [*EARLIER, USER])]
    _, (alone, with_system, with_turns) = read_file(write_lines(tmp_path, *records), tmp_path)
    assert alone["id"] == with_system["id"] == row_id(USER["content"], "7")
    assert with_turns["id"] not in (alone["id"], row_id("I have 3 apples.", "7"))


LOST: list[tuple[dict[str, Any], str]] = [
    ({"prompt": [EARLIER[0], {"role": "assistant", "tool_calls": [TOOL]}, USER]}, "tools"),
    ({"prompt": [EARLIER[0], {"role": "tool", "content": "4"}, USER]}, "tools"),
    ({"prompt": [EARLIER[0], {"role": "critic", "content": "4"}, USER]}, "earlier_turns"),
    ({"prompt": [{"role": "user", "content": [TEXT, PICTURE]}, EARLIER[1], USER]}, "pictures"),
    ({"prompt": "How many?", "history": [["a", "b", "c"]]}, "earlier_turns"),
    ({"prompt": "How many?", "responses_create_params": {"input": [USER], "tools": [TOOL]}}, "tools"),
    ({"prompt": "How many?", "messages": [*EARLIER, USER]}, "earlier_turns"),
    ({"prompt": parts(TEXT, PICTURE)}, "pictures"),
    ({"prompt": parts(TEXT, {"type": "image"})}, "pictures"),
    ({"prompt": parts({"type": "input_image", "image_url": "a.png"}, TEXT)}, "pictures"),
    ({"prompt": parts({"text": "q?", "image": "a.png"})}, "pictures"),
    ({"prompt": [USER], "images": [{"bytes": None, "path": "a.png"}]}, "pictures"),
    ({"prompt": "<image> How many?", "images": ["a.png"]}, "pictures"),
    ({"prompt": "How many?", "image": "a.png"}, "pictures"),
    ({"prompt": "How many?", "image": '["a.png"]'}, "pictures"),
    ({"prompt": [{**USER, "images": ["a.png"]}]}, "pictures"),
    ({"prompt": parts(TEXT, {"type": "input_audio", "input_audio": {"data": "x"}})}, "media"),
    ({"prompt": parts(TEXT, {"type": "video", "video": "a.mp4"})}, "media"),
    ({"prompt": "What does he say?", "audio": {"path": "a.wav", "bytes": None}}, "media"),
    ({"prompt": [USER], "tools": [TOOL]}, "tools"),
    ({"prompt": [USER], "tools": json.dumps([TOOL])}, "tools"),
    ({"prompt": [USER], "tools": [json.dumps(TOOL)]}, "tools"),
    ({"prompt": [USER], "tools": {"search": {"description": "Searches."}}}, "tools"),
    ({"prompt": [USER], "functions": [{"name": "search", "parameters": {}}]}, "tools"),
    ({"prompt": [{"role": "system", "content": "", "tools": json.dumps([TOOL])}, USER]}, "tools"),
    ({"prompt": "How many?", "tools": [{"name": "search", "description": "Searches."}]}, "tools"),
    (
        {
            "prompt": "How many?",
            "conversations": [{"from": who, "value": "Good."} for who in ("human", "gpt", "human", "gpt")],
        },
        "earlier_turns",
    ),
    ({"prompt": "How many?", "messages": parts(TEXT, PICTURE)}, "pictures"),
    ({"prompt": "How many?", "img": "a.png"}, "pictures"),
    ({"prompt": "How many?", "img": [{"bytes": "iVBO"}]}, "pictures"),
    ({"prompt": "How many?", "multi_modal_data": {"image": ["a.png"]}}, "media"),
]


@pytest.mark.parametrize(("record", "reason"), LOST)
def test_what_would_be_lost_is_the_reason_of_a_reject(tmp_path: Path, record: dict[str, Any], reason: str) -> None:
    reject = reject_of(tmp_path, {**record, "gold": "7"})
    assert reject["reason"] == reason
    assert "--last-turn-only" in reject["detail"]


@pytest.mark.parametrize(("record", "reason"), LOST)
def test_the_last_turn_alone_is_kept_when_asked_and_counted(
    tmp_path: Path, record: dict[str, Any], reason: str
) -> None:
    notes = Notes()
    path = write_lines(tmp_path, {**record, "gold": "7"}, GOOD)
    report, (row, _) = read_file(path, tmp_path, notes, last_turn_only=True)
    assert row["prompt"].replace("<image> ", "") in ("How many do I have?", "How many?", "What does he say?", "q?")
    assert report.counts == {"warn:last_turn_only": 1}
    assert notes.notes[0].startswith("1 row(s) were cut to their last user message; what they lost: 1 ")
    assert f"1 {reason}" in notes.notes[0]


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": [USER]},
        {"prompt": [{"role": "system", "content": ""}, USER]},
        {"prompt": [{"role": "system", "content": None}, USER]},
        {"prompt": [{"role": "system", "content": " \n"}, {"role": "system", "content": []}, USER]},
        {"prompt": [{"role": "system", "content": [{"type": "text", "text": ""}]}, USER]},
        {"prompt": json.dumps([USER])},
        {"prompt": [USER, {"role": "assistant", "content": "7"}]},
        {"prompt": [USER, {"role": "assistant", "content": "Let us think"}, {"role": "tool", "content": "7"}]},
        {"prompt": [{"content": "How many do I have?"}]},
        {"prompt": [{"role": "human", "content": "How many do I have?"}]},
        {"prompt": parts(TEXT)},
        {"prompt": parts({"type": "text", "text": "How many"}, {"type": "input_text", "text": "do I have?"})},
        {"prompt": parts({**TEXT, "image_url": None, "image": None})},
        {"prompt": [{**USER, "tool_calls": None, "name": None, "images": []}]},
        {"prompt": [{**USER, "role": "User"}, {"role": "Assistant", "content": "7"}]},
        {"prompt": [USER], "messages": [USER, {"role": "assistant", "content": "7"}]},
        {"problem": "How many do I have?", "messages": json.dumps([USER, {"role": "assistant", "content": "7"}])},
        {"prompt": [USER], "conversations": [{"from": "human", "value": "How many?"}, {"from": "gpt", "value": "7"}]},
        {"prompt": [USER], "conversation": "of Monday", "conversations": 3, "messages": []},
        {"prompt": [USER], "messages": [{"role": "system", "content": ""}, USER]},
        {"prompt": [USER], "img": None, "multi_modal_data": {"image": None}},
        {"prompt": [USER], "images": None, "tools": None, "image": "", "audio": "  "},
        {"prompt": [USER], "images": [], "tools": [], "functions": [], "history": []},
        {"prompt": [USER], "images": "[]", "tools": "[]", "image": [{"bytes": None, "path": None}]},
        {"prompt": [USER], "tools": "calculator", "functions": "trigonometry"},
        {"prompt": [USER], "tools": ["calculator", "search"]},
        {"prompt": [USER], "system": "gpt-4o", "history": "no"},
        {"prompt": [USER], "image": False, "video": 0},
        {"prompt": "How many do I have?", "functions": [{"name": "f", "type": "int"}]},
        {"prompt": "How many do I have?", "responses_create_params": {"input": [USER], "tools": []}},
    ],
)
def test_what_loses_nothing_is_kept_without_a_word(tmp_path: Path, record: dict[str, Any]) -> None:
    notes = Notes()
    report, (row,) = read_file(write_lines(tmp_path, {**record, "gold": "7"}), tmp_path, notes)
    assert row["prompt"].split() == ["How", "many", "do", "I", "have?"]
    assert (report.counts, notes.notes) == ({}, [])


def test_a_prompt_that_only_links_to_pictures_is_rejected_and_words_beside_them_are_kept(tmp_path: Path) -> None:
    link = "![figure](https://a.org/b.png)"
    assert reject_of(tmp_path, {"prompt": f"{link}\n<img src='c.png'>", "gold": "7"})["reason"] == "pictures"
    _, (row,) = read_file(write_lines(tmp_path, {"prompt": f"{link} How many?", "gold": "7"}), tmp_path, Notes())
    assert row["prompt"] == f"{link} How many?"


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_a_conversation_in_which_nobody_asks_has_no_prompt(tmp_path: Path, role: str) -> None:
    record = {"prompt": [{"role": role, "content": "24 * 5 = 120"}], "gold": "7"}
    assert reject_of(tmp_path, record, last_turn_only=True)["reason"] in ("missing_prompt", "system_message")


def test_a_column_that_is_taken_as_something_else_loses_nothing(tmp_path: Path) -> None:
    record = {"question": "How many?", "image": "p-7", "system": "Say how many.", "gold": "7"}
    row = row_of(tmp_path, record, columns={"prompt": "system", "gold": "gold", "id": "image"})
    assert (row["prompt"], json.loads(row["meta"])["source_id"]) == ("Say how many.", "p-7")


def test_a_file_of_such_rows_ends_with_the_reason_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_file(write_lines(tmp_path, *[{"prompt": [USER], "image": "a.png", "gold": "7"}] * 3), tmp_path)
    assert "none of its 3 rows can be used; the first is line 1: pictures" in caught.value.message
    assert "--last-turn-only (data.last_turn_only: true) keeps the last user message" in caught.value.message


def test_every_preset_of_conversations_and_of_programs_carries_them(tmp_path: Path) -> None:
    cases = [{"input": "1\n", "output": "2\n"}]
    for record in (
        {"prompt": [SYSTEM, USER], "reward_model": {"ground_truth": "7"}},
        {"prompt": [SYSTEM, USER], "reward_model": {"ground_truth": cases}},
        {"messages": [SYSTEM, USER], "ground_truth": ["7"], "dataset": ["math"]},
        {"prompt": [SYSTEM, USER], "solution": "\\boxed{7}"},
        {"input": [SYSTEM, USER], "target": ["7"]},
        {"problem": "How many?", "answer": "7", "messages": [SYSTEM, USER]},
        {
            "question": "How many?",
            "answer": "#### 7",
            "conversations": json.dumps([{"from": "system", "value": "Hm."}]),
        },
        {"question": "Add one.", "system_prompt": "In Python.", "input_output": {"inputs": ["1"], "outputs": ["2"]}},
    ):
        (message,) = context_of(row_of(tmp_path, record))
        assert message["role"] == "system"
    nested = {"responses_create_params": {"input": [USER], "instructions": "In miles."}, "expected": "7"}
    columns = {"prompt": "responses_create_params.input", "gold": "expected"}
    assert context_of(row_of(tmp_path, nested, columns=columns)) == [{"role": "system", "content": "In miles."}]


def test_parquet_and_frames_say_the_same(tmp_path: Path) -> None:
    picture = {"role": "user", "content": "Which?", "images": ["a.png"]}
    records = [{"prompt": [picture], "gold": "7", "tools": None}, {"prompt": [USER], "gold": "8", "tools": [TOOL]}]
    records.append({"prompt": [SYSTEM, USER], "gold": "9", "tools": []})
    pl.DataFrame(records).write_parquet(tmp_path / "train.parquet")
    _, (row,) = read_file(tmp_path / "train.parquet", tmp_path)
    assert (row["gold"], [entry["reason"] for entry in rejects(tmp_path)]) == ("9", ["pictures", "tools"])
    for form in (records, pl.DataFrame(records)):
        curated = pipeline.curate(form)
        assert curated.rejects["reason"].to_list() == ["pictures", "tools"]
        # Without what stands before it, one question has three answers.
        with pytest.raises(InputError, match=r"(?s)No row is left.*held back: conflicting_labels"):
            pipeline.curate(form, last_turn_only=True)
        assert pipeline.find_flags(form, last_turn_only=True).rejects.is_empty()


@pytest.mark.parametrize("name", OF_CONVERSATIONS)
def test_a_conversation_comes_back_from_every_export_as_it_was(tmp_path: Path, name: str) -> None:
    records = [{"prompt": [*turns, USER], "gold": "7"} for turns in ([], [SYSTEM], EARLIER, [SYSTEM, *EARLIER])]
    path = write_lines(tmp_path, *records)
    written = conversion.convert(
        path, FORMATS[name], tmp_path / "out", NullProgress(), FileSource(path=str(path)), None
    )
    (split,) = written.splits
    assert conversion.check(split, FORMATS[name]).mistakes == ()
    _, before = read_file(path, tmp_path)
    _, after = read_file(split, tmp_path)
    assert [{**row, "source": "", "meta": ""} for row in after] == [{**row, "source": "", "meta": ""} for row in before]


@pytest.mark.parametrize("name", OF_CONVERSATIONS)
def test_the_system_message_of_an_export_stands_before_rows_without_one(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path, {"prompt": [USER], "gold": "7"}, {"prompt": [SYSTEM, USER], "gold": "8"})
    source = FileSource(path=str(path))
    written = conversion.convert(path, FORMATS[name], tmp_path / "out", NullProgress(), source, "Be brief.")
    (split,) = written.splits
    assert conversion.check(split, FORMATS[name]).mistakes == ()
    _, before = read_file(path, tmp_path)
    _, after = read_file(split, tmp_path)
    assert [row["id"] for row in after] == [row["id"] for row in before]
    if name != "hf":  # It has the prompt as a text.
        assert [context_of(row)[0]["content"] for row in after] == ["Be brief.", SYSTEM["content"]]


@pytest.mark.parametrize(
    ("history", "outcome"),
    [
        ([SYSTEM, *EARLIER], [MILES, *TURNS]),
        ([EARLIER[0], {"role": "tool", "content": "4"}], "tools"),
        ([{"role": "user", "content": [TEXT, PICTURE]}], "pictures"),
        ("User: I have 3 apples.\\nAssistant: Good.", "earlier_turns"),
    ],
)
def test_a_history_is_carried_or_refused_whole(tmp_path: Path, history: Any, outcome: Any) -> None:
    record = {"prompt": "How many do I have?", "history": history, "gold": "7"}
    if isinstance(outcome, str):
        assert reject_of(tmp_path, record)["reason"] == outcome
        return
    row = row_of(tmp_path, record)
    assert [(message["role"], message["content"]) for message in context_of(row)] == outcome
