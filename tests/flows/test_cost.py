"""What a job would cost: `truegold plan`, and the times of stages that have not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from truegold.flows.cli.app import app
from truegold.flows.cli.run_commands import read_count
from truegold.flows.config import load_config, validate_config
from truegold.flows.cost import JobSize, MeasuredCosts, StageCost, describe_plan, last_sampling, measure
from truegold.verifiers import ConfigError

PROBE = MeasuredCosts(
    400,
    {
        "ingest": StageCost(start_s=2.0, row_s=0.0001, row_bytes=200.0, by_part=False),
        "verify_gold": StageCost(start_s=1.0, row_s=0.0036, row_bytes=300.0, by_part=True),
    },
)


def write_data(path: Path, rows: int) -> Path:
    """Write problems whose numbers differ."""
    problems = (
        {"question": f"What is {n} + {n + 2} in the ring of {n * 7}?", "answer": f"{2 * n + 2}"} for n in range(rows)
    )
    path.write_text("".join(json.dumps(problem) + "\n" for problem in problems))
    return path


def test_only_parts_are_shared_by_cores() -> None:
    assert PROBE.stages["ingest"].seconds(10_000, cores=4) == 2.0 + 1.0
    assert PROBE.stages["verify_gold"].seconds(10_000, cores=4) == 1.0 + 9.0


def test_a_plan_adds_up_stages_and_scales_sampling() -> None:
    job = JobSize(rows=1_000_000, samples=10_000_000, cores=10, gpus=4, sample_tokens=500, gpu_tokens_s=10_000)
    lines = list(describe_plan(PROBE, job))
    assert lines[3].split() == ["ingest", "0.100", "2", "min", "2", "min", "0.2", "GB"]
    assert lines[4].split() == ["verify_gold", "3.600", "60", "min", "6", "min", "0.3", "GB"]
    assert lines[6] == "curation      8 min on 10 cores, for 1,000,000 rows"
    assert "60 min on 10 cores, for 10,000,000 samples" in lines[7]
    # 5e9 tokens at 10,000 a second are 500,000 s, a fourth of it on each GPU.
    assert "139 GPU hours" in lines[-1] and "34 h 43 min on 4 GPUs" in lines[-1]


def test_a_plan_says_which_figure_it_lacks() -> None:
    unknown = list(describe_plan(PROBE, JobSize(rows=10, samples=100, cores=1)))
    assert "--sample-tokens" in unknown[-1]
    half = list(describe_plan(PROBE, JobSize(rows=10, samples=100, cores=1, sample_tokens=9)))
    assert half[-1].endswith("name --gpu-tokens, the tokens that one of your GPUs samples a second")
    assert not any("sample" in line for line in describe_plan(PROBE, JobSize(rows=10, samples=0, cores=1)))


def test_a_probe_times_curation_and_leaves_the_run_alone(tmp_path: Path) -> None:
    data = write_data(tmp_path / "train.jsonl", 450)
    config = load_config(data, [f"runs_dir={tmp_path / 'runs'}"])
    probe = measure(config, limit_s=0.0)
    assert probe.rows == 400
    assert list(probe.stages) == ["ingest", "clean", "dedup", "verify_gold", "flag", "settle"]
    assert [name for name, cost in probe.stages.items() if cost.by_part] == ["clean", "verify_gold", "flag"]
    assert all(cost.row_s >= 0 and cost.start_s >= 0 and cost.row_bytes > 0 for cost in probe.stages.values())
    assert probe.stages["flag"].row_s > 0
    assert not (tmp_path / "runs").exists()


def test_a_probe_of_a_few_rows_has_them_all(tmp_path: Path) -> None:
    config = load_config(write_data(tmp_path / "few.jsonl", 30))
    assert measure(config).rows == 30


def test_a_set_on_the_hub_is_not_fetched_for_a_probe() -> None:
    config = validate_config({"data": {"type": "hf", "name": "owner/set"}}, "test")
    with pytest.raises(ConfigError, match="Download it"):
        measure(config)


def test_the_last_profile_says_how_long_samples_are(tmp_path: Path) -> None:
    assert last_sampling(tmp_path) == (None, None)
    (tmp_path / "profile").mkdir()
    facts = {"sampling": {"drawn": 4, "tokens": 100, "tokens_per_s": 20.5}}
    (tmp_path / "profile" / "stage.json").write_text(json.dumps({"report": {"facts": facts}}))
    assert last_sampling(tmp_path) == (25.0, 20.5)


@pytest.mark.parametrize(
    ("text", "count"), [("10M", 10_000_000), ("1.5B", 1_500_000_000), ("500k", 500_000), ("20,000", 20_000), ("7", 7)]
)
def test_counts_are_written_as_people_write_them(text: str, count: int) -> None:
    assert read_count(text, "--rows") == count


@pytest.mark.parametrize("text", ["", "many", "-5", "1e", "10 M rows"])
def test_a_count_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match="--rows"):
        read_count(text, "--rows")


def test_a_dry_run_times_the_stages_that_have_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("truegold.flows.cost.PROBE_S", 0.0)
    data = write_data(tmp_path / "train.jsonl", 2_000)
    shown = CliRunner().invoke(app, ["curate", str(data), "--dry-run"], catch_exceptions=False).output
    assert "for ingest, clean, dedup, verify_gold, flag, settle, by some of the rows" in shown
    assert "no time is known of 2 stages that have not run here: export, report" in shown
    assert not (tmp_path / "runs").exists()


def test_plan_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = write_data(tmp_path / "train.jsonl", 60)
    shown = (
        CliRunner().invoke(app, ["plan", str(data), "--rows", "10M", "--cores", "16"], catch_exceptions=False).output
    )
    assert shown.startswith("measured on 60 rows") and "on 16 cores, for 10,000,000 rows" in shown
