"""Turns a source's records into canonical rows, or says why a record cannot become one.

    {"id": 0, "question": "Natalia sold ...", "answer": "... #### 72", "level": "easy"}       (layout gsm8k, line 1)

becomes `prompt="Natalia sold ..." gold="72" solution="... #### 72" verifier="math" verifier_args="{}" source_row=1
meta={"level": "easy", "source_id": "0"}`.

The verifier is that of the configuration, else of the row's column, else of the layout; `verifier_args` are merged in
that order of precedence. Whatever the source has beyond what was taken whole goes into `meta`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from truegold.pipeline.config.sources import SourceConfig
from truegold.pipeline.ingest.columns import (
    MISSING,
    Column,
    check_unicode,
    compile_column,
    json_safe,
    read_prompt,
    text_of,
)
from truegold.pipeline.ingest.heldout import is_heldout
from truegold.pipeline.ingest.jsonl import parse_structure
from truegold.pipeline.ingest.layout import CarriedRow, Derived, Layout
from truegold.pipeline.ingest.provenance import with_provenance
from truegold.pipeline.ingest.records import Record, Unusable
from truegold.pipeline.rows import Row, dump_json, row_id
from truegold.verifiers import ConfigError, resolve
from truegold.verifiers.several_golds import OTHER_GOLDS


@dataclass(frozen=True)
class RowBuilder:
    """Makes rows of the records of one source."""

    config: SourceConfig
    layout: Layout
    columns: Mapping[str, Column]
    """The layout's columns by their fields, made ready."""
    source: str
    """The source's name, which its rows carry."""
    all_heldout: bool = False
    """Whether every row is set aside, rather than a share."""

    def build(self, record: Record) -> Row:
        """Return the row of a record; raise `Unusable` where none can be made."""
        values = record.values
        if self.layout.restore is not None:
            return self._restore(record, self.layout.restore(values))
        derived = self.layout.derive(values) if self.layout.derive else Derived({})
        prompt, messages = self._prompt(values, derived)
        gold = self._gold(values)
        solution = self._optional(values, "solution")
        if solution is None and self.config.columns.solution is None:
            solution = derived.solution
        verifier_args = dump_json(json_safe(self._verifier_args(values, derived)))
        for text in (prompt, gold, solution):
            if text is not None:
                check_unicode(text)
        identity = row_id(prompt, gold, verifier_args)
        return {
            "id": identity,
            "prompt": prompt,
            "gold": gold,
            "domain": self.config.domain or self.layout.domain,
            "verifier": self._verifier(values),
            "verifier_args": verifier_args,
            "solution": solution,
            "source": self.source,
            "source_row": record.row_number,
            "split": "heldout" if self.all_heldout or is_heldout(identity, self.config.heldout) else "train",
            "meta": dump_json(json_safe(with_provenance(self._meta(values, keep_prompt=messages > 1), self.config))),
        }

    def _restore(self, record: Record, carried: CarriedRow) -> Row:
        """Return the row that an exported file carries; what the configuration says counts before it."""
        prompt, _ = self._prompt(record.values, Derived({}))
        verifier_args = dump_json(json_safe({**carried.verifier_args, **self.config.verifier_args}))
        identity = carried.id or row_id(prompt, carried.gold, verifier_args)
        heldout = self.all_heldout or carried.split == "heldout" or is_heldout(identity, self.config.heldout)
        return {
            "id": identity,
            "prompt": prompt,
            "gold": carried.gold,
            "domain": self.config.domain or carried.domain,
            "verifier": self.config.verifier or carried.verifier,
            "verifier_args": verifier_args,
            "solution": carried.solution,
            "source": self.source,
            "source_row": record.row_number,
            "split": "heldout" if heldout else "train",
            "meta": dump_json(json_safe(with_provenance(carried.meta, self.config))),
        }

    def source_id(self, record: Record) -> str | None:
        """Return the identifier that the source itself gives a record."""
        return self._optional(record.values, "id")

    def _optional(self, values: Mapping[str, Any], field: str) -> str | None:
        column = self.columns.get(field)
        return column.text(values) if column is not None else None

    def _prompt(self, values: Mapping[str, Any], derived: Derived) -> tuple[str, int]:
        """Return the prompt, and how many messages its column holds; 0 where it is no conversation."""
        if derived.prompt is not None and self.config.columns.prompt is None:
            return derived.prompt, 0
        column = self.columns["prompt"]
        content, messages = read_prompt(column(values))
        if not messages and isinstance(content, list | Mapping) and content:
            raise Unusable("prompt_not_text", _describe_structure(column, content))
        text = text_of(content)
        if text is None:
            raise Unusable("missing_prompt", _describe_absence(column, values))
        if column.extract is not None:
            text = column.extract(text)
            if text is None:
                raise Unusable("prompt_not_found", f"the extract of column {column.name!r} finds nothing")
        return text, messages

    def _gold(self, values: Mapping[str, Any]) -> str | None:
        column = self.columns.get("gold")
        if column is None:
            return next(iter(self._accepted(values)), None)
        text = text_of(column(values))
        if text is None:
            raise Unusable("missing_gold", _describe_absence(column, values))
        gold = column.extract(text) if column.extract is not None else text
        if gold is None:
            spec = self.layout.columns.gold
            raise Unusable(
                "gold_not_found", f"{spec.extract if spec else ''!r} finds nothing in column {column.name!r}"
            )
        return gold

    def _accepted(self, values: Mapping[str, Any]) -> list[str]:
        """Return the golds of the column that lists all that are accepted; none where there is no such column."""
        if (column := self.columns.get("golds")) is None:
            return []
        listed = parse_structure(column(values))
        texts = map(text_of, listed if isinstance(listed, list | tuple) else [listed])
        golds = list(dict.fromkeys(text for text in texts if text is not None))
        if not golds:
            raise Unusable("missing_gold", _describe_absence(column, values))
        return golds

    def _verifier(self, values: Mapping[str, Any]) -> str:
        if self.config.verifier is not None:
            return self.config.verifier
        name = self._optional(values, "verifier")
        if name is None:
            return self.layout.verifier
        check_unicode(name)
        if (mistake := _mistake_in(name)) is not None:
            raise Unusable("unknown_verifier", mistake)
        return name

    def _verifier_args(self, values: Mapping[str, Any], derived: Derived) -> dict[str, Any]:
        arguments = dict(derived.verifier_args)
        if "verifier_args" in self.columns:
            arguments |= _read_object(self.columns["verifier_args"], values)
        if "tests" in self.columns:
            tests = self.columns["tests"](values)
            if tests in (None, MISSING, "", [], {}):
                raise Unusable("missing_tests", _describe_absence(self.columns["tests"], values))
            arguments["tests"] = parse_structure(tests)
        if "golds" in self.columns:
            gold = self._gold(values)
            if others := [other for other in self._accepted(values) if other != gold]:
                arguments[OTHER_GOLDS] = others
        return arguments | self.config.verifier_args

    def _meta(self, values: Mapping[str, Any], keep_prompt: bool) -> dict[str, Any]:
        """Return what was not taken whole.

        A column that an extract took a part of stays here, as do a struct's other keys.
        """
        meta = {name: value for name, value in values.items() if name not in self.layout.uses}
        for field, column in self.columns.items():
            if column.extract is not None or (field == "prompt" and keep_prompt):
                continue
            if column.name in values:
                meta.pop(column.name, None)
            elif isinstance(struct := meta.get(column.root), Mapping):
                inner = column.name.split(".")[1]
                meta[column.root] = {key: item for key, item in struct.items() if key != inner}
        source_id = self._optional(values, "id")
        return meta if source_id is None else {**meta, "source_id": source_id}


@lru_cache(maxsize=1024)
def _mistake_in(verifier: str) -> str | None:
    """Return why there is no such verifier, None where there is; rows repeat a few names."""
    try:
        resolve(verifier)
    except ConfigError as error:
        return str(error).rstrip(".")
    return None


def make_builder(config: SourceConfig, layout: Layout, source: str, all_heldout: bool = False) -> RowBuilder:
    """Return a builder of rows for a source of this layout and name."""
    columns = {field: compile_column(spec, field) for field, spec in layout.columns if spec is not None}
    return RowBuilder(config, layout, columns, source, all_heldout)


def _describe_absence(column: Column, values: Mapping[str, Any]) -> str:
    value = column(values)
    if value is MISSING:
        return f"column {column.name!r} is absent"
    return f"column {column.name!r} is {'null' if value is None else 'empty'}"


def _describe_structure(column: Column, content: list[Any] | Mapping[str, Any]) -> str:
    if isinstance(content, list):
        return f"column {column.name!r} holds a list, not a text; {column.name}.0 names its first entry"
    parts = ", ".join(f"{column.name}.{name}" for name in list(content)[:8])
    return f"column {column.name!r} holds an object, not a text; name a part of it: {parts}"


def _read_object(column: Column, values: Mapping[str, Any]) -> dict[str, Any]:
    value = parse_structure(column(values))
    if value in (None, MISSING, ""):
        return {}
    if not isinstance(value, Mapping):
        raise Unusable("invalid_verifier_args", f"column {column.name!r} holds no JSON object")
    return dict(value)
