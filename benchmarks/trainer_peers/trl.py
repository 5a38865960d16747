"""TRL's GRPOTrainer, generating with Hugging Face `generate`: its vLLM modes do not run on a CPU.

Its micro-batch is the default of 8 completions, or as many as are asked for (`--micro N`: less memory). Not its
defaults, unless asked for: no gradient checkpointing (`--checkpointing`: slower, less memory), and in bfloat16 weights,
gradients and optimizer state all bfloat16 (`--mixed`: float32 ones, the forward pass in bfloat16). No trackers, no
saving.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from trainer_peers.marks import LOADED, STEP, Marks
from trainer_peers.reward import vowels
from trainer_peers.setting import SEED, Setting, load_problems

MICRO_BATCH = 8


def _reward(completions: list[list[dict[str, str]]], **_: Any) -> list[float]:
    return [vowels(completion[0]["content"], None) for completion in completions]


class TimedTrainer(GRPOTrainer):  # type: ignore[misc]
    """Adds up the seconds from a batch of prompts to scored completions."""

    rollout_s = 0.0

    def _generate_and_score_completions(self, *args: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        try:
            return super()._generate_and_score_completions(*args, **kwargs)
        finally:
            self.rollout_s += time.monotonic() - began


class Marking(transformers.TrainerCallback):  # type: ignore[misc]
    """Marks every step."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._began = 0.0
        self.trainer: TimedTrainer | None = None

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Mark that everything is loaded."""
        self._marks.write(LOADED)
        self._began = time.monotonic()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Mark a step, with the seconds of its phases."""
        trainer = self.trainer
        assert trainer is not None
        now = time.monotonic()
        metrics = trainer._metrics["train"]
        phases = {"rollout": trainer.rollout_s, "update": now - self._began - trainer.rollout_s}
        self._marks.write(STEP, phases=phases, tokens=metrics["completions/mean_length"][-1])
        trainer.rollout_s, self._began = 0.0, time.monotonic()


def _main() -> None:
    folder = Path(sys.argv[1])
    setting = Setting.load(folder)
    problems = load_problems(folder)
    mixed = "--mixed" in sys.argv
    asked_for = int(sys.argv[sys.argv.index("--micro") + 1]) if "--micro" in sys.argv else MICRO_BATCH
    micro_batch = min(asked_for, setting.completions)
    arguments = GRPOConfig(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=setting.completions // micro_batch,
        num_generations=setting.group,
        max_completion_length=setting.tokens,
        max_steps=setting.steps,
        learning_rate=setting.lr,
        lr_scheduler_type="constant",
        temperature=1.0,
        bf16=mixed,
        use_cpu=not torch.cuda.is_available(),
        gradient_checkpointing="--checkpointing" in sys.argv,
        shuffle_dataset=False,
        save_strategy="no",
        report_to=[],
        seed=SEED,
        model_init_kwargs={"dtype": "float32" if mixed else setting.dtype},
    )
    marking = Marking(Marks(folder))
    prompts = Dataset.from_list([{"prompt": [{"role": "user", "content": problem}]} for problem in problems])
    marking.trainer = TimedTrainer(
        model=str(folder / "model"), reward_funcs=_reward, args=arguments, train_dataset=prompts, callbacks=[marking]
    )
    marking.trainer.train()


if __name__ == "__main__":
    _main()
