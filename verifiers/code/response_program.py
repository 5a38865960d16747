"""Finds the program in a response: exactly one, chosen without running any tests.

    Here is my solution:
    ```python
    def add(a, b):
        return a + b
    ```
    It is used like this:
    ```python
    print(add(1, 2))
    ```

For this response, `extract_code` returns `Extracted("def add(a, b):\\n    return a + b", "fence")`. It searches the
text after the thinking, up to a token or mark that ends the answer (`<|im_end|>`, `[DONE]`). If `<answer>` contains
code, only the text inside is searched. The entry point is the name that the tests use, and the stub is the code with
which a problem begins. The forms of programs are tried in this order:

    fence        the last fenced block that defines the entry point. Without an entry point: the last block that reads
                 stdin, else the last one that defines something, else the last one. A block without a language counts
                 if it is code
    joined       such a block, after statements of other blocks that define its missing names
    body         the body of a function, which continues the stub
    wrapper      [PYTHON]...[/PYTHON], [BEGIN]...[DONE], <code>...</code>
    whole        a response that is nothing but code
    inline       ```...``` within a line; `...` if the response has no other code
    part         code on separate lines between prose, or after tags; the last one if there are several versions
    begun        the rest of the entry point, if the prompt ends with its beginning: `def f(`
    data         a notebook, or a JSON object with a program under `code`, `solution` or `program`

If the response was cut off, an unfinished statement at the end of the last block is removed. Python that does not parse
is repaired if this is safe (`python_source`).

Fences are those of Markdown. The language is the first word after a fence, in any usual spelling (`py`, `{.python}`,
`python:main.py`). Some rules go beyond Markdown, for models that omit a fence:

    - an opening fence with a language ends a block that is still open
    - a fence inside a triple-quoted string of Python is part of the string, if the string is closed later
    - "```" at the end of a line of code closes its block
    - the last block may stay open, if the response was cut off
    - the first block may begin at the start of the response, since its opening fence may end the prompt

Not covered: methods without their class, programs in several files, and diffs of a program that is not in the response.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from truegold.verifiers.code import python_source
from truegold.verifiers.code.python_source import (
    MAX_PROGRAM_CHARS,
    PythonSource,
    continue_stub,
    parse,
    read_source,
    top_level,
)
from truegold.verifiers.extract.committed import PLAIN_END, SPECIAL_END, final_part
from truegold.verifiers.sandbox.toolchains import language_name

MAX_BLOCKS, MAX_FENCES = 64, 1_000
"""Maximum number of blocks and of fences that are read, counted from the end of the text."""

MAX_FENCES_IN_STRING = 8
"""Maximum number of fences inside one triple-quoted string."""

CODE_LINE = re.compile(
    r"^(?:(?:async[ \t]+def|def|class)[ \t]+[^\W\d]\w*[ \t]*[(:]"
    r"|@[^\W\d]\w*"
    r"|import[ \t]+[\w.]+(?:[ \t]+as\b|[ \t]*,|[ \t]*$)"
    r"|from[ \t]+[\w.]+[ \t]+import\b)",
    re.MULTILINE,
)
"""The start of a line of Python: `def f(`, `class A:`, `@cache`, `import a as b`, `from a import`."""

_FENCE = re.compile(r"([ \t]{0,24})(`{3,}|~{3,})[ \t]*([^\n`]{0,200})$")
"""The line of a fence, ```` ```python title="a.py" ```` or `~~~`: indentation, mark, and the text after the mark."""

_FIRST_WORD = re.compile(
    r"[{\[]?\.?(?:[\w/-]{1,60}\.(?=(?:py|java|js|ts|go|rs|cpp|rb|php)\b))?([A-Za-z][\w+#-]{0,30})", re.ASCII
)
"""The language in the text after a fence: `python title="a.py"`, `{.python}`, `[python]`, `add.py`, `Python代码`."""

_SENTENCE_END = " \t.,;:!?)。．，、；：！？）」』】*_"
"""The characters that are ignored after a closing fence."""

_MEANT = {
    **dict.fromkeys(("text", "txt", "plaintext", "plain", "code", "diff", "patch", "tool_code"), ""),
    **dict.fromkeys(("pycon", "python-repl", "ipython", "jupyter"), "python"),
}
"""Further labels of fences, with their languages. An empty text stands for an unknown language."""

_STRING_OR_COMMENT = re.compile(
    r"#[^\n]*|'''|\"\"\"|'(?:[^'\\\n]|\\.)*(?:'|$)|\"(?:[^\"\\\n]|\\.)*(?:\"|$)", re.MULTILINE | re.DOTALL
)
"""A triple quote, a comment, or a string on one line. So quotes inside a comment or a string are skipped: `"'''"`."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    text: str
    language: str
    """The name of the language, or an empty text if the fence does not name one."""
    closed: bool = True
    """Whether a closing fence ends the block."""


@dataclass(frozen=True, slots=True)
class _Fence:
    """A line that opens or closes a block."""

    line: int
    """The index of the line; -1 if the fence is in the prompt."""
    indent: int
    mark: str
    """The backticks or tildes."""
    info: str
    """The text after the mark."""

    def closes(self, opening: _Fence) -> bool:
        return not self.info and self.mark[0] == opening.mark[0] and len(self.mark) >= len(opening.mark)


def fenced_blocks(text: str, prompt_opened: str | None = None) -> list[Block]:
    """Return the blocks of a text in order, at most the last MAX_BLOCKS.

    prompt_opened: the language of a block that the prompt has opened, or None if the text begins outside of a block.
    """
    lines = text.split("\n")
    fences = _fences(lines)
    if prompt_opened is not None:
        mark = fences[0].mark[0] * 3 if fences else "```"
        fences = [_Fence(-1, 0, mark, prompt_opened), *fences]
    blocks: list[Block] = []
    index = 0
    while index < len(fences):
        opening = fences[index]
        index, end, closed = _end(lines, fences, index)
        blocks.append(_block(*_inside(opening, lines[opening.line + 1 : end]), closed))
    return blocks[-MAX_BLOCKS:]


def opened_block(prompt: str) -> str:
    """Return the text of the block that a prompt leaves open, or an empty text if all blocks are closed."""
    blocks = fenced_blocks(prompt) if "```" in prompt else []
    return "" if not blocks or blocks[-1].closed else blocks[-1].text


def text_before_fences(text: str) -> str:
    """Return the text before its first fence, or the whole text if it has none."""
    fences = _fences(lines := text.split("\n"))
    return "\n".join(lines[: fences[0].line] if fences else lines)


def _fences(lines: list[str]) -> list[_Fence]:
    """Return the fences in order, at most the last MAX_FENCES."""
    fences: list[_Fence] = []
    for index in reversed(range(len(lines))):
        may_be = "```" in lines[index] or "~~~" in lines[index]
        if may_be and len(fences) < MAX_FENCES and (match := _FENCE.match(lines[index].rstrip())):
            info = match[3].strip() if match[3].strip(_SENTENCE_END) else ""
            fences.append(_Fence(index, len(match[1]), match[2], info))
    return fences[::-1]


def _end(lines: list[str], fences: list[_Fence], opening_index: int) -> tuple[int, int, bool]:
    """Return the index of the next fence to read, the line after the block, and whether a fence closed the block."""
    opening = fences[opening_index]
    python = _language(opening.info) in ("python", "")
    start = opening.line + 1
    for index in range(opening_index + 1, len(fences)):
        fence = fences[index]
        if not fence.closes(opening) and not _language(fence.info):
            continue
        if python and (later := _end_of_string(lines, fences, start, index)) is not None:
            return later + 1, fences[later].line, True
        return (index + 1, fence.line, True) if fence.closes(opening) else (index, fence.line, False)
    return len(fences), len(lines), False


def _end_of_string(lines: list[str], fences: list[_Fence], start: int, fence_index: int) -> int | None:
    """Return the index of the closing fence after the triple-quoted string around a fence, or None."""
    quote = _open_quote("\n".join(lines[start : fences[fence_index].line]), None)
    if quote is None:
        return None
    for index in range(fence_index + 1, min(len(fences), fence_index + MAX_FENCES_IN_STRING)):
        quote = _open_quote("\n".join(lines[fences[index - 1].line : fences[index].line]), quote)
        if quote is None:
            return index if not fences[index].info else None
    return None


def _open_quote(source: str, quote: str | None) -> str | None:
    """Return the triple quote that is open at the end of `source`, or None. quote: one that is open at the start."""
    position = 0
    while position < len(source):
        if quote is not None:
            closing = source.find(quote, position)
            if closing < 0:
                return quote
            position, quote = closing + 3, None
        string_or_comment = _STRING_OR_COMMENT.search(source, position)
        if string_or_comment is None:
            return None
        position = string_or_comment.end()
        if string_or_comment[0] in ("'''", '"""'):
            quote = string_or_comment[0]
    return quote


def _block(lines: list[str], language: str, closed: bool) -> Block:
    """Return the block with these lines. A block without a closing fence ends at a line such as `print(1)````."""
    if not closed:
        last = next((index for index, line in enumerate(lines) if line.rstrip().endswith("```")), None)
        if last is not None:
            lines = [*lines[:last], lines[last].rstrip().rstrip("`")]
            closed = True
    return Block("\n".join(lines), language, closed)


def _language(info: str) -> str:
    word = _FIRST_WORD.match(info)
    return language_name(word[1]) if word else ""


def _inside(opening: _Fence, lines: list[str]) -> tuple[list[str], str]:
    """Return the lines of a block and its language.

    Models may write the language on the first line of the block, or the first line of code on the line of the fence.
    """
    if opening.indent:
        lines = [line[min(opening.indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    name = _MEANT.get(language := _language(opening.info), language)
    _, _, behind = opening.info.partition(" ")
    if name == "python" and CODE_LINE.match(behind):
        return [behind, *lines], name
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if not name and lines and lines[first].strip().lower() in ("python", "python3", "py"):
        return lines[first + 1 :], "python"
    return lines, name


MAX_PARSED_CHARS = 2 * MAX_PROGRAM_CHARS
"""Maximum number of characters that are parsed as Python, in all blocks together."""

MAX_JOINED = 64
"""Maximum number of statements that are taken from other blocks."""

MAX_CUTS = 4
"""Maximum number of attempts to find the end of code without a fence."""

MAX_VERSIONS = MAX_BODIES = MAX_INLINE = 8
"""At most MAX_VERSIONS programs between prose and MAX_INLINE pieces in backticks are read. At most MAX_BODIES blocks
are tried as the body of a function."""

MAX_TOKEN_CHARS = 40
"""Number of characters at the end of a text in which an end token is searched."""

_SPECIAL = (
    rf"(?:{SPECIAL_END}|<[|｜](?:user|User|system|observation|assistant|Assistant|pad|start_header_id|endofturn|turn"
    r"|END_OF_TURN_TOKEN|fim_\w{1,9}|file_separator|python_tag)[|｜]>|<\|?turn\|>)"
)
_PLAIN = rf"(?:{PLAIN_END}|\[/?INST\]|<unk>|(?:<pad>)+|<reserved_\d+>)"
"""Tokens that end a turn or begin the next one."""

_END_OF_TURN = re.compile(rf"{_SPECIAL}(?![\"'])")
"""A token such as `<|im_end|>` in a text. A token before a quote is part of a string and does not match."""

_PLAIN_END = re.compile(rf"(?:^[ \t]*|(?<=[^\s\"'])){_PLAIN}[ \t]*$", re.MULTILINE)
"""A token such as `</s>` directly after code or alone on a line. A token after a blank is part of a comment and does
not match."""

_TOKEN = re.compile(rf"\s*(?:{_SPECIAL}|{_PLAIN})")
"""An end token of either kind, which is matched at the start of the text."""

_LAST_TOKEN = re.compile(rf"{_PLAIN}\s*\Z")
"""A token such as `</s>` at the end of the text."""

_DONE = re.compile(r"^[ \t]*\[DONE\][ \t]*$", re.MULTILINE | re.IGNORECASE)
_NAMES_DONE = re.compile(r"(?<!\[)\bDONE\b", re.IGNORECASE)
"""The name `DONE` in code. After this name, a line `[DONE]` is a list of Python instead of an end mark."""

_ANSWER = ("<answer>", "</answer>")
_WRAPPERS = (  # Opening and closing marks around programs.
    ("<![CDATA[", "]]>"),
    ("[PYTHON]", "[/PYTHON]"),
    ("[BEGIN]", "[DONE]"),
    ("<code>", "</code>"),
    ("<python>", "</python>"),
)
_STRAY_QUOTES = re.compile(r"\n[ \t]*(\'\'\'|\"\"\")[ \t]*$")
"""Triple quotes on the last line, which models copy from a prompt with a quoted example."""

_BOUND = re.compile(r"^(?:async[ \t]+def|def|class|del)?[ \t]*([^\W\d]\w*)", re.MULTILINE)
"""The name that a line without indentation may bind: `x` in `x = 1`, `f` in `def f(a):`."""

_TAGS = re.compile(r"^(?:[ \t]*<[A-Za-z][\w-]*(?:[ =][^<>\n]{0,200})?>)+", re.MULTILINE)
"""HTML tags at the start of a line: `<pre><code class="python">`."""

_CLOSING_TAG = re.compile(r"(?=</[A-Za-z][\w-]*>)")
_SHIFTED = re.compile(
    r"^([ \t]+|> ?|>>> )(?:(?:async[ \t]+def|def|class|import|from)[ \t]+[^\W\d]|@[^\W\d])", re.MULTILINE
)
"""A line of Python that is indented, quoted (`> `), or after a prompt (`>>> `)."""

_OTHER_CODE_LINE = re.compile(
    r"^[ \t]*(?:#include\b|#!|using [\w:.]+|import [\w.*]+;|package \w+|<\?php|module \w+|program \w+"
    r"|(?:public |final |static )*(?:class|interface) \w+|(?:int|void) main\s*\("
    r"|(?:func|fn|fun|function|def) \w+|(?:const|let|var) [\w{\[])",
    re.MULTILINE,
)
"""A line of code in another language: `#include`, `public class Main`, `fn main`, `let [a, b]`."""

_PROSE_LINE = re.compile(r"\s*(?:[^\W\da-z_][^;{}()=$<>\n]*|[^\n]*[:：.。!！?？])[ \t]*(?:\n|$)")
"""A line of prose at the start of a text: `This reads two numbers`, `the sum is printed:`."""

_CODE_MARK = re.compile(r"[;{}()=$<>|\"`\[\]]")
"""Characters that occur in nearly every program, but rarely in prose."""

_RUNS_ALONE = re.compile(r"\bmain\s*(?:\(|=|::)|\bMain\b|\breadline\b|\bstdin\b|\bSTDIN\b|\bgets\b|\bcin\b|\bscanf\b")
"""A sign of a whole program instead of a snippet: a main function, or code that reads stdin."""

_LABELS = {"cpp": ("cpp", "c"), "javascript": ("javascript", "typescript")}
"""The labels of blocks that are accepted for a language. Other languages accept only their own name."""

_QUOTED_FENCE = re.compile(r"^> ?(?:```|~~~)", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^>(?!>) ?", re.MULTILINE)
"""`> `, which is Markdown's mark of a quotation."""

_DATA_STARTS = ("```json\n", "```\n", "<tool_call>\n")
"""Texts before a JSON object at the end of a response."""
_PROGRAM_KEYS = (  # Keys of a JSON object that may hold the program, or an object with the program.
    *("code", "solution", "program", "source_code", "python_code", "answer"),
    *("arguments", "function", "tool_calls", "content"),
)


@dataclass(frozen=True, slots=True)
class Extracted:
    """The program of a response."""

    code: str
    form: str
    """The form of the program, such as `fence`, or `unclosed_fence` for a block that was cut off."""


def extract_code(
    response: str, language: str = "python", entry_point: str | None = None, stub: str | None = None
) -> Extracted | None:
    """Return the program of a response, or None if the response has no program."""
    language = language_name(language)
    text = _answer_text(response)
    # An end mark may occur in prose before the program, so the whole text is tried too.
    for part in dict.fromkeys((_up_to_end(text), text)):
        label, _, below = part.partition("\n")
        # If the prompt ends with backticks, the response begins with the name of the language.
        program = below if language_name(label.strip()) == language else part
        if not program.strip():
            continue
        is_python = language == "python"
        extracted = _python(program, entry_point, stub or None) if is_python else _other_language(program, language)
        # The response may begin with the rest of the entry point's definition, before code that uses it.
        is_lacking = (
            is_python
            and entry_point
            and (extracted is None or not _defining([read_source(extracted.code)], entry_point))
        )
        if entry_point and is_lacking and (begun := _begun(part, entry_point)) is not None:
            return begun
        if extracted is not None:
            return extracted
    held = _in_data(text)
    extracted = extract_code(held, language, entry_point, stub) if held else None
    return None if extracted is None else replace(extracted, form="data")


def _begun(text: str, entry_point: str) -> Extracted | None:
    """Return the entry point's definition if the prompt ends with its beginning, `def f(`, and the text is the rest."""
    rest = text_before_fences(text)
    for beginning in ("def ", f"def {entry_point}", f"def {entry_point}("):
        tree = parse(beginning + rest) if len(rest) <= MAX_PROGRAM_CHARS else None
        if tree is not None and getattr(tree.body[0], "name", None) == entry_point:
            return Extracted(beginning + rest, "begun")
    return None


def _in_data(text: str) -> str | None:
    """Return the program in a JSON object: the text under a usual name, or the cells of a notebook."""
    text = text.strip().removesuffix("```").removesuffix("</tool_call>")
    starts = (text.rfind(mark) + len(mark) for mark in _DATA_STARTS if mark in text)
    try:
        value = json.loads(text if text[:1] in ("{", "[") else text[max(starts, default=0) :], strict=False)
    except (ValueError, RecursionError):
        return None
    while isinstance(value, dict | list):
        if isinstance(value, list):
            value = value[-1] if value else None
            continue
        if isinstance(cells := value.get("cells"), list):
            sources = [
                cell.get("source", "") for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"
            ]
            return "\n".join(source if isinstance(source, str) else "".join(map(str, source)) for source in sources)
        value = next((value[key] for key in _PROGRAM_KEYS if value.get(key)), None)
    return value if isinstance(value, str) else None


def callable_in(code: str, entry_point: str) -> str:
    """Return the expression for a program's entry point: `Solution().add` if `add` is a method of class Solution."""
    if "." in entry_point or "(" in entry_point or "Solution" not in code:
        return entry_point
    tree = parse(code)
    names = python_source.top_level(tree) if tree else set()
    is_method = entry_point not in names and f"Solution.{entry_point}" in names
    return f"Solution().{entry_point}" if is_method else entry_point


def _answer_text(response: str) -> str:
    """Return the text after the thinking, or inside `<answer>`, with the indentation of its first line."""
    final = final_part(response)
    if not final:
        return ""
    end = len(response.rstrip())
    start = end - len(final)
    while start > 0 and response[start - 1] in " \t":
        start -= 1
    text = response[start:end].replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    if ">" in text and _QUOTED_FENCE.search(text):
        text = _QUOTE_MARK.sub("", text)
    opening, closing = _ANSWER
    _, tag, after = text.rpartition(opening)
    inside = after.partition(closing)[0].strip("\n")
    return inside if tag and ("```" in inside or read_source(inside).is_code) else text


def _up_to_end(text: str) -> str:
    """Return the text before the first mark that ends the answer or closes a wrapper that the prompt has opened."""
    start = 0
    while token := _TOKEN.match(text, start):
        start = token.end()
    special = _END_OF_TURN.search(text, start)
    text = text[start : special.start() if special else len(text)]
    is_program = len(text) <= MAX_PROGRAM_CHARS and parse(text) is not None
    done = _DONE.search(text)
    if done and is_program and (_NAMES_DONE.search(text[: done.start()]) or parse(text[: done.start()]) is None):
        done = None
    if is_program:
        return text[: done.start()] if done else text
    ends = [done, _PLAIN_END.search(text)]
    for opening, closing in (_ANSWER, *_WRAPPERS):
        if opening[:-1] not in text and closing in text:  # The mark must be alone on a line, or at the end.
            mark = re.escape(closing)
            ends.append(re.search(rf"^[ \t]*{mark}[ \t]*$|{mark}\s*\Z", text, re.MULTILINE))
    text = text[: min((end.start() for end in ends if end is not None), default=len(text))]
    while token := _LAST_TOKEN.search(text, max(0, len(text) - MAX_TOKEN_CHARS)):
        text = text[: token.start()]
    quotes = _STRAY_QUOTES.search(text)
    return text[: quotes.start()] if quotes and text.count(quotes[1]) % 2 else text


def _python(text: str, entry_point: str | None, stub: str | None) -> Extracted | None:
    """Return the Python program of a text. Its forms are tried in the order of the module's docstring."""
    blocks = _python_blocks(text, entry_point, stub)
    tagged, untagged = _sources(blocks)
    readable = [source for source in untagged if source.tree is not None and source.is_code]
    if entry_point:
        for sources, others in ((tagged, tagged), (readable, [*tagged, *readable])):
            if (chosen := _defining(sources, entry_point)) is not None:
                return _with_needs(chosen, others, _block_form(blocks, chosen))
        whole = None if blocks else text
        if stub and (continued := _continuing(tagged, untagged, whole, stub, entry_point)) is not None:
            return continued
    sources = tagged or readable or [source for source in untagged if source.tree is None][-1:]
    if sources:
        chosen = _best(sources)
        return _with_needs(chosen, sources, _block_form(blocks, chosen))
    return _unfenced(text, bool(blocks))


def _python_blocks(text: str, entry_point: str | None, stub: str | None) -> list[Block]:
    """Return the blocks of a response. The first block begins with the text if this makes it a program."""
    if "```" not in text and "~~~" not in text:
        return []
    whole = parse(text) if len(text) <= MAX_PROGRAM_CHARS else None
    if whole is not None and PythonSource(text, whole).is_code:
        return []  # The fences are inside strings and comments.
    blocks = fenced_blocks(text)
    first, *others = fenced_blocks(text, "python")
    source = read_source(first.text)
    is_whole = bool(source.tree and entry_point and _defining([source], entry_point))
    # The first fence opens a block if a program follows, and closes one if prose follows.
    opens = bool(blocks) and _program_in(blocks[0].text, entry_point, stub) is not None
    is_even = bool(entry_point) or all(block.closed for block in blocks)
    corrects = is_even and any(_program_in(block.text, entry_point, None) is not None for block in blocks[1:])
    if (opens or corrects) and not is_whole:
        return blocks
    program = _program_in(first.text, entry_point, stub)
    if program is None:
        # The entry point may have been guessed wrongly: `sum` for `assert sum(total([1])) == 1`.
        return blocks if entry_point is None else _python_blocks(text, None, None)
    languages = [block.language or ("python" if read_source(block.text).is_code else "") for block in others]
    named = [replace(block, language=name) for block, name in zip(others, languages, strict=True)]
    return [replace(first, text=program), *named]


def _program_in(text: str, entry_point: str | None, stub: str | None) -> str | None:
    """Return the program in a text, the whole text or the part after prose, or None if it has no program."""
    if not text.strip():
        return None
    if entry_point and stub is not None and continue_stub(stub, text, entry_point) is not None:
        return text
    source = read_source(text)
    if source.tree is None:
        part = _part(text)
        source = PythonSource(text, None) if part is None else read_source(part.code)
    is_program = source.is_code if not entry_point else _defining([source], entry_point) is not None
    return source.text if is_program else None


def _sources(blocks: Sequence[Block]) -> tuple[list[PythonSource], list[PythonSource]]:
    """Return the blocks that are labelled Python, and the blocks without a label."""
    tagged: list[PythonSource] = []
    untagged: list[PythonSource] = []
    chars_left = MAX_PARSED_CHARS
    for block in reversed(blocks):
        if block.language not in ("python", "") or not block.text.strip():
            continue
        chars_left -= len(block.text)
        source = read_source(block.text) if chars_left >= 0 else PythonSource(block.text, None)
        if source.tree is None and not block.closed and chars_left >= 0:
            source = _without_cut(source)
        (tagged if block.language else untagged).append(source)
    return tagged[::-1], untagged[::-1]


def _without_cut(source: PythonSource) -> PythonSource:
    """Return a cut-off source without its last statement."""
    for shorter in _shorter_parts(source.text):
        whole = parse(shorter)
        if whole is not None and whole.body:
            bound = _BOUND.findall(source.text[len(shorter) :])
            return source if top_level(whole).intersection(bound) else PythonSource(shorter, whole)
    return source


def _defining(sources: Sequence[PythonSource], entry_point: str) -> PythonSource | None:
    """Return the last source that defines the entry point, or else the entry point's class. None if there is none."""
    dotted = entry_point.replace("()", "")
    first_name = dotted.partition(".")[0]
    for name in (dotted, first_name):
        for source in reversed(sources):
            # Methods are known only if the source parses.
            defined_name = name if source.tree is not None else first_name
            if not source.defines.isdisjoint((defined_name, f"Solution.{defined_name}")):
                return source
    return None


def _best(sources: Sequence[PythonSource]) -> PythonSource:
    """Return the last source that reads stdin, else the last one that defines something, else the last one."""
    reading = [source for source in sources if source.reads_stdin]
    return (reading or [source for source in sources if source.defines] or sources)[-1]


def _block_form(blocks: Sequence[Block], chosen: PythonSource) -> str:
    return "fence" if blocks[-1].closed or chosen.text not in blocks[-1].text else "unclosed_fence"


def _with_needs(chosen: PythonSource, sources: Sequence[PythonSource], form: str) -> Extracted:
    """Return the chosen source, preceded by statements from other blocks that bind its missing names."""
    if len(sources) == 1:
        return Extracted(chosen.text, form)
    parts: list[str] = []
    taken: set[tuple[int, int]] = set()
    position = next(index for index, source in enumerate(sources) if source is chosen)
    # Blocks before the chosen one are searched first, beginning with the nearest one.
    others = [*reversed(sources[:position]), *sources[position + 1 :]]
    needs = sorted(chosen.needs)
    for name in needs:
        if len(parts) >= MAX_JOINED:
            break
        giver = next((source for source in others if name in source.defines), None)
        lines = giver.binding(name) if giver is not None else None
        if giver is None or lines is None or (id(giver), lines[0]) in taken:
            continue
        taken.add((id(giver), lines[0]))
        part = "\n".join(giver.text.split("\n")[lines[0] - 1 : lines[1]])
        parts.insert(0, part)
        needs += sorted(read_source(part).needs - set(needs) - chosen.defines)
    return Extracted("\n".join([*parts, chosen.text]), "joined" if parts else form)


def _continuing(
    tagged: Sequence[PythonSource], untagged: Sequence[PythonSource], whole: str | None, stub: str, entry_point: str
) -> Extracted | None:
    """Return the stub continued by the body of a function, from the last fitting block or the whole response."""
    if whole is not None:
        source = read_source(whole)
        if source.tree is not None and _defining([source], entry_point) is not None:
            return Extracted(source.text, "whole")
        code = continue_stub(stub, whole, entry_point)
        return Extracted(code, "body") if code is not None else None
    bodies = [source for source in (*untagged, *tagged) if source.is_body or source.tree is None]
    continued = (continue_stub(stub, source.text, entry_point) for source in reversed(bodies[-MAX_BODIES:]))
    code = next(filter(None, continued), None)
    return None if code is None else Extracted(code, "body")


def _unfenced(text: str, has_blocks: bool) -> Extracted | None:
    """Return a program outside of fenced blocks: in a wrapper, as the whole text, inline, or between prose."""
    for opening, closing in _WRAPPERS:
        _, tag, after = text.rpartition(opening)
        inside = after.partition(closing)[0]
        if tag and inside.strip():
            source = read_source(inside)
            if source.is_code:
                return Extracted(source.text, "wrapper")
            if source.tree is not None and (quoted := _quoted(source.tree)) is not None:
                return quoted
    source = read_source(text)
    if source.tree is not None:
        return Extracted(source.text, "whole") if source.is_code else _quoted(source.tree)
    if "```" in text:
        for piece in reversed(text.split("```")[1::2][-MAX_INLINE:]):
            source = read_source(piece.removeprefix("python").strip())
            if source.tree is not None and source.is_code:
                return Extracted(source.text, "inline")
    return None if has_blocks else _between_prose(text)


def _between_prose(text: str) -> Extracted | None:
    """Return code on separate lines, after tags such as `<pre>`, or in backticks within a line."""
    without_tags = _TAGS.sub("", text)
    part = _part(text if without_tags == text else html.unescape(_CLOSING_TAG.sub("\n", without_tags)))
    pieces = text.split("`")[1::2][-MAX_INLINE:] if part is None else []
    programs = [source for source in map(read_source, pieces) if source.defines]
    return Extracted(programs[-1].text, "inline") if programs else part


def _quoted(tree: ast.Module) -> Extracted | None:
    """Return the program in a text that is a single string literal, which models copy from quoted examples."""
    match tree.body:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            source = read_source(text.removeprefix("python\n"))
            return Extracted(source.text, "whole") if source.tree is not None and source.is_code else None
    return None


def _part(text: str, versions: int = MAX_VERSIONS) -> Extracted | None:
    """Return the code that begins at the first line of code, shortened until it parses.

    If the text has later versions of this code, the last version is returned. versions: how many are searched for.
    """
    first = CODE_LINE.search(text)
    if first is None:
        return _shifted_part(text)
    code = text[first.start() : first.start() + MAX_PROGRAM_CHARS]
    for shorter in _shorter_parts(code):
        tree = parse(shorter)
        if tree is not None and tree.body:
            if not versions:
                break
            later = _part(code[len(shorter) :], versions - 1) if CODE_LINE.search(code, len(shorter)) else None
            if later is not None and top_level(tree) & read_source(later.code).defines:
                return later
            return Extracted(shorter.rstrip(), "part")
    return Extracted(code, "part")


def _shifted_part(text: str) -> Extracted | None:
    """Return code that is indented, quoted or after prompts (`>>>`), from between lines of prose."""
    shifted = _SHIFTED.search(text)
    if shifted is None:
        return None
    lines = text[shifted.start() : shifted.start() + MAX_PROGRAM_CHARS].split("\n")
    mark = shifted[1][:1]
    is_session = shifted[1].startswith(">>>")
    inside = takewhile(lambda line: line.strip() if is_session else not line.strip() or line.startswith(mark), lines)
    source = read_source("\n".join(_QUOTE_MARK.sub("", line) for line in inside))
    return Extracted(source.text, "part") if source.tree is not None and source.is_code else None


def _shorter_parts(code: str) -> Iterator[str]:
    """Yield the code, the code before its first syntax error, and this code without its last statement, and so on."""
    for _ in range(MAX_CUTS):
        yield code
        line = python_source.error_line(code)
        if not line:
            return
        lines = code.split("\n")[: line - 1]
        yield "\n".join(lines)
        while lines and (not lines[-1].strip() or lines[-1][:1] in " \t)]}"):
            lines.pop()
        code = "\n".join(lines[:-1])


def _other_language(text: str, language: str) -> Extracted | None:
    """Return the program in a language other than Python: the last block with a whole program, else the last block."""
    names = _LABELS.get(language, (language,))
    blocks = [block for block in _blocks_of(text, language) if block.text.strip()]
    for labels in (names, ("",)):
        if labelled := [block for block in blocks if block.language in labels]:
            chosen = ([block for block in labelled if _RUNS_ALONE.search(block.text)] or labelled)[-1]
            return Extracted(chosen.text.strip("\n"), "fence" if chosen.closed else "unclosed_fence")
    if blocks or (_OTHER_CODE_LINE.search(text) is None and (_PROSE_LINE.match(text) or not _CODE_MARK.search(text))):
        return None
    return Extracted(text.strip("\n"), "whole")


def _blocks_of(text: str, language: str) -> list[Block]:
    """Return the blocks of a response. The first block begins with the text if the prompt seems to have opened it."""
    blocks = fenced_blocks(text)
    if not blocks:
        return fenced_blocks(text, language) if "```" in text else []
    if _OTHER_CODE_LINE.search(blocks[0].text) is None:
        first, *others = fenced_blocks(text, language)
        is_code = _OTHER_CODE_LINE.search(first.text) is not None
        is_odd = not all(block.closed for block in blocks)
        if is_code or (is_odd and first.text.strip() and _PROSE_LINE.match(first.text) is None):
            return [first, *others]
    return blocks


def worked_program(solution: str) -> str:
    """Return the only code block of a solution, or the whole solution if it is a program or has several blocks."""
    if "```" not in solution and "~~~" not in solution:
        return solution
    blocks = fenced_blocks(solution)
    return blocks[0].text if len(blocks) == 1 and parse(solution) is None else solution
