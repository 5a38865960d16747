"""Completions of a run for examples and preferences: of each row some that are right, and some that are wrong.

    profile/samples.parquet     16 samples of a row: 5 right, 9 wrong, 1 cut, 1 that could not be read
    synth/distilled.parquet     2 positives of a row that hardly ever passes
    train/completions/          what a training drew, step by step

    read_completions(run, CompletionChoice(per_row=1)).right["9f0c..."]   [DrawnCompletion("9+4=13 ...", "profile")]

Right is what earned the full score, wrong what answered and earned less. Left out, and counted, is what was cut or
repeats itself, what has no score, and what could not be read: that may be right in another form. Of each row `per_row`
of either kind are taken, each text once: those with the smallest SHA-256 of seed, row and text, so that the same are
taken every time, in any order of drawing.
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
"""The reasons for which a completion is wrong. Others say that nothing was read."""
ORIGINS = {
    "profile": "profile/samples.parquet",
    "synth": "synth/distilled.parquet",
    "train": "train/completions/step-*.parquet",
    "profile_after": "profile_after/samples.parquet",
}
"""Maps a stage to the table of the completions that it has drawn."""
BEFORE_TRAINING = ("profile", "synth")


class DrawnCompletion(NamedTuple):
    """A completion, and who drew it."""

    text: str
    origin: str
    """The stage, and of positives the strategy: `synth:reflect`."""


@dataclass(frozen=True)
class CompletionChoice:
    """How many completions of a row are taken, and of which."""

    per_row: int = 1
    """At most this many of either kind."""
    seed: int = 0
    origins: Sequence[str] = BEFORE_TRAINING
    """Stages, as in ORIGINS."""


@dataclass
class RunCompletions:
    """The completions that were taken from a run, for each row."""

    chat: ChatConfig
    """The chat around the problem when they were drawn."""
    right: dict[str, list[DrawnCompletion]] = field(default_factory=dict)
    wrong: dict[str, list[DrawnCompletion]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    """Numbers of other completions, by kind: `cut`, `unjudged`, `unread`."""


def read_completions(run_dir: Path, choice: CompletionChoice) -> RunCompletions:
    """Return the completions of a run, in memory no more than are taken.

    Stages that the run has no more, as its manifest says, count for nothing. Raises InputError if the folder is not a
    run with completions, if they are turns of dialogues, or if stages sampled from different prompts.
    """
    stages = read_manifest(run_dir)
    origins = [origin for origin in choice.origins if origin in stages]
    tables = [(origin, path) for origin in origins for path in sorted(run_dir.glob(ORIGINS[origin]))]
    if not tables:
        raise InputError(
            f"{run_dir} has no completions of {', '.join(choice.origins)}.",
            "Name the folder of a run that has drawn some: truegold profile, truegold synth, truegold run.",
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
    """Put a completion among the row's best, the smallest digest first, where it is one of them and not there yet."""
    text = f"{choice.seed} {record['id']} {completion.text}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if all(digest != other for other, _ in best):
        insort(best, (digest, completion))
        del best[choice.per_row :]


def _chat_of(run_dir: Path, stages: Sequence[str]) -> ChatConfig:
    """Return what the stages put around a problem; InputError where they differ."""
    chats = {stage: ChatConfig.model_validate(_config_of(run_dir, stage).get("chat") or {}) for stage in stages}
    if odd := [stage for stage in stages if chats[stage] != chats[stages[0]]]:
        raise InputError(
            f"In {run_dir} the stages {stages[0]} and {odd[0]} drew from different prompts (chat).",
            f"Take them apart: --completions {stages[0]}",
        )
    return chats[stages[0]]


def _config_of(run_dir: Path, stage: str) -> Mapping[str, Any]:
    config: Mapping[str, Any] = (load_record(run_dir / stage) or {}).get("config") or {}
    return config


def _refuse_dialogues(run_dir: Path) -> None:
    if _config_of(run_dir, "train").get("turns") is not None:
        raise InputError(
            f"The training of {run_dir} held dialogues; a turn of one is not an answer to the prompt alone.",
            "Leave them out: --completions profile",
        )


def rescued_rows(run_dir: Path) -> Iterator[Row]:
    """Yield the rows that synthesis brought back among the selected ones; the run's export was written before."""
    if "synth" in read_manifest(run_dir):
        yield from read_rows(run_dir / "synth" / "selected.parquet")
