"""The catalogue of hostile texts: complete, lazy, and harmless where nobody evaluates it."""

from __future__ import annotations

import os
import pickle

from tables import rows

from truegold.verifiers import equivalent
from truegold.verifiers.audit import HOSTILE
from truegold.verifiers.audit.made_answers import EXECUTED, INJECTION

MAX_CHARS = 2**21


@rows("case", HOSTILE)
def test_a_case_is_built_the_same_every_time_and_stays_within_bounds(case) -> None:
    assert case.gold == case.gold and case.answer == case.answer
    assert 0 < len(case.answer) <= MAX_CHARS and 0 < len(case.gold) <= MAX_CHARS
    assert case.expected in {"match", "no_match", "any"}


def test_there_are_at_least_seventy_and_their_names_are_unique() -> None:
    assert len({case.name for case in HOSTILE}) == len(HOSTILE) >= 71


def test_the_module_itself_is_small() -> None:
    assert sum(len(repr(case.answer_pieces)) for case in HOSTILE) < 100_000


def test_certain_verdicts_agree_with_the_texts() -> None:
    assert all(case.gold != case.answer for case in HOSTILE if case.expected == "no_match")
    plain = next(case for case in HOSTILE if case.name.startswith("plain"))
    assert equivalent(plain.answer, gold=plain.gold).passed


def test_the_injected_code_shows_itself_where_it_is_run(monkeypatch) -> None:
    monkeypatch.delenv(EXECUTED, raising=False)
    eval(INJECTION)
    assert os.environ.pop(EXECUTED) == "1"


def test_a_case_made_of_texts_can_be_copied_by_value() -> None:
    texts = [(case.name, case.gold, case.answer) for case in HOSTILE[:5]]
    assert pickle.loads(pickle.dumps(texts)) == texts
