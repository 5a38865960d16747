"""Asks the doctor about simulated logs: faults of many kinds, clean runs of many kinds, in the files of six trainers.

    python benchmarks/doctor_logs.py --seeds 20 > benchmarks/results/doctor_logs.md
    python benchmarks/doctor_logs.py --write FOLDER          # the logs of the first seed, to be looked at

A step draws prompts with pass rates of their own (Beta, so that most are easy or hard), groups of completions from them,
and takes every share from these completions, so that noise is that of batches of 4 to 128 prompts.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truegold.train.guards.log_faults import find_faults
from truegold.train.guards.run_log import read_log

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
            row["lr"], row["errors"] = self.rate(done), self.errors(done)
            if self.heldout is not None and (index + 1) % self.every == 0:
                expected = min(max(self.heldout(done), 0.0), 1.0)
                row["heldout"] = float(rng.binomial(self.heldout_problems, expected)) / self.heldout_problems
            rows.append(row)
        self.edit(rows)
        return rows

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


def jump(at_share: float) -> Curve:
    """0 before a share of the run and 1 after it, within a few steps."""
    return lambda done: 1.0 / (1.0 + float(np.exp(-(done - at_share) * 150)))


ZERO = {"loss": 0.0, "grad": 0.0, "zero": 1.0, "reward_std": 0.0}
Kind = tuple[tuple[str, ...], Callable[[np.random.Generator], Run]]
"""Names that are right (none for a clean run), and the run."""


def run(
    steps: int | tuple[int, int], prompts: tuple[int, ...] = (8, 32, 128), **settings: object
) -> Callable[[np.random.Generator], Run]:
    """Return a maker of runs, with steps and prompts drawn from what is given."""

    def make(rng: np.random.Generator) -> Run:
        count = steps if isinstance(steps, int) else int(rng.integers(*steps))
        drawn = {name: value(rng) if name == "draw" else value for name, value in settings.items()}  # type: ignore[operator]
        drawn |= drawn.pop("draw", {})  # type: ignore[operator,arg-type]
        return Run(rng, count, int(rng.choice(prompts)), **drawn)  # type: ignore[arg-type]

    return make


LONG = (60, 300)
CLEAN: dict[str, Kind] = {
    "accuracy rises": ((), run(LONG, BATCHES, accuracy=rise(0.3, 0.6))),
    "accuracy rises, 4 prompts a step": ((), run(LONG, (4,), accuracy=rise(0.3, 0.5))),
    "accuracy and format rise": ((), run(LONG, BATCHES, accuracy=rise(0.3, 0.6), format=rise(0.4, 0.99, 10))),
    "nothing is learnt, nothing is wrong": ((), run((100, 500), BATCHES, accuracy=flat(0.4), entropy=flat(0.4))),
    "hard set, .02 -> .08": ((), run((100, 500), (16, 32, 128), accuracy=line(0.02, 0.08))),
    "hard set beside a format of .95": ((), run((100, 400), (32, 128), accuracy=line(0.02, 0.1), format=flat(0.95))),
    "finished run, accuracy .95": ((), run(LONG, BATCHES, accuracy=flat(0.95), entropy=flat(0.06))),
    "finished run, 4 prompts": ((), run(LONG, (4,), accuracy=flat(0.95), entropy=flat(0.06))),
    "rises to .96": ((), run(LONG, (16, 32, 128), accuracy=rise(0.5, 0.96), entropy=rise(0.4, 0.08))),
    "5 steps": ((), run(5, BATCHES, accuracy=flat(0.4))),
    "5 steps of a hard set": ((), run(5, (8, 32), accuracy=flat(0.02), format=flat(0.9))),
    "12 steps": ((), run(12, BATCHES, accuracy=rise(0.3, 0.4))),
    "20 steps": ((), run(20, BATCHES, accuracy=rise(0.3, 0.45), format=rise(0.2, 0.9))),
    "evaluation every 10 steps": ((), run(LONG, BATCHES, accuracy=rise(0.3, 0.6), heldout=rise(0.3, 0.55))),
    "evaluation of 30 problems": (
        (),
        run((100, 300), BATCHES, accuracy=rise(0.3, 0.5), heldout=flat(0.2), heldout_problems=30),
    ),
    "training rises, held out stays": ((), run((100, 300), (32, 128), accuracy=rise(0.3, 0.7), heldout=flat(0.4))),
    "curriculum, one step down": ((), run(LONG, (16, 32, 128), accuracy=stairs(0.65, 0.35))),
    "curriculum, three steps down": ((), run((120, 400), (32, 128), accuracy=stairs(0.7, 0.55, 0.4, 0.3))),
    "curriculum beside a rising format": (
        (),
        run((120, 400), (32, 128), accuracy=stairs(0.65, 0.35), format=rise(0.3, 0.99, 6)),
    ),
    "base model stops rambling": (
        (),
        run(
            LONG, accuracy=rise(0.1, 0.5), format=rise(0.0, 0.98, 12), length=rise(900, 350, 8), cut=rise(0.7, 0.03, 8)
        ),
    ),
    "thinks longer and better": ((), run(LONG, accuracy=rise(0.2, 0.6), length=rise(500, 1300), cut=line(0.01, 0.1))),
    "entropy sinks while it learns": ((), run(LONG, accuracy=line(0.3, 0.7), entropy=rise(0.6, 0.1))),
    "KL grows to .1": ((), run(LONG, accuracy=rise(0.3, 0.6), kl=rise(0.0005, 0.1))),
    "single spikes of the gradient": ((), run(LONG, accuracy=rise(0.3, 0.6), edit=spikes(7.0, 2))),
    "rewards of -1 and 1": ((), run(LONG, accuracy=rise(0.3, 0.6), low=-1.0)),
    "a right answer is worth 2": ((), run(LONG, accuracy=rise(0.3, 0.6), weight=2.0, format=flat(0.9))),
    "batches of unlike difficulty": ((), run((100, 400), (16, 32), accuracy=rise(0.4, 0.55), wander=0.7)),
    "a hard batch of three steps": (
        (),
        run(LONG, (32, 128), accuracy=lambda done: 0.15 if 0.5 < done < 0.51 else 0.3 + 0.2 * done),
    ),
    "groups that teach nothing drawn again": ((), run(LONG, (16, 32), accuracy=rise(0.3, 0.6), filtered=True)),
    "resumed once": ((), run(LONG, accuracy=rise(0.3, 0.6), edit=resumed(1))),
    "four epochs": ((), run(LONG, accuracy=rise(0.3, 0.7), heldout=rise(0.3, 0.5), epochs=4.0)),
    "constant rate of learning": ((), run(LONG, accuracy=rise(0.3, 0.6), rate=flat(1e-6))),
}
DEAD = ("nothing_teaches", "reward_constant")
FAULTY: dict[str, Kind] = {
    "dead from the start, format paid": (
        DEAD,
        run(LONG, accuracy=flat(0.0), format=flat(1.0), edit=from_share(0, **ZERO)),
    ),
    "dead from the start, all 0": (DEAD, run((10, 60), accuracy=flat(0.0), edit=from_share(0, **ZERO))),
    "dead from the start, all 1": (DEAD, run(LONG, accuracy=flat(1.0), edit=from_share(0, **ZERO))),
    "dies at the middle": (
        DEAD,
        run(LONG, accuracy=rise(0.3, 0.4), edit=from_share(0.5, **ZERO, accuracy=0.0, reward=0.0)),
    ),
    "rewards differ, gradient 0": (
        ("no_gradient",),
        run(LONG, accuracy=flat(0.3), edit=from_share(0, loss=0.0, grad=0.0)),
    ),
    "rate 0": (("rate_zero",), run(LONG, accuracy=flat(0.3), rate=flat(0.0))),
    "rate 0 from the middle on": (("rate_zero",), run(LONG, accuracy=rise(0.3, 0.4), edit=from_share(0.5, lr=0.0))),
    "NaN from the middle on": (
        ("not_finite",),
        run(LONG, accuracy=rise(0.3, 0.4), edit=from_share(0.5, loss=float("nan"), grad=float("nan"))),
    ),
    "every tenth step at the limit, reward 0": (
        ("periodic",),
        run(
            (60, 300),
            (32, 128),
            accuracy=rise(0.3, 0.6),
            edit=every_nth(10, accuracy=0.0, reward=0.0, cut=1.0, zero=1.0, length=2048.0),
        ),
    ),
    "every 25th step, reward 0": (
        ("periodic",),
        run((120, 300), (32, 128), accuracy=rise(0.3, 0.6), edit=every_nth(25, 3, accuracy=0.0, reward=0.0)),
    ),
    "every seventh step, half cut": (
        ("periodic",),
        run((60, 200), accuracy=rise(0.3, 0.6), edit=every_nth(7, 2, cut=0.6)),
    ),
    "groups alike, .3 -> .99": (
        ("teaching_fall",),
        run(
            LONG,
            accuracy=flat(0.4),
            edit=lambda rows: (
                [row.update(zero=min(1.0, 0.3 + 0.75 * row["step"] / len(rows))) for row in rows] and None
            ),
        ),
    ),
    "entropy to nothing": (("entropy_collapse",), run(LONG, accuracy=rise(0.3, 0.4, 20), entropy=rise(0.6, 0.01, 6))),
    "entropy explodes": (("entropy_up",), run(LONG, accuracy=line(0.4, 0.2), entropy=line(0.4, 4.0, 0.4))),
    "length term hides accuracy, .4 -> .16": (
        ("hidden_fall",),
        run(LONG, accuracy=line(0.4, 0.16, 0.2), format=line(0.4, 0.98), length=line(300, 900)),
    ),
    "format hides accuracy, .45 -> .1": (
        ("hidden_fall",),
        run(LONG, (32, 128), accuracy=line(0.45, 0.1, 0.1, 0.8), format=rise(0.2, 0.98)),
    ),
    "format .95 beside accuracy .02": (
        ("reward_blind",),
        run((100, 300), (32, 128), accuracy=flat(0.02), format=flat(0.95)),
    ),
    "gamed, held out falls": (
        ("reward_hacking",),
        run((100, 300), accuracy=line(0.3, 0.9), heldout=line(0.4, 0.2), heldout_problems=500),
    ),
    "gamed at once, nothing held out": (
        ("reward_hacking",),
        run(
            (100, 300),
            accuracy=lambda done: 0.3 + 0.68 * jump(0.6)(done),
            length=lambda done: 500 - 450 * jump(0.6)(done),
            kl=lambda done: 0.002 + 0.2 * jump(0.6)(done),
        ),
    ),
    "learnt by heart in six epochs": (
        ("by_heart", "reward_hacking"),
        run((120, 300), accuracy=lambda done: 0.35 + 0.1 * min(int(done * 6), 5), heldout=line(0.42, 0.28), epochs=6.0),
    ),
    "cut more and more": (
        ("truncation", "length_up"),
        run(LONG, accuracy=flat(0.4), cut=line(0.02, 0.5), length=line(800, 2500)),
    ),
    "cut from the start": (("truncation",), run(LONG, accuracy=flat(0.1), cut=flat(0.85))),
    "longer without gain": (("length_up",), run(LONG, accuracy=flat(0.4), length=line(400, 1600))),
    "length collapses": (("length_down",), run(LONG, accuracy=line(0.4, 0.3), length=rise(600, 60, 6))),
    "KL explodes": (("kl",), run(LONG, accuracy=rise(0.3, 0.4), kl=lambda done: 0.002 * float(np.exp(8 * done)))),
    "KL jumps": (("kl",), run(LONG, accuracy=rise(0.3, 0.4), kl=lambda done: 0.01 + 3.0 * jump(0.7)(done))),
    "the gradient spikes": (("grad_norm",), run(LONG, accuracy=rise(0.3, 0.4), edit=spikes(60.0, 5))),
    "the reward's scale, x 10": (
        ("reward_scale",),
        run(LONG, (32, 128), accuracy=rise(0.3, 0.5), edit=times(0.5, 10.0, "reward", "reward_std", "reward_max")),
    ),
    "the reward's scale, x 2": (
        ("reward_scale",),
        run(LONG, (32, 128), accuracy=rise(0.3, 0.5), edit=times(0.4, 2.0, "reward", "reward_std", "reward_max")),
    ),
    "collapses to 0": (
        ("pass_rate_fall",),
        run(LONG, accuracy=lambda done: 0.5 * (1 - jump(0.6)(done)) + 0.02, heldout=None),
    ),
    "slides down": (("pass_rate_fall",), run(LONG, (32, 128), accuracy=line(0.5, 0.15, 0.2))),
    "held out falls": (("heldout_fall",), run((120, 300), accuracy=flat(0.4), heldout=line(0.5, 0.25))),
    "resumed three times": (("resumed",), run(LONG, accuracy=rise(0.3, 0.6), edit=resumed(3))),
    "sampler and trainer drift apart": (("mismatch",), run(LONG, accuracy=rise(0.3, 0.4), mismatch=line(0.001, 0.08))),
    "clipped more and more": (("clip_share",), run(LONG, accuracy=rise(0.3, 0.4), clip=line(0.002, 0.3))),
}

TRL = {
    "accuracy": "rewards/accuracy_reward/mean",
    "accuracy_std": "rewards/accuracy_reward/std",
    "lr": "learning_rate",
    "format": "rewards/format_reward/mean",
    "format_std": "rewards/format_reward/std",
    "loss": "loss",
    "kl": "kl",
    "reward": "reward",
    "reward_std": "reward_std",
    "zero": "frac_reward_zero_std",
    "grad": "grad_norm",
    "entropy": "entropy",
    "length": "completions/mean_length",
    "cut": "completions/clipped_ratio",
    "epoch": "epoch",
    "clip": "clip_ratio/region_mean",
    "step": "step",
}
VERL = {
    "reward": "critic/score/mean",
    "reward_max": "critic/score/max",
    "reward_min": "critic/score/min",
    "loss": "actor/pg_loss",
    "grad": "actor/grad_norm",
    "lr": "actor/lr",
    "kl": "actor/kl_loss",
    "entropy": "actor/entropy",
    "length": "response_length/mean",
    "cut": "response_length/clip_ratio",
    "clip": "actor/pg_clipfrac",
    "mismatch": "rollout_corr/k3_kl",
    "heldout": "val-core/openai/gsm8k/acc/mean@1",
    "step": "training/global_step",
    "epoch": "training/epoch",
}
PRIME = {
    "reward": "train/agg/all/agent/reward/mean",
    "accuracy": "train/agg/all/agent/rewards/correct_answer/mean",
    "format": "train/agg/all/agent/rewards/format/mean",
    "length": "train/agg/all/agent/num_output_tokens/mean",
    "cut": "train/agg/all/agent/is_truncated/mean",
    "errors": "train/agg/all/has_error/mean",
    "heldout": "eval/math500/all/agent/avg@1",
    "step": "step",
}
PRIME_TRAINER = {
    "loss": "loss/mean",
    "grad": "optim/grad_norm",
    "lr": "optim/lr",
    "entropy": "entropy/all/mean",
    "mismatch": "mismatch_kl/all/mean",
    "clip": "is_masked/mean",
    "step": "step",
}
OPENRLHF = {
    "reward": "train/reward",
    "accuracy": "train/score",
    "reward_std": "train/group_reward_std",
    "kl": "train/kl",
    "loss": "train/policy_loss",
    "grad": "train/actor_grad_norm",
    "lr": "train/actor_lr",
    "entropy": "train/entropy_loss",
    "length": "train/response_length",
    "cut": "train/truncated",
    "clip": "train/ppo_clip_ratio",
    "mismatch": "train/vllm_kl",
    "heldout": "eval/eval_math500_pass1",
    "step": "train/global_step",
}
OPEN_INSTRUCT = {
    "reward": "scores",
    "accuracy": "objective/verifiable_correct_rate",
    "format": "val/format_scores",
    "lr": "lr",
    "loss": "loss/policy_avg",
    "grad": "optim/grad_norm",
    "kl": "objective/kl2_avg",
    "entropy": "policy/entropy_avg",
    "length": "val/sequence_lengths",
    "clip": "policy/clipfrac_avg",
    "heldout": "eval/pass_at_1",
    "step": "training_step",
}


def named(rows: list[Row], names: dict[str, str]) -> list[Row]:
    """Return rows in a trainer's names."""
    return [{names[name]: value for name, value in row.items() if name in names} for row in rows]


def write_lines(path: Path, rows: list[Row]) -> None:
    """JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def trl_rows(rows: list[Row]) -> list[Row]:
    """TRL's rows, those of an evaluation apart."""
    out = []
    for row, translated in zip(rows, named(rows, TRL), strict=True):
        out.append(translated)
        if "heldout" in row:
            out.append({"eval_rewards/accuracy_reward/mean": row["heldout"], "eval_loss": 0.0, "step": row["step"]})
    return out


def write_trl(path: Path, rows: list[Row]) -> None:
    """trainer_state.json."""
    path.write_text(json.dumps({"log_history": trl_rows(rows), "max_steps": len(rows)}))


def write_console(path: Path, rows: list[Row]) -> None:
    """What transformers prints."""
    lines = ["Map: 100%|####| 10/10"]
    for row in trl_rows(rows):
        lines.append(str({name: f"{value:.4g}" for name, value in row.items() if name != "step"}))
        lines.append(f" 10%|#    | {row['step']:.0f}/{len(rows)} [00:12<01:30,  4.52s/it]")
    path.write_text("\n".join(lines))


def write_table(path: Path, rows: list[Row]) -> None:
    """wandb's history as CSV."""
    named_rows = [
        {("train/" + name if name != "step" else "train/global_step"): value for name, value in row.items()}
        if "eval_loss" not in row
        else {name.replace("eval_", "eval/", 1): value for name, value in row.items() if name != "step"}
        | {"train/global_step": row["step"]}
        for row in trl_rows(rows)
    ]
    columns = list(dict.fromkeys(name for row in named_rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["_step", "_runtime", *columns])
        writer.writeheader()
        writer.writerows({"_step": index, "_runtime": 9.0 * index} | row for index, row in enumerate(named_rows))


def write_verl(path: Path, rows: list[Row]) -> None:
    """verl's file logger."""
    write_lines(path, [{"step": row["training/global_step"], "data": row} for row in named(rows, VERL)])  # type: ignore[dict-item]


def write_verl_console(path: Path, rows: list[Row]) -> None:
    """verl's console."""
    lines = ["(TaskRunner pid=7) Training Progress:   0%|          | 0/90"]
    for row in named(rows, VERL):
        pairs = " - ".join(f"{name}:{value!r}" for name, value in row.items())
        lines.append(f"(TaskRunner pid=7) step:{row['training/global_step']:.0f} - {pairs}")
    path.write_text("\n".join(lines))


def write_prime(path: Path, rows: list[Row]) -> None:
    """prime-rl's metrics.jsonl, without numbers that are not finite, as its monitor leaves them out."""
    pairs = zip(named(rows, PRIME), named(rows, PRIME_TRAINER), strict=True)
    write_lines(path, [row for pair in pairs for row in pair])


WRITERS: dict[str, tuple[str, Callable[[Path, list[Row]], None]]] = {
    "TRL trainer_state": ("trainer_state.json", write_trl),
    "TRL console": ("output.log", write_console),
    "TRL wandb CSV": ("wandb.csv", write_table),
    "verl file": ("verl.jsonl", write_verl),
    "verl console": ("verl.log", write_verl_console),
    "prime-rl": ("metrics.jsonl", write_prime),
    "OpenRLHF": ("openrlhf.jsonl", lambda path, rows: write_lines(path, named(rows, OPENRLHF))),
    "open-instruct": ("open_instruct.jsonl", lambda path, rows: write_lines(path, named(rows, OPEN_INSTRUCT))),
}
LACKS = {
    "verl file": {"accuracy", "format"},
    "verl console": {"accuracy", "format"},
    "prime-rl": {"kl", "reward_std"},
    "OpenRLHF": {"format"},
    "open-instruct": {"cut", "mismatch", "reward_std"},
    "TRL trainer_state": {"mismatch"},
    "TRL console": {"mismatch"},
    "TRL wandb CSV": {"mismatch"},
}
"""What a trainer does not log: kinds that need it are not asked in its names."""
NEEDS = {
    "hidden_fall": {"accuracy", "format"},
    "reward_blind": {"accuracy", "format"},
    "mismatch": {"mismatch"},
    "kl": {"kl"},
    "truncation": {"cut"},
    "teaching_fall": {"zero"},
    "reward_scale": {"reward_std"},
    "reward_hacking": {"kl"},
    "periodic": {"cut"},
    "clip_share": {"clip"},
    "nothing_teaches": {"reward_std"},
}
ONLY_TRL = {"zero"}


def formats_for(names: tuple[str, ...]) -> list[str]:
    """The formats in which a fault can be seen."""
    needed = set().union(*(NEEDS.get(name, set()) for name in names))
    chosen = [form for form in WRITERS if not needed & LACKS[form]]
    return [form for form in chosen if form.startswith("TRL")] if needed & ONLY_TRL else chosen


def ask(kind: Kind, seed: int, folder: Path) -> tuple[list[str], str]:
    """Return the faults that the doctor names in one simulated log, the first first, and the log's format."""
    rng = np.random.default_rng(seed)
    names, make = kind
    rows = make(rng).rows()
    forms = formats_for(names)
    form = forms[seed % len(forms)]
    file, write = WRITERS[form]
    path = folder / file
    write(path, rows)
    return [fault.name for fault in find_faults(read_log(path))], form


def table(kinds: dict[str, Kind], seeds: int) -> list[tuple[str, int, int, Counter[str]]]:
    """Ask about every kind and return how often a right name was among the faults, how often first, and all names."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (title, kind) in enumerate(kinds.items()):
            answers = [ask(kind, 1000 * number + seed, Path(folder))[0] for seed in range(seeds)]
            named_right = sum(bool(set(kind[0]) & set(names)) for names in answers)
            first_right = sum(bool(names) and names[0] in kind[0] for names in answers)
            rows.append((title, named_right, first_right, Counter(name for names in answers for name in names)))
    return rows


POWER: dict[str, tuple[str, str, Callable[[int, float], dict[str, object]]]] = {
    "accuracy falls behind the format, by": (
        "hidden_fall",
        ".40 -> .40 - x",
        lambda steps, x: {"accuracy": line(0.4, 0.4 - x), "format": line(0.4, 0.98)},
    ),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    for title, kinds in (("Clean", CLEAN), ("Faults", FAULTY)):
        kinds = {name: kind for name, kind in kinds.items() if chosen.only in name}
        print(f"## {title}")
        for name, right, first, names in table(kinds, chosen.seeds):
            print(f"| {name} | {right} | {first} | {dict(names)} |", flush=True)


if __name__ == "__main__":
    main()
