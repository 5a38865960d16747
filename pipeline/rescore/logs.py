r"""Reads the rollouts in the logs of trainers. The columns of a file show which trainer wrote it:

    trainer      file                        columns
    TRL          completions_00001.parquet   step, prompt, completion, a column for each reward, advantage
    verl         1.jsonl                     input, output, gts, score, step
    verifiers    traces.jsonl                {"traces": [{"task": {"data": ...}, "nodes": [...], "rewards": ...}]}
    NeMo-Gym     rollouts.jsonl              response, reward; responses_create_params and expected_answer in this file
                                             or in rollouts_materialized_inputs.jsonl
    truegold     step-000001.parquet         prompt, gold, completion, score, reward_terms, advantage
    any          any name                    prompt, completion, score; optionally gold, answer or solution

In a folder, files with these names are found (PATTERNS). TRL's logs have no golds, and no log has the arguments of a
row's verifier. `rescore` takes both from the data set, if it is given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from truegold.pipeline.sources.columns import Column, gold_texts
from truegold.pipeline.sources.conversations import read_prompt, read_response
from truegold.pipeline.sources.data_files import MAX_ROW_BYTES, at_hand, open_file
from truegold.pipeline.sources.records import LOOK_AHEAD, Record, sample_values
from truegold.pipeline.sources.row_builder import with_golds
from truegold.pipeline.tables.rows import dump_json, normalise_for_id
from truegold.pipeline.tables.run_files import Fields
from truegold.verifiers import InputError
from truegold.verifiers.adapters.nemo_gym import response_text
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import text_of
from truegold.verifiers.strict_json import parse_structure

PATTERNS = ("completions_*.parquet", "step-*.parquet", "traces.jsonl", "*rollouts*.jsonl", "[0-9]*.jsonl")
"""The names of log files that are searched in a folder."""
INPUTS_ENDING = "_materialized_inputs.jsonl"
"""NeMo-Gym writes the rollouts to `NAME.jsonl`, and their prompts to `NAME` with this ending."""
NO_ROLLOUTS = (
    INPUTS_ENDING,
    "_failures.jsonl",
    "_reward_profiling.jsonl",
    "_verdicts.jsonl",
    "_items.jsonl",
    "_task.jsonl",
)
"""The endings of NeMo-Gym's files that have no rollouts."""
JOINED_BY = ("_ng_task_index", "_ng_rollout_index")
"""The fields that join rollouts with their inputs."""
NO_KEY = ("None", "None")
NEMO_GYM_GOLDS = ("expected_answer", "expected_answers", "answer", "gold", "ground_truth", "target")
_TEMPLATE_MARKS = re.compile(
    # Qwen: "<|im_start|>user"
    r"<\|im_start\|>\w+\n?|<\|im_end\|>"
    # Llama 3: "<|start_header_id|>user<|end_header_id|>"
    r"|<\|start_header_id\|>\w+<\|end_header_id\|>|<\|(?:eot_id|begin_of_text)\|>"
    # Llama 2 and Mistral: "<s>[INST]"
    r"|</?s>|\[/?INST\]"
    # Gemma: "<start_of_turn>user"; DeepSeek: "<｜User｜>"
    r"|<(?:start|end)_of_turn>(?:user|model)?\n?|<｜[^｜]+｜>"
)
"""Marks by which chat templates separate the turns of a prompt."""
_BARE_ROLE = re.compile(r"\n(?:user|assistant)\n")
"""A line with only a role. Such lines remain if a prompt is decoded without special tokens."""
_TRL_COLUMNS = {"step", "prompt", "completion", "advantage"}

_OTHER_SHAPE = (AttributeError, KeyError, TypeError, ValueError, OverflowError, Unusable)
"""The exceptions of reading a record that does not have the format of its file."""

Values = Mapping[str, Any]
Reader = Callable[[Values], Iterator[Fields]]
"""A function that yields the fields of each rollout in a record, without `file` and `line`."""


@dataclass(frozen=True, slots=True)
class LoggedRollout:
    """A completion with its logged reward."""

    file: str
    """The name of the log file."""
    line: int
    """The number of the record in the file, from 1."""
    step: int | None
    prompt: str
    """The question. The chat template is removed if it is recognised."""
    completion: str
    reward: float | None
    """The logged reward, or None if the rollout was not judged."""
    advantage: float | None = None
    gold: str | None = None
    """The logged gold. The gold of the data set takes precedence if the set is given."""
    verifier: str | None = None
    verifier_args: str = "{}"
    logged_reading: str | None = None
    """The answer that the trainer's judge read, if the log has it."""

    @property
    def question(self) -> str:
        """The normalised prompt. It finds the row in the data set."""
        return normalise_for_id(self.prompt)


def read_logs(paths: Sequence[Path], reward: str | None = None) -> Iterator[LoggedRollout]:
    """Yield the rollouts of log files, and of the log files in folders, in order.

    If TRL's logs have several reward columns, `reward` names one. Records that cannot be read, or that do not have the
    format of their file, are skipped silently. Raises InputError if there are no logs, or a file has no readable
    record.
    """
    files = list(chain.from_iterable(map(_files_of, paths)))
    for path in files:
        yield from _read_file(path, reward)


def _files_of(path: Path) -> list[Path]:
    path = at_hand(path)
    if path.is_file():
        beside = _rollouts_beside(path)
        return [beside if beside.is_file() else path]
    if not path.exists():
        raise InputError(f"{path} does not exist.", "Name a log file, or the folder that has them.")
    logs = {file for pattern in PATTERNS for file in path.rglob(pattern)}
    logs |= {_rollouts_beside(inputs) for inputs in path.rglob(f"*{INPUTS_ENDING}")}
    is_log = [file for file in logs if not file.name.endswith(NO_ROLLOUTS) and file.exists()]
    files = sorted(is_log, key=_natural_order)
    if not files:
        raise InputError(f"{path} has no logs of rollouts.", f"Looked for: {', '.join(PATTERNS)}; or name a file.")
    return files


def _rollouts_beside(inputs: Path) -> Path:
    """Return NeMo-Gym's file of rollouts for its file of inputs. Any other path is returned unchanged."""
    return inputs.with_name(inputs.name.replace(INPUTS_ENDING, ".jsonl"))


def _read_inputs(path: Path) -> dict[tuple[str, ...], Fields]:
    """Return the prompt and gold of each rollout from NeMo-Gym's file of inputs, by the values of JOINED_BY. The dict
    is empty if there is no such file."""
    inputs = path.with_name(f"{path.stem}{INPUTS_ENDING}")
    if not inputs.is_file():
        return {}
    by_key: dict[tuple[str, ...], Fields] = {}
    # All rollouts of a task have the same input. It is stored once.
    same: dict[str, Fields] = {}
    for record in open_file(inputs, "auto", MAX_ROW_BYTES).records:
        if not isinstance(record, Record):
            continue
        with suppress(*_OTHER_SHAPE):
            asked = _asked(record.values)
            by_key[_join_key(record.values)] = same.setdefault(dump_json(asked), asked)
    by_key.pop(NO_KEY, None)
    return by_key


def _join_key(values: Values) -> tuple[str, ...]:
    return tuple(str(values.get(name)) for name in JOINED_BY)


def _natural_order(path: Path) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]


def _read_file(path: Path, reward: str | None) -> Iterator[LoggedRollout]:
    source = open_file(path, "auto", MAX_ROW_BYTES)
    ahead = list(islice(source.records, LOOK_AHEAD))
    if not (samples := sample_values(ahead)):
        raise InputError(f"{path} has no record that can be read.")
    read = _reader_of(samples, path, reward)
    for record in chain(ahead, source.records):
        if isinstance(record, Record):
            yield from _rollouts_of(record, read, path.name)


def _rollouts_of(record: Record, read: Reader, file: str) -> list[LoggedRollout]:
    """Return the rollouts of a record, or an empty list if the record does not have the format of its file."""
    try:
        base: Fields = {"file": file, "line": record.row_number, "step": _step(record.values.get("step"))}
        return [LoggedRollout(**(base | fields)) for fields in read(record.values)]
    except _OTHER_SHAPE:
        return []


def _reader_of(samples: Sequence[Values], path: Path, reward: str | None) -> Reader:
    names = {name for values in samples for name in values}
    is_training_step, has_scores = {"completion", "reward_terms"} <= names, {"completion", "score", "prompt"} <= names
    if is_training_step or has_scores:
        return lambda values: _read_completion(values, "score")
    if {"prompt", "completion"} <= names:
        column = reward or _trl_reward(samples, names, path)
        return lambda values: _read_completion(values, column)
    if {"input", "output", "score"} <= names:
        return _read_verl
    if "response" in names and names & {"responses_create_params", *JOINED_BY}:
        return partial(_read_nemo_gym, _read_inputs(path))
    if "traces" in names or {"task", "nodes"} <= names:
        return _read_trace
    raise InputError(
        f"{path} is not a log of rollouts; its columns are {', '.join(sorted(names))}.",
        "Name log files of TRL, verl, verifiers, NeMo-Gym or truegold.",
    )


def _trl_reward(samples: Sequence[Values], names: set[str], path: Path) -> str:
    """Return the reward column: `truegold`, or the only column of numbers besides step and advantage."""
    numeric = [
        name
        for name in sorted(names - _TRL_COLUMNS)
        if all(isinstance(values.get(name), int | float | None) for values in samples)
        and any(isinstance(values.get(name), int | float) for values in samples)
    ]
    if "truegold" in numeric:
        return "truegold"
    if len(numeric) != 1:
        raise InputError(
            f"{path} has {len(numeric)} columns of rewards: {', '.join(numeric) or 'none'}.",
            "Name one: --reward COLUMN",
        )
    return numeric[0]


def _read_completion(values: Values, reward: str) -> Iterator[Fields]:
    """Read a line of a log of TRL or truegold."""
    yield {
        "prompt": _question(values.get("prompt")),
        "completion": _response(values.get("completion")),
        "reward": _score(values.get(reward)),
        "advantage": _score(values.get("advantage")),
        **_golds(values, "gold", "answer", "ground_truth", "solution"),
        "logged_reading": _first(values, "truegold_extracted", "extracted", "parsed_answer"),
    }


def _read_verl(values: Values) -> Iterator[Fields]:
    yield {
        "prompt": _without_template(text_of(values.get("input")) or ""),
        "completion": _response(values.get("output")),
        "reward": None if values.get("judged") == 0 else _score(values.get("score")),
        **_golds(values, "gts"),
        "logged_reading": _first(values, "extracted", "pred"),
    }


def _read_nemo_gym(inputs: Mapping[tuple[str, ...], Fields], values: Values) -> Iterator[Fields]:
    """Read a rollout. Missing fields are taken from its input, if there is one."""
    asked = {name: value for name, value in _asked(values).items() if value not in (None, "", "{}")}
    yield {
        **inputs.get(_join_key(values), {"prompt": ""}),
        **asked,
        "completion": response_text(parse_structure(values.get("response")) or {}),
        "reward": None if values.get("judged") is False else _score(values.get("reward")),
        "logged_reading": text_of(values.get("extracted_answer")),
    }


def _asked(values: Values) -> Fields:
    """Return the question, golds and verifier of NeMo-Gym's record."""
    metadata = parse_structure(values.get("verifier_metadata"))
    metadata = metadata if isinstance(metadata, Mapping) else {}
    verifier = _verifier_of(metadata)
    golds = next(
        (golds for name in NEMO_GYM_GOLDS if (golds := gold_texts(values.get(name) or metadata.get(name)))), []
    )
    gold, arguments = with_golds(parse_structure(verifier["verifier_args"]) or {}, golds)
    question = text_of(values.get("question")) or _question(Column("responses_create_params.input")(values))
    return {"prompt": question, "gold": gold, **verifier, "verifier_args": dump_json(arguments)}


def _read_trace(values: Values) -> Iterator[Fields]:
    """Read an episode of verifiers v1, which has one trace or several."""
    for trace in values.get("traces") or [values]:
        data: Values = (trace.get("task") or {}).get("data") or {}
        rewards = [reward for reward in (trace.get("rewards") or {}).values() if reward is not None]
        scores = [
            entry["score"] * entry.get("weight", 1.0) if isinstance(entry, Mapping) else float(entry)
            for entry in rewards
        ]
        yield {
            "step": _step((values.get("work") or {}).get("step")),
            "prompt": _question(data.get("prompt")),
            "completion": trace.get("root_reply") or _last_sampled(trace.get("nodes") or ()),
            "reward": sum(scores) if scores else None,
            "gold": _first(data, "gold", "answer"),
            **_verifier_of(data),
        }


def _last_sampled(nodes: Sequence[Values]) -> str:
    """Return the text of the last message that the model wrote."""
    messages = [node["message"] for node in nodes if node.get("sampled")]
    messages = messages or [node["message"] for node in nodes if node["message"].get("role") == "assistant"]
    return _response(messages[-1].get("content") if messages else "")


def _response(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(part, Mapping) and "role" not in part for part in value):
        return "".join(text_of(part.get("text")) or "" for part in value)
    return read_response(parse_structure(value) if isinstance(value, list) else value) or ""


def _question(value: Any) -> str:
    content, _ = read_prompt(value)
    return _without_template(text_of(content) or "")


def _without_template(prompt: str) -> str:
    """Return the last turn of a prompt that has the marks of a chat template, or lines with roles."""
    parts = [part for part in map(str.strip, _TEMPLATE_MARKS.split(prompt)) if part]
    last = parts[-1] if parts else ""
    turns = [part.strip() for part in _BARE_ROLE.split(f"\n{last}\n") if part.strip()]
    return turns[-1] if turns else last


def _first(values: Values, *names: str) -> str | None:
    return next((text for name in names if (text := text_of(values.get(name))) is not None), None)


def _golds(values: Values, *names: str) -> Fields:
    """Return the gold from the first column that has one. Further golds of a list go to the verifier's arguments."""
    golds = next((golds for name in names if (golds := gold_texts(values.get(name)))), [])
    gold, arguments = with_golds({}, golds)
    return {"gold": gold, "verifier_args": dump_json(arguments)}


def _verifier_of(values: Values) -> Fields:
    arguments = values.get("verifier_args")
    return {
        "verifier": text_of(values.get("verifier")),
        "verifier_args": arguments if isinstance(arguments, str) else dump_json(arguments or {}),
    }


def _step(value: Any) -> int | None:
    return int(value) if _is_number(value) else None


def _score(value: Any) -> float | None:
    return float(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    """Return True for a number other than NaN, which TRL writes for None."""
    return isinstance(value, int | float) and not math.isnan(value)
