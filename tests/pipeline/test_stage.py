"""Stages are complete or absent, cached by content, resumed after a kill, and never lost to another configuration."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from truegold.pipeline.config.base import StageConfig
from truegold.pipeline.running import isolation
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.isolation import StageCrashed
from truegold.pipeline.running.progress import NullProgress, Progress
from truegold.pipeline.running.stage import Output, Stage, StageReport, StageResult, cached_result, run_stage, work_key
from truegold.pipeline.tables.rows import ROW_SCHEMA, write_rows
from truegold.verifiers import ConfigError, GuardError, InputError, SetupError
from truegold.verifiers.sandbox.errors import Preempted

HERE = f"{__name__}:"


class Shout(StageConfig):
    """A stage for these tests: upper-cases a file."""

    mark: str = "!"
    fail: str = ""


def shout(inputs: Mapping[str, Path], config: Shout, out_dir: Path, progress: Progress) -> StageReport:
    calls = inputs["text"].parent / "calls"
    calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
    if config.fail == "bug":
        raise RuntimeError("a bug")
    if config.fail == "input":
        raise InputError("the text is too quiet.", "Shout.")
    if config.fail == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    progress.start("shouting", 1)
    progress.advance()
    (out_dir / "shouted.txt").write_text(inputs["text"].read_text().upper() + config.mark)
    (out_dir / "scratch").mkdir(exist_ok=True)
    (out_dir / "scratch" / "left").write_text("only for a resumed run")
    return StageReport(1, 1, {"edit:shouted": 1})


@pytest.fixture
def text(tmp_path: Path) -> Path:
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "text.txt").write_text("hello")
    return folder / "text.txt"


def stage(text: Path | Output, isolated: bool = False, name: str = "shout", **config: Any) -> Stage:
    # Isolated stages are imported by name in another process, so this file must be importable there as well.
    module = "shouting" if isolated else __name__
    return Stage(name, f"{module}:shout", 1, Shout(**config), {"text": text}, isolated=isolated)


def go(planned: Stage, run_dir: Path) -> StageResult:
    run_dir.mkdir(exist_ok=True)
    return run_stage(planned, run_dir, DigestCache(run_dir / ".digests.json"), NullProgress())


def calls(text: Path) -> int:
    return len((text.parent / "calls").read_text())


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def failed(planned: Stage, run_dir: Path) -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        go(planned, run_dir)


def test_unfinished_work_is_taken_up_with_other_tunable_settings(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    failing, mended = (
        replace(stage(text, mark=mark, fail=fail), tunable=("mark", "fail", "absent.section"))
        for mark, fail in (("!", "bug"), ("?", ""))
    )
    failed(failing, run_dir)
    (left,) = (run_dir / ".partial").iterdir()
    (left / "checkpoint").write_text("step 40")
    finished = go(mended, run_dir)
    assert (finished.path / "checkpoint").read_text() == "step 40"
    assert (finished.path / "shouted.txt").read_text() == "HELLO?"


def test_unfinished_work_starts_over_with_other_settings_of_any_other_kind(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    failed(replace(stage(text, fail="bug"), tunable=("fail",)), run_dir)
    (left,) = (run_dir / ".partial").iterdir()
    (left / "checkpoint").write_text("step 40")
    assert not (go(replace(stage(text, mark="?"), tunable=("fail",)), run_dir).path / "checkpoint").exists()


def test_a_finished_stage_runs_anew_with_other_tunable_settings_and_comes_back(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    loud, quiet = (replace(stage(text, mark=mark), tunable=("mark",)) for mark in "!.")
    for planned, mark in ((loud, "!"), (quiet, "."), (loud, "!")):
        assert (go(planned, run_dir).path / "shouted.txt").read_text() == f"HELLO{mark}"
    assert calls(text) == 2


def test_a_finished_stage_stays_where_its_aims_change_and_unfinished_work_starts_over(
    text: Path, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    loud, quiet = (replace(stage(text, mark=mark), aims=("mark",)) for mark in "!.")
    assert (go(loud, run_dir).path / "shouted.txt").read_text() == "HELLO!"
    assert (go(quiet, run_dir).path / "shouted.txt").read_text() == "HELLO!"
    assert calls(text) == 1
    digests = DigestCache(run_dir / ".digests.json")
    assert work_key(loud, run_dir, digests) != work_key(quiet, run_dir, digests)


def test_finished_work_that_a_kill_left_under_other_tunable_settings_is_set_aside(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    loud, quiet = (replace(stage(text, mark=mark), tunable=("mark",)) for mark in "!.")
    finished = go(loud, run_dir)
    key = work_key(loud, run_dir, DigestCache(run_dir / ".digests.json"))
    finished.path.rename(run_dir / ".partial" / f"shout-{key[:12]}")
    assert (go(quiet, run_dir).path / "shouted.txt").read_text() == "HELLO."
    assert (go(loud, run_dir).path / "shouted.txt").read_text() == "HELLO!"
    assert calls(text) == 2


def test_a_stage_runs_once_and_then_comes_from_the_cache(text: Path, tmp_path: Path) -> None:
    first = go(stage(text), tmp_path / "run")
    second = go(stage(text), tmp_path / "run")
    assert (first.cached, second.cached) == (False, True)
    assert (second.path / "shouted.txt").read_text() == "HELLO!"
    assert second.report == first.report
    assert not (second.path / "scratch").exists()
    assert calls(text) == 1


@pytest.mark.parametrize("change", ["input", "config", "version", "output"])
def test_whatever_could_change_the_output_runs_the_stage_again(text: Path, tmp_path: Path, change: str) -> None:
    run_dir = tmp_path / "run"
    done = go(stage(text), run_dir)
    again = stage(text)
    if change == "input":
        text.write_text("goodbye")
    elif change == "config":
        again = stage(text, mark="?")
    elif change == "version":
        again = Stage("shout", again.fn, 2, again.config, again.inputs)
    else:
        (done.path / "shouted.txt").write_text("cut")
    assert not go(again, run_dir).cached
    assert calls(text) == 2


def test_going_back_to_an_earlier_configuration_runs_nothing(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    go(stage(text), run_dir)
    go(stage(text, mark="?"), run_dir)
    back = go(stage(text), run_dir)
    assert back.cached
    assert (back.path / "shouted.txt").read_text() == "HELLO!"
    assert go(stage(text, mark="?"), run_dir).cached
    assert calls(text) == 2


def test_a_failed_stage_leaves_no_folder_and_keeps_the_earlier_one(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    with pytest.raises(RuntimeError, match="a bug"):
        go(stage(text, fail="bug"), run_dir)
    assert not (run_dir / "shout").exists()
    go(stage(text), run_dir)
    with pytest.raises(InputError):
        go(stage(text, fail="input"), run_dir)
    assert (run_dir / "shout" / "shouted.txt").read_text() == "HELLO!"


def test_a_folder_finished_before_a_kill_is_taken_as_it_is(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    done = go(stage(text), run_dir)
    (run_dir / ".partial").mkdir(exist_ok=True)
    # The kill came just before the rename.
    done.path.rename(run_dir / ".partial" / f"shout-{done.key[:12]}")
    assert go(stage(text), run_dir).cached
    assert calls(text) == 1


def test_a_stage_that_depends_on_a_changed_output_runs_again_and_an_equal_output_stops_there(
    text: Path, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    later = stage(Output("shout", "shouted.txt"), name="later")
    go(stage(text), run_dir)
    assert not go(later, run_dir).cached
    # Another version has the same output.
    go(Stage("shout", f"{__name__}:shout", 2, Shout(), {"text": text}), run_dir)
    assert go(later, run_dir).cached
    go(stage(text, mark="?"), run_dir)
    assert not go(later, run_dir).cached


def test_a_stage_whose_input_was_never_made_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has not been run"):
        go(stage(Output("nothing", "x.txt")), tmp_path / "run")


def test_a_foreign_folder_of_the_same_name_is_left_alone(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    (run_dir / "shout").mkdir(parents=True)
    (run_dir / "shout" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="in the way"):
        go(stage(text), run_dir)
    assert (run_dir / "shout" / "mine.txt").read_text() == "mine"


def test_cached_result_neither_runs_nor_moves(text: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    digests = DigestCache(run_dir / ".digests.json")
    assert cached_result(stage(text), run_dir, digests) is None
    done = go(stage(text), run_dir)
    again = cached_result(stage(text), run_dir, digests)
    assert again is not None
    assert again.key == done.key
    assert cached_result(stage(Output("nothing", "x")), run_dir, digests) is None


def test_an_edited_verifier_runs_the_stages_that_ask_it(tmp_path: Path) -> None:
    checks = tmp_path / "checks.py"
    checks.write_text("def always(response, gold):\n    return True\n")
    rows = tmp_path / "text.parquet"
    row = {
        "id": "a",
        "prompt": "p",
        "verifier": f"{checks}:always",
        "verifier_args": "{}",
        "source": "s",
        "source_row": 1,
    }
    write_rows(rows, [row], ROW_SCHEMA)
    run_dir = tmp_path / "run"
    asks = Stage("shout", f"{__name__}:count_rows_stage", 1, Shout(), {"rows": rows}, judges="rows")
    go(asks, run_dir)
    assert go(asks, run_dir).cached
    checks.write_text("def always(response, gold):\n    return False\n")
    assert not go(asks, run_dir).cached


def count_rows_stage(inputs: Mapping[str, Path], config: Shout, out_dir: Path, progress: Progress) -> StageReport:
    return StageReport(1, 1)


# Isolated stages.

CHILD = """
import os, signal, time
from pathlib import Path
from truegold.pipeline.config.stages import StageConfig
from truegold.pipeline.running.stage import StageReport
from truegold.verifiers import GuardError, InputError

class Config(StageConfig):
    do: str = "finish"

class OutOfMemoryError(RuntimeError):
    "It stands in for torch's."

def work(inputs, config, out_dir, progress):
    if config.do == "bug":
        print("something odd", flush=True)
        raise RuntimeError("a bug in the stage")
    if config.do == "input":
        raise InputError("row 7 is odd.", "Mend it.")
    if config.do == "guard":
        raise GuardError("The engines disagree.", "Sample at one.", "probe")
    if config.do == "full_gpu":
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
    if config.do == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if config.do == "wait":
        (out_dir / "pid").write_text(str(os.getpid()))
        time.sleep(600)
    if config.do == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(1)
    progress.start("working", 2)
    progress.advance(2, "done")
    (out_dir / "made.txt").write_text("made")
    return StageReport(3, 2, {"drop:odd": 1}, {"pid": os.getpid()})
"""


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "child_stage.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(str(folder))
    import child_stage

    yield child_stage
    sys.modules.pop("child_stage")


class Recorder(NullProgress):
    """Keeps the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def start(self, label: str, total: int | None = None) -> None:
        self.calls.append(("start", label, total))

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        self.calls.append(("advance", steps, detail, total))


def isolated(child: Any, do: str) -> Stage:
    return Stage("work", "child_stage:work", 1, child.Config(do=do), {}, isolated=True)


def test_an_isolated_stage_reports_from_another_process(child: Any, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    recorder = Recorder()
    result = run_stage(isolated(child, "finish"), run_dir, DigestCache(run_dir / ".digests.json"), recorder)
    assert result.report.counts == {"drop:odd": 1}
    assert result.report.facts["pid"] != os.getpid()
    assert recorder.calls == [("start", "working", 2), ("advance", 2, "done", None)]
    assert (run_dir / "work" / "made.txt").read_text() == "made"


def test_an_isolated_stage_raises_its_own_error_here(child: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 7 is odd\. Mend it\."):
        go(isolated(child, "input"), tmp_path / "run")


def test_what_stopped_an_isolated_stage_keeps_its_name(child: Any, tmp_path: Path) -> None:
    with pytest.raises(GuardError, match=r"The engines disagree\. Sample at one\.") as stopped:
        go(isolated(child, "guard"), tmp_path / "run")
    assert (stopped.value.exit_code, stopped.value.guard) == (5, "probe")


def test_a_bug_in_an_isolated_stage_shows_the_end_of_its_log(child: Any, tmp_path: Path) -> None:
    with pytest.raises(StageCrashed, match=r"(?s)something odd.*a bug in the stage"):
        go(isolated(child, "bug"), tmp_path / "run")
    assert "a bug in the stage" in (tmp_path / "run" / "logs" / "work.log").read_text()


def test_a_gpu_that_is_full_is_a_line(child: Any, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"no memory left: CUDA out of memory\. Set engine"):
        go(isolated(child, "full_gpu"), tmp_path / "run")
    assert "Tried to allocate" in (tmp_path / "run" / "logs" / "work.log").read_text()


def test_a_killed_isolated_stage_is_a_setup_error(child: Any, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="killed by SIGKILL"):
        go(isolated(child, "killed"), tmp_path / "run")


@pytest.fixture
def hearing() -> Iterator[None]:
    """Listen to SIGINT, as the command line does: what a shell starts in the background is deaf to it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.mark.usefixtures("hearing")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_this_process_alone_ends_an_isolated_stage(
    child: Any, tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long it would wait for a process that has not heard the signal, and kill it.
    monkeypatch.setattr(isolation, "PATIENCE", 3600.0)
    Timer(2.0, os.kill, (os.getpid(), number)).start()
    with pytest.raises(Preempted, match=number.name) as ended:
        go(isolated(child, "wait"), tmp_path / "run")
    assert ended.value.exit_code == 128 + number


@pytest.mark.usefixtures("hearing")
def test_a_signal_that_a_finished_stage_no_longer_heeds_ends_the_run_before_the_next_one(
    child: Any, tmp_path: Path
) -> None:
    assert go(isolated(child, "deaf"), tmp_path / "run").report.counts == {"drop:odd": 1}
    with pytest.raises(Preempted, match="SIGTERM"):
        go(isolated(child, "finish"), tmp_path / "run")
    assert go(isolated(child, "finish"), tmp_path / "run").report.counts == {"drop:odd": 1}


def test_an_isolated_stage_dies_with_its_parent(child: Any, tmp_path: Path) -> None:
    script = (
        "import child_stage\nfrom pathlib import Path\n"
        "from truegold.pipeline.running.disk import DigestCache\n"
        "from truegold.pipeline.running.progress import NullProgress\n"
        "from truegold.pipeline.running.stage import Stage, run_stage\n"
        f"run_dir = Path({str(tmp_path / 'run')!r})\nrun_dir.mkdir()\n"
        "stage = Stage('work', 'child_stage:work', 1, child_stage.Config(do='wait'), {}, isolated=True)\n"
        "run_stage(stage, run_dir, DigestCache(run_dir / '.digests.json'), NullProgress())\n"
    )
    parent = subprocess.Popen([sys.executable, "-P", "-c", script])
    pid = wait_for_pid(tmp_path / "run")
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while alive(pid):
        assert time.monotonic() < deadline, "the stage outlived its parent"
        time.sleep(0.05)


def wait_for_pid(run_dir: Path) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in run_dir.glob(".partial/work-*/pid"):
            if path.read_text():
                return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError("the stage never started")


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    try:
        return "State:\tZ" not in status.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
