"""Counts responses that end in a form which is not read, and reports the form once chance cannot explain it:
`UnreadTally`.

    tally = UnreadTally()
    for item, verdict in zip(items, verdicts):
        tally.add(item, verdict, ended=True, source="gsm8k")
        for line in tally.take_lines():
            print(line)

    48 of 50 responses to prompts that begin 'Answer with a table.' end in a form that is not read, and score 0. Of
    those without a match 46 have gold at the end, 1 another row's gold. An example: '| **Total** | 72 dollars |'

An answer in a form that is not read earns 0 like a wrong one, so that a low pass rate looks like a hard problem. A form
is told from chance by the golds: they stand at the end of responses that were not read, and those of other rows do
not. A weak model that rambles writes other numbers. Responses are counted by source, verifier, and the first and last
line of the prompt, from `FEWEST` responses on and each time that their number doubles. Responses that were cut at their
limit of tokens are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import comb

from truegold.verifiers.extract import GUESSED, final_part, names_gold
from truegold.verifiers.running.batch import Item
from truegold.verifiers.verdict import Reason, Verdict

FEWEST = 50
"""Responses of a kind before anything is said of it while more are to come."""
FEWEST_AT_END = 8
"""Responses of a kind before anything is said of it at the end."""
SHARE = 0.05
"""A form that is not read is worth a line from this share of the responses on."""
NEARLY_ALL = 0.8
"""A line is given from this share of unread responses on, whether gold stands in them or not."""
CHANCE = 0.05
"""The probability that gold stands at the end so much more often than another row's gold by chance."""
COVERED = 0.8
"""A narrower kind is named in place of a wider one whose unread responses are its own to this share."""
MAX_KINDS = 2_000
"""Kinds of prompts that are counted. Stops the first line of each of a million problems from being kept."""
SHOWN_CHARS = 60
SHOWN_ANSWER_CHARS = 120

_UNANNOUNCED = (*GUESSED, "whole_response")
"""Forms of an answer that may be another text than the answer."""

Kind = tuple[str, str]
"""A group of responses that are counted together: a word for the common property, and its text."""
_ALL: Kind = ("", "")


@dataclass(slots=True)
class UnreadCount:
    """The responses of a kind that ended by themselves."""

    ended: int = 0
    unread: int = 0
    """Responses with the reason `unread`."""
    with_gold: int = 0
    """Responses with gold at the end that were not read, that have no answer, or whose wrong value was taken from words
    that announce none. They are counted from the second gold on."""
    with_another: int = 0
    """Such responses with another row's gold at the end."""
    example: str = ""
    """The first that was not read, or the first of them with gold at the end."""
    example_has_gold: bool = False

    @property
    def is_a_form(self) -> bool:
        """Whether right answers are among those that were not read, or nearly none is read."""
        if self.unread >= NEARLY_ALL * self.ended:
            return self.unread > 0
        tries = self.with_gold + self.with_another
        chance = sum(comb(tries, count) for count in range(self.with_gold, tries + 1)) / 2**tries
        return min(self.with_gold, self.unread) >= max(1, SHARE * self.ended) and chance < CHANCE


@dataclass
class UnreadTally:
    """Counts by kind."""

    counts: dict[Kind, UnreadCount] = field(default_factory=dict)
    reported: list[Kind] = field(default_factory=list)
    """The kinds of which a line has been given."""
    _lines: list[str] = field(default_factory=list)
    _another_gold: str | None = None
    _last_gold: str | None = None

    def add(self, item: Item, verdict: Verdict, *, ended: bool = True, source: str = "") -> None:
        """Count a verdict.

        ended: whether the model ended the response by itself. source: where the row comes from.
        """
        gold = item.gold if isinstance(item.gold, str) else None
        if gold is not None and gold != self._last_gold:
            self._another_gold, self._last_gold = self._last_gold, gold
        if not ended or verdict.score is None:
            return
        is_unread = verdict.reason is Reason.UNREAD
        is_guess = verdict.reason is Reason.MISMATCH and verdict.evidence.get("form") in _UNANNOUNCED
        # All of these are looked at for either gold: some are `unread` because gold stands in them.
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
        """Return the lines that there are to say by now, each once."""
        lines, self._lines = self._lines, []
        return lines

    def finish(self) -> list[str]:
        """Return the lines that are left to say at the end, of fewer responses too."""
        return [*self.take_lines(), *self._new_lines(FEWEST_AT_END)]

    @property
    def unread(self) -> int:
        """How many responses that ended by themselves were not read."""
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
        """Say whether lines that were given cover most unread responses of a kind."""
        covered = sum(self.counts[other].unread for other in self.reported if other == kind or other[0] != kind[0])
        return self.counts[kind].unread - covered < (1 - COVERED) * self.counts[kind].unread

    def _narrow(self, kind: Kind) -> Kind:
        """Return the smallest kind that has most of the unread responses of `kind`."""
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
    """Return a line that says how many responses of a kind are not read, with an example."""
    words, text = kind
    which = f" {words} {text!r}" if words else ""
    shown = " ".join(final_part(count.example)[-SHOWN_ANSWER_CHARS:].split())
    return (
        f"{count.unread:,} of {count.ended:,} responses{which} end in a form that is not read, and score 0. Of "
        f"those without a match {count.with_gold:,} have gold at the end, {count.with_another:,} another row's gold. "
        f"An example: {shown!r}"
    )
