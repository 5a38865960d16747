"""Normalises names of programming languages and of their editions, as data sets, judges and Markdown fences spell them.

    language_name("Python3")   "python"        language_name("c++20")        "cpp"
    language_name("Haskell")   "haskell"       language_name("")             ""
    edition_name("Python3")    "python"        edition_name("GNU C++20 (64)")  "cpp20"
    edition_name("python 2.7") "python2"       edition_name("PyPy 3-64")       "pypy"

Unknown names are returned in lower case. Editions are distinguished if a program of one may fail under another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

_ALIASES: Mapping[str, str] = json.loads(files(__package__).joinpath("languages.json").read_text(encoding="utf-8"))
"""Other spellings of each language, separated by blanks."""

DEFAULT_CPP, CPP_EDITIONS = "17", ("98", "03", "11", "14", "20", "23", "26")
JAVA_EDITIONS = range(8, 31)
_CPP_DRAFTS = {"0x": "11", "1y": "14", "1z": "17", "2a": "20", "2b": "23", "2c": "26"}
"""Names of C++ editions before they were published."""

_EDITIONS = re.compile(
    r"(?:(?:gnu|ms|clang|visual)\s*)*(?:(?P<cpp>(?:[cg]\+\+|cpp|cc|cxx|gnu\+\+|clang\+\+)[-_ ]?(?P<standard>\d[\da-c]))"
    r"|(?:java|openjdk)[-_ ]?(?:1\.)?(?P<java>\d{1,2})"
    r"|(?P<python2>(?:python|py|cpython)[-_ ]?2(?:\.\d{1,2}){0,2})|(?P<pypy2>pypy[-_ ]?2(?:\.\d{1,2}){0,2})"
    r"|(?P<pypy>pypy[-_ ]?(?:3(?:\.\d{1,2}){0,2})?))"
)
"""An edition: `gnu c++20`, `cpp2a`, `java 1.8`, `python 2.7`, `pypy3`. The group that matches names the family."""

_JUDGE_REMARK = re.compile(r"\s*\([^()]{0,40}\)\s*$|[-_ ](?:64|32)(?:[-_ ]?bit)?$")
"""A remark of a judge after a language: `(GCC 13-64, winlibs)`, `-64`."""

CACHED_NAMES = 1024
_NAMES = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}
_VERSION = re.compile(r"[-_ ]?v?\d{1,3}(?:\.\d{1,4}){0,2}$")
"""A version at the end of a name: `python3`, `ruby 3.2.1`, `node-v18`."""

_PACKAGE = re.compile(r"\A((?:\s++|//[^\n]*+|/\*(?>.*?\*/))*+)package\s+[\w.]+\s*;", re.DOTALL)
"""A package declaration and the comments before it. Atomic groups keep a row of slashes from taking for ever."""


@lru_cache(maxsize=CACHED_NAMES)
def language_name(name: str) -> str:
    """Return the usual name of a language."""
    plain = name.strip().lower()
    if plain in _NAMES:
        return _NAMES[plain]
    unversioned = _VERSION.sub("", plain)
    return _NAMES.get(unversioned, unversioned if unversioned in _ALIASES else plain)


def is_known(name: str) -> bool:
    """Return whether this is the usual name of a language."""
    return name in _ALIASES


@lru_cache(maxsize=CACHED_NAMES)
def edition_name(name: str) -> str:
    """Return the usual name of a language with its edition: cpp20, java21, pypy. The usual edition is not named."""
    plain = _JUDGE_REMARK.sub("", name.strip().lower())
    edition = _EDITIONS.fullmatch(plain)
    if edition is None:
        return language_name(plain)
    if edition["cpp"]:
        standard = _CPP_DRAFTS.get(edition["standard"], edition["standard"])
        return "cpp" if standard == DEFAULT_CPP else f"cpp{standard}"
    if edition["java"]:
        return f"java{int(edition['java'])}"
    return next(interpreter for interpreter in ("python2", "pypy2", "pypy") if edition[interpreter])


def without_package(source: str) -> str:
    """Return a Java program without its package declaration, so that its class can be run from a single file."""
    return _PACKAGE.sub(r"\1", source, count=1)
