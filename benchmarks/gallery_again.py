"""Draws decided rows of the gallery for two further readers, and counts how often they agree with the decisions.

    python benchmarks/gallery_again.py draw FOLDER --rows 60 --seed 60 --out ITEMS.jsonl --key KEY.jsonl
    python benchmarks/gallery_again.py count KEY.jsonl --labels A.jsonl B.jsonl

FOLDER is that of `gallery.py`. Rows are drawn from the sets in turn, without `unsure` ones, which make no claim. The
claim of a decision becomes a question that a reader answers by "yes", "no" or "unclear". Each row has a control: a row
of the same set without a decision, with the same question. If the set has some, controls are rows that both first
readers called fine. The control of a `fix` gets an invented other gold, the control of a wrong program gets a fault
that tests catch.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from first_contact import kappa, read
from flag_readings import FIT, QUESTIONS, Finding, by_turns, item, write
from gallery import DOCS, UNFIT_TESTS, Reading, kept_readings, sets
from gallery_runs import table

from truegold.pipeline.text.templates import markdown_table
from truegold.verifiers.audit.suites.mutants import mutants_of
from truegold.verifiers.rates import wilson_interval

Row = dict[str, Any]

CLAIMS: Mapping[str, str] = {
    "wrong_gold": "Is the gold wrong: is another answer to this problem right, and this one not?",
    "ill_posed": (
        "Is the problem ill-posed: contradictory, open to several readings with different answers, with no option or "
        "two options that are right, or without something that the answer depends on?"
    ),
    "unmatchable_gold": QUESTIONS["gold_unmatchable"].ask,
    "missing_part": (
        "Is a figure, a table, options or another part of the text missing, without which the problem cannot be "
        "answered?"
    ),
    "tests": (
        "`finding` is a change of the worked solution, or a short program. Does it pass all `tests`, and yet give a "
        "wrong result for an input that the problem's text allows?"
    ),
    "fix": "Is {gold} the right answer to this problem, and the gold that stands here not?",
    "unfit": (
        f"{FIT.ask} It is where gold is wrong, the problem is ill-posed or lacks a part, or no verifier can compare a "
        "right answer with gold."
    ),
}
"""What a decision says of its row, by the fault on which the first readers agree; of a row that is kept "unfit"."""
INTEGER = re.compile(r"-?\d{1,9}")


@dataclass
class Decided:
    """The rows of a set, its decisions that claim something, and what its rows were read for."""

    name: str
    rows: Mapping[str, Row]
    decisions: Sequence[Row]
    heard: Mapping[str, Sequence[Reading]]
    tests: Mapping[str, Any]
    """What was found about the tests of rows that the gallery decides about: a change or a program by id."""
    sound: Sequence[str]
    """Rows without a decision, with tests that catch all faults planted, or that both first readers call fine."""
    used: set[str] = field(default_factory=set)

    def claim(self, decision: Row) -> str:
        """Return the key of what a decision claims."""
        if decision["decision"] in ("fix", "keep"):
            return {"fix": "fix", "keep": "unfit"}[decision["decision"]]
        about = [reading for reading in self.heard[decision["id"]] if all(reading.unfit)]
        if any(reading.key["reason"] in UNFIT_TESTS for reading in about):
            return "tests"
        faults = {fault for reading in about for fault in reading.fitness}
        return str(faults.pop()) if len(faults) == 1 and faults <= set(CLAIMS) else "unfit"

    def pair(self, decision: Row, rng: random.Random) -> list[tuple[Row, Row]]:
        """Return the item of a decision and that of its control, with their keys."""
        claim = self.claim(decision)
        row = self.rows[decision["id"]]
        control, other = self._control(claim, rng)
        drawn = [(row, decision, decision.get("gold")), (control, None, other)]
        pair = []
        for shown, word, gold in drawn:
            made = item(Finding(shown, None, False), CLAIMS[claim].format(gold=gold))
            if claim == "tests":
                finding = self.tests[shown["id"]] if word else self._caught(shown, self.tests[row["id"]], rng)
                made |= {"tests": json.loads(shown["verifier_args"]), "finding": finding}
            verdict = word["decision"] if word else None
            expected = "yes" if verdict in ("drop", "fix") else "no"
            hidden = {"set": self.name, "id": shown["id"], "decision": verdict, "claim": claim, "expected": expected}
            pair.append((made, hidden | {"control": word is None, "of": row["id"]}))
        return pair

    def _control(self, claim: str, rng: random.Random) -> tuple[Row, str | None]:
        """Return a row that is sound as far as anything is known of it, and another gold for it."""
        fitting = [self.rows[row_id] for row_id in self.sound if row_id not in self.used]
        if claim == "fix":
            fitting = [row for row in fitting if _other_golds(row)]
        chosen = rng.choice(fitting)
        self.used.add(chosen["id"])
        return chosen, rng.choice(_other_golds(chosen)) if claim == "fix" else None

    @staticmethod
    def _caught(row: Row, like: str, rng: random.Random) -> str:
        """Return a fault that the tests of a row catch, of the same form as another row's finding."""
        if like.startswith("line "):
            return rng.choice(mutants_of(row["solution"].replace("\r", ""), 40)).description
        expected = re.search(r"==\s*(.+)", json.loads(row["verifier_args"])["code"])
        return f"returns {expected[1].strip() if expected else None}"


def _other_golds(row: Row) -> list[str]:
    """Return wrong golds that a hasty reader might believe: another letter, or a number near the gold."""
    options = json.loads(row["verifier_args"] or "{}").get("options") or []
    if options:
        return [letter for letter in "ABCDE"[: len(options)] if letter != row["gold"]]
    if not INTEGER.fullmatch(row["gold"] or ""):
        return []
    gold = int(row["gold"])
    terms = {int(digits) for digits in INTEGER.findall(row["prompt"])}
    others = {2 * gold, *(gold + term for term in terms), *(abs(gold - term) for term in terms)}
    return [str(other) for other in sorted(others - {gold, 0})]


def load(name: str, folder: Path) -> Decided:
    """Read the runs of a set and its decisions."""
    runs = [folder / run / "run" for run in sets()[name]["runs"]]
    rows = {row["id"]: row for run in runs for row in table(run / "ingest" / "rows.parquet")}
    words = read(DOCS / f"{name}.decisions.jsonl")
    decided = {word["id"] for word in words}
    heard: dict[str, list[Reading]] = defaultdict(list)
    for reading in kept_readings(DOCS / "readings.jsonl"):
        if reading.key["corpus"] in sets()[name]["runs"] and not reading.key["reason"].startswith("leak:"):
            heard[reading.key["id"]].append(reading)
    fine = [row_id for row_id, about in heard.items() if all(set(reading.fitness) == {"fine"} for reading in about)]
    tests: dict[str, Any] = {}
    for run in runs:
        if not (run / "vet_tests").is_dir():
            continue
        for record in table(run / "vet_tests" / "ledger.parquet"):
            evidence = json.loads(record["evidence"])
            if record["reason"] == "low_kill_rate":
                tests[record["id"]] = max(evidence["survivors"], key=lambda survivor: "case" in survivor)["fault"]
            elif record["reason"] == "paid_null":
                tests[record["id"]] = min(evidence["programs"], key=lambda program: program.endswith("…"))
        suites = table(run / "vet_tests" / "suites.parquet")
        fine += [s["id"] for s in suites if s["kill_rate"] == 1 and not s["equivalent"] and s["guess_chance"] == 0]
    claiming = [word for word in words if word["decision"] != "unsure"]
    return Decided(name, rows, claiming, heard, tests, [row_id for row_id in fine if row_id not in decided])


def draw(folder: Path, rows: int, seed: int) -> list[tuple[Row, Row]]:
    """Return the items of `rows` decisions, taken from the sets by turns, and of their controls, shuffled."""
    rng = random.Random(seed)
    chosen = [load(name, folder) for name in sets() if (DOCS / f"{name}.decisions.jsonl").is_file()]
    drawn = []
    for decided, taken in zip(chosen, by_turns([len(decided.decisions) for decided in chosen], rows), strict=True):
        for decision in rng.sample(decided.decisions, taken):
            drawn += decided.pair(decision, rng)
    rng.shuffle(drawn)
    return drawn


def count(keys: Sequence[Row], readers: Sequence[Sequence[Row]]) -> str:
    """Return a table: by set, of decided rows and controls, how many readers answer as expected; and their kappa."""
    answers = [{label["item"]: label["label"] for label in reader} for reader in readers]
    lines = []
    for name in (*dict.fromkeys(key["set"] for key in keys), None):
        cells = []
        for control in (False, True):
            of_set = [key for key in keys if key["control"] is control and name in (None, key["set"])]
            agreed = [[reader[key["item"]] == key["expected"] for reader in answers] for key in of_set]
            both = sum(map(all, agreed))
            low, high = wilson_interval(both, len(agreed))
            cells += [f"{both} of {len(agreed)} ({low:.2f} to {high:.2f})", str(sum(map(any, agreed)))]
        lines.append((name or "all", *cells))
    header = ("set", "decided as decided, both", "either", "controls without the fault, both", "either")
    order = [key["item"] for key in keys]
    agreement = kappa(*([reader[item_] for item_ in order] for reader in answers[:2]))
    return f"{markdown_table(header, lines)}\n\nkappa {agreement:.2f}\n"


def main(argv: list[str]) -> None:
    """Draw, or count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("folder", type=Path)
    drawing.add_argument("--rows", type=int, required=True)
    drawing.add_argument("--seed", type=int, required=True)
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument("--key", type=Path, required=True)
    counting = commands.add_parser("count")
    counting.add_argument("key", type=Path)
    counting.add_argument("--labels", type=Path, nargs=2, required=True)
    arguments = parser.parse_args(argv)
    if arguments.what == "draw":
        write(draw(arguments.folder, arguments.rows, arguments.seed), arguments.out, arguments.key)
    else:
        print(count(read(arguments.key), [read(path) for path in arguments.labels]), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
