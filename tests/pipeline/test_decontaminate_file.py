"""`truegold decontaminate` on files: kinds of matches, what is none, evidence, and planted leaks in real data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from real_data import real_data

from truegold.pipeline.config.sources import HubSource
from truegold.pipeline.decontaminate.matches import find_leaks_in_file
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.sources.records import Record, Source
from truegold.verifiers import InputError

ROOT = Path(__file__).parents[2]

TOM = "Tom has 37 red cars and buys 45 more at the market. How many cars has Tom got in total?"
SAM = (
    "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. How many clips"
    " did Natalia sell altogether in April and May?"
)
SAM_REWORDED = (
    "In April, Natalia sold clips to 48 friends of hers. In May she then sold half as many clips. What is the total"
    " number of clips that Natalia sold in April and May?"
)
EVAL_ITEMS = [{"id": "g1", "question": TOM}, {"id": "g2", "question": SAM}, {"id": "g3", "question": "What is 6*7?"}]
PEN = "A pen costs 2 dollars and 19 cents less than a ruler, which costs 4 dollars. What does the pen cost?"


def write(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def run(folder: Path, prompts: list[str]) -> tuple[pl.DataFrame, dict[str, int]]:
    data = write(folder / "train.jsonl", [{"id": f"t{index}", "prompt": text} for index, text in enumerate(prompts)])
    evals = write(folder / "evals.jsonl", EVAL_ITEMS)
    out = folder / "out"
    counts = find_leaks_in_file(data, {str(evals): ProblemColumns()}, out, ProblemColumns(), NullProgress())
    assert sorted(path.name for path in out.iterdir()) == ["dropped.jsonl", "kept.jsonl", "matches.parquet"]
    leaked = set(pl.read_parquet(out / "matches.parquet")["row"])
    lines = data.read_text().splitlines()
    assert (out / "kept.jsonl").read_text().splitlines() == [
        line for number, line in enumerate(lines, 1) if number not in leaked
    ]
    return pl.read_parquet(out / "matches.parquet"), counts


def kinds(matches: pl.DataFrame) -> list[tuple[str, str, str]]:
    return list(zip(matches["id"], matches["against_id"], matches["kind"], strict=True))


def test_copies_parts_and_rewordings_are_found_and_nothing_else(tmp_path):
    prompts = [
        TOM.lower().replace(" ", "  "),
        f"Think step by step.\n{TOM}\nThen do this: {PEN}",
        SAM_REWORDED,
        TOM.replace("37", "58").replace("45", "19"),
        TOM.replace("45", "46"),
        f"{PEN} {TOM.replace('red', 'blue')}",
        PEN,
        "",
    ]
    matches, counts = run(tmp_path, prompts)
    assert kinds(matches) == [("t0", "g1", "exact"), ("t1", "g1", "overlap"), ("t2", "g2", "reworded")]
    assert matches["row"].to_list() == [1, 2, 3]
    assert matches["score"][0] == 1.0
    assert (matches["score"] > 0.5).all()
    spec = matches["against"][0]
    assert counts == {
        "records": 8, "matching": 3, f"exact {spec}": 1, f"overlap {spec}": 1, f"reworded {spec}": 1,
    }  # fmt: skip


def test_the_evidence_shows_both_texts(tmp_path):
    matches, _ = run(tmp_path, [TOM, SAM_REWORDED])
    first, second = (json.loads(text) for text in matches["evidence"])
    assert first == {"text": TOM, "item": TOM}
    assert (second["text"], second["item"]) == (SAM_REWORDED, SAM)
    assert {"score", "words", "question", "quantities", "only_here", "only_there"} < second.keys()


def test_short_items_are_found_as_copies_only(tmp_path):
    matches, _ = run(
        tmp_path, ["what is 6*7?", "What is 6*8?", "What is 67?", "I ask: what is 6*7 worth to you in 9 days?"]
    )
    assert kinds(matches) == [("t0", "g3", "exact")]


REWRITINGS = {
    "full-width": "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else "\u3000" for char in TOM),
    "tags": f"<p>{TOM.replace('red', '<b>red</b>').replace('buys', '<mark>buys</mark>')}</p>",
    "entities": TOM.replace(" ", "&nbsp;").replace("m", "&#109;"),
    "broken with a hyphen": TOM.replace("market", "mar-\nket").replace("total", "to-\ntal"),
    "broken without": TOM.replace("market", "mar\nket").replace("total", "to tal"),
    "soft hyphens": TOM.replace("ar", "a\u00adr"),
    "zero width": TOM.replace("ar", "a\u200br").replace("ot", "o\u2063t"),
    "Cyrillic": TOM.replace("a", "а").replace("o", "о"),
    "Greek": TOM.replace("o", "ο").replace("T", "Τ"),
    "two letters swapped": TOM.replace("market", "makret").replace("total", "toatl").replace("many", "mnay"),
    "blanks": TOM.replace(" ", "  ").replace("37", "\n37"),
    "case": TOM.swapcase(),
    "punctuation": TOM.replace(".", " ;").replace("?", "..."),
    "swapped and broken": TOM.replace("market", "makret").replace("total", "to-\ntal"),
}


@pytest.mark.parametrize("kind", REWRITINGS)
def test_what_was_done_to_letters_and_layout_hides_no_leak(tmp_path, kind):
    other = REWRITINGS[kind].translate(str.maketrans("37３７", "58５８"))
    matches, _ = run(tmp_path, [REWRITINGS[kind], f"Think. {REWRITINGS[kind]}\nAnd {PEN}", other, PEN])
    assert {(row, item) for row, item, _ in kinds(matches)} == {("t0", "g1"), ("t1", "g1")}


def test_one_record_may_match_several_items(tmp_path):
    matches, _ = run(tmp_path, [f"{TOM} {SAM}", TOM])
    assert sorted(kinds(matches)) == [("t0", "g1", "overlap"), ("t0", "g2", "overlap"), ("t1", "g1", "exact")]


def test_no_match_is_an_empty_table(tmp_path):
    matches, counts = run(tmp_path, ["Nothing of it."])
    assert len(matches) == 0
    assert counts == {"records": 1, "matching": 0}


def test_sets_of_the_hub_are_known_by_name(tmp_path, monkeypatch):
    asked = []

    def open_hub(config: HubSource) -> Source:
        asked.append((config.name, config.subset, config.split))
        return Source(config.name, config.name, iter([Record(1, {"question": TOM, "answer": "#### 82"}, 100)]))

    monkeypatch.setattr("truegold.pipeline.decontaminate.eval_sets.open_hub", open_hub)
    data = write(tmp_path / "train.jsonl", [{"prompt": TOM}])
    specs = ["gsm8k", "owner/mine:hard@validation", "owner/other"]
    find_leaks_in_file(data, dict.fromkeys(specs, ProblemColumns()), tmp_path / "out", ProblemColumns(), NullProgress())
    assert asked == [
        ("openai/gsm8k", "main", "test"), ("owner/mine", "hard", "validation"), ("owner/other", None, "test"),
    ]  # fmt: skip
    assert pl.read_parquet(tmp_path / "out" / "matches.parquet")["against"].to_list() == specs


@pytest.mark.parametrize("spec", ["math5000", "evals/absent.jsonl"])
def test_an_unknown_set_names_those_that_are_known(tmp_path, spec):
    data = write(tmp_path / "train.jsonl", [{"prompt": TOM}])
    with pytest.raises(InputError, match=r"There is no evaluation set or file .*Known by name: aime24, .*math500"):
        find_leaks_in_file(data, {spec: ProblemColumns()}, tmp_path / "out", ProblemColumns(), NullProgress())


def test_planted_leaks_are_found_and_renumbered_decoys_are_not_in_real_data(tmp_path, monkeypatch):
    folder = real_data("curation/gsm8k_test_rephrased.jsonl").parent
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import curation_decontamination as benchmark

    planted = benchmark.plant(folder, 5000, only_odd=True)
    matches = benchmark.score(planted, benchmark.truegold_matches(planted, tmp_path))
    assert matches["precision"] >= 0.95
    assert matches["recall verbatim"] >= 0.95
    assert matches["recall reworded"] >= 0.9
    assert matches["decoys called"] == 0
