"""Builds drivers for languages other than Python: programs around a solution that call it and print the results.

    compose("cpp", "class Solution { public: int add(int a, int b) ... };", CallTarget("Solution().add"))
        a program in C++ that reads a line `[1, 2]` from stdin and prints `{"r":3}`

The lines have the format of the role `calls` (`inside/roles.py`). Text that the solution prints goes to stderr. The
program has three parts: headers and classes that solutions of data sets rely on, the solution, and the driver.

In C++ the compiler deduces the types, and in Java reflection finds them. In JavaScript and Python the types are
unknown: a list may represent a linked list, or the result may be a changed argument. The suite then states the types:

    {"params": ["ListNode", "int"], "returns": "ListNode"}            Signature(("ListNode", ""), "ListNode")
    "def merge(self, lists: List[Optional[ListNode]]) -> None: ..."   Signature(("ListNode[]",), "void")
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files

from truegold.verifiers.code.outcomes import BadSuite, shown
from truegold.verifiers.code.python_source import parse
from truegold.verifiers.sandbox.inside.wire.value_types import Json
from truegold.verifiers.sandbox.toolchains import CACHED_NAMES, java_class, language_name, without_package

_NODE = re.compile(r"\b(ListNode|TreeNode)\b")
_NODE_LIST = re.compile(r"(?:List|list|Sequence|vector|ArrayList|Array|Vec)\s*[\[<]|\[\s*\]")
_JSDOC_PARAM = re.compile(r"@param\s*\{([^}\n]{1,200})\}")
_JSDOC_RETURN = re.compile(r"@returns?\s*\{([^}\n]{1,200})\}")
VOID = "void"
"""The result type of a function that returns nothing."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of parameters and result.

    A type is `ListNode`, `TreeNode`, a list of these (`ListNode[]`), `void`, or an empty text for any other type.
    """

    params: tuple[str, ...] = ()
    returns: str = ""

    def param(self, index: int) -> str:
        """Return the type of a parameter, or an empty text if it is unknown."""
        return self.params[index] if index < len(self.params) else ""


def read_signature(value: object, name: str, field: str) -> Signature:
    """Return the signature that a suite states as a Python definition or an object. Raises `BadSuite` for others."""
    if isinstance(value, str):
        signature = signature_of_stub(value, name)
        if signature is None:
            raise BadSuite(f"{field} must define {name}, as in 'def {name}(head: ListNode) -> ListNode'")
        return signature
    params = value.get("params") if isinstance(value, Mapping) else None
    returns = value.get("returns", "") if isinstance(value, Mapping) else None
    if not isinstance(params, Sequence) or isinstance(params, str) or not isinstance(returns, str):
        raise BadSuite(f"{field} must be a Python definition or an object with params and returns, got {shown(value)}")
    types: list[Json] = [param.get("type") if isinstance(param, Mapping) else param for param in params]
    if not all(isinstance(each, str) for each in types):
        raise BadSuite(f"{field}.params must be a list of types, got {shown(params)}")
    return Signature(tuple(map(_reduce, types)), _reduce(returns))


def signature_of_stub(stub: str, name: str) -> Signature | None:
    """Return the annotated types of a function in Python text, or None if the text does not define the function."""
    # Starter code may have no body.
    text = stub.rstrip()
    bodies = ("", " ...", "\n    ...", "\n        ...", ": ...")
    tree = next((tree for body in bodies if (tree := parse(text + body)) is not None), None)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == name:
            args = [arg for arg in node.args.args if arg.arg not in ("self", "cls")]
            params = tuple(_reduce(ast.unparse(arg.annotation)) if arg.annotation else "" for arg in args)
            signature = Signature(params, _reduce(ast.unparse(node.returns)) if node.returns else "")
            return signature if any(params) or signature.returns else Signature()
    return None


def signature_of_comment(source: str) -> Signature:
    """Return the types in the JSDoc comment of a JavaScript function."""
    returns = _JSDOC_RETURN.search(source)
    return Signature(tuple(map(_reduce, _JSDOC_PARAM.findall(source))), _reduce(returns[1]) if returns else "")


def _reduce(written: str) -> str:
    """Return a written type as `Signature` names it: `Optional[ListNode]` -> `ListNode`, `int` -> an empty text."""
    node = _NODE.search(written)
    if node is not None:
        return f"{node[1]}[]" if _NODE_LIST.search(written) else node[1]
    return VOID if written.strip().strip("'\"") in ("void", "None") else ""


NO_FORM = b"TRUEGOLD_NO_FORM"
"""A mark in the compiler's error for a type that cannot be written as JSON."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_GO_PATHS = """
bufio bytes container/heap container/list crypto/md5 errors fmt math math/big math/bits math/rand os regexp slices sort
strconv strings sync time unicode unicode/utf8
""".split()
"""Go packages that are imported if a program uses them without an import, as some sets of problems allow."""

_SECOND_NODE = re.compile(r"(?m)(?=^(?:struct|class|function) TreeNode)")
"""The start of the second definition in the files `nodes.*`."""
_CPP_NODE, _JAVA_NODE = r"\b(?:struct|class)\s+{}\b\s*[{]", r"\bclass\s+{}\b"
_JS_NODE = r"\b(?:function|class)\s+{}\b|\b{}\s*=\s*(?:function|class)\b"
"""The definition of a class of nodes, whose name replaces `{}`."""
_PUBLIC_TYPE = re.compile(
    r"^(\s*)public\s+((?:(?:final|abstract|strictfp|sealed)\s+)*(?:class|interface|enum|record)\b)", re.MULTILINE
)
_JAVA_IMPORTS = "".join(
    f"import {package}.*;\n" for package in "java.util java.util.function java.util.stream java.math".split()
)


@dataclass(frozen=True, slots=True)
class CallTarget:
    """The function that is called."""

    entry_point: str
    """`add` or `Solution().add`."""
    in_place: int = -1
    """The index of the argument that the call changes into the result, or -1. With -1 the result is the returned value,
    or the first argument if the function returns nothing."""
    signature: Signature = field(default_factory=Signature)
    """The types that the suite states."""
    arity: int | None = None
    """The number of arguments, to select one of several functions with this name. None for a single function."""

    @property
    def name(self) -> str:
        """The name of the function or method."""
        return self.entry_point.rpartition(".")[2].removesuffix("()")


def compose(language: str, source: str, target: CallTarget) -> str:
    """Return the program that makes the calls. language: one of `LANGUAGES`, or an edition such as cpp20."""
    return _COMPOSERS[language_name_of(language)](source, target)


def compose_stated(language: str, head: str, solution: str, tail: str) -> str:
    """Return the whole program for rewritten tests, which print values (`checks/foreign_assertions.py`)."""
    if language in _STATERS:
        return _STATERS[language](head, solution, tail)
    before = {"c": "emit.c", "perl": "emit.pl", "javascript": "head.js"}[language]
    return f"{driver_file(before)}{head}{solution}{tail}"


def _state_cpp(head: str, solution: str, tail: str) -> str:
    # The driver's headers come last, because a program may use names from these headers for its own functions.
    macros = "".join(f"#undef {name}\n" for name in re.findall(r"#[ \t]*define[ \t]+(\w+)", solution))
    tests = f"{head}{solution}\ntemplate <class T> void truegold_emit(const T& value);\n{tail}\n{macros}"
    nodes = _nodes("cpp", tests, _CPP_NODE)
    return f"{tests}{driver_file('head.cpp')}{nodes}{driver_file('driver.cpp')}{driver_file('emit.cpp')}"


def _state_java(head: str, solution: str, tail: str) -> str:
    main = java_class(f"{head}{tail}")
    solution = _PUBLIC_TYPE.sub(r"\1\2", without_package(solution))
    tests = f"{head}{solution}{tail}"
    tests = re.sub(rf"(?:public\s+)?(?=\bclass\s+{main}\b)", "public ", tests, count=1)
    driver = driver_file("driver.java").replace("public class", "class", 1)
    return f"{tests}\n{_nodes('java', tests, _JAVA_NODE)}{driver}{_java_constants([], '', 0)}"


def _state_rust(head: str, solution: str, tail: str) -> str:
    return f"#![allow(warnings)]\n{head}{without_rust_main(solution)}\n{tail}\n{driver_file('emit.rs')}"


def _state_go(head: str, solution: str, tail: str) -> str:
    """Return the whole program in Go. Missing imports are added; unused ones, which Go refuses, are disabled."""
    main = re.compile(r"(?m)^func\s+main\s*\(\s*\)")
    solution = main.sub("func truegoldUnused()", re.sub(r"(?m)^\s*package\s+\w+[^\n]*", "", solution))
    source = re.sub(r"(?m)^\s*package\s+\w+[^\n]*\n?", "", f"{head}{solution}{tail}", count=1)
    before, _, body = _COMMENT.sub(" ", source).partition("func ")
    imported = set(re.findall(r'"([\w/]+)"', before))
    code = _COMMENT.sub(" ", _GO_IMPORTS.sub(" ", source))

    def keep_if_used(line: re.Match[str]) -> str:
        package = re.sub(r"/v\d+$", "", line[2]).rpartition("/")[2]
        return line[0] if re.search(rf"\b{package}\.", code) else f'{line[1]}_ "{line[2]}"'

    def without_unused(declaration: re.Match[str]) -> str:
        return re.sub(r'(?m)((?:^|\()\s*|^import\s+)"([\w/]+)"', keep_if_used, declaration[0])

    lacking = [path for path in _GO_PATHS if re.search(rf"\b{path.rpartition('/')[2]}\.[A-Z]", body)]
    imports = "".join(f'import "{path}"\n' for path in lacking if path not in imported)
    head = f'package main\nimport truegoldfmt "fmt"\n{imports}'
    return f"{head}{_GO_IMPORTS.sub(without_unused, source)}{driver_file('emit.go')}"


@lru_cache(maxsize=CACHED_NAMES)
def language_name_of(language: str) -> str:
    """Return the language of an edition: cpp20 -> cpp."""
    name = language_name(language)
    return name if name in _COMPOSERS else name.rstrip("0123456789")


def name_in(source: str, name: str, pattern: str) -> str:
    """Return the spelling of a name that the source defines: `two_sum` may be `twoSum` there.

    pattern: matches a definition, with `{}` for the name. Returns the name unchanged if no spelling is defined.
    """
    code = _COMMENT.sub(" ", source)
    # Functions come before classes, whose names begin with a capital letter.
    names = sorted(names_like(source, name), key=lambda each: (each != name, each[:1].isupper(), each))
    return next((each for each in names if re.search(pattern.replace("{}", each), code)), name)


def names_like(source: str, name: str) -> set[str]:
    """Return the words of a source that equal a name apart from case and underscores: `two_sum`, `twoSum`."""
    words = re.findall(r"\w+", _COMMENT.sub(" ", source))
    return {word for word in words if word.replace("_", "").lower() == name.replace("_", "").lower()}


@cache
def driver_file(name: str) -> str:
    """Return the text of a file in this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _nodes(language: str, source: str, pattern: str) -> str:
    """Return the definitions of `ListNode` and `TreeNode` that the source does not have."""
    code = _COMMENT.sub(" ", source)
    parts = _SECOND_NODE.split(driver_file(f"nodes.{language}"), maxsplit=1)
    missing = [not re.search(pattern.replace("{}", name), code) for name in ("ListNode", "TreeNode")]
    return "".join(part for part, is_missing in zip(parts, missing, strict=True) if is_missing)


def _cpp(source: str, target: CallTarget) -> str:
    name = name_in(source, target.name, r"\b{}\s*\(")
    code = _COMMENT.sub(" ", source)
    owner = "Solution::" if re.search(r"\b(?:class|struct)\s+Solution\b", code) else ""
    function = f"&{owner}{name}"
    if target.arity is not None and (cast := _cpp_cast(code, name, owner, target.arity)):
        function = f"static_cast<{cast}>({function})"
    main = f"int main() {{ return truegold_driver::serve({function}, {target.in_place}); }}\n"
    # A program without includes relies on all names of the standard library.
    names = "" if "#include" in source else "using namespace std;\n"
    # The program's own main is renamed, so that it does not run.
    solution = f"#define main truegold_solution_main\n{source}\n#undef main\n"
    head = f"{driver_file('head.cpp')}{names}{_nodes('cpp', source, _CPP_NODE)}"
    return f"{head}{solution}{driver_file('driver.cpp')}{main}"


def _cpp_cast(code: str, name: str, owner: str, arity: int) -> str | None:
    """Return the pointer type of the overload with this number of parameters, or None if there is none."""
    word = r"\w+(?:::\w+)*"  # A type, but not a label such as `public:`.
    pattern = rf"(?:^|[;{{}}:])\s*((?:{word}\s+)*{word}(?:<[^(){{}};]*>)?\s*[&*]*)\s*\b{name}\s*\("
    for definition in re.finditer(pattern, code, re.MULTILINE):
        after = code[definition.end() :]
        params = _split_params(after)
        if len(params) == arity:
            # A function type may name its parameters, but must not have defaults.
            listed = ", ".join(param.partition("=")[0] for param in params)
            returns, is_static = re.subn(r"\bstatic\s+", "", definition[1])
            returns = re.sub(r"\b(?:inline|virtual|constexpr)\s+", "", returns)
            is_const = re.match(r"[^{};]*\)\s*const\b", after) is not None
            return f"{returns} ({'' if is_static else owner}*)({listed}){' const' if is_const else ''}"
    return None


def _java(source: str, target: CallTarget) -> str:
    code = _COMMENT.sub(" ", source)
    name = name_in(source, target.name, r"\b{}\s*\(")
    classes = list(dict.fromkeys(re.findall(r"\bclass\s+(\w+)", code)))
    classes.sort(key=lambda each: each != "Solution")
    names = [each for each in classes if not _is_nested(code, re.search(rf"\bclass\s+{each}\b", code))]
    # A file may have only one public class, which is the driver's.
    solution = _PUBLIC_TYPE.sub(r"\1\2", without_package(source))
    driver = f"{_nodes('java', source, _JAVA_NODE)}{driver_file('driver.java')}"
    return f"{_JAVA_IMPORTS}{solution}\n{driver}{_java_constants(names, name, target.in_place)}"


def _java_constants(classes: Sequence[str], name: str, in_place: int) -> str:
    return (
        f"    static final String[] CLASSES = {{{', '.join(map(json.dumps, classes))}}};\n"
        f"    static final String NAME = {json.dumps(name)};\n    static final int IN_PLACE = {in_place};\n}}\n"
    )


def _javascript(source: str, target: CallTarget) -> str:
    source = re.sub(r"(?m)^\s*export\s+(?:default\s+)?(?=(?:async\s+)?(?:function|class|const|let|var)\b)", "", source)
    name = name_in(source, target.name, r"\b{}\s*[=(:]")
    method = f"typeof Solution === 'function' && Solution.prototype && typeof Solution.prototype.{name} === 'function'"
    known = f"typeof {name} === 'undefined' ? undefined : {name}"
    function = f"{method} ? (...given) => new Solution().{name}(...given) : {known}"
    is_stated = target.signature.params or target.signature.returns
    signature = target.signature if is_stated else signature_of_comment(source)
    values: Mapping[str, str] = {
        "FUNCTION": function,
        "NAME": name,
        "TYPES": json.dumps(signature.params),
        "RETURNS": json.dumps(signature.returns),
        "IN_PLACE": str(target.in_place),
    }
    driver = re.sub(rf"\b({'|'.join(values)})\b", lambda word: values[word[0]], driver_file("driver.js"))
    return f"{driver_file('head.js')}{_nodes('js', source, _JS_NODE)}{source}\n{driver}"


_GO_IMPORTS = re.compile(r'(?m)^import\s+(?:\([^)]*\)|"[^"\n]*")')


def without_rust_main(source: str) -> str:
    """Return a Rust program with its main function renamed."""
    return re.sub(r"(?m)^(\s*)(?:pub\s+)?fn\s+main\s*\(\s*\)", r"\1fn truegold_solution_main()", source)


def _split_params(text: str) -> list[str]:
    """Return the parameters of a definition, given the text after its opening bracket."""
    depth, start, params = 0, 0, []
    for index, char in enumerate(text):
        if depth == 0 and char in ",)":
            params.append(text[start:index])
            start = index + 1
            if char == ")":
                break
        elif char in "([<":
            depth += 1
        elif char in ")]" or (char == ">" and text[index - 1] != "-"):
            depth -= 1
    return [" ".join(param.split()) for param in params if param.strip()]


def _is_nested(code: str, definition: re.Match[str] | None) -> bool:
    """Say whether a definition is inside braces."""
    head = code[: definition.start()] if definition else ""
    return head.count("{") != head.count("}")


_COMPOSERS: Mapping[str, Callable[[str, CallTarget], str]] = {"cpp": _cpp, "java": _java, "javascript": _javascript}
_STATERS: Mapping[str, Callable[[str, str, str], str]] = {
    "cpp": _state_cpp,
    "go": _state_go,
    "java": _state_java,
    "rust": _state_rust,
}
LANGUAGES = tuple(_COMPOSERS)
"""Languages with a driver."""
