"""Finds faults in the log of a finished run, of any trainer: each with its name, steps, numbers, causes and what to do.

    for fault in find_faults(read_log(path)):
        print(fault.line())

    Steps 11 to 71: periodic: reward is 0 (usual 0.47) at every 10 steps, 7 times, from step 11. Likely: ...

A clean log is never accused: moves have to be beyond noise (`trends.py`) and large besides. Where accuracy steps down
at once and then rises again, the problems have become harder. `log_faults.toml` has the causes.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise

import numpy as np
from scipy.stats import chi2, linregress
from scipy.stats import t as student

from truegold.train.guards.run_log import Metrics, RunLog
from truegold.train.guards.trends import (
    Move,
    change_point,
    fall_from_peak,
    find_outliers,
    find_period,
    gradual_fall,
    measure_move,
    running_median,
)

FAULTS: dict[str, dict[str, str]] = tomllib.loads(
    files("truegold.train.guards").joinpath("log_faults.toml").read_text("utf-8")
)
"""By name, the causes of each fault and what to do; the first are the particular ones."""
NEEDS_RATE = ("hidden_fall", "reward_blind")
"""Faults that are only seen where the log has an accuracy beside the reward."""

SHORT = 5
"""In so many steps a run is dead that never had a reward that differed, if the reward is not 0."""
DEAD = 8
"""So many dead steps are a dead run where there are no others."""
STRETCH = 10
"""Elsewhere so many in a row, if chance does not make them."""
SOLVED_STRETCH = 20
"""Where nearly all completions are right, groups are alike without any fault; so many in a row end all learning."""
RARE = 1e-3
"""A stretch that chance makes more often is none."""
FEWEST_EVALUATIONS = 4
ALONE, BESIDE = 0.003, 0.02
"""How likely noise alone may have made a fall of the held-out accuracy; the second where it is large and the reward
rises meanwhile."""
LEAST_ERROR = 0.01
"""An evaluation is not taken to be more exact, however regular its values are."""
MOST_PROBLEMS = 200
"""Evaluations of fewer problems are told by their values, 0.2333 and 0.3 being shares of 30,"""
ROUNDING = 6e-5
"""with four digits."""
RARE_REGULARITY = 0.001
"""How seldom evaluations are more regular than this by chance."""
SOLVED = 0.9
"""From this pass rate on, a run is finished, and low entropy and groups that are alike are no fault."""


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
        """What probably is behind it."""
        return FAULTS[self.name]["causes"]

    @property
    def remedy(self) -> str:
        """What to do."""
        return FAULTS[self.name]["remedy"]

    def line(self) -> str:
        """Return one line that says what happened."""
        steps = f"Step {self.first}" if self.first == self.last else f"Steps {self.first} to {self.last}"
        return f"{steps}: {self.name}: {self.evidence}. Likely: {self.causes}."


def find_faults(log: RunLog) -> list[LogFault]:
    """Return the faults of a log, the particular ones before what they lead to."""
    faults = {fault.name: fault for check in CHECKS for fault in check(log)}
    if "nothing_teaches" in faults:
        faults.pop("reward_blind", None)
    if faults.keys() & {"hidden_fall", "reward_scale"}:
        faults.pop("pass_rate_fall", None)
    if faults.keys() & {"reward_hacking", "by_heart"}:
        faults.pop("heldout_fall", None)
    return [faults[name] for name in FAULTS if name in faults]


def quality_of(log: RunLog) -> str:
    """Return the metric that says best how good completions are: the accuracy, else the reward."""
    names = {name for _, metrics in log.lines for name in metrics}
    return next((name for name in ("accuracy", "pass_rate", "reward") if name in names), "reward")


def move_of(log: RunLog, metric: str) -> Move | None:
    """Return how a metric moved over the run; None where it is not logged or too seldom."""
    return measure_move(*log.series(metric))


def improves(log: RunLog) -> bool:
    """Say whether completions become better over the run."""
    move = move_of(log, quality_of(log))
    return move is not None and move.is_up and move.change > 0.1 * max(abs(move.start), 0.1)


# --- what single steps show -------------------------------------------------------------------------------------------


def _not_finite(log: RunLog) -> Iterator[LogFault]:
    wrong = [(step, metrics) for step, metrics in log.lines if metrics.get("not_finite")]
    names = {
        name
        for _, metrics in wrong
        for name, value in metrics.items()
        if value is not None and not math.isfinite(value)
    }
    # In float16 the first steps look for the scale of the loss, and are left out.
    is_scaling = names == {"grad_norm"} and len(wrong) <= 3 and wrong[-1][0] <= log.lines[0][0] + 10
    if wrong and not (is_scaling and all(math.isinf(metrics["grad_norm"] or 0.0) for _, metrics in wrong)):
        text = f"{', '.join(sorted(names - {'not_finite'}))} NaN or infinite in {len(wrong)} steps"
        yield LogFault("not_finite", wrong[0][0], wrong[-1][0], text)


def _rate_zero(log: RunLog) -> Iterator[LogFault]:
    steps, rates = log.series("lr")
    least = max(3, min(STRETCH, math.ceil(0.6 * len(rates))))
    for first, last in _stretches([rate == 0.0 for rate in rates]):
        if last - first + 1 >= least and not log.is_rounded:
            text = f"the learning rate is 0 in {last - first + 1} of {len(rates)} steps"
            yield LogFault("rate_zero", steps[first], steps[last], text)
    # Others log a KL of 0 where they measure none.
    distances = log.series("kl")[1] if log.trainer == "TRL" and not log.is_rounded else []
    if len(distances) >= 2 * STRETCH and not any(distances) and any(log.series("grad_norm")[1]):
        text = (
            f"KL to the model that training began from is exactly 0 in {len(distances)} steps: the weights do not move"
        )
        yield LogFault("rate_zero", log.lines[0][0], log.lines[-1][0], text)


def _is_dead(metrics: Metrics) -> bool | None:
    """Say whether nothing can be learnt in a step; None where that is not known."""
    known = [
        zero >= 1.0 if (zero := metrics.get("zero_std")) is not None else None,
        spread == 0.0 if (spread := metrics.get("reward_std")) is not None else None,
        trained == 0.0 if (trained := metrics.get("trained_completions")) is not None else None,
    ]
    for low, high in (("advantage_min", "advantage_max"), ("reward_min", "reward_max")):
        edges = metrics.get(low), metrics.get(high)
        known.append(edges[0] == edges[1] if None not in edges else None)
    answers = [answer for answer in known if answer is not None]
    return any(answers) if answers else None


def _dead(log: RunLog) -> Iterator[LogFault]:
    """Runs in which no group teaches."""
    known = [(step, metrics, dead) for step, metrics in log.lines if (dead := _is_dead(metrics)) is not None]
    dead_steps = [dead for _, _, dead in known]
    for first, last in _stretches(dead_steps):
        length, others = last - first + 1, len(known) - (last - first + 1)
        values = [metrics.get("reward") for _, metrics, _ in known[first : last + 1]]
        rewards = [value for value in values if value is not None]
        rates = [rate for _, metrics, _ in known[first : last + 1] if (rate := metrics.get("pass_rate")) is not None]
        is_solved = float(np.median(rates or rewards or [0.0])) >= SOLVED and min(rewards, default=0.0) > 0
        if others == 0:
            is_fault = length >= DEAD or (length >= SHORT and len(set(rewards)) == 1 and rewards[0] != 0.0)
        else:
            least = SOLVED_STRETCH if is_solved and rates else STRETCH
            is_fault = length >= least and _is_beyond_chance(length, dead_steps)
        if is_fault:
            yield _dead_fault(known[first][0], known[last][0], length, rewards, rates)
            return


def _dead_fault(first: int, last: int, length: int, rewards: Sequence[float], rates: Sequence[float]) -> LogFault:
    middle = f", reward {float(np.median(rewards)):.3g}" if rewards else ""
    middle += f", accuracy {float(np.median(rates)):.3g}" if rates else ""
    text = f"no group teaches in {length} steps in a row{middle}: all completions of a group have the same reward"
    always = rates or rewards
    is_constant = bool(always) and min(always) == max(always) == 1.0
    return LogFault("reward_constant" if is_constant else "nothing_teaches", first, last, text)


def _constant(log: RunLog) -> Iterator[LogFault]:
    """Rewards that never change, where nothing says how they spread."""
    steps, rewards = log.series("reward")
    if any(_is_dead(metrics) is not None for _, metrics in log.lines):
        return
    for first, last in _stretches([False, *(a == b for a, b in pairwise(rewards))]):
        least = SOLVED_STRETCH if rewards[last] in (0.0, 1.0) else STRETCH
        is_same = [a == b for a, b in pairwise(rewards)]
        if last - first + 2 >= least and _is_beyond_chance(last - first + 1, is_same):
            text = f"the mean reward is {rewards[last]:.4g} in {last - first + 2} steps in a row"
            name = "nothing_teaches" if rewards[last] == 0.0 else "reward_constant"
            yield LogFault(name, steps[first - 1], steps[last], text)


def _no_gradient(log: RunLog) -> Iterator[LogFault]:
    known = [
        (step, norm == 0.0)
        for step, metrics in log.lines
        if (norm := metrics.get("grad_norm")) is not None and not _is_dead(metrics)
    ]
    least = max(SHORT, min(STRETCH, len(known)))
    is_zero = [zero for _, zero in known]
    for first, last in _stretches(is_zero):
        length = last - first + 1
        if length >= least and not log.is_rounded and _is_beyond_chance(length, is_zero):
            text = f"the gradient is exactly 0 in {last - first + 1} steps in a row"
            yield LogFault("no_gradient", known[first][0], known[last][0], text)


def _is_beyond_chance(length: int, flags: Sequence[bool]) -> bool:
    """Say whether chance hardly makes a stretch of this length, by how often the other steps are so."""
    others = len(flags) - length
    share = (sum(flags) - length + 1) / (others + 2)
    return others == 0 or len(flags) * share**length < RARE


def _stretches(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the first and the last index of each stretch of True, the longest first."""
    stretches: list[tuple[int, int]] = []
    for index, flag in enumerate(flags):
        if flag and stretches and stretches[-1][1] == index - 1:
            stretches[-1] = (stretches[-1][0], index)
        elif flag:
            stretches.append((index, index))
    return sorted(stretches, key=lambda stretch: stretch[0] - stretch[1])


# --- what comes again -------------------------------------------------------------------------------------------------


def _periodic(log: RunLog) -> Iterator[LogFault]:
    """Steps that are far off at a fixed distance, such as each one after a validation."""
    epoch_steps = _steps_per_epoch(log)
    for metric, direction in PERIODIC:
        steps, values = log.series(metric)
        if metric in SPIKED:
            # Steps in which nothing was learnt have a gradient of 0, beside which any other is a spike.
            steps = [step for step, value in zip(steps, values, strict=True) if value > 0]
            values = [value for value in values if value > 0]
        indexes = find_period(steps, values, direction, FEWEST_SPIKES if metric in SPIKED else FEWEST_HITS)
        usual = running_median(np.asarray(values)) if indexes else np.zeros(0)
        far = [index for index in indexes if _is_far(metric, values[index], usual[index])]
        if len(far) < max(FEWEST_HITS, 0.8 * len(indexes)):
            continue
        period = int(np.median(np.diff([steps[index] for index in indexes])))
        if period == epoch_steps:
            continue
        shown = f"{metric} is {np.median([values[i] for i in far]):.3g} (usual {np.median(usual):.3g})"
        text = f"{shown} at every {period} steps, {len(far)} times, from step {steps[far[0]]}"
        yield LogFault("periodic", steps[far[0]], steps[far[-1]], text)
        return


FEWEST_HITS, FEWEST_SPIKES = 3, 5
"""So many times at least a fault recurs; of metrics that spike without a period, more."""
SPIKED = ("grad_norm", "kl", "mismatch_kl", "mismatch_abs")
PERIODIC = (
    *(("accuracy", -1), ("pass_rate", -1), ("reward", -1), ("truncated", 1), ("length_mean", 1), ("length_mean", -1)),
    *(("grad_norm", 1), ("kl", 1), ("mismatch_kl", 1), ("mismatch_abs", 1), ("entropy", 1), ("entropy", -1)),
)
"""Metrics that may be off at a period, and the way that is wrong."""


def _is_far(metric: str, value: float, usual: float) -> bool:
    """Say whether an outlier matters."""
    if metric == "truncated":
        return value - usual > 0.3
    if metric in SPIKED:
        return value > 5.0 * usual
    return abs(value - usual) > 0.5 * abs(usual)


def _steps_per_epoch(log: RunLog) -> int | None:
    """Return how many steps an epoch has, where the log says so and has more than one."""
    steps, epochs = log.series("epoch")
    if len(steps) < 2 or epochs[-1] - epochs[0] < 1.0:
        return None
    return round((steps[-1] - steps[0]) / (epochs[-1] - epochs[0]))


def _resumed(log: RunLog) -> Iterator[LogFault]:
    start = log.lines[0][0] if log.lines else 0
    returns = [(left, back) for left, back in log.returns if back > start]
    if len(returns) > 1:
        text = f"the log goes back {len(returns)} times: " + ", ".join(f"{a} -> {b}" for a, b in returns[:5])
        yield LogFault("resumed", returns[0][1], max(left for left, _ in returns), text)


def _spikes(log: RunLog) -> Iterator[LogFault]:
    """Spikes of the gradient that stand apart, and a gradient that grows.

    Where steps of three times the usual gradient are more than those of ten times, it has a heavy tail and no spikes.
    """
    steps, norms = log.series("grad_norm")
    positive = [(step, norm) for step, norm in zip(steps, norms, strict=True) if norm > 0]
    if len(positive) < FEWEST_SPIKED:
        return
    logs = np.log([norm for _, norm in positive])
    above = logs - running_median(logs)
    indexes = [index for index in find_outliers([float(value) for value in logs], 1) if above[index] > math.log(10.0)]
    tail = int(np.sum(above > math.log(3.0))) - len(indexes)
    if (len(indexes) >= 3 and tail < len(indexes)) or any(above[index] > math.log(100.0) for index in indexes):
        tops = ", ".join(f"{positive[index][1]:.3g} at step {positive[index][0]}" for index in indexes[:4])
        text = f"{len(indexes)} steps have ten times the usual gradient or more: {tops}"
        yield LogFault("grad_norm", positive[indexes[0]][0], positive[indexes[-1]][0], text)
        return
    move = measure_move([step for step, _ in positive], [norm for _, norm in positive])
    if move is not None and move.is_up and move.end > 10.0 * move.start and not improves(log):
        yield LogFault("grad_norm", move.first, move.last, f"the gradient's norm grows, {move.text()}")


FEWEST_SPIKED = 12
"""With fewer steps a spike is not told."""


# --- what moves -------------------------------------------------------------------------------------------------------


def _scale(log: RunLog) -> Iterator[LogFault]:
    """A reward whose greatest value and mean, or deviation and mean, change by one factor at one step."""
    pairs = [("reward", "reward_max"), ("reward", "reward_std")]
    names = {name for _, metrics in log.lines for name in metrics}
    pairs += [(name, name.replace("term/", "term_std/")) for name in names if name.startswith("term/")]
    for metric, spread in pairs:
        both = [
            (step, mean, width)
            for step, metrics in log.lines
            if (mean := metrics.get(metric)) and (width := metrics.get(spread)) and mean > 0 and width > 0
        ]
        if len(both) < 4 * SHORT:
            continue
        means, widths = (np.log([values[index] for values in both]) for index in (1, 2))
        split, _ = change_point(widths)
        before, after = np.median(widths[:split]), np.median(widths[split:])
        factor = after - before
        near = min(4 * SHORT, split, len(both) - split)
        shift = np.median(means[split : split + near]) - np.median(means[split - near : split])
        lower, higher = (widths[:split], widths[split:]) if factor > 0 else (widths[split:], widths[:split])
        is_apart = near >= STRETCH and lower.max() < np.quantile(higher, 0.1)
        # What is learnt quickly moves both, too, but over some steps.
        at_once = np.median(widths[split : split + 3]) - np.median(widths[max(0, split - 3) : split])
        is_apart = is_apart and at_once / factor > 0.75
        if abs(factor) > math.log(1.7) and is_apart and abs(shift - factor) < 0.25:
            text = f"{spread} goes from {math.exp(before):.3g} to {math.exp(after):.3g} at step {both[split][0]}, and"
            text += f" the mean of {metric} by the same factor, {math.exp(factor):.2g}"
            yield LogFault("reward_scale", both[split][0], both[-1][0], text)
            return


def _accuracy_falls(log: RunLog) -> Iterator[LogFault]:
    """Accuracy or reward that slides down, behind a total reward that does not, or with it."""
    quality = quality_of(log)
    steps, values = log.series(quality)
    move = fall_from_peak(steps, values)
    heldout = move_of(log, "heldout_pass_rate")
    if move is None or not move.is_down or (heldout is not None and heldout.is_up):
        return
    fall, scale = -move.change, max(abs(move.start), 0.2 if quality == "reward" else 0.05)
    first = steps.index(move.first)
    slides = gradual_fall(values[first:]) > 0.5 * fall
    is_gone = move.start > 0.0 and move.end < 0.2 * move.start
    total = None
    if quality != "reward":
        points = [(step, value) for step, value in zip(*log.series("reward"), strict=True) if step >= move.first]
        total = measure_move([step for step, _ in points], [value for _, value in points])
    is_hidden = total is not None and total.change > -0.25 * fall
    if is_hidden and total is not None and fall > 0.2 * scale and fall > 0.05 and (slides or is_gone):
        text = f"{log.columns.get(quality, quality)} {move.text()}, while the reward goes {total.text()}"
        yield LogFault("hidden_fall", move.first, move.last, text)
    elif fall > 0.5 * scale and (slides or is_gone):
        yield LogFault("pass_rate_fall", move.first, move.last, f"{log.columns.get(quality, quality)} {move.text()}")


def step_down(log: RunLog) -> str | None:
    """Return a line on a metric that steps down at once and stays lower, which no fault names; None where none does."""
    quality = quality_of(log)
    steps, values = log.series(quality)
    move = fall_from_peak(steps, values)
    if move is None or not move.is_down or -move.change < max(0.25 * abs(move.start), 0.05):
        return None
    return (
        f"{log.columns.get(quality, quality)} steps down, {move.text()}: harder problems do that; where there are "
        f"none, look at completions before and after step {move.jump}."
    )


def _blind(log: RunLog) -> Iterator[LogFault]:
    """Hardly any right answer, no rise, and a reward all the same."""
    accuracy, reward = move_of(log, "accuracy"), move_of(log, "reward")
    values = log.series("accuracy")[1]
    if accuracy is None or reward is None or len(values) < 2 * STRETCH:
        return
    level = float(np.mean(values))
    highest_rise = accuracy.slope_high * (accuracy.last - accuracy.first)
    is_flat = not accuracy.is_up and highest_rise < 0.5 * level + 0.015
    if level <= 0.05 and is_flat and reward.end > max(0.3, 10.0 * level) and not reward.is_down:
        text = f"accuracy ({log.columns['accuracy']}) is {level:.3g} throughout, the reward {reward.text()}"
        yield LogFault("reward_blind", accuracy.first, accuracy.last, text)


def _heldout(log: RunLog) -> Iterator[LogFault]:
    """Held-out accuracy that falls, alone or while the training reward rises."""
    steps, values = log.series("heldout_pass_rate")
    if len(values) < FEWEST_EVALUATIONS:
        return
    peak = int(np.argmax(values))
    end = float(np.mean(values[-max(1, (len(values) - peak) // 3) :]))
    fall, chance = values[peak] - end, chance_of_fall(values)
    if fall < max(0.03, 0.1 * values[peak]) or peak == len(values) - 1:
        return
    column = log.columns.get("heldout_pass_rate", "heldout_pass_rate")
    text = (
        f"{column} {values[peak]:.3g} at step {steps[peak]} -> {end:.3g} at step {steps[-1]} (by chance: {chance:.1g})"
    )
    is_large = fall > max(0.08, 0.2 * values[peak])
    if chance < (BESIDE if is_large else ALONE) and improves(log):
        move = move_of(log, quality_of(log))
        rise = "" if move is None else f", while {quality_of(log)} goes {move.text()}"
        name = "by_heart" if _climbs_with_epochs(log) else "reward_hacking"
        _, epochs = log.series("epoch")
        if name == "reward_hacking" and epochs and epochs[-1] - epochs[0] >= 1.5:
            rise += f"; the same data was repeated, {epochs[-1] - epochs[0]:.3g} epochs"
        yield LogFault(name, steps[peak], steps[-1], text + rise)
    elif chance < ALONE and fall > 0.05:
        yield LogFault("heldout_fall", steps[peak], steps[-1], text)


def chance_of_fall(values: Sequence[float]) -> float:
    """Return how likely noise alone makes the fall of a few evaluations: the best of a line from the peak on and of all
    splits into a before and an after, each with Student's t, times the number of looks."""
    count, series = len(values), np.asarray(values)
    usual = _usual_error(values)
    chances = [1.0]
    peak = int(np.argmax(series))
    rest = series[peak:]
    if len(rest) >= 4:
        line = linregress(np.arange(len(rest)), rest)
        residual = rest - (line.intercept + line.slope * np.arange(len(rest)))
        deviation = _deviation(float(np.dot(residual, residual)), len(rest) - 2, usual)
        spread = math.sqrt(float(np.sum((np.arange(len(rest)) - (len(rest) - 1) / 2) ** 2)))
        chances.append(len(rest) * float(student.sf(-line.slope * spread / deviation, len(rest) - 2)))
    for split in range(2, count - 1):
        before, after = series[:split], series[split:]
        squares = float(np.sum((before - before.mean()) ** 2) + np.sum((after - after.mean()) ** 2))
        error = _deviation(squares, count - 2, usual) * math.sqrt(1 / split + 1 / (count - split))
        chances.append(count * float(student.sf((before.mean() - after.mean()) / error, count - 2)))
    return min(chances)


def _deviation(squares: float, freedom: int, usual: float) -> float:
    """Return the deviation of evaluations, at least the one that is usual for their number of problems.

    Values so regular that their problems can not be so few are taken as they are.
    """
    is_likely = float(chi2.cdf(squares / usual**2, freedom)) > RARE_REGULARITY
    return max(math.sqrt(squares / freedom), usual if is_likely else LEAST_ERROR)


def _usual_error(values: Sequence[float]) -> float:
    """Return the standard error of an evaluation: that of its problems, where all values are shares of so few that they
    can be told from them."""
    level = min(max(float(np.mean(values)), 0.02), 0.98)
    for problems in range(2, MOST_PROBLEMS):
        if all(abs(value * problems - round(value * problems)) < ROUNDING * problems for value in values):
            return max(math.sqrt(level * (1.0 - level) / problems), LEAST_ERROR)
    return LEAST_ERROR


def _climbs_with_epochs(log: RunLog) -> bool:
    """Say whether most of the rise comes between the end of an epoch and the start of the next one."""
    per_epoch = _steps_per_epoch(log)
    values = log.series(quality_of(log))[1]
    if per_epoch is None or per_epoch < 6 or len(values) < 2 * per_epoch:
        return False
    epochs = [values[start : start + per_epoch] for start in range(0, len(values) - per_epoch // 2, per_epoch)]
    third = per_epoch // 3
    jumps = sum(float(np.mean(after[:third]) - np.mean(before[-third:])) for before, after in pairwise(epochs))
    rise = float(np.mean(epochs[-1]) - np.mean(epochs[0]))
    return rise > 0 and jumps > 0.6 * rise


def _reward_jumps(log: RunLog) -> Iterator[LogFault]:
    """A reward that jumps while responses change at once, with nothing held out that would say why."""
    quality = quality_of(log)
    move = move_of(log, quality)
    if move is None or move.jump_errors < 8.0 or _known(log, "heldout_pass_rate"):
        return
    before, after = _around(log, quality, move.jump)
    if after - before < max(0.2, 0.5 * abs(before)) or (quality == "accuracy" and after < SOLVED):
        return
    changed = []
    for metric, least, most in (("length_mean", 0.5, 2.0), ("kl", 0.0, 5.0), ("reward_std", 0.34, math.inf)):
        if (levels := _around(log, metric, move.jump)) != (0.0, 0.0) and levels[0] > 0:
            ratio = levels[1] / levels[0]
            if ratio < least or ratio > most:
                changed.append(f"{metric} {levels[0]:.3g} -> {levels[1]:.3g}")
    if len(changed) >= 2:
        text = f"{quality} jumps from {before:.3g} to {after:.3g} at step {move.jump}, and with it {', '.join(changed)}"
        yield LogFault("reward_hacking", move.jump, move.last, text)


def _known(log: RunLog, metric: str) -> bool:
    return bool(log.series(metric)[0])


def _around(log: RunLog, metric: str, step: int) -> tuple[float, float]:
    """Return the level of a metric in the ten steps before the five around a step, and in the ten after them."""
    steps, values = log.series(metric)
    before = [value for s, value in zip(steps, values, strict=True) if step - 13 <= s < step - 3]
    after = [value for s, value in zip(steps, values, strict=True) if step + 3 <= s < step + 13]
    return (float(np.median(before)), float(np.median(after))) if before and after else (0.0, 0.0)


def _lengths(log: RunLog) -> Iterator[LogFault]:
    """Completions that are cut, grow or collapse."""
    cut, length = move_of(log, "truncated"), move_of(log, "length_mean")
    shares = log.series("truncated")[1]
    better = improves(log)
    rise = 0.0 if cut is None or not cut.is_up else cut.change
    if cut is not None and ((rise > 0.2 and cut.end > 0.3) or (rise > 0.12 and not better)):
        yield LogFault("truncation", cut.first, cut.last, f"the share that is cut at the limit goes {cut.text()}")
    elif len(shares) >= SHORT and np.median(shares) > 0.6 and np.median(shares[-SHORT:]) > 0.6:
        steps = log.series("truncated")[0]
        text = f"{np.median(shares):.0%} of the completions are cut at the limit, from the first steps on"
        yield LogFault("truncation", steps[0], steps[-1], text)
    if length is None or (better and length.end > 0.15 * length.start):
        return
    if length.is_up and length.end > (1.5 if rise > 0.1 else 2.0) * length.start:
        yield LogFault(
            "length_up", length.first, length.last, f"length grows, {length.text()}, and the reward does not"
        )
    if length.is_down and length.end < 0.35 * length.start:
        yield LogFault("length_down", length.first, length.last, f"length shrinks, {length.text()}")


def _entropy(log: RunLog) -> Iterator[LogFault]:
    move = move_of(log, "entropy")
    if move is None:
        return
    if move.is_up and move.end > 3.0 * move.start and move.change > 0.5:
        yield LogFault("entropy_up", move.first, move.last, f"entropy goes {move.text()}")
    rate = move_of(log, "pass_rate")
    is_finished = rate is not None and rate.end >= SOLVED
    steps, values = log.series(quality_of(log))
    late = measure_move(steps[len(steps) // 2 :], values[len(values) // 2 :])
    still_learns = late is not None and late.is_up
    is_usual = (is_finished or still_learns) and move.end > 0.03 * move.start
    if move.is_down and move.end < 0.15 * move.start and move.end < 0.1 and not is_usual:
        yield LogFault("entropy_collapse", move.first, move.last, f"entropy goes {move.text()}")


def _teaching(log: RunLog) -> Iterator[LogFault]:
    steps, shares = log.series("zero_std")
    move = measure_move(steps, shares)
    if move is None or not move.is_up:
        return
    late = float(np.mean(shares[-max(SHORT, len(shares) // 8) :]))
    early = float(np.mean(shares[: max(SHORT, len(shares) // 8)]))
    rate = move_of(log, "pass_rate")
    least = 0.97 if rate is not None and rate.end >= SOLVED else 0.9
    if late >= least and early < 0.75:
        text = f"the share of groups that teach nothing goes {move.text()}, {late:.2f} in the last steps"
        yield LogFault("teaching_fall", move.first, move.last, text)


GROWTH = (
    ("kl", "kl", 0.5, 20.0),
    ("mismatch", "mismatch_kl", 0.02, 8.0),
    ("mismatch", "mismatch_abs", 0.15, 4.0),
    ("clip_share", "clip_share", 0.1, 8.0),
    ("clip_share", "update_kl", 0.05, 10.0),
)
"""Faults of metrics that grow: the level that is wrong, and how many times the start's."""


def _growth(log: RunLog) -> Iterator[LogFault]:
    for name, metric, level, ratio in reversed(GROWTH):
        move = move_of(log, metric)
        if move is not None and move.is_up and move.end > max(level, ratio * move.start):
            yield LogFault(name, move.first, move.last, f"{log.columns.get(metric, metric)} goes {move.text()}")


def _errors(log: RunLog) -> Iterator[LogFault]:
    steps, shares = log.series("errors")
    if len(shares) >= SHORT and (late := float(np.median(shares[-SHORT:]))) > 0.3:
        yield LogFault("unjudged", steps[0], steps[-1], f"{late:.0%} of the last rollouts end in an error")


CHECKS: tuple[Callable[[RunLog], Iterator[LogFault]], ...] = (
    *(_not_finite, _rate_zero, _dead, _constant, _no_gradient, _periodic, _resumed, _spikes, _scale, _accuracy_falls),
    *(_blind, _heldout, _reward_jumps, _lengths, _entropy, _teaching, _growth, _errors),
)
