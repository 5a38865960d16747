"""Acts where a guard fires: a step is left out, the rate is halved, the run returns to a healthy checkpoint, or
it stops. Every action is written to alarms.jsonl with its evidence, and the batches behind it to quarantine/.

A run that returns takes weights and optimizer of the checkpoint and goes on with the next rows, at a lower rate. Steps
are counted on, and so is the data: the same weights do not meet the same batch again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from truegold.pipeline.report.training import ENDINGS
from truegold.pipeline.running.disk import read_whole_lines, write_whole
from truegold.pipeline.running.progress import Progress
from truegold.train.grpo.batch_metrics import Metrics
from truegold.train.grpo.step import Trainer
from truegold.train.guards.doctor import ALARMS
from truegold.train.guards.table import NOT_THE_POLICY, SEVERITY, Action, derived_metrics
from truegold.train.guards.watch import Alarm, GuardWatch, Series
from truegold.train.model.distributed import barrier, gathered, rank
from truegold.train.model.engine import TrainingEngine, checkpoint_steps
from truegold.verifiers import GuardError

QUARANTINE = "quarantine"
"""In the stage's folder: the completions of the batches behind alarms."""
MOST_SKIPS = 3
"""Steps that are left out before leaving out is taken not to help."""
ROLL_BACK_RATE = 4
"""The rate is divided by this at each return: three of them make up for a rate a hundred times too high nearly."""
SAMPLED = ("pass_rate", "truncated", "repetition", "foreign_script", "idle", "not_finite")
"""What is measured of a batch with the weights that it came from: straight after a return it is what those had."""
HELDOUT = "heldout_pass_rate"
HELDOUT_ERROR = "heldout_error"
CHANGES: dict[Action, str] = {
    "skip_step": "This batch is not trained on.",
    "halve_rate": "The learning rate is {rate_factor:g} of the schedule's from now on.",
    "roll_back": "The weights are those of step {returned_to} again, and the rate {rate_factor:g} of the schedule's.",
}
"""What the reader is told at once; what ends the run is told as its error."""
HEALED = 50
"""After so many steps without an alarm, the run may return as often again."""


class Responder:
    """Watches a training, and acts. Every rank has one, and does what the first one decides."""

    def __init__(
        self, trainer: Trainer, engine: TrainingEngine, checkpoints: Path, first_step: int, progress: Progress
    ) -> None:
        self._trainer = trainer
        self._engine = engine
        self._checkpoints = checkpoints
        self._progress = progress
        self._folder = trainer.out_dir
        off = set(trainer.config.guards.off)
        if any(term.verifier is None and term.weight == 0 for term in trainer.config.reward.terms):
            # The reward is not meant to be about correctness.
            off |= {"reward_sign", "reward_blind", "update_sign", "nothing_teaches"}
        self.watch = GuardWatch(off)
        self._pending: list[Alarm] = []
        self._observed: set[str] = set()
        self._counts = {"roll_back": 0, "skip_step": 0}
        self._last_alarm = -HEALED
        self._heldout: dict[int, tuple[float, float]] = {}
        """The held-out pass rates of the weights in force and of those before them, by their steps, each with its
        standard error."""
        self._best: tuple[int, float] | None = None
        self._sampled: dict[int, dict[str, float]] = {}
        """What the weights of checkpoints, and the present ones, were measured to do first, by their steps."""
        self._returned: tuple[int, int, str] | None = None
        """The step after which the run returned last, that of the checkpoint, and the metric that was wrong."""
        trainer.may_train = self.may_train
        if rank() == 0:
            path = self._folder / ALARMS
            # Steps are taken again from here on, so that their alarms may come again. What has ended the run before
            # stays, and is its end no more.
            kept = [line for line in read_whole_lines(path) if line["step"] < first_step or line["action"] in ENDINGS]
            resumed = [{"resumed_at": first_step, **line} if line["action"] in ENDINGS else line for line in kept]
            write_whole(path, "".join(json.dumps(line) + "\n" for line in resumed).encode())

    def evaluated(self, step: int, metrics: Metrics) -> None:
        """Keep the best checkpoint: take in an evaluation of the weights that step `step` begins with."""
        self._observe(step, metrics)
        rate = metrics.get(HELDOUT)
        if rate is None or any(alarm.metric == HELDOUT for alarm in self._pending):
            return
        self._heldout[step] = (rate, metrics.get(HELDOUT_ERROR) or 0.0)
        if self._best is None or rate > self._best[1]:
            self._best = (step, rate)
            if step not in checkpoint_steps(self._checkpoints):
                self.save(step)

    def may_train(self, step: int, metrics: Metrics) -> bool:
        """Say whether a batch may be trained on, by what is known before; the alarms are answered after the step."""
        self._observe(step, metrics)
        return all(SEVERITY[alarm.action] < SEVERITY["skip_step"] for alarm in self._pending)

    def respond(self, step: int, metrics: Metrics) -> None:
        """Take in the metrics of a whole step, and act on its alarms. Raises GuardError where the run has to end."""
        self._observe(step, {name: value for name, value in metrics.items() if name not in self._observed})
        alarms, self._pending, self._observed = self._pending, [], set()
        values = {"not_finite": 0.0, **derived_metrics(metrics), **metrics}
        self._sampled[step] = {name: value for name in SAMPLED if (value := values.get(name)) is not None}
        if step - self._last_alarm >= HEALED:
            self._counts = dict.fromkeys(self._counts, 0)
        if not alarms:
            return
        self._last_alarm = step
        hardest = max(alarms, key=lambda alarm: SEVERITY[alarm.action])
        worst = self._look_elsewhere(hardest)
        action = self._escalate(worst.action)
        for alarm in alarms:
            if alarm is not hardest:
                self._log(alarm, "warn", {})
        self._act(step, worst, action)

    def finish(self, step: int, metrics: Metrics) -> None:
        """Take in the last evaluation: what is exported must not be dead. Where it is, or where a guard has begun to
        see it die, the weights are those of the best or of the last healthy checkpoint. A held-out pass rate of these
        weights that has not fallen tells more than the last batches of the weights before them."""
        self.evaluated(step, metrics)
        alarms, self._pending = self._pending, []
        may_return = "roll_back" not in self._trainer.config.guards.off
        begun = [] if metrics.get(HELDOUT) is not None else self.watch.unfinished(step)
        for alarm in alarms or begun:
            if may_return and SEVERITY[alarm.action] >= SEVERITY["roll_back"]:
                self._act(step, alarm, "roll_back")
                return
        for alarm in alarms:
            self._log(alarm, "warn", {})

    def save(self, step: int) -> None:
        """Write a checkpoint, and drop those that nobody would return to."""
        steps = {*checkpoint_steps(self._checkpoints), step}
        kept = kept_checkpoints(steps, step, self._best[0] if self._best else None)
        self._sampled = {taken: values for taken, values in self._sampled.items() if taken in kept or taken >= step - 1}
        self._engine.save(self._checkpoints, step, {**self._trainer.state(), "guards": self.state()}, kept)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {
            "watch": self.watch.state(),
            "lr": self._trainer.config.optimizer.lr,
            "rate_factor": self._engine.rate_factor,
            "counts": self._counts,
            "last_alarm": self._last_alarm,
            "heldout": {str(evaluated): list(measured) for evaluated, measured in self._heldout.items()},
            "best": self._best,
            "sampled": {str(step): values for step, values in self._sampled.items()},
            "returned": self._returned,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint's state."""
        self.watch.restore(state["watch"])
        # Whoever has changed the rate since has taken over from the guards.
        if state["lr"] == self._trainer.config.optimizer.lr:
            self._engine.rate_factor = state["rate_factor"]
        self._counts, self._last_alarm = dict(state["counts"]), state["last_alarm"]
        self._heldout = {int(evaluated): (rate, error) for evaluated, (rate, error) in state["heldout"].items()}
        self._best = None if state["best"] is None else tuple(state["best"])
        self._sampled = {int(step): values for step, values in state["sampled"].items()}
        self._returned = None if state["returned"] is None else tuple(state["returned"])

    def _observe(self, step: int, metrics: Metrics) -> None:
        self._observed |= set(metrics)
        self._pending += gathered(self.watch.observe(step, metrics))[0]

    def _escalate(self, action: Action) -> Action:
        """Return the action, or a harder one where it has been taken often enough."""
        if action == "skip_step" and self._counts["skip_step"] >= MOST_SKIPS:
            action = "roll_back"
        if action == "roll_back" and self._counts["roll_back"] >= self._trainer.config.guards.roll_backs:
            action = "stop"
        return "warn" if action in self._trainer.config.guards.off else action

    def _look_elsewhere(self, alarm: Alarm) -> Alarm:
        """Return the alarm that stops the run where healthy weights are as wrong straight after a return to them: then
        it is not the policy that has changed."""
        if self._returned is None or alarm.metric not in SAMPLED or alarm.action not in ("roll_back", "skip_step"):
            return alarm
        returned, target, metric = self._returned
        known = self._sampled.get(target, {}).get(alarm.metric)
        is_down = alarm.value < alarm.threshold
        was_healthy = known is not None and (known >= alarm.threshold if is_down else known <= alarm.threshold)
        is_the_same = alarm.metric == metric and alarm.since == returned + 1
        if not (is_the_same and was_healthy) or NOT_THE_POLICY in self._trainer.config.guards.off:
            return alarm
        causes = (
            f"not the policy: its weights of step {target} had {known:.3g}, and are as wrong as the later ones "
            "straight after the return to them; golds, prompts, the verifier, the sampling engine, or completions that "
            "belong to other prompts have changed"
        )
        remedy = "Compare completions/ of these steps with those before: prompt, gold, completion and verdict."
        return replace(alarm, guard=NOT_THE_POLICY, action="stop", causes=causes, remedy=remedy)

    def _act(self, step: int, alarm: Alarm, action: Action) -> None:
        if action in self._counts:
            self._counts[action] += 1
        if action == "warn":
            self._log(alarm, action, {})
            return
        evidence: dict[str, Any] = {"quarantined": self._quarantine(alarm)}
        if action == "halve_rate":
            self._engine.rate_factor /= 2
        elif action == "roll_back":
            evidence["returned_to"] = self._return(step, alarm)
        elif action == "pause":
            self.save(step + 1)
        elif action == "stop":
            evidence["returned_to"] = self._last_healthy(alarm)
        self._log(alarm, action, {**evidence, "rate_factor": self._engine.rate_factor})
        if action == "pause":
            raise GuardError(f"{alarm.line()} The run is paused; the same command goes on.", alarm.remedy, alarm.guard)
        if action == "stop":
            if evidence["returned_to"] is not None:
                self._engine.return_to(self._checkpoints, evidence["returned_to"])
            raise GuardError(f"{alarm.line()} The run has stopped.", alarm.remedy, alarm.guard)

    def _last_healthy(self, alarm: Alarm) -> int | None:
        """Return the step of the checkpoint to return to: the best one where the held-out pass rate is what fell."""
        if alarm.metric == HELDOUT and self._best is not None:
            return self._best[0]
        return healthy_checkpoint(checkpoint_steps(self._checkpoints), alarm.since)

    def _return(self, step: int, alarm: Alarm) -> int | None:
        """Return to the last healthy checkpoint, at a lower rate."""
        target = self._last_healthy(alarm)
        if target is None:
            return None
        barrier()
        state = self._engine.return_to(self._checkpoints, target)
        # The discarded policy's groups say nothing of this one; the rows go on where they are.
        self._trainer.feed.unlearn(state)
        self._engine.rate_factor /= ROLL_BACK_RATE
        self._trainer.version += 1
        self._trainer.groups.forget_before(self._trainer.version)
        self._trainer.update_sampler()
        self.watch.start_over()
        self._returned = (step, target, alarm.metric)
        # What has been discarded is no measure of what comes.
        self._heldout = {evaluated: rate for evaluated, rate in self._heldout.items() if evaluated <= target}
        self.watch.series[HELDOUT] = Series()
        for rate, error in self._heldout.values():
            self.watch.series[HELDOUT].add(rate, error)
        if self._best is not None and self._best[0] > target:
            kept = checkpoint_steps(self._checkpoints)
            left = [(evaluated, rate) for evaluated, (rate, _) in self._heldout.items() if evaluated in kept]
            self._best = max(left, key=lambda best: best[1], default=None)
        self.save(step + 1)
        return target

    def _quarantine(self, alarm: Alarm) -> list[str]:
        """Copy the completions of an alarm's steps aside."""
        names = []
        if rank() == 0:
            folder = self._folder / QUARANTINE
            folder.mkdir(exist_ok=True)
            for step in range(alarm.since, alarm.step + 1):
                for path in sorted((self._folder / "completions").glob(f"step-{step:06d}*.parquet")):
                    shutil.copyfile(path, folder / path.name)
                    names.append(f"{QUARANTINE}/{path.name}")
        return names

    def _log(self, alarm: Alarm, action: Action, evidence: Mapping[str, Any]) -> None:
        if rank() != 0:
            return
        with (self._folder / ALARMS).open("a") as log:
            log.write(json.dumps({**asdict(alarm), "action": action, **evidence}) + "\n")
        if action in CHANGES:
            self._progress.note(f"{alarm.line()} {CHANGES[action].format(**evidence)}")


NEWEST = 2
"""A kill while one is written leaves the one before."""
SETTLED = 8
"""A checkpoint is trusted once so many steps after it have raised no alarm: guards need some steps to fire."""
MARGIN = 3
"""What a guard notices may have begun so many steps before."""


def kept_checkpoints(steps: Collection[int], now: int, best: int | None) -> set[int]:
    """Return which of the checkpoints, by their steps, to keep at step `now`.

    Kept are the newest two, the best by held-out pass rate, the newest one that has settled, and the oldest that has
    not, which is the next to settle.
    """
    ordered = sorted(steps)
    settled = [step for step in ordered if step <= now - SETTLED]
    unsettled = [step for step in ordered if step > now - SETTLED]
    return {*ordered[-NEWEST:], *settled[-1:], *unsettled[:1], *(step for step in ordered if step == best)}


def healthy_checkpoint(steps: Collection[int], since: int) -> int | None:
    """Return the newest checkpoint from before what a guard noticed first at step `since`; the oldest where all are
    later; None where there is none."""
    ordered = sorted(steps)
    before = [step for step in ordered if step <= since - MARGIN]
    if before:
        return before[-1]
    return ordered[0] if ordered else None
