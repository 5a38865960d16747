"""Finds how programs in other languages than sandboxed Python are compiled and run on this machine.

    LANGUAGES["cpp"].toolchain()  ->  Toolchain(compile=["/usr/bin/g++", "-O2", ...], run=["./main"], ...)  or None

Command lines are those that judges of programming contests use. Not covered: packages of a language (npm, crates).

From 1.20 on Go comes without its library compiled (`fill_go_cache`). Each program would compile it anew, which takes
half a minute and more room than a program's folder has. So the packages that programs use are compiled here once,
outside of the sandbox, with no program near them; in there the folder is for reading alone, and only the program itself
is compiled.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

from truegold.verifiers.sandbox.languages import CPP_EDITIONS, DEFAULT_CPP, JAVA_EDITIONS, without_package
from truegold.verifiers.sandbox.limits import Limits

ASK_S = 20.0
"""Seconds that a toolchain may take to say where it lives."""


JAVA_FILE = "Main.java"


@dataclass(frozen=True)
class Toolchain:
    """The command lines of a language, in which `{memory}` stands for the memory limit in megabytes and `{main}` for
    the main class or file."""

    compile: list[str] | None
    """None for languages that are not compiled."""
    run: list[str]
    made: list[str] = field(default_factory=list)
    """File patterns of what compiling makes and running needs."""
    expose: list[str] = field(default_factory=list)
    """Folders outside the system's own that the toolchain lives in."""
    environment: Mapping[str, str] = field(default_factory=dict)
    test_flags: list[str] = field(default_factory=list)
    """What the compiler is told where the source is a set of tests and not a program."""
    make_ready: Callable[[], None] = lambda: None
    """What has to be done once on a machine before the first program is compiled."""


@dataclass(frozen=True)
class Language:
    """One language."""

    name: str
    file: str
    """What the source is called."""
    find: Callable[[], Toolchain | None]
    """Looks for its toolchain on this machine."""
    package: str = ""
    """What to install where there is none, as Debian calls it."""

    @cache  # noqa: B019  (There is only a handful of languages, which live as long as the process.)
    def toolchain(self) -> Toolchain | None:
        """Return its toolchain, None where it is not installed."""
        return self.find()

    def file_for(self, source: str) -> str:
        """Return what the source file has to be called: a public Java class has to be in a file of its name."""
        return f"{_java_class(source)}.java" if self.file == JAVA_FILE else self.file

    def text_of(self, source: str) -> str:
        """Return the source as it is compiled."""
        return without_package(source) if self.file == JAVA_FILE else source

    def command(self, argv: list[str], source: str, limits: Limits) -> list[str]:
        """Fill in a command line of its toolchain."""
        main = _java_class(source) if self.file == JAVA_FILE else self.file
        return [part.format(memory=limits.memory_mb, main=main) for part in argv]


def available_toolchains() -> dict[str, Toolchain]:
    """Return the toolchains that are installed here, by language."""
    toolchains = {name: language.toolchain() for name, language in LANGUAGES.items()}
    return {name: toolchain for name, toolchain in toolchains.items() if toolchain is not None}


def _c() -> Toolchain | None:
    path = shutil.which("gcc")
    argv = ["-O2", "-std=gnu17", "-o", "main", "main.c", "-lm"]
    return Toolchain([path, *argv], ["./main"], ["main"]) if path else None


def _script(interpreter: str, *arguments: str) -> Toolchain | None:
    path = shutil.which(interpreter)
    return None if path is None else _interpreted(path, *arguments)


def _interpreted(path: str, *arguments: str) -> Toolchain:
    home = str(Path(path).resolve().parent.parent)
    return Toolchain(None, [path, *arguments, "{main}"], expose=_outside_system(home))


def _python(version: str, *commands: str) -> Toolchain | None:
    """Return the first of `commands` that is a Python of this version, which a launcher of that name need not be."""
    ask = "import sys; print('%s %d' % (sys.executable, sys.version_info[0]))"
    for command in filter(None, map(shutil.which, commands)):
        path, _, major = (_output_of([command, "-c", ask]) or "").rpartition(" ")
        if major == version:
            return _interpreted(path)
    return None


def _java() -> Toolchain | None:
    compiler, machine = shutil.which("javac"), shutil.which("java")
    if compiler is None or machine is None:
        return None
    home = Path(compiler).resolve().parent.parent
    # Small heaps of a collector without threads start fast; the machine's own shared archive is in the home folder.
    small = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
    return Toolchain(
        [str(home / "bin" / "javac"), *(f"-J{option}" for option in small), "-encoding", "UTF-8", "{main}.java"],
        [str(home / "bin" / "java"), *small, "-Xss64m", "-Xmx{memory}m", "-ea", "-cp", ".", "{main}"],
        ["*.class"],
        [*_outside_system(str(home)), *map(str, Path("/etc").glob("java*"))],
        # A program finds libraries beside itself by way of /proc, which there is none of.
        {"LD_LIBRARY_PATH": f"{home}/lib"},
    )


def _rust() -> Toolchain | None:
    compiler = shutil.which("rustc")
    if compiler is None:
        return None
    # What is called rustc may be a launcher that needs a home folder; the compiler itself does not.
    home = _output_of([compiler, "--print", "sysroot"])
    if home is None:
        return None
    # Rust's own linker looks itself up in /proc.
    linker = ["-C", "link-arg=-fuse-ld=bfd"]
    return Toolchain(
        [f"{home}/bin/rustc", "-O", "--edition", "2021", *linker, "-o", "main", "main.rs"],
        ["./main"],
        ["main"],
        _outside_system(home),
        {"LD_LIBRARY_PATH": f"{home}/lib"},
        ["--test"],
    )


def _go() -> Toolchain | None:
    tool = shutil.which("go")
    home = _output_of([tool, "env", "GOROOT"]) if tool else None
    if home is None:
        return None
    environment = {
        "GOROOT": home,  # It would look for itself in /proc.
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
        "GOFLAGS": "-p=2",
    }
    argv = [f"{home}/bin/go", "build", "-o", "main", "main.go"]
    toolchain = Toolchain(argv, ["./main"], ["main"], _outside_system(home), environment)
    version = (_output_of([f"{home}/bin/go", "env", "GOVERSION"]) or "").removeprefix("go")
    if (folder := go_cache_folder(version)) is None:
        return toolchain
    return replace(
        toolchain,
        expose=[*toolchain.expose, str(folder)],
        environment={**environment, "GOCACHE": str(folder)},
        make_ready=partial(fill_go_cache, folder, f"{home}/bin/go", environment),
    )


def _cpp(standard: str) -> Toolchain | None:
    path = shutil.which("g++")
    if path is None or _output_of([path, f"-std=gnu++{standard}", "-x", "c++", "-E", "-dM", os.devnull]) is None:
        return None
    return Toolchain([path, "-O2", f"-std=gnu++{standard}", "-o", "main", "main.cpp"], ["./main"], ["main"])


def _java_of(version: int) -> Toolchain | None:
    """Return a Java of this version or a later one, which runs programs of an earlier one, not the other way round."""
    toolchain = _java()
    return toolchain if toolchain is not None and _java_version(toolchain.run[0]) >= version else None


@cache
def _java_version(machine: str) -> int:
    version = re.search(r"(?:1\.)?(\d+)", (_output_of([machine, "--version"]) or "").partition("\n")[0])
    return int(version[1]) if version else 0


_INTERPRETED = tomllib.loads(files(__package__).joinpath("interpreters.toml").read_text(encoding="utf-8")).items()
"""The languages whose programs are run by one command."""

LANGUAGES = {
    language.name: language
    for language in (
        Language("c", "main.c", _c, "gcc"),
        Language("cpp", "main.cpp", partial(_cpp, DEFAULT_CPP), "g++"),
        *(Language(f"cpp{edition}", "main.cpp", partial(_cpp, edition), "a later g++") for edition in CPP_EDITIONS),
        Language("java", JAVA_FILE, _java, "default-jdk-headless"),
        *(Language(f"java{n}", JAVA_FILE, partial(_java_of, n), f"openjdk-{n}-jdk-headless") for n in JAVA_EDITIONS),
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


def _java_class(source: str) -> str:
    """Return the class to run: the public one, else the one with a main method, else Main."""
    public = re.search(r"\bpublic\s+(?:final\s+|abstract\s+)*class\s+(\w+)", source)
    if public:
        return public[1]
    main = re.search(r"\bstatic\s+(?:final\s+)?void\s+main\s*\(", source)
    classes = re.findall(r"\bclass\s+(\w+)", source[: main.start()]) if main else []
    return str(classes[-1]) if classes else "Main"


def _outside_system(folder: str) -> list[str]:
    return [] if folder in {"/", "/usr"} or folder.startswith(("/usr/", "/bin")) else [folder]


def _output_of(command: list[str]) -> str | None:
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip() or None


PACKAGES = """
bufio bytes cmp container/heap container/list container/ring context crypto/md5 crypto/sha1 crypto/sha256
encoding/base64 encoding/binary encoding/hex encoding/json errors fmt hash/fnv io iter maps math math/big
math/bits math/cmplx math/rand math/rand/v2 os reflect regexp runtime slices sort strconv strings sync
sync/atomic text/tabwriter time unicode unicode/utf16 unicode/utf8
""".split()
"""A program that imports others compiles those itself."""

BUILD_S = 900.0
"""The time for all packages. What takes longer is left to the programs that import it."""
FOLDER_FOR_ALL = Path("/var/cache")
"""Where root puts it: in the tier `container` root's programs run as somebody who may not enter root's home folder."""

_DONE = "truegold-done"


def go_cache_folder(version: str) -> Path | None:
    """Return the folder for a version of Go, empty as long as `fill` was not called; None where none can be made."""
    users_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    base = FOLDER_FOR_ALL if os.geteuid() == 0 else users_folder
    folder = base / "truegold" / f"go-{version}"
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def fill_go_cache(folder: Path, tool: str, environment: Mapping[str, str]) -> None:
    """Compile the packages into the folder, unless that was done. environment: what programs are compiled with.

    Packages that this version does not have are left out. Where none can be compiled, the toolchain is broken: the next
    process tries again, since it may have been mended.
    """
    if (folder / _DONE).exists():
        return
    # A user who cannot write there finds what another one has put there, or nothing.
    with contextlib.suppress(OSError), (folder / "truegold-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _DONE).exists():
            return
        if not _compile(tool, {"PATH": os.defpath, **environment, "GOCACHE": str(folder)}):
            return
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (folder / _DONE).touch()


def _compile(tool: str, environment: Mapping[str, str]) -> bool:
    """Compile all packages, one by one where that fails, and return whether any could be."""
    deadline = time.monotonic() + BUILD_S
    compiled = False
    with tempfile.TemporaryDirectory() as home:
        for packages in (PACKAGES, *([package] for package in PACKAGES)):
            try:
                build = subprocess.run(
                    [tool, "build", *packages],
                    env={**environment, "HOME": home},
                    cwd=home,
                    capture_output=True,
                    timeout=max(0.0, deadline - time.monotonic()),
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return True
            compiled |= build.returncode == 0
            if build.returncode == 0 and len(packages) > 1:
                break
    return compiled
