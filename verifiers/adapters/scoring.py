"""Judges responses to rows for all adapters, in batches, from any thread or process.

    scorer = Scorer()
    verdicts = scorer.judge([RowTruth(gold="72").question("... \\\\boxed{72}")])
    scorer.paid(verdicts[0]), record_of(verdicts[0])          1.0, {"score": 1.0, "judged": 1.0, "reason": "match", ...}

Built-in verifiers limit their own work, so they judge small batches in the caller's thread. Large batches and users'
verifiers run in child processes, which are kept from one batch to the next and killed if a verdict is late.

Only the settings of a scorer are pickled. A pickled copy, and a forked process, start their own child processes.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from truegold.verifiers.adapters.row_truth import RowTruth, routes_in, truth_of
from truegold.verifiers.checked import checked_class
from truegold.verifiers.conversation import Message, write_out
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
from truegold.verifiers.running.blame import AVOIDABLE, score_avoidable
from truegold.verifiers.running.unread_tally import UnreadTally
from truegold.verifiers.sandbox.child_process import usable_cores
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.verdict import Reason, Verdict

_LOG = logging.getLogger(__name__)

CHUNK = 16
"""Number of responses that a child process gets at a time; small, because a training step waits for the last chunk."""


@checked_class
@dataclass
class Scorer:
    """Judges responses for a trainer."""

    verifier: str | None = None
    """The verifier of all rows; by default each row names its own."""
    unjudged: float | None = None
    """The reward of completions that could not be judged, or None if they have no reward."""
    workers: int = 0
    """The number of child processes; 0 starts one per core."""
    deadline_s: float = DEADLINE_S
    """Maximum time for one verdict, in seconds. A later verdict has no score."""
    routes: Mapping[str, str] | str | None = None
    """Verifiers by data set, for rows that do not name a verifier; by default TRUEGOLD_ROUTES."""
    trains: bool = True
    """Whether a model learns from the rewards. If it does, a response that could not be judged scores 0 if the response
    itself is at fault (`blame`)."""
    _verifiers: ResolvedVerifiers = field(init=False, repr=False, compare=False)
    _processes: BatchVerifier = field(init=False, repr=False, compare=False)
    _tally: TimeoutTally = field(init=False, repr=False, compare=False)
    """Counts the timeouts of all batches, since one batch is too small to estimate their share."""
    _unjudged: UnjudgedLog = field(init=False, repr=False, compare=False)
    _unread: UnreadTally = field(init=False, repr=False, compare=False)
    _routes: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.verifier is not None:
            resolve(self.verifier)
        # Read once, so that a copy in a process with another environment has the same routes.
        self.routes = routes_in(self.routes)
        self._prepare()

    def _prepare(self) -> None:
        self._verifiers = ResolvedVerifiers()
        self._processes = BatchVerifier(self.workers or usable_cores(), CHUNK, self.deadline_s)
        self._tally = TimeoutTally(MAX_TIMEOUTS, self.deadline_s)
        self._unjudged = UnjudgedLog()
        self._unread = UnreadTally()
        self._routes = routes_in(self.routes)

    def truth(self, columns: Mapping[str, Any], problem: str | None = None) -> RowTruth:
        """Return gold, verifier and arguments of a row, given this scorer's verifier and routes."""
        return truth_of(columns, problem, verifier=self.verifier, routes=self._routes)

    def judge(self, questions: Iterable[Item]) -> list[Verdict]:
        """Return the verdicts in the order of the questions."""
        asked = list(questions)
        if self.verifier is not None:
            asked = [_with_verifier(item, self.verifier) for item in asked]
        verdicts = self._judge(asked)
        if self.trains:
            verdicts = score_avoidable(asked, verdicts, self._judge)
        for item, verdict in zip(asked, verdicts, strict=True):
            self._unjudged.add(item, verdict)
            self._unread.add(item, verdict)
        for line in self._unread.take_lines():
            _LOG.warning("truegold: %s", line)
        return verdicts

    def _judge(self, asked: Sequence[Item]) -> list[Verdict]:
        if len(asked) < SMALL_BATCH and all(item.verifier in BUILT_IN for item in asked):
            return [self._verifiers.judge(item).verdict for item in asked]
        return list(self._processes.verify(asked, self._tally))

    def paid(self, verdict: Verdict) -> float | None:
        """Return the reward of a verdict: its score, or `unjudged` if it has no score."""
        return self.unjudged if verdict.score is None else verdict.score

    def close(self) -> None:
        """End the child processes; the next batch starts new ones."""
        self._processes.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


def _with_verifier(item: Item, verifier: str) -> Item:
    """Return an item for another verifier, which may read a gold that the row's verifier could not."""
    return replace(item, verifier=verifier, unread_gold=None if item.gold is not None else item.unread_gold)


class UnjudgedLog:
    """Logs verdicts without a score, since many trainers count them as 0.

    For each reason it logs the 1st, 2nd, 4th, 8th ... verdict. It has no lock, since a fork could copy a locked one.
    """

    def __init__(self) -> None:
        self._seen = itertools.count(1)
        self._by_reason: dict[Reason, Iterator[int]] = {}

    def add(self, item: Item, verdict: Verdict) -> None:
        """Count a verdict. If it has no score, log a warning for the 1st, 2nd, 4th, 8th ... verdict of its reason."""
        seen = next(self._seen)
        if verdict.score is not None and AVOIDABLE not in verdict.evidence:
            return
        count = next(self._by_reason.setdefault(verdict.reason, itertools.count(1)))
        if count & (count - 1):
            return
        error = item.unread_gold or verdict.evidence.get("error")
        _LOG.warning(
            "truegold: %d of %d responses could not be judged (%s) and have %s; the last by %s: %.200s",
            count,
            seen,
            verdict.reason,
            "no score" if verdict.score is None else "score 0, since other responses to the row could be judged",
            item.verifier,
            error or f"gold {item.gold!r:.60}, {dict(verdict.evidence)}",
        )


def record_of(verdict: Verdict) -> dict[str, float | str]:
    """Return a verdict as a record for trainers' logs: always the same keys, and never None."""
    is_judged = verdict.score is not None
    numbers = {"score": verdict.score or 0.0, "judged": float(is_judged), "masked": float(not is_judged)}
    numbers["unread"] = float(verdict.reason is Reason.UNREAD)
    return {**numbers, "reason": str(verdict.reason), "extracted": verdict.extracted or ""}


def masked_share(verdicts: Sequence[Verdict]) -> float:
    """Return the share of verdicts without a score."""
    return sum(verdict.score is None for verdict in verdicts) / max(len(verdicts), 1)


def unread_share(verdicts: Sequence[Verdict]) -> float:
    """Return the share of verdicts with the reason `unread`."""
    return sum(verdict.reason is Reason.UNREAD for verdict in verdicts) / max(len(verdicts), 1)


def problem_text(prompt: Any) -> str | None:
    """Return a prompt as one text. If it has several messages, each follows the name of its role."""
    if isinstance(prompt, str):
        return prompt
    _check_messages("prompt", prompt)
    messages = [
        Message(role=str(message.get("role")), content=last_text([{**message, "role": "assistant"}]))
        for message in prompt or ()
    ]
    return messages[0]["content"] if len(messages) == 1 else write_out(messages) or None


def last_text(completion: Any) -> str:
    """Return the text of a completion. For a conversation, it is the last message of the assistant."""
    if isinstance(completion, str):
        return completion
    _check_messages("completion", completion)
    replies = [message for message in completion or () if message.get("role") == "assistant"]
    content = replies[-1].get("content") if replies else ""
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    return content or ""


def _check_messages(name: str, value: Any) -> None:
    """Raise ConfigError if a prompt or a completion is not a list of messages."""
    is_list = value is None or (hasattr(value, "__iter__") and not isinstance(value, str | Mapping))
    if not is_list or not all(isinstance(message, Mapping) for message in value or ()):
        raise ConfigError(
            f"A {name} must be a text or a list of messages; this is {type(value).__name__} {value!r:.60}.",
            'A message is {"role": "assistant", "content": "..."}.',
        )


def own_turn(text: str) -> str:
    """Return a response up to the end of its turn, without blanks around it.

    own_turn("so 3<|im_end|>")                                 "so 3"
    own_turn("so 3<|im_end|>\\n<|im_start|>user\\nAnd 4?")     "so 3": the policy wrote another turn
    own_turn("In HTML <s>x</s> is struck, so 3</s></s>")       "In HTML <s>x</s> is struck, so 3"
    """
    return text[: min(tokens.end_of_turn(text) for tokens in _FAMILIES)].strip()


class _Tokens(NamedTuple):
    """The special tokens of one family of chat templates, as patterns."""

    end: str
    """A token that ends a turn."""
    start: str
    """A token that starts a turn."""
    padding: str
    """Any other special token that may follow the end."""

    def end_of_turn(self, text: str) -> int:
        """Return the position where the turn ends: at an end token that another turn or only special tokens follow."""
        another = re.search(rf"(?:{self.end})\s{{0,8}}(?={self.start})", text)
        last = end = len(text) if another is None else another.start()
        at_end = re.compile(rf"(?:(?P<end>{self.end})|{self.padding})\s{{0,8}}\Z")
        while (match := at_end.search(text[max(last - _LONGEST, 0) : last])) is not None:
            last -= len(match[0])
            end = last if match["end"] is not None else end
        return end


_LONGEST = 64
"""Maximum length of a special token with blanks after it, in characters."""
_FAMILIES = (
    _Tokens(
        r"<\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|return)\|>",
        r"<\|(?:im_start|start_header_id|user|start|begin_of_text)\|>",
        r"<\|[a-z0-9_▁-]{1,40}\|>",
    ),
    _Tokens(r"<｜end▁of▁sentence｜>", r"<｜(?:User|begin▁of▁sentence)｜>", r"<｜[^｜<>]{1,40}｜>"),
    _Tokens(r"<end_of_turn>|<eos>", r"<start_of_turn>", r"<(?:bos|pad|unk)>"),
    _Tokens(r"</s>", r"(?:<s>\s{0,3})?\[INST\]", r"<(?:pad|unk)>"),
)
"""Families of chat templates. Their tokens end a turn only as `end_of_turn` says: `</s>` may be HTML in a response."""
