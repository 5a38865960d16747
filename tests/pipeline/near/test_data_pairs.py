"""Puzzles differ in their data: boards, lists, edges, clues and the order of events, in English, Chinese and Korean."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest

from truegold.pipeline.dedup.clusters import find_clusters
from truegold.pipeline.problems import ProblemColumns
from truegold.pipeline.running.progress import NullProgress

PAIRS = [json.loads(line) for line in Path(__file__).with_name("data_pairs.jsonl").read_text("utf-8").splitlines()]
KINDS = sorted({pair["kind"] for pair in PAIRS if not pair["same"]})


def tied(pairs: Iterable[dict[str, str]], golds: tuple[str | None, str | None], folder: Path) -> list[tuple[str, str]]:
    """Return the pairs that are dropped or in conflict, each compared in a file of its own rows."""
    found = []
    for number, pair in enumerate(pairs):
        path = folder / f"{number}.jsonl"
        rows = zip((pair["left"], pair["right"]), golds, strict=True)
        path.write_text("".join(json.dumps({"prompt": text, "gold": gold}) + "\n" for text, gold in rows))
        find_clusters(path, folder / f"out{number}", ProblemColumns("prompt"), None, NullProgress())
        left, right = pl.read_parquet(folder / f"out{number}/clusters.parquet")["cluster"].to_list()
        if left == right:
            found.append((pair["left"], pair["right"]))
    return found


@pytest.mark.parametrize("golds", [(None, None), ("12", "12"), ("12", "17")], ids=["unknown", "equal", "different"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_data_makes_another_problem(kind: str, golds: tuple[str | None, str | None], tmp_path: Path) -> None:
    pairs = [pair for pair in PAIRS if pair["kind"] == kind and not pair["same"]]
    assert tied(pairs, golds, tmp_path) == []


@pytest.mark.parametrize("golds", [(None, None), ("12", "12")], ids=["unknown", "equal"])
def test_the_same_data_in_another_layout_or_wording_is_the_same_problem(
    golds: tuple[str | None, str | None], tmp_path: Path
) -> None:
    pairs = [pair for pair in PAIRS if pair["same"]]
    assert len(tied(pairs, golds, tmp_path)) == len(pairs) >= 12


def test_a_long_template_with_other_words_is_another_problem(tmp_path: Path) -> None:
    template = (
        "There are 4 houses in a street, numbered 1 to 4 from left to right as seen from the other side. In each lives"
        " another person, and each person has another name, pet, drink and colour. The names are alice, bob, carol and"
        " arnold. {clues} What is the name of the person who lives in house 1?"
    )
    pets = (
        "The pets are cat, dog, fish and bird. The drinks are milk, tea, water and coffee. The owner of the dog"
        " lives in the second house. The person who drinks milk is bob. The cat owner lives directly left of the"
        " person who keeps the fish. The person who drinks coffee is carol. The bird keeper and the tea drinker are"
        " next to each other. The milk drinker lives in the fourth house."
    )
    flowers = (
        "The flowers are iris, lily, rose and daisy. The sports are golf, tennis, chess and rowing. The lover of"
        " the rose lives in the second house. The person who plays golf is arnold. The iris lover lives directly"
        " left of the person who grows the lily. The person who likes rowing is alice. The daisy grower and the"
        " tennis player are next to each other. The golf player lives in the fourth house."
    )
    pair = {"left": template.format(clues=pets), "right": template.format(clues=flowers)}
    assert tied([pair], (None, None), tmp_path) == []
