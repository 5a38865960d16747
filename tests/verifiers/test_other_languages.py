"""Answers in words and in other languages than English: verbs, percentages, sets, Chinese numerals, names."""

from __future__ import annotations

import pytest
from tables import rows

from truegold.verifiers import verify

COUNTED = (
    "Es sind 24.|Das sind 24 Stühle.|Insgesamt sind es 24.|Es sind genau 24.|Also sind es 24 Stühle."
    "|\\boxed{Es sind 24}"
    "|Ce sont 24 chaises.|Cela fait 24.|Il y en a 24.|Son 24.|En total son 24 sillas.|Hay 24 en total.|Sono 24 sedie."
    "|Ce ne sono 24.|No total são 24.|Portanto, são 24.|Dat zijn 24.|Het zijn 24 stoelen.|Toplam 24 sandalye."
    "|Jest ich 24.|Razem 24 krzesła.|Det är 24.|They cost 24 dollars.|Tanto son 24.|24 en tout"
).split("|")
NOT_COUNTED = (
    "Es sind 25.|Es sind nicht 24, sondern 12.|Es sind keine 24.|Es sind 24 oder 25.|Sind es 24?"
    "|\\boxed{Es sind nicht 24}"
    "|Vielleicht sind es 24.|Das könnten 24 sein.|Es sind fast 24.|Es sind 12 und nicht 24.|Ce ne sont pas 24."
    "|Peut-être que ce sont 24.|Son 24 o 25.|No son 24.|Si son 24.|Non sono 24.|Não são 24.|Het zijn er geen 24."
    "|Misschien zijn het 24.|Być może jest 24.|Kanske är det 24.|Toplam 24 değil.|sino 25|They cost 25."
).split("|")
FUNCTIONS = [
    ("\\sin(x)", "\\boxed{sinx}"), ("\\cos(t)", "cost"), ("2\\cos t", "\\boxed{2cost}"), ("\\sin d", "\\boxed{sind}"),
    ("\\ln(x)", "lnx"), ("\\tan k", "\\boxed{tank}"), ("\\sin k + 1", "\\boxed{sink+1}"),
    ("2t\\cos t", "\\boxed{2t cost}"),
]  # fmt: skip


@rows(
    "gold, response, score",
    [
        *(("24", response, 1) for response in COUNTED),
        *(("24", response, 0) for response in NOT_COUNTED),
        *((gold, response, 1) for gold, response in FUNCTIONS),
    ],
)
def test_a_verb_of_another_language_is_no_function(gold: str, response: str, score: int) -> None:
    assert verify(response, gold=gold).score == score


@rows(
    "gold, response, score",
    [
        ("5000", "Es sind 5.000 Flyer.", 1),
        ("5000", "In 4 Tagen sind es 5.000 Flyer.", 1),
        ("5000", "Es sind 5.001 Flyer.", 0),
        ("5000", "Es sind nicht 5.000 Flyer.", 0),
        ("1250", "Das sind 1.250 g.", 1),
        ("1250", "1,25 kg sind 1.250 Gramm.", 1),
        ("1250", "Das sind 1.251 g.", 0),
        ("37.5 %", "\\boxed{37,5 Prozent}", 1),
        ("37.5 %", "Es sind 37,5 Prozent.", 1),
        ("37.5 %", "\\boxed{37,6 Prozent}", 0),
    ],
)
def test_a_sentence_has_decimal_commas(gold: str, response: str, score: int) -> None:
    assert verify(response, gold=gold, comma="answers").score == score


@rows(
    "words",
    "Prozent,prozent,per cent,pour cent,por ciento,per cento,por cento,procent,procenta,prosent,százalék,persen,"
    "phần trăm,процент,процента,процентов,パーセント,퍼센트,प्रतिशत,เปอร์เซ็นต์,بالمئة,τοις εκατό,відсотки,في المئة,درصد,"
    "la sută,אחוז,শতাংশ,peratus,asilimia".split(","),
)
def test_the_words_for_percent_are_the_sign(words: str) -> None:
    for response, score in ((f"37 {words}", 1), (f"\\boxed{{37 \\text{{ {words}}}}}", 1), (f"38 {words}", 0)):
        assert verify(response, gold="37 %", problem="How many %?").score == score, response


@rows(
    "gold, response, score",
    [
        ("37%", "百分之三十七", 1),
        ("37%", "达标率是百分之三十七。", 1),
        ("37.5%", "占百分之三十七点五。", 1),
        ("37%", "yüzde 37", 1),
        ("37%", "ร้อยละ 37", 1),
        ("37%", "Η απάντηση είναι 37 τοις εκατό.", 1),
        *(
            ("72", right, 1)
            for right in "共七十二个 一共有七十二个苹果。 总共七十二元 合计七十二元。 共计七十二人。 总计"
            "有七十二千克。 全班共七十二名学生。 "
            "所以他们一共有七十二本书。 30+42=72，共七十二个。".split()
        ),
        *(
            ("72", wrong, 0)
            for wrong in "共七十个 不是共七十二个 共七十二个吗？ 大约共七十二个不到 可能共七十二个。 "
            "共有七十二个和三十个。 共七十二来个。 "
            "共七十二个减去十个。 共不足七十二个。 小明说共七十二个。 原来共七十二个，后来少了十个。".split()
        ),
        ("12.5", "共十二点五米。", 1),
        ("50%", "百分之五十", 1),
        ("50%", "百分之十五", 0),
        ("37%", "不是百分之三十七", 0),
        ("37%", "百分之三十七吗？", 0),
        ("37%", "百分之3.7.2", 0),
        ("3/4", "四分之三。", 1),
        ("3/4", "还剩全长的四分之三。", 1),
        ("\\frac{3}{4}", "占四分之三", 1),
        ("2.5", "二又二分之一", 1),
        ("-3/4", "负四分之三", 1),
        ("3/4", "三分之四", 0),
        ("3/4", "不是四分之三，是四分之一。", 0),
        ("3/4", "四分之三或四分之一", 0),
        ("3/4", "也许是四分之三", 0),
        ("3/4", "如果是四分之三", 0),
    ],
)
def test_percentages_fractions_and_totals_in_words_are_read(gold: str, response: str, score: int) -> None:
    assert verify(response, gold=gold).score == score


@rows(
    "gold, response, is_right",
    [
        *(("{2,3}", right, True) for right in ("\\{2,3\\}", "{3,2}", "\\boxed{2, 3}", "A∩B = {2,3}", "2和3")),
        *(("{2,3}", wrong, False) for wrong in ("(2,3)", "\\boxed{[2,3]}", "{2,4}", "\\{2\\}", "{2,3,4}")),
        ("${2,3}$", "\\{2,3\\}", True),
        ("{a,b}", "\\{b,a\\}", True),
        ("{a,b}", "(a,b)", False),
        ("A∩B={2,3}", "\\{2,3\\}", True),
        ("A∩B={2,3}", "[2,3]", False),
        ("{(1,2),(3,4)}", "(1,2),(3,4)", True),
        ("{-1, 1/2}", "\\{1/2,-1\\}", True),
        ("{1,000}", "1000", True),
        ("{5}", "5", True),
    ],
)
def test_a_gold_in_bare_braces_is_a_set(gold: str, response: str, is_right: bool) -> None:
    assert (verify(response, gold=gold).score == 1) is is_right


@rows(
    "gold, response, score",
    [
        *(
            ("错", right, 1)
            for right in "不对 × ✗ ❌ 错误 错的 这是错的。 89是奇数，所以错。 答案是错。 \\boxed{×}".split()
        ),
        *(("错", wrong, 0) for wrong in "对 √ 没错 不错 不是错的 这不是错的 可能是错的 如果错 错吗？ 不一定错".split()),
        *(("对", right, 1) for right in "没错 √ ✓ 对的 正确的 26是偶数，所以对。 这句话是对的。".split()),
        *(
            ("False", right, 1)
            for right in "命题错误 该命题错误。 这个说法是错误的。 判断错误 结论不成立 所以该命题是假命题。".split()
        ),
        *(("真", right, 1) for right in "命题正确 说法正确。 因此该说法是正确的。 命题成立 命题为真".split()),
        *(
            ("True", wrong, 0)
            for wrong in "命题错误 命题正确吗？ 并非命题正确。 不能说命题正确。 "
            "命题正确。命题错误。 逆命题正确 如果n是偶数，命题正确。".split()
        ),
        *(("对", wrong, 0) for wrong in "不对 × 错 不是对的 可能是对的 未必是对的 谁说是对的？ 对或错".split()),
    ],
)
def test_chinese_words_and_marks_say_whether_it_is_right(gold: str, response: str, score: int) -> None:
    assert verify(response, gold=gold).score == score


@rows(
    "gold, response, score",
    [
        ("true", "The statement is true.", 1),
        ("True", "Therefore, the proposition is correct.", 1),
        ("False", "We check n = 2.\n\nThe claim is not true.", 1),
        ("False", "The statement is true. The statement is false.", 0),
        ("True", "Bob says:\nThe statement is true.", 0),
        ("True", "The statement is sometimes true.", 0),
        ("True", "If n is even, the statement is true.", 0),
        ("True", "The converse is true.", 0),
        ("No", "The statement is false.", 0),
    ],
)
def test_a_statement_is_called_true_or_false_without_its_problem(gold: str, response: str, score: int) -> None:
    assert verify(response, gold=gold).score == score


VINCI, PAINTED = "Leonardo da Vinci", "Who painted the Mona Lisa?"
LONGEST, CAPITAL, RUNNER_UP = (
    "What is the longest river?",
    "What is the capital of Australia?",
    "Who was the runner-up when Bob won?",
)
JAPAN = "日本的首都是哪里？"


@rows(
    "gold, problem, response, score",
    [
        *(
            (VINCI, PAINTED, response, 1)
            for response in (
                "It was Leonardo da Vinci.", "He was Leonardo da Vinci", "So it was Leonardo da Vinci.",
                "It's Leonardo da Vinci.", "The painter of the Mona Lisa is Leonardo da Vinci.",
                "Let me think.\n\nIt was Leonardo da Vinci.", "Es war Leonardo da Vinci.", "C'était Leonardo da Vinci.",
            )
        ),
        *(
            (VINCI, PAINTED, response, 0)
            for response in (
                "It was not Leonardo da Vinci.", "It was Leonardo da Vinci or Raphael.", "Was it Leonardo da Vinci?",
                "It was Leonardo da Vinci's brother.", "Raphael was born in Leonardo da Vinci.",
                "It was Leonardo da Vinci?", "Maybe it was Leonardo da Vinci.", "It was possibly Leonardo da Vinci.",
                "He said it was Leonardo da Vinci.", "Some say it was Leonardo da Vinci.",
                "His rival was Leonardo da Vinci.",
                "If it was Leonardo da Vinci.", "None of them was Leonardo da Vinci.", "Raphael was Leonardo da Vinci.",
                "The wrong painter is Leonardo da Vinci.", "The answer might be Leonardo da Vinci.",
                "The answer is Raphael. His teacher was Leonardo da Vinci.", "It was Leonardo da Vinci, or Raphael.",
                "It was Raphael, who knew Leonardo da Vinci.", "Options:\nIt was Leonardo da Vinci.",
                "The answer is Raphael.\nThe runner-up was Leonardo da Vinci.", "Es war nicht Leonardo da Vinci.",
            )
        ),
        ("Amazon", LONGEST, "The Amazon", 1),
        ("Amazon", LONGEST, "The longest river is the Amazon.", 1),
        ("Amazon", LONGEST, "The shortest river is the Amazon.", 0),
        ("Canberra", CAPITAL, "Australia's capital is Canberra.", 1),
        ("Canberra", CAPITAL, "The capital of New Zealand is Canberra.", 0),
        ("Canberra", None, "The capital is Canberra.", 1),
        ("Canberra", None, "The old capital was Canberra.", 0),
        ("Alice", RUNNER_UP, "The runner-up was Alice.", 1),
        ("Alice", RUNNER_UP, "The winner was Alice.", 0),
        ("Jerry", "Who is not older, Tom or Jerry?", "The older is Jerry.", 0),
        ("nurse", "Ann is a nurse. Tom has Ann's job. What is Tom's job?", "Ann is a nurse.", 0),
        ("东京", JAPAN, "日本的首都是东京。", 1),
        ("东京", JAPAN, "首都是东京", 1),
        ("东京", JAPAN, "日本的首都不是东京。", 0),
        ("东京", JAPAN, "中国的首都是东京。", 0),
        ("东京", JAPAN, "首都是东京或大阪。", 0),
        ("东京", JAPAN, "首都可能是东京。", 0),
        ("东京", JAPAN, "首都是东京吗？", 0),
        ("李白", None, "这首诗的作者是李白。", 1),
        ("李白", None, "作者是李白的朋友。", 0),
    ],
)  # fmt: skip
def test_a_name_is_read_behind_the_verb_of_the_last_sentence(
    gold: str, problem: str | None, response: str, score: int
) -> None:
    assert verify(response, gold=gold, problem=problem).score == score


@rows(
    "gold, problem, response, score",
    [
        ("sodium", "Which element has the symbol Na? Reply with the name.", "Na", 0),
        ("sodium", "Which element has the symbol Na? Reply with the name.", "Sodium", 1),
        ("sodium", "Which element has 11 protons?", "Na", 1),
        ("Na", "What is the symbol of sodium?", "sodium", 0),
        ("Na", "What is the symbol of sodium?", "Na", 1),
        ("Na", "Which of sodium and iron reacts with water?", "sodium", 1),
        ("NaCl", "What is the formula of sodium chloride?", "sodium chloride", 0),
        ("sodium chloride", "What is the name of NaCl?", "NaCl", 0),
    ],
)
def test_a_name_that_the_problem_gives_is_not_its_formula(gold: str, problem: str, response: str, score: int) -> None:
    assert verify(response, gold=gold, problem=problem).score == score


@pytest.mark.parametrize(
    ("response", "gold"), [("一共七八个。", "78"), ("一共有三四十个。", "40"), ("一共十来个。", "10")]
)
def test_a_chinese_total_that_is_about_a_number_is_none(response: str, gold: str) -> None:
    assert verify(response, gold=gold, problem="一共有多少个？").score == 0.0
