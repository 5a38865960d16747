"""The guards: which metric each watches, what counts as wrong, how long it has to last, and what is done about it.

This is the one table of them. A guard fires where its metric is, for `steps` steps in a row, further from its baseline
than every one of

    mads     times the median absolute deviation of the baseline's values (scaled to a standard deviation)
    floor    in the metric's unit: noise of small scale, however regular, is harmless
    ratio    times the baseline itself

Baselines, `against`:

    recent   the median of the last healthy steps, so that what training changes slowly is followed
    start    the median of the first healthy steps, so that it is noticed where a change is slow
    best     the best value so far
    limit    none: the floor is the limit itself
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Action = Literal["warn", "skip_step", "halve_rate", "pause", "roll_back", "stop"]
"""What is done, from the mildest to the hardest.

    warn         it is logged
    skip_step    this batch is not trained on
    halve_rate   the learning rate is half of what the schedule has, from now on
    pause        a checkpoint is written and the run ends with exit code 5; the same command goes on
    roll_back    weights and optimizer of the last healthy checkpoint, a lower rate, this batch quarantined
    stop         the run ends with exit code 5, at its last healthy checkpoint
"""

Baseline = Literal["recent", "start", "best", "limit"]


@dataclass(frozen=True)
class Guard:
    """One line of the table."""

    name: str
    """What alarms and `train.guards.off` call it."""
    metric: str
    """A metric of the step, or one that is derived from them (`derived_metrics`)."""
    direction: Literal["up", "down"]
    """Which way is wrong."""
    against: Baseline
    """What the metric is compared with."""
    action: Action
    """What is done."""
    causes: str
    """What usually is behind it, the likeliest first."""
    remedy: str
    """What to do about it."""
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
    until: int | None = None
    """The guard watches the steps before this one only."""


LOWER_RATE = "Lower train.optimizer.lr, or raise warmup_steps; the metrics of the steps before it say how fast it went."
LOOK_AT_REWARD = "Look at the completions of these steps in completions/, and at what the reward pays for."

GUARDS: tuple[Guard, ...] = (
    Guard(
        "not_finite", "not_finite", "up", "limit", "skip_step",
        "a learning rate that is too high, a reward or a weight that is NaN, a broken rank",
        "Look at the quarantined batch; lower train.optimizer.lr where it comes again.",
        floor=0.5,
    ),
    Guard(
        "reward_not_finite", "reward_not_finite", "up", "limit", "stop",
        "a reward term that is NaN or infinite, such as a division by zero in it",
        "Look at reward/NAME of each term in the metrics, and mend that verifier.",
        floor=0.5,
    ),
    Guard(
        "verdicts_changed", "canaries_changed", "up", "limit", "stop",
        "the verifier or a reward term changed while training: it judges the very completions of the first step "
        "otherwise than it did then (turned around, constant, failing, or depending on time or order)",
        "Judge those completions again with `truegold verify`, and mend the verifier; then go on.",
        floor=0.4, steps=2,
    ),
    Guard(
        "unjudged", "unjudged", "up", "limit", "stop",
        "a verifier that raises, runs into its deadline, or returns NaN",
        "Its reason codes are in completions/; mend the verifier, or raise its deadline.",
        floor=0.5, steps=2,
    ),
    Guard(
        "unjudged_rise", "unjudged", "up", "start", "warn",
        "a verifier that fails on what the model now writes, or runs into its deadline",
        "Its reason codes are in completions/.",
        floor=0.15, mads=6.0, steps=3,
    ),
    Guard(
        "reward_constant", "reward_constant", "up", "limit", "stop",
        "a reward that is the same for right and for wrong completions: a term that returns a constant, weights that "
        "cancel, a clip that cuts everything off",
        "Look at train.reward: nothing in it tells completions apart.",
        floor=0.5, steps=2,
    ),
    Guard(
        "reward_sign", "reward_gap", "down", "limit", "stop",
        "a reward that pays more for wrong completions than for right ones: a sign, a negative weight, a term that "
        "outweighs correctness",
        "Look at train.reward and at reward/NAME of each term in the metrics.",
        floor=-0.05, steps=2,
    ),
    Guard(
        "update_sign", "rewarded_push", "down", "limit", "stop",
        "the update makes right completions less likely and wrong ones likelier, though the reward pays for being "
        "right: advantages or a loss of the other sign, or advantages that belong to other completions",
        "Look at the advantages in completions/, and at the loss.",
        floor=-0.2, steps=2,
    ),
    Guard(
        "reward_blind", "reward_blind", "up", "limit", "pause",
        "a reward that hardly depends on being right: it pays for length or form, or correctness has too little weight",
        "Look at train.reward and at reward/NAME of each term; the same command goes on if this is meant.",
        floor=0.5, steps=4,
    ),
    Guard(
        "domain_constant", "domain_constant", "up", "limit", "warn",
        "in one domain the reward is the same for right and for wrong completions, so that nothing is learnt there",
        "reward_spread/NAME says in which; look at the verifier of its rows.",
        floor=0.5, steps=3,
    ),
    Guard(
        "reward_fall", "reward", "down", "recent", "warn",
        "a learning rate that is too high, or terms of the reward that work against each other",
        LOOK_AT_REWARD, floor=0.1, mads=8.0, ratio=0.5, steps=3,
    ),
    Guard(
        "teaching_fall", "groups_teaching", "down", "recent", "warn",
        "problems that are now all too easy or all too hard, or completions of a group that are all alike",
        "Raise sampling.refills, take harder problems, or look at distinct_answers.",
        floor=0.4, mads=8.0, steps=3,
    ),
    Guard(
        "profile", "profile_distance", "up", "limit", "pause",
        "before any training has told, the odds of passing are four times or a quarter of what the profile measured on "
        "the same problems: "
        "another verifier, prompt, temperature or max_tokens than in the profile",
        "Compare completions of step 0 with the profile's samples; the same command goes on if this is meant.",
        floor=1.4, steps=2, until=3, error="profile_error",
    ),
    Guard(
        "truncation", "truncated", "up", "start", "roll_back",
        "completions that run on until they are cut: a reward that pays for length, repetition, a policy that has lost "
        "its end-of-sequence token",
        "Add the reward term `length`, or raise sampling.max_tokens where the completions are sane.",
        floor=0.25, mads=6.0, steps=2,
    ),
    Guard(
        "repetition", "repetition", "up", "start", "roll_back",
        "completions that repeat themselves: a collapsing policy, or a reward that pays for length",
        LOOK_AT_REWARD, floor=0.2, mads=6.0, steps=2,
    ),
    Guard(
        "language", "foreign_script", "up", "start", "roll_back",
        "completions in a script that no problem has: a reward that does not see the language",
        "Add a reward term for the language (the verifier `regex`), or lower the learning rate.",
        floor=0.1, mads=6.0, steps=2,
    ),
    Guard(
        "nothing_teaches", "idle", "up", "limit", "roll_back",
        "no group has completions of different rewards, and hardly any passes: a collapsed policy, problems that are "
        "all too hard, a verifier that always says no",
        "Look at completions/: where they are sane, take easier problems, more tokens or a larger group_size.",
        floor=0.5, steps=3,
    ),
    Guard(
        "pass_rate_start", "pass_rate", "down", "start", "roll_back",
        "a learning rate that is too high, or a reward that does not pay for being right",
        LOWER_RATE, floor=0.12, mads=3.0, ratio=0.4, steps=2,
    ),
    Guard(
        "pass_rate_fall", "pass_rate", "down", "recent", "roll_back",
        "a learning rate that is too high, or a reward that does not pay for being right",
        LOWER_RATE, floor=0.15, mads=5.0, steps=2,
    ),
    Guard(
        "heldout_fall", "heldout_pass_rate", "down", "best", "roll_back",
        "the policy unlearns what the reward does not see, or a learning rate that is too high",
        "Go on from the best checkpoint (kept by the held-out pass rate), with a lower rate or another reward.",
        floor=0.08, error="heldout_error",
    ),
    Guard(
        "length_up", "length_mean", "up", "start", "warn",
        "a reward that pays for length, or reasoning that grows",
        LOOK_AT_REWARD, floor=16.0, mads=6.0, ratio=1.0, steps=3,
    ),
    Guard(
        "length_down", "length_mean", "down", "start", "warn",
        "answers without their reasoning: a reward that punishes length, or problems that can be guessed",
        LOOK_AT_REWARD, floor=16.0, mads=6.0, ratio=0.7, steps=3,
    ),
    Guard(
        "entropy_up", "entropy", "up", "start", "halve_rate",
        "a policy that falls apart: a learning rate that is too high, mostly negative advantages, an entropy bonus",
        LOWER_RATE, floor=0.3, mads=6.0, ratio=1.0, steps=2,
    ),
    Guard(
        "entropy_collapse", "entropy", "down", "start", "warn",
        "a policy that has stopped to explore",
        "Raise objective.clip.high or the temperature; take positives with care (objective.positives).",
        floor=0.2, mads=6.0, ratio=0.95, steps=5,
    ),
    Guard(
        "kl", "kl", "up", "start", "warn",
        "the policy is far from the model that training began from",
        "Raise objective.kl.weight, or lower the learning rate.",
        floor=1.0, mads=10.0, ratio=3.0, steps=3,
    ),
    Guard(
        "grad_norm", "grad_norm", "up", "recent", "halve_rate",
        "single tokens of very low probability, a learning rate that is too high",
        LOWER_RATE, floor=5.0, mads=10.0, ratio=5.0, steps=3,
    ),
    Guard(
        "loss", "loss", "up", "recent", "warn",
        "weights or advantages that have no bound", "Look at objective.corrections and at the advantages.",
        floor=1.0, mads=10.0, steps=3,
    ),
    Guard(
        "clip_share", "clip_share", "up", "start", "halve_rate",
        "clip_engine, clip_staleness and clip_update say where it comes from",
        "engine: mend what the two engines disagree on; staleness: sync more often; update: a lower rate, fewer steps "
        "on one batch.",
        floor=0.15, mads=10.0, steps=2,
    ),
    Guard(
        "mismatch", "engine_mismatch", "up", "start", "stop",
        "the engine that samples and the one that trains have other log-probabilities for the same tokens: another "
        "temperature, weights that did not arrive, another dtype",
        "The probe names the cause where it can; compare the two engines on one prompt.",
        floor=0.1, mads=10.0, ratio=2.0, steps=2,
    ),
    Guard(
        "mismatch_always", "mismatch_abs", "up", "limit", "stop",
        "what is trained on was never sampled so: tokens, masks or temperatures are not those of the rollout, from the "
        "first step on",
        "Compare the log-probabilities of one completion in completions/ with the model's own.",
        floor=0.5, steps=2,
    ),
    Guard(
        "positive_mass", "positive_token_mass", "down", "limit", "warn",
        "nearly all of the gradient pushes completions down: problems that are too hard, or long wrong answers",
        "Set objective.positives.floor, or take easier problems.",
        floor=0.1, steps=5,
    ),
    Guard(
        "slow", "seconds_rollout", "up", "recent", "warn",
        "a verifier near its deadline, a sampling engine that is swapping or preempting",
        "Look at the verifier's times, and at the machine.",
        floor=60.0, mads=10.0, ratio=4.0, steps=2,
    ),
)  # fmt: skip
"""All guards. Where several ask for the same action, the first is the diagnosis: particular causes come before what
they all lead to."""

SEVERITY: dict[Action, int] = {
    "warn": 0,
    "skip_step": 1,
    "halve_rate": 2,
    "pause": 3,
    "roll_back": 4,
    "stop": 5,
}
"""Where several guards fire, the hardest action is taken."""

NOT_THE_POLICY = "not_the_policy"
"""What `guards.off` and the alarms call it where a return to healthy weights mends nothing."""
PROBE = "probe"
"""What `guards.off` and the alarms call the comparison of the two engines after each sync, which stops a run by
itself."""

PROMPTS = "prompts"
"""What `guards.off` and the alarms call the comparison of prompts with the profile's, which stops a run before it
begins."""

BLIND = 0.1
"""Right completions earn more than wrong ones by at least this share of what rewards differ by."""
ALMOST_ALL = 0.9
ALMOST_NONE = 0.1
"""Between these pass rates a batch has right and wrong completions, so that there is something to tell apart."""


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
    if passed is not None and trained is not None:
        # Where more pass, the groups are right or wrong as a whole: what could be learnt has been, and a policy that
        # was healthier before is seen by its pass rate.
        derived["idle"] = float(trained == 0 and passed < ALMOST_NONE)
    if passed is not None and spread is not None:
        derived["reward_constant"] = float(spread == 0 and 0.02 < passed < 0.98)
    if passed is not None and profile is not None:
        derived |= _profile_distance(passed, profile, metrics.get("judged"))
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


def _profile_distance(passed: float, profile: float, judged: float | None) -> dict[str, float]:
    """Return how far two pass rates on the same problems are apart, in log odds, and the standard error of that;
    nothing where it is not known of how many completions they are."""
    if not judged:
        return {}
    # Half a completion more of each kind keeps the odds finite.
    smooth = [(rate * judged + 0.5) / (judged + 1.0) for rate in (passed, profile)]
    odds = [math.log(rate / (1.0 - rate)) for rate in smooth]
    # The error is that of two draws at the profile's rate: at the other rate's, which may be 0 or 1, it has no bound.
    variance = 2.0 / ((judged + 1.0) * smooth[1] * (1.0 - smooth[1]))
    return {"profile_distance": abs(odds[0] - odds[1]), "profile_error": math.sqrt(variance)}
