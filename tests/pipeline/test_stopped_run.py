"""A training that is stopped leaves an alarm and a report page that shows it on the time line."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import fake_run as fake
import pytest
from report_pages import Page
from rich.console import Console

from truegold.flows.console import Terminal
from truegold.flows.execute import execute, report_again, stage_caller
from truegold.flows.plan import report_stage
from truegold.pipeline.config.stages import CleanConfig
from truegold.pipeline.running.disk import DigestCache, read_whole_lines
from truegold.pipeline.running.stage import Stage, StageReport, StageResult, work_folder
from truegold.train.guards.run_log import ALARMS
from truegold.verifiers import GuardError, SetupError

BEFORE_TRAINING = fake.FULL[: fake.FULL.index("train")]


def stop_training(tmp_path: Path, error: Exception, prepare: Callable[[Path], object] = lambda folder: None) -> Path:
    """Go through a run whose training ends with `error`, after `prepare` has filled its folder; return the run's."""
    run_dir = fake.FakeRun(tmp_path / "runs" / "fake").build(BEFORE_TRAINING).folder
    for record in run_dir.glob("*/stage.json"):
        record.write_text(json.dumps({**json.loads(record.read_text()), "outputs": {}}))
    stages = [Stage(name, "", 1, CleanConfig()) for name in (*BEFORE_TRAINING, "train")]
    stages.append(report_stage("fake", fake.FULL, 4))
    run_really = stage_caller(run_dir, Terminal(Console(quiet=True)))

    def call(stage: Stage) -> StageResult:
        if stage.name == "report":
            return run_really(stage)
        if stage.name == "train":
            folder = work_folder(stage, run_dir, DigestCache(run_dir / ".digests.json"))
            folder.mkdir(parents=True)
            prepare(folder)
            raise error
        return StageResult(stage.name, run_dir / stage.name, stage.name, StageReport(0, 0), 0.0, cached=True)

    with pytest.raises(type(error)):
        execute(stages, run_dir, call)
    return run_dir


def test_a_training_that_fails_before_it_has_a_folder_leaves_its_alarm(tmp_path: Path) -> None:
    def remove(folder: Path) -> None:
        shutil.rmtree(folder)

    run_dir = stop_training(tmp_path, SetupError("There is no GPU."), remove)
    assert [alarm["guard"] for alarm in alarms_of(run_dir)] == ["machine"]


def test_what_the_traces_stumble_over_does_not_hide_what_stopped_the_run(tmp_path: Path) -> None:
    def block(folder: Path) -> None:
        shutil.rmtree(folder)
        folder.write_text("no folder")

    stop_training(tmp_path, SetupError("There is no GPU."), block)


def alarms_of(run_dir: Path) -> list[dict[str, object]]:
    (log,) = run_dir.glob(f".partial/train-*/{ALARMS}")
    return read_whole_lines(log)


def marks(run_dir: Path) -> list[str]:
    """Return the labels of the marks on the first chart of the page."""
    html = (run_dir / "report" / "index.html").read_text()
    first_chart = html[html.index('<div class="curves">') :].split("</figure>", 1)[0]
    return re.findall(r'class="alarm"[^>]*><title>([^<]*)</title>', first_chart)


def test_a_stop_by_the_probe_at_the_start_is_an_alarm_on_an_empty_time_line(tmp_path: Path) -> None:
    error = GuardError("At weights version 0 the engines disagree. Cause: temperature.", "Sample at one.", "probe")
    run_dir = stop_training(tmp_path, error)
    (alarm,) = alarms_of(run_dir)
    assert (alarm["step"], alarm["guard"], alarm["action"], alarm["exit_code"]) == (0, "probe", "stop", 5)
    text = Page((run_dir / "report" / "index.html").read_text()).visible_text
    assert "Stopped at step 0 by probe" in " ".join(text.split())
    assert "Cause: temperature. Sample at one." in text
    assert marks(run_dir) == ["step 0: probe, stop"]


def write_steps(folder: Path, steps: int = 20) -> None:
    lines = [{"step": step, "pass_rate": 0.3 + 0.02 * step, "entropy": 1.0} for step in range(steps)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_an_engine_that_dies_is_an_alarm_at_the_step_it_died_in(tmp_path: Path) -> None:
    error = GuardError("The sampling engine died at step 20: EngineDeadError: x", "Go on.", "engine")
    run_dir = stop_training(tmp_path, error, write_steps)
    assert [(alarm["step"], alarm["guard"]) for alarm in alarms_of(run_dir)] == [(20, "engine")]
    assert marks(run_dir) == ["step 20: engine, stop"]
    summary = json.loads((run_dir / "report" / "summary.json").read_text())
    assert summary["training"]["ending"]["guard"] == "engine"
    assert [moved["metric"] for moved in summary["training"]["moved"]] == ["pass_rate"]


@pytest.mark.parametrize(
    ("error", "name", "exit_code"),
    [
        (SetupError("DeepSpeed's operator is locked.", "Clear it: rm lock"), "machine", 4),
        (RuntimeError("The process of train ended with status 1."), "crash", 1),
    ],
)
def test_what_no_guard_stops_is_an_alarm_too(tmp_path: Path, error: Exception, name: str, exit_code: int) -> None:
    run_dir = stop_training(tmp_path, error, write_steps)
    (alarm,) = alarms_of(run_dir)
    assert (alarm["guard"], alarm["exit_code"]) == (name, exit_code)
    assert "Stopped at step 20" in Page((run_dir / "report" / "index.html").read_text()).visible_text


def test_a_guard_of_the_table_has_written_its_alarm_itself(tmp_path: Path) -> None:
    def write_alarm(folder: Path) -> None:
        write_steps(folder)
        alarm = {"step": 19, "guard": "unjudged", "action": "stop", "metric": "unjudged", "value": 1.0}
        (folder / ALARMS).write_text(
            json.dumps({**alarm, "causes": "a verifier that raises", "remedy": "Mend it."}) + "\n"
        )

    run_dir = stop_training(tmp_path, GuardError("Step 19: unjudged.", "Mend it.", "unjudged"), write_alarm)
    assert len(alarms_of(run_dir)) == 1
    assert marks(run_dir) == ["step 19: unjudged, stop"]


def test_the_report_of_a_killed_run_shows_its_training_so_far(tmp_path: Path) -> None:
    def begin(folder: Path) -> None:
        write_steps(folder)
        (folder / ALARMS).touch()

    run_dir = stop_training(tmp_path, GuardError("", "", "probe"), begin)
    (log,) = run_dir.glob(f".partial/train-*/{ALARMS}")
    log.write_text("")
    shutil.rmtree(run_dir / "report")
    report_again(run_dir, Terminal(Console(quiet=True)))
    text = Page((run_dir / "report" / "index.html").read_text()).visible_text
    assert "Not finished." in text and "What moved most" in text


def test_an_alarm_that_a_kill_has_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ALARMS).write_text('{"step": 3, "action": "warn"}\n{"step": 4, "act')
    assert read_whole_lines(tmp_path / ALARMS) == [{"step": 3, "action": "warn"}]
