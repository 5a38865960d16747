"""truegold: the stage `train` with vLLM in the same process, as `truegold train` runs it.

Not its defaults: truncated completions are trained on (all are truncated here, and TRL trains on them), the engine's
cache and SmolLM2's micro-batches are as large as the settings need, and checkpoints are written after the last step
only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from trainer_peers.marks import LOADED, STEP, Marks
from trainer_peers.setting import SEED, Setting, load_problems
from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import row_id, write_rows
from truegold.train.config.grpo import FeedConfig, GrpoConfig, Order, SamplingConfig
from truegold.train.config.models import OptimizerConfig
from truegold.train.config.objective import MaskConfig, ObjectiveConfig
from truegold.train.grpo import grpo
from truegold.train.grpo.feed import Feed

FEED = FeedConfig(order=Order.UNIFORM)
REWARD = Path(__file__).with_name("reward.py")
MAX_MODEL_LEN = 512
MICRO_BATCH_TOKENS = {"SmolLM2": 1280, "tiny": 8192}
"""For SmolLM2 fewer than the default, which suits GPUs: enough for a prompt with its 8 completions of 128 tokens."""


class MarkingProgress:
    """Marks every step that is done, with the seconds that the trainer itself counted."""

    def __init__(self, marks: Marks, metrics: Path) -> None:
        self._marks = marks
        self._metrics = metrics

    def start(self, label: str, total: int | None = None) -> None:
        """Mark nothing."""

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Mark a step, or that everything is loaded."""
        if not steps:
            self._marks.write(LOADED)
            return
        line = json.loads(self._metrics.read_text().splitlines()[-1])
        phases = {name: line[f"seconds_{name}"] for name in ("rollout", "update", "sync")}
        self._marks.write(STEP, phases=phases, tokens=line["length_mean"], trained=line["trained_completions"])

    def note(self, text: str) -> None:
        """Mark nothing."""


def _config(setting: Setting, checkpointing: bool) -> GrpoConfig:
    return GrpoConfig(
        steps=setting.steps,
        prompts_per_step=setting.prompts,
        group_size=setting.group,
        feed=FEED,
        sampling=SamplingConfig(max_tokens=setting.tokens, temperature=1.0, refills=0),
        objective=ObjectiveConfig(masks=MaskConfig(truncated=False)),
        checkpoint_every=setting.steps,
        engine=VllmEngineConfig(dtype=setting.dtype, max_model_len=MAX_MODEL_LEN, cpu_kv_cache_gib=1),
        optimizer=OptimizerConfig(
            lr=setting.lr,
            dtype=setting.dtype,
            micro_batch_tokens=MICRO_BATCH_TOKENS[setting.model],
            gradient_checkpointing=checkpointing,
        ),
        seed=SEED,
    )


def _main() -> None:
    folder = Path(sys.argv[1])
    setting = Setting.load(folder)
    problems = load_problems(folder)
    # The stage shuffles its rows; these are laid so that it takes the problems in their order.
    positions = Feed(
        [{"row": position} for position in range(len(problems))],  # type: ignore[typeddict-item]
        [],
        FEED,
        group_size=setting.group,
        steps=setting.steps,
        seed=SEED,
    ).take(len(problems))
    shuffled = [problem for _, problem in sorted(zip((row["row"] for row in positions), problems, strict=True))]
    rows = [
        {"id": row_id(problem, None), "prompt": problem, "domain": "math", "verifier": f"{REWARD}:vowels"}
        | {
            "verifier_args": "{}",
            "source": "benchmark",
            "source_row": source_row,
            "split": "train",
            "meta": "{}",
            "pass_rate": None,
        }
        for source_row, problem in enumerate(shuffled, 1)
    ]
    write_rows(folder / "rows.parquet", rows, SELECTED_SCHEMA)
    write_rows(folder / "none.parquet", [], SELECTED_SCHEMA)
    none = folder / "none.parquet"
    inputs = {"model": folder / "model", "rows": folder / "rows.parquet", "heldout": none, "reserve": none}
    config = _config(setting, "--checkpointing" in sys.argv)
    marks = Marks(folder)
    out = folder / "out"
    out.mkdir()
    grpo(inputs, config, out, MarkingProgress(marks, out / "metrics.jsonl"))


if __name__ == "__main__":
    _main()
