"""Writes a curated set in a trainer's format, and checks the files with the trainer's own reader.

    convert(Path("runs/gsm8k"), FORMATS["verl"], Path("out"), ...)
        writes out/train.parquet, out/test.parquet and out/README.md
    check(Path("out/train.parquet"), FORMATS["verl"])
        returns Checked(1319, ("published schema", "verl 0.9.1"), ())

The data may be any of these:

    runs/gsm8k                      a run with the stage `export`
    out, with data/train.parquet    a set that the stage `export` wrote
    out, with train.jsonl           a set in a trainer's format
    train.jsonl                     any file that `ingest` reads
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from itertools import islice, tee
from pathlib import Path
from typing import Any, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from truegold.pipeline.config.mistakes import plain_words
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.export.card import FOLDER, NOT_STATED, cut_phrases, write_head
from truegold.pipeline.export.completions import (
    CompletionChoice,
    DrawnCompletion,
    RunCompletions,
    read_completions,
    rescued_rows,
)
from truegold.pipeline.export.formats import FORMATS, SPLIT_NAMES, ExportRow, Format
from truegold.pipeline.export.stage import DATA_DIR, FLAGS_FIELD, PROVENANCE_FIELDS
from truegold.pipeline.ingest import ingest
from truegold.pipeline.running.disk import refuse_input, runs_in, written_aside
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.sources.data_files import data_files
from truegold.pipeline.sources.provenance import earlier_flags, with_notes
from truegold.pipeline.sources.records import REJECT, REJECTS_FILE, describe_reasons, describe_rejects, first_rejects
from truegold.pipeline.sources.row_builder import needs_gold
from truegold.pipeline.tables.losses import NO_BOUNDS, LossBounds, loss_lines
from truegold.pipeline.tables.rows import (
    BATCH_ROWS,
    PROFILE_SCHEMA,
    Row,
    RowKey,
    dump_json,
    read_rows,
    read_table,
    row_key,
)
from truegold.pipeline.text.templates import templates_in
from truegold.verifiers import (
    ConfigError,
    InputError,
    Item,
    Reason,
    fingerprint,
    gold_response,
    judges_solutions,
    resolve,
    verify_batch,
)
from truegold.verifiers.code.suite.row_tests import Unusable

TYPES = {"pass_rate": pa.float64(), "suspicion": pa.float64(), "posterior": PROFILE_SCHEMA.field("posterior").type}
"""The types of columns that may have no value in any row."""
ORIGINS_SHOWN = 20
SHOWN_MISTAKES = 5
"""The maximum number of mistakes that are described."""

_ADDED_COLUMNS = {FLAGS_FIELD.name, *(column.name for column in PROVENANCE_FIELDS)}


@dataclass
class Written:
    """The result of `convert`: the numbers of written and omitted rows."""

    splits: dict[Path, int] = field(default_factory=dict)
    """The number of rows in each split's file."""
    rejected: Counter[str] = field(default_factory=Counter)
    """By reason: the number of rejected records, and of rows that do not fit the format."""
    first_rejects: list[dict[str, Any]] = field(default_factory=list)
    """The first rejected row for each reason."""
    incomplete: Counter[str] = field(default_factory=Counter)
    """The number of rows without the needed completions, by `no right completion` or `no wrong completion`."""
    completions_left_out: Counter[str] = field(default_factory=Counter)
    """The number of completions that were left out because they are neither right nor wrong, by kind
    (`RunCompletions.left_out`)."""
    notes: list[str] = field(default_factory=list)
    """Further lines to print."""
    needs_reward: int = 0
    """The number of rows that the trainer's own reward cannot score (`Format.remark`)."""
    replaced: str | None = None
    """The time at which the replaced set was written, or None if no set was replaced."""
    moved: int = 0
    """The number of rows whose source names another split."""
    verifiers: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    origins: Counter[str] = field(default_factory=Counter)

    def count(self, row: ExportRow, form: Format) -> None:
        """Count a row by its verifier, licence and origin."""
        self.needs_reward += bool(form.remark) and form.needs_reward(row)
        self.moved += row.own_value("split") not in (None, row.split)
        self.verifiers[row.row["verifier"]] += 1
        self.licenses[row.provenance.license or NOT_STATED] += 1
        self.origins[row.provenance.origin] += 1

    def reject(self, row: Row, error: Unusable) -> None:
        """Count an omitted row by the reason of the error."""
        if error.reason not in self.rejected:
            named = {"source": row["source"], "source_row": row["source_row"]}
            self.first_rejects.append({**named, "reason": error.reason, "detail": error.detail})
        self.rejected[error.reason] += 1

    def describe_losses(self) -> str:
        """Return a sentence about omitted rows."""
        lost = [f"rejected: {describe_reasons(self.rejected)}"] if self.rejected else []
        lost += [f"rows with {what}: {count:,}" for what, count in self.incomplete.items()]
        firsts = [f"{first['reason']}: {first['detail']}" for first in self.first_rejects]
        why = f" The first of each: {'; '.join(firsts)}" if len(firsts) > 1 else ""
        if len(firsts) == 1:
            why = f" The first: {self.first_rejects[0]['detail']}"
        return f"Left out: {'; '.join(lost) or 'nothing'}.{why}"

    def lines(self, form: Format) -> list[str]:
        """Return the lines to print about written and omitted rows."""
        rows = sum(self.splits.values())
        lines = [f"{path}: {count:,} rows" for path, count in self.splits.items()]
        if self.replaced is not None:
            lines.append(f"This replaces the set of {self.replaced} that was here.")
        lines += describe_rejects(self.rejected, rows + sum(self.rejected.values()), self.first_rejects)
        lines += [f"Rows with {what}: {count:,}." for what, count in self.incomplete.items()]
        if self.completions_left_out:
            left_out = describe_reasons(self.completions_left_out)
            lines.append(f"Completions that are neither right nor wrong: {left_out}.")
        if self.moved:
            lines.append(f"{self.moved:,} rows are in another split than their source says.")
        lines += self.notes
        if self.needs_reward:
            lines.append(f"{self.needs_reward:,} of {rows:,} rows {form.remark}.")
        return lines


@dataclass(frozen=True)
class Checked:
    """The result of `check`."""

    rows: int
    readers: tuple[str, ...]
    """The checks that ran: the published schema, and the trainer's own code with its version, if it is installed."""
    mistakes: tuple[str, ...]
    """A line for each mistake. Empty if the trainer can read the file."""


def convert(
    data: Path,
    form: Format,
    out_dir: Path,
    progress: Progress,
    source: FileSource,
    system: str | None,
    choice: CompletionChoice | None = None,
    bounds: LossBounds = NO_BOUNDS,
) -> Written:
    """Write the rows of `data` to `out_dir` in the format `form`.

    `source` has the settings for reading a file. The verifier, licence, origin and limit in it also apply to a run or a
    set. `choice` has the settings for formats with completions. Raises InputError if there are no rows, or more are
    rejected than `bounds` allow, and ConfigError if `source` names columns of truegold's own tables.
    """
    refuse_input(out_dir, data)
    _refuse_other_set(out_dir, form, data)
    if source.verifier is not None:
        resolve(source.verifier)
    written = Written(replaced=_day_of_set(out_dir))
    name = _package_name(out_dir)
    folder = out_dir / form.data_dir.replace("$NAME", name)
    drawn = None if form.completions == "none" else read_completions(data, choice or CompletionChoice())
    progress.start(f"writing {form.title}")
    with tempfile.TemporaryDirectory(prefix="truegold-") as scratch, ExitStack() as stack:
        tables, rejected = tables_of(data, source, Path(scratch), progress, bounds)
        written.rejected.update(rejected)
        written.first_rejects = first_rejects(rejects_of(Path(scratch)))
        rows = read_tables(tables) if drawn is None else _with_rescued(read_tables(tables), data)
        folder.mkdir(parents=True, exist_ok=True)
        splits: dict[str, _SplitFile] = {}
        stated = _as_stated(
            rows if source.verifier is None else _read_by(rows, source.verifier, written), source, written
        )
        exported = (list(_export_rows(row, system, form, drawn, written)) for row in stated)
        for export_rows in islice(filter(None, exported), source.limit):
            for export_row in export_rows:
                split = SPLIT_NAMES[export_row.row["split"]]
                try:
                    record = form.record(export_row, splits[split].rows if split in splits else 0)
                except Unusable as error:
                    written.reject(export_row.row, error)
                    continue
                if split not in splits:
                    path = folder / f"{split}.{form.suffix}"
                    refuse_input(path, data)
                    splits[split] = stack.enter_context(_SplitFile(path, stack.enter_context(written_aside(path))))
                splits[split].write(record)
                written.count(export_row, form)
            progress.advance()
    written.splits = {file.path: file.rows for file in splits.values()}
    if not written.splits:
        raise InputError(f"{data} has no rows to export.", written.describe_losses())
    if drawn is not None:
        written.completions_left_out = drawn.left_out
        if not drawn.chat.use_template:
            written.notes.append("Sampling used no chat template (chat.use_template); TRL will apply one.")
    if (cleaned := data / "clean" / "stage.json").is_file():
        written.notes += cut_phrases(orjson.loads(cleaned.read_bytes()))
    written.notes += [
        f"{path} is from an earlier export and does not belong to this set."
        for path in _splits_in(out_dir)
        if path not in written.splits
    ]
    for file_name, source_name in form.companions.items():
        path = out_dir / file_name.replace("$NAME", name)
        path.parent.mkdir(exist_ok=True)
        text = files(__package__).joinpath("companions", source_name).read_text(encoding="utf-8")
        path.write_text(text.replace("$NAME", name), encoding="utf-8")
    card = data / "README.md" if (data / "README.md").is_file() else data / "export" / "README.md"
    (out_dir / "README.md").write_text(_render_card(out_dir, form, written, card), encoding="utf-8")
    return written


def _refuse_other_set(out_dir: Path, form: Format, data: Path) -> None:
    """Raise ConfigError if the export would overwrite its input, or files other than an earlier export of this
    format."""
    card = out_dir / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    others = [*_splits_in(out_dir), *([card] if text else [])]
    if not others or f"\n{_WRITTEN_FOR.format(form.title)}\n" in text:
        return
    title = next((other.title for other in FORMATS.values() if f"\n{_WRITTEN_FOR.format(other.title)}\n" in text), None)
    for other in others:
        refuse_input(other, data)
    what = "files that are not an export" if title is None else f"a set for {title}"
    raise ConfigError(
        f"--out {out_dir} has {what}, which would be overwritten: {', '.join(other.name for other in others)}.",
        f"Write to another folder: --out {out_dir}-{form.name}",
    )


def _day_of_set(out_dir: Path) -> str | None:
    """Return the time at which the set in a folder was written, or None if there is no set."""
    card = out_dir / "README.md"
    return f"{datetime.fromtimestamp(card.stat().st_mtime):%Y-%m-%d %H:%M}" if card.is_file() else None


_WRITTEN_FOR = "Written by truegold for {}."
"""The line of a set's card that states its format."""


def _with_rescued(rows: Iterator[Row], run_dir: Path) -> Iterator[Row]:
    seen: set[RowKey] = set()
    for row in rows:
        seen.add(row_key(row))
        yield row
    yield from (row for row in rescued_rows(run_dir) if row_key(row) not in seen)


def _as_stated(rows: Iterator[Row], source: FileSource, written: Written) -> Iterator[Row]:
    """Yield the rows with the verifier, licence and origin of `source`, if it has them."""
    for row in rows:
        if source.verifier is not None:
            arguments = orjson.loads(row["verifier_args"] or "{}")
            if row["gold"] is None and needs_gold(source.verifier, arguments):
                written.reject(row, Unusable("missing_gold", f"{source.verifier} needs a gold, and the row has none"))
                continue
            row["verifier"] = source.verifier
        if source.license is not None or source.origin is not None:
            row["meta"] = dump_json(with_notes(orjson.loads(row["meta"] or "{}"), source))
        yield row


def _read_by(rows: Iterator[Row], verifier: str, written: Written) -> Iterator[Row]:
    """Yield the rows whose gold the user's verifier can read. Reject other rows."""
    resolved = resolve(verifier)
    if judges_solutions(resolved) or gold_response(resolved, "1") is None:
        yield from rows
        return
    to_judge, to_write = tee(rows)
    perfect = (
        Item(gold_response(resolved, row["gold"] or "") or "", row["gold"], verifier, row["verifier_args"] or "{}")
        for row in to_judge
    )
    for row, verdict in zip(to_write, verify_batch(perfect, workers=1), strict=True):
        if row["gold"] is not None and verdict.reason is Reason.GOLD_UNPARSED:
            written.reject(row, Unusable("gold_unparsed", f"{verifier} cannot read the gold {row['gold']!r:.80}"))
        else:
            yield row


def _export_rows(
    row: Row, system: str | None, form: Format, drawn: RunCompletions | None, written: Written
) -> Iterator[ExportRow]:
    values = dict(row)
    flags: Any = values.get(FLAGS_FIELD.name) or earlier_flags(row)
    plain = {name: value for name, value in values.items() if name not in _ADDED_COLUMNS and value is not None}
    export_row = ExportRow(cast("Row", {"gold": None, "solution": None, **plain}), flags, system)
    if drawn is None:
        yield export_row
        return
    chat, right = drawn.chat, drawn.right.get(row["id"], [])
    wrong: Sequence[DrawnCompletion | None] = (
        drawn.wrong.get(row["id"], []) if form.completions == "pairs" else [None] * len(right)
    )
    if not right or not wrong:
        written.incomplete["no right completion" if not right else "no wrong completion"] += 1
    for completion, rejected in zip(right, wrong, strict=False):
        yield replace(
            export_row, system=system or chat.system, user=chat.user, completion=completion, rejected=rejected
        )


def _render_card(out_dir: Path, form: Format, written: Written, curated_card: Path) -> str:
    """Return the text of the README.md. `curated_card` is the path of the original set's card, and may not exist."""
    licenses = [name for name in written.licenses if name != NOT_STATED]
    files = [{"split": path.stem, "path": path.relative_to(out_dir).as_posix()} for path in written.splits]
    head: dict[str, Any] = {
        "configs": [{"config_name": "default", "data_files": files}],
        "tags": ["truegold", "reinforcement-learning", "verifiable-rewards"],
    }
    if licenses:
        head["license"] = licenses[0] if len(written.licenses) == 1 else "other"
    curated = curated_card.read_text(encoding="utf-8").split("---\n", 2)[-1] if curated_card.is_file() else ""
    body = templates_in(FOLDER).get_template("converted.md.jinja")
    text = body.render(
        name=out_dir.resolve().name,
        written_for=_WRITTEN_FOR.format(form.title),
        files=[(path.relative_to(out_dir).as_posix(), count) for path, count in written.splits.items()],
        licenses=written.licenses.most_common(),
        origins=written.origins.most_common(ORIGINS_SHOWN),
        verifiers=[(fingerprint(name), count) for name, count in written.verifiers.most_common()],
        curated=curated.replace("\n## ", "\n### ").replace("\n# ", "\n## "),
    )
    return f"{write_head(head)}\n{text}"


def check(path: Path, form: Format) -> Checked:
    """Check the file of a split by the trainer's schema, and by the trainer's own code if it is installed."""
    rows, mistakes = 0, []
    for rows, record in enumerate(_records(path), 1):
        try:
            form.schema.model_validate(record)
        except ValidationError as error:
            first = error.errors()[0]
            location = ".".join(map(str, first["loc"]))
            mistakes.append(f"row {rows}: {location}: {plain_words(first['msg'])}")
    readers = ["published schema"]
    if form.load is not None and (installed := _version(form.package)) is not None:
        readers.append(f"{form.package} {installed}")
        try:
            loaded = form.load(path)
        except Exception as error:
            # The trainer's code may raise any error. The mistake names the error that a user of the trainer sees.
            mistakes.append(f"{readers[-1]}: {type(error).__name__}: {error}")
        else:
            if loaded != rows:
                mistakes.append(f"{readers[-1]} reads {loaded} rows of {rows}")
    more = [f"... and {len(mistakes) - SHOWN_MISTAKES} more"] if len(mistakes) > SHOWN_MISTAKES else []
    return Checked(rows, tuple(readers), (*mistakes[:SHOWN_MISTAKES], *more))


class _SplitFile:
    """A context manager that writes one split in batches."""

    def __init__(self, path: Path, aside: Path) -> None:
        self.path = path
        self.rows = 0
        self._aside = aside
        self._batch: list[Mapping[str, Any]] = []
        self._parquet: pq.ParquetWriter | None = None
        self._lines = aside.open("wb") if path.suffix == ".jsonl" else None

    def write(self, record: Mapping[str, Any]) -> None:
        """Add one record."""
        self.rows += 1
        if self._lines is not None:
            self._lines.write(orjson.dumps(record) + b"\n")
            return
        self._batch.append(record)
        if len(self._batch) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._batch:
            return
        if self._parquet is None:
            # A column needs a type even if it has no values.
            schema = pa.schema([_typed(column) for column in pa.Table.from_pylist(self._batch).schema])
            self._parquet = pq.ParquetWriter(self._aside, schema, compression="zstd")
        self._parquet.write_table(pa.Table.from_pylist(self._batch, schema=self._parquet.schema))
        self._batch.clear()

    def __enter__(self) -> _SplitFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lines is not None:
            self._lines.close()
        self._flush()
        if self._parquet is not None:
            self._parquet.close()


def _typed(column: pa.Field) -> pa.Field:
    if column.name in TYPES:
        return column.with_type(TYPES[column.name])
    if pa.types.is_struct(column.type):
        return column.with_type(pa.struct([_typed(part) for part in column.type]))
    if pa.types.is_null(column.type):
        return column.with_type(pa.string())
    if pa.types.is_list(column.type) and pa.types.is_null(column.type.value_type):
        return column.with_type(pa.list_(pa.string()))
    return column


def _records(path: Path) -> Iterable[Mapping[str, Any]]:
    if path.suffix == ".parquet":
        yield from read_table(path, dict)
        return
    with path.open("rb") as lines:
        while chunk := list(islice(lines, BATCH_ROWS)):
            yield from map(orjson.loads, filter(bytes.strip, chunk))


def _package_name(out_dir: Path) -> str:
    """Return a name for a Python package, derived from the folder's name."""
    name = out_dir.resolve().name.lower()
    return "truegold_" + "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)


def _version(package: str | None) -> str | None:
    try:
        return None if package is None else version(package)
    except PackageNotFoundError:
        return None


def tables_of(
    data: Path, source: FileSource, scratch: Path, progress: Progress, bounds: LossBounds = NO_BOUNDS
) -> tuple[list[Path], Counter[str]]:
    """Return the tables of a set, and the number of rejected records by reason.

    truegold's own tables are returned as they are. Other files are read by the settings of `source`, and written to the
    folder `scratch` as tables. Raises InputError if there is no set, or more records are rejected than `bounds` allow.
    """
    if finished := finished_tables(data):
        _refuse_columns(finished[0].parents[1], source)
        return finished, Counter()
    files = _split_files(data) if data.is_dir() else [data]
    rejected: Counter[str] = Counter()
    tables = []
    for position, file in enumerate(files):
        out = scratch / f"read-{position}"
        out.mkdir()
        report = ingest({"data": file}, source.model_copy(update={"path": str(file)}), out, progress)
        for line in loss_lines([report]):
            progress.note(line)
        bounds.check("ingest", report)
        for reason, count in report.counts.items():
            if reason.startswith(REJECT):
                rejected[reason.removeprefix(REJECT)] += count
        tables.append(out / "rows.parquet")
    return tables, rejected


def finished_tables(data: Path) -> list[Path]:
    """Return truegold's own tables of a run or an exported set, or an empty list for other data."""
    folder = data / "export" if (data / "export").is_dir() else data
    # train.parquet comes before heldout.parquet.
    return sorted((folder / DATA_DIR).glob("*.parquet"), reverse=True)


def _refuse_columns(folder: Path, source: FileSource) -> None:
    """Raise ConfigError if `source` has settings for reading columns. They have no effect on truegold's own tables."""
    settings = {"preset": source.preset, **dict(source.columns), "last_turn_only": source.last_turn_only or None}
    if named := [name for name, value in settings.items() if value is not None]:
        raise ConfigError(
            f"{folder} holds truegold's own tables, which need no {', no '.join(named)}.", "Leave it out."
        )


def rejects_of(scratch: Path) -> list[Path]:
    """Return the files of rejected records that `tables_of` wrote to `scratch`."""
    return sorted(scratch.glob(f"read-*/{REJECTS_FILE}"))


def read_tables(tables: list[Path]) -> Iterator[Row]:
    """Yield the rows of several tables."""
    for table in tables:
        yield from read_rows(table)


_SPLIT_FILES = [f"{split}.{suffix}" for split in SPLIT_NAMES.values() for suffix in ("parquet", "jsonl")]


def _splits_in(folder: Path) -> list[Path]:
    return [
        file for name in _SPLIT_FILES for file in (folder / name, *sorted(folder.glob(f"*/{name}"))) if file.is_file()
    ]


def _split_files(folder: Path) -> list[Path]:
    """Return the files of splits in a folder or its subfolders. Raises InputError if there are none."""
    if not (files := _splits_in(folder)):
        if runs := runs_in(folder):
            raise InputError(f"{folder} holds runs of truegold, not a set.", f"Name one of them: {runs}.")
        hint = "Name a run with its stage `export`, an exported set, or a file: JSON Lines, Parquet, CSV."
        if others := data_files(folder):
            patterns = dict.fromkeys(f"'{file.parent / _stem_of(file)}*{file.suffix}'" for file in others)
            hint = f"Read its data files with a pattern: {' or '.join(list(patterns)[:SHOWN_MISTAKES])}."
        raise InputError(f"{folder} holds no set ({DATA_DIR}/*.parquet, {', '.join(_SPLIT_FILES)}).", hint)
    return files


def _stem_of(file: Path) -> str:
    """Return the common beginning of a split's file names: `train` for `train-00000-of-00001.parquet`."""
    return re.split(r"[-_.]\d", file.name)[0].removesuffix(file.suffix)
