"""Makes the rows of the demo: clean rows, copies of clean rows, and rows with a planted defect.

Each kind of row is made by a function, its maker. Most makers take a fresh problem: `truncated` turns the row

    {"question": "Tom has 12 apples. He buys 9 more. How many apples does Tom have now?", "answer": "21", ...}
    into
    {"question": "Tom has 12 apples. He buys 9 more. How many apples does", "answer": "21", ..., "planted": "truncated"}

A maker of copies (`COPIES`) returns a second row that repeats a clean one. One kind, the decoy, has a correct gold in
an unusual form. Only the report reads `planted`, to score the detectors on planted defects:

    meta {"planted": "truncated"}, flagged truncated_text      ->  a planted truncation, detected
    meta {"planted": null},        flagged truncated_text      ->  a clean row, a false alarm
    meta {"planted": "exact_duplicate"}, kept, while its clean
    original was dropped as exact_duplicate                    ->  detected: either of a pair may be dropped

A planted row is detected if `ingest` rejected it, or if it has one of the reasons of its kind. The recall of a kind is
the share of its rows that are detected. The precision of a kind's reasons is the share of rows with these reasons that
have any planted defect. For a row that is held back, only its flags count. Drops by pass rate do not count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson
import polars as pl

from truegold.pipeline.demo.problems import (
    PERSON_STORIES,
    STORY_TEXTS,
    Problem,
    Telling,
    pick_telling,
    tell,
    tell_events,
    wrong_by_a_little,
)
from truegold.pipeline.running.stage_table import CURATION_ROW_STAGES
from truegold.pipeline.tables.ledger import FLAGS_FILE, LEDGER_FILE
from truegold.pipeline.tables.run_files import HELD_REASONS, SOURCE_KEY, Fields, RunFiles

RawRow = dict[str, str | None]

DECOY = "format_variant_gold"
"""The kind of a correct gold in another form. A flag on it is a false alarm."""

_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


@dataclass(frozen=True)
class ToldProblem:
    """A problem with the story that was chosen for it, so that it can be told again."""

    problem: Problem
    telling: Telling


Maker = Callable[[ToldProblem, random.Random], RawRow]


def clean_row(item: ToldProblem) -> RawRow:
    """Return the row of a problem without a defect."""
    return {
        "question": tell(item.problem, item.telling),
        "solution": item.problem.working(),
        "answer": str(item.problem.answer),
        "planted": None,
    }


def _plant(item: ToldProblem, kind: str, **changed: str) -> RawRow:
    return {**clean_row(item), **changed, "planted": kind}


# Copies of a clean row.


def exact_duplicate(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return an exact copy of the row."""
    return _plant(item, "exact_duplicate")


def format_duplicate(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a copy of the row with other spaces, letters or line ends."""
    text = str(clean_row(item)["question"])
    variant = rng.choice(
        [
            text.replace(". ", ".  ").replace("How", " How") + " \n",
            f"Question: {text}",
            text.translate(_FULL_WIDTH),
            text.replace(". ", ".\r\n"),
            text.replace(" ", " \u200b", 2),
            text.upper(),
        ]
    )
    return _plant(item, "format_duplicate", question=variant)


def rephrased(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return the same problem in another story, with the same person, things and numbers."""
    others = [story for story in PERSON_STORIES if story is not item.telling.story]
    telling = Telling(rng.choice(others), item.telling.person, item.telling.things)
    return _plant(ToldProblem(item.problem, telling), "rephrased")


COPIES: Mapping[str, Maker] = {maker.__name__: maker for maker in (exact_duplicate, format_duplicate, rephrased)}

# Defects of a fresh problem.


def wrong_gold(item: ToldProblem, rng: random.Random, *, solution_agrees: bool) -> RawRow:
    """Return a row with a wrong answer. Its worked solution is right, or ends in the wrong answer."""
    wrong = wrong_by_a_little(item.problem.answer, rng)
    solution = item.problem.working(wrong if solution_agrees else None)
    return _plant(item, "wrong_gold", answer=str(wrong), solution=solution)


def conflicting_pair(item: ToldProblem, rng: random.Random) -> tuple[RawRow, RawRow]:
    """Return two rows with one prompt and different answers. Both are marked, because no rule can know the right
    answer."""
    wrong = wrong_by_a_little(item.problem.answer, rng)
    right = _plant(item, "conflicting_label")
    return right, _plant(item, "conflicting_label", answer=str(wrong), solution=item.problem.working(wrong))


def ambiguous(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a question for a share that is not a whole number: is it 4, 4.5 or 5?"""
    total, parts = rng.choice([(total, parts) for parts in (2, 4, 5) for total in range(5, 30) if total % parts])
    person = item.telling.person
    question = rng.choice(STORY_TEXTS["sharing"]).format(
        name=person.name, He=person.pronoun.capitalize(), things=item.telling.things, total=total, parts=parts
    )
    answer = f"{total / parts:g}"
    solution = f"{total}/{parts}={answer} \\boxed{{{answer}}}"
    return _plant(item, "ambiguous", question=question[0].upper() + question[1:], answer=answer, solution=solution)


def unanswerable(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a problem without one of the numbers that it needs."""
    hidden_index = rng.randrange(len(item.problem.numbers))
    vague = {hidden_index: rng.choice(("some", "a few", "several"))}
    question = ". ".join(part[0].upper() + part[1:] for part in tell(item.problem, item.telling, vague).split(". "))
    return _plant(item, "unanswerable", question=question)


def truncated(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a question that is cut within a sentence. Seven words or more stay, and three or more are cut."""
    words = tell(item.problem, item.telling).split()
    lengths = [length for length in range(7, len(words) - 2) if words[length - 1][-1] not in ".?"]
    return _plant(item, "truncated", question=" ".join(words[: rng.choice(lengths)]))


def multi_part(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a problem with a second question after the first."""
    second_question = rng.choice(
        (
            "And how many were there at first?",
            "How many would there be with 3 more?",
            "How many are missing to make 40?",
        )
    )
    return _plant(item, "multi_part", question=f"{tell(item.problem, item.telling)} {second_question}")


def missing_figure(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a problem whose first number is in a figure that is missing."""
    telling = pick_telling(rng, PERSON_STORIES[:1])
    question = rng.choice(STORY_TEXTS["figures"]).format(
        name=telling.person.name,
        He=telling.person.pronoun.capitalize(),
        things=telling.things,
        events=tell_events(item.problem, telling.story),
    )
    return _plant(item, "missing_figure", question=question)


def proof(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a problem that asks for a proof instead of an answer."""
    first, *rest = item.problem.numbers
    terms = str(first) + "".join(f"{sign}{term}" for sign, term in zip(item.problem.operations, rest, strict=True))
    parity = "odd" if item.problem.answer % 2 else "even"
    claim = rng.choice((f"Prove that {terms} is {parity}.", f"Show that the value of {terms} is {parity}."))
    return _plant(item, "proof", question=claim)


def unparsable_gold(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a row whose gold is not an answer."""
    golds = ("see solution", "twelve or so??", "N/A", "answers will vary", f"about {item.problem.answer} I think??")
    return _plant(item, "unparsable_gold", answer=rng.choice(golds))


def format_variant_gold(item: ToldProblem, rng: random.Random) -> RawRow:
    """Return a row whose right answer has another form. This is not a defect."""
    right = item.problem.answer
    answers = (f"{right}.0", f"{right} {item.telling.things}", f"${right}$", f"{right}.")
    return _plant(item, DECOY, answer=rng.choice(answers))


_DEFECTS = (ambiguous, unanswerable, truncated, multi_part, missing_figure, proof, unparsable_gold, format_variant_gold)
FRESH: Mapping[str, Maker] = {maker.__name__: maker for maker in _DEFECTS}


DUPLICATE_REASONS = ("exact_duplicate", "leaked_heldout")
REWORDING_REASONS = ("same_problem", "leaked_heldout")

KIND_REASONS: Mapping[str, tuple[str, ...]] = {
    "exact_duplicate": DUPLICATE_REASONS,
    "format_duplicate": DUPLICATE_REASONS,
    "rephrased": REWORDING_REASONS,
    "conflicting_label": ("conflicting_labels",),
    "wrong_gold": ("solution_contradicts_gold", "suspect_gold", "conflicting_labels"),
    "ambiguous": ("fractional_count",),
    "unanswerable": ("missing_quantity",),
    "truncated": ("truncated_text",),
    "multi_part": ("multi_part",),
    "missing_figure": ("missing_figure",),
    "proof": ("proof",),
    "unparsable_gold": ("gold_unparsed", "gold_fails_verifier", "gold_unverified", "gold_unmatchable", "empty_gold"),
}
"""The reasons that detect each planted kind. A kind that is not listed is detected by any reason."""
CLEAN = ""
"""The kind of a row without a planted defect."""
HARMLESS = (CLEAN, DECOY)
"""Kinds without a defect: a flag on such a row is a false alarm."""
COPY_KINDS = ("exact_duplicate", "format_duplicate", "rephrased")


def score_planted(files: RunFiles) -> Fields | None:
    """Return the scores of a run: `kinds` of defects, false `alarms`, and labels that the trained model `disputed`.

    Returns None if the data names no planted defects. A share is None if its denominator is 0.
    """
    if (kinds := _planted_kinds(files)) is None:
        return None
    hits = _find_hits(files, kinds)
    selected, late_flags = files.table("select", "selected.parquet"), files.table("profile_after", FLAGS_FILE)
    trained_on = None if selected is None else _count_kinds(selected, kinds)
    ingested = dict(kinds.group_by("planted").len().iter_rows())
    counts = files.path("make_data", "planted.json")
    # Only planted.json knows the kind of rows that ingest rejected.
    planted = ingested if counts is None else orjson.loads(counts.read_bytes())
    order = list(KIND_REASONS)
    defects = sorted(
        (planted.keys() | ingested.keys()) - set(HARMLESS),
        key=lambda kind: (order.index(kind) if kind in order else len(order), kind),
    )
    return {
        "kinds": [_score(kind, planted.get(kind, 0), ingested.get(kind, 0), hits, trained_on) for kind in defects],
        "alarms": [_count_alarms(kind, ingested[kind], hits, trained_on) for kind in HARMLESS if kind in ingested],
        "disputed": None if late_flags is None else _describe_disputed(_count_kinds(late_flags, kinds)),
    }


def _planted_kinds(files: RunFiles) -> pl.DataFrame | None:
    """Return SOURCE_KEY and the planted kind of every ingested row, or None if nothing was planted."""
    if (rows := files.table("ingest", "rows.parquet")) is None:
        return None
    marked = pl.col("meta").str.contains('"planted":', literal=True)
    if not rows.select(marked.any()).collect(engine="streaming").item():
        return None
    kind = pl.col("meta").str.json_path_match("$.planted").fill_null(CLEAN)
    return rows.select(*SOURCE_KEY, planted=kind).collect(engine="streaming")


def _find_hits(files: RunFiles, kinds: pl.DataFrame) -> pl.DataFrame:
    """Return SOURCE_KEY, `reason` and `planted` of every flag and drop before training, without repetitions. If the
    clean row of a pair is dropped as a duplicate, its planted copy counts as found."""
    kept = pl.col("evidence").str.json_path_match("$.kept")
    is_finding = (pl.col("action") == "drop") & ~pl.col("reason").is_in(HELD_REASONS)
    nothing = pl.LazyFrame(schema={"source": pl.String, "source_row": pl.Int64, "reason": pl.String, "kept": pl.String})
    drops = [
        ledger.filter(is_finding).select(*SOURCE_KEY, "reason", kept=kept)
        for _, ledger in files.tables(LEDGER_FILE, CURATION_ROW_STAGES)
    ]
    twins = kinds.lazy().select(
        kept=pl.format("{}:{}", *SOURCE_KEY), kept_source="source", kept_row="source_row", kept_planted="planted"
    )
    pairs = (
        pl.concat([nothing, *drops]).join(kinds.lazy(), on=SOURCE_KEY, how="left").join(twins, on="kept", how="left")
    )
    is_twin = pl.col("planted").is_in(HARMLESS) & pl.col("kept_planted").is_in(COPY_KINDS)
    is_twin = (is_twin & pl.col("reason").is_in({*DUPLICATE_REASONS, *REWORDING_REASONS})).fill_null(False)
    frames = [
        pairs.select(
            pl.when(is_twin).then("kept_source").otherwise("source").alias("source"),
            pl.when(is_twin).then("kept_row").otherwise("source_row").alias("source_row"),
            "reason",
        )
    ]
    if (flags := files.flags(after_training=False)) is not None:
        frames.append(flags.select(*SOURCE_KEY, "reason"))
    return pl.concat(frames).unique().join(kinds.lazy(), on=SOURCE_KEY, how="left").collect(engine="streaming")


def _count_kinds(rows: pl.LazyFrame, kinds: pl.DataFrame) -> dict[str, int]:
    """Return the number of rows of each kind in a table."""
    keys = rows.select(SOURCE_KEY).unique().collect(engine="streaming")
    return dict(kinds.join(keys, on=SOURCE_KEY, how="semi").group_by("planted").len().iter_rows())


def _score(kind: str, planted: int, ingested: int, hits: pl.DataFrame, trained_on: Mapping[str, int] | None) -> Fields:
    reasons = KIND_REASONS.get(kind, ())
    is_kind, is_reason = pl.col("planted") == kind, pl.col("reason").is_in(reasons)

    def count(*conditions: pl.Expr) -> int:
        return hits.filter(*conditions).select(SOURCE_KEY).n_unique()

    rejected = max(0, planted - ingested)
    detected, rows_hit = count(is_kind, is_reason) + rejected, count(is_reason)
    defective = count(is_reason, ~pl.col("planted").is_in(HARMLESS))
    return {
        "kind": kind,
        "reasons": reasons,
        "planted": planted,
        "rejected": rejected,
        "found": detected,
        "recall": detected / planted if planted else None,
        "found_by_any": count(is_kind) + rejected,
        "hits": rows_hit,
        "precision": defective / rows_hit if rows_hit else None,
        "trained_on": None if trained_on is None else trained_on.get(kind, 0),
    }


def _count_alarms(kind: str, rows: int, hits: pl.DataFrame, trained_on: Mapping[str, int] | None) -> Fields:
    of_kind = hits.filter(pl.col("planted") == kind)
    return {
        "rows_of": f"decoy: {kind}" if kind else "clean rows",
        "rows": rows,
        "hit": of_kind.select(SOURCE_KEY).n_unique(),
        "by_reason": dict(of_kind.group_by("reason").len().sort("reason").iter_rows()),
        "trained_on": None if trained_on is None else trained_on.get(kind, 0),
    }


def _describe_disputed(by_kind: Mapping[str, int]) -> Fields:
    return {
        "rows": sum(by_kind.values()),
        "defective": sum(rows for kind, rows in by_kind.items() if kind not in HARMLESS),
        "by_kind": {kind or "clean": by_kind[kind] for kind in sorted(by_kind)},
    }
