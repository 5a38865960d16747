"""A report that may be given away: the texts of its rows are left out, or personal data is removed from them.

    left out    prompt "(42 characters)"                      numbers, reasons, verdicts and where rows ended stay
    redacted    prompt "[name 1] writes to [e-mail] ..."      without addresses, keys and names (`Redactor`)

The page is made from a copy of the run in a temporary folder that holds nothing else: columns without text
are copied from an allowlist, so that a new column is left out until it is listed here. Ids of rows stay, so a reader
who knows a problem can tell whether it was in the data.
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
"""The parts that are taken out of texts: patterns of keys, and other patterns with their replacement (`[e-mail]`)."""
_PATTERNS = [("[key]", re.compile("|".join(REDACTED["keys"]), re.DOTALL))]
_PATTERNS += [(part["by"], re.compile(part["pattern"])) for part in REDACTED["parts"]]
"""The replacement and the pattern of each of them."""
_PRONOUNS = ("I", "He", "She", "It", "They", "We", "You", "His", "Her", "Their", "Mr", "Mrs", "Ms", "Miss", "Dr")
"""Words with a capital that are not names."""
_LOWER = re.compile(r"\b[a-z]+\b")
_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+(?![\w$])")
"""A word with a capital inside of a sentence: `Ann` in "then Ann adds", but not `Then`."""
_CAPITALISED = re.compile(r"(?<![\w\\$])[A-Z][a-z]+(?![\w$])")
"""Any word with a capital; no command such as `\\Delta`, no formula such as `$Ab$`."""

KEPT_COLUMNS = frozenset(
    "id row_id source stage action reason drop_reason detector split domain verifier finish_reason kind tier relation"
    " by outcome strategy dropped decision role system systems when group name against against_id cluster".split()
)
"""The names of table columns whose texts do not come from the rows."""
JSON_COLUMNS = frozenset(("evidence", "meta", "verifier_args"))
"""The columns that hold JSON objects, whose texts are filtered one by one."""
KEPT_EVIDENCE = frozenset(
    "kept kept_id rows verifier form why reason rung against against_id flags measured column relation kind".split()
)
"""The texts of evidence that are names of truegold's own or of rows."""
COUNTED_BY_TEXT = frozenset(("golds", "answers", "votes", "spellings", "candidates"))
"""Evidence whose keys are texts of the data."""
KEPT_CONFIG = frozenset("group_size samples languages tiers name source sources path heldout_path".split())
"""The settings that the page reads; of paths the name of the file alone stays."""
OF_REVIEWERS = frozenset(("reviewers", "agreement", "words"))
"""Facts and evidence that name reviewers."""
_OWN_KEY = re.compile(r"[a-z][a-z0-9_]*")
"""A key of truegold's own, such as `kept_id`; other keys may be texts of the data."""

TextFilter = Callable[[str], str]
"""Returns the replacement for a text in a shared report."""


class Redactor:
    """Redacts texts; a name has the same number in all of them.

        "Write to ann@example.org, key sk-a1B2..."    ->  "Write to [e-mail], key [key]"
        "Tom buys 3 pens. How many has Tom?"          ->  "[name 1] buys 3 pens. How many has [name 1]?"

    Names are told by their capitals and by what they do (`person_names`); places and makers are taken for some, too.
    Names in scripts without capitals, and names that only ever begin a sentence and do nothing in it, are not seen.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {name: f"[name {position}]" for position, name in enumerate(dict.fromkeys(names), 1)}

    @classmethod
    def for_texts(cls, texts: Iterable[str]) -> Redactor:
        """Return a redactor that knows the names in these texts.

        A word is a name if it is capitalised inside a sentence, or acts as a person does. If the texts also have it in
        lower case ("He begins", "he begins"), both must hold.
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
        """Return a text without personal names, addresses and keys."""
        for replacement, pattern in _PATTERNS:
            text = pattern.sub(replacement, text)
        return _CAPITALISED.sub(lambda match: self._names.get(match[0], match[0]), text) if self._names else text


class SharedTexts(StrEnum):
    """The texts of rows in a report that is given away."""

    NONE = "none"
    """They are left out."""
    REDACTED = "redacted"
    """E-mail addresses, URLs, IP addresses, keys, and the names of persons are taken out."""


def shared_page(run_dir: Path, texts: SharedTexts) -> str:
    """Return the page of a run as it may be given away. Raises InputError if it is not a run."""
    open_finished(run_dir)  # A folder that is not a run is refused here: an error below would name the copy.
    with tempfile.TemporaryDirectory(prefix="truegold-share-") as folder:
        copy = Path(folder) / run_dir.resolve().name
        copy.mkdir()
        _copy_run(run_dir, copy, texts)
        sections = gather_run(copy)
        # The run's other files are not given away with the page.
        provenance = replace(sections.provenance, links={})
        rows = _without_decisions(sections.rows)
        return render(replace(sections, run_dir=copy.name, provenance=provenance, rows=rows))


def _without_decisions(rows: PageRows) -> PageRows:
    """Return the rows without the keys by which decisions are made: a reader of filtered texts must not decide."""
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
    """Copy the stage's record and the few other files that are not tables."""
    target.mkdir(exist_ok=True)
    record = orjson.loads((folder / RECORD).read_bytes())
    record["config"] = _filter_config(record.get("config", {}))
    record["report"]["facts"] = _filter_facts(record["report"]["facts"], redact, text_filter)
    # Files that are not copied are left out of the record, so that none is missed. Digests stay those of the run.
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
    """Return what a stage counted without the names of reviewers, and its examples of rows as texts of rows."""
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
    """Copy a table with every text of the data put through the filter, and without token ids, which spell texts."""
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
    """Return evidence under the name `key`, its texts filtered unless they name rows or are words of truegold's own.

    Keys of objects are filtered as well where they are texts of the data: `{"votes": {"Tom's": 3}}`.
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
