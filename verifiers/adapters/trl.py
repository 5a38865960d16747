"""Provides a reward function for TRL's `GRPOTrainer` and `RLOOTrainer`, which judges whole batches.

    GRPOTrainer(model, reward_funcs=[TruegoldReward()], train_dataset=load_dataset("out", split="train"), ...)
    trl grpo --reward_funcs truegold.verifiers.adapters.trl.truegold ...

A response that could not be judged has the reward None, which TRL leaves out of the group;
`TruegoldReward(unjudged=0.0)` returns 0 instead. A warning names the reason and an example. TRL's table of completions
gets the columns `truegold_reason` and `truegold_extracted`. TRL's metrics get `truegold/masked_share` and
`truegold/unread_share`.

Gold may be in any column that the stage `ingest` recognises. GSM8K (`answer`, after `####`) and MATH (`solution`, in
its box) can be used as they are on the Hugging Face hub.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

from truegold.verifiers.adapters.row_truth import truth_columns
from truegold.verifiers.adapters.scoring import Scorer, last_text, masked_share, problem_text, unread_share
from truegold.verifiers.checked import checked, checked_class
from truegold.verifiers.sandbox.errors import ConfigError


@checked_class
@dataclass
class TruegoldReward:
    """A reward function for TRL that judges each completion by its row's verifier; settings are those of `Scorer`."""

    verifier: str | None = None
    unjudged: float | None = None
    workers: int = 0
    routes: Mapping[str, str] | str | None = None
    scorer: Scorer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.scorer = Scorer(self.verifier, self.unjudged, self.workers, routes=self.routes)
        self.__name__ = "truegold"

    @checked
    def __call__(
        self,
        prompts: Any,
        completions: Sequence[Any],
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Return a reward for each completion, or None if it could not be judged."""
        names, has_truth = truth_columns(columns)
        if completions and self.verifier is None and not has_truth:
            raise ConfigError(
                f"The data set has no gold: its columns are {', '.join(columns) or 'prompt alone'}.",
                "Call the gold's column answer or solution, or write the set with truegold export --format trl.",
            )
        by_row = {name: _by_row(name, columns[name], len(completions)) for name in names}
        prompts = _by_row("prompts", prompts, len(completions))
        questions = []
        for index, completion in enumerate(completions):
            row = {name: values[index] for name, values in by_row.items()}
            truth = self.scorer.truth(row, problem_text(prompts[index]))
            questions.append(truth.question(last_text(completion)))
        verdicts = self.scorer.judge(questions)
        if log_extra is not None:
            log_extra("truegold_reason", [str(verdict.reason) for verdict in verdicts])
            log_extra("truegold_extracted", [verdict.extracted or "" for verdict in verdicts])
        if log_metric is not None:
            log_metric("truegold/masked_share", masked_share(verdicts))
            log_metric("truegold/unread_share", unread_share(verdicts))
        return [self.scorer.paid(verdict) for verdict in verdicts]


def truegold(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
    """Return the rewards of `TruegoldReward()`; a function for settings that take an import path."""
    return _DEFAULT(prompts, completions, **columns)


_DEFAULT = TruegoldReward()


def _by_row(name: str, values: Any, completions: int) -> Any:
    """Return a column with one entry for each completion. A single text or number is repeated.

    Raises ConfigError if the column has another number of entries.
    """
    if isinstance(values, str | Number) or getattr(values, "shape", None) == ():
        return [values] * completions
    try:
        rows = None if isinstance(values, Mapping) else len(values)
    except TypeError:
        rows = None
    if rows != completions:
        what = f"{type(values).__name__} {values!r:.60}" if rows is None else f"{rows} entries"
        raise ConfigError(
            f"The column {name!r} of the batch is {what}; there are {completions} completions.",
            "Pass a list with one entry for each completion.",
        )
    return values
