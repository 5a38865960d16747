"""Ingest: the file as a whole - what is counted, rejected, set aside, noted, and refused before any row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property_tests import examples

from truegold.pipeline.config.sources import FileSource, HubSource
from truegold.pipeline.ingest.stage import ingest
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.rows import Row, read_rows
from truegold.verifiers import ConfigError, InputError


class Notes(NullProgress):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def lines(*values: Any) -> bytes:
    return b"".join(value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n" for value in values)


def run(folder: Path, data: bytes, heldout: bytes | None = None, **config: Any) -> tuple[StageReport, list[Row]]:
    name = config.pop("name", "train.jsonl")
    progress = config.pop("progress", NullProgress())
    inputs = {"data": folder / name}
    inputs["data"].write_bytes(data)
    if heldout is not None:
        (folder / "eval").mkdir(exist_ok=True)
        inputs["heldout"] = folder / "eval" / name
        inputs["heldout"].write_bytes(heldout)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    report = ingest(inputs, FileSource(path=str(inputs["data"]), **config), out, progress)
    rows = list(read_rows(out / "rows.parquet"))
    rejected = sum(count for key, count in report.counts.items() if key.startswith("reject:"))
    assert report.rows_out == len(rows)
    assert report.rows_in == report.rows_out + rejected
    assert rejected == len(rejects(folder))
    return report, rows


def rejects(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / "rejects.jsonl").read_bytes().splitlines()]


def problem(addend: int, **more: Any) -> dict[str, Any]:
    return {"question": f"What is {addend}+1?", "answer": str(addend + 1), **more}


def test_a_line_becomes_a_canonical_row_and_its_other_columns_go_into_meta(tmp_path):
    _, (row,) = run(tmp_path, lines({"question": "1+1?", "answer": "so 2\n#### 2", "level": 3, "tags": ["a"]}))
    assert row == {
        "id": row["id"],
        "prompt": "1+1?",
        "gold": "2",
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": "so 2\n#### 2",
        "source": "train.jsonl",
        "source_row": 1,
        "split": "train",
        "meta": '{"level":3,"tags":["a"]}',
        "context": None,
    }


def test_every_bad_line_is_written_down_with_its_reason_and_all_is_counted(tmp_path):
    report, rows = run(
        tmp_path,
        lines(
            problem(1),
            {"answer": "2"},
            {"question": "", "answer": "2"},
            {"question": "no gold", "answer": None},
            b"not json\n",
            b'{"question": "caf\xe9"}\n',
            b'{"question": "\\ud800 alone", "answer": "2"}\n',
            b'{"question": "fine", "answer": "2", "note": ["\\udfff"]}\n',
            {"question": ["a", "b"], "answer": "2"},
            problem(2),
        ),
    )
    assert [row["source_row"] for row in rows] == [1, 10]
    assert dict(report.counts) == {
        "reject:missing_prompt": 2,
        "reject:missing_gold": 1,
        "reject:invalid_json": 1,
        "reject:invalid_utf8": 1,
        "reject:invalid_unicode": 2,
        "reject:prompt_not_text": 1,
    }
    entry = next(entry for entry in rejects(tmp_path) if entry["reason"] == "missing_gold")
    assert entry["source"] == "train.jsonl"
    assert entry["source_row"] == 4
    assert entry["detail"] == "column 'answer' is null"
    assert "no gold" in entry["excerpt"]


def test_gold_that_its_extract_does_not_find_is_a_reject(tmp_path):
    report, _ = run(tmp_path, lines({"question": "1+1?", "answer": "#### 2"}, {"question": "2+2?", "answer": "four"}))
    assert dict(report.counts) == {"reject:gold_not_found": 1}


@pytest.mark.parametrize(
    ("value", "gold"),
    [
        (42, "42"),
        (0.5, "0.5"),
        (-9867630.0, "-9867630"),
        (True, "true"),
        (["x"], "x"),
        ("[1, 2]", "[1, 2]"),
        ('{"value": 1}', '{"value": 1}'),
        (10**30, str(10**30)),
        (1e22, "1e+22"),
        (0, "0"),
    ],
)
def test_gold_of_any_type_becomes_a_text(tmp_path, value, gold):
    _, (row,) = run(tmp_path, lines({"question": "What?", "gold": value}))
    assert row["gold"] == gold


@pytest.mark.parametrize("value", [None, "", "  \n", [], {}, [None], [""]])
def test_gold_that_holds_nothing_is_missing(tmp_path, value):
    report, _ = run(tmp_path, lines({"question": "What?", "gold": value}, {"question": "What?", "gold": 1}))
    assert dict(report.counts) == {"reject:missing_gold": 1}


def test_meta_holds_what_json_cannot_by_name_or_as_text(tmp_path):
    deep: Any = 0
    for _ in range(300):
        deep = [deep]
    _, (row,) = run(tmp_path, lines(problem(1, big=10**25, deep=deep)))
    meta = json.loads(row["meta"])
    assert meta["big"] == str(10**25)
    assert "<list>" in row["meta"]


def test_nul_characters_are_no_reason_to_reject(tmp_path):
    _, (row,) = run(tmp_path, lines({"question": "What\0?", "gold": "1"}))
    assert row["prompt"] == "What\0?"


def test_limit_counts_records_read(tmp_path):
    report, _ = run(tmp_path, lines(problem(1), b"bad\n", problem(2), problem(3)), limit=3)
    assert (report.rows_in, report.rows_out) == (3, 2)


def test_the_heldout_share_is_stable_under_order_and_neighbours(tmp_path):
    def chosen(problems: list[dict[str, Any]]) -> set[str]:
        path = tmp_path / "train.jsonl"
        path.write_bytes(lines(*problems))
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        ingest({"data": path}, FileSource(path=str(path), heldout=0.25), out, NullProgress())
        return {row["prompt"] for row in read_rows(out / "rows.parquet") if row["split"] == "heldout"}

    problems = [problem(addend) for addend in range(400)]
    whole = chosen(problems)
    assert 70 < len(whole) < 130
    assert chosen(problems[::-1]) == whole
    assert chosen(problems[:200]) == whole & {entry["question"] for entry in problems[:200]}


def test_a_heldout_file_goes_through_the_same_mapping_and_is_told_apart(tmp_path):
    _, rows = run(tmp_path, lines(problem(1)), heldout=lines(problem(2), problem(3)))
    assert [(row["source"], row["source_row"], row["split"]) for row in rows] == [
        ("train.jsonl", 1, "train"),
        ("eval/train.jsonl", 1, "heldout"),
        ("eval/train.jsonl", 2, "heldout"),
    ]


def test_a_heldout_file_without_the_columns_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InputError, match=r"eval/train\.jsonl has no column 'answer'"):
        run(tmp_path, lines(problem(1)), heldout=lines({"question": "1+1?", "solution": "2"}))


def test_a_gold_has_one_id_with_and_without_its_thousands_set_apart(tmp_path):
    golds = ["1,080", "1080", "-12,000.5", "-12000.5", "1,08", "108", "(1,080)", "1,080 km"]
    _, rows = run(tmp_path, lines(*({"question": "How many?", "gold": gold} for gold in golds)))
    ids = {row["gold"]: row["id"] for row in rows}
    assert (ids["1,080"], ids["-12,000.5"]) == (ids["1080"], ids["-12000.5"])
    assert len(set(ids.values())) == len(golds) - 2


def test_source_ids_are_kept_and_double_ones_noted(tmp_path):
    progress = Notes()
    data = lines(*(problem(addend, id=f"q{addend % 3}") for addend in range(4)), problem(1, id="q1"))
    report, rows = run(tmp_path, data, columns={"id": "id"}, progress=progress)
    assert [json.loads(row["meta"]) for row in rows[:2]] == [{"source_id": "q0"}, {"source_id": "q1"}]
    assert report.counts["warn:duplicate_source_id"] == 1
    assert progress.notes == [
        "1 source id(s) stand for different rows; the first: rows 1 and 4. Samples cannot name such rows by it."
    ]


def test_a_file_in_which_nothing_can_be_used_is_an_error_that_shows_the_first_line(tmp_path):
    with pytest.raises(InputError, match=r"none of its 2 rows.*line 1: invalid_json: Expecting value.*It begins: a"):
        run(tmp_path, b"a\nb\n")
    with pytest.raises(InputError, match=r"none of its 1 rows.*line 1: missing_gold"):
        run(tmp_path, lines({"question": "1+1?", "answer": None}))
    with pytest.raises(InputError, match="holds no rows"):
        run(tmp_path, b"\n\n")
    with pytest.raises(InputError, match="holds no rows"):
        run(tmp_path, b"question,answer\n", name="train.csv")


def test_wrong_columns_are_an_error_that_names_what_exists(tmp_path):
    data = lines({"Body": "Ann has 2.", "Ask": "How many?", "Result": 2.0})
    with pytest.raises(InputError, match=r"train\.jsonl: no column has a usual name.*Body, Ask, Result.*columns: \{p"):
        run(tmp_path, data)
    with pytest.raises(InputError, match=r"no column 'Resul' \(columns.gold\). Did you mean 'Result'\?"):
        run(tmp_path, data, columns={"prompt": "Ask", "gold": "Resul"})
    with pytest.raises(InputError, match="does not have the columns of preset gsm8k: question, answer"):
        run(tmp_path, data, preset="gsm8k")


def test_answer_options_in_a_column_of_their_own_are_never_left_out_of_the_prompt_unasked(tmp_path):
    data = lines({"question": "Which?", "options": ["(A) 1", "(B) 2"], "answer": "A"})
    assert run(tmp_path, data)[1][0]["prompt"] == "Which?\n\nA. 1\nB. 2"
    assert run(tmp_path, data, columns={"prompt": "question", "gold": "answer"})[1][0]["prompt"] == "Which?"


def test_errors_of_the_configuration_come_before_files_are_opened(tmp_path):
    def start(**config: Any) -> None:
        ingest({"data": tmp_path / "none"}, FileSource(path="none", **config), tmp_path, NullProgress())

    with pytest.raises(ConfigError, match=r"no preset 'gsm8'\. Did you mean 'gsm8k'"):
        start(preset="gsm8")
    with pytest.raises(ConfigError, match=r"columns.gold.extract: 'box' is not an extract"):
        start(columns={"prompt": "q", "gold": {"column": "a", "extract": "box"}})
    with pytest.raises(ConfigError, match="is invalid: missing"):
        start(columns={"prompt": "q", "gold": {"column": "a", "extract": "regex:("}})
    with pytest.raises(ConfigError, match="has no group"):
        start(columns={"prompt": "q", "gold": {"column": "a", "extract": "regex:x"}})


def test_columns_without_a_gold_need_a_verifier_that_does_without(tmp_path):
    with pytest.raises(InputError, match="no other column has a usual name of answers"):
        run(tmp_path, lines({"q": "Write a poem."}), columns={"prompt": "q"})
    _, (row,) = run(tmp_path, lines({"q": "Write a poem."}), columns={"prompt": "q"}, verifier="checks.py:rhymes")
    assert (row["gold"], row["verifier"]) == (None, "checks.py:rhymes")


def test_leftovers_of_a_killed_try_are_overwritten(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("rows.parquet", "rejects.jsonl", "ledger.parquet", "dropped.parquet"):
        (out / name).write_bytes(b"half a file")
    report, _ = run(tmp_path, lines(problem(1)))
    assert report.rows_out == 1


def test_csv_parquet_and_hub_sources_give_the_same_rows(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    _, expected = run(tmp_path, lines(problem(1), problem(2)))
    _, from_csv = run(tmp_path, b"question,answer\nWhat is 1+1?,2\nWhat is 2+1?,3\n", name="train.csv")
    pq.write_table(pa.Table.from_pylist([problem(1), problem(2)]), tmp_path / "t.parquet")
    _, from_parquet = run(tmp_path, (tmp_path / "t.parquet").read_bytes(), name="train.parquet")
    ids = [row["id"] for row in expected]
    assert [row["id"] for row in from_csv] == [row["id"] for row in from_parquet] == ids
    assert [row["source_row"] for row in from_csv] == [2, 3]

    datasets = pytest.importorskip("datasets", reason="needs the extra `hub`")
    datasets.disable_progress_bars()
    datasets.Dataset.from_list([problem(1), problem(2)]).save_to_disk(str(tmp_path / "disk"))
    report = ingest({}, HubSource(name=str(tmp_path / "disk")), tmp_path / "out", NullProgress())
    assert report.rows_out == 2
    assert [row["id"] for row in read_rows(tmp_path / "out" / "rows.parquet")] == ids


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["question", "answer", "prompt", "solution", "problem", "reward_model", "test_list", "code", "x"]
)
SHAPES = [
    ("question", "answer"),
    ("problem", "answer", "solution"),
    ("prompt", "canonical_solution", "test", "entry_point"),
    ("text", "code", "test_list", "test_setup_code", "test_imports"),
    ("prompt", "reward_model"),
    ("prompt", "solution"),
    ("question", "input_output", "solutions", "starter_code", "time_limit"),
    ("problem", "tests", "solution"),
    ("description", "public_tests", "private_tests", "generated_tests", "solutions", "time_limit"),
    ("question_content", "public_test_cases", "private_test_cases", "starter_code", "metadata"),
    ("problem", "prompt", "completion", "entry_point", "test"),
]
CASES = [{"input": "1", "output": "2"}]
GOOD = {
    "test_list": ["assert f(1)"],
    "reward_model": {"ground_truth": "1"},
    "input_output": {"inputs": ["1"], "outputs": ["2"]},
    "tests": CASES,
    "public_tests": {"input": ["1"], "output": ["2"]},
    "private_tests": None,
    "generated_tests": None,
    "public_test_cases": CASES,
    "private_test_cases": None,
    "metadata": None,
}
RECORDS = st.dictionaries(NAMES | st.text(st.characters(), max_size=4), VALUES, max_size=6)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(RECORDS | VALUES, max_size=8), whole=st.booleans())
def test_whatever_json_comes_everything_is_counted_and_nothing_crashes(tmp_path, records, whole):
    data = lines(problem(1), *records) if whole else lines(*records)
    try:
        run(tmp_path, data)
    except InputError as error:
        assert "\n" not in error.message


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), shape=st.sampled_from(SHAPES))
def test_whatever_stands_in_a_presets_columns_everything_is_counted_and_nothing_crashes(tmp_path, data, shape):
    record = data.draw(st.fixed_dictionaries(dict.fromkeys(shape, VALUES)))
    good = dict.fromkeys(shape, "12") | GOOD
    run(tmp_path, lines({name: good[name] for name in shape}, record))


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_whatever_bytes_come_everything_is_counted_and_nothing_crashes(tmp_path, data):
    for name, start in (("train.jsonl", lines(problem(1))), ("train.csv", b"question,answer\n1+1?,2\n")):
        run(tmp_path, start + data, name=name, max_row_bytes=200)
