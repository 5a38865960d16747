"""What is done when a guard fires, with a trainer that only takes notes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.guard_actions import QUARANTINE, Responder
from truegold.train.guards.doctor import record_stop, recorded_stop
from truegold.train.guards.run_log import ALARMS
from truegold.train.model.distributed import init_distributed
from truegold.verifiers import GuardError, SetupError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

HEALTHY = {"pass_rate": 0.6, "trained_completions": 64.0, "truncated": 0.0}
DEAD = {**HEALTHY, "pass_rate": 0.0}


class Notes:
    """Stands in for the training engine: keeps folders for checkpoints, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.rate_factor = 1.0
        self.returned: list[int] = []
        self.contents: dict[int, dict[str, Any]] = {}
        self.log: list[str] = []
        self.progress: list[str] = []

    def save(
        self, folder: Path, step: int, state: Mapping[str, Any], kept: Collection[int], *_: Any, **contents: Any
    ) -> None:
        json.dumps(state)
        (folder / f"step-{step:06d}").mkdir(parents=True, exist_ok=True)
        self.contents[step] = contents

    def return_to(self, folder: Path, step: int) -> Mapping[str, Any]:
        self.returned.append(step)
        return {"feed": step}


def responder(out: Path, **guards: Any) -> tuple[Responder, Notes]:
    init_distributed()
    notes = Notes()
    trainer = SimpleNamespace(
        config=GrpoConfig.model_validate({"guards": guards}),
        out_dir=out,
        state=dict,
        feed=SimpleNamespace(unlearn=lambda state: notes.log.append(f"unlearn since {state['feed']}")),
        rollout=SimpleNamespace(engine=SimpleNamespace(forget_prefixes=lambda: notes.log.append("forget")), version=0),
        groups=SimpleNamespace(forget_before=lambda version: None),
        updater=SimpleNamespace(steps=0),
        version=0,
    )
    trainer.evaluate = lambda: {"heldout_pass_rate": 0.5, "heldout_error": 0.01}
    trainer.update_sampler = lambda: notes.log.append(f"sync from {trainer.rollout.version}")
    (out / "completions").mkdir()
    for step in range(60):
        (out / "completions" / f"step-{step:06d}.parquet").write_bytes(b"rows")
    progress = NullProgress()
    progress.note = notes.progress.append  # type: ignore[method-assign]
    made = Responder(trainer, notes, out / "checkpoints", 0, progress)  # type: ignore[arg-type]
    made.save(0)
    return made, notes


def actions(folder: Path) -> list[str]:
    return [alarm["action"] for alarm in read_whole_lines(folder / ALARMS)]


def take(made: Responder, step: int, metrics: Mapping[str, float]) -> None:
    made.may_train(step, dict(metrics))
    made.respond(step, dict(metrics))
    if step % 10 == 9:
        made.save(step + 1)


def test_a_dead_policy_returns_to_the_last_healthy_checkpoint_at_a_quarter_of_the_rate(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    for step in range(22):
        take(made, step, HEALTHY)
    take(made, 22, DEAD)
    take(made, 23, DEAD)
    assert (notes.returned, notes.rate_factor) == ([10], 0.25)
    # The sampling engine may have had other weights under the same version.
    assert notes.log == ["unlearn since 10", "sync from 0"]
    (alarm, *_) = [alarm for alarm in read_whole_lines(tmp_path / ALARMS) if alarm["action"] == "roll_back"]
    assert (alarm["step"], alarm["since"], alarm["returned_to"], alarm["value"]) == (23, 22, 10, 0.0)
    assert alarm["quarantined"] == [f"{QUARANTINE}/step-0000{step}.parquet" for step in (22, 23)]
    assert all((tmp_path / name).exists() for name in alarm["quarantined"])
    (note,) = notes.progress
    assert note.startswith("Step 23: pass_rate_start: pass_rate is 0 ")
    assert note.endswith("The weights are those of step 10, the learning rate 0.25 times the scheduled.")


def test_a_run_that_dies_again_and_again_stops_with_exit_code_5(tmp_path: Path) -> None:
    made, notes = responder(tmp_path, roll_backs=2)
    for step in range(10):
        take(made, step, HEALTHY)
    with pytest.raises(GuardError, match=r"pass_rate is 0 .* The run has stopped") as stopped:
        for step in range(10, 40):
            take(made, step, HEALTHY if step % 3 == 0 else DEAD)
    assert stopped.value.exit_code == 5
    assert len(notes.returned) == 3


def test_healthy_weights_that_are_as_wrong_straight_after_the_return_are_not_to_blame(tmp_path: Path) -> None:
    made, _ = responder(tmp_path)
    for step in range(22):
        take(made, step, HEALTHY)
    take(made, 22, DEAD)
    take(made, 23, DEAD)
    take(made, 24, DEAD)
    with pytest.raises(GuardError, match=r"not the policy: the weights of step 10 had 0\.6") as stopped:
        take(made, 25, DEAD)
    assert stopped.value.guard == "not_the_policy"
    assert actions(tmp_path)[-1] == "stop"


def test_weights_that_die_again_later_are_to_blame(tmp_path: Path) -> None:
    made, _ = responder(tmp_path)
    for step in range(22):
        take(made, step, HEALTHY)
    for step, metrics in enumerate([DEAD, DEAD, HEALTHY, DEAD, DEAD, HEALTHY, DEAD], start=22):
        take(made, step, metrics)
    assert [alarm["action"] for alarm in read_whole_lines(tmp_path / ALARMS) if alarm["action"] != "warn"] == [
        "roll_back",
        "roll_back",
    ]


def test_a_gradient_that_is_nan_straight_after_the_return_is_not_the_policy_s(tmp_path: Path) -> None:
    made, _ = responder(tmp_path)
    take(made, 0, HEALTHY)
    with pytest.raises(GuardError, match="not the policy"):
        for step in range(1, 9):
            made.may_train(step, dict(HEALTHY))
            made.respond(step, {**HEALTHY, "not_finite": 1.0})
    assert actions(tmp_path) == ["skip_step"] * 3 + [
        "roll_back",
        "stop",
    ]


def test_a_batch_that_shows_what_is_wrong_is_kept_from_the_optimizer(tmp_path: Path) -> None:
    made, _ = responder(tmp_path)
    assert made.may_train(0, {**HEALTHY, "unjudged": 1.0})
    made.respond(0, {})
    assert not made.may_train(1, {**HEALTHY, "unjudged": 1.0})
    with pytest.raises(GuardError, match="a verifier that raises"):
        made.respond(1, {})


def test_steps_that_are_not_finite_are_left_out_three_times_and_then_the_run_returns(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    for step in range(4):
        made.may_train(step, dict(HEALTHY))
        made.respond(step, {**HEALTHY, "not_finite": 1.0})
    assert actions(tmp_path) == ["skip_step", "skip_step", "skip_step", "roll_back"]
    assert notes.returned == [0]


def test_what_is_derived_from_metrics_before_the_update_is_not_forgotten_after_it(tmp_path: Path) -> None:
    made, _ = responder(tmp_path)
    constant = {**HEALTHY, "reward_spread/algebra": 0.0, "pass_rate/algebra": 0.5}
    for step in range(3):
        made.may_train(step, dict(constant))
        made.respond(step, {**constant, "loss": 0.1})
    assert [(alarm["guard"], alarm["step"]) for alarm in read_whole_lines(tmp_path / ALARMS)] == [
        ("domain_constant", 2)
    ]


def test_a_pause_keeps_what_was_learnt_and_says_that_the_same_command_goes_on(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    far = {**HEALTHY, "profile_pass_rate": 0.1, "judged": 64.0}
    take(made, 0, far)
    with pytest.raises(GuardError, match="The run is paused; the same command continues it"):
        take(made, 1, far)
    assert notes.returned == []
    assert (tmp_path / "checkpoints" / "step-000002").exists()


def test_a_checkpoint_has_an_optimizer_where_a_killed_run_goes_on_from_it(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    made._trainer.config = GrpoConfig.model_validate({"steps": 20, "save_every": 10})
    for step in range(20):
        if step == 5:
            made.evaluated(5, {"heldout_pass_rate": 0.5, "heldout_error": 0.01})
        take(made, step, HEALTHY)
    contents = {
        step: (saved["counts"], saved["optimizer"], "Step" in (saved["card"] or ""))
        for step, saved in notes.contents.items()
    }
    assert contents == {
        0: (True, True, False),
        5: (False, False, False),
        10: (True, True, True),
        20: (True, False, True),
    }


def test_what_is_exported_is_not_what_died_last(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    for step in range(20):
        take(made, step, HEALTHY)
        if step == 9:
            made.evaluated(10, {"heldout_pass_rate": 0.5, "heldout_error": 0.01})
    made.finish(20, {"heldout_pass_rate": 0.1, "heldout_error": 0.01})
    assert notes.returned == [10]


def test_what_training_began_from_is_not_exported(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    made.evaluated(0, {"heldout_pass_rate": 0.5, "heldout_error": 0.01})
    for step in range(20):
        take(made, step, HEALTHY)
    with pytest.raises(GuardError, match="heldout_fall"):
        made.finish(20, {"heldout_pass_rate": 0.1, "heldout_error": 0.01})
    assert notes.returned == [0]


@pytest.mark.parametrize("ends", [False, True])
def test_healthy_weights_that_fall_as_low_when_they_are_evaluated_again_are_not_to_blame(
    tmp_path: Path, ends: bool
) -> None:
    made, notes = responder(tmp_path)
    made._trainer.evaluate = lambda: {"heldout_pass_rate": 0.0}  # type: ignore[method-assign]
    made.evaluated(0, {"heldout_pass_rate": 0.5, "heldout_error": 0.01})
    for step in range(10):
        take(made, step, HEALTHY)
    fallen: dict[str, float | None] = {"heldout_pass_rate": 0.0, "heldout_error": 0.0}
    with pytest.raises(GuardError, match="sampling of evaluations have changed") as stopped:
        if ends:
            made.finish(10, fallen)
        made.evaluated(10, fallen)
        take(made, 10, HEALTHY)
    assert stopped.value.guard == "not_the_policy"
    assert notes.returned[-1] == 0


def test_the_first_guard_of_the_table_is_the_diagnosis(tmp_path: Path) -> None:
    made, _ = responder(tmp_path)
    made.may_train(0, {**HEALTHY, "profile_evidence": 20.0})
    with pytest.raises(GuardError, match="verdicts_wrong"):
        made.respond(0, {"verdicts_wrong": 1.0})


def test_a_policy_that_has_begun_to_die_is_not_exported(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    for step in range(19):
        take(made, step, HEALTHY)
    take(made, 19, DEAD)
    made.finish(20, {})
    assert notes.returned == [10]


def test_one_bad_batch_at_the_end_is_chance_where_the_held_out_pass_rate_holds(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    made.evaluated(0, {"heldout_pass_rate": 0.5, "heldout_error": 0.01})
    for step in range(19):
        take(made, step, HEALTHY)
    take(made, 19, DEAD)
    made.finish(20, {"heldout_pass_rate": 0.6, "heldout_error": 0.01})
    assert notes.returned == []


def test_a_hiccup_of_the_verifier_at_the_end_takes_back_nothing_where_the_held_out_pass_rate_holds(
    tmp_path: Path,
) -> None:
    made, notes = responder(tmp_path)
    made.evaluated(0, {"heldout_pass_rate": 0.5, "heldout_error": 0.01})
    for step in range(19):
        take(made, step, HEALTHY)
    take(made, 19, {**HEALTHY, "unjudged": 0.6})
    made.finish(20, {"heldout_pass_rate": 0.6, "heldout_error": 0.01})
    assert notes.returned == []


def test_a_return_forgets_the_buffer_of_groups_and_keeps_the_error_of_the_best_evaluation(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    made._trainer.groups = SimpleNamespace(  # type: ignore[assignment]
        forget_before=lambda version: notes.log.append(f"forget before {version}")
    )
    made.evaluated(0, {"heldout_pass_rate": 0.5, "heldout_error": 0.05})
    for step in range(9):
        take(made, step, HEALTHY)
    for step in (9, 10):
        take(made, step, DEAD)
    assert notes.returned == [0]
    assert notes.log == ["unlearn since 0", "forget before 1", "sync from 0"]
    # 3.4 standard errors of the difference.
    made.evaluated(20, {"heldout_pass_rate": 0.26, "heldout_error": 0.05})
    take(made, 20, HEALTHY)
    assert notes.returned == [0]


def test_groups_that_are_all_right_but_a_few_are_no_reason_to_return(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    for step in range(20):
        take(made, step, {**HEALTHY, "pass_rate": 0.875, "trained_completions": 0.0 if step > 12 else 64.0})
    made.finish(20, {})
    assert notes.returned == []


def test_a_discarded_evaluation_is_no_measure_of_what_comes(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    made.evaluated(0, {"heldout_pass_rate": 0.3, "heldout_error": 0.01})
    for step in range(9):
        take(made, step, HEALTHY)
    made.evaluated(9, {"heldout_pass_rate": 0.6, "heldout_error": 0.01})
    for step in (9, 10):
        take(made, step, {**HEALTHY, "truncated": 0.9})
    assert notes.returned == [0]
    made.evaluated(20, {"heldout_pass_rate": 0.35, "heldout_error": 0.01})
    take(made, 20, HEALTHY)
    assert notes.returned == [0]
    made.evaluated(30, {"heldout_pass_rate": 0.2, "heldout_error": 0.01})
    take(made, 30, HEALTHY)
    assert len(notes.returned) == 2


def test_a_fallen_evaluation_is_never_the_best_one(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    made.evaluated(0, {"heldout_pass_rate": 0.5, "heldout_error": 0.01})
    for step in range(10):
        take(made, step, HEALTHY)
    made.evaluated(10, {"heldout_pass_rate": 0.6, "heldout_error": 0.01})
    for step in (10, 11):
        take(made, step, {**HEALTHY, "truncated": 0.9})
    made.evaluated(20, {"heldout_pass_rate": 0.2, "heldout_error": 0.01})
    take(made, 20, HEALTHY)
    assert len(notes.returned) == 2
    assert notes.returned[1] < 20


def test_another_fault_after_a_return_says_nothing_of_the_return(tmp_path: Path) -> None:
    made, notes = responder(tmp_path)
    for step in range(22):
        take(made, step, HEALTHY)
    for step in (22, 23):
        take(made, step, {**HEALTHY, "truncated": 0.9})
    assert len(notes.returned) == 1
    made.may_train(24, dict(HEALTHY))
    made.respond(24, {**HEALTHY, "not_finite": 1.0})
    assert read_whole_lines(tmp_path / ALARMS)[-1]["action"] == "skip_step"


def test_what_went_before_a_kill_still_tells_the_policy_from_the_rest(tmp_path: Path) -> None:
    made, _ = responder(tmp_path)
    for step in range(22):
        take(made, step, HEALTHY)
    for step in (22, 23):
        take(made, step, DEAD)
    (tmp_path / "again").mkdir()
    resumed, _ = responder(tmp_path / "again")
    resumed.restore(json.loads(json.dumps(made.state())))
    with pytest.raises(GuardError, match="not the policy"):
        for step in (24, 25):
            take(resumed, step, DEAD)


def test_no_return_at_the_end_where_returns_are_off(tmp_path: Path) -> None:
    made, notes = responder(tmp_path, off=["roll_back"])
    made.evaluated(0, {"heldout_pass_rate": 0.5, "heldout_error": 0.01})
    made.finish(20, {"heldout_pass_rate": 0.1, "heldout_error": 0.01})
    assert notes.returned == []
    assert actions(tmp_path) == ["warn"]


def test_a_guard_that_is_off_does_nothing(tmp_path: Path) -> None:
    made, notes = responder(tmp_path, off=["all"])
    for step in range(30):
        take(made, step, DEAD if step > 10 else HEALTHY)
    assert notes.returned == [] and read_whole_lines(tmp_path / ALARMS) == []


def test_what_has_ended_a_run_that_went_on_is_marked(tmp_path: Path) -> None:
    record_stop(tmp_path, SetupError("Rank 1 was killed.", "Give it memory."))
    assert recorded_stop(tmp_path / ALARMS) is not None
    made, _ = responder(tmp_path)
    assert recorded_stop(tmp_path / ALARMS) is None
    (alarm,) = read_whole_lines(tmp_path / ALARMS)
    assert (alarm["guard"], alarm["resumed_at"]) == ("machine", 0)
    take(made, 0, HEALTHY)
    record_stop(tmp_path, SetupError("Rank 1 was killed again.", "Give it memory."))
    stop = recorded_stop(tmp_path / ALARMS)
    assert stop is not None
    assert stop["causes"] == "Rank 1 was killed again"
