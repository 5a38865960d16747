"""One recorded batch under two objectives: which completions each of them weighs, and how much.

Nothing is trained. The batch comes from completions/step-*.parquet of a run; the advantages of both objectives are
computed from its rewards, and a completion's weight is its share of the sum of |advantage x token weight|.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from truegold.train.config.objective import ObjectiveConfig
from truegold.verifiers import ConfigError, InputError

COLUMNS = ["id", "group", "token_ids", "truncated", "score", "reward", "completion"]
SHOWN = 5
"""How many completions are shown whose weights differ most."""


def read_batch(path: Path) -> pl.DataFrame:
    """Return the judged completions of a recorded step. Raises InputError where the file is none."""
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {problem}.", "Give a file of completions/ of a training.")
    try:
        batch = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is no intact Parquet file: {reason}.", "Give a file of completions/.") from None
    missing = [name for name in COLUMNS if name not in batch.columns]
    if missing:
        raise InputError(f"{path} has no column {missing[0]}.", "Give a file of completions/ of a training.")
    return batch.filter(pl.col("reward").is_not_null())


def completion_weights(batch: pl.DataFrame, config: ObjectiveConfig) -> list[float]:
    """Return the signed share of each completion in the batch's gradient, before any ratio: they add up to 1 in
    size."""
    import torch

    from truegold.train.objective import advantages, positive_weight, weigh

    groups = torch.tensor(batch["group"].to_list())
    rewards = torch.tensor(batch["reward"].to_list(), dtype=torch.float64)
    right = torch.tensor([score == 1.0 for score in batch["score"]])
    lengths = batch["token_ids"].list.len().cast(pl.Float64).to_torch()
    values = advantages(config.advantage, rewards, groups, config.pass_at_k, right).double()
    if config.masks.truncated:
        values = values * ~torch.tensor(batch["truncated"].to_list())
    positives = config.positives
    values = weigh(values, negative=positives.negative_weight)
    units = lengths if positives.unit == "tokens" else torch.ones_like(lengths)
    values = weigh(values, positive_weight(values, units, positives.floor, positives.max_weight))
    sizes = {"token": lengths, "sequence": torch.ones_like(lengths), "constant": lengths}
    values = values * sizes[config.resolved_aggregation]
    shares: list[float] = (values / values.abs().sum().clamp(min=1e-12)).tolist()
    return shares


def compare(path: Path, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a comparison of two objectives, each by its settings, on one recorded batch."""
    batch = read_batch(path)
    weights = [completion_weights(batch, _objective(settings)) for settings in (first, second)]
    yield f"{path}: {len(batch)} judged completions, {batch['group'].n_unique()} groups"
    rows = [
        ("mass that pushes up", [_mass(shares, 1) for shares in weights]),
        ("mass that pushes down", [_mass(shares, -1) for shares in weights]),
        ("completions with weight", [float(sum(share != 0 for share in shares)) for shares in weights]),
        ("largest share of a completion", [max(map(abs, shares), default=0.0) for shares in weights]),
        ("share of the longest tenth", [_longest(batch, shares) for shares in weights]),
        ("share of hard groups (up to a quarter right)", [_hard(batch, shares) for shares in weights]),
    ]
    for name, values in rows:
        yield f"  {name:<46} {values[0]:>9.3f} {values[1]:>9.3f}"
    differences = [abs(after - before) for before, after in zip(*weights, strict=True)]
    order = sorted(range(len(batch)), key=lambda index: -differences[index])
    yield "completions that are weighed most differently:"
    for index in order[:SHOWN]:
        text = " ".join(str(batch["completion"][index]).split())[:60]
        yield f"  {batch['id'][index]:.8} {weights[0][index]:+.4f} -> {weights[1][index]:+.4f}  {text}"


def _objective(settings: Mapping[str, Any]) -> ObjectiveConfig:
    try:
        return ObjectiveConfig.model_validate(settings)
    except ValidationError as error:
        mistakes = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"This is no objective: {mistakes}.", "docs/training.md has its settings.") from error


def _mass(shares: Sequence[float], sign: int) -> float:
    return sum(abs(share) for share in shares if share * sign > 0)


def _longest(batch: pl.DataFrame, shares: Sequence[float]) -> float:
    lengths = batch["token_ids"].list.len().to_list()
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return sum(abs(shares[index]) for index in order[: max(1, len(order) // 10)])


def _hard(batch: pl.DataFrame, shares: Sequence[float]) -> float:
    rates = batch.select((pl.col("score") == 1.0).mean().over("group")).to_series().to_list()
    return sum(abs(share) for share, rate in zip(shares, rates, strict=True) if rate <= 0.25)
