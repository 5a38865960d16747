"""What a forked job makes of calls: results in their order, errors in their places, and no value claimed by a hack."""

from typing import Any

import pytest
from inside_jobs import Outcome, call, programs, run_jobs

from truegold.verifiers.sandbox.inside.roles import roles_of
from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.encoding import encode
from truegold.verifiers.sandbox.inside.wire.value_types import Instance, Opaque, Undecodable

NODE = "class ListNode:\n    def __init__(self, val, next):\n        self.val, self.next = val, next\n"
HONEST = programs("honest_calls")
HACKS = programs("hacks")


def decoded_lines(outcome: Outcome) -> list[Any]:
    """What a parent makes of the lines: values, and the type name of what was raised."""
    decoded: list[Any] = []
    for line in outcome.lines:
        if isinstance(line, dict) and "r" in line:
            try:
                decoded.append(decode(line["r"]))
            except Undecodable:
                decoded.append(Opaque("undecodable"))
        elif isinstance(line, dict) and "raised" in line:
            decoded.append(line["raised"][0])
    return decoded


def test_every_role_has_a_name() -> None:
    assert {"main", "native", "calls", "serve", "tests", "one_process"} <= roles_of("tests").keys()


class TestCalls:
    def test_results_come_in_order_after_the_word_that_it_is_loaded(self) -> None:
        done = call("def add(a, b=1): return a + b", ["add", 1, 2], ["add", "a", "b"], ["add", 5])
        assert done.lines == [{"loaded": True}, {"r": 3}, {"r": "ab"}, {"r": 6}]

    def test_keyword_arguments(self) -> None:
        payload = {"prelude": "", "program": "def f(a, *, b): return [a, b]", "functions": ["f"], "codecs": {}}
        done = run_jobs(("calls", {**payload, "calls": [[0, [1], {"b": {"$": "tuple", "v": [2]}}]]}))[0]
        assert decoded_lines(done) == [[1, (2,)]]

    def test_entry_points_are_dotted_names_and_calls(self) -> None:
        program = """
class A:
    class B:
        def f(self): return 1
        @staticmethod
        def g(): return 2
    def b(self): return A.B()
"""
        assert decoded_lines(call(program, ["A.B().f"], ["A().b().f"], ["A.B.g"])) == [1, 1, 2]

    def test_one_instance_answers_all_calls(self) -> None:
        program = "class S:\n  def __init__(self): self.n = 0\n  def up(self): self.n += 1; return self.n"
        assert decoded_lines(call(program, ["S().up"], ["S().up"])) == [1, 2]

    def test_a_function_that_is_missing_does_not_hide_the_others(self) -> None:
        done = call("def f(): return 1\nclass S: pass", ["nope"], ["S().nope"], ["nope"], ["f"])
        assert done.values("missing") == ["nope", "S().nope"]
        assert decoded_lines(done) == ["NameError", "NameError", "NameError", 1]

    def test_a_class_that_cannot_be_made_has_raised(self) -> None:
        program = "class S:\n  def __init__(self): raise OSError('x')\n  def f(self): pass"
        assert decoded_lines(call(program, ["S().f"], ["S().f"])) == ["OSError", "OSError"]

    @pytest.mark.parametrize(
        ("program", "kind", "line"),
        [
            ("x = 1\ny = (", "SyntaxError", 2),
            ("x = 1\n\n1 / 0", "ZeroDivisionError", 3),
            ("import sys\nsys.exit(0)", "SystemExit", 2),
            ("import nowhere", "ModuleNotFoundError", 1),
            ("input()", "EOFError", 1),
            ("raise KeyboardInterrupt", "KeyboardInterrupt", 1),
        ],
    )
    def test_a_program_that_cannot_be_loaded(self, program: str, kind: str, line: int | None) -> None:
        done = call(program, ["f"])
        ((got, _, got_line),) = done.values("load_error")
        assert (got, got_line) == (kind, line)
        assert done.values("loaded") == decoded_lines(done) == []

    def test_what_runs_as_a_script_is_left_out(self) -> None:
        assert decoded_lines(call("def f(): return __name__\nif __name__ == '__main__':\n  input()", ["f"])) == [
            "solution"
        ]

    def test_the_prelude_shares_the_namespace(self) -> None:
        done = call(
            "def f(x: List[int]): return helper(x)", ["f", 3], prelude="from typing import *\ndef helper(x): return -x"
        )
        assert decoded_lines(done) == [-3]

    @pytest.mark.parametrize(
        ("body", "raised"),
        [
            ("raise ValueError('no')", "ValueError"),
            ("sys.exit(0)", "SystemExit"),
            ("raise KeyboardInterrupt", "KeyboardInterrupt"),
            ("f()", "RecursionError"),
            ("raise MemoryError", "MemoryError"),
            ("class E(Exception):\n    def __str__(self): 1 / 0\n  raise E", "E"),
            ("return itertools.count()", "ResultTooLarge"),
            ("return [0] * 10**9", "MemoryError"),
            ("return [[0] * 1000] * 10**6", "ResultTooLarge"),
            ("return 'x' * 10**8", "ResultTooLarge"),
            ("return (1 / 0 for _ in [1])", "ZeroDivisionError"),
        ],
    )
    def test_calls_that_fail_leave_the_next_ones(self, body: str, raised: str) -> None:
        limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        done = call(f"import itertools, sys\n{limit}def f():\n  {body}\ndef g(): return 1", ["f"], ["g"])
        assert decoded_lines(done) == [raised, 1]

    def test_an_error_says_what_and_where(self) -> None:
        (raised,) = call("def f(x):\n  return g(x)\ndef g(x):\n  raise KeyError('é')", ["f", 1]).values("raised")
        assert raised == ["KeyError", "'é'", 4]

    def test_a_crash_loses_only_what_comes_after(self) -> None:
        done = call("import os\ndef f(x):\n  if x == 3: os._exit(0)\n  return x", *(["f", n] for n in range(6)))
        assert decoded_lines(done) == [0, 1, 2]

    def test_arguments_are_fresh_for_every_call(self) -> None:
        shared = [1, 2]
        assert (
            decoded_lines(call("def f(x):\n  x.append(len(x))\n  return x", ["f", shared], ["f", shared]))
            == [[1, 2, 2]] * 2
        )

    def test_iterators_are_read_to_their_end(self) -> None:
        (generated,) = decoded_lines(call("def f(n):\n  yield from range(n)", ["f", 3]))
        assert generated.elements == [0, 1, 2]

    @pytest.mark.parametrize("definition", [NODE, ""])
    def test_linked_lists_come_as_the_programs_own_class(self, definition: str) -> None:
        class ListNode:
            def __init__(self, val: int, next: Any = None) -> None:
                self.val, self.next = val, next

        program = """
def reverse(head):
    last = None
    while head:
        head.next, last, head = last, head, head.next
    return last
"""
        (got,) = decoded_lines(call(definition + program, ["reverse", ListNode(1, ListNode(2, ListNode(3)))]))
        assert got == decode(encode(ListNode(3, ListNode(2, ListNode(1)))))

    def test_declared_classes_come_and_go(self) -> None:
        program = "class P:\n  def __init__(self, x, y): self.x, self.y = x, y\ndef swap(p): return P(p.y, p.x)"
        codecs = {"P": ["x", "y"]}
        (line,) = call(program, ["swap", Instance("P", {"x": 1, "y": 2})], codecs=codecs).values("r")
        assert decode(line, codecs).fields == {"x": 2, "y": 1}

    @pytest.mark.parametrize("program", HONEST.values(), ids=HONEST.keys())
    def test_honest_programs(self, program: str) -> None:
        assert decoded_lines(call(program, ["f", 7])) == [7]

    @pytest.mark.parametrize("program", HACKS.values(), ids=HACKS.keys())
    def test_hacks_claim_no_right_value(self, program: str) -> None:
        assert not any(value == 3 for value in decoded_lines(call(program, ["add", 1, 2], ["add", 1, 2])))
