"""Pass rates, suspicion and selection, on the scripted engine: every problem by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from numbered_rows import make_row

from truegold.pipeline.config.engines import ScriptedEngineConfig
from truegold.pipeline.config.stages import ProfileConfig, SelectConfig
from truegold.pipeline.profile.stage import profile
from truegold.pipeline.rows import write_rows
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.select.stage import balanced_order, select
from truegold.verifiers import InputError

RIGHT = "so \\boxed{5}"
WRONG = "so \\boxed{6}"


def run_profile(
    folder: Path,
    completions: Mapping[int, Sequence[str]],
    heldout: Sequence[int] = (),
    inputs: Mapping[str, Path] | None = None,
    **config: Any,
) -> StageReport:
    """Profile problems whose samples are these completions in turn; `inputs` are added to the rows."""
    rows = [make_row(problem, "heldout" if problem in heldout else "train") for problem in completions]
    write_rows(folder / "rows.parquet", rows)
    script = [{"prompt": f"<{problem}>", "completions": list(texts)} for problem, texts in completions.items()]
    (folder / "script.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in script))
    engine = ScriptedEngineConfig(path=str(folder / "script.jsonl"))
    settings = ProfileConfig(engine=engine, samples=4, **config)
    out = folder / "profile"
    out.mkdir(exist_ok=True)
    return profile({"rows": folder / "rows.parquet", **(inputs or {})}, settings, out, NullProgress())


def run_select(folder: Path, **config: Any) -> StageReport:
    """Select from what was profiled."""
    inputs = {name: folder / "profile" / f"{name}.parquet" for name in ("rows", "profile", "flags")}
    out = folder / "select"
    out.mkdir(exist_ok=True)
    return select(inputs, SelectConfig(**config), out, NullProgress())


def test_a_profile_after_training_sees_which_answers_have_risen(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    easy = {problem: [RIGHT] * 4 for problem in range(2, 12)}
    run_profile(before, {1: [RIGHT, RIGHT, WRONG, WRONG], **easy})
    earlier = {"earlier": before / "profile" / "samples.parquet"}
    run_profile(after, {1: [WRONG] * 4, **easy}, inputs=earlier)
    table = pl.read_parquet(after / "profile" / "suspicion.parquet").sort("suspicion", descending=True)
    assert table["source_row"][0] == 1
    evidence = json.loads(table["evidence"][0])
    assert evidence["history"] == {"label": [0.5, 0.0], "alternative": [0.5, 1.0]}
    assert evidence["systems"] == 1


def test_a_profile_counts_passes_and_finds_the_majority(tmp_path: Path) -> None:
    completions = {
        1: [RIGHT, WRONG, "so \\boxed{5.0}", "no idea"],
        2: ["\\boxed{6}", "\\boxed{6.0}", "\\boxed{\\frac{12}{2}}", "\\boxed{7}"],
        3: ["nothing at all"],
    }
    report = run_profile(tmp_path, completions)
    summaries = pl.read_parquet(tmp_path / "profile" / "profile.parquet").sort("source_row")
    assert summaries["passes"].to_list() == [2, 0, 0]
    assert summaries["pass_rate"].to_list() == [0.5, 0.0, 0.0]
    assert summaries["majority_agreement"].to_list() == [0.5, 0.75, 0.0]
    assert json.loads(summaries["pass_at"][0]) == {"1": 0.5, "2": 0.833333, "4": 1.0}
    flags = pl.read_parquet(tmp_path / "profile" / "flags.parquet")
    # Three forms of 6 are one answer against the gold 5.
    assert flags["source_row"].to_list() == [2]
    assert flags["suggestion"].to_list() == ["6"]
    assert report.facts["train"]["mean_pass_rate"] == pytest.approx(1 / 6, abs=1e-4)


def test_selection_takes_what_carries_signal_and_says_why_not(tmp_path: Path) -> None:
    half = [RIGHT, WRONG, RIGHT, "\\boxed{7}"]
    completions = {
        1: half,
        2: [RIGHT],
        3: ["\\boxed{1}", "\\boxed{2}", "\\boxed{3}", "\\boxed{4}"],
        4: [WRONG],
        5: half,
    }
    run_profile(tmp_path, completions, heldout=[5])
    report = run_select(tmp_path)
    assert pl.read_parquet(tmp_path / "select" / "selected.parquet")["source_row"].to_list() == [1]
    dropped = pl.read_parquet(tmp_path / "select" / "dropped.parquet").sort("source_row")
    assert dropped["source_row"].to_list() == [2, 3, 4]
    assert dropped["drop_reason"].to_list() == ["all_pass", "no_pass", "held_for_review"]
    assert pl.read_parquet(tmp_path / "select" / "heldout.parquet")["source_row"].to_list() == [5]
    assert sorted(pl.read_parquet(tmp_path / "select" / "after.parquet")["source_row"]) == [1, 5]
    assert report.rows_in == 5


def test_zero_share_lets_some_never_passed_rows_come_along(tmp_path: Path) -> None:
    never = ["\\boxed{1}", "\\boxed{2}", "\\boxed{3}", "\\boxed{4}"]
    completions = {1: [RIGHT, WRONG], 2: [RIGHT, WRONG], **dict.fromkeys(range(3, 9), never)}
    run_profile(tmp_path, completions)
    run_select(tmp_path, zero_share=0.5)
    selected = pl.read_parquet(tmp_path / "select" / "selected.parquet")
    assert (selected["pass_rate"] == 0).sum() == 2
    assert selected.height == 4


def test_rows_beyond_the_wanted_number_are_the_reserve(tmp_path: Path) -> None:
    run_profile(tmp_path, {problem: [RIGHT, WRONG] for problem in range(1, 7)})
    run_select(tmp_path, max_rows=4)
    assert pl.read_parquet(tmp_path / "select" / "selected.parquet").height == 4
    assert pl.read_parquet(tmp_path / "select" / "reserve.parquet").height == 2
    assert pl.read_parquet(tmp_path / "select" / "dropped.parquet")["drop_reason"].to_list() == ["over_max_rows"] * 2


def test_a_selection_of_nothing_is_a_clear_error(tmp_path: Path) -> None:
    run_profile(tmp_path, {1: [RIGHT], 2: ["nothing at all"]})
    with pytest.raises(InputError, match=r"None of 2 profiled rows is left.*1 all_pass, 1 no_pass.*easier source.*SFT"):
        run_select(tmp_path)


def test_a_selection_in_which_no_row_ever_passed_is_refused_with_what_would_help(tmp_path: Path) -> None:
    wrong = [f"{answer} may be the answer" for answer in range(4)]
    run_profile(tmp_path, dict.fromkeys(range(10, 22), wrong), max_tokens=4)
    expected = r"groups of 8 .* 12 selected rows 0\.\d% are expected to teach, 100\.0% to be all wrong"
    with pytest.raises(InputError, match=expected) as caught:
        run_select(tmp_path, zero_share=1.0)
    assert "raise profile.max_tokens" in str(caught.value.hint)
    assert "SFT" in str(caught.value.hint)
    assert run_select(tmp_path, zero_share=1.0, min_teaching_share=0).rows_out == 12


def test_a_selection_says_what_share_of_its_groups_is_expected_to_teach(tmp_path: Path) -> None:
    run_profile(tmp_path, {problem: [RIGHT, WRONG] for problem in range(1, 7)})
    pairs, groups = (run_select(tmp_path, group_size=size).facts["expected_teaching_share"] for size in (2, 16))
    assert 0.4 < pairs < 0.55
    assert groups > 0.95


def test_every_prefix_of_a_balanced_order_is_balanced() -> None:
    rows = [{"pass_rate": rate} for rate in [0.1] * 8 + [0.3] * 8 + [0.6] * 8 + [0.9] * 2]
    ordered = balanced_order(rows, 4, random.Random(0))
    assert len(ordered) == len(rows)
    first = [row["pass_rate"] for row in ordered[:8]]
    assert sorted(first) == [0.1, 0.1, 0.3, 0.3, 0.6, 0.6, 0.9, 0.9]


def test_a_judge_is_asked_only_about_what_the_verifier_left_open(tmp_path: Path) -> None:
    gold = "the area of the circle is larger than that of the square"
    answers = ["\\boxed{the circle has the larger area}", "\\boxed{\\text{no}", "nothing at all, sorry", RIGHT]
    rows = [make_row(1, gold=gold), make_row(2)]
    write_rows(tmp_path / "rows.parquet", rows)
    samples = [{"prompt": f"<{row['source_row']}>", "completions": answers} for row in rows]
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in samples))
    (tmp_path / "judge.jsonl").write_text(json.dumps({"prompt": "Two people", "completions": ["SAME"]}) + "\n")
    settings = ProfileConfig.model_validate(
        {
            "engine": {"type": "scripted", "path": str(tmp_path / "script.jsonl")},
            "samples": 4,
            "judge": {"name": "oracle", "engine": {"type": "scripted", "path": str(tmp_path / "judge.jsonl")}},
        }
    )
    (tmp_path / "profile").mkdir()
    profile({"rows": tmp_path / "rows.parquet"}, settings, tmp_path / "profile", NullProgress())
    judged = pl.read_parquet(tmp_path / "profile" / "samples.parquet").sort("source_row", "sample")
    asked = [json.loads(text).get("judge") for text in judged["evidence"]]
    assert asked == ["oracle", None, None, "oracle", None, None, None, None]
    assert judged["score"].to_list()[:1] == [1.0]
    assert None not in judged["score"].to_list()[4:]
