"""Suites as their authors meant them: what a right program is paid for, and what a look-alike of it is not.

Each kind has a suite, programs that pass it where prompt, program and tests are one file, and programs that must not be
paid.
"""

from apart_kinds import FIGURES, FILES, PACKAGES, PATCHES, SCRIPTS, STAND_INS, STREAMS, TABLES, Kind
from tables import is_full_run, rows

from truegold.verifiers.code import CodeVerifier


def score(kind: Kind, program: str) -> float | None:
    form = "unittest" if "unittest.TestCase" in kind.suite else "asserts"
    tests = {"type": form, "code": kind.suite, "entry_point": kind.entry_point, "prelude": kind.prelude}
    return CodeVerifier()(f"```python\n{program}\n```", info={"tests": tests}).score


CHECK = "def check(candidate):\n    assert candidate('a1b2') == ['1', '2']\n"
DIGITS = "def digits(s):\n    return re.findall('[0-9]', s)"
IMPORTS = {
    "a module": Kind(f"import re\n{CHECK}", (DIGITS,), ("def digits(s): return re.findall('[a-z]', s)",), "digits"),
    "several in a line": Kind(f"import os, re\n{CHECK}", (DIGITS,), (), "digits"),
    "another name": Kind(f"import re as r\n{CHECK}", (DIGITS.replace("re.", "r."),), (DIGITS,), "digits"),
    "a submodule": Kind(
        "import os.path as p\nassert f('a/b') == 'b'\n", ("def f(x): return p.basename(x)",), ("def f(x): return p",)
    ),
    "its package": Kind("import os.path\nassert f('a/b') == 'b'", ("def f(x): return os.path.basename(x)",)),
    "a function": Kind(f"from re import findall\n{CHECK}", (DIGITS.replace("re.", ""),), (DIGITS,), "digits"),
    "a star": Kind("from math import *\nassert f(16) == 4\n", ("def f(x): return sqrt(x)",)),
    "within try": Kind(f"try:\n    import re\nexcept ImportError:\n    re = None\n{CHECK}", (DIGITS,), (), "digits"),
    "a missing one": Kind(
        f"try:\n    import no_such_one\nexcept ImportError:\n    pass\nimport re\n{CHECK}", (DIGITS,), (), "digits"
    ),
    "the program's own name wins": Kind(
        "from math import floor as f, ceil as g\nassert g(1.2) == 2 and h(1.2) == 'own'\n",
        ("def f(x): return 'own'\ndef h(x): return f(x)",),
        ("def h(x): return f(x)",),
    ),
    "inside a function of the tests": Kind(
        "def check(candidate):\n    import re\n    assert candidate('a1b2') == ['1', '2']\n",
        (f"import re\n{DIGITS}",),
        (DIGITS,),
        "digits",
    ),
    "the program itself": Kind(
        "from solution import answer\nimport solution\nassert answer(2) == 4\n",
        ("def answer(x): return x * x",),
        ("import solution\ndef answer(x): return 0", "from tests import expected as answer"),
    ),
    "of a unittest": Kind(
        "import unittest, math\nclass T(unittest.TestCase):\n"
        "    def test_area(self): self.assertAlmostEqual(area(1), math.pi)\n",
        ("def area(r): return math.pi * r * r",),
        ("def area(r): return math.e * r * r", "def area(r): return unittest.mock.ANY"),
    ),
    "in one process": Kind(f"import gc, re\n{CHECK}", (DIGITS,), (), "digits"),
}

SUM = "def test_sum():\n    assert add(1, 2) == 3\n"
OTHERS = "__version__ = '1'\ndef _low(x): return x\nclass Stack:\n    def push(self, x): return x\n"
ADD = f"{OTHERS}def add(a, b): return a + b"
LESS = f"{OTHERS.replace('x): return x', 'x): return 0')}def add(a, b): return 0"
NOT_ALL = ADD.replace("def add", "def more").replace("_low", "_high").replace("Stack", "Heap")
MODULES = {
    suite: Kind(suite, (ADD,), (LESS, NOT_ALL))
    for suite in (
        f"from add_numbers import add\n{SUM}",
        f"from src.pkg.sums import add\n{SUM}",
        f"from pkg.sums import *\n{SUM}",
        f"import gc\nfrom pkg.sums import *\n{SUM}",
        f"from pkg import sums\nfrom pkg.sums import add\n{SUM}",
        f"try:\n    from pkg.sums import add\nexcept ImportError:\n    from sums import add\n{SUM}",
        f"try:\n    import no_such_re as re\nexcept ImportError:\n    import re\nfrom add_numbers import add\n{SUM}",
        f"from pkg import __version__, add\ndef test_v():\n    assert __version__ == '1'\n{SUM}",
        "import pkg.sums\ndef test_sum():\n    assert pkg.sums.add(1, 2) == 3\n",
        "import gc, pkg.sums\ndef test_sum():\n    assert pkg.sums.add(1, 2) == 3\n",
        "from pkg import sums\ndef test_sum():\n    assert sums.add(1, 2) == 3\n",
        "import add_numbers as m\ndef test_sum():\n    assert m.add(1, 2) == 3 and m.__name__ == 'add_numbers'\n",
        "from pkg.sums import _low, add\nassert _low(5) == 5\nassert add(1, 2) == 3\n",
        "def test_sum():\n    from add_numbers import add\n    assert add(1, 2) == 3\n",
        "from sums import Stack\nclass Two(Stack): pass\nassert Two().push(1) == 1\n",
        "import unittest\nfrom boltons.sums import add\nclass T(unittest.TestCase):\n"
        "    def test_sum(self): self.assertEqual(add(1, 2), 3)\n",
        "from unittest.mock import patch\nimport pkg.sums\ndef test_sum():\n"
        "    with patch('pkg.sums._low', return_value=3):\n        assert pkg.sums._low(1) == 3\n"
        "    assert pkg.sums.add(1, 2) == 3\n",
        "from pytest import raises\nfrom sums import add\ndef test_sum():\n    with raises(TypeError): add(None, 1)\n",
    )
}

RUN = "def run(x):\n    return Stack().push(x)\n"
CHECK_RUN = "def check(candidate):\n    assert candidate(1) == 1\n"
HELPERS = {
    suite: Kind(suite, (ADD, f"{ADD}\ndef run(x): return 7"), (LESS, f"{LESS}\ndef run(x): return 1"), "run")
    for suite in (
        RUN + CHECK_RUN,
        f"{RUN}{CHECK_RUN}check(run)\n",
        f"import gc\n{RUN}{CHECK_RUN}",
        f"from solution import Stack\n{RUN}{CHECK_RUN}",
        f"def push(x): return Stack().push(x)\ndef run(x):\n    return push(x)\n{CHECK_RUN}",
        f"{RUN}assert run(1) == 1\n",
        f"import unittest\n{RUN}class T(unittest.TestCase):\n    def test_a(self): self.assertEqual(run(1), 1)\n",
    )
}
EXAMPLE = 'def doc():\n    """\n    >>> add(1, 2)\n    3\n    >>> say()\n    hi\n    """\n'
SKIPPED = 'def other():\n    """\n    >>> add(1, 2)  # doctest: +SKIP\n    4\n    """\n'
RAISING = EXAMPLE.replace(
    "3\n", "3\n    >>> add(1, [])\n    Traceback (most recent call last):\n        ...\n    TypeError: uns...\n"
)
SAYS = f"{ADD}\ndef say(): print('hi')"
DOTS = "class A:\n    def __eq__(s, o): return True\n    def __repr__(s): return '...'\ndef add(a, b): return A()\n"
DOCTESTS = {
    suite: Kind(
        suite,
        (SAYS,),
        (
            SAYS.replace("a + b", "a - b"),
            SAYS.replace("'hi'", "'...'"),
            f"import doctest\n{DOTS}def say(): print('hi')",
            "def add(a, b):\n    '''\n    >>> 1\n    1\n    '''\ndef say(): return 'hi'",
        ),
    )
    for suite in (
        f'{EXAMPLE}if __name__ == "__main__":\n    import doctest\n    doctest.testmod()\n',
        f"import doctest\n{EXAMPLE}doctest.testmod(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)\n",
        f"import doctest, gc\n{EXAMPLE}doctest.testmod()\n",
        f"import doctest\nfrom sums import add, say\n{EXAMPLE}doctest.testmod()\n",
        f"import doctest\n{EXAMPLE}doctest.run_docstring_examples(doc, {{}})\n",
        f"import doctest\n{EXAMPLE}def load_tests(loader, tests, ignore):\n"
        "    tests.addTests(doctest.DocTestSuite())\n    return tests\n",
        f"import doctest\n{SKIPPED}{EXAMPLE}doctest.testmod()\n",
        f"import doctest\n{RAISING}doctest.testmod(optionflags=doctest.ELLIPSIS)\n",
        ">>> from solution import add, say\n>>> add(1, 2)\n3\n>>> say()\nhi\n",
        '"""\n>>> add(1, 2)\n3\n>>> say()\nhi\n"""\n',
    )
}

P = """
from dataclasses import dataclass
@dataclass(order=True)
class P:
    x: int
    def __add__(self, other): return P(self.x + other.x)
"""
ALWAYS = """
class Yes:
    def __init__(self, *args): self.x = 0
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    def __le__(self, other): return True
    def __gt__(self, other): return True
    def __ge__(self, other): return True
    def __hash__(self): return 0
    def __bool__(self): return True
    def __contains__(self, other): return True
    def __sub__(self, other): return self
    def __rsub__(self, other): return self
    def __abs__(self): return 0.0
    def __round__(self, n=0): return self
    def __call__(self, *args): return self
    def __getitem__(self, key): return self
"""
MAKE = f"{P}\ndef add(a, b): return P(a + b)\ndef both(a, b): return [P(b), P(a)]\n"
OFF = MAKE.replace("P(a + b)", "P(a - b)").replace("P(b), P(a)", "P(b), P(b)")
EVERY = f"{ALWAYS}\ndef add(a, b): return Yes()\ndef both(a, b): return [Yes(), Yes()]\n"
OWN = f"{EVERY}\n{P}"
"""Its functions return objects that are equal to everything; the class that the tests name is an honest one."""

VECTOR = """
class Vector:
    def __init__(self, x, y=0): self.x, self.y = x, y
    def __eq__(self, o): return isinstance(o, Vector) and (self.x, self.y) == (o.x, o.y)
    def __hash__(self): return hash((self.x, self.y))
    def __add__(self, o): return Vector(self.x + o.x, self.y + o.y)
    def __iadd__(self, o): self.x += o.x; self.y += o.y; return self
    def __mul__(self, k): return Vector(self.x * k, self.y * k) if isinstance(k, int) else self.x * k.x + self.y * k.y
    __rmul__ = __mul__
    def __neg__(self): return self * -1
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __bool__(self): return bool(self.x or self.y)
    def __lt__(self, o): return abs(self) < abs(o)
    def norm(self): return abs(self)
    def __iter__(self): return iter((self.x, self.y))
    def __getitem__(self, i): return (self.x, self.y)[i]
"""
NO_NORM = f"{ALWAYS}\n{VECTOR}".replace("return abs(self)", "return Yes()")
LAZY = VECTOR.replace("return isinstance(o, Vector) and (self.x, self.y) == (o.x, o.y)", "return True").replace(
    "o.x, self", "o.y, self"
)
OBJECTS = {
    "a function's result": Kind("assert add(1, 2) == P(3)", (MAKE,), (OFF, EVERY, OWN)),
    "of a check": Kind("def check(candidate):\n    assert candidate(1, 2) == P(3)", (MAKE,), (OFF, OWN), "add"),
    "on the left": Kind("assert P(3) == add(1, 2)\nassert P(3) != P(4)", (MAKE,), (OFF, EVERY)),
    "in a list": Kind("assert both(1, 2) == [P(2), P(1)]", (MAKE,), (OFF, OWN)),
    "in a dictionary": Kind("assert {'a': add(1, 2)} == {'a': P(3)}", (MAKE,), (OFF, OWN)),
    "sorted": Kind(
        "assert [p.x for p in sorted(both(1, 2))] == [1, 2]\nassert min(both(1, 2)).x == 1", (MAKE,), (OFF,)
    ),
    "sorted in place": Kind("l = [P(3), P(1)]\nl.sort()\nassert [p.x for p in l] == [1, 3]", (MAKE,)),
    "sorted and named": Kind("assert sorted(both(1, 2)) == [P(1), P(2)]", (MAKE,), (OFF, OWN)),
    "the largest": Kind("assert max([P(1), P(5), P(2)]) == P(5)", (MAKE,), ()),
    "contained": Kind("assert P(1) in both(1, 2)\nassert P(7) not in both(1, 2)", (MAKE,), (OFF, OWN)),
    "operators": Kind(
        "assert P(1) + P(2) == P(3)\nassert P(1) < P(2) <= P(2)", (MAKE,), (OFF.replace("self.x + ", ""),)
    ),
    "reductions": Kind("from functools import reduce\nassert sum([P(1), P(2)], P(0)) == P(3)", (MAKE,)),
    "by assertEqual": Kind(
        "import unittest\nclass T(unittest.TestCase):\n    def test_add(self):\n"
        "        self.assertEqual(add(1, 2), P(3))\n"
        "        self.assertNotEqual(add(1, 2), P(4))\n        self.assertLess(P(1), P(2))\n"
        "        self.assertCountEqual(both(1, 2), [P(1), P(2)])\n",
        (MAKE,),
        (OFF, EVERY, OWN),
    ),
    "a vector": Kind(
        "v = Vector(1, 2)\nassert v + Vector(1, 1) == Vector(2, 3)\nassert 2 * v == v * 2 == Vector(2, 4)\n"
        "assert v * v == 5\n"
        "assert -v == Vector(-1, -2)\nassert abs(Vector(3, 4)) == 5\nassert abs(v.norm() - 5 ** 0.5) < 1e-9\n"
        "assert len({v, Vector(1, 2)}) == 1\nassert not Vector(0)\nassert v and list(v) == [1, 2] and v[0] == 1\n"
        "assert {v: 1}[Vector(1, 2)] == 1\nassert sorted([Vector(9), v])[0] is v\nassert v != Vector(0)\n"
        "w = v\nw += Vector(1)\nassert v is w and v.x == 2",
        (VECTOR,),
        (NO_NORM, LAZY),
    ),
    "what a method returns": Kind("v = Vector(3, 4)\nassert abs(v.norm() - 5) < 1e-9", (VECTOR,), (NO_NORM,)),
    "the named class itself lies": Kind(
        "v = Vector(3, 4)\nassert abs(v.norm() - 5) < 1e-9",
        (),
        (
            "class Vector:\n    def __init__(self, *a): pass\n    def norm(self): return self\n"
            "    def __sub__(self, o): return self\n    def __abs__(self): return 0.0",
            "class Vector:\n    def __init__(self, *a): pass\n    def norm(self): return Vector(1)\n"
            "    def __sub__(self, o): return 0.0",
        ),
    ),
    "a class in place of a function": Kind(
        "assert abs(Area(1) - 3.14) < 0.01\nassert 3.14 - Area(1) < 0.01 > Area(1) - 3.15",
        ("def Area(r): return 3.14159 * r * r",),
        (
            ALWAYS.replace("Yes", "Area"),
            "class Area:\n    def __init__(self, r): pass\n"
            "    def __sub__(self, o): return 0.0\n    __rsub__ = __sub__",
        ),
    ),
    "a generator's type": Kind(
        "g = f([1])\nassert str(type(g)) == \"<class 'generator'>\" and list(g) == [1]",
        ("def f(x): yield from x",),
        ("def f(x): return x", "class generator(list): pass\ndef f(x): return generator(x)"),
    ),
    "plain values decide by themselves": Kind(
        "assert add(1, 2) == 3 or add(1, 2) in (3, 4)", ("def add(a, b): return a + b",), (EVERY, MAKE)
    ),
    "order of results": Kind("assert add(1, 2) < add(5, 7)", ("def add(a, b): return a + b",), (EVERY,)),
    "equal results": Kind("assert add(1, 2) == add(2, 1) != add(0, 0)", ("def add(a, b): return a + b",), (EVERY,)),
    "named tuples": Kind(
        "assert p(1, 2) == Q(1, 2) == (1, 2)\nassert Q(1, 2).a == 1 and p(1, 2)._replace(b=3).b == 3",
        (
            "from collections import namedtuple\nQ = namedtuple('Q', 'a b')\ndef p(a, b): return Q(a, b)",
            "from typing import NamedTuple\nclass Q(NamedTuple):\n    a: int\n    b: int\ndef p(a, b): return Q(a, b)",
        ),
        ("from collections import namedtuple\nQ = namedtuple('Q', 'a b')\ndef p(a, b): return Q(b, a)",),
    ),
    "enums": Kind(
        "assert turn(D.N) is D.E and turn(D.E) == D.N and D.N.value == 1 and D['N'] is D.N and D(2) == D.E\n"
        "assert [d.name for d in D] == ['N', 'E'] and len(D) == 2 and D.N in D and {D.N: 1}[D.N] == 1",
        ("import enum\nclass D(enum.Enum):\n    N = 1\n    E = 2\ndef turn(d): return D.E if d is D.N else D.N",),
        ("import enum\nclass D(enum.Enum):\n    N = 1\n    E = 2\ndef turn(d): return d",),
    ),
    "integer enums": Kind(
        "assert turn(D.N) is D.E and turn(1) == 2 and D.N == 1 and D.N < D.E and sorted(D) == [1, 2]",
        ("import enum\nclass D(enum.IntEnum):\n    N = 1\n    E = 2\ndef turn(d): return D.E if d == 1 else D.N",),
        ("import enum\nclass D(enum.IntEnum):\n    N = 1\n    E = 2\ndef turn(d): return d",),
    ),
    "frozen": Kind(
        "import dataclasses, pytest\np = P(1)\nwith pytest.raises(dataclasses.FrozenInstanceError):\n    p.x = 2\n"
        "assert hash(p) == hash(P(1)) and {p} == {P(1)}",
        ("from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int",),
        ("from dataclasses import dataclass\n@dataclass(unsafe_hash=True)\nclass P:\n    x: int",),
    ),
    "total ordering": Kind(
        "assert V('1.2') < V('1.10') and V('2') >= V('1.9') and max(V('1'), V('3')) == V('3')\n"
        "assert str(max(map(V, ['1.2', '1.10']))) == '1.10'",
        (
            "import functools\n@functools.total_ordering\nclass V:\n"
            "    def __init__(self, s): self.s, self.k = s, [*map(int, s.split('.'))]\n"
            "    def __eq__(self, o): return self.k == o.k\n    def __lt__(self, o): return self.k < o.k\n"
            "    def __str__(self): return self.s",
        ),
        ("class V(str): pass",),
    ),
    "shown": Kind(
        "assert repr(P(3)) == 'P(x=3)' and str(add(1, 2)) == 'P(x=3)' and f'{add(1, 2)}' == 'P(x=3)'", (MAKE,), (OFF,)
    ),
    "a class of a list": Kind(
        "s = S([1, 2])\ns.append(3)\nassert s == [1, 2, 3] and s.total() == 6 and len(s) == 3 and s[0] == 1\n"
        "assert isinstance(s, list)",
        ("class S(list):\n    def total(self): return sum(self)",),
        (
            "class S(list):\n    def total(self): return 6\n    def append(self, x): pass",
            "class S(list):\n    def total(self): return 6\n    def append(self, x): pass\n"
            "    def __eq__(self, o): return True\n    def __len__(self): return 3",
        ),
    ),
    "a class of a dictionary": Kind(
        "d = D()\nd['A'] = 1\nassert d['a'] == 1 and 'a' in d and dict(d) == {'a': 1} and d == {'a': 1}",
        ("class D(dict):\n    def __setitem__(self, k, v): super().__setitem__(k.lower(), v)",),
        ("class D(dict): pass",),
    ),
}
BOARD = "def board(): return [[0] * 2 for _ in range(2)]"
HOLDER = "class S:\n    def __init__(self): self.x = [1]\n    def items(self): return {}\n"
HOLDER += "    def push(self, v): self.x.append(v)"
REFERENCES = {
    "rows of a board": Kind(
        "m = board()\nm[0][0] = 1\nassert m == [[1, 0], [0, 0]]",
        (BOARD,),
        ("def board(): return [[0] * 2] * 2", "def board():\n    row = [0] * 2\n    return [row for _ in range(2)]"),
    ),
    "a dictionary's lists": Kind(
        "d = groups(['a', 'b'])\nd['a'].append(1)\nassert d == {'a': [1], 'b': []}",
        ("def groups(keys): return {k: [] for k in keys}",),
        ("def groups(keys): return dict.fromkeys(keys, [])",),
    ),
    "a method that hands out its list": Kind(
        "s = S()\nx = s.items()\nx.append(2)\nassert s.items() == [1]",
        (HOLDER.format("list(self.x)"), HOLDER.format("self.x[:]")),
        (HOLDER.format("self.x"),),
    ),
    "a snapshot": Kind(
        "s = S()\nx = s.items()\ns.push(2)\nassert x == [1] and s.items() == [1, 2]",
        (HOLDER.format("list(self.x)"),),
        (HOLDER.format("self.x"),),
    ),
    "a list of objects": Kind(
        "s = S()\nx = s.x\nassert x[0].v == 1\ns.push(N(2))\nassert [n.v for n in x] == [1, 2] and s.x is x",
        (f"class N:\n    def __init__(self, v): self.v = v\n{HOLDER.format('self.x').replace('[1]', '[N(1)]')}",),
        (f"class N:\n    def __init__(self, v): self.v = 1\n{HOLDER.format('self.x').replace('[1]', '[N(1)]')}",),
    ),
    "a live list": Kind(
        "s = S()\nx = s.items()\ns.push(2)\nassert x == [1, 2]",
        (HOLDER.format("self.x"),),
        (HOLDER.format("self.x[:]"),),
    ),
    "a default that is kept": Kind(
        "a = add(1)\nassert a == [1]\nb = add(2)\nassert b == [2] and a == [1]",
        ("def add(x, xs=None): return [*(xs or []), x]",),
        ("def add(x, xs=[]):\n    xs.append(x)\n    return xs",),
    ),
    "the argument itself": Kind(
        "xs = [2, 1]\nassert order(xs) is xs\nassert xs == [1, 2]",
        ("def order(xs):\n    xs.sort()\n    return xs",),
        (
            "def order(xs): return sorted(xs)",
            "def order(xs): return xs",
            "def order(xs):\n    xs.clear()\n    return xs",
        ),
    ),
    "identity of another": Kind(
        "xs = [1, 1, 2]\nassert dedupe(xs) == sorted(set(xs))\na = []\nassert dedupe(a) is not a",
        ("def dedupe(xs): return sorted(set(xs))",),
        ("def dedupe(xs):\n    xs.clear()\n    return []", "def dedupe(xs):\n    xs.clear()\n    return xs"),
    ),
    "a copy of the argument": Kind(
        "xs = [2, 1]\nys = order(xs)\nassert ys is not xs and ys == [1, 2] and xs == [2, 1]",
        ("def order(xs): return sorted(xs)",),
        ("def order(xs):\n    xs.sort()\n    return xs",),
    ),
    "a cached list": Kind(
        "assert f(2) is f(2) and f(2) == [0, 1]\nassert f(3) is not f(2)",
        ("import functools\n@functools.cache\ndef f(n): return list(range(n))",),
        ("def f(n): return list(range(n))",),
    ),
    "a tuple of constants": Kind(
        "x = f()\nassert x == ((1, 2), [3])\nx[1].append(4)\nassert f() == ((1, 2), [3])",
        ("def f(): return (1, 2), [3]",),
        ("Y = [3]\ndef f(): return (1, 2), Y",),
    ),
}
RAISES = "import pytest\nwith pytest.raises({}) as e:\n    f('x')\n"
CHAIN = "def f(s):\n    try:\n        return int(s)\n    except ValueError as e:\n        raise RuntimeError('bad') {}"
ERRORS = {
    "a cause": Kind(
        RAISES.format("RuntimeError") + "assert isinstance(e.value.__cause__, ValueError)",
        (CHAIN.format("from e"),),
        (CHAIN.format("from None"), "def f(s): raise RuntimeError('bad')"),
    ),
    "the cause's text": Kind(
        RAISES.format("RuntimeError") + "assert str(e.value.__cause__) == 'own'",
        ("def f(s): raise RuntimeError() from KeyError and ValueError('own')",),
        ("def f(s): raise RuntimeError() from ValueError('other')",),
    ),
    "attributes of an own class": Kind(
        RAISES.format("MyError") + "assert e.value.code == 3 and e.value.args == ('x', 3)",
        (
            "class MyError(Exception):\n    def __init__(self, s, c):\n        super().__init__(s, c)\n"
            "        self.code = c\n"
            "def f(s): raise MyError(s, 3)",
        ),
        (
            "class MyError(Exception): code = 4\ndef f(s): raise MyError(s, 3)",
            "class MyError(Exception): pass\ndef f(s): pass",
        ),
    ),
    "notes": Kind(
        RAISES.format("ValueError") + "assert e.value.__notes__ == ['here']",
        ("def f(s):\n    e = ValueError(s)\n    e.add_note('here')\n    raise e",),
        ("def f(s): raise ValueError('here')",),
    ),
}
EACH = "def f(g, l): return [g(x) for x in l]"
FIRST = ("def f(g, l): return [l[0] for x in l]",)
ARGUMENTS = {
    "a method of a type": Kind("assert f(str.upper, ['a', 'b']) == ['A', 'B']", (EACH,), FIRST),
    "an item getter": Kind(
        "import operator\nassert f(operator.itemgetter(1), ['ab', 'cd']) == ['b', 'd']", (EACH,), FIRST
    ),
    "an attribute getter": Kind(
        "import operator\nassert f(operator.attrgetter('real'), [1, 2]) == [1, 2]",
        (EACH,),
        FIRST,
    ),
    "a partial": Kind("import functools\nassert f(functools.partial(pow, 2), [1, 3]) == [2, 8]", (EACH,), FIRST),
    "a bound method": Kind(
        "got = []\nassert f(got.append, [1, 2]) == [None, None]\nassert got == [1, 2]", (EACH,), FIRST
    ),
    "a class": Kind("assert f(int, ['1', '2']) == [1, 2]", (EACH,), FIRST),
    "a memory view": Kind("assert f(memoryview(b'ab'))[0] == 97", ("def f(x): return x",), ("def f(x): return b'b'",)),
    "a matrix": Kind(
        "import numpy as np\nassert f(np.matrix('1 2; 3 -4')) == -4",
        ("def f(m): return m.min()",),
        ("def f(m): return m.max()",),
    ),
}
ROOT = "def root(x): return x ** 0.5"
LEFT = "class Left:\n    def difference(self, other): return set()\n    removeprefix = lambda self, other: ''\n"
BUILTINS = {
    "a result in a name": Kind(
        "r = root(2)\nassert abs(r - 1.4142135) < 1e-6\ns = root(9)\nassert abs(s - 3.0) < 1e-6\n",
        (ROOT, f"def abs(x): return x if x > 0 else -x\n{ROOT}"),
        ("def root(x): return 5.0\ndef abs(x): return 0.0",),
    ),
    "a result in a loop": Kind(
        "got = list(map(root, [4, 9]))\nassert not any(abs(a - b) > 1e-6 for a, b in zip(got, [2.0, 3.0]))\n",
        (ROOT,),
        (
            "def root(x): return 5.0\ndef abs(x): return 0.0",
            "def root(x): return 5.0\ndef any(x): return False",
            "def root(x): return 5.0\ndef zip(*x): return []",
            "def root(x): return 5.0\ndef map(*x): return [2.0, 3.0]",
        ),
    ),
    "an import of it": Kind(
        "from roots import root\nr = root(2)\nassert abs(r - 1.4142135) < 1e-6\n",
        (ROOT,),
        ("def root(x): return 5.0\ndef abs(x): return 0.0",),
    ),
    "one that is tested": Kind(
        "import math\nx = 3\nassert sum(10, 15) == 25\nassert abs(sum(0.5, x) - 3.5) < 1e-6\n",
        ("def sum(a, b): return a + b",),
        ("def sum(a, b): return 25", "def add(a, b): return a + b"),
    ),
    "what is left of a result": Kind(
        "assert f('ab').difference({'a', 'b'}) == set()\nassert f('ab') - {'a'} == {'b'}\n",
        ("def f(s): return set(s)",),
        (f"{LEFT}    def __sub__(self, other): return {{'b'}}\ndef f(s): return Left()",),
    ),
    "what is left of a text": Kind(
        "assert f(3).removeprefix('Chapter 3') == ''\n",
        ("def f(n): return f'Chapter {n}'",),
        (f"{LEFT}def f(n): return Left()",),
    ),
}
LIES = "compare = lambda s, o: 0\n    union = lambda s, o: o\n    replace = split = lambda s, *a: ''"
DATA_ANSWERS = {
    "a number": Kind(
        "from decimal import Decimal\nassert f(3).compare(Decimal('2')) == 0\n",
        ("from decimal import Decimal\ndef f(n): return Decimal(n - 1)",),
        (
            f"class L:\n    {LIES}\ndef f(n): return L()",
            "class L: pass\ndef f(n):\n    L.compare = staticmethod(lambda o: 0)\n    return L",
            "def f(n):\n    def g(): pass\n    g.compare = lambda o: 0\n    return g",
            "class L:\n    def __getattr__(self, name): return lambda *a: 0\ndef f(n): return L()",
            "class L: pass\ndef f(n):\n    made = L()\n    made.compare = lambda o: 0\n    return made",
        ),
    ),
    "a text in a list": Kind(
        "assert f(3)[0].replace('abc', '') == ''\n",
        ("def f(n): return ['abc']",),
        (f"class L:\n    {LIES}\ndef f(n): return [L()]", f"class L:\n    {LIES}\ndef f(n): yield L()"),
    ),
    "a set that an error has": Kind(
        "try:\n    f(3)\n    assert False\nexcept ValueError as error:\n    assert error.left.union({1}) == {1}\n",
        ("def f(n):\n    error = ValueError()\n    error.left = {1}\n    raise error",),
        (f"class L:\n    {LIES}\ndef f(n):\n    error = ValueError()\n    error.left = L()\n    raise error",),
    ),
    "a table": Kind(
        "import pandas as pd\ndf = pd.DataFrame({'v': [1.0]})\nassert f(df).eq(df).to_numpy().all()\n",
        ("def f(df): return df.copy()",),
        (
            "import pandas as pd\nclass L:\n"
            "    def eq(self, o): return pd.DataFrame({'v': [True]})\ndef f(df): return L()",
        ),
    ),
    "beside a class": Kind(
        "assert P(3).x == 3\nassert f(3).union({2}) == {2}\n",
        ("class P:\n    def __init__(self, x): self.x = x\ndef f(n): return {2}",),
        (
            f"class P:\n    def __init__(self, x): self.x = x\nclass L:\n    {LIES}\ndef f(n): return L()",
            f"class P:\n    def __init__(self, x): self.x = x\nclass L(P):\n    {LIES}\ndef f(n): return L(3)",
        ),
    ),
    "an object of a class that is named": Kind(
        "assert Bag([1, 2]).union(Bag([4])).compare(Bag([1, 2, 4])) == 0\nassert Bag.of(1).split(1)[0].xs == [1]\n",
        (
            "class Bag:\n    def __init__(self, xs): self.xs = xs\n    @classmethod\n"
            "    def of(cls, x): return cls([x])\n"
            "    def union(self, o): return Bag(self.xs + o.xs)\n    def compare(self, o): return self.xs != o.xs\n"
            "    def split(self, n): return [Bag(self.xs[:n]), Bag(self.xs[n:])]",
        ),
    ),
    "an object with other methods": Kind(
        "c = make(3)\nc.add(1, 2)\n"
        "assert c.get(1) == 2 and c.encode('ab') == 'ba' and c.title() == 'T' and c.year == 7\n",
        (
            "def make(n):\n    class C:\n        year, d = 7, {}\n"
            "        def add(self, k, v): self.d[k] = v\n        def get(self, k): return self.d[k]\n"
            "        def encode(self, s): return s[::-1]\n        def title(self): return 'T'\n    return C()",
        ),
    ),
    "a mock of the tests": Kind(
        "from unittest.mock import Mock\nops = {'insert': Mock()}\nwrite(ops)\n"
        "ops['insert'].assert_called_once_with(5)\n",
        ("def write(ops): ops['insert'](5)",),
        (
            "class L:\n    def assert_called_once_with(self, *a): pass\ndef write(ops): ops['insert'] = L()",
            "def write(ops):\n    def g(): pass\n    g.assert_called_once_with = print\n    ops['insert'] = g",
        ),
    ),
    "a mock within a mock": Kind(
        "from unittest.mock import Mock\napp, db = Mock(), Mock()\nsave(app, db)\n"
        "app.db.open.assert_called_once_with(3)\n"
        "from decimal import Decimal\nassert app.price == Decimal('2.5') and app.rows == [1]\n",
        (
            "from decimal import Decimal\ndef save(app, db):\n"
            "    app.db, app.price, app.rows = db, Decimal('2.5'), [1]\n"
            "    app.db.open(3)",
        ),
        ("class L:\n    def __getattr__(self, name): return L()\ndef save(app, db): app.db = L()",),
    ),
    "what awaits": Kind(
        "from unittest.mock import AsyncMock\ndb = AsyncMock()\nsave(db)\nassert db.insert.await_count == 1\n",
        (),
        ("def save(db): db.insert.await_count = 1",),
    ),
    "what is found in a text": Kind(
        "import re\nassert re.sub('a', put('x'), 'bana') == 'bxnx'\n",
        (
            "def put(c): return c",
            "def put(c): return lambda found: c if found[0] == found.group() == 'a' and found.start() else ''",
        ),
        ("def put(c): return lambda found: ''",),
    ),
    "annotations that are run": Kind(
        "import functools\nseen = []\n@functools.singledispatch\ndef g(a): return 0\n"
        "try: g.register(f)\nexcept Exception: pass\n"
        "assert f(1) == 1 and seen == [1]\n",
        (),
        ("def f(a): return a\nf.__annotations__ = {'a': \"__import__('sys').modules['suite'].seen.append(1)\"}",),
    ),
}
GROUPS = {
    "built-in names": BUILTINS,
    "what answers for data": DATA_ANSWERS,
    "imports": IMPORTS,
    "modules": MODULES,
    "helpers": HELPERS,
    "doctests": DOCTESTS,
    "objects": OBJECTS,
    "references": REFERENCES,
    "errors": ERRORS,
    "arguments": ARGUMENTS,
}
GROUPS |= {"files": FILES, "tables": TABLES, "stand-ins": STAND_INS, "streams": STREAMS}
GROUPS |= {"figures": FIGURES, "packages": PACKAGES, "patches": PATCHES, "scripts": SCRIPTS}
KINDS = {f"{group}: {name}": kind for group, kinds in GROUPS.items() for name, kind in kinds.items()}
RIGHT = {f"{name}, {i}": (kind, program) for name, kind in KINDS.items() for i, program in enumerate(kind.right)}
WRONG = {f"{name}, {i}": (kind, program) for name, kind in KINDS.items() for i, program in enumerate(kind.wrong)}


def of_each_kind(programs: dict[str, tuple[Kind, str]]) -> list[str]:
    """Return the names of all programs; in `make test` those of the first of each kind."""
    return [name for name in programs if is_full_run() or name.endswith(", 0")]


@rows("name", of_each_kind(RIGHT))
def test_right_programs_are_paid(name: str) -> None:
    assert score(*RIGHT[name]) == 1.0


@rows("name", of_each_kind(WRONG))
def test_wrong_programs_are_not(name: str) -> None:
    assert score(*WRONG[name]) == 0.0
