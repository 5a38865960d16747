"""Draws flagged rows for two blind readers, and counts their labels.

    python benchmarks/flag_readings.py draw NAME=RUN... --out ITEMS.jsonl --key KEY.jsonl --each 15 --seed 7 \
        [--reasons proof,missing_figure=40]
    python benchmarks/flag_readings.py unflagged NAME=RUN... --rows 100 --seed 7 --out ITEMS.jsonl --key KEY.jsonl
    python benchmarks/flag_readings.py count KEY.jsonl --labels A.jsonl B.jsonl \
        [--append benchmarks/first_contact.jsonl]

RUN is a run of `truegold curate` or the output of `truegold flag`; NAME is its corpus. `draw` takes up to EACH flagged
rows of each reason and corpus (or the number given with a reason), and the same number of rows without this flag, with
the same question. With --rows in place of --each, this number of rows of a reason is taken from all corpora in turn.
--advising takes only flags that do not exclude a row, --read leaves out the rows of a file like
`tests/data/rule_labels.jsonl`.

An item has `item`, `ask`, `problem`, `options`, `gold`, `solution` and `other`, the second row of a pair. Reason and
corpus are only in the key, which readers do not see. A reader's file has `item`, `label` ("yes", "no", "unclear"; for
unflagged rows one of FITNESS) and `why`. The lists of corpora were fixed before the first run (`first_contact.md`).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from first_contact import kappa, read

from truegold.pipeline.dedup.flags import GOLD_CHARS, PROMPT_CHARS
from truegold.pipeline.near.gold_keys import gold_key
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS, POSSIBLE_TRANSLATION
from truegold.verifiers.rates import wilson_interval

Row = dict[str, Any]
Key = tuple[str, int]
"""A row's source and its line there."""

SOLUTION_CHARS = 1_500
SEARCHED_ROWS = 3_000
"""Rows among which the likest one is looked for, as the control of a pair."""


class Question(NamedTuple):
    """The question that readers answer about a row."""

    ask: str
    needs: str | None = None
    """What a row must have for the question to make sense: "solution", "options", or "pair"."""


_UNPAYABLE = Question(
    "A verifier compares values: numbers, formulas, sets, option letters or a few words. Would it fail to accept a"
    " right answer that is written otherwise than this gold (because gold is prose, a derivation, several values,"
    " garbled, a stand-in, ...)?"
)
_SAME_PROBLEM = Question(
    "Are these two the same problem, asking for the same answer (so that a training set needs only one of them)?",
    "pair",
)
QUESTIONS: Mapping[str, Question] = {
    "truncated_text": Question(
        "Is a part of the problem's text missing, so that it breaks off, or leaves out what is asked of a statement?"
    ),
    "no_question": Question("Does the text fail to ask for anything, in any form?"),
    "generator_talk": Question(
        "Does the text have words about how it was made (a generator's talk), beside the problem?"
    ),
    "repeated_text": Question("Does the text repeat itself needlessly (a loop, or the same sentences again)?"),
    "foreign_instruction": Question("Does the text have an instruction that has nothing to do with the problem?"),
    "multi_part": Question("Are several quantities asked for, of which gold answers only one or a part?"),
    "proof": Question(
        "Does the problem ask for a proof, or for another text that no verifier can check against the gold?"
    ),
    "missing_figure": Question("Does the problem depend on a figure or a table that is not there?"),
    "choice_remnant": Question(
        "Was this a question with answer options, of which the options are missing or gold is none of them?"
    ),
    "yes_no_answer": Question("Is the answer yes or no (true or false), so that it can be guessed?"),
    "answer_in_prompt": Question("Does the problem's text give its answer away?"),
    "solution_in_prompt": Question("Does the problem's text contain a solution of the problem, or a part of one?"),
    "mojibake": Question("Does the text have characters that were read in a wrong character set or were lost?"),
    "garbled_number": Question("Is a number or a number word misspelt, or spoilt by wrong characters?"),
    "gold_wrapped": Question(
        "Is there more around the gold than the answer (a heading, a remark, markup, a sentence)?"
    ),
    "spoilt_options": Question(
        "Are the answer options spoilt: two have the same letter, text or value, or one has no text?", "options"
    ),
    "negative_count": Question("Does the problem give a negative amount of something that cannot be negative?"),
    "missing_quantity": Question(
        'Is a quantity that the answer depends on left open ("some apples"), so that it cannot be computed?'
    ),
    "impossible_quantity": Question("Does the problem give a quantity that cannot be, such as 4.5 pupils or 12:75?"),
    "foreign_question": Question("Does the question belong to another story than the one that is told?"),
    "garbled_word": Question("Is a word spoilt by a sign that does not belong into it?"),
    "fractional_count": Question("Is the gold a fraction of something that comes in whole pieces only?"),
    "arithmetic_error": Question("Is a computing step of the solution false?", "solution"),
    "conflicting_labels": Question(
        "Are these two the same problem, asking for the same answer, so that one of the two golds must be wrong?",
        "pair",
    ),
    "possible_translation": Question(
        "Is one of these two problems a translation of the other (the same problem, in another language)?", "pair"
    ),
    "exact_duplicate": _SAME_PROBLEM,
    "same_problem": _SAME_PROBLEM,
    "gold_unparsed": _UNPAYABLE,
    "gold_fails_verifier": _UNPAYABLE,
    "gold_unverified": _UNPAYABLE,
    "gold_unmatchable": _UNPAYABLE,
    "solution_contradicts_gold": Question(
        "Does the solution end in an answer that differs from gold, or of which gold is only a part?", "solution"
    ),
    "same_gold": Question("Is the gold a stand-in, such as a number put in everywhere, and no answer to this problem?"),
}
"""By the reason of a flag or a drop. What holds of the row is asked, not whether the row can be solved all the same."""

UNFLAGGED = "unflagged"
FIT = Question("Is this row unfit to train on, with its gold as the only answer that is accepted?")
FITNESS = ("fine", "wrong_gold", "ill_posed", "unmatchable_gold", "missing_part", "other")
NOT_YES = ("no", "unclear", FITNESS[0])
"""Labels that do not say yes; of unflagged rows every other one does."""
_ASIAN = re.compile("[\u3040-\u9fff]")


@dataclass(frozen=True)
class Finding:
    """A flag, or a drop of a duplicate: its row, and the other one of a pair."""

    row: Row
    other: Row | None
    blocks: bool


class Curated:
    """The rows that a run has left, and what it says of them by reason."""

    def __init__(
        self, name: str, folder: Path, *, advising: bool = False, known: Iterable[tuple[str, str, int]] = ()
    ) -> None:
        """Read a run. With `advising` what holds rows back is left out, and so are `known` (reason, corpus, row)."""
        run = folder / "work" if (folder / "work").is_dir() else folder
        self.name = name
        self.rows = {_key(row): row for row in _table(run / "flag" / "rows.parquet")}
        self.findings: dict[str, list[Finding]] = defaultdict(list)
        self._asked: dict[Key, set[str]] = defaultdict(set)
        dropped: dict[Key, Row] = {}
        records = _table(run / "flag" / "flags.parquet")
        if (run / "dedup").is_dir():
            dropped = {_key(row): row for row in _table(run / "dedup" / "dropped.parquet")}
            drops = (record for record in _table(run / "dedup" / "ledger.parquet") if record["action"] == "drop")
            records += [{**record, "blocks": True} for record in drops if record["reason"] in QUESTIONS]
        left_out = set(known)
        self._partners: set[str] = set()
        """The prompts of the second rows of pairs."""
        pairs: set[frozenset[tuple[str, str]]] = set()
        for record in records:
            row = self.rows.get(_key(record)) or dropped[_key(record)]
            question = QUESTIONS.get(record["reason"])
            self._asked[_key(row)].add(question.ask if question else record["reason"])
            if question is None:
                continue
            other = self._other(row, record["reason"], json.loads(record["evidence"]))
            if question.needs == "pair":
                if other is None or (pair := frozenset(map(_shown, (row, other)))) in pairs:
                    continue
                pairs.add(pair)
                self._partners.add(other["prompt"])
            is_known = (record["reason"], name, row["source_row"]) in left_out
            if not is_known and not (advising and record["blocks"]):
                self.findings[record["reason"]].append(Finding(row, other, record["blocks"]))

    def _other(self, row: Row, reason: str, evidence: Mapping[str, Any]) -> Row | None:
        if reason == CONFLICTING_LABELS:
            row_key = gold_key(row["gold"])
            return next((text for text in evidence["texts"] if gold_key(text["gold"]) != row_key), None)
        if reason == POSSIBLE_TRANSLATION:
            return dict(evidence["text"])
        if "kept" not in evidence:
            return None
        source, _, line = evidence["kept"].rpartition(":")
        return self.rows.get((source, int(line)))

    def unflagged(self) -> list[Row]:
        """Return the rows without any flag."""
        return [row for key, row in self.rows.items() if key not in self._asked]

    def controls(self, reason: str, findings: Sequence[Finding], rng: random.Random) -> list[Finding]:
        """Return the same number of rows without the flag in question; for a pair, the most similar other row."""
        question = QUESTIONS[reason]
        rows = [row for key, row in self.rows.items() if question.ask not in self._asked.get(key, ())]
        if question.needs == "pair":
            rows = [row for row in rows if row["prompt"] not in self._partners]
            pool = rng.sample(rows, min(len(rows), SEARCHED_ROWS))
            chosen = [finding.row for finding in findings]
            return [Finding(row, likest, False) for row in chosen if (likest := _likest(row, pool, reason))]
        fitting = [row for row in rows if question.needs is None or _has(row, question.needs)]
        return [Finding(row, None, False) for row in rng.sample(fitting, min(len(findings), len(fitting)))]


def _table(path: Path) -> list[Row]:
    return pl.read_parquet(path).to_dicts()


def _key(row: Row) -> Key:
    return row["source"], row["source_row"]


def _shown(row: Row) -> tuple[str, str]:
    """Return what the evidence of a flag shows of a row."""
    return row["prompt"][:PROMPT_CHARS], str(row["gold"] or "")[:GOLD_CHARS]


def _options(row: Row) -> list[str]:
    return json.loads(row.get("verifier_args") or "{}").get("options") or []


def _has(row: Row, needed: str) -> bool:
    return bool(row["solution"]) if needed == "solution" else bool(_options(row))


def _tokens(row: Row) -> set[str]:
    return set(re.findall(r"\d+|[^\W\d]{2,}", row["prompt"].lower()))


def _likest(row: Row, pool: Iterable[Row], reason: str) -> Row | None:
    """Return the other row that shares the most words and numbers; for a translation, of those in another script."""
    tokens, is_asian = _tokens(row), bool(_ASIAN.search(row["prompt"]))
    others = [other for other in pool if _key(other) != _key(row)]
    if reason == POSSIBLE_TRANSLATION:
        others = [other for other in others if bool(_ASIAN.search(other["prompt"])) != is_asian]
    return max(
        others,
        key=lambda other: len(tokens & (other_tokens := _tokens(other))) / max(1, len(tokens | other_tokens)),
        default=None,
    )


def shortened(solution: str | None) -> str | None:
    """Return head and tail of a solution that is longer than SOLUTION_CHARS."""
    if solution is None or len(solution) <= SOLUTION_CHARS:
        return solution
    half = SOLUTION_CHARS // 2
    return f"{solution[:half]} [...] {solution[-half:]}"


def item(finding: Finding, ask: str) -> Row:
    """Return what a reader sees."""
    row, other = finding.row, finding.other
    shown = {name: other[name] for name in ("prompt", "gold")} if other else None
    return {
        "ask": ask, "problem": row["prompt"], "options": _options(row) or None, "gold": row["gold"],
        "solution": shortened(row["solution"]), "other": shown,
    }  # fmt: skip


def key(corpus: str, reason: str, finding: Finding, control: bool) -> Row:
    """Return what readers do not see."""
    reference = {name: finding.row[name] for name in ("id", "source", "source_row")}
    return {"corpus": corpus, "reason": reason, "blocks": finding.blocks, "control": control, **reference}


def by_turns(sizes: Sequence[int], rows: int) -> list[int]:
    """Return how many of each part are taken where the parts give one by turns, until there are `rows`."""
    taken = [0] * len(sizes)
    while sum(taken) < min(rows, sum(sizes)):
        for index, size in enumerate(sizes):
            if taken[index] < size and sum(taken) < rows:
                taken[index] += 1
    return taken


def draw(corpora: Sequence[Curated], rows: Mapping[str, int], *, pooled: bool, seed: int) -> list[tuple[Row, Row]]:
    """Return flagged rows and their controls with their keys, shuffled.

    `rows` says how many of a reason are drawn of each corpus, or of all corpora by turns where they are `pooled`.
    """
    rng = random.Random(seed)
    drawn: list[tuple[Row, Row]] = []
    for reason, most in rows.items():
        order = rng.sample(corpora, len(corpora))
        sizes = [len(corpus.findings[reason]) for corpus in order]
        taken = by_turns(sizes, most) if pooled else [min(size, most) for size in sizes]
        for corpus, size in zip(order, taken, strict=True):
            findings = rng.sample(corpus.findings[reason], size)
            controls = corpus.controls(reason, findings, rng)
            ask = QUESTIONS[reason].ask
            for is_control, part in ((False, findings), (True, controls)):
                drawn += [(item(finding, ask), key(corpus.name, reason, finding, is_control)) for finding in part]
    rng.shuffle(drawn)
    return drawn


def draw_unflagged(corpora: Iterable[Curated], rows: int, seed: int) -> list[tuple[Row, Row]]:
    """Return items of rows that nothing is said of, so many of each corpus, with their keys, shuffled."""
    rng = random.Random(seed)
    drawn: list[tuple[Row, Row]] = []
    for corpus in corpora:
        fit = corpus.unflagged()
        for row in rng.sample(fit, min(rows, len(fit))):
            finding = Finding(row, None, False)
            shown = item(finding, FIT.ask) | {"labels": FITNESS}
            drawn.append((shown, key(corpus.name, UNFLAGGED, finding, False)))
    rng.shuffle(drawn)
    return drawn


def write(drawn: Sequence[tuple[Row, Row]], out: Path, key_file: Path) -> None:
    """Write items and keys, numbered alike."""
    for path, rows in ((out, [shown for shown, _ in drawn]), (key_file, [hidden for _, hidden in drawn])):
        lines = (json.dumps({"item": index, **row}, ensure_ascii=False) for index, row in enumerate(rows))
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def yes_counts(keys: Iterable[Row], readers: Sequence[Mapping[int, str]]) -> Row:
    """Return how many of the rows both readers, or one of them, answer with yes, and Wilson's interval for both."""
    answers = [[reader[row["item"]] not in NOT_YES for reader in readers] for row in keys]
    both = sum(map(all, answers))
    low, high = wilson_interval(both, len(answers))
    return {
        "read": len(answers),
        "both": both,
        "either": sum(map(any, answers)),
        "interval": [round(low, 3), round(high, 3)],
    }


def count(keys: Sequence[Row], readers: Sequence[Mapping[int, str]]) -> list[Row]:
    """Return a line for each corpus: what readers say by reason, of flags and controls, and their agreement."""
    by_corpus: dict[str, list[Row]] = defaultdict(list)
    for row in keys:
        if all(row["item"] in reader for reader in readers):
            by_corpus[row["corpus"]].append(row)
    lines: list[Row] = []
    for corpus, rows in by_corpus.items():
        line: Row = {"corpus": corpus, "kind": "flags", "rows": len(rows), "readers": len(readers)}
        if len(readers) == 2:
            labelled = [[reader[row["item"]] for row in rows] for reader in readers]
            line["kappa"] = kappa(labelled[0], labelled[1])
        line["reasons"] = {}
        for reason in sorted({row["reason"] for row in rows}):
            flagged, controls = ([r for r in rows if (r["reason"], r["control"]) == (reason, is_control)]
                                 for is_control in (False, True))  # fmt: skip
            line["reasons"][reason] = {**yes_counts(flagged, readers), "blocks": any(row["blocks"] for row in flagged)}
            if controls:
                line["reasons"][reason]["controls"] = yes_counts(controls, readers)
        lines.append(line)
    return lines


def numbered(text: str) -> tuple[str, int | None]:
    """Read a reason with or without its number of rows: "proof" or "proof=40"."""
    reason, _, rows = text.partition("=")
    if reason not in QUESTIONS:
        raise SystemExit(f"--reasons: there is no reason {reason!r}; there are: {', '.join(QUESTIONS)}.")
    return reason, int(rows) if rows else None


def main(argv: list[str]) -> int:
    """Draw, or count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("draw", "unflagged"):
        command = commands.add_parser(name)
        command.add_argument("runs", nargs="+", metavar="NAME=RUN")
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--key", type=Path, required=True)
        command.add_argument("--seed", type=int, required=True)
        command.add_argument("--rows", type=int, required=name == "unflagged")
        if name == "draw":
            command.add_argument("--each", type=int)
            command.add_argument("--reasons")
            command.add_argument("--advising", action="store_true")
            command.add_argument("--read", type=Path)
    counting = commands.add_parser("count")
    counting.add_argument("key", type=Path)
    counting.add_argument("--labels", type=Path, nargs="+", required=True)
    counting.add_argument("--append", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.what == "count":
        readers = [{label["item"]: label["label"] for label in read(path)} for path in arguments.labels]
        commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
        stamp = {"date": datetime.now(tz=UTC).date().isoformat(), "truegold": commit}
        text = "".join(json.dumps({**stamp, **line}, ensure_ascii=False) + "\n"
                       for line in count(read(arguments.key), readers))  # fmt: skip
        print(text, end="")
        if arguments.append:
            with arguments.append.open("a", encoding="utf-8") as out:
                out.write(text)
        return 0
    runs = [named.rpartition("=") for named in arguments.runs]
    if arguments.what == "unflagged":
        corpora = [Curated(name, Path(run)) for name, _, run in runs]
        drawn = draw_unflagged(corpora, arguments.rows, arguments.seed)
    else:
        if (arguments.rows is None) == (arguments.each is None):
            parser.error("draw takes --each or --rows.")
        known = [(row["reason"], row["corpus"], row["row"]) for row in read(arguments.read)] if arguments.read else []
        corpora = [Curated(name, Path(run), advising=arguments.advising, known=known) for name, _, run in runs]
        most = arguments.rows or arguments.each
        named = arguments.reasons.split(",") if arguments.reasons else QUESTIONS
        rows = {reason: count or most for reason, count in map(numbered, named)}
        drawn = draw(corpora, rows, pooled=arguments.rows is not None, seed=arguments.seed)
    write(drawn, arguments.out, arguments.key)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
