"""A gold that stands in place of an answer gives no score: not 0 to right answers, not 1 to who writes "N/A"."""

from __future__ import annotations

import pytest
from tables import rows

from truegold.verifiers import Reason, verify

PLACEHOLDERS = [
    *(
        "see solution",
        "See the solution below.",
        "Answers may vary",
        "null",
        "None",
        "-",
    ),
    *(
        "not available",
        "refer to the figure",
        "The proof is left to the reader",
        "\\boxed{}",
        "略",
    ),
    *("see page 3", "See p. 12.", "cf. problem 4", "see part (a)", "(see above)", "\\text{See solution}", "as above"),
    *("siehe Lösungsheft S. 12", "siehe S. 3", "vgl. Aufgabe 4", "s. o.", "voir le corrigé", "ver resposta no livro"),
    *("vedi pagina 3", "zie pagina 3", "zob. str. 3", "см. стр. 12"),
    *("bkz. sayfa 3", "lihat halaman 3", "xem trang 3"),
    *(
        "同上",
        "见解析",
        "詳見解析",
        "见教材第12页",
        "参见答案",
        "证明略",
        "(略)",
        "略。",
        "答案：略",
        "同第3题",
        "如图",
    ),
    *("解説参照", "証明は省略", "풀이 참조", "생략", "TBD", "n/a", "?", "—", "omitted", "proof", "Beweis", "待定"),
    *("to be determined", "answer key", "left to the reader", "https://example.com/solution.pdf"),
]
ANSWERS = ["0", "no solution", "\\emptyset", "none", "undefined", "x", "-1", "\\{\\}", "yes"]
LIKE_REFERENCES = [
    *("see", "the sea", "ver", "voir", "voir la mer"),
    *("略大于", "略小于", "战略", "同意", "同位角", "见面", "参照物"),
]


@pytest.mark.parametrize("gold", PLACEHOLDERS)
@pytest.mark.parametrize("response", ["The answer is \\boxed{42}.", "\\boxed{N/A}", "I do not know"])
def test_no_response_has_a_score_against_a_placeholder(gold: str, response: str) -> None:
    verdict = verify(response, gold)
    assert (verdict.score, verdict.reason) == (None, Reason.GOLD_MISSING)


@rows("gold", ANSWERS)
def test_golds_that_only_look_like_none_are_answers(gold: str) -> None:
    assert verify(f"\\boxed{{{gold}}}", gold).score == 1.0


@rows("gold", LIKE_REFERENCES)
def test_words_that_only_begin_like_references_are_answers(gold: str) -> None:
    assert verify(f"\\boxed{{{gold}}}", gold).score == 1.0


@pytest.mark.parametrize(
    "gold", ["7 (siehe Abbildung 2)", "7 (see page 3)", "7 (voir figure)", "7，见解析", "7 (см. рис. 2)"]
)
def test_a_reference_after_an_answer_is_left_out(gold: str) -> None:
    assert (verify("7", gold).score, verify("2", gold).score, verify("3", gold).score) == (1.0, 0.0, 0.0)


def test_labels_are_answers_to_exact_and_references_are_not() -> None:
    assert verify("unknown", "unknown", verifier="exact").score == 1.0
    assert verify("Paris", "see solution", verifier="exact").score is None
