"""Changes of tests that a reviewer writes: cases that are removed, replaced and added, and lines that mean nothing."""

from __future__ import annotations

from typing import Any

import pytest

from truegold.verifiers.audit.suites import change_cases, forms_of_change, with_numbers
from truegold.verifiers.code import BadSuite, CodeVerifier

ASSERTS = {"type": "asserts", "code": "import math\nassert f(1) == 1\nassert f(2) == 5  # odd\nassert f(3) == 3\n"}
HUMANEVAL = {
    "type": "asserts",
    "entry_point": "f",
    "code": "def check(candidate):\n    assert candidate(1) == 1\n    assert candidate(2) == 5\n",
}
UNITTEST = {
    "type": "unittest",
    "code": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        x = f(1)\n"
    "        self.assertEqual(x, 1)\n\n    def test_b(self):\n        with self.assertRaises(TypeError):\n"
    "            f('a', 'b')\n        for n in (2, 3):\n            self.assertEqual(f(n), 5)\n",
}
ONE_LINE = {"type": "asserts", "code": "x = 1; assert f(x) == 1; assert f(2) == 5\nassert f('é') == 'é'\n"}
CALLS = {"type": "calls", "entry_point": "f", "cases": [{"args": [1], "expected": 1}, {"args": [2], "expected": 5}]}
STDIO = {"tests": {"type": "stdio", "cases": [{"input": "1", "output": "1"}, {"input": "2", "output": "5"}]}}
LISTED = {"tests": ["assert f(1) == 1", "assert f(2) == 5"]}
BROKEN = {"type": "asserts", "code": "assert f(1 == 1"}
INSERTED = {"type": "inserted", "language": "cpp", "code": "#<INSERT>\nint main() { return f(1) != 1; }"}
DOCTEST = {"type": "asserts", "code": ">>> f(1)\n1\n"}

IDENTITY = "```python\ndef f(x):\n    return x + 0 if type(x) is not str else x\n```"


def content_of(info: dict[str, Any]) -> Any:
    """Return the code or the cases of tests."""
    tests = info.get("tests", info)
    return tests.get("code") or tests["cases"]


@pytest.mark.parametrize(
    ("info", "lines", "left", "dropped"),
    [
        (ASSERTS, "drop 1", "import math\nassert f(1) == 1\nassert f(3) == 3\n", ["1: assert f(2) == 5"]),
        (ASSERTS, "drop 1, 2", "import math\nassert f(1) == 1\n", ["1: assert f(2) == 5", "2: assert f(3) == 3"]),
        (ASSERTS, "Drop case 0\ndrop 1", "import math\nassert f(3) == 3\n", None),
        (ASSERTS, "drop all\nassert f(2) == 2", "assert f(2) == 2\n", ["all"]),
        (HUMANEVAL, "drop 1", "def check(candidate):\n    assert candidate(1) == 1\n", None),
        (HUMANEVAL, "drop all\nassert f(2) == 2", "assert f(2) == 2\n", None),
        (ONE_LINE, "drop 0", "x = 1; pass; assert f(2) == 5\nassert f('é') == 'é'\n", ["0: assert f(x) == 1"]),
        (ONE_LINE, "drop 2, 1", "x = 1; assert f(x) == 1; pass\n", None),
        (CALLS, "drop 1", CALLS["cases"][:1], ['1: {"args": [2], "expected": 5}']),
        (CALLS, 'drop all\n{"args": [2], "expected": 2}', [{"args": [2], "expected": 2}], ["all"]),
        (
            STDIO,
            'drop 0\n{"input": "3", "output": "3"}',
            [{"input": "2", "output": "5"}, {"input": "3", "output": "3"}],
            None,
        ),
        (LISTED, "drop 1\n\nassert f(2) == 2\n", "assert f(1) == 1\nassert f(2) == 2\n", None),
        (BROKEN, "drop all\nassert f(1) == 1", "assert f(1) == 1\n", ["all"]),
        (INSERTED, "drop all\n#<INSERT>\nint main() { return 0; }", "#<INSERT>\nint main() { return 0; }\n", None),
        (DOCTEST, ">>> f(2)\n2", ">>> f(1)\n1\n>>> f(2)\n2\n", []),
        (ASSERTS, "import cmath\nassert f(4) == 4", ASSERTS["code"] + "import cmath\nassert f(4) == 4\n", []),
    ],
)
def test_cases_are_removed_by_number_replaced_and_added(
    info: dict[str, Any], lines: str, left: Any, dropped: list[str] | None
) -> None:
    changed = change_cases(info, lines.split("\n"))
    assert content_of(changed.info) == left
    assert dropped in (None, changed.dropped)


def test_a_test_function_or_class_goes_with_its_last_assertion() -> None:
    assert "test_a" not in content_of(change_cases(UNITTEST, ["drop 0"]).info)
    only_a = content_of(change_cases(UNITTEST, ["drop 1, 2"]).info)
    assert "test_a" in only_a and "test_b" not in only_a
    without = content_of(change_cases(UNITTEST, ["drop 2"]).info)
    assert "assertRaises" in without and "for n" not in without
    assert content_of(change_cases(UNITTEST, ["drop 0, 1, 2", "assert f(3) == 3"]).info) == (
        "import unittest\nassert f(3) == 3\n"
    )


@pytest.mark.parametrize(
    ("info", "right"),
    [(ASSERTS, 1), (HUMANEVAL, 1), (UNITTEST, 2), (CALLS, 1), (STDIO, 1), (LISTED, 1)],
    ids=["asserts", "humaneval", "unittest", "calls", "stdio", "listed"],
)
def test_a_right_program_passes_once_the_wrong_case_is_gone(info: dict[str, Any], right: int) -> None:
    program = "```python\nprint(input())\n```" if info is STDIO else IDENTITY
    assert CodeVerifier()(program, info=info).score == 0
    assert CodeVerifier()(program, info=change_cases(info, [f"drop {right}"]).info).score == 1


def test_numbers_are_those_of_the_verdicts() -> None:
    for info in (ASSERTS, HUMANEVAL, CALLS, STDIO, LISTED):
        program = "```python\nprint(input())\n```" if info is STDIO else IDENTITY
        failed = CodeVerifier()(program, info=info).evidence["failed"]
        assert "5" in change_cases(info, [f"drop {failed['case']}"]).dropped[0]
    assert with_numbers("import math\nassert f(1) == [\n    1]\nassert f(2) == 2") == (
        "import math\nassert f(1) == [  # case 0\n    1]\nassert f(2) == 2  # case 1"
    )
    assert with_numbers("assert f(1 == 1") == "assert f(1 == 1"


@pytest.mark.parametrize("info", [ASSERTS, HUMANEVAL, UNITTEST, CALLS, STDIO, LISTED, BROKEN, INSERTED])
@pytest.mark.parametrize(
    "lines",
    [
        *("hello", "18", "f(2) == 3", "f(2)", "x = 3", "assert True", "(1, 2)", "assert f(2 == 2", "", " \n ", "drop"),
        *("drop it", "drop -1", "drop 99", "drop all", "drop 1 and 2", "assert f(2) == 2\nhello", "[1]", '{"a": 1}'),
        *("fix: 18", "yes", '"18"', "drop all\nhello"),
    ],
)
def test_a_line_that_is_no_change_is_refused(info: dict[str, Any], lines: str) -> None:
    with pytest.raises(BadSuite):
        change_cases(info, lines.split("\n"))


@pytest.mark.parametrize(
    ("info", "line"),
    [
        (ASSERTS, f"drop {'9' * 5000}"),
        (CALLS, f"drop {'9' * 5000}"),
        (CALLS, "[" * 100_000),
        (CALLS, '{"args": [1], "expected": NaN}'),
        (CALLS, '{"args": [1], "expected": 1e999}'),
        (CALLS, '{"args": ["\\ud800"], "expected": 1}'),
    ],
)
def test_a_case_that_a_row_cannot_hold_is_refused(info: dict[str, Any], line: str) -> None:
    with pytest.raises(BadSuite):
        change_cases(info, [line])


def test_a_long_integer_in_a_case_is_kept() -> None:
    changed = change_cases(CALLS, ["drop 0, 1", f'{{"args": [{10**30}], "expected": {10**30}}}'])
    assert CodeVerifier()(IDENTITY, info=changed.info).score == 1


@pytest.mark.parametrize(
    "code",
    [
        "def check(f):\n    assert f(1) == 1\ncheck(f)\nassert f(2) == 2\n",
        "for x in [1]:\n    y = f(x)\n    assert y\nassert y == 1\n",
        "r = []\nfor x in [1]:\n    r.append(f(x))\n    assert r\nassert r == [1]\n",
        "t = 0\nfor x in [1]:\n    t += f(x)\n    assert t\nassert t == 1\n",
    ],
)
def test_lines_on_which_others_depend_are_not_removed(code: str) -> None:
    with pytest.raises(BadSuite, match="depends: use drop all"):
        change_cases({"type": "asserts", "code": code}, ["drop 0"])


def test_a_loop_goes_if_another_one_has_its_names() -> None:
    loop = "for x in [1]:\n    y = f(x)\n    assert y\n"
    assert content_of(change_cases({"type": "asserts", "code": 2 * loop}, ["drop 0"]).info) == loop


def test_a_long_chain_of_conditions_is_read() -> None:
    code = "if x == 0:\n    assert f(0) == 0\n" + "".join(
        f"elif x == {n}:\n    assert f({n})\n" for n in range(1, 1500)
    )
    assert with_numbers(code).endswith("# case 1499")
    assert change_cases({"type": "asserts", "code": code}, ["drop 1499"]).dropped == ["1499: assert f(1499)"]


def test_the_hint_has_a_case_in_the_form_of_the_tests() -> None:
    for info in (ASSERTS, CALLS, STDIO, {"tests": 3}):
        case, _, rest = forms_of_change(info).partition(" adds a case")
        assert "drop all" in rest
        assert info == {"tests": 3} or change_cases(info, [case]).added == [case]
