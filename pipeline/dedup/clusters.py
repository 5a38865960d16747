"""Finds clusters of records with the same problem in a file: `truegold dedup --data problems.jsonl --out folder`.

    {"id": "a", "question": "Tom has 3 red cars and buys 4 more. How many cars has he?", "answer": "7"}
    {"id": "b", "question": "Tom, who owned three red cars, buys 4 more. How many cars does he have?", "answer": "7"}
    {"id": "c", "question": "Tom has 5 red cars and buys 9 more. How many cars has he?", "answer": "14"}

becomes `clusters.parquet` with a row for each record, in the order of the file:

    id  row  cluster  template  relation       keep   kept_id  evidence
    a   1    1        1         same_problem   true            {"with": "b", "with_row": 2, "score": ...}
    b   2    2 ...

- `row` is the record's number, from 1.
- `cluster` is the same for all records of one problem: the number of the best of these records.
- `template` is the same for all instances of a template (same words, other quantities). It is null for a record without
  other instances.
- `relation` is exact, same_problem, same_template, edited_variant or unrelated. It compares a dropped record with the
  record that was kept in its place, and a kept record with the closest record. `with` in the evidence names this
  record.
- `keep` is true for a kept record. For a dropped record, `kept_id` names the record that was kept instead.

Copies with different golds are in `flags.parquet` as `conflicting_labels`. The best record of each gold in a cluster
is kept. `kept.jsonl` and `dropped.jsonl` have the records in the format of the file.

Memory: about 800 bytes for a record of 250 characters, and far less for exact copies and records without a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.dedup.flags import Conflict, conflict_flag
from truegold.pipeline.near.arrays import Ints, Marks, map_in_threads, read_ahead
from truegold.pipeline.near.confirmation import add_copies, confirm_star_links
from truegold.pipeline.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.near.duplicates import Duplicates, find_duplicates
from truegold.pipeline.near.gold_keys import shown_gold
from truegold.pipeline.near.measures import Comparer, Relation, describe_pairs
from truegold.pipeline.near.related_pairs import ShardRunner, find_links, run_in_threads
from truegold.pipeline.near.squashed import SquashedKeys
from truegold.pipeline.problems import ProblemColumns, read_problems
from truegold.pipeline.running.disk import written_aside
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.sources.data_files import split_file
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE
from truegold.pipeline.tables.rows import RowReference, TableWriter

CLUSTERS_FILE = "clusters.parquet"
CLUSTER_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("row", pa.int64()),
        ("cluster", pa.int64()),
        ("template", pa.int64()),
        ("relation", pa.string()),
        ("keep", pa.bool_()),
        ("kept_id", pa.string()),
        ("evidence", pa.string()),
    ]
)
WRITE_ROWS = 50_000


@dataclass(frozen=True)
class _Records:
    """All records of a file, with their comparison."""

    ids: pl.Series
    numbers: pl.Series
    corpus: Corpus
    comparer: Comparer
    duplicates: Duplicates


def find_clusters(
    source: Path,
    out_dir: Path,
    columns: ProblemColumns,
    template_cap: int | None,
    progress: Progress,
    run_shards: ShardRunner = run_in_threads,
) -> dict[str, int]:
    """Write `clusters.parquet` and `flags.parquet`, and split `source` into kept and dropped records.

    Returns the number of records with each outcome. `run_shards` does not affect it. Temporary files are in `out_dir`.
    Raises InputError if the file cannot be read or has no prompt column.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    progress.start("reading")
    builder, keys = CorpusBuilder(out_dir), SquashedKeys(out_dir)
    builder.listen_to_texts(keys.add)
    ids, numbers = [pl.Series([], dtype=pl.String)], [pl.Series([], dtype=pl.Int64)]
    for batch in read_ahead(read_problems(source, columns)):
        ids.append(pl.Series(batch.ids, dtype=pl.String))
        numbers.append(pl.Series(batch.row_numbers, dtype=pl.Int64))
        builder.add(batch.prompts, batch.golds, batch.solution_chars)
        progress.advance(len(batch))
    corpus = builder.finish()
    del builder
    comparer = Comparer(corpus.features)
    links = find_links(corpus.features, comparer, run_shards=run_shards, progress=progress)
    links = add_copies(confirm_star_links(links, corpus, comparer), keys.copies(corpus.texts.read), corpus)
    duplicates = find_duplicates(corpus, links, template_cap)
    del links
    records = _Records(pl.concat(ids, rechunk=True), pl.concat(numbers, rechunk=True), corpus, comparer, duplicates)
    progress.start("writing", len(records.ids))
    flags = _write_flags(out_dir / FLAGS_FILE, source, columns, records)
    _write_clusters(out_dir / CLUSTERS_FILE, records, progress)
    split_file(source, set(records.numbers.filter(pl.Series(~duplicates.keep))), out_dir)
    return _count(records) | {"conflicting_labels": flags}


def _write_clusters(path: Path, records: _Records, progress: Progress) -> None:
    ids, numbers, duplicates = records.ids, records.numbers, records.duplicates
    labels = pl.Series([relation.label for relation in Relation])

    def make_table(start: int) -> pa.Table:
        rows = np.arange(start, min(start + WRITE_ROWS, len(ids)))
        kept, template = duplicates.kept_for[rows], duplicates.template[rows]
        frame = pl.DataFrame(
            {
                "id": ids.gather(rows),
                "row": numbers.gather(rows),
                "cluster": numbers.gather(duplicates.cluster[rows]),
                "template": _null_unless(template >= 0, numbers.gather(np.maximum(template, 0))),
                "relation": labels.gather(duplicates.relation[rows]),
                "keep": kept == rows,
                "kept_id": _null_unless(kept != rows, ids.gather(kept)),
                "evidence": _evidence(rows, records),
            }
        )
        return frame.to_arrow().cast(CLUSTER_SCHEMA)

    with written_aside(path) as aside, pq.ParquetWriter(aside, CLUSTER_SCHEMA, compression="zstd") as writer:
        for table in map_in_threads(make_table, range(0, len(ids), WRITE_ROWS)):
            writer.write_table(table)
            progress.advance(table.num_rows)


def _null_unless(condition: Marks, values: pl.Series) -> pl.Series:
    return values.set(pl.Series(~condition), None)


def _evidence(rows: Ints, records: _Records) -> pl.Series:
    """Return the evidence of each row: the compared record's name and, unless the two are copies, their measures."""
    corpus, duplicates = records.corpus, records.duplicates
    other = duplicates.other[rows]
    measured = (other >= 0) & (duplicates.relation[rows] != Relation.EXACT)
    here, there = corpus.text[rows[measured]], corpus.text[other[measured]]
    details = np.full(len(rows), "{}", dtype=object)
    score = duplicates.score[rows[measured]]
    details[measured] = describe_pairs(corpus.features, records.comparer, here, there, score).to_numpy()
    other_row = np.maximum(other, 0)
    names = pl.DataFrame({"with": records.ids.gather(other_row), "with_row": records.numbers.gather(other_row)})
    parts = pl.DataFrame(
        {
            "tied": other >= 0,
            "capped": duplicates.capped[rows],
            "name": names.select(pl.struct("with", "with_row").struct.json_encode().alias("name"))["name"],
            "detail": pl.Series(details.tolist(), dtype=pl.String),
        }
    )
    # Two JSON objects become one: {a} and {b} give {a,b}.
    joined = pl.col("name").str.head(-1) + pl.when(pl.col("detail") == "{}").then(pl.lit("}")).otherwise(
        pl.lit(",") + pl.col("detail").str.tail(-1)
    )
    capped = pl.when("capped").then(joined.str.head(-1) + ',"template_cap":true}').otherwise(joined)
    return parts.select(pl.when("tied").then(capped).otherwise(pl.lit("{}")).alias("evidence"))["evidence"]


def _write_flags(path: Path, source: Path, columns: ProblemColumns, records: _Records) -> int:
    """Write a flag for each record whose copies have different golds, and return the number of flags."""
    duplicates, golds = records.duplicates, records.corpus.golds
    rows = np.flatnonzero(duplicates.conflict & duplicates.copies_conflict)
    conflicts = {cluster: Conflict() for cluster in duplicates.cluster[rows].tolist()}
    start = 0
    # The file is read again only if there are conflicts.
    for batch in read_problems(source, columns, clean=False) if len(rows) else ():
        for row in rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + len(batch))].tolist():
            conflict, prompt = conflicts[int(duplicates.cluster[row])], batch.prompts[row - start]
            conflict.add(records.numbers[row], prompt, shown_gold(golds[row]), int(records.corpus.gold[row]))
        start += len(batch)
    with TableWriter(path, FLAG_SCHEMA) as writer:
        for row in rows[np.argsort(duplicates.cluster[rows], kind="stable")].tolist():
            reference: RowReference = {
                "id": records.ids[row],
                "source": source.name,
                "source_row": records.numbers[row],
            }
            evidence = conflicts[int(duplicates.cluster[row])].evidence()
            writer.write(conflict_flag(reference, evidence, bool(duplicates.copies_conflict[row])))
    return writer.rows


def _count(records: _Records) -> dict[str, int]:
    duplicates = records.duplicates
    counts = {"records": len(records.ids), "keep": int(duplicates.keep.sum())}
    copies = ~duplicates.keep & ~duplicates.capped
    for relation in (Relation.EXACT, Relation.SAME_PROBLEM):
        counts[f"drop {relation.label}"] = int((copies & (duplicates.relation == relation)).sum())
    counts["drop template_cap"] = int(duplicates.capped.sum())
    for relation in (Relation.SAME_TEMPLATE, Relation.EDITED_VARIANT):
        counts[f"linked {relation.label}"] = int((duplicates.keep & (duplicates.relation == relation)).sum())
    counts["without_prompt"] = int((records.corpus.text < 0).sum())
    return {name: count for name, count in counts.items() if count or name in ("records", "keep")}
