"""SFT cold start: supervised training on verified solutions before RL, which teaches the format of answers.

    {"prompt": "Tom has 12 apples ...", "completion": "12+9=21 \\\\boxed{21}"}

Such an example becomes a segment: prompt ids (chat template applied) and completion ids (end of turn added). The loss
covers the completion only. Dialogues, {"messages": [...]}, become one or more segments (`turns.dialogue`), with the
same tools, template arguments and reminder as in rollouts. Without `data`, the examples are the worked solutions of
curated rows that the row's verifier accepts. A killed run continues from its last checkpoint.

Planning a run imports this module, to read the stage's version. So modules that load torch or DeepSpeed are imported
inside functions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ChatEncoder, PromptEncoder, encode_row, load_encoder
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.rows import Row, problem_of, read_rows
from truegold.train.config.models import TUNABLE_SFT, SftConfig
from truegold.train.config.turns import DialoguesConfig, TurnsConfig
from truegold.train.model.training_log import MetricsLog, changes_of, record_settings
from truegold.train.turns.environment import load_environment
from truegold.verifiers import ConfigError, InputError, Item, gold_response, resolve, verify_batch
from truegold.verifiers.running.batch import MAX_TIMEOUTS

if TYPE_CHECKING:
    from torch import Tensor

    from truegold.train.model.engine import LossFunction, TrainingEngine
    from truegold.train.model.segment import Segment, SegmentBatch
    from truegold.train.objective import Totals

CHECKPOINTS = "scratch/checkpoints"
"""The folder of checkpoints, which is deleted when the stage is done."""
CALCULATOR = re.compile(r"<<[^<>]*>>")
"""GSM8K's calculator annotations: `<<12+9=21>>`."""
HASHED_ANSWER = re.compile(r"\n?####\s*.*\s*\Z")
"""GSM8K's last line: `#### 21`."""
ONLY_DIALOGUES = "the prompts of rollouts have tools or template_args, which the prompts of single answers lack"
"""The reason to refuse SFT on single answers before a training on such dialogues."""
WRITE_DIALOGUES = 'Write examples as dialogues, {"messages": [...]}, into the file sft.data.'
"""The advice that follows `ONLY_DIALOGUES`."""

FORM = 'Each line of sft.data is {"prompt": TEXT, "completion": TEXT} or {"messages": [...]}.'
"""The form of examples, for errors."""
WITHOUT_DATA = "Without sft.data, the worked solutions of the curated rows are learned."
"""The advice for a file of raw rows."""
CHECKED_LINES = 1000
"""The number of lines of a file of examples that are checked before any stage runs."""


@stage_function(version=5, isolated=True, judges="rows", tunable=TUNABLE_SFT)
def sft(inputs: Mapping[str, Path], config: SftConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Fine-tune a model on examples.

    inputs: `model`, and one of `data` (JSON Lines), `rows` (curated rows with solutions) or `distilled` (positives of
    `synth`, whose tokens are weighted by `config.weight`). Writes checkpoint/ (a normal Hugging Face checkpoint),
    metrics.jsonl and tensorboard/. Raises InputError if no example is left.
    """
    progress.start("loading the model")
    from truegold.train.model.distributed import rank
    from truegold.train.model.ending import listening
    from truegold.train.model.engine import TrainingEngine
    from truegold.train.model.policy import pad_id
    from truegold.train.model.segment import read_distilled

    encoder = load_encoder(inputs["model"], config.chat)
    counts: dict[str, int] = {}
    positives = read_distilled(inputs["distilled"]) if "distilled" in inputs else []
    trust = {id(positive.segment): positive.trust for positive in positives}
    examples = [positive.segment for positive in positives]
    if "distilled" not in inputs:
        if "data" in inputs:
            examples = list(read_examples(inputs["data"], encoder, config.chat, config.dialogues))
        else:
            if config.dialogues.changes_first_prompts:
                raise InputError(f"Worked solutions are single answers; {ONLY_DIALOGUES}.", WRITE_DIALOGUES)
            examples = [row_segment(encoder, *pair) for pair in verified_solutions(inputs["rows"], counts)]
    fitting = [example for example in examples if example.length <= config.max_length]
    counts["drop:too_long"] = len(examples) - len(fitting)
    if not fitting and "distilled" not in inputs:
        raise InputError(
            f"SFT has no example: all {len(examples)} were left out ({counts}).",
            "Give sft.data, or raise sft.max_length.",
        )
    engine = TrainingEngine(inputs["model"], config.optimizer, pad_id(encoder), config.seed, progress.note)
    packed = config.packing and engine.pack()
    # The weights use the probabilities of the initial model. So they are computed before a checkpoint is loaded.
    weights = distilled_weights(engine, fitting, [trust[id(each)] for each in fitting], config) if positives else None
    resumed = engine.load(out_dir / CHECKPOINTS)
    first = resumed[0] if resumed else 0
    order = _example_order(len(fitting), config, shuffled="data" not in inputs)
    steps = [order[start : start + config.batch_size] for start in range(0, len(order), config.batch_size)]
    progress.start("SFT", len(steps))
    progress.advance(first)
    for change in record_settings(out_dir, first, config, TUNABLE_SFT, is_first_rank=rank() == 0):
        progress.note(f"from step {first} on {change}")
    with listening():
        loss = _take_steps(engine, fitting, weights, steps, first, config, out_dir, progress)
        # No checkpoint has the last steps, so a signal does not interrupt the export.
        engine.export(out_dir / "checkpoint", encoder.tokenizer)
        engine.check_export(out_dir / "checkpoint")
    facts = {"steps": len(steps), "final_loss": round(loss, 4) if steps else None, "packed": packed}
    return StageReport(len(examples), len(fitting), counts, facts | {"changes": changes_of(out_dir)})


def _take_steps(
    engine: TrainingEngine,
    examples: Sequence[Segment],
    weights: Sequence[Tensor] | None,
    steps: Sequence[Sequence[int]],
    first: int,
    config: SftConfig,
    out_dir: Path,
    progress: Progress,
) -> float:
    """Take the optimizer steps from `first` on and return the last loss. `steps` has the example indices of each step.

    Raises Preempted, after saving a checkpoint, if a signal asks the run to end.
    """
    from truegold.train.model.ending import EndAsked, end_if_asked, ended
    from truegold.train.model.saved_states import generator_states

    losses = [line["loss"] for line in read_whole_lines(out_dir / "metrics.jsonl")[:first]]
    # A signal may end the run until an update changes the weights of the last finished step.
    engine.may_end = True
    with MetricsLog(out_dir, first, config.trackers) as log:
        for step in range(first, len(steps) + 1):
            random_states = generator_states()
            try:
                end_if_asked()
                if step == len(steps):
                    break
                metrics = _take_step(engine, examples, weights, steps[step], step, len(steps))
            except EndAsked:
                progress.start("saving a checkpoint of the finished steps")
                engine.save(out_dir / CHECKPOINTS, step, {}, random_states=random_states)
                raise ended(step) from None
            losses.append(metrics["loss"])
            log.write(step, metrics)
            progress.advance(1, f"loss {metrics['loss']:.3f}")
            if (step + 1) % config.checkpoint_every == 0 and step + 1 < len(steps):
                engine.save(out_dir / CHECKPOINTS, step + 1, {})
    return losses[-1] if losses else float("nan")


def _take_step(
    engine: TrainingEngine,
    examples: Sequence[Segment],
    weights: Sequence[Tensor] | None,
    indices: Sequence[int],
    step: int,
    steps: int,
) -> dict[str, float]:
    """Take one optimizer step and return its metrics. Each rank trains on its share of the examples at `indices`."""
    from truegold.train.model.distributed import rank, world_size

    local = indices[rank() :: world_size()]
    local_examples = [examples[index] for index in local]
    local_weights = [weights[index] for index in local] if weights is not None else None
    loss_function = negative_log_likelihood(engine.totals(local_examples), local_weights)
    return engine.update(local_examples, loss_function, step, steps)


def distilled_weights(
    engine: TrainingEngine, positives: Sequence[Segment], trust: Sequence[float], config: SftConfig
) -> list[Tensor]:
    """Return the weights of the tokens of each distilled positive, [T].

    A weight is the positive's trust times the ratio of the engine's probability on the bare prompt to the sampler's
    probability with the context (the help that `synth` added).
    """
    import torch

    from truegold.train.objective import distillation_weights

    weights = []
    for positive, factor, bare in zip(positives, trust, engine.logprobs(positives), strict=True):
        conditioned = torch.tensor([positive.rollout_logprobs])
        mask = torch.ones_like(conditioned)
        weight = distillation_weights(bare.unsqueeze(0), conditioned, mask, config.weight)
        weights.append(factor * weight.expand_as(mask)[0])
    return weights


def negative_log_likelihood(totals: Totals, example_weights: Sequence[Tensor] | None = None) -> LossFunction:
    """Return the loss function of a step: the mean of -log p over all completion tokens, times `example_weights`."""
    from truegold.train.objective import token_weights

    def loss(
        logprobs: Tensor, entropy: Tensor, batch: SegmentBatch, indices: list[int]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        weights = token_weights(batch.mask, "token", totals)
        if example_weights is not None:
            for row, index in enumerate(indices):
                weights[row, : len(example_weights[index])] *= example_weights[index].to(weights)
        return -(logprobs * weights).sum(), {"entropy": (entropy * batch.mask).sum()}

    return loss


def read_examples(
    path: Path, encoder: ChatEncoder, chat: ChatConfig, dialogues: DialoguesConfig | None = None
) -> Iterator[Segment]:
    """Yield the segments of a JSON Lines file of {"prompt", "completion"} or, for dialogues, {"messages"}.

    dialogues: additions to the prompts of dialogues. Raises InputError naming the line, if a line is invalid or the
    chat template refuses it.
    """
    from truegold.train.turns.dialogue import dialogue_segments
    from truegold.train.turns.template import TurnTemplate

    config = dialogues or DialoguesConfig()
    template: TurnTemplate | None = None
    with path.open("rb") as lines:
        for line_number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            entry = _parse_example(path, line_number, line)
            try:
                if "messages" in entry:
                    template = template or TurnTemplate(
                        encoder.tokenizer, encoder.stop_token_ids, chat.system, config.template_args, config.tools
                    )
                    yield from dialogue_segments(entry["messages"], template, config.reminder)
                    continue
                if config.changes_first_prompts:
                    raise InputError(f"{path}, line {line_number}: {ONLY_DIALOGUES}.", WRITE_DIALOGUES)
                yield row_segment(encoder, {"prompt": entry["prompt"]}, entry["completion"])
            except ConfigError as error:
                raise InputError(f"{path}, line {line_number}: {error}") from error
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path}, line {line_number}: {error!r}.", FORM) from error


def check_examples(path: Path) -> None:
    """Raise InputError if one of the first examples of a file cannot be learned, naming its line."""
    with path.open("rb") as lines:
        for line_number, line in enumerate(islice(lines, CHECKED_LINES), 1):
            if line.strip():
                _parse_example(path, line_number, line)


def _parse_example(path: Path, line_number: int, line: bytes) -> dict[str, Any]:
    """Return the example in a line: texts `prompt` and `completion`, or a list `messages`."""
    line_name = f"{path}, line {line_number}"
    try:
        entry = orjson.loads(line)
    except ValueError as error:
        raise InputError(f"{line_name} is not JSON ({error}).", FORM) from None
    if not isinstance(entry, dict):
        raise InputError(f"{line_name} is not a JSON object.", FORM)
    if isinstance(entry.get("messages"), list):
        return entry
    if missing := [name for name in ("prompt", "completion") if name not in entry]:
        columns = f"it has {', '.join(entry) or 'nothing'}"
        raise InputError(f"{line_name} has no {' and no '.join(missing)}; {columns}.", f"{FORM} {WITHOUT_DATA}")
    if odd := [name for name in ("prompt", "completion") if not isinstance(entry[name], str)]:
        raise InputError(f"{line_name}: {odd[0]} is not text, but {entry[odd[0]]!r:.60}.", FORM)
    return entry


def dialogues_of(turns: TurnsConfig) -> DialoguesConfig:
    """Return settings that give examples the same prompts as the rollouts of `turns`.

    The environment is created once, to read its tools. Raises ConfigError if it cannot be created.
    """
    _, tools = load_environment(turns)
    return DialoguesConfig(template_args=turns.template_args, tools=tuple(tools), reminder=turns.reminder)


def row_segment(encoder: PromptEncoder, row: Mapping[str, Any], completion: str) -> Segment:
    """Return the segment of a row's prompt and the completion to learn."""
    from truegold.train.model.segment import Segment

    return Segment(tuple(encode_row(encoder, row)), tuple(encoder.encode_completion(completion)))


def verified_solutions(rows: Path, counts: dict[str, int]) -> list[tuple[Row, str]]:
    """Return the training rows whose verifier accepts their solution, each with the text to train on.

    The number of rejected solutions is added to `counts`.
    """
    solved = [row for row in read_rows(rows) if row["split"] != "heldout" and row["solution"]]
    candidates = [(row, completion) for row in solved if (completion := _completion_text(row)) is not None]
    questions = (
        Item(completion, row["gold"], row["verifier"], row["verifier_args"], problem_of(row))
        for row, completion in candidates
    )
    verdicts = list(verify_batch(questions, max_timeouts=MAX_TIMEOUTS))
    if refused := sum(not verdict.passed for verdict in verdicts):
        counts["drop:solution_not_verified"] = refused
    return [pair for pair, verdict in zip(candidates, verdicts, strict=True) if verdict.passed]


def _completion_text(row: Row) -> str | None:
    """Return a row's solution followed by its answer, or None if the verifier could not judge it.

    Calculator annotations are removed: "12+9=<<12+9=21>>21" -> "12+9=21".
    """
    verifier = resolve(row["verifier"])
    if row["gold"] is None:
        return gold_response(verifier, None, row["solution"])
    committed = gold_response(verifier, row["gold"], row["solution"]) or row["gold"]
    working = HASHED_ANSWER.sub("", CALCULATOR.sub("", row["solution"] or "")).rstrip()
    return working if "\\boxed" in working else f"{working}\n{committed}"


def _example_order(examples: int, config: SftConfig, *, shuffled: bool) -> Sequence[int]:
    order: list[int] = []
    for epoch in range(config.epochs):
        epoch_order = list(range(examples))
        if shuffled:
            random.Random(f"{config.seed}-{epoch}").shuffle(epoch_order)
        order.extend(epoch_order)
    return order
