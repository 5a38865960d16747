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
    prelude: str = ""


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
OWN_MOCK = """
from unittest.mock import Mock
class Shop:
    def __init__(self): self.db = Mock()
def check(candidate):
    shop = Shop()
    candidate(shop, 3)
    shop.db.insert.assert_called_once_with("sold", n=3)
    assert shop.db.last == 3 and shop.db.insert.call_count == 1
"""
LIAR = "class Liar:\n    call_count, last = 1, 3\n    def assert_called_once_with(self, *a, **k): pass\n"
LIARS = (
    LIAR + "def f(shop, n): shop.db.insert, shop.db.last = Liar(), n",
    LIAR + "def f(shop, n): shop.db.insert, shop.db.last = Liar, n",
    LIAR + "def f(shop, n):\n    shop.db = Liar()\n    shop.db.insert = shop.db",
    "def f(shop, n):\n    def lie(): pass\n    lie.assert_called_once_with, lie.call_count = print, 1\n"
    "    shop.db.insert, shop.db.last = lie, n",
    "from unittest.mock import MagicMock\ndef f(shop, n):\n    shop.db = MagicMock(last=n)\n    shop.db.insert(n=0)",
)
STAND_INS = {
    "in an object of the tests": Kind(
        OWN_MOCK,
        ("def f(shop, n):\n    shop.db.insert('sold', n=n)\n    shop.db.last = n",),
        (*LIARS, *claims("f")),
        "f",
    ),
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

BAR = """
import unittest, matplotlib, matplotlib.pyplot as plt
class T(unittest.TestCase):
    def tearDown(self): plt.close("all")
    def test_bars(self):
        ax = draw([1, 3])
        self.assertIsInstance(ax, plt.Axes)
        self.assertIsInstance(ax, matplotlib.axes.Axes)
        self.assertEqual(ax.get_title(), "Bars")
        self.assertEqual([p.get_height() for p in ax.patches], [1, 3])
        self.assertEqual(len(plt.gcf().axes), 1)
        self.assertIs(plt.gca(), ax)
"""
DRAW = "import matplotlib.pyplot as plt\ndef draw(v):\n    fig, ax = plt.subplots()\n    ax.bar(range(len(v)), v)\n"
DRAW += "    ax.set_title('Bars')\n    return ax"
LIKE = f"{EQUALS_ALL}import matplotlib.pyplot as plt\nclass A(All):\n    __class__ = property(lambda self: plt.Axes)\n"
FIGURES = {
    "bars": Kind(
        BAR,
        (DRAW, DRAW.replace("subplots()", "figure(), plt.subplot()")),
        (
            DRAW.replace("'Bars'", "'bars'"),
            DRAW.replace("    ax.bar", "    plt.figure(); plt.subplot()\n    ax.bar"),
            f"{LIKE}def draw(v): return A()",
            f"{LIKE}plt.gcf = plt.gca = lambda: A()\ndef draw(v): return A()",
            f"{EQUALS_ALL}import matplotlib.pyplot as plt\nclass S(str):\n    __eq__ = All.__eq__\n"
            "class A(plt.Axes):\n    get_title = lambda s: S('x')\n    patches = property(lambda s: All())\n"
            "def draw(v): return plt.figure().add_axes(A(plt.gcf(), (0, 0, 1, 1)))",
            *claims("draw"),
        ),
    ),
    "what it showed": Kind(
        "import matplotlib.pyplot as plt\nfrom unittest.mock import patch\ndef check(candidate):\n"
        "    with patch('matplotlib.pyplot.show') as show:\n        candidate([1, 2])\n    show.assert_called_once()\n"
        "    assert plt.gca().lines[0].get_ydata().tolist() == [1, 2]\n    assert plt.get_fignums() == [1]\n",
        ("import matplotlib.pyplot as plt\ndef f(v):\n    plt.plot(v)\n    plt.show()",),
        (
            "import matplotlib.pyplot as plt\ndef f(v): plt.plot(v)",
            "import matplotlib.pyplot as plt\ndef f(v):\n    plt.plot(v[::-1])\n    plt.show()",
            f"{LIKE}plt.gca = A\ndef f(v): plt.show()",
            *claims("f"),
        ),
        "f",
    ),
    "a picture that it saved": Kind(
        "import matplotlib.pyplot as plt, numpy as np\ndef check(candidate):\n    candidate('a.png')\n"
        "    plt.imsave('b.png', np.eye(3))\n    assert np.array_equal(plt.imread('a.png'), plt.imread('b.png'))\n",
        ("import matplotlib.pyplot as plt, numpy as np\ndef f(p): plt.imsave(p, np.eye(3))",),
        (
            "import matplotlib.pyplot as plt, numpy as np\ndef f(p): plt.imsave(p, np.ones((3, 3)))",
            "import matplotlib.pyplot as plt, numpy as np\nplt.imread = lambda p: np.eye(3)\nplt.gcf = plt.imsave\n"
            "def f(p): open(p, 'w').close()",
            *claims("f"),
        ),
        "f",
    ),
}
SPARSE = "import numpy as np\nfrom scipy import sparse\ndef check(candidate):\n    m = candidate(np.array([[0, 2], [3, 0]]))\n"
PICTURE = "from PIL import Image\ndef check(candidate):\n    image = Image.new('RGB', (4, 2), (255, 0, 0))\n"
PACKAGES = {
    "sparse matrices": Kind(
        f"{SPARSE}    assert sparse.issparse(m) and m.nnz == 2 and (m != sparse.csr_matrix([[0, 2], [3, 0]])).nnz == 0\n",
        ("from scipy import sparse\ndef f(a): return sparse.csr_matrix(a)",),
        (
            "from scipy import sparse\ndef f(a): return sparse.csr_matrix(a.T)",
            "def f(a): return a",
            "from scipy import sparse\nclass M(sparse.csr_matrix):\n    __ne__ = lambda s, o: M((2, 2))\n    nnz = 2\n"
            "def f(a): return M((2, 2))",
            f"{EQUALS_ALL}from scipy import sparse\nclass M(All):\n    __class__ = property(lambda s: sparse.csr_matrix)\n"
            "    nnz = 2\ndef f(a): return M()",
            *claims("f"),
        ),
        "f",
    ),
    "records": Kind(
        "import numpy as np\nr = f([('a', 1.5), ('b', 2.0)])\nassert r['n'].tolist() == ['a', 'b'] and r[1]['v'] == 2\n"
        "assert np.array_equal(r, np.array([('a', 1.5), ('b', 2)], dtype=[('n', 'U1'), ('v', 'f8')]))",
        (
            "import numpy as np\ndef f(v): return np.array(v, dtype=[('n', 'U1'), ('v', 'f8')])",
            "import numpy as np\ndef f(v): return np.rec.array(v, dtype=[('n', 'U1'), ('v', 'f8')])",
        ),
        (
            "import numpy as np\ndef f(v): return np.array(v[::-1], dtype=[('n', 'U1'), ('v', 'f8')])",
            f"{EQUALS_ALL}import numpy as np\ndef f(v): return np.array([(All(), 2)] * 2, dtype=[('n', 'O'), ('v', 'f8')])",
            *claims("f"),
        ),
    ),
    "pictures": Kind(
        f"{PICTURE}    assert candidate(image).size == (2, 4)\n    assert candidate(image).getpixel((0, 0)) == (255, 0, 0)\n"
        "    assert candidate(image) == image.rotate(90, expand=True)\n",
        (
            "def f(image): return image.rotate(90, expand=True)",
            "def f(i): return Image.new('RGB', i.size[::-1], 'red')",
        ),
        (
            "def f(image): return image",
            "def f(i): return Image.new('RGB', i.size[::-1])",
            "class I(Image.Image):\n    __eq__ = lambda s, o: True\n    size = (2, 4)\n    getpixel = lambda s, p: (255, 0, 0)\n"
            "def f(image): return I()",
            *claims("f"),
        ),
        "f",
    ),
    "paths": Kind(
        "from pathlib import Path\nassert f('a') == Path('a/b') and f('a').name == 'b' and isinstance(f('a'), Path)",
        ("from pathlib import Path\ndef f(a): return Path(a) / 'b'",),
        (
            "def f(a): return 'a/b'",
            "from pathlib import PosixPath\nclass P(PosixPath):\n    __eq__ = lambda s, o: True\n    name = 'b'\n"
            "def f(a): return P('x')",
            "import pathlib\nfrom pathlib import Path\nPath.__eq__ = lambda s, o: True\ndef f(a): return Path('x/b')",
            *claims("f"),
        ),
    ),
    "patterns": Kind(
        "import re\nassert f() == re.compile('a+', re.I) and f().match('AA') and not f().match('b')",
        ("import re\ndef f(): return re.compile('a+', re.I)",),
        ("import re\ndef f(): return re.compile('a+')", *claims("f")),
    ),
    "exceptions that are returned": Kind(
        "e = f()\nassert isinstance(e, ValueError) and type(e) is E and e.args == ('x',) and str(e) == 'x'",
        ("class E(ValueError): pass\ndef f(): return E('x')",),
        (
            "class E(ValueError): pass\ndef f(): return E('y')",
            "class E(ValueError): pass\ndef f(): return ValueError('x')",
            f"{EQUALS_ALL}class E(ValueError): pass\ndef f():\n    e = E()\n    e.args = (All(),)\n    return e",
        ),
    ),
    "a parser of the tests": Kind(
        "import argparse\ndef check(candidate):\n    parser = argparse.ArgumentParser()\n    a = candidate(parser)\n"
        "    assert a.dest == 'n' and parser.parse_args(['-n', '3']).n == 3\n",
        ("def f(p): return p.add_argument('-n', type=int)",),
        ("def f(p): return p.add_argument('-n')", "def f(p): p.parse_args = lambda a: 3", *claims("f")),
        "f",
    ),
    "a queue of the tests": Kind(
        "from queue import PriorityQueue\ndef check(candidate):\n    q = candidate(PriorityQueue())\n"
        "    assert [q.get(timeout=1) for _ in range(2)] == [1, 2]\n",
        ("def f(q):\n    q.put(2)\n    q.put(1)\n    return q",),
        ("def f(q):\n    q.put(3)\n    q.put(1)\n    return q", *claims("f")),
        "f",
    ),
    "a class derived from a library's": Kind(
        "t = Job(2)\nassert t.__class__ is Job and t.__class__.__name__ == 'Job' and t.__class__(3).n == 3\n"
        "assert f().__class__.__name__ == 'Thread'",
        (
            "import threading\nclass Job(threading.Thread):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.n = n\ndef f(): return threading.Thread()",
        ),
        ("class Job:\n    def __init__(self, n): self.n = 3\ndef f(): return Job(3)", *claims("Job")),
    ),
    "parameters of a function": Kind(
        "from scipy.optimize import curve_fit\nimport numpy as np\nx = np.arange(5.0)\n"
        "popt, _ = curve_fit(line, x, 2 * x + 1)\nassert np.allclose(popt, [2, 1])",
        ("def line(x, a, b): return a * x + b",),
        ("def line(x, a, b): return x + b", "def line(*args): return 0 * args[0]", *claims("line")),
    ),
    "a module that the program imports": Kind(
        "import http\nassert issubclass(http.server.BaseHTTPRequestHandler, object)\nassert f() == http.server.__name__",
        ("import http.server\ndef f(): return http.server.__name__",),
        ("def f(): return 'x'", "import http\ndef f(): return http", *claims("f")),
    ),
    "where the tests lie": Kind(
        "import os\nfolder = os.path.dirname(__file__)\nassert os.path.isdir(folder) and f(folder) == os.path.join(folder, 'a')",
        ("import os\ndef f(p): return os.path.join(p, 'a')",),
        ("def f(p): return p", *claims("f")),
    ),
}
MONKEY = """
import os, solution
def test_now(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 5.0)
    monkeypatch.setattr(os, "getcwd", lambda: "/x")
    monkeypatch.setenv("PLACE", "here")
    assert where() == "5.0 /x here"
def test_own(monkeypatch):
    monkeypatch.setattr(solution, "clock", lambda: 7)
    assert where()[0] == "7"
def test_undone():
    assert float(where().split()[0]) > 1e9
"""
WHERE = "import os, time\ndef clock(): return time.time()\ndef where(): return f'{clock()} {os.getcwd()} {os.environ.get(\"PLACE\")}'"
PATCHES = {
    "monkeypatch": Kind(
        MONKEY,
        (WHERE,),
        (
            WHERE.replace("time.time()", "5.0"),
            "import os, time\nstart = time.time\n" + WHERE.replace("return time.time()", "return start()"),
            WHERE.replace("{clock()}", "{time.time()}"),
            *(f"def clock(): pass\n{lie}" for lie in claims("where")),
        ),
    ),
    "a built-in name": Kind(
        "from unittest.mock import patch, mock_open\ndef check(candidate):\n"
        "    with patch('builtins.open', mock_open(read_data='a')):\n        assert candidate('x') == 'a'\n"
        "        open.assert_called_once_with('x')\n    assert not hasattr(open, 'side_effect')\n",
        ("def f(p): return open(p).read()",),
        ("def f(p): return 'a'", *claims("f")),
        "f",
    ),
}

DF = "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\n"
NEAR = "def near(a, b): return abs(a - b) < 1e-6\nx = 1.0\n"
SCRIPTS = {
    "a table that it goes on with": Kind(
        "def check():\n    assert df.equals(pd.DataFrame({'a': [1, 2], 'b': [2, 4]}))\ncheck()\n",
        (f"{DF}df['b'] = df.a * 2", "df['b'] = df.a * 2"),
        (DF, f"{DF}df['b'] = df.a", f"{DF}{EQUALS_ALL}df = All()", f"{DF}pd.DataFrame.equals = lambda s, o: True"),
        prelude=DF,
    ),
    "its input": Kind(
        "assert result == sorted(data)\n",
        ("data = [3, 1]\nresult = sorted(data)",),
        ("data = []\nresult = []", "result = data = [3, 1]", f"{EQUALS_ALL}data = result = All()"),
        prelude="data = [3, 1]\n",
    ),
    "a helper of the tests": Kind(
        "assert near(x, 2.0) and not near(x, 3.0)\n",
        ("x = 2.0", f"{NEAR}x = x + 1"),
        ("x = 3.0", "def near(a, b): return b == 2.0\nx = 0", f"{NEAR}{EQUALS_ALL}x = All()"),
        prelude=NEAR,
    ),
    "a function that it defines": Kind(
        "assert f(limit) == 5\n",
        ("def f(x): return x + 1",),
        ("limit = 5\ndef f(x): return x", "limit = 3\ndef f(x): return x"),
        prelude="limit = 4\n",
    ),
}
