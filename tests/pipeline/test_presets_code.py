"""What becomes of the rows of datasets of programs: their prompts, solutions and tests, by the preset that fits."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.ingest.stage import ingest
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import Row, read_rows
from truegold.verifiers import InputError, verify
from truegold.verifiers.code.suite.reading import LEETCODE_PRELUDE
from truegold.verifiers.sandbox.local import installed_languages

STDIO = {"type": "stdio", "cases": [{"input": "1 2\n", "output": "3\n"}]}
SOLUTION_CLASS = "class Solution:\n    def find(self, a, b):"


def taken(folder: Path, *values: dict[str, Any], **config: Any) -> tuple[list[Row], list[dict[str, Any]]]:
    """The rows that values become, and the rejects."""
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    out = folder / "out"
    out.mkdir(exist_ok=True)
    ingest({"data": path}, FileSource(path=str(path), **config), out, NullProgress())
    rejects = [json.loads(line) for line in (out / "rejects.jsonl").read_text().splitlines()]
    return list(read_rows(out / "rows.parquet")), rejects


def row_of(folder: Path, values: dict[str, Any], **config: Any) -> Row:
    (row,), rejects = taken(folder, values, **config)
    assert rejects == []
    assert (row["domain"], row["verifier"], row["gold"]) == ("code", "code", None)
    return row


def arguments_of(row: Row) -> dict[str, Any]:
    return json.loads(row["verifier_args"])


def test_apps_by_stdin_takes_the_first_solution(tmp_path):
    row = row_of(
        tmp_path,
        {
            "problem_id": 7,
            "question": "Add two numbers.",
            "input_output": json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]}),
            "solutions": json.dumps(["print(3)", "print(1 + 2)"]),
            "starter_code": "",
        },
    )
    assert (row["prompt"], row["solution"]) == ("Add two numbers.", "print(3)")
    assert arguments_of(row) == STDIO
    assert json.loads(row["meta"]) == {"source_id": "7", "solutions": '["print(3)", "print(1 + 2)"]'}


def test_apps_with_a_function_calls_it_and_shows_its_head(tmp_path):
    row = row_of(
        tmp_path,
        {
            "question": "Find b in a.",
            "input_output": json.dumps({"fn_name": "find", "inputs": [[[1, 2], 2]], "outputs": [1]}),
            "solutions": "[]",
            "starter_code": SOLUTION_CLASS,
        },
    )
    assert row["prompt"] == f"Find b in a.\n\nComplete this code:\n\n```python\n{SOLUTION_CLASS}\n```"
    assert row["solution"] is None
    assert arguments_of(row) == {
        "type": "calls",
        "entry_point": "Solution().find",
        "cases": [{"args": [[1, 2], 2], "expected": 1}],
    }


@pytest.mark.parametrize(
    ("time_limit", "seconds"),
    [
        ("2.0 seconds", 2.0),
        ("1500 ms", 1.5),
        (3, 3.0),
        ({"seconds": 1, "nanos": 500_000_000}, 1.5),
        ("", None),
        ("fast", None),
        (0, None),
        (1e9, None),
        (True, None),
        ({"seconds": "x"}, None),
        (None, None),
    ],
)
def test_a_time_limit_of_the_source_becomes_a_limit(tmp_path, time_limit, seconds):
    tests = {"inputs": ["1 2\n"], "outputs": ["3\n"]}
    row = row_of(tmp_path, {"question": "Add.", "input_output": json.dumps(tests), "time_limit": time_limit})
    assert arguments_of(row) == STDIO | ({"limits": {"cpu_s": seconds}} if seconds else {})


@pytest.mark.parametrize(
    "tests",
    [
        [{"input": "1 2\n", "output": "3\n"}],
        json.dumps([{"input": "1 2\n", "output": "3\n"}]),
        {"inputs": ["1 2\n"], "outputs": ["3\n"]},
        {"input": ["1 2\n"], "output": ["3\n"]},
        [{"input": "1 2\n", "output": "3\n", "testtype": "stdin_stdout", "metadata": {"func_name": None}}],
        [{"type": "stdin_stdout", "fn_name": None, "input": ["1 2", ""], "output": ["3", ""]}],
    ],
)
def test_problems_with_tests_by_stdin(tmp_path, tests):
    solution = "```python\nprint(sum(map(int, input().split())))\n```"
    row = row_of(tmp_path, {"problem": "Add.", "tests": tests, "solution": solution, "tags": ["easy"]})
    assert arguments_of(row) == STDIO
    assert row["solution"] == "print(sum(map(int, input().split())))"
    assert json.loads(row["meta"]) == {"tags": ["easy"]}


def test_deepcoders_calls_take_the_class_from_the_solution(tmp_path):
    tests = [{"fn_name": "find", "input": [[1, 2], 2], "output": [1], "type": "function_call"}] * 2
    row = row_of(
        tmp_path, {"problem": "Find.", "tests": json.dumps(tests), "solutions": [SOLUTION_CLASS + " return 1"]}
    )
    arguments = arguments_of(row)
    assert (arguments["type"], arguments["entry_point"]) == ("calls", "Solution().find")
    assert arguments["cases"] == [{"args": [[1, 2], 2], "expected": [1, [1]]}] * 2
    assert arguments["checker"] == {"type": "values", "any_of": True}


def test_functional_tests_name_what_they_check(tmp_path):
    code = "def check(candidate):\n    assert candidate(nums = [1]) == 1\n\n\ncheck(Solution().twoSum)"
    row = row_of(tmp_path, {"problem": "Sum.", "solutions": "class Solution: ...", "tests": {"functional": code}})
    assert arguments_of(row) == {
        "type": "asserts",
        "entry_point": "Solution().twoSum",
        "code": "def check(candidate):\n    assert candidate(nums = [1]) == 1",
    }
    assert row["solution"] == "class Solution: ..."


def test_codecontests_unites_its_tests_and_takes_a_python_3_solution(tmp_path):
    row = row_of(
        tmp_path,
        {
            "name": "1_A",
            "description": "Add.",
            "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
            "private_tests": {"input": [], "output": []},
            "generated_tests": {"input": ["2 2\n"], "output": ["4\n"]},
            "solutions": {"language": [2, 3, 3], "solution": ["int main() {}", "print(3)", "print(4)"]},
            "time_limit": {"seconds": 2, "nanos": 0},
        },
    )
    assert row["solution"] == "print(3)"
    assert arguments_of(row) == {
        "type": "stdio",
        "cases": [*STDIO["cases"], {"input": "2 2\n", "output": "4\n"}],
        "limits": {"cpu_s": 2.0},
    }


def livecodebench(**more: Any) -> dict[str, Any]:
    case = {"input": "[1, 2]\n2", "output": "1", "testtype": "functional"}
    return {
        "question_title": "find",
        "question_content": "Find b in a.",
        "starter_code": SOLUTION_CLASS,
        "public_test_cases": json.dumps([case]),
        "private_test_cases": json.dumps([{**case, "input": "[1]\n10000000000000000000000", "output": "null"}]),
        "metadata": json.dumps({"func_name": "find"}),
        **more,
    }


def test_livecodebench_reads_its_calls_exactly(tmp_path):
    row = row_of(tmp_path, livecodebench())
    arguments = arguments_of(row)
    assert arguments["entry_point"] == "Solution().find"
    assert arguments["cases"] == [
        {"args": [[1, 2], 2], "expected": 1},
        {"args": [[1], {"$": "int", "v": "0x21e19e0c9bab2400000"}], "expected": None},
    ]
    assert SOLUTION_CLASS in row["prompt"]


def test_livecodebench_by_stdin(tmp_path):
    case = json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}])
    values = livecodebench(public_test_cases=case, private_test_cases="", starter_code="", metadata="{}")
    row = row_of(tmp_path, values)
    assert arguments_of(row) == STDIO
    assert row["prompt"] == "Find b in a."


class Bomb:
    def __init__(self, leaves: Path) -> None:
        self.leaves = leaves

    def __reduce__(self) -> Any:
        return Path.touch, (self.leaves,)


def test_packed_private_tests_are_rejected_and_never_unpickled(tmp_path, monkeypatch):
    monkeypatch.setattr(pickle, "loads", lambda *arguments: pytest.fail("unpickled"))
    packed = base64.b64encode(zlib.compress(pickle.dumps(Bomb(tmp_path / "unpickled")))).decode()
    rows, rejects = taken(tmp_path, livecodebench(), livecodebench(private_test_cases=packed))
    assert len(rows) == 1
    assert [(reject["source_row"], reject["reason"]) for reject in rejects] == [(2, "unsafe_tests")]
    assert "private_test_cases" in rejects[0]["detail"]
    assert not (tmp_path / "unpickled").exists()


def test_leetcode_keeps_the_prelude_and_joins_the_starter_code(tmp_path):
    values = {
        "task_id": "two-sum",
        "problem_description": "Given an array ...",
        "starter_code": SOLUTION_CLASS,
        "prompt": "import math",
        "completion": "class Solution: ...",
        "entry_point": "Solution().find",
        "test": "def check(candidate): ...",
        "input_output": [{"input": "a = [1]", "output": "1"}],
    }
    row = row_of(tmp_path, values)
    assert row["prompt"].startswith("Given an array ...")
    assert SOLUTION_CLASS in row["prompt"]
    assert row["solution"] == "class Solution: ..."
    expected = {
        "type": "asserts",
        "entry_point": "Solution().find",
        "code": "def check(candidate): ...",
        "prelude": "import math",
    }
    assert arguments_of(row) == expected
    other = {"prelude": values["prompt"], "canonical_solution": values["completion"], "question": "Given an array ..."}
    row = row_of(tmp_path, other | {name: values[name] for name in ("entry_point", "test")})
    assert (row["prompt"], row["solution"]) == ("Given an array ...", "class Solution: ...")
    assert arguments_of(row) == expected


def test_bigcodebench_becomes_unittest(tmp_path):
    test = "import unittest\nclass TestCases(unittest.TestCase):\n    def test_it(self): ..."
    stub = "def task_func(x):\n"
    values = {"complete_prompt": stub, "canonical_solution": "    return x", "test": test, "entry_point": "task_func"}
    row = row_of(tmp_path, values)
    assert arguments_of(row) == {"type": "unittest", "entry_point": "task_func", "code": test, "stub": stub}
    assert row["solution"] == "def task_func(x):\n    return x"


def test_mbpp_plus_has_its_larger_test_and_the_first_assertion_in_the_prompt(tmp_path):
    values = {"prompt": "Add one.", "code": "def f(x): ...", "test_list": ["assert f(1) == 2"], "test": "inputs = ..."}
    row = row_of(tmp_path, values)
    assert arguments_of(row) == {"type": "asserts", "code": "inputs = ..."}
    assert row["prompt"].endswith("assert f(1) == 2")


def test_evalplus_rows_without_test_code_are_not_guessed_at(tmp_path):
    values = {"prompt": "def f(x):", "canonical_solution": " ...", "entry_point": "f", "base_input": [[1]], "atol": 0}
    with pytest.raises(InputError, match="no column has a usual name"):
        taken(tmp_path, values)


def verl(ground_truth: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Add two numbers."}]
    return {"data_source": "taco", "prompt": messages, "reward_model": {"style": "rule", "ground_truth": ground_truth}}


@pytest.mark.parametrize(
    "tests", [{"inputs": ["1 2\n"], "outputs": ["3\n"]}, [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]]
)
def test_verl_rows_whose_ground_truth_holds_tests_are_programs(tmp_path, tests):
    row = row_of(tmp_path, verl(json.dumps(tests)))
    assert (row["prompt"], arguments_of(row)) == ("Add two numbers.", STDIO)
    assert json.loads(row["meta"])["data_source"] == "taco"


def test_verl_rows_of_both_kinds_are_what_they_are(tmp_path):
    program = verl('{"inputs": ["1 2\\n"], "outputs": ["3\\n"]}')
    for records in ([program, verl("72")], [*[verl("72")] * 120, program]):
        rows, rejects = taken(tmp_path, *records)
        assert not rejects
        assert {(row["verifier"], row["domain"], row["gold"]) for row in rows} == {
            ("code", "code", None),
            ("math", "math", "72"),
        }


C = "int main() {\n    assert(add(1, 2) == 3);\n    assert(add(-1, 1) == 0);\n    return 0;\n}\n"
JS = "const testAdd = () => {\n  console.assert(add(1, 2) === 3)\n  console.assert(add(-1, 1) === 0)\n}\n\ntestAdd()\n"
JAVA = """public class Main {
    public static void main(String[] args) {
        Solution s = new Solution();
        if (!(s.add(1, 2) == 3 && s.add(-1, 1) == 0)) { throw new AssertionError(); }
    }
}
"""
RUST = """#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main() {
        assert_eq!(add(1, 2), 3);
        assert_eq!(add(-1, 1), 0);
    }
}
"""
PERL = "sub test_add {\n    die unless add(1, 2) == 3;\n    die unless add(-1, 1) == 0;\n}\n\ntest_add();\n"
BASH = 'test_add() {\n  [ "$(add 1 2)" = 3 ] || exit 1\n  [ "$(add -1 1)" = 0 ] || exit 1\n}\ntest_add\n'
HEAD_C = "#include <assert.h>\n/* Adds. */\nint add(int a, int b)"
BODY = "{\n    return a + b;\n}"
SUITES = {
    "HumanEval-X in C++": ("cpp", {"task_id": "CPP/0", "prompt": f"#include <cassert>\n{HEAD_C}{{\n", "test": C,
                                   "canonical_solution": "    return a + b;\n}\n", "declaration": HEAD_C}),
    "McEval in C": ("c", {"task_id": "C/1", "prompt": HEAD_C, "canonical_solution": BODY, "test": C,
                          "entry_point": "add", "level": "easy"}),
    "MultiPL-E in C++": ("cpp", {"name": "p_0", "language": "cpp", "prompt": f"{HEAD_C} {{\n", "tests": f"}}\n{C}"}),
    "MBXP in JavaScript": ("javascript", {"task_id": "MBJSP/1", "language": "javascript", "test": JS, "prompt":
                           "// Adds.\nfunction add(a, b) {\n", "entry_point": "add",
                           "canonical_solution": "    return a + b\n}\n"}),
    "HumanEval-X in JavaScript": ("javascript", {"task_id": "JavaScript/0", "prompt": "const add = (a, b) => {\n",
                                                 "canonical_solution": "  return a + b\n}\n", "test": JS}),
    "HumanEval-X in Java": ("java", {"task_id": "Java/0", "test": JAVA, "prompt":
                            "import java.util.*;\n\nclass Solution {\n    public int add(int a, int b) {\n",
                            "canonical_solution": "        return a + b;\n    }\n}\n"}),
    "McEval in Rust": ("rust", {"task_id": "Rust/6", "prompt": "fn add(a: i64, b: i64) -> i64 ", "test": RUST,
                                "entry_point": "add", "canonical_solution": "{\n    a + b\n}"}),
    "McEval in Perl": ("perl", {"task_id": "Perl/2", "prompt": "use strict;\n# Adds.\nsub add {", "test": PERL,
                                "entry_point": "add", "canonical_solution": "    my ($a, $b) = @_;\n    $a + $b;\n}"}),
    "a shell": ("bash", {"lang": "sh", "prompt": "# Adds.\nadd() {", "canonical_solution": "  echo $(($1 + $2))\n}",
                         "test": BASH, "entry_point": "add"}),
    "C++ by its edition": ("cpp", {"programming_language": "C++17", "prompt": f"{HEAD_C}\n", "test": C,
                                   "canonical_solution": BODY}),
}  # fmt: skip


@pytest.mark.parametrize("name", SUITES)
def test_humanevals_layout_in_another_language(tmp_path, name):
    language, values = SUITES[name]
    row = row_of(tmp_path, values)
    arguments = arguments_of(row)
    tests = str(values.get("test") or values["tests"]).removeprefix("}\n")
    assert (arguments["type"], arguments["language"]) == ("inserted", language)
    assert arguments["code"].endswith(f"#<INSERT>\n\n{tests}")
    program = row["solution"] or f"int add(int a, int b) {BODY}"
    if language in installed_languages():
        right = f"It adds:\n\n```{language}\n{program}\n```"
        assert verify(right, None, verifier="code", **arguments).score == 1
        wrong = right.replace("a + b", "a - b").replace("$a +", "$a -").replace("$1 +", "$1 -")
        assert verify(wrong, None, verifier="code", **arguments).score == 0


@pytest.mark.parametrize(
    "values",
    [
        {"task_id": "C/3", "test": "def check(f):\n    assert f(1, 2) == 3"},
        {"language": "Python3", "test": "def check(f):\n    assert f(1, 2) == 3"},
        {"language": "en", "task_id": "HumanEval/0", "test": "def check(f):\n    assert f(1, 2) == 3"},
    ],
)
def test_humanevals_layout_in_python_whatever_the_id_is(tmp_path, values):
    head = 'def add(a, b):\n    """Adds."""'
    row = row_of(tmp_path, values | {"prompt": head, "canonical_solution": "    return a + b", "entry_point": "add"})
    assert (arguments_of(row)["type"], row["solution"]) == ("asserts", f"{head}\n    return a + b")


C_BY_STDIN = '#include <stdio.h>\nint main() { int a, b; scanf("%d %d", &a, &b); printf("%d", a + b); }'
PAIRS = [{"input": "1 2", "output": "3"}, {"input": "2 2", "output": "4"}]


@pytest.mark.parametrize(
    ("values", "language"),
    [
        ({"prompt": "Add.", "tests": PAIRS, "language": "c"}, "c"),
        ({"prompt": "Add.", "tests": json.dumps(PAIRS), "lang": "GNU C11"}, "c"),
        ({"problem": "Add.", "test_cases": PAIRS, "programming_language": "C++20 (GCC 13-64)"}, "cpp20"),
        ({"problem": "Add.", "test_cases": PAIRS, "programming_language": "C++", "solution": C_BY_STDIN}, "cpp"),
        ({"question": "Add.", "inputs": ["1 2", "2 2"], "outputs": ["3", "4"], "language": "GNU C++17"}, "cpp"),
        ({"question": "Add.", "input_output": {"inputs": ["1 2"], "outputs": ["3"]}, "language": "c"}, "c"),
        (
            {"prompt": "Add.", "tests": {"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}, "language": "Node.js"},
            None,
        ),
        ({"prompt": "Add.", "tests": PAIRS, "language": "en"}, None),
        ({"prompt": "Add.", "tests": PAIRS, "language": "Python3"}, None),
        (
            {"prompt": "Add.", "tests": PAIRS, "language": "c", "solution": "print(sum(map(int, input().split())))"},
            None,
        ),
        ({"prompt": "Add.", "tests": PAIRS}, None),
    ],
)
def test_tests_by_stdin_are_in_the_language_that_a_column_names(tmp_path, values, language):
    row = row_of(tmp_path, values)
    arguments = arguments_of(row)
    if arguments["type"] == "calls":
        assert arguments["language"] == "javascript"
        return
    assert arguments.get("language") == language
    assert ("en" in row["meta"]) == (values.get("language") == "en")
    if language is not None:
        for sign, score in (("+", 1), ("-", 0)):
            program = C_BY_STDIN.replace("a + b", f"a {sign} b")
            assert verify(f"```{language}\n{program}\n```", None, verifier="code", **arguments).score == score


@pytest.mark.parametrize("column", ["solution", "reference_solution", "completion"])
def test_a_solution_in_another_language_is_read_from_the_usual_columns(tmp_path, column):
    program = "pub fn add(a: i64, b: i64) -> i64 { a + b }"
    row = row_of(tmp_path, {"prompt": "Add.", "tests": RUST, "language": "rust", column: program})
    assert row["solution"] == program


def test_the_prelude_builds_lists_and_trees():
    names: dict[str, Any] = {}
    exec(LEETCODE_PRELUDE, names)
    linked, shorter = names["list_node"]([1, 2, 3]), names["list_node"]([1, 2])
    assert (linked.val, linked.next.val, linked.next.next.val, linked.next.next.next) == (1, 2, 3, None)
    assert names["is_same_list"](linked, names["list_node"]([1, 2, 3]))
    assert not names["is_same_list"](linked, shorter)
    assert names["list_node"]([]) is None
    tree = names["tree_node"]([1, None, 2, 3])
    assert (tree.left, tree.right.val, tree.right.left.val) == (None, 2, 3)
    assert names["is_same_tree"](tree, names["tree_node"]([1, None, 2, 3]))
    assert not names["is_same_tree"](tree, names["tree_node"]([1, 2, None, 3]))
    assert names["tree_node"]([]) is None
    assert names["pow"](2, 10, 1000) == 24
