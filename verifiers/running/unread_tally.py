"""Detects answers in a form that the verifier cannot read. `UnreadTally` counts such responses and reports them.

    tally = UnreadTally()
    for item, verdict in zip(items, verdicts):
        tally.add(item, verdict, ended=True, source="gsm8k")
        for line in tally.take_lines():
            print(line)

    48 of 50 responses to prompts that begin 'Answer with a table.' end in a form that is not read, and score 0. Among
    the failed responses, 46 end with gold and 1 ends with another row's gold. An example: '| **Total** | 72 dollars |'

An answer in such a form scores 0, so an easy problem looks like a hard one. A response without any answer scores 0 too.
But only answers in an unread form end with the row's own gold much more often than with the gold of another row.

Responses are counted by *kind*: by source, by verifier, and by the first and the last line of the prompt. Counts are
checked at `FEWEST` responses, and whenever the number of responses has doubled. Responses that were cut at their token
limit are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import comb

from truegold.verifiers.extract import GUESSED, final_part, names_gold
from truegold.verifiers.running.batch import Item
from truegold.verifiers.verdict import Reason, Verdict

FEWEST = 50
"""Minimum number of responses of a kind for a report during a run."""
FEWEST_AT_END = 8
"""Minimum number of responses of a kind for a report at the end of a run."""
SHARE = 0.05
"""Two shares of a kind's responses must be at least this high for a report: unread responses, and failed responses that
end with gold."""
NEARLY_ALL = 0.8
"""A kind with this share of unread responses is reported even if they do not end with the gold."""
CHANCE = 0.05
"""The significance level of the sign test: do failed responses end with their own gold more often than with another?"""
COVERED = 0.8
"""A report names a smaller kind in place of a larger one, if the smaller one has this share of the unread responses."""
MAX_KINDS = 2_000
"""Maximum number of kinds that are counted. Prompts may have a million different first lines."""
SHOWN_CHARS = 60
SHOWN_ANSWER_CHARS = 120

_UNANNOUNCED = (*GUESSED, "whole_response")
"""Forms of a response that does not announce its answer. The verifier may have read another text as the answer."""

Kind = tuple[str, str]
"""A group of responses, such as ("from", "gsm8k"): the property that they share, in words, and its value."""
_ALL: Kind = ("", "")
"""The kind of all responses."""


@dataclass(slots=True)
class UnreadCount:
    """The counts of one kind."""

    ended: int = 0
    """All responses that the model ended itself."""
    unread: int = 0
    """Responses with the reason `unread`."""
    with_gold: int = 0
    """Failed responses that end with gold. A failed response is unread, has no answer, or has a wrong answer without an
    announcement such as "Answer:". The count starts with the second gold, because the first has no gold to compare."""
    with_another: int = 0
    """Failed responses that end with another row's gold."""
    example: str = ""
    """The first unread response with gold at the end, or else the first unread response."""
    example_has_gold: bool = False

    @property
    def is_a_form(self) -> bool:
        """Whether nearly all responses are unread, or significantly many failed responses end with gold."""
        if self.unread >= NEARLY_ALL * self.ended:
            return self.unread > 0
        tries = self.with_gold + self.with_another
        chance = sum(comb(tries, count) for count in range(self.with_gold, tries + 1)) / 2**tries
        return min(self.with_gold, self.unread) >= max(1, SHARE * self.ended) and chance < CHANCE


@dataclass
class UnreadTally:
    """Counts responses by kind and makes the lines of the report."""

    counts: dict[Kind, UnreadCount] = field(default_factory=dict)
    reported: list[Kind] = field(default_factory=list)
    """Kinds that have been reported."""
    _lines: list[str] = field(default_factory=list)
    _another_gold: str | None = None
    _last_gold: str | None = None

    def add(self, item: Item, verdict: Verdict, *, ended: bool = True, source: str = "") -> None:
        """Count a verdict.

        ended: False if the response was cut at its token limit. source: the name of the row's source.
        """
        gold = item.gold if isinstance(item.gold, str) else None
        if gold is not None and gold != self._last_gold:
            self._another_gold, self._last_gold = self._last_gold, gold
        if not ended or verdict.score is None:
            return
        is_unread = verdict.reason is Reason.UNREAD
        is_guess = verdict.reason is Reason.MISMATCH and verdict.evidence.get("form") in _UNANNOUNCED
        # Gold at the end is one cause of the reason `unread`. Without other failures, the comparison would be biased.
        looks = self._another_gold is not None and (is_unread or is_guess or verdict.reason is Reason.NO_ANSWER)
        with_gold = looks and names_gold(item.response, gold)
        with_another = looks and names_gold(item.response, self._another_gold)
        for kind in _kinds_of(item, source):
            if kind not in self.counts and len(self.counts) >= MAX_KINDS:
                continue
            count = self.counts.setdefault(kind, UnreadCount())
            count.ended += 1
            count.unread += is_unread
            count.with_gold += with_gold
            count.with_another += with_another
            if is_unread and (not count.example or (with_gold and not count.example_has_gold)):
                count.example, count.example_has_gold = item.response, with_gold
        total = self.counts[_ALL].ended
        if total >= FEWEST and total % FEWEST == 0 and (total // FEWEST).bit_count() == 1:
            self._lines += self._new_lines(FEWEST)

    def take_lines(self) -> list[str]:
        """Return the lines of the report since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def finish(self) -> list[str]:
        """Return the remaining lines at the end of a run. They include kinds with only `FEWEST_AT_END` responses."""
        return [*self.take_lines(), *self._new_lines(FEWEST_AT_END)]

    @property
    def unread(self) -> int:
        """The number of unread responses."""
        return self.counts[_ALL].unread if _ALL in self.counts else 0

    def _new_lines(self, fewest: int) -> Iterator[str]:
        for kind in sorted(self.counts, key=lambda kind: (-self.counts[kind].unread, kind != _ALL)):
            count = self.counts[kind]
            if count.ended < fewest or not count.is_a_form or self._is_reported(kind):
                continue
            narrowest = self._narrow(kind)
            self.reported.append(narrowest)
            yield describe_unread(narrowest, self.counts[narrowest])

    def _is_reported(self, kind: Kind) -> bool:
        """Return whether the kinds reported so far cover most unread responses of this kind."""
        covered = sum(self.counts[other].unread for other in self.reported if other == kind or other[0] != kind[0])
        return self.counts[kind].unread - covered < (1 - COVERED) * self.counts[kind].unread

    def _narrow(self, kind: Kind) -> Kind:
        """Return the smallest kind with most of the unread responses of `kind`."""
        unread = self.counts[kind].unread
        covering = [other for other, count in self.counts.items() if count.unread >= COVERED * unread]
        return min(covering, key=lambda other: (self.counts[other].ended, other != kind))


def _kinds_of(item: Item, source: str) -> Iterator[Kind]:
    yield _ALL
    if source:
        yield "from", source
    yield "judged by", item.verifier
    lines = [line for line in (item.problem or "").splitlines() if line.strip()]
    if lines:
        yield "to prompts that begin", lines[0][:SHOWN_CHARS]
    if len(lines) > 1:
        yield "to prompts that end in", lines[-1][-SHOWN_CHARS:]


def describe_unread(kind: Kind, count: UnreadCount) -> str:
    """Return the line of the report on a kind: its counts and an example."""
    words, text = kind
    which = f" {words} {text!r}" if words else ""
    shown = " ".join(final_part(count.example)[-SHOWN_ANSWER_CHARS:].split())
    return (
        f"{count.unread:,} of {count.ended:,} responses{which} end in a form that is not read, and score 0. Among "
        f"the failed responses, {count.with_gold:,} end with gold and {count.with_another:,} with another row's gold. "
        f"An example: {shown!r}"
    )
