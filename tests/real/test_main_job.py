"""The main job on the real stack: Prefect, vLLM, DeepSpeed and a tiny model, from raw rows to a trained checkpoint."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from command_line import run_command

pytestmark = pytest.mark.real

TRUEGOLD = [sys.executable, "-P", "-m", "truegold.flows.cli"]

CONFIG = """\
name: main
data: {path: train.jsonl, heldout: 0.15}
model: {type: tiny, vocab_size: 320, hidden_size: 64, intermediate_size: 128, heads: 2, max_positions: 128}
engine: {dtype: float32, max_model_len: 64, cpu_kv_cache_gib: 1}
sft:
  data: sft.jsonl
  batch_size: 64
  checkpoint_every: 40
  optimizer: {lr: 3.0e-3, dtype: float32}
profile: {samples: 4, max_tokens: 20, logprobs: true}
select: {zero_share: 0.5}
train:
  steps: 4
  prompts_per_step: 8
  group_size: 4
  checkpoint_every: 1
  sampling: {max_tokens: 20}
  objective: {minibatches: 2, masks: {truncated: false}}
  evaluation: {every: 2}
  optimizer: {lr: 3.0e-4, dtype: float32}
"""


def make_project(folder: Path) -> None:
    """Single-digit sums: 100 problems, a duplicate, a wrong gold and a broken line; SFT texts to learn from."""
    sums = [(a, b) for a in range(10) for b in range(10)]
    rows = [{"question": f"What is {a}+{b}?", "answer": str(a + b)} for a, b in sums]
    rows += [rows[3], {"question": "What is 2+2?", "answer": "5"}]
    lines = [json.dumps(row) for row in rows] + ["{broken"]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    draw = random.Random(0)
    with (folder / "sft.jsonl").open("w") as sft:
        for _ in range(64 * 130):
            a, b = draw.choice(sums)
            pair = {"prompt": f"What is {a}+{b}?", "completion": f"{a}+{b}={a + b} \\boxed{{{a + b}}}"}
            sft.write(json.dumps(pair) + "\n")
    (folder / "run.yaml").write_text(CONFIG)


def truegold(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that starts Prefect or samples, in a process of its own."""
    command = [*TRUEGOLD, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=550, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the main job has been run once, through Prefect."""
    folder = tmp_path_factory.mktemp("main-job")
    make_project(folder)
    done = truegold("run", "run.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def metrics(run_dir: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run_dir / "train" / "metrics.jsonl").read_text().splitlines()]


def test_every_stage_leaves_its_complete_folder(project: Path) -> None:
    run_dir = project / "runs" / "main"
    curation = ["ingest", "clean", "dedup", "verify_gold", "flag", "settle"]
    stages = [*curation, "model", "sft", "profile", "select", "export", "train", "profile_after", "report"]
    manifest = json.loads((run_dir / "manifest.json").read_text())
    assert [stage["name"] for stage in manifest["stages"]] == stages
    for stage in stages:
        assert (run_dir / stage / "stage.json").exists(), stage
    assert not list((run_dir / ".partial").iterdir())
    assert (run_dir / "train" / "checkpoint" / "model.safetensors").exists()
    assert list((run_dir / "train" / "tensorboard").glob("events*"))


def test_every_input_record_is_accounted_for(project: Path) -> None:
    run_dir = project / "runs" / "main"
    summary = json.loads((run_dir / "report" / "summary.json").read_text())
    ends = {(end["stage"], end["reason"]): end["rows"] for end in summary["accounting"]["ends"]}
    assert summary["accounting"]["records_in"] == 103
    assert sum(ends.values()) == 103
    assert ends["ingest", "invalid_json"] == 1
    assert ends["dedup", "exact_duplicate"] == 1
    assert ends["settle", "held_for_review"] == 2  # No rule can know which of the two golds of 2+2 is right.


def test_rollouts_carry_the_trainer_s_logprobs_and_weights_move(project: Path) -> None:
    run_dir = project / "runs" / "main"
    steps = metrics(run_dir)
    assert [step["step"] for step in steps] == [0, 1, 2, 3, 4]  # The last is an evaluation alone.
    trained = [step for step in steps if step.get("trained_completions")]
    assert trained, "no group carried signal: the test's model is too good or too bad"
    for step in trained:
        assert step["mismatch_abs"] < 0.05  # Of the two updates on a batch the second is off-policy.
        assert step["probe_mean_abs"] < 1e-4
    assert all("heldout_pass_rate" in step for step in steps[::2])
    before, after = ((run_dir / stage / "checkpoint" / "model.safetensors").read_bytes() for stage in ("sft", "train"))
    assert before != after


def test_every_step_s_completions_are_kept_with_verdict_and_advantage(project: Path) -> None:
    folder = project / "runs" / "main" / "train" / "completions"
    completions = pl.read_parquet(folder / "step-000002.parquet")
    sizes = completions.group_by("id").len()["len"]
    # Eight problems a step, and the refills of those that taught nothing, each with a whole group.
    assert set(sizes) == {4}
    assert len(sizes) >= 8
    assert set(completions["version"]) <= {0, 1, 2}
    passed = completions.filter(pl.col("score") == 1.0)
    assert (passed["extracted"] == passed["gold"]).all()
    groups = completions.group_by("id").agg(pl.col("advantage").sum().abs())
    assert groups["advantage"].max() < 1e-3  # type: ignore[operator]


def test_the_samples_of_a_profile_are_complete(project: Path) -> None:
    run_dir = project / "runs" / "main"
    samples = pl.read_parquet(run_dir / "profile" / "samples.parquet")
    rows = pl.read_parquet(run_dir / "settle" / "rows.parquet")
    assert samples.height == 4 * rows.height
    assert samples["seed"].n_unique() == samples.height
    assert (samples["token_ids"].list.len() == samples["logprobs"].list.len()).all()
    profile = pl.read_parquet(run_dir / "profile" / "profile.parquet")
    rates = samples.group_by("id").agg((pl.col("score") == 1.0).mean().alias("rate"))
    joined = profile.join(rates, on="id")
    assert (joined["pass_rate"] - joined["rate"]).abs().max() == 0  # type: ignore[operator]


def test_a_second_run_takes_everything_from_the_cache(project: Path) -> None:
    done = run_command("run", "run.yaml", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "nothing to do: all 14 stages come from the cache" in done.stderr


def test_local_and_prefect_runs_make_the_same_files(project: Path) -> None:
    done = run_command("curate", "run.yaml", "--engine", "local", "--set", "name=local", cwd=project)
    assert done.returncode == 0, done.stderr
    for stage in ("ingest", "clean", "dedup", "verify_gold", "flag", "settle"):
        prefect, local = (
            json.loads((project / "runs" / name / stage / "stage.json").read_text()) for name in ("main", "local")
        )
        assert (prefect["key"], prefect["outputs"]) == (local["key"], local["outputs"]), stage


def killed_training(project: Path, name: str, *settings: str) -> list[str]:
    """Kill a copy of the main job's training once it has a checkpoint at step 2; return the command that goes on."""
    run_dir = project / "runs" / name
    shutil.copytree(project / "runs" / "main", run_dir)
    for stage in ("train", "profile_after", "report"):
        shutil.rmtree(run_dir / stage)
    command = ["train", "run.yaml", "--engine", "local", "--set", f"name={name}", "--set", "profile_after=false"]
    child = subprocess.Popen([*TRUEGOLD, *command], cwd=project, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not reached(run_dir, 2):
        assert child.poll() is None, child.stderr.read() if child.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.kill()
    child.communicate()
    return command


@pytest.mark.long_run
def test_a_training_killed_between_checkpoints_ends_with_the_same_weights(project: Path) -> None:
    done = truegold(*killed_training(project, "killed"), cwd=project)
    assert done.returncode == 0, done.stderr
    assert "sft           from the cache" in done.stderr
    straight, resumed = (project / "runs" / name / "train" for name in ("main", "killed"))
    for name in ("checkpoint/model.safetensors", "completions/step-000003.parquet"):
        assert (straight / name).read_bytes() == (resumed / name).read_bytes(), name
    assert [step["step"] for step in metrics(project / "runs" / "killed")] == [0, 1, 2, 3, 4]


@pytest.mark.long_run
def test_a_killed_training_goes_on_with_another_learning_rate(project: Path) -> None:
    command = killed_training(project, "slower")
    done = truegold(*command, "--set", "train.optimizer.lr=1e-5", cwd=project)
    assert done.returncode == 0, done.stderr
    run_dir = project / "runs" / "slower"
    straight, slower = metrics(project / "runs" / "main"), metrics(run_dir)
    assert [step.get("pass_rate") for step in slower[:2]] == [step.get("pass_rate") for step in straight[:2]]
    rates = [step["lr"] for step in slower if "lr" in step]
    assert max(rates[-2:]) <= 1e-5 < rates[0]
    record = json.loads((run_dir / "train" / "stage.json").read_text())
    (change,) = record["report"]["facts"]["changes"]
    assert change["step"] == 2
    assert any(line.startswith("optimizer.lr: ") and line.endswith("-> 1e-05") for line in change["changed"])
    assert record["config"]["optimizer"]["lr"] == 1e-5


def reached(run_dir: Path, step: int) -> bool:
    for pointer in run_dir.glob(".partial/train-*/checkpoints/latest.json"):
        return int(json.loads(pointer.read_text())["step"]) >= step
    return False


def samples_judged(run_dir: Path) -> int:
    logs = run_dir.glob(".partial/profile-*/scratch/work-*/verdicts/*/*.jsonl")
    return sum(log.read_bytes().count(b"\n") for log in logs)


@pytest.mark.long_run
def test_a_killed_profile_whose_samples_were_deleted_draws_them_again(tmp_path: Path, tiny_model: Path) -> None:
    make_project(tmp_path)
    (tmp_path / "run.yaml").write_text(
        f"name: lost\ndata: {{path: train.jsonl, heldout: 0.15}}\nmodel: {{path: {tiny_model}}}\n"
        "engine: {dtype: float32, max_model_len: 64, cpu_kv_cache_gib: 1, max_num_seqs: 32}\n"
        "profile: {samples: 24, first_samples: null, max_tokens: 20}\n"
    )
    run_dir = tmp_path / "runs" / "lost"
    command = ["profile", "run.yaml", "--engine", "local"]
    child = subprocess.Popen([*TRUEGOLD, *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 500
    while not samples_judged(run_dir):
        assert child.poll() is None, child.stderr.read() if child.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.kill()
    child.communicate()
    shutil.rmtree(run_dir / ".samples")
    done = truegold(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "samples that were judged before are gone" in done.stderr
    facts = json.loads((run_dir / "profile" / "stage.json").read_text())["report"]["facts"]
    samples = pl.read_parquet(run_dir / "profile" / "samples.parquet")
    assert (
        facts["sampling"]["drawn"]
        == samples.height
        == pl.read_parquet(run_dir / "profile" / "profile.parquet")["n"].sum()
    )
