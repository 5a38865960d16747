"""The stage vet_tests: code rows are dropped, repaired or flagged with their story; other rows are not touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tables import rows

from truegold.pipeline.config.sources import Columns, FileSource, HubSource
from truegold.pipeline.config.stages import VetTestsConfig
from truegold.pipeline.curation.plan import resolve_sources
from truegold.pipeline.running.parts import Part
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.ledger import FLAG_SCHEMA
from truegold.pipeline.tables.rows import ROW_SCHEMA, Row, dump_json, read_rows, row_id, write_rows
from truegold.pipeline.verify import vet as vet_stage
from truegold.pipeline.verify.vet import Finished, markdown, programs_of, summary_lines, vet_tests
from truegold.verifiers.sandbox import Tier, possible_tiers
from truegold.verifiers.sandbox.execution import SandboxError

SUM = "print(sum(map(int, input().split())))\n"
SUMS = [("1 2", "3"), ("10 -3", "7"), ("100 200", "300"), ("0 0", "0")]
QUICK = VetTestsConfig(runs=2, mutants=8, workers=2)


@pytest.fixture(autouse=True, scope="module")
def _sandbox() -> None:
    if (why := possible_tiers()[Tier.FULL]) is not None:
        pytest.skip(f"this machine does not give the tier full: {why}")


def make(row_number: int, pairs: list[tuple[str, str]], solution: str | None = SUM, **more: Any) -> Row:
    cases = [{"input": f"{stdin}\n", "output": f"{output}\n"} for stdin, output in pairs]
    arguments = dump_json({"type": "stdio", "cases": cases})
    prompt = more.pop("prompt", f"Add two numbers, {row_number}.")
    return {
        "id": row_id(prompt, None, arguments),
        "prompt": prompt,
        "gold": None,
        "domain": "code",
        "verifier": "code",
        "verifier_args": arguments,
        "solution": solution,
        "source": "train.jsonl",
        "source_row": row_number,
        "split": "train",
        "meta": "{}",
        "context": None,
        **more,
    }


SOUND = make(1, SUMS)
ARITHMETIC = make(2, [], None, prompt="What is 1+1?", gold="2", verifier="math", verifier_args="{}", domain="math")
WRONG = make(3, SUMS, "print(3)\n")
CUT = make(4, [*SUMS, ("1 2 " * 20 + "...", "9")])
WEAK = make(5, [("0 0", "0"), ("1 0", "1"), ("2 0", "2")], "a, b = map(int, input().split())\nprint(a + b * 7)\n")
SEVERAL = make(6, SUMS, prompt="Add two numbers. If there are several answers, print any of them.")
ROWS = [SOUND, ARITHMETIC, WRONG, CUT, WEAK, SEVERAL]


def flag(row: Row, reason: str, detector: str = "verify_gold") -> Row:
    reference = {name: row[name] for name in ("id", "source", "source_row")}
    return {**reference, "reason": reason, "detector": detector, "confidence": 1.0, "blocks": True, "evidence": "{}"}


def run(folder: Path, rows: list[Row], flags: list[Row] | None = None, config: VetTestsConfig = QUICK) -> StageReport:
    write_rows(folder / "in.parquet", rows, ROW_SCHEMA)
    write_rows(folder / "gold.parquet", flags or [], FLAG_SCHEMA)
    (folder / "out").mkdir(exist_ok=True)
    inputs = {"rows": folder / "in.parquet", "flags": folder / "gold.parquet"}
    return vet_tests(inputs, config, folder / "out", NullProgress())


def table(folder: Path, name: str) -> list[Row]:
    return list(read_rows(folder / "out" / f"{name}.parquet"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, StageReport]:
    folder = tmp_path_factory.mktemp("vet")
    return folder, run(folder, ROWS, [flag(CUT, "gold_fails_verifier"), flag(WRONG, "gold_fails_verifier")])


def test_rows_go_on_dropped_repaired_or_as_they_were(done: tuple[Path, StageReport]) -> None:
    folder, report = done
    rows = table(folder, "rows")
    assert [row["source_row"] for row in rows] == [1, 2, 4, 5]
    assert [rows[0], rows[1], rows[3]] == [SOUND, ARITHMETIC, WEAK]
    assert rows[2]["id"] == CUT["id"]
    assert len(json.loads(rows[2]["verifier_args"])["cases"]) == len(SUMS)
    assert {row["source_row"]: row["drop_reason"] for row in table(folder, "dropped")} == {
        3: "reference_fails",
        6: "needs_checker",
    }
    assert (report.rows_in, report.rows_out) == (6, 4)
    assert report.facts["outcomes"] == {"keep": 2, "drop": 2, "repair": 1}


def test_every_change_has_its_record_with_evidence(done: tuple[Path, StageReport]) -> None:
    folder, report = done
    ledger = table(folder, "ledger")
    entries = [(entry["source_row"], entry["action"], entry["reason"]) for entry in ledger]
    assert entries == [
        (3, "drop", "reference_fails"),
        (4, "edit", "truncated_cases"),
        (4, "keep", "reference_passes"),
        (5, "flag", "low_kill_rate"),
        (6, "drop", "needs_checker"),
    ]
    assert sum(report.counts.values()) == len(ledger)
    edit = ledger[1]
    assert (edit["before"], edit["after"]) == (CUT["verifier_args"], table(folder, "rows")[2]["verifier_args"])
    assert json.loads(edit["evidence"])["column"] == "verifier_args"
    assert "print any of them" in json.loads(ledger[4]["evidence"])["said"]


LARGER = make(8, [("0 3", "3"), ("3 1", "3"), ("2 3", "3")], "a, b = map(int, input().split())\nprint(max(a, b))\n")


def test_weak_tests_are_held_back_with_cases_or_mended(tmp_path: Path) -> None:
    config = VetTestsConfig(runs=2, workers=2)
    held, mended = tmp_path / "held", tmp_path / "mended"
    for folder in (held, mended):
        folder.mkdir()
    run(held, [LARGER], config=config)
    flags = {entry["reason"]: entry for entry in table(held, "flags")}
    assert {reason: entry["blocks"] for reason, entry in flags.items()} == {"paid_null": True, "guessable": False}
    cases = json.loads(flags["paid_null"]["evidence"])["proposed_cases"]
    assert table(held, "rows") == [LARGER]
    run(mended, [LARGER], config=config.model_copy(update={"mend": True}))
    (row,), (edit,) = table(mended, "rows"), table(mended, "ledger")
    assert (edit["action"], edit["reason"]) == ("edit", "cases_added")
    assert (edit["before"], edit["after"]) == (LARGER["verifier_args"], row["verifier_args"])
    assert json.loads(edit["evidence"])["proposed_cases"] == cases
    assert json.loads(row["verifier_args"])["cases"][3:] == [json.loads(case) for case in cases]


def test_flags_stand_beside_those_that_still_hold(done: tuple[Path, StageReport]) -> None:
    flags = table(done[0], "flags")
    assert [(entry["source_row"], entry["reason"], entry["blocks"]) for entry in flags] == [(5, "low_kill_rate", False)]


def test_tables_and_facts_are_the_same_in_parts(done: tuple[Path, StageReport], tmp_path: Path) -> None:
    flags = [flag(WRONG, "gold_fails_verifier"), flag(CUT, "gold_fails_verifier")]
    for index, (chunk, earlier) in enumerate([(ROWS[:2], []), (ROWS[2:4], flags), (ROWS[4:], [])]):
        part = Part(index, 3, {}, tmp_path)
        write_rows(part.output("in.parquet"), chunk, ROW_SCHEMA)
        write_rows(part.output("gold.parquet"), earlier, FLAG_SCHEMA)
    (tmp_path / "out").mkdir()
    inputs = {"rows": tmp_path / "in.parquet", "flags": tmp_path / "gold.parquet"}
    assert vet_tests(inputs, QUICK, tmp_path / "out", NullProgress()) == done[1]
    for name in ("rows", "ledger", "dropped", "flags", "suites"):
        # How much of the CPU limit a solution needs is measured anew.
        tables = [[{**row, "headroom": None} for row in table(folder, name)] for folder in (tmp_path, done[0])]
        assert tables[0] == tables[1], name


def test_there_is_a_row_for_every_suite(done: tuple[Path, StageReport]) -> None:
    suites = table(done[0], "suites")
    assert [(suite["source_row"], suite["outcome"], suite["type"]) for suite in suites] == [
        (1, "keep", "stdio"),
        (3, "drop", "stdio"),
        (4, "repair", "stdio"),
        (5, "keep", "stdio"),
        (6, "drop", "stdio"),
    ]
    assert (suites[2]["cases"], suites[2]["kept"]) == (5, 4)
    assert suites[0]["kill_rate"] == 1.0
    assert suites[3]["kill_rate"] < 0.8
    assert len(suites[3]["survivors"]) == round((1 - suites[3]["kill_rate"]) * suites[3]["mutants"])


def test_a_report_is_made_of_the_suites(done: tuple[Path, StageReport]) -> None:
    suites = table(done[0], "suites")
    lines = summary_lines(suites)
    assert lines[0] == "5 suites: 2 keep, 2 drop, 1 repair"
    assert any("train.jsonl:5" in line and "kill rate" in line for line in lines)
    page = markdown("a|b", suites)
    assert page.startswith("# Test suites of a\\|b\n")
    assert "`needs_checker`" in page


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = vet_stage.vet

    def counted(info: Any, **more: Any) -> Any:
        calls.append(more["prompt"])
        if more["prompt"] == CUT["prompt"]:
            raise KeyboardInterrupt
        return real(info, **more)

    monkeypatch.setattr(vet_stage, "vet", counted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, ROWS, config=QUICK.model_copy(update={"workers": 1}))
    scratch = tmp_path / "out" / "scratch" / "00000" / "vetted.jsonl"
    before = len(scratch.read_bytes().strip().splitlines())
    with scratch.open("ab") as file:
        file.write(b'{"key": ["cut", "sho')
    calls.clear()
    monkeypatch.setattr(vet_stage, "vet", lambda info, **more: calls.append(more["prompt"]) or real(info, **more))
    report = run(tmp_path, ROWS)
    assert before >= 1
    assert len(calls) == 5 - before
    assert report.rows_out == 4


def test_rows_that_the_sandbox_failed_on_stay_and_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise SandboxError("no more processes")

    monkeypatch.setattr(vet_stage, "vet", fail)
    report = run(tmp_path, [WRONG])
    assert (report.rows_out, dict(report.counts)) == (1, {"flag:not_vetted": 1})
    assert json.loads(table(tmp_path, "flags")[0]["evidence"]) == {"error": "no more processes"}
    monkeypatch.undo()
    assert run(tmp_path, [WRONG]).rows_out == 0


def test_data_without_code_costs_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vet_stage, "ThreadPoolExecutor", None)
    kept = flag(ARITHMETIC, "gold_unparsed")
    report = run(tmp_path, [ARITHMETIC], [kept])
    assert (report.rows_in, report.rows_out, dict(report.counts)) == (1, 1, {})
    assert table(tmp_path, "rows") == [ARITHMETIC]
    assert [entry["reason"] for entry in table(tmp_path, "flags")] == ["gold_unparsed"]
    assert table(tmp_path, "suites") == table(tmp_path, "ledger") == []


def test_an_empty_table_stays_one(tmp_path: Path) -> None:
    assert run(tmp_path, []).rows_out == 0
    assert table(tmp_path, "rows") == []


def test_tests_that_cannot_be_read_drop_the_row(tmp_path: Path) -> None:
    row = {**SOUND, "verifier_args": '{"type":"stdio","cases":[]}'}
    run(tmp_path, [row])
    assert [entry["drop_reason"] for entry in table(tmp_path, "dropped")] == ["unreadable_tests"]


@rows(
    "solution, meta, references, wrong",
    [
        ("a", {}, ("a",), ()),
        ("a\n", {"solutions": ["a", "b", "c", "d"]}, ("a", "b", "c"), ()),
        ("So:\n```python\na\n```", {"solutions": ["a", "```\nb\n```"]}, ("a", "b"), ()),
        (None, {"solutions": '["x", "y"]'}, ("x", "y"), ()),
        (None, {"solutions": {"language": [2, 3, 3], "solution": ["int", "p", "q"]}}, ("p", "q"), ()),
        (None, {"incorrect_solutions": {"language": [3], "solution": ["w"]}}, (), ("w",)),
        (None, {"solutions": "not json", "incorrect_solutions": 5}, (), ()),
        (None, {"solutions": "[broken"}, (), ()),
        (None, {"solutions": [1, None, " "]}, (), ()),
    ],
)
def test_programs_come_from_the_row_and_what_its_source_knew(
    solution: str | None, meta: dict[str, Any], references: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    assert programs_of({"solution": solution, "meta": json.dumps(meta)}, 3) == (references, wrong)


def test_finished_records_survive_being_read_again(tmp_path: Path) -> None:
    path = tmp_path / "vetted.jsonl"
    for row_number in range(3):
        with Finished(path) as finished:
            assert finished.get({"id": "x", "source": "s", "source_row": row_number}) is None
            finished.add({"key": ["x", "s", row_number], "n": row_number})
    with Finished(path) as finished:
        assert [finished.get({"id": "x", "source": "s", "source_row": n}) for n in range(3)] == [
            {"key": ["x", "s", n], "n": n} for n in range(3)
        ]


HUMANEVAL = {"task_id": "T/0", "prompt": "def f(x):\n", "canonical_solution": " return x\n", "entry_point": "f"}


@pytest.mark.parametrize(
    ("record", "settings", "expected"),
    [
        ({**HUMANEVAL, "test": "def check(candidate):\n    assert candidate(1) == 1\n"}, {}, True),
        ({"question": "1+1?", "answer": "#### 2"}, {}, False),
        (
            {"question": "1+1?", "answer": "#### 2", "kind": "math"},
            {"columns": Columns.model_validate({"verifier": "kind"})},
            True,
        ),
        (
            {"prompt": "Add.", "tests": []},
            {"columns": Columns.model_validate({"prompt": "prompt", "tests": "tests"})},
            True,
        ),
        ({"prompt": "Add.", "answer": "2"}, {"verifier": "code"}, True),
        ({**HUMANEVAL, "test": "assert f(1) == 1"}, {"verifier": "math"}, False),
    ],
)
def test_whether_a_file_may_hold_code_is_told_by_its_columns(
    tmp_path: Path, record: dict[str, Any], settings: dict[str, Any], expected: bool
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(record) + "\n")
    assert resolve_sources(FileSource(path=str(path), **settings), {"data": path}) is expected


def test_sources_that_cannot_be_looked_into() -> None:
    assert resolve_sources(HubSource(name="openai/gsm8k"), {})
    assert not resolve_sources(HubSource(name="openai/gsm8k", preset="gsm8k"), {})
