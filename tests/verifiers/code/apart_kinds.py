"""Suites that need more than calls, run apart from the solution: files, tables, captured output, stand-ins.

Each has right programs, and wrong ones that would be paid if the tests shared a process with them, or trusted what
they find in the folder that both work in.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A suite with programs that are right and wrong for it."""

    suite: str
    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    entry_point: str | None = None


EQUALS_ALL = """
class All:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
    def __iter__(self): return iter(())
    def __len__(self): return 2
    def __getitem__(self, key): return self
    def __contains__(self, item): return True
    def __bool__(self): return True
    def __hash__(self): return 0
    def __float__(self): return 0.0
    def __array__(self, *args, **kwargs): import numpy; return numpy.zeros(2)
    def all(self, *args): return True
"""


def claims(name: str) -> tuple[str, ...]:
    """Return programs that return what says yes to everything, and ones that undo the tests."""
    define = f"def {name}(*args, **kwargs): return "
    lies = [
        f"{EQUALS_ALL}{define}All()",
        f"{EQUALS_ALL}import pandas\nclass A(All):\n    __class__ = property(lambda self: pandas.DataFrame)\n{define}A()",
        f"{EQUALS_ALL}import pandas\nclass A(pandas.DataFrame):\n    __eq__ = equals = All.__eq__\n"
        "    def __getattribute__(self, name): return (lambda *a, **k: True) if name == 'equals' else "
        f"pandas.DataFrame.__getattribute__(self, name)\n{define}A([1])",
        f"import numpy\nclass A(numpy.ndarray):\n    def __eq__(self, other): return True\n"
        f"    def all(self): return True\n{define}numpy.zeros(2).view(A)",
        "import pandas as pd, pandas.testing as t\nt.assert_frame_equal = t.assert_series_equal = "
        "pd.testing.assert_frame_equal = lambda *a, **k: None\npd.DataFrame.equals = pd.Series.equals = "
        f"pd.DataFrame.__eq__ = pd.Index.equals = lambda *a, **k: True\n{define}pd.DataFrame()",
        "import unittest\nfor n in dir(unittest.TestCase):\n    if n.startswith('assert'):\n"
        f"        setattr(unittest.TestCase, n, lambda *a, **k: None)\n{define}None",
        f"import os, atexit\natexit.register(os._exit, 0)\n{define}os._exit(0)",
        f"import sys\n{define}sys.exit(0)",
    ]
    return tuple(lies)


COPY = """
import os
def check(candidate):
    with open('in.txt', 'w') as file:
        file.write('1 2 3')
    candidate('in.txt', 'out.txt')
    import csv, json, wave
    assert os.path.exists('out.txt')
    with open('out.txt') as file:
        assert file.read() == '6'
"""
ADDED = "def f(a, b):\n    with open(a) as file: n = sum(map(int, file.read().split()))\n"
PLANTED = "def f(a, b):\n    open('wave.py', 'w').write({code!r})\n    open('unittest.py', 'w').write({code!r})\n    open(b, 'w')"
EVIL = "import builtins\nclass T(str):\n    __eq__ = lambda a, b: True\nbuiltins.open = lambda *a: __import__('io').StringIO(T('6'))"
FOLDER = """
import os, shutil, tempfile, unittest
from pathlib import Path
class T(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        for name in ('a.txt', 'b.log', 'c.txt'):
            Path(self.folder, name).write_text(name)
    def tearDown(self):
        shutil.rmtree(self.folder)
    def test_moved(self):
        target = os.path.join(self.folder, 'texts')
        self.assertEqual(move(self.folder, target), 2)
        self.assertEqual(sorted(os.listdir(target)), ['a.txt', 'c.txt'])
        self.assertTrue(os.path.isfile(os.path.join(self.folder, 'b.log')))
        self.assertEqual((Path(target) / 'a.txt').read_text(), 'a.txt')
"""
MOVE = (
    "import os, shutil, glob\ndef move(a, b):\n    os.makedirs(b, exist_ok=True)\n    names = glob.glob(a + '/*.txt')\n"
    "    for n in names: shutil.move(n, b)\n    return len(names)"
)
FILES = {
    "what it writes": Kind(
        COPY,
        (f"{ADDED}    open(b, 'w').write(str(n))", f"{ADDED}    import pathlib; pathlib.Path(b).write_text(f'{{n}}')"),
        (
            f"{ADDED}    open(b, 'w').write('7')",
            "import os\ndef f(a, b): os.mkfifo(b)",
            "import os\ndef f(a, b): os.symlink('/dev/zero', b)",
            "import os\ndef f(a, b): os.symlink(b, b)",
            "import os\ndef f(a, b): os.mkdir(b)",
            "import os\nos.mkfifo('in.txt')\ndef f(a, b): open(b, 'w').write('7')",
            "import os\nfor i in range(2000): open(f'{i}', 'w')\ndef f(a, b): pass",
            PLANTED.format(code=EVIL),
            f"import sys, io, builtins\n{EVIL}\ndef f(a, b): open(b, 'w').write('7')",
            *claims("f"),
        ),
        "f",
    ),
    "a folder": Kind(
        FOLDER, (MOVE,), (MOVE.replace("*.txt", "*"), MOVE.replace("move(n", "copy(n").replace("names)", "names) + 1"))
    ),
    "a data base": Kind(
        "import sqlite3\ndef check(candidate):\n    candidate('x.db', [('a', 1), ('b', 2)])\n"
        "    c = sqlite3.connect('x.db')\n    assert c.execute('select * from t').fetchall() == [('a', 1), ('b', 2)]\n",
        (
            "import sqlite3\ndef f(p, rows):\n    c = sqlite3.connect(p)\n    c.execute('create table t (n, v)')\n"
            "    c.executemany('insert into t values (?, ?)', rows)\n    c.commit()",
        ),
        ("import sqlite3\ndef f(p, rows):\n    sqlite3.connect(p).execute('create table t (n, v)')", *claims("f")),
        "f",
    ),
}

TABLE = """
import pandas as pd
def check(candidate):
    df = pd.DataFrame({'g': ['a', 'b', 'a'], 'v': [1.5, 2.0, 3.0]})
    out = candidate(df)
    assert isinstance(out, pd.DataFrame)
    pd.testing.assert_frame_equal(out, pd.DataFrame({'g': ['a', 'b'], 'v': [4.5, 2.0]}))
    assert out.equals(pd.DataFrame({'g': ['a', 'b'], 'v': [4.5, 2.0]}))
"""
GROUPED = "def f(df): return df.groupby('g')['v'].sum().reset_index()"
TABLES = {
    "a table": Kind(
        TABLE,
        (GROUPED, "def f(df):\n    class D(pd.DataFrame): pass\n    return D(df.groupby('g', as_index=False).v.sum())"),
        (
            GROUPED.replace("sum", "mean"),
            "def f(df): return [['a', 4.5], ['b', 2.0]]",
            "def f(df): return df",
            *claims("f"),
        ),
        "f",
    ),
    "a column": Kind(
        "import pandas as pd\nimport numpy as np\ndef check(candidate):\n    s = candidate(pd.Series([3, 1, 2], name='n'))\n"
        "    assert s.tolist() == [1, 2, 3]\n    assert s.name == 'n' and s.dtype == np.int64\n"
        "    assert (s == pd.Series([1, 2, 3], index=[1, 2, 0])).all()\n",
        ("def f(s): return s.sort_values()",),
        ("def f(s): return s", "def f(s): return s.sort_values().astype('int8')", *claims("f")),
        "f",
    ),
    "changed in place": Kind(
        "import pandas as pd\ndef check(candidate):\n    df = pd.DataFrame({'a': [1, 2]})\n    assert candidate(df) is None\n"
        "    assert df['b'].tolist() == [2, 4]\n",
        ("def f(df): df['b'] = df['a'] * 2",),
        ("def f(df): df = df.assign(b=df['a'] * 2)", *claims("f")),
        "f",
    ),
    "times": Kind(
        "import pandas as pd\ndef check(candidate):\n    t = candidate('2024-03-01')\n    assert t == pd.Timestamp('2024-03-02')\n"
        "    assert type(t) is pd.Timestamp and t - pd.Timedelta('1D') == pd.Timestamp('2024-03-01')\n",
        ("def f(s): return pd.Timestamp(s) + pd.Timedelta(days=1)",),
        (
            "def f(s): return pd.Timestamp(s)",
            "import datetime\ndef f(s): return datetime.datetime(2024, 3, 2)",
            "class T(pd.Timestamp):\n    __eq__ = lambda a, b: True\ndef f(s): return T(s)",
            *claims("f"),
        ),
        "f",
    ),
    "an index of several levels": Kind(
        "import pandas as pd\ndef check(candidate):\n    r = candidate(pd.DataFrame({'k': list('aab'), 'm': list('xyx'), 'v': [1, 2, 3]}))\n"
        "    assert r.index.names == ['k', 'm'] and r.loc[('a', 'y')] == 2 and len(r.index.levels) == 2\n",
        ("def f(df): return df.set_index(['k', 'm'])['v']",),
        ("def f(df): return df.set_index('k')['v']", *claims("f")),
        "f",
    ),
    "categories and gaps": Kind(
        "import pandas as pd\ndef check(candidate):\n    r = candidate([1, float('nan'), 9])\n    assert r.isna().tolist() == [False, True, False]\n"
        "    assert list(r.cat.categories) == ['low', 'high'] and r.cat.ordered\n",
        ("def f(v): return pd.Series(pd.cut(v, [0, 5, 10], labels=['low', 'high']))",),
        ("def f(v): return pd.Series(['low', None, 'high'])", *claims("f")),
        "f",
    ),
}

FETCH = """
import unittest, requests
from unittest.mock import patch, Mock
class T(unittest.TestCase):
    @patch("requests.get")
    def test_status(self, get):
        get.return_value.status_code = 200
        get.return_value.json.return_value = {"n": [1, 2]}
        self.assertEqual(total("http://x"), 3)
        get.assert_called_once_with("http://x", timeout=5)
    def test_trouble(self):
        with patch("requests.get", side_effect=requests.exceptions.Timeout("slow")):
            self.assertEqual(total("http://x"), -1)
"""
TOTAL = """
import requests
def total(url):
    try:
        return sum(requests.get(url, timeout=5).json()["n"])
    except requests.exceptions.RequestException:
        return -1
"""
UNDO = """
import requests
def total(url):
    get = requests.get
    for name in ("assert_called_once_with", "called", "call_count"):
        try: setattr(get, name, lambda *a, **k: None)
        except Exception: pass
    for name in ("reset_mock", "configure_mock"):
        try: getattr(get, name)()
        except Exception: pass
    return 3
"""
OWN_OBJECT = """
class Log:
    def __init__(self): self.lines = []
    def add(self, line): self.lines.append(line)
    def is_full(self): return len(self.lines) >= 2
def check(candidate):
    log = Log()
    candidate(log)
    assert log.is_full()
    assert log.lines == ["a", "b"]
"""
STAND_INS = {
    "of a library's function": Kind(
        FETCH, (TOTAL,), (TOTAL.replace(", timeout=5", ""), TOTAL.replace("-1", "0"), UNDO, *claims("total"))
    ),
    "assigned": Kind(
        "import os\nfrom unittest.mock import Mock\ndef check(candidate):\n    os.access = Mock(return_value=True)\n"
        "    assert candidate('/x') is True\n    os.access = Mock(return_value=False)\n    assert candidate('/x') is False\n",
        ("import os\ndef f(p): return os.access(p, os.R_OK)",),
        ("import os\ndef f(p): return True", "import os\na = os.access\ndef f(p): return a(p, os.R_OK)", *claims("f")),
        "f",
    ),
    "of the solution's own": Kind(
        "import unittest\nfrom unittest.mock import patch\nclass T(unittest.TestCase):\n"
        "    @patch('__main__.now', return_value=7)\n    def test_now(self, now):\n        self.assertEqual(later(), 8)\n"
        "        now.assert_called_once()\n    def test_real(self): self.assertEqual(later(), 2)\n",
        ("def now(): return 1\ndef later(): return now() + 1",),
        ("def now(): return 1\ndef later(): return 2", *(f"def now(): return 1\n{lie}" for lie in claims("later"))),
    ),
    "of a method": Kind(
        "import unittest\nfrom unittest.mock import MagicMock\nclass T(unittest.TestCase):\n    def test_read(self):\n"
        "        reader = Reader()\n        reader.read = MagicMock(return_value='a1b')\n"
        "        self.assertEqual(reader.letters(), 'ab')\n        reader.read.assert_called_once()\n",
        (
            "class Reader:\n    def read(self): return ''\n"
            "    def letters(self): return ''.join(filter(str.isalpha, self.read()))",
        ),
        ("class Reader:\n    def read(self): return ''\n    def letters(self): return 'ab'",),
    ),
    "of open": Kind(
        "from unittest.mock import patch, mock_open\ndef check(candidate):\n"
        "    with patch('builtins.open', mock_open(read_data='a\\nb')) as opened:\n"
        "        assert candidate('x') == ['a', 'b']\n    opened.assert_called_once_with('x')\n",
        ("def f(p):\n    with open(p) as file: return file.read().split()",),
        ("def f(p): return ['a', 'b']", *claims("f")),
        "f",
    ),
    "of an object of the tests": Kind(
        OWN_OBJECT,
        ("def f(log):\n    log.add('a')\n    log.add('b')", "def f(log): log.lines = ['a', 'b']"),
        ("def f(log): log.is_full = lambda: True", "def f(log): log.__class__.is_full = lambda s: True", *claims("f")),
        "f",
    ),
}
HELLO = "def check(candidate):\n    text = io.StringIO()\n"
STREAMS = {
    "what is printed": Kind(
        f"import io\nfrom contextlib import redirect_stdout\n{HELLO}    with redirect_stdout(text):\n        candidate('a')\n"
        "    assert text.getvalue() == 'hi a\\n'\n",
        ("def f(n): print('hi', n)", "import sys\ndef f(n): sys.stdout.write(f'hi {n}\\n')"),
        ("def f(n): print('hi')", "def f(n): return 'hi a\\n'", *claims("f")),
        "f",
    ),
    "what is read": Kind(
        "import builtins\nfrom unittest.mock import patch\ndef check(candidate):\n"
        "    with patch('builtins.input', side_effect=['2', '3']):\n        assert candidate() == 5\n",
        ("def f(): return int(input()) + int(input())",),
        ("def f(): return int(input()) + 1", *claims("f")),
        "f",
    ),
    "the environment": Kind(
        "import os\ndef check(candidate):\n    os.environ['PLACE'] = 'here'\n    assert candidate() == 'here'\n"
        "    del os.environ['PLACE']\n    assert candidate() is None\n",
        ("import os\ndef f(): return os.environ.get('PLACE')",),
        ("def f(): return 'here'", *claims("f")),
        "f",
    ),
    "seeds": Kind(
        "import random\ndef check(candidate):\n    random.seed(3)\n    first = candidate()\n    random.seed(3)\n"
        "    assert candidate() == first\n    assert candidate() != first\n",
        ("import random\ndef f(): return random.random()",),
        ("def f(): return 1", "import random\ndef f(): return random.SystemRandom().random()", *claims("f")),
        "f",
    ),
}
