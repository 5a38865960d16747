"""The table of guards: the metric, baseline, bound and action of each guard. The entries are in `guards.toml`.

A guard fires if its metric is, for `steps` consecutive steps, further from its baseline than each of

    mads     a multiple of the median absolute deviation of the baseline's values (scaled to a standard deviation)
    floor    a difference in the metric's unit, because small differences are harmless
    ratio    a multiple of the baseline

The baseline, `against`, is one of

    recent   the median of the last healthy steps; it follows slow changes
    start    the median of the first healthy steps; slow changes are noticed
    best     the best value so far
    limit    no baseline: the guard fires beyond the floor itself

`log_faults.toml` has the causes and remedies of faults that only the log of a finished run shows.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, get_args

from truegold.verifiers.rates import difference_interval, wilson_interval

Action = Literal["warn", "skip_step", "halve_rate", "pause", "roll_back", "stop"]
"""The reaction to an alarm, from the mildest to the most severe.

    action       effect
    warn         the alarm is logged
    skip_step    the batch is not trained on
    halve_rate   the learning rate is halved from now on
    pause        a checkpoint is written and the run ends with exit code 5; the same command continues it
    roll_back    the last healthy checkpoint is loaded, the learning rate lowered, the batch copied to quarantine/
    stop         the run ends with exit code 5, at its last healthy checkpoint
"""

Baseline = Literal["recent", "start", "best", "limit"]
"""The baseline of a guard, described above."""


@dataclass(frozen=True)
class MetricGuard:
    """One guard, an entry of the table."""

    name: str
    """The guard's name in alarms and in `train.guards.off`."""
    metric: str
    """The watched metric: one that steps log, or a derived one (`derived_metrics`)."""
    direction: Literal["up", "down"]
    """The direction of a wrong change."""
    against: Baseline
    """The baseline that the metric is compared with."""
    action: Action
    """The reaction when the guard fires."""
    causes: str
    """The usual causes, the likeliest first."""
    remedy: str
    """Advice on how to correct the fault."""
    floor: float = 0.0
    """The smallest difference from the baseline. For `limit`, the limit."""
    mads: float = 0.0
    """The smallest difference, as a multiple of the deviation of the baseline's values."""
    ratio: float = 0.0
    """The smallest difference, as a multiple of the baseline."""
    steps: int = 1
    """The number of consecutive wrong steps after which the guard fires."""
    error: str | None = None
    """The metric with the standard error of the watched one. The difference must also be at least four standard errors.
    With a baseline, the standard errors of both measurements are added in squares."""
    noise: Literal["share", "factor"] | None = None
    """The noise of a metric that is a mean over the groups of a step: a share between 0 and 1, or a factor. Its guard
    looks for a change beyond this noise in windows of several steps (`sampling_error`). This replaces `mads`."""
    until: int | None = None
    """The guard watches only steps before this one."""


@dataclass(frozen=True)
class LogFault:
    """A fault in the log of a finished run."""

    name: str
    first: int
    last: int
    """The fault is in the steps `first` to `last`."""
    evidence: str
    """The numbers that show the fault."""

    @property
    def causes(self) -> str:
        """The likely causes of the fault."""
        return FAULTS[self.name]["causes"]

    @property
    def remedy(self) -> str:
        """Advice on how to correct the fault."""
        return FAULTS[self.name]["remedy"]

    def line(self) -> str:
        """Return one line with the steps, name, evidence and causes of the fault."""
        steps = f"Step {self.first}" if self.first == self.last else f"Steps {self.first} to {self.last}"
        return f"{steps}: {self.name}: {self.evidence}. Likely: {self.causes}."


GUARDS = tuple(
    MetricGuard(**entry)
    for entry in tomllib.loads(files("truegold.train.guards").joinpath("guards.toml").read_text("utf-8"))["guard"]
)
"""All guards, from `guards.toml`."""
FAULTS: dict[str, dict[str, str]] = tomllib.loads(
    files("truegold.train.guards").joinpath("log_faults.toml").read_text("utf-8")
)
"""The causes and remedy of each fault, by name. More specific faults come first."""

ORDER = {guard.name: index for index, guard in enumerate(GUARDS)}
"""The order of the guards. Of several guards with the same action, the first is reported as the cause."""
SEVERITY: dict[Action, int] = {action: severity for severity, action in enumerate(get_args(Action))}
"""The severity of the actions. If several guards fire, the most severe action is taken."""

NOT_THE_POLICY = "not_the_policy"
"""The name, in `guards.off` and alarms, of a fault that a roll-back to healthy weights does not correct."""
PROBE = "probe"
"""The name, in `guards.off` and alarms, of the comparison of the two engines after each sync, which may stop a run."""

PROMPTS = "prompts"
"""The name, in `guards.off` and alarms, of the comparison of prompts with the profile's prompts, which may stop a run
before its first step."""

BLIND = 0.1
"""The smallest `reward_gap` of a reward that measures correctness, as a share of `reward_spread`."""
STILL = 1e-3
"""Weights that move by less than this share of the learning rate count as untrained. AdamW moves them by about the
learning rate."""
ALMOST_NONE, ALMOST_ALL = 0.1, 0.9
"""Between these pass rates, a batch has enough right and wrong completions for different rewards."""


Z_99 = 2.326
"""The normal quantile of a one-sided 99 % bound."""

SPREAD = "reward_spread/"
"""The prefix of the metrics with the reward spread of one domain."""


def derived_metrics(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Return the watched metrics that steps do not log. They are computed from several logged metrics."""
    derived: dict[str, float] = {}
    passed, profile, spread = (metrics.get(name) for name in ("pass_rate", "profile_pass_rate", "reward_spread"))
    trained = metrics.get("trained_completions")
    rewards = [value for name in ("reward", "reward_spread", "reward_gap") if (value := metrics.get(name)) is not None]
    gap = metrics.get("reward_gap")
    if gap is not None and spread:
        derived["reward_blind"] = float(abs(gap) < BLIND * spread)
    push = metrics.get("push_gap")
    if gap is not None and spread and push is not None and gap > BLIND * spread:
        derived["rewarded_push"] = push
    if rewards:
        derived["reward_not_finite"] = float(not all(map(math.isfinite, rewards)))
    mass = metrics.get("positive_token_mass")
    if mass is not None and trained != 0:
        derived["positive_mass"] = mass
    moved = metrics.get("weights_moved")
    is_still = 0.0 in (metrics.get("lr"), metrics.get("grad_norm")) or (moved is not None and moved < STILL)
    if trained and metrics.get("grad_norm") is not None and metrics.get("groups_teaching") != 0:
        derived["weights_still"] = float(is_still)
    if passed is not None and spread is not None:
        derived["reward_constant"] = float(spread == 0 and 0.02 < passed < 0.98)
    if passed is not None and profile is not None:
        derived |= _profile_distance(passed, profile, metrics.get("judged"))
    derived |= _unread_excess(*(metrics.get(name) for name in ("unread", "ended", "profile_unread", "profile_ended")))
    domains = [name.removeprefix(SPREAD) for name in metrics if name.startswith(SPREAD)]
    if domains:
        is_mixed = [ALMOST_NONE < (metrics.get(f"pass_rate/{domain}") or 0.0) < ALMOST_ALL for domain in domains]
        is_constant = [metrics[SPREAD + domain] == 0 for domain in domains]
        derived["domain_constant"] = float(any(map(all, zip(is_mixed, is_constant, strict=True))))
    mismatch, fresh = metrics.get("mismatch_abs"), metrics.get("fresh_tokens")
    if mismatch is not None and fresh is None:
        derived["engine_mismatch"] = mismatch
    elif fresh:
        # Tokens of older weights differ from the current policy, even if the engines are equal. So only fresh tokens
        # count.
        derived["engine_mismatch"] = (metrics.get("mismatch_fresh") or 0.0) / fresh
    if metrics.get("clip_share") is None and metrics.get("clipped_low") is not None:
        derived["clip_share"] = (metrics["clipped_low"] or 0.0) + (metrics.get("clipped_high") or 0.0)
    return derived


def _unread_excess(
    share: float | None, ended: float | None, profile_share: float | None, profile_ended: float | None
) -> dict[str, float]:
    """Return a lower bound (99 %) of the share of unread completions minus the profile's share."""
    if share is None or not ended or profile_share is None or not profile_ended:
        return {}
    intervals = [
        wilson_interval(round(rate * count), round(count), Z_99)
        for rate, count in ((share, ended), (profile_share, profile_ended))
    ]
    low, _ = difference_interval(share, intervals[0], profile_share, intervals[1])
    return {"unread_excess": low}


def _profile_distance(passed: float, profile: float, judged: float | None) -> dict[str, float]:
    """Return the difference between the pass rates of a step and of the profile in log-odds, and its standard error.

    judged: the number of completions; without it an empty dict is returned.
    """
    if not judged:
        return {}
    # Adding half a right and half a wrong completion keeps the odds finite.
    smooth = [(rate * judged + 0.5) / (judged + 1.0) for rate in (passed, profile)]
    odds = [math.log(rate / (1.0 - rate)) for rate in smooth]
    # The error of two samples at the profile's rate. The step's rate may be 0 or 1, where this error is unbounded.
    variance = 2.0 / ((judged + 1.0) * smooth[1] * (1.0 - smooth[1]))
    return {"profile_distance": abs(odds[0] - odds[1]), "profile_error": math.sqrt(variance)}
