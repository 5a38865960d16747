"""Finds the problems of evaluation sets in training data: `truegold decontaminate --data F --against G --out D`.

    G: {"id": "g1", "question": "Tom has 3 red cars and buys 4 more. How many cars has he?"}
    F: {"id": "a", "question": "tom has 3 red cars and  buys 4 more. How many cars has he?"}                exact
       {"id": "b", "question": "Solve: Tom has 3 red cars and buys 4 more. How many cars has he? ..."}      overlap
       {"id": "c", "question": "Tom, who owned three red cars, buys 4 more. How many cars are his now?"}    reworded
       {"id": "d", "question": "Tom has 5 red cars and buys 9 more. How many cars has he?"}                 no match

`matches.parquet` has a row for each pair of a record and a matching item (a problem of an evaluation set): id, row (the
record's number from 1), against, against_id, kind, score, evidence. The metadata of its schema has the number of items
of every set, as JSON under the key `against`.
A pair has the first kind that applies:

- `exact`: the same prompt (`near.exact_copies`); the score is 1. Typing slips in a record are first corrected with the
  words of the items (`near.slips`).
- `overlap`: the record contains the item. The score is the share of the item's runs of five tokens that the record has,
  weighted by rarity (`near.containment`), and at least MIN_SHARE. The record also has all content words and quantities
  of the item, with the quantities next to the same words. So neither a renumbered instance nor a text with other signs
  (⌈x⌉ for ⌊x⌋) matches. A record that contains the item letter for letter matches too, in any layout and with
  look-alike letters (`near.squashed`); its score is 1.
- `reworded`: the same problem in other words, with the same quantities (`near.measures`). The score is the probability
  that the problem is the same.
- `translated`, only with an encoder: the texts have different scripts, and the same numbers and question
  (`near.embedding`).

Items of fewer than five words have no runs; they can match as `exact` or `reworded`. The evidence has both texts, so
that a person can judge each pair. During the search, features and texts take about 700 bytes of disk for each text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.config.stages import MatchKind
from truegold.pipeline.decontaminate.eval_sets import check_apart, read_eval_set
from truegold.pipeline.near.arrays import TABLE_ROWS, read_ahead, run_starts
from truegold.pipeline.near.confirmation import confirm_links
from truegold.pipeline.near.containment import GramIndex
from truegold.pipeline.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.near.embedding import Encoder, add_proposed_links, find_translations, propose
from truegold.pipeline.near.measures import Comparer, Relation, describe_pairs
from truegold.pipeline.near.related_pairs import find_links, find_neighbours
from truegold.pipeline.near.slips import SlipMender
from truegold.pipeline.near.squashed import SquashedItems, differ_in_signs
from truegold.pipeline.problems import Batch, ProblemColumns, read_problems
from truegold.pipeline.running.disk import written_aside
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.sources.data_files import split_file
from truegold.pipeline.tables.reasons import AGAINST, MATCH_SCHEMA, MATCHES_FILE
from truegold.pipeline.tables.rows import TableWriter, dump_json
from truegold.pipeline.text.quantities import SPELLING_MARGIN
from truegold.verifiers import InputError

MIN_SHARE = 0.9
"""The minimum weighted share of an item's runs in an overlap."""
MIN_WEIGHT = 1.5
"""The minimum total weight of the shared runs in an overlap: about two rare runs."""
MIN_CONTEXTS = 0.75
"""The minimum share of an item's quantities that stand next to the same words in an overlap."""
SHOWN_CHARS = 500
"""The number of characters shown of each text."""

KINDS: tuple[str, ...] = (*MatchKind, "translated")
"""The kinds of matches, the most certain first. `translated` occurs only with an encoder."""
TRANSLATION_SCORE = 0.5
"""The score of every translation, since its probability has not been measured."""
ReadData = Callable[[bool], Iterable[Batch]]
"""A function that yields the data in batches; its argument says whether texts are cleaned."""


def find_leaks_in_file(
    data: Path,
    against: Mapping[str, ProblemColumns],
    out_dir: Path,
    columns: ProblemColumns,
    progress: Progress,
    encoder: Encoder | None = None,
) -> dict[str, int]:
    """Write `matches.parquet`, and split the file `data` into records with and without a match.

    Returns the counts of `find_matches`. Raises InputError if a file or set cannot be read or has no prompt column.
    """

    check_apart(data, against)

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
    """Write `matches.parquet`, and return the numbers of records, of matching records, and of matches by kind and set.

    With an `encoder`, the nearest neighbours of each item are compared as well (`near.embedding`). `against` has the
    given columns of each evaluation set. Raises InputError if an evaluation set has no prompts.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    builder, grams, squashed, mender = CorpusBuilder(out_dir), GramIndex(out_dir), SquashedItems(), SlipMender()
    builder.listen(grams.learn)
    builder.listen_to_texts(squashed.learn)
    item_rows = _add_eval_sets(builder, mender, against, progress)
    item_texts = builder.distinct_texts
    builder.listen(grams.look_up)
    builder.listen_to_texts(squashed.look_up)
    read = 0
    progress.start("reading the data")
    for batch in read_ahead(read_data(True)):
        prompts = mender.mend(batch.prompts)
        numbers = builder.add(prompts, batch.golds, batch.solution_chars)
        # A part of a broken word may be taken for a typing slip. So the original texts are looked up, too.
        mended = [index for index, prompt in enumerate(batch.prompts) if prompt is not prompts[index]]
        as_written = pl.Series([batch.prompts[index] for index in mended], dtype=pl.String)
        squashed.look_up_again(as_written, numbers[mended])
        read += len(batch)
        progress.advance(len(batch))
    corpus = builder.finish()
    del builder
    pairs = _find_pairs(corpus, grams, squashed, item_texts, progress, encoder, out_dir)
    item_rows = item_rows.with_columns(item=pl.Series(corpus.text[: len(item_rows)]))
    texts = corpus.text[len(item_rows) :]
    matching = np.concatenate(
        [
            start + np.flatnonzero(np.isin(texts[start : start + TABLE_ROWS], pairs["text"].to_numpy()))
            for start in range(0, read + 1, TABLE_ROWS)
        ]
    )
    matches = pl.DataFrame({"position": matching, "text": texts[matching]}).join(
        pairs, on="text", maintain_order="left_right"
    )
    matches = matches.join(item_rows, on="item", maintain_order="left_right")
    sizes = dict.fromkeys(against, 0) | dict(item_rows["against"].value_counts().iter_rows())
    _write_matches(out_dir / MATCHES_FILE, matches, sizes, read_data, progress)
    by_kind = matches.group_by("kind", "against", maintain_order=True).len()
    return {
        "records": read,
        "matching": matches["position"].n_unique(),
        **{f"{kind} {spec}": count for kind, spec, count in by_kind.iter_rows()},
    }


def _add_eval_sets(
    builder: CorpusBuilder, mender: SlipMender, against: Mapping[str, ProblemColumns], progress: Progress
) -> pl.DataFrame:
    """Add the items of all evaluation sets. Return the set, id and shown text of each item."""
    shown_items = [pl.DataFrame(schema={"against": pl.String, "against_id": pl.String, "item_shown": pl.String})]
    progress.start("reading evaluation sets")
    for spec, columns in against.items():
        has_prompt = False
        for batch in read_eval_set(spec, columns):
            shown = [prompt[:SHOWN_CHARS] for prompt in batch.prompts]
            part = {"against": [spec] * len(batch), "against_id": batch.ids, "item_shown": shown}
            shown_items.append(pl.DataFrame(part, schema=shown_items[0].schema))
            has_prompt = has_prompt or any(batch.prompts)
            mender.learn(batch.prompts)
            builder.add(batch.prompts, batch.golds, batch.solution_chars)
            progress.advance(len(batch))
        if not has_prompt:
            raise InputError(f"{spec}: no record has a prompt to compare with.", columns.spell("prompt"))
    return pl.concat(shown_items)


def _find_pairs(
    whole: Corpus,
    grams: GramIndex,
    squashed: SquashedItems,
    item_texts: int,
    progress: Progress,
    encoder: Encoder | None,
    scratch: Path,
) -> pl.DataFrame:
    """Return all matching pairs of a text and an item's text, each with the first kind that applies.

    Texts with numbers below `item_texts` are items. In the measures, `here` is the data's text and `there` the item's.
    """
    # Equal texts have one number in the corpus. So each item's text matches itself.
    exact = np.arange(item_texts)
    texts = math.isqrt(2 * item_texts * (len(whole.features) - item_texts))
    held = grams.contained(MIN_SHARE, MIN_WEIGHT)
    whole_text, whole_item = squashed.pairs()
    corpus, numbers = whole, np.arange(len(whole.features))
    if encoder is None:
        # Other texts resemble no item. They count only for the rarity of words.
        near = find_neighbours(whole.features, item_texts)
        numbers = np.unique(np.concatenate([near, held.text, whole_text]))
        corpus = whole.take(numbers)
        whole_text = np.searchsorted(numbers, whole_text)
        held = replace(held, text=np.searchsorted(numbers, held.text))
    comparer = Comparer(corpus.features)
    side = (np.arange(len(numbers)) >= item_texts).astype(np.int64)
    sound = np.ones(len(held.text), dtype=bool)
    sound[comparer.missing_quantities(held.item, held.text, SPELLING_MARGIN)[0]] = False
    sound &= comparer.count_missing_words(held.item, held.text) == 0
    sound &= comparer.share_of_contexts(held.item, held.text) >= MIN_CONTEXTS
    sure = np.flatnonzero(sound)
    both = (corpus.texts.read(texts_of[sure].tolist()) for texts_of in (held.text, held.item))
    sound[sure[differ_in_signs(*both)]] = False
    links = find_links(corpus.features, comparer, split=side, texts=texts, progress=progress, scratch=scratch)
    translated = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if encoder is not None:
        progress.start("encoding")
        proposals = propose(corpus, encoder, item_texts)
        links = add_proposed_links(links, comparer, proposals, texts)
        translations = find_translations(corpus, proposals)
        translated = translations.right[translations.is_sure], translations.left[translations.is_sure]
    links = confirm_links(links, corpus, comparer, texts).having(Relation.SAME_PROBLEM)
    probability = 1 / (1 + np.exp(-links.score.astype(np.float64)))
    text = np.concatenate([exact, whole_text, held.text[sound], links.right, translated[0]])
    item = np.concatenate([exact, whole_item, held.item[sound], links.left, translated[1]])
    # An item that is contained letter for letter is an overlap (kind 1), as in `held`.
    kinds_found = [0, 1, 1, 2, 3]
    kind = np.repeat(kinds_found, [len(exact), len(whole_text), int(sound.sum()), len(links), len(translated[0])])
    unknown = np.full(len(translated[0]), TRANSLATION_SCORE)
    score = np.concatenate([np.ones(len(exact) + len(whole_text)), held.share[sound], probability, unknown])
    order = np.lexsort((kind, item, text))
    kept = order[run_starts(text[order]) | run_starts(item[order])]
    text, item, score = text[kept], item[kept], score[kept].astype(np.float32)
    measures = describe_pairs(corpus.features, comparer, text, item, score)
    kinds = pl.Series(list(map(str, KINDS))).gather(kind[kept])
    return pl.DataFrame({"text": numbers[text], "item": item, "kind": kinds, "score": score, "measures": measures})


def _write_matches(
    target: Path, matches: pl.DataFrame, sizes: Mapping[str, int], read_data: ReadData, progress: Progress
) -> None:
    schema = MATCH_SCHEMA.with_metadata({AGAINST: dump_json(sizes)})
    progress.start("writing", len(matches))
    records = _read_records(read_data, matches["position"].unique().sort().to_numpy())
    position, record = -1, _NO_RECORD
    with written_aside(target) as aside, TableWriter(aside, schema) as writer:
        for match in matches.iter_rows(named=True):
            if match["position"] != position:
                position, record = match["position"], next(records)
            texts = dump_json({"text": record.shown, "item": match["item_shown"]})
            evidence = texts if match["kind"] == "exact" else f"{match['measures'][:-1]},{texts[1:]}"
            known = {name: match[name] for name in MATCH_SCHEMA.names if name in match}
            writer.write({"id": record.id, "row": record.row_number, **known, "evidence": evidence})
            progress.advance()


class _MatchingRecord(NamedTuple):
    """A matching record; `shown` is the start of its prompt."""

    id: str | None
    row_number: int
    shown: str


_NO_RECORD = _MatchingRecord(None, 0, "")


def _read_records(read_data: ReadData, rows: npt.NDArray[np.generic]) -> Iterator[_MatchingRecord]:
    """Yield the records at these positions. They are read in a second pass, so that memory does not hold all data."""
    start = 0
    if not len(rows):
        return
    for batch in read_data(False):
        first, last = np.searchsorted(rows, (start, start + len(batch)))
        for row in rows[first:last].tolist():
            index = row - start
            yield _MatchingRecord(batch.ids[index], batch.row_numbers[index], batch.prompts[index][:SHOWN_CHARS])
        start += len(batch)
        if start > rows[-1]:
            return
