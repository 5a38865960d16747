"""Curation from Python: every form of rows goes in, the same comes out, and nothing is written anywhere else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import polars as pl
import pytest
from tables import rows

from truegold import pipeline
from truegold.pipeline.curation.gate import Check, GateOptions, gate
from truegold.pipeline.running.progress import NullProgress
from truegold.verifiers import ConfigError, InputError, TruegoldError

EXAMPLE = Path(__file__).parents[2] / "examples" / "python_api.py"
TOM = "Tom has 3 red cars and buys 4 more. How many cars has he?"
ROWS = [
    {"id": "a", "question": TOM, "answer": "7", "level": 1},
    {"id": "b", "question": "Tom, who owned three red cars, buys 4 more. How many cars does he have?", "answer": "7"},
    {"id": "c", "question": "Is the sum of two even numbers even?", "answer": "yes"},
    {"id": "d", "question": "What is the area of a square of side 12?", "answer": "144"},
]


def forms(folder: Path) -> dict[str, Any]:
    """The same rows in every form."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return {
        "dicts": ROWS,
        "polars": pl.DataFrame(ROWS),
        "lazy": pl.DataFrame(ROWS).lazy(),
        "pandas": pd.DataFrame(ROWS),
        "dataset": datasets.Dataset.from_list(ROWS),
        "path": path,
        "text": str(path),
    }


FORMS = ("dicts", "polars", "lazy", "pandas", "dataset", "path", "text")


def ids(rows: Any) -> list[str]:
    return list(rows["id"]) if not isinstance(rows, list) else [row["id"] for row in rows]


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_back_in_the_form_they_came_in(form: str, tmp_path: Path) -> None:
    rows = forms(tmp_path)[form]
    kept = pipeline.deduplicate(rows).rows
    assert ids(kept) == ["a", "c", "d"]
    kind = {"lazy": pl.DataFrame, "path": list, "text": list}.get(form, type(rows))
    assert isinstance(kept, kind)
    assert ids(pipeline.find_leaks(rows, [ROWS[3]]).rows) == ["a", "b", "c"]


@pytest.mark.parametrize("form", FORMS)
def test_flags_and_curation_take_every_form(form: str, tmp_path: Path) -> None:
    rows = forms(tmp_path)[form]
    assert pipeline.find_flags(rows).flags.select("row", "reason").rows() == [(3, "yes_no_answer")]
    curated = pipeline.curate(rows)
    assert curated.rows["source_row"].to_list() == [1, 4]
    assert curated.dropped.select("source_row", "drop_reason").rows() == [(2, "same_problem"), (3, "held_for_review")]
    assert {"same_problem", "yes_no_answer"} <= set(curated.ledger["reason"])


def test_rows_that_can_be_walked_through_once_come_back_as_a_list() -> None:
    assert ids(pipeline.deduplicate(row for row in ROWS).rows) == ["a", "c", "d"]
    stream = datasets.Dataset.from_list(ROWS).to_iterable_dataset()
    assert ids(pipeline.find_leaks(stream, [ROWS[3]]).rows) == ["a", "b", "c"]


def test_chats_in_arrays_of_pandas_are_read_as_chats(tmp_path: Path) -> None:
    chats = [{"prompt": [{"role": "user", "content": row["question"]}], "answer": row["answer"]} for row in ROWS]
    pl.DataFrame(chats).write_parquet(tmp_path / "chats.parquet")
    frame = pd.read_parquet(tmp_path / "chats.parquet")
    assert len(pipeline.deduplicate(frame).rows) == 3
    assert pipeline.curate(frame).rows["prompt"].to_list() == [TOM, ROWS[3]["question"]]


def test_a_record_that_cannot_become_a_row_is_among_the_rejects() -> None:
    rows = [*ROWS, {"id": "e", "question": None, "answer": "3"}]
    assert pipeline.curate(rows).rejects.select("row", "reason").rows() == [(5, "missing_prompt")]
    assert pipeline.find_flags(rows).rejects["row"].to_list() == [5]


def test_a_dropped_row_is_explained(tmp_path: Path) -> None:
    (line,) = pipeline.deduplicate(ROWS).ledger.to_dicts()
    assert (line["row"], line["id"], line["reason"], line["kept_row"], line["kept_id"]) == (
        2,
        "b",
        "same_problem",
        1,
        "a",
    )
    assert json.loads(line["evidence"])["with"] == "a"


def test_columns_can_be_named_and_no_gold_is_needed_to_deduplicate() -> None:
    rows = [{"Frage": row["question"]} for row in ROWS]
    assert len(pipeline.deduplicate(rows, prompt="Frage").rows) == 3
    named = [{"Frage": row["question"], "Antwort": row["answer"]} for row in ROWS]
    assert len(pipeline.curate(named, columns={"prompt": "Frage", "gold": "Antwort"}).rows) == 2


def test_every_function_names_columns_by_the_same_arguments() -> None:
    rows = [{"key": row["id"], "Frage": row["question"], "Antwort": row["answer"]} for row in ROWS]
    names = {"prompt": "Frage", "gold": "Antwort", "id": "key"}
    assert [row["key"] for row in pipeline.deduplicate(rows, **names).rows] == ["a", "c", "d"]
    assert [row["key"] for row in pipeline.find_leaks(rows, [ROWS[3]], **names).rows] == ["a", "b", "c"]
    assert pipeline.find_flags(rows, **names).flags.select("row", "reason").rows() == [(3, "yes_no_answer")]
    assert len(pipeline.curate(rows, **names).rows) == 2


def test_gold_is_guessed_beside_a_prompt_that_is_named() -> None:
    rows = [{"Frage": row["question"], "answer": row["answer"]} for row in ROWS]
    assert pipeline.curate(rows, prompt="Frage").rows["gold"].to_list() == ["7", "144"]
    assert pipeline.find_flags(rows, prompt="Frage").flags["reason"].to_list() == ["yes_no_answer"]


def test_samples_raise_the_suspicion_of_a_wrong_label() -> None:
    answers = {"a": "7", "b": "7", "d": "148"}
    samples = [
        {"id": name, "system": f"s{index}", "answer": answer} for index in range(8) for name, answer in answers.items()
    ]
    suspicion = pipeline.find_flags(ROWS, samples).suspicion
    assert suspicion["id"].to_list() == ["a", "b", "c", "d"]
    assert suspicion.filter(pl.col("id") == "d")["suggestion"].to_list() == ["148"]


def test_leaks_name_their_evaluation_set_and_several_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "evals.jsonl"
    path.write_text(json.dumps({"id": "e1", "question": TOM}) + "\n")
    matches = pipeline.find_leaks(ROWS, [path, [ROWS[3]]]).matches
    assert matches.select("id", "against", "kind").rows() == [
        ("a", str(path), "exact"),
        ("b", str(path), "reworded"),
        ("d", "against[1]", "exact"),
    ]


def test_settings_are_those_of_a_run_and_a_wrong_one_is_one_line() -> None:
    assert len(pipeline.curate(ROWS, dedup={"reworded": False}, flag={"advise_only": ["yes_no_answer"]}).rows) == 4
    with pytest.raises(ConfigError, match=r"curate: dedup\.reword: unknown setting; did you mean reworded\?"):
        pipeline.curate(ROWS, dedup={"reword": False})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pipeline.curate(ROWS, flags={}), "curate has no argument 'flags'. Did you mean 'flag'?"),
        (lambda: pipeline.curate(ROWS, data={}), "curate has no argument 'data'. There are: clean, decontaminate"),
        (lambda: pipeline.find_flags(ROWS, promt="x"), "find_flags has no argument 'promt'. Did you mean 'prompt'?"),
        (
            lambda: pipeline.find_flags(ROWS, columns={"question": "x"}),
            "columns: there is no role 'question'. Did you mean 'solution'? There are: prompt, gold",
        ),
        (
            lambda: pipeline.curate(ROWS, gold="answer", columns={"gold": "answer"}),
            "The column of gold is named twice: by gold= and in columns.",
        ),
        (
            lambda: pipeline.curate(ROWS, columns={"gold": {"name": "answer"}}),
            "columns.gold.name: unknown setting; known: column, extract",
        ),
    ],
)
def test_an_argument_or_role_that_does_not_exist_is_one_line_that_names_it(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        call()
    assert message in str(caught.value) and "Extra inputs" not in str(caught.value)


@pytest.mark.parametrize("function", [pipeline.deduplicate, pipeline.find_flags, pipeline.curate])
def test_errors_call_rows_by_their_argument_and_not_by_a_file_that_the_user_never_made(
    function: Callable[[Any], object],
) -> None:
    with pytest.raises(InputError, match=r"^rows(:| has) ") as caught:
        function([{"titel": "no prompt"}])
    assert "truegold-" not in str(caught.value) and "prompt=" in str(caught.value)


def test_errors_name_the_evaluation_set_and_the_samples_that_are_at_fault(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^against\[1\] has no prompt column"):
        pipeline.find_leaks(ROWS, [[ROWS[3]], [{"titel": "x"}]])
    with pytest.raises(InputError, match=r"^samples, line 1"):
        pipeline.find_flags(ROWS, [{"titel": "x"}])
    path = tmp_path / "mine.jsonl"
    path.write_text('{"titel": "x"}\n')
    with pytest.raises(InputError, match=f"^{re.escape(str(path))} has no prompt column"):
        pipeline.deduplicate(path)


@rows(
    "rows, says",
    [
        ([], "no rows"),
        (pl.DataFrame(), "no rows"),
        (datasets.Dataset.from_list([]), "no rows"),
        ("absent.jsonl", "absent.jsonl does not exist"),
        (Path("tests/absent.jsonl"), "There is no data file in /.*tests"),
        (7, "this is int 7"),
        ({"question": "one row"}, "this is dict"),
        (["text"], "Row 1 of rows is str"),
        (datasets.DatasetDict({"train": datasets.Dataset.from_list(ROWS)}), "Take one of its splits"),
        ([{"question": "\ud800"}], "line 1: invalid_unicode"),
        ([{"titel": "no prompt"}], "has no prompt column"),
    ],
)
def test_what_is_no_rows_is_refused_by_name(rows: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        pipeline.deduplicate(rows)


@rows(
    "call, says",
    [
        (lambda: pipeline.find_leaks(ROWS, []), "^against is empty: there is no evaluation set"),
        (lambda: pipeline.find_leaks(ROWS, [[]]), "^against has no rows"),
        (lambda: pipeline.find_leaks(ROWS, [[], "a.jsonl"]), r"^against\[0\] has no rows"),
        (lambda: pipeline.find_leaks(ROWS, pl.DataFrame()), "^against has no rows"),
        (lambda: pipeline.find_leaks(ROWS, ""), "^against is an empty text"),
        (lambda: pipeline.find_flags(ROWS, samples=[]), "^samples has no rows"),
        (lambda: pipeline.find_flags(ROWS, samples=3), "^samples must be a polars"),
        (lambda: pipeline.deduplicate(b"a.jsonl"), "this is bytes"),
        (lambda: pipeline.deduplicate(ROWS, "question"), "^deduplicate takes at most 1 argument by position"),
        (lambda: pipeline.deduplicate(ROWS, prompt=1), "^deduplicate: prompt must be a text or None; this is int 1"),
        (lambda: pipeline.curate(ROWS, columns=["question"]), "^curate: columns must be a dict or None"),
        (lambda: pipeline.curate(ROWS, work_dir=""), "^work_dir is an empty text"),
        (lambda: pipeline.curate(ROWS, work_dir=__file__), "File exists. A file is in the way"),
        (lambda: pipeline.curate("run.yaml"), "run.yaml does not exist"),
        (lambda: pipeline.curate(ROWS).report("page.pdf"), "the page is HTML.* Name it page.html"),
    ],
)
def test_an_empty_or_wrong_argument_is_refused_by_name(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(TruegoldError, match=says):
        call()


def test_a_template_cap_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="template_cap is 0"):
        pipeline.deduplicate(ROWS, template_cap=0)


def test_what_json_cannot_hold_does_not_stop_a_row() -> None:
    rows = [{**row, "blob": b"\xff", "when": pd.Timestamp("2026-01-01"), "huge": 2**70} for row in ROWS]
    assert len(pipeline.deduplicate(rows).rows) == 3


def test_with_a_work_dir_nothing_runs_twice_and_the_report_lies_where_it_was_asked_for(tmp_path: Path) -> None:
    first = pipeline.curate(ROWS, work_dir=tmp_path / "work")
    second = pipeline.curate(ROWS, work_dir=tmp_path / "work")
    assert not any(result.cached for result in first.finished)
    assert all(result.cached for result in second.finished)
    page = second.report(tmp_path / "out" / "report.html")
    assert page == tmp_path / "out" / "report.html" and "same_problem" in page.read_text()


def test_the_example_runs_and_writes_nothing_where_it_stands(tmp_path: Path) -> None:
    script = f"import runpy; runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "1.0 match exact"
    assert done.stdout.splitlines()[-1] == "report.html"
    assert list(tmp_path.iterdir()) == []


def test_the_solution_is_read_where_prompt_and_gold_are_named() -> None:
    question = "Tom has 3 cars and buys 4 more. How many cars has he?"
    row = {"question": question, "answer": "8", "solution": "He has 3 cars and buys 4, which makes 3 + 4 = 7. #### 7"}
    guessed, named = pipeline.find_flags([row]), pipeline.find_flags([row], prompt="question", gold="answer")
    assert named.flags["reason"].to_list() == ["solution_contradicts_gold"]
    assert named.flags["reason"].to_list() == guessed.flags["reason"].to_list()


def test_every_door_finds_the_same_leaks(tmp_path: Path) -> None:
    items = [{"question": f"{TOM} {' '.join(['And then it rained', 'for a while', 'over the whole market.'])}"}]
    item = items[0]["question"]
    disguised = [
        item.replace("market", "mar-\nket"),
        item.replace("market", "mаrkеt"),
        item.replace("market", "makret"),
        item.replace(" ", "&nbsp;").replace("red", "<mark>red</mark>"),
        item.replace("4", "5").replace("market", "mar-\nket"),
    ]
    rows = [{"id": str(number), "question": text, "answer": "7"} for number, text in enumerate(disguised)]
    evals, data = tmp_path / "evals.jsonl", tmp_path / "data.jsonl"
    for path, records in ((evals, items), (data, rows)):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert ids(pipeline.find_leaks(rows, items).rows) == ["4"]
    curated = pipeline.curate(rows, decontaminate={"against": [str(evals)]}, work_dir=tmp_path / "work")
    dropped = pl.read_parquet(tmp_path / "work" / "run" / "decontaminate" / "dropped.parquet")
    assert sorted(dropped["source_row"]) == [1, 2, 3, 4]
    assert len(curated.rows) == 1
    gated = gate(data, GateOptions(fail_on=[Check.LEAK], against=[str(evals)]), NullProgress())
    assert sorted(violation.row for violation in gated.violations) == [1, 2, 3, 4]


def test_a_curation_shows_its_steps_and_where_its_rows_are() -> None:
    curated = pipeline.curate([*ROWS, {"question": "", "answer": "1"}])
    first, head, *steps = repr(curated).splitlines()
    assert first.startswith(f"Curated: {curated.rows.height} rows in .rows, {curated.dropped.height} in .dropped, 1 in")
    assert str(curated.finished[0].path.parent) in first and head.split()[:1] == ["step"]
    assert [line.split()[0] for line in steps] == [result.name for result in curated.finished]
    assert "reject:missing_prompt 1" in repr(curated) and len(repr(curated)) < 2000
    page = curated._repr_html_()
    assert page.count("<tr>") == 1 + len(steps) and "reject:missing_prompt 1" in page


HOSTILE_NAMES = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a\nb",
    "\x1b[31mred",
    "&lt;b&gt;",
    "你好",
    "\u202e",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_nothing_of_the_data_is_markup_or_control_where_a_curation_is_shown(name: str) -> None:
    curated = pipeline.curate(ROWS)
    last = curated.finished[-1]
    report = replace(last.report, counts={f"flag:{name}": 3})
    shown = replace(curated, finished=(*curated.finished[:-1], replace(last, report=report)))
    page, text = shown._repr_html_(), repr(shown)
    tags = set(re.findall(r"<\s*/?\s*([^\s>/]*)", page))
    assert tags <= {"p", "b", "table", "tr", "td"} and "onerror=alert(1)>" not in page
    assert len(text.splitlines()) == 2 + len(curated.finished)
    assert all(char.isprintable() for char in text.replace("\n", "")) and all(char.isprintable() for char in page)
