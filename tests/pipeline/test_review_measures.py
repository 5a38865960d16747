"""How often flags are right by decisions, how far reviewers agree: values computed by hand."""

from __future__ import annotations

import pytest

from truegold.pipeline.review.consensus import AgreedDecision
from truegold.pipeline.review.decisions import Decision, DecisionKind
from truegold.pipeline.review.review_measures import cohen_kappa, measure_agreement, measure_flags

NOON = "2026-02-03T12:00:00Z"
KEEP, DROP, FIX, UNSURE = DecisionKind.KEEP, DecisionKind.DROP, DecisionKind.FIX, DecisionKind.UNSURE


def make_decision(word: DecisionKind, reviewer: str, **more: object) -> Decision:
    """Return a decision about row `a`."""
    gold = {"gold": "7"} if word is FIX else {}
    line = {"id": "a", "decision": word, "reviewer": reviewer, "at": NOON, **gold, **more}
    return Decision.model_validate(line)


def make_flag(row: int, reason: str, blocks: bool = False, evidence: str = "{}") -> dict[str, object]:
    """Return a flag of a row."""
    key = {"id": f"r{row}", "source": "s", "source_row": row}
    return {**key, "reason": reason, "detector": reason, "confidence": 0.5, "blocks": blocks, "evidence": evidence}


def make_word(kind: DecisionKind, is_random: bool = False) -> AgreedDecision:
    """Return a word of one reviewer."""
    return AgreedDecision(kind, "7" if kind is FIX else None, ("ada",), None, is_random)


def key_of(row: int) -> tuple[str, str, int]:
    """Return the key of a row."""
    return f"r{row}", "s", row


def test_kappa_is_what_a_hand_computes():
    first = [KEEP] * 25 + [DROP] * 25
    second = [KEEP] * 20 + [DROP] * 5 + [KEEP] * 10 + [DROP] * 15
    # Agreed .70; by chance .5 * .6 + .5 * .4 = .50; (.70 - .50) / .50 = .40.
    assert cohen_kappa(first, second) == pytest.approx(0.40)
    # Four words: agreed 3 of 6; by chance (3*2 + 2*2 + 1*1 + 0*1) / 36 = 11/36; (18/36 - 11/36) / (25/36) = 7/25.
    first = [KEEP, KEEP, KEEP, DROP, DROP, FIX]
    second = [KEEP, KEEP, DROP, DROP, FIX, UNSURE]
    assert cohen_kappa(first, second) == pytest.approx(7 / 25)
    assert cohen_kappa([KEEP, DROP], [DROP, KEEP]) == pytest.approx(-1)
    assert cohen_kappa([KEEP, KEEP], [KEEP, KEEP]) is None


def test_two_fixes_with_different_golds_are_no_agreement():
    decisions = {
        "a": [make_decision(FIX, "ada"), make_decision(FIX, "bob", gold="8")],
        "b": [make_decision(FIX, "ada"), make_decision(FIX, "bob")],
        "c": [make_decision(KEEP, "ada"), make_decision(KEEP, "bob")],
    }
    (agreement,) = measure_agreement(decisions)
    assert (agreement.reviewers, agreement.pairs, agreement.agreed) == (("ada", "bob"), 3, 2)
    # By chance (2*2 + 1*1) / 9 = 5/9; (2/3 - 5/9) / (4/9) = 1/4.
    assert agreement.kappa == pytest.approx(0.25)


def test_an_agreement_is_blind_only_where_every_second_look_was():
    late = "2026-02-03T13:00:00Z"
    blind = [make_decision(KEEP, "ada"), make_decision(DROP, "bob", blind=True, at=late)]
    seeing = [make_decision(KEEP, "ada"), make_decision(DROP, "bob", at=late)]
    assert measure_agreement({"a": blind})[0].blind
    assert not measure_agreement({"a": blind, "b": seeing})[0].blind


def test_rows_that_reviewers_saw_with_other_contents_are_no_pair():
    assert measure_agreement({"a": [make_decision(KEEP, "ada", seen="1"), make_decision(KEEP, "bob", seen="2")]}) == []


def test_a_flag_is_right_where_its_row_was_dropped_or_fixed():
    flags = [make_flag(row, "proof", blocks=True) for row in range(6)] + [make_flag(1, "multi_part")] * 2
    words = {
        **{key_of(0): make_word(DROP), key_of(1): make_word(FIX, True), key_of(2): make_word(KEEP, True)},
        **{key_of(3): make_word(DROP, True), key_of(9): make_word(DROP)},
    }
    multi_part, proof = measure_flags(flags, words)
    assert (proof.reason, proof.blocks, proof.right, proof.decided) == ("proof", True, 3, 4)
    assert (proof.random_right, proof.random_decided) == (2, 3)
    assert (proof.low, proof.high) == (pytest.approx(0.30064, abs=1e-4), pytest.approx(0.95441, abs=1e-4))
    assert (multi_part.right, multi_part.decided, multi_part.random_decided) == (1, 1, 1)


def test_a_conflict_is_right_for_the_side_that_was_kept_too():
    flags = [make_flag(row, "conflicting_labels", blocks=True, evidence="1") for row in (1, 2)]
    flags += [make_flag(row, "conflicting_labels", blocks=True, evidence="2") for row in (3, 4)]
    words = {key_of(1): make_word(KEEP), key_of(2): make_word(DROP), key_of(3): make_word(KEEP)}
    conflicts = [[key_of(1), key_of(2)], [key_of(3), key_of(4)]]
    assert [(entry.right, entry.decided) for entry in measure_flags(flags, words, conflicts)] == [(3, 3)]
    words[key_of(4)] = make_word(KEEP)
    assert [(entry.right, entry.decided) for entry in measure_flags(flags, words, conflicts)] == [(2, 4)]


@pytest.mark.parametrize(("right", "tier"), [(20, True), (19, True), (18, False), (3, False)])
def test_rows_drawn_at_random_set_the_tier(right, tier):
    flags = [make_flag(row, "proof") for row in range(50)]
    words = {key_of(row): make_word(DROP if row < right else KEEP, True) for row in range(20)}
    words |= {key_of(row): make_word(DROP) for row in range(20, 50)}
    (measured,) = measure_flags(flags, words)
    assert measured.tier(20) is tier
    assert measured.tier(21) is None, "too few were drawn at random"
