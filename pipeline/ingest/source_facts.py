r"""Finds faults of a whole column or file, which many rows of a source show.

    rows of a source                                             fact            meaning
    solutions "x=184.4", "x=12", "x=7" of golds 184.4, 12, 7     repeats_gold    they are no evidence for their golds
    solution "5,400 x 28 = 151,200."   gold "151"                gold_cut        golds end at a comma or stroke
    rows 40 to 58: gold of row 40 ends the solution of row 41    shifted_golds   the column is shifted by a row
    rows 40 to 58: an interval where an equation is asked for    golds_of_neighbours     the same without solutions
    "Welcome to PlusLand!" in 40 of 64 prompts                   boilerplate     a text that belongs to no problem

A fact is reported once for a source, with all rows that show it. No row is held back. A single row may show a fact by
chance, so each fact needs a minimum number and a minimum share of the rows that could show it. A prompt may contain its
gold by chance. So the fact `hints` is reported only if prompts contain their own gold far more often than the previous
row's gold. Rows are read in the order of the file. The first MAX_ROWS rows of a source are read twice: first to count
repetitions, then to judge.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Literal

import orjson

from truegold.pipeline.ingest.gold_signs import (
    ends_with,
    has_measured_quantity,
    is_cut,
    is_first_number,
    language_of_golds,
    lost_parts,
    residue_of,
    told_behind_question,
    unit_or_none,
)
from truegold.pipeline.ingest.neighbouring_golds import find_block
from truegold.pipeline.tables.rows import Row, read_rows
from truegold.pipeline.text.prose import FORMULA, is_said_twice, language_of, sentences, without_formulas
from truegold.pipeline.text.quantities import read_number
from truegold.verifiers.columns import NAMES

MAX_ROWS = 50_000
MAX_CHARS = 4_000
"""The number of characters that are read of a prompt, from its start, and of a solution, from its end."""
MIN_ROWS, MIN_SHARE = 3, 0.02
"""A fact needs at least MIN_ROWS rows, and at least the share MIN_SHARE of the rows that could show it."""
CERTAIN = ("repeats_gold", "shifted_golds", "golds_of_neighbours", "html", "options_twice")
"""Facts that cannot be chance. They are reported even for a small share of rows."""
MIN_REPEATED = 3
"""The minimum number of solutions with the same words around their golds, such as "x=184.4", for `repeats_gold`."""
BOILERPLATE_SHARE, MIN_BOILERPLATE = 0.2, 10
"""A sentence of boilerplate is in at least MIN_BOILERPLATE prompts, and in BOILERPLATE_SHARE of all prompts or more."""
TEMPLATE_SHARE = 0.9
"""A sentence in at least this share of prompts belongs to the template of all problems and is not boilerplate."""
MIN_WORDS, MIN_HAN = 4, 8
"""A sentence of boilerplate has at least MIN_WORDS words or MIN_HAN Chinese characters. Sets without fault repeat
shorter sentences."""
MAX_SENTENCES = 200_000
MIN_RUN = 4
"""The minimum number of different consecutive golds that fit a neighbour's solution better than their own."""
SHIFTS = (1, -1, 2, -2)
"""The shifts that are tried. With shift 1, the gold of row i fits the solution of row i + 1."""
MAX_QUESTIONS = 20_000
"""The maximum number of questions that are compared with neighbours' golds. Each comparison takes half a
millisecond."""
MIN_HINTS = 5
UNIT_SHARE = 0.2
"""The fact `units_stripped` needs at least this share of golds with a unit, and this share of golds without a unit."""
MIN_UNITS = 5
MIN_LOST_OPTIONS = 2
"""A question has lost options if it has at least this many options fewer than usual."""
USUAL_SHARE = 0.6
"""At least this share of questions must have the usual number of options, or one more or less."""
MIN_WORDY = 6
EXAMPLE_CHARS = 100

COLUMNS = ["prompt", "gold", "solution", "domain", "verifier", "verifier_args", "source", "source_row", "meta"]

SAYS = {
    "repeats_gold": "solutions only repeat the gold: they are no evidence for it",
    "gold_cut": "golds are cut off: their solution ends with a longer answer",
    "first_number": "golds are the first number of their solution, which ends with another",
    "lost_parts": "golds answer the first of several things that are asked",
    "shifted_golds": "golds fit the solution of a neighbouring row, and not their own",
    "golds_of_neighbours": "golds fit the question of a neighbouring row better than their own",
    "hints": "prompts give away the gold after the question",
    "gold_notation": "golds are in a formal language that no verifier reads",
    "boilerplate": "prompts have a sentence that belongs to no problem",
    "html": "texts have markup of web pages",
    "two_languages": "prompts are half in another language",
    "gold_language": "golds are in another language than the prompts",
    "units_stripped": "golds lack the unit that golds of the same kind have",
    "options_twice": "questions have an option twice",
    "options_lost": "questions have fewer options than is usual here",
}
"""The words of a report's line about each fact."""

_HTML = re.compile(
    r"</(?:p|div|span|b|i|u|em|strong|sub|sup|table|tr|td|th|ul|ol|li|a|h\d|font|center)\s*>|<(?:br|hr|p|div)\s*/?>"
    r"|<(?:img|span|div|p|a|font|table|td)\s+\w+\s*=|&(?:lt|gt|nbsp|amp|quot|apos|times|divide|frac12|deg|#\d{1,6}|#x[0-9a-f]{1,5});",
    re.IGNORECASE,
)
_NOTATION = re.compile(
    r"(?<![\\A-Za-z])(?:(?:[A-Z][a-z]{2,}){2,}(?=\()|(?:Negation|And|Or|Not|Interval|FiniteSet|Rational)(?=\()|(?:pm|mp)(?=\*))"
)
r"""Names of a formal language: `ApplyUnit(60,degree)`, `pm*2*y`, `Interval(0, 1)`. Not `f(x)` or `\pm`."""
_LATIN_RUN = re.compile(r"(?:\b[A-Za-z][a-z]+\b['’]?[\s,]+(?:(?:\d+|[Aa])\s+)?){2,}[A-Za-z][a-z]+\b")
"""Three words in Latin letters."""
_OTHER_RUN = re.compile(
    "[\u3400-\u9fff\u3041-\u3096\u30a1-\u30fa]{4,}|(?:[\u0400-\u04ff]{2,}\\s+){2}|(?:[\uac00-\ud7af]+\\s+){2}"
    "|(?:[\u0620-\u064a]{2,}\\s+){2}|(?:[\u0904-\u0939\u093e-\u094d]{2,}\\s+){2}"
)
"""Several letters or words in a script other than Latin."""
_ON_THE_ANSWER = re.compile(
    r"\b(?:answers?|fractions?|decimals?|round(?:ed)?|forms?|simplif\w+|express|units?|box(?:ed)?|options?|letters?"
    r"|steps?|reason\w*|terms|assume|enter|antwort\w*|dezimal\w*|runde\w*|schritt\w*|r[ée]pon\w+|arrondi\w*|respuesta\w*"
    r"|redonde\w*|risposta|resposta|ответ\w*|округл\w*)\b|\\boxed|答案|小数|分数|保留|步|选|答え|답",
    re.IGNORECASE,
)
"""Words of a sentence about the answer's form. Such a sentence may be in every prompt."""
_RESPONSES = (*NAMES["solution"], *NAMES["response"])
"""Columns with a text that may derive the gold."""
_ASKED = re.compile("[?？]")
_HAN = re.compile("[\u3400-\u9fff]")


_Shown = str | Literal[False] | None
"""The judgement of a row: an example if it shows a fault, None if it is sound, False if it could not show the fault."""


@dataclass(frozen=True, slots=True)
class SourceFact:
    """A fact about a source, with the rows that show it."""

    source: str
    fact: str
    says: str
    """The common fault of the rows, in words."""
    rows: int
    judged: int
    """The number of rows that could have shown the fault."""
    source_rows: str
    """The numbers of the rows: "2, 5-9, 12"."""
    example: str

    def line(self) -> str:
        """Return the line that reports the fact."""
        numbers = self.source_rows
        shown = numbers if len(numbers) <= EXAMPLE_CHARS else numbers[:EXAMPLE_CHARS].rpartition(",")[0] + ", …"
        example = f"; example: {self.example!r}" if self.example else ""
        return f"{self.source}: {self.rows:,} of {self.judged:,} {self.says}{example}; rows {shown}"


@dataclass(frozen=True, slots=True)
class _Sample:
    """The parts of a row that facts depend on."""

    source_row: int
    prompt: str
    gold: str
    solution: str
    worked: str
    """The solution, or else the response in another column."""
    options: tuple[str, ...]
    is_choice: bool


@dataclass
class _Repeated:
    """The repetitions in a source, which are counted before any row is judged."""

    rows: int = 0
    residues: Counter[str] = field(default_factory=Counter)
    sentences: Counter[str] = field(default_factory=Counter)
    option_counts: Counter[int] = field(default_factory=Counter)
    words: set[str] = field(default_factory=set)
    languages: Counter[str] = field(default_factory=Counter)

    def add(self, row: _Sample) -> None:
        """Count a row."""
        self.rows += 1
        if (residue := residue_of(row.gold, row.solution)) is not None:
            self.residues[residue] += 1
        if len(self.sentences) < MAX_SENTENCES:
            self.sentences.update(set(_statements(row.prompt)))
            self.words.update(re.findall(r"[^\W\d_]{3,}", row.prompt.lower()))
        if row.options:
            self.option_counts[len(row.options)] += 1
        if self.rows <= 100:
            self.languages[language_of(row.prompt)] += 1

    @property
    def boilerplate(self) -> frozenset[str]:
        """The sentences that occur in too many prompts to belong to one of them."""
        least, most = max(MIN_BOILERPLATE, BOILERPLATE_SHARE * self.rows), TEMPLATE_SHARE * self.rows
        return frozenset(text for text, rows in self.sentences.items() if least <= rows < most)

    @property
    def least_options(self) -> int:
        """The minimum usual number of options, or 0 if no number is usual."""
        if not self.option_counts:
            return 0
        usual, _ = self.option_counts.most_common(1)[0]
        alike = sum(rows for count, rows in self.option_counts.items() if abs(count - usual) < MIN_LOST_OPTIONS)
        return usual - MIN_LOST_OPTIONS + 1 if alike >= USUAL_SHARE * self.option_counts.total() else 0


@dataclass
class _Tally:
    """The rows of a source that show each fault, and the number of rows that could show it."""

    rows: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    judged: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, fact: str, row: _Sample, example: str | None) -> None:
        """Count a row that could show a fault. If an `example` is given, the row shows the fault."""
        self.judged[fact] += 1
        if example is not None:
            self.rows[fact].append(row.source_row)
            self.examples.setdefault(fact, " ".join(example.split())[:EXAMPLE_CHARS])


def find_source_facts(path: Path) -> list[SourceFact]:
    """Return the facts of all sources in a table of rows, source by source."""
    repeated: dict[str, _Repeated] = defaultdict(_Repeated)
    for source, samples in _by_source(path):
        for sample in samples:
            repeated[source].add(sample)
    return [
        fact for source, samples in _by_source(path) for fact in _facts_of_source(source, samples, repeated[source])
    ]


def _by_source(path: Path) -> Iterator[tuple[str, Iterator[_Sample]]]:
    for source, rows in groupby(read_rows(path, COLUMNS), key=lambda row: row["source"]):
        yield source, (_sample(row) for row in islice(rows, MAX_ROWS) if row["domain"] != "code" and row["gold"])


def _sample(row: Row) -> _Sample:
    options = orjson.loads(row["verifier_args"]).get("options") or () if len(row["verifier_args"]) > 2 else ()
    texts = options.values() if isinstance(options, dict) else options
    return _Sample(
        row["source_row"],
        row["prompt"][:MAX_CHARS],
        (row["gold"] or "").strip(),
        (row["solution"] or "")[-MAX_CHARS:].strip(),
        (row["solution"] or _response(row["meta"]))[-MAX_CHARS:].strip(),
        tuple(str(text).strip() for text in texts) if isinstance(texts, Iterable) else (),
        row["verifier"] == "choice",
    )


def _response(meta: str) -> str:
    """Return the response in another column of the row, or "". The gold may have been extracted from it."""
    if not any(f'"{name}":' in meta for name in _RESPONSES):
        return ""
    columns = orjson.loads(meta)
    return next((text for name in _RESPONSES if isinstance(text := columns.get(name), str)), "")


def _facts_of_source(source: str, samples: Iterable[_Sample], repeated: _Repeated) -> list[SourceFact]:
    tally, neighbours, wordy, hints_by_chance = _Tally(), _Shifts(), [], 0
    boilerplate, previous_gold = repeated.boilerplate, ""
    bare: list[_Sample] = []
    with_unit = 0
    for row in samples:
        for fact, judge in _ROW_FACTS.items():
            if (shown := judge(row, repeated)) is not False:
                tally.add(fact, row, shown)
        statement = next((text for text in _statements(row.prompt) if text in boilerplate), None)
        tally.add("boilerplate", row, statement)
        hints_by_chance += told_behind_question(row.prompt, previous_gold) is not None
        previous_gold = row.gold
        neighbours.add(row)
        if not row.is_choice and (unit := unit_or_none(row.gold, row.prompt)) is not None:
            with_unit += bool(unit)
            tally.judged["units_stripped"] += 1
            if not unit and has_measured_quantity(row.prompt):
                bare.append(row)
        if not row.is_choice and (words := _foreign_words(row, repeated)):
            wordy.append((row, words))
    neighbours.add_to(tally)
    if min(with_unit, len(bare)) >= max(MIN_UNITS, UNIT_SHARE * tally.judged["units_stripped"]):
        for row in bare:
            tally.add("units_stripped", row, row.gold)
        tally.judged["units_stripped"] -= len(bare)
    if len(wordy) >= MIN_WORDY and language_of_golds([words for _, words in wordy], repeated.languages) is not None:
        for row, _ in wordy:
            tally.add("gold_language", row, row.gold)
        tally.judged["gold_language"] = repeated.rows
    if len(tally.rows["hints"]) < MIN_HINTS + 3 * hints_by_chance:
        tally.rows.pop("hints")
    return [
        SourceFact(
            source,
            fact,
            says,
            len(tally.rows[fact]),
            tally.judged[fact],
            _ranges(tally.rows[fact]),
            tally.examples[fact],
        )
        for fact, says in SAYS.items()
        if len(tally.rows.get(fact, ())) >= max(MIN_ROWS, MIN_SHARE * tally.judged[fact] * (fact not in CERTAIN))
    ]


def _repeats_gold(row: _Sample, repeated: _Repeated) -> _Shown:
    if not row.solution:
        return False
    residue = residue_of(row.gold, row.solution)
    is_repeated = residue == "" or (residue is not None and repeated.residues[residue] >= MIN_REPEATED)
    return row.solution if is_repeated else None


def _of_solution(judge: Callable[[str, str], bool]) -> Callable[[_Sample, _Repeated], _Shown]:
    """Return a judge of rows, from a `judge` that compares a gold with its solution."""

    def judge_row(row: _Sample, _: _Repeated) -> _Shown:
        if not row.worked or row.is_choice:
            return False
        return f"{row.gold} of {row.worked[-60:]}" if judge(row.gold, row.worked) else None

    return judge_row


def _options_twice(row: _Sample, _: _Repeated) -> _Shown:
    if not row.options:
        return False
    values = [str(parsed.value) if (parsed := read_number(text)) else text for text in row.options]
    return next((text for text, count in Counter(values).items() if count > 1), None)


def _options_lost(row: _Sample, repeated: _Repeated) -> _Shown:
    if not row.options:
        return False
    texts = list(filter(None, row.options))
    is_short = len(texts) < max(repeated.least_options, len(row.options))
    return ", ".join(texts) or "none" if is_short else None


def _html(row: _Sample, _: _Repeated) -> _Shown:
    for text in (row.prompt, row.gold, row.solution):
        if (match := _HTML.search(text)) is not None:
            return text[match.start() : match.start() + EXAMPLE_CHARS]
    return None


def _two_languages(row: _Sample, _: _Repeated) -> _Shown:
    if row.prompt.isascii():
        return None
    text = without_formulas(row.prompt).replace(FORMULA, " ")
    is_mixed = _LATIN_RUN.search(text) and _OTHER_RUN.search(text)
    return row.prompt if is_mixed and not is_said_twice(row.prompt) else None


def _hints(row: _Sample, _: _Repeated) -> _Shown:
    return told_behind_question(row.prompt, row.gold)


def _lost_parts(row: _Sample, _: _Repeated) -> _Shown:
    if row.is_choice:
        return False
    return row.gold if lost_parts(row.gold, row.prompt, row.worked) else None


def _gold_notation(row: _Sample, _: _Repeated) -> _Shown:
    return row.gold if not row.is_choice and _NOTATION.search(row.gold) else None


_ROW_FACTS: Mapping[str, Callable[[_Sample, _Repeated], _Shown]] = {
    "repeats_gold": _repeats_gold,
    "gold_cut": _of_solution(is_cut),
    "first_number": _of_solution(is_first_number),
    "lost_parts": _lost_parts,
    "hints": _hints,
    "gold_notation": _gold_notation,
    "html": _html,
    "two_languages": _two_languages,
    "options_twice": _options_twice,
    "options_lost": _options_lost,
}
"""The judges of facts that single rows show."""


def _statements(prompt: str) -> list[str]:
    """Return the sentences of a prompt that ask nothing and do not concern the answer's form."""
    return [
        text
        for text in sentences(without_formulas(prompt))
        if not _ASKED.search(text)
        and (len(text.split()) >= MIN_WORDS or len(_HAN.findall(text)) >= MIN_HAN)
        and not _ON_THE_ANSWER.search(text)
    ]


def _foreign_words(row: _Sample, repeated: _Repeated) -> str:
    """Return the words of a gold, or "" if one of them occurs in any prompt of the source."""
    words = re.findall(r"[^\W\d_]{3,}", re.sub(r"\\[A-Za-z]+", " ", row.gold.lower()))
    return " ".join(words) if words and not repeated.words.intersection(words) else ""


class _Shifts:
    """Finds blocks of rows whose golds fit the solutions of other rows. Without solutions, questions are compared."""

    def __init__(self) -> None:
        self._window: deque[_Sample] = deque(maxlen=5)
        self._runs: dict[int, list[_Sample]] = {shift: [] for shift in SHIFTS}
        self._blocks: list[list[_Sample]] = []
        self._questions: list[_Sample] = []
        self.judged = 0
        """The number of rows whose gold could be compared with its solution."""

    def add(self, row: _Sample) -> None:
        """Add the next row. Rows need two neighbours on each side, so the row two rows earlier is judged."""
        self._window.append(row)
        self._judge(len(self._window) - 3)
        if not row.is_choice and len(self._questions) < MAX_QUESTIONS:
            self._questions.append(row)

    def add_to(self, tally: _Tally) -> None:
        """Add the rows of all blocks to the tally."""
        for row in self._rows():
            tally.add("shifted_golds", row, row.gold)
        tally.judged["shifted_golds"] = self.judged
        if self.judged or (block := find_block([(row.prompt, row.gold) for row in self._questions])) is None:
            return
        for row in self._questions[block.first : block.last + 1]:
            tally.add("golds_of_neighbours", row, row.gold)
        tally.judged["golds_of_neighbours"] = len(self._questions)

    def _rows(self) -> list[_Sample]:
        """Judge the last two rows, and return the rows of all blocks."""
        for index in (-2, -1):
            if len(self._window) >= -index:
                self._judge(len(self._window) + index)
        for run in self._runs.values():
            self._close(run)
        return sorted(
            {row.source_row: row for block in self._blocks for row in block}.values(), key=lambda row: row.source_row
        )

    def _judge(self, index: int) -> None:
        if index < 0 or not (row := self._window[index]).worked or row.is_choice:
            return
        self.judged += 1
        fits_own = ends_with(row.worked, row.gold)
        for shift, run in self._runs.items():
            other = self._window[index + shift] if 0 <= index + shift < len(self._window) else None
            if not fits_own and other is not None and ends_with(other.worked, row.gold):
                run.append(row)
            elif not fits_own or not run:
                self._close(run)
            elif run and other is not None and ends_with(other.worked, row.gold):
                # Neighbours with the same answer fit in both directions.
                run.append(row)
            else:
                self._close(run)

    def _close(self, run: list[_Sample]) -> None:
        if len({row.gold for row in run}) >= MIN_RUN:
            self._blocks.append(list(run))
        run.clear()


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as ranges: [2, 5, 6, 7] is "2, 5-7"."""
    parts: list[list[int]] = []
    for row in numbers:
        if parts and row == parts[-1][-1] + 1:
            parts[-1][1:] = [row]
        else:
            parts.append([row])
    return ", ".join("-".join(map(str, part)) for part in parts)


def as_json(facts: Iterable[SourceFact]) -> list[dict[str, object]]:
    """Return facts as JSON values for the stage's record."""
    return [asdict(fact) for fact in facts]
