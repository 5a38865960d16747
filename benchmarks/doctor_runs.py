"""Simulated trainings for the benchmark of the doctor: clean runs and runs with a fault, as metrics by neutral names.

A step draws prompts with pass rates from a Beta distribution, most of them easy or hard, and groups of completions of
these prompts. All metrics are computed from these completions, so that they have the noise of 4 to 128 prompts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Row = dict[str, float]
Curve = Callable[[float], float]
Floats = npt.NDArray[np.float64]
BATCHES = (4, 8, 16, 32, 64, 128)
GROUP = 8


def rise(low: float, high: float, quickness: float = 3.0) -> Curve:
    """A learning curve over the share of the run that is done."""
    return lambda done: (
        low + (high - low) * (1.0 - float(np.exp(-quickness * done))) / (1.0 - float(np.exp(-quickness)))
    )


def flat(level: float) -> Curve:
    """No change."""
    return lambda done: level


def line(low: float, high: float, begin: float = 0.0, end: float = 1.0) -> Curve:
    """A straight move between two shares of the run."""
    return lambda done: low + (high - low) * min(1.0, max(0.0, (done - begin) / (end - begin)))


def stairs(*levels: float, growth: float = 0.1) -> Curve:
    """A curriculum: each stage begins at its level and gains `growth`."""
    return lambda done: levels[min(int(done * len(levels)), len(levels) - 1)] + growth * (done * len(levels) % 1.0)


@dataclass
class Run:
    """Curves and settings of one simulated run."""

    rng: np.random.Generator
    steps: int
    prompts: int
    accuracy: Curve
    format: Curve | None = None
    length: Curve = field(default_factory=lambda: rise(400, 470))
    cut: Curve = field(default_factory=lambda: flat(0.02))
    entropy: Curve = field(default_factory=lambda: rise(0.45, 0.3))
    kl: Curve = field(default_factory=lambda: rise(0.0003, 0.01))
    clip: Curve = field(default_factory=lambda: flat(0.001))
    mismatch: Curve = field(default_factory=lambda: flat(0.001))
    gradient: Curve = field(default_factory=lambda: flat(0.2))
    rate: Curve = field(default_factory=lambda: lambda done: 1e-6 * min(1.0, 0.02 + done * 10) * (1.0 - done))
    errors: Curve = field(default_factory=lambda: flat(0.0))
    heldout: Curve | None = None
    heldout_problems: int = 500
    every: int = 10
    weight: float = 1.0
    low: float = 0.0
    """A wrong answer's reward."""
    concentration: float = 1.5
    wander: float = 0.0
    """How strongly the difficulty of neighbouring batches hangs together."""
    sway: float = 0.03
    """How strongly lengths, entropy and the like sway from step to step; they do so for ten steps."""
    tails: float = 0.0
    """How far the logarithms of gradient and KL spread in a tenth of the steps."""
    filtered: bool = False
    """Whether groups that teach nothing are drawn again."""
    epochs: float = 0.8
    edit: Callable[[list[Row]], None] = lambda rows: None

    def rows(self) -> list[Row]:
        """Return the metrics of each step, by neutral names."""
        rng, rows, drift = self.rng, [], 0.0
        for index in range(self.steps):
            done = index / max(self.steps - 1, 1)
            drift = self.wander * drift + 0.05 * float(rng.standard_normal()) if self.wander else 0.0
            target = min(max(self.accuracy(done) + drift, 0.0), 1.0)
            groups = self._groups(target)
            right = groups.mean(axis=1)
            row: Row = {"step": index + 1, "epoch": self.epochs * (index + 1) / self.steps}
            row["accuracy"] = float(right.mean())
            row["accuracy_std"] = float(groups.std())
            row["zero"] = float(np.mean((right == 0) | (right == 1)))
            reward = self.low + (self.weight - self.low) * groups
            if self.format is not None:
                formed = (rng.random(groups.shape) < self.format(done)).astype(float)
                row["format"], row["format_std"] = float(formed.mean()), float(formed.std())
                reward = reward + formed
                row["zero"] = float(np.mean(reward.std(axis=1) == 0))
            row["reward"], row["reward_std"] = float(reward.mean()), float(reward.std())
            row["reward_max"], row["reward_min"] = float(reward.max()), float(reward.min())
            few = 0.3 / np.sqrt(self.prompts)
            row["length"] = self.length(done) * float(np.exp(few * rng.standard_normal()))
            row["cut"] = float(rng.binomial(self.prompts * GROUP, min(max(self.cut(done), 0.0), 1.0))) / (
                self.prompts * GROUP
            )
            row["entropy"] = self.entropy(done) * float(np.exp(0.5 * few * rng.standard_normal()))
            for name, curve, noise in (
                ("kl", self.kl, 0.3),
                ("clip", self.clip, 0.3),
                ("mismatch", self.mismatch, 0.2),
            ):
                row[name] = curve(done) * float(np.exp(noise * rng.standard_normal()))
            teaching = 1.0 if row["zero"] < 1.0 else 0.0
            row["grad"] = teaching * self.gradient(done) * float(np.exp((0.2 + few) * rng.standard_normal()))
            row["loss"] = teaching * 0.01 * float(rng.standard_normal())
            row["advantage_max"], row["advantage_min"] = 2.0 * teaching, -2.0 * teaching
            row["lr"], row["errors"] = self.rate(done), self.errors(done)
            if self.heldout is not None and (index + 1) % self.every == 0:
                expected = min(max(self.heldout(done), 0.0), 1.0)
                row["heldout"] = float(rng.binomial(self.heldout_problems, expected)) / self.heldout_problems
            rows.append(row)
        for name in ("length", "entropy", "grad", "kl", "clip", "mismatch"):
            self._sway(rows, name)
        for row in rows:
            for name in ("grad", "kl"):
                is_tail = self.tails > 0 and rng.random() < 0.1
                row[name] *= float(np.exp(abs(self.tails * rng.standard_normal()))) if is_tail else 1.0
        self.edit(rows)
        return rows

    def _sway(self, rows: list[Row], name: str) -> None:
        """Let a metric sway slowly around its curve, as batches of like problems make it do."""
        drift = 0.0
        for row in rows:
            drift = 0.9 * drift + self.sway * float(self.rng.standard_normal())
            row[name] *= float(np.exp(drift))

    def _groups(self, target: float) -> Floats:
        """Draw the completions of a step, right or wrong."""
        rng = self.rng
        level = min(max(target, 1e-6), 1.0 - 1e-6)
        rates = rng.beta(self.concentration * level, self.concentration * (1.0 - level), self.prompts)
        groups = (rng.random((self.prompts, GROUP)) < rates[:, None]).astype(float)
        if target in (0.0, 1.0):
            groups[:] = target
        for _ in range(50 if self.filtered else 0):
            alike = groups.std(axis=1) == 0
            if not alike.any():
                break
            rates = rng.beta(self.concentration * level, self.concentration * (1.0 - level), int(alike.sum()))
            groups[alike] = rng.random((int(alike.sum()), GROUP)) < rates[:, None]
        return groups


def every_nth(period: int, offset: int = 1, **values: float) -> Callable[[list[Row]], None]:
    """An edit that sets values at every so many steps."""

    def edit(rows: list[Row]) -> None:
        for row in rows:
            if row["step"] > offset and row["step"] % period == offset:
                row.update(values)

    return edit


def from_share(share: float, **values: float) -> Callable[[list[Row]], None]:
    """An edit that sets values from a share of the run on."""

    def edit(rows: list[Row]) -> None:
        for row in rows[int(share * len(rows)) :]:
            row.update(values)

    return edit


def times(share: float, factor: float, *names: str) -> Callable[[list[Row]], None]:
    """An edit that multiplies metrics from a share of the run on."""

    def edit(rows: list[Row]) -> None:
        for row in rows[int(share * len(rows)) :]:
            row.update({name: factor * row[name] for name in names})

    return edit


def spikes(factor: float, count: int) -> Callable[[list[Row]], None]:
    """An edit that raises the gradient of a few steps."""

    def edit(rows: list[Row]) -> None:
        for share in (0.31, 0.47, 0.53, 0.78, 0.91)[:count]:
            index = int(share * len(rows))
            rows[index]["grad"] = max(rows[index]["grad"], 0.1) * factor

    return edit


def resumed(count: int) -> Callable[[list[Row]], None]:
    """An edit that does some steps again."""

    def edit(rows: list[Row]) -> None:
        size = len(rows)
        for index in range(count):
            cut = int(size * (index + 1) / (count + 1))
            rows.insert(cut, {})
            again = [dict(row) for row in rows[max(0, cut - 8) : cut]]
            for row in again:
                row["reward"] *= 0.99
            rows[cut : cut + 1] = again

    return edit


def again(curve: Curve, share: float) -> Curve:
    """A curve that begins anew at a share of the run."""
    return lambda done: curve(done if done < share else done - share)


def sorted_data(curve: Curve, passes: int) -> Curve:
    """The same problems in the same order, several times."""
    return lambda done: curve(min(done, 1.0 - 1e-9) * passes % 1.0)


def between(curve: Curve, share: float, back: float) -> Curve:
    """A curve that at a share of the run goes a part of the way back to its beginning, such as at harder problems."""
    return lambda done: curve(done) if done < share else curve(done) + back * (curve(0.0) - curve(share))


def goes_back(share: float, steps: int) -> Callable[[list[Row]], None]:
    """An edit that counts steps from a share of the run on as those before, as a log does that is continued."""

    def edit(rows: list[Row]) -> None:
        for row in rows[int(share * len(rows)) :]:
            row["step"] -= steps

    return edit


def jump(at_share: float) -> Curve:
    """0 before a share of the run and 1 after it, within a few steps."""
    return lambda done: 1.0 / (1.0 + float(np.exp(-(done - at_share) * 150)))


ZERO = {
    **{"loss": 0.0, "grad": 0.0, "zero": 1.0, "reward_std": 0.0, "advantage_max": 0.0, "advantage_min": 0.0},
    "accuracy_std": 0.0,
}
"""What a step logs in which all groups are alike."""
Maker = Callable[[np.random.Generator], Run]


@dataclass(frozen=True)
class Kind:
    """One kind of run."""

    names: tuple[str, ...]
    """The faults that are right, any of them; none for a clean run."""
    make: Maker


def run(steps: int | tuple[int, int], prompts: tuple[int, ...] = (8, 32, 128), **settings: Any) -> Maker:
    """Return a maker of runs, whose steps and prompts are drawn from these."""

    def make(rng: np.random.Generator) -> Run:
        count = steps if isinstance(steps, int) else int(rng.integers(*steps))
        return Run(rng, count, int(rng.choice(prompts)), **settings)

    return make


LONG = (60, 300)
CLEAN: dict[str, Kind] = {
    "accuracy rises": Kind((), run(LONG, BATCHES, accuracy=rise(0.3, 0.6))),
    "accuracy rises, 4 prompts a step": Kind((), run(LONG, (4,), accuracy=rise(0.3, 0.5))),
    "accuracy and format rise": Kind((), run(LONG, BATCHES, accuracy=rise(0.3, 0.6), format=rise(0.4, 0.99, 10))),
    "nothing is learnt, nothing is wrong": Kind((), run((100, 500), BATCHES, accuracy=flat(0.4), entropy=flat(0.4))),
    "hard set, .02 -> .08": Kind((), run((100, 500), (16, 32, 128), accuracy=line(0.02, 0.08))),
    "hard set beside a format of .95": Kind(
        (), run((100, 400), (32, 128), accuracy=line(0.02, 0.1), format=flat(0.95))
    ),
    "finished run, accuracy .95": Kind((), run(LONG, BATCHES, accuracy=flat(0.95), entropy=flat(0.06))),
    "finished run, 4 prompts": Kind((), run(LONG, (4,), accuracy=flat(0.95), entropy=flat(0.06))),
    "rises to .96": Kind((), run(LONG, (16, 32, 128), accuracy=rise(0.5, 0.96), entropy=rise(0.4, 0.08))),
    "5 steps": Kind((), run(5, BATCHES, accuracy=flat(0.4))),
    "5 steps of a hard set": Kind((), run(5, (8, 32), accuracy=flat(0.02), format=flat(0.9))),
    "12 steps": Kind((), run(12, BATCHES, accuracy=rise(0.3, 0.4))),
    "20 steps": Kind((), run(20, BATCHES, accuracy=rise(0.3, 0.45), format=rise(0.2, 0.9))),
    "evaluation every 10 steps": Kind((), run(LONG, BATCHES, accuracy=rise(0.3, 0.6), heldout=rise(0.3, 0.55))),
    "evaluation of 30 problems": Kind(
        (),
        run((100, 300), BATCHES, accuracy=rise(0.3, 0.5), heldout=flat(0.2), heldout_problems=30),
    ),
    "training rises, held out stays": Kind((), run((100, 300), (32, 128), accuracy=rise(0.3, 0.7), heldout=flat(0.4))),
    "curriculum, one step down": Kind((), run(LONG, (16, 32, 128), accuracy=stairs(0.65, 0.35))),
    "curriculum, three steps down": Kind((), run((120, 400), (32, 128), accuracy=stairs(0.7, 0.55, 0.4, 0.3))),
    "curriculum, as low again as in the beginning": Kind(
        (), run((80, 400), BATCHES, accuracy=stairs(0.3, 0.3, growth=0.3))
    ),
    "the same, entropy and length go half of the way back": Kind(
        (),
        run(
            (80, 400),
            BATCHES,
            accuracy=stairs(0.3, 0.3, growth=0.3),
            entropy=between(rise(0.5, 0.2), 0.5, 0.5),
            length=between(rise(800, 400), 0.5, 0.5),
        ),
    ),
    "the same, entropy goes all of the way back, with evaluations": Kind(
        (),
        run(
            (80, 400),
            BATCHES,
            accuracy=stairs(0.3, 0.3, growth=0.3),
            entropy=between(rise(0.5, 0.2), 0.5, 1.0),
            heldout=rise(0.3, 0.5),
        ),
    ),
    "curriculum of three stages that are alike": Kind(
        (), run((150, 400), (32, 128), accuracy=stairs(0.35, 0.35, 0.35, growth=0.25), entropy=rise(0.5, 0.2))
    ),
    "sorted from hard to easy, three epochs": Kind(
        (),
        run(
            (150, 400),
            (32, 128),
            accuracy=sorted_data(line(0.3, 0.6), 3),
            entropy=sorted_data(line(0.5, 0.3), 3),
            length=sorted_data(line(900, 500), 3),
            epochs=3.0,
        ),
    ),
    "curriculum, resumed once at another step": Kind(
        (), run((80, 400), (32, 128), accuracy=stairs(0.3, 0.3, growth=0.3), edit=goes_back(0.7, 6))
    ),
    "resumed at a step of harder problems": Kind(
        (), run((80, 400), (32, 128), accuracy=stairs(0.35, 0.45, growth=0.25), edit=goes_back(0.5, 6))
    ),
    "curriculum beside a rising format": Kind(
        (),
        run((120, 400), (32, 128), accuracy=stairs(0.65, 0.35), format=rise(0.3, 0.99, 6)),
    ),
    "base model stops rambling": Kind(
        (),
        run(
            LONG, accuracy=rise(0.1, 0.5), format=rise(0.0, 0.98, 12), length=rise(900, 350, 8), cut=rise(0.7, 0.03, 8)
        ),
    ),
    "thinks longer and better": Kind(
        (), run(LONG, accuracy=rise(0.2, 0.6), length=rise(500, 1300), cut=line(0.01, 0.1))
    ),
    "entropy sinks while it learns": Kind((), run(LONG, accuracy=line(0.3, 0.7), entropy=rise(0.6, 0.1))),
    "KL grows to .1": Kind((), run(LONG, accuracy=rise(0.3, 0.6), kl=rise(0.0005, 0.1))),
    "single spikes of the gradient": Kind((), run(LONG, accuracy=rise(0.3, 0.6), edit=spikes(7.0, 2))),
    "rewards of -1 and 1": Kind((), run(LONG, accuracy=rise(0.3, 0.6), low=-1.0)),
    "a right answer is worth 2": Kind((), run(LONG, accuracy=rise(0.3, 0.6), weight=2.0, format=flat(0.9))),
    "batches of unlike difficulty": Kind((), run((100, 400), (16, 32), accuracy=rise(0.4, 0.55), wander=0.7)),
    "the same beside a rising format": Kind(
        (), run((100, 400), (16, 32), accuracy=rise(0.4, 0.5), wander=0.7, format=rise(0.4, 0.98))
    ),
    "4 prompts and a rising format": Kind((), run((100, 500), (4,), accuracy=rise(0.3, 0.4), format=rise(0.4, 0.98))),
    "lengths and entropy sway": Kind((), run((100, 500), BATCHES, accuracy=rise(0.3, 0.5), sway=0.08)),
    "heavy tails of gradient and KL": Kind((), run((100, 500), BATCHES, accuracy=rise(0.3, 0.5), tails=1.2)),
    "warm-up of fifty steps, rate 0 in the first": Kind(
        (), run((100, 300), accuracy=line(0.3, 0.5, 0.2), rate=lambda done: 1e-6 * min(1.0, 4.0 * done))
    ),
    "evaluation of 30 problems every 20 steps": Kind(
        (), run((100, 300), accuracy=rise(0.3, 0.5), heldout=flat(0.2), heldout_problems=30, every=20)
    ),
    "a hard batch of three steps": Kind(
        (),
        run(LONG, (32, 128), accuracy=lambda done: 0.15 if 0.5 < done < 0.51 else 0.3 + 0.2 * done),
    ),
    "groups that teach nothing drawn again": Kind((), run(LONG, (16, 32), accuracy=rise(0.3, 0.6), filtered=True)),
    "resumed once": Kind((), run(LONG, accuracy=rise(0.3, 0.6), edit=resumed(1))),
    "four epochs": Kind((), run(LONG, accuracy=rise(0.3, 0.7), heldout=rise(0.3, 0.5), epochs=4.0)),
    "constant rate of learning": Kind((), run(LONG, accuracy=rise(0.3, 0.6), rate=flat(1e-6))),
}
DEAD = ("nothing_teaches", "reward_constant")
FAULTY: dict[str, Kind] = {
    "dead from the start, format paid": Kind(
        DEAD,
        run(LONG, accuracy=flat(0.0), format=flat(1.0), edit=from_share(0, **ZERO)),
    ),
    "dead from the start, all 0": Kind(DEAD, run((10, 60), accuracy=flat(0.0), edit=from_share(0, **ZERO))),
    "dead from the start, all 1": Kind(DEAD, run(LONG, accuracy=flat(1.0), edit=from_share(0, **ZERO))),
    "dies at the middle": Kind(
        DEAD,
        run(LONG, accuracy=rise(0.3, 0.4), edit=from_share(0.5, **ZERO, accuracy=0.0, reward=0.0)),
    ),
    "rewards differ, gradient 0": Kind(
        ("no_gradient",),
        run(LONG, accuracy=flat(0.3), edit=from_share(0, loss=0.0, grad=0.0)),
    ),
    "rate 0": Kind(("rate_zero",), run(LONG, accuracy=flat(0.3), rate=flat(0.0))),
    "rate 0 from the middle on": Kind(("rate_zero",), run(LONG, accuracy=rise(0.3, 0.4), edit=from_share(0.5, lr=0.0))),
    "NaN from the middle on": Kind(
        ("not_finite",),
        run(LONG, accuracy=rise(0.3, 0.4), edit=from_share(0.5, loss=float("nan"), grad=float("nan"))),
    ),
    "every tenth step at the limit, reward 0": Kind(
        ("periodic",),
        run(
            (60, 300),
            (32, 128),
            accuracy=rise(0.3, 0.6),
            edit=every_nth(10, accuracy=0.0, reward=0.0, cut=1.0, zero=1.0, length=2048.0),
        ),
    ),
    "every 25th step, reward 0": Kind(
        ("periodic",),
        run((120, 300), (32, 128), accuracy=rise(0.3, 0.6), edit=every_nth(25, 3, accuracy=0.0, reward=0.0)),
    ),
    "every seventh step, half cut": Kind(
        ("periodic",),
        run((60, 200), accuracy=rise(0.3, 0.6), edit=every_nth(7, 2, cut=0.6)),
    ),
    "groups alike, .3 -> .99": Kind(
        ("teaching_fall",),
        run(
            LONG,
            accuracy=flat(0.4),
            edit=lambda rows: (
                [row.update(zero=min(1.0, 0.3 + 0.75 * row["step"] / len(rows))) for row in rows] and None
            ),
        ),
    ),
    "entropy to nothing": Kind(
        ("entropy_collapse",), run(LONG, accuracy=rise(0.3, 0.4, 20), entropy=rise(0.6, 0.01, 6))
    ),
    "entropy explodes": Kind(("entropy_up",), run(LONG, accuracy=line(0.4, 0.2), entropy=line(0.4, 4.0, 0.4))),
    "length term hides accuracy, .4 -> .16": Kind(
        ("hidden_fall",),
        run(LONG, accuracy=line(0.4, 0.16, 0.2), format=line(0.4, 0.98), length=line(300, 900)),
    ),
    "format hides accuracy, .45 -> .1": Kind(
        ("hidden_fall",),
        run(LONG, (32, 128), accuracy=line(0.45, 0.1, 0.1, 0.8), format=rise(0.2, 0.98)),
    ),
    "format .95 beside accuracy .02": Kind(
        ("reward_blind",),
        run((100, 300), (32, 128), accuracy=flat(0.02), format=flat(0.95)),
    ),
    "gamed, held out falls": Kind(
        ("reward_hacking",),
        run((100, 300), accuracy=line(0.3, 0.9), heldout=line(0.4, 0.2), heldout_problems=500),
    ),
    "gamed at once, nothing held out": Kind(
        ("reward_hacking",),
        run(
            (100, 300),
            accuracy=lambda done: 0.3 + 0.68 * jump(0.6)(done),
            length=lambda done: 500 - 450 * jump(0.6)(done),
            kl=lambda done: 0.002 + 0.2 * jump(0.6)(done),
        ),
    ),
    "learnt by heart in six epochs": Kind(
        ("by_heart", "reward_hacking"),
        run((120, 300), accuracy=lambda done: 0.35 + 0.1 * min(int(done * 6), 5), heldout=line(0.42, 0.28), epochs=6.0),
    ),
    "cut more and more": Kind(
        ("truncation", "length_up"),
        run(LONG, accuracy=flat(0.4), cut=line(0.02, 0.5), length=line(800, 2500)),
    ),
    "cut from the start": Kind(("truncation",), run(LONG, accuracy=flat(0.1), cut=flat(0.85))),
    "longer without gain": Kind(("length_up",), run(LONG, accuracy=flat(0.4), length=line(400, 1600))),
    "length collapses": Kind(("length_down",), run(LONG, accuracy=line(0.4, 0.3), length=rise(600, 60, 6))),
    "KL explodes": Kind(("kl",), run(LONG, accuracy=rise(0.3, 0.4), kl=lambda done: 0.002 * float(np.exp(8 * done)))),
    "KL jumps": Kind(("kl",), run(LONG, accuracy=rise(0.3, 0.4), kl=lambda done: 0.01 + 3.0 * jump(0.7)(done))),
    "the gradient spikes": Kind(("grad_norm",), run(LONG, accuracy=rise(0.3, 0.4), edit=spikes(60.0, 5))),
    "the reward's scale, x 10": Kind(
        ("reward_scale",),
        run(LONG, (32, 128), accuracy=rise(0.3, 0.5), edit=times(0.5, 10.0, "reward", "reward_std", "reward_max")),
    ),
    "the reward's scale, x 2": Kind(
        ("reward_scale",),
        run(LONG, (32, 128), accuracy=rise(0.3, 0.5), edit=times(0.4, 2.0, "reward", "reward_std", "reward_max")),
    ),
    "collapses to 0": Kind(
        ("pass_rate_fall",),
        run(LONG, accuracy=lambda done: 0.5 * (1 - jump(0.6)(done)) + 0.02, heldout=None),
    ),
    "slides down": Kind(("pass_rate_fall",), run(LONG, (32, 128), accuracy=line(0.5, 0.15, 0.2))),
    "held out falls": Kind(("heldout_fall",), run((120, 300), accuracy=flat(0.4), heldout=line(0.5, 0.25))),
    "resumed three times": Kind(("resumed",), run(LONG, accuracy=rise(0.3, 0.6), edit=resumed(3))),
    **{
        f"began anew from the base weights at {share:.0%}{beside}": Kind(
            ("restarted",),
            run(
                (80, 300),
                (32, 128),
                accuracy=again(rise(0.3, 0.62), share),
                entropy=again(rise(0.5, 0.25), share),
                length=again(rise(400, 700), share),
                kl=again(rise(0.0003, 0.02), share),
                **settings,
            ),
        )
        for share in (0.4, 0.7)
        for beside, settings in (
            ("", {}),
            (", with evaluations", {"heldout": again(rise(0.3, 0.55), share)}),
            (", the log goes back", {"edit": goes_back(share, 7)}),
        )
    },
    "sampler and trainer drift apart": Kind(
        ("mismatch",), run(LONG, accuracy=rise(0.3, 0.4), mismatch=line(0.001, 0.08))
    ),
    "clipped more and more": Kind(("clip_share",), run(LONG, accuracy=rise(0.3, 0.4), clip=line(0.002, 0.3))),
}


def long_run(**settings: Any) -> Callable[[int, int], Maker]:
    """Return what makes runs of given steps and prompts."""
    return lambda steps, prompts: run(steps, (prompts,), **settings)


POWER_STEPS, POWER_PROMPTS = (20, 100, 500), (8, 64)
POWER: dict[str, tuple[tuple[str, ...], Callable[[int, int], Maker]]] = {
    "none: accuracy stays at .4": ((), long_run(accuracy=flat(0.4), entropy=flat(0.4), heldout=flat(0.4))),
    "none: accuracy .3 -> .6": ((), long_run(accuracy=rise(0.3, 0.6), heldout=rise(0.3, 0.5))),
    "accuracy .40 -> .30 behind a format of .4 -> .98": (
        ("hidden_fall",),
        long_run(accuracy=line(0.4, 0.3), format=line(0.4, 0.98)),
    ),
    "accuracy .40 -> .16 behind a format of .4 -> .98": (
        ("hidden_fall",),
        long_run(accuracy=line(0.4, 0.16), format=line(0.4, 0.98)),
    ),
    "accuracy .50 -> .15": (("pass_rate_fall",), long_run(accuracy=line(0.5, 0.15))),
    "entropy .6 -> .02": (("entropy_collapse",), long_run(accuracy=flat(0.4), entropy=rise(0.6, 0.02, 5))),
    "cut at the limit, .02 -> .3": (("truncation",), long_run(accuracy=flat(0.4), cut=line(0.02, 0.3))),
    "length x 3, accuracy stays": (("length_up",), long_run(accuracy=flat(0.4), length=line(400, 1200))),
    "KL .002 -> 3": (("kl",), long_run(accuracy=flat(0.4), kl=lambda done: 0.002 * float(np.exp(7.3 * done)))),
    "every tenth step without a reward": (
        ("periodic",),
        long_run(accuracy=flat(0.5), edit=every_nth(10, accuracy=0.0, reward=0.0)),
    ),
    "no reward that differs, second half": (DEAD, long_run(accuracy=flat(0.4), edit=from_share(0.5, **ZERO))),
    "held out .50 -> .35 (500 problems, every tenth step)": (
        ("heldout_fall", "reward_hacking"),
        long_run(accuracy=rise(0.4, 0.7), heldout=line(0.5, 0.35)),
    ),
}
