"""Finds columns by their usual names, such as those of the prompt and the gold, and reads their values.

    [{"problem_id": 7, "question": "Tom has ...", "ground_truth": "72", "response": "So \\boxed{72}"}]
    ->  id "problem_id", prompt "question", gold "ground_truth", response "response"           (`find_column`)

    value_at({"reward_model": {"ground_truth": 72}}, "reward_model.ground_truth")  ->  72
    text_of([51.0])  ->  "51"      text_of(NaN)  ->  None      text_of(["x", "y"])  ->  '["x","y"]'

The commands and the adapters for trainers use it. A column that is null in all sample records is used only if no other
column fits. `row_kinds` recognises rows with tests in place of gold.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import orjson

from truegold.verifiers.code.suite.row_tests import INT64, Unusable
from truegold.verifiers.strict_json import parse_json

Values = Mapping[str, Any]
"""One record: maps columns to values."""
Samples = Sequence[Values]
"""The first records of a source, from which its columns are found."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The value of an absent column, as opposed to a column that is null."""


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value of a column, or MISSING if the record does not have it.

    `info.tests` is the key `tests` of the column `info`, which may hold an object or a JSON text. `items.-1` is the
    last entry of the list in `items`. If a column has the whole path as its name, that column is read.
    """
    if path in values:
        return values[path]
    head, *steps = path.split(".")
    value = values.get(head, MISSING)
    for step in steps:
        value = _take_step(value, step)
    return value


def _take_step(value: Any, step: str) -> Any:
    if value is None or value is MISSING:
        return value
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return MISSING
    if isinstance(value, Mapping):
        return value.get(step, MISSING)
    if isinstance(value, list) and step.removeprefix("-").isdecimal():
        return value[int(step)] if -len(value) <= int(step) < len(value) else MISSING
    return MISSING


MAX_DEPTH = 64
"""Maximum depth of a structure. Deeper levels become `<dict>` or `<list>`: the JSON writer fails on a thousand."""
EXACT_FLOAT: Final = 2**53
"""Whole floats below this bound are exact integers."""


def text_of(value: Any) -> str | None:
    """Return a value as text, or None for null, NaN, empty values and whitespace.

    42 -> "42", 51.0 -> "51", 0.5 -> "0.5", true -> "true", ["x"] -> "x", other structures -> JSON.
    """
    while isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if value is None or value is MISSING:
        return None
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, float):
        text = _float_text(value)
    elif isinstance(value, list | tuple | Mapping):
        text = _sorted_json(value) if value else ""
    else:
        text = str(value)  # A text, an integer, a decimal or a date.
    return text if text and not text.isspace() else None


def _sorted_json(structure: Any) -> str:
    return orjson.dumps(json_safe(structure), option=orjson.OPT_SORT_KEYS).decode()


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < EXACT_FLOAT else repr(value)


def json_safe(value: Any, depth: int = 0) -> Any:
    """Return a copy that JSON can hold: bytes and objects become `<type>`, integers beyond 64 bits become text."""
    safe: Any = f"<{type(value).__name__}>"
    if isinstance(value, str):
        check_unicode(value)
        safe = value
    elif value is None or isinstance(value, bool | float):
        safe = value
    elif isinstance(value, int):
        safe = value if -INT64 <= value < INT64 else str(value)
    elif isinstance(value, Mapping) and depth < MAX_DEPTH:
        safe = {json_safe(str(key)): json_safe(item, depth + 1) for key, item in value.items()}
    elif isinstance(value, list | tuple) and depth < MAX_DEPTH:
        safe = [json_safe(item, depth + 1) for item in value]
    elif isinstance(value, datetime.date | datetime.time | decimal.Decimal):
        safe = str(value)
    elif callable(plain := getattr(value, "tolist", None)):  # An array or a scalar of numpy, as pandas returns them.
        safe = json_safe(plain(), depth + 1)
    return safe


def check_unicode(text: str) -> None:
    """Raise `Unusable` for a lone surrogate: JSON may spell one (`"\\ud800"`), but UTF-8 cannot store it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unusable("invalid_unicode", f"a lone surrogate at character {error.start} of a text") from None


_BOXED = re.compile(
    r"\\(?:boxed|fbox)\s*\{|\\(?:boxed|fbox)(?![a-zA-Z])[ ]*(?P<bare>(?![\s${}])"
    r"(?:[^${}\\\n.;]|[.;](?!\s|\$|$)|\\(?!(?:end|q?quad)\b)[a-zA-Z]+|\\[{}$%,! ]|\{(?:[^{}]|\{[^{}]*\})*\})+)"
    r"|\\.|[{}]",
    re.DOTALL,
)
r"""A token of LaTeX: a box that opens, a box without braces (`\boxed 7`, `\boxed\frac12`), a command or a brace."""


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last box, `\boxed{7}` or `\boxed 7`, or None if there is no closed box."""
    spans = boxed_spans(text)
    return text[slice(*spans[-1])].strip() or None if spans else None


def boxed_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of the content of each closed box, sorted by start.

    One pass with a stack takes linear time, even for a text of a million open boxes.
    """
    # One entry for each open brace: the start of its box's content, or None if the brace opens no box.
    open_braces: list[int | None] = []
    spans: list[tuple[int, int]] = []
    for token in _BOXED.finditer(text):
        if token["bare"] is not None:
            spans.append(token.span("bare"))
        elif token[0] == "}":
            start = open_braces.pop() if open_braces else None
            if start is not None:
                spans.append((start, token.start()))
        elif token[0].endswith("{") and token[0] != "\\{":
            open_braces.append(token.end() if len(token[0]) > 1 else None)
    return sorted(spans)


Role = Literal["prompt", "gold", "solution", "id", "response", "extracted", "system"]

NAMES: dict[Role, tuple[str, ...]] = {
    "prompt": (
        *("prompt", "question", "problem", "instruction", "query", "problem_text", "question_text", "question_content"),
        *("question_stem", "problem_statement", "题目", "问题", "题干", "input", "text", "content", "original_text"),
        *("messages", "conversations", "conversation", "responses_create_params.input", "description"),
    ),
    "gold": (
        *("gold", "ground_truth", "reward_model.ground_truth", "expected_answer", "reference_answer", "correct_answer"),
        *("gold_answer", "answer", "final_answer", "final_ans", "verification_info.ground_truth", "answer_number"),
        "short_answer",
        *("conversations.1.ground_truth.value", "target", "答案", "标准答案", "参考答案"),
        *(
            "Antwort",
            "réponse",
            "respuesta",
            "risposta",
            "resposta",
            "antwoord",
            "ответ",
            "odpowiedź",
            "cevap",
            "yanıt",
        ),
        *("答え", "正解", "정답", "답"),
        "label",  # The last: next to another of these columns, it is usually a class of the record.
    ),
    "solution": ("solution", "rationale", "worked_solution", "generated_solution", "explanation", "解析", "解答"),
    "id": (
        *("id", "ID", "_id", "unique_id", "uuid", "task_id", "question_id", "problem_id", "item_id", "item", "idx"),
        "编号",
    ),
    "response": ("response", "completion", "generation", "text", "回答"),
    "extracted": ("answer", "extracted", "prediction"),
    "system": ("system", "model", "generator"),
}
"""The usual column names of each role, the surest first. In files of samples, `system` is the name of a model, and
`extracted` is the answer that was read from its response."""

GOLDS_COLUMNS = (
    *("golds", "accepted_golds", "accepted_answers", "acceptable_answers", "golden_answers", "reference_answers"),
    *("answers_spans.spans", "answers.text", "validated_answers"),
)
"""Columns with a list of accepted golds; each of them is right."""

SOLUTIONS = ("answer", "solution", "solutions")
"""Columns of worked solutions; gold is read from their end if there is no column of gold."""

SOURCES = ("data_source", "dataset", "datasource", "source")
"""Columns with the name of the row's data set."""

FINAL_MARK = "####"
"""The mark before the final answer in GSM8K's solutions."""
_NOTE = re.compile(
    r"(?:n\.?b\.?|note|hint|remark|comment|explanation|caution|注意?|提示|备注|说明)\s*[:：]", re.IGNORECASE
)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
MAX_NOTES = 4
"""Maximum number of marks `####` that `marked_answer` tries, counted from the end of the text."""
MAX_VALUE_CHARS = 30
"""Maximum length, in characters, of a text before a mark that is taken for a value."""


def marked_answer(text: str) -> str | None:
    """Return the answer after the last `####`, or None if there is no mark or only notes follow it.

    "48+24 = 72 #### 72"              "72"
    "... so it rains. #### yes"       "yes"
    "42\\n#### Note: round up"         None
    "42\\n#### round it up"            None: the value stands before the mark
    """
    *parts, last = text.rsplit(FINAL_MARK, MAX_NOTES)
    if not parts:
        return None
    for before, behind in zip(reversed(parts), (last, *reversed(parts[1:])), strict=True):
        if not (answer := behind.strip()) or not _is_note(answer, before.rpartition(FINAL_MARK)[2].strip()):
            return answer or None
    return None


def _is_note(answer: str, before: str) -> bool:
    """Say whether the text after a mark is a note on the value before the mark."""
    is_value = any(map(str.isdigit, before)) and len(before) <= MAX_VALUE_CHARS and _LONG_WORD.search(before) is None
    are_words = not any(map(str.isdigit, answer)) and len(_WORDS.findall(answer)) > 1
    return _NOTE.match(answer) is not None or (is_value and are_words)


def find_column(role: Role, samples: Sequence[Mapping[str, Any]], exclude: Iterable[str] = ()) -> str | None:
    """Return the name of the column with this role in the sample records, or None if there is none.

    Exact names come first. Otherwise case, blanks and hyphens are ignored: "Correct Answer" counts as
    `correct_answer`. If several prompt columns differ only in this way, the one whose texts have most words is used.

    Two kinds of columns are used only if no other column fits: a gold column with only true and false, and a prompt
    column with the same instruction in all records while another column holds the questions.
    """
    columns = dict.fromkeys(name for values in samples for name in values)
    names = [name for name in spelled(NAMES[role], columns) if name not in exclude]
    if role == "prompt":
        names = [_wordiest(name, columns, samples) for name in names]
    if role == "prompt":
        weak, asking = _instructions(names, columns, samples)
        names = [*(name for name in asking if name not in exclude), *names]
    else:
        weak = [name for name in names if role == "gold" and _are_flags(name, samples)]
    names = [*(name for name in names if name not in weak), *weak]
    for has_value in (is_there, lambda value: value is not MISSING):
        for name in names:
            if any(has_value(value_at(values, name)) for values in samples):
                return name
    return None


def is_there(value: object) -> bool:
    """Say whether a value is neither null nor MISSING."""
    return value is not None and value is not MISSING


def spelled(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Return the columns with these names, in the order of `names`.

    An exact name comes first. Otherwise case, accents, blanks, hyphens and underscores are ignored. Paths with dots are
    returned unchecked.
    """
    exact = list(columns)
    folded = {_folded(name): name for name in reversed(exact)}
    matches = (name if name in exact or "." in name else folded.get(_folded(name)) for name in names)
    return list(dict.fromkeys(name for name in matches if name is not None))


def _are_flags(name: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    values = [value for sample in samples if is_there(value := value_at(sample, name))]
    return bool(values) and all(isinstance(value, bool) for value in values)


ASKING = ("prompt", "question", "problem", "query", "problem_text", "question_text", "question_content", "题目", "问题")
"""Columns that usually hold the question, not a passage that the question is about."""
BESIDE = ("text", "content", "body", "original_text", "description")
"""Columns that may hold the question if the prompt column has the same instruction in all records."""
_ASKS = re.compile(
    r"[?？]\s*$|^\s*(?:what|how|who|when|where|which|why|find|solve|compute|calculate|evaluate|determine|simplify|prove"
    r"|求|计算|解|多少)\b|(?:多少|几)[^。]{0,12}$|=\s*$",
    re.IGNORECASE,
)
"""A text that asks: it ends with `?` or `=`, or begins with a word such as "find" or "how"."""


def _instructions(
    names: Sequence[str], columns: Iterable[str], samples: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """Return the columns with one instruction for all records, and the columns with the records' questions.

    Both lists are empty unless there are columns of both kinds.
    """
    shared = [name for name in names if are_shared(name, samples)]
    if not shared:
        return [], []
    asking = [name for name in spelled(ASKING, names) if are_different(name, samples)]
    if not asking and not _texts(shared[0], samples)[0].rstrip().endswith(("?", "？")):
        beside = spelled(BESIDE, columns)
        asking = [name for name in beside if are_different(name, samples) and _are_asking(name, samples)]
    return (shared, asking) if asking else ([], [])


def _texts(name: str, samples: Sequence[Mapping[str, Any]]) -> list[str]:
    return [value for sample in samples if isinstance(value := value_at(sample, name), str)]


def are_shared(name: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a column has the same text in all records that have one, and at least two records have one."""
    texts = _texts(name, samples)
    return len(texts) > 1 and len(set(texts)) == 1


def are_different(name: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a column has a text in most records, and not always the same text."""
    texts = _texts(name, samples)
    return len(set(texts)) > 1 and 2 * len(texts) > len(samples)


def _are_asking(name: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    texts = _texts(name, samples)
    return 2 * sum(_ASKS.search(text) is not None for text in texts) >= len(texts)


def _wordiest(name: str, columns: Iterable[str], samples: Sequence[Mapping[str, Any]]) -> str:
    """Return the column with most words among those spelled like `name`, such as "Question" and "question"."""
    alike = [column for column in columns if _folded(column) == _folded(name)]
    if name not in alike or len(alike) == 1:
        return name
    texts = {column: " ".join(str(sample.get(column) or "") for sample in samples) for column in alike}
    return max(alike, key=lambda column: (len(texts[column].split()), len(texts[column]), column == name))


def _folded(name: str) -> str:
    return _JOINTS.sub("", unicodedata.normalize("NFKD", name)).lower()


_JOINTS = re.compile(r"[\s_\ufeff\u0300-\u036f-]+")
