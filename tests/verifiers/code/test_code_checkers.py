"""Comparing printed output with what was expected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.output_comparison import CHUNK_CHARS, checker_of, read_spec


def accepts(spec, expected, got):
    return checker_of(spec)(expected, got) is None


@rows(
    "expected, got",
    [
        ("1 2\n3\n", "1  2 3"),
        ("YES\r\n", "YES\n"),
        ("", " \n\n"),
        ("0.5", "0.5000004"),
        ("0.1", ".1"),
        ("1e3", "1000"),
        ("2.0", "2"),
        ("-0.0", "0"),
        ("0", "-0"),
        ("7", "+7"),
        ("1e400", "1e400"),
        ("nan", "nan"),
        ("9" * 6000, "9" * 6000),
        ("1.5 x", "1.50 x"),
        ("5", "5.000"),
    ],
)
def test_tokens_accept(expected, got):
    assert accepts("tokens", expected, got)


@rows(
    "expected, got",
    [
        ("1 2 3", "1 2"),
        ("1 2", "1 2 3"),
        ("", "0"),
        ("YES", "yes"),
        ("5", "5.5"),
        ("5", "5.0000001"),
        ("05", "5.0"),
        ("12345678901234567890", "12345678901234567891"),
        ("9" * 6000, "9" * 5999 + "8"),
        ("0101", "101"),
        ("1e400", "1e401"),
        ("1.0", "nan"),
        ("1.0", "inf"),
        ("1.0", "1.0x"),
        ("1.0", "１.０"),
        ("7", "７"),
        ("0.5", "0.5001"),
        ("1000000.5", "1000001"),
        ("-1.5", "1.5"),
        ("12", "1 2"),
    ],
)
def test_tokens_reject(expected, got):
    assert not accepts("tokens", expected, got)


@pytest.mark.parametrize("spec", ["tokens", "floats", "unordered_tokens", "unordered_lines"])
def test_large_numbers_are_not_equal_because_they_are_large(spec):
    assert not accepts(spec, "1234567.89", "1234568.89")
    assert not accepts(spec, "9000001.5 9000002.5", "9000002.5 9000001.5") or spec.startswith("unordered")
    assert accepts(spec, "1234567.891", "1234567.8910001")


def test_a_prefix_of_many_lines_is_rejected():
    assert not accepts("tokens", "1\n2\n3", "1")


@rows(
    "spec, expected, got, right",
    [
        ("case_insensitive", "Yes 1.5", "YES 1.5000001", True),
        ("case_insensitive", "Yes", "No", False),
        ("floats", "3", "3.0000001", True),
        ("floats", "3", "4", False),
        ("floats", "10000000000000000000001", "10000000000000000000002", False),
        ({"type": "floats", "abs_tol": 0.1, "rel_tol": 0}, "1.0", "1.09", True),
        ({"type": "floats", "abs_tol": 0.1, "rel_tol": 0}, "100.0", "100.2", False),
        ({"type": "tokens", "abs_tol": 0, "rel_tol": 0}, "0.5", "0.50", True),
        ({"type": "tokens", "abs_tol": 0, "rel_tol": 0}, "0.5", "0.5000001", False),
        ("tokens", "0.00000050", "0.0", False),
        ("tokens", "0.0", "5e-7", False),
        ("tokens", "0.00000050", "5.0e-7", True),
        ("tokens", "0.000000", "0.0000004", True),
        ("tokens", "0.000012", "0.0000123", True),
        ("tokens", "0.0", "0.0000000001", True),
        ("tokens", "6.6e-11", "0", False),
        ("tokens", "0.333333", "0.3333333333", True),
        ("tokens", "1000000000000000123", "1e18", False),
        ({"type": "tokens", "abs_tol": 1e-6}, "0.0", "5e-7", True),
        ({"type": "tokens", "abs_tol": 1e-6}, "0", "0E-93", True),
        ({"type": "tokens", "abs_tol": 1e-6}, "0", "-1e-09", True),
        ({"type": "tokens", "abs_tol": 1e-6}, "3", "2.9999999", True),
        ({"type": "tokens", "abs_tol": 1e-6}, "3", "3.0001", False),
        ({"type": "tokens", "abs_tol": 1}, "3", "4", False),
        ({"type": "tokens", "rel_tol": 1e-6}, "1000000", "1e6", True),
        ({"type": "tokens", "rel_tol": 1e-6}, "1000000", "1000000.5", True),
        ({"type": "tokens", "rel_tol": 1e-6}, "1000000", "1000000.9", True),
        ({"type": "tokens", "rel_tol": 1e-6}, "1000000", "1000002.5", False),
        ("tokens", "0", "0E-93", False),
        ("exact", "a b\n", "a b", True),
        ("exact", "a b\r\nc", "a b\nc\n", True),
        ("exact", "a b", "a  b", False),
        ("exact", "a", "a\n\n", False),
        ("exact", "", "", True),
        ("lines", "a b  \nc\n\n", "a b\nc", True),
        ("lines", "a b\nc", "a  b\nc", False),
        ("lines", "  a", "a", False),
        ("lines", "a\n\nb", "a\nb", False),
        ("lines", "", "\n \n", True),
        ({"type": "lines", "case_sensitive": False}, "A", "a", True),
        ("unordered_lines", "1 2\n3 4\n", "3 4\n\n1  2", True),
        ("unordered_lines", "1 2\n3 4", "1 2\n1 2", False),
        ("unordered_lines", "1 2\n3 4", "1 2 3 4", False),
        ("unordered_lines", "1.0 2\n0.5 1", "0.5000001 1\n1.0000001 2", True),
        ("unordered_tokens", "3 1 2", "1\n2 3", True),
        ("unordered_tokens", "3 1 1", "1 3 3", False),
        ("unordered_tokens", "", "", True),
        ("unordered_tokens", "", "x", False),
        ({"unordered": "tokens_in_line"}, "1 2\n3 4", "2 1\n4 3", True),
        ({"unordered": "tokens_in_line"}, "1 2\n3 4", "3 4\n1 2", False),
        ({"unordered": "lines", "case_sensitive": False}, "A\nb", "B\na", True),
    ],
)
def test_kinds_and_options(spec, expected, got, right):
    assert accepts(spec, expected, got) is right


@rows(
    "spec, expected, got, reason",
    [
        ("tokens", "1 2 7", "1 2 8", "token 3: expected '7', got '8'"),
        ("tokens", "1 2", "1", "token 2: expected '2', got the end of the output"),
        ("tokens", "", "9", "token 1: expected the end of the output, got '9'"),
        ("lines", "a\nb", "a\nc", "line 2: expected 'b', got 'c'"),
        ("exact", "abc", "abd", "character 3: expected 'c', got 'd'"),
        ("unordered_tokens", "1 2", "1", "expected 2 tokens, got 1"),
        ("unordered_tokens", "1 2", "1 3", "token 2, when sorted: expected '2', got '3'"),
        ("unordered_lines", "a", "a\nb", "expected 1 lines, got more"),
    ],
)
def test_reasons_name_the_place(spec, expected, got, reason):
    assert checker_of(spec)(expected, got) == reason


def test_reasons_are_short():
    for spec in ("tokens", "lines", "exact", "unordered_tokens", "unordered_lines"):
        assert len(checker_of(spec)("x" * 10**5, "y" * 10**5)) <= 200


@pytest.mark.parametrize("unit", ["7 ", "7\n", " \n7", "12345 "])
def test_long_outputs_are_compared_across_chunks(unit):
    text = unit * (3 * CHUNK_CHARS // len(unit))
    for spec in ("tokens", "lines"):
        assert accepts(spec, text, text + " ")
        reason = checker_of(spec)(text, text.rstrip() + "\n8")
        assert "expected the end of the output, got '8'" in reason


def test_a_difference_behind_the_first_chunk_is_found_at_its_place():
    count = CHUNK_CHARS
    text = "1 " * count
    assert checker_of("tokens")(text + "2", text + " \n 3") == f"token {count + 1}: expected '2', got '3'"


def test_much_more_output_than_expected_is_not_taken_apart():
    flood = "1 " * 10**6
    assert not accepts("unordered_tokens", "1 2", flood)
    assert not accepts("unordered_lines", "1 2", flood)
    assert not accepts("unordered_lines", "1 2", flood.replace(" ", "\n"))


@rows(
    "spec, text",
    [
        ("fuzzy", "checker must be one of tokens, floats"),
        (5, "checker must be one of"),
        ({}, "checker must be one of"),
        ({"type": ["tokens"]}, "checker must be one of"),
        ({"type": "tokens", "abs_tol": -1}, "checker.abs_tol must be a number from 0"),
        ({"type": "tokens", "abs_tol": float("nan")}, "checker.abs_tol must be a number from 0"),
        ({"type": "tokens", "case_sensitive": 1}, "checker.case_sensitive must be true or false"),
        ({"type": "tokens", "unordered": "words"}, "checker.unordered must be one of lines, tokens, tokens_in_line"),
        ({"type": "exact", "abs_tol": 1}, "checker.abs_tol is not an option of exact"),
        ({"type": "program"}, "checker.code is missing"),
        ({"type": "program", "code": ""}, "checker.code must be a program"),
    ],
)
def test_a_bad_spec_is_told(spec, text):
    with pytest.raises(BadSuite) as caught:
        read_spec(spec, "checker")
    assert text in str(caught.value)


def test_a_program_is_validated_here_and_not_run():
    read_spec({"type": "program", "code": "print(1)", "language": "cpp"}, "checker")
    with pytest.raises(BadSuite):
        checker_of({"type": "program", "code": "print(1)"})


OUTPUT = st.text(st.sampled_from("01 \n\r.-+eEaA\t\u00a0"), max_size=40)
KINDS = ["tokens", "floats", "lines", "exact", "case_insensitive", "unordered_lines", "unordered_tokens"]
SPECS = st.sampled_from([*KINDS, {"unordered": "tokens_in_line"}])


@given(SPECS, OUTPUT, OUTPUT)
def test_any_text_is_accepted_or_explained(spec, expected, got):
    checker = checker_of(spec)
    assert checker(expected, expected) is None
    reason = checker(expected, got)
    assert reason is None or reason.strip()


@given(st.lists(st.sampled_from(["0", "1", "10", "-1", "a", "0.5"]), max_size=12), st.randoms(use_true_random=False))
def test_unordered_tokens_accept_every_order_and_nothing_else(tokens, random):
    shuffled = tokens[:]
    random.shuffle(shuffled)
    assert accepts("unordered_tokens", " ".join(tokens), "\n".join(shuffled))
    assert not accepts("unordered_tokens", " ".join(tokens), " ".join([*shuffled, "b"]))


@given(st.integers(), st.integers())
def test_integers_are_equal_only_to_themselves(expected, got):
    assert accepts("tokens", str(expected), str(got)) is (expected == got)
