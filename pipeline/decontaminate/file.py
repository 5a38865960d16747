"""Finds the problems of evaluation sets in training data: `truegold decontaminate --data F --against G --out D`.

    G: {"id": "g1", "question": "Tom has 3 red cars and buys 4 more. How many cars has he?"}
    F: {"id": "a", "question": "tom has 3 red cars and  buys 4 more. How many cars has he?"}                exact
       {"id": "b", "question": "Solve: Tom has 3 red cars and buys 4 more. How many cars has he? ..."}      overlap
       {"id": "c", "question": "Tom, who owned three red cars, buys 4 more. How many cars are his now?"}    reworded
       {"id": "d", "question": "Tom has 5 red cars and buys 9 more. How many cars has he?"}                 no match

`matches.parquet` names every set and its number of items in its schema's metadata (`against`, JSON), matches or not,
and has a row for each pair: id, row (the record's number from 1), against, against_id, kind, score,
evidence. A pair has the first kind that fits:

- exact: the same text but for case and spaces. score 1
- overlap: at least SHARE of the item's runs of five tokens, weighted by rarity (score; `near.grams`), and all of its
  words that carry meaning and quantities, these next to the same words. A renumbered instance of the item has not
- reworded: the same problem in other words, with the same quantities (`near.relation`). score: the probability

Items of fewer than five words have no runs; they are found as exact or reworded ones. The evidence has both texts, so
that a person can judge each pair. Memory: some 500 bytes for each distinct text of 250 characters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from truegold.pipeline.decontaminate.eval_sets import read_eval_set
from truegold.pipeline.dedup.near import Comparer, Corpus, CorpusBuilder, Relation, Witness, find_links
from truegold.pipeline.dedup.near.grams import GramIndex
from truegold.pipeline.dedup.near.quantities import SPELLING
from truegold.pipeline.dedup.near.sparse import Floats, Ints
from truegold.pipeline.ingest.problem_batches import ProblemColumns, read_problems
from truegold.pipeline.rows import TableWriter, dump_json
from truegold.pipeline.running.progress import Progress

MATCHES_FILE = "matches.parquet"
MATCH_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("row", pa.int64()),
        ("against", pa.string()),
        ("against_id", pa.string()),
        ("kind", pa.string()),
        ("score", pa.float64()),
        ("evidence", pa.string()),
    ]
)
AGAINST = "against"
"""Under this name the file's metadata has what it was made from: {set: items}."""
SHARE = 0.9
"""Of an item's runs, by weight."""
MIN_WEIGHT = 1.5
"""Shared weight below which an overlap tells nothing: fewer than two rare runs."""
CONTEXTS = 0.75
"""Of an item's quantities with their neighbouring words, the share that the text must have."""
SHOWN_CHARS = 500

KINDS = ("exact", "overlap", "reworded")


@dataclass
class _Side:
    """Ids and numbers of the records of one side, the set each is of, and (for items) the prompts."""

    ids: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Pairs:
    """Matches of distinct texts: the training text, the item's text, the place in KINDS, and the score."""

    text: Ints
    item: Ints
    kind: npt.NDArray[np.int8]
    score: Floats


def decontaminate_file(
    data: Path,
    against: Sequence[str],
    out_dir: Path,
    columns: ProblemColumns,
    against_columns: ProblemColumns,
    progress: Progress,
) -> dict[str, int]:
    """Write `matches.parquet`; how many records there are, how many of them match, and matches by kind and set.

    Raises InputError where a file or set cannot be read or has no column for the prompt.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    builder, grams = CorpusBuilder(), GramIndex()
    items = _Side()
    builder.listen(grams.learn)
    progress.start("reading evaluation sets")
    for number, spec in enumerate(against):
        for batch in read_eval_set(spec, against_columns):
            items.ids += batch.ids
            items.prompts += [prompt[:SHOWN_CHARS] for prompt in batch.prompts]
            items.sets += [number] * len(batch)
            builder.add(batch.prompts, batch.golds, batch.solutions)
            progress.advance(len(batch))
    item_texts = builder.texts
    builder.listen(grams.look_up)
    rows = _Side()
    progress.start("reading the data")
    for batch in read_problems(data, columns):
        rows.ids += batch.ids
        rows.numbers += batch.numbers
        builder.add(batch.prompts, batch.golds, batch.solutions)
        progress.advance(len(batch))
    corpus = builder.finish()
    comparer = Comparer(corpus.features)
    pairs = _pairs(corpus, comparer, grams, item_texts, out_dir, progress)
    return _write(data, columns, out_dir / MATCHES_FILE, against, items, rows, corpus, comparer, pairs, progress)


def _pairs(
    corpus: Corpus, comparer: Comparer, grams: GramIndex, item_texts: int, scratch: Path, progress: Progress
) -> _Pairs:
    """All matching pairs of texts. Texts below `item_texts` are items; the first kind that fits comes first."""
    own = np.arange(item_texts)  # an item's text that the data has too
    side = (np.arange(len(corpus.features)) >= item_texts).astype(np.int64)
    held = grams.contained(SHARE, MIN_WEIGHT)
    sound = np.ones(len(held.text), dtype=bool)
    sound[comparer.only(held.item, held.text, SPELLING)[0]] = False
    sound &= comparer.words_missing(held.item, held.text) == 0
    sound &= comparer.contexts_held(held.item, held.text) >= CONTEXTS
    links = find_links(
        corpus.features,
        comparer,
        corpus.text_gold,
        split=side,
        texts=math.isqrt(2 * item_texts * (len(side) - item_texts)),
        scratch=scratch,
        progress=progress,
    ).of(Relation.SAME_PROBLEM)
    probability = 1 / (1 + np.exp(-links.score.astype(np.float64)))
    text = np.concatenate([own, held.text[sound], links.right])
    item = np.concatenate([own, held.item[sound], links.left])
    kind = np.repeat(np.arange(3, dtype=np.int8), [len(own), int(sound.sum()), len(links)])
    score = np.concatenate([np.ones(len(own)), held.share[sound], probability])
    order = np.lexsort((kind, item, text))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(text[order]) != 0) | (np.diff(item[order]) != 0)
    kept = order[first]
    return _Pairs(text[kept], item[kept], kind[kept], score[kept].astype(np.float32))


def _write(
    data: Path,
    columns: ProblemColumns,
    target: Path,
    against: Sequence[str],
    items: _Side,
    rows: _Side,
    corpus: Corpus,
    comparer: Comparer,
    pairs: _Pairs,
    progress: Progress,
) -> dict[str, int]:
    told = _evidence(corpus, comparer, pairs)
    item_rows = _rows_by_text(corpus.text[: len(items.ids)])
    text = corpus.text[len(items.ids) :]
    first, last = np.searchsorted(pairs.text, text), np.searchsorted(pairs.text, text, side="right")
    matched = np.flatnonzero((last > first) & (text >= 0))
    counts = {"records": len(rows.ids), "matching": len(matched)}
    aside = target.with_name(target.name + ".tmp")
    progress.start("writing", len(matched))
    prompts = _prompts(data, columns, matched)
    sizes = {spec: items.sets.count(number) for number, spec in enumerate(against)}
    with TableWriter(aside, MATCH_SCHEMA.with_metadata({AGAINST: dump_json(sizes)})) as writer:
        for row, prompt in zip(matched.tolist(), prompts, strict=True):
            for pair in range(int(first[row]), int(last[row])):
                for item in item_rows[int(pairs.item[pair])]:
                    kind, spec = KINDS[pairs.kind[pair]], against[items.sets[item]]
                    shown = dump_json({"text": prompt, "item": items.prompts[item]})
                    writer.write(
                        {
                            "id": rows.ids[row],
                            "row": rows.numbers[row],
                            "against": spec,
                            "against_id": items.ids[item],
                            "kind": kind,
                            "score": float(pairs.score[pair]),
                            "evidence": shown if kind == "exact" else f"{told[pair][:-1]},{shown[1:]}",
                        }
                    )
                    counts[f"{kind} {spec}"] = counts.get(f"{kind} {spec}", 0) + 1
            progress.advance()
    aside.replace(target)
    return counts


def _evidence(corpus: Corpus, comparer: Comparer, pairs: _Pairs) -> list[str]:
    """The measures of each pair as JSON; see `near.evidence`. Here is the training text, there the item."""
    return Witness(corpus.features, comparer).tell(pairs.text, pairs.item, pairs.score).to_list()


def _rows_by_text(text: Ints) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row, number in enumerate(text.tolist()):
        found.setdefault(number, []).append(row)
    return found


def _prompts(data: Path, columns: ProblemColumns, wanted: Ints) -> Iterator[str]:
    """The prompts of some records, cut to what is shown; the file is read once more instead of holding all of them."""
    start = 0
    marks = np.zeros(int(wanted.max(initial=-1)) + 1, dtype=bool)
    marks[wanted] = True
    for batch in read_problems(data, columns) if len(wanted) else ():
        for place in np.flatnonzero(marks[start : start + len(batch)]).tolist():
            yield batch.prompts[place][:SHOWN_CHARS]
        start += len(batch)
        if start >= len(marks):
            return
