"""Facts of sources: what a column or a file shows as a whole, beside sound sets that look like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ingest_files import Notes, read_file, write_lines
from tables import rows

from truegold.pipeline.ingest import gold_signs

Record = dict[str, Any]
ROWS = 24


def worked(row: int, **changes: Any) -> Record:
    """Return a sound row: a price that is asked of a number of tickets."""
    tickets, price = 3 + row, 1200 + 7 * row
    total = f"{tickets * price:,}"
    return {
        "problem": f"Row {row} of a hall has {tickets} seats at {price} cents each. How many cents do they bring?",
        "solution": f"Each of {tickets} seats brings {price}, and {tickets} x {price} = {total}.",
        "answer": total,
        **changes,
    }


def fraction(row: int, **changes: Any) -> Record:
    """Return a sound row with a fraction for its gold."""
    prompt = f"Of {row + 9} pens {row + 2} are red. Which share is that?"
    return {
        "problem": prompt,
        "solution": f"Of {row + 9} pens: {row + 2}/{row + 9}.",
        "answer": f"{row + 2}/{row + 9}",
        **changes,
    }


def half_of(fault: Callable[[int], Record], sound: Callable[[int], Record] = worked) -> list[Record]:
    """Return a source of which every second row is at fault."""
    return [fault(row) if row % 2 else sound(row) for row in range(ROWS)]


def shifted(first: int, last: int, by: int) -> list[Record]:
    """Return a source of which a block has golds of other rows."""
    golds = [worked(row)["answer"] for row in range(ROWS + 4)]
    return [worked(row, answer=golds[row + by]) if first <= row <= last else worked(row) for row in range(ROWS)]


def choice(row: int, *options: str) -> Record:
    """Return a question of choice whose right option is the first."""
    return {"question": f"What is {row} + 40?", "options": list(options), "answer": "A"}


def usual_choice(row: int) -> Record:
    """Return a question of choice with five options."""
    return choice(row, *(str(row + value) for value in (40, 41, 39, 30, 50)))


SPANISH = ("cuarenta y dos", "ciento quince", "treinta y ocho", "veinticinco", "nueve", "cincuenta y siete")
LENGTHS = [f"A plank of {row + 3} m is cut in three equal parts. How long is each?" for row in range(ROWS)]

FAULTS: dict[str, tuple[str, list[Record]]] = {
    "an equation": ("repeats_gold", half_of(lambda row: worked(row, answer=f"{row}.5", solution=f"x={row}.5"))),
    "another spelling": ("repeats_gold", half_of(lambda row: worked(row, answer=str(row), solution=f"x={row}.00"))),
    "an announcement": ("repeats_gold", half_of(lambda row: worked(row, answer=str(row), solution=f"So it is {row}."))),
    "a box": ("repeats_gold", half_of(lambda row: worked(row, answer=str(row), solution=f"$\\boxed{{{row}}}$"))),
    "at a comma": ("gold_cut", half_of(lambda row: worked(row, answer=worked(row)["answer"].split(",")[0]))),
    "at a stroke": ("gold_cut", half_of(lambda row: fraction(row, answer=str(row + 2)), fraction)),
    "at a point": (
        "gold_cut",
        half_of(lambda row: worked(row, solution=f"Halved it is {row + 7}.5.", answer=str(row + 7))),
    ),
    "in a bracket": (
        "gold_cut",
        half_of(lambda row: worked(row, solution=f"The point is ({row}, 8).", answer=f"({row}")),
    ),
    "the first number": (
        "first_number",
        half_of(
            lambda row: worked(
                row, solution=f"{row + 30} + 5 = {row + 35}. The answer is {row + 35}.", answer=str(row + 30)
            )
        ),
    ),
    "one of two unknowns": (
        "lost_parts",
        half_of(lambda row: worked(row, problem="Solve.", solution=f"x = {row} and y = 3.", answer=f"x = {row}")),
    ),
    "one of two parts": (
        "lost_parts",
        half_of(lambda row: worked(row, problem=f"Find (a) {row} + 2, (b) {row} + 3.", answer=f"(a) {row + 2}")),
    ),
    "one of two names": (
        "lost_parts",
        half_of(lambda row: worked(row, problem=f"State quotient and remainder of {row}/3.", answer="quotient 7")),
    ),
    "one row on": ("shifted_golds", shifted(6, 14, 1)),
    "two rows back": ("shifted_golds", shifted(6, 14, -2)),
    "a control": (
        "hints",
        half_of(lambda row: worked(row, problem=f"{worked(row)['problem']} Control: {worked(row)['answer']}.")),
    ),
    "a greeting": (
        "boilerplate",
        half_of(lambda row: worked(row, problem="Welcome to the PlusLand club! " + worked(row)["problem"])),
    ),
    "tags": ("html", half_of(lambda row: worked(row, problem=f"<p>{worked(row)['problem']}</p>"))),
    "entities": ("html", half_of(lambda row: worked(row, problem=worked(row)["problem"].replace(" ", "&nbsp;")))),
    "half translated": (
        "two_languages",
        half_of(lambda row: worked(row, problem=f"A club has {row} members in all. 一共多少个会员？")),
    ),
    "golds in a formal language": (
        "gold_notation",
        half_of(lambda row: worked(row, answer=(f"ApplyUnit({row},degree)", f"x^2=pm*{row}*y")[row % 2], solution="")),
    ),
    "golds in Spanish": ("gold_language", half_of(lambda row: worked(row, answer=SPANISH[row % 6]))),
    "units": (
        "units_stripped",
        [
            {"problem": text, "answer": f"{row + 3}/3" + " m" * (row % 2)}
            | ({} if row % 2 else {"answer": str(row + 1)})
            for row, text in enumerate(LENGTHS)
        ],
    ),
    "one text twice": (
        "options_twice",
        half_of(lambda row: choice(row, str(row + 40), "7", "9", "7", "8"), usual_choice),
    ),
    "one value twice": (
        "options_twice",
        half_of(lambda row: choice(row, str(row + 40), "7", "9", "7.0", "8"), usual_choice),
    ),
    "two options of five": (
        "options_lost",
        [choice(row, str(row + 40), "7") if row % 4 == 0 else usual_choice(row) for row in range(ROWS)],
    ),
}

SOUND: dict[str, list[Record]] = {
    "worked": half_of(worked),
    "fractions": half_of(fraction),
    "golds of one value": [worked(row, solution="3 x 4 = 12.", answer="12") for row in range(ROWS)],
    "short solutions that work": [
        worked(row, solution=f"{row}+{row}={2 * row}", answer=str(2 * row)) for row in range(ROWS)
    ],
    "quotients": [worked(row, solution=f"x={3 * row + 3}/3", answer=str(row + 1)) for row in range(ROWS)],
    "an instruction": [
        worked(row, problem=worked(row)["problem"] + " Write fractions as a/b in lowest terms.") for row in range(ROWS)
    ],
    "a closing phrase": [
        worked(row, solution=f"{worked(row)['solution']} The answer is {worked(row)['answer']}.") for row in range(ROWS)
    ],
    "hints without gold": [
        worked(row, problem=worked(row)["problem"] + " Hint: do it step by step.") for row in range(ROWS)
    ],
    "answers first": [
        worked(row, solution=f"{row + 70}: {row} and 70 make {row + 70}.", answer=str(row + 70)) for row in range(ROWS)
    ],
    "comparisons": [
        worked(row, problem=f"Let a<b and b > {row}. How many whole a are there below {row}?") for row in range(ROWS)
    ],
    "one foreign word": [
        worked(row, problem=f"The word 数学 has {row} letters. How many is that?") for row in range(ROWS)
    ],
    "all in two languages": [
        worked(
            row,
            problem=f"俱乐部有{row + 5}人和3个教练，共多少人？ A club has {row + 5} men and 3 coaches. How many?",
        )
        for row in range(ROWS)
    ],
    "names for golds": [worked(row, answer=("Amir", "Beata", "Chidi", "Dorte")[row % 4]) for row in range(ROWS)],
    "counts": [
        {"problem": f"A box of {row} m has pens. How many pens?", "answer": f"{row} pens" if row % 2 else str(row)}
        for row in range(ROWS)
    ],
    "four or five options": [choice(row, str(row + 40), "1", "2", "3", *("4" * (row % 2))) for row in range(ROWS)],
    "a shift of three rows": shifted(6, 8, 1),
}


def facts_of(records: list[Record], folder: Path) -> dict[str, dict[str, Any]]:
    report, _ = read_file(write_lines(folder, *records), folder)
    return {fact["fact"]: fact for fact in report.facts.get("source_facts", ())}


@pytest.mark.parametrize("name", FAULTS)
def test_a_source_tells_its_fault(name: str, tmp_path: Path) -> None:
    fact, records = FAULTS[name]
    assert list(facts_of(records, tmp_path)) == [fact]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_source_has_no_fault(name: str, tmp_path: Path) -> None:
    assert facts_of(SOUND[name], tmp_path) == {}


def test_a_fact_names_its_rows_and_is_said_once(tmp_path: Path) -> None:
    notes = Notes()
    report, _ = read_file(write_lines(tmp_path, *shifted(6, 14, 1)), tmp_path, notes)
    (fact,) = report.facts["source_facts"]
    assert (fact["rows"], fact["judged"], fact["source_rows"]) == (9, ROWS, "7-15")
    assert notes.notes[-1] == (
        "train.jsonl: 9 of 24 golds fit the solution of a neighbouring row, and not their own"
        "; example: '12,490'; rows 7-15"
    )


def exercise(row: int, **changes: Any) -> Record:
    """Return a sound row without a solution: six kinds of questions by turns that nobody foresees."""
    small, great = 2 + row * 7 % 28, 31 + row * 11 % 59
    problem, answer = (
        (f"Solve: ${small} x={great}$", f"${great}/{small}$"),
        (f"Find the equation of the line of slope {small} through $(0,{great})$", f"$y = {small} x + {great}$"),
        (f"Write the numbers from {small} up to {great} as an interval", f"$[{small}, {great})$"),
        (f"How many pens are in {small} boxes of {great}?", f"{small * great}"),
        (f"Is {small} a factor of {great}?", "no" if great % small else "yes"),
        (f"Which share of 100 pens are {small}?", f"{small}%"),
    )[row * row * 31 % 97 % 6]
    return {"problem": problem, "answer": answer, **changes}


def exercises(first: int, last: int, by: int) -> list[Record]:
    """Return a source without solutions of which a block has golds of other rows."""
    return [
        exercise(row, answer=exercise(row + by)["answer"]) if first <= row <= last else exercise(row)
        for row in range(240)
    ]


@pytest.mark.parametrize("by", [1, -1, 2, -2])
def test_a_shifted_block_is_told_by_the_kinds_of_golds(by: int, tmp_path: Path) -> None:
    facts = facts_of(exercises(100, 119, by), tmp_path)
    assert list(facts) == ["golds_of_neighbours"]
    first, last = map(int, facts["golds_of_neighbours"]["source_rows"].split("-"))
    # A gold at the edge may fit its own question by chance.
    assert 101 <= first <= 102
    assert last == 120
    assert facts["golds_of_neighbours"]["judged"] == 240


@pytest.mark.parametrize(
    "records",
    [
        exercises(100, 119, 0),
        exercises(100, 103, 1),
        exercises(0, 239, 1)[:120],
        [{**exercise(3), "problem": f"{row} pens?"} for row in range(240)],
    ],
    ids=["in place", "four rows", "a small source", "one kind of gold"],
)
def test_golds_in_place_or_too_few_to_tell_are_no_shifted_block(records: list[Record], tmp_path: Path) -> None:
    assert "golds_of_neighbours" not in facts_of(records, tmp_path)


@rows(
    "gold, solution, residue",
    [
        ("7", "x=7", "x"),
        ("7", "7", ""),
        ("7", "#### 7", ""),
        ("184.4", "x = 184.40", "x"),
        ("7", "3+4=7", None),
        ("7", "x=14/2", None),
        ("7", "seven", None),
        ("", "x=7", None),
    ],
)
def test_residues(gold: str, solution: str, residue: str | None) -> None:
    assert gold_signs.residue_of(gold, solution) == residue
