"""The stage `train`: GRPO and its family on a curated set. A step is in `trainer`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.rows import Row, count_rows, read_rows
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.start_checks import check_prompts, eval_sampling, max_tokens, sampling_facts, warnings
from truegold.train.grpo.step import Trainer
from truegold.train.grpo.update import Updater, resolved
from truegold.train.metrics import MetricsLog, read_metrics
from truegold.train.model.engine import FrozenPolicy, TrainingEngine
from truegold.train.rollout.engines import build_rollout_engine, check_engine, room
from truegold.train.rollout.probe import Probe
from truegold.train.rollout.rollout import Rollout
from truegold.train.sft import pad_id
from truegold.verifiers import InputError

CHECKPOINTS = "checkpoints"
"""Stays in the stage's folder: everything needed to go on training from the last step."""

PROBE_PROMPT_TOKENS = 65
"""Of the longest prompts so much is probed with: it fills a block of the prefix cache, which is what can go stale."""

PROBE_POOL = 256
"""Rows whose prompts are looked at when choosing the probe's."""


def grpo(inputs: Mapping[str, Path], config: GrpoConfig, out_dir: Path, progress: Progress) -> StageReport:
    """inputs: `model`, `rows` (selected), `heldout` and `reserve`; `samples` of the profile, if there is one.

    Writes checkpoint/ (a normal Hugging Face checkpoint), metrics.jsonl, tensorboard/, completions/step-*.parquet and
    checkpoints/, from which a killed run goes on.
    """
    progress.start("loading the trainer")
    check_engine(config.engine)
    encoder, longest = load_encoder(inputs["model"], config.chat), room(config.engine)

    def fitting(path: Path) -> list[Row]:
        return [row for row in read_rows(path) if len(encoder.encode(row["prompt"])) < longest]

    rows = fitting(inputs["rows"])
    if not rows:
        raise InputError("No selected row leaves the model room to answer.", "Raise train.engine.max_model_len.")
    tokens, evaluation = (
        max_tokens(config.max_tokens, inputs.get("samples"), longest),
        eval_sampling(config, inputs["model"]),
    )
    prompts = sorted((encoder.encode(row["prompt"]) for row in rows[:PROBE_POOL]), key=len)
    check_prompts(prompts, encoder.tokenizer.bos_token_id)
    engine = TrainingEngine(inputs["model"], config.optimizer, pad_id(encoder), config.seed)
    engine.share_prompts()
    config = resolved(config, engine.causal_lm.config)
    reference = _reference(inputs["model"], config, engine)
    progress.start("loading vLLM")
    sampler = build_rollout_engine(inputs["model"], config.engine)
    # Only now, since vLLM seeds the generators that this restores.
    first, state = engine.load(out_dir / CHECKPOINTS) or (0, None)
    probe = Probe(sampler, engine, config, [ids[:PROBE_PROMPT_TOKENS] for ids in prompts[-config.probe_prompts :]])
    rollout = Rollout(sampler, encoder, engine, config.seed, probe)
    rollout.sync(state["weights_version"] if state else 0)
    trainer = Trainer(
        Feed(rows, fitting(inputs["reserve"]), config.seed),
        fitting(inputs["heldout"])[: config.eval_problems],
        config,
        Updater(engine, config, tokens[0], config.steps * config.updates, reference),
        rollout,
        tokens[0],
        SamplingParams(
            evaluation.temperature, evaluation.top_p, tokens[0], encoder.stop_token_ids, top_k=evaluation.top_k
        ),
        out_dir,
    )
    if state is not None:
        trainer.restore(state)
    progress.start("GRPO", config.steps)
    progress.advance(first)
    with MetricsLog(out_dir, first, config.trackers) as log:
        for step in range(first, config.steps):
            due = config.eval_every and step % config.eval_every == 0
            metrics = (trainer.evaluate() if due else {}) | trainer.step(step)
            log.write(step, metrics)
            progress.advance(1, f"pass rate {metrics['pass_rate'] or 0:.3f}")
            if (step + 1) % config.checkpoint_every == 0 or step + 1 == config.steps:
                engine.save(out_dir / CHECKPOINTS, step + 1, trainer.state())
        if config.eval_every:
            log.write(config.steps, trainer.evaluate())
    engine.export(out_dir / "checkpoint", encoder.tokenizer)
    lines = read_metrics(out_dir / "metrics.jsonl")
    rates = [line["pass_rate"] for line in lines if line.get("pass_rate") is not None]
    facts: dict[str, Any] = {
        "sampling": sampling_facts(config, tokens, evaluation),
        "warnings": warnings(config, encoder),
    }
    if rates:
        facts |= {"first_pass_rate": rates[0], "last_pass_rate": rates[-1]}
    rows_in = count_rows(inputs["rows"])
    return StageReport(rows_in, len(rows), {"skip:prompt_too_long_for_model": rows_in - len(rows)}, facts)


def _reference(model: Path, config: GrpoConfig, engine: TrainingEngine) -> FrozenPolicy | None:
    return FrozenPolicy(model, config.optimizer, engine) if config.kl.weight else None
