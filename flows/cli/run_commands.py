"""Commands of a run: `truegold plan`, `demo`, `run`, `curate`, `profile`, `select`, `synth` and `train`.

They run stages with or without Prefect. With `--dry-run` they only show the number of rows, the stages to run, and the
expected time:

    data      train.jsonl: 8 records
    columns   prompt question; gold answer (after ####); solution answer; id id; verifier math
    unused    aliases (has the gold among others: data.columns.golds=aliases), topic
    model     none
    stage          state     last time
    ingest         cached    0.1 s for 8 rows
    clean          to run    2.0 s for 8 rows
    ...
    expected  about 3 s for 4 stages; no time is known of 2 stages that have not run here: profile, select

Times come from the last run of the same stages in this folder. If a stage of curation never ran there, it is measured
on some of the rows, unless there are fewer than 2,000. `--json` prints the whole resolved configuration.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import nullcontext
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truegold.flows.cli.options import LastTurnOnly, MaxHeld, MaxRejected
from truegold.flows.console import Terminal, describe_seconds, errors, output, print_line, with_options_of
from truegold.pipeline.running.stage_table import Phase
from truegold.verifiers import ConfigError, SetupError
from truegold.verifiers.extras import check_torch_builds

if TYPE_CHECKING:
    from truegold.flows.config import RunConfig
    from truegold.pipeline.config.sources import DemoSource, FileSource, HubSource
    from truegold.pipeline.running.stage import Stage
    from truegold.train.config.models import PushConfig

Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="Override a setting, such as data.limit=200.")
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show rows, stages and expected time.")]
AsJson = Annotated[bool, typer.Option("--json", help="With --dry-run: print every setting of every stage as JSON.")]

FEWEST_PROBED = 2_000
"""Minimum number of rows for a dry run to measure stages that have not run. With fewer, the run itself is as quick."""

DEMO = Path(__file__).parents[1] / "demo.yaml"
"""The demo's configuration."""
HEAVY = ("torch", "vllm", "deepspeed", "transformers")
"""Packages that only the whole demo needs."""
QUICK = ("name=demo-quick", "model=null", "sft=null", "train=null", "data.problems=600", "data.sft_examples=64")
"""The settings of the quick demo: only curation, and fewer problems."""

ConfigPath = Annotated[
    Path,
    typer.Argument(help="The run's YAML file, or a data file with default settings.", show_default=False),
]
Decisions = Annotated[
    list[Path] | None,
    typer.Option("--decisions", help="A file or a folder of reviewers' decisions; may be repeated."),
]
RunnerOption = Annotated[
    str | None,
    typer.Option(
        "--runner",
        metavar="local|ray|slurm|wait",
        help="Where parts of tables are processed; if not given, as configured.",
    ),
]
PHASE_COMMANDS = {
    "run": (Phase.REPORT, "The main job: all stages of the configuration, from curation to training, and the report."),
    "curate": (Phase.CURATE, "Clean, deduplicate, verify gold and flag; report on every row."),
    "profile": (Phase.PROFILE, "Curate, then measure pass rates with the model."),
    "select": (Phase.SELECT, "Curate and profile, then choose the rows worth training on."),
    "synth": (Phase.SYNTH, "Everything up to positives for the rows that hardly ever pass."),
}


class EngineChoice(StrEnum):
    """The two ways to call the stages."""

    PREFECT = "prefect"
    LOCAL = "local"


EngineOption = Annotated[EngineChoice, typer.Option("--engine", help="Run as Prefect flows, or without Prefect.")]


def run_until(until: Phase, config: RunConfig, engine: EngineChoice, dry_run: bool, as_json: bool) -> None:
    """Run a configuration up to a phase, or show what would run. If `runs_dir` is a URL, the run is published there."""
    from truegold.flows.published import published

    with nullcontext() if dry_run else published(config, lambda line: print_line(line, errors)) as url:
        _run_until(until, config, engine, dry_run, as_json)
    if url is not None:
        print_line(f"published: {url}")


def _run_until(until: Phase, config: RunConfig, engine: EngineChoice, dry_run: bool, as_json: bool) -> None:
    from truegold.flows import execute as execution
    from truegold.flows.plan import plan

    stages = plan(config, until)
    target = _hub_target(config, stages)
    memory = _plan_memory(config, until, dry_run)
    if dry_run:
        _preview(config, stages, memory, as_json)
        return
    if config.model is not None and until is not Phase.CURATE:
        check_torch_builds()
    run_dir = config.run_dir
    cached = execution.all_cached(stages, run_dir) if run_dir.exists() else None
    if cached is not None:
        for result in cached:
            for line in (execution.describe(result), *execution.rejects_in_words(result)):
                print_line(line, errors)
        execution.write_manifest(run_dir, cached)
        errors.print(f"nothing to do: all {len(cached)} stages come from the cache")
        for result in cached:
            config.loss_bounds.check(result.name, result.report)
    elif engine is EngineChoice.LOCAL:
        with execution.open_run(config), execution.open_runner(config.run, run_dir) as runner:
            call = execution.stage_caller(run_dir, Terminal(errors), runner)
            execution.execute(stages, run_dir, call, config.loss_bounds)
    else:
        with execution.open_run(config):
            pass  # If the directory is in use, this raises before a server is started.
        _run_as_flow(until, config)
    print_line(f"run: {run_dir}\nreport: {run_dir / 'report' / 'index.html'}")
    for line in execution.losses_in_words(run_dir):
        errors.print(with_options_of({"--set"}, line), style="red", markup=False, soft_wrap=True)
    _push(run_dir, target)
    if until is Phase.REPORT and (left_out := _left_out({stage.name for stage in stages})) is not None:
        print_line(left_out, errors)
    for line in execution.next_steps(run_dir, shlex.join(["truegold", *sys.argv[1:]])):
        print_line(line, errors)


def _left_out(stages: Set[str]) -> str | None:
    """Return a line on the work that a run left out because a section is missing, or None."""
    if stages.isdisjoint(("profile", "take_rows")):
        return (
            "curated only: nothing was profiled, selected or trained without a model; --set model.path=MODEL names one"
        )
    return None if "train" in stages else "nothing was trained: there is no `train` section; `truegold init` shows one"


def _preview(config: RunConfig, stages: Sequence[Stage], memory: Sequence[str], as_json: bool) -> None:
    """Print what would run. If the hub cannot be reached, its sets and models are reported as not checked."""
    from truegold.flows.execute import check_remote
    from truegold.pipeline.sources.hub import UnreachableHubError

    unchecked = []
    try:
        check_remote(stages, config.run_dir)
    except UnreachableHubError as error:
        unchecked.append(f"NOT CHECKED  {error}")
    if as_json:
        output.print_json(json.dumps(preview_json(config, stages)))
        return
    for line in (*preview_lines(config, stages), *memory, *unchecked):
        print_line(line)


def _hub_target(config: RunConfig, stages: Sequence[Stage]) -> PushConfig | None:
    """Return the model's target on the hub, or None if nothing is sent. Raises SetupError if sending would fail."""
    if config.push_to_hub is None or all(stage.name != "train" for stage in stages):
        return None
    from truegold.train.model.hub import check_push

    check_push(config.push_to_hub)
    return config.push_to_hub


def _push(run_dir: Path, config: PushConfig | None) -> None:
    if config is None:
        return
    from truegold.train.model.hub import push_model

    errors.print(f"sending the model to the hub as {config.repo}", markup=False)
    print_line(f"model: {push_model(run_dir, config)}")


def push(
    run: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    to: Annotated[
        str | None, typer.Option(metavar="OWNER/NAME", help="Its name on the hub; if not given, the run's push_to_hub.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Make a new model public.")] = False,
    card: Annotated[Path | None, typer.Option(metavar="FILE", help="Only write the card to this file.")] = None,
) -> None:
    """Send a run's trained model to the Hugging Face hub, with a card."""
    from pydantic import ValidationError

    from truegold.pipeline.config.mistakes import describe_mistakes
    from truegold.pipeline.tables.run_files import read_manifest, read_resolved
    from truegold.train.config.models import PushConfig
    from truegold.train.model.hub import gather_model_card, render_model_card

    read_manifest(run)
    configured = read_resolved(run).get("push_to_hub") or {}
    if card is not None:
        card.write_text(render_model_card(gather_model_card(run), configured.get("license")), encoding="utf-8")
        print_line(f"wrote {card}")
        return
    settings = {**configured, **({"repo": to} if to is not None else {}), **({"private": False} if public else {})}
    if "repo" not in settings:
        raise ConfigError("The model has no name on the hub.", f"truegold push {shlex.quote(str(run))} --to OWNER/NAME")
    try:
        target = PushConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError("; ".join(describe_mistakes(error, PushConfig))) from None
    _push(run, target)


def _plan_memory(config: RunConfig, until: Phase, dry_run: bool) -> list[str]:
    """Return lines on the GPU memory that the run's training needs. They are empty for a training on CPUs.

    Raises ConfigError if the training needs GPUs that the machine lacks, or more memory than they have.
    """
    from truegold.train.model.machine_checks import check_gpus, free_for_checkpoints, gpu_sizes
    from truegold.train.model.memory_plan import memory_lines

    training = config.resolved().train if until in (Phase.TRAIN, Phase.REPORT) else None
    if training is None or config.model is None:
        return []
    sizes = gpu_sizes()
    check_gpus(training, sizes)
    if not (dry_run or sizes or training.launch.gpu_gb):
        return []
    return memory_lines(training, config.model, sizes, free_for_checkpoints(config.run_dir))


def _run_as_flow(until: Phase, config: RunConfig) -> None:
    """Run a configuration as a Prefect flow, on the server of PREFECT_API_URL or on one started here."""
    from truegold.flows.server import prefect_api

    has_server = "PREFECT_API_URL" in os.environ
    start = "starting Prefect (about 20 s; --engine local runs without it)"
    errors.print("using the Prefect server of PREFECT_API_URL" if has_server else start)
    with prefect_api():
        from truegold.flows.prefect_flows import FLOWS, flush_logs

        try:
            FLOWS[until](config)
        finally:
            # The server ends after this, and with it lines of the log that it has not received.
            flush_logs()


def preview_json(config: RunConfig, stages: Sequence[Stage]) -> dict[str, Any]:
    """Return the resolved configuration and the stages as JSON values."""
    from truegold.flows.execute import with_states

    states = {stage.name: cached for stage, cached in with_states(stages, config.run_dir)}
    return {
        "config": config.resolved().model_dump(mode="json"),
        "stages": [
            {"name": stage.name, "function": stage.fn, "isolated": stage.isolated, "cached": states[stage.name]}
            for stage in stages
        ],
    }


def preview_lines(config: RunConfig, stages: Sequence[Stage]) -> Iterator[str]:
    """Yield the lines of a dry run."""
    from truegold.flows.execute import with_states
    from truegold.pipeline.running.stage import load_record

    yield f"run       {config.name} in {config.run_dir}"
    for source in config.data if isinstance(config.data, tuple) else (config.data,):
        yield from _describe_source(source)
    model = getattr(config.model, "path", None) or getattr(config.model, "type", "none")
    yield f"model     {model}"
    yield f"{'stage':<14} {'state':<9} last time"
    expected, timed, unknown = 0.0, 0, []
    for stage, cached in with_states(stages, config.run_dir):
        record = load_record(config.run_dir / stage.name)
        last = "not run before"
        if record is not None:
            last = f"{record['seconds']:.1f} s for {record['report']['rows_in']:,} rows"
        yield f"{stage.name:<14} {'cached' if cached else 'to run':<9} {last}"
        if cached:
            continue
        if record is None:
            unknown.append(stage.name)
        else:
            expected, timed = expected + record["seconds"], timed + 1
    if probed := _probe(config, unknown):
        unknown = [name for name in unknown if name not in probed]
        yield f"probed    about {describe_seconds(sum(probed.values()))} for {', '.join(probed)}, by some of the rows"
        expected, timed = expected + sum(probed.values()), timed + len(probed)
    yield f"expected  {_describe_time(expected, timed, unknown)}"
    yield "--json prints every setting of every stage."


def _probe(config: RunConfig, unknown: Sequence[str]) -> dict[str, float]:
    """Return the seconds that the stages `unknown` are expected to take, by a measurement. Empty for few rows."""
    from truegold.flows.cost import measure
    from truegold.pipeline.config.sources import FileSource
    from truegold.pipeline.sources.proposal import count_records
    from truegold.verifiers.sandbox.child_process import usable_cores

    rows = 0
    for source in config.data if isinstance(config.data, tuple) else (config.data,):
        if not isinstance(source, FileSource):
            return {}
        count = count_records(Path(source.path).expanduser(), source.format)
        rows += min(count or 0, source.limit or count or 0)
    if not unknown or rows < FEWEST_PROBED:
        return {}
    stages = measure(config).stages
    return {name: stages[name].seconds(rows, usable_cores()) for name in unknown if name in stages}


def _describe_time(expected: float, timed: int, unknown: Sequence[str]) -> str:
    if not timed and not unknown:
        return "nothing to do: all stages come from the cache"
    unknown_part = f"no time is known of {len(unknown)} stages that have not run here: {', '.join(unknown)}"
    if not timed:
        return unknown_part
    known_part = f"about {describe_seconds(expected)} for {timed} stages"
    return f"{known_part}; {unknown_part}" if unknown else known_part


def _describe_source(source: FileSource | HubSource | DemoSource) -> Iterator[str]:
    """Yield how many rows a source has, and how its columns are read."""
    from truegold.pipeline.config.sources import DemoSource, HubSource
    from truegold.pipeline.sources.presets import choose_layout
    from truegold.pipeline.sources.proposal import describe_reading, describe_records, first_records, rows_over

    if isinstance(source, DemoSource):
        yield f"data      the demo: {source.problems:,} problems and what is planted among them"
        return
    if isinstance(source, HubSource):
        limit = f", the first {source.limit:,} rows" if source.limit else ""
        yield f"data      {source.name}, split {source.split}{limit}; not counted yet"
        return
    yield describe_records(source)
    records, opened = first_records(source, [])
    if records:
        layout = choose_layout(source, opened.location, [record.values for record in records])
        yield from describe_reading(source, layout, records, rows_over(source, layout))


def plan(
    config: ConfigPath,
    rows: Annotated[str, typer.Option(help="Rows of the job, such as 10M.")] = "1M",
    samples: Annotated[str, typer.Option(help="Completions sampled and judged in total, such as 1B.")] = "0",
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores of all machines; if not given, this machine's.")
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of all machines.")] = 1,
    sample_tokens: Annotated[
        float | None, typer.Option(min=1, help="Tokens per sample; if not given, as in the last profile.")
    ] = None,
    gpu_tokens: Annotated[
        float | None, typer.Option(min=1, help="Tokens per second of a GPU; if not given, as in the last profile.")
    ] = None,
    set_: Overrides = None,
) -> None:
    """Measure the cost of curation here for ten seconds, and estimate what a job of any size needs."""
    from truegold.flows.config import load_config
    from truegold.flows.cost import JobSize, describe_plan, last_sampling, measure
    from truegold.verifiers.sandbox.child_process import usable_cores

    loaded = load_config(config, set_ or ())
    known_tokens, known_speed = last_sampling(loaded.run_dir)
    job = JobSize(
        read_count(rows, "--rows"),
        read_count(samples, "--samples"),
        cores or usable_cores(),
        gpus,
        sample_tokens or known_tokens,
        gpu_tokens or known_speed,
    )
    for line in describe_plan(measure(loaded), job):
        print_line(line)


def read_count(text: str, option: str) -> int:
    """Return the number of `10M`, `1.5B`, `500k` or `20,000`. Raises ConfigError for other texts."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)([kMB]?)", text.replace(",", "").replace("_", ""))
    if matched is None:
        raise ConfigError(f"{option} {text}: this is not a count.", f"Such as {option} 10M, 500k or 20,000.")
    return round(float(matched[1]) * {"": 1, "k": 1_000, "M": 1_000_000, "B": 1_000_000_000}[matched[2]])


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Only curate: under a minute, without a model.")] = False,
    set_: Overrides = None,
    engine: Annotated[
        EngineChoice | None,
        typer.Option("--engine", help="Run as Prefect flows (if not --quick), or without Prefect.", show_default=False),
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Try truegold: run the main job on generated problems with planted defects."""
    from truegold.flows.config import load_config

    missing = [name for name in HEAVY if find_spec(name) is None]
    if missing and not quick:
        raise SetupError(
            f"The whole demo samples and trains a model, and needs {', '.join(missing)}.",
            "pip install 'truegold[train,cpu]' (or [train,gpu] with a GPU); truegold demo --quick only curates.",
        )
    config = load_config(DEMO, [*(QUICK if quick else ()), *(set_ or ())])
    usual = EngineChoice.LOCAL if quick else EngineChoice.PREFECT
    run_until(Phase.CURATE if quick else Phase.REPORT, config, engine or usual, dry_run, as_json)


def _overrides(
    set_: list[str] | None,
    max_rejected: float | None,
    max_held: float | None,
    decisions: list[Path] | None,
    runner: str | None,
) -> list[str]:
    """Return the options as overrides of settings, after the overrides of `--set`."""
    paths = json.dumps(list(map(str, decisions))) if decisions else None
    options = {"max_rejected": max_rejected, "max_held": max_held, "decisions": paths, "run.runner": runner}
    return [*(set_ or ()), *(f"{name}={value}" for name, value in options.items() if value is not None)]


def part(
    run: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    stage: Annotated[
        str | None, typer.Argument(help="The stage whose parts wait; if not given, every stage up to the report.")
    ] = None,
    shares: Annotated[int, typer.Option("--of", min=1, help="The number of processes that share the parts.")] = 1,
    share: Annotated[int, typer.Option("--at", min=0, help="The number of this process, from 0.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Its worker processes; 0 takes all cores; if not given, as configured.")
    ] = None,
) -> None:
    """Process parts that a run with --runner wait or slurm waits for, on any machine that has the run's folder."""
    from truegold.pipeline.running.waiting_parts import do_shares

    if share >= shares:
        raise ConfigError(f"--at {share} is not below --of {shares}.", "Processes are numbered from 0.")
    with Terminal(errors).stage("part") as terminal:
        done = do_shares(run, stage, terminal, shares=shares, share=share, workers=workers)
    print_line(f"{done:,} parts done")


def phase_command(until: Phase) -> Callable[..., None]:
    """Return the command that runs a configuration up to a phase."""

    def command(
        config: ConfigPath,
        set_: Overrides = None,
        engine: EngineOption = EngineChoice.PREFECT,
        dry_run: DryRun = False,
        as_json: AsJson = False,
        last_turn_only: LastTurnOnly = False,
        max_rejected: MaxRejected = None,
        max_held: MaxHeld = None,
        decisions: Decisions = None,
        runner: RunnerOption = None,
    ) -> None:
        from truegold.flows.config import load_config

        overrides = _overrides(set_, max_rejected, max_held, decisions, runner)
        loaded = load_config(config, overrides, last_turn_only=last_turn_only)
        run_until(until, loaded, engine, dry_run, as_json)

    return command


def train(
    config: Annotated[Path | None, typer.Argument(help="The run's YAML file.", show_default=False)] = None,
    set_: Overrides = None,
    engine: EngineOption = EngineChoice.PREFECT,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    last_turn_only: LastTurnOnly = False,
    max_rejected: MaxRejected = None,
    max_held: MaxHeld = None,
    decisions: Decisions = None,
    runner: RunnerOption = None,
    doctor: Annotated[
        Path | None,
        typer.Option(
            "--doctor",
            metavar="LOG",
            help="Train nothing: report what went wrong in a finished run, from its log (`truegold doctor LOG`).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run everything up to and including GRPO."""
    if doctor is not None:
        from truegold.train.guards.doctor import examine_log

        for line in examine_log(doctor):
            print_line(line)
        return
    from truegold.flows.config import load_config

    if config is None:
        raise ConfigError("Training needs a configuration.", "truegold train RUN.yaml")
    overrides = _overrides(set_, max_rejected, max_held, decisions, runner)
    loaded = load_config(config, overrides, last_turn_only=last_turn_only)
    run_until(Phase.TRAIN, loaded, engine, dry_run, as_json)
