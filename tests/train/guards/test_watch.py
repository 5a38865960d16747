"""The guards on recorded runs: silent on a healthy one, and quick on each kind of fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.train.guards.table import GUARDS, MetricGuard
from truegold.train.guards.watch import Alarm, GuardWatch

RECORDED = Path(__file__).parents[2] / "data" / "guards"
Line = dict[str, Any]


def recorded(name: str) -> list[Line]:
    return [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text().splitlines()]


def watch_run(lines: list[Line], watch: GuardWatch | None = None) -> list[Alarm]:
    watch = watch or GuardWatch()
    return [
        alarm
        for line in lines
        for alarm in watch.observe(line["step"], {name: value for name, value in line.items() if name != "step"})
    ]


def test_a_healthy_run_raises_no_alarm() -> None:
    assert watch_run(recorded("healthy")) == []


def test_what_ends_first_beside_the_update_is_no_start() -> None:
    def run(settling: int) -> list[str]:
        watch = GuardWatch(settling=settling)
        shares = [0.0, 0.6, *[0.95] * 30]
        lines = [{"truncated": share, "truncated_between": 0.2, "groups": 8.0} for share in shares]
        return [alarm.guard for step, line in enumerate(lines) for alarm in watch.observe(step, line)]

    assert run(0)[0] == "truncation"
    assert run(3) == []


def test_a_rate_100_times_too_high_is_noticed_at_the_second_dead_step() -> None:
    alarms = watch_run(recorded("rate_x100"))
    assert (alarms[0].guard, alarms[0].step, alarms[0].since, alarms[0].action) == (
        "pass_rate_start",
        2,
        1,
        "roll_back",
    )
    assert "learning rate" in alarms[0].causes


FLOORS = {guard.name: guard.floor for guard in GUARDS}
FAULTS: dict[str, tuple[Callable[[Line], Line], str, str]] = {
    "the verifier raises": (lambda line: {"unjudged": 1.0, "pass_rate": None, "reward_gap": None}, "unjudged", "stop"),
    "the verifier fails on what is written": (lambda line: {"avoidable": 0.8}, "avoidable", "stop"),
    "answers take a form that is not read": (
        lambda line: {"unread": 0.5, "ended": 60.0, "profile_unread": 0.05, "profile_ended": 800.0},
        "unread",
        "pause",
    ),
    "the verdicts turn around": (lambda line: {"canaries_changed": 1.0}, "verdicts_changed", "stop"),
    "right answers are punished": (lambda line: {"reward_gap": -line["reward_gap"]}, "reward_sign", "stop"),
    "a reward is NaN": (lambda line: {"reward": float("nan"), "reward_gap": float("nan")}, "reward_not_finite", "stop"),
    "the update has the other sign": (
        lambda line: {"push_gap": -1.9, "reward_gap": 1.0, "reward_spread": 1.0},
        "update_sign",
        "stop",
    ),
    "a domain has one reward": (
        lambda line: {"reward_spread/chemistry": 0.0, "pass_rate/chemistry": 0.5, "reward_spread/algebra": 1.0},
        "domain_constant",
        "warn",
    ),
    "the reward is blind to being right": (lambda line: {"reward_gap": 0.03}, "reward_blind", "pause"),
    "every reward is the same": (lambda line: {"reward_spread": 0.0, "pass_rate": 0.5}, "reward_constant", "stop"),
    "completions run on": (lambda line: {"truncated": 0.9, "length_mean": 32.0}, "truncation", "roll_back"),
    "completions repeat themselves": (lambda line: {"repetition": 0.7}, "repetition", "roll_back"),
    "the language changes": (lambda line: {"foreign_script": 0.6}, "language", "roll_back"),
    "the policy dies": (lambda line: {"pass_rate": 0.01, "trained_completions": 0.0}, "pass_rate_fall", "roll_back"),
    "the policy falls apart": (lambda line: {"entropy": 2.5}, "entropy_up", "halve_rate"),
    "most tokens are clipped": (lambda line: {"clip_share": 0.5}, "clip_share", "halve_rate"),
    "the engines disagree": (lambda line: {"mismatch_abs": 0.4}, "mismatch", "stop"),
    "a gradient is NaN": (lambda line: {"not_finite": 1.0}, "not_finite", "skip_step"),
    "the held-out rows are unlearnt": (lambda line: {"heldout_pass_rate": 0.2}, "heldout_fall", "roll_back"),
}


@rows("fault", FAULTS)
def test_a_fault_is_noticed_within_five_steps_by_its_guard(fault: str) -> None:
    spoil, guard, action = FAULTS[fault]
    first = 40
    lines = recorded("healthy")[: first + 5]
    alarms = watch_run(lines[:first] + [{**line, **spoil(line)} for line in lines[first:]])
    assert (guard, action) in {(alarm.guard, alarm.action) for alarm in alarms}
    assert all(alarm.baseline is not None or alarm.threshold == FLOORS[alarm.guard] for alarm in alarms)
    assert all(alarm.step < first + 5 for alarm in alarms)


@pytest.mark.parametrize(
    ("unread", "ended", "profile_unread", "profile_ended", "acts"),
    [
        (0.5, 60.0, 0.05, 800.0, True),
        (0.5, 60.0, 0.45, 800.0, False),  # A model whose profile was like this already.
        (0.25, 8.0, 0.05, 800.0, False),  # 2 of 8 may be chance.
        (1.0, 8.0, 0.05, 800.0, True),
        (0.12, 64.0, 0.05, 40.0, False),
        (1.0, 60.0, None, None, False),  # Without a profile nobody knows what is usual.
        (None, 0.0, 0.05, 800.0, False),  # All were cut.
    ],
)
def test_unread_completions_are_acted_on_only_where_the_profile_had_fewer_for_certain(
    unread: float | None, ended: float, profile_unread: float | None, profile_ended: float | None, acts: bool
) -> None:
    metrics = {"unread": unread, "ended": ended, "profile_unread": profile_unread, "profile_ended": profile_ended}
    watch = GuardWatch()
    alarms = [alarm.guard for step in range(4) for alarm in watch.observe(step, metrics)]
    assert alarms == (["unread"] if acts else [])


@pytest.mark.parametrize(("metric", "guard"), [("reward", "reward_fall"), ("groups_teaching", "teaching_fall")])
def test_what_falls_though_the_pass_rate_does_not_is_warned_of(metric: str, guard: str) -> None:
    lines = [{"step": step, metric: 0.8 + 0.02 * (step % 3)} for step in range(40)]
    assert watch_run(lines) == []
    lines += [{"step": 40 + step, metric: 0.1} for step in range(3)]
    assert [(alarm.guard, alarm.step, alarm.action) for alarm in watch_run(lines)] == [(guard, 42, "warn")]


@pytest.mark.parametrize(
    ("error_before", "fallen", "error", "alarms"),
    [
        (0.06, 0.133, 0.045, []),  # 15 rows with 4 samples each: 2.4 standard errors of the difference.
        (0.06, 0.0, 0.0, ["heldout_fall"]),
        (0.01, 0.133, 0.01, ["heldout_fall"]),
    ],
)
def test_the_held_out_rows_are_unlearnt_only_where_both_measurements_are_sure(
    error_before: float, fallen: float, error: float, alarms: list[str]
) -> None:
    lines = [
        {"step": 0, "heldout_pass_rate": 0.317, "heldout_error": error_before},
        {"step": 2, "heldout_pass_rate": fallen, "heldout_error": error},
    ]
    assert [alarm.guard for alarm in watch_run(lines)] == alarms


def test_the_error_of_the_best_measurement_counts_and_not_that_of_an_earlier_one() -> None:
    lines = [
        {"step": 0, "heldout_pass_rate": 0.5, "heldout_error": 0.06},
        {"step": 10, "heldout_pass_rate": 0.55, "heldout_error": 0.01},
        {"step": 20, "heldout_pass_rate": 0.4, "heldout_error": 0.01},
    ]
    assert [alarm.guard for alarm in watch_run(lines)] == ["heldout_fall"]


def test_a_streak_does_not_outlive_a_long_time_without_a_measurement() -> None:
    def alarms_with_gap(steps: int) -> list[str]:
        wrong = {"reward_gap": -0.1, "reward_spread": 1.0}
        lines: list[Line] = [{"step": 0, **wrong}, {"step": steps, **wrong}]
        return [alarm.guard for alarm in watch_run(lines) if alarm.guard == "reward_sign"]

    assert alarms_with_gap(3) == ["reward_sign"]
    assert alarms_with_gap(30) == []


def test_a_streak_that_has_ended_before_the_run_is_not_unfinished() -> None:
    watch = GuardWatch()
    watch.observe(10, {"reward_gap": -0.1})
    assert [alarm.guard for alarm in watch.unfinished(11)] == ["reward_sign"]
    watch.observe(11, {"reward_gap": None})
    assert watch.unfinished(12) == []


def test_a_pause_is_not_repeated_when_the_run_goes_on() -> None:
    lines: list[Line] = [{"step": step, "reward_gap": 0.01, "reward_spread": 1.0} for step in range(60)]
    assert [(alarm.guard, alarm.step) for alarm in watch_run(lines)] == [("reward_blind", 3)]


def test_what_older_weights_have_sampled_is_no_fault_of_the_engines() -> None:
    def alarms_of(share: float) -> set[str]:
        fresh = {"mismatch_abs": 0.01, "mismatch_fresh": 0.01, "fresh_tokens": 1.0}
        stale = {"mismatch_abs": 0.3, "mismatch_fresh": share * 0.01, "fresh_tokens": share}
        lines: list[Line] = [{"step": step, **(fresh if step % 10 == 0 else stale)} for step in range(40)]
        return {alarm.guard for alarm in watch_run(lines)}

    assert alarms_of(0.0) == alarms_of(0.1) == set()
    apart = {"mismatch_abs": 0.4, "mismatch_fresh": 0.04, "fresh_tokens": 0.1}
    lines: list[Line] = [{"step": step, "mismatch_abs": 0.0, "fresh_tokens": 1.0} for step in range(8)]
    lines += [{"step": 8 + step, **apart} for step in range(2)]
    assert [alarm.guard for alarm in watch_run(lines)] == ["mismatch"]


def test_guards_can_be_turned_off_by_name() -> None:
    lines = [{**line, "truncated": 0.9} for line in recorded("healthy")]
    lines[:20] = recorded("healthy")[:20]
    assert {alarm.guard for alarm in watch_run(lines)} == {"truncation"}
    assert watch_run(lines, GuardWatch(off={"truncation"})) == []


def test_noise_of_small_scale_is_harmless_however_regular_it_was() -> None:
    guard = MetricGuard("g", "m", "up", "recent", "warn", "", "", floor=0.1, mads=3.0)
    quiet = [{"step": step, "m": 0.5} for step in range(30)]
    assert watch_run([*quiet, {"step": 30, "m": 0.59}], GuardWatch(guards=[guard])) == []
    assert watch_run([*quiet, {"step": 30, "m": 0.61}], GuardWatch(guards=[guard])) != []


def test_nothing_to_learn_is_no_fault_where_all_is_learnt() -> None:
    lines = [{"step": step, "pass_rate": 1.0, "trained_completions": 0.0} for step in range(10)]
    assert watch_run(lines) == []
    assert watch_run([{**line, "pass_rate": 0.875} for line in lines]) == []
    unlearnt = [{**line, "pass_rate": 0.0} for line in lines]
    assert [alarm.guard for alarm in watch_run(unlearnt)][:1] == ["nothing_passes"]
    learnt_before: Line = {"step": 0, "pass_rate": 0.3, "trained_completions": 8.0}
    after = [{**line, "step": line["step"] + 1} for line in unlearnt]
    assert "nothing_teaches" in {alarm.guard for alarm in watch_run([learnt_before, *after])}


@pytest.mark.parametrize(
    ("passed", "judged", "is_wrong"),
    [
        (0.05, 256, True),  # Another prompt than the profile's.
        (1.0, 256, True),
        (1.0, 64, True),
        (0.19, 256, False),  # Temperature 1.5 in place of 1.
        (0.45, 256, False),
        (0.0, 8, False),  # Eight completions may all be wrong.
    ],
)
def test_the_first_pass_rates_are_compared_with_the_profile_s_as_far_as_chance_allows(
    passed: float, judged: float, is_wrong: bool
) -> None:
    lines = [
        {"step": step, "pass_rate": passed, "profile_pass_rate": 0.32, "judged": judged, "trained_completions": 8.0}
        for step in range(5)
    ]
    alarms = [(alarm.guard, alarm.step, alarm.action) for alarm in watch_run(lines)]
    assert alarms == ([("profile", 1, "pause")] if is_wrong else [])


def test_an_update_against_a_reward_that_does_not_pay_for_being_right_is_not_the_update_s_fault() -> None:
    watch = GuardWatch(off={"reward_blind"})
    for step in range(5):
        assert watch.observe(step, {"reward_gap": 0.02, "reward_spread": 1.0}) == []
        assert watch.observe(step, {"push_gap": -0.5}) == []
    # The two are known at different times of a step.
    for step in range(5, 7):
        watch.observe(step, {"reward_gap": 0.9, "reward_spread": 1.0})
        alarms = watch.observe(step, {"push_gap": -0.5})
    assert [alarm.guard for alarm in alarms] == ["update_sign"]


def test_an_action_that_is_off_is_a_warning() -> None:
    lines = recorded("healthy")[:20] + [{**line, "truncated": 0.9} for line in recorded("healthy")[20:30]]
    assert {(alarm.guard, alarm.action) for alarm in watch_run(lines, GuardWatch(off={"roll_back"}))} == {
        ("truncation", "warn")
    }


def test_a_step_may_be_observed_in_parts() -> None:
    whole, parts = GuardWatch(), GuardWatch()
    for line in recorded("rate_x100"):
        metrics = {name: value for name, value in line.items() if name != "step"}
        known = {name: metrics[name] for name in list(metrics)[:8]}
        rest = {name: value for name, value in metrics.items() if name not in known}
        first = parts.observe(line["step"], known) + parts.observe(line["step"], rest)
        assert {alarm.guard for alarm in whole.observe(line["step"], metrics)} >= {alarm.guard for alarm in first}


@given(st.integers(0, 40))
def test_a_watch_goes_on_from_its_state(cut: int) -> None:
    lines = recorded("healthy")[:40] + [{**line, "step": line["step"] + 40} for line in recorded("rate_x100")[1:]]
    first, second = GuardWatch(), GuardWatch()
    expected = watch_run(lines)
    before = watch_run(lines[:cut], first)
    second.restore(json.loads(json.dumps(first.state())))
    assert before + watch_run(lines[cut:], second) == expected


def test_a_value_that_is_wrong_does_not_become_the_rule() -> None:
    lines = recorded("healthy")[:40]
    lines += [{"step": 40 + step, "pass_rate": 0.0} for step in range(30)]
    assert len(watch_run(lines)) >= 10


def _condition(guard: MetricGuard) -> str:
    if guard.against == "limit":
        bound = f"{'above' if guard.direction == 'up' else 'below'} {guard.floor:g}"
    else:
        bound = f"{'over' if guard.direction == 'up' else 'under'} the {guard.against} by {guard.floor:g}"
    parts = [bound]
    if guard.noise is not None:
        parts.append("noise")
    if guard.mads:
        parts.append(f"{guard.mads:g} MAD")
    if guard.ratio:
        parts.append(f"{guard.ratio:g} times it")
    if guard.error:
        parts.append("4 standard errors" if guard.against == "limit" else "4 standard errors of the difference")
    if guard.until is not None:
        parts.append(f"before step {guard.until}")
    return f"`{guard.metric}` {', '.join(parts)}"


def test_the_docs_have_the_table_as_it_is() -> None:
    lines = (Path(__file__).parents[3] / "docs" / "reference" / "guards.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]
    documented = {cells[0]: cells for cells in rows if len(cells) == 4}
    for guard in GUARDS:
        _, condition, steps, action = documented.pop(f"`{guard.name}`")
        assert condition == _condition(guard), guard.name
        assert (steps, action) == (str(guard.steps), guard.action), guard.name
    assert documented == {}


def test_every_guard_has_a_cause_a_remedy_and_a_name_of_its_own() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)
    for guard in GUARDS:
        assert guard.causes and guard.remedy.endswith(".")


@rows(
    "metric, value, sound, guard, action",
    [
        ("weights_spoilt", 1.0, 0.0, "weights_spoilt", "roll_back"),
        ("ranks_drifted", 1.0, 0.0, "ranks_drifted", "stop"),
        ("kl_at_start", 0.3, 1e-3, "reference", "stop"),
        ("push_missing", 0.9, 0.0, "advantages_lost", "stop"),
        ("prompts_moved", 1.0, 0.0, "prompts_moved", "stop"),
        ("evaluation_wrong", 1.0, 0.0, "evaluation_wrong", "stop"),
        ("members_alike", 20.0, 9.0, "members_alike", "stop"),
        ("weights_moved", 1.0, 0.01, None, None),
    ],
)
def test_what_cannot_be_in_a_sound_run_is_acted_on_at_once(
    metric: str, value: float, sound: float, guard: str | None, action: str | None
) -> None:
    assert watch_run([{**STEADY, metric: sound, "step": step} for step in range(4)]) == []
    alarms = watch_run([{**STEADY, metric: value, "step": 0}])
    assert [(alarm.guard, alarm.action) for alarm in alarms] == ([(guard, action)] if guard else [])


def test_log_probabilities_that_never_agreed_stop_a_run() -> None:
    lines = [{"step": step, "pass_rate": 0.4, "mismatch_abs": 2.35} for step in range(3)]
    assert [(alarm.guard, alarm.action) for alarm in watch_run(lines)][:1] == [("mismatch_always", "stop")]


STEADY: Line = {
    "groups": 16.0,
    "pass_rate": 0.3,
    "profile_pass_rate": 0.3,
    "groups_teaching": 0.6,
    "feed_expected_teaching": 0.6,
    "trained_completions": 70.0,
    "truncated": 0.02,
    "lr": 1e-6,
    "grad_norm": 0.3,
    "weights_moved": 1.0,
}
ALIKE = {"trained_completions": 0.0, "groups_teaching": 0.0, "positive_token_mass": 0.0}
MASKED = {"trained_completions": 0.0, "positive_token_mass": 0.0}


@pytest.mark.parametrize(
    ("change", "guard"),
    [
        (ALIKE, "groups_alike"),
        (ALIKE | {"pass_rate": 0.95}, "groups_alike"),
        (ALIKE | {"truncated": 1.0, "pass_rate": 0.0}, "never_ends"),
        (MASKED | {"truncated": 1.0}, "never_ends"),
        (MASKED, "nothing_trained"),
        (ALIKE | {"pass_rate": 0.0}, "nothing_passes"),
        ({"lr": 0.0}, "weights_still"),
        ({"weights_moved": 0.0}, "weights_still"),
        ({"weights_moved": 2e-4}, "weights_still"),
        ({"grad_norm": 0.0}, "weights_still"),
    ],
)
@pytest.mark.parametrize("groups", [8.0, 16.0, 512.0])
def test_a_run_that_trains_nothing_is_stopped_within_five_steps_by_its_cause(
    change: Line, guard: str, groups: float
) -> None:
    lines = [{**STEADY, "groups": groups, **change, "step": step} for step in range(6)]
    alarms = watch_run(lines)
    assert {alarm.guard for alarm in alarms} == {guard}
    assert (alarms[0].action, alarms[0].step < 5) == ("stop", True)


@pytest.mark.parametrize(
    "change",
    [
        {"feed_expected_teaching": 0.1},  # Problems that are all right or all wrong.
        {"feed_expected_teaching": 0.02, "pass_rate": 1.0},  # All is learnt.
        {"profile_pass_rate": None},  # Nothing is known of the problems.
    ],
)
def test_steps_without_a_group_that_teaches_are_left_alone_where_chance_makes_them(change: Line) -> None:
    lines = [{**STEADY, "groups": 4.0, **ALIKE, **change, "step": step} for step in range(8)]
    assert watch_run(lines) == []
    watch = GuardWatch()
    watch_run(lines, watch)
    # A whole run of them has nothing to export all the same.
    assert watch.untrained(8) is not None


def test_small_batches_are_taken_together_until_they_tell() -> None:
    """4 problems a step scatter by .2; 64 by .05."""

    def steps_to_notice(groups: float, between: float, fallen: list[float]) -> int | None:
        usual = [0.25 + between / groups**0.5 * (1 if step % 2 else -1) for step in range(30)]
        lines = [
            {"step": step, "pass_rate": rate, "groups": groups, "pass_rate_between": between}
            for step, rate in enumerate([*usual, *fallen])
        ]
        alarms = watch_run(lines)
        return alarms[0].step - 29 if alarms else None

    assert steps_to_notice(4, 0.32, [0.06, 0.13, 0.0, 0.25, 0.06]) is None
    assert steps_to_notice(64, 0.32, [0.0] * 5) == 2
    assert 5 <= (steps_to_notice(4, 0.32, [0.0] * 20) or 0) <= 16


def test_a_fall_that_the_profile_foretold_is_that_of_the_problems() -> None:
    def alarms_of(foretold: float) -> set[str]:
        usual = {"pass_rate": 0.6, "profile_pass_rate": 0.6, "groups": 64.0, "pass_rate_between": 0.3}
        lines: list[Line] = [{"step": step, **usual} for step in range(20)]
        lines += [{**lines[0], "step": 20 + step, "pass_rate": 0.2, "profile_pass_rate": foretold} for step in range(6)]
        return {alarm.guard for alarm in watch_run(lines)}

    assert alarms_of(0.2) == set()
    assert "pass_rate_start" in alarms_of(0.6)
