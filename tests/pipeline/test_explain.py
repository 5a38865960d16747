"""A row's whole story, found by id, by a part of it, and by where it came from."""

from __future__ import annotations

from pathlib import Path

import fake_run as fake
import orjson
import pytest

from truegold.pipeline.report.explain import explain, explain_lines
from truegold.verifiers import InputError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all its stages."""
    folder: Path = tmp_path_factory.mktemp("explain") / "fake"
    fake.FakeRun(folder).build(fake.FULL)
    return folder


def test_the_story_of_a_suspect_row(run: Path) -> None:
    (story,) = explain(run, fake.make_row(6)["id"]).rows
    assert story.row["prompt"] == fake.PROMPTS[6]
    assert [(e.stage, e.action, e.reason) for e in story.events] == [
        ("profile", "flag", "suspect_gold"),
        ("select", "drop", "held_for_review"),
    ]
    assert [flag["suggestion"] for flag in story.flags] == ["99"]
    assert story.profiles["profile"]["passes"] == 0
    assert [sample["reason"] for sample in story.samples] == ["mismatch"] * 3
    assert story.ended == "dropped by select: held_for_review; kept in select/dropped.parquet"


def test_the_original_text_is_shown_and_the_edit(run: Path) -> None:
    (story,) = explain(run, "raw.jsonl:11").rows
    assert story.row["prompt"].startswith(fake.PAYLOAD)
    assert (story.events[0].stage, story.events[0].action) == ("clean", "edit")
    assert story.events[0].before == f"{story.events[0].after}  "


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("raw.jsonl:1", "selected for training"),
        ("heldout.jsonl:1", "held out for evaluation"),
        ("raw.jsonl:11", "dropped by select: in_reserve; kept in select/dropped.parquet"),
        ("raw.jsonl:2", "dropped by dedup: exact_duplicate; kept in dedup/dropped.parquet"),
    ],
)
def test_where_it_ended(run: Path, name: str, ended: str) -> None:
    assert explain(run, name).rows[0].ended == ended


def test_a_trained_row_has_both_pass_rates(run: Path) -> None:
    (story,) = explain(run, "raw.jsonl:7").rows
    assert {stage: summary["pass_rate"] for stage, summary in story.profiles.items()} == {
        "profile": 0.5,
        "profile_after": 0.0,
    }


def test_a_short_prefix_will_do(run: Path) -> None:
    whole = fake.make_row(6)["id"]
    assert explain(run, whole[:6].upper()).rows[0].row["id"] == whole


@pytest.mark.parametrize("own", ["q-006", "7", "123456", "题:17", 'say "x"', "../a/b"])
def test_a_row_goes_by_the_id_that_its_source_gave_it(tmp_path: Path, own: str) -> None:
    named = fake.FakeRun(tmp_path / "named")
    named.rows[6]["meta"] = orjson.dumps({"source_id": own}).decode()
    named.rows[3]["meta"] = orjson.dumps({"source_id": own + "1", "note": own}).decode()
    named.build(("ingest",))
    assert [story.row["source_row"] for story in explain(tmp_path / "named", own).rows] == [6]


def test_an_id_of_several_rows_lists_them(tmp_path: Path) -> None:
    named = fake.FakeRun(tmp_path / "named")
    for line in (3, 6):
        named.rows[line]["meta"] = '{"source_id":"q1"}'
    named.build(("ingest",))
    with pytest.raises(InputError, match=f"2 ids match q1: {named.rows[3]['id']}, {named.rows[6]['id']}"):
        explain(tmp_path / "named", "q1")


@pytest.mark.parametrize("name", ["raw.jsonl:12", "bad-12"])
def test_a_rejected_record_has_a_story(name: str, run: Path) -> None:
    story = explain(run, name)
    assert story.rows == () and story.reject is not None
    lines = explain_lines(story)
    assert lines[:2] == ["raw.jsonl:12 never became a row.", "  rejected  invalid_json: column 'answer'"]


def test_the_tests_of_a_program_are_told_or_the_settings_of_its_verifier(tmp_path: Path) -> None:
    programs = fake.FakeRun(tmp_path / "programs")
    cases = [{"input": f"{n} 2\n", "output": f"{n + 2}\n"} for n in range(2_000)]
    tests: tuple[dict[str, object], ...] = (
        {"type": "stdio", "cases": cases},
        {"type": "asserts", "code": "assert f(1)"},
    )
    for line, suite in zip((3, 6), tests, strict=True):
        programs.rows[line] |= {"verifier": "code", "verifier_args": orjson.dumps(suite).decode()}
    programs.rows[7]["verifier_args"] = '{"comma":"decimal"}'
    programs.build(("ingest",))
    told = ["\n".join(explain_lines(explain(tmp_path / "programs", f"raw.jsonl:{line}"))) for line in (3, 6, 7)]
    assert "\n  case 0    0 2 -> 2\n  case 1    1 2 -> 3\n" in told[0]
    assert "\n            1,980 more\n" in told[0]
    assert "\n  tests     assert f(1)  # case 0\n" in told[1]
    assert "\n  comma     decimal\n" in told[2]


def test_rows_of_the_same_content_are_explained_together(tmp_path: Path) -> None:
    twins = fake.FakeRun(tmp_path / "twins")
    twins.rows = {line: {**fake.make_row(1), "source_row": line} for line in range(1, 8)}
    twins.build(("ingest",))
    story = explain(tmp_path / "twins", twins.rows[1]["id"])
    assert [row_story.row["source_row"] for row_story in story.rows] == [1, 2, 3, 4, 5]
    assert story.rows[0].ended == "still in the data after ingest"
    assert explain_lines(story)[-1] == "2 more rows have the same content and id."


def test_an_ambiguous_prefix_lists_the_candidates(tmp_path: Path) -> None:
    near = fake.FakeRun(tmp_path / "near")
    for line in (1, 3):
        near.rows[line]["id"] = f"abcdef{line:014x}"
    near.build(("ingest",))
    with pytest.raises(InputError, match=r"2 ids begin with abcdef: abcdef00000000000001, abcdef00000000000003"):
        explain(tmp_path / "near", "abcdef")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("0000000000", r"No row of .* is '0000000000'. Its records are heldout.jsonl:1 to heldout.jsonl:2, raw"),
        ("raw.jsonl:99", r"No row of .* raw.jsonl:1 to raw.jsonl:13"),
        ("abc", r"matches no row. Give six or more hex digits"),
        ("what\x1b[2J", r"matches no row"),
    ],
)
def test_an_unknown_row_gets_one_helpful_line(run: Path, name: str, line: str) -> None:
    with pytest.raises(InputError, match=line) as caught:
        explain(run, name)
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


def test_what_is_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a run of truegold.*runs/NAME"):
        explain(tmp_path, "abcdef")


def test_the_lines_are_safe_to_print(run: Path) -> None:
    text = "\n".join(explain_lines(explain(run, "raw.jsonl:11")))
    assert not [mark for mark in text if mark < " " and mark != "\n"]
    assert "\u202e" not in text
    for part in ("in_reserve", "clean: edit whitespace", "missing_quantity", "profile: 0.250", fake.CHINESE):
        assert part in text


def test_a_flag_says_what_it_held_back_and_what_its_percentage_is(run: Path) -> None:
    held = explain_lines(explain(run, "raw.jsonl:6"))
    assert "    suspect_gold (suspect_gold, 75% of samples agree, holds it back)" in held
    assert "    at fault with probability 92% (prior −2.9, model +4.0, samples +0.4)" in held
    trained = explain_lines(explain(run, "raw.jsonl:7"))
    assert "    suspect_gold (profile_after, 50% of samples agree, holds nothing back)" in trained
    advice = explain_lines(explain(run, "raw.jsonl:9"))
    assert "    truncated_text (truncated_text, confidence 50%, holds nothing back)" in advice
