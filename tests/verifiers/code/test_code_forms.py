"""The forms in which programs stand in responses, each with a right program and a wrong one."""

import json
import time
from itertools import product

from tables import rows

from truegold.verifiers.code.response_program import extract_code
from truegold.verifiers.code.verifier import CodeVerifier

P = "def add(a, b):\n    total = a + b\n    return total"
B = "    total = a + b\n    return total"
STUB = 'def add(a: int, b: int) -> int:\n    """Adds.\n\n    >>> add(1, 2)\n    3\n    """\n'
TABS = 'def add(a, b):\n\t"""Adds."""\n'
MID = "def add(a, b):\n    total = a "


def lines(form):
    return "\n".join(form.format(number, line) for number, line in enumerate(P.split("\n"), 1))


def fenced(text, info="python", fence="```"):
    return f"{fence}{info}\n{text}\n{fence}"


SESSION = ">>> " + P.replace("\n", "\n... ") + "\n>>> add(1, 2)\n3"
HUNK = "@@ -1,3 +1,3 @@\n def add(a, b):\n-    total = a * b\n+    total = a + b\n     return total"
CELLS = [{"cell_type": "markdown", "source": ["# a + b"]}, {"cell_type": "code", "source": P.splitlines(True)}]
ENDS = ("<|im_end|>", "</s>", "<|eot_id|>", "<|endoftext|>", "[DONE]", "<end_of_turn>", "<｜end▁of▁sentence｜>",
        "<|user|>", "<|observation|>", "<|END_OF_TURN_TOKEN|>", "<|endofturn|>", "<turn|>", "<｜User｜>", "[/INST]",
        "<pad><pad>", "<|start_header_id|>user", "<unk>", "<|file_separator|>")  # fmt: skip
FORMS = {
    "body": (B, STUB),
    "body without its indentation": (B.replace("    ", ""), STUB),
    "body, first line without its indentation": (B.strip(), STUB),
    "body in tabs": (B.replace("    ", "\t"), STUB),
    "body in spaces, stub in tabs": (B, TABS),
    "body fenced, without its indentation": (fenced(B.replace("    ", "")), TABS),
    "body behind the docstring": (STUB.partition("\n")[2] + B, STUB),
    "definition repeated": (P, STUB),
    "stub repeated": (STUB + B, STUB),
    "a stub, then the program": (f"{fenced('def add(a, b):' + chr(10) + '    pass')}\nNow:\n{fenced(P)}", None),
    "prompt ends with def": (P[4:] + "\n```\nIt adds.", None),
    "prompt ends with the parenthesis": (P[8:] + "\n```\nIt adds.", None),
    "prompt ends with the parenthesis, then usage": (f"{P[8:]}\n```\nSo:\n{fenced('print(add(1, 2))')}", None),
    "prompt ends within a line": (P[len(MID) :] + "\n```", MID),
    "tildes": (fenced(P, "", "~~~"), None),
    "four backticks around three": (fenced(f"# Answer\n{fenced(P)}", "markdown", "````"), None),
    "open": (f"So:\n```python\n{P}", None),
    "closed alone": (f"{P}\n```\nIt adds.", None),
    "in a list": ("1. So:\n\n   " + fenced(P).replace("\n", "\n   ") + "\n2. Done", None),
    "quoted": ("> " + fenced(P).replace("\n", "\n> "), None),
    "quoted without a fence": ("Here:\n\n> " + P.replace("\n", "\n> "), None),
    "indented without a fence": ("Here:\n\n    " + P.replace("\n", "\n    ") + "\n\nIt adds.", None),
    "label of a session": (fenced(SESSION, "pycon"), None),
    "label that says nothing": (fenced(P, "text"), None),
    "name of a file": (fenced(P, "add.py"), None),
    "label on the first line": (fenced(f"python\n{P}", ""), None),
    "code behind the label": (f"```python {P}\n```", None),
    "triple quotes": (f"'''python\n{P}\n'''", None),
    "numbers": (fenced(lines("{0}  {1}")), None),
    "numbers and bars": (fenced(lines("{0:4} | {1}")), None),
    "numbers and colons": (fenced(lines("{0}: {1}")), None),
    "numbers without a fence": (lines("{0:>2} {1}"), None),
    "session": (SESSION, None),
    "session between prose": (f"You can try it:\n\n{SESSION}\n\nThat is all.", None),
    "cells of a session": ("In [1]: " + P.replace("\n", "\n   ...: ") + "\n\nIn [2]: add(1, 2)\nOut[2]: 3", None),
    "marks of cells": (fenced(f"In [1]:\n{P}\n\nOut[1]: 3"), None),
    "diff": (fenced("+" + P.replace("\n", "\n+"), "diff"), None),
    "hunk": (fenced(HUNK, "diff"), None),
    "notebook": (json.dumps({"cells": CELLS, "nbformat": 4}), None),
    "commands": (fenced(f"!pip install numpy\n%matplotlib inline\n{P}"), None),
    "json": (json.dumps({"reasoning": "def add", "code": P}), None),
    "json fenced": (fenced(json.dumps({"solution": fenced(P)}), "json"), None),
    "call of a tool": ("<tool_call>\n" + json.dumps({"name": "f", "arguments": {"code": P}}) + "\n</tool_call>", None),
    "entities": (fenced(P + "\n\nif 1 &lt; 2: pass"), None),
    "pre": (f'<pre><code class="language-python">\n{P}\n</code></pre>', None),
    "cdata": (f"<code><![CDATA[\n{P}\n]]></code>", None),
    "spaces that do not break": (fenced(P.replace("    ", "\u00a0" * 4)), None),
    "escaped": (fenced(P.replace("\n", "\\n")), None),
    "pre without a class": (f"<pre>\n{P}\n\nif 1 &lt; 2: pass\n</pre>\nfine", None),
    "code within paragraphs": (f"<p>Here:</p>\n<code class='py'>\n{P}\n</code>\n<p>Done</p>", None),
    "parameter of a tool": (f'<invoke name="f"><parameter name="code">{P}</parameter></invoke>', None),
    "calls of tools": (json.dumps({"tool_calls": [{"function": {"arguments": json.dumps({"code": P})}}]}), None),
    "words beside a call": (json.dumps({"content": "I add.", "tool_calls": [{"arguments": {"code": P}}]}), None),
    "json with line breaks": ('{"code": "' + P + '"}', None),
    "json that holds a block": (json.dumps([{"content": fenced(P)}]), None),
    "merge": (fenced(f"<<<<<<< HEAD\n{P.replace('+', '*')}\n=======\n{P}\n>>>>>>> fix"), None),
    "patch": (fenced(f"diff --git a/s.py b/s.py\nindex 0..1 100644\n--- a/s.py\n+++ s.py\n{HUNK}", "diff"), None),
    "numbers with a letter": (fenced(lines("L{0}: {1}")), None),
    "numbers in brackets": (fenced(lines("[{0}] {1}")), None),
    "label and words": (fenced(P, "Python代码"), None),
    "within a line": ("Use `def add(a, b): return a + b` here, not `sum`.", None),
    "two versions between prose": (f"{P.replace('+', '*')}\nThat is wrong. Now:\n{P}\nThis is right.", None),
    **{f"{mark!r} behind the fence": (f"So:\n{fenced(P)}{mark}\nThis adds.", None) for mark in "。.；;：:，!）)"},
    **{f"cut off {name}": (f"```python\n{P}\n\n{cut}", None) for name, cut in {
        "in a test": "def test_add():\n    assert add(1, 2) ==", "in a text": "print('the sum",
        "in a docstring": 'def test():\n    """Tests', "in a guard": "if __name__ == '__main__':\n    print(add(",
    }.items()},
    "beginning of a tool": (f"<|python_tag|>{P}<|eom_id|>", None),
    "helper first": (f"{fenced('def plus(x, y):' + chr(10) + '    return a_of(x) + y')}\n"
                     f"{fenced('a_of = int')}\n{fenced(P)}", None),
    **{f"{end} behind a fence": (fenced(P) + end, None) for end in ENDS},
    **{f"{end} behind the program": (f"```python\n{P}\n{end}", None) for end in ENDS},
    **{f"{end} behind a body": (f"{B}\n{end}", STUB) for end in ENDS},
}  # fmt: skip


@rows("form, operator", product(FORMS, "+-"))
def test_the_program_is_found_in_every_form(form, operator):
    response, stub = FORMS[form]
    old, new = ("+ b", f"{operator} b")
    extracted = extract_code(response.replace(old, new), entry_point="add", stub=stub)
    names = {}
    exec(extracted.code, names)
    assert names["add"](7, 2) == (9 if operator == "+" else 5)


WRONG = P.replace("+", "-")


@rows(
    "response",
    [
        f"{fenced(P)}\nor\n{fenced(WRONG)}",
        f"{P[8:]}\n```\nBetter:\n{fenced(WRONG)}",
        f"{fenced(WRONG)}\n{fenced(json.dumps({'code': P}), 'json')}",
        f"{fenced(json.dumps({'code': P}), 'json')}\n{fenced(WRONG)}",
        fenced("-" + P.replace("\n", "\n-") + "\n+" + WRONG.replace("\n", "\n+"), "diff"),
        f"{WRONG}\n\n> " + P.replace("\n", "\n> "),
        f"{fenced(WRONG)}<|im_end|>\n<|im_start|>user\n{fenced(P)}",
        f"{fenced(WRONG)}\n<|user|>\n{fenced(P)}",
        json.dumps({"draft": P, "code": WRONG}),
        f"{P[8:]}\n```\nBetter:\n{fenced('def add(a, b:')}",
        fenced(WRONG + '\n\n"""\n+' + P.replace("\n", "\n+") + '\n"""'),
        f"{fenced(P, 'text')}\n{fenced(WRONG)}",
        f"{fenced(WRONG)}\n{fenced(P, 'text')}",
        f"{P}\nBetter:\n{WRONG}\nDone.",
        f"<code class='a'>\n{P}\n</code>\nor\n<code class='a'>\n{WRONG}\n</code>",
        f"```python\n{P}\n\n{WRONG}\n    return (",
        f"```python\n{P}\n\nadd = lambda a, b: (",
        f"```python\n{P}\n\nadd = wrapped(add",
        "```python\ndef add(a, b):\n    return plus(a, b)\n\ndef plus(a, b):\n    return a +",
        fenced(f"<<<<<<< HEAD\n{P}\n=======\n{WRONG}\n>>>>>>> fix"),
        f"{fenced(P)}。\nor\n{fenced(WRONG)}。",
        "Not `def add(a, b): return a + b` but `def add(a, b): return a - b`",
        json.dumps([{"code": P}, {"code": WRONG}]),
        f"{P}\nor\n{WRONG}\n" * 20,
    ],
)
def test_of_two_programs_not_the_one_that_passes_is_taken(response):
    tests = {"type": "asserts", "code": "assert add(7, 2) == 9", "entry_point": "add"}
    assert CodeVerifier()(response, info={"tests": tests}).score == 0


def test_text_behind_numbers_and_marks_is_no_program():
    assert extract_code("1. add a\n2. return it", entry_point="add") is None
    assert extract_code("- a\n- b\n+ c", entry_point="add") is None
    assert extract_code('{"code": 5}', entry_point="add") is None
    assert extract_code('{"cells": 5}', entry_point="add") is None


def test_the_problem_may_end_within_a_block_that_the_response_goes_on_with():
    tests = {"type": "asserts", "code": "assert add(7, 2) == 9", "entry_point": "add"}
    problem = f"Add two numbers.\n\n```python\n{MID}"
    scores = [
        CodeVerifier()(f"{rest}\n```", problem=problem, info={"tests": tests}).score
        for rest in (P[len(MID) :], WRONG[len(MID) :])
    ]
    assert scores == [1, 0]


@rows(
    "piece",
    [
        *("```json\n{", "{}", "<tool_call>\n{", "1 | ", ">>> ", "> ```\n", "&lt;", "In [1]: ", "!", " "),
        *("<<<<<<< a\n", "<<<<<<< a\n=======\n", "def a(): 1\n!\n", "</a", "<a ", "`", "```python\ndef a(:\n"),
    ],
)
def test_many_of_a_mark_are_read_quickly(piece):
    began = time.process_time()
    extract_code(piece * (400_000 // len(piece)), entry_point="add")
    assert time.process_time() - began < 5


LEETCODE = {
    "List[int]": "self, xs: List[int]) -> int:\n        return sum(xs)",
    "Optional": "self, xs: Optional[List[int]]) -> int:\n        return sum(xs)",
    "Counter": "self, xs):\n        return sum(x * n for x, n in Counter(xs).items())",
    "defaultdict": "self, xs):\n        d = defaultdict(int)\n        for x in xs: d[0] += x\n        return d[0]",
    "deque": "self, xs):\n        return sum(deque(xs))",
    "accumulate": "self, xs):\n        return list(accumulate(xs))[-1]",
    "reduce": "self, xs):\n        return reduce(lambda a, b: a + b, xs)",
    "heapq": "self, xs):\n        heapify(xs)\n        return sum(heappop(xs) for _ in range(len(xs)))",
    "inf": "self, xs):\n        return sum(x for x in xs if x < inf)",
    "math": "self, xs):\n        return sum(gcd(x, 0) for x in xs)",
    "cache": "self, xs):\n        @cache\n        def f(i): return i and xs[i - 1] + f(i - 1)\n        return f(3)",
    "its own gcd": "self, xs):\n        def gcd(a, b): return 10\n        return gcd(1, 1)",
}


def test_a_class_solution_has_the_names_of_leetcode():
    info = {
        "tests": [{"input": "[1, 2, 7]", "output": "10"}],
        "entry_point": "total",
        "starter_code": "class Solution:\n    def total(self, xs: List[int]) -> int:\n        ",
    }
    other = info | {"tests": [{"input": "[1, 2, 7]", "output": "11"}]}
    for name, method in LEETCODE.items():
        program = fenced(f"class Solution:\n    def total({method}")
        assert CodeVerifier()(program, info=info).score == 1, name
        assert CodeVerifier()(program, info=other).score == 0, name
    alone = info | {"starter_code": "def total(xs: List[int]) -> int:"}
    assert CodeVerifier()(fenced("def total(xs: List[int]): return sum(xs)"), info=alone).score == 0
