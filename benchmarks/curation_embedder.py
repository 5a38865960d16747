"""Measures what an encoder adds to the search for leaks: translations, and other names of persons.

    python benchmarks/curation_embedder.py DATA_DIR MODEL [--pool N] [--json FILE]

MODEL is an encoder on the hub, a folder, or an import string such as encoder.py:encode. DATA_DIR is laid out like the
labelled corpora. All numbers are reported for halves, by a hash of the item. With --pool, only the first N problems of
each corpus are encoded.

- Translations: problems of GSM8K's reviewed test in Chinese (`tests/data/dedup/translations.jsonl`, translated by hand
  from a fixed draw, before the reading of translations was tried on them), among the problems of GSM8K train, CMATH,
  ape210k and CARP. Sure: truegold reports a translation. Open: truegold leaves the question open. Near: the encoder
  proposes the pair. Other reported translations are listed for reading; as far as is known, they are all false.
- Names: `curation_names.py`, without the encoder and with it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from curation_decontamination import is_odd, rows
from curation_names import measure as measure_names

from truegold.pipeline.engines.text_vectors import load_text_encoder
from truegold.pipeline.near.corpus import CorpusBuilder
from truegold.pipeline.near.embedding import Encoder, find_translations, propose

TRANSLATIONS = Path(__file__).parent.parent / "tests" / "data" / "dedup" / "translations.jsonl"
POOL = {"gsm8k_train": "question", "qwen_cmath": "question", "ape210k_test": "original_text", "qwen_carp_en": "content"}
SHOWN_CHARS = 200


def measure_translations(folder: Path, encoder: Encoder, pool_size: int | None) -> dict[str, Any]:
    """Return the numbers of proposed and accepted translations, by half, and all other accepted pairs."""
    originals = {str(row["id"]): row["question"] for row in rows(folder, "gsm8k_platinum")}
    translated = [json.loads(line) for line in TRANSLATIONS.read_text(encoding="utf8").splitlines()]
    pool = [row[column] for name, column in POOL.items() for row in rows(folder, name)[:pool_size]]
    # Originals without a translation are items as well: they can only match wrongly.
    item_keys = [row["id"] for row in translated]
    item_keys += [key for key in originals if key not in item_keys][:pool_size]
    texts = [*(originals[key] for key in item_keys), *(row["chinese"] for row in translated), *pool]
    builder = CorpusBuilder()
    builder.add(texts, [None] * len(texts), [0] * len(texts))
    corpus = builder.finish()
    proposals = propose(corpus, encoder, len(item_keys))
    accepted = find_translations(corpus, proposals)
    text_index = {text: index for index, text in enumerate(corpus.texts.read(range(len(corpus.features))))}
    proposed = set(zip(proposals.translated_left.tolist(), proposals.translated_right.tolist(), strict=True))
    columns = (accepted.left, accepted.right, accepted.is_sure)
    verdicts = {(left, right): sure for left, right, sure in zip(*(column.tolist() for column in columns), strict=True)}
    true_pairs = {(text_index[originals[row["id"]]], text_index[row["chinese"]]): row["id"] for row in translated}
    figures: dict[str, Any] = {}
    for half in ("even", "odd"):
        pairs = [pair for pair, key in true_pairs.items() if is_odd(f"translated{key}") == (half == "odd")]
        figures[half] = {
            "translations": len(pairs),
            "near": sum(pair in proposed for pair in pairs),
            "sure": sum(verdicts.get(pair) is True for pair in pairs),
            "open": sum(verdicts.get(pair) is False for pair in pairs),
        }
    others = {pair: sure for pair, sure in verdicts.items() if pair not in true_pairs}
    listed = [[text[:SHOWN_CHARS] for text in corpus.texts.read(list(pair))] for pair, sure in others.items() if sure]
    return {**figures, "other pairs": {"sure": len(listed), "open": len(others) - len(listed)}, "sure pairs": listed}


def main() -> None:
    """Measure, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("model")
    parser.add_argument("--pool", type=int, help="so many problems of each corpus; all by default")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    encoder = load_text_encoder(arguments.model)
    figures: dict[str, Any] = {"translations": measure_translations(arguments.data_dir, encoder, arguments.pool)}
    print(json.dumps(figures, ensure_ascii=False, indent=1), flush=True)
    for name, used in (("names, without", None), ("names, with", encoder)):
        with tempfile.TemporaryDirectory() as work:
            figures[name] = measure_names(arguments.data_dir, Path(work), used, arguments.pool)
            print(name, figures[name], flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
