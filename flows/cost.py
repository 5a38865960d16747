"""Measures the cost of curation on some of a run's rows, and estimates the cost of the whole job.

    costs = measure(config)                 in about ten seconds
    costs.stages["clean"].seconds(10_000_000, cores=16)
    describe_plan(costs, JobSize(rows=10_000_000, samples=10**9, cores=16, gpus=8))

Rows are curated in a temporary folder, in rounds of growing size. The difference in CPU time between two rounds gives
the cost of a row. The rest of the time is the cost of starting a stage. No model is called, so well-posedness, second
opinions and sampling are not measured. Tokens per sample come from the run's last profile, or from the caller.
"""

from __future__ import annotations

import resource
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from truegold.flows.config import RunConfig
from truegold.flows.console import describe_seconds
from truegold.pipeline.config.sources import DemoSource, FileSource, HubSource
from truegold.pipeline.curation.plan import curation_stages
from truegold.pipeline.running.disk import DigestCache
from truegold.pipeline.running.parts import WORKERS
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import load_record, run_stage
from truegold.verifiers import ConfigError

PROBE_S = 10.0
"""Seconds that a measurement may take, unless two rounds take longer."""
FIRST_ROWS, GROWTH = 100, 4
"""The first round has FIRST_ROWS rows, and every further round GROWTH times as many as the one before."""
INDEX_BYTES = 24
"""Bytes of a sample in the index of the sample store (`docs/scale.md`)."""
TOKEN_BYTES = 8.5
"""Bytes of a sampled token on disk: 2.5 in the table of samples and 6 in the store (SmolLM2, samples of 60 tokens)."""
GB = 2**30


@dataclass(frozen=True)
class StageCost:
    """The cost of one stage on this machine."""

    start_s: float
    """CPU seconds before its first row, for loading patterns and models and starting processes."""
    row_s: float
    """CPU seconds per row of the run's input, including rows that earlier stages drop."""
    row_bytes: float
    """Bytes on disk per row of the run's input."""
    by_part: bool
    """Whether all cores work on the stage, each on a part of the rows."""

    def seconds(self, rows: int, cores: int = 1) -> float:
        """Return the seconds for a number of rows on a number of cores."""
        return self.start_s + self.row_s * rows / (cores if self.by_part else 1)


@dataclass(frozen=True)
class MeasuredCosts:
    """The costs of the stages of curation, in their order."""

    rows: int
    """The number of rows in the measurement."""
    stages: Mapping[str, StageCost]


@dataclass(frozen=True)
class JobSize:
    """The size of a job and of the machine that it runs on."""

    rows: int
    samples: int
    """Completions that are sampled and judged in total."""
    cores: int
    gpus: int = 1
    sample_tokens: float | None = None
    """The mean number of tokens in a completion, or None if unknown."""
    gpu_tokens_s: float | None = None
    """Tokens per second of one GPU, or None if unknown."""


def measure(config: RunConfig, limit_s: float | None = None) -> MeasuredCosts:
    """Curate some of the run's rows in a temporary folder, and return the cost of each stage.

    Raises ConfigError for sets on the hub, since these are not fetched. Errors of the stages are raised too.
    """
    sources = config.data if isinstance(config.data, tuple) else (config.data,)
    if any(isinstance(source, HubSource) for source in sources):
        raise ConfigError(
            "The cost of a set on the hub is not known before it is here.", "Download it, and name the file."
        )
    began = time.monotonic()
    limit, rounds = FIRST_ROWS, list[_Round]()
    with tempfile.TemporaryDirectory(prefix="truegold-probe-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A first run, which includes the time of imports, is not measured.
        _curate(config, limit // GROWTH, Path(folder) / "warm-up")
        while True:
            started = time.monotonic()
            rounds.append(_curate(config, limit, Path(folder) / str(limit)))
            took, limit = time.monotonic() - started, limit * GROWTH
            if len(rounds) > 1 and rounds[-1].rows <= rounds[-2].rows:
                # The data has no more rows.
                rounds.pop()
                break
            if len(rounds) > 1 and time.monotonic() - began + GROWTH * took > (PROBE_S if limit_s is None else limit_s):
                break
        return _costs(rounds)


@dataclass
class _Round:
    """The measurements of one round. The dicts have the names of stages as keys."""

    rows: int = 0
    cpu_s: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    by_part: dict[str, bool] = field(default_factory=dict)


def _curate(config: RunConfig, limit: int, run_dir: Path) -> _Round:
    """Run the stages of curation that need no model, on the first rows of each source, in this process."""
    sources = config.data if isinstance(config.data, tuple) else (config.data,)
    limited = tuple(_limited(source, limit) for source in sources)
    probed = config.model_copy(
        update={
            "data": limited if isinstance(config.data, tuple) else limited[0],
            "flag": config.flag.model_copy(update={"model": None}),
            "verify_gold": config.verify_gold.model_copy(update={"second_opinion": None}),
        }
    )
    run_dir.mkdir()
    digests = DigestCache(run_dir / "digests.json")
    curated = _Round()
    for stage in curation_stages(probed):
        before = _cpu_seconds()
        result = run_stage(stage, run_dir, digests, NullProgress())
        record = load_record(result.path) or {}
        curated.rows = max(curated.rows, result.report.rows_in)
        curated.cpu_s[stage.name] = _cpu_seconds() - before
        curated.sizes[stage.name] = sum(output["bytes"] for output in record["outputs"].values())
        curated.by_part[stage.name] = WORKERS in record["config"]
    return curated


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its ended children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _limited(source: FileSource | HubSource | DemoSource, limit: int) -> FileSource | HubSource | DemoSource:
    if isinstance(source, DemoSource):
        return source.model_copy(update={"problems": min(limit, source.problems), "sft_examples": 64})
    return source.model_copy(update={"limit": min(limit, source.limit or limit)})


def _costs(rounds: Sequence[_Round]) -> MeasuredCosts:
    last, before = rounds[-1], rounds[-2] if len(rounds) > 1 else None
    costs = {}
    for name, cpu_s in last.cpu_s.items():
        if before is None:
            row_s = cpu_s / max(1, last.rows)
        else:
            row_s = max(0.0, (cpu_s - before.cpu_s[name]) / (last.rows - before.rows))
        costs[name] = StageCost(
            start_s=max(0.0, cpu_s - row_s * last.rows),
            row_s=row_s,
            row_bytes=last.sizes[name] / max(1, last.rows),
            by_part=last.by_part[name],
        )
    return MeasuredCosts(last.rows, costs)


def describe_plan(costs: MeasuredCosts, job: JobSize) -> Iterator[str]:
    """Yield the lines of an estimate: time by stage and in total, disk, tokens and GPU hours."""
    head = f"on {job.cores} cores" if job.cores > 1 else "on 1 core"
    yield f"measured on {costs.rows:,} rows of the data, in one process of this machine; times are CPU times"
    yield ""
    yield f"{'stage':<14} {'ms a row':>9} {'one process':>14} {head:>14} {'disk':>9}"
    total = 0.0
    for name, cost in costs.stages.items():
        seconds = cost.seconds(job.rows, job.cores)
        total += seconds
        times = f"{describe_seconds(cost.seconds(job.rows)):>14} {describe_seconds(seconds):>14}"
        yield f"{name:<14} {1000 * cost.row_s:>9.3f} {times} {_gigabytes(cost.row_bytes * job.rows):>9}"
    yield ""
    yield f"curation      {describe_seconds(total)} {head}, for {job.rows:,} rows"
    if not job.samples:
        return
    verdicts = costs.stages["verify_gold"].row_s * job.samples
    yield (
        f"verdicts      {describe_seconds(verdicts / job.cores)} {head}, for {job.samples:,} samples, if each costs "
        "what `verify_gold` takes for a row"
    )
    yield f"sample index  {_gigabytes(INDEX_BYTES * job.samples)} of memory in the process that selects"
    if job.sample_tokens is None:
        yield "sampling      not known: no profile has run here; name --sample-tokens and --gpu-tokens"
        return
    tokens = job.sample_tokens * job.samples
    disk = _gigabytes(TOKEN_BYTES * tokens)
    yield f"samples       {tokens:.3g} tokens of {job.sample_tokens:,.0f} a sample, {disk} on disk"
    if job.gpu_tokens_s is None:
        yield "sampling      not known: name --gpu-tokens, the tokens that one of your GPUs samples a second"
        return
    gpu_s = tokens / job.gpu_tokens_s
    gpus = f"{job.gpus} GPUs" if job.gpus > 1 else "1 GPU"
    yield (
        f"sampling      {gpu_s / 3600:,.0f} GPU hours at {job.gpu_tokens_s:,.0f} tokens a second each: "
        f"{describe_seconds(gpu_s / job.gpus)} on {gpus}"
    )


def last_sampling(run_dir: Path) -> tuple[float | None, float | None]:
    """Return tokens per sample and tokens per second of the run's last profile, each None if unknown."""
    record = load_record(run_dir / "profile") or {}
    sampled = record.get("report", {}).get("facts", {}).get("sampling", {})
    if not sampled.get("drawn"):
        return None, None
    return sampled["tokens"] / sampled["drawn"], sampled.get("tokens_per_s")


def _gigabytes(count: float) -> str:
    return f"{count / GB:,.1f} GB" if count >= GB / 10 else f"{count / 2**20:,.1f} MB"
