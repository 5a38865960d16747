"""The flows are ordinary Prefect deployments: loadable from their file, with the configuration as their parameter."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Event

import pytest

from truegold.flows.config import RunConfig, validate_config
from truegold.flows.execute import Call
from truegold.pipeline.running.stage import Stage
from truegold.pipeline.running.stage_table import Phase
from truegold.pipeline.tables.losses import LossBounds
from truegold.train.guards.doctor import record_stop
from truegold.verifiers import GuardError, InputError, SetupError

pytestmark = pytest.mark.filterwarnings("default")

FLOWS = Path(__file__).parents[2] / "flows" / "prefect_flows.py"


@pytest.fixture(autouse=True)
def _import_path_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefect leaves the working directory on the import path when it has loaded a flow from its file."""
    monkeypatch.setattr(sys, "path", list(sys.path))


SHORT = ("curate", "profile", "select", "synth", "train")
"""Flows of the same parameters as `run`, which ends later than they do: for `make test-all`."""


@pytest.mark.parametrize("name", ["run", "review", *(pytest.param(name, marks=pytest.mark.long_run) for name in SHORT)])
def test_a_flow_is_loaded_and_validates_its_configuration_as_a_deployment_does(name: str) -> None:
    from prefect.flows import load_flow_from_entrypoint

    flow = load_flow_from_entrypoint(f"{FLOWS}:{name}")
    parameters = flow.validate_parameters({"config": {"data": {"path": "train.jsonl"}, "profile": {"samples": 3}}})
    assert parameters["config"].profile.samples == 3
    assert {"data", "profile", "train"} <= set(flow.parameters.definitions["RunConfig"]["properties"])


def test_a_wrong_configuration_is_refused_before_the_flow_runs() -> None:
    from prefect.exceptions import ParameterTypeError
    from prefect.flows import load_flow_from_entrypoint

    flow = load_flow_from_entrypoint(f"{FLOWS}:run")
    with pytest.raises(ParameterTypeError, match=r"config\.nmae"):
        flow.validate_parameters({"config": {"data": {"path": "train.jsonl"}, "nmae": "x"}})


def test_the_alarms_of_a_training_are_a_table_in_prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from truegold.flows import prefect_flows

    published: list[tuple[str, list[dict[str, object]]]] = []
    monkeypatch.setattr(
        prefect_flows, "create_table_artifact", lambda table, key, description: published.append((key, table))
    )
    prefect_flows._publish_alarms("My run", None)
    prefect_flows._publish_alarms("My run", tmp_path)
    assert published == []
    record_stop(tmp_path, GuardError("The engines disagree.", "Sample at one.", "probe"))
    prefect_flows._publish_alarms("My run", tmp_path)
    ((key, (row,)),) = published
    assert key == "my-run-alarms"
    assert (row["step"], row["guard"], row["action"], row["remedy"]) == (0, "probe", "stop", "Sample at one.")


def test_who_waited_for_whom_beside_the_update_is_a_table_in_prefect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truegold.flows import prefect_flows

    published: list[tuple[str, list[dict[str, object]]]] = []
    monkeypatch.setattr(
        prefect_flows, "create_table_artifact", lambda table, key, description: published.append((key, table))
    )
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "staleness": 0.0}\n')
    prefect_flows._publish_rollouts("My run", tmp_path)
    assert published == []
    steps = [
        {"step": 0, "trainer_waiting": 0.5, "sampler_starved": 0.1, "staleness": 0.0, "staleness_max": 0.0},
        {"step": 1, "trainer_waiting": 0.1, "sampler_starved": 0.2, "staleness": 0.5, "staleness_max": 2.0},
        {"step": 2, "heldout_pass_rate": 0.5},
    ]
    path.write_text("".join(json.dumps(step) + "\n" for step in steps))
    prefect_flows._publish_rollouts("My run", tmp_path)
    ((key, table),) = published
    assert key == "my-run-rollouts"
    assert {row["metric"]: (row["mean"], row["most"]) for row in table} == {
        "trainer_waiting": (0.3, 0.5),
        "sampler_starved": (0.15, 0.2),
        "staleness": (0.25, 0.5),
        "staleness_max": (1.0, 2.0),
    }


def test_a_failed_run_publishes_nothing_that_an_earlier_one_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truegold.flows import prefect_flows

    (tmp_path / "raw.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    data = {"path": str(tmp_path / "raw.jsonl")}
    config = validate_config({"name": "run", "runs_dir": str(tmp_path), "data": data}, "")
    for folder in ("report", ".partial/train-0123"):
        (config.run_dir / folder).mkdir(parents=True)
    (config.run_dir / "report" / "index.html").write_text("of an earlier run")
    earlier_training = config.run_dir / ".partial" / "train-0123"
    record_stop(earlier_training, GuardError("The engines disagree.", "Sample at one.", "probe"))
    published: list[str] = []
    for kind in ("table", "link"):
        monkeypatch.setattr(prefect_flows, f"create_{kind}_artifact", lambda *_, key, **__: published.append(key))

    def fail(stages: list[Stage], run_dir: Path, call: Call, bounds: LossBounds) -> None:
        raise InputError("no such file")

    monkeypatch.setattr(prefect_flows, "execute", fail)
    with pytest.raises(InputError):
        prefect_flows._flow(config, Phase.CURATE)
    assert published == []


def test_a_run_carries_its_name_and_its_log_has_the_lines_of_the_stages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from truegold.flows import prefect_flows

    assert all(flow.flow_run_name == "{config.name}" for flow in prefect_flows.FLOWS.values())
    config = validate_config({"name": "first-try", "data": {"path": "train.jsonl"}}, "test")
    assert prefect_flows.RUN_NAME.format(config=config) == "first-try"
    lines: list[str] = []
    monkeypatch.setattr(prefect_flows, "_log", lines.append)
    with prefect_flows._FlowLog().stage("clean") as terminal:
        terminal.start("cleaning", 1_200)
        terminal.note("3 rows have no text")
    terminal.tell("clean  0.7 s  6 -> 6 rows")
    assert lines == ["clean: cleaning (1,200)", "clean: 3 rows have no text", "clean  0.7 s  6 -> 6 rows"]
    assert "6 -> 6 rows" in capsys.readouterr().err


def test_a_report_is_linked_over_http_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from truegold.flows import prefect_flows

    links: list[str] = []
    monkeypatch.setattr(prefect_flows, "create_link_artifact", lambda link, key, link_text: links.append(link))
    page = tmp_path / "my run" / "report" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("")
    monkeypatch.delenv(prefect_flows.REPORTS_URL, raising=False)
    prefect_flows._publish_report("my run", tmp_path / "my run")
    assert links == []
    monkeypatch.setenv(prefect_flows.REPORTS_URL, "http://host:8000/")
    prefect_flows._publish_report("my run", tmp_path / "my run")
    assert links == ["http://host:8000/my%20run/report/index.html"]


def test_the_token_of_a_served_report_goes_with_its_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from truegold.flows import prefect_flows

    (tmp_path / "my run" / "report").mkdir(parents=True)
    (tmp_path / "my run" / "report" / "index.html").touch()
    monkeypatch.setenv(prefect_flows.REPORTS_URL, "http://host:8620/?token=abc")
    assert prefect_flows._link(tmp_path / "my run") == "http://host:8620/my%20run/report/index.html?token=abc"


@pytest.mark.parametrize(
    ("held", "phases"), [([0], ["curate", "report"]), ([3, 2, 1, 0], ["curate", "report"]), ([3], ["curate"])]
)
def test_a_run_pauses_while_rows_wait_and_goes_on_when_none_does(
    held: list[int], phases: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.exceptions import FlowPauseTimeout

    from truegold.flows import prefect_flows

    called: list[str] = []
    resumed = Event()

    def run_phase(config: RunConfig, until: Phase) -> Path:
        called.append(str(until))
        return tmp_path

    def pause(timeout: int, poll_interval: int) -> None:
        if not resumed.wait(0.5):
            raise FlowPauseTimeout("nobody came")

    monkeypatch.setattr(prefect_flows, "_flow", run_phase)
    monkeypatch.setattr(prefect_flows, "_count_held", lambda run_dir: held.pop(0) if len(held) > 1 else held[0])
    monkeypatch.setattr(prefect_flows, "_publish_waiting", lambda *arguments: called.append("told"))
    monkeypatch.setattr(prefect_flows, "pause_flow_run", pause)
    monkeypatch.setattr(prefect_flows, "resume_flow_run", lambda flow_run_id: resumed.set())
    monkeypatch.setattr(prefect_flows.flow_run, "get_id", lambda: "1a906a65-e5dd-4067-9024-ee3b8a681000")
    config = validate_config({"name": "x", "data": {"path": "train.jsonl"}}, "test")
    waits = held[0] > 0
    if phases == ["curate"]:
        with pytest.raises(SetupError, match="Nobody has decided about 3 rows"):
            prefect_flows.review.fn(config, look_every_seconds=0.01)
    else:
        assert prefect_flows.review.fn(config, look_every_seconds=0.01) == tmp_path
    assert called == [phases[0], *(["told"] if waits else []), *phases[1:]]
