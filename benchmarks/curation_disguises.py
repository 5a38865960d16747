r"""Changes letters and layout of evaluation items, and counts the true and false leaks of `truegold decontaminate`.

    python benchmarks/curation_disguises.py DATA_DIR [--siblings 10] [--seed 5] [--json FILE]

DATA_DIR is laid out like the labelled corpora (gsm8k_platinum.jsonl, math500.jsonl, mbpp.jsonl, qwen_cmath.jsonl ...).

- Found: items of each set in each disguise, compared with the whole set.
- Accused: variants of the items with other quantities (GSM-Plus, MATH-Perturb hard) in each disguise, compared with the
  items; and problems of other corpora, compared with all four sets. All reported leaks are printed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
from curation_decontamination import rows

from truegold.pipeline.decontaminate.matches import find_leaks_in_file
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.text.encodings import CYRILLIC, GREEK

Disguise = Callable[[str, random.Random], str | None]
SETS = {
    "GSM8K": ("gsm8k_platinum", "question"),
    "MATH": ("math500", "problem"),
    "MBPP": ("mbpp", "text"),
    "CMATH": ("qwen_cmath", "question"),
}
UNRELATED = ("gsm8k_train", "math_train_7474", "ape210k_valid", "leetcode_train", "qwen_asdiv", "agieval_logiqa-en")
OTHER_NUMBERS = ("numerical substitution", "digit expansion", "integer-decimal-fraction conversion")
PROSE = re.compile(r"\$[^$]*\$|\[asy\].*?\[/asy\]|(?<![\\\w{])(?P<word>[A-Za-z]{4,})(?![\w}])", re.DOTALL)


def in_words(share: float, change: Callable[[str, random.Random], str], letters: int = 5) -> Disguise:
    """A share of the words of prose is changed, one at least."""

    def disguise(text: str, draw: random.Random) -> str | None:
        words = [match for match in PROSE.finditer(text) if len(match["word"] or "") >= letters]
        for match in sorted(draw.sample(words, min(len(words), max(1, round(share * len(words))))), key=_backwards):
            text = text[: match.start()] + change(match[0], draw) + text[match.end() :]
        return text if words else None

    return disguise


def _backwards(match: re.Match[str]) -> int:
    return -match.start()


def inserted(*parts: str) -> Callable[[str, random.Random], str]:
    """One of the parts stands inside of the word."""

    def insert(word: str, draw: random.Random) -> str:
        index = draw.randrange(2, len(word) - 1)
        return word[:index] + draw.choice(parts) + word[index:]

    return insert


def swapped(word: str, draw: random.Random) -> str:
    """The word with two neighbouring letters in each other's places."""
    indices = [index for index in range(len(word) - 1) if word[index].lower() != word[index + 1].lower()]
    index = draw.choice(indices)
    return word[:index] + word[index + 1] + word[index] + word[index + 2 :]


def looking_alike(letters: dict[str, str]) -> Callable[[str, random.Random], str]:
    """Some letters of the word are those of another script."""
    unlike = {latin: other for other, latin in letters.items()}

    def exchange(word: str, draw: random.Random) -> str:
        return "".join(unlike.get(letter, letter) if draw.random() < 0.6 else letter for letter in word)

    return exchange


def tagged(text: str, draw: random.Random) -> str | None:
    """Sentences in paragraphs, or words in layout."""
    if draw.random() < 0.5:
        return "".join(f"<p>{part}</p>" for part in re.split(r"(?<=[.?!]) ", text))
    tag = draw.choice(("b", "em", "strong", "mark", "code", 'span class="x"', "font color=red"))
    return in_words(0.3, lambda word, _: f"<{tag}>{word}</{tag.split()[0]}>")(text, draw)


def as_entities(text: str, draw: random.Random) -> str:
    """Some letters, quotes and blanks as entities."""
    text = re.sub(
        r"[A-Za-z](?=[a-z]{3})", lambda match: f"&#{ord(match[0])};" if draw.random() < 0.2 else match[0], text
    )
    return text.replace("'", "&#39;").replace('"', "&quot;").replace(" ", draw.choice(("&nbsp;", "&#160;", " ")))


def spaced(text: str, draw: random.Random) -> str:
    """Other blanks."""
    return re.sub(" ", lambda _: draw.choice((" ", "  ", "   ", "\t", "\u2003", "\n", " \n ")), text)


def punctuated(text: str, draw: random.Random) -> str:
    """Other marks."""
    text = text.replace("'", "’").replace('"', "“").replace(" - ", " — ")
    kinds = ((r",(?=\s)", ""), (r"\.(?=\s)", " ;"), (r"(?<=[a-z])-(?=[a-z]{2})", draw.choice("‐ ")), (r"\?", " ??"))
    for pattern, replacement in draw.sample(kinds, 2):
        text = re.sub(pattern, replacement, text)
    return text


def full_width(text: str, _: random.Random) -> str:
    """The signs of ASCII in full width."""
    return text.translate({ord(" "): 0x3000} | {code: code + 0xFEE0 for code in range(33, 127)})


DISGUISES: dict[str, Disguise] = {
    "full-width": full_width,
    "tags": tagged,
    "entities": as_entities,
    "words broken with a hyphen": in_words(0.2, inserted("-\n", "-\n  "), 6),
    "words broken without": in_words(0.2, inserted("\n", "\n", " "), 6),
    "soft hyphens": in_words(0.4, inserted("\u00ad")),
    "zero-width characters": in_words(0.4, inserted("\u200b", "\u200c", "\u200d", "\ufeff", "\u2060", "\u200e")),
    "Cyrillic look-alikes": in_words(0.4, looking_alike(CYRILLIC), 4),
    "Greek look-alikes": in_words(0.4, looking_alike(GREEK), 4),
    "two letters swapped, a word": in_words(0, swapped),
    "two letters swapped, a quarter of the words": in_words(0.25, swapped),
    "blanks": spaced,
    "case": lambda text, draw: draw.choice((str.upper, str.title, str.swapcase))(text),
    "punctuation": punctuated,
    "Markdown": in_words(0.3, lambda word, draw: draw.choice(("**{}**", "_{}_", "*{}*", "`{}`")).format(word)),
    "a letter doubled": in_words(0.1, lambda word, draw: word[: (index := draw.randrange(2, 4))] + word[index - 1 :]),
    "a letter lost": in_words(0.1, lambda word, draw: word[: (index := draw.randrange(1, 4))] + word[index + 1 :]),
}
CHINESE = ("full-width", "tags", "entities", "blanks")


def matches(work: Path, eval_items: dict[str, str], records: dict[str, str]) -> list[tuple[str, str, str]]:
    """The pairs that are called leaks: record, item, kind."""
    for name, texts in (("evals", eval_items), ("train", records)):
        lines = (json.dumps({"id": key, "question": text}) + "\n" for key, text in texts.items())
        (work / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    sets = {str(work / "evals.jsonl"): ProblemColumns()}
    find_leaks_in_file(work / "train.jsonl", sets, work / "out", ProblemColumns(), NullProgress())
    return list(pl.read_parquet(work / "out" / "matches.parquet").select("id", "against_id", "kind").iter_rows())


def find(folder: Path, work: Path, siblings: int, seed: int) -> dict[str, dict[str, tuple[int, int]]]:
    """By disguise and set: how many are found, of how many."""
    table: dict[str, dict[str, tuple[int, int]]] = {}
    for name, (file, column) in SETS.items():
        draw = random.Random(seed)
        texts = list(dict.fromkeys(row[column] for row in rows(folder, file) if len(row[column]) > 60))
        eval_items = {str(index): text for index, text in enumerate(draw.sample(texts, len(texts)))}
        records = {}
        for kind in CHINESE if name == "CMATH" else DISGUISES:
            disguised = ((key, DISGUISES[kind](text, draw)) for key, text in eval_items.items())
            changed = [(key, text) for key, text in disguised if text is not None and text != eval_items[key]][
                :siblings
            ]
            records |= {f"{kind}|{key}": text for key, text in changed}
        hits = {record for record, item, _ in matches(work, eval_items, records) if record.split("|")[1] == item}
        planted = Counter(record.split("|")[0] for record in records)
        hits_by_kind = Counter(record.split("|")[0] for record in hits)
        for kind, count in planted.items():
            table.setdefault(kind, {})[name] = hits_by_kind[kind], count
    return table


def accuse(folder: Path, work: Path, seed: int) -> dict[str, tuple[int, int]]:
    """Return the number of records that are reported as leaks, and of all records, by comparison."""
    draw, eval_items, decoys = random.Random(seed), {}, {}
    for index, row in enumerate(rows(folder, "gsm_plus_testmini")):
        if row["perturbation_type"] in OTHER_NUMBERS:
            eval_items[f"gsm {row['seed_question']}"] = row["seed_question"]
            decoys[f"gsm {index}"] = row["question"]
    eval_items |= {f"math {row['problem_id']}": row["problem"] for row in rows(folder, "math_perturb_simple")}
    decoys |= {f"math {row['problem_id']}": row["problem"] for row in rows(folder, "math_perturb_hard")}
    records = {
        f"{kind}|{key}": text
        for kind, disguise in DISGUISES.items()
        for key, plain in decoys.items()
        if (text := disguise(plain, draw)) is not None
    }
    outcome = {"disguised variants with other quantities": (matches(work, eval_items, records), len(records))}
    for name, (file, column) in SETS.items():
        eval_items = {str(index): row[column] for index, row in enumerate(rows(folder, file))}
        others = {f"{other} {index}": text for other in UNRELATED for index, text in enumerate(_texts(folder, other))}
        outcome[f"other corpora against {name}"] = matches(work, eval_items, others), len(others)
    for kind, (pairs, _) in outcome.items():
        print(
            kind,
            *sorted({f"{record.split('|')[-1]} | {item} | {match_kind}" for record, item, match_kind in pairs}),
            sep="\n  ",
        )
    return {kind: (len({record for record, _, _ in pairs}), count) for kind, (pairs, count) in outcome.items()}


def _texts(folder: Path, file: str) -> list[str]:
    columns = ("question", "problem", "prompt", "original_text", "content")
    texts = (next((row[name] for name in columns if isinstance(row.get(name), str)), "") for row in rows(folder, file))
    return [text for text in texts if text]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--siblings", type=int, default=10)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        hits_by_kind = find(args.data_dir, Path(work), args.siblings, args.seed)
        accused = accuse(args.data_dir, Path(work), args.seed)
    for kind, by_set in hits_by_kind.items():
        print(f"| {kind} |", " | ".join(f"{name} {hits} of {count}" for name, (hits, count) in by_set.items()), "|")
    for kind, (hits, count) in accused.items():
        print(f"| {kind} | {hits} of {count} |")
    if args.json:
        args.json.write_text(json.dumps({"found": hits_by_kind, "accused": accused}, indent=1))


if __name__ == "__main__":
    main()
