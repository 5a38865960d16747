"""Answers in words: options without letters, yes and no, and words in bold."""

from __future__ import annotations

import json

from tables import rows

from truegold.verifiers import verify
from truegold.verifiers.answers.choice_arguments import choice_arguments
from truegold.verifiers.extract.listed_options import worded_options

CAUSES = "Which causes it?\nAnswer Choices:  Fish die, and sink. / Trees take up water. / Beavers build."
IDIOM = "根据以上句子，选择合适的成语填入 #idiom# 位置，选项：不亦乐乎, 兴高采烈, 飞禽走兽。"
SENTIMENT = "identify the polarity of the sentence: positive or negative"
OLDER = "Who is older, Tom or Jerry?"
SERIES = "Is the series convergent or divergent?"
PARITY = "Is f even or odd?"
MARS = "Is the sky blue on Mars?"
MARS_CHINESE = "火星天空是蓝色吗？"
ODD_PRIMES = "Every prime is odd. True or false?"
TWO = "2是质数。"


@rows(
    "prompt, gold, options",
    [
        (CAUSES, "Trees take up water.", ["Fish die, and sink.", "Trees take up water.", "Beavers build."]),
        (IDIOM, "兴高采烈", ["不亦乐乎", "兴高采烈", "飞禽走兽"]),
        (SENTIMENT, "negative", ["positive", "negative"]),
        ("Classify the review as positive, neutral, or negative.", "neutral", ["positive", "neutral", "negative"]),
        (
            "Choose from entailment / contradiction / neutral.",
            "contradiction",
            ["entailment", "contradiction", "neutral"],
        ),
        ("Pick one:\n- red fox\n- grey wolf\n- bear", "grey wolf", ["red fox", "grey wolf", "bear"]),
        ("是否表示“张恪”？请回答：Yes / No。", "No", ["Yes", "No"]),
        (OLDER, "Jerry", ["Tom", "Jerry"]),
        (PARITY, "even", ["even", "odd"]),
        ("Answer with one of: World, Sports, Sci/Tech.", "sports", ["World", "Sports", "Sci/Tech."]),
        ("Ist die Aussage wahr oder falsch?", "wahr", ["wahr", "falsch"]),
        ("¿Es la función par o impar?", "impar", ["par", "impar"]),
        ("该评价属于积极、消极或中性。", "消极", ["积极", "消极", "中性"]),
        ("Respond with (yes/no).", "yes", ["yes", "no"]),
        ('Labels: "sports", "world news", "business"\nText: hello', "world news", ["sports", "world news", "business"]),
    ],
)
def test_a_list_without_letters_is_read_where_gold_is_one_of_its_words(
    prompt: str, gold: str, options: list[str]
) -> None:
    assert worded_options(prompt, gold) == tuple(options)


@rows(
    "prompt, gold",
    [
        ("Find the sum of two and three.", "five"),
        ("Tom and Jerry bought apples or pears. Who paid?", "Tom"),
        ("Which of these is larger: 3 or 4?", "4"),
        ("Are the vectors $a$ and $b$ collinear as $c_1 = a, c_2 = -2a$?", "collinear"),
        ("What colour is the sky?", "blue"),
        ("", "blue"),
        ("- a" * 2_000, "a"),
        ("yes: " + "no, " * 2_000, "yes"),
    ],
)
def test_other_prompts_list_nothing(prompt: str, gold: str) -> None:
    assert worded_options(prompt, gold) is None


@rows(
    "problem, gold, response, score",
    [
        (MARS, "Yes", "\\boxed{True}", 1),
        (MARS, "Yes", "Yes, it is.", 1),
        (MARS, "No", "No, because it's red.", 1),
        (MARS, "No", "The sky on Mars is not blue.", 0),
        (MARS, "Yes", "So the answer is yes.", 1),
        (MARS, "Yes", "Therefore, the sky is blue on Mars.", 1),
        (MARS, "No", "Therefore, the sky is blue on Mars.", 0),
        (ODD_PRIMES, "False", "The statement is false, since 2 is even.", 1),
        ("Every prime is odd.", "False", "The statement is true.", 0),
        ("Every prime is odd.", "False", "This is incorrect.", 1),
        ("2 is prime.", "True", "This is correct.", 1),
        (MARS_CHINESE, "是", "是的，火星天空是蓝色。", 1),
        (TWO, "对", "这个说法是对的。", 1),
        (TWO, "对", "这个说法是错的。", 0),
        (TWO, "正确", "这个说法是正确的。", 1),
        (TWO, "正确", "这个说法是错误的。", 0),
        (TWO, "正确", "这个说法不正确。", 0),
        (MARS_CHINESE, "是", "答案：是", 1),
        (MARS_CHINESE, "否", "所以不是。", 1),
        (MARS_CHINESE, "否", "不是，火星天空是红色。", 1),
        (MARS_CHINESE, "是", "不是，火星天空是红色。", 0),
        (MARS, "No", "Yes or no? No.", 1),
        (MARS, "No", "Yes and no.", 0),
        (MARS, "Yes", "Yes and no.", 0),
        (MARS, "Yes", "yes or no", 0),
        (MARS, "Yes", "**Yes**", 1),
        (MARS, "Yes", "The answer is **Yes**.", 1),
        (MARS, "Yes", "Answer: Yes — the dust scatters.", 1),
        (CAUSES, "Trees take up water.", "\\boxed{Trees take up water}", 1),
        (CAUSES, "Trees take up water.", "**Trees take up water**", 1),
        (CAUSES, "Trees take up water.", 'The right choice is "Trees take up water".', 1),
        (CAUSES, "Trees take up water.", "The answer is Beavers build.", 0),
        (CAUSES, "Trees take up water.", "Fish die, and sink. / Trees take up water. / Beavers build.", 0),
        (CAUSES, "Trees take up water.", "Trees take up water, not fish dying.", 1),
        (IDIOM, "不亦乐乎", "答案是：不亦乐乎", 1),
        (IDIOM, "不亦乐乎", "**不亦乐乎**", 1),
        (IDIOM, "不亦乐乎", "最合适的成语是不亦乐乎，因为玩得开心。", 1),
        (IDIOM, "不亦乐乎", "最合适的成语是 **兴高采烈**，而不是不亦乐乎", 0),
        (IDIOM, "不亦乐乎", "应选兴高采烈", 0),
        (IDIOM, "不亦乐乎", "不亦乐乎或兴高采烈", 0),
        (IDIOM, "不亦乐乎", "所以填入“不亦乐乎”最恰当。", 1),
        (SENTIMENT, "negative", "The sentiment polarity is **negative**.", 1),
        (SENTIMENT, "negative", "The review expresses a negative sentiment.", 1),
        (SENTIMENT, "negative", "Sentiment: Negative", 1),
        (SENTIMENT, "negative", "It is positive, not negative.", 0),
        (SENTIMENT, "negative", "positive or negative", 0),
        (SENTIMENT, "negative", "Overall, it is neither positive nor negative.", 0),
        (SENTIMENT, "negative", "NEGATIVE", 1),
        (SENTIMENT, "negative", "The polarity is negative rather than positive.", 0),
        (OLDER, "Tom", "Tom is older than Jerry.", 0),
        (OLDER, "Tom", "Tom is older.", 1),
        (OLDER, "Tom", "Jerry is older than Tom.", 0),
        (OLDER, "Tom", "Therefore, **Tom** is the older one.", 1),
        (OLDER, "Tom", "Jerry", 0),
        (OLDER, "Tom", "\\boxed{\\text{Tom}}", 1),
        (SERIES, "divergent", "The series diverges.", 1),
        (SERIES, "divergent", "The series is divergent.", 1),
        (SERIES, "divergent", "So it does not converge.", 0),
        (PARITY, "even", "So f is an even function.", 1),
        (PARITY, "even", "f is odd.", 0),
    ],
)
def test_such_questions_are_judged_by_their_options(problem: str, gold: str, response: str, score: int) -> None:
    arguments = choice_arguments({"prompt": problem, "gold": gold, "verifier_args": "{}"})
    assert arguments is not None
    assert verify(response, gold=gold, problem=problem, verifier="choice", **json.loads(arguments)).score == score


@rows(
    "gold, response, score",
    [
        ("Tom Watson", "The manager was **Tom Watson**.", 1),
        ("Tom Watson", "**Tom Watson** was the manager of Liverpool in 1901.", 1),
        ("Tom Watson", "So, after 1901: **Tom Watson**", 1),
        ("Tom Watson", "It was **Tom Watson**, who had come from Sunderland.", 1),
        ("Tom Watson", "The name of the manager is **Tom Watson** (1859-1915).", 1),
        ("Tom Watson", "Manager: **Tom Watson**", 1),
        ("Tom Watson", "It was not **Tom Watson**.", 0),
        ("Tom Watson", "**Tom Watson** was not the manager.", 0),
        ("Tom Watson", "It was **Tom Watson** or **Bill Shankly**.", 0),
        ("Tom Watson", "It may have been **Tom Watson**.", 0),
        ("Tom Watson", "Was it **Tom Watson**?", 0),
        ("Tom Watson", "If they had hired in May, it would be **Tom Watson**.", 0),
        ("Tom Watson", "The manager was **Bill Shankly**.", 0),
        ("Tom Watson", "Some think it was **Tom Watson**, but they are wrong.", 0),
        ("Tom Watson", "I doubt that it was **Tom Watson**.", 0),
        ("Tom Watson", "It was someone other than **Tom Watson**.", 0),
        ("Tom Watson", "Shankly came before **Tom Watson**.", 0),
        ("Tom Watson", "It was **Tom Watson** or Bill Shankly.", 0),
        ("Tom Watson", "**Note:** see Tom Watson", 0),
        ("Tom Watson", "My friend believes it was **Tom Watson**.", 0),
        ("Tom Watson", "The answer is **unknown**; Tom Watson?", 0),
        ("李白", "《静夜思》的作者是**李白**。", 1),
        ("李白", "作者：**李白**", 1),
        ("李白", "作者不是**李白**。", 0),
        ("李白", "作者可能是**李白**。", 0),
        ("李白", "作者是**杜甫**，不是李白。", 0),
        ("李白", "是**李白**还是**杜甫**？", 0),
        ("Paris", "The capital is **Paris**.", 1),
        ("Paris", "The capital is **Lyon**, not Paris.", 0),
        ("Paris", "**Paris** is wrong.", 0),
    ],
)
def test_words_that_alone_are_bold_in_the_last_line_are_the_answer(gold: str, response: str, score: int) -> None:
    assert verify(response, gold=gold, problem="Who was it?").score == score


@rows(
    "gold, response, score",
    [
        ("Tom Watson", "Tom Watson", 1),
        ("Tom Watson", "Tom Watson.", 1),
        ("Tom Watson", "tom watson", 1),
        ("Tom Watson", "The answer is tom watson.", 1),
        ("Tom Watson", "It was **tom watson**.", 1),
        ("Tom Watson", "\\boxed{tom watson}", 1),
        ("Tom Watson", "Tom  Watson", 1),
        ("Tom Watson", "Watson", 0),
        ("Tom Watson", "Tom Watson and Bill Shankly", 0),
        ("Tom Watson", "Tom Watson or Bill", 0),
        ("Tom Watson", "Tom Watson?", 0),
        ("Tom Watson", "Not Tom Watson", 0),
        ("Tom Watson", "Tom", 0),
        ("New York City", "the answer is new york city", 1),
        ("New York City", "New York City.", 1),
        ("New York City", "new york city", 1),
        ("New York City", "New York", 0),
        ("entailment", "Entailment.", 1),
        ("entailment", "**Entailment**.", 1),
        ("entailment", "entailment", 1),
        ("entailment", "contradiction", 0),
        ("entailment", "not entailment", 0),
        ("entailment", "entailment or neutral", 0),
        ("李白", "李白", 1),
        ("李白", "李白。", 1),
        ("李白", "杜甫", 0),
        ("Rock 'n' roll", "rock 'n' roll", 1),
        ("Al-Qaeda", "al-qaeda", 1),
        ("Al-Qaeda", "Al-Qaeda.", 1),
    ],
)
def test_a_gold_in_words_is_met_by_the_same_words_and_no_others(gold: str, response: str, score: int) -> None:
    assert verify(response, gold=gold, problem="Who was it?").score == score
    assert verify(response, gold=gold, problem="Who was it?", verifier="exact").score == score


@rows(
    "options, gold, response, score",
    [
        (["true", "false"], "true", "Maybe it is true.", 0),
        (["true", "false"], "true", "Perhaps true.", 0),
        (["true", "false"], "true", "It might be true.", 0),
        (["true", "false"], "true", "Possibly true, possibly not.", 0),
        (["true", "false"], "true", "I think it could be true", 0),
        (["true", "false"], "true", "It may be true.", 0),
        (["true", "false"], "true", "I am not sure, true?", 0),
        (["true", "false"], "true", "True or false.", 0),
        (["true", "false"], "true", "It is unclear whether it is true.", 0),
        (["true", "false"], "true", "One could say it is true.", 0),
        (["true", "false"], "true", "It is true.", 1),
        (["true", "false"], "true", "Therefore the statement is true.", 1),
        (["true", "false"], "true", "True.", 1),
        (["true", "false"], "true", "So, true: it holds in May.", 1),
        (["true", "false"], "true", "This is true, since x may be 0.", 1),
        (["yes", "no"], "yes", "Maybe yes.", 0),
        (["yes", "no"], "yes", "Perhaps, yes.", 0),
        (["yes", "no"], "yes", "Yes or no.", 0),
        (["yes", "no"], "yes", "Possibly yes", 0),
        (["yes", "no"], "yes", "Yes.", 1),
        (["yes", "no"], "yes", "Yes, because it may rain.", 1),
        (["yes", "no"], "yes", "So yes.", 1),
        (["positive", "negative"], "negative", "It may be negative.", 0),
        (["positive", "negative"], "negative", "Perhaps negative.", 0),
        (["positive", "negative"], "negative", "Could be negative.", 0),
        (["positive", "negative"], "negative", "It is unclear whether it is negative.", 0),
        (["positive", "negative"], "negative", "It is clearly negative.", 1),
        (["positive", "negative"], "negative", "The sentiment is negative, th", 1),
        (["对", "错"], "对", "可能是对的。", 0),
        (["对", "错"], "对", "也许对。", 0),
        (["对", "错"], "对", "这个说法可能对。", 0),
        (["对", "错"], "对", "这个说法是对的。", 1),
        (["对", "错"], "对", "对。", 1),
    ],
)
def test_an_option_that_is_left_open_is_not_chosen(options: list[str], gold: str, response: str, score: int) -> None:
    assert verify(response, gold=gold, problem="x?", verifier="choice", options=options).score == score
