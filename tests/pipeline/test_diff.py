"""The difference of two runs: what it names, why, and that it leaves out what is the same."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from truegold.pipeline.report.run_diff import diff_lines, diff_runs
from truegold.pipeline.tables.rows import row_id
from truegold.verifiers import InputError

STORY = "Ann has {} pens and buys {} more at the shop. How many pens has she now?"
PROBLEMS = [(STORY.format(n, n + 1), str(2 * n + 1)) for n in range(1, 13)]
GERMAN = ("Anna hat drei Stifte und kauft noch vier dazu. Wie viele Stifte hat sie jetzt?", "7")
YES_NO = ("Is the sum of two odd numbers even?", "yes")
PROMPTED = ("A box holds 6 red balls and 9 blue ones. How many balls are in it? Let's think step by step.", "15")
ALL = [*PROBLEMS, GERMAN, YES_NO, PROMPTED]


def id_of(problem):
    """Return the id of a problem's row."""
    return row_id(*problem)


def test_two_runs_of_the_same_have_no_difference(curate, tmp_path):
    first, second = curate(tmp_path, ALL, name="a"), curate(tmp_path, ALL, name="b")
    difference = diff_runs(first, second)
    assert (difference.settings, difference.transitions, difference.texts, difference.flags) == ((), (), (), ())
    assert difference.left == (14, 14)
    assert diff_lines(difference)[2:] == ["No difference."]


def test_another_setting_is_named_with_the_rows_that_it_moved(curate, tmp_path):
    first = curate(tmp_path, ALL, name="a")
    second = curate(tmp_path, ALL, name="b", clean={"languages": ["en"]}, flag={"advise_only": ["yes_no_answer"]})
    difference = diff_runs(first, second)
    moved = {(change.first, change.second): change for change in difference.transitions}
    assert moved.keys() == {("kept", "clean: other_language"), ("settle: held_for_review", "kept")}
    dropped = moved["kept", "clean: other_language"]
    assert (dropped.rows, dropped.ids) == (1, (id_of(GERMAN),))
    assert [(setting.name, setting.first, setting.second) for setting in dropped.because] == [
        ("clean.languages", [], ["en"])
    ]
    released = moved["settle: held_for_review", "kept"]
    assert released.ids == (id_of(YES_NO),)
    assert [setting.name for setting in released.because] == ["flag.advise_only"]
    assert difference.left == (14, 14)
    text = "\n".join(diff_lines(difference))
    assert "kept -> dropped by clean (other_language)" in text
    assert 'because clean.languages: [] -> ["en"]' in text
    assert id_of(GERMAN) in text


def test_another_text_comes_with_the_edits_that_only_one_run_made(curate, tmp_path):
    first = curate(tmp_path, ALL, name="a")
    second = curate(tmp_path, ALL, name="b", clean={"skip": ["boilerplate"]})
    (change,) = diff_runs(first, second).texts
    assert (change.column, change.rows, change.ids) == ("prompt", 1, (id_of(PROMPTED),))
    assert (change.edits_first, change.edits_second) == ({"clean/boilerplate": 1}, {})


def test_a_renamed_and_reordered_file_is_the_same_data(curate, tmp_path):
    first = curate(tmp_path, ALL, name="a")
    second = curate(tmp_path, [*reversed(ALL)], file="other.jsonl", name="b")
    difference = diff_runs(first, second)
    assert (difference.source.both, difference.source.only_first, difference.source.only_second) == (15, 0, 0)
    assert difference.transitions == ()


def test_rows_of_other_data_and_changed_golds_are_kept_apart(curate, tmp_path):
    first = curate(tmp_path, ALL, name="a")
    fixed = [(PROBLEMS[0][0], "99"), *ALL[1:-1], ("How many legs do seven spiders have in all?", "56")]
    second = curate(tmp_path, fixed[:-1], name="b")
    source = diff_runs(first, second).source
    assert (source.both, source.changed, source.only_first, source.only_second) == (13, 1, 1, 0)
    assert source.changed_columns["gold"] == 1
    assert "prompt" not in source.changed_columns
    assert source.ids_changed == ((id_of(PROBLEMS[0]), id_of(fixed[0])),)
    assert source.ids_first == (id_of(PROMPTED),)
    grown = diff_runs(first, curate(tmp_path, [*ALL, fixed[-1]], name="c")).source
    assert (grown.both, grown.only_second, grown.ids_second) == (15, 1, (id_of(fixed[-1]),))


def test_copies_of_one_row_are_paired_one_by_one(curate, tmp_path):
    first = curate(tmp_path, [*ALL, PROBLEMS[0]], name="a")
    second = curate(tmp_path, [*ALL, PROBLEMS[0], PROBLEMS[0]], name="b")
    difference = diff_runs(first, second)
    assert (difference.source.both, difference.source.only_first, difference.source.only_second) == (16, 0, 1)
    assert difference.left == (14, 14)


def test_a_half_finished_run_is_compared_as_far_as_it_got(curate, tmp_path):
    first, second = curate(tmp_path, ALL, name="a"), curate(tmp_path, ALL, name="b", clean={"languages": ["en"]})
    for stage in ("settle", "export", "report", "flag"):
        (second / stage / "stage.json").unlink()
    difference = diff_runs(first, second)
    assert difference.stages == ("ingest", "clean", "dedup", "verify_gold")
    assert set(difference.stages_first) == {"flag", "settle", "export", "report"}
    assert [(change.first, change.second) for change in difference.transitions] == [("kept", "clean: other_language")]


def test_flags_that_one_run_lacks_are_named(curate, tmp_path):
    first = curate(tmp_path, ALL, name="a")
    second = curate(tmp_path, ALL, name="b", flag={"detectors": ["multi_part"]})
    (change,) = diff_runs(first, second).flags
    assert (change.reason, change.only_first, change.only_second) == ("yes_no_answer", 1, 0)
    assert change.ids_first == (id_of(YES_NO),)


def test_the_difference_is_json(curate, tmp_path):
    first, second = curate(tmp_path, ALL, name="a"), curate(tmp_path, ALL, name="b", clean={"languages": ["en"]})
    read = json.loads(json.dumps(asdict(diff_runs(first, second))))
    assert read["transitions"][0]["rows"] == 1
    assert read["settings"][0]["name"] == "clean.languages"


def test_a_folder_that_is_no_run_is_one_helpful_line(curate, tmp_path):
    with pytest.raises(InputError, match=r"not a run of truegold.*runs/NAME"):
        diff_runs(curate(tmp_path, ALL, name="a"), tmp_path)
