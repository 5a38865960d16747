"""TRL's `GRPOTrainer` and `RLOOTrainer`: a reward function over whole batches.

    GRPOTrainer(model, reward_funcs=[TruegoldReward()], train_dataset=load_dataset("out", split="train"), ...)
    trl grpo --reward_funcs truegold.verifiers.adapters.trl.truegold ...

A response that could not be judged gets None, which TRL leaves out of the group; `TruegoldReward(unjudged=0.0)`
gives 0 instead. The completions table gets the columns `truegold_reason` and `truegold_extracted`, the metrics
`truegold/masked_share`, and a warning names the reason and an example. TRL names rewards by `__name__` and pickles them
for its asynchronous trainer.

Gold stands in any column that `ingest` finds it in: the hub's GSM8K (`answer`, after `####`) and MATH (`solution`, in
its box) are read as they lie there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

from truegold.verifiers.adapters.row_truth import truth_columns
from truegold.verifiers.adapters.scoring import Scorer, last_text, masked_share, problem_text, unread_share
from truegold.verifiers.sandbox.errors import ConfigError


@dataclass
class TruegoldReward:
    """The score of each row's verifier, as TRL calls rewards. It takes the settings of `Scorer`."""

    verifier: str | None = None
    unjudged: float | None = None
    workers: int = 0
    routes: Mapping[str, str] | str | None = None
    scorer: Scorer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.scorer = Scorer(self.verifier, self.unjudged, self.workers, routes=self.routes)
        self.__name__ = "truegold"

    def __call__(
        self,
        prompts: Sequence[Any],
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
                "Name one answer, ground_truth or solution, or write the set with truegold export --format trl.",
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
    """Return the rewards of `TruegoldReward()`, for callers that name a function by its path."""
    return _DEFAULT(prompts, completions, **columns)


_DEFAULT = TruegoldReward()


def _by_row(name: str, values: Any, completions: int) -> Any:
    """Return a column with an entry for each completion. A single text or number is repeated for all of them.

    Raises ConfigError if a column is not of this batch: TRL hands each with an entry for every completion.
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
