"""RL on dialogues with the real sampler and trainer: every turn's log-probabilities are the sampler's own."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.running.isolate import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

FAULTS = {0: "raises", 2: "hangs", 4: "megabyte"}
ENVIRONMENT = '''
import threading

from truegold.train.turns.environment import Done, Reply


class Parity:
    """Three turns; an untrained model's words are as good as any. Some rows' episodes go wrong."""

    def __init__(self):
        self.turn = 0

    def reset(self, row):
        self.fault = row["gold"]
        return [{"role": "user", "content": f"What is {row['prompt']}?"}]

    def step(self, completion):
        self.turn += 1
        if self.fault == "raises":
            raise RuntimeError("closed")
        if self.fault == "hangs":
            threading.Event().wait()
        if self.fault == "megabyte":
            return Reply([{"role": "user", "content": "x" * 2**20}])
        if self.turn < 3:
            return Reply([{"role": "user", "content": f"And {self.turn}+1?"}], score=float(self.turn == 2))
        return Done(float(sum(map(ord, completion["content"])) % 2 == 0))
'''


@pytest.mark.parametrize("credit", ["equal", pytest.param("discounted", marks=pytest.mark.long_run)])
def test_dialogues_are_trained_on_as_they_were_sampled(tiny_model: Path, tmp_path: Path, credit: str) -> None:
    environment = tmp_path / "parity.py"
    environment.write_text(ENVIRONMENT)
    problems = [
        {
            "id": f"p{index}",
            "prompt": f"{index}+{index + 1}",
            "gold": FAULTS.get(index, "1"),
            "verifier": "exact",
            "verifier_args": "{}",
            "split": "train",
            "pass_rate": None,
        }
        for index in range(12)
    ]
    rows, heldout = tmp_path / "rows.parquet", tmp_path / "heldout.parquet"
    pl.DataFrame(problems[:8], schema_overrides={"pass_rate": pl.Float64}).write_parquet(rows)
    pl.DataFrame(problems[8:], schema_overrides={"pass_rate": pl.Float64}).write_parquet(heldout)
    config = GrpoConfig.model_validate(
        {
            "steps": 3,
            "sync_every": 3,
            "prompts_per_step": 8,
            "group_size": 4,
            "sampling": {"max_tokens": 8, "refills": 0},
            "turns": {"environment": f"{environment}:Parity", "credit": credit, "deadline_s": 1},
            "objective": {"masks": {"truncated": False}, "aggregation": "sequence", "loss": "ppo"},
            "evaluation": {"every": 2, "samples": 1},
            "engine": VllmEngineConfig(dtype="float32", max_model_len=128, cpu_kv_cache_gib=1),
            "optimizer": OptimizerConfig(lr=1e-3, dtype="float32"),
        }
    )
    out = tmp_path / "out"
    out.mkdir()
    inputs = {"model": tiny_model, "rows": rows, "heldout": heldout, "reserve": rows}
    call_isolated(
        "truegold.train.grpo:grpo",
        inputs,
        config,
        out,
        NullProgress(),
        tmp_path / "log",
        LaunchConfig(),
        out / "scratch",
    )
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    trained = [step for step in steps if step.get("trained_completions")]
    assert trained
    for step in trained:
        assert step["ending/error"] == step["ending/deadline"] == step["ending/reply"] == 0.125
        assert (step["unjudged"], step["ending/done"]) == (0.375, 0.625)
        assert step["lost_threads"] >= 4
        assert (step["mismatch_abs"] < 1e-3) == (step["staleness"] == 0)
    # The evaluation before the third step needs the weights in training, and brings them.
    assert [step["staleness"] for step in steps[:3]] == [0, 1, 0]
    completions = pl.concat(pl.read_parquet(path) for path in sorted((out / "completions").glob("*.parquet")))
    assert completions.group_by("step").agg(pl.col("version").max()).sort("step")["version"].to_list() == [0, 0, 2]
    assert completions.filter(pl.col("trained"))["turn"].n_unique() == 3
    # Untrained bytes are seldom the tokens of their text, so that nearly every turn is a segment of its own.
    assert credit != "equal" or trained[0]["drifted_turns"] > 0.3
    assert credit != "equal" or json.loads((out / "drift.jsonl").read_text().splitlines()[0])["sampled"]
    reasons = {"raises": "verifier_error", "hangs": "timeout", "megabyte": "limit"}
    for fault, reason in reasons.items():
        broken = completions.filter(pl.col("gold") == fault)
        assert set(broken["reason"]) == {reason}
        assert not broken["trained"].any()
        assert broken["reward"].is_null().all()
