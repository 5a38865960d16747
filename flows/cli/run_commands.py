"""Commands of a run: `truegold init`, `demo`, `run`, `curate`, `profile`, `select`, `synth` and `train`.

They call the stages with Prefect or without. With `--dry-run` they call none and show how many rows there are, which
stages would run, and how long that may take:

    data      train.jsonl: 8 records
    columns   prompt question; gold answer (after ####); solution answer; id id; verifier math
    unused    aliases (has the gold among others: data.columns.golds=aliases), topic
    model     none
    stage          state     last time
    ingest         cached    0.1 s
    clean          to run    2 s for 8 rows
    expected  about 3 s for 4 of 5 stages; no time is known of: profile

Times are those of the same stages when they last ran in this folder; `--json` has the whole resolved configuration.

    pip install 'truegold[run]'         truegold demo --quick    curation alone, in under a minute, on any machine
    pip install 'truegold[train,cpu]'   truegold demo            profiling and training as well, on a CPU
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from enum import StrEnum
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truegold.flows.cli.options import LastTurnOnly, MaxHeld, MaxRejected
from truegold.flows.console import Terminal, describe_seconds, errors, output, print_line
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

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say rows, stages and expected time, and stop.")]
AsJson = Annotated[bool, typer.Option("--json", help="With --dry-run: print every setting of every stage as JSON.")]

COUNT_BYTES = 4 * 2**30
"""Lines of a larger file are not counted: a dry run takes seconds."""
BLOCK = 2**20
"""The longest row that is read while records are counted."""

DEMO = Path(__file__).parents[1] / "demo.yaml"
"""The demo's configuration."""
HEAVY = ("torch", "vllm", "deepspeed", "transformers")
"""The packages that the whole demo needs, and the quick one does not."""
QUICK = ("name=demo-quick", "model=null", "sft=null", "train=null", "data.problems=600", "data.sft_examples=64")
"""The settings of the quick demo: curation alone, of fewer problems."""

STARTER = DEMO.with_name("starter.yaml.txt")
"""The configuration that `truegold init` writes: short, commented, and valid with its names filled in."""

ConfigPath = Annotated[
    Path,
    typer.Argument(help="The run's YAML file; or the data file, for the default of every setting.", show_default=False),
]
Decisions = Annotated[
    list[Path] | None,
    typer.Option("--decisions", help="A file or a folder of reviewers' decisions; several may be given."),
]
PHASE_COMMANDS = {
    "run": (Phase.REPORT, "The main job: curate, profile, select, train, report; whatever the configuration has."),
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
    """Run a configuration up to a phase, or say what that would be; a run at a place is fetched, and published."""
    from truegold.flows.published import published

    with nullcontext() if dry_run else published(config, lambda line: print_line(line, errors)) as url:
        _run_until(until, config, engine, dry_run, as_json)
    if url is not None:
        print_line(f"published: {url}")


def _run_until(until: Phase, config: RunConfig, engine: EngineChoice, dry_run: bool, as_json: bool) -> None:
    from truegold.flows import execute as runner
    from truegold.flows.plan import plan

    stages = plan(config, until)
    target = _hub_target(config, stages)
    memory = _plan_memory(config, until, dry_run)
    if dry_run:
        runner.check_remote(stages, config.run_dir)
        if as_json:
            output.print_json(json.dumps(preview_json(config, stages)))
        else:
            for line in (*preview_lines(config, stages), *memory):
                print_line(line)
        return
    if config.model is not None and until is not Phase.CURATE:
        check_torch_builds()
    run_dir = config.run_dir
    cached = runner.all_cached(stages, run_dir) if run_dir.exists() else None
    if cached is not None:
        for result in cached:
            for line in (runner.describe(result), *runner.rejects_in_words(result)):
                print_line(line, errors)
        runner.write_manifest(run_dir, cached)
        errors.print(f"nothing to do: all {len(cached)} stages come from the cache")
        for result in cached:
            config.loss_bounds.check(result.name, result.report)
    elif engine is EngineChoice.LOCAL:
        with runner.open_run(config):
            runner.execute(stages, run_dir, runner.stage_caller(run_dir, Terminal(errors)), config.loss_bounds)
    else:
        with runner.open_run(config):
            pass  # A directory that is in use is found out before a server is started.
        _run_as_flow(until, config)
    print_line(f"run: {run_dir}\nreport: {run_dir / 'report' / 'index.html'}")
    for line in runner.losses_in_words(run_dir):
        errors.print(line, style="red", markup=False, soft_wrap=True)
    _push(run_dir, target)


def _hub_target(config: RunConfig, stages: Sequence[Stage]) -> PushConfig | None:
    """Return where the model goes on the hub, None where nothing is sent. Raises SetupError where it must not."""
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
        str | None, typer.Option(metavar="OWNER/NAME", help="Its name on the hub; the run's push_to_hub.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Let everybody see a model that is made.")] = False,
    card: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the card into this file, and send nothing.")
    ] = None,
) -> None:
    """Send a run's trained model to the Hugging Face hub, with a card."""
    from pydantic import ValidationError

    from truegold.pipeline.config.base import describe_mistakes
    from truegold.pipeline.tables.run_files import read_resolved
    from truegold.train.config.models import PushConfig
    from truegold.train.model.hub import gather_model_card, render_model_card

    configured = read_resolved(run).get("push_to_hub") or {}
    if card is not None:
        card.write_text(render_model_card(gather_model_card(run), configured.get("license")), encoding="utf-8")
        print_line(f"wrote {card}")
        return
    settings = {**configured, **({"repo": to} if to is not None else {}), **({"private": False} if public else {})}
    if "repo" not in settings:
        raise ConfigError("There is no name to send it to.", f"truegold push {run} --to OWNER/NAME")
    try:
        target = PushConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError("; ".join(describe_mistakes(error, PushConfig))) from None
    _push(run, target)


def _plan_memory(config: RunConfig, until: Phase, dry_run: bool) -> list[str]:
    """Return what the run's training takes of its GPUs, a line each. A run that begins on a CPU is not planned.

    Raises ConfigError where it trains on GPUs that are not there, or does not fit.
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
            # Afterwards the server is gone, and with it the last lines of the log.
            flush_logs()


def preview_json(config: RunConfig, stages: Sequence[Stage]) -> dict[str, Any]:
    """Return the resolved configuration and the stages for a program."""
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
        yield f"data      {_describe_source(source)}"
        yield from _describe_reading(source)
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
    yield f"expected  {_describe_time(expected, timed, unknown)}"
    yield "--json prints every setting of every stage."


def _describe_time(expected: float, timed: int, unknown: Sequence[str]) -> str:
    if not timed and not unknown:
        return "nothing to do: all stages come from the cache"
    unknown_part = f"no time is known of {len(unknown)} stages that have not run here: {', '.join(unknown)}"
    if not timed:
        return unknown_part
    known_part = f"about {describe_seconds(expected)} for {timed} stages, as long as they took last time"
    return f"{known_part}; {unknown_part}" if unknown else known_part


def _describe_source(source: FileSource | HubSource | DemoSource) -> str:
    from truegold.pipeline.config.sources import DemoSource, HubSource

    if isinstance(source, DemoSource):
        return f"the demo: {source.problems:,} problems and what is planted among them"
    if isinstance(source, HubSource):
        limit = f", the first {source.limit:,} rows" if source.limit else ""
        return f"{source.name}, split {source.split}{limit}; counted when it is read"
    count = _count_records(Path(source.path).expanduser(), source.format)
    records = "its records are counted when it is read" if count is None else f"{count:,} records"
    return f"{source.path}: {records}{f', of which the first {source.limit:,} are taken' if source.limit else ''}"


def _describe_reading(source: FileSource | HubSource | DemoSource) -> Iterator[str]:
    """Yield which columns of a file are read as what, and those that are not used."""
    from truegold.pipeline.config.sources import FileSource
    from truegold.pipeline.sources.data_files import open_file
    from truegold.pipeline.sources.presets import choose_layout
    from truegold.pipeline.sources.records import LOOK_AHEAD, look_ahead
    from truegold.pipeline.sources.unused_columns import describe_unused, unused_columns

    if not isinstance(source, FileSource):
        return
    opened = open_file(Path(source.path).expanduser(), source.format, source.max_row_bytes)
    records = look_ahead(islice(opened.records, LOOK_AHEAD), lambda reject: None)
    if not records:
        return
    layout = choose_layout(source, opened.location, [record.values for record in records])
    named = {role: spec for role, spec in layout.columns if spec is not None}
    present = {name for record in records for name in record.values}
    columns = {role: spec.column for role, spec in named.items()}
    if layout.asks and source.columns.prompt is None:
        columns["prompt"] = " + ".join(layout.asks)
    roles = [
        f"{role} {columns[role]}{f' ({spec.extract})' if spec.extract else ''}"
        for role, spec in named.items()
        if spec.column.split(".")[0] in present
    ]
    taken = sorted(layout.uses & present - {spec.column for spec in named.values()})
    roles += [f"{', '.join(taken)} as {layout.domain}"] if taken else []
    yield f"columns   {'; '.join(roles)}; verifier {source.verifier or layout.verifier}"
    if unused := unused_columns(source, layout, records):
        yield f"unused    {describe_unused(unused)}"


def _count_records(path: Path, form: str) -> int | None:
    """Return the number of records, by lines where the format has them; None where counting takes long."""
    from truegold.pipeline.sources.data_files import at_hand, form_by_suffix, open_file
    from truegold.pipeline.sources.jsonl import is_json_array

    path = at_hand(path)
    if not path.is_file():  # It is a folder or a pattern.
        return None
    form = form_by_suffix(path) if form == "auto" else form
    if form == "parquet":
        return open_file(path, form, BLOCK).total
    if form != "jsonl" or path.suffix in (".gz", ".zst") or path.stat().st_size > COUNT_BYTES:
        return None
    if is_json_array(path):
        return sum(1 for _ in open_file(path, form, BLOCK).records)
    with path.open("rb") as file:
        return sum(line.strip() != b"" for line in file)


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Curate alone: under a minute, no model needed.")] = False,
    set_: Overrides = None,
    engine: EngineOption = EngineChoice.PREFECT,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Try it: the main job on problems with planted defects, made on the spot."""
    from truegold.flows.config import load_config

    missing = [name for name in HEAVY if find_spec(name) is None]
    if missing and not quick:
        raise SetupError(
            f"The whole demo samples and trains a model; {', '.join(missing)} is not installed.",
            "pip install 'truegold[train,cpu]' (or [train,gpu] with a GPU); truegold demo --quick only curates.",
        )
    config = load_config(DEMO, [*(QUICK if quick else ()), *(set_ or ())])
    run_until(
        Phase.CURATE if quick else Phase.REPORT, config, EngineChoice.LOCAL if quick else engine, dry_run, as_json
    )


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("truegold.yaml"),
    data: Annotated[str, typer.Option(help="The data file.")] = "train.jsonl",
    model: Annotated[str, typer.Option(help="A checkpoint's folder or a hub name.")] = "Qwen/Qwen3-0.6B",
) -> None:
    """Write a commented starter configuration."""
    from truegold.flows.config import run_name

    if path.exists():
        raise ConfigError(f"{path} exists already.", "Give another name.")
    # JSON's texts are YAML's as well.
    name, data_text, model_text = (json.dumps(text, ensure_ascii=False) for text in (run_name(path), data, model))
    path.write_text(
        STARTER.read_text(encoding="utf-8").format(file=path, name=name, data=data_text, model=model_text),
        encoding="utf-8",
    )
    print_line(f"wrote {path}; next: truegold run {path} --dry-run")


def _overrides(
    set_: list[str] | None, max_rejected: float | None, max_held: float | None, decisions: list[Path] | None
) -> list[str]:
    """Return the options as overrides of settings, behind those of `--set`."""
    paths = json.dumps(list(map(str, decisions))) if decisions else None
    options = {"max_rejected": max_rejected, "max_held": max_held, "decisions": paths}
    return [*(set_ or ()), *(f"{name}={value}" for name, value in options.items() if value is not None)]


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
    ) -> None:
        from truegold.flows.config import load_config

        overrides = _overrides(set_, max_rejected, max_held, decisions)
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
    doctor: Annotated[
        Path | None,
        typer.Option(
            "--doctor",
            metavar="LOG",
            help="Train nothing: say what went wrong in a finished run, by its log (`truegold doctor LOG`).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Everything up to and including GRPO."""
    if doctor is not None:
        from truegold.train.guards.doctor import examine_log

        for line in examine_log(doctor):
            print_line(line)
        return
    from truegold.flows.config import load_config

    if config is None:
        raise ConfigError("There is no configuration to train by.", "truegold train RUN.yaml")
    overrides = _overrides(set_, max_rejected, max_held, decisions)
    loaded = load_config(config, overrides, last_turn_only=last_turn_only)
    run_until(Phase.TRAIN, loaded, engine, dry_run, as_json)
