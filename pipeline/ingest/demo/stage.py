"""The demo's data: school-maths word problems made on the spot, with planted and labelled defects.

Writes four files:

    raw.jsonl       {"question": "Tom has 12 apples. He buys 9 more and gives away 5. How many apples does
                     Tom have now?", "solution": "12+9=21-5=16 \\boxed{16}", "answer": "16", "planted": null}
    heldout.jsonl   the same columns, all clean; its operations and numbers occur in neither of the other two files
    sft.jsonl       {"prompt": "Tom has 12 apples. ...", "completion": "12+9=21-5=16 \\boxed{16}"}
    planted.json    how many rows of each kind were planted in raw.jsonl

`planted` names the defect of a row. Detectors never read it; the report scores them by it. A copy always comes after
the row it repeats. The last tenth of sft.jsonl is contaminated: half of its final values are wrong by 1 to 3. A model
that reads the file in order knows the arithmetic and then learns to be careless, which is what RL can mend quickly.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

from truegold.pipeline.config.sources import DemoSource
from truegold.pipeline.ingest.demo.defects import COPIES, FRESH, Item, RawRow, clean_row, conflicting_pair, wrong_gold
from truegold.pipeline.ingest.demo.problems import Pools, make_pools, wrong_by_a_little
from truegold.pipeline.ingest.demo.stories import PERSON_STORIES, STORIES, pick_telling, tell
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function

KIND_SHARE = 0.03
"""Planted rows of each kind, as a share of the clean problems ..."""
WRONG_GOLD_SHARE = 0.05
"""... and of wrong golds, the defect that matters most."""
CONTAMINATED_SHARE = 0.1
"""The end of the SFT file whose final values are wrong half of the time."""


@stage_function(version=1)
def make_demo_data(inputs: Mapping[str, Path], config: DemoSource, out_dir: Path, progress: Progress) -> StageReport:
    """Make all four files from the seed alone."""
    rows = _raw_rows(config, random.Random(f"raw {config.seed}"))
    heldout = _clean_items(make_pools(held_out=True), config.heldout_problems, random.Random(f"heldout {config.seed}"))
    _write_lines(out_dir / "raw.jsonl", iter(rows))
    _write_lines(out_dir / "heldout.jsonl", map(clean_row, heldout))

    progress.start("demo data", config.sft_examples)
    _write_lines(out_dir / "sft.jsonl", _sft_examples(config, random.Random(f"sft {config.seed}"), progress))

    planted = Counter(str(row["planted"]) for row in rows if row["planted"] is not None)
    content = orjson.dumps(dict(planted), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
    (out_dir / "planted.json").write_bytes(content + b"\n")
    return StageReport(
        rows_in=0,
        rows_out=len(rows),
        counts={f"planted:{kind}": count for kind, count in sorted(planted.items())},
        facts={"clean": config.problems, "heldout": len(heldout), "sft_examples": config.sft_examples},
    )


def _write_lines(path: Path, rows: Iterator[RawRow]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row) + b"\n")


def _clean_items(pools: Pools, count: int, rng: random.Random) -> list[Item]:
    """Problems whose texts all differ, and whose numbers all differ as long as the pool lasts."""
    items: list[Item] = []
    seen: set[str] = set()
    for problem in pools.draw(rng):
        item = Item(problem, pick_telling(rng))
        text = tell(item.problem, item.telling)
        if text not in seen:
            seen.add(text)
            items.append(item)
        if len(items) == count:
            break
    return items


def _raw_rows(config: DemoSource, rng: random.Random) -> list[RawRow]:
    """The clean rows with the planted ones among them, shuffled."""
    each = max(2, round(config.problems * KIND_SHARE))
    wrong = max(2, round(config.problems * WRONG_GOLD_SHARE))
    pairs = each // 2
    items = iter(_clean_items(make_pools(held_out=False), config.problems + wrong + pairs + each * len(FRESH), rng))
    clean = [next(items) for _ in range(config.problems)]

    rows = [clean_row(item) for item in clean]
    rows += [wrong_gold(next(items), rng, solution_agrees=place % 2 == 0) for place in range(wrong)]
    rows += [row for _ in range(pairs) for row in conflicting_pair(next(items), rng)]
    for make in FRESH.values():
        rows += [make(next(items), rng) for _ in range(each)]

    repeated = _rows_to_repeat(clean, each, rng)
    originals: dict[int, int] = {}
    for kind, places in repeated.items():
        for place in places:
            originals[len(rows)] = place
            rows.append(COPIES[kind](clean[place], rng))
    return _shuffled(rows, originals, rng)


def _rows_to_repeat(clean: list[Item], each: int, rng: random.Random) -> dict[str, list[int]]:
    """Which clean rows get a copy of which kind: no row gets two."""
    order = list(range(len(clean)))
    rng.shuffle(order)
    chosen: dict[str, list[int]] = {}
    for kind in COPIES:
        fit = [place for place in order if kind != "rephrased" or clean[place].telling.story in PERSON_STORIES]
        chosen[kind] = fit[:each]
        order = [place for place in order if place not in set(chosen[kind])]
    return chosen


def _shuffled(rows: list[RawRow], originals: Mapping[int, int], rng: random.Random) -> list[RawRow]:
    """The rows in random order, each copy after its original: who keeps the first keeps the one without a defect."""
    order = list(range(len(rows)))
    rng.shuffle(order)
    where = {row: place for place, row in enumerate(order)}
    for copy, original in originals.items():
        if where[copy] < where[original]:
            order[where[copy]], order[where[original]] = original, copy
    return [rows[row] for row in order]


def _sft_examples(config: DemoSource, rng: random.Random, progress: Progress) -> Iterator[RawRow]:
    """Worked solutions, all right but for the contaminated end."""
    count = config.sft_examples
    contaminated = round(count * CONTAMINATED_SHARE)
    wrong = set(rng.sample(range(count - contaminated, count), contaminated // 2))
    for place, problem in zip(range(count), make_pools(held_out=False).draw(rng), strict=False):
        final = wrong_by_a_little(problem.answer, rng) if place in wrong else None
        yield {"prompt": tell(problem, pick_telling(rng, STORIES)), "completion": problem.working(final)}
        progress.advance()
