"""Finds compilers and interpreters on this machine, for all languages except Python 3.

    LANGUAGES["cpp"].toolchain()  ->  Toolchain(compile=["/usr/bin/g++", "-O2", ...], run=["./main"], ...)  or None

The command lines are those of judges of programming contests. Not covered: packages of a language (npm, crates).

The packages of Go's library are compiled once on a machine, for all programs:

    folder = go_cache_folder("1.22")                           ~/.cache/truegold/go-1.22, or in /var/cache for root
    fill_go_cache(folder, "/usr/lib/go/bin/go", environment)   half a minute the first time, then at once

Since version 1.20 Go ships its library as source only. The compiled library does not fit into a program's folder. So
the library is compiled outside of the sandbox, where no program runs, and is read-only in the sandbox.

Names of languages and of their editions are read as data sets, judges and Markdown fences spell them:

    language_name("Python3")   "python"        language_name("c++20")        "cpp"
    language_name("Haskell")   "haskell"       language_name("")             ""
    edition_name("Python3")    "python"        edition_name("GNU C++20 (64)")  "cpp20"
    edition_name("python 2.7") "python2"       edition_name("PyPy 3-64")       "pypy"

Unknown names are returned in lower case. Two editions have different names if a program may fail in one of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib.resources import files
from pathlib import Path

from truegold.verifiers.sandbox.execution import Limits

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
"""A package declaration and the comments before it. Possessive groups keep the match fast for a long row of slashes."""


@lru_cache(maxsize=CACHED_NAMES)
def language_name(name: str) -> str:
    """Return the usual name of a language."""
    plain = name.strip().lower().removeprefix("gnu ")
    if plain in _NAMES:
        return _NAMES[plain]
    unversioned = _VERSION.sub("", plain)
    return _NAMES.get(unversioned, unversioned if unversioned in _ALIASES else plain)


def is_known(name: str) -> bool:
    """Return whether this is the usual name of a language."""
    return name in _ALIASES


@lru_cache(maxsize=CACHED_NAMES)
def edition_name(name: str) -> str:
    """Return the usual name of a language with its edition: cpp20, java21, pypy. C++17 is `cpp`, Python 3 `python`."""
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


GO_PACKAGES = """
bufio bytes cmp container/heap container/list container/ring context crypto/md5 crypto/sha1 crypto/sha256
encoding/base64 encoding/binary encoding/hex encoding/json errors fmt hash/fnv io iter maps math math/big
math/bits math/cmplx math/rand math/rand/v2 os reflect regexp runtime slices sort strconv strings sync
sync/atomic text/tabwriter time unicode unicode/utf16 unicode/utf8
""".split()
"""Packages that programs usually import. Other packages are compiled again for each program that imports them."""

BUILD_S = 900.0
"""Maximum time for compiling all packages, in seconds. Programs then compile the missing packages themselves."""

FOLDER_FOR_ALL = Path("/var/cache")
"""Root's cache folder. In the tier `container` programs of root run as a user who may not enter root's home."""

_DONE = "truegold-done"
"""The name of an empty file. It exists once the packages are compiled."""


def go_cache_folder(version: str) -> Path | None:
    """Return the cache folder of a version of Go, or None if it cannot be made. `fill_go_cache` fills it."""
    users_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    base = FOLDER_FOR_ALL if os.geteuid() == 0 else users_folder
    folder = base / "truegold" / f"go-{version}"
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def fill_go_cache(folder: Path, tool: str, environment: Mapping[str, str]) -> None:
    """Compile the packages into the folder, unless that was done. environment: variables for the compiler.

    After a failure the next process tries again. After a timeout no process does.
    """
    if (folder / _DONE).exists():
        return
    # A user without write access uses the packages that another user has compiled, if any.
    with (
        contextlib.suppress(OSError),
        (folder / "truegold-lock").open("w") as lock,
        tempfile.TemporaryDirectory() as home,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _DONE).exists():
            return
        ask = partial(
            subprocess.run,
            env={"PATH": os.defpath, **environment, "GOCACHE": str(folder), "HOME": home},
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=BUILD_S,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            known = ask([tool, "list", "-e", "-f", "{{if not .Error}}{{.ImportPath}}{{end}}", *GO_PACKAGES]).stdout
            if ask([tool, "build", *known.split()]).returncode != 0:
                return
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (folder / _DONE).touch()


ASK_S = 20.0
"""Maximum time that a toolchain takes to print its version or folder, in seconds."""

JAVA_FILE = "Main.java"

_INTERPRETED = tomllib.loads(files(__package__).joinpath("interpreters.toml").read_text(encoding="utf-8")).items()
"""Languages whose programs one command runs without compiling."""

_PUBLIC_CLASS = re.compile(r"\bpublic\s+(?:final\s+|abstract\s+)*class\s+(\w+)")
"""The declaration of a public class: `public final class Main`."""

_MAIN_METHOD = re.compile(r"\bstatic\s+(?:final\s+)?void\s+main\s*\(")
"""The declaration of a main method: `static void main(`."""

_JAVA_VERSION = re.compile(r"(?:1\.)?(\d+)")
"""The major version of Java: 17 of `openjdk 17.0.9 2023-10-17`, 8 of `java 1.8.0`."""


@dataclass(frozen=True)
class Toolchain:
    """Command lines of a language. `{memory}` is the memory limit in MiB, `{main}` the main class or file."""

    compile: list[str] | None
    """The command that compiles, or None for languages that are not compiled."""
    run: list[str]
    made: list[str] = field(default_factory=list)
    """Patterns of the files that the compiler makes and the program needs."""
    expose: list[str] = field(default_factory=list)
    """Folders of the toolchain outside the system's folders, which programs have to see."""
    environment: Mapping[str, str] = field(default_factory=dict)
    make_ready: Callable[[], None] = lambda: None
    """Work that is done once on a machine, before the first program is compiled."""


@dataclass(frozen=True)
class Language:
    """A language that programs can be written in."""

    name: str
    file: str
    """The file name of the source."""
    find: Callable[[], Toolchain | None]
    """Returns its toolchain on this machine, or None."""
    package: str = ""
    """The Debian package that installs its toolchain."""

    @cache  # noqa: B019  (There is only a handful of languages, which live as long as the process.)
    def toolchain(self) -> Toolchain | None:
        """Return its toolchain, or None if it is not installed."""
        return self.find()

    def file_for(self, source: str) -> str:
        """Return the name of the source file. A public Java class needs a file of the same name."""
        return f"{java_class(source)}.java" if self.file == JAVA_FILE else self.file

    def text_of(self, source: str) -> str:
        """Return the source as it is compiled."""
        return without_package(source) if self.file == JAVA_FILE else source

    def command(self, argv: list[str], source: str, limits: Limits) -> list[str]:
        """Return a command line of its toolchain with `{memory}` and `{main}` filled in."""
        main = java_class(source) if self.file == JAVA_FILE else self.file
        return [part.format(memory=limits.memory_mb, main=main) for part in argv]


def available_toolchains() -> dict[str, Toolchain]:
    """Return the toolchains that are installed here, by language."""
    toolchains = {name: language.toolchain() for name, language in LANGUAGES.items()}
    return {name: toolchain for name, toolchain in toolchains.items() if toolchain is not None}


def _gnu(command: str, kind: str, standard: str, *libraries: str) -> Toolchain | None:
    """Return a compiler of C or C++, or None if it is missing or does not know the standard."""
    path, edition = shutil.which(command), f"-std={standard}"
    if path is None or _output_of([path, edition, "-x", kind, "-E", "-dM", os.devnull]) is None:
        return None
    compile_it = [path, "-O2", edition, "-o", "main", "{main}", *libraries]
    return Toolchain(compile=compile_it, run=["./main"], made=["main"])


def _script(interpreter: str, *arguments: str) -> Toolchain | None:
    path = shutil.which(interpreter)
    return None if path is None else _interpreted(path, *arguments)


def _interpreted(path: str, *arguments: str) -> Toolchain:
    home = str(Path(path).resolve().parent.parent)
    return Toolchain(compile=None, run=[path, *arguments, "{main}"], expose=_outside_system(home))


def _python(version: str, *commands: str) -> Toolchain | None:
    """Return the first of `commands` that is a Python of this version. A launcher named python2 may start Python 3."""
    ask = "import sys; print('%s %d' % (sys.executable, sys.version_info[0]))"
    for command in filter(None, map(shutil.which, commands)):
        path, _, major = (_output_of([command, "-c", ask]) or "").rpartition(" ")
        if major == version:
            return _interpreted(path)
    return None


def _java(version: int = 0) -> Toolchain | None:
    """Return a Java of this version or a later one: a later Java runs programs of an earlier one."""
    compiler, runtime = shutil.which("javac"), shutil.which("java")
    if compiler is None or runtime is None:
        return None
    home = Path(compiler).resolve().parent.parent
    if version and _java_version(str(home / "bin" / "java")) < version:
        return None
    # Small heaps and a collector without threads start fast. Java's archive of its own classes is in the home folder.
    small = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
    compiler_options = [*(f"-J{option}" for option in small), "-encoding", "UTF-8"]
    return Toolchain(
        compile=[str(home / "bin" / "javac"), *compiler_options, "{main}.java"],
        run=[str(home / "bin" / "java"), *small, "-Xss64m", "-Xmx{memory}m", "-ea", "-cp", ".", "{main}"],
        made=["*.class"],
        expose=[*_outside_system(str(home)), *map(str, Path("/etc").glob("java*"))],
        # Java finds the libraries next to itself through /proc, which the sandbox does not have.
        environment={"LD_LIBRARY_PATH": f"{home}/lib"},
    )


def _rust() -> Toolchain | None:
    compiler = shutil.which("rustc")
    # `rustc` may be a launcher that needs a home folder. The compiler behind it needs none.
    home = _output_of([compiler, "--print", "sysroot"]) if compiler else None
    if home is None:
        return None
    linker = ["-C", "link-arg=-fuse-ld=bfd"]  # Rust's own linker reads /proc, which the sandbox does not have.
    return Toolchain(
        compile=[f"{home}/bin/rustc", "-O", "--edition", "2021", *linker, "-o", "main", "main.rs"],
        run=["./main"],
        made=["main"],
        expose=_outside_system(home),
        environment={"LD_LIBRARY_PATH": f"{home}/lib"},
    )


def _go() -> Toolchain | None:
    tool = shutil.which("go")
    home = _output_of([tool, "env", "GOROOT"]) if tool else None
    if home is None:
        return None
    # Without GOROOT, Go would look for itself in /proc.
    environment = {"GOROOT": home, "GO111MODULE": "off", "CGO_ENABLED": "0", "GOFLAGS": "-p=2"}
    path = f"{home}/bin/go"
    folder = go_cache_folder((_output_of([path, "env", "GOVERSION"]) or "").removeprefix("go"))
    return Toolchain(
        compile=[path, "build", "-o", "main", "main.go"],
        run=["./main"],
        made=["main"],
        expose=[*_outside_system(home), *([str(folder)] if folder else [])],
        environment={**environment, "GOCACHE": str(folder)} if folder else environment,
        make_ready=partial(fill_go_cache, folder, path, environment) if folder else lambda: None,
    )


@cache
def _java_version(runtime: str) -> int:
    """Return the major version of a Java, or 0 if it prints none."""
    version = _JAVA_VERSION.search((_output_of([runtime, "--version"]) or "").partition("\n")[0])
    return int(version[1]) if version else 0


LANGUAGES = {
    language.name: language
    for language in (
        Language("c", "main.c", partial(_gnu, "gcc", "c", "gnu17", "-lm"), "gcc"),
        *(
            Language(f"cpp{n}".removesuffix(DEFAULT_CPP), "main.cpp", partial(_gnu, "g++", "c++", f"gnu++{n}"), "g++")
            for n in (DEFAULT_CPP, *CPP_EDITIONS)
        ),
        Language("java", JAVA_FILE, _java, "default-jdk-headless"),
        *(Language(f"java{n}", JAVA_FILE, partial(_java, n), f"openjdk-{n}-jdk-headless") for n in JAVA_EDITIONS),
        Language("python2", "main.py", partial(_python, "2", "python2", "python2.7"), "python2"),
        Language("pypy2", "main.py", partial(_python, "2", "pypy2", "pypy"), "pypy"),
        Language("pypy", "main.py", partial(_python, "3", "pypy3", "pypy"), "pypy3"),
        Language("rust", "main.rs", _rust, "rustc"),
        Language("go", "main.go", _go, "golang-go"),
        *(
            Language(name, row["file"], partial(_script, *row["command"].split()), row["package"])
            for name, row in _INTERPRETED
        ),
    )
}


def java_class(source: str) -> str:
    """Return the class to run: the public class, else the class with a main method, else Main."""
    if public := _PUBLIC_CLASS.search(source):
        return public[1]
    main = _MAIN_METHOD.search(source)
    classes = re.findall(r"\bclass\s+(\w+)", source[: main.start()]) if main else []
    return str(classes[-1]) if classes else "Main"


def _outside_system(folder: str) -> list[str]:
    """Return a list with the folder, or an empty list for a folder of the system, which every program sees."""
    return [] if folder in {"/", "/usr"} or folder.startswith(("/usr/", "/bin")) else [folder]


def _output_of(command: list[str]) -> str | None:
    """Return the output of a command, or None if it fails or prints nothing."""
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip() or None
