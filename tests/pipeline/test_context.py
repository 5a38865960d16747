"""The messages before a question: what a model is given, what verifiers get, and what is compared of a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ingest_files import write_lines
from report_pages import shown_rows
from test_chat import TEMPLATE, encoder
from test_export_formats import WITHOUT_COMPLETIONS

from truegold import pipeline
from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.export.convert import convert
from truegold.pipeline.export.formats import FORMATS
from truegold.pipeline.problems import ProblemColumns, make_item_reader
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.tables.conversation import SHARED_ROWS, compared_text, find_shared_systems
from truegold.pipeline.tables.rows import ROW_SCHEMA, context_of, messages_of_row, problem_of, write_rows
from truegold.verifiers import Item

SYSTEM = {"role": "system", "content": "Answer in miles."}
TURNS = [{"role": "user", "content": "I drove 16 km."}, {"role": "assistant", "content": "Noted."}]


def row(prompt: str, *context: dict[str, str], source: str = "a.jsonl") -> dict[str, Any]:
    """Return the columns of a row that its conversation is read from."""
    return {"prompt": prompt, "context": json.dumps(context) if context else None, "source": source}


def test_a_row_without_context_is_its_prompt() -> None:
    alone = row("How far was that?")
    assert (context_of(alone), problem_of(alone), compared_text(alone, None)) == ([], alone["prompt"], alone["prompt"])
    assert messages_of_row(alone) == [{"role": "user", "content": "How far was that?"}]


def test_a_problem_is_the_whole_conversation() -> None:
    whole = row("How far was that?", SYSTEM, *TURNS)
    assert problem_of(whole) == (
        "System: Answer in miles.\n\nUser: I drove 16 km.\n\nAssistant: Noted.\n\nUser: How far was that?"
    )
    assert compared_text(whole, frozenset()) == problem_of(whole)
    assert compared_text(whole, {("a.jsonl", "Answer in miles.")}) == problem_of(row("How far was that?", *TURNS))
    assert compared_text(whole, {("b.jsonl", "Answer in miles.")}) == problem_of(whole)


@pytest.mark.parametrize(
    ("systems", "shared"),
    [
        (["A"] * 3, ["A"]),
        (["A"] * 3 + ["B", "C"], ["A"]),
        (["A", "B"], []),
        (["A"], []),
        (["A"] * SHARED_ROWS + ["B"] * 90, ["A", "B"]),
        (["A"] * (SHARED_ROWS - 1) + ["B"] * 90, ["B"]),
        ([None] * 90 + ["A", "A"], ["A"]),
    ],
)
def test_a_system_message_that_many_rows_share_is_a_template(
    tmp_path: Path, systems: list[str | None], shared: list[str]
) -> None:
    rows = [row("1+1?", *([{"role": "system", "content": text}] if text else [])) for text in systems]
    write_rows(tmp_path / "rows.parquet", [{**each, "source_row": 1} for each in rows], ROW_SCHEMA)
    assert find_shared_systems(tmp_path / "rows.parquet") == {("a.jsonl", text) for text in shared}


def test_the_template_gets_the_context_before_the_prompt() -> None:
    chat = ChatConfig(system="Be brief.", user="{prompt} Think.")
    made = encoder("<s>" + TEMPLATE, chat)
    turns = "<user>I drove 16 km.</user><assistant>Noted.</assistant><user>How far? Think.</user><assistant>"
    assert made.decode(made.encode("How far?", TURNS)) == f"<system>Be brief.</system>{turns}"
    assert made.decode(made.encode("How far?", [SYSTEM, *TURNS])) == f"<system>Answer in miles.</system>{turns}"


def test_without_a_template_speakers_are_named_where_somebody_answers() -> None:
    made = encoder(None, ChatConfig())
    assert made.decode(made.encode("How far?", [SYSTEM])) == "Answer in miles.\n\nHow far?"
    assert made.decode(made.encode("How far?", TURNS)) == "User: I drove 16 km.\n\nAssistant: Noted.\n\nUser: How far?"


def curate(folder: Path, *records: dict[str, Any], **settings: Any) -> pipeline.Curated:
    return pipeline.curate(write_lines(folder, *records), **settings)


LONG = "You are a careful tutor. " * 40
NUMBERS = [(3, 5), (12, 7), (41, 2), (8, 9), (23, 31)]


def test_a_long_shared_system_message_makes_no_duplicates(tmp_path: Path) -> None:
    system = {"role": "system", "content": LONG}
    records = [
        {"prompt": [system, {"role": "user", "content": f"What is {a} plus {b}?"}], "gold": str(a + b)}
        for a, b in NUMBERS
    ]
    curated = curate(tmp_path, *records)
    assert len(curated.rows) == 5
    assert {message["content"] for each in curated.rows.to_dicts() for message in context_of(each)} == {LONG}


def test_one_question_behind_other_turns_is_another_problem(tmp_path: Path) -> None:
    def record(apples: int) -> dict[str, Any]:
        turns = [{"role": "user", "content": f"I have {apples} apples."}, {"role": "assistant", "content": "Good."}]
        return {"prompt": [*turns, {"role": "user", "content": "How many do I have?"}], "gold": str(apples)}

    curated = curate(tmp_path, record(3), record(4), record(3))
    assert sorted(curated.rows["gold"].to_list()) == ["3", "4"]
    assert curated.dropped["drop_reason"].to_list() == ["exact_duplicate"]
    assert curated.flags.is_empty() or "conflicting_labels" not in curated.flags["reason"].to_list()


def test_a_leak_behind_a_shared_system_message_is_dropped(tmp_path: Path) -> None:
    leak = "A farmer has 17 sheep, sells 9 of them at the market and buys 4 goats. How many animals has he got now?"
    system = {"role": "system", "content": LONG}
    others = [
        {"prompt": [system, {"role": "user", "content": f"What is {a} times {b}?"}], "gold": str(a * b)}
        for a, b in NUMBERS
    ]
    items = write_lines(tmp_path, {"question": leak, "answer": "12"}, name="eval.jsonl")
    leaked = {"prompt": [system, {"role": "user", "content": leak}], "gold": "12"}
    curated = curate(tmp_path, leaked, *others, decontaminate={"against": [{"set": str(items)}]})
    assert len(curated.rows) == 5 and curated.dropped["prompt"].to_list() == [leak]


def test_commands_on_a_file_compare_the_turns_before_a_question(tmp_path: Path) -> None:
    def record(apples: int, *system: dict[str, str]) -> dict[str, Any]:
        turns = [{"role": "user", "content": f"I have {apples} apples."}, {"role": "assistant", "content": "Good."}]
        return {"messages": [*system, *turns, {"role": "user", "content": "How many do I have?"}], "answer": "?"}

    rows = [record(3), record(4), record(3, SYSTEM)]
    kept = pipeline.deduplicate(rows).rows
    assert kept == rows[:2]


def test_the_verifier_of_a_file_gets_the_whole_conversation(tmp_path: Path) -> None:
    messages = [SYSTEM, *TURNS, {"role": "user", "content": "How far was that?"}]
    path = write_lines(tmp_path, {"messages": messages, "answer": "10", "response": "\\boxed{10}"})
    source = open_file(path, "auto", 2**20)
    ahead = list(source.records)
    (item,) = make_item_reader(source, ahead, ProblemColumns(), None).read(ahead[0])
    assert isinstance(item, Item)
    assert item.problem == problem_of(row("How far was that?", SYSTEM, *TURNS))


@pytest.mark.parametrize("name", WITHOUT_COMPLETIONS)
def test_every_export_has_the_id_that_the_source_gave(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path, {"question": "1+1?", "answer": "2", "id": "mine-7"})
    written = convert(path, FORMATS[name], tmp_path / "out", NullProgress(), FileSource(path=str(path)), None)
    (split,) = written.splits
    read = pl.read_parquet if split.suffix == ".parquet" else pl.read_ndjson
    assert "mine-7" in json.dumps(read(split).drop("truegold", strict=False).to_dicts())


def test_the_card_of_a_row_shows_what_was_said_before_its_question(tmp_path: Path) -> None:
    messages = [SYSTEM, *TURNS, {"role": "user", "content": "How far was that?"}]
    curated = curate(tmp_path, {"messages": messages, "answer": "10"})
    (shown,) = shown_rows(curated.report(tmp_path / "report.html").read_text())
    assert shown["detail"]["context"] == "System: Answer in miles.\n\nUser: I drove 16 km.\n\nAssistant: Noted."
