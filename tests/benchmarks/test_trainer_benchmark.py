"""The trainer's benchmark counts right. No trainer runs here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import pytest  # noqa: E402
import trainer_tables  # noqa: E402
from trainer_peers.marks import LOADED, STEP, Marks, read_marks  # noqa: E402
from trainer_peers.memory import MemoryWatch, rss_mb, share_memory, total_mb  # noqa: E402
from trainer_peers.reward import vowels  # noqa: E402
from trainer_peers.setting import Setting, load_problems  # noqa: E402

SETTING = {"prompts": 2, "group": 4, "tokens": 32, "dtype": "float32", "steps": 3, "lr": 1e-6}


def one_run(walls, peak):
    steps = [
        {"wall_s": wall, "cpu_s": wall, "tokens": 32.0, "phases": {"rollout": 1.0, "update": 2.0}} for wall in walls
    ]
    return {"load_s": 9.0, "steps": steps, "peak_mb": peak, "load_average": 0.5}


RESULTS = {
    "machine": "2 CPU cores",
    "threads": 2,
    "versions": {"truegold": {"torch": "2.13.0"}, "TRL": {"torch": "2.13.0", "trl": "1.16.0"}},
    "settings": {"small float32": SETTING, "large float32": SETTING},
    "warm_up": 1,
    "runs": {
        "small float32": {
            "truegold": [one_run([50.0, 4.0, 4.0], 900.0), one_run([30.0, 2.0, 4.0], 1200.0)],
            "TRL": [one_run([9.0, 8.0, 8.0], 1000.0)],
            "TRL, mixed precision": [],
        },
        "large float32": {},
    },
}


def test_the_warm_up_stands_apart_and_the_highest_peak_counts():
    found = trainer_tables.summary(RESULTS, "small float32", "truegold")
    assert found["wall_s"] == 4.0
    assert (found["fastest_s"], found["slowest_s"]) == (2.0, 4.0)
    assert found["completions_per_s"] == pytest.approx(2.0)
    assert found["tokens_per_s"] == pytest.approx(64.0)
    assert found["first_s"] == 40.0
    assert found["peak_mb"] == 1200.0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_memory_that_two_processes_share_is_counted_once():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    child = subprocess.Popen([sys.executable, "-P", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        # The kernel has threads as processes that share their memory.
        assert share_memory(os.getpid(), thread.native_id)
        assert not share_memory(os.getpid(), child.pid)
        both = total_mb([os.getpid(), thread.native_id, child.pid])
        assert both == pytest.approx(rss_mb(os.getpid()) + rss_mb(child.pid), rel=0.1)
    finally:
        done.set()
        child.communicate(b"\n")


def test_the_report_has_a_table_for_each_setting_that_was_run():
    text = trainer_tables.report(RESULTS)
    assert text.count("## ") == 1
    assert "| TRL | 1.00 (1/2.00) |" in text
    assert "mixed" not in text


def test_marks_come_back_as_they_were_written(tmp_path):
    marks = Marks(tmp_path)
    marks.write(LOADED)
    marks.write(STEP, tokens=32.0)
    loaded, step = read_marks(tmp_path)
    assert (loaded["mark"], step["mark"], step["tokens"]) == (LOADED, STEP, 32.0)
    assert step["at"] >= loaded["at"]
    assert step["peak_rss_mb"] > 0


def test_settings_and_problems_come_back_as_they_were_written(tmp_path):
    setting = Setting(**SETTING)
    setting.save(tmp_path)
    assert Setting.load(tmp_path) == setting
    assert setting.completions == 8
    (tmp_path / "problems.jsonl").write_text(json.dumps("What is\n2+2?") + "\n")
    assert load_problems(tmp_path) == ["What is\n2+2?"]


def test_the_reward_is_the_share_of_vowels():
    assert vowels("aeb!", None) == 0.5
    assert vowels("", None) == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_watched_up_to_a_moment():
    watch = MemoryWatch(os.getpid())
    began = time.monotonic()
    watch.start()
    while not watch.samples:
        time.sleep(0.01)
    watch.stop()
    assert watch.peak_mb(until=began) == 0.0
    assert watch.peak_mb(until=time.monotonic()) > 10
