"""The form of a response, and which tags are one token."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers import FormatVerifier, Reason, resolve, tag_tokens
from truegold.verifiers.answers.format import MAX_RESPONSE_CHARS

judge = FormatVerifier()
GOOD = "<think>2+2 is 4</think>\nSo it is $\\boxed{4}$."
TAGGED = "<think>2+2</think><answer>4</answer>"


def missing(response: str, **info: object) -> list[str]:
    verdict = judge(response, None, info=info)
    parts: list[str] = verdict.evidence["missing"]
    assert verdict.passed == (not parts)
    return parts


@pytest.mark.parametrize("response", [GOOD, TAGGED, "<think>a \\boxed{9}</think>\\boxed{4}", f"  \n{GOOD}"])
def test_a_response_in_good_form_passes(response):
    assert missing(response) == []


@rows(
    "response, parts",
    [
        ("", ["think", "order", "answer"]),
        ("\\boxed{4}", ["think", "order", "answer"]),
        ("<think>2+2 is 4</think>", ["answer"]),
        ("<think>2+2 is 4. So \\boxed{4}.", ["think", "order", "answer"]),
        ("<think> \n </think> \\boxed{4}", ["think"]),
        ("</think>a<think> \\boxed{4}", ["think", "order", "answer"]),
        ("<think>a</think><think>b</think>\\boxed{4}", ["think", "order", "answer"]),
        ("<think>a</think></think>\\boxed{4}", ["think", "order", "answer"]),
        ("Sure! <think>a</think>\\boxed{4}", ["start"]),
        ("<think>a</think>\\boxed{4} or \\boxed{5}", ["one_answer"]),
        ("<think>a</think>\\boxed{4}<answer>4</answer>", ["one_answer"]),
        ("<think>a</think><answer>4</answer><answer>5</answer>", ["one_answer"]),
        ("<think>a</think>\\boxed{}", ["answer"]),
        ("<think>a</think>\\boxed{4", ["answer"]),
        ("<think>a \\boxed{4}</think> that is it", ["answer"]),
    ],
)
def test_what_is_missing_is_named(response, parts):
    assert missing(response) == parts


def test_a_box_in_an_answer_tag_is_one_answer():
    assert missing("<think>a</think><answer>\\boxed{\\boxed{4}}</answer>") == []


def test_the_kind_of_answer_can_be_asked_for():
    assert missing(GOOD, answer="box") == missing(TAGGED, answer="tag") == []
    assert missing(GOOD, answer="tag") == missing(TAGGED, answer="box") == ["answer"]
    assert missing("<think>a</think> It is four.", answer="text") == []
    assert missing("<think>a</think> ", answer="text") == ["answer"]


def test_several_tags_have_to_come_in_order():
    tags = ["plan", "think", "answer"]
    assert missing("<plan>a</plan><think>b</think><answer>4</answer>", tags=tags) == []
    assert "order" in missing("<think>b</think><plan>a</plan><answer>4</answer>", tags=tags)
    assert "order" in missing("<plan>a<think>b</think></plan><answer>4</answer>", tags=tags)
    assert missing("no tags, but \\boxed{4}", tags=[]) == []


def test_a_tag_that_the_prompt_has_opened_need_not_be_opened_again():
    assert missing("2+2 is 4</think>\\boxed{4}", opened=True) == []
    assert "think" in missing(GOOD, opened=True)


def test_text_after_the_answer_is_refused_only_when_asked():
    for ending in ("", ".", " $.", "\\]", "\n"):
        assert missing(f"<think>a</think>\\boxed{{4}}{ending}", nothing_after=True) == []
    assert missing("<think>a</think>\\boxed{4}. I hope that helps!") == []
    assert missing("<think>a</think>\\boxed{4}. I hope that helps!", nothing_after=True) == ["end"]
    assert missing(TAGGED, nothing_after=True) == []
    assert missing(f"{TAGGED} bye", nothing_after=True) == ["end"]


def test_weights_make_the_score_a_share():
    weights = {"think": 1, "answer": 3}
    assert judge(GOOD, None, info={"weights": weights}).reason is Reason.MATCH
    half = judge("<think>a</think> no box", None, info={"weights": weights})
    assert (half.score, half.reason) == (0.25, Reason.PARTIAL)
    assert judge("", None, info={"weights": weights}).score == 0.0
    assert judge("Sure! <think>a</think>\\boxed{4}", None, info={"weights": weights}).score == 1.0


@rows(
    "info",
    [
        {"tags": "think"},
        {"tags": ["<think>"]},
        {"tags": ["think", "think"]},
        {"tags": ["order"]},
        {"tags": [], "opened": True},
        {"answer": "letter"},
        {"opened": "yes"},
        {"nothing_after": 1},
        {"weights": {"end": 1}},
        {"weights": {"think": -1}},
        {"weights": {"think": 0}},
        {"weights": [1]},
    ],
)
def test_bad_options_are_no_verdict(info):
    verdict = judge(GOOD, None, info=info)
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
    assert verdict.evidence["error"]


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "{", "4", " "])))
def test_any_order_of_tags_gets_a_score_and_only_well_formed_ones_pass(pieces):
    text = "".join(pieces)
    if judge(text, "4").passed:
        assert text.strip().startswith("<think>")
        assert (text.count("<think>"), text.count("</think>")) == (1, 1)


@pytest.mark.parametrize("piece", ["<answer>", "\\boxed{", "<think>", "{", "\\boxed{4}", "<answer>4</answer>"])
def test_a_flood_of_tags_costs_one_pass(piece):
    assert judge("<think>a</think>" + piece * 100_000, None).score == 0.0
    assert judge("x" * (MAX_RESPONSE_CHARS + 1), None).reason is Reason.UNREAD


def test_it_is_a_built_in_that_travels():
    assert pickle.loads(pickle.dumps(resolve("format"))) == judge


class Words:
    """A tokenizer that knows some tags whole and puts a BOS before every text."""

    def __init__(self, *whole: str) -> None:
        self.whole = whole

    def encode(self, text: str) -> list[str]:
        tokens = ["BOS"]
        while text:
            known = next((tag for tag in self.whole if text.startswith(tag)), text[0])
            tokens.append(known)
            text = text[len(known) :]
        return tokens


def test_a_tag_of_one_token_is_told_from_one_of_many():
    report = tag_tokens(Words("<think>", "</think>"), ["<think>", "</think>", "<plan>"])
    assert report.tokens == {"<think>": 1, "</think>": 1, "<plan>": 6}
    assert report.split == ("<plan>",)
    assert report.recommended == ("<think>", "</think>")


def test_tags_that_are_one_token_are_recommended_instead():
    report = tag_tokens(Words("<reasoning>", "</reasoning>"), ["<think>", "</think>"])
    assert report.split == ("<think>", "</think>")
    assert report.recommended == ("<reasoning>", "</reasoning>")
    assert tag_tokens(Words(), ["<think>"]).recommended is None


def test_a_tag_that_melts_into_its_neighbours_is_not_whole():
    report = tag_tokens(Words("4.<", "<think>", "</think>"), ["<think>", "</think>"])
    assert report.split == ("<think>", "</think>")


def test_real_tokenizers_of_three_libraries():
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split

    plain = tokenizers.Tokenizer(WordLevel({c: n for n, c in enumerate("<>/think4.5 x\n")}, unk_token="x"))
    plain.pre_tokenizer = Split("", "isolated")
    assert tag_tokens(plain, ["<think>"]).split == ("<think>",)
    plain.add_special_tokens(["<think>", "</think>"])
    assert tag_tokens(plain, ["<think>", "</think>"]).split == ()
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=plain)
    assert tag_tokens(fast, ["<think>", "</think>", "<plan>"]).split == ("<plan>",)
