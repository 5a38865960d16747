"""One suite of calls judges functions in every language that has a driver."""

from typing import Any

import pytest
from driven_programs import (
    DESCRIBED,
    INVERT,
    INVERTED,
    MIXED_TYPES,
    REVERSE,
    REVERSED,
    SOLUTIONS,
    SORT,
    SORTED,
    TWO_SUM,
)
from sandboxes import box_of, fenced
from tables import is_full_run

from truegold.verifiers import Reason, Verdict
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.drivers import Signature, compose_stated, signature_of_comment, signature_of_stub
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import read_suite
from truegold.verifiers.code.value_comparison import to_nodes, to_values
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.sandbox.local import installed_languages


def judge(language: str, program: str, tests: object, tier: Tier = Tier.FULL, **info: object) -> Verdict:
    """Return the verdict on a program, or skip where it cannot be run here."""
    box_of(tier)
    if language not in installed_languages():
        pytest.skip(f"there is no toolchain for {language} on this machine")
    return CodeVerifier(tier=tier)(fenced(program, language), info={"tests": tests, "language": language, **info})


@pytest.mark.parametrize("language", SOLUTIONS)
def test_the_same_suite_judges_every_language(language: str) -> None:
    right = judge(language, SOLUTIONS[language], TWO_SUM)
    assert (right.score, right.reason) == (1.0, Reason.MATCH), right
    wrong = judge(language, SOLUTIONS[language].replace("target -", "1 + target -"), TWO_SUM)
    assert (wrong.score, wrong.reason) == (0.0, Reason.MISMATCH), wrong
    assert wrong.evidence["failed"]["input"] == "[2, 7, 11, 15], 9"


@pytest.mark.long_table
@pytest.mark.parametrize("language", ["cpp", "javascript"])
def test_calls_are_made_in_a_container_as_well(language: str) -> None:
    assert judge(language, SOLUTIONS[language], TWO_SUM, Tier.CONTAINER).score == 1.0


@pytest.mark.long_table
@pytest.mark.parametrize("language", SOLUTIONS)
@pytest.mark.parametrize(
    ("tests", "programs", "fault"),
    [
        (REVERSE, REVERSED, ("before = None", "before = head")),
        (INVERT, INVERTED, ("return root", "return None")),
        (SORT, SORTED, ("sort", "reverse")),
    ],
    ids=["linked list", "tree", "in place"],
)
def test_nodes_and_changed_arguments(
    language: str, tests: dict[str, Any], programs: dict[str, str], fault: tuple[str, str]
) -> None:
    verdict = judge(language, programs[language], tests)
    assert (verdict.score, verdict.reason) == (1.0, Reason.MATCH), verdict
    shifted = {**tests, "cases": [{**case, "expected": [*case["expected"], 5]} for case in tests["cases"]]}
    assert judge(language, programs[language], shifted).score == 0.0


@pytest.mark.long_table
@pytest.mark.parametrize("language", DESCRIBED)
def test_texts_letters_and_nested_lists_arrive_as_they_are(language: str) -> None:
    verdict = judge(language, DESCRIBED[language], MIXED_TYPES)
    assert (verdict.score, verdict.reason) == (1.0, Reason.MATCH), verdict


SQUARE = {"type": "calls", "entry_point": "square", "cases": [{"args": [n], "expected": n * n} for n in (3, 4)]}


@pytest.mark.parametrize(
    ("language", "program", "error"),
    [
        ("javascript", "function square(n) { throw new Error('no'); }", "it raised Error: no"),
        ("javascript", "function square(n) { process.exit(0); }", "ended"),
        ("javascript", "process.exit(0);", "ended"),
        ("javascript", "function square(n) { process.abort(); }", "signal"),
        ("javascript", "const cube = n => n;", "the program has no 'square'"),
        ("javascript", "function square(n) { return n => n; }", "a result of type function is not supported"),
        ("javascript", "const fs = require('fs'); fs.writeSync(1, '{\"loaded\":true}\\n{\"r\":0}\\n{\"r\":0}\\n');"
         " process.exit(0);", "expected 9, got 0"),
        ("javascript", "const square = n => ({ valueOf: () => n * n, toJSON: () => n * n });", "is not supported"),
        ("javascript", "JSON.stringify = () => '9'; const square = n => 1;", "expected 9, got 1"),
        ("javascript", "function square(n) { while (true); }", "CPU time"),
    ],
)  # fmt: skip
def test_what_fails_in_javascript_is_refused(language: str, program: str, error: str) -> None:
    verdict = judge(language, program, SQUARE, limits={"cpu_s": 1})
    assert verdict.score == 0.0, verdict
    assert error in str(verdict.evidence["failed"]), verdict


CPP = "int square(int n) {{ {body} }}"


@pytest.mark.long_table
@pytest.mark.parametrize(
    ("program", "score", "error"),
    [
        (CPP.format(body="return n * n;"), 1.0, ""),
        ("struct Square { int square(int n) { return n * n; } }; long square(long n) { return n * n; }", 1.0, ""),
        ("long square(long n) { return n * n; }\nlong square(long n, long m) { return n * m; }", 1.0, ""),
        (CPP.format(body="return n * n;") + "\nint main() { cout << square(2); }", 1.0, ""),
        ("#include <iostream>\nint square(int n) { std::cout << n; return n * n; }", 1.0, ""),
        ("class Solution { public: int square(int n) const noexcept { return n * n; } };", 1.0, ""),
        (CPP.format(body='throw runtime_error("no");'), 0.0, "it raised exception: no"),
        (CPP.format(body="return *(volatile int*)0;"), 0.0, "signal 11"),
        (CPP.format(body="exit(0);"), 0.0, "ended"),
        (CPP.format(body='puts("{\\"r\\":9}"); fflush(stdout); return 0;'), 0.0, "expected 9, got 0"),
        ("string square(string n) { return n; }", 0.0, "the argument is not a text"),
        ("int square(int n, int m) { return n; }", 0.0, "it takes 2 arguments, but the tests pass another number"),
        ("int cube(int n) { return n; }", 0.0, "the program has no 'square'"),
        ("int square(int n) { return nothing; }", 0.0, "exit status 1"),
        (CPP.format(body='throw runtime_error("TRUEGOLD_NO_FORM");'), 0.0, "it raised exception"),
        ("enum Kind { FOUR = 9, FIVE = 16 }; Kind square(int n) { return n == 3 ? FOUR : FIVE; }", 1.0, ""),
        ("enum class Kind : char { A = 9 }; Kind square(Kind n) { return Kind::A; }", 0.0, "expected 16, got 9"),
        (
            "struct Odd { int n; };\nOdd square(Odd n) { return n; }",
            0.0,
            "a type of 'square' cannot be written as JSON",
        ),
        ("int square(int* n) { return *n; }", 0.0, "a type of 'square' cannot be written as JSON"),
    ],
)
def test_what_fails_in_cpp_is_refused(program: str, score: float, error: str) -> None:
    verdict = judge("cpp", program, SQUARE)
    assert verdict.score == score, verdict
    assert error in str(verdict.evidence), verdict


def test_values_of_several_types_are_no_verdict_on_a_typed_program() -> None:
    tests = {**SQUARE, "cases": [{"args": [n], "expected": n} for n in (1, 2)] + [{"args": [3], "expected": "odd"}]}
    verdict = judge("java", "class Solution { int square(int n) { return n; } }", tests)
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR), verdict
    assert judge("javascript", "const square = n => n < 3 ? n : 'odd';", tests).score == 1.0


@pytest.mark.parametrize(
    ("language", "program"),
    [
        ("javascript", "const echo = (text, rest) => text"),
        ("java", "class S { static String echo(String text, List<String> rest) { return text; } }"),
        ("cpp", "string echo(string text, vector<string> rest) { return text; }"),
    ],
)
def test_texts_of_all_signs_arrive_as_they_are(language: str, program: str) -> None:
    texts = ["", " ", "a+b %41[],{}", "\\n\n\t\"'", "é𝄞\0", "dict", "float:inf", "null"]
    tests = {
        "type": "calls",
        "entry_point": "echo",
        "cases": [{"args": [each, texts], "expected": each} for each in texts],
    }
    assert judge(language, program, tests).score == 1.0


def test_named_arguments_stand_in_their_order() -> None:
    cases = [{"args": [], "kwargs": {"nums": [2, 7, 11, 15], "target": 9}, "expected": [0, 1]}]
    assert judge("javascript", SOLUTIONS["javascript"], {**TWO_SUM, "cases": cases}).score == 1.0


def test_a_python_program_that_does_not_change_its_argument_fails_an_in_place_suite() -> None:
    assert (
        judge("python", "class Solution:\n    def sortColors(self, nums):\n        return sorted(nums)", SORT).score
        == 0.0
    )


@pytest.mark.parametrize(
    ("stub", "signature"),
    [
        (
            "class Solution:\n    def f(self, head: Optional[ListNode], k: int) -> None:",
            Signature(("ListNode", ""), "void"),
        ),
        ("def f(lists: List[Optional['ListNode']]) -> TreeNode: ...", Signature(("ListNode[]",), "TreeNode")),
        ("def f(n):\n    '''Text.'''\n", Signature()),
        ("def g(n): ...", None),
        ("no python", None),
    ],
)
def test_types_are_read_off_starter_code(stub: str, signature: Signature | None) -> None:
    assert signature_of_stub(stub, "f") == signature


def test_types_are_read_off_comments_of_javascript() -> None:
    source = "/**\n * @param {ListNode[]} lists\n * @param {number} k\n * @return {void}\n */\nvar f = () => {};"
    assert signature_of_comment(source) == Signature(("ListNode[]", ""), "void")


@pytest.mark.parametrize("values", [[], [1], [1, 2, 3]])
def test_linked_lists_come_back_as_their_values(values: list[int]) -> None:
    assert (to_values(to_nodes(values, "ListNode")) or []) == values


@pytest.mark.parametrize("values", [[], [1], [1, None, 2], [5, 4, 7, 3, None, 2, None, -1, None, 9]])
def test_trees_come_back_as_their_values(values: list[int | None]) -> None:
    assert (to_values(to_nodes(values, "TreeNode")) or []) == values


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"in_place": 3}, "tests.in_place must be true or the position of an argument, from 0 to 1"),
        ({"signature": 5}, "tests.signature must be a Python definition or an object"),
        ({"signature": "def other(): ..."}, "tests.signature must define twoSum"),
        ({"signature": {"params": [3]}}, "tests.signature.params must be a list of types"),
    ],
)
def test_a_signature_that_cannot_be_read_is_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSuite) as caught:
        read_suite({"tests": {**TWO_SUM, **change}})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('"strings"', False),
        ('"math"', True),
        ('"math/rand/v2"', True),
        ('m "strings"', None),
        ('"unicode/utf8"', False),
    ],
)
def test_go_forgives_imports_of_the_prompt_that_a_solution_does_not_use(line: str, kept: bool | None) -> None:
    body = "// strings.Fields would do\nfunc f(n int) int { return int(math.Abs(float64(n))) + rand.IntN(1) }\n"
    program = compose_stated("go", f"package main\nimport (\n    {line}\n)\n", body, "")
    assert (f"    {line}\n" in program) is (kept is not False)
    assert (f"_ {line}" in program) is (kept is False)


def test_a_name_in_no_way_of_writing_names_is_the_one_of_the_same_letters() -> None:
    program = "function minsubarraysum(a) { return Math.min(...a); }\nfunction other(a) { return 0; }"
    tests = {"type": "calls", "entry_point": "minSubArraySum", "cases": [{"args": [[3, -2]], "expected": -2}]}
    assert judge("javascript", program, tests).score == 1.0


def test_imports_of_go_that_only_a_type_uses_stay_and_other_lines_are_left_alone() -> None:
    words = 'var words = []string{\n"one",\n"two",\n}'
    body = f"type Counter struct {{ mu sync.Mutex }}\n{words}\nfunc f() int {{ return 1 }}"
    program = compose_stated("go", 'package main\nimport "sync"\nimport "os"\n', body, "")
    assert 'import "sync"' in program
    assert 'import _ "os"' in program
    assert words in program


ONE_LETTER = [
    "class Solution {\npublic:\n    int g(string s) { return s.size(); }\n};",
    "class Solution { public: int g(string s) { return s.size(); } };",
    "struct Solution { int g(const string& s) const { return s.size(); } };",
    "class Solution {\npublic:\n    static int g(string s) { return s.size(); }\n};",
    "class Solution {\npublic:\n    int g(string s, int t) { return t; }\n    int g(string s) { return s.size(); }\n};",
    "class Solution {\npublic:\n    std::size_t g(std::string s) { return s.size(); }\n};",
    "class Solution {\n    int h(int x) { return x; }\npublic:\n    virtual int g(string s) { return s.size(); }\n};",
    "int g(string s) { return s.size(); }",
    "inline int g(string s) { return s.size(); }\nint g(int x) { return x; }\nint g(string s, int x) { return x; }",
    "class Solution {\npublic:\n    int g(char s) { return s == 'a'; }\n};",
]


@pytest.mark.parametrize("program", ONE_LETTER if is_full_run() else ONE_LETTER[4:5])
def test_texts_of_one_letter_are_no_overloads(program: str) -> None:
    tests = {"type": "calls", "entry_point": "g", "cases": [{"args": ["a"], "expected": 1}]}
    assert judge("cpp", program, tests).score == 1.0
    assert judge("cpp", program.replace("s.size()", "9").replace("== 'a'", "!= 'a'"), tests).score == 0.0
