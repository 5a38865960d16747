"""Deduplicates a whole file: `truegold dedup --data problems.jsonl --out folder`.

    {"id": "a", "question": "Tom has 3 red cars and buys 4 more. How many cars has he?", "answer": "7"}
    {"id": "b", "question": "Tom, who owned three red cars, buys 4 more. How many cars does he have?", "answer": "7"}
    {"id": "c", "question": "Tom has 5 red cars and buys 9 more. How many cars has he?", "answer": "14"}

becomes `clusters.parquet` with a row for each record, in the order of the file:

    id  row  cluster  template  relation       keep   kept_id  evidence
    a   1    1        1         same_problem   true            {"with": "b", "with_row": 2, "score": ...}
    b   2    2 ...

row: the record's number from 1. cluster: the row that stands for all records of the same problem; equal exactly for
those. template: the row that stands for its instances of one template, empty where there is only one. relation: of a
record that goes to the one that stays for it, else the closest to any other record (exact, same_problem,
same_template, edited_variant, unrelated); `with` names the other. keep: whether the record stays; kept_id: the one
that stays for it. Records of a cluster whose golds differ all go into `flags.parquet` as `conflicting_labels`, and the
best record of each gold stays.

Memory: some 800 bytes a record of 250 characters. Exact copies and records without a prompt cost far less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.dedup.near import (
    Comparer,
    CorpusBuilder,
    Duplicates,
    Relation,
    Spread,
    Witness,
    find_duplicates,
    find_links,
    in_threads,
)
from truegold.pipeline.dedup.near.corpus import Corpus
from truegold.pipeline.dedup.near.workers import ahead, in_order_of
from truegold.pipeline.ingest.problem_batches import ProblemColumns, read_problems
from truegold.pipeline.ledger import FLAG_SCHEMA, FLAGS_FILE
from truegold.pipeline.rows import TableWriter, dump_json
from truegold.pipeline.running.progress import Progress

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
CONFLICT_CONFIDENCE = 0.9
"""That something is wrong with one of the labels; now and then both are right, in other words."""
SHOWN = 10
"""Records named in a conflict's evidence."""
GOLD_CHARS = 200


@dataclass
class _Records:
    """Ids and numbers of all records, as columns."""

    ids: list[pl.Series] = field(default_factory=list)
    numbers: list[pl.Series] = field(default_factory=list)

    def columns(self) -> tuple[pl.Series, pl.Series]:
        """Both as one series each."""
        ids = pl.concat([pl.Series("id", [], dtype=pl.String), *self.ids], rechunk=True)
        return ids, pl.concat([pl.Series("row", [], dtype=pl.Int64), *self.numbers], rechunk=True)


def dedup_file(
    source: Path,
    out_dir: Path,
    columns: ProblemColumns,
    template_cap: int | None,
    progress: Progress,
    spread: Spread = in_threads,
) -> dict[str, int]:
    """Write `clusters.parquet` and `flags.parquet` and return how many records there are by what became of them.

    spread: who compares; the result is the same. Temporary files lie in `out_dir` while it does.
    Raises InputError where the file cannot be read or has no column for the prompt.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    progress.start("reading")
    records, builder = _Records(), CorpusBuilder()
    for batch in ahead(read_problems(source, columns)):
        records.ids.append(pl.Series("id", batch.ids, dtype=pl.String))
        records.numbers.append(pl.Series("row", batch.numbers, dtype=pl.Int64))
        builder.add(batch.prompts, batch.golds, batch.solutions)
        progress.advance(len(batch))
    corpus = builder.finish()
    del builder
    ids, numbers = records.columns()
    comparer = Comparer(corpus.features)
    links = find_links(corpus.features, comparer, corpus.text_gold, scratch=out_dir, spread=spread, progress=progress)
    found = find_duplicates(corpus, links, template_cap)
    del links
    progress.start("writing", len(ids))
    flags = _write_flags(out_dir / FLAGS_FILE, source.name, ids, numbers, corpus, found)
    _write_clusters(out_dir / CLUSTERS_FILE, ids, numbers, corpus, found, Witness(corpus.features, comparer), progress)
    return _counts(corpus, found) | {"conflicting_labels": flags}


def _write_clusters(
    path: Path,
    ids: pl.Series,
    numbers: pl.Series,
    corpus: Corpus,
    found: Duplicates,
    witness: Witness,
    progress: Progress,
) -> None:
    labels = pl.Series([relation.label for relation in Relation])
    aside = path.with_name(path.name + ".tmp")

    def table(start: int) -> pa.Table:
        rows = np.arange(start, min(start + WRITE_ROWS, len(ids)))
        kept, template = found.kept_for[rows], found.template[rows]
        frame = pl.DataFrame(
            {
                "id": ids.gather(rows),
                "row": numbers.gather(rows),
                "cluster": numbers.gather(found.cluster[rows]),
                "template": _where(template >= 0, numbers.gather(np.maximum(template, 0))),
                "relation": labels.gather(found.relation[rows]),
                "keep": kept == rows,
                "kept_id": _where(kept != rows, ids.gather(kept)),
                "evidence": _evidence(rows, ids, numbers, corpus, found, witness),
            }
        )
        return frame.to_arrow().cast(CLUSTER_SCHEMA)

    with pq.ParquetWriter(aside, CLUSTER_SCHEMA, compression="zstd") as writer:
        for part in in_order_of(range(0, len(ids), WRITE_ROWS), table):
            writer.write_table(part)
            progress.advance(part.num_rows)
    aside.replace(path)


def _where(condition: np.ndarray[tuple[int], np.dtype[np.bool_]], values: pl.Series) -> pl.Series:
    return values.set(pl.Series(~condition), None)


def _evidence(
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    ids: pl.Series,
    numbers: pl.Series,
    corpus: Corpus,
    found: Duplicates,
    witness: Witness,
) -> pl.Series:
    """`{}`, or the other record and, unless it is a copy, what the two have in common."""
    other = found.other[rows]
    measured = (other >= 0) & (found.relation[rows] != Relation.EXACT)
    here, there = corpus.text[rows[measured]], corpus.text[other[measured]]
    details = np.full(len(rows), "{}", dtype=object)
    details[measured] = witness.tell(here, there, found.score[rows[measured]]).to_numpy()
    named = pl.DataFrame({"with": ids.gather(np.maximum(other, 0)), "with_row": numbers.gather(np.maximum(other, 0))})
    both = pl.DataFrame(
        {
            "tied": other >= 0,
            "capped": found.capped[rows],
            "name": named.select(pl.struct("with", "with_row").struct.json_encode().alias("name"))["name"],
            "detail": pl.Series(details.tolist(), dtype=pl.String),
        }
    )
    # Two JSON objects as one: {a} and {b} become {a,b}.
    joined = pl.col("name").str.head(-1) + pl.when(pl.col("detail") == "{}").then(pl.lit("}")).otherwise(
        pl.lit(",") + pl.col("detail").str.tail(-1)
    )
    capped = pl.when("capped").then(joined.str.head(-1) + ',"template_cap":true}').otherwise(joined)
    return both.select(pl.when("tied").then(capped).otherwise(pl.lit("{}")).alias("evidence"))["evidence"]


def _write_flags(path: Path, source: str, ids: pl.Series, numbers: pl.Series, corpus: Corpus, found: Duplicates) -> int:
    """One flag for each record of a cluster with several golds; their number."""
    with TableWriter(path, FLAG_SCHEMA) as writer:
        for members in conflicts(found):
            evidence = {
                "golds": gold_counts(corpus, members),
                "rows": [numbers[row] for row in members[:SHOWN]],
            }
            for row in members:
                writer.write(
                    {
                        "id": ids[row],
                        "source": source,
                        "source_row": numbers[row],
                        "reason": "conflicting_labels",
                        "detector": "dedup",
                        "confidence": CONFLICT_CONFIDENCE,
                        "blocks": True,
                        "evidence": dump_json(evidence),
                        "suggestion": None,
                    }
                )
    return writer.rows


def conflicts(found: Duplicates) -> Iterator[list[int]]:
    """The rows of each cluster with several golds."""
    rows = np.flatnonzero(found.conflict)
    rows = rows[np.argsort(found.cluster[rows], kind="stable")]
    heads = np.flatnonzero(np.diff(found.cluster[rows], prepend=-1))
    for part in np.split(rows, heads[1:]) if len(rows) else []:
        yield part.tolist()


def gold_counts(corpus: Corpus, members: list[int]) -> dict[str, int]:
    """How often each gold is given; of one number each (see `Corpus.gold`) under the way it is written first."""
    written: dict[int, str] = {}
    counts: dict[str, int] = {}
    for row in members:
        gold = corpus.golds[row]
        if gold is not None:
            text = written.setdefault(int(corpus.gold[row]), gold[:GOLD_CHARS])
            counts[text] = counts.get(text, 0) + 1
    return dict(list(counts.items())[:SHOWN])


def _counts(corpus: Corpus, found: Duplicates) -> dict[str, int]:
    gone = ~found.keep
    counts = {"records": len(found.cluster), "keep": int(found.keep.sum())}
    copies = gone & ~found.capped
    for relation in (Relation.EXACT, Relation.SAME_PROBLEM):
        counts[f"drop {relation.label}"] = int((copies & (found.relation == relation)).sum())
    counts["drop template_cap"] = int(found.capped.sum())
    for relation in (Relation.SAME_TEMPLATE, Relation.EDITED_VARIANT):
        counts[f"linked {relation.label}"] = int((found.keep & (found.relation == relation)).sum())
    counts["without_prompt"] = int((corpus.text < 0).sum())
    return {name: count for name, count in counts.items() if count or name in ("records", "keep")}
