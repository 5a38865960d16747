"""Reads multiple-choice questions whose options stand in columns of their own.

    {"question": "Which is a noble gas?", "choices": ["iron", "argon"], "answer": 1}
    {"question": "...", "choices": {"text": ["iron", "argon"], "label": ["A", "B"]}, "answerKey": "B"}
    {"question": "...", "A": "iron", "B": "argon", "answer": "B"}
    {"question": "...", "options": "A. iron\\nB. argon", "answer": "(B)"}
    {"question": "...", "opa": "iron", "opb": "argon", "cop": 1}
    {"question": "...", "distractor1": "iron", "correct_answer": "argon"}

All of these become one row: the prompt is the question with its options, a line each; gold is the letter B; the
verifier is `choice`, which knows the options. Where the right option stands in a column apart from the wrong ones, the
order is drawn by the question's text, so that the right one is not always A.

An index counts from 0, unless one of the first records has an index as large as its number of options. A row whose
answer is none of its options is rejected, `answer_no_option`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.config.sources import Columns, ColumnSpec
from truegold.pipeline.sources.columns import Derived, Layout, Samples, Values, find_column, text_of
from truegold.pipeline.sources.jsonl import parse_structure
from truegold.pipeline.sources.records import Unusable
from truegold.pipeline.text.options import find_options
from truegold.verifiers.answers.choice import MAX_OPTIONS

LISTS = ("choices", "options", "options_text", "answer_choices", "answer_options", "endings", "选项")
"""Columns with all options."""
_NUMBERED = re.compile(
    r"(?:(?:option|choice|ending|answer|op|sol)[ _-]?)?(?P<letter>[a-h])"
    r"|(?:option|choice|ending|sol)[ _-]?(?P<digit>\d)",
    re.IGNORECASE,
)
"""A column with one option: A, option_b, opc, ending0, choice 1."""
_WRONG = re.compile(
    r"(?:incorrect|wrong|distractor|false)s?[ _-]?(?:answers?|options?|choices?)?[ _-]?\d*", re.IGNORECASE
)
"""A column with one wrong option or a list of them."""
ANSWERS = (
    *("answerKey", "answer_key", "correct_option", "correct_choice", "answer_idx", "answer_index", "correct_index"),
    *("answer_letter", "correct_letter", "cop", "gold", "answer", "label", "target", "correct", "correct_answer"),
    *("ground_truth", "gt", "答案", "标准答案"),
)
"""Columns that say which option is right, the surest first."""
_LETTER = re.compile(r"[(\[]?\s*([A-Za-z])\s*[)\].:]?")
_LABELLED = re.compile(r"\(?([A-Z])\s*[).:]\s*\S")
_INDEX = re.compile(r"\d{1,2}")


@dataclass(frozen=True, slots=True)
class ChoiceColumns:
    """The columns that hold the options of a source."""

    options: tuple[str, ...]
    """One column with all, or one for each in its order; where there are `wrong` ones, that with the right one."""
    wrong: tuple[str, ...] = ()
    """The columns of wrong options."""
    answer: str | None = None
    """The column that says which is right."""


@dataclass(frozen=True, slots=True)
class _Indices:
    """How answers count the options."""

    first: int = 0
    """The index of the first option."""
    only: bool = False
    """Whether all answers are indices: an answer 1 is no option of the text "1" then."""


def choices(columns: Set[str], samples: Samples) -> Layout | None:
    """Fit questions with options in other columns; see the module."""
    chosen = _find(columns, samples)
    if chosen is None:
        return None
    taken = {*chosen.options, *chosen.wrong, chosen.answer or ""}
    prompt = find_column("prompt", samples, exclude=taken)
    if prompt is None:
        return None
    indices = _read_indices(chosen, samples)

    def derive(values: Values) -> Derived:
        texts, right = _read(chosen, values, indices, str(values.get(prompt)))
        arguments = {"options": texts}
        question = text_of(values.get(prompt))
        if question is None:
            return Derived(arguments, gold=right)
        shown = "" if _shows(question, texts) else "\n\n" + lettered(texts)
        return Derived(arguments, prompt=question + shown, gold=right)

    named = Columns(prompt=ColumnSpec(column=prompt))
    solution = find_column("solution", samples, exclude={prompt, *taken})
    if solution is not None:
        named = named.model_copy(update={"solution": ColumnSpec(column=solution)})
    return Layout(named, "choice", "choice", derive, frozenset(taken - {""} | {prompt}))


def lettered(texts: Sequence[str]) -> str:
    """Return options as lines behind their letters."""
    return "\n".join(f"{chr(ord('A') + position)}. {text}" for position, text in enumerate(texts))


def _shows(question: str, texts: Sequence[str]) -> bool:
    """Say whether the question lists its options itself."""
    return len(_listed_in(question)) == len(texts)


def _listed_in(text: str) -> list[str]:
    """Return the options that a text lists, each behind its letter; two need a line each."""
    if (shown := find_options(text)) is not None:
        return list(shown.texts)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    labelled = [position for position, line in enumerate(lines) if _unlabelled(line, 0) != line]
    options = lines[labelled[-1] :] if labelled else []
    bare = [_unlabelled(option, position) for position, option in enumerate(options)]
    return [] if any(text == line for text, line in zip(bare, options, strict=True)) else bare


def _find(columns: Set[str], samples: Samples) -> ChoiceColumns | None:
    """Return the columns of options that the first records have; None where they are no questions of choice."""
    answer = next((name for name in ANSWERS if any(text_of(values.get(name)) for values in samples)), None)
    for name in LISTS:
        if any(len(read_list(values.get(name))) > 1 for values in samples):
            return ChoiceColumns((name,), answer=None if answer == name else answer)
    if wrong := tuple(sorted(name for name in columns if _WRONG.fullmatch(name))):
        right = next((name for name in columns if _plain(name) in ("correctanswer", "answer", "bestanswer")), None)
        return None if right is None else ChoiceColumns((right,), wrong)
    numbered = {name: match for name in columns if (match := _NUMBERED.fullmatch(name))}
    for group in ("letter", "digit"):
        keyed = sorted((match[group].lower(), name) for name, match in numbered.items() if match[group])
        keys, names = [key for key, _ in keyed], [name for _, name in keyed]
        if len(names) > 1 and keys[0] in "a01" and _follow_each_other(keys) and answer not in (None, *names):
            return ChoiceColumns(tuple(names), answer=answer)
    return None


def _follow_each_other(keys: Sequence[str]) -> bool:
    return [ord(key) - ord(keys[0]) for key in keys] == list(range(len(keys)))


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def read_list(value: Any) -> list[str]:
    """Return the options that a value lists: texts, an object with labels or `text`, or one text with all of them."""
    structure = parse_structure(value)
    if isinstance(structure, Mapping):
        listed = structure.get("text", structure.get("texts"))
        structure = listed if isinstance(listed, list) else list(structure.values())
    if isinstance(structure, str):
        return _listed_in(structure)
    if not isinstance(structure, list | tuple):
        return []
    texts = [text_of(_option_text(option)) for option in structure]
    return [_unlabelled(text, position) for position, text in enumerate(texts) if text is not None]


def _option_text(option: Any) -> Any:
    if isinstance(option, Mapping):
        return next((option[key] for key in ("text", "content", "value", "option") if key in option), None)
    return option


def _unlabelled(text: str, position: int) -> str:
    """Return an option without the letter of its place before it."""
    letter = chr(ord("A") + position)
    match = re.match(rf"\(?{letter}\s*[).:]\s*(?=\S)", text)
    return text[match.end() :] if match else text


def _read(columns: ChoiceColumns, values: Values, indices: _Indices, question: str) -> tuple[list[str], str]:
    """Return a record's options and the letter of the right one."""
    if columns.wrong:
        return _shuffled(columns, values, question)
    if len(columns.options) == 1:
        texts = read_list(values.get(columns.options[0]))
    else:
        texts = [text for name in columns.options if (text := text_of(values.get(name))) is not None]
    if not 1 < len(texts) <= MAX_OPTIONS:
        raise Unusable("answer_no_option", f"{len(texts)} options in {', '.join(columns.options)}")
    answer = values.get(columns.answer) if columns.answer is not None else None
    positions = _positions(answer, texts, indices, _labels(values.get(columns.options[0])))
    if not positions:
        shown = text_of(answer)
        raise Unusable(
            "answer_no_option", f"column {columns.answer!r} says {shown!r:.60}, which is none of {len(texts)} options"
        )
    return texts, "".join(chr(ord("A") + position) for position in positions)


def _shuffled(columns: ChoiceColumns, values: Values, question: str) -> tuple[list[str], str]:
    right = text_of(values.get(columns.options[0]))
    wrong = [text for name in columns.wrong for text in _texts(values.get(name))]
    if right is None or not wrong:
        raise Unusable("answer_no_option", "the right option or the wrong ones are missing")
    texts = sorted(
        dict.fromkeys((right, *wrong)), key=lambda text: hashlib.sha256(f"{question}\0{text}".encode()).digest()
    )
    return texts, chr(ord("A") + texts.index(right))


def _texts(value: Any) -> Iterable[str]:
    structure = parse_structure(value)
    for entry in structure if isinstance(structure, list) else [structure]:
        if (text := text_of(entry)) is not None:
            yield text.strip()


def _labels(value: Any) -> list[str]:
    """Return the labels that a column gives its options, such as 1 to 4; none where it gives none."""
    structure = parse_structure(value)
    if isinstance(structure, Mapping):
        labels = structure.get("label", structure.get("labels"))
        if isinstance(labels, list):
            return [str(label) for label in labels]
        return [str(key) for key in structure if key not in ("text", "texts")]
    if isinstance(structure, list) and structure and all(isinstance(option, Mapping) for option in structure):
        return [str(next((option[key] for key in ("label", "key", "id") if key in option), "")) for option in structure]
    return []


def _positions(answer: Any, texts: Sequence[str], indices: _Indices, labels: Sequence[str]) -> list[int]:
    """Return the positions of the right options, from 0; none where the answer names none."""
    entries = answer if isinstance(answer, list | tuple) else [answer]
    positions = [position for entry in entries if (position := _position(entry, texts, indices, labels)) is not None]
    return sorted(set(positions)) if len(positions) == len(entries) else []


def _position(entry: Any, texts: Sequence[str], indices: _Indices, labels: Sequence[str]) -> int | None:
    if not (text := (text_of(entry) or "").strip()):
        return None
    index = int(text) - indices.first if _INDEX.fullmatch(text) else None
    letter, labelled = _LETTER.fullmatch(text), _LABELLED.match(text)
    same = [position for position, option in enumerate(texts) if option.strip().casefold() == text.casefold()]
    named = (
        labels.index(text) if text in labels else None,
        index if indices.only else None,
        ord(letter[1].upper()) - ord("A") if letter else None,
        same[0] if len(same) == 1 else None,
        index,
        ord(labelled[1]) - ord("A") if labelled else None,
    )
    return next((position for position in named if position is not None and 0 <= position < len(texts)), None)


def _read_indices(columns: ChoiceColumns, samples: Samples) -> _Indices:
    """Return how the answers of the sample records are indices of options."""
    if columns.answer is None:
        return _Indices()
    answers: list[tuple[str, Sequence[str]]] = []
    for values in samples:
        if (text := text_of(values.get(columns.answer))) is not None:
            listed = [text_of(values.get(name)) or "" for name in columns.options]
            answers.append((text, read_list(values.get(columns.options[0])) if len(columns.options) == 1 else listed))
    if not answers or not all(_INDEX.fullmatch(text) for text, _ in answers):
        return _Indices()
    indices = [(int(text), len(options)) for text, options in answers]
    from_one = all(index > 0 for index, _ in indices) and any(index == count for index, count in indices)
    return _Indices(int(from_one), only=not all(text in options for text, options in answers))
