"""Tests in other languages that state values: right programs are paid, and programs that lie to the tests are not."""

import tomllib
from pathlib import Path

import pytest
from sandboxes import box_of
from tables import crossed, is_full_run, rows

from truegold.verifiers.code.checks.foreign_assertions import read_assertions, uncalled_test
from truegold.verifiers.code.checks.foreign_values import HashedList, NoLiteral, agree, literal, read_printed
from truegold.verifiers.code.verifier import CodeVerifier
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.sandbox.local import installed_languages
from truegold.verifiers.verdict import Verdict

PROGRAMS = tomllib.loads(Path(__file__).with_name("stated_programs.toml").read_text())
TESTS, RIGHT, HOSTILE = PROGRAMS["tests"], PROGRAMS["right"], PROGRAMS["hostile"]
IMPORTS, LACKING, UNREAD = PROGRAMS["imports"], PROGRAMS["lacking"], PROGRAMS["unread"]["texts"]
LITERALS = [
    ("vec![1, 2 * 3]", "rust", [1, 6]),
    ('vec!["a".to_string(), String::from("b")]', "rust", ["a", "b"]),
    ("Some(-1)", "rust", -1),
    ("Vec::<String>::new()", "rust", []),
    ('Err(ParseError::Bad("x".to_string()))', "rust", ["Err", ["Bad", "x"]]),
    ("Point { x: 1, y: -2 }", "rust", ["Point", {"x": 1, "y": -2}]),
    ("Some(Kind::A)", "rust", ["A"]),
    ('new ArrayList<>(Arrays.asList("a"))', "java", ["a"]),
    ("new HashMap(){{put(5, 2);put(6, 2);}}", "java", {5: 2, 6: 2}),
    ("new int[]{1, 2}", "java", [1, 2]),
    ('std::map<string, int>{{"a", 1}}', "cpp", {"a": 1}),
    ('(std::vector<std::string>({(std::string)"()", (std::string)"(("}))', "cpp", ["()", "(("]),
    ("{{1, 2}, {}}", "cpp", [[1, 2], []]),
    ("[]int{1, -2}", "go", [1, -2]),
    ('map[string]int{"a": 1}', "go", {"a": 1}),
    ('[][]string{{"a"}, {}}', "go", [["a"], []]),
    ('{a: 1, "b": [true, null]}', "javascript", {"a": 1, "b": [True, None]}),
    ("{5 => 2, 'x' => undef}", "perl", {5: 2, "x": None}),
]


def judge(name: str, program: str) -> Verdict:
    return judge_code(TESTS[name]["language"], TESTS[name]["code"], program)


def judge_code(language: str, code: str, program: str) -> Verdict:
    box_of(Tier.FULL)
    if language not in installed_languages():
        pytest.skip(f"there is no toolchain for {language} on this machine")
    info = {"tests": {"type": "inserted", "code": code}, "language": language}
    return CodeVerifier()(f"~~~~{language}\n{program}\n~~~~", info=info)


@rows("name", TESTS)
def test_a_right_program_is_judged_by_the_values_that_it_states(name: str) -> None:
    verdict = judge(name, RIGHT[TESTS[name]["language"]])
    assert verdict.score == 1.0, verdict
    assert (verdict.evidence["method"], verdict.evidence["isolation"]) == ("lowered", "apart")


def attacks() -> list[tuple[str, str]]:
    """Return the hostile programs with the tests of their language; in `make test` a third of those to be compiled."""
    named = {language: [name for name in TESTS if TESTS[name]["language"] == language] for language in HOSTILE}
    pairs = {language: crossed(named[language], programs) for language, programs in HOSTILE.items()}
    interpreted = {"javascript", "perl"}
    return [
        pair
        for language, found in pairs.items()
        for pair in (found if is_full_run() or language in interpreted else found[::3])
    ]


@rows("name, program", attacks())
def test_a_program_that_deceives_its_tests_is_not_paid(name: str, program: str) -> None:
    verdict = judge(name, program)
    assert verdict.score == 0.0, verdict


@pytest.mark.parametrize("name", IMPORTS)
def test_a_package_that_the_tests_import_and_the_machine_lacks_is_named(name: str) -> None:
    language, code = IMPORTS[name]["language"], IMPORTS[name]["code"]
    verdict = judge_code(language, code, RIGHT[language])
    assert verdict.score is None, verdict
    assert IMPORTS[name]["missing"] in verdict.evidence["error"]


@pytest.mark.parametrize(("language", "program"), LACKING.items())
def test_a_package_that_the_program_imports_and_the_machine_lacks_is_its_fault(language: str, program: str) -> None:
    name = next(name for name in TESTS if TESTS[name]["language"] == language)
    assert judge(name, f"{program}\n{RIGHT[language]}").score == 0.0


@rows("text", UNREAD)
def test_tests_that_may_hold_more_than_values_are_left_as_they_are(text: str) -> None:
    language = "javascript" if "expect" in text or "console" in text else "cpp"
    assert read_assertions(f"#<INSERT>\n{text}", "#<INSERT>", language) is None


@rows("language, text, name", PROGRAMS["uncalled"]["texts"])
def test_a_test_function_that_nothing_calls_is_named(language: str, text: str, name: str) -> None:
    verdict = judge_code(language, f"#<INSERT>\n{text}", RIGHT[language])
    assert verdict.score is None, verdict
    assert verdict.evidence["error"] == f"the tests never call their function {name}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#[ignore]\n#[test] fn t() { assert_eq!(f(1), 2); }", "all tests are marked as ignored"),
        (
            "#[test] fn t() { assert_eq!(f(1), 2); }\n#[test] #[ignore] fn u() { f(1);",
            "the tests have an unclosed bracket",
        ),
        ("mod tests { #[test] fn t() { assert_eq!(f(1), 2); }", "the tests have an unclosed bracket"),
    ],
)
def test_a_suite_of_rust_that_runs_no_test_is_named(text: str, message: str) -> None:
    verdict = judge_code("rust", f"#<INSERT>\n{text}", RIGHT["rust"])
    assert verdict.score is None, verdict
    assert verdict.evidence["error"] == message


@rows("language, text", PROGRAMS["called"]["texts"])
def test_functions_that_are_called_or_test_nothing_are_left_alone(language: str, text: str) -> None:
    assert uncalled_test(f"#<INSERT>\n{text}", language) is None


@rows(
    "text, language, value",
    [
        ("[]any{[]int(nil),}", "go", None),
        ("[]any{[]int{},}", "go", []),
        ('[]any{(float64)2,"a",}', "go", [2.0, "a"]),
        ("[]any{[]float64{1, 2.5},}", "go", [1.0, 2.5]),
        ('[]any{map[string]interface {}{"a":[]interface {}{1}},}', "go", {"a": [1]}),
        ("7", "go", 7),
        ('[(1, "é\\n"), (2, "")]', "rust", [[1, "é\n"], [2, ""]]),
        ("{1: Some(2.0), 2: None}", "rust", {1: 2.0, 2: None}),
        ("[Ok(3), Err(Empty)]", "rust", [["Ok", 3], ["Err", ["Empty"]]]),
        ("Point { x: 1, at: [A, B] }", "rust", ["Point", {"x": 1, "at": [["A"], ["B"]]}]),
    ],
)
def test_what_rust_and_go_print_is_read(text: str, language: str, value: object) -> None:
    assert repr(read_printed(text.encode().hex(), language)) == repr(value)


@rows("text", ["main.E{}", "E { n: }", "u8::MAX", "f(1)", "", "1 1", "<", "[" * 9000, "1, " * 90000, "0xzz"])
def test_what_is_no_plain_value_is_not_read(text: str) -> None:
    for language in ("rust", "go"):
        with pytest.raises(ValueError):
            read_printed(text.encode().hex(), language)


@rows("text, language, value", LITERALS)
def test_expected_values_are_read_as_the_language_means_them(text: str, language: str, value: object) -> None:
    assert literal(text, language) == value


@rows("text", ["f(1)", "x", "1 / 2", "017", "vec![0; 3]", "a + 1", "Point(1, 2)", '"a" "b" c', ""])
def test_what_is_no_data_is_not_read(text: str) -> None:
    with pytest.raises(NoLiteral):
        literal(text, "cpp")


def test_numbers_and_truth_values_are_told_apart_as_the_language_does() -> None:
    assert agree(1, True, "cpp")
    assert not agree(1, True, "javascript")
    assert agree(1, 1.0, "javascript")
    assert not agree(1, 1.0, "rust")
    assert agree([["a", 1]], {"a": 1}, "cpp")
    assert not agree([1, 2], [1], "cpp")
    assert not agree(1.5, 10**400, "cpp")
    assert not agree(HashedList([1, 1]), [1, 2], "cpp")
    assert agree(HashedList([2, 1]), [1, 2], "cpp")
    assert agree({}, [], "rust")
    assert not agree([], None, "go")
