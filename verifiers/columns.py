"""The one table of the names that people use for columns, for every command that reads data and every trainer's row.

    [{"problem_id": 7, "question": "Tom has ...", "ground_truth": "72", "response": "So \\boxed{72}"}]
    ->  id "problem_id", prompt "question", gold "ground_truth", response "response"           (`find_column`)

    {"reward_model": {"ground_truth": 72}}    value_at("reward_model.ground_truth")  ->  72
    [51.0], NaN, ["x", "y"]                   text_of  ->  "51", None, '["x","y"]'

A column with nothing but nulls in the sample records counts only if no other one fits. `row_kinds` says which rows have
tests in place of gold, and which are of no kind that truegold judges.
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
"""The values of one record by column."""
Samples = Sequence[Values]
"""The values of the records that are looked at to tell a source's shape."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The value of a column that a record does not have, as opposed to one that holds null."""


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value of a column, MISSING if there is none.

    A dot reaches into structs, into texts that hold a JSON object, and by number into lists (-1 is the last); a column
    whose own name has a dot in it comes first.
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
"""Structures nested deeper are cut: a line of a thousand brackets would end the JSON writer otherwise."""
EXACT_FLOAT: Final = 2**53
"""Below this every whole float is the integer it looks like."""


def text_of(value: Any) -> str | None:
    """Return a value as text, or None for null, NaN, empty values, and texts of nothing but whitespace.

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
        text = str(value)  # It is a text, an integer, a decimal, a date.
    return text if text and not text.isspace() else None


def _sorted_json(structure: Any) -> str:
    return orjson.dumps(json_safe(structure), option=orjson.OPT_SORT_KEYS).decode()


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < EXACT_FLOAT else repr(value)


def json_safe(value: Any, depth: int = 0) -> Any:
    """Return `value` with what JSON cannot hold replaced: bytes and objects by `<type>`, big integers by text."""
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
    elif callable(plain := getattr(value, "tolist", None)):  # An array or a number of numpy, as pandas hands them out.
        safe = json_safe(plain(), depth + 1)
    return safe


def check_unicode(text: str) -> None:
    """Raise `Unusable` for lone surrogates: `"\\ud800"` is legal JSON, and no file can hold it as UTF-8."""
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
r"""A box, the content of one without braces (`\boxed 7`, `\boxed\frac12`), another command, or a brace."""


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last balanced `\boxed{...}`, or what follows a bare `\boxed 7`."""
    spans = boxed_spans(text)
    return text[slice(*spans[-1])].strip() or None if spans else None


def boxed_spans(text: str) -> list[tuple[int, int]]:
    """Return where the content of each balanced or bare box starts and ends, in the order of their starts.

    It takes one pass with a stack, so that a text of a million open boxes costs no more than its length.
    """
    # Each open brace is the position where the content of its box starts, or None if it opens no box.
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
        "label",  # Next to any other it is a class of the record.
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
"""The names most often used for each role, the surest first. Files of samples have `extracted`, what a system answered,
and `system`, which system it was."""

GOLDS_COLUMNS = (
    *("golds", "accepted_golds", "accepted_answers", "acceptable_answers", "golden_answers", "reference_answers"),
    *("answers_spans.spans", "answers.text", "validated_answers"),
)
"""Columns with a list of accepted golds, any of which is right."""

SOLUTIONS = ("answer", "solution", "solutions")
"""Columns of worked solutions that hold the gold if no column of gold does."""

SOURCES = ("data_source", "dataset", "datasource", "source")
"""Columns that name the data set that a row is from."""

FINAL_MARK = "####"
"""It stands before the answer at the end of GSM8K's solutions."""
_NOTE = re.compile(
    r"(?:n\.?b\.?|note|hint|remark|comment|explanation|caution|注意?|提示|备注|说明)\s*[:：]", re.IGNORECASE
)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
MAX_NOTES = 4
"""Further notes after marks are not looked through."""
MAX_VALUE_CHARS = 30
"""A longer text is not a bare value."""


def marked_answer(text: str) -> str | None:
    """Return the answer after the last `####`, or None if there is none: a note on a value is not an answer.

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
    """Say whether the text after a mark is a note on what stands before it."""
    is_value = any(map(str.isdigit, before)) and len(before) <= MAX_VALUE_CHARS and _LONG_WORD.search(before) is None
    are_words = not any(map(str.isdigit, answer)) and len(_WORDS.findall(answer)) > 1
    return _NOTE.match(answer) is not None or (is_value and are_words)


def find_column(role: Role, samples: Sequence[Mapping[str, Any]], exclude: Iterable[str] = ()) -> str | None:
    """Return the name of the column with this role in the sample records, or None if there is none.

    Case, blanks and hyphens make no other name: "Correct Answer" is `correct_answer`, if there is no column of that
    very name; of prompts that differ so, the one with more words counts. A column of gold with nothing but true and
    false counts only if no other one fits, and so does a prompt that is the same in all records, two at least, where
    another column asks.
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
    """Say whether a column has a value: neither null nor missing."""
    return value is not None and value is not MISSING


def spelled(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Return the columns that have these names, in their order: by that very name, else in other case, joints and
    accents.

    Paths with dots are returned as they are.
    """
    exact = list(columns)
    folded = {_folded(name): name for name in reversed(exact)}
    matches = (name if name in exact or "." in name else folded.get(_folded(name)) for name in names)
    return list(dict.fromkeys(name for name in matches if name is not None))


def _are_flags(name: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    values = [value for sample in samples if is_there(value := value_at(sample, name))]
    return bool(values) and all(isinstance(value, bool) for value in values)


ASKING = ("prompt", "question", "problem", "query", "problem_text", "question_text", "question_content", "题目", "问题")
"""Columns that hold questions, and hardly ever a text that a question is about."""
BESIDE = ("text", "content", "body", "original_text", "description")
"""Columns that hold questions where all records share an instruction."""
_ASKS = re.compile(
    r"[?？]\s*$|^\s*(?:what|how|who|when|where|which|why|find|solve|compute|calculate|evaluate|determine|simplify|prove"
    r"|求|计算|解|多少)\b|(?:多少|几)[^。]{0,12}$|=\s*$",
    re.IGNORECASE,
)


def _instructions(
    names: Sequence[str], columns: Iterable[str], samples: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """Return the prompts that all records share and the columns with each record's own question. Both are empty where
    either is missing."""
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
    """Say whether all records have the same text in a column; two records at least tell that."""
    texts = _texts(name, samples)
    return len(texts) > 1 and len(set(texts)) == 1


def are_different(name: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a column has several texts, in most records one."""
    texts = _texts(name, samples)
    return len(set(texts)) > 1 and 2 * len(texts) > len(samples)


def _are_asking(name: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    texts = _texts(name, samples)
    return 2 * sum(_ASKS.search(text) is not None for text in texts) >= len(texts)


def _wordiest(name: str, columns: Iterable[str], samples: Sequence[Mapping[str, Any]]) -> str:
    """Return the column of this name, in any case, with the most words."""
    alike = [column for column in columns if _folded(column) == _folded(name)]
    if name not in alike or len(alike) == 1:
        return name
    texts = {column: " ".join(str(sample.get(column) or "") for sample in samples) for column in alike}
    return max(alike, key=lambda column: (len(texts[column].split()), len(texts[column]), column == name))


def _folded(name: str) -> str:
    return _JOINTS.sub("", unicodedata.normalize("NFKD", name)).lower()


_JOINTS = re.compile(r"[\s_\ufeff\u0300-\u036f-]+")
