"""Finds the problems of evaluation sets in training data: `truegold decontaminate --data F --against G --out D`.

    G: {"id": "g1", "question": "Tom has 3 red cars and buys 4 more. How many cars has he?"}
    F: {"id": "a", "question": "tom has 3 red cars and  buys 4 more. How many cars has he?"}                exact
       {"id": "b", "question": "Solve: Tom has 3 red cars and buys 4 more. How many cars has he? ..."}      overlap
       {"id": "c", "question": "Tom, who owned three red cars, buys 4 more. How many cars are his now?"}    reworded
       {"id": "d", "question": "Tom has 5 red cars and buys 9 more. How many cars has he?"}                 no match

`matches.parquet` names every set and its number of items in its schema's metadata (`against`, JSON), matches or not,
and has a row for each pair: id, row (the record's number from 1), against, against_id, kind, score,
evidence. A pair has the first kind that fits:

- `exact` pairs have the same prompt (`near.exact_copies`); their score is 1.
- In an `overlap` the record has at least MIN_SHARE of the item's runs of five tokens, weighted by rarity (the score;
  `near.containment`), and all of its words that carry meaning and quantities, these next to the same words. A
  renumbered instance of the item has not.
- `reworded` pairs are the same problem in other words, with the same quantities (`near.measures`); the score is the
  probability of that.
- `translated` pairs, with an encoder only, are in two scripts and agree in numbers and question
  (`near.embedding`).

Items of fewer than five words have no runs; they match as exact or reworded ones. The evidence has both texts, so
that a person can judge each pair. Memory: some 500 bytes for each distinct text of 250 characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.config.stages import MatchKind
from truegold.pipeline.decontaminate.eval_sets import read_eval_set
from truegold.pipeline.near import (
    Comparer,
    Corpus,
    CorpusBuilder,
    Relation,
    confirm_links,
    describe_pairs,
    find_links,
)
from truegold.pipeline.near.arrays import Floats, Ints, read_ahead
from truegold.pipeline.near.containment import GramIndex
from truegold.pipeline.near.embedding import Encoder, add_proposed_links, find_translations, propose
from truegold.pipeline.problems import Batch, ProblemColumns, read_problems
from truegold.pipeline.running.disk import written_aside
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.sources.data_files import split_file
from truegold.pipeline.tables.reasons import AGAINST, MATCH_SCHEMA, MATCHES_FILE
from truegold.pipeline.tables.rows import TableWriter, dump_json
from truegold.pipeline.text.quantities import SPELLING_MARGIN
from truegold.verifiers import InputError

MIN_SHARE = 0.9
"""An overlap needs at least this share of an item's runs, by weight."""
MIN_WEIGHT = 1.5
"""Shared weight below which an overlap tells nothing: fewer than two rare runs."""
MIN_CONTEXTS = 0.75
"""An overlap needs at least this share of an item's quantities with the words next to them."""
SHOWN_CHARS = 500
"""Characters shown of each text."""

KINDS: tuple[str, ...] = (*MatchKind, "translated")
"""The last kind occurs with an encoder only."""
TRANSLATION_SCORE = 0.5
"""Nothing says how likely a translation is one, beyond that numbers and question agree."""
ReadData = Callable[[bool], Iterable[Batch]]
"""Reads the data from its start, in batches: cleaned, or with False as it is shown."""


@dataclass
class _Records:
    """The records of the data, or the items of all evaluation sets."""

    ids: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    """The evaluation set of each item, by its position."""
    prompts: list[str] = field(default_factory=list)
    """The prompts of items, as they are shown."""


@dataclass(frozen=True)
class _Pairs:
    """Matches of distinct texts."""

    text: Ints
    """The text in the training data."""
    item: Ints
    """The item's text."""
    kind: npt.NDArray[np.int8]
    """The index in KINDS."""
    score: Floats


@dataclass(frozen=True)
class _Comparison:
    """What was compared, and the pairs that match."""

    eval_sets: Sequence[str]
    eval_items: _Records
    rows: _Records
    corpus: Corpus
    comparer: Comparer
    pairs: _Pairs


def find_leaks_in_file(
    data: Path,
    against: Mapping[str, ProblemColumns],
    out_dir: Path,
    columns: ProblemColumns,
    progress: Progress,
    encoder: Encoder | None = None,
) -> dict[str, int]:
    """Write `matches.parquet`, and the records that match nothing and that match in the form of the file `data`.

    Returns what `find_matches` returns. Raises InputError where a file or set cannot be read or has no column for the
    prompt.
    """

    def read_data(clean: bool) -> Iterator[Batch]:
        return read_problems(data, columns, clean=clean)

    counts = find_matches(read_data, against, out_dir, progress, encoder)
    split_file(data, set(pl.read_parquet(out_dir / MATCHES_FILE, columns=["row"])["row"]), out_dir)
    return counts


def find_matches(
    read_data: ReadData,
    against: Mapping[str, ProblemColumns],
    out_dir: Path,
    progress: Progress,
    encoder: Encoder | None = None,
) -> dict[str, int]:
    """Write `matches.parquet`; return how many records there are and match, and the matches by kind and set.

    With an `encoder` the nearest neighbours of each item are read as well (`near.embedding`).

    `against` has the columns of each evaluation set that are not to be guessed. Raises InputError where no item of a
    set has a prompt: comparing with it would prove nothing.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    builder, grams = CorpusBuilder(out_dir), GramIndex()
    eval_items = _Records()
    builder.listen(grams.learn)
    progress.start("reading evaluation sets")
    for set_index, (spec, against_columns) in enumerate(against.items()):
        has_prompt = False
        for batch in read_eval_set(spec, against_columns):
            eval_items.ids += batch.ids
            eval_items.prompts += [prompt[:SHOWN_CHARS] for prompt in batch.prompts]
            eval_items.sets += [set_index] * len(batch)
            has_prompt = has_prompt or any(batch.prompts)
            builder.add(batch.prompts, batch.golds, batch.solution_chars)
            progress.advance(len(batch))
        if not has_prompt:
            raise InputError(f"{spec}: no record has a prompt to compare with.", against_columns.spell("prompt"))
    item_texts = builder.texts
    builder.listen(grams.look_up)
    rows = _Records()
    progress.start("reading the data")
    for batch in read_ahead(read_data(True)):
        rows.ids += batch.ids
        rows.numbers += batch.row_numbers
        builder.add(batch.prompts, batch.golds, batch.solution_chars)
        progress.advance(len(batch))
    corpus = builder.finish()
    comparer = Comparer(corpus.features)
    pairs = _find_pairs(corpus, comparer, grams, item_texts, out_dir, progress, encoder)
    comparison = _Comparison(list(against), eval_items, rows, corpus, comparer, pairs)
    return _write_matches(read_data, out_dir / MATCHES_FILE, comparison, progress)


def _find_pairs(
    corpus: Corpus,
    comparer: Comparer,
    grams: GramIndex,
    item_texts: int,
    scratch: Path,
    progress: Progress,
    encoder: Encoder | None,
) -> _Pairs:
    """Return all matching pairs of texts with the first kind that fits. Texts below `item_texts` are items."""
    # An item's text that the data has too is the same text here.
    exact = np.arange(item_texts)
    side = (np.arange(len(corpus.features)) >= item_texts).astype(np.int64)
    held = grams.contained(MIN_SHARE, MIN_WEIGHT)
    sound = np.ones(len(held.text), dtype=bool)
    sound[comparer.missing_quantities(held.item, held.text, SPELLING_MARGIN)[0]] = False
    sound &= comparer.count_missing_words(held.item, held.text) == 0
    sound &= comparer.share_of_contexts(held.item, held.text) >= MIN_CONTEXTS
    texts = math.isqrt(2 * item_texts * (len(side) - item_texts))
    links = find_links(corpus.features, comparer, split=side, texts=texts, progress=progress)
    translated = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if encoder is not None:
        progress.start("encoding")
        proposals = propose(corpus, encoder, item_texts)
        links = add_proposed_links(links, comparer, proposals, texts)
        translations = find_translations(corpus, proposals)
        translated = translations.right[translations.is_sure], translations.left[translations.is_sure]
    links = confirm_links(links, corpus, comparer, texts).having(Relation.SAME_PROBLEM)
    probability = 1 / (1 + np.exp(-links.score.astype(np.float64)))
    text = np.concatenate([exact, held.text[sound], links.right, translated[0]])
    item = np.concatenate([exact, held.item[sound], links.left, translated[1]])
    kinds = [len(exact), int(sound.sum()), len(links), len(translated[0])]
    kind = np.repeat(np.arange(len(KINDS), dtype=np.int8), kinds)
    unknown = np.full(len(translated[0]), TRANSLATION_SCORE)
    score = np.concatenate([np.ones(len(exact)), held.share[sound], probability, unknown])
    order = np.lexsort((kind, item, text))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(text[order]) != 0) | (np.diff(item[order]) != 0)
    kept = order[first]
    return _Pairs(text[kept], item[kept], kind[kept], score[kept].astype(np.float32))


def _write_matches(read_data: ReadData, target: Path, comparison: _Comparison, progress: Progress) -> dict[str, int]:
    eval_sets, eval_items = comparison.eval_sets, comparison.eval_items
    rows, pairs, corpus = comparison.rows, comparison.pairs, comparison.corpus
    # The evidence is of the training text (here) and the item (there).
    measures = describe_pairs(corpus.features, comparison.comparer, pairs.text, pairs.item, pairs.score).to_list()
    items_of_text = _rows_by_text(corpus.text[: len(eval_items.ids)])
    text = corpus.text[len(eval_items.ids) :]
    first, last = np.searchsorted(pairs.text, text), np.searchsorted(pairs.text, text, side="right")
    matched = np.flatnonzero((last > first) & (text >= 0))
    counts = {"records": len(rows.ids), "matching": len(matched)}
    progress.start("writing", len(matched))
    prompts = _read_prompts(read_data, matched)
    sizes = {spec: eval_items.sets.count(set_index) for set_index, spec in enumerate(eval_sets)}
    schema = MATCH_SCHEMA.with_metadata({AGAINST: dump_json(sizes)})
    with written_aside(target) as aside, TableWriter(aside, schema) as writer:
        for row, prompt in zip(matched.tolist(), prompts, strict=True):
            for pair in range(int(first[row]), int(last[row])):
                for item in items_of_text[int(pairs.item[pair])]:
                    kind, spec = KINDS[pairs.kind[pair]], eval_sets[eval_items.sets[item]]
                    texts = dump_json({"text": prompt, "item": eval_items.prompts[item]})
                    writer.write(
                        {
                            "id": rows.ids[row],
                            "row": rows.numbers[row],
                            "against": spec,
                            "against_id": eval_items.ids[item],
                            "kind": kind,
                            "score": float(pairs.score[pair]),
                            "evidence": texts if kind == "exact" else f"{measures[pair][:-1]},{texts[1:]}",
                        }
                    )
                    counts[f"{kind} {spec}"] = counts.get(f"{kind} {spec}", 0) + 1
            progress.advance()
    return counts


def _rows_by_text(text: Ints) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row, text_number in enumerate(text.tolist()):
        rows.setdefault(text_number, []).append(row)
    return rows


def _read_prompts(read_data: ReadData, rows: Ints) -> Iterator[str]:
    """Yield the prompts of some records as they are shown; reading the data once more saves holding all of them."""
    start = 0
    marks = np.zeros(int(rows.max(initial=-1)) + 1, dtype=bool)
    marks[rows] = True
    for batch in read_data(False) if len(rows) else ():
        for index in np.flatnonzero(marks[start : start + len(batch)]).tolist():
            yield batch.prompts[index][:SHOWN_CHARS]
        start += len(batch)
        if start >= len(marks):
            return
