"""Which program a response commits to."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers.code.fenced_blocks import MAX_BLOCKS, fenced_blocks
from truegold.verifiers.code.python_source import continue_stub, error_line, parse, read_source, stub_names, top_level
from truegold.verifiers.code.response_program import callable_in, extract_code

ADD = "def add(a, b):\n    return a + b"
HELPERS = "from typing import List\n\nLIMIT = 3\n\n\ndef helper(x):\n    return x\n"
STUB = HELPERS + '\n\ndef f(x: int) -> int:\n    """Doubles x."""\n'


def code_of(response, **options):
    extracted = extract_code(response, **options)
    return extracted and extracted.code


def how_of(response, **options):
    extracted = extract_code(response, **options)
    return extracted and extracted.form


def block(code, info="python", fence="```"):
    return f"{fence}{info}\n{code}\n{fence}\n"


# Fences


@rows(
    "info",
    [
        "python",
        "Python",
        "python3",
        "py",
        "python3.11",
        'python title="a.py"',
        "{.python}",
        "python:main.py",
        "python {x=1}",
        "",
    ],
)
def test_the_language_of_a_fence_is_its_first_word(info):
    assert code_of(f"Here:\n{block(ADD, info)}Done.") == ADD


@pytest.mark.parametrize("fence", ["```", "````", "~~~", "~~~~~"])
def test_fences_are_backticks_or_tildes(fence):
    assert code_of(block(ADD, fence=fence)) == ADD


def test_a_fence_may_be_indented_and_its_indentation_is_no_part_of_the_code():
    indented = "\n".join(f"   {line}" for line in block(ADD).split("\n"))
    assert code_of(f"1. So:\n\n{indented}\n2. Done.") == ADD


def test_line_ends_and_byte_order_marks_are_plain():
    assert code_of("\ufeff" + block(ADD).replace("\n", "\r\n")) == ADD


def test_a_cut_off_response_gives_what_there_is():
    extracted = extract_code("```python\ndef add(a, b):\n    return a +")
    assert (extracted.code, extracted.form) == ("def add(a, b):\n    return a +", "unclosed_fence")


def test_a_fence_at_the_end_of_a_line_of_code_closes_the_block():
    assert code_of("```python\ndef add(a, b):\n    return a + b```\nThat was it.") == ADD


def test_a_fence_with_a_language_ends_a_block_that_was_not_closed():
    assert code_of(f"```python\n{ADD}\n```text\n3\n```\n", entry_point="add") == ADD
    assert code_of(f"```\nSome notes\n```python\n{ADD}\n```\n", entry_point="add") == ADD


def test_a_fence_in_a_docstring_is_part_of_the_docstring():
    code = 'def add(a, b):\n    """Adds.\n\n    ```\n    >>> add(1, 2)\n    ```\n    """\n    return a + b'
    assert code_of(block(code)) == code
    flat = code.replace("    ```", "```")
    assert code_of(block(flat), entry_point="add") == flat


def test_an_open_quote_without_an_end_does_not_swallow_the_response():
    assert code_of('```python\nx = """\n```\nmore\n```python\nx = 1\n```') == "x = 1"


def test_only_the_last_blocks_are_read():
    blocks = fenced_blocks("".join(block(f"x = {index}") for index in range(3 * MAX_BLOCKS)))
    assert len(blocks) == MAX_BLOCKS
    assert blocks[-1].text == f"x = {3 * MAX_BLOCKS - 1}"


# Which block


def test_the_last_block_that_defines_the_entry_point_wins():
    older = "def add(a, b):\n    return a - b"
    response = block(older) + block(ADD) + block("print(add(1, 2))") + block("3", "")
    assert code_of(response, entry_point="add") == ADD


def test_the_last_attempt_wins_even_if_it_does_not_parse():
    broken = "def add(a, b):\n    return a + + * b"
    assert code_of(block(ADD) + block(broken), entry_point="add") == broken


def test_of_classes_the_one_with_the_method_wins():
    with_method = "class Solution:\n    def twoSum(self, nums):\n        return nums"
    response = block(with_method) + block("class Solution:\n    pass")
    assert code_of(response, entry_point="Solution().twoSum") == with_method


def test_a_cut_off_last_class_wins_over_an_older_one():
    older = "class Solution:\n    def f(self):\n        return 1"
    cut = "class Solution:\n    def f(self"
    assert code_of(f"{block(older)}```python\n{cut}", entry_point="Solution().f") == cut


def test_a_name_without_its_class_is_found_in_the_class_solution():
    code = "class Solution:\n    def twoSum(self, nums):\n        return nums"
    response = block(code) + block("print(Solution().twoSum([1]))")
    assert code_of(response, entry_point="twoSum") == code
    assert callable_in(code, "twoSum") == "Solution().twoSum"
    assert callable_in(f"{code}\ndef twoSum(nums): pass", "twoSum") == "twoSum"
    assert callable_in(ADD, "add") == "add"


def test_without_an_entry_point_the_last_block_that_reads_stdin_wins():
    program = "n = int(input())\nprint(n + 1)"
    assert code_of(block(program) + block("print(solve(3))") + block("4", "")) == program
    assert code_of(block("import sys\nprint(sys.stdin.read())") + block(program)) == program


def test_without_an_entry_point_the_last_definition_goes_before_usage():
    assert code_of(block(ADD) + block("assert add(1, 2) == 3")) == ADD


def test_output_and_other_languages_are_no_programs():
    assert code_of(block(ADD) + block("pip install x", "bash") + block("5", "") + block("YES", "")) == ADD
    assert code_of(block("5", "")) is None
    assert code_of(block("SELECT 1;", "sql")) is None


def test_a_tagged_block_goes_before_an_untagged_one_unless_only_that_defines_the_entry_point():
    assert code_of(block(ADD) + block("x = 1\ny = 2", "")) == ADD
    assert code_of(block("print(1)") + block(ADD, ""), entry_point="add") == ADD


def test_an_untagged_block_that_does_not_parse_is_judged_as_a_program():
    assert code_of(block("print 'hello'", "")) == "print 'hello'"


def test_names_from_other_blocks_are_put_in_front():
    response = (
        block("import math\nfrom typing import List\n\nprint('a draft')")
        + block("def area(r):\n    return math.pi * square(r)")
        + block("def square(x):\n    return x * x")
        + block("print(area(2))")
    )
    extracted = extract_code(response, entry_point="area")
    assert extracted.form == "joined"
    assert top_level(parse(extracted.code)) == {"math", "area", "square"}
    assert "draft" not in extracted.code
    namespace = {}
    exec(extracted.code, namespace)
    assert namespace["area"](1) > 3


def test_names_that_other_blocks_need_are_followed():
    response = block("BASE = 10\ndef step(x):\n    return x % BASE") + block("def f(x):\n    return step(x)")
    namespace = {}
    exec(code_of(response, entry_point="f"), namespace)
    assert namespace["f"](13) == 3


def test_the_main_guard_stays():
    code = "def main():\n    print(input())\n\nif __name__ == '__main__':\n    main()"
    assert code_of(block(code)) == code


# Around the code


def test_thinking_is_no_answer():
    assert code_of(f"<think>\n{block('x = 1')}</think>\n{block(ADD)}") == ADD
    assert code_of(f"<think>\n{block(ADD)}") is None


def test_the_end_of_the_turn_is_the_end():
    assert code_of(f"{block(ADD)}<|im_end|>\n<|im_start|>user\n{block('x = 1')}") == ADD


def test_answer_tags_narrow_the_search_where_they_hold_code():
    assert code_of(f"{block('x = 1')}<answer>\n{block(ADD)}</answer>\n{block('y = 2')}") == ADD
    assert code_of(f"<answer>{ADD}</answer>") == ADD
    assert code_of(f"{block(ADD)}<answer>see above</answer>") == ADD


@pytest.mark.parametrize("tags", [("[PYTHON]", "[/PYTHON]"), ("<code>", "</code>"), ("[PYTHON]", "")])
def test_other_wrappers(tags):
    assert code_of(f"The code:\n{tags[0]}\n{ADD}\n{tags[1]}") == ADD


def test_code_within_a_line():
    assert code_of("Use ```x = int(input())``` and be done.") == "x = int(input())"


@pytest.mark.parametrize(
    "response", ["", "   \n", "I cannot solve this.", "42", "Sorry", "The answer is 5\nthanks", "<think>hm"]
)
def test_prose_is_no_program(response):
    assert extract_code(response) is None
    assert extract_code(response, entry_point="f", stub=STUB) is None


def test_a_response_that_is_code_as_a_whole():
    extracted = extract_code(f"{ADD}\n")
    assert (extracted.code, extracted.form) == (ADD, "whole")


def test_code_between_prose_without_a_fence():
    code = f"import math\n\n{ADD}"
    extracted = extract_code(f"Sure, here is the code:\n\n{code}\n\nThis adds the two numbers, as you asked.")
    assert (extracted.code, extracted.form) == (code, "part")


def test_prompts_in_a_docstring_are_not_taken_for_the_program():
    code = 'import math\n\n\ndef f(x):\n    """Doubles.\n\n    >>> f(2)\n    4\n    """\n    return 2 * x'
    assert code_of(f"Here it is.\n\n{code}\n\nI hope this helps.", entry_point="f") == code


# Repairs


def test_prompts_of_an_interactive_session_are_stripped():
    session = ">>> def add(a, b):\n...     return a + b\n...\n>>> add(1, 2)\n3"
    assert code_of(block(session)) == "def add(a, b):\n    return a + b\n\nadd(1, 2)"


def test_spaces_and_quotes_of_word_processors_are_made_plain_only_where_needed():
    assert code_of(block("def f():\n\u00a0\u00a0\u00a0\u00a0return “x”")) == 'def f():\n    return "x"'
    kept = "x = '“quoted”\u00a0'"
    assert code_of(block(kept)) == kept


def test_common_indentation_is_taken_away():
    assert code_of(block("    def add(a, b):\n        return a + b"), entry_point="add") == ADD


def test_what_cannot_be_repaired_stays_as_it_is():
    assert read_source("def f(:\n    “").text == "def f(:\n    “"


# Stubs


@rows(
    "response",
    [
        "    return 2 * x",
        "    return 2 * x\n\n\nprint(f(3))",
        "return 2 * x",
        "y = 2 * x\n    return y",
        "y = 2 * x\nreturn y",
        "    return 2 * x\n\nThis doubles the number, as asked.",
        block("    return 2 * x"),
        block("return 2 * x"),
        block("    return 2 * x", ""),
        block("def f(x):\n    return 2 * x"),
        f"{STUB}    return 2 * x",
        block(f"{STUB}    return 2 * x"),
    ],
)
def test_a_body_continues_the_stub(response):
    code = code_of(response, entry_point="f", stub=STUB)
    namespace = {}
    exec(code, namespace)
    assert namespace["f"](4) == 8


def test_a_body_of_a_method_continues_the_stub():
    stub = "class Solution:\n    def f(self, x: int) -> int:\n"
    for response in ("        return 2 * x", "return 2 * x", block("        y = x\n        return 2 * y")):
        code = code_of(response, entry_point="Solution().f", stub=stub)
        namespace = {}
        exec(code, namespace)
        assert namespace["Solution"]().f(4) == 8


def test_a_stub_that_ends_within_the_line_of_the_body():
    assert continue_stub("def f(x):\n    ", "return x", "f") == "def f(x):\n    return x"
    assert continue_stub("def f(x):", "    return x", "f") == "def f(x):\n    return x"


def test_nothing_and_prose_continue_no_stub():
    for body in ("", "\n", "Sorry, no.", "    # just a comment", "    'text'"):
        assert continue_stub(STUB, body, "f") is None


def test_stub_names_are_the_stub_without_the_entry_point():
    assert stub_names(STUB, "f") == "from typing import List\nLIMIT = 3\ndef helper(x):\n    return x"
    assert stub_names("import math\n@cache\ndef f(x):\n", "f") == "import math"
    assert stub_names("import math\nclass Solution:\n    def f(self):\n", "Solution().f") == "import math"
    assert stub_names("import math\nprint('x')\ndef f(x): ...", "f") == "import math"
    assert stub_names("", "f") == ""


def test_stub_names_survive_stubs_that_do_not_parse():
    assert stub_names("import math\n\ndef f(x, y\n", "f") == "import math"
    assert stub_names("Write a function\ndef f(x):\n", "f") == ""


# Other languages


def test_blocks_of_other_languages():
    program = "#include <iostream>\nint main() { return 0; }"
    response = block("g++ a.cpp", "bash") + block(program, "c++") + block("int helper();", "cpp")
    assert code_of(response, language="cpp") == program
    assert code_of(block(program, ""), language="C++") == program
    assert code_of(block(program, "c"), language="cpp") == program
    assert code_of(program, language="cpp") == program
    assert code_of("I do not know.", language="cpp") is None
    assert how_of("```cpp\nint main() {", language="cpp") == "unclosed_fence"
    assert code_of(block("print(1)"), language="java") is None


# Anything


FENCES = ["```", "```python", "~~~", "````", "<think>", "</think>", "<answer>", "</answer>", "[PYTHON]", "<code>"]
LINES = ["def f(x):", "    return x", "class A:", "f(1)", "import math", ">>> f(1)", "...", "prose.", "", "(" * 300]
PIECES = st.sampled_from([*FENCES, *LINES, '"""', "'''", "x = '", "#", "\u00a0x"])


@given(st.lists(PIECES, max_size=14), st.sampled_from([None, "f", "A().f"]), st.sampled_from([None, STUB]))
def test_any_response_gives_a_program_or_none(lines, entry_point, stub):
    extracted = extract_code("\n".join(lines), entry_point=entry_point, stub=stub)
    assert extracted is None or extracted.code.strip()
    extract_code("\n".join(lines), language="cpp")


@given(st.text(max_size=60))
def test_any_text_parses_or_not(text):
    assert parse(text) is None or error_line(text) is None
    read_source(text)


def test_sources_that_would_warn_are_read_in_silence():
    for source in ("x = '\\d'", "1if x else 2", "x = 0x1for y in z"):
        assert parse(source) is None or isinstance(parse(source), ast.Module)
    assert parse("x = '\\d'") is not None
    assert parse("y = 1if x else 2") is not None


@pytest.mark.parametrize(
    "text",
    ["`" * 10**6, "```\n" * 250_000, "def " * 250_000, "```python\n" * 100_000, "(" * 10**6, "    x\n" * 200_000],
)
def test_megabytes_of_nothing_are_read(text):
    extracted = extract_code(text, entry_point="f", stub=STUB)
    assert extracted is None or isinstance(extracted.code, str)
