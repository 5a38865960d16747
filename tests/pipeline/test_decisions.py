"""Reviewers' decisions: how they are written and read, and what becomes of rows by them."""

from __future__ import annotations

import json

import polars as pl
import pytest
from pydantic import ValidationError

from truegold.pipeline.config.stages import SettleConfig
from truegold.pipeline.review.decisions import Decision, append_decision, load_decisions
from truegold.pipeline.review.stage import settle
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.ledger import DROPPED_SCHEMA, FLAG_SCHEMA
from truegold.pipeline.tables.rows import read_rows, write_rows
from truegold.verifiers import InputError

NOON = "2026-02-03T12:00:00Z"


def make_row(name, source_row, split="train"):
    """Return a row with this id."""
    return {
        "id": name,
        "prompt": f"What is {source_row}+{source_row}?",
        "gold": str(source_row),
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": None,
        "source": "made.jsonl",
        "source_row": source_row,
        "split": split,
        "meta": "{}",
    }


def make_flag(row, reason, blocks=True):
    """Return a flag on the row."""
    reference = {key: row[key] for key in ("id", "source", "source_row")}
    return {**reference, "reason": reason, "detector": reason, "confidence": 0.9, "blocks": blocks, "evidence": "{}"}


def decide_row(folder, name, word, reviewer="ada", moment=NOON, **more):
    """Append a reviewer's decision about a row."""
    append_decision(folder, Decision(id=name, decision=word, reviewer=reviewer, at=moment, **more))


@pytest.fixture
def decide(tmp_path):
    """Runs `settle` over one flagged row `a` and a plain row `b` with the given words (id, word, reviewer, gold)."""

    def run(*words, rows=None, flags=None, gone=()):
        rows = rows or [make_row("a", 1), make_row("b", 2)]
        flags = [make_flag(rows[0], "proof"), make_flag(rows[0], "multi_part")] if flags is None else flags
        write_rows(tmp_path / "rows.parquet", rows)
        write_rows(tmp_path / "flags.parquet", flags, FLAG_SCHEMA)
        for name, word, reviewer, gold in words:
            decide_row(tmp_path / "decisions", name, word, reviewer, gold=gold)
        out = tmp_path / "out"
        out.mkdir()
        inputs = {
            "rows": tmp_path / "rows.parquet",
            "flags": tmp_path / "flags.parquet",
            "decisions": tmp_path / "decisions",
            "dropped vet_tests": tmp_path / "dropped.parquet",
        }
        write_rows(inputs["dropped vet_tests"], gone, DROPPED_SCHEMA)
        report = settle(inputs, SettleConfig(), out, NullProgress())
        cleared = {row["source_row"]: row for row in read_rows(out / "rows.parquet")}
        dropped = {row["source_row"]: row["drop_reason"] for row in read_rows(out / "dropped.parquet")}
        ledger = list(read_rows(out / "ledger.parquet"))
        restored = sum(record["reason"] == "reviewer_restored" for record in ledger)
        assert report.rows_in == len(rows) + restored == len(cleared) + len(dropped)
        assert report.rows_out == len(cleared)
        assert sum(count for key, count in report.counts.items() if key.startswith("drop:")) == len(dropped)
        return report, cleared, dropped, ledger

    return run


def test_cases_that_a_reviewer_accepts_are_added_to_the_tests(decide):
    tests = {"type": "stdio", "cases": [{"input": "0", "output": "0"}]}
    code = {"gold": None, "verifier": "code", "domain": "code", "verifier_args": json.dumps(tests)}
    rows = [{**make_row("a", 1), **code}, {**make_row("b", 2), **code}]
    case = {"input": "2", "output": "4"}
    words = [("a", "fix", "ada", json.dumps(case)), ("b", "fix", "ada", "no case")]
    _, cleared, dropped, ledger = decide(*words, rows=rows, flags=[make_flag(row, "paid_null") for row in rows])
    assert json.loads(cleared[1]["verifier_args"])["cases"] == [*tests["cases"], case]
    assert dropped == {2: "fix_unpayable"}
    assert json.loads(ledger[0]["evidence"])["column"] == "verifier_args"


ADD = {"type": "asserts", "code": "assert add(1, 2) == 3\nassert add(2, 2) == 5\n"}


def make_program(name, source_row, tests=ADD, **more):
    """Return a row that tests judge, with a worked solution."""
    code = {"gold": None, "verifier": "code", "domain": "code", "verifier_args": json.dumps(tests)}
    return {**make_row(name, source_row), **code, "solution": "def add(a, b):\n    return a + b", **more}


@pytest.mark.parametrize(
    ("lines", "code", "evidence"),
    [
        ("drop 1", "assert add(1, 2) == 3\n", (["1: assert add(2, 2) == 5"], [])),
        (
            "drop 1\nassert add(2, 2) == 4",
            "assert add(1, 2) == 3\nassert add(2, 2) == 4\n",
            (["1: assert add(2, 2) == 5"], ["assert add(2, 2) == 4"]),
        ),
        ("drop all\nassert add(0, 7) == 7", "assert add(0, 7) == 7\n", (["all"], ["assert add(0, 7) == 7"])),
    ],
    ids=["one case goes", "one case is replaced", "all cases are replaced"],
)
def test_a_fix_of_tests_is_carried_out_and_told_in_the_ledger(decide, lines, code, evidence):
    _, cleared, _, ledger = decide(("a", "fix", "ada", lines), rows=[make_program("a", 1)], flags=[])
    assert json.loads(cleared[1]["verifier_args"])["code"] == code
    assert (ledger[0]["action"], ledger[0]["reason"]) == ("edit", "reviewer_fix")
    told = json.loads(ledger[0]["evidence"])
    assert (told["dropped_cases"], told["added_cases"]) == evidence
    assert (ledger[0]["before"], ledger[0]["after"]) == (json.dumps(ADD), cleared[1]["verifier_args"])


def test_a_fix_that_leaves_no_tests_to_judge_by_waits_with_the_fault(decide):
    broken = {"type": "asserts", "code": "assert add(1, 2 == 3"}
    rows = [make_program("a", 1), make_program("b", 2), make_program("c", 3, broken), make_program("d", 4)]
    words = [
        ("a", "hello"),
        ("b", "drop 2"),
        ("c", "assert add(1, 1) == 2"),
        ("d", "drop all\nimport nowhere_to_be_found\nassert 1 == add(0, 1)"),
    ]
    _, _, dropped, ledger = decide(*((row, "fix", "ada", lines) for row, lines in words), rows=rows, flags=[])
    assert dropped == dict.fromkeys((1, 2, 3, 4), "fix_unpayable")
    faults = [json.loads(record["evidence"])["error"] for record in ledger]
    assert faults[:2] == ["'hello' asserts nothing", "there is no case 2: the cases are 0 to 1"]
    assert "not Python (line 1)" in faults[2] and "nowhere_to_be_found" in faults[3]


def test_a_dropped_row_comes_back_with_other_tests_and_not_with_unreadable_ones(decide):
    gone = [
        make_program("x", 7, {"type": "asserts", "code": "assert add(1, 2 == 3"}, drop_reason="unreadable_tests"),
        make_program("y", 8, {"type": "asserts", "code": "assert add(1, 2 == 3"}, drop_reason="unreadable_tests"),
        make_program("z", 9, drop_reason="reference_fails"),
        make_program("v", 10, drop_reason="reference_fails"),
    ]
    words = [
        ("x", "keep", None),
        ("y", "fix", "drop all\nassert add(1, 2) == 3"),
        ("z", "fix", "hello"),
        ("v", "keep", None),
    ]
    report, cleared, dropped, _ = decide(
        *((row, word, "ada", lines) for row, word, lines in words), gone=gone, flags=[]
    )
    assert dropped == {7: "keep_unpayable", 9: "fix_unpayable"}
    assert set(cleared) == {1, 2, 8, 10}
    assert report.counts["drop:keep_unpayable"] == 1 and report.counts["keep:reviewer_restored"] == 4


def test_without_a_word_flagged_rows_wait_and_others_pass(decide):
    report, cleared, dropped, ledger = decide()
    assert list(cleared) == [2]
    assert dropped == {1: "held_for_review"}
    assert json.loads(ledger[0]["evidence"])["flags"] == ["proof", "multi_part"]
    assert report.counts == {"drop:held_for_review": 1}


@pytest.mark.parametrize(
    ("word", "gold", "passes", "reason"),
    [
        ("keep", None, True, "keep:reviewer_keep"),
        ("drop", None, False, "drop:reviewer_drop"),
        ("fix", "9", True, "edit:reviewer_fix"),
        ("unsure", None, False, "drop:held_for_review"),
    ],
)
@pytest.mark.parametrize("name", ["a", "b"], ids=["flagged", "plain"])
def test_each_word_does_what_it_says_on_flagged_and_plain_rows(decide, name, word, gold, passes, reason):
    report, cleared, _, ledger = decide((name, word, "ada", gold))
    source_row = {"a": 1, "b": 2}[name]
    assert (source_row in cleared) is passes
    assert report.counts[reason] == 1 + (reason == "drop:held_for_review" and name == "b")
    if word == "fix":
        assert cleared[source_row]["gold"] == "9"
        [edit] = [record for record in ledger if record["action"] == "edit"]
        assert (edit["before"], edit["after"]) == (str(source_row), "9")
        assert json.loads(edit["evidence"])["column"] == "gold"
        assert cleared[source_row]["id"] == name


def test_a_fix_takes_the_golds_beside_the_old_one_with_it(decide):
    row = {**make_row("a", 1), "verifier_args": '{"other_golds":["one","1.0"]}'}
    _, cleared, _, _ = decide(("a", "fix", "ada", "9"), rows=[row], flags=[])
    assert (cleared[1]["gold"], cleared[1]["verifier_args"]) == ("9", "{}")


def test_flags_of_rows_that_pass_stay_open_until_somebody_decides(decide, tmp_path):
    rows = [make_row("a", 1), make_row("b", 2), make_row("c", 3)]
    flags = [make_flag(row, "multi_part", blocks=False) for row in rows[:2]] + [make_flag(rows[2], "proof")]
    decide(("b", "keep", "ada", None), rows=rows, flags=flags)
    open_flags = pl.read_parquet(next(tmp_path.rglob("open_flags.parquet")))
    assert open_flags.select("id", "reason").rows() == [("a", "multi_part")]


def test_flags_that_do_not_block_hold_nothing_back(decide):
    row = make_row("a", 1)
    _, cleared, dropped, _ = decide(rows=[row], flags=[make_flag(row, "proof", blocks=False)])
    assert list(cleared) == [1]
    assert dropped == {}


@pytest.mark.parametrize(
    "words",
    [
        [("a", "keep", "ada", None), ("a", "drop", "bob", None)],
        [("a", "keep", "ada", None), ("a", "fix", "bob", "9")],
        [("a", "fix", "ada", "8"), ("a", "fix", "bob", "9")],
        [("b", "keep", "ada", None), ("b", "drop", "bob", None)],
    ],
)
def test_reviewers_who_disagree_hold_the_row(decide, words):
    _, _, dropped, ledger = decide(*words)
    source_row = {"a": 1, "b": 2}[words[0][0]]
    assert dropped[source_row] == "reviewers_disagree"
    [record] = [record for record in ledger if record["reason"] == "reviewers_disagree"]
    assert json.loads(record["evidence"])["words"] == {reviewer: word for _, word, reviewer, _ in words}


@pytest.mark.parametrize(
    "words",
    [
        [("a", "keep", "ada", None), ("a", "keep", "bob", None)],
        [("a", "fix", "ada", "9"), ("a", "fix", "bob", "9")],
        [("a", "keep", "ada", None), ("a", "unsure", "bob", None)],
        [("a", "drop", "ada", None), ("a", "keep", "ada", None)],
    ],
    ids=["same-word", "same-fix", "unsure-gives-way", "later-word-of-one-reviewer"],
)
def test_words_that_agree_let_the_row_pass(decide, words):
    _, cleared, _, _ = decide(*words)
    assert 1 in cleared


def test_rows_of_one_content_share_a_decision_and_not_their_flags(decide):
    rows = [make_row("a", 1), make_row("a", 2), make_row("c", 3, split="heldout")]
    flags = [make_flag(rows[1], "proof"), make_flag(rows[2], "proof")]
    _, cleared, dropped, _ = decide(rows=rows, flags=flags)
    assert list(cleared) == [1]
    assert dropped == {2: "held_for_review", 3: "held_for_review"}


def test_one_word_settles_all_rows_of_its_content(decide):
    rows = [make_row("a", 1), make_row("a", 2)]
    _, cleared, _, _ = decide(("a", "fix", "ada", "9"), rows=rows, flags=[make_flag(rows[1], "proof")])
    assert [row["gold"] for row in cleared.values()] == ["9", "9"]


def test_decisions_about_rows_that_are_gone_are_stale(decide):
    words = [(f"gone{index:02}", "keep", "ada", None) for index in range(25)]
    report, _, _, _ = decide(("a", "keep", "ada", None), *words)
    stale = report.facts["stale_decisions"]
    assert stale["count"] == 25
    assert stale["ids"] == [f"gone{index:02}" for index in range(20)]
    assert report.facts["decided_ids"] == 1


def test_the_decisions_input_may_be_absent(tmp_path):
    write_rows(tmp_path / "rows.parquet", [make_row("a", 1)])
    write_rows(tmp_path / "flags.parquet", [], FLAG_SCHEMA)
    (tmp_path / "out").mkdir()
    inputs = {"rows": tmp_path / "rows.parquet", "flags": tmp_path / "flags.parquet"}
    assert settle(inputs, SettleConfig(), tmp_path / "out", NullProgress()).rows_out == 1


def test_a_folder_that_is_not_there_holds_no_decisions(tmp_path):
    assert load_decisions(tmp_path / "none") == {}


def test_each_reviewer_has_a_file_that_only_grows(tmp_path):
    decide_row(tmp_path, "a", "keep", reviewer="Ada L.", note="fine")
    first = (tmp_path / "ada-l.jsonl").read_bytes()
    decide_row(tmp_path, "b", "drop", reviewer="Ada L.")
    decide_row(tmp_path, "a", "keep", reviewer="王芳")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ada-l.jsonl", "王芳.jsonl"]
    assert (tmp_path / "ada-l.jsonl").read_bytes().startswith(first)
    assert [word.reviewer for word in load_decisions(tmp_path)["a"]] == ["Ada L.", "王芳"]


@pytest.mark.parametrize("reviewer", ["../../etc/passwd", "/abs", "..", "a/b"])
def test_no_reviewer_name_leaves_the_folder(reviewer, tmp_path):
    folder = tmp_path / "decisions"
    path = append_decision(folder, Decision(id="a", decision="keep", reviewer=reviewer, at=NOON))
    assert path.parent == folder
    assert path.suffix == ".jsonl"


def test_a_last_line_left_open_by_an_editor_is_closed(tmp_path):
    decide_row(tmp_path, "a", "keep")
    path = tmp_path / "ada.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    decide_row(tmp_path, "b", "keep")
    assert sorted(load_decisions(tmp_path)) == ["a", "b"]


def test_the_latest_word_wins_wherever_it_stands(tmp_path):
    decide_row(tmp_path, "a", "drop", moment="2026-02-03T12:00:00Z")
    decide_row(tmp_path, "a", "keep", moment="2026-02-03T10:00:00+00:00")
    decide_row(tmp_path, "a", "unsure", moment="2026-02-03T11:00:00")
    assert [word.decision for word in load_decisions(tmp_path)["a"]] == ["drop"]


GOOD = {"id": "a", "decision": "keep", "reviewer": "ada", "at": NOON}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{not json", "not JSON"),
        ("[]", "must be a section"),
        (
            json.dumps({**GOOD, "decision": "maybe"}),
            "decision: must be 'keep', 'drop', 'fix', 'unsure', 'undo' or 'note'",
        ),
        (json.dumps({**GOOD, "decision": "fix"}), "gold: a fix needs the right gold"),
        (json.dumps({**GOOD, "gold": "7"}), "gold: given with keep"),
        (json.dumps({**GOOD, "golds": "7"}), "golds: is unknown"),
        (json.dumps({**GOOD, "at": "noon"}), "at: "),
        (json.dumps({key: GOOD[key] for key in ("id", "decision", "at")}), "reviewer: is missing"),
        (json.dumps({**GOOD, "id": ""}), "id: "),
    ],
)
def test_a_malformed_line_is_named_by_file_line_and_field(line, says, tmp_path):
    (tmp_path / "ada.jsonl").write_text(json.dumps(GOOD) + "\n\n" + line + "\n")
    with pytest.raises(InputError) as caught:
        load_decisions(tmp_path)
    assert f"{tmp_path / 'ada.jsonl'}, line 3: " in str(caught.value)
    assert says in str(caught.value)


def test_a_decision_is_checked_before_it_is_written():
    with pytest.raises(ValidationError, match="a fix needs the right gold"):
        Decision(id="a", decision="fix", reviewer="ada", at=NOON)


def test_decisions_about_random_rows_without_a_flag_check_what_suspicion_says(tmp_path):
    rows = [make_row(name, number) for number, name in enumerate("abcdefg", 1)]
    write_rows(tmp_path / "rows.parquet", rows)
    write_rows(tmp_path / "flags.parquet", [make_flag(rows[1], "truncated_text", blocks=False)], FLAG_SCHEMA)
    folder, said = tmp_path / "decisions", {"passes": 0, "suspicion": 0.25}
    decide_row(folder, "a", "drop", drawn="random:1", **said)
    decide_row(folder, "b", "drop", drawn="random:1", **said)  # It has a flag.
    decide_row(folder, "c", "drop", drawn="suspicious", **said)
    decide_row(folder, "d", "keep", drawn="random:1", passes=3, suspicion=0.5)
    decide_row(folder, "e", "keep", drawn="random:1")  # It was not profiled.
    decide_row(folder, "f", "unsure", drawn="random:1", **said)
    decide_row(folder, "g", "keep", drawn="random:1", **said)
    decide_row(folder, "g", "drop", "bob", drawn="random:1", **said)  # They disagree.
    (tmp_path / "out").mkdir()
    inputs = {name: tmp_path / f"{name}.parquet" for name in ("rows", "flags")} | {"decisions": folder}
    settle(inputs, SettleConfig(), tmp_path / "out", NullProgress())
    checks = pl.read_parquet(tmp_path / "out" / "label_checks.parquet")
    assert checks.rows() == [("a", 0, 0.25, True), ("d", 3, 0.5, False)]


def test_a_note_leaves_a_row_as_it_is(decide):
    _, cleared, dropped, _ = decide(("a", "note", "ada", None), ("b", "note", "ada", None))
    assert (list(cleared), dropped) == ([2], {1: "held_for_review"})
