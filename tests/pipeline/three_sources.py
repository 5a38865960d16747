"""Three sources of maths, code and choice with planted copies, conflicts and items of an evaluation set."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl

ANIMALS = ["cats", "hens", "owls", "pigs", "cows", "ants", "bats", "rams", "elks", "jays"]
PLACES = ["barn", "park", "yard", "cave"]
MATHS = [
    (f"There are {n + 2} {animal} in the {place} and {3 * n + 5} more arrive. How many {animal} is that?", 4 * n + 7)
    for n, (animal, place) in enumerate([(animal, place) for place in PLACES for animal in ANIMALS])
]
TASKS = [
    ("double", "the double of a number x", "x * 2", [(1, 2), (5, 10), (-3, -6)]),
    ("negate", "the negative of a number x", "-x", [(1, -1), (5, -5), (-3, 3)]),
    ("square", "the square of a number x", "x * x", [(2, 4), (5, 25), (-3, 9)]),
    ("halve", "half of an even number x as a whole number", "x // 2", [(2, 1), (10, 5), (-6, -3)]),
    ("last_digit", "the last decimal digit of a positive number x", "x % 10", [(12, 2), (75, 5), (340, 0)]),
    ("tenfold", "ten times a number x", "x * 10", [(1, 10), (5, 50), (-3, -30)]),
    ("successor", "the whole number after x", "x + 1", [(1, 2), (5, 6), (-3, -2)]),
    ("cube", "the third power of a number x", "x ** 3", [(2, 8), (3, 27), (-1, -1)]),
]
CAPITALS = ["Lima", "Oslo", "Rome", "Cairo", "Paris", "Delhi", "Quito", "Sofia", "Tunis", "Minsk", "Dakar", "Accra"]
COUNTRIES = ["Peru", "Norway", "Italy", "Egypt", "France", "India", "Ecuador", "Bulgaria", "Tunisia", "Belarus"]
COUNTRIES += ["Senegal", "Ghana"]

COPIES = (0, 3, 6)
"""Maths problems that the choice file has too, with the same gold."""
CONFLICTS = (9, 12)
"""Maths problems that the choice file has with another gold."""
CONTAMINATED = {"maths": (1, 4), "code": (7,), "choice": (5,)}
"""Problems of each source that are items of the evaluation set."""


def choice_problem(index: int) -> tuple[str, str]:
    options = [CAPITALS[(index + step) % len(CAPITALS)] for step in (3, 0, 5, 7)]
    lines = [f"({letter}) {option}" for letter, option in zip("ABCD", options, strict=True)]
    return "\n".join([f"Which of these cities is the capital of {COUNTRIES[index]}?", *lines]), "B"


def code_problem(index: int) -> tuple[str, str, list[str]]:
    name, what, expression, cases = TASKS[index]
    code = f"def {name}(x):\n    return {expression}\n"
    return f"Write a function {name} that returns {what}.", code, [f"assert {name}({x}) == {y}" for x, y in cases]


def write_sources(folder: Path) -> None:
    """Write maths.parquet, code.jsonl, choice.csv, evals.jsonl and script.jsonl."""
    questions, answers = zip(*MATHS, strict=True)
    pl.DataFrame({"question": questions, "answer": list(map(str, answers))}).write_parquet(folder / "maths.parquet")
    tasks = [
        {"task_id": index, "text": text, "code": code, "test_list": tests}
        for index, (text, code, tests) in enumerate(map(code_problem, range(len(TASKS))))
    ]
    _write_lines(folder / "code.jsonl", tasks)
    choices = [choice_problem(index) for index in range(len(COUNTRIES))]
    copies = [(MATHS[index][0].upper(), str(MATHS[index][1])) for index in COPIES]
    conflicts = [(MATHS[index][0], str(MATHS[index][1] + 1)) for index in CONFLICTS]
    with (folder / "choice.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("Frage", "Antwort"), *choices, *copies, *conflicts])
    prompts = [MATHS[index][0] for index in CONTAMINATED["maths"]]
    prompts += [code_problem(index)[0] for index in CONTAMINATED["code"]]
    prompts += [choice_problem(index)[0] for index in CONTAMINATED["choice"]]
    _write_lines(folder / "evals.jsonl", [{"question": prompt} for prompt in prompts])
    script = [{"prompt": text, "completions": [f"\\boxed{{{gold}}}", "\\boxed{0}"]} for text, gold in MATHS]
    script += [
        {"prompt": text, "completions": [f"```python\n{code}```", "```python\nx = 1\n```"]}
        for text, code, _ in map(code_problem, range(len(TASKS)))
    ]
    script += [{"prompt": text, "completions": ["The answer is (B)", "The answer is (C)"]} for text, _ in choices]
    _write_lines(folder / "script.jsonl", script)


def _write_lines(path: Path, entries: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")


def settings(folder: Path, **sections: Any) -> dict[str, Any]:
    """Return the configuration of a run over the three."""
    return {
        "name": "three",
        "runs_dir": str(folder / "runs"),
        "data": [
            {
                "path": str(folder / "maths.parquet"),
                "source": "maths",
                "verifier": "math",
                "heldout": 0.1,
                "quota": 0.5,
            },
            {"path": str(folder / "code.jsonl"), "source": "code", "preset": "mbpp", "weight": 1},
            {
                "path": str(folder / "choice.csv"),
                "source": "choice",
                "columns": {"prompt": "Frage", "gold": "Antwort"},
                "verifier": "choice",
                "domain": "choice",
                "heldout": 0.25,
                "weight": 1,
            },
        ],
        "decontaminate": {"against": [str(folder / "evals.jsonl")]},
        "vet_tests": {"programs": 1, "runs": 1, "mutants": 2, "workers": 1},
        "engine": {"type": "scripted", "path": str(folder / "script.jsonl")},
        "profile": {"samples": 4},
        "select": {"max_rows": 12},
        **sections,
    }
