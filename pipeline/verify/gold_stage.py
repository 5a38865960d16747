r"""Stage `verify_gold`: flags golds that no answer can match, and golds that contradict their worked solution.

    row                                                      flag
    gold "\frac{1}{2}"                                       none: "\boxed{\frac{1}{2}}" scores 1.0
    gold "see picture"                                       gold_unmatchable  {"why": "placeholder"}
    gold "The plane is flat.", verifier math                 gold_unmatchable  {"why": "prose"}
    gold "Adding 2 gives x=3, so ...", math                  gold_unmatchable  {"why": "derivation"}
    gold "l99", solution "... #### 299"                      solution_contradicts_gold  {"extracted": "299", ...}
    gold "C", options 6, 8, 10, solution "... so x = 8."     solution_contradicts_gold  {"extracted": "x = 8.", ...}

The row's verifier judges several responses:

- *The gold itself.* The flag is `gold_unparsed` if the verifier cannot read the gold, `gold_fails_verifier` if the gold
  scores below 1, and `gold_unverified` if it gets no score for another reason. For a row with tests, the solution is
  judged instead of the gold.
- *Another answer.* A verifier that does not understand a gold may compare texts letter by letter. Then only the same
  text passes, and answers in other words fail. Such a gold with several values is `gold_unmatchable`, with `why`
  "several_values". Other such golds, like "60^\bullet", are only counted as `skip:gold_compared_as_text`. If more than
  a fifth of a sample of the set cannot be matched, they are `gold_unmatchable`, with `why` "notation". If a user's
  verifier accepts an answer that is clearly wrong, the gold is `gold_unmatchable`, with `why` "any_answer".
- *The worked solution.* If it states an answer (a box, "####", "the answer is ...") that scores 0, the row is flagged
  `solution_contradicts_gold`, with this answer as the suggestion.

Golds that are not answers are also recognised by their words (`gold_words`). "None." is an answer, unless more than a
fifth of the golds in the set are words like this. If nearly all rows have the same gold, they are flagged `same_gold`.
If golds look like measured values, options of the verifier are proposed (`measured_golds`).

The rows pass unchanged. A row for which no right response can be made, such as code without a solution, is counted as
`skip:no_gold_response`.
"""

from __future__ import annotations

import re
import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.config.stages import VerifyGoldConfig
from truegold.pipeline.judge.opinions import OPINION, SecondOpinion, open_opinion, verify_and_hear
from truegold.pipeline.running.parts import Part, PartWork, run_here, run_parts, split_inputs, sum_reports
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import SCRATCH, STORE, StageReport, stage_function
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, FlagRecord, Ledger
from truegold.pipeline.tables.measured_flags import measured_flag
from truegold.pipeline.tables.rows import (
    Row,
    RowReference,
    TableWriter,
    count_rows,
    dump_json,
    problem_of,
    read_rows,
    row_place,
    row_reference,
)
from truegold.pipeline.verify.measured_golds import ProposalBySource
from truegold.verifiers import (
    ConfigError,
    Item,
    Reason,
    Verdict,
    Verifier,
    gold_response,
    judges_solutions,
    resolve,
    verify_batch,
)
from truegold.verifiers.answers.gold_words import gold_fault_kind, is_name, shorter_answers, unmatchable_because
from truegold.verifiers.columns import boxed_spans
from truegold.verifiers.decimal_commas import comma_setting, with_points
from truegold.verifiers.gold import NOTHING_IN_BULK, OTHER_GOLDS, mistake_in_golds
from truegold.verifiers.registry import BUILT_IN

ROWS_FILE = "rows.parquet"
TEXT_CHARS = 500
"""The maximum number of characters of a text in a flag's evidence."""
AS_TEXT = "notation"
"""The `why` of a gold that is compared letter by letter. Two blind readers found that 11 of 30 such golds do not match
right answers in other words. With another `why` of `gold_unmatchable`, 75 of 79 golds do not match them."""
SAMPLED_ROWS = 200
"""The number of rows of a set that are sampled, to estimate the share of golds that cannot be matched."""
MOST_UNMATCHABLE = 0.2
"""If a larger share of the sample cannot be matched, the verifier or the column is probably wrong. Then
`gold_unmatchable` holds rows back. Otherwise it advises."""
ANY_ANSWER = "any_answer"
"""The `why` of a gold for which the verifier also accepts a wrong answer."""
NO_ANSWERS = ("missing", "placeholder", ANY_ANSWER)
"""If `gold_unmatchable` has one of these values of `why`, it always holds the row back."""
ANOTHER_ANSWER = "7919"
"""An answer that hardly any row has as its gold."""
READ_BY_MEANING = ("math", "numeric")
"""Verifiers that parse golds. For others, such as `exact`, a sentence may be the answer."""
FREQUENT_GOLDS = 5
"""A user's verifier is tested with one of the set's most frequent golds. This is their number."""
COMMITTED_FORMS = ("boxed", "hashes", "phrase", "answer_tag")
"""The forms in which a worked solution marks an answer."""
CONCLUSION = "conclusion"
"""The form of a last result, such as "so x = 8". Such a result is an answer only if an option has the same text."""
MAX_SOLUTION_CHARS = 20_000
"""Only this number of characters at the end of a solution is judged."""
END_CHARS = 200
"""The last steps of a solution are within this number of characters at its end."""
MAX_BOXES = 4
"""If a solution has more boxes than this, they are intermediate results."""
REPEATED_SHARE = 0.8
"""Rows are flagged `same_gold` if at least this share of the set has the same gold."""
MIN_REPEATED_ROWS = 20
"""A set with fewer rows is not checked for `same_gold`, or for words like "None."."""
_ASKS_FOR_ONE = re.compile(
    r"\b(?:only\s+one|one\s+of|any\s+one|one\s+such|one\s+possible|an\s+example)\b", re.IGNORECASE
)
"""Words of a question with several right answers, such as "find an example" or "give any one of"."""
_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
_OPTION_LETTER = re.compile(
    r"\W*(?:\\text\w*\s*\{)?(?:(?:(?i:option|choice))\W*[A-H]\b.*|\W*[A-H]\W*|\([A-H]\).*)", re.DOTALL
)
"""An answer that names an option: `B`, `(B)`, `(B) 12 cm`, `option B`, `\\text{B}`."""
_NO_VALUE = re.compile(r"[^\s$]\s?[^\s$]\s?=|\A\D*(?<![\\A-Za-z])[^\W\d_]{3}")
"""An option that is not a single value: an equation such as "2x = y + 1", or text that begins with a word. "x = 8" is a
single value."""

RepeatedGold = tuple[str, int, int]
"""A gold, the number of rows with this gold, and the number of all rows."""

COLUMNS = ["id", "prompt", "gold", "domain", "verifier", "verifier_args", "solution", "source", "source_row"]

SKIPPED, SKIPPED_AS_TEXT = "skip:no_gold_response", "skip:gold_compared_as_text"


@stage_function(version=13, judges="rows", store=".samples", tunable=("workers",), aims=("workers",))
def verify_gold(inputs: Mapping[str, Path], config: VerifyGoldConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Judge the golds of all rows by their verifiers, as the module describes.

    If a second opinion is configured, the parts of the table are processed one after the other.
    """
    opinion = open_opinion(config.second_opinion, inputs.get(STORE, out_dir / SCRATCH))
    rows = inputs["rows"]
    golds = pl.read_parquet(rows, columns=["gold"])["gold"].drop_nulls()
    shared = (_repeated_gold(golds), _is_foreign(rows), _golds_for_nothing(golds), _frequent_golds(golds))
    work = PartWork(f"{__name__}:verify_part", config, shared)
    runner = None if opinion is None else partial(run_here, opinion=opinion)
    reports = run_parts(work, split_inputs(inputs, out_dir), progress, "verifying gold", runner)
    proposal = ProposalBySource()
    for report in reports:
        proposal.merge(report.facts["measured"])
    for line in proposal.lines():
        progress.note(line)
    proposed = proposal.as_json()
    facts: dict[str, Any] = {"proposed_verifier_args": proposed} if proposed else {}
    if opinion is not None:
        opinion.counts = {}
        for report in reports:
            opinion.add_counts(report.facts[OPINION])
        facts[OPINION], facts["costs"] = opinion.facts(progress)
        opinion.close()
    return sum_reports(reports, facts)


def verify_part(
    part: Part,
    config: VerifyGoldConfig,
    shared: tuple[RepeatedGold | None, bool, tuple[str, ...], tuple[str, ...]],
    progress: Progress,
    opinion: SecondOpinion | None = None,
) -> StageReport:
    """Judge the golds of one part.

    `shared` has the results of `_repeated_gold`, `_is_foreign`, `_golds_for_nothing` and `_frequent_golds`.
    """
    repeated, is_foreign, for_nothing, frequent = shared
    queue, proposal, as_text = _Queue(for_nothing, frequent), ProposalBySource(), 0
    rows = proposal.counting(paced(read_rows(part.inputs["rows"], COLUMNS), progress, "verifying gold"))
    if opinion is not None:
        opinion.counts = {}
    with Ledger(part.output, "verify_gold") as ledger, TableWriter(part.output(FLAGS_FILE), FLAG_SCHEMA) as flags:

        def write_flags(row: _Pending) -> None:
            nonlocal as_text
            as_text += not is_foreign and _why_unmatchable(row) == AS_TEXT
            for record, evidence in chain(_flags(row, is_foreign), _flags_of_repeated(row, repeated)):
                flags.write(record)
                ledger.flag(row.reference, record["reason"], **evidence)

        verify_all = partial(
            verify_batch, workers=config.workers, item_deadline_s=config.deadline_s, max_timeouts=config.max_timeouts
        )
        for verdict in verify_and_hear(queue.feed(rows), verify_all, opinion, _is_doubtful):
            for row in queue.finished_before_next():
                write_flags(row)
            queue.take(verdict)
        for row in queue.finished_before_next():
            write_flags(row)
    shutil.copyfile(part.inputs["rows"], part.output(ROWS_FILE))
    skipped = {SKIPPED: queue.skipped, SKIPPED_AS_TEXT: as_text}
    counts = {**ledger.counts, **{name: count for name, count in skipped.items() if count}}
    facts = {"measured": proposal.counts(), **({OPINION: opinion.counts} if opinion is not None else {})}
    return StageReport(queue.rows, queue.rows, counts, facts)


@dataclass(frozen=True)
class GoldExamined:
    """The result of judging the gold of one row."""

    flags: tuple[FlagRecord, ...]
    """The flags that this stage gives the row."""
    verdict: Verdict | None
    """The verdict on a right response, or None if no right response can be made."""
    reading: str | None
    """The gold in the form in which the verifier reads it, if its evidence has this form."""


def examine_gold(row: Row, deadline_s: float) -> GoldExamined:
    """Judge the gold of a single row in the same way as the stage."""
    queue = _Queue()
    for verdict in verify_batch(queue.feed(iter([row])), workers=1, item_deadline_s=deadline_s):
        queue.take(verdict)
    (pending,) = queue.finished_before_next()
    on_gold, another = pending.verdict_on(_Role.GOLD), pending.verdict_on(_Role.ANOTHER)
    read = on_gold if another is None else another
    reading = read.evidence.get("gold") if read is not None else None
    flags = tuple(record for record, _ in _flags(pending, is_foreign=True))
    return GoldExamined(flags, on_gold, None if reading is None else str(reading))


class _Role(Enum):
    """A kind of response that the verifier judges, such as the gold or the solution."""

    GOLD = "gold"
    OTHER_GOLD = "another accepted gold"
    ANOTHER = "another answer"
    SHORTER = "part of a prose gold"
    SOLUTION = "worked solution"
    BOX = "one of its boxes"


@dataclass(frozen=True, slots=True)
class _Solution(Item):
    """A worked solution as a response. It has its own class, because only solutions get a second opinion."""


def _is_doubtful(item: Item, verdict: Verdict) -> bool:
    """Return True if a second opinion is needed: for a worked solution that has an answer, but did not pass."""
    return isinstance(item, _Solution) and not verdict.passed and verdict.reason is not Reason.NO_ANSWER


@dataclass
class _Pending:
    """A row whose responses are being judged, with the values on which its flags depend."""

    reference: RowReference
    gold: str | None
    verifier: str
    options: tuple[str, ...]
    """The texts of the options, for a choice question."""
    asks_for_one: bool
    """True if the prompt asks for one of several right answers."""
    has_commas: bool
    """True if the solution has decimal commas, but the gold has decimal points."""
    solution_end: str
    word_fault: str | None
    """The `why` that follows from the words of the gold alone, such as "prose" or "placeholder", or None."""
    roles: tuple[_Role, ...]
    """The role of each response, in order."""
    other_golds: tuple[str, ...]
    """The other accepted golds that are judged, in order."""
    verdicts: list[Verdict] = field(default_factory=list)
    """The verdicts so far, in the order of `roles`."""

    def verdict_on(self, role: _Role) -> Verdict | None:
        """Return the first verdict on a response of this role, or None."""
        return next(iter(self.verdicts_on(role)), None)

    def verdicts_on(self, role: _Role) -> list[Verdict]:
        """Return the verdicts on all responses of this role."""
        return [verdict for judged, verdict in zip(self.roles, self.verdicts, strict=True) if judged is role]


class _Queue:
    """Makes the items to verify from rows, and assigns the verdicts, which come in the same order, to the rows."""

    def __init__(self, for_nothing: tuple[str, ...] = (), frequent: tuple[str, ...] = ()) -> None:
        self._pending: deque[_Pending] = deque()
        self._for_nothing = for_nothing
        """Golds that mean "no gold" in this set."""
        self._frequent = frequent
        """The most frequent golds of this set."""
        self.rows = 0
        """The number of rows that were read."""
        self.skipped = 0
        """The number of rows for which no right response can be made."""
        self._verifiers: dict[str, Verifier] = {}

    def feed(self, rows: Iterator[Row]) -> Iterator[Item]:
        """Yield the items to verify. Rows are read only when their items are needed."""
        for row in rows:
            self.rows += 1
            word_fault = "placeholder" if self._stands_for_nothing(row) else _word_fault(row)
            responses = list(self._responses(row, word_fault))
            if not any(role is _Role.GOLD for role, _ in responses):
                self.skipped += 1
            others = self._other_golds(row)
            self._pending.append(
                _Pending(
                    row_reference(row),
                    row["gold"],
                    row["verifier"],
                    options=tuple(orjson.loads(row["verifier_args"]).get("options", ())),
                    asks_for_one=_ASKS_FOR_ONE.search(row["prompt"]) is not None,
                    has_commas=comma_setting(row["verifier_args"]) == "answers",
                    solution_end=(row["solution"] or "")[-END_CHARS:],
                    word_fault=word_fault,
                    roles=(*(role for role, _ in responses), *(_Role.OTHER_GOLD for _ in others)),
                    other_golds=tuple(item.gold or "" for item in others),
                )
            )
            alone = _without_other_golds(row)
            for role, response in responses:
                arguments = alone if role is _Role.ANOTHER else row["verifier_args"]
                kind = _Solution if role is _Role.SOLUTION else Item
                yield kind(response, row["gold"], row["verifier"], arguments, problem_of(row))
            yield from others

    def finished_before_next(self) -> Iterator[_Pending]:
        """Yield and remove the first rows that have all their verdicts."""
        while self._pending and len(self._pending[0].verdicts) == len(self._pending[0].roles):
            yield self._pending.popleft()

    def take(self, verdict: Verdict) -> None:
        """Add the next verdict. It belongs to the first row that still waits for verdicts."""
        self._pending[0].verdicts.append(verdict)

    def _responses(self, row: Row, word_fault: str | None) -> Iterator[tuple[_Role, str]]:
        verifier = self._resolve(row)
        gold, solution = row["gold"], row["solution"]
        if (response := gold_response(verifier, gold, solution)) is None:
            return
        yield _Role.GOLD, response
        if gold is None or judges_solutions(verifier):
            return
        if row["verifier"] in READ_BY_MEANING:
            if not gold.isdecimal():
                yield _Role.ANOTHER, gold_response(verifier, ANOTHER_ANSWER) or ANOTHER_ANSWER
            for answer in shorter_answers(gold) if word_fault == "prose" else ():
                yield _Role.SHORTER, gold_response(verifier, answer) or answer
        elif row["verifier"] not in BUILT_IN and (other := self._another_answer(gold)) is not None:
            yield _Role.ANOTHER, gold_response(verifier, other) or other
        if solution and row["domain"] != "code":
            # Remove drawings, since the labels in a drawing are not the answer.
            solution = _DRAWING.sub(" ", solution)
            yield _Role.SOLUTION, solution[-MAX_SOLUTION_CHARS:]
            boxes = boxed_spans(solution)
            for start, end in boxes if 1 < len(boxes) <= MAX_BOXES else ():
                yield _Role.BOX, f"\\boxed{{{solution[start:end]}}}"

    def _another_answer(self, gold: str) -> str | None:
        """Return a wrong answer. Neither it nor the gold contains the text of the other."""
        bare = _bare(gold)
        numbers = [ANOTHER_ANSWER] if any(map(str.isdigit, gold)) else []
        answers = (*numbers, *self._frequent, ANOTHER_ANSWER)
        return next((each for each in answers if _bare(each) not in bare and bare not in _bare(each)), None)

    def _stands_for_nothing(self, row: Row) -> bool:
        """Return True if the gold means "no gold". If the problem contains the gold, it is an answer: "If there are
        none, write None"."""
        gold = row["gold"]
        if gold not in self._for_nothing or row["verifier"] not in READ_BY_MEANING:
            return False
        return gold.strip(" .。").casefold() not in row["prompt"].casefold()

    def _other_golds(self, row: Row) -> list[Item]:
        """Return an item for each other accepted gold: a right response, to be judged by this gold alone."""
        golds = orjson.loads(row["verifier_args"]).get(OTHER_GOLDS, ())
        if mistake_in_golds(golds) is not None:
            return []
        verifier, alone = self._resolve(row), _without_other_golds(row)
        responses = {gold: gold_response(verifier, gold) for gold in golds}
        return [
            Item(response, gold, row["verifier"], alone, problem_of(row))
            for gold, response in responses.items()
            if response is not None
        ]

    def _resolve(self, row: Row) -> Verifier:
        name = row["verifier"]
        if name not in self._verifiers:
            try:
                self._verifiers[name] = resolve(name)
            except ConfigError as error:
                raise ConfigError(f"The verifier of row {row_place(row)}: {error.message}", error.hint) from None
        return self._verifiers[name]


def _without_other_golds(row: Row) -> str:
    arguments = orjson.loads(row["verifier_args"])
    return dump_json(arguments) if arguments.pop(OTHER_GOLDS, None) is not None else row["verifier_args"]


def _word_fault(row: Row) -> str | None:
    """Return the `why` that the words of the gold show, or None. Only verifiers that parse golds are considered."""
    if row["verifier"] not in READ_BY_MEANING:
        return None
    return "missing" if row["gold"] is None else unmatchable_because(row["gold"], row["prompt"])


def _flags(row: _Pending, is_foreign: bool) -> Iterator[tuple[FlagRecord, dict[str, Any]]]:
    """Yield the flags of a row with their evidence. `is_foreign` is the result of `_is_foreign`."""
    gold = None if row.gold is None else row.gold[:TEXT_CHARS]
    on_gold = row.verdict_on(_Role.GOLD)
    why = _why_unmatchable(row)
    if why is not None and (why != AS_TEXT or is_foreign):
        record, evidence = _flag(row, "gold_unmatchable", {"verifier": row.verifier, "gold": gold, "why": why})
        yield {**record, "blocks": record["blocks"] or is_foreign or why in NO_ANSWERS}, evidence
    elif why is None and on_gold is not None and not on_gold.passed:
        yield _flag(row, _failure_reason(on_gold), _evidence(row, on_gold))
    for other, on_other in zip(row.other_golds, row.verdicts_on(_Role.OTHER_GOLD), strict=True):
        if not on_other.passed:
            yield _flag(row, _failure_reason(on_other), _evidence(row, on_other) | {"other_gold": other[:TEXT_CHARS]})
    on_solution = row.verdict_on(_Role.SOLUTION)
    if on_solution is not None and _contradicts(on_solution, row):
        evidence = {"gold": gold, "extracted": on_solution.extracted, "form": on_solution.evidence["form"]}
        evidence |= {OPINION: on_solution.evidence[OPINION]} if OPINION in on_solution.evidence else {}
        extracted = on_solution.extracted
        yield _flag(row, "solution_contradicts_gold", evidence, extracted and _in_points(extracted, row))


def _is_foreign(path: Path) -> bool:
    """Return True if more than a fifth of a sample of the set's golds cannot be matched."""
    queue, judged = _Queue(), list[_Pending]()
    rows = islice(read_rows(path, COLUMNS), 0, None, max(1, count_rows(path) // SAMPLED_ROWS))
    for verdict in verify_batch(queue.feed(row for row in rows if row["verifier"] in READ_BY_MEANING), workers=1):
        judged += queue.finished_before_next()
        queue.take(verdict)
    judged += queue.finished_before_next()
    return sum(_why_unmatchable(row) is not None for row in judged) > MOST_UNMATCHABLE * len(judged)


def _golds_for_nothing(golds: pl.Series) -> tuple[str, ...]:
    """Return the golds of a set that mean "no gold", such as "None.". If they are at most a fifth of all golds, return
    ()."""
    nothing = golds.filter(golds.str.contains(NOTHING_IN_BULK))
    is_common = len(golds) >= MIN_REPEATED_ROWS and len(nothing) > MOST_UNMATCHABLE * len(golds)
    return tuple(sorted(nothing.unique()) if is_common else ())


def _frequent_golds(golds: pl.Series) -> tuple[str, ...]:
    return tuple(golds.value_counts().sort("count", "gold", descending=[True, False])["gold"].head(FREQUENT_GOLDS))


def _repeated_gold(golds: pl.Series) -> RepeatedGold | None:
    """Return the gold that nearly all rows of a set have, with its counts, or None if there is no such gold."""
    if len(golds) < MIN_REPEATED_ROWS:
        return None
    gold, count = golds.value_counts(sort=True).row(0)
    return (gold, count, len(golds)) if count >= REPEATED_SHARE * len(golds) else None


def _flags_of_repeated(row: _Pending, repeated: RepeatedGold | None) -> Iterator[tuple[FlagRecord, dict[str, Any]]]:
    if repeated is not None and row.gold == repeated[0]:
        yield _flag(row, "same_gold", {"gold": row.gold[:TEXT_CHARS], "rows": repeated[1], "of": repeated[2]})


def _failure_reason(verdict: Verdict) -> str:
    if verdict.score is None:
        return "gold_unparsed" if verdict.reason is Reason.GOLD_UNPARSED else "gold_unverified"
    return "gold_fails_verifier"


def _contradicts(on_solution: Verdict, row: _Pending) -> bool:
    """Return True if the solution states another answer than the gold."""
    form = on_solution.evidence.get("form")
    if on_solution.score != 0 or on_solution.reason is Reason.UNREAD:
        return False
    if row.options and on_solution.evidence.get("answer") is not None:
        return _chooses_another(on_solution, row)
    if form not in COMMITTED_FORMS:
        return False
    # Several boxes may be spellings of the same answer, or several right answers.
    boxes = [verdict.passed for verdict in row.verdicts_on(_Role.BOX)]
    if boxes and (all(boxes) or (row.asks_for_one and any(boxes))):
        return False
    # "The answer is 2 times 6, which is 12" does not contradict the gold 12.
    if form == "phrase" and row.gold and row.gold in _in_points(row.solution_end, row):
        return False
    # The solution of a choice question may name a letter, while the gold is the text of the option.
    letter = _OPTION_LETTER.fullmatch(on_solution.extracted or "")
    return letter is None or bool(_OPTION_LETTER.fullmatch(row.gold or ""))


def _chooses_another(on_solution: Verdict, row: _Pending) -> bool:
    """Return True if the solution chooses another option than the gold, by its letter alone or by its text. "Option A:
    1+3=4, option B: ..." and "She needs 12 minutes." choose no option. An option with words or an equation is chosen
    only by its whole text. So "(1), the first gap" does not choose the option "Gap 2"."""
    answer, text = str(on_solution.evidence["answer"]), on_solution.extracted or ""
    if on_solution.reason is not Reason.MISMATCH or len(answer) != 1:
        return False
    if re.search(rf"(?<![A-Za-z]){answer}(?![A-Za-z])", text, re.IGNORECASE):
        return on_solution.evidence["form"] in COMMITTED_FORMS and _OPTION_LETTER.fullmatch(text) is not None
    option = next(iter(row.options[ord(answer) - ord("A") :]), None)
    if option is None or on_solution.evidence["form"] not in (*COMMITTED_FORMS, CONCLUSION):
        return False
    return _NO_VALUE.search(option) is None or _bare(option) in _bare(text)


def _in_points(text: str, row: _Pending) -> str:
    """Return a text of the solution. If it has decimal commas and the gold has points, the commas are replaced."""
    return with_points(text) if row.has_commas else text


def _bare(text: str) -> str:
    return re.sub(r"[\s$.]", "", text).casefold()


def _why_unmatchable(row: _Pending) -> str | None:
    """Return the `why` of the flag `gold_unmatchable`, or None if a right answer can match the gold."""
    if any(verdict.passed for verdict in row.verdicts_on(_Role.SHORTER)):
        return None
    on_gold, another = row.verdict_on(_Role.GOLD), row.verdict_on(_Role.ANOTHER)
    is_unread = another is not None and another.reason is Reason.GOLD_UNPARSED
    if (
        row.verifier not in BUILT_IN
        and on_gold is not None
        and on_gold.passed
        and another is not None
        and another.passed
    ):
        return ANY_ANSWER
    is_foreign = row.word_fault is None and is_unread and not is_name(row.gold or "")
    if is_foreign and on_gold is not None and on_gold.passed:
        return gold_fault_kind(AS_TEXT, row.gold or "")
    return gold_fault_kind(row.word_fault, row.gold or "") if row.word_fault is not None else None


def _flag(
    row: _Pending, reason: str, evidence: dict[str, Any], suggestion: str | None = None
) -> tuple[FlagRecord, dict[str, Any]]:
    return measured_flag(row.reference, reason, "verify_gold", evidence, suggestion), evidence


def _evidence(row: _Pending, verdict: Verdict) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "verifier": row.verifier,
        "reason": str(verdict.reason),
        "score": verdict.score,
        "gold": None if row.gold is None else row.gold[:TEXT_CHARS],
        "extracted": None if verdict.extracted is None else verdict.extracted[:TEXT_CHARS],
    }
    return evidence | ({"verdict": dict(verdict.evidence)} if verdict.evidence else {})
