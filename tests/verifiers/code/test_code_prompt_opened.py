"""Programs whose block the prompt opened: the response begins inside it and holds nothing but its end.

prompt    Complete the function.\\n```python\\ndef add(a, b):\\n
response      return a + b\\n```\\nThis adds the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent

import pytest
from tables import is_full_run, rows

from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.response_program import extract_code

STUB = 'def add(a, b):\n    """Return the sum."""\n'
BODY = "    total = a + b\n    return total"
ADD = "def add(a, b):\n    total = a + b\n    return total"
DRAFT = "def add(a, b):\n    return a - b"
SUMS = "a, b = map(int, input().split())\nprint(a + b)"
CPP = "#include <iostream>\nint main() {\n    int a, b;\n    std::cin >> a >> b;\n    std::cout << a + b;\n}"
BASH = "read a b\necho $((a + b))"
TESTS = {"tests": {"type": "asserts", "code": "assert add(1, 2) == 3\nassert add(-1, 1) == 0", "entry_point": "add"}}
WITH_STUB = {"tests": {**TESTS["tests"], "stub": STUB}}
STDIO = {"tests": {"type": "stdio", "cases": [{"input": "3 4\n", "output": "7\n"}]}}

ENDS = {
    "a fence": "{}\n```",
    "a fence and a line end": "{}\n```\n",
    "a fence on the last line of code": "{}```",
    "an indented fence": "{}\n    ```\n",
    "a fence of four backticks": "{}\n````\n",
    "a fence of tildes": "{}\n~~~\n",
    "a fence and prose": "{}\n```\n\nThis function adds the two numbers.",
    "a fence and prose in Chinese": "{}\n```\n这个函数把两个数相加。\n",
    "a fence with Windows line ends": "{}\r\n```\r\n",
    "blank lines before the fence": "{}\n\n\n```\n",
    "a fence and a block of usage": "{}\n```\n\nExample:\n\n```python\nprint(add(1, 2))\n```\n",
    "a fence and a block without a language": "{}\n```\nExample:\n```\n>>> add(1, 2)\n3\n```\n",
    "a fence and an output block": "{}\n```\nOutput:\n```text\n3\n```\n",
    "a fence and a token": "{}\n```<|im_end|>",
    "a token": "{}<|EOT|>",
    "a token on a line of its own": "{}\n</s>",
    "an end of sentence": "{}<｜end▁of▁sentence｜>",
    "the end of the answer": "{}\n<eoa>\n",
    "[DONE]": "{}\n[DONE]",
    "[DONE] and the next task": "{}\n[DONE]\n\nHere is your task: ...\n[BEGIN]\ndef sub(a, b): return 0\n[DONE]",
    "</code>": "{}\n</code>",
    "[/PYTHON]": "{}\n[/PYTHON]\nIt adds.",
    "</answer>": "{}\n</answer>",
    "a fence and </answer>": "{}\n```\n</answer>",
    "three quotes": "{}\n'''",
}


def score(response, info):
    return CodeVerifier()(response, info=info).score


def code_of(response, **options):
    extracted = extract_code(response, **options)
    return extracted and extracted.code


@rows("end", ENDS.values())
def test_a_program_ends_where_the_block_of_the_prompt_ends(end):
    response = end.replace("{}", ADD)
    assert code_of(response, entry_point="add").rstrip() == ADD


@rows("end", ENDS.values())
def test_a_body_ends_where_the_block_of_the_prompt_ends(end):
    response = end.replace("{}", BODY)
    assert code_of(response, entry_point="add", stub=STUB).rstrip() == STUB + BODY


@rows("end", ENDS.values())
def test_a_program_without_an_entry_point_ends_where_the_block_of_the_prompt_ends(end):
    assert code_of(end.replace("{}", SUMS)).rstrip() == SUMS


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(("language", "program"), [("cpp", CPP), ("bash", BASH)])
def test_a_program_of_another_language_ends_where_the_block_of_the_prompt_ends(end, language, program):
    if end == ENDS["three quotes"]:
        end = "{}\n```"
    assert code_of(end.replace("{}", program), language=language).rstrip() == program


@rows(
    "response",
    [
        f"[BEGIN]\n{ADD}\n[DONE]",
        f"[BEGIN]\n{indent(ADD, '    ')}\n[DONE]\n",
        f"Here it is.\n[BEGIN]\n{ADD}\n[DONE]",
        f"[BEGIN]\n{ADD!r}\n[DONE]",
        f"x = '[DONE]'\n{ADD}\n[DONE]",
        f"{ADD}\n[done]",
        f"[BEGIN]\n```python\n{ADD}\n```\n[DONE]",
        f"Here is the function:\n\n{ADD}\n```\n",
        f"Sure:\n{ADD}\n```\nIt adds.",
        f"```python\n{ADD}\n```\n```",
        f"{DRAFT}\n```\nThat subtracts. Corrected:\n```python\n{ADD}\n```\n",
        f"{ADD}\n```\nprint(add(1, 2))\n```\n",
        'def add(a, b):\n    """Adds.\n\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b\n```\n',
        'def add(a, b):\n    """Adds.\n\n```\nadd(1, 2)\n```\n    """\n    return a + b',
    ],
)
def test_a_right_program_is_paid(response):
    assert score(response, TESTS) == 1.0


@pytest.mark.parametrize(
    "response",
    [
        f"{BODY}\n```",
        "return a + b\n```",
        "total = a + b\n    return total\n```\n",
        f"{BODY}\n\n\nprint(add(1, 2))\n```\n",
        f"{BODY}\n```\n\nExample:\n\n```python\nadd(1, 2)\n```",
        f"{BODY}\n```\n\n```python\n{DRAFT.replace('add', 'sub')}\n```",
        f"    ```\n{BODY}\n    ```\n",
    ],
)
def test_a_right_body_is_paid(response):
    assert score(response, WITH_STUB) == 1.0


@rows(
    "response",
    [
        f"{DRAFT}\n```",
        f"{DRAFT}\n[DONE]",
        f"{ADD}\n```\nNo, it has to subtract:\n```python\n{DRAFT}\n```\n",
        f"{DRAFT}\n[DONE]\n[BEGIN]\n{ADD}\n[DONE]",
        "```",
        "```\n```",
        "It adds a and b.\n```",
        "[DONE]",
        "[BEGIN]\n[DONE]",
        "return a + b\n```",
    ],
)
def test_a_wrong_program_or_none_earns_nothing(response):
    assert score(response, TESTS) == 0.0


def test_a_program_ends_at_the_fence_where_the_tests_name_a_function_of_python_alone():
    code = "def test_a():\n    total = add(1, 2)\n    assert sum([total]) == 3"
    assert score(f"{ADD}\n```\n\nThis works.", {"tests": {"type": "asserts", "code": code}}) == 1.0


def test_a_draft_before_a_corrected_block_is_prose():
    failing = "This fails:\n```\nadd(1, 2) -> -1\n```\nCorrected:\n"
    assert score(f"{DRAFT}\n{failing}```\n{ADD}\n```\n", TESTS) == 1.0
    assert score(f"{ADD}\n{failing}```\n{DRAFT}\n```\n", TESTS) == 0.0


@pytest.mark.parametrize(
    "before",
    [
        "The tag closes with </s>\n",
        "Parts are joined by [SEP]\n",
        "Put it before </answer>\n",
        "[DONE] thinking.\n",
        "<eos>",
    ],
)
def test_a_mark_in_prose_or_before_the_program_ends_nothing(before):
    assert score(f"{before}```python\n{ADD}\n```\n", TESTS) == 1.0


def test_programs_on_stdin_end_at_the_fence_too():
    assert score(f"{SUMS}\n```\n\nIt reads two numbers.", STDIO) == 1.0
    assert score(f"{SUMS.replace('+', '-')}\n```\n", STDIO) == 0.0
    assert score(f"{CPP}\n```\n", {**STDIO, "language": "cpp"}) == 1.0


def test_code_before_a_whole_block_is_prose():
    """A fence that opens a block is none that closes one."""
    assert code_of(f"import math\n```\n{SUMS}\n```\n") == SUMS
    assert code_of(f"Use x = 1 here.\n\n```\n{ADD}\n```\n", entry_point="add") == ADD
    assert code_of(f"def add(a, b)\n```\n{ADD}\n```\n", entry_point="add") == ADD


def test_marks_inside_texts_of_a_program_end_nothing():
    for text in (
        "# ends with </s>",
        '"""\n[DONE]\n"""',
        "s = \"'''\"",
        'x = "</s>"',
        'DONE = "[DONE]"',
        "y = '<eoa>'",
        'z = "```"',
    ):
        program = f"{text}\n{ADD}"
        assert code_of(program, entry_point="add") == program
        assert code_of(f"{program}\n```\n", entry_point="add").rstrip() == program
        assert code_of(f"```python\n{program}\n```\n", entry_point="add") == program


FRESH = [
    json.loads(line) for line in Path(__file__).with_name("fresh_fences.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Responses by an author who had read the documentation and not the code; `want` is his."""


def chosen() -> list[dict]:
    """Return all of them; in `make test` of those that have to be compiled one."""
    return [
        case for case in FRESH if is_full_run() or not case["name"].startswith("cpp") or case["name"] == "cpp closer"
    ]


@rows("case", chosen())
def test_responses_of_another_author(case):
    assert score(case["response"], case["info"]) == case["want"]
