"""The batch runner of all adapters: rows and responses in, verdicts out, from any thread or process.

    scorer = Scorer()
    verdicts = scorer.judge([RowTruth(gold="72").question("... \\\\boxed{72}")])
    scorer.paid(verdicts[0]), record_of(verdicts[0])          1.0, {"score": 1.0, "judged": 1.0, "reason": "match", ...}

Verifiers of truegold's own judge a small batch in the caller's thread, since they bound their work; a large batch, or
a user's verifier, goes to processes that are kept from one batch to the next and killed where a verdict is late. A
scorer is pickled by its settings; the copy, like one in a forked process, starts processes of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from truegold.verifiers.conversation import Message, write_out
from truegold.verifiers.gold import OF_VALUES, quoted_list
from truegold.verifiers.registry import BUILT_IN, resolve
from truegold.verifiers.running.batch import (
    DEADLINE_S,
    MAX_TIMEOUTS,
    SMALL_BATCH,
    BatchVerifier,
    Item,
    ResolvedVerifiers,
    TimeoutTally,
)
from truegold.verifiers.sandbox.child_process import usable_cores
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import Verdict

CHUNK = 16
"""Responses that a process is handed at a time: a training step waits for the slowest."""
GOLD_COLUMNS = ("gold", "answer", "ground_truth", "expected_answer", "solution", "target")
"""Columns that hold gold in sets that truegold has not exported, the surest first."""


TRUTH_COLUMNS = frozenset((*GOLD_COLUMNS, "truegold", "verifier", "verifier_args"))
"""A row with none of these columns says nothing of what is right."""


@dataclass(frozen=True, slots=True)
class RowTruth:
    """What a response is judged by."""

    gold: Any
    """The gold, or a list of accepted ones, as `gold.golds_in` reads them."""
    verifier: str = "math"
    verifier_args: str = "{}"
    problem: str | None = None

    def question(self, response: str) -> Item:
        """Return what is asked of the verifier about a response."""
        return Item(response, self.gold, self.verifier, self.verifier_args, self.problem)


def truth_of(columns: Mapping[str, Any], problem: str | None = None) -> RowTruth:
    """Return what a trainer's row is judged by: what truegold's export has put there, else gold by its usual names."""
    names: Sequence[str] = GOLD_COLUMNS
    if isinstance(carried := columns.get("truegold"), str) and carried.startswith("{"):
        columns, names = json.loads(carried), ("gold",)
    gold = next((columns[name] for name in names if columns.get(name) is not None), None)
    arguments = columns.get("verifier_args") or "{}"
    arguments = arguments if isinstance(arguments, str) else json.dumps(arguments)
    verifier = columns.get("verifier") or "math"
    return RowTruth(quoted_list(gold) or gold if verifier in OF_VALUES else gold, verifier, arguments, problem)


def truth_of_label(label: Any, problem: str | None = None) -> RowTruth:
    """Return what a label is judged by: the row that an export has put there as JSON text, else the label is gold."""
    try:
        row = json.loads(label) if isinstance(label, str) and label.startswith("{") else None
    except ValueError:
        row = None
    if isinstance(row, dict) and "verifier" in row:
        return truth_of({"truegold": label}, problem or row.get("problem"))
    return RowTruth(label, problem=problem)


@dataclass
class Scorer:
    """Judges responses for a trainer."""

    verifier: str | None = None
    """The verifier of all rows; each row's own where not given."""
    unjudged: float | None = None
    """The reward of what could not be judged. None leaves it out where the trainer can, and is an error elsewhere."""
    workers: int = 0
    """Processes; 0 takes one per core."""
    deadline_s: float = DEADLINE_S
    """Seconds for one verdict; after that it has no score."""
    _verifiers: ResolvedVerifiers = field(init=False, repr=False, compare=False)
    _processes: BatchVerifier = field(init=False, repr=False, compare=False)
    _tally: TimeoutTally = field(init=False, repr=False, compare=False)
    """Of all batches, whose small ones say little of a share."""

    def __post_init__(self) -> None:
        if self.verifier is not None:
            resolve(self.verifier)
        if self.unjudged is not None and not isinstance(self.unjudged, int | float):
            raise ConfigError(f"unjudged is {self.unjudged!r}.", "It is a number, or None to leave such responses out.")
        self._prepare()

    def _prepare(self) -> None:
        self._verifiers = ResolvedVerifiers()
        self._processes = BatchVerifier(self.workers or usable_cores(), CHUNK, self.deadline_s)
        self._tally = TimeoutTally(MAX_TIMEOUTS, self.deadline_s)

    def judge(self, questions: Iterable[Item]) -> list[Verdict]:
        """Return the verdicts in the order of the questions."""
        asked = list(questions)
        if self.verifier is not None:
            asked = [replace(item, verifier=self.verifier) for item in asked]
        if len(asked) < SMALL_BATCH and all(item.verifier in BUILT_IN for item in asked):
            return [self._verifiers.judge(item).verdict for item in asked]
        return list(self._processes.verify(asked, self._tally))

    def paid(self, verdict: Verdict) -> float | None:
        """Return the reward of a verdict; None where it has none."""
        return self.unjudged if verdict.score is None else verdict.score

    def close(self) -> None:
        """End the processes; the next batch starts others."""
        self._processes.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


def record_of(verdict: Verdict) -> dict[str, float | str]:
    """Return what trainers log of a verdict: the same keys for every sample, and no None among the values."""
    is_judged = verdict.score is not None
    numbers = {"score": verdict.score or 0.0, "judged": float(is_judged), "masked": float(not is_judged)}
    return {**numbers, "reason": str(verdict.reason), "extracted": verdict.extracted or ""}


def masked_share(verdicts: Sequence[Verdict]) -> float:
    """Return the share of the verdicts without a score."""
    return sum(verdict.score is None for verdict in verdicts) / max(len(verdicts), 1)


def problem_text(prompt: Any) -> str | None:
    """Return a prompt as one text: of messages the only one, or all of them, each behind its speaker."""
    if isinstance(prompt, str):
        return prompt
    messages = [
        Message(role=str(message.get("role")), content=last_text([{**message, "role": "assistant"}]))
        for message in prompt or ()
    ]
    return messages[0]["content"] if len(messages) == 1 else write_out(messages) or None


def last_text(completion: Any) -> str:
    """Return a completion's text: of a conversation, the last assistant message's."""
    if isinstance(completion, str):
        return completion
    replies = [message for message in completion or () if message.get("role") == "assistant"]
    content = replies[-1].get("content") if replies else ""
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    return content or ""
