"""Search for faults in the log of a finished run of any trainer. A fault has a name, steps, evidence and a remedy.

    for fault in find_faults(read_log(path)):
        print(fault.line())

    Steps 11 to 71: periodic: reward is 0 (usual 0.47) at every 10 steps, 7 times, from step 11. Likely: ...

To avoid false alarms, a move of a metric counts only if it is both beyond noise (`trends.py`) and large. The causes and
remedies are in `log_faults.toml`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from truegold.train.guards.move_faults import MOVE_CHECKS, SHORT, SOLVED, STRETCH
from truegold.train.guards.run_log import Metrics, RunLog, improves, steps_per_epoch
from truegold.train.guards.table import FAULTS, LogFault
from truegold.train.guards.trends import find_outliers, find_period, measure_move, running_median

NEEDS_RATE = ("hidden_fall", "reward_blind")
"""Faults that can only be found if the log has an accuracy in addition to the reward."""

DEAD = 8
"""A step is dead if no group has advantages. If all steps of a run are dead, this number of steps or more is a
fault."""
SOLVED_STRETCH = 20
"""The smallest number of consecutive dead steps that is a fault if nearly all completions are right."""
RARE = 1e-3
"""Equal steps in a row are reported only if their probability by chance is below this number."""


def find_faults(log: RunLog) -> list[LogFault]:
    """Return the faults of a log, in the order of `FAULTS`. Faults that follow from another fault are left out."""
    faults = {fault.name: fault for check in CHECKS for fault in check(log)}
    if "nothing_teaches" in faults:
        faults.pop("reward_blind", None)
    if faults.keys() & {"hidden_fall", "reward_scale"}:
        faults.pop("pass_rate_fall", None)
    if "restarted" in faults:
        for name in ("pass_rate_fall", "heldout_fall", "reward_hacking"):
            faults.pop(name, None)
    if faults.keys() & {"reward_hacking", "by_heart"}:
        faults.pop("heldout_fall", None)
    return [faults[name] for name in FAULTS if name in faults]


# --- faults in single steps -------------------------------------------------------------------------------------------


def _not_finite(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for metrics that are NaN or infinite."""
    wrong = [(step, metrics) for step, metrics in log.lines if metrics.get("not_finite")]
    names = {
        name
        for _, metrics in wrong
        for name, value in metrics.items()
        if value is not None and not math.isfinite(value)
    }
    # Infinite gradients in the first steps are normal with float16, because loss scaling searches its factor.
    is_scaling = names == {"grad_norm"} and len(wrong) <= 3 and wrong[-1][0] <= log.lines[0][0] + 10
    if wrong and not (is_scaling and all(math.isinf(metrics["grad_norm"] or 0.0) for _, metrics in wrong)):
        text = f"{', '.join(sorted(names - {'not_finite'}))} NaN or infinite in {len(wrong)} steps"
        yield LogFault("not_finite", wrong[0][0], wrong[-1][0], text)


def _rate_zero(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for a learning rate of 0, or for weights that do not move."""
    steps, rates = log.series("lr")
    least = max(3, min(STRETCH, math.ceil(0.6 * len(rates))))
    # A single step is not a fault: a cyclic schedule is 0 at the end of each cycle.
    first, last = next(iter(_stretches([rate == 0.0 for rate in rates])), (0, -1))
    if last - first + 1 >= least and not log.is_rounded:
        text = f"the learning rate is 0 in {last - first + 1} steps in a row, {rates.count(0.0)} of {len(rates)} in all"
        yield LogFault("rate_zero", steps[first], steps[last], text)
    # Only TRL logs a KL of 0 as a measurement. Others log 0 without measuring it.
    distances = log.series("kl")[1] if log.trainer == "TRL" and not log.is_rounded else []
    if len(distances) >= 2 * STRETCH and not any(distances) and any(log.series("grad_norm")[1]):
        text = (
            f"KL to the model that training began from is exactly 0 in {len(distances)} steps: the weights do not move"
        )
        yield LogFault("rate_zero", log.lines[0][0], log.lines[-1][0], text)


def _is_dead(metrics: Metrics) -> bool | None:
    """Return whether no group of a step has advantages, or None if the log does not show it."""
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
    """Yield a fault for consecutive steps in which no group has advantages."""
    known = [(step, metrics, dead) for step, metrics in log.lines if (dead := _is_dead(metrics)) is not None]
    dead_steps = [dead for _, _, dead in known]
    for first, last in _stretches(dead_steps):
        length, others = last - first + 1, len(known) - (last - first + 1)
        values = [metrics.get("reward") for _, metrics, _ in known[first : last + 1]]
        rewards = [value for value in values if value is not None and math.isfinite(value)]
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
    text = (
        f"no group has advantages in {length} steps in a row{middle}: all completions of a group have the same reward"
    )
    always = rates or rewards
    is_constant = bool(always) and min(always) == max(always) == 1.0
    return LogFault("reward_constant" if is_constant else "nothing_teaches", first, last, text)


def _constant(log: RunLog) -> Iterator[LogFault]:
    """Yield faults for a mean reward that does not change, if the log has no spread of rewards."""
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
    """Yield faults for gradients of exactly 0 in steps with advantages."""
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
    """Return whether `length` consecutive flags are unlikely by chance. Chance is estimated from the other flags."""
    others = len(flags) - length
    share = (sum(flags) - length + 1) / (others + 2)
    return others == 0 or len(flags) * share**length < RARE


def _stretches(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the first and the last index of each unbroken series of True, the longest series first."""
    stretches: list[tuple[int, int]] = []
    for index, flag in enumerate(flags):
        if flag and stretches and stretches[-1][1] == index - 1:
            stretches[-1] = (stretches[-1][0], index)
        elif flag:
            stretches.append((index, index))
    return sorted(stretches, key=lambda stretch: stretch[0] - stretch[1])


# --- faults that recur ------------------------------------------------------------------------------------------------


def _periodic(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for outliers at a fixed period, for example in each step after a validation."""
    epoch_steps = steps_per_epoch(log)
    for metric, direction in PERIODIC:
        steps, values = log.series(metric)
        if metric in SPIKED:
            # Gradients of 0 are left out. Every other gradient is a spike compared with them.
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
"""The least numbers of outliers that make a period: 3, or 5 for metrics in `SPIKED`."""
SPIKED = ("grad_norm", "kl", "mismatch_kl", "mismatch_abs")
"""Metrics that also have outliers without a period."""
PERIODIC = (
    *(("accuracy", -1), ("pass_rate", -1), ("reward", -1), ("truncated", 1), ("length_mean", 1), ("length_mean", -1)),
    *(("grad_norm", 1), ("kl", 1), ("mismatch_kl", 1), ("mismatch_abs", 1), ("entropy", 1), ("entropy", -1)),
)
"""Metrics that are searched for periodic outliers, and the direction of outliers: 1 up, -1 down."""


def _is_far(metric: str, value: float, usual: float) -> bool:
    """Return whether an outlier is large enough to be reported."""
    if metric == "truncated":
        return value - usual > 0.3
    if metric in SPIKED:
        return value > 5.0 * usual
    return abs(value - usual) > 0.5 * abs(usual)


def _resumed(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for a log that goes back to earlier steps more than once."""
    start = log.lines[0][0] if log.lines else 0
    returns = [(left, back) for left, back in log.returns if back > start]
    if len(returns) > 1:
        text = f"the log goes back {len(returns)} times: " + ", ".join(f"{a} -> {b}" for a, b in returns[:5])
        yield LogFault("resumed", returns[0][1], max(left for left, _ in returns), text)


def _spikes(log: RunLog) -> Iterator[LogFault]:
    """Yield a fault for isolated spikes of the gradient norm, or for a gradient norm that grows. A spike is a step with
    at least ten times the usual norm. A norm with a heavy tail is not a fault. It has more steps with three to ten
    times the usual norm than spikes."""
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
"""The smallest number of steps in which spikes are looked for."""


# All checks of a log.
CHECKS: tuple[Callable[[RunLog], Iterator[LogFault]], ...] = (
    *(_not_finite, _rate_zero, _dead, _constant, _no_gradient, _periodic, _resumed, _spikes, *MOVE_CHECKS),
)
