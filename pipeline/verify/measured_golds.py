r"""Finds sets whose golds look like measured or computed values, and proposes the option `rounding: measured`.

    gold                                            looks
    "5.96e24"                                       measured, since it has a power of ten
    "0.85", problem "... moves at 3.2 m/s ..."      measured, since it has a decimal point, and the problem has a unit
    "58.333", "0.14400000000000002"                 computed, since it has three or more decimals
    "16.9%"                                         computed, since it is a decimal percentage
    "2.5", problem "... shares 5 apples ..."        neither

With this option, the verifier `math` compares numbers as rounded values. It is proposed if enough golds look measured
or computed. A proposal is printed and recorded, and changes nothing else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.problems import ProblemColumns, read_problems
from truegold.pipeline.tables.rows import Row
from truegold.verifiers.decimal_commas import comma_setting, with_points
from truegold.verifiers.math.measures import unit_of

OPTIONS: Mapping[str, Any] = {"rounding": "measured"}
DECIDED = ("rounding", "decimals", "tolerance", "answer_digits")
"""Options about rounding. A row with one of them is skipped."""
MIN_SHARE = 0.08
"""The option is proposed if at least this share of the golds with digits looks measured. The highest share in 18 sets
of mathematics is .041. Two sets of science have .15 and .31."""
MIN_ROWS = 10
"""The minimum number of golds that look measured or computed."""
MIN_FRACTIONS = 0.25
"""The minimum share of decimal fractions among golds with digits, for computed golds. Of 18 sets of mathematics, none
has more than .21. Three sets of finance have .28, .58 and .75."""
MIN_COMPUTED = 1 / 3
"""The minimum share of computed golds among the decimal fractions."""
EXAMPLE_CHARS = 60
MAX_CHARS = 4_000
"""Only this number of characters at the start of a problem is read."""
_EVERYDAY = frozenset(
    "m s month kg acre degree radian percent byte bit dollar euro sterling yuan yen rupee ruble won".split()
)
"""Dimensions of ordinary word problems. They do not show a measurement. Areas and volumes are rare in such problems,
and do show one."""
_POINT = re.compile(r"\d\.\d|(?<!\d)\.\d")
_FRACTION = re.compile(r"\D{0,3}\d[\d,]*\.(?=\d*[1-9])(\d\d(\d)?)?\d*\s?[%％]?")
_GROUPED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
"""A number whose point may be between thousands, such as `1.250`. If all fractions have this form, none is computed."""
_POWER_OF_TEN = re.compile(r"(?:\\times|\\cdot|[x×*·])\s?\{?10\s?\^|\d[eE][-+]?\d")
_AMOUNT = re.compile(
    r"(?<![\d.])\d[\d.]{0,15}"
    r"(?:\\[,;: ]|[~${\s]|\\(?:mathrm|text|rm|operatorname)\b)*\\?([A-Za-zµμΩÅ°]{1,12})\}?(\s?/)?"
)
"""A number with the first unit after it, and the slash in a unit such as m/s."""


def find_sign(text: str) -> str | None:
    """Return the part of a text that shows a measurement (a power of ten, or an amount with a unit), or None."""
    if (power := _POWER_OF_TEN.search(text)) is not None:
        return power[0]
    for amount in _AMOUNT.finditer(text, 0, MAX_CHARS):
        if (unit := unit_of(amount[1])) is not None and unit.dimension:
            names = {name for name, _ in unit.dimension}
            if len(names) > 1 or not names <= _EVERYDAY or (amount[2] and names <= {"m", "kg"}):
                return amount[0]
    return None


@dataclass
class MeasuredTally:
    """Counts the golds of a set, and those that look measured or computed."""

    golds: int = 0
    """The number of golds with digits. Others are not counted."""
    measured: int = 0
    fractions: int = 0
    """The number of golds that are decimal fractions: at least one decimal is not 0."""
    computed: int = 0
    """The number of decimal fractions with three or more decimals."""
    ungrouped: int = 0
    """The number of decimal fractions that cannot be thousands, as 1.250 can be."""
    example: str = ""

    def add(self, gold: str, prompt: str) -> None:
        """Count one gold."""
        if not any(map(str.isdigit, gold)):
            return
        self.golds += 1
        if (fraction := _FRACTION.fullmatch(gold.strip())) is not None:
            self.fractions += 1
            is_computed = fraction[2] is not None or gold.rstrip()[-1] in "%％"
            self.computed += is_computed
            self.ungrouped += _GROUPED.fullmatch(gold.strip()) is None
            self.example = self.example or (f"{gold[:EXAMPLE_CHARS]!r}" if is_computed else "")
        sign = find_sign(gold)
        if sign is None and (_POINT.search(gold) is None or (sign := find_sign(prompt)) is None):
            return
        self.measured += 1
        self.example = self.example or f"{gold[:EXAMPLE_CHARS]!r} ({sign[:EXAMPLE_CHARS]})"

    def merge(self, other: MeasuredTally) -> None:
        """Add the counts of another part of the set."""
        self.golds += other.golds
        self.measured += other.measured
        self.fractions += other.fractions
        self.computed += other.computed
        self.ungrouped += other.ungrouped
        self.example = self.example or other.example

    @property
    def proposes(self) -> bool:
        """True if enough golds look measured or computed for a proposal."""
        is_computed = self.fractions >= MIN_FRACTIONS * self.golds and self.computed >= MIN_COMPUTED * self.fractions
        is_measured = self.measured >= MIN_SHARE * self.golds
        is_computed = is_computed and self.computed >= MIN_ROWS and self.ungrouped > 0
        return (self.measured >= MIN_ROWS and is_measured) or is_computed

    @property
    def count_and_kind(self) -> str:
        """A phrase with the number of golds that look measured, or with the number that look computed if this is
        larger."""
        count, kind = max((self.measured, "measured"), (self.computed, "computed"))
        return f"{count:,} of {self.golds:,} golds with figures look {kind}"

    def as_json(self) -> dict[str, Any]:
        """Return the proposed options and the counts. The options are empty if nothing is proposed."""
        counts = {"golds_with_figures": self.golds, "measured": self.measured, "computed": self.computed}
        return {
            "verifier": "math",
            "verifier_args": dict(OPTIONS) if self.proposes else {},
            **counts,
            "example": self.example,
            "reason": self.count_and_kind,
        }


@dataclass
class ProposalBySource:
    """Tallies of the golds of a table of rows, by source."""

    tallies: dict[str, MeasuredTally] = field(default_factory=lambda: defaultdict(MeasuredTally))

    def add(self, row: Row) -> None:
        """Count the gold of a row. Only rows with the verifier `math` and without an option in DECIDED are counted."""
        if row["verifier"] != "math" or row["gold"] is None:
            return
        if row["verifier_args"] == "{}" or not set(DECIDED) & orjson.loads(row["verifier_args"]).keys():
            is_decimal = comma_setting(row["verifier_args"]) == "decimal"
            gold = with_points(row["gold"]) if is_decimal else row["gold"]
            self.tallies[row["source"]].add(gold, row["prompt"])

    def counting(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows unchanged, and count their golds."""
        for row in rows:
            self.add(row)
            yield row

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return the tallies by source, for `merge`."""
        return {source: asdict(tally) for source, tally in self.tallies.items()}

    def merge(self, counts: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the counts of another part of the table."""
        for source, tally in counts.items():
            self.tallies[source].merge(MeasuredTally(**tally))

    def as_json(self) -> dict[str, dict[str, Any]]:
        """Return the proposal for each source that has one."""
        return {source: tally.as_json() for source, tally in self.tallies.items() if tally.proposes}

    def lines(self) -> list[str]:
        """Return a line for each proposal, with the setting that applies it."""
        where = "data" if len(self.tallies) == 1 else "its entry of data"
        advice = f"to judge them by their figures, set in {where}: verifier_args: {{rounding: measured}}"
        return [
            f"{tally.count_and_kind} of {source}, such as {tally.example}; {advice}"
            for source, tally in self.tallies.items()
            if tally.proposes
        ]


def propose_options(path: Path, columns: ProblemColumns) -> dict[str, Any]:
    """Return the options that are proposed for the golds of a file. Raises InputError if it has no problems."""
    tally = MeasuredTally()
    for batch in read_problems(path, columns, clean=False):
        for prompt, gold in zip(batch.prompts, batch.golds, strict=True):
            if gold is not None:
                tally.add(gold, prompt)
    return tally.as_json()
