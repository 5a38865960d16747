"""The guards: which metric each watches, what counts as wrong, how long it has to last, and what is done about it.

`guards.toml` is the one table of them. A guard fires where its metric is, for `steps` steps in a row, further from its
baseline than every one of

    mads     times the median absolute deviation of the baseline's values (scaled to a standard deviation)
    floor    in the metric's unit: noise of small scale, however regular, is harmless
    ratio    times the baseline itself

Baselines, `against`:

    recent   the median of the last healthy steps, so that what training changes slowly is followed
    start    the median of the first healthy steps, so that it is noticed where a change is slow
    best     the best value so far
    limit    none: the floor is the limit itself

`log_faults.toml` has the causes of what only a finished log shows.
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
"""The reaction to an alarm, from the mildest to the hardest.

    warn         it is logged
    skip_step    this batch is not trained on
    halve_rate   the learning rate is half of what the schedule has, from now on
    pause        a checkpoint is written and the run ends with exit code 5; the same command goes on
    roll_back    weights and optimizer of the last healthy checkpoint, a lower rate, this batch quarantined
    stop         the run ends with exit code 5, at its last healthy checkpoint
"""

Baseline = Literal["recent", "start", "best", "limit"]


@dataclass(frozen=True)
class MetricGuard:
    """One line of the table."""

    name: str
    """The guard's name in alarms and in `train.guards.off`."""
    metric: str
    """A metric of the step, or one that is derived from them (`derived_metrics`)."""
    direction: Literal["up", "down"]
    """The direction that is wrong."""
    against: Baseline
    """The baseline that the metric is compared with."""
    action: Action
    """The reaction when the guard fires."""
    causes: str
    """The usual causes, the likeliest first."""
    remedy: str
    """Advice on how to mend the fault."""
    floor: float = 0.0
    """The least difference, or the limit."""
    mads: float = 0.0
    """The least difference in deviations of the baseline's values."""
    ratio: float = 0.0
    """The least difference as a multiple of the baseline."""
    steps: int = 1
    """How many steps in a row."""
    error: str | None = None
    """A metric with the standard error of this one. The bound is at least four standard errors away; against a
    baseline, the errors of both measurements count."""
    noise: Literal["share", "factor"] | None = None
    """How the metric scatters, where it is a mean over the groups of a step: within 0 to 1, or by a factor. Such a
    guard asks for a change beyond that noise in place of deviations, and takes as many steps together as it needs
    (`sampling_error`)."""
    until: int | None = None
    """The guard watches the steps before this one only."""


@dataclass(frozen=True)
class LogFault:
    """A fault that a log shows."""

    name: str
    first: int
    """The first step that shows it."""
    last: int
    evidence: str
    """The numbers."""

    @property
    def causes(self) -> str:
        """The probable causes of the fault."""
        return FAULTS[self.name]["causes"]

    @property
    def remedy(self) -> str:
        """Advice on how to mend the fault."""
        return FAULTS[self.name]["remedy"]

    def line(self) -> str:
        """Return one line that says what happened."""
        steps = f"Step {self.first}" if self.first == self.last else f"Steps {self.first} to {self.last}"
        return f"{steps}: {self.name}: {self.evidence}. Likely: {self.causes}."


GUARDS = tuple(
    MetricGuard(**entry)
    for entry in tomllib.loads(files("truegold.train.guards").joinpath("guards.toml").read_text("utf-8"))["guard"]
)
"""All guards, those of `guards.toml`."""
FAULTS: dict[str, dict[str, str]] = tomllib.loads(
    files("truegold.train.guards").joinpath("log_faults.toml").read_text("utf-8")
)
"""The causes of each fault and the advice, by name; the first faults are the particular ones."""

ORDER = {guard.name: index for index, guard in enumerate(GUARDS)}
"""The order of the guards: if several ask for the same action, the first is the diagnosis."""
SEVERITY: dict[Action, int] = {action: severity for severity, action in enumerate(get_args(Action))}
"""The severity of the actions: if several guards fire, the hardest action is taken."""

NOT_THE_POLICY = "not_the_policy"
"""The name, in `guards.off` and alarms, of trouble that a return to healthy weights does not mend."""
PROBE = "probe"
"""The name, in `guards.off` and alarms, of the comparison of the two engines after each sync, which stops a run by
itself."""

PROMPTS = "prompts"
"""The name, in `guards.off` and alarms, of the comparison of prompts with the profile's, which stops a run before it
begins."""

BLIND = 0.1
"""Right completions earn more than wrong ones by at least this share of what rewards differ by."""
STILL = 1e-3
"""Weights that move by less than this share of the learning rate hardly do: AdamW moves them by about the rate."""
ALMOST_ALL = 0.9
ALMOST_NONE = 0.1
"""Between these pass rates a batch has right and wrong completions, so that there is something to tell apart."""


Z_99 = 2.326
"""The normal quantile of a one-sided 99 % bound."""

SPREAD = "reward_spread/"
"""Metrics whose names begin so are of one domain."""


def derived_metrics(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Return what guards watch that no step logs: single metrics that are only wrong in the light of others."""
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
        # What older weights have sampled is apart from those in training without any fault of the engines.
        derived["engine_mismatch"] = (metrics.get("mismatch_fresh") or 0.0) / fresh
    if metrics.get("clip_share") is None and metrics.get("clipped_low") is not None:
        derived["clip_share"] = (metrics["clipped_low"] or 0.0) + (metrics.get("clipped_high") or 0.0)
    return derived


def _unread_excess(
    share: float | None, ended: float | None, profile_share: float | None, profile_ended: float | None
) -> dict[str, float]:
    """Return how much larger the share of unread completions is than in the profile, with a confidence of 99 %."""
    if share is None or not ended or profile_share is None or not profile_ended:
        return {}
    intervals = [
        wilson_interval(round(rate * count), round(count), Z_99)
        for rate, count in ((share, ended), (profile_share, profile_ended))
    ]
    low, _ = difference_interval(share, intervals[0], profile_share, intervals[1])
    return {"unread_excess": low}


def _profile_distance(passed: float, profile: float, judged: float | None) -> dict[str, float]:
    """Return how far two pass rates on the same problems are apart, in log odds, and the standard error of that;
    nothing if it is not known of how many completions they are."""
    if not judged:
        return {}
    # Half a completion more of each kind keeps the odds finite.
    smooth = [(rate * judged + 0.5) / (judged + 1.0) for rate in (passed, profile)]
    odds = [math.log(rate / (1.0 - rate)) for rate in smooth]
    # The error is that of two draws at the profile's rate: at the other rate's, which may be 0 or 1, it has no bound.
    variance = 2.0 / ((judged + 1.0) * smooth[1] * (1.0 - smooth[1]))
    return {"profile_distance": abs(odds[0] - odds[1]), "profile_error": math.sqrt(variance)}
