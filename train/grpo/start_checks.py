"""Rows and defaults of a training that are determined before its first step.

rows          rows whose prompt leaves room for a right answer within the engine's context
heldout       held-out rows and rows of evaluation sets whose prompt is not trained on
max_tokens    as configured, or a little above the lengths of right completions in the profile
evaluation    sampling of held-out rows, as configured or as in the checkpoint's generation_config.json
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from truegold.pipeline.decontaminate.matches import find_matches
from truegold.pipeline.engines.chat import ChatEncoder, encode_row
from truegold.pipeline.problems import ProblemColumns, read_problems
from truegold.pipeline.rates.lengths import MARGIN, is_wildly_above_need, propose_max_tokens, quantile_length
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.conversation import turns_text
from truegold.pipeline.tables.reasons import MATCHES_FILE
from truegold.pipeline.tables.rows import Row, count_rows, read_rows
from truegold.train.config.grpo import HELDOUT_SET, EvaluationConfig, SamplingConfig
from truegold.train.grpo.evaluation import EvaluationRows, read_set
from truegold.verifiers import InputError, Reason

FALLBACK_MAX_TOKENS = 512
"""The longest completion, in tokens, if the profile has no right completion."""
PLAIN_SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": 0}
"""The settings of sampling from the model's own distribution. The configuration and generation_config.json use the same
names."""


@dataclass(frozen=True)
class EvalSampling:
    """How held-out rows are sampled."""

    temperature: float
    top_p: float
    top_k: int
    source: str
    """The source of the settings: `configured`, `generation_config.json` or `default`."""


def choose_max_tokens(config: SamplingConfig, samples: Path | None, longest: int) -> tuple[int, str]:
    """Return the longest completion of a rollout, in tokens, and the reason, such as "configured".

    samples: the samples of the profile. longest: the engine's limit for prompt plus completion. Raises InputError if
    the configured limit is far above the lengths of right completions, because completions that reach it take much
    time and teach the policy to be long.
    """
    lengths: dict[int, int] = dict(_right_lengths(samples)["length"].value_counts().iter_rows())
    configured, proposed = config.max_tokens, propose_max_tokens(lengths)
    if configured is not None:
        if is_wildly_above_need(configured, lengths) and not config.allow_long:
            raise InputError(
                f"train.sampling.max_tokens is {configured}, while 99.5 % of the profile's right completions end "
                f"within {quantile_length(lengths)} tokens: completions up to the limit would take most of the time.",
                f"Leave it out (the default is {proposed}), or set train.sampling.allow_long for longer answers.",
            )
        return configured, "configured"
    if samples is None:
        return min(FALLBACK_MAX_TOKENS, longest - 1), "default: there is no profile"
    if proposed is None:
        return min(FALLBACK_MAX_TOKENS, longest - 1), "default: the profile has no right completion"
    why = f"{MARGIN} x {quantile_length(lengths)}, the 99.5 % quantile of right completions"
    return min(proposed, longest - 1), why


def unread_in_profile(samples: Path | None) -> dict[str, float | None]:
    """Return the share of unread answers in the profile. Returns an empty dict without samples.

    profile_ended    the number of samples that ended by themselves
    profile_unread   the share of these samples whose answer the verifier could not read
    """
    if samples is None:
        return {}
    ended = pl.scan_parquet(samples).filter(pl.col("finish_reason") == "stop")
    counts = ended.select(pl.len().alias("all"), (pl.col("reason") == str(Reason.UNREAD)).sum().alias("unread"))
    count, unread = counts.collect(engine="streaming").row(0)
    return {"profile_unread": unread / count, "profile_ended": float(count)} if count else {}


@dataclass(frozen=True)
class TrainingRows:
    """The usable rows of a training."""

    rows: list[Row]
    reserve: list[Row]
    heldout: list[Row]
    rows_in: int
    """The number of selected rows that were read."""
    skipped: dict[str, int]
    """The number of rows that were left out, by reason."""
    evaluation_sets: Mapping[str, Sequence[Row]]
    """The rows of further evaluation sets, by name."""
    reworded: list[str] = field(default_factory=list)
    """A line for each held-out row that was left out because it rewords a training row."""

    def evaluation_rows(self, config: EvaluationConfig) -> EvaluationRows:
        """Return the rows to evaluate: the first `config.problems` of each set, the run's held-out rows first."""
        sets = {HELDOUT_SET: self.heldout, **self.evaluation_sets}
        return EvaluationRows.from_sets({name: members[: config.problems] for name, members in sets.items()})


def read_training_rows(
    inputs: Mapping[str, Path], encoder: ChatEncoder, longest: int, evaluation: EvaluationConfig
) -> TrainingRows:
    """Return the usable rows of the inputs `rows`, `reserve` and `heldout`, and `evaluation NAME` of each named set.

    longest: the engine's limit for prompt plus completion, in tokens. Raises InputError if no row is left to train on
    or to evaluate.
    """
    (rows, cramped), (reserve, _), (heldout, _) = (
        split_by_room(read_rows(inputs[name]), inputs.get("samples"), encoder, longest)
        for name in ("rows", "reserve", "heldout")
    )
    if not rows:
        raise InputError(
            f"The prompts of all {len(cramped)} selected rows are too long: the remaining context is shorter than "
            "right answers in the profile.",
            f"Raise train.engine.max_model_len (now {longest}).",
        )
    is_evaluated = bool(evaluation.every)
    heldout, leaked = split_by_leak(heldout, rows, reserve) if is_evaluated else (heldout, [])
    reworded = find_reworded(inputs["heldout"], [inputs["rows"], inputs["reserve"]]) if is_evaluated and heldout else {}
    kept = [row for row in heldout if row["id"] not in reworded]
    skipped = {
        "skip:prompt_too_long_for_model": len(cramped),
        "skip:heldout_is_trained_on": len(leaked),
        "skip:heldout_is_a_reworded_one": len(heldout) - len(kept),
    }
    sets = {}
    for name in evaluation.sets:
        members, unusable = read_set(inputs[f"evaluation {name}"])
        fitting, too_long = split_by_room(members, inputs.get("samples"), encoder, longest)
        sets[name], leaked = split_by_leak(fitting, rows, reserve)
        counts = {"unusable": unusable, "prompt_too_long_for_model": len(too_long), "is_trained_on": len(leaked)}
        skipped |= {f"skip:{name}_{reason}": count for reason, count in counts.items() if count}
    lines = [reworded[row["id"]] for row in heldout if row["id"] in reworded]
    return TrainingRows(rows, reserve, kept, len(rows) + len(cramped), skipped, sets, lines)


def split_by_room(
    rows: Iterable[Row], samples: Path | None, encoder: ChatEncoder, longest: int
) -> tuple[list[Row], list[Row]]:
    """Return the rows whose prompt leaves room for a right answer, and the rows whose prompt is too long.

    The length of a right answer is the median of the row's right samples in the profile, or of all right samples if the
    row has none, or 1 without a profile. longest: the engine's limit for prompt plus completion, in tokens.
    """
    right = _right_lengths(samples, "id")
    lengths = dict(right.group_by("id").agg(pl.col("length").median()).iter_rows())
    usual = float(right["length"].median() or 1.0)  # type: ignore[arg-type]
    fitting: list[Row] = []
    cramped: list[Row] = []
    for row in rows:
        room = longest - len(encode_row(encoder, row))
        (fitting if room >= lengths.get(row["id"], usual) else cramped).append(row)
    return fitting, cramped


def split_by_leak(heldout: Iterable[Row], *trained: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Return the held-out rows whose prompt is not trained on, and those whose prompt is.

    Prompts are compared without case, and with single spaces for any white space. Raises InputError if all prompts are
    trained on.
    """
    prompts = {_normalize(turns_text(row)) for rows in trained for row in rows}
    sound: list[Row] = []
    leaked: list[Row] = []
    for row in heldout:
        (leaked if _normalize(turns_text(row)) in prompts else sound).append(row)
    if leaked and not sound:
        raise InputError(
            f"All {len(leaked)} held-out rows have prompts that are trained on: an evaluation on them would measure "
            "memorized answers.",
            "Hold other rows out (data.heldout), or run truegold decontaminate.",
        )
    return sound, leaked


def find_reworded(heldout: Path, trained: Sequence[Path]) -> dict[str, str]:
    """Return a line for each held-out row that rewords a training row or is a part of one, by the held-out row's id.

    Rows are compared like in `truegold decontaminate`.
    """
    columns = ProblemColumns(prompt="prompt", gold="gold", id="id")
    against = {str(path): columns for path in trained if count_rows(path)}
    if not against:
        return {}
    with TemporaryDirectory(prefix="truegold-leaks-") as folder:
        find_matches(lambda clean: read_problems(heldout, columns, clean=clean), against, Path(folder), NullProgress())
        matches = pl.read_parquet(Path(folder) / MATCHES_FILE, columns=["id", "against_id", "kind", "score"])
    return {
        row_id: f"held-out row {row_id} is not evaluated: row {other}, which is trained on, is the same problem "
        f"({kind}, {score:.2f})"
        for row_id, other, kind, score in matches.iter_rows()
    }


def _normalize(prompt: str) -> str:
    """Return a prompt with single spaces and without case, for comparison."""
    return " ".join(prompt.split()).casefold()


def _right_lengths(samples: Path | None, *columns: str) -> pl.DataFrame:
    """Return a table of the profile's right completions with their `length` in tokens, and the named columns."""
    if samples is None:
        return pl.DataFrame(schema=[*columns, "length"])
    right = pl.scan_parquet(samples).filter((pl.col("score") == 1.0) & (pl.col("finish_reason") == "stop"))
    return right.select(*columns, length=pl.col("token_ids").list.len()).collect()


def choose_eval_sampling(config: EvaluationConfig, model: Path) -> EvalSampling:
    """Return the sampling settings of an evaluation.

    Each setting is taken from the configuration, else from the checkpoint's generation_config.json, else from
    `PLAIN_SAMPLING`.
    """
    checkpoint_settings = _read_generation_config(model)
    stated = {name: checkpoint_settings.get(name) for name in PLAIN_SAMPLING}
    if checkpoint_settings.get("do_sample") is False:
        stated = {"temperature": 0.0, "top_p": None, "top_k": None}
    configured = {name: getattr(config, name) for name in PLAIN_SAMPLING}
    source = "configured" if any(configured.values()) else "default"
    if any(configured[name] is None and stated[name] is not None for name in PLAIN_SAMPLING):
        source = "generation_config.json"
    choices: list[Mapping[str, Any]] = [configured, stated, PLAIN_SAMPLING]
    chosen = {name: next(each[name] for each in choices if each[name] is not None) for name in PLAIN_SAMPLING}
    return EvalSampling(float(chosen["temperature"]), float(chosen["top_p"]), int(chosen["top_k"]), source)


def sampling_facts(
    config: SamplingConfig, max_tokens: int, max_tokens_from: str, evaluation: EvalSampling
) -> dict[str, object]:
    """Return the sampling settings of rollouts and held-out rows, for the stage's record."""
    temperature = config.temperature if isinstance(config.temperature, float) else config.temperature.model_dump()
    rollout = {"temperature": temperature, "top_p": 1.0, "max_tokens": max_tokens, "max_tokens_from": max_tokens_from}
    return {"rollout": rollout, "evaluation": asdict(evaluation)}


def _read_generation_config(model: Path) -> dict[str, float | bool | None]:
    """Return the settings of a checkpoint's generation_config.json, or an empty dict without the file.

    Raises InputError if the file or a sampling setting in it is malformed.
    """
    path = model / "generation_config.json"
    if not path.exists():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}).") from error
    if not isinstance(settings, dict):
        raise InputError(f"{path} has no object of settings.")
    for name in PLAIN_SAMPLING:
        if not isinstance(settings.get(name), int | float | None):
            raise InputError(
                f"{path}: {name} is {settings[name]!r:.80}, not a number.",
                "Correct the file, from which the sampling of held-out rows is read.",
            )
    return settings
