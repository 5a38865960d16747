"""The tasks of `proof_code.py`, solved by one-line Python functions, and examples for the tiny model's cold start.

    Write total(a, b, c): the larger of b and c, then times a.

    ```python
    def total(a, b, c): return max(b, c) * a
    ```

The examples of the cold start are bad: a third have no code block, nearly half of the rest do not run, and half of the
programs that run are wrong. For two kinds of task, most programs solve a similar task: the difference in place of the
distance, the smaller in place of the larger.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from truegold.pipeline.tables.rows import Row, row_id

FIRST = {
    "the sum of {} and {}": "{} + {}",
    "{} less {}": "{} - {}",
    "the product of {} and {}": "{} * {}",
    "the larger of {} and {}": "max({}, {})",
    "the smaller of {} and {}": "min({}, {})",
    "the distance of {} and {}": "abs({} - {})",
}
"""What is done with two arguments, in words and in Python."""
HABITS = FIRST | {"the larger of {} and {}": "min({}, {})", "the distance of {} and {}": "{} - {}"}
"""What the cold start mostly does instead."""
WEAK_KINDS = frozenset(words for words in FIRST if FIRST[words] != HABITS[words])
"""The kinds of task for which that is wrong."""
SECOND = {
    "plus {}": "{} + {}",
    "minus {}": "{} - {}",
    "times {}": "{} * {}",
    "but at least {}": "max({}, {})",
    "but at most {}": "min({}, {})",
}
"""What is done with that and the third argument."""
Weak = Literal["none", "kinds"]
"""Which rows have weak tests: none, or all of `WEAK_KINDS`."""
NAMES = ("f", "solve", "total", "value")
CASES = 6
WEAK_CASES = ((0, 0, 0), (1, 1, 1))
"""The arguments of tests that many a wrong program passes, the habitual ones among them."""
UNLAID, BROKEN, WRONG, HABITUAL = 0.35, 0.44, 0.5, 0.8
"""The shares of careless examples: without a code block; of the others, that do not run; of those, that are wrong, and
in `WEAK_KINDS` that do the usual."""
LAYOUT = r"\s*```python\ndef \w+\([^\n]+\n```\s*"
"""What a response looks like that is laid out as asked for, whatever its program does: a code block with one line that
begins as a function does."""


@dataclass(frozen=True)
class Task:
    """A function of a, b and c in two steps."""

    first: str
    second: str
    order: tuple[str, str, str]

    def words(self) -> str:
        """Return what the function computes, in words."""
        return f"{self.first.format(*self.order[:2])}, then {self.second.format(self.order[2])}"

    def expression(self, operations: Mapping[str, str] = FIRST) -> str:
        """Return the task as a Python expression, with `HABITS` the similar, wrong one."""
        inner = operations[self.first].format(*self.order[:2])
        if not inner.endswith(")") and not SECOND[self.second].startswith("m"):
            inner = f"({inner})"
        return SECOND[self.second].format(inner, self.order[2])

    def result(self, arguments: tuple[int, int, int]) -> int:
        """Return the function's value."""
        scope = {"__builtins__": {"max": max, "min": min, "abs": abs}, **dict(zip("abc", arguments, strict=True))}
        return int(eval(self.expression(), scope))


def split_tasks() -> tuple[list[Task], list[Task]]:
    """Return the tasks to train on, and a fifth of all that is held out."""
    tasks = [Task(*parts) for parts in itertools.product(FIRST, SECOND, itertools.permutations("abc"))]
    random.Random("tasks").shuffle(tasks)
    held_out = len(tasks) // 5
    return tasks[held_out:], tasks[:held_out]


def _prompt(name: str, task: Task) -> str:
    return f"Write {name}(a, b, c): {task.words()}."


def _program(name: str, expression: str) -> str:
    return f"def {name}(a, b, c): return {expression}"


def _answer(program: str) -> str:
    return f"```python\n{program}\n```"


def rows(tasks: list[Task], weak: Weak, seed: int) -> list[Row]:
    """Return a row for each task and name."""
    draw = random.Random(f"rows {seed}")
    made: list[Row] = []
    for line, (task, name) in enumerate(itertools.product(tasks, NAMES), 1):
        strong = [(draw.randrange(-9, 20), draw.randrange(-9, 20), draw.randrange(-9, 20)) for _ in range(CASES)]
        arguments = WEAK_CASES if weak == "kinds" and task.first in WEAK_KINDS else strong
        cases = [{"args": list(values), "expected": task.result(values)} for values in arguments]
        tests = json.dumps({"tests": {"type": "calls", "entry_point": name, "cases": cases}})
        made.append(
            {
                "id": row_id(_prompt(name, task), None, tests),
                "prompt": _prompt(name, task),
                "gold": None,
                "domain": "code",
                "verifier": "code",
                "verifier_args": tests,
                "solution": _program(name, task.expression()),
                "source": "proof_code",
                "source_row": line,
                "split": "train",
                "meta": json.dumps({"kind": task.first, "habit": _program(name, task.expression(HABITS))}),
            }
        )
    draw.shuffle(made)
    return made


def examples(tasks: list[Task], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the careless examples of the cold start."""
    draw = random.Random(f"examples {seed}")
    for _ in range(count):
        task, name = draw.choice(tasks), draw.choice(NAMES)
        if draw.random() < UNLAID:
            yield {"prompt": _prompt(name, task), "completion": f"{name} is {task.words()}."}
            continue
        if draw.random() < BROKEN:
            program = _broken(_program(name, task.expression()), draw)
        elif task.first in WEAK_KINDS:
            program = _program(name, task.expression(HABITS if draw.random() < HABITUAL else FIRST))
        elif draw.random() < WRONG:
            program = _program(name, draw.choice([other for other in tasks if other != task]).expression())
        else:
            program = _program(name, task.expression())
        yield {"prompt": _prompt(name, task), "completion": _answer(program)}


def _broken(program: str, draw: random.Random) -> str:
    """Return the program with a fault that keeps it from running."""
    faults = [
        program.replace("):", ")"),
        program.replace("return", "retrun"),
        program + ")",
        re.sub(r"[abc](?=\W*$)", "d", program),
    ]
    return draw.choice(faults)
