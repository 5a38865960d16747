"""RL with verifiable rewards: sample groups, verify, compare within the group, update, sync, again.

One step, top to bottom, is `Trainer.step`. Rewards are composed of the terms in the configuration (`rewards`), by default
the verifier's score alone; a completion that could not be judged leaves its group and is counted. Groups whose rewards
are all equal carry no gradient and never enter. Every rank takes its share of the step's rows, samples with an engine of
its own and trains on what it sampled; what a step is compared with is the whole batch (`update`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from truegold.pipeline.engines.base import Completion
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.pipeline.progress import Progress
from truegold.pipeline.rows import Row, count_rows, read_rows
from truegold.pipeline.stage import StageReport
from truegold.train.completions import Sampled, write_completions
from truegold.train.distributed import gathered, rank, world_size
from truegold.train.diversity import distinct_ngrams, distinct_share
from truegold.train.engine import TrainingEngine
from truegold.train.entry import GroupScore, choose_groups, right_share
from truegold.train.feed import Feed
from truegold.train.grpo_config import GrpoConfig
from truegold.train.metrics import MetricsLog, read_metrics
from truegold.train.rewards import Metrics, judge, reward_metrics
from truegold.train.rollout import Rollout
from truegold.train.segment import Segment
from truegold.train.sft import pad_id
from truegold.train.update import Updater, resolved, weigh_segments
from truegold.verifiers import InputError

CHECKPOINTS = "checkpoints"
"""Stays in the stage's folder: everything needed to go on training from the last step."""

PROBE_POOL = 256
"""Rows whose prompts are looked at when choosing the probe's."""


def grpo(inputs: Mapping[str, Path], config: GrpoConfig, out_dir: Path, progress: Progress) -> StageReport:
    """inputs: `model`, `rows` (selected), `heldout` and `reserve`.

    Writes checkpoint/ (a normal Hugging Face checkpoint), metrics.jsonl, tensorboard/, completions/step-*.parquet and
    checkpoints/, from which a killed run goes on.
    """
    progress.start("loading the trainer")
    encoder = load_encoder(inputs["model"], config.chat)

    def fitting(path: Path) -> list[Row]:
        return [row for row in read_rows(path) if len(encoder.encode(row["prompt"])) < config.engine.max_model_len]

    rows = fitting(inputs["rows"])
    if not rows:
        raise InputError("No selected row leaves the model room to answer.", "Raise train.engine.max_model_len.")
    engine = TrainingEngine(inputs["model"], config.optimizer, pad_id(encoder), config.seed)
    config = config.model_copy(update={"loss": resolved(config, engine.causal_lm.config)})
    resumed = engine.load(out_dir / CHECKPOINTS)
    first, state = resumed or (0, {"weights_version": 0})
    progress.start("loading vLLM")
    # The longest prompts: only those that fill a block of the prefix cache can show that it went stale.
    candidates = [encoder.encode(row["prompt"]) for row in rows[:PROBE_POOL]]
    probe_prompts = sorted(candidates, key=len)[-config.probe_prompts :]
    rollout = Rollout(VllmEngine(inputs["model"], config.engine), encoder, engine, config, probe_prompts)
    rollout.sync(state["weights_version"])
    trainer = Trainer(
        Feed(rows, fitting(inputs["reserve"]), config.seed),
        fitting(inputs["heldout"])[: config.eval_problems],
        config,
        Updater(engine, config, config.max_tokens, _reference(inputs["model"], config, pad_id(encoder))),
        rollout,
        out_dir,
    )
    trainer.restore(state)
    progress.start("GRPO", config.steps)
    progress.advance(first)
    with MetricsLog(out_dir, first) as log:
        for step in range(first, config.steps):
            metrics = trainer.evaluate(step) | trainer.step(step)
            log.write(step, metrics)
            progress.advance(1, f"pass rate {metrics['pass_rate'] or 0:.3f}")
            if (step + 1) % config.checkpoint_every == 0 or step + 1 == config.steps:
                engine.save(out_dir / CHECKPOINTS, step + 1, trainer.state())
    engine.export(out_dir / "checkpoint", encoder.tokenizer)
    rates = [line["pass_rate"] for line in read_metrics(out_dir / "metrics.jsonl") if line["pass_rate"] is not None]
    facts = {"first_pass_rate": rates[0], "last_pass_rate": rates[-1]} if rates else {}
    rows_in = count_rows(inputs["rows"])
    return StageReport(rows_in, len(rows), {"skip:prompt_too_long_for_model": rows_in - len(rows)}, facts)


@dataclass
class Trainer:
    """What a step needs."""

    feed: Feed
    heldout: Sequence[Row]
    config: GrpoConfig
    updater: Updater
    rollout: Rollout
    out_dir: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def step(self, step: int) -> Metrics:
        """Rollout, verdicts, advantages, update, sync. Returns the step's metrics, of all ranks."""
        began = time.monotonic()
        sampled = self._rollouts(step)
        entered = choose_groups(_scores(sampled), self._share(), self.config.right_share)
        batch = [one for one in sampled if one.segment.group in set(entered)]
        judged = time.monotonic()
        segments = [one.segment for one in batch]
        weighed = weigh_segments(segments, self.config)
        chosen = weighed.trained.nonzero().flatten().tolist()
        updates = self.updater.train_on(
            [segments[i] for i in chosen], weighed.advantages[chosen], f"{self.config.seed}-{step}"
        )
        updated = time.monotonic()
        probe = self.rollout.sync(step + 1) if updates else None
        for place, one in enumerate(batch):
            one.advantage, one.trained = float(weighed.advantages[place]), bool(weighed.trained[place])
        everyone = [one for part in gathered(sampled) for one in part]
        if rank() == 0:
            write_completions(self.out_dir, step, everyone, self.rollout.encoder)
        return {
            **reward_metrics(everyone, self.config.terms),
            **weighed.metrics,
            **_mean(updates),
            **({"probe_mean_abs": probe.mean_abs} if probe else {}),
            "right_share": right_share([score for score in _scores(everyone) if score.teaches]),
            "groups": float(len({one.segment.group for one in everyone})),
            "trained_completions": float(sum(one.trained for one in everyone)),
            "seconds_rollout_and_verify": judged - began,
            "seconds_update": updated - judged,
            "seconds_sync": time.monotonic() - updated,
        }
