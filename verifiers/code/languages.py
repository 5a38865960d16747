"""What programming languages are called.

    language_name("Python3")   "python"        language_name("c++17")   "cpp"
    language_name("Haskell")   "haskell"       language_name("")        ""

Known are the spellings of data sets and of the first word behind a Markdown fence; another name comes back in lower
case.
"""

from __future__ import annotations

import re

_ALIASES = {
    "python": "py python2 python3 pypy pypy3 py3 cpython ipython sage",
    "cpp": "c++ cc cxx g++ gnu++ clang++",
    "c": "gcc",
    "javascript": "js node nodejs ecmascript mjs jsx",
    "typescript": "ts tsx",
    "java": "openjdk",
    "csharp": "c# cs dotnet",
    "go": "golang",
    "rust": "rs",
    "ruby": "rb",
    "kotlin": "kt kts",
    "bash": "sh shell zsh",
    "perl": "pl",
    "haskell": "hs",
    "julia": "jl",
    "d": "dlang",
    "php": "php7 php8",
}
_NAMES = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}
_VERSION = re.compile(r"[-_ ]?v?\d{1,3}(?:\.\d{1,4}){0,2}$")


def language_name(name: str) -> str:
    """Return the usual name of a language."""
    plain = name.strip().lower()
    if plain in _NAMES:
        return _NAMES[plain]
    unversioned = _VERSION.sub("", plain)
    return _NAMES.get(unversioned, unversioned if unversioned in _ALIASES else plain)
