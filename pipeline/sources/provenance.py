r"""Reads the provenance of rows, and restores rows from exported files.

The provenance of a row is its origin and its licence. Both are stored when the row is read, and are in every export:

    data: {path: train.jsonl, license: mit, origin: "https://example.org/sets/1"}    for all rows of the source
    {"question": ..., "license": "cc-by-4.0", "data_source": "openai/gsm8k"}          for one row, by its columns

The columns of a row take precedence over the configuration of its source. Without columns and configuration, the
licence is unknown, and the origin is the name of the source. Licence and origin are stored in `meta`, which every stage
preserves. Of several copies, deduplication keeps one with its own licence and origin.

An exported record carries its whole row in an additional column, so that the row can be restored:

    {"prompt": [...], "answer": "72", ..., "truegold": "{\"content\": \"9f0c...\", \"gold\": \"72\", \"id\": ...}"}

The column (`extra_info.truegold` for verl, `metadata.truegold` for inspect) is JSON text, because structures vary from
row to row and tables need a fixed type. The text has all fields of the row except for the prompt. `content` is a digest
of prompt, gold and arguments at the time of export. If it still matches, the row keeps its id. If the file was edited,
the row gets a new id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import orjson

from truegold.pipeline.config.sources import Columns, SourceConfig
from truegold.pipeline.sources.columns import Column, Layout, RowParts
from truegold.pipeline.sources.conversations import context_text, read_conversation
from truegold.pipeline.tables.conversation import turns_text
from truegold.pipeline.tables.rows import FILE, NOTES, PROVENANCE_NOTES, Row, dump_json, row_id
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import Samples, Values, text_of
from truegold.verifiers.strict_json import parse_structure

LICENSE_COLUMNS = ("license", "licence", "license_name")
"""Columns that may hold a row's licence, the most specific first."""
ORIGIN_COLUMNS = ("origin", "data_source", "source_dataset", "source_url", "url")
"""Columns that may hold a row's origin."""


class Provenance(NamedTuple):
    """The licence and the origin of a row."""

    license: str | None
    """The licence as its source states it, or None if it is unknown."""
    origin: str
    """A data set, a file or a URL."""


def with_notes(meta: Mapping[str, Any], config: SourceConfig, file: str | None = None) -> dict[str, Any]:
    """Return a row's `meta` with notes on the configured licence and origin of its source, and on its file."""
    stated = {name: value for name in PROVENANCE_NOTES if (value := getattr(config, name)) is not None}
    if not stated and file is None:
        return dict(meta)
    notes = meta.get(NOTES)
    earlier = notes if isinstance(notes, Mapping) else {}
    return {**meta, NOTES: {**stated, **earlier, **({} if file is None else {FILE: file})}}


def provenance_of(meta: Mapping[str, Any], source: str) -> Provenance:
    """Return the licence and origin of a row, by its `meta` and the name of its source."""
    notes = meta.get(NOTES)
    noted: Mapping[str, Any] = notes if isinstance(notes, Mapping) else {}
    license_ = _first_text(meta, LICENSE_COLUMNS) or text_of(noted.get("license"))
    return Provenance(license_, _first_text(meta, ORIGIN_COLUMNS) or text_of(noted.get("origin")) or source)


def provenance_of_row(row: Mapping[str, Any]) -> Provenance:
    """Return the licence and origin of a canonical row."""
    return provenance_of(orjson.loads(row["meta"] or "{}"), row["source"])


def _first_text(meta: Mapping[str, Any], columns: tuple[str, ...]) -> str | None:
    texts = (meta.get(column) for column in columns)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


CARRIED = "truegold"
"""The column, or the key in a format's free-form column, that carries the row."""
FLAGS = "flags"
"""The name of the note with the flags that a row had at an earlier export."""
_LOCATIONS = (CARRIED, f"extra_info.{CARRIED}", f"metadata.{CARRIED}", "output")
_IS_CARRIED = re.compile(r'"content":.*"verifier_args":', re.DOTALL)
"""A quick test: matches the JSON text of a row in an exported record."""
_PROMPTS = ("prompt", "messages", "input", "responses_create_params.input", "question")
"""Columns of the prompt. In NeMo-Gym, the model sees `input`, which may have a system message. It does not see
`question`."""


PROMPT_MARK = "{prompt}"
"""The place of the problem in a template of the user message."""


def carry(row: Row, provenance: Provenance, flags: Sequence[str] = (), user: str = PROMPT_MARK) -> str:
    """Return the JSON text by which an exported record carries its row.

    `user` is the template of the user message. If it is not the plain prompt, the text also has template and prompt.
    """
    carried = {name: value for name, value in row.items() if name != "prompt" or user != PROMPT_MARK}
    around = {} if user == PROMPT_MARK else {"user": user}
    return dump_json({**carried, **provenance._asdict(), **around, "flags": list(flags), "content": _content(row)})


def _problem_in(message: str, carried: Mapping[str, Any]) -> str:
    """Return the stored prompt if the user message is the template filled with this prompt. Else return the message."""
    user, prompt = carried.get("user"), carried.get("prompt")
    is_made = (
        isinstance(user, str)
        and isinstance(prompt, str)
        and user.replace(PROMPT_MARK, prompt).strip() == message.strip()
    )
    return prompt if is_made and isinstance(prompt, str) else message


def earlier_flags(row: Row) -> list[str]:
    """Return the reasons of the flags that a row had at an earlier export, or an empty list for other rows."""
    meta = parse_structure(row["meta"]) if f'"{FLAGS}"' in row["meta"] else None
    notes = meta.get(NOTES) if isinstance(meta, Mapping) else None
    flags = notes.get(FLAGS) if isinstance(notes, Mapping) else None
    return [flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list | tuple) else []


def exported(columns: Set[str], samples: Samples) -> Layout | None:
    """Return the layout of a file that `truegold export` wrote, in any format. It restores the rows of the file.

    In a conversation, the last user message is the prompt, and the messages before it are the context.
    """
    location = next((name for name in _LOCATIONS if _all_carry(Column(name), samples)), None)
    prompt = next((name for name in _PROMPTS if any(text_of(Column(name)(values)) for values in samples)), None)
    if location is None or prompt is None:
        return None
    carried_column, prompt_column = Column(location), Column(prompt)

    def restore(values: Values) -> RowParts:
        carried = parse_structure(carried_column(values))
        if not isinstance(carried, Mapping) or "content" not in carried:
            raise Unusable("mixed_source", f"column {location!r} has no exported row, unlike in other records")
        conversation = read_conversation(prompt_column(values), ())
        context = context_text(conversation) if conversation.is_chat else carried.get("context")
        asked = {"prompt": _problem_in(text_of(conversation.question) or "", carried), "context": context}
        return _restored(carried, asked, location)

    parts = {part: f"{location}.{part}" for part in ("gold", "solution", "id")}
    return Layout(Columns.model_validate({"prompt": prompt, **parts}), restore=restore)


def _all_carry(column: Column, samples: Samples) -> bool:
    texts = [column(values) for values in samples]
    return bool(texts) and all(isinstance(text, str) and _IS_CARRIED.search(text) for text in texts)


def _restored(carried: Mapping[str, Any], asked: Mapping[str, Any], location: str) -> RowParts:
    for name in ("gold", "solution", "id", "domain", "verifier", "split", "context"):
        if not isinstance(carried.get(name), str | None):
            raise Unusable("mixed_source", f"{location}.{name} is not a text")
    arguments = parse_structure(carried.get("verifier_args")) or {}
    if not isinstance(arguments, Mapping):
        raise Unusable("invalid_verifier_args", f"{location}.verifier_args holds no JSON object")
    gold = carried.get("gold")
    is_same = carried["content"] == row_id(turns_text(asked), gold, dump_json(arguments))
    return RowParts(
        id=carried.get("id") if is_same else None,
        gold=gold,
        domain=carried.get("domain") or "math",
        verifier=carried.get("verifier") or "math",
        verifier_args=arguments,
        solution=carried.get("solution"),
        split="heldout" if carried.get("split") == "heldout" else "train",
        meta=_restored_meta(carried),
        prompt=asked["prompt"],
        context=asked["context"],
    )


def _restored_meta(carried: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = parse_structure(carried.get("meta"))
    meta = dict(meta) if isinstance(meta, Mapping) else {}
    notes = meta.get(NOTES)
    stated = {name: carried[name] for name in ("license", "origin") if carried.get(name)}
    # Another export should have the flags of the earlier one, too.
    flags = {FLAGS: carried["flags"]} if carried.get("flags") else {}
    meta[NOTES] = {**stated, **(notes if isinstance(notes, Mapping) else {}), **flags}
    return meta


def _content(row: Row) -> str:
    return row_id(turns_text(row), row["gold"], dump_json(orjson.loads(row["verifier_args"] or "{}")))
