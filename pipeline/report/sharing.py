"""Makes a report that can be shared: row texts are left out, or personal data is removed from them.

    option      prompt "Ann writes to a@b.org ..." becomes
    none        "(42 characters)"
    redacted    "[name 1] writes to [e-mail] ..."     (`Redactor`)

Numbers, reasons, verdicts and outcomes are kept. The page is made from a filtered copy of the run in a temporary
folder. Texts in KEPT_COLUMNS are copied unchanged, all other texts are filtered. Ids of rows are kept. So a reader who
knows a problem can find out whether the problem was in the data.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import tempfile
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.report.page_rows import PageRows, pack
from truegold.pipeline.report.render import render
from truegold.pipeline.report.sections import gather_run
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.stage import RECORD
from truegold.pipeline.tables.rows import dump_json, read_rows
from truegold.pipeline.tables.run_files import open_finished
from truegold.pipeline.text.person_names import NO_PERSONS, find_persons

REDACTED = tomllib.loads((files(__package__) / "redaction.toml").read_text(encoding="utf-8"))
"""Patterns of the parts that are removed from texts: API keys (`keys`), and `parts` with their replacements, such as
`[e-mail]`."""
_PATTERNS = [("[key]", re.compile("|".join(REDACTED["keys"]), re.DOTALL))]
_PATTERNS += [(part["by"], re.compile(part["pattern"])) for part in REDACTED["parts"]]
"""The replacement and the compiled pattern of each part."""
_PRONOUNS = ("I", "He", "She", "It", "They", "We", "You", "His", "Her", "Their", "Mr", "Mrs", "Ms", "Miss", "Dr")
"""Capitalised words that are not names."""
_LOWER = re.compile(r"\b[a-z]+\b")
_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+(?![\w$])")
"""A capitalised word inside a sentence: `Ann` in "then Ann adds", but not `Then` at the beginning."""
_CAPITALISED = re.compile(r"(?<![\w\\$])[A-Z][a-z]+(?![\w$])")
"""A capitalised word that is not part of a LaTeX command such as `\\Delta`, or of a formula such as `$Ab$`."""

KEPT_COLUMNS = frozenset(
    "id row_id source stage action reason drop_reason detector split domain verifier finish_reason kind tier relation"
    " by outcome strategy dropped decision role system systems when group name against against_id cluster".split()
)
"""Columns whose texts do not come from the rows."""
JSON_COLUMNS = frozenset(("evidence", "meta", "verifier_args"))
"""Columns with JSON objects. Each text in them is filtered."""
KEPT_EVIDENCE = frozenset(
    "kept kept_id rows verifier form why reason rung against against_id flags measured column relation kind".split()
)
"""Keys of evidence (the details of a finding) whose texts are copied unchanged. They name rows, or are words of
truegold."""
COUNTED_BY_TEXT = frozenset(("golds", "answers", "votes", "spellings", "candidates"))
"""Keys of evidence whose values map texts of the data to counts."""
KEPT_CONFIG = frozenset("group_size samples languages tiers name source sources path heldout_path".split())
"""Settings that the page reads. Of a path, only the file name is kept."""
OF_REVIEWERS = frozenset(("reviewers", "agreement", "words"))
"""Keys in the facts of a stage and in evidence that name reviewers."""
_OWN_KEY = re.compile(r"[a-z][a-z0-9_]*")
"""A key that is a word of truegold, such as `kept_id`. Other keys may be texts of the data."""

TextFilter = Callable[[str], str]
"""A function that returns the replacement for a text."""


class Redactor:
    """A text filter that removes addresses, keys and names. A name gets the same number in all texts.

        "Write to ann@example.org, key sk-a1B2..."    ->  "Write to [e-mail], key [key]"
        "Tom buys 3 pens. How many has Tom?"          ->  "[name 1] buys 3 pens. How many has [name 1]?"

    A name is a capitalised word inside a sentence, or the subject of a verb of persons such as `buys` (`person_names`).
    Some places and companies are therefore replaced, too. Two kinds of names are missed: names in scripts without
    capitals, and names that only begin sentences and have no such verb.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {name: f"[name {position}]" for position, name in enumerate(dict.fromkeys(names), 1)}

    @classmethod
    def for_texts(cls, texts: Iterable[str]) -> Redactor:
        """Return a redactor for the names in these texts.

        A word is a name if it is capitalised inside a sentence, or if it is the subject of a verb of persons. A word
        that the texts also have in lower case ("He begins", "he begins") must meet both conditions.
        """
        persons: dict[str, None] = {}
        inside: dict[str, None] = {}
        lower: set[str] = set()
        for text in texts:
            persons |= dict.fromkeys(find_persons(text))
            inside |= dict.fromkeys(_INSIDE.findall(text))
            lower.update(_LOWER.findall(text))
        known = {name: None for name in (*persons, *inside) if name not in NO_PERSONS and name not in _PRONOUNS}
        both = persons.keys() & inside.keys()
        return cls(name for name in known if name.lower() not in lower or name in both)

    def __call__(self, text: str) -> str:
        """Return a text without names, addresses and keys."""
        for replacement, pattern in _PATTERNS:
            text = pattern.sub(replacement, text)
        return _CAPITALISED.sub(lambda match: self._names.get(match[0], match[0]), text) if self._names else text


class SharedTexts(StrEnum):
    """The treatment of row texts in a shared report."""

    NONE = "none"
    """Texts are left out."""
    REDACTED = "redacted"
    """E-mail addresses, URLs, IP addresses, keys and names of persons are replaced."""


def shared_page(run_dir: Path, texts: SharedTexts) -> str:
    """Return the page of a run in a form that can be shared. Raises InputError if it is not a run."""
    open_finished(run_dir)  # Raises an error if this is not a run. Later errors would name the temporary copy.
    with tempfile.TemporaryDirectory(prefix="truegold-share-") as folder:
        copy = Path(folder) / run_dir.resolve().name
        copy.mkdir()
        _copy_run(run_dir, copy, texts)
        sections = gather_run(copy)
        # Leave out links to other files of the run, because only the page is shared.
        provenance = replace(sections.provenance, links={})
        rows = _without_decisions(sections.rows)
        return render(replace(sections, run_dir=copy.name, provenance=provenance, rows=rows))


def _without_decisions(rows: PageRows) -> PageRows:
    """Return the rows without the hashes of their texts (`content_key`). A review decision needs this hash. So the
    shared page, with its filtered texts, offers no decisions."""
    index = orjson.loads(zlib.decompress(base64.b64decode(rows.index)))
    index["columns"]["seen"] = [None] * len(index["columns"]["seen"])
    return replace(rows, index=pack(index))


def _leave_out(text: str) -> str:
    return f"({len(text):,} characters)"


def _copy_run(run_dir: Path, copy: Path, texts: SharedTexts) -> None:
    is_redacted = texts is SharedTexts.REDACTED
    redact = Redactor.for_texts(_prompts(run_dir)) if is_redacted else Redactor()
    text_filter = redact if is_redacted else _leave_out
    manifest = orjson.loads((run_dir / "manifest.json").read_bytes())
    for stage in manifest["stages"]:
        stage["facts"] = _filter_facts(stage.get("facts", {}), redact, text_filter)
        folder = run_dir / stage["name"]
        if not (folder / RECORD).exists() or stage["name"] == "report":
            continue
        for path in sorted(folder.rglob("*.parquet")):
            if not path.is_file():
                continue
            target = copy / stage["name"] / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy_table(path, target, text_filter)
        _copy_stage_files(folder, copy / stage["name"], text_filter, redact)
    (copy / "manifest.json").write_bytes(orjson.dumps(manifest))
    if (run_dir / "verifier_card.json").exists():
        shutil.copyfile(run_dir / "verifier_card.json", copy / "verifier_card.json")


def _prompts(run_dir: Path) -> Iterator[str]:
    for row in read_rows(run_dir / "ingest" / "rows.parquet", ["prompt", "solution"]):
        yield f"{row['prompt']}\n{row['solution'] or ''}"


def _copy_stage_files(folder: Path, target: Path, text_filter: TextFilter, redact: Redactor) -> None:
    target.mkdir(exist_ok=True)
    record = orjson.loads((folder / RECORD).read_bytes())
    record["config"] = _filter_config(record.get("config", {}))
    record["report"]["facts"] = _filter_facts(record["report"]["facts"], redact, text_filter)
    # The record lists only files that were copied. Digests are those of the original files.
    copied = {name: entry for name, entry in record.get("outputs", {}).items() if (target / name).is_file()}
    record["outputs"] = {name: {**entry, "bytes": (target / name).stat().st_size} for name, entry in copied.items()}
    (target / RECORD).write_bytes(orjson.dumps(record))
    moment = (folder / RECORD).stat()
    os.utime(target / RECORD, ns=(moment.st_atime_ns, moment.st_mtime_ns))
    if (folder / "planted.json").exists():
        shutil.copyfile(folder / "planted.json", target / "planted.json")
    for name in ("rejects.jsonl", "metrics.jsonl", "alarms.jsonl"):
        if not (folder / name).exists():
            continue
        chosen = text_filter if name == "rejects.jsonl" else redact
        lines = [
            {key: _filter_cell(key, value, chosen) for key, value in line.items()}
            for line in read_whole_lines(folder / name)
        ]
        (target / name).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def _filter_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the page reads."""
    kept = {name: value for name, value in config.items() if name in KEPT_CONFIG}
    for name, value in kept.items():
        if name == "sources" and isinstance(value, list):
            kept[name] = list(map(_filter_config, value))
        elif name.endswith("path") and isinstance(value, str):
            kept[name] = Path(value).name
    return kept


def _filter_facts(facts: Any, redact: Redactor, text_filter: TextFilter) -> Any:
    """Return a stage's facts without reviewers' names, and with filtered examples of rows."""
    if isinstance(facts, dict):
        return {
            key: text_filter(value) if key == "example" else _filter_facts(value, redact, text_filter)
            for key, value in facts.items()
            if key not in OF_REVIEWERS
        }
    if isinstance(facts, list):
        return [_filter_facts(value, redact, text_filter) for value in facts]
    return redact(facts) if isinstance(facts, str) else facts


def _copy_table(path: Path, target: Path, text_filter: TextFilter) -> None:
    """Copy a table. Texts are filtered. Token ids are left out, because they can be decoded into texts."""
    with pq.ParquetFile(path, pre_buffer=False) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=1024):
            columns = [
                pa.array([_filter_cell(field.name, cell, text_filter) for cell in column.to_pylist()], field.type)
                for field, column in zip(batch.schema, batch.columns, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=file.schema_arrow))


def _filter_cell(name: str, cell: Any, text_filter: TextFilter) -> Any:
    if name in KEPT_COLUMNS or cell is None:
        return cell
    if isinstance(cell, list):
        return [text_filter(part) for part in cell if isinstance(part, str)]
    if not isinstance(cell, str):
        return cell if isinstance(cell, int | float) else None
    if name not in JSON_COLUMNS:
        return text_filter(cell)
    try:
        return dump_json(_filter_evidence("", orjson.loads(cell or "{}"), text_filter))
    except orjson.JSONDecodeError:
        return "{}"


def _filter_evidence(key: str, value: Any, text_filter: TextFilter) -> Any:
    """Return the filtered `value` of the key `key` in evidence. Values of KEPT_EVIDENCE stay as they are.

    Keys of objects that may be texts of the data are filtered, too: `{"votes": {"Tom's": 3}}`.
    """
    if isinstance(value, dict):
        filtered = {}
        for name, inner in value.items():
            is_own = key not in COUNTED_BY_TEXT and _OWN_KEY.fullmatch(name)
            filtered[name if is_own else text_filter(name)] = _filter_evidence(name, inner, text_filter)
        return filtered
    if key in OF_REVIEWERS:
        return []
    if key in KEPT_EVIDENCE:
        return value
    if isinstance(value, list):
        return [_filter_evidence(key, inner, text_filter) for inner in value]
    return text_filter(value) if isinstance(value, str) else value
