"""Where tokens go: to rows where a positive is likely and of use, by what the attempts so far have shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numbered_rows import make_row, plain_row

from truegold.pipeline.rates import Mixture
from truegold.synth.budget import PlannedAttempt, TokenBudget
from truegold.synth.config import SynthConfig
from truegold.synth.hard_rows import Attempt, HardRow, is_guessable, tail_probability
from truegold.synth.strategies import BUILT_IN


def attempt(strategy: str = "retry", kept: bool = False, tokens: int = 100, number: int | None = 0) -> Attempt:
    score = 1.0 if kept else 0.0
    return Attempt(
        strategy, "text", (1, 2), False, score, "mismatch", "6", {}, 1.0, tokens=tokens, kept=kept, ordinal=number
    )


def hard_row(number: int, rate: float = 0.02, suspicion: float = 0.0, **changes: Any) -> HardRow:
    known = Mixture(np.ones(1), np.array([50 * rate]), np.array([50 * (1 - rate)]))
    row = HardRow(
        make_row(number), number, known, "hard", suspicion, False, False, "en", "hard", [attempt(number=None)]
    )
    for name, value in changes.items():
        setattr(row, name, value)
    return row


def budget(*names: str, **settings: Any) -> TokenBudget:
    strategies = [BUILT_IN[name] for name in names]
    return TokenBudget(SynthConfig.model_validate({"strategies": names, **settings}), strategies)


def first(made: TokenBudget, rows: list[HardRow]) -> list[int]:
    """The rows of the round, in the order of their promise."""
    return [action.hard.index for action in made.choose(rows, {})]


def test_likelier_rows_come_first_and_doubtful_labels_last() -> None:
    rows = [hard_row(1, 0.01), hard_row(2, 0.04), hard_row(3, 0.04, suspicion=0.8), hard_row(4, 0.9)]
    # The last one passes by itself: no group of it is all wrong.
    assert first(budget("retry"), rows) == [2, 1, 3, 4] or first(budget("retry"), rows)[0] == 2
    assert first(budget("retry"), rows)[-1] == 4


def test_a_row_that_has_failed_often_or_has_a_positive_makes_room() -> None:
    tried = hard_row(1, attempts=[attempt() for _ in range(4)])
    served = hard_row(2, attempts=[attempt(kept=True)])
    assert first(budget("retry"), [tried, served, hard_row(3)])[0] == 3
    assert first(budget("retry", positives=1), [served]) == []
    assert first(budget("retry", attempts=4), [tried]) == []


def test_what_a_strategy_has_shown_counts_for_rows_of_the_same_difficulty() -> None:
    made = budget("retry", "hotter")
    for _ in range(40):
        made.record(hard_row(1), attempt("retry", kept=True))
        made.record(hard_row(1), attempt("hotter"))
    row = hard_row(2)
    assert made.chance(BUILT_IN["retry"], row) > 10 * made.chance(BUILT_IN["hotter"], row)
    chosen = [made.choose([row], {})[0].strategy.name for _ in range(20)]
    assert chosen.count("retry") >= 19
    dead = hard_row(3, difficulty="dead")
    assert made.chance(BUILT_IN["retry"], dead) < 0.1


def test_every_strategy_gets_a_chance_before_anything_is_known() -> None:
    made = budget("retry", "hotter", "approaches")
    chosen = {action.strategy.name for action in made.choose([hard_row(number) for number in range(40)], {})}
    assert chosen == {"retry", "hotter", "approaches"}


def test_a_round_stays_within_what_is_left() -> None:
    made = budget("retry", budget_tokens=1000, max_tokens=200)
    assert len(made.choose([hard_row(number) for number in range(40)], {})) == 10
    made.record(hard_row(1), attempt(tokens=950))
    assert made.choose([hard_row(number) for number in range(40)], {}) == []


def test_the_same_state_makes_the_same_choice() -> None:
    rows = [hard_row(number) for number in range(30)]

    def choices() -> list[tuple[int, str]]:
        return [(action.hard.index, action.strategy.name) for action in budget("retry", "hotter").choose(rows, {})]

    assert choices() == choices()


def test_attempts_go_on_from_failures_that_nobody_has_gone_on_from() -> None:
    used, fresh = attempt(number=None), attempt(number=None)
    used.uses = 1
    (action,) = budget("retry").choose([hard_row(1, failures=[used, fresh])], {})
    assert action.parent is fresh
    assert budget("retry").choose([hard_row(1, failures=[])], {}) == []
    (bare,) = budget("hotter").choose([hard_row(1)], {})
    assert isinstance(bare, PlannedAttempt) and bare.parent is None
    deep = attempt(number=1)
    deep.parent = attempt(number=0)
    (shallow,) = budget("retry", depth=2).choose([hard_row(1, attempts=[deep])], {})
    assert shallow.parent is not deep


def test_the_gold_is_shown_where_nothing_else_is_left() -> None:
    made = budget("hotter", "rationalize", attempts=3)
    assert made.choose([hard_row(1)], {})[0].strategy.name == "hotter"
    tried = hard_row(1, attempts=[attempt(), attempt()])
    assert made.choose([tried], {})[0].strategy.name == "rationalize"
    served = hard_row(1, attempts=[attempt(), attempt(kept=True)])
    assert made.choose([served], {})[0].strategy.name == "hotter"
    assert made.choose([hard_row(1)], {1: {"hotter"}})[0].strategy.name == "rationalize"


def test_what_can_be_guessed() -> None:
    small, large = make_row(1, gold="20"), make_row(1, gold="21")
    assert is_guessable(small) and is_guessable(make_row(1, gold="-3.0")) and not is_guessable(large)
    assert is_guessable(make_row(1, gold="Yes")) and is_guessable(plain_row("Which?", "B", verifier="choice"))
    assert not is_guessable(make_row(1, gold="\\frac{1}{2}")) and not is_guessable(make_row(1, gold="3 apples"))


def test_chance_by_hand() -> None:
    assert tail_probability(2, 2, 0.07) == pytest.approx(0.0049)
    # 1 - .9^3 - 3 .1 .9^2
    assert tail_probability(2, 3, 0.1) == pytest.approx(0.028)
    row = hard_row(1, rate=0.1, is_guessable=True)
    right, wrong = attempt("hotter", kept=True), attempt("hotter")
    assert not row.is_beyond_chance(right)
    row.attempts = [right, wrong]
    assert row.is_beyond_chance(right)
    # 1 - .9^5 - 5 .1 .9^4 = .081; three right ones of five, .0086
    row.attempts = [right, wrong, wrong, wrong]
    assert not row.is_beyond_chance(right)
    row.attempts = [right, right, wrong, wrong]
    assert row.is_beyond_chance(right)
    assert hard_row(1, rate=0.1, is_guessable=False).is_beyond_chance(right)
