"""Finds faults of metrics that rise, fall or jump over a run. Only large moves beyond noise are faults.

    Steps 8 to 60: hidden_fall: accuracy 0.4 -> 0.16, while the reward goes 0.89 -> 0.99. Likely: ...

Accuracy that falls suddenly and rises again is not a fault, because harder problems cause such a fall.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np

from truegold.train.guards.run_log import RunLog, improves, move_of, quality_of, steps_per_epoch
from truegold.train.guards.table import LogFault
from truegold.train.guards.trends import ERRORS, Floats, change_point, fall_from_peak, gradual_fall, measure_move, noise

SHORT = 5
"""The smallest number of steps over which a metric's level is taken. A dead step has no advantages. If the mean reward
of a run never changes, this number of dead steps is a fault."""
STRETCH = 10
"""The smallest number of consecutive dead steps that is a fault if the run also has other steps, and chance is
unlikely."""
SOLVED = 0.9
"""A run with at least this pass rate counts as finished. Low entropy and equal rewards in groups are then normal."""
FEWEST_EVALUATIONS = 4
"""The smallest number of evaluations in which a fall is looked for."""
ALONE, BESIDE = 0.003, 0.02
"""A fall of the held-out accuracy is a fault if noise alone causes such a fall with a probability below the first
value. For a large fall while the reward rises, the second value is the bound."""
LEAST_ERROR = 0.01
"""The smallest standard error of an evaluation, even if its values hardly vary."""
MOST_PROBLEMS = 200
"""The number of problems is guessed from the values of an evaluation: 0.2333 and 0.3 -> 30. This is the largest
guess."""
ROUNDING = 6e-5
"""The rounding error of an evaluation's values, which have four digits."""
RARE_REGULARITY = 0.001
"""A guessed number of problems implies a variation of evaluations. If so little variation is less probable than this,
the guess is rejected."""


def _scale(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for a changed scale of the reward.

    The reward's mean, and its maximum or its deviation, change by the same factor at one step.
    """
    pairs = [("reward", "reward_max"), ("reward", "reward_std")]
    names = {name for _, metrics in log.lines for name in metrics}
    pairs += [(name, name.replace("term/", "term_std/")) for name in names if name.startswith("term/")]
    for metric, spread in pairs:
        both = [
            (step, mean, width)
            for step, metrics in log.lines
            if (mean := metrics.get(metric))
            and (width := metrics.get(spread))
            and 0 < mean < math.inf
            and 0 < width < math.inf
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
        # Fast learning also changes both, but over several steps.
        at_once = np.median(widths[split : split + 3]) - np.median(widths[max(0, split - 3) : split])
        is_apart = is_apart and at_once / factor > 0.75
        if abs(factor) > math.log(1.7) and is_apart and abs(shift - factor) < 0.25:
            text = f"{spread} goes from {math.exp(before):.3g} to {math.exp(after):.3g} at step {both[split][0]}, and"
            text += f" the mean of {metric} by the same factor, {math.exp(factor):.2g}"
            yield LogFault("reward_scale", both[split][0], both[-1][0], text)
            return


def _restarted(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for a run that loaded the base model's weights again in the middle.

    Accuracy falls at one step to its first values and rises again as at the start. Harder problems may look the same.
    So one of these signs must be there, too:

    - the held-out accuracy or the KL return to their first values
    - the log goes back at this step
    - both entropy and length return
    """
    quality = quality_of(log)
    steps, values = log.series(quality)
    split, is_single = _repeated_start(steps, values, {back for _, back in log.returns})
    if split is None:
        return
    step, width = steps[split], _width(values)
    kl, heldout = _returns(log, "kl", step), _heldout_returns(log, step)
    others = [metric for metric in ("entropy", "length_mean") if _returns(log, metric, step)]
    is_resumed = any(back == step for _, back in log.returns)
    is_likely = len(others) == 2 and is_single and not _begins_epoch(log, step)
    if kl is False or heldout is False or not (kl or heldout or is_resumed or is_likely):
        return
    before, after = np.median(values[split - width : split]), np.median(values[split : split + width])
    returned = [name for name, back in (("kl", kl), ("heldout_pass_rate", heldout)) if back] + others
    text = f"{log.columns.get(quality, quality)} falls from {before:.3g} to its first level {after:.3g} at step {step},"
    text += " and rises again as from the first step" + (f"; so do {', '.join(returned)}" if returned else "")
    text += "; the log goes back there" if is_resumed else ""
    yield LogFault("restarted", step, log.lines[-1][0], text)


REPEATED = 0.75
"""If the run has started again, a metric loses at least this share of its rise at one step."""


def _width(values: Sequence[float]) -> int:
    """Return the number of steps over which the level of a metric is taken."""
    return max(SHORT, len(values) // 16)


def _error(values: Sequence[float]) -> float:
    """Return the standard error of the difference of two levels of a metric."""
    return noise(np.asarray(values)) * math.sqrt(math.pi / _width(values))


def _repeated_start(steps: Sequence[int], values: Sequence[float], returns: Collection[int]) -> tuple[int | None, bool]:
    """Return the index at which a metric falls to its first level and then repeats its first steps, or None.

    The second value is whether this is its only such fall.

    returns: steps at which the log goes back. They are tried first.
    """
    series, width = np.asarray(values), _width(values)
    splits = range(2 * SHORT, len(series) - width + 1)
    if len(series) < 4 * SHORT or len(splits) == 0:
        return None, False
    falls = {split: _level(series, split - width, width) - _level(series, split, width) for split in splits}
    split = max(splits, key=lambda index: (steps[index] in returns, falls[index]))
    if steps[split] not in returns:
        near = [index for index in splits if abs(index - split) <= SHORT]
        split = max(near, key=lambda index: _level(series, index - 3, 3) - _level(series, index, 3))
    first = _level(series, 0, width)
    rise, error = _level(series, split - width, width) - first, _error(values)
    if rise < max(ERRORS * error, 0.15 * abs(first), 0.05) or falls[split] < REPEATED * rise:
        return None, False
    windows = range(0, min(split, len(series) - split) - width + 1, width)
    apart = [_level(series, split + start, width) - _level(series, start, width) for start in windows]
    is_alike = abs(float(np.mean(apart))) < 0.25 * rise and max(map(abs, apart)) < max(0.4 * rise, ERRORS * error)
    is_single = all(fall < REPEATED * rise for index, fall in falls.items() if abs(index - split) > 2 * width)
    return (split if is_alike else None), is_single


def _level(series: Floats, start: int, width: int) -> float:
    """Return the median of `width` values from `start` on."""
    return float(np.median(series[max(start, 0) : start + width]))


def _returns(log: RunLog, metric: str, step: int) -> bool | None:
    """Return whether a metric returns to its first level at a step, or None if it had not moved before."""
    steps, values = log.series(metric)
    split, width, series = bisect_left(steps, step), _width(values), np.asarray(values)
    if split < 2 * SHORT or len(values) - split < SHORT:
        return None
    first, before, after = (_level(series, start, width) for start in (0, split - width, split))
    moved = before - first
    if abs(moved) < max(ERRORS * _error(values), 0.1 * abs(first)):
        return None
    return abs(after - first) < 0.35 * abs(moved)


def _heldout_returns(log: RunLog, step: int) -> bool | None:
    """Return whether the held-out accuracy returns to its first value in the first evaluation after a step. Return None
    if that cannot be told."""
    steps, values = log.series("heldout_pass_rate")
    split = bisect_left(steps, step)
    if split < 2 or split == len(values):
        return None
    moved = float(np.mean(values[split - 2 : split])) - values[0]
    least = max(0.05, 2.5 * _usual_error(values))
    if moved < least:
        return None
    # A return by less than half of a small rise may be noise.
    if values[split] - values[0] < 0.5 * moved:
        return True
    return None if moved < 2.0 * least else False


def _begins_epoch(log: RunLog, step: int) -> bool:
    """Return whether an epoch begins within 2 steps of this step. If so, sorted data may explain a repeated curve."""
    steps, epochs = log.series("epoch")
    near = [epoch for logged, epoch in zip(steps, epochs, strict=True) if abs(logged - step) <= 2]
    return bool(near) and math.floor(near[0]) != math.floor(near[-1])


def _accuracy_falls(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for accuracy that falls: `hidden_fall` if the reward does not fall too, else `pass_rate_fall`."""
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
    """Return a note on accuracy that falls at one step and stays lower, or None. Such a fall is not a fault."""
    quality = quality_of(log)
    steps, values = log.series(quality)
    move = fall_from_peak(steps, values)
    if move is None or not move.is_down or -move.change < max(0.25 * abs(move.start), 0.05):
        return None
    return (
        f"{log.columns.get(quality, quality)} falls at one step, {move.text()}: if the problems did not become harder "
        f"there, look at completions before and after step {move.jump}."
    )


def _blind(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for a high reward although almost no answer is right and accuracy does not rise."""
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
    """Yield a fault for a held-out accuracy that falls. Its name depends on whether the training reward rises."""
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
    """Return the probability that noise alone causes the fall of a few evaluations.

    It is the lowest p-value of Student's t-tests for a falling line from the peak on, and for all splits into an
    earlier and a later level. Each p-value is multiplied by the number of tests (Bonferroni).
    """
    from scipy.stats import linregress
    from scipy.stats import t as student

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
    """Return the standard deviation of evaluations, at least `usual`. `usual` is the error for the guessed number of
    problems. If the values are too regular for this number, the lower bound is `LEAST_ERROR`. squares: the sum of
    squared residuals. freedom: their degrees of freedom."""
    from scipy.stats import chi2

    is_likely = float(chi2.cdf(squares / usual**2, freedom)) > RARE_REGULARITY
    return max(math.sqrt(squares / freedom), usual if is_likely else LEAST_ERROR)


def _usual_error(values: Sequence[float]) -> float:
    """Return the standard error of an evaluation with the guessed number of problems.

    It is `LEAST_ERROR` if the values are not shares of a small number of problems.
    """
    level = min(max(float(np.mean(values)), 0.02), 0.98)
    for problems in range(2, MOST_PROBLEMS):
        if all(abs(value * problems - round(value * problems)) < ROUNDING * problems for value in values):
            return max(math.sqrt(level * (1.0 - level) / problems), LEAST_ERROR)
    return LEAST_ERROR


def _climbs_with_epochs(log: RunLog) -> bool:
    """Return whether most of the rise happens between the end of an epoch and the start of the next one."""
    per_epoch = steps_per_epoch(log)
    values = log.series(quality_of(log))[1]
    if per_epoch is None or per_epoch < 6 or len(values) < 2 * per_epoch:
        return False
    epochs = [values[start : start + per_epoch] for start in range(0, len(values) - per_epoch // 2, per_epoch)]
    third = per_epoch // 3
    jumps = sum(float(np.mean(after[:third]) - np.mean(before[-third:])) for before, after in pairwise(epochs))
    rise = float(np.mean(epochs[-1]) - np.mean(epochs[0]))
    return rise > 0 and jumps > 0.6 * rise


def _reward_jumps(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for a reward that jumps at one step together with other metrics, if there are no held-out
    evaluations."""
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
    """Return the level of a metric before and after a step: in the steps from -13 to -4, and from +3 to +12."""
    steps, values = log.series(metric)
    before = [value for s, value in zip(steps, values, strict=True) if step - 13 <= s < step - 3]
    after = [value for s, value in zip(steps, values, strict=True) if step + 3 <= s < step + 13]
    return (float(np.median(before)), float(np.median(after))) if before and after else (0.0, 0.0)


def _lengths(log: RunLog) -> Iterator[LogFault]:
    """Yield faults for completions that are cut at the limit, or become much longer or shorter."""
    cut, length = move_of(log, "truncated"), move_of(log, "length_mean")
    shares = log.series("truncated")[1]
    better = improves(log)
    rise = 0.0 if cut is None or not cut.is_up else cut.change
    if cut is not None and ((rise > 0.2 and cut.end > 0.3) or (rise > 0.12 and not better)):
        yield LogFault("truncation", cut.first, cut.last, f"the share of cut completions goes {cut.text()}")
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
    """Yield a fault for a share of groups without advantages that rises to almost 1."""
    steps, shares = log.series("zero_std")
    move = measure_move(steps, shares)
    if move is None or not move.is_up:
        return
    late = float(np.mean(shares[-max(SHORT, len(shares) // 8) :]))
    early = float(np.mean(shares[: max(SHORT, len(shares) // 8)]))
    rate = move_of(log, "pass_rate")
    least = 0.97 if rate is not None and rate.end >= SOLVED else 0.9
    if late >= least and early < 0.75:
        text = f"the share of groups without advantages goes {move.text()}, {late:.2f} in the last steps"
        yield LogFault("teaching_fall", move.first, move.last, text)


GROWTH = (
    ("kl", "kl", 0.5, 20.0),
    ("mismatch", "mismatch_kl", 0.02, 8.0),
    ("mismatch", "mismatch_abs", 0.15, 4.0),
    ("clip_share", "clip_share", 0.1, 8.0),
    ("clip_share", "update_kl", 0.05, 10.0),
)
"""Faults of metrics that grow: the fault, the metric, and two bounds for the metric's end. The first bound is a level,
the second a multiple of the metric's start."""


def _growth(log: RunLog) -> Iterator[LogFault]:
    """Yield faults for metrics that grow beyond both bounds of `GROWTH`."""
    for name, metric, level, ratio in reversed(GROWTH):
        move = move_of(log, metric)
        if move is not None and move.is_up and move.end > max(level, ratio * move.start):
            yield LogFault(name, move.first, move.last, f"{log.columns.get(metric, metric)} goes {move.text()}")


def _errors(log: RunLog) -> Iterator[LogFault]:
    steps, shares = log.series("errors")
    if len(shares) >= SHORT and (late := float(np.median(shares[-SHORT:]))) > 0.3:
        yield LogFault("unjudged", steps[0], steps[-1], f"{late:.0%} of the last rollouts end in an error")


MOVE_CHECKS: tuple[Callable[[RunLog], Iterator[LogFault]], ...] = (
    *(
        _scale,
        _restarted,
        _accuracy_falls,
        _blind,
        _heldout,
        _reward_jumps,
        _lengths,
        _entropy,
        _teaching,
        _growth,
        _errors,
    ),
)
