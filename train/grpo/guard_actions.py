"""The actions of guards: skip a step, halve the learning rate, roll back to a healthy checkpoint, pause, or stop.

A guard watches one metric of the training and raises an alarm if the metric is wrong (`guards.watch`). Every action is
written to alarms.jsonl with its evidence. The completions of the steps that caused an action are copied to quarantine/.

A roll-back loads the weights of a checkpoint, and the optimizer state if the checkpoint has one. It also divides the
learning rate by 4. The training continues with the next step number and the next rows. So the same weights do not see
the same batch again.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from truegold.pipeline.report.training import ENDINGS
from truegold.pipeline.running.disk import append_lines, read_whole_lines, write_whole
from truegold.pipeline.running.progress import Progress
from truegold.train.grpo.batch_metrics import Metrics
from truegold.train.grpo.step import Trainer
from truegold.train.guards.run_log import ALARMS
from truegold.train.guards.sampling_error import StepMean
from truegold.train.guards.table import NOT_THE_POLICY, ORDER, SEVERITY, Action, derived_metrics
from truegold.train.guards.watch import Alarm, GuardWatch, Series, healthy_checkpoint, kept_checkpoints
from truegold.train.model.distributed import barrier, gathered, rank
from truegold.train.model.ending import write_anyway
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.hub import render_weights_card
from truegold.train.model.saved_states import asked_for, checkpoint_steps, generator_states, latest_step
from truegold.verifiers import GuardError

QUARANTINE = "quarantine"
"""The folder, in the stage's folder, for the completions of batches that raised alarms."""
MOST_SKIPS = 3
"""The largest number of skipped steps. The next alarm that would skip a step rolls the run back."""
ROLL_BACK_RATE = 4
"""The factor by which each roll-back divides the learning rate. Three roll-backs divide it by 64."""
SAMPLED = ("pass_rate", "truncated", "repetition", "foreign_script", "not_finite")
"""Metrics of the sampled completions. After a roll-back they should be close to their values when the checkpoint was
written."""
HELDOUT = "heldout_pass_rate"
"""The metric of the run's held-out rows."""
HELDOUT_ERROR = "heldout_error"
"""The metric with the standard error of the held-out pass rate."""
HELDOUT_FALL = "heldout_fall"
"""The guard of the held-out pass rate."""
CHANGES: dict[Action, str] = {
    "skip_step": "This batch is not trained on.",
    "halve_rate": "The learning rate is {rate_factor:g} times that of the schedule from now on.",
    "roll_back": "The weights are those of step {returned_to}, the learning rate {rate_factor:g} times the scheduled.",
}
"""Texts that are printed after an alarm. `pause` and `stop` are reported by the error that ends the run."""
HEALED = 50
"""The number of steps without an alarm after which earlier roll-backs and skipped steps no longer count."""


class Responder:
    """Gives metrics to the guards and takes the actions of their alarms. Every rank has one; rank 0 decides."""

    def __init__(
        self, trainer: Trainer, engine: TrainingEngine, checkpoints: Path, first_step: int, progress: Progress
    ) -> None:
        self._trainer = trainer
        self._engine = engine
        self._checkpoints = checkpoints
        self._progress = progress
        self._folder = trainer.out_dir
        off = set(trainer.config.guards.off)
        if any(term.is_correctness and term.weight == 0 for term in trainer.config.reward.terms):
            # These guards expect the reward to measure correctness, which it does not here.
            off |= {"reward_sign", "reward_blind", "update_sign", "nothing_teaches", "nothing_passes"}
        asynchronous = trainer.config.asynchronous
        # Short groups finish first at the start, so the first steps are not typical.
        self.watch = GuardWatch(off, settling=first_step + asynchronous.max_staleness + 1 if asynchronous else 0)
        self._pending: list[Alarm] = []
        """Alarms of the current step whose actions were not taken yet."""
        self._observed: set[str] = set()
        """Names of metrics of the current step that the guards already have."""
        self._counts = {"roll_back": 0, "skip_step": 0}
        """The number of times that each action was taken. It returns to 0 after `HEALED` steps without an alarm."""
        self._last_alarm = -HEALED
        self._heldout: dict[int, tuple[float, float]] = {}
        """Held-out pass rates with their standard errors, by step. Steps that a roll-back undid are removed."""
        self._best: tuple[int, float] | None = None
        """The step and the held-out pass rate of the best checkpoint."""
        self._sampled: dict[int, dict[str, float]] = {}
        """The metrics `SAMPLED` of steps that began with the weights of a checkpoint, by step."""
        self._rolled_back: tuple[int, int, str] | None = None
        """The last roll-back: its step, the step of the checkpoint, and the metric of the alarm."""
        self._finished: tuple[int, bytes] | None = None
        """The number of finished steps, and the pickled state after them. Weights and optimizer are not in the
        state."""
        self._updates = 0
        """The number of optimizer steps of the finished steps."""
        self._spoilt_since: int | None = None
        """If the loss or gradients of the latest step were not finite: the first of these consecutive steps. Else
        None."""
        trainer.may_train = self.may_train
        if rank() == 0:
            path = self._folder / ALARMS
            # Steps are taken again after a resume, and their alarms may be raised again. So alarms of these steps are
            # dropped. An alarm that ended the run is kept, with a note that the run was resumed.
            kept = [line for line in read_whole_lines(path) if line["step"] < first_step or line["action"] in ENDINGS]
            resumed = [{"resumed_at": first_step, **line} if line["action"] in ENDINGS else line for line in kept]
            write_whole(path, "".join(json.dumps(line) + "\n" for line in resumed).encode())

    def evaluated(self, step: int, metrics: Metrics) -> None:
        """Process an evaluation of the weights that step `step` begins with, and save them if they are the best."""
        self._observe(step, metrics)
        rate = metrics.get(HELDOUT)
        if rate is None or any(alarm.metric in (HELDOUT, "evaluation_wrong") for alarm in self._pending):
            return
        self._heldout[step] = (rate, metrics.get(HELDOUT_ERROR) or 0.0)
        if self._best is None or rate > self._best[1]:
            self._best = (step, rate)
            if step not in checkpoint_steps(self._checkpoints):
                self.save(step, counts=False)

    def may_train(self, step: int, metrics: Metrics) -> bool:
        """Return whether a batch may be trained on, by the metrics that are known before the update.

        The actions of alarms are taken after the step (`respond`).
        """
        self._observe(step, metrics)
        return all(SEVERITY[alarm.action] < SEVERITY["skip_step"] for alarm in self._pending)

    def respond(self, step: int, metrics: Metrics) -> None:
        """Process the metrics of a finished step, and take the action of its worst alarm.

        Raises GuardError if the run has to end.
        """
        self._observe(step, {name: value for name, value in metrics.items() if name not in self._observed})
        alarms, self._pending, self._observed = self._pending, [], set()
        values = {"not_finite": 0.0, **derived_metrics(metrics), **metrics}
        self._sampled[step] = {name: value for name in SAMPLED if (value := values.get(name)) is not None}
        if not metrics.get("not_finite"):
            self._spoilt_since = None
        elif self._spoilt_since is None:
            self._spoilt_since = step
        if step - self._last_alarm >= HEALED:
            self._counts = dict.fromkeys(self._counts, 0)
        if not alarms:
            return
        self._last_alarm = step
        hardest = min(alarms, key=lambda alarm: (-SEVERITY[alarm.action], ORDER[alarm.guard]))
        worst = self._rule_out_policy(hardest)
        action = self._escalate(worst.action)
        for alarm in alarms:
            if alarm is not hardest:
                self._log(alarm, "warn", {})
        self._act(step, worst, action)

    def finish(self, step: int, metrics: Metrics) -> None:
        """Process the last evaluation, and roll back if the last weights are broken, so that they are not exported.

        The last weights are broken in three cases: the evaluation raises an alarm that rolls back or stops, the loss or
        the gradients of the last steps were not finite, or a guard was about to raise an alarm (`unfinished`). If there
        is an evaluation, only `weights_still` counts among the guards of the third case. The reason is that the
        evaluation measures the last weights, while earlier weights sampled the last batches.

        Raises GuardError if only the weights from the start of the training could be exported.
        """
        self.evaluated(step, metrics)
        alarms, self._pending = self._pending, []
        unfinished = self.watch.unfinished(step)
        if metrics.get(HELDOUT) is not None:
            unfinished = [alarm for alarm in unfinished if alarm.guard == "weights_still"]
        endings = [*([] if alarms else unfinished), *self._endings(step)]
        off = self._trainer.config.guards.off
        for alarm in [*alarms, *endings]:
            action: Action = "stop" if self._has_nothing_to_export(alarm) else "roll_back"
            if SEVERITY[alarm.action] >= SEVERITY["roll_back"] and action not in off:
                self._act(step, alarm, action)
                return
        for alarm in alarms:
            self._log(alarm, "warn", {})

    def _endings(self, step: int) -> list[Alarm]:
        """Return the alarms that can only be raised at the end of a run."""
        alarms = [self.watch.untrained(step), self.watch.back_at_start(step, self._rolled_back)]
        if self._spoilt_since is not None:
            spoilt = self.watch.alarm("not_finite", step, 1.0, self._spoilt_since)
            alarms.append(None if spoilt is None else replace(spoilt, action="roll_back"))
        return [alarm for alarm in alarms if alarm is not None]

    def _has_nothing_to_export(self, alarm: Alarm) -> bool:
        """Return whether a run that ends with this alarm has nothing to export. This is so if the run trained nothing,
        or returns to the weights of its start."""
        return alarm.action == "stop" or not self._last_healthy(alarm)

    def save(self, step: int, *, counts: bool = True) -> None:
        """Write a checkpoint and remove old ones (`kept_checkpoints`).

        counts: whether a killed run continues from this checkpoint. If false, only the weights are written.
        """
        kept = self._kept(step)
        self._sampled = {taken: values for taken, values in self._sampled.items() if taken in kept or taken >= step - 1}
        self._write(step, {**self._trainer.state(), "guards": self.state()}, kept, None, counts)

    def _kept(self, step: int) -> set[int]:
        """Return the steps of the checkpoints that are kept after this step, for roll-backs or by `save_every`."""
        steps = {*checkpoint_steps(self._checkpoints), step}
        config = self._trainer.config
        asked = sorted({*asked_for(self._checkpoints), *({step} if config.saves(step) else ())})
        limit = config.save_total_limit
        kept = kept_checkpoints(steps, step, self._best[0] if self._best else None)
        return kept | set(asked if limit is None else asked[-limit:])

    def _write(
        self,
        step: int,
        state: Mapping[str, Any],
        kept: Collection[int],
        random_states: Mapping[str, Tensor] | None,
        counts: bool,
    ) -> None:
        config = self._trainer.config
        card = render_weights_card(config, step) if config.saves(step) else None
        # After the last step the optimizer state is not needed any more.
        optimizer = counts and step < config.steps
        self._engine.save(
            self._checkpoints, step, state, kept, random_states, counts=counts, optimizer=optimizer, card=card
        )

    def remember(self, step: int) -> None:
        """Keep the current state in memory, for a checkpoint after `step` finished steps (`save_finished`)."""
        state = {**self._trainer.state(), "guards": self.state()}
        self._finished = (step, pickle.dumps((state, generator_states())))
        self._updates = self._trainer.updater.steps

    @property
    def may_save(self) -> bool:
        """Whether no update has changed the weights of the last finished step."""
        return self._finished is not None and self._updates == self._trainer.updater.steps

    def save_finished(self, first_step: int) -> int:
        """Write a checkpoint of the finished steps, unless it exists, and return their number.

        first_step: the result if no step has finished since the run was started or resumed.
        """
        if self._finished is None:
            return first_step
        step, remembered = self._finished
        if step != latest_step(self._checkpoints):
            state, random_states = pickle.loads(remembered)
            self._write(step, state, self._kept(step), random_states, counts=True)
        return step

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {
            "watch": self.watch.state(),
            "lr": self._trainer.config.optimizer.lr,
            "rate_factor": self._engine.rate_factor,
            "counts": self._counts,
            "last_alarm": self._last_alarm,
            "heldout": {str(evaluated): list(measured) for evaluated, measured in self._heldout.items()},
            "best": self._best,
            "sampled": {str(step): values for step, values in self._sampled.items()},
            "returned": self._rolled_back,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint."""
        self.watch.restore(state["watch"])
        # The user has kept the learning rate. So the guards' reduction of the rate still applies.
        if state["lr"] == self._trainer.config.optimizer.lr:
            self._engine.rate_factor = state["rate_factor"]
        self._counts, self._last_alarm = dict(state["counts"]), state["last_alarm"]
        self._heldout = {int(evaluated): (rate, error) for evaluated, (rate, error) in state["heldout"].items()}
        self._best = None if state["best"] is None else tuple(state["best"])
        self._sampled = {int(step): values for step, values in state["sampled"].items()}
        self._rolled_back = None if state["returned"] is None else tuple(state["returned"])

    def _observe(self, step: int, metrics: Metrics) -> None:
        """Give metrics to the guards. All ranks use the alarms of rank 0."""
        self._observed |= set(metrics)
        self._pending += gathered(self.watch.observe(step, metrics))[0]

    def _escalate(self, action: Action) -> Action:
        """Return the action to take for an alarm's action. If the limit of skipped steps or roll-backs is reached, this
        is the next more severe action. If the action is switched off, this is a warning."""
        if action == "skip_step" and self._counts["skip_step"] >= MOST_SKIPS:
            action = "roll_back"
        if action == "roll_back" and self._counts["roll_back"] >= self._trainer.config.guards.roll_backs:
            action = "stop"
        return "warn" if action in self._trainer.config.guards.off else action

    def _rule_out_policy(self, alarm: Alarm) -> Alarm:
        """Return the alarm, or a stop if the policy cannot be its cause.

        Example: after a roll-back, the first step has the same wrong metric. The weights of the checkpoint had a
        healthy value before. So the policy is not the cause.
        """
        if self._rolled_back is None or alarm.action not in ("roll_back", "skip_step"):
            return alarm
        rolled_back, target, metric = self._rolled_back
        came_back_at_once = alarm.metric == metric and alarm.since == rolled_back + 1
        is_off = NOT_THE_POLICY in self._trainer.config.guards.off
        if not came_back_at_once or not self._was_healthy(target, alarm) or is_off:
            return alarm
        causes = (
            f"not the policy: the weights of step {target} had {self._sampled[target][metric]:.3g} before, but after "
            "the roll-back to this step the value is as wrong as before the roll-back; golds, prompts, the verifier, "
            "the sampling engine or the order of completions have changed"
        )
        remedy = (
            "Compare prompt, gold, completion and verdict in completions/ of these steps with those of earlier steps."
        )
        return replace(alarm, guard=NOT_THE_POLICY, action="stop", causes=causes, remedy=remedy)

    def _rule_out_evaluation(self, alarm: Alarm, target: int | None) -> Alarm:
        """Return the alarm, or a stop if a fall of the held-out pass rate was not caused by the policy. After a
        roll-back, the weights of the checkpoint are evaluated again. If their held-out pass rate is as low as that of
        the later weights, the evaluation has changed, and the policy is not the cause."""
        before = self._heldout.get(target) if target is not None else None
        if alarm.guard != HELDOUT_FALL or before is None or NOT_THE_POLICY in self._trainer.config.guards.off:
            return alarm
        rate = self._trainer.evaluate().get(HELDOUT)
        if rate is None or rate >= alarm.threshold:
            return alarm
        causes = (
            f"not the policy: the weights of step {target} passed {before[0]:.3g} of the held-out rows before, and "
            f"{rate:.3g} after the roll-back; the held-out rows, their golds or prompts, the verifier or the "
            "sampling of evaluations have changed"
        )
        remedy = "Compare the held-out rows, their completions and verdicts with those of the first evaluation."
        return replace(alarm, guard=NOT_THE_POLICY, action="stop", causes=causes, remedy=remedy)

    def _was_healthy(self, step: int, alarm: Alarm) -> bool:
        """Return whether the alarm's metric was within its bound at a step; False if it was not recorded."""
        value = self._sampled.get(step, {}).get(alarm.metric)
        if value is None:
            return False
        is_too_low = alarm.value < alarm.threshold
        return value >= alarm.threshold if is_too_low else value <= alarm.threshold

    def _act(self, step: int, alarm: Alarm, action: Action) -> None:
        """Take the action of an alarm and log it. Raises GuardError for `pause` and `stop`."""
        if action in self._counts:
            self._counts[action] += 1
        if action == "warn":
            self._log(alarm, action, {})
            return
        evidence: dict[str, Any] = {"quarantined": self._quarantine(alarm)}
        if action == "pause":
            self._pause(step, alarm, evidence)
        elif action == "stop":
            self._stop(alarm, evidence)
        elif action == "halve_rate":
            self._engine.rate_factor /= 2
        elif action == "roll_back":
            target = self._roll_back(step, alarm)
            evidence["returned_to"] = target
            if (cause := self._rule_out_evaluation(alarm, target)) is not alarm:
                self._stop(cause, evidence)
        self._log_change(alarm, action, evidence)

    def _pause(self, step: int, alarm: Alarm, evidence: Mapping[str, Any]) -> NoReturn:
        """Write a checkpoint and end the run. Raises GuardError."""
        self.save(step + 1)
        self._log_change(alarm, "pause", evidence)
        raise GuardError(f"{alarm.line()} The run is paused; the same command continues it.", alarm.remedy, alarm.guard)

    def _stop(self, alarm: Alarm, evidence: Mapping[str, Any]) -> NoReturn:
        """End the run at its last healthy checkpoint. Raises GuardError."""
        target = self._last_healthy(alarm)
        if target is not None:
            self._engine.return_to(self._checkpoints, target)
            if alarm.guard == HELDOUT_FALL:
                self._trainer.version += 1
                self._trainer.update_sampler()
                alarm = self._rule_out_evaluation(alarm, target)
        self._log_change(alarm, "stop", {**evidence, "returned_to": target})
        raise GuardError(f"{alarm.line()} The run has stopped.", alarm.remedy, alarm.guard)

    def _last_healthy(self, alarm: Alarm) -> int | None:
        """Return the step of the checkpoint to roll back to, or None if there is none.

        After a fall of the held-out pass rate this is the best checkpoint. After other alarms it is the newest
        checkpoint before the alarm's cause.
        """
        steps = checkpoint_steps(self._checkpoints)
        if alarm.metric == HELDOUT and self._best is not None and self._best[0] in steps:
            return self._best[0]
        return healthy_checkpoint(steps, alarm.since)

    def _roll_back(self, step: int, alarm: Alarm) -> int | None:
        """Load the last healthy checkpoint and lower the learning rate. Return its step, or None if there is none."""
        target = self._last_healthy(alarm)
        if target is None:
            return None
        barrier()
        self._finished = None
        state = self._engine.return_to(self._checkpoints, target)
        # Pass rates of the discarded policy are reset. The stream of rows continues.
        self._trainer.feed.unlearn(state)
        self._engine.rate_factor /= ROLL_BACK_RATE
        self._trainer.version += 1
        self._trainer.groups.forget_before(self._trainer.version)
        self._trainer.update_sampler()
        self.watch.start_over()
        self._rolled_back = (step, target, alarm.metric)
        # Evaluations of discarded weights are not compared with later ones.
        self._heldout = {evaluated: rate for evaluated, rate in self._heldout.items() if evaluated <= target}
        self.watch.series[HELDOUT] = Series()
        for evaluated, (rate, error) in self._heldout.items():
            self.watch.series[HELDOUT].add(StepMean(evaluated, rate), error)
        if self._best is not None and self._best[0] > target:
            kept = checkpoint_steps(self._checkpoints)
            left = [(evaluated, rate) for evaluated, (rate, _) in self._heldout.items() if evaluated in kept]
            self._best = max(left, key=lambda best: best[1], default=None)
        self.save(step + 1)
        self.remember(step + 1)
        return target

    def _quarantine(self, alarm: Alarm) -> list[str]:
        """Copy the completions of an alarm's steps to quarantine/, and return the paths of the copies."""
        names = []
        if rank() == 0:
            folder = self._folder / QUARANTINE
            folder.mkdir(exist_ok=True)
            for step in range(alarm.since, alarm.step + 1):
                for path in sorted((self._folder / "completions").glob(f"step-{step:06d}*.parquet")):
                    shutil.copyfile(path, folder / path.name)
                    names.append(f"{QUARANTINE}/{path.name}")
        return names

    def _log_change(self, alarm: Alarm, action: Action, evidence: Mapping[str, Any]) -> None:
        """Log an action other than a warning, with the current factor of the learning rate."""
        self._log(alarm, action, {**evidence, "rate_factor": self._engine.rate_factor})

    def _log(self, alarm: Alarm, action: Action, evidence: Mapping[str, Any]) -> None:
        """Write an alarm and its action to alarms.jsonl, and print the alarm if it changes the run (`CHANGES`)."""
        if rank() != 0:
            return
        record = {**asdict(alarm), "action": action, **evidence}
        write_anyway(self._folder, partial(append_lines, self._folder / ALARMS, record))
        if action in CHANGES:
            self._progress.note(f"{alarm.line()} {CHANGES[action].format(**evidence)}")
