"""Rewrites tests in languages other than Python so that they print values. The verifier's process compares the values.

    tests                                         rewritten                         expected
    int main() {                                  int main() {
      assert(add(1, 2) == 3);                       truegold_emit(add(1, 2));       3
      if (abs(half(3) - 1.5) > 1e-4) throw 1;       truegold_emit(half(3));         1.5, within 1e-4
    }                                             }

The rewritten program does not contain the expected values. A solution therefore cannot cheat by a type whose `==` is
always true, by exiting early, or by reading its tests.

If a part of a suite may be a test and cannot be rewritten, such as a loop with an assertion, `read_assertions` returns
None.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from truegold.verifiers.code.checks.foreign_values import LetterCode, NoLiteral, agree, literal
from truegold.verifiers.code.drivers import driver_file
from truegold.verifiers.code.outcomes import CannotJudge
from truegold.verifiers.sandbox.inside.wire.value_types import Value

CACHED_SUITES = 256
MAX_CHARS = 200_000
"""Maximum length of tests that are rewritten, in characters."""

_LANGUAGES: Mapping[str, Mapping[str, str]] = tomllib.loads(driver_file("assertions.toml"))
"""For each language, the patterns of assertions and the call that prints a value (`drivers/assertions.toml`)."""
_COMMENTS_AND_TEXTS = {  # Comments (group 1) and string literals by language; "" is for all other languages.
    "rust": r"""(//[^\n]*|/\*.*?\*/)|"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\[^'\n]+|\\')'""",
    "perl": r"""((?:^|(?<=[\s;{}]))\#[^\n]*)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""",
    "": r"""(//[^\n]*|/\*.*?\*/)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`""",
}
_FAILS = re.compile(
    r"\b(?:throw|die|panic|abort|raise|croak)\b|\b(?:exit|process\.exit|System\.exit|os\.Exit)\s*\(?\s*(?:[1-9-]|EXIT_F)"
    r"|\breturn\s+(?:[1-9]|-1|EXIT_FAILURE)|\bt\.(?:Error|Fatal|Fail)"
)
"""A statement that makes a test fail: `throw`, `exit(1)`, `return -1`."""
_ASSERTS = re.compile(
    r"\b\w*assert\w*\s*!?\s*\(|\bassert\b|\bexpect\s*\(|\b(?:ok|is|is_deeply)\s*\(|\bif\b[^;]*\bthrow\b|\bdie\s+(?:if|unless)\b"
)
"""An assertion, which shows that the function around it is a test."""
_LEFT_OVER = re.compile(
    r"\b(?:\w*assert\w*|throw|die|panic|_?exit|abort|fail\w*|fatal\w*|raise|expect|should|if|unless|else|for|while|switch"
    r"|try|catch|foreach|do|goto|loop|is_deeply|cmp_deeply|await|async|defer|t\.\w+|signal|at_?exit|quick_exit|static_assert)\b"
)
"""A word that may be part of a test. A suite that still has one after rewriting runs unchanged."""
_BLOCK = re.compile(
    r"(?:\b(?:function|func|fn|sub|void|int|bool|auto)\s+(\w+)\s*(?:\([^(){}]*\))?|\b(?:const|let|var)\s+(\w+)\s*=\s*(?:function\s*)?\([^(){}]*\)\s*(?:=>)?)"
    r"[^;{}()]*\{"
)
"""The head of a function with its opening brace."""
_SCOPE = re.compile(
    r"\s*(?:(?:public|pub|final|static|abstract)\s+)*(?:(?:class|mod|namespace|object|struct)\b[^(){}]*)?"
)
"""The head of a class, module or namespace."""
_RUST_TEST = re.compile(
    r"(?:#\s*\[[^\]]*\]\s*)*?#\s*\[\s*test\s*\]\s*(?:#\s*\[[^\]]*\]\s*)*(?:pub\s+)?fn\s+(?P<name>\$?\w+)\s*\(\s*\)\s*(?P<result>->)?"
)
"""The head of a function with the attribute `#[test]` of Rust, or of one that a macro makes (`fn $name()`)."""
_RUST_MAIN = re.compile(r"\bfn\s+main\s*\(\s*\)[^{};]*\{")
_PANICS = re.compile(r"#\s*\[\s*should_panic\b")
_NOT_RUN = re.compile(r"#\s*\[\s*(?:cfg\s*\(\s*(?:feature|not\(test)|ignore)\b[^\]]*\](?:\s*use\b[^;]*;|[^{};]*[{;])")
"""The head of an item of Rust that tests leave out (`cfg(feature)`, `cfg(not(test))`), or of a test that is ignored."""
_NEAR = re.compile(
    r"(?:(?:std::|Math\.|math\.)?f?[aA]bs\s*\((?P<sides>.+)\)|(?P<rust>\(.+\))\.abs\(\))\s*(?P<operator><=?|>=?)\s*(?P<within>[\d.eE_-]+[fFlL]?)\s*",
    re.DOTALL,
)
"""A comparison within a tolerance: `abs(f(1) - 0.5) < 1e-6`."""
_EQUALITY = re.compile(
    r"(?:template\s*<[^<>]*>\s*)?(?:(?:public|private|static|inline)\s+)*\b(?:bool|boolean|function|fn|func)\s+(\w+)\s*\(([^(){}]*)\)[^;{}()]*\{"
)
"""The head of a function of the tests that may compare two values."""
_LOOP = r"for\((?:int|size_t|auto|unsigned)i=0;i<A\.size\(\);(?:i\+\+|\+\+i)\)\{?"
_SHAPES = re.compile(
    r"returnA={2,3}B;|return_\.isEqual\(A,B\);?|returnObjects\.(?:deepE|e)quals\(A,B\);"
    r"|if\(A==null&&B==null\)\{returntrue;\}elseif\(A==null\|\|B==null\)\{returnfalse;\}else\{returnA\.equals\(B\);\}"
    rf"|if\(A\.size\(\)!=B\.size\(\)\)returnfalse;{_LOOP}if\((?:A\[i\]!=B\[i\]|(?:std::)?f?abs\(A\[i\]-B\[i\]\)>(?P<within>[\d.e-]+))\)returnfalse;\}}?returntrue;"
    rf"|if\(A\.size\(\)!=B\.size\(\)\)returnfalse;{_LOOP}if\(A\[i\]\.size\(\)!=B\[i\]\.size\(\)\)returnfalse;"
    r"for\(intj=0;j<A\[i\]\.size\(\);j\+\+\)\{?if\(A\[i\]\[j\]!=B\[i\]\[j\]\)returnfalse;\}{1,2}returntrue;"
    r"|if\(A\.size\(\)!=B\.size\(\)\)returnfalse;map<[\w,]+>::iteratorit;for\(it=A\.begin\(\);it!=A\.end\(\);it\+\+\)"
    r"\{\w+?w1=it->first;\w+?w2=it->second;if\(B\.find\(w1\)==B\.end\(\)\)returnfalse;if\(B\[w1\]!=w2\)returnfalse;\}returntrue;"
)
"""The body, without spaces, of a function that returns whether A and B are equal."""
_LIBRARY_EQUALITIES = (
    "Objects.equals Objects.deepEquals Arrays.equals Arrays.deepEquals reflect.DeepEqual _.isEqual Compare eq_deeply"
).split()
"""Library functions that compare two values."""
_JAVA_CONDITIONS = re.compile(r"List<Boolean>\s+(\w+)\s*=\s*(?:Arrays\.asList|List\.of)\s*\(")
"""The head of a list of conditions in Java."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class StatedCheck:
    """A condition on a value that the rewritten program prints."""

    text: str
    """The expression whose value is checked, for the evidence."""
    expected: Value = None
    is_equal: bool = True
    """True if the value has to equal the expected one, False if it has to differ."""
    tolerance: float = 0.0
    """The largest allowed difference of numbers."""
    is_truth: bool = False
    """Whether the value is the condition: it must be true in `assert(f(1))` (`is_equal`), false in `assert(!f(1))`."""
    is_strict: bool = False
    """Whether 1 and 1.0 differ."""
    is_loose: bool = False
    """Whether "1" and 1 are equal."""
    other: str | None = None
    """The expression of the expected value, which the program prints as its next value. None for a literal."""

    def holds(self, value: Value, language: str) -> bool:
        """Return whether a value fulfils the condition."""
        if self.is_truth:
            false = (None, False, 0, "") if language != "perl" else (None, "", "0")
            is_nan = isinstance(value, float) and math.isnan(value)
            return (value not in false and not is_nan) == self.is_equal
        language = "perl" if self.is_loose else language
        return agree(self.expected, value, language, self.is_strict, self.tolerance) == self.is_equal


@dataclass(frozen=True, slots=True)
class StatedTests:
    """A test program that prints values, and the conditions on these values."""

    head: str
    """The text before the solution."""
    tail: str
    """The text after the solution."""
    checks: tuple[StatedCheck, ...]


class _Unread(Exception):
    """Raised for tests that cannot be rewritten."""


@lru_cache(maxsize=CACHED_SUITES)
def read_assertions(code: str, marker: str, language: str) -> StatedTests | None:
    """Return the rewritten tests, or None if a part of them cannot be read.

    marker: the text that the solution replaces. language: the usual name of the language, such as cpp.
    """
    head, _, tail = code.partition(marker)
    if language not in _LANGUAGES or marker in tail or len(code) > MAX_CHARS:
        return None
    try:
        return _Rewriter(head, tail, language).rewritten()
    except (_Unread, ValueError, RecursionError, OverflowError):
        return None


def _masked(text: str, language: str) -> tuple[str, str]:
    """Return a text with blanks for comments, and a mask in which `_` also replaces the characters of string literals.

    Both are as long as the text.
    """
    pattern = re.compile(_COMMENTS_AND_TEXTS.get(language, _COMMENTS_AND_TEXTS[""]), re.DOTALL | re.MULTILINE)

    def blank(match: re.Match[str], is_masked: bool) -> str:
        if match[1] is not None:
            return re.sub(r"[^\n]", " ", match[0])
        return f"{match[0][0]}{'_' * (len(match[0]) - 2)}{match[0][-1]}" if is_masked else match[0]

    return pattern.sub(lambda each: blank(each, False), text), pattern.sub(lambda each: blank(each, True), text)


_CALLED_AT_ONCE = re.compile(r"[(!+]\s*(?:async\s*)?\Z")
"""The beginning of a JavaScript function that is called where it is defined: `(` in `(function test() {...})()`."""


@lru_cache(maxsize=CACHED_SUITES)
def uncalled_test(code: str, language: str) -> str | None:
    """Return the name of a test function that has assertions and is never called, or None."""
    mask = _masked(code[:MAX_CHARS], language)[1]
    run = {"main", *(match["name"] for match in _RUST_TEST.finditer(mask))}
    for match in _BLOCK.finditer(mask):
        name = match[1] or match[2]
        is_test = language == "perl" or "test" in name.lower() or re.search(r"\(\s*(?:void|candidate)?\s*\)", match[0])
        if not is_test or name in run or (language == "go" and name.startswith("Test")):
            continue
        try:
            end = _closing_of(mask, match.end() - 1)
        except _Unread:
            continue
        is_called = _CALLED_AT_ONCE.search(mask[: match.start()]) and re.match(r"\}\s*\)?\s*\(", mask[end:])
        body = mask[match.end() : end]
        if not is_called and _ASSERTS.search(body) and len(re.findall(rf"(?<!\w){name}\b", mask)) == 1:
            return str(name)
    return None


def _without_unrun(text: str, mask: str) -> tuple[str, str]:
    """Return a Rust text and its mask, with blanks for items that are not compiled and for ignored tests."""
    for match in reversed(list(_NOT_RUN.finditer(mask))):
        end = _closing_of(mask, match.end() - 1) + 1 if mask[match.end() - 1] == "{" else match.end()
        blank = re.sub(r"[^\n]", " ", mask[match.start() : end])
        text, mask = (f"{each[: match.start()]}{blank}{each[end:]}" for each in (text, mask))
    return text, mask


def rust_program(tests: str) -> str:
    """Return tests of Rust with a main function that runs them, unless they have no `#[test]`, or assert in main."""
    whole = _masked(tests, "rust")[1]
    try:
        tests, mask = _without_unrun(tests, whole)
        _closing_of(f"{{{whole}}}", 0)
        mains = [mask[match.end() : _closing_of(mask, match.end() - 1)] for match in _RUST_MAIN.finditer(mask)]
    except _Unread:
        raise CannotJudge("the tests have an unclosed bracket") from None
    if any(map(_ASSERTS.search, mains)) or not _RUST_TEST.search(whole):
        return tests
    if not (matches := list(_RUST_TEST.finditer(mask))):
        raise CannotJudge("all tests are marked as ignored")
    entry, rest = driver_file("run_tests.rs").replace("LIST", f"truegold_{os.urandom(8).hex()}").split("\n", 1)
    for position, match in reversed(list(enumerate(matches))):
        call = f"{match['name']}(){'.unwrap()' if match['result'] else ''};"
        if _PANICS.search(match[0]):
            call = f"if ::std::panic::catch_unwind(|| {{ {call} }}).is_ok() {{ ::std::process::abort() }}"
        added = entry.replace("POSITION", str(position)).replace("CALL", call)
        tests = f"{tests[: match.start()]}{added}\n{tests[match.start() :]}"
    tests = re.sub(r"#\s*\[\s*(?:test|should_panic[^\]]*|cfg\s*\(\s*test\s*\))\s*\]", "", tests)
    tests = _RUST_MAIN.sub("fn truegold_tests_main() {", tests)
    return f"{tests}\n{rest}"


def _closing_of(mask: str, opening: int) -> int:
    """Return the position of the closing bracket for the bracket at `opening`."""
    stack = []
    for index in range(opening, len(mask)):
        char = mask[index]
        if char in _CLOSING:
            stack.append(_CLOSING[char])
        elif char in ")]}":
            if not stack or stack.pop() != char:
                raise _Unread
            if not stack:
                return index
    raise _Unread


class _Rewriter:
    """Rewrites the tests in the text after the solution."""

    def __init__(self, head: str, tail: str, language: str) -> None:
        self.head, self.language, self.words = head, language, _LANGUAGES[language]
        self.text, self.mask = _masked(tail, language)
        if language == "rust":
            self.text, self.mask = _without_unrun(self.text, self.mask)
        self.edits: list[tuple[int, int, list[StatedCheck]]] = []
        self.equalities: dict[str, float] = dict.fromkeys(_LIBRARY_EQUALITIES, 0.0)
        self.expected_names: set[str] = set()
        self.defined = {match[1] or match[2] for match in _BLOCK.finditer(self.mask)}

    def rewritten(self) -> StatedTests:
        """Return the rewritten tests. Raises `_Unread` if a part of them cannot be read."""
        if noise := self.words.get("noise"):
            self.head = re.sub(noise, "", self.head, flags=re.MULTILINE)
            for match in re.finditer(noise, self.text, re.MULTILINE):
                self._edit(match.start(), match.end(), [])
        self._read_equalities()
        self._read_conditions_of_java()
        self._read_guards()
        self._read_calls()
        self._drop_expected()
        self.edits.sort(key=lambda edit: edit[0])
        parts, end = [], 0
        for start, stop, checks in self.edits:
            emitted = [text for check in checks for text in (check.text, check.other) if text is not None]
            parts += [self.text[end:start], *(f"{self.words['emit'].replace('VALUE', text)};" for text in emitted)]
            end = stop
        tail = "".join([*parts, self.text[end:]])
        all_checks = tuple(check for _, _, checks in self.edits for check in checks)
        rest = _masked(f"{self.head}\n{tail}", self.language)[1]
        rest = re.sub(r"(?m)^\s*(?:#\s*(?:include|undef|define\s+NDEBUG\b)|import\b|use\b|package\b)[^\n]*", "", rest)
        if not all_checks or _LEFT_OVER.search(rest):
            raise _Unread
        return StatedTests(self.head, self._with_main(tail), all_checks)

    def _edit(self, start: int, end: int, checks: list[StatedCheck]) -> None:
        if any(start < stop and begin < end for begin, stop, _ in self.edits):
            raise _Unread
        self.edits.append((start, end, checks))

    def _is_free(self, position: int) -> bool:
        return not any(start <= position < end for start, end, _ in self.edits)

    def _closing(self, opening: int) -> int:
        return _closing_of(self.mask, opening)

    def _split(self, start: int, end: int, separator: str = ",") -> list[tuple[int, int]]:
        """Return the start and the end of each part between separators that are outside of brackets."""
        parts, index, begin = [], start, start
        while index < end:
            if self.mask[index] in _CLOSING:
                index = self._closing(index)
            elif self.mask[index] == "<" and (
                generic := re.compile(r"<[\w\s:,.<>*&]*>(?=\s*[({\[>])").match(self.mask, index, end)
            ):
                index = generic.end() - 1
            elif self.mask.startswith(separator, index):
                parts.append((begin, index))
                begin = index + len(separator)
                index = begin - 1
            index += 1
        return [*parts, (begin, end)] if self.text[begin:end].strip() or separator != "," else parts

    def _strip(self, start: int, end: int) -> tuple[int, int]:
        """Return a part without the spaces and the round brackets around it."""
        while start < end and self.text[start].isspace():
            start += 1
        while start < end and self.text[end - 1].isspace():
            end -= 1
        if start < end and self.mask[start] == "(" and self._closing(start) == end - 1:
            return self._strip(start + 1, end - 1)
        return start, end

    def _read_equalities(self) -> None:
        """Find and remove the functions of the tests that compare two values."""
        for match in _EQUALITY.finditer(self.mask):
            names = [re.findall(r"\w+", part.partition(":")[0]) for part in match[2].split(",")]
            end = self._closing(match.end() - 1)
            if len(names) != 2 or not all(names):
                continue
            body = self.text[match.end() : end]
            for name, symbol in zip((names[0][-1], names[1][-1]), "AB", strict=True):
                body = re.sub(rf"\$?\b{name}\b", symbol, body)
            if shape := _SHAPES.fullmatch(re.sub(r"\s+", "", body)):
                self.equalities[match[1]] = float(shape.groupdict().get("within") or 0.0)
                self._edit(match.start(), end + 1, [])

    def _read_conditions_of_java(self) -> None:
        """Read `List<Boolean> correct = Arrays.asList(f(1) == 2, ...); if (correct.contains(false)) {throw ...}`."""
        for match in _JAVA_CONDITIONS.finditer(self.mask) if self.language == "java" else ():
            end = self._closing(match.end() - 1)
            guard = rf"\)\s*;\s*if\s*\(\s*{match[1]}\.contains\(false\)\s*\)\s*\{{\s*throw[^{{}}]*\}}"
            if (after := re.compile(guard).match(self.mask, end)) is None:
                raise _Unread
            checks = [check for part in self._split(match.end(), end) for check in self._condition(*part)]
            self._edit(match.start(), after.end(), checks)

    def _read_guards(self) -> None:
        """Read `if (f(1) != 2) { throw 1; }` and similar statements."""
        is_go = self.language == "go"
        in_go = r"\bif\s+(?:(?P<name>\w+)\s*:=(?P<value>[^;{}]*);)?(?=[^;]*?\{\s*\n)"
        for match in re.finditer(in_go if is_go else r"\b(?:if|unless)\s*(?=\()", self.mask):
            before = self.mask[: match.start()]
            if not self._is_free(match.start()) or re.search(r"\b(?:die\b[^;{}]*|else\s*)\Z", before):
                continue
            end = self.mask.index("{\n", match.end()) if is_go else self._closing(match.end()) + 1
            stop = self._body_end(end)
            fails_otherwise = (other := re.compile(r"\s*else\s*(?=\{)").match(self.mask, stop)) is not None
            if fails_otherwise != (not _FAILS.search(self.mask, end, stop)):
                continue
            if other is not None:
                begin, stop = other.end(), self._body_end(other.end())
                if not _FAILS.search(self.mask, begin, stop):
                    continue
            checks = self._condition(match.end(), end, fails_otherwise != match[0].startswith("unless"))
            if is_go and match["name"]:  # if got := f(1); got != 2 {
                value = self.text[slice(*match.span("value"))].strip()
                if any(check.text != match["name"] for check in checks):
                    raise _Unread
                checks = [replace(check, text=value) for check in checks]
            self._edit(match.start(), stop, checks)
        if self.language == "perl":
            for match in re.finditer(r"\bdie\b[^;{}]*?\b(if|unless)\b([^;{}]*);", self.mask):
                self._edit(match.start(), match.end() - 1, self._condition(*match.span(2), match[1] == "unless"))
            for match in re.finditer(r"(?:^|[;{}])\s*([^;{}]*?)(?:\bor\b|\|\|)\s*die\b[^;{}]*;", self.mask):
                self._edit(match.start(1), match.end() - 1, self._condition(*match.span(1)))

    def _body_end(self, start: int) -> int:
        """Return the position after a block or a single statement."""
        while start < len(self.mask) and self.mask[start].isspace():
            start += 1
        if self.mask[start : start + 1] == "{":
            end = self._closing(start)
            if re.search(r"\b(?:if|for|while|else)\b", self.mask[start:end]):
                raise _Unread
            return end + 1
        return self.mask.index(";", start) + 1

    def _read_calls(self) -> None:
        """Read `assert(f(1) == 2)`, `assert_eq!(f(1), 2)` and `expect(f(1)).toBe(2)`."""
        for name in ("pair", "condition"):
            for match in re.finditer(self.words.get(name) or r"\b\B", self.mask):
                if not self._is_free(match.start()):
                    continue
                if match[0].strip()[-1] != "(" and "(" not in match[0]:  # Java's `assert f(1) == 2 : "no";`
                    start, end = match.end(), self.mask.index(";", match.end())
                    start, end = self._split(start, end, " : ")[0]
                    self._edit(match.start(), self.mask.index(";", match.end()), self._condition(start, end))
                    continue
                end = self._closing(match.start() + match[0].index("("))
                parts = self._split(match.end(), end)
                if name == "condition":
                    self._edit(match.start(), end + 1, self._condition(*parts[0]))
                elif len(parts) in (2, 3):
                    check = self._same(parts[0], parts[1], is_strict=self.language == "go")
                    third = self._data(*parts[2]) if len(parts) == 3 else None
                    if third is not None and isinstance(third[0], float):  # assertEquals(0.5, f(1), 1e-6)
                        check = replace(check, tolerance=third[0])
                    self._edit(match.start(), end + 1, [check])
        if self.language == "javascript":
            matcher = re.compile(r"\s*\.\s*(?:toBe|toEqual|toStrictEqual)\s*(?=\()")
            for match in re.finditer(r"\bexpect\s*(?=\()", self.mask):
                end = self._closing(match.end())
                if (matches := matcher.match(self.mask, end + 1)) is None:
                    raise _Unread
                stop = self._closing(matches.end())
                check = self._same((match.end() + 1, end), (matches.end() + 1, stop))
                self._edit(match.start(), stop + 1, [check])

    def _condition(self, start: int, end: int, holds: bool = True) -> list[StatedCheck]:
        """Return the checks of a condition: one for each part that `&&` joins. holds: False negates the condition."""
        start, end = self._strip(start, end)
        mask = self.mask[start:end]
        if self.mask[start] == "!" and len(self._split(start, end, "==")) == len(self._split(start, end, "!=")) == 1:
            return self._condition(start + 1, end, not holds)
        separator = "&&" if holds else "||"
        if "&&" in mask or "||" in mask:
            parts = self._split(start, end, separator)
            if len(parts) == 1:
                raise _Unread
            return [check for part in parts for check in self._condition(*part, holds)]
        for operator in ("===", "!==", "==", "!=", " eq ", " ne "):
            if len(parts := self._split(start, end, operator)) == 2:
                return [self._compared(parts[0], parts[1], operator.strip(), holds)]
        if near := _NEAR.fullmatch(self.mask, start, end):
            return [self._near(near, holds)]
        if (pair := self._compared_by_call(start, end)) is not None:
            return [replace(pair, is_equal=holds)]
        return [StatedCheck(self._stated(start, end), is_equal=holds, is_truth=True)]

    def _compared_by_call(self, start: int, end: int) -> StatedCheck | None:
        """Read `Objects.equals(f(1), 2)`, `f(1).equals(2)` and calls of the tests' own comparing functions."""
        call = re.compile(r"([\w.]+?)\s*(?=\()").match(self.mask, start, end)
        if call is not None and call[1] in self.equalities and self._closing(call.end()) == end - 1:
            parts = self._split(call.end() + 1, end - 1)
            if len(parts) != 2:
                raise _Unread
            check = self._same(parts[0], parts[1], is_strict=self.language in ("go", "java"))
            return replace(check, tolerance=self.equalities[call[1]])
        call = re.compile(r".*\.\s*equals\s*(?=\()", re.DOTALL).match(self.mask, start, end)
        if call is None or self._closing(call.end()) != end - 1:
            return None
        first = start, self.mask.rindex(".", start, call.end())
        return self._same(first, (call.end() + 1, end - 1), is_strict=True)

    def _compared(self, first: tuple[int, int], second: tuple[int, int], operator: str, holds: bool) -> StatedCheck:
        is_equal = (operator[0] == "=" or operator == "eq") == holds
        sides = [self._strip(*first), self._strip(*second)]
        if self.language == "c" and (call := re.compile(r"strcmp\s*(?=\()").match(self.mask, *sides[0])):
            if self.text[slice(*sides[1])] != "0" or self._closing(call.end()) != sides[0][1] - 1:
                raise _Unread
            parts = self._split(call.end() + 1, sides[0][1] - 1)
            return replace(self._same(parts[0], parts[1]), is_equal=is_equal)
        texts = [re.compile(r"JSON\.stringify\s*(?=\()").match(self.mask, *side) for side in sides]
        if texts[0] and texts[1]:
            sides = [(call.end(), side[1]) for call, side in zip(texts, sides, strict=True) if call]
        check = self._same(sides[0], sides[1])
        is_text = isinstance(check.expected, str) and not isinstance(check.expected, LetterCode)
        is_collection = isinstance(check.expected, list | dict)
        # In these languages `==` compares the identity of texts or collections.
        if (is_text and self.language in ("c", "java")) or (
            is_collection and not texts[0] and self.language in ("c", "java", "javascript")
        ):
            raise _Unread
        return replace(check, is_equal=is_equal, is_loose=self.language == "javascript" and len(operator) == 2)

    def _near(self, match: re.Match[str], holds: bool) -> StatedCheck:
        """Read `abs(f(1) - 0.5) < 1e-6`."""
        start, end = self._strip(*match.span("sides" if match["sides"] else "rust"))
        expected: Value = None
        for minus in re.finditer("-", self.mask[start:end]):
            middle = start + minus.start()
            for value, stated in (((middle + 1, end), (start, middle)), ((start, middle), (middle + 1, end))):
                try:
                    expected = literal(self.text[slice(*value)], self.language)
                except NoLiteral:
                    continue
                is_less = match["operator"][0] == "<"
                tolerance = literal(match["within"], self.language)
                return StatedCheck(self._stated(*stated), expected, holds == is_less, float(tolerance))
        raise _Unread

    def _same(self, first: tuple[int, int], second: tuple[int, int], is_strict: bool = False) -> StatedCheck:
        """Return the check that two expressions have equal values."""
        sides = self._strip(*first), self._strip(*second)
        values = [self._data(*side) for side in sides]
        if values[0] is None and values[1] is None:
            values = [self._data_of_name(*side) for side in sides]
        if values[0] is not None and values[1] is not None:
            raise _Unread
        for value, side, other in zip(values, sides, reversed(sides), strict=True):
            if value is not None:
                name = self.text[slice(*side)]
                self.expected_names |= {name} if re.fullmatch(r"\$?\w+", name) and self._data(*side) is None else set()
                return StatedCheck(self._stated(*other), value[0], is_strict=is_strict)
        return StatedCheck(self._stated(*sides[0]), is_strict=is_strict, other=self._stated(*sides[1]))

    def _data(self, start: int, end: int) -> tuple[Value] | None:
        try:
            return (literal(self.text[start:end], self.language),)
        except NoLiteral:
            return None

    def _assignments(self, name: str) -> Iterator[tuple[int, int, int]]:
        """Yield the assignments to a name: the start of the statement, and the start and the end of the value."""
        assignment = rf"[^;{{}}\n]*(?<![\w.$]){re.escape(name)}\b\s*(?::[\w\s<>,]+)?:?=(?![=>])"
        for match in re.finditer(assignment, self.mask):
            end, index = len(self.mask), match.end()
            while index < len(self.mask):
                if self.mask[index] in _CLOSING:
                    index = self._closing(index)
                elif self.mask[index] == ";" or (self.mask[index] == "\n" and self.language in ("javascript", "go")):
                    end = index
                    break
                index += 1
            yield match.start(), match.end(), end

    def _data_of_name(self, start: int, end: int) -> tuple[Value] | None:
        """Return the value of the last assignment to a name before this use, if it is a literal, else None."""
        name = self.text[start:end]
        if not re.fullmatch(r"\$?[A-Za-z_]\w*", name):
            return None
        earlier = [each for each in self._assignments(name) if each[2] <= start]
        return self._data(*earlier[-1][1:]) if earlier else None

    def _drop_expected(self) -> None:
        """Remove the assignments of expected values, which the program must not contain."""
        for name in self.expected_names:
            for start, value, end in list(self._assignments(name)):
                if self._data(value, end) is None:
                    raise _Unread
                self._edit(start, end, [])
            use = re.compile(rf"(?<![\w.]){re.escape(name)}\b")
            printed = [check for *_, checks in self.edits for check in checks if use.search(check.text)]
            if printed or any(self._is_free(each.start()) for each in use.finditer(self.mask)):
                raise _Unread

    def _stated(self, start: int, end: int) -> str:
        """Return an expression to print. Raises `_Unread` for a literal or a call of a function of the tests."""
        text = self.text[start:end].strip()
        called = re.findall(r"\b(\w+)\s*\(", self.mask[start:end])
        if not text or self._data(start, end) is not None or self.defined & set(called):
            raise _Unread
        return text

    def _with_main(self, tail: str) -> str:
        """Return the tests. If they were written for a test runner, calls of their functions are added.

        Raises `_Unread` if the functions would not run once each, in order.
        """
        mask = _masked(tail, self.language)[1]
        emit = re.escape(self.words["emit"].partition("(")[0])
        blocks: dict[str, tuple[int, int]] = {}
        enclosing: list[str] = []
        for match in re.finditer(rf"[{{}}]|(?<![\w.])(?<=[;{{}})\]'\"`\s]){emit}\(", mask):
            if match[0] == "{":
                head = re.split(r"[;{}]", mask[: match.start()])[-1]
                enclosing.append(head)
                if block := _BLOCK.search(f"{head}{{"):
                    blocks[block[1] or block[2]] = match.start(), _closing_of(mask, match.start())
            elif match[0] == "}":
                del enclosing[-1:]
            elif not all(_BLOCK.search(f"{head}{{") or _SCOPE.fullmatch(head) for head in enclosing):
                raise _Unread
        emits = [match.start() for match in re.finditer(rf"{emit}\(", mask)]
        if any(mask[:each].rstrip().endswith((">", ",", "(", "=", "?", "&", "|")) for each in emits):
            raise _Unread  # A part of an expression, such as `x => emit(x)`.
        blocks.pop("main", None)
        held = {each: [name for name, span in blocks.items() if span[0] < each < span[1]] for each in emits}
        names = [name for name in blocks if any(name in holders for holders in held.values())]
        if not names:
            return tail
        if not all(held.values()):
            raise _Unread
        if self.language == "go":
            tail = re.sub(r"\(\s*\w+\s+\*testing\.T\s*\)", "()", tail)
            return f"{tail}\nfunc main() {{ {'; '.join(f'{name}()' for name in names)} }}\n"
        if self.language == "rust" and not re.search(r"\bfn\s+main\b", mask):
            if [match["name"] for match in _RUST_TEST.finditer(mask)] != names or _PANICS.search(mask):
                raise _Unread
            return rust_program(tail)
        heads = "|".join(map(re.escape, names))
        defined = rf"(?<!function )(?<!sub )(?<!void )(?<!int )(?<!bool )(?<!auto )(?<!fn )(?<![\w.])({heads})\s*\("
        if re.findall(defined, mask) != names:
            raise _Unread
        return tail
