"""Tests of planted faults: one change each, all of them programs, none twice, the same on every machine."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.verifiers.audit.suites.mutants import mutants_of

SOURCE = '''\
import math


def area(r, items, flag=True):
    """The area."""
    total = 0
    for item in items:
        if item < r and not flag:
            total += item * 2
    while total > 10:
        total -= 1
    return max(total, items[1:r])


def unused(x):
    return x + 1


if __name__ == "__main__":
    print(area(3, [1, 2]))
'''


def described(source: str, count: int = 1000, **more: object) -> list[str]:
    """Return the mutants as lines before and after, sorted."""
    return sorted(f"{m.before}  ->  {m.after}" for m in mutants_of(source, count, **more))  # type: ignore[arg-type]


def test_every_kind_of_fault_is_planted_and_shown_by_its_line() -> None:
    assert described(SOURCE) == sorted(
        [
            "def area(r, items, flag=True):  ->  def area(r, items, flag=False):",
            "total = 0  ->  total = 1",
            "total = 0  ->  total = (-1)",
            "for item in items:  ->  the loop ends after its first iteration",
            "if item < r and not flag:  ->  if (not (item < r and not flag)):",
            "if item < r and not flag:  ->  pass",
            "if item < r and not flag:  ->  if ((item < r) or (not flag)):",
            "if item < r and not flag:  ->  if (item <= r) and not flag:",
            "if item < r and not flag:  ->  if (item >= r) and not flag:",
            "if item < r and not flag:  ->  if item < r and flag:",
            "total += item * 2  ->  total -= item * 2",
            "total += item * 2  ->  pass",
            "total += item * 2  ->  total += (item + 2)",
            "total += item * 2  ->  total += item * 3",
            "total += item * 2  ->  total += item * 1",
            "while total > 10:  ->  the loop ends after its first iteration",
            "while total > 10:  ->  while (total >= 10):",
            "while total > 10:  ->  while (total <= 10):",
            "while total > 10:  ->  while total > 11:",
            "while total > 10:  ->  while total > 9:",
            "total -= 1  ->  total += 1",
            "total -= 1  ->  pass",
            "total -= 1  ->  total -= 2",
            "total -= 1  ->  total -= 0",
            "return max(total, items[1:r])  ->  return None",
            "return max(total, items[1:r])  ->  return min(total, items[1:r])",
            "return max(total, items[1:r])  ->  return items[1:r]",
            "return max(total, items[1:r])  ->  return total",
            "return max(total, items[1:r])  ->  return max(total, items[2:r])",
            "return max(total, items[1:r])  ->  return max(total, items[0:r])",
            "return max(total, items[1:r])  ->  return max(total, items[1:r - 1])",
            "return max(total, items[1:r])  ->  return max(total, items[1:r + 1])",
            "print(area(3, [1, 2]))  ->  pass",
            "print(area(3, [1, 2]))  ->  print(area(4, [1, 2]))",
            "print(area(3, [1, 2]))  ->  print(area(2, [1, 2]))",
            "print(area(3, [1, 2]))  ->  print(area(3, [2, 2]))",
            "print(area(3, [1, 2]))  ->  print(area(3, [0, 2]))",
            "print(area(3, [1, 2]))  ->  print(area(3, [1, 3]))",
            "print(area(3, [1, 2]))  ->  print(area(3, [1, 1]))",
        ]
    )


def test_what_nothing_uses_is_left_alone_unless_it_is_an_entry_point() -> None:
    library = "def used(x):\n    return x + 1\n\n\ndef helper(x):\n    return x * 7\n"
    assert all("x * 7" not in text for text in described(library, entry_points=["used"]))
    assert any("x * 7" in text for text in described(library))


def test_every_mutant_parses_differs_and_changes_one_place() -> None:
    mutants = mutants_of(SOURCE, 1000)
    assert len({mutant.source for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        ast.parse(mutant.source)
        changed = [
            pair for pair in zip(SOURCE.split("\n"), mutant.source.split("\n"), strict=False) if len(set(pair)) > 1
        ]
        assert mutant.source != SOURCE
        assert SOURCE.split("\n")[mutant.line - 1].strip() == mutant.before
        assert changed


def test_the_choice_is_the_seeds_and_takes_kinds_in_turn() -> None:
    few = mutants_of(SOURCE, 8, seed=1)
    assert few == mutants_of(SOURCE, 8, seed=1)
    assert few != mutants_of(SOURCE, 8, seed=2)
    assert len({mutant.operator for mutant in few}) == 8


@pytest.mark.parametrize("source", ["", "def f(", "x" * 10 + " = (", "'''doc'''\n", "import os\n"])
def test_where_nothing_can_be_planted_there_are_no_mutants(source: str) -> None:
    assert mutants_of(source, 30) == []


@pytest.mark.parametrize(
    "source",
    ["x = 'é' if 1 < 2 else 'ü'\r\ny = 3\r\n", "x = '日本' + str(3 - 1)  # 数\n", "x = 5\ry = 6\r"],
)
def test_positions_are_right_beyond_ascii_and_in_every_line_ending(source: str) -> None:
    mutants = mutants_of(source, 100)
    assert mutants
    for mutant in mutants:
        before, after = ast.dump(ast.parse(source)), ast.dump(ast.parse(mutant.source))
        assert before != after


def test_fast_input_classes_and_recursion_limits_are_left_alone() -> None:
    fast = "class FastIO:\n    n = 3\n    def f(self): return 4\n"
    source = f"import sys\nsys.setrecursionlimit(10000)\nBUFSIZE = 8192\n{fast}print(FastIO)\n"
    assert [mutant.before for mutant in mutants_of(source, 100)] == ["print(FastIO)"]


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.sampled_from(["a", "b", "1", "2.5", "'t'"]),
        lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "<", "and", "or", "==", "%"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        max_leaves=12,
    )
)
def test_any_expression_gives_mutants_that_parse(expression: str) -> None:
    source = f"def f(a, b):\n    return {expression}\n"
    for mutant in mutants_of(source, 200, entry_points=["f"]):
        ast.parse(mutant.source)
        assert mutant.line == 2
