"""Turns the records of a source into canonical rows, or rejects them with a reason.

    {"id": 0, "question": "Natalia sold ...", "answer": "... #### 72", "level": "easy"}       (layout gsm8k, line 1)

becomes `prompt="Natalia sold ..." gold="72" solution="... #### 72" verifier="math" verifier_args="{}" source_row=1
meta={"level": "easy", "source_id": "0"}`.

The verifier comes from the configuration, else from the row's column, else from the layout. `verifier_args` of all
three are merged in the same order of precedence. A column of which a part was not used is stored in `meta`.

A row with the verifier `code` has its tests in its arguments, or else in a column with a usual name:

    {"prompt": "Add.", "verifier": "code", "tests": ["assert add(1, 2) == 3"]}
    {"prompt": "Add.", "verifier": "code", "verifier_args": {"entry_point": "add"}, "test": "def check(candidate): ..."}

Both become `verifier_args.tests`. A row with the verifier `code` that has no tests is rejected as `missing_tests`.

`RowWarnings` counts rows that were kept although a part of them was left out or not understood:

    12 row(s) were cut to their last user message; what they lost: 10 system_message, 2 pictures.
    3 row(s) have an unknown split, the first 'fold_1' (number 7); it stays in their meta.

Four columns of any row may set its verifier, its arguments, further accepted golds, and its split:

    {"prompt": "pi to 2 decimals", "gold": "3.14", "verifier": "numeric", "verifier_args": {"rel_tol": 0.01}}
    {"prompt": "What is 1/2?", "gold": "1/2", "other_golds": ["0.5", "50 %"], "split": "test"}

The first is judged by `numeric` with that tolerance. The second has three accepted golds and is held out. A row with an
unknown verifier, or with unknown options of its verifier, is a reject, whose detail suggests the right name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any

import orjson

from truegold.pipeline.config.sources import Columns, ColumnSpec, SourceConfig
from truegold.pipeline.sources.columns import (
    Column,
    Derived,
    Layout,
    RowParts,
    compile_column,
    distinct,
    extracted_golds,
    listed_golds,
)
from truegold.pipeline.sources.conversations import (
    AskedConversation,
    context_text,
    is_unread_conversation,
    messages_of,
    read_conversation,
)
from truegold.pipeline.sources.presets_code import solution_of
from truegold.pipeline.sources.provenance import with_notes
from truegold.pipeline.sources.records import Record
from truegold.pipeline.tables.conversation import turns_text
from truegold.pipeline.tables.rows import Row, dump_json, row_id
from truegold.verifiers import ConfigError, judges_solutions, resolve
from truegold.verifiers.answers.choice_arguments import LETTER_GOLD, choice_arguments
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import normal_form
from truegold.verifiers.code.suite.row_tests import Unusable, function_name, read_tests_value
from truegold.verifiers.columns import MISSING, NAMES, Samples, Values, json_safe, last_boxed, text_of
from truegold.verifiers.gold import OF_VALUES, OTHER_GOLDS, needs_all_golds
from truegold.verifiers.registry import BUILT_IN, available, find_option_mistakes
from truegold.verifiers.row_kinds import foreign_kind
from truegold.verifiers.strict_json import parse_structure
from truegold.verifiers.user_code import did_you_mean, split_spelling

ROW_COLUMNS = ("verifier", "verifier_args", OTHER_GOLDS, "split")
"""The columns that every file may have under these names."""
SPLIT_WORDS = {
    **dict.fromkeys(("train", "training", "训练", "训练集"), "train"),
    **dict.fromkeys(("test", "testing", "validation", "valid", "val", "dev", "development"), "heldout"),
    **dict.fromkeys(("eval", "evaluation", "heldout", "holdout", "测试", "测试集", "验证", "验证集"), "heldout"),
}
"""Words of a column `split` -> the split. Words are in lower case, without spaces, hyphens and underscores. Of
`test_sft`, the first word is read."""
DOMAINS = {"code": "code", "choice": "choice", "math": "math"}
"""Verifier -> the domain of its rows."""
MEASURES = ("format", "length")
"""Verifiers that measure the form of a response, and need no gold."""
CODE_SETTINGS = ("reward", "stop", "limits")
"""The options of the verifier `code` that are checked here. The other arguments are tests, which `vet_tests` checks."""
CACHED_BYTES = 1000
"""The maximum number of bytes of arguments whose check is cached. Longer arguments are rarely equal in two rows."""


def with_row_columns(columns: Columns, config: SourceConfig, used: frozenset[str]) -> Columns:
    """Return the columns of a layout with ROW_COLUMNS added, unless they have another role or column in the layout.

    `used` has the columns that the layout reads. With a configured verifier, the column `verifier` is not added.
    """
    taken = {spec.column.split(".")[0] for _, spec in columns if spec is not None} | used
    free = [name for name in ROW_COLUMNS if getattr(columns, name) is None and name not in taken]
    if config.verifier is not None and "verifier" in free:
        free.remove("verifier")
    return columns.model_copy(update={name: ColumnSpec(column=name) for name in free})


def read_verifier(value: Any, column: str, trusted: bool) -> str | None:
    """Return the verifier that a row names, or None. Raises Unusable if it does not exist.

    `trusted`: whether rows may name a verifier by import string, which loads code. The configuration must allow it.
    """
    if _is_empty(value):
        return None
    if not isinstance(value, str):
        raise Unusable("unknown_verifier", f"column {column!r} holds {type(value).__name__} {value!r:.60}, not a name")
    name = value.strip()
    if (mistake := _mistake_in(name, trusted)) is not None:
        raise Unusable("unknown_verifier", mistake)
    return name


def needs_gold(verifier: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a row of this verifier and these arguments cannot be judged without gold."""
    if verifier in MEASURES or (verifier == "regex" and arguments.get("pattern") is not None):
        return False
    return not judges_solutions(resolve(verifier))


def judged_without_gold(config: SourceConfig, samples: Samples) -> list[bool]:
    """Return for each sample record whether its verifier judges without gold; an empty list without any verifier.

    A configured verifier is the verifier of every record. A user's verifier may judge by other columns than gold.
    """
    trusted = config.verifier is not None or config.columns.verifier is not None
    spec, arguments_spec = config.columns.verifier, config.columns.verifier_args
    column = Column(spec.column if spec is not None else "verifier")
    arguments_column = Column(arguments_spec.column if arguments_spec is not None else "verifier_args")
    if config.verifier is None and all(_is_empty(column(values)) for values in samples):
        return []

    def judges_without(values: Mapping[str, Any]) -> bool:
        try:
            verifier = config.verifier or read_verifier(column(values), column.name, trusted)
            arguments = {**read_arguments(arguments_column(values), arguments_column.name), **config.verifier_args}
        except Unusable:
            return False
        if verifier is None:
            return False
        return (trusted and verifier not in BUILT_IN) or not needs_gold(verifier, arguments)

    return [judges_without(values) for values in samples]


def read_arguments(value: Any, column: str) -> dict[str, Any]:
    """Return the arguments of a row's verifier in a value, which is an object or its JSON text."""
    structure = parse_structure(value)
    if _is_empty(structure) or structure == "null":
        return {}
    if not isinstance(structure, Mapping):
        raise Unusable("invalid_verifier_args", f"column {column!r} holds no JSON object")
    # In a table of structs, a key that only other rows have is null in this row.
    arguments = {name: option for name, option in structure.items() if option is not None}
    if OTHER_GOLDS in arguments:
        arguments[OTHER_GOLDS] = listed_golds(arguments[OTHER_GOLDS], f"{column}.{OTHER_GOLDS}")
    return arguments


def with_golds(arguments: Mapping[str, Any], golds: list[str]) -> tuple[str | None, dict[str, Any]]:
    """Return the first gold as the row's gold, and the arguments with all other accepted golds."""
    accepted = distinct([*golds, *arguments.get(OTHER_GOLDS, ())])
    rest = {name: option for name, option in arguments.items() if name != OTHER_GOLDS}
    return next(iter(accepted), None), {**rest, OTHER_GOLDS: accepted[1:]} if accepted[1:] else rest


def check_arguments(verifier: str, arguments: Mapping[str, Any], complete: bool) -> None:
    """Raise Unusable for options of the verifier that are unknown, invalid or missing."""
    options = {name: option for name, option in arguments.items() if name != OTHER_GOLDS}
    if verifier == "code":
        options = {name: option for name, option in options.items() if name in CODE_SETTINGS}
    text = dump_json(json_safe(options))
    find = _option_mistakes if len(text) <= CACHED_BYTES else _option_mistakes.__wrapped__
    if mistakes := find(verifier, text, complete):
        raise Unusable("invalid_verifier_args", mistakes)


def read_split(value: Any) -> str | None:
    """Return the split of a row: `train` or `heldout`. An empty value gives `train`, an unknown word None."""
    if _is_empty(value):
        return "train"
    if not isinstance(value, str):
        return None
    words = _JOINTS.split(value.strip().lower())
    return SPLIT_WORDS.get("".join(words)) or SPLIT_WORDS.get(words[0])


_ONLY_PICTURES = re.compile(r"\s*(?:(?:!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>)\s*)+")
"""A text of Markdown or HTML that only shows pictures."""
_JOINTS = re.compile(r"[\s_.-]+")
"""Characters between the words of a split: `test_sft`."""


def _is_empty(value: Any) -> bool:
    return value is MISSING or value is None or (not isinstance(value, Mapping | list) and text_of(value) is None)


@cache
def _known() -> tuple[str, ...]:
    return tuple(available())


@lru_cache(maxsize=1024)
def _mistake_in(name: str, trusted: bool) -> str | None:
    """Return why a verifier cannot be used, or None. The result is cached, because rows repeat a few names."""
    if name in _known():
        return None
    if split_spelling(name) is None:
        near = did_you_mean(name[:CACHED_BYTES], _known())
        return f"there is no verifier {name!r:.60}; known are {', '.join(_known())}{f'. {near}' if near else ''}"
    if not trusted:
        return f"{name!r:.60} names code, which rows may do only if columns.verifier is set"
    try:
        resolve(name)
    except ConfigError as error:
        return str(error).rstrip(".")
    return None


@lru_cache(maxsize=1024)
def _option_mistakes(verifier: str, options: str, complete: bool) -> str:
    return " ".join(find_option_mistakes(verifier, orjson.loads(options), complete=complete)).rstrip(".")


HASHES = 2**32
"""The number of values of the hash by which rows are held out."""


@dataclass(frozen=True)
class RowBuilder:
    """Builds the rows of one source from its records."""

    config: SourceConfig
    layout: Layout
    source: str
    """The name of the source, for its rows."""
    warnings: RowWarnings
    """The counts of irregularities in accepted rows."""
    all_heldout: bool = False
    """Whether all rows are held out, rather than a share."""
    gold_required: bool = True
    """Whether a record without the gold that its verifier needs is rejected."""

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The layout's compiled columns by role."""
        return {field: compile_column(spec, field) for field, spec in self.layout.columns if spec is not None}

    def build(self, record: Record) -> Row:
        """Return the row of a record. Raises `Unusable` if it cannot become a row."""
        values = record.values
        is_foreign = self.config.verifier is None and self.layout.restore is None
        if is_foreign and (kind := foreign_kind(values)) is not None:
            raise Unusable("no_verifier", kind)
        if other := sorted(name for name in self.layout.unseen & values.keys() if text_of(values[name]) is not None):
            raise Unusable("mixed_source", f"column {other[0]!r}, which the first records do not have")
        derived = self.derive(values)
        conversation = self._conversation(values)
        prompt = self._prompt(values, derived, conversation.question)
        parts = self.read_parts(values, derived, keep_prompt=conversation.lost or conversation.is_answered)
        context = parts.context if self.layout.restore else context_text(conversation)
        prompt = parts.prompt or prompt
        verifier_args = dump_json(json_safe({**parts.verifier_args, **self.config.verifier_args}))
        asked = turns_text({"prompt": prompt, "context": context})
        identity = parts.id or row_id(asked, *self._as_prepared(values, parts.gold, verifier_args))
        heldout = self.all_heldout or parts.split == "heldout" or is_heldout(identity, self.config.heldout)
        row: Row = {
            "id": identity,
            "prompt": prompt,
            "gold": parts.gold,
            "domain": self.config.domain or parts.domain,
            "verifier": self.config.verifier or parts.verifier,
            "verifier_args": verifier_args,
            "solution": parts.solution,
            "source": self.source,
            "source_row": record.row_number,
            "split": "heldout" if heldout else "train",
            "meta": dump_json(json_safe(with_notes(parts.meta, self.config, record.file))),
            "context": context,
        }
        of_math = self.config.verifier is None and row["verifier"] == "math"
        is_letter = of_math and LETTER_GOLD.fullmatch(row["gold"] or "")
        if is_letter:
            row = self._with_all_letters(row, values)
        if is_letter and (choice := choice_arguments(row)) is not None:
            row["verifier"], row["verifier_args"] = "choice", choice
        if conversation.lost:
            self.warnings.add_lost(conversation.lost)
        if parts.split is None:
            self.warnings.add_split(self.columns["split"](values), record.row_number)
        return row

    def _as_prepared(self, values: Values, gold: str | None, verifier_args: str) -> tuple[str | None, str]:
        """Return gold and arguments with the last box as the only gold. The row's id is computed from them. Prepared
        copies of a data set often have only the last box. So a row with several boxes has the same id as its copies,
        and shares review decisions with them."""
        column = self.columns.get("gold")
        text = column.text(values) if column is not None and column.extract is last_boxed else None
        if text is None or text == gold:
            return gold, verifier_args
        arguments = orjson.loads(verifier_args)
        arguments.pop(OTHER_GOLDS, None)
        return text, dump_json(arguments)

    def _with_all_letters(self, row: Row, values: Values) -> Row:
        """Return the row with a list of letters joined into one gold, if the prompt's options have these letters."""
        arguments = orjson.loads(row["verifier_args"])
        golds = [row["gold"] or "", *arguments.pop(OTHER_GOLDS, ())]
        column = self.columns.get("gold")
        is_list = column is not None and isinstance(column(values), list | tuple)
        if len(golds) == 1 or not is_list or not all(LETTER_GOLD.fullmatch(gold) for gold in golds):
            return row
        letters = "".join(sorted({gold.strip("( )") for gold in golds}))
        joined: Row = {**row, "gold": letters, "verifier_args": dump_json(arguments)}
        return row if choice_arguments(joined) is None else joined

    def derive(self, values: Values) -> Derived:
        """Return the parts of the row that the layout derives from several columns."""
        return self.layout.derive(values) if self.layout.derive else Derived({})

    def source_id(self, record: Record) -> str | None:
        """Return the id of a record in its source."""
        return self._optional(record.values, "id")

    def read_parts(self, values: Values, derived: Derived, *, keep_prompt: object) -> RowParts:
        """Return the parts of a row besides the prompt.

        A prompt column that was not used completely stays in `meta`.
        """
        config, layout, columns = self.config, self.layout, self.columns
        if layout.restore is not None:
            carried = layout.restore(values)
            if config.verifier is None:
                read_verifier(carried.verifier, "truegold.verifier", trusted=True)
            return carried
        # The verifier of the configuration takes precedence over those of rows.
        named = None
        if config.verifier is None and (column := columns.get("verifier")) is not None:
            trusted = config.columns.verifier is not None or column(values) == layout.verifier
            named = read_verifier(column(values), column.name, trusted)
        verifier = config.verifier or named or derived.verifier or layout.verifier
        arguments = {**derived.verifier_args, **self._own_arguments(values, verifier, named)}
        beside = None
        if (column := columns.get("tests")) is not None:
            if _is_no_test(tests := column(values)):
                raise Unusable("missing_tests", _describe_absence(column.name, tests))
            arguments["tests"] = parse_structure(tests)
        elif verifier == "code" and layout.domain != "code":
            beside = tests_column(values, {**arguments, **config.verifier_args}, self._taken)
        if beside is not None:
            arguments["tests"] = read_tests_column(values, beside, arguments)
        gold = columns.get("gold") if derived.verifier != "code" else None
        is_program = gold is not None and self._is_program(gold, verifier)
        golds = [derived.gold] if derived.gold is not None and gold is None else []
        golds = golds or self._golds(values, None if is_program else gold, verifier, arguments)
        first_gold, arguments = with_golds(arguments, golds)
        solution = None
        if is_program and gold is not None and config.columns.solution is None:
            solution = solution_of(values, gold.name)
        solution = solution or self._optional(values, "solution")
        if solution is None and config.columns.solution is None:
            solution = derived.solution
        split = read_split(columns["split"](values)) if "split" in columns else "train"
        kept = {field for field, is_kept in (("prompt", keep_prompt), ("split", split is None)) if is_kept}
        return RowParts(
            id=None,
            gold=first_gold,
            domain=DOMAINS.get(named or derived.verifier or "", layout.domain),
            verifier=verifier,
            verifier_args=arguments,
            solution=solution,
            split=split,
            meta={name: value for name, value in self._meta(values, kept).items() if name != beside},
        )

    @cached_property
    def _taken(self) -> Set[str]:
        """The top-level columns that have a role."""
        return {column.root for column in self.columns.values()} | self.layout.uses

    def _optional(self, values: Mapping[str, Any], field: str) -> str | None:
        column = self.columns.get(field)
        return column.text(values) if column is not None else None

    def _prompt(self, values: Mapping[str, Any], derived: Derived, content: Any) -> str:
        """Return the prompt. `content` is the value of its column."""
        if derived.prompt is not None and self.config.columns.prompt is None:
            return derived.prompt
        column = self.columns["prompt"]
        if isinstance(content, list | Mapping) and content:
            raise Unusable("prompt_not_text", _describe_structure(column, content))
        if is_unread_conversation(content):
            raise Unusable("prompt_not_text", f"column {column.name!r} holds messages that are neither JSON nor Python")
        if (text := text_of(content)) is None:
            is_chat = bool(messages_of(column(values)))
            what = f"column {column.name!r} has no user message with text" if is_chat else None
            raise Unusable("missing_prompt", what or _describe_absence(column.name, column(values)))
        if _ONLY_PICTURES.fullmatch(text) is not None:
            raise Unusable("pictures", f"column {column.name!r} has only a link to a picture")
        if column.extract is not None and (text := column.extract(text)) is None:
            raise Unusable("prompt_not_found", f"the extract of column {column.name!r} finds nothing")
        return text

    def _conversation(self, values: Mapping[str, Any]) -> AskedConversation:
        """Return the question and its context. Raises Unusable for parts that a row cannot have, unless these are
        allowed."""
        column = self.columns["prompt"]
        struct = values.get(column.root) if column.name not in values else None
        beside = (values, struct) if isinstance(struct, Mapping) else (values,)
        carry = not self.config.last_turn_only
        conversation = read_conversation(column(values), beside, self._taken, carry=carry)
        if conversation.lost and carry:
            remedy = "--last-turn-only (data.last_turn_only: true) keeps the last user message alone"
            raise Unusable(next(iter(conversation.lost)), f"{', '.join(conversation.lost.values())}; {remedy}")
        return conversation

    def _golds(
        self, values: Mapping[str, Any], gold: Column | None, verifier: str, arguments: Mapping[str, Any]
    ) -> list[str]:
        """Return the accepted golds of a record, the row's gold first. The list is empty if no gold is needed."""
        arguments = {**arguments, **self.config.verifier_args}
        several, others = self.columns.get("golds"), self.columns.get(OTHER_GOLDS)
        golds: list[str] = []
        if gold is not None:
            together = needs_all_golds(verifier, arguments)
            problem = self._optional(values, "prompt") or ""
            golds = extracted_golds(gold, values, together, of_values=verifier in OF_VALUES, problem=problem)
            if self.gold_required and not golds and gold.extract and text_of(gold(values)) is not None:
                spec = self.layout.columns.gold
                raise Unusable(
                    "gold_not_found", f"{spec.extract if spec else ''!r} finds nothing in column {gold.name!r}"
                )
        if several is not None:
            golds += listed_golds(several(values), several.name)
        column = self.columns.get("gold") or several
        # A user's verifier may judge by other columns than gold.
        needed = self.gold_required and (column is not None or verifier in BUILT_IN)
        if not golds and needed and needs_gold(verifier, arguments):
            raise Unusable(
                "missing_gold",
                f"{verifier} needs a gold, and no column holds it. Name it: --set data.columns.gold=COLUMN, or "
                "--gold-column COLUMN"
                if column is None
                else _describe_absence(column.name, column(values)),
            )
        return golds + (listed_golds(others(values), others.name) if others is not None else [])

    def _is_program(self, gold: Column, verifier: str) -> bool:
        solution = self.columns.get("solution")
        is_solution = gold.name in NAMES["solution"] or (solution is not None and solution.name == gold.name)
        return self.config.columns.gold is None and is_solution and judges_solutions(resolve(verifier))

    def _own_arguments(self, values: Mapping[str, Any], verifier: str, named: str | None) -> dict[str, Any]:
        column = self.columns.get("verifier_args")
        arguments = read_arguments(column(values), column.name) if column is not None else {}
        # If the configuration replaces the row's verifier, the options in the row belong to the replaced verifier.
        named_column = self.columns.get("verifier") or Column("verifier")
        meant = text_of(named_column(values)) if self.config.verifier is not None else None
        if (arguments or named) and meant in (None, verifier):
            has_more = "tests" in self.columns or self.layout.domain != "math" or bool(self.config.verifier_args)
            check_arguments(verifier, arguments, complete=not has_more)
        return arguments

    def _meta(self, values: Mapping[str, Any], kept: Set[str]) -> dict[str, Any]:
        """Return the values of which a part was not used, and the columns of the roles in `kept`. Examples are a column
        of which an extract used a part, and the other keys of a struct."""
        meta = {name: value for name, value in values.items() if name not in self.layout.uses}
        for field_name, column in self.columns.items():
            if column.extract is not None or field_name in kept:
                continue
            if column.name in values:
                meta.pop(column.name, None)
            elif isinstance(struct := meta.get(column.root), Mapping):
                inner = column.name.split(".")[1]
                meta[column.root] = {key: item for key, item in struct.items() if key != inner}
        source_id = self._optional(values, "id")
        return meta if source_id is None else {**meta, "source_id": source_id}


def _describe_absence(column: str, value: Any) -> str:
    if value is MISSING:
        return f"column {column!r} is absent"
    if isinstance(value, str) and value.strip():
        return f"column {column!r} holds the text {value.strip()!r:.20}, which is not an answer"
    return f"column {column!r} is {'null' if value is None else 'empty'}"


def _describe_structure(column: Column, content: list[Any] | Mapping[str, Any]) -> str:
    if isinstance(content, list):
        return f"column {column.name!r} holds a list, not a text; {column.name}.0 names its first entry"
    parts = ", ".join(f"{column.name}.{name}" for name in list(content)[:8])
    return f"column {column.name!r} holds an object, not a text; name a part of it: {parts}"


TESTS_COLUMNS = ("tests", "test_list", "test_cases", "test")
"""Columns that may have the tests of a row with the verifier `code`, the most specific first."""

_EMPTY_TEXTS = ("", "[]", "{}", "null")


def tests_column(values: Values, arguments: Mapping[str, Any], taken: Set[str]) -> str | None:
    """Return the column with the tests of a row with the verifier `code`, or None if its arguments have them.

    Columns in `taken` have another role. Raises Unusable if there are no tests.
    """
    if _holds_tests(arguments):
        return None
    for name in TESTS_COLUMNS:
        if name not in taken and not _is_no_test(values.get(name, MISSING)):
            return name
    raise Unusable(
        "missing_tests", f"the verifier code needs tests: in verifier_args, or in a column {', '.join(TESTS_COLUMNS)}"
    )


def read_tests_column(values: Values, column: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tests of a column. Raises Unusable if they cannot be read."""
    hints = (arguments.get("entry_point"), values.get("entry_point"), function_name(values))
    name = next((hint for hint in hints if isinstance(hint, str) and hint), None)
    return read_tests_value(values, values[column], column, name)


def _holds_tests(arguments: Mapping[str, Any]) -> bool:
    """Return whether arguments have tests. Faulty tests count, because `vet_tests` reports them."""
    tests = arguments.get("tests")
    if tests is not None and not isinstance(tests, Mapping):
        return not _is_no_test(tests)
    try:
        normal_tests, _ = normal_form(arguments)
    except BadSuite:
        return any(arguments.get(name) for name in ("tests", "type", "cases", "code"))
    return bool(normal_tests.get("cases") or normal_tests.get("code"))


def _is_no_test(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in _EMPTY_TEXTS
    return value is None or value is MISSING or value in ([], {})


@dataclass
class RowWarnings:
    """Counts of warnings about the rows of a source."""

    lost: Counter[str] = field(default_factory=Counter)
    """The parts that were lost when rows were cut to their last user message: `system_message`, `pictures`, ..."""
    cut: int = 0
    """The number of rows that were cut to their last user message."""
    unknown_splits: int = 0
    """The number of rows with an unknown split."""
    first_split: str = ""
    """The first unknown split."""
    meant_split: str = ""
    """A hint if the first unknown split is nearly the name of one."""

    def add_lost(self, reasons: Iterable[str]) -> None:
        """Count a row that was cut to its last user message."""
        self.lost.update(list(reasons))
        self.cut += 1

    def add_split(self, value: object, row_number: int) -> None:
        """Count a row with an unknown split."""
        if not self.first_split:
            self.first_split = f"{value!r:.40} (number {row_number})"
            self.meant_split = f" {hint}" if (hint := did_you_mean(str(value), SPLIT_WORDS)) else ""
        self.unknown_splits += 1

    def counts(self) -> dict[str, int]:
        """Return the counts for the stage's report."""
        counts = {"warn:last_turn_only": self.cut, "warn:unknown_split": self.unknown_splits}
        return {name: count for name, count in counts.items() if count}

    def lines(self) -> list[str]:
        """Return a line for each kind of warning."""
        lines = []
        if self.cut:
            lost = ", ".join(f"{count:,} {reason}" for reason, count in self.lost.most_common())
            lines.append(f"{self.cut:,} row(s) were cut to their last user message; what they lost: {lost}.")
        if self.unknown_splits:
            lines.append(
                f"{self.unknown_splits:,} row(s) have an unknown split, the first {self.first_split}; "
                f"it stays in their meta, and they are training rows.{self.meant_split}"
            )
        return lines


def is_heldout(identity: str, share: float) -> bool:
    """Return whether a row with this id is held out."""
    return share > 0 and heldout_hash(identity) < share * HASHES


def heldout_hash(identity: str) -> int:
    """Return a 32-bit hash of an id. It decides whether the row is held out, and is independent of other hashes."""
    return int.from_bytes(hashlib.sha256(b"heldout:" + identity.encode()).digest()[:4], "big")
