"""Makes the gallery: truegold's findings in public sets, the labels of two readers, and decisions to apply.

    python benchmarks/gallery.py suspects NAME=FLAGGED --each 22 --seed 7 --out ITEMS.jsonl --key KEY.jsonl
    python benchmarks/gallery.py tests NAME=RUN --each 12 --seed 7 --out ITEMS.jsonl --key KEY.jsonl
    python benchmarks/gallery.py pairs NAME=LEAKS --each 20 --seed 7 --out ITEMS.jsonl --key KEY.jsonl
    python benchmarks/gallery.py mix ITEMS.jsonl... --keys KEY.jsonl... --size 150 --seed 7 --name flags --to FOLDER
    python benchmarks/gallery.py grade SET FOLDER
    python benchmarks/gallery.py decide SET FOLDER --at 2026-11-26T00:00:00Z
    python benchmarks/gallery.py page SET FOLDER
    python benchmarks/gallery.py keep FOLDER
    python benchmarks/gallery.py index FOLDER

`gallery_sets.toml` has the sets: their runs, licences, and texts written by hand. FOLDER has

    NAME/run/                    a run of `truegold curate` for each run of a set, without any decisions
    leaks/NAME/matches.parquet   the output of `truegold decontaminate` for this run
    grades/SET.json              `grade`: errors of common graders on the set's golds (`truegold verifiers audit`)
    items/PART.jsonl             items for readers, drawn by `flag_readings.py` and this file, shuffled by `mix`
    keys/PART.jsonl              the keys of the items
    labels/READER/PART.jsonl     the labels of each of two readers

`flag_readings.py` draws items of flags and of rows without flags. This file draws rows that are suspicious by answers
of systems (FLAGGED is the output of `truegold flag`), findings on tests, and pairs of `truegold decontaminate`. A
reader's line has `item`, `label` and `why` as there. For rows with golds it also has `fit`, one of FITNESS: whether the
row can be trained on unchanged; and `gold`, if another gold is right.

`decide` writes `docs/gallery/SET.decisions.jsonl`. A row that both readers call unfit is dropped, or fixed if they give
the same gold. A row that one reader calls unfit becomes `unsure`. An excluded row that both call fine is kept. `page`
writes `docs/gallery/SET.md`, `keep` writes the readers' labels without texts to `docs/gallery/readings.jsonl`, and
`index` prints the tables of `docs/gallery/README.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from first_contact import kappa, read
from flag_readings import FIT, FITNESS, QUESTIONS, UNFLAGGED, Finding, item, key, write
from gallery_runs import Findings, reviewed, table

from truegold.pipeline.near.gold_keys import gold_key
from truegold.pipeline.review.decisions import Decision
from truegold.pipeline.running.stage import load_record
from truegold.pipeline.text.templates import markdown_table, templates_in
from truegold.verifiers import verify
from truegold.verifiers.audit import audit
from truegold.verifiers.rates import wilson_interval

Row = dict[str, Any]

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "gallery"
REVIEWER = "truegold gallery 2026-11"
SUSPICION = "suspicion"
"""The reason of rows that answers of systems make suspicious; their tier stands behind a colon."""
LEAK = "leak"
"""That of rows that stand in another set, with the kind of match behind a colon."""
STAGES = ("ingest", "clean", "dedup", "verify_gold", "vet_tests", "flag")
GRADERS = ("exact", "verl_math", "verl_dapo", "math_verify", "mathruler", "verl_prime")
"""The graders of every set, before truegold's own verifier."""
AUDITED_GOLDS, SLOW_GOLDS = 150, 40
SLOW = ("math_verify", "verl_prime", "mathruler")
"""Graders that simplify with sympy, of which fewer golds are enough."""
GRADER_CPU_S = 10.0
"""What is loaded for a grader's first verdict counts."""
COMMONEST = 5
"""Kinds of advice of a set in the index."""
MOST_ERRORS = 10
"""Findings that readers refute which a page lists."""
TEST_QUESTIONS = {
    "paid_null": "The program named under `finding` passes all tests of this problem. Does it fail to solve it?",
    "low_kill_rate": (
        "With each change under `finding` the worked solution still passes all tests. Is one of them wrong on an input "
        "that the problem's text allows (an example stands beside it)?"
    ),
    "leaked_cases": "Does the problem's text show at least half of the cases by which the program is tested?",
    "guessable": "Would a program that guesses (a constant, or one of a few values) pass these tests by luck often?",
}
"""What readers are asked of the tests of a problem."""
UNFIT_TESTS = ("paid_null", "low_kill_rate")
"""Findings on tests that make a row unfit where they are right: its tests pay wrong programs."""


def sets() -> dict[str, Row]:
    """Return the sets by name."""
    return tomllib.loads((HERE / "gallery_sets.toml").read_text(encoding="utf-8"))


def suspects(name: str, flagged: Path, each: int, seed: int) -> list[tuple[Row, Row]]:
    """Return an item and key for each row with tier drop or review, and for a number of other rows."""
    rng = random.Random(seed)
    rows = {(row["source"], row["source_row"]): row for row in table(flagged / "work" / "flag" / "rows.parquet")}
    by_tier: dict[str, list[Row]] = defaultdict(list)
    for line in table(flagged / "suspicion.parquet"):
        by_tier[line["tier"]].append(rows[line["source"], line["source_row"]])
    chosen = [(tier, row) for tier in ("drop", "review") for row in by_tier[tier]]
    chosen += [("keep", row) for row in rng.sample(by_tier["keep"], min(each, len(by_tier["keep"])))]
    rng.shuffle(chosen)
    drawn = []
    for tier, row in chosen:
        finding = Finding(row, None, tier == "drop")
        hidden = key(name, f"{SUSPICION}:{tier}", finding, tier == "keep")
        drawn.append((item(finding, FIT.ask) | {"labels": FITNESS}, hidden))
    return drawn


def test_findings(name: str, run: Path, each: int, seed: int) -> list[tuple[Row, Row]]:
    """Return items of findings on tests, so many of a reason at random and all that wrong programs pass."""
    rng = random.Random(seed)
    rows = {row["id"]: row for row in table(run / "ingest" / "rows.parquet")}
    findings: dict[str, list[tuple[Row, Any]]] = defaultdict(list)
    for record in table(run / "vet_tests" / "ledger.parquet"):
        if record["reason"] in TEST_QUESTIONS and record["action"] in ("drop", "flag"):
            findings[record["reason"]].append((rows[record["id"]], json.loads(record["evidence"])))
    drawn = []
    for reason, ask in TEST_QUESTIONS.items():
        most = None if reason in ("paid_null", "low_kill_rate") else each
        for row, evidence in rng.sample(findings[reason], len(findings[reason]))[:most]:
            finding = Finding(row, None, reason == "paid_null")
            tests = json.loads(row["verifier_args"])
            drawn.append(
                (item(finding, ask) | {"tests": tests, "finding": evidence}, key(name, reason, finding, False))
            )
    rng.shuffle(drawn)
    return drawn


def leak_pairs(name: str, folder: Path, each: int, seed: int) -> list[tuple[Row, Row]]:
    """Return items of rows that stand in another set as well, so many of each set and kind of match."""
    rng = random.Random(seed)
    by_kind: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for match in table(folder / "matches.parquet"):
        by_kind[match["against"], match["kind"]].append(match)
    drawn = []
    for (against, kind), matches in sorted(by_kind.items()):
        for match in rng.sample(matches, min(each, len(matches))):
            pair = json.loads(match["evidence"])
            shown = {"ask": QUESTIONS["same_problem"].ask, "problem": pair["item"], "other": {"prompt": pair["text"]}}
            hidden = {"corpus": name, "reason": f"{LEAK}:{kind}", "blocks": True, "control": False, "id": match["id"]}
            drawn.append((shown, hidden | {"source": Path(against).stem, "source_row": match["row"]}))
    return drawn


def mix(shown: Sequence[Path], hidden: Sequence[Path], size: int, seed: int) -> Iterator[list[tuple[Row, Row]]]:
    """Yield the items of several files with their keys, shuffled, in parts of about `size`."""
    drawn = [pair for files in zip(shown, hidden, strict=True) for pair in zip(*map(read, files), strict=True)]
    for row in (row for pair in drawn for row in pair):
        del row["item"]  # It gets another one.
    random.Random(seed).shuffle(drawn)
    parts = max(1, round(len(drawn) / size))
    yield from (drawn[part::parts] for part in range(parts))


def grade(name: str, folder: Path) -> None:
    """Measure each grader on the golds of a set, by right, wrong and gaming responses that are made of them.

    What was measured before stays: each grader is written down when it is done.
    """
    settings = sets()[name]
    path = folder / "grades" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    lines: list[Row] = json.loads(path.read_text()) if path.is_file() else []
    golds = [row["gold"] for run in settings["runs"] for row in table(folder / run / "run" / "ingest" / "rows.parquet")]
    measured = {line["grader"] for line in lines}
    for grader in (*GRADERS, *settings.get("graders", ()), settings["verifier"]):
        if grader in measured:
            continue
        is_here = grader in ("exact", "math_verify", settings["verifier"])
        spelling = grader if is_here else f"{HERE / 'gallery_graders.py'}:{grader}"
        limit = SLOW_GOLDS if grader in SLOW else AUDITED_GOLDS
        report = audit(spelling, golds, limit=limit, cpu_s=GRADER_CPU_S)
        rates = {
            "gold_refused": report.identity.rate, "refused": report.false_negatives, "paid": report.false_positives,
            "gamed": report.gamed,
        }  # fmt: skip
        youden = report.youden
        interval = None if youden is None else [round(value, 3) for value in (youden.j, youden.low, youden.high)]
        line = {"grader": grader, "form": report.response_form, "j": interval}
        lines.append(line | {rate: [counts.errors, counts.judged] for rate, counts in rates.items()})
        path.write_text(json.dumps(lines, indent=1) + "\n")


@dataclass(frozen=True)
class Reading:
    """The labels of two readers for an item."""

    key: Row
    labels: tuple[Row, ...]

    @property
    def yes(self) -> list[bool]:
        """Whether each reader confirms the finding; for a row without a finding, whether it is unfit."""
        return [label["label"] not in ("no", "unclear", FITNESS[0]) for label in self.labels]

    @property
    def fitness(self) -> list[str | None]:
        """Each reader's label of the unchanged row, or None."""
        return [label["label"] if label["label"] in FITNESS else label.get("fit") for label in self.labels]

    @property
    def unfit(self) -> list[bool | None]:
        """Whether each reader calls the row unfit, or None without a label."""
        if self.key["reason"] in TEST_QUESTIONS:
            return list(self.yes) if self.key["reason"] in UNFIT_TESTS else [None for _ in self.labels]
        return [None if fit is None else fit != FITNESS[0] for fit in self.fitness]

    @property
    def gold(self) -> str | None:
        """The right gold, where both readers call gold wrong and give the same one."""
        golds = [str(label.get("gold") or "").strip() for label in self.labels]
        if set(self.fitness) != {"wrong_gold"} or not all(golds):
            return None
        same = gold_key(golds[0]) == gold_key(golds[-1]) or verify(golds[-1], golds[0]).score == 1
        return golds[0] if same else None


def readings(folder: Path, corpora: Iterable[str]) -> list[Reading]:
    """Return what all readers of an item's part say, of the items of these corpora."""
    wanted_corpora = set(corpora)
    made = []
    for path in sorted((folder / "keys").glob("*.jsonl")):
        files = sorted(reader / path.name for reader in (folder / "labels").glob("*") if (reader / path.name).is_file())
        labels = [{label["item"]: label for label in read(file)} for file in files]
        for hidden in read(path):
            if hidden["corpus"] in wanted_corpora and labels and all(hidden["item"] in reader for reader in labels):
                made.append(Reading(hidden, tuple(reader[hidden["item"]] for reader in labels)))
    return made


def renewed(folder: Path, names: Iterable[str]) -> list[Reading]:
    """Return all readings of these sets, each with whether its finding `stands`: whether the runs say the same now."""
    chosen = [sets()[name] for name in names]
    runs, leaks = ([corpus for settings in chosen for corpus in settings[field]] for field in ("runs", "leaks"))
    findings = Findings(folder, runs, leaks)
    return [Reading(findings.renew(reading.key), reading.labels) for reading in readings(folder, {*runs, *leaks})]


def standing(heard: Iterable[Reading]) -> list[Reading]:
    """Return the readings of what the runs say now."""
    return [reading for reading in heard if reading.key["stands"]]


def decide(name: str, folder: Path, moment: str) -> list[Row]:
    """Return the lines of decisions about the rows that were read; copies that their runs have dropped have none."""
    settings = sets()[name]
    runs = [folder / run / "run" for run in settings["runs"]]
    held = {flag["id"] for run in runs for flag in _flags(run) if flag["blocks"]}
    copies = {row["id"] for run in runs for row in _dropped(run)} - {
        row["id"] for run in runs for row in table(run / "flag" / "rows.parquet")
    }
    by_row: dict[str, list[Reading]] = defaultdict(list)
    for reading in readings(folder, settings["runs"]):
        if len(reading.labels) > 1 and not reading.key["reason"].startswith(LEAK + ":"):
            by_row[reading.key["id"]].append(reading)
    lines = []
    for row_id, about in sorted(by_row.items()):
        unfit = [vote for reading in about for vote in reading.unfit]
        if row_id in copies or (not any(unfit) and (row_id not in held or None in unfit)):
            continue
        gold = next((reading.gold for reading in about if reading.gold), None)
        if all(unfit):
            word = "drop" if gold is None or row_id in settings.get("dropped", ()) else "fix"
        else:
            word = "unsure" if any(unfit) else "keep"
        telling = min(about, key=lambda reading: (not any(reading.unfit), reading.key["control"]))
        line = {"id": row_id, "decision": word, **({"gold": gold} if word == "fix" else {})}
        line |= {"note": _note(telling, settings["texts"]), "reviewer": REVIEWER, "at": moment}
        Decision.model_validate(line)
        lines.append(line)
    return lines


def _note(reading: Reading, texts: bool) -> str:
    """Return what a row was read for and what the readers say; with texts why the first that calls it unfit does so."""
    reason = "control" if reading.key["control"] else reading.key["reason"]
    words = [fit or str(label["label"]) for fit, label in zip(reading.fitness, reading.labels, strict=True)]
    note = f"{reason}; two readers: {', '.join(dict.fromkeys(words))}"
    votes = zip(reading.unfit, reading.labels, strict=True)
    speaker = next((label for vote, label in votes if vote), reading.labels[0])
    why = " ".join(str(speaker.get("why") or "").split())
    return f"{note}. {why}" if texts and why else note


def _flags(run: Path) -> list[Row]:
    return table(run / "flag" / "flags.parquet")


def _dropped(run: Path) -> list[Row]:
    return table(run / "dedup" / "dropped.parquet")


def counted(run: Path) -> Iterator[tuple[str, str, str, int]]:
    """Yield stage, action, reason and rows of all that a run has rejected, edited, dropped and flagged."""
    for stage in STAGES:
        record = load_record(run / stage)
        for name, count in (record["report"]["counts"] if record else {}).items():
            action, _, reason = name.partition(":")
            if action in ("reject", "edit", "drop", "flag"):
                yield stage, action, reason, count


def read_cell(read_rows: Sequence[Reading]) -> str:
    """Return how many of the readings both readers find right, with Wilson's interval: "11 of 12 (0.65 to 0.99)"."""
    if not read_rows:
        return "not read"
    right = sum(all(reading.yes) for reading in read_rows)
    low, high = wilson_interval(right, len(read_rows))
    either = sum(any(reading.yes) for reading in read_rows)
    return f"{right} of {len(read_rows)} ({low:.2f} to {high:.2f}){f', {either} by either' if either > right else ''}"


def page(name: str, folder: Path) -> str:
    """Return the page of a set."""
    settings = sets()[name]
    runs = {run: folder / run / "run" for run in settings["runs"]}
    every = renewed(folder, [name])
    heard = standing(every)
    decided = DOCS / f"{name}.decisions.jsonl"
    decisions = read(decided) if decided.is_file() else []
    graded = folder / "grades" / f"{name}.json"
    template = templates_in(HERE).get_template("gallery_page.md.jinja")
    return template.render(
        name=name,
        set=settings,
        rows=[(run, *_sizes(path)) for run, path in runs.items()],
        facts=[fact for path in runs.values() for fact in _report(path, "ingest")["facts"].get("source_facts", ())],
        findings=_findings(runs.values(), heard),
        suites=_suites(runs.values()),
        suspicion=_suspicion(heard),
        unflagged=_unflagged(heard),
        agreement=_agreement(heard),
        grades=json.loads(graded.read_text()) if graded.is_file() else [],
        leaks=_leaks(folder, settings, heard),
        errors=_errors(heard, settings),
        decisions=Counter(line["decision"] for line in decisions).most_common(),
        outside=_outside(settings, folder, decisions),
        gone=len(every) - len(heard),
        ids=_ids(runs.values(), decisions),
        reviewed=reviewed(settings, folder) if "review" in settings else None,
    )


def _ids(runs: Iterable[Path], decisions: Sequence[Row]) -> int:
    """Return how many of the decisions are about rows of the runs."""
    ids = {row["id"] for run in runs for row in table(run / "ingest" / "rows.parquet")}
    return len({line["id"] for line in decisions} & ids)


def _report(run: Path, stage: str) -> Row:
    record = load_record(run / stage)
    if record is None:
        raise SystemExit(f"{run} has no stage {stage}.")
    report: Row = record["report"]
    return report


def _sizes(run: Path) -> tuple[int, int]:
    """Return the records of a run's data, and the rows that it leaves without any decision."""
    return _report(run, "ingest")["rows_in"], _report(run, "settle")["rows_out"]


def _findings(runs: Iterable[Path], heard: Sequence[Reading]) -> list[tuple[str, str, int, str, str]]:
    """Return reason, effect and rows of all that was found, the most frequent first, and what readers say of it."""
    counts: Counter[tuple[str, str]] = Counter()
    blocking: set[str] = set()
    for run in runs:
        blocking |= {flag["reason"] for flag in _flags(run) if flag["blocks"]}
        for _, action, reason, count in counted(run):
            counts[action, reason] += count
    return [
        (reason, _effect(action, reason in blocking), count, read_cell(_about(heard, reason)), _controls(heard, reason))
        for (action, reason), count in counts.most_common()
    ]


def _suites(runs: Iterable[Path]) -> Row | None:
    """Return of vetted tests: suites, those that pass a planted fault, faults planted, and faults that pass."""
    files = [file for run in runs if (file := run / "vet_tests" / "suites.parquet").is_file()]
    if not files:
        return None
    suites = pl.concat([pl.read_parquet(file) for file in files])
    survivors = suites["survivors"].list.len()
    return {"suites": len(suites), "weak": (survivors > 0).sum(), "planted": suites["mutants"].sum(),
            "passed": survivors.sum()}  # fmt: skip


def _suspicion(heard: Sequence[Reading]) -> list[tuple[str, int, str]]:
    """Return tier, rows read, and how many of them readers call unfit."""
    tiers = [
        (tier, [r for r in heard if r.key["reason"] == f"{SUSPICION}:{tier}"]) for tier in ("drop", "review", "keep")
    ]
    return [(tier, len(of_tier), read_cell(of_tier)) for tier, of_tier in tiers if of_tier]


def _unflagged(heard: Sequence[Reading]) -> tuple[str, list[tuple[str, int]]] | None:
    """Return the number of rows without a flag that readers call unfit, and their reasons for those that both do."""
    about = _about(heard, UNFLAGGED)
    faults = Counter(" or ".join(sorted({str(fit) for fit in r.fitness})) for r in about if all(r.yes))
    return (read_cell(about), faults.most_common()) if about else None


def _agreement(heard: Sequence[Reading]) -> tuple[int, float] | None:
    """Return the items that were read, and the agreement of the first two readers as Cohen's kappa."""
    labels = [[str(reading.labels[reader]["label"]) for reading in heard] for reader in (0, 1)] if heard else []
    return (len(heard), kappa(*labels)) if labels else None


def _errors(heard: Sequence[Reading], settings: Row) -> list[tuple[str, str, str]]:
    """Return reason, id and a sentence of findings that both readers refute, those that hold rows back first.

    The sentence is that of the set's examples, else a reader's where texts are allowed.
    """
    examples = {example["id"]: example["says"] for example in settings["examples"]}
    refuted = [r for r in heard if not any(r.yes) and not r.key["control"] and r.key["reason"] != UNFLAGGED]
    aside = (f"{LEAK}:", f"{SUSPICION}:review", f"{SUSPICION}:keep")
    refuted = [r for r in refuted if not r.key["reason"].startswith(aside)]
    refuted.sort(key=lambda reading: not reading.key["blocks"])
    whys = [str(r.labels[0].get("why") or "") if settings["texts"] else "" for r in refuted]
    return [
        (r.key["reason"], r.key["id"], examples.get(r.key["id"], why))
        for r, why in zip(refuted[:MOST_ERRORS], whys, strict=False)
    ]


def _about(heard: Iterable[Reading], reason: str, *, control: bool = False) -> list[Reading]:
    return [r for r in heard if r.key["reason"] == reason and r.key["control"] is control]


def _effect(action: str, blocks: bool) -> str:
    effects = {"reject": "left out", "edit": "mended", "drop": "dropped"}
    return effects.get(action, "held back" if blocks else "advice")


def _controls(heard: Iterable[Reading], reason: str) -> str:
    """Return how many rows without the finding both readers answer with yes."""
    controls = _about(heard, reason, control=True)
    return f"{sum(all(reading.yes) for reading in controls)} of {len(controls)}" if controls else ""


def _leaks(folder: Path, settings: Row, heard: Sequence[Reading]) -> list[tuple[str, str, str, int, str]]:
    """Return file, the set that it was compared with, kind of match, rows, and what readers say of the pairs."""
    lines = []
    for name in settings["leaks"]:
        matches = pl.read_parquet(folder / "leaks" / name / "matches.parquet")
        counts = matches.group_by("against", "kind").agg(pl.col("row").n_unique()).sort("against", "kind")
        for against, kind, rows in counts.rows():
            pairs = [
                r for r in _about(heard, f"{LEAK}:{kind}")
                if (r.key["corpus"], r.key["source"]) == (name, Path(against).stem)
            ]  # fmt: skip
            lines.append((name, Path(against).stem, kind, rows, read_cell(pairs)))
    return lines


def _outside(settings: Row, folder: Path, decisions: Sequence[Row]) -> list[tuple[str, int, int, int, int]]:
    """Return the rows of each status in a published review, and the numbers of drops, fixes and unsure ones."""
    if (review := settings.get("outside")) is None:
        return []
    ids = {row["source_row"]: row["id"] for row in table(folder / review["run"] / "run" / "ingest" / "rows.parquet")}
    words = {line["id"]: line["decision"] for line in decisions}
    statuses = [row[review["column"]] for row in read(Path(os.path.expandvars(review["file"])))]
    by_status: dict[str, Counter[str | None]] = defaultdict(Counter)
    for line, status in enumerate(statuses, start=1):
        by_status[status][words.get(ids[line])] += 1
    return [(status, c.total(), c["drop"], c["fix"], c["unsure"]) for status, c in by_status.items()]


def kept_lines(folder: Path) -> list[Row]:
    """Return what readers say of each item, without the texts of rows and without readers' reasons."""
    fields = ("corpus", "id", "source", "source_row", "reason", "blocks", "control", "stands")
    return [
        {field: reading.key[field] for field in fields}
        | {"labels": [label["label"] for label in reading.labels], "fit": reading.fitness}
        for reading in renewed(folder, sets())
    ]


def kept_readings(path: Path) -> list[Reading]:
    """Return the readings that `keep` has written."""
    made = []
    for line in read(path):
        words = zip(line["labels"], line["fit"], strict=True)
        made.append(Reading(line, tuple({"label": label, "fit": fit} for label, fit in words)))
    return made


def blocking(heard: Iterable[Reading]) -> list[Reading]:
    """Return the readings of findings that leave out rows, leaks and the answers of systems aside."""
    return [
        r for r in heard
        if r.key["blocks"] and not r.key["control"] and not r.key["reason"].startswith((LEAK, SUSPICION))
    ]  # fmt: skip


def index_line(name: str, folder: Path) -> tuple[Row, Row, list[tuple[str, str, str, str]]]:
    """Return the lines of a set in the tables of sets, of graders (J by grader) and of advice."""
    settings = sets()[name]
    runs = [folder / run / "run" for run in settings["runs"]]
    heard = standing(renewed(folder, [name]))
    sizes = [_sizes(run) for run in runs]
    graded = folder / "grades" / f"{name}.json"
    grades = json.loads(graded.read_text()) if graded.is_file() else []
    unflagged, agreement = _unflagged(heard), _agreement(heard)
    decided = DOCS / f"{name}.decisions.jsonl"
    decisions = Counter(line["decision"] for line in (read(decided) if decided.is_file() else ()))
    read_rows = len({r.key["id"] for r in heard})
    unfit = {r.key["id"] for r in heard if all(r.unfit) and not r.key["reason"].startswith(LEAK)}
    line = {
        "set": f"[{settings['title']}]({name}.md)",
        "rows": f"{sum(rows for rows, _ in sizes):,}",
        "left out": f"{sum(rows - left for rows, left in sizes):,}",
        "findings that are right": read_cell(blocking(heard)),
        "unfit rows, of all that were read": f"{len(unfit)} of {read_rows:,}" if heard else "not read",
        "unfit rows, of rows without a finding": unflagged[0] if unflagged else "not read",
        "kappa": f"{agreement[1]:.2f} ({agreement[0]} items)" if agreement else "",
        "decisions": ", ".join(f"{count} {word}" for word, count in sorted(decisions.items())) or "none",
    }
    advice = [
        (line["set"], reason, f"{rows:,}", cell) for reason, effect, rows, cell, _ in _findings(runs, heard)
        if effect == "advice"
    ]  # fmt: skip
    return line, {g["grader"]: f"{g['j'][0]:.2f}" for g in grades if g["j"]}, advice[:COMMONEST]


def _write_lines(path: Path, lines: Iterable[Row]) -> None:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def main(argv: list[str]) -> None:
    """Draw, grade, decide, or write a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    drawing = {"suspects": suspects, "tests": test_findings, "pairs": leak_pairs}
    for name in drawing:
        command = commands.add_parser(name)
        command.add_argument("run", metavar="NAME=FOLDER")
        command.add_argument("--seed", type=int, required=True)
        command.add_argument("--each", type=int, required=True)
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--key", type=Path, required=True)
    mixing = commands.add_parser("mix")
    mixing.add_argument("files", type=Path, nargs="+")
    mixing.add_argument("--keys", type=Path, nargs="+", required=True)
    mixing.add_argument("--size", type=int, default=150)
    mixing.add_argument("--seed", type=int, required=True)
    mixing.add_argument("--name", required=True)
    mixing.add_argument("--to", type=Path, required=True)
    for name in ("grade", "decide", "page"):
        command = commands.add_parser(name)
        command.add_argument("set", choices=sorted(sets()))
        command.add_argument("folder", type=Path)
        if name == "decide":
            command.add_argument("--at", required=True)
    for name in ("keep", "index"):
        commands.add_parser(name).add_argument("folder", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.what in drawing:
        name, _, folder = arguments.run.partition("=")
        drawn = drawing[arguments.what](name, Path(folder), arguments.each, arguments.seed)
        write(drawn, arguments.out, arguments.key)
    elif arguments.what == "mix":
        parts = mix(arguments.files, arguments.keys, arguments.size, arguments.seed)
        for part, drawn in enumerate(parts, start=1):
            file = f"{arguments.name}_{part}.jsonl"
            write(drawn, arguments.to / "items" / file, arguments.to / "keys" / file)
    elif arguments.what == "grade":
        grade(arguments.set, arguments.folder)
    elif arguments.what == "decide":
        _write_lines(DOCS / f"{arguments.set}.decisions.jsonl", decide(arguments.set, arguments.folder, arguments.at))
    elif arguments.what == "keep":
        _write_lines(DOCS / "readings.jsonl", kept_lines(arguments.folder))
    elif arguments.what == "index":
        lines, grades, advice = zip(*(index_line(name, arguments.folder) for name in sets()), strict=True)
        print(markdown_table(list(lines[0]), [list(line.values()) for line in lines]), end="\n\n")
        graders = list(dict.fromkeys(grader for of_set in grades for grader in of_set))
        cells = [
            [settings["title"], *(of_set.get(grader, "-") for grader in graders)]
            for settings, of_set in zip(sets().values(), grades, strict=True) if of_set
        ]  # fmt: skip
        print(markdown_table(["set", *graders], cells), end="\n\n")
        print(markdown_table(("set", "advice", "rows", "right"), [line for of_set in advice for line in of_set]))
    else:
        (DOCS / f"{arguments.set}.md").write_text(page(arguments.set, arguments.folder), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
