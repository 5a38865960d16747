"""Trains the demo's tiny model many times in one process, with one vLLM for all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truegold.flows.config import load_config
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.guards.doctor import record_stop
from truegold.train.rollout import rollout
from truegold.verifiers import TruegoldError

DEMO = Path(__file__).parents[1] / "examples" / "demo.yaml"

_ENGINES: list[Any] = []
_BUILD = rollout.build_rollout_engine


def _reuse_engine(model: Path, config: Any) -> Any:
    """Return the engine of the run before, with no prefix that a new run could take for its own."""
    if not _ENGINES:
        _ENGINES.append(_BUILD(model, config))
    _ENGINES[0].forget_prefixes()
    return _ENGINES[0]


def settings(steps: int, changes: Mapping[str, Any]) -> GrpoConfig:
    """Return the demo's settings with some changed, by their dotted names."""
    overrides = [f"train.{name}={json.dumps(value)}" for name, value in {"steps": steps, **changes}.items()]
    config = load_config(DEMO, overrides)
    assert config.train is not None
    return config.train.model_copy(update={"engine": config.engine})


def train(run: Path, out: Path, steps: int, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Train once from the run's cold start, on its selection, into the folder `out`; return how it ended."""
    from truegold.train.grpo import grpo

    rollout.build_rollout_engine = _reuse_engine
    inputs = {name: run / "select" / f"{name}.parquet" for name in ("heldout", "reserve")}
    inputs |= {"model": run / "sft" / "checkpoint", "rows": run / "select" / "selected.parquet"}
    inputs["samples"] = run / "profile" / "samples.parquet"
    out.mkdir(parents=True)
    started, error = time.monotonic(), None
    try:
        grpo(inputs, settings(steps, changes), out, NullProgress())
    except TruegoldError as stopped:
        error = {"exit_code": stopped.exit_code, "line": str(stopped)}
        record_stop(out, stopped)
    lines = read_whole_lines(out / "metrics.jsonl")
    return {
        "changes": dict(changes),
        "error": error,
        "seconds": round(time.monotonic() - started, 1),
        "steps": sum("pass_rate" in line for line in lines),
        "heldout": {line["step"]: line["heldout_pass_rate"] for line in lines if "heldout_pass_rate" in line},
        "exported": (out / "checkpoint").exists(),
    }
