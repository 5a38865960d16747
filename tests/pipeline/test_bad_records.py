"""A bad record is a reject in every place and for every reader; only truegold's own errors end a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingest_files import GOOD, read_file, rejects, write_lines
from property_tests import examples

from truegold import pipeline
from truegold.pipeline.config.sources import FileSource, HubSource
from truegold.pipeline.curation.gate import Check, GateOptions, gate
from truegold.pipeline.curation.plan import resolve_sources
from truegold.pipeline.export import convert as conversion
from truegold.pipeline.export.formats import FORMATS
from truegold.pipeline.ingest.stage import ingest
from truegold.pipeline.problems import ProblemColumns, describe_reading, read_golds, read_problems
from truegold.pipeline.rescore.logs import read_logs
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.verify.responses import verify_file
from truegold.verifiers import TruegoldError

HALF = b"\\ud800"


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"1" + closing * depth


UNICODE: dict[str, bytes] = {
    "a key within a column": b'{"question": {"": "%s"}}' % HALF,
    "a value": b'{"prompt": "%s", "gold": "1"}' % HALF,
    "a column's name": b'{"%s": 1, "prompt": "q?", "gold": "1"}' % HALF,
    "a key": b'{"prompt": "q?", "gold": {"%s": 1}}' % HALF,
    "an unread column": b'{"prompt": "q?", "gold": "1", "x": [[{"y": "%s"}]]}' % HALF,
    "the lower half": b'{"prompt": "q?", "gold": "\\udc00"}',
    "both halves, the wrong way round": b'{"prompt": "q?", "gold": "\\udc00\\ud800"}',
    "a message": b'{"prompt": [{"role": "user", "content": "%s"}], "gold": "1"}' % HALF,
    "a role": b'{"prompt": [{"role": "%s", "content": "q?"}], "gold": "1"}' % HALF,
    "an id": b'{"id": "%s", "prompt": "q?", "gold": "1"}' % HALF,
    "options": b'{"prompt": "q?", "gold": "1", "verifier_args": {"%s": 1}}' % HALF,
    "a number beside it": b'{"prompt": "%s", "gold": 123456789012345678901234567890}' % HALF,
    "tests": b'{"question": "q?", "input_output": {"inputs": ["%s"], "outputs": ["1"]}}' % HALF,
    "a ground truth": b'{"prompt": "q?", "reward_model": {"ground_truth": {"": "%s"}}}' % HALF,
}
OTHERS: dict[str, bytes] = {
    "JSON text with half a character": json.dumps(
        {"prompt": "q?", "reward_model": '{"ground_truth": "\\ud800"}'}
    ).encode(),
    "metadata as JSON text with it": json.dumps({**GOOD, "metadata": '{"func_name": "\\ud800"}'}).encode(),
    "options as JSON text with it": json.dumps({**GOOD, "verifier_args": '{"pattern": "\\ud800"}'}).encode(),
    "deep lists": b'{"prompt": %s, "gold": "1"}' % nested(980),
    "deeper lists": b'{"prompt": %s, "gold": "1"}' % nested(100_000),
    "deep objects": b'{"prompt": "q?", "gold": %s}' % nested(980, b'{"a":', b"}"),
    "deep messages": b'{"prompt": [{"role": "user", "content": %s}], "gold": "1"}' % nested(900),
    "deep tools": b'{"prompt": "q?", "gold": "1", "tools": %s, "images": %s}' % (nested(900), nested(900)),
    "a huge number": b'{"prompt": "q?", "gold": %s}' % (b"9" * 4000),
    "a number too huge": b'{"prompt": "q?", "gold": %s}' % (b"9" * 5000),
    "a number beyond floats": b'{"prompt": "q?", "gold": 1e999}',
    "NaN": b'{"prompt": "q?", "gold": NaN}',
    "Infinity": b'{"prompt": "q?", "gold": -Infinity}',
    "beyond 64 bits": b'{"prompt": "q?", "gold": 9223372036854775808, "x": -9223372036854775809}',
    "an empty name": b'{"": "", "prompt": "q?", "gold": "1"}',
    "names of dots": b'{".": 1, "..": {"": {}}, "prompt.": "q?", "gold.x": "1"}',
    "a name twice": b'{"prompt": "q?", "prompt": null, "gold": "1"}',
    "a NUL as name and value": b'{"\\u0000": "\\u0000", "prompt": "q\\u0000?", "gold": "1"}',
    "a line end as name": b'{"a\\nb": 1, "prompt": "q?", "gold": "1"}',
    "an array": b"[1]",
    "an empty object": b"{}",
    "bytes that are not UTF-8": b'{"prompt": "\xff", "gold": "1"}',
}


@pytest.mark.parametrize("name", UNICODE)
@pytest.mark.parametrize("position", [0, 1, 150])
def test_half_a_character_is_a_reject_of_its_row(tmp_path: Path, name: str, position: int) -> None:
    records = [{**GOOD, "id": number} for number in range(160)]
    path = write_lines(tmp_path, *records[:position], UNICODE[name], *records[position:])
    report, rows = read_file(path, tmp_path)
    assert (len(rows), report.counts) == (160, {"reject:invalid_unicode": 1})
    (reject,) = rejects(tmp_path)
    assert (reject["source_row"], reject["reason"]) == (position + 1, "invalid_unicode")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("position", [0, 1, 150])
def test_whatever_else_is_wrong_with_a_record_ends_nothing(tmp_path: Path, name: str, position: int) -> None:
    records = [{**GOOD, "id": number} for number in range(160)]
    path = write_lines(tmp_path, *records[:position], OTHERS[name], *records[position:])
    _, rows = read_file(path, tmp_path)
    assert len(rows) in (160, 161)


def test_rows_in_memory_are_rejected_one_by_one_too() -> None:
    good = {"question": "How much is 17 and 25 together?", "answer": "42"}
    for bad in (
        {"question": "\ud800", "answer": "1"},
        {"question": {"\ud800": 1}, "answer": "1"},
        {"\ud800": object()},
    ):
        curated = pipeline.curate([good, bad])
        assert curated.rejects["row"].to_list() == [2]
        assert curated.rejects["reason"].to_list() == ["invalid_unicode"]
        assert pipeline.deduplicate([bad, good]).rows[-1] == good


def test_parquet_csv_and_hub_sets_reject_them_one_by_one(tmp_path: Path) -> None:
    texts = pa.array([b"q?", b"\xed\xa0\x80", b"1+1?"], pa.binary()).cast(pa.binary())
    prompts = pa.StringArray.from_buffers(3, texts.buffers()[1], texts.buffers()[2])
    pq.write_table(pa.table({"question": prompts, "answer": ["1", "2", "3"]}), tmp_path / "train.parquet")
    _, rows = read_file(tmp_path / "train.parquet", tmp_path)
    assert [row["gold"] for row in rows] == ["1", "3"]
    (tmp_path / "train.csv").write_bytes(b"question,answer\nq?,1\n\xed\xa0\x80,2\n1+1?,3\n")
    _, rows = read_file(tmp_path / "train.csv", tmp_path)
    assert [row["gold"] for row in rows] == ["1", "3"]
    (tmp_path / "train.csv").write_bytes(b"question,answer,\xff\nq?,1,2\n")
    with pytest.raises(TruegoldError, match="is not UTF-8"):
        read_file(tmp_path / "train.csv", tmp_path)
    datasets = pytest.importorskip("datasets", reason="needs the extra `hub`")
    datasets.disable_progress_bars()
    datasets.Dataset(pa.table({"question": prompts, "answer": ["1", "2", "3"]})).save_to_disk(str(tmp_path / "disk"))
    report = ingest({}, HubSource(name=str(tmp_path / "disk")), tmp_path / "ingested", NullProgress())
    assert (report.rows_out, report.counts) == (2, {"reject:invalid_utf8": 1})


def read_with_gate(path: Path) -> None:
    gate(path, GateOptions(fail_on=[Check.UNUSABLE]), NullProgress())


def export(path: Path) -> None:
    conversion.convert(path, FORMATS["hf"], path.parent / "out", NullProgress(), FileSource(path=str(path)), None)


DOORS: dict[str, Callable[[Path], object]] = {
    "ingest": lambda path: read_file(path, path.parent),
    "ingest by its last turns": lambda path: read_file(path, path.parent, last_turn_only=True),
    "plan": lambda path: resolve_sources(FileSource(path=str(path)), {"data": path}),
    "export": export,
    "gate": read_with_gate,
    "dedup": lambda path: list(read_problems(path, ProblemColumns())),
    "what is read": lambda path: describe_reading(path, ProblemColumns()),
    "golds": lambda path: list(read_golds(path, None, lambda *_: None)),
    "verify": lambda path: verify_file(path, path.parent / "v.parquet", "exact", 1, NullProgress()),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("alone", [True, False])
def test_no_door_breaks(tmp_path: Path, door: str, alone: bool) -> None:
    good = {**GOOD, "response": "2"}
    for bad in (*UNICODE.values(), *OTHERS.values()):
        for lines in ((bad,),) if alone else ((bad, good), (good, bad)):
            try:
                DOORS[door](write_lines(tmp_path, *lines))
            except TruegoldError as error:
                assert "\n" not in error.message


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12)
SCALARS |= st.sampled_from(
    ["\ud800", "user", "system", "math", "numeric", "test", '{"a": "\\ud800"}', "[1, 2]", 10**30]
)
KEYS = st.sampled_from(["role", "content", "text", "type", "image", "ground_truth", "inputs", "outputs", "rel_tol", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(st.characters(), max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *("prompt", "question", "messages", "input", "problem", "gold", "answer", "target", "golds", "solution", "id"),
        *("verifier", "verifier_args", "other_golds", "split", "system", "images", "tools", "history", "reward_model"),
        *("test_list", "code", "tests", "input_output", "dataset", "ground_truth", "options", "truegold", "response"),
        *("metadata", "starter_code", "time_limit", "extra_info", "license", "."),
    ]
)
RECORDS = st.dictionaries(NAMES | st.text(st.characters(), max_size=3), VALUES, max_size=6) | VALUES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
@given(
    records=st.lists(RECORDS, min_size=1, max_size=4), position=st.integers(0, 4), door=st.sampled_from(sorted(DOORS))
)
def test_whatever_stands_in_a_file_no_door_breaks(tmp_path: Path, records: list[Any], position: int, door: str) -> None:
    lines = [json.dumps(record).encode() for record in records]
    lines.insert(position, json.dumps({**GOOD, "response": "2"}).encode())
    try:
        DOORS[door](write_lines(tmp_path, *lines))
    except TruegoldError as error:
        assert "\n" not in error.message


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(record=st.dictionaries(NAMES, VALUES, max_size=5))
def test_whatever_stands_in_memory_the_python_api_says_so(tmp_path: Path, record: dict[str, Any]) -> None:
    good = {"question": "How much is 17 and 25 together?", "answer": "42"}
    for call in (pipeline.deduplicate, pipeline.find_flags):
        try:
            call([good, record])
        except TruegoldError as error:
            assert "\n" not in error.message


def test_frames_with_columns_of_objects_are_refused_or_read() -> None:
    frame = pl.DataFrame({"question": ["q?"], "answer": ["1"], "x": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(TruegoldError):
        pipeline.deduplicate(frame)


LOGS = [
    {"step": 1, "prompt": "q?", "completion": "2", "advantage": 0.5, "score": 1.0},
    {"step": 1, "prompt": "q?", "completion": "2", "truegold": 1.0},
    {"input": "q?", "output": "2", "gts": "2", "score": 1.0, "step": 1},
    {"responses_create_params": {"input": "q?"}, "response": {"output": []}, "verifier_metadata": "{}", "reward": 1.0},
    {"traces": [{"task": {"data": {"prompt": "q?"}}, "nodes": [], "rewards": {"a": 1.0}}], "work": {"step": 1}},
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
@given(data=st.data(), good=st.sampled_from(LOGS))
def test_whatever_stands_in_a_log_its_other_rollouts_are_read(tmp_path: Path, data: Any, good: dict[str, Any]) -> None:
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(good)), VALUES, min_size=1, max_size=3))
    try:
        rollouts = list(read_logs([write_lines(tmp_path, good, {**good, **changes}, good)]))
    except TruegoldError as error:
        assert "\n" not in error.message
    else:
        assert rollouts
