"""TRL's GRPOTrainer on a set that truegold has exported: rewards by truegold, prompts drawn by their pass rates.

truegold export runs/gsm8k --format trl --out set
python examples/trl_grpo.py set --model HuggingFaceTB/SmolLM2-135M-Instruct --output-dir out
"""

from __future__ import annotations

import argparse

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from truegold.train.grpo.trl_sampler import drawn_by_posterior
from truegold.verifiers.adapters.trl import TruegoldReward


def main() -> None:
    """Train; every setting that is not named here is TRL's own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="the folder that truegold export wrote")
    parser.add_argument("--model", required=True)
    parser.add_argument("--output-dir", default="out")
    parser.add_argument("--max-steps", type=int, default=200)
    parser.add_argument("--num-generations", type=int, default=8)
    parser.add_argument("--prompts", type=int, default=8, help="prompts a step and process")
    parser.add_argument("--max-completion-length", type=int, default=512)
    parser.add_argument("--cpu", action="store_true")
    chosen = parser.parse_args()
    settings = GRPOConfig(
        output_dir=chosen.output_dir,
        max_steps=chosen.max_steps,
        num_generations=chosen.num_generations,
        per_device_train_batch_size=chosen.num_generations * chosen.prompts,
        max_completion_length=chosen.max_completion_length,
        logging_steps=1,
        log_completions=True,
        num_completions_to_print=0,
        report_to=[],
        use_cpu=chosen.cpu,
        bf16=not chosen.cpu,
        save_strategy="no" if chosen.max_steps < 10 else "steps",
    )
    trainer = drawn_by_posterior(GRPOTrainer)(
        model=chosen.model,
        reward_funcs=[TruegoldReward()],
        train_dataset=load_dataset(chosen.dataset, split="train"),
        args=settings,
    )
    trainer.train()
    for entry in trainer.state.log_history:
        print(entry)


if __name__ == "__main__":
    main()
