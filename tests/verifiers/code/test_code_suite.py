"""Reading the tests of a row: the forms, the shapes that data sets have, and what a bad row is told."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import (
    LEETCODE_PRELUDE,
    Asserts,
    CallCase,
    Calls,
    Stdio,
    StdioCase,
    UnitTest,
    read_suite,
    with_calls_of_tests,
)
from truegold.verifiers.code.value_comparison import call_checker_of
from truegold.verifiers.sandbox.execution import Limits


def read(tests, **info):
    return read_suite({"tests": tests, **info}).tests


def problem(info):
    with pytest.raises(BadSuite) as caught:
        read_suite(info)
    text = str(caught.value)
    assert "\n" not in text
    return text


# The forms


def test_stdio_cases_are_read_with_weights_checker_and_defaults():
    tests = {
        "type": "stdio",
        "cases": [{"input": "1", "output": "2", "weight": 3}, {"input": ["a", "b"], "output": ""}],
    }
    suite = read_suite({"tests": {**tests, "checker": "lines"}})
    assert suite.tests == Stdio((StdioCase("1", "2", 3.0), StdioCase("a\nb", "", 1.0)), "lines")
    assert (suite.language, suite.limits) == ("python", Limits())


def test_the_form_may_stand_at_the_top_level_of_info():
    suite = read_suite(
        {"type": "asserts", "entry_point": "f", "code": "def check(candidate): assert candidate(1)", "language": "py"}
    )
    assert suite.tests == Asserts("def check(candidate): assert candidate(1)", "f")


def test_what_the_tests_leave_open_may_stand_beside_them():
    cases = [{"args": [1], "expected": 1}]
    tests = read({"type": "calls", "cases": cases}, entry_point="Solution().f", prelude="import math", checker="strict")
    assert isinstance(tests, Calls)
    assert (tests.entry_point, tests.prelude, tests.checker) == ("Solution().f", "import math", "strict")


def test_what_the_tests_say_goes_before_what_info_says():
    tests = {"type": "stdio", "cases": [{"input": "", "output": ""}], "checker": "exact", "language": "c++"}
    suite = read_suite({"tests": tests, "checker": "lines", "language": "java"})
    assert isinstance(suite.tests, Stdio)
    assert (suite.tests.checker, suite.language) == ("exact", "cpp")


def test_calls_decode_tagged_values():
    case = {
        "args": [{"$": "tuple", "v": [1, 2]}],
        "kwargs": {"k": {"$": "set", "v": [3]}},
        "expected": {"$": "float", "v": "inf"},
    }
    tests = read({"type": "calls", "entry_point": "f", "cases": [case]})
    assert tests.cases == (CallCase(((1, 2),), {"k": {3}}, math.inf, 1.0),)


def test_asserts_and_unittest_carry_prelude_stub_and_codecs():
    fields = {"code": "x", "entry_point": "f", "prelude": "import a", "stub": "def f():", "codecs": {"P": ["x", "y"]}}
    assert read({"type": "unittest", **fields}) == UnitTest("x", "f", "import a", "def f():", {"P": ("x", "y")})
    assert read({"type": "asserts", **fields}) == Asserts("x", "f", "import a", "def f():", {"P": ("x", "y")})


def test_limits_are_read():
    suite = read_suite({"tests": ["assert f(1)"], "limits": {"cpu_s": 2, "memory_mb": 256}})
    assert suite.limits == Limits(cpu_s=2, memory_mb=256)


@rows(
    "spelling, name",
    [
        ("Python3", "python"),
        ("PY", "python"),
        ("python3.11", "python"),
        ("C++", "cpp"),
        ("cpp17", "cpp"),
        ("c++17", "cpp"),
        ("c++20", "cpp20"),
        ("C++2a", "cpp20"),
        ("cpp_23", "cpp23"),
        ("GNU C++14", "cpp14"),
        ("GNU C++20 (64)", "cpp20"),
        ("C++20 (GCC 13-64)", "cpp20"),
        ("g++", "cpp"),
        ("python2", "python2"),
        ("Python 2.7", "python2"),
        ("PyPy 3-64", "pypy"),
        ("pypy", "pypy"),
        ("PyPy 2", "pypy2"),
        ("Python 3.12", "python"),
        ("node", "javascript"),
        ("golang", "go"),
        ("C#", "csharp"),
        ("java 17", "java17"),
        ("Java 1.8", "java8"),
        ("java", "java"),
        ("Haskell", "haskell"),
        ("D", "d"),
    ],
)
def test_language_names_are_normalised(spelling, name):
    assert read_suite({"tests": [{"input": "", "output": ""}], "language": spelling}).language == name


# The shapes of data sets


def test_tests_may_be_json_text():
    tests = {"type": "stdio", "cases": [{"input": "1", "output": "2"}]}
    assert read(json.dumps(tests)) == read(tests)


def test_a_list_of_inputs_and_outputs_is_stdio():
    assert read([{"input": "1", "output": "2"}]) == Stdio((StdioCase("1", "2"),))
    assert read([{"input": "1", "output": "2", "testtype": "stdin"}]) == Stdio((StdioCase("1", "2"),))


def test_columns_of_inputs_and_outputs_are_stdio():
    assert read({"inputs": ["1", ["2", "3"]], "outputs": ["a", "b"]}) == Stdio(
        (StdioCase("1", "a"), StdioCase("2\n3", "b"))
    )
    assert read(json.dumps({"inputs": ["1"], "outputs": ["a"], "fn_name": None})) == Stdio((StdioCase("1", "a"),))


def test_apps_calls_accept_the_expected_value_wrapped_in_a_list_and_bare():
    tests = read({"inputs": [[1, 2], [3, 4]], "outputs": [[3], [7]], "fn_name": "add"})
    assert isinstance(tests, Calls)
    assert (tests.entry_point, tests.cases[0].args) == ("add", (1, 2))
    differs = call_checker_of(tests.checker)
    assert differs(tests.cases[1].expected, 7) is None
    assert differs(tests.cases[1].expected, [7]) is None
    assert differs(tests.cases[1].expected, [3]) is not None


def test_apps_calls_are_not_unwrapped_where_one_expected_value_is_no_list_of_one():
    tests = read({"inputs": [[1], [2]], "outputs": [[3], [4, 5]], "fn_name": "f"})
    assert [case.expected for case in tests.cases] == [[3], [4, 5]]
    assert call_checker_of(tests.checker)([3], 3) is not None


def test_apps_objects_with_integer_keys_are_dicts_with_integer_keys():
    tests = read({"inputs": [[{"1": "a"}, {"b": 1}]], "outputs": [[{"2": "c"}]], "fn_name": "f"})
    assert tests.cases[0].args == ({1: "a"}, {"b": 1})
    assert tests.cases[0].expected[0] == {2: "c"}


def test_livecodebench_functional_tests_have_one_json_value_a_line():
    tests = [{"input": '[2, 7]\n"x"', "output": "[0, 1]", "testtype": "functional"}]
    read_tests = read(
        tests, metadata='{"func_name": "twoSum"}', starter_code="class Solution:\n    def twoSum(self, a):"
    )
    cases = (CallCase(([2, 7], "x"), {}, [0, 1], 1.0),)
    assert read_tests == Calls("Solution().twoSum", cases, prelude=LEETCODE_PRELUDE)
    inside = [{**tests[0], "metadata": {"func_name": "twoSum"}}]
    assert read(inside).entry_point == "twoSum"


def test_livecodebench_rows_join_public_and_private_tests():
    row = {
        "public_test_cases": json.dumps([{"input": "1", "output": "2", "testtype": "stdin"}]),
        "private_test_cases": [{"input": "3", "output": "4", "testtype": "stdin"}],
    }
    assert read(row) == Stdio((StdioCase("1", "2"), StdioCase("3", "4")))


def test_compressed_tests_are_refused_and_not_unpickled():
    text = problem({"tests": {"public_test_cases": "[]", "private_test_cases": "eJxrYJmaysAABa0A"}})
    assert "decode compressed tests first" in text


def test_codecontests_lists_are_joined():
    row = {"public_tests": {"input": ["1"], "output": ["2"]}, "private_tests": {"input": ["3"], "output": ["4"]}}
    assert read(row) == Stdio((StdioCase("1", "2"), StdioCase("3", "4")))


def test_named_arguments_may_stand_in_text():
    tests = read([{"input": "nums = [2,7], target = 9, s = 'a=b'", "output": "(0, True)"}], entry_point="Solution().f")
    assert tests.cases == (CallCase((), {"nums": [2, 7], "target": 9, "s": "a=b"}, (0, True), 1.0),)


def test_function_calls_by_type_and_arguments_by_name():
    tests = read([{"type": "function_call", "fn_name": "f", "input": [3], "output": 4}])
    assert tests == Calls("f", (CallCase((3,), {}, 4, 1.0),))
    tests = read([{"args": [1], "kwargs": {"k": 2}, "expected": 3, "weight": 2}], entry_point="f")
    assert tests == Calls("f", (CallCase((1,), {"k": 2}, 3, 2.0),))


def test_a_list_of_assertions_is_asserts():
    assert read(["assert f(1) == 2", "assert f(2) == 3"]) == Asserts("assert f(1) == 2\nassert f(2) == 3")
    row = {"test_list": ["assert f(1)"], "test_setup_code": "import math", "test_imports": ["import re"]}
    assert read(row).code == "import re\nimport math\nassert f(1)"
    assert read({"assert_case": ["assert f(1)"], "inputs": None}).code == "assert f(1)"


def test_humaneval_rows_are_asserts_with_their_prompt_as_stub():
    row = {"test": "def check(candidate):\n    assert candidate(1)", "entry_point": "f", "prompt": "def f(x):\n"}
    assert read(row) == Asserts(row["test"], "f", "", "def f(x):\n")
    assert read_suite(row).tests == Asserts(row["test"], "f", "", "def f(x):\n")


def test_functional_code_and_open_r1_wrappers_are_found():
    assert read({"functional": "def check(candidate): assert candidate(1)\n\ncheck(f)"}).code.endswith("check(f)")
    info = {
        "verification_info": {"language": "cpp", "test_cases": [{"input": "1", "output": "2", "type": "stdin_stdout"}]}
    }
    suite = read_suite(info)
    assert (suite.tests, suite.language) == (Stdio((StdioCase("1", "2"),)), "cpp")


def test_code_with_test_case_classes_is_unittest():
    assert isinstance(read("import unittest\nclass T(unittest.TestCase): pass"), UnitTest)


def test_functions_called_test_are_called():
    tests = read("from solution import f\n\ndef test_one():\n    assert f(1)\n\ndef helper(x):\n    assert f(x)")
    assert tests.code.endswith("assert f(x)\ntest_one()")
    code = "def test_one():\n    pass\ntest_one()"
    assert with_calls_of_tests(code) == code


# Bad rows


@rows(
    "tests, text",
    [
        (
            {"type": "stdio", "cases": [{"input": "", "output": ""}] * 3 + [{"input": "", "output": 5}]},
            "cases[3].output must be text, got 5",
        ),
        ({"type": "stdio", "cases": [{"input": ""}]}, "tests.cases[0].output is missing"),
        ({"type": "stdio", "cases": []}, "tests.cases must hold 1 to 20000 cases, got 0"),
        ({"type": "stdio", "cases": {}}, "tests.cases must be a list"),
        ({"type": "stdio", "cases": ["x"]}, "tests.cases[0] must be an object"),
        ({"type": "stdio", "cases": [{"input": "", "output": "", "weight": 0}]}, "weight must be a number above 0"),
        ({"type": "stdio", "cases": [{"input": "", "output": ""}], "checker": "fuzzy"}, "tests.checker must be one of"),
        ({"type": "calls", "cases": [{"args": [], "expected": 1}]}, "entry_point must name the function"),
        ({"type": "calls", "entry_point": "f(1)", "cases": []}, "entry_point must be a name"),
        ({"type": "calls", "entry_point": "f", "cases": [{"args": 1, "expected": 1}]}, "cases[0].args must be a list"),
        (
            {"type": "calls", "entry_point": "f", "cases": [{"expected": {"$": "nonsense", "v": 1}}]},
            "cases[0].expected is not a value",
        ),
        ({"type": "asserts", "code": " "}, "tests.code must hold the tests"),
        ({"type": "asserts", "code": "x", "codecs": {"P": "xy"}}, "codecs.P must be a list of attribute names"),
        ({"type": "essay"}, "type must be one of stdio, interactive, calls"),
        ({"colour": "red"}, "no tests found"),
        ([], "at least one test"),
        ([1], "tests[0] must be an object"),
        ([{"input": "1"}], "tests[0].output is missing"),
        ([{"input": "1", "output": "2"}, {"input": "1", "output": "2", "testtype": "functional"}], "all have one type"),
        ([{"input": "?", "output": "2", "testtype": "functional", "fn_name": "f"}], "tests[0].input must be JSON"),
        ({"inputs": ["1"], "outputs": []}, "inputs holds 1 entries and outputs 0"),
        (5, "tests must be an object, a list or text"),
        ("  ", "blank"),
    ],
)
def test_a_bad_row_is_told_field_and_case(tests, text):
    assert text in problem({"tests": tests})


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"cpu_s": 0}, "limits.cpu_s must be a number from 0.01 to 3600, got 0"),
        ({"cpu_s": math.nan}, "limits.cpu_s must be a number"),
        ({"memory_mb": 1.5}, "limits.memory_mb must be a whole number"),
        ({"threads": True}, "limits.threads must be a whole number"),
        ({"cpu": 1}, "limits.cpu is unknown; there are cpu_s, memory_mb"),
        ([1], "limits must be an object"),
    ],
)
def test_bad_limits_are_told(limits, text):
    assert text in problem({"tests": ["assert f()"], "limits": limits})


def test_an_empty_info_is_told():
    assert "no tests found" in problem({})


def test_messages_do_not_carry_the_data():
    assert len(problem({"tests": {"type": "stdio", "cases": [{"input": "", "output": {"a": "x" * 10**6}}]}})) < 300
    assert len(problem({"tests": {"type": "stdio", "cases": [{"input": "", "output": 10**6000}]}})) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "cases", "input", "output", "inputs", "outputs", "fn_name", "test", "code", "args", "$", "v"]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
@example({"\n": None})
def test_any_json_is_a_suite_or_a_bad_suite(tests):
    for info in ({"tests": tests}, {"tests": json.dumps(tests)}, {"tests": tests, "entry_point": "f"}):
        try:
            read_suite(info)
        except BadSuite as error:
            assert "\n" not in str(error)
