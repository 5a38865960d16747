"""Chooses right and wrong completions from a run, for training examples and preference pairs.

    read_completions(run, CompletionChoice(per_row=1)).right["9f0c..."]  ->  [DrawnCompletion("9+4=13 ...", "profile")]

The completions come from the samples of profiles, from synthesis, and from the rollouts of a training. A right
completion has the full score. A wrong one has an answer and a lower score. All other completions are counted and left
out: they were cut off, repeat themselves, have no score, or have an answer that could not be read.

For each row, at most `per_row` right and `per_row` wrong texts are chosen. These are the texts with the smallest
SHA-256 of seed, row and text, so that the choice does not depend on the order of sampling.
"""

from __future__ import annotations

import hashlib
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.running.stage import load_record
from truegold.pipeline.tables.rows import Row, read_rows, read_table
from truegold.pipeline.tables.run_files import read_manifest
from truegold.verifiers import InputError, Reason

ANSWERED = frozenset((Reason.MISMATCH, Reason.HEDGED, Reason.PARTIAL))
"""The reasons of verdicts on wrong completions. Any other reason means that no answer was read."""
ORIGINS = {
    "profile": "profile/samples.parquet",
    "synth": "synth/distilled.parquet",
    "train": "train/completions/step-*.parquet",
    "profile_after": "profile_after/samples.parquet",
}
"""Maps each stage with completions to their table."""
BEFORE_TRAINING = ("profile", "synth")


class DrawnCompletion(NamedTuple):
    """A completion and its origin."""

    text: str
    origin: str
    """The stage that sampled the completion, such as `profile`, or `synth:STRATEGY`."""


@dataclass(frozen=True)
class CompletionChoice:
    """The settings for choosing completions."""

    per_row: int = 1
    """The maximum number of right completions, and of wrong ones, for each row."""
    seed: int = 0
    origins: Sequence[str] = BEFORE_TRAINING
    """The stages whose completions are used: keys of ORIGINS."""


@dataclass
class RunCompletions:
    """The chosen completions of a run, by row id."""

    chat: ChatConfig
    """The chat prompt with which the completions were sampled."""
    right: dict[str, list[DrawnCompletion]] = field(default_factory=dict)
    wrong: dict[str, list[DrawnCompletion]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    """The number of completions that were left out, by kind: `cut`, `unjudged`, `unread`."""


def read_completions(run_dir: Path, choice: CompletionChoice) -> RunCompletions:
    """Return the chosen completions of a run. Stages that the run does not have are ignored.

    Raises InputError if the folder is not a run with completions, if the completions are turns of dialogues, or if the
    stages sampled from different prompts.
    """
    if not (run_dir / "manifest.json").is_file():
        raise InputError(
            f"{run_dir} is not a run of truegold, and this format needs the completions of a run.",
            "Name the folder of a run that has sampled some: truegold profile, truegold synth, truegold run.",
        )
    stages = read_manifest(run_dir)
    origins = [origin for origin in choice.origins if origin in stages]
    tables = [(origin, path) for origin in origins for path in sorted(run_dir.glob(ORIGINS[origin]))]
    if not tables:
        raise InputError(
            f"{run_dir} has no completions of {', '.join(choice.origins)}.",
            "Name the folder of a run that has sampled some: truegold profile, truegold synth, truegold run.",
        )
    drawn = RunCompletions(_chat_of(run_dir, list(dict(tables))))
    kept: dict[str, dict[str, list[tuple[str, DrawnCompletion]]]] = {"right": {}, "wrong": {}}
    for origin, path in tables:
        if origin == "train":
            _refuse_dialogues(run_dir)
        for record in read_table(path, dict, _COLUMNS[origin]):
            kind = "right" if origin == "synth" else _kind_of(record)
            if kind not in kept:
                drawn.left_out[kind] += 1
                continue
            name = f"synth:{record['strategy']}" if origin == "synth" else origin
            _keep(kept[kind].setdefault(record["id"], []), record, DrawnCompletion(record["completion"], name), choice)
    drawn.right, drawn.wrong = (
        {id: [completion for _, completion in best] for id, best in kept[kind].items()} for kind in ("right", "wrong")
    )
    return drawn


_JUDGED = ["id", "completion", "score", "reason"]
_COLUMNS = {
    "profile": [*_JUDGED, "finish_reason"],
    "synth": ["id", "completion", "strategy"],
    "train": [*_JUDGED, "truncated"],
    "profile_after": [*_JUDGED, "finish_reason"],
}


def _kind_of(record: Mapping[str, Any]) -> str:
    if record.get("finish_reason", "stop") != "stop" or record.get("truncated"):
        return "cut"
    if record["score"] is None:
        return "unjudged"
    if record["score"] == 1.0:
        return "right"
    return "wrong" if record["reason"] in ANSWERED else "unread"


def _keep(
    best: list[tuple[str, DrawnCompletion]],
    record: Mapping[str, Any],
    completion: DrawnCompletion,
    choice: CompletionChoice,
) -> None:
    """Insert a completion into the chosen ones of its row, ordered by digest. Repeated texts are ignored."""
    text = f"{choice.seed} {record['id']} {completion.text}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if all(digest != other for other, _ in best):
        insort(best, (digest, completion))
        del best[choice.per_row :]


def _chat_of(run_dir: Path, stages: Sequence[str]) -> ChatConfig:
    """Return the chat prompt of the stages. Raises InputError if they differ."""
    chats = {stage: ChatConfig.model_validate(_config_of(run_dir, stage).get("chat") or {}) for stage in stages}
    if odd := [stage for stage in stages if chats[stage] != chats[stages[0]]]:
        raise InputError(
            f"In {run_dir} the stages {stages[0]} and {odd[0]} sampled from different prompts (setting chat).",
            f"Export one of them: --completions {stages[0]}",
        )
    return chats[stages[0]]


def _config_of(run_dir: Path, stage: str) -> Mapping[str, Any]:
    config: Mapping[str, Any] = (load_record(run_dir / stage) or {}).get("config") or {}
    return config


def _refuse_dialogues(run_dir: Path) -> None:
    if _config_of(run_dir, "train").get("turns") is not None:
        raise InputError(
            f"The training of {run_dir} held dialogues, whose turns are not answers to the prompt alone.",
            "Leave them out: --completions profile",
        )


def rescued_rows(run_dir: Path) -> Iterator[Row]:
    """Yield the selected rows after synthesis. The run's export is older, and misses rows that synthesis added."""
    if "synth" in read_manifest(run_dir):
        yield from read_rows(run_dir / "synth" / "selected.parquet")
