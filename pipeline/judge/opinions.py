r"""Asks another verifier or a language model for a second opinion, if rules gave no score, or scored prose 0.

    rule            second opinion      the verdict after it
    0, unread       right               0, evidence {"second_opinion": {"by": "math_verify@1", "score": 1.0}}
    None, declined  wrong               None, with the same evidence and 0.0
    1, match        not asked           unchanged

A second opinion is stored as evidence and does not change the rule's score. There is one exception: in training,
`raise_unread` scores an unread answer 1 if the second opinion calls it right. This needs an audit (`judge.audit`).

A language model gets only the answer and the gold, in both orders, between random marks (`judge.model`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truegold.pipeline.config.stages import JudgeConfig, OpinionConfig
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import REPLIES
from truegold.verifiers import BatchVerifier, Item, Reason, Verdict, fingerprint

if TYPE_CHECKING:
    from truegold.pipeline.judge.model import Judge

BATCH = 256
"""The number of verdicts in one batch."""
OPINION = "second_opinion"
"""The name of a second opinion in evidence, facts and settings."""
RAISED = "raised_from"
"""The name, in evidence, of the reason that a verdict had before its score was raised."""
_COMMANDS = re.compile(r"\\[A-Za-z]+")
_WORDS = re.compile(r"[A-Za-zÀ-ž]{3,}\W+(?:\w+\W+)?[A-Za-zÀ-ž]{3,}|[一-鿿]{3}")
"""Two words, or three Chinese characters."""
_CALLED = {1.0: "right", 0.0: "wrong", None: "undecided"}

OPEN_REASONS = frozenset(JudgeConfig.model_fields["reasons"].default)
"""The reasons of verdicts without a score that get a second opinion."""

Asks = Callable[[Item, Verdict], bool]
"""A function that decides whether a verdict gets a second opinion."""


def is_open(item: Item, verdict: Verdict) -> bool:
    """Return True if rules could not judge a response, or called prose wrong: `twice a day` for `two times daily`."""
    if item.gold is None or verdict.reason is Reason.UNREAD:
        return item.gold is not None
    if verdict.reason is Reason.MISMATCH:
        return all(_WORDS.search(_COMMANDS.sub(" ", text or "")) for text in (item.gold, verdict.extracted))
    return verdict.score is None and verdict.reason in OPEN_REASONS


class SecondOpinion:
    """Asks the configured verifier or model about open verdicts, and counts its answers."""

    def __init__(self, config: OpinionConfig, replies: Path | None = None) -> None:
        """Open the verifier or model; `replies` is the folder for stored replies of a chat engine."""
        self._judge: Judge | None = None
        self._verifier = config.verifier
        if config.model is not None:
            from truegold.pipeline.judge.model import load_judge

            self._judge = load_judge(config.model, replies)
        self.by = config.model.name if config.model is not None else fingerprint(str(config.verifier))
        self._batches = BatchVerifier(1)
        self.counts: dict[str, Counter[str]] = {}
        """The rule's reason -> the numbers of verdicts that this opinion calls right, wrong or undecided."""

    def __call__(self, items_asked: Sequence[Item], verdicts: Sequence[Verdict], asks: Asks = is_open) -> list[Verdict]:
        """Return the verdicts. Open verdicts have the second opinion in their evidence."""
        judged = list(verdicts)
        asked = [n for n, (item, verdict) in enumerate(zip(items_asked, verdicts, strict=True)) if asks(item, verdict)]
        opinions = self._ask([items_asked[n] for n in asked], [verdicts[n] for n in asked])
        for n, (same, shown) in zip(asked, opinions, strict=True):
            opinion = {"by": self.by, "score": None if same is None else float(same), **shown}
            self.count(judged[n].reason, opinion["score"])
            judged[n] = replace(judged[n], evidence={**judged[n].evidence, OPINION: opinion})
        return judged

    def count(self, reason: str, score: float | None) -> None:
        """Count an opinion on a verdict with this reason."""
        self.counts.setdefault(str(reason), Counter())[_CALLED[score]] += 1

    def add_counts(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Add counts of other parts of a table."""
        for reason, opinions in counts.items():
            self.counts.setdefault(reason, Counter()).update(opinions)

    def facts(self, progress: Progress) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
        """Return the counts for the report, and the costs; print both."""
        for reason, counts in sorted(self.counts.items()):
            shares = ", ".join(f"{counts[name]:,} {name}" for name in _CALLED.values())
            progress.note(f"second opinion of {self.by} on {counts.total():,} verdicts {reason}: {shares}")
        costs = self._judge.report_costs(progress) if self._judge is not None else []
        return {"by": self.by, "counts": {reason: dict(counts) for reason, counts in self.counts.items()}}, costs

    def close(self) -> None:
        """End processes and connections."""
        self._batches.close()
        if self._judge is not None:
            self._judge.close()

    def _ask(self, asked: list[Item], verdicts: list[Verdict]) -> list[tuple[bool | None, Mapping[str, Any]]]:
        """Return (is right, further evidence) for each item."""
        if self._judge is not None:
            return [
                (None, {}) if comparison is None else (comparison.same, {"replies": list(comparison.replies)})
                for comparison in self._judge.compare(asked, verdicts)
            ]
        others = self._batches.verify([replace(item, verifier=str(self._verifier)) for item in asked])
        return [
            (None if other.score is None else other.passed, {"reason": str(other.reason), "answer": other.extracted})
            for other in others
        ]


def open_opinion(config: OpinionConfig | None, folder: Path | None) -> SecondOpinion | None:
    """Return the configured second opinion, or None. Its replies are stored in `folder`, if given."""
    replies = None if folder is None else folder / REPLIES
    return None if config is None else SecondOpinion(config, replies)


def verify_and_hear(
    rows: Iterable[Item],
    verify_all: Callable[[Iterable[Item]], Iterator[Verdict]],
    opinion: SecondOpinion | None,
    asks: Asks = is_open,
) -> Generator[Verdict, None, None]:
    """Yield the verdicts of `verify_all` in order. If there is an `opinion`, open verdicts get a second opinion."""
    if opinion is None:
        yield from verify_all(rows)
        return
    judged, asked = tee(rows)
    verdicts = verify_all(judged)
    while batch := list(islice(zip(asked, verdicts, strict=False), BATCH)):
        yield from opinion([item for item, _ in batch], [verdict for _, verdict in batch], asks)


def raise_unread(verdict: Verdict) -> Verdict:
    """Return the verdict for the reward in training: an unread answer that the second opinion calls right gets the
    score 1."""
    opinion = verdict.evidence.get(OPINION)
    if verdict.reason is Reason.UNREAD and opinion is not None and opinion["score"] == 1.0:
        return replace(verdict, score=1.0, reason=Reason.MATCH, evidence={**verdict.evidence, RAISED: "unread"})
    return verdict
