"""Containers that objects of the solution hold, as tests that run in another process see and change them."""

import pytest
from inside_jobs import check
from tables import rows

STACK = """
from collections import defaultdict, deque
class Stack:
    limits = [3]
    def __init__(self):
        self.data, self.counts, self.queue, self.seen = [], defaultdict(int), deque(maxlen=3), set()
        self.rows = [{"name": "a", "count": 1}]
        self.twice = [self.rows, self.rows]
    def push(self, x): self.data.append(x); self.counts[x] += 1; self.queue.append(x); self.seen.add(x)
    def top(self): return self.data[-1]
    def clear(self): self.data = []
    def empty(self): self.data.clear()
    def total(self): return sum(row["count"] for row in self.rows)
    def fill(self, n): self.data[:] = range(n)
"""
SEEN = {
    "a list": "s = Stack()\ns.data.append(5)\nassert s.top() == 5",
    "a dictionary": "s = Stack()\ns.counts['x'] = 7\ns.push('x')\nassert s.counts['x'] == 8",
    "a dictionary in a list": "s = Stack()\ns.rows[0]['count'] = 4\nassert s.total() == 4",
    "what was put into it": "s = Stack()\ns.rows.append({'name': 'b', 'count': 2})\n"
    "s.rows[1]['count'] = 5\nassert s.total() == 6",
    "a deque": "s = Stack()\ns.queue.extend([1, 2, 3])\ns.push(4)\nassert list(s.queue) == [2, 3, 4]",
    "a set": "s = Stack()\ns.seen.add(1)\ns.push(2)\nassert s.seen == {1, 2}",
    "of the class": "Stack.limits.append(4)\nassert Stack().limits == [3, 4]",
    "what the solution does": "s = Stack()\nd = s.data\ns.push(1)\ns.push(2)\nassert d == [1, 2]",
    "emptied by the solution": "s = Stack()\ns.push(1)\nd = s.data\ns.empty()\nassert d == []",
    "replaced by the solution": "s = Stack()\ns.push(1)\nd = s.data\ns.clear()\nassert d == [1] and s.data == []",
    "the same object": "s = Stack()\nassert s.data is s.data and s.twice[0] is s.rows and s.twice[0] is s.twice[1]",
    "of two objects": "s, t = Stack(), Stack()\n"
    "s.data.append(1)\nt.data.append(2)\nassert (s.top(), t.top()) == (1, 2)",
    "set by the tests": "s = Stack()\ns.data = [1]\ns.data.append(2)\nassert s.top() == 2",
    "in a loop": "s = Stack()\nfor i in range(30):\n    s.data.append(i)\n    assert s.top() == i",
    "more than is lent": "s = Stack()\ns.fill(10000)\nassert len(s.data) == 10000",
}


@rows("code", SEEN.values())
def test_containers_are_alike_on_both_sides(code: str) -> None:
    done = check(STACK, code)
    assert done.paid, done.failures


WRONG = {
    "a top of its own": (STACK.replace("return self.data[-1]", "return 0"), SEEN["a list"]),
    "a total of its own": (STACK.replace('row["count"] for', "1 for"), SEEN["a dictionary in a list"]),
    "a copy": (STACK.replace("self.data.append(x);", "self.data = [*self.data, 0];"), SEEN["what the solution does"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_objects_still_fail(name: str) -> None:
    assert not check(*WRONG[name]).paid


def test_an_object_that_compares_as_it_likes_is_not_lent() -> None:
    solution = "class Yes(list):\n    def __eq__(self, other): return True\nclass Box:\n    data = Yes()"
    assert not check(solution, "assert Box().data == [1]").paid


def test_what_cannot_travel_into_a_lent_container_needs_one_process() -> None:
    code = "class Own: pass\ns = Stack()\ns.data.append(Own)\nassert s.top() is not None"
    assert "type" in str(check(STACK, code).tester.values("cannot_isolate"))


LIES = """
import json, os, socket, sys
def answer(reply):
    for descriptor in range(3, 64):
        try: os.write(descriptor, json.dumps(reply).encode() + b"\\n")
        except OSError: pass
class Stack:
    @property
    def data(self): {lie}
"""


@pytest.mark.parametrize(
    "reply",
    [
        ["lent", 0, [], []],
        ["lent", 0, [[]], [[5, []]]],
        ["lent", 0, [7], []],
        ["lent", -1, [[]], []],
        ["lent", 0, [[]], 5],
    ],
    ids=str,
)
def test_forged_loans_end_the_session(reply: list[object]) -> None:
    solution = LIES.replace("{lie}", f"answer({reply!r}); return []")
    assert not check(solution, "s = Stack()\nassert s.data == [1]").paid
