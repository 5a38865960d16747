r"""The stage `train`: GRPO and related methods on a curated set. A single step is in the module `step`.

Planning a run imports this module, to read the stage's version. So modules that load torch, vLLM or DeepSpeed are
imported inside functions.

Examples of a step's completions are shown in a few lines on the terminal, and in a table of the trackers:

    step 12: right (match), reward 1, gold 72 | Natalia sold clips to 48 of her ... | 48/2 = 24 ... \boxed{72}

Right and wrong completions alternate, as long as the step has both. All completions are read from the file of rank 0
in `completions/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.engines.chat import encode_row, load_encoder
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.rows import arrow_schema, write_rows
from truegold.pipeline.text.shown_text import visible
from truegold.train.config.grpo import TUNABLE_GRPO, GrpoConfig, ShownConfig
from truegold.train.model.training_log import MetricsLog, changes_of, record_settings

COLUMNS = tuple("prompt completion gold extracted score reason reward advantage truncated trained version id".split())
"""The columns of the table in the trackers."""
PROMPT_CHARS, START_CHARS, END_CHARS = 70, 40, 110
"""Characters that the terminal shows of a prompt, of the start of a completion, and of its end."""


def show_completions(out_dir: Path, step: int, config: ShownConfig, log: MetricsLog, progress: Progress) -> None:
    """Print completions of a finished step and write them to the trackers, every `config.every` steps. Rank 0 only."""
    if not config.every or step % config.every:
        return
    rows = choose_completions(out_dir / "completions" / f"step-{step:06d}.parquet", max(config.shown, config.rows))
    for row in rows[: config.shown]:
        progress.note(describe_completion(step, row))
    if table := [[row[column] for column in COLUMNS] for row in rows[: config.rows]]:
        log.write_table(step, "completions", COLUMNS, table)


def choose_completions(path: Path, most: int) -> list[dict[str, Any]]:
    """Return at most `most` completions of a step's file, right completions alternating with all others."""
    sampled = pl.read_parquet(path, columns=list(COLUMNS))
    is_right = sampled["score"].eq_missing(1.0)
    right, others = (sampled.filter(kind).head(most).to_dicts() for kind in (is_right, ~is_right))
    return [row for row in chain(*zip_longest(right, others)) if row is not None][:most]


def describe_completion(step: int, row: Mapping[str, Any]) -> str:
    """Return the line on the terminal for a completion."""
    score = row["score"]
    verdict = {None: "not judged", 1.0: "right", 0.0: "wrong"}.get(score) or f"score {score:g}"
    reward = "none" if row["reward"] is None else f"{row['reward']:.3g}"
    cut_off = ", cut off" if row["truncated"] else ""
    prompt = _shorten(row["prompt"], PROMPT_CHARS, 0)
    completion = _shorten(row["completion"], START_CHARS, END_CHARS)
    gold = _shorten(row["gold"] or "none", END_CHARS, 0)
    return f"step {step}: {verdict} ({row['reason']}){cut_off}, reward {reward}, gold {gold} | {prompt} | {completion}"


def _shorten(text: str, start: int, end: int) -> str:
    """Return the start and the end of a text on one line, with symbols in place of control characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= start + end + 5 else f"{line[:start]} ... {line[len(line) - end :]}".rstrip()


if TYPE_CHECKING:
    from truegold.train.grpo.batch_metrics import Metrics
    from truegold.train.grpo.guard_actions import Responder
    from truegold.train.grpo.step import Trainer

CHECKPOINTS = "checkpoints"
"""The folder, in the stage's folder, with everything that is needed to continue the training."""

REWORDED_SHOWN = 5
"""The largest number of printed lines about held-out rows that are reworded training rows."""

PROBE_POOL = 256
"""The number of rows among whose prompts the probe (the comparison of the two engines) chooses."""


@stage_function(version=15, isolated=True, judges="rows", tunable=TUNABLE_GRPO)
def grpo(inputs: Mapping[str, Path], config: GrpoConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Train a model on selected rows.

    inputs: `model`, `rows` (selected), `heldout` and `reserve`; `evaluation NAME` for each named evaluation set; if
    they exist, `samples` of the profile and the `distilled` positives of `synth`.

    Writes checkpoint/ (a normal Hugging Face checkpoint), metrics.jsonl, settings.jsonl, tensorboard/, completions/,
    alarms.jsonl, quarantine/, pass_rates.parquet (the posterior pass rate of each row at the end) and checkpoints/.
    checkpoints/ has the weights of the last and the best step and of `save_every`, and the state from which a killed
    run continues.
    """
    progress.start("loading vLLM")
    from truegold.train.grpo import start_checks
    from truegold.train.grpo.feed import Feed
    from truegold.train.grpo.guard_actions import Responder
    from truegold.train.grpo.self_distillation import load_distilled
    from truegold.train.grpo.start_checks import advise, check_exported, check_prompts, compare_with_profile
    from truegold.train.grpo.step import Trainer, make_group_source
    from truegold.train.grpo.update import Updater, resolve_loss
    from truegold.train.model.distributed import init_distributed, rank
    from truegold.train.model.engine import TrainingEngine
    from truegold.train.model.policy import FrozenPolicy, pad_id
    from truegold.train.rollout.rollout import Probe, RolloutSampler, build_rollout_engine, max_length, probe_length

    encoder, longest = load_encoder(inputs["model"], config.chat), max_length(config.engine)
    data = start_checks.read_training_rows(inputs, encoder, longest, config.evaluation)
    compare_with_profile(data.rows, inputs.get("samples"), encoder, config.guards.off)
    max_tokens, max_tokens_from = start_checks.choose_max_tokens(config.sampling, inputs.get("samples"), longest)
    evaluation = start_checks.choose_eval_sampling(config.evaluation, inputs["model"])
    prompts = sorted((encode_row(encoder, row) for row in data.rows[:PROBE_POOL]), key=len)
    check_prompts(prompts, encoder.tokenizer.bos_token_id)
    sampling = config.sampling.resolve_refills(len(data.rows) + len(data.reserve), config.prompts_per_step)
    config = config.model_copy(update={"sampling": sampling}).resolve_masks()
    model_type = str(json.loads((inputs["model"] / "config.json").read_text()).get("model_type"))
    advice = advise(config, encoder, model_type, evaluation)
    for line in (*data.reworded[:REWORDED_SHOWN], *advice):
        progress.note(line)
    # vLLM starts first, while the GPU is free. It sleeps while the trainer is loaded.
    init_distributed(progress.note)
    sampler = build_rollout_engine(inputs["model"], config, progress.note)
    progress.start("loading the trainer")
    engine = TrainingEngine(
        inputs["model"], config.optimizer, pad_id(encoder), config.seed, progress.note, encoder.tokenizer
    )
    engine.share_or_pack()
    objective = resolve_loss(config.objective, engine.causal_lm.config)
    config = config.model_copy(update={"objective": objective})
    reference = FrozenPolicy(inputs["model"], config.optimizer, engine.device) if objective.kl.weight else None
    # Loading restores random generators. vLLM and the checks above use them, so they come before.
    first_step, state = engine.load(out_dir / CHECKPOINTS) or (0, None)
    probe = Probe(sampler, engine, config, [ids[: probe_length(sampler)] for ids in prompts[-config.probe.prompts :]])
    rollout = RolloutSampler(sampler, encoder, engine, config.seed, probe)
    rollout.sync(state["weights_version"] if state else 0)
    feed = Feed(
        data.rows, data.reserve, config.feed, group_size=config.group_size, steps=config.steps, seed=config.seed
    )
    positives, left_out = load_distilled(inputs.get("distilled"), encoder, [*data.rows, *data.reserve], objective)
    trainer = Trainer(
        feed,
        data.evaluation_rows(config.evaluation),
        config,
        Updater(engine, objective, max_tokens, config.steps * objective.updates, reference),
        rollout,
        make_group_source(feed, config, rollout, max_tokens, out_dir),
        SamplingParams(
            evaluation.temperature, evaluation.top_p, max_tokens, encoder.stop_token_ids, top_k=evaluation.top_k
        ),
        out_dir,
        positives,
        profile=start_checks.unread_in_profile(inputs.get("samples")),
    )
    responder = Responder(trainer, engine, out_dir / CHECKPOINTS, first_step, progress)
    if state is not None:
        trainer.restore(state)
        responder.restore(state["guards"])
    for change in record_settings(out_dir, first_step, config, TUNABLE_GRPO, is_first_rank=rank() == 0):
        progress.note(f"from step {first_step} on {change}")
    _train(trainer, responder, first_step, progress)
    engine.export(out_dir / "checkpoint", encoder.tokenizer)
    check_exported(out_dir / "checkpoint", engine, config.chat, data.rows, encoder)
    facts = {
        "sampling": start_checks.sampling_facts(config.sampling, max_tokens, max_tokens_from, evaluation),
        "advice": advice,
        "reworded": data.reworded,
        "changes": changes_of(out_dir),
        **_pass_rate_facts(out_dir),
        "costs": trainer.groups.answers.scorer.graded.report_costs(progress),
    }
    return StageReport(data.rows_in, len(data.rows), {**data.skipped, **left_out}, facts)


def _train(trainer: Trainer, responder: Responder, first_step: int, progress: Progress) -> None:
    """Take all steps from `first_step` on, with evaluations, metrics, checkpoints and guards.

    Raises Preempted if a signal ends the run, SetupError if the disk is full or an update does not fit on its GPU.
    """
    from torch import OutOfMemoryError

    from truegold.pipeline.running.disk import is_full
    from truegold.train.grpo.feed import KnownRate
    from truegold.train.model.distributed import rank, world_size
    from truegold.train.model.ending import EndAsked, end_if_asked, ended, full_disk, listening, save_on_full_gpu
    from truegold.train.model.engine import NoRoomError

    config, out_dir = trainer.config, trainer.out_dir
    progress.start("GRPO", config.steps)
    progress.advance(first_step)
    with (
        closing(trainer.groups),
        MetricsLog(out_dir, first_step, config.trackers) as log,
        listening(),
    ):
        trainer.groups.begin()
        if first_step == 0:
            # A checkpoint for roll-backs from the first step on.
            responder.save(0)
        try:
            for step in range(first_step, config.steps):
                _take_step(trainer, responder, log, step, progress)
            last_evaluation = trainer.evaluate() if config.evaluation.every else {}
            if last_evaluation:
                log.write(config.steps, last_evaluation)
            responder.finish(config.steps, last_evaluation)
            end_if_asked()
            if rank() == 0:
                write_rows(out_dir / "pass_rates.parquet", trainer.feed.known_rates(), arrow_schema(KnownRate))
        except EndAsked:
            progress.start("saving a checkpoint of the finished steps")
            raise ended(responder.save_finished(first_step)) from None
        except (OSError, RuntimeError, NoRoomError) as error:
            # With several ranks no checkpoint can be saved, because other ranks do not know of the error.
            if world_size() == 1 and responder.may_save:
                if isinstance(error, (NoRoomError, OutOfMemoryError)):
                    save_on_full_gpu(partial(responder.save_finished, first_step), progress.note)
                elif is_full(error):
                    raise full_disk(out_dir, responder.save_finished(first_step)) from error
            raise


def _take_step(trainer: Trainer, responder: Responder, log: MetricsLog, step: int, progress: Progress) -> None:
    """Take one step with its evaluation, metrics, guards and checkpoint. Raises EndAsked after a signal to end."""
    from truegold.train.model.distributed import rank
    from truegold.train.model.ending import end_if_asked

    config = trainer.config
    evaluation: Metrics = {}
    if config.evaluation.every and step % config.evaluation.every == 0:
        evaluation = trainer.evaluate()
        responder.evaluated(step, evaluation)
    metrics = evaluation | trainer.step(step)
    for line in trainer.groups.answers.scorer.count_unread():
        progress.note(line)
    log.write(step, metrics)
    if rank() == 0:
        show_completions(trainer.out_dir, step, config.completions, log, progress)
    responder.respond(step, metrics)
    responder.remember(step + 1)
    progress.advance(1, f"pass rate {metrics['pass_rate'] or 0:.3f}")
    end_if_asked()
    if (step + 1) % config.checkpoint_every == 0 or step + 1 == config.steps:
        # A resumed run also sends the sampler the checkpoint's weights here.
        trainer.update_sampler()
        responder.save(step + 1)
    elif config.saves(step + 1):
        responder.save(step + 1, counts=False)


def _pass_rate_facts(out_dir: Path) -> dict[str, Any]:
    """Return the first and last pass rate and evaluation, for the stage's record."""
    from truegold.train.grpo.evaluation import evaluated_rates

    lines = read_whole_lines(out_dir / "metrics.jsonl")
    rates = [line["pass_rate"] for line in lines if line.get("pass_rate") is not None]
    facts: dict[str, Any] = {"first_pass_rate": rates[0], "last_pass_rate": rates[-1]} if rates else {}
    evaluations = [measured for line in lines if (measured := evaluated_rates(line))]
    if evaluations:
        facts["evaluations"] = {"first": evaluations[0], "last": evaluations[-1]}
    return facts
