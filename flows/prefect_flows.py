"""The Prefect flows `curate`, `profile`, `select`, `synth`, `train`, `run` and `review`. They only connect stages.

Each stage is one task. Tasks pass paths and hashes, but never rows. Prefect's own caching is off, because stages are
cached by content in the run directory. The parameter of a flow is the configuration of a run, so flows can be served or
deployed as they are:

    from truegold.flows.prefect_flows import run

    if __name__ == "__main__":
        run.serve(name="gsm8k")

This module has no `from __future__ import annotations`, because Prefect cannot resolve string annotations of a served
flow.
"""

import logging
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import UUID

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.exceptions import FlowPauseTimeout, MissingContextError, NotPausedError
from prefect.flow_runs import pause_flow_run, resume_flow_run
from prefect.logging.handlers import APILogWorker, PrefectConsoleHandler
from prefect.runtime import flow_run

from truegold.flows.config import RunConfig
from truegold.flows.console import Terminal
from truegold.flows.execute import TRAIN, Call, execute, open_run, open_runner, stage_caller
from truegold.flows.plan import plan
from truegold.flows.published import published
from truegold.pipeline.report.stage import PAGE
from truegold.pipeline.report.training import describe_waiting
from truegold.pipeline.review.review_measures import count_waiting
from truegold.pipeline.review.reviewed_run import ReviewedRun
from truegold.pipeline.running.disk import DigestCache, read_whole_lines
from truegold.pipeline.running.stage import Stage, StageResult, work_folder
from truegold.pipeline.running.stage_table import Phase, phase_of
from truegold.pipeline.tables.losses import loss_lines
from truegold.train.guards.run_log import ALARMS
from truegold.verifiers import SetupError

REPORT = f"report/{PAGE}"
"""The path of the report in a run's directory."""

RUN_NAME = "{config.name}"
"""The name of a flow run in Prefect: the name of truegold's run."""

LOG_SECONDS = 10
"""Maximum number of seconds that a flow run waits at its end to send its log to Prefect."""

REPORTS_URL = "TRUEGOLD_REPORTS_URL"
"""The environment variable with the address of a web server for `runs_dir`. Links to reports begin with it."""


class _FlowLog(Terminal):
    """Writes the lines of the terminal to the log of the running flow or task.

    It also prints them, unless Prefect prints its log itself, as a worker does.
    """

    def _print(self, text: str) -> None:
        if not _log(f"{self._stage}: {text}"):
            super()._print(text)

    def tell(self, text: str) -> None:
        """Print a line, and log it."""
        if not _log(text):
            super().tell(text)


def _log(text: str) -> bool:
    """Write a line to Prefect's log. Return whether Prefect prints the line too."""
    try:
        run_logger = get_run_logger()
    except MissingContextError:  # Threads of a stage do not belong to the task.
        return False
    run_logger.info("%s", text)
    logger: logging.Logger | None = getattr(run_logger, "logger", None)
    handlers: list[logging.Handler] = []
    while logger is not None:
        handlers += logger.handlers
        logger = logger.parent if logger.propagate else None
    return any(isinstance(handler, PrefectConsoleHandler) and handler.level <= logging.INFO for handler in handlers)


def flush_logs() -> None:
    """Send the remaining lines of the log to Prefect."""
    APILogWorker.drain_all(timeout=LOG_SECONDS)


@task(task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def stage_task(name: str, stage: Stage, call: Call) -> StageResult:
    """Run one stage. name: the name of the task on Prefect's page."""
    del name
    return call(stage)


@flow(name="truegold-curate", flow_run_name=RUN_NAME, validate_parameters=True)
def curate(config: RunConfig) -> Path:
    """Turn raw rows into rows that may be profiled, with ledger, flags and report."""
    return _flow(config, Phase.CURATE)


@flow(name="truegold-profile", flow_run_name=RUN_NAME, validate_parameters=True)
def profile(config: RunConfig) -> Path:
    """Curate, then measure pass rates with the model."""
    return _flow(config, Phase.PROFILE)


@flow(name="truegold-select", flow_run_name=RUN_NAME, validate_parameters=True)
def select(config: RunConfig) -> Path:
    """Curate and profile, then choose the rows worth training on."""
    return _flow(config, Phase.SELECT)


@flow(name="truegold-synth", flow_run_name=RUN_NAME, validate_parameters=True)
def synth(config: RunConfig) -> Path:
    """Run everything up to the synthesis of positives."""
    return _flow(config, Phase.SYNTH)


@flow(name="truegold-train", flow_run_name=RUN_NAME, validate_parameters=True)
def train(config: RunConfig) -> Path:
    """Run everything up to and including GRPO."""
    return _flow(config, Phase.TRAIN)


@flow(name="truegold-run", flow_run_name=RUN_NAME, validate_parameters=True)
def run(config: RunConfig) -> Path:
    """Run every stage of the configuration, and the report. Return the run's directory."""
    return _flow(config, Phase.REPORT)


@flow(name="truegold-review", flow_run_name=RUN_NAME, validate_parameters=True)
def review(config: RunConfig, wait_hours: float = 168, look_every_seconds: float = 30) -> Path:
    """Curate, pause until a person has decided about the rows that are held back, and run the rest.

    The run resumes when all rows have decisions. If you resume it earlier on Prefect's page, rows without a decision
    stay held back. Raises SetupError after `wait_hours`.
    """
    run_dir = _flow(config, Phase.CURATE)
    if waiting := _count_held(run_dir):
        flow_run_id = flow_run.get_id()
        _publish_waiting(config.name, run_dir, waiting)
        ended = Event()
        watcher = Thread(
            target=_resume_when_decided, args=(run_dir, flow_run_id, look_every_seconds, ended), daemon=True
        )
        watcher.start()
        try:
            pause_flow_run(timeout=int(3600 * wait_hours), poll_interval=max(1, min(10, int(look_every_seconds))))
        except (FlowPauseTimeout, RuntimeError) as error:
            raise SetupError(
                f"Nobody has decided about {_count_held(run_dir):,} rows of {run_dir} within {wait_hours:g} hours.",
                f"truegold review {shlex.quote(str(run_dir))}, then run this flow again: finished stages are kept.",
            ) from error
        finally:
            ended.set()
    return _flow(config, Phase.REPORT)


def _count_held(run_dir: Path) -> int:
    return count_waiting(ReviewedRun.open(run_dir)).total()


def _publish_waiting(name: str, run_dir: Path, waiting: int) -> None:
    """Publish an artifact with the number of decisions that the run waits for."""
    link = _link(run_dir)
    where = f"[the report]({link}), and " if link else ""
    command = f"truegold review {shlex.quote(str(run_dir))}"
    page = (
        f"# `{name}` waits for {waiting:,} decisions\n\n{where}`{command}` opens the rows. "
        "The run goes on when nothing waits any more, or when it is resumed here.\n"
    )
    create_markdown_artifact(page, key=f"{_slug(name)}-waiting", description=f"{waiting:,} rows are held back")
    _log(f"{waiting:,} rows wait for a decision: {command}")


def _resume_when_decided(run_dir: Path, flow_run_id: str, look_every_seconds: float, ended: Event) -> None:
    """Resume the flow run when all rows are decided."""
    while not ended.wait(look_every_seconds):
        try:
            if _count_held(run_dir) == 0:
                resume_flow_run(UUID(flow_run_id))
                return
        except NotPausedError:
            continue  # The flow run has not paused yet, or a person has resumed it.


FLOWS = {
    Phase.CURATE: curate,
    Phase.PROFILE: profile,
    Phase.SELECT: select,
    Phase.SYNTH: synth,
    Phase.TRAIN: train,
    Phase.REPORT: run,
}
"""The flow that runs a configuration up to each phase."""


def _flow(config: RunConfig, until: Phase) -> Path:
    with published(config, _FlowLog().tell):
        return _run(config, until)


def _run(config: RunConfig, until: Phase) -> Path:
    stages = plan(config, until)
    with open_run(config) as run_dir, open_runner(config.run, run_dir) as runner:
        call = stage_caller(run_dir, _FlowLog(), runner)
        called: list[Stage] = []
        earlier_report = _report_time(run_dir)

        def as_task(stage: Stage) -> StageResult:
            called.append(stage)
            return stage_task(stage.name, stage, call)

        try:
            finished = execute(stages, run_dir, as_task, config.loss_bounds)
        except Exception:
            _publish_traces(config.name, run_dir, called, earlier_report)
            raise
    _publish_alarms(config.name, run_dir / TRAIN)
    _publish_rollouts(config.name, run_dir / TRAIN)
    _publish(config.name, run_dir, finished)
    return run_dir


def _publish_traces(name: str, run_dir: Path, called: Sequence[Stage], earlier_report: int | None) -> None:
    """Publish the report of a failed run, and the alarms if its training failed.

    Files of an earlier run are ignored.
    """
    if (training := next((stage for stage in called if stage.name == TRAIN), None)) is not None:
        _publish_alarms(name, work_folder(training, run_dir, DigestCache(run_dir / ".digests.json")))
    if _report_time(run_dir) != earlier_report:
        _publish_report(name, run_dir)


def _report_time(run_dir: Path) -> int | None:
    """Return the time when the report was written, in nanoseconds, or None if there is no report."""
    report = run_dir / REPORT
    return report.stat().st_mtime_ns if report.exists() else None


def _publish_alarms(name: str, training: Path | None) -> None:
    alarms = [] if training is None else read_whole_lines(training / ALARMS)
    columns = ("step", "guard", "action", "metric", "value", "causes", "remedy")
    if table := [{column: alarm[column] for column in columns} for alarm in alarms]:
        create_table_artifact(table, key=f"{_slug(name)}-alarms", description="Guards of the training")


def _publish_rollouts(name: str, training: Path) -> None:
    """Publish how long the sampler and the trainer of an asynchronous training waited for each other."""
    if table := describe_waiting(training):
        create_table_artifact(table, key=f"{_slug(name)}-rollouts", description="Rollouts beside the update")


def _slug(name: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in name.lower()).strip("-")


def _publish(name: str, run_dir: Path, finished: Sequence[StageResult]) -> None:
    """Publish a summary, the counts by reason, and a link to the report on Prefect's page, as artifacts."""
    slug = _slug(name)
    rows = [
        f"| {result.name} | {result.seconds:.1f} | {result.report.rows_in:,} | {result.report.rows_out:,} |"
        for result in finished
    ]
    table_of_stages = "\n".join(["| stage | seconds | rows in | rows out |", "|---|--:|--:|--:|", *rows])
    link = _link(run_dir)
    report = f"[The report]({link})" if link else f"The report is `{(run_dir / REPORT).resolve()}`"
    losses = "\n\n".join(loss_lines(result.report for result in finished))
    page = f"# truegold run `{name}`\n\n{losses}\n\n{table_of_stages}\n\n{report}.\n"
    create_markdown_artifact(page, key=f"{slug}-summary", description=str(run_dir))
    table = [
        {"phase": str(phase_of(result.name)), "stage": result.name, "reason": reason, "rows": count}
        for result in finished
        for reason, count in result.report.counts.items()
    ]
    if table:
        create_table_artifact(table, key=f"{slug}-reasons", description="Rows by stage and reason")
    _publish_report(name, run_dir)


def _publish_report(name: str, run_dir: Path) -> None:
    """Publish a link to the report, if `runs_dir` is served. Browsers do not open local files from Prefect's page."""
    if link := _link(run_dir):
        create_link_artifact(link, key=f"{_slug(name)}-report", link_text="The report")


def _link(run_dir: Path) -> str | None:
    """Return the address of a run's report, or None if `runs_dir` is not served or there is no report.

    A query in the address, such as `?token=...` of `truegold review`, is added to the link.
    """
    address = os.environ.get(REPORTS_URL)
    if not address or not (run_dir / REPORT).exists():
        return None
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{quote(run_dir.name)}/{REPORT}"))
