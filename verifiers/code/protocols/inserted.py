"""Test programs in any language, into which the solution is inserted. Both are one process, so the verdict is weak.

    {"type": "inserted", "code": "#<INSERT>\\nint main() { if (add(1, 2) != 3) throw 1; return 0; }"}

The solution passes where the program ends with exit status 0 and gets to its last line: a word that nobody knows
beforehand is printed there, so that a solution that calls `exit(0)` does not pass. A failed assertion ends the program,
also where the language would go on (`console.assert`) or the solution has switched assertions off. Where the language,
or how the test program ends, leaves no room for the last line, the exit status alone decides.
"""

from __future__ import annotations

import os
import re

from truegold.verifiers.code.execution import Backend, Program
from truegold.verifiers.code.judging import ONE_PROCESS, Judged, failed_case, failed_end, passed_case
from truegold.verifiers.code.languages import language_name
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.protocols.stdio import prepare
from truegold.verifiers.code.suite import Inserted

WORD_BYTES = 16
_END_OF_MAIN = re.compile(r"(return\s+0\s*;\s*)?\}\s*\Z")
_END_OF_MAIN_IN_CLASS = re.compile(r"(return\s*;\s*)?\}\s*\}\s*\Z")
_LAST_LINES = {
    "bash": "\nprintf '\\n%s\\n' {word}\n",
    "javascript": '\nconsole.log("\\n{word}");\n',
    "julia": '\nprintln("\\n{word}")\n',
    "perl": '\nprint "\\n{word}\\n";\n',
    "php": '\necho "\\n{word}\\n";\n',
    "python": '\nprint("\\n{word}")\n',
    "r": '\ncat("\\n{word}\\n")\n',
}
_LAST_STATEMENTS = {
    "c": 'printf("\\n{word}\\n");',
    "cpp": 'std::printf("\\n{word}\\n");',
    "java": 'System.out.println("\\n{word}");',
    "rust": 'println!("\\n{word}");',
}
_FIRST_LINES = {
    "c": "#include <stdio.h>\n",
    "cpp": "#include <cstdio>\n",
    # Node's own prints a line and goes on.
    "javascript": 'Object.defineProperty(console, "assert", { writable: false, configurable: false,'
    " value: (holds, ...what) => { if (!holds) throw new Error(`assertion failed ${what}`); } });\n",
}
_LINES_AFTER_SOLUTION = {
    # What a solution does to `assert` ends with it; the header defines it anew each time it is included.
    "c": "\n#undef NDEBUG\n#undef assert\n#include <assert.h>\n",
    "cpp": "\n#undef NDEBUG\n#undef assert\n#include <cassert>\n",
}


def judge_inserted(tests: Inserted, solution: str, language: str, backend: Backend, limits: Limits) -> Judged:
    """Insert the solution, run the program, and look for its last line."""
    word = os.urandom(WORD_BYTES).hex()
    family = language_name(language)
    code, has_end = _with_end(tests.code, family, word)
    head = code.partition(tests.marker)[0]
    if head.count("{") == head.count("}"):  # Headers are included outside of functions only.
        solution += _LINES_AFTER_SOLUTION.get(family, "")
    program = Program(language, code.replace(tests.marker, solution))
    execution = prepare(backend, program, limits).run(b"")
    failure = failed_end(execution)
    if failure is not None:
        case = failed_case(1.0, failure[0], error=failure[1])
    elif has_end and word.encode() not in execution.stdout.splitlines()[-1:]:
        case = failed_case(1.0, error="the program ended before the tests did")
    else:
        case = passed_case()
    return Judged([case], 1, 1.0, ONE_PROCESS)


def _with_end(code: str, language: str, word: str) -> tuple[str, bool]:
    """Return the test program, which prints the word in the end, and whether there was room for that."""
    first_lines = _FIRST_LINES.get(language, "")
    if language in _LAST_LINES:
        return first_lines + code + _LAST_LINES[language].format(word=word), True
    if language not in _LAST_STATEMENTS:
        return code, False
    statement = _LAST_STATEMENTS[language].format(word=word)
    pattern, braces = (_END_OF_MAIN_IN_CLASS, "}}") if language == "java" else (_END_OF_MAIN, "}")
    code, changes = pattern.subn(lambda ending: f"{statement} {ending[1] or ''}{braces}", code)
    return first_lines + code, changes > 0
