"""The perfect response to a row: made of its gold, or of its solution where the verifier judges solutions."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from truegold.verifiers import Reason, Verdict, gold_response, resolve
from truegold.verifiers.gold import judges_solutions

PROGRAMS = """
from truegold.verifiers import Reason, Verdict

class Programs:
    name, version = "programs", "1"
    judges_solutions = True
    def __call__(self, response, gold, *, problem=None, info={}):
        return Verdict(1.0, Reason.MATCH)
    def gold_response(self, gold, solution):
        return f"{gold}/{solution}"

class Answers(Programs):
    judges_solutions = False
    def gold_response(self, gold, solution):
        return gold.upper()
"""


@dataclass(frozen=True)
class NeedsGold:
    """A verifier whose gold_response cannot do without gold."""

    name: str = "needs_gold"
    version: str = "1"

    def __call__(self, response, gold, *, problem=None, info=None):
        return Verdict(1.0, Reason.MATCH)

    def gold_response(self, gold: str, solution: str | None) -> str:
        return gold.strip()


@pytest.fixture
def programs(tmp_path):
    path = tmp_path / "programs.py"
    path.write_text(PROGRAMS)
    return path


def test_a_verifier_that_judges_solutions_is_asked_without_gold_if_there_is_a_solution(programs):
    verifier = resolve(f"{programs}:Programs")
    assert judges_solutions(verifier)
    assert gold_response(verifier, None, "print(1)") == "None/print(1)"
    assert gold_response(verifier, "gold", "print(1)") == "gold/print(1)"
    assert gold_response(verifier, None, None) is None


@pytest.mark.parametrize("name", ["math", "choice", "exact", "numeric", "regex", "format", "length"])
def test_other_verifiers_are_never_asked_without_gold(name):
    verifier = resolve(name)
    assert not judges_solutions(verifier)
    assert gold_response(verifier, None, "a solution") is None


def test_a_verifier_whose_gold_response_needs_gold_keeps_working(programs):
    assert gold_response(NeedsGold(), None, "a solution") is None
    assert gold_response(NeedsGold(), " 7 ", None) == "7"
    assert gold_response(resolve(f"{programs}:Answers"), None, "a solution") is None
    assert gold_response(resolve(f"{programs}:Answers"), "b", None) == "B"
