"""Finds the problems of evaluation sets in training data: `truegold decontaminate --data F --against G --out D`.

    G: {"id": "g1", "question": "Tom has 3 red cars and buys 4 more. How many cars has he?"}
    F: {"id": "a", "question": "tom has 3 red cars and  buys 4 more. How many cars has he?"}                exact
       {"id": "b", "question": "Solve: Tom has 3 red cars and buys 4 more. How many cars has he? ..."}      overlap
       {"id": "c", "question": "Tom, who owned three red cars, buys 4 more. How many cars are his now?"}    reworded
       {"id": "d", "question": "Tom has 5 red cars and buys 9 more. How many cars has he?"}                 no match

`matches.parquet` names every set and its number of items in its schema's metadata (`against`, JSON), matches or not,
and has a row for each pair: id, row (the record's number from 1), against, against_id, kind, score,
evidence. A pair has the first kind that fits:

- `exact` pairs have the same prompt (`near.exact_copies`); their score is 1. Slips in the words of a record are mended
  by the words of the items before (`near.slips`).
- In an `overlap` the record has at least MIN_SHARE of the item's runs of five tokens, weighted by rarity (the score;
  `near.containment`), and all of its words that carry meaning and quantities, these next to the same words. A
  renumbered instance of the item has not, nor has a text with the item's words and other signs (⌈x⌉ for ⌊x⌋). Or it
  holds the item letter for letter, in another layout or in letters that look alike (`near.squashed`); the score is 1
  then.
- `reworded` pairs are the same problem in other words, with the same quantities (`near.measures`); the score is the
  probability of that.
- `translated` pairs, with an encoder only, are in two scripts and agree in numbers and question
  (`near.embedding`).

Items of fewer than five words have no runs; they match as exact or reworded ones. The evidence has both texts, so
that a person can judge each pair. Features and texts lie on disk meanwhile, some 600 bytes a text.
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
from truegold.pipeline.decontaminate.eval_sets import read_eval_set
from truegold.pipeline.near.arrays import read_ahead, run_starts
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


def find_leaks_in_file(
    data: Path,
    against: Mapping[str, ProblemColumns],
    out_dir: Path,
    columns: ProblemColumns,
    progress: Progress,
    encoder: Encoder | None = None,
) -> dict[str, int]:
    """Write `matches.parquet`, and the records that match nothing and that match in the form of the file `data`.

    Returns what `find_matches` returns. Raises InputError if a file or set cannot be read or has no column for the
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

    `against` has the columns of each evaluation set that are not to be guessed. Raises InputError if no item of a set
    has a prompt: comparing with it would prove nothing.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    builder, grams, squashed, mender = CorpusBuilder(out_dir), GramIndex(), SquashedItems(), SlipMender()
    builder.listen(grams.learn)
    builder.listen_to_texts(squashed.learn)
    item_rows = _add_eval_sets(builder, mender, against, progress)
    item_texts = builder.distinct_texts
    builder.listen(grams.look_up)
    builder.listen_to_texts(squashed.look_up)
    with_slips: list[tuple[int, str]] = []
    read = 0
    progress.start("reading the data")
    for batch in read_ahead(read_data(True)):
        prompts = mender.mend(batch.prompts)
        with_slips += [
            (len(item_rows) + read + index, prompt)
            for index, prompt in enumerate(batch.prompts)
            if prompt is not prompts[index]
        ]
        read += len(batch)
        builder.add(prompts, batch.golds, batch.solution_chars)
        progress.advance(len(batch))
    corpus = builder.finish()
    # A half of a broken word may look like a slip, so that texts are looked up as they were written, too.
    as_written = pl.Series([prompt for _, prompt in with_slips], dtype=pl.String)
    squashed.look_up_again(as_written, corpus.text[[row for row, _ in with_slips]])
    pairs = _find_pairs(corpus, grams, squashed, item_texts, progress, encoder, out_dir)
    item_rows = item_rows.with_columns(item=pl.Series(corpus.text[: len(item_rows)]))
    texts = corpus.text[len(item_rows) :]
    matching = np.flatnonzero(np.isin(texts, pairs["text"].to_numpy()))
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
    """Add the items of all evaluation sets, and return a row for each: its set, its id, and its text as it is shown."""
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
    """Return all matching pairs of a text of the data and an item's text, each with the first kind that fits.

    Texts below `item_texts` are items. The measures are of the training text (here) and the item (there).
    """
    # An item's text that the data has too is the same text here.
    exact = np.arange(item_texts)
    texts = math.isqrt(2 * item_texts * (len(whole.features) - item_texts))
    held = grams.contained(MIN_SHARE, MIN_WEIGHT)
    whole_text, whole_item = squashed.pairs()
    corpus, numbers = whole, np.arange(len(whole.features))
    if encoder is None:
        # The others are like no item: they count only for how rare words are.
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
    # An item that a text holds letter for letter is an overlap too.
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
    """A record that matches, with its prompt as it is shown."""

    id: str | None
    row_number: int
    shown: str


_NO_RECORD = _MatchingRecord(None, 0, "")


def _read_records(read_data: ReadData, rows: npt.NDArray[np.generic]) -> Iterator[_MatchingRecord]:
    """Yield some of the records; reading the data once more saves holding all of them."""
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
