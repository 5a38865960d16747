"""Turns a source's records into canonical rows, or says why one cannot be.

    {"id": 0, "question": "Natalia sold ...", "answer": "... #### 72", "level": "easy"}       (layout gsm8k, line 1)

becomes `prompt="Natalia sold ..." gold="72" solution="... #### 72" verifier="math" verifier_args="{}" source_row=1
meta={"id": 0, "level": "easy"}`, with `columns.id: id` `meta={"level": "easy", "source_id": "0"}`.

`verifier`, `domain`: the configuration's, else the row's own column, else the layout's. `verifier_args` are merged in
that order of precedence. Whatever the source has beyond what was taken whole goes into `meta`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.config.sources import SourceConfig
from truegold.pipeline.ingest.columns import MISSING, Column, check_unicode, compile_column, json_safe, text_of
from truegold.pipeline.ingest.jsonl import parse_json
from truegold.pipeline.ingest.layout import Derived, Layout
from truegold.pipeline.ingest.records import Record, Unusable
from truegold.pipeline.rows import Row, dump_json, row_id

HELDOUT_STEPS = 2**32


@dataclass(frozen=True)
class RowBuilder:
    """`build` makes one row of one record; it raises `Unusable` where none can be made."""

    config: SourceConfig
    layout: Layout
    columns: Mapping[str, Column]
    source: str
    all_heldout: bool = False

    def build(self, record: Record) -> Row:
        values = record.values
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
            "source_row": record.number,
            "split": "heldout" if self.all_heldout or is_heldout(identity, self.config.heldout) else "train",
            "meta": dump_json(json_safe(self._meta(values, keep_prompt=messages > 1))),
        }

    def source_id(self, record: Record) -> str | None:
        """The source's own identifier."""
        return self._optional(record.values, "id")

    def _optional(self, values: Mapping[str, Any], field: str) -> str | None:
        column = self.columns.get(field)
        if column is None:
            return None
        text = text_of(column(values))
        return column.extract(text) if text is not None and column.extract else text

    def _prompt(self, values: Mapping[str, Any], derived: Derived) -> tuple[str, int]:
        """The prompt, and how many messages its column held."""
        if derived.prompt is not None and self.config.columns.prompt is None:
            return derived.prompt, 1
        column = self.columns["prompt"]
        value = column(values)
        messages = 1
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            messages = len(value)
            value = last_user_content(value)
        elif isinstance(value, list | Mapping) and value:
            raise Unusable("prompt_not_text", f"column {column.name!r} holds a {type(value).__name__}, not a text")
        text = text_of(value)
        if text is None:
            raise Unusable("missing_prompt", _absence(column, values))
        if column.extract is not None:
            text = column.extract(text)
            if text is None:
                raise Unusable("prompt_not_found", f"the extract of column {column.name!r} finds nothing")
        return text, messages

    def _gold(self, values: Mapping[str, Any]) -> str | None:
        column = self.columns.get("gold")
        if column is None:
            return None
        text = text_of(column(values))
        if text is None:
            raise Unusable("missing_gold", _absence(column, values))
        if column.extract is None:
            return text
        found = column.extract(text)
        if found is None:
            spec = self.layout.columns.gold
            raise Unusable(
                "gold_not_found", f"{spec.extract if spec else ''!r} finds nothing in column {column.name!r}"
            )
        return found

    def _verifier(self, values: Mapping[str, Any]) -> str:
        name = self.config.verifier or self._optional(values, "verifier") or self.layout.verifier
        check_unicode(name)
        return name

    def _verifier_args(self, values: Mapping[str, Any], derived: Derived) -> dict[str, Any]:
        arguments = dict(derived.verifier_args)
        if "verifier_args" in self.columns:
            arguments |= _as_object(self.columns["verifier_args"], values)
        if "tests" in self.columns:
            tests = self.columns["tests"](values)
            if tests in (None, MISSING, "", [], {}):
                raise Unusable("missing_tests", _absence(self.columns["tests"], values))
            arguments["tests"] = _parsed(tests)
        return arguments | self.config.verifier_args

    def _meta(self, values: Mapping[str, Any], keep_prompt: bool) -> dict[str, Any]:
        """What was not taken whole: a column that an extract took a part of stays here, as do a struct's other keys."""
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


def make_builder(config: SourceConfig, layout: Layout, source: str, all_heldout: bool = False) -> RowBuilder:
    columns = {field: compile_column(spec, field) for field, spec in layout.columns if spec is not None}
    return RowBuilder(config, layout, columns, source, all_heldout)


def is_heldout(identity: str, share: float) -> bool:
    """Whether a row of this id is set aside: by a hash of its own, so that nothing else sorts by the same bits."""
    if share <= 0:
        return False
    digest = hashlib.sha256(b"heldout:" + identity.encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * HELDOUT_STEPS


def last_user_content(messages: list[Mapping[str, Any]]) -> Any:
    """The last user message of a conversation (the last message where no one is called user); texts of parts joined."""
    users = [message for message in messages if message.get("role") == "user"]
    content = (users or messages)[-1].get("content")
    if isinstance(content, list):
        parts = [
            part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | Mapping)
        ]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content


def _absence(column: Column, values: Mapping[str, Any]) -> str:
    value = column(values)
    what = "is absent" if value is MISSING else "is null" if value is None else "is empty"
    return f"column {column.name!r} {what}"


def _parsed(value: Any) -> Any:
    """A structure that a text column holds as JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


def _as_object(column: Column, values: Mapping[str, Any]) -> dict[str, Any]:
    value = _parsed(column(values))
    if value in (None, MISSING, ""):
        return {}
    if not isinstance(value, Mapping):
        raise Unusable("invalid_verifier_args", f"column {column.name!r} holds no JSON object")
    return dict(value)
