"""Every command of the grammar with missing, empty, doubled and nested arguments: no text may raise, on either side.

A verdict that hides an exception has the reason `verifier_error`, so that counts as raising.
"""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples
from tables import rows

from truegold.verifiers import MathVerifier, Reason, Verdict, equivalent
from truegold.verifiers.math import vocabulary

COMMANDS = sorted(vocabulary.COMMANDS | set(vocabulary.COMMAND_TOKENS))
ENVIRONMENTS = sorted(vocabulary.MATRIX_ENVIRONMENTS | vocabulary.LINE_ENVIRONMENTS)
ARGUMENTS = (
    "", "{}", "{ }", "{@}", " @", "[@]", "[]", "{@}{@}", "{@}{@}{@}", "_{@}", "^{@}", "_", "^", "_{@}^{@}", "^{}",
    "(@)", "(@,@)", "()", "[@]{@}", "{@,@}", "_@", "\\{@\\}", "\\{\\}", "^@_@",
)  # fmt: skip
LEAVES = (
    "1", "2", "-3", "x", "n", "0", "\\infty", "0.5", "3.14", "1e5", "1e3000", "1e-2000", "\\pi", "2^{19000}", "i",
    "10^{10^{10}}", "101_2", "4:30", "5\\%", "cm", "\\text{cm}", "1/0", "", "k", "\\frac12", "999999999999", "A", "yes",
    "\\emptyset", "\\mathbb{R}", "4:30 pm", "30^\\circ", "\\pm 2", "2:3", "\\$5", "\\sqrt{2}",
)  # fmt: skip
CONTAINERS = (
    "@", "@, @", "(@, @)", "[@, @)", "\\{@, @\\}", "(@,@]", "@=@", "@<@", "x \\in @", "@\\cup @", "@ \\setminus @",
    "\\begin{pmatrix}@ & @\\\\ @ & @\\end{pmatrix}", "\\begin{cases}@\\\\@\\end{cases}", "|@|", "\\{x: @\\}", "@:@",
    "\\{@ | @\\}", "f(@)=@", "@ \\text{ or } @", "@; @", "@+@", "@@", "@^{@}", "@ cm", "\\$@", "@\\%", "@!", "(@)",
    "\\boxed{@}", "@ for all @", "x=@, y=@", "\\lfloor @\\rfloor", "@'", "@ \\text{ cm}^@", "\\left(@\\right]", "@_@",
    "@ \\approx @", "the answer is @", "@ million", "\\begin{array}{cc}@&@\\end{array}", "\\sqrt[@]{@}",
    "@ (@ \\in \\mathbb{Z})", "@ \\pmod{@}", "@ \\choose @", "{@ \\over @}", "{@ \\choose @}^@",
)  # fmt: skip


def filled(template: str, draw: st.DrawFn, part: st.SearchStrategy[str]) -> str:
    """Return the template with a part for each mark."""
    return re.sub("@", lambda _: draw(part), template)


@st.composite
def commands(draw: st.DrawFn, part: st.SearchStrategy[str]) -> str:
    """Return a command or an environment with any arguments, or with none."""
    if draw(st.integers(0, 7)) == 0:
        name = draw(st.sampled_from(ENVIRONMENTS))
        inside = filled(draw(st.sampled_from(["", "@", "@&@", "@\\\\@", "&", "\\\\", "{c}@"])), draw, part)
        return f"\\begin{{{name}}}{inside}\\end{{{name}}}"
    command = "\\" + draw(st.sampled_from(COMMANDS)) + draw(st.sampled_from(["", " "]))
    return command + filled(draw(st.sampled_from(ARGUMENTS)), draw, part)


@st.composite
def contained(draw: st.DrawFn, part: st.SearchStrategy[str]) -> str:
    """Return a list, a set, an interval, a matrix or the like."""
    return filled(draw(st.sampled_from(CONTAINERS)), draw, part)


leaves = st.sampled_from(LEAVES)
texts = st.recursive(leaves, lambda part: commands(part) | contained(part), max_leaves=6)


def assert_is_verdict(verdict: Verdict) -> None:
    """Check that a verdict is one, and that nothing was raised on the way to it."""
    assert verdict.score in (None, 0.0, 1.0)
    assert verdict.reason is not Reason.VERIFIER_ERROR, verdict.evidence
    json.dumps(dict(verdict.evidence), allow_nan=False)


@settings(max_examples=examples(600), deadline=None)
@given(texts, texts)
def test_no_arguments_of_a_command_raise(gold: str, answer: str) -> None:
    for left, right in ((gold, answer), (answer, gold), (gold, f"{gold}+0"), (gold, f" {gold} .")):
        assert_is_verdict(equivalent(right, gold=left))
    assert_is_verdict(MathVerifier()(f"So it is $\\boxed{{{answer}}}$.", gold))


@rows("command", COMMANDS, long=True)
def test_a_command_with_too_few_or_too_many_arguments_is_no_crash(command: str) -> None:
    for argument in ARGUMENTS:
        text = f"\\{command}" + argument.replace("@", "2")
        for piece in (text, f"{{{text}}}^2", f"\\{{{text}, 1\\}}", f"[1, {text})", f"3 {text} 2", f"{{4 {text}}}"):
            assert_is_verdict(equivalent("36", gold=piece))
            assert_is_verdict(equivalent(piece, gold="36"))


EXACT = ("\\frac{@}{@}", "\\dfrac@{@}", "\\sqrt{@}", "\\sqrt[3]{@}", "\\binom{@}{@}", "@+@", "(@)(@)", "(@)-(@)",
         "(@)^{@}", "{@ \\choose @}", "{@ \\over @}", "\\gcd(@,@)", "\\left|@\\right|", "\\frac{@}{}", "\\sqrt{}",
         "(@)!")  # fmt: skip


@st.composite
def exact_parts(draw: st.DrawFn, part: st.SearchStrategy[str]) -> str:
    """Return an expression without units, decimals, labels or percent signs, where gold's form decides nothing."""
    return filled(draw(st.sampled_from(EXACT)), draw, part)


exact_texts = st.recursive(st.sampled_from(["1", "2", "3", "4", "x", "\\pi"]), exact_parts, max_leaves=5)
shapes = st.sampled_from(["@", "@", "(@, 1)", "\\{@, 7\\}", "[0, @]", "\\begin{pmatrix} @ & 1 \\end{pmatrix}"])


@settings(max_examples=examples(400), deadline=None)
@given(exact_texts, exact_texts, shapes)
def test_exact_answers_have_no_direction(left: str, right: str, shape: str) -> None:
    """Of an unreadable side, gold gives no score and an answer earns 0, so only what is paid is compared."""
    left, right = shape.replace("@", left), shape.replace("@", right)
    assert (equivalent(right, gold=left).score == 1.0) == (equivalent(left, gold=right).score == 1.0)


@rows("text, value", [
        ("{4 \\choose 2}^2", "36"), ("0", "1 \\choose 1e3000"), ("4 \\choose 2", "6"),
        ("{n \\choose 2}", "\\frac{n(n-1)}{2}"),
        ("5 choose 2", "10"),
        ("{3 \\over 4}", "0.75"), ("{1+2 \\over 4}", "0.75"), ("\\left({5 \\choose 2}\\right)", "10"),
        ("2{6 \\choose 3}", "40"),
    ])  # fmt: skip
def test_infix_commands_take_their_whole_group(text: str, value: str) -> None:
    assert equivalent(value, gold=text).score == equivalent(text, gold=value).score == 1.0


@pytest.mark.parametrize("text", ["\\sin(1,2)", "\\gcd()", "binom(5)", "abs(1,2)", "\\log_2(3,4,5)", "exp(1,2)"])
def test_a_function_of_too_many_or_too_few_arguments_is_unreadable(text: str) -> None:
    assert equivalent(text, gold="1").reason in (Reason.UNREAD, Reason.MISMATCH)
    assert equivalent("1", gold=text).score is None


ENORMOUS = ["\\lfloor 10^{10^{10}} \\rfloor", "\\lfloor 2^{29000}\\rfloor", "\\lceil 9^{9^9}\\rceil"]


@pytest.mark.parametrize("text", ENORMOUS)
def test_the_whole_part_of_an_enormous_number_is_a_limit(text: str) -> None:
    assert equivalent(text, gold="5").score == 0.0
    assert_is_verdict(equivalent("5", gold=text))
