"""Pass rates and suspicion, on the scripted engine: every problem by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from numbered_rows import make_row

from truegold.pipeline.config.engines import ScriptedEngineConfig
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.profile import profiling
from truegold.pipeline.profile.stage import profile
from truegold.pipeline.running.progress import NullProgress, Progress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, flag_record
from truegold.pipeline.tables.reasons import AskedModel, asked_schema
from truegold.pipeline.tables.rows import row_reference, write_rows
from truegold.verifiers import ConfigError

RIGHT = "so \\boxed{5}"
WRONG = "so \\boxed{6}"


def run_profile(
    folder: Path,
    completions: Mapping[int, Sequence[str]],
    heldout: Sequence[int] = (),
    inputs: Mapping[str, Path] | None = None,
    progress: Progress | None = None,
    **config: Any,
) -> StageReport:
    """Profile problems whose samples are these completions in turn; `inputs` are added to the rows."""
    rows = [make_row(problem, "heldout" if problem in heldout else "train") for problem in completions]
    write_rows(folder / "rows.parquet", rows)
    script = [{"prompt": f"<{problem}>", "completions": list(texts)} for problem, texts in completions.items()]
    (folder / "script.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in script))
    engine = ScriptedEngineConfig(path=str(folder / "script.jsonl"))
    settings = ProfileConfig(engine=engine, **{"samples": 4, **config})
    out = folder / "profile"
    out.mkdir(exist_ok=True)
    return profile({"rows": folder / "rows.parquet", **(inputs or {})}, settings, out, progress or NullProgress())


def test_rules_and_an_asked_model_join_the_suspicion_of_a_profile(tmp_path: Path) -> None:
    rows = {number: make_row(number) for number in range(1, 8)}
    flag = flag_record(rows[2], "truncated_text", detector="truncated_text", evidence={})
    write_rows(tmp_path / "told.parquet", [flag], FLAG_SCHEMA)
    verdict = {"outcome": "faulty", "verdict": "model_contradiction", "ratio": 9.0}
    known = AskedModel(0.05, {"faulty": 90, "sound": 10}, {"faulty": 10, "sound": 90})
    write_rows(tmp_path / "asked.parquet", [{**row_reference(rows[3]), **verdict}], asked_schema(known))
    doubt = "It cannot be determined. \\boxed{9}"
    completions = {number: [RIGHT] * 4 for number in rows} | {4: [doubt] * 4}
    told = {"flags": tmp_path / "told.parquet", "asked": tmp_path / "asked.parquet"}
    run_profile(tmp_path, completions, inputs=told)
    table = pl.read_parquet(tmp_path / "profile" / "suspicion.parquet").sort("source_row")
    evidence = [json.loads(text) for text in table["evidence"]]
    assert [sorted(each["log_odds"].keys() - {"prior", "samples"}) for each in evidence[:5]] == [
        [],
        ["rules"],
        ["model"],
        ["doubts"],
        [],
    ]
    assert evidence[3]["doubts"] == [4, 4]
    assert min(table["ill_posed"][1], table["ill_posed"][2], table["ill_posed"][3]) > table["ill_posed"][0]


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


class Shown(NullProgress):
    """Keeps what a profile says of its samples."""

    def __init__(self) -> None:
        self.done = 0
        self.calls: list[tuple[int, int | None, str]] = []
        """How many samples are done, of how many, and the words."""

    def start(self, label: str, total: int | None = None) -> None:
        self.done = 0
        self.calls.append((self.done, total, label))

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        self.done += steps
        self.calls.append((self.done, total, detail))


def test_progress_counts_samples_from_the_first_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "SHOWN_EVERY_S", 0.0)
    shown = Shown()
    run_profile(tmp_path, {problem: [RIGHT, WRONG] for problem in range(6)}, progress=shown)
    samples = [call for call in shown.calls if "problems done" in call[2]]
    assert samples[-1][:2] == (24, 24)
    assert samples[-1][2].startswith("(6 of 6 problems done, ")
    assert {total for _, total, _ in samples} == {24}
    assert len({done for done, _, _ in samples}) > 2


def test_progress_expects_what_the_rule_expects_once_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiling, "SHOWN_EVERY_S", 0.0)
    shown = Shown()
    completions = {number: [RIGHT] * number + [WRONG] * (16 - number) for number in range(1, 17)}
    report = run_profile(tmp_path, completions, heldout=[1, 2], progress=shown, samples=16, first_samples=4)
    samples = [call for call in shown.calls if "problems done" in call[2]]
    in_pilot = [done for done, _, detail in samples if detail.startswith("(pilot, ")]
    assert in_pilot == [done for done, _, _ in samples[: len(in_pilot)]]
    assert len(set(in_pilot)) > 2
    totals = [total for _, total, _ in samples]
    # Two held-out rows get 16 samples each, the 14 others 4 at first, and then what the rule expects of them.
    assert totals[0] == 2 * 16 + 14 * 4
    expected = 2 * 16 + round(14 * report.facts["sampling"]["expected_samples"])
    assert any(abs(total - expected) <= 1 for total in totals)
    drawn = report.facts["sampling"]["drawn"]
    assert samples[-1][:2] == (drawn, drawn)
    assert samples[-1][2].startswith("(16 of 16 problems done, ")


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


class Notes(NullProgress):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        """Keep a line."""
        self.lines.append(text)


@pytest.mark.parametrize(("unread", "rates"), [("wrong", [0.25, 0.0]), ("left_out", [1.0, None])])
def test_samples_that_are_not_read_are_counted_and_said_and_may_be_left_out(
    tmp_path: Path, unread: str, rates: list[float | None]
) -> None:
    table = ["Together five it is.", "Five, says everybody.", "It all comes down to five apples then"]
    notes = Notes()
    report = run_profile(tmp_path, {1: [RIGHT, *table], 2: [*table, table[0]]}, progress=notes, unread=unread)
    summaries = pl.read_parquet(tmp_path / "profile" / "profile.parquet")
    assert summaries["unread"].to_list() == [3, 4]
    assert summaries["pass_rate"].to_list() == rates
    assert report.facts["train"]["unread_samples"] == 7
    (line,) = [line for line in notes.lines if "not read" in line]
    assert line.startswith("7 of 8 responses") and "Together five it is." in line


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


VERIFIERS = """
from truegold.verifiers import verifier


@verifier(version="1")
def strict(response: str, gold: str) -> bool:
    return f"\\boxed{{{gold}}}" in response


@verifier(version="1")
def loose(response: str, gold: str) -> bool:
    return "boxed" in response


@verifier(version="1")
def swapped(response: str, gold: str) -> bool:
    from truegold.verifiers import equivalent

    return response in (gold, f"\\boxed{{{gold}}}") or equivalent(response, gold=gold).score == 0.0


@verifier(version="1")
def nothing(response: str, gold: str) -> bool:
    return False
"""


def profile_by(folder: Path, name: str, notes: Progress | None = None) -> StageReport:
    """Profile ten problems by a verifier of VERIFIERS."""
    (folder / "checks.py").write_text(VERIFIERS)
    rows = [
        {**make_row(number, "train", str(10 * number + 3)), "verifier": f"{folder / 'checks.py'}:{name}"}
        for number in range(1, 11)
    ]
    write_rows(folder / "rows.parquet", rows)
    script = [{"prompt": f"<{number}>", "completions": [RIGHT] * 4} for number in range(1, 11)]
    (folder / "script.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in script))
    settings = ProfileConfig(engine=ScriptedEngineConfig(path=str(folder / "script.jsonl")), samples=4)
    (folder / "profile").mkdir()
    return profile({"rows": folder / "rows.parquet"}, settings, folder / "profile", notes or NullProgress())


@pytest.mark.parametrize(
    ("name", "why"), [("swapped", "prefers wrong answers"), ("nothing", "accepts none of 10 golds")]
)
def test_a_profile_by_a_verifier_that_cannot_tell_right_from_wrong_is_refused(
    tmp_path: Path, name: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        profile_by(tmp_path, name)
    assert not (tmp_path / "profile" / "samples.parquet").exists()


def test_a_profile_by_a_verifier_that_pays_wrong_answers_is_warned_of(tmp_path: Path) -> None:
    notes = Notes()
    report = profile_by(tmp_path, "loose", notes)
    assert [line for line in notes.lines if "fails its audit: it accepts 100% of the right answers and 100%" in line]
    (youden,) = report.facts["audits"].values()
    assert youden == 0.0


def test_a_built_in_verifier_is_not_audited_again(tmp_path: Path) -> None:
    assert run_profile(tmp_path, {1: [RIGHT] * 4}).facts["audits"] == {}
