"""What all tests share: quiet, offline settings, a tenth of the long tables, and a real tiny model, made once."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from property_tests import example_line, load_profile
from tables import is_full_run, is_in_the_tenth

load_profile()

# Collections of garbage while everything is imported take a fifth of the imports, in each worker.
gc.disable()

# `python -m pytest` puts the working directory in front, where `import verifiers` and `import train` are the product's.
ROOT = Path(__file__).parents[1]
sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != ROOT]

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# The threads of a tiny model's operations mostly spin for each other: one thread takes a tenth of their CPU time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

TEXTS = [
    {"prompt": f"What is {a}+{b}?", "completion": f"{a}+{b}={a + b} \\boxed{{{a + b}}}"}
    for a in range(9)
    for b in range(9)
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked `long_run`, and nine tenths of those marked `long_table`, the same ones every time."""
    if is_full_run():
        return
    deselected = {
        item
        for item in items
        if item.get_closest_marker("long_run")
        or (item.get_closest_marker("long_table") and not is_in_the_tenth(item.nodeid))
    }
    if deselected:
        config.hook.pytest_deselected(items=list(deselected))
        items[:] = [item for item in items if item not in deselected]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what was imported out of collections of garbage: DeepSpeed asks for a whole one for every engine."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Let all go as usual, without libraries that complain of what is left."""
    gc.unfreeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the name of a test that fails at once, on a line of its own, rather than at the end of the run."""
    plugins = session.config.pluginmanager
    reporter = plugins.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return

    class FailureNames:
        """Prints failures as they are reported."""

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                row = f" {report.head_line}" if isinstance(report, pytest.SubtestReport) else ""
                reporter.write_line(f"\nFAILED {report.nodeid} ({report.when}){row}", red=True)

    plugins.register(FailureNames())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Print how to keep the example of a property test that fails."""
    report = yield
    if call.excinfo is not None and (line := example_line(call.excinfo.value, getattr(item, "fixturenames", ()))):
        report.sections.append(("To keep this example", line))
    return report


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an untrained tiny checkpoint."""
    from truegold.pipeline.running.progress import NullProgress
    from truegold.train.config.models import TinyModel
    from truegold.train.model.checkpoints import build_tiny

    folder = tmp_path_factory.mktemp("tiny")
    texts = folder / "texts.jsonl"
    texts.write_text("".join(json.dumps(entry) + "\n" for entry in TEXTS))
    config = TinyModel(vocab_size=320, hidden_size=64, intermediate_size=96, heads=2)
    build_tiny({"texts": texts}, config, folder, NullProgress())
    return folder / "checkpoint"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what is fetched from places, and runs that are published there, in a folder of the test's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def memory() -> Iterator[Any]:
    """The place `memory://`, which is empty."""
    fs = pytest.importorskip("fsspec").filesystem("memory")
    yield fs
    fs.store.clear()
