"""Names with initials, days and ranges of years as answers in sentences."""

from __future__ import annotations

import pytest

from truegold.verifiers import verify

BORN = "In which city was Ann Lee born?"
DIED = "When did Ann Lee die?"
WROTE = "Who wrote The Blue Door?"
REPEATING = [
    ("Ann Lee died on 5 November 2022.", "November 5, 2022", DIED),
    ("Ann Lee died on November 5, 2022.", "5 November 2022", DIED),
    ("Ann Lee zemřela 5. listopadu 2022.", "5. listopadu 2022", "Kdy zemřela Ann Lee?"),
    ("Ann Lee starb am 5. November 2022.", "5. November 2022", "Wann starb Ann Lee?"),
    ("Ann Lee est morte le 5 novembre 2022.", "5 novembre 2022", "Quand est morte Ann Lee ?"),
    ("Ann Lee was born in Oslo.", "Oslo", BORN),
    ("Ann Lee se narodila v Oslo.", "Oslo", "Ve kterém městě se narodila Ann Lee?"),
    ("Tom Rolt wrote The Blue Door.", "Tom Rolt", WROTE),
    ("Modré dveře napsal Tom Rolt.", "Tom Rolt", "Modré dveře napsal který autor?"),
    ("První žena, která získala cenu, byla Ann Lee.", "Ann Lee", "Která první žena získala cenu?"),
    ("Ann Lee wurde in Oslo geboren.", "Oslo", "In welcher Stadt wurde Ann Lee geboren?"),
    ("Ann Lee nació en Oslo.", "Oslo", "¿En qué ciudad nació Ann Lee?"),
    ("Spain is larger than France.", "Spain", "Which country is larger than France?"),
    ("Right angle", "right", "What kind of angle is formed where two lines meet?"),
    ("Submental lymph nodes", "Submental", "Which of the following lymph nodes is felt first?"),
]
OTHERWISE = [
    ("Ann Lee died on 6 November 2022.", "November 5, 2022", DIED),
    ("Ann Lee died before 5 November 2022.", "November 5, 2022", DIED),
    ("Ann Lee married on 5 November 2022.", "November 5, 2022", DIED),
    ("Ann Lee nezemřela 5. listopadu 2022.", "5. listopadu 2022", "Kdy zemřela Ann Lee?"),
    ("Ann Lee died on 5 November 2022 or on 6 November 2022.", "November 5, 2022", DIED),
    ("Ann Lee was raised in Oslo.", "Oslo", BORN),
    ("Ann Lee was not born in Oslo.", "Oslo", BORN),
    ("Was Ann Lee born in Oslo?", "Oslo", BORN),
    ("Ann Lee beat Tom Rolt.", "Tom Rolt", "Who beat Ann Lee?"),
    ("Ann Lee lost to Tom Rolt.", "Tom Rolt", "Who lost to Ann Lee?"),
    ("Tom Rolt did win.", "Tom Rolt", "Who did not win?"),
    ("Ann won and Tom did.", "Ann", "Who won, Ann or Tom?"),
    ("Did Ann Lee die on 5 November 2022", "November 5, 2022", DIED),
    ("Ann Lee died by 5 November 2022.", "5 November 2022", DIED),
    ("❌ Ann Lee died on 5 November 2022.", "5 November 2022", DIED),
    ("Ann Lee died on ≠ 5 November 2022.", "5 November 2022", DIED),
    ("The mass of the pump is - 5 kg.", "5 kg", "What is the mass of the pump?"),
    ("The mass of the pumps is 2 × 5 kg.", "5 kg", "What is the mass of 2 pumps?"),
    ("The mass of the pumps is 5 kg (2 kg).", "5 kg", "What is the mass of 2 pumps in kg?"),
    ("The power of the pump is 5 MW.", "5 mW", "What is the power of the pump?"),
    ("The symbol is CO.", "Co", "What is the symbol of cobalt?"),
    ("Tom Rolt was beaten by Ann Lee.", "Tom Rolt", "Who beat Ann Lee?"),
    ("Ann Lee was killed by Tom Rolt.", "Tom Rolt", "Whom did Ann Lee kill?"),
    ("The father of Tom Rolt is Ann Lee.", "Tom Rolt", "Who is the father of Ann Lee?"),
    ("Tom besiegte Ann Lee.", "Tom", "Wen besiegte Ann Lee?"),
    ("Том победил Анну.", "Том", "Кого победил Анну?"),
    ("Ann Lee was born in Oslo.", "Oslo", "Where did Tom, who was born before Ann Lee, die?"),
    ("Ann Lee was born in Oslo.", "Oslo", "Ann Lee was born in Bergen. Where did she die?"),
    ("The war began on 5 May 1900.", "5 May 1900", "The war began in spring. When did it end?"),
    ("Ann Lee presented in Oslo.", "Oslo", "In which city was Ann Lee president?"),
    ("No Tom won.", "Tom", "Who won?"),
    ("Ganó Tom o Ann.", "Tom", "¿Quién ganó con Ann?"),
    ("Non-right angle", "right", "What kind of angle is formed where two lines meet?"),
    ("Their work led to many songs, with the famous Katyusha (1938).", "1938", "In which year did Blanter begin?"),
]


@pytest.mark.parametrize(("response", "gold", "problem"), REPEATING)
def test_gold_in_a_sentence_of_the_words_of_the_problem_is_the_answer(response: str, gold: str, problem: str) -> None:
    assert verify(response, gold=gold, problem=problem).score == 1.0


@pytest.mark.parametrize(("response", "gold", "problem"), OTHERWISE)
def test_gold_in_a_sentence_that_says_something_else_is_not(response: str, gold: str, problem: str) -> None:
    assert verify(response, gold=gold, problem=problem).score != 1.0


@pytest.mark.parametrize(
    "gold", ["H. D. Rao", "A. A. Milne", "C. V. Raman", "E. Rao", "B. F. Skinner", "G. H. Hardy", "J. Rao", "H.D. Rao",
             "George W. Bush", "K. L. Rao"]
)  # fmt: skip
def test_a_name_with_initials_is_no_letter_of_an_option(gold: str) -> None:
    problem = "Who was the 18th minister?"
    for right in (gold, f"It was {gold}.", f"The 18th minister was {gold}.", f"\\boxed{{{gold}}}", f"**{gold}**"):
        assert verify(right, gold=gold, problem=problem).score == 1.0, right
    initial = gold[0]
    for wrong in (initial, f"{initial}. Patel", f"{initial}. M. Patel", f"The 18th minister was {initial}. N. Patel."):
        assert verify(wrong, gold=gold, problem=problem).score != 1.0, wrong


@pytest.mark.parametrize("response", ["D. H. Rao", "H. D. Rao Jr.", "H D", "H. D. Roy", "\\boxed{\\text{D. H. Rao}}"])
def test_the_initials_of_a_name_have_an_order(response: str) -> None:
    assert verify(response, gold="H. D. Rao", problem="Who won?").score == 0.0
    assert verify("\\boxed{\\text{H. D. Rao}}", gold="H. D. Rao", problem="Who won?").score == 1.0


def test_a_letter_with_a_name_is_an_option_if_the_problem_lists_options() -> None:
    problem = "Who wrote it?\nA. Rome Rolt\nB. Paris Lee\nC. Oslo Kane"
    assert verify("B", gold="B. Paris Lee", problem=problem).score == 1.0
    assert verify("B", gold="B. Paris").score == 1.0


@pytest.mark.parametrize(
    ("gold", "other"),
    [
        ("1929-1930", "1930-1931"), ("9-11", "11-13"), ("2-0", "3-1"), ("1642–1644", "1667–1669"), ("9-11", "11-13 mm"),
        ("10-12 km", "9-11 km"), ("12 - 15", "10 - 13"), ("1.5-2.5", "2.5-3.5"), ("3-5 years", "4-6 years"),
        ("7-5", "6-4"), ("(9-11)", "(11-13)"), ("[9-11]", "[11-13]"), ("(1-3, 5-7)", "(2-4, 6-8)"),
    ],
)  # fmt: skip
def test_a_range_is_no_difference(gold: str, other: str) -> None:
    assert verify(f"It lasted {other}.", gold=gold).score != 1.0
    assert verify(f"\\boxed{{{other}}}", gold=gold).score == 0.0
    assert verify(f"\\boxed{{{gold.replace('-', '–')}}}", gold=gold).score == 1.0


@pytest.mark.parametrize(
    ("response", "gold", "score"),
    [
        ("9.0-11.0", "9-11", 1.0),
        ("1,000-2,000", "1000-2000", 1.0),
        ("09-11", "9-11", 1.0),
        ("9-11 km", "9000-11000 m", 1.0),
        ("10-12 km", "9000-11000 m", 0.0),
        ("$10-15", "$5-10", 0.0),
        ("$5-$10", "$5-10", 1.0),
        ("9-11 or 11-13", "9-11", 0.0),
        ("(9-11)", "9-11", 1.0),
        ("-2", "9-11", 0.0),
        ("-2", "(9-11)", 0.0),
        ("5", "10-5", 1.0),
        ("(5-3)", "2", 1.0),
    ],
)
def test_ranges_have_the_values_of_their_ends(response: str, gold: str, score: float) -> None:
    assert verify(response, gold=gold).score == score


@pytest.mark.parametrize("verifier", ["exact", "math"])
@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("《圆梦书》", "圆梦书"),
        ("“圆梦书”", "圆梦书"),
        ("「明」", "明"),
        ("答案是：《后窗》。", "后窗"),
        ('"Paris"', "Paris"),
        ("尼米捷（Niv-Mizzet）", "尼米捷"),
        ("黑色暴牛团（Black Bulls）。", "黑色暴牛团"),
        ("**尼米捷（Niv-Mizzet）**", "尼米捷"),
        ("森金 (Sen'jin)", "森金"),
        ("孔子（Confucius）", "孔子"),
        ("希腊（Greece）", "希腊"),
        ("德国（Germany）", "德国"),
    ],
)
def test_quotes_and_a_latin_spelling_are_no_part_of_a_name(response: str, gold: str, verifier: str) -> None:
    assert verify(response, gold=gold, verifier=verifier).score == 1.0


@pytest.mark.parametrize("verifier", ["exact", "math"])
@pytest.mark.parametrize(
    "response",
    [
        "尼米捷（不是）", "尼米捷（or not）", "泰坦（Niv-Mizzet）", "《尼米捷》和《后窗》", "尼米捷（Not Niv-Mizzet）",
        "尼米捷（Wrong）", "尼米捷（X）", f"尼米捷（{'A' * 300}", f"{'尼' * 50_000}（",
    ],
)  # fmt: skip
def test_other_remarks_are_part_of_a_name(response: str, verifier: str) -> None:
    assert verify(response, gold="尼米捷", verifier=verifier).score == 0.0


@pytest.mark.parametrize("verifier", ["exact", "math"])
@pytest.mark.parametrize(
    ("response", "gold"), [("孔子（Mencius）", "Mencius"), ("Paris (London)", "Paris"), ("Paris (London)", "London")]
)
def test_a_name_in_brackets_is_not_an_answer(response: str, gold: str, verifier: str) -> None:
    assert verify(f"The answer is {response}.", gold=gold, verifier=verifier).score == 0.0


@pytest.mark.parametrize(("response", "gold"), [("5'", "5"), ("f'", "f"), ('5"', "5"), ("《围城", "围城")])
def test_a_single_mark_is_no_quote(response: str, gold: str) -> None:
    assert verify(response, gold=gold, verifier="exact").score == 0.0


@pytest.mark.parametrize(
    ("response", "gold", "problem", "score"),
    [
        ("71.26 Btu/mole", "- 71.26 Btu", "What is the heat in Btu per mole?", 0.0),
        ("Ann Lee ate 3.4 of the cake.", "3/4", "What part of the cake did Ann Lee eat?", 0.0),
        ("The program was written in C.", "C++", "In which language was the program written?", 0.0),
        ("The program was written in C++.", "C++", "In which language was the program written?", 1.0),
        ("The code was written in C#.", "C", "In which language was the code written?", 0.0),
        ("Ann Lee lost -5 points.", "5 points", "How many did Ann Lee lose?", 0.0),
        ("The formula was x-1.", "x+1", "What was the formula?", 0.0),
        ("The score was 1,800.", "1.800", "What was the score?", 0.0),
        ("The mission was Apollo 11-B.", "Apollo 11", "Which was the mission?", 0.0),
        ("The mission was Apollo 11.", "Apollo 11", "Which was the mission?", 1.0),
        ("Ann Lee was born in **Oslo**.", "Oslo", "In which city was Ann Lee born?", 1.0),
        ("Ann Lee was born in Oslo/Bergen.", "Oslo", "In which city was Ann Lee born?", 0.0),
    ],
)
def test_signs_and_symbols_of_a_repeated_gold_are_those_of_gold(
    response: str, gold: str, problem: str, score: float
) -> None:
    assert verify(response, gold=gold, problem=problem).score == score
