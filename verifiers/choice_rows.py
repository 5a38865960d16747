"""Reads multiple-choice questions with options in their own columns.

    {"question": "Which is a noble gas?", "choices": ["iron", "argon"], "answer": 1}
    {"question": "...", "choices": {"text": ["iron", "argon"], "label": ["A", "B"]}, "answerKey": "B"}
    {"question": "...", "A": "iron", "B": "argon", "answer": "B"}
    {"question": "...", "options": "A. iron\\nB. argon", "answer": "(B)"}
    {"question": "...", "opa": "iron", "opb": "argon", "cop": 1}
    {"question": "...", "distractor1": "iron", "correct_answer": "argon"}
    {"question": "...", "choices": "['iron', 'argon']", "answer": "argon"}      a list as Python writes it
    {"question": "...", "options": "iron|argon", "answer": "B"}                 or semicolons, or line ends
    {"question": "...", "options": "a ) iron , b ) argon", "correct": "b"}      MathQA
    {"goal": "...", "sol1": "iron", "sol2": "argon", "label": 1}                PIQA

Each of these becomes a row for the verifier `choice`. The prompt is the question with its options, one on each line;
gold is the letter B. Distractors and the right option have no order. They are ordered by a hash of the question's
text, so gold may be another letter.

Indices count from 0 if one of the first records has the index 0. They count from 1 if a record has an index that equals
its number of options. If neither holds, the source is refused with an error. A row whose answer is not an option is
rejected as `answer_no_option`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.answers.choice import MAX_OPTIONS
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import NAMES, Samples, Values, spelled, text_of
from truegold.verifiers.extract.listed_options import find_options
from truegold.verifiers.gold import quoted_list
from truegold.verifiers.sandbox.errors import InputError
from truegold.verifiers.strict_json import parse_literal, parse_structure

LISTS = ("choices", "options", "options_text", "answer_choices", "answer_options", "endings", "选项")
"""Columns with all options."""
_NUMBERED = re.compile(
    r"(?P<prefix>option|choice|ending|opt?|ans|answer)?[ _-]?(?P<key>[a-h])"
    r"|(?P<numbered>option|choice|ending|opt|sol|solution|ans|answer)[ _-]?(?P<digit>\d)",
    re.IGNORECASE,
)
"""The name of a column with one option: A, option_b, opc, answerA, ending0, choice 1, sol1."""
_DOUBTFUL = ("ans", "answer", "sol", "solution")
"""Beginnings of columns that hold options only if the answer column has letters or indices."""
_WRONG = re.compile(r"distractor[ _-]?\d*|incorrect[ _-]?answers?[ _-]?\d*", re.IGNORECASE)
"""A column with one wrong option or a list of them."""
RIGHT = ("correct_answer", "best_answer", "answer")
"""Columns with the right option, next to columns of wrong options. `answer` is read only next to distractors."""
ANSWERS = (
    *("answerKey", "answer_key", "correct_option", "correct_choice", "answer_idx", "answer_index", "correct_index"),
    *("answer_letter", "correct_letter", "cop", "gold", "answer", "label", "target", "correct", "correct_answer"),
    *("ground_truth", "gt", "答案", "标准答案"),
)
"""Columns that say which option is right, the surest first."""
MIN_LETTERS = 3
"""Minimum number of one-letter columns that are read as options. `a` and `b` alone are often numbers of the problem."""
LETTER = re.compile(r"[(\[]?\s*([A-Za-z])\s*[)\].:]?")
"""The letter of an option as a whole answer: `B`, `(b)`, `B.`."""
_LABELLED = re.compile(r"\(?([A-Z])\s*(?:[):]\s*|\.\s+|\.(?![A-Z]\.))(?=\S)")
"""A capital letter at the start of an option: `B. two`, `(B) two`."""
_OWN_LABEL = re.compile(r"\(?(?:([A-Za-z])\s*(?:\)\s*|[.:]\s+|\.(?![A-Z]\.))|(\d)\s*[).:]\s+)(?=\S)")
"""A letter or a digit at the start of an option: `B. two`, `(a) one`, `2) three`."""
_INDEX = re.compile(r"\d{1,2}")
"""The index of an option as a whole answer."""
_LISTED = re.compile(r"(?:^|[\s,;])\(?([a-hA-H])\s*[).:]\s+(?=\S)")
"""The label of an option within a text: `a ) 38 , b ) 27.6`."""
_SEPARATORS = tuple(map(re.compile, (r"\n", r";\s", r"\s\|\s", r";", r"\|")))
"""Separators of options in a text without labels, the surest first. Bars come last, since they may be part of a
formula."""

Slots = list[str | None]
"""The options of a record in order; None stands for an empty option."""


@dataclass(frozen=True, slots=True)
class ChoiceColumns:
    """The columns that hold the options of a source."""

    options: tuple[str, ...]
    """One column with all options, or one column for each option, in order. If `wrong` is not empty, this is the column
    of the right option."""
    wrong: tuple[str, ...] = ()
    """The columns of wrong options."""
    answer: str | None = None
    """The column that names the right option."""

    def slots(self, values: Values) -> Slots:
        """Return the options of a record."""
        if len(self.options) == 1:
            return read_slots(values.get(self.options[0]))
        return [text_of(values.get(name)) for name in self.options]


def option_columns(names: Iterable[str]) -> list[str]:
    """Return those of `names` that may be columns of options."""
    columns = list(names)
    listed = spelled((*LISTS, "answers"), columns)
    return [name for name in columns if name in listed or _NUMBERED.fullmatch(name) or _WRONG.fullmatch(name)]


def choice_of(values: Values, question: str | None) -> tuple[list[str], str] | None:
    """Return the options of a single record and the letters of the right options, or None if it has no options.

    Also returns None if the order of the options is unknown: the right option has a separate column, and the question
    does not list the options. Raises Unusable if the answer is not an option, or an index that may count from 0 or 1.
    """
    if (chosen := find_choices(values.keys(), [values])) is None:
        return None
    try:
        first = first_index(chosen, [values])
    except InputError as error:
        raise Unusable("answer_no_option", f"{error.message} Write letters (A, B, ...) in their place.") from None
    texts, right = read_choice(chosen, values, first, question or "")
    listed = [text.strip() for text in _listed_in(question or "")]
    if chosen.wrong:
        is_listed = sorted(listed) == sorted(texts)
        return (listed, chr(ord("A") + listed.index(texts[ord(right) - ord("A")]))) if is_listed else None
    answer = (text_of(values.get(chosen.answer)) or "").strip() if chosen.answer is not None else ""
    labels = "".join(_labels(values.get(chosen.options[0])))
    if not "ABCDEFGHIJKLMNOPQRSTUVWXYZ".startswith(labels.upper()):
        raise Unusable("answer_no_option", f"the options are labelled {labels:.40}; name them A, B, ... in their place")
    if first is None and _INDEX.fullmatch(answer) and not labels:
        others = {int(answer), int(answer) - 1} & set(range(len(texts)))
        if others - {ord(right[0]) - ord("A")}:
            raise Unusable("answer_no_option", f"{answer} in {chosen.answer!r} is an option, or the index of one")
    with_options(question, texts)
    return texts, right


def lettered(texts: Sequence[str]) -> str:
    """Return the options as lines: `A. iron`, `B. argon`."""
    return "\n".join(f"{chr(ord('A') + position)}. {text}" for position, text in enumerate(texts))


def with_options(question: str | None, texts: Sequence[str]) -> str | None:
    """Return the question with the options below it, or the question alone if it lists them already.

    Raises Unusable if the question lists the same options in another order.
    """
    if question is None:
        return None
    listed = [text.strip() for text in _listed_in(question)]
    stated = [text.strip() for text in texts]
    if listed == stated:
        return question
    if sorted(listed) == sorted(stated):
        raise Unusable("answer_no_option", "the question lists the options in another order than the options column")
    return f"{question}\n\n{lettered(texts)}"


def _listed_in(text: str) -> list[str]:
    """Return the options that a text lists after letters. If there are only two, each needs its own line."""
    if (shown := find_options(text)) is not None:
        return list(shown.texts)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    labelled = [position for position, line in enumerate(lines) if _unlabelled(line, 0) != line]
    options = lines[labelled[-1] :] if labelled else []
    bare = [_unlabelled(option, position) for position, option in enumerate(options)]
    return [] if any(text == line for text, line in zip(bare, options, strict=True)) else bare


def _labelled_in(text: str) -> list[str]:
    """Return the options that one line lists after letters: `a ) 38 , b ) 27.6` -> 38, 27.6."""
    run: list[re.Match[str]] = []
    for match in _LISTED.finditer(text):
        if ord(match[1].lower()) - ord("a") == len(run):
            run.append(match)
    ends = [*(match.start() for match in run[1:]), len(text)]
    options = [text[match.end() : end].strip().strip(",;").strip() for match, end in zip(run, ends, strict=False)]
    return options if len(options) > 1 and run[0].start() == 0 and all(options) else []


def _separated_in(text: str) -> list[str]:
    """Return the options of a text that are separated by line ends, semicolons or bars.

    Bars separate options only if no option is empty or has an unclosed bracket: `|x| ; |y|` has two options, `|x| -
    |y|` has none.
    """
    text = text.strip().rstrip(";")
    separator = next((sign for sign in _SEPARATORS if sign.search(text) is not None), None)
    options = [] if separator is None else [part.strip() for part in separator.split(text)]
    if separator is not None and "|" in separator.pattern:
        options = options if all(part and _is_closed(part) for part in options) else []
    options = [part for part in options if part]
    return options if 1 < len(options) <= MAX_OPTIONS else []


def _is_closed(text: str) -> bool:
    """Say whether a text opens and closes equally many brackets, of any kind: the interval `[0, 1)` is closed."""
    return sum(map(text.count, "([{")) == sum(map(text.count, ")]}"))


def find_choices(columns: Set[str], samples: Samples) -> ChoiceColumns | None:
    """Return the columns of options in the first records, or None if these are not multiple-choice questions."""
    filled = {name for name in columns if any(text_of(values.get(name)) is not None for values in samples)}
    known = spelled(LISTS, filled)
    lists = [name for name in known if any(len(read_slots(values.get(name))) > 1 for values in samples)]
    answer = next((name for name in spelled(ANSWERS, filled) if name not in lists), None)
    if not lists and all(_is_several(values.get("answers")) for values in samples):
        fewest = min((len(values["answers"]) for values in samples), default=0)
        lists = ["answers"] if _points_at_options(answer, fewest, samples) else []
    if not lists and known and _are_letters(answer, samples):
        lists = known  # Each row is then rejected with a reason, instead of being read as another kind of row.
    if lists:
        return ChoiceColumns((lists[0],), answer=answer)
    if wrong := tuple(sorted(name for name in filled if _WRONG.fullmatch(name))):
        are_distractors = all(name.lower().startswith("distractor") for name in wrong)
        right = next((name for name in spelled(RIGHT if are_distractors else RIGHT[:-1], filled)), None)
        several = sum(sum(1 for name in wrong for _ in _texts(values.get(name))) > 1 for values in samples)
        return ChoiceColumns((right,), wrong) if right is not None and 2 * several > len(samples) else None
    return _single_columns(columns, answer, samples)


def _single_columns(columns: Set[str], answer: str | None, samples: Samples) -> ChoiceColumns | None:
    """Return the columns if each option has its own: option_a to option_d, or A to D if all answers are letters."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in columns:
        if (match := _NUMBERED.fullmatch(name)) is not None:
            prefix = (match["prefix"] or match["numbered"] or "").lower()
            groups.setdefault(prefix, []).append(((match["key"] or match["digit"]).lower(), name))
    for prefix, keyed in groups.items():
        keys, names = [key for key, _ in sorted(keyed)], tuple(name for _, name in sorted(keyed))
        if len(names) < 2 or keys[0] not in "a01" or not _follow_each_other(keys) or answer in (None, *names):
            continue
        if prefix in _DOUBTFUL and not _points_at_options(answer, len(names), samples):
            continue
        if prefix in _DOUBTFUL[:2] and len(names) < MIN_LETTERS:
            continue  # Two columns of answers usually hold the answers of two models.
        if prefix or (len(names) >= MIN_LETTERS and _are_letters(answer, samples)):
            return ChoiceColumns(names, answer=answer)
    return None


def _are_letters(answer: str | None, samples: Samples) -> bool:
    """Say whether every answer is one letter."""
    texts = [text for values in samples if (text := text_of(values.get(answer or ""))) is not None]
    return bool(texts) and all(LETTER.fullmatch(text.strip()) for text in texts)


def _points_at_options(answer: str | None, count: int, samples: Samples) -> bool:
    """Say whether the answer column holds letters, or indices up to `count`, and is not named like a column of gold."""
    if answer is None or answer in NAMES["gold"][: NAMES["gold"].index("target")]:
        return False
    texts = [text.strip() for values in samples if (text := text_of(values.get(answer))) is not None]
    return bool(texts) and all(
        LETTER.fullmatch(text) or (_INDEX.fullmatch(text) and int(text) <= count) for text in texts
    )


def _is_several(value: Any) -> bool:
    """Say whether a value is a list of several plain values."""
    return isinstance(value, list) and len(value) > 1 and not any(isinstance(entry, Mapping | list) for entry in value)


def _follow_each_other(keys: Sequence[str]) -> bool:
    """Say whether characters are consecutive: A, B, C."""
    return [ord(key) - ord(keys[0]) for key in keys] == list(range(len(keys)))


def read_slots(value: Any) -> Slots:
    """Return the options in a value: a list, one text, or an object with the options in `text` or as its values.

    Labels before the options are removed, also if they are out of order.
    """
    texts = _texts_in(value)
    if _own_labels(texts):
        return [_OWN_LABEL.sub("", text or "", count=1) for text in texts]
    bare = [None if text is None else _unlabelled(text, position) for position, text in enumerate(texts)]
    return bare if all(old is None or old != new for old, new in zip(texts, bare, strict=True)) else texts


def _own_labels(texts: Slots) -> list[str]:
    """Return the labels of the options if they are A, B, C or 1, 2, 3, in any order; else an empty list."""
    matches = [_OWN_LABEL.match(text or "") for text in texts]
    labels = [match[1] or match[2] for match in matches if match is not None]
    return labels if 1 < len(labels) == len(texts) and _follow_each_other(sorted(labels)) else []


def _texts_in(value: Any) -> Slots:
    """Return the options in a value, with their labels."""
    structure = quoted_list(value) or parse_literal(value)
    if isinstance(structure, Mapping):
        listed = structure.get("text", structure.get("texts"))
        structure = listed if isinstance(listed, list) else list(structure.values())
    if isinstance(structure, str):
        return list(_listed_in(structure) or _labelled_in(structure) or _separated_in(structure))
    if not isinstance(structure, list | tuple):
        return []
    return [text_of(_option_text(option)) for option in structure]


def _option_text(option: Any) -> Any:
    if isinstance(option, Mapping):
        return next((option[key] for key in ("text", "content", "value", "option") if key in option), None)
    return option


def _unlabelled(text: str, position: int) -> str:
    """Return an option without its label, if the label fits its position: `B. two` at position 1 -> `two`."""
    match = _LABELLED.match(text)
    return text[match.end() :] if match and match[1] == chr(ord("A") + position) else text


def read_choice(columns: ChoiceColumns, values: Values, first: int | None, question: str) -> tuple[list[str], str]:
    """Return the options of a record and the letters of the right options. Raises Unusable if there are none."""
    if columns.wrong:
        return _shuffled(columns, values, question)
    slots = columns.slots(values)
    filled = [position for position, text in enumerate(slots) if text is not None]
    if not 1 < len(filled) <= MAX_OPTIONS:
        raise Unusable("answer_no_option", f"{len(filled)} options in {', '.join(columns.options)}")
    answer = values.get(columns.answer) if columns.answer is not None else None
    positions = _positions(answer, slots, first, _labels(values.get(columns.options[0])))
    if not positions or not set(positions) <= set(filled):
        shown = text_of(answer)
        raise Unusable(
            "answer_no_option",
            f"column {columns.answer!r} says {shown!r:.60}, which matches none of the {len(filled)} options",
        )
    letters = "".join(chr(ord("A") + filled.index(position)) for position in positions)
    return [text for text in slots if text is not None], letters


def _shuffled(columns: ChoiceColumns, values: Values, question: str) -> tuple[list[str], str]:
    right = text_of(values.get(columns.options[0]))
    wrong = [text for name in columns.wrong for text in _texts(values.get(name))]
    if right is None or not wrong:
        raise Unusable("answer_no_option", "the right option or the wrong ones are missing")
    texts = sorted(
        dict.fromkeys((right.strip(), *wrong)), key=lambda text: hashlib.sha256(f"{question}\0{text}".encode()).digest()
    )
    return texts, chr(ord("A") + texts.index(right.strip()))


def _texts(value: Any) -> Iterable[str]:
    structure = parse_structure(value)
    for entry in structure if isinstance(structure, list) else [structure]:
        if (text := text_of(entry)) is not None:
            yield text.strip()


def _labels(value: Any) -> list[str]:
    """Return the labels of the options in a column, such as 1 to 4.

    The list is empty if there are no labels, or if the texts of the options begin with A, B, C in order.
    """
    structure = parse_literal(value)
    if isinstance(structure, Mapping):
        labels = structure.get("label", structure.get("labels"))
        if isinstance(labels, list):
            return [str(label) for label in labels]
        return [str(key) for key in structure if key not in ("text", "texts")]
    if isinstance(structure, list) and structure and all(isinstance(option, Mapping) for option in structure):
        return [str(next((option[key] for key in ("label", "key", "id") if key in option), "")) for option in structure]
    labels = _own_labels(_texts_in(value))
    # A, B, C in order are left out: `_place_of` finds a letter without them, and an index is then allowed as answer.
    return labels if labels[:1] not in (["A"], ["a"]) or not _follow_each_other(labels) else []


def _positions(answer: Any, slots: Slots, first: int | None, labels: Sequence[str]) -> list[int]:
    """Return the positions of the right options, from 0; empty if a part of the answer is not an option."""
    entries = answer if isinstance(answer, list | tuple) else [answer]
    positions = [position for entry in entries if (position := _position(entry, slots, first, labels)) is not None]
    return sorted(set(positions)) if len(positions) == len(entries) else []


def _position(entry: Any, slots: Slots, first: int | None, labels: Sequence[str]) -> int | None:
    if not (text := (text_of(entry) or "").strip()):
        return None
    same = [position for position, option in enumerate(slots) if option is not None and _alike(option, text)]
    letter, labelled = LETTER.fullmatch(text), _LABELLED.match(text)
    position: int | None = None
    if text in labels:
        position = labels.index(text)
    elif first is not None and _INDEX.fullmatch(text):
        position = int(text) - first
    elif letter is not None and (len(same) != 1 or ord(letter[1].upper()) - ord("A") < len(slots)):
        position = _place_of(letter[1], labels)
        if position is not None and same and position not in same and not labels:
            raise Unusable(
                "ambiguous_answer",
                f"{text!r} is the letter of option {slots[position]!r:.60}, and the text of another one; write "
                "its text or its index",
            )
    elif len(same) == 1:
        position = same[0]
    elif labelled is not None:
        by_letter = _place_of(labelled[1], labels)
        position = by_letter if _position(text[labelled.end() :], slots, None, ()) == by_letter else None
    return position if position is not None and 0 <= position < len(slots) else None


def _place_of(letter: str, labels: Sequence[str]) -> int | None:
    """Return the position of a letter: among the labels if these are letters, else in the alphabet."""
    folded = [label.casefold() for label in labels]
    if folded and all(len(label) == 1 and label.isalpha() for label in folded):
        return folded.index(letter.casefold()) if letter.casefold() in folded else None
    return ord(letter.upper()) - ord("A")


def _alike(option: str, text: str) -> bool:
    return option.strip().strip("$").casefold() == text.strip("$").casefold()


def first_index(columns: ChoiceColumns, samples: Samples) -> int | None:
    """Return the index of the first option, 0 or 1, or None if answers are not indices."""
    if columns.answer is None or columns.wrong:
        return None
    known: list[tuple[str, Slots]] = []
    for values in samples:
        if (text := text_of(values.get(columns.answer))) is not None and not _labels(values.get(columns.options[0])):
            known.append((text.strip(), columns.slots(values)))
    if not known or not all(_INDEX.fullmatch(text) for text, _ in known):
        return None
    texts = sum(any(option is not None and _alike(option, text) for option in slots) for text, slots in known)
    if texts == len(known) or (2 * texts > len(known) and any(int(text) > len(slots) for text, slots in known)):
        return None
    counts = [(int(text), len(slots)) for text, slots in known if slots]
    if any(index == 0 for index, _ in counts):
        return 0
    if any(index == count for index, count in counts):
        return 1
    raise InputError(
        f"The answers in {columns.answer!r} may count the options from 0 or from 1.",
        "Write letters (A, B, ...) in their place, or name columns: {prompt: ..., gold: ...}.",
    )
